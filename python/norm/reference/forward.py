"""The forward norms.

    step          formula                                        rounded to
    1 sum         s = x, or s = x + residual                     sum's type
    2 widen       c = s                                          compute type
    3 mean        m = sum(c) / n; 0 for rms_norm and l2_norm     narrow compute
    4 statistic   q = sum((c - m)^2) / (n - correction);         narrow compute
                  l2_norm: not divided
    5 factor      r = 1/sqrt(q + eps) and its other placements   narrow compute
    6 normalize   xhat = (c - m) * r                             narrow compute
    7 affine      y = xhat * (scale + offset) + shift            result's type

"Narrow compute" is an explicit compute type of less than f32's precision: there
each step, and in step 7 the product and the sum, is rounded to it once. For f32
and f64 the roundings of steps 3 to 7 are the implementation's and are covered by
the error promise (`norm.promise`).

batch_norm_inference takes m and q as operands. batch_norm_training also gives
running' = (1 - a) * running + a * new, rounded once to its type, where the new
variance is sum((c - m)^2) / (n - running_correction).
"""

from dataclasses import dataclass, field
from typing import Optional

import numpy as np

from norm.reference.spec import NormSpec, from_rows, to_rows
from norm.types import F32, F64, FloatType, cast, float_type, round_to, wide_dtype, widen


@dataclass
class Reference:
    """The results of one op, and the wide values they were rounded from.

    y has x's shape; sum too. mean, variance and rstd have the statistics' shape and
    the compute type, running values that shape. `rows_*` are 2-d, [kept elements,
    reduced elements], the rest of the promise's material."""

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
    running_mean: Optional[np.ndarray] = None
    running_variance: Optional[np.ndarray] = None
    running: dict = field(default_factory=dict, repr=False)  # name -> Running


@dataclass
class Running:
    """A new running value: what it was rounded from, [kept elements]."""

    exact: np.ndarray
    old: np.ndarray  # (1 - a) * old
    new: np.ndarray  # a * new
    weight: float  # a; 0 if nothing was counted
    type: FloatType


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


def epsilon_in(compute, spec, wide):
    """Epsilon as it is added: in compute type."""
    return round_to(wide(0.0 if spec.placement == "none" else spec.epsilon), compute)


def factor(statistic, spec, compute):
    """Step 5: r from q, both [R] and wide."""
    epsilon = epsilon_in(compute, spec, statistic.dtype.type)
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


def centre(c, centred, narrow):
    """Step 3: the mean, [R], and c - mean, [R, n]. narrow: the compute type if it is
    narrow, else None.

    The mean is kept as an unevaluated pair: one number of the wide type is too
    coarse for rows whose mean is many times their deviation. Only a narrow
    compute type makes the rounded mean the one that is subtracted."""
    count, extent = c.shape
    mean = np.zeros(count, c.dtype)
    if not centred or not extent:
        return mean, c
    mean = row_sum(c) / c.dtype.type(extent)
    if narrow:
        mean = round_to(mean, narrow)
        return mean, c - mean[:, None]
    centred = c - mean[:, None]
    rest = row_sum(centred) / c.dtype.type(extent)
    rest = np.where(np.isfinite(rest), rest, 0)
    return mean + rest, centred - rest[:, None]


def statistic(centred, spec, narrow, correction=None):
    """Step 4: q of each row, [R]; 0 of an empty one."""
    extent = centred.shape[1]
    if not extent:
        return np.zeros(centred.shape[0], centred.dtype)
    divisor = centred.dtype.type(spec.divisor(extent, correction))
    q = row_sum(centred * centred) / divisor
    return round_to(q, narrow) if narrow else q


def stored_sum(x, residual, compute, sum_type, wide):
    """x + residual rounded to the sum's type, in the wide dtype. The addition is that of the
    widest of f32, `compute`, and the types of the terms and of the sum."""
    types = (F32, compute, float_type(x.dtype), float_type(residual.dtype), sum_type)
    add_type = max(types, key=lambda one: one.precision)
    # A sum of f64s is rounded by the machine: the extended type is too narrow to be
    # rounded through.
    added = widen(x) + widen(residual)
    return widen(round_to(added if add_type == F64 else round_to(added, F32), sum_type), wide)


def parameter_rows(value, shape, spec, compute, wide):
    """scale or shift, in compute type, broadcast to x's shape as rows."""
    rank = len(shape)
    affine = spec.affine(rank)
    expected = tuple(shape[a] for a in affine)
    assert value.shape == expected, f"expected shape {expected}, got {value.shape}"
    value = round_to(widen(value, wide), compute)
    value = value.reshape([shape[a] if a in affine else 1 for a in range(rank)])
    return to_rows(np.broadcast_to(value, shape), spec)


def gain_rows(scale, shape, spec, compute, wide):
    """scale + offset in compute type, as rows; None without a scale."""
    if scale is None:
        return None
    gain = parameter_rows(scale, shape, spec, compute, wide)
    return round_to(gain + round_to(wide(spec.scale_offset), compute), compute)


def statistic_rows(value, shape, spec, wide):
    """A statistic given as an operand, [R]."""
    expected = spec.kept_shape(shape)
    assert value.shape == expected, f"expected shape {expected}, got {value.shape}"
    return widen(value, wide).reshape(-1)


def running_value(old, new, weight, counted, target):
    """(1 - a) * old + a * new in the wide dtype; old alone where nothing was counted."""
    weight = np.where(counted, old.dtype.type(weight), 0)
    with np.errstate(all="ignore"):
        kept = (1 - weight) * old
        added = np.where(counted, weight * new, 0)
    return Running(np.where(counted, kept + added, old), kept, added, weight, target)


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


def evaluate(spec, x, residual=None, scale=None, shift=None, mean=None, variance=None,
             running_mean=None, running_variance=None, momentum=None):
    """The forward op `spec` applied to arrays; returns a `Reference`.

    x and residual: any rank and the same shape; scale and shift: x's dims at the
    affine axes. Any mix of f64, f32, f16 and bf16. mean and variance: those of
    batch_norm_inference; running values: batch_norm_training's; momentum: a number
    in place of the attribute."""
    shape, x_type = x.shape, float_type(x.dtype)
    compute = spec.compute_type(x, residual)
    result = float_type(spec.result) if spec.result else x_type
    narrow = compute if compute.precision < F32.precision else None
    wide = wide_dtype(compute, x_type, result)
    rounded = (lambda v: round_to(v, narrow)) if narrow else (lambda v: v)

    with np.errstate(all="ignore"):
        stored = sum_type = None
        s = widen(x, wide)
        if residual is not None:
            sum_type = float_type(spec.sum) if spec.sum else x_type
            stored = stored_sum(x, residual, compute, sum_type, wide)
            s = stored
            if spec.sum_rounding == "compute":
                s = stored_sum(x, residual, compute, compute, wide)
        c = to_rows(round_to(s, compute), spec)

        if spec.kind == "batch_norm_inference":
            m = statistic_rows(mean, shape, spec, wide)  # as it is, of whatever type
            centred = c - m[:, None]
            q = round_to(statistic_rows(variance, shape, spec, wide), compute)
        else:
            m, centred = centre(c, spec.centred, narrow)
            q = statistic(centred, spec, narrow)
        r = rounded(factor(q, spec, compute))
        xhat = rounded(centred * r[:, None])

        gain = gain_rows(scale, shape, spec, compute, wide)
        bias = None
        if shift is not None:
            bias = parameter_rows(shift, shape, spec, compute, wide)
        y = affine_steps(xhat, gain, bias, spec, compute, result, x_type)

        running = {}
        if running_mean is not None:
            weight = spec.momentum if momentum is None else momentum
            unbiased = statistic(centred, spec, narrow, spec.running_correction)
            for name, old, new in (("running_mean", running_mean, m),
                                   ("running_variance", running_variance, unbiased)):
                target = float_type(spec.running or old.dtype)
                old = statistic_rows(old, shape, spec, wide)
                running[name] = running_value(old, new, weight, c.shape[1] > 0, target)

    kept = spec.kept_shape(shape)
    return Reference(
        spec=spec, shape=shape, compute=compute, result=result, x_type=x_type,
        y=from_rows(cast(y, result), shape, spec),
        mean=cast(m, compute).reshape(kept) if spec.centred else None,
        variance=cast(q, compute).reshape(kept),
        rstd=cast(r, compute).reshape(kept),
        sum=None if stored is None else cast(stored, sum_type),
        rows_c=c, rows_xhat=xhat, rows_gain=gain, rows_shift=bias, rows_y=y,
        row_mean=m, row_variance=q, row_rstd=r, running=running,
        **{name: cast(value.exact, value.type).reshape(kept) for name, value in running.items()})


def layer_norm(x, residual=None, scale=None, shift=None, **attributes):
    """`norm.layer_norm`: see `NormSpec` for the attributes, `evaluate` for shapes."""
    return evaluate(NormSpec(kind="layer_norm", **attributes), x, residual, scale, shift)


def rms_norm(x, residual=None, scale=None, shift=None, **attributes):
    """`norm.rms_norm`: `layer_norm` without the mean (step 3 is 0)."""
    return evaluate(NormSpec(kind="rms_norm", **attributes), x, residual, scale, shift)
