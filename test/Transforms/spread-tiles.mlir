// RUN: norm-opt %s --norm-spread-tiles | FileCheck %s
// RUN: norm-opt %s --norm-spread-tiles=threads=false | FileCheck %s --check-prefix=SERIAL
// RUN: norm-opt %s --norm-spread-tiles=isa=any | FileCheck %s --check-prefix=ANY

// No threads, no OpenMP; no x86, no fence of its.
// SERIAL-NOT: omp.
// ANY-NOT: sfence

// CHECK-LABEL: func @sequential
// CHECK-NOT: omp
// CHECK: scf.for
// CHECK-NOT: sfence
func.func @sequential(%y: memref<8x4xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  scf.forall (%i) in (8) {
    memref.store %v, %y[%i, %c0] : memref<8x4xf32>
  } {norm.strategy = #norm.cpu<rows = 1, columns = 4, parallel = false>}
  return
}

// A thread's fence comes after its part; nothing is left of the strategy.
// CHECK-LABEL: func @spread
// CHECK: omp.parallel {
// CHECK: omp.wsloop {
// CHECK: omp.loop_nest (%{{.*}}, %{{.*}}) : index = (%c0{{.*}}, %c0{{.*}}) to (%{{.*}}, %{{.*}}) step
// CHECK: memref.store
// CHECK: omp.yield
// CHECK: llvm.call_intrinsic "llvm.x86.sse.sfence"
// CHECK-NEXT: omp.terminator
// CHECK-NOT: norm.
// CHECK: return
// SERIAL-LABEL: func @spread
// SERIAL: scf.for
// SERIAL: scf.for
// SERIAL: llvm.call_intrinsic "llvm.x86.sse.sfence"
// SERIAL-NEXT: return
func.func @spread(%y: memref<8x4xf32>, %v: f32) {
  scf.forall (%i, %j) in (8, 4) {
    memref.store %v, %y[%i, %j] : memref<8x4xf32>
  } {norm.strategy = #norm.cpu<rows = 1, columns = 4, parallel = true>, norm.streams}
  return
}

// Bytes that only run time knows: 4 for every element, each buffer once.
// CHECK-LABEL: func @sized
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x4xf32>, %[[Y:[a-z0-9]+]]: memref<?x4xf32>
// CHECK: %[[X_ROWS:.*]] = memref.dim %[[X]]
// CHECK: %[[X_BYTES:.*]] = arith.muli %{{.*}}, %[[X_ROWS]]
// CHECK: %[[Y_ROWS:.*]] = memref.dim %[[Y]]
// CHECK: %[[Y_BYTES:.*]] = arith.muli %{{.*}}, %[[Y_ROWS]]
// CHECK: %[[BYTES:.*]] = arith.addi %[[X_BYTES]], %[[Y_BYTES]]
// CHECK: %[[LARGE:.*]] = arith.cmpi ugt, %[[BYTES]], %c1000
// CHECK: omp.parallel if(%[[LARGE]])
func.func @sized(%x: memref<?x4xf32>, %y: memref<?x4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  scf.forall (%i) in (%n) {
    %row = memref.subview %x[%i, 0] [1, 4] [1, 1] : memref<?x4xf32> to memref<1x4xf32, strided<[4, 1], offset: ?>>
    %v = memref.load %row[%c0, %c0] : memref<1x4xf32, strided<[4, 1], offset: ?>>
    %w = memref.load %x[%i, %c0] : memref<?x4xf32>
    %s = arith.addf %v, %w : f32
    memref.store %s, %y[%i, %c0] : memref<?x4xf32>
  } {norm.strategy = #norm.cpu<rows = 1, columns = 4, parallel = true, serial_bytes = 1000>}
  return
}

// CHECK-LABEL: func @small
// CHECK-NOT: omp
// CHECK: scf.for
func.func @small(%y: memref<8x4xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  scf.forall (%i) in (8) {
    memref.store %v, %y[%i, %c0] : memref<8x4xf32>
  } {norm.strategy = #norm.cpu<rows = 1, columns = 4, parallel = true, serial_bytes = 1000>}
  return
}

// A thread is to take the share of its mirror image, whose tiles are the rows that
// it summed in a loop before, and are taken in the other order.
// CHECK-LABEL: func @mirrored
// CHECK: omp.parallel {
// CHECK: omp.wsloop
// CHECK: llvm.call_intrinsic "llvm.x86.sse.sfence"
// CHECK-NEXT: omp.terminator
// CHECK-NEXT: } {norm.mirrored}
// SERIAL-LABEL: func @mirrored
// SERIAL: scf.for %{{.*}} = %c0{{.*}} to %c8
func.func @mirrored(%y: memref<8x4xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  scf.forall (%i) = (0) to (8) step (2) {
    memref.store %v, %y[%i, %c0] : memref<8x4xf32>
  } {norm.mirrored, norm.strategy = #norm.cpu<rows = 2, columns = 4, parallel = true>, norm.streams}
  return
}
