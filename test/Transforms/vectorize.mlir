// RUN: norm-opt %s --norm-configure=isa=avx512 --norm-tile --norm-lower-to-linalg --norm-vectorize --cse --split-input-file | FileCheck %s

// One sweep for the sum of squares, one that writes; x is read in vectors of
// R x C and the gain once for all rows. A product that is only added is not
// rounded before.
// CHECK-LABEL: func @rms
// CHECK-NOT: linalg
// CHECK: scf.forall
// CHECK: scf.for %{{.*}} = %c0 to %c128 step %c32 iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<4x32xf32>)
// CHECK:   %[[X:.*]] = vector.transfer_read {{.*}} vector<4x32xf32>
// CHECK:   math.fma %[[X]], %[[X]], %[[ACC]]
// CHECK: vector.multi_reduction <add>, %{{.*}}, %{{.*}} [1] : vector<4x32xf32> to vector<4xf32>
// CHECK: math.sqrt %{{.*}} : vector<4xf32>
// CHECK: scf.for {{.*}} -> (tensor<4x128xf32>)
// CHECK:   vector.transfer_read {{.*}} vector<32xf32>
// CHECK:   vector.transfer_write
// CHECK-NOT: iter_args
func.func @rms(%x: tensor<4x128xf32>, %g: tensor<128xf32>) -> tensor<4x128xf32> {
  %y = norm.rms_norm %x scale(%g : tensor<128xf32>) axes [1] epsilon inside_sqrt 1.0e-6 : tensor<4x128xf32> -> tensor<4x128xf32>
  return %y : tensor<4x128xf32>
}

// -----

// A sample's mean, then both sums about it in one sweep, in a loop: the sums
// about what the guard makes of that mean repeat them, once, where a row differs.
// CHECK-LABEL: func @ln
// CHECK: scf.for %{{.*}} = %c0 to %c64 {{.*}} -> (vector<1x32xf32>)
// CHECK: %[[K:.*]] = arith.divf
// CHECK: %[[SUMS:.*]]:3 = scf.while (%[[ABOUT:.*]] = %[[K]], %[[IS_SECOND:.*]] = %false)
// CHECK:   %[[BOTH:.*]]:2 = scf.for {{.*}} -> (vector<1x32xf32>, vector<1x32xf32>)
// CHECK:   %[[Q:.*]] = vector.multi_reduction <add>, %[[BOTH]]#0
// CHECK:   %[[S:.*]] = vector.multi_reduction <add>, %[[BOTH]]#1
// CHECK:   %[[GUARDED:.*]] = arith.select %{{.*}}, %{{.*}}, %[[ABOUT]] : vector<1xi1>, vector<1xf32>
// CHECK:   %[[BETTER:.*]] = arith.select %[[IS_SECOND]], %[[ABOUT]], %[[GUARDED]]
// CHECK:   %[[DIFFERS:.*]] = arith.cmpf une, %[[ABOUT]], %[[BETTER]]
// CHECK:   %[[FLAT:.*]] = vector.shape_cast %[[DIFFERS]]
// CHECK:   %[[ANY:.*]] = vector.reduction <or>, %[[FLAT]]
// CHECK:   %[[IS_FIRST:.*]] = arith.xori %[[IS_SECOND]], %true
// CHECK:   %[[AGAIN:.*]] = arith.andi %[[IS_FIRST]], %[[ANY]]
// CHECK:   scf.condition(%[[AGAIN]]) %[[BETTER]], %[[Q]], %[[S]]
// CHECK: } do {
// CHECK-NOT: scf.for
// CHECK:   scf.yield %{{.*}}, %true
// CHECK: scf.for {{.*}} -> (tensor<1x128xf32>)
// CHECK-NOT: iter_args
func.func @ln(%x: tensor<1x128xf32>) -> tensor<1x128xf32> {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-6 : tensor<1x128xf32> -> tensor<1x128xf32>
  return %y : tensor<1x128xf32>
}

// -----

// More than 32 additions into one accumulator: blocks of 32 vectors, whose
// columns are combined before blocks are; what is left joins the last block. The
// sum of 32 blocks goes on to a second level, in the same loop.
// CHECK-LABEL: func @blocked
// CHECK: %[[ZERO:.*]] = vector.broadcast %{{.*}} : f32 to vector<1x32xf32>
// CHECK: %[[START:.*]] = vector.broadcast %{{.*}} : f32 to vector<1xf32>
// CHECK: %[[SUMS:.*]]:2 = scf.for %[[B:.*]] = %c0 to %c65537 step %c1024 iter_args(%[[FIRST:.*]] = %[[START]], %[[SECOND:.*]] = %[[START]])
// CHECK:   %[[NEXT:.*]] = arith.addi %[[B]], %c1024
// CHECK:   %[[CHAIN:.*]] = scf.for %{{.*}} = %[[B]] to %{{.*}} step %{{.*}} iter_args(%{{.*}} = %[[ZERO]])
// CHECK:   %[[ALL:.*]] = scf.if %{{.*}} -> (vector<1x32xf32>)
// CHECK:     %[[MASK:.*]] = vector.create_mask
// CHECK:     vector.transfer_read {{.*}}, %[[MASK]]
// CHECK:     %[[FUSED:.*]] = math.fma
// CHECK:     arith.select %[[MASK]], %[[FUSED]], %[[CHAIN]]
// CHECK:   } else {
// CHECK-NEXT: scf.yield %[[CHAIN]]
// CHECK:   %[[FOLDED:.*]] = vector.multi_reduction <add>, %[[ALL]], %[[START]]
// CHECK:   %[[SUM:.*]] = arith.addf %[[FIRST]], %[[FOLDED]]
// CHECK:   %[[REST:.*]] = arith.remui %{{.*}}, %c32768
// CHECK:   %[[IS_FULL:.*]] = arith.cmpi eq, %[[REST]], %c0
// CHECK:   scf.if %[[IS_FULL]]
// CHECK:     %[[CARRIED:.*]] = arith.addf %[[SECOND]], %[[SUM]]
// CHECK-NEXT: scf.yield %[[START]], %[[CARRIED]]
// CHECK:   } else {
// CHECK-NEXT: scf.yield %[[SUM]], %[[SECOND]]
// CHECK: arith.addf %[[SUMS]]#1, %[[SUMS]]#0
func.func @blocked(%x: tensor<1x65537xf32>) -> tensor<1x65537xf32> {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-6 : tensor<1x65537xf32> -> tensor<1x65537xf32>
  return %y : tensor<1x65537xf32>
}

// -----

// Reduced outside, kept innermost: lanes add up on their own, no reduction
// across a vector.
// CHECK-LABEL: func @lanes
// CHECK-NOT: multi_reduction
// CHECK: scf.for %{{.*}} = %c0 to %c7 step %c1 iter_args({{.*}}) -> (vector<32xf32>)
// CHECK-NOT: multi_reduction
func.func @lanes(%x: tensor<7x64xf32>) -> tensor<7x64xf32> {
  %y = norm.rms_norm %x axes [0] epsilon inside_sqrt 1.0e-6
    {norm.strategy = #norm.cpu<rows = 1, columns = 32, parallel = false>} : tensor<7x64xf32> -> tensor<7x64xf32>
  return %y : tensor<7x64xf32>
}

// -----

// Rows of an extent known at run time: those that are whole vectors are taken R
// at a time, without masks. Others one by one: whole vectors up to the last
// multiple of C, then a mask.
// CHECK-LABEL: func @dynamic
// CHECK: %[[REST:.*]] = arith.remui %[[N:.*]], %c32
// CHECK: %[[ARE_WHOLE:.*]] = arith.cmpi eq, %[[REST]], %c0
// CHECK: %[[BOTH:.*]] = arith.andi %{{.*}}, %[[ARE_WHOLE]]
// CHECK: scf.if %[[BOTH]]
// CHECK-NOT: create_mask
// CHECK: vector.transfer_write {{.*}} : vector<2x32xf32>
// CHECK: } else {
// CHECK: %[[WHOLE:.*]] = arith.subi %[[N]], %[[REST]]
// CHECK: scf.for
// CHECK: vector.create_mask %{{.*}} : vector<32xi1>
func.func @dynamic(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-6 : tensor<?x?xf32> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

// Rows that R does not divide: a tile that has fewer takes them one by one.
// CHECK-LABEL: func @rest
// CHECK: %[[HEIGHT:.*]] = affine.min
// CHECK: %[[WHOLE:.*]] = arith.cmpi eq, %[[HEIGHT]], %c4
// CHECK: scf.if %[[WHOLE]] -> (tensor<?x64xf32>)
// CHECK:   vector.transfer_write {{.*}} : vector<4x32xf32>, tensor<?x64xf32>
// CHECK: } else {
// CHECK:   scf.for %[[ROW:.*]] = %c0 to %[[HEIGHT]] step %c1
// CHECK:     vector.transfer_read %{{.*}}[%[[ROW]], %{{.*}}]{{.*}} vector<32xf32>
// CHECK:     vector.transfer_write {{.*}}[%[[ROW]], %{{.*}}]{{.*}} : vector<32xf32>, tensor<?x64xf32>
func.func @rest(%x: tensor<7x64xf32>) -> tensor<7x64xf32> {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-6 : tensor<7x64xf32> -> tensor<7x64xf32>
  return %y : tensor<7x64xf32>
}

// -----

// Statistics of a rank-1 input are scalars.
// CHECK-LABEL: func @vector
// CHECK: vector.multi_reduction <add>, %{{.*}}, %{{.*}} [0] : vector<32xf32> to f32
// CHECK: tensor.insert %{{.*}} : tensor<f32>
func.func @vector(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<f32>) {
  %y, %r = norm.rms_norm %x axes [0] epsilon none : tensor<64xf32> -> tensor<64xf32> rstd(tensor<f32>)
  return %y, %r : tensor<64xf32>, tensor<f32>
}

// -----

// A producer that is fused in and transposes: lanes are read across memory.
// CHECK-LABEL: func @transposed
// CHECK-NOT: linalg
// CHECK: vector.transfer_read {{.*}} permutation_map
func.func @transposed(%x: tensor<129x9xf32>) -> tensor<9x129xf32> {
  %e = tensor.empty() : tensor<9x129xf32>
  %t = linalg.transpose ins(%x : tensor<129x9xf32>) outs(%e : tensor<9x129xf32>) permutation = [1, 0]
  %y = norm.layer_norm %t axes [0] epsilon inside_sqrt 1.0e-05 : tensor<9x129xf32> -> tensor<9x129xf32>
  return %y : tensor<9x129xf32>
}

// -----

// The number of levels is found without overflow.
// CHECK-LABEL: func @huge
// CHECK: vector.multi_reduction
func.func @huge(%x: tensor<4611686018427387904xf32>) -> tensor<4611686018427387904xf32> {
  %y = norm.rms_norm %x axes [0] epsilon inside_sqrt 1.0e-05 : tensor<4611686018427387904xf32> -> tensor<4611686018427387904xf32>
  return %y : tensor<4611686018427387904xf32>
}

// -----

// Images are written from the last one on, which the sums have read last.
// CHECK-LABEL: func @images
// CHECK: scf.for %[[N:.*]] = %c0 to %c5 step %c1 {{.*}} -> (vector<1x32xf32>)
// CHECK:   vector.transfer_read %{{.*}}[%[[N]], %c0, %{{.*}}]
// CHECK: scf.for %[[M:.*]] = %c0 to %c5 step %c1 {{.*}} -> (tensor<5x1x320xf32>)
// CHECK:   %[[FROM_LAST:.*]] = arith.subi %c4, %[[M]]
// CHECK:   vector.transfer_read %{{.*}}[%[[FROM_LAST]], %c0, %{{.*}}]
// CHECK:   vector.transfer_write %{{.*}}, %{{.*}}[%[[FROM_LAST]], %c0, %{{.*}}]
func.func @images(%x: tensor<5x3x320xf32>) -> tensor<5x3x320xf32> {
  %y = norm.rms_norm %x axes [0, 2] epsilon inside_sqrt 1.0e-6 : tensor<5x3x320xf32> -> tensor<5x3x320xf32>
  return %y : tensor<5x3x320xf32>
}

// -----

// A sample has 64 columns at most, and so one loop, however long a row is. Sums
// over a row have the levels that any length needs, in one loop over blocks.
// CHECK-LABEL: func @sampled
// CHECK: affine.min
// CHECK: scf.if
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c32 iter_args({{.*}}) -> (vector<2x32xf32>)
// CHECK-NOT: scf.if
// CHECK: vector.multi_reduction <add>, %{{.*}} : vector<2x32xf32> to vector<2xf32>
// CHECK: scf.while
// CHECK: scf.for %[[B:.*]] = %c0 to %{{.*}} step %c1024 iter_args({{.*}}) -> (vector<2xf32>
// CHECK: scf.for %{{.*}} = %[[B]] to %{{.*}} step %c32 iter_args({{.*}}) -> (vector<2x32xf32>, vector<2x32xf32>)
// CHECK: scf.if {{.*}} -> (vector<2xf32>
// CHECK-COUNT-2: arith.remui
// CHECK-NOT: scf.if
// CHECK: scf.condition
func.func @sampled(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-6 : tensor<?x?xf32> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
