"""Raises every corpus file and compares what was found with index.json.

usage: check_raise.py [--list] NORM_OPT [OPTION...]

The files are IR as PyTorch (torch-mlir) and JAX (IREE) wrote it; `raised` of a
record lists the norm ops that `norm-raise` must make of it, with axes, epsilon
and its place, affine operands, cast points and types, and nothing else may be
raised. Records with `refuse` look like norms: they must stay as they are, or
become the one op that is right for them.
"""

import argparse
import collections
import concurrent.futures
import json
import math
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent

OP = re.compile(r"norm\.(?P<kind>\w+) (?P<x>%\S+)(?P<clauses>.*?) : "
                r"tensor<(?P<from>[^>]*)> -> tensor<(?P<to>[^>]*)>(?P<results>.*)$")


def clause(text, pattern, default=None):
    found = re.search(pattern, text)
    return found.group(1) if found else default


def integers(text):
    return None if text is None else [int(number) for number in text.split(",")]


def operand(text, name, constants):
    """'const', 'arg' or None for the operand called `name`."""
    value = clause(text, rf"\b{name}\((%[\w#]+)")
    return None if value is None else "const" if value in constants else "arg"


def element(shape):
    return shape.split("x")[-1]


def ops_of(module):
    """The norm ops of a module, in the terms of index.json."""
    constants = set(re.findall(r"(%\w+) = arith\.constant", module))
    ops = []
    for line in module.splitlines():
        found = OP.search(line)
        if not found:
            continue
        text = found["clauses"]
        axes = integers(clause(text, r"\baxes \[([\d, ]+)\]"))
        place = clause(text, r"\bepsilon (\w+)")
        has_affine = "scale(" in text or "shift(" in text
        affine_axes = integers(clause(text, r"\baffine_axes \[([\d, ]+)\]"))
        default_axes = axes
        if found["kind"] == "batch_norm_inference":
            default_axes = sorted(set(range(found["from"].count("x"))) - set(axes))
        ops.append({
            "kind": found["kind"],
            "axes": axes,
            "epsilon": [place, float(clause(text, r"\bepsilon \w+_\w+ (\S+)", "0"))],
            "mean": operand(text, "mean", constants),
            "variance": operand(text, "variance", constants),
            "scale": operand(text, "scale", constants),
            "shift": operand(text, "shift", constants),
            "affine_axes": (affine_axes or default_axes) if has_affine else None,
            "scale_offset": float(clause(text, r"\bscale_offset (\S+)", "0")),
            "affine_in": clause(text, r"\baffine_in (\w+)", "compute"),
            "compute": clause(text, r"\bcompute (\w+)", "f32"),
            "correction": int(clause(text, r"\bcorrection (\d+)", "0")),
            "types": [element(found["from"]), element(found["to"])],
            "results": re.findall(r"(\w+)\(tensor", found["results"]),
        })
    return ops


def same(found, wanted):
    """The epsilon of an f32 constant is known to f32 precision only."""
    place, value = found["epsilon"]
    wanted_place, wanted_value = wanted["epsilon"]
    return (place == wanted_place
            and math.isclose(value, wanted_value, rel_tol=1e-7, abs_tol=0.0)
            and all(found[key] == wanted.get(key) for key in found if key != "epsilon"))


def differences(found, wanted):
    """Ops that are missing and ops that should not be there."""
    missing, extra = [], list(found)
    for group in wanted:
        for _ in range(group["count"]):
            match = next((op for op in extra if same(op, group)), None)
            if match is None:
                missing.append({k: v for k, v in group.items() if k != "count"})
            else:
                extra.remove(match)
    return missing, extra


def check(norm_opt, record):
    """Problems with one file, as lines of text."""
    run = subprocess.run(
        [*norm_opt, "--norm-raise", "--remarks-filter=norm-raise", str(HERE / record["file"])],
        capture_output=True, text=True, timeout=300)
    if run.returncode:
        return [f"norm-opt failed: {run.stderr.strip()}"]
    missing, extra = differences(ops_of(run.stdout), record["raised"])
    problems = [f"missing: {op}" for op in missing] + [f"unexpected: {op}" for op in extra]
    # Files with nothing but a norm: all of its decomposition must be gone.
    if record["raised"] and record["id"].startswith(("ln_", "rms_")):
        problems += [f"dead code left: {name}" for name in ("linalg.generic", "linalg.fill")
                     if name in run.stdout]
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true", help="name every file")
    parser.add_argument("norm_opt", nargs=argparse.REMAINDER, help="command line of norm-opt")
    arguments = parser.parse_args()
    records = json.loads((HERE / "index.json").read_text())["records"]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda record: check(arguments.norm_opt, record), records))
    score = collections.Counter()
    for record, problems in zip(records, results, strict=True):
        kind = "look-alikes" if record.get("refuse") or not record["raised"] else "norms"
        score[kind, "total"] += 1
        score[kind, "right"] += not problems
        if problems or arguments.list:
            print(f"{record['file']}: {'right' if not problems else ''}")
        for problem in problems:
            print(f"  {problem}")
    for kind in ("norms", "look-alikes"):
        print(f"{kind}: {score[kind, 'right']} of {score[kind, 'total']} files right")
    return any(results)


if __name__ == "__main__":
    sys.exit(main())
