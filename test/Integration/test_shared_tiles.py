"""Tiles that threads share: the bits are those of a tile that one thread sweeps."""

import re

import numpy as np
import pytest
from norm.data import MAKERS, draw, generator
from norm.golden import same_bits
from norm.program import Call, module_text, split_results
from norm.promise import check
from norm.reference import NormSpec
from norm.tools import norm_run
from norm.types import cast, float_type

# op, shape, axes, attributes, operands beside x, results. The innermost sums run over
# more than one block of 32768 elements, or the outer ones over several steps.
FORMS = {
    "layer": ("layer_norm", (2, 100003), (1,), {}, "gb", "y mean rstd"),
    "rms": ("rms_norm", (1, 70000), (1,), {}, "g", "y rstd"),
    "l2": ("l2_norm", (90001,), (0,), {}, "", "y"),
    "whole": ("l2_norm", (3, 40000), (0, 1), {}, "", "y"),
    "residual": ("layer_norm", (1, 80000), (1,), {}, "rgb", "y sum"),
    "batch": ("batch_norm_training", (9, 3, 11, 37), (0, 2, 3), {}, "gb", "y mean variance"),
    "instance": ("instance_norm", (2, 2, 300, 250), (2, 3), dict(affine_axes=(1,)), "gb", "y"),
    "group": ("group_norm", (2, 6, 9, 70), (1, 2, 3), dict(groups=2, channel_axis=1), "gb",
              "y mean"),
    "batch_backward": ("batch_norm_training_backward", (9, 3, 11, 37), (0, 2, 3), {}, "dg",
                       "dx dscale dshift"),
    "layer_backward": ("layer_norm_backward", (2, 70001), (1,), {}, "dg", "dx"),
}


def made(form, element="f32", maker="mixed", dynamic=False, rows=None):
    kind, shape, axes, attributes, operands, results = FORMS[form]
    if rows:
        shape = (rows,) + shape[1:]
    rng = generator(f"{form}{element}{maker}")
    spec = NormSpec(kind, axes=axes, **attributes)
    x = MAKERS[maker](rng, shape[0], int(np.prod(shape[1:]))).reshape(shape)
    arrays = dict(x=cast(x, float_type(element)))
    parameters = [shape[a] for a in spec.affine(len(shape))]
    for letter, name, extents in (("d", "dy", shape), ("r", "residual", shape),
                                  ("g", "scale", parameters), ("b", "shift", parameters)):
        if letter in operands:
            arrays[name] = draw(rng, extents, element)
    return Call(spec, results=tuple(results.split()),
                dynamic=tuple(range(len(shape))) if dynamic else (), **arrays)


def run(directory, calls, strategy=None, threads=2):
    text = module_text(calls)
    if strategy:
        text, count = re.subn(r"(epsilon [^:]*?) : ",
                              rf"\1 {{norm.strategy = #norm.cpu<{strategy}>}} : ", text)
        assert count == len(calls)
    inputs = [array for call in calls for array in call.inputs()]
    elements = [element for call in calls for _, element in call.result_types()]
    return split_results(calls, norm_run(directory, text, inputs, elements, threads=threads))


def compare(one, other):
    for name, values in one.items():
        same_bits(values, other[name])


def strategy(split, columns=32, rows=1):
    return (f"rows = {rows}, columns = {columns}, parallel = true, serial_bytes = 1, "
            f"stream_bytes = 1, split = {split}")


@pytest.mark.parametrize("maker", ["mixed", "not_finite"])
def test_same_bits(maker, tmp_path):
    calls = [made(form, maker=maker) for form in FORMS]
    whole = run(tmp_path, calls, strategy("false"))
    for threads in (1, 2, 3):
        for one, other in zip(whole, run(tmp_path, calls, strategy("true"), threads), strict=True):
            compare(one, other)
    dynamic = [made(form, maker=maker, dynamic=True) for form in FORMS]
    for one, other in zip(whole, run(tmp_path, dynamic, strategy("true")), strict=True):
        compare(one, other)


@pytest.mark.parametrize("dynamic", [False, True])
def test_several_rows(dynamic, tmp_path):
    """Two rows at a time, one that is left, and threads that do not divide the shares."""
    calls = [made(form, dynamic=dynamic, rows=rows)
             for form in ("layer", "rms", "residual", "layer_backward") for rows in (1, 2, 3)]
    calls.append(made("layer", "bf16", dynamic=dynamic, rows=3))
    whole = run(tmp_path, calls, strategy("false"))
    for threads in (1, 3, 7):
        shared = run(tmp_path, calls, strategy("true", rows=2), threads)
        for one, other in zip(whole, shared, strict=True):
            compare(one, other)


@pytest.mark.parametrize("element,columns", [("bf16", 32), ("f16", 32), ("f64", 16)])
def test_types(element, columns, tmp_path):
    calls = [made(form, element) for form in ("layer", "rms", "batch", "batch_backward")]
    whole = run(tmp_path, calls, strategy("false", columns))
    shared = run(tmp_path, calls, strategy("true", columns))
    for call, one, other in zip(calls, whole, shared, strict=True):
        compare(one, other)
        check(call.reference(), other, "any")


def test_row_counts(tmp_path):
    """Few rows are shared, many are not."""
    calls = [made("layer", rows=rows) for rows in (1, 2, 3, 23)]
    large = [Call(NormSpec("layer_norm", axes=(1,)), x=np.tile(calls[0].x[:, :70000], (1, 4)))]
    large.append(Call(large[0].spec, x=np.repeat(large[0].x, 9, axis=0)))
    *found, one, many = run(tmp_path, calls + large)
    for call, results in zip(calls, found, strict=True):
        check(call.reference(), results, "any")
    for row in many["y"]:
        same_bits(row, one["y"][0])
    for row in range(1, 4):
        one, other = run(tmp_path, [made("layer", rows=row)], strategy("true")), found[row - 1]
        compare(one[0], other)


def test_empty(tmp_path):
    calls = [Call(NormSpec("layer_norm", axes=(1,)), x=np.zeros(shape, np.float32),
                  results=("y", "mean"), dynamic=(0, 1)) for shape in ((0, 5), (3, 0), (3, 1))]
    for call, found in zip(calls, run(tmp_path, calls, strategy("true")), strict=True):
        check(call.reference(), found, "any")
