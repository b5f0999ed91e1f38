// RUN: norm-opt %s | norm-opt | FileCheck %s
// RUN: norm-opt %s -mlir-print-op-generic | norm-opt | FileCheck %s
// RUN: norm-opt %s -emit-bytecode | norm-opt | FileCheck %s

// The least that can be written: axes and epsilon have no default.
// CHECK-LABEL: func @bare
// CHECK-NEXT: norm.layer_norm %{{.*}} axes [1] epsilon inside_sqrt 1.000000e-05 : tensor<4x768xf32> -> tensor<4x768xf32>
// CHECK-NEXT: norm.rms_norm %{{.*}} axes [1] epsilon none : tensor<4x768xf32> -> tensor<4x768xf32>
func.func @bare(%x: tensor<4x768xf32>) {
  %0 = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x768xf32> -> tensor<4x768xf32>
  %1 = norm.rms_norm %x axes [1] epsilon none : tensor<4x768xf32> -> tensor<4x768xf32>
  return
}

// Every clause at once, none at its default.
// CHECK-LABEL: func @all_clauses
// CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} = norm.layer_norm %{{.*}} residual(%{{.*}} : tensor<?x8xbf16>) scale(%{{.*}} : tensor<?x8xf32>) shift(%{{.*}} : tensor<?x8xf32>) axes [1] epsilon outside_sqrt 1.000000e-03 affine_axes [0, 1] compute f64 correction 1 scale_offset 1.000000e+00 affine_in result sum_rounding compute zero_policy zero {tag}
// CHECK-SAME: : tensor<?x8xbf16> -> tensor<?x8xf32> mean(tensor<?xf64>) variance(tensor<?xf64>) rstd(tensor<?xf64>) sum(tensor<?x8xf16>)
func.func @all_clauses(%x: tensor<?x8xbf16>, %r: tensor<?x8xbf16>, %g: tensor<?x8xf32>) {
  %y, %mean, %variance, %rstd, %sum = norm.layer_norm %x residual(%r : tensor<?x8xbf16>) scale(%g : tensor<?x8xf32>)
    shift(%g : tensor<?x8xf32>) axes [1] epsilon outside_sqrt 1.0e-3 affine_axes [0, 1] compute f64 correction 1
    scale_offset 1.0 affine_in result sum_rounding compute zero_policy zero {tag}
    : tensor<?x8xbf16> -> tensor<?x8xf32> mean(tensor<?xf64>) variance(tensor<?xf64>) rstd(tensor<?xf64>) sum(tensor<?x8xf16>)
  return
}

// CHECK-LABEL: func @all_clauses_rms
// CHECK: norm.rms_norm %{{.*}} residual({{.*}}) scale({{.*}}) shift({{.*}}) axes [1] epsilon max_inside 1.000000e-03 affine_axes [0, 1] compute f64 scale_offset 1.000000e+00 affine_in result sum_rounding compute zero_policy zero : tensor<?x8xbf16> -> tensor<?x8xf32> variance(tensor<?xf64>) rstd(tensor<?xf64>) sum(tensor<?x8xf16>)
func.func @all_clauses_rms(%x: tensor<?x8xbf16>, %r: tensor<?x8xbf16>, %g: tensor<?x8xf32>) {
  %y, %variance, %rstd, %sum = norm.rms_norm %x residual(%r : tensor<?x8xbf16>) scale(%g : tensor<?x8xf32>)
    shift(%g : tensor<?x8xf32>) axes [1] epsilon max_inside 1.0e-3 affine_axes [0, 1] compute f64
    scale_offset 1.0 affine_in result sum_rounding compute zero_policy zero
    : tensor<?x8xbf16> -> tensor<?x8xf32> variance(tensor<?xf64>) rstd(tensor<?xf64>) sum(tensor<?x8xf16>)
  return
}

// A default that is written is not printed, so there is one printed form.
// CHECK-LABEL: func @written_defaults
// CHECK-NEXT: norm.layer_norm %{{.*}} residual(%{{.*}} : tensor<4x8xf32>) scale(%{{.*}} : tensor<8xf32>) axes [1] epsilon none : tensor<4x8xf32>
func.func @written_defaults(%x: tensor<4x8xf32>, %g: tensor<8xf32>) {
  %0 = norm.layer_norm %x residual(%x : tensor<4x8xf32>) scale(%g : tensor<8xf32>) axes [1] epsilon none
    correction 0 scale_offset 0.0 affine_in compute sum_rounding stored zero_policy ieee : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// Each optional operand stands on its own.
// CHECK-LABEL: func @operands
// CHECK-NEXT: norm.layer_norm %{{.*}} residual(%{{.*}} : tensor<4x8xf32>) axes
// CHECK-NEXT: norm.layer_norm %{{.*}} scale(%{{.*}} : tensor<8xf32>) axes
// CHECK-NEXT: norm.layer_norm %{{.*}} shift(%{{.*}} : tensor<8xf32>) axes
// CHECK-NEXT: norm.layer_norm %{{.*}} residual(%{{.*}} : tensor<4x8xf32>) shift(%{{.*}} : tensor<8xf32>) axes
func.func @operands(%x: tensor<4x8xf32>, %g: tensor<8xf32>) {
  %0 = norm.layer_norm %x residual(%x : tensor<4x8xf32>) axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  %1 = norm.layer_norm %x scale(%g : tensor<8xf32>) axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  %2 = norm.layer_norm %x shift(%g : tensor<8xf32>) axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = norm.layer_norm %x residual(%x : tensor<4x8xf32>) shift(%g : tensor<8xf32>) axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// Each optional result stands on its own.
// CHECK-LABEL: func @results
// CHECK-NEXT: %{{.*}}, %{{.*}} = norm.layer_norm {{.*}} -> tensor<4x8xf16> mean(tensor<4xf32>)
// CHECK-NEXT: %{{.*}}, %{{.*}} = norm.layer_norm {{.*}} -> tensor<4x8xf16> variance(tensor<4xf32>)
// CHECK-NEXT: %{{.*}}, %{{.*}} = norm.layer_norm {{.*}} -> tensor<4x8xf16> rstd(tensor<4xf32>)
// CHECK-NEXT: %{{.*}}, %{{.*}} = norm.layer_norm {{.*}} -> tensor<4x8xf16> sum(tensor<4x8xf16>)
// CHECK-NEXT: %{{.*}}, %{{.*}}, %{{.*}} = norm.rms_norm {{.*}} -> tensor<4x8xf16> rstd(tensor<4xf32>) sum(tensor<4x8xf64>)
func.func @results(%x: tensor<4x8xf16>) {
  %0:2 = norm.layer_norm %x axes [1] epsilon none : tensor<4x8xf16> -> tensor<4x8xf16> mean(tensor<4xf32>)
  %1:2 = norm.layer_norm %x axes [1] epsilon none : tensor<4x8xf16> -> tensor<4x8xf16> variance(tensor<4xf32>)
  %2:2 = norm.layer_norm %x axes [1] epsilon none : tensor<4x8xf16> -> tensor<4x8xf16> rstd(tensor<4xf32>)
  %3:2 = norm.layer_norm %x residual(%x : tensor<4x8xf16>) axes [1] epsilon none : tensor<4x8xf16> -> tensor<4x8xf16> sum(tensor<4x8xf16>)
  %4:3 = norm.rms_norm %x residual(%x : tensor<4x8xf16>) axes [1] epsilon none : tensor<4x8xf16> -> tensor<4x8xf16> rstd(tensor<4xf32>) sum(tensor<4x8xf64>)
  return
}

// CHECK-LABEL: func @placements
// CHECK-NEXT: epsilon inside_sqrt 0.000000e+00 :
// CHECK-NEXT: epsilon inside_sqrt 1.000000e-06 :
// CHECK-NEXT: epsilon outside_sqrt 1.000000e-03 :
// CHECK-NEXT: epsilon max_inside 4.940656e-324 :
// CHECK-NEXT: epsilon max_outside 1.000000e-12 :
// CHECK-NEXT: epsilon none :
func.func @placements(%x: tensor<8xf32>) {
  %0 = norm.layer_norm %x axes [0] epsilon inside_sqrt 0.0 : tensor<8xf32> -> tensor<8xf32>
  %1 = norm.layer_norm %x axes [0] epsilon inside_sqrt 1.0e-6 : tensor<8xf32> -> tensor<8xf32>
  %2 = norm.layer_norm %x axes [0] epsilon outside_sqrt 1.0e-3 : tensor<8xf32> -> tensor<8xf32>
  %3 = norm.layer_norm %x axes [0] epsilon max_inside 4.9406564584124654e-324 : tensor<8xf32> -> tensor<8xf32>
  %4 = norm.layer_norm %x axes [0] epsilon max_outside 1.0e-12 : tensor<8xf32> -> tensor<8xf32>
  %5 = norm.layer_norm %x axes [0] epsilon none : tensor<8xf32> -> tensor<8xf32>
  return
}

// Epsilon is an attribute of its own, too.
// CHECK-LABEL: func private @epsilon_attribute
// CHECK-SAME: a = #norm.epsilon<max_outside 1.000000e-03>, b = #norm.epsilon<none>
func.func private @epsilon_attribute() attributes {a = #norm.epsilon<max_outside 1.0e-3>, b = #norm.epsilon<none>}

// Axes are kept as written until they are canonicalized: several, negative, in
// any order, in the middle, all of them.
// CHECK-LABEL: func @axes
// CHECK-NEXT: axes [-1] {{.*}} mean(tensor<2x3x4xf32>)
// CHECK-NEXT: axes [3, 1] {{.*}} mean(tensor<2x4xf32>)
// CHECK-NEXT: axes [1] {{.*}} mean(tensor<2x4x5xf32>)
// CHECK-NEXT: axes [-1, 0, -2, 1] {{.*}} mean(tensor<f32>)
func.func @axes(%x: tensor<2x3x4x5xf32>) {
  %0:2 = norm.layer_norm %x axes [-1] epsilon none : tensor<2x3x4x5xf32> -> tensor<2x3x4x5xf32> mean(tensor<2x3x4xf32>)
  %1:2 = norm.layer_norm %x axes [3, 1] epsilon none : tensor<2x3x4x5xf32> -> tensor<2x3x4x5xf32> mean(tensor<2x4xf32>)
  %2:2 = norm.layer_norm %x axes [1] epsilon none : tensor<2x3x4x5xf32> -> tensor<2x3x4x5xf32> mean(tensor<2x4x5xf32>)
  %3:2 = norm.layer_norm %x axes [-1, 0, -2, 1] epsilon none : tensor<2x3x4x5xf32> -> tensor<2x3x4x5xf32> mean(tensor<f32>)
  return
}

// V13: the affine axes may be any axes of x: kept, reduced, both, or none.
// CHECK-LABEL: func @affine_axes
// CHECK-NEXT: affine_axes [0]
// CHECK-NEXT: affine_axes [0, 2]
// CHECK-NEXT: affine_axes [] :
// CHECK-NEXT: affine_axes [2]
func.func @affine_axes(%x: tensor<2x3x4xf32>, %a: tensor<2xf32>, %b: tensor<2x4xf32>, %c: tensor<f32>, %d: tensor<4xf32>) {
  %0 = norm.layer_norm %x scale(%a : tensor<2xf32>) axes [2] epsilon none affine_axes [0] : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  %1 = norm.layer_norm %x shift(%b : tensor<2x4xf32>) axes [2] epsilon none affine_axes [0, 2] : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  %2 = norm.layer_norm %x scale(%c : tensor<f32>) axes [2] epsilon none affine_axes [] : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  %3 = norm.layer_norm %x scale(%d : tensor<4xf32>) axes [2] epsilon none affine_axes [2] : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  return
}

// Types of scale, shift, residual and y are independent of x's; the default
// compute type is the widest of f32, x and residual.
// CHECK-LABEL: func @mixed_types
// CHECK-NEXT: scale(%{{.*}} : tensor<8xf64>) shift(%{{.*}} : tensor<8xf16>) {{.*}} -> tensor<4x8xf16> rstd(tensor<4xf32>)
// CHECK-NEXT: residual(%{{.*}} : tensor<4x8xf64>) {{.*}} rstd(tensor<4xf64>)
// CHECK-NEXT: compute bf16 {{.*}} rstd(tensor<4xbf16>)
func.func @mixed_types(%x: tensor<4x8xbf16>, %r: tensor<4x8xf64>, %g: tensor<8xf64>, %b: tensor<8xf16>) {
  %0:2 = norm.rms_norm %x scale(%g : tensor<8xf64>) shift(%b : tensor<8xf16>) axes [1] epsilon none : tensor<4x8xbf16> -> tensor<4x8xf16> rstd(tensor<4xf32>)
  %1:2 = norm.rms_norm %x residual(%r : tensor<4x8xf64>) axes [1] epsilon none : tensor<4x8xbf16> -> tensor<4x8xbf16> rstd(tensor<4xf64>)
  %2:2 = norm.rms_norm %x axes [1] epsilon none compute bf16 : tensor<4x8xbf16> -> tensor<4x8xbf16> rstd(tensor<4xbf16>)
  return
}

// Extents may be static in one place and dynamic in another, or 0.
// CHECK-LABEL: func @extents
// CHECK-NEXT: tensor<?x8xf32> -> tensor<4x?xf32> mean(tensor<4xf32>)
// CHECK-NEXT: tensor<4x0xf32> -> tensor<4x0xf32> mean(tensor<4xf32>)
// CHECK-NEXT: correction 1 : tensor<0x2xf32> -> tensor<0x2xf32>
func.func @extents(%x: tensor<?x8xf32>, %e: tensor<4x0xf32>, %n: tensor<0x2xf32>) {
  %0:2 = norm.layer_norm %x axes [1] epsilon none : tensor<?x8xf32> -> tensor<4x?xf32> mean(tensor<4xf32>)
  %1:2 = norm.layer_norm %e axes [1] epsilon none : tensor<4x0xf32> -> tensor<4x0xf32> mean(tensor<4xf32>)
  %2 = norm.layer_norm %n axes [0] epsilon none correction 1 : tensor<0x2xf32> -> tensor<0x2xf32>
  return
}

// Rank 1 and rank 6.
// CHECK-LABEL: func @ranks
// CHECK-NEXT: rstd(tensor<f32>)
// CHECK-NEXT: rstd(tensor<1x2x3x4xf32>)
func.func @ranks(%a: tensor<8xf32>, %b: tensor<1x2x3x4x5x6xf32>) {
  %0:2 = norm.rms_norm %a axes [0] epsilon none : tensor<8xf32> -> tensor<8xf32> rstd(tensor<f32>)
  %1:2 = norm.rms_norm %b axes [4, 5] epsilon none : tensor<1x2x3x4x5x6xf32> -> tensor<1x2x3x4x5x6xf32> rstd(tensor<1x2x3x4xf32>)
  return
}

// The examples of the ops' descriptions.
// CHECK-LABEL: func @documented
// CHECK: norm.layer_norm
// CHECK: norm.rms_norm
func.func @documented(%x: tensor<8x128x768xf32>, %g: tensor<768xf32>, %b: tensor<768xf32>,
                      %z: tensor<4x768xbf16>, %h: tensor<4x768xbf16>, %w: tensor<768xbf16>) {
  %y, %mean, %rstd = norm.layer_norm %x scale(%g : tensor<768xf32>)
      shift(%b : tensor<768xf32>) axes [2] epsilon inside_sqrt 1.0e-5
      : tensor<8x128x768xf32> -> tensor<8x128x768xf32>
        mean(tensor<8x128xf32>) rstd(tensor<8x128xf32>)
  %y1, %rstd1, %sum = norm.rms_norm %z residual(%h : tensor<4x768xbf16>)
      scale(%w : tensor<768xbf16>) axes [1] epsilon inside_sqrt 1.0e-6
      scale_offset 1.0
      : tensor<4x768xbf16> -> tensor<4x768xbf16>
        rstd(tensor<4xf32>) sum(tensor<4x768xbf16>)
  return
}
