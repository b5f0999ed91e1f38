"""Kernels through ptxas: no spills, nothing in local memory, whole accesses, fatbins, and the
table of docs/GPU.md."""

import re
import subprocess

import pytest
from norm import ptx
from norm.tools import ROOT, norm_opt

pytestmark = pytest.mark.skipif(ptx.ptxas() is None, reason="ptxas of CUDA is missing")

everywhere = pytest.mark.parametrize("chip", ptx.CHIPS)


@pytest.fixture(scope="module")
def measured():
    return ptx.everything()


@everywhere
@pytest.mark.parametrize("shape", ptx.TABLE, ids=str)
def test_registers(shape, chip, measured):
    found = measured[chip][shape]
    assert found.spilled == 0 and found.stack == 0
    # 640 threads on a processor, 512 that shift; one block, where two would be more.
    threads = int(found.strategy["threads"])
    shifts = shape.columns % int(found.strategy["width"]) != 0
    assert found.registers <= (128 if shifts or threads >= 512 else 96)


ALIGNED = [shape for shape in ptx.TABLE if shape.columns % 8 == 0]


@everywhere
@pytest.mark.parametrize("shape", ALIGNED, ids=str)
def test_whole_accesses(shape, chip, measured):
    """Whatever alignment allows; on sm_90, where none is wider than 16 bytes, each operand is
    read once and each result written once. V may take two accesses of a wider type."""
    found = measured[chip][shape]
    assert found.other == (0, 0)
    if found.strategy["staging"] != "registers" or chip != "sm_90":
        return
    width, size = int(found.strategy["width"]), {"f32": 4, "bf16": 2, "f16": 2}[shape.element]
    pieces = int(found.strategy["accesses"])
    rows = pieces * (1 + shape.operands.count("r")) * width * size // 16
    parameters = pieces * len(shape.operands.replace("r", "")) * width * 4 // 16
    assert found.wide == (rows + parameters, rows)


@pytest.mark.parametrize("shape", [s for s in ptx.TABLE if s.columns % 8 != 0
                                   and s.columns < 8192], ids=str)
def test_odd_rows_go_by_whole_accesses(shape, measured):
    """On sm_90. A piece is as many as in aligned rows; on the way to it the last lane of a warp
    reads one more. Single elements are those at the ends of what is read and written."""
    found = measured["sm_90"][shape]
    width, size = int(found.strategy["width"]), {"f32": 4, "bf16": 2, "f16": 2}[shape.element]
    pieces = int(found.strategy["accesses"])
    rows, parameters = 1 + shape.operands.count("r"), len(shape.operands.replace("r", ""))
    parts = rows * width * size // 16, parameters * width * 4 // 16
    assert found.wide[0] >= pieces * sum(parts)
    assert found.wide[0] <= pieces * (sum(parts) + rows + parameters)
    assert found.wide[1] == pieces * parts[0]
    ends = rows * 16 // size * 3, parameters * 4 * (2 + width * 4 // 16)
    assert found.other[0] <= sum(ends)
    assert found.other[1] <= ends[0]


@everywhere
@pytest.mark.parametrize("shape", ptx.TABLE, ids=str)
def test_barriers(shape, chip, measured):
    """One exchange for each reduction that waits for another. Warps hand on what rows that V
    does not divide write: before the next chunk writes, too."""
    found = measured[chip][shape]
    exchanges = 2 if shape.op == "layer_norm" else 1
    if shape.columns % int(found.strategy["width"]):
        results = 1 + shape.operands.count("r")
        exchanges += results if found.strategy["staging"] == "registers" else 3 * results
    assert found.barriers == (exchanges if int(found.strategy["threads"]) > 32 else 0)


def test_page(measured):
    page = (ROOT / "docs" / "GPU.md").read_text()
    assert ptx.section(page) == ptx.table(measured), "run: python -m norm.ptx docs/GPU.md"


# ---- fatbins ---------------------------------------------------------------------------

def images(module):
    """The bytes of the one object in a module, and its format."""
    (found,) = re.findall(r"#gpu\.object<#nvvm\.target<[^>]*>,[^\"]*\"((?:[^\"\\]|\\.)*)\">",
                          module)
    found = re.sub(r"\\([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), found)
    return found.replace('\\"', '"').replace("\\\\", "\\").encode("latin-1")


def test_a_fatbin_is_what_fatbinary_makes(tmp_path):
    """Cubins and PTX of all chips: the bytes that CUDA's tool writes when it is given all."""
    function = ptx.Shape("rms_norm", "f32", 768, "g").function()
    chips = ("sm_80", "sm_90", "sm_100")
    command = [ptx.ptxas().replace("ptxas", "fatbinary"), "-64", f"--create={tmp_path}/all.fatbin"]
    for chip in chips:
        for kind, format in ("elf", "bin"), ("ptx", "isa"):
            path = tmp_path / f"{chip}.{format}"
            path.write_bytes(images(norm_opt(
                function, f"--norm-to-nvvm=chip={chip} format={format} alignment=promised")))
            command.append(f"--image3=kind={kind},sm={chip[3:]},file={path}")
    subprocess.run(command, check=True)
    linked = images(norm_opt(function, "--norm-to-nvvm=chip=sm_100,sm_80,sm_90 format=fatbin "
                                       "alignment=promised"))
    assert linked == (tmp_path / "all.fatbin").read_bytes()


def test_one_launch_is_for_all_chips():
    """Host code and rows on threads are those of the oldest chip, so are the bits."""
    function = ptx.Shape("layer_norm", "f32", 16384, "gb").function()

    def host(options):
        return re.sub(r"gpu\.binary.*", "", norm_opt(function, f"--norm-to-nvvm={options}"))
    assert host("chip=sm_90,sm_80 format=fatbin") == host("chip=sm_80 format=isa")
