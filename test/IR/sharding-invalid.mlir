// RUN: norm-opt %s -split-input-file -verify-diagnostics \
// RUN:   --pass-pipeline='builtin.module(func.func(sharding-propagation{traversal=forward},shard-partition))'

// Shares that no process could compute with.

shard.grid @g(shape = 2)
func.func @indivisible(%x: tensor<4x9xf32>) -> tensor<4x9xf32> {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x9xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x9xf32>
  // expected-error @+2 {{expected the extent of axis 1 to be a multiple of the 2 processes that share it, or sharded_dims_offsets, got 9}}
  // expected-error @+1 {{fail to set sharding annotations.}}
  %y = norm.rms_norm %xu axes [1] epsilon none : tensor<4x9xf32> -> tensor<4x9xf32>
  return %y : tensor<4x9xf32>
}

// -----

shard.grid @g(shape = 4)
func.func @cut_groups(%x: tensor<4x8x6xf32>) -> tensor<4x8x6xf32> {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8x6xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8x6xf32>
  // expected-error @+2 {{expected each share of the channel axis 1 to hold whole groups, got 2 groups over 4 processes}}
  // expected-error @+1 {{fail to set sharding annotations.}}
  %y = norm.group_norm %xu
      groups 2 channel_axis 1 axes [1, 2] epsilon none
      : tensor<4x8x6xf32> -> tensor<4x8x6xf32>
  return %y : tensor<4x8x6xf32>
}

// -----

shard.grid @g(shape = 2)
func.func @uneven_groups(%x: tensor<4x8x6xf32>) -> tensor<4x8x6xf32> {
  %s = shard.sharding @g split_axes = [[], [0]] sharded_dims_offsets = [0, 6, 8] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8x6xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8x6xf32>
  // expected-error @+2 {{expected equal shares of the channel axis 1, got sharded_dims_offsets}}
  // expected-error @+1 {{fail to set sharding annotations.}}
  %y = norm.group_norm %xu
      groups 4 channel_axis 1 axes [1, 2] epsilon none
      : tensor<4x8x6xf32> -> tensor<4x8x6xf32>
  return %y : tensor<4x8x6xf32>
}

// -----

shard.grid @g(shape = 2)
func.func @narrow(%x: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xbf16>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8xbf16>
  // expected-error @+1 {{expected 'compute' f32 or f64 to divide a norm that subtracts a mean, got 'bf16'}}
  %y = norm.layer_norm %xu axes [1] epsilon none compute bf16 : tensor<4x8xbf16> -> tensor<4x8xbf16>
  return %y : tensor<4x8xbf16>
}

// -----

shard.grid @g(shape = 2)
func.func @gain_is_whole(%x: tensor<3x8xf32>, %g: tensor<8xf32>) -> tensor<3x8xf32> {
  %s = shard.sharding @g split_axes = [[], [0]] sharded_dims_offsets = [0, 5, 8] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<3x8xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<3x8xf32>
  %w = shard.sharding @g split_axes = [[]] : !shard.sharding
  %gs = shard.shard %g to %w : tensor<8xf32>
  // expected-error @+2 {{expected all operands and results to have the same sharded_dims_offsets of axis 1: uneven shares cannot be resharded}}
  // expected-error @+1 {{fail to set sharding annotations.}}
  %y = norm.rms_norm %xu scale(%gs : tensor<8xf32>) axes [1] epsilon none : tensor<3x8xf32> -> tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}

// -----

shard.grid @g(shape = 2)
func.func @offsets_end_early(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %s = shard.sharding @g split_axes = [[], [0]] sharded_dims_offsets = [0, 5, 7] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<3x8xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<3x8xf32>
  // expected-error @+2 {{expected sharded_dims_offsets of axis 1 to ascend from 0 to its extent}}
  // expected-error @+1 {{fail to set sharding annotations.}}
  %y = norm.rms_norm %xu axes [1] epsilon none : tensor<3x8xf32> -> tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}

// -----

shard.grid @g(shape = 2x2)
func.func @offsets_over_two_axes(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %s = shard.sharding @g split_axes = [[], [0, 1]] sharded_dims_offsets = [0, 3, 5, 7, 8] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<3x8xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<3x8xf32>
  // expected-error @+2 {{expected axis 1, which has sharded_dims_offsets, to be split over one grid axis of static extent, got [0, 1]}}
  // expected-error @+1 {{fail to set sharding annotations.}}
  %y = norm.rms_norm %xu axes [1] epsilon none : tensor<3x8xf32> -> tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}

// -----

shard.grid @g(shape = 2x2)
func.func @offsets_beside_dynamic(%x: tensor<?x8xf32>, %m: tensor<?xf32>, %r: tensor<?xf32>, %g: tensor<8xf32>)
    -> tensor<?x8xf32> {
  %rows = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %ms = shard.shard %m to %rows : tensor<?xf32>
  %columns = shard.sharding @g split_axes = [[1]] sharded_dims_offsets = [0, 3, 8] : !shard.sharding
  %gs = shard.shard %g to %columns : tensor<8xf32>
  // expected-error @+2 {{expected a static extent or sharded_dims_offsets of axis 0, for another axis has offsets}}
  // expected-error @+1 {{fail to set sharding annotations.}}
  %y = norm.normalize %x mean(%ms : tensor<?xf32>) rstd(%r : tensor<?xf32>) scale(%gs : tensor<8xf32>)
      axes [1]
      : tensor<?x8xf32> -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

shard.grid @g(shape = 2)
func.func @unrounded_sum(%x: tensor<4x8xbf16>, %r: tensor<4x8xbf16>, %g: tensor<8xbf16>) -> tensor<4x8xbf16> {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xbf16>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8xbf16>
  // expected-error @+1 {{expected a sum of x's element type with 'affine_in' result, got 'f32' and 'bf16'}}
  %y = norm.rms_norm %xu residual(%r : tensor<4x8xbf16>) scale(%g : tensor<8xbf16>)
      axes [1] epsilon none affine_in result sum_rounding compute
      : tensor<4x8xbf16> -> tensor<4x8xbf16>
  return %y : tensor<4x8xbf16>
}

// -----

shard.grid @g(shape = 2x2)
func.func @offsets_disagree(%x: tensor<4x8xf32>, %r: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %s = shard.sharding @g split_axes = [[], [0]] sharded_dims_offsets = [0, 3, 8] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8xf32>
  %t = shard.sharding @g split_axes = [[], [0]] sharded_dims_offsets = [0, 4, 8] : !shard.sharding
  %rs = shard.shard %r to %t : tensor<4x8xf32>
  // expected-error @+2 {{expected all operands and results to have the same sharded_dims_offsets of axis 1: uneven shares cannot be resharded}}
  // expected-error @+1 {{fail to set sharding annotations.}}
  %y = norm.rms_norm %xu residual(%rs : tensor<4x8xf32>)
      axes [1] epsilon none
      : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

shard.grid @g(shape = 2)
func.func @halo(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %s = shard.sharding @g split_axes = [[], [0]] halo_sizes = [1, 1] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8xf32>
  // expected-error @+2 {{expected a sharding without halo, got one}}
  // expected-error @+1 {{fail to set sharding annotations.}}
  %y = norm.rms_norm %xu axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
