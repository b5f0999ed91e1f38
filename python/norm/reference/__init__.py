"""The oracle: what each op of the dialect computes, written from docs/Spec.md.

It shares no code with the compiler. Values are computed in f64, and in x87
extended precision for ops that compute in f64, from exact (compensated) sums;
they are rounded where the contract rounds and nowhere else.

    forward     the seven norms: `evaluate`
    backward    their gradients: `evaluate_backward`
    statistics  the algebra of statistics: `moments`, `combine_moments`, ..
"""

from norm.reference.backward import evaluate_backward
from norm.reference.forward import (
    Reference,
    affine_steps,
    evaluate,
    factor,
    layer_norm,
    rms_norm,
    row_sum,
)
from norm.reference.spec import (
    ALGEBRA,
    BACKWARD,
    CENTRED,
    FORWARD,
    PLACEMENTS,
    NormSpec,
    from_rows,
    to_rows,
)
from norm.reference.statistics import (
    backward_moments,
    backward_normalize,
    combine_moments,
    moments,
    normalize,
    rstd,
    update_running,
)
from norm.reference.values import Value, Values

__all__ = [
    "ALGEBRA", "BACKWARD", "CENTRED", "FORWARD", "PLACEMENTS", "NormSpec", "Reference", "Value",
    "Values", "affine_steps", "backward_moments", "backward_normalize", "combine_moments",
    "evaluate", "evaluate_backward", "factor", "from_rows", "layer_norm", "moments", "normalize",
    "rms_norm", "row_sum", "rstd", "to_rows", "update_running"]
