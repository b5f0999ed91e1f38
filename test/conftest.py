"""Makes `python/` and the tables importable; the fixtures of `norm.golden`."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(ROOT / "test" / "Integration"))
sys.path.insert(0, str(ROOT / "test" / "Rewrites"))
sys.path.insert(0, str(ROOT / "test" / "Cases"))
sys.path.insert(0, str(ROOT / "test" / "GPU"))


def pytest_addoption(parser):
    parser.addoption("--mutate", action="store_true",
                     help="switch off every precondition of every rewrite, not today's part only")
    parser.addoption("--full", action="store_true",
                     help="also what is marked `full`: long tables, of which a part runs else")


def pytest_configure(config):
    config.addinivalue_line("markers", "full: runs with --full only")


def pytest_collection_modifyitems(config, items):
    """Takes out what is for --full, so that nothing counts as skipped."""
    if config.getoption("--full"):
        return
    left_out = [item for item in items if item.get_closest_marker("full")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("full")]


@pytest.fixture(scope="module")
def golden_runner(request, tmp_path_factory):
    """Runs the calls of all selected golden tests of the module together."""
    from norm.runner import Runner
    calls, chosen = {}, {}
    for item in request.session.items:
        if item.module is request.module and hasattr(item.function, "calls"):
            for number, call in enumerate(item.function.calls):
                calls[item.originalname, number] = call
                chosen.setdefault(item.callspec.params["got"], []).append(
                    (item.originalname, number))
    runner = Runner(tmp_path_factory.mktemp("golden"), calls.get, group_size=12)
    for path, keys in chosen.items():
        runner.submit(keys, path)
    yield runner
    runner.close()


@pytest.fixture(scope="module")
def case_runner(request, tmp_path_factory):
    """Runs the selected cases of a differential test, all of them at once."""
    from cases import PATHS, call
    from norm.runner import GROUP_SIZE, Runner
    cases, chosen = {}, {path: [] for path in PATHS}
    for item in request.session.items:
        if item.module is request.module and getattr(item, "originalname", "") == "test_case":
            case = item.callspec.params["case"]
            cases[case.name] = case
            chosen[item.callspec.params["path"]].append(case.name)
    runner = Runner(tmp_path_factory.mktemp("cases"), lambda name: call(cases[name]))
    # Path by path within a group of cases, so that the first results come soon.
    names = list(cases)
    for start in range(0, len(names), GROUP_SIZE):
        group = set(names[start:start + GROUP_SIZE])
        for path in PATHS:
            runner.submit([name for name in chosen[path] if name in group], path)
    yield runner
    runner.close()


@pytest.fixture
def got(request, golden_runner):
    """The results of the test's calls on the path of its parameter."""
    from norm.promise import check
    found = []
    for number, call in enumerate(request.function.calls):
        results = golden_runner.results((request.node.originalname, number), request.param)
        check(call.reference(), results, "any", request.param)
        found.append(results)
    return found if len(found) > 1 else found[0]
