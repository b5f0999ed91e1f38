"""Errors of layer norm on rows of a growing mean, of this project and of each peer."""

import numpy as np

from .buffers import Arena, Buffers, Data
from .peers import first_line
from .suite import Case

MEANS = (0.0, 1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7)
CASE = Case("layer_norm", (8, 4096))


def ulps(got, expected):
    """The largest error, in units of the last place of the largest f32 result."""
    largest = np.abs(expected).max()
    unit = 2.0 ** (np.floor(np.log2(largest)) - 23)
    return float(np.abs(got.astype(np.float64) - expected).max() / unit)


def errors(peers, log):
    """lane -> its error at each of MEANS, None where it failed; rows have deviation 1."""
    found = {}
    for mean in MEANS:
        data = Data.of(CASE, mean=mean, std=1.0)
        buffers = Buffers(CASE, data, Arena())
        for peer in peers:
            buffers.clear()
            try:
                bound = peer.prepare(CASE, buffers).bind(buffers)
                bound.loop(1)
                value = ulps(bound.results()["y"], data.expected["y"])
            except Exception as reason:  # of another library
                log(f"  {peer.name}: failed, {first_line(reason)}")
                value = None
            found.setdefault(peer.name, []).append(value)
            peer.forget()
    return found
