// RUN: norm-opt %s -split-input-file \
// RUN:   --pass-pipeline='builtin.module(func.func(sharding-propagation{traversal=forward-backward}))' \
// RUN:   | FileCheck %s

// What propagation says of operands and results.

shard.grid @g(shape = 2x2)

// CHECK-LABEL: func.func @annotations(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<4x8xf32>, %[[ARG1:.+]]: tensor<4x8xf32>, %[[ARG2:.+]]: tensor<8xf32>)
// CHECK-SAME:      -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4x8xf32>)
// CHECK:       %[[SHARDING:.+]] = shard.sharding @g split_axes = {{\[\[}}0], [1]] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED:.+]] = shard.shard %[[ARG0]] to %[[SHARDING]] : tensor<4x8xf32>
// CHECK:       %[[SHARDING_ANNOTATED_0:.+]] = shard.shard %[[SHARDING_ANNOTATED]] to %[[SHARDING]] annotate_for_users : tensor<4x8xf32>
// CHECK:       %[[SHARDING_1:.+]] = shard.sharding @g split_axes = {{\[\[}}0], [1]] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED_2:.+]] = shard.shard %[[ARG1]] to %[[SHARDING_1]] annotate_for_users : tensor<4x8xf32>
// CHECK:       %[[SHARDING_3:.+]] = shard.sharding @g split_axes = {{\[\[}}1]] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED_4:.+]] = shard.shard %[[ARG2]] to %[[SHARDING_3]] annotate_for_users : tensor<8xf32>
// CHECK:       %[[Y:.+]], %[[MEAN:.+]], %[[SUM:.+]] = norm.layer_norm %[[SHARDING_ANNOTATED_0]] residual(%[[SHARDING_ANNOTATED_2]] : tensor<4x8xf32>) scale(%[[SHARDING_ANNOTATED_4]] : tensor<8xf32>) axes [1] epsilon inside_sqrt 1.000000e-06 : tensor<4x8xf32> -> tensor<4x8xf32> mean(tensor<4xf32>) sum(tensor<4x8xf32>)
// CHECK:       %[[SHARDING_5:.+]] = shard.sharding @g split_axes = {{\[\[}}0], [1]] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED_6:.+]] = shard.shard %[[SUM]] to %[[SHARDING_5]] : tensor<4x8xf32>
// CHECK:       %[[SHARDING_7:.+]] = shard.sharding @g split_axes = {{\[\[}}0]] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED_8:.+]] = shard.shard %[[MEAN]] to %[[SHARDING_7]] : tensor<4xf32>
// CHECK:       %[[SHARDING_9:.+]] = shard.sharding @g split_axes = {{\[\[}}0], [1]] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED_10:.+]] = shard.shard %[[Y]] to %[[SHARDING_9]] : tensor<4x8xf32>
// CHECK:       return %[[SHARDING_ANNOTATED_10]], %[[SHARDING_ANNOTATED_8]], %[[SHARDING_ANNOTATED_6]] : tensor<4x8xf32>, tensor<4xf32>, tensor<4x8xf32>
func.func @annotations(%x: tensor<4x8xf32>, %r: tensor<4x8xf32>, %g: tensor<8xf32>)
    -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4x8xf32>) {
  %s = shard.sharding @g split_axes = [[0], [1]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8xf32>
  %y, %m, %sum = norm.layer_norm %xu residual(%r : tensor<4x8xf32>) scale(%g : tensor<8xf32>)
      axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<4x8xf32> -> tensor<4x8xf32> mean(tensor<4xf32>) sum(tensor<4x8xf32>)
  return %y, %m, %sum : tensor<4x8xf32>, tensor<4xf32>, tensor<4x8xf32>
}

// -----

shard.grid @g(shape = 3x2)

// CHECK-LABEL: func.func @offsets(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<4x8xf32>, %[[ARG1:.+]]: tensor<4x8xf32>, %[[ARG2:.+]]: tensor<8xf32>)
// CHECK-SAME:      -> (tensor<4x8xf32>, tensor<4xf32>)
// CHECK:       %[[SHARDING:.+]] = shard.sharding @g split_axes = {{\[\[}}1], [0]] sharded_dims_offsets = [0, 2, 4, 0, 5, 5, 8] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED:.+]] = shard.shard %[[ARG1]] to %[[SHARDING]] : tensor<4x8xf32>
// CHECK:       %[[SHARDING_0:.+]] = shard.sharding @g split_axes = {{\[\[}}1], [0]] sharded_dims_offsets = [0, 2, 4, 0, 5, 5, 8] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED_1:.+]] = shard.shard %[[ARG0]] to %[[SHARDING_0]] annotate_for_users : tensor<4x8xf32>
// CHECK:       %[[SHARDING_2:.+]] = shard.sharding @g split_axes = {{\[\[}}1], [0]] sharded_dims_offsets = [0, 2, 4, 0, 5, 5, 8] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED_3:.+]] = shard.shard %[[SHARDING_ANNOTATED]] to %[[SHARDING_2]] annotate_for_users : tensor<4x8xf32>
// CHECK:       %[[SHARDING_4:.+]] = shard.sharding @g split_axes = {{\[\[}}0]] sharded_dims_offsets = [0, 5, 5, 8] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED_5:.+]] = shard.shard %[[ARG2]] to %[[SHARDING_4]] annotate_for_users : tensor<8xf32>
// CHECK:       %[[Y:.+]], %[[MEAN:.+]] = norm.layer_norm %[[SHARDING_ANNOTATED_1]] residual(%[[SHARDING_ANNOTATED_3]] : tensor<4x8xf32>) scale(%[[SHARDING_ANNOTATED_5]] : tensor<8xf32>) axes [1] epsilon inside_sqrt 1.000000e-06 : tensor<4x8xf32> -> tensor<4x8xf32> mean(tensor<4xf32>)
// CHECK:       %[[SHARDING_6:.+]] = shard.sharding @g split_axes = {{\[\[}}1]] sharded_dims_offsets = [0, 2, 4] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED_7:.+]] = shard.shard %[[MEAN]] to %[[SHARDING_6]] : tensor<4xf32>
// CHECK:       %[[SHARDING_8:.+]] = shard.sharding @g split_axes = {{\[\[}}1], [0]] sharded_dims_offsets = [0, 2, 4, 0, 5, 5, 8] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED_9:.+]] = shard.shard %[[Y]] to %[[SHARDING_8]] : tensor<4x8xf32>
// CHECK:       return %[[SHARDING_ANNOTATED_9]], %[[SHARDING_ANNOTATED_7]] : tensor<4x8xf32>, tensor<4xf32>
func.func @offsets(%x: tensor<4x8xf32>, %r: tensor<4x8xf32>, %g: tensor<8xf32>)
    -> (tensor<4x8xf32>, tensor<4xf32>) {
  %s = shard.sharding @g split_axes = [[1], [0]] sharded_dims_offsets = [0, 2, 4, 0, 5, 5, 8] : !shard.sharding
  %rs = shard.shard %r to %s : tensor<4x8xf32>
  %y, %m = norm.layer_norm %x residual(%rs : tensor<4x8xf32>) scale(%g : tensor<8xf32>)
      axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<4x8xf32> -> tensor<4x8xf32> mean(tensor<4xf32>)
  return %y, %m : tensor<4x8xf32>, tensor<4xf32>
}

// -----

shard.grid @g(shape = 2)

// CHECK-LABEL: func.func @from_the_result(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<4x?xf32>, %[[ARG1:.+]]: tensor<4x?xf32>, %[[ARG2:.+]]: tensor<4xf32>)
// CHECK-SAME:      -> tensor<?xf32>
// CHECK:       %[[SHARDING:.+]] = shard.sharding @g split_axes = {{\[\[}}], [0]] sharded_dims_offsets = [0, 1, 4] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED:.+]] = shard.shard %[[ARG0]] to %[[SHARDING]] annotate_for_users : tensor<4x?xf32>
// CHECK:       %[[SHARDING_0:.+]] = shard.sharding @g split_axes = {{\[\[}}], [0]] sharded_dims_offsets = [0, 1, 4] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED_1:.+]] = shard.shard %[[ARG1]] to %[[SHARDING_0]] annotate_for_users : tensor<4x?xf32>
// CHECK:       %[[SHARDING_2:.+]] = shard.sharding @g split_axes = {{\[\[}}]] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED_3:.+]] = shard.shard %[[ARG2]] to %[[SHARDING_2]] annotate_for_users : tensor<4xf32>
// CHECK:       %[[DX:.+]], %[[DSCALE:.+]] = norm.rms_norm_backward %[[SHARDING_ANNOTATED]], %[[SHARDING_ANNOTATED_1]] rstd(%[[SHARDING_ANNOTATED_3]] : tensor<4xf32>) axes [1] epsilon none : tensor<4x?xf32>, tensor<4x?xf32> -> tensor<4x?xf32> dscale(tensor<?xf32>)
// CHECK:       %[[SHARDING_4:.+]] = shard.sharding @g split_axes = {{\[\[}}0]] sharded_dims_offsets = [0, 1, 4] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED_5:.+]] = shard.shard %[[DSCALE]] to %[[SHARDING_4]] : tensor<?xf32>
// CHECK:       return %[[SHARDING_ANNOTATED_5]] : tensor<?xf32>
func.func @from_the_result(%dy: tensor<4x?xf32>, %x: tensor<4x?xf32>, %a: tensor<4xf32>) -> tensor<?xf32> {
  %dx, %dg = norm.rms_norm_backward %dy, %x rstd(%a : tensor<4xf32>)
      axes [1] epsilon none
      : tensor<4x?xf32>, tensor<4x?xf32> -> tensor<4x?xf32> dscale(tensor<?xf32>)
  %s = shard.sharding @g split_axes = [[0]] sharded_dims_offsets = [0, 1, 4] : !shard.sharding
  %dgs = shard.shard %dg to %s : tensor<?xf32>
  return %dgs : tensor<?xf32>
}

// -----

shard.grid @g(shape = 2)

// CHECK-LABEL: func.func @scalars(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<4x8xf32>, %[[ARG1:.+]]: tensor<8xf32>, %[[ARG2:.+]]: tensor<8xf32>, %[[ARG3:.+]]: f32)
// CHECK-SAME:      -> tensor<8xf32>
// CHECK:       %[[SHARDING:.+]] = shard.sharding @g split_axes = {{\[\[}}0]] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED:.+]] = shard.shard %[[ARG0]] to %[[SHARDING]] : tensor<4x8xf32>
// CHECK:       %[[SHARDING_0:.+]] = shard.sharding @g split_axes = {{\[\[}}0]] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED_1:.+]] = shard.shard %[[SHARDING_ANNOTATED]] to %[[SHARDING_0]] annotate_for_users : tensor<4x8xf32>
// CHECK:       %[[SHARDING_2:.+]] = shard.sharding @g split_axes = {{\[\[}}]] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED_3:.+]] = shard.shard %[[ARG1]] to %[[SHARDING_2]] annotate_for_users : tensor<8xf32>
// CHECK:       %[[SHARDING_4:.+]] = shard.sharding @g split_axes = {{\[\[}}]] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED_5:.+]] = shard.shard %[[ARG2]] to %[[SHARDING_4]] annotate_for_users : tensor<8xf32>
// CHECK:       %[[Y:.+]], %[[UPDATED_MEAN:.+]], %[[UPDATED_VARIANCE:.+]] = norm.batch_norm_training %[[SHARDING_ANNOTATED_1]] running(%[[SHARDING_ANNOTATED_3]], %[[SHARDING_ANNOTATED_5]] : tensor<8xf32>, tensor<8xf32>) axes [0] epsilon none momentum{{ ?}}(%[[ARG3]] : f32) : tensor<4x8xf32> -> tensor<4x8xf32> running_mean(tensor<8xf32>) running_variance(tensor<8xf32>)
// CHECK:       %[[SHARDING_6:.+]] = shard.sharding @g split_axes = {{\[\[}}]] : !shard.sharding
// CHECK:       %[[SHARDING_ANNOTATED_7:.+]] = shard.shard %[[UPDATED_MEAN]] to %[[SHARDING_6]] : tensor<8xf32>
// CHECK:       return %[[SHARDING_ANNOTATED_7]] : tensor<8xf32>
func.func @scalars(%x: tensor<4x8xf32>, %rm: tensor<8xf32>, %rv: tensor<8xf32>, %a: f32) -> tensor<8xf32> {
  %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xf32>
  %y, %nm, %nv = norm.batch_norm_training %xs running(%rm, %rv : tensor<8xf32>, tensor<8xf32>)
      axes [0] epsilon none momentum(%a : f32)
      : tensor<4x8xf32> -> tensor<4x8xf32> running_mean(tensor<8xf32>) running_variance(tensor<8xf32>)
  return %nm : tensor<8xf32>
}
