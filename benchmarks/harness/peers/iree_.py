"""IREE: its CPU compiler and runtime, given the formulas as linalg ops."""

import hashlib
from importlib.metadata import version

import numpy as np

from ..native import CACHE
from ..suite import EPSILON
from . import Bound, Peer, Prepared, repeat

MAPS = {"rows": "affine_map<(r, c) -> (r, c)>", "row": "affine_map<(r, c) -> (r)>",
        "column": "affine_map<(r, c) -> (c)>"}


class Text:
    """A function over [rows, extent], written op by op. Values are named by what they
    are indexed with: `rows`, `row` or `column`."""

    def __init__(self, case):
        self.case, self.lines, self.arguments, self.outputs = case, [], [], []
        self.values = {}  # name -> (kind, element)

    def type(self, kind, element):
        case = self.case
        dims = {"rows": (case.rows, case.extent), "row": (case.rows,),
                "column": (case.extent,)}[kind]
        return f"tensor<{'x'.join(map(str, dims))}x{element}>"

    def argument(self, name, kind, element):
        self.arguments.append((name, f"%{name}: {self.type(kind, element)}"))
        self.values[name] = (kind, element)

    def generic(self, result, kind, inputs, body, element="f32", reduced=None):
        """result = for all r, c: the last value of `body`, lines that name each input, in
        f32, as itself; summed over `reduced` (1: columns, 0: rows) from 0."""
        inputs = inputs.split()
        types = [self.type(*self.values[name]) for name in inputs]
        out = self.type(kind, element)
        maps = ", ".join(MAPS[self.values[name][0]] for name in inputs)
        loops = ["parallel", "parallel"]
        if reduced is not None:
            loops[reduced] = "reduction"
        iterators = ", ".join(f'"{loop}"' for loop in loops)
        block = ", ".join(f"%e_{name}: {self.values[name][1]}" for name in inputs)
        lines, environment = [], {}
        for name in inputs:
            narrow = self.values[name][1]
            environment[name] = f"%e_{name}"
            if narrow != "f32":
                lines.append(f"%w_{name} = arith.extf %e_{name} : {narrow} to f32")
                environment[name] = f"%w_{name}"
        for number, line in enumerate(body):
            target, op, *operands = line.split()
            names = ", ".join(environment.get(o, f"%{o}") for o in operands)
            environment[target] = f"%t{number}"
            lines.append(f"%t{number} = {op} {names} : f32")
        last = f"%t{len(body) - 1}" if body else environment[inputs[0]]
        if reduced is not None:
            lines.append(f"%added = arith.addf %acc, {last} : f32")
            last = "%added"
        if element != "f32":
            lines.append(f"%narrow = arith.truncf {last} : f32 to {element}")
            last = "%narrow"
        lines.append(f"linalg.yield {last} : {element}")
        self.lines.append(f"%{result}_empty = tensor.empty() : {out}")
        start = f"%{result}_empty"
        if reduced is not None:
            start = f"%{result}_start"
            self.lines.append(f"{start} = linalg.fill ins(%zero : f32) outs(%{result}_empty : "
                              f"{out}) -> {out}")
        self.lines.append(
            f"%{result} = linalg.generic {{indexing_maps = [{maps}, {MAPS[kind]}], "
            f"iterator_types = [{iterators}]}} "
            f"ins({', '.join('%' + name for name in inputs)} : {', '.join(types)}) "
            f"outs({start} : {out}) {{\n^bb0({block}, %acc: {element}):\n"
            + "\n".join(lines) + f"\n}} -> {out}")
        self.values[result] = (kind, element)

    def text(self, results):
        types = [self.type(*self.values[name]) for name in results]
        outs = [f"%out{i}: {kind} {{iree.abi.output = {i} : index}}"
                for i, kind in enumerate(types)]
        arguments = ", ".join([text for _, text in self.arguments] + outs)
        constants = (("zero", 0.0), ("epsilon", EPSILON), ("count", float(self.case.extent)))
        lines = [f"%{name} = arith.constant {value:.9e} : f32" for name, value in constants]
        values, kinds = ", ".join("%" + name for name in results), ", ".join(types)
        return (f"func.func @main({arguments}) -> ({kinds}) {{\n"
                + "\n".join(lines + self.lines) + f"\nreturn {values} : {kinds}\n}}\n")


def forward(text, case):
    element, source = case.element, "x"
    text.argument("x", "rows", element)
    if case.has_residual:
        text.argument("residual", "rows", element)
    text.argument("scale", "column", element)
    if case.is_centred:
        text.argument("shift", "column", element)
    if case.has_residual:
        text.generic("sum", "rows", "x residual", ["s arith.addf x residual"], element)
        source = "sum"
    if case.is_centred:
        text.generic("total", "row", source, [], reduced=1)
        text.generic("squares", "row", f"{source} total",
                     ["m arith.divf total count", f"d arith.subf {source} m",
                      "q arith.mulf d d"], reduced=1)
        text.generic("y", "rows", f"{source} total squares scale shift",
                     ["m arith.divf total count", f"d arith.subf {source} m",
                      "v arith.divf squares count", "e arith.addf v epsilon",
                      "r math.rsqrt e", "n arith.mulf d r", "g arith.mulf n scale",
                      "y arith.addf g shift"], element)
    else:
        text.generic("squares", "row", source, [f"q arith.mulf {source} {source}"], reduced=1)
        text.generic("y", "rows", f"{source} squares scale",
                     ["v arith.divf squares count", "e arith.addf v epsilon",
                      "r math.rsqrt e", f"n arith.mulf {source} r", "y arith.mulf n scale"],
                     element)
    return text.text(("y", "sum") if case.has_residual else ("y",))


def backward(text, case):
    element, centred = case.element, case.is_centred
    text.argument("dy", "rows", element)
    text.argument("x", "rows", element)
    if centred:
        text.argument("mean", "row", "f32")
    text.argument("rstd", "row", "f32")
    text.argument("scale", "column", element)
    mean = "mean" if centred else ""
    normalized = (["d arith.subf x mean", "n arith.mulf d rstd"] if centred
                  else ["n arith.mulf x rstd"])
    text.generic("along", "row", f"dy x {mean} rstd scale",
                 [*normalized, "g arith.mulf dy scale", "p arith.mulf g n"], reduced=1)
    if centred:
        text.generic("flat", "row", "dy scale", ["g arith.mulf dy scale"], reduced=1)
    rest = (["f arith.divf flat count", "g1 arith.subf g f", "g2 arith.subf g1 w"] if centred
            else ["g2 arith.subf g w"])
    text.generic("dx", "rows", f"dy x {mean} rstd scale along {'flat' if centred else ''}",
                 [*normalized, "g arith.mulf dy scale", "a arith.divf along count",
                  "w arith.mulf n a", *rest, "dx arith.mulf g2 rstd"], element)
    sums = [("dscale", f"dy x {mean} rstd", [*normalized, "p arith.mulf dy n"])]
    if centred:
        sums.append(("dshift", "dy", []))
    for name, inputs, body in sums:
        wide = name if element == "f32" else f"{name}_wide"
        text.generic(wide, "column", inputs, body, reduced=0)
        if wide != name:
            text.lines.append(narrowed(text, wide, name, element))
            text.values[name] = ("column", element)
    return text.text(("dx", "dscale", "dshift") if centred else ("dx", "dscale"))


def narrowed(text, wide, name, element):
    return (f"%{name} = arith.truncf %{wide} : {text.type('column', 'f32')} to "
            f"{text.type('column', element)}")


class Iree(Peer):
    name = "iree"

    def __init__(self, threads, native):
        super().__init__(threads, native)
        import iree.runtime as runtime
        from iree.compiler import tools
        runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
        self.runtime, self.tools = runtime, tools
        self.config = runtime.Config("local-task")
        self.version = version("iree-base-compiler")

    def compiled(self, text):
        options = ["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3"]
        key = hashlib.sha256((self.version + text).encode()).hexdigest()[:20]
        path = CACHE / f"iree-{key}.vmfb"
        if not path.exists():
            CACHE.mkdir(parents=True, exist_ok=True)
            try:
                code = self.tools.compile_str(text, target_backends=["llvm-cpu"],
                                              extra_args=options)
            except Exception:  # at some odd extents its O3 fails
                code = self.tools.compile_str(text, target_backends=["llvm-cpu"],
                                              extra_args=options[:1])
            path.write_bytes(code)
        return path.read_bytes()

    def prepare(self, case, buffers):
        runtime, text = self.runtime, Text(case)
        code = self.compiled((backward if case.is_backward else forward)(text, case))
        context = runtime.SystemContext(config=self.config)
        module = runtime.VmModule.copy_buffer(context.instance, code)
        context.add_vm_module(module)
        function, device = module.lookup_function("main"), self.config.device

        def view(array, shape):
            types = runtime.HalElementType
            element = {"float32": types.FLOAT_32, "bfloat16": types.BFLOAT_16,
                       "float16": types.FLOAT_16}[array.dtype.name]
            bits = array.reshape(shape)
            return device.allocator.allocate_buffer_copy(
                memory_type=runtime.MemoryType.DEVICE_LOCAL,
                allowed_usage=runtime.BufferUsage.DEFAULT | runtime.BufferUsage.MAPPING,
                device=device, buffer=bits.view(f"u{bits.itemsize}"), element_type=element)

        def bind(target):
            def flat(name):
                array = np.ascontiguousarray(target[name])
                return view(array, array.shape if array.ndim == 1
                            else (case.rows, case.extent))
            inputs = [flat(name) for name, _ in text.arguments]
            outputs = [flat(name) for name in target.results()]
            arguments = runtime.VmVariantList(len(inputs) + len(outputs))
            for value in inputs + outputs:
                arguments.push_ref(value)
            kept = [None]

            def call():
                kept[0] = runtime.VmVariantList(len(outputs))
                context.vm_context.invoke(function, arguments, kept[0])

            def results():
                found = {}
                for index, (name, array) in enumerate(target.results().items()):
                    value = kept[0].get_as_object(index, runtime.HalBufferView)
                    host = runtime.DeviceArray(device, value).to_host()
                    found[name] = np.asarray(host).view(array.dtype)
                return found
            return Bound(repeat(call), results)
        return Prepared(bind, "llvm-cpu, local-task", "inputs are its own copies")
