"""Rewrites of `norm-simplify`: slices go before the norm, concatenations behind it."""

import numpy as np
from rewrites import SIMPLIFY, Example, Refusal, Rewrite
from table_reshape import EPS, function, tensor


def norm(op, clauses, shape, kinds=(), returned=("y",), element="f32", of="x"):
    names = ", ".join(f"%{name}" for name in returned)
    return (f"  {names} = norm.{op} %{of} {clauses}\n"
            f"      : {tensor(*shape)} -> {tensor(*shape, element=element)}"
            + "".join(f" {role}({kind})" for role, kind in kinds) + "\n")


# ---- C24 ---------------------------------------------------------------------


def extract(source, offsets, sizes, strides, kept=None, element="f32"):
    """%s = a slice of %y; kept: the dimensions of the result, all by default."""
    shape = [sizes[dim] for dim in (range(len(sizes)) if kept is None else kept)]
    kind = tensor(*shape, element=element)
    return kind, (f"  %s = tensor.extract_slice %y{list(offsets)} {list(sizes)} "
                  f"{list(strides)} : {tensor(*source, element=element)} to {kind}\n")


def sliced(op, clauses, source, part, arguments=None, kinds=(), returned=("y",), extra=(),
           element="f32"):
    """A slice of a norm. extra: what else is returned, {name: type}."""
    kind, line = extract(source, *part, element=element)
    body = norm(op, clauses, source, kinds, returned, element) + line
    more = dict(extra)
    return function({"x": tensor(*source), **(arguments or {})}, [kind, *more.values()],
                    body.rstrip("\n"), "s", *more)


LAST_TOKEN = ([0, 5, 0], [4, 1, 24], [1, 1, 1], (0, 2))
IN_A_LOOP = f"""func.func @main(%x: tensor<4x24xf32>, %i: tensor<1x24xf32>) -> tensor<1x24xf32> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %y = norm.layer_norm %x axes [1] {EPS} : tensor<4x24xf32> -> tensor<4x24xf32>
  %z = scf.for %k = %c0 to %c4 step %c1 iter_args(%a = %i) -> tensor<1x24xf32> {{
    %s = tensor.extract_slice %y[%k, 0] [1, 24] [1, 1] : tensor<4x24xf32> to tensor<1x24xf32>
    %m = linalg.max ins(%a, %s : tensor<1x24xf32>, tensor<1x24xf32>)
      outs(%i : tensor<1x24xf32>) -> tensor<1x24xf32>
    scf.yield %m : tensor<1x24xf32>
  }}
  return %z : tensor<1x24xf32>
}}
"""
DYNAMIC_SLICE = f"""func.func @main(%x: tensor<?x?x24xf32>, %k: index) -> tensor<?x1x24xf32> {{
  %c0 = arith.constant 0 : index
  %y = norm.layer_norm %x axes [2] {EPS} : tensor<?x?x24xf32> -> tensor<?x?x24xf32>
  %d = tensor.dim %y, %c0 : tensor<?x?x24xf32>
  %s = tensor.extract_slice %y[0, %k, 0] [%d, 1, 24] [1, 1, 1]
    : tensor<?x?x24xf32> to tensor<?x1x24xf32>
  return %s : tensor<?x1x24xf32>
}}
"""

SLICE = Rewrite(
    "C24", """A slice of a norm is the norm of the slice, where whole rows are sliced away: the last
    token of a sequence, say. What is indexed by a sliced axis is sliced too.""",
    "E", (SIMPLIFY,),
    {"kept-axes": """no axis is sliced along which elements influence each other: the reduced axes;
     none where the statistics are given""",
     "only-use": "the slice is the only use of the norm's result",
     "unused-results": "nothing uses another result",
     "same-block": "the slice is in the block of the norm, not in a loop"},
    [Example("the last token", sliced(
        "rms_norm", f"scale(%g : {tensor(24)}) axes [2] {EPS}", (4, 6, 24), LAST_TOKEN,
        {"g": tensor(24)}), new=("tensor<4x1x24xf32> -> tensor<4x1x24xf32>",)),
     Example("a gain along a sliced axis", sliced(
         "layer_norm", f"scale(%g : {tensor(6, 24)}) shift(%b : {tensor(6, 24)}) axes [2] {EPS} "
         "affine_axes [1, 2]", (4, 6, 24), ([1, 2, 0], [2, 2, 24], [1, 2, 1]),
         {"g": tensor(6, 24), "b": tensor(6, 24)}), new=("tensor<2x24xf32>",)),
     Example("residual", sliced(
         "layer_norm", f"residual(%r : {tensor(4, 6, 24)}) axes [2] {EPS}", (4, 6, 24),
         LAST_TOKEN, {"r": tensor(4, 6, 24)}, kinds=(("sum", tensor(4, 6, 24)),),
         returned=("y", "z")), new=("residual",)),
     Example("lanes", sliced(
         "layer_norm", f"axes [1] {EPS}", (4, 24, 10), ([0, 0, 3], [4, 24, 1], [1, 1, 1], (0, 1)))),
     Example("channels of a batch norm", sliced(
         "batch_norm_training",
         f"scale(%g : {tensor(6)}) running(%p, %q : {tensor(6)}, {tensor(6)}) axes [0, 2] {EPS} "
         "momentum 0.1", (4, 6, 8), ([0, 2, 0], [4, 3, 8], [1, 1, 1]),
         {"g": tensor(6), "p": tensor(6), "q": tensor(6)},
         kinds=(("running_mean", tensor(6)), ("running_variance", tensor(6))),
         returned=("y", "n", "o"))),
     Example("given statistics", sliced(
         "batch_norm_inference", f"mean(%m : {tensor(6)}) variance(%v : {tensor(6)}) "
         f"axes [0, 2] {EPS}", (4, 6, 8), ([1, 2, 4], [2, 3, 4], [1, 1, 1]),
         {"m": tensor(6), "v": tensor(6)}),
         data={2: 0.5 + np.arange(6, dtype=np.float32)}),
     Example("a sample of a group norm", sliced(
         "group_norm", f"scale(%g : {tensor(6)}) groups 3 channel_axis 1 axes [1, 2] {EPS}",
         (4, 6, 8), ([2, 0, 0], [1, 6, 8], [1, 1, 1], (1, 2)), {"g": tensor(6)})),
     Example("half precision", sliced(
         "rms_norm", f"scale(%g : {tensor(24)}) axes [2] {EPS}", (4, 6, 24), LAST_TOKEN,
         {"g": tensor(24)}, element="f16")),
     Example("dynamic extents", DYNAMIC_SLICE, runs=False,
             new=(r"tensor<\?x1x24xf32> -> tensor<\?x1x24xf32>",))],
    [Refusal("kept-axes", sliced(
        "layer_norm", f"axes [2] {EPS}", (4, 6, 24), ([0, 0, 0], [4, 6, 12], [1, 1, 1]))),
     Refusal("kept-axes", sliced(
         "group_norm", f"groups 3 channel_axis 1 axes [1, 2] {EPS}", (4, 6, 8),
         ([0, 2, 0], [4, 3, 8], [1, 1, 1])), name="channels of a group norm"),
     Refusal("only-use", sliced("layer_norm", f"axes [2] {EPS}", (4, 6, 24), LAST_TOKEN,
                                extra={"y": tensor(4, 6, 24)}), switch=False),
     Refusal("unused-results", sliced(
         "layer_norm", f"axes [2] {EPS}", (4, 6, 24), LAST_TOKEN,
         kinds=(("mean", tensor(4, 6)),), returned=("y", "m"), extra={"m": tensor(4, 6)}),
         switch=False),
     Refusal("same-block", IN_A_LOOP)])


# ---- C25 ---------------------------------------------------------------------


def joined(op, clauses, shapes, dim, arguments=None, kinds=(), returned=("y",), more="",
           extra=(), element="f32"):
    """The norm of a concatenation of tensors of these shapes."""
    whole = list(shapes[0])
    whole[dim] = sum(shape[dim] for shape in shapes)
    names = [f"x{number}" for number in range(len(shapes))]
    parts = ", ".join(f"%{name}" for name in names)
    types = ", ".join(tensor(*shape) for shape in shapes)
    body = (f"  %x = tensor.concat dim({dim}) {parts} : ({types}) -> {tensor(*whole)}\n{more}"
            + norm(op, clauses, whole, kinds, returned, element))
    operands = dict(zip(names, map(lambda shape: tensor(*shape), shapes), strict=True))
    results = [tensor(*whole, element=element), *(kind for _, kind in kinds)]
    extra = dict(extra)
    return function({**operands, **(arguments or {})}, [*results, *extra.values()],
                    body.rstrip("\n"), *returned, *extra)


CONCAT = Rewrite(
    "C25", """The norm of a concatenation along a kept axis is the concatenation of norms: each part
    is normalized into its place, and no tensor of all parts is made before.""",
    "E", (SIMPLIFY,),
    {"kept-axis": """elements do not influence each other along the concatenated axis: it is not
     reduced, or the statistics are given""",
     "single-use": "nothing else uses the concatenated tensor"},
    [Example("past and present", joined(
        "rms_norm", f"scale(%g : {tensor(24)}) axes [2] {EPS}", [(4, 6, 24), (4, 1, 24)], 1,
        {"g": tensor(24)}), new=("tensor<4x6x24xf32> -> tensor<4x6x24xf32>", "tensor.concat")),
     Example("statistics", joined(
         "layer_norm", f"axes [0, 3] {EPS}", [(3, 4, 2, 8), (3, 4, 5, 8), (3, 4, 1, 8)], 2,
         kinds=(("mean", tensor(4, 8)), ("rstd", tensor(4, 8))), returned=("y", "m", "r"))),
     Example("parameters along the axis", joined(
         "layer_norm", f"scale(%g : {tensor(7, 24)}) shift(%b : {tensor(7, 24)}) axes [2] {EPS} "
         "affine_axes [1, 2]", [(4, 5, 24), (4, 2, 24)], 1,
         {"g": tensor(7, 24), "b": tensor(7, 24)})),
     Example("residual and sum", joined(
         "layer_norm", f"residual(%r : {tensor(7, 24)}) axes [1] {EPS}", [(5, 24), (2, 24)], 0,
         {"r": tensor(7, 24)}, kinds=(("sum", tensor(7, 24)),), returned=("y", "s"))),
     Example("channels of a batch norm", joined(
         "batch_norm_training",
         f"scale(%g : {tensor(6)}) running(%p, %q : {tensor(6)}, {tensor(6)}) axes [0, 2] {EPS} "
         "momentum 0.1", [(4, 4, 8), (4, 2, 8)], 1,
         {"g": tensor(6), "p": tensor(6), "q": tensor(6)},
         kinds=(("variance", tensor(6)), ("running_mean", tensor(6)),
                ("running_variance", tensor(6))), returned=("y", "v", "n", "o"))),
     Example("samples of a batch norm with given statistics", joined(
         "batch_norm_inference", f"mean(%m : {tensor(6)}) variance(%v : {tensor(6)}) "
         f"axes [0, 2] {EPS}", [(3, 6, 8), (1, 6, 8)], 0, {"m": tensor(6), "v": tensor(6)}),
         data={3: 0.5 + np.arange(6, dtype=np.float32)}),
     Example("samples of a group norm", joined(
         "group_norm", f"scale(%g : {tensor(6)}) groups 3 channel_axis 1 axes [1, 2] {EPS}",
         [(3, 6, 8), (1, 6, 8)], 0, {"g": tensor(6)}, kinds=(("mean", tensor(4, 3)),),
         returned=("y", "m"))),
     Example("lanes", joined("layer_norm", f"axes [1] {EPS}", [(4, 24, 6), (4, 24, 9)], 2))],
    [Refusal("kept-axis", joined("layer_norm", f"axes [2] {EPS}",
                                 [(4, 6, 24), (4, 6, 8)], 2)),
     Refusal("kept-axis", joined(
         "group_norm", f"groups 3 channel_axis 1 axes [1, 2] {EPS}",
         [(4, 3, 8), (4, 6, 8)], 1), name="channels of a group norm"),
     Refusal("single-use", joined("layer_norm", f"axes [2] {EPS}", [(4, 6, 24), (4, 1, 24)], 1,
                                  extra={"x": tensor(4, 7, 24)}))])

REWRITES = [SLICE, CONCAT]
