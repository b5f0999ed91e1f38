"""Norms that quantize to int8 and f8, as one kernel: the values of the reference."""

import re
from functools import partial

import numpy as np
import pytest
from norm.tools import norm_opt, norm_run
from test_quantize import (
    DYNAMIC,
    FLOATS,
    LIMITS,
    STATIC,
    assert_quantized_close,
    check_scale_of_each_row,
    dynamic_text,
    shape_of,
    static_text,
)


def run(directory, text, inputs, results):
    """What the emulator and the reference make of it; counts the kernels."""
    promised = norm_opt(text, "--norm-to-nvvm=alignment=promised")
    assert len(re.findall(r"gpu\.binary @", promised)) == 1
    return [norm_run(directory / target, text, inputs, results, target=target)
            for target in ("gpu-emulated", "reference")]


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
    text = dynamic_text(rows, columns, element, target)
    check_scale_of_each_row(rows, columns, element, target, partial(run, tmp_path, text))
