"""The differential tables of row norms on the emulator: every case that a kernel computes, and
the widths of real models. By default a part of them, with `--full` all.
"""

import numpy as np
import pytest
import table
import table_forward
from gpu_cases import case, check_cases, packed
from norm.cases import call
from norm.emulated import Emulated
from norm.program import module_text, split_results
from norm.promise import check

GROUP = 12
# Of the tables the parts of a default run are this far apart.
STEP = 12


def has_kernel(one):
    rank = len(one.shape)
    return (one.op in ("layer_norm", "rms_norm", "l2_norm") and one.layout == "plain"
            and [axis % rank for axis in one.axes] == [rank - 1]
            and (one.shape[-1] or one.dynamic in ("all", "reduced")))


# Widths of models, of the sweeps that libraries publish, and awkward ones.
WIDTHS = (128, 256, 384, 512, 768, 1024, 1280, 1536, 1600, 2048, 2304, 2560, 3072, 3584, 3840,
          4096, 5120, 5376, 6144, 7168, 8192, 12288, 16384, 18432, 32768, 65536, 131072, 262144,
          111, 500, 1023, 4097, 5001)
MODELS = [case(op, n, t, "rgb" if n <= 8192 else "gb", rows=5 if n <= 1024 else 2,
               parameter_type=p)
          for n in WIDTHS for op, t, p in [("rms_norm", "bf16", "bf16"), ("rms_norm", "f32", "f32"),
                                           ("layer_norm", "bf16", "f32"),
                                           ("layer_norm", "f16", "f16"),
                                           ("layer_norm", "f32", "f32")]]
HEADS = [case(op, d, t, "g", shape=(3, heads, d), axes=(2,), dynamic=dynamic)
         for op in ("rms_norm", "l2_norm", "layer_norm") for t in ("bf16", "f16", "f32")
         for d, heads, dynamic in [(64, 5, "no"), (128, 24, "kept"), (256, 8, "no")]]
CASES = [one for one in [*table.TABLE, *table_forward.TABLE] if has_kernel(one)]


def parts(cases):
    """Groups of cases that are compiled together, the default ones first."""
    daily = cases[::STEP]
    rest = [one for number, one in enumerate(cases) if number % STEP]
    return [pytest.param(some[start:start + GROUP], marks=marks, id=some[start].name)
            for some, marks in ((daily, ()), (rest, pytest.mark.full))
            for start in range(0, len(some), GROUP)]


@pytest.mark.parametrize("cases", parts([*CASES, *MODELS, *HEADS]))
def test_table(cases, tmp_path):
    check_cases(cases, tmp_path)


@pytest.mark.parametrize("heads, width, element", [(16, 128, "bf16"), (3, 64, "f16"),
                                                   (5, 129, "f32")])
def test_heads_of_a_packed_projection(heads, width, element, tmp_path):
    """Queries as a part of rows that hold queries, keys and values, from inside a row on."""
    made = call(case("rms_norm", width, element, "g", shape=(4, heads, width), axes=(2,),
                     dynamic="kept", results=("y",)))
    x, *others = made.inputs()
    view = packed(x, offset=width, stride=(heads + 5) * width)
    outputs = [np.zeros(shape, t.dtype) for shape, t in made.result_types()]
    Emulated(tmp_path, module_text([made]))([view, *others], outputs, seed=7)
    (results,) = split_results([made], outputs)
    check(made.reference(), results, "random")
