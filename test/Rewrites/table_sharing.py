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


SHARE = Rewrite(
    "C27", """Norms of one tensor share its statistics. In the statistics algebra ops that compute
    the same become one with all results; named norms are written in the algebra for it.""",
    "E", (SIMPLIFY,),
    {"same-facts": """the named norms agree in axes, statistic, epsilon, zero policy, correction and
     compute type; scale, shift and result type are their own""",
     "real": """fp-policy=real for named norms: in the algebra the factor is rounded to the compute
     type before it is applied, which the reference does not do""",
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
     Refusal("not-centred", rotated(f"axes [1] {EPS}", op="layer_norm")),
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
     Refusal("orthogonal", rotated(f"axes [1] {EPS}", matrix=np.full((8, 8), np.nan)
                                   ).replace("nan", "0x7FC00000"), name="NaN")])

REWRITES = [SHARE, ROTATION]
