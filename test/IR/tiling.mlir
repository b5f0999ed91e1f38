// RUN: norm-opt %s -transform-interpreter -resolve-ranked-shaped-type-result-dims -cse -canonicalize -split-input-file | FileCheck %s

// Rows of a static op: every operand and result is sliced by its own axes.

// CHECK-LABEL: func @rows
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<10x768xbf16>, %[[R:[a-z0-9]+]]: tensor<10x768xbf16>, %[[G:[a-z0-9]+]]: tensor<768xbf16>
// CHECK: scf.for %[[I:.+]] = %{{.*}} iter_args(%[[Y:.+]] = %{{.*}}, %[[RSTD:.+]] = %{{.*}}, %[[SUM:.+]] = %{{.*}})
// CHECK-DAG: %[[SIZE:.+]] = affine.min {{.*}}(%[[I]])
// CHECK-DAG: %[[TX:.+]] = tensor.extract_slice %[[X]][%[[I]], 0] [%[[SIZE]], 768] [1, 1]
// CHECK-DAG: %[[TR:.+]] = tensor.extract_slice %[[R]][%[[I]], 0] [%[[SIZE]], 768] [1, 1]
// CHECK: %[[T:.+]], %[[TRSTD:.+]], %[[TSUM:.+]] = norm.rms_norm %[[TX]] residual(%[[TR]] : tensor<?x768xbf16>) scale(%[[G]] : tensor<768xbf16>) axes [1] epsilon inside_sqrt 1.000000e-05 scale_offset 1.000000e+00 {tag} : tensor<?x768xbf16> -> tensor<?x768xbf16> rstd(tensor<?xf32>) sum(tensor<?x768xbf16>)
// CHECK-DAG: tensor.insert_slice %[[T]] into %[[Y]][%[[I]], 0] [%[[SIZE]], 768] [1, 1]
// CHECK-DAG: tensor.insert_slice %[[TRSTD]] into %[[RSTD]][%[[I]]] [%[[SIZE]]] [1]
// CHECK-DAG: tensor.insert_slice %[[TSUM]] into %[[SUM]][%[[I]], 0] [%[[SIZE]], 768] [1, 1]
func.func @rows(%x: tensor<10x768xbf16>, %r: tensor<10x768xbf16>, %g: tensor<768xbf16>) -> (tensor<10x768xbf16>, tensor<10xf32>, tensor<10x768xbf16>) {
  %y, %rstd, %sum = norm.rms_norm %x residual(%r : tensor<10x768xbf16>) scale(%g : tensor<768xbf16>) axes [-1] epsilon inside_sqrt 1.0e-5 scale_offset 1.0 {tag}
    : tensor<10x768xbf16> -> tensor<10x768xbf16> rstd(tensor<10xf32>) sum(tensor<10x768xbf16>)
  return %y, %rstd, %sum : tensor<10x768xbf16>, tensor<10xf32>, tensor<10x768xbf16>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.rms_norm"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loop = transform.structured.tile_using_for %op tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A reduced axis in the middle, of dynamic extent, is taken whole; a gain over
// kept and reduced axes is sliced along the kept one.

// CHECK-LABEL: func @middle
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x?x?xf32>, %[[G:[a-z0-9]+]]: tensor<?x?xf32>
// CHECK: %[[WHOLE:.+]] = tensor.dim %[[X]], %c1
// CHECK: scf.forall (%[[I:.+]], %[[J:.+]]) in
// CHECK-DAG: %[[TX:.+]] = tensor.extract_slice %[[X]][%{{.*}}, 0, %{{.*}}] [%[[N:.+]], %[[WHOLE]], %[[M:.+]]] [1, 1, 1]
// CHECK-DAG: %[[TG:.+]] = tensor.extract_slice %[[G]][%{{.*}}, 0] [%{{.*}}, %[[WHOLE]]] [1, 1]
// CHECK: %[[T:.+]], %[[MEAN:.+]], %[[VARIANCE:.+]] = norm.layer_norm %[[TX]] shift(%[[TG]] : tensor<?x?xf32>) axes [1] epsilon none affine_axes [0, 1] correction 1
// CHECK: tensor.parallel_insert_slice %[[T]] into %{{.*}}[%{{.*}}, 0, %{{.*}}] [%[[N]], %[[WHOLE]], %[[M]]] [1, 1, 1]
// CHECK: tensor.parallel_insert_slice %[[MEAN]] into %{{.*}}[%{{.*}}, %{{.*}}] [%[[N]], %[[M]]] [1, 1]
// CHECK: tensor.parallel_insert_slice %[[VARIANCE]] into %{{.*}}[%{{.*}}, %{{.*}}] [%[[N]], %[[M]]] [1, 1]
func.func @middle(%x: tensor<?x?x?xf32>, %b: tensor<?x?xf32>) -> (tensor<?x?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>) {
  %y, %mean, %variance = norm.layer_norm %x shift(%b : tensor<?x?xf32>) axes [1] epsilon none affine_axes [0, 1] correction 1
    : tensor<?x?x?xf32> -> tensor<?x?x?xf32> mean(tensor<?x?xf32>) variance(tensor<?x?xf32>)
  return %y, %mean, %variance : tensor<?x?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.layer_norm"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loop = transform.structured.tile_using_forall %op tile_sizes [2, 0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A tile as large as the reduced axis covers it.

// CHECK-LABEL: func @whole_by_size
// CHECK: scf.forall
// CHECK: norm.rms_norm %{{.*}} axes [1] {{.*}} : tensor<2x8xf32> -> tensor<2x8xf32>
func.func @whole_by_size(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = norm.rms_norm %x axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.rms_norm"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loop = transform.structured.tile_using_forall %op tile_sizes [2, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Producer, norm and consumer in one loop; the consumer uses two results of
// the norm, which is computed once.

// CHECK-LABEL: func @fuse
// CHECK: scf.for
// CHECK: linalg.exp
// CHECK: norm.rms_norm
// CHECK-NOT: norm.rms_norm
// CHECK: linalg.mul
// CHECK-NOT: linalg.exp
func.func @fuse(%a: tensor<?x512xf32>, %e: tensor<?x512xf32>, %g: tensor<512xf32>) -> tensor<?x512xf32> {
  %x = linalg.exp ins(%a : tensor<?x512xf32>) outs(%e : tensor<?x512xf32>) -> tensor<?x512xf32>
  %y, %sum = norm.rms_norm %x residual(%a : tensor<?x512xf32>) scale(%g : tensor<512xf32>) axes [1] epsilon inside_sqrt 1.0e-5
    : tensor<?x512xf32> -> tensor<?x512xf32> sum(tensor<?x512xf32>)
  %z = linalg.mul ins(%y, %sum : tensor<?x512xf32>, tensor<?x512xf32>) outs(%e : tensor<?x512xf32>) -> tensor<?x512xf32>
  return %z : tensor<?x512xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.mul"]} in %root : (!transform.any_op) -> !transform.any_op
    %fused, %loop = transform.structured.fuse %op tile_sizes [4, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A consumer whose tiles cut the reduced axis takes slices of the whole norm:
// the norm is refused as a producer and stays outside of the loop.

// CHECK-LABEL: func @not_fused
// CHECK: %[[Y:.+]] = norm.layer_norm %{{.*}} : tensor<4x512xf32> -> tensor<4x512xf32>
// CHECK: scf.for
// CHECK-NOT: norm.layer_norm
// CHECK: tensor.extract_slice %[[Y]]
// CHECK: linalg.exp
func.func @not_fused(%x: tensor<4x512xf32>, %e: tensor<4x512xf32>) -> tensor<4x512xf32> {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x512xf32> -> tensor<4x512xf32>
  %z = linalg.exp ins(%y : tensor<4x512xf32>) outs(%e : tensor<4x512xf32>) -> tensor<4x512xf32>
  return %z : tensor<4x512xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.exp"]} in %root : (!transform.any_op) -> !transform.any_op
    %fused, %loop = transform.structured.fuse %op tile_sizes [0, 128] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A consumer of a statistic takes the tile of the norm that computes it: the
// kept axes as asked, the reduced ones whole.

// CHECK-LABEL: func @fuse_into_statistic
// CHECK: scf.forall
// CHECK: %{{.*}}, %[[RSTD:.+]] = norm.rms_norm %{{.*}} : tensor<8x512xf32> -> tensor<8x512xf32> rstd(tensor<8xf32>)
// CHECK: linalg.exp ins(%[[RSTD]] : tensor<8xf32>)
func.func @fuse_into_statistic(%x: tensor<64x512xf32>, %e: tensor<64xf32>) -> tensor<64xf32> {
  %y, %rstd = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<64x512xf32> -> tensor<64x512xf32> rstd(tensor<64xf32>)
  %z = linalg.exp ins(%rstd : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  return %z : tensor<64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.exp"]} in %root : (!transform.any_op) -> !transform.any_op
    %norm = transform.structured.match ops{["norm.rms_norm"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loop = transform.structured.tile_using_forall %op tile_sizes [8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused, %new = transform.structured.fuse_into_containing_op %norm into %loop : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Asked to fuse all the same, the utility finds no tile and takes the whole op.

// CHECK-LABEL: func @fuse_into_cut
// CHECK: scf.forall
// CHECK: %[[Y:.+]] = norm.layer_norm %{{.*}} : tensor<4x512xf32> -> tensor<4x512xf32>
// CHECK: tensor.extract_slice %[[Y]]
// CHECK: linalg.exp

func.func @fuse_into_cut(%x: tensor<4x512xf32>, %e: tensor<4x512xf32>) -> tensor<4x512xf32> {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x512xf32> -> tensor<4x512xf32>
  %z = linalg.exp ins(%y : tensor<4x512xf32>) outs(%e : tensor<4x512xf32>) -> tensor<4x512xf32>
  return %z : tensor<4x512xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["linalg.exp"]} in %root : (!transform.any_op) -> !transform.any_op
    %norm = transform.structured.match ops{["norm.layer_norm"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loop = transform.structured.tile_using_forall %op tile_sizes [0, 128] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused, %new = transform.structured.fuse_into_containing_op %norm into %loop : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// The dynamic row of the second norm is known, by the bounds of the first one's
// result, to be the row of the first: both fuse, no tile is refused.

// CHECK-LABEL: func @chain
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x?xf32>
// CHECK: %[[WHOLE:.+]] = tensor.dim %[[X]], %c1
// CHECK: scf.for
// CHECK: %[[TX:.+]] = tensor.extract_slice %[[X]][%{{.*}}, 0] [%{{.*}}, %[[WHOLE]]] [1, 1]
// CHECK: %[[Y:.+]] = norm.layer_norm %[[TX]]
// CHECK: norm.rms_norm %[[Y]]
// CHECK-NOT: norm.layer_norm
func.func @chain(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = norm.layer_norm %x axes [1] epsilon none : tensor<?x?xf32> -> tensor<?x?xf32>
  %z = norm.rms_norm %y axes [1] epsilon none : tensor<?x?xf32> -> tensor<?x?xf32>
  return %z : tensor<?x?xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.rms_norm"]} in %root : (!transform.any_op) -> !transform.any_op
    %fused, %loop = transform.structured.fuse %op tile_sizes [4, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
