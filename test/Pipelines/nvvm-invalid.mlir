// RUN: norm-opt %s --norm-to-nvvm --split-input-file --verify-diagnostics

// What no norm computes beside itself would run on the host.
func.func @other(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %empty = tensor.empty() : tensor<4x8xf32>
  // expected-error @+1 {{'linalg.exp' op is not part of a norm or of what is computed beside one, and has no GPU kernel}}
  %y = linalg.exp ins(%x : tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

func.func @function(%x: tensor<4x64xf64>) -> tensor<4x64xf64> {
  %empty = tensor.empty() : tensor<4x64xf64>
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-6 : tensor<4x64xf64> -> tensor<4x64xf64>
  %e = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<4x64xf64>) outs(%empty : tensor<4x64xf64>) {
  ^bb0(%in: f64, %out: f64):
    // expected-error @+1 {{'llvm.call' op calls '__nv_tanh', which is no part of the kernel: expected code that needs no library}}
    %t = math.tanh %in : f64
    linalg.yield %t : f64
  } -> tensor<4x64xf64>
  return %e : tensor<4x64xf64>
}

// -----

// The error names what computes, not the buffer that it needs.
func.func @product(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-6 : tensor<4x8xf32> -> tensor<4x8xf32>
  %empty = tensor.empty() : tensor<4x8xf32>
  // expected-error @+1 {{'linalg.matmul' op is not part of a norm or of what is computed beside one, and has no GPU kernel}}
  %z = linalg.matmul ins(%y, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}
