"""Every case of the table, on every path, against the oracle and its error promise."""

from functools import lru_cache

import pytest
from norm.promise import check
from norm.runner import GROUP_SIZE, Runner
from table import PATHS, TABLE, call

RUNS = [(case, path) for case in TABLE for path in PATHS if case.runs_on(path)]
CASES = {case.name: case for case in TABLE}


@pytest.fixture(scope="module")
def runner(request, tmp_path_factory):
    """Runs only what was selected, all of it at once."""
    made = Runner(tmp_path_factory.mktemp("differential"), lambda name: call(CASES[name]))
    chosen = {(item.callspec.params["case"].name, item.callspec.params["path"])
              for item in request.session.items
              if getattr(item, "originalname", "") == "test_case"}
    for start in range(0, len(TABLE), GROUP_SIZE):
        for path in PATHS:
            names = [case.name for case in TABLE[start:start + GROUP_SIZE]]
            made.submit([name for name in names if (name, path) in chosen], path)
    yield made
    made.close()


@lru_cache(maxsize=2)
def expected(name):
    return call(CASES[name]).reference()


@pytest.mark.parametrize("case,path", RUNS, ids=lambda v: v if isinstance(v, str) else v.name)
def test_case(case, path, runner):
    check(expected(case.name), runner.results(case.name, path), case.rows, path)
