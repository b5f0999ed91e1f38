// RUN: norm-opt %s -norm-merge-axes -canonicalize -split-input-file | FileCheck %s
// RUN: norm-opt %s -norm-merge-axes -split-input-file -o /dev/null --remarks-filter=norm-merge-axes 2>&1 | FileCheck %s --check-prefix=WHY

// Height and width are one axis to a batch norm, and to what is around it.
// CHECK-LABEL: func @batch
// CHECK-SAME: %[[X:.+]]: tensor<4x6x5x7xf32>, %[[R:.+]]: tensor<4x6x5x7xf32>, %[[G:.+]]: tensor<6xf32>
// CHECK: %[[X3:.+]] = tensor.collapse_shape %[[X]] {{\[}}[0], [1], [2, 3]] : tensor<4x6x5x7xf32> into tensor<4x6x35xf32>
// CHECK: %[[Y:.+]], %[[M:.+]] = norm.batch_norm_training %[[X3]] scale(%[[G]] : tensor<6xf32>) axes [0, 2] {{.*}} tensor<4x6x35xf32> -> tensor<4x6x35xf32> mean(tensor<6xf32>)
// CHECK: %[[R3:.+]] = tensor.collapse_shape %[[R]] {{\[}}[0], [1], [2, 3]]
// CHECK: %[[S:.+]] = linalg.generic {{.*}} ins(%[[Y]], %[[R3]] : tensor<4x6x35xf32>, tensor<4x6x35xf32>) outs(%{{.+}} : tensor<4x6x35xf32>)
// CHECK: %[[OUT:.+]] = tensor.expand_shape %[[S]] {{\[}}[0], [1], [2, 3]]
// CHECK: return %[[OUT]], %[[M]]
func.func @batch(%x: tensor<4x6x5x7xf32>, %r: tensor<4x6x5x7xf32>, %g: tensor<6xf32>) -> (tensor<4x6x5x7xf32>, tensor<6xf32>) {
  %y, %m = norm.batch_norm_training %x scale(%g : tensor<6xf32>) axes [0, 2, 3] epsilon inside_sqrt 1.0e-5
    : tensor<4x6x5x7xf32> -> tensor<4x6x5x7xf32> mean(tensor<6xf32>)
  %s = arith.addf %y, %r : tensor<4x6x5x7xf32>
  return %s, %m : tensor<4x6x5x7xf32>, tensor<6xf32>
}

// -----

// Channels last: all but the channels.
// CHECK-LABEL: func @last
// CHECK: norm.batch_norm_training_backward %{{.+}}, %{{.+}} axes [0] {{.*}} tensor<140x6xf32>, tensor<140x6xf32> -> tensor<140x6xf32> dscale(tensor<6xf32>)
// CHECK: tensor.expand_shape %{{.+}} {{\[}}[0, 1, 2], [3]]
func.func @last(%dy: tensor<4x5x7x6xf32>, %x: tensor<4x5x7x6xf32>) -> (tensor<4x5x7x6xf32>, tensor<6xf32>) {
  %dx, %dg = norm.batch_norm_training_backward %dy, %x axes [0, 1, 2] epsilon inside_sqrt 1.0e-5
    : tensor<4x5x7x6xf32>, tensor<4x5x7x6xf32> -> tensor<4x5x7x6xf32> dscale(tensor<6xf32>)
  return %dx, %dg : tensor<4x5x7x6xf32>, tensor<6xf32>
}

// -----

// The axis that groups split stays; extents that are not known do not matter.
// CHECK-LABEL: func @group
// CHECK: norm.group_norm %{{.+}} scale(%{{.+}} : tensor<?xf32>) groups 3 channel_axis 1 axes [1, 2] {{.*}} tensor<?x?x?xf32>
// CHECK: tensor.expand_shape %{{.+}} {{\[}}[0], [1], [2, 3, 4]]
func.func @group(%x: tensor<?x?x?x?x?xf32>, %g: tensor<?xf32>) -> tensor<?x?x?x?x?xf32> {
  %y = norm.group_norm %x scale(%g : tensor<?xf32>) groups 3 channel_axis 1 axes [1, 2, 3, 4] epsilon inside_sqrt 1.0e-5
    : tensor<?x?x?x?x?xf32> -> tensor<?x?x?x?x?xf32>
  return %y : tensor<?x?x?x?x?xf32>
}

// -----

// A gain for each element merges too, a gain along one of two axes parts them.
// CHECK-LABEL: func @gains
// CHECK: norm.layer_norm_backward {{.*}} scale(%{{.+}} : tensor<35xf32>) axes [1] {{.*}} dscale(tensor<35xf32>)
// CHECK: norm.layer_norm %{{.+}} scale(%{{.+}} : tensor<7xf32>) axes [1, 2] {{.*}} tensor<4x5x7xf32>
func.func @gains(%dy: tensor<4x5x7xf32>, %x: tensor<4x5x7xf32>, %g: tensor<5x7xf32>, %h: tensor<7xf32>)
    -> (tensor<4x5x7xf32>, tensor<5x7xf32>, tensor<4x5x7xf32>) {
  %dx, %dg = norm.layer_norm_backward %dy, %x scale(%g : tensor<5x7xf32>) axes [1, 2] epsilon inside_sqrt 1.0e-5
    : tensor<4x5x7xf32>, tensor<4x5x7xf32> -> tensor<4x5x7xf32> dscale(tensor<5x7xf32>)
  %y = norm.layer_norm %x scale(%h : tensor<7xf32>) axes [1, 2] epsilon inside_sqrt 1.0e-5 affine_axes [2]
    : tensor<4x5x7xf32> -> tensor<4x5x7xf32>
  return %dx, %dg, %y : tensor<4x5x7xf32>, tensor<5x7xf32>, tensor<4x5x7xf32>
}

// -----

// Two norms of one image have no reshape between them.
// CHECK-LABEL: func @two
// CHECK: %[[Y:.+]] = norm.instance_norm
// CHECK: norm.instance_norm %[[Y]] axes [2]
func.func @two(%x: tensor<4x6x5x7xf32>) -> tensor<4x6x5x7xf32> {
  %y = norm.instance_norm %x axes [2, 3] epsilon inside_sqrt 1.0e-5 : tensor<4x6x5x7xf32> -> tensor<4x6x5x7xf32>
  %z = norm.instance_norm %y axes [2, 3] epsilon inside_sqrt 1.0e-3 : tensor<4x6x5x7xf32> -> tensor<4x6x5x7xf32>
  return %z : tensor<4x6x5x7xf32>
}

// -----

// Kept axes are let be: heads of a packed projection lie apart.
// CHECK-LABEL: func @kept
// CHECK-NOT: tensor.collapse_shape
func.func @kept(%x: tensor<4x6x8xf32>) -> tensor<4x6x8xf32> {
  %y = norm.rms_norm %x axes [2] epsilon inside_sqrt 1.0e-5 : tensor<4x6x8xf32> -> tensor<4x6x8xf32>
  return %y : tensor<4x6x8xf32>
}

// -----

// A neighbour that could not follow would no longer fuse.
// CHECK-LABEL: func @width
// CHECK: norm.instance_norm %{{.+}} axes [2, 3]
// WHY: axes are not merged: a neighbour tells them apart
func.func @width(%x: tensor<4x6x5x7xf32>, %b: tensor<7xf32>) -> tensor<4x6x5x7xf32> {
  %e = tensor.empty() : tensor<4x6x5x7xf32>
  %s = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (d)>,
                       affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %b : tensor<4x6x5x7xf32>, tensor<7xf32>) outs(%e : tensor<4x6x5x7xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %t = arith.addf %i, %j : f32
    linalg.yield %t : f32
  } -> tensor<4x6x5x7xf32>
  %y = norm.instance_norm %s axes [2, 3] epsilon inside_sqrt 1.0e-5 : tensor<4x6x5x7xf32> -> tensor<4x6x5x7xf32>
  return %y : tensor<4x6x5x7xf32>
}

// -----

// What run time tells of a neighbour's extents comes from x: y is not kept for its
// shape.
// CHECK-LABEL: func @extents
// CHECK: %[[Y:.+]] = norm.instance_norm
// CHECK-NOT: expand_shape %[[Y]]
// CHECK: %[[Z:.+]] = linalg.generic {{.*}} ins(%[[Y]] : tensor<?x6x?xf32>)
// CHECK: tensor.expand_shape %[[Z]]
func.func @extents(%x: tensor<?x6x?x?xf32>) -> tensor<?x6x?x?xf32> {
  %y = norm.instance_norm %x axes [2, 3] epsilon inside_sqrt 1.0e-5 : tensor<?x6x?x?xf32> -> tensor<?x6x?x?xf32>
  %z = math.exp %y : tensor<?x6x?x?xf32>
  return %z : tensor<?x6x?x?xf32>
}

// -----

// CHECK-LABEL: func @transposed
// CHECK: norm.instance_norm %{{.+}} axes [2, 3]
// WHY: axes are not merged: a neighbour transposes
func.func @transposed(%x: tensor<4x6x5x7xf32>) -> tensor<4x5x7x6xf32> {
  %y = norm.instance_norm %x axes [2, 3] epsilon inside_sqrt 1.0e-5 : tensor<4x6x5x7xf32> -> tensor<4x6x5x7xf32>
  %e = tensor.empty() : tensor<4x5x7x6xf32>
  %t = linalg.transpose ins(%y : tensor<4x6x5x7xf32>) outs(%e : tensor<4x5x7x6xf32>) permutation = [0, 2, 3, 1]
  return %t : tensor<4x5x7x6xf32>
}

// -----

// CHECK-LABEL: func @slice
// CHECK: norm.instance_norm %{{.+}} axes [2, 3]
// WHY: axes are not merged: x is a part of a tensor
func.func @slice(%a: tensor<4x6x9x9xf32>) -> tensor<4x6x5x7xf32> {
  %x = tensor.extract_slice %a[0, 0, 1, 1] [4, 6, 5, 7] [1, 1, 1, 1] : tensor<4x6x9x9xf32> to tensor<4x6x5x7xf32>
  %y = norm.instance_norm %x axes [2, 3] epsilon inside_sqrt 1.0e-5 : tensor<4x6x5x7xf32> -> tensor<4x6x5x7xf32>
  return %y : tensor<4x6x5x7xf32>
}

// -----

// What asks for extents may stand right behind what is expanded.
// CHECK-LABEL: func @asked_next
// CHECK: %[[Y:.+]] = norm.rms_norm %{{.+}} axes [1] {{.*}} : tensor<1x?x1xf32>
// CHECK: linalg.generic {{.*}} ins(%[[Y]] : tensor<1x?x1xf32>)
#four = affine_map<(a, b, c, d) -> (a, b, c, d)>
func.func @asked_next(%x: tensor<1x?x?x1xf32>) -> tensor<1x?x?x1xf32> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %y = norm.rms_norm %x axes [1, 2] epsilon inside_sqrt 1.0e-05 : tensor<1x?x?x1xf32> -> tensor<1x?x?x1xf32>
  %rows = tensor.dim %y, %c1 : tensor<1x?x?x1xf32>
  %columns = tensor.dim %y, %c2 : tensor<1x?x?x1xf32>
  %e = tensor.empty(%rows, %columns) : tensor<1x?x?x1xf32>
  %z = linalg.generic {indexing_maps = [#four, #four], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y : tensor<1x?x?x1xf32>) outs(%e : tensor<1x?x?x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<1x?x?x1xf32>
  return %z : tensor<1x?x?x1xf32>
}
