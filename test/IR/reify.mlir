// RUN: norm-opt %s -resolve-ranked-shaped-type-result-dims -canonicalize -cse | FileCheck %s

// Every extent of every result is an extent of x.

// CHECK-LABEL: func @extents
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x?x?xf32>
// CHECK-DAG: %[[D0:.+]] = tensor.dim %[[X]], %c0
// CHECK-DAG: %[[D1:.+]] = tensor.dim %[[X]], %c1
// CHECK-DAG: %[[D2:.+]] = tensor.dim %[[X]], %c2
// CHECK-NOT: norm.
// CHECK: return %[[D1]], %[[D2]], %[[D0]], %[[D2]], %[[D2]], %[[D1]]
func.func @extents(%x: tensor<?x?x?xf32>, %r: tensor<?x?x?xf32>) -> (index, index, index, index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %y, %mean, %rstd, %sum = norm.layer_norm %x residual(%r : tensor<?x?x?xf32>) axes [-2] epsilon none
    : tensor<?x?x?xf32> -> tensor<?x?x?xf32> mean(tensor<?x?xf32>) rstd(tensor<?x?xf32>) sum(tensor<?x?x?xf32>)
  %0 = tensor.dim %y, %c1 : tensor<?x?x?xf32>
  %1 = tensor.dim %y, %c2 : tensor<?x?x?xf32>
  %2 = tensor.dim %mean, %c0 : tensor<?x?xf32>
  %3 = tensor.dim %mean, %c1 : tensor<?x?xf32>
  %4 = tensor.dim %rstd, %c1 : tensor<?x?xf32>
  %5 = tensor.dim %sum, %c1 : tensor<?x?x?xf32>
  return %0, %1, %2, %3, %4, %5 : index, index, index, index, index, index
}

// An extent that is static in x is a constant, however the result is typed.
// CHECK-LABEL: func @static_in_x
// CHECK-DAG: %[[C8:.+]] = arith.constant 8 : index
// CHECK-DAG: %[[C4:.+]] = arith.constant 4 : index
// CHECK: return %[[C8]], %[[C4]]
func.func @static_in_x(%x: tensor<4x8xf32>) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y, %rstd = norm.rms_norm %x axes [1] epsilon none : tensor<4x8xf32> -> tensor<?x?xf32> rstd(tensor<?xf32>)
  %0 = tensor.dim %y, %c1 : tensor<?x?xf32>
  %1 = tensor.dim %rstd, %c0 : tensor<?xf32>
  return %0, %1 : index, index
}

// Parts have a leading axis that what merges them has not; gradients of the
// parameters have the affine axes.
// CHECK-LABEL: func @algebra
// CHECK-SAME: %[[N:[a-z0-9]+]]: tensor<?x?xi64>, %[[X:[a-z0-9]+]]: tensor<?x?xf32>, %[[R:[a-z0-9]+]]: tensor<?xf32>
// CHECK-DAG: %[[D0:.+]] = tensor.dim %[[X]], %c0
// CHECK-DAG: %[[D1:.+]] = tensor.dim %[[X]], %c1
// CHECK-NOT: norm.
// CHECK: return %[[D1]], %[[D0]], %[[D1]], %[[D0]]
func.func @algebra(%n: tensor<?x?xi64>, %x: tensor<?x?xf32>, %r: tensor<?xf32>) -> (index, index, index, index) {
  %c0 = arith.constant 0 : index
  %count, %m2 = norm.combine_moments count(%n : tensor<?x?xi64>) m2(%x : tensor<?x?xf32>) -> count(tensor<?xi64>) m2(tensor<?xf32>)
  %sum, %dshift = norm.backward_moments %x, %x rstd(%r : tensor<?xf32>) axes [1]
    : tensor<?x?xf32>, tensor<?x?xf32> -> sum_g(tensor<?xf32>) dshift(tensor<?xf32>)
  %q = norm.moments %x axes [1] about zero : tensor<?x?xf32> -> m2(tensor<?xf32>)
  %0 = tensor.dim %m2, %c0 : tensor<?xf32>
  %1 = tensor.dim %sum, %c0 : tensor<?xf32>
  %2 = tensor.dim %dshift, %c0 : tensor<?xf32>
  %3 = tensor.dim %q, %c0 : tensor<?xf32>
  return %0, %1, %2, %3 : index, index, index, index
}
