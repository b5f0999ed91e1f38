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


ARRAYS = ("residual", "scale", "shift", "mean", "variance", "rstd", "running_mean",
          "running_variance", "momentum", "dy", "dsum", "mask", "count", "sum_g", "sum_gx", "new")
EXACT = {"mask": np.bool_, "count": np.int64, "momentum": np.float32}
DEFAULT_RESULT = {"moments": ("mean", "m2"), "combine_moments": ("mean", "m2"), "rstd": ("rstd",),
                  "update_running": ("updated",), "backward_moments": ("sum_g", "sum_gx")}


def call(kind, x, element="f32", axes=(-1,), results=None, dynamic=(), **rest):
    """A call of any op; axes default to the last. `rest` holds attributes of `NormSpec`
    and operands by their name: arrays, values that are rounded to `element`, or a pair
    of values and another element type. A momentum is an operand if it is an np.float32."""
    def typed(value):
        return array(*value) if isinstance(value, tuple) else array(value, element)

    names = [name for name in ARRAYS if name in rest]
    if not isinstance(rest.get("momentum"), np.float32):
        names = [name for name in names if name != "momentum"]
    operands = {name: np.asarray(rest.pop(name), EXACT[name]) if name in EXACT else
                typed(rest.pop(name)) for name in names}
    if kind in ("combine_moments", "rstd", "update_running"):
        axes = ()
    spec = NormSpec(kind=kind, axes=tuple(axes), **rest)
    if results is None:
        results = DEFAULT_RESULT.get(kind, ("dx",) if "backward" in kind else ("y",))
    return Call(spec, array(x, element), results=results, dynamic=dynamic, **operands)


def _call(kind, x, element, axes, operands, results, dynamic, attributes):
    rank = np.ndim(x)
    axes = (rank - 1,) if axes is None else axes
    if kind == "rms_norm":
        results = tuple(name for name in results if name != "mean")
    operands = {name: value for name, value in operands.items() if value is not None}
    return call(kind, x, element, axes, results, dynamic, **operands, **attributes)


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
    """All NaNs are one: which of them it is depends on the order in which an instruction has
    its operands."""
    one, other = (np.where(np.isnan(array), array.dtype.type(np.nan), array)
                  if array.dtype.kind in "fV" else np.ascontiguousarray(array)
                  for array in map(np.asarray, (one, other)))
    assert one.dtype == other.dtype and one.shape == other.shape
    assert one.tobytes() == other.tobytes(), (
        f"{np.mean(one != other):.1%} of the elements differ")
