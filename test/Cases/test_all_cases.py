"""Every reported case has tests that name it, and stands in docs/Cases.md."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))
import reported as pages  # noqa: E402

CASES = pages.gather()


def test_there_are_fifty():
    assert len(pages.IDS) == len(set(pages.IDS)) == 50
    assert set(CASES) == set(pages.IDS), "a test names a case that is not in the list"
    assert set(pages.LATER) <= set(pages.IDS)


@pytest.mark.parametrize("name", pages.IDS)
def test_case_is_tested_and_told(name):
    case = CASES[name]
    assert case.tests, f"no test is called test_case_{name}_..."
    assert case.text, f"no docstring begins with 'case-{name}: threads. Text'"
    assert case.text.endswith(".")
    for thread in case.threads.split(", "):
        assert "/" in thread and ("#" in thread or " PR " in thread), thread


def test_no_case_is_skipped():
    for path in pages.TESTS.glob("test_case_*.py"):
        assert not re.search(r"pytest\.(mark\.)?(skip|xfail)", path.read_text()), path.name


def test_page_is_current():
    assert pages.PAGE.read_text() == pages.page(CASES), "run ./dev docs"
