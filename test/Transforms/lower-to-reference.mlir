// RUN: norm-opt %s --norm-lower-to-reference --canonicalize --cse | FileCheck %s

// One f64 copy of x, a compensated sum for the mean, one sweep for the sums of
// the differences and their squares, one for the result. Nothing in f32.
// CHECK-LABEL: func.func @layer(
// CHECK-SAME: %[[X:.*]]: tensor<?x7xf32>
// CHECK: linalg.generic {{.*}} ins(%[[X]] : tensor<?x7xf32>) outs(%{{.*}} : tensor<?x7xf64>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.extf %{{.*}} : f32 to f64
// CHECK: linalg.generic {{.*}}"reduction"]{{.*}} outs(%{{.*}}, %{{.*}} : tensor<?xf64>, tensor<?xf64>)
// CHECK: linalg.generic {{.*}}"reduction"]{{.*}} outs({{.*}} : tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>)
// CHECK-NOT: {{(addf|subf|mulf|divf|sqrt).*}} : f32
// CHECK: math.sqrt {{.*}} : f64
// CHECK-NOT: {{(addf|subf|mulf|divf|sqrt).*}} : f32
// CHECK: arith.truncf %{{.*}} : f64 to f32
// CHECK: return
func.func @layer(%x: tensor<?x7xf32>, %g: tensor<7xf32>) -> tensor<?x7xf32> {
  %y = norm.layer_norm %x scale(%g : tensor<7xf32>) axes [1] epsilon inside_sqrt 1.0e-5
      : tensor<?x7xf32> -> tensor<?x7xf32>
  return %y : tensor<?x7xf32>
}

// A mean square subtracts no mean.
// CHECK-LABEL: func.func @rms(
// CHECK-COUNT-1: "reduction"
// CHECK-NOT: "reduction"
// CHECK: return
func.func @rms(%x: tensor<4x7xf32>) -> tensor<4x7xf32> {
  %y = norm.rms_norm %x axes [1] epsilon none : tensor<4x7xf32> -> tensor<4x7xf32>
  return %y : tensor<4x7xf32>
}

// To bf16 by integer arithmetic on an f32 rounded to odd.
// CHECK-LABEL: func.func @to_bf16(
// CHECK: arith.truncf %{{.*}} : f64 to f32
// CHECK: arith.bitcast %{{.*}} : f32 to i32
// CHECK: arith.ori
// CHECK: arith.shrui
// CHECK: arith.bitcast %{{.*}} : i16 to bf16
// CHECK-NOT: arith.truncf %{{.*}} to bf16
// CHECK: return
func.func @to_bf16(%x: tensor<4x7xbf16>) -> tensor<4x7xbf16> {
  %y = norm.rms_norm %x axes [1] epsilon none : tensor<4x7xbf16> -> tensor<4x7xbf16>
  return %y : tensor<4x7xbf16>
}
