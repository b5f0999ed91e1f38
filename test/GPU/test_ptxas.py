"""Kernels through ptxas: no spills, nothing in local memory, whole accesses, and the table
of docs/GPU.md."""

import pytest
from norm import ptx
from norm.tools import ROOT

pytestmark = pytest.mark.skipif(ptx.ptxas() is None, reason="ptxas of CUDA is missing")
SOME = [shape for shape in ptx.TABLE if shape.columns in (128, 768, 4096, 32768)]


@pytest.fixture(scope="module")
def measured():
    return {shape: ptx.measure(shape) for shape in ptx.TABLE}


@pytest.mark.parametrize("shape", ptx.TABLE, ids=str)
def test_registers(shape, measured):
    found = measured[shape]
    assert found.spilled == 0 and found.stack == 0
    # 768 threads on a processor; one block, where two would be more.
    threads = int(found.strategy["threads"])
    assert found.registers <= (80 if threads < 512 else 128)


@pytest.mark.parametrize("shape", [s for s in ptx.TABLE if s.columns % 8 == 0], ids=str)
def test_whole_accesses(shape, measured):
    found = measured[shape]
    assert found.other == (0, 0)
    if found.strategy["staging"] != "registers":
        return
    # Each operand is read once and each result written once: V may take two accesses of
    # a wider type.
    width, size = int(found.strategy["width"]), {"f32": 4, "bf16": 2, "f16": 2}[shape.element]
    pieces = int(found.strategy["accesses"])
    rows = pieces * (1 + shape.operands.count("r")) * width * size // 16
    parameters = pieces * len(shape.operands.replace("r", "")) * width * 4 // 16
    assert found.wide == (rows + parameters, rows)


@pytest.mark.parametrize("shape", ptx.TABLE, ids=str)
def test_barriers(shape, measured):
    """One exchange for each reduction that waits for another."""
    found = measured[shape]
    exchanges = 2 if shape.op == "layer_norm" else 1
    assert found.barriers == (exchanges if int(found.strategy["threads"]) > 32 else 0)


@pytest.mark.parametrize("chip", ["sm_80", "sm_100"])
@pytest.mark.parametrize("shape", SOME, ids=str)
def test_other_chips(shape, chip):
    found = ptx.measure(shape, chip)
    assert found.spilled == 0 and found.stack == 0


def test_page():
    page = (ROOT / "docs" / "GPU.md").read_text()
    assert ptx.section(page) == ptx.table(), "run: python -m norm.ptx docs/GPU.md"
