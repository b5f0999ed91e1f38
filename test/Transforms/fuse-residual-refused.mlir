// RUN: norm-opt %s --norm-fuse-residual | FileCheck %s --implicit-check-not="residual(" --implicit-check-not="dsum("
// RUN: norm-opt %s --norm-fuse-residual --remarks-filter="norm-fuse-residual" 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A bias, added for the norm alone, is an ordinary producer.
// CHECK-LABEL: func @bias
// REMARK-DAG: [Missed] F1.bias {{.*}}Function=bias | Reason="the addition of a bias, for the norm alone, stays an elementwise producer"
func.func @bias(%x: tensor<2x3x4xf32>, %b: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %e = tensor.empty() : tensor<2x3x4xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (c)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %b : tensor<2x3x4xf32>, tensor<4xf32>) outs(%e : tensor<2x3x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.addf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<2x3x4xf32>
  %y = norm.rms_norm %s axes [2] epsilon inside_sqrt 1.0e-5 : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// The same where the bias is broadcast by an op of its own.
// CHECK-LABEL: func @broadcast_bias
// REMARK-DAG: [Missed] F1.bias {{.*}}Function=broadcast_bias
func.func @broadcast_bias(%x: tensor<2x3x4xf32>, %b: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %e = tensor.empty() : tensor<2x3x4xf32>
  %w = linalg.broadcast ins(%b : tensor<4xf32>) outs(%e : tensor<2x3x4xf32>) dimensions = [0, 1]
  %s = linalg.add ins(%w, %x : tensor<2x3x4xf32>, tensor<2x3x4xf32>) outs(%e : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %y = norm.rms_norm %s axes [2] epsilon inside_sqrt 1.0e-5 : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// C4: two operands that are repeated along different axes.
// CHECK-LABEL: func @outer_sum
// REMARK-DAG: [Missed] F1.shape {{.*}}Function=outer_sum | Reason="no operand of the sum has its shape"
func.func @outer_sum(%a: tensor<3xf32>, %b: tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %e = tensor.empty() : tensor<3x4xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<3xf32>, tensor<4xf32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.addf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<3x4xf32>
  %y = norm.rms_norm %s axes [1] epsilon inside_sqrt 1.0e-5 : tensor<3x4xf32> -> tensor<3x4xf32>
  return %y, %s : tensor<3x4xf32>, tensor<3x4xf32>
}

// The f32 sum has a user of its own: fusing would add twice.
// CHECK-LABEL: func @used_before_cast
// REMARK-DAG: [Missed] F1.cast {{.*}}Function=used_before_cast | Reason="the sum has users before the cast that rounds it"
func.func @used_before_cast(%x: tensor<1x4xf32>, %r: tensor<1x4xf32>) -> (tensor<1x4xbf16>, tensor<1x4xf32>) {
  %s = arith.addf %x, %r : tensor<1x4xf32>
  %t = arith.truncf %s : tensor<1x4xf32> to tensor<1x4xbf16>
  %y = norm.rms_norm %t axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x4xbf16> -> tensor<1x4xbf16>
  return %y, %s : tensor<1x4xbf16>, tensor<1x4xf32>
}

// f32 operands whose sum is rounded to bf16: x would have to be bf16 already.
// CHECK-LABEL: func @no_operand_of_the_type
// REMARK-DAG: [Missed] F1.rounding {{.*}}Function=no_operand_of_the_type | Reason="no sum_rounding says how this sum is rounded"
func.func @no_operand_of_the_type(%x: tensor<1x4xf32>, %r: tensor<1x4xf32>) -> tensor<1x4xbf16> {
  %s = arith.addf %x, %r : tensor<1x4xf32>
  %t = arith.truncf %s : tensor<1x4xf32> to tensor<1x4xbf16>
  %y = norm.rms_norm %t axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x4xbf16> -> tensor<1x4xbf16>
  return %y : tensor<1x4xbf16>
}

// The gain is computed from the sum: the op cannot move before its user.
// CHECK-LABEL: func @gain_from_sum
// REMARK-DAG: [Missed] F1.dominance {{.*}}Function=gain_from_sum | Reason="an operand of the norm comes after a user of the sum"
func.func @gain_from_sum(%x: tensor<4xf32>, %r: tensor<4xf32>) -> tensor<4xf32> {
  %s = arith.addf %x, %r : tensor<4xf32>
  %g = math.tanh %s : tensor<4xf32>
  %y = norm.rms_norm %s scale(%g : tensor<4xf32>) axes [0] epsilon inside_sqrt 1.0e-5 : tensor<4xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// The sum is the gain as well: the op would take its own result.
// CHECK-LABEL: func @sum_as_scale
// REMARK-DAG: [Missed] F1.dominance {{.*}}Function=sum_as_scale
func.func @sum_as_scale(%x: tensor<8x8xf32>, %h: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %s = arith.addf %x, %h : tensor<8x8xf32>
  %y = norm.rms_norm %s scale(%s : tensor<8x8xf32>) axes [1] epsilon inside_sqrt 1.0e-5 affine_axes [0, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// F11: what is rounded to bf16 before the addition is not what the op adds.
// CHECK-LABEL: func @gradient_rounded
// REMARK-DAG: [Missed] F11.rounding {{.*}}Function=gradient_rounded | Reason="dx is rounded before the addition, or added in another type than it is computed in"
func.func @gradient_rounded(%dy: tensor<4x8xbf16>, %x: tensor<4x8xbf16>, %d: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  %dx = norm.rms_norm_backward %dy, %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x8xbf16>, tensor<4x8xbf16> -> tensor<4x8xbf16>
  %s = arith.addf %dx, %d : tensor<4x8xbf16>
  return %s : tensor<4x8xbf16>
}

// CHECK-LABEL: func @gradient_used
// REMARK-DAG: [Missed] F11.users {{.*}}Function=gradient_used | Reason="dx has users before the addition"
func.func @gradient_used(%dy: tensor<4x8xf32>, %x: tensor<4x8xf32>, %d: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %dx = norm.rms_norm_backward %dy, %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %s = arith.addf %dx, %d : tensor<4x8xf32>
  return %s, %dx : tensor<4x8xf32>, tensor<4x8xf32>
}
