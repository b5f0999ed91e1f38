"""C7 to C10: what a norm removes from its input again.

Epsilon is as large as the statistic in these examples: a wrong rescaling shows.
"""

from rewrites import REAL, SIMPLIFY, Example, Refusal, Rewrite

PASSES = (REAL,)
STRICT = (SIMPLIFY,)
FINITE = ("--norm-simplify=fp-policy=real nnan ninf",)
X = "tensor<4x24xf32>"
IMAGE = "tensor<2x6x3x5xf32>"


def function(body, results, arguments=f"%x: {X}"):
    """@main with a body that ends in values named by `results`: {name: type}."""
    types = ", ".join(results.values())
    names = ", ".join(results)
    return f"""func.func @main({arguments}) -> ({types}) {{
{body}  return {names} : {types}
}}
"""


def norm(op="layer_norm", clauses="", axes="[1]", epsilon="inside_sqrt 0.5", kind=X, after="",
         operands="", result=None, groups="", extra="", value="%z"):
    return (f"  %y{extra} = norm.{op} {value} {operands} {groups} axes {axes} epsilon {epsilon} "
            f"{clauses} : {kind} -> {result or kind} {after}\n")


def constant(name, value, kind):
    return f"  %{name} = arith.constant dense<{value}> : {kind}\n"


def apply(op, operand, kind=X):
    return f"  %z = arith.{op} {operand} : {kind}\n"


def splat(op, value, kind=X, order="%x, %c"):
    """%z = x op value."""
    return constant("c", value, kind) + apply(op, order, kind)


def vary(op, value, along, kind=X, order="%x, %c"):
    """%z = x op a tensor that linalg broadcasts along the axes it lacks."""
    return (value + f"  %e = tensor.empty() : {kind}\n"
            f"  %w = linalg.broadcast ins(%p : {along[0]}) outs(%e : {kind}) "
            f"dimensions = {along[1]}\n" + apply(op, order.replace("%c", "%w"), kind))


def body(lines, ins, maps, kind=X, loops=2):
    """%z by one linalg.generic. ins: {value: type}; maps: of each, results of the map."""
    dims = ", ".join(f"d{i}" for i in range(loops))
    whole = f"affine_map<({dims}) -> ({dims})>"
    indexing = ", ".join([*(f"affine_map<({dims}) -> ({m})>" for m in maps), whole])
    types = ", ".join(ins.values())
    element = kind.split("x")[-1].rstrip(">")
    arguments = ", ".join(f"%a{i}: {t.split('x')[-1].rstrip('>').replace('tensor<', '')}"
                          for i, t in enumerate(ins.values()))
    iterators = ", ".join(['"parallel"'] * loops)
    return f"""  %e = tensor.empty() : {kind}
  %z = linalg.generic {{indexing_maps = [{indexing}], iterator_types = [{iterators}]}}
      ins({", ".join(ins)} : {types}) outs(%e : {kind}) {{
  ^bb0({arguments}, %o: {element}):
{lines}  }} -> {kind}
"""


Y = {"%y": X}
ALL = ", %m, %v, %r"
ALL_TYPES = "mean(tensor<4xf32>) variance(tensor<4xf32>) rstd(tensor<4xf32>)"
STATISTICS = {"%y": X, "%m": "tensor<4xf32>", "%v": "tensor<4xf32>", "%r": "tensor<4xf32>"}
POWERS = {"%y": X, "%v": "tensor<4xf32>", "%r": "tensor<4xf32>"}
ROWS = "dense<[1.0, -2.0, 0.5, 3.0]> : tensor<4xf32>\n"
CHANNELS = "dense<[1.0, -2.0, 0.5, 3.0, 0.25, -1.0]> : tensor<6xf32>\n"
GROUPS = "dense<[1.0, 1.0, 1.0, 3.0, 3.0, 3.0]> : tensor<6xf32>\n"
FEATURES = ", ".join(str(i / 8) for i in range(24))
IMAGE_Y = {"%y": IMAGE}
PER_CHANNEL = ("tensor<6xf32>", "[0, 2, 3]")
TRAINING = dict(op="batch_norm_training", axes="[0, 2, 3]", kind=IMAGE)
RUNNING = "running(%rm, %rv : tensor<6xf32>, tensor<6xf32>)"
RUNNING_ARGUMENTS = f"%x: {IMAGE}, %rm: tensor<6xf32>, %rv: tensor<6xf32>"
RUNNING_RESULTS = "running_mean(tensor<6xf32>) running_variance(tensor<6xf32>)"
RUNNING_TYPES = {"%y": IMAGE, "%nm": "tensor<6xf32>", "%nv": "tensor<6xf32>"}
GIVEN = "mean(%gm : tensor<6xf32>) variance(%gv : tensor<6xf32>)"
GIVEN_ARGUMENTS = f"%x: {IMAGE}, %gm: tensor<6xf32>, %gv: tensor<6xf32>"
DYNAMIC = "tensor<4x?xf32>"

# x by something, then the norm, on x of 4x24.
SHIFTED = splat("addf", "2.5")
BF16 = "tensor<4x24xbf16>"


def placements(name, before):
    """One example for each place of epsilon."""
    return [Example(f"{name}, {place}", before(f"{place} 0.5"))
            for place in ("inside_sqrt", "outside_sqrt", "max_inside", "max_outside")] + [
                Example(f"{name}, none", before("none"))]


def add_in_bf16(clauses):
    return function(
        "  %k = arith.constant 1.5 : f32\n"
        + body("    %s = arith.addf %a0, %k : f32\n    %n = arith.truncf %s : f32 to bf16\n"
               "    linalg.yield %n : bf16\n", {"%x": X}, ["d0, d1"], kind=BF16)
        + norm(kind=BF16, clauses=clauses, operands="scale(%g : tensor<24xbf16>)"),
        {"%y": BF16}, f"%x: {X}, %g: tensor<24xbf16>")


C7 = Rewrite(
    "C7",
    "Adding to the input of a centred norm what is constant along its reduced axes changes "
    "only the mean: the norm reads the input without it.",
    "R", PASSES,
    {"real": "`fp-policy=real`: the sum was rounded, and a large addend takes bits of x",
     "shift-invariant": "the op subtracts a mean that it computes: not `rms_norm`, `l2_norm` or "
                        "`batch_norm_inference`",
     "constant": "what is added is the same for all elements that share a statistic: along all "
                 "reduced axes, and for `group_norm` inside a group",
     "finite": "it is a constant and finite, or `nnan` and `ninf` promise as much",
     "residual": "the `sum` of a residual form is not read",
     "type": "the norm can read the type of the smaller input: the compute type holds it, and "
             "neither `affine_in result` nor a residual needs x's",
     "running": "where running statistics are read, the batch is known to have elements",
     "running-type": "and the running mean has as many bits as it is computed in",
     "count": "where the mean is read, the rows are known to have elements"},
    [Example("a number", function(SHIFTED + norm(), Y), gone=("addf",)),
     *placements("a number subtracted",
                 lambda e: function(splat("subf", "2.5") + norm(epsilon=e), Y)),
     Example("statistics", function(
         SHIFTED + norm(extra=ALL, after=ALL_TYPES, clauses="correction 1"), STATISTICS)),
     Example("a constant per row", function(
         vary("addf", "  %p = arith.constant " + ROWS, ("tensor<4xf32>", "[1]"))
         + norm(extra=", %m", after="mean(tensor<4xf32>)"),
         {"%y": X, "%m": "tensor<4xf32>"}), new=("linalg.generic",)),
     Example("subtracted by linalg", function(
         constant("c", "2.5", X) + f"  %e = tensor.empty() : {X}\n"
         f"  %z = linalg.sub ins(%x, %c : {X}, {X}) outs(%e : {X}) -> {X}\n"
         + norm(extra=", %m", after="mean(tensor<4xf32>)"),
         {"%y": X, "%m": "tensor<4xf32>"}), gone=("linalg.sub",)),
     Example("in the body of a generic", function(
         "  %k = arith.constant 2.5 : f32\n"
         + body("    %s = arith.addf %k, %a0 : f32\n    linalg.yield %s : f32\n",
                {"%x": X}, ["d0, d1"]) + norm(), Y), gone=("addf",)),
     Example("an argument per row", function(
         vary("addf", "", ("tensor<4xf32>", "[1]"))
         + norm(extra=", %m", after="mean(tensor<4xf32>)"),
         {"%y": X, "%m": "tensor<4xf32>"}, f"%x: {X}, %p: tensor<4xf32>"),
             passes=FINITE),
     Example("a bias per channel before an instance norm", function(
         vary("addf", "  %p = arith.constant " + CHANNELS, PER_CHANNEL, IMAGE)
         + norm("instance_norm", axes="[2, 3]", kind=IMAGE, extra=", %m",
                after="mean(tensor<2x6xf32>)"),
         {"%y": IMAGE, "%m": "tensor<2x6xf32>"}, f"%x: {IMAGE}")),
     Example("one per group before a group norm", function(
         vary("addf", "  %p = arith.constant " + GROUPS, PER_CHANNEL, IMAGE)
         + norm("group_norm", axes="[1, 2, 3]", kind=IMAGE, groups="groups 2 channel_axis 1",
                extra=", %m", after="mean(tensor<2x2xf32>)"),
         {"%y": IMAGE, "%m": "tensor<2x2xf32>"}, f"%x: {IMAGE}")),
     Example("groups of one channel", function(
         vary("addf", "", PER_CHANNEL, IMAGE)
         + norm("group_norm", axes="[1, 2, 3]", kind=IMAGE, groups="groups 6 channel_axis 1",
                extra=", %m", after="mean(tensor<2x6xf32>)"),
         {"%y": IMAGE, "%m": "tensor<2x6xf32>"}, f"%x: {IMAGE}, %p: tensor<6xf32>"),
             passes=FINITE),
     Example("a bias before a batch norm that tracks its mean", function(
         vary("addf", "  %p = arith.constant " + CHANNELS, PER_CHANNEL, IMAGE)
         + norm(**TRAINING, operands=RUNNING, clauses="momentum 0.25",
                extra=", %m, %nm, %nv", after="mean(tensor<6xf32>) " + RUNNING_RESULTS),
         {**RUNNING_TYPES, "%m": "tensor<6xf32>"}, RUNNING_ARGUMENTS)),
     Example("momentum as an operand", function(
         splat("subf", "2.5", IMAGE)
         + norm(**TRAINING, operands=RUNNING, clauses="momentum(%a : f32)",
                extra=", %nm, %nv", after=RUNNING_RESULTS),
         RUNNING_TYPES, RUNNING_ARGUMENTS + ", %t: tensor<1xf32>").replace(
             "  %c =", "  %i = arith.constant 0 : index\n"
             "  %a = tensor.extract %t[%i] : tensor<1xf32>\n  %c =", 1)),
     Example("rounded to bf16 after the addition", add_in_bf16(""), gone=("addf",),
             tolerance=4.0),
     Example("a residual", function(
         SHIFTED + norm(operands=f"residual(%q : {X})"), Y, f"%x: {X}, %q: {X}"))],
    [Refusal("real", function(SHIFTED + norm(), Y), passes=STRICT),
     Refusal("shift-invariant", function(SHIFTED + norm("rms_norm"), Y), name="rms"),
     Refusal("shift-invariant", function(SHIFTED + norm("l2_norm"), Y), name="l2"),
     Refusal("shift-invariant", function(
         splat("addf", "2.5", IMAGE)
         + norm("batch_norm_inference", axes="[0, 2, 3]", kind=IMAGE, operands=GIVEN),
         IMAGE_Y, GIVEN_ARGUMENTS), name="inference"),
     Refusal("constant", function(
         vary("addf", constant("p", f"[{FEATURES}]", "tensor<24xf32>"),
              ("tensor<24xf32>", "[0]")) + norm(), Y), name="bias-of-features"),
     Refusal("constant", function(
         vary("addf", "", ("tensor<24xf32>", "[0]")) + norm(), Y,
         f"%x: {X}, %p: tensor<24xf32>"), passes=FINITE, name="argument"),
     Refusal("constant", function(
         vary("addf", "  %p = arith.constant " + CHANNELS, PER_CHANNEL, IMAGE)
         + norm("group_norm", axes="[1, 2, 3]", kind=IMAGE, groups="groups 2 channel_axis 1"),
         IMAGE_Y, f"%x: {IMAGE}"), name="inside-a-group"),
     Refusal("finite", function(splat("addf", "0x7F800000") + norm(), Y), name="infinity"),
     Refusal("finite", function(
         vary("addf", "", ("tensor<4xf32>", "[1]")) + norm(), Y,
         f"%x: {X}, %p: tensor<4xf32>"), name="argument"),
     Refusal("residual", function(
         SHIFTED + norm(operands=f"residual(%q : {X})", extra=", %s", after=f"sum({X})"),
         {"%y": X, "%s": X}, f"%x: {X}, %q: {X}")),
     Refusal("type", add_in_bf16("affine_in result")),
     Refusal("running-type", function(
         splat("addf", "2.5", IMAGE)
         + norm(**TRAINING, operands=RUNNING.replace("f32", "f16"), clauses="momentum 0.25",
                extra=", %nm, %nv", after=RUNNING_RESULTS.replace("f32", "f16")),
         {"%y": IMAGE, "%nm": "tensor<6xf16>", "%nv": "tensor<6xf16>"},
         f"%x: {IMAGE}, %rm: tensor<6xf16>, %rv: tensor<6xf16>")),
     Refusal("running", function(
         "  %k = arith.constant 2.5 : f32\n  %i = arith.constant 0 : index\n"
         "  %n = tensor.dim %x, %i : tensor<?x6xf32>\n"
         "  %c = tensor.splat %k[%n] : tensor<?x6xf32>\n"
         "  %z = arith.addf %x, %c : tensor<?x6xf32>\n"
         + norm("batch_norm_training", axes="[0]", kind="tensor<?x6xf32>", operands=RUNNING,
                clauses="momentum 0.25", extra=", %nm, %nv", after=RUNNING_RESULTS),
         {**RUNNING_TYPES, "%y": "tensor<?x6xf32>"},
         "%x: tensor<?x6xf32>, %rm: tensor<6xf32>, %rv: tensor<6xf32>")),
     Refusal("count", function(
         "  %k = arith.constant 2.5 : f32\n  %i = arith.constant 1 : index\n"
         f"  %n = tensor.dim %x, %i : {DYNAMIC}\n  %c = tensor.splat %k[%n] : {DYNAMIC}\n"
         f"  %z = arith.addf %x, %c : {DYNAMIC}\n"
         + norm(kind=DYNAMIC, extra=", %m", after="mean(tensor<4xf32>)"),
         {"%y": DYNAMIC, "%m": "tensor<4xf32>"}, f"%x: {DYNAMIC}"))])

SCALE_CONDITIONS = {
    "real": "`fp-policy=real`: the product was rounded, and could overflow or become subnormal",
    "computed": "the op computes its statistics: not `batch_norm_inference`",
    "factor": "the factor is a constant",
    "uniform": "it is one number; with `epsilon none` it may differ between rows, but not "
               "among elements that share a statistic",
    "nonzero": "it is finite and not 0",
    "sign": "it has one sign",
    "epsilon": "the new epsilon is finite in the compute type, and not 0 or subnormal there "
               "unless the old one was",
    "residual": "there is no residual, which was not multiplied",
    "running": "no running statistics are read",
    "gain": "a gain of -1 can be made: where there is a shift and no gain, its shape is static"}
SCALED = splat("mulf", "-4.0")
GAIN = "scale(%g : tensor<24xf32>)"
SHIFT = "shift(%b : tensor<24xf32>)"
WITH_GAIN = f"%x: {X}, %g: tensor<24xf32>, %b: tensor<24xf32>"


def scale_conditions(*without):
    return {name: text for name, text in SCALE_CONDITIONS.items() if name not in without}


C8 = Rewrite(
    "C8",
    "A constant factor a of the input of a layer norm goes into epsilon, and its sign into "
    "the gain: epsilon / a^2 where it is compared with the variance (`inside_sqrt`, "
    "`max_inside`), epsilon / |a| where it is compared with the root (`outside_sqrt`, "
    "`max_outside`).",
    "R", PASSES, scale_conditions("computed", "running"),
    [Example("a factor", function(SCALED + norm(), Y), gone=("mulf",),
             new=("inside_sqrt 3.125000e-02", "dense<-1.0")),
     *placements("a factor", lambda e: function(SCALED + norm(epsilon=e, operands=GAIN), Y,
                                                f"%x: {X}, %g: tensor<24xf32>")),
     *placements("a divisor",
                 lambda e: function(splat("divf", "0.25") + norm(epsilon=e), Y)),
     Example("a factor below 1", function(splat("mulf", "0.3") + norm(), Y)),
     Example("statistics", function(
         SCALED + norm(extra=ALL, after=ALL_TYPES, epsilon="max_outside 0.5"), STATISTICS)),
     Example("statistics of a divided input", function(
         splat("divf", "-3.0") + norm(extra=ALL, after=ALL_TYPES, clauses="correction 1"),
         STATISTICS)),
     Example("gain, offset and shift", function(
         SCALED + norm(operands=GAIN + " " + SHIFT, clauses="scale_offset 1.0"), Y, WITH_GAIN)),
     Example("a shift alone", function(
         SCALED + norm(operands=SHIFT), Y, f"%x: {X}, %b: tensor<24xf32>")),
     Example("a constant gain", function(
         constant("g", f"[{FEATURES}]", "tensor<24xf32>") + SCALED
         + norm(operands=GAIN, clauses="affine_in result"), Y)),
     Example("negated by linalg", function(
         f"  %e = tensor.empty() : {X}\n"
         f"  %z = linalg.negf ins(%x : {X}) outs(%e : {X}) -> {X}\n" + norm(), Y)),
     Example("a factor per row", function(
         vary("mulf", "  %p = arith.constant dense<[1.0, 2.0, 0.5, 3.0]> : tensor<4xf32>\n",
              ("tensor<4xf32>", "[1]"))
         + norm(extra=ALL, after=ALL_TYPES, epsilon="none"), STATISTICS)),
     Example("in f64", function(
         splat("mulf", "-4.0", "tensor<4x24xf64>") + norm(kind="tensor<4x24xf64>"),
         {"%y": "tensor<4x24xf64>"}, "%x: tensor<4x24xf64>"))],
    [Refusal("real", function(SCALED + norm(), Y), passes=STRICT),
     Refusal("real", function("  %z = arith.negf %x : tensor<4x24xf32>\n" + norm(), Y),
             passes=STRICT, name="sign-of-zero"),
     Refusal("factor", function(
         "  %i = arith.constant 0 : index\n  %a = tensor.extract %t[%i] : tensor<1xf32>\n"
         f"  %c = tensor.splat %a : {X}\n" + apply("mulf", "%x, %c") + norm(), Y,
         f"%x: {X}, %t: tensor<1xf32>"), switch=False),
     Refusal("uniform", function(
         vary("mulf", "  %p = arith.constant dense<[1.0, 2.0, 0.5, 3.0]> : tensor<4xf32>\n",
              ("tensor<4xf32>", "[1]")) + norm(), Y), name="rows-share-epsilon"),
     Refusal("uniform", function(
         vary("mulf", constant("p", f"[{FEATURES}]", "tensor<24xf32>"),
              ("tensor<24xf32>", "[0]")) + norm(epsilon="none"), Y), name="features"),
     Refusal("nonzero", function(splat("mulf", "0.0") + norm(), Y), name="zero"),
     Refusal("nonzero", function(splat("mulf", "0x7F800000") + norm(epsilon="none"), Y),
             name="infinity"),
     Refusal("sign", function(
         vary("mulf", "  %p = arith.constant " + ROWS, ("tensor<4xf32>", "[1]"))
         + norm(epsilon="none"), Y)),
     Refusal("epsilon", function(
         splat("mulf", "1.0e-22") + norm(epsilon="inside_sqrt 1.0e-5"), Y), name="overflow"),
     Refusal("epsilon", function(
         splat("mulf", "1.0e18") + norm(epsilon="max_inside 1.0e-5"), Y), name="subnormal"),
     Refusal("epsilon", function(
         splat("mulf", "64.0", "tensor<4x24xf16>")
         + norm(kind="tensor<4x24xf16>", epsilon="inside_sqrt 1.0e-3", clauses="compute f16"),
         {"%y": "tensor<4x24xf16>"}, "%x: tensor<4x24xf16>"), name="narrow-compute"),
     Refusal("residual", function(
         SCALED + norm(operands=f"residual(%q : {X})"), Y, f"%x: {X}, %q: {X}")),
     Refusal("gain", function(
         "  %k = arith.constant -4.0 : f32\n  %i = arith.constant 1 : index\n"
         f"  %n = tensor.dim %x, %i : {DYNAMIC}\n  %c = tensor.splat %k[%n] : {DYNAMIC}\n"
         + apply("mulf", "%x, %c", DYNAMIC)
         + norm(kind=DYNAMIC, operands="shift(%b : tensor<?xf32>)"),
         {"%y": DYNAMIC}, f"%x: {DYNAMIC}, %b: tensor<?xf32>"))],
    note="Gate E would need that no product overflows or becomes subnormal, which no constant "
         "can promise for all inputs. Not even a = -1 keeps every bit of a centred norm: where x "
         "is its mean, x - mean is +0 either way, and the gain of -1 makes it -0. A mean, "
         "variance or rstd that is read is multiplied by a, a^2 or 1 / |a|.")

C9 = Rewrite(
    "C9", "C8 for all other norms that compute their statistics.", "R", PASSES,
    scale_conditions("factor", "nonzero", "sign", "residual", "gain"),
    [Example("rms", function(SCALED + norm("rms_norm"), Y), gone=("mulf",),
             new=("inside_sqrt 3.125000e-02",)),
     *placements("rms with a gain", lambda e: function(
         SCALED + norm("rms_norm", epsilon=e, operands=GAIN), Y,
         f"%x: {X}, %g: tensor<24xf32>")),
     *placements("l2", lambda e: function(
         splat("divf", "0.05") + norm("l2_norm", epsilon=e, extra=", %v, %r",
                                      after="variance(tensor<4xf32>) rstd(tensor<4xf32>)"),
         POWERS)),
     Example("a negated input of an rms norm", function(
         "  %z = arith.negf %x : tensor<4x24xf32>\n"
         + norm("rms_norm", operands=GAIN, extra=", %v, %r",
                after="variance(tensor<4xf32>) rstd(tensor<4xf32>)"),
         POWERS, f"%x: {X}, %g: tensor<24xf32>"), passes=STRICT, gate="E", gone=("arith.negf %x",)),
     Example("the same without a gain", function(
         "  %z = arith.negf %x : tensor<4x24xf32>\n" + norm("rms_norm"), Y),
         passes=STRICT, gate="E"),
     Example("rounded before it is widened", function(
         f"  %z = arith.negf %x : {BF16}\n"
         + norm("rms_norm", kind=BF16, result=X, clauses="affine_in result"), Y, f"%x: {BF16}"),
         passes=STRICT, gate="E"),
     Example("group norm", function(
         splat("mulf", "-0.5", IMAGE)
         + norm("group_norm", axes="[1, 2, 3]", kind=IMAGE, groups="groups 2 channel_axis 1",
                operands="scale(%g : tensor<6xf32>)", extra=", %m, %r",
                after="mean(tensor<2x2xf32>) rstd(tensor<2x2xf32>)"),
         {"%y": IMAGE, "%m": "tensor<2x2xf32>", "%r": "tensor<2x2xf32>"},
         f"%x: {IMAGE}, %g: tensor<6xf32>")),
     Example("a factor per group", function(
         vary("mulf", "  %p = arith.constant " + GROUPS, PER_CHANNEL, IMAGE)
         + norm("group_norm", axes="[1, 2, 3]", kind=IMAGE, groups="groups 2 channel_axis 1",
                epsilon="none", extra=", %v", after="variance(tensor<2x2xf32>)"),
         {"%y": IMAGE, "%v": "tensor<2x2xf32>"}, f"%x: {IMAGE}")),
     Example("instance norm of dynamic extent", function(
         "  %k = arith.constant -4.0 : f32\n  %i = arith.constant 1 : index\n"
         f"  %n = tensor.dim %x, %i : {DYNAMIC}\n  %c = tensor.splat %k[%n] : {DYNAMIC}\n"
         + apply("mulf", "%x, %c", DYNAMIC) + norm("instance_norm", kind=DYNAMIC),
         {"%y": DYNAMIC}, f"%x: {DYNAMIC}"), new=(r"affine_axes \[\]",), runs=False),
     Example("instance norm", function(
         SCALED + norm("instance_norm", operands=SHIFT, clauses="affine_axes [1]"), Y,
         f"%x: {X}, %b: tensor<24xf32>")),
     Example("batch norm", function(
         splat("mulf", "-0.5", IMAGE)
         + norm(**TRAINING, extra=", %m, %v",
                after="mean(tensor<6xf32>) variance(tensor<6xf32>)"),
         {"%y": IMAGE, "%m": "tensor<6xf32>", "%v": "tensor<6xf32>"}, f"%x: {IMAGE}"))],
    [Refusal("real", function(splat("mulf", "2.0") + norm("rms_norm"), Y), passes=STRICT),
     Refusal("computed", function(
         splat("mulf", "2.0", IMAGE)
         + norm("batch_norm_inference", axes="[0, 2, 3]", kind=IMAGE, operands=GIVEN),
         IMAGE_Y, GIVEN_ARGUMENTS)),
     Refusal("uniform", function(
         vary("mulf", "  %p = arith.constant " + CHANNELS, PER_CHANNEL, IMAGE)
         + norm("group_norm", axes="[1, 2, 3]", kind=IMAGE, groups="groups 2 channel_axis 1",
                epsilon="none"), IMAGE_Y, f"%x: {IMAGE}"), name="inside-a-group"),
     Refusal("uniform", function(
         vary("mulf", "  %p = arith.constant " + GROUPS, PER_CHANNEL, IMAGE)
         + norm("batch_norm_training", axes="[0, 2, 3]", kind=IMAGE), IMAGE_Y, f"%x: {IMAGE}"),
             name="channels-share-epsilon"),
     Refusal("epsilon", function(
         splat("mulf", "1.0e-34") + norm("rms_norm", epsilon="outside_sqrt 1.0e5"), Y)),
     Refusal("running", function(
         splat("mulf", "2.0", IMAGE)
         + norm(**TRAINING, operands=RUNNING, clauses="momentum 0.25", extra=", %nm, %nv",
                after=RUNNING_RESULTS), RUNNING_TYPES, RUNNING_ARGUMENTS))],
    note="A negated input of `rms_norm` or `l2_norm` needs no policy: products, roundings and "
         "statistics of -x are those of x but for the sign.")


def affine_body(*lines):
    return body("".join(f"    {line} : f32\n" for line in lines), {"%x": X}, ["d0, d1"])


CONSTANTS = "  %k = arith.constant 2.5 : f32\n  %f = arith.constant -4.0 : f32\n"
FMA = affine_body("%s = arith.mulf %a0, %f", "%t = arith.addf %s, %k", "linalg.yield %t")

C10 = Rewrite(
    "C10",
    "A factor of the input and an addend, in one op: C7 and C8 together. (In two ops, each "
    "applies on its own.)",
    "R", PASSES,
    {name: (C7.conditions | C8.conditions)[name]
     for name in ("real", "shift-invariant", "constant", "uniform", "epsilon")},
    [Example("a * x + c in one op", function(CONSTANTS + FMA + norm(), Y),
             gone=("arith.addf", "arith.mulf"), new=("inside_sqrt 3.125000e-02",)),
     *placements("statistics", lambda e: function(
         CONSTANTS + FMA + norm(epsilon=e, extra=ALL, after=ALL_TYPES), STATISTICS)),
     Example("(c - x) / a", function(
         CONSTANTS + affine_body("%s = arith.subf %k, %a0", "%t = arith.divf %s, %f",
                                 "linalg.yield %t")
         + norm(extra=ALL, after=ALL_TYPES), STATISTICS), gone=("inside_sqrt 5.0",)),
     Example("c - x", function(
         splat("subf", "2.5", order="%c, %x") + norm(extra=ALL, after=ALL_TYPES), STATISTICS))],
    [Refusal("real", function(CONSTANTS + FMA + norm(), Y), passes=STRICT),
     Refusal("shift-invariant", function(CONSTANTS + FMA + norm("rms_norm"), Y)),
     Refusal("constant", function(
         "  %f = arith.constant -4.0 : f32\n" + constant("b", f"[{FEATURES}]", "tensor<24xf32>")
         + body("    %s = arith.mulf %a0, %f : f32\n    %t = arith.addf %s, %a1 : f32\n"
                "    linalg.yield %t : f32\n", {"%x": X, "%b": "tensor<24xf32>"},
                ["d0, d1", "d1"]) + norm(), Y)),
     Refusal("uniform", function(
         "  %k = arith.constant 2.5 : f32\n  %p = arith.constant " + ROWS
         + body("    %s = arith.mulf %a0, %a1 : f32\n    %t = arith.addf %s, %k : f32\n"
                "    linalg.yield %t : f32\n", {"%x": X, "%p": "tensor<4xf32>"},
                ["d0, d1", "d0"]) + norm(), Y)),
     Refusal("epsilon", function(
         CONSTANTS + FMA.replace("%f", "%tiny") + norm(), Y).replace(
             "  %f =", "  %tiny = arith.constant 1.0e-22 : f32\n  %f ="))])

REWRITES = [C7, C8, C9, C10]
