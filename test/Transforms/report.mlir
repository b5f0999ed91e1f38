// RUN: norm-opt %s --norm-report -o %t.out | grep -v '^  refused' | FileCheck %s
// RUN: norm-opt %s --norm-report="format=json file=%t.json" -o %t.out | count 0
// RUN: FileCheck %s --check-prefix=JSON < %t.json
// RUN: %python -c "import json, sys; json.load(open(sys.argv[1]))" %t.json
// RUN: not norm-opt %s --norm-report="file=%t.none/report" -o %t.out 2>&1 | FileCheck %s --check-prefix=FILE
// FILE: error: cannot write the report to '{{.*}}report': No such file or directory

// CHECK:      norm 0 in @everything at {{.*}}report.mlir:[[# @LINE + 34]]:
// CHECK-NEXT:   kind       norm.layer_norm, tensor<4x6xbf16> -> tensor<4x6xf32>
// CHECK-NEXT:   axes       [1], 6 elements per statistic; affine axes [0]
// CHECK-NEXT:   epsilon    outside_sqrt 1e-05, a zero denominator gives 0
// CHECK-NEXT:   compute    bf16 (not the default), variance over n - 1
// CHECK-NEXT:   types      x bf16, residual bf16, scale f32, shift f32, y f32, sum f32
// CHECK-NEXT:   sum        x + residual is normalized before it is rounded to f32
// CHECK-NEXT:   affine     x-hat is rounded to bf16, each step to f32, gain is scale + 1
// CHECK-NEXT:   statistics mean, rstd
// CHECK-NEXT:   placement  pre
// CHECK-NEXT:   strategy   #norm.cpu<rows = 4, columns = 32, parallel = false>
// CHECK-NEXT:   parameters 8, scale from -2 to 3.5, median 0.375
// CHECK-NEXT: norm 1 in @plain
// CHECK-NEXT:   kind       norm.rms_norm, tensor<?x1xf32> -> tensor<?x1xf32>
// CHECK-NEXT:   axes       [1], 1 element per statistic
// CHECK-NEXT:   epsilon    inside_sqrt 1e-42
// CHECK-NEXT:   compute    f32
// CHECK-NEXT:   types      x f32, y f32
// CHECK-NEXT:   statistics none
// CHECK-NEXT:   placement  none
// CHECK-NEXT:   strategy   not chosen
// CHECK-NEXT:   parameters 0
// CHECK-NEXT:   warning    each statistic covers one element: it is that element's square
// CHECK-NEXT:   warning    epsilon is subnormal in the compute type f32 (V4)
// CHECK-NEXT: norm 2 in @dynamic
// CHECK-NEXT:   kind
// CHECK-NEXT:   axes       [0, 1], a dynamic number of elements per statistic; affine axes [0, 1]
// CHECK-NEXT:   epsilon    none
// CHECK:        affine     in f32, rounded once to f32
// CHECK:        parameters a dynamic number
// CHECK-NEXT: total: 3 norms (2 norm.layer_norm, 1 norm.rms_norm), 8 parameters and a dynamic number more
func.func @everything(%x: tensor<4x6xbf16>, %r: tensor<4x6xbf16>, %b: tensor<4xf32>)
    -> (tensor<4x6xf32>, tensor<4xbf16>, tensor<4xbf16>, tensor<4x6xf32>) {
  %g = arith.constant dense<[0.25, -2.0, 3.5, 0.5]> : tensor<4xf32>
  %y, %mean, %rstd, %sum = norm.layer_norm %x residual(%r : tensor<4x6xbf16>)
      scale(%g : tensor<4xf32>) shift(%b : tensor<4xf32>) axes [-1]
      epsilon outside_sqrt 1.0e-5 affine_axes [0] compute bf16 correction 1 scale_offset 1.0
      affine_in result sum_rounding compute zero_policy zero
      {norm.strategy = #norm.cpu<rows = 4, columns = 32, parallel = false>}
      : tensor<4x6xbf16> -> tensor<4x6xf32> mean(tensor<4xbf16>) rstd(tensor<4xbf16>) sum(tensor<4x6xf32>)
  return %y, %mean, %rstd, %sum
      : tensor<4x6xf32>, tensor<4xbf16>, tensor<4xbf16>, tensor<4x6xf32>
}
func.func @plain(%x: tensor<?x1xf32>) -> tensor<?x1xf32> {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-42 : tensor<?x1xf32> -> tensor<?x1xf32>
  return %y : tensor<?x1xf32>
}
func.func @dynamic(%x: tensor<?x?xf32>, %g: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = norm.layer_norm %x scale(%g : tensor<?x?xf32>) axes [0, 1] epsilon none : tensor<?x?xf32> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// JSON:      "norms": [
// JSON:        "index": 0,
// JSON-NEXT:   "function": "everything",
// JSON-NEXT:   "location":
// JSON-NEXT:   "kind": "norm.layer_norm",
// JSON-NEXT:   "shape": [
// JSON-NEXT:     4,
// JSON-NEXT:     6
// JSON-NEXT:   ],
// JSON-NEXT:   "axes": [
// JSON-NEXT:     1
// JSON-NEXT:   ],
// JSON-NEXT:   "count": 6,
// JSON:        "epsilon": {
// JSON-NEXT:     "place": "outside_sqrt",
// JSON:        "zero_policy": "zero",
// JSON-NEXT:   "compute": "bf16",
// JSON-NEXT:   "correction": 1,
// JSON:        "sum_rounding": "compute",
// JSON-NEXT:   "affine_in": "result",
// JSON-NEXT:   "scale_offset": 1,
// JSON:        "placement": "pre",
// JSON:        "median": 0.375,
// JSON:        "shift": null,
// JSON:        "index": 2,
// JSON:        "count": null,
// JSON:        "parameters": null,
// JSON:      "totals": {
// JSON-NEXT:   "norms": 3,
// JSON-NEXT:   "kinds": {
// JSON-NEXT:     "norm.layer_norm": 2,
// JSON-NEXT:     "norm.rms_norm": 1
// JSON-NEXT:   },
// JSON-NEXT:   "parameters": null
