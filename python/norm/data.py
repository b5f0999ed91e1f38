"""Test data by kind: rows drawn at random and rows chosen to hurt.

Each maker takes (rng, rows, extent) and returns f64 [rows, extent], to be
rounded to the case's type. `RANDOM` kinds have independent elements; the error
promise is tighter for them.
"""

import zlib

import numpy as np

from norm.types import cast, float_type


def normal(rng, rows, extent, mean=0.0, std=1.0):
    return mean + std * rng.standard_normal((rows, extent))


def levels(rng, rows, extent):
    """Rows of deviation 1/16, 1/8, .. 4 and around, for an epsilon among them."""
    std = 2.0 ** (np.arange(rows) % 7 - 4)
    return std[:, None] * normal(rng, rows, extent, mean=0.1)


def constant(rng, rows, extent):
    """A different value in each row, with a full significand."""
    return np.repeat(rng.standard_normal((rows, 1)) * 1e3, extent, axis=1)


def large_constant(rng, rows, extent):
    del rng
    return np.full((rows, extent), 1e10)


def zero(rng, rows, extent):
    del rng
    return np.zeros((rows, extent))


def alternating(rng, rows, extent):
    """1e7, 1e7 + 1, ..: one f32 step apart."""
    del rng
    return 1e7 + np.broadcast_to(np.arange(extent) % 2, (rows, extent))


def far_start(rng, rows, extent):
    """The first 64 elements far from the rest: what a sampled shift misjudges."""
    x = normal(rng, rows, extent)
    x[:, :64] += 1e4
    return x


def zero_start(rng, rows, extent):
    x = normal(rng, rows, extent, mean=1e6)
    x[:, :64] = 0
    return x


def ramp(rng, rows, extent):
    del rng
    return np.broadcast_to(np.linspace(0, 1e5, extent), (rows, extent))


def outlier(rng, rows, extent):
    """One element of 1e4, at a different place in each row."""
    x = normal(rng, rows, extent)
    x[np.arange(rows), np.arange(rows) * 37 % extent] = 1e4
    return x


def nearly_constant(rng, rows, extent):
    """An odd 24-bit integer everywhere and its neighbour once: mean/std of 1e9."""
    del rng
    x = np.full((rows, extent), 16777213.0)
    x[np.arange(rows), np.arange(rows) * 37 % extent] -= 1
    return x


def by_turns(makers, rng, rows, extent, first=0):
    """Row i by the maker of number first + i, counted round."""
    return np.concatenate([makers[(first + i) % len(makers)](rng, 1, extent) for i in range(rows)])


def mixed(rng, rows, extent):
    """Hostile rows among harmless ones: neighbours must not decide a row's bits."""
    return by_turns((normal, alternating, normal, far_start, constant, zero, zero_start, normal),
                    rng, rows, extent)


def not_finite(rng, rows, extent):
    """Every other row has an infinity, a NaN or both infinities in it."""
    x = normal(rng, rows, extent)
    for row in range(1, rows, 2):
        x[row, row * 37 % extent] = (np.inf, np.nan, -np.inf)[row // 2 % 3]
        if row // 2 % 4 == 3:
            x[row, row * 11 % extent] = np.inf
    return x


def distant(rng, rows, extent):
    return normal(rng, rows, extent, mean=1e7)


def with_one(value, place):
    """Normal rows with one element of `value`, at that part of their length."""
    def maker(rng, rows, extent):
        x = normal(rng, rows, extent)
        x[:, min(int(place * extent), extent - 1)] = value
        return x
    return maker


# What hurts statistics, one kind a row, those that are not finite among them.
HOSTILE = (normal, distant, with_one(np.nan, 0.5), large_constant, with_one(1e8, 0.3),
           with_one(np.inf, 1), alternating, far_start, nearly_constant)


def hostile(rng, rows, extent, element, first=0):
    """Rows of the kinds of HOSTILE by turns, within what `element` holds."""
    x = by_turns(HOSTILE, rng, rows, extent, first)
    largest = float_type(element).largest
    return np.where(np.isfinite(x), np.clip(x, -largest, largest), x)


RANDOM = {"normal", "levels"}
MAKERS = {maker.__name__: maker for maker in (
    normal, levels, constant, large_constant, zero, alternating, far_start, zero_start, ramp,
    outlier, nearly_constant, mixed, not_finite)}


def generator(name):
    """A generator seeded by a name: the same data in every run and process."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def draw(rng, shape, element, mean=0.0, std=1.0):
    """Independent normal elements of a type."""
    return cast(mean + std * rng.standard_normal(shape), float_type(element))
