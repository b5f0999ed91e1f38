"""Axes that norm-merge-axes makes one: bits do not depend on how arguments lie in memory,
nor on whether extents are known, and neighbours still fuse."""

import numpy as np
import pytest
from norm.compiled import Compiled, canaries
from norm.data import draw, generator
from norm.golden import same_bits
from norm.program import Call, module_text
from norm.promise import check
from norm.reference import NormSpec

# name -> kind, shape of x, axes, attributes, operands, results
FORMS = {
    "batch": ("batch_norm_training", (3, 6, 5, 7), (0, 2, 3), {}, "gb", "y mean rstd"),
    "batch_last": ("batch_norm_training", (3, 5, 7, 6), (0, 1, 2), {}, "gb", "y mean rstd"),
    "batch_3d": ("batch_norm_training", (2, 3, 4, 1, 9), (0, 2, 3, 4), {}, "g", "y"),
    "inference": ("batch_norm_inference", (3, 6, 5, 7), (0, 2, 3), {}, "gbs", "y"),
    "group": ("group_norm", (2, 6, 9, 9), (1, 2, 3), dict(groups=3, channel_axis=1), "gb",
              "y mean"),
    "instance": ("instance_norm", (2, 3, 8, 1), (2, 3), dict(affine_axes=(1,)), "gb", "y rstd"),
    "layer": ("layer_norm", (4, 5, 7), (1, 2), {}, "gb", "y"),
    "batch_gradient": ("batch_norm_training_backward", (3, 6, 5, 7), (0, 2, 3), {}, "dg",
                       "dx dscale dshift"),
    "group_gradient": ("group_norm_backward", (2, 6, 5, 7), (1, 2, 3),
                       dict(groups=3, channel_axis=1), "dg", "dx dscale dshift"),
    "layer_gradient": ("layer_norm_backward", (9, 5, 7), (1, 2), {}, "dg", "dx dscale dshift"),
}


def made(name, dynamic=False):
    kind, shape, axes, attributes, operands, results = FORMS[name]
    rng, spec = generator(name), NormSpec(kind=kind, axes=axes, **attributes)
    parameters = [shape[a] for a in spec.affine(len(shape))]
    arrays = dict(x=draw(rng, shape, "f32", 3.0))
    if "d" in operands:
        arrays["dy"] = draw(rng, shape, "f32")
    if "g" in operands:
        arrays["scale"] = draw(rng, parameters, "f32", 1.0)
    if "b" in operands:
        arrays["shift"] = draw(rng, parameters, "f32")
    if "s" in operands:
        kept = spec.kept_shape(shape)
        arrays["mean"], arrays["variance"] = draw(rng, kept, "f32"), draw(rng, kept, "f32") ** 2
    return Call(spec, results=tuple(results.split()),
                dynamic=tuple(range(len(shape))) if dynamic else (), **arrays)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    text = "".join(module_text([made(name, dynamic)], f"{name}_{dynamic}")
                   for name in FORMS for dynamic in (False, True))
    return Compiled(tmp_path_factory.mktemp("merged"), text)


def wide(array):
    """The same values, with other elements after each along the last axis but one."""
    if array.ndim < 2:
        return array
    shape = (*array.shape[:-2], 2 * array.shape[-2], array.shape[-1] + 3)
    base = np.full(shape, np.nan, array.dtype)
    view = base[..., ::2, 1:1 + array.shape[-1]]
    view[...] = array
    return view


def turned(array):
    """The same values, the first axis innermost in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 0, -1)), -1, 0)


def backwards(array):
    """The same values, from the last to the first along the last axis."""
    return np.ascontiguousarray(array[..., ::-1])[..., ::-1]


def run(library, call, entry, lie):
    found, guards = {}, []
    types = zip(call.ordered_results(), call.result_types(), strict=True)
    for name, (shape, element) in types:
        found[name], untouched = canaries(shape, element.dtype)
        guards.append(untouched)
    library([lie(array) for array in call.inputs()], list(found.values()), entry)
    assert all(untouched() for untouched in guards)
    return found


@pytest.mark.parametrize("name", FORMS)
def test_however_arguments_lie(library, name):
    call = made(name)
    expected = run(library, call, f"{name}_False", np.ascontiguousarray)
    check(call.reference(), expected, "any")
    for dynamic in (False, True):
        for lie in (np.ascontiguousarray, wide, turned, backwards):
            found = run(library, made(name, dynamic), f"{name}_{dynamic}", lie)
            for result, values in found.items():
                same_bits(values, expected[result])
