"""Norms whose sums run over the outer axes: ranges of rows, merged in order. What a
channel gets depends on neither threads nor channels beside it, and keeps the promise
where a sample says nothing about it."""

import numpy as np
import pytest
from norm.data import draw, generator
from norm.golden import same_bits
from norm.program import Call
from norm.promise import check
from norm.reference import NormSpec, from_rows
from norm.reference.spec import PLACEMENTS
from norm.runner import run_calls
from norm.types import cast, float_type

FORWARD = ("y", "mean", "variance", "rstd")
RUNNING = FORWARD + ("running_mean", "running_variance")
BACKWARD = ("dx", "dscale", "dshift")
# Rows: none of them, one, fewer than a sample, several ranges that end early.
SHAPES = {
    "one": (1, 40), "few": (7, 33), "sample": (3, 5, 7, 40), "ranges": (3, 30, 17, 70),
    "long": (1000, 45), "narrow": (5, 60, 3), "odd_rows": (11, 7, 7, 64),
}


def hostile(rng, channels, count):
    """[channels, count]: means to 1e7, a start unlike the rest, constants, outliers."""
    rows = rng.standard_normal((channels, count))
    steps = np.arange(count)
    for number, row in enumerate(rows):
        match number % 9:
            case 1:
                row += 1e7
            case 2:
                row[:] = 1e7 + steps % 2
            case 3:
                row[: count // 2] += 1e4
            case 4:
                row[:] = 1e10
            case 5:
                row[:] = np.linspace(0, 1e5, count)
            case 6:
                row[count // 3] = 1e8
            case 7:
                row[:] = np.where(steps == count - 1, 16777214.0, 16777213.0)
            case 8:
                row *= 1e-3
    return rows


def forward_call(shape, element="f32", benign=False, channels=None, dynamic=False, **more):
    axes = tuple(range(len(shape) - 1))
    count = int(np.prod(shape[:-1]))
    # A batch of one has no variance to keep.
    running = count > 1
    spec = NormSpec("batch_norm_training", axes=axes, momentum=0.1)
    if not running:
        spec = NormSpec("layer_norm", axes=axes, affine_axes=(len(axes),))
    rng = generator(f"lanes{shape}{element}{benign}")
    rows = rng.standard_normal((shape[-1], count)) if benign else hostile(rng, shape[-1], count)
    if element == "f16":
        rows = np.clip(rows, -65504, 65504)
    x = np.ascontiguousarray(from_rows(cast(rows, float_type(element)), shape, spec))
    kept = shape[-1:]
    arrays = dict(x=x, scale=draw(rng, kept, element, 1.0), shift=draw(rng, kept, element))
    if running:
        arrays |= dict(running_mean=draw(rng, kept, "f32"),
                       running_variance=draw(rng, kept, "f32") ** 2)
    if channels is not None:
        arrays = {name: np.ascontiguousarray(array[..., channels])
                  for name, array in arrays.items()}
    return Call(spec, results=RUNNING if running else FORWARD,
                dynamic=tuple(range(len(shape))) if dynamic else (), **arrays, **more)


def compare(one, other):
    for name, values in one.items():
        same_bits(values, other[name])


@pytest.mark.parametrize("element", ["f32", "bf16", "f16", "f64"])
def test_promise(element, tmp_path):
    names = SHAPES if element == "f32" else ("sample", "ranges", "long")
    calls = [forward_call(SHAPES[name], element, benign) for name in names
             for benign in (False, True)]
    for call, found in zip(calls, run_calls(tmp_path, calls), strict=True):
        check(call.reference(), found, "any")


def test_threads_and_extents(tmp_path):
    forms = [("one", False), ("few", False), ("ranges", False), ("ranges", True),
             ("odd_rows", False)]
    calls = [forward_call(SHAPES[name], benign=benign) for name, benign in forms]
    first = run_calls(tmp_path, calls, threads=1)
    for one, other in zip(first, run_calls(tmp_path, calls, threads=2), strict=True):
        compare(one, other)
    calls = [forward_call(SHAPES[name], benign=benign, dynamic=True) for name, benign in forms]
    for threads in (1, 3):
        for one, other in zip(first, run_calls(tmp_path, calls, threads=threads), strict=True):
            compare(one, other)


def test_channels_beside(tmp_path):
    """A channel alone, among few and among many has the same bits."""
    shape = SHAPES["ranges"]
    parts = [slice(0, 1), slice(0, 9), slice(31, 64), slice(0, 70)]
    calls = [forward_call(shape, channels=part) for part in parts]
    *found, whole = run_calls(tmp_path, calls)
    for part, results in zip(parts, found, strict=False):
        for name, values in results.items():
            same_bits(values, whole[name][..., part])


def test_no_rows(tmp_path):
    spec = NormSpec("batch_norm_training", axes=(0, 1))
    x = np.zeros((0, 3, 40), np.float32)
    call = Call(spec, x=x, results=FORWARD, dynamic=(0, 1, 2))
    found = run_calls(tmp_path, [call])[0]
    assert found["y"].shape == x.shape
    check(call.reference(), found, "any")


def test_several_kept_axes(tmp_path):
    """A layer norm over the first axis, with parameters of either kind."""
    rng = generator("lanes of two axes")
    x = draw(rng, (300, 3, 50), "f32", 2.0)
    calls = []
    for affine, shape in (((0,), (300,)), ((1, 2), (3, 50))):
        spec = NormSpec("layer_norm", axes=(0,), affine_axes=affine)
        calls.append(Call(spec, x=x, scale=draw(rng, shape, "f32", 1.0),
                          shift=draw(rng, shape, "f32"), results=FORWARD))
    calls.append(Call(NormSpec("rms_norm", axes=(0,)), x=x, results=("y", "rstd")))
    calls.append(Call(NormSpec("layer_norm", axes=(0,)), x=x, residual=draw(rng, x.shape, "f32"),
                      results=("y", "sum")))
    for call, found in zip(calls, run_calls(tmp_path, calls), strict=True):
        check(call.reference(), found, "any")


def backward_call(shape, element="f32", saved=True, dynamic=False, kind=None, results=BACKWARD,
                  **contract):
    axes = tuple(range(len(shape) - 1))
    spec = NormSpec(kind or "batch_norm_training_backward", axes=axes, **contract)
    rng = generator(f"lanes back{shape}{element}{kind}")
    arrays = dict(x=draw(rng, shape, element, 2.0), dy=draw(rng, shape, element),
                  scale=draw(rng, shape[-1:], element, 1.0))
    if saved or kind:
        wide = arrays["x"].astype(np.float64)
        accumulated = np.float64 if element == "f64" else np.float32
        arrays["mean"] = wide.mean(axes).astype(accumulated)
        name, power = ("variance", 1) if kind else ("rstd", -0.5)
        arrays[name] = ((wide.var(axes) + 1e-5) ** power).astype(accumulated)
    return Call(spec, results=results, dynamic=tuple(range(len(shape))) if dynamic else (),
                **arrays)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_gradients_of_any_root(placement, tmp_path):
    """Some need the variance, and its sums, beside the statistics given."""
    calls = [backward_call(SHAPES["few"], saved=saved, results=results, dynamic=not saved,
                           epsilon=0.3, placement=placement)
             for saved, results in ((True, ("dx",)), (False, BACKWARD), (False, ("dx", "dshift")))]
    for call, found in zip(calls, run_calls(tmp_path, calls), strict=True):
        check(call.reference(), found, "any")


@pytest.mark.parametrize("element", ["f32", "bf16", "f64"])
def test_gradients(element, tmp_path):
    calls = [backward_call(SHAPES[name], element, saved)
             for name, saved in (("few", True), ("ranges", False), ("long", True),
                                 ("odd_rows", True))]
    calls.append(backward_call(SHAPES["ranges"], element, kind="batch_norm_inference_backward"))
    for call, found in zip(calls, run_calls(tmp_path, calls), strict=True):
        check(call.reference(), found, "any")


def test_gradients_of_threads_and_extents(tmp_path):
    names = ("few", "ranges", "odd_rows")
    first = run_calls(tmp_path, [backward_call(SHAPES[name]) for name in names], threads=1)
    calls = [backward_call(SHAPES[name], dynamic=True) for name in names]
    for threads in (2, 3):
        for one, other in zip(first, run_calls(tmp_path, calls, threads=threads), strict=True):
            compare(one, other)
