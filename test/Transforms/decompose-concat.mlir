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
