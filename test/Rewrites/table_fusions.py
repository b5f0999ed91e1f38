"""Fusions of `norm-fuse-residual`: an addition becomes an operand of a norm."""

from rewrites import Example, Refusal, Rewrite

FUSE = ("--norm-fuse-residual",)
TYPE = "tensor<4x24xf32>"
RMS = "axes [1] epsilon inside_sqrt 1.0e-5"


def norm(lines, results="%y", arguments=f"%x: {TYPE}, %r: {TYPE}", types=TYPE):
    several = f"({types})" if "," in types else types
    body = "\n  ".join(lines)
    return (f"func.func @main({arguments}) -> {several} {{\n  {body}\n"
            f"  return {results} : {types}\n}}\n")


def add(element="f32", shape="4x24", a="%x", b="%r"):
    return f"%s = arith.addf {a}, {b} : tensor<{shape}x{element}>"


def rms(x="%s", clauses=RMS, kind=TYPE):
    return f"%y = norm.rms_norm {x} {clauses} : {kind} -> {kind}"


def generic(first, second, maps, rank=2, kind=TYPE):
    """An addition that reads its operands by these maps."""
    dims = ", ".join("abc"[:rank])
    iterators = ", ".join(['"parallel"'] * rank)
    listed = ", ".join(f"affine_map<({dims}) -> ({m})>" for m in (*maps, dims))
    (a, a_type), (b, b_type) = first, second
    return (f"%e = tensor.empty() : {kind}\n"
            f"  %s = linalg.generic {{indexing_maps = [{listed}],\n"
            f"      iterator_types = [{iterators}]}}\n"
            f"      ins({a}, {b} : {a_type}, {b_type}) outs(%e : {kind}) {{\n"
            "  ^bb0(%p: f32, %q: f32, %o: f32):\n"
            "    %t = arith.addf %p, %q : f32\n"
            "    linalg.yield %t : f32\n"
            f"  }} -> {kind}")


FULL3 = "tensor<2x4x24xf32>"
SKIP = norm([generic(("%r", "tensor<4x24xf32>"), ("%x", FULL3), ("b, c", "a, b, c"), 3, FULL3),
             rms("%s", "axes [2] epsilon inside_sqrt 1.0e-5", FULL3)],
            arguments=f"%x: {FULL3}, %r: tensor<4x24xf32>", types=FULL3)
BIAS = norm([generic(("%x", TYPE), ("%b", "tensor<24xf32>"), ("a, b", "b")), rms()],
            arguments=f"%x: {TYPE}, %b: tensor<24xf32>")
BIAS_STORED = BIAS.replace("return %y", "return %y, %s").replace(
    f"-> {TYPE} {{\n  %e", f"-> ({TYPE}, {TYPE}) {{\n  %e").replace(
        f"%s : {TYPE}\n}}", f"%s : {TYPE}, {TYPE}\n}}")
OUTER = norm([generic(("%x", "tensor<4xf32>"), ("%b", "tensor<24xf32>"), ("a", "b")), rms(),
              ], "%y, %s", "%x: tensor<4xf32>, %b: tensor<24xf32>", f"{TYPE}, {TYPE}")
TRANSPOSED = norm([generic(("%x", TYPE), ("%r", "tensor<24x4xf32>"), ("a, b", "b, a")), rms()],
                  arguments=f"%x: {TYPE}, %r: tensor<24x4xf32>")

BF = "tensor<4x24xbf16>"
WIDE = [f"%a = arith.extf %x : {BF} to {TYPE}", f"%b = arith.extf %r : {BF} to {TYPE}",
        add(a="%a", b="%b")]
NARROWED = f"%t = arith.truncf %s : {TYPE} to {BF}"
OF_BF16 = f"%x: {BF}, %r: {BF}"

GRADIENT = f"%dx = norm.rms_norm_backward %dy, %x {RMS} : {TYPE}, {TYPE} -> {TYPE}"
THREE = f"%dy: {TYPE}, %x: {TYPE}, %d: {TYPE}"

REWRITES = [
    Rewrite(
        "F1", "The addition that feeds a norm becomes its residual operand, and its other users "
        "take the sum from the norm.", "E", FUSE,
        {"residual": "the norm has no residual yet",
         "operand": "both operands are tensors, not transposed and not computed in the addition",
         "shape": "one operand has the shape of the sum",
         "bias": "it is not a bias that is added for the norm alone: that stays an elementwise "
                 "producer in the norm's loop",
         "cast": "nothing else reads the sum before a cast that rounds it",
         "rounding": "sum_rounding can say how the sum is rounded",
         "type": "other users read the sum in the type that it is rounded to",
         "dominance": "the norm can move before the other users of the sum"},
        [Example("sum for the norm alone", norm([add(), rms()]), gone=("addf",),
                 new=("residual(",)),
         Example("sum with other users", norm([add(), rms()], "%y, %s", types=f"{TYPE}, {TYPE}"),
                 gone=("addf",), new=(r"sum\(",)),
         Example("used before the norm",
                 norm([add(), f"%t = math.exp %s : {TYPE}",
                       rms()], "%y, %t", types=f"{TYPE}, {TYPE}"),
                 gone=("addf",), new=(r"rms_norm[^\n]*\n[^\n]*math.exp",), runs=False),
         Example("repeated along an axis", SKIP, gone=("addf",), new=("linalg.broadcast",)),
         Example("bias of a stored sum", BIAS_STORED, gone=("addf",), new=("linalg.broadcast",)),
         Example("cast between", norm([*WIDE, NARROWED, rms("%t", kind=BF)], "%y, %t", OF_BF16,
                                      f"{BF}, {BF}"),
                 gone=("addf", "truncf"), new=(r"sum\(",)),
         Example("unrounded sum", norm([*WIDE, rms()], arguments=OF_BF16),
                 gone=("addf",), new=("sum_rounding compute",))],
        [Refusal("residual", norm([add(), rms("%s", f"residual(%x : {TYPE}) {RMS}")])),
         Refusal("operand", TRANSPOSED, switch=False),
         Refusal("shape", OUTER, switch=False),
         Refusal("bias", BIAS),
         Refusal("cast", norm([*WIDE, NARROWED, rms("%t", kind=BF)], "%y, %s", OF_BF16,
                              f"{BF}, {TYPE}")),
         Refusal("rounding", norm([add(), NARROWED, rms("%t", kind=BF)], types=BF), switch=False),
         Refusal("rounding", norm([f"%s = arith.addf %x, %r : {BF}",
                                  f"%w = arith.extf %s : {BF} to {TYPE}",
                                  rms("%w", f"{RMS} compute f16")], "%y", OF_BF16, TYPE),
                switch=False, name="another 16-bit compute type"),
        Refusal("type", norm([f"%s = arith.addf %x, %r : {BF}", f"%w = arith.extf %s : {BF} to "
                               f"{TYPE}", rms("%w")], "%y, %w", OF_BF16, f"{TYPE}, {TYPE}"),
                 switch=False),
         Refusal("dominance",
                 norm([add(), f"%g = math.tanh %s : {TYPE}",
                       rms("%s", f"scale(%g : {TYPE}) {RMS} affine_axes [0, 1]")]),
                 switch=False)]),
    Rewrite(
        "F11", "A gradient that is added to the dx of a backward op becomes its dsum.", "R", FUSE,
        {"shape": "what is added is a tensor of dx's shape",
         "dsum": "the op adds no other gradient yet",
         "users": "only the addition reads dx",
         "rounding": "dx is of the type it is computed in, and so is the addition: nothing is "
                     "rounded in between",
         "type": "the sum is not widened after it was rounded",
         "dominance": "the gradient is there before the op, or no result of the op is read before "
                      "the addition"},
        [Example("gradient of the stream",
                 norm([GRADIENT, f"%s = arith.addf %dx, %d : {TYPE}"], "%s", THREE),
                 gone=("addf",), new=("dsum",)),
         Example("gradient that comes later",
                 norm([GRADIENT, f"%l = arith.negf %d : {TYPE}",
                       f"%s = arith.addf %l, %dx : {TYPE}"], "%s", THREE),
                 gone=("addf",), new=("dsum",), runs=False)],
        [Refusal("shape", norm([GRADIENT, generic(("%dx", TYPE), ("%d", "tensor<24xf32>"),
                                                  ("a, b", "b"))], "%s",
                               f"%dy: {TYPE}, %x: {TYPE}, %d: tensor<24xf32>"), switch=False),
         Refusal("dsum", norm([GRADIENT.replace(RMS, f"dsum(%x : {TYPE}) {RMS}"),
                               f"%s = arith.addf %dx, %d : {TYPE}"], "%s", THREE)),
         Refusal("users", norm([GRADIENT, f"%s = arith.addf %dx, %d : {TYPE}"], "%s, %dx", THREE,
                               f"{TYPE}, {TYPE}")),
         Refusal("rounding", norm([GRADIENT, f"%s = arith.addf %dx, %d : {TYPE}"], "%s",
                                  THREE).replace("f32", "bf16"), name="bf16"),
         Refusal("type", norm([GRADIENT, generic(("%dx", TYPE), ("%d", TYPE),
                                                 ("a, b", "a, b"), kind=TYPE)], "%s", THREE)
                 .replace("%t = arith.addf %p, %q : f32\n    linalg.yield %t",
                          "%u = arith.addf %p, %q : f32\n    %n = arith.truncf %u : f32 to bf16\n"
                          "    %t = arith.extf %n : bf16 to f32\n    linalg.yield %t"),
                 switch=False),
         Refusal("dominance",
                 norm([GRADIENT.replace("%dx =", "%dx, %dg =").replace(
                     RMS, f"scale(%g : tensor<24xf32>) {RMS}") + " dscale(tensor<24xf32>)",
                       "%l = linalg.broadcast ins(%dg : tensor<24xf32>) "
                       f"outs(%d : {TYPE}) dimensions = [0]",
                       f"%z = arith.mulf %l, %d : {TYPE}",
                       f"%s = arith.addf %dx, %z : {TYPE}"], "%s",
                      THREE + ", %g: tensor<24xf32>"), switch=False)],
        note="On the CPU in f32 and f64 the bits are the same: the op adds in the type that dx is "
             "computed in. The reference computes in f64 and rounds each result once, so one "
             "rounding less after the fusion."),
]
