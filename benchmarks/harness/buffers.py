"""The arrays of a case, shared by all lanes, and the check against the oracle.

A large array repeats a block of rows: the oracle need only see the block, and every
element of a result is still checked.
"""

import mmap
from dataclasses import dataclass, field
from math import prod

import numpy as np
from norm.data import draw, generator
from norm.program import Call, Slice
from norm.reference import NormSpec
from norm.types import float_type

from .suite import EPSILON

LINE, HUGE_PAGE = 64, 2 << 20
BLOCK_ELEMENTS = 1 << 18  # what the oracle sees
# The largest error, as a share of the largest true value of the result.
TOLERANCES = {"f32": 1e-4, "bf16": 8e-3, "f16": 1e-3}


class Arena:
    """Hands out arrays on huge pages.

    Each starts a few cache lines further from the start of its page than the last, so
    that no two streams share the low 12 bits of their addresses."""

    def __init__(self):
        self.count = 0

    def array(self, shape, element):
        dtype = float_type(element).dtype
        size, shift = prod(shape) * dtype.itemsize, LINE * (self.count * 9 % 61)
        self.count += 1
        memory = mmap.mmap(-1, size + shift + 2 * HUGE_PAGE)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        whole = np.frombuffer(memory, np.uint8)
        start = -whole.ctypes.data % HUGE_PAGE + shift
        return whole[start:start + size].view(dtype).reshape(shape)


def repeat_rows(target, block):
    """Fills `target`, any view of rows along its last axis, with `block` again and again."""
    rows = target.reshape(-1, target.shape[-1])
    if not np.shares_memory(rows, target):  # a slice of packed rows
        count = prod(target.shape[:-1])
        target[...] = np.resize(block, (count, block.shape[1])).reshape(target.shape)
        return
    for start in range(0, len(rows), len(block)):
        part = rows[start:start + len(block)]
        part[...] = block[:len(part)]


def block_rows(case):
    """Rows of the repeated block. An odd number: the halves of an array differ."""
    return min(case.rows, max(1, BLOCK_ELEMENTS // case.extent) | 1)


def spec(case):
    return NormSpec(kind=case.op, axes=(-1,), epsilon=EPSILON)


@dataclass
class Data:
    """The values of a case: blocks of rows, parameters, and what the oracle makes of them.

    blocks: x, residual, dy, [block rows, extent]; mean, variance, rstd, [block rows] in
    f32. parameters: scale, shift, [extent]. expected: results in f64, blocks of rows
    or [extent]."""

    blocks: dict
    parameters: dict
    expected: dict = field(default_factory=dict)

    @classmethod
    def of(cls, case, mean=0.25, std=1.5):
        rng = generator(case.name)
        shape = (block_rows(case), case.extent)
        blocks = {"x": draw(rng, shape, case.element, mean, std)}
        if case.has_residual:
            blocks["residual"] = draw(rng, shape, case.element, -0.1, 1.0)
        parameters = {"scale": draw(rng, shape[1:], case.element, 1.0, 0.2)}
        if case.is_centred:
            parameters["shift"] = draw(rng, shape[1:], case.element, 0.0, 0.1)
        if case.is_backward:
            blocks["dy"] = draw(rng, shape, case.element, 0.05, 1.0)
            blocks.update(_statistics(case, blocks["x"]))
        data = cls(blocks, parameters)
        data.expected = data.oracle(case)
        return data

    def call(self, case, rows=None):
        """The op on the block, or on its first rows."""
        arrays = {name: block[:rows] for name, block in self.blocks.items()} | self.parameters
        return Call(spec(case), arrays["x"], results=result_names(case),
                    **{name: arrays[name] for name in operand_names(case)})

    def oracle(self, case):
        """The results of the whole case in f64."""
        found = self.call(case).reference()
        if not case.is_backward:
            expected = {"y": found.rows_y}
            if case.has_residual:
                expected["sum"] = found.sum.astype(np.float64)
            return expected
        expected = {"dx": found.values["dx"].exact}
        times, rest = divmod(case.rows, block_rows(case))
        tail = self.call(case, rest).reference() if rest else None
        for name in result_names(case)[1:]:
            expected[name] = times * found.values[name].exact
            if tail:
                expected[name] = expected[name] + tail.values[name].exact
        return expected


def _statistics(case, x):
    """The saved statistics of rows, in f32. variance: of RMS norms the mean square."""
    wide = x.astype(np.float64)
    mean = wide.mean(1) if case.is_centred else np.zeros(len(x))
    variance = ((wide - mean[:, None]) ** 2).mean(1)
    values = {"mean": mean, "variance": variance, "rstd": 1 / np.sqrt(variance + EPSILON)}
    return {name: value.astype(np.float32) for name, value in values.items()}


def result_names(case):
    if case.is_backward:
        return ("dx", "dscale", "dshift") if case.is_centred else ("dx", "dscale")
    return ("y", "sum") if case.has_residual else ("y",)


def operand_names(case):
    """The operands of the op beside x."""
    if case.is_backward:
        return ("dy", "mean", "rstd", "scale") if case.is_centred else ("dy", "rstd", "scale")
    names = ("residual", "scale") if case.has_residual else ("scale",)
    return (*names, "shift") if case.is_centred else names


def case_call(case, arrays, base):
    """The op of a case on arrays, as this project's IR has it. base: what x is a slice
    of, for packed rows."""
    def shaped(name):
        return arrays[name].reshape(case.shape[:-1]) if name in ("mean", "rstd") else arrays[name]
    made = Call(spec(case), arrays["x"], results=result_names(case),
                **{name: shaped(name) for name in operand_names(case)})
    if case.packed:
        made.slice = Slice(base, (0, 0, 0), (1, 1, 1))
    return made


def shapes_only(case):
    """The call on arrays whose memory is never touched: to compile it."""
    tokens = case.shape[:-2]
    base = np.empty((*tokens, case.packed, case.extent) if case.packed else case.shape,
                    float_type(case.element).dtype)
    arrays = dict.fromkeys(("residual", "dy"), base)
    arrays["x"] = base[:, :case.shape[1]] if case.packed else base
    arrays.update(dict.fromkeys(("mean", "rstd"), np.empty(case.rows, np.float32)))
    arrays.update(dict.fromkeys(("scale", "shift"), np.empty(case.extent, base.dtype)))
    return case_call(case, arrays, base)


class ArraySet:
    """Arrays by name. base: x, or the packed rows that x is a slice of; written: names of
    the results."""

    def __init__(self, arrays, base, written):
        self.arrays, self.base, self.written = arrays, base, written
        self.clear()

    def __getitem__(self, name):
        return self.arrays[name]

    def clear(self):
        """A pattern that no norm has as its result, in what a lane is to write."""
        for name in self.written:
            self.arrays[name].view(np.uint8)[...] = 0xFF

    def results(self):
        return {name: self.arrays[name] for name in self.written}

    def nbytes(self):
        arrays = [array for name, array in self.arrays.items() if name != "x"]
        return self.base.nbytes + sum(array.nbytes for array in arrays)


class Buffers(ArraySet):
    """One set of arrays. Attributes of `arrays`: the blocks repeated to the case's shape
    (statistics in f32, one of each row), the parameters, also in f32 as `scale_f32` and
    `shift_f32`, and the results. `base`: the packed rows that x is a slice of, or x."""

    def __init__(self, case, data, arena):
        self.case, self.data = case, data
        arrays = {}
        for name, block in data.blocks.items():
            if block.ndim == 1:
                arrays[name] = arena.array((case.rows,), "f32")
                repeat_rows(arrays[name][:, None], block[:, None])
                continue
            if name == "x" and case.packed:
                tokens, heads, extent = case.shape
                base = arena.array((tokens, case.packed, extent), case.element)
                repeat_rows(base, block)
                arrays[name] = base[:, :heads]
            else:
                arrays[name] = arena.array(case.shape, case.element)
            repeat_rows(arrays[name], block)
        if not case.packed:
            base = arrays["x"]
        for name, value in data.parameters.items():
            for suffix, element in (("", case.element), ("_f32", "f32")):
                arrays[name + suffix] = arena.array(value.shape, element)
                arrays[name + suffix][...] = value
        for name in result_names(case):
            is_sum = name in ("dscale", "dshift")
            arrays[name] = arena.array(case.shape[-1:] if is_sum else case.shape, case.element)
        super().__init__(arrays, base, result_names(case))

    def call(self):
        return case_call(self.case, self.arrays, self.base)


def error(case, data, results):
    """The largest error of each result, as a share of its largest true value; infinite
    where a value is not finite."""
    errors = {}
    for name, expected in data.expected.items():
        got = np.asarray(results[name])
        largest = np.abs(expected).max()
        if expected.ndim == 1:
            worst = np.abs(got.astype(np.float64).reshape(-1) - expected).max()
        else:
            rows, worst = got.reshape(-1, case.extent), 0.0
            for start in range(0, len(rows), len(expected)):
                part = rows[start:start + len(expected)].astype(np.float64)
                worst = np.maximum(worst, np.abs(part - expected[:len(part)]).max())
        errors[name] = float(worst / largest) if np.isfinite(worst) else float("inf")
    return errors


def is_right(case, errors):
    """Whether a lane with these errors may be timed."""
    return all(value <= TOLERANCES[case.element] for value in errors.values())
