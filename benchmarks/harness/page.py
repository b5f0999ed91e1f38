"""The tables and pictures of docs/Performance.md, from the last results."""

import json
import re
import tomllib
from fnmatch import fnmatch
from math import isnan

from . import plots, report
from .channels import ALL_FAMILIES
from .session import DYNAMIC, DYNAMIC_ROWS, OURS, OWN, VERSIONS
from .suite import swept_extents

# A drop of the ratio from the extents before it that a reader should see.
DROP = 0.10


def table(header, rows):
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    return "\n".join(lines + [f"| {' | '.join(map(str, row))} |" for row in rows])


def number(value, digits=2):
    return "–" if value is None or isnan(value) else f"{value:.{digits}f}"


def run_section(document):
    """Machine, date, versions."""
    machine = document["machine"]
    caches = ", ".join(f"{level} {machine[level]}" for level in ("L1", "L2", "L3")
                       if level in machine)
    lines = [f"{document['date']}, {machine.get('model name', machine['processor'])}"
             + (f" (family {machine['cpu family']}, model {machine['model']}, stepping "
                f"{machine['stepping']})" if "stepping" in machine else "")
             + f", {machine['processors']} processors, {caches}, Linux {machine['kernel']}; "
             f"{document['threads']} threads, {document['rounds']} rounds"
             + (", real-time scheduling" if document.get("realtime") else "")
             + f"; this project at {document['versions'].get(OURS, 'unknown')}.", ""]
    versions = [(lane, version) for lane, version in document["versions"].items()
                if lane not in OWN]
    return "\n".join(lines) + "\n" + table(("peer", "version"), versions)


def summary_section(records):
    rows = []
    for (family, element), row in report.families(records).items():
        rows.append((family, element, row["cases"], number(row["ratio_aimed"]),
                     f"{row['reached']} of {row['aimed']}", number(row["to_best"]),
                     number(row["least_to_best"]), f"{row['first']} of {row['compared']}"))
    return table(("family", "type", "cases", "of the roof, in memory", "targets reached",
                  "times as fast as the best peer", "least", "first"), rows)


def cell(record, best):
    text = number(record["ratio"])
    return f"**{text}**" if best else text


def family_table(records, family, element):
    cases = {name: lanes for name, lanes in report.by_case(records).items()
             if lanes["plain"]["family"] == family and lanes["plain"]["element"] == element}
    if not cases:
        return ""
    peers = report.lanes_of([r for lanes in cases.values() for r in lanes.values()])
    rows = []
    for lanes in cases.values():
        ours = lanes.get(OURS)
        if ours is None:
            continue
        first = min((OURS, *(peer for peer in peers if peer in lanes)),
                    key=lambda lane: lanes[lane]["microseconds"])
        roof = lanes[ours["roof"]]
        packed = f" of {ours['packed']}" if ours["packed"] else ""
        rows.append((ours["shape"] + packed, f"{roof['gigabytes_per_second']:.1f}"
                     + (" nt" if ours["roof"] != "plain" else ""),
                     report.time_text(ours["microseconds"]), cell(ours, first == OURS),
                     *(cell(lanes[p], first == p) if p in lanes else "–" for p in peers),
                     number(ours.get("ratio_to_best"))))
    return table(("shape", "roof GB/s", "µs", OURS, *peers, "× best peer"), rows)


def families_section(records):
    parts = []
    for element in dict.fromkeys(r["element"] for r in report.timed_records(records)):
        for family in ALL_FAMILIES:
            found = family_table(records, family, element)
            if found:
                parts.append(f"### {family}, {element}\n\n{found}")
    return "\n\n".join(parts)


def cause(name, causes):
    return next((text for pattern, text in causes.items() if fnmatch(name, pattern)), "")


def missed_section(records, causes):
    rows = [(record["case"], "wrong" if record.get("wrong") else "failed", *["–"] * 4,
             cause(record["case"], causes)) for record in records
            if record["lane"] == OURS and (record.get("wrong") or "failed" in record)]
    for regime in ("warm", "cold"):
        for name, lanes in report.by_case(records, regime).items():
            ours = lanes.get(OURS)
            if ours is None or report.is_first(ours) and not report.misses_target(ours):
                continue
            rows.append((name + (" cold" if regime == "cold" else ""),
                         report.time_text(ours["microseconds"]), number(ours["ratio"]),
                         report.target_text(ours) or "–",
                         f"{ours['best_peer']} {number(lanes[ours['best_peer']]['ratio'])}"
                         if "best_peer" in ours else "–",
                         number(ours.get("ratio_to_best")), cause(name, causes)))
    if not rows:
        return "None."
    return table(("case", "µs", "of the roof", "target", "best peer", "× best peer", "cause"),
                 rows)


def cold_section(records):
    rows = []
    for name, lanes in report.by_case(records, "cold").items():
        ours = lanes.get(OURS)
        if ours:
            rows.append((name, report.time_text(ours["microseconds"]), number(ours["ratio"]),
                         ours.get("best_peer", "–"), number(ours.get("ratio_to_best"))))
    return table(("case", "µs", "of the roof", "best peer", "× best peer"), rows) if rows \
        else "Not timed."


def peers_section(records):
    """What computes each norm, and what was wrong or is not there."""
    kernels, rest = {}, {}
    for record in records:
        lane, family = record["lane"], record.get("family")
        if record.get("wrong") or "failed" in record or "skipped" in record:
            text = (f"wrong: largest error {max(record['errors'].values()):.1e} of the largest "
                    "value" if record.get("wrong")
                    else record.get("failed") or record["skipped"])
            rest.setdefault((lane, text.replace("|", "/")), []).append(record["case"])
        elif record.get("implementation") and lane not in OWN:
            kernels.setdefault((lane, record["implementation"], record["note"]), set()).add(family)
    used = table(("peer", "kernel", "of", "note"), [
        (lane, kernel, ", ".join(f for f in ALL_FAMILIES if f in found), note)
        for (lane, kernel, note), found in kernels.items()])
    left = table(("peer", "why not timed", "cases"), [
        (lane, text, len(cases) if len(cases) > 2 else "; ".join(cases))
        for (lane, text), cases in rest.items()])
    return f"{used}\n\nNot timed:\n\n{left}" if rest else used


def accuracy_section(document):
    found = document.get("accuracy")
    if not found:
        return "Not measured."
    def ulps(value):
        return "–" if value is None else f"{value:.1f}" if value < 100 else f"{value:.2g}"
    return table(("mean/std", *(f"{mean:g}" for mean in found["means"])),
                 [(lane, *map(ulps, values)) for lane, values in found["ulps"].items()])


def drops(records):
    """(case, its ratio, the lower of its neighbours' ratios) where one extent is slower
    than both that surround it."""
    found = []
    for family in ALL_FAMILIES:
        for steps in swept_extents().values():
            ratios = {}
            for record in report.timed_records(records):
                extent = int(record["shape"].split("x")[-1])
                if record["lane"] == OURS and record["family"] == family and extent in steps:
                    ratios[extent] = record
            around = sorted(ratios)
            for before, here, after in zip(around, around[1:], around[2:], strict=False):
                least = min(ratios[before]["ratio"], ratios[after]["ratio"])
                if ratios[here]["ratio"] < (1 - DROP) * least:
                    found.append((ratios[here]["case"], ratios[here]["ratio"], least))
    return found


def slower_rms(records):
    """(case, its ratio, that of the layer norm) where an RMS norm is the slower one."""
    ratios = {(r["family"], r["shape"], r["element"]): r for r in report.timed_records(records)
              if r["lane"] == OURS}
    found = []
    for (family, *rest), record in ratios.items():
        other = ratios.get((family.replace("rms", "layer"), *rest))
        if "rms" in family and other and record["ratio"] < (1 - DROP) * other["ratio"]:
            found.append((record["case"], record["ratio"], other["ratio"]))
    return found


def sweep_section(document, causes):
    if document is None:
        return "Not swept."
    parts = []
    for found, where, other in (
            (drops(document["records"]), "extents slower than both their neighbours", "neighbours"),
            (slower_rms(document["records"]), "RMS norms slower than layer norms", "layer norm")):
        rows = [(name, number(ratio), number(least), cause(name, causes))
                for name, ratio, least in dict.fromkeys(found)]
        parts.append(f"By more than 10 %, {where}:" + (
            f"\n\n{table(('case', 'of the roof', other, 'cause'), rows)}" if rows else " none."))
    return "\n\n".join(parts)


def dynamic_section(records):
    """Code that knows fewer extents beside code for the shape."""
    rows = []
    for name, lanes in report.by_case(records).items():
        found = [lanes.get(lane, {}).get("ratio_to_static")
                 for lane in (DYNAMIC_ROWS, DYNAMIC, VERSIONS)]
        if any(found):
            rows.append((name, report.time_text(lanes[OURS]["microseconds"]),
                         *("–" if ratio is None else number(ratio) for ratio in found)))
    head = ("case", "µs", "rows unknown", "all unknown", "a version")
    return table(head, rows) if rows else "Not timed."


def replaced(text, name, body):
    """The page with one generated section replaced."""
    begin, end = f"<!-- generated: {name} -->", "<!-- end -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"docs/Performance.md has no section '{begin}'")
    return pattern.sub(lambda _: f"{begin}\n\n{body}\n\n{end}", text, count=1)


def write(root, results, sweep):
    """Writes the page's generated sections and docs/performance/*.svg."""
    document = json.loads(results.read_text())
    swept = json.loads(sweep.read_text()) if sweep.exists() else None
    causes = tomllib.loads((root / "benchmarks" / "causes.toml").read_text())
    records = document["records"]
    page = root / "docs" / "Performance.md"
    text = page.read_text()
    for name, body in (("run", run_section(document)), ("summary", summary_section(records)),
                       ("families", families_section(records)),
                       ("missed", missed_section(records, causes)),
                       ("cold", cold_section(records)), ("dynamic", dynamic_section(records)),
                       ("peers", peers_section(records)),
                       ("accuracy", accuracy_section(document)),
                       ("sweep", sweep_section(swept, causes))):
        text = replaced(text, name, body)
    page.write_text(text)
    for path in plots.write(root / "docs" / "performance", document, swept):
        print(f"written: {path.relative_to(root)}")
    print(f"written: {page.relative_to(root)}")


