"""Norms whose statistics run over space: batch, group and instance norms of images.

Cases, their arrays, and the check against the oracle, as suite.py and buffers.py have
them for rows. A large array repeats a block of channels (of whole groups): the oracle
need only see the block, and every element of a result is still checked.
"""

from dataclasses import dataclass, field
from math import prod

import numpy as np
from norm.data import draw, generator
from norm.program import Call
from norm.reference import NormSpec, from_rows
from norm.types import float_type

from . import suite
from .buffers import ArraySet
from .suite import EPSILON

BLOCK_ELEMENTS = 1 << 18  # what the oracle sees
LAYOUTS = ("nchw", "nhwc")
# Family -> (op, arrays of x's size that it reads and writes at least).
FAMILIES = {
    "bn_train": ("batch_norm_training", 2),
    "bn_train_backward": ("batch_norm_training_backward", 3),
    "bn_inference": ("batch_norm_inference", 2),
    "gn": ("group_norm", 2),
    "in": ("instance_norm", 2),
}
# Of rows and of images, in the order of tables.
ALL_FAMILIES = (*suite.FAMILIES, *FAMILIES)


@dataclass(frozen=True)
class ChannelCase(suite.NormCase):
    """One norm of images. shape: [samples, channels, *space], however they lie."""

    family: str
    shape: tuple
    layout: str = "nchw"
    element: str = "f32"
    groups: int = 32
    families = FAMILIES
    packed = 0
    is_channels = True
    has_residual = False

    @property
    def name(self):
        return f"{self.family} {self.shape_text} {self.element}"

    @property
    def shape_text(self):
        return "x".join(map(str, self.shape)) + f" {self.layout}"

    @property
    def lies(self):
        """The shape in memory."""
        samples, channels, *space = self.shape
        return (samples, channels, *space) if self.layout == "nchw" else \
            (samples, *space, channels)

    @property
    def channel_axis(self):
        return 1 if self.layout == "nchw" else len(self.shape) - 1

    @property
    def is_backward(self):
        return self.family == "bn_train_backward"

    @property
    def is_grouped(self):
        return self.family == "gn"

    @property
    def roof(self):
        return "triad" if self.is_backward else "copy"

    @property
    def repeated_channels(self):
        """Of a block: an odd number of groups, so that the halves of an array differ."""
        channels = self.shape[1]
        step = channels // self.groups if self.is_grouped else 1
        most = channels // step
        per_step = prod(self.shape) // channels * step
        return step * min(most, max(3, BLOCK_ELEMENTS // per_step) | 1)


def target(case, is_in_memory):
    """As suite.target: ("ratio", least ratio to the roof), or None in the caches."""
    if not is_in_memory or case.element != "f32":
        return None
    forward = 0.75 if case.layout == "nchw" else 0.6
    backward = 0.75 if case.layout == "nchw" else 0.65
    return "ratio", {"bn_train": forward, "bn_train_backward": backward,
                     "bn_inference": 0.95}.get(case.family, 0.80)


# ---- the suite ------------------------------------------------------------------

BATCH = ("bn_train", "bn_train_backward", "bn_inference")
RESNET = ((16, 64, 112, 112), (16, 256, 56, 56), (16, 1024, 14, 14), (16, 2048, 7, 7))
RESNET_FULL = ((16, 64, 56, 56), (16, 128, 28, 28), (16, 512, 28, 28), (16, 256, 14, 14),
               (16, 512, 7, 7), (32, 256, 56, 56), (16, 32, 112, 112), (16, 960, 7, 7),
               (4, 64, 16, 56, 56))
DIFFUSION = ((2, 320, 64, 64), (2, 1280, 16, 16), (2, 640, 32, 32), (1, 128, 256, 256))
DIFFUSION_FULL = ((2, 320, 96, 96), (2, 960, 48, 48), (2, 1920, 24, 24), (2, 2560, 8, 8),
                  (1, 256, 512, 512), (1, 512, 128, 128))
STYLE = ((1, 32, 256, 256), (1, 64, 128, 128), (8, 64, 64, 64))


def _cross(families, shapes, layouts=LAYOUTS, element="f32"):
    return [ChannelCase(family, shape, layout, element)
            for family in families for shape in shapes for layout in layouts]


def standard():
    """What a run times that names nothing."""
    return (_cross(BATCH, RESNET) + _cross(("gn",), DIFFUSION) + _cross(("in",), STYLE)
            + _cross(("bn_train", "gn"), RESNET[1:2], LAYOUTS[:1], "bf16"))


def full():
    """The standard cases and every other size."""
    cases = (standard() + _cross(BATCH, RESNET_FULL) + _cross(("gn",), DIFFUSION_FULL)
             + _cross(BATCH, RESNET, LAYOUTS, "bf16") + _cross(("gn",), DIFFUSION, LAYOUTS, "bf16"))
    return list(dict.fromkeys(cases))


def quick():
    """A case of every family that takes no time."""
    return _cross(FAMILIES, ((2, 64, 14, 14),))


# ---- arrays ---------------------------------------------------------------------


def result_names(case):
    return ("dx", "dscale", "dshift") if case.is_backward else ("y",)


def operand_names(case):
    """The operands of the op beside x."""
    if case.is_backward:
        return "dy", "mean", "rstd", "scale"
    given = ("mean", "variance") if case.family == "bn_inference" else ()
    return (*given, "scale", "shift")


def spec(case, groups):
    rank, channel = len(case.shape), case.channel_axis
    space = tuple(axis for axis in range(1, rank) if axis != channel)
    if case.is_grouped:
        return NormSpec(case.op, axes=tuple(range(1, rank)), epsilon=EPSILON, groups=groups,
                        channel_axis=channel)
    if case.family == "in":
        return NormSpec(case.op, axes=space, epsilon=EPSILON, affine_axes=(channel,))
    return NormSpec(case.op, axes=(0, *space), epsilon=EPSILON)


def call_of(case, arrays, channels):
    """The op on arrays that have so many channels."""
    groups = case.groups * channels // case.shape[1] if case.is_grouped else None
    return Call(spec(case, groups), arrays["x"], results=result_names(case),
                **{name: arrays[name] for name in operand_names(case)})


def repeated(case, block, channels):
    """A block of channels, along an axis of its own or the channel axis, repeated."""
    axis = case.channel_axis if block.ndim > 1 else 0
    return np.take(block, np.arange(channels) % block.shape[axis], axis)


@dataclass
class ChannelData:
    """The values of a case: blocks of channels (x, dy; parameters and statistics, [block
    channels]), and what the oracle makes of them, in f64."""

    blocks: dict
    expected: dict = field(default_factory=dict)

    @classmethod
    def of(cls, case, mean=0.25, std=1.5):
        rng, channels = generator(case.name), case.repeated_channels
        shape = [channels if axis == case.channel_axis else extent
                 for axis, extent in enumerate(case.lies)]
        parameter = "f32" if case.is_backward else case.element
        blocks = {"x": draw(rng, shape, case.element, mean, std),
                  "scale": draw(rng, (channels,), parameter, 1.0, 0.2)}
        if case.is_backward:
            blocks["dy"] = draw(rng, shape, case.element, 0.05, 1.0)
        else:
            blocks["shift"] = draw(rng, (channels,), parameter, 0.0, 0.1)
        wide = np.moveaxis(blocks["x"].astype(np.float64), case.channel_axis, 0)
        wide = wide.reshape(channels, -1)
        for name, values in {"mean": wide.mean(1), "variance": wide.var(1),
                             "rstd": 1 / np.sqrt(wide.var(1) + EPSILON)}.items():
            blocks[name] = values.astype(np.float32)
        data = cls(blocks)
        found = call_of(case, blocks, channels).reference()
        data.expected = {name: found.values[name].exact for name in result_names(case)} \
            if case.is_backward else {"y": from_rows(found.rows_y, shape, found.spec)}
        return data


def shapes_only(case):
    """The call on arrays whose memory is never touched: to compile it."""
    parameter = float_type("f32" if case.is_backward else case.element).dtype
    arrays = dict.fromkeys(("x", "dy"), np.empty(case.lies, float_type(case.element).dtype))
    arrays.update(dict.fromkeys(("scale", "shift"), np.empty(case.shape[1], parameter)))
    arrays.update(dict.fromkeys(("mean", "variance", "rstd"),
                                np.empty(case.shape[1], np.float32)))
    return call_of(case, arrays, case.shape[1])


class ChannelBuffers(ArraySet):
    """One set of arrays, as buffers.Buffers."""

    def __init__(self, case, data, arena):
        self.case, self.data, channels = case, data, case.shape[1]
        arrays = {}
        for name, block in data.blocks.items():
            element = float_type(block.dtype).name
            shape = case.lies if block.ndim > 1 else (channels,)
            arrays[name] = arena.array(shape, element)
            arrays[name][...] = repeated(case, block, channels)
            if name in ("scale", "shift"):
                arrays[f"{name}_f32"] = arena.array(shape, "f32")
                arrays[f"{name}_f32"][...] = arrays[name]
        for name in result_names(case):
            is_sum = name in ("dscale", "dshift")
            arrays[name] = arena.array((channels,) if is_sum else case.lies, case.element)
        super().__init__(arrays, arrays["x"], result_names(case))

    def call(self):
        return call_of(self.case, self.arrays, self.case.shape[1])


def error(case, data, results):
    """The largest error of each result, as a share of its largest true value; infinite
    where a value is not finite."""
    errors = {}
    for name, expected in data.expected.items():
        got, worst = np.asarray(results[name]), 0.0
        axis = case.channel_axis if expected.ndim > 1 else 0
        for start in range(0, case.shape[1], expected.shape[axis]):
            count = min(expected.shape[axis], case.shape[1] - start)
            part = np.take(got, np.arange(start, start + count), axis).astype(np.float64)
            worst = np.maximum(worst, np.abs(
                part - np.take(expected, np.arange(count), axis)).max())
        errors[name] = float(worst / np.abs(expected).max()) if np.isfinite(worst) \
            else float("inf")
    return errors
