"""Rewrites of `canonicalize`: no information is lost."""

from rewrites import Example, Refusal, Rewrite

CANONICALIZE = ("--canonicalize",)


def layer_norm(clauses, constants="", arguments=""):
    return f"""func.func @main(%x: tensor<4x24xf32>{arguments}) -> tensor<4x24xf32> {{
{constants}  %y = norm.layer_norm %x {clauses} : tensor<4x24xf32> -> tensor<4x24xf32>
  return %y : tensor<4x24xf32>
}}
"""


def splat(name, value):
    return f"  %{name} = arith.constant dense<{value}> : tensor<24xf32>\n"


GAIN = "scale(%g : tensor<24xf32>) axes [1] epsilon inside_sqrt 1.0e-5"

REWRITES = [
    Rewrite(
        "C3", "A gain that is 1 everywhere, its offset included, is dropped.", "E", CANONICALIZE,
        {"one": "scale + scale_offset is 1, exactly and everywhere"},
        [Example("gain of 1", layer_norm(GAIN, splat("g", "1.0")), gone=("scale",)),
         Example("zero-centred gain of 0",
                 layer_norm(GAIN + " scale_offset 1.0", splat("g", "0.0")), gone=("scale",))],
        [Refusal("one", layer_norm(GAIN, splat("g", "1.00000012"))),
         Refusal("one", layer_norm(GAIN + " scale_offset 1.0", splat("g", "1.0")),
                 name="offset")]),
]
