// RUN: norm-opt %s --norm-configure --norm-tile --cse --split-input-file | FileCheck %s

// Channel-last: a sample from all over x, sums over ranges of rows, their merge,
// the same again if some channel's sample was far off, and y from the last row
// on.
// CHECK-DAG: #[[$ROW:.*]] = affine_map<(d0) -> (-d0 + 52)>
// CHECK-DAG: #[[$IMAGE:.*]] = affine_map<(d0) -> (-d0 + 15)>
// CHECK-LABEL: func @channels
// CHECK-SAME: %[[X:.*]]: tensor<16x56x56x256xf32>
// CHECK: %[[M:.*]] = scf.forall (%[[J:.*]]) = (0) to (256) step (32)
// CHECK:   tensor.extract_slice %[[X]][0, 0, 0, %[[J]]] [8, 4, 4, 32] [2, 14, 14, 1]
// CHECK: } {norm.strategy = #norm.cpu<rows = 1, columns = 32, parallel = true, serial_bytes = 262144>}
// CHECK: %[[P:.*]]:2 = scf.forall (%[[N:.*]], %[[H:.*]]) in (16, 19, 1){{.*}} -> (tensor<16x19x1x256xf32>, tensor<16x19x1x256xf32>)
// CHECK:   tensor.extract_slice %[[X]]{{.*}}, 56, 256] [1, 1, 1, 1]
// CHECK:   linalg.generic {{.*}}"reduction", "reduction", "reduction", "parallel"
// CHECK: } {norm.strategy = #norm.cpu<rows = 8, columns = 32, parallel = true, range = 200, prefetch = 2>}
// CHECK: %[[S:.*]]:2 = scf.forall
// CHECK:   iterator_types = ["reduction", "parallel"]
// CHECK: %[[BETTER:.*]] = scf.forall
// CHECK: scf.forall (%{{.*}}) in (1) {{.*}} -> (tensor<i32>)
// CHECK:   linalg.generic {{.*}} ins(%[[M]], %[[BETTER]]
// CHECK: %[[ANY:.*]] = arith.cmpi ne
// CHECK: scf.if %[[ANY]] -> (tensor<256xf32>, tensor<256xf32>)
// CHECK:   scf.forall {{.*}} shared_outs(%{{.*}} = %[[P]]#0, %{{.*}} = %[[P]]#1)
// CHECK:   scf.forall {{.*}} shared_outs(%{{.*}} = %[[S]]#0, %{{.*}} = %[[S]]#1)
// CHECK: } else {
// CHECK:   scf.yield %[[S]]#0, %[[S]]#1
// CHECK: scf.forall (%[[A:.*]], %{{.*}}, %[[C:.*]]) = (0, 0, 0) to (16, 56, 56) step (1, 1, 4)
// CHECK-DAG: affine.apply #[[$IMAGE]](%[[A]])
// CHECK-DAG: affine.apply #[[$ROW]](%[[C]])
// CHECK:   tensor.extract_slice %[[X]]{{.*}} [1, 1, 4, 256] [1, 1, 1, 1]
// CHECK: } {norm.mirrored, norm.strategy = #norm.cpu<rows = 4, columns = 32, parallel = true, stream_bytes = 4194304, prefetch = 2>}
func.func @channels(%x: tensor<16x56x56x256xf32>) -> tensor<16x56x56x256xf32> {
  %y = norm.batch_norm_training %x axes [0, 1, 2] epsilon inside_sqrt 1.0e-5
    : tensor<16x56x56x256xf32> -> tensor<16x56x56x256xf32>
  return %y : tensor<16x56x56x256xf32>
}

// -----

// What is computed for the norm alone, and from it, joins the loops.
// CHECK-LABEL: func @around
// CHECK-NOT: linalg.generic
// CHECK: scf.forall
// CHECK: math.absf
// CHECK: scf.forall
// CHECK: math.absf
// CHECK: scf.if
// CHECK: scf.forall {{.*}} = (0) to (700) step (4)
// CHECK:   math.absf
// CHECK:   math.exp
// CHECK: return
func.func @around(%x: tensor<700x40xf32>) -> tensor<700x40xf32> {
  %a = math.absf %x : tensor<700x40xf32>
  %y = norm.layer_norm %a axes [0] epsilon inside_sqrt 1.0e-5 : tensor<700x40xf32> -> tensor<700x40xf32>
  %e = math.exp %y : tensor<700x40xf32>
  return %e : tensor<700x40xf32>
}

// -----

// A gradient needs one sweep of sums, given the statistics, and is then as much.
// CHECK-LABEL: func @gradient
// CHECK: scf.forall {{.*}} in (15) {{.*}} -> (tensor<15x40xf32>, tensor<15x40xf32>)
// CHECK: scf.forall
// CHECK-NOT: scf.if
// CHECK: scf.forall {{.*}} = (0) to (700) step (2){{.*}} -> (tensor<700x40xf32>)
// CHECK: } {norm.mirrored
func.func @gradient(%dy: tensor<700x40xf32>, %x: tensor<700x40xf32>, %m: tensor<40xf32>, %r: tensor<40xf32>,
                    %g: tensor<40xf32>) -> (tensor<700x40xf32>, tensor<40xf32>, tensor<40xf32>) {
  %dx, %dg, %db = norm.batch_norm_training_backward %dy, %x mean(%m : tensor<40xf32>) rstd(%r : tensor<40xf32>)
    scale(%g : tensor<40xf32>) axes [0] epsilon inside_sqrt 1.0e-5
    : tensor<700x40xf32>, tensor<700x40xf32> -> tensor<700x40xf32> dscale(tensor<40xf32>) dshift(tensor<40xf32>)
  return %dx, %dg, %db : tensor<700x40xf32>, tensor<40xf32>, tensor<40xf32>
}

// -----

// A root outside of which epsilon is added needs the variance beside what is
// given: sums of both kinds share a loop, and those of one are taken again.
// CHECK-LABEL: func @root
// CHECK: %[[P:.*]]:4 = scf.forall {{.*}} in (15)
// CHECK: %[[S:.*]]:4 = scf.forall {{.*}} -> (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>)
// CHECK: scf.if %{{.*}} -> (tensor<40xf32>, tensor<40xf32>)
// CHECK:   scf.forall {{.*}} in (15) shared_outs(%{{.*}} = %[[P]]#0, %{{.*}} = %[[P]]#1)
// CHECK:   scf.forall {{.*}} shared_outs(%{{.*}} = %[[S]]#0, %{{.*}} = %[[S]]#1)
// CHECK: } else {
// CHECK:   scf.yield %[[S]]#0, %[[S]]#1
func.func @root(%dy: tensor<700x40xf32>, %x: tensor<700x40xf32>, %m: tensor<40xf32>,
                %r: tensor<40xf32>) -> tensor<700x40xf32> {
  %dx = norm.batch_norm_training_backward %dy, %x mean(%m : tensor<40xf32>) rstd(%r : tensor<40xf32>)
    axes [0] epsilon outside_sqrt 0.3 : tensor<700x40xf32>, tensor<700x40xf32> -> tensor<700x40xf32>
  return %dx : tensor<700x40xf32>
}

// -----

// Sums that share no tensor of all axes take a loop each, in which it is plain
// what these axes are.
// CHECK-LABEL: func @apart
// CHECK: scf.forall {{.*}} -> (tensor<15x40xf32>, tensor<15x40xf32>)
// CHECK-NOT: scf.if
// CHECK: scf.forall {{.*}} -> (tensor<15x40xf32>)
// CHECK: scf.if
func.func @apart(%dy: tensor<700x40xf32>, %x: tensor<700x40xf32>) -> (tensor<700x40xf32>, tensor<40xf32>) {
  %dx, %db = norm.batch_norm_training_backward %dy, %x axes [0] epsilon inside_sqrt 1.0e-5
    : tensor<700x40xf32>, tensor<700x40xf32> -> tensor<700x40xf32> dshift(tensor<40xf32>)
  return %dx, %db : tensor<700x40xf32>, tensor<40xf32>
}

// -----

// Images around the sums: a range lies in one, and its partial sums beside those
// of the same range of the others. The last image comes first in the end.
// CHECK-DAG: #[[$IMAGE:.*]] = affine_map<(d0) -> (-d0 + 2)>
// CHECK-LABEL: func @images
// CHECK-SAME: %[[X:.*]]: tensor<3x4096x64xf32>
// CHECK: scf.forall (%[[N:.*]], %[[J:.*]]) = (0, 0) to (3, 64) step (1, 32)
// CHECK:   tensor.extract_slice %[[X]][%[[N]], 0, %[[J]]] [1, 128, 32] [1, 32, 1]
// CHECK: %[[P:.*]]:2 = scf.forall (%[[N:.*]], %[[R:.*]]) in (3, 21){{.*}} -> (tensor<21x3x64xf32>, tensor<21x3x64xf32>)
// CHECK:   tensor.extract_slice %[[X]][%[[N]], %{{.*}}, 0]
// CHECK:   tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[R]], %[[N]], 0] [1, 1, 64] [1, 1, 1]
// CHECK: scf.forall {{.*}} (3, 64) step (1, 32){{.*}} -> (tensor<3x64xf32>, tensor<3x64xf32>)
// CHECK:   iterator_types = ["reduction", "parallel", "parallel"]
// CHECK: scf.if
// CHECK: scf.forall (%[[N:.*]], %{{.*}}) = (0, 0) to (3, 4096) step (1, 4)
// CHECK:   affine.apply #[[$IMAGE]](%[[N]])
func.func @images(%x: tensor<3x4096x64xf32>) -> tensor<3x4096x64xf32> {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<3x4096x64xf32> -> tensor<3x4096x64xf32>
  return %y : tensor<3x4096x64xf32>
}

// -----

// How many rows an image has may show at run time: lanes with all of few rows
// give what lanes would give in the form of @between.
// CHECK-LABEL: func @counted
// CHECK: %[[FEW:.*]] = arith.cmpi ult, %{{.*}}, %c1024
// CHECK: %[[KEPT:.*]]:3 = scf.if %[[FEW]] -> (tensor<3x64xf32>, tensor<3x64xf32>, tensor<3x64xf32>)
// CHECK-NEXT: tensor.empty
// CHECK-COUNT-1: scf.forall (
// CHECK-NOT: scf.forall (
// CHECK: } else {
// CHECK-COUNT-3: scf.forall (
// CHECK: scf.if
// CHECK: scf.forall (%{{.*}}, %{{.*}}) in (3, %{{.*}}) {{.*}} -> (tensor<3x?x64xf32>)
func.func @counted(%x: tensor<3x?x64xf32>) -> tensor<3x?x64xf32> {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<3x?x64xf32> -> tensor<3x?x64xf32>
  return %y : tensor<3x?x64xf32>
}

// -----

// Channels of groups are summed apart. What a group has follows from sums of its
// channels, is compared and applied as lanes of these.
// CHECK-LABEL: func @groups
// CHECK-SAME: %[[X:.*]]: tensor<2x256x320xf32>
// CHECK: %[[SAMPLE:.*]] = scf.forall {{.*}} to (2, 320) step (1, 32)
// CHECK:   tensor.extract_slice %[[X]]{{.*}} [1, 16, 32] [1, 16, 1]
// CHECK: tensor.expand_shape %[[SAMPLE]] {{.*}} into tensor<2x32x10xf32>
// CHECK: %[[M:.*]]:2 = scf.forall {{.*}} to (2, 32) step (1, 4) {{.*}} -> (tensor<2x32xf32>, tensor<2x32x10xf32>)
// CHECK:   iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: } {norm.strategy = #norm.cpu<rows = 4, columns = 16, parallel = true, serial_bytes = 262144>}
// CHECK: %[[LANES:.*]] = tensor.collapse_shape %[[M]]#1 {{.*}} into tensor<2x320xf32>
// CHECK: scf.forall {{.*}} in (2, 8) {{.*}} -> (tensor<8x2x320xf32>, tensor<8x2x320xf32>)
// CHECK:   tensor.extract_slice %[[LANES]]
// CHECK: scf.forall {{.*}} to (2, 320) step (1, 32)
// CHECK: %[[BETTER:.*]]:2 = scf.forall {{.*}} to (2, 32) step (1, 4)
// CHECK: %[[OTHER:.*]] = tensor.collapse_shape %[[BETTER]]#1
// CHECK: linalg.generic {{.*}} ins(%[[LANES]], %[[OTHER]]
// CHECK: scf.if
// CHECK: scf.forall {{.*}} to (2, 32) step (1, 4)
// CHECK: scf.forall {{.*}} to (2, 256) step (1, 4) {{.*}} -> (tensor<2x256x320xf32>)
func.func @groups(%x: tensor<2x256x320xf32>) -> (tensor<2x256x320xf32>, tensor<2x32xf32>) {
  %y, %m = norm.group_norm %x groups 32 channel_axis 2 axes [1, 2] epsilon inside_sqrt 1.0e-5
    : tensor<2x256x320xf32> -> tensor<2x256x320xf32> mean(tensor<2x32xf32>)
  return %y, %m : tensor<2x256x320xf32>, tensor<2x32xf32>
}

// -----

// Where images have few rows, or statistics are given, tiles are of lanes.
// CHECK-LABEL: func @between
// CHECK-COUNT-1: scf.forall (
// CHECK-NOT: scf.forall (
func.func @between(%x: tensor<4x100x64xf32>) -> tensor<4x100x64xf32> {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x100x64xf32> -> tensor<4x100x64xf32>
  return %y : tensor<4x100x64xf32>
}

// -----

// A mask of bits is read in each loop, as what it selects from.
// CHECK-LABEL: func @mask
// CHECK-NOT: linalg.generic
// CHECK: scf.forall
// CHECK:   arith.select
// CHECK: scf.forall {{.*}} -> (tensor<700x40xf32>)
// CHECK:   arith.select
func.func @mask(%k: tensor<700x40xi1>, %dy: tensor<700x40xf32>, %x: tensor<700x40xf32>, %m: tensor<40xf32>,
                %r: tensor<40xf32>) -> tensor<700x40xf32> {
  %zero = arith.constant dense<0.0> : tensor<700x40xf32>
  %g = arith.select %k, %dy, %zero : tensor<700x40xi1>, tensor<700x40xf32>
  %dx = norm.batch_norm_training_backward %g, %x mean(%m : tensor<40xf32>) rstd(%r : tensor<40xf32>)
    axes [0] epsilon inside_sqrt 1.0e-5 : tensor<700x40xf32>, tensor<700x40xf32> -> tensor<700x40xf32>
  return %dx : tensor<700x40xf32>
}
