// RUN: norm-opt %s --norm-generalize="parts=2 axis=1" | FileCheck %s --check-prefixes=PARTS
// RUN: norm-opt %s --norm-generalize="cut=true axis=1" | FileCheck %s --check-prefixes=CUT

// Static parts of 2 and 3 columns, stacked and merged; y is whole.
// PARTS-LABEL: func.func @forward(
// PARTS-DAG:     %[[X0:.*]] = tensor.extract_slice %arg0[0, 0] [4, 2] [1, 1]
// PARTS-DAG:     %[[X1:.*]] = tensor.extract_slice %arg0[0, 2] [4, 3] [1, 1]
// PARTS:         %[[N0:.*]], %{{.*}}, %{{.*}} = norm.moments %[[X0]] axes [1] about mean : tensor<4x2xf32> -> count(tensor<4xi64>) mean(tensor<4xf64>) m2(tensor<4xf64>)
// PARTS:         %[[N1:.*]], %{{.*}}, %{{.*}} = norm.moments %[[X1]]
// PARTS:         %[[S0:.*]] = tensor.insert_slice %[[N0]] into %{{.*}}[0, 0] [1, 4] [1, 1] : tensor<4xi64> into tensor<2x4xi64>
// PARTS:         %[[S1:.*]] = tensor.insert_slice %[[N1]] into %[[S0]][1, 0] [1, 4] [1, 1]
// PARTS:         norm.combine_moments count(%[[S1]] : tensor<2x4xi64>) mean({{.*}} : tensor<2x4xf64>) m2({{.*}} : tensor<2x4xf64>) -> count(tensor<4xi64>) mean(tensor<4xf64>) m2(tensor<4xf64>)
// PARTS:         norm.normalize %arg0

// CUT-LABEL: func.func @forward.0(
// CUT-SAME:      %{{.*}}: tensor<4x5xf32>, %{{.*}}: tensor<5xf32>) -> (tensor<1x4xi64>, tensor<1x4xf64>, tensor<1x4xf64>)
// CUT:         norm.moments
// CUT-NOT:     norm.
// CUT-LABEL: func.func @forward.1(
// CUT-SAME:      %{{.*}}: tensor<4x5xf32>, %{{.*}}: tensor<5xf32>, %[[N:.*]]: tensor<?x4xi64>, %[[M:.*]]: tensor<?x4xf64>, %[[Q:.*]]: tensor<?x4xf64>) -> tensor<4x5xf32>
// CUT-NOT:     norm.moments
// CUT:         norm.combine_moments count(%[[N]] : {{.*}}) mean(%[[M]] : {{.*}}) m2(%[[Q]] :
// CUT:         norm.normalize
func.func @forward(%x: tensor<4x5xf32>, %g: tensor<5xf32>) -> tensor<4x5xf32> {
  %y = norm.layer_norm %x scale(%g : tensor<5xf32>) axes [1] epsilon inside_sqrt 1.0e-5
      : tensor<4x5xf32> -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// Parts of a gradient see their slices of scale; sums are added in order. The
// parameters' gradients are those of all parts.
// PARTS-LABEL: func.func @backward(
// PARTS:         %[[N:.*]] = affine.apply
// PARTS:         norm.backward_moments {{.*}} scale({{.*}} : tensor<?xf32>) axes [1] {{.*}} -> sum_gx(tensor<4xf64>)
// PARTS:         norm.backward_moments {{.*}} scale({{.*}} : tensor<?xf32>) axes [1] {{.*}} -> sum_gx(tensor<4xf64>)
// PARTS:         linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]
// PARTS:         norm.backward_normalize {{.*}} sum_gx({{.*}}) count(
// PARTS:         norm.backward_moments {{.*}} -> dscale(tensor<?xf32>)

// A saved factor leaves one exchange, with the count.
// CUT-LABEL: func.func @backward.0(
// CUT-SAME:      -> (tensor<1x4xi64>, tensor<1x4xf64>)
// CUT-NOT:     dscale
// CUT-LABEL: func.func @backward.1(
// CUT-SAME:      tensor<?x4xi64>, %{{.*}}: tensor<?x4xf64>) -> (tensor<4x?xf32>, tensor<?xf32>)
// CUT-NOT:     func.func @backward.2
func.func @backward(%dy: tensor<4x?xf32>, %x: tensor<4x?xf32>, %g: tensor<?xf32>,
                    %r: tensor<4xf32>) -> (tensor<4x?xf32>, tensor<?xf32>) {
  %dx, %dg = norm.rms_norm_backward %dy, %x rstd(%r : tensor<4xf32>) scale(%g : tensor<?xf32>)
      axes [1] epsilon inside_sqrt 1.0e-5
      : tensor<4x?xf32>, tensor<4x?xf32> -> tensor<4x?xf32> dscale(tensor<?xf32>)
  return %dx, %dg : tensor<4x?xf32>, tensor<?xf32>
}

// Two exchanges where nothing is saved.
// CUT-LABEL: func.func @unsaved.0(
// CUT-SAME:      -> (tensor<1x4xi64>, tensor<1x4xf64>, tensor<1x4xf64>)
// CUT-LABEL: func.func @unsaved.1(
// CUT-SAME:      -> (tensor<1x4xf64>, tensor<1x4xf64>)
// CUT-LABEL: func.func @unsaved.2(
// CUT-SAME:      tensor<?x4xi64>, %{{.*}}: tensor<?x4xf64>, %{{.*}}: tensor<?x4xf64>, %{{.*}}: tensor<?x4xf64>, %{{.*}}: tensor<?x4xf64>) -> tensor<4x?xf32>
func.func @unsaved(%dy: tensor<4x?xf32>, %x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %dx = norm.layer_norm_backward %dy, %x axes [1] epsilon inside_sqrt 1.0e-5
      : tensor<4x?xf32>, tensor<4x?xf32> -> tensor<4x?xf32>
  return %dx : tensor<4x?xf32>
}

// Given statistics: nothing to cut, nothing to exchange.
// PARTS-LABEL: func.func @inference(
// PARTS-NOT:     tensor.extract_slice
// CUT-LABEL: func.func @inference.0(
// CUT-NOT:   func.func @inference.1(
func.func @inference(%x: tensor<?x5xf32>, %m: tensor<5xf32>, %v: tensor<5xf32>)
    -> tensor<?x5xf32> {
  %y = norm.batch_norm_inference %x mean(%m : tensor<5xf32>) variance(%v : tensor<5xf32>)
      axes [0] epsilon inside_sqrt 1.0e-5 : tensor<?x5xf32> -> tensor<?x5xf32>
  return %y : tensor<?x5xf32>
}

// No named norm: left as it is.
// CUT-LABEL: func.func @other(
func.func @other(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
