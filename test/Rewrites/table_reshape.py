"""Rewrites of `norm-simplify`: transposes, reshapes and broadcasts go behind the norm."""

import numpy as np
from rewrites import REAL, SIMPLIFY, Example, Refusal, Rewrite

EPS = "epsilon inside_sqrt 1.0e-5"


def function(arguments, results, body, *returned):
    """A function of named arguments; the last lines return `returned`."""
    listed = ", ".join(f"%{name}: {kind}" for name, kind in arguments.items())
    values = ", ".join(f"%{value}" for value in returned)
    kinds = ", ".join(results)
    head = kinds if len(results) == 1 else f"({kinds})"
    return (f"func.func @main({listed}) -> {head} {{\n{body}\n"
            f"  return {values} : {kinds}\n}}\n")


def tensor(*shape, element="f32"):
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


# ---- C21 ---------------------------------------------------------------------


def transposed(source, permutation, element="f32", name="x", result="t"):
    """%result = the transpose of %name."""
    shape = [source[dim] for dim in permutation]
    before, after = tensor(*source, element=element), tensor(*shape, element=element)
    return shape, (f"  %{result}e = tensor.empty() : {after}\n"
                   f"  %{result} = linalg.transpose ins(%{name} : {before}) "
                   f"outs(%{result}e : {after}) permutation = {list(permutation)}\n")


def permuting_generic(source, permutation, name="x", result="t"):
    shape = [source[dim] for dim in permutation]
    before, after = tensor(*source), tensor(*shape)
    dims = [f"d{i}" for i in range(len(shape))]
    inputs = [f"d{permutation.index(i)}" for i in range(len(shape))]
    return shape, f"""  %{result}e = tensor.empty() : {after}
  %{result} = linalg.generic {{
      indexing_maps = [affine_map<({', '.join(dims)}) -> ({', '.join(inputs)})>,
                       affine_map<({', '.join(dims)}) -> ({', '.join(dims)})>],
      iterator_types = [{', '.join(['"parallel"'] * len(shape))}]}}
      ins(%{name} : {before}) outs(%{result}e : {after}) {{
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }} -> {after}
"""


def of_transposed(source, permutation, op, clauses, arguments=None, more="", kinds=(),
                  returned=("y",), make=transposed, element="f32"):
    shape, lines = make(source, permutation)
    x, y = tensor(*shape), tensor(*shape, element=element)
    names = ", ".join(f"%{name}" for name in returned)
    body = (f"{lines}{more}  {names} = norm.{op} %t {clauses}\n      : {x} -> {y}"
            + "".join(f" {role}({kind})" for role, kind in kinds))
    results = [y, *(kind for _, kind in kinds)]
    return function({"x": tensor(*source), **(arguments or {})}, results, body, *returned)


def residual_of_transposed(other, source=(4, 8, 8)):
    """Both sides of a residual sum are transposed, the residual by `other`."""
    shape, lines = transposed(source, (0, 2, 1))
    _, more = transposed(source, other, name="r", result="u")
    return function(
        {"x": tensor(*source), "r": tensor(*source), "g": tensor(8)},
        [tensor(*shape)] * 2,
        f"{lines}{more}  %y, %s = norm.rms_norm %t residual(%u : {tensor(*shape)})"
        f" scale(%g : {tensor(8)}) axes [1] {EPS} affine_axes [1]\n"
        f"      : {tensor(*shape)} -> {tensor(*shape)} sum({tensor(*shape)})", "y", "s")


TRANSPOSE = Rewrite(
    "C21", """The norm of a transposed tensor is the transpose of its norm. Axes, affine axes and
    statistics go along; parameters that would be out of order are transposed instead.""",
    "E", (SIMPLIFY,),
    {"real": """fp-policy=real, unless the reduced axes keep their order and the innermost axis is
     reduced before and after, or kept before and after: it decides whether the CPU sums along
     vectors or one row a lane""",
     "residual": "x and residual are transposed alike",
     "single-use": "nothing else uses the transposed tensors"},
    [Example("kept axes", of_transposed(
        (4, 6, 24), (1, 0, 2), "layer_norm",
        f"scale(%g : {tensor(24)}) shift(%b : {tensor(24)}) axes [2] {EPS}",
        {"g": tensor(24), "b": tensor(24)}), new=(r"layer_norm %arg0|layer_norm %x",)),
     Example("statistics", of_transposed(
         (4, 6, 3, 24), (2, 0, 1, 3), "layer_norm", f"axes [3] {EPS}",
         kinds=(("mean", tensor(3, 4, 6)), ("rstd", tensor(3, 4, 6))),
         returned=("y", "m", "r"))),
     Example("a generic that permutes", of_transposed(
         (6, 4, 24), (1, 0, 2), "rms_norm", f"axes [2] {EPS}", make=permuting_generic)),
     Example("lanes", of_transposed(
         (4, 24, 6, 8), (0, 1, 3, 2), "layer_norm",
         "axes [1] epsilon outside_sqrt 1.0e-5 correction 1",
         kinds=(("variance", tensor(4, 8, 6)),), returned=("y", "v"))),
     Example("a gain whose dimensions change places", of_transposed(
         (4, 6, 24), (1, 0, 2), "rms_norm",
         f"scale(%g : {tensor(6, 4, 24)}) axes [2] {EPS} affine_axes [0, 1, 2] scale_offset 1.0",
         {"g": tensor(6, 4, 24)}), new=("affine_axes", r"permutation = \[1, 0, 2\]")),
     Example("residual and sum", residual_of_transposed((0, 2, 1)), passes=(REAL,), gate="R"),
     Example("group norm", of_transposed(
         (2, 6, 3, 8), (0, 2, 1, 3), "group_norm",
         f"scale(%g : {tensor(6)}) groups 3 channel_axis 2 axes [1, 2, 3] {EPS}",
         {"g": tensor(6)}, kinds=(("mean", tensor(2, 3)),), returned=("y", "m")),
         passes=(REAL,), gate="R", new=("channel_axis 1",)),
     Example("NHWC to NCHW", of_transposed(
         (2, 4, 5, 8), (0, 3, 1, 2), "instance_norm",
         f"scale(%g : {tensor(8)}) axes [2, 3] {EPS} affine_axes [1]", {"g": tensor(8)}),
         passes=(REAL,), gate="R"),
     Example("running statistics", of_transposed(
         (4, 6, 3, 8), (0, 2, 1, 3), "batch_norm_training",
         f"running(%p, %q : {tensor(3, 6)}, {tensor(3, 6)}) axes [0, 3] {EPS} momentum 0.1",
         {"p": tensor(3, 6), "q": tensor(3, 6)},
         kinds=(("rstd", tensor(3, 6)), ("running_mean", tensor(3, 6)),
                ("running_variance", tensor(3, 6))), returned=("y", "r", "n", "o"))),
     Example("given statistics", of_transposed(
         (4, 5, 6, 3), (2, 3, 0, 1), "batch_norm_inference",
         f"mean(%m : {tensor(3, 5)}) variance(%v : {tensor(3, 5)}) axes [0, 2] {EPS}",
         {"m": tensor(3, 5), "v": tensor(3, 5)}),
         data={2: 0.5 + np.arange(15, dtype=np.float32).reshape(3, 5)}),
     Example("half precision", of_transposed(
         (4, 6, 24), (1, 0, 2), "rms_norm", f"scale(%g : {tensor(24)}) axes [2] {EPS}",
         {"g": tensor(24)}, element="bf16"))],
    [Refusal("real", of_transposed((4, 6, 24), (0, 2, 1), "layer_norm", f"axes [1] {EPS}"),
             name="another innermost axis"),
     Refusal("real", of_transposed((4, 6, 24), (0, 2, 1), "layer_norm", f"axes [1, 2] {EPS}"),
             name="another order"),
     Refusal("residual", residual_of_transposed((2, 0, 1), (8, 8, 8)), passes=(REAL,),
             switch=False),
     Refusal("single-use", function(
         {"x": tensor(4, 6, 24)}, [tensor(6, 4, 24)] * 2,
         transposed((4, 6, 24), (1, 0, 2))[1]
         + f"  %y = norm.rms_norm %t axes [2] {EPS} : {tensor(6, 4, 24)} -> {tensor(6, 4, 24)}",
         "y", "t"))])


# ---- C22 ---------------------------------------------------------------------


def reshape(before, after, groups, name="x", result="t", element="f32"):
    """%result = tensor.expand_shape or collapse_shape of %name."""
    one, other = tensor(*before, element=element), tensor(*after, element=element)
    if len(after) > len(before):
        return (f"  %{result} = tensor.expand_shape %{name} {groups} output_shape "
                f"{list(after)} : {one} into {other}\n")
    return f"  %{result} = tensor.collapse_shape %{name} {groups} : {one} into {other}\n"


def of_reshaped(before, after, groups, op, clauses, arguments=None, kinds=(), returned=("y",),
                more="", element="f32"):
    x = tensor(*after, element=element)
    names = ", ".join(f"%{name}" for name in returned)
    body = (f"{reshape(before, after, groups, element=element)}{more}"
            f"  {names} = norm.{op} %t {clauses}\n      : {x} -> {x}"
            + "".join(f" {role}({kind})" for role, kind in kinds))
    return function({"x": tensor(*before, element=element), **(arguments or {})},
                    [x, *(kind for _, kind in kinds)], body, *returned)


def residual_of_reshaped(more, residual):
    return of_reshaped(
        (4, 6, 24), (24, 24), "[[0, 1], [2]]", "rms_norm",
        f"residual(%u : {tensor(24, 24)}) axes [1] {EPS}", {"r": tensor(*residual)},
        kinds=(("sum", tensor(24, 24)),), returned=("y", "s"), more=more)


RESHAPE = Rewrite(
    "C22", """The norm of a collapsed or expanded tensor is the reshape of its norm. Scale, shift
    and statistics are reshaped with it.""", "E", (SIMPLIFY,),
    {"reduced-axes": "every group of reshaped dimensions is reduced wholly or kept wholly",
     "real": """fp-policy=real where a reduced group has more than its innermost dimension: its
     elements keep their order, but the CPU sums each innermost axis on its own""",
     "affine-axes": "scale and shift index every group wholly or not at all",
     "channel-axis": "the channel axis of a group norm keeps its extent",
     "residual": "x and residual are reshaped alike"},
    [Example("tokens of all batches", of_reshaped(
        (4, 6, 24), (24, 24), "[[0, 1], [2]]", "layer_norm",
        f"scale(%g : {tensor(24)}) axes [1] {EPS}", {"g": tensor(24)},
        kinds=(("mean", tensor(24)), ("rstd", tensor(24))), returned=("y", "m", "r")),
        new=(r"norm.layer_norm %\w+ scale", r"axes \[2\]", "tensor<24xf32>")),
     Example("heads", of_reshaped(
         (4, 6, 24), (2, 2, 6, 24), "[[0, 1], [2], [3]]", "rms_norm",
         f"scale(%g : {tensor(6, 24)}) axes [3] {EPS} affine_axes [2, 3]",
         {"g": tensor(6, 24)}, kinds=(("rstd", tensor(2, 2, 6)),), returned=("y", "r"))),
     Example("an affine group", of_reshaped(
         (4, 24, 8), (4, 4, 6, 8), "[[0], [1, 2], [3]]", "instance_norm",
         f"scale(%g : {tensor(4, 6)}) shift(%b : {tensor(4, 6)}) axes [3] {EPS} "
         "affine_axes [1, 2]", {"g": tensor(4, 6), "b": tensor(4, 6)}),
         new=(r"affine_axes \[1\]",)),
     Example("a reduced group of one dimension", of_reshaped(
         (4, 1, 24), (4, 24), "[[0], [1, 2]]", "layer_norm",
         f"scale(%g : {tensor(24)}) axes [1] {EPS}", {"g": tensor(24)})),
     Example("all of a row", of_reshaped(
         (4, 6, 24), (4, 144), "[[0], [1, 2]]", "layer_norm",
         f"scale(%g : {tensor(144)}) axes [1] {EPS}", {"g": tensor(144)}),
         passes=(REAL,), gate="R", new=(r"axes \[1, 2\]",)),
     Example("the pixels of an image", of_reshaped(
         (2, 6, 20), (2, 6, 4, 5), "[[0], [1], [2, 3]]", "group_norm",
         f"scale(%g : {tensor(6)}) groups 2 channel_axis 1 axes [1, 2, 3] {EPS}",
         {"g": tensor(6)}, kinds=(("rstd", tensor(2, 2)),), returned=("y", "r")),
         passes=(REAL,), gate="R"),
     Example("images of a group norm", of_reshaped(
         (6, 6, 8), (2, 3, 6, 8), "[[0, 1], [2], [3]]", "group_norm",
         f"groups 2 channel_axis 2 axes [2, 3] {EPS}", {},
         kinds=(("mean", tensor(2, 3, 2)),), returned=("y", "m"))),
     Example("running statistics", of_reshaped(
         (4, 6, 4, 8), (4, 24, 8), "[[0], [1, 2], [3]]", "batch_norm_training",
         f"running(%p, %q : {tensor(24)}, {tensor(24)}) axes [0, 2] {EPS} momentum 0.1",
         {"p": tensor(24), "q": tensor(24)},
         kinds=(("running_mean", tensor(24)), ("running_variance", tensor(24))),
         returned=("y", "n", "o"))),
     Example("given statistics", of_reshaped(
         (4, 20, 6), (4, 4, 5, 6), "[[0], [1, 2], [3]]", "batch_norm_inference",
         f"mean(%m : {tensor(6)}) variance(%v : {tensor(6)}) axes [0, 1, 2] {EPS}",
         {"m": tensor(6), "v": tensor(6)}, element="f32"),
         data={2: 0.5 + np.arange(6, dtype=np.float32)}),
     Example("residual and sum", residual_of_reshaped(
         reshape((4, 6, 24), (24, 24), "[[0, 1], [2]]", name="r", result="u"), (4, 6, 24)))],
    [Refusal("reduced-axes", of_reshaped(
        (4, 144), (4, 6, 24), "[[0], [1, 2]]", "rms_norm", f"axes [2] {EPS}"), switch=False),
     Refusal("real", of_reshaped(
         (4, 6, 24), (4, 144), "[[0], [1, 2]]", "layer_norm", f"axes [1] {EPS}")),
     Refusal("affine-axes", of_reshaped(
         (24, 24), (4, 6, 24), "[[0, 1], [2]]", "rms_norm",
         f"scale(%g : {tensor(6, 24)}) axes [2] {EPS} affine_axes [1, 2]",
         {"g": tensor(6, 24)}), switch=False),
     Refusal("channel-axis", of_reshaped(
         (2, 2, 3, 8), (2, 6, 8), "[[0], [1, 2], [3]]", "group_norm",
         f"groups 2 channel_axis 1 axes [1, 2] {EPS}"), passes=(REAL,), switch=False),
     Refusal("residual", residual_of_reshaped(
         reshape((6, 4, 24), (24, 24), "[[0, 1], [2]]", name="r", result="u"), (6, 4, 24)),
         switch=False)])


# ---- C23 ---------------------------------------------------------------------


def broadcast(before, after, dimensions, name="x", result="t"):
    return (f"  %{result}e = tensor.empty() : {tensor(*after)}\n"
            f"  %{result} = linalg.broadcast ins(%{name} : {tensor(*before)}) "
            f"outs(%{result}e : {tensor(*after)}) dimensions = {list(dimensions)}\n")


def stretching_generic(before, after, dims, name="x", result="t"):
    """dims: for each dimension of the source, "d1" or "0"."""
    loops = ", ".join(f"d{i}" for i in range(len(after)))
    return f"""  %{result}e = tensor.empty() : {tensor(*after)}
  %{result} = linalg.generic {{
      indexing_maps = [affine_map<({loops}) -> ({', '.join(dims)})>,
                       affine_map<({loops}) -> ({loops})>],
      iterator_types = [{', '.join(['"parallel"'] * len(after))}]}}
      ins(%{name} : {tensor(*before)}) outs(%{result}e : {tensor(*after)}) {{
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }} -> {tensor(*after)}
"""


def of_broadcast(before, after, dimensions, op, clauses, arguments=None, kinds=(),
                 returned=("y",), more="", lines="", element="f32"):
    names = ", ".join(f"%{name}" for name in returned)
    y = tensor(*after, element=element)
    body = ((lines or broadcast(before, after, dimensions)) + more
            + f"  {names} = norm.{op} %t {clauses}\n      : {tensor(*after)} -> {y}"
            + "".join(f" {role}({kind})" for role, kind in kinds))
    return function({"x": tensor(*before), **(arguments or {})},
                    [y, *(kind for _, kind in kinds)], body, *returned)


def residual_of_broadcast(more, residual):
    return of_broadcast(
        (4, 24), (4, 6, 24), [1], "layer_norm",
        f"residual(%u : {tensor(4, 6, 24)}) axes [2] {EPS}", {"r": tensor(*residual)},
        kinds=(("sum", tensor(4, 6, 24)),), returned=("y", "s"), more=more)


def l2(placement, clauses="", **more):
    return of_broadcast((4, 24), (4, 24, 9), [2], "l2_norm",
                        f"{clauses} axes [1, 2] epsilon {placement}", **more)


EQUAL_ROWS = of_broadcast((4,), (4, 24), [1], "layer_norm",
                          f"shift(%b : {tensor(24)}) axes [1] {EPS}", {"b": tensor(24)})
ASSUMING = "--norm-simplify=fp-policy=real nnan=true ninf=true nsz=true"

BROADCAST = Rewrite(
    "C23", """The norm of a broadcast tensor is the broadcast of its norm: less is normalized. A
    reduced axis along which x is broadcast is dropped; in a sum of squares that scales epsilon
    and the gain. Where all of them are, a centred norm leaves its shift.""", "E", (SIMPLIFY,),
    {"residual": "x and residual are broadcast alike",
     "real": """fp-policy=real where a reduced axis is broadcast, or where the innermost axis is
     reduced before and kept after, or the other way round""",
     "affine-axes": "scale, shift and channels index no broadcast axis",
     "given-statistics": "statistics that the op is given index no broadcast axis",
     "repeats": "the broadcast reduced axes have static extents, not 0",
     "correction": "n changes: correction 0, also in running statistics",
     "statistics": "sums of squares: nothing uses the statistics, which change",
     "epsilon": """a sum of squares: epsilon divided by the repeats (or their root) stays a normal
     number. All reduced axes broadcast: epsilon > 0""",
     "gain": "sums of squares: the scale is constant, or absent and of static extents",
     "centred": "all reduced axes broadcast: the op subtracts a mean",
     "nnan": "all reduced axes broadcast: no NaN", "ninf": "and no infinity",
     "nsz": "and the sign of a zero does not matter",
     "unused-results": "all reduced axes broadcast: nothing uses another result"},
    [Example("one row for all", of_broadcast(
        (4, 24), (4, 6, 24), [1], "layer_norm",
        f"scale(%g : {tensor(24)}) shift(%b : {tensor(24)}) axes [2] {EPS}",
        {"g": tensor(24), "b": tensor(24)}, kinds=(("mean", tensor(4, 6)),),
        returned=("y", "m")), new=("tensor<4x24xf32> -> tensor<4x24xf32>",)),
     Example("dimensions of 1", of_broadcast(
         (4, 1, 24), (4, 6, 24), [], "rms_norm", f"axes [2] {EPS}",
         kinds=(("rstd", tensor(4, 6)),), returned=("y", "r"),
         lines=stretching_generic((4, 1, 24), (4, 6, 24), ("d0", "0", "d2"))),
         new=("tensor<4x1x24xf32> -> tensor<4x1x24xf32>",)),
     Example("given statistics", of_broadcast(
         (4, 6), (4, 6, 8), [2], "batch_norm_inference",
         f"mean(%m : {tensor(6)}) variance(%v : {tensor(6)}) axes [0, 2] {EPS}",
         {"m": tensor(6), "v": tensor(6)}), data={2: 0.5 + np.arange(6, dtype=np.float32)}),
     Example("group norm", of_broadcast(
         (6, 8), (2, 6, 8), [0], "group_norm",
         f"scale(%g : {tensor(6)}) groups 3 channel_axis 1 axes [1, 2] {EPS}",
         {"g": tensor(6)}, kinds=(("mean", tensor(2, 3)),), returned=("y", "m"))),
     Example("groups of all but the broadcast axis", of_broadcast(
         (4, 6), (4, 3, 6), [1], "group_norm", f"groups 2 channel_axis 2 axes [2] {EPS}",
         kinds=(("variance", tensor(4, 3, 2)),), returned=("y", "v"))),
     Example("an innermost kept axis", of_broadcast(
         (4, 24), (4, 24, 6), [2], "layer_norm", f"axes [1] {EPS}"),
         passes=(REAL,), gate="R"),
     Example("a reduced axis", of_broadcast(
         (4, 24), (4, 6, 24), [1], "layer_norm",
         f"scale(%g : {tensor(24)}) axes [1, 2] {EPS} affine_axes [2]", {"g": tensor(24)},
         kinds=(("variance", tensor(4)),), returned=("y", "v")), passes=(REAL,), gate="R"),
     Example("running statistics", of_broadcast(
         (4, 6), (4, 6, 8), [2], "batch_norm_training",
         f"running(%p, %q : {tensor(6)}, {tensor(6)}) axes [0, 2] {EPS} momentum 0.1 "
         "running_correction 0", {"p": tensor(6), "q": tensor(6)},
         kinds=(("running_mean", tensor(6)), ("running_variance", tensor(6))),
         returned=("y", "n", "o")), passes=(REAL,), gate="R"),
     Example("residual and sum", residual_of_broadcast(
         broadcast((4, 24), (4, 6, 24), [1], name="r", result="u"), (4, 24))),
     *(Example(f"L2 {placement.split()[0]}", l2(placement), passes=(REAL,), gate="R")
       for placement in ("inside_sqrt 1.0e-2", "outside_sqrt 1.0e-1", "max_inside 1.0e-2",
                         "max_outside 1.0e+2", "none")),
     Example("L2 shift", l2("inside_sqrt 1.0e-2",
                            f"shift(%b : {tensor(24)})", arguments={"b": tensor(24)}).replace(
                                "1.0e-2", "1.0e-2 affine_axes [1]"),
             passes=(REAL,), gate="R"),
     Example("L2 gain", l2("inside_sqrt 1.0e-2 affine_axes [1] scale_offset 1.0",
                           f"scale(%g : {tensor(24)})",
                           more=f"  %g = arith.constant dense<0.5> : {tensor(24)}\n"),
             passes=(REAL,), gate="R"),
     Example("equal elements", EQUAL_ROWS, passes=(ASSUMING,), gate="N", gone=("layer_norm",)),
     Example("equal elements without a shift", of_broadcast(
         (4,), (4, 24), [1], "layer_norm", f"axes [1] {EPS}"),
         passes=(ASSUMING,), gate="N", gone=("layer_norm",))],
    [Refusal("residual", residual_of_broadcast("", (4, 6, 24)).replace("%u", "%r"),
             switch=False),
     Refusal("real", of_broadcast((4, 24), (4, 6, 24), [1], "layer_norm", f"axes [1, 2] {EPS}")),
     Refusal("real", of_broadcast((4, 24), (4, 24, 6), [2], "layer_norm", f"axes [1] {EPS}"),
             name="innermost"),
     Refusal("affine-axes", of_broadcast(
         (4, 24), (4, 6, 24), [1], "rms_norm",
         f"scale(%g : {tensor(6, 24)}) axes [2] {EPS} affine_axes [1, 2]",
         {"g": tensor(6, 24)}), switch=False),
     Refusal("given-statistics", of_broadcast(
         (4, 8), (4, 6, 8), [1], "batch_norm_inference",
         f"mean(%m : {tensor(6)}) variance(%v : {tensor(6)}) axes [0, 2] {EPS}",
         {"m": tensor(6), "v": tensor(6)}), switch=False),
     Refusal("repeats", of_broadcast(
         (4, 24), (4, 0, 24), [1], "layer_norm", f"axes [1, 2] {EPS}"), passes=(REAL,),
         switch=False),
     Refusal("correction", of_broadcast(
         (4, 24), (4, 6, 24), [1], "layer_norm", f"axes [1, 2] {EPS} correction 1"),
         passes=(REAL,)),
     Refusal("correction", of_broadcast(
         (4, 6), (4, 6, 8), [2], "batch_norm_training",
         f"running(%p, %q : {tensor(6)}, {tensor(6)}) axes [0, 2] {EPS} momentum 0.1",
         {"p": tensor(6), "q": tensor(6)},
         kinds=(("running_mean", tensor(6)), ("running_variance", tensor(6))),
         returned=("y", "n", "o")), passes=(REAL,), name="running"),
     Refusal("correction", EQUAL_ROWS.replace(EPS, EPS + " correction 1"), passes=(ASSUMING,),
             name="equal elements"),
     Refusal("statistics", l2("inside_sqrt 1.0e-2", kinds=(("rstd", tensor(4)),),
                              returned=("y", "r")), passes=(REAL,)),
     Refusal("epsilon", l2("inside_sqrt 2.0e-38"), passes=(REAL,), switch=False,
             name="subnormal"),
     Refusal("epsilon", EQUAL_ROWS.replace(EPS, "epsilon none"), passes=(ASSUMING,)),
     Refusal("gain", l2("inside_sqrt 1.0e-2 affine_axes [1]", f"scale(%g : {tensor(24)})",
                        arguments={"g": tensor(24)}), passes=(REAL,), switch=False),
     Refusal("centred", of_broadcast((4,), (4, 24), [1], "rms_norm", f"axes [1] {EPS}"),
             passes=(ASSUMING,), switch=False),
     Refusal("nnan", EQUAL_ROWS, passes=(ASSUMING.replace("nnan=true", ""),)),
     Refusal("ninf", EQUAL_ROWS, passes=(ASSUMING.replace("ninf=true", ""),)),
     Refusal("nsz", EQUAL_ROWS, passes=(ASSUMING.replace("nsz=true", ""),)),
     Refusal("unused-results", of_broadcast(
         (4,), (4, 24), [1], "layer_norm", f"axes [1] {EPS}", kinds=(("mean", tensor(4)),),
         returned=("y", "m")), passes=(ASSUMING,), switch=False)])

REWRITES = [TRANSPOSE, RESHAPE, BROADCAST]
