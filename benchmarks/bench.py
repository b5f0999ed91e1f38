"""Times LN and RMS beside a copy of the same bytes made in the same run.

    ./dev bench [--quick] [--filter TEXT] [--repeat N]

A ratio of 1 means as fast as copying; machines differ less in it than in times.
Prints a table and writes out/bench.json.
"""

import argparse
import json
import platform
import re
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from norm.data import draw, generator  # noqa: E402
from norm.program import Call, module_text  # noqa: E402
from norm.reference import NormSpec  # noqa: E402
from norm.tools import run, save_npy, tool  # noqa: E402

SHAPES = ((4096, 4096), (16384, 768), (131072, 128), (512, 768), (1, 4096))
OPS = ("layer_norm", "rms_norm")
TYPES = ("f32", "bf16")
# Enough bytes a cell for steady medians, and an end to the smallest cells.
BYTES_PER_CELL, RUNS = 4 << 30, (10, 1000)


def call(op, shape, element):
    """Forward with a gain, and a shift for LN, over the last axis."""
    rng = generator(f"{op}{shape}{element}")
    scale = draw(rng, shape[1:], element, 1.0, 0.1)
    shift = draw(rng, shape[1:], element, 0.0, 0.1) if op == "layer_norm" else None
    return Call(NormSpec(kind=op, axes=(1,)), draw(rng, shape, element, 0.25, 1.5),
                scale=scale, shift=shift)


def parse(output):
    """(microseconds, ratio to the copy) from what norm-run --time prints."""
    time = re.search(r"^time: median ([0-9.]+) us", output, re.MULTILINE)
    ratio = re.search(r"^ratio to the copy: ([0-9.]+)", output, re.MULTILINE)
    if not time or not ratio:
        raise ValueError(f"norm-run --time printed no time and ratio:\n{output}")
    return float(time[1]), float(ratio[1])


def measure(directory, op, shape, element, repeat):
    """One cell: the median over `repeat` processes."""
    made = call(op, shape, element)
    source = directory / "module.mlir"
    source.write_text(module_text([made]))
    command = [tool("norm-run"), source, "--entry=main", "--target=cpu"]
    moved = 2 * made.x.nbytes
    for number, array in enumerate(made.inputs()):
        path = directory / f"input{number}.npy"
        save_npy(path, array)
        command.append(f"--input={path}")
    runs = int(np.clip(BYTES_PER_CELL // moved, *RUNS))
    results = [parse(run([*command, f"--time={runs}"])) for _ in range(repeat)]
    microseconds, ratio = np.median(results, axis=0)
    return {"op": op, "shape": list(shape), "type": element, "runs": runs,
            "microseconds": microseconds, "gigabytes_per_second": moved / microseconds / 1e3,
            "ratio_to_copy": ratio}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--filter", default="", help="only cells whose name contains this")
    parser.add_argument("--repeat", type=int, default=3, help="processes a cell (median)")
    parser.add_argument("--quick", action="store_true", help="one process a cell, small shapes")
    options = parser.parse_args()
    repeat = 1 if options.quick else options.repeat
    shapes = [s for s in SHAPES if not options.quick or s[0] * s[1] <= 512 * 768]
    cells = []
    print(f"{'op':<11}{'shape':<13}{'type':<6}{'us':>10}{'GB/s':>8}{'copy ratio':>12}")
    with tempfile.TemporaryDirectory() as directory:
        for element in TYPES:
            for shape in shapes:
                for op in OPS:
                    name = f"{op} {'x'.join(map(str, shape))} {element}"
                    if options.filter not in name:
                        continue
                    cell = measure(Path(directory), op, shape, element, repeat)
                    cells.append(cell)
                    print(f"{op:<11}{'x'.join(map(str, shape)):<13}{element:<6}"
                          f"{cell['microseconds']:>10.1f}{cell['gigabytes_per_second']:>8.1f}"
                          f"{cell['ratio_to_copy']:>12.2f}", flush=True)
    if not cells:
        parser.error(f"no cell's name contains '{options.filter}'")
    out = ROOT / "out" / "bench.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps({"machine": platform.processor() or platform.machine(),
                               "cells": cells}, indent=2) + "\n")
    print(f"written to {out.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
