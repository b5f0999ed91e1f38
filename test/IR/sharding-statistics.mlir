// RUN: norm-opt %s -split-input-file \
// RUN:   --pass-pipeline='builtin.module(func.func(sharding-propagation{traversal=forward-backward},shard-partition,canonicalize,cse))' \
// RUN:   | FileCheck %s

// Ops of the algebra along what they sum.

shard.grid @g(shape = 2)

// CHECK-LABEL: func.func @moments(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<4x4xf32>, %[[ARG1:.+]]: tensor<4x4xi1>)
// CHECK-SAME:      -> (tensor<4xi64>, tensor<4xf32>, tensor<4xf64>)
// CHECK:       %[[COUNT:.+]], %[[MEAN:.+]], %[[M2:.+]] = norm.moments %[[ARG0]] mask(%[[ARG1]] : tensor<4x4xi1>) axes [1] about mean : tensor<4x4xf32> -> count(tensor<4xi64>) mean(tensor<4xf64>) m2(tensor<4xf64>)
// CHECK:       %[[EXPANDED:.+]] = tensor.expand_shape %[[COUNT]] {{\[\[}}0, 1]] output_shape [1, 4] : tensor<4xi64> into tensor<1x4xi64>
// CHECK:       %[[ALL_GATHER:.+]] = shard.all_gather %[[EXPANDED]] on @g grid_axes = [0] gather_axis = 0 : tensor<1x4xi64> -> tensor<2x4xi64>
// CHECK:       %[[EXPANDED_0:.+]] = tensor.expand_shape %[[MEAN]] {{\[\[}}0, 1]] output_shape [1, 4] : tensor<4xf64> into tensor<1x4xf64>
// CHECK:       %[[ALL_GATHER_1:.+]] = shard.all_gather %[[EXPANDED_0]] on @g grid_axes = [0] gather_axis = 0 : tensor<1x4xf64> -> tensor<2x4xf64>
// CHECK:       %[[EXPANDED_2:.+]] = tensor.expand_shape %[[M2]] {{\[\[}}0, 1]] output_shape [1, 4] : tensor<4xf64> into tensor<1x4xf64>
// CHECK:       %[[ALL_GATHER_3:.+]] = shard.all_gather %[[EXPANDED_2]] on @g grid_axes = [0] gather_axis = 0 : tensor<1x4xf64> -> tensor<2x4xf64>
// CHECK:       %[[MERGED_COUNT:.+]], %[[MERGED_MEAN:.+]], %[[MERGED_M2:.+]] = norm.combine_moments count(%[[ALL_GATHER]] : tensor<2x4xi64>) mean(%[[ALL_GATHER_1]] : tensor<2x4xf64>) m2(%[[ALL_GATHER_3]] : tensor<2x4xf64>) -> count(tensor<4xi64>) mean(tensor<4xf64>) m2(tensor<4xf64>)
// CHECK:       %[[V1:.+]] = linalg.generic {{.*}} ins(%[[MERGED_MEAN]] : tensor<4xf64>)
// CHECK:         arith.truncf %{{.*}} : f64 to f32
// CHECK:       return %[[MERGED_COUNT]], %[[V1]], %[[MERGED_M2]] : tensor<4xi64>, tensor<4xf32>, tensor<4xf64>
func.func @moments(%x: tensor<4x8xf32>, %k: tensor<4x8xi1>) -> (tensor<4xi64>, tensor<4xf32>, tensor<4xf64>) {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8xf32>
  %n, %m, %q = norm.moments %xu mask(%k : tensor<4x8xi1>)
      axes [1] about mean
      : tensor<4x8xf32> -> count(tensor<4xi64>) mean(tensor<4xf32>) m2(tensor<4xf64>)
  return %n, %m, %q : tensor<4xi64>, tensor<4xf32>, tensor<4xf64>
}

// -----

shard.grid @g(shape = 2)

// CHECK-LABEL: func.func @squares(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<4x4xf32>)
// CHECK-SAME:      -> tensor<4xf32>
// CHECK:       %[[M2:.+]] = norm.moments %[[ARG0]] axes [1] about zero : tensor<4x4xf32> -> m2(tensor<4xf64>)
// CHECK:       %[[ALL_REDUCE:.+]] = shard.all_reduce %[[M2]] on @g grid_axes = [0] : tensor<4xf64> -> tensor<4xf64>
// CHECK:       %[[V1:.+]] = linalg.generic {{.*}} ins(%[[ALL_REDUCE]] : tensor<4xf64>)
// CHECK:         arith.truncf %{{.*}} : f64 to f32
// CHECK:       return %[[V1]] : tensor<4xf32>
func.func @squares(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8xf32>
  %q = norm.moments %xu axes [1] about zero : tensor<4x8xf32> -> m2(tensor<4xf32>)
  return %q : tensor<4xf32>
}

// -----

shard.grid @g(shape = 2)

// CHECK-LABEL: func.func @combine(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<3x3xi64>, %[[ARG1:.+]]: tensor<3x3xf64>, %[[ARG2:.+]]: tensor<3x3xf64>)
// CHECK-SAME:      -> (tensor<3xi64>, tensor<3xf64>)
// CHECK:       %[[MERGED_COUNT:.+]], %[[MERGED_MEAN:.+]], %[[MERGED_M2:.+]] = norm.combine_moments count(%[[ARG0]] : tensor<3x3xi64>) mean(%[[ARG1]] : tensor<3x3xf64>) m2(%[[ARG2]] : tensor<3x3xf64>) -> count(tensor<3xi64>) mean(tensor<3xf64>) m2(tensor<3xf64>)
// CHECK:       %[[EXPANDED:.+]] = tensor.expand_shape %[[MERGED_COUNT]] {{\[\[}}0, 1]] output_shape [1, 3] : tensor<3xi64> into tensor<1x3xi64>
// CHECK:       %[[ALL_GATHER:.+]] = shard.all_gather %[[EXPANDED]] on @g grid_axes = [0] gather_axis = 0 : tensor<1x3xi64> -> tensor<2x3xi64>
// CHECK:       %[[EXPANDED_0:.+]] = tensor.expand_shape %[[MERGED_MEAN]] {{\[\[}}0, 1]] output_shape [1, 3] : tensor<3xf64> into tensor<1x3xf64>
// CHECK:       %[[ALL_GATHER_1:.+]] = shard.all_gather %[[EXPANDED_0]] on @g grid_axes = [0] gather_axis = 0 : tensor<1x3xf64> -> tensor<2x3xf64>
// CHECK:       %[[EXPANDED_2:.+]] = tensor.expand_shape %[[MERGED_M2]] {{\[\[}}0, 1]] output_shape [1, 3] : tensor<3xf64> into tensor<1x3xf64>
// CHECK:       %[[ALL_GATHER_3:.+]] = shard.all_gather %[[EXPANDED_2]] on @g grid_axes = [0] gather_axis = 0 : tensor<1x3xf64> -> tensor<2x3xf64>
// CHECK:       %[[MERGED_COUNT_4:.+]], %[[MERGED_M2_6:.+]] = norm.combine_moments count(%[[ALL_GATHER]] : tensor<2x3xi64>) mean(%[[ALL_GATHER_1]] : tensor<2x3xf64>) m2(%[[ALL_GATHER_3]] : tensor<2x3xf64>) -> count(tensor<3xi64>) m2(tensor<3xf64>)
// CHECK:       return %[[MERGED_COUNT_4]], %[[MERGED_M2_6]] : tensor<3xi64>, tensor<3xf64>
func.func @combine(%n: tensor<6x3xi64>, %m: tensor<6x3xf64>, %q: tensor<6x3xf64>)
    -> (tensor<3xi64>, tensor<3xf64>) {
  %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %qs = shard.shard %q to %s : tensor<6x3xf64>
  %qu = shard.shard %qs to %s annotate_for_users : tensor<6x3xf64>
  %cn, %cq = norm.combine_moments count(%n : tensor<6x3xi64>) mean(%m : tensor<6x3xf64>) m2(%qu : tensor<6x3xf64>)
      -> count(tensor<3xi64>) m2(tensor<3xf64>)
  return %cn, %cq : tensor<3xi64>, tensor<3xf64>
}

// -----

shard.grid @g(shape = 2)

// CHECK-LABEL: func.func @backward_moments(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<4x4xf32>, %[[ARG1:.+]]: tensor<4x4xf32>, %[[ARG2:.+]]: tensor<4xf32>)
// CHECK-SAME:      -> (tensor<4xf32>, tensor<4xbf16>)
// CHECK:       %[[SUM_GX:.+]], %[[DSCALE:.+]] = norm.backward_moments %[[ARG0]], %[[ARG1]] rstd(%[[ARG2]] : tensor<4xf32>) axes [1] : tensor<4x4xf32>, tensor<4x4xf32> -> sum_gx(tensor<4xf64>) dscale(tensor<4xbf16>)
// CHECK:       %[[ALL_REDUCE:.+]] = shard.all_reduce %[[SUM_GX]] on @g grid_axes = [0] : tensor<4xf64> -> tensor<4xf64>
// CHECK:       %[[V1:.+]] = linalg.generic {{.*}} ins(%[[ALL_REDUCE]] : tensor<4xf64>)
// CHECK:         arith.truncf %{{.*}} : f64 to f32
// CHECK:       return %[[V1]], %[[DSCALE]] : tensor<4xf32>, tensor<4xbf16>
func.func @backward_moments(%dy: tensor<4x8xf32>, %x: tensor<4x8xf32>, %r: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<8xbf16>) {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8xf32>
  %sgx, %dg = norm.backward_moments %dy, %xu rstd(%r : tensor<4xf32>)
      axes [1]
      : tensor<4x8xf32>, tensor<4x8xf32> -> sum_gx(tensor<4xf32>) dscale(tensor<8xbf16>)
  return %sgx, %dg : tensor<4xf32>, tensor<8xbf16>
}
