"""QK norm and the rotary embedding after it: one loop nest, whichever way the rotation
is written. Values against NumPy in f64 and against the reference pipeline."""

import ml_dtypes
import numpy as np
import pytest
from neighbours import assert_close, check_one_nest, run_both

EPSILON = 1e-6
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
RTOL = {"f32": 2e-5, "f16": 4e-3, "bf16": 3e-2}

MAPS = """
#id = affine_map<(b, s, h, d) -> (b, s, h, d)>
#table = affine_map<(b, s, h, d) -> (s, d)>
#turned = affine_map<(b, s, h, d) -> (b, h, s, d)>
#turned_table = affine_map<(b, h, s, d) -> (s, d)>
"""


class Program:
    """A function of q [2, S, H, D], a gain and tables of cos and sin."""

    def __init__(self, shape, tables, element, dynamic=False):
        self.shape, self.element, self.dynamic = shape, element, dynamic
        self.q = self.type(*shape)
        self.table = self.type(shape[1], tables)
        self.lines, self.count = [], 0

    def type(self, *shape):
        """The number of tokens is dynamic where it is asked for."""
        tokens = self.shape[1] if self.dynamic else None
        dims = "x".join("?" if n == tokens else str(n) for n in shape)
        return f"tensor<{dims}x{self.element}>"

    def add(self, text):
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def empty(self, t):
        return self.add(f"tensor.empty({'%tokens' if '?' in t else ''}) : {t}")

    def generic(self, op, out, *inputs):
        """inputs: (value, type, map)."""
        names = ", ".join(value for value, _, _ in inputs)
        types = ", ".join(t for _, t, _ in inputs)
        maps = ", ".join(m for _, _, m in inputs)
        args = ", ".join(f"%a{i}: {self.element}" for i in range(len(inputs)))
        body = ", ".join(f"%a{i}" for i in range(len(inputs)))
        work = f"%r = {op} {body} : {self.element}\n    linalg.yield %r"
        if not op:
            work = "linalg.yield %a0"
        empty = self.empty(out)
        return self.add(
            f"linalg.generic {{indexing_maps = [{maps}, #id], iterator_types = "
            f'["parallel", "parallel", "parallel", "parallel"]}} ins({names} : {types}) '
            f"outs({empty} : {out}) {{\n  ^bb0({args}, %o: {self.element}):\n"
            f"    {work} : {self.element}\n  }} -> {out}")

    def part(self, value, t, shape, offset, size, stride=1):
        out = self.type(*shape[:-1], size)
        sizes = ", ".join([*("%tokens" if self.dynamic and n == self.shape[1] else str(n)
                             for n in shape[:-1]), str(size)])
        return self.add(f"tensor.extract_slice {value}[0, 0, 0, {offset}] [{sizes}] "
                        f"[1, 1, 1, {stride}] : {t} to {out}"), out

    def text(self, result, t):
        head = (f"{MAPS}\nfunc.func @main(%q: {self.q}, %g: tensor<{self.shape[-1]}x"
                f"{self.element}>, %cos: {self.table}, %sin: {self.table}) -> {t} {{\n"
                "  %c1 = arith.constant 1 : index\n"
                f"  %tokens = tensor.dim %q, %c1 : {self.q}\n"
                f"  %y = norm.rms_norm %q scale(%g : tensor<{self.shape[-1]}x{self.element}>) "
                f"axes [3] epsilon inside_sqrt {EPSILON:.1e} : {self.q} -> {self.q}\n")
        return head + "\n".join(self.lines) + f"\n  return {result} : {t}\n}}\n"


def rotate_half(p, y, t, shape, table, rotated=None):
    """y * cos + concat(-y[h:], y[:h]) * sin, with tables as wide as y."""
    width = rotated or shape[-1]
    half = width // 2
    first, part = p.part(y, t, shape, 0, half)
    second, _ = p.part(y, t, shape, half, half)
    minus = p.add(f"arith.negf {second} : {part}")
    wide = p.type(*shape[:-1], width)
    turned = p.add(f"tensor.concat dim(3) {minus}, {first} : ({part}, {part}) -> {wide}")
    if rotated:
        y, _ = p.part(y, t, shape, 0, width)
    a = p.generic("arith.mulf", wide, (y, wide, "#id"), ("%cos", p.table, table))
    b = p.generic("arith.mulf", wide, (turned, wide, "#id"), ("%sin", p.table, table))
    return p.add(f"arith.addf {a}, {b} : {wide}"), wide


def halves(p, y, t, shape, table, stride=1):
    """(y1 cos - y2 sin, y2 cos + y1 sin), with tables half as wide as y."""
    half = shape[-1] // 2
    second = half if stride == 1 else 1
    y1, part = p.part(y, t, shape, 0, half, stride)
    y2, _ = p.part(y, t, shape, second, half, stride)
    product = {(v, table_): p.generic("arith.mulf", part, (v, part, "#id"),
                                      (table_, p.table, table))
               for v in (y1, y2) for table_ in ("%cos", "%sin")}
    a = p.add(f"arith.subf {product[y1, '%cos']}, {product[y2, '%sin']} : {part}")
    b = p.add(f"arith.addf {product[y2, '%cos']}, {product[y1, '%sin']} : {part}")
    return a, b, part


def hugging_face(p, shape):
    return rotate_half(p, "%y", p.q, shape, "#table")


def transposed(p, shape):
    """Heads before tokens, as attention wants them."""
    turned = (shape[0], shape[2], shape[1], shape[3])
    t = p.type(*turned)
    # The op's loops are those of its result.
    y = p.generic("", t, ("%y", p.q, "#turned"))
    return rotate_half(p, y, t, turned, "#turned_table")


def insert_halves(p, shape):
    a, b, part = halves(p, "%y", p.q, shape, "#table")
    half = shape[-1] // 2
    sizes = f"[{shape[0]}, {'%tokens' if p.dynamic else shape[1]}, {shape[2]}, {half}]"
    z = p.empty(p.q)
    for offset, v in ((0, a), (half, b)):
        z = p.add(f"tensor.insert_slice {v} into {z}[0, 0, 0, {offset}] {sizes} [1, 1, 1, 1] : "
                  f"{part} into {p.q}")
    return z, p.q


def interleaved(p, shape):
    """Pairs of neighbours: every second element, stacked again."""
    a, b, part = halves(p, "%y", p.q, shape, "#table", stride=2)
    half = shape[-1] // 2
    column, pairs = p.type(*shape[:-1], half, 1), p.type(*shape[:-1], half, 2)
    tokens = "%tokens" if p.dynamic else shape[1]
    a, b = (p.add(f"tensor.expand_shape {v} [[0], [1], [2], [3, 4]] output_shape "
                  f"[{shape[0]}, {tokens}, {shape[2]}, {half}, 1] : {part} into {column}")
            for v in (a, b))
    c = p.add(f"tensor.concat dim(4) {a}, {b} : ({column}, {column}) -> {pairs}")
    return p.add(f"tensor.collapse_shape {c} [[0], [1], [2], [3, 4]] : {pairs} into {p.q}"), p.q


def partial(p, shape):
    """Half of the elements are rotated, the others pass."""
    width = shape[-1] // 2
    z, rotated = rotate_half(p, "%y", p.q, shape, "#table", rotated=width)
    rest, other = p.part("%y", p.q, shape, width, shape[-1] - width)
    return p.add(f"tensor.concat dim(3) {z}, {rest} : ({rotated}, {other}) -> {p.q}"), p.q


def scaled(p, shape):
    """What comes after the rotation joins too: the factor of the scores, a cast."""
    z, t = hugging_face(p, shape)
    factor = p.add(f"arith.constant dense<0.125> : {t}")
    return p.add(f"arith.mulf {z}, {factor} : {t}"), t


def expected(form, q, gain, cos, sin):
    q, gain, cos, sin = (a.astype(np.float64) for a in (q, gain, cos, sin))
    y = q / np.sqrt((q * q).mean(-1, keepdims=True) + EPSILON) * gain
    cos, sin = cos[None, :, None, :], sin[None, :, None, :]
    if form in ("insert_halves", "interleaved"):
        half = q.shape[-1] // 2
        take = (slice(0, half), slice(half, None)) if form == "insert_halves" else (
            slice(0, None, 2), slice(1, None, 2))
        z = np.empty_like(y)
        z[..., take[0]] = y[..., take[0]] * cos - y[..., take[1]] * sin
        z[..., take[1]] = y[..., take[1]] * cos + y[..., take[0]] * sin
        return z
    width = cos.shape[-1]
    r = y[..., :width]
    turned = np.concatenate([-r[..., width // 2:], r[..., :width // 2]], -1)
    z = np.concatenate([r * cos + turned * sin, y[..., width:]], -1)
    if form == "transposed":
        return z.transpose(0, 2, 1, 3)
    return z * 0.125 if form == "scaled" else z


FORMS = {f.__name__: f for f in (hugging_face, transposed, insert_halves, interleaved, partial,
                                 scaled)}
WIDTHS = {"insert_halves": 2, "interleaved": 2, "partial": 2}
SHAPES = [(2, 3, 4, 64), (2, 3, 2, 8), (1, 5, 3, 80), (2, 3, 1, 10)]


@pytest.mark.parametrize("shape,element", [(s, "f32") for s in SHAPES]
                         + [(SHAPES[0], "f16"), (SHAPES[3], "bf16")],
                         ids=lambda v: v if isinstance(v, str) else "x".join(map(str, v)))
@pytest.mark.parametrize("form", FORMS)
def test_rotation_shares_the_loop(form, shape, element, tmp_path):
    if form == "partial" and shape[-1] % 4:
        shape = (*shape[:-1], 12)
    check(form, shape, element, False, tmp_path)


@pytest.mark.parametrize("form", [f for f in FORMS if f != "scaled"])
def test_dynamic_tokens(form, tmp_path):
    check(form, (2, 7, 3, 24), "f32", True, tmp_path)


def check(form, shape, element, dynamic, tmp_path):
    width = shape[-1] // WIDTHS.get(form, 1)
    p = Program(shape, width, element, dynamic)
    text = p.text(*FORMS[form](p, shape))
    check_one_nest(text)
    rng = np.random.default_rng(0)
    angles = rng.uniform(-3, 3, (shape[1], width))
    inputs = [rng.standard_normal(shape), rng.standard_normal(shape[-1]), np.cos(angles),
              np.sin(angles)]
    inputs = [a.astype(DTYPES[element]) for a in inputs]
    (got,), (want,) = run_both(tmp_path, text, inputs, [element])
    assert_close(got, want, RTOL[element])
    assert_close(got, expected(form, *inputs), RTOL[element])
