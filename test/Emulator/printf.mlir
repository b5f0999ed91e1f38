// gpu.printf prints in the order in which threads run.
// RUN: %to_gpu %s -o %t
// RUN: %run_emulated -e main %t | FileCheck %s

// CHECK: thread 0 of 2: 1.50, 100%
// CHECK-NEXT: thread 1 of 2: 2.50, 100%
func.func @main() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c2, %ny = %c1, %nz = %c1) {
    %i = arith.index_cast %t : index to i32
    %k = arith.index_cast %n : index to i64
    %f = arith.sitofp %i : i32 to f32
    %h = arith.constant 1.5 : f32
    %v = arith.addf %f, %h : f32
    gpu.printf "thread %d of %lld: %.2f, 100%%\0A", %i, %k, %v : i32, i64, f32
    gpu.terminator
  }
  return
}
