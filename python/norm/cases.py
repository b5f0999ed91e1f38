"""One op on one set of arrays, described by a few words: what tables and the fuzzer draw."""

from dataclasses import dataclass, field

import numpy as np

from norm.data import MAKERS, RANDOM, draw, generator
from norm.program import Call, Slice
from norm.reference import (
    ALGEBRA,
    BACKWARD,
    NormSpec,
    backward_moments,
    evaluate,
    from_rows,
    moments,
    rstd,
)
from norm.types import cast, float_type

PATHS = ("cpu", "reference", "linalg")


@dataclass(frozen=True)
class Case:
    """operands: letters of those there are besides what the op cannot do without.

    forward   r residual  g scale  b shift  u running values  a momentum operand
    backward  r residual  d dsum  m mean  v variance  i rstd  g scale
    algebra   k mask  m mean  g scale  b shift  n count  v variance  a momentum operand
    """

    name: str
    op: str
    shape: tuple
    axes: tuple
    type: str = "f32"  # x's
    options: dict = field(default_factory=dict)  # of NormSpec
    operands: str = "gb"
    residual_type: str = ""  # default: x's
    parameter_type: str = ""  # of scale and shift; default: x's
    running_type: str = ""  # of running values; default: f32, for f64 x f64
    dy_type: str = ""  # default: x's
    results: tuple = ("y",)
    dynamic: str = "no"  # or "all", "kept", "reduced"
    data: str = "normal"
    mean: float = 0.5
    std: float = 1.0
    layout: str = "plain"  # or "fortran", "slice", "transpose"
    paths: tuple = PATHS

    @property
    def rows(self):
        return "random" if self.data in RANDOM else "any"

    def spec(self):
        return NormSpec(kind=self.op, axes=self.axes, **self.options)

    def extent(self):
        view, _, reduced = self.spec().view(self.shape)
        return int(np.prod([view[a] for a in reduced], dtype=np.int64))

    def runs_on(self, path):
        if path not in self.paths:
            return False
        if path != "linalg":
            return True
        # There rms_norm differs from layer_norm in the statistic alone.
        if self.op == "rms_norm" and (self.type != "f32" or self.parameter_type):
            return False
        gentle = self.data != "normal" or abs(self.mean) <= 1e3 * self.std
        return self.extent() <= 512 and gentle


def _x(case, rng, spec):
    if case.data == "normal":
        return draw(rng, case.shape, case.type, case.mean, case.std)
    rows = int(np.prod(spec.kept_shape(case.shape), dtype=np.int64))
    extent = case.extent()
    values = MAKERS[case.data](rng, rows, extent) if rows and extent else np.zeros((rows, extent))
    return cast(np.ascontiguousarray(from_rows(values, case.shape, spec)), float_type(case.type))


def _sliced(x, rng):
    """x as every second or third element of a larger array, off its start; only
    the last axis, if long, is cut without a stride."""
    strides = tuple(1 if n > 64 else 2 + a % 2 for a, n in enumerate(x.shape))
    offsets = tuple(1 + a for a in range(x.ndim))
    base = draw(rng, [o + s * n for o, s, n in zip(offsets, strides, x.shape, strict=True)],
                x.dtype, 100.0)
    view = tuple(slice(o, o + s * n, s)
                 for o, s, n in zip(offsets, strides, x.shape, strict=True))
    base[view] = x
    return Slice(base, offsets, strides)


def call(case):
    """The case's arrays and op."""
    spec, rng, rank = case.spec(), generator(case.name), len(case.shape)
    make = _ALGEBRA_MAKERS.get(case.op, _backward if case.op in BACKWARD else _forward)
    dynamic = {"no": (), "all": tuple(range(rank)), "kept": spec.kept(rank),
               "reduced": spec.reduced(rank)}[case.dynamic]
    made = Call(spec, results=case.results, dynamic=dynamic, **make(case, spec, rng))
    if case.layout == "fortran":
        for name, array in made.operands().items():
            if array.ndim < 2:
                continue
            setattr(made, name if hasattr(made, name) else "x", np.asfortranarray(array))
    elif case.layout == "slice":
        made.slice = _sliced(made.x, rng)
    elif case.layout == "transpose":
        made.transposed = tuple(reversed(range(rank)))
    return made


def _forward(case, spec, rng):
    made = {"x": _x(case, rng, spec)}
    if "r" in case.operands:
        made["residual"] = draw(rng, case.shape, float_type(case.residual_type or case.type),
                                0.25, case.std)
    made.update(_parameters(case, spec, rng))
    kept = spec.kept_shape(case.shape)
    running = float_type(case.running_type or ("f64" if case.type == "f64" else "f32"))
    if spec.kind == "batch_norm_inference":
        compute = spec.compute_type(made["x"], made.get("residual"))
        made["mean"] = draw(rng, kept, compute, case.mean, case.std)
        made["variance"] = _variance(case, rng, kept, compute)
    if "u" in case.operands:
        made["running_mean"] = draw(rng, kept, running, case.mean, case.std)
        made["running_variance"] = cast(case.std**2 * rng.random(kept), running)
    if "a" in case.operands:
        made["momentum"] = np.float32(0.3)
    return made


def _variance(case, rng, shape, element):
    """Of the sizes that `data` has: zero, around an epsilon, or any."""
    size = {"zero": 0, "levels": 4.0 ** (np.arange(np.prod(shape)) % 7 - 4).reshape(shape)}
    return cast(size.get(case.data, case.std**2) * rng.random(shape), float_type(element))


def _parameters(case, spec, rng):
    """scale and shift."""
    made = {}
    parameter_type = float_type(case.parameter_type or case.type)
    for letter, name, mean in (("g", "scale", 1.0 - spec.scale_offset), ("b", "shift", 0.0)):
        if letter in case.operands:
            shape = [case.shape[a] for a in spec.affine(len(case.shape))]
            made[name] = draw(rng, shape, parameter_type, mean, 0.5)
    return made


def _backward(case, spec, rng):
    made = {"x": _x(case, rng, spec)}
    if "r" in case.operands:
        made["residual"] = draw(rng, case.shape, float_type(case.residual_type or case.type),
                                0.25, case.std)
    made.update(_parameters(case, spec, rng))
    made["dy"] = draw(rng, case.shape, case.dy_type or case.type, 0.25)
    if "d" in case.operands:
        made["dsum"] = draw(rng, case.shape, case.type)
    kept, compute = spec.kept_shape(case.shape), spec.compute_type(made["x"], made.get("residual"))
    if spec.norm == "batch_norm_inference":
        saved = {"mean": draw(rng, kept, compute, case.mean, case.std),
                 "variance": _variance(case, rng, kept, compute),
                 "rstd": cast(1 / (case.std * (0.1 + rng.random(kept))), compute)}
    else:
        # What the forward op saves.
        fields = {**case.options, "result": None, "compute": case.options.get("compute")}
        fields.pop("gradients", None)
        forward = evaluate(NormSpec(kind=spec.norm, axes=case.axes, **fields), made["x"],
                           made.get("residual"))
        saved = {name: getattr(forward, name) for name in ("mean", "variance", "rstd")}
    for letter, name in (("m", "mean"), ("v", "variance"), ("i", "rstd")):
        if letter in case.operands:
            made[name] = saved[name]
    return made


def _mask(case, rng):
    """Some of each row; all and nothing of the first two, if there are two."""
    mask = rng.random(case.shape) < 0.6
    spec = case.spec()
    view, kept, reduced = spec.view(case.shape)
    moved = mask.transpose(kept + reduced)  # a view
    if kept and moved.shape[0] > 1:
        moved[0], moved[1] = True, False
    return mask


def _moments(case, spec, rng):
    made = {"x": _x(case, rng, spec)}
    if "k" in case.operands:
        made["mask"] = _mask(case, rng)
    return made


def _saved(case, spec, x, mask):
    """Statistics of x as an earlier part of the program has them."""
    about = "mean" if "m" in case.operands else "zero"
    shared = dict(compute=spec.compute, statistics=spec.statistics)
    parts = moments(NormSpec(kind="moments", axes=spec.axes, about=about, **shared), x, mask)
    options = {name: case.options[name] for name in ("epsilon", "placement", "correction")
               if name in case.options}
    # Without a count it is the sum of squares that counts, as for l2_norm.
    count = parts["count"] if "n" in case.operands else None
    factors = rstd(NormSpec(kind="rstd", **options, **shared), parts["m2"], count)
    saved = dict(rstd=factors["rstd"], variance=factors["variance"], count=parts["count"])
    if about == "mean":
        saved["mean"] = parts["mean"]
    return saved


def _take(saved, *names):
    return {name: saved[name] for name in names if name in saved}


def _normalize(case, spec, rng):
    x = _x(case, rng, spec)
    return {"x": x, **_take(_saved(case, spec, x, None), "mean", "rstd"),
            **_parameters(case, spec, rng)}


def _backward_moments(case, spec, rng):
    made = _moments(case, spec, rng)
    saved = _saved(case, spec, made["x"], made.get("mask"))
    made.update(_parameters(case, spec, rng))
    made["dy"] = draw(rng, case.shape, case.dy_type or case.type, 0.25)
    return {**made, **_take(saved, "mean", "rstd")}


def _backward_normalize(case, spec, rng):
    made = _backward_moments(case, spec, rng)
    saved = _saved(case, spec, made["x"], made.get("mask"))
    fields = ("axes", "affine_axes", "compute", "scale_offset", "statistics")
    sums = backward_moments(NormSpec(kind="backward_moments",
                                     **{name: getattr(spec, name) for name in fields}), **made)
    made["sum_gx"] = sums["sum_gx"]
    if "m" in case.operands:
        made["sum_g"] = sums["sum_g"]
    if "v" in case.operands:
        made["variance"] = saved["variance"]
    if "n" in case.operands:
        made["count"] = saved["count"]
    return made


def _counts(rng, shape):
    """0, 1 and more."""
    return rng.permuted(np.arange(np.prod(shape, dtype=np.int64)) % 7).reshape(shape)


def _parts(case, spec, rng):
    """combine_moments: parts along the first axis, some of them empty."""
    del spec
    count = _counts(rng, case.shape)
    m2 = case.std**2 * count * rng.random(case.shape) * (count > 1)
    made = {"x": cast(m2, float_type(case.type)), "count": count}
    if "m" in case.operands:
        mean = case.mean + case.std * rng.standard_normal(case.shape)
        made["mean"] = cast(np.where(count == 0, 0, mean), float_type(case.type))
    return made


def _rstd(case, spec, rng):
    made = {"x": _variance(case, rng, case.shape, case.type)}
    if "n" in case.operands:
        made["count"] = _counts(rng, case.shape)
    return made


def _update_running(case, spec, rng):
    made = {"x": draw(rng, case.shape, case.running_type or case.type, case.mean, case.std),
            "new": cast(case.std**2 * rng.random(case.shape) * 3, float_type(case.type)),
            "count": _counts(rng, case.shape)}
    if "a" in case.operands:
        made["momentum"] = np.float32(0.3)
    return made


_ALGEBRA_MAKERS = {
    "moments": _moments, "combine_moments": _parts, "rstd": _rstd, "normalize": _normalize,
    "update_running": _update_running, "backward_moments": _backward_moments,
    "backward_normalize": _backward_normalize}
assert set(_ALGEBRA_MAKERS) == set(ALGEBRA)
