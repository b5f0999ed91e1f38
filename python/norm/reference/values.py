"""Results with what their errors are measured by."""

from dataclasses import dataclass
from typing import Optional

import numpy as np

from norm.reference.spec import NormSpec
from norm.types import FloatType, cast


@dataclass
class Value:
    """One result before its last rounding, in the result's shape.

    An implementation in type `arithmetic` may be off by `factor` times the promise's
    ULPS (at most `cap`) ulps of `size`, and by `extra`, before it rounds to `type`.
    nan_for_infinity: it is, or comes from, a mean that may be NaN where it is infinite."""

    exact: np.ndarray  # wide
    type: Optional[FloatType]  # None: i64, and exact
    size: np.ndarray = None
    arithmetic: FloatType = None
    factor: float = 1
    cap: float = np.inf
    extra: np.ndarray = 0.0
    nan_for_infinity: bool = False

    def rounded(self):
        if self.type is None:
            return np.asarray(self.exact, np.int64)
        return cast(self.exact, self.type)


@dataclass
class Values:
    """The results of a backward op or of one of the statistics algebra, by name."""

    spec: NormSpec
    compute: FloatType  # the type of the arithmetic: not below f32
    values: dict

    def __getitem__(self, name):
        """The result as an array of its element type."""
        return self.values[name].rounded()
