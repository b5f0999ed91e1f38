// RUN: norm-opt %s -transform-interpreter -canonicalize -cse -split-input-file | FileCheck %s

// The interface alone, as an embedding compiler uses it.

// CHECK-LABEL: func @whole
// CHECK-NOT: norm.layer_norm
// CHECK-COUNT-7: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return %{{.*}} : tensor<4x8xf32>
func.func @whole(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.layer_norm"]} in %root : (!transform.any_op) -> !transform.any_op
    %parts = transform.structured.decompose_interface %op : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// decompose_interface takes ops of one result only; the pass takes all.

// CHECK-LABEL: func @statistics
// CHECK-NOT: norm.layer_norm
// CHECK: linalg.generic
// CHECK: return %{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<4xf32>
func.func @statistics(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %y, %rstd = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x8xf32> -> tensor<4x8xf32> rstd(tensor<4xf32>)
  return %y, %rstd : tensor<4x8xf32>, tensor<4xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %func = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    %lowered = transform.apply_registered_pass "norm-lower-to-linalg" to %func : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// Tile over rows, then decompose the tile.

// CHECK-LABEL: func @tile_then_decompose
// CHECK: scf.forall
// CHECK: %[[TX:.+]] = tensor.extract_slice %{{.*}} : tensor<64x512xbf16> to tensor<8x512xbf16>
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "reduction"]
// CHECK-SAME: ins(%[[TX]] : tensor<8x512xbf16>)
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel"]
// CHECK: %[[Y:.+]] = linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel"]
// CHECK: tensor.parallel_insert_slice %[[Y]]
// CHECK-NOT: norm.rms_norm %
func.func @tile_then_decompose(%x: tensor<64x512xbf16>, %g: tensor<512xbf16>) -> tensor<64x512xbf16> {
  %y = norm.rms_norm %x scale(%g : tensor<512xbf16>) axes [1] epsilon inside_sqrt 1.0e-5 : tensor<64x512xbf16> -> tensor<64x512xbf16>
  return %y : tensor<64x512xbf16>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.rms_norm"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loop = transform.structured.tile_using_forall %op tile_sizes [8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %parts = transform.structured.decompose_interface %tile : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
