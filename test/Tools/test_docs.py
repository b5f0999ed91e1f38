"""Runs what the documentation shows, so that it stays true.

In README.md and docs/Tutorial.md a fenced `sh` block holds commands, and a
`text` block right after it what they print, where `...` stands for any text
and a line `...` for any lines. An `mlir` block right after a line that names
a file of examples/ is that file's text. The `mlir` blocks of docs/Spec.md
must verify.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("NORM_BUILD_DIR", ROOT / "build"))

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


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


def commands(name: str):
    """Pairs each `sh` block with the `text` block that follows it, or None."""
    found = blocks(name)
    pairs = []
    for (language, text, where, _), after in zip(found, found[1:] + [None], strict=True):
        if language != "sh":
            continue
        follows = after is not None and after[0] == "text" and not after[3].strip()
        pairs.append(pytest.param(text, after[1] if follows else None, id=where))
    return pairs


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


@pytest.mark.parametrize("script, expected", commands("README.md") + commands("docs/Tutorial.md"))
def test_commands_print_what_the_page_says(script, expected):
    done = run(script)
    if expected is None:
        assert done.returncode == 0, done.stdout
    else:
        assert matches(expected, done.stdout), f"{script}\nprinted:\n{done.stdout}"


@pytest.mark.parametrize("path, text", listings("docs/Tutorial.md"))
def test_listings_are_the_files(path, text):
    assert (ROOT / path).read_text() == text


@pytest.mark.parametrize(
    "text",
    [pytest.param(b[1], id=b[2]) for b in blocks("docs/Spec.md") if b[0] == "mlir"],
)
def test_examples_of_the_specification_verify(text, tmp_path):
    program = tmp_path / "example.mlir"
    program.write_text(text)
    done = run(f"norm-opt {program} --verify-roundtrip")
    assert done.returncode == 0, done.stdout
