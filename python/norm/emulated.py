"""GPU programs run by the emulator in this process, through their entry ABI.

`norm-to-nvvm` makes host code that launches kernels; libnorm_emu runs these on the
CPU and checks them while they run: races, missing barriers, accesses out of bounds or
misaligned, and more (docs/Emulator.md).
"""

import ctypes
import json

import numpy as np
from numpy.lib.array_utils import byte_bounds

from norm.compiled import descriptor, load_library
from norm.tools import build_dir

PIPELINE = "--norm-to-nvvm=format=llvm"


class EmulatorError(Exception):
    """What a check of the emulator found."""


def _emulator():
    library = build_dir() / "lib" / "libnorm_emu.so"
    if not library.is_file():
        raise FileNotFoundError(f"{library} does not exist: run ./dev build, or set "
                                "NORM_BUILD_DIR to a build directory")
    emulator = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    emulator.normEmuRegister.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    emulator.normEmuUnregister.argtypes = [ctypes.c_void_p]
    emulator.normEmuSetSeed.argtypes = [ctypes.c_uint64]
    emulator.normEmuErrorCount.restype = ctypes.c_uint64
    emulator.normEmuLastError.restype = ctypes.c_char_p
    emulator.normEmuEnableCounters.argtypes = [ctypes.c_bool]
    emulator.normEmuCountersJson.restype = ctypes.c_char_p
    return emulator


# Failures are read from the emulator's count instead of ending the process.
_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)(lambda message, data: None)


def aligned(array, offset=0):
    """A copy of an array that starts `offset` elements after an address all accesses
    may start at."""
    memory = np.empty(array.nbytes + 512 + offset * array.itemsize, np.uint8)
    start = -memory.ctypes.data % 256 + offset * array.itemsize
    copy = memory[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class Emulated:
    """A module compiled for the emulator."""

    def __init__(self, directory, module, pipeline=PIPELINE):
        self.emulator = _emulator()
        self.emulator.normEmuSetErrorHandler(_HANDLER, None)
        # Linked to the emulator, so that it outlives the module's destructors.
        libraries = build_dir() / "lib"
        self.library = load_library(directory, module, pipeline, [
            "-O0", f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lnorm_emu"])

    def __call__(self, inputs, outputs, entry="main", seed=0):
        """Calls `entry` on views in, contiguous arrays out, in order, in the schedule
        that `seed` gives; EmulatorError with what the first failing check says. Kernels
        may touch memory from a view's first byte to its last."""
        function = getattr(self.library, f"_mlir_ciface_{entry}")
        function.restype = None
        arrays = [*inputs, *outputs]
        shared = [byte_bounds(array) for array in arrays if array.nbytes]
        for begin, end in shared:
            self.emulator.normEmuRegister(begin, end - begin)
        self.emulator.normEmuSetSeed(seed)
        failures = self.emulator.normEmuErrorCount()
        descriptors = [descriptor(array, offset=0) for array in arrays]
        try:
            function(*(ctypes.byref(d) for d in descriptors), ctypes.c_void_p(None))
        finally:
            for begin, _ in shared:
                self.emulator.normEmuUnregister(begin)
        if self.emulator.normEmuErrorCount() != failures:
            raise EmulatorError(self.emulator.normEmuLastError().decode())

    def count(self, inputs, outputs, entry="main"):
        """Calls `entry`; what each kernel did, as docs/Emulator.md describes counters."""
        self.emulator.normEmuResetCounters()
        self.emulator.normEmuEnableCounters(True)
        try:
            self(inputs, outputs, entry)
        finally:
            self.emulator.normEmuEnableCounters(False)
        return json.loads(self.emulator.normEmuCountersJson())


def run_calls(directory, calls, seeds=(0,), offset=0, pipeline=PIPELINE):
    """All calls as one function; a list with one {name: array} per call, for each seed.
    offset: elements that each array lies off an aligned address."""
    from norm.program import module_text, split_results
    compiled = Emulated(directory, module_text(calls), pipeline)
    inputs = [aligned(array, offset) for call in calls for array in call.inputs()]
    runs = []
    for seed in seeds:
        outputs = [aligned(np.zeros(shape, element.dtype), offset)
                   for call in calls for shape, element in call.result_types()]
        compiled(inputs, outputs, seed=seed)
        runs.append(split_results(calls, outputs))
    return runs
