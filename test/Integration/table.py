"""The differential table of layer_norm and rms_norm: option x type x shape."""

from cases import product

OPS = ("layer_norm", "rms_norm")
EXTENTS = (1, 3, 5, 7, 17, 127, 129, 255, 257, 768, 1023, 4096, 65537)

ops = list(OPS)
all_results = ("y", "mean", "variance", "rstd")
eps = 1e-5

TABLE = [
    # Every extent, static and dynamic, with every statistic.
    *product("extent", op=ops, shape__axes=[((3, n), (1,)) for n in EXTENTS],
             dynamic=["no", "all"], results=all_results),
    *product("extent", op=ops, type=["f64", "f16", "bf16"], results=all_results,
             shape__axes=[((3, n), (1,)) for n in (1, 7, 129, 768, 4096, 65537)]),
    *product("unknown", op=ops, dynamic=["kept", "reduced"], results=all_results,
             shape__axes=[((5, 129), (1,)), ((9, 6, 33), (2,)), ((9, 6, 33), (0, 1))]),
    # Means many deviations from 0.
    *product("far", op=["layer_norm"], mean=[1.0, 10.0, 1e3, 1e5, 1e7], results=all_results,
             shape__axes=[((4, n), (1,)) for n in (17, 129, 768, 4096, 65537)]),
    *product("far", op=["layer_norm"], type=["f64"], mean=[1e3, 1e7], results=all_results,
             shape__axes=[((4, n), (1,)) for n in (129, 768, 4096, 65537)]),
    *product("far", op=["layer_norm"], type=["f16", "bf16"], mean=[1.0, 10.0, 100.0],
             shape__axes=[((4, n), (1,)) for n in (129, 4096)]),
    *product("far", op=["rms_norm"], mean=[1e3, 1e7], shape=(4, 768), axes=(1,),
             results=all_results),
    # Where epsilon goes, with statistics of its size.
    *product("epsilon", op=ops, type=["f32", "f64", "bf16"], shape=(7, 33), axes=(1,),
             data="levels", results=("y", "rstd"), options=[
                 dict(epsilon=0.3, placement=p) for p in (
                     "inside_sqrt", "outside_sqrt", "max_inside", "max_outside", "none")]),
    *product("zero", op=ops, shape=(2, 33), axes=(1,), data="zero", results=("y", "rstd"),
             options=[dict(placement="none"), dict(placement="none", zero_policy="zero"),
                      dict(epsilon=0.0, zero_policy="zero"),
                      dict(epsilon=0.0, placement="outside_sqrt", zero_policy="zero")]),
    # Reduced axes and affine axes.
    *product("axes", op=ops, results=all_results, shape__axes=[
        ((37,), (0,)), ((5, 7), (0,)), ((5, 7), (0, 1)), ((5, 7), (-1,)), ((2, 3, 65), (2,)),
        ((2, 3, 65), (1, 2)), ((2, 3, 65), (1,)), ((2, 3, 65), (0,)), ((2, 3, 65), (0, 2)),
        ((2, 3, 65), (2, 0)), ((2, 3, 65), (0, 1, 2)), ((1, 1, 1), (1,)), ((40, 1, 3), (0, 1)),
        ((2, 3, 4, 5), (1, 3)), ((2, 3, 4, 5), (-2, -3)), ((2, 3, 4, 5), (0, 1, 2, 3)),
        ((2, 3, 4, 5, 6), (2, 3, 4)), ((2, 3, 4, 5, 6), (0, 2, 4)), ((2, 3, 4, 5, 6), (1,)),
        ((2, 3, 2, 5, 2, 7), (5,)), ((2, 3, 2, 5, 2, 7), (0, 3)), ((2, 3, 2, 5, 2, 7), (1, 4, 5))]),
    *product("axes-16", op=ops, type=["bf16"], paths=("cpu",), shape__axes=[
        ((40, 50), (0,)), ((4, 30, 40), (1,)), ((4, 30, 40), (0, 2)), ((4, 30, 40), (1, 2))]),
    *product("affine", op=ops, type=["f32", "bf16"], shape__axes__options=[
        ((4, 6, 33), (2,), dict(affine_axes=(0,))),  # per sample
        ((4, 6, 33), (2,), dict(affine_axes=(0, 2))),
        ((4, 6, 33), (2,), dict(affine_axes=(1, 2))),  # per head and feature
        ((4, 6, 33), (2,), dict(affine_axes=(0, 1))),
        ((4, 6, 33), (1, 2), dict(affine_axes=(2,))),
        ((4, 6, 33), (1, 2), dict(affine_axes=(1,))),  # per channel
        ((4, 6, 33), (0, 2), dict(affine_axes=(1,))),
        ((4, 6, 33), (0,), dict(affine_axes=(0, 1, 2))),
        ((4, 6, 33), (0, 1, 2), dict(affine_axes=(1,)))]),
    *product("affine", op=ops, dynamic=["all"], shape__axes__options=[
        ((4, 6, 33), (2,), dict(affine_axes=(0, 2))),
        ((4, 6, 33), (1, 2), dict(affine_axes=(1,)))]),
    # Which operands and results there are.
    *product("operands", op=ops, type=["f32", "bf16"], operands=["", "g", "b", "gb", "r", "rg",
                                                               "rb", "rgb"],
             shape=(6, 40), axes=(1,), paths=("cpu", "reference")),
    *product("results", op=["layer_norm"], shape=(6, 40), axes=(1,), operands="rg", results=[
        ("y", "mean"), ("y", "variance"), ("y", "rstd"), ("y", "sum"), ("y", "mean", "sum"),
        ("y", "mean", "variance", "rstd", "sum")]),
    *product("results", op=["rms_norm"], shape=(6, 40), axes=(1,), operands="rg", results=[
        ("y", "variance"), ("y", "rstd"), ("y", "sum"), ("y", "variance", "rstd", "sum")]),
    # Residuals.
    *product("residual", op=ops, operands="rgb", results=("y", "mean", "rstd", "sum"),
             mean=20.0, shape__axes=[((5, 129), (1,)), ((4, 1023), (1,)), ((4, 7, 9), (0, 2))],
             type__options=[
                 ("f64", {}), ("f32", {}), ("f16", {}), ("bf16", {}),
                 ("f16", dict(sum_rounding="compute")), ("bf16", dict(sum_rounding="compute")),
                 ("f32", dict(sum_rounding="compute", compute="f64"))]),
    *product("residual", op=ops, dynamic=["all"], operands="rgb", results=("y", "sum"),
             type=["f32", "bf16"], shape=(5, 129), axes=(1,)),
    *product("residual-types", op=ops, operands="rgb", results=("y", "rstd", "sum"),
             shape=(5, 65), axes=(1,), type__residual_type__options=[
                 ("bf16", "f32", {}), ("f32", "bf16", {}), ("f16", "bf16", {}),
                 ("bf16", "f16", dict(sum="f32")), ("bf16", "bf16", dict(sum="f32")),
                 ("bf16", "f32", dict(sum_rounding="compute")),
                 ("f32", "f32", dict(sum="bf16", result="bf16")), ("f32", "f64", {})]),
    # Types.
    *product("types", op=ops, shape=(5, 65), axes=(1,), type=["f16", "bf16", "f32"],
             parameter_type=["f16", "bf16", "f32"], results=("y", "rstd")),
    *product("types", op=ops, shape=(5, 65), axes=(1,), results=("y", "rstd"),
             type__parameter_type__options=[
                 ("bf16", "f32", dict(result="f32")), ("bf16", "bf16", dict(result="f32")),
                 ("f32", "f32", dict(result="bf16")), ("f32", "f32", dict(result="f16")),
                 ("f16", "f16", dict(result="bf16")), ("f64", "f64", dict(result="f32")),
                 ("f32", "f64", {}), ("f64", "f32", {}), ("f64", "f64", dict(compute="f32")),
                 ("f32", "f32", dict(compute="f64")), ("bf16", "f32", dict(compute="f64")),
                 ("f16", "f16", dict(compute="f64", result="f32"))]),
    *product("narrow", op=ops, shape__axes=[((5, 33), (1,)), ((3, 768), (1,)), ((6, 5, 8), (0, 2))],
             results=all_results, mean=0.75, type__options=[
                 ("bf16", dict(compute="bf16", epsilon=0.25)),
                 ("f16", dict(compute="f16", epsilon=0.25)),
                 ("f32", dict(compute="bf16", epsilon=0.25)),
                 ("f64", dict(compute="f16", epsilon=0.25)),
                 ("bf16", dict(compute="bf16", affine_in="result", result="f32")),
                 ("bf16", dict(compute="bf16", epsilon=0.25, scale_offset=1.0,
                               placement="outside_sqrt"))]),
    # The other attributes.
    *product("offset", op=ops, type=["f64", "f32", "f16", "bf16"], shape=(5, 65), axes=(1,),
             options=[dict(scale_offset=1.0), dict(scale_offset=-0.75),
                      dict(scale_offset=1.0, affine_in="result")]),
    *product("correction", op=["layer_norm"], type=["f64", "f32", "bf16"], results=all_results,
             shape__axes=[((5, 2), (1,)), ((5, 65), (1,)), ((3, 4, 5), (0, 2))],
             options=dict(correction=1)),
    *product("correction", op=["layer_norm"], results=all_results, dynamic=["all"],
             shape__axes=[((5, 1), (1,)), ((5, 65), (1,))], options=dict(correction=1)),
    *product("affine-in", op=ops, operands=["g", "b", "gb"], shape__axes=[
        ((5, 65), (1,)), ((3, 1023), (1,))], type__parameter_type__options=[
            ("bf16", "bf16", dict(affine_in="result")), ("f16", "f16", dict(affine_in="result")),
            ("bf16", "f32", dict(affine_in="result", result="f32")),
            ("f16", "bf16", dict(affine_in="result", result="f32")),
            ("f32", "f32", dict(affine_in="result")), ("f64", "f64", dict(affine_in="result")),
            ("bf16", "f32", dict(affine_in="result"))]),
    # Scales near the ends of the range, and rows chosen to hurt.
    *product("scale", op=ops, std__mean__shape=[
        (1e-30, 0.0, (4, 129)), (1e18, 0.0, (4, 100)), (1e18, 3e18, (4, 17)),
        (1e-18, 0.0, (4, 129)),
        (1e-3, 1.0, (4, 768))], axes=(1,), results=all_results),
    *product("scale", op=ops, type=["f64"], std=[1e-300, 1e-120, 1e150], mean=0.0,
             shape=(4, 129), axes=(1,), results=all_results),
    *product("scale", op=ops, type=["f16"], std__mean=[(1e-7, 0.0), (1e4, 1e4)],
             shape=(4, 129), axes=(1,)),
    *product("hostile", op=ops, data=[
        "constant", "large_constant", "zero", "alternating", "far_start", "zero_start", "ramp",
        "outlier", "nearly_constant", "mixed"], shape__axes=[
            ((8, 257), (1,)), ((8, 4096), (1,)), ((8, 4099), (1,))],
             results=all_results, paths=("cpu", "reference")),
    *product("hostile-columns", op=["layer_norm"], data=["constant", "alternating", "mixed"],
             shape__axes=[((300, 9), (0,)), ((17, 24, 11), (0, 2))], results=all_results,
             paths=("cpu", "reference")),
    *product("hostile-16", op=ops, type=["f16", "bf16"], data=["constant", "zero", "outlier"],
             shape=(8, 1027), axes=(1,), paths=("cpu", "reference")),
    *product("not-finite", op=ops, type=["f32", "bf16", "f64"], data="not_finite",
             shape__axes=[((16, 41), (1,)), ((16, 768), (1,)), ((41, 5), (0,))],
             results=all_results),
    # Memory layouts.
    *product("layout", op=ops, type=["f32"], layout=["fortran", "slice", "transpose"],
             results=("y", "rstd"), shape__axes=[((9, 129), (1,)), ((6, 7, 80), (0, 2))]),
    *product("layout", op=ops, type=["bf16"], layout=["fortran", "slice", "transpose"],
             results=("y", "rstd"), paths=("cpu",), shape__axes=[
                 ((9, 129), (1,)), ((9, 129), (0,)), ((6, 7, 80), (2,)), ((6, 7, 80), (0, 1)),
                 ((6, 7, 80), (1,)), ((300, 257), (1,))]),
    *product("layout", op=ops, layout=["fortran"], dynamic=["all"], operands="rgb",
             results=("y", "rstd", "sum"), shape__axes=[((9, 129), (1,)), ((6, 7, 80), (0, 2))]),
    # Row counts around tiles and threads, and arrays larger than the caches.
    *product("rows", op=ops, type=["f32", "bf16"], results=("y", "rstd"), paths=("cpu",),
             shape__axes=[((n, 48), (1,)) for n in (1, 2, 3, 4, 5, 23, 67, 257, 4099)]),
    *product("rows", op=ops, results=("y", "rstd"), paths=("cpu",), dynamic=["all"],
             shape__axes=[((1, 48), (1,)), ((67, 48), (1,)), ((4099, 17), (1,))]),
    *product("large", op=ops, type=["f32", "bf16"], results=("y", "rstd"),
             paths=("cpu",), shape__axes=[((2049, 1024), (1,)), ((1024, 2049), (0,))]),
    *product("large", op=ops, operands="rgb", results=("y", "sum"), shape=(1031, 1025), axes=(1,),
             paths=("cpu",)),
    # Nothing to do.
    *product("empty", op=ops, results=all_results, dynamic=["no", "all"], shape__axes=[
        ((3, 0), (1,)), ((0, 8), (1,)), ((0, 0), (1,)), ((2, 0, 3), (0, 2)), ((2, 0, 3), (1,)),
        ((2, 0, 3), (0, 1, 2))], options=[dict(epsilon=0.25)]),
]

assert len({case.name for case in TABLE}) == len(TABLE)
