"""Reported cases that concern GPU kernels, beside those of test/Cases: in the emulator, or
counts in PTX. docs/Cases.md lists them with the others."""

import itertools
import mmap
import re

import numpy as np
import pytest
from gpu_cases import STATISTICS, case, check_cases, check_runs, counted, same
from norm.cases import call as draw_call
from norm.compiled import canaries
from norm.emulated import Emulated, aligned, run_calls
from norm.golden import array, call, widen
from norm.program import module_text, split_results
from norm.promise import check
from norm.ptx import kernels
from norm.tools import ToolError, norm_opt
from test_layouts import LAYOUTS, view

RNG = np.random.default_rng(0)
ISA = "--norm-to-nvvm"
NARROW = ("f16", "bf16", "f32")


def ptx(calls, options=""):
    """The text of all kernels of the calls."""
    return "\n".join(kernels(norm_opt(module_text(calls), f"{ISA}={options}")).values())


def every_op(x, element, dynamic=()):
    """The ops that have kernels, each with all operands and results."""
    for op, results in STATISTICS.items():
        operands = {} if op == "l2_norm" else dict(residual=x, scale=x[0])
        if op == "layer_norm":
            operands["shift"] = x[0]
        yield call(op, x, element, results=results, dynamic=dynamic, **operands)


def run_between_canaries(compiled, made, inputs=None, seed=0):
    """The results of one call, none of which was written beyond its ends."""
    outputs, intact = zip(*(canaries(shape, element.dtype)
                            for shape, element in made.result_types()), strict=True)
    compiled(made.inputs() if inputs is None else inputs, outputs, seed=seed)
    assert all(untouched() for untouched in intact)
    return split_results([made], outputs)[0]


# ---- A: numbers ------------------------------------------------------------------------

@pytest.mark.parametrize("rows", [0, 3])
def test_case_A16_no_rows_on_a_gpu(rows, tmp_path):
    """Nothing is launched for no rows, of which a driver makes an error; one compiled function
    serves both."""
    some = [draw_call(case(op, 40, rows=rows, dynamic="all")) for op in STATISTICS]
    for made, results in zip(some, check_runs(some, ["random"] * 3, tmp_path), strict=True):
        assert all(array.shape[0] == rows for array in results.values()), made
    kernels_run = counted(some, tmp_path / "counted")
    assert sum(kernel["launches"] for kernel in kernels_run) == (3 if rows else 0)


WIDTHS = (1, 3, 5, 7, 9, 15, 17, 31, 33, 127, 129, 255, 257)


@pytest.mark.parametrize("dynamic", ["no", "all"])
def test_case_A20_padding_lanes_of_threads(dynamic, tmp_path):
    """Threads beyond the row, and elements of their last access, with a mean far from 0."""
    check_cases([case("layer_norm", n, t, mean=11.0, dynamic=dynamic, rows=2)
                 for n, t in zip(WIDTHS, itertools.cycle(("f32", "bf16")), strict=False)],
                tmp_path)


@pytest.mark.parametrize("columns", [3584, 4608, 5120, 6144, 14336, 18432])
def test_case_A20_numbers_of_warps_that_are_no_power_of_two(columns, tmp_path):
    """5, 6, 7 and 9 warps and so on: every thread adds the same tree of their sums."""
    check_cases([case(op, columns, "bf16", mean=3.0, rows=2)
                 for op in ("layer_norm", "rms_norm")], tmp_path)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_case_A24_strides_on_a_gpu(layout, tmp_path):
    """Inner strides that are no promise, and rows of any stride: the bits of a copy."""
    strides = "unit" if layout in ("contiguous", "row stride", "offset by one",
                                   "broadcast rows") else "any"
    for number, (element, columns) in enumerate([("f32", 129), ("bf16", 256)]):
        values = array(RNG.standard_normal((7, columns)) + 1, element)
        made = call("layer_norm", values, element, scale=values[0], results=("y", "mean"),
                    dynamic=(0, 1))
        compiled = Emulated(tmp_path / str(number), module_text([made]),
                            f"{ISA}=format=llvm strides={strides}")
        made.x = view(values, layout)
        run = run_between_canaries(compiled, made)
        check(made.reference(), run, "any")
        copies = [np.ascontiguousarray(a) for a in made.inputs()]
        assert same(run, run_between_canaries(compiled, made, copies, seed=3))


def test_case_A25_more_rows_than_a_grid_has_in_y(tmp_path):
    """One more than 65535 blocks of one row, whose rows repeat: rows are blocks along x."""
    some = array(RNG.standard_normal((64, 1032)) + 1, "bf16")
    few = call("rms_norm", some, "bf16", results=("y", "rstd"), dynamic=(0,))
    compiled = Emulated(tmp_path, module_text([few]))
    expected = run_between_canaries(compiled, few)
    check(few.reference(), expected, "random")
    many = call("rms_norm", np.broadcast_to(some[:1], (65536, 1032)), "bf16",
                results=("y", "rstd"), dynamic=(0,))
    results = run_between_canaries(compiled, many)
    for name, found in results.items():
        rows = found.reshape(len(found), -1).view(np.uint8)
        assert (rows == expected[name][:1].reshape(1, -1).view(np.uint8)).all()


@pytest.mark.full
def test_case_A25_rows_beyond_two_to_the_23(tmp_path):
    """8388609 rows of 5: every row as if it were alone."""
    some = array(RNG.standard_normal((1021, 5)) + 1, "bf16")
    few = call("layer_norm", some, "bf16", dynamic=(0,))
    compiled = Emulated(tmp_path, module_text([few]))
    expected = run_between_canaries(compiled, few)["y"].view(np.uint16)
    many = call("layer_norm", np.resize(some, (2**23 + 1, 5)), "bf16", dynamic=(0,))
    found = run_between_canaries(compiled, many)["y"].view(np.uint16)
    assert (found == np.resize(expected, found.shape)).all()


def test_case_A25_a_stride_of_gigabytes_on_a_gpu(tmp_path):
    """Two rows, more than 2**31 elements apart."""
    apart, hidden = 2**31 + 4, 12
    memory = mmap.mmap(-1, 4 * (apart + 2 * hidden), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
                       | 0x4000)  # no memory is reserved for pages that are not touched
    x = np.lib.stride_tricks.as_strided(np.frombuffer(memory, np.float32), (2, hidden),
                                        (4 * apart, 4))
    x[...] = RNG.standard_normal((2, hidden))
    made = call("layer_norm", np.ascontiguousarray(x), results=("y", "mean"), dynamic=(0,))
    compiled = Emulated(tmp_path, module_text([made]))
    assert same(run_between_canaries(compiled, made, [x]), run_between_canaries(compiled, made))


@pytest.mark.parametrize("columns, dynamic", [(64, ()), (64, (0,)), (4096, (0, 1)), (999, (0,))])
def test_case_A25_a_block_s_number_is_widened_first(columns, dynamic):
    """Blocks lie along x alone, and their number goes into 64 bits before anything is
    computed with it."""
    calls = list(every_op(np.zeros((100, columns)), "bf16", dynamic))
    module = norm_opt(module_text(calls), ISA)
    for y, z in re.findall(r"gpu\.launch_func .* blocks in \(%\S+, (%\S+), (%\S+)\)", module):
        assert y == z and re.search(rf"{y} = llvm\.mlir\.constant\(1 : \w+\)", module)
    text = "\n".join(kernels(module).values())
    assert not re.search(r"%ctaid\.[yz]", text)
    for kernel in kernels(module).values():
        numbers = re.findall(r"mov\.u32\s+(%r\d+), %ctaid\.x;", kernel)
        assert numbers
        for number in numbers:
            uses = re.findall(rf"^[ \t]*(\S+)[ \t].*{number}[,;\]]", kernel, re.M)
            wide = [use for use in uses if not use.startswith("mov.u32")]
            assert wide and all(re.match(r"cvt\.[us]64|mul\.wide|mad\.wide|mul\.wide", use)
                                for use in wide), wide


@pytest.mark.parametrize("op, columns, element", [
    ("layer_norm", 64, "bf16"), ("rms_norm", 1023, "f32"), ("layer_norm", 4096, "f16"),
    ("rms_norm", 40000, "bf16"), ("l2_norm", 129, "f32")])
def test_case_A31_the_batch_on_a_gpu(op, columns, element, tmp_path):
    """Rows alone, among 23 and among 24, in several schedules."""
    many = draw_call(case(op, columns, element, rows=24, dynamic="kept", results=("y", "rstd")))
    compiled = Emulated(tmp_path, module_text([many]))
    together = run_between_canaries(compiled, many)
    for rows, seed in (slice(0, 23), 3), (slice(22, 23), 0), (slice(1, 3), 9):
        some = draw_call(case(op, columns, element, rows=24, dynamic="kept",
                              results=("y", "rstd")))
        some.x = np.ascontiguousarray(many.x[rows])
        found = run_between_canaries(compiled, some, seed=seed)
        assert same(found, {name: values[rows] for name, values in together.items()})


# ---- B: the lowering -------------------------------------------------------------------

@pytest.mark.parametrize("columns, dynamic", [(64, ()), (5, (0, 1)), (4096, ()), (40000, ())])
@pytest.mark.parametrize("element", [*NARROW, "f64"])
def test_case_B11_every_type_has_a_kernel(element, columns, dynamic):
    """Shuffles, roots and conversions of every type, with no function of a library."""
    text = ptx(every_op(np.zeros((3, columns)), element, dynamic))
    assert text.count(".entry") >= 3
    assert not re.search(r"\.extern \.func|__nv_|\bcall\b", text)
    assert columns == 5 or "shfl.sync" in text


@pytest.mark.parametrize("rows", [1, 33, 70])
@pytest.mark.parametrize("columns", [5, 129, 4097])
def test_case_B13_nothing_beyond_a_row_on_a_gpu(rows, columns, tmp_path):
    """Lengths that only run time knows: the last block has rows and the last access elements
    too many. The emulator refuses a read beyond an array, canaries show a write."""
    made = draw_call(case("layer_norm", columns, "f32", "rgb", rows=rows, dynamic="all"))
    compiled = Emulated(tmp_path, module_text([made]))
    for offset in (0, 1):
        inputs = [aligned(values, offset) for values in made.inputs()]
        results = run_between_canaries(compiled, made, inputs, seed=4)
        check(made.reference(), results, "random")


def test_case_B13_what_lies_behind_a_row_stays(tmp_path):
    """Several rows a block, of which each is part of a wider one: no gap is written."""
    for number, columns in enumerate((5, 100)):
        made = call("rms_norm", RNG.standard_normal((37, columns)), dynamic=(0, 1))
        whole = np.full((37, columns + 3), np.float32(-7))
        Emulated(tmp_path / str(number), module_text([made]))([made.x], [whole[:, :columns]])
        check(made.reference(), {"y": np.ascontiguousarray(whole[:, :columns])}, "random")
        assert (whole[:, columns:] == -7).all()


@pytest.mark.parametrize("rows, columns", [(1, 300), (40, 300), (300, 40), (7, 4096), (33, 1)])
def test_case_B15_only_rows_become_blocks(rows, columns, tmp_path):
    """Blocks and threads follow from rows and a strategy; what is reduced is a loop within, and
    the emulator finds no race in three schedules."""
    made = call("layer_norm", RNG.standard_normal((rows, columns)), results=("y", "rstd"))
    strategy = norm_opt(module_text([made]), "--norm-configure=target=gpu")
    threads, block = (int(re.search(rf"\b{name} = (\d+)", strategy)[1])
                      for name in ("threads", "rows"))
    compiled = Emulated(tmp_path, module_text([made]))
    outputs = [aligned(np.zeros(shape, t.dtype)) for shape, t in made.result_types()]
    (kernel,) = compiled.count([aligned(made.x)], outputs)
    assert kernel["blocks"] == -(-rows // block)
    assert kernel["threads"] == kernel["blocks"] * threads * block
    for seed in (1, 2, 3):
        check(made.reference(), run_between_canaries(compiled, made, seed=seed), "any")


@pytest.mark.parametrize("made", [
    call("batch_norm_training", np.zeros((4, 3, 5)), axes=(0, 2)),
    call("layer_norm", np.zeros((300, 9)), axes=(0,)),
    call("layer_norm", np.zeros((4, 6, 5)), axes=(0, 2))], ids=["batch", "columns", "both ends"])
def test_case_B15_other_reductions_are_refused(made):
    """Reductions outermost have no kernel yet; one error says so, and nothing is mapped."""
    with pytest.raises(ToolError) as failure:
        norm_opt(module_text([made]), ISA)
    errors = re.findall(r"error: (.*)", str(failure.value))
    assert len(errors) == 1 and re.search(rf"'norm\.{made.spec.kind}' op has no GPU kernel: ",
                                          errors[0])


@pytest.mark.parametrize("columns, dynamic", [(64, ()), (4096, ()), (65536, ()), (80, (0, 1)),
                                              (5001, ())])
def test_case_B16_no_local_memory(columns, dynamic):
    """Two reductions and their consumers in one kernel: no thread has an array on its stack."""
    text = ptx(every_op(np.zeros((8, columns)), "f32", dynamic))
    assert ".entry" in text and not re.search(r"\.local\b|__local_depot", text)


# ---- C: fusion -------------------------------------------------------------------------

def test_case_C11_mixed_types_in_one_kernel(tmp_path):
    """Every pair of x and gain and of x and residual: one kernel each, that reads each operand
    in its own type."""
    x, weight = RNG.standard_normal((5, 96)) + 1, 1 + RNG.standard_normal(96)
    pairs = list(itertools.product(NARROW, NARROW))
    calls = [call("rms_norm", x, a, scale=(weight, b)) for a, b in pairs]
    calls += [call("layer_norm", x, a, residual=(x, b), shift=(weight, b), results=("y", "rstd"))
              for a, b in pairs]
    text = norm_opt(module_text(calls), f"{ISA}=alignment=promised")
    assert len(re.findall(r"gpu\.binary @", text)) == len(calls)
    results = check_runs(calls, ["random"] * len(calls), tmp_path)
    for made, found in zip(calls[:9], results, strict=False):
        values = widen(made.x)
        y = values / np.sqrt((values**2).mean(1)[:, None] + 1e-5) * widen(made.scale)
        np.testing.assert_allclose(widen(found["y"]), y, rtol=1e-2, atol=1e-2)


def test_case_A6_overflow_on_a_gpu(tmp_path):
    """Squares beyond f32 are infinite as on a CPU, and `compute f64` computes them."""
    big = array(np.array([[1, 2, 3, 4]]) * 1e25)
    calls = [call("rms_norm", big), call("rms_norm", big, compute="f64"),
             call("layer_norm", big, compute="f64")]
    plain, wide, centred = run_calls(tmp_path, calls)[0]
    assert (plain["y"] == 0).all()
    np.testing.assert_allclose(wide["y"], [[0.36515, 0.73030, 1.09545, 1.46059]], rtol=1e-5)
    np.testing.assert_allclose(centred["y"], [[-1.34164, -0.44721, 0.44721, 1.34164]], rtol=1e-5)


def test_case_B18_reciprocal_root_on_a_gpu(tmp_path):
    """The root and the division are those of IEEE, not the chip's approximations."""
    calls = [call("rms_norm", [[1e-20] * 4], epsilon=0.0),
             call("rms_norm", [[0.0] * 4], placement="none", results=("y", "rstd")),
             call("rms_norm", [[np.inf, 1, 1, 1]], results=("y", "rstd"))]
    small, zero, infinite = run_calls(tmp_path, calls)[0]
    np.testing.assert_allclose(small["y"], [[1] * 4], rtol=1e-4)
    assert zero["rstd"] == np.inf and np.isnan(zero["y"]).all() and infinite["rstd"] == 0
    text = ptx(calls)
    assert "sqrt.rn.f32" in text and not re.search(r"\b(rsqrt|sqrt|rcp|div)\.(approx|full)", text)
