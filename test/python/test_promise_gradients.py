"""The promise of gradients and of the algebra, against f32 emulations: right ones keep
it, wrong ones do not."""

from dataclasses import replace

import numpy as np
import pytest
from norm.promise import check
from norm.reference import (
    NormSpec,
    backward_moments,
    combine_moments,
    evaluate,
    evaluate_backward,
    moments,
    rstd,
    update_running,
)
from norm.types import BF16, cast, widen

f32 = np.float32


def blocked_sum(values, axis):
    """f32: chains of at most 64 additions, then the next level."""
    values = np.moveaxis(np.asarray(values, f32), axis, -1)
    while values.shape[-1] > 1:
        blocks = -(-values.shape[-1] // 64)
        padded = np.zeros((*values.shape[:-1], blocks * 64), f32)
        padded[..., :values.shape[-1]] = values
        padded = padded.reshape(*values.shape[:-1], blocks, 64)
        values = np.add.accumulate(padded, axis=-1, dtype=f32)[..., -1]
    return values[..., 0]


def emulate(x, dy, scale, epsilon=1e-5):
    """The backward of layer_norm in f32 arithmetic, statistics recomputed."""
    n = f32(x.shape[1])
    m = blocked_sum(x, 1) / n
    m = m + blocked_sum(x - m[:, None], 1) / n
    centred = x - m[:, None]
    delta = blocked_sum(centred, 1) / n
    q = np.maximum(blocked_sum(centred * centred, 1) - n * delta * delta, 0) / n
    r = (f32(1) / np.sqrt(q + f32(epsilon)))[:, None]
    xhat = (centred - delta[:, None]) * r
    g = dy * scale
    share_g, share_gx = blocked_sum(g, 1) / n, blocked_sum(g * xhat, 1) / n
    dx = r * (g - share_g[:, None] - xhat * share_gx[:, None])
    return dict(dx=dx, dscale=blocked_sum(dy * xhat, 0), dshift=blocked_sum(dy, 0))


def setting(rows, extent, ratio=0.0, seed=5):
    rng = np.random.default_rng(seed)
    x = (ratio + rng.standard_normal((rows, extent))).astype(f32)
    dy, scale = (rng.standard_normal(s).astype(f32) for s in ((rows, extent), extent))
    return x, dy, scale


SPEC = NormSpec(kind="layer_norm_backward", axes=(1,))


@pytest.mark.parametrize("ratio", [0, 1e3, 1e7])
@pytest.mark.parametrize("rows,extent", [(3, 5), (65, 129), (3, 4097), (4097, 3)])
def test_blocked_f32_keeps_it(rows, extent, ratio):
    x, dy, scale = setting(rows, extent, ratio)
    check(evaluate_backward(SPEC, dy, x, scale=scale), emulate(x, dy, scale))


def test_wrong_meaning_breaks_it():
    x, dy, scale = setting(6, 17)
    x *= f32(0.01)
    right = evaluate_backward(SPEC, dy, x, scale=scale)
    check(right, {"dx": right["dx"]})
    for change in (dict(correction=1), dict(placement="outside_sqrt"),
                   dict(placement="max_inside"), dict(epsilon=1.01e-5), dict(scale_offset=1e-4),
                   dict(kind="batch_norm_inference_backward")):
        wrong_spec = replace(SPEC, **change)
        given = {}
        if "kind" in change:
            saved = evaluate(NormSpec(kind="layer_norm", axes=(1,)), x)
            given = dict(mean=saved.mean, rstd=saved.rstd)
            wrong_spec = replace(wrong_spec, affine_axes=(1,))
        wrong = evaluate_backward(wrong_spec, dy, x, scale=scale, **given)
        with pytest.raises(AssertionError, match="dx: "):
            check(right, {"dx": wrong["dx"]})


@pytest.mark.parametrize("name", ["dx", "dscale", "dshift"])
def test_each_gradient_counts(name):
    x, dy, scale = setting(40, 30)
    right = evaluate_backward(SPEC, dy, x, scale=scale)
    got = emulate(x, dy, scale)
    got[name] = got[name] + np.abs(got[name]).max() * f32(1e-4)
    with pytest.raises(AssertionError, match=f"^{name}: "):
        check(right, got)


def test_long_chains_break_it():
    """One accumulator over 2^18 terms of one sign is not within the bound of blocked ones."""
    x, dy, _ = setting(1 << 18, 1)
    dy = np.abs(dy)
    spec = replace(SPEC, axes=(1,))
    right = evaluate_backward(spec, dy, x)
    check(right, {"dshift": blocked_sum(dy, 0)})
    chain = np.add.accumulate(dy, axis=0, dtype=f32)[-1]
    with pytest.raises(AssertionError, match="dshift"):
        check(right, {"dshift": chain})


def test_narrow_gradients_are_rounded_once():
    x, dy, scale = (cast(v, BF16) for v in setting(8, 64))
    right = evaluate_backward(SPEC, dy, x, scale=scale)
    check(right, {"dx": right["dx"], "dscale": right["dscale"]})
    early = widen(dy) * cast(widen(scale), BF16).astype(float)
    twice = evaluate_backward(SPEC, cast(early, BF16), x)
    with pytest.raises(AssertionError):
        check(right, {"dx": twice["dx"]})


def test_moments_for_an_exchange_are_better_than_f32():
    """m + delta of f32 data in f64; the rounded mean is not enough."""
    x, _, _ = setting(4, 257, 1e6)
    spec = NormSpec(kind="moments", axes=(1,), statistics="f64")
    right = moments(spec, x)
    m = blocked_sum(x, 1) / f32(257)
    centred = x - m[:, None]
    mean = widen(m) + widen(blocked_sum(centred, 1)) / 257
    check(right, {"mean": mean, "count": np.full(4, 257)})
    with pytest.raises(AssertionError, match="^mean: "):
        check(right, {"mean": widen(mean.astype(f32))})
    with pytest.raises(AssertionError, match="^count: 1 of 4"):
        check(right, {"count": np.array([257, 257, 256, 257])})
    with pytest.raises(AssertionError, match="count: expected dtype int64, got int32"):
        check(right, {"count": np.full(4, 257, np.int32)})


def test_mean_of_means_breaks_it():
    x, _, _ = setting(1, 12)
    parts = [moments(NormSpec(kind="moments", axes=(1,)), p) for p in np.split(x, [3], axis=1)]
    stacked = [np.stack([p[name] for p in parts]) for name in ("count", "m2", "mean")]
    right = combine_moments(NormSpec(kind="combine_moments"), *stacked)
    check(right, {name: right[name] for name in ("count", "m2", "mean")})
    for wrong in (dict(mean=stacked[2].mean(axis=0, dtype=f32)), dict(m2=stacked[1].sum(axis=0))):
        with pytest.raises(AssertionError):
            check(right, wrong)


def test_small_ops():
    count = np.array([3, 9])
    right = rstd(NormSpec(kind="rstd"), f32([2, 5]), count)
    check(right, {"rstd": f32(1) / np.sqrt(f32([2, 5]) / f32([3, 9]) + f32(1e-5))})
    with pytest.raises(AssertionError):
        check(right, {"rstd": f32(1) / np.sqrt(f32([2, 5]) / f32([2, 8]) + f32(1e-5))})
    spec = NormSpec(kind="update_running", statistic="variance", momentum=0.1)
    right = update_running(spec, f32([1, 2]), f32([2, 5]), count)
    old, new = f32([1, 2]), f32([2, 5])
    check(right, {"updated": f32(0.9) * old + f32(0.1) * (new / f32([2, 8]))})
    with pytest.raises(AssertionError):
        check(right, {"updated": f32(0.9) * old + f32(0.1) * (new / f32([3, 9]))})


def test_sums_of_gradients():
    x, dy, scale = setting(5, 300)
    spec = NormSpec(kind="backward_moments", axes=(1,))
    r = np.ones(5, f32)
    right = backward_moments(spec, dy, x, r, scale=scale)
    check(right, {"sum_g": blocked_sum(dy * scale, 1), "sum_gx": blocked_sum(dy * scale * x, 1)})
    with pytest.raises(AssertionError):
        check(right, {"sum_g": blocked_sum(dy, 1)})


def test_running_values_of_batch_norm():
    x, _, _ = setting(40, 3)
    old = f32([0.5, 1, 2])
    spec = NormSpec(kind="batch_norm_training", axes=(0,), momentum=0.1)
    right = evaluate(spec, x, running_mean=old, running_variance=old)
    mean, variance = x.mean(0, dtype=np.float64), x.var(0, ddof=1, dtype=np.float64)
    check(right, {"running_mean": (0.9 * old + 0.1 * mean).astype(f32),
                  "running_variance": (0.9 * old + 0.1 * variance).astype(f32)})
    for wrong in (dict(running_correction=0), dict(momentum=0.9)):
        other = evaluate(replace(spec, **wrong), x, running_mean=old, running_variance=old)
        with pytest.raises(AssertionError, match="running_variance"):
            check(right, {"running_variance": other.running_variance})


def test_an_infinity_decides_its_own_column_only():
    x, dy, _ = setting(6, 9)
    x[2, 4] = np.inf
    right = evaluate_backward(NormSpec(kind="rms_norm_backward", axes=(1,)), dy, x)
    assert np.isnan(right["dscale"][4]) and np.isfinite(np.delete(right["dscale"], 4)).all()
    check(right, {"dscale": np.nextafter(right["dscale"], f32(9))})
    with pytest.raises(AssertionError, match="dscale"):
        check(right, {"dscale": right["dscale"] * f32(1.001)})
