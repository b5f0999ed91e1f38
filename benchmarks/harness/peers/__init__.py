"""Lanes: this project, and other libraries.

A lane is a `Peer`: `prepare` compiles or plans one case outside the timed region, the
`Prepared` binds it to a set of buffers, and the `Bound` is called. All are optional: an
adapter that cannot be made is skipped, and the reason printed.
"""

import importlib
from dataclasses import dataclass
from typing import Callable

# Module, class: in the order of tables.
ADAPTERS = (("norm_", "Norm"), ("norm_", "DynamicRows"), ("norm_", "Dynamic"),
            ("norm_", "Versions"),
            ("torch_", "Eager"), ("torch_", "Compiled"), ("onednn", "OneDNN"),
            ("ort", "OnnxRuntime"), ("openvino_", "OpenVINO"), ("jax_", "Jax"),
            ("iree_", "Iree"))


class Unsupported(Exception):
    """The peer has no such norm; its text says what it lacks."""


@dataclass
class Bound:
    """loop(n) makes n calls. results: name -> array, after a call."""

    loop: Callable
    results: Callable


@dataclass
class Prepared:
    """impl: what computes the norm, in the library's words. note: what a reader of the
    times must know. bind: buffers -> `Bound`."""

    bind: Callable
    impl: str = ""
    note: str = ""


class Peer:
    """name: of the lane; version: of the library. native: `Native`, for loops."""

    name = version = ""

    def __init__(self, threads, native):
        self.threads, self.native = threads, native

    def prepare(self, case, buffers):
        """Compiles the case; Unsupported, or the library's own error, if it cannot."""
        raise NotImplementedError

    def prepare_channels(self, case, buffers):
        """The same for a norm of images, a channels.ChannelCase."""
        raise Unsupported("no norms of images here")

    def forget(self):
        """Drops what was kept for the last case."""


def repeat(call):
    """A loop over a Python callable."""
    def loop(times):
        for _ in range(times):
            call()
    return loop


def first_line(error):
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:160]}" if text else \
        type(error).__name__


def load(names, threads, native, log):
    """The peers that can be made, of those named; all if none is."""
    peers = []
    for module, adapter in ADAPTERS:
        try:
            found = getattr(importlib.import_module(f".{module}", __name__), adapter)
            if names and found.name not in names:
                continue
            peers.append(found(threads, native))
            log(f"{peers[-1].name}: {peers[-1].version}")
        except Exception as error:  # of another library
            log(f"{adapter}: skipped, {first_line(error)}")
    return peers
