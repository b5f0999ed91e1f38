"""The differential table of the forward ops besides layer_norm and rms_norm."""

from dataclasses import replace

from cases import pairwise, product

BOTH = ("cpu", "reference")
OPS = ("l2_norm", "instance_norm", "group_norm", "batch_norm_training", "batch_norm_inference")

# (shape, axes, options) of each op: channels first and last, ranks 2 to 6.
LAYOUTS = {
    "l2_norm": [
        ((5, 129), (1,), {}), ((129, 5), (0,), {}), ((2, 3, 4, 16), (3,), {}),
        ((4, 7, 33), (1, 2), {}), ((2, 3, 2, 2, 3, 5), (1, 4), {})],
    "instance_norm": [
        ((2, 3, 9, 11), (2, 3), dict(affine_axes=(1,))),  # NCHW
        ((2, 9, 11, 3), (1, 2), dict(affine_axes=(3,))),  # NHWC
        ((3, 5, 67), (2,), dict(affine_axes=(1,))),  # NCL
        ((2, 3, 4, 5, 6), (2, 3, 4), dict(affine_axes=(1,))),  # NCDHW
        ((2, 5, 33), (-1,), dict(affine_axes=(0, 1))),  # modulated per sample
        ((2, 2, 3, 2, 5, 4), (1, 2, 3, 4), dict(affine_axes=(5,)))],
    "group_norm": [
        ((2, 6, 5, 7), (1, 2, 3), dict(groups=3, channel_axis=1)),  # NCHW
        ((2, 5, 7, 6), (1, 2, 3), dict(groups=2, channel_axis=3)),  # NHWC
        ((5, 132), (1,), dict(groups=4, channel_axis=1)),  # [N, C]
        ((3, 8, 33), (1, 2), dict(groups=8, channel_axis=1)),  # one channel a group
        ((3, 8, 33), (-2, -1), dict(groups=1, channel_axis=-2)),  # one group
        ((2, 4, 3, 2, 5), (1, 2, 3, 4), dict(groups=2, channel_axis=1)),  # NCDHW
        ((2, 3, 2, 5, 4), (1, 2, 3, 4), dict(groups=2, channel_axis=4)),  # NDHWC
        ((3, 5, 6, 4), (1, 2), dict(groups=3, channel_axis=2)),
        ((2, 2, 3, 2, 3, 4), (0, 2, 4), dict(groups=2, channel_axis=0, affine_axes=(0, 5)))],
    "batch_norm_training": [
        ((4, 3, 5, 7), (0, 2, 3), {}),  # NCHW
        ((4, 5, 7, 3), (0, 1, 2), {}),  # NHWC
        ((67, 5), (0,), {}), ((9, 70), (0,), {}),  # [N, C]
        ((4, 3, 33), (0, 2), {}),  # NCL
        ((3, 4, 2, 3, 5), (0, 2, 3, 4), {}),  # NCDHW
        ((2, 3, 2, 5, 4), (-5, 1, 2, 3), {}),  # NDHWC
        ((2, 3, 2, 2, 2, 5), (0, 1, 2, 3, 4), {}),
        ((4, 3, 33), (0,), dict(affine_axes=(1,)))],
}
LAYOUTS["batch_norm_inference"] = LAYOUTS["batch_norm_training"]

TYPES = [("f32", "", {}), ("f64", "", {}), ("bf16", "", {}), ("f16", "", {}),
         ("bf16", "f32", {}), ("f16", "f32", dict(result="f32")), ("f32", "bf16", {}),
         ("f32", "f64", dict(result="bf16")), ("bf16", "bf16", dict(compute="f64")),
         ("f64", "f32", dict(compute="f32", result="f16"))]
# Epsilon among the statistics.
PLACED = [dict(epsilon=0.3, placement=p) for p in ("inside_sqrt", "outside_sqrt", "max_inside",
                                                   "max_outside", "none")]
STATISTICS = ("y", "mean", "variance", "rstd")
RESULTS = [("y",), ("y", "rstd"), ("y", "mean", "rstd"), STATISTICS]
AFFINE = [dict(affine_in="result"), dict(scale_offset=1.0), {}, dict(correction=1),
          dict(zero_policy="zero"), dict(sum_rounding="compute")]


def allowed(fields):
    options = fields["options"]
    operands = fields.get("operands", "gb")
    if options.get("affine_in") == "result":
        wide = {"bf16": 8, "f16": 8, "f32": 24, "f64": 53}
        if wide[options.get("result", fields["type"])] < wide[fields["type"]]:
            return False
        if {options.get("result"), fields["type"]} == {"f16", "bf16"}:
            return False
    if "sum_rounding" in options and "r" not in operands:
        return False
    return "scale_offset" not in options or "g" in operands


def build(fields):
    """Which results there can be, and parameters only where they can be indexed."""
    op, operands, options = fields["op"], fields["operands"], dict(fields["options"])
    results = fields["results"]
    if op == "batch_norm_inference":
        results = ("y",)
    if op == "l2_norm":
        results = tuple(r for r in results if r != "mean")
        if options["placement"] != "none":
            options["epsilon"] = 20.0
    if "r" in operands and len(results) % 2:
        results += ("sum",)
    if not set(operands) & set("gb"):
        options.pop("affine_axes", None)
    if op == "batch_norm_training" and "u" in operands:
        results += ("running_mean", "running_variance")
        if "a" not in operands:
            options["momentum"] = 0.1
        if len(results) == 3:
            options["running_correction"] = 0
    else:
        operands = operands.replace("u", "").replace("a", "")
    fields.update(results=results, operands=operands, options=options)
    return fields


def table(op):
    extra, attributes = {}, list(AFFINE)
    if op in ("l2_norm", "batch_norm_inference"):
        attributes.remove(dict(correction=1))
    if op == "batch_norm_training":
        extra["running_type"] = ["", "f64", "bf16"]
    return pairwise(
        "pairs", 20, allowed, build, op=op, shape__axes__options_1=LAYOUTS[op],
        type__parameter_type__options_2=TYPES, options_3=PLACED, options_4=attributes,
        operands=["", "gu", "bua", "gb", "rgbu", "gbua"], results=RESULTS,
        dynamic=["no", "all", "kept", "reduced"], data=["levels", "normal"], **extra)


def spread(cases):
    """Keeps the path through linalg to every third case: it shares its decomposition with
    the others."""
    for number, case in enumerate(cases):
        yield case if number % 3 == 0 else replace(case, paths=BOTH)


running = dict(momentum=0.1)
BATCH = ("y", "mean", "variance", "rstd", "running_mean", "running_variance")

TABLE = [
    *(case for op in OPS for case in spread(table(op))),
    # Slabs and groups longer than a chain of additions, far from 0 and chosen to hurt.
    *product("long", op=["batch_norm_training"], operands="gbu", results=BATCH, options=running,
             mean__std=[(0.5, 1.0), (1e7, 1.0)], paths=BOTH, shape__axes=[
                 ((9, 5, 30, 31), (0, 2, 3)), ((8193, 3), (0,)), ((70, 130, 9), (0, 1))]),
    *product("long", op=["group_norm"], results=STATISTICS, paths=BOTH, mean=[0.5, 1e7],
             shape__axes__options=[
                 ((2, 8, 40, 41), (1, 2, 3), dict(groups=2, channel_axis=1)),
                 ((2, 700, 8), (1, 2), dict(groups=4, channel_axis=2))]),
    *product("long", op=["l2_norm"], results=("y", "rstd"), paths=BOTH, mean=[0.0, 1e4],
             shape__axes=[((4, 4097), (1,)), ((4099, 3), (0,))]),
    *product("hostile", op=["batch_norm_training"], operands="gbu", results=BATCH,
             options=running, paths=BOTH, shape__axes=[((40, 9, 7), (0, 2)), ((257, 9), (0,))],
             data=["constant", "alternating", "nearly_constant", "mixed", "not_finite"]),
    *product("hostile", op=["instance_norm"], data=["zero", "mixed", "not_finite"], paths=BOTH,
             results=STATISTICS, shape__axes__options=[
                 ((3, 5, 9, 11), (2, 3), dict(affine_axes=(1,))),
                 ((3, 9, 11, 5), (1, 2), dict(affine_axes=(3,)))]),
    *product("hostile", op=["group_norm"], data=["outlier", "mixed", "not_finite"], paths=BOTH,
             results=STATISTICS, shape__axes__options=[
                 ((3, 8, 9, 11), (1, 2, 3), dict(groups=4, channel_axis=1)),
                 ((3, 9, 11, 8), (1, 2, 3), dict(groups=4, channel_axis=3))]),
    *product("hostile", op=["l2_norm"], data=["zero", "outlier", "not_finite"], paths=BOTH,
             results=("y", "variance", "rstd"), shape=(8, 257), axes=(1,), options=[
                 dict(epsilon=1e-12, placement="max_outside"),
                 dict(placement="none", zero_policy="zero")]),
    *product("hostile", op=["batch_norm_inference"], data=["mixed", "not_finite"], paths=BOTH,
             shape__axes=[((40, 9, 7), (0, 2)), ((33, 9), (0,))]),
    *product("zero", op=[op for op in OPS if op != "group_norm"], data="zero", shape=(2, 3, 33),
             axes=(2,), operands="", results=("y",),
             options=[dict(placement="none", zero_policy="zero")]),
    *product("zero", op=["group_norm"], data="zero", shape=(2, 4, 9), axes=(1, 2), results=("y",),
             options=[dict(placement="none", zero_policy="zero", groups=2, channel_axis=1)]),
    *product("residual", op=["instance_norm", "l2_norm", "batch_norm_training",
                             "batch_norm_inference"], type="bf16", operands="r",
             shape=(4, 3, 33), axes=(2,), results=("y", "sum"),
             options=[dict(sum_rounding="compute", result="f32")]),
    *product("narrow", op=["group_norm"], type="bf16", results=STATISTICS,
             shape__axes__options=[((4, 6, 9), (1, 2), dict(
                 groups=3, channel_axis=1, compute="bf16", epsilon=0.25))]),
    *product("narrow", op=["l2_norm", "batch_norm_inference"], type=["f32", "bf16"],
             shape=(9, 33), axes=(0,), options=[dict(compute="bf16", epsilon=0.25)],
             results=("y",)),
    *product("narrow", op=["batch_norm_training"], type="f16", operands="gbu", results=BATCH,
             shape=(33, 6), axes=(0,), options=[dict(compute="f16", epsilon=0.25, momentum=0.5)]),
    # Scales near the ends of the range.
    *product("scale", op=["batch_norm_training"], std__mean=[(1e-18, 0.0), (1e18, 3e18)],
             operands="u", options=running, shape=(40, 5), axes=(0,), results=BATCH, paths=BOTH),
    *product("scale", op=["l2_norm"], std__mean=[(1e-18, 0.0), (1e18, 0.0)], shape=(4, 40),
             axes=(1,), options=[dict(placement="none")], paths=BOTH, results=("y", "rstd")),
    # Memory layouts.
    *product("layout", op=["batch_norm_training"], layout=["fortran", "slice", "transpose"],
             type=["f32", "bf16"], shape=(6, 9, 20), axes=(0, 2), results=("y", "rstd"),
             paths=("cpu",)),
    *product("layout", op=["group_norm"], layout=["fortran", "slice"], shape=(6, 8, 20),
             axes=(1, 2), options=dict(groups=4, channel_axis=1), results=("y", "rstd"),
             paths=("cpu",)),
    # More than the caches and several threads.
    *product("large", op=["batch_norm_training"], type=["f32", "bf16"], operands="gbu",
             options=running, results=BATCH, paths=("cpu",), shape__axes=[
                 ((16, 64, 28, 28), (0, 2, 3)), ((16, 28, 28, 64), (0, 1, 2))]),
    *product("large", op=["group_norm"], results=STATISTICS, paths=("cpu",),
             shape__axes__options=[
                 ((4, 64, 56, 56), (1, 2, 3), dict(groups=32, channel_axis=1)),
                 ((4, 56, 56, 64), (1, 2, 3), dict(groups=32, channel_axis=3))]),
    # Nothing to do, and one element.
    *product("empty", op=["batch_norm_training"], operands="gbu", results=BATCH,
             options=running, dynamic=["no", "all"],
             shape__axes=[((0, 3), (0,)), ((4, 0), (0,)), ((2, 3, 0), (0, 2))]),
    *product("one", op=["batch_norm_training"], operands="gbu", results=BATCH, options=running,
             dynamic="all", shape=[(1, 3)], axes=(0,)),
    *product("one", op=["batch_norm_inference"], shape=[(1, 3)], axes=(0,), dynamic=["no", "all"]),
    *product("empty", op=["batch_norm_inference"], dynamic=["no", "all"],
             shape__axes=[((0, 3), (0,)), ((2, 0, 3), (0, 2))]),
    *product("empty", op=["group_norm"], results=STATISTICS, dynamic=["no", "all"],
             shape__axes__options=[
                 ((0, 6, 4), (1, 2), dict(groups=3, channel_axis=1, epsilon=0.25)),
                 ((2, 6, 0), (1, 2), dict(groups=3, channel_axis=1, epsilon=0.25)),
                 ((2, 0, 4), (1, 2), dict(groups=3, channel_axis=1, epsilon=0.25))]),
    *product("empty", op=["instance_norm", "l2_norm"], results=("y", "variance", "rstd"),
             dynamic=["no", "all"], options=[dict(epsilon=0.25, affine_axes=(1,))],
             shape__axes=[((2, 3, 0), (2,)), ((2, 0, 3), (2,))]),
]
