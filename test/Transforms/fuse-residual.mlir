// RUN: norm-opt %s --norm-fuse-residual | FileCheck %s
// RUN: norm-opt %s --norm-fuse-residual --remarks-filter="norm-fuse-residual" 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// C1: the sum has no other user.
// CHECK-LABEL: func @unused_sum
// CHECK-SAME: (%[[X:.*]]: tensor<1x2xf32>, %[[R:.*]]: tensor<1x2xf32>)
// CHECK-NEXT: %[[Y:.*]] = norm.layer_norm %[[X]] residual(%[[R]] : tensor<1x2xf32>) axes [1] epsilon inside_sqrt 1.000000e-05 : tensor<1x2xf32> -> tensor<1x2xf32>{{$}}
// CHECK-NEXT: return %[[Y]]
// REMARK-DAG: [Passed] fused {{.*}}Function=unused_sum | Remark="norm.layer_norm of a stored sum"
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
