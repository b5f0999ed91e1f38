// RUN: norm-opt %s -canonicalize -cse | FileCheck %s

// One spelling per meaning: axes non-negative and ascending.
// CHECK-LABEL: func @negative_and_unsorted
// CHECK: %[[LN:.+]] = norm.layer_norm %{{.*}} axes [1, 2] epsilon none :
// CHECK-NEXT: return %[[LN]], %[[LN]], %[[LN]]
func.func @negative_and_unsorted(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  %0 = norm.layer_norm %x axes [-1, 1] epsilon none : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  %1 = norm.layer_norm %x axes [1, 2] epsilon none : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  %2 = norm.layer_norm %x axes [2, -2] epsilon none : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  return %0, %1, %2 : tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

// CHECK-LABEL: func @rms
// CHECK: %[[RMS:.+]] = norm.rms_norm %{{.*}} axes [1] epsilon none :
// CHECK-NEXT: return %[[RMS]], %[[RMS]]
func.func @rms(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = norm.rms_norm %x axes [-1] epsilon none : tensor<2x3xf32> -> tensor<2x3xf32>
  %1 = norm.rms_norm %x axes [1] epsilon none : tensor<2x3xf32> -> tensor<2x3xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
}

// A default that follows from other operands and attributes goes.
// CHECK-LABEL: func @written_defaults
// CHECK: %[[LN:.+]] = norm.layer_norm %{{.*}} residual(%{{.*}}) scale(%{{.*}}) axes [1] epsilon none :
// CHECK-NEXT: return %[[LN]], %[[LN]]
func.func @written_defaults(%x: tensor<2x3xbf16>, %r: tensor<2x3xf64>, %g: tensor<3xf32>) -> (tensor<2x3xbf16>, tensor<2x3xbf16>) {
  %0 = norm.layer_norm %x residual(%r : tensor<2x3xf64>) scale(%g : tensor<3xf32>) axes [-1] epsilon none affine_axes [1] compute f64 : tensor<2x3xbf16> -> tensor<2x3xbf16>
  %1 = norm.layer_norm %x residual(%r : tensor<2x3xf64>) scale(%g : tensor<3xf32>) axes [1] epsilon none : tensor<2x3xbf16> -> tensor<2x3xbf16>
  return %0, %1 : tensor<2x3xbf16>, tensor<2x3xbf16>
}

// What is not a default stays, and so do other attributes of the op.
// CHECK-LABEL: func @kept
// CHECK: axes [1] epsilon none affine_axes [0] compute f32 {tag} : tensor<2x3xf64>
func.func @kept(%x: tensor<2x3xf64>, %g: tensor<2xf32>) -> tensor<2x3xf64> {
  %0 = norm.layer_norm %x scale(%g : tensor<2xf32>) axes [-1] epsilon none affine_axes [0] compute f32 {tag} : tensor<2x3xf64> -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}
