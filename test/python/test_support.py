"""The driver: module text, .npy files, tool errors, and groups that fail."""

import norm.runner
import numpy as np
import pytest
from norm.compiled import Compiled, canaries, descriptor
from norm.golden import layer, near, rms, same_bits
from norm.program import Call, float_literal, module_text, split_results
from norm.reference import NormSpec
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


@pytest.mark.parametrize("name", ["step", "qsort"])
def test_a_function_may_have_the_name_of_one_of_libc(tmp_path, name):
    """Its entry calls it, not libc's."""
    text = (f"func.func @{name}(%x: tensor<4xf32>) -> tensor<4xf32> "
            'attributes {passthrough = ["noinline"]} {\n'
            "  %y = norm.rms_norm %x axes [0] epsilon none : tensor<4xf32> -> tensor<4xf32>\n"
            "  return %y : tensor<4xf32>\n}\n")
    y = np.zeros(4, np.float32)
    Compiled(tmp_path, text)([np.full(4, 3, np.float32)], [y], name)
    near(y, np.ones(4))


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


def call_text(kind, x, results, operands=None, dynamic=(), **attributes):
    """The one line of the op in its function, without its result names."""
    def array(value):
        return value if isinstance(value, np.ndarray) else np.zeros(value, np.float32)
    call = Call(NormSpec(kind=kind, **attributes), array(x), results=results, dynamic=dynamic,
                **{name: array(value) for name, value in (operands or {}).items()})
    lines = [line for line in module_text([call]).splitlines() if " = norm." in line]
    return lines[0].split(" = ")[1]


def test_text_of_forward_ops():
    assert call_text("group_norm", (2, 6, 4), ("y", "mean"), dict(scale=6), (0, 1), groups=3,
                     channel_axis=1, axes=(1, 2)) == (
        "norm.group_norm %arg0 scale(%arg1 : tensor<?xf32>) groups 3 channel_axis 1 "
        "axes [1, 2] epsilon inside_sqrt 1.0e-05 : tensor<?x?x4xf32> -> tensor<?x?x4xf32> "
        "mean(tensor<?x3xf32>)")
    assert call_text("batch_norm_training", (4, 3, 5), ("y", "rstd", "running_mean",
                                                       "running_variance"),
                     dict(running_mean=3, running_variance=np.zeros(3), shift=3),
                     axes=(0, 2), momentum=0.1, running_correction=0, running="f64") == (
        "norm.batch_norm_training %arg0 shift(%arg1 : tensor<3xf32>) running(%arg2, %arg3 : "
        "tensor<3xf32>, tensor<3xf64>) axes [0, 2] epsilon inside_sqrt 1.0e-05 momentum 0.1 "
        "running_correction 0 : tensor<4x3x5xf32> -> tensor<4x3x5xf32> rstd(tensor<3xf32>) "
        "running_mean(tensor<3xf64>) running_variance(tensor<3xf64>)")
    assert call_text("batch_norm_inference", (4, 3), ("y",), dict(mean=3, variance=3), (1,),
                     axes=(0,)) == (
        "norm.batch_norm_inference %arg0 mean(%arg1 : tensor<?xf32>) variance(%arg2 : "
        "tensor<?xf32>) axes [0] epsilon inside_sqrt 1.0e-05 : tensor<4x?xf32> -> "
        "tensor<4x?xf32>")


def test_text_of_a_momentum_operand():
    call = Call(NormSpec(kind="batch_norm_training", axes=(0,)), np.zeros((4, 3), np.float32),
                running_mean=np.zeros(3, np.float32), running_variance=np.ones(3, np.float32),
                momentum=np.float32(0.25), results=("y", "running_mean", "running_variance"))
    text = module_text([call])
    assert "%a0 = tensor.extract %arg3[] : tensor<f32>\n" in text
    assert " momentum(%a0 : f32) : tensor<4x3xf32> -> tensor<4x3xf32> running_mean(" in text
    assert [array.shape for array in call.inputs()] == [(4, 3), (3,), (3,), ()]
    assert call.reference().running_variance.dtype == np.float32


def test_text_of_backward_ops():
    assert call_text("rms_norm_backward", (4, 8), ("dx", "dscale"),
                     dict(dy=(4, 8), residual=(4, 8), dsum=(4, 8), variance=4, rstd=4, scale=8),
                     (0,), axes=(1,), sum_rounding="compute", gradients="f64",
                     placement="none") == (
        "norm.rms_norm_backward %arg0, %arg1 residual(%arg2 : tensor<?x8xf32>) dsum(%arg3 : "
        "tensor<?x8xf32>) variance(%arg4 : tensor<?xf32>) rstd(%arg5 : tensor<?xf32>) "
        "scale(%arg6 : tensor<8xf32>) axes [1] epsilon none sum_rounding compute : "
        "tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32> dscale(tensor<8xf64>)")


def test_text_of_the_algebra():
    i64, i1 = np.zeros(4, np.int64), np.zeros((4, 8), bool)
    assert call_text("moments", (4, 8), ("count", "mean", "m2"), dict(mask=i1), (0,), axes=(1,),
                     statistics="f64") == (
        "norm.moments %arg0 mask(%arg1 : tensor<?x8xi1>) axes [1] about mean : tensor<?x8xf32> "
        "-> count(tensor<?xi64>) mean(tensor<?xf64>) m2(tensor<?xf64>)")
    assert call_text("combine_moments", np.zeros((3, 4)), ("count", "m2"),
                     dict(count=np.zeros((3, 4), np.int64)), (1,)) == (
        "norm.combine_moments count(%arg0 : tensor<3x?xi64>) m2(%arg1 : tensor<3x?xf64>) "
        "-> count(tensor<?xi64>) m2(tensor<?xf64>)")
    assert call_text("rstd", 4, ("rstd", "variance"), dict(count=i64), (), correction=1) == (
        "norm.rstd %arg0 count(%arg1 : tensor<4xi64>) epsilon inside_sqrt 1.0e-05 correction 1 "
        ": tensor<4xf32> -> tensor<4xf32> variance(tensor<4xf32>)")
    assert call_text("normalize", (4, 8), ("y",), dict(mean=4, rstd=4, scale=8), axes=(1,),
                     scale_offset=1.0) == (
        "norm.normalize %arg0 mean(%arg1 : tensor<4xf32>) rstd(%arg2 : tensor<4xf32>) "
        "scale(%arg3 : tensor<8xf32>) axes [1] scale_offset 1.0 : tensor<4x8xf32> -> "
        "tensor<4x8xf32>")
    assert call_text("update_running", 4, ("updated",), dict(new=4, count=i64),
                     statistic="variance", momentum=0.1) == (
        "norm.update_running %arg0, %arg1 count(%arg2 : tensor<4xi64>) statistic variance "
        "momentum 0.1 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>")
    assert call_text("backward_moments", (4, 8), ("sum_gx", "dscale"),
                     dict(dy=(4, 8), rstd=4, mask=i1), axes=(1,)) == (
        "norm.backward_moments %arg0, %arg1 rstd(%arg2 : tensor<4xf32>) mask(%arg3 : "
        "tensor<4x8xi1>) axes [1] : tensor<4x8xf32>, tensor<4x8xf32> -> sum_gx(tensor<4xf32>) "
        "dscale(tensor<8xf32>)")
    assert call_text("backward_normalize", (4, 8), ("dx",),
                     dict(dy=(4, 8), rstd=4, sum_gx=4, count=i64), axes=(1,)) == (
        "norm.backward_normalize %arg0, %arg1 rstd(%arg2 : tensor<4xf32>) sum_gx(%arg3 : "
        "tensor<4xf32>) count(%arg4 : tensor<4xi64>) axes [1] epsilon inside_sqrt 1.0e-05 : "
        "tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>")


def test_npy_of_booleans_and_integers(tmp_path):
    save_npy(tmp_path / "mask.npy", np.array([True, False]))
    assert np.load(tmp_path / "mask.npy").dtype == np.bool_
    save_npy(tmp_path / "count.npy", np.array([1, 2]))
    assert np.array_equal(load_npy(tmp_path / "count.npy", "i64"), [1, 2])
    with pytest.raises(TypeError, match="count.npy: expected float32 for f32, got int64"):
        load_npy(tmp_path / "count.npy", "f32")
