// RUN: norm-opt %s --norm-tile --cse --split-input-file | FileCheck %s

// CHECK-LABEL: func @rows
// CHECK-SAME: %[[X:.*]]: tensor<8x12x40xf32>, %[[G:.*]]: tensor<40xf32>
// CHECK: scf.forall (%[[I:.*]], %[[J:.*]]) = (0, 0) to (8, 12) step (1, 4) shared_outs(%[[Y:.*]] = %{{.*}}, %[[R:.*]] = %{{.*}})
// CHECK: %[[XT:.*]] = tensor.extract_slice %[[X]][%[[I]], %[[J]], 0] [1, 4, 40]
// CHECK: %[[YT:.*]], %[[RT:.*]] = norm.rms_norm %[[XT]] {{.*}} : tensor<1x4x40xf32> -> tensor<1x4x40xf32> rstd(tensor<1x4xf32>)
// CHECK: tensor.parallel_insert_slice %[[YT]] into %[[Y]][%[[I]], %[[J]], 0] [1, 4, 40]
// CHECK: tensor.parallel_insert_slice %[[RT]] into %[[R]][%[[I]], %[[J]]] [1, 4]
// CHECK: } {norm.strategy = #norm.cpu<rows = 4, columns = 32, parallel = false>}
func.func @rows(%x: tensor<8x12x40xf32>, %g: tensor<40xf32>) -> (tensor<8x12x40xf32>, tensor<8x12xf32>) {
  %y, %r = norm.rms_norm %x scale(%g : tensor<40xf32>) axes [2] epsilon none {norm.strategy = #norm.cpu<rows = 4, columns = 32, parallel = false>}
    : tensor<8x12x40xf32> -> tensor<8x12x40xf32> rstd(tensor<8x12xf32>)
  return %y, %r : tensor<8x12x40xf32>, tensor<8x12xf32>
}

// -----

// Kept innermost: tiles of C lanes, the last one shorter; no axis is cut that
// is reduced.
// CHECK-LABEL: func @lanes
// CHECK: scf.forall (%[[I:.*]], %[[J:.*]]) = (0, 0) to (2, 50) step (1, 32)
// CHECK: %[[N:.*]] = affine.min {{.*}}(%[[J]])
// CHECK: tensor.extract_slice %{{.*}}[%[[I]], 0, %[[J]]] [1, 7, %[[N]]]
// CHECK: norm.layer_norm %{{.*}} axes [1] {{.*}} : tensor<1x7x?xf32> -> tensor<1x7x?xf32>
func.func @lanes(%x: tensor<2x7x50xf32>) -> tensor<2x7x50xf32> {
  %y = norm.layer_norm %x axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 1, columns = 32, parallel = false>} : tensor<2x7x50xf32> -> tensor<2x7x50xf32>
  return %y : tensor<2x7x50xf32>
}

// -----

// Nothing is kept: one tile.
// CHECK-LABEL: func @whole
// CHECK: scf.forall (%{{.*}}) in (1)
// CHECK: norm.layer_norm %{{.*}} axes [0, 1] {{.*}} : tensor<3x5xf32> -> tensor<3x5xf32>
func.func @whole(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %y = norm.layer_norm %x axes [0, 1] epsilon none {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>} : tensor<3x5xf32> -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// -----

// Elementwise neighbours join the tile, and what only they read is not
// written.
#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func @neighbours
// CHECK-NOT: linalg
// CHECK: scf.forall {{.*}} -> (tensor<6x40xf16>)
// CHECK: %[[S:.*]] = linalg.add
// CHECK: %[[Y:.*]] = norm.rms_norm %[[S]]
// CHECK: %[[Z:.*]] = linalg.generic {{.*}} ins(%[[Y]], %{{.*}} : tensor<2x40xf32>, tensor<40xf32>)
// CHECK: math.tanh
// CHECK: tensor.parallel_insert_slice %[[Z]]
// CHECK-NOT: parallel_insert_slice
// CHECK: } {norm.strategy
// CHECK-NOT: linalg
func.func @neighbours(%x: tensor<6x40xf32>, %p: tensor<6x40xf32>, %b: tensor<40xf32>) -> tensor<6x40xf16> {
  %e = tensor.empty() : tensor<6x40xf32>
  %s = linalg.add ins(%x, %p : tensor<6x40xf32>, tensor<6x40xf32>) outs(%e : tensor<6x40xf32>) -> tensor<6x40xf32>
  %y = norm.rms_norm %s axes [1] epsilon inside_sqrt 1.0e-6 {norm.strategy = #norm.cpu<rows = 2, columns = 32, parallel = false>} : tensor<6x40xf32> -> tensor<6x40xf32>
  %e2 = tensor.empty() : tensor<6x40xf16>
  %z = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %b : tensor<6x40xf32>, tensor<40xf32>) outs(%e2 : tensor<6x40xf16>) {
  ^bb0(%a: f32, %c: f32, %o: f16):
    %0 = math.tanh %a : f32
    %1 = arith.addf %0, %c : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  } -> tensor<6x40xf16>
  return %z : tensor<6x40xf16>
}

// -----

// A producer with another user stays outside; so does a matmul.
// CHECK-LABEL: func @shared_producer
// CHECK: linalg.add
// CHECK: scf.forall
// CHECK-NOT: linalg.add
// CHECK: norm.rms_norm
func.func @shared_producer(%x: tensor<6x40xf32>) -> (tensor<6x40xf32>, tensor<6x40xf32>) {
  %e = tensor.empty() : tensor<6x40xf32>
  %s = linalg.add ins(%x, %x : tensor<6x40xf32>, tensor<6x40xf32>) outs(%e : tensor<6x40xf32>) -> tensor<6x40xf32>
  %y = norm.rms_norm %s axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 2, columns = 32, parallel = false>} : tensor<6x40xf32> -> tensor<6x40xf32>
  return %s, %y : tensor<6x40xf32>, tensor<6x40xf32>
}

// -----

// Elements of i1 take a byte in memory and a bit in a vector: what reads or
// writes them stays outside.
#id1 = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func @bits
// CHECK: scf.forall
// CHECK-NOT: arith.cmpf
// CHECK: } {norm.strategy
// CHECK: arith.cmpf
func.func @bits(%x: tensor<4x40xf32>) -> tensor<4x40xi1> {
  %y = norm.rms_norm %x axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 2, columns = 32, parallel = false>} : tensor<4x40xf32> -> tensor<4x40xf32>
  %e = tensor.empty() : tensor<4x40xi1>
  %z = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x40xf32>) outs(%e : tensor<4x40xi1>) {
  ^bb0(%a: f32, %o: i1):
    %0 = arith.constant 0.0 : f32
    %1 = arith.cmpf ogt, %a, %0 : f32
    linalg.yield %1 : i1
  } -> tensor<4x40xi1>
  return %z : tensor<4x40xi1>
}

// -----

// A norm whose result nothing uses is dead once its operand is tiled.
// CHECK-LABEL: func @dead
// CHECK: scf.forall (
// CHECK-NOT: scf.forall (
func.func @dead(%x: tensor<4x8xf32>, %old: tensor<4xf32>) -> tensor<4xf32> {
  %count, %mean, %m2 = norm.moments %x axes [1] about mean {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>} : tensor<4x8xf32> -> count(tensor<4xi64>) mean(tensor<4xf32>) m2(tensor<4xf32>)
  %new = norm.update_running %old, %mean count(%count : tensor<4xi64>) statistic mean momentum 1.0e-1 {norm.strategy = #norm.cpu<rows = 1, columns = 1, parallel = false>} : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return %m2 : tensor<4xf32>
}

// A norm that a rewrite has left without sums over rows keeps its strategy; its
// tile is no range.
// CHECK-LABEL: func @no_range
// CHECK: scf.forall
// CHECK: {norm.strategy = #norm.cpu<rows = 1, columns = 16, parallel = false>}
func.func @no_range(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 {
    norm.strategy = #norm.cpu<rows = 1, columns = 16, parallel = false, range = 128>}
    : tensor<8x16xf32> -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
