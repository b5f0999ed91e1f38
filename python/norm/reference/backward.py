"""The backward norms.

With x^ = (c - m) * r, g = dy * (scale + offset), n elements in a row and k = correction:

    dx     = r * (g - sum(g)/n - x^ * coef * sum(g x^)/(n - k))  [+ dsum]
             rms_norm: without sum(g)/n; l2_norm: without it, and sum(g x^) not divided;
             batch_norm_inference: r * g
    coef     inside_sqrt, none  1
             outside_sqrt       (sqrt(q) + eps)/sqrt(q), 0 where q = 0
             max_*              1 where q is not clamped (at the tie it is not), else 0
    dscale = sum of dy * x^, x^ rounded to x's type for `affine_in result`,
    dshift = sum of dy, over all axes that are not affine axes

Given statistics are used literally; absent ones are recomputed as the forward op
does, rounded to a narrow compute type as it rounds them. Nothing else is: the
arithmetic is never narrower than f32.
"""

import numpy as np

from norm.reference.forward import (
    centre,
    epsilon_in,
    factor,
    gain_rows,
    row_sum,
    statistic,
    statistic_rows,
    stored_sum,
)
from norm.reference.spec import from_rows, over_other_axes, to_rows
from norm.reference.values import Value, Values
from norm.types import F32, F64, float_type, round_to, ulp, wide_dtype, widen

# A rounded x^ may go to either neighbour this close to a tie.
ULPS_AT_TIES = {F32: 32, F64: 64}


def coefficient(q, spec, compute):
    """How strongly the factor still follows its statistic, [R]."""
    epsilon = epsilon_in(compute, spec, q.dtype.type)
    root = np.sqrt(q)
    if spec.placement == "outside_sqrt":
        return np.where(q == 0, 0, (root + epsilon) / root)
    if spec.placement == "max_inside":
        return np.where(q >= epsilon, q.dtype.type(1), 0)
    if spec.placement == "max_outside":
        return np.where(root >= epsilon, q.dtype.type(1), 0)
    return np.ones_like(q)


def at_least_f32(compute):
    return max((compute, F32), key=lambda t: t.precision)


def input_gradient(g, xhat, r, share_g, share_gx):
    """r * (g - share_g - x^ * share_gx), and the size of its terms in each row.

    g, xhat: [R, n]; r: [R]; the shares: ([R], the size of [R]), or None."""
    terms, size = g, np.abs(g)
    for share, along in ((share_g, np.ones_like(xhat)), (share_gx, xhat)):
        if share is not None:
            value, bound = share
            terms = terms - along * value[:, None]
            size = size + np.abs(along) * bound[:, None]
    size = np.abs(r)[:, None] * size
    return r[:, None] * terms, size


def parameter_gradients(spec, shape, dy, xhat, x_type, arithmetic, target):
    """dscale and dshift; dy and xhat are rows, wide."""
    affine = spec.affine(len(shape))
    # An element that is not finite decides its own sums only.
    finite = np.where(np.isfinite(xhat), np.abs(xhat), 0)
    row_size = finite.max(axis=1, keepdims=True, initial=0)
    extra = np.zeros_like(xhat)
    if spec.affine_in == "result":
        slack = ULPS_AT_TIES[arithmetic] * ulp(row_size, arithmetic)
        extra = np.abs(dy) * (round_to(xhat + slack, x_type) - round_to(xhat - slack, x_type))
        xhat = round_to(xhat, x_type)

    def total(rows):
        array, dims = over_other_axes(from_rows(rows, shape, spec), affine)
        return row_sum(array).reshape(dims)

    with np.errstate(all="ignore"):
        return {
            "dscale": Value(total(dy * xhat), target, total(np.abs(dy) * row_size), arithmetic,
                            extra=total(extra)),
            "dshift": Value(total(dy), target, total(np.abs(dy)), arithmetic)}


def evaluate_backward(spec, dy, x, residual=None, dsum=None, mean=None, variance=None,
                      rstd=None, scale=None):
    """The backward op `spec`: `Values` dx, dscale and dshift.

    dy, residual and dsum have x's shape; mean, variance and rstd that of the
    statistics; scale x's dims at the affine axes."""
    shape, x_type = x.shape, float_type(x.dtype)
    compute = spec.compute_type(x, residual)
    arithmetic = at_least_f32(compute)
    result = float_type(spec.result) if spec.result else x_type
    gradients = float_type(spec.gradients) if spec.gradients else x_type
    narrow = compute if compute.precision < F32.precision else None
    wide = wide_dtype(compute, x_type, float_type(dy.dtype), result, gradients)

    def given(value):
        return statistic_rows(value, shape, spec, wide)

    with np.errstate(all="ignore"):
        s = widen(x, wide) if residual is None else stored_sum(x, residual, compute, compute, wide)
        c = to_rows(round_to(s, compute), spec)
        inference = spec.norm == "batch_norm_inference"
        if not inference:
            m, centred = centre(c, spec.centred, narrow)
            q = statistic(centred, spec, narrow)
        if mean is not None:
            centred = c - given(mean)[:, None]
        if variance is not None:
            q = given(variance)
        if rstd is not None:
            r = given(rstd)
        else:
            r = factor(q, spec, compute)
            r = round_to(r, narrow) if narrow else r
        xhat = centred * r[:, None]

        dy = to_rows(widen(dy, wide), spec)
        gain = gain_rows(scale, shape, spec, arithmetic, wide)
        g = dy if gain is None else dy * gain
        share_g = share_gx = None
        extent = wide(c.shape[1])
        if spec.centred and not inference:
            share_g = row_sum(g) / extent, row_sum(np.abs(g)) / extent
        if not inference:
            weight = coefficient(q, spec, compute) / wide(spec.divisor(c.shape[1]))
            share_gx = weight * row_sum(g * xhat), weight * row_sum(np.abs(g * xhat))
        dx, size = input_gradient(g, xhat, r, share_g, share_gx)
        if dsum is not None:
            dsum = to_rows(widen(dsum, wide), spec)
            dx, size = dx + dsum, size + np.abs(dsum)
        values = {"dx": gradient_value(spec, shape, dx, size, result, arithmetic)}
        if spec.affine_axes is not None or spec.norm != "instance_norm":
            values.update(parameter_gradients(spec, shape, dy, xhat, x_type, arithmetic,
                                              gradients))
        # Without the first, an infinity has made r NaN, and all that is computed with it.
        lost = not inference and spec.centred and mean is None and rstd is not None
        for value in values.values():
            value.nan_for_infinity = lost or np.isinf(r).any()
    return Values(spec, arithmetic, values)


def gradient_value(spec, shape, dx, size, result, arithmetic):
    """dx from rows; its errors are relative to the largest finite term of its row: where
    sums are given, an element that is not finite is alone in that."""
    size = np.where(np.isfinite(size), size, 0)
    size = np.broadcast_to(size.max(axis=1, keepdims=True, initial=0), dx.shape)
    back = [from_rows(np.ascontiguousarray(part), shape, spec) for part in (dx, size)]
    return Value(back[0], result, back[1], arithmetic)
