// RUN: norm-opt %s --norm-decompose-concat | FileCheck %s

// CHECK-LABEL: func.func @concat(
// CHECK-SAME: %[[X:.*]]: tensor<?x3xf32>, %[[Y:.*]]: tensor<2x3xf32>
// CHECK-NOT: tensor.concat
// CHECK: %[[FIRST:.*]] = tensor.insert_slice %[[X]] into %{{.*}}[0, 0]
// CHECK: tensor.insert_slice %[[Y]] into %[[FIRST]][%{{.*}}, 0] [2, 3] [1, 1]
func.func @concat(%x: tensor<?x3xf32>, %y: tensor<2x3xf32>) -> tensor<?x3xf32> {
  %z = tensor.concat dim(0) %x, %y : (tensor<?x3xf32>, tensor<2x3xf32>) -> tensor<?x3xf32>
  return %z : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @empty_part(
// CHECK-SAME: %[[X:.*]]: tensor<0x3xf32>, %[[Y:.*]]: tensor<2x3xf32>, %[[Z:.*]]: tensor<?x3xf32>
// CHECK-NOT: %[[X]]
// CHECK: %[[FIRST:.*]] = tensor.insert_slice %[[Y]] into %{{.*}}[0, 0] [2, 3] [1, 1]
// CHECK: tensor.insert_slice %[[Z]] into %[[FIRST]]
func.func @empty_part(%x: tensor<0x3xf32>, %y: tensor<2x3xf32>, %z: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %w = tensor.concat dim(0) %x, %y, %z, %x : (tensor<0x3xf32>, tensor<2x3xf32>, tensor<?x3xf32>, tensor<0x3xf32>) -> tensor<?x3xf32>
  return %w : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @empty(
// CHECK-NOT: insert_slice
// CHECK: tensor.empty
func.func @empty(%x: tensor<2x0xf32>, %y: tensor<3x0xf32>) -> tensor<5x0xf32> {
  %z = tensor.concat dim(0) %x, %y : (tensor<2x0xf32>, tensor<3x0xf32>) -> tensor<5x0xf32>
  return %z : tensor<5x0xf32>
}
