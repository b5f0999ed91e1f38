"""Elementwise neighbours of every op share its loop over tiles.

Each program adds before the norm and applies exp(-y) + x after it. After norm-tile
no linalg op is left outside the loop, and what runs agrees with the reference.
"""

import re

import numpy as np
import pytest
from norm.tools import norm_opt, norm_run

SHAPE = (4, 6, 5, 40)
STATIC = "tensor<4x6x5x40xf32>"
DYNAMIC = "tensor<?x6x?x?xf32>"
VECTOR = "tensor<6xf32>"

FORWARD = {
    "layer_norm": "axes [3] epsilon inside_sqrt 1.0e-5",
    "rms_norm": "axes [2, 3] epsilon inside_sqrt 1.0e-5",
    "l2_norm": "axes [0] epsilon inside_sqrt 1.0e-5",
    "group_norm": f"scale(%g : {VECTOR}) shift(%v : {VECTOR}) groups 3 channel_axis 1 "
                  "axes [1, 2, 3] epsilon inside_sqrt 1.0e-5",
    "group_norm last": "groups 5 channel_axis 3 axes [1, 2, 3] epsilon inside_sqrt 1.0e-5",
    "instance_norm": f"scale(%g : {VECTOR}) axes [2, 3] epsilon inside_sqrt 1.0e-5 "
                     "affine_axes [1]",
    "batch_norm_training": f"scale(%g : {VECTOR}) axes [0, 2, 3] epsilon inside_sqrt 1.0e-5",
    "batch_norm_training last": "axes [0, 1, 2] epsilon inside_sqrt 1.0e-5",
    "batch_norm_inference": f"mean(%g : {VECTOR}) variance(%v : {VECTOR}) axes [0, 2, 3] "
                            "epsilon inside_sqrt 1.0e-5",
}
BACKWARD = {
    "layer_norm": "axes [3] epsilon inside_sqrt 1.0e-5",
    "rms_norm": "axes [2, 3] epsilon inside_sqrt 1.0e-5",
    "l2_norm": "axes [0] epsilon inside_sqrt 1.0e-5",
    "group_norm": "groups 3 channel_axis 1 axes [1, 2, 3] epsilon inside_sqrt 1.0e-5",
    "instance_norm": "axes [2, 3] epsilon inside_sqrt 1.0e-5",
    "batch_norm_training": f"scale(%g : {VECTOR}) axes [0, 2, 3] epsilon inside_sqrt 1.0e-5",
    "batch_norm_inference": f"variance(%v : {VECTOR}) scale(%g : {VECTOR}) axes [0, 2, 3] "
                            "epsilon inside_sqrt 1.0e-5",
}


def program(op, clauses, kind):
    operands, types = ("%p", kind) if "backward" not in op else ("%r, %p", f"{kind}, {kind}")
    extents, dims = "", ""
    if kind == DYNAMIC:
        axes = (0, 2, 3)
        dims = "".join(f"  %c{a} = arith.constant {a} : index\n"
                       f"  %d{a} = tensor.dim %x, %c{a} : {kind}\n" for a in axes)
        extents = ", ".join(f"%d{a}" for a in axes)
    return f"""
func.func @main(%x: {kind}, %r: {kind}, %g: {VECTOR}, %v: {VECTOR}) -> {kind} {{
{dims}  %e = tensor.empty({extents}) : {kind}
  %p = linalg.add ins(%x, %r : {kind}, {kind}) outs(%e : {kind}) -> {kind}
  %y = norm.{op} {operands} {clauses} : {types} -> {kind}
  %n = linalg.negf ins(%y : {kind}) outs(%e : {kind}) -> {kind}
  %q = linalg.exp ins(%n : {kind}) outs(%e : {kind}) -> {kind}
  %z = linalg.add ins(%q, %x : {kind}, {kind}) outs(%e : {kind}) -> {kind}
  return %z : {kind}
}}
"""


CASES = [(name.split()[0], clauses, name) for name, clauses in FORWARD.items()]
CASES += [(f"{name}_backward", clauses, f"{name}_backward") for name, clauses in BACKWARD.items()]


@pytest.mark.parametrize("kind", [STATIC, DYNAMIC], ids=["static", "dynamic"])
@pytest.mark.parametrize("op,clauses", [c[:2] for c in CASES], ids=[c[2] for c in CASES])
def test_loops_hold_the_neighbours(op, clauses, kind, tmp_path):
    """One loop, or several where channels that come last are lanes (TileLanes.cpp)."""
    text = program(op, clauses, kind)
    tiled = norm_opt(text, "--norm-configure", "--norm-tile", "--cse")
    loops = len(re.findall(r"scf\.forall \(", tiled))
    keeps_lanes = re.search(r"axes \[0(, 1, 2)?\]|channel_axis 3", clauses)
    assert loops > 1 if keeps_lanes else loops == 1
    assert not re.findall(r"^    %\S+ = linalg\.", tiled, re.M), tiled

    rng = np.random.default_rng(0)
    x, r = (rng.standard_normal(SHAPE).astype(np.float32) for _ in range(2))
    g, v = rng.standard_normal(6).astype(np.float32), rng.random(6).astype(np.float32) + 0.5
    inputs = [x, r, g, v]
    got, = norm_run(tmp_path / "cpu", text, inputs, ["f32"], target="cpu")
    want, = norm_run(tmp_path / "reference", text, inputs, ["f32"], target="reference")
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6 * np.abs(want).max())
