"""What is printed of the records, and what tables are made of."""

import os
import platform
from math import exp, log
from pathlib import Path

from .channels import ALL_FAMILIES
from .session import OURS, OWN, ROOFS


def machine():
    """The processor, its caches and the system."""
    found = {"processor": platform.processor() or platform.machine(),
             "processors": len(os.sched_getaffinity(0)), "kernel": platform.release()}
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("model name", "cpu family", "model", "stepping"):
                found.setdefault(key.strip(), value.strip())
        for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
            level, kind = ((index / name).read_text().strip() for name in ("level", "type"))
            if kind != "Instruction":
                found[f"L{level}"] = (index / "size").read_text().strip()
    except OSError:
        pass
    return found


def timed_records(records, regime="warm"):
    return [record for record in records if record.get("regime") == regime]


def by_case(records, regime="warm"):
    """case -> lane -> record, of what was timed."""
    found = {}
    for record in timed_records(records, regime):
        found.setdefault(record["case"], {})[record["lane"]] = record
    return found


def geometric_mean(values):
    values = list(values)
    return exp(sum(map(log, values)) / len(values)) if values else float("nan")


def is_first(record):
    return record.get("ratio_to_best", float("inf")) >= 1


def misses_target(record):
    if not record.get("target"):
        return False
    what, bound = record["target"]
    value = record.get(what)
    return value is not None and (value > bound if what == "microseconds" else value < bound)


def target_text(record):
    if not record.get("target"):
        return ""
    what, bound = record["target"]
    return {"ratio": f"{bound:.2f}", "ratio_to_best": f"{bound:.1f} × best",
            "microseconds": f"{bound:.0f} µs"}[what]


def families(records):
    """family and element -> what a row of the summary holds, of this project."""
    groups = {}
    for lanes in by_case(records).values():
        if OURS in lanes:
            record = lanes[OURS]
            groups.setdefault((record["family"], record["element"]), []).append(record)
    found = {}
    for key in sorted(groups, key=lambda k: (k[1] != "f32", ALL_FAMILIES.index(k[0]), k[1])):
        group = groups[key]
        compared = [record for record in group if "ratio_to_best" in record]
        aimed = [record for record in group if record.get("target")]
        found[key] = {
            "cases": len(group),
            "ratio": geometric_mean(record["ratio"] for record in group),
            "ratio_aimed": geometric_mean(record["ratio"] for record in aimed
                                          if record["target"][0] == "ratio"),
            "aimed": len(aimed), "reached": sum(not misses_target(r) for r in aimed),
            "to_best": geometric_mean(record["ratio_to_best"] for record in compared),
            "least_to_best": min((r["ratio_to_best"] for r in compared), default=float("nan")),
            "first": sum(map(is_first, compared)), "compared": len(compared)}
    return found


def time_text(microseconds):
    return f"{microseconds:.2f}" if microseconds < 10 else f"{microseconds:.1f}" \
        if microseconds < 1000 else f"{microseconds:.0f}"


def result_text(ours, lanes):
    """How the project did beside the best peer."""
    text = f", norm {time_text(ours['microseconds'])} us {ours['ratio']:.2f}"
    if "best_peer" in ours:
        best = lanes[ours["best_peer"]]
        text += (f", {best['lane']} {time_text(best['microseconds'])} us {best['ratio']:.2f}: "
                 f"{ours['ratio_to_best']:.2f} times as fast"
                 + ("" if is_first(ours) else " NOT FIRST"))
    return text + (" BELOW TARGET" if misses_target(ours) else "")


def show(case, records, prefix, verbose, print_line):
    """One line a regime of a case; all lanes if verbose."""
    found = [regime for regime in ("warm", "cold") if timed_records(records, regime)]
    for regime in found:
        lanes = {r["lane"]: r for r in timed_records(records, regime)}
        roof = lanes[lanes["plain"]["roof"]]
        print_line(f"{prefix} {case.name}{' cold' if regime == 'cold' else ''}: {roof['lane']} "
                   f"{roof['gigabytes_per_second']:.1f} GB/s"
                   + (result_text(lanes[OURS], lanes) if OURS in lanes else ""))
        for record in lanes.values() if verbose else ():
            print_line(f"    {record['lane']:<14}{time_text(record['microseconds']):>10} us"
                       f"{record['ratio']:>7.2f}  {record.get('implementation', '')}")
    if not found:
        right = [r["lane"] for r in records if "errors" in r and not r.get("wrong")]
        print_line(f"{prefix} {case.name}: right: {', '.join(right) or 'none'}")
    for record in records if verbose else ():
        for reason in ("skipped", "failed"):
            if reason in record:
                print_line(f"    {record['lane']:<14}{reason}: {record[reason]}")


def summary(records, print_line):
    print_line(f"\n{'family':<22}{'type':<6}{'cases':>6}{'of roof':>9}{'aimed at':>10}"
               f"{'reached':>9}{'times best peer':>17}{'least':>7}{'first':>8}")
    for (family, element), row in families(records).items():
        print_line(f"{family:<22}{element:<6}{row['cases']:>6}{row['ratio']:>9.2f}"
                   f"{row['ratio_aimed']:>10.2f}{row['reached']:>5} of {row['aimed']:<2}"
                   f"{row['to_best']:>16.2f}{row['least_to_best']:>7.2f}"
                   f"{row['first']:>4} of {row['compared']}")


def lanes_of(records):
    """The peers that were timed, in the order they were."""
    return [lane for lane in dict.fromkeys(r["lane"] for r in timed_records(records))
            if lane not in (*ROOFS, *OWN)]
