"""Every option in the differential table matters to the data it is tested on: the
oracle without the option breaks the promise around the oracle with it."""

import importlib
from dataclasses import replace

import numpy as np
import pytest
from cases import call
from norm.promise import check
from norm.reference import Values
from norm.types import widen
from table import TABLE

PLACEMENTS = ("inside_sqrt", "outside_sqrt", "max_inside", "max_outside", "none")
PRECISION = {"bf16": 0, "f16": 0, "f32": 1, "f64": 2, None: 1}


def alternatives(case, option, value):
    """Other values of a case's option whose results must not pass for the case's."""
    if option == "epsilon" and value and case.options.get("placement") != "none":
        return [1.5 * value]
    if option == "placement" and case.options.get("epsilon", 1e-5):
        return [other for other in PLACEMENTS if other != value]
    # More precision is no error, and rounding to the type one computes in is
    # within any promise.
    if option == "compute" and PRECISION[value] != 1:
        return [None]
    if option == "affine_in" and case.type in ("f16", "bf16"):
        return ["compute"]
    return {"scale_offset": [0.0], "correction": [0], "sum_rounding": ["stored"],
            "zero_policy": ["ieee"], "running_correction": [1], "about": ["zero"],
            "statistic": ["mean"]}.get(option, [])


def value(reference, name):
    return reference[name] if isinstance(reference, Values) else getattr(reference, name)


def broken(case, reference, **changes):
    """Whether results computed with other attributes break the promise."""
    made = call(case)
    wrong = replace(made, spec=replace(made.spec, **changes)).reference()
    results = {}
    for name in made.ordered_results():
        dtype = value(reference, name).dtype
        with np.errstate(over="ignore", invalid="ignore"):
            results[name] = widen(value(wrong, name)).astype(dtype)
    try:
        check(reference, results, "any")
    except AssertionError:
        return True
    return False


def test_every_option_shows():
    blind, seen = [], set()
    for case in TABLE:
        if not 0 < np.prod(case.shape) <= 4000:
            continue
        reference = call(case).reference()
        for option, value in case.options.items():
            for other in alternatives(case, option, value):
                seen.add(option)
                if not broken(case, reference, **{option: other}):
                    blind.append((case.name, option, other))
    assert blind == []
    assert seen == {"epsilon", "placement", "compute", "affine_in", "scale_offset",
                    "correction", "sum_rounding", "zero_policy"}


@pytest.mark.parametrize("name", ["forward", "backward", "statistics"])
def test_every_option_of_an_op_shows_somewhere(name):
    """In the other tables options are drawn in pairs, not each where it matters most."""
    seen, blind = set(), set()
    for case in importlib.import_module(f"table_{name}").TABLE:
        if not 0 < np.prod(case.shape) <= 4000:
            continue
        reference = call(case).reference()
        for option, value in case.options.items():
            if option == "compute" or (option == "sum_rounding" and "backward" in case.op):
                continue  # unseen in narrow results; the only one there is
            if option in ("epsilon", "placement") and (
                    "i" in case.operands or case.op == "backward_normalize"):
                continue  # rstd is given; what is left of them may agree
            for other in alternatives(case, option, value):
                if other == value:
                    continue
                key = case.op, option, value, other
                if key not in seen and broken(case, reference, **{option: other}):
                    seen.add(key)
                    blind.discard(key)
                elif key not in seen:
                    blind.add(key)
    assert blind == set()
    assert len(seen) > 20
