// RUN: norm-opt %s --norm-tile --split-input-file --verify-diagnostics

func.func @rows(%x: tensor<6x40xf32>) -> tensor<6x40xf32> {
  // expected-error @below {{expected the rows of 'norm.strategy' to divide the extent of axis 0, 6, got 4}}
  %y = norm.rms_norm %x axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 4, columns = 32, parallel = false>} : tensor<6x40xf32> -> tensor<6x40xf32>
  return %y : tensor<6x40xf32>
}

// -----

func.func @dynamic_rows(%x: tensor<?x40xf32>) -> tensor<?x40xf32> {
  // expected-error @below {{expected the rows of 'norm.strategy' to divide the extent of axis 0, a dynamic one, got 2}}
  %y = norm.rms_norm %x axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 2, columns = 32, parallel = false>} : tensor<?x40xf32> -> tensor<?x40xf32>
  return %y : tensor<?x40xf32>
}
