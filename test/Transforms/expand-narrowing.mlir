// RUN: norm-opt %s --norm-expand-narrowing | FileCheck %s
// RUN: norm-opt %s --norm-expand-narrowing --convert-vector-to-llvm --convert-math-to-llvm --convert-func-to-llvm --convert-arith-to-llvm --reconcile-unrealized-casts | mlir-runner -e main --entry-point-result=void --shared-libs=%mlir_lib_dir/libmlir_c_runner_utils.so | FileCheck %s --check-prefix=EXEC

// CHECK-LABEL: func @vector
// CHECK-NOT: arith.truncf {{.*}} : vector<4xf64> to vector<4xbf16>
// CHECK: arith.truncf {{.*}} : vector<4xf64> to vector<4xf32>
// CHECK: arith.truncf {{.*}} : vector<4xf32> to vector<4xbf16>
func.func @vector(%x: vector<4xf64>) -> vector<4xbf16> {
  %0 = arith.truncf %x : vector<4xf64> to vector<4xbf16>
  return %0 : vector<4xbf16>
}

// f32 and wider results, and f32 operands, are left to the target.
// CHECK-LABEL: func @others
// CHECK-NEXT: arith.truncf %{{.*}} : f64 to f32
// CHECK-NEXT: arith.truncf %{{.*}} : f32 to bf16
// CHECK-NEXT: return
func.func @others(%x: f64, %y: f32) -> (f32, bf16) {
  %0 = arith.truncf %x : f64 to f32
  %1 = arith.truncf %y : f32 to bf16
  return %0, %1 : f32, bf16
}

// LLVM would add halves here: 80000 is infinite as one.
// CHECK-LABEL: func @mixed
// CHECK: %[[BITS:.*]] = arith.bitcast %{{.*}} : vector<4xbf16> to vector<4xi16>
// CHECK: %[[WIDE:.*]] = arith.extui %[[BITS]] : vector<4xi16> to vector<4xi32>
// CHECK: %[[SHIFTED:.*]] = arith.shli %[[WIDE]], %{{.*}} : vector<4xi32>
// CHECK: arith.bitcast %[[SHIFTED]] : vector<4xi32> to vector<4xf32>
// CHECK: arith.truncf %{{.*}} : vector<4xf32> to vector<4xf16>
func.func @mixed(%x: vector<4xf16>, %r: vector<4xbf16>) -> vector<4xf16> {
  %0 = arith.extf %x : vector<4xf16> to vector<4xf32>
  %1 = arith.extf %r : vector<4xbf16> to vector<4xf32>
  %2 = arith.addf %0, %1 : vector<4xf32>
  %3 = arith.truncf %2 : vector<4xf32> to vector<4xf16>
  return %3 : vector<4xf16>
}

func.func private @printU64(i64)
func.func private @printNewline()
func.func private @show(%x: f64) attributes {no_inline} {
  %b = arith.truncf %x : f64 to bf16
  %i = arith.bitcast %b : bf16 to i16
  %w = arith.extui %i : i16 to i64
  call @printU64(%w) : (i64) -> ()
  call @printNewline() : () -> ()
  return
}

// 1 + 2^-8 is a tie between 1 and the next bf16; a little more must go up,
// also when the little is lost in f32. Rounding twice gives 16256 (1.0).
func.func @main() {
  %tie = arith.constant 1.00390625 : f64
  %more = arith.constant 0x3FF0100000000001 : f64
  %minus = arith.constant 0xBFF0100000000001 : f64
  %less = arith.constant 0x3FF00FFFFFFFFFFF : f64
  %huge = arith.constant 1.0e300 : f64
  %nan = arith.constant 0x7FF8000000000000 : f64
  // EXEC: 16256
  call @show(%tie) : (f64) -> ()
  // EXEC-NEXT: 16257
  call @show(%more) : (f64) -> ()
  // EXEC-NEXT: 49025
  call @show(%minus) : (f64) -> ()
  // EXEC-NEXT: 16256
  call @show(%less) : (f64) -> ()
  // EXEC-NEXT: 32640
  call @show(%huge) : (f64) -> ()
  // EXEC-NEXT: 32704
  call @show(%nan) : (f64) -> ()
  return
}
