// RUN: norm-opt %s --norm-fold-batch-norm | FileCheck %s
// RUN: norm-opt %s --norm-fold-batch-norm --remarks-filter="norm-fold-batch-norm" 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A dynamic batch, weights behind a transpose, a bias added as a generic: the
// matmul is all that is left. a = 4 / sqrt(4) and 9 / sqrt(9).
// REMARK-DAG: [Passed] C17 {{.*}}Function=linear | Remark="folded into linalg.matmul"
// CHECK-LABEL: func @linear
// CHECK-SAME: (%[[X:.*]]: tensor<?x3xf32>)
// CHECK-DAG: %[[W:.*]] = arith.constant dense<{{\[}}[2.000000e+00, 1.200000e+01], [4.000000e+00, 1.500000e+01], [6.000000e+00, 1.800000e+01]]> : tensor<3x2xf32>
// CHECK-DAG: %[[B:.*]] = arith.constant dense<[1.000000e+01, 2.300000e+01]> : tensor<2xf32>
// CHECK: %[[INIT:.*]] = linalg.generic {{.*}} ins(%[[B]] : tensor<2xf32>)
// CHECK: %[[C:.*]] = linalg.matmul ins(%[[X]], %[[W]] : tensor<?x3xf32>, tensor<3x2xf32>) outs(%[[INIT]] : tensor<?x2xf32>)
// CHECK-NEXT: return %[[C]]
func.func @linear(%x: tensor<?x3xf32>) -> tensor<?x2xf32> {
  %w0 = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %bias = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %m = arith.constant dense<[-4.0, -6.0]> : tensor<2xf32>
  %v = arith.constant dense<[4.0, 9.0]> : tensor<2xf32>
  %g = arith.constant dense<[4.0, 9.0]> : tensor<2xf32>
  %b = arith.constant dense<[0.0, -1.0]> : tensor<2xf32>
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %wt = tensor.empty() : tensor<3x2xf32>
  %w = linalg.transpose ins(%w0 : tensor<2x3xf32>) outs(%wt : tensor<3x2xf32>) permutation = [1, 0]
  %n = tensor.dim %x, %c0 : tensor<?x3xf32>
  %e = tensor.empty(%n) : tensor<?x2xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x2xf32>) -> tensor<?x2xf32>
  %c = linalg.matmul ins(%x, %w : tensor<?x3xf32>, tensor<3x2xf32>) outs(%i : tensor<?x2xf32>) -> tensor<?x2xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%c, %bias : tensor<?x2xf32>, tensor<2xf32>) outs(%e : tensor<?x2xf32>) {
  ^bb0(%ce: f32, %be: f32, %o: f32):
    %s = arith.addf %ce, %be : f32
    linalg.yield %s : f32
  } -> tensor<?x2xf32>
  %y = norm.batch_norm_inference %a mean(%m : tensor<2xf32>) variance(%v : tensor<2xf32>) scale(%g : tensor<2xf32>) shift(%b : tensor<2xf32>) axes [0] epsilon none : tensor<?x2xf32> -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

// The channel is one of the rows, which are no weights.
// REMARK-DAG: [Missed] C17.weights {{.*}}Function=batch_as_channel | Reason="the operand with the channel is not a constant"
// CHECK-LABEL: func @batch_as_channel
// CHECK: norm.batch_norm_inference
func.func @batch_as_channel(%x: tensor<2x3xf32>) -> tensor<2x2xf32> {
  %w = arith.constant dense<1.5> : tensor<3x2xf32>
  %m = arith.constant dense<[-4.0, -6.0]> : tensor<2xf32>
  %v = arith.constant dense<[4.0, 9.0]> : tensor<2xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  %c = linalg.matmul ins(%x, %w : tensor<2x3xf32>, tensor<3x2xf32>) outs(%i : tensor<2x2xf32>) -> tensor<2x2xf32>
  %y = norm.batch_norm_inference %c mean(%m : tensor<2xf32>) variance(%v : tensor<2xf32>) axes [1] epsilon none : tensor<2x2xf32> -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// An extent of the channel that the types do not say.
// REMARK-DAG: [Missed] C17.channel {{.*}}Function=unknown_channel | Reason="the extent of the channel is not known"
// CHECK-LABEL: func @unknown_channel
// CHECK: norm.batch_norm_inference
func.func @unknown_channel(%c: tensor<2x?xf32>) -> tensor<2x?xf32> {
  %m = arith.constant dense<[-4.0, -6.0]> : tensor<2xf32>
  %v = arith.constant dense<[4.0, 9.0]> : tensor<2xf32>
  %y = norm.batch_norm_inference %c mean(%m : tensor<2xf32>) variance(%v : tensor<2xf32>) axes [0] epsilon none : tensor<2x?xf32> -> tensor<2x?xf32>
  return %y : tensor<2x?xf32>
}
