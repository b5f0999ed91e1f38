// Kernels for a GPU, run and checked on the CPU.
// Under sanitizers the unit tests of the emulator stand for this.
// UNSUPPORTED: sanitize
// RUN: rm -rf %t && mkdir %t
// RUN: %python %S/Inputs/npy.py %t/x.npy '<f4' 3x8 1 -2 3 4 0.5 6 7 -8 2 2 2 2 -2 -2 -2 2 9 8 7 6 5 4 3 100
// RUN: %python %S/Inputs/npy.py %t/f.npy '<f4' 3x8 --order=F 1 2 9 -2 2 8 3 2 7 4 2 6 0.5 -2 5 6 -2 4 7 -2 3 -8 2 100
// RUN: %python %S/Inputs/npy.py %t/g.npy '<f4' 8 1 2 3 4 5 6 7 8
// RUN: %python %S/Inputs/npy.py %t/many.npy '<f4' 32x16 $(seq 512)
// RUN: %python %S/Inputs/npy.py %t/gains.npy '<f4' 16 $(seq 16)
// RUN: %python %S/Inputs/npy.py %t/none.npy '<f4' 0x8

// RUN: norm-run %s --input=%t/x.npy --input=%t/g.npy --target=gpu-emulated --compare=reference --tolerance=1e-6 | FileCheck %s
// RUN: env NORM_EMU_SEED=3 norm-run %s --input=%t/x.npy --input=%t/g.npy --target=gpu-emulated --compare=reference --tolerance=1e-6 | FileCheck %s
// RUN: norm-run %s --input=%t/f.npy --input=%t/g.npy --target=gpu-emulated --compare=reference --tolerance=1e-6 | FileCheck %s
// CHECK: result 0: max abs error
// CHECK-NOT: above

// x is read once, y written once.
// RUN: norm-run %s --entry=wide --input=%t/many.npy --input=%t/gains.npy --target=gpu-emulated --output=%t/y.npy --gpu-counters | FileCheck %s --check-prefix=COUNTERS
// COUNTERS: kernel wide_kernel: 1 launches, 1 blocks
// COUNTERS: read 2048 bytes (1.00 of its 2048)
// COUNTERS: written 2048 bytes (1.00 of its 2048)
// COUNTERS: barriers, {{[0-9]+}} shuffles

// Without rows nothing is launched.
// RUN: norm-run %s --input=%t/none.npy --input=%t/g.npy --target=gpu-emulated --gpu-counters | FileCheck %s --check-prefix=NONE
// NONE: result 0: 0x8 of f32
// NONE-NOT: kernel

// RUN: norm-run %s --target=gpu-emulated --emit=llvm | FileCheck %s --check-prefix=EMIT
// EMIT: gpu.launch_func

// RUN: not norm-run %s --input=%t/x.npy --input=%t/g.npy --gpu-counters 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: norm-run: error: expected --target=gpu-emulated with --gpu-counters
// RUN: not norm-run %s --input=%t/x.npy --input=%t/g.npy --target=gpu-emulated --time=3 2>&1 | FileCheck %s --check-prefix=TIME
// TIME: norm-run: error: expected another target with --time: the emulator has no time
func.func @main(%x: tensor<?x8xf32>, %g: tensor<8xf32>) -> tensor<?x8xf32> {
  %y = norm.rms_norm %x scale(%g : tensor<8xf32>) axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<?x8xf32> -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
func.func @wide(%x: tensor<?x16xf32>, %g: tensor<16xf32>) -> tensor<?x16xf32> {
  %y = norm.rms_norm %x scale(%g : tensor<16xf32>) axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<?x16xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// A version for known extents has a kernel of its own; so has the function for the extents of arrays.
// RUN: norm-run %s --entry=versions --input=%t/many.npy --input=%t/gains.npy --target=gpu-emulated --output=%t/y.npy --gpu-counters | FileCheck %s --check-prefix=VERSION
// RUN: norm-run %s --entry=versions --input=%t/x.npy --input=%t/g.npy --target=gpu-emulated --compare=reference --tolerance=1e-6 --gpu-counters | FileCheck %s --check-prefix=GENERAL
// RUN: norm-run %s --entry=versions --input=%t/many.npy --input=%t/gains.npy --target=gpu-emulated --output=%t/y.npy --specialize --gpu-counters | FileCheck %s --check-prefix=OWN
// VERSION: kernel versions__v0_kernel
// VERSION: read 2048 bytes (1.00 of its 2048)
// GENERAL: kernel versions__any_kernel
// OWN: kernel versions_kernel
// OWN: read 2048 bytes (1.00 of its 2048)
func.func @versions(%x: tensor<?x?xf32>, %g: tensor<?xf32>) -> tensor<?x?xf32>
    attributes {norm.versions = [[tensor<?x16xf32>, tensor<16xf32>]]} {
  %y = norm.rms_norm %x scale(%g : tensor<?xf32>) axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<?x?xf32> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
