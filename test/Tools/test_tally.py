"""The closing line of `./dev test` counts every runner, and what it cannot count it fails."""

import subprocess
import sys
from pathlib import Path

import pytest

TALLY = Path(__file__).resolve().parents[1] / "tally.py"

SUITE = """<testsuites><testsuite>
<testcase classname="a" name="good"/>
<testcase classname="a" name="bad"><failure message="no"/></testcase>
<testcase classname="a" name="broken"><error message="no"/></testcase>
<testcase classname="a" name="gpu"><skipped message="needs ptxas"/></testcase>
</testsuite></testsuites>"""
GOOD = "<testsuites><testcase name='good'/></testsuites>"


def tally(folder, checks="", suites="", **files):
    (folder / "checks.tsv").write_text(checks)
    (folder / "suites.tsv").write_text(suites)
    for name, text in files.items():
        (folder / f"{name}.xml").write_text(text)
    done = subprocess.run([sys.executable, TALLY, folder], capture_output=True, text=True)
    return done.stdout.splitlines(), done.returncode


def test_sums_checks_and_suites(tmp_path):
    lines, status = tally(
        tmp_path, "pass\tbuild\npass\tformat\n", "lit\t0\nunit\t0\n", lit=GOOD, unit=GOOD
    )
    assert lines == ["4 passed, 0 failed, 0 skipped"]
    assert status == 0


def test_names_failures_and_reasons_of_skips(tmp_path):
    lines, status = tally(tmp_path, "fail\tdocs\n", "lit\t1\n", lit=SUITE)
    assert lines[-1] == "1 passed, 3 failed, 1 skipped"
    assert "skipped 1: needs ptxas" in lines
    assert "failed: a.bad" in lines and "failed: docs" in lines
    assert status == 1


@pytest.mark.parametrize(
    "suites, files",
    [
        ("lit\t2\n", {}),  # it died before it wrote its results
        ("lit\t0\n", {"lit": "<testsuites/>"}),  # it found no test
        ("lit\t1\n", {"lit": GOOD}),  # it failed, but no test did
    ],
)
def test_a_suite_that_did_not_run_well_is_a_failure(tmp_path, suites, files):
    lines, status = tally(tmp_path, "pass\tbuild\n", suites, **files)
    assert "1 failed" in lines[-1]
    assert status == 1


def test_nothing_at_all_is_a_failure(tmp_path):
    lines, status = tally(tmp_path)
    assert lines == ["0 passed, 0 failed, 0 skipped"]
    assert status == 1
