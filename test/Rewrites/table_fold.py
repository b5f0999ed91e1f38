"""Folding norms into the weights of their neighbours, and into plain arithmetic.

No op is named by the rewrites: what matters is how the indexing maps of a linalg op read
its input, its weights and its result."""

import numpy as np
from rewrites import REAL, Example, Refusal, Rewrite

FOLD_BN = ("--norm-fold-batch-norm",)
FOLD_AFFINE = ("--norm-fold-affine",)
SIMPLIFY_REAL = (REAL,)
MAIN = "func.func @main"


# ---- Text of modules -----------------------------------------------------------


def shaped(shape, element="f32"):
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{element}>"


def constant(name, shape, seed, low=-1.0, high=1.0, element="f32"):
    """A constant of numbers that f32 and bf16 hold exactly."""
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return f"  %{name} = arith.constant dense<{(np.round(values * 64) / 64).tolist()}> " \
           f": {shaped(shape, element)}\n"


def channel(count, **other):
    """Statistics, gain and shift of a batch norm with `count` channels."""
    wanted = {"m": (1, -1.0, 1.0), "v": (2, 0.25, 2.0), "g": (3, -2.0, 2.0), "b": (4, -1.0, 1.0)}
    return "".join(other[name] if name in other else constant(name, (count,), seed, low, high)
                   for name, (seed, low, high) in wanted.items())


def batch_norm(value, shape, axes, count, clauses="", result=None, epsilon="inside_sqrt 1.0e-5"):
    vector = shaped((count,))
    return (f"  %y = norm.batch_norm_inference %{value}{clauses} mean(%m : {vector}) "
            f"variance(%v : {vector}) scale(%g : {vector}) shift(%b : {vector}) "
            f"axes {list(axes)} epsilon {epsilon} : {shaped(shape)} -> {result or shaped(shape)}\n")


def zeros(name, shape, element="f32"):
    return (f"  %{name}_e = tensor.empty() : {shaped(shape, element)}\n"
            f"  %{name}_z = arith.constant 0.0 : {element}\n"
            f"  %{name} = linalg.fill ins(%{name}_z : {element}) "
            f"outs(%{name}_e : {shaped(shape, element)}) -> {shaped(shape, element)}\n")


def contract(name, op, value, value_shape, weight_shape, init, shape, weight="w",
             element="f32", weight_element=None):
    attributes = ""
    if "conv" in op:
        rank = int(op.split("_")[op.split("_").index("conv") + 1][0])
        attributes = (f" {{dilations = dense<1> : tensor<{rank}xi64>, "
                      f"strides = dense<1> : tensor<{rank}xi64>}}")
    return (f"  %{name} = linalg.{op}{attributes} ins(%{value}, %{weight} : "
            f"{shaped(value_shape, element)}, {shaped(weight_shape, weight_element or element)}) "
            f"outs(%{init} : {shaped(shape)}) -> {shaped(shape)}\n")


def function(arguments, result, body, value="y", constants=""):
    names = ", ".join(f"%{name}: {kind}" for name, kind in arguments.items())
    return f"{MAIN}({names}) -> {result} {{\n{constants}{body}  return %{value} : {result}\n}}\n"


def folded(op, x, w, shape, axis, *, add=None, view="", view_shape=None, view_axis=None,
           constants="", init=None, seed=7):
    """A convolution or matmul, something between, a batch norm."""
    norm_shape = view_shape or shape
    norm_axis = axis if view_axis is None else view_axis
    count = norm_shape[norm_axis]
    axes = [i for i in range(len(norm_shape)) if i != norm_axis]
    body = init or zeros("i", shape)
    body += contract("c", op, "x", x, w, "i", shape)
    value = "c"
    if add:
        body, value = body + add, "a"
    if view:
        body, value = body + view, "t"
    body += batch_norm(value, norm_shape, axes, count)
    return function({"x": shaped(x)}, shaped(norm_shape), body,
                    constants=constants + constant("w", w, seed) + channel(count))


def spread(name, source, count, shape, axis, source_element="f32"):
    """A vector broadcast along every other dimension."""
    others = [i for i in range(len(shape)) if i != axis]
    return (f"  %{name}_e = tensor.empty() : {shaped(shape)}\n"
            f"  %{name} = linalg.broadcast ins(%{source} : {shaped((count,), source_element)}) "
            f"outs(%{name}_e : {shaped(shape)}) dimensions = {others}\n")


def relu(name, value, shape):
    kind = shaped(shape)
    return (f"  %{name}_z = arith.constant dense<0.0> : {kind}\n"
            f"  %{name} = arith.maximumf %{value}, %{name}_z : {kind}\n")


def pad(name, value, before, after, padding="0.0"):
    names = ", ".join(f"%p{i}: index" for i in range(len(before)))
    low = [(b - a) // 2 for a, b in zip(before, after, strict=True)]
    return (f"  %{name}_v = arith.constant {padding} : f32\n"
            f"  %{name} = tensor.pad %{value} low{low} high{low} {{\n"
            f"  ^bb0({names}):\n    tensor.yield %{name}_v : f32\n"
            f"  }} : {shaped(before)} to {shaped(after)}\n")


# ---- C16 ---------------------------------------------------------------------

BN = (4, 6, 3)


def given(clauses="", constants=None, arguments=None, epsilon="inside_sqrt 1.0e-5", scale="6",
          **vectors):
    body = batch_norm("x", BN, [0, 2], 6, clauses, epsilon=epsilon)
    return function({"x": shaped(BN)} | (arguments or {}), shaped(BN), body,
                    constants=channel(6, **vectors) if constants is None else constants)


FAR_MEAN = "  %m = arith.constant dense<[3000.0, -3000.0, 1.0, 0.0, 2.0, 3.0]> : tensor<6xf32>\n"
NEGATIVE_VARIANCE = ("  %v = arith.constant dense<[1.0, 2.0, -0.5, 1.0, 1.0, 1.0]> "
                     ": tensor<6xf32>\n")
AFFINE_ALONG_SPACE = function(
    {"x": shaped(BN)}, shaped(BN),
    "  %y = norm.batch_norm_inference %x mean(%m : tensor<6xf32>) variance(%v : tensor<6xf32>) "
    "scale(%g : tensor<3xf32>) axes [0, 2] epsilon inside_sqrt 1.0e-5 affine_axes [2] "
    f": {shaped(BN)} -> {shaped(BN)}\n",
    constants=channel(6, g=constant("g", (3,), 3), b=""))
ROUNDED_BEFORE = function(
    {"x": shaped(BN, "bf16")}, shaped(BN, "bf16"),
    "  %y = norm.batch_norm_inference %x mean(%m : tensor<6xf32>) variance(%v : tensor<6xf32>) "
    "scale(%g : tensor<6xf32>) axes [0, 2] epsilon inside_sqrt 1.0e-5 affine_in result "
    f": {shaped(BN, 'bf16')} -> {shaped(BN, 'bf16')}\n", constants=channel(6, b=""))
HALF = ROUNDED_BEFORE.replace(" affine_in result", "")
OFFSET = given().replace("epsilon inside_sqrt 1.0e-5", "epsilon max_outside 0.5 scale_offset 1.0")

F64_MEAN = f"""{MAIN}(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {{
  %m = arith.constant dense<[10000000.25, 9999999.75, 1.0]> : tensor<3xf64>
  %v = arith.constant dense<[1.0, 4.0, 1.0e14]> : tensor<3xf32>
  %y = norm.batch_norm_inference %x mean(%m : tensor<3xf64>) variance(%v : tensor<3xf32>)
    axes [0] epsilon none : tensor<4x3xf32> -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}}
"""

MIXED_16 = f"""{MAIN}(%x: tensor<4x3xf32>) -> tensor<4x3xf16> {{
  %m = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %v = arith.constant dense<[1.0, 0.0, 3.0]> : tensor<3xf32>
  %y = norm.batch_norm_inference %x mean(%m : tensor<3xf32>) variance(%v : tensor<3xf32>)
    axes [0] epsilon max_inside 0.5 compute bf16 : tensor<4x3xf32> -> tensor<4x3xf16>
  return %y : tensor<4x3xf16>
}}
"""

C16 = Rewrite(
    "C16", "A batch norm whose statistics are constant is x·a + b; where a mean is far from 0 "
    "in units of its standard deviation, (x − mean)·a + b, which does not cancel.",
    "R", SIMPLIFY_REAL,
    {"real": "the policy lets results round otherwise",
     "residual": "no residual is added to x",
     "constant": "mean, variance, scale and shift are constants",
     "affine-axes": "scale and shift vary along the axes of the statistics",
     "affine-in": "nothing is rounded before scale and shift",
     "finite": "a and b are finite in the compute type"},
    [Example("x·a + b", given(), new=("arith.mulf", "arith.addf"), gone=("norm.", "arith.subf")),
     Example("a mean far away", given(m=FAR_MEAN), new=("arith.subf",), gone=("norm.",)),
     Example("a mean of more bits", F64_MEAN, new=("arith.subf",), gone=("norm.",),
             data={0: 1e7 + np.arange(12, dtype=np.float32).reshape(4, 3)}),
     Example("16-bit types of both kinds", MIXED_16, gone=("norm.",), tolerance=16),
     Example("offset, epsilon outside the root", OFFSET, gone=("norm.",)),
     Example("f32 arithmetic on bf16", HALF, new=("arith.extf", "arith.truncf"),
             gone=("norm.",))],
    [Refusal("real", given(), passes=("--norm-simplify",)),
     Refusal("residual", given(" residual(%r : tensor<4x6x3xf32>)",
                               arguments={"r": shaped(BN)}), switch=False),
     Refusal("constant", given(m="", arguments={"m": "tensor<6xf32>"}), switch=False),
     Refusal("constant", given(b="", arguments={"b": "tensor<6xf32>"}), switch=False,
             name="shift"),
     Refusal("affine-axes", AFFINE_ALONG_SPACE, switch=False),
     Refusal("affine-in", ROUNDED_BEFORE),
     Refusal("finite", given(v=NEGATIVE_VARIANCE))])

# ---- C17 ---------------------------------------------------------------------

STATISTICS_OF_2 = """\
  %m = arith.constant dense<[1.0, -2.0]> : tensor<2xf32>
  %v = arith.constant dense<[4.0, 0.25]> : tensor<2xf32>
  %g = arith.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %b = arith.constant dense<[0.5, -1.0]> : tensor<2xf32>
"""
LINEAR_BN = f"""{MAIN}(%x: tensor<4x3xf32>) -> tensor<4x2xf32> {{
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
{STATISTICS_OF_2}  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x2xf32>) -> tensor<4x2xf32>
  %c = linalg.matmul ins(%x, %w : tensor<4x3xf32>, tensor<3x2xf32>)
      outs(%init : tensor<4x2xf32>) -> tensor<4x2xf32>
  %y = norm.batch_norm_inference %c mean(%m : tensor<2xf32>) variance(%v : tensor<2xf32>)
      scale(%g : tensor<2xf32>) shift(%b : tensor<2xf32>) axes [0] epsilon none
      : tensor<4x2xf32> -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}}
"""
NCHW = folded("conv_2d_nchw_fchw", (2, 3, 5, 5), (4, 3, 3, 3), (2, 4, 3, 3), 1)
BIAS_INIT = folded(
    "conv_2d_nhwc_hwcf", (1, 5, 5, 3), (3, 3, 3, 4), (1, 3, 3, 4), 3,
    init=spread("i", "cb", 4, (1, 3, 3, 4), 3), constants=constant("cb", (4,), 11))
BIAS_ADDED = folded(
    "conv_2d_nhwc_fhwc", (1, 5, 5, 3), (4, 3, 3, 3), (1, 3, 3, 4), 3,
    add=spread("s", "cb", 4, (1, 3, 3, 4), 3)
    + "  %a = arith.addf %s, %c : tensor<1x3x3x4xf32>\n", constants=constant("cb", (4,), 11))
DEPTHWISE = folded("depthwise_conv_2d_nhwc_hwc", (1, 5, 5, 4), (3, 3, 4), (1, 3, 3, 4), 3)
MULTIPLIER = folded(
    "depthwise_conv_2d_nhwc_hwcm", (1, 5, 5, 4), (3, 3, 4, 2), (1, 3, 3, 4, 2), 3,
    view="  %t = tensor.collapse_shape %c [[0], [1], [2], [3, 4]] "
         ": tensor<1x3x3x4x2xf32> into tensor<1x3x3x8xf32>\n", view_shape=(1, 3, 3, 8))
GROUPED = folded(
    "conv_2d_ngchw_gfchw", (1, 2, 3, 5, 5), (2, 4, 3, 3, 3), (1, 2, 4, 3, 3), 1,
    view="  %t = tensor.collapse_shape %c [[0], [1, 2], [3], [4]] "
         ": tensor<1x2x4x3x3xf32> into tensor<1x8x3x3xf32>\n", view_shape=(1, 8, 3, 3))
CONV_1D = folded("conv_1d_nwc_wcf", (2, 7, 3), (3, 3, 4), (2, 5, 4), 2)
CONV_3D = folded("conv_3d_ndhwc_dhwcf", (1, 4, 4, 4, 2), (2, 2, 2, 2, 3), (1, 3, 3, 3, 3), 4)
TRANSPOSED_RESULT = folded(
    "conv_2d_nhwc_hwcf", (1, 5, 5, 3), (3, 3, 3, 4), (1, 3, 3, 4), 3,
    view="  %t_e = tensor.empty() : tensor<1x4x3x3xf32>\n"
         "  %t = linalg.transpose ins(%c : tensor<1x3x3x4xf32>) "
         "outs(%t_e : tensor<1x4x3x3xf32>) permutation = [0, 3, 1, 2]\n",
    view_shape=(1, 4, 3, 3), view_axis=1)


def linear(weights="", arguments=None, between="", value="t", **vectors):
    """Rows times transposed weights, as frontends write a linear layer."""
    body = weights or (
        constant("w0", (8, 5), 21) + "  %w_e = tensor.empty() : tensor<5x8xf32>\n"
        "  %w = linalg.transpose ins(%w0 : tensor<8x5xf32>) outs(%w_e : tensor<5x8xf32>) "
        "permutation = [1, 0]\n")
    body += zeros("i", (6, 8)) + contract("c", "matmul", "x", (6, 5), (5, 8), "i", (6, 8))
    body += ("  %t = tensor.expand_shape %c [[0, 1], [2]] output_shape [2, 3, 8] "
             ": tensor<6x8xf32> into tensor<2x3x8xf32>\n" + between)
    body += batch_norm(value, (2, 3, 8), [0, 1], 8)
    return function({"x": shaped((6, 5))} | (arguments or {}), shaped((2, 3, 8)), body,
                    constants=channel(8, **vectors))


BATCH_MATMUL = folded("batch_matmul", (2, 3, 5), (2, 5, 4), (2, 3, 4), 2)
WEIGHTS_FIRST = function(
    {"x": "tensor<5x6xf32>"}, "tensor<4x6xf32>",
    zeros("i", (4, 6)) + "  %c = linalg.matmul ins(%w, %x : tensor<4x5xf32>, tensor<5x6xf32>) "
    "outs(%i : tensor<4x6xf32>) -> tensor<4x6xf32>\n" + batch_norm("c", (4, 6), [1], 4),
    constants=constant("w", (4, 5), 5) + channel(4))


def generic(weight_element="f32", widen=""):
    """A matmul as linalg.generic, its weights in another type."""
    kind = f"tensor<5x8x{weight_element}>"
    weights = (constant("w", (5, 8), 5, element=weight_element) if weight_element != "i8"
               else f"  %w = arith.constant dense<3> : {kind}\n")
    product = "%p = arith.mulf %xe, %we : f32" if not widen else (
        f"%wf = arith.{widen} %we : {weight_element} to f32\n"
        "    %p = arith.mulf %xe, %wf : f32")
    body = zeros("i", (6, 8)) + (
        "  %c = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, "
        "affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], "
        'iterator_types = ["parallel", "parallel", "reduction"]} '
        f"ins(%x, %w : tensor<6x5xf32>, {kind}) outs(%i : tensor<6x8xf32>) {{\n"
        f"  ^bb0(%xe: f32, %we: {weight_element}, %o: f32):\n    {product}\n"
        "    %s = arith.addf %o, %p : f32\n    linalg.yield %s : f32\n"
        "  } -> tensor<6x8xf32>\n") + batch_norm("c", (6, 8), [0], 8)
    return function({"x": "tensor<6x5xf32>"}, "tensor<6x8xf32>", body,
                    constants=weights + channel(8))


def two_uses():
    kind = shaped((2, 4, 3, 3))
    return NCHW.replace(f"-> {kind} {{", f"-> ({kind}, {kind}) {{").replace(
        f"return %y : {kind}", f"return %y, %c : {kind}, {kind}")


def between(step, shape=(2, 4, 3, 3)):
    """The convolution with another op before the norm."""
    text = NCHW.replace("norm.batch_norm_inference %c", "norm.batch_norm_inference %k")
    lines = text.splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if "norm.batch" in line)
    return "".join([*lines[:at], step, *lines[at:]]) if shape else text


CONV_OUT = (2, 4, 3, 3)
CAST = ("  %half = arith.truncf %c : tensor<2x4x3x3xf32> to tensor<2x4x3x3xbf16>\n"
        "  %k = arith.extf %half : tensor<2x4x3x3xbf16> to tensor<2x4x3x3xf32>\n")
POOL = (zeros("ki", CONV_OUT) + "  %kw = tensor.empty() : tensor<1x1xf32>\n"
        "  %k = linalg.pooling_nchw_max {dilations = dense<1> : tensor<2xi64>, "
        "strides = dense<1> : tensor<2xi64>} ins(%c, %kw : tensor<2x4x3x3xf32>, tensor<1x1xf32>) "
        "outs(%ki : tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>\n")
PADDED = folded(
    "conv_2d_nchw_fchw", (2, 3, 5, 5), (4, 3, 3, 3), (2, 4, 3, 3), 1,
    view=pad("t", "c", (2, 4, 3, 3), (2, 4, 5, 5)), view_shape=(2, 4, 5, 5))
WRONG_CHANNEL = folded("conv_2d_nchw_fchw", (2, 3, 5, 5), (4, 3, 3, 3), (2, 4, 3, 3), 2)
WRONG_BIAS = folded(
    "conv_2d_nchw_fchw", (2, 3, 5, 5), (4, 3, 3, 3), (2, 4, 3, 3), 1,
    init=constant("i", (2, 4, 3, 3), 31))
NOT_CONSTANT = NCHW.replace("(%x: tensor<2x3x5x5xf32>",
                            "(%x: tensor<2x3x5x5xf32>, %wa: tensor<4x3x3x3xf32>"
                            ).replace("%w :", "%wa :")
WIDER = NCHW.replace("tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>\n  return",
                     "tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf64>\n  return").replace(
    "-> tensor<2x4x3x3xf32> {", "-> tensor<2x4x3x3xf64> {").replace(
    "return %y : tensor<2x4x3x3xf32>", "return %y : tensor<2x4x3x3xf64>")
RESIDUAL = NCHW.replace("norm.batch_norm_inference %c",
                        "norm.batch_norm_inference %c residual(%r : tensor<2x4x3x3xf32>)"
                        ).replace("(%x: tensor<2x3x5x5xf32>",
                                  "(%x: tensor<2x3x5x5xf32>, %r: tensor<2x4x3x3xf32>")
STATISTICS = NCHW.replace("(%x: tensor<2x3x5x5xf32>",
                          "(%x: tensor<2x3x5x5xf32>, %ma: tensor<4xf32>"
                          ).replace("mean(%m", "mean(%ma")
NO_VARIANCE = NCHW.replace("axes [0, 2, 3] epsilon inside_sqrt 1.0e-5",
                           "axes [0, 2, 3] epsilon none")
AFFINE_AXES = folded("conv_2d_nchw_fchw", (2, 3, 5, 5), (4, 3, 3, 3), (2, 4, 3, 3), 1).replace(
    "shift(%b : tensor<4xf32>) axes", "axes").replace(
    "scale(%g : tensor<4xf32>)", "scale(%g2 : tensor<3xf32>)").replace(
    "epsilon inside_sqrt 1.0e-5", "epsilon inside_sqrt 1.0e-5 affine_axes [2]").replace(
    "  %w =", constant("g2", (3,), 3) + "  %w =")
# bf16 data, f32 sums: the norm reads f32 and rounds x^ to bf16 before the gain.
ZERO = "  %v = arith.constant dense<[1.0, 0.0, 1.0, 1.0]> : tensor<4xf32>\n"


def zero_variance():
    lines = NO_VARIANCE.splitlines(keepends=True)
    return "".join(ZERO if line.startswith("  %v =") else line for line in lines)


def conv_rounded():
    """bf16 matmul sums, rounded before the gain."""
    body = zeros("i", (6, 8), "bf16") + (
        "  %c = linalg.matmul ins(%x, %w : tensor<6x5xbf16>, tensor<5x8xbf16>) "
        "outs(%i : tensor<6x8xbf16>) -> tensor<6x8xbf16>\n"
        "  %y = norm.batch_norm_inference %c mean(%m : tensor<8xf32>) variance(%v : tensor<8xf32>) "
        "scale(%g : tensor<8xf32>) axes [0] epsilon inside_sqrt 1.0e-5 affine_in result "
        ": tensor<6x8xbf16> -> tensor<6x8xbf16>\n")
    return function({"x": "tensor<6x5xbf16>"}, "tensor<6x8xbf16>", body,
                    constants=constant("w", (5, 8), 5, element="bf16") + channel(8, b=""))


GONE = ("norm.batch_norm",)
C17 = Rewrite(
    "C17", "A batch norm with constant statistics becomes part of the weights and the bias of "
    "the convolution or matmul before it: W·a along the output channel, "
    "(bias − mean)·a + shift.", "R", FOLD_BN,
    {"residual": "no residual is added to the value",
     "constant": "mean, variance, scale and shift are constants",
     "affine-axes": "scale and shift vary along the axes of the statistics",
     "affine-in": "nothing is rounded before scale and shift",
     "producer": "the value comes from a convolution or matmul; between are only reshapes, "
                 "transposes and a bias, no activation, cast, padding or pooling",
     "float-weights": "the weights are floats, not integers",
     "types": "the result has the value's type",
     "channel": "the statistics vary along one output channel that indexes the weights",
     "weights": "the weights are a constant",
     "bias": "the sums start at 0 or at a constant per channel",
     "one-use": "nothing else reads the value",
     "finite": "the new weights and bias are finite in their types"},
    [Example("a linear layer", LINEAR_BN, gone=GONE),
     Example("NCHW convolution", NCHW, gone=GONE),
     Example("NHWC with a bias it starts from", BIAS_INIT, gone=GONE),
     Example("FHWC weights, a bias added after", BIAS_ADDED, gone=(*GONE, "arith.addf %")),
     Example("depthwise", DEPTHWISE, gone=GONE),
     Example("depthwise with multiplier", MULTIPLIER, gone=GONE),
     Example("grouped", GROUPED, gone=GONE),
     Example("1-d", CONV_1D, gone=GONE),
     Example("3-d", CONV_3D, gone=GONE),
     Example("transposed result", TRANSPOSED_RESULT, gone=GONE),
     Example("transposed weights, rows reshaped", linear(), gone=GONE),
     Example("batch matmul", BATCH_MATMUL, gone=GONE),
     Example("weights come first", WEIGHTS_FIRST, gone=GONE),
     Example("generic", generic(), gone=GONE),
     Example("generic with bf16 weights", generic("bf16", "extf"), gone=GONE,
             tolerance=2.0**16)],
    [Refusal("residual", RESIDUAL, switch=False),
     Refusal("constant", STATISTICS, switch=False),
     Refusal("affine-axes", AFFINE_AXES, switch=False),
     Refusal("affine-in", conv_rounded()),
     Refusal("producer", between(relu("k", "c", CONV_OUT)), switch=False, name="activation"),
     Refusal("producer", between(CAST), switch=False, name="cast"),
     Refusal("producer", between(POOL), switch=False, name="pooling"),
     Refusal("producer", PADDED, switch=False, name="padding"),
     Refusal("float-weights", generic("i8", "sitofp"), switch=False),
     Refusal("types", WIDER, switch=False),
     Refusal("channel", WRONG_CHANNEL, switch=False),
     Refusal("weights", NOT_CONSTANT, switch=False),
     Refusal("bias", WRONG_BIAS, switch=False),
     Refusal("one-use", two_uses()),
     Refusal("finite", zero_variance())])

# ---- C18 ---------------------------------------------------------------------

IMAGE, KERNEL, OUT = (1, 3, 5, 5), (4, 3, 3, 3), (1, 4, 3, 3)
CONV = "conv_2d_nchw_fchw"


def read_by(consumers, values, shape=IMAGE, axis=1, clauses="epsilon inside_sqrt 1.0e-5",
            constants=None, arguments=None, norm=None, result=None, **vectors):
    """A batch norm, and what reads it; `values` of {name: shape} are returned."""
    count = shape[axis]
    axes = [i for i in range(len(shape)) if i != axis]
    vector = shaped((count,))
    body = norm or (
        f"  %y = norm.batch_norm_inference %x mean(%m : {vector}) variance(%v : {vector}) "
        f"scale(%g : {vector}) shift(%b : {vector}) axes {axes} {clauses} "
        f": {shaped(shape)} -> {result or shaped(shape)}\n")
    names = ", ".join(f"%{name}: {kind}" for name, kind in
                      ({"x": shaped(shape)} | (arguments or {})).items())
    kinds = ", ".join(shaped(kind) for kind in values.values())
    returned = ", ".join(f"%{name}" for name in values)
    own = channel(count, **vectors) if constants is None else constants
    return (f"{MAIN}({names}) -> ({kinds}) {{\n{own}{body}{consumers}"
            f"  return {returned} : {kinds}\n}}\n")


def conv(name="c", value="y", image=IMAGE, out=OUT, init=None, seed=7, kernel=KERNEL, op=CONV):
    return (constant(f"w{name}", kernel, seed) + (init or zeros(f"i{name}", out))
            + contract(name, op, value, image, kernel, f"i{name}", out, weight=f"w{name}"))


BN_POINTWISE = f"""{MAIN}(%x: tensor<1x2x4x4xf32>) -> tensor<1x1x4x4xf32> {{
  %w = arith.constant dense<[[[[2.0]], [[3.0]]]]> : tensor<1x2x1x1xf32>
{STATISTICS_OF_2}  %y = norm.batch_norm_inference %x
      mean(%m : tensor<2xf32>) variance(%v : tensor<2xf32>)
      scale(%g : tensor<2xf32>) shift(%b : tensor<2xf32>) axes [0, 2, 3] epsilon none
      : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x1x4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x1x4x4xf32>)
      -> tensor<1x1x4x4xf32>
  %c = linalg.conv_2d_nchw_fchw
      {{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}}
      ins(%y, %w : tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32>)
      outs(%init : tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  return %c : tensor<1x1x4x4xf32>
}}
"""
ZEROS = {name: f"  %{name} = arith.constant dense<0.0> : tensor<3xf32>\n" for name in "mb"}
TWO_X_MINUS_1 = {"m": "  %m = arith.constant dense<0.5> : tensor<3xf32>\n",
                 "v": "  %v = arith.constant dense<0.25> : tensor<3xf32>\n",
                 "g": "  %g = arith.constant dense<1.0> : tensor<3xf32>\n",
                 "b": ZEROS["b"]}
PAD = pad("p", "y", IMAGE, (1, 3, 7, 7))
PAD_CONV = PAD + conv(value="p", image=(1, 3, 7, 7), out=(1, 4, 5, 5))
DEPTHWISE_AFTER = conv("d", op="depthwise_conv_2d_nchw_chw", kernel=(3, 3, 3), out=(1, 3, 3, 3))
GROUPS = (1, 4, 5, 5)
GROUPED_AFTER = (
    "  %s = tensor.expand_shape %y [[0], [1, 2], [3], [4]] output_shape [1, 2, 2, 5, 5] "
    ": tensor<1x4x5x5xf32> into tensor<1x2x2x5x5xf32>\n"
    + conv(value="s", image=(1, 2, 2, 5, 5), out=(1, 2, 3, 3, 3), kernel=(2, 3, 2, 3, 3),
           op="conv_2d_ngchw_gfchw"))
CHANNELS_LAST = constant("wc", (3, 3, 3, 4), 7) + zeros("ic", (1, 3, 3, 4)) + contract(
    "c", "conv_2d_nhwc_hwcf", "y", (1, 5, 5, 3), (3, 3, 3, 4), "ic", (1, 3, 3, 4), weight="wc")
GROUP_NORM = ("  %y = norm.group_norm %x scale(%g : tensor<4xf32>) shift(%b : tensor<4xf32>) "
              "groups 2 channel_axis 1 axes [1, 2, 3] epsilon inside_sqrt 1.0e-5 "
              ": tensor<1x4x5x5xf32> -> tensor<1x4x5x5xf32>\n")
GROUP_NORM_CONV = read_by(conv(image=GROUPS, kernel=(4, 4, 3, 3)), {"c": OUT}, shape=GROUPS,
                          norm=GROUP_NORM)
INSTANCE_NORM = ("  %y = norm.instance_norm %x scale(%g : tensor<3xf32>) "
                 "shift(%b : tensor<3xf32>) axes [2, 3] epsilon inside_sqrt 1.0e-5 "
                 "affine_axes [1] : tensor<1x3x5x5xf32> -> tensor<1x3x5x5xf32>\n")
I8_MATMUL = (
    "  %w8 = arith.constant dense<3> : tensor<5x4xi8>\n" + zeros("i", (1, 3, 5, 4)) +
    "  %c = linalg.generic {indexing_maps = [affine_map<(a, b, m, n, k) -> (a, b, m, k)>, "
    "affine_map<(a, b, m, n, k) -> (k, n)>, affine_map<(a, b, m, n, k) -> (a, b, m, n)>], "
    'iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} '
    "ins(%y, %w8 : tensor<1x3x5x5xf32>, tensor<5x4xi8>) outs(%i : tensor<1x3x5x4xf32>) {\n"
    "  ^bb0(%a: f32, %q: i8, %o: f32):\n    %wf = arith.sitofp %q : i8 to f32\n"
    "    %p = arith.mulf %a, %wf : f32\n    %s = arith.addf %o, %p : f32\n"
    "    linalg.yield %s : f32\n  } -> tensor<1x3x5x4xf32>\n")
BN_18 = read_by(conv(), {"c": OUT})
ARGUMENT_WEIGHTS = (zeros("i", OUT) + contract("c", CONV, "y", IMAGE, KERNEL, "i", OUT,
                                               weight="wa"))
WIDE_CONV = (constant("wc", KERNEL, 7) + zeros("ic", OUT).replace("f32", "f64")
             + contract("c", CONV, "y", IMAGE, KERNEL, "ic", OUT, weight="wc", element="f64"
                        ).replace("tensor<1x4x3x3xf32>", "tensor<1x4x3x3xf64>")
             ).replace("tensor<4x3x3x3xf32>", "tensor<4x3x3x3xf64>")
SPATIAL = read_by(conv(), {"c": OUT}, axis=2)
BF16_NORM = ("  %y = norm.batch_norm_inference %x mean(%m : tensor<3xf32>) "
             "variance(%v : tensor<3xf32>) scale(%g : tensor<3xf32>) axes [0, 2, 3] "
             "epsilon inside_sqrt 1.0e-5 affine_in result "
             ": tensor<1x3x5x5xbf16> -> tensor<1x3x5x5xbf16>\n")
BF16_READ = read_by(
    constant("wc", KERNEL, 7, element="bf16") + zeros("ic", OUT)
    + contract("c", CONV, "y", IMAGE, KERNEL, "ic", OUT, weight="wc", element="bf16"),
    {"c": OUT}, norm=BF16_NORM).replace("%x: tensor<1x3x5x5xf32>", "%x: tensor<1x3x5x5xbf16>")

C18 = Rewrite(
    "C18", "A batch norm with constant statistics, or the scale and shift of another norm, "
    "becomes part of the weights of every convolution that reads it: W·a along the input "
    "channel; what the shift adds to each sum is where the sum starts.", "R", FOLD_BN,
    {"residual": "no residual is added to x (batch norm)",
     "constant": "mean, variance, scale and shift are constants",
     "affine-axes": "scale and shift vary along the axes of the statistics (batch norm)",
     "affine-in": "nothing is rounded before scale and shift",
     "types": "the result has x's type (batch norm)",
     "near": "no mean is further from 0 than 64 deviations: x·a would cancel against it (batch "
             "norm)",
     "float-weights": "no weights are integers",
     "consumers": "convolutions and matmuls are all that reads the result, through reshapes, "
                  "transposes and padding: all are rewritten or none",
     "weights": "all weights are constants",
     "contraction-dim": "the scale varies along one input channel that indexes the weights",
     "padding": "what is padded is what scale and shift make of one number (0 stays 0 where "
                "there is no shift)",
     "finite": "the new weights and sums are finite in their types"},
    [Example("pointwise convolution", BN_POINTWISE, gone=GONE),
     Example("NCHW convolution", BN_18, gone=GONE),
     Example("NHWC convolution", read_by(CHANNELS_LAST, {"c": (1, 3, 3, 4)}, shape=(1, 5, 5, 3),
                                         axis=3), gone=GONE),
     Example("two convolutions, one depthwise",
             read_by(conv() + DEPTHWISE_AFTER, {"c": OUT, "d": (1, 3, 3, 3)}), gone=GONE),
     Example("grouped", read_by(GROUPED_AFTER, {"c": (1, 2, 3, 3, 3)}, shape=GROUPS), gone=GONE),
     Example("zero padding without a shift", read_by(PAD_CONV, {"c": (1, 4, 5, 5)}, **ZEROS),
             gone=GONE),
     Example("padding that the shift moves",
             read_by(PAD_CONV, {"c": (1, 4, 5, 5)}, clauses="epsilon none", **TWO_X_MINUS_1),
             gone=GONE, new=("5.000000e-01",)),
     Example("added to what is there",
             read_by(conv(init="  %ic = arith.addf %r, %r : tensor<1x4x3x3xf32>\n"), {"c": OUT},
                     arguments={"r": shaped(OUT)}), gone=GONE, new=("arith.addf",)),
     Example("group norm", GROUP_NORM_CONV, passes=FOLD_AFFINE, new=("norm.group_norm",),
             gone=("scale(", "shift(")),
     Example("instance norm", read_by(conv(), {"c": OUT}, norm=INSTANCE_NORM),
             passes=FOLD_AFFINE, new=("norm.instance_norm",), gone=("scale(", "shift("))],
    [Refusal("residual", BN_18.replace("%x mean", "%x residual(%x : tensor<1x3x5x5xf32>) mean"),
             switch=False),
     Refusal("constant", read_by(conv(), {"c": OUT}, arguments={"m": "tensor<3xf32>"}, m=""),
             switch=False),
     Refusal("constant", GROUP_NORM_CONV.replace("(%x:", "(%ga: tensor<4xf32>, %x:").replace(
         "scale(%g", "scale(%ga"), passes=FOLD_AFFINE, switch=False, name="scale"),
     Refusal("affine-axes", BN_18.replace(" shift(%b : tensor<3xf32>)", "").replace(
         "scale(%g : tensor<3xf32>)", "scale(%g2 : tensor<5xf32>)").replace(
         "inside_sqrt 1.0e-5", "inside_sqrt 1.0e-5 affine_axes [2]").replace(
         "  %y =", constant("g2", (5,), 3) + "  %y ="), switch=False),
     Refusal("affine-in", BF16_READ),
     Refusal("near", BN_POINTWISE.replace("dense<[1.0, -2.0]>", "dense<[1.0, -33.0]>")),
     Refusal("types", read_by(WIDE_CONV, {"c": OUT}, result="tensor<1x3x5x5xf64>").replace(
         "-> (tensor<1x4x3x3xf32>)", "-> (tensor<1x4x3x3xf64>)").replace(
         "return %c : tensor<1x4x3x3xf32>", "return %c : tensor<1x4x3x3xf64>").replace(
         "ins(%y, %wc : tensor<1x3x5x5xf32>", "ins(%y, %wc : tensor<1x3x5x5xf64>"),
         switch=False),
     Refusal("float-weights", read_by(I8_MATMUL, {"c": (1, 3, 5, 4)}), switch=False),
     Refusal("consumers", read_by(conv() + relu("k", "y", IMAGE), {"c": OUT, "k": IMAGE}),
             switch=False, name="activation"),
     Refusal("consumers", read_by(conv(), {"c": OUT, "y": IMAGE}), switch=False,
             name="returned"),
     Refusal("consumers", read_by(conv(), {"c": OUT, "y": GROUPS}, shape=GROUPS,
                                  norm=GROUP_NORM).replace(
         "ins(%y, %wc : tensor<1x3x5x5xf32>, tensor<4x3x3x3xf32>)",
         "ins(%y, %wc : tensor<1x4x5x5xf32>, tensor<4x4x3x3xf32>)").replace(
         constant("wc", KERNEL, 7), constant("wc", (4, 4, 3, 3), 7)),
             passes=FOLD_AFFINE, switch=False, name="group norm"),
     Refusal("weights", read_by(ARGUMENT_WEIGHTS, {"c": OUT},
                                arguments={"wa": shaped(KERNEL)}), switch=False),
     Refusal("contraction-dim", SPATIAL, switch=False),
     Refusal("padding", read_by(PAD_CONV, {"c": (1, 4, 5, 5)})),
     Refusal("padding", read_by(PAD_CONV.replace("constant 0.0", "constant 1.0"),
                                {"c": (1, 4, 5, 5)}, **ZEROS), name="value"),
     Refusal("finite", read_by(conv(), {"c": OUT}, clauses="epsilon none",
                               v="  %v = arith.constant dense<[1.0, 0.0, 1.0]> "
                                 ": tensor<3xf32>\n"))])

# ---- C19 ---------------------------------------------------------------------

ROWS = (2, 3, 8)
FLAT = ("  %f = tensor.collapse_shape %y [[0, 1], [2]] "
        ": tensor<2x3x8xf32> into tensor<6x8xf32>\n")
GAIN_SHIFT = constant("g", (8,), 3, -2.0, 2.0) + constant("b", (8,), 4)


def layer_norm(kind="layer_norm", clauses="scale(%g : tensor<8xf32>) shift(%b : tensor<8xf32>) "
               "axes [2] epsilon inside_sqrt 1.0e-5", element="f32"):
    return (f"  %y = norm.{kind} %x {clauses} : {shaped(ROWS, element)} "
            f"-> {shaped(ROWS, element)}\n")


def matmul(name, columns, value="f", init=None, seed=7, weights=None):
    shape = (6, columns)
    return ((weights or constant(f"w{name}", (8, columns), seed))
            + (init or zeros(f"i{name}", shape))
            + contract(name, "matmul", value, (6, 8), (8, columns), f"i{name}", shape,
                       weight=f"w{name}"))


def rows(consumers, values, norm=None, constants=GAIN_SHIFT, arguments=None):
    return read_by(consumers, values, shape=ROWS, norm=norm or layer_norm(),
                   constants=constants, arguments=arguments)


LINEAR_LN = f"""{MAIN}(%x: tensor<4x2xf32>) -> tensor<4x3xf32> {{
  %w = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %g = arith.constant dense<[2.0, -1.0]> : tensor<2xf32>
  %b = arith.constant dense<[0.5, 1.0]> : tensor<2xf32>
  %y = norm.layer_norm %x scale(%g : tensor<2xf32>) shift(%b : tensor<2xf32>)
      axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x2xf32> -> tensor<4x2xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x3xf32>) -> tensor<4x3xf32>
  %q = linalg.matmul ins(%y, %w : tensor<4x2xf32>, tensor<2x3xf32>)
      outs(%init : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %q : tensor<4x3xf32>
}}
"""
QKV = rows(FLAT + matmul("q", 8) + matmul("k", 4, seed=8) + matmul("v", 4, seed=9),
           {"q": (6, 8), "k": (6, 4), "v": (6, 4)})
OFFSET_GAIN = layer_norm("rms_norm", "scale(%g : tensor<8xf32>) axes [2] "
                         "epsilon inside_sqrt 1.0e-5 scale_offset 1.0")
GATE_UP = rows(FLAT + matmul("q", 5) + matmul("k", 5, seed=8), {"q": (6, 5), "k": (6, 5)},
               norm=OFFSET_GAIN)
LINEAR = constant("wt", (4, 8), 12) + (
    "  %wq_e = tensor.empty() : tensor<8x4xf32>\n"
    "  %wq = linalg.transpose ins(%wt : tensor<4x8xf32>) outs(%wq_e : tensor<8x4xf32>) "
    "permutation = [1, 0]\n")
BATCHED = constant("w0", (8, 4), 12) + (
    "  %w_e = tensor.empty() : tensor<2x8x4xf32>\n"
    "  %w = linalg.broadcast ins(%w0 : tensor<8x4xf32>) outs(%w_e : tensor<2x8x4xf32>) "
    "dimensions = [0]\n" + zeros("i", (2, 3, 4))
    + contract("q", "batch_matmul", "y", ROWS, (2, 8, 4), "i", (2, 3, 4)))
ROW_INIT = "  %iq = arith.addf %r, %r : tensor<6x4xf32>\n"
TRANSPOSED_VALUE = (
    FLAT + "  %h_e = tensor.empty() : tensor<8x6xf32>\n"
    "  %h = linalg.transpose ins(%f : tensor<6x8xf32>) outs(%h_e : tensor<8x6xf32>) "
    "permutation = [1, 0]\n" + constant("w", (4, 8), 12) + zeros("i", (4, 6)) +
    "  %q = linalg.matmul ins(%w, %h : tensor<4x8xf32>, tensor<8x6xf32>) "
    "outs(%i : tensor<4x6xf32>) -> tensor<4x6xf32>\n")
PADDED_ROWS = (FLAT + pad("p", "f", (6, 8), (10, 8)) + constant("w", (8, 4), 12)
               + zeros("i", (10, 4))
               + contract("q", "matmul", "p", (10, 8), (8, 4), "i", (10, 4)))
LAST_ROW = (
    "  %l = tensor.extract_slice %y[0, 2, 0] [2, 1, 8] [1, 1, 1] "
    ": tensor<2x3x8xf32> to tensor<2x1x8xf32>\n"
    "  %f = tensor.collapse_shape %l [[0, 1], [2]] : tensor<2x1x8xf32> into tensor<2x8xf32>\n"
    + constant("w", (8, 4), 12) + zeros("i", (2, 4))
    + contract("q", "matmul", "f", (2, 8), (8, 4), "i", (2, 4)))
HALF_CHANNELS = (
    "  %l = tensor.extract_slice %y[0, 0, 0] [2, 3, 4] [1, 1, 1] "
    ": tensor<2x3x8xf32> to tensor<2x3x4xf32>\n"
    "  %f = tensor.collapse_shape %l [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>\n"
    + constant("w", (4, 4), 12) + zeros("i", (6, 4))
    + contract("q", "matmul", "f", (6, 4), (4, 4), "i", (6, 4)))
LLAMA = layer_norm("rms_norm", "scale(%g : tensor<8xbf16>) axes [2] epsilon inside_sqrt 1.0e-5 "
                   "affine_in result", element="bf16")
LLAMA_READ = read_by(
    FLAT.replace("f32", "bf16") + constant("wq", (8, 4), 7, element="bf16") + zeros("iq", (6, 4))
    + contract("q", "matmul", "f", (6, 8), (8, 4), "iq", (6, 4), weight="wq", element="bf16"),
    {"q": (6, 4)}, shape=ROWS, norm=LLAMA,
    constants=constant("g", (8,), 3, -2.0, 2.0, element="bf16")).replace(
    "%x: tensor<2x3x8xf32>", "%x: tensor<2x3x8xbf16>")
I8_ROWS = (
    "  %w8 = arith.constant dense<3> : tensor<8x4xi8>\n" + zeros("i", (2, 3, 4)) +
    "  %q = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, "
    "affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>], "
    'iterator_types = ["parallel", "parallel", "parallel", "reduction"]} '
    "ins(%y, %w8 : tensor<2x3x8xf32>, tensor<8x4xi8>) outs(%i : tensor<2x3x4xf32>) {\n"
    "  ^bb0(%a: f32, %e: i8, %o: f32):\n    %wf = arith.sitofp %e : i8 to f32\n"
    "    %p = arith.mulf %a, %wf : f32\n    %s = arith.addf %o, %p : f32\n"
    "    linalg.yield %s : f32\n  } -> tensor<2x3x4xf32>\n")
PER_POSITION = layer_norm(clauses="scale(%g : tensor<3x8xf32>) axes [1, 2] "
                          "epsilon inside_sqrt 1.0e-5")
PER_ROW = layer_norm(clauses="scale(%g : tensor<3xf32>) axes [2] epsilon inside_sqrt 1.0e-5 "
                     "affine_axes [1]")
HUGE = "  %g = arith.constant dense<3.0e38> : tensor<8xf32>\n"
BARE = ("scale(", "shift(")

C19 = Rewrite(
    "C19", "Scale and shift of a norm become part of the weights of every matmul that reads it "
    "(Q, K and V; gate and up): diag(scale + offset)·W, and each sum starts at shift·W.", "R",
    FOLD_AFFINE,
    {"constant": "scale and shift are constants",
     "affine-in": "nothing is rounded before the scale",
     "float-weights": "no weights are integers",
     "consumers": "matmuls are all that reads the result, through reshapes, transposes and "
                  "slices of other dimensions: all are rewritten or none",
     "weights": "all weights are constants",
     "contraction-dim": "scale and shift vary along exactly the dimensions summed over",
     "padding": "what is padded is what scale and shift make of one number",
     "finite": "the new weights and sums are finite in their types"},
    [Example("one matmul", LINEAR_LN, gone=("scale(", "shift(")),
     Example("queries, keys and values", QKV, gone=BARE, new=("norm.layer_norm",)),
     Example("gate and up, with an offset", GATE_UP, gone=(*BARE, "scale_offset")),
     Example("transposed weights", rows(FLAT + matmul("q", 4, weights=LINEAR), {"q": (6, 4)}),
             gone=BARE),
     Example("batch matmul, weights broadcast", rows(BATCHED, {"q": (2, 3, 4)}), gone=BARE),
     Example("sums that start elsewhere",
             rows(FLAT + matmul("q", 4, init=ROW_INIT), {"q": (6, 4)},
                  arguments={"r": "tensor<6x4xf32>"}), gone=BARE),
     Example("weights come first", rows(TRANSPOSED_VALUE, {"q": (4, 6)}), gone=BARE),
     Example("last position", rows(LAST_ROW, {"q": (2, 4)}), gone=BARE),
     Example("zero rows padded",
             rows(PADDED_ROWS, {"q": (10, 4)}, norm=OFFSET_GAIN), gone=BARE)],
    [Refusal("constant", rows(FLAT + matmul("q", 4), {"q": (6, 4)},
                              constants=constant("b", (8,), 4),
                              arguments={"g": "tensor<8xf32>"}), switch=False),
     Refusal("constant", rows(FLAT + matmul("q", 4), {"q": (6, 4)},
                              constants=constant("g", (8,), 4),
                              arguments={"b": "tensor<8xf32>"}), switch=False, name="shift"),
     Refusal("affine-in", LLAMA_READ),
     Refusal("float-weights", rows(I8_ROWS, {"q": (2, 3, 4)}), switch=False),
     Refusal("consumers", rows(FLAT + matmul("q", 4), {"q": (6, 4), "y": ROWS}), switch=False,
             name="returned"),
     Refusal("consumers", rows(FLAT + matmul("q", 4)
                               + "  %s = arith.addf %y, %x : tensor<2x3x8xf32>\n",
                               {"q": (6, 4), "s": ROWS}), switch=False, name="added"),
     Refusal("consumers", rows(FLAT + matmul("s", 4) + HALF_CHANNELS.replace("%f", "%h"),
                               {"s": (6, 4), "q": (6, 4)}), switch=False, name="half"),
     Refusal("weights", rows(FLAT + matmul("q", 4) + matmul("k", 4, weights=" "),
                             {"q": (6, 4), "k": (6, 4)},
                             arguments={"wk": "tensor<8x4xf32>"}), switch=False),
     Refusal("contraction-dim", rows(BATCHED, {"q": (2, 3, 4)}, norm=PER_POSITION,
                                     constants=constant("g", (3, 8), 3)), switch=False),
     Refusal("contraction-dim", rows(BATCHED, {"q": (2, 3, 4)}, norm=PER_ROW,
                                     constants=constant("g", (3,), 3)), switch=False,
             name="rows"),
     Refusal("padding", rows(PADDED_ROWS, {"q": (10, 4)})),
     Refusal("finite", rows(FLAT + matmul("q", 4, weights="  %wq = arith.constant dense<4.0> "
                                          ": tensor<8x4xf32>\n"), {"q": (6, 4)},
                            constants=HUGE + constant("b", (8,), 4)))])

REWRITES = [C16, C17, C18, C19]
