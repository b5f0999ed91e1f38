"""The demo shows what it claims, on the build under test."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from norm.tools import is_sanitized

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"


def words(text: str):
    return re.sub(r"-?\d+\.\d+(e[-+]\d+)?", "NUMBER", text).split()


def errors(text: str, what: str):
    return [float(e) for e in re.findall(rf"{what}.* ([0-9.]+e-\d+)$", text, re.M)]


@pytest.mark.skipif(is_sanitized(), reason="Python would have to be built with sanitizers too")
def test_demo(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py", "--out", tmp_path],
        capture_output=True,
        text=True,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr
    out = done.stdout
    assert len(out.splitlines()) < 50, "more than a screenful"
    assert len(re.findall(r"^ +rms_norm +\[2\] +inside_sqrt 1e-06 ", out, re.M)) == 3
    assert len(re.findall(r"^ +layer_norm +\[2\] +inside_sqrt 1e-05 ", out, re.M)) == 3
    assert out.count("addition") == 4
    assert max(errors(out, "against the model in f64")) < 1e-6
    assert max(errors(out, "against as exported")) < 1e-6
    # The hard row, which only the op gets right.
    assert max(errors(out, "^ +as exported +[-0-9]")) > 1e-3
    assert max(errors(out, "^ +with norms +[-0-9]")) < 1e-6
    assert (tmp_path / "llama_1l_f32.norm.mlir").exists()
    # The last part: kernels, whose values are the oracle's and the CPU's.
    kernels = re.findall(r"^ +rms_norm +\d+ of \d+ .* (\S+) +(\S+)$", out, re.M)
    assert len(kernels) == 3 and max(float(e) for pair in kernels for e in pair) < 1e-6
    texts = [path.read_text() for path in tmp_path.glob("llama_1l_f32.*.ptx")]
    assert len(texts) == 3
    assert all(".entry" in text and ".extern" not in text for text in texts)
    # What the README shows is this output, up to the digits of numbers.
    shown = re.search(r"\./dev demo\n```\n```text\n(.*?)^```$", README.read_text(), re.M | re.S)
    paths = str(tmp_path), "out/demo"
    assert words(shown[1]) == words(out.replace(*paths))
