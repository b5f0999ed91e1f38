"""Writes loops over tiles of linalg ops as MLIR text, each tensor by its axes.

Axes are letters, and "1" is a dimension of extent 1 that no loop indexes:
"n1" is a tensor<Nx1>. Scalar code names its operands %a, %b, .. in order, the
destination's element %o, and its result %r.
"""

ZERO = {"f32": "0.0", "f64": "0.0", "i64": "0"}
ADD = {"f32": "addf", "f64": "addf", "i64": "addi"}


class Tile:
    """One loop over tiles.

    extents: of each axis. loop: the step along each axis the loop runs over.
    dynamic: the axes whose extents the function's types do not know."""

    def __init__(self, extents, loop, rows=1, columns=8, dynamic="", parallel=False):
        self.extents, self.loop, self.dynamic = extents, loop, dynamic
        self.strategy = (f"#norm.cpu<rows = {rows}, columns = {columns}, "
                         f"parallel = {str(parallel).lower()}>")
        self.arguments, self.types, self.outputs, self.lines = [], {}, [], []

    def _global(self, axes, element):
        dims = ["1" if a == "1" else "?" if a in self.dynamic else str(self.extents[a])
                for a in axes]
        return f"tensor<{''.join(d + 'x' for d in dims)}{element}>"

    def _is_cut(self, axis):
        step = self.loop.get(axis, 0)
        return step > 1 and (axis in self.dynamic or self.extents[axis] % step != 0)

    def _size(self, axis):
        if axis == "1":
            return "1"
        if self._is_cut(axis):
            return f"%size_{axis}"
        if axis in self.loop:
            return str(self.loop[axis])
        return f"%extent_{axis}" if axis in self.dynamic else str(self.extents[axis])

    def _local(self, axes, element):
        sizes = [self._size(a) for a in axes]
        return f"tensor<{''.join(('?' if s[0] == '%' else s) + 'x' for s in sizes)}{element}>"

    def _place(self, axes):
        offsets = [f"%i_{a}" if a in self.loop else "0" for a in axes]
        sizes = [self._size(a) for a in axes]
        return (f"[{', '.join(offsets)}] [{', '.join(sizes)}] "
                f"[{', '.join('1' for _ in axes)}]")

    def _name(self, axes, element):
        name = f"%v{len(self.types)}"
        self.types[name] = axes, element
        return name

    def given(self, axes, element="f32"):
        """An argument of the function, cut to the tile."""
        name = self._name(axes, element)
        self.arguments.append((name, axes, element))
        if axes:
            self.lines.append(f"{name} = tensor.extract_slice {name}_all{self._place(axes)} : "
                              f"{self._global(axes, element)} to {self._local(axes, element)}")
        return name

    def filled(self, axes, value, element="f32"):
        name = self._name(axes, element)
        sizes = ", ".join(s for s in map(self._size, axes) if s[0] == "%")
        local = self._local(axes, element)
        self.lines += [f"{name}_e = tensor.empty({sizes}) : {local}",
                       f"{name}_c = arith.constant {value} : {element}",
                       f"{name} = linalg.fill ins({name}_c : {element}) outs({name}_e : {local})"
                       f" -> {local}"]
        return name

    def op(self, inputs, axes, code, element="f32"):
        """One result over `axes`; the other axes of the inputs are reduced."""
        out = self.filled(axes, ZERO[element], element)
        loops = []
        for one in [axes] + [self.types[i][0] for i in inputs]:
            loops += [a for a in one if a != "1" and a not in loops]
        loops.sort(key=list(self.extents).index)
        iterators = ['"parallel"' if a in axes else '"reduction"' for a in loops]
        operands = [(*self.types[name], name) for name in (*inputs, out)]
        maps = [f"affine_map<({', '.join(loops)}) -> "
                f"({', '.join('0' if a == '1' else a for a in one)})>" for one, _, _ in operands]
        arguments = [f"%{letter}: {kind}" for letter, (_, kind, _) in
                     zip("abcdefgh"[:len(inputs)] + "o", operands, strict=True)]
        types = [self._local(one, kind) for one, kind, _ in operands]
        ins = f" ins({', '.join(inputs)} : {', '.join(types[:-1])})" if inputs else ""
        result = self._name(axes, element)
        self.lines.append(
            f"{result} = linalg.generic {{indexing_maps = [{', '.join(maps)}], "
            f"iterator_types = [{', '.join(iterators)}]}}{ins} outs({out} : {types[-1]}) {{\n"
            f"^bb0({', '.join(arguments)}):\n{code}\nlinalg.yield %r : {element}\n}} "
            f"-> {types[-1]}")
        return result

    def total(self, inputs, axes, code="", term="%a", element="f32"):
        """The sum of a term over the axes that `axes` lacks."""
        return self.op(inputs, axes, f"{code}\n%r = arith.{ADD[element]} %o, {term} : {element}",
                       element)

    def output(self, name):
        self.outputs.append(name)

    def text(self):
        """The module; function main takes what is given, in order."""
        prelude, known = [], {}
        for name, axes, _ in self.arguments:
            for dim, axis in enumerate(axes):
                known.setdefault(axis, (name, dim))
        for axis in self.extents:
            if axis in self.dynamic:
                name, dim = known[axis]
                _, axes, element = next(a for a in self.arguments if a[0] == name)
                prelude += [f"%d_{axis} = arith.constant {dim} : index",
                            f"%extent_{axis} = tensor.dim {name}_all, %d_{axis} : "
                            f"{self._global(axes, element)}"]
            else:
                prelude.append(f"%extent_{axis} = arith.constant {self.extents[axis]} : index")
        wholes = [self._global(*self.types[name]) for name in self.outputs]
        for name, whole in zip(self.outputs, wholes, strict=True):
            sizes = ", ".join(f"%extent_{a}" for a in self.types[name][0] if a in self.dynamic)
            prelude.append(f"{name}_new = tensor.empty({sizes}) : {whole}")
        body = [f"%size_{a} = affine.min affine_map<(d0)[s0] -> ({self.loop[a]}, s0 - d0)>"
                f"(%i_{a})[%extent_{a}]" for a in self.loop if self._is_cut(a)] + self.lines
        inserts = [f"tensor.parallel_insert_slice {name} into {name}_out"
                   f"{self._place(self.types[name][0])} : "
                   f"{self._local(*self.types[name])} into {whole}"
                   for name, whole in zip(self.outputs, wholes, strict=True)]
        parameters = ", ".join(f"{n}{'_all' if axes else ''}: "
                               f"{self._global(axes, e) if axes else e}"
                               for n, axes, e in self.arguments)
        shared = ", ".join(f"{name}_out = {name}_new" for name in self.outputs)
        types = ", ".join(wholes)
        lines = "\n".join
        return f"""func.func @main({parameters}) -> ({types}) {{
{lines(prelude)}
%all:{len(wholes)} = scf.forall ({", ".join(f"%i_{a}" for a in self.loop)}) = \
({", ".join("0" for _ in self.loop)}) to ({", ".join(f"%extent_{a}" for a in self.loop)}) \
step ({", ".join(map(str, self.loop.values()))}) shared_outs({shared}) -> ({types}) {{
{lines(body)}
scf.forall.in_parallel {{
{lines(inserts)}
}}
}} {{norm.strategy = {self.strategy}}}
return {", ".join(f"%all#{n}" for n in range(len(wholes)))} : {types}
}}
"""
