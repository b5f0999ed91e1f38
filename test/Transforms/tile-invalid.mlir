// RUN: norm-opt %s --norm-tile --split-input-file --verify-diagnostics

func.func @no_range(%dy: tensor<6x8xf32>, %x: tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<8xf32>) {
  // expected-error @below {{expected the range of 'norm.strategy' to be 4 rows or more where rows are summed over, got 0}}
  %dx, %dg = norm.rms_norm_backward %dy, %x axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 2, columns = 8, parallel = true>}
    : tensor<6x8xf32>, tensor<6x8xf32> -> tensor<6x8xf32> dscale(tensor<8xf32>)
  return %dx, %dg : tensor<6x8xf32>, tensor<8xf32>
}
