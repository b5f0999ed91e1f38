// RUN: norm-opt %s -split-input-file \
// RUN:   --pass-pipeline='builtin.module(func.func(sharding-propagation{traversal=forward-backward},shard-partition,canonicalize,cse))' \
// RUN:   | FileCheck %s

// Sums of gradients are added over the processes that share them.

shard.grid @g(shape = 4)

// CHECK-LABEL: func.func @batch_norm_backward(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<2x3x2x2xf32>, %[[ARG1:.+]]: tensor<2x3x2x2xf32>, %[[ARG2:.+]]: tensor<3xf32>, %[[ARG3:.+]]: tensor<3xf32>, %[[ARG4:.+]]: tensor<3xf32>)
// CHECK-SAME:      -> (tensor<2x3x2x2xf32>, tensor<3xf32>, tensor<3xbf16>)
// CHECK:       %[[CST:.+]] = arith.constant dense<32> : tensor<3xi64>
// CHECK:       %[[SUM_G:.+]], %[[SUM_GX:.+]], %[[DSCALE:.+]], %[[DSHIFT:.+]] = norm.backward_moments %[[ARG0]], %[[ARG1]] mean(%[[ARG2]] : tensor<3xf32>) rstd(%[[ARG3]] : tensor<3xf32>) scale(%[[ARG4]] : tensor<3xf32>) axes [0, 2, 3] affine_axes [1] : tensor<2x3x2x2xf32>, tensor<2x3x2x2xf32> -> sum_g(tensor<3xf64>) sum_gx(tensor<3xf64>) dscale(tensor<3xf32>) dshift(tensor<3xf32>)
// CHECK:       %[[ALL_REDUCE:.+]] = shard.all_reduce %[[SUM_G]] on @g grid_axes = [0] : tensor<3xf64> -> tensor<3xf64>
// CHECK:       %[[ALL_REDUCE_0:.+]] = shard.all_reduce %[[SUM_GX]] on @g grid_axes = [0] : tensor<3xf64> -> tensor<3xf64>
// CHECK:       %[[V0:.+]] = norm.backward_normalize %[[ARG0]], %[[ARG1]] mean(%[[ARG2]] : tensor<3xf32>) rstd(%[[ARG3]] : tensor<3xf32>) scale(%[[ARG4]] : tensor<3xf32>) sum_g(%[[ALL_REDUCE]] : tensor<3xf64>) sum_gx(%[[ALL_REDUCE_0]] : tensor<3xf64>) count(%[[CST]] : tensor<3xi64>) axes [0, 2, 3] epsilon inside_sqrt 1.000000e-05 affine_axes [1] : tensor<2x3x2x2xf32>, tensor<2x3x2x2xf32> -> tensor<2x3x2x2xf32>
// CHECK:       %[[ALL_REDUCE_1:.+]] = shard.all_reduce %[[DSCALE]] on @g grid_axes = [0] : tensor<3xf32> -> tensor<3xf32>
// CHECK:       %[[ALL_REDUCE_2:.+]] = shard.all_reduce %[[DSHIFT]] on @g grid_axes = [0] : tensor<3xf32> -> tensor<3xf32>
// CHECK:       %[[V2:.+]] = linalg.generic {{.*}} ins(%[[ALL_REDUCE_2]] : tensor<3xf32>)
// CHECK:         arith.truncf %{{.*}} : f32 to bf16
// CHECK:       return %[[V0]], %[[ALL_REDUCE_1]], %[[V2]] : tensor<2x3x2x2xf32>, tensor<3xf32>, tensor<3xbf16>
func.func @batch_norm_backward(%dy: tensor<8x3x2x2xf32>, %x: tensor<8x3x2x2xf32>, %m: tensor<3xf32>, %r: tensor<3xf32>, %g: tensor<3xf32>)
    -> (tensor<8x3x2x2xf32>, tensor<3xf32>, tensor<3xbf16>) {
  %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<8x3x2x2xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<8x3x2x2xf32>
  %dx, %dg, %db = norm.batch_norm_training_backward %dy, %xu mean(%m : tensor<3xf32>) rstd(%r : tensor<3xf32>) scale(%g : tensor<3xf32>)
      axes [0, 2, 3] epsilon inside_sqrt 1.0e-5
      : tensor<8x3x2x2xf32>, tensor<8x3x2x2xf32> -> tensor<8x3x2x2xf32> dscale(tensor<3xf32>) dshift(tensor<3xbf16>)
  return %dx, %dg, %db : tensor<8x3x2x2xf32>, tensor<3xf32>, tensor<3xbf16>
}

// -----

shard.grid @g(shape = 2x2)

// CHECK-LABEL: func.func @rms_backward(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<2x4xf32>, %[[ARG1:.+]]: tensor<2x4xf32>, %[[ARG2:.+]]: tensor<4xf32>)
// CHECK-SAME:      -> (tensor<2x4xf32>, tensor<4xf32>)
// CHECK:       %[[CST:.+]] = arith.constant dense<8> : tensor<2xi64>
// CHECK:       %[[M2:.+]] = norm.moments %[[ARG1]] axes [1] about zero : tensor<2x4xf32> -> m2(tensor<2xf64>)
// CHECK:       %[[ALL_REDUCE:.+]] = shard.all_reduce %[[M2]] on @g grid_axes = [1] : tensor<2xf64> -> tensor<2xf64>
// CHECK:       %[[RSTD:.+]] = norm.rstd %[[ALL_REDUCE]] count(%[[CST]] : tensor<2xi64>) epsilon inside_sqrt 1.000000e-06 compute f32 : tensor<2xf64> -> tensor<2xf32>
// CHECK:       %[[SUM_GX:.+]], %[[DSCALE:.+]] = norm.backward_moments %[[ARG0]], %[[ARG1]] rstd(%[[RSTD]] : tensor<2xf32>) scale(%[[ARG2]] : tensor<4xf32>) axes [1] : tensor<2x4xf32>, tensor<2x4xf32> -> sum_gx(tensor<2xf64>) dscale(tensor<4xf32>)
// CHECK:       %[[ALL_REDUCE_0:.+]] = shard.all_reduce %[[SUM_GX]] on @g grid_axes = [1] : tensor<2xf64> -> tensor<2xf64>
// CHECK:       %[[V0:.+]] = norm.backward_normalize %[[ARG0]], %[[ARG1]] rstd(%[[RSTD]] : tensor<2xf32>) scale(%[[ARG2]] : tensor<4xf32>) sum_gx(%[[ALL_REDUCE_0]] : tensor<2xf64>) count(%[[CST]] : tensor<2xi64>) axes [1] epsilon inside_sqrt 1.000000e-06 : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
// CHECK:       %[[ALL_REDUCE_1:.+]] = shard.all_reduce %[[DSCALE]] on @g grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
// CHECK:       return %[[V0]], %[[ALL_REDUCE_1]] : tensor<2x4xf32>, tensor<4xf32>
func.func @rms_backward(%dy: tensor<4x8xf32>, %x: tensor<4x8xf32>, %g: tensor<8xf32>)
    -> (tensor<4x8xf32>, tensor<8xf32>) {
  %s = shard.sharding @g split_axes = [[0], [1]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8xf32>
  %dx, %dg = norm.rms_norm_backward %dy, %xu scale(%g : tensor<8xf32>) axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32> dscale(tensor<8xf32>)
  return %dx, %dg : tensor<4x8xf32>, tensor<8xf32>
}

// -----

shard.grid @g(shape = 2)

// The gradient of each row is local, those of scale and shift are sums over all rows.
// CHECK-LABEL: func.func @layer_norm_backward(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<2x8xbf16>, %[[ARG1:.+]]: tensor<2x8xbf16>, %[[ARG2:.+]]: tensor<8xbf16>)
// CHECK-SAME:      -> (tensor<2x8xbf16>, tensor<8xbf16>, tensor<8xf32>)
// CHECK:       %[[DX:.+]], %[[DSCALE:.+]], %[[DSHIFT:.+]] = norm.layer_norm_backward %[[ARG0]], %[[ARG1]] scale(%[[ARG2]] : tensor<8xbf16>) axes [1] epsilon inside_sqrt 1.000000e-06 : tensor<2x8xbf16>, tensor<2x8xbf16> -> tensor<2x8xbf16> dscale(tensor<8xf32>) dshift(tensor<8xf32>)
// CHECK:       %[[ALL_REDUCE:.+]] = shard.all_reduce %[[DSCALE]] on @g grid_axes = [0] : tensor<8xf32> -> tensor<8xf32>
// CHECK:       %[[V1:.+]] = linalg.generic {{.*}} ins(%[[ALL_REDUCE]] : tensor<8xf32>)
// CHECK:         arith.truncf %{{.*}} : f32 to bf16
// CHECK:       %[[ALL_REDUCE_0:.+]] = shard.all_reduce %[[DSHIFT]] on @g grid_axes = [0] : tensor<8xf32> -> tensor<8xf32>
// CHECK:       return %[[DX]], %[[V1]], %[[ALL_REDUCE_0]] : tensor<2x8xbf16>, tensor<8xbf16>, tensor<8xf32>
func.func @layer_norm_backward(%dy: tensor<4x8xbf16>, %x: tensor<4x8xbf16>, %g: tensor<8xbf16>)
    -> (tensor<4x8xbf16>, tensor<8xbf16>, tensor<8xf32>) {
  %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xbf16>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8xbf16>
  %dx, %dg, %db = norm.layer_norm_backward %dy, %xu scale(%g : tensor<8xbf16>)
      axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<4x8xbf16>, tensor<4x8xbf16> -> tensor<4x8xbf16> dscale(tensor<8xbf16>) dshift(tensor<8xf32>)
  return %dx, %dg, %db : tensor<4x8xbf16>, tensor<8xbf16>, tensor<8xf32>
}

// -----

shard.grid @g(shape = 2)

// CHECK-LABEL: func.func @inference_backward(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<2x3x6xf32>, %[[ARG1:.+]]: tensor<2x3x6xf32>, %[[ARG2:.+]]: tensor<3xf32>, %[[ARG3:.+]]: tensor<3xf32>)
// CHECK-SAME:      -> (tensor<2x3x6xf32>, tensor<3xf32>)
// CHECK:       %[[DX:.+]], %[[DSCALE:.+]] = norm.batch_norm_inference_backward %[[ARG0]], %[[ARG1]] mean(%[[ARG2]] : tensor<3xf32>) variance(%[[ARG3]] : tensor<3xf32>) axes [0, 2] epsilon inside_sqrt 1.000000e-06 : tensor<2x3x6xf32>, tensor<2x3x6xf32> -> tensor<2x3x6xf32> dscale(tensor<3xf32>)
// CHECK:       %[[ALL_REDUCE:.+]] = shard.all_reduce %[[DSCALE]] on @g grid_axes = [0] : tensor<3xf32> -> tensor<3xf32>
// CHECK:       return %[[DX]], %[[ALL_REDUCE]] : tensor<2x3x6xf32>, tensor<3xf32>
func.func @inference_backward(%dy: tensor<4x3x6xf32>, %x: tensor<4x3x6xf32>, %m: tensor<3xf32>, %v: tensor<3xf32>)
    -> (tensor<4x3x6xf32>, tensor<3xf32>) {
  %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x3x6xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x3x6xf32>
  %dx, %dg = norm.batch_norm_inference_backward %dy, %xu mean(%m : tensor<3xf32>) variance(%v : tensor<3xf32>)
      axes [0, 2] epsilon inside_sqrt 1.0e-6
     : tensor<4x3x6xf32>, tensor<4x3x6xf32> -> tensor<4x3x6xf32> dscale(tensor<3xf32>)
  return %dx, %dg : tensor<4x3x6xf32>, tensor<3xf32>
}

// -----

shard.grid @g(shape = 2)

// CHECK-LABEL: func.func @rms_backward_dynamic(
// CHECK-SAME:      %[[ARG0:.+]]: tensor<4x?xf32>, %[[ARG1:.+]]: tensor<4x?xf32>, %[[ARG2:.+]]: tensor<4x?xf32>, %[[ARG3:.+]]: tensor<4xf32>, %[[ARG4:.+]]: tensor<?xf32>)
// CHECK-SAME:      -> (tensor<4x?xf32>, tensor<?xf32>)
// CHECK:       %[[COUNT:.+]] = norm.moments %[[ARG1]] axes [1] about zero : tensor<4x?xf32> -> count(tensor<4xi64>)
// CHECK:       %[[SUM_GX:.+]], %[[DSCALE:.+]] = norm.backward_moments %[[ARG0]], %[[ARG1]] rstd(%[[ARG3]] : tensor<4xf32>) scale(%[[ARG4]] : tensor<?xf32>) axes [1] : tensor<4x?xf32>, tensor<4x?xf32> -> sum_gx(tensor<4xf64>) dscale(tensor<?xf32>)
// CHECK:       %[[ALL_REDUCE:.+]] = shard.all_reduce %[[COUNT]] on @g grid_axes = [0] : tensor<4xi64> -> tensor<4xi64>
// CHECK:       %[[ALL_REDUCE_0:.+]] = shard.all_reduce %[[SUM_GX]] on @g grid_axes = [0] : tensor<4xf64> -> tensor<4xf64>
// CHECK:       %[[V0:.+]] = norm.backward_normalize %[[ARG0]], %[[ARG1]] rstd(%[[ARG3]] : tensor<4xf32>) scale(%[[ARG4]] : tensor<?xf32>) sum_gx(%[[ALL_REDUCE_0]] : tensor<4xf64>) count(%[[ALL_REDUCE]] : tensor<4xi64>) axes [1] epsilon inside_sqrt 1.000000e-06 : tensor<4x?xf32>, tensor<4x?xf32> -> tensor<4x?xf32>
// CHECK:       %[[V2:.+]] = linalg.generic {{.*}} ins(%[[V0]], %[[ARG2]] : tensor<4x?xf32>, tensor<4x?xf32>)
// CHECK:         arith.addf %{{.*}} : f32
// CHECK:       return %[[V2]], %[[DSCALE]] : tensor<4x?xf32>, tensor<?xf32>
func.func @rms_backward_dynamic(%dy: tensor<4x?xf32>, %x: tensor<4x?xf32>, %ds: tensor<4x?xf32>, %r: tensor<4xf32>, %g: tensor<?xf32>)
    -> (tensor<4x?xf32>, tensor<?xf32>) {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x?xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x?xf32>
  %dx, %dg = norm.rms_norm_backward %dy, %xu dsum(%ds : tensor<4x?xf32>) rstd(%r : tensor<4xf32>) scale(%g : tensor<?xf32>)
      axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<4x?xf32>, tensor<4x?xf32> -> tensor<4x?xf32> dscale(tensor<?xf32>)
  return %dx, %dg : tensor<4x?xf32>, tensor<?xf32>
}
