"""Compares two reports of `norm-opt --norm-report="format=json"` in words.

usage: python -m norm.report diff A.json B.json

Prints what B changed and exits with 1, or says that nothing differs. Norms are
matched in order, by function, kind, shape and axes; what is on one side only is
listed; so are gradients and ops of the statistics algebra. Locations and strategies are
facts like any other and are compared too, unless --ignore names them
(`--ignore=location,strategy`). What passes refuse to do with a norm follows from the rest
and is compared with --refusals only.
"""

import json
import sys
from difflib import SequenceMatcher

# Facts of a norm that its heading tells, or that only number it.
HEADING = ("index", "function", "kind", "shape", "axes")


class ReportError(Exception):
    """A file that is no report."""


def load(path):
    """The norms and totals of a report."""
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    except OSError as error:
        raise ReportError(f"'{path}': {error.strerror}") from error
    except ValueError as error:
        raise ReportError(f"'{path}': not JSON: {error}") from error
    if not isinstance(report, dict) or not {"norms", "totals"} <= report.keys():
        raise ReportError(f"'{path}': expected a report of norm-report, got other JSON")
    return report


def signature(norm):
    """What makes a norm of one report the same norm in another."""
    return (norm["function"], norm["kind"], tuple(norm["shape"]), tuple(norm["axes"]))


def heading(norm):
    shape = "x".join("?" if extent is None else str(extent) for extent in norm["shape"])
    return f"{norm['kind']} of {shape} over {norm['axes']} in @{norm['function']}"


def refusal_words(refusal):
    """One refusal as norm-report prints it."""
    return f"{refusal['pass']} {refusal['rule']}.{refusal['condition']}: {refusal['reason']}"


def words(value):
    """A fact as one reads it: `inside_sqrt 1e-05`, `none`, `mean, rstd`."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        if set(value) == {"place", "value"}:
            return value["place"] if value["place"] == "none" \
                else f"{value['place']} {value['value']:g}"
        return ", ".join(f"{key} {words(fact)}" for key, fact in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(words(fact) for fact in value) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def changes(before, after, ignored=()):
    """A line for each fact of a norm that differs."""
    known = (*HEADING, "refusals")
    names = [name for name in before if name not in known]
    names += [name for name in after if name not in known and name not in before]
    lines = [
        f"{name.replace('_', ' ')}: {words(before.get(name))} -> {words(after.get(name))}"
        for name in names
        if name not in ignored and before.get(name) != after.get(name)
    ]
    if "refusals" not in ignored:
        old, new = ([refusal_words(refusal) for refusal in norm.get("refusals", [])]
                    for norm in (before, after))
        lines += [f"no longer refused: {text}" for text in old if text not in new]
        lines += [f"refused: {text}" for text in new if text not in old]
    return lines


def diff(before, after, ignored=("refusals",)):
    """The lines that tell how report `after` differs from `before`."""
    old, new = (report["norms"] + report.get("others", []) for report in (before, after))
    matcher = SequenceMatcher(a=[signature(norm) for norm in old],
                              b=[signature(norm) for norm in new], autojunk=False)
    lines = []
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag == "equal":
            for one, other in zip(old[old_from:old_to], new[new_from:new_to], strict=True):
                found = changes(one, other, ignored)
                if found:
                    lines.append(f"changed: {heading(one)}")
                    lines += [f"  {line}" for line in found]
            continue
        lines += [f"gone: {heading(norm)}" for norm in old[old_from:old_to]]
        lines += [f"new: {heading(norm)}" for norm in new[new_from:new_to]]
    for name in ("norms", "parameters"):
        one, other = before["totals"][name], after["totals"][name]
        if one != other:
            lines.append(f"total {name}: {words(one)} -> {words(other)}")
    return lines


def main(arguments):
    ignored = [name for argument in arguments if argument.startswith("--ignore=")
               for name in argument.split("=", 1)[1].split(",")]
    if "--refusals" not in arguments:
        ignored.append("refusals")
    positional = [a for a in arguments if not a.startswith("--ignore=") and a != "--refusals"]
    if len(positional) != 3 or positional[0] != "diff":
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        lines = diff(load(positional[1]), load(positional[2]), ignored)
    except ReportError as error:
        print(f"norm.report: error: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines) if lines else "the reports say the same")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
