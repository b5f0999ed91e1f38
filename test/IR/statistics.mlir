// RUN: norm-opt %s | norm-opt | FileCheck %s
// RUN: norm-opt %s -mlir-print-op-generic | norm-opt | FileCheck %s
// RUN: norm-opt %s -emit-bytecode | norm-opt | FileCheck %s
// RUN: norm-opt %s -canonicalize | FileCheck %s --check-prefix=CANON

// Each result on its own, and every clause.
// CHECK-LABEL: func @moments
// CHECK: norm.moments %{{.*}} axes [1] about mean : tensor<4x8xbf16> -> count(tensor<4xi64>) mean(tensor<4xf32>) m2(tensor<4xf32>)
// CHECK-NEXT: norm.moments %{{.*}} mask(%{{.*}} : tensor<4x8xi1>) axes [1] about zero compute f64 {tag} : tensor<4x8xbf16> -> count(tensor<4xi64>) m2(tensor<4xf64>)
// CHECK-NEXT: norm.moments %{{.*}} axes [0, 1] about mean : tensor<4x8xbf16> -> count(tensor<i64>)
// CHECK-NEXT: norm.moments %{{.*}} axes [0] about mean : tensor<4x8xbf16> -> mean(tensor<8xf64>)
// CHECK-NEXT: norm.moments %{{.*}} axes [0] about zero : tensor<4x8xbf16> -> m2(tensor<8xf32>)
func.func @moments(%x: tensor<4x8xbf16>, %k: tensor<4x8xi1>)
    -> (tensor<4xf32>, tensor<4xf64>, tensor<i64>, tensor<8xf64>, tensor<8xf32>) {
  %n0, %mean0, %q0 = norm.moments %x axes [1] about mean
    : tensor<4x8xbf16> -> count(tensor<4xi64>) mean(tensor<4xf32>) m2(tensor<4xf32>)
  %n1, %q1 = norm.moments %x mask(%k : tensor<4x8xi1>) axes [1] about zero compute f64 {tag}
    : tensor<4x8xbf16> -> count(tensor<4xi64>) m2(tensor<4xf64>)
  %n2 = norm.moments %x axes [0, 1] about mean : tensor<4x8xbf16> -> count(tensor<i64>)
  %mean3 = norm.moments %x axes [0] about mean : tensor<4x8xbf16> -> mean(tensor<8xf64>)
  %q4 = norm.moments %x axes [0] about zero : tensor<4x8xbf16> -> m2(tensor<8xf32>)
  return %q0, %q1, %n2, %mean3, %q4 : tensor<4xf32>, tensor<4xf64>, tensor<i64>, tensor<8xf64>, tensor<8xf32>
}

// CHECK-LABEL: func @combine_moments
// CHECK: norm.combine_moments count(%{{.*}} : tensor<?x8xi64>) mean(%{{.*}} : tensor<?x8xf64>) m2(%{{.*}} : tensor<?x8xf32>) -> count(tensor<8xi64>) mean(tensor<8xf64>) m2(tensor<8xf64>)
// CHECK-NEXT: norm.combine_moments count(%{{.*}} : tensor<?x8xi64>) m2(%{{.*}} : tensor<?x8xf32>) compute f64 {tag} -> m2(tensor<8xf64>)
// CHECK-NEXT: norm.combine_moments count(%{{.*}} : tensor<?x8xi64>) m2(%{{.*}} : tensor<?x8xf32>) -> count(tensor<8xi64>)
func.func @combine_moments(%n: tensor<?x8xi64>, %m: tensor<?x8xf64>, %q: tensor<?x8xf32>)
    -> (tensor<8xf64>, tensor<8xf64>, tensor<8xi64>) {
  %n0, %m0, %q0 = norm.combine_moments count(%n : tensor<?x8xi64>) mean(%m : tensor<?x8xf64>)
    m2(%q : tensor<?x8xf32>) -> count(tensor<8xi64>) mean(tensor<8xf64>) m2(tensor<8xf64>)
  %q1 = norm.combine_moments count(%n : tensor<?x8xi64>) m2(%q : tensor<?x8xf32>) compute f64 {tag} -> m2(tensor<8xf64>)
  %n2 = norm.combine_moments count(%n : tensor<?x8xi64>) m2(%q : tensor<?x8xf32>) -> count(tensor<8xi64>)
  return %q0, %q1, %n2 : tensor<8xf64>, tensor<8xf64>, tensor<8xi64>
}

// CHECK-LABEL: func @rstd
// CHECK: norm.rstd %{{.*}} count(%{{.*}} : tensor<8xi64>) epsilon max_inside 1.000000e-05 compute f32 correction 1 zero_policy zero : tensor<8xf64> -> tensor<8xf32> variance(tensor<8xf64>)
// CHECK-NEXT: norm.rstd %{{.*}} epsilon none : tensor<8xf64> -> tensor<8xf64>
func.func @rstd(%q: tensor<8xf64>, %n: tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf64>) {
  %r0, %v0 = norm.rstd %q count(%n : tensor<8xi64>) epsilon max_inside 1.0e-5 compute f32 correction 1 zero_policy zero
    : tensor<8xf64> -> tensor<8xf32> variance(tensor<8xf64>)
  %r1 = norm.rstd %q epsilon none : tensor<8xf64> -> tensor<8xf64>
  return %r0, %r1 : tensor<8xf32>, tensor<8xf64>
}

// CHECK-LABEL: func @normalize
// CHECK: norm.normalize %{{.*}} mean(%{{.*}} : tensor<4xf64>) rstd(%{{.*}} : tensor<4xf32>) scale(%{{.*}} : tensor<4xf16>) shift(%{{.*}} : tensor<4xf16>) axes [1] affine_axes [0] scale_offset 1.000000e+00 affine_in result : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK-NEXT: norm.normalize %{{.*}} rstd(%{{.*}} : tensor<4xf64>) axes [1] compute f64 : tensor<4x8xbf16> -> tensor<4x8xbf16>
func.func @normalize(%x: tensor<4x8xbf16>, %m: tensor<4xf64>, %r: tensor<4xf32>, %r64: tensor<4xf64>, %g: tensor<4xf16>)
    -> (tensor<4x8xf32>, tensor<4x8xbf16>) {
  %y0 = norm.normalize %x mean(%m : tensor<4xf64>) rstd(%r : tensor<4xf32>) scale(%g : tensor<4xf16>)
    shift(%g : tensor<4xf16>) axes [1] affine_axes [0] scale_offset 1.0 affine_in result
    : tensor<4x8xbf16> -> tensor<4x8xf32>
  %y1 = norm.normalize %x rstd(%r64 : tensor<4xf64>) axes [1] compute f64 : tensor<4x8xbf16> -> tensor<4x8xbf16>
  return %y0, %y1 : tensor<4x8xf32>, tensor<4x8xbf16>
}

// CHECK-LABEL: func @update_running
// CHECK: norm.update_running %{{.*}}, %{{.*}} count(%{{.*}} : tensor<8xi64>) statistic mean momentum 1.000000e-01 : tensor<8xf32>, tensor<8xf64> -> tensor<8xf32>
// CHECK-NEXT: norm.update_running %{{.*}}, %{{.*}} count(%{{.*}} : tensor<8xi64>) statistic variance momentum(%{{.*}} : f32) running_correction 0 compute f32 : tensor<8xf32>, tensor<8xf64> -> tensor<8xf16>
func.func @update_running(%old: tensor<8xf32>, %new: tensor<8xf64>, %n: tensor<8xi64>, %a: f32)
    -> (tensor<8xf32>, tensor<8xf16>) {
  %0 = norm.update_running %old, %new count(%n : tensor<8xi64>) statistic mean momentum 0.1
    : tensor<8xf32>, tensor<8xf64> -> tensor<8xf32>
  %1 = norm.update_running %old, %new count(%n : tensor<8xi64>) statistic variance momentum(%a : f32)
    running_correction 0 compute f32 : tensor<8xf32>, tensor<8xf64> -> tensor<8xf16>
  return %0, %1 : tensor<8xf32>, tensor<8xf16>
}

// CHECK-LABEL: func @backward
// CHECK: norm.backward_moments %{{.*}}, %{{.*}} mean(%{{.*}} : tensor<4xf64>) rstd(%{{.*}} : tensor<4xf32>) scale(%{{.*}} : tensor<4xf16>) mask(%{{.*}} : tensor<4x8xi1>) axes [1] affine_axes [0] scale_offset 1.000000e+00 affine_in result : tensor<4x8xf32>, tensor<4x8xbf16> -> sum_g(tensor<4xf64>) sum_gx(tensor<4xf32>) dscale(tensor<4xf16>) dshift(tensor<4xf32>)
// CHECK-NEXT: norm.backward_moments %{{.*}}, %{{.*}} rstd(%{{.*}} : tensor<4xf32>) axes [1] : tensor<4x8xf32>, tensor<4x8xbf16> -> sum_gx(tensor<4xf32>)
// CHECK-NEXT: norm.backward_moments %{{.*}}, %{{.*}} rstd(%{{.*}} : tensor<4xf32>) axes [1] affine_axes [0, 1] : tensor<4x8xf32>, tensor<4x8xbf16> -> dscale(tensor<4x8xf32>)
// CHECK-NEXT: norm.backward_normalize %{{.*}}, %{{.*}} mean(%{{.*}} : tensor<4xf64>) rstd(%{{.*}} : tensor<4xf32>) scale(%{{.*}} : tensor<4xf16>) variance(%{{.*}} : tensor<4xf32>) sum_g(%{{.*}} : tensor<4xf64>) sum_gx(%{{.*}} : tensor<4xf32>) count(%{{.*}} : tensor<4xi64>) mask(%{{.*}} : tensor<4x8xi1>) axes [1] epsilon max_outside 1.000000e-03 affine_axes [0] correction 1 scale_offset 1.000000e+00 : tensor<4x8xf32>, tensor<4x8xbf16> -> tensor<4x8xf16>
// CHECK-NEXT: norm.backward_normalize %{{.*}}, %{{.*}} rstd(%{{.*}} : tensor<4xf32>) sum_gx(%{{.*}} : tensor<4xf32>) axes [1] epsilon none : tensor<4x8xf32>, tensor<4x8xbf16> -> tensor<4x8xbf16>
func.func @backward(%dy: tensor<4x8xf32>, %x: tensor<4x8xbf16>, %m: tensor<4xf64>, %r: tensor<4xf32>, %g: tensor<4xf16>,
    %k: tensor<4x8xi1>, %n: tensor<4xi64>)
    -> (tensor<4xf16>, tensor<4xf32>, tensor<4x8xf32>, tensor<4x8xf16>, tensor<4x8xbf16>) {
  %sg, %sgx, %dg, %db = norm.backward_moments %dy, %x mean(%m : tensor<4xf64>) rstd(%r : tensor<4xf32>)
    scale(%g : tensor<4xf16>) mask(%k : tensor<4x8xi1>) axes [1] affine_axes [0] scale_offset 1.0 affine_in result
    : tensor<4x8xf32>, tensor<4x8xbf16> -> sum_g(tensor<4xf64>) sum_gx(tensor<4xf32>) dscale(tensor<4xf16>) dshift(tensor<4xf32>)
  %sgx1 = norm.backward_moments %dy, %x rstd(%r : tensor<4xf32>) axes [1] : tensor<4x8xf32>, tensor<4x8xbf16> -> sum_gx(tensor<4xf32>)
  %dg2 = norm.backward_moments %dy, %x rstd(%r : tensor<4xf32>) axes [1] affine_axes [0, 1]
    : tensor<4x8xf32>, tensor<4x8xbf16> -> dscale(tensor<4x8xf32>)
  %dx0 = norm.backward_normalize %dy, %x mean(%m : tensor<4xf64>) rstd(%r : tensor<4xf32>) scale(%g : tensor<4xf16>)
    variance(%r : tensor<4xf32>) sum_g(%sg : tensor<4xf64>) sum_gx(%sgx : tensor<4xf32>) count(%n : tensor<4xi64>)
    mask(%k : tensor<4x8xi1>) axes [1] epsilon max_outside 1.0e-3 affine_axes [0] correction 1 scale_offset 1.0
    : tensor<4x8xf32>, tensor<4x8xbf16> -> tensor<4x8xf16>
  %dx1 = norm.backward_normalize %dy, %x rstd(%r : tensor<4xf32>) sum_gx(%sgx1 : tensor<4xf32>) axes [1] epsilon none
    : tensor<4x8xf32>, tensor<4x8xbf16> -> tensor<4x8xbf16>
  return %dg, %sgx1, %dg2, %dx0, %dx1 : tensor<4xf16>, tensor<4xf32>, tensor<4x8xf32>, tensor<4x8xf16>, tensor<4x8xbf16>
}

// One spelling per meaning; an op without axes gets none.
// CANON-LABEL: func @spelling
// CANON-NEXT: norm.moments %{{.*}} axes [1, 2] about mean : tensor<2x4x8xf32> -> m2(tensor<2xf32>)
// CANON-NEXT: norm.normalize %{{.*}} rstd(%{{.*}} : tensor<2xf32>) scale(%{{.*}} : tensor<4x8xf32>) axes [1, 2] : tensor
// CANON-NEXT: norm.rstd %{{.*}} epsilon none : tensor<2xf32> -> tensor<2xf32>
// CANON-NEXT: norm.combine_moments count(%{{.*}} : tensor<4x8xi64>) m2(%{{.*}} : tensor<4x8xf32>) -> m2(tensor<8xf32>)
func.func @spelling(%x: tensor<2x4x8xf32>, %g: tensor<4x8xf32>, %r: tensor<2xf32>, %n: tensor<4x8xi64>)
    -> (tensor<2xf32>, tensor<2x4x8xf32>, tensor<2xf32>, tensor<8xf32>) {
  %0 = norm.moments %x axes [-1, 1] about mean compute f32 : tensor<2x4x8xf32> -> m2(tensor<2xf32>)
  %1 = norm.normalize %x rstd(%r : tensor<2xf32>) scale(%g : tensor<4x8xf32>) axes [2, 1] affine_axes [1, 2]
    compute f32 scale_offset 0.0 : tensor<2x4x8xf32> -> tensor<2x4x8xf32>
  %2 = norm.rstd %r epsilon none compute f32 correction 0 : tensor<2xf32> -> tensor<2xf32>
  %3 = norm.combine_moments count(%n : tensor<4x8xi64>) m2(%g : tensor<4x8xf32>) compute f32 -> m2(tensor<8xf32>)
  return %0, %1, %2, %3 : tensor<2xf32>, tensor<2x4x8xf32>, tensor<2xf32>, tensor<8xf32>
}
