// RUN: norm-opt %s -split-input-file -verify-diagnostics \
// RUN:   --pass-pipeline='builtin.module(func.func(shard-partition))'

// Annotations that are written, not propagated.

shard.grid @g(shape = 2)
func.func @indivisible(%x: tensor<4x9xf32>) -> tensor<4x9xf32> {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x9xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x9xf32>
  // expected-error @+1 {{expected the extent of axis 1 to be a multiple of the 2 processes that share it, or sharded_dims_offsets, got 9}}
  %y = norm.rms_norm %xu axes [1] epsilon none : tensor<4x9xf32> -> tensor<4x9xf32>
  %ys = shard.shard %y to %s : tensor<4x9xf32>
  return %ys : tensor<4x9xf32>
}

// -----

shard.grid @g(shape = 2)
func.func @disagree(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %t = shard.sharding @g split_axes = [[]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8xf32>
  // expected-error @+1 {{expected operands and results to agree on the grid axes that split axis 1, got [0] and []}}
  %y = norm.rms_norm %xu axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  %ys = shard.shard %y to %t : tensor<4x8xf32>
  return %ys : tensor<4x8xf32>
}
