"""Finds, fuses, compiles and checks the norms of two real model layers.

usage: demo.py [--out DIR]

Takes the linalg IR that PyTorch's exporter wrote for one Llama layer and one
GPT-2 layer, and shows in one screenful what this project does with them, on the
CPU and as GPU kernels, which an emulator runs.
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

from norm import ptx, reference, tools  # noqa: E402
from norm.emulated import Emulated, aligned  # noqa: E402

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


NORM_LINE = re.compile(
    r"^ *(?P<results>(?:%\w+(?:, )?)+) = norm\.(?P<kind>\w+) (?P<x>%\w+) (?P<middle>.*?axes.*?)"
    r" : (?P<type>\S+) -> (?P<y>[^ \n]+)(?: sum\((?P<sum>\S+)\))?$",
    re.M,
)


class Kernel:
    """One norm of a layer as a function of its own: its operands, (name, type) pairs, and
    what the layer has computed of them."""

    def __init__(self, found: re.Match, number: int):
        self.name, self.kind = f"norm{number}", found["kind"]
        others = re.findall(r"(\w+)\((%\w+) : (tensor<[^>]*>)\)", found["middle"])
        self.operands = {"x": (found["x"], found["type"])}
        self.operands |= {role: (value, kind) for role, value, kind in others}
        types = [found["y"], found["sum"]]
        self.results = list(zip(found["results"].split(", "), filter(None, types), strict=True))
        self.epsilon = float(re.search(r"epsilon inside_sqrt (\S+)", found["middle"])[1])
        arguments = ", ".join(f"{value}: {kind}" for value, kind in self.operands.values())
        returned = ", ".join(value for value, _ in self.results)
        kinds = ", ".join(kind for _, kind in self.results)
        self.text = (
            f"func.func @{self.name}({arguments}) -> ({kinds}) {{\n{found[0]}\n"
            f"  return {returned} : {kinds}\n}}\n"
        )

    def exact(self, values) -> np.ndarray:
        """y by the oracle, in f64."""
        given = {role: values[value] for role, (value, _) in self.operands.items()}
        norm = getattr(reference, self.kind)
        return norm(**given, axes=(2,), epsilon=self.epsilon, result="f64").y


def values_of(layer: Layer, kernels) -> dict:
    """What the layer computes on the CPU for its norms: {name: array}."""
    known = {f"%arg{number}": array for number, array in enumerate(layer.inputs)}
    wanted = {}
    for kernel in kernels:
        wanted |= dict([*kernel.operands.values(), *kernel.results])
    wanted = {name: kind for name, kind in wanted.items() if name not in known}
    names, types = ", ".join(wanted), ", ".join(wanted.values())
    text = re.sub(r"return %\w+ : tensor<[^>]*>", f"return {names} : {types}", layer.raised)
    text = re.sub(r"(@main\(.*\) -> )tensor<[^>]*>", rf"\g<1>({types})", text)
    directory = layer.out / f"{layer.name}.norms"
    arrays = tools.norm_run(directory, text, layer.inputs, ["f32"] * len(wanted))
    return known | dict(zip(wanted, arrays, strict=True))


def traffic(arrays, direction: str) -> str:
    """Bytes that kernels moved, in sectors of 32, and how large each array is."""
    moved = [array for array in arrays if array[direction]["bytes"]]
    return " ".join(f"{32 * array[direction]['sectors']}/{array['size']}" for array in moved)


def show_kernels(layer: Layer, number: int, title: str):
    """Compiles a layer's norms for GPUs and runs them in the emulator on the layer's data."""
    kernels = [Kernel(found, i) for i, found in enumerate(NORM_LINE.finditer(layer.raised))]
    module = "".join(kernel.text for kernel in kernels)
    options = "--norm-to-nvvm=chip=sm_80 alignment=promised"
    for name, text in ptx.kernels(tools.norm_opt(module, options)).items():
        (layer.out / f"{layer.name}.{name}.ptx").write_text(text)
    emulated = Emulated(layer.out / f"{layer.name}.emulated", module, f"{options} format=llvm")
    values = values_of(layer, kernels)
    print(f"{number}. {title}, run by the emulator, which checks every access:")
    row = "   {:10} {:10} {:27} {:16} {:9} {:9} {}"
    titles = ("norm", "blocks", "bytes read / of an array", "written", "barriers", "off f64")
    print(row.format(*titles, "off the CPU"))
    for kernel in kernels:
        inputs = [aligned(values[value]) for value, _ in kernel.operands.values()]
        outputs = [aligned(np.zeros_like(values[value])) for value, _ in kernel.results]
        (counted,) = emulated.count(inputs, outputs, entry=kernel.name)
        threads = counted["threads"] // counted["blocks"]
        print(
            row.format(
                kernel.kind,
                f"{counted['blocks']} of {threads}",
                traffic(counted["arrays"], "read"),
                traffic(counted["arrays"], "written"),
                counted["barriers"],
                f"{relative_error(outputs[0], kernel.exact(values)):.1e}",
                f"{relative_error(outputs[0], values[kernel.results[0][0]]):.1e}",
            )
        )
    print("   Bytes are sectors of 32 that warps ask for; threads without a row read the last one.")
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
    show_kernels(llama, 4, "The Llama layer's norms as GPU kernels")
    shown = out.relative_to(ROOT) if out.is_relative_to(ROOT) else out
    print(f"Files: {shown} has the programs with norms (*.norm.mlir), what norm-report says of")
    print("       them (*.report.json), the kernels (*.ptx), and a folder per run.")
    print("Next:  docs/Tutorial.md does this step by step.")


if __name__ == "__main__":
    main()
