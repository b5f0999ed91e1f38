// RUN: norm-opt %s --norm-simplify | FileCheck %s

// There is no slice inside of an empty tensor: the norm stays behind the
// concatenation, and before the slice.
// CHECK-LABEL: func @concat
// CHECK: %[[X:.*]] = tensor.concat
// CHECK: norm.rms_norm %[[X]]
func.func @concat(%a: tensor<0x14x8xf32>, %b: tensor<0x3x8xf32>, %g: tensor<0x17x8xf32>) -> tensor<0x17x8xf32> {
  %x = tensor.concat dim(1) %a, %b : (tensor<0x14x8xf32>, tensor<0x3x8xf32>) -> tensor<0x17x8xf32>
  %y = norm.rms_norm %x scale(%g : tensor<0x17x8xf32>) axes [2] epsilon inside_sqrt 1.0e-5 affine_axes [0, 1, 2] : tensor<0x17x8xf32> -> tensor<0x17x8xf32>
  return %y : tensor<0x17x8xf32>
}

// CHECK-LABEL: func @slice
// CHECK: %[[Y:.*]] = norm.rms_norm %{{[^ ]*}} scale
// CHECK: tensor.extract_slice %[[Y]]
func.func @slice(%x: tensor<17x0xf32>, %g: tensor<17x0xf32>, %i: index) -> tensor<4x0xf32> {
  %y = norm.rms_norm %x scale(%g : tensor<17x0xf32>) axes [1] epsilon inside_sqrt 1.0e-5 affine_axes [0, 1] : tensor<17x0xf32> -> tensor<17x0xf32>
  %s = tensor.extract_slice %y[4, %i] [4, 0] [1, 1] : tensor<17x0xf32> to tensor<4x0xf32>
  return %s : tensor<4x0xf32>
}
