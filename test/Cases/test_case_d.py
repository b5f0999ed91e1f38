"""Public complaints about speed, as counts in the IR: loops, copies, accumulators, stores.
Their times are cells of `./dev bench --cases`; a time is never a test. See test_case_a.py."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from case_tools import (
    ALL_GRADIENTS,
    TILES,
    VECTORS,
    Library,
    batch,
    count,
    group,
    instance,
    ir,
    llvm,
    without_copying,
)
from norm.golden import STATISTICS, array, call, layer, rms, same_bits
from norm.program import Slice
from norm.tools import norm_opt
from norm.types import float_type

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))


def loops(text):
    return count(r"scf\.forall \(", text)


def zeros(*shape):
    return np.zeros(shape)


ROW = np.ones(32)
ONE_LOOP = {
    "forward": layer(zeros(10, 32, 42, 32), scale=ROW, shift=ROW),
    "one row": rms(zeros(1, 2048), "f16"),
    "saved statistics": layer(zeros(10, 32, 42, 32), scale=ROW, results=("y", "mean", "rstd")),
    "16 bits, f32 statistics": layer(zeros(1, 64, 96), "f16", results=STATISTICS),
    "residual and its sum": rms(zeros(1, 64, 96), "bf16", residual=zeros(1, 64, 96),
                                results=("y", "sum", "rstd")),
    "two axes": rms(zeros(8, 12, 16), axes=(1, 2), results=("y", "rstd")),
    "dynamic": layer(zeros(8, 1, 96), dynamic=(0, 1, 2), results=STATISTICS),
    "group": group(zeros(4, 6, 5, 7), 3, scale=np.ones(6), results=STATISTICS),
    "instance": instance(zeros(4, 6, 5, 7), results=STATISTICS),
    "training": batch(zeros(4, 6, 5, 7), axes=(0, 2, 3), scale=np.ones(6), running_mean=np.ones(6),
                      running_variance=np.ones(6), momentum=0.1,
                      results=("y", "mean", "rstd", "running_mean", "running_variance")),
    "gradient of x": call("layer_norm_backward", zeros(64, 96), dy=zeros(64, 96),
                          scale=np.ones(96), mean=np.zeros(64), rstd=np.ones(64)),
    "all gradients of a batch": call("batch_norm_training_backward", zeros(4, 6, 5, 7),
                                     axes=(0, 2, 3), dy=zeros(4, 6, 5, 7), scale=np.ones(6),
                                     results=ALL_GRADIENTS),
}


@pytest.mark.parametrize("name", ONE_LOOP)
def test_case_D1_a_norm_is_one_loop(name):
    """case-D1: iree-org/iree#22528, iree-org/iree#24148, iree-org/iree#24033, iree-org/iree#9139.
    One norm became two or three kernels, each of which reads the rows from memory again.
    Here it is one loop over tiles with everything in it, and no scratch memory, unless the
    outer axes are reduced and rows must be read as they lie (docs/Rationale.md)."""
    tiled = ir([ONE_LOOP[name]], *TILES)
    assert loops(tiled) == 1
    assert not re.search(r"^    %\S+ = linalg\.", tiled, re.M), tiled
    final = without_copying(llvm([ONE_LOOP[name]]))
    assert not re.search(r"call @malloc|memcpy", final)
    assert count(r"omp\.parallel", final) <= 1


def test_case_D1_gradients_are_two_loops():
    """dx sums along rows and the gradients of scale and shift along columns: two loops with
    saved statistics, however many gradients there are, and one more that takes statistics."""
    x, saved = zeros(64, 96), dict(mean=np.zeros(64), rstd=np.ones(64))
    for results in (ALL_GRADIENTS, ALL_GRADIENTS[:2]):
        gradients = dict(dy=x, scale=x[0], results=results)
        assert loops(ir([call("layer_norm_backward", x, **gradients, **saved)], *TILES)) == 2
    assert loops(ir([call("layer_norm_backward", x, dy=x, scale=x[0], results=ALL_GRADIENTS)],
                    *TILES)) <= 4


NEIGHBOURS = """
#m = affine_map<(a, b, c) -> (a, b, c)>
func.func @main(%x: {H}, %r: {H}, %g: tensor<96xf32>) -> ({H}, {H}) {
  %eh = tensor.empty() : {H}
  %es = tensor.empty() : {H}
  %s = linalg.add ins(%x, %r : {H}, {H}) outs(%es : {H}) -> {H}
  %y = norm.rms_norm %s scale(%g : tensor<96xf32>) axes [2] epsilon inside_sqrt 1.0e-6
      : {H} -> {F}
  %z = linalg.generic {indexing_maps = [#m, #m],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%y : {F}) outs(%eh : {H}) {
  ^bb0(%a: f32, %o: bf16):
    %one = arith.constant 1.0 : f32
    %n = arith.negf %a : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %one : f32
    %silu = arith.divf %a, %d : f32
    %t = arith.truncf %silu : f32 to bf16
    linalg.yield %t : bf16
  } -> {H}
  return %z, %s : {H}, {H}
}
""".replace("{H}", "tensor<1x64x96xbf16>").replace("{F}", "tensor<1x64x96xf32>")


def test_case_D1_neighbours_share_the_loop():
    """An addition whose sum is returned before it, an activation and a cast behind it."""
    fuse = "--norm-fuse-residual"
    tiled = norm_opt(NEIGHBOURS, fuse, *TILES)
    assert loops(tiled) == 1
    assert not re.search(r"^    %\S+ = linalg\.", tiled, re.M), tiled
    assert "@malloc" not in norm_opt(NEIGHBOURS, fuse, "--norm-to-cpu=strides=unit")


SPELLED_ON_TENSORS = """
func.func @main(%x: {H}, %r: {H}) -> ({H}, {H}) {
  %s = arith.addf %x, %r : {H}
  %y = norm.layer_norm %s axes [2] epsilon inside_sqrt 1.0e-6 : {H} -> {F}
  %n = arith.negf %y : {F}
  %e = math.exp %n : {F}
  %one = arith.constant dense<1.0> : {F}
  %d = arith.addf %e, %one : {F}
  %silu = arith.divf %y, %d : {F}
  %z = arith.truncf %silu : {F} to {H}
  return %z, %s : {H}, {H}
}
""".replace("{H}", "tensor<1x64x96xbf16>").replace("{F}", "tensor<1x64x96xf32>")


def test_case_D1_neighbours_written_as_arithmetic_on_tensors():
    """The same where no op names a loop."""
    final = norm_opt(SPELLED_ON_TENSORS, "--norm-fuse-residual",
                     "--norm-to-cpu=strides=unit threads=false")
    assert "@malloc" not in final
    tiled = norm_opt(SPELLED_ON_TENSORS, "--norm-fuse-residual", *TILES, "--canonicalize")
    assert loops(tiled) == 1
    outside = re.findall(r"^    (%\S+ = (?:linalg|arith|math)\.(?!constant).*)", tiled, re.M)
    assert not outside, outside


@pytest.mark.parametrize("kind", ["layer_norm_backward", "rms_norm_backward",
                                  "group_norm_backward", "instance_norm_backward"])
@pytest.mark.parametrize("rows", [4096, 4097])
def test_case_D2_gradients_of_scale_and_shift(kind, rows):
    """case-D2: pytorch/pytorch#69963, pytorch/pytorch PR 148605, pytorch/pytorch PR 87445,
    NVIDIA/apex PR 1037. On tall inputs one thread summed down each column, row by row. Here
    both gradients come from one sweep that reads x and dy once, whole vectors of columns at a
    time. Of row norms it is the sweep that writes dx too, over ranges of rows, whose sums a
    second loop adds up; of others sums are folded every 32 rows, and columns are shared among
    threads."""
    x = zeros(rows, 128)
    rest, axes, results = {}, (1,), ALL_GRADIENTS
    if kind == "group_norm_backward":
        rest = dict(groups=4, channel_axis=1)
    if kind == "instance_norm_backward":
        x, axes, rest = x[:, :, None], (2,), dict(affine_axes=(1,))
    if kind == "rms_norm_backward":
        results = ALL_GRADIENTS[:2]
    made = call(kind, x, axes=axes, dy=x, scale=np.ones(128), results=results, **rest)
    text = ir([made], *VECTORS)
    last = text[text.rindex("scf.forall ("):]
    sums = [carried for carried in re.findall(r"iter_args\(.*?\) -> \((.*?)\)", last)
            if "tensor" not in carried]
    if kind in ("layer_norm_backward", "rms_norm_backward"):
        # The merge, after the ranges' own sweeps along rows.
        merged = ", ".join(["vector<32xf32>"] * (len(results) - 1))
        assert sums[-1] == merged, sums
    else:
        assert sums, last
        if kind != "instance_norm_backward":
            # The loop over rows carries a sum each, the loop over blocks some of each.
            assert sums[-1] == ", ".join(["vector<32xf32>"] * (len(results) - 1)), sums
            assert {part for carried in sums for part in carried.split(", ")} == {"vector<32xf32>"}
        reads = re.findall(r"vector\.transfer_read %(\w+)\[.*tensor<\d+x(?:32|128)", last)
        assert len(reads) == len(set(reads)) <= 2, reads
    assert "parallel = true" in last


@pytest.mark.parametrize("hidden", [64, 1024, 2048, 8192, 16384])
@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_case_D3_rms_norm_does_less_than_layer_norm(hidden, element):
    """case-D3: pytorch/pytorch#157345, pytorch/pytorch#141916, pytorch/pytorch PR 153666. RMS
    norm was slower than layer norm because it was not one kernel. Of the same tile it takes
    fewer sweeps, reads and operations."""
    x = np.zeros((2048, hidden), float_type(element).dtype)
    calls = [make(x, scale=x[0]) for make in (rms, layer)]
    texts = [ir([made], *VECTORS) for made in calls]
    strategies = [re.search(r"#norm\.cpu<.*?>", ir([made], *TILES))[0] for made in calls]
    assert strategies[0] == strategies[1]
    for what in (r"scf\.for ", r"vector\.transfer_read", r"arith\.(?:add|sub|mul|div)f.*vector"):
        one, other = (count(what, text) for text in texts)
        assert 0 < one < other, what


SUMMED = {
    "layer_norm": layer(zeros(64, 4096), scale=np.ones(4096), results=STATISTICS),
    "rms_norm": rms(zeros(64, 4099), "bf16"), "one row": layer(zeros(1, 65536)),
    "f64": rms(zeros(16, 4096), "f64"), "dynamic": rms(zeros(16, 4096), dynamic=(0, 1)),
    "moments": call("moments", zeros(64, 4096), results=("mean", "m2")),
    "batch": batch(zeros(512, 128), results=STATISTICS),
    "backward": call("layer_norm_backward", zeros(512, 1024), dy=zeros(512, 1024),
                     scale=np.ones(1024), results=ALL_GRADIENTS),
}


@pytest.mark.parametrize("name", SUMMED)
def test_case_D5_sums_are_no_scalar_chains(name):
    """case-D5: triton-lang/triton-cpu PR 98, iree-org/iree#10279, llvm/llvm-project PR 184241.
    Without permission to reassociate, the sum of a vector became a chain of dependent scalar
    additions. The order is ours: vectors of partial sums (128 bytes at least) in the loop over a
    row, a tree after each block of 32 of them and a tree of blocks, no chain of scalar additions
    and no flag."""
    text = llvm([SUMMED[name]])
    assert "reduce.fadd" not in text and "fastmathFlags" not in text
    # The statistics of a single row are scalars: what is added to them is no chain.
    assert len(re.findall(r"llvm\.fadd .* : f(?:32|64)$", text, re.M)) < 24
    loops_with_sums = [
        (int(step), part) for step, carried in
        re.findall(r"step %c(\d+)\S* iter_args\(.*?\) -> \((.*?)\)", ir([SUMMED[name]], *VECTORS))
        for part in carried.split(", ") if part.startswith("vector")]
    assert loops_with_sums
    for step, part in loops_with_sums:
        *lanes, element = part.removeprefix("vector<").removesuffix(">").split("x")
        size = int(element[1:]) // 8
        # One value a row goes on only from block to block.
        assert np.prod([int(n) for n in lanes]) * size >= 128 or step * size >= 32 * 128, part


def test_case_D5_sums_are_deterministic(tmp_path):
    """Rows of one value each time, in one process and at any place in memory."""
    rng = np.random.default_rng(5)
    x = array(rng.standard_normal((7, 4099)) * 3 + 1)
    library = Library(tmp_path, {"f": layer(x, results=STATISTICS, dynamic=(0, 1))})
    first = library.run("f", like=layer(x, results=STATISTICS))
    for shift in range(1, 5):
        base = np.zeros(x.size + 64, np.float32)
        moved = base[shift:shift + x.size].reshape(x.shape)
        moved[...] = x
        for name, values in library.run("f", [moved],
                                        like=layer(moved, results=STATISTICS)).items():
            same_bits(values, first[name])


def sliced(make, part, hidden=256, element="bf16", **rest):
    """A norm of a third of the columns of a fused projection [64, 3 * hidden]."""
    made = make(zeros(64, hidden), element, **rest)
    made.slice = Slice(array(zeros(64, 3 * hidden), element), (0, part * hidden), (1, 1))
    return made


HEADS = rms(zeros(16, 4, 64), "bf16", axes=(2,))
HEADS.slice = Slice(array(zeros(16, 12, 64), "bf16"), (0, 4, 0), (1, 1, 1))


@pytest.mark.parametrize("made", [
    sliced(rms, 0), sliced(rms, 1), sliced(layer, 2, results=STATISTICS), HEADS,
    sliced(rms, 1, element="f32", residual=zeros(64, 256), results=("y", "sum")),
    sliced(layer, 1, 7168)], ids=["q", "k", "v", "heads", "residual", "wide"])
def test_case_D7_a_slice_is_not_copied(made):
    """case-D7: vllm-project/vllm PR 49750, vllm-project/vllm PR 36551. Slices of a fused
    projection were made contiguous first, or refused. The row stride is a number like any
    other: no copy, no allocation, and the vectors are those of a whole tensor."""
    text = without_copying(llvm([made], "dispatch"))
    assert not re.search(r"call @malloc|memcpy|memmove|@memrefCopy", text)
    assert "vector<32x" in text
    made_whole = made.slice
    try:
        made.slice = None
        whole = without_copying(llvm([made], "dispatch"))
    finally:
        made.slice = made_whole
    for what in (r"llvm\.load .*vector", r"masked\.load", r"llvm\.store .*vector"):
        assert count(what, text) == count(what, whole), what


@pytest.mark.parametrize("case", ["D1", "D2", "D3", "D5", "D7"])
def test_case_times_are_cells_of_the_bench(case):
    import bench
    assert [cell for cell in bench.reported() if cell.case == f"case-{case}"]
