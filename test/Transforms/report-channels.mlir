// RUN: norm-opt %s --norm-report -o %t.out | FileCheck %s
// RUN: norm-opt %s --norm-report="format=json file=%t.json" -o %t.out
// RUN: FileCheck %s --check-prefix=JSON < %t.json

// What tells channel norms apart: groups, who gives the statistics, and how
// running values move.

// CHECK:      kind       norm.group_norm
// CHECK-NEXT: axes       [1, 2], 20 elements per statistic; 3 groups of axis 1
// CHECK:      statistics mean
// JSON:      "kind": "norm.group_norm"
// JSON:      "count": 20
// JSON-NEXT: "channel_axis": 1
// JSON-NEXT: "groups": 3
// JSON:      "given_statistics": false
// JSON-NEXT: "running": null
func.func @group(%x: tensor<2x6x10xf32>) -> (tensor<2x6x10xf32>, tensor<2x3xf32>) {
  %y, %m = norm.group_norm %x groups 3 channel_axis -2 axes [1, 2] epsilon inside_sqrt 1.0e-5
    : tensor<2x6x10xf32> -> tensor<2x6x10xf32> mean(tensor<2x3xf32>)
  return %y, %m : tensor<2x6x10xf32>, tensor<2x3xf32>
}

// CHECK:      kind       norm.batch_norm_training
// CHECK:      types      x f32, running_mean f64, running_variance bf16, y f32
// CHECK:      statistics none
// CHECK-NEXT: running    momentum 0.25, the weight of the new value; variance over n - 1
// JSON:      "kind": "norm.batch_norm_training"
// JSON:      "channel_axis": null
// JSON-NEXT: "groups": null
// JSON:      "running": {
// JSON-NEXT:   "momentum": 0.25
// JSON-NEXT:   "correction": 1
func.func @training(%x: tensor<4x6xf32>, %m: tensor<6xf64>, %v: tensor<6xbf16>)
    -> (tensor<4x6xf32>, tensor<6xf64>, tensor<6xbf16>) {
  %y, %m1, %v1 = norm.batch_norm_training %x running(%m, %v : tensor<6xf64>, tensor<6xbf16>)
    axes [0] epsilon inside_sqrt 1.0e-5 momentum 0.25
    : tensor<4x6xf32> -> tensor<4x6xf32> running_mean(tensor<6xf64>) running_variance(tensor<6xbf16>)
  return %y, %m1, %v1 : tensor<4x6xf32>, tensor<6xf64>, tensor<6xbf16>
}

// CHECK:      running    momentum is an operand, the weight of the new value; variance over n{{$}}
func.func @operand(%x: tensor<4x6xf32>, %m: tensor<6xf32>, %v: tensor<6xf32>, %a: f32)
    -> (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %y, %m1, %v1 = norm.batch_norm_training %x running(%m, %v : tensor<6xf32>, tensor<6xf32>)
    axes [0] epsilon inside_sqrt 1.0e-5 momentum(%a : f32) running_correction 0
    : tensor<4x6xf32> -> tensor<4x6xf32> running_mean(tensor<6xf32>) running_variance(tensor<6xf32>)
  return %y, %m1, %v1 : tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>
}

// CHECK:      kind       norm.batch_norm_inference
// CHECK:      types      x f32, mean f32, variance f32, y f32
// CHECK:      statistics given
// CHECK-NOT:  warning
// JSON:      "kind": "norm.batch_norm_inference"
// JSON:      "given_statistics": true
func.func @inference(%x: tensor<1x6xf32>, %m: tensor<6xf32>, %v: tensor<6xf32>) -> tensor<1x6xf32> {
  %y = norm.batch_norm_inference %x mean(%m : tensor<6xf32>) variance(%v : tensor<6xf32>)
    axes [0] epsilon inside_sqrt 1.0e-5 : tensor<1x6xf32> -> tensor<1x6xf32>
  return %y : tensor<1x6xf32>
}
