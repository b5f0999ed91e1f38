"""Norms and what is computed beside them as one kernel, against the reference pipeline."""

import re

import ml_dtypes
import numpy as np
import pytest
from neighbours import assert_close
from norm.emulated import Emulated, aligned
from norm.tools import ToolError, norm_opt, norm_run
from test_rope import FORMS, WIDTHS, Program, expected

DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8}

# The sum that is stored, and a gate of it that another projection scales.
GATED = """
func.func @main(%x: tensor<5x{n}x{t}>, %r: tensor<5x{n}x{t}>, %u: tensor<5x{n}x{t}>,
                %g: tensor<{n}xf32>)
    -> (tensor<5x{n}x{t}>, tensor<5x{n}x{t}>) {{
  %one = arith.constant dense<1.0> : tensor<5x{n}x{t}>
  %y, %s = norm.rms_norm %x residual(%r : tensor<5x{n}x{t}>) scale(%g : tensor<{n}xf32>) axes [1]
      epsilon inside_sqrt 1.0e-6 : tensor<5x{n}x{t}> -> tensor<5x{n}x{t}> sum(tensor<5x{n}x{t}>)
  %n = arith.negf %u : tensor<5x{n}x{t}>
  %e = math.exp %n : tensor<5x{n}x{t}>
  %d = arith.addf %e, %one : tensor<5x{n}x{t}>
  %q = arith.divf %u, %d : tensor<5x{n}x{t}>
  %z = arith.mulf %q, %y : tensor<5x{n}x{t}>
  return %z, %s : tensor<5x{n}x{t}>, tensor<5x{n}x{t}>
}}
"""

# int8 by a scale for each row: one more reduction, which waits for the norm's.
QUANTIZED = """
#row = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<5x{n}x{t}>, %g: tensor<{n}x{t}>) -> (tensor<5x{n}xi8>, tensor<5xf32>) {{
  %y = norm.layer_norm %x scale(%g : tensor<{n}x{t}>) axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<5x{n}x{t}> -> tensor<5x{n}xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<5xf32>) -> tensor<5xf32>
  %most = linalg.generic {{indexing_maps = [#all, #row],
      iterator_types = ["parallel", "reduction"]}}
      ins(%y : tensor<5x{n}xf32>) outs(%init : tensor<5xf32>) {{
  ^bb0(%a: f32, %m: f32):
    %b = math.absf %a : f32
    %c = arith.maximumf %b, %m : f32
    linalg.yield %c : f32
  }} -> tensor<5xf32>
  %bytes = tensor.empty() : tensor<5x{n}xi8>
  %q = linalg.generic {{indexing_maps = [#all, #row, #all],
      iterator_types = ["parallel", "parallel"]}}
      ins(%y, %most : tensor<5x{n}xf32>, tensor<5xf32>) outs(%bytes : tensor<5x{n}xi8>) {{
  ^bb0(%a: f32, %m: f32, %o: i8):
    %c127 = arith.constant 127.0 : f32
    %s = arith.divf %c127, %m : f32
    %b = arith.mulf %a, %s : f32
    %r = math.roundeven %b : f32
    %i = arith.fptosi %r : f32 to i8
    linalg.yield %i : i8
  }} -> tensor<5x{n}xi8>
  return %q, %most : tensor<5x{n}xi8>, tensor<5xf32>
}}
"""

# A norm of a branch, added to the stream, whose sum the next norm stores.
SANDWICH = """
func.func @main(%x: tensor<5x{n}x{t}>, %r: tensor<5x{n}x{t}>, %g: tensor<{n}x{t}>,
                %h: tensor<{n}x{t}>)
    -> (tensor<5x{n}x{t}>, tensor<5x{n}x{t}>) {{
  %a = norm.rms_norm %x scale(%g : tensor<{n}x{t}>) axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<5x{n}x{t}> -> tensor<5x{n}x{t}>
  %y, %s = norm.rms_norm %a residual(%r : tensor<5x{n}x{t}>) scale(%h : tensor<{n}x{t}>) axes [1]
      epsilon inside_sqrt 1.0e-6 : tensor<5x{n}x{t}> -> tensor<5x{n}x{t}> sum(tensor<5x{n}x{t}>)
  return %y, %s : tensor<5x{n}x{t}>, tensor<5x{n}x{t}>
}}
"""

PROGRAMS = {"gated": (GATED, 768, "bf16"), "gated in f32": (GATED, 100, "f32"),
            "quantized": (QUANTIZED, 768, "f32"), "quantized, in a block": (QUANTIZED, 1600, "f16"),
            "sandwich": (SANDWICH, 512, "bf16"), "sandwich in f32": (SANDWICH, 2048, "f32")}


def arrays(types):
    """The shape and the element type of each MLIR tensor type."""
    for text in types:
        *dims, element = text.split("x")
        yield tuple(map(int, dims)), DTYPES[element]


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_kernel(name, tmp_path):
    source, columns, element = PROGRAMS[name]
    text = source.format(n=columns, t=element)
    signature, results = re.search(r"@main\((.*?)\)\s*-> \((.*?)\) \{", text, re.DOTALL).groups()
    rng = np.random.default_rng(7)
    inputs = [aligned(rng.standard_normal(shape).astype(dtype))
              for shape, dtype in arrays(re.findall(r"tensor<(\S+?)>", signature))]
    types = re.findall(r"tensor<(\S+?)>", results)
    outputs = [aligned(np.zeros(shape, dtype)) for shape, dtype in arrays(types)]

    promised = norm_opt(text, "--norm-to-nvvm=alignment=promised")
    assert len(re.findall(r"gpu\.binary @", promised)) == 1
    Emulated(tmp_path / "gpu", text)(inputs, outputs, seed=3)
    want = norm_run(tmp_path / "reference", text, inputs, [t.split("x")[-1] for t in types],
                    target="reference")
    for got, right in zip(outputs, want, strict=True):
        if got.dtype == np.int8:
            assert np.abs(got.astype(int) - right).max() <= 1
        else:
            assert_close(got, right, 2e-5 if got.dtype == np.float32 else 2e-2)


def rotated(form, shape, dynamic=False):
    """A QK norm and the rotary embedding after it, and its inputs."""
    width = shape[-1] // WIDTHS.get(form, 1)
    program = Program(shape, width, "f32", dynamic)
    rng = np.random.default_rng(0)
    angles = rng.uniform(-3, 3, (shape[1], width))
    inputs = (rng.standard_normal(shape), rng.standard_normal(shape[-1]), np.cos(angles),
              np.sin(angles))
    return (program.text(*FORMS[form](program, shape)),
            [aligned(array.astype(np.float32)) for array in inputs])


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("form", ["hugging_face", "transposed", "insert_halves", "partial"])
def test_rotary_embedding(form, dynamic, tmp_path):
    text, inputs = rotated(form, (2, 3, 4, 64), dynamic)
    want = expected(form, *inputs)
    got = aligned(np.zeros(want.shape, np.float32))
    Emulated(tmp_path, text)(inputs, [got], seed=2)
    assert_close(got, want)


def test_pairs_of_neighbours_are_refused():
    with pytest.raises(ToolError, match="op cannot be spread over threads"):
        norm_opt(rotated("interleaved", (2, 3, 4, 64))[0], "--norm-to-nvvm")
