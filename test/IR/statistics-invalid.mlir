// RUN: norm-opt %s -split-input-file -verify-diagnostics

// The statistics algebra: one case per rule and per operand. The number in
// parentheses is the rule's.

func.func @axis_twice(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'norm.moments' op expected unique 'axes', got axis 1 twice (V1)}}
  %0 = norm.moments %x axes [1, -1] about mean : tensor<4x8xf32> -> m2(tensor<f32>)
  return
}

// -----

func.func @normalize_axis(%x: tensor<4x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expected 'axes' from -2 to 1 for rank 2, got 2 (V1)}}
  %0 = norm.normalize %x rstd(%r : tensor<4xf32>) axes [2] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @backward_axes(%x: tensor<4x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expected at least one axis in 'axes', got none (V1)}}
  %0 = norm.backward_moments %x, %x rstd(%r : tensor<4xf32>) axes [] : tensor<4x8xf32>, tensor<4x8xf32> -> sum_g(tensor<4xf32>)
  return
}

// -----

func.func @scale_shape(%x: tensor<4x8xf32>, %r: tensor<4xf32>, %g: tensor<4xf32>) {
  // expected-error @+1 {{expected 'scale' of shape [8], got [4] (V2)}}
  %0 = norm.normalize %x rstd(%r : tensor<4xf32>) scale(%g : tensor<4xf32>) axes [1] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @shift_shape(%x: tensor<4x8xf32>, %r: tensor<4xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{expected 'shift' of shape [4], got [8] (V2)}}
  %0 = norm.normalize %x rstd(%r : tensor<4xf32>) shift(%g : tensor<8xf32>) axes [1] affine_axes [0] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @dscale_shape(%x: tensor<4x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expected 'dscale' of shape [8], got [4] (V2)}}
  %0 = norm.backward_moments %x, %x rstd(%r : tensor<4xf32>) axes [1] : tensor<4x8xf32>, tensor<4x8xf32> -> dscale(tensor<4xf32>)
  return
}

// -----

func.func @dshift_shape(%x: tensor<4x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expected 'dshift' of shape [8], got [4] (V2)}}
  %0 = norm.backward_moments %x, %x rstd(%r : tensor<4xf32>) axes [1] : tensor<4x8xf32>, tensor<4x8xf32> -> dshift(tensor<4xf32>)
  return
}

// -----

func.func @backward_scale_shape(%x: tensor<4x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expected 'scale' of shape [8], got [4] (V2)}}
  %0 = norm.backward_normalize %x, %x rstd(%r : tensor<4xf32>) scale(%r : tensor<4xf32>) sum_gx(%r : tensor<4xf32>) axes [1] epsilon none : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @integers(%x: tensor<4x8xi32>) {
  // expected-error @+1 {{expected 'x' of element type f64, f32, f16 or bf16, got 'i32' (V3)}}
  %0 = norm.moments %x axes [1] about mean : tensor<4x8xi32> -> m2(tensor<4xf32>)
  return
}

// -----

func.func @integer_result(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'mean' of element type f64, f32, f16 or bf16, got 'i64' (V3)}}
  %0 = norm.moments %x axes [1] about mean : tensor<4x8xf32> -> mean(tensor<4xi64>)
  return
}

// -----

func.func @mask_encoding(%x: tensor<4x8xf32>, %k: tensor<4x8xi1, "tiled">) {
  // expected-error @+1 {{expected 'mask' without encoding, got "tiled" (V3)}}
  %0 = norm.moments %x mask(%k : tensor<4x8xi1, "tiled">) axes [1] about mean : tensor<4x8xf32> -> m2(tensor<4xf32>)
  return
}

// -----

func.func @compute_type(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'compute' type f64, f32, f16 or bf16, got 'i32' (V3)}}
  %0 = norm.moments %x axes [1] about mean compute i32 : tensor<4x8xf32> -> m2(tensor<4xf32>)
  return
}

// -----

func.func @compute_holds_x(%x: tensor<4x8xf16>) {
  // expected-error @+1 {{expected a 'compute' type that holds x's 'f16' or has fewer bits, got 'bf16' (V3)}}
  %0 = norm.moments %x axes [1] about mean compute bf16 : tensor<4x8xf16> -> m2(tensor<4xbf16>)
  return
}

// -----

func.func @negative_epsilon(%q: tensor<4xf32>) {
  // expected-error @+1 {{expected a finite 'epsilon' >= 0, got -0.5 (V4)}}
  %0 = norm.rstd %q epsilon inside_sqrt -0.5 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @backward_epsilon(%x: tensor<4x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expected 'epsilon' > 0 for max_inside, got 0 (V4)}}
  %0 = norm.backward_normalize %x, %x rstd(%r : tensor<4xf32>) sum_gx(%r : tensor<4xf32>) axes [1] epsilon max_inside 0.0 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @mean_type(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'mean' of element type 'f32' (the compute type) or f64, got 'bf16' (V8)}}
  %0 = norm.moments %x axes [1] about mean : tensor<4x8xf32> -> mean(tensor<4xbf16>)
  return
}

// -----

func.func @m2_type(%x: tensor<4x8xf64>) {
  // expected-error @+1 {{expected 'm2' of element type 'f64' (the compute type), got 'f32' (V8)}}
  %0 = norm.moments %x axes [1] about mean : tensor<4x8xf64> -> m2(tensor<4xf32>)
  return
}

// -----

func.func @m2_shape(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'm2' of shape [4], got [8] (V8)}}
  %0 = norm.moments %x axes [1] about mean : tensor<4x8xf32> -> m2(tensor<8xf32>)
  return
}

// -----

func.func @count_shape(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'count' of shape [4], got [4, 1] (V8)}}
  %0 = norm.moments %x axes [1] about mean : tensor<4x8xf32> -> count(tensor<4x1xi64>)
  return
}

// -----

func.func @count_type(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'count' of element type i64, got 'i32' (V8)}}
  %0 = norm.moments %x axes [1] about mean : tensor<4x8xf32> -> count(tensor<4xi32>)
  return
}

// -----

func.func @parts_rank(%q: tensor<f32>, %n: tensor<i64>) {
  // expected-error @+1 {{expected 'm2' with a leading axis of parts, got rank 0 (V8)}}
  %0 = norm.combine_moments count(%n : tensor<i64>) m2(%q : tensor<f32>) -> m2(tensor<f32>)
  return
}

// -----

func.func @parts_count(%x: tensor<4x8xf32>, %n: tensor<3x8xi64>) {
  // expected-error @+1 {{expected 'count' of shape [4, 8], got [3, 8] (V8)}}
  %0 = norm.combine_moments count(%n : tensor<3x8xi64>) m2(%x : tensor<4x8xf32>) -> m2(tensor<8xf32>)
  return
}

// -----

func.func @parts_mean(%x: tensor<4x8xf32>, %n: tensor<4x8xi64>, %m: tensor<4xf32>) {
  // expected-error @+1 {{expected 'mean' of shape [4, 8], got [4] (V8)}}
  %0 = norm.combine_moments count(%n : tensor<4x8xi64>) mean(%m : tensor<4xf32>) m2(%x : tensor<4x8xf32>) -> m2(tensor<8xf32>)
  return
}

// -----

func.func @parts_result(%x: tensor<4x8xf32>, %n: tensor<4x8xi64>) {
  // expected-error @+1 {{expected 'm2' of shape [8], got [4] (V8)}}
  %0 = norm.combine_moments count(%n : tensor<4x8xi64>) m2(%x : tensor<4x8xf32>) -> m2(tensor<4xf32>)
  return
}

// -----

func.func @parts_result_type(%x: tensor<4x8xf32>, %n: tensor<4x8xi64>) {
  // expected-error @+1 {{expected 'm2' of element type 'f32' (the compute type) or f64, got 'f16' (V8)}}
  %0 = norm.combine_moments count(%n : tensor<4x8xi64>) m2(%x : tensor<4x8xf32>) -> m2(tensor<8xf16>)
  return
}

// -----

func.func @rstd_shape(%q: tensor<4xf32>) {
  // expected-error @+1 {{expected 'rstd' of shape [4], got [8] (V8)}}
  %0 = norm.rstd %q epsilon none : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

func.func @rstd_count(%q: tensor<4xf32>, %n: tensor<8xi64>) {
  // expected-error @+1 {{expected 'count' of shape [4], got [8] (V8)}}
  %0 = norm.rstd %q count(%n : tensor<8xi64>) epsilon none : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @rstd_type(%q: tensor<4xf64>) {
  // expected-error @+1 {{expected 'rstd' of element type 'f64' (the compute type), got 'f32' (V8)}}
  %0 = norm.rstd %q epsilon none : tensor<4xf64> -> tensor<4xf32>
  return
}

// -----

func.func @normalize_mean(%x: tensor<4x8xf32>, %r: tensor<4xf32>, %m: tensor<8xf32>) {
  // expected-error @+1 {{expected 'mean' of shape [4], got [8] (V8)}}
  %0 = norm.normalize %x mean(%m : tensor<8xf32>) rstd(%r : tensor<4xf32>) axes [1] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @normalize_rstd(%x: tensor<4x8xf32>, %r: tensor<4xf16>) {
  // expected-error @+1 {{expected 'rstd' of element type 'f32' (the compute type) or f64, got 'f16' (V8)}}
  %0 = norm.normalize %x rstd(%r : tensor<4xf16>) axes [1] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @running_shape(%o: tensor<4xf32>, %q: tensor<8xf32>, %n: tensor<4xi64>) {
  // expected-error @+1 {{expected 'new' of shape [4], got [8] (V8)}}
  %0 = norm.update_running %o, %q count(%n : tensor<4xi64>) statistic mean momentum 0.1 : tensor<4xf32>, tensor<8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @running_result(%o: tensor<4xf32>, %n: tensor<4xi64>) {
  // expected-error @+1 {{expected 'updated' of shape [4], got [8] (V8)}}
  %0 = norm.update_running %o, %o count(%n : tensor<4xi64>) statistic mean momentum 0.1 : tensor<4xf32>, tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

func.func @sum_shape(%x: tensor<4x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expected 'sum_gx' of shape [4], got [8] (V8)}}
  %0 = norm.backward_moments %x, %x rstd(%r : tensor<4xf32>) axes [1] : tensor<4x8xf32>, tensor<4x8xf32> -> sum_gx(tensor<8xf32>)
  return
}

// -----

func.func @sum_type(%x: tensor<4x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expected 'sum_g' of element type 'f32' (the compute type) or f64, got 'bf16' (V8)}}
  %0 = norm.backward_moments %x, %x rstd(%r : tensor<4xf32>) axes [1] : tensor<4x8xf32>, tensor<4x8xf32> -> sum_g(tensor<4xbf16>)
  return
}

// -----

func.func @given_sum(%x: tensor<4x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expected 'sum_gx' of shape [4], got [4, 8] (V8)}}
  %0 = norm.backward_normalize %x, %x rstd(%r : tensor<4xf32>) sum_gx(%x : tensor<4x8xf32>) axes [1] epsilon none : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @backward_count(%x: tensor<4x8xf32>, %r: tensor<4xf32>, %n: tensor<8xi64>) {
  // expected-error @+1 {{expected 'count' of shape [4], got [8] (V8)}}
  %0 = norm.backward_normalize %x, %x rstd(%r : tensor<4xf32>) sum_gx(%r : tensor<4xf32>) count(%n : tensor<8xi64>) axes [1] epsilon none : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @mask_type(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected 'mask' of element type i1, got 'f32' (V9)}}
  %0 = norm.moments %x mask(%x : tensor<4x8xf32>) axes [1] about mean : tensor<4x8xf32> -> m2(tensor<4xf32>)
  return
}

// -----

func.func @mask_shape(%x: tensor<4x8xf32>, %k: tensor<4xi1>) {
  // expected-error @+1 {{expected 'mask' of shape [4, 8], got [4] (V9)}}
  %0 = norm.moments %x mask(%k : tensor<4xi1>) axes [1] about mean : tensor<4x8xf32> -> m2(tensor<4xf32>)
  return
}

// -----

func.func @backward_mask(%x: tensor<4x8xf32>, %r: tensor<4xf32>, %k: tensor<8x4xi1>) {
  // expected-error @+1 {{expected 'mask' of shape [4, 8], got [8, 4] (V9)}}
  %0 = norm.backward_moments %x, %x rstd(%r : tensor<4xf32>) mask(%k : tensor<8x4xi1>) axes [1] : tensor<4x8xf32>, tensor<4x8xf32> -> sum_g(tensor<4xf32>)
  return
}

// -----

func.func @dx_mask(%x: tensor<4x8xf32>, %r: tensor<4xf32>, %k: tensor<8xi1>) {
  // expected-error @+1 {{expected 'mask' of shape [4, 8], got [8] (V9)}}
  %0 = norm.backward_normalize %x, %x rstd(%r : tensor<4xf32>) sum_gx(%r : tensor<4xf32>) mask(%k : tensor<8xi1>) axes [1] epsilon none : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @momentum(%o: tensor<4xf32>, %n: tensor<4xi64>) {
  // expected-error @+1 {{expected 'momentum' from 0 to 1, got 1.500000e+00 (V11)}}
  %0 = norm.update_running %o, %o count(%n : tensor<4xi64>) statistic mean momentum 1.5 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @affine_in(%x: tensor<4x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expected 'y' of an element type that holds x's 'f32' with 'affine_in' result, got 'bf16' (V12)}}
  %0 = norm.normalize %x rstd(%r : tensor<4xf32>) axes [1] affine_in result : tensor<4x8xf32> -> tensor<4x8xbf16>
  return
}

// -----

func.func @y_shape(%x: tensor<4x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expected 'y' of shape [4, 8], got [8, 4] (V15)}}
  %0 = norm.normalize %x rstd(%r : tensor<4xf32>) axes [1] : tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// -----

func.func @dy_shape(%x: tensor<4x8xf32>, %dy: tensor<8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expected 'dy' of shape [4, 8], got [8] (V15)}}
  %0 = norm.backward_moments %dy, %x rstd(%r : tensor<4xf32>) axes [1] : tensor<8xf32>, tensor<4x8xf32> -> sum_g(tensor<4xf32>)
  return
}

// -----

func.func @dx_shape(%x: tensor<4x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expected 'dx' of shape [4, 8], got [4] (V15)}}
  %0 = norm.backward_normalize %x, %x rstd(%r : tensor<4xf32>) sum_gx(%r : tensor<4xf32>) axes [1] epsilon none : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @no_moment(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'norm.moments' op expected at least one result, got none (V17)}}
  norm.moments %x axes [1] about mean : tensor<4x8xf32> ->
  return
}

// -----

func.func @no_merged_moment(%x: tensor<4x8xf32>, %n: tensor<4x8xi64>) {
  // expected-error @+1 {{'norm.combine_moments' op expected at least one result, got none (V17)}}
  norm.combine_moments count(%n : tensor<4x8xi64>) m2(%x : tensor<4x8xf32>) ->
  return
}

// -----

func.func @no_sum(%x: tensor<4x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{'norm.backward_moments' op expected at least one result, got none (V17)}}
  norm.backward_moments %x, %x rstd(%r : tensor<4xf32>) axes [1] : tensor<4x8xf32>, tensor<4x8xf32> ->
  return
}

// -----

func.func @mean_about_zero(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expected no 'mean' result about zero (V17)}}
  %0 = norm.moments %x axes [1] about zero : tensor<4x8xf32> -> mean(tensor<4xf32>)
  return
}

// -----

func.func @mean_of_nothing(%x: tensor<4x8xf32>, %n: tensor<4x8xi64>) {
  // expected-error @+1 {{expected 'mean' with a 'mean' result, got none (V17)}}
  %0 = norm.combine_moments count(%n : tensor<4x8xi64>) m2(%x : tensor<4x8xf32>) -> mean(tensor<8xf32>)
  return
}

// -----

func.func @rstd_correction(%q: tensor<4xf32>, %n: tensor<4xi64>) {
  // expected-error @+1 {{expected 'correction' 0 or 1, got 2 (V17)}}
  %0 = norm.rstd %q count(%n : tensor<4xi64>) epsilon none correction 2 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @correction_of_nothing(%q: tensor<4xf32>) {
  // expected-error @+1 {{expected 'count' with 'correction', got none (V17)}}
  %0 = norm.rstd %q epsilon none correction 1 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @backward_correction(%x: tensor<4x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expected 'count' with 'correction', got none (V17)}}
  %0 = norm.backward_normalize %x, %x rstd(%r : tensor<4xf32>) sum_gx(%r : tensor<4xf32>) axes [1] epsilon none correction 1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @affine_axes_of_nothing(%x: tensor<4x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expected 'scale' or 'shift' with 'affine_axes', got neither (V17)}}
  %0 = norm.normalize %x rstd(%r : tensor<4xf32>) axes [1] affine_axes [0] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @affine_axes_order(%x: tensor<4x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expected 'affine_axes' to be strictly increasing, got 0 after 1 (V17)}}
  %0 = norm.backward_moments %x, %x rstd(%r : tensor<4xf32>) scale(%x : tensor<4x8xf32>) axes [1] affine_axes [1, 0] : tensor<4x8xf32>, tensor<4x8xf32> -> sum_g(tensor<4xf32>)
  return
}

// -----

func.func @offset_of_nothing(%x: tensor<4x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expected 'scale' with 'scale_offset', got none (V17)}}
  %0 = norm.normalize %x rstd(%r : tensor<4xf32>) axes [1] scale_offset 1.0 : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @no_momentum(%o: tensor<4xf32>, %n: tensor<4xi64>) {
  // expected-error @+1 {{expected one 'momentum', got 0 (V17)}}
  %0 = norm.update_running %o, %o count(%n : tensor<4xi64>) statistic mean : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @running_correction(%o: tensor<4xf32>, %n: tensor<4xi64>) {
  // expected-error @+1 {{expected 'running_correction' 0 or 1, got 2 (V17)}}
  %0 = norm.update_running %o, %o count(%n : tensor<4xi64>) statistic variance momentum 0.1 running_correction 2 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @variance_needed(%x: tensor<4x8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expected 'variance' with epsilon outside_sqrt, got none (V17)}}
  %0 = norm.backward_normalize %x, %x rstd(%r : tensor<4xf32>) sum_gx(%r : tensor<4xf32>) axes [1] epsilon outside_sqrt 1.0e-3 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

// An operand that must be there.
func.func @generic_without_rstd(%x: tensor<4xf32>, %r: tensor<f32>) {
  // expected-error @+1 {{'norm.normalize' op expected one 'rstd', got 0}}
  %0 = "norm.normalize"(%x, %r) <{axes = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}>
    : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return
}
