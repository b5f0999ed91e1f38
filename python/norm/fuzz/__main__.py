"""python -m norm.fuzz: see --help, and CONTRIBUTING.md."""

import argparse
import json
import multiprocessing
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

from norm.fuzz import damage
from norm.fuzz.execute import Executor, Failure, plan_for
from norm.fuzz.generate import generate
from norm.fuzz.server import Server
from norm.fuzz.shrink import found_text, shrink
from norm.tools import ROOT

KINDS = ("run", "passes", "damage")
# Shares of the time.
SHARES = {"run": 0.4, "passes": 0.5, "damage": 0.1}
COMMANDS = 20000  # after so many a server starts anew: contexts only grow


def one(kind, seed, server, executor):
    """Runs the program of a seed: what it was, and its `Failure` or None."""
    try:
        if kind == "damage":
            text, failure, _ = damage.check(server, seed)
            return text, None, failure
        program = generate(seed)
        plan = plan_for(program, executor.available, compiled=kind == "run")
        check = executor.check if kind == "run" else executor.check_passes
        return program, plan, check(program, plan)
    except Exception:  # a fault of the fuzzer is a failure too
        return None, None, Failure("fuzzer", kind, traceback.format_exc())


def campaign(job, options):
    """Runs programs until the time is over; returns counts."""
    counts, signatures, spent = Counter(), Counter(), Counter()
    deadline = time.monotonic() + 60 * options.minutes
    numbers = {kind: options.seed + job for kind in KINDS}
    log = options.log.open("a") if options.log else sys.stdout
    with Server(seconds=options.patience) as server:
        executor = Executor(server)
        noted = time.monotonic()
        while time.monotonic() < deadline:
            kind = min(options.kinds, key=lambda k: spent[k] / SHARES[k])
            seed, start = numbers[kind], time.monotonic()
            numbers[kind] += options.jobs
            if server.commands > COMMANDS:
                server.close()
            program, plan, failure = one(kind, seed, server, executor)
            counts[kind] += 1
            if failure:
                counts[f"{kind} failed"] += 1
                signature = failure.signature()
                signatures[signature] += 1
                if signatures[signature] == 1:
                    report(log, kind, seed, program, plan, failure, executor, options)
            spent[kind] += time.monotonic() - start
            if time.monotonic() - noted > 60:
                noted = time.monotonic()
                note(log, job, counts, executor, numbers)
        note(log, job, counts, executor, numbers)
        for signature, number in signatures.most_common():
            log.write(f"{number} x {signature}\n")
        log.flush()
    counts.update(compiled=executor.compiled, calls=executor.calls, pipelines=executor.passed)
    return counts


def note(log, job, counts, executor, numbers):
    log.write(f"{time.strftime('%H:%M:%S')} job {job}: {dict(counts)} compiled "
              f"{executor.compiled} calls {executor.calls} pipelines {executor.passed} "
              f"refused {executor.refused} next {numbers}\n")
    log.flush()


def report(log, kind, seed, program, plan, failure, executor, options):
    """Prints a failure, shrunk if it can be, and stores it."""
    log.write(f"FAILED {kind} seed {seed}: {failure.signature()}\n  {failure.where} "
              f"{failure.data}\n" + "".join(f"  | {line}\n" for line in
                                            failure.text.splitlines()[:12]))
    log.flush()
    text = program if isinstance(program, str) else ""
    if kind != "damage" and program is not None:
        if options.shrink:
            program, plan, failure = shrink(kind, program, plan, failure, executor)
        text = found_text(kind, program, plan, failure)
    if options.store:
        options.store.mkdir(parents=True, exist_ok=True)
        suffix = "mlir" if kind == "damage" else "json"
        path = options.store / f"{kind}-{seed}.{suffix}"
        if kind == "damage":
            text = f"// {failure.kind} {failure.where}\n{text}"
        path.write_text(text)
        log.write(f"  stored as {path}\n")
        log.flush()


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="./dev fuzz", description="Random programs on every path, against the oracle.")
    parser.add_argument("--minutes", type=float, help="how long; without it one seed is run")
    parser.add_argument("--seed", type=int, default=0, help="the first program, or the only one")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=list(KINDS),
                        help="run, passes, damage (default: all)")
    parser.add_argument("--store", type=Path, default=ROOT / "out" / "fuzz",
                        help="where failures go (default: out/fuzz)")
    parser.add_argument("--log", type=Path, help="a file for the log")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds until it hangs")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    parser.add_argument("--replay", type=Path, help="run a stored failure")
    return parser.parse_args(arguments)


def run_one(options):
    failed = False
    with Server(seconds=options.patience) as server:
        executor = Executor(server)
        for kind in options.kinds:
            program, plan, failure = one(kind, options.seed, server, executor)
            text = program if isinstance(program, str) else program.text() if program else ""
            print(f"---- {kind}, seed {options.seed}\n{text}{plan or ''}")
            if failure:
                failed = True
                print(f"{failure.signature()}\n{failure.where} {failure.data}\n{failure.text}")
            else:
                print("no failure")
    return int(failed)


def replay(options):
    from norm.fuzz.shrink import check_found
    with Server(seconds=options.patience) as server:
        failure = check_found(options.replay.read_text(), Executor(server))
    print(failure.signature() + "\n" + failure.text if failure else "no failure")
    return int(failure is not None)


def main(arguments=None):
    options = parse_arguments(arguments)
    if options.replay:
        return replay(options)
    if options.minutes is None:
        return run_one(options)
    with multiprocessing.Pool(options.jobs) as pool:
        counts = sum(pool.starmap(campaign, [(j, options) for j in range(options.jobs)]),
                     Counter())
    print(json.dumps(counts))
    return int(any("failed" in name for name in counts))


if __name__ == "__main__":
    sys.exit(main())
