"""Rewrites of `norm-simplify`: norms whose result is known."""

from rewrites import REAL, SIMPLIFY, Example, Refusal, Rewrite
from table_canonical import CHANNELS, GAINS, NARROW, X, main

FLAGS = ("--norm-simplify=nnan ninf nsz",)
SINGLE = "tensor<4x1xf32>"
CONSTANT = "[" + ", ".join(
    "[" + ", ".join(str(((7 * i + 5 * j * j) % 23) * 0.37 - 3.1) for j in range(24)) + "]"
    for i in range(4)) + "]"


def single(clauses="axes [1] epsilon inside_sqrt 1.0e-5", results="", extra=None):
    return main({"x": SINGLE, "b": "tensor<1xf32>"}, {"y": SINGLE, **(extra or {})}, f"""
        %y{"".join(f", %{name}" for name in extra or {})} = norm.layer_norm %x
          shift(%b : tensor<1xf32>) {clauses} : {SINGLE} -> {SINGLE}{results}""")


def constant(norm, kind=X, extra=None):
    return main({}, {"y": kind, **(extra or {})}, f"""
        %x = arith.constant dense<{CONSTANT}> : {kind}
        {norm}""")


C28 = Rewrite(
    "C28", "A norm that subtracts the mean of one element is its shift, or 0.", "N", FLAGS,
    {"nnan": "no value is NaN", "ninf": "none is infinite: infinity minus infinity is NaN",
     "nsz": "the sign of a zero does not matter, or the shift is a constant without zeros, or "
            "there is neither scale nor shift",
     "epsilon": "the factor of a variance of 0 is finite in the compute type, by epsilon or by "
                "zero_policy zero"},
    [Example("shift", single(), gone=("norm.layer_norm",)),
     Example("statistics stay", single(results=" rstd(tensor<4xf32>)",
                                       extra={"r": "tensor<4xf32>"}),
             new=("norm.layer_norm", "linalg.generic")),
     Example("zero policy", single("axes [1] epsilon none zero_policy zero"),
             gone=("norm.layer_norm",)),
     Example("no scale, no shift", main({"x": "tensor<2x8xbf16>"}, {"y": "tensor<2x8xbf16>"}, """
        %y = norm.group_norm %x groups 8 channel_axis 1 axes [1] epsilon max_outside 1.0e-5
          : tensor<2x8xbf16> -> tensor<2x8xbf16>"""), gone=("norm.group_norm",), gate="E",
             passes=("--norm-simplify=nnan ninf",)),
     Example("several axes", main({"x": "tensor<2x8x1x1xf32>", "g": CHANNELS, "b": CHANNELS},
                                  {"y": "tensor<2x8x1x1xf32>"}, f"""
        %y = norm.instance_norm %x scale(%g : {CHANNELS}) shift(%b : {CHANNELS}) axes [2, 3]
          epsilon outside_sqrt 1.0e-5 affine_axes [1]
          : tensor<2x8x1x1xf32> -> tensor<2x8x1x1xf32>"""), gone=("norm.instance_norm",))],
    [*(Refusal(missing, single(), passes=(f"--norm-simplify={others}",))
       for missing, others in (("nnan", "ninf nsz"), ("ninf", "nnan nsz"), ("nsz", "nnan ninf"))),
     Refusal("epsilon", single("axes [1] epsilon none")),
     Refusal("epsilon", single("axes [1] epsilon inside_sqrt 1.0e-60"), name="rounds to 0"),
     Refusal("epsilon", single("axes [1] epsilon outside_sqrt 1.0e-9 compute f16"),
             name="in a narrow type")],
    note="RMS and L2 norms of one element keep their form: they give its sign. A correction of 1 "
         "does not verify on one element.")

C35 = Rewrite(
    "C35", "A norm all of whose operands are constant is evaluated.", "R", (REAL,),
    {"real": "rounding may change: the values are those of norm-to-reference, bit by bit, while "
             "code for a CPU sums in another order",
     "size": "x has at most 4096 elements",
     "not-nan": "no result is NaN: its bits are the target's"},
    [Example("layer norm", constant(f"""
        %g = arith.constant dense<0.75> : {GAINS}
        %y, %m, %r = norm.layer_norm %x scale(%g : {GAINS}) axes [1] epsilon inside_sqrt 1.0e-5
          : {X} -> {X} mean(tensor<4xf32>) rstd(tensor<4xf32>)""",
                                     extra={"m": "tensor<4xf32>", "r": "tensor<4xf32>"}),
             gone=("norm.",)),
     Example("16 bits, residual, zero-centred gain", constant(f"""
        %h = arith.constant dense<0.3> : {NARROW}
        %g = arith.constant dense<0.1> : tensor<24xbf16>
        %y, %s = norm.rms_norm %x residual(%h : {NARROW}) scale(%g : tensor<24xbf16>) axes [1]
          epsilon inside_sqrt 1.0e-6 scale_offset 1.0 affine_in result
          : {NARROW} -> {NARROW} sum({NARROW})""", NARROW, extra={"s": NARROW}),
             gone=("norm.",), tolerance=1),
     Example("running values", constant("""
        %m = arith.constant dense<0.5> : tensor<4xf32>
        %v = arith.constant dense<2.0> : tensor<4xf32>
        %y, %m1, %v1 = norm.batch_norm_training %x running(%m, %v : tensor<4xf32>, tensor<4xf32>)
          axes [1] epsilon inside_sqrt 1.0e-5 momentum 0.1
          : tensor<4x24xf32> -> tensor<4x24xf32> running_mean(tensor<4xf32>)
            running_variance(tensor<4xf32>)""",
                                         extra={"m1": "tensor<4xf32>", "v1": "tensor<4xf32>"}),
             gone=("norm.",)),
     Example("groups in f64", constant("""
        %y, %v = norm.group_norm %x groups 6 channel_axis 1 axes [1] epsilon outside_sqrt 1.0e-3
          correction 1 : tensor<4x24xf64> -> tensor<4x24xf64> variance(tensor<4x6xf64>)""",
                                        "tensor<4x24xf64>", extra={"v": "tensor<4x6xf64>"}),
             gone=("norm.",)),
     Example("a narrow compute type", constant("""
        %y = norm.l2_norm %x axes [0] epsilon max_outside 1.0e-3 compute f16
          : tensor<4x24xf16> -> tensor<4x24xf16>""", "tensor<4x24xf16>"),
             gone=("norm.",), tolerance=4),
     Example("given statistics", constant("""
        %m = arith.constant dense<0.5> : tensor<24xf32>
        %v = arith.constant dense<2.0> : tensor<24xf32>
        %y = norm.batch_norm_inference %x mean(%m : tensor<24xf32>) variance(%v : tensor<24xf32>)
          axes [0] epsilon inside_sqrt 1.0e-5 : tensor<4x24xf32> -> tensor<4x24xf32>"""),
             gone=("norm.",))],
    [Refusal("real", constant(f"%y = norm.layer_norm %x axes [1] epsilon none : {X} -> {X}"),
             passes=(SIMPLIFY,)),
     Refusal("size", main({}, {"y": "tensor<64x65xf32>"}, """
        %x = arith.constant dense<1.0> : tensor<64x65xf32>
        %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-5
          : tensor<64x65xf32> -> tensor<64x65xf32>""")),
     Refusal("not-nan", main({}, {"y": X}, f"""
        %x = arith.constant dense<0.0> : {X}
        %y = norm.rms_norm %x axes [1] epsilon none : {X} -> {X}"""), switch=False)],
    note="The loops of norm-to-reference are built and computed by the compiler: the results "
         "are what that pipeline gives.")

REWRITES = [C28, C35]
