// RUN: norm-opt %s --convert-scf-to-openmp --norm-outline-parallel-body | FileCheck %s
// Control flow in the bodies can be lowered afterwards.
// RUN: norm-opt %s --convert-scf-to-openmp --norm-outline-parallel-body --convert-scf-to-cf | FileCheck %s --check-prefix=CF
// CF-NOT: memref.alloca_scope
// CF: cf.cond_br

// An op of unknown effects keeps upstream's scope; there is nothing to free.
// CHECK-LABEL: func.func @no_allocation(
// CHECK: omp.parallel
// CHECK: func.call @no_allocation__range_0(
func.func @no_allocation(%m: memref<?x4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    scf.for %j = %c0 to %c4 step %c1 {
      memref.store %one, %m[%i, %j] : memref<?x4xf32>
    }
    llvm.call_intrinsic "llvm.x86.sse.sfence"() : () -> ()
    scf.reduce
  }
  return
}

// A stack allocation moves to the frame of a function, and constants with it.
// CHECK-LABEL: func.func @allocation(
// CHECK: omp.parallel
// CHECK: func.call @allocation__range_0(
// CHECK-LABEL: func.func private @allocation__body_0(
// CHECK-SAME: llvm.linkage = #llvm.linkage<internal>
// CHECK-DAG: arith.constant 1.000000e+00 : f32
// CHECK-DAG: memref.alloca() : memref<4xf32>
// CHECK: scf.for
// CHECK: return
func.func @allocation(%m: memref<?x4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %scratch = memref.alloca() : memref<4xf32>
    scf.for %j = %c0 to %c4 step %c1 {
      memref.store %one, %scratch[%j] : memref<4xf32>
      %v = memref.load %scratch[%j] : memref<4xf32>
      memref.store %v, %m[%i, %j] : memref<?x4xf32>
    }
    scf.reduce
  }
  return
}

// CHECK-LABEL: func.func private @no_allocation__range_0(
// CHECK: scf.for
// CHECK-NOT: memref.alloca_scope
// CHECK: scf.for
// CHECK: llvm.call_intrinsic "llvm.x86.sse.sfence"
// CHECK: return
// CHECK-LABEL: func.func private @allocation__range_0(
// CHECK-SAME: %[[M:.*]]: memref<?x4xf32>
// CHECK: scf.for
// CHECK: func.call @allocation__body_0({{.*}}%[[M]]{{.*}})

// A mask is made where it is used.
// CHECK-LABEL: func.func private @masked__range_0(
// CHECK-NOT: vector<8xi1>
// CHECK: vector.create_mask %{{.*}} : vector<8xi1>
// CHECK: vector.maskedstore
func.func @masked(%m: memref<?x8xf32>, %v: vector<8xf32>, %active: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %mask = vector.create_mask %active : vector<8xi1>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    vector.maskedstore %m[%i, %c0], %mask, %v : memref<?x8xf32>, vector<8xi1>, vector<8xf32>
    scf.reduce
  }
  return
}
