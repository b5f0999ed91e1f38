"""What the tests of reported cases share: calls of the channel norms, whole libraries of
calls that run in this process, and counts in the IR that the pipelines go through."""

import re
import subprocess

import numpy as np
from norm.compiled import Compiled, canaries
from norm.golden import array, call
from norm.program import Call, module_text
from norm.promise import check
from norm.tools import ToolError, norm_opt, tool
from norm.types import float_type, widen

# The CPU pipeline as far as tiles of vectors, still on tensors.
TILES = ("--norm-split-gradients", "--norm-configure", "--norm-tile")
VECTORS = (*TILES, "--norm-lower-to-linalg", "--norm-vectorize", "--loop-invariant-code-motion",
           "--cse", "--canonicalize")
LINALG = "--norm-lower-to-linalg"
ALL_GRADIENTS = ("dx", "dscale", "dshift")
RUNNING = ("y", "running_mean", "running_variance")


def exact(rows, epsilon=1e-5):
    """The normalized rows of what an f32 array holds, in double precision."""
    x = widen(array(rows))
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + epsilon)


def batch(x, element="f32", axes=(0,), **rest):
    return call("batch_norm_training", x, element, axes, **rest)


def inference(x, element="f32", axes=(0,), **rest):
    return call("batch_norm_inference", x, element, axes, **rest)


def group(x, groups, element="f32", channel=1, **rest):
    """Over the channel and everything behind the batch."""
    return call("group_norm", x, element, range(1, np.ndim(x)), groups=groups,
                channel_axis=channel, **rest)


def instance(x, element="f32", axes=None, **rest):
    """Over everything behind [N, C]."""
    return call("instance_norm", x, element, range(2, np.ndim(x)) if axes is None else axes,
                **rest)


def same_rows(rows, element="f32", results=("y",), **rest):
    """The rows [R, n] as four ops whose statistics are the same: layer_norm of [R, n],
    group_norm of one group [R, 1, n], instance_norm [R, 1, n], batch_norm_training [n, R]."""
    rows = np.asarray(rows, np.float64)
    channel = rows[:, None, :]
    return (call("layer_norm", rows, element, results=results, **rest),
            group(channel, 1, element, results=results, **rest),
            instance(channel, element, results=results, **rest),
            batch(np.ascontiguousarray(rows.T), element, results=results, **rest))


def as_rows(got):
    """The four ys of `same_rows`, all as [R, n]."""
    layer, groups, instances, columns = (results["y"] for results in got)
    return layer, groups[:, 0], instances[:, 0], np.ascontiguousarray(columns.T)


class Library:
    """Calls compiled as functions of one module, each run in this process on any data.

    Results are written between canaries, over a pattern that is no number: what the
    function leaves unwritten does not pass for a zero."""

    def __init__(self, directory, calls, path="cpu", passes=(), strides="unit"):
        self.calls, self.path = calls, path
        text = "".join(module_text([made], entry=name) for name, made in calls.items())
        if path == "linalg":
            passes = (*passes, LINALG)
        if passes:
            text = norm_opt(text, *passes)
        pipeline = "--norm-to-reference" if path == "reference" \
            else f"--norm-to-cpu=strides={strides}"
        self.compiled = Compiled(directory, text, pipeline)

    def run(self, name, inputs=None, like=None):
        """{result: array}. inputs: in place of the call's own; like: the call that the
        results' shapes follow from, of other extents than the compiled one."""
        made = like or self.calls[name]
        if inputs is None:  # of any strides only where a test passes them
            inputs = [np.ascontiguousarray(values) for values in made.inputs()]
        outputs, intact = zip(*(canaries(shape, np.dtype(np.int64) if element == "i64" else
                                         float_type(element).dtype)
                                for shape, element in made.result_types()), strict=True)
        for output in outputs:
            output.reshape(-1).view(np.uint8)[...] = 0xFF
        before = [one.copy() for one in inputs]
        self.compiled(inputs, outputs, name)
        assert all(untouched() for untouched in intact), f"{name} wrote outside a result"
        for one, copy in zip(inputs, before, strict=True):
            assert one.tobytes() == copy.tobytes(), f"{name} wrote to an operand"
        return dict(zip(made.ordered_results(), outputs, strict=True))

    def checked(self, name, like=None):
        """`run`, held against the oracle."""
        results = self.run(name, like=like)
        made: Call = like or self.calls[name]
        check(made.reference(), results, "any", self.path)
        return results


class GoldenLibraries:
    """The results of the golden tests of a module, from one library a path. A call that
    does not compile fails alone."""

    def __init__(self, directory, chosen):
        self.directory, self.chosen, self.libraries = directory, chosen, {}

    def _library(self, path):
        if path not in self.libraries:
            calls = {f"f{i}": made for i, made in enumerate(self.chosen[path].values())}
            try:
                self.libraries[path] = Library(self.directory / path, calls, path)
            except ToolError:
                self.libraries[path] = None
        return self.libraries[path]

    def results(self, key, path):
        library, made = self._library(path), self.chosen[path][key]
        if library is None:
            where = self.directory / path / f"{key[0]}-{key[1]}"
            return Library(where, {"f": made}, path).run("f")
        return library.run(f"f{list(self.chosen[path]).index(key)}")


def ir(calls, *passes):
    """The IR of one function with the calls, after passes."""
    return norm_opt(module_text(calls), *passes)


def without_copying(text):
    """`text` in the LLVM dialect without the functions that copy arguments of other
    strides than the code takes."""
    return re.sub(r"^  llvm\.func [^\n]*__strided\(.*?^  }\n", "", text, flags=re.M | re.S)


def llvm(calls, strides="unit"):
    """The LLVM dialect that the calls end as on the CPU."""
    return ir(calls, f"--norm-to-cpu=strides={strides}")


def count(pattern, text):
    return len(re.findall(pattern, text, re.M))


def bodies(text):
    """(iterator types, body) of each linalg.generic in the text."""
    found = []
    for part in text.split("linalg.generic")[1:]:
        kinds = re.search(r"iterator_types = \[([^\]]*)\]", part)[1]
        found.append((kinds, part[part.index("^bb0"):part.index("linalg.yield")]))
    return found


def remarks(module, *passes):
    """The module after the passes, and its remarks as text."""
    command = [str(tool("norm-opt")), *passes, "--remarks-filter=.*", "-"]
    done = subprocess.run(command, input=module, capture_output=True, text=True, timeout=60,
                          check=False)
    if done.returncode != 0:
        raise ToolError(command, done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr
