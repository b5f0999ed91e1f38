"""Rounding: against the types' own conversions, and exhaustively for 16 bits."""

import ml_dtypes
import numpy as np
import pytest
from norm.types import BF16, F16, F32, F64, cast, float_type, round_to, ulp, widen


def same(a, b):
    return np.array_equal(widen(a), widen(b), equal_nan=True)


@pytest.mark.parametrize("target", [F16, BF16])
def test_every_pattern_is_a_fixed_point(target):
    values = np.arange(1 << 16, dtype=np.uint16).view(target.dtype)
    assert same(cast(widen(values), target), values)
    assert same(cast(widen(values, np.longdouble), target), values)


@pytest.mark.parametrize("target", [F16, BF16])
def test_midpoints_go_to_even(target):
    bits = np.arange(1 << 15, dtype=np.uint16)
    low, high = bits[:-1].view(target.dtype), bits[1:].view(target.dtype)
    finite = np.isfinite(widen(high))
    low, high, even = low[finite], high[finite], bits[:-1][finite] % 2 == 0
    middle = (widen(low) + widen(high)) / 2
    assert same(cast(middle, target), np.where(even, low, high))
    assert same(cast(np.nextafter(middle, np.inf), target), high)
    assert same(cast(np.nextafter(middle, 0), target), low)
    assert same(cast(-middle, target), -np.where(even, low, high))


@pytest.mark.parametrize("target,native", [(F32, np.float32), (F16, np.float16)])
def test_agrees_with_numpy(target, native):
    rng = np.random.default_rng(1)
    values = rng.standard_normal(20000) * 10.0 ** rng.integers(-48, 42, 20000)
    with np.errstate(over="ignore"):
        assert same(round_to(values, target), values.astype(native))


def test_bf16_agrees_with_its_own_cast_from_f32():
    rng = np.random.default_rng(2)
    values = rng.integers(0, 1 << 32, 100000, dtype=np.uint32).view(np.float32)
    with np.errstate(invalid="ignore"):
        expected = values.astype(ml_dtypes.bfloat16)
    assert same(cast(widen(values), BF16), expected)


def test_rounds_once_not_through_f32():
    # Just above the middle of two bf16 numbers, by less than f32 can hold.
    value = np.float64(1 + 2.0**-8 + 2.0**-40)
    assert widen(cast(value, BF16)) == 1 + 2.0**-7
    assert widen(cast(np.float64(1 + 2.0**-8), BF16)) == 1


def test_overflow_and_specials():
    values = np.array([65519.0, 65520.0, -1e30, np.inf, np.nan])
    got = round_to(values, F16)
    assert got[0] == 65504 and got[1] == np.inf and got[2] == -np.inf
    assert got[3] == np.inf and np.isnan(got[4])


def test_ulp_is_the_spacing():
    values = np.array([1.0, 1.5, 2.0, 3e38, 1e-45, 0.0])
    assert np.array_equal(ulp(values, F32), np.spacing(values.astype(np.float32)))
    assert ulp(np.float64(1), F64) == 2.0**-52
    assert ulp(np.float64(np.inf), F32) == np.inf


def test_unknown_types_are_refused():
    assert float_type("bf16") is BF16 and float_type(np.float32) is F32
    with pytest.raises(ValueError, match="expected an f64, f32, f16 or bf16"):
        float_type(np.int32)
