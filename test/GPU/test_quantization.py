"""Norms that quantize to int8 and f8, as one kernel: the values of the reference."""

import re

import numpy as np
import pytest
from norm.tools import norm_opt, norm_run
from test_quantize import (
    DYNAMIC,
    FLOATS,
    LIMITS,
    STATIC,
    assert_quantized_close,
    dynamic_text,
    static_text,
)


def run(directory, text, inputs, results):
    """What the emulator and the reference make of it; counts the kernels."""
    promised = norm_opt(text, "--norm-to-nvvm=alignment=promised")
    assert len(re.findall(r"gpu\.binary @", promised)) == 1
    return [norm_run(directory / target, text, inputs, results, target=target)
            for target in ("gpu-emulated", "reference")]


def shape_of(rows, columns):
    return tuple(int(n) if n != "?" else d for n, d in zip((rows, columns), (7, 37), strict=True))


@pytest.mark.parametrize("target", LIMITS)
@pytest.mark.parametrize("rows, columns, element, norm",
                         [*STATIC, ("3", "2048", "bf16", "rms_norm")])
def test_static_scale(rows, columns, element, norm, target, tmp_path):
    # A scale that only run time knows would be read by the host.
    text = static_text(rows, columns, element, target, norm).replace(", %s: f32", "").replace(
        "  %c0 = arith", "  %s = arith.constant 0.75 : f32\n  %c0 = arith", 1)
    rng = np.random.default_rng(1)
    shape = shape_of(rows, columns)
    x = rng.standard_normal(shape).astype(FLOATS[element])
    gain = (2 * LIMITS[target][1] * (0.2 + rng.random(shape[1]))).astype(FLOATS[element])
    (got,), (want,) = run(tmp_path, text, [x, gain], [target])
    low, high = LIMITS[target]
    assert got.max() == high and got.min() == low
    assert_quantized_close(got, want)


@pytest.mark.parametrize("target", LIMITS)
@pytest.mark.parametrize("rows, columns, element", [*DYNAMIC, ("3", "2048", "f32")])
def test_scale_of_each_row(rows, columns, element, target, tmp_path):
    """The largest element of a row is the largest of the type; a row of zeros stays one."""
    text = dynamic_text(rows, columns, element, target)
    rng = np.random.default_rng(2)
    shape = shape_of(rows, columns)
    x = rng.standard_normal(shape).astype(FLOATS[element])
    x[-1] = 0
    gain = (1e-3 * rng.random(shape[1])).astype(FLOATS[element])
    got, want = run(tmp_path, text, [x, gain], [target, "f32", "f32"])
    for a, b in zip(got[1:], want[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5 if element == "f32" else 1e-2)
    if element == "f32":
        assert_quantized_close(got[0], want[0])
    largest = np.abs(got[0].astype(np.float64)).max(axis=1)
    assert np.all(largest[:-1] == LIMITS[target][1]) and largest[-1] == 0
