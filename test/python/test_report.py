"""norm-report on whole programs, and its comparison in words."""

import json
import subprocess
import sys

from norm.report import diff
from norm.tools import ROOT, norm_opt, run, tool

TYPE = "tensor<2x5x768xf32>"
GAIN = "tensor<768xf32>"


def report(directory, module, *passes):
    """The report of a module as JSON."""
    path = directory / "report.json"
    run([tool("norm-opt"), *passes, f"--norm-report=format=json file={path}",
         "-o", directory / "out.mlir", "-"], stdin=module)
    return json.loads(path.read_text())


def skeleton(blocks):
    """A pre-norm transformer's norms: two a block, one at the end."""
    lines, stream = [], "%x"
    for number in range(2 * blocks):
        lines.append(
            f"%n{number} = norm.layer_norm {stream} scale(%g : {GAIN}) shift(%b : {GAIN}) axes [2]"
            f" epsilon inside_sqrt 1.0e-5 : {TYPE} -> {TYPE}")
        lines.append(f"%s{number} = arith.addf {stream}, %n{number} : {TYPE}")
        stream = f"%s{number}"
    lines.append(f"%y = norm.layer_norm {stream} scale(%g : {GAIN}) shift(%b : {GAIN}) axes [2]"
                 f" epsilon inside_sqrt 1.0e-5 : {TYPE} -> {TYPE}")
    body = "\n  ".join(lines)
    return (f"func.func @gpt2(%x: {TYPE}, %g: {GAIN}, %b: {GAIN}) -> {TYPE} {{\n  {body}\n"
            f"  return %y : {TYPE}\n}}\n")


def test_skeleton_has_25_norms_and_38400_parameters(tmp_path):
    totals = report(tmp_path, skeleton(12))["totals"]
    assert totals == {"norms": 25, "kinds": {"norm.layer_norm": 25}, "parameters": 38400}
    text = norm_opt(skeleton(12), "--norm-report", f"-o={tmp_path / 'out.mlir'}")
    assert text.endswith("total: 25 norms (25 norm.layer_norm), 38400 parameters\n")


def test_range_of_constants(tmp_path):
    module = """func.func @f(%x: tensor<2x5xf32>) -> tensor<2x5xf32> {
      %g = arith.constant dense<[0.5, 2.0, 0.25, 1.5, 1.0]> : tensor<5xf32>
      %b = arith.constant dense<-0.125> : tensor<5xf32>
      %y = norm.layer_norm %x scale(%g : tensor<5xf32>) shift(%b : tensor<5xf32>) axes [1]
          epsilon none : tensor<2x5xf32> -> tensor<2x5xf32>
      return %y : tensor<2x5xf32>
    }"""
    norm, = report(tmp_path, module)["norms"]
    assert norm["scale"] == {"min": 0.25, "median": 1.0, "max": 2.0}
    assert norm["shift"] == {"min": -0.125, "median": -0.125, "max": -0.125}
    assert norm["parameters"] == 10


def one_norm(clauses, kind="rms_norm", x="tensor<4x3xbf16>", y="tensor<4x3xbf16>"):
    return (f"func.func @f(%x: {x}) -> {y} {{\n"
            f"  %y = norm.{kind} %x axes [1] {clauses} : {x} -> {y}\n  return %y : {y}\n}}\n")


def test_differences_in_words(tmp_path):
    before = report(tmp_path, one_norm("epsilon inside_sqrt 1.0e-5"))
    after = report(tmp_path, one_norm("epsilon max_outside 1.0e-6 compute bf16"))
    assert diff(before, before) == []
    assert diff(before, after) == [
        "changed: norm.rms_norm of 4x3 over [1] in @f",
        "  epsilon: inside_sqrt 1e-05 -> max_outside 1e-06",
        "  compute: f32 -> bf16",
    ]
    assert diff(before, after, ["epsilon", "compute", "refusals"]) == []
    other = report(tmp_path, one_norm("epsilon none", "layer_norm"))
    assert diff(before, other) == [
        "gone: norm.rms_norm of 4x3 over [1] in @f",
        "new: norm.layer_norm of 4x3 over [1] in @f",
    ]
    more = report(tmp_path, skeleton(1))
    assert diff(more, before)[-2:] == [
        "total norms: 3 -> 1", "total parameters: 4608 -> 0"]


ADDITION = """func.func @f(%x: tensor<4x3xf32>, %r: tensor<4x3xf32>) -> (tensor<4x3xf32>, {t}) {{
  %s = arith.addf %x, %r : tensor<4x3xf32>
  %t = arith.truncf %s : tensor<4x3xf32> to tensor<4x3xbf16>
  %n = norm.rms_norm %t axes [1] epsilon inside_sqrt 0.5 : tensor<4x3xbf16> -> tensor<4x3xbf16>
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 0.5 : tensor<4x3xf32> -> tensor<4x3xf32>
  %d = norm.rms_norm_backward %y, %x axes [1] epsilon inside_sqrt 0.5
      : tensor<4x3xf32>, tensor<4x3xf32> -> tensor<4x3xf32>
  return %d, %n : tensor<4x3xf32>, tensor<4x3xbf16>
}}
""".format(t="tensor<4x3xbf16>")


def test_refusals_of_each_norm(tmp_path):
    """What a pass refuses stands beside the norm that it is about, once."""
    found = report(tmp_path, ADDITION)
    first, second = ([r for r in norm["refusals"] if r["pass"] == "norm-fuse-residual"]
                     for norm in found["norms"])
    assert second == []
    assert [(r["rule"], r["condition"], r["reason"]) for r in first] == [
        ("F1", "rounding", "no sum_rounding says how this sum is rounded")]
    assert first[0]["location"] == found["norms"][0]["location"]
    other, = found["others"]
    assert other["kind"] == "norm.rms_norm_backward" and other["axes"] == [1]
    assert other["refusals"] == []
    # The same report twice, and the module as it was.
    assert report(tmp_path, ADDITION) == found
    assert norm_opt(ADDITION, f"--norm-report=file={tmp_path / 'text'}") == norm_opt(ADDITION)
    lines = (tmp_path / "text").read_text().splitlines()
    assert [line for line in lines if "norm-fuse-residual" in line] == [
        "  refused    norm-fuse-residual F1.rounding: "
        "no sum_rounding says how this sum is rounded"]
    assert lines[-1].endswith(", 0 parameters, 1 other op (1 norm.rms_norm_backward)")


def test_refusals_are_compared_when_asked(tmp_path):
    before = report(tmp_path, ADDITION)
    after = report(tmp_path, ADDITION.replace("%t = arith.truncf %s", "%t = arith.truncf %x"))
    lines = diff(before, after, ["location"])
    assert "  no longer refused: norm-fuse-residual F1.rounding: " \
        "no sum_rounding says how this sum is rounded" in lines
    assert not any("refused" in line for line in diff(before, after))


def test_report_is_silent_about_its_own_runs(tmp_path):
    """No remark of the passes that ran on a copy reaches the user's own."""
    done = subprocess.run([tool("norm-opt"), "-", "--remarks-filter=.*", "--norm-report",
                           "-o", tmp_path / "out"], input=ADDITION, capture_output=True,
                          text=True, check=True)
    assert done.stderr == ""


def command(*arguments):
    done = subprocess.run([sys.executable, "-m", "norm.report", *map(str, arguments)],
                          cwd=ROOT / "python", capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_command(tmp_path):
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    one.write_text(json.dumps(report(tmp_path, one_norm("epsilon none"))))
    other.write_text(json.dumps(report(tmp_path, one_norm("epsilon inside_sqrt 0.5"))))
    assert command("diff", one, one) == (0, "the reports say the same\n", "")
    status, out, _ = command("diff", one, other)
    assert status == 1 and "epsilon: none -> inside_sqrt 0.5" in out
    status, _, err = command("diff", one, tmp_path / "none.json")
    assert status == 2 and err == \
        f"norm.report: error: '{tmp_path / 'none.json'}': No such file or directory\n"
    (tmp_path / "bad.json").write_text("{]")
    assert command("diff", one, tmp_path / "bad.json")[0] == 2
    (tmp_path / "bad.json").write_text("{}")
    status, _, err = command("diff", tmp_path / "bad.json", one)
    assert status == 2 and "expected a report of norm-report" in err
    assert command("show", one)[0] == 2
