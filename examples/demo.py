"""Finds, fuses, compiles and checks the norms of two real model layers.

usage: demo.py [--out DIR]

Takes the linalg IR that PyTorch's exporter wrote for one Llama layer and one
GPT-2 layer, and shows in one screenful what this project does with them.
"""

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from norm import reference, tools  # noqa: E402

CORPUS = ROOT / "test" / "Corpus"
FIND = ("--norm-raise", "--norm-fuse-residual", "--canonicalize", "--cse")


class Layer:
    """One exported layer: its program, its stored inputs and its f64 reference."""

    def __init__(self, name: str, out: Path):
        self.name, self.out = name, out
        self.source = CORPUS / f"{name}.linalg.mlir"
        stored = np.load(CORPUS / f"{name}.npz")
        count = sum(key.startswith("in") for key in stored.files)
        self.inputs = [stored[f"in{index}"] for index in range(count)]
        self.reference = stored["ref0"]
        self.text = self.source.read_text()
        self.raised = tools.norm_opt(self.text, *FIND)
        (out / f"{name}.norm.mlir").write_text(self.raised)

    def report(self):
        """What norm-report says of each norm that was found."""
        path = self.out / f"{self.name}.report.json"
        path.write_text(tools.norm_opt(self.raised, "--norm-report=format=json"))
        return json.loads(path.read_text())

    def run(self, text: str, inputs=None) -> np.ndarray:
        """Compiles @main of a program for the CPU and runs it; its first result."""
        directory = self.out / "run"
        return tools.norm_run(directory, text, inputs or self.inputs, ["f32"])[0]


def count_ops(text: str) -> Counter:
    """How often each operation occurs, constants and empty tensors aside."""
    names = re.findall(r"(?:^|= )\s*((?:linalg|tensor|arith|math|norm)\.[\w.]+)", text, re.M)
    return Counter(name for name in names if name not in ("arith.constant", "tensor.empty"))


def relative_error(value: np.ndarray, expected: np.ndarray) -> float:
    return float(np.max(np.abs(value - expected)) / np.max(np.abs(expected)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "demo")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)


if __name__ == "__main__":
    main()
