"""Installs the build and embeds it in a project of its own (find_package)."""

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BUILD = Path(os.environ.get("NORM_BUILD_DIR", ROOT / "build"))


def run(*command) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def cached(name: str) -> str:
    """The value of a variable in the build's CMake cache."""
    for line in (BUILD / "CMakeCache.txt").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split("=", 1)[1]
    return ""


@pytest.fixture(scope="module")
def prefix(tmp_path_factory) -> Path:
    prefix = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--prefix", prefix)
    return prefix


def test_installed_tool_runs(prefix):
    out = run(prefix / "bin" / "norm-opt", "--show-dialects")
    assert "norm" in out


def test_embedding_project_builds_and_runs(prefix, tmp_path):
    if cached("NORM_SANITIZE"):
        pytest.skip("an embedding program would have to be built with sanitizers too")
    # MLIR is found through Norm's own configuration, not from here.
    run(
        "cmake",
        "-G",
        "Ninja",
        "-S",
        HERE,
        "-B",
        tmp_path,
        f"-DNorm_ROOT={prefix}",
        f"-DCMAKE_C_COMPILER={cached('CMAKE_C_COMPILER')}",
        f"-DCMAKE_CXX_COMPILER={cached('CMAKE_CXX_COMPILER')}",
        f"-DCMAKE_CXX_COMPILER_LAUNCHER={cached('CMAKE_CXX_COMPILER_LAUNCHER')}",
    )
    run("cmake", "--build", tmp_path)
    out = run(tmp_path / "embed")
    assert "found norm.rms_norm: not centred" in out
    assert "found norm.layer_norm: centred" in out
    assert "all lowered" in out
    assert "linalg.generic" in out and "func.func @built" in out
