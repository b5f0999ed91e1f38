"""What a program computes, by the oracle: limits of each result.

A norm is checked around what it was really given: a result that the program returns
stands, once it is checked, for what was computed. Elementwise ops are exact: one rounding
of each element. What lies between limits is carried through them, as both ends.
"""

import zlib
from dataclasses import dataclass

import numpy as np

from norm.cases import call
from norm.data import MAKERS, RANDOM, draw, generator
from norm.fuzz.program import call_of, case_of, constant_array
from norm.program import RESULTS
from norm.promise import Limits, explain, limits, ulps_for
from norm.reference import FORWARD
from norm.types import F32, F64, cast, float_type, widen

# name -> what is drawn for the norm's own data, its mean and deviation.
REGIMES = {
    "normal": ("normal", 0.5, 1.0), "levels": ("levels", 0.0, 1.0),
    "far": ("normal", 300.0, 1.0), "tiny": ("normal", 0.0, 1e-4),
    "large": ("normal", 0.0, 1e3), "zero": ("zero", 0.0, 1.0),
    "constant": ("constant", 0.0, 1.0), "outlier": ("outlier", 0.0, 1.0),
    "not_finite": ("not_finite", 0.0, 1.0), "mixed": ("mixed", 0.0, 1.0),
    "ramp": ("ramp", 0.0, 1.0), "extreme": ("normal", 0.0, 1e14)}


@dataclass(frozen=True)
class DataSet:
    """A regime, the extents that unknown dims have, and whether arguments are in
    Fortran order."""

    regime: str = "normal"
    extents: tuple = ()  # (dim, extent)
    fortran: bool = False
    number: int = 0


def arguments(program, data):
    """The arrays of the function's arguments, in order."""
    extents, calls, arrays = dict(data.extents), {}, []
    kind, mean, std = REGIMES[data.regime]
    for node in program.arguments():
        value, = node.outputs
        shape = program.shape(value, extents)
        if "of" in node.attributes:
            key = node.attributes["of"]
            if key not in calls:
                norm = next(n for n in program.norms() if n.attributes["key"] == key)
                case = case_of(program, norm, extents, data=kind, mean=mean, std=std)
                name = f"{case.name}-{data.regime}-{data.number}"
                calls[key] = call(type(case)(**{**vars(case), "name": name})).operands()
            array = np.asarray(calls[key][node.attributes["name"]])
        else:
            # A key that stays when other nodes are dropped is not needed: shrinking keeps
            # what fails, whatever the data.
            rng = generator(f"{program.seed}-{value}-{data.regime}-{data.number}")
            own = node.attributes["data"]
            own = kind if own == "regime" else own
            element = float_type(program.values[value].element)
            if own == "normal" or not shape:
                array = draw(rng, shape, element, mean if own == kind else 0.5,
                             std if own == kind else 1.0)
            else:
                rows = int(np.prod(shape[:-1], dtype=np.int64))
                with np.errstate(all="ignore"):
                    made = MAKERS[own](rng, rows, shape[-1]) if rows * shape[-1] else \
                        np.zeros((rows, shape[-1]))
                array = cast(np.ascontiguousarray(made).reshape(shape), element)
        if data.fortran and array.ndim > 1:
            array = np.asfortranarray(array)
        arrays.append(array)
    return arrays


class Opaque:
    """A value that nothing is known of."""


class Evaluation:
    """The oracle's walk through a program on one data set."""

    def __init__(self, program, data):
        self.program, self.data, self.extents = program, data, dict(data.extents)
        self.inputs = arguments(program, data)
        self.cache = {}  # a norm's inputs as bytes -> its reference, by path's ULPS

    def check(self, results, path="cpu", widen_by=1, real=False):
        """Lines about the returned arrays that break the promise. results: in order.
        widen_by: a factor on ULPS. real: steps were rewritten as arithmetic on real numbers
        allows, which moves their roundings to narrow types. Afterwards `opaque` has the
        positions of results that nothing is known of."""
        program, known, problems = self.program, {}, []
        # Limits of what is also known: a consumer may see a norm computed again for it,
        # by as good a sum.
        soft = {}
        self.opaque = []
        self.actual = dict(zip(program.returned, results, strict=True))
        arrays = iter(self.inputs)
        for node in program.nodes:
            if node.kind == "arg":
                known[node.outputs[0]] = next(arrays)
                continue
            inputs = [known[v] for v in node.inputs]
            if any(isinstance(i, Opaque) for i in inputs):
                found = [Opaque()] * len(node.outputs)
            elif node.kind == "norm":
                found = self._norm(node, inputs, path, widen_by, real)
            else:
                found = [self._apply(node, inputs)]
            for value, one in zip(node.outputs, found, strict=True):
                known[value] = one
                if isinstance(one, Limits):
                    soft[value] = one
                elif node.kind != "norm" and any(v in soft for v in node.inputs):
                    soft[value] = self._apply(node, [soft.get(v, known[v]) for v in node.inputs])
                if value not in self.actual:
                    continue
                actual = self.actual[value]
                if isinstance(one, np.ndarray):
                    one = Limits(one, one, one, np.ones(one.shape))
                if isinstance(one, Limits):
                    line = explain(f"value {value} of {self._describe(node)}", one, actual)
                    if line and not keeps(soft.get(value), actual):
                        problems.append(line)
                else:
                    self.opaque.append(program.returned.index(value))
                    if actual.shape != program.shape(value, self.extents):
                        problems.append(f"value {value}: got shape {actual.shape}")
                known[value] = actual
        return problems

    @staticmethod
    def _describe(node):
        if node.kind != "norm":
            return node.kind
        return node.attributes["case"]["op"]

    # ---- norms --------------------------------------------------------------

    def _norm(self, node, inputs, path, widen_by, real):
        if any(isinstance(i, Limits) for i in inputs) or not in_range(node, inputs):
            return [Opaque()] * len(node.outputs)
        made = call_of(self.program, node, inputs, self.extents)
        plain = all(self.program.producer(v).kind == "arg" for v in node.inputs)
        key = (node.outputs[0], zlib.crc32(b"".join(i.tobytes() for i in inputs)))
        if key not in self.cache:
            self.cache[key] = made.reference()
        reference = self.cache[key]
        if real and (reference.compute.precision < F32.precision or self._rounds_on_the_way(node)):
            return [Opaque()] * len(node.outputs)
        rows = "random" if plain and REGIMES[self.data.regime][0] in RANDOM else "any"
        if path == "linalg" and reference.compute == F64:
            widen_by *= 256  # f64 statistics between ops lose what a pair would keep
        found = limits(reference, widen_by * ulps_for(reference, rows, path), path)
        case = node.attributes["case"]
        names = [n for n in RESULTS[case["op"]] if n in case["results"]]
        return [found[name] for name in names]

    def _rounds_on_the_way(self, node):
        """Whether what the norm reads is computed and rounded to 16 bits."""
        return any(self.program.producer(v).kind != "arg" and self.program.dtype(v).itemsize < 4
                   for v in node.inputs)

    # ---- exact ops ----------------------------------------------------------

    def _apply(self, node, inputs):
        if any(isinstance(i, Opaque) for i in inputs) or node.kind in ("matmul", "conv"):
            return Opaque()
        if not any(isinstance(i, Limits) for i in inputs):
            return self._exact(node, inputs)
        ends = [[i.low, i.high] if isinstance(i, Limits) else [i] for i in inputs]
        expected = self._exact(node, [i.expected if isinstance(i, Limits) else i
                                      for i in inputs])
        corners = [[]]
        for choice in ends:
            corners = [c + [e] for c in corners for e in choice]
        values = [widen(self._exact(node, corner)) for corner in corners]
        if node.kind == "abs":
            low, high = (widen(e) for e in ends[0])
            values.append(np.where((low < 0) & (high > 0), 0, values[0]))
        with np.errstate(all="ignore"):
            low, high = np.minimum.reduce(values), np.maximum.reduce(values)
            # inf - inf between the ends: nothing is known; NaN itself is.
            lost = np.isnan(low) & ~np.isnan(widen(expected))
            low, high = np.where(lost, -np.inf, low), np.where(lost, np.inf, high)
            dtype = expected.dtype
            low, high = low.astype(dtype), high.astype(dtype)
            unit = np.maximum(np.abs(widen(high) - widen(low)), 1e-300)
        infinite = any(i.nan_for_infinity for i in inputs if isinstance(i, Limits))
        found = Loose(expected, low, high, np.where(np.isfinite(unit), unit, np.inf), infinite)
        found.lost = lost
        for i in inputs:
            if getattr(i, "lost", None) is not None and i.lost.any():
                return Opaque()
        return Opaque() if infinite and not np.isfinite(widen(expected)).all() else found

    def _exact(self, node, inputs):
        program, attributes, value = self.program, node.attributes, node.outputs[0]
        shape = program.shape(value, self.extents)
        if node.kind == "const":
            return constant_array(program, node)
        element = program.values[value].element
        first = inputs[0] if inputs else None
        if node.kind == "transpose":
            return first.transpose(attributes["permutation"])
        if node.kind in ("collapse", "expand"):
            return np.ascontiguousarray(first).reshape(shape)
        if node.kind == "broadcast":
            return np.broadcast_to(np.expand_dims(first, tuple(attributes["dimensions"])), shape)
        if node.kind == "slice":
            return first[tuple(slice(o, o + (n - 1) * s + 1 if n else o, s) for o, n, s in zip(
                attributes["offsets"], shape, attributes["strides"], strict=True))]
        if node.kind == "concat":
            return np.concatenate(inputs, axis=attributes["axis"])
        target = float_type(element)
        if node.kind == "cast":
            return cast(widen(first), target)
        operands = [widen(i) for i in inputs]
        if attributes.get("axes") is not None:
            axes = attributes["axes"]
            operands[1] = operands[1].reshape(
                [shape[a] if a in axes else 1 for a in range(len(shape))])
        with np.errstate(all="ignore"):
            result = FUNCTIONS[node.kind](*operands)
        return result if target == F64 else cast(result, target)


def keeps(limit, actual):
    """Whether an array keeps other limits, if there are any."""
    return isinstance(limit, Opaque) or (
        isinstance(limit, Limits) and explain("", limit, actual) is None)


def in_range(node, inputs):
    """Whether sums of squares and products stay in the range of f32, or f64 where all is
    f64: the promise is of what does not overflow on the way."""
    floats = [widen(i) for i in inputs if i.dtype.kind not in "ib" and i.size]
    wide = all(i.dtype == np.float64 for i in inputs if i.dtype.kind not in "ib") and \
        node.attributes["case"]["options"].get("compute") in (None, "f64")
    most = 1e8 if node.attributes["case"]["op"] not in FORWARD else 1e16
    if wide:
        most = most**6
    largest = [np.abs(f[np.isfinite(f)]).max(initial=0) for f in floats]
    return max(largest, default=0) <= most


class Loose(Limits):
    """Limits of which some elements may be anything."""

    lost = None

    def violations(self, actual):
        wrong = super().violations(actual)
        return wrong if self.lost is None else wrong & ~self.lost


FUNCTIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum,
             "neg": np.negative, "abs": np.abs, "relu": lambda x: np.maximum(x, 0.0)}


def same_bits(one, other):
    """Whether two arrays have the same bits, NaN for NaN."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind in "ib":
        return bool((one == other).all())
    a, b = widen(one), widen(other)
    with np.errstate(all="ignore"):
        same = (a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))
    return bool(same.all())


def close(one, other, tolerance=2e-2):
    """Whether two arrays agree as real arithmetic lets them: relative to the largest
    magnitude, NaN and infinities aside."""
    if one.shape != other.shape:
        return False
    a, b = widen(one), widen(other)
    finite = np.isfinite(a) & np.isfinite(b)
    if not finite.any():
        return True
    size = np.abs(a[finite]).max()
    return bool((np.abs(a - b)[finite] <= tolerance * size + 1e-30).all())
