"""Public reports about shapes, fusion and features; see test_numbers.py."""

import itertools

import numpy as np
import pytest
from norm.golden import STATISTICS, array, golden, layer, near, rms, same_bits
from norm.tools import norm_opt, norm_run
from norm.types import F32, widen

BLOCK = np.random.default_rng(665).standard_normal((2, 5, 2, 2, 3)) + 3
SUBSETS = [("y", *chosen) for count in range(3)
           for chosen in itertools.combinations(("mean", "rstd"), count)]


@golden(*(layer(BLOCK, axes=[2, 3, 4], results=results) for results in SUBSETS))
def test_case_B1_every_result_alone_and_together(got):
    rows = BLOCK.reshape(2, 5, -1)
    for results in got:
        for name, expected in (("mean", rows.mean(2)), ("rstd", 1 / np.sqrt(rows.var(2) + 1e-5))):
            if name in results:
                near(results[name], expected)
        same_bits(results["y"], got[0]["y"])


ROWS = np.random.default_rng(569).standard_normal((3, 198, 384))


@golden(*(layer(ROWS[:batch], axes=[-1], dynamic=(0,), results=STATISTICS) for batch in (1, 3)))
def test_case_B3_dynamic_batch_static_row(got):
    for results, batch in zip(got, (1, 3), strict=True):
        assert results["mean"].shape == results["rstd"].shape == (batch, 198)
        near(results["mean"], ROWS[:batch].mean(2))
    same_bits(got[0]["y"], got[1]["y"][:1])


EPSILONS = """
func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %a = norm.layer_norm %x axes [0] epsilon inside_sqrt 1.0e-1 : tensor<3xf32> -> tensor<3xf32>
  %b = norm.layer_norm %x axes [0] epsilon inside_sqrt 1.0e-5 : tensor<3xf32> -> tensor<3xf32>
  return %a, %b : tensor<3xf32>, tensor<3xf32>
}
"""


@pytest.mark.parametrize("passes", [[], ["--canonicalize", "--cse"], ["--norm-lower-to-linalg"],
                                    ["--norm-lower-to-linalg", "--canonicalize", "--cse"]])
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_case_C7_epsilon_survives(passes, target, tmp_path):
    module = norm_opt(EPSILONS, *passes)
    one, other = norm_run(tmp_path, module, [array([1, 2, 3])], [F32, F32], target=target)
    near(one, [-1.1421, 0, 1.1421], 1e-4)
    near(other, [-1.2247357, 0, 1.2247357])


RESIDUAL = dict(residual=[0.5, -0.5, 0.5, -0.5], results=("y", "sum"))


@golden(layer([256.0] * 4, "bf16", **RESIDUAL),
        layer([256.0] * 4, "bf16", sum_rounding="compute", **RESIDUAL),
        layer([256.0] * 4, "bf16", residual=RESIDUAL["residual"]),
        layer([256.0] * 4, "bf16", residual=[1.5, -1.5, 3, -3], results=("y", "sum")))
def test_case_C10_is_the_sum_rounded_first(got):
    assert not widen(got[0]["y"]).any() and not widen(got[2]["y"]).any()
    near(got[1]["y"], [1, -1, 1, -1], 0)
    for results in got[:2]:
        near(results["sum"], [256] * 4, 0)
    # To nearest even, not towards zero: 257.5 -> 258, 254.5 -> 254, 259 -> 260.
    near(got[3]["sum"], [258, 254, 260, 253], 0)


NARROW = ("f16", "bf16", "f32")
DATA = np.random.default_rng(11).standard_normal((4, 48))
WEIGHT = np.random.default_rng(12).standard_normal(48)


@golden(*(rms(array(DATA, x), scale=array(WEIGHT, g)) for x in NARROW for g in NARROW),
        *(layer(array(DATA, x), residual=array(DATA + 1, r), results=("y", "rstd"))
          for x in NARROW for r in NARROW))
def test_case_C11_mixed_types(got):
    """Held against the oracle; here only that a weight is read in its own type."""
    for results, (x, g) in zip(got, itertools.product(NARROW, NARROW), strict=False):
        values = widen(array(DATA, x))
        expected = values / np.sqrt((values**2).mean(1)[:, None] + 1e-6) * widen(array(WEIGHT, g))
        near(results["y"], expected, 1e-6 if x == "f32" else 4e-3)
    for results, (x, r) in zip(got[9:], itertools.product(NARROW, NARROW), strict=True):
        assert results["rstd"].dtype == np.float32, (x, r)


E1 = np.array([1, 2, 3, 4]).reshape(1, 2, 2)


@golden(rms([[1, 2, 3, 4]], epsilon=0.8, scale=[1, 2, 3, 4], results=("y", "rstd")),
        rms(E1, axes=[1, 2], epsilon=0.8, scale=[[1, 2], [3, 4]], results=("y", "rstd")),
        rms(E1, axes=[1, 2], epsilon=0.8, scale=[[1, 2], [3, 4]]))
def test_case_E1_rms_norm_with_its_root(got):
    root = 1 / np.sqrt(7.5 + 0.8)
    for results in got:
        near(results["y"].ravel(), np.array([1, 4, 9, 16]) * root)
        if "rstd" in results:
            near(results["rstd"], [root])
    same_bits(got[1]["y"], got[2]["y"])


@golden(rms([3, 4], scale=[0, 0], scale_offset=1.0, epsilon=0.0),
        layer([3, 4], scale=[0, 0], scale_offset=1.0, epsilon=0.0),
        rms([3, 4], "bf16", scale=[0.5, 0.25], scale_offset=1.0, epsilon=0.0))
def test_case_E2_weight_stored_minus_one(got):
    near(got[0]["y"], [0.8485281, 1.1313708])
    near(got[1]["y"], [-1, 1])
    near(got[2]["y"], array([0.8485281 * 1.5, 1.1313708 * 1.25], "bf16").astype(np.float64), 0)


def test_case_E2_offset_survives_a_round_trip():
    module = ("func.func @main(%x: tensor<2xf32>, %g: tensor<2xf32>) -> tensor<2xf32> {\n"
              "  %y = norm.rms_norm %x scale(%g : tensor<2xf32>) axes [0] epsilon none "
              "scale_offset 1.0 : tensor<2xf32> -> tensor<2xf32>\n  return %y : tensor<2xf32>\n}\n")
    for passes in ([], ["--canonicalize", "--cse"], ["--mlir-print-op-generic"]):
        assert "scale_offset" in norm_opt(norm_opt(module, *passes))
