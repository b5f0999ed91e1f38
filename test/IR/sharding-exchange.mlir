// RUN: norm-opt %s -split-input-file \
// RUN:   --pass-pipeline='builtin.module(func.func(sharding-propagation{traversal=forward-backward},shard-partition,canonicalize,cse))' \
// RUN:   | FileCheck %s

// A reduced axis is split: statistics are exchanged in f64, and n is that of the
// whole.

shard.grid @g(shape = 4)

// The batch is split: running values follow the whole of it.
// CHECK-LABEL: func.func @batch_norm_training(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<2x3x2x2xf32>, %[[ARG1:.+]]: tensor<3xf32>, %[[ARG2:.+]]: tensor<3xf32>, %[[ARG3:.+]]: tensor<3xf32>, %[[ARG4:.+]]: tensor<3xf32>)
// CHECK-SAME:      -> (tensor<2x3x2x2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
// CHECK:       %[[CST:.+]] = arith.constant dense<32> : tensor<3xi64>
// CHECK:       %[[COUNT:.+]], %[[MEAN:.+]], %[[M2:.+]] = norm.moments %[[ARG0]] axes [0, 2, 3] about mean : tensor<2x3x2x2xf32> -> count(tensor<3xi64>) mean(tensor<3xf64>) m2(tensor<3xf64>)
// CHECK:       %[[INSERTED_SLICE:.+]] = tensor.insert_slice %[[COUNT]] into %{{.*}}[0, 0] [1, 3] [1, 1] : tensor<3xi64> into tensor<1x3xi64>
// CHECK:       %[[INSERTED_SLICE_0:.+]] = tensor.insert_slice %[[MEAN]] into %{{.*}}[0, 0] [1, 3] [1, 1] : tensor<3xf64> into tensor<1x3xf64>
// CHECK:       %[[INSERTED_SLICE_1:.+]] = tensor.insert_slice %[[M2]] into %{{.*}}[0, 0] [1, 3] [1, 1] : tensor<3xf64> into tensor<1x3xf64>
// CHECK:       %[[ALL_GATHER:.+]] = shard.all_gather %[[INSERTED_SLICE]] on @g grid_axes = [0] gather_axis = 0 : tensor<1x3xi64> -> tensor<4x3xi64>
// CHECK:       %[[ALL_GATHER_2:.+]] = shard.all_gather %[[INSERTED_SLICE_0]] on @g grid_axes = [0] gather_axis = 0 : tensor<1x3xf64> -> tensor<4x3xf64>
// CHECK:       %[[ALL_GATHER_3:.+]] = shard.all_gather %[[INSERTED_SLICE_1]] on @g grid_axes = [0] gather_axis = 0 : tensor<1x3xf64> -> tensor<4x3xf64>
// CHECK:       %[[MERGED_MEAN:.+]], %[[MERGED_M2:.+]] = norm.combine_moments count(%[[ALL_GATHER]] : tensor<4x3xi64>) mean(%[[ALL_GATHER_2]] : tensor<4x3xf64>) m2(%[[ALL_GATHER_3]] : tensor<4x3xf64>) -> mean(tensor<3xf64>) m2(tensor<3xf64>)
// CHECK:       %[[RSTD:.+]] = norm.rstd %[[MERGED_M2]] count(%[[CST]] : tensor<3xi64>) epsilon inside_sqrt 1.000000e-05 compute f32 : tensor<3xf64> -> tensor<3xf32>
// CHECK:       %[[V2:.+]] = norm.update_running %[[ARG3]], %[[MERGED_MEAN]] count(%[[CST]] : tensor<3xi64>) statistic mean momentum 1.000000e-01 : tensor<3xf32>, tensor<3xf64> -> tensor<3xf32>
// CHECK:       %[[V3:.+]] = norm.update_running %[[ARG4]], %[[MERGED_M2]] count(%[[CST]] : tensor<3xi64>) statistic variance momentum 1.000000e-01 : tensor<3xf32>, tensor<3xf64> -> tensor<3xf32>
// CHECK:       %[[V4:.+]] = norm.normalize %[[ARG0]] mean(%[[MERGED_MEAN]] : tensor<3xf64>) rstd(%[[RSTD]] : tensor<3xf32>) scale(%[[ARG1]] : tensor<3xf32>) shift(%[[ARG2]] : tensor<3xf32>) axes [0, 2, 3] affine_axes [1] : tensor<2x3x2x2xf32> -> tensor<2x3x2x2xf32>
// CHECK:       %[[V6:.+]] = linalg.generic {{.*}} ins(%[[MERGED_MEAN]] : tensor<3xf64>)
// CHECK:         arith.truncf %{{.*}} : f64 to f32
// CHECK:       return %[[V4]], %[[V6]], %[[V2]], %[[V3]] : tensor<2x3x2x2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
func.func @batch_norm_training(%x: tensor<8x3x2x2xf32>, %g: tensor<3xf32>, %b: tensor<3xf32>, %rm: tensor<3xf32>, %rv: tensor<3xf32>)
    -> (tensor<8x3x2x2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<8x3x2x2xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<8x3x2x2xf32>
  %y, %m, %nm, %nv = norm.batch_norm_training %xu scale(%g : tensor<3xf32>) shift(%b : tensor<3xf32>) running(%rm, %rv : tensor<3xf32>, tensor<3xf32>)
      axes [0, 2, 3] epsilon inside_sqrt 1.0e-5 momentum 0.1
      : tensor<8x3x2x2xf32> -> tensor<8x3x2x2xf32> mean(tensor<3xf32>) running_mean(tensor<3xf32>) running_variance(tensor<3xf32>)
  return %y, %m, %nm, %nv : tensor<8x3x2x2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

shard.grid @g(shape = 2)

// Sums about zero are added up.
// CHECK-LABEL: func.func @rms_norm(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<4x4xbf16>, %[[ARG1:.+]]: tensor<4xf32>)
// CHECK-SAME:      -> (tensor<4x4xbf16>, tensor<4xf32>)
// CHECK:       %[[CST:.+]] = arith.constant dense<8> : tensor<4xi64>
// CHECK:       %[[M2:.+]] = norm.moments %[[ARG0]] axes [1] about zero : tensor<4x4xbf16> -> m2(tensor<4xf64>)
// CHECK:       %[[ALL_REDUCE:.+]] = shard.all_reduce %[[M2]] on @g grid_axes = [0] : tensor<4xf64> -> tensor<4xf64>
// CHECK:       %[[RSTD:.+]] = norm.rstd %[[ALL_REDUCE]] count(%[[CST]] : tensor<4xi64>) epsilon inside_sqrt 1.000000e-06 compute f32 : tensor<4xf64> -> tensor<4xf32>
// CHECK:       %[[V0:.+]] = norm.normalize %[[ARG0]] rstd(%[[RSTD]] : tensor<4xf32>) scale(%[[ARG1]] : tensor<4xf32>) axes [1] : tensor<4x4xbf16> -> tensor<4x4xbf16>
// CHECK:       return %[[V0]], %[[RSTD]] : tensor<4x4xbf16>, tensor<4xf32>
func.func @rms_norm(%x: tensor<4x8xbf16>, %g: tensor<8xf32>) -> (tensor<4x8xbf16>, tensor<4xf32>) {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xbf16>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8xbf16>
  %y, %r = norm.rms_norm %xu scale(%g : tensor<8xf32>) axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<4x8xbf16> -> tensor<4x8xbf16> rstd(tensor<4xf32>)
  return %y, %r : tensor<4x8xbf16>, tensor<4xf32>
}

// -----

shard.grid @g(shape = 2)

// The sum is a tensor of its own.
// CHECK-LABEL: func.func @layer_norm(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<4x4xf32>, %[[ARG1:.+]]: tensor<4x4xf32>, %[[ARG2:.+]]: tensor<4xf32>, %[[ARG3:.+]]: tensor<4xf32>)
// CHECK-SAME:      -> (tensor<4x4xf32>, tensor<4x4xf32>)
// CHECK:       %[[CST:.+]] = arith.constant dense<8> : tensor<4xi64>
// CHECK:       %[[V1:.+]] = linalg.generic {{.*}} ins(%[[ARG0]], %[[ARG1]] : tensor<4x4xf32>, tensor<4x4xf32>)
// CHECK:         arith.addf %{{.*}} : f32
// CHECK:       %[[COUNT:.+]], %[[MEAN:.+]], %[[M2:.+]] = norm.moments %[[V1]] axes [1] about mean : tensor<4x4xf32> -> count(tensor<4xi64>) mean(tensor<4xf64>) m2(tensor<4xf64>)
// CHECK:       %[[INSERTED_SLICE:.+]] = tensor.insert_slice %[[COUNT]] into %{{.*}}[0, 0] [1, 4] [1, 1] : tensor<4xi64> into tensor<1x4xi64>
// CHECK:       %[[INSERTED_SLICE_0:.+]] = tensor.insert_slice %[[MEAN]] into %{{.*}}[0, 0] [1, 4] [1, 1] : tensor<4xf64> into tensor<1x4xf64>
// CHECK:       %[[INSERTED_SLICE_1:.+]] = tensor.insert_slice %[[M2]] into %{{.*}}[0, 0] [1, 4] [1, 1] : tensor<4xf64> into tensor<1x4xf64>
// CHECK:       %[[ALL_GATHER:.+]] = shard.all_gather %[[INSERTED_SLICE]] on @g grid_axes = [0] gather_axis = 0 : tensor<1x4xi64> -> tensor<2x4xi64>
// CHECK:       %[[ALL_GATHER_2:.+]] = shard.all_gather %[[INSERTED_SLICE_0]] on @g grid_axes = [0] gather_axis = 0 : tensor<1x4xf64> -> tensor<2x4xf64>
// CHECK:       %[[ALL_GATHER_3:.+]] = shard.all_gather %[[INSERTED_SLICE_1]] on @g grid_axes = [0] gather_axis = 0 : tensor<1x4xf64> -> tensor<2x4xf64>
// CHECK:       %[[MERGED_MEAN:.+]], %[[MERGED_M2:.+]] = norm.combine_moments count(%[[ALL_GATHER]] : tensor<2x4xi64>) mean(%[[ALL_GATHER_2]] : tensor<2x4xf64>) m2(%[[ALL_GATHER_3]] : tensor<2x4xf64>) -> mean(tensor<4xf64>) m2(tensor<4xf64>)
// CHECK:       %[[RSTD:.+]] = norm.rstd %[[MERGED_M2]] count(%[[CST]] : tensor<4xi64>) epsilon inside_sqrt 1.000000e-06 compute f32 : tensor<4xf64> -> tensor<4xf32>
// CHECK:       %[[V4:.+]] = norm.normalize %[[V1]] mean(%[[MERGED_MEAN]] : tensor<4xf64>) rstd(%[[RSTD]] : tensor<4xf32>) scale(%[[ARG2]] : tensor<4xf32>) shift(%[[ARG3]] : tensor<4xf32>) axes [1] : tensor<4x4xf32> -> tensor<4x4xf32>
// CHECK:       return %[[V4]], %[[V1]] : tensor<4x4xf32>, tensor<4x4xf32>
func.func @layer_norm(%x: tensor<4x8xf32>, %r: tensor<4x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8xf32>
  %y, %sum = norm.layer_norm %xu residual(%r : tensor<4x8xf32>) scale(%g : tensor<8xf32>) shift(%b : tensor<8xf32>)
      axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<4x8xf32> -> tensor<4x8xf32> sum(tensor<4x8xf32>)
  return %y, %sum : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

shard.grid @g(shape = 2)

// CHECK-LABEL: func.func @l2_norm_dynamic(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<4x?xf32>)
// CHECK-SAME:      -> tensor<4x?xf32>
// CHECK:       %[[M2:.+]] = norm.moments %[[ARG0]] axes [1] about zero : tensor<4x?xf32> -> m2(tensor<4xf64>)
// CHECK:       %[[ALL_REDUCE:.+]] = shard.all_reduce %[[M2]] on @g grid_axes = [0] : tensor<4xf64> -> tensor<4xf64>
// CHECK:       %[[RSTD:.+]] = norm.rstd %[[ALL_REDUCE]] epsilon max_outside 1.000000e-06 compute f32 : tensor<4xf64> -> tensor<4xf32>
// CHECK:       %[[V0:.+]] = norm.normalize %[[ARG0]] rstd(%[[RSTD]] : tensor<4xf32>) axes [1] : tensor<4x?xf32> -> tensor<4x?xf32>
// CHECK:       return %[[V0]] : tensor<4x?xf32>
func.func @l2_norm_dynamic(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x?xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x?xf32>
  %y = norm.l2_norm %xu axes [1] epsilon max_outside 1.0e-6 : tensor<4x?xf32> -> tensor<4x?xf32>
  return %y : tensor<4x?xf32>
}

// -----

shard.grid @g(shape = 2)

// n is not known before the counts are added.
// CHECK-LABEL: func.func @rms_dynamic(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<?x?xf32>)
// CHECK-SAME:      -> tensor<?x?xf32>
// CHECK:       %[[COUNT:.+]], %[[M2:.+]] = norm.moments %[[ARG0]] axes [1] about zero : tensor<?x?xf32> -> count(tensor<?xi64>) m2(tensor<?xf64>)
// CHECK:       %[[ALL_REDUCE:.+]] = shard.all_reduce %[[M2]] on @g grid_axes = [0] : tensor<?xf64> -> tensor<?xf64>
// CHECK:       %[[ALL_REDUCE_0:.+]] = shard.all_reduce %[[COUNT]] on @g grid_axes = [0] : tensor<?xi64> -> tensor<?xi64>
// CHECK:       %[[RSTD:.+]] = norm.rstd %[[ALL_REDUCE]] count(%[[ALL_REDUCE_0]] : tensor<?xi64>) epsilon inside_sqrt 1.000000e-06 compute f32 : tensor<?xf64> -> tensor<?xf32>
// CHECK:       %[[V0:.+]] = norm.normalize %[[ARG0]] rstd(%[[RSTD]] : tensor<?xf32>) axes [1] : tensor<?x?xf32> -> tensor<?x?xf32>
// CHECK:       return %[[V0]] : tensor<?x?xf32>
func.func @rms_dynamic(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<?x?xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<?x?xf32>
  %y = norm.rms_norm %xu axes [1] epsilon inside_sqrt 1.0e-6 : tensor<?x?xf32> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

shard.grid @g(shape = 2)

// CHECK-LABEL: func.func @ln_dynamic(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<?x?xf32>)
// CHECK-SAME:      -> tensor<?x?xf32>
// CHECK:       %[[COUNT:.+]], %[[MEAN:.+]], %[[M2:.+]] = norm.moments %[[ARG0]] axes [1] about mean : tensor<?x?xf32> -> count(tensor<?xi64>) mean(tensor<?xf64>) m2(tensor<?xf64>)
// CHECK:       %[[INSERTED_SLICE:.+]] = tensor.insert_slice %[[COUNT]] into %{{.*}}[0, 0] [1, %{{.*}}] [1, 1] : tensor<?xi64> into tensor<1x?xi64>
// CHECK:       %[[INSERTED_SLICE_0:.+]] = tensor.insert_slice %[[MEAN]] into %{{.*}}[0, 0] [1, %{{.*}}] [1, 1] : tensor<?xf64> into tensor<1x?xf64>
// CHECK:       %[[INSERTED_SLICE_1:.+]] = tensor.insert_slice %[[M2]] into %{{.*}}[0, 0] [1, %{{.*}}] [1, 1] : tensor<?xf64> into tensor<1x?xf64>
// CHECK:       %[[ALL_GATHER:.+]] = shard.all_gather %[[INSERTED_SLICE]] on @g grid_axes = [0] gather_axis = 0 : tensor<1x?xi64> -> tensor<2x?xi64>
// CHECK:       %[[ALL_GATHER_2:.+]] = shard.all_gather %[[INSERTED_SLICE_0]] on @g grid_axes = [0] gather_axis = 0 : tensor<1x?xf64> -> tensor<2x?xf64>
// CHECK:       %[[ALL_GATHER_3:.+]] = shard.all_gather %[[INSERTED_SLICE_1]] on @g grid_axes = [0] gather_axis = 0 : tensor<1x?xf64> -> tensor<2x?xf64>
// CHECK:       %[[MERGED_COUNT:.+]], %[[MERGED_MEAN:.+]], %[[MERGED_M2:.+]] = norm.combine_moments count(%[[ALL_GATHER]] : tensor<2x?xi64>) mean(%[[ALL_GATHER_2]] : tensor<2x?xf64>) m2(%[[ALL_GATHER_3]] : tensor<2x?xf64>) -> count(tensor<?xi64>) mean(tensor<?xf64>) m2(tensor<?xf64>)
// CHECK:       %[[RSTD:.+]] = norm.rstd %[[MERGED_M2]] count(%[[MERGED_COUNT]] : tensor<?xi64>) epsilon inside_sqrt 1.000000e-06 compute f32 : tensor<?xf64> -> tensor<?xf32>
// CHECK:       %[[V2:.+]] = norm.normalize %[[ARG0]] mean(%[[MERGED_MEAN]] : tensor<?xf64>) rstd(%[[RSTD]] : tensor<?xf32>) axes [1] : tensor<?x?xf32> -> tensor<?x?xf32>
// CHECK:       return %[[V2]] : tensor<?x?xf32>
func.func @ln_dynamic(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<?x?xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<?x?xf32>
  %y = norm.layer_norm %xu axes [1] epsilon inside_sqrt 1.0e-6 : tensor<?x?xf32> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

shard.grid @g(shape = 3)

// Uneven shares, one of them empty; n is 8 whatever a process has.
// CHECK-LABEL: func.func @ragged(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<3x?xf32>, %[[ARG1:.+]]: tensor<?xf32>)
// CHECK-SAME:      -> (tensor<3x?xf32>, tensor<3xf32>)
// CHECK:       %[[CST:.+]] = arith.constant dense<8> : tensor<3xi64>
// CHECK:       %[[M2:.+]] = norm.moments %[[ARG0]] axes [1] about zero : tensor<3x?xf32> -> m2(tensor<3xf64>)
// CHECK:       %[[ALL_REDUCE:.+]] = shard.all_reduce %[[M2]] on @g grid_axes = [0] : tensor<3xf64> -> tensor<3xf64>
// CHECK:       %[[RSTD:.+]] = norm.rstd %[[ALL_REDUCE]] count(%[[CST]] : tensor<3xi64>) epsilon inside_sqrt 1.000000e-06 compute f32 : tensor<3xf64> -> tensor<3xf32>
// CHECK:       %[[V0:.+]] = norm.normalize %[[ARG0]] rstd(%[[RSTD]] : tensor<3xf32>) scale(%[[ARG1]] : tensor<?xf32>) axes [1] : tensor<3x?xf32> -> tensor<3x?xf32>
// CHECK:       return %[[V0]], %[[RSTD]] : tensor<3x?xf32>, tensor<3xf32>
func.func @ragged(%x: tensor<3x8xf32>, %g: tensor<8xf32>) -> (tensor<3x8xf32>, tensor<3xf32>) {
  %s = shard.sharding @g split_axes = [[], [0]] sharded_dims_offsets = [0, 5, 5, 8] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<3x8xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<3x8xf32>
  %y, %r = norm.rms_norm %xu scale(%g : tensor<8xf32>)
      axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<3x8xf32> -> tensor<3x8xf32> rstd(tensor<3xf32>)
  return %y, %r : tensor<3x8xf32>, tensor<3xf32>
}

// -----

shard.grid @g(shape = 2)

// CHECK-LABEL: func.func @unused(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<4x4xf32>, %[[ARG1:.+]]: tensor<4xf32>)
// CHECK-SAME:      -> tensor<4x4xf32>
// CHECK:       %[[CST:.+]] = arith.constant dense<8> : tensor<4xi64>
// CHECK:       %[[COUNT:.+]], %[[MEAN:.+]], %[[M2:.+]] = norm.moments %[[ARG0]] axes [1] about mean : tensor<4x4xf32> -> count(tensor<4xi64>) mean(tensor<4xf64>) m2(tensor<4xf64>)
// CHECK:       %[[INSERTED_SLICE:.+]] = tensor.insert_slice %[[COUNT]] into %{{.*}}[0, 0] [1, 4] [1, 1] : tensor<4xi64> into tensor<1x4xi64>
// CHECK:       %[[INSERTED_SLICE_0:.+]] = tensor.insert_slice %[[MEAN]] into %{{.*}}[0, 0] [1, 4] [1, 1] : tensor<4xf64> into tensor<1x4xf64>
// CHECK:       %[[INSERTED_SLICE_1:.+]] = tensor.insert_slice %[[M2]] into %{{.*}}[0, 0] [1, 4] [1, 1] : tensor<4xf64> into tensor<1x4xf64>
// CHECK:       %[[ALL_GATHER:.+]] = shard.all_gather %[[INSERTED_SLICE]] on @g grid_axes = [0] gather_axis = 0 : tensor<1x4xi64> -> tensor<2x4xi64>
// CHECK:       %[[ALL_GATHER_2:.+]] = shard.all_gather %[[INSERTED_SLICE_0]] on @g grid_axes = [0] gather_axis = 0 : tensor<1x4xf64> -> tensor<2x4xf64>
// CHECK:       %[[ALL_GATHER_3:.+]] = shard.all_gather %[[INSERTED_SLICE_1]] on @g grid_axes = [0] gather_axis = 0 : tensor<1x4xf64> -> tensor<2x4xf64>
// CHECK:       %[[MERGED_MEAN:.+]], %[[MERGED_M2:.+]] = norm.combine_moments count(%[[ALL_GATHER]] : tensor<2x4xi64>) mean(%[[ALL_GATHER_2]] : tensor<2x4xf64>) m2(%[[ALL_GATHER_3]] : tensor<2x4xf64>) -> mean(tensor<4xf64>) m2(tensor<4xf64>)
// CHECK:       %[[RSTD:.+]] = norm.rstd %[[MERGED_M2]] count(%[[CST]] : tensor<4xi64>) epsilon inside_sqrt 1.000000e-06 compute f32 : tensor<4xf64> -> tensor<4xf32>
// CHECK:       %[[V2:.+]] = norm.normalize %[[ARG0]] mean(%[[MERGED_MEAN]] : tensor<4xf64>) rstd(%[[RSTD]] : tensor<4xf32>) scale(%[[ARG1]] : tensor<4xf32>) axes [1] : tensor<4x4xf32> -> tensor<4x4xf32>
// CHECK:       return %[[V2]] : tensor<4x4xf32>
func.func @unused(%x: tensor<4x8xf32>, %g: tensor<8xf32>) -> tensor<4x8xf32> {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8xf32>
  %y, %m, %r = norm.layer_norm %xu scale(%g : tensor<8xf32>)
      axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<4x8xf32> -> tensor<4x8xf32> mean(tensor<4xf32>) rstd(tensor<4xf32>)
  return %y : tensor<4x8xf32>
}

// -----

shard.grid @g(shape = 2x2)

// Rows over grid axis 0, the hidden axis over grid axis 1.
// CHECK-LABEL: func.func @two_axes(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<2x4xf32>, %[[ARG1:.+]]: tensor<4xf32>)
// CHECK-SAME:      -> (tensor<2x4xf32>, tensor<2xf32>)
// CHECK:       %[[CST:.+]] = arith.constant dense<8> : tensor<2xi64>
// CHECK:       %[[COUNT:.+]], %[[MEAN:.+]], %[[M2:.+]] = norm.moments %[[ARG0]] axes [1] about mean : tensor<2x4xf32> -> count(tensor<2xi64>) mean(tensor<2xf64>) m2(tensor<2xf64>)
// CHECK:       %[[INSERTED_SLICE:.+]] = tensor.insert_slice %[[COUNT]] into %{{.*}}[0, 0] [1, 2] [1, 1] : tensor<2xi64> into tensor<1x2xi64>
// CHECK:       %[[INSERTED_SLICE_0:.+]] = tensor.insert_slice %[[MEAN]] into %{{.*}}[0, 0] [1, 2] [1, 1] : tensor<2xf64> into tensor<1x2xf64>
// CHECK:       %[[INSERTED_SLICE_1:.+]] = tensor.insert_slice %[[M2]] into %{{.*}}[0, 0] [1, 2] [1, 1] : tensor<2xf64> into tensor<1x2xf64>
// CHECK:       %[[ALL_GATHER:.+]] = shard.all_gather %[[INSERTED_SLICE]] on @g grid_axes = [1] gather_axis = 0 : tensor<1x2xi64> -> tensor<2x2xi64>
// CHECK:       %[[ALL_GATHER_2:.+]] = shard.all_gather %[[INSERTED_SLICE_0]] on @g grid_axes = [1] gather_axis = 0 : tensor<1x2xf64> -> tensor<2x2xf64>
// CHECK:       %[[ALL_GATHER_3:.+]] = shard.all_gather %[[INSERTED_SLICE_1]] on @g grid_axes = [1] gather_axis = 0 : tensor<1x2xf64> -> tensor<2x2xf64>
// CHECK:       %[[MERGED_MEAN:.+]], %[[MERGED_M2:.+]] = norm.combine_moments count(%[[ALL_GATHER]] : tensor<2x2xi64>) mean(%[[ALL_GATHER_2]] : tensor<2x2xf64>) m2(%[[ALL_GATHER_3]] : tensor<2x2xf64>) -> mean(tensor<2xf64>) m2(tensor<2xf64>)
// CHECK:       %[[RSTD:.+]] = norm.rstd %[[MERGED_M2]] count(%[[CST]] : tensor<2xi64>) epsilon inside_sqrt 1.000000e-06 compute f32 : tensor<2xf64> -> tensor<2xf32>
// CHECK:       %[[V2:.+]] = norm.normalize %[[ARG0]] mean(%[[MERGED_MEAN]] : tensor<2xf64>) rstd(%[[RSTD]] : tensor<2xf32>) scale(%[[ARG1]] : tensor<4xf32>) axes [1] : tensor<2x4xf32> -> tensor<2x4xf32>
// CHECK:       %[[V4:.+]] = linalg.generic {{.*}} ins(%[[MERGED_MEAN]] : tensor<2xf64>)
// CHECK:         arith.truncf %{{.*}} : f64 to f32
// CHECK:       return %[[V2]], %[[V4]] : tensor<2x4xf32>, tensor<2xf32>
func.func @two_axes(%x: tensor<4x8xf32>, %g: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %s = shard.sharding @g split_axes = [[0], [1]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8xf32>
  %y, %m = norm.layer_norm %xu scale(%g : tensor<8xf32>)
      axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<4x8xf32> -> tensor<4x8xf32> mean(tensor<4xf32>)
  return %y, %m : tensor<4x8xf32>, tensor<4xf32>
}

// -----

shard.grid @g(shape = 2x3)

// One statistic in all, on six processes.
// CHECK-LABEL: func.func @whole(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<2x2xf32>)
// CHECK-SAME:      -> (tensor<2x2xf32>, tensor<f32>)
// CHECK:       %[[CST:.+]] = arith.constant dense<24> : tensor<i64>
// CHECK:       %[[COUNT:.+]], %[[MEAN:.+]], %[[M2:.+]] = norm.moments %[[ARG0]] axes [0, 1] about mean : tensor<2x2xf32> -> count(tensor<i64>) mean(tensor<f64>) m2(tensor<f64>)
// CHECK:       %[[INSERTED_SLICE:.+]] = tensor.insert_slice %[[COUNT]] into %{{.*}}[0] [1] [1] : tensor<i64> into tensor<1xi64>
// CHECK:       %[[INSERTED_SLICE_0:.+]] = tensor.insert_slice %[[MEAN]] into %{{.*}}[0] [1] [1] : tensor<f64> into tensor<1xf64>
// CHECK:       %[[INSERTED_SLICE_1:.+]] = tensor.insert_slice %[[M2]] into %{{.*}}[0] [1] [1] : tensor<f64> into tensor<1xf64>
// CHECK:       %[[ALL_GATHER:.+]] = shard.all_gather %[[INSERTED_SLICE]] on @g grid_axes = [0, 1] gather_axis = 0 : tensor<1xi64> -> tensor<6xi64>
// CHECK:       %[[ALL_GATHER_2:.+]] = shard.all_gather %[[INSERTED_SLICE_0]] on @g grid_axes = [0, 1] gather_axis = 0 : tensor<1xf64> -> tensor<6xf64>
// CHECK:       %[[ALL_GATHER_3:.+]] = shard.all_gather %[[INSERTED_SLICE_1]] on @g grid_axes = [0, 1] gather_axis = 0 : tensor<1xf64> -> tensor<6xf64>
// CHECK:       %[[MERGED_MEAN:.+]], %[[MERGED_M2:.+]] = norm.combine_moments count(%[[ALL_GATHER]] : tensor<6xi64>) mean(%[[ALL_GATHER_2]] : tensor<6xf64>) m2(%[[ALL_GATHER_3]] : tensor<6xf64>) -> mean(tensor<f64>) m2(tensor<f64>)
// CHECK:       %[[RSTD:.+]] = norm.rstd %[[MERGED_M2]] count(%[[CST]] : tensor<i64>) epsilon inside_sqrt 1.000000e-06 compute f32 : tensor<f64> -> tensor<f32>
// CHECK:       %[[V2:.+]] = norm.normalize %[[ARG0]] mean(%[[MERGED_MEAN]] : tensor<f64>) rstd(%[[RSTD]] : tensor<f32>) axes [0, 1] : tensor<2x2xf32> -> tensor<2x2xf32>
// CHECK:       %[[V4:.+]] = linalg.generic {{.*}} ins(%[[MERGED_MEAN]] : tensor<f64>)
// CHECK:         arith.truncf %{{.*}} : f64 to f32
// CHECK:       return %[[V2]], %[[V4]] : tensor<2x2xf32>, tensor<f32>
func.func @whole(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<f32>) {
  %s = shard.sharding @g split_axes = [[0], [1]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x6xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x6xf32>
  %y, %m = norm.layer_norm %xu
      axes [0, 1] epsilon inside_sqrt 1.0e-6
      : tensor<4x6xf32> -> tensor<4x6xf32> mean(tensor<f32>)
  return %y, %m : tensor<4x6xf32>, tensor<f32>
}

// -----

shard.grid @g(shape = 2x2)

// Whole groups over grid axis 0, which is not asked; rows of pixels over axis 1.
// CHECK-LABEL: func.func @group_norm_rows_of_pixels(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<4x4x3x6xf32>, %[[ARG1:.+]]: tensor<4xf32>)
// CHECK-SAME:      -> (tensor<4x4x3x6xf32>, tensor<4x2xf32>)
// CHECK:       %[[CST:.+]] = arith.constant dense<72> : tensor<4x2xi64>
// CHECK:       %[[EXPANDED:.+]] = tensor.expand_shape %[[ARG0]] {{\[\[}}0], [1, 2], [3], [4]] output_shape [4, 2, 2, 3, 6] : tensor<4x4x3x6xf32> into tensor<4x2x2x3x6xf32>
// CHECK:       %[[EXPANDED_0:.+]] = tensor.expand_shape %[[ARG1]] {{\[\[}}0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
// CHECK:       %[[COUNT:.+]], %[[MEAN:.+]], %[[M2:.+]] = norm.moments %[[EXPANDED]] axes [2, 3, 4] about mean : tensor<4x2x2x3x6xf32> -> count(tensor<4x2xi64>) mean(tensor<4x2xf64>) m2(tensor<4x2xf64>)
// CHECK:       %[[INSERTED_SLICE:.+]] = tensor.insert_slice %[[COUNT]] into %{{.*}}[0, 0, 0] [1, 4, 2] [1, 1, 1] : tensor<4x2xi64> into tensor<1x4x2xi64>
// CHECK:       %[[INSERTED_SLICE_1:.+]] = tensor.insert_slice %[[MEAN]] into %{{.*}}[0, 0, 0] [1, 4, 2] [1, 1, 1] : tensor<4x2xf64> into tensor<1x4x2xf64>
// CHECK:       %[[INSERTED_SLICE_2:.+]] = tensor.insert_slice %[[M2]] into %{{.*}}[0, 0, 0] [1, 4, 2] [1, 1, 1] : tensor<4x2xf64> into tensor<1x4x2xf64>
// CHECK:       %[[ALL_GATHER:.+]] = shard.all_gather %[[INSERTED_SLICE]] on @g grid_axes = [1] gather_axis = 0 : tensor<1x4x2xi64> -> tensor<2x4x2xi64>
// CHECK:       %[[ALL_GATHER_3:.+]] = shard.all_gather %[[INSERTED_SLICE_1]] on @g grid_axes = [1] gather_axis = 0 : tensor<1x4x2xf64> -> tensor<2x4x2xf64>
// CHECK:       %[[ALL_GATHER_4:.+]] = shard.all_gather %[[INSERTED_SLICE_2]] on @g grid_axes = [1] gather_axis = 0 : tensor<1x4x2xf64> -> tensor<2x4x2xf64>
// CHECK:       %[[MERGED_MEAN:.+]], %[[MERGED_M2:.+]] = norm.combine_moments count(%[[ALL_GATHER]] : tensor<2x4x2xi64>) mean(%[[ALL_GATHER_3]] : tensor<2x4x2xf64>) m2(%[[ALL_GATHER_4]] : tensor<2x4x2xf64>) -> mean(tensor<4x2xf64>) m2(tensor<4x2xf64>)
// CHECK:       %[[RSTD:.+]] = norm.rstd %[[MERGED_M2]] count(%[[CST]] : tensor<4x2xi64>) epsilon inside_sqrt 1.000000e-06 compute f32 : tensor<4x2xf64> -> tensor<4x2xf32>
// CHECK:       %[[V2:.+]] = norm.normalize %[[EXPANDED]] mean(%[[MERGED_MEAN]] : tensor<4x2xf64>) rstd(%[[RSTD]] : tensor<4x2xf32>) scale(%[[EXPANDED_0]] : tensor<2x2xf32>) axes [2, 3, 4] affine_axes [1, 2] : tensor<4x2x2x3x6xf32> -> tensor<4x2x2x3x6xf32>
// CHECK:       %[[V4:.+]] = linalg.generic {{.*}} ins(%[[MERGED_MEAN]] : tensor<4x2xf64>)
// CHECK:         arith.truncf %{{.*}} : f64 to f32
// CHECK:       %[[COLLAPSED:.+]] = tensor.collapse_shape %[[V2]] {{\[\[}}0], [1, 2], [3], [4]] : tensor<4x2x2x3x6xf32> into tensor<4x4x3x6xf32>
// CHECK:       return %[[COLLAPSED]], %[[V4]] : tensor<4x4x3x6xf32>, tensor<4x2xf32>
func.func @group_norm_rows_of_pixels(%x: tensor<4x8x6x6xf32>, %g: tensor<8xf32>)
    -> (tensor<4x8x6x6xf32>, tensor<4x4xf32>) {
  %s = shard.sharding @g split_axes = [[], [0], [1]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8x6x6xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8x6x6xf32>
  %y, %m = norm.group_norm %xu scale(%g : tensor<8xf32>)
      groups 4 channel_axis 1 axes [1, 2, 3] epsilon inside_sqrt 1.0e-6
      : tensor<4x8x6x6xf32> -> tensor<4x8x6x6xf32> mean(tensor<4x4xf32>)
  return %y, %m : tensor<4x8x6x6xf32>, tensor<4x4xf32>
}
