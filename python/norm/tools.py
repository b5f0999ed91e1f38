"""Finding and running the built tools, and arrays in .npy files.

The build directory is $NORM_BUILD_DIR, else build/ at the repository's root.
"""

import os
import re
import shlex
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np

from norm.types import float_type

ROOT = Path(__file__).resolve().parent.parent.parent
TIMEOUT_SECONDS = 300


class ToolError(Exception):
    """A tool that failed: carries its command line, exit status and output."""

    def __init__(self, command, status, stdout, stderr):
        self.command, self.status = command, status
        self.stdout, self.stderr = stdout, stderr
        super().__init__(command, status, stdout, stderr)

    def __str__(self):
        line = shlex.join(map(str, self.command))
        parts = [f"exit status {self.status} from: {line}"]
        parts += [text.strip() for text in (self.stderr, self.stdout) if text.strip()]
        return "\n".join(parts)


def build_dir():
    return Path(os.environ.get("NORM_BUILD_DIR") or ROOT / "build")


def is_sanitized():
    """Whether the build has sanitizers: a Python that has none cannot load its libraries."""
    cache = build_dir() / "CMakeCache.txt"
    return cache.is_file() and bool(re.search(r"^NORM_SANITIZE:\w+=.", cache.read_text(), re.M))


def tool(name):
    """The path of a built tool; FileNotFoundError says how to get it."""
    path = build_dir() / "bin" / name
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: run ./dev build, or set "
                                "NORM_BUILD_DIR to a build directory")
    return path


def run(command, stdin=None, env=None):
    """Runs a command to its end and returns its stdout; ToolError if it fails."""
    command = [str(part) for part in command]
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True,
                              timeout=TIMEOUT_SECONDS, check=False,
                              env=None if env is None else {**os.environ, **env})
    except subprocess.TimeoutExpired as error:
        raise ToolError(command, "timeout", "", f"no end after {error.timeout} s") from None
    if done.returncode != 0:
        raise ToolError(command, done.returncode, done.stdout, done.stderr)
    return done.stdout


def norm_opt(module, *options):
    """norm-opt over a module's text; returns the module it prints."""
    return run([tool("norm-opt"), *options, "-"], stdin=module)


# Element types of arrays beside those that norms compute with.
DTYPES = {"i1": np.dtype(bool), "i8": np.dtype(np.int8), "i32": np.dtype(np.int32),
          "i64": np.dtype(np.int64), "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
          "f8E5M2": np.dtype(ml_dtypes.float8_e5m2)}


def stored_dtype(dtype):
    """What a file holds: the bit patterns of a type that NumPy does not have."""
    if dtype.type.__module__.startswith("ml_dtypes"):
        return np.dtype(f"uint{8 * dtype.itemsize}")
    return dtype


def save_npy(path, array):
    """Writes an array, keeping its memory order; bf16 as its uint16 patterns, 8-bit
    floats as uint8."""
    np.save(path, array.view(stored_dtype(array.dtype)))


def load_npy(path, element):
    """Reads an array of element type `element`; uint16 patterns for bf16, uint8 for
    8-bit floats."""
    array = np.load(path)
    dtype = DTYPES.get(element) or float_type(element).dtype
    expected = stored_dtype(dtype)
    if array.dtype != expected:
        raise TypeError(f"{path}: expected {expected} for {element}, got {array.dtype}")
    return array.view(dtype)


def norm_run(directory, module, inputs, results, target="cpu", entry="main", threads=None,
             optimize=None):
    """Compiles and runs function `entry` of the module text on arrays.

    directory: where the files go. inputs: arrays in argument order; those in
    Fortran order are passed so, as strided views. results: the results' element
    types, in order. optimize: LLVM's level, if not norm-run's own. Returns their arrays."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    source = directory / "module.mlir"
    source.write_text(module)
    command = [tool("norm-run"), source, f"--entry={entry}", f"--target={target}"]
    for number, array in enumerate(inputs):
        path = directory / f"input{number}.npy"
        save_npy(path, array)
        command.append(f"--input={path}")
    outputs = [directory / f"output{number}.npy" for number in range(len(results))]
    for path in outputs:
        path.unlink(missing_ok=True)
    command += [f"--output={path}" for path in outputs]
    if threads is not None:
        command.append(f"--threads={threads}")
    if optimize is not None:
        command.append(f"--optimize={optimize}")
    run(command)
    return [load_npy(path, element) for path, element in zip(outputs, results, strict=True)]
