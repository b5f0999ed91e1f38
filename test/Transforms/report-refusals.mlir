// RUN: norm-opt %s --norm-report -o %t.out | FileCheck %s
// RUN: norm-opt %s --norm-report=format=json -o %t.out | FileCheck %s --check-prefix=JSON
// RUN: norm-opt %s --norm-report=file=%t.report --remarks-filter=".*" -o %t.out 2>&1 | count 0

// What passes would not do stands beside the op that it is about, each thing
// once, and their runs on a copy say nothing else. (Not all is checked here:
// more rewrites may refuse more.)

// CHECK:      norm 0 in @narrowed at
// CHECK:        parameters 0
// CHECK:        refused    norm-fuse-residual F1.rounding: no sum_rounding says how this sum is rounded
// CHECK-NOT:  norm-fuse-residual
// CHECK:      norm 1 in @alone at
// CHECK-NOT:    refused    norm-fuse-residual
// CHECK:      norm 2 in @empty at
// CHECK:        refused    norm-configure strategy.extent: no strategy: x has an extent of 0
// CHECK:      norm 3 in @gain at
// CHECK:        refused    norm-simplify C3.one: expected scale + offset of 1, got 2
// CHECK-NOT:  C3.one
// CHECK:      op 0 in @gradient at {{.*}}report-refusals.mlir:[[# @LINE + 41]]:
// CHECK-NEXT:   kind       norm.rms_norm_backward, tensor<4x8xbf16>
// CHECK-NEXT:   axes       [1]
// CHECK-NEXT:   compute    f32
// CHECK:        refused    norm-fuse-residual F11.rounding: dx is rounded before the addition
// CHECK:      op 1 in @statistics at
// CHECK-NEXT:   kind       norm.moments, tensor<4x8xf32>
// CHECK-NEXT:   axes       [1]
// CHECK:      total: 4 norms (4 norm.rms_norm), 8 parameters, 2 other ops (1 norm.moments, 1 norm.rms_norm_backward)

// JSON:      "refusals": [
// JSON:          "pass": "norm-fuse-residual",
// JSON-NEXT:     "rule": "F1",
// JSON-NEXT:     "condition": "rounding",
// JSON-NEXT:     "reason": "no sum_rounding says how this sum is rounded",
// JSON-NEXT:     "location": "{{.*}}report-refusals.mlir:[[# @LINE + 4]]:
func.func @narrowed(%x: tensor<4x8xf32>, %r: tensor<4x8xf32>) -> tensor<4x8xbf16> {
  %s = arith.addf %x, %r : tensor<4x8xf32>
  %t = arith.truncf %s : tensor<4x8xf32> to tensor<4x8xbf16>
  %y = norm.rms_norm %t axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x8xbf16> -> tensor<4x8xbf16>
  return %y : tensor<4x8xbf16>
}
func.func @alone(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
func.func @empty(%x: tensor<0x8xf32>) -> tensor<0x8xf32> {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<0x8xf32> -> tensor<0x8xf32>
  return %y : tensor<0x8xf32>
}
func.func @gain(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %g = arith.constant dense<2.0> : tensor<8xf32>
  %y = norm.rms_norm %x scale(%g : tensor<8xf32>) axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// JSON:      "others": [
// JSON:          "function": "gradient",
// JSON:          "kind": "norm.rms_norm_backward",
// JSON:          "condition": "rounding",
func.func @gradient(%dy: tensor<4x8xbf16>, %x: tensor<4x8xbf16>, %d: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  %dx = norm.rms_norm_backward %dy, %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x8xbf16>, tensor<4x8xbf16> -> tensor<4x8xbf16>
  %s = arith.addf %dx, %d : tensor<4x8xbf16>
  return %s : tensor<4x8xbf16>
}
func.func @statistics(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %m = norm.moments %x axes [1] about mean : tensor<4x8xf32> -> mean(tensor<4xf32>)
  return %m : tensor<4xf32>
}
