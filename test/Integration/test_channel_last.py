"""Instance and group norms of channel-last images: as the norms of test_lanes.py, with
images around the sums. What an image gets depends on no other."""

import numpy as np
import pytest
from norm.data import draw, generator
from norm.golden import call as golden_call
from norm.golden import same_bits
from norm.program import Call
from norm.promise import check
from norm.reference import NormSpec, from_rows
from norm.runner import run_calls
from norm.types import cast, float_type
from test_lanes import compare, hostile

FORWARD = ("y", "mean", "variance", "rstd")
# One image, several ranges that end early; few places, of which a tile has all.
SHAPES = {
    "image": (1, 1300, 40), "ranges": (3, 37, 31, 35), "long": (2, 3001, 5),
    "deep": (2, 2, 1040, 50), "place": (3, 1, 33), "few": (2, 5, 7, 40),
}
# How many axes lie around the reduced ones.
OUTER = {"deep": 2}
# Groups whose channels fill a part of a vector, one and several; of one channel; few
# places; no images.
GROUPS = {
    "part": ((2, 37, 31, 40), 4), "one": ((2, 300, 64), 2), "several": ((1, 130, 225), 3),
    "channel": ((2, 200, 33), 33), "place": ((3, 1, 24), 6), "pairs": ((2, 7, 7, 64), 32),
    "whole": ((300, 30), 5),
}


def call_of(spec, shape, element, rng, benign, images, dynamic, results, **more):
    """The op on rows of its own kind, normal ones if `benign`; of these images alone."""
    sets = int(np.prod(spec.kept_shape(shape)))
    count = int(np.prod(shape)) // sets
    rows = rng.standard_normal((sets, count)) if benign else hostile(rng, sets, count)
    if element == "f16":
        rows = np.clip(rows, -65504, 65504)
    x = np.ascontiguousarray(from_rows(cast(rows, float_type(element)), shape, spec))
    kept = shape[-1:]
    return Call(spec, x=x[images] if images else x, scale=draw(rng, kept, element, 1.0),
                shift=draw(rng, kept, element), results=results,
                dynamic=tuple(range(len(shape))) if dynamic else (), **more)


def forward_call(name, element="f32", benign=False, dynamic=False, images=None,
                 results=FORWARD, **contract):
    shape, outer = SHAPES[name], OUTER.get(name, 1)
    axes = tuple(range(outer, len(shape) - 1))
    spec = NormSpec("layer_norm", axes=axes, affine_axes=(len(axes) + outer,), **contract)
    return call_of(spec, shape, element, generator(f"images{shape}{element}{benign}"), benign,
                   images, dynamic, results)


def group_call(name, element="f32", benign=False, dynamic=False, images=None,
               results=FORWARD, **more):
    shape, groups = GROUPS[name]
    axes = tuple(range(0 if name == "whole" else 1, len(shape)))
    spec = NormSpec("group_norm", axes=axes, channel_axis=len(shape) - 1, groups=groups)
    return call_of(spec, shape, element, generator(f"groups{shape}{element}{benign}"), benign,
                   images, dynamic, results, **more)


@pytest.mark.parametrize("element", ["f32", "bf16", "f16", "f64"])
def test_promise_of_groups(element, tmp_path):
    names = GROUPS if element == "f32" else ("part", "several")
    calls = [group_call(name, element, benign) for name in names for benign in (False, True)]
    for call, found in zip(calls, run_calls(tmp_path, calls), strict=True):
        check(call.reference(), found, "any")


def test_groups_of_threads_and_extents(tmp_path):
    calls = [group_call(name) for name in GROUPS]
    first = run_calls(tmp_path, calls, threads=1)
    for one, other in zip(first, run_calls(tmp_path, calls, threads=2), strict=True):
        compare(one, other)
    calls = [group_call(name, dynamic=True) for name in GROUPS]
    for threads in (1, 3):
        for one, other in zip(first, run_calls(tmp_path, calls, threads=threads), strict=True):
            compare(one, other)


def test_groups_of_images_beside(tmp_path):
    parts = [slice(0, 1), slice(1, 2)]
    calls = [group_call("part", images=part) for part in parts]
    *found, whole = run_calls(tmp_path, [*calls, group_call("part")])
    for part, results in zip(parts, found, strict=True):
        for name, values in results.items():
            same_bits(values, whole[name][part])


def test_not_finite_in_a_group(tmp_path):
    call, clean = group_call("part", benign=True), group_call("part", benign=True)
    call.x[1, 13, 5, 27] = np.nan
    found, expected = run_calls(tmp_path, [call, clean])
    check(call.reference(), found, "any")
    found["y"][1, ..., 20:30] = expected["y"][1, ..., 20:30]
    same_bits(found["y"], expected["y"])


def test_no_places_of_groups(tmp_path):
    for shape in ((0, 3, 40), (2, 0, 40)):
        call = Call(NormSpec("group_norm", axes=(1, 2), channel_axis=2, groups=4),
                    x=np.zeros(shape, np.float32), results=FORWARD, dynamic=(0, 1, 2))
        found = run_calls(tmp_path, [call])[0]
        assert found["y"].shape == shape
        check(call.reference(), found, "any")


@pytest.mark.parametrize("element", ["f32", "bf16", "f16", "f64"])
def test_promise(element, tmp_path):
    names = SHAPES if element == "f32" else ("few", "ranges", "long")
    calls = [forward_call(name, element, benign) for name in names for benign in (False, True)]
    for call, found in zip(calls, run_calls(tmp_path, calls), strict=True):
        check(call.reference(), found, "any")


def test_threads_and_extents(tmp_path):
    forms = [(name, benign) for name in SHAPES for benign in (False, True)]
    calls = [forward_call(name, benign=benign) for name, benign in forms]
    first = run_calls(tmp_path, calls, threads=1)
    for one, other in zip(first, run_calls(tmp_path, calls, threads=2), strict=True):
        compare(one, other)
    calls = [forward_call(name, benign=benign, dynamic=True) for name, benign in forms]
    for threads in (1, 3):
        for one, other in zip(first, run_calls(tmp_path, calls, threads=threads), strict=True):
            compare(one, other)


def test_images_beside(tmp_path):
    """An image alone, among few and among many has the same bits."""
    parts = [slice(0, 1), slice(1, 3), slice(2, 3), slice(0, 3)]
    calls = [forward_call("ranges", images=part) for part in parts]
    *found, whole = run_calls(tmp_path, calls)
    for part, results in zip(parts, found, strict=False):
        for name, values in results.items():
            same_bits(values, whole[name][part])


def test_image_is_batch(tmp_path):
    """One image's instance norm is a batch norm."""
    call = forward_call("image")
    rows = NormSpec("layer_norm", axes=(0, 1), affine_axes=(2,))
    batch = Call(rows, x=call.x, scale=call.scale, shift=call.shift, results=FORWARD)
    one, other = run_calls(tmp_path, [call, batch])
    for name, values in other.items():
        same_bits(values, one[name].reshape(values.shape))


def test_not_finite(tmp_path):
    """Only the channel of the image that holds it sees a NaN."""
    call, clean = forward_call("ranges", benign=True), forward_call("ranges", benign=True)
    call.x[1, 13, 5, 7] = np.nan
    found, expected = run_calls(tmp_path, [call, clean])
    check(call.reference(), found, "any")
    found["y"][1, ..., 7] = expected["y"][1, ..., 7]
    same_bits(found["y"], expected["y"])


def test_no_rows(tmp_path):
    for shape in ((0, 3, 40), (2, 0, 40)):
        call = Call(NormSpec("layer_norm", axes=(1,)), x=np.zeros(shape, np.float32),
                    results=FORWARD, dynamic=(0, 1, 2))
        found = run_calls(tmp_path, [call])[0]
        assert found["y"].shape == shape
        check(call.reference(), found, "any")


def test_other_norms(tmp_path):
    """Without a mean, with a residual, with a scale of each place, and gradients."""
    rng = generator("channel last")
    x = draw(rng, (3, 1030, 50), "f32", 2.0)
    calls = [Call(NormSpec("rms_norm", axes=(1,)), x=x, results=("y", "rstd")),
             Call(NormSpec("l2_norm", axes=(1,)), x=x, results=("y",)),
             Call(NormSpec("layer_norm", axes=(1,)), x=x, residual=draw(rng, x.shape, "f32"),
                  results=("y", "sum")),
             Call(NormSpec("layer_norm", axes=(1,)), x=x, scale=draw(rng, (1030,), "f32", 1.0),
                  results=("y", "mean"))]
    for affine, shape in (((1,), (1030,)), ((2,), (50,))):
        spec = NormSpec("layer_norm_backward", axes=(1,), affine_axes=affine)
        calls.append(Call(spec, x=x, dy=draw(rng, x.shape, "f32"),
                          scale=draw(rng, shape, "f32", 1.0),
                          results=("dx", "dscale", "dshift")))
    for call, found in zip(calls, run_calls(tmp_path, calls), strict=True):
        check(call.reference(), found, "any")


KEPT_BETWEEN = {"one": (1, 1, 2), "rows": (4, 3, 8), "many": (1100, 2, 6),
                "images": (3, 5, 2, 2, 12)}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", KEPT_BETWEEN)
def test_an_axis_between_rows_and_groups(name, dynamic, tmp_path):
    """Groups of channels beside a kept axis are no rows of channels alone."""
    shape = KEPT_BETWEEN[name]
    x = np.random.default_rng(20).standard_normal(shape) * 3 + 1
    last = len(shape) - 1
    axes = (0, last) if last == 2 else (1, 2, last)
    made = golden_call("group_norm", x, axes=axes, groups=2, channel_axis=last,
                       scale=np.linspace(1, 2, shape[-1]), results=FORWARD,
                       dynamic=tuple(range(len(shape))) if dynamic else ())
    (got,) = run_calls(tmp_path, [made])
    check(made.reference(), got, "any", "cpu")
