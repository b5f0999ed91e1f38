"""Bits of the channel norms, the l2 norm and the gradients: those of a sample depend on
the sample alone; those of a batch on the batch, not on threads, runs or static shapes."""

import numpy as np
import pytest
from norm.data import MAKERS, draw, generator
from norm.golden import same_bits
from norm.program import Call
from norm.reference import NormSpec
from norm.runner import run_calls
from norm.types import cast, float_type

# kind, x's shape (the first axis is kept), axes, attributes, operands, results
SAMPLES = [
    ("group_norm", (9, 8, 31), (1, 2), dict(groups=4, channel_axis=1), "gb", "y mean rstd"),
    ("group_norm", (9, 31, 8), (1, 2), dict(groups=2, channel_axis=2), "gb", "y mean rstd"),
    ("instance_norm", (9, 5, 67), (2,), dict(affine_axes=(1,)), "gb", "y mean rstd"),
    ("instance_norm", (9, 67, 5), (1,), dict(affine_axes=(2,)), "gb", "y mean rstd"),
    ("l2_norm", (9, 4, 65), (2,), {}, "g", "y variance rstd"),
    ("batch_norm_inference", (9, 5, 33), (0, 2), {}, "gbs", "y"),
    ("layer_norm_backward", (9, 129), (1,), {}, "dg", "dx"),
    ("rms_norm_backward", (9, 129), (1,), {}, "dg", "dx"),
    ("group_norm_backward", (9, 8, 31), (1, 2), dict(groups=4, channel_axis=1), "dg", "dx"),
]
BATCHES = [
    ("batch_norm_training", (33, 7, 65), (0, 2), dict(momentum=0.1), "gbu",
     "y mean variance rstd running_mean running_variance"),
    ("batch_norm_training", (700, 40), (0,), {}, "gb", "y mean variance rstd"),
    ("batch_norm_training_backward", (33, 7, 65), (0, 2), {}, "dg", "dx dscale dshift"),
    ("layer_norm_backward", (1025, 96), (1,), {}, "dg", "dx dscale dshift"),
    ("rms_norm_backward", (1025, 96), (1,), {}, "dg", "dx dscale dshift"),
    ("group_norm_backward", (33, 8, 31), (1, 2), dict(groups=4, channel_axis=1), "dg",
     "dx dscale dshift"),
]


def label(form):
    return f"{form[0]}-{'x'.join(map(str, form[1]))}"


def made(form, element="f32", count=None, dynamic=()):
    """The call of the first `count` samples."""
    kind, shape, axes, attributes, operands, results = form
    rng, spec = generator(label(form) + element), NormSpec(kind=kind, axes=axes, **attributes)
    rows = MAKERS["mixed"](rng, shape[0], int(np.prod(shape[1:])))
    x = cast(rows.reshape(shape), float_type(element))
    parameters, kept = [shape[a] for a in spec.affine(len(shape))], spec.kept_shape(shape)
    arrays = dict(x=x[:count])
    if "d" in operands:
        arrays["dy"] = draw(rng, shape, element)[:count]
    if "g" in operands:
        arrays["scale"] = draw(rng, parameters, element, 1.0)
    if "b" in operands:
        arrays["shift"] = draw(rng, parameters, element)
    if "s" in operands:
        arrays["mean"], arrays["variance"] = draw(rng, kept, "f32"), draw(rng, kept, "f32") ** 2
    if "u" in operands:
        arrays["running_mean"] = draw(rng, kept, "f32")
        arrays["running_variance"] = draw(rng, kept, "f32") ** 2
    return Call(spec, results=tuple(results.split()), dynamic=dynamic, **arrays)


def compare(one, other, count=None):
    for name, values in one.items():
        same_bits(values, other[name][:count])


@pytest.mark.parametrize("path", ["cpu", "reference"])
def test_sample_alone_and_in_a_batch(path, tmp_path):
    counts, elements = (1, 2, 9), ("f32", "bf16") if path == "cpu" else ("f32",)
    forms = [(form, element) for form in SAMPLES for element in elements]
    found = iter(run_calls(tmp_path, [made(*form, count) for form in forms for count in counts],
                           path))
    for _ in forms:
        one, two, whole = next(found), next(found), next(found)
        compare(one, whole, 1)
        compare(two, whole, 2)


@pytest.mark.parametrize("path", ["cpu", "reference"])
def test_threads_and_runs(path, tmp_path):
    calls = [made(form) for form in BATCHES]
    first = run_calls(tmp_path, calls, path, threads=1)
    for threads in (2, 2) if path == "cpu" else (2,):
        for one, other in zip(first, run_calls(tmp_path, calls, path, threads=threads),
                              strict=True):
            compare(one, other)


def test_static_and_dynamic(tmp_path):
    forms = SAMPLES + BATCHES
    calls = [made(form, dynamic=dynamic) for form in forms
             for dynamic in ((), tuple(range(len(form[1]))))]
    found = run_calls(tmp_path, calls)
    for one, other in zip(found[::2], found[1::2], strict=True):
        compare(one, other)
