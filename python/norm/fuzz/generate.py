"""Random programs from a seed: norms of every kind among elementwise ops and reshapes."""

import random
from dataclasses import replace

import numpy as np

from norm.cases import Case, call
from norm.fuzz.program import BINARY, UNARY, Dim, Node, Program, Value, kept_dims
from norm.program import RESULTS
from norm.reference import ALGEBRA, BACKWARD, CENTRED, FORWARD, NormSpec
from norm.types import float_type

EXTENTS = (1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 33)
LARGEST = 700  # elements of a value
WIDTHS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16}
TYPES = ("f32", "f32", "f32", "f64", "f16", "bf16", "bf16")
PLACEMENTS = ("inside_sqrt", "inside_sqrt", "outside_sqrt", "max_inside", "max_outside", "none")
EPSILONS = (1e-5, 1e-5, 1e-6, 0.25, 0.3, 2.0, 1e-12, 0.0)
# Values of constants that rewrites look for, and others.
SPLATS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -4.0, 3.0, 0.1, 1.5)
ROWS = ("x", "y", "sum", "residual", "dy", "dx", "dsum", "mask")  # of x's shape
PARAMETERS = ("scale", "shift", "dscale", "dshift")


def generate(seed, norms=None, depth=2):
    """norms: how many; drawn if None. depth: of what comes before and after them."""
    return Generator(seed).run(norms, depth)


class Generator:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.program = Program(seed)
        self.unknown = self.rng.random() < 0.3  # whether there are unknown extents
        self.kept = set()  # values that are returned
        self.keys = 0

    def chance(self, share):
        return self.rng.random() < share

    def run(self, norms, depth):
        count = norms or self.rng.choice((1, 1, 1, 1, 2, 2, 3))
        for _ in range(count):
            forwards = [n for n in self.program.norms()
                        if n.attributes["case"]["op"] in FORWARD[:-1] + ("l2_norm",)]
            if forwards and self.chance(0.15):
                self.add_backward(self.rng.choice(forwards), depth)
            else:
                self.add_norm(depth)
        p = self.program
        p.returned = [v for node in p.nodes for v in node.outputs if v in self.kept]
        prune(p)
        self.add_versions()
        return p

    def add_versions(self):
        """For the extents that the program has, and for some of them."""
        # Drawn apart, so that a seed means what it did without them.
        rng, p = random.Random(self.program.seed ^ 0xface), self.program
        dynamic = [i for i, d in enumerate(p.dims) if d.dynamic]
        # Extents of 0 and 1, and groups of one element, may be forbidden where they are static.
        plain = all(p.dims[d].extent > 1 for d in dynamic) and not any(
            n.attributes["case"]["options"].get("correction") for n in p.norms())
        if dynamic and plain and rng.random() < 0.5:
            some = rng.sample(dynamic, rng.randrange(len(dynamic)))
            p.versions = [some, dynamic] if some and rng.random() < 0.5 else [dynamic]

    # ---- values -------------------------------------------------------------

    def dim(self, extent=None, dynamic=False, multiple=1):
        p = self.program
        p.dims.append(Dim(self.rng.choice(EXTENTS) if extent is None else extent, dynamic,
                          multiple))
        return len(p.dims) - 1

    def node(self, kind, inputs, types, **attributes):
        """types: (dims, element) of each result."""
        p = self.program
        outputs = []
        for dims, element in types:
            p.values.append(Value(tuple(dims), element))
            outputs.append(len(p.values) - 1)
        p.nodes.append(Node(kind, tuple(inputs), tuple(outputs), attributes))
        return outputs

    def one(self, kind, inputs, dims, element, **attributes):
        return self.node(kind, inputs, [(dims, element)], **attributes)[0]

    def fixed(self, dims):
        return not any(self.program.dims[d].dynamic for d in dims)

    def size(self, dims):
        return int(np.prod([self.program.dims[d].extent for d in dims], dtype=np.int64))

    def leaf(self, dims, element, constants=True):
        if constants and self.fixed(dims) and self.chance(0.4):
            return self.constant(dims, element)
        data = self.rng.choice(("normal", "normal", "levels", "regime"))
        return self.one("arg", (), dims, element, data=data)

    def constant(self, dims, element):
        values = "dense" if self.chance(0.35) and self.size(dims) <= 100 else \
            self.rng.choice(SPLATS)
        return self.one("const", (), dims, element, values=values)

    def form(self):
        return self.rng.choice(("arith", "generic", "named"))

    def make(self, dims, element, depth):
        """A value of these dims and element type."""
        if depth <= 0 or self.chance(0.35):
            return self.leaf(dims, element, constants=depth < 2 and self.chance(0.3))
        rank, rng = len(dims), self.rng
        choices = ["binary"] * 4 + ["unary", "cast"]
        if rank > 1:
            choices += ["transpose", "collapse", "broadcast"]
        if rank:
            choices += ["expand", "slice", "concat"]
        if rank in (2, 4) and self.fixed(dims[1:]) and self.size(dims):
            choices += ["contraction"]
        kind = rng.choice(choices)
        if kind == "contraction":
            return self.from_contraction(dims, element, depth)
        if kind == "binary":
            return self.binary(self.make(dims, element, depth - 1), depth)
        if kind == "unary":
            return self.unary(self.make(dims, element, depth - 1))
        if kind == "cast":
            other = rng.choice([t for t in WIDTHS if WIDTHS[t] != WIDTHS[element]])
            return self.one("cast", (self.make(dims, other, depth - 1),), dims, element,
                            form=self.form())
        if kind == "transpose":
            permutation = list(range(rank))
            rng.shuffle(permutation)
            inner = [0] * rank
            for i, axis in enumerate(permutation):
                inner[axis] = dims[i]
            return self.one("transpose", (self.make(inner, element, depth - 1),), dims, element,
                            permutation=permutation)
        if kind == "broadcast":
            axis = rng.randrange(rank)
            if self.program.dims[dims[axis]].dynamic:
                return self.leaf(dims, element)
            inner = [d for i, d in enumerate(dims) if i != axis]
            return self.one("broadcast", (self.make(inner, element, depth - 1),), dims, element,
                            dimensions=[axis])
        if kind == "collapse":
            return self.from_expanded(dims, element, depth)
        if kind == "expand":
            return self.from_collapsed(dims, element, depth)
        if kind == "slice":
            return self.from_slice(dims, element, depth)
        return self.from_parts(dims, element, depth)

    def static_axis(self, dims):
        axes = [i for i, d in enumerate(dims) if not self.program.dims[d].dynamic]
        return self.rng.choice(axes) if axes else None

    def from_expanded(self, dims, element, depth):
        """A collapse_shape: one static dim comes from two."""
        axis = self.static_axis(dims)
        if axis is None:
            return self.leaf(dims, element)
        extent = self.program.dims[dims[axis]].extent
        divisors = [d for d in range(1, extent + 1) if extent % d == 0] or [1]
        first = self.rng.choice(divisors)
        pair = [self.dim(first), self.dim(extent // first)]
        inner = [*dims[:axis], *pair, *dims[axis + 1:]]
        groups = [[i + (i > axis)] if i != axis else [i, i + 1] for i in range(len(dims))]
        return self.one("collapse", (self.make(inner, element, depth - 1),), dims, element,
                        groups=groups)

    def from_collapsed(self, dims, element, depth):
        """An expand_shape: two neighbouring static dims come from one."""
        pairs = [i for i in range(len(dims) - 1) if self.fixed(dims[i:i + 2])]
        if not pairs:
            return self.leaf(dims, element)
        axis = self.rng.choice(pairs)
        merged = self.dim(self.size(dims[axis:axis + 2]))
        inner = [*dims[:axis], merged, *dims[axis + 2:]]
        groups = [[i + (i > axis)] if i != axis else [i, i + 1] for i in range(len(inner))]
        return self.one("expand", (self.make(inner, element, depth - 1),), dims, element,
                        groups=groups)

    def from_slice(self, dims, element, depth):
        axis = self.static_axis(dims)
        if axis is None or not self.size(dims):
            return self.leaf(dims, element)
        stride, offset = self.rng.choice((1, 1, 2)), self.rng.randrange(3)
        extent = self.program.dims[dims[axis]].extent
        inner = list(dims)
        inner[axis] = self.dim(offset + max(0, (extent - 1) * stride + 1) + self.rng.randrange(2))
        place = dict(offsets=[0] * len(dims), strides=[1] * len(dims))
        place["offsets"][axis], place["strides"][axis] = offset, stride
        if self.size(inner) > 3 * LARGEST:
            return self.leaf(dims, element)
        return self.one("slice", (self.make(inner, element, depth - 1),), dims, element, **place)

    def from_parts(self, dims, element, depth):
        axis = self.static_axis(dims)
        extent = 0 if axis is None else self.program.dims[dims[axis]].extent
        if extent < 2:
            return self.leaf(dims, element)
        first = self.rng.randrange(1, extent)
        parts = []
        for length in (first, extent - first):
            inner = list(dims)
            inner[axis] = self.dim(length)
            parts.append(self.make(inner, element, depth - 1))
        return self.one("concat", parts, dims, element, axis=axis)

    def from_contraction(self, dims, element, depth):
        """A matmul or convolution by a constant."""
        if len(dims) == 2:
            inner = self.dim(self.rng.choice((1, 2, 3, 5, 8)))
            source, weight = [dims[0], inner], [inner, dims[1]]
            kind = "matmul"
        else:
            channels, window = self.dim(self.rng.choice((1, 2, 3))), self.rng.choice((1, 1, 2))
            height, width = (self.dim(self.program.dims[d].extent + window - 1)
                             for d in dims[2:])
            source = [dims[0], channels, height, width]
            weight = [dims[1], channels, self.dim(window), self.dim(window)]
            kind = "conv"
        value = self.make(source, element, depth - 1)
        weight = self.one("const", (), weight, element, values="dense")
        found = self.one(kind, (value, weight), dims, element)
        self.kept.add(found)  # what follows is held against what it really gave
        return found

    def contraction(self, value):
        """What takes a norm's result as its last step, if it can."""
        p = self.program
        dims, element = p.values[value].dims, p.values[value].element
        if not self.size(dims) or not self.fixed(dims[1:]):
            return value
        if len(dims) == 2:
            columns = self.dim(self.rng.choice((1, 2, 3, 5)))
            weight, result, kind = [dims[1], columns], [dims[0], columns], "matmul"
        elif len(dims) == 4:
            features = self.dim(self.rng.choice((1, 2, 3)))
            weight = [features, dims[1], self.dim(1), self.dim(1)]
            result, kind = [dims[0], features, *dims[2:]], "conv"
        else:
            return value
        weight = self.one("const", (), weight, element, values="dense")
        return self.one(kind, (value, weight), result, element)

    def binary(self, value, depth=1):
        p, rng = self.program, self.rng
        dims, element = p.values[value].dims, p.values[value].element
        kind = rng.choice(("add", "add", "mul", "mul", "sub", "maximum"))
        if len(set(dims)) == len(dims) and len(dims) > 0 and self.chance(0.3):
            axes = sorted(rng.sample(range(len(dims)), rng.randrange(len(dims))))
            other = self.leaf([dims[a] for a in axes], element)
            return self.one(kind, (value, other), dims, element, form="generic", axes=axes)
        other = self.make(dims, element, depth - 1) if self.chance(0.4) else \
            self.leaf(dims, element)
        pair = (value, other) if self.chance(0.7) or kind == "sub" else (other, value)
        return self.one(kind, pair, dims, element, form=self.form())

    def unary(self, value):
        p = self.program
        return self.one(self.rng.choice(UNARY), (value,), p.values[value].dims,
                        p.values[value].element, form=self.form())

    # ---- after a norm -------------------------------------------------------

    def after(self, value, depth):
        """A chain of consumers; returns its end."""
        p, rng = self.program, self.rng
        for _ in range(rng.randrange(depth + 1)):
            dims, element = p.values[value].dims, p.values[value].element
            kind = rng.choice(("binary", "binary", "unary", "cast", "transpose", "slice",
                               "collapse", "contraction"))
            if kind == "contraction":
                end = self.contraction(value)
                if end != value:
                    return end
            elif kind == "binary":
                value = self.binary(value)
            elif kind == "unary":
                value = self.unary(value)
            elif kind == "cast":
                other = rng.choice([t for t in WIDTHS if WIDTHS[t] != WIDTHS[element]])
                value = self.one("cast", (value,), dims, other, form=self.form())
            elif kind == "transpose" and len(dims) > 1:
                permutation = list(range(len(dims)))
                rng.shuffle(permutation)
                value = self.one("transpose", (value,), [dims[a] for a in permutation], element,
                                 permutation=permutation)
            elif kind == "slice" and (axis := self.static_axis(dims)) is not None:
                extent = p.dims[dims[axis]].extent
                if extent < 2 or not self.size(dims):
                    continue
                offset = rng.randrange(extent)
                inner = list(dims)
                inner[axis] = self.dim(rng.randrange(1, extent - offset + 1))
                offsets = [offset if i == axis else 0 for i in range(len(dims))]
                value = self.one("slice", (value,), inner, element, offsets=offsets,
                                 strides=[1] * len(dims))
            elif kind == "collapse":
                pairs = [i for i in range(len(dims) - 1) if self.fixed(dims[i:i + 2])]
                if not pairs:
                    continue
                axis = rng.choice(pairs)
                merged = self.dim(self.size(dims[axis:axis + 2]))
                inner = [*dims[:axis], merged, *dims[axis + 2:]]
                groups = [[i + (i > axis)] if i != axis else [i, i + 1]
                          for i in range(len(inner))]
                value = self.one("collapse", (value,), inner, element, groups=groups)
        return value

    # ---- norms --------------------------------------------------------------

    def new_dims(self, rank):
        p, rng = self.program, self.rng
        dims = [self.dim() for _ in range(rank)]
        if rank and self.chance(0.03):
            p.dims[rng.choice(dims)].extent = 0
        while self.size(dims) > LARGEST:
            d = max(dims, key=lambda d: p.dims[d].extent)
            p.dims[d].extent = rng.randrange(1, 1 + p.dims[d].extent // 2)
        if self.unknown:
            share = rng.choice((0.3, 0.6, 1.0))
            for d in dims:
                p.dims[d].dynamic = self.chance(share)
        return dims

    def add_norm(self, depth):
        p, rng = self.program, self.rng
        sources = [v for node in p.nodes for v in node.outputs
                   if p.values[v].element in WIDTHS and p.values[v].dims and
                   node.kind != "const" and self.size(p.values[v].dims) <= LARGEST]
        x = rng.choice(sources) if sources and self.chance(0.45) else None
        if x is not None:
            dims, element = p.values[x].dims, p.values[x].element
            if self.chance(0.85) and p.producer(x).kind != "arg":
                self.kept.add(x)
        else:
            dims, element = None, rng.choice(TYPES)
        case = None
        while case is None:
            kind = rng.choice(FORWARD + FORWARD + BACKWARD + ALGEBRA)
            if x is not None and kind in ("combine_moments", "rstd", "update_running"):
                kind = "layer_norm"
            if dims is None:
                dims = self.new_dims(rng.choice((1, 2, 2, 2, 3, 3, 4, 5)))
            case = self.draw_case(kind, dims, element)
        self.emit(case, dims, x, depth)

    def add_backward(self, forward, depth):
        """The gradient of a norm that is there, with what it saved."""
        p, rng = self.program, self.rng
        names = forward.attributes["names"]
        operands = dict(zip(names, forward.inputs, strict=True))
        fields = forward.attributes["case"]
        if "residual" in operands and "sum" not in fields["results"]:
            return self.add_norm(depth)
        options = {k: v for k, v in fields["options"].items()
                   if k not in ("momentum", "running_correction", "sum", "sum_rounding")}
        letters = "".join(c for c, name in (("g", "scale"),) if name in operands)
        saved = dict(zip(ordered(fields["op"], fields["results"]), forward.outputs,
                         strict=True))
        given = {"x": saved.get("sum", operands["x"])}
        if "scale" in operands:
            given["scale"] = operands["scale"]
        for name, letter in (("mean", "m"), ("variance", "v"), ("rstd", "i")):
            source = operands.get(name) if fields["op"] == "batch_norm_inference" else \
                saved.get(name)
            if source is not None and (self.chance(0.8) or name in operands):
                given[name] = source
                letters += letter
                if p.producer(source).kind == "norm" and self.chance(0.9):
                    self.kept.add(source)
        if "sum" in saved:
            self.kept.add(saved["sum"])
        if "result" in options:
            del options["result"]
        x = given["x"]
        element = p.values[x].element
        if options.get("affine_in") == "result" or element != fields["type"]:
            return self.add_norm(depth)
        if "residual" in operands:
            # The sum alone need not have the compute type of both.
            wide = max((element, p.values[operands["residual"]].element, "f32"),
                       key=WIDTHS.get)
            options.setdefault("compute", wide)
            if WIDTHS[options["compute"]] == WIDTHS[element] and options["compute"] != element:
                return self.add_norm(depth)
        results = rng.choice((("dx",), ("dx", "dscale"), ("dx", "dshift"),
                              ("dx", "dscale", "dshift")))
        if fields["op"] == "instance_norm" and "affine_axes" not in options:
            results = ("dx",)
        if not {"dscale", "dshift"} & set(results) and "g" not in letters:
            options.pop("affine_axes", None)
        case = Case(name="", op=f"{fields['op']}_backward", shape=p.shape(x),
                    axes=tuple(fields["axes"]), type=element, options=options, operands=letters,
                    parameter_type=fields.get("parameter_type", ""), results=results)
        self.emit(case, p.values[x].dims, x, depth, given)

    def draw_case(self, kind, dims, element):
        """A `Case` that verifies, or None if there is none on these dims."""
        p, rng = self.program, self.rng
        rank = len(dims)
        axes = rng.sample(range(rank), rng.randrange(1, rank + 1))
        if self.chance(0.5):
            axes = list(range(rank - rng.randrange(1, rank + 1), rank))
        norm = kind.removesuffix("_backward")
        options, operands = {}, set()
        forward, backward = kind in FORWARD, kind in BACKWARD
        placement = rng.choice(PLACEMENTS)
        epsilon = rng.choice(EPSILONS)
        if norm == "l2_norm" and self.chance(0.5):
            epsilon = 20.0
        if placement.startswith("max") and epsilon == 0:
            epsilon = 0.25
        if not (kind in ALGEBRA and kind not in ("rstd", "backward_normalize")):
            options["placement"] = placement
            if placement != "none":
                options["epsilon"] = epsilon
        if kind in ("combine_moments", "rstd", "update_running"):
            axes = []
        if norm == "group_norm" and not self.draw_groups(dims, axes, options):
            return None
        compute = self.draw_compute(element)
        if compute:
            options["compute"] = compute
        if self.chance(0.15) and kind != "backward_normalize":
            options["zero_policy"] = "zero"
        if kind in ALGEBRA and kind != "rstd":
            options.pop("zero_policy", None)
        for letter in ("g", "b"):
            if self.chance(0.6):
                operands.add(letter)
        if backward or kind in ("backward_moments", "backward_normalize"):
            operands.discard("b")
        if kind in ("moments", "combine_moments", "rstd", "update_running"):
            operands.clear()
        fields = dict(name="", op=kind, shape=tuple(p.dims[d].extent for d in dims), type=element,
                      axes=tuple(a - rank if self.chance(0.2) else a for a in axes))
        results = {"y"}
        make = self.forward if forward else self.backward if backward else self.algebra
        results = make(kind, fields, options, operands, axes, dims)
        if results is None:
            return None
        takes = operands & {"g", "b"} or {"dscale", "dshift"} & set(results)
        if takes and (norm == "instance_norm" or self.chance(0.35)) and rank:
            count = rng.randrange(0 if self.chance(0.1) else 1, rank + 1)
            options["affine_axes"] = tuple(sorted(rng.sample(range(rank), count)))
        if "g" in operands and self.chance(0.25):
            options["scale_offset"] = rng.choice((1.0, 1.0, -0.75, 0.5))
        if self.chance(0.3) and (operands & {"g", "b"} or backward):
            fields["parameter_type"] = rng.choice(TYPES)
        if kind in (*FORWARD, *BACKWARD, "normalize", "backward_moments") and self.chance(0.15):
            if self.may_round(element, options, backward):
                options["affine_in"] = "result"
        return Case(**fields, options=options, operands="".join(sorted(operands)),
                    results=tuple(results))

    @staticmethod
    def may_round(element, options, backward):
        result = options.get("result", element)
        return result == element or (not backward and WIDTHS[result] > WIDTHS[element])

    def draw_groups(self, dims, axes, options):
        p, rng = self.program, self.rng
        if len(axes) < 1:
            return False
        channel = rng.choice(axes)
        extent = p.dims[dims[channel]].extent
        divisors = [g for g in range(1, max(extent, 3) + 1) if extent % g == 0]
        groups = rng.choice(divisors)
        dim = p.dims[dims[channel]]
        if dim.dynamic:
            dim.multiple = int(np.lcm(dim.multiple, groups))
        options.update(groups=groups,
                       channel_axis=channel - len(dims) if self.chance(0.2) else channel)
        return True

    def draw_compute(self, element):
        if self.chance(0.75):
            return None
        allowed = [t for t in WIDTHS if t == element or WIDTHS[t] != WIDTHS[element]]
        return self.rng.choice(allowed)

    def count(self, kind, options, dims, axes):
        """Static number of reduced elements, or None."""
        spec = NormSpec(kind=kind, axes=tuple(axes), **{
            k: options[k] for k in ("groups", "channel_axis") if k in options})
        if not self.fixed([dims[a] for a in axes]):
            return None
        view, _, reduced = spec.view(tuple(self.program.dims[d].extent for d in dims))
        return int(np.prod([view[a] for a in reduced], dtype=np.int64))

    def correct(self, kind, options, dims, axes):
        """correction 1 where more than one element is reduced."""
        if kind.removesuffix("_backward") not in CENTRED or "batch_norm_inference" in kind:
            return
        count = self.count(kind, options, dims, axes)
        if self.chance(0.15) and count != 1:
            options["correction"] = 1

    def forward(self, kind, fields, options, operands, axes, dims):
        rng = self.rng
        results = ["y"]
        inference = kind == "batch_norm_inference"
        if kind == "batch_norm_training" and self.count(kind, options, dims, axes) == 1:
            return None
        self.correct(kind, options, dims, axes)
        if self.chance(0.15):
            options["result"] = rng.choice(tuple(WIDTHS))
        if self.chance(0.25):
            operands.add("r")
            if self.chance(0.3):
                fields["residual_type"] = rng.choice(TYPES)
            if self.chance(0.5):
                results.append("sum")
                if self.chance(0.25):
                    options["sum"] = rng.choice(tuple(WIDTHS))
            if self.chance(0.3):
                options["sum_rounding"] = "compute"
        if not inference:
            for name in ("mean", "variance", "rstd"):
                if self.chance(0.3) and (name != "mean" or kind in CENTRED):
                    results.append(name)
        if kind == "batch_norm_training" and self.chance(0.4):
            operands.add("u")
            results += ["running_mean", "running_variance"]
            if self.chance(0.3):
                operands.add("a")
            else:
                options["momentum"] = rng.choice((0.1, 1.0, 0.0, 0.5))
            if self.chance(0.3):
                options["running_correction"] = 0
            if self.chance(0.3):
                fields["running_type"] = rng.choice(TYPES)
        return results

    def backward(self, kind, fields, options, operands, axes, dims):
        self.correct(kind, options, dims, axes)
        norm = kind.removesuffix("_backward")
        rng = self.rng
        results = rng.choice((("dx",), ("dx", "dscale", "dshift"), ("dx", "dscale"),
                              ("dx", "dshift")))
        for letter, share in (("d", 0.25), ("m", 0.4), ("v", 0.4), ("i", 0.4), ("r", 0.15)):
            if self.chance(share):
                operands.add(letter)
        if norm in ("rms_norm", "l2_norm"):
            operands.discard("m")
        if norm == "batch_norm_inference":
            operands.add("m")
            if "i" not in operands:
                operands.add("v")
        if norm == "batch_norm_training" and self.count(kind, options, dims, axes) == 1:
            return None
        if "r" in operands:
            options["sum_rounding"] = "compute"
            if self.chance(0.3):
                fields["residual_type"] = rng.choice(TYPES)
        if self.chance(0.3):
            fields["dy_type"] = rng.choice(TYPES)
        if self.chance(0.15):
            options["result"] = rng.choice(tuple(WIDTHS))
        if len(results) > 1 and self.chance(0.2):
            options["gradients"] = rng.choice(tuple(WIDTHS))
        return results

    def algebra(self, kind, fields, options, operands, axes, dims):
        rng, rank = self.rng, len(dims)
        compute = options.get("compute")
        if compute and WIDTHS[compute] < 32:
            # Statistics in narrow types only come from named norms.
            del options["compute"]
        if self.chance(0.3):
            options["statistics"] = "f64"
        if kind in ("moments", "backward_moments", "backward_normalize") and self.chance(0.3):
            operands.add("k")
        if kind == "moments":
            options["about"] = rng.choice(("mean", "zero"))
            names = ["count", "mean", "m2"]
            found = [n for n in names if self.chance(0.6)] or ["m2"]
            if options["about"] == "zero":
                found = [n for n in found if n != "mean"] or ["m2"]
            return found
        if kind in ("combine_moments", "rstd", "update_running"):
            fields["type"] = rng.choice(("f64", "f32"))
            fields["axes"] = ()
            options.pop("compute", None)
            if rank == 0:
                return None
        if kind == "combine_moments":
            if self.program.dims[dims[0]].extent > 40:
                return None
            if self.chance(0.7):
                operands.add("m")
            names = ["count", "m2"] + (["mean"] if "m" in operands else [])
            return [n for n in names if self.chance(0.7)] or ["m2"]
        if kind == "rstd":
            if self.chance(0.7):
                operands.add("n")
                if self.chance(0.3):
                    options["correction"] = 1
            if fields["type"] == "f64" and self.chance(0.3):
                options["compute"] = "f32"
            return ["rstd", "variance"] if self.chance(0.5) else ["rstd"]
        if kind == "update_running":
            options["statistic"] = rng.choice(("mean", "variance"))
            if options["statistic"] == "variance" and self.chance(0.4):
                options["running_correction"] = 0
            options.pop("statistics", None)
            if self.chance(0.3):
                operands.add("a")
            else:
                options["momentum"] = rng.choice((0.1, 1.0, 0.0))
            if self.chance(0.3):
                fields["running_type"] = rng.choice(TYPES)
            return ["updated"]
        operands.add("n")
        if self.chance(0.6):
            operands.add("m")
        if kind == "normalize":
            if self.chance(0.15):
                options["result"] = rng.choice(tuple(WIDTHS))
            return ["y"]
        if self.chance(0.3):
            fields["dy_type"] = rng.choice(TYPES)
        if kind == "backward_moments":
            if self.chance(0.2):
                options["gradients"] = rng.choice(tuple(WIDTHS))
            names = ["sum_g", "sum_gx", "dscale", "dshift"]
            return [n for n in names if self.chance(0.6)] or ["sum_gx"]
        if self.chance(0.4) or options["placement"] not in ("inside_sqrt", "none"):
            operands.add("v")
        if self.chance(0.25):
            options["correction"] = 1
        if self.chance(0.3) and not options.get("correction"):
            operands.discard("n")
        if self.chance(0.15):
            options["result"] = rng.choice(tuple(WIDTHS))
        return ["dx"]

    # ---- a case as a node ---------------------------------------------------

    def emit(self, case, dims, x, depth, given=None):
        given = dict(given or {})
        spec = case.spec()
        # Of the smallest shape that has the same operands and types.
        tiny = [1] * len(dims)
        if spec.groups is not None:
            tiny[spec.channel_axis] = spec.groups
        if spec.kind == "batch_norm_training" or case.options.get("correction"):
            tiny = [max(2, n) for n in tiny]
            if spec.groups is not None:
                tiny[spec.channel_axis] = 2 * spec.groups
        made = call(replace(case, shape=tuple(tiny), name="tiny"))
        key = self.keys
        self.keys += 1
        names, inputs = [], []
        first = {"combine_moments": "m2", "rstd": "m2", "update_running": "old"}.get(
            spec.kind, "x")
        for name, array in made.operands().items():
            element = {np.dtype(np.int64): "i64", np.dtype(np.bool_): "i1"}.get(array.dtype)
            element = element or float_type(array.dtype).name
            value = given.get(name)
            where = self.dims_of(name, spec, dims, first)
            if value is None and name == first and x is not None:
                value = x
            if value is None:
                value = self.operand(name, where, element, key, depth)
            names.append(name)
            inputs.append(value)
        fields = {k: getattr(case, k) for k in (
            "op", "axes", "type", "options", "operands", "residual_type", "parameter_type",
            "running_type", "dy_type", "results")}
        types = []
        made.results = tuple(case.results)
        for name, (_, element) in zip(made.ordered_results(), made.result_types(), strict=True):
            where = self.dims_of(name, spec, dims, first, result=True)
            types.append((where, element if element == "i64" else float_type(element).name))
        outputs = self.node("norm", inputs, types, names=names, case=fields, key=key)
        for name, value in zip(made.ordered_results(), outputs, strict=True):
            if name in ("y", "dx", "updated"):
                end = self.after(value, depth)
                self.kept.add(end)
                if end != value and self.chance(0.7):
                    self.kept.add(value)
            elif self.chance(0.8):
                self.kept.add(value)
        if not self.kept & set(outputs) and len(outputs) and made.ordered_results()[0] not in (
                "y", "dx", "updated"):
            self.kept.add(outputs[0])

    def dims_of(self, name, spec, dims, first, result=False):
        if name == "momentum":
            return ()
        rank = len(dims)
        if not result and name == first or name in ROWS or \
                spec.kind in ("rstd", "update_running"):
            return tuple(dims)
        if name in PARAMETERS:
            return tuple(dims[a] for a in spec.affine(rank))
        if spec.kind == "combine_moments":
            return tuple(dims[1:] if result else dims)
        if spec.norm == "group_norm":
            channel = spec.channel_axis % rank
            axes = sorted((*spec.kept(rank), channel))
            return tuple(self.groups_dim(spec.groups) if a == channel else dims[a] for a in axes)
        return tuple(dims[a] for a in spec.kept(rank))

    def groups_dim(self, groups):
        """One dim of each number of groups, so that saved statistics fit gradients."""
        if not hasattr(self, "group_dims"):
            self.group_dims = {}
        if groups not in self.group_dims:
            self.group_dims[groups] = self.dim(groups)
        return self.group_dims[groups]

    def operand(self, name, dims, element, key, depth):
        """x, residual and dy may be computed, parameters may be constants."""
        p, rng = self.program, self.rng
        if name in ("x", "residual", "dy", "dsum") and self.chance(0.55):
            same = [v for node in p.nodes for v in node.outputs
                    if p.values[v].dims == tuple(dims) and p.values[v].element == element]
            if same and name != "x" and self.chance(0.3):
                value = rng.choice(same)
                if p.producer(value).kind != "arg" and self.chance(0.85):
                    self.kept.add(value)
                return value
            return self.make(dims, element, depth)
        if name in ("scale", "shift") and self.chance(0.5) and self.fixed(dims):
            return self.constant(dims, element)
        if name == "variance" and self.chance(0.4) and self.fixed(dims):
            return self.one("const", (), dims, element, values=rng.choice((1.0, 0.5, 2.0, 0.25)))
        if name == "mean" and self.chance(0.4) and self.fixed(dims):
            return self.constant(dims, element)
        if name == "residual" and self.chance(0.15) and self.fixed(dims):
            return self.constant(dims, element)
        return self.one("arg", (), dims, element, of=key, name=name)


def ordered(kind, results):
    return [name for name in RESULTS[kind] if name in results]


def prune(program):
    """Drops what no result needs."""
    needed = set(program.returned)
    for node in reversed(program.nodes):
        if needed & set(node.outputs):
            needed |= set(node.inputs)
    program.nodes = [node for node in program.nodes if needed & set(node.outputs)]
    for node in program.nodes:
        needed |= set(node.outputs)
    return renumber(program)


def renumber(program):
    """Values and dims without gaps, in the order of their nodes."""
    values, dims = {}, {}
    for node in program.nodes:
        for v in node.outputs:
            values[v] = len(values)
            for d in program.values[v].dims:
                dims.setdefault(d, len(dims))
    old_values, old_dims = program.values, program.dims
    program.values = [Value(tuple(dims[d] for d in old_values[v].dims), old_values[v].element)
                      for v in values]
    program.dims = [old_dims[d] for d in dims]
    program.versions = [[dims[d] for d in known if d in dims] for known in program.versions]
    program.nodes = [Node(n.kind, tuple(values[v] for v in n.inputs),
                          tuple(values[v] for v in n.outputs), n.attributes)
                     for n in program.nodes]
    program.returned = [values[v] for v in program.returned]
    return program


__all__ = ["BINARY", "generate", "kept_dims", "prune", "renumber"]
