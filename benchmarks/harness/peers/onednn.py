"""oneDNN, through its C interface.

Its fast kernels want parameters in f32 whatever x is, and get them. Where it comes from,
the first that is there:

    $ONEDNN_LIBRARY     a libdnnl.so of yours, best built with ONEDNN_CPU_RUNTIME=OMP; that
                        of PyPI's onednn is for SYCL and TBB, and slow in small calls
    PyTorch's wheel     an OpenMP build inside libtorch_cpu.so, whose functions are local
                        symbols: found by address
"""

import ctypes
import functools
import os
from pathlib import Path

import numpy as np
from norm.compiled import llvm_tool
from norm.tools import run

from ..native import address
from ..suite import EPSILON
from . import Bound, Peer, Prepared, Unsupported

Handle, Size, Flags, Code = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint, ctypes.c_int
# Enumerators and argument numbers of dnnl_types.h.
CPU, IN_ORDER, BINARY_ADD, QUERY_IMPLEMENTATION = 1, 1, 0x1FFF0, 8
FORWARD_TRAINING, FORWARD_INFERENCE, BACKWARD = 64, 96, 128
GIVEN_STATISTICS, USE_SCALE, USE_SHIFT, RMS_NORM = 1, 2, 4, 32
TYPES = {"f16": 1, "bf16": 2, "f32": 3}
RUNTIMES = {1: "sequential", 2: "OpenMP", 4: "TBB", 8: "thread pool", 512: "SYCL"}
ARGUMENTS = {"x": 1, "residual": 2, "y": 17, "mean": 49, "variance": 50, "scale": 51,
             "shift": 52, "dx": 129, "dy": 145, "dscale": 255, "dshift": 256}
# Function -> the types of its arguments.
FUNCTIONS = {
    "dnnl_version": (),
    "dnnl_engine_create": (Handle, Code, Size),
    "dnnl_stream_create": (Handle, Handle, Flags),
    "dnnl_memory_desc_create_with_strides": (Handle, Code, Handle, Code, Handle),
    "dnnl_memory_create": (Handle, Handle, Handle, Handle),
    "dnnl_binary_primitive_desc_create": (Handle, Handle, Code, *[Handle] * 4),
    "dnnl_layer_normalization_forward_primitive_desc_create_v2":
        (Handle, Handle, Code, *[Handle] * 3, Code, ctypes.c_float, Flags, Handle),
    "dnnl_layer_normalization_backward_primitive_desc_create_v2":
        (Handle, Handle, Code, *[Handle] * 4, Code, Code, ctypes.c_float, Flags, Handle, Handle),
    "dnnl_batch_normalization_forward_primitive_desc_create":
        (Handle, Handle, Code, Handle, Handle, ctypes.c_float, Flags, Handle),
    "dnnl_batch_normalization_backward_primitive_desc_create":
        (Handle, Handle, Code, *[Handle] * 3, ctypes.c_float, Flags, Handle, Handle),
    "dnnl_group_normalization_forward_primitive_desc_create":
        (Handle, Handle, Code, Handle, Handle, ctypes.c_int64, ctypes.c_float, Flags, Handle),
    "dnnl_primitive_desc_query": (Handle, Code, Code, Handle),
    "dnnl_primitive_create": (Handle, Handle),
    "dnnl_primitive_execute": (Handle, Handle, Code, Handle),
    "dnnl_stream_wait": (Handle,),
}


class Version(ctypes.Structure):
    _fields_ = [("major", Code), ("minor", Code), ("patch", Code),
                ("hash", ctypes.c_char_p), ("cpu_runtime", Flags), ("gpu_runtime", Flags)]


class Argument(ctypes.Structure):
    """dnnl_exec_arg_t."""

    _fields_ = [("argument", Code), ("memory", Handle)]


def typed(name, found):
    """A function of the library with its types."""
    result = ctypes.POINTER(Version) if name == "dnnl_version" else Code
    return ctypes.CFUNCTYPE(result, *FUNCTIONS[name])(found)


def from_library(path):
    library = ctypes.CDLL(str(path))
    return {name: typed(name, address(getattr(library, name))) for name in FUNCTIONS}


@functools.cache
def symbols(path):
    """Name -> offset, of the functions needed and of one that is exported."""
    found = {}
    for line in run([llvm_tool("llvm-nm"), "--format=just-symbols", "--defined-only", "-D",
                     path]).splitlines():
        if line.startswith("_ZN2at"):
            found["exported"] = line
            break
    wanted = set(FUNCTIONS) | {found["exported"]}
    for line in run([llvm_tool("llvm-nm"), "--format=posix", "--defined-only", path]).splitlines():
        name, _, rest = line.partition(" ")
        if name in wanted:
            found[name] = int(rest.split()[1], 16)
    return found


def from_torch():
    import torch  # loads its libraries
    path = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    offsets = symbols(str(path))
    exported = offsets["exported"]
    base = address(getattr(ctypes.CDLL(str(path)), exported)) - offsets[exported]
    return {name: typed(name, base + offsets[name]) for name in FUNCTIONS}


def library():
    """(functions by name, where they come from)."""
    own = os.environ.get("ONEDNN_LIBRARY")
    if own:
        return from_library(own), Path(own).name
    try:
        return from_torch(), "of PyTorch's wheel"
    except KeyError as error:
        raise Unsupported(f"libtorch_cpu.so has no symbol {error}; set ONEDNN_LIBRARY") from None


class OneDNN(Peer):
    name = "onednn"

    def __init__(self, threads, native):
        super().__init__(threads, native)
        self.functions, source = library()
        version = self.functions["dnnl_version"]().contents
        runtime = RUNTIMES.get(version.cpu_runtime, "other")
        self.version = f"{version.major}.{version.minor}.{version.patch} ({runtime}, {source})"
        self.engine = self.made("dnnl_engine_create", CPU, 0)
        self.stream = self.made("dnnl_stream_create", self.engine, IN_ORDER)

    def made(self, function, *arguments):
        """The object that a function makes through its first argument."""
        result = Handle()
        status = self.functions[function](ctypes.byref(result), *arguments)
        if status:
            raise Unsupported(f"{function} gives status {status}")
        return result

    def description(self, shape, element, strides=None):
        """Of an array; strides in elements, None if it is contiguous."""
        if strides is None:
            strides = [int(np.prod(shape[a + 1:])) for a in range(len(shape))]
        dims = ctypes.c_int64 * 12
        return self.made("dnnl_memory_desc_create_with_strides", len(shape), dims(*shape),
                         TYPES[element], dims(*strides))

    def prepare(self, case, buffers):
        if case.packed:
            raise Unsupported("no strided inputs")
        rows = self.description((case.rows, case.extent), case.element)
        row = self.description((case.extent,), "f32")
        statistics = self.description((case.rows,), "f32")
        flags = USE_SCALE | (USE_SHIFT if case.is_centred else RMS_NORM)
        kind, steps = TYPES["f32"], []

        def forward(propagation):
            return self.made("dnnl_layer_normalization_forward_primitive_desc_create_v2",
                             self.engine, propagation, rows, rows, statistics, kind, EPSILON,
                             flags, None)
        if case.is_backward:
            plan = self.made("dnnl_layer_normalization_backward_primitive_desc_create_v2",
                             self.engine, BACKWARD, rows, rows, rows, statistics, kind, kind,
                             EPSILON, flags, forward(FORWARD_TRAINING), None)
            arrays = {name: (name, rows) for name in ("x", "dy", "dx")}
            arrays.update(variance=("variance", statistics), scale=("scale_f32", row),
                          dscale=("dscale", row))
            if case.is_centred:
                arrays.update(mean=("mean", statistics), dshift=("dshift", row))
            steps.append((plan, arrays))
        else:
            source = "x"
            if case.has_residual:
                plan = self.made("dnnl_binary_primitive_desc_create", self.engine, BINARY_ADD,
                                 rows, rows, rows, None)
                steps.append((plan, {"x": ("x", rows), "residual": ("residual", rows),
                                     "y": ("sum", rows)}))
                source = "sum"
            arrays = {"x": (source, rows), "y": ("y", rows), "scale": ("scale_f32", row)}
            if case.is_centred:
                arrays["shift"] = ("shift_f32", row)
            steps.append((forward(FORWARD_INFERENCE), arrays))
        made = [(self.made("dnnl_primitive_create", plan), arrays) for plan, arrays in steps]
        return Prepared(lambda target: self.bind(made, target),
                        ", ".join(self.implementation(plan) for plan, _ in steps),
                        "parameters in f32")

    def prepare_channels(self, case, buffers):
        """Strides say how images lie. Parameters and statistics are f32."""
        order = [axis for axis in range(len(case.shape)) if axis != 1]
        order = [0, 1, *order[1:]] if case.layout == "nchw" else [*order, 1]
        strides = [int(np.prod([case.shape[a] for a in order[order.index(axis) + 1:]]))
                   for axis in range(len(case.shape))]
        x = self.description(case.shape, case.element, strides)
        row = self.description((case.shape[1],), "f32")
        parameters = {"scale": ("scale_f32", row), "shift": ("shift_f32", row)}
        forward = "dnnl_batch_normalization_forward_primitive_desc_create"
        arrays = {"x": ("x", x), "y": ("y", x), **parameters}
        flags = USE_SCALE | USE_SHIFT
        if case.is_backward:
            hint = self.made(forward, self.engine, FORWARD_TRAINING, x, x, EPSILON, flags, None)
            plan = self.made("dnnl_batch_normalization_backward_primitive_desc_create",
                             self.engine, BACKWARD, x, x, x, EPSILON, flags, hint, None)
            arrays = {name: (name, x) for name in ("x", "dy", "dx")}
            arrays.update(mean=("mean", row), variance=("variance", row),
                          scale=("scale_f32", row), dscale=("dscale", row),
                          dshift=("dshift", row))
        elif case.family == "bn_inference":
            plan = self.made(forward, self.engine, FORWARD_INFERENCE, x, x, EPSILON,
                             flags | GIVEN_STATISTICS, None)
            arrays.update(mean=("mean", row), variance=("variance", row))
        elif case.family == "bn_train":
            plan = self.made(forward, self.engine, FORWARD_TRAINING, x, x, EPSILON, flags, None)
            arrays.update(mean=("saved_mean", row), variance=("saved_variance", row))
        else:
            groups = case.groups if case.is_grouped else case.shape[1]
            plan = self.made("dnnl_group_normalization_forward_primitive_desc_create",
                             self.engine, FORWARD_INFERENCE, x, x, groups, EPSILON, flags, None)
        made = [(self.made("dnnl_primitive_create", plan), arrays)]
        return Prepared(lambda target: self.bind(made, target), self.implementation(plan),
                        "parameters in f32")

    def implementation(self, plan):
        text = ctypes.c_char_p()
        self.functions["dnnl_primitive_desc_query"](plan, QUERY_IMPLEMENTATION, 0,
                                                    ctypes.byref(text))
        return (text.value or b"?").decode()

    def bind(self, steps, target):
        """A loop in C: dnnl_primitive_execute of each step."""
        # Gradients of parameters are f32 whatever x is.
        sums = {name: np.empty(array.shape, np.float32)
                for name, array in target.results().items() if name in ("dscale", "dshift")}
        # What a training norm saves for its gradient.
        saved = {name: np.empty(target["scale_f32"].shape, np.float32)
                 for _, arrays in steps for name, _ in arrays.values() if name.startswith("saved")}
        memory_of = {**saved, **sums}
        calls, kept = [], [target, steps, memory_of]
        execute = address(self.functions["dnnl_primitive_execute"])
        for primitive, arrays in steps:
            arguments = (Argument * len(arrays))()
            for slot, (place, (name, shape)) in zip(arguments, arrays.items(), strict=True):
                memory = self.made("dnnl_memory_create", shape, self.engine,
                                   (memory_of[name] if name in memory_of
                                    else target[name]).ctypes.data)
                slot.argument, slot.memory = ARGUMENTS[place], memory
                kept.append(memory)
            kept.append(arguments)
            calls.append((execute, [primitive.value, self.stream.value, len(arrays),
                                    ctypes.addressof(arguments)]))
        status = self.functions["dnnl_primitive_execute"](
            calls[0][1][0], calls[0][1][1], calls[0][1][2], calls[0][1][3])
        if status:
            raise Unsupported(f"dnnl_primitive_execute gives status {status}")
        loop = self.native.loop(*calls, (address(self.functions["dnnl_stream_wait"]),
                                         [self.stream.value]), keep=kept)
        return Bound(loop, lambda: {**target.results(), **sums})
