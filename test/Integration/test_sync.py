"""Norms in the statistics algebra: `norm-generalize` whole, in parts, and cut into the
programs of several ranks.

A rank here is a run of its own: the stages of a cut function run one after the other, on
each rank's share of the arrays, and between two stages the ranks' statistics are
concatenated, which is all that processes would exchange.
"""

import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
from cases import Case, call
from norm import golden
from norm.golden import near, same_bits
from norm.program import module_text, split_results
from norm.promise import check
from norm.tools import ToolError, norm_opt, norm_run
from norm.types import widen

FULL = ("x", "residual", "dy", "dsum")
ROW_RESULTS = ("y", "sum", "dx")


def target_of(path):
    return "reference" if path == "reference" else "cpu"


def lowered(module, path):
    return norm_opt(module, "--norm-lower-to-linalg") if path == "linalg" else module


def run_generalized(directory, calls, path="cpu", options=""):
    """The calls as one function, generalized; a {name: array} per call."""
    module = norm_opt(module_text(calls), f"--norm-generalize={options}")
    assert not re.search(r"norm\.\w+_norm(_training|_inference)?(_backward)? ", module)
    inputs = [array for one in calls for array in one.inputs()]
    elements = [element for one in calls for _, element in one.result_types()]
    return split_results(calls, norm_run(directory, lowered(module, path), inputs, elements,
                                         target=target_of(path)))


# ------------------------------------------------------------------------------------
# Whole: the same op
# ------------------------------------------------------------------------------------

STATISTICS = ("y", "mean", "variance", "rstd")
GRADIENTS = ("dx", "dscale", "dshift")
NORMS = {  # op -> shape, axes, options
    "layer_norm": ((5, 3, 37), (2,), {}),
    "rms_norm": ((5, 3, 37), (2,), {}),
    "l2_norm": ((5, 3, 37), (2,), {}),
    "group_norm": ((3, 8, 21), (1, 2), dict(groups=4, channel_axis=1)),
    "instance_norm": ((3, 8, 21), (2,), dict(affine_axes=(1,))),
    "batch_norm_training": ((6, 5, 21), (0, 2), {}),
    "batch_norm_inference": ((6, 5, 21), (0, 2), {})}


def statistics_of(op):
    if op == "batch_norm_inference":
        return ("y",)
    return tuple(r for r in STATISTICS if r != "mean" or op not in ("rms_norm", "l2_norm"))


def forward(name, op, operands="gb", results=None, **fields):
    shape, axes, options = NORMS[op]
    options = {**options, **fields.pop("options", {})}
    fields = {"shape": shape, "axes": axes, **fields}
    return Case(name=f"{op}-{name}", op=op, operands=operands, options=options,
                results=results or statistics_of(op), **fields)


def backward(name, op, operands="g", **fields):
    shape, axes, options = NORMS[op]
    options = {**options, **fields.pop("options", {})}
    fields = {"shape": shape, "axes": axes, "results": GRADIENTS, **fields}
    return Case(name=f"{op}-backward-{name}", op=f"{op}_backward", operands=operands,
                options=options, **fields)


def saved(op):
    """Letters of the statistics without which a gradient has none."""
    return "mv" if op == "batch_norm_inference" else ""


OUTSIDE, MAX_IN, MAX_OUT = (dict(placement=p, epsilon=0.3)
                            for p in ("outside_sqrt", "max_inside", "max_outside"))
NARROW = dict(compute="bf16", epsilon=0.25)
WHOLE = [
    *[forward("plain", op) for op in NORMS],
    *[forward("dynamic", op, dynamic="all") for op in ("rms_norm", "group_norm",
                                                       "batch_norm_training")],
    *[forward("bf16", op, type="bf16", parameter_type="f32") for op in (
        "layer_norm", "rms_norm", "group_norm", "batch_norm_inference")],
    *[forward("f64", op, type="f64") for op in ("layer_norm", "l2_norm", "batch_norm_training")],
    *[forward("far", op, mean=1e7) for op in ("group_norm", "batch_norm_training")],
    *[forward("far-rows", "layer_norm", shape=(4, 4099), axes=(1,), mean=1e7)],
    *[forward("bare", op, operands="") for op in ("l2_norm", "group_norm")],
    *[forward(f"epsilon{i}", op, options=options, data="levels") for op in (
        "layer_norm", "l2_norm")
      for i, options in enumerate((OUTSIDE, MAX_IN, MAX_OUT, dict(placement="none")))],
    forward("zero", "l2_norm", data="zero", options=dict(placement="none", zero_policy="zero")),
    forward("correction", "layer_norm", options=dict(correction=1)),
    forward("offset", "rms_norm", options=dict(scale_offset=1.0)),
    forward("result", "rms_norm", type="bf16",
            options=dict(affine_in="result", scale_offset=1.0, result="f32")),
    *[forward("residual", op, type="bf16", operands="rgb", results=("y", "rstd", "sum"))
      for op in ("layer_norm", "rms_norm", "group_norm")],
    *[forward("unrounded", op, type="bf16", operands="rgb", results=("y", "rstd", "sum"),
              options=dict(sum_rounding="compute")) for op in ("layer_norm", "rms_norm")],
    *[forward("narrow", op, type="bf16", options=NARROW) for op in (
        "layer_norm", "rms_norm", "batch_norm_training")],
    forward("modulated", "layer_norm", options=dict(affine_axes=(0, 2))),
    *[forward(f"running{i}", "batch_norm_training", operands="gbu" + a, options=options,
              results=(*STATISTICS, "running_mean", "running_variance")) for i, (a, options) in
      enumerate((("", dict(momentum=0.1)), ("a", {}), ("", dict(momentum=0.1, **NARROW)),
                 ("", dict(momentum=0.1, running_correction=0))))],
    forward("empty", "layer_norm", shape=(3, 0), axes=(1,), options=dict(epsilon=0.25)),
    forward("empty-dynamic", "batch_norm_training", shape=(0, 4), axes=(0,), dynamic="all",
            operands="gbu", options=dict(momentum=0.1),
            results=(*STATISTICS, "running_mean", "running_variance")),
    *[backward("plain", op, operands="g" + saved(op)) for op in NORMS],
    *[backward("dynamic", op, operands="g" + saved(op), dynamic="all") for op in (
        "layer_norm", "group_norm", "batch_norm_inference")],
    *[backward("bf16", op, operands="g" + saved(op), type="bf16") for op in (
        "layer_norm", "batch_norm_training", "batch_norm_inference")],
    *[backward("saved", op, operands="gi" + (
        "m" if op not in ("rms_norm", "l2_norm") else "")) for op in (
            "layer_norm", "l2_norm", "group_norm", "batch_norm_inference")],
    *[backward("far", op, mean=1e7) for op in ("layer_norm", "batch_norm_training")],
    *[backward(f"epsilon{i}", op, options=options, data="levels") for op in (
        "layer_norm", "l2_norm") for i, options in enumerate((OUTSIDE, MAX_IN, MAX_OUT))],
    backward("variance", "layer_norm", operands="gmv", options=OUTSIDE),
    backward("correction", "layer_norm", options=dict(correction=1)),
    *[backward("residual", op, operands="rdg", type="bf16", options=dict(sum_rounding="compute"))
      for op in ("layer_norm", "rms_norm", "group_norm")],
    backward("result", "layer_norm", type="bf16", options=dict(affine_in="result")),
    backward("narrow", "layer_norm", type="bf16", options=NARROW),
    backward("dx", "rms_norm", operands="", results=("dx",)),
    backward("given", "batch_norm_inference", operands="gdmv"),
]
WHOLE = {case.name: case for case in WHOLE}


@pytest.fixture(scope="module")
def whole(request, tmp_path_factory):
    """(name, path) -> results or ToolError; groups of cases share a run."""
    found, directory = {}, tmp_path_factory.mktemp("whole")
    wanted = {}
    for item in request.session.items:
        if item.module is request.module and item.originalname == "test_whole":
            params = item.callspec.params
            wanted.setdefault(params["path"], []).append(params["name"])

    def run(names, path):
        where = directory / f"{path}{len(found)}"
        try:
            results = run_generalized(where, [call(WHOLE[name]) for name in names], path)
        except ToolError as error:
            if len(names) == 1:
                found[names[0], path] = error
                return
            for name in names:
                run([name], path)
            return
        found.update(zip([(name, path) for name in names], results, strict=True))

    def get(name, path):
        if (name, path) not in found:
            start = wanted[path].index(name)
            run(wanted[path][start:start + 24], path)
        return found[name, path]
    return get


ON_OTHERS = re.compile(r".*_norm.*(?<!backward)-plain$|.*-(running0|saved)$")


@pytest.mark.parametrize("name,path", [
    (name, path) for path in ("cpu", "linalg", "reference") for name in WHOLE
    if path == "cpu" or ON_OTHERS.match(name)])
def test_whole(name, path, whole):
    """A generalized op keeps the promise of the named one."""
    results = whole(name, path)
    if isinstance(results, ToolError):
        raise results
    check(call(WHOLE[name]).reference(), results, WHOLE[name].rows, path)


# ------------------------------------------------------------------------------------
# In parts, and on ranks
# ------------------------------------------------------------------------------------

def even(extent, ranks):
    """Where `parts=ranks` cuts an axis."""
    return [extent * rank // ranks for rank in range(ranks + 1)]


def share(made, axis, start, stop):
    """One rank's part of a call, of which `axis` is dynamic."""
    spec, rank = made.spec, made.x.ndim
    fields = {}
    for name, array in made.operands().items():
        axes = range(rank) if name in FULL else spec.affine(rank)
        if name in (*FULL, "scale", "shift") and axis in axes:
            array = np.take(array, range(start, stop), list(axes).index(axis))
        fields[name] = array
    return replace(made, dynamic=(axis,), **fields)


def stages_of(module):
    """(entry, element types of its results, a module of it alone) of each function, in
    order."""
    maps = re.match(r"(#.*\n)*", module)[0]
    pattern = r"(  func\.func @([\w.]+)\(.*?\) (?:-> \(?(.*?)\)? )?\{\n.*?^  \}\n)"
    found = re.findall(pattern, module, re.M | re.S)
    return [(name, re.findall(r"tensor<(?:[\d?]+x)*(\w+)>", types), maps + text)
            for text, name, types in found]


@dataclass
class Ranks:
    """What the ranks of a cut function gave: one list of arrays each."""

    results: list
    exchanged: list  # per exchange, the concatenated arrays


def run_ranks(directory, calls, path="cpu", options=""):
    """One call per rank, all of the same program."""
    module = norm_opt(module_text(calls[:1]), f"--norm-generalize=cut=true {options}")
    texts = {module_text([one]) for one in calls}
    assert len(texts) == 1, "all ranks run one program"
    stages, gathered = stages_of(lowered(module, path)), []
    for number, (entry, elements, text) in enumerate(stages):
        outputs = [
            norm_run(directory / f"{entry}-{rank}", text,
                     [*one.inputs(), *(a for arrays in gathered for a in arrays)], elements,
                     entry=entry, target=target_of(path))
            for rank, one in enumerate(calls)]
        if number + 1 < len(stages):
            gathered.append([np.concatenate(arrays) for arrays in zip(*outputs, strict=True)])
    return Ranks([split_results([one], arrays)[0]
                  for one, arrays in zip(calls, outputs, strict=True)], gathered)


def joined(made, axis, results):
    """The unsplit op's results from the ranks'."""
    whole = {}
    for name in results[0]:
        parts = [one[name] for one in results]
        affine = made.spec.affine(made.x.ndim)
        if name in ROW_RESULTS:
            whole[name] = np.concatenate(parts, axis)
        elif name in ("dscale", "dshift") and axis in affine:
            whole[name] = np.concatenate(parts, affine.index(axis))
        elif name in ("dscale", "dshift"):
            whole[name] = sum(map(widen, parts)).astype(parts[0].dtype)
        else:
            for part in parts[1:]:
                same_bits(part, parts[0])
            whole[name] = parts[0]
    return whole


RUNNING = dict(momentum=0.1)
BATCH_RESULTS = (*STATISTICS, "running_mean", "running_variance")


def batch(name, **fields):
    """The batch axis is split."""
    return forward(f"sync-{name}", "batch_norm_training", operands="gbu", results=BATCH_RESULTS,
                   **{"options": RUNNING, **fields})


SYNC = [  # case, axis, number of parts
    (batch("ragged", shape=(7, 5, 9)), 0, 3),
    (batch("empty", shape=(2, 4), axes=(0,)), 0, 3),
    (batch("one-each", shape=(3, 4), axes=(0,)), 0, 3),
    (batch("far", shape=(300, 3), axes=(0,), mean=1e7), 0, 4),
    (batch("bf16", shape=(7, 5, 9), type="bf16"), 0, 2),
    (forward("hidden", "layer_norm", shape=(4, 37), axes=(1,)), 1, 3),
    (forward("hidden-far", "layer_norm", shape=(4, 771), axes=(1,), mean=1e7), 1, 2),
    (forward("hidden", "rms_norm", shape=(4, 37), axes=(1,), operands="rg", type="bf16",
             results=("y", "rstd", "sum")), 1, 3),
    (forward("hidden", "l2_norm", shape=(4, 37), axes=(1,)), 1, 2),
    (forward("space", "group_norm"), 2, 2),
    (backward("sync", "batch_norm_training", shape=(7, 5, 9)), 0, 3),
    (backward("sync-saved", "batch_norm_training", operands="gmi", shape=(7, 5, 9)), 0, 3),
    (backward("hidden", "layer_norm", shape=(4, 37), axes=(1,)), 1, 3),
    (backward("hidden", "rms_norm", shape=(4, 37), axes=(1,), operands="rdg",
              options=dict(sum_rounding="compute")), 1, 2),
    (backward("hidden-saved", "l2_norm", shape=(4, 37), axes=(1,), operands="gi"), 1, 2),
]
SYNC = {case.name: (case, axis, parts) for case, axis, parts in SYNC}


def share_out(made, axis, cuts):
    return [share(made, axis, *ends) for ends in zip(cuts, cuts[1:], strict=False)]


@pytest.mark.parametrize("name,path", [(name, path) for path in ("cpu", "linalg") for name in SYNC
                                       if path == "cpu" or name.endswith(("ragged", "saved"))])
def test_parts_and_ranks(name, path, tmp_path):
    """One program over parts and as many ranks give the same bits; both keep the promise
    of the unsplit op (0.8, 2.19)."""
    case, axis, parts = SYNC[name]
    made = call(case)
    expected = made.reference()
    one, = run_generalized(tmp_path / "parts", [replace(made, dynamic=(axis,))], path,
                           f"parts={parts} axis={axis}")
    check(expected, one, case.rows, path)
    ranks = run_ranks(tmp_path / "ranks", share_out(made, axis, even(case.shape[axis], parts)),
                      path, f"axis={axis}")
    all_ranks = joined(made, axis, ranks.results)
    check(expected, all_ranks, case.rows, path)
    for result, values in all_ranks.items():
        # Parameters' gradients of a split batch are the ranks' own: adding them is
        # another sum than that over all rows.
        if result not in ("dscale", "dshift") or axis in made.spec.affine(made.x.ndim):
            same_bits(values, one[result])


@pytest.mark.parametrize("cuts", [(0, 3, 3, 7), (0, 0, 1, 7), (0, 7)])
@pytest.mark.parametrize("kind", ["forward", "backward"])
def test_any_shares(kind, cuts, tmp_path):
    """D16: ranks need not have equal shares, and may have none."""
    case = SYNC["batch_norm_training-" + ("sync-ragged" if kind == "forward" else
                                          "backward-sync")][0]
    made = call(case)
    ranks = run_ranks(tmp_path, share_out(made, 0, cuts))
    check(made.reference(), joined(made, 0, ranks.results))
    for count in (arrays[0] for arrays in ranks.exchanged[:1]):
        assert count.dtype == np.int64
        assert count[:, 0].tolist() == [9 * n for n in np.diff(cuts)]


def test_static_parts(tmp_path):
    """Cuts of static extents, more parts than elements among them."""
    made = call(SYNC["batch_norm_training-sync-empty"][0])
    for parts in (1, 2, 5):
        one, = run_generalized(tmp_path / str(parts), [made], options=f"parts={parts}")
        check(made.reference(), one)


# ------------------------------------------------------------------------------------
# Known answers
# ------------------------------------------------------------------------------------

def batch_call(x, **fields):
    x = np.asarray(x, np.float32).reshape(-1, 1)
    fields = {"results": ("y", "mean", "variance"), **fields}
    return golden.call("batch_norm_training", x, axes=(0,), **fields)


def test_unequal_counts(tmp_path):
    """D16: the mean of means would be 6.5."""
    made = batch_call([0, 2, 10, 12, 14])
    split, = run_generalized(tmp_path / "parts", [made], options="parts=2")
    ranks = run_ranks(tmp_path / "ranks", share_out(made, 0, (0, 2, 5))).results
    for found in (split, *ranks):
        near(found["mean"], [7.6], 1e-7)
        near(found["variance"], [31.04], 1e-7)


def test_small_variance(tmp_path):
    """D17: a variance far below epsilon is the one that was measured, not what is left
    of it in rstd."""
    made = batch_call(np.tile([1e-6, -1e-6], 4), momentum=1.0, running_correction=0,
                      running_mean=[0.0], running_variance=[1.0],
                      results=("y", "variance", "running_mean", "running_variance"))
    for found in run_ranks(tmp_path, share_out(made, 0, (0, 3, 8))).results:
        near(found["variance"], [1e-12], 1e-6)
        near(found["running_variance"], [1e-12], 1e-6)


def test_one_value_per_rank(tmp_path):
    """D18: legal as soon as there are two ranks."""
    made = batch_call([1, 3], epsilon=0.0, placement="none", momentum=1.0,
                      running_mean=[0.0], running_variance=[1.0],
                      results=("y", "running_mean", "running_variance"))
    ranks = run_ranks(tmp_path, share_out(made, 0, (0, 1, 2))).results
    near(np.concatenate([one["y"] for one in ranks]), [[-1], [1]])
    for found in ranks:
        near(found["running_mean"], [2])
        near(found["running_variance"], [2])


def test_local_is_another_norm(tmp_path):
    """0.7: a batch that is split without an exchange normalizes otherwise."""
    made = batch_call([0, 2, 10, 12])
    local = run_generalized(tmp_path / "local", share_out(made, 0, (0, 2, 4)))
    near(np.concatenate([one["y"] for one in local]), [[-1], [1], [-1], [1]], 1e-4)
    ranks = run_ranks(tmp_path / "ranks", share_out(made, 0, (0, 2, 4))).results
    near(np.concatenate([one["y"] for one in ranks]), np.array([[-6], [-4], [4], [6]]) / 26**0.5,
         1e-4)


def test_inference_has_nothing_to_exchange(tmp_path):
    """0.8: no synchronization where the statistics are given."""
    made = golden.call("batch_norm_inference", np.ones((4, 2)), axes=(0,), mean=[0, 1],
                       variance=[1, 1])
    ranks = run_ranks(tmp_path, share_out(made, 0, (0, 1, 4)))
    assert ranks.exchanged == []
    check(made.reference(), joined(made, 0, ranks.results))
