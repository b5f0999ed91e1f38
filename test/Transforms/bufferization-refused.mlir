// RUN: norm-opt %s --one-shot-bufferize="bufferize-function-boundaries" --split-input-file --verify-diagnostics
// RUN: norm-opt %s --one-shot-bufferize --split-input-file --verify-diagnostics

func.func @rms(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @below {{'norm.rms_norm' op is still there at bufferization, run norm-lower-to-linalg first}}
  %y = norm.rms_norm %x axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

func.func @layer(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @below {{'norm.layer_norm' op is still there at bufferization, run norm-lower-to-linalg first}}
  %y, %m = norm.layer_norm %x axes [1] epsilon none : tensor<?x8xf32> -> tensor<?x8xf32> mean(tensor<?xf32>)
  return %y : tensor<?x8xf32>
}
