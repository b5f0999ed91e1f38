"""The algebra of statistics, as the oracle has it: its parts put together are the named
ops, however rows are split, masked or left empty."""

import itertools

import numpy as np
import pytest
from norm.reference import (
    NormSpec,
    backward_moments,
    backward_normalize,
    combine_moments,
    evaluate,
    evaluate_backward,
    moments,
    normalize,
    rstd,
    update_running,
)
from norm.types import BF16, F32, cast, widen

PLACEMENTS = ("inside_sqrt", "outside_sqrt", "max_inside", "max_outside", "none")
CENTRED = {"layer_norm": True, "rms_norm": False, "l2_norm": False}


def near(actual, expected, tolerance=1e-13):
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    size = np.abs(widen(expected)).max(initial=1e-300)
    error = np.abs(widen(actual) - widen(expected)).max(initial=0)
    assert error <= tolerance * size, (actual, expected)


def data(shape, mean=0.5, seed=1):
    return mean + np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("kind,placement", [*itertools.product(CENTRED, PLACEMENTS)])
@pytest.mark.parametrize("correction", [0, 1])
def test_named_ops_in_parts(kind, placement, correction):
    """moments, rstd and normalize are a norm; the two backward ops its gradient."""
    centred = CENTRED[kind]
    correction = correction if centred else 0
    x, dy, scale = data((6, 5)), data((6, 5), 0, 2), data((5,), 1, 3)
    shared = dict(epsilon=1.5, placement=placement, correction=correction)
    affine = dict(axes=(1,), scale_offset=0.5)
    named = NormSpec(kind=kind, **shared, **affine)
    expected = evaluate(named, x, scale=scale, shift=scale)
    parts = moments(NormSpec(kind="moments", axes=(1,), about="mean" if centred else "zero"), x)
    count = None if kind == "l2_norm" else parts["count"]
    factors = rstd(NormSpec(kind="rstd", **shared), parts["m2"], count)
    mean = parts["mean"] if centred else None
    y = normalize(NormSpec(kind="normalize", **affine), x, factors["rstd"], mean, scale, scale)
    near(factors["rstd"], expected.rstd)
    near(factors["variance"], expected.variance)
    near(y.y, expected.y)

    expected = evaluate_backward(NormSpec(kind=f"{kind}_backward", **shared, **affine), dy, x,
                                 scale=scale)
    sums = backward_moments(NormSpec(kind="backward_moments", **affine), dy, x, factors["rstd"],
                            mean, scale)
    dx = backward_normalize(
        NormSpec(kind="backward_normalize", **shared, **affine), dy, x, factors["rstd"],
        sums["sum_gx"], count, mean, scale, factors["variance"],
        sums["sum_g"] if centred else None)
    near(dx["dx"], expected["dx"], 1e-12)
    near(sums["dscale"], expected["dscale"])
    near(sums["dshift"], expected["dshift"])


@pytest.mark.parametrize("mean", [0.0, 1e7])
@pytest.mark.parametrize("cuts", [(5, 5), (0, 3), (1, 4), (2, 9), (4, 4), (0, 0), (9, 9)])
def test_merged_parts_are_the_whole(cuts, mean):
    """Ragged and empty parts, in any order."""
    x = data((3, 9), mean)
    spec = NormSpec(kind="moments", axes=(1,))
    whole = moments(spec, x)
    pieces = [moments(spec, part) for part in np.split(x, cuts, axis=1)]
    for order in itertools.permutations(pieces):
        merged = combine_moments(NormSpec(kind="combine_moments"),
                                 *(np.stack([p[name] for p in order])
                                   for name in ("count", "m2", "mean")))
        assert np.array_equal(merged["count"], whole["count"])
        near(merged["mean"], whole["mean"], 1e-15)
        near(merged["m2"], whole["m2"], 1e-12 if not mean else 1e-8)


def test_merged_sums_of_squares():
    x = data((3, 9))
    spec = NormSpec(kind="moments", axes=(1,), about="zero")
    pieces = [moments(spec, part) for part in np.split(x, (2, 2, 7), axis=1)]
    merged = combine_moments(NormSpec(kind="combine_moments"),
                             *(np.stack([p[name] for p in pieces]) for name in ("count", "m2")))
    near(merged["m2"], (x * x).sum(1), 1e-15)
    assert "mean" not in merged.values


def test_unequal_counts_D16():
    """[0, 2] and [10, 12, 14]: the mean of the means, 6.5, is not the mean."""
    parts = [moments(NormSpec(kind="moments", axes=(0,)), np.array(v))
             for v in ([0.0, 2], [10.0, 12, 14])]
    merged = combine_moments(NormSpec(kind="combine_moments"),
                             *(np.stack([p[name] for p in parts])
                               for name in ("count", "m2", "mean")))
    near(merged["mean"], 7.6, 1e-15)
    near(merged["m2"] / 5, 31.04, 1e-15)
    assert merged["count"] == 5


@pytest.mark.parametrize("about", ["mean", "zero"])
def test_masks_are_compaction(about):
    """Also with NaN, infinities and huge values behind the mask, and nothing before it."""
    rng = np.random.default_rng(4)
    x, dy, mask = data((5, 12)), data((5, 12), 0, 5), rng.random((5, 12)) < 0.7
    mask[0], mask[1] = False, True
    x[~mask] = rng.choice([np.nan, np.inf, 1e300, 0], (~mask).sum())
    dy[~mask] = np.nan
    centred = about == "mean"
    spec = NormSpec(kind="moments", axes=(1,), about=about)
    got = moments(spec, x, mask)
    factors = rstd(NormSpec(kind="rstd"), got["m2"], got["count"])
    means = (got["mean"],) if centred else (None,)
    sums = backward_moments(NormSpec(kind="backward_moments", axes=(1,)), dy, x,
                            factors["rstd"], *means, mask=mask)
    dx = backward_normalize(NormSpec(kind="backward_normalize", axes=(1,)), dy, x,
                            factors["rstd"], sums["sum_gx"], got["count"], *means,
                            sum_g=sums["sum_g"] if centred else None, mask=mask)["dx"]
    assert not dx[~mask].any() and np.isfinite(dx).all()
    kind = "layer_norm" if centred else "rms_norm"
    for row in range(5):
        kept = mask[row]
        whole = moments(spec, x[row, kept][None])
        for name in whole.values:
            near(got[name][row:row + 1], whole[name], 1e-15)
        expected = evaluate_backward(NormSpec(kind=f"{kind}_backward", axes=(1,)),
                                     dy[row, kept][None], x[row, kept][None])
        near(dx[row, kept][None], expected["dx"], 1e-13)
    assert np.isfinite(sums["dscale"]).all() and np.isfinite(sums["dshift"]).all()


def test_empty_moments():
    got = moments(NormSpec(kind="moments", axes=(1,)), np.zeros((3, 0), np.float32))
    for name in ("count", "mean", "m2"):
        assert got[name].shape == (3,) and not got[name].any()
    factors = rstd(NormSpec(kind="rstd", epsilon=0.25), got["m2"], got["count"])
    assert (factors["rstd"] == 2).all() and not factors["variance"].any()


def test_too_few_for_the_correction():
    one = rstd(NormSpec(kind="rstd", correction=1), np.array([1.0, 0, 4]), np.array([1, 0, 3]))
    assert np.array_equal(one["variance"], [np.nan, 0, 2], equal_nan=True)


def test_types_of_moments():
    """f64 results keep what f32 cannot: m + delta."""
    x = (1e7 + np.arange(9) % 2).astype(np.float32)[None]
    narrow = moments(NormSpec(kind="moments", axes=(1,)), x)
    wide = moments(NormSpec(kind="moments", axes=(1,), statistics="f64"), x)
    assert narrow["mean"].dtype == np.float32 and wide["m2"].dtype == np.float64
    assert narrow["mean"] != wide["mean"] and wide["mean"] == 1e7 + 4 / 9
    assert wide["count"].dtype == np.int64
    y = normalize(NormSpec(kind="normalize", axes=(1,)), x, np.ones(1, np.float32), wide["mean"])
    near(y.y[0, :2], np.float32([-4 / 9, 5 / 9]), 1e-7)


def test_running_values_2_10():
    """One batch of four, or two of two: not the same."""
    def step(old, batch):
        parts = moments(NormSpec(kind="moments", axes=(0,)), np.array(batch))
        return tuple(update_running(
            NormSpec(kind="update_running", statistic=statistic, momentum=0.1),
            value, parts[new], parts["count"])["updated"]
            for statistic, new, value in zip(("mean", "variance"), ("mean", "m2"), old,
                                             strict=True))
    start = (np.array(0.0), np.array(1.0))
    near(np.array(step(start, [0.0, 2, 10, 12])), [0.6, 4.3666667], 1e-8)
    first = step(start, [0.0, 2])
    near(np.array(first), [0.1, 1.1], 1e-15)
    near(np.array(step(first, [10.0, 12])), [1.19, 1.19], 1e-15)


def test_running_values_of_nothing_and_of_one():
    old, new = np.array([3.0, 3, 3]), np.array([8.0, 8, 8])
    spec = dict(kind="update_running", momentum=0.25)
    count = np.array([0, 1, 3])
    mean = update_running(NormSpec(**spec), old, new, count)["updated"]
    assert np.array_equal(mean, [3, 4.25, 4.25])
    for correction, expected in ((1, [3, np.nan, 3.25]), (0, [3, 4.25, 0.75 * 3 + 2 / 3])):
        variance = update_running(
            NormSpec(statistic="variance", running_correction=correction, **spec), old, new,
            count)["updated"]
        assert np.allclose(variance, expected, equal_nan=True, rtol=1e-15)
    by_operand = update_running(NormSpec(kind="update_running"), old, new, count, 0.25)["updated"]
    assert np.array_equal(by_operand, mean)


def test_batch_norm_is_its_parts():
    """Training: y, statistics and running values; inference: normalize with given ones."""
    x = data((4, 3, 5))
    old = data((3,), 0, 6), data((3,), 2, 7) ** 2
    spec = NormSpec(kind="batch_norm_training", axes=(0, 2), momentum=0.1)
    got = evaluate(spec, x, running_mean=old[0], running_variance=old[1])
    parts = moments(NormSpec(kind="moments", axes=(0, 2)), x)
    for name, statistic, value, new in (("running_mean", "mean", old[0], "mean"),
                                        ("running_variance", "variance", old[1], "m2")):
        expected = update_running(
            NormSpec(kind="update_running", statistic=statistic, momentum=0.1),
            value, parts[new], parts["count"])["updated"]
        near(getattr(got, name), expected, 1e-15)
    near(got.running_variance, 0.9 * old[1] + 0.1 * x.var(axis=(0, 2), ddof=1), 1e-14)
    inference = evaluate(NormSpec(kind="batch_norm_inference", axes=(0, 2)), x, mean=old[0],
                         variance=old[1])
    expected = (x - old[0][:, None]) / np.sqrt(old[1][:, None] + 1e-5)
    near(inference.y, expected, 1e-15)


def test_batch_norm_counts_of_none_and_one():
    spec = NormSpec(kind="batch_norm_training", axes=(0,), momentum=0.5)
    old = np.float32([2.0]), np.float32([4.0])
    none = evaluate(spec, np.zeros((0, 1), np.float32), running_mean=old[0],
                    running_variance=old[1])
    assert none.running_mean == 2 and none.running_variance == 4
    one = evaluate(spec, np.float32([[6.0]]), running_mean=old[0], running_variance=old[1])
    assert one.running_mean == 4 and np.isnan(one.running_variance) and one.y == 0


def test_group_norm_is_layer_norm_of_groups():
    x, scale, shift = data((2, 6, 4)), data((6,), 1, 8), data((6,), 0, 9)
    got = evaluate(NormSpec(kind="group_norm", axes=(1, 2), groups=3, channel_axis=1), x,
                   scale=scale, shift=shift)
    split = evaluate(NormSpec(kind="layer_norm", axes=(2, 3)), x.reshape(2, 3, 2, 4))
    near(got.y, split.y.reshape(x.shape) * scale[:, None] + shift[:, None], 1e-15)
    assert got.mean.shape == (2, 3) and np.array_equal(got.rstd, split.rstd)
    # Channel last; all axes but one of two kept ones.
    last = evaluate(NormSpec(kind="group_norm", axes=(1, -1), groups=3, channel_axis=-1),
                    x.transpose(0, 2, 1), scale=scale, shift=shift)
    near(last.y.transpose(0, 2, 1), got.y, 1e-15)
    assert np.array_equal(last.mean, got.mean)
    first = evaluate(NormSpec(kind="group_norm", axes=(0, 2), groups=2, channel_axis=0), x)
    near(first.mean, x.mean(axis=2), 1e-15)


def test_instance_and_l2():
    x, scale = data((2, 3, 7)), data((3,), 1, 2)
    got = evaluate(NormSpec(kind="instance_norm", axes=(2,), affine_axes=(1,)), x, scale=scale)
    expected = evaluate(NormSpec(kind="layer_norm", axes=(2,)), x)
    near(got.y, expected.y * scale[:, None], 1e-15)
    l2 = evaluate(NormSpec(kind="l2_norm", axes=(2,), placement="max_outside", epsilon=1e-12), x)
    near(l2.y, x / np.sqrt((x * x).sum(2, keepdims=True)), 1e-15)
    assert l2.mean is None and np.allclose(l2.variance, (x * x).sum(2))


def test_narrow_data_and_sums():
    x = cast(data((4, 8)), BF16)
    got = moments(NormSpec(kind="moments", axes=(1,)), x)
    assert got.compute == F32 and np.allclose(got["mean"], widen(x).mean(1), rtol=1e-7)
