"""Worked examples of the norms of channels, groups and batches, and of the l2 norm; a
test's name carries the example's id."""

import numpy as np
import pytest
from norm.golden import STATISTICS, array, call, golden, layer, near, rms, same_bits
from norm.tools import ToolError, norm_opt
from norm.types import widen

RUNNING = ("y", "running_mean", "running_variance")


def batch(x, element="f32", axes=(0,), **rest):
    """A batch_norm_training call."""
    return call("batch_norm_training", x, element, axes, **rest)


def inference(x, element="f32", axes=(0,), **rest):
    return call("batch_norm_inference", x, element, axes, **rest)


def group(x, groups, channel=1, **rest):
    """A group_norm call over the channel and everything behind the batch."""
    axes = range(1, np.ndim(x))
    return call("group_norm", x, axes=axes, groups=groups, channel_axis=channel, **rest)


def column(*values):
    return np.array(values, np.float64)[:, None]


NCHW = np.random.default_rng(0).standard_normal((4, 3, 2, 5)) * 2 + 1
GAIN, BIAS = np.array([0.5, 1, 2]), np.array([-1, 0, 3])


def by_hand(x, axes, epsilon=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def channels(values):
    return np.asarray(values)[:, None, None]


@golden(batch(NCHW, axes=(0, 2, 3), scale=GAIN, shift=BIAS, results=STATISTICS),
        batch(NCHW.transpose(0, 2, 3, 1), axes=(0, 1, 2), scale=GAIN, shift=BIAS,
              results=STATISTICS))
def test_0_5_and_4_6_batch_norm_of_a_convolution(got):
    expected = by_hand(NCHW, (0, 2, 3)) * channels(GAIN) + channels(BIAS)
    near(got[0]["y"], expected)
    near(got[1]["y"].transpose(0, 3, 1, 2), expected)
    for results in got:
        near(results["mean"], NCHW.mean((0, 2, 3)))
        near(results["variance"], NCHW.var((0, 2, 3)))
        near(results["rstd"], 1 / np.sqrt(NCHW.var((0, 2, 3)) + 1e-5))


@golden(batch(column(0, 2, 10, 12)), batch(column(0, 2)), batch(column(10, 12)))
def test_0_7_each_worker_alone(got):
    """The same global batch of four, split 4 -> 2 + 2."""
    near(got[0]["y"], (column(0, 2, 10, 12) - 6) / np.sqrt(26 + 1e-5))
    for results in got[1:]:
        near(results["y"], column(-0.999995, 0.999995))


CHANGED = NCHW.copy()
CHANGED[3] += 4


@golden(group(np.repeat(NCHW, 2, 1), 3), group(np.repeat(CHANGED, 2, 1), 3),
        call("instance_norm", NCHW, axes=(2, 3)), call("instance_norm", CHANGED, axes=(2, 3)),
        batch(NCHW, axes=(0, 2, 3)), batch(CHANGED, axes=(0, 2, 3)))
def test_0_9_0_10_and_1_3_which_samples_a_result_depends_on(got):
    near(got[0]["y"], np.repeat(by_hand(NCHW, (2, 3)), 2, 1))
    near(got[2]["y"], by_hand(NCHW, (2, 3)))
    for one, other in (got[0:2], got[2:4]):
        same_bits(one["y"][:3], other["y"][:3])
    assert (got[4]["y"][:3] != got[5]["y"][:3]).all()


GROUPED = np.random.default_rng(1).standard_normal((2, 4, 3, 3)) + [[[[1]], [[2]], [[3]], [[4]]]]


@golden(group(GROUPED, 2, scale=[1, 2, 3, 4], results=("y", "mean", "rstd")),
        group(GROUPED.transpose(0, 2, 3, 1), 2, channel=3, scale=[1, 2, 3, 4]))
def test_4_6_group_norm_takes_channels_and_space_of_one_sample(got):
    split = GROUPED.reshape(2, 2, 2, 3, 3)
    expected = by_hand(split, (2, 3, 4)).reshape(GROUPED.shape) * channels([1, 2, 3, 4])
    near(got[0]["y"], expected)
    near(got[0]["mean"], split.mean((2, 3, 4)))
    near(got[1]["y"].transpose(0, 3, 1, 2), expected)


@golden(batch(NCHW.reshape(4, 3, 10), axes=(0, 2), results=("y", "mean")),
        batch(NCHW.reshape(4, 3, 10), axes=(0, 2), dynamic=(0, 2), results=("y", "mean")))
def test_2_7_length_belongs_to_the_batch(got):
    """[N, C, L]; and without tracking, evaluation is this op without running values."""
    for results in got:
        near(results["y"], by_hand(NCHW.reshape(4, 3, 10), (0, 2)))
        near(results["mean"], NCHW.mean((0, 2, 3)))
        assert set(results) == {"y", "mean"}


@golden(batch(column(1, 3), placement="none", momentum=1.0, running_mean=[0],
              running_variance=[1], results=RUNNING),
        inference(column(1, 3), placement="none", mean=[2], variance=[2]))
def test_2_8_training_and_inference_differ_on_one_batch(got):
    near(got[0]["y"], column(-1, 1), 0)
    near(got[0]["running_mean"], [2], 0)
    near(got[0]["running_variance"], [2], 0)
    near(got[1]["y"], column(-0.7071068, 0.7071068), 1e-7)


@golden(batch(column(0, 2, 10, 12), momentum=0.1, running_mean=[0], running_variance=[1],
              results=(*RUNNING, "variance")))
def test_2_9_two_denominators(got):
    near(got["variance"], [26])
    near(got["running_variance"], [0.9 + 0.1 * 104 / 3])


@golden(batch(column(0, 2, 10, 12), momentum=0.1, running_mean=[0], running_variance=[1],
              results=RUNNING),
        batch(column(0, 2), momentum=0.1, running_mean=[0], running_variance=[1],
              results=RUNNING),
        batch(column(10, 12), momentum=0.1, running_mean=[0.1], running_variance=[1.1],
              results=RUNNING))
def test_2_10_gradient_accumulation(got):
    """Two batches of two are not one of four; no rewrite may merge them."""
    for results, mean, variance in zip(got, (0.6, 0.1, 1.19), (4.3666667, 1.1, 1.19),
                                       strict=True):
        near(results["running_mean"], [mean], 1e-7)
        near(results["running_variance"], [variance], 1e-7)


@golden(batch(NCHW, axes=(0, 2, 3), momentum=0.1, running_mean=GAIN, running_variance=GAIN,
              results=RUNNING),
        batch(NCHW, axes=(0, 2, 3)))
def test_2_11_running_values_are_results(got):
    """With or without them y is the same."""
    same_bits(got[0]["y"], got[1]["y"])


def verified(shape, kind="batch_norm_training", axes="[0]", operands=""):
    return norm_opt(f"func.func @f(%x: tensor<{shape}xf32>, %s: tensor<3xf32>) {{\n"
                    f"  %y = norm.{kind} %x {operands} axes {axes} epsilon inside_sqrt 1.0e-5 "
                    f": tensor<{shape}xf32> -> tensor<{shape}xf32>\n  return\n}}\n")


def test_2_20_one_sample_is_no_batch():
    with pytest.raises(ToolError, match="1"):
        verified("1x3")
    assert "batch_norm_training" in verified("1x3x2", axes="[0, 2]")
    assert "batch_norm_training" in verified("?x3")
    assert "batch_norm_inference" in verified(
        "1x3", "batch_norm_inference", operands="mean(%s : tensor<3xf32>) "
        "variance(%s : tensor<3xf32>)")


@golden(inference([[5.0, 6, 7]], mean=[5, 5, 5], variance=[4, 4, 4], placement="none"),
        batch(np.arange(6.0).reshape(1, 3, 2), axes=(0, 2)))
def test_2_20_one_sample_in_inference_or_with_a_length(got):
    near(got[0]["y"], [[0, 0.5, 1]])
    near(got[1]["y"], [[[-0.99998, 0.99998]] * 3])


@golden(batch([[5.0, -7]], shift=[0.25, 3], dynamic=(0,), results=("y", "variance")),
        batch([[5.0, -7]], scale=[9, 9], shift=[0.25, 3], dynamic=(0,)))
def test_0_6_one_value_gives_the_shift(got):
    """A count of one known at run time only: v = 0 and y is the shift, exactly."""
    near(got[0]["y"], [[0.25, 3]], 0)
    near(got[1]["y"], [[0.25, 3]], 0)
    near(got[0]["variance"], [0, 0], 0)


TINY = array([1e-6, -1e-6])  # squares sum to 2e-12, their mean is 1e-12
L2_GAINS = dict(none=707106.78, inside_sqrt=316.2277, outside_sqrt=87610.0657,
                max_inside=316.2278, max_outside=100000.0)


def placed(kind, x, placement, **rest):
    epsilon = {} if placement == "none" else dict(epsilon=1e-5)
    return call(kind, x, placement=placement, results=("y", "rstd"), **epsilon, **rest)


@golden(*(placed("l2_norm", TINY, placement) for placement in L2_GAINS),
        *(placed("batch_norm_training", TINY[:, None], placement, axes=(0,))
          for placement in L2_GAINS))
def test_4_13_where_epsilon_goes(got):
    for results, gain in zip(got[:5], L2_GAINS.values(), strict=True):
        near(results["rstd"], gain, 1e-6)
        near(results["y"], widen(TINY) * gain, 1e-6)
    gains = (1e6, 316.2277502, 90909.09, 316.2278, 100000.0)
    for results, gain in zip(got[5:], gains, strict=True):
        near(results["rstd"], [gain], 1e-6)


@golden(call("l2_norm", [[3, 4], [0, 0], [-6, 8]], placement="max_outside", epsilon=1e-12),
        call("l2_norm", [[3, 4], [0, 0]], placement="none", results=("y", "variance", "rstd")),
        call("l2_norm", [[3, 4], [0, 0]], placement="none", zero_policy="zero",
             results=("y", "rstd")))
def test_D7_a_zero_column_of_an_l2_norm(got):
    near(got[0]["y"], [[0.6, 0.8], [0, 0], [-0.6, 0.8]])
    near(got[1]["variance"], [25, 0], 0)
    assert np.isnan(got[1]["y"][1]).all() and np.isinf(got[1]["rstd"][1])
    near(got[2]["y"], [[0.6, 0.8], [0, 0]])
    near(got[2]["rstd"], [0.2, 0])


MILLIONTHS = np.array([[[1e-6, -1e-6]]])


@golden(call("instance_norm", MILLIONTHS, "f64", (2,), placement="outside_sqrt", epsilon=1e-9),
        call("instance_norm", MILLIONTHS, "f64", (2,), epsilon=1e-9),
        call("instance_norm", MILLIONTHS, "f64", (2,), placement="none"))
def test_D1_three_readings_of_one_epsilon(got):
    for results, gain in zip(got, (999001, 31607, 1e6), strict=True):
        near(results["y"], MILLIONTHS * gain, 1e-6)


FAR = [40000.0, 40001, 40002, 40003]
FOUR = [-1.3416354, -0.4472118, 0.4472118, 1.3416354]


def column_of(values):
    return np.array(values)[:, None]


@golden(batch(column_of(FAR), results=STATISTICS),
        call("group_norm", [FAR], axes=(1,), groups=1, channel_axis=1, results=STATISTICS),
        call("instance_norm", [[FAR]], axes=(2,), results=STATISTICS),
        batch(column_of([1234.0] * 256), results=("y", "variance")),
        batch(column_of([4095.0, 4097]), results=("y", "variance")))
def test_D2_variance_is_not_a_difference_of_squares(got):
    for results in got[:3]:
        near(results["y"].reshape(4), FOUR, 1e-6)
        near(results["variance"].reshape(1), [1.25], 0)
        near(results["mean"].reshape(1), [40001.5], 0)
    assert not got[3]["variance"].any() and not got[3]["y"].any()
    near(got[4]["variance"], [1], 0)


@golden(batch(column(1, 3), momentum=0.1, running_mean=[100], running_variance=[9],
              results=("y", "variance", "rstd", "running_mean", "running_variance")))
def test_D3_training_uses_the_batch(got):
    near(got["y"], column(-0.999995, 0.999995))


@golden(layer([1, 5], results=STATISTICS), batch(column(1, 5), results=STATISTICS),
        rms([1, 7], epsilon=1e-5, results=("y", "variance", "rstd")))
def test_D4_and_D13_rstd_is_no_variance(got):
    for results, v in zip(got, (4, 4, 25), strict=True):
        near(np.ravel(results["variance"]), [v], 0)
        near(np.ravel(results["rstd"]), [1 / np.sqrt(v + 1e-5)])


@golden(call("instance_norm", NCHW, axes=(2, 3), dynamic=(0, 1, 2, 3), results=STATISTICS),
        call("group_norm", NCHW, axes=(1, 2, 3), groups=3, channel_axis=1,
             dynamic=(0, 1, 2, 3), results=STATISTICS),
        batch(NCHW, axes=(0, 2, 3), dynamic=(0, 1, 2, 3), results=STATISTICS))
def test_D5_counts_of_unknown_extents(got):
    for results in got[:2]:
        near(results["y"], by_hand(NCHW, (2, 3)))
        near(results["variance"], NCHW.var((2, 3)))
    near(got[2]["variance"], NCHW.var((0, 2, 3)))


@golden(rms([3e-10, 4e-10], "f64", placement="none"),
        rms([3e-10, 4e-10], "f64", epsilon=2.0**-23))
def test_D6_no_epsilon_is_no_epsilon(got):
    """And the default of another framework is written down by whoever means it."""
    near(got[0]["y"], np.array([3, 4]) / np.sqrt(12.5), 1e-12)
    near(got[1]["y"], np.array([3e-10, 4e-10]) / np.sqrt(2.0**-23), 1e-9)


def test_D8_group_norm_scales_channels():
    """[C], never [G]."""
    def scaled(extent):
        g = f"tensor<{extent}xf32>"
        return (f"func.func @f(%x: tensor<2x6x4xf32>, %g: {g}) {{\n  %y = norm.group_norm %x "
                f"scale(%g : {g}) groups 3 channel_axis 1 axes [1, 2] epsilon inside_sqrt "
                "1.0e-5 : tensor<2x6x4xf32> -> tensor<2x6x4xf32>\n  return\n}\n")
    assert "group_norm" in norm_opt(scaled(6))
    with pytest.raises(ToolError, match="6.*got.*3"):
        norm_opt(scaled(3))


@golden(rms([1, 7], epsilon=24.0), rms([101, 107], placement="none"))
def test_D12_the_root_is_of_mean_square_plus_epsilon(got):
    near(got[0]["y"], [1 / 7, 1])  # not 1/sqrt(5 + 24)
    near(got[1]["y"], np.array([101, 107]) / np.sqrt(10825))  # no mean of 0 assumed


WEIGHTS = dict(running_mean=np.array([1.0]), running_variance=np.array([1.0]), results=RUNNING)


@golden(batch(column(3, 5), "f64", momentum=0.1, **WEIGHTS),
        batch(column(3, 5), "f64", momentum=np.float32(0.1), **WEIGHTS),
        batch(column(3, 5), "f64", momentum=1 - float(np.float32(0.9)), **WEIGHTS))
def test_D14_momentum_weighs_what_is_new(got):
    near(got[0]["running_mean"], [0.9 + 0.1 * 4], 1e-15)
    near(got[1]["running_mean"], [1 + 3 * float(np.float32(0.1))], 1e-15)
    # 1 - 0.9f is not 0.1f.
    near(got[2]["running_mean"], [1 + 3 * (1 - float(np.float32(0.9)))], 1e-15)
    assert abs(got[1]["running_mean"] - got[2]["running_mean"]) > 1e-8


RUN = dict(momentum=0.1, running_mean=[0], running_variance=[1], results=RUNNING)


@golden(batch(column(0, 2, 10, 12), **RUN),
        batch(column(0, 2, 10, 12), running_correction=0, **RUN))
def test_D15_population_or_not(got):
    same_bits(got[0]["y"], got[1]["y"])
    near(got[0]["running_variance"], [0.9 + 3.4666667])
    near(got[1]["running_variance"], [0.9 + 2.6])


@golden(batch(TINY[:, None], momentum=1.0, running_correction=0, running_mean=[0],
              running_variance=[1], results=(*RUNNING, "variance")))
def test_D17_a_variance_is_not_recovered_from_its_root(got):
    """From 1/sqrt(v + 1e-5) in f32 it would be 1.8e-12."""
    near(got["running_variance"], [1e-12], 1e-6)
    near(got["variance"], [1e-12], 1e-6)


SAMPLE = np.random.default_rng(2).standard_normal((2, 3, 4)) * 3


@golden(call("group_norm", SAMPLE, axes=(1, 2), groups=1, channel_axis=1, scale=[1, 2, 3]),
        layer(SAMPLE, axes=[1, 2], scale=np.arange(12).reshape(3, 4)))
def test_D22_one_group_scales_channels_and_a_layer_everything(got):
    near(got[0]["y"], by_hand(SAMPLE, (1, 2)) * np.array([1, 2, 3])[:, None])
    near(got[1]["y"], by_hand(SAMPLE, (1, 2)) * np.arange(12).reshape(3, 4))


NARROW = np.random.default_rng(3).standard_normal((512, 8)) + 1


@golden(batch(NARROW, "bf16"), call("l2_norm", NARROW, "bf16"))
def test_D24_rstd_is_not_rounded_to_the_data(got):
    """That would err the same way along a whole row: a slope other than 1."""
    x = widen(array(NARROW, "bf16"))
    expected = (by_hand(x, 0), x / np.sqrt((x * x).sum(1, keepdims=True) + 1e-5))
    rounded = widen(array(1 / np.sqrt(x.var(0) + 1e-5), "bf16"))
    early = widen(array((x - x.mean(0)) * rounded, "bf16"))

    def slopes(actual, exact):
        return np.abs((actual * exact).sum(0) / (exact * exact).sum(0) - 1)
    for results, exact in zip(got, expected, strict=True):
        assert slopes(widen(results["y"]), exact).max() < 6e-4
    assert slopes(early, expected[0]).max() > 2e-3


@golden(batch(column(300, -400, 1000, 60000), "f16", results=("y", "variance")),
        call("l2_norm", [300, -400, 0, 0], "f16"))
def test_D25_squares_of_16_bit_values(got):
    x = widen(array(column(300, -400, 1000, 60000), "f16"))
    near(got[0]["y"], by_hand(x, 0), 1e-3)
    near(got[0]["variance"], x.var(0), 1e-6)
    near(got[1]["y"], [0.6, -0.8, 0, 0], 1e-3)


def test_D26_running_values_may_be_the_scale_too(tmp_path):
    """One constant is scale, shift and both running values: it stays what it is."""
    from norm.tools import norm_run
    module = """
func.func @main(%x: tensor<64x2xf32>, %v: tensor<2xf32>)
    -> (tensor<64x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<64x2xf32>) {
  %y, %m1, %v1 = norm.batch_norm_training %x scale(%v : tensor<2xf32>) shift(%v : tensor<2xf32>)
      running(%v, %v : tensor<2xf32>, tensor<2xf32>) axes [0] epsilon none momentum 0.5
      : tensor<64x2xf32> -> tensor<64x2xf32> running_mean(tensor<2xf32>)
        running_variance(tensor<2xf32>)
  %z = norm.batch_norm_inference %x mean(%v : tensor<2xf32>) variance(%v : tensor<2xf32>)
      axes [0] epsilon none : tensor<64x2xf32> -> tensor<64x2xf32>
  return %y, %m1, %v1, %z : tensor<64x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<64x2xf32>
}
"""
    x = (np.random.default_rng(4).standard_normal((64, 2)) * [2, 5] + 1).astype(np.float32)
    v = np.array([4, 9], np.float32)
    for target in ("cpu", "reference"):
        y, mean, variance, z = norm_run(tmp_path / target, module, [x, v], ["f32"] * 4, target)
        near(y.std(0), v)
        near(y.mean(0), v)
        near(mean, (v + widen(x).mean(0)) / 2)
        near(variance, (v + widen(x).var(0, ddof=1)) / 2)
        near(z, (widen(x) - v) / np.sqrt(v))


@golden(batch(column(0, 2, 10, 12), results=(*RUNNING, "variance"), momentum=1.0,
              running_mean=[7], running_variance=[7]),
        batch(column(0, 2, 10, 12), results=(*RUNNING, "variance"), momentum=1.0,
              running_correction=0, running_mean=[7], running_variance=[7]))
def test_D27_a_momentum_of_one_is_the_batch_with_its_correction(got):
    near(got[0]["running_variance"], [104 / 3])  # m/(m - 1) * v
    near(got[1]["running_variance"], [26])
    for results in got:
        near(results["variance"], [26])
        near(results["running_mean"], [6])
