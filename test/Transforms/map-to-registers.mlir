// RUN: norm-opt %s --norm-map-to-registers | FileCheck %s

// Halves are added until one element is left: three levels for eight columns,
// never an ordered chain.
// CHECK-LABEL: func @tree
// CHECK-NOT: vector.reduction
// CHECK-NOT: multi_reduction
// CHECK: vector.extract %{{.*}}[0] : vector<8xf32>
// CHECK: vector.shuffle %{{.*}} [0, 1, 2, 3]
// CHECK: vector.shuffle %{{.*}} [4, 5, 6, 7]
// CHECK: arith.addf %{{.*}} : vector<4xf32>
// CHECK: arith.addf %{{.*}} : vector<2xf32>
// CHECK: arith.addf %{{.*}} : vector<1xf32>
// CHECK: vector.extract %{{.*}}[1] : vector<8xf32>
// CHECK: vector.from_elements
func.func @tree(%v: vector<2x8xf32>, %z: vector<2xf32>) -> vector<2xf32> {
  %0 = vector.multi_reduction <add>, %v, %z [1] : vector<2x8xf32> to vector<2xf32>
  return %0 : vector<2xf32>
}

// CHECK-LABEL: func @serial
// CHECK-NOT: scf.forall
// CHECK: scf.for
// CHECK: scf.forall
// CHECK-NOT: norm.strategy
func.func @serial(%x: memref<8xf32>, %f: f32) {
  scf.forall (%i) in (8) {
    memref.store %f, %x[%i] : memref<8xf32>
  } {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>}
  scf.forall (%i) in (8) {
    memref.store %f, %x[%i] : memref<8xf32>
  } {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = true>}
  return
}

// A masked tail in an axis of the buffer that is not next to the rows' axis:
// one transfer per row, each with its row of the mask.
// CHECK-LABEL: func @masked_rows
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<2x3x3xf32>, %[[Y:[a-z0-9]+]]: memref<2x3x3xf32>, %[[J:[a-z0-9]+]]: index, %[[M:[a-z0-9]+]]: vector<2x4xi1>
// CHECK-DAG: %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG: %[[M0:.+]] = vector.extract %[[M]][0]
// CHECK-DAG: %[[ROW0:.+]] = vector.transfer_read %[[X]][%[[C0]], %[[J]], %[[C0]]], %{{.+}}, %[[M0]] : memref<2x3x3xf32>, vector<4xf32>
// CHECK-DAG: %[[I1:.+]] = arith.addi %[[C0]], %c1
// CHECK-DAG: %[[M1:.+]] = vector.extract %[[M]][1]
// CHECK-DAG: %[[ROW1:.+]] = vector.transfer_read %[[X]][%[[I1]], %[[J]], %[[C0]]], %{{.+}}, %[[M1]] : memref<2x3x3xf32>, vector<4xf32>
// CHECK: vector.transfer_write %{{.+}}, %[[Y]][%[[C0]], %[[J]], %[[C0]]], %{{.+}} : vector<4xf32>, memref<2x3x3xf32>
// CHECK: vector.transfer_write %{{.+}}, %[[Y]][%{{.+}}, %[[J]], %[[C0]]], %{{.+}} : vector<4xf32>, memref<2x3x3xf32>
func.func @masked_rows(%x: memref<2x3x3xf32>, %y: memref<2x3x3xf32>, %j: index, %m: vector<2x4xi1>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %v = vector.transfer_read %x[%c0, %j, %c0], %pad, %m {permutation_map = affine_map<(d0, d1, d2) -> (d0, d2)>, in_bounds = [true, false]} : memref<2x3x3xf32>, vector<2x4xf32>
  vector.transfer_write %v, %y[%c0, %j, %c0], %m {permutation_map = affine_map<(d0, d1, d2) -> (d0, d2)>, in_bounds = [true, false]} : vector<2x4xf32>, memref<2x3x3xf32>
  return
}
