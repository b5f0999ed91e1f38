// RUN: norm-opt %s -norm-lower-to-linalg -canonicalize -cse | FileCheck %s

// What the mask does not hold is out of every sum before it is used; the count
// is a sum of the mask, and at least 1 where it divides. The mean is not rounded
// where its result holds more bits.
// CHECK-LABEL: func @moments
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xbf16>, %[[K:[a-z0-9]+]]: tensor<4x8xi1>
// CHECK-DAG: %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[ONE:.+]] = arith.constant 1 : i64
// CHECK: %[[COUNT:.+]] = linalg.generic {{.*}} ["parallel", "reduction"]{{.*}} ins(%[[K]] : tensor<4x8xi1>)
// CHECK: arith.extui %{{.+}} : i1 to i64
// CHECK-NEXT: arith.addi
// CHECK: %[[N:.+]] = linalg.generic {{.*}} ["parallel"]{{.*}} ins(%[[COUNT]]
// CHECK: arith.maxsi %{{.+}}, %[[ONE]]
// CHECK: linalg.generic {{.*}} ["parallel", "reduction"]{{.*}} ins(%[[X]], %[[K]]
// CHECK: %[[C:.+]] = arith.extf
// CHECK-NEXT: arith.select %{{.+}}, %[[C]], %[[ZERO]]
// CHECK: %[[M_0:.+]] = linalg.generic {{.*}} ["parallel"]{{.*}} ins(%{{[0-9]+}}, %[[N]]
// CHECK: linalg.generic {{.*}} ["parallel", "reduction"]{{.*}} ins(%[[X]], %[[M_0]], %[[K]]
// CHECK: %[[M:.+]] = linalg.generic {{.*}} ["parallel"]{{.*}} ins(%[[M_0]], %{{.+}}, %{{.+}}, %[[N]]
// CHECK: %[[SUMS:.+]]:2 = linalg.generic {{.*}} ["parallel", "reduction"]{{.*}} ins(%[[X]], %[[M]], %[[K]]
// CHECK: %[[D:.+]] = arith.subf
// CHECK-NEXT: %[[MASKED:.+]] = arith.select %{{.+}}, %[[D]], %[[ZERO]]
// CHECK-NEXT: arith.mulf %[[MASKED]], %[[MASKED]]
// CHECK: %[[OUT:.+]]:2 = linalg.generic {{.*}} ins(%[[SUMS]]#0, %[[SUMS]]#1, %[[M]], %[[N]]
// CHECK: %[[DELTA:.+]] = arith.divf
// CHECK: arith.maximumf %{{.+}}, %[[ZERO]]
// CHECK-DAG: %[[WIDE_M:.+]] = arith.extf %in{{.*}} : f32 to f64
// CHECK-DAG: %[[WIDE_D:.+]] = arith.extf %[[DELTA]] : f32 to f64
// CHECK: arith.addf %[[WIDE_M]], %[[WIDE_D]] : f64
// CHECK: return %[[COUNT]], %[[OUT]]#0, %[[OUT]]#1
func.func @moments(%x: tensor<4x8xbf16>, %k: tensor<4x8xi1>) -> (tensor<4xi64>, tensor<4xf64>, tensor<4xf32>) {
  %n, %m, %q = norm.moments %x mask(%k : tensor<4x8xi1>) axes [1] about mean
    : tensor<4x8xbf16> -> count(tensor<4xi64>) mean(tensor<4xf64>) m2(tensor<4xf32>)
  return %n, %m, %q : tensor<4xi64>, tensor<4xf64>, tensor<4xf32>
}

// About zero one sweep is enough, and nothing is counted that no one asks for.
// CHECK-LABEL: func @about_zero
// CHECK-COUNT-1: "reduction"
// CHECK-NOT: "reduction"
// CHECK: return
func.func @about_zero(%x: tensor<4x8xf32>, %k: tensor<4x8xi1>) -> tensor<4xf64> {
  %q = norm.moments %x mask(%k : tensor<4x8xi1>) axes [1] about zero : tensor<4x8xf32> -> m2(tensor<4xf64>)
  return %q : tensor<4xf64>
}

// The count alone, without a mask: no loop at all.
// CHECK-LABEL: func @count
// CHECK: %[[EXTENT:.+]] = tensor.dim %{{.+}}, %c1
// CHECK: %[[N:.+]] = arith.index_cast %[[EXTENT]] : index to i64
// CHECK-NOT: linalg.generic
// CHECK: linalg.fill ins(%[[N]] : i64)
func.func @count(%x: tensor<4x?xbf16>) -> tensor<4xi64> {
  %n = norm.moments %x axes [1] about mean : tensor<4x?xbf16> -> count(tensor<4xi64>)
  return %n : tensor<4xi64>
}

// Each part weighs as much as it counts; the mean is refined once, as that of
// elements is. An empty part adds nothing, whatever it holds.
// CHECK-LABEL: func @combine_moments
// CHECK-SAME: %[[N:[a-z0-9]+]]: tensor<3x8xi64>, %[[MEANS:[a-z0-9]+]]: tensor<3x8xf64>, %[[M2S:[a-z0-9]+]]: tensor<3x8xf32>
// CHECK-DAG: %[[ZERO:.+]] = arith.constant 0.000000e+00 : f64
// CHECK: %[[TOTAL:.+]] = linalg.generic {{.*}} ["reduction", "parallel"]{{.*}} ins(%[[N]] : tensor<3x8xi64>)
// CHECK: linalg.generic {{.*}} ["reduction", "parallel"]{{.*}} ins(%[[N]], %[[MEANS]] :
// CHECK: %[[ROUGH:.+]] = linalg.generic {{.*}} ["parallel"]
// CHECK: linalg.generic {{.*}} ["reduction", "parallel"]{{.*}} ins(%[[N]], %[[MEANS]], %[[ROUGH]] :
// CHECK: %[[U:.+]] = linalg.generic {{.*}} ["parallel"]
// CHECK: linalg.generic {{.*}} ["reduction", "parallel"]{{.*}} ins(%[[N]], %[[MEANS]], %[[M2S]], %[[U]] :
// CHECK: %[[D:.+]] = arith.subf
// CHECK: %[[W:.+]] = arith.mulf %{{.+}}, %[[D]]
// CHECK: %[[BETWEEN:.+]] = arith.mulf %[[W]], %[[D]]
// CHECK: %[[Q:.+]] = arith.addf %{{.+}}, %[[BETWEEN]]
// CHECK: %[[EMPTY:.+]] = arith.cmpi eq
// CHECK: arith.select %[[EMPTY]], %[[ZERO]], %[[Q]]
// CHECK: arith.select %[[EMPTY]], %[[ZERO]], %[[W]]
// CHECK: %[[OUT:.+]]:2 = linalg.generic {{.*}} ["parallel"]
// CHECK: arith.maximumf %{{.+}}, %[[ZERO]]
// CHECK: return %[[TOTAL]], %[[OUT]]#0, %[[OUT]]#1
func.func @combine_moments(%n: tensor<3x8xi64>, %m: tensor<3x8xf64>, %q: tensor<3x8xf32>) -> (tensor<8xi64>, tensor<8xf64>, tensor<8xf64>) {
  %count, %mean, %m2 = norm.combine_moments count(%n : tensor<3x8xi64>) mean(%m : tensor<3x8xf64>) m2(%q : tensor<3x8xf32>)
    -> count(tensor<8xi64>) mean(tensor<8xf64>) m2(tensor<8xf64>)
  return %count, %mean, %m2 : tensor<8xi64>, tensor<8xf64>, tensor<8xf64>
}

// Nothing counted: 0. Too few counted: NaN.
// CHECK-LABEL: func @rstd
// CHECK-DAG: %[[NAN:.+]] = arith.constant 0x7FC00000 : f32
// CHECK-DAG: %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[NONE:.+]] = arith.constant 0 : i64
// CHECK-DAG: %[[ONE:.+]] = arith.constant 1 : i64
// CHECK: ^bb0(%[[M2:.+]]: f64, %[[N:.+]]: i64, %{{.+}}: f32):
// CHECK-DAG: %[[IS_EMPTY:.+]] = arith.cmpi eq, %[[N]], %[[NONE]]
// CHECK-DAG: %[[DIVISOR:.+]] = arith.subi %[[N]], %[[ONE]]
// CHECK: %[[Q:.+]] = arith.divf
// CHECK: %[[ENOUGH:.+]] = arith.cmpi sgt, %[[DIVISOR]], %[[NONE]]
// CHECK: %[[OR_NAN:.+]] = arith.select %[[ENOUGH]], %[[Q]], %[[NAN]]
// CHECK: %[[OR_ZERO:.+]] = arith.select %[[IS_EMPTY]], %[[ZERO]], %[[OR_NAN]]
// CHECK: math.sqrt %[[OR_ZERO]]
func.func @rstd(%q: tensor<8xf64>, %n: tensor<8xi64>) -> tensor<8xf32> {
  %r = norm.rstd %q count(%n : tensor<8xi64>) epsilon none compute f32 correction 1 : tensor<8xf64> -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// A mean of more bits is a pair, and both are subtracted before the product.
// CHECK-LABEL: func @normalize
// CHECK: %[[PAIR:.+]]:2 = linalg.generic
// CHECK: %[[HIGH:.+]] = arith.truncf %[[MEAN:.+]] : f64 to f32
// CHECK: %[[BACK:.+]] = arith.extf %[[HIGH]]
// CHECK: arith.subf %[[MEAN]], %[[BACK]] : f64
// CHECK: linalg.generic {{.*}} ins(%{{.+}}, %[[PAIR]]#0, %[[PAIR]]#1, %{{.+}}, %{{.+}} :
// CHECK: ^bb0(%[[C:.+]]: f32, %[[M:.+]]: f32, %[[REST:.+]]: f32, %[[R:.+]]: f32, %[[G:.+]]: f32, %{{.+}}: f32):
// CHECK-NEXT: %[[A:.+]] = arith.subf %[[C]], %[[M]]
// CHECK-NEXT: %[[B:.+]] = arith.subf %[[A]], %[[REST]]
// CHECK-NEXT: %[[H:.+]] = arith.mulf %[[B]], %[[R]]
// CHECK-NEXT: arith.mulf %[[H]], %[[G]]
func.func @normalize(%x: tensor<4x8xf32>, %m: tensor<4xf64>, %r: tensor<4xf64>, %g: tensor<8xf32>) -> tensor<4x8xf32> {
  %y = norm.normalize %x mean(%m : tensor<4xf64>) rstd(%r : tensor<4xf64>) scale(%g : tensor<8xf32>) axes [1]
    : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// 1 - momentum in f64; the old value, bit for bit, where nothing was counted.
// CHECK-LABEL: func @update_running
// CHECK: %[[A:.+]] = arith.extf %{{.+}} : f32 to f64
// CHECK: arith.subf %{{.+}}, %[[A]] : f64
// CHECK: ^bb0(%[[OLD:.+]]: f16, %[[M2:.+]]: f64, %[[N:.+]]: i64, %{{.+}}: f16):
// CHECK: %[[EMPTY:.+]] = arith.cmpi eq, %[[N]]
// CHECK: %[[NEW:.+]] = arith.truncf %{{.+}} : f32 to f16
// CHECK: arith.select %[[EMPTY]], %[[OLD]], %[[NEW]]
func.func @update_running(%o: tensor<8xf16>, %q: tensor<8xf64>, %n: tensor<8xi64>, %a: f32) -> tensor<8xf16> {
  %0 = norm.update_running %o, %q count(%n : tensor<8xi64>) statistic variance momentum(%a : f32) compute f32
    : tensor<8xf16>, tensor<8xf64> -> tensor<8xf16>
  return %0 : tensor<8xf16>
}

// Sums over the same axes are one sweep.
// CHECK-LABEL: func @one_sweep
// CHECK-COUNT-1: "reduction"
// CHECK: arith.select
// CHECK: arith.select
// CHECK: arith.truncf %{{.+}} : f32 to bf16
// CHECK: arith.select
// CHECK: arith.select
// CHECK-NOT: "reduction"
// CHECK: return
func.func @one_sweep(%dy: tensor<4x8xf32>, %x: tensor<4x8xbf16>, %m: tensor<4xf32>, %g: tensor<4xf16>, %k: tensor<4x8xi1>)
    -> (tensor<4xf64>, tensor<4xf32>, tensor<4xf32>, tensor<4xf16>) {
  %0:4 = norm.backward_moments %dy, %x mean(%m : tensor<4xf32>) rstd(%m : tensor<4xf32>) scale(%g : tensor<4xf16>)
    mask(%k : tensor<4x8xi1>) axes [1] affine_axes [0] affine_in result
    : tensor<4x8xf32>, tensor<4x8xbf16> -> sum_g(tensor<4xf64>) sum_gx(tensor<4xf32>) dscale(tensor<4xf32>) dshift(tensor<4xf16>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<4xf64>, tensor<4xf32>, tensor<4xf32>, tensor<4xf16>
}

// Sums over others are two, and the parameters' gradients see no gain.
// CHECK-LABEL: func @two_sweeps
// CHECK-SAME: %[[DY:[a-z0-9]+]]: tensor<4x8xf32>
// CHECK: linalg.generic {{.*}} ["parallel", "reduction"]
// CHECK: linalg.generic {{.*}} ["reduction", "parallel"]
// CHECK: ^bb0
// CHECK-NEXT: arith.addf
// CHECK-NEXT: linalg.yield
func.func @two_sweeps(%dy: tensor<4x8xf32>, %m: tensor<4xf32>, %g: tensor<8xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
  %0:2 = norm.backward_moments %dy, %dy rstd(%m : tensor<4xf32>) scale(%g : tensor<8xf32>) axes [1]
    : tensor<4x8xf32>, tensor<4x8xf32> -> sum_g(tensor<4xf32>) dshift(tensor<8xf32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<8xf32>
}

// No sum; 0 where the mask does not hold, whatever was computed.
// CHECK-LABEL: func @backward_normalize
// CHECK-NOT: "reduction"
// CHECK-DAG: %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK: linalg.generic {{.*}} ["parallel", "parallel"]
// CHECK-COUNT-3: arith.subf
// CHECK-NEXT: %[[DX:.+]] = arith.mulf
// CHECK-NEXT: %[[MASKED:.+]] = arith.select %{{.+}}, %[[DX]], %[[ZERO]]
// CHECK-NEXT: arith.truncf %[[MASKED]] : f32 to bf16
func.func @backward_normalize(%dy: tensor<4x8xf32>, %x: tensor<4x8xf32>, %m: tensor<4xf32>, %n: tensor<4xi64>, %k: tensor<4x8xi1>) -> tensor<4x8xbf16> {
  %0 = norm.backward_normalize %dy, %x mean(%m : tensor<4xf32>) rstd(%m : tensor<4xf32>) variance(%m : tensor<4xf32>)
    sum_g(%m : tensor<4xf32>) sum_gx(%m : tensor<4xf32>) count(%n : tensor<4xi64>) mask(%k : tensor<4x8xi1>)
    axes [1] epsilon max_inside 1.0e-3 correction 1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xbf16>
  return %0 : tensor<4x8xbf16>
}
