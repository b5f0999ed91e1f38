"""The table of rewrites: what each does, when it must not, and how both are tested.

The table is in the files table_*.py beside this one; docs/Rewrites.md is made from it.
"""

import re
import subprocess
from dataclasses import dataclass, field

import numpy as np
from norm.tools import ToolError, norm_run, tool
from norm.types import float_type

GATES = ("E", "R", "N")
SIMPLIFY = "--norm-simplify"
REAL = "--norm-simplify=fp-policy=real"


@dataclass
class Example:
    """A program that the rewrite changes.

    before: MLIR of a module with a function @main on tensors. gone, new: texts that the
    result must not, or must contain; `new` may be a regular expression. data: {argument
    number: array} in place of random numbers. passes: in place of the rewrite's own."""

    name: str
    before: str
    new: tuple = ()
    gone: tuple = ()
    gate: str = ""
    passes: tuple = ()
    data: dict = field(default_factory=dict)
    # Of the largest result, in units of the last place of its type (gates R and N).
    tolerance: float = 32.0
    # False: an example of docs/Rewrites.md that does not run (a function without a body, say).
    runs: bool = True


@dataclass
class Refusal:
    """A program that the rewrite leaves alone, because `condition` does not hold."""

    condition: str
    before: str
    passes: tuple = ()
    # Whether --norm-disable-precondition can switch the condition off: false for what
    # the match itself needs.
    switch: bool = True
    name: str = ""


@dataclass
class Rewrite:
    """One rewrite. conditions: {name: what must hold}, in the order of their check."""

    id: str
    summary: str
    gate: str
    passes: tuple
    conditions: dict
    examples: list
    refusals: list
    note: str = ""

    def passes_of(self, entry):
        return list(entry.passes or self.passes)


# ---- Running -----------------------------------------------------------------


@dataclass
class Outcome:
    """What norm-opt printed, and the remarks as {(kind, name)}."""

    text: str
    remarks: set
    log: str


def optimize(module, passes, disabled=None):
    """Runs passes over a module's text with all remarks on."""
    command = [str(tool("norm-opt")), *passes, "--remarks-filter=.*", "-"]
    if disabled:
        command.append(f"--norm-disable-precondition={disabled}")
    done = subprocess.run(command, input=module, capture_output=True, text=True, timeout=60,
                          check=False)
    if done.returncode != 0:
        raise ToolError(command, done.returncode, done.stdout, done.stderr)
    remarks = set(re.findall(r"\[(Passed|Missed)\] (\S+)", done.stderr))
    return Outcome(done.stdout, remarks, done.stderr)


def signature(module):
    """The tensor types of @main: arguments, results; each as (shape, element)."""
    header = re.search(r"func\.func @main\((.*?)\)\s*->\s*(.*?)\s*(?:attributes.*)?\{\s*$",
                       module, re.S | re.M)
    assert header, f"expected a function @main with results in:\n{module}"

    def types(text):
        found = []
        for dims, element in re.findall(r"tensor<((?:\d+x)*)(\w+)>", text):
            found.append((tuple(int(d) for d in dims.split("x") if d), element))
        return found
    return types(header.group(1)), types(header.group(2))


def random_inputs(arguments, data, seed=0):
    rng = np.random.default_rng(seed)
    arrays = []
    for number, (shape, element) in enumerate(arguments):
        dtype = float_type(element).dtype
        if number in data:
            arrays.append(np.asarray(data[number]).astype(dtype))
            continue
        arrays.append(rng.standard_normal(shape).astype(dtype))
    return arrays


def execute(directory, module, inputs, results, target):
    return norm_run(directory, module, inputs, [element for _, element in results], target=target)


def assert_same_bits(before, after, what):
    for number, (one, other) in enumerate(zip(before, after, strict=True)):
        assert one.tobytes() == other.tobytes(), (
            f"result {number} of {what} changed:\n{one}\n{other}")


def assert_close(before, after, tolerance, what):
    for number, (one, other) in enumerate(zip(before, after, strict=True)):
        step = float(np.finfo(one.dtype).eps if one.dtype.kind == "f" else 2.0**-8)
        one, other = one.astype(np.float64), other.astype(np.float64)
        assert (np.isfinite(one) == np.isfinite(other)).all(), f"result {number} of {what}"
        finite = one[np.isfinite(one)]
        bound = tolerance * step * (np.abs(finite).max() if finite.size else 1.0)
        error = np.abs(one - other)[np.isfinite(one)]
        assert not error.size or error.max() <= bound, (
            f"result {number} of {what}: off by {error.max():.3g}, allowed {bound:.3g}")
