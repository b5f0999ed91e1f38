// RUN: norm-opt %s --norm-map-to-registers | FileCheck %s

// Two rows are halved at once: what one leaves and what the other leaves fill a
// vector. Then the halves of each half are added, until a lane is left of each.
// Never an ordered chain, and no row becomes a scalar.
// CHECK-LABEL: func @tree
// CHECK-NOT: vector.reduction
// CHECK-NOT: multi_reduction
// CHECK: %[[A:.*]] = vector.extract %{{.*}}[0] : vector<8xf32>
// CHECK: %[[B:.*]] = vector.extract %{{.*}}[1] : vector<8xf32>
// CHECK: %[[KEPT:.*]] = vector.shuffle %[[A]], %[[B]] [0, 1, 2, 3, 12, 13, 14, 15]
// CHECK: %[[MOVED:.*]] = vector.shuffle %[[A]], %[[B]] [4, 5, 6, 7, 8, 9, 10, 11]
// CHECK: %[[AB:.*]] = arith.addf %[[KEPT]], %[[MOVED]] : vector<8xf32>
// CHECK: %[[PAIRS:.*]] = vector.shuffle %[[AB]], %[[AB]] [2, 3, 0, 1, 6, 7, 4, 5]
// CHECK: %[[QUARTERS:.*]] = arith.addf %[[AB]], %[[PAIRS]]
// CHECK: %[[SINGLES:.*]] = vector.shuffle %[[QUARTERS]], %[[QUARTERS]] [1, 0, 3, 2, 5, 4, 7, 6]
// CHECK: %[[SUMS:.*]] = arith.addf %[[QUARTERS]], %[[SINGLES]]
// CHECK: vector.shuffle %[[SUMS]], %[[SUMS]] [0, 4]
// CHECK-NOT: vector.extract
// CHECK: arith.addf %{{.*}}, %{{.*}} : vector<2xf32>
func.func @tree(%v: vector<2x8xf32>, %z: vector<2xf32>) -> vector<2xf32> {
  %0 = vector.multi_reduction <add>, %v, %z [1] : vector<2x8xf32> to vector<2xf32>
  return %0 : vector<2xf32>
}

// A row alone: halves, down to a vector of one.
// CHECK-LABEL: func @row
// CHECK: vector.shuffle %{{.*}} [0, 1, 2, 3]
// CHECK: vector.shuffle %{{.*}} [4, 5, 6, 7]
// CHECK: arith.addf %{{.*}} : vector<4xf32>
// CHECK: arith.addf %{{.*}} : vector<2xf32>
// CHECK: arith.addf %{{.*}} : vector<1xf32>
// CHECK-NOT: vector.extract
// CHECK: return
func.func @row(%v: vector<1x8xf32>, %z: vector<1xf32>) -> vector<1xf32> {
  %0 = vector.multi_reduction <add>, %v, %z [1] : vector<1x8xf32> to vector<1xf32>
  return %0 : vector<1xf32>
}

// Rows meet the ones furthest away first, which leaves them in order.
// CHECK-LABEL: func @order
// CHECK-DAG: %[[R0:.*]] = vector.extract %{{.*}}[0]
// CHECK-DAG: %[[R1:.*]] = vector.extract %{{.*}}[1]
// CHECK-DAG: %[[R2:.*]] = vector.extract %{{.*}}[2]
// CHECK-DAG: %[[R3:.*]] = vector.extract %{{.*}}[3]
// CHECK: vector.shuffle %[[R0]], %[[R2]]
// CHECK: vector.shuffle %[[R1]], %[[R3]]
// CHECK-NOT: vector.shuffle {{.*}} [0, 1, 2, 3]
// CHECK: return
func.func @order(%v: vector<4x4xf64>, %z: vector<4xf64>) -> vector<4xf64> {
  %0 = vector.multi_reduction <add>, %v, %z [1] : vector<4x4xf64> to vector<4xf64>
  return %0 : vector<4xf64>
}

// More rows than lanes: as many at a time.
// CHECK-LABEL: func @many
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 1, 2, 3] : vector<2xf32>, vector<2xf32>
func.func @many(%v: vector<4x2xf32>, %z: vector<4xf32>) -> vector<4xf32> {
  %0 = vector.multi_reduction <add>, %v, %z [1] : vector<4x2xf32> to vector<4xf32>
  return %0 : vector<4xf32>
}

// Three rows do not halve; minnum is not commutative in the sign of a zero.
// CHECK-LABEL: func @apart
// CHECK: vector.from_elements {{.*}} : vector<3xf32>
// CHECK: vector.from_elements {{.*}} : vector<2xf32>
func.func @apart(%v: vector<3x8xf32>, %z: vector<3xf32>, %w: vector<2x8xf32>, %o: vector<2xf32>) -> (vector<3xf32>, vector<2xf32>) {
  %0 = vector.multi_reduction <add>, %v, %z [1] : vector<3x8xf32> to vector<3xf32>
  %1 = vector.multi_reduction <minnumf>, %w, %o [1] : vector<2x8xf32> to vector<2xf32>
  return %0, %1 : vector<3xf32>, vector<2xf32>
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
