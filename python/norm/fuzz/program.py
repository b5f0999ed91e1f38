"""Random programs: what they are made of, their text as MLIR and as JSON.

A program is one function of tensors. Every dimension of every value is one of the
program's `dims`, so that an unknown extent has another size in every data set.

    kind        inputs, attributes
    arg         `data`, a recipe, or `of` and `name`: an operand of the norm with that key
    const       `values`: a number, or "dense"
    neg abs relu cast    one value
    add sub mul maximum  two; `axes`: dims of the first that the second has, if not all
    transpose collapse expand broadcast slice concat
    matmul conv the second input is a constant; nothing is promised of their sums
    norm        the operands, by `names`; `case`, the fields of a `norm.cases.Case`; `key`
"""

import json
from dataclasses import asdict, dataclass, field

import numpy as np

from norm.cases import Case
from norm.program import Call, float_literal, operation_text, tensor_type
from norm.reference import NormSpec
from norm.types import F32, TYPES, float_type, round_to

BINARY = ("add", "sub", "mul", "maximum")
UNARY = ("neg", "abs", "relu")
OPS = {"add": "addf", "sub": "subf", "mul": "mulf", "maximum": "maximumf", "neg": "negf",
       "abs": "absf"}


@dataclass
class Dim:
    extent: int
    dynamic: bool = False
    multiple: int = 1  # what the extent is a multiple of


@dataclass
class Value:
    dims: tuple
    element: str  # f64, f32, f16, bf16, i64 or i1


@dataclass
class Node:
    kind: str
    inputs: tuple
    outputs: tuple
    attributes: dict = field(default_factory=dict)


@dataclass
class Program:
    seed: int
    dims: list = field(default_factory=list)
    values: list = field(default_factory=list)
    nodes: list = field(default_factory=list)
    returned: list = field(default_factory=list)
    versions: list = field(default_factory=list)  # of lists of dims that a version knows

    def shape(self, value, extents=None):
        """extents: {dim: extent} in place of the program's own."""
        extents = extents or {}
        return tuple(extents.get(d, self.dims[d].extent) for d in self.values[value].dims)

    def dynamic(self, value, known=()):
        return [i for i, d in enumerate(self.values[value].dims)
                if self.dims[d].dynamic and d not in known]

    def type(self, value, known=()):
        """known: dims that are static all the same."""
        element = self.values[value].element
        return tensor_type(self.shape(value), np.bool_ if element == "i1" else element,
                           self.dynamic(value, known))

    def dtype(self, value):
        element = self.values[value].element
        return np.dtype({"i64": np.int64, "i1": np.bool_}.get(element) or
                        float_type(element).dtype)

    def arguments(self):
        return [node for node in self.nodes if node.kind == "arg"]

    def norms(self):
        return [node for node in self.nodes if node.kind == "norm"]

    def producer(self, value):
        return next(node for node in self.nodes if value in node.outputs)

    def to_json(self):
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text):
        data = json.loads(text)
        return Program(
            data["seed"], [Dim(**d) for d in data["dims"]],
            [Value(tuple(v["dims"]), v["element"]) for v in data["values"]],
            [Node(n["kind"], tuple(n["inputs"]), tuple(n["outputs"]), n["attributes"])
             for n in data["nodes"]], list(data["returned"]), data.get("versions", []))

    def copy(self):
        return Program.from_json(self.to_json())

    def text(self):
        return Text(self).text()


def case_of(program, node, extents=None, **changes):
    """The `Case` of a norm, whose x has the shape that the data set gives it."""
    fields = {name: tuple(value) if isinstance(value, list) else value
              for name, value in node.attributes["case"].items()}
    fields["options"] = {name: tuple(value) if isinstance(value, list) else value
                         for name, value in fields.get("options", {}).items()}
    x = leading(node)
    return Case(name=f"{program.seed}-{node.attributes['key']}",
                **{**fields, "shape": program.shape(x, extents), **changes})


def leading(node):
    """The operand that the others' shapes follow from."""
    names = node.attributes["names"]
    kind = node.attributes["case"]["op"]
    name = {"combine_moments": "m2", "rstd": "m2", "update_running": "old"}.get(kind, "x")
    return node.inputs[names.index(name)]


def call_of(program, node, arrays, extents=None):
    """A `Call` on arrays, in the order of the norm's inputs."""
    x = leading(node)
    case = case_of(program, node, extents)
    made = Call(case.spec(), None, results=tuple(case.results),
                dynamic=tuple(program.dynamic(x)))
    for name, array, value in zip(node.attributes["names"], arrays, node.inputs, strict=True):
        setattr(made, "x" if value == x and name in ("x", "m2", "old") else name, array)
    return made


def placeholder(program, value):
    """An array of a value's shape and type that takes no memory."""
    return np.broadcast_to(np.zeros((), program.dtype(value)), program.shape(value))


def kept_dims(program, spec, x):
    """The dims of x's statistics; group_norm's groups are -1."""
    dims = program.values[x].dims
    rank = len(dims)
    if spec.kind == "combine_moments":
        return dims[1:]
    if spec.norm == "group_norm":
        channel = spec.channel_axis % rank
        axes = sorted((*spec.kept(rank), channel))
        return tuple(-1 if a == channel else dims[a] for a in axes)
    return tuple(dims[a] for a in spec.kept(rank))


class Text:
    """The program as MLIR."""

    def __init__(self, program):
        self.program, self.lines, self.names = program, [], {}

    def text(self):
        p = self.program
        arguments = []
        for node in p.nodes:
            if node.kind == "arg":
                value = node.outputs[0]
                self.names[value] = f"%arg{len(arguments)}"
                arguments.append(f"{self.names[value]}: {p.type(value)}")
        for node in p.nodes:
            if node.kind != "arg":
                getattr(self, f"_{node.kind}", self._elementwise)(node)
        types = ", ".join(p.type(v) for v in p.returned)
        body = "".join(f"  {line}\n" for line in self.lines)
        values = ", ".join(self.names[v] for v in p.returned)
        versions = ", ".join(
            f"[{', '.join(p.type(node.outputs[0], known) for node in p.arguments())}]"
            for known in p.versions)
        attributes = f"attributes {{norm.versions = [{versions}]}} " if versions else ""
        return (f"func.func @main({', '.join(arguments)}) -> ({types}) {attributes}{{\n{body}"
                f"  return {values} : {types}\n}}\n")

    # ---- names and pieces ---------------------------------------------------

    def _new(self, letter="t"):
        return f"%{letter}{len(self.lines)}"

    def _emit(self, value, text):
        self.names[value] = f"%v{value}"
        self.lines.append(f"%v{value} = {text}")

    def _extent(self, source, position):
        """The extent of a dim of a value, as a value or a number."""
        dim = self.program.dims[self.program.values[source].dims[position]]
        if not dim.dynamic:
            return str(dim.extent)
        index, extent = self._new("c"), self._new("d")
        self.lines.append(f"{index} = arith.constant {position} : index")
        self.lines.append(f"{extent} = tensor.dim {self.names[source]}, {index} : "
                          f"{self.program.type(source)}")
        return extent

    def _extents(self, value, sources):
        """The unknown extents of a value, found in the dims of other values."""
        found = []
        for d in self.program.values[value].dims:
            if not self.program.dims[d].dynamic:
                continue
            source = next(s for s in sources if d in self.program.values[s].dims)
            found.append(self._extent(source, self.program.values[source].dims.index(d)))
        return found

    def _empty(self, value, sources):
        extents, name, kind = self._extents(value, sources), self._new("e"), \
            self.program.type(value)
        self.lines.append(f"{name} = tensor.empty({', '.join(extents)}) : {kind}")
        return name

    # ---- one kind each ------------------------------------------------------

    def _const(self, node):
        value, = node.outputs
        element = self.program.values[value].element

        def number(v):
            return float_literal(round_to(np.float64(v), float_type(element)))
        if node.attributes["values"] == "dense":
            array = constant_array(self.program, node)
            if not array.size:
                body = "dense<>"
            else:
                def nested(part):
                    if part.ndim == 0:
                        return number(part)
                    return "[" + ", ".join(nested(p) for p in part) + "]"
                body = f"dense<{nested(array.astype(np.float64))}>"
        else:
            body = f"dense<{number(node.attributes['values'])}>"
        self._emit(value, f"arith.constant {body} : {self.program.type(value)}")

    def _elementwise(self, node):
        p, value, first = self.program, node.outputs[0], node.inputs[0]
        kind, form = p.type(value), node.attributes.get("form", "arith")
        if node.kind == "relu" and p.dynamic(value):
            form = "generic"  # no constant has an unknown extent
        names = [self.names[v] for v in node.inputs]
        source, target = p.values[first].element, p.values[value].element
        if node.kind == "cast":
            scalar = cast_op(source, target)
        elif node.kind == "relu":
            scalar = "maximumf"
            zero = self._new("z")
            if form == "arith":
                self.lines.append(f"{zero} = arith.constant dense<0.0> : {kind}")
        else:
            scalar = OPS[node.kind]
        dialect = "math" if scalar == "absf" else "arith"
        if form == "arith":
            if node.kind == "cast":
                self._emit(value, f"arith.{scalar} {names[0]} : {p.type(first)} to {kind}")
                return
            operands = [*names, zero] if node.kind == "relu" else names
            self._emit(value, f"{dialect}.{scalar} {', '.join(operands)} : {kind}")
            return
        if form == "named" and node.kind in (*BINARY, "neg", "abs"):
            empty = self._empty(value, node.inputs)
            name = {"neg": "negf", "maximum": "max"}.get(node.kind, node.kind)
            types = ", ".join(p.type(v) for v in node.inputs)
            self._emit(value, f"linalg.{name} ins({', '.join(names)} : {types}) "
                              f"outs({empty} : {kind}) -> {kind}")
            return
        empty = self._empty(value, node.inputs)
        rank = len(p.values[value].dims)
        loops = ", ".join(f"d{i}" for i in range(rank))

        def affine(axes):
            return f"affine_map<({loops}) -> ({', '.join(f'd{a}' for a in axes)})>"
        whole = affine(range(rank))
        maps = [whole] + ([affine(node.attributes.get("axes") or range(rank))]
                          if len(node.inputs) > 1 else []) + [whole]
        if node.attributes.get("axes") is not None:
            maps[1] = affine(node.attributes["axes"])
        iterators = ", ".join('"parallel"' for _ in range(rank))
        blocks = [f"%a: {source}"] + [f"%b: {source}"] * (len(node.inputs) - 1) + [f"%o: {target}"]
        if node.kind == "cast":
            body = f"%r = arith.{scalar} %a : {source} to {target}"
        elif node.kind == "relu":
            body = (f"%z = arith.constant 0.0 : {source}\n    "
                    f"%r = arith.maximumf %a, %z : {source}")
        else:
            args = "%a, %b" if len(node.inputs) > 1 else "%a"
            body = f"%r = {dialect}.{scalar} {args} : {source}"
        types = ", ".join(p.type(v) for v in node.inputs)
        self._emit(value, f"linalg.generic {{indexing_maps = [{', '.join(maps)}], "
                          f"iterator_types = [{iterators}]}} ins({', '.join(names)} : {types}) "
                          f"outs({empty} : {kind}) {{\n  ^bb0({', '.join(blocks)}):\n    {body}\n"
                          f"    linalg.yield %r : {target}\n  }} -> {kind}")

    def _transpose(self, node):
        p, value, source = self.program, node.outputs[0], node.inputs[0]
        empty = self._empty(value, node.inputs)
        self._emit(value, f"linalg.transpose ins({self.names[source]} : {p.type(source)}) "
                          f"outs({empty} : {p.type(value)}) permutation = "
                          f"{list(node.attributes['permutation'])}")

    def _broadcast(self, node):
        p, value, source = self.program, node.outputs[0], node.inputs[0]
        empty = self._empty(value, node.inputs)
        self._emit(value, f"linalg.broadcast ins({self.names[source]} : {p.type(source)}) "
                          f"outs({empty} : {p.type(value)}) dimensions = "
                          f"{list(node.attributes['dimensions'])}")

    def _collapse(self, node):
        p, value, source = self.program, node.outputs[0], node.inputs[0]
        groups = [list(g) for g in node.attributes["groups"]]
        self._emit(value, f"tensor.collapse_shape {self.names[source]} {groups} : "
                          f"{p.type(source)} into {p.type(value)}")

    def _expand(self, node):
        p, value, source = self.program, node.outputs[0], node.inputs[0]
        groups = [list(g) for g in node.attributes["groups"]]
        sizes = []
        for position, d in enumerate(p.values[value].dims):
            if not p.dims[d].dynamic:
                sizes.append(str(p.dims[d].extent))
                continue
            group = next(i for i, g in enumerate(groups) if position in g)
            sizes.append(self._extent(source, group))
        self._emit(value, f"tensor.expand_shape {self.names[source]} {groups} output_shape "
                          f"[{', '.join(sizes)}] : {p.type(source)} into {p.type(value)}")

    def _slice(self, node):
        p, value, source = self.program, node.outputs[0], node.inputs[0]
        sizes = [self._extent(source, i) if p.dims[d].dynamic else str(p.dims[d].extent)
                 for i, d in enumerate(p.values[value].dims)]
        self._emit(value, f"tensor.extract_slice {self.names[source]}"
                          f"{list(node.attributes['offsets'])} [{', '.join(sizes)}] "
                          f"{list(node.attributes['strides'])} : {p.type(source)} to "
                          f"{p.type(value)}")

    def _concat(self, node):
        p, value = self.program, node.outputs[0]
        types = ", ".join(p.type(v) for v in node.inputs)
        self._emit(value, f"tensor.concat dim({node.attributes['axis']}) "
                          f"{', '.join(self.names[v] for v in node.inputs)} : ({types}) -> "
                          f"{p.type(value)}")

    def _contraction(self, node, name):
        p, value = self.program, node.outputs[0]
        kind, element = p.type(value), p.values[value].element
        empty, zero = self._empty(value, node.inputs[:1]), self._new("z")
        self.lines.append(f"{zero} = arith.constant 0.0 : {element}")
        filled = self._new("f")
        self.lines.append(f"{filled} = linalg.fill ins({zero} : {element}) "
                          f"outs({empty} : {kind}) -> {kind}")
        names = ", ".join(self.names[v] for v in node.inputs)
        types = ", ".join(p.type(v) for v in node.inputs)
        self._emit(value, f"linalg.{name} ins({names} : {types}) outs({filled} : {kind}) "
                          f"-> {kind}")

    def _matmul(self, node):
        self._contraction(node, "matmul")

    def _conv(self, node):
        self._contraction(node, "conv_2d_nchw_fchw")

    def _norm(self, node):
        p = self.program
        call = call_of(p, node, [placeholder(p, v) for v in node.inputs])
        names = dict(zip(node.attributes["names"], (self.names[v] for v in node.inputs),
                         strict=True))
        if "momentum" in names:
            scalar = self._new("a")
            self.lines.append(f"{scalar} = tensor.extract {names['momentum']}[] : tensor<f32>")
            names["momentum"] = scalar
        text, types = operation_text(call, names)
        assert types == [p.type(v) for v in node.outputs], (types, text)
        group = f"%n{node.outputs[0]}"
        self.lines.append(f"{group}{f':{len(types)}' if len(types) > 1 else ''} = {text}")
        for i, value in enumerate(node.outputs):
            self.names[value] = f"{group}#{i}" if len(types) > 1 else group


def cast_op(source, target):
    """The arith op that converts, of types of different widths."""
    widths = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16}
    return "extf" if widths[target] > widths[source] else "truncf"


def constant_array(program, node):
    """What a dense constant holds, rounded to its type."""
    from norm.data import generator
    from norm.types import cast
    value, = node.outputs
    element, shape = float_type(program.values[value].element), program.shape(value)
    if node.attributes["values"] == "dense":
        rng = generator(f"const-{program.seed}-{value}")
        return cast(1 + 0.5 * rng.standard_normal(shape), element)
    return np.broadcast_to(cast(np.float64(node.attributes["values"]), element), shape)


__all__ = ["BINARY", "F32", "TYPES", "UNARY", "Dim", "Node", "NormSpec", "Program", "Value",
           "call_of", "case_of", "cast_op", "constant_array", "kept_dims", "leading",
           "placeholder"]
