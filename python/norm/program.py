"""Ops as IR: one call of a norm op on given arrays, and modules of many calls."""

from dataclasses import dataclass, field, replace
from typing import Optional

import numpy as np

from norm import reference
from norm.reference import ALGEBRA, BACKWARD, FORWARD, NormSpec
from norm.types import float_type

# An op's results in printed order; the type of the first prints without its name if
# that is one of UNNAMED.
FORWARD_RESULTS = ("y", "mean", "variance", "rstd", "sum", "running_mean", "running_variance")
BACKWARD_RESULTS = ("dx", "dscale", "dshift")
ALGEBRA_RESULTS = {
    "moments": ("count", "mean", "m2"), "combine_moments": ("count", "mean", "m2"),
    "rstd": ("rstd", "variance"), "normalize": ("y",), "update_running": ("updated",),
    "backward_moments": ("sum_g", "sum_gx", "dscale", "dshift"), "backward_normalize": ("dx",)}
RESULTS = {**dict.fromkeys(FORWARD, FORWARD_RESULTS),
           **dict.fromkeys(BACKWARD, BACKWARD_RESULTS), **ALGEBRA_RESULTS}
UNNAMED = ("y", "dx", "updated", "rstd")

# An op's operands in printed order: first those that print without a clause.
FORWARD_OPERANDS = (("x",), ("residual", "mean", "variance", "scale", "shift"))
BACKWARD_OPERANDS = (("dy", "x"), ("residual", "dsum", "mean", "variance", "rstd", "scale"))
ALGEBRA_OPERANDS = {
    "moments": (("x",), ("mask",)),
    "combine_moments": ((), ("count", "mean", "m2")),
    "rstd": (("m2",), ("count",)),
    "normalize": (("x",), ("mean", "rstd", "scale", "shift")),
    "update_running": (("old", "new"), ("count",)),
    "backward_moments": (("dy", "x"), ("mean", "rstd", "scale", "mask")),
    "backward_normalize": (("dy", "x"), ("mean", "rstd", "scale", "variance", "sum_g", "sum_gx",
                                         "count", "mask"))}
OPERANDS = {**dict.fromkeys(FORWARD, FORWARD_OPERANDS),
            **dict.fromkeys(BACKWARD, BACKWARD_OPERANDS), **ALGEBRA_OPERANDS}
# The operand that the others' shapes follow from, where it is not called x.
LEADING = {"combine_moments": "m2", "rstd": "m2", "update_running": "old"}


def float_literal(value):
    """A float as MLIR reads it back exactly: 1.0e-05, never 1e-05."""
    text = repr(float(value))
    if "e" in text:
        digits, exponent = text.split("e")
        return f"{digits if '.' in digits else digits + '.0'}e{exponent}"
    return text


def element_name(element):
    """An element type as MLIR writes it: of floats, i1 of booleans, i64 of integers."""
    if isinstance(element, str) and element == "i64" or element == np.int64:
        return "i64"
    return "i1" if element == np.bool_ else float_type(element).name


def tensor_type(shape, element, dynamic=()):
    """tensor<..>; the dims whose numbers are in `dynamic` print as `?`."""
    dims = "".join(f"{'?' if a in dynamic else n}x" for a, n in enumerate(shape))
    return f"tensor<{dims}{element_name(element)}>"


@dataclass
class Slice:
    """x is passed as a view of `base`: base[offset : .. : stride] in each dim."""

    base: np.ndarray
    offsets: tuple
    strides: tuple


@dataclass
class Call:
    """One op on arrays. x: its leading operand (m2 of combine_moments and rstd, old
    of update_running); `results`: which it has, of RESULTS; `dynamic`: which dims of
    x are unknown to the compiler; `versions`: the same of each version of the function that
    knows more; `slice`: where x comes from; `transposed`: x
    reaches the op through a linalg.transpose of the array that is passed."""

    spec: NormSpec
    x: np.ndarray
    residual: Optional[np.ndarray] = None
    scale: Optional[np.ndarray] = None
    shift: Optional[np.ndarray] = None
    results: tuple = ("y",)
    dynamic: tuple = ()
    versions: tuple = ()
    slice: Optional[Slice] = field(default=None, repr=False)
    transposed: Optional[tuple] = None
    mean: Optional[np.ndarray] = None
    variance: Optional[np.ndarray] = None
    rstd: Optional[np.ndarray] = None
    running_mean: Optional[np.ndarray] = None
    running_variance: Optional[np.ndarray] = None
    momentum: Optional[np.ndarray] = None  # f32 of rank 0, in place of the attribute
    dy: Optional[np.ndarray] = None
    dsum: Optional[np.ndarray] = None
    mask: Optional[np.ndarray] = None
    count: Optional[np.ndarray] = None
    sum_g: Optional[np.ndarray] = None
    sum_gx: Optional[np.ndarray] = None
    new: Optional[np.ndarray] = None

    def operand(self, name):
        return self.x if name == LEADING.get(self.spec.kind, "x") else getattr(self, name)

    def operands(self):
        """The operands that exist, by name, in the order of the function's arguments."""
        first, clauses = OPERANDS[self.spec.kind]
        names = first + clauses + ("running_mean", "running_variance", "momentum")
        found = {name: self.operand(name) for name in names}
        return {name: array for name, array in found.items() if array is not None}

    def reference(self):
        """What the oracle says: a `Reference`, or `Values`."""
        operands, kind = self.operands(), self.spec.kind
        if "momentum" in operands:
            operands["momentum"] = float(operands["momentum"])
        if kind in ALGEBRA:
            return getattr(reference, kind)(self.spec, **operands)
        evaluate = reference.evaluate_backward if kind in BACKWARD else reference.evaluate
        return evaluate(self.spec, **operands)

    def inputs(self):
        """The arrays of the function's arguments, in order."""
        found = self.operands()
        if self.slice is not None:
            found["x"] = self.slice.base
        elif self.transposed is not None:
            found["x"] = np.ascontiguousarray(self.x.transpose(np.argsort(self.transposed)))
        return list(found.values())

    def result_types(self):
        """(shape, element type) of each result, in the op's order."""
        spec, shape, rank = self.spec, self.x.shape, self.x.ndim
        x_type = float_type(self.x.dtype)
        compute = spec.compute_type(self.x, self.residual)
        if spec.kind in ALGEBRA:
            operands = (self.x, self.mean if spec.kind == "combine_moments" else None, self.new)
            compute = spec.compute_type(*operands)
        statistic = float_type(spec.statistics or compute)
        kept = spec.kept_shape(shape)
        if spec.kind == "combine_moments":
            kept = shape[1:]

        def one(name):
            if name == "count":
                return kept, "i64"
            if name in ("y", "dx"):
                return shape, float_type(spec.result or x_type)
            if name == "sum":
                return shape, float_type(spec.sum or x_type)
            if name in ("dscale", "dshift"):
                return (tuple(shape[a] for a in spec.affine(rank)),
                        float_type(spec.gradients or x_type))
            if name in ("running_mean", "running_variance"):
                return kept, float_type(spec.running or getattr(self, name).dtype)
            return (kept, float_type(spec.running or x_type) if name == "updated" else statistic)
        return [one(name) for name in self.ordered_results()]

    def ordered_results(self):
        return [name for name in RESULTS[self.spec.kind] if name in self.results]

    def unknown(self, name, result=False):
        """Which dims of an operand or of a result are unknown, as its own positions."""
        spec, rank, kind = self.spec, self.x.ndim, self.spec.kind
        if name == "momentum":
            return []
        if kind == "combine_moments":
            axes = range(1 if result else 0, rank)
        elif name in ("scale", "shift", "dscale", "dshift"):
            axes = spec.affine(rank)
        elif name in ("x", "y", "sum", "residual", "dy", "dx", "dsum", "mask"):
            axes = range(rank)
        else:
            axes = spec.kept(rank)
            if spec.norm == "group_norm":
                # The groups stand where the channel stood; their number is known.
                axes = sorted((*axes, spec.channel_axis % rank))
                return [i for i, a in enumerate(axes)
                        if a in self.dynamic and a != spec.channel_axis % rank]
        return [i for i, a in enumerate(axes) if a in self.dynamic]


class Writer:
    """The text of one function whose results are those of all its calls."""

    def __init__(self):
        self.lines, self.arguments, self.returned, self.types = [], [], [], []
        self.versions = []

    def argument(self, text):
        self.arguments.append(f"%arg{len(self.arguments)}: {text}")
        return f"%arg{len(self.arguments) - 1}"

    def add(self, call):
        operands = call.operands()
        types = operand_types(call)
        values = {name: self._source(call, types[name]) if name == "x" else
                  self.argument(types[name]) for name in operands}
        self._add_versions(call)
        if "momentum" in operands:
            momentum = f"%a{len(self.lines)}"
            self.lines.append(f"{momentum} = tensor.extract {values['momentum']}[] : tensor<f32>")
            values["momentum"] = momentum
        text, types = operation_text(call, values)
        number = len(self.lines)
        results = f"%op{number}" + (f":{len(types)}" if len(types) > 1 else "")
        self.lines.append(f"{results} = {text}")
        self.types += types
        self.returned += [f"%op{number}" + (f"#{i}" if len(types) > 1 else "")
                          for i in range(len(types))]

    def _add_versions(self, call):
        assert not self.returned or len(self.versions) == len(call.versions)
        self.versions += [[] for _ in call.versions[len(self.versions):]]
        for version, dynamic in zip(self.versions, call.versions, strict=True):
            version += operand_types(replace(call, dynamic=dynamic)).values()

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
        versions = ", ".join(f"[{', '.join(version)}]" for version in self.versions)
        attributes = f"attributes {{norm.versions = [{versions}]}} " if versions else ""
        return (f"func.func @{entry}({', '.join(self.arguments)}) -> ({types}) {attributes}"
                f"{{\n{body}"
                f"  return {', '.join(self.returned)} : {types}\n}}\n")


def operand_types(call):
    """The type of each operand as MLIR writes it, by name."""
    return {name: tensor_type(array.shape, array.dtype, call.unknown(name))
            for name, array in call.operands().items()}


def operation_text(call, values):
    """The op as text, and its result types. values: what each operand is called; for
    `momentum` an f32."""
    spec, types = call.spec, operand_types(call)
    first, clauses = OPERANDS[spec.kind]
    parts = [", ".join(values[name] for name in first)] if first else []
    parts += [f"{name}({values[name]} : {types[name]})" for name in clauses if name in types]
    if "running_mean" in types:
        names = ("running_mean", "running_variance")
        parts.append(f"running({', '.join(values[n] for n in names)} : "
                     f"{', '.join(types[n] for n in names)})")
    parts.append(attributes_text(spec, values.get("momentum")))
    if first:
        parts.append(f": {', '.join(types[name] for name in first)}")
    names = call.ordered_results()
    found = [tensor_type(shape, element, call.unknown(name, result=True))
             for name, (shape, element) in zip(names, call.result_types(), strict=True)]
    written = [kind if name in UNNAMED and not i else f"{name}({kind})"
               for i, (name, kind) in enumerate(zip(names, found, strict=True))]
    return f"norm.{spec.kind} {' '.join(p for p in parts if p)} -> {' '.join(written)}", found


def attributes_text(spec, momentum=None):
    """The op's attribute clauses, in the order of its assembly format. momentum: the
    value that stands in place of the attribute."""
    parts, kind = [], spec.kind
    if spec.groups is not None:
        parts.append(f"groups {spec.groups} channel_axis {spec.channel_axis}")
    if kind not in ("combine_moments", "rstd", "update_running"):
        parts.append(f"axes {list(spec.axes)}")
    if kind == "moments":
        parts.append(f"about {spec.about}")
    if kind == "update_running":
        parts.append(f"statistic {spec.statistic}")
        parts += _momentum_text(spec, momentum)
    if kind not in ALGEBRA or kind in ("rstd", "backward_normalize"):
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
    if kind == "batch_norm_training":
        parts += _momentum_text(spec, momentum)
    return " ".join(parts)


def _momentum_text(spec, value):
    parts = []
    if value is not None:
        parts.append(f"momentum({value} : f32)")
    elif spec.momentum is not None:
        parts.append(f"momentum {float_literal(spec.momentum)}")
    if spec.running_correction != 1:
        parts.append(f"running_correction {spec.running_correction}")
    return parts


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
