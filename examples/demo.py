"""Finds, fuses, compiles and checks the norms of two real model layers.

usage: demo.py --build BUILD [--out DIR]

Takes the linalg IR that PyTorch's exporter wrote for one Llama layer and one
GPT-2 layer and shows in one screenful what this project does with them.
"""

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from norm import reference  # noqa: E402

FIND = ["--norm-raise", "--norm-fuse-residual", "--canonicalize", "--cse"]


class Tools:
    """norm-opt and norm-run of one build."""

    def __init__(self, build: Path):
        self.bin = build / "bin"

    def call(self, tool: str, *arguments) -> str:
        command = [str(self.bin / tool), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}\nfailed:\n{done.stderr}")
        return done.stdout

    def transform(self, source: Path, target: Path, *flags) -> Path:
        self.call("norm-opt", source, *flags, "-o", target)
        return target

    def report(self, source: Path) -> dict:
        return json.loads(self.call("norm-opt", source, "--norm-report=format=json", "-o", "/dev/null"))

    def run(self, program: Path, inputs, out: Path, target="cpu") -> np.ndarray:
        """Runs @main of the program; inputs are .npy files; returns its first result."""
        self.call(
            "norm-run",
            program,
            "--entry=main",
            f"--target={target}",
            *(f"--input={path}" for path in inputs),
            f"--output={out}",
        )
        return np.load(out)


def count_ops(program: Path) -> Counter:
    """How often each operation occurs in a program's text, constants aside."""
    text = program.read_text()
    names = re.findall(r"(?:^|= )\s*((?:linalg|tensor|arith|math|norm)\.[\w.]+)", text, re.M)
    return Counter(name for name in names if name not in ("arith.constant", "tensor.empty"))


def save_arrays(arrays, out: Path, stem: str):
    paths = []
    for index, array in enumerate(arrays):
        paths.append(out / f"{stem}.in{index}.npy")
        np.save(paths[-1], array)
    return paths


def relative_error(value, expected) -> float:
    expected = np.asarray(expected, np.float64)
    return float(np.max(np.abs(value - expected)) / np.max(np.abs(expected)))
