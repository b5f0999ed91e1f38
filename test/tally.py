"""Sums the results of all runners and prints one closing line.

usage: tally.py RESULTS

RESULTS holds checks.tsv (`pass|fail <tab> name`, one check a line), suites.tsv
(`name <tab> exit status`) and for each suite a JUnit file `name.xml`.
Exits 1 if anything failed.
"""

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path


def read_suite(path: Path):
    """Returns (name, outcome, reason) of each test case in a JUnit file."""
    cases = []
    for case in ElementTree.parse(path).iter("testcase"):
        name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
        outcome, reason = "passed", ""
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            outcome = "failed"
        elif skipped is not None:
            outcome, reason = "skipped", skipped.get("message") or "no reason given"
        cases.append((name, outcome, reason))
    return cases


def read_results(results: Path):
    """Returns the test cases of all checks and suites in the folder."""
    cases = []
    checks = results / "checks.tsv"
    if checks.exists():
        for line in checks.read_text().splitlines():
            outcome, name = line.split("\t")
            cases.append((name, "passed" if outcome == "pass" else "failed", ""))
    suites = results / "suites.tsv"
    if suites.exists():
        for line in suites.read_text().splitlines():
            name, status = line.split("\t")
            path = results / f"{name}.xml"
            suite = read_suite(path) if path.exists() else []
            failed = any(outcome == "failed" for _, outcome, _ in suite)
            if not suite:
                suite = [(f"{name}: ran no test", "failed", "")]
            elif status != "0" and not failed:
                suite.append((f"{name}: exited {status}", "failed", ""))
            cases += suite
    return cases


def main() -> int:
    cases = read_results(Path(sys.argv[1]))
    counts = Counter(outcome for _, outcome, _ in cases)
    for (reason, count) in Counter(r for _, o, r in cases if o == "skipped").items():
        print(f"skipped {count}: {reason}")
    for name, outcome, _ in cases:
        if outcome == "failed":
            print(f"failed: {name}")
    print(
        f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped",
        flush=True,
    )
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
