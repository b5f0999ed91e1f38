"""Public reports of crashes and miscompiles: ranks, dynamic extents, and the lowering
beneath; see test_case_a.py."""

import itertools
import mmap
import os
import re

import numpy as np
import pytest
from case_tools import (
    ALL_GRADIENTS,
    LINALG,
    TILES,
    VECTORS,
    Library,
    batch,
    count,
    group,
    inference,
    instance,
    ir,
    llvm,
)
from norm.compiled import Compiled
from norm.golden import STATISTICS, array, call, golden, layer, near, rms, same_bits
from norm.program import module_text
from norm.runner import run_calls
from norm.tools import ToolError, norm_opt, norm_run
from norm.types import widen

RNG = np.random.default_rng(665)
BLOCK = RNG.standard_normal((2, 5, 2, 2, 3)) + 3
SUBSETS = [("y", *chosen) for number in range(3)
           for chosen in itertools.combinations(("mean", "rstd"), number)]


@golden(*(layer(BLOCK, axes=[2, 3, 4], results=results) for results in SUBSETS))
def test_case_B1_every_result_alone_and_together(got):
    """case-B1: llvm/torch-mlir#665. The second and third result of a layer norm had the wrong
    shape, and no test looked. Statistics have x's shape without the reduced axes."""
    rows = BLOCK.reshape(2, 5, -1)
    for results in got:
        for name, expected in (("mean", rows.mean(2)), ("rstd", 1 / np.sqrt(rows.var(2) + 1e-5))):
            if name in results:
                near(results[name], expected)
        same_bits(results["y"], got[0]["y"])


CHANNELS = RNG.standard_normal((3, 6, 4, 5)) * 2 - 1
KINDS = (lambda results: group(CHANNELS, 3, results=results),
         lambda results: instance(CHANNELS, results=results),
         lambda results: batch(CHANNELS, axes=(0, 2, 3), results=results))


@golden(*(kind(results) for kind in KINDS for results in (STATISTICS, ("y",), ("y", "rstd"))),
        call("moments", CHANNELS, axes=(1, 3), results=("count", "mean", "m2")),
        call("moments", CHANNELS, axes=(1, 3), results=("m2",)),
        call("moments", CHANNELS, axes=(1, 3), results=("mean",)), paths=("cpu", "linalg"))
def test_case_B1_results_of_the_other_ops(got):
    """A result is the same whether or not others are asked for."""
    for start in (0, 3, 6, 9):
        for results in got[start + 1:start + 3]:
            for name, values in results.items():
                near(values, got[start][name], 1e-7)


def test_case_B1_no_result_is_used():
    for made in (layer(BLOCK, results=STATISTICS), group(CHANNELS, 3, results=STATISTICS),
                 call("rms_norm_backward", BLOCK, dy=BLOCK, scale=np.ones(3),
                      results=ALL_GRADIENTS[:2])):
        text = re.sub(r"-> \([^{]*\{", "{", module_text([made]), count=1)
        text = re.sub(r"return .*", "return", text)
        assert "norm." in norm_opt(text) and "norm." not in norm_opt(text, "--canonicalize")


# ---- B2, B3, B5: shapes --------------------------------------------------------------

def ranks():
    """Channel norms of ranks 2 to 6, with static, dynamic and mixed extents."""
    def data(*shape):
        return RNG.standard_normal(shape) + 2
    made = dict(
        group4=group(data(2, 32, 5, 3), 8, scale=data(32), dynamic=(0, 2, 3)),
        group3=group(data(2, 4, 7), 2, scale=data(4), results=STATISTICS),
        group5=group(data(2, 4, 3, 3, 3), 2, shift=data(4)),
        group2=group(data(5, 12), 3, scale=data(12), dynamic=(0, 1), results=("y", "mean")),
        group6=group(data(2, 6, 2, 3, 2, 2), 3, scale=data(6), dynamic=range(6)),
        last=group(data(2, 5, 3, 8), 4, channel=3, scale=data(8), dynamic=range(4)),
        infer2=inference(data(20, 100), mean=data(100), variance=data(100) ** 2, scale=data(100)),
        infer5=inference(data(2, 3, 4, 5, 2), axes=(0, 2, 3, 4), mean=data(3), shift=data(3),
                         variance=data(3) ** 2, dynamic=(0, 3)),
        train2=batch(data(7, 9), scale=data(9), dynamic=(0,), results=STATISTICS),
        train6=batch(data(2, 3, 2, 2, 2, 3), axes=(0, 2, 3, 4, 5), scale=data(3),
                     dynamic=range(6)))
    for rank in range(3, 7):
        shape = (2, 3, 5, 4, 2, 3)[:rank]
        made[f"instance{rank}"] = instance(data(*shape), scale=data(3), affine_axes=(1,),
                                           dynamic=range(rank), results=("y", "rstd"))
    made["group_gradient"] = call(
        "group_norm_backward", data(2, 6, 3, 5), axes=(1, 2, 3), dy=data(2, 6, 3, 5), groups=3,
        channel_axis=1, scale=data(6), results=ALL_GRADIENTS, dynamic=(0, 2, 3))
    return made


@pytest.mark.parametrize("path", ["cpu", "linalg", "reference"])
def test_case_B2_ranks_and_dynamic_extents(path, tmp_path):
    """case-B2: Xilinx/onnx-mlir PR 131, llvm/torch-mlir PR 3658, onnx/onnx-mlir PR 3030,
    llvm/torch-mlir#1042. Channel norms with two spatial dimensions wired in, or with static
    shapes assumed, crashed or refused legal ranks."""
    library = Library(tmp_path, ranks(), path)
    for name in library.calls:
        library.checked(name)


def test_case_B2_groups_that_do_not_divide_at_run_time(tmp_path):
    """What the verifier cannot see of an unknown number of channels ends in one error."""
    made = group(np.zeros((2, 8, 3)), 4, dynamic=(0, 1, 2))
    with pytest.raises(ToolError, match="groups") as caught:
        norm_run(tmp_path, module_text([made]), [array(np.zeros((2, 6, 3)))], ["f32"])
    assert caught.value.status == 1


ROWS = np.random.default_rng(569).standard_normal((3, 198, 384))
FOLD = "--linalg-fold-unit-extent-dims"


@golden(*(layer(ROWS[:rows], axes=[-1], dynamic=(0,), results=STATISTICS) for rows in (1, 3)),
        paths=("cpu", "reference"))
def test_case_B3_dynamic_batch_static_row(got):
    """case-B3: nod-ai/SHARK-ModelDev#569. Folding unit dims of a decomposed norm of
    ?x198x384 made a statistic static and expanded it back to a dynamic type: invalid IR."""
    for results, rows in zip(got, (1, 3), strict=True):
        assert results["mean"].shape == results["rstd"].shape == (rows, 198)
        near(results["mean"], ROWS[:rows].mean(2))
    same_bits(got[0]["y"], got[1]["y"][:1])


def test_case_B3_folded_unit_extents(tmp_path):
    """norm-opt verifies after every pass."""
    def unit(*shape, dynamic, **rest):
        return layer(RNG.standard_normal(shape) + 1, axes=[len(shape) - 1], dynamic=dynamic,
                     results=("y", "mean", "rstd"), **rest)
    calls = dict(a=unit(1, 198, 96, dynamic=(0,)), b=unit(1, 1, 64, dynamic=(0,)),
                 c=unit(3, 1, 64, dynamic=(0, 2)), d=unit(1, 5, 64, dynamic=(1,)),
                 e=instance(RNG.standard_normal((2, 1, 1, 9)), dynamic=(0, 3), results=STATISTICS),
                 f=group(RNG.standard_normal((1, 4, 1, 9)), 2, dynamic=(0,), results=STATISTICS))
    for number, passes in enumerate(((LINALG, FOLD), (LINALG, "--canonicalize", FOLD, "--cse", FOLD,
                                                      "--canonicalize"))):
        library = Library(tmp_path / str(number), calls, "cpu", passes)
        library.path = "linalg"
        for name in calls:
            library.checked(name)
        library.checked("a", like=unit(3, 198, 96, dynamic=()))
        library.checked("c", like=unit(7, 1, 11, dynamic=()))


X23 = "tensor<2x3xf32>"
REFUSED = {
    "rank 0": ("layer_norm %x axes [-1] epsilon none", "tensor<f32>", "'x' of rank 1 or more"),
    "unranked": ("layer_norm %x axes [-1] epsilon none", "tensor<*xf32>", "tensor"),
    "negative epsilon": ("rms_norm %x axes [1] epsilon inside_sqrt -1.0", X23, "'epsilon' >= 0"),
    "epsilon NaN": ("layer_norm %x axes [1] epsilon inside_sqrt 0x7FF8000000000000", X23,
                    "'epsilon'"),
    "epsilon infinite": ("l2_norm %x axes [1] epsilon outside_sqrt 0x7FF0000000000000", X23,
                         "'epsilon'"),
    "zero under a maximum": ("l2_norm %x axes [1] epsilon max_inside 0.0", X23, "'epsilon' > 0"),
    "gamma of another shape": ("layer_norm %x scale(%g : tensor<3x7xf32>) axes [1, 2, 3, 4] "
                               "epsilon none", "tensor<2x7x8x1x3xf32>",
                               r"'scale' of shape \[7, 8, 1, 3\], got \[3, 7\]"),
    "groups that do not divide": ("group_norm %x groups 4 channel_axis 1 axes [1, 2] epsilon none",
                                  "tensor<2x6x5xf32>", "'groups' to divide the 6 channels"),
    "no groups": ("group_norm %x groups 0 channel_axis 1 axes [1, 2] epsilon none",
                  "tensor<2x6x5xf32>", "'groups' > 0"),
    "no spatial extent": ("instance_norm %x axes [] epsilon none", X23, "axis in 'axes'"),
    "integers": ("rms_norm %x axes [1] epsilon none", "tensor<2x3xi32>", "'x' of element type"),
    "one value to train on": ("batch_norm_training %x axes [0] epsilon none", "tensor<1x3xf32>",
                              "more than 1 value"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_case_B5_refused_politely(fault):
    """case-B5: onnx/onnx#6187, pytorch/pytorch#166405, llvm/torch-mlir PR 470,
    openxla/stablehlo PR 900, ml-explore/mlx PR 3653. Inputs that make no sense ended in
    crashes, asserts or zeros. Each is an error that names what is wrong."""
    op, x, message = REFUSED[fault]
    text = (f"func.func @main(%x: {x}, %g: tensor<3x7xf32>) {{\n"
            f"  %y = norm.{op} : {x} -> {x}\n  return\n}}\n")
    with pytest.raises(ToolError, match=f"error: .*{message}") as caught:
        norm_opt(text)
    assert caught.value.status == 1 and caught.value.stderr.count("error:") == 1


@golden(rms([[3.0, 4]], epsilon=0.0), layer([[3.0, 4]], epsilon=0.0), paths=("cpu", "reference"))
def test_case_B5_epsilon_zero_is_legal(got):
    near(got[0]["y"], [[0.8485281, 1.1313708]])
    near(got[1]["y"], [[-1, 1]])


# ---- B7, B9, B11: what the decomposition emits ---------------------------------------

def every_op(x, element="f32"):
    """One call of each op on x [N, C, L], all results."""
    c = np.ones(x.shape[1])
    gradients = dict(dy=x, scale=c, results=ALL_GRADIENTS)
    yield layer(x, element, scale=np.ones(x.shape[2]), residual=x, results=(*STATISTICS, "sum"))
    yield rms(x, element, axes=(1, 2), results=("y", "variance", "rstd"))
    yield call("l2_norm", x, element, (0,), results=("y", "variance", "rstd"))
    yield group(x, 2, element, scale=c, results=STATISTICS)
    yield instance(x, element, scale=c, affine_axes=(1,), results=STATISTICS)
    yield batch(x, element, (0, 2), scale=c, results=STATISTICS)
    yield inference(x, element, (0, 2), scale=c, mean=(c, "f32"), variance=(c, "f32"))
    yield call("group_norm_backward", x, element, (1, 2), groups=2, channel_axis=1, **gradients)
    yield call("batch_norm_training_backward", x, element, (0, 2), **gradients)
    yield call("layer_norm_backward", x, element, (2,), dy=x, results=ALL_GRADIENTS)
    yield call("l2_norm_backward", x, element, (0,), dy=x)
    yield call("moments", x, element, (0, 2), results=("count", "mean", "m2"))
    yield call("combine_moments", x, "f32", results=("count", "mean", "m2"), mean=x,
               count=np.ones(x.shape))


def test_case_B7_no_map_has_a_constant_result():
    """case-B7: llvm/llvm-project#97247. A reduction that keeps its axis as an extent of 1 has an
    output map with a constant, which the vectorizer asserted on. What norms become reduces to
    the lower rank, whatever the op and whether extents are 1, unknown or neither."""
    for shape in ((3, 4, 5), (1, 4, 1)):
        for dynamic in ((), (0, 1, 2)):
            calls = list(every_op(np.zeros(shape)))
            if shape[0] == 1:
                calls = [c for c in calls if c.spec.norm != "batch_norm_training"]
            for made in calls:
                made.dynamic = dynamic
            maps = re.findall(r"affine_map<\(.*?\) -> \((.*?)\)>", ir(calls, LINALG))
            assert maps and not any(re.fullmatch(r"-?\d+", part.strip()) for results in maps
                                    for part in results.split(","))


KEPT = """
#in = affine_map<(a, b, c, d) -> (a, b, c, d)>
#kept = affine_map<(a, b, c, d) -> (a, b, c, 0)>
func.func @main(%x: tensor<1x3x19x37xf32>) -> (tensor<1x3x19x37xf32>, tensor<1x3x19x1xf32>,
                                               tensor<1x3x19x1xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x3x19x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x3x19x1xf32>) -> tensor<1x3x19x1xf32>
  %s = linalg.generic {indexing_maps = [#in, #kept],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x : tensor<1x3x19x37xf32>) outs(%f : tensor<1x3x19x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<1x3x19x1xf32>
  %y, %m = norm.layer_norm %x axes [3] epsilon inside_sqrt 1.0e-5
      : tensor<1x3x19x37xf32> -> tensor<1x3x19x37xf32> mean(tensor<1x3x19xf32>)
  %k = tensor.expand_shape %m [[0], [1], [2, 3]] output_shape [1, 3, 19, 1]
      : tensor<1x3x19xf32> into tensor<1x3x19x1xf32>
  return %y, %s, %k : tensor<1x3x19x37xf32>, tensor<1x3x19x1xf32>, tensor<1x3x19x1xf32>
}
"""


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_case_B7_statistics_that_keep_their_axis(target, tmp_path):
    """Such a reduction beside a norm, and statistics expanded to that shape, both run."""
    x = array(RNG.standard_normal((1, 3, 19, 37)) + 1)
    y, total, mean = norm_run(tmp_path, KEPT, [x], ["f32"] * 3, target)
    near(total, widen(x).sum(3, keepdims=True), 1e-5)
    near(mean, widen(x).mean(3, keepdims=True))
    wide = widen(x)
    near(y, (wide - wide.mean(3, keepdims=True)) / np.sqrt(wide.var(3, keepdims=True) + 1e-5))


USES = """
func.func @main(%x: tensor<5x37xf32>, %r: tensor<5x37xf32>) -> (tensor<5x37xf32>, tensor<5x37xf32>,
    tensor<5x37xf32>, tensor<5x37xf32>) {
  %e = tensor.empty() : tensor<5x37xf32>
  %y, %m, %i, %s = norm.layer_norm %x residual(%r : tensor<5x37xf32>) axes [1]
      epsilon inside_sqrt 1.0e-5 : tensor<5x37xf32> -> tensor<5x37xf32> mean(tensor<5xf32>)
      rstd(tensor<5xf32>) sum(tensor<5x37xf32>)
  %q = linalg.mul ins(%y, %y : tensor<5x37xf32>, tensor<5x37xf32>)
      outs(%e : tensor<5x37xf32>) -> tensor<5x37xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>,
      affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%s, %m, %i : tensor<5x37xf32>, tensor<5xf32>, tensor<5xf32>)
      outs(%e : tensor<5x37xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %u = arith.subf %a, %b : f32
    %v = arith.mulf %u, %c : f32
    linalg.yield %v : f32
  } -> tensor<5x37xf32>
  return %y, %q, %n, %s : tensor<5x37xf32>, tensor<5x37xf32>, tensor<5x37xf32>, tensor<5x37xf32>
}
"""


def test_case_B9_several_results_and_uses(tmp_path):
    """case-B9: llvm/llvm-project PR 149843, llvm/llvm-project#119868. Elementwise fusion looked
    at the map of the first result where the second was used, and asserted where a producer
    was used twice. Here the sum is returned and normalized, y multiplies itself, mean and rstd
    meet again in one consumer; with and without fusion before and after the lowering."""
    inputs = [array(RNG.standard_normal((5, 37)) + 2) for _ in range(2)]
    fuse = "--linalg-fuse-elementwise-ops"
    elements, s = ["f32"] * 4, widen(inputs[0] + inputs[1])
    y = (s - s.mean(1, keepdims=True)) / np.sqrt(s.var(1, keepdims=True) + 1e-5)
    runs = {}
    for name, passes, target in (
            ("tiles", [], "cpu"), ("reference", [], "reference"), ("loops", [LINALG], "cpu"),
            ("fused loops", [LINALG, fuse, "--canonicalize"], "cpu"),
            ("fused before", [fuse], "cpu")):
        runs[name] = norm_run(tmp_path / name, norm_opt(USES, *passes), inputs, elements, target)
        for got, expected in zip(runs[name], (y, y * y, y, s), strict=True):
            near(got, expected, 4e-6)
    for one, other in (("loops", "fused loops"), ("tiles", "fused before")):
        for before, after in zip(runs[one], runs[other], strict=True):
            same_bits(before, after)


# Everything that compiled code may call: memory, and OpenMP's own.
CALLED = {"malloc", "free", "memrefCopy"}


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
def test_case_B11_every_type_has_a_lowering(element):
    """case-B11: llvm/llvm-project PR 209098, llvm/llvm-project PR 104451, openxla/xla#19700.
    Math of 16-bit types reached a lowering that had none, and reductions worked for i32 only.
    Every op of every type ends in the LLVM dialect alone, and calls no library function."""
    calls = list(every_op(np.zeros((3, 4, 40)), element))
    for options in ("--norm-to-cpu=strides=unit", "--norm-to-reference"):
        text = ir(calls, options)
        operations = set(re.findall(r"^ +(?:%\S+ = )?\"?([a-z_]\w*)\.", text, re.M))
        assert operations <= {"llvm", "omp"}, operations
        outside = set(re.findall(r"llvm\.func @(\w+)\([^{]*\)[^{]*$", text, re.M))
        assert outside <= CALLED, outside


# ---- B13, B14: memory ----------------------------------------------------------------

def at_a_guard(values):
    """A copy of the array that ends where memory ends: the page behind it is closed."""
    import ctypes
    page = mmap.PAGESIZE
    size = -(-values.nbytes // page) * page
    memory = mmap.mmap(-1, size + page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(start + size), page, 0) == 0
    found = np.frombuffer(memory, values.dtype, values.size, size - values.nbytes)
    found = found.reshape(values.shape)
    found[...] = values
    return found


def survives(action):
    """Whether `action` ends in a process of its own."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            action()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


@pytest.fixture(scope="module")
def dynamic_rows(tmp_path_factory):
    x = np.zeros((2, 3))
    known = dict(results=("y", "rstd"), dynamic=(0, 1))
    return Library(tmp_path_factory.mktemp("rows"), dict(
        f32=layer(x, scale=np.zeros(3), **known), bf16=layer(x, "bf16", scale=np.zeros(3), **known),
        gradient=call("rms_norm_backward", x, dy=x, scale=np.ones(3), results=ALL_GRADIENTS[:2],
                      dynamic=(0, 1))))


@pytest.mark.parametrize("rows,hidden", [(1, 5), (4, 5), (9, 5), (3, 37), (33, 1), (6, 131)])
@pytest.mark.parametrize("name", ["f32", "bf16", "gradient"])
def test_case_B13_nothing_beyond_a_row(name, rows, hidden, dynamic_rows):
    """case-B13: llvm/llvm-project PR 189477, llvm/llvm-project#225244. Masked reads kept their
    in-bounds mark, or lost one of two masks. Operands and results end at a closed page; of
    several tiles only the last is partial."""
    x = RNG.standard_normal((rows, hidden)) + 1
    made = call("rms_norm_backward", x, dy=x + 1, scale=np.ones(hidden),
                results=ALL_GRADIENTS[:2]) if name == "gradient" else \
        layer(x, name, scale=np.ones(hidden), results=("y", "rstd"))
    stays_inside(dynamic_rows, name, made)


def stays_inside(library, name, made):
    """Right between canaries, and the same where a closed page follows every array."""
    expected = library.checked(name, like=made)
    inputs = [at_a_guard(values) for values in made.inputs()]
    outputs = [at_a_guard(values) for values in expected.values()]
    assert survives(lambda: library.compiled(inputs, outputs, name))
    library.compiled(inputs, outputs, name)
    for one, other in zip(outputs, expected.values(), strict=True):
        same_bits(one, other)


NARROW = {f"{element}_{hidden}": layer(RNG.standard_normal((3, hidden)) + 1, element,
                                       scale=np.ones(hidden), results=("y", "rstd"))
          for element in ("bf16", "f16") for hidden in (1, 2, 3, 7, 15, 31, 33, 63, 97, 127)}


@pytest.fixture(scope="module")
def narrow_rows(tmp_path_factory):
    return Library(tmp_path_factory.mktemp("narrow"), NARROW)


@pytest.mark.parametrize("name", NARROW)
def test_case_B13_nothing_beyond_a_narrow_row(name, narrow_rows):
    """16-bit elements of a row whose length is known are moved in pieces, not under masks."""
    stays_inside(narrow_rows, name, NARROW[name])


BYTES = """
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%x: tensor<?x?xi8>, %g: tensor<?xf32>) -> tensor<?x?xi8> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = tensor.dim %x, %c0 : tensor<?x?xi8>
  %columns = tensor.dim %x, %c1 : tensor<?x?xi8>
  %ef = tensor.empty(%rows, %columns) : tensor<?x?xf32>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x?xi8>) outs(%ef : tensor<?x?xf32>) {
  ^bb0(%v: i8, %o: f32):
    %w = arith.sitofp %v : i8 to f32
    linalg.yield %w : f32
  } -> tensor<?x?xf32>
  %y = norm.rms_norm %f scale(%g : tensor<?xf32>) axes [1] epsilon inside_sqrt 1.0e-5
      : tensor<?x?xf32> -> tensor<?x?xf32>
  %e = tensor.empty(%rows, %columns) : tensor<?x?xi8>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<?x?xf32>) outs(%e : tensor<?x?xi8>) {
  ^bb0(%v: f32, %o: i8):
    %r = math.roundeven %v : f32
    %i = arith.fptosi %r : f32 to i8
    linalg.yield %i : i8
  } -> tensor<?x?xi8>
  return %q : tensor<?x?xi8>
}
"""


def test_case_B13_nothing_beyond_a_row_of_bytes(tmp_path):
    """Rows of i8, whose words leave up to three elements."""
    compiled = Compiled(tmp_path, BYTES)
    for hidden in (*range(1, 10), 30, 31, 32, 33, 35, 62, 99):
        x = RNG.integers(-100, 100, (3, hidden)).astype(np.int8)
        gain = np.full(hidden, 20.0, np.float32)
        wide = x.astype(np.float64)
        y = 20 * wide / np.sqrt(np.mean(wide**2, axis=1, keepdims=True) + 1e-5)
        inputs, out = [at_a_guard(x), at_a_guard(gain)], at_a_guard(np.zeros_like(x))
        assert survives(lambda i=inputs, o=out: compiled(i, [o])), hidden
        compiled(inputs, [out])
        # Halves may be rounded either way.
        assert np.all(np.abs(out - y) < 0.5 + 1e-4), hidden


LOOP = """
func.func @main(%xs: tensor<3x4x9xf32>, %g: tensor<9xf32>) -> (tensor<4x9xf32>, tensor<4xf32>,
                tensor<4xf32>, tensor<4xf32>, tensor<9xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %ey = tensor.empty() : tensor<4x9xf32>
  %es = tensor.empty() : tensor<4xf32>
  %eg = tensor.empty() : tensor<9xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ey : tensor<4x9xf32>) -> tensor<4x9xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%es : tensor<4xf32>) -> tensor<4xf32>
  %g0 = linalg.fill ins(%zero : f32) outs(%eg : tensor<9xf32>) -> tensor<9xf32>
  %r:5 = scf.for %i = %c0 to %c3 step %c1 iter_args(%y = %y0, %m = %s0, %v = %s0, %t = %s0,
      %d = %g0) -> (tensor<4x9xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<9xf32>) {
    %x = tensor.extract_slice %xs[%i, 0, 0] [1, 4, 9] [1, 1, 1]
        : tensor<3x4x9xf32> to tensor<4x9xf32>
    %y1, %m1, %v1 = norm.layer_norm %y residual(%x : tensor<4x9xf32>) axes [1]
        epsilon inside_sqrt 1.0e-5 : tensor<4x9xf32> -> tensor<4x9xf32> mean(tensor<4xf32>)
        variance(tensor<4xf32>)
    %t1 = linalg.add ins(%t, %m1 : tensor<4xf32>, tensor<4xf32>) outs(%es : tensor<4xf32>)
        -> tensor<4xf32>
    %dx, %dg = norm.rms_norm_backward %y, %x scale(%g : tensor<9xf32>) axes [1]
        epsilon inside_sqrt 1.0e-5 : tensor<4x9xf32>, tensor<4x9xf32> -> tensor<4x9xf32>
        dscale(tensor<9xf32>)
    %d1 = linalg.add ins(%d, %dg : tensor<9xf32>, tensor<9xf32>) outs(%eg : tensor<9xf32>)
        -> tensor<9xf32>
    scf.yield %y1, %m1, %v1, %t1, %d1
        : tensor<4x9xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<9xf32>
  }
  return %r#0, %r#1, %r#2, %r#3, %r#4
      : tensor<4x9xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<9xf32>
}
"""


@pytest.mark.parametrize("path", ["cpu", "reference", "linalg"])
def test_case_B14_buffers_in_a_loop(path, tmp_path):
    """case-B14: llvm/llvm-project#90019, llvm/llvm-project#213241. Bufferization took a filled
    constant for a result, so that the next iteration began with garbage. Norms in a loop, on
    other data each time, whose y is an operand of the next and whose sums start from one
    fill."""
    xs, gain = array(RNG.standard_normal((3, 4, 9)) + 1), array(RNG.standard_normal(9))
    y, total, dg = np.zeros((4, 9)), np.zeros(4), np.zeros(9)
    for x in widen(xs):
        s, r = y + x, 1 / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5)
        dg = dg + (y * x * r).sum(0)
        m, v = s.mean(1), s.var(1)
        y = (s - m[:, None]) / np.sqrt(v + 1e-5)[:, None]
        total = total + m
    module = norm_opt(LOOP, LINALG) if path == "linalg" else LOOP
    found = norm_run(tmp_path, module, [xs, gain], ["f32"] * 5,
                     "reference" if path == "reference" else "cpu")
    for got, expected in zip(found, (y, m, v, total, dg), strict=True):
        near(got, expected, 1e-5)


@pytest.mark.parametrize("path", ["cpu", "reference", "linalg"])
def test_case_B14_results_of_two_calls_share_nothing(path, tmp_path):
    """Statistics that all start from a fill of one shape and value."""
    calls = [layer(BLOCK[:, :, 0, 0] * k, results=STATISTICS) for k in (1, 2)]
    calls += [call("moments", BLOCK[:, :, 0, 0] * k, results=("mean", "m2")) for k in (1, 3)]
    for made, results in zip(calls, run_calls(tmp_path, calls, path), strict=True):
        near(results["mean"], made.x.astype(np.float64).mean(2))


# ---- B15, B16, B18 -------------------------------------------------------------------

LOOPED = np.zeros((2, 3, 5, 7))  # extents tell the axes


@pytest.mark.parametrize("made,kept", [
    (batch(LOOPED, axes=(0, 2, 3)), (3,)), (batch(LOOPED, axes=(0, 1, 2)), (7,)),
    (layer(LOOPED), (2, 3, 5)), (layer(LOOPED, axes=(0,)), (3, 5, 7)),
    (rms(LOOPED, axes=(0, 1)), (5, 7)), (call("l2_norm", LOOPED, axes=(1, 3)), (2, 5)),
    (instance(LOOPED), (2, 3)), (group(LOOPED, 3), (2, 3)),
    (call("moments", LOOPED, axes=(0, 3), results=("m2",)), (3, 5)),
    (call("batch_norm_training_backward", LOOPED, axes=(0, 2, 3), dy=LOOPED), (3,)),
    (call("layer_norm_backward", LOOPED, dy=LOOPED, scale=np.ones(7),
          results=ALL_GRADIENTS[:2]), (2, 3, 5))],
    ids=lambda value: value.spec.kind if hasattr(value, "spec") else "x".join(map(str, value)))
def test_case_B15_only_kept_axes_become_parallel(made, kept):
    """case-B15: llvm/llvm-project#139221, llvm/llvm-project PR 176656. A reduction loop was mapped
    to threads. What may run in parallel here is a loop over kept axes: reductions outermost,
    innermost and between. The gradient of a scale sums what the rows keep: there it is the
    columns that are shared out. Ranges of rows, where rows are summed over, have sums each of
    its own, and what then applies these reduces nothing."""
    found = re.split(r"scf\.forall (?=\()", ir([made], *TILES))[1:]
    assert found
    outer = made.spec.axes == tuple(range(len(made.spec.axes)))
    for number, text in enumerate(found):
        bounds = set(map(int, re.search(r"(?:in|= \(.*?\) to) \((.*?)\)", text)[1].split(", ")))
        # Of the statistics; of dscale, which has columns; of the one range there is.
        assert bounds <= set(kept) or (number and bounds == {7}) or \
            (outer and (bounds == {1} or '"reduction"' not in text)), text


def allocations(hidden, dynamic=()):
    """(stack allocations, heap allocations, elements of the longest vector) in the LLVM IR."""
    x = np.zeros((8, hidden), np.float32)
    calls = [layer(x, residual=x, scale=x[0], results=(*STATISTICS, "sum"), dynamic=dynamic),
             rms(x, dynamic=dynamic), call("layer_norm_backward", x, dy=x, scale=x[0],
                                                   results=ALL_GRADIENTS, dynamic=dynamic)]
    text = llvm(calls)
    sizes = re.findall(r"llvm\.alloca (%\S+) x (\S+)", text)
    for number, _ in sizes:
        assert re.search(rf"{number} = llvm\.mlir\.constant\(\d+ : \w+\)", text), "grows"
    widths = [int(w) for w in re.findall(r"vector<(\d+)x[bf]", text)]
    return [kind for _, kind in sizes], count(r"llvm\.call @malloc", text), max(widths)


def test_case_B16_nothing_on_the_stack_grows_with_the_row():
    """case-B16: iree-org/iree#18297, iree-org/iree#11040, iree-org/iree#18776,
    iree-org/iree#10208. Kernels with two reductions and a consumer kept a whole row on the
    stack. No allocation depends on the row, and vectors stay a small multiple of a register."""
    found = {hidden: allocations(hidden) for hidden in (64, 4096, 65536)}
    found["dynamic"] = allocations(80, (0, 1))
    for stack, _, width in found.values():
        assert width <= 128
        assert not any(re.match(r"vector|.*array", kind) for kind in stack), stack
    assert found[65536][0] == found[4096][0]


EDGES = [0.0, 1e-45, 1e-40, 1e-38, 1.0, 1e38, np.inf]


@golden(rms([1e-20] * 4, epsilon=0.0), rms([0.0] * 4, placement="none", results=("y", "rstd")),
        rms([np.inf, 1, 1, 1], results=("y", "rstd")), paths=("reference",))
def test_case_B18_reciprocal_root_at_the_edges(got):
    """case-B18: llvm/llvm-project PR 88691, llvm/llvm-project PR 88707, llvm/llvm-project#192432,
    Tencent/ncnn PR 6903. Fast reciprocal roots returned -inf for positive subnormals, NaN at 0
    and infinity, and errors at large values. Ours is a division by a root, refined nowhere."""
    near(got[0]["y"], [1] * 4)
    assert got[1]["rstd"] == np.inf and np.isnan(got[1]["y"]).all()
    assert got[2]["rstd"] == 0


def test_case_B18_reciprocal_root_at_the_edges_on_cpu(tmp_path):
    """q of 1e-40 has 17 bits in f32: y is 1 to about 1e-4 and no more."""
    calls = [rms([1e-20] * 4, epsilon=0.0), rms([0.0] * 4, placement="none", results=("y", "rstd")),
             rms([np.inf, 1, 1, 1], results=("y", "rstd"))]
    small, zero, infinite = run_calls(tmp_path, calls, "cpu")
    near(small["y"], [1] * 4, 1e-4)
    assert zero["rstd"] == np.inf and np.isnan(zero["y"]).all()
    assert infinite["rstd"] == 0 and np.array_equal(infinite["y"][1:], [0, 0, 0])


@golden(call("rstd", EDGES, placement="none"), call("rstd", np.tile(EDGES, (9, 1)).T,
                                                    placement="none"),
        call("batch_norm_inference", np.ones((3, 7)), axes=(0,), mean=np.zeros(7), variance=EDGES,
             placement="none"),
        call("rms_norm_backward", np.ones((7, 2)), dy=np.tile([1.0, -1], (7, 1)), rstd=[1.0] * 7))
def test_case_B18_the_root_itself(got):
    """Alone, in vectors and as a given variance: the root is right to the last bits from the
    smallest subnormal to infinity."""
    with np.errstate(divide="ignore"):
        exact = 1 / np.sqrt(widen(array(EDGES)))
    for values in (got[0]["rstd"], got[1]["rstd"][:, 4], got[2]["y"][1]):
        assert values[0] == np.inf and values[-1] == 0
        assert np.abs(widen(values)[1:-1] / exact[1:-1] - 1).max() < 3e-7


def test_case_B18_no_approximation_is_asked_for():
    """No fast-math flag and no reciprocal-root instruction in what is compiled."""
    text = llvm(list(every_op(np.zeros((3, 4, 40)))))
    assert not re.search(r"fastmathFlags|rsqrt|rcp", text)
    assert "norm." not in ir([rms(np.zeros((2, 40)))], *VECTORS)
