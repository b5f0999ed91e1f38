// RUN: norm-opt %s --norm-fuse-residual | FileCheck %s --implicit-check-not="residual("
// RUN: norm-opt %s --norm-fuse-residual --remarks-filter="norm-fuse-residual" 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// C4: a residual has the shape of x; a bias is an ordinary producer.
// CHECK-LABEL: func @bias
// REMARK-DAG: [Missed] broadcast {{.*}}Function=bias | Reason="one operand of the sum is broadcast; a residual has the shape of x"
func.func @bias(%x: tensor<2x3x4xf32>, %b: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %e = tensor.empty() : tensor<2x3x4xf32>
  %w = linalg.broadcast ins(%b : tensor<4xf32>) outs(%e : tensor<2x3x4xf32>) dimensions = [0, 1]
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (c)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %b : tensor<2x3x4xf32>, tensor<4xf32>) outs(%e : tensor<2x3x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.addf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<2x3x4xf32>
  %y = norm.rms_norm %s axes [2] epsilon inside_sqrt 1.0e-5 : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// C4: the same for a skip connection that is repeated along the batch, in
// either order.
// CHECK-LABEL: func @broadcast_skip
// REMARK-DAG: [Missed] broadcast {{.*}}Function=broadcast_skip
func.func @broadcast_skip(%x: tensor<2x3x4xf32>, %skip: tensor<3x4xf32>) -> tensor<2x3x4xf32> {
  %e = tensor.empty() : tensor<2x3x4xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (b, c)>, affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%skip, %x : tensor<3x4xf32>, tensor<2x3x4xf32>) outs(%e : tensor<2x3x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.addf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<2x3x4xf32>
  %y = norm.rms_norm %s axes [2] epsilon inside_sqrt 1.0e-5 : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// The f32 sum has a user of its own: fusing would add twice.
// CHECK-LABEL: func @used_before_cast
// REMARK-DAG: [Missed] cast {{.*}}Function=used_before_cast | Reason="the sum has users before the cast that rounds it"
func.func @used_before_cast(%x: tensor<1x4xf32>, %r: tensor<1x4xf32>) -> (tensor<1x4xbf16>, tensor<1x4xf32>) {
  %s = arith.addf %x, %r : tensor<1x4xf32>
  %t = arith.truncf %s : tensor<1x4xf32> to tensor<1x4xbf16>
  %y = norm.rms_norm %t axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x4xbf16> -> tensor<1x4xbf16>
  return %y, %s : tensor<1x4xbf16>, tensor<1x4xf32>
}

// f32 operands whose sum is rounded to bf16: x would have to be bf16 already.
// CHECK-LABEL: func @no_operand_of_the_type
// REMARK-DAG: [Missed] type {{.*}}Function=no_operand_of_the_type | Reason="no sum_rounding says how this sum is rounded"
func.func @no_operand_of_the_type(%x: tensor<1x4xf32>, %r: tensor<1x4xf32>) -> tensor<1x4xbf16> {
  %s = arith.addf %x, %r : tensor<1x4xf32>
  %t = arith.truncf %s : tensor<1x4xf32> to tensor<1x4xbf16>
  %y = norm.rms_norm %t axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x4xbf16> -> tensor<1x4xbf16>
  return %y : tensor<1x4xbf16>
}

// The gain is computed from the sum: the op cannot move before its user.
// CHECK-LABEL: func @gain_from_sum
// REMARK-DAG: [Missed] dominance {{.*}}Function=gain_from_sum | Reason="an operand of the norm comes after a user of the sum"
func.func @gain_from_sum(%x: tensor<4xf32>, %r: tensor<4xf32>) -> tensor<4xf32> {
  %s = arith.addf %x, %r : tensor<4xf32>
  %g = math.tanh %s : tensor<4xf32>
  %y = norm.rms_norm %s scale(%g : tensor<4xf32>) axes [0] epsilon inside_sqrt 1.0e-5 : tensor<4xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// The sum is the gain as well: the op would take its own result.
// CHECK-LABEL: func @sum_as_scale
// REMARK-DAG: [Missed] dominance {{.*}}Function=sum_as_scale
func.func @sum_as_scale(%x: tensor<8x8xf32>, %h: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %s = arith.addf %x, %h : tensor<8x8xf32>
  %y = norm.rms_norm %s scale(%s : tensor<8x8xf32>) axes [1] epsilon inside_sqrt 1.0e-5 affine_axes [0, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
