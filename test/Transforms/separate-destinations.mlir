// RUN: norm-opt %s --norm-separate-destinations | FileCheck %s
// RUN: rm -rf %t && mkdir %t
// RUN: %python %S/../Tools/Inputs/npy.py %t/a.npy '<f4' 2x1 2 3
// RUN: %python %S/../Tools/Inputs/npy.py %t/b.npy '<f4' 2x1 1 1
// RUN: norm-run %s --entry=fills --input=%t/a.npy --input=%t/b.npy | FileCheck %s --check-prefix=FILLS
// RUN: norm-run %s --entry=others --input=%t/a.npy --input=%t/b.npy | FileCheck %s --check-prefix=OTHERS

#all = affine_map<(d0, d1) -> (d0, d1)>
#columns = affine_map<(d0, d1) -> (d1)>

// Both sums start from one fill; neither may be computed in the other's result.
// CHECK-LABEL: func @fills
// CHECK: %[[ONE:.+]] = linalg.fill
// CHECK: linalg.generic {{.*}} outs(%[[ONE]]
// CHECK: %[[EMPTY:.+]] = tensor.empty
// CHECK: %[[TWO:.+]] = linalg.fill {{.*}} outs(%[[EMPTY]]
// CHECK: linalg.generic {{.*}} outs(%[[TWO]]
// FILLS: 5
// FILLS: 2
func.func @fills(%a: tensor<2x1xf32>, %b: tensor<2x1xf32>) -> (tensor<1xf32>, tensor<1xf32>) {
  %e = tensor.empty() : tensor<1xf32>
  %z = arith.constant 0.0 : f32
  %0 = linalg.fill ins(%z : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %1 = linalg.generic {indexing_maps = [#all, #columns], iterator_types = ["reduction", "parallel"]}
      ins(%a : tensor<2x1xf32>) outs(%0 : tensor<1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %out, %in : f32
    linalg.yield %s : f32
  } -> tensor<1xf32>
  %2 = linalg.generic {indexing_maps = [#all, #columns], iterator_types = ["reduction", "parallel"]}
      ins(%b : tensor<2x1xf32>) outs(%0 : tensor<1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %out, %in : f32
    linalg.yield %s : f32
  } -> tensor<1xf32>
  return %1, %2 : tensor<1xf32>, tensor<1xf32>
}

// The same from any other tensor, which is copied.
// CHECK-LABEL: func @others
// CHECK: %[[START:.+]] = linalg.generic
// CHECK: linalg.generic {{.*}} outs(%[[START]]
// CHECK: %[[COPY:.+]] = bufferization.alloc_tensor() copy(%[[START]])
// CHECK: linalg.generic {{.*}} outs(%[[COPY]]
// OTHERS: 15
// OTHERS: 12
func.func @others(%a: tensor<2x1xf32>, %b: tensor<2x1xf32>) -> (tensor<1xf32>, tensor<1xf32>) {
  %e = tensor.empty() : tensor<1xf32>
  %ten = arith.constant 10.0 : f32
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      outs(%e : tensor<1xf32>) {
  ^bb0(%out: f32):
    linalg.yield %ten : f32
  } -> tensor<1xf32>
  %1 = linalg.generic {indexing_maps = [#all, #columns], iterator_types = ["reduction", "parallel"]}
      ins(%a : tensor<2x1xf32>) outs(%0 : tensor<1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %out, %in : f32
    linalg.yield %s : f32
  } -> tensor<1xf32>
  %2 = linalg.generic {indexing_maps = [#all, #columns], iterator_types = ["reduction", "parallel"]}
      ins(%b : tensor<2x1xf32>) outs(%0 : tensor<1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %out, %in : f32
    linalg.yield %s : f32
  } -> tensor<1xf32>
  return %1, %2 : tensor<1xf32>, tensor<1xf32>
}

// Branches exclude each other: both compute where the caller wants the result.
// CHECK-LABEL: func @branches
// CHECK-NOT: alloc_tensor
func.func @branches(%c: i1, %o: tensor<4xf32>) -> tensor<4xf32> {
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %r = scf.if %c -> (tensor<4xf32>) {
    %0 = linalg.fill ins(%one : f32) outs(%o : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  } else {
    %0 = linalg.fill ins(%two : f32) outs(%o : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
