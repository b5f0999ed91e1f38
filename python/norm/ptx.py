"""What ptxas makes of kernels: registers, spills and accesses, over a table of shapes.

    python -m norm.ptx docs/GPU.md      writes the table into the page
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from norm.tools import ToolError, norm_opt

BEGIN, END = "<!-- ptxas table -->\n", "<!-- end of ptxas table -->\n"
# The table's chip comes first.
CHIPS = ("sm_90", "sm_80", "sm_100")


@dataclass(frozen=True)
class Shape:
    """A norm with everything that its operands' letters say (r residual with its stored
    sum, g scale, b shift), on rows of `columns`."""

    op: str
    element: str
    columns: int
    operands: str
    parameters: str = "f32"

    @property
    def name(self):
        return f"{self.op}_{self.element}_{self.columns}_{self.operands}_{self.parameters}"

    def function(self):
        x = f"tensor<64x{self.columns}x{self.element}>"
        row = f"tensor<{self.columns}x{self.parameters}>"
        operands = {"r": f"residual(%r : {x})", "g": f"scale(%g : {row})",
                    "b": f"shift(%b : {row})"}
        types = {"r": x, "g": row, "b": row}
        arguments = "".join(f", %{o}: {types[o]}" for o in self.operands)
        clauses = " ".join(operands[o] for o in self.operands)
        fused = "r" in self.operands
        results, returned = (f"{x} sum({x})", f"({x}, {x})") if fused else (x, x)
        names = "%y, %s" if fused else "%y"
        return (f"func.func @{self.name}(%x: {x}{arguments}) -> {returned} {{\n"
                f"  {names} = norm.{self.op} %x {clauses} axes [1] "
                f"epsilon inside_sqrt 1.0e-6 : {x} -> {results}\n"
                f"  return {names} : {returned.strip('()')}\n}}\n")


TABLE = [
    Shape("rms_norm", "bf16", 64, "g"), Shape("rms_norm", "bf16", 128, "g"),
    Shape("rms_norm", "f32", 128, "g"), Shape("rms_norm", "bf16", 256, "g"),
    Shape("rms_norm", "f32", 768, "rg"), Shape("layer_norm", "f32", 768, "rgb"),
    Shape("layer_norm", "bf16", 768, "rgb"), Shape("layer_norm", "f16", 1024, "rgb"),
    Shape("layer_norm", "bf16", 1600, "rgb"), Shape("rms_norm", "bf16", 2048, "rg"),
    Shape("rms_norm", "bf16", 3584, "rg"), Shape("rms_norm", "f32", 4096, "rg"),
    Shape("rms_norm", "bf16", 4096, "rg"), Shape("layer_norm", "f32", 4096, "rgb"),
    Shape("layer_norm", "bf16", 4096, "rgb"), Shape("rms_norm", "bf16", 5120, "rg"),
    Shape("rms_norm", "bf16", 8192, "rg"), Shape("layer_norm", "f32", 16384, "gb"),
    Shape("rms_norm", "bf16", 32768, "g"), Shape("layer_norm", "f32", 49152, "gb"),
    Shape("rms_norm", "bf16", 65536, "rg"), Shape("layer_norm", "bf16", 98304, "gb"),
    Shape("layer_norm", "f32", 65536, "gb"),
    Shape("layer_norm", "f32", 1023, "rgb"), Shape("rms_norm", "bf16", 1023, "rg"),
    Shape("layer_norm", "bf16", 4097, "rgb"), Shape("layer_norm", "f16", 33001, "gb"),
]


def ptxas():
    """The assembler, or None."""
    for root in (os.environ.get("CUDA_ROOT"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if root and (Path(root) / "bin" / "ptxas").is_file():
            return str(Path(root) / "bin" / "ptxas")
    return shutil.which("ptxas")


def kernels(module):
    """PTX by kernel, from what norm-to-nvvm printed."""
    def unescape(text):
        text = re.sub(r"\\([0-9A-F]{2})", lambda m: chr(int(m.group(1), 16)), text)
        return text.replace("\0", "")
    pattern = r'gpu\.binary @(\w+).*?assembly = "(.*?)">'
    return {name: unescape(text) for name, text in re.findall(pattern, module, re.DOTALL)}


@dataclass(frozen=True)
class Measured:
    strategy: dict
    registers: int
    spilled: int
    stack: int
    wide: tuple  # loads and stores of 16 bytes
    other: tuple
    shuffles: int
    barriers: int


def _accesses(ptx, kind):
    found = re.findall(rf"\b{kind}\.global(\S*)", ptx)
    wide = [suffix for suffix in found
            if re.search(r"\.v4\.\w?32|\.v2\.\w?64|\.v8\.\w?32|\.v4\.\w?64", suffix)]
    return len(wide), len(found) - len(wide)


def _measure(ptx, chip, strategy):
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "kernel.ptx"
        source.write_text(ptx)
        command = [ptxas(), f"-arch={chip}", "-v", str(source), "-o", "/dev/null"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolError(command, done.returncode, done.stdout, done.stderr)

    def number(pattern):
        return int(re.search(pattern, done.stderr)[1])
    loads, stores = _accesses(ptx, "ld"), _accesses(ptx, "st")
    return Measured(strategy, number(r"Used (\d+) registers"),
                    number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads"),
                    number(r"(\d+) bytes stack frame"), (loads[0], stores[0]),
                    (loads[1], stores[1]), len(re.findall(r"\bshfl\.", ptx)),
                    len(re.findall(r"\bbar(?:rier)?\.sync", ptx)))


def measure(shapes, chip):
    """{shape: Measured} of the one kernel that each shape has where its rows are aligned."""
    module = "".join(shape.function() for shape in shapes)
    configured = norm_opt(module, f"--norm-configure=target=gpu chip={chip}")
    strategies = [dict(re.findall(r"(\w+) = (\w+)", found))
                  for found in re.findall(r"#norm\.gpu<(.*?)>", configured)]
    found = kernels(norm_opt(module, f"--norm-to-nvvm=chip={chip} alignment=promised"))
    texts = [found[f"{shape.name}_kernel"] for shape in shapes]
    assert len(texts) == len(strategies) == len(found)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        measured = pool.map(_measure, texts, [chip] * len(texts), strategies)
    return dict(zip(shapes, measured, strict=True))


def table(measured):
    """The page's table. measured: {chip: {shape: Measured}}."""
    names = {"rms_norm": "RMS", "layer_norm": "LN"}
    lines = ["| kernel | T x rows, k, V | registers | 16-byte loads / stores | other "
             "| shuffles / barriers |", "|---|---|---|---|---|---|"]
    for shape, m in measured[CHIPS[0]].items():
        s = m.strategy
        sums = " with residual" if "r" in shape.operands else ""
        chunks = {"registers": "", "shared": ", shared", "reread": ", chunks"}[s["staging"]]
        lines.append(
            f"| {names[shape.op]} {shape.element} {shape.columns}{sums} "
            f"| {s['threads']} x {s['rows']}, {s['accesses']}, {s['width']}{chunks} "
            f"| {m.registers} | {m.wide[0]} / {m.wide[1]} | {m.other[0]} / {m.other[1]} "
            f"| {m.shuffles} / {m.barriers} |")
    others = []
    for chip in CHIPS[1:]:
        registers = [m.registers for m in measured[chip].values()]
        spilled = sum(bool(m.spilled or m.stack) for m in measured[chip].values())
        others.append(f"`{chip}`: {min(registers)} to {max(registers)} registers, "
                      f"{spilled or 'no'} kernel{'s' * (spilled > 1)} with spills or local memory")
    return "\n".join(lines) + "\n\nThe same on " + "; on ".join(others) + ".\n"


def everything():
    """What `table` takes."""
    return {chip: measure(TABLE, chip) for chip in CHIPS}


def section(page):
    """What a page has between the table's marks."""
    return page[page.index(BEGIN) + len(BEGIN):page.index(END)]


def main():
    path = Path(sys.argv[1])
    before, rest = path.read_text().split(BEGIN)
    path.write_text(before + BEGIN + table(everything()) + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
