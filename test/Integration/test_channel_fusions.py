"""What stands around channel norms in a network, computed in their sweeps: batch norm, addition
and ReLU; group norm and SiLU; gradients through a ReLU, by its result, by a mask of bits, or by
computing again what went into it. The bits are those of the parts one after another, for any
number of threads, and nothing of a slab's size is allocated."""

import numpy as np
import pytest
from norm.compiled import Compiled
from norm.data import draw, generator
from norm.golden import same_bits
from norm.types import float_type, widen

# name -> x's shape, its channel axis
LAYOUTS = {"nchw": ((8, 12, 27, 27), 1), "images": ((43, 12, 14, 14), 1),
           "nhwc": ((8, 27, 27, 33), 3)}
GROUPS = 3


class Body:
    """A function of tensors: x, r and dz of x's shape, its mask, the rest per channel."""

    def __init__(self, layout, element, dynamic):
        self.shape, self.channel = LAYOUTS[layout]
        self.element, self.dynamic = element, dynamic
        self.full, self.mask = self.tensor(self.shape, element), self.tensor(self.shape, "i1")
        channels = self.shape[self.channel:self.channel + 1]
        self.vector = self.tensor(channels, element)
        self.statistic = self.tensor(channels, "f32")
        self.axes = [axis for axis in range(4) if axis != self.channel]
        self.lines = []

    def tensor(self, shape, element):
        dims = ["?"] * len(shape) if self.dynamic else shape
        return f"tensor<{''.join(f'{n}x' for n in dims)}{element}>"

    def elementwise(self, result, inputs, code):
        """`code` on scalars %u, %v, ..; %{result} holds what it calls %t."""
        channel = "abcd"[self.channel]
        maps = [f"affine_map<(a, b, c, d) -> ({channel if name in 'gbmi' else 'a, b, c, d'})>"
                for name in (*inputs, result)]
        parallel = ", ".join(['"parallel"'] * 4)
        found = [self.type(name) for name in inputs]
        scalars = ", ".join(f"%{n}: {kind[:-1].rsplit('x')[-1]}"
                            for n, kind in zip("uvwpqhj", found, strict=False))
        types = ", ".join(found)
        self.lines.append(
            f"%{result} = linalg.generic {{indexing_maps = [{', '.join(maps)}], "
            f"iterator_types = [{parallel}]}} ins({', '.join('%' + name for name in inputs)} : "
            f"{types}) outs(%e : {self.full}) {{\n"
            f"^bb0({scalars}, %o: {self.element}):\n{code.replace('T', self.element)}\n"
            f"linalg.yield %t : {self.element} }} -> {self.full}")

    def type(self, name):
        if name in ("g", "b", "dg", "db"):
            return self.vector
        if name in ("m", "i", "mean", "rstd"):
            return self.statistic
        return self.mask if name == "mask" else self.full

    def norm(self, text):
        """An op on x's type, with the types of parameters and statistics filled in."""
        for name in "gbmi":
            text = text.replace(f"%{name})", f"%{name} : {self.type(name)})")
        self.lines.append(text)

    def batch(self):
        f, s = self.full, self.statistic
        self.norm(f"%y, %mean, %rstd = norm.batch_norm_training %x scale(%g) shift(%b) axes "
                  f"{self.axes} epsilon inside_sqrt 1.0e-5 : {f} -> {f} mean({s}) rstd({s})")
        return ["y", "mean", "rstd"]

    def batch_add_relu(self):
        _, *statistics = self.batch()
        self.elementwise("z", ["y", "r"], """%zero = arith.constant 0.0 : T
%s = arith.addf %u, %v : T
%t = arith.maximumf %s, %zero : T""")
        return ["z", *statistics]

    def group(self):
        self.norm(f"%y = norm.group_norm %x scale(%g) shift(%b) groups {GROUPS} channel_axis "
                  f"{self.channel} axes [1, 2, 3] epsilon inside_sqrt 1.0e-5 : "
                  f"{self.full} -> {self.full}")
        return ["y"]

    def group_silu(self):
        self.group()
        self.elementwise("z", ["y"], """%one = arith.constant 1.0 : T
%n = arith.negf %u : T
%p = math.exp %n : T
%d = arith.addf %p, %one : T
%t = arith.divf %u, %d : T""")
        return ["z"]

    def backward(self, dy="dz"):
        f, v = self.full, self.vector
        self.norm(f"%dx, %dg, %db = norm.batch_norm_training_backward %{dy}, %x mean(%m) rstd(%i) "
                  f"scale(%g) axes {self.axes} epsilon inside_sqrt 1.0e-5 : {f}, {f} -> {f} "
                  f"dscale({v}) dshift({v})")
        return ["dx", "dg", "db"]

    def backward_result(self):
        """r stands for what the ReLU gave."""
        self.elementwise("dy", ["r", "dz"], """%zero = arith.constant 0.0 : T
%k = arith.cmpf ogt, %u, %zero : T
%t = arith.select %k, %v, %zero : T""")
        return self.backward("dy")

    def backward_mask(self):
        self.elementwise("dy", ["mask", "dz"], """%zero = arith.constant 0.0 : T
%t = arith.select %u, %v, %zero : T""")
        return self.backward("dy")

    def backward_again(self):
        """In f32, whatever the type."""
        def wide(name, of):
            return f"%{name} = arith.extf %{of} : {self.element} to f32"

        names = dict(x="u", r="v", dz="w", g="p", b="q")
        narrow = self.element != "f32"
        x, r, g, b = (f"%{names[n]}{'x' if narrow else ''}" for n in "xrgb")
        casts = [wide(names[n] + "x", names[n]) for n in "xrgb" if narrow]
        self.elementwise("dy", ["x", "r", "dz", "g", "b", "m", "i"], "\n".join(casts) + f"""
%zero = arith.constant 0.0 : T
%wide = arith.constant 0.0 : f32
%centred = arith.subf {x}, %h : f32
%normal = arith.mulf %centred, %j : f32
%scaled = arith.mulf %normal, {g} : f32
%y = arith.addf %scaled, {b} : f32
%s = arith.addf %y, {r} : f32
%k = arith.cmpf ogt, %s, %wide : f32
%t = arith.select %k, %w, %zero : T""")
        return self.backward("dy")

    def text(self, form, entry):
        results = getattr(self, form)()
        arguments = ", ".join(f"%{name}: {self.type(name)}" for name in ARGUMENTS)
        found = ", ".join(self.type(name) for name in results)
        dims = "\n".join(f"%c{a} = arith.constant {a} : index\n"
                         f"%d{a} = tensor.dim %x, %c{a} : {self.full}" for a in range(4))
        extents = ", ".join(f"%d{a}" for a in range(4)) if self.dynamic else ""
        body = "\n".join(self.lines)
        return (f"func.func @{entry}({arguments}) -> ({found}) {{\n{dims}\n"
                f"%e = tensor.empty({extents}) : {self.full}\n{body}\n"
                f"return {', '.join('%' + name for name in results)} : {found}\n}}\n")


ARGUMENTS = ("x", "r", "dz", "mask", "g", "b", "m", "i")
FUSED = ("batch_add_relu", "group_silu", "backward_result", "backward_mask", "backward_again")
PARTS = ("batch", "group", "backward")
RESULTS = {"batch": "fss", "batch_add_relu": "fss", "group": "f", "group_silu": "f",
           **dict.fromkeys(("backward", *FUSED[2:]), "fvv")}
CASES = [(layout, "f32") for layout in LAYOUTS] + [("nchw", "bf16"), ("nhwc", "bf16")]


def entry_of(form, layout, element, dynamic):
    return f"{form}_{layout}_{element}_{dynamic}".replace("-", "_")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    text = "".join(Body(*case, dynamic).text(form, entry_of(form, *case, dynamic))
                   for case in CASES for form in (*FUSED, *PARTS)
                   for dynamic in (False, True)[:1 + (form in FUSED)])
    return Compiled(tmp_path_factory.mktemp("channel_fusions"), text, "--norm-to-cpu=host")


def arrays(layout, element):
    shape, channel = LAYOUTS[layout]
    rng = generator(f"fusions{layout}{element}")
    found = dict(x=draw(rng, shape, element, 3.0, 2.0), r=draw(rng, shape, element),
                 dz=draw(rng, shape, element), mask=rng.random(shape) < 0.6,
                 g=draw(rng, shape[channel:channel + 1], element, 1.0),
                 b=draw(rng, shape[channel:channel + 1], element))
    axes, wide = tuple(a for a in range(4) if a != channel), widen(found["x"])
    found["m"] = wide.mean(axes).astype(np.float32)
    found["i"] = ((wide.var(axes) + 1e-5) ** -0.5).astype(np.float32)
    return found


def call(library, form, layout, element, given, threads=2, dynamic=False):
    shape, channel = LAYOUTS[layout]
    types = {"f": (shape, element), "v": (shape[channel:channel + 1], element),
             "s": (shape[channel:channel + 1], "f32")}
    found = [np.full(types[kind][0], 77, float_type(types[kind][1]).dtype)
             for kind in RESULTS[form]]
    library.set_threads(threads)
    library([given[name] for name in ARGUMENTS], found, entry_of(form, layout, element, dynamic))
    return found


def apart(library, form, layout, element, given):
    """The same from the norm alone, and NumPy before and after it."""
    if form == "batch_add_relu":
        y, *statistics = call(library, "batch", layout, element, given)
        return [np.maximum(y + given["r"], y.dtype.type(0)), *statistics]
    live = given["mask"] if form == "backward_mask" else given["r"] > 0
    if form == "backward_again":
        shape = [-1 if axis == LAYOUTS[layout][1] else 1 for axis in range(4)]
        x, r = (given[name].astype(np.float32) for name in "xr")
        g, b, m, i = (given[name].astype(np.float32).reshape(shape) for name in "gbmi")
        live = (x - m) * i * g + b + r > 0
    dz = np.where(live, given["dz"], given["dz"].dtype.type(0))
    return call(library, "backward", layout, element, {**given, "dz": dz})


@pytest.mark.parametrize("layout,element", CASES)
@pytest.mark.parametrize("form", FUSED)
def test_bits_of_the_parts(form, layout, element, library):
    given = arrays(layout, element)
    found = call(library, form, layout, element, given, threads=1)
    for threads, dynamic in ((2, False), (3, False), (1, True), (3, True)):
        for one, other in zip(found, call(library, form, layout, element, given, threads, dynamic),
                              strict=True):
            same_bits(one, other)
    if form != "group_silu":
        for one, other in zip(found, apart(library, form, layout, element, given), strict=True):
            same_bits(one, other)
        return
    y = widen(call(library, "group", layout, element, given)[0])
    # Each step is rounded to the type.
    step = {"f32": 2.0**-23, "bf16": 2.0**-7}[element]
    np.testing.assert_allclose(widen(found[0]), y / (1 + np.exp(-y)), rtol=4 * step,
                               atol=np.abs(y).max() * step / 64)




@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", FUSED)
def test_no_slab_is_allocated(form, layout, library):
    given = arrays(layout, "f32")
    for dynamic in (False, True):
        before = library.allocated()
        call(library, form, layout, "f32", given, dynamic=dynamic)
        assert library.allocated() - before <= given["x"].nbytes / 16
