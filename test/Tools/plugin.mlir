// An uninstrumented mlir-opt cannot load an instrumented library.
// UNSUPPORTED: sanitize

// RUN: mlir-opt %s --load-dialect-plugin=%norm_lib_dir/NormPlugin.so \
// RUN:   --pass-pipeline='builtin.module(canonicalize)' | FileCheck %s --check-prefix=DIALECT
// RUN: mlir-opt %s --load-dialect-plugin=%norm_lib_dir/NormPlugin.so \
// RUN:   --pass-pipeline='builtin.module(norm-lower-to-linalg)' | FileCheck %s --check-prefix=PASS
// RUN: mlir-opt %s --load-dialect-plugin=%norm_lib_dir/NormPlugin.so \
// RUN:   --load-pass-plugin=%norm_lib_dir/NormPlugin.so \
// RUN:   --pass-pipeline='builtin.module(norm-lower-to-linalg)' | FileCheck %s --check-prefix=PASS
// RUN: mlir-opt %s --load-dialect-plugin=%norm_lib_dir/NormPlugin.so \
// RUN:   --transform-interpreter | FileCheck %s --check-prefix=TILE
// RUN: not mlir-opt %s 2>&1 | FileCheck %s --check-prefix=WITHOUT

// The system's mlir-opt, which knows nothing of norm until it loads the plugin.

// DIALECT-LABEL: func @f
// DIALECT: norm.rms_norm %{{.*}} axes [1]
// PASS-LABEL: func @f
// PASS-NOT: norm.rms_norm
// PASS: linalg.generic
// PASS: return
// TILE-LABEL: func @f
// TILE: scf.forall
// TILE: norm.rms_norm %{{.*}} : tensor<2x8xf32> -> tensor<2x8xf32>
// WITHOUT: error: Dialect `norm' not found for custom op 'norm.rms_norm'
func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = norm.rms_norm %x axes [-1] epsilon inside_sqrt 1.0e-3 : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["norm.rms_norm"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loop = transform.structured.tile_using_forall %op tile_sizes [2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
