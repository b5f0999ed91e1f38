"""Random programs on every path against the oracle, through passes, and damaged IR.

The seeds are fixed; `./dev fuzz --minutes N --seed S` runs others. What it finds is kept in
found/: failures that were fixed, each shrunk, run again here.
"""

from pathlib import Path

import pytest
from norm.fuzz import damage
from norm.fuzz.execute import Executor, plan_for
from norm.fuzz.generate import generate
from norm.fuzz.server import Server
from norm.fuzz.shrink import check_found

FOUND = sorted((Path(__file__).parent / "found").iterdir())


@pytest.fixture(scope="module")
def executor():
    with Server() as server:
        yield Executor(server)


def fail(failure, seed, program):
    text = program if isinstance(program, str) else program.text()
    pytest.fail(f"seed {seed}: {failure.kind} in {failure.where} ({failure.data})\n"
                f"{failure.text}\n{text}", pytrace=False)


@pytest.mark.parametrize("start", range(0, 60, 6))
def test_programs_on_every_path(start, executor):
    for seed in range(start, start + 6):
        program = generate(seed)
        failure = executor.check(program, plan_for(program, executor.available))
        if failure:
            fail(failure, seed, program)


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_programs_through_passes(start, executor):
    for seed in range(start, start + 50):
        program = generate(seed)
        plan = plan_for(program, executor.available, compiled=False)
        failure = executor.check_passes(program, plan)
        if failure:
            fail(failure, seed, program)


@pytest.mark.parametrize("start", range(0, 600, 100))
def test_damaged_texts(start, executor):
    for seed in range(start, start + 100):
        text, failure, _ = damage.check(executor.server, seed)
        if failure:
            fail(failure, seed, text)


def test_some_damaged_texts_are_still_read(executor):
    read = [damage.check(executor.server, seed)[2] for seed in range(100)]
    assert 10 < sum(read) < 90


@pytest.mark.parametrize("path", FOUND, ids=lambda p: p.stem)
def test_found(path, executor):
    text = path.read_text()
    failure = (check_found(text, executor) if path.suffix == ".json" else
               damage.check_text(executor.server, text))
    if failure:
        pytest.fail(f"{failure.kind} in {failure.where}\n{failure.text}", pytrace=False)


def test_a_wrong_result_is_found_and_shrunk(executor):
    """What the fuzzer is for, on a promise that nothing keeps."""
    from norm.fuzz import evaluate
    from norm.fuzz.shrink import fails, shrink
    program = generate(11, norms=2)
    plan = plan_for(program, frozenset())
    ulps_for = evaluate.ulps_for
    evaluate.ulps_for = lambda *_: 0
    try:
        failure = executor.check(program, plan)
        assert failure and failure.kind == "promise"
        smaller, plan, found = shrink("run", program, plan, failure, executor)
        assert fails("run", smaller, plan, executor, found)
        assert len(smaller.nodes) < len(program.nodes)
    finally:
        evaluate.ulps_for = ulps_for
    assert executor.check(smaller, plan) is None
