"""Differential cases: one op on one set of arrays, on each path.

The tables (`table*.py`) build them from rows; add a row to test more. `PATHS` are the
ways to run a case:

    cpu        norm-run --target=cpu
    reference  norm-run --target=reference
    linalg     norm-opt --norm-lower-to-linalg, then norm-run's lowering of linalg.
               The order of its sums is the consumer's, so it is held to extents up
               to 512 and means up to 1000 deviations.
"""

import itertools
import random

from norm.cases import PATHS, Case, call
from norm.promise import check
from norm.reference import ALGEBRA, CENTRED

__all__ = ["PATHS", "Case", "call", "check_case", "pairwise", "product", "runs"]


def _label(value):
    if isinstance(value, dict):
        return ",".join(f"{k}={_label(v)}" for k, v in value.items())
    if isinstance(value, (tuple, list)):
        return "x".join(str(v) for v in value) or "none"
    return str(value)


def product(name, **columns):
    """Cases for every combination. A column is a list of values; one whose name
    has several words, joined by `__`, has tuples of them. The rest is fixed."""
    fixed = {k: v for k, v in columns.items() if not isinstance(v, list)}
    varied = {k: v for k, v in columns.items() if isinstance(v, list)}
    for values in itertools.product(*varied.values()):
        fields, labels = dict(fixed), [name]
        for key, value in zip(varied, values, strict=True):
            keys = key.split("__")
            fields.update(zip(keys, value if len(keys) > 1 else (value,), strict=True))
            labels.append("-".join(_label(v) for v in value) if len(keys) > 1 else _label(value))
        centred = fields["op"].removesuffix("_backward") in CENTRED
        if fields["op"] not in ALGEBRA and not centred:
            if fields.get("options", {}).get("correction"):
                continue
            fields["results"] = tuple(r for r in fields.get("results", ("y",)) if r != "mean")
        yield Case(name="-".join(labels), **fields)


def pairwise(name, most, allowed=lambda fields: True, build=lambda fields: fields, **columns):
    """At most `most` cases, in which every value of a column occurs and as many pairs of
    values of two columns meet as can; always the same ones. Columns are as in `product`;
    `options` in several columns are joined. allowed: fields -> bool; build: fields ->
    fields."""
    varied = {k: v if isinstance(v, list) else [v] for k, v in columns.items()}
    chance = random.Random(name)
    keys = list(varied)

    def fields_of(choice):
        fields, options = {}, {}
        for key, number in zip(keys, choice, strict=True):
            words = key.rstrip("_0123456789").split("__")
            value = varied[key][number]
            for word, part in zip(words, value if len(words) > 1 else (value,), strict=True):
                if word == "options":
                    options.update(part)
                else:
                    fields[word] = part
        return {**fields, "options": options}

    def pairs_of(choice):
        return set(itertools.combinations(enumerate(choice), 2))

    wanted = {((a, i), (b, j)) for a, b in itertools.combinations(range(len(keys)), 2)
              for i in range(len(varied[keys[a]])) for j in range(len(varied[keys[b]]))}
    found, seen = [], set()
    while wanted and len(found) < most:
        # First what has not been seen at all.
        goals = sorted(wanted, key=lambda goal: (sum(one in seen for one in goal), goal))
        goals = [g for g in goals if (g[0] in seen) + (g[1] in seen) ==
                 (goals[0][0] in seen) + (goals[0][1] in seen)]
        (a, i), (b, j) = goal = chance.choice(goals)
        tried = []
        for _ in range(60):
            choice = [chance.randrange(len(varied[key])) for key in keys]
            choice[a], choice[b] = i, j
            if allowed(fields_of(choice)):
                tried.append(tuple(choice))
        wanted.discard(goal)
        if tried:
            best = max(tried, key=lambda choice: len(pairs_of(choice) & wanted))
            wanted -= pairs_of(best)
            seen |= set(enumerate(best))
            found.append(build(fields_of(best)))
    assert len(seen) == sum(len(column) for column in varied.values()), "some value never occurs"
    for number, fields in enumerate(found):
        what = (fields["op"], number, fields["shape"], fields.get("type", "f32"),
                fields.get("dynamic", "no"))
        yield Case(name="-".join([name, *map(_label, what)]), **fields)


def runs(table):
    """The parameters of a differential test, and their ids."""
    assert len({case.name for case in table}) == len(table)
    return dict(argnames="case,path",
                argvalues=[(case, path) for case in table for path in PATHS
                           if case.runs_on(path)],
                ids=lambda value: value if isinstance(value, str) else value.name)


_latest = {}  # the last case's name -> what is expected of it


def check_case(case, path, runner):
    """Holds what `path` computed against the oracle and its promise. runner: the
    fixture `case_runner`."""
    if case.name not in _latest:
        _latest.clear()
        _latest[case.name] = call(case).reference()
    check(_latest[case.name], runner.results(case.name, path), case.rows, path)
