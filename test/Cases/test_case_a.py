"""Public reports of wrong numbers, as inputs small enough to run by hand; each stands for
its kind. The first test of a case tells it and names the threads; docs/Cases.md lists all."""

import re

import numpy as np
import pytest
from case_tools import (
    ALL_GRADIENTS,
    LINALG,
    RUNNING,
    VECTORS,
    Library,
    as_rows,
    batch,
    bodies,
    count,
    exact,
    group,
    instance,
    ir,
    same_rows,
)
from norm.golden import STATISTICS, array, call, golden, layer, near, rms, same_bits
from norm.program import module_text
from norm.runner import run_calls
from norm.tools import norm_opt, norm_run
from norm.types import widen

FOUR = [-1.3416354, -0.4472118, 0.4472118, 1.3416354]  # of variance 1.25, epsilon 1e-5
RNG = np.random.default_rng(28463)


# ---- A1, A2, A5: where squares and means cancel --------------------------------------

FAR = RNG.standard_normal((3, 100)) + [[4e4], [-3e5], [2e6]]


@golden(*same_rows([[40000, 40001, 40002, 40003]], results=STATISTICS), *same_rows(FAR))
def test_case_A1_squares_of_a_far_row(got):
    """case-A1: microsoft/onnxruntime#28463. A finite f32 row whose mean is large beside its
    spread gave NaN: its squares are spaced wider than the variance, and their mean minus
    the square of the mean came out negative."""
    for y, results in zip(as_rows(got[:4]), got[:4], strict=True):
        near(y, [FOUR], 1e-6)
        near(np.ravel(results["mean"]), [40001.5], 0)
        near(np.ravel(results["variance"]), [1.25], 0)
    for y in as_rows(got[4:]):
        near(y, exact(FAR), 2e-6)


@pytest.mark.parametrize("element", ["f32", "f16"])
def test_case_A1_what_is_squared_is_centred(element):
    """In every op that subtracts a mean: each reduction that multiplies subtracts first."""
    rows = np.zeros((8, 24))
    calls = [*same_rows(rows, element, results=STATISTICS),
             call("moments", rows, element, results=("mean", "m2"))]
    squared = [body for kinds, body in bodies(ir(calls, LINALG))
               if '"reduction"' in kinds and "mulf" in body]
    # The sums about a sample, and about what the guard makes of it.
    assert len(squared) == 2 * len(calls)
    for body in squared:
        assert body.index("subf") < body.index("mulf"), body
        square, = re.findall(r"mulf (\S+), (\S+) :", body)
        assert square[0] == square[1] and not square[0].startswith("%in"), body


BURN = [[c + i * 1e-3 for i in range(16)] for c in (0, 100, 1000, 10000)]
SMALL_SPREAD = np.concatenate([BURN, np.linspace(1448.8, 1450.7, 16)[None]])


@golden(*same_rows([[8192, 8193, 8194, 8195]]), *same_rows(SMALL_SPREAD),
        layer(np.reshape(BURN, (4, 4, 4)), axes=[1, 2], epsilon=0.0))
def test_case_A2_large_mean_small_deviation(got):
    """case-A2: pytorch/pytorch#51102, tracel-ai/burn#5607, ml-explore/mlx#2238. With a large
    mean the variance was silently 0 or far off; layer, group, instance and batch norm of the
    same numbers must be right and agree."""
    for y in as_rows(got[:4]):
        near(y, [FOUR], 1e-6)
    for y in as_rows(got[4:8]):
        near(y, exact(SMALL_SPREAD), 2e-6)
        near(y[:4, 0], [-1.3416, -1.3415, -1.3415, -1.3313], 4e-5)
    near(got[8]["y"].reshape(4, 16), exact(BURN, 0), 2e-6)
    first, *others = as_rows(got[4:8])
    for other in others[:2]:
        same_bits(first, other)


@golden(layer([1234.0] * 256), layer([1e10] * 100), layer([1e10] * 100, shift=range(100)),
        *same_rows([[1e10] * 100] * 2), group([[[-7e9] * 33] * 4], 2),
        layer([0.1] * 1000, "bf16"), layer([-4444.0] * 515, "f16"))
def test_case_A5_constant_rows_are_zero(got):
    """case-A5: microsoft/onnxruntime#21935, pytorch/pytorch#5410, microsoft/onnxruntime PR
    31973. A constant row must give exactly the shift. The rounded f32 mean of 100 times 1e10
    is not 1e10, so that two passes alone see a deviation where there is none."""
    for number, results in enumerate(got):
        near(results["y"], np.arange(100) if number == 2 else np.zeros(results["y"].shape), 0)


@golden(*same_rows([[1e7, 1e7 + 1] * 2048], results=STATISTICS), paths=("cpu", "reference"))
def test_case_A5_a_mean_that_is_wrong(got):
    """The f32 mean is off by 34.5. Not on the path through plain loops: they add one element
    after the other, and the error of their mean grows with the row."""
    for y, results in zip(as_rows(got), got, strict=True):
        near(y[0], np.tile([-0.99998, 0.99998], 2048), 4e-6)
        near(np.ravel(results["variance"]), [0.25], 1e-6)


# ---- A6, A7: where squares leave the type --------------------------------------------

HUGE = np.array([1, 2, 3, 4]) * 1e25
TINY = HUGE * 1e-55
RMS_FOUR = [0.3651484, 0.7302967, 1.0954451, 1.4605935]


@golden(rms(HUGE, compute="f64"), rms(TINY, compute="f64", epsilon=0.0),
        call("l2_norm", HUGE, compute="f64"),
        *same_rows([HUGE], compute="f64"), *same_rows([TINY], compute="f64", epsilon=0.0))
def test_case_A6_the_remedy_for_squares_out_of_range(got):
    """case-A6: pytorch/pytorch#162489, pytorch/pytorch PR 178123, tenstorrent/tt-metal#55159.
    Squares of f32 values beyond 1.8e19 overflow, and those below 1e-23 vanish. Documented as
    the IEEE result of the compute type; with `compute f64` the norm is right."""
    for results in got[:2]:
        near(results["y"], RMS_FOUR)
    near(got[2]["y"], np.array(RMS_FOUR) / 2)
    for y in (*as_rows(got[3:7]), *as_rows(got[7:])):
        near(y, [[-1.3416408, -0.4472136, 0.4472136, 1.3416408]])


def test_case_A6_squares_out_of_range(tmp_path):
    """The documented IEEE overflow of the compute type: q is infinite and r is 0; q of the
    tiny row underflows to 0, and r without epsilon is infinite. `rstd` tells."""
    some = ("y", "rstd")
    calls = [rms(HUGE, results=some), call("l2_norm", HUGE, results=some),
             *same_rows([HUGE], results=some),
             rms([1e-30, 0, 1e-30, 1e-30], epsilon=0.0, results=some)]
    *big, tiny = run_calls(tmp_path, calls, "cpu")
    for results in big:
        assert not results["rstd"].any() and not results["y"].any()
    assert tiny["rstd"] == np.inf
    assert np.array_equal(tiny["y"], [np.inf, np.nan, np.inf, np.inf], equal_nan=True)


@golden(rms([300, -400, 0, 0], "f16"), rms([300] * 4, "f16", residual=[300] * 4),
        call("l2_norm", [300, -400, 0, 0], "f16"), layer([300, -300, 300, -300], "f16"),
        group([[[300, -300], [300, -300]]], 1, "f16"),
        rms([3e20, -4e20, 0, 0], "bf16", compute="f64"))
def test_case_A7_squares_of_16_bit_values(got):
    """case-A7: pytorch/pytorch PR 133085, microsoft/onnxruntime#29034. 256 squared is already
    infinite in f16; kernels that squared before they widened returned all zeros."""
    for number in (0, 5):
        near(got[number]["y"], [1.2, -1.6, 0, 0], 5e-4 if number == 0 else 4e-3)
    near(got[1]["y"], [1] * 4, 0)
    near(got[2]["y"], [0.6, -0.8, 0, 0], 5e-4)
    for results in got[3:5]:
        near(results["y"].ravel(), [1, -1, 1, -1], 0)


@golden(*(rms([300.0] * n, element, results=("y", "variance"), **residual)
          for n in (2048, 8192) for element in ("f16", "bf16")
          for residual in ({}, dict(residual=[0.0] * n))), paths=("cpu", "reference"))
def test_case_A7_long_rows(got):
    for results in got:
        near(results["y"], np.ones(results["y"].shape), 0)
        near(results["variance"], 90000, 1e-6)


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_case_A7_widened_before_it_is_multiplied(element):
    """No op, gradients included, multiplies or adds in 16 bits."""
    x = np.ones((4, 6, 8))
    calls = [make(x, element, dy=x, scale=np.ones(6), axes=(2,), affine_axes=(1,),
                  results=ALL_GRADIENTS[:2]) if make is not group else
             call("group_norm_backward", x, element, (1, 2), dy=x, groups=2, channel_axis=1,
                  scale=np.ones(6), results=ALL_GRADIENTS)
             for make in (group, *(lambda *a, kind=kind, **k: call(kind, *a, **k) for kind in (
                 "layer_norm_backward", "rms_norm_backward", "l2_norm_backward",
                 "instance_norm_backward")))]
    calls += [rms(x, element, residual=x, scale=np.ones(8), sum_rounding="compute"),
              layer(x, element, scale=np.ones(8)), call("l2_norm", x, element),
              batch(x, element, (0, 2), scale=np.ones(6)), group(x, 2, element, scale=np.ones(6)),
              instance(x, element), call("moments", x, element)]
    for passes in ((LINALG,), VECTORS):
        text = ir(calls, *passes)
        assert count(rf"arith\.extf .*{element}.* to .*f32", text) >= len(calls)
        assert not re.findall(rf"arith\.(?:mulf|addf|subf|divf) [^:]*: (?:vector<[\dx]+)?{element}",
                              text)


# ---- A10, A11: what a rewrite must keep apart ----------------------------------------

SMALL = [1e-3, -1e-3, 1e-3, -1e-3]
PLACEMENTS = ("inside_sqrt", "outside_sqrt", "max_inside", "max_outside")


@golden(*(rms(SMALL, epsilon=1e-5, placement=p) for p in PLACEMENTS),
        *(layer(SMALL, epsilon=1e-5, placement=p) for p in PLACEMENTS),
        *(call("l2_norm", SMALL, epsilon=4e-5 if "inside" in p else 2e-5, placement=p)
          for p in PLACEMENTS),
        *same_rows([SMALL], epsilon=1e-5, placement="outside_sqrt"))
def test_case_A10_where_epsilon_goes(got):
    """case-A10: onnx/onnx PR 6443, pytorch/pytorch#144659, NVIDIA/TransformerEngine PR 364.
    Epsilon inside or outside the root, or as a maximum: documents and kernels disagreed, and
    only rows whose mean square is comparable with epsilon show it."""
    sizes = (0.30151134, 0.99009901, 0.31622777, 1.0)
    for number, results in enumerate(got[:12]):
        size = sizes[number % 4] / (2 if number >= 8 else 1)
        near(results["y"], np.sign(SMALL) * size)
    for y in as_rows(got[12:]):
        near(y, [np.sign(SMALL) * sizes[1]])


DECOMPOSED = """
func.func @main(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {{
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<0.0625> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce {{ arith.addf }} ins(%sq : tensor<4x16xf32>)
      outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.mulf %sum, %n : tensor<4xf32>
{steps}
  %rb = linalg.broadcast ins(%d : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.divf %x, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}}
"""
STEPS = {
    "inside_sqrt": ("addf %ms, %eps", "sqrt"), "outside_sqrt": ("sqrt", "addf %t, %eps"),
    "max_inside": ("maximumf %ms, %eps", "sqrt"), "max_outside": ("sqrt", "maximumf %t, %eps"),
    None: ("sqrt", "addf %t, %eps", "sqrt")}


@pytest.mark.parametrize("placement", STEPS)
def test_case_A10_a_decomposed_norm_keeps_its_placement(placement):
    """What is raised states the placement of the graph; a root of rms + epsilon is no norm."""
    lines, last = [], "%ms"
    for number, step in enumerate(STEPS[placement]):
        name = "%d" if number == len(STEPS[placement]) - 1 else f"%t{number}"
        step = f"math.sqrt {last}" if step == "sqrt" else "arith." + step.replace("%t", last)
        lines.append(f"  {name} = {step} : tensor<4xf32>")
        last = name
    raised = norm_opt(DECOMPOSED.format(steps="\n".join(lines)), "--norm-raise")
    if placement is None:
        assert "norm." not in raised
    else:
        assert f"epsilon {placement} " in raised and "linalg" not in raised, raised


GAIN = array([0.9453125] * 4, "bf16")
WIDE_GAIN = array([0.9453125] * 4)
LLAMA = dict(affine_in="result")
COUNTING = array([1, 2, 3, 4], "bf16")
ORDERS = (rms(COUNTING, scale=GAIN, **LLAMA), rms(COUNTING, scale=GAIN),
          rms(COUNTING, scale=WIDE_GAIN, result="f32"),
          rms(COUNTING, scale=WIDE_GAIN, result="f32", **LLAMA),
          rms(COUNTING, scale=WIDE_GAIN), layer(COUNTING, scale=GAIN, **LLAMA),
          layer(COUNTING, scale=GAIN))


@golden(*ORDERS)
def test_case_A11_cast_before_or_after_the_gain(got):
    """case-A11: NVIDIA/TransformerEngine#1132, google/gemma_pytorch PR 67,
    huggingface/transformers#30236, huggingface/transformers PR 26226. Llama rounds to bf16 and
    then multiplies by the gain, Gemma multiplies and rounds once, others give the result the
    gain's type: all are right for their model, none may become another."""
    assert widen(got[0]["y"])[2] == 1.03125 and widen(got[1]["y"])[2] == 1.0390625
    near(got[2]["y"][2], 1.095445 * 0.9453125)
    assert got[3]["y"][2] == 1.09375 * 0.9453125
    assert got[2]["y"].dtype == got[3]["y"].dtype == np.float32
    assert got[4]["y"].dtype == got[1]["y"].dtype and widen(got[4]["y"])[2] == 1.0390625
    assert (widen(got[5]["y"]) != widen(got[6]["y"])).any()


def test_case_A11_no_rewrite_changes_the_order(tmp_path):
    """After canonicalization, fusion and simplification that may round: the same bits."""
    text = module_text(ORDERS)
    inputs = [values for one in ORDERS for values in one.inputs()]
    elements = [element for one in ORDERS for _, element in one.result_types()]
    passes = ("--canonicalize", "--cse", "--norm-fuse-residual",
              "--norm-simplify=fp-policy=real", "--canonicalize")
    after = norm_opt(text, *passes)
    assert after.count("affine_in result") == text.count("affine_in result") == 3
    before, changed = (norm_run(tmp_path / str(i), module, inputs, elements)
                       for i, module in enumerate((text, after)))
    for one, other in zip(before, changed, strict=True):
        same_bits(one, other)


# ---- A13, A15: running statistics ----------------------------------------------------

SIXTEEN = np.array([[1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6], [4, 5, 6, 7]], np.float64)
OLD = dict(running_mean=[0.0], running_variance=[1.0], momentum=0.1)


@golden(*(batch(x, axes=axes, running_correction=correction, results=(*RUNNING, "variance"), **OLD)
          for correction in (1, 0)
          for x, axes in ((SIXTEEN.reshape(4, 1, 2, 2), (0, 2, 3)), (SIXTEEN.reshape(16, 1), (0,)),
                          (SIXTEEN.reshape(1, 2, 8, 1), (0, 1, 2)))))
def test_case_A13_two_variances_in_one_op(got):
    """case-A13: pytorch/pytorch#60528, pytorch/pytorch#19902, ml-explore/mlx PR 3817,
    tensorflow/tensorflow#55545. y divides by the count, the running variance by the count or
    one less, by convention: `running_correction` says which, for the running variance alone."""
    for number, results in enumerate(got):
        near(results["y"].ravel()[0], -1.897363, 1e-6)
        near(results["variance"], [2.5], 1e-7)
        near(results["running_variance"], [1.1666667 if number < 3 else 1.15], 1e-6)
        near(results["running_mean"], [0.4])
        same_bits(results["y"].ravel(), got[number % 3]["y"].ravel())


MIXED = RNG.standard_normal((2, 4, 3)) * 3 + 1
FRESH = dict(running_mean=np.zeros(4), running_variance=np.ones(4), results=RUNNING)


@golden(*(batch([[1.0], [1.0]], running_mean=[0.0], running_variance=[1.0], momentum=momentum,
                results=RUNNING) for momentum in (0.1, 1 - 0.9, np.float32(0.1))),
        *(batch(MIXED, axes=(0, 2), momentum=momentum, **FRESH)
          for momentum in (0.0, 0.5, 1.0, np.float32(0.5))),
        batch(MIXED, axes=(0, 2)))
def test_case_A15_momentum_is_for_running_values_only(got):
    """case-A15: microsoft/onnxruntime#29790, pytorch/pytorch#40074, microsoft/onnxscript PR
    1289. Momentum is the weight of what is new here: torch's 0.1 and ONNX's 0.9, written as
    1 - 0.9, are the same. y never depends on it, in one runtime it did."""
    for results in got[:3]:
        near(results["running_mean"], [0.1], 1e-7)
    for results in got[3:]:
        same_bits(results["y"], got[3]["y"])
    near(got[3]["running_mean"], np.zeros(4), 0)
    near(got[5]["running_mean"], MIXED.mean((0, 2)))
    near(got[4]["running_mean"], MIXED.mean((0, 2)) / 2)


def test_case_A15_cumulative_average(tmp_path):
    """"No momentum" is the value 1/k in step k, one compiled function for all steps."""
    batches = RNG.standard_normal((3, 8, 2)).astype(np.float32)
    one = batch(batches[0], running_mean=[0.0, 0.0], running_variance=[0.0, 0.0],
                momentum=np.float32(1), results=RUNNING)
    library = Library(tmp_path, {"step": one})
    mean, variance = np.zeros(2, np.float32), np.zeros(2, np.float32)
    for k, x in enumerate(batches, 1):
        results = library.run("step", [x, mean, variance, np.float32(1 / k)])
        mean, variance = results["running_mean"], results["running_variance"]
    near(mean, batches.astype(np.float64).mean(1).mean(0), 1e-6)
    near(variance, batches.astype(np.float64).var(1, ddof=1).mean(0), 1e-6)
