"""Worked examples with their numbers; a test's name carries the example's id."""

import numpy as np
import pytest
from norm.golden import STATISTICS, array, golden, layer, near, rms, same_bits
from norm.types import widen

ROWS = [[10, 12], [100, 102], [1000, 1002]]


@golden(layer(ROWS, "f64", placement="none"), layer(ROWS, placement="none"),
        layer(ROWS, "bf16", placement="none"), layer(ROWS, "f16", placement="none"),
        layer(ROWS, "f64"), layer([12, 10], "f64", placement="none"))
def test_0_1_pattern_without_place_and_size(got):
    # bf16 holds 100 and 1000 but not 102 or 1002: its rows are [10, 12], [100, 102]
    # and [1000, 1000].
    for number, tolerance in ((0, 1e-12), (1, 2e-7), (3, 0)):
        near(got[number]["y"], [[-1, 1]] * 3, tolerance)
    near(got[2]["y"][0], [-1, 1], 0)
    near(got[4]["y"], [[-0.999995, 0.999995]] * 3, 1e-7)
    near(got[5]["y"], [1, -1], 1e-12)


@golden(layer([[1, 2, 3, 4]], scale=[0.2] * 4, shift=[7] * 4, placement="none"))
def test_0_2_wanted_deviation_and_mean(got):
    near(got["y"].std(), 0.2)
    near(got["y"].mean(), 7)


@golden(layer([1, 3], results=STATISTICS, placement="none"), rms([1, 3], placement="none"),
        rms([1, 3], results=("y", "variance")))
def test_0_12_two_elements(got):
    near(got[0]["y"], [-1, 1])
    near(got[0]["mean"], 2, 0)
    near(got[0]["variance"], 1, 0)
    near(got[1]["y"], [0.4472136, 1.3416408])
    near(got[2]["variance"], 5, 0)


@golden(layer([[1, 2, 3], [4, 5, 9]]), layer([[1, 2, 3], [-70, 0.5, 1e6]]),
        rms([[1, 2, 3], [4, 5, 9]]), rms([[1, 2, 3], [-70, 0.5, 1e6]]))
def test_1_3_rows_depend_on_themselves_alone(got):
    same_bits(got[0]["y"][0], got[1]["y"][0])
    same_bits(got[2]["y"][0], got[3]["y"][0])


@golden(layer([2, 4, -1, 3], "f64", results=STATISTICS, placement="none"),
        layer([2, 4, -1, 3], results=STATISTICS, placement="none"))
def test_1_6_walkthrough(got):
    for results, tolerance in zip(got, (5e-8, 2e-7), strict=True):
        near(results["mean"], 2, 0)
        near(results["variance"], 3.5, 0)
        near(1 / results["rstd"], 1.870829, 3e-7)
        near(results["y"], [0, 1.0690450, -1.6035675, 0.5345225], tolerance)
        assert abs(results["y"].sum()) < 1e-6 and abs(results["y"].var() - 1) < 1e-6


GRID = np.arange(20.0).reshape(4, 5) ** 2 / 10


@golden(layer(GRID, axes=[0]), layer(GRID, axes=[1]))
def test_1_7_columns_and_rows(got):
    column, row = got[0]["y"], got[1]["y"]
    near(column, (GRID - GRID.mean(0)) / np.sqrt(GRID.var(0) + 1e-5))
    near(row, (GRID - GRID.mean(1)[:, None]) / np.sqrt(GRID.var(1)[:, None] + 1e-5))
    assert (np.abs(column - row) > 1e-2).all()


@golden(layer(GRID), layer(GRID, scale=[1] * 5, shift=[0] * 5),
        layer(GRID, scale=[0] * 5, scale_offset=1.0), rms(GRID), rms(GRID, scale=[1] * 5),
        rms(GRID, scale=[0] * 5, scale_offset=1.0))
def test_1_9_identity_affine(got):
    for other in (1, 2):
        same_bits(got[0]["y"] + np.float32(0), got[other]["y"] + np.float32(0))
    for other in (4, 5):
        same_bits(got[3]["y"], got[other]["y"])


@golden(rms([2, 4, -1, 3], placement="none", results=("y", "variance", "rstd")))
def test_1_13_rms_walkthrough(got):
    near(got["variance"], 7.5, 0)
    near(1 / got["rstd"], 2.7386128)
    near(got["y"], [0.7302967, 1.4605935, -0.3651484, 1.0954451])
    near(got["y"].mean(), 0.7302967)


@golden(layer([1, 2, 3, 4], correction=1, placement="none", results=STATISTICS),
        layer([1, 2, 3, 4], placement="none", results=STATISTICS))
def test_1_18_two_denominators(got):
    near(got[0]["variance"], 5 / 3)
    near(got[1]["variance"], 1.25)
    near(got[0]["y"], np.array([-1.5, -0.5, 0.5, 1.5]) / np.sqrt(5 / 3))


@golden(layer([1, 3], placement="none"), rms([1, 3], placement="none"))
def test_2_1_centred_or_not(got):
    near(got[0]["y"], [-1, 1])
    near(got[1]["y"], np.array([1, 3]) / np.sqrt(5))


BTD = np.arange(12.0).reshape(2, 2, 3)


@golden(layer(BTD, axes=[2]), layer(BTD, axes=[1, 2]), rms(BTD, axes=[2]), rms(BTD, axes=[1, 2]))
def test_2_2_one_or_two_trailing_dims(got):
    near(got[0]["y"], [[[-1.2247357, 0, 1.2247357]] * 2] * 2)
    pair = np.array([[-1.4638483, -0.8783090, -0.2927697], [0.2927697, 0.8783090, 1.4638483]])
    near(got[1]["y"], [pair, pair])
    near(got[2]["y"][0, 0], np.array([0, 1, 2]) / np.sqrt(5 / 3 + 1e-6))
    near(got[3]["y"][0, 0], np.array([0, 1, 2]) / np.sqrt(55 / 6 + 1e-6))


@golden(layer([1, 3], placement="none"), layer([11, 13], placement="none"),
        rms([1, 3], placement="none"), rms([11, 13], placement="none", results=("y", "rstd")))
def test_2_5_shifting_by_ten(got):
    same_bits(got[0]["y"], got[1]["y"])
    near(1 / got[3]["rstd"], 12.0415946)
    near(got[3]["y"], [0.9135003, 1.0795912])
    assert (np.abs(got[2]["y"] - got[3]["y"]) > 0.2).all()


@golden(rms([2, 1], placement="none"), rms([6, 3], placement="none"),
        rms([[1, 0], [0, 1]], placement="none"))
def test_2_13_growing_logits(got):
    for logits, weights in (([2, 1], [0.7310586, 0.2689414]), ([18, 9], [0.9998766, 0.0001234])):
        near(np.exp(logits) / np.exp(logits).sum(), weights)  # without the norms
    keys = widen(got[2]["y"])
    for results in got[:2]:
        near(results["y"], [1.2649111, 0.6324555])
        scores = keys @ widen(results["y"]) / np.sqrt(2)
        near(scores, [1.2649111, 0.6324555])
        near(np.exp(scores) / np.exp(scores).sum(), [0.6530460, 0.3469540])


QUERIES = np.random.default_rng(0).standard_normal((64, 128)) * np.logspace(-3, 3, 64)[:, None]


@golden(rms(QUERIES))
def test_2_14_normalized_length_is_bounded(got):
    lengths = np.linalg.norm(widen(got["y"]), axis=1)
    assert (lengths <= np.sqrt(128) * (1 + 1e-6)).all() and lengths.max() > 11.31


@golden(layer([[1, 2, 3], [11, 12, 13]], "f64", placement="none", results=STATISTICS),
        layer([1, 2, 3], "f64"), layer([5, 10, 15], "f64"), layer([1, 2, 3]), layer([5, 10, 15]))
def test_4_4_shift_and_scale(got):
    near(got[0]["y"], [[-1.2247449, 0, 1.2247449]] * 2, 1e-7)
    near(got[0]["mean"], [2, 12], 0)
    near(got[0]["variance"], [2 / 3] * 2, 1e-15)
    near(1 / got[0]["rstd"], [0.8164966] * 2, 1e-7)
    for results, expected, tolerance in zip(got[1:], [1.22473569, 1.22474450] * 2,
                                            (5e-9, 5e-9, 1e-7, 1e-7), strict=True):
        near(results["y"], [-expected, 0, expected], tolerance)


@golden(rms([1, 2, 3], placement="none", results=("y", "variance", "rstd")))
def test_4_5_rms_of_three(got):
    near(1 / got["rstd"], 2.1602469)
    near(got["y"], [0.4629100, 0.9258201, 1.3887301])
    near(np.square(got["y"]).mean(), 1)
    assert got["y"].mean() > 0.9


SCALED = np.random.default_rng(1).standard_normal(64)


@golden(layer(SCALED, placement="none"), layer(4 * SCALED + 0, placement="none"),
        layer(SCALED + 3, placement="none"), rms(SCALED, placement="none"),
        rms(4 * SCALED, placement="none"), rms(SCALED + 3, placement="none"))
def test_4_8_what_a_norm_cannot_see(got):
    same_bits(got[0]["y"], got[1]["y"])
    near(got[2]["y"], got[0]["y"], 1e-6)
    same_bits(got[3]["y"], got[4]["y"])
    assert np.abs(got[5]["y"] - got[3]["y"]).max() > 0.5


TINY = array([1e-6, -1e-6] * 2)  # variance and mean square 1e-12


def placed(kind, placement):
    epsilon = {} if placement == "none" else dict(epsilon=1e-5)
    return kind(TINY, results=("y", "rstd"), placement=placement, **epsilon)


GAINS = dict(none=1e6, inside_sqrt=316.2, outside_sqrt=90909.09, max_inside=316.2278,
             max_outside=100000.0)


@golden(*(placed(kind, placement) for kind in (layer, rms) for placement in GAINS))
def test_4_11_and_4_13_gain_bound(got):
    for results, gain in zip(got, [*GAINS.values()] * 2, strict=True):
        near(results["rstd"], gain, 1e-4)
        near(results["y"], TINY * np.float64(gain), 1e-4)
    near(got[1]["rstd"], 316.2277502, 1e-7)  # 1/sqrt(1e-5 + 1e-12)


@golden(*(layer(np.random.default_rng(2).standard_normal(512) * std, "f64",
                results=("y", "variance")) for std in (1e-4, 1e-3, 1e-2, 1.0)))
def test_4_12_epsilon_costs_variance(got):
    for results in got:
        near(results["y"].var(), results["variance"] / (results["variance"] + 1e-5), 1e-12)


BSH = np.random.default_rng(3).standard_normal((2, 3, 4))
PERTURBED = BSH.copy()
PERTURBED[1, 2] += 5


@golden(layer(BSH, axes=[2], scale=[1, 2, 3, 4]), layer(BSH, axes=[2]),
        layer(PERTURBED, axes=[2], scale=[1, 2, 3, 4]))
def test_4_14_axis_errors_that_keep_the_shape(got):
    near(got[0]["y"], widen(got[1]["y"]) * [1, 2, 3, 4])
    same_bits(got[0]["y"].reshape(6, 4)[:5], got[2]["y"].reshape(6, 4)[:5])


@pytest.mark.parametrize("kind", [layer, rms])
def test_1_5_length_does_not_matter(kind, tmp_path):
    """One compiled form for 5 and 5000 tokens; shared rows bit for bit."""
    from norm.runner import run_calls
    x = array(np.random.default_rng(4).standard_normal((1, 5000, 96)))
    for path in ("cpu", "reference"):
        long, short = (run_calls(tmp_path, [kind(part, axes=[2], dynamic=(0, 1))], path)[0]["y"]
                       for part in (x, np.ascontiguousarray(x[:, :5])))
        same_bits(long[:, :5], short)
