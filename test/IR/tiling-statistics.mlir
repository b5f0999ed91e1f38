// RUN: norm-opt %s -transform-interpreter -canonicalize -cse -split-input-file | FileCheck %s

// Kept axes: the mask is sliced like x, results by their own axes.

// CHECK-LABEL: func @moments
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x8xf32>, %[[K:[a-z0-9]+]]: tensor<?x8xi1>
// CHECK: scf.for %[[I:.+]] = %{{.*}} iter_args(%[[N:.+]] = %{{.*}}, %[[Q:.+]] = %{{.*}})
// CHECK-DAG: %[[TX:.+]] = tensor.extract_slice %[[X]][0, %[[I]]] [%{{.*}}, 4] [1, 1]
// CHECK-DAG: %[[TK:.+]] = tensor.extract_slice %[[K]][0, %[[I]]] [%{{.*}}, 4] [1, 1]
// CHECK: %[[TN:.+]], %[[TQ:.+]] = norm.moments %[[TX]] mask(%[[TK]] : tensor<?x4xi1>) axes [0] about mean : tensor<?x4xf32> -> count(tensor<4xi64>) m2(tensor<4xf64>)
// CHECK-DAG: tensor.insert_slice %[[TN]] into %[[N]][%[[I]]] [4] [1]
// CHECK-DAG: tensor.insert_slice %[[TQ]] into %[[Q]][%[[I]]] [4] [1]
func.func @moments(%x: tensor<?x8xf32>, %k: tensor<?x8xi1>) -> (tensor<8xi64>, tensor<8xf64>) {
  %n, %q = norm.moments %x mask(%k : tensor<?x8xi1>) axes [0] about mean
    : tensor<?x8xf32> -> count(tensor<8xi64>) m2(tensor<8xf64>)
  return %n, %q : tensor<8xi64>, tensor<8xf64>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.moments"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loop = transform.structured.tile_using_for %op tile_sizes [0, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Parts stay together.

// CHECK-LABEL: func @combine_moments
// CHECK: norm.combine_moments count(%{{.*}} : tensor<3x4xi64>) mean(%{{.*}} : tensor<3x4xf64>) m2(%{{.*}} : tensor<3x4xf32>) -> mean(tensor<4xf64>)
func.func @combine_moments(%n: tensor<3x8xi64>, %m: tensor<3x8xf64>, %q: tensor<3x8xf32>) -> tensor<8xf64> {
  %mean = norm.combine_moments count(%n : tensor<3x8xi64>) mean(%m : tensor<3x8xf64>) m2(%q : tensor<3x8xf32>) -> mean(tensor<8xf64>)
  return %mean : tensor<8xf64>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.combine_moments"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loop = transform.structured.tile_using_for %op tile_sizes [0, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Nothing is reduced: a tile may cut `axes`, and statistics go with the others.

// CHECK-LABEL: func @normalize
// CHECK: norm.normalize %{{.*}} mean(%{{.*}} : tensor<2xf32>) rstd(%{{.*}} : tensor<2xf32>) scale(%{{.*}} : tensor<4xf32>) axes [1] : tensor<2x4xf32> -> tensor<2x4xf32>
func.func @normalize(%x: tensor<6x8xf32>, %m: tensor<6xf32>, %g: tensor<8xf32>) -> tensor<6x8xf32> {
  %y = norm.normalize %x mean(%m : tensor<6xf32>) rstd(%m : tensor<6xf32>) scale(%g : tensor<8xf32>) axes [1] : tensor<6x8xf32> -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.normalize"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loops:2 = transform.structured.tile_using_for %op tile_sizes [2, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// CHECK-LABEL: func @update_running
// CHECK: norm.update_running %{{.*}}, %{{.*}} count(%{{.*}} : tensor<4xi64>) statistic variance momentum(%{{.*}} : f32) : tensor<4xf32>, tensor<4xf64> -> tensor<4xf32>
func.func @update_running(%old: tensor<8xf32>, %q: tensor<8xf64>, %n: tensor<8xi64>, %a: f32) -> tensor<8xf32> {
  %0 = norm.update_running %old, %q count(%n : tensor<8xi64>) statistic variance momentum(%a : f32) : tensor<8xf32>, tensor<8xf64> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.update_running"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loop = transform.structured.tile_using_for %op tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Gradients of the parameters alone tile over the axes that they have, though
// statistics reduce them.

// CHECK-LABEL: func @parameter_gradients
// CHECK: norm.backward_moments %{{.*}}, %{{.*}} rstd(%{{.*}} : tensor<6xf32>) axes [1] : tensor<6x4xf32>, tensor<6x4xf32> -> dscale(tensor<4xf32>) dshift(tensor<4xf32>)
func.func @parameter_gradients(%dy: tensor<6x8xf32>, %x: tensor<6x8xf32>, %r: tensor<6xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %dg, %db = norm.backward_moments %dy, %x rstd(%r : tensor<6xf32>) axes [1] : tensor<6x8xf32>, tensor<6x8xf32> -> dscale(tensor<8xf32>) dshift(tensor<8xf32>)
  return %dg, %db : tensor<8xf32>, tensor<8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.backward_moments"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loop = transform.structured.tile_using_for %op tile_sizes [0, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// CHECK-LABEL: func @backward_normalize
// CHECK: norm.backward_normalize %{{.*}}, %{{.*}} rstd(%{{.*}} : tensor<2xf32>) sum_gx(%{{.*}} : tensor<2xf32>) count(%{{.*}} : tensor<2xi64>) mask(%{{.*}} : tensor<2x4xi1>) axes [1] epsilon none : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
func.func @backward_normalize(%x: tensor<6x8xf32>, %r: tensor<6xf32>, %n: tensor<6xi64>, %k: tensor<6x8xi1>) -> tensor<6x8xf32> {
  %dx = norm.backward_normalize %x, %x rstd(%r : tensor<6xf32>) sum_gx(%r : tensor<6xf32>) count(%n : tensor<6xi64>) mask(%k : tensor<6x8xi1>)
    axes [1] epsilon none : tensor<6x8xf32>, tensor<6x8xf32> -> tensor<6x8xf32>
  return %dx : tensor<6x8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.backward_normalize"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loops:2 = transform.structured.tile_using_for %op tile_sizes [2, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A reduced axis in tiles, one after the other: each is merged into what those
// before it left, in f64, and the result is rounded last.

// CHECK-LABEL: func @reduced_in_sequence
// CHECK-DAG: %[[ZERO:.+]] = linalg.fill {{.*}} -> tensor<32x4xf64>
// CHECK-DAG: %[[NONE:.+]] = linalg.fill {{.*}} -> tensor<32x4xi64>
// CHECK: %[[SLOTS:.+]]:3 = scf.for %[[I:.+]] = %{{.*}} iter_args(%[[N:.+]] = %[[NONE]], %[[M:.+]] = %[[ZERO]], %[[Q:.+]] = %[[ZERO]])
// CHECK: %[[TX:.+]] = tensor.extract_slice %{{.*}}[0, %[[I]]] [4, %{{.*}}] [1, 1] : tensor<4x100xbf16> to tensor<4x?xbf16>
// CHECK: norm.moments %[[TX]] mask(%{{.*}} : tensor<4x?xi1>) axes [1] about mean : tensor<4x?xbf16> -> count(tensor<4xi64>) mean(tensor<4xf64>) m2(tensor<4xf64>)
// CHECK: tensor.extract_slice %[[N]][0, 0] [1, 4] [1, 1]
// CHECK: tensor.extract_slice %[[M]][0, 0] [1, 4] [1, 1]
// CHECK: tensor.extract_slice %[[Q]][0, 0] [1, 4] [1, 1]
// CHECK: norm.combine_moments count(%{{.*}} : tensor<2x4xi64>) mean(%{{.*}} : tensor<2x4xf64>) m2(%{{.*}} : tensor<2x4xf64>) -> count(tensor<4xi64>) mean(tensor<4xf64>) m2(tensor<4xf64>)
// CHECK: scf.yield
// CHECK: %[[MEAN:.+]], %[[M2:.+]] = norm.combine_moments count(%[[SLOTS]]#0 : tensor<32x4xi64>) mean(%[[SLOTS]]#1 : tensor<32x4xf64>) m2(%[[SLOTS]]#2 : tensor<32x4xf64>) -> mean(tensor<4xf64>) m2(tensor<4xf64>)
// CHECK: linalg.generic {{.*}} ins(%[[MEAN]]
// CHECK: arith.truncf
// CHECK: linalg.generic {{.*}} ins(%[[M2]]
// CHECK: arith.truncf
func.func @reduced_in_sequence(%x: tensor<4x100xbf16>, %k: tensor<4x100xi1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %mean, %m2 = norm.moments %x mask(%k : tensor<4x100xi1>) axes [1] about mean : tensor<4x100xbf16> -> mean(tensor<4xf32>) m2(tensor<4xf32>)
  return %mean, %m2 : tensor<4xf32>, tensor<4xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.moments"]} in %root : (!transform.any_op) -> !transform.any_op
    %init:3, %tile, %merge, %loop = transform.structured.tile_reduction_using_for %op by tile_sizes = [0, 32] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// In parallel: a slot for each tile, one axis of slots for each axis that is cut.

// CHECK-LABEL: func @reduced_in_parallel
// CHECK: %[[SLOTS:.+]]:2 = scf.forall (%[[I:.+]], %[[J:.+]]) in (2, 5) shared_outs(%[[N:.+]] = %{{.*}}, %[[Q:.+]] = %{{.*}}) -> (tensor<2x5x100xi64>, tensor<2x5x100xf64>)
// CHECK: %[[TN:.+]], %[[TQ:.+]] = norm.moments %{{.*}} axes [0, 2] about zero : tensor<2x100x?xf32> -> count(tensor<100xi64>) m2(tensor<100xf64>)
// CHECK-DAG: tensor.parallel_insert_slice %[[TN]] into %[[N]][%[[I]], %[[J]], 0] [1, 1, 100] [1, 1, 1]
// CHECK-DAG: tensor.parallel_insert_slice %[[TQ]] into %[[Q]][%[[I]], %[[J]], 0] [1, 1, 100] [1, 1, 1]
// CHECK-DAG: %[[COUNTS:.+]] = tensor.collapse_shape %[[SLOTS]]#0 {{\[}}[0, 1], [2]] : tensor<2x5x100xi64> into tensor<10x100xi64>
// CHECK-DAG: %[[M2S:.+]] = tensor.collapse_shape %[[SLOTS]]#1 {{\[}}[0, 1], [2]] : tensor<2x5x100xf64> into tensor<10x100xf64>
// CHECK: norm.combine_moments count(%[[COUNTS]] : tensor<10x100xi64>) m2(%[[M2S]] : tensor<10x100xf64>) -> m2(tensor<100xf64>)
func.func @reduced_in_parallel(%x: tensor<4x100x?xf32>) -> tensor<100xf64> {
  %m2 = norm.moments %x axes [0, 2] about zero : tensor<4x100x?xf32> -> m2(tensor<100xf64>)
  return %m2 : tensor<100xf64>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.moments"]} in %root : (!transform.any_op) -> !transform.any_op
    %init:2, %tile, %merge, %loop = transform.structured.tile_reduction_using_forall %op by num_threads = [2, 0, 5] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
