"""Which norms are timed: families, shapes, and the bytes that each must move.

Shapes are those of public models and benchmarks, [rows, hidden]; QK norms are
[tokens, heads, head size]. A case's name is what --filter looks in.
"""

from dataclasses import dataclass
from fnmatch import fnmatch
from math import prod

# Family -> (op, arrays of x's size that it reads and writes at least).
FAMILIES = {
    "layer_norm": ("layer_norm", 2),
    "rms_norm": ("rms_norm", 2),
    "add_layer_norm": ("layer_norm", 4),
    "add_rms_norm": ("rms_norm", 4),
    "layer_norm_backward": ("layer_norm_backward", 3),
    "rms_norm_backward": ("rms_norm_backward", 3),
    "qk_norm": ("rms_norm", 2),
}
FORWARD = ("layer_norm", "rms_norm")
RESIDUAL = ("add_layer_norm", "add_rms_norm")
BACKWARD = ("layer_norm_backward", "rms_norm_backward")
ITEM_SIZES = {"f32": 4, "bf16": 2, "f16": 2}
EPSILON = 1e-5


class NormCase:
    """What cases of rows and of images have in common: `family`, `shape` and `element`, and
    as `families` the table of these, as FAMILIES is."""

    @property
    def op(self):
        return self.families[self.family][0]

    @property
    def array_bytes(self):
        return prod(self.shape) * ITEM_SIZES[self.element]

    @property
    def least_bytes(self):
        """Each array of x's size read or written once; parameters are not counted."""
        return self.families[self.family][1] * self.array_bytes


@dataclass(frozen=True)
class Case(NormCase):
    """One norm of one shape. packed: of a QK norm, the heads of the packed row of which
    x is the first `heads`; 0 if x is an array of its own."""

    family: str
    shape: tuple
    element: str = "f32"
    packed: int = 0
    families = FAMILIES
    is_channels = False

    @property
    def name(self):
        packed = f" of {self.packed} heads" if self.packed else ""
        return f"{self.family} {self.shape_text}{packed} {self.element}"

    @property
    def shape_text(self):
        return "x".join(map(str, self.shape))

    @property
    def rows(self):
        return prod(self.shape[:-1])

    @property
    def extent(self):
        return self.shape[-1]

    @property
    def is_centred(self):
        return "layer_norm" in self.family

    @property
    def has_residual(self):
        return self.family in RESIDUAL

    @property
    def is_backward(self):
        return self.family in BACKWARD

    @property
    def roof(self):
        """Which kernel moves the same bytes."""
        return "triad" if self.is_backward else "copy2" if self.has_residual else "copy"


def target(case, is_in_memory):
    """What this project is to reach beside being first: ("ratio", least ratio to the
    roof), ("ratio_to_best", least ratio to the best peer), ("microseconds", most), or
    None. Of what stays in a cache the roof says little."""
    if case.family in FORWARD and case.shape == (1, 4096):
        return "microseconds", 2.0
    if case.family in FORWARD and case.shape == (512, 768) and case.element == "f32":
        return "ratio_to_best", 1.4 if case.is_centred else 1.1
    if not is_in_memory:
        return None
    if case.is_backward:
        return "ratio", 0.80
    if case.element != "f32":
        return "ratio", 0.70 if case.is_centred else 0.80
    for extent, ratio in ((8, 0.5), (16, 0.65), (32, 0.75), (64, 0.85)):
        if case.extent <= extent:
            return "ratio", ratio
    return "ratio", 0.80 if case.extent % 2 else 0.90


# ---- the suite ------------------------------------------------------------------

MAIN = ((4096, 4096), (16384, 768), (4096, 1024), (131072, 128), (1024, 16384), (512, 768),
        (1, 4096), (8, 4096), (1000, 1023))
SHORT_ROWS = ((262144, 64), (524288, 32), (1048576, 16), (2097152, 8))
MORE_FORWARD = ((64, 4096), (1000, 4097), (4096, 5376))
NARROW = ((4096, 4096), (16384, 768), (131072, 128), (1024, 16384), (1000, 1023), (512, 768))
# Of Qwen 3, and a slice of its packed projection: 32 heads of Q, 8 of K and 8 of V.
QK = (Case("qk_norm", (1, 32, 128)), Case("qk_norm", (2048, 32, 128)),
      Case("qk_norm", (4096, 8, 128)), Case("qk_norm", (2048, 32, 128), packed=48),
      Case("qk_norm", (2048, 32, 128), "bf16"), Case("qk_norm", (4096, 32, 64)))

# Timed with cold caches too.
COLD = ((4096, 1024), (16384, 768))

FULL_FORWARD = (
    # BERT, GPT-2, ViT
    (197, 768), (512, 1024), (16384, 1024), (8192, 1280), (8192, 1600), (128, 768),
    # Llama, Mistral, Qwen: decode and prefill
    (1, 2048), (1, 8192), (8, 8192), (64, 2048), (256, 4096), (256, 8192), (2048, 2048),
    (2048, 3072), (2048, 3584), (2048, 5120), (2048, 8192), (2048, 16384), (8192, 4096),
    (16384, 2048), (32768, 4096),
    # Gemma, DeepSeek
    (4096, 2304), (4096, 2560), (4096, 3840), (4096, 7168), (16384, 1536), (65536, 512),
    # wide
    (2048, 12288), (2048, 18432), (512, 65536), (64, 262144),
    # Swin
    (25088, 128), (6272, 256), (1568, 512), (392, 1024),
    # vision and speech, diffusion transformers
    (115200, 256), (115200, 384), (115200, 512), (4608, 3072), (27030, 1536),
    # odd
    (1, 111), (7, 111), (1000, 111), (1000, 500), (1, 1023), (7, 4097), (1000, 5001))
FULL_OTHER = (
    (8192, 1280), (64, 4096), (256, 4096), (2048, 2048), (2048, 8192), (16384, 2048),
    (65536, 512), (25088, 128), (1000, 111), (1000, 4097), (64, 262144))
FULL_QK = tuple(Case("qk_norm", shape, element, packed)
                for element in ("f32", "bf16")
                for shape, packed in (((1, 64, 128), 0), ((512, 16, 128), 0),
                                      ((4608, 48, 128), 0), ((27030, 24, 128), 0),
                                      ((1920, 24, 128), 0), ((2048, 16, 256), 0),
                                      ((2048, 64, 64), 0), ((2048, 32, 128), 48),
                                      ((2048, 8, 128), 48)))


def _cross(families, shapes, element="f32"):
    return [Case(family, shape, element) for family in families for shape in shapes]


def standard():
    """What a run times that names nothing."""
    return (_cross(FORWARD, MAIN + MORE_FORWARD + SHORT_ROWS)
            + _cross(RESIDUAL, MAIN) + _cross(BACKWARD, MAIN) + list(QK)
            + _cross(FORWARD, NARROW, "bf16")
            + _cross(("add_rms_norm",), NARROW[:2], "bf16")
            + _cross(BACKWARD, NARROW[:2], "bf16"))


def full():
    """The standard cases and every other size, bf16 and f16 too."""
    cases = standard()
    for element in ("f32", "bf16"):
        cases += _cross(FORWARD, MAIN + FULL_FORWARD, element)
        cases += _cross(RESIDUAL + BACKWARD, MAIN + FULL_OTHER, element)
    cases += _cross(FORWARD, NARROW, "f16") + list(FULL_QK)
    return list(dict.fromkeys(cases))


def quick():
    """A case of every family that takes no time, and the types."""
    small = ((512, 768), (1000, 111))
    return (_cross(FORWARD + RESIDUAL + BACKWARD, small) + _cross(FORWARD, small[:1], "bf16")
            + [Case("qk_norm", (64, 32, 128)), Case("qk_norm", (64, 32, 128), packed=48)])


def regimes(case):
    """What a run times that names none."""
    return ("warm", "cold") if case.shape in COLD and case.element == "f32" else ("warm",)


# ---- sweeps ---------------------------------------------------------------------

SWEPT_ELEMENTS = 1 << 22


def swept_extents():
    """Name of a sweep -> the extents of its rows."""
    return {"short": range(1, 65), "around 4096": range(4096 - 64, 4096 + 65, 8),
            "long": range(128, 16384 + 1, 128)}


def sweep(families=FORWARD, element="f32"):
    """Every extent of every sweep, with rows that make about as many elements."""
    extents = sorted({n for steps in swept_extents().values() for n in steps})
    return [Case(family, (SWEPT_ELEMENTS // n, n), element)
            for family in families for n in extents]


def select(cases, patterns):
    """The cases that one of the comma-separated texts is in, or that it matches."""
    texts = [text.strip() for text in patterns.split(",") if text.strip()]
    return [case for case in cases if not texts or any(
        text in case.name or fnmatch(case.name, text) for text in texts)]
