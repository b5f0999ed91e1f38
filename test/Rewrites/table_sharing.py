"""Rewrites of `norm-simplify`: what norms share with each other and with products."""

import numpy as np
from rewrites import REAL, SIMPLIFY, Example, Refusal, Rewrite
from table_reshape import EPS, function, tensor

# ---- C27 ---------------------------------------------------------------------


def two_norms(first, second, shape=(4, 24), arguments=None, kinds=((), ()), returned=("y", "z"),
              first_names="y", second_names="z", of="x", element="f32"):
    """Two norms of one x: each (op, clauses), with names and kinds of further results."""
    x = tensor(*shape, element=element)

    def norm(names, op, clauses, of, kinds):
        return (f"  {names} = norm.{op} %{of} {clauses} : {x} -> {x}"
                + "".join(f" {role}({kind})" for role, kind in kinds) + "\n")
    body = (norm(first_names, *first, "x", kinds[0]) + norm(second_names, *second, of, kinds[1]))
    results = [x, *(k for _, k in kinds[0]), x, *(k for _, k in kinds[1])]
    return function({"x": x, **(arguments or {})}, results, body.rstrip("\n"), *returned)


GAINS = {"g": tensor(24), "h": tensor(24)}
G, H = f"scale(%g : {tensor(24)})", f"scale(%h : {tensor(24)})"


def parallel(first, second, arguments=None, op="rms_norm", **more):
    return two_norms((op, first), (op, second), arguments=arguments or GAINS,
                     first_names="%y", second_names="%z", **more)


def moments(first, second, kept=4, about="mean"):
    """Two norms in the statistics algebra, each with moments of its own."""
    f64, f32, i64 = (tensor(kept, element=e) for e in ("f64", "f32", "i64"))
    x = tensor(4, 24)
    return f"""func.func @main(%x: {x}, %g: {tensor(24)}) -> ({x}, {x}, {f32}) {{
  {first}
  %r = norm.rstd %m2 count(%n : {i64}) {EPS} compute f32 : {f64} -> {f32}
  %y = norm.normalize %x mean(%m : {f64}) rstd(%r : {f32}) axes [1] : {x} -> {x}
  {second}
  %s, %v = norm.rstd %k2 count(%n : {i64}) {EPS} compute f32 : {f64} -> {f32} variance({f32})
  %z = norm.normalize %x mean(%k : {f64}) rstd(%s : {f32}) scale(%g : {tensor(24)}) axes [1]
      : {x} -> {x}
  return %y, %z, %v : {x}, {x}, {f32}
}}
"""


def moments_op(names, results, clauses=""):
    kinds = {"count": tensor(4, element="i64"), "mean": tensor(4, element="f64"),
             "m2": tensor(4, element="f64")}
    listed = " ".join(f"{result}({kinds[result]})" for result in results)
    return (f"{names} = norm.moments %x axes [1] about mean {clauses}: {tensor(4, 24)} "
            f"-> {listed}")


F64_NORMS = f"""func.func @main(%x: tensor<6x24xf64>, %g: tensor<24xf64>)
    -> (tensor<6x24xf64>, tensor<6x24xf64>) {{
  %y = norm.layer_norm %x scale(%g : tensor<24xf64>) axes [1] {EPS}
    : tensor<6x24xf64> -> tensor<6x24xf64>
  %z = norm.layer_norm %x axes [1] {EPS} : tensor<6x24xf64> -> tensor<6x24xf64>
  return %y, %z : tensor<6x24xf64>, tensor<6x24xf64>
}}
"""

SHARE = Rewrite(
    "C27", """Norms of one tensor share its statistics. In the statistics algebra ops that compute
    the same become one with all results; named norms are written in the algebra for it.""",
    "E", (SIMPLIFY,),
    {"same-facts": """the named norms agree in axes, statistic, epsilon, zero policy, correction and
     compute type; scale, shift and result type are their own""",
     "real": """fp-policy=real for named norms: in the algebra the factor is rounded to the compute
     type before it is applied, which the reference does not do""",
     "mean-pair": "no mean is subtracted from f64 data: it would lose the half of its pair",
     "no-residual": "the named norms are of x alone",
     "no-groups": "their channels are not split into groups",
     "no-running": "none updates running statistics: batch norms in training are never merged"},
    [Example("moments", moments(
        moments_op("%n, %m, %m2", ("count", "mean", "m2")),
        moments_op("%k, %k2", ("mean", "m2"))), new=("norm.moments",)),
     Example("moments with a result more", moments(
         moments_op("%m, %m2", ("mean", "m2")) + "\n  "
         + moments_op("%n", ("count",)),
         moments_op("%k, %k2", ("mean", "m2"))), new=(r"count\(.*mean\(.*m2\(",)),
     Example("parallel attention and MLP", parallel(f"{G} axes [1] {EPS}", f"{H} axes [1] {EPS}"),
             passes=(REAL,), gate="R", new=("norm.moments", "norm.normalize"),
             gone=("norm.rms_norm",)),
     Example("layer norms with a shift and statistics", parallel(
         f"{G} axes [1] {EPS}", f"shift(%h : {tensor(24)}) axes [1] {EPS}", op="layer_norm",
         kinds=((("mean", tensor(4)),), ())).replace("%y =", "%y, %m =").replace(
             "return %y,", "return %y, %m,"), passes=(REAL,), gate="R",
         data={0: 1000 + np.random.default_rng(0).standard_normal((4, 24)).astype(np.float32)}),
     Example("l2 norms and f64", two_norms(
         ("l2_norm", "axes [1] epsilon max_outside 1.0e-3"),
         ("l2_norm", "axes [1] epsilon max_outside 1.0e-3"), first_names="%y",
         second_names="%z", element="f64"), passes=(REAL,), gate="R")],
    [Refusal("same-facts", parallel(f"{G} axes [1] {EPS}", f"{H} axes [1] {EPS}".replace(
        "1.0e-5", "1.0e-6")), passes=(REAL,), switch=False, name="epsilon"),
     Refusal("same-facts", parallel(f"axes [1] {EPS}", f"axes [0] {EPS}"), passes=(REAL,),
             switch=False, name="axes"),
     Refusal("real", parallel(f"{G} axes [1] {EPS}", f"{H} axes [1] {EPS}")),
     Refusal("no-residual", parallel(
         f"residual(%r : {tensor(4, 24)}) axes [1] {EPS}",
         f"residual(%r : {tensor(4, 24)}) {G} axes [1] {EPS}",
         {"r": tensor(4, 24), "g": tensor(24)}), passes=(REAL,), switch=False),
     Refusal("no-groups", parallel(
         f"groups 3 channel_axis 1 axes [1] {EPS}",
         f"{G} groups 3 channel_axis 1 axes [1] {EPS}", op="group_norm"), passes=(REAL,),
         switch=False),
     Refusal("mean-pair", F64_NORMS, passes=(REAL,)),
     Refusal("no-running", two_norms(
         ("batch_norm_training", f"axes [0] {EPS}"),
         ("batch_norm_training",
          f"running(%g, %h : {tensor(24)}, {tensor(24)}) axes [0] {EPS} momentum 0.1"),
         arguments=GAINS, first_names="%y", second_names="%z, %n, %o",
         kinds=((), (("running_mean", tensor(24)), ("running_variance", tensor(24)))),
         returned=("y", "z", "n", "o")), passes=(REAL,), switch=False)])


# ---- C31 ---------------------------------------------------------------------

ROTATE = "--norm-simplify=fp-policy=real rotations=true"
ORTHOGONAL = np.linalg.qr(np.random.default_rng(3).standard_normal((8, 8)))[0]


def dense(matrix):
    return "dense<" + str(np.asarray(matrix, np.float32).tolist()) + ">"


def rotated(clauses, op="rms_norm", matrix=ORTHOGONAL, maps=None, arguments=None, kinds=(),
            returned=("y",), rows=6, size=8, accumulator="f32", constant=None, element="f32"):
    """The norm of a matmul by a constant."""
    x, y = tensor(rows, size), tensor(rows, size, element=element)
    t = tensor(rows, size, element=accumulator)
    names = ", ".join(f"%{name}" for name in returned)
    spelled = f" indexing_maps = {maps}" if maps else ""
    body = f"""  %q = arith.constant {constant or dense(matrix)} : {tensor(size, size)}
  %zero = arith.constant 0.0 : {accumulator}
  %e = tensor.empty() : {t}
  %f = linalg.fill ins(%zero : {accumulator}) outs(%e : {t}) -> {t}
  %t = linalg.matmul{spelled} ins(%x, %q : {x}, {tensor(size, size)}) outs(%f : {t}) -> {t}
  {names} = norm.{op} %t {clauses} : {t} -> {y}""" + "".join(
        f" {role}({kind})" for role, kind in kinds)
    names = [*returned]
    kinds_of = {"t": t}
    results = [y, *(kind for _, kind in kinds)]
    results += [kinds_of[name] for name in names[len(results):]]
    body = body.replace(", %t = norm", " = norm")
    return function({"x": x, **(arguments or {})}, results, body, *names)


TRANSPOSED_WEIGHT = ("[affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, "
                     "affine_map<(m, n, k) -> (m, n)>]")

ROTATION = Rewrite(
    "C31", """An RMS or L2 norm of x * Q is the norm of x, times Q, for a constant orthogonal Q.
    Only with the option `rotations`.""", "R", (ROTATE,),
    {"real": "fp-policy=real", "not-centred": "the op subtracts no mean: a rotation moves it",
     "single-use": "nothing else reads the product",
     "no-gain": "neither scale nor shift", "no-residual": "no residual",
     "one-type": "product and norm have one element type",
     "size": "the matrix has at most 1024 rows: the check takes their cube",
     "orthogonal": """Q * Q^T is the identity within two steps of the last place of 1 in its element
     type, computed in f64"""},
    [Example("a rotation", rotated(f"axes [1] {EPS}"), new=(r"norm.rms_norm %(x|arg0) ",)),
     Example("statistics", rotated(f"axes [1] {EPS}", kinds=(("rstd", tensor(6)),),
                                   returned=("y", "r"))),
     Example("a transposed weight", rotated(
         "axes [1] epsilon max_outside 1.0e-6", op="l2_norm", maps=TRANSPOSED_WEIGHT)),
     Example("a permutation", rotated(
         "axes [1] epsilon none", matrix=np.eye(8)[np.random.default_rng(1).permutation(8)]))],
    [Refusal("real", rotated(f"axes [1] {EPS}"), passes=("--norm-simplify=rotations=true",)),
     Refusal("not-centred", rotated(f"axes [1] {EPS} correction 1", op="layer_norm")),
     Refusal("single-use", rotated(f"axes [1] {EPS}", returned=("y", "t"))),
     Refusal("no-gain", rotated(f"scale(%g : {tensor(8)}) axes [1] {EPS}",
                                arguments={"g": tensor(8)}), switch=False),
     Refusal("no-residual", rotated(f"residual(%r : {tensor(6, 8)}) axes [1] {EPS}",
                                    arguments={"r": tensor(6, 8)}), switch=False),
     Refusal("one-type", rotated(f"axes [1] {EPS}", accumulator="f64", element="f64"),
             switch=False),
     Refusal("size", rotated(f"axes [1] {EPS}", size=1025, rows=2, constant="dense<0.0>"),
             switch=False),
     Refusal("orthogonal", rotated(f"axes [1] {EPS}", matrix=ORTHOGONAL * 1.000001)),
     Refusal("orthogonal", rotated(f"axes [1] {EPS}", matrix=np.diag([np.nan] + [1.0] * 7)
                                   ).replace("nan", "0x7FC00000"), name="NaN")])

# ---- C33 ---------------------------------------------------------------------

Q, K, SCORES = tensor(6, 4, 8), tensor(6, 5, 8), tensor(6, 4, 5)
SCORE_MAPS = ("[affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, "
              "affine_map<(b, m, n, k) -> (b, m, n)>]")
PAIRS = [0.5, 2.0, 1.5, 3.0] * 2


def vector(name, values):
    return f"  %{name} = arith.constant {dense(values)} : {tensor(len(values))}\n"


def scaled(name, result, kind, number="0.25", op="arith.mulf", pieces="%in, %c"):
    """%result = %name times a number, elementwise."""
    rank = kind.count("x")
    loops = ", ".join(f"d{i}" for i in range(rank))
    identity = f"affine_map<({loops}) -> ({loops})>"
    return f"""  %c{result} = arith.constant {number} : f32
  %e{result} = tensor.empty() : {kind}
  %{result} = linalg.generic {{indexing_maps = [{identity}, {identity}],
      iterator_types = [{', '.join(['"parallel"'] * rank)}]}}
      ins(%{name} : {kind}) outs(%e{result} : {kind}) {{
  ^bb0(%in: f32, %out: f32):
    %p = {op} {pieces.replace('%c', '%c' + result)} : f32
    linalg.yield %p : f32
  }} -> {kind}
"""


def named(op, result, kind, *operands):
    inputs = ", ".join(f"%{name}" for name in operands)
    kinds = ", ".join([kind] * len(operands))
    return (f"  %e{result} = tensor.empty() : {kind}\n"
            f"  %{result} = linalg.{op} ins({inputs} : {kinds}) outs(%e{result} : {kind})"
            f" -> {kind}\n")


def rotary(name, result, kind):
    """%result = the half-split rotary embedding of %name."""
    shape = [int(size) for size in kind.removeprefix("tensor<").split("x")[:-1]]
    half = tensor(*shape[:-1], shape[-1] // 2)
    sizes = [*shape[:-1], shape[-1] // 2]
    zeros, ones = [0] * len(shape), [1] * len(shape)
    middle = [*zeros[:-1], shape[-1] // 2]
    r = result
    return (f"  %{r}l = tensor.extract_slice %{name}{zeros} {sizes} {ones} : {kind} to {half}\n"
            f"  %{r}h = tensor.extract_slice %{name}{middle} {sizes} {ones} : {kind} to {half}\n"
            + named("negf", f"{r}n", half, f"{r}h")
            + f"  %{r}t = tensor.concat dim({len(shape) - 1}) %{r}n, %{r}l : ({half}, {half}) "
            f"-> {kind}\n"
            + named("mul", f"{r}a", kind, name, f"cos{r}")
            + named("mul", f"{r}b", kind, f"{r}t", f"sin{r}")
            + named("add", r, kind, f"{r}a", f"{r}b"))


def attention(query, key, op="rms_norm", between=("", ""), of=("q", "k"), after="", result="s",
              gains="", arguments=None, extra=(), key_op=None, accumulate=None):
    """Scores of normalized queries and keys. query, key: clauses; of: what is multiplied."""
    body = f"""{gains}  %q = norm.{op} %x {query} : {Q} -> {Q}
  %k = norm.{key_op or op} %z {key} : {K} -> {K}
{between[0]}{between[1]}  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {SCORES}
  %f = linalg.fill ins(%zero : f32) outs(%e : {SCORES}) -> {SCORES}
  %s = linalg.batch_matmul indexing_maps = {SCORE_MAPS} ins(%{of[0]}, %{of[1]} : {Q}, {K})
    outs(%{accumulate or 'f'} : {SCORES}) -> {SCORES}
{after}"""
    more = dict(extra)
    return function({"x": Q, "z": K, **(arguments or {})}, [SCORES, *more.values()],
                    body.rstrip("\n"), result, *more)


QG, KG = f"scale(%g : {tensor(8)}) axes [2] {EPS}", f"scale(%h : {tensor(8)}) axes [2] {EPS}"
GAIN_LIST = [1.0, 0.5, 2.0, -1.5, 3.0, 0.25, 1.25, 1.0]
BOTH = vector("g", GAIN_LIST) + vector("h", GAIN_LIST[::-1])
TABLES = {"cosu": Q, "sinu": Q, "cosv": K, "sinv": K}
ROTATED = (rotary("q", "u", Q), rotary("k", "v", K))
TRANSPOSED_KEY = f"""  %et = tensor.empty() : {tensor(6, 8, 5)}
  %t = linalg.transpose ins(%k : {K}) outs(%et : {tensor(6, 8, 5)}) permutation = [0, 2, 1]
"""


def with_transposed_key():
    text = attention(QG, KG, gains=BOTH, between=("", TRANSPOSED_KEY), of=("q", "t"))
    return text.replace(f"(%q, %t : {Q}, {K})", f"(%q, %t : {Q}, {tensor(6, 8, 5)})").replace(
        " indexing_maps = " + SCORE_MAPS, "")


ATTENTION = Rewrite(
    "C33", """The scores of normalized queries and keys: the gain of the keys takes in that of the
    queries and every constant factor of queries, keys and scores.""", "R", (REAL,),
    {"nothing-between": """between norm and product elements only move, or are multiplied by
     constants, or a rotary embedding rotates them""",
     "real": "fp-policy=real",
     "only-use": "only the product reads what is normalized",
     "no-shift": "neither norm has a shift",
     "gain-axes": "the gains index exactly the axis that the product sums over",
     "rotary": """with a rotary embedding between: the norm of the queries commutes with it (C34),
     that is, it subtracts no mean, and its gain is the same in both elements of each rotated pair
     """,
     "constant-gains": "the gains are constants",
     "gain-range": "the merged gain fits its type"},
    [Example("two gains and the root of d", attention(
        QG, KG, gains=BOTH, after=scaled("s", "o", SCORES), result="o"),
        gone=("arith.mulf %in, ",)),
     Example("a key without a gain", attention(QG, f"axes [2] {EPS}", gains=BOTH)),
     Example("a temperature alone", attention(
         f"axes [2] {EPS}", KG, gains=BOTH, after=scaled("s", "o", SCORES, op="arith.divf"),
         result="o")),
     Example("scaled queries", attention(
         f"{QG} scale_offset 1.0", f"{KG} scale_offset 1.0", gains=BOTH,
         between=(scaled("q", "u", Q), ""), of=("u", "k"))),
     Example("transposed keys", with_transposed_key()),
     Example("layer norms", attention(QG, KG, op="layer_norm", gains=BOTH)),
     Example("scores that are added to others", attention(
         QG, KG, gains=BOTH, arguments={"a": SCORES}, accumulate="a",
         after=scaled("s", "o", SCORES), result="o"), new=("arith.mulf",)),
     Example("a rotary embedding", attention(
         QG, KG, gains=vector("g", PAIRS) + vector("h", GAIN_LIST), arguments=TABLES,
         between=ROTATED, of=("u", "v"), after=scaled("s", "o", SCORES), result="o"))],
    [Refusal("nothing-between", attention(
        QG, KG, gains=BOTH, between=(named("exp", "u", Q, "q"), ""), of=("u", "k")),
        switch=False),
     Refusal("real", attention(QG, KG, gains=BOTH), passes=(SIMPLIFY,)),
     Refusal("only-use", attention(QG, KG, gains=BOTH, extra={"k": K})),
     Refusal("only-use", attention(QG, KG, gains=BOTH, extra={"q": Q}), name="queries"),
     Refusal("no-shift", attention(
         QG.replace("axes", f"shift(%h : {tensor(8)}) axes"), KG, gains=BOTH, op="layer_norm")),
     Refusal("gain-axes", attention(
         f"scale(%g : {tensor(6, 8)}) axes [2] {EPS} affine_axes [0, 2]", KG,
         gains=BOTH.replace("%g =", "%u ="), arguments={"g": tensor(6, 8)}), switch=False),
     Refusal("rotary", attention(
         QG, KG, gains=BOTH, arguments=TABLES, between=ROTATED, of=("u", "v"))),
     Refusal("rotary", attention(
         QG, KG, op="layer_norm", gains=vector("g", PAIRS) + vector("h", GAIN_LIST),
         arguments=TABLES, between=ROTATED, of=("u", "v")), name="layer norm"),
     Refusal("constant-gains", attention(QG, KG, arguments={"g": tensor(8), "h": tensor(8)}),
             switch=False),
     Refusal("gain-range", attention(
         QG, KG, gains=vector("g", [1.0e30] * 8) + vector("h", [1.0e30] * 8)), switch=False)],
    """C34: a rotary embedding and a norm commute where the norm subtracts no mean, reduces the
    rotated axis, and has a gain that is the same in both elements of every rotated pair (i and
    i + d/2, or 2i and 2i + 1). It is a condition here, `commutesWithRotaryEmbedding` in C++, not a
    rewrite of its own. Embeddings with split halves are recognized.""")

REWRITES = [SHARE, ROTATION, ATTENTION]
