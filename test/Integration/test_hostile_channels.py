"""Channel norms, and few long rows, by each way the CPU pipeline computes them, on rows chosen
to hurt: the promise; the same bits for any number of threads, static extents or not, stored
past the caches or not; and what is not finite stays in its row.

Arrays are just above what threads are used for, those of `split` large enough to be shared."""

from dataclasses import dataclass

import numpy as np
import pytest
from norm.compiled import Compiled
from norm.data import HOSTILE, draw, generator, hostile, normal
from norm.golden import same_bits
from norm.program import BACKWARD_RESULTS, Call, module_text
from norm.promise import check
from norm.reference import NormSpec, evaluate, from_rows, to_rows
from norm.tools import norm_opt
from norm.types import cast, float_type

BATCH, GIVEN = "batch_norm_training", "batch_norm_inference"
INSTANCE, GROUP, LAYER, RMS = "instance_norm", "group_norm", "layer_norm", "rms_norm"
STATISTICS = ("y", "mean", "variance", "rstd")
RUNNING = ("running_mean", "running_variance")
# name -> x's shape, its channel axis, groups, ops.
LAYOUTS = {
    "nchw": ((9, 9, 21, 21), 1, 3, (BATCH, GIVEN, INSTANCE, GROUP)),
    "images-14": ((12, 15, 14, 14), 1, 3, (BATCH, INSTANCE)),
    "images-7": ((45, 15, 7, 7), 1, 5, (BATCH, GIVEN, INSTANCE, GROUP)),
    "ncl": ((25, 21, 67), 1, 7, (BATCH, GROUP)),
    "ncdhw": ((6, 9, 9, 9, 9), 1, 3, (GIVEN, INSTANCE)),
    # Groups that end within a vector, and groups of whole ones.
    "nhwc": ((9, 11, 11, 33), 3, 3, (BATCH, GIVEN, INSTANCE, GROUP)),
    "nhwc-wide": ((3, 8, 8, 192), 3, 3, (INSTANCE, GROUP)),
    "nhwc-narrow": ((16, 27, 27, 3), 3, 1, (BATCH, INSTANCE, GROUP)),
    "ndhwc": ((5, 7, 7, 7, 21), 4, 7, (BATCH, GROUP)),
    "nc": ((1001, 35), 1, 5, (BATCH, GIVEN, GROUP)),
    # Tiles that threads share.
    "split": ((1, 3, 320, 311), 1, 1, (BATCH, INSTANCE, GROUP)),
    "split-nhwc": ((1, 320, 311, 6), 3, 2, (GROUP,)),
    "split-rows": ((2, 262147), 1, 1, (LAYER, RMS)),
    "split-row": ((1, 1048583), 1, 1, (LAYER,)),
}
# Of 16-bit elements the arrays have twice this extent, and so as many bytes.
DOUBLED = {"split": 2, "split-nhwc": 2, "split-rows": 1, "split-row": 1}


@dataclass(frozen=True)
class Cell:
    element: str
    op: str
    layout: str

    @property
    def shape(self):
        shape = list(LAYOUTS[self.layout][0])
        if self.element != "f32":
            shape[DOUBLED.get(self.layout, 0)] *= 2
        return tuple(shape)

    @property
    def backward(self):
        return self.op.endswith("_backward")

    @property
    def is_given(self):
        return self.op.startswith("batch_norm_inference")

    def spec(self, op=None):
        op, rank = op or self.op, len(self.shape)
        _, channel, groups, _ = LAYOUTS[self.layout]
        attributes = {}
        if op.startswith("batch_norm"):
            axes = [axis for axis in range(rank) if axis != channel]
        else:
            axes = range(1, rank)
        if op.startswith("instance_norm"):
            axes = [axis for axis in axes if axis != channel]
            attributes = dict(affine_axes=(channel,))
        elif op.startswith("group_norm"):
            attributes = dict(groups=groups, channel_axis=channel)
        elif op == "batch_norm_training":
            attributes = dict(momentum=0.1)
        return NormSpec(op, axes=tuple(axes), **attributes)

    def rows(self):
        count = int(np.prod(self.spec().kept_shape(self.shape)))
        return count, int(np.prod(self.shape)) // count

    def results(self):
        if self.backward:
            return tuple(r for r in BACKWARD_RESULTS if r != "dshift" or "rms" not in self.op)
        if self.is_given:
            return ("y",)
        found = tuple(r for r in STATISTICS if r != "mean" or self.op != "rms_norm")
        return found + (RUNNING if self.op == "batch_norm_training" else ())

    def entry(self):
        return f"{self.op}_{self.layout.replace('-', '_')}"

    def call(self, x, dy, dynamic=False):
        """The op on rows of x and dy; parameters are always the same."""
        spec, rng = self.spec(), generator(self.entry() + self.element)
        parameter = "f32" if self.element == "bf16" else self.element
        channels = [self.shape[axis] for axis in spec.affine(len(self.shape))]
        kept = spec.kept_shape(self.shape)
        arrays = dict(x=self.tensor(x), scale=draw(rng, channels, parameter, 1.0))
        if self.backward:
            arrays["dy"] = self.tensor(dy)
        elif self.op != "rms_norm":
            arrays["shift"] = draw(rng, channels, parameter)
        if self.op == "batch_norm_training":
            arrays |= dict(running_mean=draw(rng, kept, "f32"),
                           running_variance=draw(rng, kept, "f32") ** 2)
        arrays |= self.saved(arrays["x"])
        return Call(spec, results=self.results(), **arrays,
                    dynamic=tuple(range(len(self.shape))) if dynamic else ())

    def saved(self, x):
        """Statistics that come in: those of the forward op, f32 beside bf16 recomputed."""
        if self.is_given:
            names = ("mean", "rstd" if self.backward and self.element == "f32" else "variance")
        elif not self.backward or self.element == "bf16":
            return {}
        else:
            names = ("rstd",) if "rms" in self.op else ("mean", "rstd")
        op = "batch_norm_training" if self.is_given else self.op.removesuffix("_backward")
        found = evaluate(self.spec(op), x)
        values = {name: getattr(found, name) for name in names}
        # What is given is what a model has learned: finite.
        return {name: np.nan_to_num(value, nan=0.5, posinf=1e3, neginf=1e3) if self.is_given
                else value for name, value in values.items()}

    def tensor(self, rows):
        return np.ascontiguousarray(
            from_rows(cast(rows, float_type(self.element)), self.shape, self.spec()))


def cells(element):
    """All in f32; of each layout a quarter of the ops in bf16 and another in f16."""
    found = [(number, f"{op}{suffix}", layout)
             for number, (layout, (_, _, _, ops)) in enumerate(LAYOUTS.items())
             for position, op in enumerate(ops) for suffix in ("", "_backward")
             for number in [number + position + 2 * bool(suffix)]]
    chosen = {"f32": (0, 1, 2, 3), "bf16": (0,), "f16": (2,)}[element]
    return [Cell(element, op, layout) for number, op, layout in found if number % 4 in chosen]


CELLS = [cell for element in ("f32", "bf16", "f16") for cell in cells(element)]
# Static code for this machine, and code for any x86-64 that learns the extents at run time
# and stores past the caches.
FORMS = {False: "--norm-to-cpu=host", True: "--norm-to-cpu=stream-bytes=1"}


def one_pipeline(directory, element, dynamic):
    text = ""
    for cell in cells(element):
        empty = np.zeros(cell.rows())
        text += module_text([cell.call(empty, empty, dynamic)], cell.entry())
    return Compiled(directory, text, FORMS[dynamic])


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    found = {}

    def get(element):
        if element not in found:
            found.clear()
            found[element] = [one_pipeline(tmp_path_factory.mktemp(element), element, dynamic)
                              for dynamic in FORMS]
        return found[element]
    return get


def run(cell, call, libraries):
    """The results, which are the same whatever computes them."""
    static, dynamic = libraries(cell.element)
    first = static.results(call, cell.entry(), 1)
    for library, threads in ((static, 2), (static, 3), (dynamic, 1), (dynamic, 3)):
        for name, values in library.results(call, cell.entry(), threads).items():
            same_bits(first[name], values)
    return first


def gradients(cell):
    return normal(generator(f"dy{cell}"), *cell.rows(), mean=0.25)


def random_rows(cell):
    """Independent elements, to 1e7 deviations from 0."""
    means = (0, 1, 1e3, 1e5, 1e7) if cell.element == "f32" else (0, 1, 10, 30, 100)
    count, extent = cell.rows()
    x = normal(generator(f"x{cell}"), count, extent)
    return x + np.resize(means[::-1], count)[:, None]


def spoiled(call, kept):
    """Where an element that is not finite may show: in x's shape, and in `kept`."""
    def wrong(array):
        return ~np.isfinite(array.astype(np.float32))

    spec, bad = call.spec, wrong(call.x)
    if call.dy is not None:
        bad = bad | wrong(call.dy)
    if spec.norm == "batch_norm_inference":
        return bad, np.zeros(kept, bool)
    rows = to_rows(bad, spec)
    one = rows.any(axis=1)
    every = np.ascontiguousarray(np.broadcast_to(one[:, None], rows.shape))
    return from_rows(every, call.x.shape, spec), one.reshape(kept)


@pytest.mark.parametrize("cell", CELLS, ids=lambda c: f"{c.element}-{c.op}-{c.layout}")
def test_cell(cell, libraries):
    dy, x = gradients(cell), random_rows(cell)
    call = cell.call(x, dy)
    check(call.reference(), run(cell, call, libraries))
    count, extent = cell.rows()
    # As many as it takes to see every kind, but of a row alone.
    for first in range(0, len(HOSTILE), max(count, 3)) if count > 1 else (4, 7):
        rng = generator(f"hostile{cell}{first}")
        x = hostile(rng, count, extent, cell.element, first)
        # A harmless x beside a NaN of dy.
        dy[(-first) % len(HOSTILE)::len(HOSTILE), extent // 4] = np.nan
        call = cell.call(x, dy)
        found = run(cell, call, libraries)
        check(call.reference(), found, "any")
        check_others(cell, call, found, x, dy, libraries)
        dy[np.isnan(dy)] = 0


def check_others(cell, call, found, x, dy, libraries):
    """Rows keep their bits when no other row has anything that is not finite."""
    tamed = call_with(cell, call, np.where(np.isfinite(x), x, 1), np.nan_to_num(dy))
    others = libraries(cell.element)[0].results(tamed, cell.entry(), 2)
    kept = cell.spec().kept_shape(cell.shape)
    elements, rows = spoiled(call, kept)
    affine = cell.spec().affine(len(cell.shape))
    outside = tuple(axis for axis in range(len(cell.shape)) if axis not in affine)
    where = {"y": elements, "dx": elements, "dscale": elements.any(outside),
             "dshift": elements.any(outside)}
    for name, values in found.items():
        good = ~where.get(name, rows)
        same_bits(values[good], others[name][good])


def call_with(cell, call, x, dy):
    """The same call on other rows, with the statistics it was given where these are finite."""
    made = cell.call(x, dy)
    for name in ("mean", "variance", "rstd"):
        if (given := getattr(call, name)) is not None:
            setattr(made, name, np.where(np.isfinite(given), given, getattr(made, name)))
    return made


@pytest.mark.parametrize("cell", [c for c in CELLS if c.layout in ("split", "split-row")
                                  and not c.backward], ids=lambda c: f"{c.element}-{c.op}")
def test_threads_share_tiles(cell):
    """`split` layouts are what they are for."""
    empty = np.zeros(cell.rows())
    text = norm_opt(module_text([cell.call(empty, empty)]), "--norm-merge-axes", "--norm-configure")
    assert "split = true" in text
