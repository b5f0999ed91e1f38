"""Every case of the table, on every path, against the oracle and its error promise."""

import pytest
from norm.promise import check
from norm.runner import Runner
from table import PATHS, TABLE, call

RUNS = [(case, path) for path in PATHS for case in TABLE if case.runs_on(path)]


@pytest.fixture(scope="module")
def runner(request, tmp_path_factory):
    """Runs only what this session selected, all of it at once."""
    made = Runner(tmp_path_factory.mktemp("differential"), lambda name: call(cases[name]))
    cases = {case.name: case for case in TABLE}
    chosen = [item.callspec.params for item in request.session.items
              if getattr(item, "originalname", "") == "test_case"]
    for path in PATHS:
        made.submit([p["case"].name for p in chosen if p["path"] == path], path)
    yield made
    made.close()


@pytest.mark.parametrize("case,path", RUNS, ids=lambda v: v if isinstance(v, str) else v.name)
def test_case(case, path, runner):
    results = runner.results(case.name, path)
    check(call(case).reference(), results, case.rows, path)
