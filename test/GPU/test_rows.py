"""Row norms as GPU kernels, run by the emulator: its checks, the error promise and bits.

Every case runs in two schedules, with arrays at aligned addresses and one element off (rows
are shifted, or moved element by element). All four give the same bits.
"""

import numpy as np
import pytest
from gpu_cases import case, check_cases, counted
from norm.cases import call
from norm.data import MAKERS
from norm.emulated import Emulated, EmulatorError, aligned, run_calls
from norm.program import module_text
from norm.promise import check

GROUPS = {
    # Parts of a warp, up to several warps; no power of two; rows that end in a part.
    "short": [case(op, n, t, "rgb", rows=5) for op, n, t in [
        ("rms_norm", 64, "bf16"), ("rms_norm", 128, "bf16"), ("l2_norm", 128, "f32"),
        ("layer_norm", 256, "f16"), ("layer_norm", 384, "f32"), ("rms_norm", 512, "f32")]],
    "models": [case(op, n, t, "rgb") for op, n, t in [
        ("layer_norm", 768, "f32"), ("layer_norm", 1280, "bf16"), ("layer_norm", 1600, "f16"),
        ("rms_norm", 2048, "bf16"), ("rms_norm", 3072, "f32"), ("rms_norm", 4096, "bf16"),
        ("rms_norm", 5120, "bf16"), ("rms_norm", 3584, "f16")]],
    "long": [case(op, n, t, "gb", rows=2) for op, n, t in [
        ("layer_norm", 8192, "bf16"), ("layer_norm", 16384, "f32"), ("rms_norm", 18432, "bf16"),
        ("layer_norm", 40000, "f32"), ("rms_norm", 65536, "bf16"), ("layer_norm", 33001, "f16")]],
    # Rows by chunks, kept in shared memory: all of them, or all but an end; what is
    # normalized is a sum that is rounded, or not, or has its own type.
    "staged": [
        case("rms_norm", 65536, "bf16", "rg", rows=2),
        case("layer_norm", 49152, "f32", "gb", rows=2, mean=1e6),
        case("layer_norm", 40007, "f16", "rg", rows=1, options={"sum_rounding": "compute"}),
        case("layer_norm", 34816, "f32", "rgb", rows=1, residual_type="bf16", data="not_finite"),
        case("layer_norm", 65536, "f16", "g", rows=1, options={"result": "f32"}),
        case("l2_norm", 65538, "bf16", rows=2, data="alternating"),
        case("layer_norm", 20480, "f64", "g", rows=1)],
    # V does not divide the row: accesses of 16 bytes, shifted.
    "shifted": [
        case("layer_norm", 257, "f32", "rgb", rows=5), case("rms_norm", 301, "f16", "rg", rows=5),
        case("layer_norm", 770, "bf16", "gb", rows=5, mean=1e6),
        case("layer_norm", 515, "bf16", "rgb", rows=3, residual_type="f32", parameter_type="f32"),
        case("rms_norm", 1025, "f32", "rg", rows=3, residual_type="bf16"),
        case("layer_norm", 2049, "f16", "gb", rows=3, options={"result": "f32"}),
        case("layer_norm", 8193, "bf16", "rgb", rows=2, data="alternating"),
        case("layer_norm", 1023, "f32", "gb", rows=9, data="far_start"),
        case("l2_norm", 1023, "bf16", rows=9, data="not_finite"),
        case("rms_norm", 1023, "f32", "g", rows=9, data="zero"),
        case("layer_norm", 1023, "f32", "gb", shape=(2, 3, 1023), axes=(2,), dynamic="kept")],
    "odd": [case(op, n, t, "rgb", rows=4) for op, n, t in [
        ("layer_norm", 1, "f32"), ("layer_norm", 2, "bf16"), ("rms_norm", 3, "f32"),
        ("layer_norm", 7, "f16"), ("rms_norm", 111, "bf16"), ("layer_norm", 500, "f32"),
        ("layer_norm", 1023, "f32"), ("rms_norm", 1023, "bf16"), ("layer_norm", 4097, "f32"),
        ("layer_norm", 5001, "bf16")]],
    "types": [
        case("layer_norm", 256, "bf16", "rgb", residual_type="f32", parameter_type="f32"),
        case("rms_norm", 256, "f32", "rg", residual_type="bf16"),
        case("layer_norm", 256, "f16", "gb", parameter_type="f32", options={"result": "f32"}),
        case("layer_norm", 256, "f64", "gb"),
        case("layer_norm", 256, "bf16", "gb", options={"affine_in": "result"}),
        case("layer_norm", 256, "bf16", "gb", options={"compute": "bf16"}),
        case("rms_norm", 256, "bf16", "rg", options={"sum_rounding": "compute"})],
    "options": [
        case("layer_norm", 96, options={"correction": 1}),
        case("rms_norm", 96, options={"scale_offset": 1.0}),
        case("rms_norm", 96, options={"placement": "outside_sqrt"}),
        case("l2_norm", 96, options={"placement": "max_outside", "epsilon": 1e-12}),
        case("layer_norm", 96, shape=(2, 3, 96), axes=(2,)),
        case("layer_norm", 96, shape=(96,), axes=(0,))],
    "dynamic": [
        case("layer_norm", 768, "f32", "rgb", dynamic="all"),
        case("layer_norm", 1023, "bf16", "gb", dynamic="all"),
        case("rms_norm", 5000, "f32", "g", dynamic="all"),
        case("rms_norm", 4096, "bf16", "rg", dynamic="kept"),
        case("layer_norm", 128, "f32", "gb", shape=(2, 3, 128), axes=(2,), dynamic="all"),
        case("rms_norm", 1, "f32", "g", dynamic="all")],
    "hostile": [
        *(case("layer_norm", 768, mean=m, std=s) for m, s in [(1e6, 1.0), (1e7, 1.0), (3.0, 1e-4)]),
        *(case("layer_norm", n, data=d, rows=9) for n in (96, 1600) for d in MAKERS),
        *(case("layer_norm", n, data=d, rows=3) for n in (4099, 16384, 65537)
          for d in ("nearly_constant", "alternating", "far_start")),
        *(case("rms_norm", 768, t, data=d) for t, d in [
            ("f32", "not_finite"), ("f16", "zero"), ("bf16", "outlier")])],
}


@pytest.mark.parametrize("group", GROUPS)
def test_case(group, tmp_path):
    check_cases(GROUPS[group], tmp_path)


def test_no_rows(tmp_path):
    """Nothing is launched for no rows; for rows without elements, their statistics."""
    calls = [call(case("layer_norm", 768, rows=0, dynamic="all")),
             call(case("layer_norm", 0, rows=3, dynamic="all"))]
    none, empty = run_calls(tmp_path, calls)[0]
    assert all(array.size == 0 for array in none.values())
    check(calls[1].reference(), empty)


@pytest.mark.parametrize("op, columns, element", [("layer_norm", 768, "f32"),
                                                  ("rms_norm", 4096, "bf16")])
def test_bits_do_not_depend_on_the_batch(op, columns, element, tmp_path):
    many = call(case(op, columns, element, "gb", rows=9))
    one = call(case(op, columns, element, "gb", rows=9))
    one.x = np.ascontiguousarray(many.x[7:8])
    together, alone = run_calls(tmp_path, [many, one])[0]
    assert together["y"][7].tobytes() == alone["y"][0].tobytes()


@pytest.mark.parametrize("op, columns", [("rms_norm", 768), ("layer_norm", 4096)])
def test_x_is_read_once(op, columns, tmp_path):
    """By the emulator's counters; scale and shift once for each row."""
    made = call(case(op, columns, "bf16", "rgb", rows=4, results=("y", "sum")))
    (kernel,) = counted([made], tmp_path)
    moved = sorted((array["read"]["bytes"], array["written"]["bytes"])
                   for array in kernel["arrays"])
    every = 4 * columns * 2
    assert moved == [(0, every)] * 2 + [(every, 0)] * len(made.inputs())


@pytest.mark.parametrize("op, columns, element, fields", [
    ("rms_norm", 65536, "bf16", {"operands": "rg"}), ("layer_norm", 49152, "f32", {}),
    ("layer_norm", 40000, "f32", {"operands": "rgb"}),
    ("layer_norm", 65536, "f16", {"options": {"result": "f32"}})])
def test_a_long_row_is_read_once(op, columns, element, fields, tmp_path):
    """It stays in shared memory; nothing is waited for, no bank is asked for two words."""
    results = ("y", "sum") if "r" in fields.get("operands", "") else ("y",)
    made = call(case(op, columns, element, rows=1, results=results, **fields))
    (kernel,) = counted([made], tmp_path)
    read = [array["read"]["bytes"] for array in kernel["arrays"] if array["read"]["bytes"]]
    # Columns that an end does not have are read from the row's first access instead.
    assert all(array.nbytes <= bytes < 1.03 * array.nbytes
               for bytes, array in zip(sorted(read), made.inputs(), strict=True))
    size = made.inputs()[0].itemsize
    kept = columns // 8192 * 8192 * size
    assert kept <= kernel["shared"]["written_bytes"] < kept + 1024
    assert kernel["shared"]["bank_conflicts"] == 0
    assert kernel["barriers"] == (2 if op == "layer_norm" else 1)


def test_a_row_that_does_not_fit_is_read_in_each_sweep(tmp_path):
    made = call(case("layer_norm", 65536, "f32", "g", rows=1, results=("y",)))
    (kernel,) = counted([made], tmp_path)
    every = made.x.nbytes
    assert sorted(array["read"]["bytes"] for array in kernel["arrays"]) == [0, every, 3 * every]


def test_odd_rows_go_by_whole_accesses(tmp_path):
    """What the last lanes of warps read besides is little; ends go element by element."""
    made = call(case("rms_norm", 4097, "bf16", "rg", rows=8, results=("y", "sum")))
    (kernel,) = counted([made], tmp_path)
    every = made.x.nbytes
    warps = 9 * 2 * 8  # in rows of 4097 elements: 288 threads, two accesses
    for array in kernel["arrays"]:
        if array["size"] == every:
            moved = array["read"] if array["read"]["bytes"] else array["written"]
            assert every <= moved["bytes"] <= 1.05 * every
            # Next to 1032 for elements one by one, of 2.5 sectors each.
            assert moved["warp_accesses"] < 2.5 * warps
            assert moved["sectors"] < 1.15 * every / 32


@pytest.mark.parametrize("columns, element", [(40007, "f32"), (65536, "bf16")])
def test_bits_do_not_depend_on_staging(columns, element, tmp_path):
    """A row kept in shared memory, and one that sm_86 has no room for."""
    made = call(case("layer_norm", columns, element, "rgb", rows=1))
    pipeline = "--norm-to-nvvm=format=llvm"
    kept, again = (run_calls(tmp_path / chip, [made], pipeline=f"{pipeline} chip={chip}")[0][0]
                   for chip in ("sm_90", "sm_86"))
    for name, array in kept.items():
        assert array.tobytes() == again[name].tobytes(), name


def test_a_failure_names_the_line_of_the_op(tmp_path):
    """A scale that is shorter than its type says: the kernel reads beyond it."""
    made = call(case("rms_norm", 768, "f32", "g", results=("y",)))
    text = "\n\n" + module_text([made])
    (line,) = (number for number, words in enumerate(text.splitlines(), 1)
               if "norm.rms_norm" in words)
    x, scale = made.inputs()
    outputs = [aligned(np.zeros(made.x.shape, np.float32))]
    with pytest.raises(EmulatorError, match=rf"<stdin>:{line}:\d+: error: out of bounds: thread "
                                            r"\d+ reads 16 bytes at offset 30\d\d of argument"):
        Emulated(tmp_path, text)([aligned(x), aligned(scale[:760])], outputs)


def test_constants_are_the_kernel_s_own(tmp_path):
    """Not the host's, whose memory a device cannot read; whole and one for each row."""
    values = [round(1 + 0.1 * i, 1) for i in range(8)]
    text = f"""
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {{
  %g = arith.constant dense<{values}> : tensor<8xf32>
  %b = arith.constant dense<{values[:4]}> : tensor<4xf32>
  %y = norm.rms_norm %x scale(%g : tensor<8xf32>) axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<4x8xf32> -> tensor<4x8xf32>
  %z = norm.rms_norm %x shift(%b : tensor<4xf32>) axes [1] epsilon inside_sqrt 1.0e-6
      affine_axes [0] : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
}}
"""
    x = aligned(np.arange(32, dtype=np.float32).reshape(4, 8) - 9)
    y, z = (aligned(np.zeros_like(x)) for _ in range(2))
    Emulated(tmp_path, text)([x], [y, z])
    xhat = x / np.sqrt((x.astype(np.float64)**2).mean(1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(y, xhat * np.float32(values), rtol=1e-6)
    np.testing.assert_allclose(z, xhat + np.float32(values[:4])[:, None], rtol=1e-6, atol=1e-6)
