"""Versions of functions for known extents (norm-specialize): which one is called, and that
results are those of the function for any extent, bit by bit."""

import numpy as np
import pytest
from norm.compiled import Compiled
from norm.data import MAKERS, generator
from norm.golden import same_bits
from norm.types import cast, float_type

# Each version tells its number.
TOLD = """
func.func @f(%x: tensor<?x?xf32>, %g: tensor<?xf32>) -> tensor<?x?xf32> {
  %r = call @told0(%x) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
func.func @f__columns(%x: tensor<?x4xf32>, %g: tensor<?xf32>) -> tensor<?x?xf32>
    attributes {norm.version_of = @f} {
  %a = tensor.cast %x : tensor<?x4xf32> to tensor<?x?xf32>
  %r = call @told1(%a) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
func.func @f__rows(%x: tensor<2x?xf32>, %g: tensor<8xf32>) -> tensor<2x?xf32>
    attributes {norm.version_of = @f} {
  %a = tensor.cast %x : tensor<2x?xf32> to tensor<?x?xf32>
  %r = call @told2(%a) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %b = tensor.cast %r : tensor<?x?xf32> to tensor<2x?xf32>
  return %b : tensor<2x?xf32>
}
""" + "".join(f"""
func.func private @told{number}(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {{
  %c = arith.constant {number}.0 : f32
  %n = arith.constant 0.0 : f32
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %d0 = tensor.dim %x, %i0 : tensor<?x?xf32>
  %d1 = tensor.dim %x, %i1 : tensor<?x?xf32>
  %t = tensor.splat %c[%d0, %d1] : tensor<?x?xf32>
  %y = arith.addf %x, %t : tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}}
""" for number in range(3))


@pytest.mark.parametrize("order", ["C", "F"])
def test_first_that_fits(order, tmp_path):
    library = Compiled(tmp_path, TOLD)
    for rows, columns, gains, expected in ((3, 5, 5, 0), (3, 4, 4, 1), (1, 4, 8, 1), (2, 4, 8, 1),
                                           (2, 5, 8, 2), (2, 8, 8, 2), (2, 5, 5, 0), (0, 4, 4, 1)):
        x = np.asarray(np.arange(rows * columns).reshape(rows, columns), np.float32, order=order)
        y = np.full(x.shape, 77, np.float32)
        library([x, np.zeros(gains, np.float32)], [y], "f")
        np.testing.assert_array_equal(y, x + expected, err_msg=str((rows, columns, gains)))


FORWARD = """
func.func @{kind}{name}(%x: tensor<?x?x{e}>, %r: tensor<?x?x{e}>, %g: tensor<?xf32>)
    -> (tensor<?x?x{e}>, tensor<?x?x{e}>) {attributes} {{
  %s = arith.addf %x, %r : tensor<?x?x{e}>
  %y = norm.{kind} %s scale(%g : tensor<?xf32>) axes [1] epsilon inside_sqrt 1.0e-5
      : tensor<?x?x{e}> -> tensor<?x?x{e}>
  return %s, %y : tensor<?x?x{e}>, tensor<?x?x{e}>
}}
func.func @{kind}_backward{name}(%dy: tensor<?x?x{e}>, %x: tensor<?x?x{e}>, %g: tensor<?xf32>)
    -> (tensor<?x?x{e}>, tensor<?xf32>) {attributes} {{
  %dx, %dg = norm.{kind}_backward %dy, %x scale(%g : tensor<?xf32>) axes [1]
      epsilon inside_sqrt 1.0e-5 : tensor<?x?x{e}>, tensor<?x?x{e}> -> tensor<?x?x{e}>
      dscale(tensor<?xf32>)
  return %dx, %dg : tensor<?x?x{e}>, tensor<?xf32>
}}
"""
EXTENTS = (1, 7, 16, 40, 64, 128, 200, 768, 1023)


def versions(element):
    of = [f"[tensor<?x{n}x{element}>, tensor<?x{n}x{element}>, tensor<{n}xf32>]" for n in EXTENTS]
    return f"attributes {{norm.versions = [{', '.join(of)}]}}"


@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_bits_of_the_general_function(kind, element, tmp_path):
    library = Compiled(tmp_path, "".join(
        FORWARD.format(kind=kind, e=element, name=name, attributes=attributes)
        for name, attributes in (("_any", ""), ("_known", versions(element)))))
    rng = generator(f"versions{kind}{element}")
    for extent in EXTENTS + (9, 65):
        for rows, step in ((1, 1), (37, 1), (64, 2)):
            x, r = (cast(MAKERS["mixed"](rng, rows, step * extent), float_type(element))[:, ::step]
                    for _ in range(2))
            g = rng.normal(size=extent).astype(np.float32)
            for entry in (kind, f"{kind}_backward"):
                found = []
                for name in ("_any", "_known"):
                    second = (extent,) if "backward" in entry else x.shape
                    results = [np.full(x.shape, 77, x.dtype),
                               np.full(second, 77, np.float32 if len(second) == 1 else x.dtype)]
                    library([x, r, g], results, entry + name)
                    found.append(results)
                for one, other in zip(*found, strict=True):
                    same_bits(one, other)
