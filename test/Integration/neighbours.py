"""Running a norm with its neighbours: one loop nest, the reference's values."""

import re

import numpy as np
from norm.tools import norm_opt, norm_run


def tiled(text):
    return norm_opt(text, "--norm-configure", "--norm-tile", "--cse")


def loops_and_rest(text):
    """How many loops over tiles there are after norm-tile, and the names of the
    structured ops that are left outside them."""
    module = tiled(text)
    outside = re.findall(r"^    (?:%\S+ = )?((?:linalg|arith|math|tensor)\.\w+)", module, re.M)
    views = {"tensor.empty", "arith.constant", "tensor.dim", "tensor.cast",
             "tensor.expand_shape", "tensor.collapse_shape", "tensor.extract_slice"}
    return (len(re.findall(r"scf\.forall \(", module)),
            [op for op in outside if op not in views])


def check_one_nest(text):
    loops, rest = loops_and_rest(text)
    assert loops == 1 and not rest, f"{rest}\n{tiled(text)}"


def run_both(tmp_path, text, inputs, results):
    """The arrays of the CPU pipeline and those of the reference."""
    got = norm_run(tmp_path / "cpu", text, inputs, results, target="cpu")
    want = norm_run(tmp_path / "reference", text, inputs, results, target="reference")
    return got, want


def assert_close(got, want, rtol=2e-5):
    got, want = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * np.abs(want).max() / 10)
