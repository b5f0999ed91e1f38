// Kernels for three chips in one fatbin: what the driver takes of it, and what
// a user is told where nothing fits.
// REQUIRES: cuda-toolkit
// RUN: %to_fatbins %s | norm-opt --norm-link-fatbins -o %t
// RUN: env NORM_CUDA_DRIVER=%stub NORM_STUB_CHIP=80 %run_cuda -e main %t | FileCheck %s --check-prefix=SM80
// RUN: env NORM_CUDA_DRIVER=%stub NORM_STUB_CHIP=89 %run_cuda -e main %t | FileCheck %s --check-prefix=SM80
// RUN: env NORM_CUDA_DRIVER=%stub NORM_STUB_CHIP=90 %run_cuda -e main %t | FileCheck %s --check-prefix=SM90
// RUN: env NORM_CUDA_DRIVER=%stub NORM_STUB_CHIP=103 %run_cuda -e main %t | FileCheck %s --check-prefix=SM100
// RUN: env NORM_CUDA_DRIVER=%stub NORM_STUB_CHIP=120 %run_cuda -e main %t | FileCheck %s --check-prefix=LATER
// RUN: env NORM_CUDA_DRIVER=%stub NORM_STUB_CHIP=75 not %run_cuda -e main %t 2>&1 | FileCheck %s --check-prefix=NONE

// SM80: cuModuleLoadDataEx with 2 options: machine code for sm_80
// SM90: cuModuleLoadDataEx with 2 options: machine code for sm_90
// SM100: cuModuleLoadDataEx with 2 options: machine code for sm_100
// LATER: cuModuleLoadDataEx with 2 options: PTX for sm_100
// NONE: norm-cuda: error: no image of a module fits Stub 0 (sm_75): it has machine code for sm_80, PTX for sm_80, machine code for sm_90, PTX for sm_90, machine code for sm_100, PTX for sm_100: CUDA_ERROR_NO_BINARY_FOR_GPU
module attributes {gpu.container_module} {
  gpu.module @device {
    gpu.func @run(%i: i32, %y: memref<32xf32>) kernel {
      %zero = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      memref.store %zero, %y[%c0] : memref<32xf32>
      gpu.return
    }
  }
  func.func @main() {
    %i = arith.constant 7 : i32
    %y = memref.alloc() : memref<32xf32>
    %c1 = arith.constant 1 : index
    gpu.launch_func @device::@run blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%i : i32, %y : memref<32xf32>)
    return
  }
}
