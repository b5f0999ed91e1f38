"""Activations, gates, casts and masks around a norm, as frontends write them: arith
and math ops on tensors, linalg.generic, linalg.map; one loop nest holds them."""

import math
import re

import ml_dtypes
import numpy as np
import pytest
from neighbours import assert_close, check_one_nest, run_both

KINDS = {"whole": ("4x32", (4, 32)), "tail": ("6x33", (6, 33)), "short": ("3x5", (3, 5)),
         "dynamic rows": ("?x20", (5, 20))}

DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}

SPLAT = "  %{name} = arith.constant dense<{value}> : {t}\n"


def splats(t, **values):
    return "".join(SPLAT.format(name=name, value=value, t=t) for name, value in values.items())


def silu(t, x, out):
    return f"""
  %n{out} = arith.negf %{x} : {t}
  %e{out} = math.exp %n{out} : {t}
  %d{out} = arith.addf %e{out}, %one : {t}
  %s{out} = arith.divf %one, %d{out} : {t}
  %{out} = arith.mulf %{x}, %s{out} : {t}
"""


ACTIVATIONS = {
    "relu": lambda t: "  %zero = arith.constant dense<0.0> : {t}\n"
                      "  %z = arith.maximumf %y, %zero : {t}\n".format(t=t),
    "silu": lambda t: splats(t, one=1.0) + silu(t, "y", "z"),
    "silu gate": lambda t: splats(t, one=1.0) + silu(t, "g", "w")
                           + f"  %z = arith.mulf %y, %w : {t}\n",
    "gelu erf": lambda t: splats(t, one=1.0, half=0.5, root=math.sqrt(0.5)) + f"""
  %a = arith.mulf %y, %root : {t}
  %b = math.erf %a : {t}
  %c = arith.addf %b, %one : {t}
  %d = arith.mulf %c, %half : {t}
  %z = arith.mulf %d, %y : {t}
""",
    "gelu tanh": lambda t: splats(t, one=1.0, half=0.5, cube=0.044715,
                                  root=math.sqrt(2 / math.pi)) + f"""
  %y2 = arith.mulf %y, %y : {t}
  %y3 = arith.mulf %y2, %y : {t}
  %a = arith.mulf %y3, %cube : {t}
  %b = arith.addf %y, %a : {t}
  %c = arith.mulf %b, %root : {t}
  %d = math.tanh %c : {t}
  %e = arith.addf %d, %one : {t}
  %f = arith.mulf %e, %y : {t}
  %z = arith.mulf %f, %half : {t}
""",
    "leaky relu": lambda t: splats(t, zero=0.0, slope=0.1) + f"""
  %m = arith.cmpf ogt, %y, %zero : {t}
  %a = arith.mulf %y, %slope : {t}
  %z = arith.select %m, %y, %a : {t.rsplit('x', 1)[0]}xi1>, {t}
""",
}


def dynamic(body, t):
    """The same with splats of dynamic shape, which constants cannot be."""
    element = t[:-1].rsplit("x", 1)[1]
    return re.sub(r"(%\w+) = arith.constant dense<(\S+)> : .*",
                  rf"\1_ = arith.constant \2 : {element}\n"
                  rf"  \1 = tensor.splat \1_[%rows] : {t}", body)


CASES = [(kind, "f32") for kind in KINDS] + [("tail", "f16"), ("tail", "bf16")]


@pytest.mark.parametrize("kind,element", CASES)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_shares_the_loop(name, kind, element, tmp_path):
    shape, extents = KINDS[kind]
    t = f"tensor<{shape}x{element}>"
    body = ACTIVATIONS[name](t)
    if "?" in shape:
        body = dynamic(body, t)
    text = f"""
func.func @main(%x: {t}, %g: {t}) -> {t} {{
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : {t}
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : {t} -> {t}
{body}
  return %z : {t}
}}
"""
    check_one_nest(text)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(extents).astype(DTYPES[element]) for _ in range(2)]
    (got,), (want,) = run_both(tmp_path, text, inputs, [element])
    assert_close(got, want, {"f32": 2e-5, "f16": 4e-3, "bf16": 3e-2}[element])
