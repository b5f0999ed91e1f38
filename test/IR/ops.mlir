// RUN: norm-opt %s | norm-opt | FileCheck %s
// RUN: norm-opt %s -mlir-print-op-generic | norm-opt | FileCheck %s

// CHECK-LABEL: func @ln
// CHECK: norm.layer_norm
func.func @ln(%x: tensor<8x128x768xf32>, %g: tensor<768xf32>, %b: tensor<768xf32>) -> (tensor<8x128x768xf32>, tensor<8x128xf32>, tensor<8x128xf32>) {
  %y, %mean, %rstd = norm.layer_norm %x scale(%g : tensor<768xf32>) shift(%b : tensor<768xf32>) axes [2] epsilon inside_sqrt 1.0e-5
    : tensor<8x128x768xf32> -> tensor<8x128x768xf32> mean(tensor<8x128xf32>) rstd(tensor<8x128xf32>)
  return %y, %mean, %rstd : tensor<8x128x768xf32>, tensor<8x128xf32>, tensor<8x128xf32>
}
func.func @rms(%x: tensor<?x768xbf16>, %h: tensor<?x768xbf16>, %g: tensor<768xbf16>) -> (tensor<?x768xbf16>, tensor<?x768xbf16>) {
  %y, %rstd, %sum = norm.rms_norm %x residual(%h : tensor<?x768xbf16>) scale(%g : tensor<768xbf16>)
       axes [-1] epsilon none scale_offset 1.0 affine_in result zero_policy zero
       : tensor<?x768xbf16> -> tensor<?x768xbf16> rstd(tensor<?xf32>) sum(tensor<?x768xbf16>)
  return %y, %sum : tensor<?x768xbf16>, tensor<?x768xbf16>
}
