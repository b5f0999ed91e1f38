// RUN: norm-opt %s --norm-lower-to-reference --canonicalize --cse | FileCheck %s

// What the mask leaves out counts as nothing, in the count and in all sums.
// CHECK-LABEL: func.func @moments(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<?x7xf32>, %[[MASK:[a-z0-9]*]]: tensor<?x7xi1>
// CHECK: "reduction"]{{.*}} ins(%[[MASK]] : tensor<?x7xi1>)
// CHECK: arith.uitofp %{{.*}} : i1 to f64
// CHECK: "reduction"]
// CHECK: arith.select
// CHECK: "reduction"]
// CHECK: arith.subf
// CHECK: arith.select
// CHECK-NOT: "reduction"]
// CHECK: arith.fptosi %{{.*}} : f64 to i64
// CHECK: return
func.func @moments(%x: tensor<?x7xf32>, %mask: tensor<?x7xi1>)
    -> (tensor<?xi64>, tensor<?xf64>) {
  %n, %m2 = norm.moments %x mask(%mask : tensor<?x7xi1>) axes [1] about mean
      : tensor<?x7xf32> -> count(tensor<?xi64>) m2(tensor<?xf64>)
  return %n, %m2 : tensor<?xi64>, tensor<?xf64>
}

// Parts lie along the leading axis.
// CHECK-LABEL: func.func @combine(
// CHECK-COUNT-3: ["reduction", "parallel"]
// CHECK-NOT: "reduction"
// CHECK: return
func.func @combine(%n: tensor<4x3xi64>, %mean: tensor<4x3xf64>, %m2: tensor<4x3xf64>)
    -> tensor<3xf64> {
  %r = norm.combine_moments count(%n : tensor<4x3xi64>) mean(%mean : tensor<4x3xf64>)
      m2(%m2 : tensor<4x3xf64>) -> m2(tensor<3xf64>)
  return %r : tensor<3xf64>
}

// Elementwise, in f64: a count that is too small makes a NaN, one of 0 a 0.
// CHECK-LABEL: func.func @rstd(
// CHECK: ["parallel"]
// CHECK: arith.sitofp %{{.*}} : i64 to f64
// CHECK: arith.cmpf olt
// CHECK: math.sqrt %{{.*}} : f64
// CHECK: return
func.func @rstd(%m2: tensor<3xf64>, %n: tensor<3xi64>) -> tensor<3xf32> {
  %r = norm.rstd %m2 count(%n : tensor<3xi64>) epsilon inside_sqrt 1.0e-5 compute f32
      correction 1 : tensor<3xf64> -> tensor<3xf32>
  return %r : tensor<3xf32>
}
