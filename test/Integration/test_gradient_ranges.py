"""dx, dscale and dshift in one sweep: sums over rows are cut by the shape alone, so
their bits depend on neither threads nor vectors, and dx's on no other row."""

import numpy as np
import pytest
from norm.data import MAKERS, draw, generator
from norm.golden import same_bits
from norm.tools import norm_run
from norm.types import widen

TYPES = ("f32", "f32", "f32", "f32", "f32")  # of x, dy, scale and dscale, dshift


def module(kind, shape, types=TYPES, strategy="", saved=False):
    """`kind` backward over the last axis; an extent may be "?"."""
    def tensor(extents, element):
        return f"tensor<{''.join(f'{e}x' for e in extents)}{element}>"

    x, dy, scale, dscale, dshift = types
    full, columns = tensor(shape, x), shape[-1:]
    args = [("dy", tensor(shape, dy)), ("x", full), ("g", tensor(columns, scale))]
    clauses = ""
    if saved:
        for name in ("mean", "rstd") if kind == "layer" else ("rstd",):
            args.append((name, tensor(shape[:-1], "f64" if x == "f64" else "f32")))
            clauses += f" {name}(%{name} : {args[-1][1]})"
    results = [full, tensor(columns, dscale)]
    text = f"{full} dscale({results[1]})"
    if kind == "layer":
        results.append(tensor(columns, dshift))
        text += f" dshift({results[2]})"
    attributes = f"{{norm.strategy = #norm.cpu<{strategy}>}}" if strategy else ""
    values = ", ".join(f"%r#{i}" for i in range(len(results)))
    signature = ", ".join(f"%{name}: {type}" for name, type in args)
    return f"""func.func @main({signature}) -> ({', '.join(results)}) {{
  %r:{len(results)} = norm.{kind}_norm_backward %dy, %x{clauses}
    scale(%g : {args[2][1]}) axes [{len(shape) - 1}] epsilon inside_sqrt 1.0e-5
    {attributes} : {args[0][1]}, {full} -> {text}
  return {values} : {', '.join(results)}
}}
"""


def arrays(shape, types=TYPES, maker=None):
    rng = generator(f"ranges{shape}{types}")
    x = MAKERS[maker](rng, *shape).astype(np.float32) if maker else draw(rng, shape, types[0], 2.0)
    return [draw(rng, shape, types[1]), x, draw(rng, shape[-1:], types[2])]


def run(directory, kind, shape, inputs, types=TYPES, declared=None, strategy="", **rest):
    elements = [types[0], types[3], types[4]][:3 if kind == "layer" else 2]
    saved = len(inputs) > 3
    return norm_run(directory, module(kind, declared or shape, types, strategy, saved),
                    inputs, elements, **rest)


def compare(one, other):
    for a, b in zip(one, other, strict=True):
        same_bits(a, b)


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("shape", [(257, 100), (5, 37, 40), (150, 3, 33)])
def test_neither_vectors_nor_threads(kind, shape, tmp_path):
    inputs = arrays(shape)
    first = run(tmp_path, kind, shape, inputs, threads=1)
    for threads in (2, 3, 7):
        compare(first, run(tmp_path, kind, shape, inputs, threads=threads))
    for rows, parallel in ((1, "true"), (2, "false"), (3, "true"), (8, "false"), (16, "true")):
        strategy = f"rows = {rows}, columns = 32, parallel = {parallel}, range = 128"
        compare(first, run(tmp_path, kind, shape, inputs, strategy=strategy, threads=2))


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_row_counts(kind, tmp_path):
    dy, x, scale = arrays((257, 129), maker="mixed")
    whole = run(tmp_path, kind, (257, 129), [dy, x, scale])
    for count in (0, 1, 2, 3, 23, 257):
        inputs = [dy[:count], x[:count], scale]
        results = run(tmp_path, kind, (count, 129), inputs)
        same_bits(results[0], whole[0][:count])
        for declared in (("?", 129), ("?", "?")):
            compare(results, run(tmp_path, kind, (count, 129), inputs, declared=declared))
        if count == 0:
            assert all((sums == 0).all() for sums in results[1:])


def test_dynamic_axes_around_rows(tmp_path):
    for shape in ((5, 37, 40), (40, 1, 24), (1, 300, 16), (0, 3, 8)):
        inputs = arrays(shape)
        compare(run(tmp_path, "layer", shape, inputs),
                run(tmp_path, "layer", shape, inputs, declared=("?", "?", shape[-1])))


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_dynamic_columns(kind, tmp_path):
    """Whole vectors, whose last step is skipped, and others."""
    for shape in ((37, 128), (37, 100), (9, 24), (3, 0)):
        inputs = arrays(shape)
        compare(run(tmp_path, kind, shape, inputs),
                run(tmp_path, kind, shape, inputs, declared=("?", "?")))


@pytest.mark.parametrize("types", [
    ("bf16", "f32", "f32", "f32", "f32"), ("bf16", "bf16", "bf16", "bf16", "bf16"),
    ("f32", "bf16", "f32", "f64", "bf16"), ("f16", "f16", "f32", "f32", "f16"),
    ("f64", "f64", "f64", "f64", "f32")])
@pytest.mark.parametrize("saved", [False, True])
def test_types(types, saved, tmp_path):
    shape = (203, 96)
    inputs = arrays(shape, types)
    if saved:
        x, compute = widen(inputs[1]), np.float64 if types[0] == "f64" else np.float32
        inputs += [x.mean(1).astype(compute), (x.var(1) + 1e-5).astype(compute) ** -0.5]
    found = run(tmp_path, "layer", shape, inputs, types)
    expected = run(tmp_path, "layer", shape, inputs, types, target="reference")
    for result, exact, element in zip(found, expected, (types[0], *types[3:]), strict=True):
        ulp = {"bf16": 2.0**-7, "f16": 2.0**-10}.get(element, 1e-6)
        assert np.abs(widen(result) - widen(exact)).max() <= ulp * np.abs(widen(exact)).max()


def test_long_columns(tmp_path):
    """131072 rows: the error of a sum stays that of chains of 128 additions."""
    shape = (131072, 128)
    rng = np.random.default_rng(7)
    dy = rng.random(shape, dtype=np.float32) + np.float32(1)
    x = rng.standard_normal(shape, dtype=np.float32) * 2 + 100
    found = run(tmp_path, "layer", shape, [dy, x, np.ones(128, np.float32)])
    centred = x.astype(np.float64) - x.mean(1, dtype=np.float64, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    for result, terms in zip(found[1:], (dy * normal, dy.astype(np.float64)), strict=True):
        assert (np.abs(result - terms.sum(0)) <= 1e-6 * np.abs(terms).sum(0)).all()
