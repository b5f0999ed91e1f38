"""Code compiled for this machine: the roof, and the programs of this project."""

import contextlib
import ctypes
import hashlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from norm.compiled import LLVM_VERSION, descriptor, llvm_tool
from norm.program import module_text
from norm.tools import ROOT, build_dir, norm_opt, run, tool

CACHE = ROOT / "out" / "bench-cache"
ROOF_SOURCE = Path(__file__).with_name("roof.cpp")
LLVM = f"/usr/lib/llvm-{LLVM_VERSION}"
FLAGS = ("-O3", "-march=native", "-shared", "-fPIC", "-w", f"-L{LLVM}/lib",
         f"-Wl,-rpath,{LLVM}/lib")
MOST_WORDS = 12


def cached(name, key, make):
    """The file in the cache for a key, a tuple of texts; make(path) writes it once."""
    digest = hashlib.sha256("\0".join(map(str, key)).encode()).hexdigest()[:20]
    path = CACHE / f"{name}-{digest}.so"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
        make(unfinished)
        unfinished.rename(path)
    return path


class BoundCall(ctypes.Structure):
    """A function and its words, as roof.cpp has it."""

    _fields_ = [("function", ctypes.c_void_p), ("count", ctypes.c_int64),
                ("words", ctypes.c_void_p * MOST_WORDS)]


class Native:
    """The kernels of roof.cpp. OpenMP's number of threads is that of the environment."""

    def __init__(self):
        command = [llvm_tool("clang++"), *FLAGS, "-std=c++17", "-fopenmp", "-fno-builtin",
                   ROOF_SOURCE]
        path = cached("roof", (ROOF_SOURCE.read_text(), *command),
                      lambda target: run([*command, "-o", target]))
        self.library = ctypes.CDLL(str(path))
        self.library.repeat_calls.argtypes = [ctypes.POINTER(BoundCall), ctypes.c_int64,
                                              ctypes.c_int64]

    def loop(self, *calls, keep=()):
        """calls: (address of a function, its words). A function of n that makes all
        calls n times without returning to Python. keep: what must live as long."""
        bound = (BoundCall * len(calls))()
        for slot, (function, words) in zip(bound, calls, strict=True):
            slot.function, slot.count = function, len(words)
            for i, word in enumerate(words):
                slot.words[i] = word
        repeat, count = self.library.repeat_calls, len(calls)

        def loop(times, _keep=keep):
            repeat(bound, count, times)
        return loop

    def roof(self, case, buffers, streaming):
        """A loop over the copy that moves the bytes of a case, on its arrays."""
        first = {"copy": ("y", "x"), "copy2": ("y", "x", "sum", "residual"),
                 "triad": ("dx", "x", "dy")}[case.roof]
        function = getattr(self.library, f"roof_{case.roof}{'_nt' if streaming else ''}")
        # The x of packed rows has gaps; the packed rows themselves are as good.
        words = [(buffers.base if name == "x" else buffers[name]).ctypes.data for name in first]
        return self.loop((address(function), [*words, case.array_bytes]), keep=(buffers,))


def address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


class Program:
    """This project's code for a call, compiled as a user would: `norm-to-cpu`, LLVM's
    own -O3, OpenMP threads."""

    def __init__(self, made):
        self.function = address(ctypes.CDLL(str(program_path(made)))._mlir_ciface_main)

    @staticmethod
    def words(made, results):
        """The descriptors of operands and results, whose addresses are the arguments."""
        return [descriptor(array, offset=0) for array in (*made.inputs(), *results)]


def compiler_version():
    """Changes with every build of the compiler."""
    return str([path.stat().st_mtime_ns for path in
                (tool("norm-opt"), *sorted((build_dir() / "lib").glob("libNorm.so*")))])


def program_path(made):
    """The shared library of a call, compiled unless it is cached."""
    pipeline = "--norm-to-cpu=strides=unit host"
    module = module_text([made])

    def make(target):
        source = target.with_suffix(target.suffix + ".ll")
        run([llvm_tool("mlir-translate"), "--mlir-to-llvmir", "-", "-o", source],
            stdin=norm_opt(module, pipeline))
        run([llvm_tool("clang"), *FLAGS, source, "-lomp", "-lm", "-o", target])
        source.unlink()
    return cached("norm", (module, pipeline, compiler_version()), make)


def compile_all(calls):
    """Compiles calls into the cache, on all processors; a failure waits for its case."""
    def compile_one(make):
        with contextlib.suppress(Exception):
            program_path(make())
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(compile_one, calls))
