"""A row's bits depend on the row alone: not on how many rows there are, on the
number of threads, on the run, or on whether shapes are static."""

import numpy as np
import pytest
from norm.data import MAKERS, draw, generator
from norm.golden import same_bits
from norm.program import Call
from norm.reference import NormSpec
from norm.runner import run_calls
from norm.types import cast, float_type

COUNTS = (1, 2, 3, 23, 24, 257)
FORMS = [(kind, element, extent, operands)
         for kind in ("layer_norm", "rms_norm") for element in ("f32", "bf16")
         for extent in (7, 129, 768, 4099) for operands in ("gb", "rg")]
STATISTICS = ("y", "mean", "variance", "rstd")


def form(kind, element, extent, operands, count, dynamic=()):
    """The first `count` rows of 257, hostile ones among them."""
    rng = generator(f"{kind}{element}{extent}{operands}")
    x = cast(MAKERS["mixed"](rng, COUNTS[-1], extent), float_type(element))
    residual = draw(rng, x.shape, element)
    scale, shift = (draw(rng, (extent,), element) for _ in range(2))
    results = tuple(r for r in STATISTICS if r != "mean" or kind == "layer_norm")
    if "r" in operands:
        results += ("sum",)
    return Call(NormSpec(kind=kind, axes=(1,)), x[:count],
                residual[:count] if "r" in operands else None, scale,
                shift if "b" in operands else None, results=results, dynamic=dynamic)


def compare(one, other, count=None):
    assert one.keys() == other.keys()
    for name, values in one.items():
        same_bits(values, other[name][:count])


@pytest.mark.parametrize("kind,element,extent,operands", FORMS)
def test_row_count(kind, element, extent, operands, tmp_path):
    found = run_calls(tmp_path, [form(kind, element, extent, operands, count)
                                 for count in COUNTS])
    for count, results in zip(COUNTS, found, strict=True):
        compare(results, found[-1], count)


@pytest.mark.parametrize("path", ["reference", "linalg"])
@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm"])
def test_row_count_on_other_paths(kind, path, tmp_path):
    counts, elements = (1, 23, 257), ("f32", "bf16")
    found = run_calls(tmp_path, [form(kind, element, 768, "rg", count)
                                 for element in elements for count in counts], path)
    for start in range(0, len(found), len(counts)):
        for count, results in zip(counts, found[start:], strict=False):
            compare(results, found[start + len(counts) - 1], count)


@pytest.mark.parametrize("element", ["f32", "bf16"])
@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm"])
def test_row_alone_and_in_a_large_batch(kind, element, tmp_path):
    """Large enough for threads and for stores that bypass the caches."""
    rng = generator(f"large{kind}{element}")
    x, scale = draw(rng, (4099, 768), element, 3.0), draw(rng, (768,), element)
    ranges = ((0, 4099), (0, 1), (2048, 2), (4096, 3))
    calls = [Call(NormSpec(kind=kind, axes=(1,)), x[start:start + count], scale=scale,
                  results=("y", "rstd")) for start, count in ranges]
    large, *parts = run_calls(tmp_path, calls)
    for (start, count), part in zip(ranges[1:], parts, strict=True):
        compare(part, {name: values[start:] for name, values in large.items()}, count)


@pytest.mark.parametrize("path", ["cpu", "reference", "linalg"])
def test_threads_and_runs(path, tmp_path):
    calls = [form(*one, 257) for one in FORMS if one[2] >= 768 and one[3] == "rg"]
    rng = generator("threads")
    for axes in ((1,), (0,)):
        x = draw(rng, (1025, 1023), "f32", 10.0)
        calls.append(Call(NormSpec(kind="layer_norm", axes=axes), x, results=STATISTICS))
    first = run_calls(tmp_path, calls, path, threads=1)
    for threads in (2, 2) if path == "cpu" else (2,):
        for one, other in zip(first, run_calls(tmp_path, calls, path, threads=threads),
                              strict=True):
            compare(one, other)


@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm"])
def test_static_and_dynamic(kind, tmp_path):
    """The kept dims may be unknown without a trace. So may the reduced ones: the
    order of summation follows from their values, not from when they are known."""
    calls, pairs = [], []
    for one in FORMS:
        if one[0] == kind:
            pairs.append(one)
            calls += [form(*one, 24, dynamic) for dynamic in ((), (0,), (0, 1))]
    found = run_calls(tmp_path, calls)
    for number, one in enumerate(pairs):
        static, *others = found[3 * number:3 * number + 3]
        for other in others:
            for name, values in static.items():
                assert values.tobytes() == other[name].tobytes(), (one, name)


@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm"])
def test_fortran_order(kind, tmp_path):
    calls = []
    for one in FORMS:
        if one[0] == kind:
            plain, other = form(*one, 24), form(*one, 24)
            other.x = np.asfortranarray(other.x)
            if other.residual is not None:
                other.residual = np.asfortranarray(other.residual)
            calls += [plain, other]
    found = run_calls(tmp_path, calls)
    for plain, other in zip(found[::2], found[1::2], strict=True):
        compare(plain, other)
