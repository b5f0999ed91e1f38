"""Public reports of wrong numbers, as inputs small enough to run by hand; each
stands for its kind. The letter and number name the report."""

import numpy as np
import pytest
from norm.golden import STATISTICS, array, golden, layer, near, rms, same_bits
from norm.tools import ToolError, norm_opt
from norm.types import widen

FOUR = [-1.3416354, -0.4472118, 0.4472118, 1.3416354]  # of variance 1.25, epsilon 1e-5


@golden(layer([[40000, 40001, 40002, 40003]], results=STATISTICS))
def test_case_A1_squares_of_a_far_row(got):
    near(got["y"], [FOUR], 1e-6)
    near(got["mean"], [40001.5], 0)
    near(got["variance"], [1.25], 0)


BURN = [[c + i * 1e-3 for i in range(16)] for c in (0, 100, 1000, 10000)]


@golden(layer([8192, 8193, 8194, 8195]), layer(BURN, epsilon=0.0),
        layer(np.reshape(BURN, (4, 4, 4)), axes=[1, 2], epsilon=0.0))
def test_case_A2_large_mean_small_deviation(got):
    near(got[0]["y"], FOUR, 1e-6)
    x = widen(array(BURN))
    exact = (x - x.mean(1)[:, None]) / x.std(1)[:, None]
    near(got[1]["y"], exact, 2e-6)
    near(got[2]["y"].reshape(4, 16), exact, 2e-6)


@golden(layer([1234.0] * 256), layer([1e10] * 100), layer([1e10] * 100, shift=range(100)),
        layer([1e7, 1e7 + 1] * 2048, results=STATISTICS), paths=("cpu", "reference"))
def test_case_A5_constant_rows_and_a_mean_that_is_wrong(got):
    assert not got[0]["y"].any() and not got[1]["y"].any()
    near(got[2]["y"], np.arange(100), 0)
    near(got[3]["y"], np.tile([-0.99998, 0.99998], 2048), 4e-6)
    near(got[3]["variance"], 0.25, 1e-6)


HUGE = np.array([1, 2, 3, 4]) * 1e25


@golden(rms(HUGE, compute="f64"), layer(HUGE, compute="f64"),
        rms(HUGE * 1e-55, compute="f64", epsilon=0.0),
        layer(HUGE * 1e-55, compute="f64", epsilon=0.0))
def test_case_A6_the_remedy_for_squares_out_of_range(got):
    for results in got[::2]:
        near(results["y"], [0.3651484, 0.7302967, 1.0954451, 1.4605935])
    for results in got[1::2]:
        near(results["y"], [-1.3416408, -0.4472136, 0.4472136, 1.3416408])


def test_case_A6_squares_out_of_range(tmp_path):
    """The documented IEEE overflow of the compute type: q is infinite and r is 0;
    q of the tiny row underflows to 0, and r without epsilon is infinite."""
    from norm.runner import run_calls
    calls = [rms(HUGE, results=("y", "rstd")), layer(HUGE, results=("y", "rstd")),
             rms([1e-30, 0, 1e-30, 1e-30], epsilon=0.0, results=("y", "rstd"))]
    big, centred, tiny = run_calls(tmp_path, calls, "cpu")
    for results in (big, centred):
        assert results["rstd"] == 0 and not results["y"].any()
    assert tiny["rstd"] == np.inf
    assert np.array_equal(tiny["y"], [np.inf, np.nan, np.inf, np.inf], equal_nan=True)


@golden(rms([300, -400, 0, 0], "f16"), rms([300] * 4, "f16", residual=[300] * 4))
def test_case_A7_squares_of_16_bit_values(got):
    near(got[0]["y"], [1.2, -1.6, 0, 0], 5e-4)
    near(got[1]["y"], [1] * 4, 0)


@golden(*(rms([300.0] * n, element, results=("y", "variance"))
          for n in (2048, 8192) for element in ("f16", "bf16")), paths=("cpu", "reference"))
def test_case_A7_long_rows(got):
    for results in got:
        near(results["y"], np.ones(results["y"].shape), 0)
        near(results["variance"], 90000, 1e-6)


SMALL = [1e-3, -1e-3, 1e-3, -1e-3]


@golden(*(rms(SMALL, epsilon=1e-5, placement=p)
          for p in ("inside_sqrt", "outside_sqrt", "max_inside", "max_outside")))
def test_case_A10_where_epsilon_goes(got):
    for results, size in zip(got, (0.30151134, 0.99009901, 0.31622777, 1.0), strict=True):
        near(results["y"], np.sign(SMALL) * size)


GAIN = array([0.9453125] * 4, "bf16")


@golden(rms([1, 2, 3, 4], "bf16", scale=GAIN, affine_in="result"),
        rms([1, 2, 3, 4], "bf16", scale=GAIN),
        rms(array([1, 2, 3, 4], "bf16"), scale=array([0.9453125] * 4), result="f32"),
        rms(array([1, 2, 3, 4], "bf16"), scale=array([0.9453125] * 4), result="f32",
            affine_in="result"))
def test_case_A11_cast_before_or_after_the_gain(got):
    assert widen(got[0]["y"])[2] == 1.03125 and widen(got[1]["y"])[2] == 1.0390625
    near(got[2]["y"][2], 1.095445 * 0.9453125)
    assert got[3]["y"][2] == 1.09375 * 0.9453125


@golden(layer(np.zeros((0, 8)), scale=[1] * 8, shift=[0] * 8, results=STATISTICS),
        layer(np.zeros((0, 8)), scale=[1] * 8, results=STATISTICS, dynamic=(0, 1)),
        rms(np.zeros((0, 8)), results=STATISTICS), rms(np.zeros((0, 8)), dynamic=(0,)))
def test_case_A16_empty_batch(got):
    for results in got:
        assert results["y"].shape == (0, 8)
    assert got[0]["mean"].shape == got[1]["rstd"].shape == (0,)


COLUMN = np.linspace(-3, 40, 16)[:, None]


@golden(layer(COLUMN), layer(COLUMN, shift=[0.25]), layer(COLUMN[:1], shift=[0.25]),
        rms(COLUMN, epsilon=0.5), rms(COLUMN, epsilon=0.5, dynamic=(0, 1)))
def test_case_A19_extent_one(got):
    assert not got[0]["y"].any()
    near(got[1]["y"], np.full((16, 1), 0.25), 0)
    near(got[2]["y"], [[0.25]], 0)
    for results in got[3:]:
        near(results["y"], COLUMN / np.sqrt(COLUMN**2 + 0.5))


LANES = (1, 3, 5, 7, 9, 15, 17, 31, 33, 127, 129, 255, 257)


@golden(layer([10, 11, 12]), layer([10, 11, 12], dynamic=(0,)),
        *(layer(1000 + np.arange(n) % 3, dynamic=dynamic) for n in LANES for dynamic in ((), (0,))))
def test_case_A20_padding_lanes(got):
    near(got[0]["y"], [-1.2247357, 0, 1.2247357])
    near(got[1]["y"], [-1.2247357, 0, 1.2247357])
    for results, n in zip(got[2:], [n for n in LANES for _ in range(2)], strict=True):
        x = 1000 + np.arange(n) % 3
        near(results["y"], (x - x.mean()) / np.sqrt(x.var() + 1e-5))


SIX = [[1, 2, 3], [4, 5, 6]]


@golden(layer(SIX, axes=[-1]), layer(SIX, axes=[1]), layer(SIX, axes=[-2, -1]),
        layer(SIX, axes=[1, 0]), layer(SIX, axes=[0, 1]))
def test_case_A23_negative_and_unsorted_axes(got):
    near(got[0]["y"], [[-1.2247357, 0, 1.2247357]] * 2)
    same_bits(got[0]["y"], got[1]["y"])
    near(got[2]["y"][0, 0], -1.4638483)
    same_bits(got[2]["y"], got[3]["y"])
    same_bits(got[2]["y"], got[4]["y"])


@pytest.mark.parametrize("axes", ["[-1, 1]", "[2]", "[-3]", "[]"])
def test_case_A23_bad_axes_are_refused(axes):
    module = ("func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
              f"  %y = norm.layer_norm %x axes {axes} epsilon none"
              " : tensor<2x3xf32> -> tensor<2x3xf32>\n  return %y : tensor<2x3xf32>\n}\n")
    with pytest.raises(ToolError, match="error: .*axes"):
        norm_opt(module)


def test_case_A23_spellings_are_one_op():
    module = """
      func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
        %a = norm.layer_norm %x axes [-1] epsilon none : tensor<2x3xf32> -> tensor<2x3xf32>
        %b = norm.layer_norm %x axes [1] epsilon none : tensor<2x3xf32> -> tensor<2x3xf32>
        return %a, %b : tensor<2x3xf32>, tensor<2x3xf32>
      }"""
    assert norm_opt(module).count("norm.layer_norm") == 2
    assert norm_opt(module, "--canonicalize", "--cse").count("norm.layer_norm") == 1


PAIRS = np.array([3, 4, 0.3, 0.4]).reshape(1, 1, 2, 2)  # [B, S, H, D]


@golden(rms(PAIRS, axes=[3], epsilon=0.0), rms(PAIRS, axes=[2, 3], epsilon=0.0),
        rms(PAIRS.transpose(0, 2, 1, 3), axes=[3], epsilon=0.0, scale=[1, 2]),
        rms(PAIRS, axes=[3], epsilon=0.0, scale=[[1, 2], [3, 4]], affine_axes=(2, 3)))
def test_case_A26_per_head_or_across_heads(got):
    near(got[0]["y"].ravel(), [0.8485281, 1.1313708] * 2)
    near(got[1]["y"].ravel(), [1.1940446, 1.5920595, 0.1194045, 0.1592059])
    near(got[2]["y"].ravel(), [0.8485281, 2.2627417] * 2)
    near(got[3]["y"].ravel(), [0.8485281, 2.2627417, 2.5455844, 4.5254834])


@golden(rms([5, 5, 5, 3], "bf16", results=("y", "rstd")),
        layer([5, 5, 5, 3], "bf16", results=STATISTICS))
def test_case_A30_the_root_is_not_rounded(got):
    assert widen(got[0]["y"])[0] == 1.09375
    near(got[0]["rstd"], 1 / np.sqrt(21 + 1e-6), 1e-7)
    assert all(got[1][name].dtype == np.float32 for name in STATISTICS[1:])


@golden(rms([1e-20] * 4, epsilon=0.0), rms([0.0] * 4, placement="none", results=("y", "rstd")),
        rms([np.inf, 1, 1, 1], results=("y", "rstd")), paths=("reference",))
def test_case_B18_reciprocal_root_at_the_edges(got):
    near(got[0]["y"], [1] * 4)
    assert got[1]["rstd"] == np.inf and np.isnan(got[1]["y"]).all()
    assert got[2]["rstd"] == 0


def test_case_B18_reciprocal_root_at_the_edges_on_cpu(tmp_path):
    """q of 1e-40 has 17 bits in f32: y is 1 to about 1e-4 and no more."""
    from norm.runner import run_calls
    calls = [rms([1e-20] * 4, epsilon=0.0), rms([0.0] * 4, placement="none", results=("y", "rstd")),
             rms([np.inf, 1, 1, 1], results=("y", "rstd"))]
    small, zero, infinite = run_calls(tmp_path, calls, "cpu")
    near(small["y"], [1] * 4, 1e-4)
    assert zero["rstd"] == np.inf and np.isnan(zero["y"]).all()
    assert infinite["rstd"] == 0 and np.array_equal(infinite["y"][1:], [0, 0, 0])
