"""The oracle's gradients are the derivatives of its own forward ops: central differences
along random directions, in f64, of the extended-precision values before y's rounding."""

import itertools

import numpy as np
import pytest
from norm.reference import NormSpec, evaluate, evaluate_backward, from_rows, to_rows
from norm.types import BF16, F64, cast, widen

PLACEMENTS = ("inside_sqrt", "outside_sqrt", "max_inside", "max_outside", "none")
SHAPE = (3, 4, 5)
KINDS = {
    "layer_norm": dict(axes=(2,)), "rms_norm": dict(axes=(1, 2)), "l2_norm": dict(axes=(2,)),
    "group_norm": dict(axes=(1, 2), groups=2, channel_axis=1),
    "instance_norm": dict(axes=(2,), affine_axes=(1,)),
    "batch_norm_training": dict(axes=(0, 2)), "batch_norm_inference": dict(axes=(0, 2))}
OPTIONS = [
    {}, dict(scale_offset=1.0), dict(affine_axes=(0, 2)), dict(sum_rounding="compute"),
    dict(correction=1), dict(affine_in="result", scale_offset=-0.5),
    dict(correction=1, sum_rounding="compute", affine_axes=(1,))]


def draw(rng, shape, mean=0.0):
    return mean + rng.standard_normal(shape)


def setting(kind, placement, options):
    """The forward spec and its operands, all f64; epsilon among the statistics."""
    epsilon = 2.5 if kind == "l2_norm" else 0.6
    forward = NormSpec(kind=kind, epsilon=epsilon, placement=placement,
                       **{**KINDS[kind], **options})
    rng = np.random.default_rng(17)
    x = draw(rng, SHAPE, 0.3) * np.linspace(0.2, 2, 3)[:, None, None]
    operands = dict(x=x)
    parameters = tuple(SHAPE[a] for a in forward.affine(3))
    operands["scale"], operands["shift"] = draw(rng, parameters, 1.0), draw(rng, parameters)
    if options.get("sum_rounding"):
        operands["residual"] = draw(rng, SHAPE)
    if kind == "batch_norm_inference":
        kept = forward.kept_shape(SHAPE)
        operands["mean"], operands["variance"] = draw(rng, kept), draw(rng, kept) ** 2
    return forward, operands, draw(rng, SHAPE)


def loss(forward, operands, dy):
    return (from_rows(evaluate(forward, **operands).rows_y, SHAPE, forward) * dy).sum()


def slope(forward, operands, dy, name, direction, step=1e-5):
    ends = [loss(forward, {**operands, name: operands[name] + sign * step * direction}, dy)
            for sign in (1, -1)]
    return float((ends[0] - ends[1]) / (2 * step))


def backward(forward, operands, dy, saved=(), **more):
    fields = {k: v for k, v in vars(forward).items() if k not in ("kind", "sum", "running")}
    if "residual" not in operands:
        fields["sum_rounding"] = "stored"
    spec = NormSpec(kind=f"{forward.kind}_backward", **fields)
    given = {k: v for k, v in operands.items() if k != "shift"}
    reference = evaluate(forward, **operands)
    given.update({name: getattr(reference, name) for name in saved})
    return evaluate_backward(spec, dy, **given, **more)


def allowed(kind, options):
    return not (options.get("correction") and kind in ("rms_norm", "l2_norm"))


CASES = [(kind, placement, options) for kind, placement, options in itertools.product(
    KINDS, PLACEMENTS, OPTIONS) if allowed(kind, options)]


def close(actual, expected, size=1.0, tolerance=1e-7):
    error = np.abs(widen(actual) - expected).max(initial=0)
    assert error <= tolerance * max(size, 1), f"expected {expected}, got {actual}"


@pytest.mark.parametrize("kind,placement,options", CASES, ids=lambda v: v if isinstance(
    v, str) else "-".join(f"{k}={x}" for k, x in v.items()) or "plain")
def test_central_differences(kind, placement, options):
    forward, operands, dy = setting(kind, placement, options)
    got = backward(forward, operands, dy)
    rng = np.random.default_rng(5)
    names = dict(x="dx", residual="dx", scale="dscale", shift="dshift")
    for operand, result in names.items():
        if operand not in operands:
            continue
        for _ in range(3):
            direction = rng.standard_normal(operands[operand].shape)
            expected = slope(forward, operands, dy, operand, direction)
            close((got[result] * direction).sum(), expected, abs(expected))
    # Saved statistics, any of them, give the same as recomputed ones.
    centred = ("mean",) if forward.centred else ()
    inference = kind == "batch_norm_inference"
    for saved in ((), (*centred, "rstd"), (*centred, "variance"),
                  (*centred, "variance", "rstd")):
        if inference and not saved:
            continue
        other = backward(forward, {**operands}, dy, saved)
        for name in names.values():
            close(other[name], got[name], np.abs(got[name]).max(), 1e-13)


def test_sum_gradient_is_added():
    forward, operands, dy = setting("layer_norm", "inside_sqrt", {})
    dsum = np.random.default_rng(6).standard_normal(SHAPE)
    plain, with_sum = (backward(forward, operands, dy, **more) for more in ({}, dict(dsum=dsum)))
    close(with_sum["dx"], plain["dx"] + dsum, 1, 1e-15)


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in (
    "rms_norm", "l2_norm", "batch_norm_inference")])
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_shift_invariance_1_16(kind, placement):
    """sum over a row of dx is 0; of dx * x^ it is r*n*mean(g x^)*eps/(v + eps)."""
    forward, operands, dy = setting(kind, placement, {})
    got, reference = backward(forward, operands, dy), evaluate(forward, **operands)
    rows = to_rows(widen(got["dx"]), forward)
    assert np.abs(rows.sum(axis=1)).max() < 1e-13
    if placement == "inside_sqrt":
        g = to_rows(dy, forward) * reference.rows_gain
        products = (g * reference.rows_xhat).sum(axis=1)
        v = reference.row_variance
        expected = reference.row_rstd * products * forward.epsilon / (v + forward.epsilon)
        close((rows * reference.rows_xhat).sum(axis=1), expected)
    if placement == "none":
        assert np.abs((rows * reference.rows_xhat).sum(axis=1)).max() < 1e-12


@pytest.mark.parametrize("kind", ["rms_norm", "l2_norm"])
def test_scale_invariance(kind):
    forward, operands, dy = setting(kind, "none", {})
    got, reference = backward(forward, operands, dy), evaluate(forward, **operands)
    assert np.abs((got["dx"] * from_rows(reference.rows_xhat, SHAPE, forward)).sum()) < 1e-12


def test_jacobian_1_15():
    spec = NormSpec(kind="layer_norm_backward", axes=(1,), placement="none")
    jacobian = evaluate_backward(spec, np.eye(3), np.tile([1.0, 2, 3], (3, 1)))["dx"]
    expected = [[.204124, -.408248, .204124], [-.408248, .816497, -.408248],
                [.204124, -.408248, .204124]]
    assert np.allclose(jacobian, expected, atol=5e-7)
    assert np.abs(jacobian.sum(axis=0)).max() < 1e-15  # J * 1


def test_gradients_shrink_with_scale_1_17():
    rng = np.random.default_rng(7)
    x, dy = rng.standard_normal((2, 1, 64))
    spec = NormSpec(kind="layer_norm_backward", axes=(1,), placement="none")
    sizes = [np.linalg.norm(evaluate_backward(spec, dy, a * x)["dx"]) * abs(a)
             for a in (1, 0.01, -3, 1000)]
    assert np.allclose(sizes, sizes[0], rtol=1e-12)


@pytest.mark.parametrize("kind,row,epsilon", [
    ("layer_norm", [3.0, 5, 3, 5], 1.0), ("rms_norm", [2.0, -2, 2, 2], 4.0),
    ("l2_norm", [1.0, 1, 1, -1], 4.0)])
def test_ties_are_not_clamped(kind, row, epsilon):
    """At q = eps the gradient is that of the branch without epsilon; just below, that
    of a constant factor."""
    rng = np.random.default_rng(8)
    x, dy = np.array([row]), rng.standard_normal((1, 4))

    def gradient(x, **attributes):
        spec = NormSpec(kind=f"{kind}_backward", axes=(1,), **attributes)
        return evaluate_backward(spec, dy, x)["dx"]

    free = gradient(x, placement="none")
    for placement, e in (("max_inside", epsilon), ("max_outside", np.sqrt(epsilon))):
        assert np.allclose(gradient(x, placement=placement, epsilon=e), free, rtol=1e-14)
        above = np.nextafter(e, 9)
        clamped = gradient(x, placement=placement, epsilon=above)
        centred = dy - (dy.mean() if kind == "layer_norm" else 0)
        assert np.allclose(clamped, centred / np.sqrt(epsilon), rtol=1e-14)
        assert not np.allclose(clamped, free)


@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm", "l2_norm"])
@pytest.mark.parametrize("placement", PLACEMENTS[:4])
def test_zero_statistic_is_finite(kind, placement):
    x = np.full((1, 6), 7.0 if kind == "layer_norm" else 0.0)
    dy = np.random.default_rng(9).standard_normal((1, 6))
    spec = NormSpec(kind=f"{kind}_backward", axes=(1,), epsilon=0.01, placement=placement)
    r = 10 if placement.endswith("inside") or placement == "inside_sqrt" else 100
    got = evaluate_backward(spec, dy, x)
    centred = dy - (dy.mean() if kind == "layer_norm" else 0)
    assert np.allclose(got["dx"], r * centred, rtol=1e-13)
    assert not got["dscale"].any()
    zero = NormSpec(kind=f"{kind}_backward", axes=(1,), placement="none", zero_policy="zero")
    assert not evaluate_backward(zero, dy, x)["dx"].any()


def test_empty_and_count_at_most_correction():
    for shape, axes in (((3, 0), (1,)), ((0, 4), (1,)), ((2, 0, 3), (0, 2))):
        spec = NormSpec(kind="layer_norm_backward", axes=axes, epsilon=0.25)
        got = evaluate_backward(spec, np.zeros(shape), np.zeros(shape))
        assert got["dx"].shape == shape and not got["dscale"].any()
        assert got["dscale"].shape == tuple(shape[a] for a in axes)
    spec = NormSpec(kind="layer_norm_backward", axes=(1,), correction=1)
    assert np.isnan(evaluate_backward(spec, np.ones((2, 1)), np.ones((2, 1)))["dx"]).all()


def test_types_and_rounding():
    rng = np.random.default_rng(10)
    x, dy = (cast(rng.standard_normal((4, 8)), BF16) for _ in range(2))
    forward = NormSpec(kind="rms_norm", axes=(1,), affine_in="result")
    rounded = evaluate(forward, x).y  # without a scale y is x^ in x's type
    spec = NormSpec(kind="rms_norm_backward", axes=(1,), affine_in="result", gradients="f32")
    got = evaluate_backward(spec, dy, x)
    assert got["dx"].dtype == BF16.dtype and got["dscale"].dtype == np.float32
    assert np.array_equal(got["dscale"], (widen(dy) * widen(rounded)).sum(0).astype(np.float32))
    # A narrow compute type rounds recomputed statistics and nothing else.
    narrow = NormSpec(kind="rms_norm_backward", axes=(1,), compute="bf16", result="f64")
    saved = evaluate(NormSpec(kind="rms_norm", axes=(1,), compute="bf16"), x).rstd
    plain = NormSpec(kind="rms_norm_backward", axes=(1,), result="f64")
    one = evaluate_backward(narrow, dy, x)["dx"]
    assert np.array_equal(one, evaluate_backward(plain, dy, x, rstd=saved)["dx"])
    assert (one != evaluate_backward(plain, dy, x)["dx"]).all()
    assert evaluate_backward(spec, dy, x).compute.precision < F64.precision
