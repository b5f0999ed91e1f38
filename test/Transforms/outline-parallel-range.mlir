// RUN: norm-opt %s --norm-outline-parallel-body | FileCheck %s

// What runs on one thread or on all is a function of a range of steps: OpenMP's
// own serial region, or its sharing of a loop, costs as much as a norm of a row.
// LLVM must not copy it to both calls.
// CHECK-LABEL: func.func @conditional(
// CHECK-SAME: %[[M:.*]]: memref<?x4xf32>, %[[N:.*]]: index, %[[WORTH:.*]]: i1
// CHECK: %[[ROWS:.*]] = arith.ceildivsi
// CHECK: %[[COLUMNS:.*]] = arith.ceildivsi
// CHECK: %[[ALL:.*]] = arith.muli %[[ROWS]], %[[COLUMNS]]
// CHECK: scf.if %[[WORTH]] {
// CHECK-NEXT: omp.parallel {
// CHECK: %[[T:.*]] = func.call @omp_get_thread_num() : () -> i32
// CHECK: %[[C:.*]] = func.call @omp_get_num_threads() : () -> i32
// CHECK: %[[BEFORE:.*]] = arith.muli %[[ALL]], {{.*}}
// CHECK: %[[FROM:.*]] = arith.divui %[[BEFORE]],
// CHECK: %[[UPTO:.*]] = arith.muli %[[ALL]], {{.*}}
// CHECK: %[[TO:.*]] = arith.divui %[[UPTO]],
// CHECK-NEXT: func.call @conditional__range_0({{.*}}%[[FROM]], %[[TO]])
// CHECK-NEXT: omp.terminator
// CHECK: } else {
// CHECK-NEXT: func.call @conditional__range_0({{.*}}%c0{{[_0-9]*}}, %[[ALL]])
// CHECK-NEXT: }
// CHECK-NEXT: return
// The functions come last.
// CHECK-LABEL: func.func @no_loop(
// CHECK: omp.parallel if(
// CHECK-LABEL: func.func @clauses(
// CHECK: omp.wsloop schedule(dynamic)
// The last thread takes the first steps.
// CHECK-LABEL: func.func @mirrored(
// CHECK: %[[T:.*]] = arith.index_cast
// CHECK: %[[C:.*]] = arith.index_cast
// CHECK: %[[NEXT:.*]] = arith.addi %[[T]], %[[ONE:.*]] : index
// CHECK: %[[OTHER:.*]] = arith.subi %[[C]], %[[NEXT]]
// CHECK: %[[END:.*]] = arith.addi %[[OTHER]], %[[ONE]]
// CHECK: arith.muli %{{.*}}, %[[OTHER]]
// CHECK: arith.muli %{{.*}}, %[[END]]
// CHECK-NOT: norm.mirrored
// CHECK: return
// CHECK-LABEL: func.func private @conditional__body_0(
// CHECK: memref.alloca() : memref<4xf32>
// CHECK-LABEL: func.func private @conditional__range_0(
// CHECK-SAME: %[[LOW:[a-z0-9]*]]: index, %[[HIGH:[a-z0-9]*]]: index)
// CHECK-SAME: llvm.linkage = #llvm.linkage<internal>, passthrough = ["noinline"]
// CHECK: scf.for %[[NUMBER:.*]] = %[[LOW]] to %[[HIGH]] step %c1
// CHECK: arith.remui %[[NUMBER]]
// CHECK: arith.divui %[[NUMBER]]
// CHECK: func.call @conditional__body_0(
// CHECK: }
// CHECK-NEXT: llvm.call_intrinsic "llvm.x86.sse.sfence"() : () -> ()
// CHECK-NEXT: return
func.func @conditional(%m: memref<?x4xf32>, %n: index, %worth: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  omp.parallel if(%worth) {
    omp.wsloop {
      omp.loop_nest (%i, %j) : index = (%c0, %c0) to (%n, %c4) step (%c1, %c2) collapse(2) {
        memref.alloca_scope {
          %scratch = memref.alloca() : memref<4xf32>
          %v = memref.load %scratch[%j] : memref<4xf32>
          memref.store %v, %m[%i, %j] : memref<?x4xf32>
        }
        omp.yield
      }
    }
    llvm.call_intrinsic "llvm.x86.sse.sfence"() : () -> ()
    omp.terminator
  }
  return
}

// Any other region stays.
func.func @no_loop(%m: memref<4xf32>, %worth: i1) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  omp.parallel if(%worth) {
    memref.store %one, %m[%c0] : memref<4xf32>
    omp.terminator
  }
  return
}

func.func @clauses(%m: memref<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  omp.parallel {
    omp.wsloop schedule(dynamic) {
      omp.loop_nest (%i) : index = (%c0) to (%n) step (%c1) {
        memref.store %one, %m[%i] : memref<4xf32>
        omp.yield
      }
    }
    omp.terminator
  }
  return
}

func.func @mirrored(%m: memref<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  omp.parallel {
    omp.wsloop {
      omp.loop_nest (%i) : index = (%c0) to (%n) step (%c1) {
        memref.store %one, %m[%i] : memref<4xf32>
        omp.yield
      }
    }
    omp.terminator
  } {norm.mirrored}
  return
}
