// RUN: norm-opt %s -transform-interpreter -split-input-file -verify-diagnostics

// A tile that cuts a reduced axis would be a norm of something else. The first
// error is the op's; the ones after it are the tiling utilities'.

func.func @cut(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+3 {{'norm.layer_norm' op expected a tile that covers reduced axis 1 wholly, got a part of it}}
  // expected-error @+2 {{tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %y = norm.layer_norm %x axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.layer_norm"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loops:2 = transform.structured.tile_using_for %op tile_sizes [2, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @cut_dynamic(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  // expected-error @+3 {{'norm.rms_norm' op expected a tile that covers reduced axis 0 wholly, got a part of it}}
  // expected-error @+2 {{tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %y = norm.rms_norm %x axes [0] epsilon none : tensor<?x?xf32> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.rms_norm"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loops = transform.structured.tile_using_for %op tile_sizes [16] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @cut_forall(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+5 {{'norm.rms_norm' op expected a tile that covers reduced axis 1 wholly, got a part of it}}
  // expected-error @+4 {{tile operation}}
  // expected-error @+3 {{failed to generate tiling loops}}
  // expected-note @+2 {{when applied to this op}}
  // expected-warning @+1 {{tiling is not thread safe at axis #1}}
  %y = norm.rms_norm %x axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.rms_norm"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error @+1 {{failed to apply}}
    %tile, %loop = transform.structured.tile_using_forall %op tile_sizes [2, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @moments(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  // expected-error @+3 {{expected a tile that covers reduced axis 1 wholly, got a part of it}}
  // expected-error @+2 {{tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %q = norm.moments %x axes [1] about mean : tensor<4x8xf32> -> m2(tensor<4xf32>)
  return %q : tensor<4xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.moments"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loop = transform.structured.tile_using_for %op tile_sizes [0, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A gradient of the parameters ties the axes that it sums over.
func.func @parameter_gradient(%dy: tensor<6x8xf32>, %r: tensor<6xf32>) -> tensor<8xf32> {
  // expected-error @+3 {{expected a tile that covers axis 0, which a result sums over, wholly, got a part of it}}
  // expected-error @+2 {{tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %db = norm.backward_moments %dy, %dy rstd(%r : tensor<6xf32>) axes [1] : tensor<6x8xf32>, tensor<6x8xf32> -> dshift(tensor<8xf32>)
  return %db : tensor<8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.backward_moments"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loop = transform.structured.tile_using_for %op tile_sizes [2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @cut_batch(%x: tensor<2x12x6xf32>) -> tensor<2x12x6xf32> {
  // expected-error @+3 {{expected a tile that covers reduced axis 0 wholly, got a part of it}}
  // expected-error @+2 {{tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %y = norm.batch_norm_training %x axes [0, 2] epsilon none : tensor<2x12x6xf32> -> tensor<2x12x6xf32>
  return %y : tensor<2x12x6xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.batch_norm_training"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loops = transform.structured.tile_using_for %op tile_sizes [1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// dscale sums over the rows, so that they are tied too.
func.func @gradient(%dy: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
  // expected-error @+3 {{expected a tile that covers axis 0, which a result sums over, wholly, got a part of it}}
  // expected-error @+2 {{tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %dx, %dg = norm.layer_norm_backward %dy, %dy axes [1] epsilon none
    : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32> dscale(tensor<8xf32>)
  return %dx, %dg : tensor<4x8xf32>, tensor<8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.layer_norm_backward"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loops = transform.structured.tile_using_for %op tile_sizes [2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
