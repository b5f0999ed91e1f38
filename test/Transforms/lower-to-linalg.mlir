// RUN: norm-opt %s -norm-lower-to-linalg -canonicalize -cse | FileCheck %s
// RUN: norm-opt %s -norm-lower-to-linalg | FileCheck %s --check-prefix=MAPS

// Keep-dims statistics are never formed: no indexing map has a constant result.
// MAPS: affine_map
// MAPS-NOT: affine_map<({{[^)]*}}) -> ({{([^)]*, )?[0-9]}}
// MAPS-NOT: norm.{{layer|rms}}_norm

// CHECK-DAG: #[[$ID:.+]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[$D0:.+]] = affine_map<(d0, d1, d2) -> (d0)>
// CHECK-DAG: #[[$D01:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG: #[[$D02:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>

//===----------------------------------------------------------------------===//
// The shape of the decomposition
//===----------------------------------------------------------------------===//

// One reduction, nothing is subtracted.
// CHECK-LABEL: func @rms_norm
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xf32>
// CHECK-NOT: arith.subf
// CHECK: %[[SUM:.+]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]{{.*}} ins(%[[X]]
// CHECK: %[[SQUARE:.+]] = arith.mulf %[[C:.+]], %[[C]]
// CHECK-NEXT: arith.addf %{{.+}}, %[[SQUARE]]
// CHECK-NOT: "reduction"
// CHECK-NOT: arith.subf
// CHECK: %[[R:.+]] = linalg.generic {{.*}} iterator_types = ["parallel"]{{.*}} ins(%[[SUM]]
// CHECK-NOT: "reduction"
// CHECK-NOT: arith.subf
// CHECK: %[[Y:.+]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]{{.*}} ins(%[[X]], %[[R]]
// CHECK-NOT: arith.subf
// CHECK: return %[[Y]]
func.func @rms_norm(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-3 : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// The sums about a sampled mean, here the mean of all, and about what the guard
// makes of it. The variance is never a difference of mean squares, and what is
// left of the mean, times the factor, is subtracted with the product.
// CHECK-LABEL: func @layer_norm
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xf32>
// CHECK-DAG: %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[QUARTER:.+]] = arith.constant 2.500000e-01 : f32
// CHECK-DAG: %[[INF:.+]] = arith.constant 0x7F800000 : f32
// CHECK-DAG: %[[N:.+]] = arith.constant 8.000000e+00 : f32
// CHECK: linalg.generic {{.*}} ["parallel", "reduction"]{{.*}} ins(%[[X]]
// CHECK-NOT: arith.mulf
// CHECK: arith.addf
// CHECK: %[[SAMPLE:.+]] = linalg.generic {{.*}} ["parallel"]
// CHECK: %[[FIRST:.+]]:2 = linalg.generic {{.*}} ["parallel", "reduction"]{{.*}} ins(%[[X]], %[[SAMPLE]]
// CHECK: %[[MEAN:.+]] = linalg.generic {{.*}} ["parallel"]{{.*}} ins(%[[SAMPLE]], %[[FIRST]]#0, %[[FIRST]]#1
// CHECK: ^bb0(%[[OLD:[a-z0-9_]+]]: f32, %{{[a-z0-9_]+}}: f32, %[[S:[a-z0-9_]+]]: f32
// CHECK: %[[REST:.+]] = arith.divf %[[S]], %[[N]]
// CHECK: %[[SQUARES:.+]] = arith.maximumf
// CHECK: %[[LIMIT:.+]] = arith.mulf %[[SQUARES]], %[[QUARTER]]
// CHECK: %[[FAR:.+]] = arith.cmpf ugt, %{{.+}}, %[[LIMIT]]
// CHECK: %[[OVERFLOWS:.+]] = arith.cmpf oeq, %[[LIMIT]], %[[INF]]
// CHECK: %[[EITHER:.+]] = arith.ori %[[FAR]], %[[OVERFLOWS]]
// CHECK: %[[MOVED:.+]] = arith.addf %[[OLD]], %[[REST]]
// CHECK: arith.select %[[EITHER]], %[[MOVED]], %[[OLD]]
// CHECK: %[[DEVIATIONS:.+]]:2 = linalg.generic {{.*}} ["parallel", "reduction"]{{.*}} ins(%[[X]], %[[MEAN]]
// CHECK: %[[D:.+]] = arith.subf %{{.+}}, %{{.+}}
// CHECK: arith.mulf %[[D]], %[[D]]
// CHECK: arith.addf %{{.+}}, %[[D]]
// CHECK-NOT: "reduction"
// CHECK: linalg.generic {{.*}} ["parallel"]{{.*}} ins(%[[DEVIATIONS]]#0, %[[DEVIATIONS]]#1
// CHECK: ^bb0(%[[Q:[a-z0-9_]+]]: f32, %[[S:[a-z0-9_]+]]: f32
// CHECK: %[[REST:.+]] = arith.divf %[[S]], %[[N]]
// CHECK: %[[CORRECTION:.+]] = arith.mulf %[[S]], %[[REST]]
// CHECK: %[[CORRECTED:.+]] = arith.subf %[[Q]], %[[CORRECTION]]
// CHECK: %[[BOUNDED:.+]] = arith.maximumf %[[CORRECTED]], %[[ZERO]]
// CHECK: arith.divf %[[BOUNDED]], %[[N]]
// CHECK-NOT: "reduction"
// CHECK: linalg.generic {{.*}} ["parallel", "parallel"]
// CHECK: ^bb0(%[[IN:.+]]: f32, %[[M:.+]]: f32, %[[R:.+]]: f32, %[[OFFSET:.+]]: f32, %{{.+}}: f32)
// CHECK: %[[ABOUT:.+]] = arith.subf %[[IN]], %[[M]]
// CHECK: math.fma %[[ABOUT]], %[[R]], %[[OFFSET]]
func.func @layer_norm(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-3 : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// Only what is asked for is computed and returned. The mean has its rest added.
// CHECK-LABEL: func @statistics
// CHECK: %[[PARTS:.+]]:4 = linalg.generic {{.*}} ["parallel"]
// CHECK: ^bb0(%{{[a-z0-9_]+}}: f32, %{{[a-z0-9_]+}}: f32, %[[M:[a-z0-9_]+]]: f32
// CHECK: %[[REST:.+]] = arith.divf
// CHECK: %[[VARIANCE:.+]] = arith.divf
// CHECK: %[[R:.+]] = arith.divf
// CHECK: %[[MEAN:.+]] = arith.addf %[[M]], %[[REST]]
// CHECK: linalg.yield %[[R]], %{{.+}}, %[[MEAN]], %[[VARIANCE]]
// CHECK: %[[Y:.+]] = linalg.generic
// CHECK: return %[[Y]], %[[PARTS]]#2, %[[PARTS]]#3, %[[PARTS]]#0
func.func @statistics(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %y, %mean, %variance, %rstd = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-3
    : tensor<4x8xf32> -> tensor<4x8xf32> mean(tensor<4xf32>) variance(tensor<4xf32>) rstd(tensor<4xf32>)
  return %y, %mean, %variance, %rstd : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

//===----------------------------------------------------------------------===//
// Epsilon and zero_policy
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @inside_sqrt
// CHECK-DAG: %[[EPS:.+]] = arith.constant 1.000000e-03 : f32
// CHECK-DAG: %[[ONE:.+]] = arith.constant 1.000000e+00 : f32
// CHECK: %[[Q:.+]] = arith.divf
// CHECK-NEXT: %[[SUM:.+]] = arith.addf %[[Q]], %[[EPS]]
// CHECK-NEXT: %[[ROOT:.+]] = math.sqrt %[[SUM]]
// CHECK-NEXT: arith.divf %[[ONE]], %[[ROOT]]
func.func @inside_sqrt(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-3 : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func @outside_sqrt
// CHECK-DAG: %[[EPS:.+]] = arith.constant 1.000000e-03 : f32
// CHECK: %[[Q:.+]] = arith.divf
// CHECK-NEXT: %[[ROOT:.+]] = math.sqrt %[[Q]]
// CHECK-NEXT: %[[SUM:.+]] = arith.addf %[[ROOT]], %[[EPS]]
// CHECK-NEXT: arith.divf %{{.+}}, %[[SUM]]
func.func @outside_sqrt(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = norm.rms_norm %x axes [1] epsilon outside_sqrt 1.0e-3 : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func @max_inside
// CHECK-DAG: %[[EPS:.+]] = arith.constant 1.000000e-03 : f32
// CHECK: %[[Q:.+]] = arith.divf
// CHECK-NEXT: %[[MAX:.+]] = arith.maximumf %[[Q]], %[[EPS]]
// CHECK-NEXT: %[[ROOT:.+]] = math.sqrt %[[MAX]]
// CHECK-NEXT: arith.divf %{{.+}}, %[[ROOT]]
func.func @max_inside(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = norm.rms_norm %x axes [1] epsilon max_inside 1.0e-3 : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func @max_outside
// CHECK-DAG: %[[EPS:.+]] = arith.constant 1.000000e-03 : f32
// CHECK: %[[Q:.+]] = arith.divf
// CHECK-NEXT: %[[ROOT:.+]] = math.sqrt %[[Q]]
// CHECK-NEXT: %[[MAX:.+]] = arith.maximumf %[[ROOT]], %[[EPS]]
// CHECK-NEXT: arith.divf %{{.+}}, %[[MAX]]
func.func @max_outside(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = norm.rms_norm %x axes [1] epsilon max_outside 1.0e-3 : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func @none
// CHECK: %[[Q:.+]] = arith.divf
// CHECK-NEXT: %[[ROOT:.+]] = math.sqrt %[[Q]]
// CHECK-NEXT: %[[R:.+]] = arith.divf %{{.+}}, %[[ROOT]]
// CHECK-NEXT: linalg.yield %[[R]]
func.func @none(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = norm.rms_norm %x axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func @zero_policy
// CHECK-DAG: %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[ROOT:.+]] = math.sqrt
// CHECK-NEXT: %[[R:.+]] = arith.divf %{{.+}}, %[[ROOT]]
// CHECK-NEXT: %[[IS_ZERO:.+]] = arith.cmpf oeq, %[[ROOT]], %[[ZERO]]
// CHECK-NEXT: arith.select %[[IS_ZERO]], %[[ZERO]], %[[R]]
func.func @zero_policy(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = norm.rms_norm %x axes [1] epsilon none zero_policy zero : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// Epsilon is added in compute type, whatever x is.
// CHECK-LABEL: func @epsilon_in_f64
// CHECK: arith.constant 9.9999999999999998E-13 : f64
func.func @epsilon_in_f64(%x: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-12 compute f64 : tensor<4x8xbf16> -> tensor<4x8xbf16>
  return %y : tensor<4x8xbf16>
}

// A sample is the first 64 elements along the innermost reduced axis.
// CHECK-LABEL: func @sample
// CHECK: tensor.extract_slice %{{.+}}[0, 0, 0] [1, 4, 64] [1, 1, 1] : tensor<3x4x100xf32> to tensor<1x4x64xf32>
func.func @sample(%x: tensor<3x4x100xf32>) -> tensor<3x4x100xf32> {
  %y = norm.layer_norm %x axes [0, 2] epsilon none : tensor<3x4x100xf32> -> tensor<3x4x100xf32>
  return %y : tensor<3x4x100xf32>
}

//===----------------------------------------------------------------------===//
// Correction, empty and dynamic extents
//===----------------------------------------------------------------------===//

// The mean is over n, the variance over n - 1.
// CHECK-LABEL: func @correction
// CHECK-DAG: %[[N:.+]] = arith.constant 8.000000e+00 : f32
// CHECK-DAG: %[[N_1:.+]] = arith.constant 7.000000e+00 : f32
// CHECK: arith.divf %{{.+}}, %[[N]]
// CHECK: arith.divf %{{.+}}, %[[N]]
// CHECK: arith.cmpf ugt
// CHECK: %[[SQUARES:.+]] = arith.maximumf
// CHECK-NEXT: arith.divf %[[SQUARES]], %[[N_1]]
func.func @correction(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = norm.layer_norm %x axes [1] epsilon none correction 1 : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// A count that is only known at run time divides as 1 where it is 0, and as
// count - 1, so 0, where it is 1.
// CHECK-LABEL: func @dynamic
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x?x?xf32>
// CHECK-DAG: %[[D0:.+]] = tensor.dim %[[X]], %c0
// CHECK-DAG: %[[D2:.+]] = tensor.dim %[[X]], %c2
// CHECK: %[[COUNT:.+]] = arith.muli %[[D0]], %[[D2]] : index
// CHECK: %[[INT:.+]] = arith.index_cast %[[COUNT]] : index to i64
// CHECK-DAG: %[[EMPTY:.+]] = arith.cmpi eq, %[[INT]], %c0_i64
// CHECK-DAG: %[[SAFE:.+]] = arith.select %[[EMPTY]], %c1_i64, %[[INT]]
// CHECK-DAG: %[[N:.+]] = arith.sitofp %[[SAFE]] : i64 to f32
// CHECK-DAG: %[[LESS:.+]] = arith.subi %[[INT]], %c1_i64
// CHECK-DAG: %[[SAFE_LESS:.+]] = arith.select %[[EMPTY]], %c1_i64, %[[LESS]]
// CHECK-DAG: %[[N_1:.+]] = arith.sitofp %[[SAFE_LESS]] : i64 to f32
// CHECK: ["reduction", "parallel", "reduction"]
// CHECK: arith.divf %{{.+}}, %[[N]]
// CHECK: arith.cmpf ugt
// CHECK: %[[SQUARES:.+]] = arith.maximumf
// CHECK-NEXT: arith.divf %[[SQUARES]], %[[N_1]]
func.func @dynamic(%x: tensor<?x?x?xf32>) -> (tensor<?x?x?xf32>, tensor<?xf32>) {
  %y, %variance = norm.layer_norm %x axes [0, 2] epsilon none correction 1 : tensor<?x?x?xf32> -> tensor<?x?x?xf32> variance(tensor<?xf32>)
  return %y, %variance : tensor<?x?x?xf32>, tensor<?xf32>
}

// Mean and variance of nothing are 0, not 0/0.
// CHECK-LABEL: func @empty
// CHECK-NOT: arith.divf %{{[^,]+}}, %cst
// CHECK: return
func.func @empty(%x: tensor<4x0xf32>) -> (tensor<4x0xf32>, tensor<4xf32>, tensor<4xf32>) {
  %y, %mean, %variance = norm.layer_norm %x axes [1] epsilon none : tensor<4x0xf32> -> tensor<4x0xf32> mean(tensor<4xf32>) variance(tensor<4xf32>)
  return %y, %mean, %variance : tensor<4x0xf32>, tensor<4xf32>, tensor<4xf32>
}

// Extents that are static in the result only.
// CHECK-LABEL: func @static_result
// CHECK: tensor.cast %{{.+}} : tensor<?x8xf32> to tensor<4x8xf32>
// CHECK: return %{{.+}} : tensor<4x8xf32>
func.func @static_result(%x: tensor<?x8xf32>) -> tensor<4x8xf32> {
  %y = norm.rms_norm %x axes [1] epsilon none : tensor<?x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

// A reduced axis in the middle, written as a negative one; the statistics keep
// the order of the others.
// CHECK-LABEL: func @middle_axis
// CHECK: linalg.generic {indexing_maps = [#[[$ID]], #[[$D02]]], iterator_types = ["parallel", "reduction", "parallel"]}
// CHECK-SAME: outs(%{{.+}} : tensor<2x4xf32>)
// CHECK: linalg.generic {indexing_maps = [#[[$ID]], #[[$D02]], #[[$ID]]], iterator_types = ["parallel", "parallel", "parallel"]}
func.func @middle_axis(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %y = norm.rms_norm %x axes [-2] epsilon none : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// CHECK-LABEL: func @several_axes
// CHECK: arith.constant 6.000000e+00 : f32
// CHECK: ["reduction", "reduction", "parallel"]
// CHECK-SAME: outs(%{{.+}} : tensor<4xf32>)
func.func @several_axes(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %y = norm.rms_norm %x axes [1, 0] epsilon none : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// CHECK-LABEL: func @all_axes
// CHECK: ["reduction", "reduction"]
// CHECK-SAME: outs(%{{.+}} : tensor<f32>)
// CHECK: linalg.generic {{.*}} iterator_types = []
func.func @all_axes(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = norm.rms_norm %x axes [0, 1] epsilon none : tensor<2x3xf32> -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

//===----------------------------------------------------------------------===//
// Affine
//===----------------------------------------------------------------------===//

// Scale and shift in compute type, in one fused step, then one rounding.
// CHECK-LABEL: func @affine_in_compute
// CHECK: linalg.generic {{.*}} ["parallel", "parallel"]
// CHECK: ^bb0(%[[X:.+]]: bf16, %[[R:.+]]: f32, %[[G:.+]]: bf16, %[[B:.+]]: f32, %{{.+}}: bf16)
// CHECK-DAG: %[[HAT:.+]] = arith.mulf %{{.+}}, %[[R]]
// CHECK-DAG: %[[G32:.+]] = arith.extf %[[G]] : bf16 to f32
// CHECK: %[[FMA:.+]] = math.fma %[[HAT]], %[[G32]], %[[B]]
// CHECK-NEXT: %[[Y:.+]] = arith.truncf %[[FMA]] : f32 to bf16
// CHECK-NEXT: linalg.yield %[[Y]]
func.func @affine_in_compute(%x: tensor<4x8xbf16>, %g: tensor<8xbf16>, %b: tensor<8xf32>) -> tensor<4x8xbf16> {
  %y = norm.rms_norm %x scale(%g : tensor<8xbf16>) shift(%b : tensor<8xf32>) axes [1] epsilon none : tensor<4x8xbf16> -> tensor<4x8xbf16>
  return %y : tensor<4x8xbf16>
}

// Normalized values, gain and product are each rounded to the types of x and y.
// CHECK-LABEL: func @affine_in_result
// CHECK-DAG: %[[OFFSET:.+]] = arith.constant 1.000000e+00 : f32
// CHECK: linalg.generic {{.*}} ["parallel", "parallel"]
// CHECK: ^bb0(%[[X:.+]]: bf16, %[[R:.+]]: f32, %[[G:.+]]: f32, %[[B:.+]]: bf16, %{{.+}}: bf16)
// CHECK: %[[HAT:.+]] = arith.mulf %{{.+}}, %[[R]]
// CHECK: %[[HAT16:.+]] = arith.truncf %[[HAT]] : f32 to bf16
// CHECK: %[[HAT32:.+]] = arith.extf %[[HAT16]] : bf16 to f32
// CHECK: %[[GAIN:.+]] = arith.addf %[[G]], %[[OFFSET]]
// CHECK: %[[GAIN16:.+]] = arith.truncf %[[GAIN]] : f32 to bf16
// CHECK: %[[GAIN32:.+]] = arith.extf %[[GAIN16]] : bf16 to f32
// CHECK: %[[PRODUCT:.+]] = arith.mulf %[[HAT32]], %[[GAIN32]]
// CHECK: arith.truncf %[[PRODUCT]] : f32 to bf16
// CHECK: arith.addf
// CHECK: arith.truncf %{{.+}} : f32 to bf16
// CHECK-NEXT: linalg.yield
func.func @affine_in_result(%x: tensor<4x8xbf16>, %g: tensor<8xf32>, %b: tensor<8xbf16>) -> tensor<4x8xbf16> {
  %y = norm.rms_norm %x scale(%g : tensor<8xf32>) shift(%b : tensor<8xbf16>) axes [1] epsilon none scale_offset 1.0 affine_in result : tensor<4x8xbf16> -> tensor<4x8xbf16>
  return %y : tensor<4x8xbf16>
}

// The offset of a zero-centred gain is added in compute type.
// CHECK-LABEL: func @scale_offset
// CHECK-DAG: %[[OFFSET:.+]] = arith.constant 1.000000e+00 : f32
// CHECK: linalg.generic {{.*}} ["parallel", "parallel"]
// CHECK: ^bb0(%{{.+}}: bf16, %{{.+}}: f32, %[[G:.+]]: bf16, %{{.+}}: bf16)
// CHECK: %[[G32:.+]] = arith.extf %[[G]] : bf16 to f32
// CHECK: %[[GAIN:.+]] = arith.addf %[[G32]], %[[OFFSET]]
// CHECK: arith.mulf %{{.+}}, %[[GAIN]]
func.func @scale_offset(%x: tensor<4x8xbf16>, %g: tensor<8xbf16>) -> tensor<4x8xbf16> {
  %y = norm.rms_norm %x scale(%g : tensor<8xbf16>) axes [1] epsilon none scale_offset 1.0 : tensor<4x8xbf16> -> tensor<4x8xbf16>
  return %y : tensor<4x8xbf16>
}

// A gain by sample (modulation) and one by sample and feature.
// CHECK-LABEL: func @affine_axes
// CHECK: linalg.generic {indexing_maps = [#[[$ID]], #[[$D01]], #[[$D0]], #[[$ID]]]
// CHECK-SAME: tensor<2xf32>)
// CHECK: linalg.generic {indexing_maps = [#[[$ID]], #[[$D01]], #[[$D02]], #[[$ID]]]
// CHECK-SAME: tensor<2x4xf32>)
func.func @affine_axes(%x: tensor<2x3x4xf32>, %g: tensor<2xf32>, %h: tensor<2x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  %y = norm.rms_norm %x scale(%g : tensor<2xf32>) axes [2] epsilon none affine_axes [0] : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  %z = norm.rms_norm %x shift(%h : tensor<2x4xf32>) axes [2] epsilon none affine_axes [0, 2] : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  return %y, %z : tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

//===----------------------------------------------------------------------===//
// Residual and types
//===----------------------------------------------------------------------===//

// The sum is rounded once, and that value is normalized and returned.
// CHECK-LABEL: func @sum_stored
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xbf16>, %[[H:[a-z0-9]+]]: tensor<4x8xbf16>
// CHECK: %[[SUM:.+]] = linalg.generic {{.*}} ins(%[[X]], %[[H]]
// CHECK: %[[ADD:.+]] = arith.addf %{{.+}}, %{{.+}} : f32
// CHECK-NEXT: arith.truncf %[[ADD]] : f32 to bf16
// CHECK: linalg.generic {{.*}} ["parallel", "reduction"]{{.*}} ins(%[[SUM]] :
// CHECK: %[[Y:.+]] = linalg.generic {{.*}} ["parallel", "parallel"]{{.*}} ins(%[[SUM]],
// CHECK: return %[[Y]], %[[SUM]]
func.func @sum_stored(%x: tensor<4x8xbf16>, %h: tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<4x8xbf16>) {
  %y, %sum = norm.rms_norm %x residual(%h : tensor<4x8xbf16>) axes [1] epsilon none : tensor<4x8xbf16> -> tensor<4x8xbf16> sum(tensor<4x8xbf16>)
  return %y, %sum : tensor<4x8xbf16>, tensor<4x8xbf16>
}

// The unrounded sum is normalized; the rounded one is only returned.
// CHECK-LABEL: func @sum_compute
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xbf16>, %[[H:[a-z0-9]+]]: tensor<4x8xbf16>
// CHECK: %[[SUM:.+]] = linalg.generic {{.*}} ins(%[[X]], %[[H]]
// CHECK: arith.truncf
// CHECK: linalg.generic {{.*}} ["parallel", "reduction"]{{.*}} ins(%[[X]], %[[H]] :
// CHECK: %[[ADD:.+]] = arith.addf %{{.+}}, %{{.+}} : f32
// CHECK-NEXT: arith.mulf %[[ADD]], %[[ADD]]
// CHECK: %[[Y:.+]] = linalg.generic {{.*}} ["parallel", "parallel"]{{.*}} ins(%[[X]], %[[H]],
// CHECK: return %[[Y]], %[[SUM]]
func.func @sum_compute(%x: tensor<4x8xbf16>, %h: tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<4x8xbf16>) {
  %y, %sum = norm.rms_norm %x residual(%h : tensor<4x8xbf16>) axes [1] epsilon none sum_rounding compute : tensor<4x8xbf16> -> tensor<4x8xbf16> sum(tensor<4x8xbf16>)
  return %y, %sum : tensor<4x8xbf16>, tensor<4x8xbf16>
}

// A narrow compute type rounds what each step yields; sums run in f32.
// CHECK-LABEL: func @narrow_compute
// CHECK-NOT: : bf16{{$}}
// CHECK: %[[MEAN:.+]] = arith.divf %{{.+}}, %{{.+}} : f32
// CHECK-NEXT: arith.truncf %[[MEAN]] : f32 to bf16
// CHECK: %[[VARIANCE:.+]] = arith.divf %{{.+}}, %{{.+}} : f32
// CHECK-NEXT: arith.truncf %[[VARIANCE]] : f32 to bf16
// CHECK: math.sqrt
// CHECK: %[[R:.+]] = arith.divf %{{.+}}, %{{.+}} : f32
// CHECK-NEXT: arith.truncf %[[R]] : f32 to bf16
// CHECK: linalg.generic {{.*}} ["parallel", "parallel"]
// CHECK: %[[HAT:.+]] = arith.mulf %{{.+}}, %{{.+}} : f32
// CHECK-NEXT: arith.truncf %[[HAT]] : f32 to bf16
func.func @narrow_compute(%x: tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<4xbf16>) {
  %y, %mean = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-3 compute bf16 : tensor<4x8xbf16> -> tensor<4x8xbf16> mean(tensor<4xbf16>)
  return %y, %mean : tensor<4x8xbf16>, tensor<4xbf16>
}

// The default compute type is the widest of f32, x and residual.
// CHECK-LABEL: func @f64
// CHECK-NOT: f32
// CHECK: return
func.func @f64(%x: tensor<4x8xf64>, %g: tensor<8xf64>) -> tensor<4x8xf64> {
  %y = norm.layer_norm %x scale(%g : tensor<8xf64>) axes [1] epsilon inside_sqrt 1.0e-12 : tensor<4x8xf64> -> tensor<4x8xf64>
  return %y : tensor<4x8xf64>
}

// One scale for all that a statistic is of: the sums are dscale and dshift, and
// dx takes what is left of scale and r from them.
// CHECK-LABEL: func @batch_norm_backward
// CHECK: %[[SUMS:.+]]:2 = linalg.generic {{.*}} ["reduction", "parallel", "reduction"]
// CHECK: %[[HAT:.+]] = arith.mulf
// CHECK-NEXT: %[[TERM:.+]] = arith.mulf %[[DY:.+]], %[[HAT]]
// CHECK-NEXT: arith.addf %{{.+}}, %[[TERM]]
// CHECK-NEXT: arith.addf %{{.+}}, %[[DY]]
// CHECK-NOT: "reduction"
// CHECK: linalg.generic {{.*}} ["parallel"]{{.*}} ins(%[[SUMS]]#0, %[[SUMS]]#1
// CHECK: linalg.generic {{.*}} ["parallel", "parallel", "parallel"]
// CHECK: %[[PART:.+]] = math.fma
// CHECK: %[[DX:.+]] = math.fma %{{.+}}, %{{.+}}, %[[PART]]
// CHECK-NEXT: linalg.yield %[[DX]]
// CHECK: return %{{.+}}, %[[SUMS]]#0, %[[SUMS]]#1
func.func @batch_norm_backward(%dy: tensor<4x8x9xf32>, %x: tensor<4x8x9xf32>, %m: tensor<8xf32>, %r: tensor<8xf32>,
                               %g: tensor<8xf32>) -> (tensor<4x8x9xf32>, tensor<8xf32>, tensor<8xf32>) {
  %dx, %dg, %db = norm.batch_norm_training_backward %dy, %x mean(%m : tensor<8xf32>) rstd(%r : tensor<8xf32>)
    scale(%g : tensor<8xf32>) axes [0, 2] epsilon inside_sqrt 1.0e-5
    : tensor<4x8x9xf32>, tensor<4x8x9xf32> -> tensor<4x8x9xf32> dscale(tensor<8xf32>) dshift(tensor<8xf32>)
  return %dx, %dg, %db : tensor<4x8x9xf32>, tensor<8xf32>, tensor<8xf32>
}

// dscale of a narrow x has x^ as the forward op rounds it, dx has not.
// CHECK-LABEL: func @narrow_batch_norm_backward
// CHECK-COUNT-2: linalg.generic {{.*}} ["reduction", "parallel", "reduction"]
// CHECK: return
func.func @narrow_batch_norm_backward(%dy: tensor<4x8x9xbf16>, %x: tensor<4x8x9xbf16>, %m: tensor<8xf32>, %r: tensor<8xf32>,
                                      %g: tensor<8xbf16>) -> (tensor<4x8x9xbf16>, tensor<8xbf16>) {
  %dx, %dg = norm.batch_norm_training_backward %dy, %x mean(%m : tensor<8xf32>) rstd(%r : tensor<8xf32>)
    scale(%g : tensor<8xbf16>) axes [0, 2] epsilon inside_sqrt 1.0e-5 affine_in result
    : tensor<4x8x9xbf16>, tensor<4x8x9xbf16> -> tensor<4x8x9xbf16> dscale(tensor<8xbf16>)
  return %dx, %dg : tensor<4x8x9xbf16>, tensor<8xbf16>
}
