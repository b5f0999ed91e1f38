"""Public wishes for features of norms, as what they must compute; see test_case_a.py."""

import re

import ml_dtypes
import numpy as np
import pytest
from case_tools import (
    ALL_GRADIENTS,
    LINALG,
    TILES,
    batch,
    count,
    group,
    ir,
)
from norm.compiled import Compiled
from norm.golden import STATISTICS, array, call, golden, layer, near, rms, same_bits
from norm.program import module_text
from norm.runner import run_calls
from norm.tools import ToolError, norm_opt
from norm.types import cast, float_type, widen

RNG = np.random.default_rng(4206)

# ---- E1, E2 --------------------------------------------------------------------------

E1 = np.array([1, 2, 3, 4]).reshape(1, 2, 2)
ROOT = 1 / np.sqrt(7.5 + 0.8)
WEIGHT = np.array([[1, 2], [3, 4]])


@golden(rms([[1, 2, 3, 4]], epsilon=0.8, scale=[1, 2, 3, 4], results=("y", "rstd")),
        rms(E1, axes=[1, 2], epsilon=0.8, scale=WEIGHT, results=("y", "rstd")),
        rms(E1, axes=[1, 2], epsilon=0.8, scale=WEIGHT),
        rms(E1, axes=[1, 2], epsilon=0.8, scale=WEIGHT, dynamic=(0, 1, 2)),
        call("rms_norm_backward", E1, axes=(1, 2), epsilon=0.8, dy=E1 + 1, scale=WEIGHT,
             rstd=[ROOT], results=ALL_GRADIENTS[:2]),
        call("rms_norm_backward", E1, axes=(1, 2), epsilon=0.8, dy=E1 + 1, scale=WEIGHT,
             results=ALL_GRADIENTS[:2]),
        rms(E1.transpose(1, 0, 2), axes=[0, 2], epsilon=0.8, scale=WEIGHT))
def test_case_E1_rms_norm_with_its_root(got):
    """case-E1: llvm/torch-mlir#4206, iree-org/fusilli PR 248, onnx/onnx PR 6443. An RMS norm as an
    op of its own, over several axes, with 1/rms as a result for the gradient, which reads it
    instead of computing it again."""
    for results in got[:4]:
        near(results["y"].ravel(), np.array([1, 4, 9, 16]) * ROOT)
        if "rstd" in results:
            near(results["rstd"], [ROOT])
    same_bits(got[1]["y"], got[2]["y"])
    near(got[6]["y"].ravel(), np.array([1, 4, 9, 16]) * ROOT)
    x, dy = E1.ravel(), E1.ravel() + 1
    g, xhat = dy * WEIGHT.ravel(), x * ROOT
    for results in got[4:6]:
        near(results["dx"].ravel(), ROOT * (g - xhat * (g * xhat).mean()), 2e-6)
        near(results["dscale"].ravel(), dy * xhat, 1e-6)


OFFSET = dict(scale=[0, 0], scale_offset=1.0, epsilon=0.0)
DY34 = [[1.0, 0]]


@golden(rms([3, 4], **OFFSET), layer([3, 4], **OFFSET),
        rms([3, 4], "bf16", scale=[0.5, 0.25], scale_offset=1.0, epsilon=0.0),
        rms([3, 4], "bf16", scale=[0.5, 0.25], scale_offset=1.0, epsilon=0.0, affine_in="result"),
        call("l2_norm", [3, 4], **OFFSET), rms([1, 2], residual=[2, 2], **OFFSET),
        *(call(f"{kind}_norm_backward", [[3.0, 4]], dy=DY34, epsilon=0.0, results=ALL_GRADIENTS[:2],
               **scale) for kind in ("rms", "layer") for scale in (
                   dict(scale=[0.5, 0.25], scale_offset=1.0), dict(scale=[1.5, 1.25]))),
        group([[[3, 4], [4, 3]]], 1, scale=[0, 0], scale_offset=1.0, epsilon=0.0),
        batch([[3.0], [4]], scale=[0], scale_offset=1.0, epsilon=0.0))
def test_case_E2_weight_stored_minus_one(got):
    """case-E2: NVIDIA/TransformerEngine#577, pytorch/executorch PR 22444. Weights stored as gamma
    minus one: the flag was lost in a conversion, and every output was wrong from the first
    layer on. `scale_offset` is part of every op; dx uses 1 + gamma, dgamma does not change."""
    near(got[0]["y"], [0.8485281, 1.1313708])
    near(got[1]["y"], [-1, 1])
    for results in got[2:4]:
        near(results["y"], array([0.8485281 * 1.5, 1.1313708 * 1.25], "bf16").astype(np.float64),
             8e-3)
    near(got[4]["y"], [0.6, 0.8])
    near(got[5]["y"], [0.8485281, 1.1313708])
    for offset, plain in (got[6:8], got[8:10]):
        near(offset["dx"], plain["dx"], 1e-6)
        near(offset["dscale"], plain["dscale"], 1e-6)
    near(got[10]["y"].ravel(), [-1, 1, 1, -1])
    near(got[11]["y"].ravel(), [-1, 1])


SURVIVES = [rms(np.ones((2, 4)), scale=np.ones(4), scale_offset=1.0),
            call("layer_norm_backward", np.ones((2, 4)), dy=np.ones((2, 4)), scale=np.ones(4),
                 scale_offset=1.0)]


@pytest.mark.parametrize("passes", [
    (), ("--canonicalize", "--cse"), ("--mlir-print-op-generic",), ("--norm-fuse-residual",),
    ("--norm-simplify=fp-policy=real",), TILES], ids=lambda passes: " ".join(passes) or "none")
def test_case_E2_offset_survives(passes):
    text = module_text(SURVIVES)
    assert norm_opt(norm_opt(text, *passes)).count("scale_offset") == 2


# ---- E4 ------------------------------------------------------------------------------

XS, RS, DY, DSUM = RNG.standard_normal((4, 3, 17))
GAMMA = 1 + RNG.standard_normal(17) / 4
KINDS = ("layer_norm", "rms_norm", "l2_norm")


def loss(kind, x, r):
    """A number whose gradient has both parts: of y and of the sum."""
    s = x + r
    c = s - s.mean(1, keepdims=True) if kind == "layer_norm" else s
    q = (c * c).sum(1, keepdims=True) if kind == "l2_norm" else (c * c).mean(1, keepdims=True)
    return (DY * c / np.sqrt(q + 0.01) * GAMMA).sum() + (DSUM * s).sum()


def slope(kind):
    """dx by central differences."""
    found, step = np.empty_like(XS), 1e-5
    for place in np.ndindex(*XS.shape):
        moved = np.zeros_like(XS)
        moved[place] = step
        found[place] = (loss(kind, XS + moved, RS) - loss(kind, XS - moved, RS)) / (2 * step)
    return found


@golden(*(call(f"{kind}_backward", XS + RS, "f64", dy=DY, dsum=DSUM, scale=GAMMA, epsilon=0.01)
          for kind in KINDS),
        *(call(f"{kind}_backward", XS, "f64", residual=RS, sum_rounding="compute", dy=DY,
               dsum=DSUM, scale=GAMMA, epsilon=0.01) for kind in KINDS),
        call("layer_norm_backward", XS + RS, "f64", dy=DY, scale=GAMMA, epsilon=0.01))
def test_case_E4_two_gradients_come_in(got):
    """case-E4: linkedin/Liger-Kernel PR 812, Dao-AILab/flash-attention#554, Dao-AILab/quack PR 39.
    Residual addition in, its sum out, and back: the gradients of y and of the sum meet in one
    op. Against finite differences, with both of them there."""
    for number, kind in enumerate(KINDS):
        expected = slope(kind)
        near(got[number]["dx"], expected, 1e-8)
        near(got[number + 3]["dx"], expected, 1e-8)
    near(got[0]["dx"] - got[6]["dx"], DSUM, 1e-12)


def stores(made):
    """What the tiles of a call give back to memory."""
    return count(r"tensor\.parallel_insert_slice", ir([made], *TILES, "--canonicalize"))


@pytest.mark.parametrize("kind", [layer, rms], ids=["layer_norm", "rms_norm"])
def test_case_E4_what_is_not_used_is_not_stored(kind):
    """The last block wants no sum, the first has no residual."""
    x = np.zeros((64, 256))
    assert stores(kind(x)) == stores(kind(x, residual=x)) == 1
    assert stores(kind(x, residual=x, results=("y", "sum"))) == 2
    unused = module_text([kind(x, residual=x, results=("y", "sum"))])
    unused = unused.replace("-> (tensor<64x256xf32>, tensor<64x256xf32>) {",
                            "-> tensor<64x256xf32> {")
    unused = re.sub(r"return (\S+), \S+ : (\S+), .*", r"return \1 : \2", unused)
    text = norm_opt(unused, "--canonicalize", *TILES, "--canonicalize")
    assert count(r"tensor\.parallel_insert_slice", text) == 1


SCALED = """
func.func @main(%x: {T}, %r: {T}, %k: {T}, %half: {T}) -> ({T}, {T}) {
  %e = tensor.empty() : {T}
  %d = linalg.mul ins(%x, %k : {T}, {T}) outs(%e : {T}) -> {T}
  %h = linalg.mul ins(%d, %half : {T}, {T}) outs(%e : {T}) -> {T}
  %s = linalg.add ins(%h, %r : {T}, {T}) outs(%e : {T}) -> {T}
  %y = norm.layer_norm %s axes [1] epsilon inside_sqrt 1.0e-5 : {T} -> {T}
  return %y, %s : {T}, {T}
}
""".replace("{T}", "tensor<64x256xf32>")


def test_case_E4_dropout_and_scale_before_the_addition():
    """A mask and a factor before it are producers in the same loop."""
    text = norm_opt(SCALED, "--norm-fuse-residual", *TILES, "--canonicalize")
    assert count(r"scf\.forall \(", text) == 1 and "residual(" in text
    assert not re.search(r"^    %\S+ = linalg\.", text, re.M), text


# ---- E7, E8 --------------------------------------------------------------------------

HALVES = RNG.standard_normal((5, 48)) * 3 + 1
GRADIENT = RNG.standard_normal((5, 48))


def both(kind, element, **rest):
    """A call on 16-bit data, and the same values as f32."""
    arrays = {name: array(values, element) for name, values in rest.items()
              if isinstance(values, np.ndarray)}
    others = {name: values for name, values in rest.items() if name not in arrays}
    x = array(HALVES, element)
    wide = {name: array(widen(values)) for name, values in arrays.items()}
    return (call(kind, x, **arrays, **others), call(kind, array(widen(x)), **wide, **others))


@golden(*(one for element in ("bf16", "f16") for pair in (
    both("layer_norm", element, results=STATISTICS), both("rms_norm", element, scale=HALVES[0]),
    both("batch_norm_training", element, axes=(0,)),
    both("layer_norm_backward", element, dy=GRADIENT, scale=HALVES[0]),
    both("rms_norm_backward", element, dy=GRADIENT)) for one in pair), paths=("cpu", "reference"))
def test_case_E7_statistics_of_16_bit_data(got):
    """case-E7: pytorch/pytorch PR 77407, pytorch/pytorch PR 139923, llvm/torch-mlir PR 4168. Saved
    statistics of bf16 data were f32 on one device and bf16 on another, and a decomposition
    mixed both up. They are f32, so that a norm of 16-bit values is the rounded norm of the
    same values in f32, forward and backward."""
    for narrow, wide in zip(got[::2], got[1::2], strict=True):
        for name, values in narrow.items():
            if name in ("y", "dx"):
                element = float_type(values.dtype)
                off = np.abs(widen(values) - widen(cast(widen(wide[name]), element)))
                assert (off <= element.eps * np.abs(widen(values))).all()
                assert (off == 0).mean() > 0.99
            else:
                assert values.dtype == np.float32
                near(values, wide[name], 1e-6)


def test_case_E7_the_types_are_checked():
    """Narrower statistics are refused, f32 ones of 16-bit data are taken as they are."""
    x = np.zeros((4, 8))
    for name in STATISTICS[1:]:
        text = module_text([layer(x, "bf16", results=("y", name))])
        assert f"{name}(tensor<4xf32>)" in text and norm_opt(text)
        with pytest.raises(ToolError, match=f"'{name}' of element type 'f32'"):
            norm_opt(text.replace("tensor<4xf32>", "tensor<4xbf16>"))
    saved = dict(mean=(np.zeros(4), "f32"), rstd=(np.ones(4), "f32"))
    assert ir([call("layer_norm_backward", x, "bf16", dy=x, **saved)])


def parts(*triples):
    """combine_moments of (count, mean, m2) of each part."""
    counts, means, squares = (np.array([[one[i]] for one in triples]) for i in range(3))
    return call("combine_moments", squares.astype(np.float64), "f64", count=counts,
                mean=means.astype(np.float64), results=("count", "mean", "m2"))


@golden(parts((1, 0, 0), (3, 4, 0)), parts((0, 0, 0), (4, 3, 12)), parts((0, 0, 0), (0, 0, 0)),
        parts((1, 2, 0), (1, 6, 0)), parts((1, 0, 0), (1, 4, 0), (0, 0, 0), (2, 4, 0)))
def test_case_E8_combined_counts(got):
    """case-E8: pytorch/pytorch#22192, pytorch/pytorch#36530, NVIDIA/apex#262,
    PaddlePaddle/Paddle#32464. Synchronized batch norm averaged means and variances of unequal
    parts, or failed for a rank with one row or none. Counts, means and squared deviations are
    combined; what matters is the total."""
    for results, expected in zip(got, ((4, 3, 12), (4, 3, 12), (0, 0, 0), (2, 4, 8), (4, 3, 12)),
                                 strict=True):
        for name, value in zip(("count", "mean", "m2"), expected, strict=True):
            near(results[name], [value], 0)


RANKS = [[0.0]], [[4.0], [4], [4]]


@golden(*(call("moments", rank, axes=(0,), results=("count", "mean", "m2")) for rank in RANKS),
        call("rstd", [12.0], count=[4], placement="none", results=("rstd", "variance")),
        *(call("normalize", rank, axes=(0,), mean=[3.0], rstd=[1 / np.sqrt(3)], affine_axes=(1,),
               scale=[2.0]) for rank in RANKS),
        *(call("update_running", [1.0], new=[new], count=[n], statistic=statistic, momentum=0.5)
          for statistic, new in (("mean", 3.0), ("variance", 12.0)) for n in (4, 0)))
def test_case_E8_local_combined_normalized(got):
    """The three steps for ranks with 1 and 3 rows; a total of 0 leaves running values alone."""
    for results, expected in zip(got[:2], ((1, 0, 0), (3, 4, 0)), strict=True):
        for name, value in zip(("count", "mean", "m2"), expected, strict=True):
            near(results[name], [value], 0)
    near(got[2]["variance"], [3], 0)
    near(got[3]["y"], [[-2 * np.sqrt(3)]])
    near(got[4]["y"], [[2 / np.sqrt(3)]] * 3)
    for results, expected in zip(got[5:], (2, 1, 2.5, 1), strict=True):
        near(results["updated"], [expected], 0)


def test_case_E8_parts_are_the_whole(tmp_path):
    """`norm-generalize` cuts a batch norm into parts that exchange these: the same values."""
    x = RNG.standard_normal((12, 5)) * 2 + 7
    whole = batch(x, results=STATISTICS, scale=np.ones(5))
    expected, = run_calls(tmp_path, [whole])
    from norm.tools import norm_run
    cut = norm_opt(module_text([whole]), "--norm-generalize=parts=3")
    assert cut.count("norm.moments") >= 3 and "norm.combine_moments" in cut
    found = norm_run(tmp_path, cut, whole.inputs(), ["f32"] * 4)
    for got, name in zip(found, whole.ordered_results(), strict=True):
        near(got, expected[name], 2e-6)


# ---- E5 ------------------------------------------------------------------------------

# A norm with a residual, then: %k of each element by a map, division, clamp, rounding. Dims
# are rows and columns; or rows, groups and the columns of a group.
QUANTIZED = """
func.func @{name}(%x: {F}, %r: {F}, %g: tensor<{n}xf32>{scale}) -> ({Q}, {F}) {{
  %y, %s = norm.{op} %x residual(%r : {F}) scale(%g : tensor<{n}xf32>) axes [1]
      epsilon inside_sqrt 1.0e-5 : {F} -> {F} sum({F})
{split}
  %e = tensor.empty() : {Q3}
{statistic}
  %q3 = linalg.generic {{indexing_maps = [{all}, affine_map<{d} -> {by}>, {all}],
      iterator_types = [{each}]}} ins(%y3, %scale : {F3}, {S}) outs(%e : {Q3}) {{
  ^bb0(%a: f32, %k: f32, %o: {element}):
    %hi = arith.constant {high} : f32
    %lo = arith.constant {low} : f32
    %d = arith.divf %a, %k : f32
    %c = arith.minimumf %d, %hi : f32
    %b = arith.maximumf %c, %lo : f32
{cast}
    linalg.yield %t : {element}
  }} -> {Q3}
{join}
  return %q, %s : {Q}, {F}
}}
"""
# The scale that makes the largest magnitude of a row or group the largest of the type.
LARGEST = """
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : {S}
  %f = linalg.fill ins(%zero : f32) outs(%es : {S}) -> {S}
  %max = linalg.generic {{indexing_maps = [{all}, affine_map<{d} -> {by}>],
      iterator_types = [{kinds}]}} ins(%y3 : {F3}) outs(%f : {S}) {{
  ^bb0(%a: f32, %o: f32):
    %p = math.absf %a : f32
    %t = arith.maximumf %p, %o : f32
    linalg.yield %t : f32
  }} -> {S}
  %scale = linalg.generic {{indexing_maps = [affine_map<{dims}>, affine_map<{dims}>],
      iterator_types = [{parallel}]}} ins(%max : {S}) outs(%es : {S}) {{
  ^bb0(%a: f32, %o: f32):
    %hi = arith.constant {high} : f32
    %t = arith.divf %a, %hi : f32
    linalg.yield %t : f32
  }} -> {S}"""
CASTS = {"f8E4M3FN": "    %t = arith.truncf %b : f32 to f8E4M3FN",
         "i8": "    %n = math.roundeven %b : f32\n    %t = arith.fptosi %n : f32 to i8"}
RANGES = {"f8E4M3FN": (-448.0, 448.0), "i8": (-128.0, 127.0)}
SCALES = ("one scale", "a scale of each group", "the largest of each row", "the largest of each "
          "group")
ROWS, GROUPS = 6, 5


def quantized(name, op, n, element, how):
    """A function; n elements a row, in 5 groups or one."""
    groups = GROUPS if "group" in how else 1
    low, high = RANGES[element]
    by, shape = {"one scale": ("()", ""), "a scale of each group": ("(b)", f"{groups}x"),
                 "the largest of each row": ("(a)", f"{ROWS}x"),
                 "the largest of each group": ("(a, b)", f"{ROWS}x{groups}x")}[how]
    letters = by.strip("()").replace(" ", "").split(",") if by != "()" else []
    every, middle, d = "ab", "", "(a, b)"
    if groups > 1:
        every, middle, d = "abc", f"{groups}x", "(a, b, c)"
    words = dict(
        name=name, op=op, n=n, by=by, element=element, low=low, high=high, d=d,
        all=f"affine_map<{d} -> {d}>", cast=CASTS[element], S=f"tensor<{shape}f32>",
        F=f"tensor<{ROWS}x{n}xf32>", Q=f"tensor<{ROWS}x{n}x{element}>",
        F3=f"tensor<{ROWS}x{middle}{n // groups}xf32>",
        Q3=f"tensor<{ROWS}x{middle}{n // groups}x{element}>",
        dims=f"({', '.join(letters)}) -> ({', '.join(letters)})",
        each=", ".join(['"parallel"'] * len(every)),
        parallel=", ".join(['"parallel"'] * len(letters)),
        kinds=", ".join('"parallel"' if a in letters else '"reduction"' for a in every))
    words["split"] = words["join"] = ""
    if groups > 1:
        both = "[[0], [1, 2]]"
        words["split"] = (f"  %y3 = tensor.expand_shape %y {both} output_shape [{ROWS}, {groups}, "
                          f"{n // groups}] : {words['F']} into {words['F3']}")
        words["join"] = f"  %q = tensor.collapse_shape %q3 {both} : {words['Q3']} into {words['Q']}"
    dynamic = "largest" in how
    text = QUANTIZED.format(scale="" if dynamic else f", %scale: tensor<{shape}f32>",
                            statistic=LARGEST.format(**words) if dynamic else "", **words)
    return text if groups > 1 else text.replace("%y3", "%y").replace("%q3", "%q")


def bytes_of(values, element):
    """Clamped and rounded to nearest even, as the bytes of the 8-bit type."""
    values = np.clip(values, *RANGES[element]).astype(np.float32)
    if element == "i8":
        return np.rint(values).astype(np.int8)
    return values.astype(ml_dtypes.float8_e4m3fn).view(np.int8)


QUANTIZERS = [(op, n, element, how) for element in RANGES for how in SCALES
              for op, n in (("layer_norm", 40), ("rms_norm", 35))]


@pytest.mark.parametrize("path", ["cpu", "reference", "linalg"])
def test_case_E5_norm_then_quantize(path, tmp_path):
    """case-E5: flashinfer-ai/flashinfer PR 2243, vllm-project/vllm PR 27883,
    ROCm/TransformerEngine PR 249. A norm whose result is quantized to 8 bits: values beyond the
    largest must be clamped first, where the type has no infinity; scales of rows or groups come
    from the result before it is rounded, and padding is not part of them; the residual sum
    stays as it is. Rounded to nearest even."""
    text = "".join(quantized(f"f{i}", *one) for i, one in enumerate(QUANTIZERS))
    if path == "linalg":
        text = norm_opt(text, LINALG)
    library = Compiled(tmp_path, text, "--norm-to-reference" if path == "reference"
                       else "--norm-to-cpu=strides=unit")
    rng = np.random.default_rng(2243)
    for number, (op, n, element, how) in enumerate(QUANTIZERS):
        x, r = (rng.standard_normal((ROWS, n)).astype(np.float32) for _ in range(2))
        g = (np.abs(rng.standard_normal(n)) * 100 + 300).astype(np.float32)
        x[0] -= 9  # an RMS norm of negative values: padding would be the largest
        groups = GROUPS if "group" in how else 1
        total = x + r
        s = total.astype(np.float64)
        c = s - s.mean(1, keepdims=True) if op == "layer_norm" else s
        y = (c / np.sqrt((c * c).mean(1, keepdims=True) + 1e-5) * g).reshape(ROWS, groups, -1)
        given = []
        if how == "one scale":
            scale = np.array(2 if element == "i8" else 1, np.float32)
            given = [scale]
        elif how == "a scale of each group":
            given = [(rng.random(groups) + 1).astype(np.float32)]
            scale = given[0][:, None]
        else:
            axes = (1, 2) if "row" in how else (2,)
            scale = np.abs(y).max(axes, keepdims=True) / RANGES[element][1]
        expected = bytes_of(y / scale, element).reshape(ROWS, n)
        q, kept = np.full((ROWS, n), 0x55, np.int8), np.full((ROWS, n), np.nan, np.float32)
        library([x, r, g, *given], [q, kept], f"f{number}")
        same_bits(kept, total)
        # Next to a tie the last bit of y decides.
        assert (q != expected).mean() < 0.02, (path, op, element, how)
        if element == "f8E4M3FN":
            q, expected = (b.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
                           for b in (q, expected))
            assert np.isfinite(q).all() and np.abs(q).max() == 448
            assert (np.abs(q - expected) <= np.abs(expected) / 8 + 2**-9).all()
        else:
            assert np.abs(q.astype(int) - expected.astype(int)).max() <= 1
        if "scale" in how:
            assert (np.abs(y / scale) > RANGES[element][1]).any()


def test_case_E5_by_hand(tmp_path):
    """[1, 2, 3] with a gain of 400 is +-489.9: +-448 after the clamp, not NaN."""
    text = quantized("main", "layer_norm", 3, "f8E4M3FN", "one scale").replace("6x", "1x")
    q, kept = np.empty((1, 3), np.int8), np.empty((1, 3), np.float32)
    row, zero = np.array([[1, 2, 3]], np.float32), np.zeros((1, 3), np.float32)
    for number, pipeline in enumerate(("--norm-to-cpu", "--norm-to-reference")):
        library = Compiled(tmp_path / str(number), text, pipeline)
        library([row, zero, np.full(3, 400, np.float32), np.array(1, np.float32)], [q, kept])
        assert (q.view(ml_dtypes.float8_e4m3fn).astype(np.float64) == [[-448, 0, 448]]).all()


@pytest.mark.parametrize("how", ["one scale", "the largest of each row"])
@pytest.mark.parametrize("element", RANGES)
def test_case_E5_is_one_loop(element, how):
    """The quantization, and the largest of a row, belong to the tile of the norm."""
    text = quantized("main", "rms_norm", 40, element, how)
    tiled = norm_opt(text, *TILES, "--canonicalize")
    assert count(r"scf\.forall \(", tiled) == 1
    assert not re.search(r"^    %\S+ = linalg\.generic", tiled, re.M), tiled
