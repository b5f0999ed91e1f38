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

// A vector that skips a dimension reads a view without it.
// CHECK-LABEL: func @skip
// CHECK: memref.subview %{{.*}}[0, %{{.*}}, 0] [2, 1, 8] [1, 1, 1] : memref<2x3x8xf32> to memref<2x1x8xf32, {{.*}}>
// CHECK: %[[V:.*]] = memref.reinterpret_cast %{{.*}} sizes: [2, 8], strides: [24, 1] : memref<f32> to memref<2x8xf32, strided<[24, 1], offset: ?>>
// CHECK: vector.transfer_read %[[V]][%{{.*}}, %{{.*}}], %{{.*}}, %{{.*}} {in_bounds = [true, true]} : memref<2x8xf32, {{.*}}>, vector<2x4xf32>
func.func @skip(%x: memref<2x3x8xf32>, %i: index, %j: index, %m: vector<2x4xi1>) -> vector<2x4xf32> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %0 = vector.transfer_read %x[%c0, %i, %j], %z, %m {in_bounds = [true, true], permutation_map = affine_map<(d0, d1, d2) -> (d0, d2)>} : memref<2x3x8xf32>, vector<2x4xf32>
  return %0 : vector<2x4xf32>
}
