"""A row's bits do not depend on how the CPU path maps it to registers: on how many rows
a tile holds, on threads, on whether results go past the caches, on what is fetched
ahead, or on where arrays lie."""

import itertools

import numpy as np
import pytest
from norm.compiled import Compiled
from norm.data import MAKERS, draw, generator
from norm.golden import same_bits
from norm.types import cast, float_type

KINDS = ("layer_norm", "rms_norm", "l2_norm")
ELEMENTS = ("f32", "bf16", "f16", "f64")
EXTENTS = (8, 16, 64, 100, 768, 1023)
ROWS = 257
# (rows of x, rows of a tile, parallel, stored past the caches, fetched ahead)
FIRST = (ROWS, 1, "false", 0, 0)
MAPPINGS = (
    (1, 1, "false", 1, 1),
    (2, 2, "false", 0, 2),
    (3, 2, "true", 1, 0),
    (23, 1, "false", 1, 2),
    (24, 4, "true", 1, 2),
    (ROWS, 16, "true", 1, 1),
)
# Bytes by which arrays lie off a line.
SHIFTS = (0, 8, 16, 60)


def columns(element, extent):
    """What norm-configure chooses: 128 bytes of the compute type, or the row."""
    return min(16 if element == "f64" else 32, 1 << (extent - 1).bit_length())


def function(name, kind, element, extent, mapping):
    count, rows, parallel, stream, prefetch = mapping
    x, g = f"tensor<{count}x{extent}x{element}>", f"tensor<{extent}x{element}>"
    shift = f" shift(%g : {g})" if kind == "layer_norm" else ""
    scale = "" if kind == "l2_norm" else f" scale(%g : {g})"
    epsilon = "max_outside" if kind == "l2_norm" else "inside_sqrt"
    strategy = (f"rows = {rows}, columns = {columns(element, extent)}, parallel = {parallel}, "
                f"stream_bytes = {stream}, prefetch = {prefetch}")
    return f"""
func.func @{name}(%x: {x}, %g: {g}) -> {x} {{
  %y = norm.{kind} %x{scale}{shift} axes [1] epsilon {epsilon} 1.0e-5 {{
    norm.strategy = #norm.cpu<{strategy}>}} : {x} -> {x}
  return %y : {x}
}}"""


def placed(shape, dtype, shift):
    """An array `shift` bytes, in whole elements, after the start of a line."""
    size = int(np.prod(shape)) * dtype.itemsize
    whole = np.zeros(size + 128, np.uint8)
    start = -whole.__array_interface__["data"][0] % 64 + shift // dtype.itemsize * dtype.itemsize
    return whole[start:start + size].view(dtype).reshape(shape)


def copy_to(array, shift):
    copied = placed(array.shape, array.dtype, shift)
    copied[...] = array
    return copied


@pytest.fixture(scope="module", params=ELEMENTS)
def compiled(request, tmp_path_factory):
    """The functions of one element type: each extent with one kind of norm."""
    forms = {}
    for extent, kind in zip(EXTENTS, itertools.cycle(
            KINDS[(ELEMENTS.index(request.param) + i) % 3] for i in range(3)), strict=False):
        forms[extent] = kind
    text = "".join(function(f"f{extent}_{number}", kind, request.param, extent, mapping)
                   for extent, kind in forms.items()
                   for number, mapping in enumerate((FIRST, *MAPPINGS)))
    library = Compiled(tmp_path_factory.mktemp(request.param), text,
                       "--norm-to-cpu=strides=unit")
    return request.param, forms, library


@pytest.mark.parametrize("extent", EXTENTS)
def test_mapping(compiled, extent):
    element, forms, library = compiled
    rng = generator(f"bits{element}{extent}")
    x = cast(MAKERS["mixed"](rng, ROWS, extent), float_type(element))
    gain = draw(rng, (extent,), element)

    def run(number, mapping, shift):
        y = placed((mapping[0], extent), x.dtype, shift)
        inputs = [copy_to(x[:mapping[0]], SHIFTS[-1] - shift), copy_to(gain, shift)]
        library(inputs, [y], f"f{extent}_{number}")
        return y

    expected = run(0, FIRST, 0)
    for number, mapping in enumerate(MAPPINGS, 1):
        for shift in SHIFTS:
            same_bits(run(number, mapping, shift), expected[:mapping[0]])
