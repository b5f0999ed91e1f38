"""Views through the entry ABI: whatever the strides, the bits of a contiguous copy.

A read beyond a view shows as a NaN, a write beyond a result as a broken canary."""

import numpy as np
import pytest
from norm.compiled import Compiled, canaries
from norm.data import draw, generator
from norm.golden import same_bits
from norm.program import Call, module_text
from norm.promise import check
from norm.reference import NormSpec
from norm.types import float_type

LAYOUTS = ("contiguous", "transposed", "sliced", "row stride", "reversed", "broadcast rows",
           "broadcast columns", "offset by one")


def view(array, layout):
    """The array's values in another layout, surrounded by NaN; 2-d or 3-d.
    Broadcasts repeat its first row or column."""
    rank = array.ndim
    if layout == "broadcast rows":
        return np.broadcast_to(array[:1], array.shape)
    if layout == "broadcast columns":
        return np.broadcast_to(array[..., :1], array.shape)
    if layout == "contiguous":
        return array
    if layout == "transposed":
        return np.ascontiguousarray(array.T).T
    strides = {"sliced": (2,) * (rank - 1) + (3,), "row stride": (1,) * (rank - 1) + (1,),
               "reversed": (-1,) * rank, "offset by one": (1,) * rank}[layout]
    margins = (3,) * rank if layout != "offset by one" else (0,) * (rank - 1) + (1,)
    sizes = [abs(s) * n + 2 * m for s, n, m in zip(strides, array.shape, margins, strict=True)]
    base = np.full(sizes, np.nan, array.dtype)
    found = base[tuple(slice(m, m + abs(s) * n, abs(s))
                       for s, n, m in zip(strides, array.shape, margins, strict=True))]
    if layout == "reversed":
        found = found[(slice(None, None, -1),) * rank]
    found[...] = array
    return found


VARIANTS = [(kind, element, shape, axes)
            for kind in ("layer_norm", "rms_norm") for element in ("f32", "bf16")
            for shape, axes in (((7, 129), (1,)), ((129, 7), (0,)), ((3, 40, 33), (0, 2)),
                                ((270, 260), (1,)))]


def label(variant):
    kind, element, shape, axes = variant
    return f"{kind}-{element}-{'x'.join(map(str, shape))}-{'x'.join(map(str, axes))}"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """One library with a function for each variant, static and dynamic."""
    text, calls = "", {}
    for number, (kind, element, shape, axes) in enumerate(VARIANTS):
        rng, spec = generator(f"{number}"), NormSpec(kind=kind, axes=axes)
        parameters = [shape[a] for a in axes]
        for dynamic in ((), tuple(range(len(shape)))):
            made = Call(spec, draw(rng, shape, element, 1.0), draw(rng, shape, element),
                        draw(rng, parameters, element), draw(rng, parameters, element),
                        results=("y", "rstd", "sum"), dynamic=dynamic)
            name = f"f{number}_{len(dynamic)}"
            text += module_text([made], entry=name)
            calls[kind, element, shape, axes, bool(dynamic)] = name, made
    return Compiled(tmp_path_factory.mktemp("layouts"), text), calls


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("variant", VARIANTS, ids=label)
def test_view(variant, layout, dynamic, compiled):
    library, calls = compiled
    name, original = calls[(*variant, dynamic)]
    results = []
    for form in (layout, "copy"):
        inputs = [view(array, layout) if array.ndim > 1 else array
                  for array in original.inputs()]
        if form == "copy":
            inputs = [np.ascontiguousarray(array) for array in inputs]
        outputs, intact = zip(*(canaries(shape, float_type(element).dtype)
                                for shape, element in original.result_types()), strict=True)
        before = [array.copy() for array in inputs]
        library(inputs, outputs, name)
        assert all(check() for check in intact), "wrote outside a result"
        for array, copy in zip(inputs, before, strict=True):
            same_bits(array, copy)
        results.append(outputs)
    x, residual, scale, shift = inputs
    call = Call(original.spec, x, residual, scale, shift, results=original.results)
    for viewed, copied in zip(*results, strict=True):
        same_bits(viewed, copied)
    check(call.reference(), dict(zip(call.ordered_results(), results[0], strict=True)),
          "any" if "broadcast" in layout else "random")
