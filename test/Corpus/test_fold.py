"""Models whose weights are constants lose their norms, or all that can be folded of them.

Folding rounds once where the frontend's own run rounded step by step: outputs agree within
TOLERANCE of the largest one."""

import json
import re
from pathlib import Path

import numpy as np
from norm.tools import norm_opt, norm_run

HERE = Path(__file__).parent
RECORDS = {record["id"]: record
           for record in json.loads((HERE / "index.json").read_text())["records"]}
TOLERANCE = 1e-5


def dense(array, kind):
    """An arith.constant of the array's bytes; `kind` is its tensor type."""
    return f'arith.constant dense<"0x{array.tobytes().hex().upper()}"> : {kind}'


def with_constants(module, arrays):
    """The module whose function @main takes the arguments {number: array} no longer.

    A scalar tensor among them must be unused: it is dropped."""
    header = re.search(r"(func\.func @main\()(.*?)(\) -> [^\n]*\{\n)", module)
    kept, constants = [], ""
    for number, argument in enumerate(re.findall(r"%\w+: tensor<[^>]*>", header[2])):
        name, kind = argument.split(": ")
        if number not in arrays:
            kept.append(argument)
        elif "x" in kind:
            constants += f"    {name} = {dense(arrays[number], kind)}\n"
    return (module[:header.start()] + header[1] + ", ".join(kept) + header[3] + constants
            + module[header.end():])


def load(name):
    record = RECORDS[name]
    return (HERE / record["file"]).read_text(), np.load(HERE / record["data"])


def check_outputs(directory, module, data, inputs):
    results = norm_run(directory, module, inputs, ["f32"])
    expected = data["out0"]
    error = np.abs(results[0] - expected).max()
    assert error <= TOLERANCE * max(1.0, np.abs(expected).max())


def test_conv_bn(tmp_path):
    module, data = load("conv_bn_f32")
    folded = norm_opt(module, "--norm-raise", "--norm-fold-batch-norm")
    assert "norm." not in folded
    check_outputs(tmp_path, folded, data, [data["in0"]])


def test_resnet18_block(tmp_path):
    module, data = load("resnet18_block_eval_f32")
    count = len(RECORDS["resnet18_block_eval_f32"]["inputs"])
    weights = {number: data[f"in{number}"] for number in range(1, count)}
    raised = norm_opt(with_constants(module, weights), "--norm-raise")
    assert raised.count("norm.batch_norm_inference") == 2
    folded = norm_opt(raised, "--norm-fold-batch-norm")
    assert "norm." not in folded
    check_outputs(tmp_path, folded, data, [data["in0"]])


def test_arguments_are_not_folded():
    module, _ = load("resnet18_block_eval_f32")
    folded = norm_opt(module, "--norm-raise", "--norm-fold-batch-norm")
    assert folded.count("norm.batch_norm_inference") == 2


def test_gpt2(tmp_path):
    """The last norm is the model's output: its scale and shift stay."""
    module, data = load("gpt2_1l_f32_const")
    folded = norm_opt(module, "--norm-raise", "--norm-fold-affine")
    norms = [line for line in folded.splitlines() if "norm.layer_norm" in line]
    assert ["scale(" in line for line in norms] == [False, False, True]
    assert ["shift(" in line for line in norms] == [False, False, True]
    check_outputs(tmp_path, folded, data, [data["in0"]])


def test_gpt2_keeps_what_others_read():
    """A norm that something else reads as well is left whole."""
    module, _ = load("gpt2_1l_f32_const")
    raised = norm_opt(module, "--norm-raise")
    first = next(line for line in raised.splitlines() if "norm.layer_norm" in line)
    name, kind = first.split(" = ")[0].strip(), "tensor<1x6x32xf32>"
    lines = raised.splitlines()
    at = next(i for i, line in enumerate(lines) if "return" in line)
    lines[at:at + 1] = [f"    %again = arith.addf {name}, {name} : {kind}",
                        lines[at].replace("return ", "return %again, ").replace(
                            f": {kind}", f": {kind}, {kind}")]
    both = "\n".join(lines).replace(f"-> {kind} {{", f"-> ({kind}, {kind}) {{", 1)
    norms = [line for line in norm_opt(both, "--norm-fold-affine").splitlines()
             if "norm.layer_norm" in line]
    assert ["scale(" in line for line in norms] == [True, False, True]
