// RUN: norm-opt %s -split-input-file \
// RUN:   --pass-pipeline='builtin.module(func.func(sharding-propagation{traversal=forward-backward},shard-partition,canonicalize,cse))' \
// RUN:   | FileCheck %s

// No axis that an op computes anything across is split: the op itself on the
// share, and no collective.

shard.grid @g(shape = 2)

// CHECK-LABEL: func.func @layer_norm(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<2x8xf32>, %[[ARG1:.+]]: tensor<8xf32>)
// CHECK-SAME:      -> (tensor<2x8xf32>, tensor<2xf32>)
// CHECK-NOT:   shard.all_
// CHECK:       %[[Y:.+]], %[[RSTD:.+]] = norm.layer_norm %[[ARG0]] scale(%[[ARG1]] : tensor<8xf32>) axes [1] epsilon inside_sqrt 1.000000e-06 : tensor<2x8xf32> -> tensor<2x8xf32> rstd(tensor<2xf32>)
// CHECK-NOT:   shard.all_
// CHECK:       return %[[Y]], %[[RSTD]] : tensor<2x8xf32>, tensor<2xf32>
func.func @layer_norm(%x: tensor<4x8xf32>, %g: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8xf32>
  %y, %m, %r = norm.layer_norm %xu scale(%g : tensor<8xf32>)
      axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<4x8xf32> -> tensor<4x8xf32> mean(tensor<4xf32>) rstd(tensor<4xf32>)
  return %y, %r : tensor<4x8xf32>, tensor<4xf32>
}

// -----

shard.grid @g(shape = 2x2)

// CHECK-LABEL: func.func @group_norm(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<2x4x6x6xf32>, %[[ARG1:.+]]: tensor<4xf32>)
// CHECK-SAME:      -> (tensor<2x4x6x6xf32>, tensor<2x2xf32>)
// CHECK-NOT:   shard.all_
// CHECK:       %[[Y:.+]], %[[MEAN:.+]] = norm.group_norm %[[ARG0]] scale(%[[ARG1]] : tensor<4xf32>) groups 2 channel_axis 1 axes [1, 2, 3] epsilon inside_sqrt 1.000000e-06 : tensor<2x4x6x6xf32> -> tensor<2x4x6x6xf32> mean(tensor<2x2xf32>)
// CHECK-NOT:   shard.all_
// CHECK:       return %[[Y]], %[[MEAN]] : tensor<2x4x6x6xf32>, tensor<2x2xf32>
func.func @group_norm(%x: tensor<4x8x6x6xf32>, %g: tensor<8xf32>) -> (tensor<4x8x6x6xf32>, tensor<4x4xf32>) {
  %s = shard.sharding @g split_axes = [[0], [1]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8x6x6xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8x6x6xf32>
  %y, %m = norm.group_norm %xu scale(%g : tensor<8xf32>)
      groups 4 channel_axis 1 axes [1, 2, 3] epsilon inside_sqrt 1.0e-6
      : tensor<4x8x6x6xf32> -> tensor<4x8x6x6xf32> mean(tensor<4x4xf32>)
  return %y, %m : tensor<4x8x6x6xf32>, tensor<4x4xf32>
}

// -----

shard.grid @g(shape = 2)

// CHECK-LABEL: func.func @instance_norm(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<4x4x6xf32>, %[[ARG1:.+]]: tensor<4xf32>)
// CHECK-SAME:      -> tensor<4x4x6xf32>
// CHECK-NOT:   shard.all_
// CHECK:       %[[Y:.+]] = norm.instance_norm %[[ARG0]] scale(%[[ARG1]] : tensor<4xf32>) axes [2] epsilon inside_sqrt 1.000000e-06 affine_axes [1] : tensor<4x4x6xf32> -> tensor<4x4x6xf32>
// CHECK-NOT:   shard.all_
// CHECK:       return %[[Y]] : tensor<4x4x6xf32>
func.func @instance_norm(%x: tensor<4x8x6xf32>, %g: tensor<8xf32>) -> tensor<4x8x6xf32> {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8x6xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8x6xf32>
  %y = norm.instance_norm %xu scale(%g : tensor<8xf32>)
      axes [2] epsilon inside_sqrt 1.0e-6 affine_axes [1]
      : tensor<4x8x6xf32> -> tensor<4x8x6xf32>
  return %y : tensor<4x8x6xf32>
}

// -----

shard.grid @g(shape = 2)

// CHECK-LABEL: func.func @batch_norm_inference(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<2x3x6xf32>, %[[ARG1:.+]]: tensor<3xf32>, %[[ARG2:.+]]: tensor<3xf32>)
// CHECK-SAME:      -> tensor<2x3x6xf32>
// CHECK-NOT:   shard.all_
// CHECK:       %[[Y:.+]] = norm.batch_norm_inference %[[ARG0]] mean(%[[ARG1]] : tensor<3xf32>) variance(%[[ARG2]] : tensor<3xf32>) axes [0, 2] epsilon inside_sqrt 1.000000e-06 : tensor<2x3x6xf32> -> tensor<2x3x6xf32>
// CHECK-NOT:   shard.all_
// CHECK:       return %[[Y]] : tensor<2x3x6xf32>
func.func @batch_norm_inference(%x: tensor<4x3x6xf32>, %m: tensor<3xf32>, %v: tensor<3xf32>)
    -> tensor<4x3x6xf32> {
  %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x3x6xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x3x6xf32>
  %y = norm.batch_norm_inference %xu mean(%m : tensor<3xf32>) variance(%v : tensor<3xf32>)
      axes [0, 2] epsilon inside_sqrt 1.0e-6
      : tensor<4x3x6xf32> -> tensor<4x3x6xf32>
  return %y : tensor<4x3x6xf32>
}

// -----

shard.grid @g(shape = 2)

// CHECK-LABEL: func.func @batch_norm_channels(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<4x3x6xf32>, %[[ARG1:.+]]: tensor<3xf32>, %[[ARG2:.+]]: tensor<3xf32>, %[[ARG3:.+]]: f32)
// CHECK-SAME:      -> (tensor<4x3x6xf32>, tensor<3xf32>, tensor<3xf32>)
// CHECK-NOT:   shard.all_
// CHECK:       %[[Y:.+]], %[[UPDATED_MEAN:.+]], %[[UPDATED_VARIANCE:.+]] = norm.batch_norm_training %[[ARG0]] running(%[[ARG1]], %[[ARG2]] : tensor<3xf32>, tensor<3xf32>) axes [0, 2] epsilon inside_sqrt 1.000000e-06 momentum{{ ?}}(%[[ARG3]] : f32) : tensor<4x3x6xf32> -> tensor<4x3x6xf32> running_mean(tensor<3xf32>) running_variance(tensor<3xf32>)
// CHECK-NOT:   shard.all_
// CHECK:       return %[[Y]], %[[UPDATED_MEAN]], %[[UPDATED_VARIANCE]] : tensor<4x3x6xf32>, tensor<3xf32>, tensor<3xf32>
func.func @batch_norm_channels(%x: tensor<4x6x6xf32>, %rm: tensor<6xf32>, %rv: tensor<6xf32>, %a: f32)
    -> (tensor<4x6x6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x6x6xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x6x6xf32>
  %y, %nm, %nv = norm.batch_norm_training %xu running(%rm, %rv : tensor<6xf32>, tensor<6xf32>)
      axes [0, 2] epsilon inside_sqrt 1.0e-6 momentum(%a : f32)
      : tensor<4x6x6xf32> -> tensor<4x6x6xf32> running_mean(tensor<6xf32>) running_variance(tensor<6xf32>)
  return %y, %nm, %nv : tensor<4x6x6xf32>, tensor<6xf32>, tensor<6xf32>
}

// -----

shard.grid @g(shape = 3)

// Uneven rows: nothing is summed over them.
// CHECK-LABEL: func.func @uneven_rows(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<?x4xf32>)
// CHECK-SAME:      -> (tensor<?x4xf32>, tensor<?xf32>)
// CHECK-NOT:   shard.all_
// CHECK:       %[[Y:.+]], %[[RSTD:.+]] = norm.rms_norm %[[ARG0]] axes [1] epsilon inside_sqrt 1.000000e-06 : tensor<?x4xf32> -> tensor<?x4xf32> rstd(tensor<?xf32>)
// CHECK-NOT:   shard.all_
// CHECK:       return %[[Y]], %[[RSTD]] : tensor<?x4xf32>, tensor<?xf32>
func.func @uneven_rows(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>) {
  %s = shard.sharding @g split_axes = [[0]] sharded_dims_offsets = [0, 5, 5, 8] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<8x4xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<8x4xf32>
  %y, %r = norm.rms_norm %xu
      axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<8x4xf32> -> tensor<8x4xf32> rstd(tensor<8xf32>)
  return %y, %r : tensor<8x4xf32>, tensor<8xf32>
}

// -----

shard.grid @g(shape = 2)

// CHECK-LABEL: func.func @normalize(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<4x4xf32>, %[[ARG1:.+]]: tensor<4xf64>, %[[ARG2:.+]]: tensor<4xf32>, %[[ARG3:.+]]: tensor<4xf32>)
// CHECK-SAME:      -> tensor<4x4xf32>
// CHECK-NOT:   shard.all_
// CHECK:       %[[V0:.+]] = norm.normalize %[[ARG0]] mean(%[[ARG1]] : tensor<4xf64>) rstd(%[[ARG2]] : tensor<4xf32>) scale(%[[ARG3]] : tensor<4xf32>) axes [1] : tensor<4x4xf32> -> tensor<4x4xf32>
// CHECK-NOT:   shard.all_
// CHECK:       return %[[V0]] : tensor<4x4xf32>
func.func @normalize(%x: tensor<4x8xf32>, %m: tensor<4xf64>, %r: tensor<4xf32>, %g: tensor<8xf32>)
    -> tensor<4x8xf32> {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8xf32>
  %y = norm.normalize %xu mean(%m : tensor<4xf64>) rstd(%r : tensor<4xf32>) scale(%g : tensor<8xf32>)
      axes [1]
      : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
