"""The driver: module text, .npy files, tool errors, and groups that fail."""

import norm.runner
import numpy as np
import pytest
from norm.compiled import canaries, descriptor
from norm.golden import layer, near, rms, same_bits
from norm.program import float_literal, module_text, split_results
from norm.tools import ToolError, load_npy, run, save_npy, tool
from norm.types import BF16, F32, cast


@pytest.mark.parametrize("value,text", [(1e-5, "1.0e-05"), (0.1, "0.1"), (1.5e-12, "1.5e-12"),
                                        (1.0, "1.0"), (0.0, "0.0"), (1e22, "1.0e+22")])
def test_float_literal(value, text):
    assert float_literal(value) == text and float(text) == value


def test_module_text():
    calls = [layer([[1, 2], [3, 4]], results=("y", "rstd"), dynamic=(0,), residual=np.eye(2)),
             rms([1, 2], "bf16", scale=[1, 1], placement="none", scale_offset=1.0)]
    assert module_text(calls, "f") == """\
func.func @f(%arg0: tensor<?x2xf32>, %arg1: tensor<?x2xf32>, %arg2: tensor<2xbf16>, \
%arg3: tensor<2xbf16>) -> (tensor<?x2xf32>, tensor<?xf32>, tensor<2xbf16>) {
  %op0:2 = norm.layer_norm %arg0 residual(%arg1 : tensor<?x2xf32>) axes [1] \
epsilon inside_sqrt 1.0e-05 : tensor<?x2xf32> -> tensor<?x2xf32> rstd(tensor<?xf32>)
  %op1 = norm.rms_norm %arg2 scale(%arg3 : tensor<2xbf16>) axes [0] epsilon none \
scale_offset 1.0 : tensor<2xbf16> -> tensor<2xbf16>
  return %op0#0, %op0#1, %op1 : tensor<?x2xf32>, tensor<?xf32>, tensor<2xbf16>
}
"""
    assert split_results(calls, [1, 2, 3]) == [{"y": 1, "rstd": 2}, {"y": 3}]


def test_npy_keeps_bits_order_and_type(tmp_path):
    array = cast(np.random.default_rng(0).standard_normal((3, 4)), BF16)
    save_npy(tmp_path / "a.npy", np.asfortranarray(array))
    raw = np.load(tmp_path / "a.npy")
    assert raw.dtype == np.uint16 and raw.flags.f_contiguous
    same_bits(load_npy(tmp_path / "a.npy", "bf16"), array)
    with pytest.raises(TypeError, match="a.npy: expected float32 for f32, got uint16"):
        load_npy(tmp_path / "a.npy", "f32")


def test_errors_carry_command_and_output(tmp_path, monkeypatch):
    with pytest.raises(ToolError) as caught:
        run(["/bin/sh", "-c", "echo said; echo why >&2; exit 3"])
    assert caught.value.status == 3
    assert str(caught.value) == ("exit status 3 from: /bin/sh -c 'echo said; echo why >&2; "
                                 "exit 3'\nwhy\nsaid")
    monkeypatch.setenv("NORM_BUILD_DIR", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="norm-opt does not exist: run ./dev build"):
        tool("norm-opt")


def test_a_failing_call_fails_alone(tmp_path, monkeypatch):
    def run_calls(directory, calls, path):
        del directory, path
        if "bad" in calls:
            raise ToolError(["tool"], 1, "", "broken")
        return [{"y": call} for call in calls]

    monkeypatch.setattr(norm.runner, "run_calls", run_calls)
    runner = norm.runner.Runner(tmp_path, lambda case: case, group_size=2)
    runner.submit(["a", "b", "bad", "c"], "cpu")
    assert [runner.results(case, "cpu")["y"] for case in "abc"] == ["a", "b", "c"]
    with pytest.raises(ToolError, match="broken"):
        runner.results("bad", "cpu")
    runner.close()


def test_descriptors_of_views():
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    for view in (base, base.T, base[1::2, ::-3], np.broadcast_to(base[:, :1], (4, 9))):
        d = descriptor(view)
        start = d.aligned + d.offset * 4
        assert start == view.__array_interface__["data"][0] and d.offset != 0
        assert tuple(d.sizes) == view.shape
        assert tuple(4 * s for s in d.strides) == view.strides


def test_canaries_notice():
    inner, untouched = canaries((3, 5), F32.dtype)
    inner[...] = 0
    assert untouched()
    np.lib.stride_tricks.as_strided(inner, (4, 5))[3] = 0
    assert not untouched()


def test_near_and_same_bits_can_fail():
    near([1.0, 2.0], [1.0, 2.000001])
    for actual in ([1.0, 2.1], [1.0], [[1.0, 2.0]]):
        with pytest.raises(AssertionError):
            near(actual, [1.0, 2.0])
    with pytest.raises(AssertionError):
        near([np.nan], [1.0])
    with pytest.raises(AssertionError):
        same_bits(np.float32([0.0]), np.float32([-0.0]))
