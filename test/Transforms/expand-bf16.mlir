// RUN: norm-opt %s --norm-expand-bf16 | FileCheck %s

// CHECK-LABEL: func @widen
// CHECK: %[[BITS:.*]] = arith.bitcast %{{.*}} : vector<8xbf16> to vector<8xi16>
// CHECK: %[[WIDE:.*]] = arith.extui %[[BITS]] : vector<8xi16> to vector<8xi32>
// CHECK: %[[HIGH:.*]] = arith.shli %[[WIDE]], %{{.*}} : vector<8xi32>
// CHECK: arith.bitcast %[[HIGH]] : vector<8xi32> to vector<8xf32>
// CHECK-NOT: arith.extf
func.func @widen(%x: vector<8xbf16>) -> vector<8xf32> {
  %y = arith.extf %x : vector<8xbf16> to vector<8xf32>
  return %y : vector<8xf32>
}

// A NaN keeps its high bits and becomes quiet: rounding might carry it to an
// infinity or to a zero.
// CHECK-LABEL: func @round
// CHECK: arith.addi
// CHECK: %[[ROUNDED:.*]] = arith.addi
// CHECK: %[[QUIET:.*]] = arith.ori %{{.*}}, %{{.*}} : i32
// CHECK: %[[NAN:.*]] = arith.cmpf uno, %{{.*}} : f32
// CHECK: %[[CHOSEN:.*]] = arith.select %[[NAN]], %[[QUIET]], %[[ROUNDED]] : i32
// CHECK: arith.shrui %[[CHOSEN]]
// CHECK-NOT: arith.truncf
func.func @round(%x: f32) -> bf16 {
  %y = arith.truncf %x : f32 to bf16
  return %y : bf16
}

// f64 is rounded to f32 before (norm-expand-narrowing), f16 is not bf16.
// CHECK-LABEL: func @others
// CHECK: arith.truncf %{{.*}} : f64 to bf16
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func @others(%x: f64, %y: f32) -> (bf16, f16) {
  %a = arith.truncf %x : f64 to bf16
  %b = arith.truncf %y : f32 to f16
  return %a, %b : bf16, f16
}
