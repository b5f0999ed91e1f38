// RUN: norm-opt %s --norm-lower-to-reference --canonicalize --cse | FileCheck %s

// Statistics that are given are not computed again: one sweep for the two sums,
// one for dx. A sum over other axes is a sweep of its own.
// CHECK-LABEL: func.func @saved(
// CHECK-NOT: math.sqrt
// CHECK: "parallel", "reduction"]{{.*}} outs(%{{.*}} : tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>)
// CHECK: ["parallel", "parallel"]
// CHECK: arith.truncf %{{.*}} : f64 to f32
// CHECK: ["reduction", "parallel"]{{.*}} outs(%{{.*}} : tensor<7xf64>, tensor<7xf64>)
// CHECK-NOT: "reduction"
// CHECK: return
func.func @saved(%dy: tensor<?x7xf32>, %x: tensor<?x7xf32>, %m: tensor<?xf32>,
                 %r: tensor<?xf32>) -> (tensor<?x7xf32>, tensor<7xf32>) {
  %dx, %db = norm.layer_norm_backward %dy, %x mean(%m : tensor<?xf32>)
      rstd(%r : tensor<?xf32>) axes [1] epsilon inside_sqrt 1.0e-5
      : tensor<?x7xf32>, tensor<?x7xf32> -> tensor<?x7xf32> dshift(tensor<7xf32>)
  return %dx, %db : tensor<?x7xf32>, tensor<7xf32>
}

// The factor alone cannot tell whether epsilon clamped the statistic.
// CHECK-LABEL: func.func @clamped(
// CHECK: math.sqrt
// CHECK: arith.cmpf olt
// CHECK: return
func.func @clamped(%dy: tensor<4x7xf32>, %x: tensor<4x7xf32>,
                   %r: tensor<4xf32>) -> tensor<4x7xf32> {
  %dx = norm.l2_norm_backward %dy, %x rstd(%r : tensor<4xf32>) axes [1]
      epsilon max_outside 1.0e-5 : tensor<4x7xf32>, tensor<4x7xf32> -> tensor<4x7xf32>
  return %dx : tensor<4x7xf32>
}

// A channel axis is two axes, and one again in the results.
// CHECK-LABEL: func.func @groups(
// CHECK: arith.remui
// CHECK: cf.assert
// CHECK-DAG: tensor.expand_shape %{{.*}} {{\[}}[0], [1, 2], [3]] {{.*}} : tensor<2x?x5xf32> into tensor<2x3x?x5xf32>
// CHECK-DAG: tensor.expand_shape %{{.*}} {{\[}}[0, 1]] {{.*}} : tensor<?xf32> into tensor<3x?xf32>
// CHECK: ["parallel", "parallel", "reduction", "reduction"]
// CHECK: tensor.collapse_shape %{{.*}} {{\[}}[0], [1, 2], [3]] : tensor<2x3x?x5xf32> into tensor<2x?x5xf32>
// CHECK: ["reduction", "parallel", "parallel", "reduction"]
// CHECK: tensor.collapse_shape %{{.*}} {{\[}}[0, 1]] : tensor<3x?xf32> into tensor<?xf32>
// CHECK: return
func.func @groups(%dy: tensor<2x?x5xf32>, %x: tensor<2x?x5xf32>, %g: tensor<?xf32>)
    -> (tensor<2x?x5xf32>, tensor<?xf32>) {
  %dx, %dg = norm.group_norm_backward %dy, %x scale(%g : tensor<?xf32>)
      groups 3 channel_axis 1 axes [1, 2] epsilon inside_sqrt 1.0e-5
      : tensor<2x?x5xf32>, tensor<2x?x5xf32> -> tensor<2x?x5xf32> dscale(tensor<?xf32>)
  return %dx, %dg : tensor<2x?x5xf32>, tensor<?xf32>
}

// Constant statistics have no gradient: nothing is summed.
// CHECK-LABEL: func.func @constant(
// CHECK-NOT: "reduction"
// CHECK: return
func.func @constant(%dy: tensor<4x7xf32>, %x: tensor<4x7xf32>,
                    %v: tensor<7xf32>) -> tensor<4x7xf32> {
  %dx = norm.batch_norm_inference_backward %dy, %x variance(%v : tensor<7xf32>)
      axes [0] epsilon inside_sqrt 1.0e-5 : tensor<4x7xf32>, tensor<4x7xf32> -> tensor<4x7xf32>
  return %dx : tensor<4x7xf32>
}
