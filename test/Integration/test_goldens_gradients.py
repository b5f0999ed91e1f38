"""Worked examples of gradients; a test's name carries the example's id."""

import numpy as np
from norm.golden import call, golden, near, same_bits
from norm.types import widen

ALL = ("dx", "dscale", "dshift")
JACOBIAN = np.array([[.204124, -.408248, .204124], [-.408248, .816497, -.408248],
                     [.204124, -.408248, .204124]])


def layer(dy, x, element="f32", **rest):
    """A layer_norm_backward call over the last axis."""
    return call("layer_norm_backward", x, element, dy=dy, **rest)


def rms(dy, x, element="f32", **rest):
    return call("rms_norm_backward", x, element, dy=dy, **rest)


@golden(layer(np.eye(3), np.tile([1.0, 2, 3], (3, 1)), placement="none"),
        layer(np.eye(3), np.tile([1.0, 2, 3], (3, 1)), placement="none", mean=[2.0] * 3,
              rstd=[1.5**0.5] * 3),
        layer(np.ones((1, 3)), [[1.0, 2, 3]], "f64", placement="none"),
        layer(np.eye(3), np.tile([101.0, 102, 103], (3, 1)), "f64"))
def test_1_15_jacobian(got):
    """(I - 11'/d - x^x^'/d)/sigma, also with epsilon where x^ has the same one."""
    for results in got[:2]:
        near(results["dx"], JACOBIAN, 2e-6)
    assert np.abs(got[2]["dx"]).max() < 1e-15  # J * 1
    sigma = np.sqrt(2 / 3 + 1e-5)
    xhat = np.array([-1, 0, 1]) / sigma
    near(got[3]["dx"], (np.eye(3) - 1 / 3 - np.outer(xhat, xhat) / 3) / sigma, 1e-13)


RNG = np.random.default_rng(0)
X, DY, GAIN = RNG.standard_normal((5, 64)) * 2 + 1, RNG.standard_normal((5, 64)), RNG.random(64)


@golden(layer(DY, X, "f64", scale=GAIN, epsilon=0.1, results=ALL),
        layer(DY, X, "f64", scale=GAIN, placement="none"),
        call("group_norm_backward", X[:, :, None], "f64", (1, 2), dy=DY[:, :, None],
             groups=8, channel_axis=1, scale=GAIN),
        call("batch_norm_training_backward", X.T, "f64", (1,), dy=DY.T),
        call("instance_norm_backward", X[None], "f64", (2,), dy=DY[None]))
def test_1_16_what_a_gradient_has_no_part_of(got):
    g, v = DY * GAIN, X.var(1)
    r = 1 / np.sqrt(v + 0.1)
    xhat = (X - X.mean(1)[:, None]) * r[:, None]
    near((got[0]["dx"] * xhat).sum(1), r * (g * xhat).sum(1) * 0.1 / (v + 0.1), 1e-10)
    assert np.abs((got[1]["dx"] * xhat).sum(1)).max() < 1e-12
    near(got[0]["dscale"], (DY * xhat).sum(0), 1e-13)
    near(got[0]["dshift"], DY.sum(0), 1e-13)
    sums = (got[0]["dx"].sum(1), got[1]["dx"].sum(1), got[2]["dx"].reshape(5, 8, 8).sum(2),
            got[3]["dx"].sum(1), got[4]["dx"].sum(2))
    assert max(np.abs(s).max() for s in sums) < 1e-12


SCALES = (1, 0.01, -3, 1000)


@golden(*(kind(DY[:1], X[:1] * a, placement="none") for kind in (layer, rms) for a in SCALES))
def test_1_17_gradients_shrink_as_rows_grow(got):
    for results in (got[:4], got[4:]):
        sizes = [np.linalg.norm(widen(one["dx"])) * abs(a)
                 for one, a in zip(results, SCALES, strict=True)]
        near(sizes, [sizes[0]] * 4, 1e-5)


@golden(layer(DY, X + 3, "f64"), layer(DY, X, "f64"), rms(DY, X, "f64"),
        rms(DY, X + 3, "f64"))
def test_1_16_shift_invariance_of_the_gradient(got):
    near(got[0]["dx"], got[1]["dx"], 1e-12)
    assert np.abs(got[2]["dx"].sum(1)).max() > 0.1
    assert np.abs(got[2]["dx"] - got[3]["dx"]).max() > 0.1


TIED = [[3.0, 5, 3, 5]]  # mean 4, variance 1
G = [[1.0, 2, -1, 0.5]]
PLACES = ("max_inside", "max_outside")


@golden(layer(G, TIED, placement="none"),
        *(layer(G, TIED, placement=p, epsilon=e) for p in PLACES for e in (1.0, 1.5, 0.5)),
        layer(G, TIED, placement="max_outside", epsilon=1.0, mean=[4], rstd=[1], variance=[1]),
        layer(G, TIED, placement="max_outside", epsilon=1.0, mean=[4], rstd=[1], variance=[0.5]))
def test_gradients_at_a_tie_of_a_maximum(got):
    """The tie is not clamped; where it is, the factor is a constant."""
    centred = np.array(G) - np.mean(G)
    free = centred - np.array([[-1, 1, -1, 1]]) * (1 * -1 + 2 + 1 + 0.5) / 4
    for number in (0, 1, 3, 4, 6, 7):
        near(got[number]["dx"], free)
    near(got[2]["dx"], centred / np.sqrt(1.5))
    near(got[5]["dx"], centred / 1.5)
    near(got[8]["dx"], centred)


FLAT = np.full((1, 4), 7.0)


@golden(*(layer(G, FLAT, placement=p, epsilon=0.01, results=ALL)
          for p in ("inside_sqrt", "outside_sqrt", *PLACES)),
        *(rms(G, 0 * FLAT, placement=p, epsilon=0.01, results=ALL)
          for p in ("inside_sqrt", "outside_sqrt", *PLACES)),
        *(call("l2_norm_backward", 0 * FLAT, dy=G, placement=p, epsilon=0.01)
          for p in ("inside_sqrt", "outside_sqrt", *PLACES)),
        layer(G, FLAT, placement="none", zero_policy="zero"))
def test_gradients_of_a_flat_row_are_finite(got):
    for number, results in enumerate(got[:12]):
        size = (10, 100, 10, 100)[number % 4]
        near(results["dx"], size * (np.array(G) - (np.mean(G) if number < 4 else 0)))
        if number < 8:
            assert not results["dscale"].any()
    assert not got[12]["dx"].any()


COLUMNS = dict(axes=(0,), dy=DY, scale=GAIN)


@golden(call("batch_norm_training_backward", X, mean=X.mean(0), rstd=1 / X.std(0),
             placement="none", results=ALL, **COLUMNS),
        call("batch_norm_inference_backward", X, mean=X.mean(0), rstd=1 / X.std(0),
             placement="none", results=ALL, **COLUMNS),
        call("batch_norm_inference_backward", X, mean=X.mean(0), variance=X.var(0),
             results=ALL, **COLUMNS))
def test_inference_has_no_statistic_terms(got):
    xhat = (X - X.mean(0)) / X.std(0)
    near(got[1]["dx"], DY * GAIN / X.std(0))
    near(got[2]["dx"], DY * GAIN / np.sqrt(X.var(0) + 1e-5))
    assert np.abs(got[0]["dx"] - got[1]["dx"]).max() > 0.1
    for results in got[:2]:
        near(results["dscale"], (DY * xhat).sum(0), 1e-5)
    same_bits(got[0]["dshift"], got[1]["dshift"])


@golden(layer(DY, X, scale=GAIN), layer(DY, X, scale=GAIN, dsum=X), layer(DY, X, scale=GAIN - 1,
                                                                      scale_offset=1.0),
        layer(DY, X, results=ALL), layer(DY, X, scale=GAIN, results=ALL),
        layer(DY, X / 2, residual=X / 2, sum_rounding="compute", scale=GAIN, dsum=X))
def test_residuals_and_offsets(got):
    near(got[1]["dx"], widen(got[0]["dx"]) + X, 1e-6)
    near(got[5]["dx"], got[1]["dx"], 1e-6)
    near(got[2]["dx"], got[0]["dx"], 1e-6)
    # The gradient of the scale does not depend on the scale.
    near(got[3]["dscale"], got[4]["dscale"], 1e-6)
