"""Runs what the documentation shows, so that it stays true.

In a fenced `sh` block are commands, and in a `text` block right after it what
they print, where `...` stands for any text and a line `...` for any lines. An
`mlir` block right after a line that names a file of examples/ is that file's
text.

Each `mlir` block of the pages in PROGRAMS holds functions that verify and run:
on random inputs, where compiled code and the reference must agree. A `text`
block right after one gives the arrays of a call of its last function, by the
names of arguments and of returned values:

    x  [[1, 2, 3]]
    y  [[-1.2247449, 0, 1.2247449]]
"""

import ast
import itertools
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from norm.tools import load_npy, save_npy
from norm.types import cast, float_type, widen

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("NORM_BUILD_DIR", ROOT / "build"))

SANITIZED = re.search(r"^NORM_SANITIZE:\w+=.", (BUILD / "CMakeCache.txt").read_text(), re.M)

COMMANDS = ("README.md", "docs/Tutorial.md", "docs/Placement.md", "docs/Sync.md",
            "docs/Sharding.md", "docs/Emulator.md", "docs/GPU.md")
LISTINGS = ("docs/Tutorial.md", "docs/Placement.md", "docs/Sharding.md")
PROGRAMS = ("docs/Spec.md", "docs/SpecBackward.md", "docs/SpecStatistics.md", "docs/QKNorm.md",
            "docs/Placement.md")

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
FUNCTION = re.compile(r"func\.func @(\w+)\((.*?)\)\s*->.*?^  return (.*?) : (.*?)\n}", re.M | re.S)
# Arguments of these names are squares and factors.
POSITIVE = ("variance", "rstd", "m2", "running_variance")


def blocks(name: str):
    """Lists (language, text, id, text before the block) in page order."""
    page = (ROOT / name).read_text()
    found = []
    end = 0
    for match in BLOCK.finditer(page):
        line = page.count("\n", 0, match.start()) + 1
        before = page[end : match.start()]
        found.append((match[1], match[2], f"{Path(name).name}:{line}", before))
        end = match.end()
    return found


def pairs(name: str, language: str):
    """Each block of a language with the `text` block right after it, or None."""
    found = blocks(name)
    params = []
    for block, after in itertools.zip_longest(found, found[1:]):
        if block[0] == language:
            follows = after is not None and after[0] == "text" and not after[3].strip()
            params.append(pytest.param(block[1], after[1] if follows else None, id=block[2]))
    return params


def commands(name: str):
    return pairs(name, "sh")


def programs(name: str):
    return pairs(name, "mlir")


def listings(name: str):
    """Pairs each `mlir` block with the file of examples/ that it claims to show."""
    pairs = []
    for language, text, where, before in blocks(name):
        named = re.search(r"`(examples/[\w./-]+)`[^\n]*\n+$", before)
        if language == "mlir" and named:
            pairs.append(pytest.param(named[1], text, id=where))
    return pairs


def matches(expected: str, actual: str) -> bool:
    pattern = ""
    for line in expected.splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pieces = map(re.escape, line.rstrip().split("..."))
            pattern += r"[^\n]*?".join(pieces) + r"[ \t]*\n"
    return re.fullmatch(pattern, actual.rstrip("\n") + "\n") is not None


def run(script: str) -> subprocess.CompletedProcess:
    """Runs a script at the repository's root with the build's tools first on PATH."""
    environment = dict(os.environ)
    tools = [BUILD / "bin", ROOT / ".venv" / "bin"]
    environment["PATH"] = os.pathsep.join([*map(str, tools), environment["PATH"]])
    return subprocess.run(
        ["bash", "-c", script],
        cwd=ROOT,
        env=environment,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def each(find, names):
    return [param for name in names for param in find(name)]


@pytest.mark.parametrize("script, expected", each(commands, COMMANDS))
def test_commands_print_what_the_page_says(script, expected):
    if SANITIZED and ("libnorm_" in script or "emulated" in script):
        pytest.skip("mlir-runner would have to be built with sanitizers too")
    done = run(script)
    if expected is None:
        assert done.returncode == 0, done.stdout
    else:
        assert matches(expected, done.stdout), f"{script}\nprinted:\n{done.stdout}"


@pytest.mark.parametrize("path, text", each(listings, LISTINGS))
def test_listings_are_the_files(path, text):
    assert (ROOT / path).read_text() == text


class Function:
    """What a function's text says of its arguments and results: their names, in
    order, with shape and element type."""

    def __init__(self, match):
        self.name, arguments, returned, types = match.groups()
        self.arguments = {name: self.tensor(text) for name, text in
                          re.findall(r"%(\w+): ([^\s,]+)", arguments)}
        names = re.findall(r"%(\w+)", returned)
        self.results = dict(zip(names, map(self.tensor, types.split(", ")), strict=True))

    @staticmethod
    def tensor(text):
        *extents, element = text.strip().removeprefix("tensor<").removesuffix(">").split("x")
        return tuple(3 if extent == "?" else int(extent) for extent in extents), element


def array(values, element):
    """Values as an element type of MLIR."""
    if element in ("i1", "i64"):
        return np.asarray(values, {"i1": np.bool_, "i64": np.int64}[element])
    return cast(np.asarray(values, np.float64), float_type(element))


def random_array(rng, name, shape, element):
    if element == "i64":
        return rng.integers(2, 9, shape)
    if element == "i1":
        return rng.integers(0, 2, shape).astype(bool)
    positive = name in POSITIVE
    return array(rng.uniform(0.5, 2, shape) if positive else rng.standard_normal(shape), element)


def tolerance(function):
    """Of the narrowest tensor, relative to the greatest magnitude of a result."""
    bits = {"f64": 40, "f32": 18, "f16": 10, "bf16": 7}
    tensors = {**function.arguments, **function.results}
    return 2.0 ** -min(bits.get(element, 52) for _, element in tensors.values())


def call(function, inputs, program, directory):
    """Runs a function on {name: array} as compiled and as reference, which must agree;
    returns {name: array}."""
    command = [f"norm-run {program} --entry={function.name} --compare=reference",
               f"--tolerance={tolerance(function)}"]
    for name in function.arguments:
        save_npy(directory / f"{name}.in.npy", inputs[name])
        command.append(f"--input={directory}/{name}.in.npy")
    command += [f"--output={directory}/{name}.out.npy" for name in function.results]
    done = run(" ".join(command))
    assert done.returncode == 0, done.stdout
    return {name: load_npy(directory / f"{name}.out.npy", element)
            for name, (_, element) in function.results.items()}


def parse_values(text):
    """The arrays of a `text` block as nested lists, and how far they may be off: one in
    the last place where elements have 7 digits or more, else they are exact."""
    found = {}
    for name, values in re.findall(r"^(\w+) +(.*(?:\n +.*)*)", text, re.M):
        digits = max(map(len, re.findall(r"\.(\d+)", values)), default=0)
        plain = re.sub(r"\b(true|false)\b", lambda word: word[0].title(), values)
        found[name] = ast.literal_eval(plain), 10.0**-digits if digits >= 7 else 0
    return found


@pytest.mark.parametrize("text, values", each(programs, PROGRAMS))
def test_programs_run_and_give_what_the_page_says(text, values, tmp_path):
    program = tmp_path / "example.mlir"
    program.write_text(text)
    done = run(f"norm-opt {program} --verify-roundtrip")
    assert done.returncode == 0, done.stdout
    functions = [Function(match) for match in FUNCTION.finditer(text)]
    assert functions
    rng = np.random.default_rng(0)
    for function in functions:
        inputs = {name: random_array(rng, name, *tensor)
                  for name, tensor in function.arguments.items()}
        call(function, inputs, program, tmp_path)
    if values is None:
        return
    said = parse_values(values)
    assert said.keys() == function.arguments.keys() | function.results.keys()
    inputs = {name: array(said[name][0], element)
              for name, (_, element) in function.arguments.items()}
    for name, actual in call(function, inputs, program, tmp_path).items():
        expected, digit = said[name]
        slack = digit + 2.0**-21 * np.abs(expected).max()
        wide = actual if actual.dtype == np.int64 else widen(actual)
        np.testing.assert_allclose(wide, expected, rtol=0, atol=slack, err_msg=name)


def slug(heading):
    """The anchor that a heading gets."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


PAGES = ["README.md", "CONTRIBUTING.md",
         *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").glob("*.md")))]


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    page = ROOT / name
    for target in re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", page.read_text())):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        path = (page.parent / path) if path else page
        assert path.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
            assert anchor in map(slug, headings), target


def test_every_op_has_a_section():
    listed = re.findall(r"^## `norm\.(\w+)`$", "".join(
        (ROOT / page).read_text() for page in PROGRAMS if "Spec" in page), re.M)
    defined = re.findall(r"^#+ `norm\.(\w+)` \(", "".join(
        page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md")), re.M)
    assert sorted(listed) == sorted(set(defined))
