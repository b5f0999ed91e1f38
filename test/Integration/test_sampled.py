"""The variance about a sampled mean, where the sample says nothing about the row.

The sample is the first 64 elements along the innermost reduced axis, or about 128
from all over the reduced axes where these are the outer ones. Rows below
are unlike it, or close to constant, or not finite, next to harmless ones."""

import functools

import numpy as np
import pytest
from norm.compiled import Compiled
from norm.data import generator
from norm.golden import same_bits
from norm.program import Call, module_text
from norm.promise import check
from norm.reference import NormSpec, from_rows
from norm.types import cast, float_type

FOUR = ("y", "mean", "variance", "rstd")
MOMENTS = ("count", "mean", "m2")
# name -> op, shape, reduced axes, attributes, results
FORMS = {
    "layer": ("layer_norm", (24, 200), (1,), {}, FOUR),
    "short": ("layer_norm", (24, 13), (1,), {}, FOUR),
    "several": ("layer_norm", (4, 6, 3, 100), (2, 3), {}, FOUR),
    "instance": ("instance_norm", (4, 10, 15, 6), (1, 2), {}, FOUR),
    "group": ("group_norm", (6, 8, 100), (1, 2), {"groups": 4, "channel_axis": 1}, FOUR),
    "batch": ("batch_norm_training", (3, 24, 70), (0, 2), {}, FOUR),
    "lanes": ("batch_norm_training", (200, 24), (0,), {}, FOUR),
    "moments": ("moments", (24, 200), (1,), {}, MOMENTS),
    "lane_moments": ("moments", (2, 90, 24), (0, 1), {}, MOMENTS),
}
USED = {"f32": tuple(FORMS), "f64": ("layer", "several", "lanes"),
        "f16": ("layer", "instance", "group"), "bf16": ("short", "batch", "moments")}
# Rows of a tile.
HEIGHTS = (1, 2, 4, 16)
NOT_FINITE = slice(17, 22)


def sample_of(form):
    """How many elements the sample of a row has."""
    _, shape, axes, _, _ = FORMS[form]
    return min(64, shape[max(axes)])


def rows_of(name, element, extent, sample):
    """[24, extent] in f64, to be rounded: each row hostile in its own way."""
    rng = generator(f"{name}{element}")
    first = np.arange(extent) < sample
    steps = np.arange(extent)
    top = {"f64": 1.2e153, "f16": 6e4}.get(element, 1.6e18)

    def normal(mean=0.0):
        return mean + rng.standard_normal(extent)

    def put(row, place, value):
        row[place % extent] = value
        return row

    rows = [
        normal(),
        np.where(first, 0, normal(1e6)),
        np.where(first, normal(1e4), normal()),
        np.where(first, 1e9, 1.0),
        np.full(extent, 1e10),
        normal(),
        np.linspace(0, 1e5, extent),
        1e7 + steps % 2,
        put(np.full(extent, 16777213.0), 3, 16777212.0),
        put(np.full(extent, 16777213.0), extent - 1, 16777214.0),
        np.full(extent, 3e-39),
        np.full(extent, 65504.0),
        # Squares about the sample overflow, squares about the mean do not.
        np.where(first, top, 0),
        np.where(first, 0, top),
        put(normal(), 5, 1e8),
        put(normal(), extent - 2, -1e8),
        normal(),
        put(normal(), 5, np.inf),
        put(normal(), extent - 2, np.inf),
        put(normal(), 5, np.nan),
        put(normal(), extent - 2, np.nan),
        put(put(normal(), 5, -np.inf), extent - 2, np.inf),
        normal(1e7),
        normal(),
    ]
    rows = np.stack(rows)
    if element == "f16":
        rows = np.where(np.isfinite(rows), np.clip(rows, -65504, 65504), rows)
    return rows


def call_of(form, element, dynamic=False):
    kind, shape, axes, attributes, results = FORMS[form]
    spec = NormSpec(kind, axes=axes, **attributes)
    extent = int(np.prod(shape)) // 24
    rows = rows_of(form, element, extent, sample_of(form))
    x = cast(rows, float_type(element))
    x = np.ascontiguousarray(from_rows(x, shape, spec))
    return Call(spec, x, results=results, dynamic=tuple(range(len(shape))) if dynamic else ())


def compare(one, other):
    for name, values in one.items():
        same_bits(values, other[name])


def strategy(rows):
    return (f"{{norm.strategy = #norm.cpu<rows = {rows}, columns = 32, parallel = false>}}")


def layer_text(name, rows, x="?x?"):
    kind = f"tensor<{x}xf32>"
    return f"""
func.func @{name}(%x: {kind}) -> {kind} {{
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 {strategy(rows)} : {kind} -> {kind}
  return %y : {kind}
}}"""


# What is sampled is a part of a computed tensor.
PRODUCER = """
func.func @produced(%x: tensor<24x200xf32>, %b: tensor<24x200xf32>) -> tensor<24x200xf32> {
  %e = tensor.empty() : tensor<24x200xf32>
  %s = linalg.add ins(%x, %b : tensor<24x200xf32>, tensor<24x200xf32>)
                  outs(%e : tensor<24x200xf32>) -> tensor<24x200xf32>
  %y = norm.layer_norm %s axes [1] epsilon inside_sqrt 1.0e-5
    : tensor<24x200xf32> -> tensor<24x200xf32>
  return %y : tensor<24x200xf32>
}"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The library of an element type, made when it is first asked for."""
    @functools.cache
    def library(element):
        text = "".join(module_text([call_of(form, element, dynamic)], f"{form}_{dynamic}")
                       for form in USED[element] for dynamic in (False, True))
        return Compiled(tmp_path_factory.mktemp(element), text)
    return library


@pytest.fixture(scope="module")
def layers(tmp_path_factory):
    text = "".join(layer_text(f"rows{rows}", rows) for rows in HEIGHTS)
    text += layer_text("static", 2, "24x200") + layer_text("narrow", 16, "?x7")
    return Compiled(tmp_path_factory.mktemp("layers"), text + PRODUCER)


@pytest.mark.parametrize("element,form", [(e, f) for e, forms in USED.items() for f in forms])
def test_promise(compiled, element, form):
    library = compiled(element)
    call = call_of(form, element)
    found = library.results(call, f"{form}_False")
    compare(found, library.results(call_of(form, element, True), f"{form}_True"))
    check(call.reference(), found, "any")


def run_layer(library, name, *inputs):
    y = np.full_like(inputs[0], 77)
    library(inputs, [y], name)
    return y


def test_rows_keep_their_bits(layers):
    """However many are taken together, alone, and beside rows that are not finite."""
    x = call_of("layer", "f32").x
    expected = run_layer(layers, "rows1", x)
    for name in [f"rows{rows}" for rows in HEIGHTS[1:]] + ["static"]:
        same_bits(run_layer(layers, name, x), expected)
    for row in range(len(x)):
        same_bits(run_layer(layers, "rows4", x[row:row + 1]), expected[row:row + 1])
    finite = x.copy()
    finite[NOT_FINITE] = x[0]
    for name in ("rows2", "rows4", "rows16"):
        found = run_layer(layers, name, finite)
        found[NOT_FINITE] = expected[NOT_FINITE]
        same_bits(found, expected)


def test_sample_of_a_computed_tensor(layers):
    x = call_of("layer", "f32").x
    b = generator("b").standard_normal(x.shape).astype(np.float32)
    with np.errstate(invalid="ignore"):
        total = x + b
    same_bits(run_layer(layers, "produced", x, b), run_layer(layers, "static", total))


@pytest.mark.parametrize("value", [1e10, 3e-39, 1e-16, 0.1, 16777213.0, 1.4e18])
def test_constant_rows(layers, value):
    """Exactly 0, of any length."""
    for extent in range(1, 81):
        x = np.full((18, extent), value, np.float32)
        for name in ["rows1", "rows4", "rows16"] + ["narrow"] * (extent == 7):
            assert not run_layer(layers, name, x).any(), (name, extent)


def test_squares_that_overflow(layers):
    """About the mean too: the factor is 0, not a NaN."""
    x = np.zeros((5, 200), np.float32)
    x[:, 64:] = 1e20
    for name in ("rows1", "rows4"):
        assert not run_layer(layers, name, x).any()
