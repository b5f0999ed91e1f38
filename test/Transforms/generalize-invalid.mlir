// RUN: norm-opt %s --norm-generalize=parts=2 --split-input-file --verify-diagnostics
// RUN: not norm-opt %S/generalize.mlir --norm-generalize="parts=-1" --split-input-file 2>&1 | FileCheck %s --check-prefix=PARTS
// PARTS: error: expected 'parts' of at least 0, got -1
// RUN: not norm-opt %S/generalize.mlir --norm-generalize="parts=2 cut=true" --split-input-file 2>&1 | FileCheck %s --check-prefix=CUT
// CUT: error: expected 'parts' 0 with 'cut', which makes x a part, got 2
// RUN: not norm-opt %S/generalize.mlir --norm-generalize="axis=-2" --split-input-file 2>&1 | FileCheck %s --check-prefix=AXIS
// AXIS: error: expected 'axis' of at least -1, got -2
// RUN: not norm-opt %S/generalize.mlir --norm-generalize="parts=2 axis=0" --split-input-file 2>&1 | FileCheck %s --check-prefix=KEPT
// KEPT: error: 'norm.layer_norm' op expected a reduced axis that is not split into groups to divide, got axis 0

func.func @groups(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  // expected-error @below {{'norm.group_norm' op expected a reduced axis that is not split into groups to divide, got none}}
  %y = norm.group_norm %x groups 3 channel_axis 1 axes [1] epsilon inside_sqrt 1.0e-5
      : tensor<2x6xf32> -> tensor<2x6xf32>
  return %y : tensor<2x6xf32>
}

// -----

func.func @narrow(%x: tensor<2x6xbf16>) -> tensor<2x6xbf16> {
  // expected-error @below {{'norm.layer_norm' op expected 'compute' f32 or f64 to divide a norm that subtracts a mean, got 'bf16'}}
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-3 compute bf16
      : tensor<2x6xbf16> -> tensor<2x6xbf16>
  return %y : tensor<2x6xbf16>
}

// -----

func.func @sum(%x: tensor<2x6xbf16>, %h: tensor<2x6xbf16>, %g: tensor<6xbf16>)
    -> tensor<2x6xbf16> {
  // expected-error @below {{'norm.rms_norm' op expected a sum of x's element type with 'affine_in' result, got 'f32' and 'bf16'}}
  %y = norm.rms_norm %x residual(%h : tensor<2x6xbf16>) scale(%g : tensor<6xbf16>)
      axes [1] epsilon inside_sqrt 1.0e-3 affine_in result sum_rounding compute
      : tensor<2x6xbf16> -> tensor<2x6xbf16>
  return %y : tensor<2x6xbf16>
}
