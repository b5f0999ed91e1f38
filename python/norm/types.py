"""Element types of the dialect, and rounding to them.

Arrays carry their element type as a NumPy dtype; bf16 is `ml_dtypes.bfloat16`,
used as a container only. All arithmetic happens in a wide type (`wide_dtype`)
and every rounding is done here, by one routine, to nearest even.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class FloatType:
    """A binary floating-point type: p bits of significand, the hidden one
    counted, and normal numbers from 2**emin up to (2 - 2**(1-p)) * 2**emax."""

    name: str
    precision: int
    emin: int
    emax: int
    dtype: np.dtype

    def __str__(self):
        return self.name

    @property
    def eps(self):
        """The spacing of the type's numbers just above 1."""
        return 2.0 ** (1 - self.precision)

    @property
    def largest(self):
        return (2 - self.eps) * 2.0**self.emax


F64 = FloatType("f64", 53, -1022, 1023, np.dtype(np.float64))
F32 = FloatType("f32", 24, -126, 127, np.dtype(np.float32))
F16 = FloatType("f16", 11, -14, 15, np.dtype(np.float16))
BF16 = FloatType("bf16", 8, -126, 127, np.dtype(ml_dtypes.bfloat16))
TYPES = {t.name: t for t in (F64, F32, F16, BF16)}


def float_type(spec):
    """The FloatType for a name ("bf16"), a NumPy dtype, or itself."""
    if isinstance(spec, FloatType):
        return spec
    if isinstance(spec, str) and spec in TYPES:
        return TYPES[spec]
    dtype = np.dtype(spec)
    for candidate in TYPES.values():
        if candidate.dtype == dtype:
            return candidate
    raise ValueError(f"expected an f64, f32, f16 or bf16 element type, got {spec}")


def wide_dtype(*types):
    """The dtype in which values of these types are computed exactly enough:
    x87 extended precision as soon as f64 takes part, else f64."""
    return np.longdouble if F64 in types else np.float64


def widen(array, dtype=np.float64):
    """`array` in a wide dtype; exact."""
    with np.errstate(invalid="ignore"):  # bf16 NaN
        return np.asarray(array).astype(np.float64).astype(dtype)


def round_to(values, target):
    """Each value rounded to nearest even to FloatType `target`, kept in the
    wide dtype of `values`. Overflow gives infinity; NaN stays NaN."""
    values = np.asarray(values)
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(values)
        # frexp's exponent is one above the leading bit's; below emin the
        # spacing stays that of the subnormals.
        step = np.maximum(exponent - target.precision,
                          target.emin - target.precision + 1)
        rounded = np.ldexp(np.rint(np.ldexp(values, -step)), step)
        largest = values.dtype.type(target.largest)
        rounded = np.where(np.abs(rounded) > largest,
                           np.copysign(np.inf, values), rounded)
    return np.where(np.isfinite(values), rounded, values)


def cast(values, target):
    """`values` (wide) rounded once to `target`, as an array of its dtype."""
    return round_to(values, target).astype(np.float64).astype(target.dtype)


def ulp(values, target):
    """The spacing of `target`'s numbers at |values|, in the dtype of `values`;
    that of the subnormals at 0, infinite where a value is not finite."""
    values = np.asarray(values)
    _, exponent = np.frexp(np.where(np.isfinite(values), values, 0))
    smallest = target.emin - target.precision + 1
    step = np.where(values == 0, smallest,
                    np.maximum(exponent - target.precision, smallest))
    spacing = np.ldexp(values.dtype.type(1), step)
    return np.where(np.isfinite(values), spacing, np.inf)
