// RUN: norm-opt %s -norm-lower-to-linalg -verify-diagnostics

func.func @zero(%x: tensor<4x8xf16>) -> tensor<4x8xf16> {
  // expected-warning @+1 {{expected 'epsilon' to be a normal number of the compute type 'f16', got 1.000000e-08, which is 0 in it (V4)}}
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-8 compute f16 : tensor<4x8xf16> -> tensor<4x8xf16>
  return %y : tensor<4x8xf16>
}

func.func @subnormal(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-warning @+1 {{got 1.000000e-40, which is subnormal in it (V4)}}
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-40 : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// f32 and bf16 hold 1e-20; a zero that was written is meant.
func.func @fine(%x: tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>) {
  %0 = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-20 : tensor<4x8xbf16> -> tensor<4x8xbf16>
  %1 = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-20 compute bf16 : tensor<4x8xbf16> -> tensor<4x8xbf16>
  %2 = norm.rms_norm %x axes [1] epsilon inside_sqrt 0.0 : tensor<4x8xbf16> -> tensor<4x8xbf16>
  return %0, %1, %2 : tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>
}
