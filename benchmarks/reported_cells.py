"""The cells of public complaints about speed (docs/Cases.md), timed by norm-run beside a
copy of the same bytes, each beside what it must not be slower than.
"""

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np
from norm.data import draw, generator
from norm.program import Call, Slice, element_name, module_text
from norm.reference import NormSpec
from norm.tools import run, save_npy, tool

OPS = ("layer_norm", "rms_norm")
# Enough bytes a cell for steady medians, and an end to the smallest cells.
BYTES_PER_CELL, RUNS = 4 << 30, (10, 1000)
# What is drawn of a large array; the rest repeats it.
DRAWN = 1 << 20
QUICK = 512 * 768  # the elements of the largest quick cell


@dataclass
class Cell:
    """One row of the table. make: its call, made when it is timed. against: the name of
    an earlier cell whose time its own is divided by. case: the report it comes from."""

    name: str
    elements: int
    make: Callable[[], Call]
    case: str = ""
    against: str = ""


def data(rng, shape, element, mean=0.25, std=1.5):
    size = int(np.prod(shape))
    return np.resize(draw(rng, (min(size, DRAWN),), element, mean, std), shape)


def call(op, shape, element, axes=(-1,), statistics=(), **rest):
    """A gain, and a shift for LN, over the last axis. A gradient is that of x, scale and
    shift, with saved statistics."""
    rng = generator(f"{op}{shape}{element}")
    operands = dict(scale=draw(rng, shape[-1:], element, 1.0, 0.1))
    results = ("y", *statistics)
    if op.endswith("_backward"):
        kept = [n for a, n in enumerate(shape) if a - len(shape) not in axes]
        operands.update(dy=data(rng, shape, element), rstd=draw(rng, kept, "f32", 1.0, 0.1))
        results = ("dx", "dscale")
        if op != "rms_norm_backward":
            operands["mean"] = draw(rng, kept, "f32")
            results += ("dshift",)
    elif op == "layer_norm":
        operands["shift"] = draw(rng, shape[-1:], element, 0.0, 0.1)
    elif op == "moments":
        del operands["scale"]
        results = ("mean", "m2")
    if rest.pop("residual", False):
        operands["residual"] = data(rng, shape, element)
        results += ("sum",)
    return Call(NormSpec(kind=op, axes=axes), data(rng, shape, element), results=results,
                **operands, **rest)


def strided(op, shape, element):
    """The middle third of the columns of a tensor three times as wide."""
    made = call(op, shape, element)
    base = np.tile(made.x, (1, 3))
    made.slice = Slice(base, (0, shape[1]), (1, 1))
    return made


def title(op, shape, element, note=""):
    return f"{op} {'x'.join(map(str, shape))} {element}{' ' if note else ''}{note}"


def reported():
    """Cells of the complaints about speed."""
    cells = []

    def add(case, op, shape, element="f32", note="", against="", make=call, **rest):
        cells.append(Cell(title(op, shape, element, note), int(np.prod(shape)),
                          lambda: make(op, shape, element, **rest), f"case-{case}", against))
    # One norm, one loop: at most the time of the forward pass without what is saved.
    for op, shape, element in (("layer_norm", (10, 32, 42, 32), "f32"),
                               ("rms_norm", (1, 2048), "f16")):
        add("D1", op, shape, element)
    for shape in ((2048, 4096), (512, 768)):
        plain = title("layer_norm", shape, "f32", "alone")
        add("D1", "layer_norm", shape, note="alone")
        add("D1", "layer_norm", shape, note="saves mean, rstd", against=plain,
            statistics=("mean", "rstd"))
        add("D1", "layer_norm", shape, note="adds, stores the sum", against=plain, residual=True)
    # Gradients of tall, square and wide inputs, and of powers of two plus and minus one.
    for rows, hidden in ((1048576, 128), (16384, 1024), (256, 16384), (16383, 1023),
                         (16385, 1025), (512, 768)):
        for op in OPS:
            add("D2", f"{op}_backward", (rows, hidden))
    # RMS norm beside layer norm.
    for hidden in (64, 256, 1024, 2048, 4096, 8192, 16384):
        shape = (2048, hidden)
        add("D3", "layer_norm", shape)
        add("D3", "rms_norm", shape, against=title("layer_norm", shape, "f32"))
    # Sums alone.
    for shape in ((2048, 4096), (1, 65536), (65536, 64)):
        add("D5", "moments", shape)
    # A slice of a fused projection beside a whole tensor.
    for rows, element in ((1, "bf16"), (64, "bf16"), (1024, "bf16"), (1024, "f32")):
        whole = title("rms_norm", (rows, 7168), element, "whole")
        add("D7", "rms_norm", (rows, 7168), element, note="whole")
        add("D7", "rms_norm", (rows, 7168), element, note="slice", against=whole, make=strided)
    return cells


def parse(output):
    """(microseconds, ratio to the copy) from what norm-run --time prints."""
    time = re.search(r"^time: median ([0-9.]+) us", output, re.MULTILINE)
    ratio = re.search(r"^ratio to the copy: ([0-9.]+)", output, re.MULTILINE)
    if not time or not ratio:
        raise ValueError(f"norm-run --time printed no time and ratio:\n{output}")
    return float(time[1]), float(ratio[1])


def bytes_moved(made):
    """Of operands and results, each read or written once."""
    read = sum(array.nbytes for array in made.operands().values())
    return read + sum(int(np.prod(shape)) * element.dtype.itemsize
                      for shape, element in made.result_types())


def measure(directory, made, repeat):
    """The median over `repeat` processes."""
    source = directory / "module.mlir"
    source.write_text(module_text([made]))
    command = [tool("norm-run"), source, "--entry=main", "--target=cpu"]
    for number, array in enumerate(made.inputs()):
        path = directory / f"input{number}.npy"
        save_npy(path, array)
        command.append(f"--input={path}")
    moved = bytes_moved(made)
    runs = int(np.clip(BYTES_PER_CELL // moved, *RUNS))
    results = [parse(run([*command, f"--time={runs}"])) for _ in range(repeat)]
    microseconds, ratio = np.median(results, axis=0)
    return {"op": made.spec.kind, "shape": list(made.x.shape), "type": element_name(made.x.dtype),
            "runs": runs, "microseconds": microseconds,
            "gigabytes_per_second": moved / microseconds / 1e3, "ratio_to_copy": ratio}


def show(cells, repeat):
    """Times and prints the cells; their records."""
    width = max(len(cell.name) for cell in cells) + 2
    print(f"{'case':<9}{'norm':<{width}}{'us':>10}{'GB/s':>8}{'copy ratio':>12}{'beside':>8}")
    done = {}
    with tempfile.TemporaryDirectory() as directory:
        for cell in cells:
            record = measure(Path(directory), cell.make(), repeat)
            record.update(name=cell.name, case=cell.case)
            beside = ""
            if cell.against in done:
                ratio = record["microseconds"] / done[cell.against]["microseconds"]
                record.update(against=cell.against, ratio_to_that=ratio)
                beside = f"{ratio:>8.2f}"
            done[cell.name] = record
            print(f"{cell.case:<9}{cell.name:<{width}}{record['microseconds']:>10.1f}"
                  f"{record['gigabytes_per_second']:>8.1f}{record['ratio_to_copy']:>12.2f}"
                  f"{beside}", flush=True)
    return list(done.values())


def selected(text, quick):
    """The cells whose name or case contains a text; if quick, the small ones."""
    return [cell for cell in reported() if (text in cell.name or text in cell.case)
            and not (quick and cell.elements > QUICK)]
