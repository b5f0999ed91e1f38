// Where the reference rounds, on values that tell.
// RUN: rm -rf %t && mkdir %t
// RUN: %python %S/../Tools/Inputs/npy.py %t/x.npy '<u2' 1x2 0x4380 0x0000
// RUN: %python %S/../Tools/Inputs/npy.py %t/r.npy '<u2' 1x2 0x3f80 0x4040
// RUN: %python %S/../Tools/Inputs/npy.py %t/d.npy '<f8' 1x3 1.0 1.00390625 1.003906250000001
// RUN: %python %S/../Tools/Inputs/npy.py %t/big.npy '<f4' 1x4 10000001 10000000 10000001 10000000
// RUN: %python %S/../Tools/Inputs/npy.py %t/tiny.npy '<f8' 1x2 3e-40 4e-40
// RUN: %python %S/../Tools/Inputs/npy.py %t/inf.npy '<f4' 2x2 inf 1 1 3
// RUN: %python %S/../Tools/Inputs/npy.py %t/zero.npy '<f4' 2x2 0 0 0 4

// 256 + 1 is a tie in bf16 and rounds to 256: the stored sum is normalized, or
// the exact one is.
// RUN: norm-run %s --target=reference --entry=sums --input=%t/x.npy --input=%t/r.npy | FileCheck %s --check-prefix=SUMS
// SUMS:      result 0: 1x2 of f32
// SUMS-NEXT:   1.41411{{[0-9]*}} 0.016571{{[0-9]*}}
// SUMS-NEXT: result 1: 1x2 of bf16
// SUMS-NEXT:   256 3
// SUMS-NEXT: result 2: 1x2 of f32
// SUMS-NEXT:   1.41411{{[0-9]*}} 0.016507{{[0-9]*}}
func.func @sums(%x: tensor<1x2xbf16>, %r: tensor<1x2xbf16>)
    -> (tensor<1x2xf32>, tensor<1x2xbf16>, tensor<1x2xf32>) {
  %y, %s = norm.rms_norm %x residual(%r : tensor<1x2xbf16>) axes [1] epsilon none
      : tensor<1x2xbf16> -> tensor<1x2xf32> sum(tensor<1x2xbf16>)
  %z, %t = norm.rms_norm %x residual(%r : tensor<1x2xbf16>) axes [1] epsilon none sum_rounding compute
      : tensor<1x2xbf16> -> tensor<1x2xf32> sum(tensor<1x2xbf16>)
  return %y, %s, %z : tensor<1x2xf32>, tensor<1x2xbf16>, tensor<1x2xf32>
}

// f64 to bf16 in one step: 1 + 2^-8 is a tie and goes to 1, the least above it
// goes up, which by way of f32 it would not.
// RUN: norm-run %s --target=reference --entry=ties --input=%t/d.npy | FileCheck %s --check-prefix=TIES
// TIES:      result 0: 1x3 of bf16
// TIES-NEXT:   1 1 1.0078125
// TIES-NEXT: result 1: 1x3 of f16
// TIES-NEXT:   1 1.00390625 1.00390625
func.func @ties(%x: tensor<1x3xf64>) -> (tensor<1x3xbf16>, tensor<1x3xf16>) {
  %zero = arith.constant dense<0.0> : tensor<1x3xf64>
  %y, %s = norm.rms_norm %x residual(%zero : tensor<1x3xf64>) axes [1] epsilon none
      : tensor<1x3xf64> -> tensor<1x3xf64> sum(tensor<1x3xbf16>)
  %z, %t = norm.rms_norm %x residual(%zero : tensor<1x3xf64>) axes [1] epsilon none
      : tensor<1x3xf64> -> tensor<1x3xf64> sum(tensor<1x3xf16>)
  return %s, %t : tensor<1x3xbf16>, tensor<1x3xf16>
}

// Subnormals of bf16 are kept.
// RUN: norm-run %s --target=reference --entry=tiny --input=%t/tiny.npy | FileCheck %s --check-prefix=TINY
// TINY: result 0: 1x2 of bf16
// TINY-NEXT: 2.7{{[0-9]*}}e-40 3.6{{[0-9]*}}e-40
func.func @tiny(%x: tensor<1x2xf64>) -> tensor<1x2xbf16> {
  %zero = arith.constant dense<0.0> : tensor<1x2xf64>
  %y, %s = norm.rms_norm %x residual(%zero : tensor<1x2xf64>) axes [1] epsilon none
      : tensor<1x2xf64> -> tensor<1x2xf64> sum(tensor<1x2xbf16>)
  return %s : tensor<1x2xbf16>
}

// mean / std = 2e7, in f32.
// RUN: norm-run %s --target=reference --entry=large_mean --input=%t/big.npy | FileCheck %s --check-prefix=MEAN
// MEAN:      result 0: 1x4 of f32
// MEAN-NEXT:   1 -1 1 -1
// MEAN-NEXT: result 1: 1 of f32
// MEAN-NEXT:   10000000
// MEAN-NEXT: result 2: 1 of f32
// MEAN-NEXT:   0.333333343
func.func @large_mean(%x: tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1xf32>, tensor<1xf32>) {
  %y, %mean = norm.layer_norm %x axes [1] epsilon none
      : tensor<1x4xf32> -> tensor<1x4xf32> mean(tensor<1xf32>)
  %z, %variance = norm.layer_norm %x axes [1] epsilon none correction 1
      : tensor<1x4xf32> -> tensor<1x4xf32> variance(tensor<1xf32>)
  return %y, %mean, %variance : tensor<1x4xf32>, tensor<1xf32>, tensor<1xf32>
}

// An infinity makes its row NaN and no other; in rms_norm it is alone in that.
// RUN: norm-run %s --target=reference --entry=both --input=%t/inf.npy | FileCheck %s --check-prefix=INF
// INF:      result 0: 2x2 of f32
// INF-NEXT:   {{-?}}nan {{-?}}nan
// INF-NEXT:   -1 1
// INF-NEXT: result 1: 2x2 of f32
// INF-NEXT:   {{-?}}nan 0
// INF-NEXT:   0.447213{{[0-9]*}} 1.34164{{[0-9]*}}

// Zero rows: 0/0 without a policy.
// RUN: norm-run %s --target=reference --entry=both --input=%t/zero.npy | FileCheck %s --check-prefix=ZERO
// ZERO:      result 0: 2x2 of f32
// ZERO-NEXT:   {{-?}}nan {{-?}}nan
// ZERO-NEXT:   -1 1
// ZERO-NEXT: result 1: 2x2 of f32
// ZERO-NEXT:   {{-?}}nan {{-?}}nan
// ZERO-NEXT:   0 1.41421{{[0-9]*}}
// ZERO-NEXT: result 2: 2x2 of f32
// ZERO-NEXT:   0 0
// ZERO-NEXT:   -1 1
func.func @both(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %y = norm.layer_norm %x axes [1] epsilon none : tensor<2x2xf32> -> tensor<2x2xf32>
  %z = norm.rms_norm %x axes [1] epsilon none : tensor<2x2xf32> -> tensor<2x2xf32>
  %p = norm.layer_norm %x axes [1] epsilon none zero_policy zero : tensor<2x2xf32> -> tensor<2x2xf32>
  return %y, %z, %p : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}
