"""The oracle against a second reading of the contract: one element at a time, in
60-digit decimals, with plain loops over index tuples."""

import itertools
from decimal import Decimal, localcontext

import numpy as np
import pytest
from norm.reference import NormSpec, evaluate, layer_norm, rms_norm
from norm.types import BF16, F16, F32, F64, cast, float_type, round_to, widen


def dec(value):
    return Decimal(float(value))


def rnd(value, target):
    return dec(round_to(np.longdouble(str(value)), target))


def slow(spec, x, residual=None, scale=None, shift=None):
    """y, mean, variance, rstd as dicts of Decimals, keyed by index; unrounded
    where the contract leaves rounding to the implementation."""
    rank = x.ndim
    axes = [a % rank for a in spec.axes]
    affine = axes if spec.affine_axes is None else [a % rank for a in spec.affine_axes]
    affine = sorted(affine)
    compute = spec.compute_type(x, residual)
    result = float_type(spec.result or x.dtype)
    narrow = compute in (F16, BF16)
    step = (lambda v: rnd(v, compute)) if narrow else (lambda v: v)
    kept = [a for a in range(rank) if a not in axes]
    groups = {}
    for index in itertools.product(*map(range, x.shape)):
        c = dec(x[index])
        if residual is not None:
            c += dec(residual[index])
            stored = float_type(spec.sum or x.dtype)
            c = rnd(c, compute if spec.sum_rounding == "compute" else stored)
        groups.setdefault(tuple(index[a] for a in kept), {})[index] = rnd(c, compute)
    y, means, variances, rstds = {}, {}, {}, {}
    for key, row in groups.items():
        m = step(sum(row.values()) / len(row)) if spec.kind == "layer_norm" else Decimal(0)
        q = step(sum((c - m) ** 2 for c in row.values()) / (len(row) - spec.correction))
        e = rnd(dec(spec.epsilon), compute)
        denominator = {"inside_sqrt": (q + e).sqrt(), "outside_sqrt": q.sqrt() + e,
                       "max_inside": max(q, e).sqrt(), "max_outside": max(q.sqrt(), e),
                       "none": q.sqrt()}[spec.placement]
        if denominator == 0 and spec.zero_policy == "zero":
            r = Decimal(0)
        else:
            r = step(1 / denominator)
        means[key], variances[key], rstds[key] = m, q, r
        for index, c in row.items():
            value = step((c - m) * r)
            at = tuple(index[a] for a in affine)
            gain = None if scale is None else rnd(
                rnd(dec(scale[at]), compute) + dec(spec.scale_offset), compute)
            bias = None if shift is None else rnd(dec(shift[at]), compute)
            if spec.affine_in == "result":
                value = rnd(value, float_type(x.dtype))
                if gain is not None:
                    value = rnd(value * rnd(gain, result), result)
                if bias is not None:
                    value = value + rnd(bias, result)
            else:
                if gain is not None:
                    value = step(value * gain)
                if bias is not None:
                    value = step(value + bias)
            y[index] = value
    return y, means, variances, rstds


def array(values, shape, target):
    found = np.empty(shape)
    for index, value in values.items():
        found[index] = float(round_to(np.longdouble(str(value)), target))
    return found


SPECS = [
    dict(axes=(2,)), dict(axes=(-1, 0)), dict(axes=(1,)), dict(axes=(0, 1, 2)),
    dict(axes=(2,), epsilon=0.3), dict(axes=(2,), epsilon=0.3, placement="outside_sqrt"),
    dict(axes=(2,), epsilon=0.9, placement="max_inside"),
    dict(axes=(2,), epsilon=0.9, placement="max_outside"),
    dict(axes=(2,), placement="none"), dict(axes=(1, 2), affine_axes=(0,)),
    dict(axes=(2,), affine_axes=(0, 2)), dict(axes=(1,), scale_offset=1.0),
    dict(axes=(2,), correction=1), dict(axes=(2,), affine_in="result"),
    dict(axes=(2,), affine_in="result", scale_offset=1.0),
    dict(axes=(2,), sum_rounding="compute"), dict(axes=(1, 2), compute="f64"),
    dict(axes=(2,), compute="bf16"), dict(axes=(2,), compute="f16", scale_offset=1.0),
    dict(axes=(2,), compute="bf16", affine_in="result"),
]
TYPES = [(F64,) * 4, (F32,) * 4, (BF16,) * 4, (F16, F16, F32, F32), (BF16, F32, F32, BF16),
         (BF16, BF16, BF16, F32)]


@pytest.mark.parametrize(
    "kind,spec", [(kind, spec) for kind in ("layer_norm", "rms_norm") for spec in SPECS
                  if kind == "layer_norm" or "correction" not in spec],
    ids=lambda v: v if isinstance(v, str) else "-".join(map(str, v.values())))
@pytest.mark.parametrize("types", TYPES, ids=lambda t: "".join(map(str, t)))
def test_second_reading(kind, spec, types):
    x_type, residual_type, parameter_type, result_type = types
    rng = np.random.default_rng(3)
    shape = (2, 3, 5)

    def draw(element, shape, mean=0.0):
        return cast(mean + rng.standard_normal(shape), element)

    spec = NormSpec(kind=kind, result=result_type.name, **spec)
    parameters = tuple(shape[a] for a in spec.affine(3))
    x, residual = draw(x_type, shape, 1.5), draw(residual_type, shape)
    scale, shift = draw(parameter_type, parameters), draw(parameter_type, parameters)
    got = evaluate(spec, x, residual, scale, shift)
    with localcontext() as context:
        context.prec = 60
        y, mean, variance, rstd = slow(spec, x, residual, scale, shift)
    compute = spec.compute_type(x, residual)
    kept = got.variance.shape
    assert np.array_equal(widen(got.y), array(y, shape, result_type))
    assert np.array_equal(widen(got.variance), array(variance, kept, compute))
    assert np.array_equal(widen(got.rstd), array(rstd, kept, compute))
    if kind == "layer_norm":
        assert np.array_equal(widen(got.mean), array(mean, kept, compute))


def f32(values):
    return np.array(values, np.float32)


def test_far_means_are_exact():
    """f64 rows 1e7 deviations from 0, where extended precision alone loses 11 bits."""
    rng = np.random.default_rng(4)
    x = 1e7 + rng.standard_normal((2, 257))
    got = layer_norm(x, axes=(1,))
    with localcontext() as context:
        context.prec = 60
        y, mean, *_ = slow(NormSpec(kind="layer_norm", axes=(1,)), x)
    assert np.array_equal(got.y, array(y, x.shape, F64))
    assert np.array_equal(got.mean, array(mean, (2,), F64))


def test_constant_and_zero_rows():
    x = f32(np.full((2, 100), 1e10))
    x[1] = 0
    got = layer_norm(x, axes=(1,), shift=f32(np.arange(100)))
    assert np.array_equal(got.y, np.broadcast_to(np.arange(100), (2, 100)))
    assert np.array_equal(got.mean, f32([1e10, 0])) and not got.variance.any()
    assert np.isnan(layer_norm(x, axes=(1,), placement="none").y).all()
    zeroed = layer_norm(x, axes=(1,), placement="none", zero_policy="zero")
    assert not zeroed.y.any() and not zeroed.rstd.any()
    assert np.array_equal(rms_norm(x, axes=(1,), placement="none").rstd, f32([1e-10, np.inf]))


def test_empty_extents():
    for shape, axes in (((3, 0), (1,)), ((0, 4), (1,)), ((2, 0, 3), (0, 2))):
        got = layer_norm(np.zeros(shape, np.float32), axes=axes, epsilon=0.25)
        assert got.y.shape == shape
        assert not got.mean.any() and not got.variance.any() and (got.rstd == 2).all()
        assert got.mean.shape == tuple(n for a, n in enumerate(shape) if a not in axes)


def test_count_at_most_correction_is_nan():
    got = layer_norm(f32([[1.0], [2.0]]), axes=(1,), correction=1)
    assert np.isnan(got.y).all() and np.isnan(got.variance).all()


def test_not_finite_rows_stay_alone():
    x = f32([[1, 2, 3], [1, np.inf, 3], [1, np.nan, 3]])
    layer, rms = layer_norm(x, axes=(1,)), rms_norm(x, axes=(1,))
    assert np.isfinite(layer.y[0]).all() and np.isnan(layer.y[1:]).all()
    assert layer.mean[1] == np.inf and np.isnan(layer.variance[1])
    assert np.array_equal(rms.y[1], f32([0, np.nan, 0]), equal_nan=True)
    assert rms.rstd[1] == 0 and np.isnan(rms.y[2]).all()


def test_sum_is_rounded_once_and_by_choice():
    x, r = (cast(np.float64(v), BF16) for v in ([256.0] * 4, [0.5, -0.5, 0.5, -0.5]))
    stored = layer_norm(x, r, axes=(0,))
    unrounded = layer_norm(x, r, axes=(0,), sum_rounding="compute")
    assert not widen(stored.y).any() and np.allclose(widen(unrounded.y), [1, -1, 1, -1])
    assert (widen(stored.sum) == 256).all() and (widen(unrounded.sum) == 256).all()


def test_result_types():
    x = cast(np.ones((2, 3)), BF16)
    got = rms_norm(x, scale=f32([1, 2, 3]), axes=(1,), result="f32", affine_in="result")
    assert got.y.dtype == np.float32 and got.rstd.dtype == np.float32
    got = rms_norm(x, axes=(1,), compute="bf16")
    assert got.y.dtype == BF16.dtype and got.rstd.dtype == BF16.dtype
    assert layer_norm(np.ones(3), axes=(0,)).mean.dtype == np.float64
