"""The differential table of the algebra of statistics."""

from dataclasses import replace

from cases import pairwise, product
from table_forward import PLACED

BOTH = ("cpu", "reference")
AXES = [((5, 129), (1,)), ((129, 5), (0,)), ((4, 3, 5, 7), (0, 2, 3)), ((4, 5, 7, 3), (0, 1, 2)),
        ((2, 3, 65), (-1, 0)), ((2, 3, 2, 5, 2, 7), (1, 4, 5))]
AFFINE = [((5, 129), (1,), {}), ((129, 5), (0,), {}),
          ((4, 3, 5, 7), (0, 2, 3), dict(affine_axes=(1,))),
          ((4, 5, 7, 3), (0, 1, 2), dict(affine_axes=(3,))),
          ((4, 6, 33), (2,), dict(affine_axes=(0, 2)))]
# The data, and the statistics' type.
TYPES = [("f32", {}), ("f64", {}), ("bf16", {}), ("f16", {}), ("f32", dict(statistics="f64")),
         ("bf16", dict(statistics="f64")), ("bf16", dict(compute="f64")),
         ("f16", dict(compute="f64"))]
MOMENTS = ("count", "mean", "m2")
SUMS = ("sum_g", "sum_gx", "dscale", "dshift")
DYNAMIC = ["no", "all", "kept", "reduced"]


def sensible(fields):
    """No scale_offset without a scale, no correction without a count."""
    options, operands = fields["options"], fields["operands"]
    if "scale_offset" in options and "g" not in operands:
        return False
    if options.get("correction") and "n" not in operands:
        return False
    # Where a statistic may be clamped or its root be all there is, it is needed.
    return fields["op"] != "backward_normalize" or "v" in operands or \
        options.get("placement") in ("inside_sqrt", "none")


def without_a_mean(fields):
    """About zero there is none; and sums of g only go with one."""
    if fields["op"] == "moments" and fields["options"]["about"] == "zero":
        fields["results"] = tuple(r for r in fields["results"] if r != "mean")
    if fields["op"] == "combine_moments" and "m" not in fields["operands"]:
        fields["results"] = tuple(r for r in fields["results"] if r != "mean")
    if not set("gb") & set(fields["operands"]) and \
            not {"dscale", "dshift"} & set(fields.get("results", ())):
        fields["options"].pop("affine_axes", None)
    return fields


def pairs(op, most, **columns):
    cases = pairwise("pairs", most, sensible, without_a_mean, op=op, **columns)
    for number, case in enumerate(cases):
        yield case if number % 3 == 0 else replace(case, paths=BOTH)


TABLE = [
    *pairs("moments", 18, shape__axes=AXES, type__options_1=TYPES, operands=["", "k"],
           options_2=[dict(about="mean"), dict(about="zero")], dynamic=DYNAMIC,
           results=[("count", "m2"), ("mean", "m2"), MOMENTS, ("m2",)]),
    *pairs("combine_moments", 16, shape__axes=[((7, 5), ()), ((2, 3, 4), ()), ((300, 3), ()),
                                               ((1, 4), ()), ((5,), ())],
           type__options_1=[("f64", {}), ("f32", {}), ("f32", dict(statistics="f64"))],
           operands=["m", ""], dynamic=["no", "all"], mean=[0.5, 100.0],
           results=[MOMENTS, ("mean", "m2"), ("m2",), ("count", "m2")]),
    *pairs("rstd", 16, shape__axes=[((5,), ()), ((3, 70), ()), ((2, 3, 4, 5), ())],
           type__options_1=[("f64", {}), ("f32", {}), ("f64", dict(compute="f32"))],
           options_2=PLACED, operands=["n", ""], dynamic=["no", "all"], data="levels",
           options_3=[{}, dict(correction=1), dict(zero_policy="zero")],
           results=[("rstd",), ("rstd", "variance")]),
    *pairs("normalize", 14, shape__axes__options_1=AFFINE, type__options_2=TYPES,
           operands=["mgn", "mn", "gb", "mgbn", "bn"], parameter_type=["", "f32"],
           options_3=[{}, dict(scale_offset=1.0), dict(affine_in="result")], dynamic=DYNAMIC),
    *pairs("update_running", 16, shape__axes=[((9,), ()), ((3, 70), ())],
           type__running_type=[("f32", ""), ("f64", ""), ("f64", "f32"), ("f32", "bf16")],
           options_1=[dict(statistic="mean"), dict(statistic="variance"),
                      dict(statistic="variance", running_correction=0)],
           operands__options_2=[("", dict(momentum=0.1)), ("", dict(momentum=1.0)), ("a", {})],
           dynamic=["no", "all"], results=("updated",)),
    *pairs("backward_moments", 16, shape__axes__options_1=AFFINE, type__options_2=TYPES,
           operands=["mn", "mgn", "g", "gk", "mgnk", ""], dynamic=DYNAMIC,
           options_3=[{}, dict(scale_offset=0.5), dict(affine_in="result"),
                      dict(gradients="f32")],
           results=[SUMS, ("sum_gx",), ("sum_g", "sum_gx"), ("dscale", "dshift"), ("dscale",)]),
    *pairs("backward_normalize", 18, shape__axes__options_1=AFFINE, type__options_2=TYPES,
           options_3=PLACED, options_4=[{}, dict(correction=1), dict(scale_offset=0.5)],
           operands=["mn", "mgnv", "g", "gv", "mgnkv", "nkv"], dynamic=DYNAMIC,
           data=["levels", "normal"],
           results=("dx",)),
    # Long sums, far from 0, and data chosen to hurt.
    *product("long", op=["moments"], results=MOMENTS, operands=["", "k"], mean=[0.5, 1e7],
             options=dict(statistics="f64"), paths=BOTH,
             shape__axes=[((3, 4097), (1,)), ((8193, 3), (0,)), ((9, 5, 30, 31), (0, 2, 3))]),
    *product("long", op=["combine_moments"], type=["f64", "f32"], operands="m", mean=[1e5],
             results=MOMENTS, shape=(4099, 3), axes=(), paths=BOTH),
    *product("long", op=["backward_moments"], results=SUMS, operands="mgn", paths=BOTH,
             shape__axes__options=[((8193, 3), (0,), dict(affine_axes=(1,))),
                                   ((9, 5, 30, 31), (0, 2, 3), dict(affine_axes=(1,)))]),
    *product("hostile", op=["moments"], results=MOMENTS, operands=["", "k"], paths=BOTH,
             data=["constant", "alternating", "nearly_constant", "not_finite"],
             shape=(8, 257), axes=(1,)),
    *product("zero", op=["rstd"], data="zero", shape=(5,), axes=(), operands="n",
             results=("rstd",), options=[dict(placement="none", zero_policy="zero")]),
    # A mean that is better than the data's type keeps what makes it so.
    *product("far", op=["normalize"], mean=[1e6], operands="mn", shape=(4, 129), axes=(1,),
             options=[dict(statistics="f64", compute="f32")]),
    # Nothing to count.
    *product("empty", op=["moments"], results=MOMENTS, operands=["", "k"],
             dynamic=["no", "all"], shape__axes=[((0, 3), (0,)), ((4, 0), (0,)),
                                                 ((2, 0, 3), (0, 1))]),
    *product("empty", op=["combine_moments"], results=MOMENTS, operands="m", type="f64",
             dynamic=["no", "all"], shape__axes=[((0, 3), ()), ((4, 0), ())]),
    *product("empty", op=["backward_moments"], results=SUMS, operands="mgn",
             dynamic=["no", "all"], shape__axes=[((0, 3), (0,)), ((2, 0, 3), (0, 1))]),
    *product("empty", op=["normalize"], operands="mgbn", dynamic=["no", "all"],
             shape__axes=[((3, 0), (1,)), ((0, 3), (1,))]),
    *product("empty", op=["backward_normalize"], operands="mgnv", results=("dx",),
             dynamic=["no", "all"], shape__axes=[((3, 0), (1,)), ((0, 3), (1,))]),
]
