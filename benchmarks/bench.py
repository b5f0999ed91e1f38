"""Times norms beside copies of the same bytes and beside other libraries.

    ./dev bench                the suite, and errors against the mean of a row
    ./dev bench --peers        sets up the other libraries in .venv-peers
    ./dev bench --write-docs   the last results to docs/Performance.md
    ./dev bench --cases        cells of public complaints about speed (docs/Cases.md)

A ratio is how much of the time the faster of a plain and a non-temporal copy of the same
bytes would have taken; 1 is as fast as copying. docs/Performance.md says how it is taken.
Results go to out/bench.json, those of --sweep and --cases to out/bench-sweep.json and
out/bench-cases.json.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "benchmarks")]

from harness import accuracy, channels, page, peers, report, session, suite  # noqa: E402
from harness.buffers import shapes_only  # noqa: E402
from harness.native import CACHE, Native, compile_all  # noqa: E402
from harness.peers import norm_  # noqa: E402
from reported_cells import reported, selected, show  # noqa: E402

__all__ = ["reported"]

RESULTS, SWEEP, CASES, CHECKED = (
    ROOT / "out" / f"bench{name}.json" for name in ("", "-sweep", "-cases", "-checked"))
# A sweep has too many shapes for those that take seconds to compile each.
SWEPT_LANES = ("norm", "onednn")
REALTIME_PRIORITY = 10
CHILD = "NORM_BENCH_THREADS"  # set in the process that times


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--quick", action="store_true", help="a few small shapes")
    kind.add_argument("--full", action="store_true", help="every shape, bf16 and f16 too")
    kind.add_argument("--sweep", action="store_true", help="every N from 1 to 64, steps of 8 "
                      "around 4096, steps of 128 to 16384")
    add("--cases", action="store_true", help="the cells of reported complaints")
    add("--write-docs", action="store_true",
        help="write docs/Performance.md and its pictures from the last results")
    add("--filter", default="", metavar="TEXT[,TEXT]",
        help="only cases whose name contains or matches one, such as 'rms_norm 1x*'")
    add("--lanes", default="", metavar="NAME[,NAME]", help="only these of: norm, "
        "norm.rows, norm.dynamic, norm.versions, torch, torch.compile, onednn, onnxruntime, "
        "openvino, jax, iree")
    add("--threads", type=int, default=2, help="of every lane (default: %(default)s)")
    add("--rounds", type=int, help="interleaved rounds (default: 7, with --quick or "
        "--sweep 5; 0 checks results and times nothing)")
    add("--block-ms", type=float, help="of calls of a lane in a round (default: 20)")
    add("--regime", choices=("warm", "cold", "both"), help="warm: the same buffers; cold: sets "
        "of them beyond the last cache (default: warm, and some shapes of the suite cold too)")
    add("--rt", action="store_true", help="real-time scheduling, for a machine that is not idle "
        "(root)")
    add("--pause", type=float, default=0, metavar="SECONDS", help="between cases, for those "
        "others")
    add("--merge", action="store_true", help="keep the results of other cases")
    add("--verbose", action="store_true", help="a line for every lane")
    add("--repeat", type=int, default=3, help="with --cases: processes a cell")
    options = parser.parse_args(arguments)
    if options.rounds is None:
        options.rounds = 5 if options.quick or options.sweep else 7
    options.target = (options.block_ms or (8 if options.quick or options.sweep else 20)) / 1e3
    return parser, options


def enter_child(options):
    """Starts this process again, with what must be set before libraries are loaded."""
    threads = str(options.threads)
    os.environ.update({
        CHILD: threads, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads,
        # Threads of one pool are asleep when another's turn comes.
        "KMP_BLOCKTIME": "1", "GOMP_SPINCOUNT": "10000",
        # Freed memory stays mapped: no page faults in calls that allocate their results.
        "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 36),
        "MALLOC_TOP_PAD_": str(64 << 20), "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        "TORCHINDUCTOR_CACHE_DIR": str(CACHE / "inductor"), "JAX_PLATFORMS": "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""})
    os.environ.pop("OMP_WAIT_POLICY", None)
    os.execv(sys.executable, [sys.executable, *sys.argv])


def chosen(options):
    kind = "quick" if options.quick else "full" if options.full else "standard"
    cases = suite.sweep() if options.sweep else [
        case for family in (suite, channels) for case in getattr(family, kind)()]
    return suite.select(cases, options.filter)


def arguments_of(case):
    """What compiling a case needs of it."""
    return channels.shapes_only(case) if case.is_channels else shapes_only(case)


def plan(case, options):
    regimes = (("warm", "cold") if options.regime == "both" else (options.regime,)
               if options.regime else ("warm",) if options.sweep or case.is_channels
               else suite.regimes(case))
    return session.Plan(options.rounds, options.target, regimes)


def save(path, document):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def enter_schedule(options):
    """On as many processors as threads, ahead of others with --rt. Threads made later
    follow."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.threads])
    if options.rt:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(REALTIME_PRIORITY))


def started(path, cases, lanes, options):
    """The document of a run; with --merge it has the records of other cases."""
    old = json.loads(path.read_text()) if options.merge and path.exists() else {}
    names = {case.name for case in cases}
    return {**old, "machine": report.machine(), "date": time.strftime("%Y-%m-%d"),
            "threads": options.threads, "rounds": options.rounds, "realtime": options.rt,
            "versions": {**old.get("versions", {}), **{lane.name: lane.version for lane in lanes}},
            "records": [record for record in old.get("records", [])
                        if record["case"] not in names]}


def timed(cases, options):
    """Times the cases; writes the results after each, so that none is lost."""
    def log(text):
        print(text, flush=True)
    path = CHECKED if not options.rounds else SWEEP if options.sweep else RESULTS
    wanted = [name for name in options.lanes.split(",") if name] or (
        SWEPT_LANES if options.sweep else ())
    programs = [lambda case=case, lane=lane: lane.asked(case, arguments_of(case))
                for lane in norm_.LANES if not wanted or lane.name in wanted for case in cases]
    log(f"compiling {len(programs)} programs")
    compile_all(programs)
    enter_schedule(options)
    native = Native()
    lanes = peers.load(wanted, options.threads, native, log)
    document = started(path, cases, lanes, options)
    places = {case.name: place for place, case in enumerate(
        suite.full() + channels.full() + suite.quick() + channels.quick())}
    for number, case in enumerate(cases):
        records = session.run_case(case, lanes, native, plan(case, options), log)
        document["records"] += records
        document["records"].sort(key=lambda record: places.get(record["case"], len(places)))
        report.show(case, records, f"[{number + 1}/{len(cases)}]", options.verbose, log)
        save(path, document)
        time.sleep(options.pause)
    if not (options.sweep or options.filter or options.quick):
        document["accuracy"] = {"means": accuracy.MEANS, "ulps": accuracy.errors(lanes, log)}
        save(path, document)
    if options.rounds:
        report.summary(document["records"], log)
    log(f"written to {path.relative_to(ROOT)}")


def main():
    parser, options = parse(sys.argv[1:])
    if options.write_docs:
        try:
            page.write(ROOT, RESULTS, SWEEP)
        except (ImportError, FileNotFoundError) as error:
            parser.error(f"{error}; run ./dev bench --peers and ./dev bench first")
        return
    if options.cases:
        cells = selected(options.filter, options.quick)
        if not cells:
            parser.error(f"no cell's name contains '{options.filter}'")
        shown = show(cells, 1 if options.quick else options.repeat)
        save(CASES, {"machine": report.machine(), "cells": shown})
        print(f"written to {CASES.relative_to(ROOT)}")
        return
    cases = chosen(options)
    if not cases:
        parser.error(f"no case's name contains or matches '{options.filter}'")
    if os.environ.get(CHILD) != str(options.threads):
        enter_child(options)
    timed(cases, options)
    sys.stdout.flush()
    # Some libraries crash at exit when several are in one process.
    os._exit(0)


if __name__ == "__main__":
    main()
