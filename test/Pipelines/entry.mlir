// Compiled functions compute results where the caller wants them.
// RUN: norm-opt %s --norm-to-cpu | FileCheck %s
// RUN: norm-opt %s --norm-to-cpu="threads=false" | FileCheck %s --check-prefix=SERIAL
// RUN: norm-opt %s --norm-to-reference | FileCheck %s --check-prefix=REFERENCE

// A caller from C finds the function; it has one body, which takes arguments of
// other strides as copies; no run-time library but the C library and OpenMP's.
// CHECK-NOT: llvm.func @memrefCopy
// CHECK-DAG: llvm.func @_mlir_ciface_rows(
// CHECK-DAG: llvm.func internal @rows__unit(
// CHECK-DAG: llvm.func internal @rows__strided(
// CHECK-DAG: llvm.call @rows__unit(
// SERIAL-NOT: omp.
// REFERENCE-NOT: rows__unit
// REFERENCE: llvm.func @_mlir_ciface_rows(
// REFERENCE-NOT: omp.
func.func @rows(%x: tensor<4096x768xf32>, %g: tensor<768xf32>) -> tensor<4096x768xf32> {
  %y = norm.rms_norm %x scale(%g : tensor<768xf32>) axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<4096x768xf32> -> tensor<4096x768xf32>
  return %y : tensor<4096x768xf32>
}
