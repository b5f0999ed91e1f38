"""Public reports of wrong numbers, as inputs small enough to run by hand: extents, axes and
memory. The first test of a case tells it and names the threads; docs/Cases.md lists all."""

import mmap
import re

import numpy as np
import pytest
from case_tools import (
    ALL_GRADIENTS,
    LINALG,
    RUNNING,
    VECTORS,
    Library,
    batch,
    count,
    exact,
    group,
    instance,
    ir,
    llvm,
)
from norm.golden import STATISTICS, array, call, golden, layer, near, rms, same_bits
from norm.program import Call, module_text
from norm.reference import NormSpec
from norm.runner import run_calls
from norm.tools import ToolError, norm_opt, norm_run
from norm.types import widen

RNG = np.random.default_rng(28464)


# ---- A16, A19, A20, A25, A31: extents ------------------------------------------------

def empties(dynamic):
    """Ops on no rows; `dynamic`: with extents known at run time only."""
    def unknown(x):
        return dict(dynamic=range(np.ndim(x))) if dynamic else {}
    made = {}
    for number, (shape, axes) in enumerate([((0, 5), (0,)), ((0, 5, 9), (0, 2))]):
        x, five = np.zeros(shape), np.arange(1.0, 6)
        made[f"train{number}"] = batch(x, axes=axes, scale=five, running_mean=five,
                                       running_variance=five, momentum=0.9, results=RUNNING,
                                       **unknown(x))
        made[f"train{number}_gradient"] = call(
            "batch_norm_training_backward", x, axes=axes, dy=x, scale=five,
            results=ALL_GRADIENTS, **unknown(x))
    x = np.zeros((0, 8))
    for kind in ("layer_norm", "rms_norm", "l2_norm"):
        made[kind] = call(kind, x, scale=np.ones(8), results=("y", "variance", "rstd"),
                          **unknown(x))
        made[f"{kind}_gradient"] = call(f"{kind}_backward", x, dy=x, scale=np.ones(8),
                                        results=ALL_GRADIENTS[:2], **unknown(x))
    x = np.zeros((0, 6, 10, 10))
    made["group"] = group(x, 3, scale=np.ones(6), results=("y", "mean", "rstd"), **unknown(x))
    made["group_gradient"] = call("group_norm_backward", x, axes=(1, 2, 3), groups=3,
                                  channel_axis=1, dy=x, scale=np.ones(6), results=ALL_GRADIENTS,
                                  **unknown(x))
    return made


@pytest.mark.parametrize("path,dynamic", [("cpu", False), ("cpu", True), ("reference", True),
                                          ("linalg", True)])
def test_case_A16_empty_batch(path, dynamic, tmp_path):
    """case-A16: pytorch/pytorch#12013, pytorch/pytorch PR 8933, PaddlePaddle/Paddle PR 73152.
    With no rows y is empty, running statistics stay, gradients of scale and shift are 0.
    Elsewhere they were NaN, or memory that nothing had written."""
    library = Library(tmp_path, empties(dynamic), path)
    for name, one in library.calls.items():
        results = library.run(name)
        for leading in {"y", "dx"} & results.keys():
            assert results[leading].shape == one.x.shape
        for gradient in {"dscale", "dshift"} & results.keys():
            assert not results[gradient].any(), name
        for running in {"running_mean", "running_variance"} & results.keys():
            near(results[running], np.arange(1.0, 6), 0)


COLUMN = np.linspace(-3, 40, 16)[:, None]
ONE = COLUMN[:6].reshape(2, 3, 1, 1)
EIGHTS = RNG.standard_normal((1, 256, 1, 1)) + 30


@golden(layer(COLUMN), layer(COLUMN, shift=[0.25]), layer(COLUMN[:1], shift=[0.25]),
        instance(ONE, shift=[1, 2, 3], affine_axes=(1,)), instance(ONE[:1]), instance(ONE),
        rms(COLUMN, epsilon=0.5), rms(COLUMN, epsilon=0.5, dynamic=(0, 1)), group(EIGHTS, 32),
        group(EIGHTS, 32, dynamic=range(4)), call("layer_norm_backward", COLUMN, dy=COLUMN,
                                                  scale=[2.0], results=ALL_GRADIENTS))
def test_case_A19_extent_one(got):
    """case-A19: microsoft/onnxruntime#25896, microsoft/onnxruntime PR 26034,
    pytorch/pytorch#108956, pytorch/pytorch#45687, pytorch/pytorch PR 33008. One normalized
    element is no error: it is its own mean, and y is the shift. An RMS norm keeps its sign.
    Front ends refused it, for a batch of one only, or divided by 0."""
    for results in (got[0], got[4], got[5]):
        assert not results["y"].any()
    for results in got[1:3]:
        near(results["y"], np.full(results["y"].shape, 0.25), 0)
    near(got[3]["y"].reshape(2, 3), [[1, 2, 3]] * 2, 0)
    same_bits(got[4]["y"], got[5]["y"][:1])
    for results in got[6:8]:
        near(results["y"], COLUMN / np.sqrt(COLUMN**2 + 0.5))
    for results in got[8:10]:
        near(results["y"].reshape(32, 8), exact(EIGHTS.reshape(32, 8)))
    assert not got[10]["dx"].any() and not got[10]["dscale"].any()
    near(got[10]["dshift"], [COLUMN.sum()], 1e-6)


def test_case_A19_a_folded_reduction_keeps_epsilon_and_shift(tmp_path):
    """Unit dims folded before and after the decomposition."""
    calls = [layer(COLUMN, shift=[0.25]), rms(COLUMN, epsilon=0.5), rms(ONE, epsilon=0.5),
             instance(ONE, shift=[1, 2, 3], affine_axes=(1,))]
    fold = "--linalg-fold-unit-extent-dims"
    module = norm_opt(module_text(calls), "--norm-simplify=fp-policy=real", fold, LINALG, fold,
                      "--canonicalize", "--cse")
    inputs = [values for one in calls for values in one.inputs()]
    first, second, third, fourth = norm_run(tmp_path, module, inputs, ["f32"] * 4)
    near(first, np.full((16, 1), 0.25), 0)
    near(second, COLUMN / np.sqrt(COLUMN**2 + 0.5))
    near(third, ONE / np.sqrt(ONE**2 + 0.5))
    near(fourth.reshape(2, 3), [[1, 2, 3]] * 2, 0)


LANES = (1, 3, 5, 7, 9, 15, 17, 31, 33, 127, 129, 255, 257)


def lanes(n):
    return 1000 + np.arange(n, dtype=np.float64) % 3


@golden(layer([10, 11, 12]), layer([10, 11, 12], dynamic=(0,)), rms([10, 11, 12], dynamic=(0,)))
def test_case_A20_padding_lanes(got):
    """case-A20: triton-lang/triton#9838, unslothai/unsloth PR 1867, linkedin/Liger-Kernel#518.
    Lanes beyond a row hold 0, and 0 minus the mean, squared, entered the variance; the error
    is small for long rows, so that tests at large shapes pass."""
    for results in got[:2]:
        near(results["y"], [-1.2247357, 0, 1.2247357])
    near(got[2]["y"], np.array([10, 11, 12]) / np.sqrt(365 / 3 + 1e-6))


@golden(*(layer(lanes(n)) for n in LANES), paths=("cpu",))
def test_case_A20_known_widths(got):
    for results, n in zip(got, LANES, strict=True):
        near(results["y"], exact(lanes(n)[None])[0])


def padded(n, dynamic=()):
    """Every op whose rows have n elements, and its gradients, on data far from 0."""
    x = np.stack([lanes(n), lanes(n) + 5])
    dy = 100 + np.stack([lanes(n + 1)[1:], lanes(n) / 2])
    both = dict(dynamic=dynamic)
    made = dict(layer=layer(x, results=STATISTICS, **both),
                l2=call("l2_norm", x, results=("y", "rstd"), **both),
                moments=call("moments", x, results=("mean", "m2"), **both),
                group=group(x[:, None], 1, dynamic=[a + (a > 0) for a in dynamic]),
                train=batch(np.ascontiguousarray(x.T), results=STATISTICS,
                            dynamic=[1 - a for a in dynamic]))
    for kind in ("layer_norm_backward", "rms_norm_backward"):
        made[kind] = call(kind, x, dy=dy, scale=dy[0] / 50, results=ALL_GRADIENTS[:2], **both)
    return made


def test_case_A20_widths_known_at_run_time(tmp_path):
    """One compiled form for all widths, gradients too."""
    library = Library(tmp_path, padded(8, (0, 1)))
    for n in LANES:
        for name, one in padded(n).items():
            results = library.checked(name, like=one)
            if name == "layer":
                near(results["y"], exact(one.x), 2e-6)


def test_case_A20_centred_values_are_masked_again():
    """Of a masked read, what enters a sum is selected after the mean is subtracted."""
    text = ir([layer(np.zeros((4, 12)))], *VECTORS)
    squares = re.findall(r"(%\S+) = (?:arith\.mulf|math\.fma) (%\S+), \2[ ,]", text)
    masked = set(re.findall(r"arith\.select %\S+, (%\S+), ", text))
    assert squares and all(name in masked for name, _ in squares), text


@golden(group([[[0, 2], [4, 6], [1, 3], [5, 7]]], 2, scale=[1, 2, 3, 4]),
        group([[[0, 2], [4, 6], [1, 3], [5, 7]]], 2, scale=[1, 2, 3, 4], dynamic=(0, 1, 2)),
        group(np.array([[[0, 4, 1, 5], [2, 6, 3, 7]]]), 2, channel=2, scale=[1, 2, 3, 4]))
def test_case_A22_a_scale_for_each_channel(got):
    """case-A22: onnx/onnx#5466, onnx/onnx-mlir PR 2928. A group norm has statistics per group
    and a scale per channel; an early standard had a scale per group."""
    for number, results in enumerate(got):
        y = results["y"][0] if number < 2 else results["y"][0].T
        near(y, [[-1.3416, -0.4472], [0.8944, 2.6833], [-4.0249, -1.3416], [1.7889, 5.3666]],
             1e-5)


@pytest.mark.parametrize("extent", [1, 2, 3, 8])
def test_case_A22_nothing_else_is_a_scale(extent):
    x = np.zeros((1, 4, 2))
    for made in (group(x, 2, scale=np.ones(extent)), group(x, 2, shift=np.ones(extent)),
                 call("group_norm_backward", x, axes=(1, 2), groups=2, channel_axis=1, dy=x,
                      scale=np.ones(extent))):
        with pytest.raises(ToolError, match=rf"expected '\w+' of shape \[4\], got \[{extent}\]"):
            ir([made])


SIX = [[1, 2, 3], [4, 5, 6]]
CUBE = RNG.standard_normal((2, 4, 3))


@golden(layer(SIX, axes=[-1]), layer(SIX, axes=[1]), layer(SIX, axes=[-2, -1]),
        layer(SIX, axes=[1, 0]), layer(SIX, axes=[0, 1]),
        *(call("group_norm", CUBE, axes=axes, groups=2, channel_axis=channel)
          for axes, channel in (((1, 2), 1), ((-1, -2), -2), ((2, -2), 1))),
        *(batch(CUBE, axes=axes) for axes in ((0, 2), (-1, -3), (2, 0))),
        *(call("rms_norm_backward", CUBE, axes=axes, dy=CUBE + 1)
          for axes in ((1, 2), (-1, 1), (2, 1))))
def test_case_A23_negative_and_unsorted_axes(got):
    """case-A23: microsoft/onnxruntime#26407. Axis -1 was taken literally, and everything was
    normalized at once. Negative and unsorted axes mean what they mean in NumPy, duplicates
    and axes out of range are errors."""
    near(got[0]["y"], [[-1.2247357, 0, 1.2247357]] * 2)
    same_bits(got[0]["y"], got[1]["y"])
    near(got[2]["y"][0, 0], -1.4638483)
    same_bits(got[2]["y"], got[3]["y"])
    same_bits(got[2]["y"], got[4]["y"])
    for start in (5, 8, 11):
        for results in got[start + 1:start + 3]:
            for name, values in results.items():
                same_bits(values, got[start][name])


@pytest.mark.parametrize("axes", [(-1, 1), (2,), (-3,), (), (2**63 - 1,)])
@pytest.mark.parametrize("kind", ["layer_norm", "l2_norm", "batch_norm_training", "moments"])
def test_case_A23_bad_axes_are_refused(kind, axes):
    spec = Call(NormSpec(kind=kind, axes=(0,)), array(SIX),
                results=("m2",) if kind == "moments" else ("y",))
    text = module_text([spec]).replace("axes [0]", f"axes {list(axes)}")
    with pytest.raises(ToolError, match="error: .*axes"):
        norm_opt(text)


def test_case_A23_spellings_are_one_op():
    calls = [layer(CUBE, axes=axes) for axes in ((-1,), (2,), (-2, -1), (2, 1), (1, 2))]
    text = module_text(calls)
    for number in range(1, len(calls)):
        text = text.replace(f"norm.layer_norm %arg{number} ", "norm.layer_norm %arg0 ")
    assert norm_opt(text).count("norm.layer_norm") == 5
    assert norm_opt(text, "--canonicalize", "--cse").count("norm.layer_norm") == 2


# ---- A24, A25: memory ----------------------------------------------------------------

@pytest.fixture(scope="module")
def views(tmp_path_factory):
    """Functions of dynamic shape that take any strides."""
    x = np.zeros((2, 3))
    calls = dict(rms=rms(x, placement="none", dynamic=(0, 1)), layer=layer(x, dynamic=(0, 1)),
                 bf16=layer(x, "bf16", results=("y", "mean"), dynamic=(0, 1)))
    return {path: Library(tmp_path_factory.mktemp(path), calls, path, strides="dispatch")
            for path in ("cpu", "reference", "linalg")}


@pytest.mark.parametrize("path", ["cpu", "reference", "linalg"])
def test_case_A24_strides_in_every_pass(path, views):
    """case-A24: ModelTC/LightLLM#1467, uxlfoundation/oneDNN#1010. The statistics honoured the
    input's strides, the write of the output did not. Any strides, 0 and negative ones
    included, give the bits of a contiguous copy."""
    def strided(values, shape, *strides):
        return np.lib.stride_tricks.as_strided(np.array(values, np.float32), shape, strides)
    pairs = strided([1, 10, 2, 20, 3, 30], (2, 3), 4, 8)
    constant = strided([1, 2, 3, 4, 5, 6], (2, 3), 12, 0)

    def run(name, x):
        like = (rms if name == "rms" else layer)(np.asarray(x, np.float64), element="f32")
        return views[path].run(name, [x], like=like)["y"]
    near(run("rms", pairs), [[0.4629100, 0.9258201, 1.3887301]] + [[0.4629100, 0.9258201,
                                                                   1.3887301]], 1e-6)
    near(run("rms", constant), np.ones((2, 3)), 1e-6)
    assert not run("layer", constant).any()
    base = RNG.standard_normal((40, 50)).astype(np.float32)
    for x in (base.T, base[3::2, 5::3], base[::-1, ::-1], base[4:9, 1:], base[:, :37],
              np.broadcast_to(base[:1], (6, 50)), np.broadcast_to(base[:, :1], (40, 9))):
        for name in ("rms", "layer"):
            same_bits(run(name, x), run(name, np.ascontiguousarray(x)))


@pytest.mark.parametrize("rows,hidden", [(8388608, 5), (65536, 5), (65537, 3)])
def test_case_A25_many_rows(rows, hidden, views):
    """case-A25: pytorch/pytorch#184826, pytorch/pytorch#181555, vllm-project/vllm#22419,
    vllm-project/vllm#42862, vllm-project/vllm#43390, flashinfer-ai/flashinfer#3005,
    NVIDIA/apex#411, NVIDIA/apex PR 1845, EnzymeAD/Enzyme-JAX#2789. Row numbers and offsets
    overflowed 32 bits, or rows went to a grid dimension with a small limit. Every row must be
    as if it were alone."""
    period = 1021
    some = array(RNG.standard_normal((period, hidden)) * 3 + 1, "bf16")
    x = np.resize(some, (rows, hidden))
    statistics = ("y", "mean")
    few = views["cpu"].checked("bf16", like=layer(some, results=statistics))
    many = views["cpu"].run("bf16", [x], like=layer(x, results=statistics))
    for name in statistics:
        whole = rows // period * period
        tiles = many[name][:whole].view(np.uint16 if name == "y" else np.uint32)
        one = few[name].view(tiles.dtype)
        assert (tiles.reshape(-1, *one.shape) == one).all()
        same_bits(many[name][whole:], few[name][:rows - whole])


def test_case_A25_a_stride_of_gigabytes(views):
    """Two rows, more than 2**31 elements apart."""
    apart, hidden = 2**31 + 3, 9
    memory = mmap.mmap(-1, 2 * (apart + 2 * hidden), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
                       | 0x4000)  # no memory is reserved for pages that are not touched
    base = np.frombuffer(memory, array([0], "bf16").dtype)
    x = np.lib.stride_tricks.as_strided(base[2:], (2, hidden), (2 * apart, 2))
    x[...] = array(RNG.standard_normal((2, hidden)), "bf16")
    copy = np.ascontiguousarray(x)
    y = [np.empty((2, hidden), x.dtype) for _ in range(2)]
    mean = np.empty(2, np.float32)
    for source, result in zip((x, copy), y, strict=True):
        views["cpu"].compiled([source], [result, mean], "bf16")
    same_bits(*y)


def test_case_A25_no_index_is_narrowed():
    """Row numbers and offsets are 64 bits wide from the first to the last, with threads and
    dynamic shapes. What is narrowed is the number of lanes of the last vector of a row, and
    goes into a mask."""
    x = np.zeros((4, 4, 4))
    calls = [layer(x, "bf16", dynamic=(0, 1, 2)), batch(x, axes=(0, 2), dynamic=(0, 1, 2)),
             group(x, 2, dynamic=(0, 1, 2)), call("rms_norm_backward", x, dy=x, scale=np.ones(4),
                                                  results=ALL_GRADIENTS[:2], dynamic=(0, 1, 2))]
    text = llvm(calls, "dispatch")
    assert "omp.parallel" in text
    # The number of a thread, and of all.
    assert count(r"llvm\.[sz]ext .* i32 to i64", text) == count(r"call @omp_get_", text)
    narrowed = re.findall(r"(%\S+) = llvm\.trunc .* i64 to i32\n(?:.*\n){0,2}"
                          r" *%\S+ = llvm\.insertelement \1, ", text)
    assert len(narrowed) == count(r"llvm\.trunc .* i64 to i32", text)


# ---- A26, A28, A30, A31 --------------------------------------------------------------

PAIRS = np.array([3, 4, 0.3, 0.4]).reshape(1, 1, 2, 2)  # [B, S, H, D]


@golden(rms(PAIRS, axes=[3], epsilon=0.0), rms(PAIRS, axes=[2, 3], epsilon=0.0),
        rms(PAIRS.transpose(0, 2, 1, 3), axes=[3], epsilon=0.0, scale=[1, 2]),
        rms(PAIRS, axes=[3], epsilon=0.0, scale=[[1, 2], [3, 4]], affine_axes=(2, 3)),
        call("l2_norm", PAIRS, axes=[3], placement="none"), layer(PAIRS, axes=[3], epsilon=0.0))
def test_case_A26_per_head_or_across_heads(got):
    """case-A26: vllm-project/vllm PR 16311, EleutherAI/gpt-neox PR 1367, EleutherAI/gpt-neox PR
    1424, aigc-apps/VideoX-Fun#229. Queries and keys are normalized per head in some models and
    across heads in others; the wrong one runs, and costs points on a benchmark."""
    near(got[0]["y"].ravel(), [0.8485281, 1.1313708] * 2)
    near(got[1]["y"].ravel(), [1.1940446, 1.5920595, 0.1194045, 0.1592059])
    near(got[2]["y"].ravel(), [0.8485281, 2.2627417] * 2)
    near(got[3]["y"].ravel(), [0.8485281, 2.2627417, 2.5455844, 4.5254834])
    near(got[4]["y"].ravel(), [0.6, 0.8] * 2)
    near(got[5]["y"].ravel(), [-1, 1] * 2, 1e-5)


Q, K = RNG.standard_normal((2, 5, 4, 24)), RNG.standard_normal((2, 5, 2, 24))
HEADS = RNG.standard_normal((4, 24))


@golden(rms(Q, "bf16", axes=[3], scale=HEADS[0]), rms(K, "bf16", axes=[3], scale=HEADS[1]),
        rms(Q.transpose(0, 2, 1, 3), "bf16", axes=[3], scale=HEADS[0]),
        rms(Q, "bf16", axes=[3], scale=HEADS, affine_axes=(2, 3)),
        rms(Q.transpose(0, 2, 1, 3), "bf16", axes=[3], scale=HEADS, affine_axes=(1, 3)),
        rms(Q, "bf16", axes=[2, 3], scale=HEADS),
        rms(Q.transpose(0, 2, 1, 3), "bf16", axes=[1, 3], scale=HEADS),
        rms(np.concatenate([Q, K], 2), "bf16", axes=[3], scale=HEADS[0]))
def test_case_A26_layouts_and_head_counts(got):
    """[B, S, H, D] and [B, H, S, D], fewer heads of keys than of queries, one op over both."""
    for one, other in ((0, 2), (3, 4)):
        same_bits(got[one]["y"], got[other]["y"].transpose(0, 2, 1, 3))
    near(widen(got[5]["y"]), widen(got[6]["y"]).transpose(0, 2, 1, 3), 4e-3)
    same_bits(got[7]["y"][:, :, :4], got[0]["y"])
    near(widen(got[7]["y"])[:, :, 4:] * HEADS[1], widen(got[1]["y"]) * HEADS[0], 1.5e-2)


ONE_HOT = [[1.0, 0, 0, 0]]


def flat_gradients(element):
    """Each backward op on rows without spread."""
    zeros, dy = np.zeros((1, 4)), np.array(ONE_HOT)
    for x in (zeros, zeros + 3):
        yield call("layer_norm_backward", x, element, dy=dy, results=ALL_GRADIENTS,
                   scale=np.ones(4))
        yield call("group_norm_backward", x, element, (1,), dy=dy, groups=1, channel_axis=1)
        yield call("instance_norm_backward", x[None], element, (2,), dy=dy[None])
        yield call("batch_norm_training_backward", x.T, element, (0,), dy=dy.T,
                   results=ALL_GRADIENTS, scale=np.ones(1))
    yield call("rms_norm_backward", zeros, element, dy=dy, epsilon=1e-6, scale=np.ones(4),
               results=ALL_GRADIENTS[:2])
    yield call("l2_norm_backward", zeros, element, dy=dy, epsilon=1e-6)


def check_flat_gradients(got, tolerance):
    for number, results in enumerate(got):
        expected = [237.1708, -79.0569, -79.0569, -79.0569] if number < 8 else [1000, 0, 0, 0]
        near(widen(results["dx"]).ravel(), expected, tolerance)
        if "dscale" in results:
            assert not results["dscale"].any()


@golden(*flat_gradients("f32"))
def test_case_A28_gradient_of_a_zero_row(got):
    """case-A28: tracel-ai/burn#1992. A row of zeros, or of one value, has a finite gradient
    as long as epsilon is inside the root; a root differentiated without it gave NaN."""
    check_flat_gradients(got, 1e-6)


@golden(*flat_gradients("f16"), paths=("cpu",))
def test_case_A28_of_16_bits(got):
    check_flat_gradients(got, 1e-3)


@golden(rms([5, 5, 5, 3], "bf16", results=("y", "rstd")),
        layer([5, 5, 5, 3], "bf16", results=STATISTICS),
        batch([[5.0], [5], [5], [3]], "bf16", results=STATISTICS),
        call("rms_norm_backward", [5, 5, 5, 3], "bf16", dy=[1, 0, 0, 0],
             rstd=(1 / np.sqrt(21 + 1e-6), "f32"), epsilon=1e-6))
def test_case_A30_the_root_is_not_rounded(got):
    """case-A30: amd/IRON PR 139, pytorch/pytorch#109188. A reciprocal root that is rounded to
    bf16, in use or as it is saved, errs the same way along the whole row."""
    assert widen(got[0]["y"])[0] == 1.09375
    near(got[0]["rstd"], 1 / np.sqrt(21 + 1e-6), 1e-7)
    for results in got[1:3]:
        assert all(results[name].dtype == np.float32 for name in STATISTICS[1:])


@pytest.mark.parametrize("kind", ["layer_norm_backward", "rms_norm_backward", "normalize",
                                  "batch_norm_training_backward", "l2_norm_backward"])
def test_case_A30_a_rounded_root_needs_a_cast(kind):
    x, narrow = np.zeros((4, 4)), (np.ones(4), "bf16")
    mean = {} if kind in ("rms_norm_backward", "l2_norm_backward") else dict(mean=np.zeros(4))
    dy = {} if kind == "normalize" else dict(dy=x)
    text = module_text([call(kind, x, "bf16", (0,), rstd=narrow, results=("y",)
                             if kind == "normalize" else ("dx",), **mean, **dy)])
    with pytest.raises(ToolError, match="expected '(mean|rstd)' of element type 'f32'"):
        norm_opt(text)


COUNTS = (1, 2, 23, 24, 257)
ROWS = RNG.standard_normal((257, 96)) * 5 + 2


ROW_WISE = (lambda x: layer(x, scale=ROWS[0], results=("y", "rstd")), lambda x: rms(x, "bf16"),
            lambda x: call("l2_norm", x), lambda x: group(x.reshape(-1, 6, 16), 3))


@golden(*(make(ROWS[:rows]) for make in ROW_WISE for rows in COUNTS), paths=("cpu",))
def test_case_A31_a_row_does_not_see_the_batch(got):
    """case-A31: vllm-project/vllm PR 48391, pytorch/pytorch#149301. Block sizes chosen from the
    number of rows change the order of a sum, and with it the answer under other traffic."""
    for start in range(0, len(got), len(COUNTS)):
        for rows, results in zip(COUNTS, got[start:start + len(COUNTS)], strict=True):
            for name, values in results.items():
                same_bits(values, got[start + len(COUNTS) - 1][name][:rows])


@pytest.mark.parametrize("path", ["cpu", "reference", "linalg"])
def test_case_A31_number_of_rows_known_at_run_time(path, tmp_path):
    def made(make, rows, dynamic=()):
        one = make(ROWS[:rows])
        one.dynamic = dynamic
        return one
    library = Library(tmp_path, {f"f{i}": made(make, 24, (0,))
                                 for i, make in enumerate(ROW_WISE)}, path)
    for number, make in enumerate(ROW_WISE):
        whole = library.checked(f"f{number}", like=made(make, COUNTS[-1]))
        for rows in COUNTS[:-1]:
            for name, values in library.run(f"f{number}", like=made(make, rows)).items():
                same_bits(values, whole[name][:rows])


def test_case_A31_gradients_repeat(tmp_path):
    """No order left to chance: the same bits with one thread, with two, and again."""
    x, dy = RNG.standard_normal((2, 515, 160))
    calls = [call(kind, x, dy=dy, scale=x[0], results=ALL_GRADIENTS[:2], axes=(1,))
             for kind in ("layer_norm_backward", "rms_norm_backward")]
    calls.append(call("batch_norm_training_backward", x, axes=(0,), dy=dy, scale=x[0],
                      results=ALL_GRADIENTS))
    first = run_calls(tmp_path, calls, threads=1)
    for _ in range(2):
        for one, other in zip(first, run_calls(tmp_path, calls, threads=2), strict=True):
            for name, values in one.items():
                same_bits(values, other[name])
