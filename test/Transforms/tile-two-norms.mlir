// RUN: norm-opt %s --norm-tile | FileCheck %s

// Two norms with the same tiles, of which the second alone reads the first,
// share one loop: the branch norm and the next pre-norm of a sandwich.

// CHECK-LABEL: func @sandwich
// CHECK:         scf.forall
// CHECK:           %[[N:.+]] = norm.rms_norm %{{.+}} axes [1] epsilon none : tensor<1x8xf32>
// CHECK:           %[[E:.+]] = linalg.{{exp|generic}} {{.*}}ins(%[[N]]
// CHECK:           norm.layer_norm %{{.+}} residual(%{{.+}} : tensor<1x8xf32>)
// CHECK:         norm.strategy = #norm.cpu
// CHECK-NOT:     scf.forall
func.func @sandwich(%x: tensor<4x8xf32>, %f: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %n = norm.rms_norm %f axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>} : tensor<4x8xf32> -> tensor<4x8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %t = linalg.exp ins(%n : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y, %s = norm.layer_norm %t residual(%x : tensor<4x8xf32>) axes [1] epsilon inside_sqrt 1.0e-5 {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>}
      : tensor<4x8xf32> -> tensor<4x8xf32> sum(tensor<4x8xf32>)
  return %y, %s : tensor<4x8xf32>, tensor<4x8xf32>
}

// Something else reads it, or its statistics.
// CHECK-LABEL: func @read_elsewhere
// CHECK-COUNT-2: scf.forall (
// CHECK-LABEL: func @statistics
// CHECK-COUNT-2: scf.forall (
func.func @read_elsewhere(%f: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %n = norm.rms_norm %f axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>} : tensor<4x8xf32> -> tensor<4x8xf32>
  %y = norm.layer_norm %n axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>} : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y, %n : tensor<4x8xf32>, tensor<4x8xf32>
}
func.func @statistics(%f: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %n, %r = norm.rms_norm %f axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>} : tensor<4x8xf32> -> tensor<4x8xf32> rstd(tensor<4xf32>)
  %y = norm.layer_norm %n axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>} : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y, %r : tensor<4x8xf32>, tensor<4xf32>
}

// Other axes, or another tree of sums.
// CHECK-LABEL: func @other_axes
// CHECK-COUNT-2: scf.forall (
// CHECK-LABEL: func @other_strategy
// CHECK-COUNT-2: scf.forall (
func.func @other_axes(%f: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %n = norm.rms_norm %f axes [0] epsilon none {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>} : tensor<4x8xf32> -> tensor<4x8xf32>
  %y = norm.layer_norm %n axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>} : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
func.func @other_strategy(%f: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %n = norm.rms_norm %f axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 1, columns = 4, parallel = false>} : tensor<4x8xf32> -> tensor<4x8xf32>
  %y = norm.layer_norm %n axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>} : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// As a gain it is read by no row: not even by rows of the same shape.
// CHECK-LABEL: func @gain
// CHECK-COUNT-2: scf.forall (
func.func @gain(%f: tensor<4x8xf32>, %x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %n = norm.rms_norm %f axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>} : tensor<4x8xf32> -> tensor<4x8xf32>
  %y = norm.layer_norm %x scale(%n : tensor<4x8xf32>) axes [1] epsilon none affine_axes [0, 1] {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>} : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
