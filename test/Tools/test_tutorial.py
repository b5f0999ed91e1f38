"""Runs the commands of docs/Tutorial.md and compares what they print.

A fenced `sh` block holds commands; a `text` block right after it what they
print, where a line `...` stands for any number of lines. An `mlir` block
that follows a line naming a file in bold code is that file's text.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("NORM_BUILD_DIR", ROOT / "build"))
PAGE = ROOT / "docs" / "Tutorial.md"

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def blocks():
    """Yields (language, text, line number, text before the block) in page order."""
    page = PAGE.read_text()
    end = 0
    for match in BLOCK.finditer(page):
        line = page.count("\n", 0, match.start()) + 1
        yield match[1], match[2], line, page[end : match.start()]
        end = match.end()


def commands():
    """Pairs each `sh` block with the `text` block that follows it, or None."""
    found = list(blocks())
    for (language, text, line, _), after in zip(found, found[1:] + [None], strict=True):
        if language != "sh":
            continue
        expected = None
        if after and after[0] == "text" and not after[3].strip():
            expected = after[1]
        yield pytest.param(text, expected, id=f"line-{line}")


def listings():
    for language, text, line, before in blocks():
        named = re.search(r"`(examples/[\w./-]+)`[^\n]*\n+$", before)
        if language == "mlir" and named:
            yield pytest.param(named[1], text, id=f"line-{line}")


def matches(expected: str, actual: str) -> bool:
    """Whether the lines agree, `...` standing for any lines, blanks at line ends aside."""
    pattern = ""
    for line in expected.splitlines():
        line = line.rstrip()
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += r"[^\n]*?".join(map(re.escape, line.split("..."))) + r"[ \t]*\n"
    return re.fullmatch(pattern, actual.rstrip("\n") + "\n") is not None


@pytest.fixture(scope="module")
def shell():
    """Runs a script at the repository's root with the build's tools first on PATH."""
    environment = dict(os.environ)
    environment["PATH"] = os.pathsep.join(
        [str(BUILD / "bin"), str(ROOT / ".venv" / "bin"), environment["PATH"]]
    )

    def run(script: str):
        return subprocess.run(
            ["bash", "-c", script],
            cwd=ROOT,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    return run


@pytest.mark.parametrize("script, expected", list(commands()))
def test_commands_print_what_the_page_says(shell, script, expected):
    done = shell(script)
    if expected is None:
        assert done.returncode == 0, done.stdout
    else:
        assert matches(expected, done.stdout), f"{script}\nprinted:\n{done.stdout}"


@pytest.mark.parametrize("path, text", list(listings()))
def test_listings_are_the_files(path, text):
    assert (ROOT / path).read_text() == text
