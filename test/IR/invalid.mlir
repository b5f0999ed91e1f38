// RUN: norm-opt %s -split-input-file -verify-diagnostics

// One case per rule and per operand. The number in parentheses is the rule's.

//===----------------------------------------------------------------------===//
// V1: axes
//===----------------------------------------------------------------------===//

func.func @no_axes(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'norm.layer_norm' op expected at least one axis in 'axes', got none (V1)}}
  %0 = norm.layer_norm %x axes [] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @rank_0(%x: tensor<f32>) {
  // expected-error @+1 {{'norm.layer_norm' op expected 'x' of rank 1 or more, got rank 0 (V1)}}
  %0 = norm.layer_norm %x axes [-1] epsilon none : tensor<f32> -> tensor<f32>
  return
}

// -----

func.func @axis_too_large(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'norm.rms_norm' op expected 'axes' from -2 to 1 for rank 2, got 2 (V1)}}
  %0 = norm.rms_norm %x axes [2] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @axis_too_small(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'axes' from -2 to 1 for rank 2, got -3 (V1)}}
  %0 = norm.layer_norm %x axes [-3] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @axis_huge(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'axes' from -2 to 1 for rank 2, got 9223372036854775807 (V1)}}
  %0 = norm.layer_norm %x axes [9223372036854775807] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @axis_huge_negative(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'axes' from -2 to 1 for rank 2, got -9223372036854775808 (V1)}}
  %0 = norm.layer_norm %x axes [-9223372036854775808] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @axis_twice(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected unique 'axes', got axis 1 twice (V1)}}
  %0 = norm.layer_norm %x axes [1, 0, -1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// V2: shapes of scale and shift
//===----------------------------------------------------------------------===//

func.func @scale_extent(%x: tensor<4x8xf32>, %g: tensor<4xf32>) {
  // expected-error @+1 {{expected 'scale' of shape [8], got [4] (V2)}}
  %0 = norm.layer_norm %x scale(%g : tensor<4xf32>) axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @shift_extent(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{expected 'shift' of shape [8], got [4] (V2)}}
  %0 = norm.layer_norm %x scale(%g : tensor<8xf32>) shift(%b : tensor<4xf32>) axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @scale_rank(%x: tensor<2x7x8x1x3xf32>, %g: tensor<3x7xf32>) {
  // expected-error @+1 {{expected 'scale' of shape [7, 8, 1, 3], got [3, 7] (V2)}}
  %0 = norm.layer_norm %x scale(%g : tensor<3x7xf32>) axes [1, 2, 3, 4] epsilon none : tensor<2x7x8x1x3xf32> -> tensor<2x7x8x1x3xf32>
  return
}

// -----

// Nothing is broadcast, not even an extent of 1.
func.func @scale_broadcast(%x: tensor<4x8xf32>, %g: tensor<1xf32>) {
  // expected-error @+1 {{expected 'scale' of shape [8], got [1] (V2)}}
  %0 = norm.rms_norm %x scale(%g : tensor<1xf32>) axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @shift_affine_axes(%x: tensor<?x8xf32>, %b: tensor<8x4xf32>) {
  // expected-error @+1 {{expected 'shift' of shape [?, 8], got [8, 4] (V2)}}
  %0 = norm.layer_norm %x shift(%b : tensor<8x4xf32>) axes [1] epsilon none affine_axes [0, 1] : tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// V3: types
//===----------------------------------------------------------------------===//

func.func @x_integer(%x: tensor<4xi32>) {
  // expected-error @+1 {{expected 'x' of element type f64, f32, f16 or bf16, got 'i32' (V3)}}
  %0 = norm.layer_norm %x axes [0] epsilon none : tensor<4xi32> -> tensor<4xi32>
  return
}

// -----

func.func @residual_integer(%x: tensor<4xf32>, %r: tensor<4xindex>) {
  // expected-error @+1 {{expected 'residual' of element type f64, f32, f16 or bf16, got 'index' (V3)}}
  %0 = norm.layer_norm %x residual(%r : tensor<4xindex>) axes [0] epsilon none : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @scale_f8(%x: tensor<4xf32>, %g: tensor<4xf8E4M3FN>) {
  // expected-error @+1 {{expected 'scale' of element type f64, f32, f16 or bf16, got 'f8E4M3FN' (V3)}}
  %0 = norm.layer_norm %x scale(%g : tensor<4xf8E4M3FN>) axes [0] epsilon none : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @shift_complex(%x: tensor<4xf32>, %b: tensor<4xcomplex<f32>>) {
  // expected-error @+1 {{expected 'shift' of element type f64, f32, f16 or bf16, got 'complex<f32>' (V3)}}
  %0 = norm.layer_norm %x shift(%b : tensor<4xcomplex<f32>>) axes [0] epsilon none : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @y_f128(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected 'y' of element type f64, f32, f16 or bf16, got 'f128' (V3)}}
  %0 = norm.layer_norm %x axes [0] epsilon none : tensor<4xf32> -> tensor<4xf128>
  return
}

// -----

func.func @mean_integer(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected 'mean' of element type f64, f32, f16 or bf16, got 'i32' (V3)}}
  %0:2 = norm.layer_norm %x axes [0] epsilon none : tensor<4xf32> -> tensor<4xf32> mean(tensor<i32>)
  return
}

// -----

func.func @variance_integer(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected 'variance' of element type f64, f32, f16 or bf16, got 'i32' (V3)}}
  %0:2 = norm.rms_norm %x axes [0] epsilon none : tensor<4xf32> -> tensor<4xf32> variance(tensor<i32>)
  return
}

// -----

func.func @rstd_integer(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected 'rstd' of element type f64, f32, f16 or bf16, got 'i32' (V3)}}
  %0:2 = norm.rms_norm %x axes [0] epsilon none : tensor<4xf32> -> tensor<4xf32> rstd(tensor<i32>)
  return
}

// -----

func.func @sum_integer(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected 'sum' of element type f64, f32, f16 or bf16, got 'i32' (V3)}}
  %0:2 = norm.rms_norm %x residual(%x : tensor<4xf32>) axes [0] epsilon none : tensor<4xf32> -> tensor<4xf32> sum(tensor<4xi32>)
  return
}

// -----

func.func @compute_integer(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected 'compute' type f64, f32, f16 or bf16, got 'i32' (V3)}}
  %0 = norm.layer_norm %x axes [0] epsilon none compute i32 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// bf16 holds no f16, and f16 no bf16.
func.func @compute_other_16(%x: tensor<4xf16>) {
  // expected-error @+1 {{expected a 'compute' type that holds x's 'f16' or has fewer bits, got 'bf16' (V3)}}
  %0 = norm.layer_norm %x axes [0] epsilon none compute bf16 : tensor<4xf16> -> tensor<4xf16>
  return
}

// -----

func.func @encoding(%x: tensor<4xf32, "tiled">) {
  // expected-error @+1 {{expected 'x' without encoding, got "tiled" (V3)}}
  %0 = norm.layer_norm %x axes [0] epsilon none : tensor<4xf32, "tiled"> -> tensor<4xf32, "tiled">
  return
}

// -----

func.func @y_encoding(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected 'y' without encoding, got "tiled" (V3)}}
  %0 = norm.layer_norm %x axes [0] epsilon none : tensor<4xf32> -> tensor<4xf32, "tiled">
  return
}

// -----

func.func @unranked(%x: tensor<*xf32>) {
  // expected-error @+1 {{invalid kind of type specified: expected builtin.tensor, but found 'tensor<*xf32>'}}
  %0 = norm.layer_norm %x axes [0] epsilon none : tensor<*xf32> -> tensor<*xf32>
  return
}

// -----

func.func @unranked_generic(%x: tensor<*xf32>) {
  // expected-error @+1 {{operand #0 must be ranked tensor of f64, f32, f16 or bf16, but got 'tensor<*xf32>'}}
  %0 = "norm.layer_norm"(%x) <{axes = array<i64: 0>, epsilon = #norm.epsilon<none>, operandSegmentSizes = array<i32: 1, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (tensor<*xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @memref(%x: memref<4xf32>) {
  // expected-error @+1 {{invalid kind of type specified: expected builtin.tensor, but found 'memref<4xf32>'}}
  %0 = norm.layer_norm %x axes [0] epsilon none : memref<4xf32> -> memref<4xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// V4: epsilon
//===----------------------------------------------------------------------===//

func.func @epsilon_negative(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected a finite 'epsilon' >= 0, got -1 (V4)}}
  %0 = norm.layer_norm %x axes [0] epsilon inside_sqrt -1.0 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @epsilon_nan(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected a finite 'epsilon' >= 0, got NaN (V4)}}
  %0 = norm.layer_norm %x axes [0] epsilon inside_sqrt 0x7FF8000000000000 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @epsilon_infinite(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected a finite 'epsilon' >= 0, got +Inf (V4)}}
  %0 = norm.rms_norm %x axes [0] epsilon outside_sqrt 0x7FF0000000000000 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @epsilon_max_inside_zero(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected 'epsilon' > 0 for max_inside, got 0 (V4)}}
  %0 = norm.rms_norm %x axes [0] epsilon max_inside 0.0 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @epsilon_max_outside_zero(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected 'epsilon' > 0 for max_outside, got 0 (V4)}}
  %0 = norm.rms_norm %x axes [0] epsilon max_outside 0.0 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @epsilon_placement(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected inside_sqrt, outside_sqrt, max_inside, max_outside or none, got 'sqrt'}}
  %0 = norm.rms_norm %x axes [0] epsilon sqrt 1.0e-5 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @epsilon_without_value(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected floating point literal}}
  %0 = norm.rms_norm %x axes [0] epsilon inside_sqrt : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @epsilon_missing(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected 'epsilon'}}
  %0 = norm.rms_norm %x axes [0] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// V8: statistics
//===----------------------------------------------------------------------===//

func.func @mean_shape(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'mean' of shape [4], got [8] (V8)}}
  %0:2 = norm.layer_norm %x axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32> mean(tensor<8xf32>)
  return
}

// -----

// There is no form that keeps the reduced dimensions.
func.func @variance_shape(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'variance' of shape [4], got [4, 1] (V8)}}
  %0:2 = norm.layer_norm %x axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32> variance(tensor<4x1xf32>)
  return
}

// -----

func.func @rstd_shape(%x: tensor<4x?xf32>) {
  // expected-error @+1 {{expected 'rstd' of shape [?], got [] (V8)}}
  %0:2 = norm.rms_norm %x axes [0] epsilon none : tensor<4x?xf32> -> tensor<4x?xf32> rstd(tensor<f32>)
  return
}

// -----

func.func @mean_type(%x: tensor<4x8xbf16>) {
  // expected-error @+1 {{expected 'mean' of element type 'f32' (the compute type), got 'bf16' (V8)}}
  %0:2 = norm.layer_norm %x axes [1] epsilon none : tensor<4x8xbf16> -> tensor<4x8xbf16> mean(tensor<4xbf16>)
  return
}

// -----

func.func @variance_type(%x: tensor<4x8xf32>, %r: tensor<4x8xf64>) {
  // expected-error @+1 {{expected 'variance' of element type 'f64' (the compute type), got 'f32' (V8)}}
  %0:2 = norm.layer_norm %x residual(%r : tensor<4x8xf64>) axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32> variance(tensor<4xf32>)
  return
}

// -----

func.func @rstd_type(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'rstd' of element type 'f64' (the compute type), got 'f32' (V8)}}
  %0:2 = norm.rms_norm %x axes [1] epsilon none compute f64 : tensor<4x8xf32> -> tensor<4x8xf32> rstd(tensor<4xf32>)
  return
}

// -----

func.func @rms_has_no_mean(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{operation defines 1 results but was provided 2 to bind}}
  %0:2 = norm.rms_norm %x axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32> mean(tensor<4xf32>)
  return
}

// -----

//===----------------------------------------------------------------------===//
// V12: affine_in
//===----------------------------------------------------------------------===//

func.func @affine_in_narrower(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected 'y' of an element type that holds x's 'f32' with 'affine_in' result, got 'bf16' (V12)}}
  %0 = norm.rms_norm %x axes [0] epsilon none affine_in result : tensor<4xf32> -> tensor<4xbf16>
  return
}

// -----

func.func @affine_in_other_16(%x: tensor<4xf16>) {
  // expected-error @+1 {{expected 'y' of an element type that holds x's 'f16' with 'affine_in' result, got 'bf16' (V12)}}
  %0 = norm.rms_norm %x axes [0] epsilon none affine_in result : tensor<4xf16> -> tensor<4xbf16>
  return
}

// -----

//===----------------------------------------------------------------------===//
// V15: shapes of residual, y and sum
//===----------------------------------------------------------------------===//

func.func @residual_shape(%x: tensor<4x8xf32>, %r: tensor<8xf32>) {
  // expected-error @+1 {{expected 'residual' of shape [4, 8], got [8] (V15)}}
  %0 = norm.layer_norm %x residual(%r : tensor<8xf32>) axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @y_shape(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'y' of shape [4, 8], got [8, 4] (V15)}}
  %0 = norm.layer_norm %x axes [1] epsilon none : tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// -----

func.func @sum_shape(%x: tensor<4x?xf32>) {
  // expected-error @+1 {{expected 'sum' of shape [4, ?], got [5, ?] (V15)}}
  %0:2 = norm.layer_norm %x residual(%x : tensor<4x?xf32>) axes [1] epsilon none : tensor<4x?xf32> -> tensor<4x?xf32> sum(tensor<5x?xf32>)
  return
}

// -----

//===----------------------------------------------------------------------===//
// V17: what needs what
//===----------------------------------------------------------------------===//

func.func @affine_axes_alone(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'scale' or 'shift' with 'affine_axes', got neither (V17)}}
  %0 = norm.layer_norm %x axes [1] epsilon none affine_axes [1] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @affine_axes_order(%x: tensor<4x8xf32>, %g: tensor<8x4xf32>) {
  // expected-error @+1 {{expected 'affine_axes' to be strictly increasing, got 0 after 1 (V17)}}
  %0 = norm.layer_norm %x scale(%g : tensor<8x4xf32>) axes [1] epsilon none affine_axes [1, 0] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @affine_axes_twice(%x: tensor<4x8xf32>, %g: tensor<8x8xf32>) {
  // expected-error @+1 {{expected 'affine_axes' to be strictly increasing, got 1 after 1 (V17)}}
  %0 = norm.layer_norm %x scale(%g : tensor<8x8xf32>) axes [1] epsilon none affine_axes [1, 1] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @affine_axes_negative(%x: tensor<4x8xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{expected 'affine_axes' from 0 to 1, got -1 (V17)}}
  %0 = norm.layer_norm %x scale(%g : tensor<8xf32>) axes [1] epsilon none affine_axes [-1] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @scale_offset_alone(%x: tensor<4x8xf32>, %b: tensor<8xf32>) {
  // expected-error @+1 {{expected 'scale' with 'scale_offset', got none (V17)}}
  %0 = norm.rms_norm %x shift(%b : tensor<8xf32>) axes [1] epsilon none scale_offset 1.0 : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @scale_offset_nan(%x: tensor<4x8xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{expected a finite 'scale_offset', got nan (V17)}}
  %0 = norm.rms_norm %x scale(%g : tensor<8xf32>) axes [1] epsilon none scale_offset 0x7FF8000000000000 : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @sum_alone(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'residual' with a 'sum' result, got none (V17)}}
  %0:2 = norm.rms_norm %x axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32> sum(tensor<4x8xf32>)
  return
}

// -----

func.func @sum_rounding_alone(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'residual' with 'sum_rounding', got none (V17)}}
  %0 = norm.rms_norm %x axes [1] epsilon none sum_rounding compute : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @correction_2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'correction' 0 or 1, got 2 (V17)}}
  %0 = norm.layer_norm %x axes [1] epsilon none correction 2 : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @correction_negative(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'correction' 0 or 1, got -1 (V17)}}
  %0 = norm.layer_norm %x axes [1] epsilon none correction -1 : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @correction_on_rms(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'correction' 0 on an op that subtracts no mean, got 1 (V17)}}
  %0 = "norm.rms_norm"(%x) <{axes = array<i64: 1>, epsilon = #norm.epsilon<none>, correction = 1 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @divisor_0(%x: tensor<4x1x1xf32>) {
  // expected-error @+1 {{expected more than 1 reduced elements with 'correction' 1, got 1 (V17)}}
  %0 = norm.layer_norm %x axes [1, 2] epsilon none correction 1 : tensor<4x1x1xf32> -> tensor<4x1x1xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Keywords, and the generic form
//===----------------------------------------------------------------------===//

func.func @affine_in_keyword(%x: tensor<4xf32>) {
  // expected-error @+1 {{for attribute 'affine_in' [compute, result]}}
  %0 = norm.layer_norm %x axes [0] epsilon none affine_in input : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @sum_rounding_keyword(%x: tensor<4xf32>) {
  // expected-error @+1 {{for attribute 'sum_rounding' [stored, compute]}}
  %0 = norm.layer_norm %x axes [0] epsilon none sum_rounding up : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @zero_policy_keyword(%x: tensor<4xf32>) {
  // expected-error @+1 {{for attribute 'zero_policy' [ieee, zero]}}
  %0 = norm.layer_norm %x axes [0] epsilon none zero_policy one : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @generic_without_axes(%x: tensor<4xf32>) {
  // expected-error @+1 {{'norm.layer_norm' op requires attribute 'axes'}}
  %0 = "norm.layer_norm"(%x) <{epsilon = #norm.epsilon<none>, operandSegmentSizes = array<i32: 1, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @generic_without_epsilon(%x: tensor<4xf32>) {
  // expected-error @+1 {{'norm.layer_norm' op requires attribute 'epsilon'}}
  %0 = "norm.layer_norm"(%x) <{axes = array<i64: 0>, operandSegmentSizes = array<i32: 1, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @generic_epsilon_type(%x: tensor<4xf32>) {
  // expected-error @+1 {{Invalid attribute `epsilon` in property conversion: 1.000000e+00 : f64}}
  %0 = "norm.layer_norm"(%x) <{axes = array<i64: 0>, epsilon = 1.0, operandSegmentSizes = array<i32: 1, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @generic_enum_out_of_range(%x: tensor<4xf32>) {
  // expected-error @+1 {{Invalid attribute `affine_in` in property conversion: 7 : i32}}
  %0 = "norm.layer_norm"(%x) <{axes = array<i64: 0>, epsilon = #norm.epsilon<none>, affine_in = 7 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @generic_correction_type(%x: tensor<4xf32>) {
  // expected-error @+1 {{attribute 'correction' failed to satisfy constraint: 64-bit signless integer attribute}}
  %0 = "norm.layer_norm"(%x) <{axes = array<i64: 0>, epsilon = #norm.epsilon<none>, correction = 1 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @generic_without_x(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected one 'x', got 0}}
  %0 = "norm.layer_norm"(%x) <{axes = array<i64: 0>, epsilon = #norm.epsilon<none>, operandSegmentSizes = array<i32: 0, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @generic_two_x(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected one 'x', got 2}}
  %0 = "norm.layer_norm"(%x, %x) <{axes = array<i64: 0>, epsilon = #norm.epsilon<none>, operandSegmentSizes = array<i32: 2, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @generic_two_residuals(%x: tensor<4xf32>) {
  // expected-error @+1 {{operand group starting at #1 requires 0 or 1 element, but found 2}}
  %0 = "norm.layer_norm"(%x, %x, %x) <{axes = array<i64: 0>, epsilon = #norm.epsilon<none>, operandSegmentSizes = array<i32: 1, 2, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @generic_without_y(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected one 'y', got 0}}
  %0 = "norm.rms_norm"(%x) <{axes = array<i64: 0>, epsilon = #norm.epsilon<none>, operandSegmentSizes = array<i32: 1, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 1, 0>}> : (tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @generic_segments(%x: tensor<4xf32>) {
  // expected-error @+1 {{operand count (1) does not match with the total size (4) specified in attribute 'operandSegmentSizes'}}
  %0 = "norm.rms_norm"(%x) <{axes = array<i64: 0>, epsilon = #norm.epsilon<none>, operandSegmentSizes = array<i32: 1, 1, 1, 1>, resultSegmentSizes = array<i32: 1, 0, 0, 0>}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @generic_segments_negative(%x: tensor<4xf32>) {
  // expected-error @+1 {{'operandSegmentSizes' attribute cannot have negative elements}}
  %0 = "norm.rms_norm"(%x) <{axes = array<i64: 0>, epsilon = #norm.epsilon<none>, operandSegmentSizes = array<i32: 2, -1, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}
