"""Worked examples of the algebra of statistics: masks, merged parts, synchronized
norms; a test's name carries the example's id."""

import numpy as np
import pytest
from norm.golden import array, call, golden, near, same_bits
from norm.tools import norm_run
from norm.types import widen

MOMENTS = ("count", "mean", "m2")
# Sequences of lengths 1, 1, 1 and 4, padded to 4.
LENGTHS = np.arange(4) < np.array([1, 1, 1, 4])[:, None]
PADDED = np.where(LENGTHS, np.arange(16.0).reshape(4, 4) ** 2, 99)


@golden(call("moments", PADDED, axes=(0,), mask=LENGTHS, results=MOMENTS),
        call("normalize", PADDED, axes=(0,), affine_axes=(1,), mean=PADDED[3],
             rstd=[1e-3, 316, 316, 316], shift=[4.0, 3, 2, 0.1]))
def test_0_6_positions_that_only_one_sequence_has(got):
    near(got[0]["count"], [4, 1, 1, 1], 0)
    near(got[0]["mean"], [56, 169, 196, 225], 0)
    near(got[0]["m2"], [(56**2 + 40**2 + 8**2 + 88**2), 0, 0, 0], 0)
    near(got[1]["y"][3], array([4.0, 3, 2, 0.1]), 0)


def stacked(*parts):
    """(count, mean, m2) of each part, along a leading axis of parts."""
    names = ("count", "mean", "m2")
    return {name: np.array([[part[i]] for part in parts], np.int64 if i == 0 else np.float64)
            for i, name in enumerate(names)}


def combine(*parts, element="f64", **rest):
    operands = stacked(*parts)
    return call("combine_moments", operands.pop("m2"), element, results=MOMENTS,
                **operands, **rest)


@golden(combine((2, 1, 2), (3, 12, 8)), combine((3, 12, 8), (2, 1, 2)),
        combine((0, 0, 0), (2, 1, 2), (0, 0, 0), (3, 12, 8)), combine((0, 0, 0), (0, 0, 0)),
        combine((2, 1, 2), (3, 12, 8), element="f32"))
def test_D16_unequal_and_empty_parts(got):
    """[0, 2] and [10, 12, 14]: not the mean of the means, 6.5."""
    for results in (*got[:3], got[4]):
        near(results["count"], [5], 0)
        near(results["mean"], [7.6], 1e-7)
        near(results["m2"] / 5, [31.04], 1e-6)
    for name in MOMENTS:
        assert not got[3][name].any()


@golden(combine((1, 1, 0), (1, 3, 0)), call("moments", [[1.0], [3]], axes=(1,), results=MOMENTS))
def test_D18_one_value_in_each_part(got):
    near(got[0]["mean"], [2], 0)
    near(got[0]["m2"], [2], 0)
    near(got[1]["count"], [1, 1], 0)
    near(got[1]["m2"], [0, 0], 0)


@golden(call("rstd", [5.0, 0, 12], count=[5, 0, 4], epsilon=0.25, results=("rstd", "variance")),
        call("rstd", [5.0, 7, 12], count=[6, 1, 4], correction=1, placement="none",
             results=("rstd", "variance")),
        call("rstd", [4.0, 0], placement="max_outside", epsilon=1e-3))
def test_rstd_counts(got):
    near(got[0]["rstd"], [1 / np.sqrt(1.25), 2, 1 / np.sqrt(3.25)])
    near(got[0]["variance"], [1, 0, 3])
    assert np.isnan(got[1]["variance"][1]) and np.isnan(got[1]["rstd"][1])
    near(got[1]["rstd"][[0, 2]], [1, 0.5])
    near(got[2]["rstd"], [0.5, 1000])


UPDATE = dict(count=[4, 0, 1], new=[6.0, 6, 6])


@golden(call("update_running", [1.0, 1, 1], momentum=0.25, **UPDATE),
        call("update_running", [1.0, 1, 1], statistic="variance", momentum=0.25, **UPDATE),
        call("update_running", [1.0, 1, 1], statistic="variance", momentum=0.25,
             running_correction=0, **UPDATE),
        call("update_running", [1.0, 1, 1], momentum=np.float32(0.25), **UPDATE))
def test_running_values_of_none_and_of_one(got):
    for results in (got[0], got[3]):
        near(results["updated"], [2.25, 1, 2.25], 0)
    near(got[1]["updated"][:2], [1.25, 1])
    assert np.isnan(got[1]["updated"][2])
    near(got[2]["updated"], [0.75 + 1.5 / 4, 1, 2.25])


RNG = np.random.default_rng(5)
X, DY = (RNG.standard_normal((3, 12)) + 1e4).astype(np.float32), RNG.standard_normal((3, 12))
MASK = np.arange(12) < np.array([12, 7, 0])[:, None]
HOSTILE = np.where(MASK, X, np.nan).astype(np.float32)
KNOWN = dict(mean=[1e4] * 3, rstd=[1.0] * 3)


@golden(call("moments", HOSTILE, mask=MASK, results=MOMENTS),
        call("moments", X[:1], results=MOMENTS), call("moments", X[1:2, :7], results=MOMENTS),
        call("backward_moments", HOSTILE, dy=np.where(MASK, DY, np.inf), mask=MASK, **KNOWN),
        call("backward_normalize", HOSTILE, dy=np.where(MASK, DY, np.nan), mask=MASK,
             sum_g=[1, 2, 0], sum_gx=[3, 4, 0], count=[12, 7, 0], **KNOWN))
def test_masks_are_compaction(got):
    """Whatever stands behind the mask; and a row of which nothing counts."""
    near(got[0]["count"], [12, 7, 0], 0)
    for row, whole in enumerate(got[1:3]):
        near(got[0]["mean"][row:row + 1], whole["mean"], 1e-7)
        near(got[0]["m2"][row:row + 1], whole["m2"], 1e-5)
    assert got[0]["mean"][2] == 0 and got[0]["m2"][2] == 0
    near(got[3]["sum_g"], np.where(MASK, DY, 0).sum(1), 1e-5)
    assert got[3]["sum_gx"][2] == 0
    assert not got[4]["dx"][~MASK].any() and np.isfinite(got[4]["dx"]).all()


FAR = array([[1e6 + i % 3 for i in range(768)]])


@golden(call("moments", FAR, results=("mean", "m2"), statistics="f64"),
        call("normalize", FAR, mean=([1e6 + 0.1], "f64"), rstd=[1.0], compute="f32",
             results=("y",)))
def test_means_that_are_exchanged(got):
    """f64 holds m + delta; an f64 mean is subtracted to its last bit that shows."""
    near(got[0]["mean"] - 1e6, [1], 1e-6)
    near(got[1]["y"][0, :3], [-0.1, 0.9, 1.9], 1e-6)


SYNC = """
func.func @main(%a: tensor<2x3xf32>, %b: tensor<0x3xf32>, %c: tensor<5x3xf32>, %x: tensor<7x3xf32>,
                %da: tensor<2x3xf32>, %dc: tensor<5x3xf32>, %d: tensor<7x3xf32>,
                %g: tensor<3xf32>, %rm: tensor<3xf32>, %rv: tensor<3xf32>)
    -> (RESULTS) {
  // The moments of three workers, one of which has nothing, merged in their order.
PARTS
  %n, %m, %q = norm.combine_moments count(%ns : tensor<3x3xi64>) mean(%ms : tensor<3x3xf64>)
      m2(%qs : tensor<3x3xf64>) -> count(tensor<3xi64>) mean(tensor<3xf64>) m2(tensor<3xf64>)
  %r = norm.rstd %q count(%n : tensor<3xi64>) epsilon inside_sqrt 1.0e-5
      : tensor<3xf64> -> tensor<3xf64>
  %ya = norm.normalize %a mean(%m : tensor<3xf64>) rstd(%r : tensor<3xf64>)
      scale(%g : tensor<3xf32>) axes [0] affine_axes [1] : tensor<2x3xf32> -> tensor<2x3xf32>
  %yc = norm.normalize %c mean(%m : tensor<3xf64>) rstd(%r : tensor<3xf64>)
      scale(%g : tensor<3xf32>) axes [0] affine_axes [1] : tensor<5x3xf32> -> tensor<5x3xf32>
  %rm1 = norm.update_running %rm, %m count(%n : tensor<3xi64>) statistic mean momentum 0.1
      : tensor<3xf32>, tensor<3xf64> -> tensor<3xf32>
  %rv1 = norm.update_running %rv, %q count(%n : tensor<3xi64>) statistic variance momentum 0.1
      : tensor<3xf32>, tensor<3xf64> -> tensor<3xf32>
  %sa, %ta, %ga, %ba = norm.backward_moments %da, %a mean(%m : tensor<3xf64>)
      rstd(%r : tensor<3xf64>) scale(%g : tensor<3xf32>) axes [0] affine_axes [1]
      : tensor<2x3xf32>, tensor<2x3xf32> -> sum_g(tensor<3xf64>) sum_gx(tensor<3xf64>)
        dscale(tensor<3xf32>) dshift(tensor<3xf32>)
  %sc, %tc, %gc, %bc = norm.backward_moments %dc, %c mean(%m : tensor<3xf64>)
      rstd(%r : tensor<3xf64>) scale(%g : tensor<3xf32>) axes [0] affine_axes [1]
      : tensor<5x3xf32>, tensor<5x3xf32> -> sum_g(tensor<3xf64>) sum_gx(tensor<3xf64>)
        dscale(tensor<3xf32>) dshift(tensor<3xf32>)
  %e = tensor.empty() : tensor<3xf64>
  %s = linalg.add ins(%sa, %sc : tensor<3xf64>, tensor<3xf64>) outs(%e : tensor<3xf64>)
      -> tensor<3xf64>
  %t = linalg.add ins(%ta, %tc : tensor<3xf64>, tensor<3xf64>) outs(%e : tensor<3xf64>)
      -> tensor<3xf64>
  %dxc = norm.backward_normalize %dc, %c mean(%m : tensor<3xf64>) rstd(%r : tensor<3xf64>)
      scale(%g : tensor<3xf32>) sum_g(%s : tensor<3xf64>) sum_gx(%t : tensor<3xf64>)
      count(%n : tensor<3xi64>) axes [0] epsilon inside_sqrt 1.0e-5 affine_axes [1]
      : tensor<5x3xf32>, tensor<5x3xf32> -> tensor<5x3xf32>
  // All at once.
  %y, %rm2, %rv2 = norm.batch_norm_training %x scale(%g : tensor<3xf32>)
      running(%rm, %rv : tensor<3xf32>, tensor<3xf32>) axes [0] epsilon inside_sqrt 1.0e-5
      momentum 0.1 : tensor<7x3xf32> -> tensor<7x3xf32>
      running_mean(tensor<3xf32>) running_variance(tensor<3xf32>)
  %dx = norm.batch_norm_training_backward %d, %x scale(%g : tensor<3xf32>) axes [0]
      epsilon inside_sqrt 1.0e-5 : tensor<7x3xf32>, tensor<7x3xf32> -> tensor<7x3xf32>
  return VALUES : RESULTS
}
"""


def synchronized():
    parts = ""
    for w, rows in (("a", 2), ("b", 0), ("c", 5)):
        parts += (f"  %n{w}, %m{w}, %q{w} = norm.moments %{w} axes [0] about mean : "
                  f"tensor<{rows}x3xf32> -> count(tensor<3xi64>) mean(tensor<3xf64>) "
                  "m2(tensor<3xf64>)\n")
    for name, element in (("n", "i64"), ("m", "f64"), ("q", "f64")):
        one, three = f"tensor<1x3x{element}>", f"tensor<3x3x{element}>"
        for w in "abc":
            parts += (f"  %{name}{w}1 = tensor.expand_shape %{name}{w} [[0, 1]] output_shape "
                      f"[1, 3] : tensor<3x{element}> into {one}\n")
        parts += (f"  %{name}s = tensor.concat dim(0) %{name}a1, %{name}b1, %{name}c1 : "
                  f"({one}, {one}, {one}) -> {three}\n")
    values = dict(ya="2x3", yc="5x3", rm1="3", rv1="3", dxc="5x3", y="7x3", rm2="3", rv2="3",
                  dx="7x3")
    return (SYNC.replace("PARTS\n", parts)
            .replace("RESULTS", ", ".join(f"tensor<{shape}xf32>" for shape in values.values()))
            .replace("VALUES", ", ".join(f"%{name}" for name in values))), list(values)


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_0_8_synchronized_batch_norm(target, tmp_path):
    """Three workers with 2, 0 and 5 samples together do what one with all 7 does."""
    rng = np.random.default_rng(6)
    x = (rng.standard_normal((7, 3)) + [0, 10, 1e5]).astype(np.float32)
    d = rng.standard_normal((7, 3)).astype(np.float32)
    g, rm, rv = (rng.random(3).astype(np.float32) for _ in range(3))
    module, names = synchronized()
    inputs = [x[:2], x[:0], x[2:], x, d[:2], d[2:], d, g, rm, rv]
    got = dict(zip(names, norm_run(tmp_path, module, inputs, ["f32"] * len(names), target),
                   strict=True))
    near(np.concatenate([got["ya"], got["yc"]]), got["y"], 2e-6)
    near(got["rm1"], got["rm2"], 1e-6)
    near(got["rv1"], got["rv2"], 1e-6)
    near(got["dxc"], got["dx"][2:], 4e-6)
    wide = widen(x)
    near(got["y"], (wide - wide.mean(0)) / np.sqrt(wide.var(0) + 1e-5) * g, 2e-6)


def test_merging_twice_gives_the_same_bits(tmp_path):
    from norm.runner import run_calls
    parts = [(3, 0.25, 1.5), (0, 0, 0), (4, 1e4, 0.125), (1, -3, 0)]
    one, other = run_calls(tmp_path, [combine(*parts), combine(*parts)])
    for name in MOMENTS:
        same_bits(one[name], other[name])
