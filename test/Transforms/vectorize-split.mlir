// RUN: norm-opt %s --norm-tile --norm-lower-to-linalg --norm-vectorize --cse --split-input-file | FileCheck %s

// Threads share a row: each sums blocks of 32 * 32 vectors of the tree, whose
// values are added up where the tree goes on, and stores as many.
// CHECK-LABEL: func @row
// CHECK: scf.forall (%{{.*}}) in (1)
// CHECK:   %[[PARTS:.*]] = scf.forall (%[[B:.*]]) in (4) {{.*}} -> (tensor<4x1xf32>)
// CHECK:     %[[AT:.*]] = arith.muli %[[B]], %c32768
// CHECK:     scf.for %{{.*}} step %c1024
// CHECK:       scf.for %{{.*}} step %c32
// CHECK:       vector.multi_reduction
// CHECK:     vector.transfer_write {{.*}} : vector<1xf32>, tensor<1x1xf32>
// CHECK:   } {norm.strategy = #norm.cpu<rows = 1, columns = 32, parallel = true, serial_bytes = 7>}
// CHECK:   scf.for %[[NUMBER:.*]] = %c0 to %c4 step %c1
// CHECK:     vector.transfer_read %[[PARTS]][%[[NUMBER]], %c0]
// CHECK:   scf.forall (%{{.*}}) in (4) {{.*}} -> (tensor<1x100001xf32>)
// CHECK:     %[[COLUMN:.*]] = arith.subi %{{.*}}, %{{.*}}
// CHECK:     vector.transfer_write
// CHECK:   } {norm.strategy = #norm.cpu<rows = 1, columns = 32, parallel = true, serial_bytes = 7, stream_bytes = 9, prefetch = 2>}
// CHECK: } {norm.strategy = #norm.cpu<rows = 1, columns = 32, parallel = false, split = true>}
func.func @row(%x: tensor<1x100001xf32>) -> tensor<1x100001xf32> {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-6
    {norm.strategy = #norm.cpu<rows = 1, columns = 32, parallel = true, serial_bytes = 7, stream_bytes = 9, prefetch = 2, split = true>}
    : tensor<1x100001xf32> -> tensor<1x100001xf32>
  return %y : tensor<1x100001xf32>
}

// -----

// Of a slab, the steps of an outer axis, if there are eight or more.
// CHECK-LABEL: func @slab
// CHECK: scf.forall (%{{.*}}) in (8) {{.*}} -> (tensor<8x32xf32>)
// CHECK: scf.forall (%{{.*}}) in (8) {{.*}} -> (tensor<8x1x50xf32>)
// CHECK-LABEL: func @few
// CHECK-COUNT-1: scf.forall (
// CHECK-NOT: scf.forall (
func.func @slab(%x: tensor<8x3x50xf32>) -> tensor<8x3x50xf32> {
  %y = norm.rms_norm %x axes [0, 2] epsilon none
    {norm.strategy = #norm.cpu<rows = 1, columns = 32, parallel = true, split = true>}
    : tensor<8x3x50xf32> -> tensor<8x3x50xf32>
  return %y : tensor<8x3x50xf32>
}
func.func @few(%x: tensor<7x3x50xf32>) -> tensor<7x3x50xf32> {
  %y = norm.rms_norm %x axes [0, 2] epsilon none
    {norm.strategy = #norm.cpu<rows = 1, columns = 32, parallel = true, split = true>}
    : tensor<7x3x50xf32> -> tensor<7x3x50xf32>
  return %y : tensor<7x3x50xf32>
}
