"""Norms in parts: the algebra of statistics against a norm of the whole, with numbers."""

import numpy as np
import pytest
from norm.tools import norm_run

# Two workers with 2 and 3 samples; what they exchange is a sum, and the parts' moments.
SYNCHRONIZED = """
func.func @main(%x0: tensor<2xCxf32>, %x1: tensor<3xCxf32>, %dy0: tensor<2xCxf32>, %dy1: tensor<3xCxf32>,
                %g: tensor<Cxf32>, %b: tensor<Cxf32>, %rm: tensor<Cxf32>, %rv: tensor<Cxf32>)
    -> (tensor<2xCxf32>, tensor<3xCxf32>, tensor<2xCxf32>, tensor<3xCxf32>, tensor<Cxf32>, tensor<Cxf32>) {
  %n0, %m0, %q0 = norm.moments %x0 axes [0] about mean
    : tensor<2xCxf32> -> count(tensor<Cxi64>) mean(tensor<Cxf64>) m2(tensor<Cxf64>)
  %n1, %m1, %q1 = norm.moments %x1 axes [0] about mean
    : tensor<3xCxf32> -> count(tensor<Cxi64>) mean(tensor<Cxf64>) m2(tensor<Cxf64>)
  %n0e = tensor.expand_shape %n0 [[0, 1]] output_shape [1, C] : tensor<Cxi64> into tensor<1xCxi64>
  %n1e = tensor.expand_shape %n1 [[0, 1]] output_shape [1, C] : tensor<Cxi64> into tensor<1xCxi64>
  %ns = tensor.concat dim(0) %n0e, %n1e : (tensor<1xCxi64>, tensor<1xCxi64>) -> tensor<2xCxi64>
  %m0e = tensor.expand_shape %m0 [[0, 1]] output_shape [1, C] : tensor<Cxf64> into tensor<1xCxf64>
  %m1e = tensor.expand_shape %m1 [[0, 1]] output_shape [1, C] : tensor<Cxf64> into tensor<1xCxf64>
  %ms = tensor.concat dim(0) %m0e, %m1e : (tensor<1xCxf64>, tensor<1xCxf64>) -> tensor<2xCxf64>
  %q0e = tensor.expand_shape %q0 [[0, 1]] output_shape [1, C] : tensor<Cxf64> into tensor<1xCxf64>
  %q1e = tensor.expand_shape %q1 [[0, 1]] output_shape [1, C] : tensor<Cxf64> into tensor<1xCxf64>
  %qs = tensor.concat dim(0) %q0e, %q1e : (tensor<1xCxf64>, tensor<1xCxf64>) -> tensor<2xCxf64>
  %n, %mean, %m2 = norm.combine_moments count(%ns : tensor<2xCxi64>) mean(%ms : tensor<2xCxf64>)
    m2(%qs : tensor<2xCxf64>) -> count(tensor<Cxi64>) mean(tensor<Cxf64>) m2(tensor<Cxf64>)
  %r = norm.rstd %m2 count(%n : tensor<Cxi64>) epsilon inside_sqrt 1.0e-5 compute f32 : tensor<Cxf64> -> tensor<Cxf32>
  %y0 = norm.normalize %x0 mean(%mean : tensor<Cxf64>) rstd(%r : tensor<Cxf32>) scale(%g : tensor<Cxf32>)
    shift(%b : tensor<Cxf32>) axes [0] affine_axes [1] : tensor<2xCxf32> -> tensor<2xCxf32>
  %y1 = norm.normalize %x1 mean(%mean : tensor<Cxf64>) rstd(%r : tensor<Cxf32>) scale(%g : tensor<Cxf32>)
    shift(%b : tensor<Cxf32>) axes [0] affine_axes [1] : tensor<3xCxf32> -> tensor<3xCxf32>
  %rm1 = norm.update_running %rm, %mean count(%n : tensor<Cxi64>) statistic mean momentum 0.1
    : tensor<Cxf32>, tensor<Cxf64> -> tensor<Cxf32>
  %rv1 = norm.update_running %rv, %m2 count(%n : tensor<Cxi64>) statistic variance momentum 0.1
    : tensor<Cxf32>, tensor<Cxf64> -> tensor<Cxf32>
  %a0, %c0 = norm.backward_moments %dy0, %x0 mean(%mean : tensor<Cxf64>) rstd(%r : tensor<Cxf32>)
    scale(%g : tensor<Cxf32>) axes [0] affine_axes [1]
    : tensor<2xCxf32>, tensor<2xCxf32> -> sum_g(tensor<Cxf64>) sum_gx(tensor<Cxf64>)
  %a1, %c1 = norm.backward_moments %dy1, %x1 mean(%mean : tensor<Cxf64>) rstd(%r : tensor<Cxf32>)
    scale(%g : tensor<Cxf32>) axes [0] affine_axes [1]
    : tensor<3xCxf32>, tensor<3xCxf32> -> sum_g(tensor<Cxf64>) sum_gx(tensor<Cxf64>)
  %e = tensor.empty() : tensor<Cxf64>
  %sg = linalg.add ins(%a0, %a1 : tensor<Cxf64>, tensor<Cxf64>) outs(%e : tensor<Cxf64>) -> tensor<Cxf64>
  %sgx = linalg.add ins(%c0, %c1 : tensor<Cxf64>, tensor<Cxf64>) outs(%e : tensor<Cxf64>) -> tensor<Cxf64>
  %dx0 = norm.backward_normalize %dy0, %x0 mean(%mean : tensor<Cxf64>) rstd(%r : tensor<Cxf32>)
    scale(%g : tensor<Cxf32>) sum_g(%sg : tensor<Cxf64>) sum_gx(%sgx : tensor<Cxf64>) count(%n : tensor<Cxi64>)
    axes [0] epsilon inside_sqrt 1.0e-5 affine_axes [1] : tensor<2xCxf32>, tensor<2xCxf32> -> tensor<2xCxf32>
  %dx1 = norm.backward_normalize %dy1, %x1 mean(%mean : tensor<Cxf64>) rstd(%r : tensor<Cxf32>)
    scale(%g : tensor<Cxf32>) sum_g(%sg : tensor<Cxf64>) sum_gx(%sgx : tensor<Cxf64>) count(%n : tensor<Cxi64>)
    axes [0] epsilon inside_sqrt 1.0e-5 affine_axes [1] : tensor<3xCxf32>, tensor<3xCxf32> -> tensor<3xCxf32>
  return %y0, %y1, %dx0, %dx1, %rm1, %rv1
    : tensor<2xCxf32>, tensor<3xCxf32>, tensor<2xCxf32>, tensor<3xCxf32>, tensor<Cxf32>, tensor<Cxf32>
}
"""


@pytest.mark.parametrize("place", [0.0, 1e6])
def test_0_8_unequal_parts_are_one_batch(place, tmp_path):
    rng = np.random.default_rng(8)
    channels = 37
    x = rng.standard_normal((5, channels)) * 4
    x[:, 0] = [0, 2, 10, 12, 14]  # The mean of the parts' means is 6.5, that of all 7.6.
    x = (x + place).astype(np.float32)
    dy = rng.standard_normal((5, channels)).astype(np.float32)
    g, b, rm = (rng.standard_normal(channels).astype(np.float32) for _ in range(3))
    rv = rng.random(channels).astype(np.float32)
    y0, y1, dx0, dx1, new_mean, new_variance = norm_run(
        tmp_path, SYNCHRONIZED.replace("xCx", f"x{channels}x").replace("<Cx", f"<{channels}x")
        .replace(" C]", f" {channels}]"),
        [x[:2], x[2:], dy[:2], dy[2:], g, b, rm, rv], ["f32"] * 6)

    wide = x.astype(np.float64)
    mean, variance = wide.mean(axis=0), wide.var(axis=0)
    assert mean[0] == place + 7.6 or place and abs(mean[0] - place - 7.6) < 0.1
    if not place:
        assert variance[0] == pytest.approx(31.04)
    r = 1 / np.sqrt(variance + 1e-5)
    xhat, grad = (wide - mean) * r, dy * g.astype(np.float64)
    dx = r * (grad - grad.mean(axis=0) - xhat * (grad * xhat).mean(axis=0))

    def near(found, expected):
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=4e-6)

    near(np.concatenate([y0, y1]), xhat * g + b)
    near(np.concatenate([dx0, dx1]), dx)
    near(new_mean, 0.9 * rm + 0.1 * mean)
    near(new_variance, 0.9 * rv + 0.1 * wide.var(axis=0, ddof=1))


RAGGED = """
func.func @main(%x: tensor<4x6xf32>, %k: tensor<4x6xi1>, %b: tensor<6xf32>) -> (tensor<6xi64>, tensor<4x6xf32>) {
  %n, %mean, %m2 = norm.moments %x mask(%k : tensor<4x6xi1>) axes [0] about mean
    : tensor<4x6xf32> -> count(tensor<6xi64>) mean(tensor<6xf32>) m2(tensor<6xf32>)
  %r = norm.rstd %m2 count(%n : tensor<6xi64>) epsilon inside_sqrt 1.0e-5 : tensor<6xf32> -> tensor<6xf32>
  %y = norm.normalize %x mean(%mean : tensor<6xf32>) rstd(%r : tensor<6xf32>) shift(%b : tensor<6xf32>)
    axes [0] affine_axes [1] : tensor<4x6xf32> -> tensor<4x6xf32>
  return %n, %y : tensor<6xi64>, tensor<4x6xf32>
}
"""


def test_0_6_positions_that_one_sequence_reaches(tmp_path):
    # Lengths 1, 1, 1 and 6: from position 2 on there is one element, whose y is the shift.
    mask = np.arange(6)[None, :] < np.array([1, 1, 1, 6])[:, None]
    x = np.where(mask, np.arange(24.0).reshape(4, 6) ** 2 / 7, np.nan).astype(np.float32)
    shift = np.linspace(-3, 5, 6).astype(np.float32)
    count, y = norm_run(tmp_path, RAGGED, [x, mask, shift], ["i64", "f32"])
    assert count.tolist() == [4, 1, 1, 1, 1, 1]
    assert y[3, 1:].tolist() == shift[1:].tolist()
    assert np.isnan(y[:3, 1:]).all() and np.isfinite(y[:, 0]).all()


WHOLE = """
func.func @main(%x: tensor<3x5xf32>, %k: tensor<3x5xi1>) -> (tensor<i64>, tensor<f64>, tensor<f32>, tensor<3x5xf32>) {
  %n, %mean, %m2 = norm.moments %x mask(%k : tensor<3x5xi1>) axes [0, 1] about mean
    : tensor<3x5xf32> -> count(tensor<i64>) mean(tensor<f64>) m2(tensor<f32>)
  %r = norm.rstd %m2 count(%n : tensor<i64>) epsilon none correction 1 : tensor<f32> -> tensor<f32>
  %y = norm.normalize %x mean(%mean : tensor<f64>) rstd(%r : tensor<f32>) axes [0, 1] : tensor<3x5xf32> -> tensor<3x5xf32>
  return %n, %mean, %m2, %y : tensor<i64>, tensor<f64>, tensor<f32>, tensor<3x5xf32>
}
"""


@pytest.mark.parametrize("counted", [15, 7, 1, 0])
def test_all_axes(counted, tmp_path):
    rng = np.random.default_rng(counted)
    x = rng.standard_normal((3, 5)).astype(np.float32)
    mask = rng.permuted(np.arange(15) < counted).reshape(3, 5)
    count, mean, m2, y = norm_run(tmp_path, WHOLE, [x, mask], ["i64", "f64", "f32", "f32"])
    assert count == counted
    values = x[mask].astype(np.float64)
    np.testing.assert_allclose(mean, values.mean() if counted else 0, atol=1e-7)
    np.testing.assert_allclose(m2, ((values - mean)**2).sum(), rtol=1e-6)
    if counted > 1:
        np.testing.assert_allclose(y, (x - mean) / values.std(ddof=1), rtol=2e-6, atol=1e-7)
    elif counted == 1:  # Not more elements than the correction.
        assert np.isnan(y).all()
