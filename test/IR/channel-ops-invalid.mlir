// RUN: norm-opt %s -split-input-file -verify-diagnostics

func.func @v2_group_shift(%x: tensor<2x6x4xf32>, %b: tensor<3xf32>) {
  // expected-error @below {{expected 'shift' of shape [6], got [3] (V2)}}
  %y = norm.group_norm %x shift(%b : tensor<3xf32>) groups 3 channel_axis 1 axes [1, 2] epsilon none
    : tensor<2x6x4xf32> -> tensor<2x6x4xf32>
  return
}

// -----

func.func @v3_momentum(%x: tensor<4x2xf32>, %r: tensor<2xf32>, %a: f8E5M2) {
  // expected-error @below {{expected 'momentum' of element type f64, f32, f16 or bf16, got 'f8E5M2' (V3)}}
  %y, %m, %v = norm.batch_norm_training %x running(%r, %r : tensor<2xf32>, tensor<2xf32>) axes [0] epsilon none momentum(%a : f8E5M2)
    : tensor<4x2xf32> -> tensor<4x2xf32> running_mean(tensor<2xf32>) running_variance(tensor<2xf32>)
  return
}

// -----

func.func @v5_groups_divide(%x: tensor<2x6x4xf32>) {
  // expected-error @below {{expected 'groups' to divide the 6 channels of 'x', got 4 (V5)}}
  %y = norm.group_norm %x groups 4 channel_axis 1 axes [1, 2] epsilon none : tensor<2x6x4xf32> -> tensor<2x6x4xf32>
  return
}

// -----

func.func @v5_groups_positive(%x: tensor<2x6x4xf32>) {
  // expected-error @below {{expected 'groups' > 0, got 0 (V5)}}
  %y = norm.group_norm %x groups 0 channel_axis 1 axes [1, 2] epsilon none : tensor<2x6x4xf32> -> tensor<2x6x4xf32>
  return
}

// -----

func.func @v5_channel_in_axes(%x: tensor<2x6x4xf32>) {
  // expected-error @below {{expected 'channel_axis' to be one of 'axes', got 1 (V5)}}
  %y = norm.group_norm %x groups 3 channel_axis 1 axes [2] epsilon none : tensor<2x6x4xf32> -> tensor<2x6x4xf32>
  return
}

// -----

func.func @v5_channel_range(%x: tensor<2x6x4xf32>) {
  // expected-error @below {{expected 'channel_axis' from -3 to 2 for rank 3, got 3 (V5)}}
  %y = norm.group_norm %x groups 3 channel_axis 3 axes [1, 2] epsilon none : tensor<2x6x4xf32> -> tensor<2x6x4xf32>
  return
}

// -----

// One value per channel has no variance (2.20).
func.func @v6_one_value(%x: tensor<1x4xf32>) {
  // expected-error @below {{expected more than 1 value per channel when training, got 1 (V6)}}
  %y = norm.batch_norm_training %x axes [0] epsilon inside_sqrt 1.0e-5 : tensor<1x4xf32> -> tensor<1x4xf32>
  return
}

// -----

func.func @v7_operands_without_results(%x: tensor<4x2xf32>, %r: tensor<2xf32>) {
  // expected-error @below {{expected 'running' operands and results in pairs, got 2 operands and 0 results (V7)}}
  %y = norm.batch_norm_training %x running(%r, %r : tensor<2xf32>, tensor<2xf32>) axes [0] epsilon none momentum 0.1
    : tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @v7_one_result(%x: tensor<4x2xf32>, %r: tensor<2xf32>) {
  // expected-error @below {{expected 'running' operands and results in pairs, got 2 operands and 1 results (V7)}}
  %y, %m = norm.batch_norm_training %x running(%r, %r : tensor<2xf32>, tensor<2xf32>) axes [0] epsilon none momentum 0.1
    : tensor<4x2xf32> -> tensor<4x2xf32> running_mean(tensor<2xf32>)
  return
}

// -----

func.func @v7_shape(%x: tensor<4x2xf32>, %r: tensor<4xf32>) {
  // expected-error @below {{expected 'running_mean' of shape [2], got [4] (V7)}}
  %y, %m, %v = norm.batch_norm_training %x running(%r, %r : tensor<4xf32>, tensor<4xf32>) axes [0] epsilon none momentum 0.1
    : tensor<4x2xf32> -> tensor<4x2xf32> running_mean(tensor<4xf32>) running_variance(tensor<4xf32>)
  return
}

// -----

func.func @v7_type(%x: tensor<4x2xf32>, %r: tensor<2xf32>) {
  // expected-error @below {{expected 'running_variance' result of element type 'f32', that of its operand, got 'f64' (V7)}}
  %y, %m, %v = norm.batch_norm_training %x running(%r, %r : tensor<2xf32>, tensor<2xf32>) axes [0] epsilon none momentum 0.1
    : tensor<4x2xf32> -> tensor<4x2xf32> running_mean(tensor<2xf32>) running_variance(tensor<2xf64>)
  return
}

// -----

// Groups stand in the channel's place.
func.func @v8_group_statistics(%x: tensor<2x6x4xf32>) {
  // expected-error @below {{expected 'mean' of shape [2, 3], got [2, 6] (V8)}}
  %y, %m = norm.group_norm %x groups 3 channel_axis 1 axes [1, 2] epsilon none
    : tensor<2x6x4xf32> -> tensor<2x6x4xf32> mean(tensor<2x6xf32>)
  return
}

// -----

func.func @v8_given_shape(%x: tensor<4x2xf32>, %m: tensor<4xf32>, %v: tensor<2xf32>) {
  // expected-error @below {{expected 'mean' of shape [2], got [4] (V8)}}
  %y = norm.batch_norm_inference %x mean(%m : tensor<4xf32>) variance(%v : tensor<2xf32>) axes [0] epsilon none
    : tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @v8_saved_type(%dy: tensor<4x8xbf16>, %m: tensor<4xbf16>) {
  // expected-error @below {{expected 'mean' of element type 'f32' (the compute type), got 'bf16' (V8)}}
  %dx = norm.layer_norm_backward %dy, %dy mean(%m : tensor<4xbf16>) axes [1] epsilon none
    : tensor<4x8xbf16>, tensor<4x8xbf16> -> tensor<4x8xbf16>
  return
}

// -----

func.func @v10_correction(%x: tensor<4x2xf32>, %m: tensor<2xf32>) {
  // expected-error @below {{expected 'correction' 0 where the variance is given, got 1 (V10)}}
  %y = norm.batch_norm_inference %x mean(%m : tensor<2xf32>) variance(%m : tensor<2xf32>) axes [0] epsilon none correction 1
    : tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

// There is no syntax for a momentum of an inference op.
func.func @v10_momentum(%x: tensor<4x2xf32>, %m: tensor<2xf32>) {
  // expected-error @below {{expected ':'}}
  %y = norm.batch_norm_inference %x mean(%m : tensor<2xf32>) variance(%m : tensor<2xf32>) axes [0] epsilon none momentum 0.1
    : tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @v10_backward_constants(%dy: tensor<4x2xf32>) {
  // expected-error @below {{expected 'variance' or 'rstd', got neither (V10)}}
  %dx = norm.batch_norm_inference_backward %dy, %dy axes [0] epsilon none : tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @v10_backward_mean(%dy: tensor<4x2xf32>, %v: tensor<2xf32>) {
  // expected-error @below {{expected 'mean' with a 'dscale' result, got none (V10)}}
  %dx, %dg = norm.batch_norm_inference_backward %dy, %dy variance(%v : tensor<2xf32>) axes [0] epsilon none
    : tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x2xf32> dscale(tensor<2xf32>)
  return
}

// -----

func.func @v11_momentum(%x: tensor<4x2xf32>, %r: tensor<2xf32>) {
  // expected-error @below {{expected 'momentum' from 0 to 1, got 1.500000e+00 (V11)}}
  %y, %m, %v = norm.batch_norm_training %x running(%r, %r : tensor<2xf32>, tensor<2xf32>) axes [0] epsilon none momentum 1.5
    : tensor<4x2xf32> -> tensor<4x2xf32> running_mean(tensor<2xf32>) running_variance(tensor<2xf32>)
  return
}

// -----

func.func @v15_dy(%dy: tensor<4x7xf32>, %x: tensor<4x8xf32>) {
  // expected-error @below {{expected 'dy' of shape [4, 8], got [4, 7] (V15)}}
  %dx = norm.rms_norm_backward %dy, %x axes [1] epsilon none : tensor<4x7xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @v17_stated_axes(%x: tensor<2x6x4xf32>, %g: tensor<6xf32>) {
  // expected-error @below {{expected 'affine_axes' with 'scale' or 'shift', got none (V17)}}
  %y = norm.instance_norm %x scale(%g : tensor<6xf32>) axes [2] epsilon none : tensor<2x6x4xf32> -> tensor<2x6x4xf32>
  return
}

// -----

func.func @v17_no_momentum(%x: tensor<4x2xf32>, %r: tensor<2xf32>) {
  // expected-error @below {{expected one 'momentum' with 'running', got 0 (V17)}}
  %y, %m, %v = norm.batch_norm_training %x running(%r, %r : tensor<2xf32>, tensor<2xf32>) axes [0] epsilon none
    : tensor<4x2xf32> -> tensor<4x2xf32> running_mean(tensor<2xf32>) running_variance(tensor<2xf32>)
  return
}

// -----

func.func @v17_momentum_alone(%x: tensor<4x2xf32>) {
  // expected-error @below {{expected no 'momentum' without 'running', got 1 (V17)}}
  %y = norm.batch_norm_training %x axes [0] epsilon none momentum 0.5 : tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @v17_running_correction(%x: tensor<4x2xf32>, %r: tensor<2xf32>) {
  // expected-error @below {{expected 'running_correction' 0 or 1, got 2 (V17)}}
  %y, %m, %v = norm.batch_norm_training %x running(%r, %r : tensor<2xf32>, tensor<2xf32>) axes [0] epsilon none momentum 0.5 running_correction 2
    : tensor<4x2xf32> -> tensor<4x2xf32> running_mean(tensor<2xf32>) running_variance(tensor<2xf32>)
  return
}

// -----

func.func @v17_running_correction_alone(%x: tensor<4x2xf32>) {
  // expected-error @below {{expected no 'running_correction' without 'running', got 0 (V17)}}
  %y = norm.batch_norm_training %x axes [0] epsilon none running_correction 0 : tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @v17_mean_of_rms(%dy: tensor<4x8xf32>, %m: tensor<4xf32>) {
  // expected-error @below {{expected no 'mean' on an op that subtracts none (V17)}}
  %dx = norm.rms_norm_backward %dy, %dy mean(%m : tensor<4xf32>) axes [1] epsilon none
    : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @v17_residual(%dy: tensor<4x8xf32>) {
  // expected-error @below {{expected 'residual' and 'sum_rounding' compute together, got one of them: the stored sum is 'x' (V17)}}
  %dx = norm.rms_norm_backward %dy, %dy residual(%dy : tensor<4x8xf32>) axes [1] epsilon none
    : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @v17_affine_axes(%dy: tensor<4x8xf32>) {
  // expected-error @below {{expected 'scale', 'dscale' or 'dshift' with 'affine_axes', got neither (V17)}}
  %dx = norm.rms_norm_backward %dy, %dy axes [1] epsilon none affine_axes [1]
    : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @v17_correction_l2(%x: tensor<4x8xf32>) {
  // expected-error @below {{expected 'correction' 0 on an op that subtracts no mean, got 1 (V17)}}
  %y = norm.l2_norm %x axes [1] epsilon none correction 1 : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}
