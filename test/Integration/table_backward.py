"""The differential table of the backward ops."""

from dataclasses import replace

from cases import pairwise, product
from norm.reference import FORWARD
from table_forward import LAYOUTS, PLACED, TYPES

BOTH = ("cpu", "reference")
ROWS = [((5, 129), (1,), {}), ((129, 5), (0,), {}), ((2, 3, 65), (1, 2), {}),
        ((2, 3, 65), (0, 2), dict(affine_axes=(1,))), ((4, 6, 33), (2,), dict(affine_axes=(0, 2))),
        ((4, 6, 33), (-1,), dict(affine_axes=(0,))), ((2, 3, 2, 5, 2, 7), (1, 4, 5), {}),
        ((2, 3, 4, 5), (1, 3), dict(affine_axes=(0, 1, 2, 3)))]
LAYOUTS = {**LAYOUTS, "layer_norm": ROWS, "rms_norm": ROWS}
ALL = ("dx", "dscale", "dshift")
# x, dy, scale, and the results.
TYPES = [(x, "", parameter, options) for x, parameter, options in TYPES] + [
    ("f32", "bf16", "f32", {}), ("bf16", "f32", "bf16", dict(gradients="f32")),
    ("f32", "f32", "f32", dict(gradients="bf16", result="f64")), ("f16", "bf16", "f32", {})]
ATTRIBUTES = [{}, dict(scale_offset=1.0), dict(affine_in="result"), dict(correction=1),
              dict(zero_policy="zero")]


def allowed(fields):
    options, operands = fields["options"], fields["operands"]
    if "scale_offset" in options and "g" not in operands:
        return False
    if options.get("affine_in") == "result":
        wide = {"bf16": 8, "f16": 8, "f32": 24, "f64": 53}
        narrow_result = wide[options.get("result", fields["type"])] < wide[fields["type"]]
        return not narrow_result and "result" not in options
    return True


def build(fields):
    op, operands = fields["op"], fields["operands"]
    options, results = dict(fields["options"]), fields["results"]
    if op in ("rms_norm_backward", "l2_norm_backward"):
        operands = operands.replace("m", "")
        if op == "l2_norm_backward" and options["placement"] != "none":
            options["epsilon"] = 20.0
    if op == "batch_norm_inference_backward":
        # Nothing can be recomputed.
        operands = "".join(sorted(set(operands + "m" + ("" if "i" in operands else "v"))))
    if "r" in operands:
        options["sum_rounding"] = "compute"
    if "g" not in operands and results == ("dx",):
        options.pop("affine_axes", None)
    if op == "instance_norm_backward" and "affine_axes" not in options:
        results = ("dx",)
    fields.update(operands=operands, options=options, results=results)
    return fields


def table(op):
    attributes = list(ATTRIBUTES)
    if op in ("l2_norm", "rms_norm", "batch_norm_inference"):
        attributes.remove(dict(correction=1))
    cases = pairwise(
        "pairs", 18, allowed, build, op=f"{op}_backward", shape__axes__options_1=LAYOUTS[op],
        type__dy_type__parameter_type__options_2=TYPES, options_3=PLACED, options_4=attributes,
        operands=["", "g", "gmi", "mi", "gmvi", "rgd", "gmv", "gvi", "rgdmi", "gd"],
        results=[("dx",), ALL, ("dx", "dscale"), ("dx", "dshift"), ALL],
        dynamic=["no", "all", "kept", "reduced"], data=["levels", "normal"])
    for number, case in enumerate(cases):
        yield case if number % 4 == 0 else replace(case, paths=BOTH)


CHANNELS = ("layer_norm_backward", "batch_norm_training_backward")

TABLE = [
    *(case for op in FORWARD for case in table(op)),
    # Long rows and long columns, far from 0, with and without what forward saved.
    *product("long", op=["layer_norm_backward"], results=ALL, paths=BOTH, operands=["g", "gmi"],
             mean=[0.5, 1e6], shape__axes=[((4, 4097), (1,)), ((8193, 7), (1,))]),
    *product("long", op=["rms_norm_backward"], results=ALL, paths=BOTH, operands=["g", "gi"],
             shape__axes=[((4, 4097), (1,)), ((8193, 7), (1,)), ((300, 700), (0,))]),
    *product("long", op=["batch_norm_training_backward"], results=ALL, paths=BOTH,
             operands="gmi", mean=[0.5, 1e6], shape__axes=[
                 ((9, 5, 30, 31), (0, 2, 3)), ((8193, 3), (0,)), ((70, 130, 9), (0, 1))]),
    *product("long", op=["group_norm_backward"], results=ALL, paths=BOTH, operands="gmi",
             shape__axes__options=[
                 ((3, 8, 40, 41), (1, 2, 3), dict(groups=2, channel_axis=1)),
                 ((3, 700, 8), (1, 2), dict(groups=4, channel_axis=2))]),
    # Rows chosen to hurt; a NaN stays in its row of dx.
    *product("hostile", op=["layer_norm_backward"], results=ALL, paths=BOTH, operands="g",
             data=["constant", "alternating", "far_start", "mixed", "not_finite"],
             shape=(8, 257), axes=(1,)),
    *product("hostile", op=["rms_norm_backward", "l2_norm_backward"], results=ALL, paths=BOTH,
             operands="g", data=["zero", "outlier", "not_finite"], shape=(8, 257), axes=(1,)),
    *product("hostile", op=["batch_norm_training_backward"], results=ALL, paths=BOTH,
             operands="g", data=["constant", "mixed", "not_finite"], shape=(40, 9, 7),
             axes=(0, 2)),
    *product("hostile", op=["group_norm_backward"], results=ALL, paths=BOTH, operands="g",
             data=["mixed", "not_finite"], shape=(3, 9, 11, 8), axes=(1, 2, 3),
             options=dict(groups=4, channel_axis=3)),
    # Statistics on both sides of epsilon.
    *product("clamped", op=[f"{op}_backward" for op in (
        "layer_norm", "rms_norm", "instance_norm", "batch_norm_training")],
             data="levels", shape=(7, 33), axes=(1,), results=("dx",), operands="g", paths=BOTH,
             options=[dict(p, affine_axes=(0,)) for p in PLACED[1:4]]),
    *product("clamped", op=["group_norm_backward"], data="levels", shape=(7, 4, 18), axes=(1, 2),
             results=("dx",), operands="g", paths=BOTH,
             options=[dict(p, groups=2, channel_axis=1) for p in PLACED[1:4]]),
    # A statistic of 0 and one at the tie of a maximum are finite in each placement.
    *product("zero", op=["layer_norm_backward", "rms_norm_backward", "l2_norm_backward"],
             data="zero", shape=(2, 33), axes=(1,), results=ALL, operands=["g", "gv"],
             options=[dict(epsilon=0.3, placement=p["placement"]) for p in PLACED[1:4]] + [
                 dict(placement="none", zero_policy="zero")]),
    *product("zero", op=["batch_norm_training_backward", "batch_norm_inference_backward"],
             data="zero", shape=(33, 3), axes=(0,), results=ALL, operands="gmv",
             options=[dict(placement="none", zero_policy="zero")]),
    *product("zero", op=["group_norm_backward"], data="zero", shape=(2, 4, 9), axes=(1, 2),
             results=ALL, operands="g", options=[dict(
                 placement="none", zero_policy="zero", groups=2, channel_axis=1)]),
    *product("zero", op=["instance_norm_backward"], data="zero", shape=(2, 4, 9), axes=(2,),
             results=ALL, operands="g", options=[dict(
                 placement="none", zero_policy="zero", affine_axes=(1,))]),
    *product("affine-in", op=["instance_norm_backward", "l2_norm_backward"], type=["bf16", "f16"],
             shape=(9, 4, 33), axes=(2,), results=("dx", "dscale"), operands="", paths=BOTH,
             options=[dict(affine_in="result", gradients="f32", affine_axes=(1,))]),
    # The mean of f64 data is a pair, whichever statistics are saved beside it.
    *product("far", op=["layer_norm_backward"], type="f64", mean=1e7, shape=(5, 33), axes=(1,),
             results=ALL, paths=BOTH, operands=["g", "gi", "gv"]),
    *product("far", op=["group_norm_backward"], type="f64", mean=1e7, shape=(3, 6, 9), axes=(1, 2),
             results=ALL, paths=BOTH, operands=["gi", "gv"],
             options=dict(groups=2, channel_axis=1)),
    # A narrow compute type is that of the saved statistics.
    *product("narrow", op=["layer_norm_backward", "batch_norm_training_backward"],
             type=["bf16", "f32"], shape=(9, 33), axes=(1,), results=ALL, operands="gmi",
             options=[dict(compute="bf16", epsilon=0.25)]),
    # Memory layouts, large arrays and nothing to do.
    *product("layout", op=["layer_norm_backward"], layout=["fortran", "slice"], shape=(6, 7, 80),
             axes=(0, 2), operands="gmi", results=ALL, paths=("cpu",)),
    *product("layout", op=["batch_norm_training_backward"], layout=["fortran", "transpose"],
             type="bf16", shape=(6, 7, 80), axes=(0, 2), operands="gmi", results=ALL,
             paths=("cpu",)),
    *product("large", op=["layer_norm_backward", "rms_norm_backward"], type=["f32", "bf16"],
             operands="gmi", results=ALL, paths=("cpu",), shape=(2049, 1024), axes=(1,)),
    *product("large", op=["batch_norm_training_backward"], operands="gmi", results=ALL,
             paths=("cpu",), shape__axes=[((16, 64, 28, 28), (0, 2, 3)),
                                          ((16, 28, 28, 64), (0, 1, 2))]),
    *product("empty", op=list(CHANNELS), operands="g", results=ALL, dynamic=["no", "all"],
             shape__axes=[((0, 3), (0,)), ((4, 0), (0,)), ((2, 0, 3), (0, 1))]),
    *product("empty", op=["rms_norm_backward", "l2_norm_backward"], operands="g", results=ALL,
             dynamic=["no", "all"], shape__axes=[((0, 3), (1,)), ((4, 0), (1,))]),
    *product("empty", op=["group_norm_backward"], operands="g", results=ALL,
             dynamic=["no", "all"], shape__axes__options=[
                 ((0, 6, 4), (1, 2), dict(groups=3, channel_axis=1)),
                 ((2, 6, 0), (1, 2), dict(groups=3, channel_axis=1))]),
]
