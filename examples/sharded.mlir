shard.grid @g(shape = 2)
func.func @main(%x: tensor<4x8xf32>, %g: tensor<8xf32>) -> tensor<4x8xf32> {
  // The columns of x, which the norm reduces, over grid axis 0: how x arrives,
  // and how its user wants it.
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<4x8xf32>
  %xu = shard.shard %xs to %s annotate_for_users : tensor<4x8xf32>
  %y = norm.rms_norm %xu scale(%g : tensor<8xf32>) axes [1]
      epsilon inside_sqrt 1.0e-6 : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
