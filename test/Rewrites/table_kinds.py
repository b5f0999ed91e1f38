"""C11 to C15: a norm as one of another kind, and a norm of a norm.

Epsilon is as large as the statistic in these examples: a wrong rescaling shows.
"""

import numpy as np
from rewrites import REAL, SIMPLIFY, Example, Refusal, Rewrite
from table_input import (
    IMAGE,
    RUNNING,
    RUNNING_ARGUMENTS,
    RUNNING_RESULTS,
    RUNNING_TYPES,
    X,
    Y,
    constant,
    function,
    norm,
)

PASSES = (REAL,)
STRICT = (SIMPLIFY,)
UNIFY = ("--norm-simplify=fp-policy=real unify-kinds",)
ROW = "tensor<4xf32>"
GAIN = "scale(%g : tensor<24xf32>)"
SHIFT = "shift(%b : tensor<24xf32>)"
FEATURES = ", ".join(str(i / 8 - 1) for i in range(24))


def inner(op="layer_norm", epsilon="inside_sqrt 0.5", value="%x", **more):
    """%z = a norm of x."""
    return norm(op, epsilon=epsilon, value=value, **more).replace("%y", "%z")


def splat(name, value, kind="tensor<24xf32>"):
    return constant(name, value, kind)


def placements(name, before, passes=()):
    return [Example(f"{name}, {place}", before(f"{place} 0.5"), passes=passes)
            for place in ("inside_sqrt", "outside_sqrt", "max_inside", "max_outside")] + [
                Example(f"{name}, none", before("none"), passes=passes)]


# ---- C11 ---------------------------------------------------------------------

OUTSIDE = "outside_sqrt 0.5"


def sum_over_rows(value="%x", kind=X):
    return f"""  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : {ROW}
  %init = linalg.fill ins(%zero : f32) outs(%e0 : {ROW}) -> {ROW}
  %sum = linalg.reduce ins({value} : {kind}) outs(%init : {ROW}) dimensions = [1]
    (%in: f32, %acc: f32) {{
      %add = arith.addf %in, %acc : f32
      linalg.yield %add : f32
    }}
"""


def less_mean(count, value="%x"):
    """%z = value minus sum(value) / count."""
    return sum_over_rows(value) + constant("n", count, ROW) + f"""\
  %mean = arith.divf %sum, %n : {ROW}
  %e1 = tensor.empty() : {X}
  %wide = linalg.broadcast ins(%mean : {ROW}) outs(%e1 : {X}) dimensions = [1]
  %z = arith.subf {value}, %wide : {X}
"""


C11 = Rewrite(
    "C11",
    "A layer norm of what has the mean 0 is an RMS norm.",
    "R", PASSES,
    {"real": "`fp-policy=real`: a mean of 0 is one up to rounding",
     "mean-zero": "the mean of x (and of a residual) over the reduced axes is proved to be 0: it "
                  "is y of a centred norm over those axes or some of them, without a shift and "
                  "with one gain for each row; or it has its own mean subtracted; or it is a sum, "
                  "a cast or a multiple of such",
     "correction": "`correction` is 0"},
    [Example("a layer norm of a layer norm", function(
        inner() + norm(epsilon=OUTSIDE, operands=GAIN + " " + SHIFT),
        Y, f"%x: {X}, %g: tensor<24xf32>, %b: tensor<24xf32>"), new=("norm.rms_norm",)),
     *placements("the statistics", lambda e: function(
         inner(epsilon=OUTSIDE, clauses="correction 1")
         + norm(epsilon=e, extra=", %v, %r", after=f"variance({ROW}) rstd({ROW})"),
         {"%y": X, "%v": ROW, "%r": ROW})),
     # Against rounding errors, no tolerance holds.
     Example("a mean that is read is 0", function(
         inner(epsilon=OUTSIDE) + norm(extra=", %m", after=f"mean({ROW})"), {"%y": X, "%m": ROW}),
             new=("linalg.fill",), runs=False),
     Example("a splat gain between", function(
         splat("g", "-3.0") + inner(operands=GAIN) + norm(epsilon=OUTSIDE), Y),
             new=("norm.rms_norm",)),
     Example("a gain per row between", function(
         inner(operands=f"scale(%g : {ROW})", clauses="affine_axes [0]") + norm(epsilon=OUTSIDE),
         Y, f"%x: {X}, %g: {ROW}"), new=("norm.rms_norm",)),
     Example("an instance norm over some of the axes", function(
         norm("instance_norm", axes="[2, 3]", kind=IMAGE, value="%x",
              operands="scale(%g : tensor<6xf32>)", clauses="affine_axes [1]").replace("%y", "%z")
         + norm(axes="[1, 2, 3]", kind=IMAGE), {"%y": IMAGE},
         f"%x: {IMAGE}, %g: tensor<6xf32>"), new=("norm.rms_norm",)),
     Example("groups of the axes", function(
         norm("group_norm", axes="[1, 2, 3]", kind=IMAGE, value="%x",
              groups="groups 2 channel_axis 1").replace("%y", "%z")
         + norm(axes="[1, 2, 3]", kind=IMAGE), {"%y": IMAGE}, f"%x: {IMAGE}"),
             new=("norm.rms_norm",)),
     Example("less its own mean", function(less_mean("24.0") + norm(), Y),
             new=("norm.rms_norm",)),
     Example("a sum of such", function(
         inner(epsilon=OUTSIDE) + "  %k = arith.constant dense<3.0> : tensor<4x24xf32>\n"
         f"  %s = arith.mulf %z, %k : {X}\n"
         + inner(epsilon="none", value="%q").replace("%z", "%t")
         + f"  %d = arith.subf %s, %t : {X}\n" + norm(value="%d"), Y, f"%x: {X}, %q: {X}"),
             new=("norm.rms_norm %",)),
     Example("a residual of such", function(
         inner(epsilon=OUTSIDE) + inner(epsilon="none", value="%q").replace("%z", "%t")
         + norm(operands=f"residual(%t : {X})", extra=", %s", after=f"sum({X})"),
         {"%y": X, "%s": X}, f"%x: {X}, %q: {X}"), new=("norm.rms_norm",))],
    [Refusal("real", function(inner() + norm(epsilon=OUTSIDE), Y), passes=STRICT),
     Refusal("mean-zero", function(
         inner(operands=SHIFT) + norm(epsilon=OUTSIDE), Y, f"%x: {X}, %b: tensor<24xf32>"),
             name="shift"),
     Refusal("mean-zero", function(
         inner(operands=GAIN) + norm(epsilon=OUTSIDE), Y, f"%x: {X}, %g: tensor<24xf32>"),
             name="gain"),
     Refusal("mean-zero", function(inner(axes="[0]") + norm(epsilon=OUTSIDE), Y), name="axes"),
     Refusal("mean-zero", function(
         norm("layer_norm", axes="[1, 2, 3]", kind=IMAGE, value="%x").replace("%y", "%z")
         + norm(axes="[2, 3]", kind=IMAGE), {"%y": IMAGE}, f"%x: {IMAGE}"), name="fewer-axes"),
     Refusal("mean-zero", function(
         inner() + norm(epsilon=OUTSIDE, operands=f"residual(%q : {X})"), Y,
         f"%x: {X}, %q: {X}"), name="residual"),
     Refusal("mean-zero", function(less_mean("23.0") + norm(), Y), name="not-the-mean"),
     Refusal("mean-zero", function(
         less_mean("24.0").replace("arith.subf %x", "arith.subf %q") + norm(), Y,
         f"%x: {X}, %q: {X}"), name="mean-of-another"),
     Refusal("correction", function(inner() + norm(clauses="correction 1"), Y))])

# ---- C12 ---------------------------------------------------------------------

WEIGHTS = ", ".join("[" + ", ".join(str((i * 7 + j * 5) % 11 / 4 - 1) for j in range(24)) + "]"
                    for i in range(3))
TRANSPOSED = ", ".join("[" + ", ".join(str((i * 7 + j * 5) % 11 / 4 - 1) for i in range(3)) + "]"
                       for j in range(24))
INPUT = "%x: tensor<4x3xf32>"


def linear(bias="", weights=None, init="0.0", kind="f32", name="%z"):
    """%z = x W, plus %b along the last axis."""
    product = "%p" if bias else name
    text = constant("w", f"[{weights or WEIGHTS}]", f"tensor<3x24x{kind}>") + f"""\
  %zero = arith.constant {init} : f32
  %e0 = tensor.empty() : {X}
  %init = linalg.fill ins(%zero : f32) outs(%e0 : {X}) -> {X}
  {product} = linalg.matmul ins(%x, %w : tensor<4x3xf32>, tensor<3x24x{kind}>)
      outs(%init : {X}) -> {X}
"""
    if not bias:
        return text
    return text + constant("b", bias, "tensor<24xf32>") + f"""\
  %e1 = tensor.empty() : {X}
  {name} = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>,
      affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%p, %b : {X}, tensor<24xf32>) outs(%e1 : {X}) {{
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %s = arith.addf %a0, %a1 : f32
    linalg.yield %s : f32
  }} -> {X}
"""


BIAS = f"[{FEATURES}]"
C12 = Rewrite(
    "C12",
    "A layer norm of W x + b with constant W and b is an RMS norm of W' x + b', from which the "
    "mean over the outputs is taken beforehand: W' = (I - 1 1^T / d) W, b' = b - mean(b).",
    "R", PASSES,
    {"real": "`fp-policy=real`",
     "axes": "each reduced axis is an output of W, and only of W",
     "init": "the product starts from 0",
     "uses": "the layer norm alone reads W x + b",
     "residual": "there is no residual",
     "type": "W and b have 32 bits or more: fewer would be rounded again",
     "finite": "W and b are finite",
     "correction": "`correction` is 0",
     "mean": "the mean is not read"},
    [Example("weights and bias", function(linear(BIAS) + norm(), Y, INPUT),
             new=("norm.rms_norm",)),
     *placements("weights alone", lambda e: function(
         linear() + norm(epsilon=e, extra=", %v, %r", after=f"variance({ROW}) rstd({ROW})"),
         {"%y": X, "%v": ROW, "%r": ROW}, INPUT)),
     Example("one number as bias", function(
         linear(name="%q") + constant("k", "2.5", X) + f"  %z = arith.addf %k, %q : {X}\n"
         + norm(operands=GAIN), Y, INPUT + ", %g: tensor<24xf32>"), new=("norm.rms_norm",)),
     Example("a bias subtracted", function(
         linear(BIAS).replace("arith.addf", "arith.subf") + norm(), Y, INPUT),
         new=("norm.rms_norm",)),
     Example("transposed weights", function(
         constant("w", f"[{TRANSPOSED}]", "tensor<24x3xf32>") + f"""\
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : {X}
  %init = linalg.fill ins(%zero : f32) outs(%e0 : {X}) -> {X}
  %z = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%w, %x : tensor<24x3xf32>, tensor<4x3xf32>) outs(%init : {X}) {{
  ^bb0(%a: f32, %c: f32, %o: f32):
    %m = arith.mulf %a, %c : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }} -> {X}
""" + norm(), Y, INPUT), new=("norm.rms_norm",)),
     Example("heads of which one axis is reduced", function(
         constant("w", "[[[1.0, 2.0], [3.0, 5.0], [0.0, -4.0]], "
                  "[[2.0, 2.5], [-3.0, 1.0], [1.0, 0.5]]]", "tensor<2x3x2xf32>") + """\
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4x3x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<4x3x2xf32>) -> tensor<4x3x2xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(m, h, d, k) -> (m, k)>,
      affine_map<(m, h, d, k) -> (k, h, d)>, affine_map<(m, h, d, k) -> (m, h, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x2xf32>, tensor<2x3x2xf32>) outs(%init : tensor<4x3x2xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %m = arith.mulf %a, %c : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x3x2xf32>
""" + norm(axes="[1]", kind="tensor<4x3x2xf32>"), {"%y": "tensor<4x3x2xf32>"},
         "%x: tensor<4x2xf32>"), new=("norm.rms_norm",)),
     Example("rounded to bf16 before the norm", function(
         linear(BIAS).replace(
             f"outs(%e1 : {X})", "outs(%e1 : tensor<4x24xbf16>)").replace(
             f"%e1 = tensor.empty() : {X}", "%e1 = tensor.empty() : tensor<4x24xbf16>").replace(
             "^bb0(%a0: f32, %a1: f32, %o: f32)", "^bb0(%a0: f32, %a1: f32, %o: bf16)").replace(
             "linalg.yield %s : f32\n  } -> tensor<4x24xf32>",
             "%n = arith.truncf %s : f32 to bf16\n    linalg.yield %n : bf16\n"
             "  } -> tensor<4x24xbf16>")
         + norm(kind="tensor<4x24xbf16>"), {"%y": "tensor<4x24xbf16>"}, INPUT),
         new=("norm.rms_norm",), tolerance=8.0)],
    [Refusal("real", function(linear() + norm(), Y, INPUT), passes=STRICT),
     Refusal("axes", function(linear(BIAS) + norm(axes="[0]"), Y, INPUT), name="input-axis"),
     Refusal("axes", function(linear() + norm(axes="[0, 1]"), Y, INPUT), name="both-axes"),
     Refusal("init", function(linear(init="0.5") + norm(), Y, INPUT)),
     Refusal("uses", function(linear(BIAS) + norm(), {**Y, "%z": X}, INPUT), name="sum"),
     Refusal("uses", function(linear(BIAS) + norm(), {**Y, "%p": X}, INPUT), name="product"),
     Refusal("residual", function(
         linear() + norm(operands=f"residual(%q : {X})"), Y, INPUT + f", %q: {X}")),
     Refusal("type", function(linear(kind="bf16") + norm(), Y, INPUT)),
     Refusal("finite", function(
         linear(weights=WEIGHTS.replace("-1.0", "0x7F800000", 1)) + norm(), Y, INPUT),
         name="weight"),
     Refusal("finite", function(
         linear(BIAS.replace("-1.0", "0x7FC00000", 1)) + norm(), Y, INPUT), name="bias"),
     Refusal("correction", function(linear() + norm(clauses="correction 1"), Y, INPUT)),
     Refusal("mean", function(
         linear() + norm(extra=", %m", after=f"mean({ROW})"), {**Y, "%m": ROW}, INPUT))])

# ---- C13 ---------------------------------------------------------------------

SECOND = "inside_sqrt 0.25"


def nested(first, second, one="inside_sqrt 0.5", other=SECOND, **more):
    return inner(first, epsilon=one, **more) + norm(second, epsilon=other)


PAIRS = {"RMS of RMS": ("rms_norm", "rms_norm"), "LN of LN": ("layer_norm", "layer_norm"),
         "RMS of LN": ("layer_norm", "rms_norm")}
ZEROS = np.array([[0.0] * 24, [2.0] * 24, *[[1.0, -2.0] * 12] * 2], np.float32)
# Rows whose mean square is about that of epsilon, and far from it.
SIZES = np.array([[0.01 * (j - 9), 0.1 * (j % 5 - 1), j % 7 - 2, 100 * (j % 3) - 70]
                  for j in range(24)], np.float32).T.copy()
C13 = Rewrite(
    "C13",
    "A norm of a norm over the same axes is one norm: with t = e2 / a^2, for the second epsilon "
    "e2 and a gain a between, sign(a) / sqrt(1 + t) times the first norm with an epsilon of "
    "e * t / (1 + t).",
    "R", PASSES,
    {"real": "`fp-policy=real`",
     "axes": "both reduce the same axes",
     "kind": "they are RMS of RMS, centred of centred, or RMS of centred; a centred norm of an "
             "RMS norm has e2 = 0",
     "placement": "both epsilons are `inside_sqrt` or `none`",
     "correction": "`correction` is 0 in both",
     "residual": "neither adds a residual",
     "shift": "the first has no shift",
     "gain-between": "the gain of the first is a constant, the same everywhere and not 0",
     "statistics": "no statistic of the second is read",
     "type": "both have one compute type, and with `affine_in result` one type of x",
     "zero": "a centred norm of an RMS norm, with `zero_policy zero`: the first makes no NaN of "
             "a row of zeros",
     "epsilon": "the new epsilon is 0 only if one of them is, and not subnormal in the compute "
                "type",
     "gain": "the gain of the second is a constant or absent and, with `affine_in result`, "
             "multiplied by no more than a sign"},
    [Example("LN of LN", function(nested("layer_norm", "layer_norm"), Y), data={0: SIZES},
             new=("inside_sqrt 1.000000e-01",)),
     *[Example(f"{name}, rows of all sizes", function(nested(*pair), Y), data={0: SIZES})
       for name, pair in PAIRS.items()],
     *[Example(f"{name}, first without epsilon", function(nested(*pair, one="none"), Y))
       for name, pair in PAIRS.items()],
     *[Example(f"{name}, second without epsilon", function(
         nested(*pair, other="none").replace("epsilon none", "epsilon none zero_policy zero"), Y),
         data={0: ZEROS}) for name, pair in PAIRS.items()],
     *[Example(f"{name}, a negative gain between", function(
         splat("g", "-3.0") + nested(*pair, operands=GAIN), Y), data={0: SIZES})
       for name, pair in PAIRS.items()],
     Example("a small gain with an offset between", function(
         splat("g", "-0.75") + nested("rms_norm", "rms_norm", operands=GAIN,
                                      clauses="scale_offset 1.0"), Y), data={0: SIZES}),
     Example("gain and shift of the second", function(
         splat("g", f"[{FEATURES}]") + inner("rms_norm")
         + norm("rms_norm", operands=GAIN + " " + SHIFT, epsilon=SECOND,
                clauses="scale_offset 1.0"), Y, f"%x: {X}, %b: tensor<24xf32>"),
             data={0: SIZES}),
     Example("LN of RMS without a second epsilon", function(
         nested("rms_norm", "layer_norm", other="none"), Y), data={0: SIZES},
         new=("epsilon none",)),
     Example("the first is read elsewhere", function(
         inner("rms_norm", extra=", %v", after=f"variance({ROW})")
         + norm("rms_norm", epsilon=SECOND), {"%y": X, "%z": X, "%v": ROW})),
     Example("L2 of L2", function(nested("l2_norm", "l2_norm", one="inside_sqrt 2.0"), Y),
             data={0: SIZES}),
     Example("instance norms", function(
         norm("instance_norm", axes="[2, 3]", kind=IMAGE, value="%x").replace("%y", "%z")
         + norm("instance_norm", axes="[2, 3]", kind=IMAGE,
                operands="shift(%b : tensor<6xf32>)", clauses="affine_axes [1]"),
         {"%y": IMAGE}, f"%x: {IMAGE}, %b: tensor<6xf32>"))],
    [Refusal("real", function(nested("rms_norm", "rms_norm"), Y), passes=STRICT),
     Refusal("axes", function(nested("rms_norm", "rms_norm", axes="[0]"), Y)),
     Refusal("kind", function(nested("rms_norm", "layer_norm"), Y)),
     Refusal("placement", function(
         nested("rms_norm", "rms_norm", one=OUTSIDE), Y), name="first-outside"),
     Refusal("placement", function(
         nested("rms_norm", "rms_norm", other=OUTSIDE), Y), name="second-outside"),
     Refusal("placement", function(
         nested("rms_norm", "rms_norm", one="max_inside 0.5"), Y), name="first-max-inside"),
     Refusal("placement", function(
         nested("rms_norm", "rms_norm", other="max_inside 0.5"), Y), name="second-max-inside"),
     Refusal("placement", function(
         nested("rms_norm", "rms_norm", other="max_outside 0.5"), Y), name="max-outside"),
     Refusal("correction", function(
         nested("layer_norm", "rms_norm", clauses="correction 1"), Y), name="first"),
     Refusal("correction", function(
         inner() + norm(epsilon=SECOND, clauses="correction 1"), Y), name="second"),
     Refusal("residual", function(
         nested("rms_norm", "rms_norm", operands=f"residual(%q : {X})"), Y, f"%x: {X}, %q: {X}"),
             name="first"),
     Refusal("residual", function(
         inner("rms_norm") + norm("rms_norm", operands=f"residual(%q : {X})"), Y,
         f"%x: {X}, %q: {X}"), name="second"),
     Refusal("shift", function(
         nested("rms_norm", "rms_norm", operands=SHIFT), Y, f"%x: {X}, %b: tensor<24xf32>")),
     Refusal("gain-between", function(
         nested("rms_norm", "rms_norm", operands=GAIN), Y, f"%x: {X}, %g: tensor<24xf32>"),
             name="argument"),
     Refusal("gain-between", function(
         splat("g", f"[{FEATURES}]") + nested("rms_norm", "rms_norm", operands=GAIN), Y),
             name="features"),
     Refusal("gain-between", function(
         splat("g", "-1.0") + nested("rms_norm", "rms_norm", operands=GAIN,
                                     clauses="scale_offset 1.0"), Y), name="zero"),
     Refusal("statistics", function(
         inner("rms_norm") + norm("rms_norm", extra=", %r", after=f"rstd({ROW})"),
         {"%y": X, "%r": ROW})),
     Refusal("type", function(
         inner("rms_norm", clauses="compute f64") + norm("rms_norm"), Y)),
     Refusal("zero", function(
         nested("rms_norm", "layer_norm", one="none", other="none").replace(
             "layer_norm %z   axes [1] epsilon none",
             "layer_norm %z   axes [1] epsilon none zero_policy zero"), Y)),
     Refusal("epsilon", function(
         nested("rms_norm", "rms_norm", one="inside_sqrt 1.0e-20", other="inside_sqrt 1.0e-20"),
         Y)),
     Refusal("gain", function(
         inner("rms_norm") + norm("rms_norm", operands=GAIN), Y,
         f"%x: {X}, %g: tensor<24xf32>"), name="argument"),
     Refusal("gain", function(
         splat("g", f"[{FEATURES}]") + inner("rms_norm")
         + norm("rms_norm", operands=GAIN, clauses="affine_in result"), Y),
             name="affine-in-result")])

# ---- C14 ---------------------------------------------------------------------

POWERS = {"%y": X, "%v": ROW, "%r": ROW}


def l2(**more):
    return norm("l2_norm", value="%x", **more)


C14 = Rewrite(
    "C14",
    "An L2 norm of n elements is an RMS norm with a gain of 1 / sqrt(n) and an epsilon of "
    "epsilon / n (`inside_sqrt`, `max_inside`) or epsilon / sqrt(n) (`outside_sqrt`, "
    "`max_outside`).",
    "R", PASSES,
    {"real": "`fp-policy=real`",
     "count": "n is static and not 0",
     "epsilon": "the new epsilon is not 0 or subnormal in the compute type unless the old one was",
     "gain": "the gain is a constant or absent, and with `affine_in result` there is no gain or "
             "shift"},
    [Example("a gain of 1 / sqrt(n)", function(l2(epsilon="inside_sqrt 12.0"), Y),
             new=("norm.rms_norm", "inside_sqrt 5.000000e-01")),
     *[Example(f"statistics, {place}", function(
         l2(epsilon=epsilon, extra=", %v, %r", after=f"variance({ROW}) rstd({ROW})"), POWERS),
         new=("norm.rms_norm",)) for place, epsilon in {
             "inside_sqrt": "inside_sqrt 20.0", "outside_sqrt": "outside_sqrt 5.0",
             "max_inside": "max_inside 24.0", "max_outside": "max_outside 4.9",
             "none": "none"}.items()],
     Example("a constant gain with an offset, and a shift", function(
         splat("g", f"[{FEATURES}]")
         + l2(operands=GAIN + " " + SHIFT, clauses="scale_offset 1.0"), Y,
         f"%x: {X}, %b: tensor<24xf32>"), new=("norm.rms_norm",)),
     Example("rows of zeros", function(l2(epsilon="none", clauses="zero_policy zero"), Y),
             data={0: ZEROS}),
     Example("a residual", function(
         l2(operands=f"residual(%q : {X})", extra=", %s", after=f"sum({X})"),
         {"%y": X, "%s": X}, f"%x: {X}, %q: {X}")),
     Example("bf16", function(
         norm("l2_norm", value="%x", kind="tensor<4x24xbf16>", clauses="affine_in result"),
         {"%y": "tensor<4x24xbf16>"}, "%x: tensor<4x24xbf16>"), tolerance=4.0)],
    [Refusal("real", function(l2(), Y), passes=STRICT),
     Refusal("count", function(
         norm("l2_norm", value="%x", kind="tensor<4x?xf32>"), {"%y": "tensor<4x?xf32>"},
         "%x: tensor<4x?xf32>"), name="dynamic"),
     Refusal("count", function(
         norm("l2_norm", value="%x", kind="tensor<4x0xf32>", extra=", %r", after=f"rstd({ROW})"),
         {"%y": "tensor<4x0xf32>", "%r": ROW}, "%x: tensor<4x0xf32>"), name="empty"),
     Refusal("epsilon", function(l2(epsilon="max_inside 1.5e-38"), Y)),
     Refusal("gain", function(l2(operands=GAIN), Y, f"%x: {X}, %g: tensor<24xf32>"),
             name="argument"),
     Refusal("gain", function(
         splat("g", f"[{FEATURES}]") + l2(operands=GAIN, clauses="affine_in result"), Y),
             name="affine-in-result")])

# ---- C15 ---------------------------------------------------------------------

AFFINE = "scale(%g : tensor<6xf32>) shift(%b : tensor<6xf32>)"
IMAGE_ARGUMENTS = f"%x: {IMAGE}, %g: tensor<6xf32>, %b: tensor<6xf32>"
ONE = "tensor<1x6x3x5xf32>"


def statistics(shape):
    kind = f"tensor<{shape}xf32>"
    return (dict(extra=", %m, %v, %r", after=f"mean({kind}) variance({kind}) rstd({kind})"),
            {"%m": kind, "%v": kind, "%r": kind})


def group(groups, with_statistics, **more):
    clauses, types = statistics(f"2x{groups}") if with_statistics else ({}, {})
    return function(norm("group_norm", axes="[1, 2, 3]", kind=IMAGE, value="%x", operands=AFFINE,
                         groups=f"groups {groups} channel_axis 1", **clauses, **more),
                    {"%y": IMAGE, **types}, IMAGE_ARGUMENTS)


def batch(kind, with_statistics=False, **more):
    clauses, types = statistics("6") if with_statistics else ({}, {})
    return function(norm("batch_norm_training", axes="[0, 2, 3]", kind=kind, value="%x",
                         operands=AFFINE, **clauses, **more), {"%y": kind, **types},
                    IMAGE_ARGUMENTS.replace(IMAGE, kind))


C15 = Rewrite(
    "C15",
    "Norms that differ in name alone become one kind: `group_norm` with a group for each channel "
    "an instance norm, with one group a layer norm; `instance_norm` a layer norm; "
    "`batch_norm_training` of one sample an instance norm. The affine axes stay.",
    "R", UNIFY,
    {"real": "`fp-policy=real`",
     "groups": "there is one group, or one for each channel",
     "batch": "the first axis has the extent 1",
     "running": "no running statistics are read"},
    [Example("one group", group(1, True), new=("norm.layer_norm", r"affine_axes \[1\]")),
     Example("a group for each channel", group(6, True),
             new=("norm.layer_norm", r"axes \[2, 3\]", r"affine_axes \[1\]")),
     Example("instance norm", function(
         norm("instance_norm", axes="[2, 3]", kind=IMAGE, value="%x", operands=AFFINE,
              clauses="affine_axes [1] correction 1", epsilon="max_outside 0.5"), {"%y": IMAGE},
         IMAGE_ARGUMENTS), new=("norm.layer_norm", r"affine_axes \[1\]")),
     Example("a batch of one", batch(ONE, True), new=("norm.layer_norm", r"axes \[2, 3\]")),
     Example("one group over all axes", function(
         norm("group_norm", axes="[0, 1]", value="%x", groups="groups 1 channel_axis 1",
              extra=", %m", after="mean(tensor<1xf32>)"), {"%y": X, "%m": "tensor<1xf32>"}),
             new=("norm.layer_norm",)),
     Example("one group, the channel last", function(
         norm("group_norm", axes="[1, 2]", kind="tensor<2x5x6xf32>", value="%x",
              groups="groups 1 channel_axis 2", extra=", %m", after="mean(tensor<2x1xf32>)"),
         {"%y": "tensor<2x5x6xf32>", "%m": "tensor<2x1xf32>"}, "%x: tensor<2x5x6xf32>"),
             new=("norm.layer_norm",))],
    [Refusal("real", group(1, False), passes=("--norm-simplify=unify-kinds",)),
     Refusal("groups", group(2, False)),
     Refusal("batch", batch(IMAGE)),
     Refusal("running", function(
         norm("batch_norm_training", axes="[0, 2, 3]", kind=ONE, value="%x", operands=RUNNING,
              clauses="momentum 0.25", extra=", %nm, %nv", after=RUNNING_RESULTS),
         {**RUNNING_TYPES, "%y": ONE}, RUNNING_ARGUMENTS.replace(IMAGE, ONE)))],
    note="Behind the option `unify-kinds`: it hides which norm was written. A group norm of one "
         "group still has a gain for each channel, where a layer norm has one for each element by "
         "default.")

REWRITES = [C11, C12, C13, C14, C15]
