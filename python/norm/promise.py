"""The error promise of the compiled code, as limits around the oracle's values.

With e = ULPS ulps, of compute type, of B = max over the row of
|xhat * (scale + offset)| + |shift|:

    y          the rounding, to its type, of a value within e of the exact one.
               For f16 and bf16 that is at most one step from the rounded exact
               value, plus e; for f32 and f64, e.
    y, affine_in result
               exactly steps 6b and 7 of the contract applied to some xhat within
               ULPS ulps of max |xhat|: only the first rounding may go either way.
    mean       within 4 ulps of max |c| over the row
    variance   within 2 * ULPS ulps, relative to itself (twice rstd's)
    rstd       within ULPS ulps, relative to itself
    sum        exact: one addition, rounded once
    running_mean, running_variance
               the rounding of a value within 4 ulps of the larger of its two terms
               (1 - a) * old and a * new, and a times what mean (variance) may be off

    ULPS       f32  8 on random rows, 32 on any row     f64  64

Where `norm-lower-to-linalg` leaves the order of sums to its consumer (path "linalg"),
ULPS is 32 on random rows too, and the mean is within ULPS ulps.

It is the same for all seven norms, and for `norm.normalize`; with given statistics
(there and in `norm.batch_norm_inference`) B is that of the element alone.

Backward results are the roundings of values within ULPS ulps of the sizes of their
terms:

    dx         max over the row of |r| * (|g| + sum|g|/n + |xhat|*coef*sum|g xhat|/(n-k)),
               without the terms that the op does not have, + |dsum|
    dscale     sum over what is summed of |dy| * max|xhat| of the row: the error of xhat
               is relative to that maximum, so that of each term is too.
               `affine_in result` adds what rounding xhat the other way at a tie changes
    dshift     sum of |dy|

The statistics algebra:

    count      exact
    mean       as above; in f64 beside f32 data it is m + delta: within ULPS ulps *of
               f32* of max |c - mean| + 8 ulps of max |c|, far better than a rounded mean
    m2         2 * ULPS ulps, relative to itself
    merged     mean within 4 ulps of the largest mean of a part; m2 as above, and what
               a mean that is 8 such ulps off adds
    rstd       8 ulps, its variance 4, relative to themselves
    updated    8 ulps of the larger of its two terms
    sum_g, sum_gx
               ULPS ulps of sum|g|, and of that times max|xhat| of the row

A narrow compute type (f16, bf16) rounds each step once, so each step is the
rounding of a value within ULPS ulps *of f32* of the step's formula applied to
what the previous step gave. Next to a tie that can go either way; the limits
follow both ways through all later steps, and allow nothing more.

Rows that are not finite (an infinity or a NaN went in) have no ulp: there the
oracle's value itself is required, NaN for NaN. Only the mean of a row with an
infinity may be NaN, and the running mean with it: it is m + delta, and delta is
inf - inf. So may gradients of such a row where rstd is given and the mean is not, and where r is
infinite.
"""

from dataclasses import dataclass

import numpy as np

from norm.reference import Values, affine_steps, factor, from_rows, row_sum
from norm.types import F32, F64, cast, round_to, ulp, widen

# Ops whose only results besides a sum are of x's shape.
GIVEN_STATISTICS = ("batch_norm_inference", "normalize")
ULPS_RANDOM = 8
ULPS_ANY = 32
ULPS_F64 = 64
ULPS_MEAN = 4
# The reference pipeline computes in f64 and rounds where the contract rounds. What
# is left is whether scale, offset and shift are rounded to compute type first.
ULPS_REFERENCE = 2


def ulps_for(reference, rows="random", path="cpu"):
    """ULPS of the table above. rows: "random" or "any"; path: "cpu", "linalg"
    (whose order of summation is the consumer's) or "reference"."""
    if reference.compute == F64:
        return ULPS_F64
    if path == "reference":
        return ULPS_REFERENCE
    return ULPS_RANDOM if rows == "random" and path == "cpu" else ULPS_ANY


@dataclass
class Limits:
    """Inclusive limits of one result, rounded to the result's type."""

    expected: np.ndarray
    low: np.ndarray
    high: np.ndarray
    unit: np.ndarray  # what errors are counted in: one ulp of B and the like
    nan_for_infinity: bool = False

    def violations(self, actual):
        """A boolean array: where `actual` lies outside."""
        actual, expected = widen(actual), widen(self.expected)
        low, high = widen(self.low), widen(self.high)
        with np.errstate(invalid="ignore"):
            inside = (actual >= low) & (actual <= high)
        fixed = ~np.isfinite(low) & ~np.isfinite(high)
        same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        if self.nan_for_infinity:
            same |= np.isnan(actual) & np.isinf(expected)
        return ~np.where(fixed, same, inside)


def _limits(exact, slack, unit, target, shape=None):
    """exact +- slack, wide, rounded to `target`. Where the slack is not finite
    the exact value is the only one."""
    with np.errstate(all="ignore"):
        slack = np.where(np.isfinite(slack) & np.isfinite(exact), slack, 0)
        parts = [cast(exact, target), cast(exact - slack, target),
                 cast(exact + slack, target)]
    parts.append(np.broadcast_to(unit, exact.shape))
    return Limits(*(p if shape is None else p.reshape(shape) for p in parts))


def _row_maximum(ref, rows):
    """[R, 1]; of given statistics, where elements have nothing to do with each other,
    the rows as they are."""
    if ref.spec.kind in GIVEN_STATISTICS:
        return rows
    return rows.max(axis=1, keepdims=True, initial=0)


def _bound(ref, xhat):
    """B of each row, [R, 1] or [R, n]."""
    with np.errstate(all="ignore"):
        terms = np.abs(xhat if ref.rows_gain is None else xhat * ref.rows_gain)
        if ref.rows_shift is not None:
            terms = terms + np.abs(ref.rows_shift)
    return _row_maximum(ref, terms)


def _y_limits(ref, ulps):
    if ref.spec.affine_in == "result":
        unit = ulp(_row_maximum(ref, np.abs(ref.rows_xhat)), ref.compute)
        slack = np.where(np.isfinite(unit), ulps * unit, 0)
        low, high = _affine_interval(ref, ref.rows_xhat - slack, ref.rows_xhat + slack)
        return _interval(ref.rows_y, low, high, unit, ref.result)
    unit = ulp(_bound(ref, ref.rows_xhat), ref.compute)
    return _limits(ref.rows_y, ulps * unit, unit, ref.result)


def _affine_interval(ref, low, high):
    """Step 7 of both ends; it is monotone in xhat for a gain of either sign."""
    ends = [affine_steps(end, ref.rows_gain, ref.rows_shift, ref.spec, ref.compute,
                         ref.result, ref.x_type) for end in (low, high)]
    return np.minimum(*ends), np.maximum(*ends)


def _interval(exact, low, high, unit, target):
    return Limits(cast(exact, target), cast(low, target), cast(high, target),
                  np.broadcast_to(unit, exact.shape))


def limits(ref, ulps, path="cpu"):
    """The `Limits` of each result that exists, by name."""
    consumers_order = path == "linalg"
    if isinstance(ref, Values):
        return {name: _value_limits(value, ulps, capped=name != "mean" or not consumers_order)
                for name, value in ref.values.items()}
    if ref.compute.precision < F32.precision:
        return _narrow_limits(ref, ulps)
    compute = ref.compute
    found = {"y": _y_limits(ref, ulps)}
    if ref.spec.kind in GIVEN_STATISTICS:
        return _finish(ref, found)
    kept = ref.variance.shape
    mean_ulps = ulps if consumers_order else min(ulps, ULPS_MEAN)
    mean_unit = ulp(np.abs(ref.rows_c).max(axis=1, initial=0), compute)
    if ref.mean is not None:
        found["mean"] = _limits(ref.row_mean, mean_ulps * mean_unit, mean_unit, compute, kept)
    for name, values, count in (("variance", ref.row_variance, 2 * ulps),
                                ("rstd", ref.row_rstd, ulps)):
        unit = _relative_unit(values, compute)
        found[name] = _limits(values, count * unit, unit, compute, kept)
    off = {"running_mean": mean_ulps * mean_unit,
           "running_variance": 2 * ulps * _relative_unit(ref.row_variance, compute)}
    for name, value in ref.running.items():
        found[name] = _running_limits(value, off[name], compute, kept)
    return _finish(ref, found)


def _relative_unit(values, compute):
    return np.maximum(np.abs(values) * compute.eps, ulp(np.zeros_like(values), compute))


def _running_limits(value, off, compute, kept):
    """off: how far what is new may be off, before it is weighed; [kept elements]."""
    with np.errstate(all="ignore"):
        unit = ulp(np.maximum(np.abs(value.old), np.abs(value.new)), compute)
        slack = ULPS_MEAN * unit + value.weight * off
    return _limits(value.exact, slack, unit, value.type, kept)


def _value_limits(value, ulps, capped):
    """The limits that a `Value` states for itself."""
    if value.type is None:
        exact = value.rounded()
        return Limits(exact, exact, exact, np.ones(exact.shape))
    with np.errstate(all="ignore"):
        unit = np.maximum(value.size * value.arithmetic.eps,
                          ulp(np.zeros_like(value.size), value.arithmetic))
        most = value.cap if capped else np.inf
        slack = min(value.factor * ulps, most) * unit + value.extra
    found = _limits(value.exact, slack, unit, value.type)
    found.nan_for_infinity = value.nan_for_infinity
    return found


def _finish(ref, found):
    """y back in x's shape, and the sum, which has no slack."""
    for name in {"mean", "running_mean"} & found.keys():
        found[name].nan_for_infinity = True
    y = found["y"]
    found["y"] = Limits(*(from_rows(np.ascontiguousarray(part), ref.shape, ref.spec)
                          for part in (y.expected, y.low, y.high, y.unit)))
    if ref.sum is not None:
        found["sum"] = Limits(ref.sum, ref.sum, ref.sum, np.ones(ref.shape))
    return found


def _narrow_limits(ref, ulps):
    """The limits where every step rounds to f16 or bf16: both ways past a tie."""
    spec, compute, c = ref.spec, ref.compute, ref.rows_c
    extent = c.shape[1]
    wide = c.dtype.type

    def near(low, high, scale=None):
        """[low, high] widened by the slack of f32 arithmetic and rounded."""
        size = np.maximum(np.abs(low), np.abs(high)) if scale is None else scale
        slack = np.where(np.isfinite(size), ulps * ulp(size, F32), 0)
        return round_to(low - slack, compute), round_to(high + slack, compute)

    with np.errstate(all="ignore"):
        means = [ref.row_mean] * 2
        given = spec.kind in GIVEN_STATISTICS
        if spec.centred and extent and not given:
            exact = row_sum(c) / wide(extent)
            means = near(exact, exact, np.abs(c).max(axis=1, initial=0))
        statistics = [ref.row_variance] * 2
        if extent and not given:
            ends = [row_sum((c - m[:, None]) ** 2) / wide(spec.divisor(extent))
                    for m in means]
            statistics = near(np.minimum(*ends), np.maximum(*ends))
        # r falls as q grows.
        r = near(factor(statistics[1], spec, compute), factor(statistics[0], spec, compute))
        ends = [(c - m[:, None]) * f[:, None] for m in means for f in r]
        xhat = near(np.minimum.reduce(ends), np.maximum.reduce(ends))
        y = _affine_interval(ref, *xhat)
    kept = ref.spec.kept_shape(ref.shape)
    found = {"y": _interval(ref.rows_y, *y, ulp(_bound(ref, ref.rows_xhat), compute),
                            ref.result)}
    for name, exact, ends in (("mean", ref.row_mean, means),
                              ("variance", ref.row_variance, statistics),
                              ("rstd", ref.row_rstd, r)):
        one = _interval(exact, *ends, ulp(np.abs(exact), compute), compute)
        found[name] = Limits(*(part.reshape(kept) for part in
                               (one.expected, one.low, one.high, one.unit)))
    if ref.mean is None:
        del found["mean"]
    for name, value in ref.running.items():
        off = ULPS_MEAN * ulp(ref.row_mean if name == "running_mean" else ref.row_variance, compute)
        found[name] = _running_limits(value, off, compute, kept)
    return _finish(ref, found)


def explain(name, limit, actual):
    """One line on the worst violation, or None if there is none."""
    actual = np.asarray(actual)
    if actual.shape != limit.expected.shape:
        return f"{name}: expected shape {limit.expected.shape}, got {actual.shape}"
    if actual.dtype != limit.expected.dtype:
        return f"{name}: expected dtype {limit.expected.dtype}, got {actual.dtype}"
    wrong = limit.violations(actual)
    if not wrong.any():
        return None
    with np.errstate(all="ignore"):
        error = np.abs(widen(actual) - widen(limit.expected))
        units = error / widen(limit.unit)
        units = np.where(wrong, np.where(np.isnan(units), np.inf, units), -1)
    at = np.unravel_index(np.argmax(units), units.shape)
    return (f"{name}: {int(wrong.sum())} of {wrong.size} outside the promise; worst at "
            f"[{', '.join(str(int(i)) for i in at)}]: expected {widen(limit.expected)[at]:.9g} "
            f"({widen(limit.low)[at]:.9g} to {widen(limit.high)[at]:.9g}), got "
            f"{widen(actual)[at]:.9g}, {units[at]:.3g} units off")


def check(ref, results, rows="random", path="cpu", ulps=None):
    """Raises AssertionError unless every array in `results` (a dict of "y",
    "mean", "variance", "rstd", "sum") keeps the promise around `ref`."""
    found = limits(ref, ulps_for(ref, rows, path) if ulps is None else ulps, path)
    problems = [explain(name, found[name], actual) for name, actual in results.items()]
    problems = [problem for problem in problems if problem]
    assert not problems, "\n".join(problems)
