// Nothing the size of a row is ever kept beside operands and results: no stack
// memory, no copies, and on the heap only the partial sums of gradients.
// RUN: norm-opt %s -split-input-file --norm-to-cpu=strides=unit \
// RUN:   | FileCheck %s --implicit-check-not=llvm.alloca --implicit-check-not=memcpy \
// RUN:       --implicit-check-not=memrefCopy --implicit-check-not="call @malloc"

// CHECK: llvm.func @forward_64(
func.func @forward_64(%x: tensor<1000x64xf32>) -> tensor<1000x64xf32> {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1000x64xf32> -> tensor<1000x64xf32>
  return %y : tensor<1000x64xf32>
}

// -----

// CHECK: llvm.func @forward_65536(
func.func @forward_65536(%x: tensor<?x65536xbf16>) -> tensor<?x65536xbf16> {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<?x65536xbf16> -> tensor<?x65536xbf16>
  return %y : tensor<?x65536xbf16>
}

// -----

// CHECK: llvm.func @residual_4096(
func.func @residual_4096(%x: tensor<?x4096xbf16>, %r: tensor<?x4096xbf16>, %g: tensor<4096xbf16>) -> (tensor<?x4096xbf16>, tensor<?x4096xbf16>) {
  %y, %s = norm.rms_norm %x residual(%r : tensor<?x4096xbf16>) scale(%g : tensor<4096xbf16>) axes [1] epsilon inside_sqrt 1.0e-5
    : tensor<?x4096xbf16> -> tensor<?x4096xbf16> sum(tensor<?x4096xbf16>)
  return %y, %s : tensor<?x4096xbf16>, tensor<?x4096xbf16>
}

// -----

// CHECK: llvm.func @residual_dynamic(
func.func @residual_dynamic(%x: tensor<?x?xf32>, %r: tensor<?x?xf32>, %g: tensor<?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %y, %s = norm.layer_norm %x residual(%r : tensor<?x?xf32>) scale(%g : tensor<?xf32>) axes [1] epsilon inside_sqrt 1.0e-5
    : tensor<?x?xf32> -> tensor<?x?xf32> sum(tensor<?x?xf32>)
  return %y, %s : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// Of packed queries, keys and values one part is read where it lies.
// CHECK: llvm.func @packed(
func.func @packed(%p: tensor<512x36x64xf32>, %g: tensor<64xf32>) -> tensor<512x12x64xf32> {
  %k = tensor.extract_slice %p[0, 12, 0] [512, 12, 64] [1, 1, 1] : tensor<512x36x64xf32> to tensor<512x12x64xf32>
  %y = norm.rms_norm %k scale(%g : tensor<64xf32>) axes [2] epsilon inside_sqrt 1.0e-5 : tensor<512x12x64xf32> -> tensor<512x12x64xf32>
  return %y : tensor<512x12x64xf32>
}

// -----

// One for dscale, one for dshift.
// CHECK: llvm.func @backward_65536(
// CHECK-COUNT-2: llvm.call @malloc
func.func @backward_65536(%dy: tensor<?x65536xf32>, %x: tensor<?x65536xf32>, %g: tensor<65536xf32>) -> (tensor<?x65536xf32>, tensor<65536xf32>, tensor<65536xf32>) {
  %dx, %dg, %db = norm.layer_norm_backward %dy, %x scale(%g : tensor<65536xf32>) axes [1] epsilon inside_sqrt 1.0e-5
    : tensor<?x65536xf32>, tensor<?x65536xf32> -> tensor<?x65536xf32> dscale(tensor<65536xf32>) dshift(tensor<65536xf32>)
  return %dx, %dg, %db : tensor<?x65536xf32>, tensor<65536xf32>, tensor<65536xf32>
}

// -----

// CHECK: llvm.func @backward_dynamic(
// CHECK-COUNT-2: llvm.call @malloc
func.func @backward_dynamic(%dy: tensor<?x?xbf16>, %x: tensor<?x?xbf16>, %g: tensor<?xbf16>) -> (tensor<?x?xbf16>, tensor<?xbf16>, tensor<?xbf16>) {
  %dx, %dg, %db = norm.layer_norm_backward %dy, %x scale(%g : tensor<?xbf16>) axes [1] epsilon inside_sqrt 1.0e-5
    : tensor<?x?xbf16>, tensor<?x?xbf16> -> tensor<?x?xbf16> dscale(tensor<?xbf16>) dshift(tensor<?xbf16>)
  return %dx, %dg, %db : tensor<?x?xbf16>, tensor<?xbf16>, tensor<?xbf16>
}
