// RUN: norm-opt %s -norm-split-gradients -split-input-file | FileCheck %s

// dx sums along a row, dscale and dshift over the samples, though their axes are
// not those of a row: two ops. Saved statistics serve both.
// CHECK-LABEL: func @layer
// CHECK-SAME: %[[DY:[a-z0-9]+]]: tensor<4x6x8xf32>, %[[X:[a-z0-9]+]]: tensor<4x6x8xf32>, %[[M:[a-z0-9]+]]: tensor<4x6xf32>, %[[R:[a-z0-9]+]]: tensor<4x6xf32>, %[[G:[a-z0-9]+]]: tensor<6x8xf32>
// CHECK: %[[DX:.+]] = norm.layer_norm_backward %[[DY]], %[[X]] mean(%[[M]] : tensor<4x6xf32>) rstd(%[[R]] : tensor<4x6xf32>) scale(%[[G]] : tensor<6x8xf32>) axes [2]
// CHECK-SAME: -> tensor<4x6x8xf32>{{$}}
// CHECK: %[[DG:.+]], %[[DB:.+]] = norm.backward_moments %[[DY]], %[[X]] mean(%[[M]] : tensor<4x6xf32>) rstd(%[[R]] : tensor<4x6xf32>) axes [2] affine_axes [1, 2]
// CHECK-NOT: scale(
// CHECK-SAME: -> dscale(tensor<6x8xf32>) dshift(tensor<6x8xbf16>)
// CHECK: return %[[DX]], %[[DG]], %[[DB]]
func.func @layer(%dy: tensor<4x6x8xf32>, %x: tensor<4x6x8xf32>, %m: tensor<4x6xf32>,
                 %r: tensor<4x6xf32>, %g: tensor<6x8xf32>)
    -> (tensor<4x6x8xf32>, tensor<6x8xf32>, tensor<6x8xbf16>) {
  %dx, %dg, %db = norm.layer_norm_backward %dy, %x mean(%m : tensor<4x6xf32>) rstd(%r : tensor<4x6xf32>)
    scale(%g : tensor<6x8xf32>) axes [2] epsilon inside_sqrt 1.0e-5 affine_axes [1, 2]
    : tensor<4x6x8xf32>, tensor<4x6x8xf32> -> tensor<4x6x8xf32> dscale(tensor<6x8xf32>) dshift(tensor<6x8xbf16>)
  return %dx, %dg, %db : tensor<4x6x8xf32>, tensor<6x8xf32>, tensor<6x8xbf16>
}

// -----

// Without saved statistics they are computed once more, in f64.
// CHECK-LABEL: func @recomputed
// CHECK: %[[N:.+]], %[[M:.+]], %[[M2:.+]] = norm.moments %{{.+}} axes [0] about mean {{.*}}-> count(tensor<8xi64>) mean(tensor<8xf64>) m2(tensor<8xf64>)
// CHECK: %[[R:.+]] = norm.rstd %[[M2]] count(%[[N]] : tensor<8xi64>) epsilon outside_sqrt 1.000000e-05 {{.*}}correction 1
// CHECK: norm.backward_moments %{{.+}}, %{{.+}} mean(%[[M]] : tensor<8xf64>) rstd(%[[R]] : tensor<8xf32>)
func.func @recomputed(%dy: tensor<6x8xf32>, %x: tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<6xf32>) {
  %dx, %dg = norm.layer_norm_backward %dy, %x axes [0] epsilon outside_sqrt 1.0e-5 correction 1
    : tensor<6x8xf32>, tensor<6x8xf32> -> tensor<6x8xf32> dscale(tensor<6xf32>)
  return %dx, %dg : tensor<6x8xf32>, tensor<6xf32>
}

// -----

// A tile of a layer norm is a range of rows, which holds sums over rows too.
// CHECK-LABEL: func @rows
// CHECK-NOT: norm.backward_moments
// CHECK: return
func.func @rows(%dy: tensor<6x4x8xf32>, %x: tensor<6x4x8xf32>) -> (tensor<6x4x8xf32>, tensor<4x8xf32>, tensor<8xf32>) {
  %dx, %dg = norm.layer_norm_backward %dy, %x axes [1, 2] epsilon inside_sqrt 1.0e-5
    : tensor<6x4x8xf32>, tensor<6x4x8xf32> -> tensor<6x4x8xf32> dscale(tensor<4x8xf32>)
  %dz, %dh = norm.rms_norm_backward %dy, %x axes [2] epsilon inside_sqrt 1.0e-5
    : tensor<6x4x8xf32>, tensor<6x4x8xf32> -> tensor<6x4x8xf32> dscale(tensor<8xf32>)
  %sum = arith.addf %dx, %dz : tensor<6x4x8xf32>
  return %sum, %dg, %dh : tensor<6x4x8xf32>, tensor<4x8xf32>, tensor<8xf32>
}

// -----

// One tile holds all sums of a batch norm.
// CHECK-LABEL: func @batch
// CHECK-NOT: norm.backward_moments
// CHECK: return
func.func @batch(%dy: tensor<6x8xf32>, %x: tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<8xf32>) {
  %dx, %dg = norm.batch_norm_training_backward %dy, %x axes [0] epsilon inside_sqrt 1.0e-5
    : tensor<6x8xf32>, tensor<6x8xf32> -> tensor<6x8xf32> dscale(tensor<8xf32>)
  return %dx, %dg : tensor<6x8xf32>, tensor<8xf32>
}

// -----

// A group norm's gradients are those of the view with groups as an axis.
// CHECK-LABEL: func @group
// CHECK: norm.group_norm_backward {{.*}} -> tensor<2x6x4xf32>{{$}}
// CHECK-DAG: tensor.expand_shape %{{.+}} {{\[\[0\], \[1, 2\], \[3\]\]}} output_shape [2, 3, 2, 4]
// CHECK: %[[DG:.+]] = norm.backward_moments {{.*}} axes [2, 3] affine_axes [1, 2]
// CHECK-SAME: -> dscale(tensor<3x2xf32>)
// CHECK: tensor.collapse_shape %[[DG]] {{\[\[0, 1\]\]}} : tensor<3x2xf32> into tensor<6xf32>
func.func @group(%dy: tensor<2x6x4xf32>, %x: tensor<2x6x4xf32>, %m: tensor<2x3xf32>, %r: tensor<2x3xf32>)
    -> (tensor<2x6x4xf32>, tensor<6xf32>) {
  %dx, %dg = norm.group_norm_backward %dy, %x mean(%m : tensor<2x3xf32>) rstd(%r : tensor<2x3xf32>)
    groups 3 channel_axis 1 axes [1, 2] epsilon inside_sqrt 1.0e-5
    : tensor<2x6x4xf32>, tensor<2x6x4xf32> -> tensor<2x6x4xf32> dscale(tensor<6xf32>)
  return %dx, %dg : tensor<2x6x4xf32>, tensor<6xf32>
}

// -----

// The algebra's own op splits likewise.
// CHECK-LABEL: func @moments
// CHECK: %[[SG:.+]], %[[SGX:.+]] = norm.backward_moments {{.*}} scale({{.*}} -> sum_g(tensor<6xf32>) sum_gx(tensor<6xf32>)
// CHECK: %[[DB:.+]] = norm.backward_moments {{.*}} -> dshift(tensor<8xf32>)
// CHECK: return %[[SG]], %[[SGX]], %[[DB]]
func.func @moments(%dy: tensor<6x8xf32>, %x: tensor<6x8xf32>, %m: tensor<6xf32>, %r: tensor<6xf32>, %g: tensor<8xf32>)
    -> (tensor<6xf32>, tensor<6xf32>, tensor<8xf32>) {
  %sg, %sgx, %db = norm.backward_moments %dy, %x mean(%m : tensor<6xf32>) rstd(%r : tensor<6xf32>)
    scale(%g : tensor<8xf32>) axes [1] scale_offset 1.0
    : tensor<6x8xf32>, tensor<6x8xf32> -> sum_g(tensor<6xf32>) sum_gx(tensor<6xf32>) dshift(tensor<8xf32>)
  return %sg, %sgx, %db : tensor<6xf32>, tensor<6xf32>, tensor<8xf32>
}

// -----

// Affine axes stay only with what they index (V17).
// CHECK-LABEL: func @stated_axes
// CHECK: norm.instance_norm_backward %{{.+}}, %{{.+}} axes [2] epsilon
// CHECK-NOT: affine_axes
// CHECK: norm.backward_moments {{.*}} axes [2] affine_axes [1]
// CHECK: norm.backward_moments %{{.+}}, %{{.+}} rstd(%{{.+}} : tensor<2x3xf32>) axes [2]
// CHECK-NOT: affine_axes
// CHECK-SAME: -> sum_gx
// CHECK: norm.backward_moments {{.*}} axes [2] affine_axes [1]
// CHECK-SAME: -> dscale
func.func @stated_axes(%dy: tensor<2x3x4xf32>, %x: tensor<2x3x4xf32>, %r: tensor<2x3xf32>)
    -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<2x3xf32>, tensor<3xf32>) {
  %dx, %db = norm.instance_norm_backward %dy, %x rstd(%r : tensor<2x3xf32>)
    axes [2] epsilon none affine_axes [1]
    : tensor<2x3x4xf32>, tensor<2x3x4xf32> -> tensor<2x3x4xf32> dshift(tensor<3xf32>)
  %sgx, %dg = norm.backward_moments %dy, %x rstd(%r : tensor<2x3xf32>) axes [2] affine_axes [1]
    : tensor<2x3x4xf32>, tensor<2x3x4xf32> -> sum_gx(tensor<2x3xf32>) dscale(tensor<3xf32>)
  return %dx, %db, %sgx, %dg : tensor<2x3x4xf32>, tensor<3xf32>, tensor<2x3xf32>, tensor<3xf32>
}
