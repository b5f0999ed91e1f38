"""Rewrites of `norm-simplify`: what is multiplied and added to a norm."""

from rewrites import REAL, SIMPLIFY, Example, Refusal, Rewrite
from table_canonical import CHANNELS, GAINS, IMAGE, NARROW, ROWS, X, main

NO_SPECIALS = ("--norm-simplify=nnan ninf",)
NO_SPECIALS_OR_SIGNS = ("--norm-simplify=nnan ninf nsz",)
PLAIN = "axes [1] epsilon inside_sqrt 1.0e-5"


def residual(value, element="f32", results="", after=""):
    """An RMS norm of x plus a constant residual."""
    kind = f"tensor<4x24x{element}>"
    return main({"x": kind}, {"y": kind, **({"s": results} if results else {})}, f"""
        %h = arith.constant dense<{value}> : {kind}
        %y{", %s" if results else ""} = norm.rms_norm %x residual(%h : {kind}) {PLAIN} {after}
          : {kind} -> {kind}{f" sum({results})" if results else ""}""")


def biased(norm, bias, bias_map="(d0, d1) -> (d1)", x=X, arguments=None, constants="", extra=None):
    """y of `norm` plus `bias`, a value and its type, read through a map."""
    rank = x.count("x")
    loops = ", ".join(f"d{i}" for i in range(rank))
    parallel = ", ".join(['"parallel"'] * rank)
    element = x.split("x")[-1].rstrip(">")
    bias_element = bias[1].split("x")[-1].replace("tensor<", "").rstrip(">")
    return main({"x": x, **(arguments or {})}, {"z": x, **(extra or {})}, f"""
        {constants}
        {norm}
        %e = tensor.empty() : {x}
        %z = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({loops})>,
          affine_map<{bias_map}>, affine_map<({loops}) -> ({loops})>],
          iterator_types = [{parallel}]}} ins(%y, %{bias[0]} : {x}, {bias[1]}) outs(%e : {x}) {{
        ^bb0(%p: {element}, %q: {bias_element}, %o: {element}):
          %t = arith.addf %p, %q : {element}
          linalg.yield %t : {element}
        }} -> {x}""")


def layer(clauses, x=X):
    return f"%y = norm.layer_norm %x {clauses} : {x} -> {x}"


RAMP = "[" + ", ".join(str(0.25 * i - 2.0) for i in range(24)) + "]"
ADD_ROW = ("b", GAINS)

C5 = Rewrite(
    "C5", "Where the gain is 0 everywhere, its offset included, the shift is the result.", "N",
    NO_SPECIALS_OR_SIGNS,
    {"nnan": "no value is NaN", "ninf": "none is infinite",
     "nsz": "the sign of a zero does not matter, or the shift is a constant without zeros"},
    [Example("shift", main({"x": X, "b": GAINS}, {"y": X}, f"""
        %g = arith.constant dense<0.0> : {GAINS}
        %y = norm.layer_norm %x scale(%g : {GAINS}) shift(%b : {GAINS}) {PLAIN} : {X} -> {X}"""),
             gone=("norm.layer_norm",), new=("linalg.generic",)),
     Example("no shift, zero-centred", main({"x": NARROW}, {"y": NARROW, "r": ROWS}, f"""
        %g = arith.constant dense<-1.0> : tensor<24xbf16>
        %y, %r = norm.rms_norm %x scale(%g : tensor<24xbf16>) {PLAIN} scale_offset 1.0
          : {NARROW} -> {NARROW} rstd({ROWS})"""),
             new=("dense<0.0", "norm.rms_norm")),
     Example("shift without zeros", main({"x": IMAGE}, {"y": IMAGE}, f"""
        %g = arith.constant dense<0.0> : {CHANNELS}
        %b = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : {CHANNELS}
        %y = norm.group_norm %x scale(%g : {CHANNELS}) shift(%b : {CHANNELS}) groups 2
          channel_axis 1 axes [1, 2, 3] epsilon inside_sqrt 1.0e-5 : {IMAGE} -> {IMAGE}"""),
             gone=("norm.group_norm",), passes=NO_SPECIALS)],
    [Refusal(missing, main({"x": X, "b": GAINS}, {"y": X}, f"""
        %g = arith.constant dense<0.0> : {GAINS}
        %y = norm.layer_norm %x scale(%g : {GAINS}) shift(%b : {GAINS}) {PLAIN}
          : {X} -> {X}"""), passes=(f"--norm-simplify={others}",))
     for missing, others in (("nnan", "ninf nsz"), ("ninf", "nnan nsz"), ("nsz", "nnan ninf"))],
    note="Other results that are used (statistics, the sum, running values) keep the op.")

WIDER_ADDITION = f"""func.func @main(%x: {X}) -> {X.replace("f32", "f64")} {{
  %y = norm.layer_norm %x {PLAIN} : {X} -> {X}
  %w = arith.extf %y : {X} to {X.replace("f32", "f64")}
  %b = arith.constant dense<1.0e200> : {X.replace("f32", "f64")}
  %z = arith.addf %w, %b : {X.replace("f32", "f64")}
  return %z : {X.replace("f32", "f64")}
}}
"""

C20 = Rewrite(
    "C20", "A bias that is added to a norm's result becomes a part of its shift.", "R", (REAL,),
    {"real": "rounding may change: the sum is formed before it meets the normalized value",
     "single-use": "the sum is the only use of the result",
     "affine-in-compute": "scale and shift are applied in the compute type",
     "compute-type": "the bias is added in no wider type than the compute type",
     "affine-axes": "the bias varies along axes only that the shift indexes"},
    [Example("bias beside a gain", biased(
        layer(f"scale(%g : {GAINS}) {PLAIN}"), ADD_ROW, arguments={"g": GAINS, "b": GAINS}),
             new=("scale.*shift",), gone=("arith.addf",)),
     Example("bias and shift", biased(
         layer(f"shift(%s : {GAINS}) {PLAIN}"), ADD_ROW, arguments={"s": GAINS, "b": GAINS}),
             new=("linalg.generic.*\n.*\n.*arith.addf",)),
     Example("constant bias and shift", biased(
         layer(f"shift(%s : {GAINS}) {PLAIN}"), ADD_ROW,
         constants=f"%s = arith.constant dense<0.5> : {GAINS}\n"
                   f"%b = arith.constant dense<{RAMP}> : {GAINS}"),
             gone=("linalg.generic",)),
     Example("no gain, channels", biased(
         f"%y, %m = norm.instance_norm %x axes [2, 3] epsilon inside_sqrt 1.0e-5 : {IMAGE} -> "
         f"{IMAGE} mean(tensor<3x8xf32>)",
         ("b", CHANNELS), "(d0, d1, d2, d3) -> (d1)", x=IMAGE, arguments={"b": CHANNELS},
         extra={"m": "tensor<3x8xf32>"}), new=("affine_axes \\[1\\]",), gone=("arith.addf",)),
     Example("one number", biased(
         layer(f"scale(%g : {GAINS}) {PLAIN}"), ("b", "tensor<1xf32>"), "(d0, d1) -> (0)",
         arguments={"g": GAINS, "b": "tensor<1xf32>"}), new=("shift",)),
     Example("a constant number of every channel", biased(
         f"%y = norm.instance_norm %x axes [2, 3] epsilon inside_sqrt 1.0e-5 : {IMAGE} -> {IMAGE}",
         ("b", "f32"), "(d0, d1, d2, d3) -> ()", x=IMAGE,
         constants="%b = arith.constant 0.75 : f32"), new=("shift", "affine_axes \\[\\]")),
     Example("unit axes and another order", biased(
         f"%y = norm.layer_norm %x scale(%g : tensor<8x5x7xf32>) axes [1, 2, 3] "
         f"epsilon inside_sqrt 1.0e-5 : {IMAGE} -> {IMAGE}",
         ("b", "tensor<7x1x8xf32>"), "(d0, d1, d2, d3) -> (d3, 0, d1)", x=IMAGE,
         arguments={"g": "tensor<8x5x7xf32>", "b": "tensor<7x1x8xf32>"}), new=("shift",)),
     Example("a narrow shift and a bias beyond its range", biased(
         layer(f"shift(%s : tensor<24xf16>) {PLAIN}"), ("b", "f32"), "(d0, d1) -> ()",
         arguments={"s": "tensor<24xf16>"}, constants="%b = arith.constant 1.0e5 : f32"),
             new=("shift",)),
     Example("a constant shift of few bits", biased(
         layer(f"shift(%s : tensor<24xbf16>) {PLAIN}"), ("b", "f32"), "(d0, d1) -> ()",
         constants="%s = arith.constant dense<1.0> : tensor<24xbf16>\n"
                   "  %b = arith.constant 1.1e-3 : f32"), new=("shift",)),
     Example("16-bit data", biased(
         layer(f"scale(%g : {GAINS}) {PLAIN}", NARROW), ("b", "tensor<24xbf16>"), x=NARROW,
         arguments={"g": GAINS, "b": "tensor<24xbf16>"}), new=("shift",), tolerance=2)],
    [Refusal("real", biased(layer(PLAIN), ADD_ROW, arguments={"b": GAINS}), passes=(SIMPLIFY,)),
     Refusal("single-use", biased(layer(PLAIN), ADD_ROW, arguments={"b": GAINS},
                                  extra={"y": X})),
     Refusal("affine-in-compute", biased(
         layer(f"scale(%g : {GAINS}) {PLAIN} affine_in result"), ADD_ROW,
         arguments={"g": GAINS, "b": GAINS})),
     Refusal("compute-type", WIDER_ADDITION),
     Refusal("affine-axes", biased(
         layer(f"scale(%g : {GAINS}) {PLAIN}"), ("b", ROWS), "(d0, d1) -> (d0)",
         arguments={"g": GAINS, "b": ROWS}), switch=False)],
    note="Without scale and shift a shift is made, on the op's default affine axes where they hold "
         "those of the bias, else on the bias's own. A tensor with all axes of the result is no "
         "bias.")

C30 = Rewrite(
    "C30", "A residual of 0 everywhere is dropped, and the sum is x.", "E / N", (SIMPLIFY,),
    {"nsz": "the residual is -0, or the sign of a zero does not matter (-0 + +0 is +0)",
     "sum-type": "the stored sum is of a type that holds x's: x is not rounded",
     "real": "rounding may change where a mean is subtracted and the sum has more bits than x, "
             "as many as the compute type: code for a CPU then corrects the mean once more"},
    [Example("-0", residual("-0.0"), gone=("residual",), gate="E",
             data={0: [[-0.0, 0.0, 1.0, -1.0] * 6] * 4}),
     Example("-0 with the sum", residual("-0.0", results=X), gone=("residual",), gate="E"),
     Example("-0 with a wider sum", residual("-0.0", "bf16", results=X), gone=("residual",),
             gate="E"),
     Example("-0 and a sum that is not rounded", residual("-0.0", results=NARROW,
                                                          after="sum_rounding compute"),
             gone=("residual",), gate="E"),
     Example("a wide residual decides the compute type", main({"x": X}, {"y": X}, f"""
        %h = arith.constant dense<-0.0> : tensor<4x24xf64>
        %y = norm.layer_norm %x residual(%h : tensor<4x24xf64>) {PLAIN} : {X} -> {X}"""),
             gone=("residual",), new=("compute f64",), gate="E"),
     Example("+0", residual("0.0"), gone=("residual",), gate="N",
             passes=("--norm-simplify=nsz",))],
    [Refusal("nsz", residual("0.0")),
     Refusal("sum-type", residual("-0.0", results=NARROW)),
     Refusal("real", main({"x": NARROW}, {"y": NARROW}, f"""
        %h = arith.constant dense<-0.0> : {X}
        %y = norm.layer_norm %x residual(%h : {X}) {PLAIN} sum_rounding compute
          : {NARROW} -> {NARROW}"""))],
    note="A residual that is a broadcast constant other than 0 stays a producer of x.")

REWRITES = [C5, C20, C30]
