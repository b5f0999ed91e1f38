"""Sums and products that fit f16, of bf16 values that do not: nothing is narrowed to f16
before it is added or multiplied."""

import numpy as np
import pytest
from norm import emulated, runner
from norm.cases import Case, call
from norm.promise import check
from norm.types import cast, float_type

PATHS = ("cpu", "reference", "linalg", "gpu-emulated")


def made(op, columns):
    """An f16 x and a bf16 residual of 80000 and more, whose sum is below 65504."""
    results = ("y", "rstd", "sum") if op == "rms_norm" else ("y", "mean", "rstd", "sum")
    one = call(Case(name=f"mixed-{op}-{columns}", op=op, shape=(3, columns), axes=(1,),
                    type="f16", residual_type="bf16", operands="rg", results=results))
    x = np.linspace(-65000, -40000, one.x.size).reshape(one.x.shape)
    one.x = cast(x, float_type("f16"))
    one.residual = cast(80000 + 1e4 * np.sin(x), float_type("bf16"))
    return one


@pytest.mark.parametrize("path", PATHS)
def test_residual_beyond_f16(path, tmp_path):
    calls = [made(op, n) for op in ("layer_norm", "rms_norm") for n in (5, 64, 129)]
    runs = (emulated.run_calls(tmp_path, calls)[0] if path == "gpu-emulated" else
            runner.run_calls(tmp_path, calls, path))
    for one, values in zip(calls, runs, strict=True):
        assert np.isfinite(values["sum"].astype(np.float64)).all()
        check(one.reference(), values)
