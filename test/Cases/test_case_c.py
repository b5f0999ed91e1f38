"""Public reports of faults in fused norms; see test_case_a.py."""

import itertools
import re

import numpy as np
import pytest
from case_tools import (
    ALL_GRADIENTS,
    LINALG,
    TILES,
    batch,
    count,
    group,
    instance,
    ir,
    remarks,
)
from norm.compiled import Compiled
from norm.golden import array, call, golden, layer, near, rms, same_bits
from norm.program import module_text
from norm.tools import norm_opt, norm_run
from norm.types import F32, cast, float_type, widen

RNG = np.random.default_rng(17320)
FUSE = ("--norm-fuse-residual", "--canonicalize", "--cse")

# ---- C1, C10: sums -------------------------------------------------------------------

OPS = {
    "layer_norm": "axes [2] epsilon inside_sqrt 1.0e-5", "rms_norm": "axes [2] epsilon none",
    "l2_norm": "axes [1, 2] epsilon max_outside 1.0e-3",
    "group_norm": "groups 2 channel_axis 1 axes [1, 2] epsilon inside_sqrt 1.0e-5",
    "batch_norm_training": "axes [0, 2] epsilon inside_sqrt 1.0e-5",
}
T, T16 = "tensor<2x4x9xf32>", "tensor<2x4x9xbf16>"
# What else is done with the sum %s beside the norm %y of it: (lines, what is returned).
USES = {
    "no other use": ("{y}", ["%y"]),
    "returned": ("{y}", ["%y", "%s"]),
    "used before": ("%t = math.tanh %s : {T}\n{y}", ["%y", "%t"]),
    "used before and returned": ("%t = math.tanh %s : {T}\n{y}", ["%s", "%y", "%t"]),
    "used twice after": ("{y}\n%t = arith.mulf %s, %s : {T}", ["%y", "%t"]),
    "normalized twice": ("{y}\n%t = norm.rms_norm %s axes [0] epsilon none : {T} -> {T}",
                         ["%t", "%y"]),
}


def sums(ops):
    """A function for each op and use of the sum, and with a cast between sum and norm."""
    text, results = "", {}
    for op, (use, (lines, returned)) in itertools.product(ops, USES.items()):
        name = f"{op}_{use}".replace(" ", "_")
        norm = f"%y = norm.{op} %s {OPS[op]} : {T} -> {T}"
        text += (f"func.func @{name}(%x: {T}, %r: {T}) -> ({', '.join([T] * len(returned))}) {{\n"
                 f"%s = arith.addf %x, %r : {T}\n{lines.format(y=norm, T=T)}\n"
                 f"return {', '.join(returned)} : {', '.join([T] * len(returned))}\n}}\n")
        results[name] = [F32] * len(returned)
    for op in ("layer_norm", "rms_norm"):
        text += (f"func.func @{op}_cast(%x: {T16}, %r: {T16}) -> ({T16}, {T16}) {{\n"
                 f"%xw = arith.extf %x : {T16} to {T}\n%rw = arith.extf %r : {T16} to {T}\n"
                 f"%w = arith.addf %xw, %rw : {T}\n%s = arith.truncf %w : {T} to {T16}\n"
                 f"%y = norm.{op} %s {OPS[op]} : {T16} -> {T16}\n"
                 f"return %y, %s : {T16}, {T16}\n}}\n")
        results[f"{op}_cast"] = [float_type("bf16")] * 2
    return text, results


@pytest.mark.parametrize("path", ["cpu", "reference", "linalg"])
def test_case_C1_the_sum_has_other_users(path, tmp_path):
    """case-C1: microsoft/onnxruntime PR 17320. Fusing an addition into a norm lost the sum where
    it was a result of the function. Used nowhere else, before, after, twice or returned, it is
    the op's own result or none, no addition is left and every value keeps its bits; a cast
    between addition and norm belongs to the sum."""
    text, functions = sums(OPS if path == "cpu" else ("layer_norm", "batch_norm_training"))
    fused = norm_opt(text, *FUSE)
    assert "addf" not in fused and fused.count("residual(") == len(functions)
    assert fused.count("sum(") == sum("no_other" not in name for name in functions)
    x, r = RNG.standard_normal((2, 2, 4, 9))
    x[0, 0], r[0, 0] = np.arange(9) + 1, np.arange(9) + 3
    lower = [LINALG] if path == "linalg" else []
    pipeline = "--norm-to-reference" if path == "reference" else "--norm-to-cpu=strides=unit"
    libraries = [Compiled(tmp_path / str(i), norm_opt(module, *lower), pipeline)
                 for i, module in enumerate((text, fused))]
    for name, types in functions.items():
        inputs = [cast(values, types[0]) for values in (x, r)]
        outputs = [[np.full(x.shape, np.nan, types[0].dtype) for _ in types] for _ in libraries]
        for library, arrays in zip(libraries, outputs, strict=True):
            library(inputs, arrays, name)
        for one, other in zip(*outputs, strict=True):
            assert one.tobytes() == other.tobytes(), name
            assert not np.isnan(widen(one)).any(), name


@golden(layer([[1.0, 2]], residual=[[3.0, 4]], results=("y", "sum")))
def test_case_C1_by_hand(got):
    near(got["sum"], [[4, 6]], 0)
    near(got["y"], [[-1, 1]], 1e-5)


RESIDUAL = dict(residual=[0.5, -0.5, 0.5, -0.5], results=("y", "sum"))


@golden(layer([256.0] * 4, "bf16", **RESIDUAL),
        layer([256.0] * 4, "bf16", sum_rounding="compute", **RESIDUAL),
        layer([256.0] * 4, "bf16", residual=RESIDUAL["residual"]),
        layer([256.0] * 4, "bf16", residual=[1.5, -1.5, 3, -3], results=("y", "sum")),
        rms([2048.0] * 4, "f16", residual=[1.0, 3, -1, 5], results=("y", "sum")),
        group([[256.0] * 4], 1, "bf16", residual=[RESIDUAL["residual"]], sum_rounding="compute",
              results=("y", "sum")))
def test_case_C10_is_the_sum_rounded_first(got):
    """case-C10: vllm-project/vllm#52104, vllm-project/vllm PR 52243, vllm-project/vllm-omni PR
    6878, ROCm/aiter PR 2586, ROCm/aiter#5151. Some kernels normalize the rounded sum and some
    the unrounded one; mixing both changed generated text. `sum_rounding` says which, and sums
    are rounded to nearest even."""
    assert not widen(got[0]["y"]).any() and not widen(got[2]["y"]).any()
    near(got[1]["y"], [1, -1, 1, -1], 0)
    for results in got[:2]:
        near(results["sum"], [256] * 4, 0)
    # To nearest even, not towards zero: 257.5 -> 258, 254.5 -> 254, 259 -> 260.
    near(got[3]["sum"], [258, 254, 260, 253], 0)
    near(got[4]["sum"], [2048, 2052, 2047, 2052], 0)
    near(got[5]["y"], [[1, -1, 1, -1]], 0)


@pytest.mark.parametrize("op", ["layer_norm", "rms_norm"])
def test_case_C10_fusing_keeps_the_rounding(op, tmp_path):
    """A bf16 addition stays a rounded sum, one in f32 an unrounded one."""
    v, w = "tensor<4x32xbf16>", "tensor<4x32xf32>"
    axes = "axes [1] epsilon inside_sqrt 1.0e-5"
    text = f"""func.func @main(%x: {v}, %r: {v}) -> ({v}, {w}) {{
      %s = arith.addf %x, %r : {v}
      %y = norm.{op} %s {axes} : {v} -> {v}
      %xw = arith.extf %x : {v} to {w}
      %rw = arith.extf %r : {v} to {w}
      %sw = arith.addf %xw, %rw : {w}
      %z = norm.{op} %sw {axes} : {w} -> {w}
      return %y, %z : {v}, {w}
    }}"""
    fused = norm_opt(text, *FUSE)
    assert "addf" not in fused and fused.count("sum_rounding compute") == 1, fused
    inputs = [array(values, "bf16") for values in
              (256 + np.zeros((4, 32)), RNG.standard_normal((4, 32)) / 2)]
    for target in ("cpu", "reference"):
        found = [norm_run(tmp_path / f"{target}{i}", module, inputs, ["bf16", "f32"], target)
                 for i, module in enumerate((text, fused))]
        for one, other in zip(*found, strict=True):
            same_bits(one, other)
        assert np.abs(found[0][1] - widen(found[0][0])).max() > (0.3 if op == "layer_norm" else 0)


# ---- C2: gains -----------------------------------------------------------------------

MULTIPLY = """
func.func @{name}(%x: tensor<{x}xf32>, %g: tensor<{g}xf32>) -> tensor<{y}xf32> {{
  %zero = arith.constant 0.0 : f32
  %n = arith.constant {n} : f32
  %eps = arith.constant 0.1 : f32
  %es = tensor.empty() : tensor<{kept}f32>
  %ey = tensor.empty() : tensor<{y}xf32>
  %init = linalg.fill ins(%zero : f32) outs(%es : tensor<{kept}f32>) -> tensor<{kept}f32>
  %sum = linalg.generic {{indexing_maps = [affine_map<({d}) -> ({d})>, affine_map<({d}) -> ({k})>],
      iterator_types = [{kinds}]}} ins(%x : tensor<{x}xf32>) outs(%init : tensor<{kept}f32>) {{
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %a : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  }} -> tensor<{kept}f32>
  %y = linalg.generic {{indexing_maps = [affine_map<({d}) -> ({xmap})>, affine_map<({d}) -> ({k})>,
      affine_map<({d}) -> ({gmap})>, affine_map<({d}) -> ({d})>], iterator_types = [{parallel}]}}
      ins(%x, %sum, %g : tensor<{x}xf32>, tensor<{kept}f32>, tensor<{g}xf32>)
      outs(%ey : tensor<{y}xf32>) {{
  ^bb0(%a: f32, %s: f32, %b: f32, %o: f32):
    %m = arith.divf %s, %n : f32
    %e = arith.addf %m, %eps : f32
    %r = math.rsqrt %e : f32
    %h = arith.mulf %a, %r : f32
    %t = arith.mulf {product} : f32
    linalg.yield %t : f32
  }} -> tensor<{y}xf32>
  return %y : tensor<{y}xf32>
}}
"""


def multiplied(name, x, g, gmap, y=None, xmap=None, product="%h, %b"):
    """A decomposed RMS norm over the last axis times %g; shapes as in 2x3x8."""
    rank = x.count("x") + 1
    dims = [f"d{i}" for i in range(rank)]
    kept = "x".join(x.split("x")[:-1])
    kinds = ['"parallel"'] * (rank - 1) + ['"reduction"']
    return MULTIPLY.format(
        name=name, x=x, g=g, y=y or x, n=float(x.split("x")[-1]), kept=kept + "x" if kept else "",
        d=", ".join(dims), k=", ".join(dims[:-1]), xmap=xmap or ", ".join(dims), gmap=gmap,
        kinds=", ".join(kinds), parallel=", ".join(['"parallel"'] * rank), product=product)


GAINS = {
    # name: (function, shapes of x and of g, whether %g may become the norm's scale)
    "of_the_row": (multiplied("of_the_row", "2x3x8", "8", "d2"), (2, 3, 8), (8,), True),
    "other_side": (multiplied("other_side", "2x3x8", "8", "d2", product="%b, %h"), (2, 3, 8), (8,),
                   True),
    "leading_ones": (multiplied("leading_ones", "2x3x8", "1x1x8", "0, 0, d2"), (2, 3, 8),
                     (1, 1, 8), None),
    "rank_1": (multiplied("rank_1", "8", "8", "d0"), (8,), (8,), True),
    "rank_1_other_side": (multiplied("rank_1_other_side", "8", "8", "d0", product="%b, %h"), (8,),
                          (8,), True),
    "of_the_batch": (multiplied("of_the_batch", "2x3x8", "2", "d0"), (2, 3, 8), (2,), None),
    "full": (multiplied("full", "2x3x8", "2x3x8", "d0, d1, d2"), (2, 3, 8), (2, 3, 8), None),
    "larger_result": (multiplied("larger_result", "1x1", "2", "d1", y="1x2", xmap="d0, 0"),
                      (1, 1), (2,), False),
}


@pytest.mark.parametrize("path", ["cpu", "reference"])
def test_case_C2_what_a_gain_is(path, tmp_path):
    """case-C2: microsoft/onnxruntime#27455, microsoft/onnxruntime#25855,
    microsoft/onnxruntime#31980, microsoft/onnxruntime#31147, onnx/onnx#8203. A factor of any
    shape was taken for the gain, or the normalized value itself where both have its shape. A
    factor with the row's shape becomes `scale` from either side; what varies along the batch
    or makes the result larger does not become one of another meaning."""
    text = "".join(function for function, *_ in GAINS.values())
    raised = norm_opt(text, "--norm-raise", "--canonicalize")
    functions = dict(re.findall(r"func\.func @(\w+)\((.*?)\n  }", raised, re.S))
    for name, (_, _, _, is_scale) in GAINS.items():
        if is_scale:
            assert re.search(r"norm\.rms_norm %arg0 scale\(%arg1", functions[name]), raised
        elif is_scale is False:
            assert "scale(" not in functions[name], raised
    pipeline = "--norm-to-reference" if path == "reference" else "--norm-to-cpu=strides=unit"
    library = Compiled(tmp_path, raised, pipeline)
    for name, (_, x_shape, g_shape, _) in GAINS.items():
        x, g = (array(RNG.standard_normal(shape)) for shape in (x_shape, g_shape))
        wide, factor = widen(x), widen(g)
        if name == "of_the_batch":
            factor = factor[:, None, None]
        expected = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 0.1) * factor
        y = np.full(expected.shape, np.nan, np.float32)
        library([x, g], [y], name)
        near(y, expected)


# ---- C4: broadcast residuals ---------------------------------------------------------

SKIP = """
func.func @main(%x: tensor<2x3x4xf32>, %skip: tensor<{shape}xf32>) -> (tensor<2x3x4xf32>,
                                                                      tensor<2x3x4xf32>) {{
  %e = tensor.empty() : tensor<2x3x4xf32>
  %s = linalg.generic {{indexing_maps = [{maps}, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins({operands}) outs(%e : tensor<2x3x4xf32>) {{
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.addf %p, %q : f32
    linalg.yield %t : f32
  }} -> tensor<2x3x4xf32>
  %y = norm.{op} : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  return %y, %s : tensor<2x3x4xf32>, tensor<2x3x4xf32>
}}
"""
SKIPS = {"1x3x4": "(0, b, c)", "3x4": "(b, c)", "4": "(c)", "2x1x4": "(a, 0, c)"}


def skipped(shape, op, swapped):
    sides = [("%x : tensor<2x3x4xf32>", "(a, b, c)"), (f"%skip : tensor<{shape}xf32>",
                                                       SKIPS[shape])]
    sides = sides[::-1] if swapped else sides
    names, types = zip(*(side.split(" : ") for side, _ in sides), strict=True)
    return SKIP.format(
        shape=shape, op=op, operands=f"{', '.join(names)} : {', '.join(types)}",
        maps=", ".join(f"affine_map<(a, b, c) -> {results}>" for _, results in sides))


@pytest.mark.parametrize("op", ["layer_norm %s axes [2] epsilon inside_sqrt 1.0e-5",
                                "rms_norm %s axes [1, 2] epsilon inside_sqrt 1.0e-5"],
                         ids=["layer_norm", "rms_norm"])
@pytest.mark.parametrize("shape", SKIPS)
def test_case_C4_broadcast_residual(shape, op, tmp_path):
    """case-C4: microsoft/onnxruntime#27488, microsoft/onnxruntime PR 27489. A skip connection
    that is repeated along the batch: the sum has the full shape, whichever side is which.
    Both orders end as the same residual of x's shape, with the right values."""
    x = array(RNG.standard_normal((2, 3, 4)))
    skip = array(RNG.standard_normal([int(n) for n in shape.split("x")]))
    total = widen(x) + widen(skip)
    axes = (2,) if "layer" in op else (1, 2)
    centre = total.mean(axes, keepdims=True) if "layer" in op else 0
    y = (total - centre) / np.sqrt(((total - centre)**2).mean(axes, keepdims=True) + 1e-5)
    forms = []
    for swapped in (False, True):
        module = norm_opt(skipped(shape, op, swapped), *FUSE)
        forms.append((module.count("residual("), count(r"= arith\.addf", module),
                      re.findall(r"residual\(%\S+ : \S+\)", module)))
        found = norm_run(tmp_path / str(swapped), module, [x, skip], ["f32"] * 2)
        near(found[0], y)
        near(found[1], total, 1e-7)
    assert forms[0] == forms[1]
    if shape in ("1x3x4", "3x4"):
        assert forms[0][:2] == (1, 0), forms


# ---- C7: epsilon ---------------------------------------------------------------------

EPSILONS = """
func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %a = norm.layer_norm %x axes [0] epsilon inside_sqrt 1.0e-1 : tensor<3xf32> -> tensor<3xf32>
  %b = norm.layer_norm %x axes [0] epsilon inside_sqrt 1.0e-5 : tensor<3xf32> -> tensor<3xf32>
  return %a, %b : tensor<3xf32>, tensor<3xf32>
}
"""
PASSES = ((), ("--canonicalize", "--cse"), ("--norm-simplify=fp-policy=real", "--cse"),
          FUSE, (LINALG, "--canonicalize", "--cse"))


@pytest.mark.parametrize("passes", PASSES, ids=lambda passes: " ".join(passes) or "none")
def test_case_C7_epsilon_survives(passes, tmp_path):
    """case-C7: tensorflow/tensorflow PR 58863, ggml-org/llama.cpp PR 14545,
    ggml-org/llama.cpp#2373, openxla/xla PR 13289. Epsilon was not copied to the fused op, was
    read from the wrong node or was a constant of the back end. Two norms with different
    epsilons stay two."""
    module = norm_opt(EPSILONS, *passes)
    one, other = norm_run(tmp_path, module, [array([1, 2, 3])], [F32, F32])
    near(one, [-1.1421, 0, 1.1421], 1e-4)
    near(other, [-1.2247357, 0, 1.2247357])


ONE_TO_SIX = np.arange(1.0, 7).reshape(2, 3)


@golden(*(call(kind, ONE_TO_SIX, axes=axes, epsilon=0.1, **rest) for kind, axes, rest in (
    ("rms_norm", (1,), {}), ("l2_norm", (1,), {}), ("batch_norm_training", (0,), {}),
    ("group_norm", (1,), dict(groups=1, channel_axis=1)),
    ("layer_norm_backward", (1,), dict(dy=ONE_TO_SIX**2)),
    ("rms_norm_backward", (1,), dict(dy=ONE_TO_SIX**2)),
    ("batch_norm_training_backward", (0,), dict(dy=ONE_TO_SIX**2, scale=[1, 2, 3])))),
    rms(ONE_TO_SIX, residual=ONE_TO_SIX, epsilon=0.1, compute="f16"),
    instance(ONE_TO_SIX[:, None], epsilon=0.1, placement="outside_sqrt"), paths=("cpu", "linalg"))
def test_case_C7_in_every_op(got):
    """A large epsilon, against the oracle; by hand where it is short."""
    x = ONE_TO_SIX
    near(got[0]["y"], x / np.sqrt((x**2).mean(1, keepdims=True) + 0.1))
    near(got[1]["y"], x / np.sqrt((x**2).sum(1, keepdims=True) + 0.1))
    near(got[2]["y"], (x - x.mean(0)) / np.sqrt(2.25 + 0.1))
    near(got[3]["y"], np.tile([-1.1421, 0, 1.1421], (2, 1)), 1e-4)


def test_case_C7_an_epsilon_that_vanishes_is_reported():
    """In a compute type where it is 0 it is not dropped in silence."""
    x = np.ones((2, 8))
    _, log = remarks(module_text([rms(x, "f16", compute="f16", epsilon=1e-9)]), LINALG)
    assert "warning" in log and "epsilon" in log
    _, log = remarks(module_text([rms(x, "f16", epsilon=1e-9)]), LINALG)
    assert "warning" not in log


# ---- C8: in place --------------------------------------------------------------------

X34, DY34 = np.array([[3.0, 4]]), np.array([[1.0, 0]])
WIDE_X, WIDE_DY = RNG.standard_normal((2, 5, 37))
INPLACE = {
    # name: (call, argument that shares the result, result)
    "dx_over_dy": (call("rms_norm_backward", X34, dy=DY34, placement="none"), 0, 0),
    "dx_over_x": (call("rms_norm_backward", X34, dy=DY34, placement="none"), 1, 0),
    "wide_dx_over_dy": (call("layer_norm_backward", WIDE_X, dy=WIDE_DY, scale=WIDE_X[0],
                             results=ALL_GRADIENTS), 0, 0),
    "wide_dx_over_x": (call("layer_norm_backward", WIDE_X, dy=WIDE_DY, scale=WIDE_X[0],
                            results=ALL_GRADIENTS), 1, 0),
    "batch_dx_over_dy": (call("batch_norm_training_backward", WIDE_X, axes=(0,), dy=WIDE_DY,
                              scale=WIDE_X[0], results=ALL_GRADIENTS), 0, 0),
    "y_over_x": (layer(WIDE_X, results=("y", "rstd")), 0, 0),
    "y_over_residual": (rms(WIDE_X, residual=WIDE_DY), 1, 0),
    "sum_over_x": (rms(WIDE_X, residual=WIDE_DY, results=("y", "sum")), 0, 1),
    "sum_over_residual": (rms(WIDE_X, residual=WIDE_DY, results=("y", "sum")), 1, 1),
    "y_of_a_column_over_x": (batch(WIDE_X, axes=(0,)), 0, 0),
}


@pytest.mark.parametrize("path", ["cpu", "reference", "linalg"])
def test_case_C8_results_over_operands(path, tmp_path):
    """case-C8: ggml-org/llama.cpp PR 24305, linkedin/Liger-Kernel PR 1305. A gradient written over
    dy or x was read again by later steps. With `norm.inplace` a result may be an operand's
    memory: forward and backward, y, dx and the stored sum."""
    text = ""
    for name, (made, argument, result) in INPLACE.items():
        one = module_text([made], entry=name)
        text += re.sub(rf"(%arg{argument}: tensor<[^>]*>)", rf"\1 {{norm.inplace = {result}}}",
                       one, count=1)
    if path == "linalg":
        text = norm_opt(text, LINALG)
    pipeline = "--norm-to-reference" if path == "reference" else "--norm-to-cpu"
    library = Compiled(tmp_path, text, pipeline)
    for name, (made, argument, result) in INPLACE.items():
        for shared in (False, True):
            inputs = [values.copy() for values in made.inputs()]
            outputs = [np.full(shape, np.nan, element.dtype)
                       for shape, element in made.result_types()]
            if shared:
                outputs[result] = inputs[argument]
            library(inputs, outputs, name)
            if not shared:
                expected = outputs
        for one, other in zip(outputs, expected, strict=True):
            assert one.tobytes() == other.tobytes(), name
        if name in ("dx_over_dy", "dx_over_x"):
            near(outputs[0], [[0.1810193, -0.1357645]])


AGAIN = """
func.func @main(%dy: tensor<5x37xf32>, %x: tensor<5x37xf32>) -> (tensor<5x37xf32>,
                tensor<5x37xf32>, tensor<5x37xf32>) {
  %dx = norm.rms_norm_backward %dy, %x axes [1] epsilon inside_sqrt 1.0e-5
      : tensor<5x37xf32>, tensor<5x37xf32> -> tensor<5x37xf32>
  %t = arith.addf %dx, %dy : tensor<5x37xf32>
  %z = norm.rms_norm_backward %t, %x axes [1] epsilon inside_sqrt 1.0e-5
      : tensor<5x37xf32>, tensor<5x37xf32> -> tensor<5x37xf32>
  return %dx, %t, %z : tensor<5x37xf32>, tensor<5x37xf32>, tensor<5x37xf32>
}
"""


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_case_C8_dy_is_used_again(target, tmp_path):
    """The gradient of a residual connection: dy meets dx after the norm's gradient."""
    dy, x = array(WIDE_DY), array(WIDE_X)
    dx, total, last = norm_run(tmp_path, AGAIN, [dy, x], ["f32"] * 3, target)
    r = 1 / np.sqrt((widen(x)**2).mean(1, keepdims=True) + 1e-5)

    def gradient(g):
        xhat = widen(x) * r
        return r * (g - xhat * (g * xhat).mean(1, keepdims=True))
    near(dx, gradient(widen(dy)), 4e-6)
    near(total, widen(dx) + widen(dy), 1e-6)
    near(last, gradient(widen(total)), 4e-6)


# ---- C11: types ----------------------------------------------------------------------

NARROW = ("f16", "bf16", "f32")
DATA = np.random.default_rng(11).standard_normal((4, 48))
WEIGHT = np.random.default_rng(12).standard_normal(48)
GAINED = [rms(array(DATA, x), scale=array(WEIGHT, g)) for x in NARROW for g in NARROW]
SUMMED = [layer(array(DATA, x), residual=array(DATA + 1, r), results=("y", "rstd"))
          for x in NARROW for r in NARROW]


@golden(*GAINED, *SUMMED)
def test_case_C11_mixed_types(got):
    """case-C11: openxla/xla PR 15210, sgl-project/sglang#32807, vllm-project/vllm PR 45770,
    pytorch/pytorch PR 195638. A weight was read as if it had x's type: NaN and no error; and
    a guard against that switched fusion off. Held against the oracle; here only that a weight
    is read in its own type."""
    for results, (x, g) in zip(got, itertools.product(NARROW, NARROW), strict=False):
        values = widen(array(DATA, x))
        expected = values / np.sqrt((values**2).mean(1)[:, None] + 1e-6) * widen(array(WEIGHT, g))
        near(results["y"], expected, 1e-6 if x == "f32" else 4e-3)
    for results, (x, r) in zip(got[9:], itertools.product(NARROW, NARROW), strict=True):
        assert results["rstd"].dtype == np.float32, (x, r)


@pytest.mark.parametrize("made", GAINED + SUMMED, ids=[
    f"{what}-{x}-{other}" for what in ("gain", "residual") for x in NARROW for other in NARROW])
def test_case_C11_mixed_types_are_one_loop(made):
    tiled = ir([made], *TILES)
    assert count(r"scf\.forall \(", tiled) == 1
    assert not re.search(r"^    %\S+ = (?:arith\.(?:ext|trunc)f|linalg\.generic)", tiled, re.M)


@pytest.mark.parametrize("integer", ["i8", "i32", "index"])
def test_case_C11_other_types_are_refused(integer):
    text = module_text([rms(DATA, scale=WEIGHT)]).replace("tensor<48xf32>", f"tensor<48x{integer}>")
    with pytest.raises(Exception, match="'scale' of element type f64, f32, f16 or bf16"):
        norm_opt(text)
