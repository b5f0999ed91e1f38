// RUN: norm-opt %s --norm-generalize --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @layer(
// CHECK-SAME:      %[[X:.*]]: tensor<4x8xf32>, %[[G:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>)
// CHECK:         %[[N:.*]], %[[M:.*]], %[[Q:.*]] = norm.moments %[[X]] axes [1] about mean : tensor<4x8xf32> -> count(tensor<4xi64>) mean(tensor<4xf64>) m2(tensor<4xf64>)
// CHECK:         %[[R:.*]] = norm.rstd %[[Q]] count(%[[N]] : tensor<4xi64>) epsilon inside_sqrt 1.000000e-05 compute f32 correction 1 : tensor<4xf64> -> tensor<4xf32>
// CHECK:         %[[Y:.*]] = norm.normalize %[[X]] mean(%[[M]] : tensor<4xf64>) rstd(%[[R]] : tensor<4xf32>) scale(%[[G]] : tensor<8xf32>) shift(%[[B]] : tensor<8xf32>) axes [1] : tensor<4x8xf32> -> tensor<4x8xf32>
// The saved mean is that of the named op.
// CHECK:         %[[SAVED:.*]] = linalg.generic
// CHECK-SAME:        ins(%[[M]] : tensor<4xf64>) outs({{.*}} : tensor<4xf32>)
// CHECK:           arith.truncf
// CHECK:         return %[[Y]], %[[SAVED]], %[[R]]
func.func @layer(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>)
    -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) {
  %y, %m, %r = norm.layer_norm %x scale(%g : tensor<8xf32>) shift(%b : tensor<8xf32>)
      axes [-1] epsilon inside_sqrt 1.0e-5 correction 1
      : tensor<4x8xf32> -> tensor<4x8xf32> mean(tensor<4xf32>) rstd(tensor<4xf32>)
  return %y, %m, %r : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// The sum is rounded to bf16, as `stored` says, and what is normalized is rounded.
// CHECK-LABEL: func.func @rms(
// CHECK:         %[[SUM:.*]] = linalg.generic
// CHECK:           arith.addf {{.*}} : f32
// CHECK:           arith.truncf {{.*}} : f32 to bf16
// CHECK:         %[[N:.*]], %[[Q:.*]] = norm.moments %[[SUM]] axes [1] about zero : tensor<4x8xbf16> -> count(tensor<4xi64>) m2(tensor<4xf64>)
// CHECK:         norm.rstd %[[Q]] count(%[[N]] : tensor<4xi64>) epsilon inside_sqrt 1.000000e-06 compute f32 :
// CHECK:         norm.normalize %[[SUM]] rstd({{.*}}) scale({{.*}}) axes [1] scale_offset 1.000000e+00 affine_in result :
func.func @rms(%x: tensor<4x8xbf16>, %h: tensor<4x8xbf16>, %g: tensor<8xbf16>)
    -> (tensor<4x8xbf16>, tensor<4x8xbf16>) {
  %y, %s = norm.rms_norm %x residual(%h : tensor<4x8xbf16>) scale(%g : tensor<8xbf16>)
      axes [1] epsilon inside_sqrt 1.0e-6 scale_offset 1.0 affine_in result
      : tensor<4x8xbf16> -> tensor<4x8xbf16> sum(tensor<4x8xbf16>)
  return %y, %s : tensor<4x8xbf16>, tensor<4x8xbf16>
}

// -----

// A sum of squares counts nothing.
// CHECK-LABEL: func.func @l2(
// CHECK:         %[[Q:.*]] = norm.moments %{{.*}} axes [1] about zero : tensor<4x8xf32> -> m2(tensor<4xf64>)
// CHECK:         norm.rstd %[[Q]] epsilon max_outside 1.000000e-12 compute f32 zero_policy zero :
func.func @l2(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = norm.l2_norm %x axes [1] epsilon max_outside 1.0e-12 zero_policy zero
      : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @group(
// CHECK-SAME:      %[[X:.*]]: tensor<2x6x5xf32>, %[[G:.*]]: tensor<6xf32>)
// CHECK-DAG:     %[[XV:.*]] = tensor.expand_shape %[[X]] {{\[\[}}0], [1, 2], [3]] {{.*}} : tensor<2x6x5xf32> into tensor<2x3x2x5xf32>
// CHECK-DAG:     %[[GV:.*]] = tensor.expand_shape %[[G]] {{\[\[}}0, 1]] {{.*}} : tensor<6xf32> into tensor<3x2xf32>
// CHECK:         norm.moments %[[XV]] axes [2, 3] about mean : tensor<2x3x2x5xf32> -> count(tensor<2x3xi64>) mean(tensor<2x3xf64>) m2(tensor<2x3xf64>)
// CHECK:         %[[Y:.*]] = norm.normalize %[[XV]] {{.*}} scale(%[[GV]] : tensor<3x2xf32>) axes [2, 3] affine_axes [1, 2] :
// CHECK:         tensor.collapse_shape %[[Y]]
func.func @group(%x: tensor<2x6x5xf32>, %g: tensor<6xf32>)
    -> (tensor<2x6x5xf32>, tensor<2x3xf32>) {
  %y, %m = norm.group_norm %x scale(%g : tensor<6xf32>) groups 3 channel_axis 1
      axes [1, 2] epsilon inside_sqrt 1.0e-5
      : tensor<2x6x5xf32> -> tensor<2x6x5xf32> mean(tensor<2x3xf32>)
  return %y, %m : tensor<2x6x5xf32>, tensor<2x3xf32>
}

// -----

// CHECK-LABEL: func.func @instance(
// CHECK:         norm.normalize {{.*}} axes [2] affine_axes [1] :
func.func @instance(%x: tensor<2x6x5xf32>, %g: tensor<6xf32>) -> tensor<2x6x5xf32> {
  %y = norm.instance_norm %x scale(%g : tensor<6xf32>) axes [2]
      epsilon inside_sqrt 1.0e-5 affine_axes [1]
      : tensor<2x6x5xf32> -> tensor<2x6x5xf32>
  return %y : tensor<2x6x5xf32>
}

// -----

// CHECK-LABEL: func.func @batch(
// CHECK-SAME:      %[[X:.*]]: tensor<?x6xf32>, %[[RM:.*]]: tensor<6xf32>, %[[RV:.*]]: tensor<6xf32>, %[[A:.*]]: f32)
// CHECK:         %[[N:.*]], %[[M:.*]], %[[Q:.*]] = norm.moments %[[X]] axes [0]
// CHECK:         %[[M1:.*]] = norm.update_running %[[RM]], %[[M]] count(%[[N]] : tensor<6xi64>) statistic mean momentum{{ ?}}(%[[A]] : f32) : tensor<6xf32>, tensor<6xf64> -> tensor<6xf32>
// CHECK:         %[[V1:.*]] = norm.update_running %[[RV]], %[[Q]] count(%[[N]] : tensor<6xi64>) statistic variance momentum{{ ?}}(%[[A]] : f32) running_correction 0 : tensor<6xf32>, tensor<6xf64> -> tensor<6xf32>
func.func @batch(%x: tensor<?x6xf32>, %rm: tensor<6xf32>, %rv: tensor<6xf32>, %a: f32)
    -> (tensor<?x6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %y, %m1, %v1 = norm.batch_norm_training %x running(%rm, %rv : tensor<6xf32>, tensor<6xf32>)
      axes [0] epsilon inside_sqrt 1.0e-5 momentum(%a : f32) running_correction 0
      : tensor<?x6xf32> -> tensor<?x6xf32> running_mean(tensor<6xf32>)
        running_variance(tensor<6xf32>)
  return %y, %m1, %v1 : tensor<?x6xf32>, tensor<6xf32>, tensor<6xf32>
}

// -----

// Given statistics are not measured.
// CHECK-LABEL: func.func @inference(
// CHECK-NOT:     norm.moments
// CHECK:         %[[R:.*]] = norm.rstd %[[V:.*]] epsilon inside_sqrt 1.000000e-05 : tensor<6xf32> -> tensor<6xf32>
// CHECK:         norm.normalize %{{.*}} mean(%{{.*}} : tensor<6xf32>) rstd(%[[R]] : tensor<6xf32>) axes [0] :
func.func @inference(%x: tensor<4x6xf32>, %m: tensor<6xf32>, %v: tensor<6xf32>)
    -> tensor<4x6xf32> {
  %y = norm.batch_norm_inference %x mean(%m : tensor<6xf32>) variance(%v : tensor<6xf32>)
      axes [0] epsilon inside_sqrt 1.0e-5 : tensor<4x6xf32> -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// -----

// Statistics that are not saved are measured again; one sweep makes all sums.
// CHECK-LABEL: func.func @layer_backward(
// CHECK-SAME:      %[[DY:.*]]: tensor<4x8xf32>, %[[X:.*]]: tensor<4x8xf32>, %[[G:.*]]: tensor<8xf32>)
// CHECK:         %[[N:.*]], %[[M:.*]], %[[Q:.*]] = norm.moments %[[X]]
// CHECK:         %[[R:.*]], %[[V:.*]] = norm.rstd {{.*}} variance(tensor<4xf32>)
// CHECK:         %[[SG:.*]], %[[SX:.*]], %[[DG:.*]], %[[DB:.*]] = norm.backward_moments %[[DY]], %[[X]] mean(%[[M]] : tensor<4xf64>) rstd(%[[R]] : tensor<4xf32>) scale(%[[G]] : tensor<8xf32>) axes [1] : tensor<4x8xf32>, tensor<4x8xf32> -> sum_g(tensor<4xf64>) sum_gx(tensor<4xf64>) dscale(tensor<8xf32>) dshift(tensor<8xf32>)
// CHECK:         %[[DX:.*]] = norm.backward_normalize %[[DY]], %[[X]] mean(%[[M]] : tensor<4xf64>) rstd(%[[R]] : tensor<4xf32>) scale(%[[G]] : tensor<8xf32>) variance(%[[V]] : tensor<4xf32>) sum_g(%[[SG]] : tensor<4xf64>) sum_gx(%[[SX]] : tensor<4xf64>) count(%[[N]] : tensor<4xi64>) axes [1] epsilon outside_sqrt 1.000000e-05 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
// CHECK:         return %[[DX]], %[[DG]], %[[DB]]
func.func @layer_backward(%dy: tensor<4x8xf32>, %x: tensor<4x8xf32>, %g: tensor<8xf32>)
    -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %dx, %dg, %db = norm.layer_norm_backward %dy, %x scale(%g : tensor<8xf32>)
      axes [1] epsilon outside_sqrt 1.0e-5
      : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32> dscale(tensor<8xf32>)
        dshift(tensor<8xf32>)
  return %dx, %dg, %db : tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// With saved statistics only the count is taken from x. dx is rounded after dsum is
// added.
// CHECK-LABEL: func.func @rms_backward(
// CHECK:         %[[N:.*]] = norm.moments %{{.*}} axes [1] about zero : tensor<4x8xbf16> -> count(tensor<4xi64>)
// CHECK:         norm.backward_moments {{.*}} -> sum_gx(tensor<4xf64>)
// CHECK:         %[[DX:.*]] = norm.backward_normalize {{.*}} -> tensor<4x8xf32>
// CHECK:         linalg.generic
// CHECK:           arith.addf {{.*}} : f32
// CHECK-NEXT:      arith.truncf {{.*}} : f32 to bf16
func.func @rms_backward(%dy: tensor<4x8xbf16>, %x: tensor<4x8xbf16>, %ds: tensor<4x8xbf16>,
                        %r: tensor<4xf32>) -> tensor<4x8xbf16> {
  %dx = norm.rms_norm_backward %dy, %x dsum(%ds : tensor<4x8xbf16>) rstd(%r : tensor<4xf32>)
      axes [1] epsilon inside_sqrt 1.0e-5
      : tensor<4x8xbf16>, tensor<4x8xbf16> -> tensor<4x8xbf16>
  return %dx : tensor<4x8xbf16>
}
