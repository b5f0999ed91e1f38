// RUN: norm-opt %s | norm-opt | FileCheck %s
// RUN: norm-opt %s --mlir-print-op-generic | norm-opt | FileCheck %s

// CHECK-LABEL: func @l2
// CHECK: norm.l2_norm %{{.+}} axes [3] epsilon max_outside 1.000000e-12 : tensor<2x128x16x64xf32> -> tensor<2x128x16x64xf32>
func.func @l2(%q: tensor<2x128x16x64xf32>) -> tensor<2x128x16x64xf32> {
  %n = norm.l2_norm %q axes [3] epsilon max_outside 1.0e-12 : tensor<2x128x16x64xf32> -> tensor<2x128x16x64xf32>
  return %n : tensor<2x128x16x64xf32>
}

// CHECK-LABEL: func @group
// CHECK: norm.group_norm %{{.+}} scale(%{{.+}} : tensor<320xf32>) shift(%{{.+}} : tensor<320xf32>) groups 32 channel_axis 1 axes [1, 2, 3] epsilon inside_sqrt 1.000000e-05 : tensor<2x320x64x64xf32> -> tensor<2x320x64x64xf32> mean(tensor<2x32xf32>)
func.func @group(%x: tensor<2x320x64x64xf32>, %g: tensor<320xf32>, %b: tensor<320xf32>)
    -> (tensor<2x320x64x64xf32>, tensor<2x32xf32>) {
  %y, %mean = norm.group_norm %x scale(%g : tensor<320xf32>) shift(%b : tensor<320xf32>) groups 32 channel_axis 1
    axes [1, 2, 3] epsilon inside_sqrt 1.0e-5 : tensor<2x320x64x64xf32> -> tensor<2x320x64x64xf32> mean(tensor<2x32xf32>)
  return %y, %mean : tensor<2x320x64x64xf32>, tensor<2x32xf32>
}

// Statistics of a channel-last group norm: groups in the channel's place.
// CHECK-LABEL: func @group_last
// CHECK: groups 3 channel_axis -1 axes [-2, -1] {{.*}} rstd(tensor<?x3xf32>)
func.func @group_last(%x: tensor<?x5x6xf32>) -> tensor<?x3xf32> {
  %y, %rstd = norm.group_norm %x groups 3 channel_axis -1 axes [-2, -1] epsilon none : tensor<?x5x6xf32> -> tensor<?x5x6xf32> rstd(tensor<?x3xf32>)
  return %rstd : tensor<?x3xf32>
}

// CHECK-LABEL: func @instance
// CHECK: norm.instance_norm %{{.+}} scale(%{{.+}} : tensor<64xf32>) axes [2, 3] epsilon inside_sqrt 1.000000e-05 affine_axes [1]
func.func @instance(%x: tensor<1x64x8x8xf32>, %g: tensor<64xf32>) -> tensor<1x64x8x8xf32> {
  %y = norm.instance_norm %x scale(%g : tensor<64xf32>) axes [2, 3] epsilon inside_sqrt 1.0e-5 affine_axes [1]
    : tensor<1x64x8x8xf32> -> tensor<1x64x8x8xf32>
  return %y : tensor<1x64x8x8xf32>
}

// CHECK-LABEL: func @training
// CHECK: norm.batch_norm_training %{{.+}} running(%{{.+}}, %{{.+}} : tensor<64xf32>, tensor<64xf64>) axes [0, 2, 3] epsilon inside_sqrt 1.000000e-05 momentum 1.000000e-01 : tensor<8x64x7x7xf32> -> tensor<8x64x7x7xf32> mean(tensor<64xf32>) running_mean(tensor<64xf32>) running_variance(tensor<64xf64>)
func.func @training(%x: tensor<8x64x7x7xf32>, %rm: tensor<64xf32>, %rv: tensor<64xf64>)
    -> (tensor<8x64x7x7xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf64>) {
  %y, %m, %rm1, %rv1 = norm.batch_norm_training %x running(%rm, %rv : tensor<64xf32>, tensor<64xf64>)
    axes [0, 2, 3] epsilon inside_sqrt 1.0e-5 momentum 0.1 : tensor<8x64x7x7xf32> -> tensor<8x64x7x7xf32>
    mean(tensor<64xf32>) running_mean(tensor<64xf32>) running_variance(tensor<64xf64>)
  return %y, %m, %rm1, %rv1 : tensor<8x64x7x7xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf64>
}

// Untracked: neither operands nor results; [1, C, L] is legal for L > 1 (2.20).
// CHECK-LABEL: func @untracked
// CHECK: norm.batch_norm_training %{{.+}} axes [0, 2] epsilon inside_sqrt 1.000000e-05 : tensor<1x4x2xf32>
func.func @untracked(%x: tensor<1x4x2xf32>) -> tensor<1x4x2xf32> {
  %y = norm.batch_norm_training %x axes [0, 2] epsilon inside_sqrt 1.0e-5 : tensor<1x4x2xf32> -> tensor<1x4x2xf32>
  return %y : tensor<1x4x2xf32>
}

// CHECK-LABEL: func @momentum
// CHECK-SAME: %[[A:[a-z0-9]+]]: f32
// CHECK: momentum(%[[A]] : f32) running_correction 0 :
func.func @momentum(%x: tensor<8x4xf32>, %rm: tensor<4xf32>, %a: f32) -> tensor<4xf32> {
  %y, %rm1, %rv1 = norm.batch_norm_training %x running(%rm, %rm : tensor<4xf32>, tensor<4xf32>)
    axes [0] epsilon inside_sqrt 1.0e-5 momentum(%a : f32) running_correction 0 : tensor<8x4xf32> -> tensor<8x4xf32>
    running_mean(tensor<4xf32>) running_variance(tensor<4xf32>)
  return %rm1 : tensor<4xf32>
}

// [1, C] is legal in inference (2.20).
// CHECK-LABEL: func @inference
// CHECK: norm.batch_norm_inference %{{.+}} mean(%{{.+}} : tensor<4xf64>) variance(%{{.+}} : tensor<4xbf16>) axes [0]
func.func @inference(%x: tensor<1x4xf32>, %m: tensor<4xf64>, %v: tensor<4xbf16>) -> tensor<1x4xf32> {
  %y = norm.batch_norm_inference %x mean(%m : tensor<4xf64>) variance(%v : tensor<4xbf16>) axes [0]
    epsilon inside_sqrt 1.0e-5 : tensor<1x4xf32> -> tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}

// CHECK-LABEL: func @backward
// CHECK: norm.layer_norm_backward %{{.+}}, %{{.+}} dsum(%{{.+}} : tensor<4x8xf32>) mean(%{{.+}} : tensor<4xf32>) rstd(%{{.+}} : tensor<4xf32>) scale(%{{.+}} : tensor<8xf32>) axes [1] epsilon inside_sqrt 1.000000e-05 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32> dscale(tensor<8xf32>) dshift(tensor<8xf32>)
// CHECK: norm.rms_norm_backward %{{.+}}, %{{.+}} residual(%{{.+}} : tensor<4x8xf32>) axes [1] epsilon none sum_rounding compute
// CHECK: norm.group_norm_backward %{{.+}}, %{{.+}} groups 2 channel_axis 1 axes [1]
func.func @backward(%dy: tensor<4x8xf32>, %x: tensor<4x8xf32>, %s: tensor<4xf32>, %g: tensor<8xf32>)
    -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %dx, %dg, %db = norm.layer_norm_backward %dy, %x dsum(%dy : tensor<4x8xf32>) mean(%s : tensor<4xf32>)
    rstd(%s : tensor<4xf32>) scale(%g : tensor<8xf32>) axes [1] epsilon inside_sqrt 1.0e-5
    : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32> dscale(tensor<8xf32>) dshift(tensor<8xf32>)
  %dr = norm.rms_norm_backward %dy, %x residual(%x : tensor<4x8xf32>) axes [1] epsilon none sum_rounding compute
    : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %dn = norm.group_norm_backward %dy, %x groups 2 channel_axis 1 axes [1] epsilon none
    : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %dx, %dg, %db, %dr, %dn : tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
