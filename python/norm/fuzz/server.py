"""A norm-fuzz process: parses, transforms, compiles and runs modules one after another."""

import os
import select
import subprocess
import time
from contextlib import suppress

import numpy as np

from norm.tools import tool
from norm.types import BF16

SECONDS = 120.0  # a command that takes longer hangs


class Dead(Exception):
    """The process ended or hung in a command: how, and what it wrote to stderr."""


class Server:
    """Starts when it is first used, and anew after it died. threads: of compiled code."""

    def __init__(self, seconds=SECONDS, threads=1, program="norm-fuzz"):
        self.seconds, self.threads, self.program = seconds, threads, program
        self.process = None
        self.commands = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
                with suppress(OSError):
                    stream.close()
            self.process = None

    def start(self):
        env = {**os.environ, "OMP_NUM_THREADS": str(self.threads), "OMP_WAIT_POLICY": "passive"}
        self.process = subprocess.Popen(
            [tool(self.program)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, bufsize=0)
        os.set_blocking(self.process.stdout.fileno(), False)
        os.set_blocking(self.process.stderr.fileno(), False)
        self.commands = 0

    # ---- commands -----------------------------------------------------------

    def parse(self, text):
        return self.command("parse", text.encode())

    def passes(self, pipeline):
        return self.command("passes", pipeline.encode())

    def roundtrip(self):
        return self.command("roundtrip")

    def print(self):
        return self.command("print")[1]

    def compile(self, target, strides="dispatch", threads=False, level=0):
        return self.command(f"compile {target} {strides} {int(threads)} {level}")

    def inputs(self, arrays):
        """Arrays of any layout; bf16 as its bits."""
        parts = []
        for array in arrays:
            if array.dtype == BF16.dtype:
                array = array.view(np.uint16)
            kind = "|b1" if array.dtype == np.bool_ else array.dtype.str
            order = "F" if array.ndim > 1 and array.flags.f_contiguous and \
                not array.flags.c_contiguous else "C"
            extents = [*array.shape]
            strides = np.ones(array.ndim, np.int64)
            axes = range(array.ndim) if order == "F" else reversed(range(array.ndim))
            step = 1
            for axis in axes:
                strides[axis] = step
                step *= array.shape[axis]
            numbers = " ".join(map(str, (array.ndim, *extents, *strides)))
            parts.append(f"{kind} {numbers}\n".encode() + array.tobytes(order))
        return self._exchange(f"inputs {len(arrays)}\n".encode() + b"".join(parts))

    def call(self, dtypes, shapes=()):
        """The results as arrays of these dtypes, or None and what was wrong. shapes: of
        all results; without them the process infers them."""
        words = ["call", *("x".join(map(str, ("s", *shape))) for shape in shapes)]
        fine, data = self._exchange(" ".join(words).encode() + b"\n", raw=True)
        if not fine:
            return None, data.decode(errors="replace")
        arrays, at = [], 0
        for dtype in dtypes:
            end = data.index(b"\n", at)
            words = data[at:end].decode().split()
            shape = tuple(map(int, words[2:]))
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            arrays.append(np.frombuffer(data[end + 1:end + 1 + size], dtype).reshape(shape))
            at = end + 1 + size
        return arrays, ""

    def command(self, line, payload=None):
        """Whether it went well, and the text of the reply."""
        head = line if payload is None else f"{line} {len(payload)}"
        return self._exchange(head.encode() + b"\n" + (payload or b""))

    # ---- the pipe -----------------------------------------------------------

    def _exchange(self, data, raw=False):
        if self.process is None:
            self.start()
        self.commands += 1
        try:
            self.process.stdin.write(data)
            deadline = time.monotonic() + self.seconds
            head = b""
            while b"\n" not in head:
                head += self._read(1 << 16, deadline)
            head, body = head.split(b"\n", 1)
            word, size = head.split()
            parts, missing = [body], int(size) - len(body)
            while missing > 0:
                parts.append(self._read(missing, deadline))
                missing -= len(parts[-1])
        except BrokenPipeError:
            self._die("ended")
        body = b"".join(parts)
        return word == b"ok", body if raw else body.decode(errors="replace")

    def _read(self, size, deadline):
        while True:
            ready, _, _ = select.select([self.process.stdout], [], [],
                                        max(0, deadline - time.monotonic()))
            if not ready:
                self._die("hung")
            data = self.process.stdout.read(size)
            if data:
                return data
            if data == b"":
                self._die("ended")

    def _die(self, how):
        if how == "ended":
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
        status = self.process.poll()
        with suppress(OSError):
            text = (self.process.stderr.read() or b"").decode(errors="replace")
        self.close()
        what = f"no reply within {self.seconds:g} s" if how == "hung" else f"exit status {status}"
        raise Dead(f"{what}\n{text[-4000:]}")
