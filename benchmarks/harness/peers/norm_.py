"""This project: code for the shape of the case, for any number of rows, for any shape, and
for any shape with a version for this one's rows."""

import ctypes
import functools
import subprocess

from norm.tools import ROOT

from ..native import Program
from . import Bound, Peer, Prepared, Unsupported


@functools.cache
def commit():
    """Of the sources, "-dirty" if they were changed since."""
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--exclude=*"],
                          capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


class Norm(Peer):
    name = "norm"

    def __init__(self, threads, native):
        super().__init__(threads, native)
        self.version = commit()

    @staticmethod
    def asked(case, call):
        """What is compiled of the call of a case."""
        return call

    def prepare(self, case, buffers):
        program = Program(self.asked(case, buffers.call()))

        def bind(target):
            words = program.words(target.call(), list(target.results().values()))
            call = (program.function, [ctypes.addressof(word) for word in words])
            return Bound(self.native.loop(call, keep=(words, target)), target.results)
        return Prepared(bind, impl="norm-to-cpu, clang -O3")

    prepare_channels = prepare


class Dynamic(Norm):
    """Code for any shape."""

    name = "norm.dynamic"

    @staticmethod
    def unknown(case, rank):
        """How many of x's axes, from the first on, the code does not know."""
        return rank

    @classmethod
    def asked(cls, case, call):
        if case.packed:
            raise Unsupported("a slice has static extents here")
        call.dynamic = tuple(range(cls.unknown(case, call.x.ndim)))
        return call


class DynamicRows(Dynamic):
    """Code for any number of rows, or of images and samples."""

    name = "norm.rows"

    @staticmethod
    def unknown(case, rank):
        return 1 if case.is_channels else rank - 1


class Versions(Dynamic):
    """Code for any shape that has a version for rows, or images, of the case's extents."""

    name = "norm.versions"

    @classmethod
    def asked(cls, case, call):
        call = super().asked(case, call)
        call.versions = (tuple(range(DynamicRows.unknown(case, call.x.ndim))),)
        return call


LANES = (Norm, DynamicRows, Dynamic, Versions)
