"""Raised and fused programs compute what the frontend's own run gave.

Each corpus file that holds a norm is raised, its additions are fused, and the
program runs on the stored inputs. (That it runs so before is known: the corpus
was made that way.)"""

import json
from pathlib import Path

import numpy as np
import pytest
from norm.tools import norm_opt, norm_run
from norm.types import float_type, widen

HERE = Path(__file__).parent
RECORDS = {record["id"]: record
           for record in json.loads((HERE / "index.json").read_text())["records"]
           if record["raised"] and "data" in record
           and not any(norm["kind"] == "l2_norm" for norm in record["raised"])
           # Programs take floats; test_fold.py runs the others.
           and all(element != "i64" for element, _ in record["inputs"])}
# Largest error relative to the largest output: a few roundings of the type, as
# frontends sum in other orders and types.
TOLERANCE = {"f32": 2e-6, "bf16": 2e-2, "f16": 2e-3}
PASSES = ("--norm-raise", "--norm-fuse-residual")


def arrays(data, types, prefix):
    """The arrays in0.. or out0.. in their own types (bf16 is stored as bits)."""
    return [data[f"{prefix}{number}"].view(float_type(element).dtype)
            for number, (element, _) in enumerate(types)]


def relative_error(found, expected):
    found, expected = widen(found), widen(expected)
    return np.max(np.abs(found - expected)) / max(1.0, np.max(np.abs(expected)))


@pytest.mark.parametrize("name", RECORDS)
def test_values(name, tmp_path):
    record = RECORDS[name]
    module = norm_opt((HERE / record["file"]).read_text(), *PASSES)
    assert "norm." in module
    data = np.load(HERE / record["data"])
    elements = [element for element, _ in record["outputs"]]
    for prefix in ("", "alt_") if "alt_in0" in data else ("",):
        inputs = arrays(data, record["inputs"], f"{prefix}in")
        results = norm_run(tmp_path, module, inputs, elements)
        wanted = arrays(data, record["outputs"], f"{prefix}out")
        for found, expected, element in zip(results, wanted, elements, strict=True):
            assert found.shape == expected.shape
            assert relative_error(found, expected) <= TOLERANCE[element]
