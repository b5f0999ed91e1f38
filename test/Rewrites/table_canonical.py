"""Rewrites of `canonicalize`: no information is lost."""

from rewrites import SIMPLIFY, Example, Refusal, Rewrite

CANONICALIZE = ("--canonicalize",)
SIMPLIFY_ALONE = (SIMPLIFY,)


def layer_norm(clauses, constants="", arguments=""):
    return f"""func.func @main(%x: tensor<4x24xf32>{arguments}) -> tensor<4x24xf32> {{
{constants}  %y = norm.layer_norm %x {clauses} : tensor<4x24xf32> -> tensor<4x24xf32>
  return %y : tensor<4x24xf32>
}}
"""


def splat(name, value):
    return f"  %{name} = arith.constant dense<{value}> : tensor<24xf32>\n"


GAIN = "scale(%g : tensor<24xf32>) axes [1] epsilon inside_sqrt 1.0e-5"

def main(arguments, results, body):
    """A function @main. arguments: {name: type}; results: {value: type}."""
    head = ", ".join(f"%{name}: {type_}" for name, type_ in arguments.items())
    types, values = ", ".join(results.values()), ", ".join(f"%{name}" for name in results)
    lines = "".join(f"  {line.strip()}\n" for line in body.strip().splitlines())
    return (f"func.func @main({head}) -> ({types}) {{\n{lines}"
            f"  return {values} : {types}\n}}\n")


X, ROWS, GAINS = "tensor<4x24xf32>", "tensor<4xf32>", "tensor<24xf32>"
NARROW = "tensor<4x24xbf16>"
IMAGE, CHANNELS = "tensor<3x8x5x7xf32>", "tensor<8xf32>"
BACKWARD = "axes [1] epsilon inside_sqrt 1.0e-5"

C1 = Rewrite(
    "C1", "Statistics, sums and running values that nothing uses are dropped.", "E", CANONICALIZE,
    {"sum-type": "dropping the sum moves no rounding: it is of x's type, or rounded after it is "
                 "normalized (sum_rounding compute), or of the compute type and no mean is "
                 "subtracted (of whose rounding the type decides in code for a CPU)",
     "running-pair": "both running results are unused: an op has both or none"},
    [Example("mean and rstd", main({"x": X}, {"y": X, "v": ROWS}, f"""
        %y, %m, %v, %r = norm.layer_norm %x axes [1] epsilon outside_sqrt 1.0e-3 correction 1
          : {X} -> {X} mean({ROWS}) variance({ROWS}) rstd({ROWS})"""),
             new=("variance",), gone=("mean", "rstd")),
     Example("sum of x's type", main({"x": NARROW, "h": NARROW}, {"y": NARROW}, f"""
        %y, %s = norm.rms_norm %x residual(%h : {NARROW}) axes [1] epsilon inside_sqrt 1.0e-6
          : {NARROW} -> {NARROW} sum({NARROW})"""), gone=("sum",)),
     Example("sum of the compute type", main({"x": NARROW, "h": NARROW},
                                             {"y": NARROW, "r": ROWS}, f"""
        %y, %r, %s = norm.rms_norm %x residual(%h : {NARROW}) axes [1] epsilon inside_sqrt 1.0e-6
          : {NARROW} -> {NARROW} rstd({ROWS}) sum({X})"""),
             new=("sum_rounding compute",), gone=("sum(",)),
     Example("sum that is not rounded first", main({"x": NARROW, "h": X}, {"y": NARROW}, f"""
        %y, %s = norm.layer_norm %x residual(%h : {X}) axes [1] epsilon max_inside 1.0e-6
          sum_rounding compute : {NARROW} -> {NARROW} sum(tensor<4x24xf64>)"""), gone=("sum(",)),
     Example("running values", main({"x": IMAGE, "m": CHANNELS, "v": CHANNELS},
                                    {"y": IMAGE, "r": CHANNELS}, f"""
        %y, %r, %m1, %v1 = norm.batch_norm_training %x running(%m, %v : {CHANNELS}, {CHANNELS})
          axes [0, 2, 3] epsilon inside_sqrt 1.0e-5 momentum 0.1 running_correction 0
          : {IMAGE} -> {IMAGE} rstd({CHANNELS}) running_mean({CHANNELS})
            running_variance({CHANNELS})"""), gone=("running", "momentum")),
     Example("groups", main({"x": IMAGE}, {"y": IMAGE}, f"""
        %y, %m = norm.group_norm %x groups 4 channel_axis 1 axes [1, 2, 3]
          epsilon inside_sqrt 1.0e-5 : {IMAGE} -> {IMAGE} mean(tensor<3x4xf32>)"""),
             gone=("mean",)),
     Example("moments of a mask", main({"x": X}, {"s": ROWS}, f"""
        %n, %m, %s = norm.moments %x axes [1] about mean
          : {X} -> count(tensor<4xi64>) mean({ROWS}) m2({ROWS})"""),
             new=("m2",), gone=("count", "mean(")),
     Example("sums of a gradient", main({"dy": X, "x": X, "r": ROWS}, {"dg": GAINS}, f"""
        %sg, %sgx, %dg = norm.backward_moments %dy, %x rstd(%r : {ROWS}) axes [1]
          : {X}, {X} -> sum_g({ROWS}) sum_gx({ROWS}) dscale({GAINS})"""),
             new=("dscale",), gone=("sum_g",))],
    [Refusal("sum-type", main({"x": X, "h": X}, {"y": X}, f"""
        %y, %s = norm.layer_norm %x residual(%h : {X}) axes [1] epsilon inside_sqrt 1.0e-6
          : {X} -> {X} sum({NARROW})""")),
     Refusal("sum-type", main({"x": NARROW, "h": NARROW}, {"y": NARROW}, f"""
        %y, %s = norm.layer_norm %x residual(%h : {NARROW}) axes [1] epsilon inside_sqrt 1.0e-6
          : {NARROW} -> {NARROW} sum({X})"""), name="mean"),
     Refusal("running-pair", main({"x": IMAGE, "m": CHANNELS, "v": CHANNELS},
                                  {"y": IMAGE, "m1": CHANNELS}, f"""
        %y, %m1, %v1 = norm.batch_norm_training %x running(%m, %v : {CHANNELS}, {CHANNELS})
          axes [0, 2, 3] epsilon inside_sqrt 1.0e-5 momentum 0.1
          : {IMAGE} -> {IMAGE} running_mean({CHANNELS}) running_variance({CHANNELS})"""),
             switch=False)],
    note="An op without used results is dead as a whole: dead code elimination removes it.")

UNIT, UNIT_ROWS = "tensor<4x1x24x1xf32>", "tensor<4xf32>"
UNIT_IMAGE = "tensor<1x8x5x7xf32>"

C2 = Rewrite(
    "C2", "Reduced axes of extent 1 become kept ones.", "E", CANONICALIZE,
    {"another-remains": "another reduced axis stays"},
    [Example("statistics and a gain of two axes", main(
        {"x": UNIT, "g": "tensor<1x24x1xf32>"}, {"y": UNIT, "m": UNIT_ROWS, "r": UNIT_ROWS}, f"""
        %y, %m, %r = norm.layer_norm %x scale(%g : tensor<1x24x1xf32>) axes [1, 2, 3]
          epsilon inside_sqrt 1.0e-5 : {UNIT} -> {UNIT} mean({UNIT_ROWS}) rstd({UNIT_ROWS})"""),
             new=("axes \\[2\\] .*affine_axes \\[1, 2, 3\\]", "tensor.collapse_shape")),
     Example("everything reduced", main({"x": "tensor<1x24xbf16>"},
                                        {"y": "tensor<1x24xbf16>", "q": "tensor<f32>"}, """
        %y, %q = norm.rms_norm %x axes [-1, 0] epsilon outside_sqrt 1.0e-5
          : tensor<1x24xbf16> -> tensor<1x24xbf16> variance(tensor<f32>)"""),
             new=("axes \\[1\\]", "\\[\\]")),
     Example("only units", main({"x": "tensor<4x1x1xf32>"}, {"y": "tensor<4x1x1xf32>"}, """
        %y = norm.l2_norm %x axes [1, 2] epsilon max_outside 1.0e-5
          : tensor<4x1x1xf32> -> tensor<4x1x1xf32>"""), new=("axes \\[2\\]",)),
     Example("groups", main({"x": "tensor<3x8x1x7xf32>", "b": "tensor<8xf32>"},
                            {"y": "tensor<3x8x1x7xf32>", "m": "tensor<3x4xf32>"}, f"""
        %y, %m = norm.group_norm %x shift(%b : {CHANNELS}) groups 4 channel_axis 1 axes [1, 2, 3]
          epsilon inside_sqrt 1.0e-5
          : tensor<3x8x1x7xf32> -> tensor<3x8x1x7xf32> mean(tensor<3x4xf32>)"""),
             new=("axes \\[1, 3\\]",)),
     Example("running values of one sample", main(
         {"x": UNIT_IMAGE, "g": CHANNELS, "m": CHANNELS, "v": CHANNELS},
         {"y": UNIT_IMAGE, "m1": CHANNELS, "v1": CHANNELS}, f"""
        %y, %m1, %v1 = norm.batch_norm_training %x scale(%g : {CHANNELS})
          running(%m, %v : {CHANNELS}, {CHANNELS}) axes [0, 2, 3] epsilon inside_sqrt 1.0e-5
          momentum 0.1 : {UNIT_IMAGE} -> {UNIT_IMAGE} running_mean({CHANNELS})
          running_variance({CHANNELS})"""),
             new=("axes \\[2, 3\\] .*affine_axes \\[1\\]", "tensor.expand_shape")),
     Example("gradient", main(
         {"dy": UNIT, "x": UNIT, "m": UNIT_ROWS, "r": UNIT_ROWS},
         {"dx": UNIT, "dg": "tensor<1x24x1xf32>"}, f"""
        %dx, %dg = norm.layer_norm_backward %dy, %x mean(%m : {UNIT_ROWS}) rstd(%r : {UNIT_ROWS})
          axes [1, 2, 3] epsilon inside_sqrt 1.0e-5
          : {UNIT}, {UNIT} -> {UNIT} dscale(tensor<1x24x1xf32>)"""),
             new=("axes \\[2\\] .*affine_axes \\[1, 2, 3\\]",))],
    [Refusal("another-remains", main({"x": "tensor<4x1xf32>"}, {"y": "tensor<4x1xf32>"}, """
        %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-5
          : tensor<4x1xf32> -> tensor<4x1xf32>"""), switch=False)],
    note="Axes are sorted, and negative ones resolved, by the canonical spelling of each op. The "
         "channel axis of a group norm stays, and so do the axes of given statistics, which reduce "
         "nothing, and those of the statistics algebra.")

C4 = Rewrite(
    "C4", "A shift of 0 everywhere is dropped.", "E / N", SIMPLIFY_ALONE,
    {"nsz": "the shift is -0, or the sign of a zero does not matter (-0 + +0 is +0)"},
    [Example("-0", layer_norm("shift(%g : tensor<24xf32>) axes [1] epsilon inside_sqrt 1.0e-5",
                              splat("g", "-0.0")), gone=("shift",), gate="E", passes=CANONICALIZE),
     Example("-0 beside a gain", main({"x": IMAGE, "g": CHANNELS}, {"y": IMAGE}, f"""
        %b = arith.constant dense<-0.0> : {CHANNELS}
        %y = norm.instance_norm %x scale(%g : {CHANNELS}) shift(%b : {CHANNELS}) axes [2, 3]
          epsilon inside_sqrt 1.0e-5 affine_axes [1] : {IMAGE} -> {IMAGE}"""),
             gone=("shift",), gate="E", passes=CANONICALIZE),
     Example("-0 in a narrow type", main({"x": NARROW, "g": GAINS}, {"y": NARROW}, f"""
        %b = arith.constant dense<-0.0> : tensor<24xbf16>
        %y = norm.rms_norm %x scale(%g : {GAINS}) shift(%b : tensor<24xbf16>) axes [1]
          epsilon inside_sqrt 1.0e-6 compute bf16 affine_in result : {NARROW} -> {NARROW}"""),
             gone=("shift",), gate="E", passes=CANONICALIZE),
     Example("+0", layer_norm("shift(%g : tensor<24xf32>) axes [1] epsilon inside_sqrt 1.0e-5",
                              splat("g", "0.0")), gone=("shift",), gate="N",
             passes=("--norm-simplify=nsz",))],
    [Refusal("nsz", layer_norm("shift(%g : tensor<24xf32>) axes [1] epsilon inside_sqrt 1.0e-5",
                               splat("g", "0.0")))],
    note="`canonicalize` drops -0; +0 is norm-simplify's.")

C6 = Rewrite(
    "C6", "A constant gain takes in its scale_offset.", "E", CANONICALIZE,
    {"exact": "scale + scale_offset, formed in the compute type, is a number of the constant's "
              "type; with affine_in result, no matter where it is formed"},
    [Example("one value", layer_norm(GAIN + " scale_offset 1.0", splat("g", "0.5")),
             new=("1.500000e", "scale"), gone=("scale_offset",)),
     Example("values that round", layer_norm(
         GAIN + " scale_offset 1.0",
         "  %g = arith.constant dense<[" + ", ".join(str(0.1 * i - 1.3) for i in range(24))
         + "]> : tensor<24xf32>\n"), gone=("scale_offset",)),
     Example("in the result's type", main({"x": NARROW}, {"y": NARROW}, f"""
        %g = arith.constant dense<0.25> : tensor<24xbf16>
        %y = norm.rms_norm %x scale(%g : tensor<24xbf16>) axes [1] epsilon inside_sqrt 1.0e-6
          scale_offset 1.0 affine_in result : {NARROW} -> {NARROW}"""), gone=("scale_offset",)),
     Example("gradient", main({"dy": X, "x": X}, {"dx": X}, f"""
        %g = arith.constant dense<0.3> : {GAINS}
        %dx = norm.rms_norm_backward %dy, %x scale(%g : {GAINS}) {BACKWARD} scale_offset 1.0
          : {X}, {X} -> {X}"""), gone=("scale_offset",))],
    [Refusal("exact", main({"x": NARROW}, {"y": NARROW}, f"""
        %g = arith.constant dense<0.001> : tensor<24xbf16>
        %y = norm.rms_norm %x scale(%g : tensor<24xbf16>) axes [1] epsilon inside_sqrt 1.0e-6
          scale_offset 1.0 : {NARROW} -> {NARROW}"""), switch=False),
     Refusal("exact", main({"x": X}, {"y": X}, f"""
        %g = arith.constant dense<0.3> : tensor<24xf64>
        %y = norm.rms_norm %x scale(%g : tensor<24xf64>) axes [1] epsilon inside_sqrt 1.0e-6
          scale_offset 1.0 affine_in result : {X} -> {X}"""), switch=False, name="in the result")])

def cast(op, value, source, target, result):
    """linalg that casts %value elementwise to %result."""
    rank = source.count("x")
    loops, parallel = ", ".join(f"d{i}" for i in range(rank)), ", ".join(['"parallel"'] * rank)
    identity = f"affine_map<({loops}) -> ({loops})>"
    old, new = (kind.split("x")[-1].rstrip(">") for kind in (source, target))
    return f"""
        %e_{result} = tensor.empty() : {target}
        %{result} = linalg.generic {{indexing_maps = [{identity}, {identity}],
          iterator_types = [{parallel}]}} ins(%{value} : {source}) outs(%e_{result} : {target}) {{
        ^bb0(%p: {old}, %q: {new}):
          %t = arith.{op} %p : {old} to {new}
          linalg.yield %t : {new}
        }} -> {target}"""


WIDE = "tensor<4x24xf64>"
REALLY = ("--norm-simplify=fp-policy=real",)


def widened(clauses, op="layer_norm", source=NARROW, x=X, y=X):
    return main({"a": source}, {"y": y}, cast("extf", "a", source, x, "x") + f"""
        %y = norm.{op} %x {clauses} : {x} -> {y}""")


def narrowed(clauses, op="rms_norm", x=X, y=X, z=NARROW, extra=None):
    return main({"x": x}, {"z": z, **(extra or {})}, f"""
        %y = norm.{op} %x {clauses} : {x} -> {y}""" + cast("truncf", "y", y, z, "z"))


EXACT = "axes [1] epsilon inside_sqrt 1.0e-5"

C26 = Rewrite(
    "C26", "Casts around a norm become the types of its x, scale, shift and result.", "E / R",
    CANONICALIZE,
    {"real": "rounding may change where the result is computed and stored in f32 (the reference "
             "rounds its f64 once more), and where an x that was widened to the compute type has "
             "a mean (code for a CPU corrects that of wide x once more)",
     "single-use": "the cast is the only use of the result",
     "affine-in-compute": "scale and shift are applied in the compute type: in the result's, the "
                          "types of x and of the result round",
     "rounds-once": "the result is stored in a type that holds the compute type's values",
     "no-residual": "there is no residual: the sum rounds to the type of x",
     "compute-type": "the compute type fits the x that was widened"},
    [Example("widened x", widened(EXACT, "rms_norm"), gone=("extf",), gate="E",
             new=(r"bf16> -> tensor<4x24xf32>",)),
     Example("widened x of a narrow norm", widened(EXACT + " compute bf16"), gone=("extf",),
             gate="E"),
     Example("widened x with a mean", widened(EXACT), gone=("extf",), gate="R", passes=REALLY),
     Example("x widened to f64", widened(EXACT, "l2_norm", X, WIDE, WIDE), gone=("extf",),
             new=("compute f64",), gate="E"),
     Example("narrowed f64", narrowed(EXACT, "layer_norm", WIDE, WIDE, X), gone=("truncf",),
             gate="E"),
     Example("narrowed from f64 to 16 bits", narrowed(EXACT, x=X, y=WIDE), gone=("truncf",),
             gate="E"),
     Example("narrowed f32", narrowed(EXACT), gone=("truncf",), gate="R", passes=REALLY,
             tolerance=1),
     Example("narrowed result of a narrow norm", narrowed(EXACT + " compute bf16"),
             gone=("truncf",), gate="E"),
     Example("widened gain and shift", main(
         {"x": X, "a": "tensor<24xbf16>", "b": "tensor<24xf16>"}, {"y": X},
         cast("extf", "a", "tensor<24xbf16>", GAINS, "g")
         + cast("extf", "b", "tensor<24xf16>", GAINS, "s") + f"""
        %y = norm.layer_norm %x scale(%g : {GAINS}) shift(%s : {GAINS}) {EXACT}
          scale_offset 1.0 : {X} -> {X}"""), gone=("extf",), gate="E")],
    [Refusal("real", widened(EXACT), name="mean"),
     Refusal("real", narrowed(EXACT), name="result"),
     Refusal("single-use", narrowed(EXACT, x=X, y=WIDE, extra={"y": WIDE})),
     Refusal("affine-in-compute", narrowed(EXACT + " affine_in result", x=X, y=WIDE)),
     Refusal("rounds-once", narrowed(EXACT + " compute f64", x=X, y=X)),
     Refusal("no-residual", main({"a": NARROW, "r": X}, {"y": X}, cast(
         "extf", "a", NARROW, X, "x") + f"""
        %y = norm.rms_norm %x residual(%r : {X}) {EXACT} : {X} -> {X}""")),
     Refusal("compute-type", widened(EXACT + " compute bf16", "rms_norm", "tensor<4x24xf16>"))])

C29 = Rewrite(
    "C29", "An epsilon of 0 that is added inside or outside of the root is none.", "E",
    CANONICALIZE,
    {"variance-not-negative-zero": "the variance is computed, or its zeros have no sign that "
                                   "matters (zero_policy zero, nsz): -0 + 0 is +0",
     "inside-in-gradients": "a gradient has epsilon inside the root: outside of it the formula "
                            "divides by the root"},
    [Example("inside", layer_norm("axes [1] epsilon inside_sqrt 0.0"), new=("epsilon none",)),
     Example("outside", main({"x": IMAGE}, {"y": IMAGE, "r": "tensor<3x7xf32>"}, f"""
        %y, %r = norm.l2_norm %x axes [1, 2] epsilon outside_sqrt 0.0
          zero_policy zero : {IMAGE} -> {IMAGE} rstd(tensor<3x7xf32>)"""),
             new=("epsilon none zero_policy zero",)),
     Example("gradient", main({"dy": X, "x": X}, {"dx": X}, f"""
        %dx = norm.layer_norm_backward %dy, %x axes [1] epsilon inside_sqrt 0.0
          : {X}, {X} -> {X}"""), new=("epsilon none",))],
    [Refusal("variance-not-negative-zero", main(
        {"x": IMAGE, "m": CHANNELS, "v": CHANNELS}, {"y": IMAGE}, f"""
        %y = norm.batch_norm_inference %x mean(%m : {CHANNELS}) variance(%v : {CHANNELS})
          axes [0, 2, 3] epsilon inside_sqrt 0.0 : {IMAGE} -> {IMAGE}""")),
     Refusal("inside-in-gradients", main({"dy": X, "x": X}, {"dx": X}, f"""
        %dx = norm.layer_norm_backward %dy, %x axes [1] epsilon outside_sqrt 0.0
          : {X}, {X} -> {X}"""))])

C32 = Rewrite(
    "C32", "Gradients of scale and shift that nothing uses are dropped.", "E", CANONICALIZE, {},
    [Example("frozen gain and shift", main({"dy": X, "x": X, "g": GAINS}, {"dx": X}, f"""
        %dx, %dg, %db = norm.layer_norm_backward %dy, %x scale(%g : {GAINS}) {BACKWARD}
          : {X}, {X} -> {X} dscale({GAINS}) dshift({GAINS})"""),
             gone=("dscale", "dshift")),
     Example("frozen shift", main({"dy": IMAGE, "x": IMAGE, "m": CHANNELS, "v": CHANNELS},
                                  {"dx": IMAGE, "dg": CHANNELS}, f"""
        %dx, %dg, %db = norm.batch_norm_inference_backward %dy, %x mean(%m : {CHANNELS})
          variance(%v : {CHANNELS}) axes [0, 2, 3] epsilon inside_sqrt 2.0
          : {IMAGE}, {IMAGE} -> {IMAGE} dscale({CHANNELS}) dshift({CHANNELS})"""),
             new=("dscale",), gone=("dshift",), data={3: [0.5, 1, 2, 3, 4, 5, 6, 7]}),
     Example("no gain at all", main({"dy": IMAGE, "x": IMAGE}, {"dx": IMAGE}, f"""
        %dx, %db = norm.instance_norm_backward %dy, %x axes [2, 3] epsilon inside_sqrt 1.0e-5
          affine_axes [1] : {IMAGE}, {IMAGE} -> {IMAGE} dshift({CHANNELS})"""),
             gone=("affine_axes",)),
     Example("the algebra", main({"dy": X, "x": X, "r": ROWS}, {"s": ROWS}, f"""
        %s, %dg = norm.backward_moments %dy, %x rstd(%r : {ROWS}) axes [1] affine_axes [0, 1]
          : {X}, {X} -> sum_gx({ROWS}) dscale({X})"""), new=("sum_gx",), gone=("dscale",))],
    [], note="A gradient none of whose results is used is dead as a whole: dead code elimination "
             "removes it, the gradient of a constant x among them.")

REWRITES = [
    C1, C2,
    Rewrite(
        "C3", "A gain that is 1 everywhere, its offset included, is dropped.", "E", CANONICALIZE,
        {"one": "scale + scale_offset is 1, exactly and everywhere"},
        [Example("gain of 1", layer_norm(GAIN, splat("g", "1.0")), gone=("scale",)),
         Example("zero-centred gain of 0",
                 layer_norm(GAIN + " scale_offset 1.0", splat("g", "0.0")), gone=("scale",))],
        [Refusal("one", layer_norm(GAIN, splat("g", "1.00000012"))),
         Refusal("one", layer_norm(GAIN + " scale_offset 1.0", splat("g", "1.0")),
                 name="offset"),
         Refusal("one", layer_norm(GAIN + " scale_offset 1.300000011920929", splat("g", "-0.3")),
                 name="1 in f64 but not in f32")]),
    C4, C6, C26, C29, C32,
]
