"""Golden tests of this directory run in one process, from few libraries."""

import pytest


@pytest.fixture(scope="module")
def golden_runner(request, tmp_path_factory):
    """In place of the one that starts norm-run: the same results, sooner."""
    from case_tools import GoldenLibraries
    chosen = {}
    for item in request.session.items:
        if item.module is request.module and hasattr(item.function, "calls"):
            calls = chosen.setdefault(item.callspec.params["got"], {})
            for number, call in enumerate(item.function.calls):
                calls[item.originalname, number] = call
    return GoldenLibraries(tmp_path_factory.mktemp("golden"), chosen)
