"""Cases of row norms for the GPU tests, run by the emulator and held to the error promise."""

import numpy as np
from norm.cases import Case, call
from norm.emulated import Emulated, aligned, run_calls
from norm.program import module_text
from norm.promise import check

STATISTICS = {"layer_norm": ("y", "mean", "variance", "rstd", "sum"),
              "rms_norm": ("y", "rstd", "sum"), "l2_norm": ("y", "rstd")}
SEEDS = (0, 5)


def case(op, columns, element="f32", operands="gb", rows=3, **fields):
    """A norm of `rows` rows with all statistics; an op leaves out operands that it lacks."""
    if op != "layer_norm":
        operands = operands.replace("b", "")
    if op == "l2_norm":
        operands = ""
    name = f"{op}-{rows}x{columns}-{element}-{operands}-" + "-".join(map(str, fields.values()))
    results = tuple(r for r in STATISTICS[op] if r != "sum" or "r" in operands)
    return Case(name=name, op=op, type=element, operands=operands,
                **{"shape": (rows, columns), "axes": (1,), "results": results, **fields})


def same(one, other):
    """Whether two {name: array} have the same bits."""
    return all(one[name].tobytes() == other[name].tobytes() for name in one)


def check_runs(calls, rows, directory, seeds=SEEDS, offsets=(0, 1)):
    """Runs all calls in each schedule, with arrays at aligned addresses and off them (rows are
    shifted, or moved element by element). The first run is held to the promise
    for `rows` (of promise.check, one a call); the others have its bits. Returns it."""
    runs = [run for offset in offsets
            for run in run_calls(directory / str(offset), calls, seeds, offset)]
    for number, (made, kind) in enumerate(zip(calls, rows, strict=True)):
        check(made.reference(), runs[0][number], kind)
        for run in runs[1:]:
            assert same(runs[0][number], run[number]), (number, made.spec)
    return runs[0]


def check_cases(cases, directory, **options):
    return check_runs([call(c) for c in cases], [c.rows for c in cases], directory, **options)


def counted(calls, directory):
    """What the kernels of the calls did, by the emulator's counters."""
    inputs = [aligned(array) for made in calls for array in made.inputs()]
    outputs = [aligned(np.zeros(shape, t.dtype)) for made in calls
               for shape, t in made.result_types()]
    return Emulated(directory, module_text(calls)).count(inputs, outputs)


def packed(x, offset, stride):
    """x [tokens, ..., n] as part of wider rows: a view of an array that starts `offset`
    elements before it and has `stride` elements a token. What is beside it is no number."""
    tokens, width = x.shape[0], int(np.prod(x.shape[1:]))
    memory = np.full(tokens * stride * x.itemsize + 256, 0xFF, np.uint8)
    start = -memory.ctypes.data % 256
    base = memory[start:start + tokens * stride * x.itemsize].view(x.dtype)
    base = base.reshape(tokens, stride)
    view = base[:, offset:offset + width]
    view[...] = x.reshape(tokens, width)
    return np.lib.stride_tricks.as_strided(view, x.shape, (base.strides[0], *x.strides[1:]))
