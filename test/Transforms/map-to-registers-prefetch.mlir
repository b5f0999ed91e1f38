// RUN: norm-opt %s --split-input-file --norm-map-to-registers --canonicalize --cse | FileCheck %s

// A line at a time, from where the next tile's rows are: the last tile fetches
// its own again. What does not move with the tile, as a gain, is not fetched,
// and nothing is while sums are formed.
// CHECK-LABEL: func @rows
// CHECK: scf.forall (%[[I:.*]]) = (0) to (4096) step (2)
// CHECK: scf.for
// CHECK-NOT: memref.prefetch
// CHECK: scf.yield
// CHECK: %[[AHEAD:.*]] = arith.addi %[[I]], %c2
// CHECK: %[[NEXT:.*]] = arith.minsi %[[AHEAD]], %c4094
// CHECK: %[[VIEW:.*]] = memref.subview %{{.*}}[%[[NEXT]], 0] [2, 4096]
// CHECK: scf.for %[[J:.*]] =
// CHECK-DAG: %[[K:.*]] = arith.addi %[[J]], %c16
// CHECK-DAG: memref.prefetch %[[VIEW]][%c0, %[[J]]], read, locality<2>, data
// CHECK-DAG: memref.prefetch %[[VIEW]][%c0, %[[K]]], read, locality<2>, data
// CHECK-DAG: memref.prefetch %[[VIEW]][%c1, %[[J]]], read, locality<2>, data
// CHECK-DAG: memref.prefetch %[[VIEW]][%c1, %[[K]]], read, locality<2>, data
// CHECK-NOT: memref.prefetch
// CHECK: return
func.func @rows(%x: memref<4096x4096xf32>, %g: memref<4096xf32>, %y: memref<4096x4096xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c4096 = arith.constant 4096 : index
  %z = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<2x32xf32>
  %zero = arith.constant dense<0.0> : vector<2xf32>
  scf.forall (%i) = (0) to (4096) step (2) {
    %xi = memref.subview %x[%i, 0] [2, 4096] [1, 1] : memref<4096x4096xf32> to memref<2x4096xf32, strided<[4096, 1], offset: ?>>
    %yi = memref.subview %y[%i, 0] [2, 4096] [1, 1] : memref<4096x4096xf32> to memref<2x4096xf32, strided<[4096, 1], offset: ?>>
    %s = scf.for %j = %c0 to %c4096 step %c32 iter_args(%acc = %zeros) -> vector<2x32xf32> {
      %a = vector.transfer_read %xi[%c0, %j], %z {in_bounds = [true, true]} : memref<2x4096xf32, strided<[4096, 1], offset: ?>>, vector<2x32xf32>
      %b = arith.addf %acc, %a : vector<2x32xf32>
      scf.yield %b : vector<2x32xf32>
    }
    %m = vector.multi_reduction <add>, %s, %zero [1] : vector<2x32xf32> to vector<2xf32>
    %n = vector.shape_cast %m : vector<2xf32> to vector<2x1xf32>
    %o = vector.broadcast %n : vector<2x1xf32> to vector<2x32xf32>
    scf.for %j = %c0 to %c4096 step %c32 {
      %a = vector.transfer_read %xi[%c0, %j], %z {in_bounds = [true, true]} : memref<2x4096xf32, strided<[4096, 1], offset: ?>>, vector<2x32xf32>
      %b = vector.transfer_read %g[%j], %z {in_bounds = [true]} : memref<4096xf32>, vector<32xf32>
      %c = vector.broadcast %b : vector<32xf32> to vector<2x32xf32>
      %d = math.fma %a, %o, %c : vector<2x32xf32>
      vector.transfer_write %d, %yi[%c0, %j] {in_bounds = [true, true]} : vector<2x32xf32>, memref<2x4096xf32, strided<[4096, 1], offset: ?>>
    }
  } {norm.strategy = #norm.cpu<rows = 2, columns = 32, parallel = true, prefetch = 2>}
  return
}

// -----

// Small tiles fetch further ahead, short rows share lines. 1 is the first cache.
// CHECK-LABEL: func @short
// CHECK: scf.forall (%[[I:.*]]) =
// CHECK: %[[AHEAD:.*]] = arith.addi %[[I]], %c128
// CHECK: arith.minsi %[[AHEAD]], %c1020
// CHECK-COUNT-2: memref.prefetch %{{.*}}, read, locality<3>, data
// CHECK-NOT: memref.prefetch
// CHECK: return
func.func @short(%x: memref<1024x8xf32>, %y: memref<1024x8xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  scf.forall (%i) = (0) to (1024) step (4) {
    %xi = memref.subview %x[%i, 0] [4, 8] [1, 1] : memref<1024x8xf32> to memref<4x8xf32, strided<[8, 1], offset: ?>>
    %yi = memref.subview %y[%i, 0] [4, 8] [1, 1] : memref<1024x8xf32> to memref<4x8xf32, strided<[8, 1], offset: ?>>
    %a = vector.transfer_read %xi[%c0, %c0], %z {in_bounds = [true, true]} : memref<4x8xf32, strided<[8, 1], offset: ?>>, vector<4x8xf32>
    vector.transfer_write %a, %yi[%c0, %c0] {in_bounds = [true, true]} : vector<4x8xf32>, memref<4x8xf32, strided<[8, 1], offset: ?>>
  } {norm.strategy = #norm.cpu<rows = 4, columns = 8, parallel = false, prefetch = 1>}
  return
}

// -----

// A sweep over the images of a channel, of which the tile has all in a cache:
// the next channel's are fetched, from one tile on.
// CHECK-LABEL: func @slab
// CHECK: scf.forall (%[[C:.*]]) in (64)
// CHECK: scf.for %[[N:.*]] = %c0 to %c16 step %c1
// CHECK: %[[AHEAD:.*]] = arith.addi %[[C]], %c1
// CHECK: %[[NEXT:.*]] = arith.minsi %[[AHEAD]], %c63
// CHECK: %[[VIEW:.*]] = memref.subview %{{.*}}[0, %[[NEXT]], 0] [16, 1, 64]
// CHECK: scf.for %[[J:.*]] =
// CHECK: memref.prefetch %[[VIEW]][%[[N]], %c0, %[[J]]], read, locality<2>, data
// CHECK: return
func.func @slab(%x: memref<16x64x64xf32>, %y: memref<16x64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %z = arith.constant 0.0 : f32
  scf.forall (%c) = (0) to (64) step (1) {
    %xc = memref.subview %x[0, %c, 0] [16, 1, 64] [1, 1, 1] : memref<16x64x64xf32> to memref<16x1x64xf32, strided<[4096, 64, 1], offset: ?>>
    %yc = memref.subview %y[0, %c, 0] [16, 1, 64] [1, 1, 1] : memref<16x64x64xf32> to memref<16x1x64xf32, strided<[4096, 64, 1], offset: ?>>
    scf.for %n = %c0 to %c16 step %c1 {
      scf.for %j = %c0 to %c64 step %c16 {
        %a = vector.transfer_read %xc[%n, %c0, %j], %z {in_bounds = [true]} : memref<16x1x64xf32, strided<[4096, 64, 1], offset: ?>>, vector<16xf32>
        vector.transfer_write %a, %yc[%n, %c0, %j] {in_bounds = [true]} : vector<16xf32>, memref<16x1x64xf32, strided<[4096, 64, 1], offset: ?>>
      }
    }
  } {norm.strategy = #norm.cpu<rows = 1, columns = 16, parallel = true, prefetch = 2>}
  return
}

// -----

// Of a channel that may fill the cache, its last images fetch what the next one
// has in their place, 256 KiB of it; those before fetch what they read anyway.
// CHECK-LABEL: func @large_slab
// CHECK: scf.forall (%[[C:.*]]) in (64)
// CHECK: scf.for %[[N:.*]] = %c0 to %c16 step %c1
// CHECK: %[[NEXT:.*]] = arith.minsi %{{.*}}, %c63
// CHECK: %[[IMAGES:.*]] = arith.subi %c16, %[[N]]
// CHECK: %[[BYTES:.*]] = arith.muli %[[IMAGES]], %c65536
// CHECK: %[[FITS:.*]] = arith.cmpi ule, %[[BYTES]], %c262144
// CHECK: %[[OF:.*]] = arith.select %[[FITS]], %[[NEXT]], %[[C]]
// CHECK: memref.subview %{{.*}}[0, %[[OF]], 0] [16, 1, 16384]
// CHECK: memref.prefetch
// CHECK: return
func.func @large_slab(%x: memref<16x64x16384xf32>, %y: memref<16x64x16384xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c16384 = arith.constant 16384 : index
  %z = arith.constant 0.0 : f32
  scf.forall (%c) = (0) to (64) step (1) {
    %xc = memref.subview %x[0, %c, 0] [16, 1, 16384] [1, 1, 1] : memref<16x64x16384xf32> to memref<16x1x16384xf32, strided<[1048576, 16384, 1], offset: ?>>
    %yc = memref.subview %y[0, %c, 0] [16, 1, 16384] [1, 1, 1] : memref<16x64x16384xf32> to memref<16x1x16384xf32, strided<[1048576, 16384, 1], offset: ?>>
    scf.for %n = %c0 to %c16 step %c1 {
      scf.for %j = %c0 to %c16384 step %c16 {
        %a = vector.transfer_read %xc[%n, %c0, %j], %z {in_bounds = [true]} : memref<16x1x16384xf32, strided<[1048576, 16384, 1], offset: ?>>, vector<16xf32>
        vector.transfer_write %a, %yc[%n, %c0, %j] {in_bounds = [true]} : vector<16xf32>, memref<16x1x16384xf32, strided<[1048576, 16384, 1], offset: ?>>
      }
    }
  } {norm.strategy = #norm.cpu<rows = 1, columns = 16, parallel = true, prefetch = 2>}
  return
}
