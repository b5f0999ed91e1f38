"""The promise tells right implementations from wrong ones: f32 emulations of both."""

import numpy as np
import pytest
from norm.promise import check, limits
from norm.reference import layer_norm, rms_norm
from norm.types import BF16, F16, cast, round_to, widen

f32 = np.float32


def blocked_sum(values):
    """f32: chains of at most 64 additions, then the next level."""
    while values.size > 1:
        padded = np.zeros(-(-values.size // 64) * 64, f32)
        padded[:values.size] = values
        values = np.add.accumulate(padded.reshape(-1, 64), axis=1, dtype=f32)[:, -1]
    return values[0]


def emulate(x, algorithm, epsilon=1e-5):
    """LN of one f32 row in f32 arithmetic; y, mean, variance, rstd."""
    n = f32(x.size)
    total = blocked_sum if algorithm != "one pass" else (lambda v: np.add.accumulate(v)[-1])
    m = total(x) / n
    if algorithm == "one pass":
        q = total(x * x) / n - m * m
        centred = x - m
    else:
        d = x - m
        delta = total(d) / n if algorithm == "corrected" else f32(0)
        q = max(total(d * d) - n * delta * delta, f32(0)) / n
        centred = d - delta
        m = m + delta
    r = f32(1) / np.sqrt(q + f32(epsilon))
    return dict(y=(centred * r)[None], mean=f32([m]), variance=f32([q]), rstd=f32([r]))


def f32_array(v):
    return np.asarray(v, f32)


@pytest.mark.parametrize("ratio", [0, 1, 1e3, 1e5, 1e7])
@pytest.mark.parametrize("extent", [3, 129, 768, 4097])
def test_corrected_two_pass_keeps_it(ratio, extent):
    x = f32_array(ratio + np.random.default_rng(5).standard_normal((1, extent)))
    check(layer_norm(x, axes=(1,)), emulate(x[0], "corrected"))


@pytest.mark.parametrize("algorithm,ratio", [("one pass", 100), ("two pass", 1e7)])
def test_weaker_algorithms_break_it(algorithm, ratio):
    x = f32_array(ratio + np.random.default_rng(6).standard_normal((1, 4097)))
    with np.errstate(invalid="ignore"), pytest.raises(AssertionError, match="y: .* outside"):
        check(layer_norm(x, axes=(1,)), emulate(x[0], algorithm))


@pytest.mark.parametrize("name", ["y", "mean", "variance", "rstd"])
def test_each_result_counts(name):
    x = f32_array(np.random.default_rng(7).standard_normal((1, 257)))
    got = emulate(x[0], "corrected")
    check(layer_norm(x, axes=(1,)), got)
    got[name] = got[name] + np.abs(x).max() * f32(3e-6)
    with pytest.raises(AssertionError, match=f"^{name}: "):
        check(layer_norm(x, axes=(1,)), got)


def test_wrong_meaning_breaks_it():
    x = f32_array(np.random.default_rng(8).standard_normal((4, 16)) * 0.003)
    right = layer_norm(x, axes=(1,))
    check(right, {"y": right.y})
    for wrong in (dict(placement="outside_sqrt"), dict(placement="max_inside"),
                  dict(epsilon=1.01e-5), dict(correction=1), dict(placement="none")):
        with pytest.raises(AssertionError):
            check(right, {"y": layer_norm(x, axes=(1,), **wrong).y})


def test_shape_dtype_and_nan_count():
    x = f32_array([[1, 2, 3], [1, np.nan, 3]])
    right = layer_norm(x, axes=(1,))
    check(right, {"y": right.y, "mean": right.mean})
    with pytest.raises(AssertionError, match="expected shape"):
        check(right, {"mean": right.mean[:, None]})
    with pytest.raises(AssertionError, match="expected dtype"):
        check(right, {"y": right.y.astype(np.float64)})
    with pytest.raises(AssertionError):
        check(right, {"y": np.where(np.isnan(right.y), 0, right.y).astype(f32)})


def test_the_mean_of_an_infinite_row():
    right = layer_norm(f32_array([[1, np.inf, 3], [1, 2, 3]]), axes=(1,))
    for mean in ([np.inf, 2], [np.nan, 2]):
        check(right, {"mean": f32_array(mean)})
    for mean in ([-np.inf, 2], [2, 2], [np.inf, np.nan]):
        with pytest.raises(AssertionError):
            check(right, {"mean": f32_array(mean)})


def test_constant_rows_must_be_exact():
    x = np.full((1, 100), 1e10, f32)
    right = layer_norm(x, axes=(1,))
    with pytest.raises(AssertionError):
        check(right, {"y": right.y + f32(1e-30)}, rows="any")


@pytest.mark.parametrize("target", [F16, BF16])
def test_narrow_results_are_rounded_once(target):
    x = cast(np.random.default_rng(9).standard_normal((8, 512)), target)
    right = rms_norm(x, axes=(1,))
    check(right, {"y": right.y})
    # A reciprocal root rounded early errs the same way along a whole row.
    early = cast(right.rows_c * round_to(right.row_rstd, target)[:, None], target)
    with pytest.raises(AssertionError):
        check(right, {"y": early})


def test_affine_in_result_is_not_affine_in_compute():
    rng = np.random.default_rng(10)
    x, g = cast(rng.standard_normal((4, 64)), BF16), cast(rng.standard_normal(64), BF16)
    one, two = (rms_norm(x, scale=g, axes=(1,), affine_in=a) for a in ("compute", "result"))
    check(one, {"y": one.y})
    check(two, {"y": two.y})
    with pytest.raises(AssertionError):
        check(one, {"y": two.y})
    with pytest.raises(AssertionError):
        check(two, {"y": one.y})


def test_narrow_compute_may_only_differ_at_ties():
    rng = np.random.default_rng(11)
    x = cast(3 + rng.standard_normal((16, 64)), BF16)
    narrow = layer_norm(x, axes=(1,), compute="bf16")
    check(narrow, {"y": narrow.y, "mean": narrow.mean, "rstd": narrow.rstd})
    found = limits(narrow, 8)["y"]
    assert np.mean(widen(found.low) == widen(found.high)) > 0.9
    with pytest.raises(AssertionError):
        check(narrow, {"y": layer_norm(x, axes=(1,)).y})


def test_sum_is_exact():
    x, r = f32_array([[1.0, 2.0]]), f32_array([[1e-8, 0.5]])
    right = layer_norm(x, r, axes=(1,))
    check(right, {"sum": right.sum})
    with pytest.raises(AssertionError, match="^sum: 1 of 2"):
        check(right, {"sum": np.nextafter(right.sum, f32_array([[9, 2.5]]))})
