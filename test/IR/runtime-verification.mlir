// RUN: norm-opt %s -generate-runtime-verification -canonicalize -cse | FileCheck %s

// What types prove is not asserted.
// CHECK-LABEL: func @static
// CHECK-NOT: cf.assert
// CHECK: return
func.func @static(%x: tensor<4x8xf32>, %g: tensor<8xf32>) -> tensor<4x8xf32> {
  %y = norm.rms_norm %x scale(%g : tensor<8xf32>) axes [1] epsilon inside_sqrt 1.0e-5
    : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// V2: the gain has the extent of the affine axis.
// CHECK-LABEL: func @scale_v2
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x?xf32>, %[[G:[a-z0-9]+]]: tensor<?xf32>
// CHECK-DAG: %[[N:.+]] = tensor.dim %[[X]], %c1
// CHECK-DAG: %[[M:.+]] = tensor.dim %[[G]], %c0
// CHECK: %[[SAME:.+]] = arith.cmpi eq, %[[M]], %[[N]]
// CHECK: cf.assert %[[SAME]], "{{.*}}expected dimension 0 of an operand to have the extent of axis 1 of 'x'
func.func @scale_v2(%x: tensor<4x?xf32>, %g: tensor<?xf32>) -> tensor<4x?xf32> {
  %y = norm.rms_norm %x scale(%g : tensor<?xf32>) axes [1] epsilon inside_sqrt 1.0e-5
    : tensor<4x?xf32> -> tensor<4x?xf32>
  return %y : tensor<4x?xf32>
}

// V5: groups divide the channels.
// CHECK-LABEL: func @groups_v5
// CHECK: %[[REST:.+]] = arith.remui %{{.+}}, %c3
// CHECK: %[[WHOLE:.+]] = arith.cmpi eq, %[[REST]], %c0
// CHECK: cf.assert %[[WHOLE]], "{{.*}}expected 3 groups to divide the channels of 'x' (V5)
func.func @groups_v5(%x: tensor<2x?x4xf32>) -> tensor<2x?x4xf32> {
  %y = norm.group_norm %x groups 3 channel_axis 1 axes [1, 2] epsilon inside_sqrt 1.0e-5
    : tensor<2x?x4xf32> -> tensor<2x?x4xf32>
  return %y : tensor<2x?x4xf32>
}

// V6: more than one value per channel when training.
// CHECK-LABEL: func @training_v6
// CHECK: cf.assert %{{.+}}, "{{.*}}expected more than 1 reduced elements, or none (V6)
func.func @training_v6(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %y = norm.batch_norm_training %x axes [0] epsilon inside_sqrt 1.0e-5
    : tensor<?x3xf32> -> tensor<?x3xf32>
  return %y : tensor<?x3xf32>
}

// V17: n - correction is positive.
// CHECK-LABEL: func @correction_v17
// CHECK: cf.assert %{{.+}}, "{{.*}}expected more than 1 reduced elements, or none (V17)
func.func @correction_v17(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 correction 1
    : tensor<4x?xf32> -> tensor<4x?xf32>
  return %y : tensor<4x?xf32>
}

// A static result is a promise about x.
// CHECK-LABEL: func @result_v15
// CHECK: cf.assert %{{.+}}, "{{.*}}expected dimension 0 of a result to have the extent of axis 0 of 'x'
func.func @result_v15(%x: tensor<?x8xf32>) -> tensor<4x8xf32> {
  %y = norm.l2_norm %x axes [1] epsilon none : tensor<?x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// Backward: dy has the shape of x.
// CHECK-LABEL: func @gradient_v15
// CHECK: cf.assert %{{.+}}, "{{.*}}expected dimension 0 of an operand to have the extent of axis 0 of 'x'
func.func @gradient_v15(%dy: tensor<?x8xf32>, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %dx = norm.rms_norm_backward %dy, %x axes [1] epsilon inside_sqrt 1.0e-5
    : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return %dx : tensor<?x8xf32>
}
