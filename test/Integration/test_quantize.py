"""Quantization after a norm: the same loop nest, right where values saturate.

Static scales to i8 and f8E4M3FN, and a scale for each row from the largest magnitude
of the row's unquantized result. f8E4M3FN has no infinity: what is not clamped to
+-448 becomes NaN.
"""

from functools import partial

import ml_dtypes
import numpy as np
import pytest
from neighbours import check_one_nest, run_both
from norm.tools import norm_run

F8 = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}
FLOATS = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
          "f64": np.float64}


def narrow(source, target, count):
    return f"""
func.func @main(%x: tensor<{count}x{source}>) -> tensor<{count}x{target}> {{
  %y = arith.truncf %x : tensor<{count}x{source}> to tensor<{count}x{target}>
  return %y : tensor<{count}x{target}>
}}
"""


def same_bits(got, want):
    """Equal patterns, any NaN for a NaN."""
    nan = np.isnan(want.astype(np.float32))
    assert np.array_equal(np.isnan(got.astype(np.float32)), nan)
    assert np.array_equal(got.view(np.uint8)[~nan], want.view(np.uint8)[~nan])


@pytest.mark.parametrize("target", F8)
@pytest.mark.parametrize("source", ["f16", "bf16"])
def test_narrows_every_16_bit_number(source, target, tmp_path):
    x = np.arange(2**16, dtype=np.uint16).view(FLOATS[source])
    (got,) = norm_run(tmp_path, narrow(source, target, x.size), [x], [target])
    same_bits(got, x.astype(np.float32).astype(F8[target]))


@pytest.mark.parametrize("target", F8)
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_narrows_ties_and_their_neighbours(source, target, tmp_path):
    numbers = np.arange(128, dtype=np.uint8).view(F8[target]).astype(np.float64)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    numbers = np.append(numbers, 2 * numbers[-1] - numbers[-2])
    halfway = (numbers[1:] + numbers[:-1]) / 2
    x = np.concatenate([numbers, halfway]).astype(FLOATS[source])
    x = np.concatenate([x, np.nextafter(x, np.inf, dtype=x.dtype),
                        np.nextafter(x, -np.inf, dtype=x.dtype), [np.inf, 1e30]])
    x = np.concatenate([x, -x]).astype(FLOATS[source])
    (got,) = norm_run(tmp_path, narrow(source, target, x.size), [x], [target])
    # From f64 in one step: above a tie is above, however little.
    want = x.astype(F8[target]) if source == "f32" else narrow_f64(x, F8[target])
    same_bits(got, want)


def narrow_f64(x, dtype):
    """To nearest even, the candidates compared exactly."""
    grid = np.arange(128, dtype=np.uint8).view(dtype).astype(np.float64)
    finite = np.isfinite(grid)
    grid, patterns = grid[finite], np.arange(128, dtype=np.uint8)[finite]
    beyond = 2 * grid[-1] - grid[-2]
    grid, patterns = np.append(grid, beyond), np.append(patterns, patterns[-1] + 1)
    out = np.empty(x.shape, np.uint8)
    for i, value in enumerate(np.abs(x)):
        above = min(int(np.searchsorted(grid, value)), len(grid) - 1)
        below = max(above - 1, 0)
        up, down = grid[above] - value, value - grid[below]
        pick = above if up < down or (up == down and patterns[above] % 2 == 0) else below
        out[i] = patterns[above] if value >= grid[-1] else patterns[pick]
    return (out | (np.signbit(x).astype(np.uint8) << 7)).view(dtype)


@pytest.mark.parametrize("target", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("source", F8)
def test_widens_every_number(source, target, tmp_path):
    x = np.arange(256, dtype=np.uint8).view(F8[source])
    text = f"""
func.func @main(%x: tensor<256x{source}>) -> tensor<256x{target}> {{
  %y = arith.extf %x : tensor<256x{source}> to tensor<256x{target}>
  return %y : tensor<256x{target}>
}}
"""
    (got,) = norm_run(tmp_path, text, [x], [target])
    want = x.astype(np.float32).astype(np.float64)
    np.testing.assert_array_equal(got.astype(np.float64), want)


LIMITS = {"i8": (-128.0, 127.0), "f8E4M3FN": (-448.0, 448.0)}


def static_text(rows, columns, element, target, norm):
    t, to = f"tensor<{rows}x{columns}x{element}>", f"tensor<{rows}x{columns}x{target}>"
    low, high = LIMITS[target]
    rounding = "%b = math.roundeven %a : f32" if target == "i8" else "%b = arith.addf %a, %n : f32"
    convert = "arith.fptosi" if target == "i8" else "arith.truncf"
    widen = "" if element == "f32" else f"%w = arith.extf %v : {element} to f32"
    sizes = "%rows" if rows == "?" else ""
    if columns == "?":
        sizes += ", %columns" if sizes else "%columns"
    return f"""
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%x: {t}, %g: tensor<{columns}x{element}>, %s: f32) -> {to} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = tensor.dim %x, %c0 : {t}
  %columns = tensor.dim %x, %c1 : {t}
  %y = norm.{norm} %x scale(%g : tensor<{columns}x{element}>) axes [1]
      epsilon inside_sqrt 1.0e-5 : {t} -> {t}
  %e = tensor.empty({sizes}) : {to}
  %q = linalg.generic {{indexing_maps = [#id, #id],
      iterator_types = ["parallel", "parallel"]}} ins(%y : {t}) outs(%e : {to}) {{
  ^bb0(%v: {element}, %o: {target}):
    %low = arith.constant {low} : f32
    %high = arith.constant {high} : f32
    %n = arith.constant -0.0 : f32
    {widen}
    %a = arith.divf {"%v" if element == "f32" else "%w"}, %s : f32
    {rounding}
    %c = arith.maximumf %b, %low : f32
    %d = arith.minimumf %c, %high : f32
    %r = {convert} %d : f32 to {target}
    linalg.yield %r : {target}
  }} -> {to}
  return %q : {to}
}}
"""


def assert_quantized_close(got, want):
    """What is rounded differs in its last bits, so few results do, by one step."""
    integers = got.dtype == np.int8
    got, want = got.astype(np.float64), want.astype(np.float64)
    step = 1.0 if integers else np.maximum(np.abs(want), 2.0**-6) / 8
    assert np.all(np.abs(got - want) <= step)
    assert np.mean(got != want) < 0.02


STATIC = [("4", "32", "f32", "rms_norm"), ("5", "33", "f32", "layer_norm"),
          ("3", "5", "f32", "rms_norm"), ("?", "?", "f32", "layer_norm"),
          ("6", "40", "f16", "rms_norm"), ("6", "40", "bf16", "layer_norm")]


@pytest.mark.parametrize("target", LIMITS)
@pytest.mark.parametrize("rows,columns,element,norm", STATIC)
def test_static_scale(rows, columns, element, norm, target, tmp_path):
    text = static_text(rows, columns, element, target, norm)
    check_one_nest(text)
    rng = np.random.default_rng(1)
    shape = tuple(int(n) if n != "?" else d for n, d in zip((rows, columns), (7, 37), strict=True))
    x = rng.standard_normal(shape).astype(FLOATS[element])
    # Some rows saturate, the gain being as large as the range.
    gain = (2 * LIMITS[target][1] * (0.2 + rng.random(shape[1]))).astype(FLOATS[element])
    scale = np.array(0.75, np.float32)
    (got,), (want,) = run_both(tmp_path, text, [x, gain, scale], [target])
    low, high = LIMITS[target]
    assert got.max() == high and got.min() == low
    assert_quantized_close(got, want)


@pytest.mark.parametrize("pipeline", ["cpu", "reference"])
@pytest.mark.parametrize("target,want", [("f8E4M3FN", [-448, 0, 448]), ("i8", [-128, 0, 127])])
def test_saturates(pipeline, target, want, tmp_path):
    x = np.array([[1, 2, 3]], np.float32)
    text = static_text("1", "3", "f32", target, "layer_norm")
    gain = np.full(3, 400, np.float32)
    (got,) = norm_run(tmp_path, text, [x, gain, np.array(1, np.float32)], [target],
                      target=pipeline)
    assert got.astype(np.float64).tolist() == [want]


def dynamic_text(rows, columns, element, target):
    """A scale for each row, its largest magnitude over the type's, and y by it."""
    t, row = f"tensor<{rows}x{columns}x{element}>", f"tensor<{rows}xf32>"
    to = f"tensor<{rows}x{columns}x{target}>"
    low, high = LIMITS[target]
    rounding = "%b = math.roundeven %a : f32" if target == "i8" else "%b = arith.addf %a, %n : f32"
    convert = "arith.fptosi" if target == "i8" else "arith.truncf"
    widen = "" if element == "f32" else f"%w = arith.extf %v : {element} to f32"
    v = "%v" if element == "f32" else "%w"
    row_size = "%rows" if rows == "?" else ""
    sizes = ", ".join(n for n, d in (("%rows", rows), ("%columns", columns)) if d == "?")
    return f"""
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#id1 = affine_map<(d0) -> (d0)>
func.func @main(%x: {t}, %g: tensor<{columns}x{element}>) -> ({to}, {row}, {row}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = tensor.dim %x, %c0 : {t}
  %columns = tensor.dim %x, %c1 : {t}
  %y = norm.rms_norm %x scale(%g : tensor<{columns}x{element}>) axes [1]
      epsilon inside_sqrt 1.0e-5 : {t} -> {t}
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty({row_size}) : {row}
  %f = linalg.fill ins(%zero : f32) outs(%er : {row}) -> {row}
  %amax = linalg.generic {{indexing_maps = [#id, #row],
      iterator_types = ["parallel", "reduction"]}} ins(%y : {t}) outs(%f : {row}) {{
  ^bb0(%v: {element}, %acc: f32):
    {widen}
    %a = math.absf {v} : f32
    %m = arith.maximumf %a, %acc : f32
    linalg.yield %m : f32
  }} -> {row}
  %scale = linalg.generic {{indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}}
      ins(%amax : {row}) outs(%er : {row}) {{
  ^bb0(%a: f32, %o: f32):
    %most = arith.constant {high} : f32
    %least = arith.constant 1.0e-12 : f32
    %m = arith.maximumf %a, %least : f32
    %d = arith.divf %m, %most : f32
    linalg.yield %d : f32
  }} -> {row}
  %e = tensor.empty({sizes}) : {to}
  %q = linalg.generic {{indexing_maps = [#id, #row, #id],
      iterator_types = ["parallel", "parallel"]}}
      ins(%y, %scale : {t}, {row}) outs(%e : {to}) {{
  ^bb0(%v: {element}, %s: f32, %o: {target}):
    %low = arith.constant {low} : f32
    %high = arith.constant {high} : f32
    %n = arith.constant -0.0 : f32
    {widen}
    %a = arith.divf {v}, %s : f32
    {rounding}
    %c = arith.maximumf %b, %low : f32
    %d = arith.minimumf %c, %high : f32
    %r = {convert} %d : f32 to {target}
    linalg.yield %r : {target}
  }} -> {to}
  return %q, %amax, %scale : {to}, {row}, {row}
}}
"""


DYNAMIC = [("4", "32", "f32"), ("5", "33", "f32"), ("3", "5", "f32"), ("?", "?", "f32"),
           ("6", "40", "f16"), ("5", "33", "bf16")]


def shape_of(rows, columns):
    return tuple(int(n) if n != "?" else d for n, d in zip((rows, columns), (7, 37), strict=True))


def check_scale_of_each_row(rows, columns, element, target, run):
    """The largest element of a row is the largest of the type, no more and no less; a row of
    zeros stays one. run(inputs, results): what a path makes of dynamic_text, and the reference."""
    rng = np.random.default_rng(2)
    shape = shape_of(rows, columns)
    x = rng.standard_normal(shape).astype(FLOATS[element])
    x[-1] = 0
    gain = (1e-3 * rng.random(shape[1])).astype(FLOATS[element])
    got, want = run([x, gain], [target, "f32", "f32"])
    for a, b in zip(got[1:], want[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5 if element == "f32" else 1e-2)
    assert got[1][-1] == 0 and np.all(got[1][:-1] > 0)
    if element == "f32":
        assert_quantized_close(got[0], want[0])
    largest = np.abs(got[0].astype(np.float64)).max(axis=1)
    assert np.all(largest[:-1] == LIMITS[target][1]) and largest[-1] == 0


@pytest.mark.parametrize("target", LIMITS)
@pytest.mark.parametrize("rows,columns,element", DYNAMIC)
def test_scale_of_each_row(rows, columns, element, target, tmp_path):
    text = dynamic_text(rows, columns, element, target)
    check_one_nest(text)
    check_scale_of_each_row(rows, columns, element, target, partial(run_both, tmp_path, text))
