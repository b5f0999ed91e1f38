"""Every rewrite of the table: what it changes, what it leaves alone, and the values.

An example is run before and after, by the reference and on the CPU: a rewrite of gate E
keeps every bit (on the CPU under the same strategy), one of gate R or N stays within the
tolerance. A refusal must leave a remark that names the condition. With a condition
switched off its refusals must fail: each is there for a reason.
"""

import datetime
import re
from pathlib import Path

import pytest
import rewrites
from tables import TABLE

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = [(r, e) for r in TABLE for e in r.examples]
REFUSALS = [(r, e) for r in TABLE for e in r.refusals]
SWITCHES = sorted({f"{r.id}.{e.condition}" for r, e in REFUSALS if e.switch})
# Every `ROTATION`-th condition a day; all with --mutate.
ROTATION = 4
# The same tree of sums on the CPU before and after.
STRATEGY = "--norm-configure=rows=1 columns=8"


def identify(entry):
    rewrite, part = entry
    return f"{rewrite.id}-{part.name or part.condition}".replace(" ", "-")


def refusal_id(entry):
    rewrite, refusal = entry
    return f"{rewrite.id}.{refusal.condition}" + (f"-{refusal.name}" if refusal.name else "")


@pytest.mark.parametrize("entry", EXAMPLES, ids=[f"{r.id}-{e.name}".replace(" ", "-")
                                                 for r, e in EXAMPLES])
def test_example(entry, tmp_path):
    rewrite, example = entry
    after = rewrites.optimize(example.before, rewrite.passes_of(example))
    assert ("Passed", rewrite.id) in after.remarks, after.log + after.text
    for text in example.gone:
        assert text not in after.text, after.text
    for text in example.new:
        assert text in after.text or re.search(text, after.text), after.text
    if not example.runs:
        return

    arguments, results = rewrites.signature(example.before)
    inputs = rewrites.random_inputs(arguments, example.data)
    exact = (example.gate or rewrite.gate) == "E"
    for target in ("reference", "cpu"):
        forced = [STRATEGY] if target == "cpu" else []
        ran = []
        for step, passes in (("before", []), ("after", rewrite.passes_of(example))):
            text = rewrites.optimize(example.before, forced + passes).text
            ran.append(rewrites.execute(tmp_path / target / step, text, inputs, results, target))
        if exact:
            rewrites.assert_same_bits(*ran, f"{rewrite.id} on {target}")
        else:
            rewrites.assert_close(*ran, example.tolerance, f"{rewrite.id} on {target}")


def check_refusal(rewrite, refusal, disabled=None):
    after = rewrites.optimize(refusal.before, rewrite.passes_of(refusal), disabled)
    name = f"{rewrite.id}.{refusal.condition}"
    assert ("Passed", rewrite.id) not in after.remarks, after.log + after.text
    assert ("Missed", name) in after.remarks, after.log + after.text


@pytest.mark.parametrize("entry", REFUSALS, ids=[refusal_id(e) for e in REFUSALS])
def test_refusal(entry):
    check_refusal(*entry)


@pytest.mark.parametrize("switch", SWITCHES)
def test_condition_is_needed(switch, request):
    """With the condition switched off, a refusal that it stands for fails."""
    if not request.config.getoption("--mutate"):
        today = datetime.date.today().toordinal()
        if (SWITCHES.index(switch) + today) % ROTATION:
            return
    survivors = []
    for rewrite, refusal in REFUSALS:
        if f"{rewrite.id}.{refusal.condition}" != switch:
            continue
        try:
            check_refusal(rewrite, refusal, disabled=switch)
        except (AssertionError, rewrites.ToolError):
            return
        survivors.append(refusal.name or refusal.condition)
    pytest.fail(f"without {switch} these still pass: {survivors}")


def test_table_is_complete():
    """Every condition has a refusal, and every refusal a condition."""
    for rewrite in TABLE:
        assert rewrite.gate.split(" ")[0] in rewrites.GATES
        assert set(rewrite.conditions) == {e.condition for e in rewrite.refusals}, rewrite.id
        assert rewrite.examples, rewrite.id
    ids = [r.id for r in TABLE]
    assert len(ids) == len(set(ids))


def test_no_condition_outside_the_table():
    """Every condition that the sources name is one of the table's."""
    named = set()
    for path in (ROOT / "lib").rglob("*.cpp"):
        text = path.read_text()
        named |= set(re.findall(r"rule\.(?:require|refuse)\(\s*\w+,\s*\"([\w-]+)\"", text))
    known = {name for rewrite in TABLE for name in rewrite.conditions}
    assert named <= known, named - known
