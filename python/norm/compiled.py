"""Compiled functions called in this process, through their entry ABI.

norm-run passes whole arrays; here a test passes any view: transposed, sliced,
offset, reversed or broadcast (stride 0), and sees whether the code wrote where
it should not have.
"""

import ctypes
import shutil
from pathlib import Path

import numpy as np

from norm.tools import norm_opt, run

LLVM_VERSION = 22


def llvm_tool(name):
    for candidate in (f"{name}-{LLVM_VERSION}", f"/usr/lib/llvm-{LLVM_VERSION}/bin/{name}"):
        found = shutil.which(candidate)
        if found:
            return found
    raise FileNotFoundError(f"{name} of LLVM {LLVM_VERSION} is not installed")


def descriptor(array, offset=3):
    """The memref descriptor of a NumPy view: two pointers, offset, sizes, strides.

    The view's start is expressed as an offset from an earlier element, so that
    code which forgets the offset is wrong; results have none."""
    rank, size = array.ndim, array.itemsize

    class Descriptor(ctypes.Structure):
        _fields_ = [("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p),
                    ("offset", ctypes.c_int64), ("sizes", ctypes.c_int64 * rank),
                    ("strides", ctypes.c_int64 * rank)]

    data = array.__array_interface__["data"][0]
    assert all(stride % size == 0 for stride in array.strides)
    return Descriptor(data - offset * size, data - offset * size, offset,
                      (ctypes.c_int64 * rank)(*array.shape),
                      (ctypes.c_int64 * rank)(*(s // size for s in array.strides)))


def load_library(directory, module, pipeline, flags):
    """The shared library of a module that `pipeline` takes to the LLVM dialect, built in
    `directory` by clang with `flags`, and loaded."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    lowered, translated = directory / "lowered.mlir", directory / "module.ll"
    library = directory / "module.so"
    lowered.write_text(norm_opt(module, pipeline))
    run([llvm_tool("mlir-translate"), "--mlir-to-llvmir", lowered, "-o", translated])
    # Calls inside the library stay inside, though libc may export the same name.
    run([llvm_tool("clang"), "-shared", "-fPIC", "-w", "-Wl,-Bsymbolic", translated,
         "-o", library, *flags])
    return ctypes.CDLL(str(library))


class Compiled:
    """A module compiled to a shared library by one of the pipelines."""

    def __init__(self, directory, module, pipeline="--norm-to-cpu"):
        self.library = load_library(directory, module, pipeline, [
            "-O1", "-march=native", f"-L/usr/lib/llvm-{LLVM_VERSION}/lib",
            f"-Wl,-rpath,/usr/lib/llvm-{LLVM_VERSION}/lib", "-lomp", "-lm"])

    def __call__(self, inputs, outputs, entry="main"):
        """Calls `entry`: read-only views in, contiguous arrays out, in order."""
        function = getattr(self.library, f"_mlir_ciface_{entry}")
        function.restype = None
        descriptors = [descriptor(array) for array in inputs]
        descriptors += [descriptor(array, offset=0) for array in outputs]
        function(*(ctypes.byref(d) for d in descriptors))


def canaries(shape, dtype, guard=64):
    """An uninitialized array inside a larger one full of a bit pattern, and a
    function that says whether the surroundings are untouched."""
    count = int(np.prod(shape, dtype=np.int64))
    whole = np.full((count + 2 * guard) * dtype.itemsize, 0xAB, np.uint8)
    inner = whole.view(dtype)[guard:guard + count].reshape(shape)
    edge = guard * dtype.itemsize

    def untouched():
        return (whole[:edge] == 0xAB).all() and (whole[len(whole) - edge:] == 0xAB).all()
    return inner, untouched
