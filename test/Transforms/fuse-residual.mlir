// RUN: norm-opt %s --norm-fuse-residual | FileCheck %s
// RUN: norm-opt %s --norm-fuse-residual --remarks-filter="norm-fuse-residual" 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// C1: the sum has no other user.
// CHECK-LABEL: func @unused_sum
// CHECK-SAME: (%[[X:.*]]: tensor<1x2xf32>, %[[R:.*]]: tensor<1x2xf32>)
// CHECK-NEXT: %[[Y:.*]] = norm.layer_norm %[[X]] residual(%[[R]] : tensor<1x2xf32>) axes [1] epsilon inside_sqrt 1.000000e-05 : tensor<1x2xf32> -> tensor<1x2xf32>{{$}}
// CHECK-NEXT: return %[[Y]]
// REMARK-DAG: [Passed] F1 {{.*}}Function=unused_sum | Remark="norm.layer_norm of a stored sum"
// REMARK-DAG: [Analysis] placement {{.*}}Function=unused_sum | Remark=post
func.func @unused_sum(%x: tensor<1x2xf32>, %r: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %s = arith.addf %x, %r : tensor<1x2xf32>
  %y = norm.layer_norm %s axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}

// The order of the addends does not matter, the order of their values does.
// CHECK-LABEL: func @swapped
// CHECK-SAME: (%[[X:.*]]: tensor<1x2xf32>, %[[R:.*]]: tensor<1x2xf32>)
// CHECK-NEXT: norm.layer_norm %[[X]] residual(%[[R]] : tensor<1x2xf32>) axes
func.func @swapped(%x: tensor<1x2xf32>, %r: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %s = arith.addf %r, %x : tensor<1x2xf32>
  %y = norm.layer_norm %s axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}

// C1: the sum is returned.
// CHECK-LABEL: func @returned_sum
// CHECK-NEXT: %[[Y:.*]], %[[S:.*]] = norm.rms_norm %{{.*}} residual(%{{.*}}) axes {{.*}} sum(tensor<1x2xf32>)
// CHECK-NEXT: return %[[Y]], %[[S]]
// REMARK-DAG: [Analysis] placement {{.*}}Function=returned_sum | Remark=pre
func.func @returned_sum(%x: tensor<1x2xf32>, %r: tensor<1x2xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>) {
  %e = tensor.empty() : tensor<1x2xf32>
  %s = linalg.add ins(%x, %r : tensor<1x2xf32>, tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %y = norm.rms_norm %s axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  return %y, %s : tensor<1x2xf32>, tensor<1x2xf32>
}

// C1: two users of the sum, one before the norm; the op moves up.
// CHECK-LABEL: func @used_before
// CHECK-NEXT: %[[Y:.*]], %[[S:.*]] = norm.rms_norm
// CHECK-NEXT: %[[T:.*]] = math.tanh %[[S]]
// CHECK-NEXT: return %[[Y]], %[[T]], %[[S]]
func.func @used_before(%x: tensor<1x2xf32>, %r: tensor<1x2xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>) {
  %s = arith.addf %x, %r : tensor<1x2xf32>
  %t = math.tanh %s : tensor<1x2xf32>
  %y = norm.rms_norm %s axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  return %y, %t, %s : tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>
}

// C1: a second norm of the sum reads the first one's result.
// CHECK-LABEL: func @two_norms
// CHECK-NEXT: %[[Y:.*]], %[[S:.*]] = norm.rms_norm %{{.*}} residual(
// CHECK-NEXT: %[[Z:.*]] = norm.layer_norm %[[S]] axes
// CHECK-NEXT: return %[[Y]], %[[Z]]
func.func @two_norms(%x: tensor<1x2xf32>, %r: tensor<1x2xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>) {
  %s = arith.addf %x, %r : tensor<1x2xf32>
  %y = norm.rms_norm %s axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  %z = norm.layer_norm %s axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  return %y, %z : tensor<1x2xf32>, tensor<1x2xf32>
}

// Statistics, gain and attributes come along.
// CHECK-LABEL: func @keeps_the_rest
// CHECK-NEXT: %{{.*}}, %[[R:.*]] = norm.rms_norm %{{.*}} residual(%{{.*}}) scale(%{{.*}}) axes [1] epsilon max_outside 1.000000e-01 compute bf16 scale_offset 1.000000e+00 {tag = 7 : i64} : {{.*}} rstd(tensor<1xbf16>)
func.func @keeps_the_rest(%x: tensor<1x2xbf16>, %r: tensor<1x2xbf16>, %g: tensor<2xf32>) -> (tensor<1x2xbf16>, tensor<1xbf16>) {
  %s = arith.addf %x, %r : tensor<1x2xbf16>
  %y, %i = norm.rms_norm %s scale(%g : tensor<2xf32>) axes [1] epsilon max_outside 1.0e-1 compute bf16 scale_offset 1.0 {tag = 7} : tensor<1x2xbf16> -> tensor<1x2xbf16> rstd(tensor<1xbf16>)
  return %y, %i : tensor<1x2xbf16>, tensor<1xbf16>
}

// C10, a bf16 addition rounds its sum: a stored one.
// CHECK-LABEL: func @rounded
// CHECK-NEXT: norm.layer_norm %{{.*}} residual(%{{.*}} : tensor<1x4xbf16>) axes [1] epsilon inside_sqrt 1.000000e-05 : tensor<1x4xbf16>
func.func @rounded(%x: tensor<1x4xbf16>, %r: tensor<1x4xbf16>) -> tensor<1x4xbf16> {
  %s = arith.addf %x, %r : tensor<1x4xbf16>
  %y = norm.layer_norm %s axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x4xbf16> -> tensor<1x4xbf16>
  return %y : tensor<1x4xbf16>
}

// The same through f32, with a cast between addition and norm.
// CHECK-LABEL: func @cast_between
// CHECK-SAME: (%[[X:.*]]: tensor<1x4xbf16>, %[[R:.*]]: tensor<1x4xbf16>)
// CHECK-NEXT: %{{.*}}, %[[S:.*]] = norm.layer_norm %[[X]] residual(%[[R]] : tensor<1x4xbf16>) axes [1] epsilon inside_sqrt 1.000000e-05 : tensor<1x4xbf16> -> tensor<1x4xbf16> sum(tensor<1x4xbf16>)
func.func @cast_between(%x: tensor<1x4xbf16>, %r: tensor<1x4xbf16>) -> (tensor<1x4xbf16>, tensor<1x4xbf16>) {
  %xw = arith.extf %x : tensor<1x4xbf16> to tensor<1x4xf32>
  %rw = arith.extf %r : tensor<1x4xbf16> to tensor<1x4xf32>
  %s = arith.addf %xw, %rw : tensor<1x4xf32>
  %t = arith.truncf %s : tensor<1x4xf32> to tensor<1x4xbf16>
  %y = norm.layer_norm %t axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x4xbf16> -> tensor<1x4xbf16>
  return %y, %t : tensor<1x4xbf16>, tensor<1x4xbf16>
}

// Narrow operands summed and normalized in f32: the unrounded sum. Its f32
// result is that sum, stored.
// CHECK-LABEL: func @unrounded
// CHECK-NEXT: %{{.*}}, %[[S:.*]] = norm.layer_norm %{{.*}} residual(%{{.*}} : tensor<1x4xbf16>) axes [1] epsilon inside_sqrt 1.000000e-05 sum_rounding compute : tensor<1x4xbf16> -> tensor<1x4xf32> sum(tensor<1x4xf32>)
// REMARK-DAG: Function=unrounded | Remark="norm.layer_norm of a compute sum"
func.func @unrounded(%x: tensor<1x4xbf16>, %r: tensor<1x4xbf16>) -> (tensor<1x4xf32>, tensor<1x4xf32>) {
  %e = tensor.empty() : tensor<1x4xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %r : tensor<1x4xbf16>, tensor<1x4xbf16>) outs(%e : tensor<1x4xf32>) {
  ^bb0(%a: bf16, %b: bf16, %o: f32):
    %aw = arith.extf %a : bf16 to f32
    %bw = arith.extf %b : bf16 to f32
    %t = arith.addf %aw, %bw : f32
    linalg.yield %t : f32
  } -> tensor<1x4xf32>
  %y = norm.layer_norm %s axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x4xf32> -> tensor<1x4xf32>
  return %y, %s : tensor<1x4xf32>, tensor<1x4xf32>
}

// With `affine_in result` the type of x is a rounding point, so it stays f32.
// CHECK-LABEL: func @wide_x
// CHECK: norm.layer_norm %{{.*}} residual(%{{.*}} : tensor<1x4xf32>) scale(%{{.*}}) axes [1] epsilon inside_sqrt 1.000000e-05 affine_in result : tensor<1x4xf32>
func.func @wide_x(%x: tensor<1x4xbf16>, %r: tensor<1x4xbf16>, %g: tensor<4xf32>) -> tensor<1x4xf32> {
  %xw = arith.extf %x : tensor<1x4xbf16> to tensor<1x4xf32>
  %rw = arith.extf %r : tensor<1x4xbf16> to tensor<1x4xf32>
  %s = arith.addf %xw, %rw : tensor<1x4xf32>
  %y = norm.layer_norm %s scale(%g : tensor<4xf32>) axes [1] epsilon inside_sqrt 1.0e-5 affine_in result : tensor<1x4xf32> -> tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}

// Of operands of two types, the wide one is x: the sum is rounded to its type.
// CHECK-LABEL: func @mixed
// CHECK-SAME: (%[[X:.*]]: tensor<1x4xbf16>, %[[R:.*]]: tensor<1x4xf32>)
// CHECK-NEXT: norm.layer_norm %[[R]] residual(%[[X]] : tensor<1x4xbf16>) axes [1] epsilon inside_sqrt 1.000000e-05 : tensor<1x4xf32>
func.func @mixed(%x: tensor<1x4xbf16>, %r: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %xw = arith.extf %x : tensor<1x4xbf16> to tensor<1x4xf32>
  %s = arith.addf %xw, %r : tensor<1x4xf32>
  %y = norm.layer_norm %s axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x4xf32> -> tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}

// A sum that is widened before it is normalized.
// CHECK-LABEL: func @widened
// CHECK-NEXT: norm.layer_norm %{{.*}} residual(%{{.*}} : tensor<1x4xbf16>) axes [1] epsilon inside_sqrt 1.000000e-05 : tensor<1x4xbf16> -> tensor<1x4xf32>
func.func @widened(%x: tensor<1x4xbf16>, %r: tensor<1x4xbf16>) -> tensor<1x4xf32> {
  %s = arith.addf %x, %r : tensor<1x4xbf16>
  %w = arith.extf %s : tensor<1x4xbf16> to tensor<1x4xf32>
  %y = norm.layer_norm %w axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x4xf32> -> tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}

// CHECK-LABEL: func @dynamic
// CHECK: norm.rms_norm %{{.*}} residual(%{{.*}} : tensor<?x4xf32>)
func.func @dynamic(%x: tensor<?x4xf32>, %r: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %s = arith.addf %x, %r : tensor<?x4xf32>
  %y = norm.rms_norm %s axes [1] epsilon inside_sqrt 1.0e-5 : tensor<?x4xf32> -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// C4: a skip connection that is repeated along the batch, in both orders and
// with a leading extent of 1, becomes a residual of x's shape.
// CHECK-LABEL: func @skip
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>, %[[R:.*]]: tensor<3x4xf32>)
// CHECK:      %[[B:.*]] = linalg.broadcast ins(%[[R]] : tensor<3x4xf32>) outs(%{{.*}} : tensor<2x3x4xf32>) dimensions = [0]
// CHECK-NEXT: %[[Y:.*]] = norm.rms_norm %[[X]] residual(%[[B]] : tensor<2x3x4xf32>)
// CHECK-NEXT: return %[[Y]]
func.func @skip(%x: tensor<2x3x4xf32>, %skip: tensor<3x4xf32>) -> tensor<2x3x4xf32> {
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

// CHECK-LABEL: func @unit_skip
// CHECK-SAME: (%[[X:.*]]: tensor<2x?x4xbf16>, %[[R:.*]]: tensor<1x?x4xbf16>)
// CHECK:      %[[C:.*]] = tensor.collapse_shape %[[R]] {{\[}}[0, 1], [2]] : tensor<1x?x4xbf16> into tensor<?x4xbf16>
// CHECK:      %[[B:.*]] = linalg.broadcast ins(%[[C]] : tensor<?x4xbf16>) outs(%{{.*}} : tensor<2x?x4xbf16>) dimensions = [0]
// CHECK-NEXT: %[[Y:.*]], %[[S:.*]] = norm.rms_norm %[[X]] residual(%[[B]] : tensor<2x?x4xbf16>) {{.*}} sum(tensor<2x?x4xbf16>)
// CHECK-NEXT: return %[[Y]], %[[S]]
func.func @unit_skip(%x: tensor<2x?x4xbf16>, %skip: tensor<1x?x4xbf16>) -> (tensor<2x?x4xbf16>, tensor<2x?x4xbf16>) {
  %c1 = arith.constant 1 : index
  %d = tensor.dim %x, %c1 : tensor<2x?x4xbf16>
  %e = tensor.empty(%d) : tensor<2x?x4xbf16>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (0, b, c)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %skip : tensor<2x?x4xbf16>, tensor<1x?x4xbf16>) outs(%e : tensor<2x?x4xbf16>) {
  ^bb0(%p: bf16, %q: bf16, %o: bf16):
    %t = arith.addf %p, %q : bf16
    linalg.yield %t : bf16
  } -> tensor<2x?x4xbf16>
  %y = norm.rms_norm %s axes [2] epsilon inside_sqrt 1.0e-5 : tensor<2x?x4xbf16> -> tensor<2x?x4xbf16>
  return %y, %s : tensor<2x?x4xbf16>, tensor<2x?x4xbf16>
}

// F11: the op adds the gradient of the sum, and rounds once where the IR did.
// CHECK-LABEL: func @gradient
// CHECK-SAME: (%[[DY:.*]]: tensor<4x8xbf16>, %[[X:.*]]: tensor<4x8xbf16>, %[[D:.*]]: tensor<4x8xbf16>)
// CHECK-NEXT: %[[DX:.*]] = norm.rms_norm_backward %[[DY]], %[[X]] dsum(%[[D]] : tensor<4x8xbf16>) axes [1] {{.*}} : tensor<4x8xbf16>, tensor<4x8xbf16> -> tensor<4x8xbf16>
// CHECK-NEXT: return %[[DX]]
// REMARK-DAG: [Passed] F11 {{.*}}Function=gradient | Remark="adds the gradient of the sum"
func.func @gradient(%dy: tensor<4x8xbf16>, %x: tensor<4x8xbf16>, %d: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  %dx = norm.rms_norm_backward %dy, %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x8xbf16>, tensor<4x8xbf16> -> tensor<4x8xf32>
  %e = tensor.empty() : tensor<4x8xbf16>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%d, %dx : tensor<4x8xbf16>, tensor<4x8xf32>) outs(%e : tensor<4x8xbf16>) {
  ^bb0(%p: bf16, %q: f32, %o: bf16):
    %w = arith.extf %p : bf16 to f32
    %t = arith.addf %w, %q : f32
    %n = arith.truncf %t : f32 to bf16
    linalg.yield %n : bf16
  } -> tensor<4x8xbf16>
  return %s : tensor<4x8xbf16>
}

// What is added comes after the op, which moves down; dscale comes along.
// CHECK-LABEL: func @gradient_moves
// CHECK:      %[[L:.*]] = math.tanh
// CHECK-NEXT: %[[DX:.*]], %[[DG:.*]] = norm.rms_norm_backward %{{.*}} dsum(%[[L]] : tensor<4x8xf32>) {{.*}} dscale(tensor<8xf32>)
// CHECK-NEXT: return %[[DX]], %[[DG]]
func.func @gradient_moves(%dy: tensor<4x8xf32>, %x: tensor<4x8xf32>, %d: tensor<4x8xf32>, %g: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
  %dx, %dg = norm.rms_norm_backward %dy, %x scale(%g : tensor<8xf32>) axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32> dscale(tensor<8xf32>)
  %l = math.tanh %d : tensor<4x8xf32>
  %s = arith.addf %dx, %l : tensor<4x8xf32>
  return %s, %dg : tensor<4x8xf32>, tensor<8xf32>
}
