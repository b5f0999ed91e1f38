// RUN: norm-opt %s --norm-to-cpu=strides=unit | FileCheck %s

// An argument that may be the result's memory is read through a copy, which is
// freed.
// CHECK-LABEL: llvm.func @main
// CHECK: llvm.call @malloc
// CHECK: llvm.call @free
func.func @main(%x: tensor<5x37xf32> {norm.inplace = 0}, %h: tensor<5x37xf32>) -> tensor<5x37xf32> {
  %y = norm.rms_norm %x residual(%h : tensor<5x37xf32>) axes [1] epsilon none : tensor<5x37xf32> -> tensor<5x37xf32>
  return %y : tensor<5x37xf32>
}
