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
        self.exact = stored["ref0"]
        self.text = self.source.read_text()
        self.raised = tools.norm_opt(self.text, *FIND)
        (out / f"{name}.norm.mlir").write_text(self.raised)

    def report(self):
        """What norm-report says of each norm that was found."""
        path = self.out / f"{self.name}.report.json"
        tools.norm_opt(self.raised, f"--norm-report=format=json file={path}")
        return json.loads(path.read_text())["norms"]

    def run(self, label: str, text: str, inputs=None) -> np.ndarray:
        """Compiles @main of a program for the CPU and runs it; its first result."""
        directory = self.out / f"{self.name}.{label.replace(' ', '_')}"
        return tools.norm_run(directory, text, inputs or self.inputs, ["f32"])[0]


def count_ops(text: str) -> Counter:
    """How often each operation occurs, constants and empty tensors aside."""
    names = re.findall(r"(?:^|= )\s*((?:linalg|tensor|arith|math|norm)\.[\w.]+)", text, re.M)
    return Counter(name for name in names if name not in ("arith.constant", "tensor.empty"))


def relative_error(value: np.ndarray, expected: np.ndarray) -> float:
    return float(np.max(np.abs(value - expected)) / np.max(np.abs(expected)))


def first_norm(text: str) -> str:
    """A layer's program cut short: it returns its first norm, the input of the first matmul."""
    found = re.search(r"tensor\.collapse_shape (%\w+) .*? : (tensor<[^>]*>) into", text)
    return re.sub(r"return %\w+ : tensor<[^>]*>", f"return {found[1]} : {found[2]}", text)


PLACES = {
    "pre": "pre-norm: before a branch",
    "post": "post-norm: after the addition",
    "branch": "on a branch",
    "sandwich": "sandwich: before and after a branch",
    "final": "final norm",
    "none": "not in one",
}


def casts(norm: dict) -> str:
    """The element types on the way from x through the computation to y."""
    types = [norm["types"]["x"], norm["compute"], norm["types"]["y"]]
    return "none (f32)" if set(types) == {"f32"} else " > ".join(types)


def fused(norm: dict) -> str:
    if not norm["residual"]:
        return "-"
    return "addition, sum kept" if "sum" in norm["types"] else "addition"


def print_norms(norms):
    row = "   {:10} {:4} {:17} {:10} {:11} {:18} {}"
    titles = ("norm", "axes", "epsilon", "casts", "weights", "fused", "in the residual stream")
    print(row.format(*titles))
    for norm in norms:
        epsilon = norm["epsilon"]
        print(
            row.format(
                norm["kind"].removeprefix("norm."),
                str(norm["axes"]),
                f"{epsilon['place']} {epsilon['value']:g}",
                casts(norm),
                " ".join(role for role in ("scale", "shift") if role in norm["types"]) or "-",
                fused(norm),
                PLACES[norm["placement"]],
            )
        )


def show_layer(layer: Layer, number: int, title: str):
    """Prints what was found and fused in a layer, and how far its results are off."""
    before, after = count_ops(layer.text), count_ops(layer.raised)
    generics = "linalg.generic"
    print(f"{number}. {title}: {layer.source.relative_to(ROOT)}")
    print_norms(layer.report())
    print(
        f"   operations: {before.total()} as exported ({before[generics]} {generics}, no norm), "
        f"{after.total()} now ({after[generics]} {generics})"
    )
    original = layer.run("as exported", layer.text)
    ours = layer.run("with norms", layer.raised)
    print("   run on the CPU, largest error relative to the largest output:")
    for what, error in (
        ("as exported, against the model in f64", relative_error(original, layer.exact)),
        ("with norms, against the model in f64", relative_error(ours, layer.exact)),
        ("with norms, against as exported", relative_error(ours, original)),
    ):
        print(f"     {what:40}{error:.1e}")
    print()


def show_hard_row(layer: Layer, number: int):
    """Runs the layer's own first norm on a row with mean/std = 1e7."""
    text = first_norm(layer.text)
    programs = {
        "as exported": tools.norm_opt(text, "--canonicalize"),
        "with norms": tools.norm_opt(text, *FIND),
    }
    x = layer.inputs[0]
    x = (1.0e7 + np.random.default_rng(0).standard_normal(x.shape)).astype(np.float32)
    scale, shift = layer.inputs[1:3]
    exact = reference.layer_norm(
        x, scale=scale, shift=shift, axes=(2,), epsilon=1e-5, result="f64"
    ).y
    values = {"oracle": exact}
    for name, program in programs.items():
        values[name] = layer.run(f"hard row {name}", program, [x, *layer.inputs[1:]])
    print(f"{number}. Its first norm alone, on rows of mean 1e7 and deviation 1:")
    for name, value in values.items():
        row = " ".join(f"{entry:10.6f}" for entry in np.ravel(value)[:4])
        error = "" if value is exact else f"  error {relative_error(value, exact):.1e}"
        print(f"     {name:12} {row}  ...{error}")
    print("   As exported, a mean summed and rounded in f32 is subtracted. The op promises to be")
    print("   exact to a few units in the last place, and every path that compiles it keeps that.")
    print()


INTRO = """\
norm finds the normalizations in a compiler's IR, says exactly what each computes, fuses what
stands beside it, and compiles it without changing what the model means. Two layers as PyTorch
exports them:
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "demo")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    print(INTRO)
    llama, gpt2 = Layer("llama_1l_f32", out), Layer("gpt2_1l_f32", out)
    show_layer(llama, 1, "One Llama layer")
    show_layer(gpt2, 2, "One GPT-2 layer")
    show_hard_row(gpt2, 3)
    shown = out.relative_to(ROOT) if out.is_relative_to(ROOT) else out
    print(f"Files: {shown} has the programs with norms (*.norm.mlir), what norm-report says of")
    print("       them (*.report.json), and a folder per run: program, inputs and outputs (.npy).")
    print("Next:  docs/Tutorial.md does this step by step.")


if __name__ == "__main__":
    main()
