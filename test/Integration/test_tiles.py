"""Tiles of any linalg ops that norm-vectorize takes, run and compared with NumPy.

Extents are odd, and longer than a vector of 8 columns: whole vectors and masked
rests. Each runs with static and with dynamic extents."""

import numpy as np
import pytest
from norm.tools import run, tool
from tile_program import Tile

EPS = 2.0**-24


def execute(directory, tile, inputs):
    """The outputs of the tile's loop on the inputs."""
    source = directory / "module.mlir"
    source.write_text(tile.text())
    command = [tool("norm-run"), source, "--target=cpu"]
    for number, array in enumerate(inputs):
        np.save(directory / f"input{number}.npy", array)
        command.append(f"--input={directory / f'input{number}.npy'}")
    outputs = [directory / f"output{number}.npy" for number in range(len(tile.outputs))]
    run(command + [f"--output={path}" for path in outputs])
    return [np.load(path) for path in outputs]


def compare(found, expected, tolerance=1e-5):
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def floats(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def masks(seed, *shape):
    return np.random.default_rng(seed).integers(0, 2, shape).astype(bool)


FORMS = pytest.mark.parametrize("is_dynamic", [False, True], ids=["static", "dynamic"])
SUB, MUL = "%r = arith.subf %a, %b : f32", "%r = arith.mulf %a, %b : f32"


@FORMS
@pytest.mark.parametrize("width", [5, 16, 37])
@pytest.mark.parametrize("rows", [1, 3])
def test_rows_without_reduction(rows, width, is_dynamic, tmp_path):
    tile = Tile({"m": 6, "n": width}, {"m": rows}, rows, dynamic="n" if is_dynamic else "")
    x, b = tile.given("mn"), tile.given("n")
    tile.output(tile.op([x, b], "mn", SUB))
    arrays = floats(0, 6, width), floats(1, width)
    compare(execute(tmp_path, tile, arrays), [arrays[0] - arrays[1]])


@FORMS
def test_long_columns_without_reduction(is_dynamic, tmp_path):
    """One tile: rows and columns are both swept; outputs along either alone."""
    tile = Tile({"z": 1, "m": 5, "n": 21}, {"z": 1}, dynamic="mn" if is_dynamic else "")
    x, b, c = tile.given("mn"), tile.given("n"), tile.given("m")
    square = tile.op([c], "m", "%r = arith.mulf %a, %a : f32")
    for name in (square, tile.op([x, b], "mn", SUB), tile.op([b], "n", "%r = math.absf %a : f32"),
                 tile.op([x, square], "mn", MUL)):
        tile.output(name)
    arrays = x, b, c = floats(0, 5, 21), floats(1, 21), floats(2, 5)
    compare(execute(tmp_path, tile, arrays), [c * c, x - b, abs(b), x * (c * c)[:, None]])


def test_no_elements_along_a_swept_axis(tmp_path):
    tile = Tile({"z": 1, "m": 5, "n": 0}, {"z": 1}, dynamic="mn")
    x, k, c = tile.given("mn"), tile.given("mn", "i1"), tile.given("m")
    tile.output(tile.op([c], "m", "%r = arith.mulf %a, %a : f32"))
    tile.output(tile.op([x, k, c], "mn", "%r = arith.select %b, %a, %c : f32"))
    arrays = floats(0, 5, 0), masks(1, 5, 0), floats(2, 5)
    compare(execute(tmp_path, tile, arrays), [arrays[2] ** 2, arrays[0]])


INFERENCE = {"nchw": ({"n": 3, "c": 5, "h": 4, "w": 13}, 1), "nhwc":
             ({"n": 3, "h": 4, "w": 5, "c": 13}, 8)}


@FORMS
@pytest.mark.parametrize("layout", INFERENCE)
def test_batch_norm_inference(layout, is_dynamic, tmp_path):
    extents, step = INFERENCE[layout]
    tile = Tile(extents, {"c": step}, dynamic=layout if is_dynamic else "")
    x, mean, rstd = tile.given(layout), tile.given("c"), tile.given("c")
    tile.output(tile.op([x, mean, rstd], layout,
                        "%s = arith.subf %a, %b : f32\n%r = arith.mulf %s, %c : f32"))
    tile.output(tile.op([mean, rstd], "c", MUL))
    c = extents["c"]
    x, mean, rstd = arrays = floats(0, *extents.values()), floats(1, c), floats(2, c)
    shape = [c if axis == "c" else 1 for axis in layout]
    compare(execute(tmp_path, tile, arrays),
            [(x - mean.reshape(shape)) * rstd.reshape(shape), mean * rstd])


@FORMS
@pytest.mark.parametrize("rows", [1, 2])
def test_statistics_with_unit_dims(rows, is_dynamic, tmp_path):
    """Statistics [M, 1]: as results of reductions, in kept ops, as inputs."""
    tile = Tile({"m": 4, "n": 19}, {"m": rows}, rows, dynamic="n" if is_dynamic else "")
    x, bias = tile.given("mn"), tile.given("m1")
    total = tile.total([x], "m1")
    shifted = tile.op([total, bias], "m1", SUB)
    tile.output(shifted)
    tile.output(tile.op([x, shifted], "mn", SUB))
    tile.output(total)
    x, bias = arrays = floats(0, 4, 19), floats(1, 4, 1)
    total = x.sum(1, keepdims=True)
    compare(execute(tmp_path, tile, arrays), [total - bias, x - (total - bias), total])


@pytest.mark.parametrize("rows", [1, 2])
def test_unit_dim_along_a_reduced_axis_of_extent_1(rows, tmp_path):
    """What has one column reads its statistic [M, 1] element for element."""
    tile = Tile({"m": 4, "n": 1}, {"m": rows}, rows)
    x, bias = tile.given("mn"), tile.given("m1")
    total = tile.total([x], "m1")
    kept = tile.op([total, bias], "m1", SUB)
    for name in (total, kept):
        tile.types[name] = "mn", "f32"
        tile.output(name)
    tile.output(tile.op([x, total, kept], "mn", "%s = arith.addf %a, %b : f32\n"
                        "%r = arith.addf %s, %c : f32"))
    x, bias = arrays = floats(0, 4, 1), floats(1, 4, 1)
    compare(execute(tmp_path, tile, arrays), [x, x - bias, 3 * x - bias])


@FORMS
@pytest.mark.parametrize("step", [1, 8])
def test_unit_dims_around_the_columns(step, is_dynamic, tmp_path):
    """An input [1, N, C, 1] beside [N, C]; sums along either axis."""
    kept, reduced = ("n", "c") if step == 1 else ("c", "n")
    tile = Tile({"n": 5, "c": 13}, {kept: step}, dynamic="c" if is_dynamic else "")
    x, weight = tile.given("1nc1"), tile.given("nc")
    total = tile.total([x, weight], f"{kept}1", MUL.replace("%r", "%s"), "%s")
    tile.output(total)
    tile.output(tile.op([x, total], "1nc", SUB))
    x, weight = arrays = floats(0, 1, 5, 13, 1), floats(1, 5, 13)
    x = x.reshape(5, 13)
    total = (x * weight).sum("nc".index(reduced), keepdims=True)
    compare(execute(tmp_path, tile, arrays), [total.reshape(-1, 1), (x - total)[None]])


def test_operands_that_share_no_axis(tmp_path):
    """A sum over axes that no one tensor has all of."""
    tile = Tile({"z": 1, "m": 5, "n": 11}, {"z": 1})
    one, other = tile.given("m"), tile.given("n")
    tile.output(tile.total([one, other], "1", MUL.replace("%r", "%s"), "%s"))
    one, other = arrays = floats(0, 5), floats(1, 11)
    compare(execute(tmp_path, tile, arrays), [np.array([one.sum() * other.sum()])])


@pytest.mark.parametrize("step", [{"n": 1, "c": 2}, {"n": 2, "c": 1}], ids=["inner", "outer"])
def test_rows_along_either_kept_axis(step, tmp_path):
    tile = Tile({"n": 4, "c": 6, "h": 3, "w": 11}, step, 2)
    x = tile.given("nchw")
    total = tile.total([x], "nc")
    tile.output(total)
    tile.output(tile.op([x, total], "nchw", SUB))
    x = floats(0, 4, 6, 3, 11)
    total = x.sum((2, 3), keepdims=True)
    compare(execute(tmp_path, tile, [x]), [total.reshape(4, 6), x - total])


@FORMS
@pytest.mark.parametrize("axes", ["mn", "nm"])
@pytest.mark.parametrize("rows", [1, 2])
def test_masks(rows, axes, is_dynamic, tmp_path):
    """Counts in i64 and masked sums; rows along columns, and columns of their own."""
    is_row = axes == "mn"
    tile = Tile({a: {"m": 14, "n": 19}[a] for a in axes}, {"m": rows if is_row else 8},
                rows if is_row else 1,
                dynamic=("n" if rows > 1 else "mn") if is_dynamic else "")
    x, mask = tile.given(axes), tile.given(axes, "i1")
    count = tile.total([mask], "m", "%e = arith.extui %a : i1 to i64", "%e", "i64")
    total = tile.total([x, mask], "m", "%z = arith.constant 0.0 : f32\n"
                       "%s = arith.select %b, %a, %z : f32", "%s")
    tile.output(count)
    tile.output(total)
    tile.output(tile.op([x, mask, total], axes, "%s = arith.subf %a, %c : f32\n"
                        "%r = arith.select %b, %s, %a : f32"))
    shape = (14, 19) if is_row else (19, 14)
    x, mask = arrays = floats(0, *shape), masks(1, *shape)
    axis = 1 if is_row else 0
    count, total = mask.sum(axis), np.where(mask, x, 0).sum(axis, keepdims=True)
    found = execute(tmp_path, tile, arrays)
    assert found[0].dtype == np.int64
    np.testing.assert_array_equal(found[0], count)
    compare(found[1:], [np.squeeze(total, axis), np.where(mask, x - total, x)])


@FORMS
def test_mask_along_rows(is_dynamic, tmp_path):
    """A mask [M] that no column has a say in, and one [N] that no row has."""
    tile = Tile({"m": 4, "n": 19}, {"m": 2}, 2, dynamic="n" if is_dynamic else "")
    x, down, across = tile.given("mn"), tile.given("m", "i1"), tile.given("n", "i1")
    tile.output(tile.op([x, down, across], "mn", "%k = arith.andi %b, %c : i1\n"
                        "%n = arith.negf %a : f32\n%r = arith.select %k, %a, %n : f32"))
    x, down, across = arrays = floats(0, 4, 19), masks(1, 4), masks(2, 19)
    compare(execute(tmp_path, tile, arrays), [np.where(down[:, None] & across, x, -x)])


@FORMS
def test_constants(is_dynamic, tmp_path):
    """Outputs that no input has a say in, along every kind of axis."""
    tile = Tile({"c": 5, "h": 3, "w": 11}, {"c": 1}, dynamic="hw" if is_dynamic else "")
    x = tile.given("chw")
    tile.output(tile.op([x], "chw", "%r = arith.negf %a : f32"))
    tile.output(tile.op([], "c", "%r = arith.constant 3.0 : f32"))
    tile.output(tile.filled("c1", "4", "i64"))
    tile.output(tile.filled("chw", "5.0"))
    tile.output(tile.op([], "c", "%r = arith.constant 6 : i64", "i64"))
    x = floats(0, 5, 3, 11)
    compare(execute(tmp_path, tile, [x]),
            [-x, np.full(5, 3.0), np.full((5, 1), 4), np.full(x.shape, 5.0), np.full(5, 6)])


INSTANCE = {"nchw": ({"n": 3, "c": 5, "h": 4, "w": 13}, 1),
            "nhwc": ({"n": 3, "h": 4, "w": 5, "c": 13}, 8)}


@FORMS
@pytest.mark.parametrize("layout", INSTANCE)
def test_statistics_along_a_reduced_axis(layout, is_dynamic, tmp_path):
    """An instance norm's dscale: mean and rstd [N, C] while n is reduced."""
    extents, step = INSTANCE[layout]
    tile = Tile(extents, {"c": step}, dynamic=layout if is_dynamic else "")
    dy, x, mean, rstd = (tile.given(axes) for axes in (layout, layout, "nc", "nc"))
    spread = tile.op([rstd, mean], "nc", MUL)
    dscale = tile.total([dy, x, mean, rstd], "c", "%s = arith.subf %b, %c : f32\n"
                        "%t = arith.mulf %s, %d : f32\n%u = arith.mulf %a, %t : f32", "%u")
    for name in (dscale, tile.total([dy], "c"), spread, tile.op([dy, spread, dscale], layout,
                 "%s = arith.addf %a, %b : f32\n%r = arith.mulf %s, %c : f32")):
        tile.output(name)
    shape = list(extents.values())
    n, c = extents["n"], extents["c"]
    dy, x, mean, rstd = arrays = (floats(0, *shape), floats(1, *shape), floats(2, n, c),
                                  floats(3, n, c))
    where = [extents[a] if a in "nc" else 1 for a in layout]
    reduced = tuple(i for i, a in enumerate(layout) if a != "c")
    m, r = mean.reshape(where), rstd.reshape(where)
    dscale = (dy.astype(np.float64) * (x - m) * r).sum(reduced, keepdims=True)
    compare(execute(tmp_path, tile, arrays),
            [dscale.reshape(-1), dy.sum(reduced), mean * rstd, (dy + m * r) * dscale], 1e-4)


@FORMS
@pytest.mark.parametrize("layout,extents,step", [
    ("nch", {"n": 700, "c": 2, "h": 3}, 1), ("nch", {"n": 3, "c": 2, "h": 9001}, 1),
    ("nc", {"n": 20000, "c": 3}, 8)], ids=["outer", "inner", "lanes"])
def test_sums_are_blocked(layout, extents, step, is_dynamic, tmp_path):
    """Chains of at most 128 additions: equal terms, whose errors do not cancel."""
    tile = Tile(extents, {"c": step}, dynamic=layout if is_dynamic else "")
    x = tile.given(layout)
    tile.output(tile.total([x], "c"))
    x = np.full(list(extents.values()), 0.1, np.float32)
    expected = x.astype(np.float64).sum(tuple(i for i, a in enumerate(layout) if a != "c"))
    compare(execute(tmp_path, tile, [x]), [expected], 64 * EPS * len(layout))
