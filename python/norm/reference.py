"""The oracle: what each norm op computes, written from the contract in docs/Spec.md.

It shares no code with the compiler. Values are computed in f64, and in x87
extended precision for ops that compute in f64, from exact (compensated) sums;
they are rounded where the contract rounds and nowhere else.

    step          formula                                        rounded to
    1 sum         s = x, or s = x + residual                     sum's type
    2 widen       c = s                                          compute type
    3 mean        m = sum(c) / n; 0 for rms_norm                 narrow compute
    4 statistic   q = sum((c - m)^2) / (n - correction)          narrow compute
    5 factor      r = 1/sqrt(q + eps) and its other placements   narrow compute
    6 normalize   xhat = (c - m) * r                             narrow compute
    7 affine      y = xhat * (scale + offset) + shift            result's type

"Narrow compute" is an explicit compute type of less than f32's precision: there
each step, and in step 7 the product and the sum, is rounded to it once. For f32
and f64 the roundings of steps 3 to 7 are the implementation's and are covered by
the error promise (`norm.promise`).
"""

from dataclasses import dataclass, field
from typing import Optional

import numpy as np

from norm.types import F32, F64, FloatType, cast, float_type, round_to, wide_dtype, widen

PLACEMENTS = ("inside_sqrt", "outside_sqrt", "max_inside", "max_outside", "none")


@dataclass(frozen=True)
class NormSpec:
    """The attributes of one op, and the types of its results."""

    kind: str  # "layer_norm" or "rms_norm"
    axes: tuple  # reduced axes, negatives allowed
    epsilon: float = 1e-5
    placement: str = "inside_sqrt"
    affine_axes: Optional[tuple] = None  # None: the reduced axes
    compute: Optional[str] = None  # None: widest of f32, x and residual
    correction: int = 0
    scale_offset: float = 0.0
    affine_in: str = "compute"  # or "result"
    sum_rounding: str = "stored"  # or "compute"
    zero_policy: str = "ieee"  # or "zero"
    result: Optional[str] = None  # y's element type; None: x's
    sum: Optional[str] = None  # the stored sum's element type; None: x's

    def __post_init__(self):
        assert self.kind in ("layer_norm", "rms_norm"), self.kind
        assert self.placement in PLACEMENTS, self.placement
        assert self.affine_in in ("compute", "result"), self.affine_in
        assert self.sum_rounding in ("stored", "compute"), self.sum_rounding
        assert self.zero_policy in ("ieee", "zero"), self.zero_policy
        assert self.kind == "layer_norm" or self.correction == 0

    @property
    def centred(self):
        return self.kind == "layer_norm"

    def reduced(self, rank):
        """The reduced axes: sorted, not negative."""
        return tuple(sorted(a % rank for a in self.axes))

    def kept(self, rank):
        return tuple(a for a in range(rank) if a not in self.reduced(rank))

    def affine(self, rank):
        """The axes of x that scale and shift index."""
        if self.affine_axes is None:
            return self.reduced(rank)
        return tuple(a % rank for a in self.affine_axes)

    def compute_type(self, x, residual=None):
        if self.compute is not None:
            return float_type(self.compute)
        types = [F32, float_type(x.dtype)]
        if residual is not None:
            types.append(float_type(residual.dtype))
        return max(types, key=lambda t: t.precision)


@dataclass
class Reference:
    """The results of one op, and the wide values they were rounded from.

    y has x's shape; sum too. mean, variance and rstd have x's shape without the
    reduced axes and the compute type. `rows_*` are 2-d, [kept elements, reduced
    elements], the rest of the promise's material."""

    spec: NormSpec
    shape: tuple
    compute: FloatType
    result: FloatType
    x_type: FloatType
    y: np.ndarray
    mean: Optional[np.ndarray]
    variance: np.ndarray
    rstd: np.ndarray
    sum: Optional[np.ndarray]
    rows_c: np.ndarray = field(repr=False)  # step 2
    rows_xhat: np.ndarray = field(repr=False)  # step 6
    rows_gain: np.ndarray = field(repr=False)  # scale + offset, or 1
    rows_shift: np.ndarray = field(repr=False)  # shift, or 0
    rows_y: np.ndarray = field(repr=False)  # step 7 before its last rounding
    row_mean: np.ndarray = field(repr=False)  # step 3, [kept elements]
    row_variance: np.ndarray = field(repr=False)  # step 4
    row_rstd: np.ndarray = field(repr=False)  # step 5


def to_rows(array, spec):
    """x's shape -> [product of kept dims, product of reduced dims]."""
    rank = array.ndim
    kept, reduced = spec.kept(rank), spec.reduced(rank)
    rows = int(np.prod([array.shape[a] for a in kept], dtype=np.int64))
    extent = int(np.prod([array.shape[a] for a in reduced], dtype=np.int64))
    return np.ascontiguousarray(array.transpose(kept + reduced)).reshape(rows, extent)


def from_rows(rows, shape, spec):
    """The inverse of `to_rows` for an array of `shape`."""
    rank = len(shape)
    order = spec.kept(rank) + spec.reduced(rank)
    return rows.reshape([shape[a] for a in order]).transpose(np.argsort(order))


def row_sum(rows):
    """[R, n] -> [R]: the sum of each row to about one rounding of the wide type.

    NumPy's pairwise sum, and once more over what it missed about its own mean."""
    extent = rows.shape[1]
    if extent == 0:
        return np.zeros(rows.shape[0], rows.dtype)
    first = rows.sum(axis=1) / extent
    rest = (rows - first[:, None]).sum(axis=1)
    total = first * extent + rest
    # A non-finite element decides the sum by itself; inf - inf must not.
    return np.where(np.isfinite(first), total, first)


def factor(statistic, spec, compute):
    """Step 5: r from q, both [R] and wide. Epsilon is added in compute type."""
    epsilon = 0.0 if spec.placement == "none" else spec.epsilon
    epsilon = round_to(statistic.dtype.type(epsilon), compute)
    with np.errstate(all="ignore"):
        if spec.placement == "outside_sqrt":
            denominator = np.sqrt(statistic) + epsilon
        elif spec.placement == "max_inside":
            denominator = np.sqrt(np.maximum(statistic, epsilon))
        elif spec.placement == "max_outside":
            denominator = np.maximum(np.sqrt(statistic), epsilon)
        else:
            denominator = np.sqrt(statistic + epsilon)
        r = 1 / denominator
    if spec.zero_policy == "zero":
        r = np.where(denominator == 0, 0, r)
    return r


def _centre(c, spec, narrow, rounded):
    """Step 3: the mean, [R], and c - mean, [R, n].

    The mean is kept as an unevaluated pair: one number of the wide type is too
    coarse for rows whose mean is many times their deviation. Only a narrow
    compute type makes the rounded mean the one that is subtracted."""
    count, extent = c.shape
    mean = np.zeros(count, c.dtype)
    if not spec.centred or not extent:
        return mean, c
    mean = rounded(row_sum(c) / c.dtype.type(extent))
    centred = c - mean[:, None]
    if narrow:
        return mean, centred
    rest = row_sum(centred) / c.dtype.type(extent)
    rest = np.where(np.isfinite(rest), rest, 0)
    return mean + rest, centred - rest[:, None]


def _stored_sum(x, residual, sum_type, wide):
    """x + residual rounded once to the sum's type, in the wide dtype."""
    if sum_type == F64:
        # The extended type is too narrow to be rounded through.
        return widen(widen(x) + widen(residual), wide)
    return round_to(widen(x, wide) + widen(residual, wide), sum_type)


def _parameter(value, shape, spec, compute, wide):
    """scale or shift, in compute type, broadcast to x's shape as rows."""
    rank = len(shape)
    affine = spec.affine(rank)
    expected = tuple(shape[a] for a in affine)
    assert value.shape == expected, f"expected shape {expected}, got {value.shape}"
    value = round_to(widen(value, wide), compute)
    value = value.reshape([shape[a] if a in affine else 1 for a in range(rank)])
    return to_rows(np.broadcast_to(value, shape), spec)


def affine_steps(xhat, gain, shift, spec, compute, result, x_type):
    """Step 7 up to the last rounding to `result`; all arrays [R, n], wide.

    gain is scale + offset in compute type; None for an absent operand."""
    narrow = compute.precision < F32.precision
    if spec.affine_in == "result":
        y = round_to(xhat, x_type)
        if gain is not None:
            y = round_to(y * round_to(gain, result), result)
        if shift is not None:
            y = y + round_to(shift, result)
        return y
    y = xhat
    if gain is not None:
        y = y * gain
        y = round_to(y, compute) if narrow else y
    if shift is not None:
        y = y + shift
        y = round_to(y, compute) if narrow else y
    return y


def evaluate(spec, x, residual=None, scale=None, shift=None):
    """The op `spec` applied to arrays; returns a `Reference`.

    x and residual: any rank and the same shape; scale and shift: x's dims at the
    affine axes. Any mix of f64, f32, f16 and bf16."""
    shape, x_type = x.shape, float_type(x.dtype)
    compute = spec.compute_type(x, residual)
    result = float_type(spec.result) if spec.result else x_type
    narrow = compute.precision < F32.precision
    wide = wide_dtype(compute, x_type, result)
    rounded = (lambda v: round_to(v, compute)) if narrow else (lambda v: v)

    with np.errstate(all="ignore"):
        stored = None
        s = widen(x, wide)
        if residual is not None:
            sum_type = float_type(spec.sum) if spec.sum else x_type
            stored = _stored_sum(x, residual, sum_type, wide)
            s = stored
            if spec.sum_rounding == "compute":
                s = _stored_sum(x, residual, compute, wide)
        c = to_rows(round_to(s, compute), spec)
        count, extent = c.shape

        m, centred = _centre(c, spec, narrow, rounded)
        q = np.zeros(count, wide)
        if extent:
            squares = row_sum(centred * centred)
            q = rounded(squares / wide(extent - spec.correction))
        r = rounded(factor(q, spec, compute))
        xhat = rounded(centred * r[:, None])

        gain = bias = None
        if scale is not None:
            gain = _parameter(scale, shape, spec, compute, wide)
            offset = round_to(wide(spec.scale_offset), compute)
            gain = round_to(gain + offset, compute)
        if shift is not None:
            bias = _parameter(shift, shape, spec, compute, wide)
        y = affine_steps(xhat, gain, bias, spec, compute, result, x_type)

    kept = tuple(shape[a] for a in spec.kept(len(shape)))
    return Reference(
        spec=spec, shape=shape, compute=compute, result=result, x_type=x_type,
        y=from_rows(cast(y, result), shape, spec),
        mean=cast(m, compute).reshape(kept) if spec.centred else None,
        variance=cast(q, compute).reshape(kept),
        rstd=cast(r, compute).reshape(kept),
        sum=None if stored is None else cast(stored, sum_type),
        rows_c=c, rows_xhat=xhat, rows_gain=gain, rows_shift=bias, rows_y=y,
        row_mean=m, row_variance=q, row_rstd=r)


def layer_norm(x, residual=None, scale=None, shift=None, **attributes):
    """`norm.layer_norm`: see `NormSpec` for the attributes, `evaluate` for shapes."""
    return evaluate(NormSpec(kind="layer_norm", **attributes), x, residual, scale, shift)


def rms_norm(x, residual=None, scale=None, shift=None, **attributes):
    """`norm.rms_norm`: `layer_norm` without the mean (step 3 is 0)."""
    return evaluate(NormSpec(kind="rms_norm", **attributes), x, residual, scale, shift)
