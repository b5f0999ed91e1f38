// RUN: norm-opt %s -norm-lower-to-linalg -transform-interpreter -canonicalize | FileCheck %s

// Upstream's vectorizer takes every op of the decomposition, statistics over a
// middle axis included.

// CHECK-LABEL: func @middle_axis
// CHECK-NOT: linalg.generic
// CHECK: vector.multi_reduction <add>, %{{.+}}, %{{.+}} [1] : vector<2x8x4xf32> to vector<2x4xf32>
// CHECK: vector.multi_reduction <add>, %{{.+}}, %{{.+}} [1] : vector<2x8x4xf32> to vector<2x4xf32>
// CHECK: vector.multi_reduction <add>, %{{.+}}, %{{.+}} [1] : vector<2x8x4xf32> to vector<2x4xf32>
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @middle_axis(%x: tensor<2x8x4xf32>, %g: tensor<8xf32>) -> (tensor<2x8x4xf32>, tensor<2x4xf32>) {
  %y, %mean = norm.layer_norm %x scale(%g : tensor<8xf32>) axes [1] epsilon inside_sqrt 1.0e-5
    : tensor<2x8x4xf32> -> tensor<2x8x4xf32> mean(tensor<2x4xf32>)
  return %y, %mean : tensor<2x8x4xf32>, tensor<2x4xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %func = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    %vectorized = transform.structured.vectorize_children_and_apply_patterns %func : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
