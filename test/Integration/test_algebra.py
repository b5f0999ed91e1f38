"""Norms in parts: the algebra of statistics against a norm of the whole, with numbers."""

import numpy as np
import pytest
from norm.tools import norm_run


def synchronized(c):
    """Two workers normalize 2 and 3 samples of one batch of c channels, and go back: what they
    exchange is the moments of their part, and its sums of gradients."""
    v, d, n = (f"tensor<{c}x{kind}>" for kind in ("f32", "f64", "i64"))
    part = (f"tensor<2x{c}xf32>", f"tensor<3x{c}xf32>")
    lines = [f"func.func @main(%x0: {part[0]}, %x1: {part[1]}, %dy0: {part[0]}, %dy1: {part[1]}, "
             f"%g: {v}, %b: {v}, %rm: {v}, %rv: {v}) "
             f"-> ({part[0]}, {part[1]}, {part[0]}, {part[1]}, {v}, {v}) {{"]
    for w, x in enumerate(part):
        lines.append(f"%n{w}, %m{w}, %q{w} = norm.moments %x{w} axes [0] about mean "
                     f": {x} -> count({n}) mean({d}) m2({d})")
    for name, one in (("n", n), ("m", d), ("q", d)):
        flat = one.replace(f"{c}x", f"{2 * c}x")
        lines += [f"%f{name} = tensor.concat dim(0) %{name}0, %{name}1 : ({one}, {one}) -> {flat}",
                  f"%{name}s = tensor.expand_shape %f{name} [[0, 1]] output_shape [2, {c}] "
                  f": {flat} into {one.replace('<', '<2x')}"]
    parts = {kind: kind.replace("<", "<2x") for kind in (n, d)}
    lines += [
        f"%n, %mean, %m2 = norm.combine_moments count(%ns : {parts[n]}) mean(%ms : {parts[d]}) "
        f"m2(%qs : {parts[d]}) -> count({n}) mean({d}) m2({d})",
        f"%r = norm.rstd %m2 count(%n : {n}) epsilon inside_sqrt 1.0e-5 compute f32 : {d} -> {v}",
        f"%rm1 = norm.update_running %rm, %mean count(%n : {n}) statistic mean momentum 0.1 "
        f": {v}, {d} -> {v}",
        f"%rv1 = norm.update_running %rv, %m2 count(%n : {n}) statistic variance momentum 0.1 "
        f": {v}, {d} -> {v}",
        f"%e = tensor.empty() : {d}"]
    given = f"mean(%mean : {d}) rstd(%r : {v}) scale(%g : {v})"
    for w, x in enumerate(part):
        lines += [f"%y{w} = norm.normalize %x{w} {given} shift(%b : {v}) axes [0] affine_axes [1] "
                  f": {x} -> {x}",
                  f"%a{w}, %c{w} = norm.backward_moments %dy{w}, %x{w} {given} axes [0] "
                  f"affine_axes [1] : {x}, {x} -> sum_g({d}) sum_gx({d})"]
    lines += [f"%{name} = linalg.add ins(%{name}0, %{name}1 : {d}, {d}) outs(%e : {d}) -> {d}"
              for name in "ac"]
    for w, x in enumerate(part):
        lines.append(f"%dx{w} = norm.backward_normalize %dy{w}, %x{w} {given} sum_g(%a : {d}) "
                     f"sum_gx(%c : {d}) count(%n : {n}) axes [0] epsilon inside_sqrt 1.0e-5 "
                     f"affine_axes [1] : {x}, {x} -> {x}")
    lines += [f"return %y0, %y1, %dx0, %dx1, %rm1, %rv1 "
              f": {part[0]}, {part[1]}, {part[0]}, {part[1]}, {v}, {v}", "}", ""]
    return "\n".join(lines)


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
        tmp_path, synchronized(channels),
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
func.func @main(%x: tensor<4x6xf32>, %k: tensor<4x6xi1>, %b: tensor<6xf32>)
    -> (tensor<6xi64>, tensor<4x6xf32>) {
  %n, %mean, %m2 = norm.moments %x mask(%k : tensor<4x6xi1>) axes [0] about mean
    : tensor<4x6xf32> -> count(tensor<6xi64>) mean(tensor<6xf32>) m2(tensor<6xf32>)
  %r = norm.rstd %m2 count(%n : tensor<6xi64>) epsilon inside_sqrt 1.0e-5
    : tensor<6xf32> -> tensor<6xf32>
  %y = norm.normalize %x mean(%mean : tensor<6xf32>) rstd(%r : tensor<6xf32>)
    shift(%b : tensor<6xf32>) axes [0] affine_axes [1] : tensor<4x6xf32> -> tensor<4x6xf32>
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
func.func @main(%x: tensor<3x5xf32>, %k: tensor<3x5xi1>)
    -> (tensor<i64>, tensor<f64>, tensor<f32>, tensor<3x5xf32>) {
  %n, %mean, %m2 = norm.moments %x mask(%k : tensor<3x5xi1>) axes [0, 1] about mean
    : tensor<3x5xf32> -> count(tensor<i64>) mean(tensor<f64>) m2(tensor<f32>)
  %r = norm.rstd %m2 count(%n : tensor<i64>) epsilon none correction 1 : tensor<f32> -> tensor<f32>
  %y = norm.normalize %x mean(%mean : tensor<f64>) rstd(%r : tensor<f32>) axes [0, 1]
    : tensor<3x5xf32> -> tensor<3x5xf32>
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
