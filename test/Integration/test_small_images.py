"""Batch norms of small channel-first images, whose channels share vectors, two or four at
a time. What a channel gets depends neither on those beside it nor on threads."""

import numpy as np
import pytest
from norm.data import draw, generator
from norm.golden import same_bits
from norm.program import Call
from norm.promise import check
from norm.reference import NormSpec
from norm.runner import run_calls
from norm.types import cast, float_type

FORWARD = ("y", "mean", "variance", "rstd")
BACKWARD = ("dx", "dscale", "dshift")
SAMPLES, CHANNELS = 5, 10


def hostile(rng, channel, count):
    """A channel's elements: means to 1e7, a constant, an outlier, no number."""
    values = rng.standard_normal(count)
    match channel % 5:
        case 1:
            values += 1e7
        case 2:
            values[:] = 1e10
        case 3:
            values[count // 3] = 1e8
        case 4:
            values[count // 2] = np.nan
    return values


def images(side, element, finite=False):
    rng = generator(f"small images {side} {element}")
    shape = (SAMPLES, side, side)
    values = [hostile(rng, 0 if finite else channel, int(np.prod(shape))).reshape(shape)
              for channel in range(CHANNELS)]
    limit = 65504 if element == "f16" else np.inf
    return cast(np.clip(np.stack(values, 1), -limit, limit), float_type(element))


def made(side, element="f32", backward=False, channels=slice(None), finite=False, dynamic=()):
    spec = NormSpec("batch_norm_training" + ("_backward" if backward else ""), axes=(0, 2, 3))
    rng = generator(f"small parameters {side} {element}")
    x = images(side, element, finite)
    arrays = dict(x=x, scale=draw(rng, (CHANNELS,), element, 1.0))
    if backward:
        arrays["dy"] = draw(rng, x.shape, element)
    else:
        arrays["shift"] = draw(rng, (CHANNELS,), element)
    arrays = {name: np.ascontiguousarray(array[channels] if array.ndim == 1 else array[:, channels])
              for name, array in arrays.items()}
    return Call(spec, results=BACKWARD if backward else FORWARD, dynamic=dynamic, **arrays)


@pytest.mark.parametrize("element", ["f32", "bf16", "f16", "f64"])
def test_promise(element, tmp_path):
    calls = [made(side, element, finite=finite) for side in (7, 14) for finite in (False, True)]
    calls += [made(side, element, backward=True, finite=True) for side in (7, 14)]
    for call, found in zip(calls, run_calls(tmp_path, calls), strict=True):
        check(call.reference(), found, "any")


@pytest.mark.parametrize("backward", [False, True])
def test_channels_beside_and_threads(backward, tmp_path):
    """Alone, in a vector with others, and in one that is not full."""
    parts = ((2, 3), (1, 4), (3, 10), (0, 10))
    forms = [(side, part) for side in (7, 14) for part in parts]
    calls = [made(side, backward=backward, channels=slice(*part)) for side, part in forms]
    first = dict(zip(forms, run_calls(tmp_path, calls, threads=1), strict=True))
    for threads in (2, 3):
        for (side, part), found in zip(forms, run_calls(tmp_path, calls, threads=threads),
                                       strict=True):
            for name, values in found.items():
                same_bits(first[side, part][name], values)
                one = first[side, parts[-1]][name]
                same_bits(values, one[slice(*part)] if one.ndim == 1 else one[:, slice(*part)])


def test_dynamic_images(tmp_path):
    calls = [made(side, dynamic=dynamic) for side in (7, 14) for dynamic in ((), (0, 1, 2, 3))]
    found = run_calls(tmp_path, calls)
    for one, other in (found[:2], found[2:]):
        for name, values in one.items():
            same_bits(values, other[name])
