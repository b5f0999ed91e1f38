"""Ops as IR: one call of a norm op on given arrays, and modules of many calls."""

from dataclasses import dataclass, field
from typing import Optional

import numpy as np

from norm.reference import NormSpec, evaluate
from norm.types import float_type

RESULTS = ("y", "mean", "variance", "rstd", "sum")


def float_literal(value):
    """A float as MLIR reads it back exactly: 1.0e-05, never 1e-05."""
    text = repr(float(value))
    if "e" in text:
        digits, exponent = text.split("e")
        return f"{digits if '.' in digits else digits + '.0'}e{exponent}"
    return text


def tensor_type(shape, element, dynamic=()):
    """tensor<..>; the dims whose numbers are in `dynamic` print as `?`."""
    dims = "".join(f"{'?' if a in dynamic else n}x" for a, n in enumerate(shape))
    return f"tensor<{dims}{float_type(element).name}>"


@dataclass
class Slice:
    """x is passed as a view of `base`: base[offset : .. : stride] in each dim."""

    base: np.ndarray
    offsets: tuple
    strides: tuple


@dataclass
class Call:
    """One op on arrays. `results`: which it has, of RESULTS; `dynamic`: which dims
    of x are unknown to the compiler; `slice`: where x comes from; `transposed`: x
    reaches the op through a linalg.transpose of the array that is passed."""

    spec: NormSpec
    x: np.ndarray
    residual: Optional[np.ndarray] = None
    scale: Optional[np.ndarray] = None
    shift: Optional[np.ndarray] = None
    results: tuple = ("y",)
    dynamic: tuple = ()
    slice: Optional[Slice] = field(default=None, repr=False)
    transposed: Optional[tuple] = None

    def reference(self):
        return evaluate(self.spec, self.x, self.residual, self.scale, self.shift)

    def inputs(self):
        """The arrays of the function's arguments, in order."""
        x = self.x
        if self.slice is not None:
            x = self.slice.base
        elif self.transposed is not None:
            x = np.ascontiguousarray(x.transpose(np.argsort(self.transposed)))
        rest = (self.residual, self.scale, self.shift)
        return [x] + [array for array in rest if array is not None]

    def result_types(self):
        """(shape, element type) of each result, in the op's order."""
        rank, shape = self.x.ndim, self.x.shape
        kept = tuple(shape[a] for a in self.spec.kept(rank))
        compute = self.spec.compute_type(self.x, self.residual)
        x_type = float_type(self.x.dtype)
        types = {"y": (shape, float_type(self.spec.result or x_type)),
                 "sum": (shape, float_type(self.spec.sum or x_type))}
        return [types.get(name, (kept, compute)) for name in self.ordered_results()]

    def ordered_results(self):
        return [name for name in RESULTS if name in self.results]


class Writer:
    """The text of one function whose results are those of all its calls."""

    def __init__(self):
        self.lines, self.arguments, self.returned, self.types = [], [], [], []

    def argument(self, text):
        self.arguments.append(f"%arg{len(self.arguments)}: {text}")
        return f"%arg{len(self.arguments) - 1}"

    def add(self, call):
        spec, rank, shape = call.spec, call.x.ndim, call.x.shape
        x_type = tensor_type(shape, call.x.dtype, call.dynamic)
        x = self._source(call, x_type)
        clauses = [x]
        if call.residual is not None:
            text = tensor_type(shape, call.residual.dtype, call.dynamic)
            clauses.append(f"residual({self.argument(text)} : {text})")
        affine = spec.affine(rank)
        dynamic = [i for i, a in enumerate(affine) if a in call.dynamic]
        for name, value in (("scale", call.scale), ("shift", call.shift)):
            if value is not None:
                text = tensor_type(value.shape, value.dtype, dynamic)
                clauses.append(f"{name}({self.argument(text)} : {text})")
        clauses.append(attributes_text(spec))

        names = call.ordered_results()
        kept = [i for i, a in enumerate(spec.kept(rank)) if a in call.dynamic]
        types = [tensor_type(result_shape, element,
                             call.dynamic if name in ("y", "sum") else kept)
                 for name, (result_shape, element) in zip(names, call.result_types(),
                                                            strict=True)]
        assert names[0] == "y"
        tail = types[0] + "".join(f" {n}({t})" for n, t in zip(names[1:], types[1:], strict=True))
        number = len(self.lines)
        results = f"%op{number}" + (f":{len(types)}" if len(types) > 1 else "")
        self.lines.append(f"{results} = norm.{spec.kind} {' '.join(clauses)} : "
                          f"{x_type} -> {tail}")
        self.types += types
        self.returned += [f"%op{number}" + (f"#{i}" if len(types) > 1 else "")
                          for i in range(len(types))]

    def _source(self, call, x_type):
        number = len(self.lines)
        if call.slice is not None:
            part = call.slice
            base = tensor_type(part.base.shape, part.base.dtype)
            argument = self.argument(base)
            assert not call.dynamic
            self.lines.append(
                f"%x{number} = tensor.extract_slice {argument}{list(part.offsets)} "
                f"{list(call.x.shape)} {list(part.strides)} : {base} to {x_type}")
            return f"%x{number}"
        if call.transposed is not None:
            inverse = [int(a) for a in np.argsort(call.transposed)]
            base = tensor_type([call.x.shape[a] for a in inverse], call.x.dtype)
            argument = self.argument(base)
            assert not call.dynamic
            self.lines += [
                f"%e{number} = tensor.empty() : {x_type}",
                f"%x{number} = linalg.transpose ins({argument} : {base}) "
                f"outs(%e{number} : {x_type}) permutation = {list(call.transposed)}"]
            return f"%x{number}"
        return self.argument(x_type)

    def text(self, entry="main"):
        types = ", ".join(self.types)
        body = "".join(f"  {line}\n" for line in self.lines)
        return (f"func.func @{entry}({', '.join(self.arguments)}) -> ({types}) {{\n{body}"
                f"  return {', '.join(self.returned)} : {types}\n}}\n")


def attributes_text(spec):
    """The op's attribute clauses, in the order of its assembly format."""
    parts = [f"axes {list(spec.axes)}"]
    if spec.placement == "none":
        parts.append("epsilon none")
    else:
        parts.append(f"epsilon {spec.placement} {float_literal(spec.epsilon)}")
    if spec.affine_axes is not None:
        parts.append(f"affine_axes {list(spec.affine_axes)}")
    if spec.compute is not None:
        parts.append(f"compute {spec.compute}")
    if spec.correction:
        parts.append(f"correction {spec.correction}")
    if spec.scale_offset:
        parts.append(f"scale_offset {float_literal(spec.scale_offset)}")
    if spec.affine_in != "compute":
        parts.append(f"affine_in {spec.affine_in}")
    if spec.sum_rounding != "stored":
        parts.append(f"sum_rounding {spec.sum_rounding}")
    if spec.zero_policy != "ieee":
        parts.append(f"zero_policy {spec.zero_policy}")
    return " ".join(parts)


def module_text(calls, entry="main"):
    """One function running all calls: their inputs, in order, are its arguments
    and their results, in order, its results."""
    writer = Writer()
    for call in calls:
        writer.add(call)
    return writer.text(entry)


def split_results(calls, arrays):
    """The function's results as one {name: array} per call."""
    arrays = iter(arrays)
    return [{name: next(arrays) for name in call.ordered_results()} for call in calls]
