// RUN: norm-opt %s --transform-interpreter --split-input-file --canonicalize --cse | FileCheck %s

// Along the grouped axis a step is a group: two groups of two channels each.
// CHECK-LABEL: func @groups
// CHECK: scf.forall (%[[N:.+]], %[[G:.+]]) in (2, 3)
// CHECK: affine.apply #{{.+}}(%[[G]])
// CHECK: %[[C:.+]] = affine.apply #{{.+}}(%[[G]])
// CHECK: tensor.extract_slice %{{.+}}[%[[N]], %[[C]], 0] [1, 4, 5] [1, 1, 1]
// CHECK: tensor.extract_slice %{{.+}}[%[[C]]] [4] [1]
// CHECK: norm.group_norm {{.*}} groups 2 channel_axis 1 axes [1, 2] {{.*}} : tensor<1x4x5xf32> -> tensor<1x4x5xf32> mean(tensor<1x2xf32>)
// CHECK: tensor.parallel_insert_slice %{{.+}} into %{{.+}}[%[[N]], %[[C]], 0] [1, 4, 5]
// CHECK: tensor.parallel_insert_slice %{{.+}} into %{{.+}}[%[[N]], %{{.+}}] [1, 2]
func.func @groups(%x: tensor<2x12x5xf32>, %g: tensor<12xf32>) -> (tensor<2x12x5xf32>, tensor<2x6xf32>) {
  %y, %m = norm.group_norm %x scale(%g : tensor<12xf32>) groups 6 channel_axis 1 axes [1, 2] epsilon none
    : tensor<2x12x5xf32> -> tensor<2x12x5xf32> mean(tensor<2x6xf32>)
  return %y, %m : tensor<2x12x5xf32>, tensor<2x6xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.group_norm"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loop = transform.structured.tile_using_forall %op tile_sizes [1, 2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Nothing is reduced: a tile of inference has any shape.
// CHECK-LABEL: func @inference
// CHECK: norm.batch_norm_inference %{{.+}} mean(%{{.+}} : tensor<3xf32>) {{.*}} : tensor<1x3x2xf32> -> tensor<1x3x2xf32>
func.func @inference(%x: tensor<2x12x6xf32>, %m: tensor<12xf32>) -> tensor<2x12x6xf32> {
  %y = norm.batch_norm_inference %x mean(%m : tensor<12xf32>) variance(%m : tensor<12xf32>) axes [0, 2] epsilon none
    : tensor<2x12x6xf32> -> tensor<2x12x6xf32>
  return %y : tensor<2x12x6xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.batch_norm_inference"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loops:3 = transform.structured.tile_using_for %op tile_sizes [1, 3, 2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Channels of a batch norm may be split, what its statistics reduce may not.
// CHECK-LABEL: func @training
// CHECK: norm.batch_norm_training {{.*}} running(%{{.+}}, %{{.+}} : tensor<4xf32>, tensor<4xf32>) {{.*}} : tensor<2x4x6xf32> -> tensor<2x4x6xf32> running_mean(tensor<4xf32>)
func.func @training(%x: tensor<2x12x6xf32>, %r: tensor<12xf32>) -> tensor<12xf32> {
  %y, %m, %v = norm.batch_norm_training %x running(%r, %r : tensor<12xf32>, tensor<12xf32>) axes [0, 2] epsilon none momentum 0.1
    : tensor<2x12x6xf32> -> tensor<2x12x6xf32> running_mean(tensor<12xf32>) running_variance(tensor<12xf32>)
  return %m : tensor<12xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.batch_norm_training"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loop = transform.structured.tile_using_forall %op tile_sizes [0, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
