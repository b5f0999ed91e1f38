"""JAX: XLA for CPUs."""

import numpy as np

from ..suite import EPSILON
from . import Bound, Peer, Prepared, repeat


class Jax(Peer):
    """Its threads are those that the process may run on."""

    name = "jax"

    def __init__(self, threads, native):
        super().__init__(threads, native)
        import jax
        self.jax, self.version = jax, jax.__version__

    def forward(self, case):
        jnp = self.jax.numpy

        def norm(x, scale, shift=None):
            wide = x.astype(jnp.float32)
            if case.is_centred:
                wide = wide - wide.mean(-1, keepdims=True)
            square = (wide * wide).mean(-1, keepdims=True)
            y = wide * self.jax.lax.rsqrt(square + EPSILON) * scale.astype(jnp.float32)
            if shift is not None:
                y = y + shift.astype(jnp.float32)
            return y.astype(x.dtype)

        def function(x, *rest):
            if case.packed:
                x = x[:, :case.shape[1]]
            if not case.has_residual:
                return (norm(x, *rest),)
            total = x + rest[0]
            return norm(total, *rest[1:]), total
        return function

    def backward(self, case):
        jnp = self.jax.numpy

        def function(dy, x, rstd, scale, mean=None):
            kind = x.dtype
            dy, x, scale = (v.astype(jnp.float32) for v in (dy, x, scale))
            rstd = rstd[:, None]
            normalized = (x if mean is None else x - mean[:, None]) * rstd
            scaled = dy * scale
            dx = scaled - normalized * (scaled * normalized).mean(-1, keepdims=True)
            if mean is not None:
                dx = dx - scaled.mean(-1, keepdims=True)
            sums = ((dy * normalized).sum(0), dy.sum(0))[:1 + (mean is not None)]
            return tuple(v.astype(kind) for v in (dx * rstd, *sums))
        return function

    def prepare(self, case, buffers):
        if case.is_backward:
            names = ("dy", "x", "rstd", "scale", "mean")[:4 + case.is_centred]
            function = self.jax.jit(self.backward(case))
        else:
            names = ("x", "residual") if case.has_residual else ("x",)
            names += ("scale", "shift") if case.is_centred else ("scale",)
            function = self.jax.jit(self.forward(case))
        kept = [None]

        def bind(target):
            arrays = [self.jax.device_put(target.base if name == "x" else target[name])
                      for name in names]

            def call():
                kept[0] = None
                kept[0] = self.jax.block_until_ready(function(*arrays))

            def results():
                return {name: np.asarray(value)
                        for name, value in zip(target.results(), kept[0], strict=True)}
            return Bound(repeat(call), results)
        return Prepared(bind, "XLA", "allocates its results; inputs are its own copies")

    def forget(self):
        self.jax.clear_caches()
