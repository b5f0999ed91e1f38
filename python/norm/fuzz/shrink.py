"""Makes a failing program smaller while it fails in the same way, and stores it as text."""

import json
import time
from dataclasses import asdict
from functools import partial

from norm.fuzz.evaluate import DataSet
from norm.fuzz.execute import Passes, Plan
from norm.fuzz.generate import prune
from norm.fuzz.program import Node, Program

SECONDS = 120  # for one failure


def fails(kind, program, plan, executor, like):
    """The failure of a program if it is of the same kind at the same place."""
    try:
        check = executor.check if kind == "run" else executor.check_passes
        failure = check(program, plan)
    except Exception:  # not a program any more
        return None
    if failure is None or failure.kind != like.kind:
        return None
    return failure if failure.signature() == like.signature() or like.kind in (
        "crash", "promise", "bits") else None


def shrink(kind, program, plan, failure, executor):
    """The smallest program, plan and failure found in time."""
    deadline = time.monotonic() + SECONDS
    best = program, plan, failure
    improved = True
    while improved and time.monotonic() < deadline:
        improved = False
        for make, other in candidates(*best):
            if time.monotonic() > deadline:
                break
            try:
                smaller = make()
                smaller.text()
            except Exception:  # the change does not fit
                continue
            found = fails(kind, smaller, other, executor, best[2])
            if found:
                best = smaller, other, found
                improved = True
                break
    return best


def candidates(program, plan, failure):
    """Smaller programs, as functions that make them, and plans; the most promising first."""
    for other in smaller_plans(plan, failure):
        yield program.copy, other
    for number in range(len(program.versions)):
        yield partial(without_version, program, number), plan
    if len(program.returned) > 1:
        for value in program.returned:
            yield partial(keeping, program, [value]), plan
        for value in program.returned:
            yield partial(keeping, program, [v for v in program.returned if v != value]), plan
    for position, node in enumerate(program.nodes):
        # A value that is computed becomes an argument.
        if node.kind not in ("arg", "norm") or node.kind == "norm" and len(node.outputs) == 1:
            yield partial(as_argument, program, position), plan
        if node.kind == "norm":
            for change in smaller_norms(node):
                yield partial(replaced, program, position, change), plan
    yield from smaller_extents(program, plan)


def smaller_plans(plan, failure):
    def with_(**changes):
        return Plan(**{**vars(plan), **changes})
    if failure.data and len(plan.data) > 1:
        yield with_(data=[failure.data])
    parts = [p for p in plan.sequences]
    if parts and failure.where in ("cpu", "reference", "gpu-emulated", "parse",
                                   "roundtrip"):
        yield with_(sequences=[])
    for p in parts:
        if len(parts) > 1:
            yield with_(sequences=[p])
    if len(parts) == 1:
        names = split(parts[0].pipeline)
        for i in range(len(names)):
            if len(names) > 1:
                rest = ",".join(names[:i] + names[i + 1:])
                yield with_(sequences=[Passes(rest, parts[0].keeps, parts[0].may_fail)])
    if plan.gpu:
        yield with_(gpu=False)
    if plan.linalg:
        yield with_(linalg=False)
    if plan.level:
        yield with_(level=0)
    if plan.threads:
        yield with_(threads=False)
    if plan.strides != "any":
        yield with_(strides="any")


def split(pipeline):
    """Pass names with their options."""
    names, depth = [""], 0
    for c in pipeline:
        depth += (c in "{(") - (c in "})")
        if c == "," and not depth:
            names.append("")
        else:
            names[-1] += c
    return names


def keeping(program, returned):
    copy = program.copy()
    copy.returned = list(returned)
    return prune(copy)


def without_version(program, number):
    copy = program.copy()
    del copy.versions[number]
    return copy


def as_argument(program, position):
    copy = program.copy()
    node = copy.nodes[position]
    copy.nodes[position] = Node("arg", (), node.outputs, {"data": "normal"})
    copy.returned = [v for v in copy.returned if v not in node.outputs] or copy.returned
    return prune(copy)


def replaced(program, position, change):
    copy = program.copy()
    copy.nodes[position] = change(copy.nodes[position])
    copy.returned = [v for v in copy.returned if any(v in n.outputs for n in copy.nodes)]
    return prune(copy)


def smaller_norms(node):
    """Changes of a norm node: an option, an operand or a result fewer."""
    case = node.attributes["case"]
    for name in list(case.get("options", {})):
        if name in ("groups", "channel_axis", "momentum", "statistic", "about"):
            continue
        yield lambda n, name=name: without_option(n, name)
    for name in node.attributes["names"]:
        if name in ("residual", "scale", "shift", "mask", "dsum"):
            yield lambda n, name=name: without_operand(n, name)
    if len(node.outputs) > 1:
        for i in range(len(node.outputs)):
            yield lambda n, i=i: without_result(n, i)


def without_option(node, name):
    options = {k: v for k, v in node.attributes["case"]["options"].items() if k != name}
    case = {**node.attributes["case"], "options": options}
    return Node(node.kind, node.inputs, node.outputs, {**node.attributes, "case": case})


LETTERS = {"residual": "r", "scale": "g", "shift": "b", "mask": "k", "dsum": "d"}


def without_operand(node, name):
    names = list(node.attributes["names"])
    at = names.index(name)
    case = node.attributes["case"]
    options = dict(case["options"])
    if name == "scale":
        options.pop("scale_offset", None)
    if name == "residual":
        options.pop("sum_rounding", None)
    case = {**case, "options": options,
            "operands": case["operands"].replace(LETTERS[name], "")}
    inputs = node.inputs[:at] + node.inputs[at + 1:]
    return Node(node.kind, inputs, node.outputs,
                {**node.attributes, "case": case, "names": names[:at] + names[at + 1:]})


def without_result(node, number):
    from norm.fuzz.generate import ordered
    case = node.attributes["case"]
    names = ordered(case["op"], case["results"])
    left = [n for i, n in enumerate(names) if i != number]
    outputs = tuple(v for i, v in enumerate(node.outputs) if i != number)
    return Node(node.kind, node.inputs, outputs,
                {**node.attributes, "case": {**case, "results": left}})


def smaller_extents(program, plan):
    for d, dim in enumerate(program.dims):
        smaller = sorted({dim.multiple, 1, 2, dim.extent // 2, dim.extent - 1})
        for extent in smaller:
            if 0 < extent < dim.extent and extent % dim.multiple == 0:
                yield partial(with_dim, program, d, extent=extent), plan
        if dim.dynamic:
            data = [DataSet(s.regime, tuple(e for e in s.extents if e[0] != d), s.fortran,
                            s.number) for s in plan.data]
            yield partial(with_dim, program, d, dynamic=False), Plan(
                **{**vars(plan), "data": data})


def with_dim(program, number, **changes):
    copy = program.copy()
    for name, value in changes.items():
        setattr(copy.dims[number], name, value)
    return copy


# ---- as text ------------------------------------------------------------------


def found_text(kind, program, plan, failure):
    """A failure as the text of a test. `ir` is for readers."""
    return json.dumps({
        "kind": kind, "what": failure.signature(), "where": failure.where,
        # No frames of a stack: their addresses and paths say nothing elsewhere.
        "text": [line for line in failure.text.splitlines()[:8] if " 0x" not in line],
        "ir": program.text().splitlines(),
        "plan": asdict(plan), "program": json.loads(program.to_json())}, indent=1)


def check_found(text, executor):
    """Runs a stored failure again."""
    stored = json.loads(text)
    program = Program.from_json(json.dumps(stored["program"]))
    plan = dict(stored["plan"])
    plan["data"] = [DataSet(d["regime"], tuple(map(tuple, d["extents"])), d["fortran"],
                            d["number"]) for d in plan["data"]]
    plan["sequences"] = [Passes(**p) for p in plan["sequences"]]
    check = executor.check if stored["kind"] == "run" else executor.check_passes
    return check(program, Plan(**plan))
