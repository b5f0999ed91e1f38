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


# Counts what functions allocate.
COUNTER = """
#include <stddef.h>
size_t allocated;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size) {
  __atomic_add_fetch(&allocated, size, __ATOMIC_RELAXED);
  return __real_malloc(size);
}
"""


class Compiled:
    """A module compiled to a shared library by one of the pipelines."""

    def __init__(self, directory, module, pipeline="--norm-to-cpu"):
        Path(directory).mkdir(parents=True, exist_ok=True)
        counter = Path(directory) / "counter.c"
        counter.write_text(COUNTER)
        self.library = load_library(directory, module, pipeline, [
            counter, "-Wl,--wrap=malloc", "-O1", "-march=native",
            f"-L/usr/lib/llvm-{LLVM_VERSION}/lib",
            f"-Wl,-rpath,/usr/lib/llvm-{LLVM_VERSION}/lib", "-lomp", "-lm"])
        self._allocated = ctypes.c_size_t.in_dll(self.library, "allocated")

    def __call__(self, inputs, outputs, entry="main"):
        """Calls `entry`: read-only views in, contiguous arrays out, in order."""
        function = getattr(self.library, f"_mlir_ciface_{entry}")
        function.restype = None
        descriptors = [descriptor(array) for array in inputs]
        descriptors += [descriptor(array, offset=0) for array in outputs]
        function(*(ctypes.byref(d) for d in descriptors))

    def allocated(self):
        """How many bytes functions have allocated, all together."""
        return self._allocated.value

    def set_threads(self, count):
        """How many threads parallel loops have from now on."""
        self.library.omp_set_num_threads(count)

    def results(self, call, entry="main", threads=None):
        """What `entry` makes of a `Call`, {name: array}; threads: of its parallel loops."""
        if threads is not None:
            self.set_threads(threads)
        found = {name: np.full(shape, 77, np.int64 if element == "i64" else element.dtype)
                 for name, (shape, element) in
                 zip(call.ordered_results(), call.result_types(), strict=True)}
        self(call.inputs(), list(found.values()), entry)
        return found


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
