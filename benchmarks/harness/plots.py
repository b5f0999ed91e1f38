"""The pictures of docs/Performance.md: SVG, the same bytes for the same results."""

from . import report
from .channels import ALL_FAMILIES
from .session import OURS, ROOFS
from .suite import swept_extents

# This project, then peers in the order of the tables.
COLOURS = {OURS: "#c02020", "torch": "#7a9cc6", "torch.compile": "#35618f", "onednn": "#3a3a3a",
           "onnxruntime": "#8fbf8f", "openvino": "#9a86c0", "jax": "#d8a860", "iree": "#b8b8b8"}
OTHER = "#60a0a0"
MOST_SHOWN = 1.6
# What is timed beside the errors of accuracy.py, and whose errors are shown.
ERROR_CASE, ERROR_MEANS = "layer_norm 4096x4096 f32", (0.0, 1e3)


def library():
    """Matplotlib, set up to write reproducible files."""
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "norm", "svg.fonttype": "none", "font.size": 8,
                                "axes.spines.top": False, "axes.spines.right": False})
    import matplotlib.pyplot as pyplot
    return pyplot


def saved(figure, path):
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    # Its lines end in blanks.
    lines = [line.rstrip() for line in path.read_text().splitlines()]
    path.write_text("\n".join(lines) + "\n")
    return path


def bars(path, records):
    """A panel a family: ratios to the roof of every lane at every shape."""
    pyplot = library()
    panels = []
    for element in dict.fromkeys(r["element"] for r in report.timed_records(records)):
        for family in ALL_FAMILIES:
            cases = [lanes for lanes in report.by_case(records).values()
                     if lanes["plain"]["family"] == family
                     and lanes["plain"]["element"] == element]
            if cases:
                panels.append((f"{family}, {element}", cases))
    lanes = [OURS, *report.lanes_of(records)]
    figure, axes = pyplot.subplots(len(panels), 1, figsize=(10, 2.1 * len(panels)),
                                   squeeze=False)
    for axis, (title, cases) in zip(axes[:, 0], panels, strict=True):
        for number, lane in enumerate(lanes):
            width = 0.85 / len(lanes)
            places = [i + (number - len(lanes) / 2 + 0.5) * width for i in range(len(cases))]
            values = [case[lane]["ratio"] if lane in case else 0 for case in cases]
            axis.bar(places, values, width, color=COLOURS.get(lane, OTHER), label=lane)
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_ylim(0, min(MOST_SHOWN, 1.05 * max(axis.get_ylim()[1], 1)))
        axis.set_xticks(range(len(cases)), [
            case["plain"]["shape"] + (f"\nof {case['plain']['packed']}"
                                      if case["plain"]["packed"] else "") for case in cases],
            rotation=30 if len(cases) > 9 else 0, fontsize=7)
        axis.set_ylabel("of the roof")
        axis.set_title(title, loc="left", fontsize=9)
    axes[0, 0].legend(ncols=len(lanes), fontsize=7, frameon=False, loc="lower right",
                      bbox_to_anchor=(1, 1.05))
    figure.tight_layout()
    return saved(figure, path)


def sweeps(path, records):
    """A panel a sweep: ratio to the roof over the extent of a row."""
    pyplot = library()
    found = {}
    for record in report.timed_records(records):
        if record["lane"] not in ROOFS:
            key = record["family"], record["lane"]
            found.setdefault(key, {})[int(record["shape"].split("x")[-1])] = record["ratio"]
    families = list(dict.fromkeys(family for family, _ in found))
    names = list(swept_extents())
    figure, axes = pyplot.subplots(len(families), len(names), squeeze=False, sharey=True,
                                   figsize=(10, 2.4 * len(families)))
    for row, family in zip(axes, families, strict=True):
        for axis, name in zip(row, names, strict=True):
            for (other, lane), ratios in found.items():
                extents = sorted(set(ratios) & set(swept_extents()[name]))
                if other == family and extents:
                    axis.plot(extents, [ratios[n] for n in extents], label=lane,
                              color=COLOURS.get(lane, OTHER),
                              linewidth=1.4 if lane == OURS else 0.8)
            axis.axhline(1, color="black", linewidth=0.6)
            axis.set_title(f"{family}, {name}", loc="left", fontsize=9)
            axis.set_ylim(bottom=0)
    axes[0, 0].set_ylabel("of the roof")
    axes[0, 0].legend(fontsize=7, frameon=False)
    figure.tight_layout()
    return saved(figure, path)


def accuracy(path, found):
    """Errors over mean/std, both logarithmic."""
    pyplot = library()
    figure, axis = pyplot.subplots(figsize=(6, 3.4))
    for lane, values in found["ulps"].items():
        points = [(max(mean, 0.1), value) for mean, value in
                  zip(found["means"], values, strict=True) if value is not None]
        if points:
            axis.plot(*zip(*points, strict=True), marker=".", label=lane,
                      color=COLOURS.get(lane, OTHER), linewidth=2 if lane == OURS else 1)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks([0.1] + [mean for mean in found["means"] if mean],
                    ["0"] + [f"{mean:g}" for mean in found["means"] if mean])
    axis.set_xlabel("mean/std of the row")
    axis.set_ylabel("largest error, ulp")
    axis.legend(fontsize=7, frameon=False)
    figure.tight_layout()
    return saved(figure, path)


def error_against_time(path, document):
    """Errors over times: a line a lane, from rows about 0 to rows far from it. The fast and
    right ones are at the lower left."""
    pyplot = library()
    found = document["accuracy"]
    times = {r["lane"]: r["microseconds"] for r in report.timed_records(document["records"])
             if r["case"] == ERROR_CASE}
    if OURS not in times:
        return []
    figure, axis = pyplot.subplots(figsize=(6, 3.4))
    for lane, values in found["ulps"].items():
        errors = dict(zip(found["means"], values, strict=True))
        points = [(times[lane] / times[OURS], errors[mean]) for mean in ERROR_MEANS
                  if lane in times and errors.get(mean) is not None]
        if points:
            axis.plot(*zip(*points, strict=True), marker="o", label=lane,
                      color=COLOURS.get(lane, OTHER), linewidth=2 if lane == OURS else 1)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel(f"time of {ERROR_CASE}, of this project's")
    axis.set_ylabel("largest error, ulp")
    axis.set_title("mean/std " + " to ".join(f"{mean:g}" for mean in ERROR_MEANS), loc="left",
                   fontsize=9)
    axis.legend(fontsize=7, frameon=False)
    figure.tight_layout()
    return [saved(figure, path)]


def write(directory, document, swept):
    """Writes what there are results for; the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = [bars(directory / "bars.svg", document["records"])]
    if "accuracy" in document:
        paths.append(accuracy(directory / "accuracy.svg", document["accuracy"]))
        paths += error_against_time(directory / "error-time.svg", document)
    if swept:
        paths.append(sweeps(directory / "sweeps.svg", swept["records"]))
    return paths
