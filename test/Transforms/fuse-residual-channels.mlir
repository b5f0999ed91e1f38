// RUN: norm-opt %s --norm-fuse-residual | FileCheck %s

// Every op takes its residual, and its other results follow.

// CHECK-LABEL: func @group
// CHECK: %[[Y:.+]], %[[M:.+]], %[[S:.+]] = norm.group_norm %{{.+}} residual(%{{.+}} : tensor<2x6x4xf32>) scale({{.*}} groups 3 channel_axis 1 axes [1, 2]
// CHECK-SAME: mean(tensor<2x3xf32>) sum(tensor<2x6x4xf32>)
// CHECK: return %[[Y]], %[[M]], %[[S]]
func.func @group(%x: tensor<2x6x4xf32>, %h: tensor<2x6x4xf32>, %g: tensor<6xf32>)
    -> (tensor<2x6x4xf32>, tensor<2x3xf32>, tensor<2x6x4xf32>) {
  %s = arith.addf %x, %h : tensor<2x6x4xf32>
  %y, %m = norm.group_norm %s scale(%g : tensor<6xf32>) groups 3 channel_axis 1 axes [1, 2]
    epsilon inside_sqrt 1.0e-5 : tensor<2x6x4xf32> -> tensor<2x6x4xf32> mean(tensor<2x3xf32>)
  return %y, %m, %s : tensor<2x6x4xf32>, tensor<2x3xf32>, tensor<2x6x4xf32>
}

// CHECK-LABEL: func @training
// CHECK-NOT: arith.addf
// CHECK: %[[Y:.+]], %[[RM:.+]], %[[RV:.+]] = norm.batch_norm_training %{{.+}} residual({{.*}} running({{.*}} momentum 1.000000e-01
// CHECK: return %[[Y]], %[[RM]], %[[RV]]
func.func @training(%x: tensor<2x6x4xf32>, %h: tensor<2x6x4xf32>, %r: tensor<6xf32>)
    -> (tensor<2x6x4xf32>, tensor<6xf32>, tensor<6xf32>) {
  %s = arith.addf %x, %h : tensor<2x6x4xf32>
  %y, %m, %v = norm.batch_norm_training %s running(%r, %r : tensor<6xf32>, tensor<6xf32>)
    axes [0, 2] epsilon inside_sqrt 1.0e-5 momentum 0.1 : tensor<2x6x4xf32> -> tensor<2x6x4xf32>
    running_mean(tensor<6xf32>) running_variance(tensor<6xf32>)
  return %y, %m, %v : tensor<2x6x4xf32>, tensor<6xf32>, tensor<6xf32>
}

// CHECK-LABEL: func @inference
// CHECK: norm.batch_norm_inference %{{.+}} residual(%{{.+}} : tensor<2x6x4xf32>) mean(
func.func @inference(%x: tensor<2x6x4xf32>, %h: tensor<2x6x4xf32>, %r: tensor<6xf32>) -> tensor<2x6x4xf32> {
  %s = arith.addf %x, %h : tensor<2x6x4xf32>
  %y = norm.batch_norm_inference %s mean(%r : tensor<6xf32>) variance(%r : tensor<6xf32>) axes [0, 2]
    epsilon inside_sqrt 1.0e-5 : tensor<2x6x4xf32> -> tensor<2x6x4xf32>
  return %y : tensor<2x6x4xf32>
}

// CHECK-LABEL: func @instance
// CHECK: norm.instance_norm %{{.+}} residual(%{{.+}} : tensor<2x6x4xf32>) scale({{.*}} affine_axes [1]
// CHECK: norm.l2_norm %{{.+}} residual(
func.func @instance(%x: tensor<2x6x4xf32>, %h: tensor<2x6x4xf32>, %r: tensor<6xf32>)
    -> (tensor<2x6x4xf32>, tensor<2x6x4xf32>) {
  %s = arith.addf %x, %h : tensor<2x6x4xf32>
  %y = norm.instance_norm %s scale(%r : tensor<6xf32>) axes [2] epsilon inside_sqrt 1.0e-5 affine_axes [1]
    : tensor<2x6x4xf32> -> tensor<2x6x4xf32>
  %t = arith.addf %x, %h : tensor<2x6x4xf32>
  %z = norm.l2_norm %t axes [1] epsilon none : tensor<2x6x4xf32> -> tensor<2x6x4xf32>
  return %y, %z : tensor<2x6x4xf32>, tensor<2x6x4xf32>
}
