// RUN: norm-opt %s --norm-expand-strided-copy | FileCheck %s

// CHECK-LABEL: func.func @strided(
// CHECK-SAME: %[[X:.*]]: memref<?x4xf32, strided<[?, ?], offset: ?>>, %[[Y:.*]]: memref<?x4xf32>
// CHECK-NOT: memref.copy
// CHECK: linalg.generic {{.*}}["parallel", "parallel"]{{.*}} ins(%[[X]] : {{.*}}) outs(%[[Y]] : memref<?x4xf32>)
func.func @strided(%x: memref<?x4xf32, strided<[?, ?], offset: ?>>, %y: memref<?x4xf32>) {
  memref.copy %x, %y : memref<?x4xf32, strided<[?, ?], offset: ?>> to memref<?x4xf32>
  return
}

// CHECK-LABEL: func.func @contiguous(
// CHECK: memref.copy
// CHECK: memref.copy
// CHECK-NOT: linalg.generic
func.func @contiguous(%x: memref<?x4xf32>, %y: memref<?x4xf32>,
                      %s: memref<2x4xf32, strided<[4, 1], offset: 8>>, %t: memref<2x4xf32>) {
  memref.copy %x, %y : memref<?x4xf32> to memref<?x4xf32>
  memref.copy %s, %t : memref<2x4xf32, strided<[4, 1], offset: 8>> to memref<2x4xf32>
  return
}
