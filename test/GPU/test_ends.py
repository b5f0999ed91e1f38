"""A process that ends while it has a program's kernels: destructors of the program run after
those of the emulator and of the driver."""

import os
import subprocess
import sys

import pytest
from norm.compiled import load_library
from norm.tools import build_dir

MODULE = """
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-6 : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
"""
SCRIPT = """
import ctypes, sys
import numpy as np
from norm.compiled import descriptor
library = ctypes.CDLL(sys.argv[1])
runtime = ctypes.CDLL(sys.argv[2])
x, y = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
if hasattr(runtime, "normEmuRegister"):
    runtime.normEmuRegister.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    for array in x, y:
        runtime.normEmuRegister(array.ctypes.data, array.nbytes)
library._mlir_ciface_main(*(ctypes.byref(descriptor(a, offset=0)) for a in (x, y)), None)
print("ran", flush=True)
"""


@pytest.mark.parametrize("runtime, format", [("norm_emu", "llvm"), ("norm_cuda", "isa")])
def test_ends_cleanly(runtime, format, tmp_path):
    libraries = build_dir() / "lib"
    load_library(tmp_path, MODULE, f"--norm-to-nvvm=format={format}",
                 ["-O0", f"-L{libraries}", f"-Wl,-rpath,{libraries}", f"-l{runtime}"])
    stub = build_dir() / "test" / "Cuda" / "libnorm_stub_cuda.so"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path / "module.so", libraries / f"lib{runtime}.so"],
        capture_output=True, text=True, check=False, env={
            **os.environ, "NORM_CUDA_DRIVER": str(stub),
            "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "ran" and not done.stderr
