"""This project."""

import ctypes

from ..native import Program
from . import Bound, Peer, Prepared


class Norm(Peer):
    name = version = "norm"

    def prepare(self, case, buffers):
        program = Program(buffers.call())

        def bind(target):
            words = program.words(target.call(), list(target.results().values()))
            call = (program.function, [ctypes.addressof(word) for word in words])
            return Bound(self.native.loop(call, keep=(words, target)), target.results)
        return Prepared(bind, impl="norm-to-cpu, clang -O3")
