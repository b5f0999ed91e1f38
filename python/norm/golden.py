"""Tests with known answers, run on every path.

    @golden(layer([1, 2, 3]))
    def test_name(got):
        near(got["y"], [...])

`got` is the {name: array} of the call (a list of them if there are several
calls). Before the test sees it, it has been held against the oracle. The calls
of a module run together; `test/conftest.py` has the fixture.
"""

import numpy as np
import pytest

from norm.program import Call
from norm.reference import NormSpec
from norm.types import cast, float_type, widen

PATHS = ("cpu", "reference", "linalg")
STATISTICS = ("y", "mean", "variance", "rstd")


def array(values, element="f32"):
    """Values rounded to an element type; arrays of such a type stay as they are."""
    if values is None:
        return None
    try:
        float_type(np.asarray(values).dtype)
    except ValueError:
        values = np.asarray(values, np.float64)
    if isinstance(values, np.ndarray) and values.dtype != np.float64:
        return values
    return cast(widen(values), float_type(element))


def _call(kind, x, element, axes, operands, results, dynamic, attributes):
    x = array(x, element)
    arrays = {name: array(operands.get(name), element) for name in ("residual", "scale", "shift")}
    spec = NormSpec(kind=kind, axes=(x.ndim - 1,) if axes is None else tuple(axes), **attributes)
    if not spec.centred:
        results = tuple(name for name in results if name != "mean")
    return Call(spec, x, results=results, dynamic=dynamic, **arrays)


def layer(x, element="f32", axes=None, residual=None, scale=None, shift=None,
          results=("y",), dynamic=(), **attributes):
    """A layer_norm call; axes default to the last, epsilon to 1e-5 inside_sqrt."""
    return _call("layer_norm", x, element, axes,
                 dict(residual=residual, scale=scale, shift=shift), results, dynamic, attributes)


def rms(x, element="f32", axes=None, residual=None, scale=None, shift=None,
        results=("y",), dynamic=(), **attributes):
    """An rms_norm call; axes default to the last, epsilon to 1e-6 inside_sqrt."""
    attributes.setdefault("epsilon", 1e-6)
    return _call("rms_norm", x, element, axes,
                 dict(residual=residual, scale=scale, shift=shift), results, dynamic, attributes)


def golden(*calls, paths=PATHS):
    def decorate(function):
        function.calls = calls
        return pytest.mark.parametrize("got", paths, indirect=True)(function)
    return decorate


def near(actual, expected, tolerance=2e-6):
    """Within `tolerance` of what is written, relative to the largest of it."""
    expected = np.asarray(expected, np.float64)
    actual = widen(actual)
    assert actual.shape == expected.shape, f"expected shape {expected.shape}, got {actual.shape}"
    size = max(np.abs(expected).max(initial=0), 1e-300)
    error = np.abs(actual - expected).max(initial=0) / size
    assert error <= tolerance, f"expected {expected}, got {actual}: off by {error:.3g}"


def same_bits(one, other):
    one, other = np.ascontiguousarray(one), np.ascontiguousarray(other)
    assert one.dtype == other.dtype and one.shape == other.shape
    assert one.tobytes() == other.tobytes(), (
        f"{np.mean(one != other):.1%} of the elements differ")
