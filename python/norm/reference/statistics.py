"""The algebra of statistics: a norm in parts that can be split, masked and exchanged.

Statistics have x's shape without the reduced axes. They are of compute type or, where
`statistics` says so, f64: then a mean is m + delta of the corrected two-pass form,
not rounded to compute type.
"""

import numpy as np

from norm.reference.backward import (
    at_least_f32,
    coefficient,
    gradient_value,
    input_gradient,
    parameter_gradients,
)
from norm.reference.forward import (
    Reference,
    affine_steps,
    factor,
    gain_rows,
    parameter_rows,
    row_sum,
    running_value,
    statistic_rows,
)
from norm.reference.spec import from_rows, to_rows
from norm.reference.values import Value, Values
from norm.types import float_type, round_to, ulp, wide_dtype, widen

# Ulps of the largest |mean| by which merged means may be off (`norm.promise`).
ULPS_MEAN = 4


def _statistics_type(spec, compute):
    return float_type(spec.statistics) if spec.statistics else compute


def _rows_and_mask(spec, x, mask, compute, wide):
    """c as rows, what is counted, and how many of each row."""
    c = to_rows(round_to(widen(x, wide), compute), spec)
    counted = np.ones(c.shape, bool) if mask is None else to_rows(mask, spec)
    return c, counted, counted.sum(axis=1)


def moments(spec, x, mask=None):
    """count, mean (about mean only) and m2 of the elements where mask is true:
    m2 = sum((x - mean)^2), or sum(x^2) about zero."""
    compute = spec.compute_type(x)
    target = _statistics_type(spec, compute)
    wide = wide_dtype(compute, target, float_type(x.dtype))
    kept = spec.kept_shape(x.shape)
    with np.errstate(all="ignore"):
        c, counted, count = _rows_and_mask(spec, x, mask, compute, wide)
        c = np.where(counted, c, 0)
        values = {"count": Value(count.reshape(kept), None)}
        centred = c
        if spec.about == "mean":
            divisor = np.maximum(count, 1).astype(wide)
            mean = row_sum(c) / divisor
            centred = np.where(counted, c - mean[:, None], 0)
            rest = row_sum(centred) / divisor
            rest = np.where(np.isfinite(rest), rest, 0)
            mean, centred = mean + rest, np.where(counted, centred - rest[:, None], 0)
            size = np.abs(c).max(axis=1, initial=0)
            cap = ULPS_MEAN
            if target.precision > compute.precision:
                near = np.abs(centred).max(axis=1, initial=0)
                size, cap = near + 2 * ULPS_MEAN * ulp(size, compute), np.inf
            values["mean"] = Value(mean.reshape(kept), target, size.reshape(kept), compute,
                                   cap=cap, nan_for_infinity=True)
        m2 = row_sum(centred * centred)
        values["m2"] = Value(m2.reshape(kept), target, m2.reshape(kept), compute, factor=2)
    return Values(spec, compute, values)


def combine_moments(spec, count, m2, mean=None):
    """One triple of the parts along the leading axis, merged two at a time:
    mean = a + d * nb/n, m2 = m2a + m2b + d^2 * na*nb/n with d = b - a."""
    compute = spec.compute_type(mean, m2)
    target = _statistics_type(spec, compute)
    wide = np.longdouble
    total = np.zeros(count.shape[1:], wide)
    mean_a, m2_a = np.zeros_like(total), np.zeros_like(total)
    means = np.zeros(m2.shape, wide) if mean is None else widen(mean, wide)
    with np.errstate(all="ignore"):
        for n, mean_b, m2_b in zip(np.asarray(count, wide), means, widen(m2, wide), strict=True):
            both = total + n
            share = np.where(both == 0, 0, n / np.where(both == 0, 1, both))
            delta = np.where(total == 0, mean_b, mean_b - mean_a)
            merged = m2_a + m2_b + delta * delta * total * share
            mean_a = np.where(n == 0, mean_a, np.where(total == 0, mean_b, mean_a + delta * share))
            m2_a = np.where(n == 0, m2_a, np.where(total == 0, m2_b, merged))
            total = both
        size = np.abs(np.where(count == 0, 0, means)).max(axis=0, initial=0)
        values = {"count": Value(total, None)}
        values["m2"] = Value(m2_a, target, m2_a, compute, factor=2)
        if mean is not None:
            values["mean"] = Value(mean_a, target, size, compute, cap=ULPS_MEAN,
                                   nan_for_infinity=True)
            # What a mean that is off adds to the squares between the parts.
            off = 2 * ULPS_MEAN * ulp(size, compute)
            between = np.where(count == 0, 0, np.abs(means - mean_a))
            values["m2"].extra = (count * (2 * between * off + off * off)).sum(axis=0)
    return Values(spec, compute, values)


def _per_count(m2, count, correction):
    """m2 / (count - correction); 0 where nothing was counted, NaN where too few were."""
    divisor = np.asarray(count, m2.dtype) - correction
    with np.errstate(all="ignore"):
        found = np.where(divisor > 0, m2 / divisor, np.nan)
    return np.where(np.asarray(count) == 0, 0, found)


def rstd(spec, m2, count=None):
    """r of step 5, and the variance q = m2 / (count - correction); m2 itself without
    a count (l2)."""
    compute = spec.compute_type(m2)
    target = _statistics_type(spec, compute)
    q = round_to(widen(m2, wide_dtype(compute, target)), compute)
    if count is not None:
        q = _per_count(q, count, spec.correction)
    r = factor(q, spec, compute)
    return Values(spec, compute, {
        "rstd": Value(r, target, r, compute, cap=8),
        "variance": Value(q, target, q, compute, cap=4)})


def normalize(spec, x, rstd, mean=None, scale=None, shift=None):
    """Steps 6 and 7 with given statistics; a `Reference` of which only y counts. A mean
    of more precision than the compute type keeps it."""
    shape, x_type = x.shape, float_type(x.dtype)
    compute = spec.compute_type(x)
    result = float_type(spec.result) if spec.result else x_type
    wide = wide_dtype(compute, x_type, result)
    with np.errstate(all="ignore"):
        c = to_rows(round_to(widen(x, wide), compute), spec)
        m = np.zeros(c.shape[0], wide)
        if mean is not None:
            m = statistic_rows(mean, shape, spec, wide)
        r = round_to(statistic_rows(rstd, shape, spec, wide), compute)
        xhat = (c - m[:, None]) * r[:, None]
        gain = gain_rows(scale, shape, spec, compute, wide)
        bias = None
        if shift is not None:
            bias = parameter_rows(shift, shape, spec, compute, wide)
        y = affine_steps(xhat, gain, bias, spec, compute, result, x_type)
    return Reference(
        spec=spec, shape=shape, compute=compute, result=result, x_type=x_type, sum=None,
        y=from_rows(Value(y, result).rounded(), shape, spec), mean=None, variance=None, rstd=None,
        rows_c=c, rows_xhat=xhat, rows_gain=gain, rows_shift=bias, rows_y=y,
        row_mean=m, row_variance=None, row_rstd=r)


def update_running(spec, old, new, count, momentum=None):
    """(1 - a) * old + a * new, where for a variance `new` is m2 and
    m2 / (count - running_correction) is what is weighed; old where count is 0."""
    compute = at_least_f32(spec.compute_type(old, new))
    target = float_type(spec.running or old.dtype)
    old, new = (widen(v, np.longdouble) for v in (old, new))
    if spec.statistic == "variance":
        new = _per_count(new, count, spec.running_correction)
    weight = spec.momentum if momentum is None else momentum
    found = running_value(old, new, weight, np.asarray(count) > 0, target)
    size = np.maximum(np.abs(found.old), np.abs(found.new))
    return Values(spec, compute, {
        "updated": Value(found.exact, target, size, compute, cap=2 * ULPS_MEAN)})


def _backward_rows(spec, dy, x, rstd, mean, scale, mask):
    """dy, g, x^ and r as rows, 0 where masked, and what types they are of."""
    compute = at_least_f32(spec.compute_type(x))
    x_type = float_type(x.dtype)
    wide = wide_dtype(compute, x_type, float_type(dy.dtype))
    shape = x.shape
    c, counted, _ = _rows_and_mask(spec, x, mask, compute, wide)
    m = 0 if mean is None else statistic_rows(mean, shape, spec, wide)[:, None]
    r = round_to(statistic_rows(rstd, shape, spec, wide), compute)
    xhat = np.where(counted, (c - m) * r[:, None], 0)
    dy = np.where(counted, to_rows(widen(dy, wide), spec), 0)
    gain = gain_rows(scale, shape, spec, compute, wide)
    g = dy if gain is None else np.where(counted, dy * gain, 0)
    return dy, g, xhat, r, counted, compute


def backward_moments(spec, dy, x, rstd, mean=None, scale=None, mask=None):
    """sum_g = sum(g) and sum_gx = sum(g x^) over `axes`, and dscale, dshift: what the
    backward pass of a norm in parts exchanges."""
    with np.errstate(all="ignore"):
        dy, g, xhat, _, _, compute = _backward_rows(spec, dy, x, rstd, mean, scale, mask)
        kept, x_type = spec.kept_shape(x.shape), float_type(x.dtype)
        target = _statistics_type(spec, compute)
        row_size = np.abs(xhat).max(axis=1, initial=0)
        sizes = row_sum(np.abs(g))
        values = {
            "sum_g": Value(row_sum(g).reshape(kept), target, sizes.reshape(kept), compute),
            "sum_gx": Value(row_sum(g * xhat).reshape(kept), target,
                            (sizes * row_size).reshape(kept), compute)}
        gradients = float_type(spec.gradients) if spec.gradients else x_type
        values.update(parameter_gradients(spec, x.shape, dy, xhat, x_type, compute, gradients))
    return Values(spec, compute, values)


def backward_normalize(spec, dy, x, rstd, sum_gx, count=None, mean=None, scale=None,
                       variance=None, sum_g=None, mask=None):
    """dx from sums over all parts and the count of all parts; without a count, that of
    l2_norm. 0 where masked."""
    with np.errstate(all="ignore"):
        _, g, xhat, r, counted, compute = _backward_rows(spec, dy, x, rstd, mean, scale, mask)
        wide = g.dtype.type
        n = k = wide(1)
        if count is not None:
            n = np.asarray(count, wide).reshape(-1)
            k = np.where(n - spec.correction > 0, n - spec.correction, np.nan)
        weight = 1 / k
        if variance is not None:
            q = round_to(statistic_rows(variance, x.shape, spec, wide), compute)
            weight = weight * coefficient(q, spec, compute)
        shares = []
        for value, scaled in ((sum_g, 1 / n), (sum_gx, weight)):
            if value is not None:
                value = statistic_rows(value, x.shape, spec, wide) * scaled
            shares.append(None if value is None else (value, np.abs(value)))
        dx, size = input_gradient(g, xhat, r, *shares)
        dx = np.where(counted, dx, 0)
        size = np.where(counted, size, 0)
    result = float_type(spec.result) if spec.result else float_type(x.dtype)
    return Values(spec, compute, {
        "dx": gradient_value(spec, x.shape, dx, size, result, compute)})
