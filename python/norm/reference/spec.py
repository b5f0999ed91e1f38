"""The attributes of an op, and the rows that its statistics cover."""

from dataclasses import dataclass
from typing import Optional

import numpy as np

from norm.types import F32, float_type

PLACEMENTS = ("inside_sqrt", "outside_sqrt", "max_inside", "max_outside", "none")
CENTRED = ("layer_norm", "group_norm", "instance_norm", "batch_norm_training",
           "batch_norm_inference")
FORWARD = CENTRED + ("rms_norm", "l2_norm")
BACKWARD = tuple(f"{kind}_backward" for kind in FORWARD)
ALGEBRA = ("moments", "combine_moments", "rstd", "normalize", "update_running",
           "backward_moments", "backward_normalize")


@dataclass(frozen=True)
class NormSpec:
    """The attributes of one op, and the element types of its results.

    kind: an op's name without `norm.`, of FORWARD, BACKWARD or ALGEBRA."""

    kind: str
    axes: tuple = ()  # reduced axes, negatives allowed
    epsilon: float = 1e-5
    placement: str = "inside_sqrt"
    affine_axes: Optional[tuple] = None  # None: the op's default
    compute: Optional[str] = None  # None: widest of f32, x and residual
    correction: int = 0
    scale_offset: float = 0.0
    affine_in: str = "compute"  # or "result"
    sum_rounding: str = "stored"  # or "compute"
    zero_policy: str = "ieee"  # or "zero"
    groups: Optional[int] = None  # group_norm
    channel_axis: Optional[int] = None  # group_norm
    momentum: Optional[float] = None  # the weight of what is new
    running_correction: int = 1
    about: str = "mean"  # moments; or "zero"
    statistic: str = "mean"  # update_running; or "variance"
    result: Optional[str] = None  # the type of y or dx; None: x's
    sum: Optional[str] = None  # of the stored sum; None: x's
    statistics: Optional[str] = None  # of the algebra's statistics; None: compute
    running: Optional[str] = None  # of new running values; None: the old ones'
    gradients: Optional[str] = None  # of dscale and dshift; None: x's

    def __post_init__(self):
        assert self.kind in FORWARD + BACKWARD + ALGEBRA, self.kind
        assert self.placement in PLACEMENTS, self.placement
        assert self.affine_in in ("compute", "result"), self.affine_in
        assert self.sum_rounding in ("stored", "compute"), self.sum_rounding
        assert self.zero_policy in ("ieee", "zero"), self.zero_policy
        assert self.about in ("mean", "zero"), self.about
        assert self.statistic in ("mean", "variance"), self.statistic
        assert self.kind in ALGEBRA or self.centred or self.correction == 0
        assert (self.norm == "group_norm") == (self.groups is not None)

    @property
    def norm(self):
        """The forward op that a backward op belongs to."""
        return self.kind.removesuffix("_backward")

    @property
    def centred(self):
        return self.norm in CENTRED

    def reduced(self, rank):
        """The reduced axes of x: sorted, not negative."""
        return tuple(sorted(a % rank for a in self.axes))

    def kept(self, rank):
        return tuple(a for a in range(rank) if a not in self.reduced(rank))

    def affine(self, rank):
        """The axes of x that scale and shift index."""
        if self.affine_axes is not None:
            return tuple(a % rank for a in self.affine_axes)
        if self.norm == "group_norm":
            return (self.channel_axis % rank,)
        if self.norm.startswith("batch_norm"):
            return self.kept(rank)
        assert self.norm != "instance_norm", "instance_norm states its affine axes"
        return self.reduced(rank)

    def view(self, shape):
        """x's shape with group_norm's channel axis split, and the view's kept and
        reduced axes."""
        rank = len(shape)
        if self.norm != "group_norm":
            return tuple(shape), self.kept(rank), self.reduced(rank)
        c = self.channel_axis % rank
        assert c in self.reduced(rank) and shape[c] % self.groups == 0
        split = (*shape[:c], self.groups, shape[c] // self.groups, *shape[c + 1:])
        reduced = tuple(a + (a >= c) for a in self.reduced(rank))
        return split, tuple(a for a in range(rank + 1) if a not in reduced), reduced

    def kept_shape(self, shape):
        """The shape of the statistics."""
        view, kept, _ = self.view(shape)
        return tuple(view[a] for a in kept)

    def divisor(self, extent, correction=None):
        """What a sum of `extent` squares is divided by."""
        if self.norm == "l2_norm":
            return 1
        return extent - (self.correction if correction is None else correction)

    def compute_type(self, *operands):
        """`compute`, or the widest of f32 and the operands that are not None."""
        if self.compute is not None:
            return float_type(self.compute)
        types = [F32] + [float_type(o.dtype) for o in operands if o is not None]
        return max(types, key=lambda t: t.precision)


def to_rows(array, spec):
    """x's shape -> [product of kept dims, product of reduced dims]."""
    view, kept, reduced = spec.view(array.shape)
    rows = int(np.prod([view[a] for a in kept], dtype=np.int64))
    extent = int(np.prod([view[a] for a in reduced], dtype=np.int64))
    return np.ascontiguousarray(array.reshape(view).transpose(kept + reduced)).reshape(rows, extent)


def from_rows(rows, shape, spec):
    """The inverse of `to_rows` for an array of `shape`."""
    view, kept, reduced = spec.view(shape)
    order = kept + reduced
    return rows.reshape([view[a] for a in order]).transpose(np.argsort(order)).reshape(shape)


def over_other_axes(array, axes):
    """[product of `axes`, product of the other axes], and the dims at `axes`: each row
    holds what one parameter of these affine axes is used with."""
    others = tuple(a for a in range(array.ndim) if a not in axes)
    dims = tuple(array.shape[a] for a in axes)
    moved = np.ascontiguousarray(array.transpose(tuple(axes) + others))
    count = int(np.prod(dims, dtype=np.int64))
    rest = int(np.prod([array.shape[a] for a in others], dtype=np.int64))
    return moved.reshape(count, rest), dims
