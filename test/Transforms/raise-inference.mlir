// RUN: norm-opt %s --norm-raise | FileCheck %s
// RUN: norm-opt %s --norm-raise --remarks-filter="norm-raise" 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Batch norm with statistics of its own: nothing is reduced, and everything but
// x is read along one dimension.

#xy = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#c = affine_map<(d0, d1, d2) -> (d1)>

// The factor before the value, division by the root, addends in either order.
// REMARK-DAG: [Passed] raised {{.*}}Function=named_ops | Remark="norm.batch_norm_inference over axes [0]"
// CHECK-LABEL: func @named_ops
// CHECK-SAME: (%[[X:.*]]: tensor<4x6xf32>, %[[M:[a-z0-9]+]]: {{.*}}, %[[V:[a-z0-9]+]]: {{.*}}, %[[G:[a-z0-9]+]]: {{.*}}, %[[B:[a-z0-9]+]]: tensor<6xf32>)
// CHECK-NEXT: %[[Y:.*]] = norm.batch_norm_inference %[[X]] mean(%[[M]] : tensor<6xf32>) variance(%[[V]] : tensor<6xf32>) scale(%[[G]] : tensor<6xf32>) shift(%[[B]] : tensor<6xf32>) axes [0] epsilon inside_sqrt
// CHECK-NEXT: return %[[Y]]
func.func @named_ops(%x: tensor<4x6xf32>, %m: tensor<6xf32>, %v: tensor<6xf32>, %g: tensor<6xf32>, %b: tensor<6xf32>) -> tensor<4x6xf32> {
  %eps = arith.constant dense<1.0e-5> : tensor<6xf32>
  %all = tensor.empty() : tensor<4x6xf32>
  %mb = linalg.broadcast ins(%m : tensor<6xf32>) outs(%all : tensor<4x6xf32>) dimensions = [0]
  %gb = linalg.broadcast ins(%g : tensor<6xf32>) outs(%all : tensor<4x6xf32>) dimensions = [0]
  %bb = linalg.broadcast ins(%b : tensor<6xf32>) outs(%all : tensor<4x6xf32>) dimensions = [0]
  %ve = arith.addf %eps, %v : tensor<6xf32>
  %s = math.sqrt %ve : tensor<6xf32>
  %sb = linalg.broadcast ins(%s : tensor<6xf32>) outs(%all : tensor<4x6xf32>) dimensions = [0]
  %d = arith.subf %x, %mb : tensor<4x6xf32>
  %h = arith.divf %d, %sb : tensor<4x6xf32>
  %hg = arith.mulf %gb, %h : tensor<4x6xf32>
  %y = arith.addf %bb, %hg : tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// x * a + (b - mean * a), a = gain / sqrt(variance + epsilon).
// CHECK-LABEL: func @scale_and_shift
// CHECK-NEXT: norm.batch_norm_inference %{{.*}} mean(%{{.*}}) variance(%{{.*}}) scale(%{{.*}}) shift(%{{.*}}) axes [0, 2] epsilon inside_sqrt
// CHECK-NEXT: return
func.func @scale_and_shift(%x: tensor<2x6x?xf32>, %m: tensor<6xf32>, %v: tensor<6xf32>, %g: tensor<6xf32>, %b: tensor<6xf32>, %out: tensor<2x6x?xf32>) -> tensor<2x6x?xf32> {
  %eps = arith.constant dense<1.0e-5> : tensor<6xf32>
  %ve = arith.addf %v, %eps : tensor<6xf32>
  %r = math.rsqrt %ve : tensor<6xf32>
  %a = arith.mulf %r, %g : tensor<6xf32>
  %ma = arith.mulf %m, %a : tensor<6xf32>
  %s = arith.subf %b, %ma : tensor<6xf32>
  %y = linalg.generic {indexing_maps = [#xy, #c, #c, #xy], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %a, %s : tensor<2x6x?xf32>, tensor<6xf32>, tensor<6xf32>) outs(%out : tensor<2x6x?xf32>) {
  ^bb0(%xe: f32, %ae: f32, %se: f32, %o: f32):
    %p = arith.mulf %xe, %ae : f32
    %q = arith.addf %p, %se : f32
    linalg.yield %q : f32
  } -> tensor<2x6x?xf32>
  return %y : tensor<2x6x?xf32>
}

// Constant statistics whose factor folds to a number; no gain, no shift.
// CHECK-LABEL: func @constant_splats
// CHECK: norm.batch_norm_inference %{{.*}} mean(%{{.*}}) variance(%{{.*}}) axes [0] epsilon outside_sqrt
// CHECK-NEXT: return
func.func @constant_splats(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %m = arith.constant dense<0.5> : tensor<6xf32>
  %v = arith.constant dense<1.0> : tensor<6xf32>
  %eps = arith.constant dense<1.0e-3> : tensor<6xf32>
  %all = tensor.empty() : tensor<4x6xf32>
  %s = math.sqrt %v : tensor<6xf32>
  %se = arith.addf %s, %eps : tensor<6xf32>
  %mb = linalg.broadcast ins(%m : tensor<6xf32>) outs(%all : tensor<4x6xf32>) dimensions = [0]
  %sb = linalg.broadcast ins(%se : tensor<6xf32>) outs(%all : tensor<4x6xf32>) dimensions = [0]
  %d = arith.subf %x, %mb : tensor<4x6xf32>
  %y = arith.divf %d, %sb : tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// An epsilon per channel.
// CHECK-LABEL: func @epsilon_per_channel
// CHECK-NOT: norm.
// REMARK-DAG: [Missed] epsilon {{.*}}Function=epsilon_per_channel | Reason="epsilon is not a compile-time constant"
func.func @epsilon_per_channel(%x: tensor<4x6xf32>, %m: tensor<6xf32>, %v: tensor<6xf32>, %eps: tensor<6xf32>) -> tensor<4x6xf32> {
  %all = tensor.empty() : tensor<4x6xf32>
  %ve = arith.addf %v, %eps : tensor<6xf32>
  %r = math.rsqrt %ve : tensor<6xf32>
  %mb = linalg.broadcast ins(%m : tensor<6xf32>) outs(%all : tensor<4x6xf32>) dimensions = [0]
  %rb = linalg.broadcast ins(%r : tensor<6xf32>) outs(%all : tensor<4x6xf32>) dimensions = [0]
  %d = arith.subf %x, %mb : tensor<4x6xf32>
  %y = arith.mulf %d, %rb : tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// Mean and variance along different dimensions.
// CHECK-LABEL: func @two_channels
// CHECK-NOT: norm.
func.func @two_channels(%x: tensor<6x6xf32>, %m: tensor<6xf32>, %v: tensor<6xf32>) -> tensor<6x6xf32> {
  %eps = arith.constant dense<1.0e-5> : tensor<6xf32>
  %all = tensor.empty() : tensor<6x6xf32>
  %ve = arith.addf %v, %eps : tensor<6xf32>
  %r = math.rsqrt %ve : tensor<6xf32>
  %mb = linalg.broadcast ins(%m : tensor<6xf32>) outs(%all : tensor<6x6xf32>) dimensions = [0]
  %rb = linalg.broadcast ins(%r : tensor<6xf32>) outs(%all : tensor<6x6xf32>) dimensions = [1]
  %d = arith.subf %x, %mb : tensor<6x6xf32>
  %y = arith.mulf %d, %rb : tensor<6x6xf32>
  return %y : tensor<6x6xf32>
}

// x * a + (b - mean * another a).
// CHECK-LABEL: func @two_factors
// CHECK-NOT: norm.
func.func @two_factors(%x: tensor<4x6xf32>, %m: tensor<6xf32>, %v: tensor<6xf32>, %g: tensor<6xf32>, %b: tensor<6xf32>) -> tensor<4x6xf32> {
  %eps = arith.constant dense<1.0e-5> : tensor<6xf32>
  %all = tensor.empty() : tensor<4x6xf32>
  %ve = arith.addf %v, %eps : tensor<6xf32>
  %r = math.rsqrt %ve : tensor<6xf32>
  %a = arith.mulf %r, %g : tensor<6xf32>
  %mr = arith.mulf %m, %r : tensor<6xf32>
  %s = arith.subf %b, %mr : tensor<6xf32>
  %ab = linalg.broadcast ins(%a : tensor<6xf32>) outs(%all : tensor<4x6xf32>) dimensions = [0]
  %sb = linalg.broadcast ins(%s : tensor<6xf32>) outs(%all : tensor<4x6xf32>) dimensions = [0]
  %p = arith.mulf %x, %ab : tensor<4x6xf32>
  %y = arith.addf %p, %sb : tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// Multiplied by the root; a root of a number; statistics of the batch itself.
// CHECK-LABEL: func @no_norm
// CHECK-NOT: norm.
func.func @no_norm(%x: tensor<4x6xf32>, %m: tensor<6xf32>, %v: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %two = arith.constant dense<2.0> : tensor<4x6xf32>
  %n = arith.constant dense<4.0> : tensor<6xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<6xf32>
  %row = tensor.empty() : tensor<6xf32>
  %all = tensor.empty() : tensor<4x6xf32>
  %mb = linalg.broadcast ins(%m : tensor<6xf32>) outs(%all : tensor<4x6xf32>) dimensions = [0]
  %d = arith.subf %x, %mb : tensor<4x6xf32>
  %ve = arith.addf %v, %eps : tensor<6xf32>
  %s = math.sqrt %ve : tensor<6xf32>
  %sb = linalg.broadcast ins(%s : tensor<6xf32>) outs(%all : tensor<4x6xf32>) dimensions = [0]
  %root = arith.mulf %d, %sb : tensor<4x6xf32>

  %half = math.rsqrt %two : tensor<4x6xf32>
  %number = arith.mulf %d, %half : tensor<4x6xf32>

  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<6xf32>) -> tensor<6xf32>
  %sq = arith.mulf %d, %d : tensor<4x6xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x6xf32>) outs(%init : tensor<6xf32>) dimensions = [0]
  %bv = arith.divf %sum, %n : tensor<6xf32>
  %bve = arith.addf %bv, %eps : tensor<6xf32>
  %br = math.rsqrt %bve : tensor<6xf32>
  %brb = linalg.broadcast ins(%br : tensor<6xf32>) outs(%all : tensor<4x6xf32>) dimensions = [0]
  %batch = arith.mulf %d, %brb : tensor<4x6xf32>
  return %root, %number, %batch : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
}

// A vector: nothing shares the statistics.
// CHECK-LABEL: func @vector
// CHECK-NOT: norm.
func.func @vector(%x: tensor<6xf32>, %m: tensor<6xf32>, %v: tensor<6xf32>) -> tensor<6xf32> {
  %eps = arith.constant dense<1.0e-5> : tensor<6xf32>
  %ve = arith.addf %v, %eps : tensor<6xf32>
  %r = math.rsqrt %ve : tensor<6xf32>
  %d = arith.subf %x, %m : tensor<6xf32>
  %y = arith.mulf %d, %r : tensor<6xf32>
  return %y : tensor<6xf32>
}
