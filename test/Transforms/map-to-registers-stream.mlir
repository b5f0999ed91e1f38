// RUN: norm-opt %s --split-input-file --norm-map-to-registers=isa=avx512 --canonicalize --cse | FileCheck %s
// RUN: norm-opt %s --split-input-file --norm-map-to-registers=isa=x86 | FileCheck %s --check-prefix=X86
// RUN: norm-opt %s --split-input-file --norm-map-to-registers=isa=any | FileCheck %s --check-prefix=ANY

// Large, rows of whole lines: what is left to run time is where they start.
// Columns up to a line, which both results have to reach together, and those
// left of whole vectors are stored under a mask. What the sweep computes beside
// is computed in each form of it, here a sum that is stored too.
// CHECK-LABEL: func @static
// CHECK: scf.forall
// CHECK: %[[P:.*]] = memref.extract_aligned_pointer_as_index
// CHECK: %[[A:.*]] = arith.addi %[[P]]
// CHECK: memref.extract_aligned_pointer_as_index
// CHECK: %[[APART:.*]] = arith.xori %[[A]]
// CHECK: %[[OFF:.*]] = arith.andi %[[A]], %c3
// CHECK: %[[BITS:.*]] = arith.ori %[[APART]], %[[OFF]]
// CHECK: arith.andi %[[BITS]], %c63
// CHECK: %[[OPEN:.*]] = arith.cmpi eq
// CHECK: scf.if %[[OPEN]] {
// CHECK: %[[HEAD:.*]] = arith.minui
// CHECK: scf.for {{.*}} = %[[HEAD]] to %[[LAST:.*]] step %c32
// CHECK-COUNT-4: vector.store {{.*}} {alignment = 64 : i64, nontemporal = true} : memref<2x4096xf32, {{.*}}>, vector<16xf32>
// CHECK-COUNT-4: vector.store {{.*}} {alignment = 64 : i64, nontemporal = true} : memref<2x4096xf32, {{.*}}>, vector<16xf32>
// CHECK: }
// CHECK: scf.for {{.*}} = %c0 to %c2 step %c1
// CHECK: %[[MASK:.*]] = vector.create_mask %c2, %{{.*}} : vector<2x32xi1>
// CHECK: vector.transfer_read {{.*}}, %[[MASK]]
// CHECK: vector.transfer_read {{.*}}, %[[MASK]]
// CHECK-COUNT-2: vector.transfer_write {{.*}}, %[[MASK]]
// CHECK: } else {
// CHECK: scf.for
// CHECK-NOT: vector.store
// CHECK-COUNT-2: vector.transfer_write
// CHECK: } {{{.*}}norm.streams}
func.func @static(%x: memref<4096x4096xf32>, %r: memref<4096x4096xf32>, %y: memref<4096x4096xf32>, %h: memref<4096x4096xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c4096 = arith.constant 4096 : index
  %z = arith.constant 0.0 : f32
  scf.forall (%i) = (0) to (4096) step (2) {
    %xi = memref.subview %x[%i, 0] [2, 4096] [1, 1] : memref<4096x4096xf32> to memref<2x4096xf32, strided<[4096, 1], offset: ?>>
    %ri = memref.subview %r[%i, 0] [2, 4096] [1, 1] : memref<4096x4096xf32> to memref<2x4096xf32, strided<[4096, 1], offset: ?>>
    %yi = memref.subview %y[%i, 0] [2, 4096] [1, 1] : memref<4096x4096xf32> to memref<2x4096xf32, strided<[4096, 1], offset: ?>>
    %hi = memref.subview %h[%i, 0] [2, 4096] [1, 1] : memref<4096x4096xf32> to memref<2x4096xf32, strided<[4096, 1], offset: ?>>
    scf.for %j = %c0 to %c4096 step %c32 {
      %a = vector.transfer_read %xi[%c0, %j], %z {in_bounds = [true, true]} : memref<2x4096xf32, strided<[4096, 1], offset: ?>>, vector<2x32xf32>
      %b = vector.transfer_read %ri[%c0, %j], %z {in_bounds = [true, true]} : memref<2x4096xf32, strided<[4096, 1], offset: ?>>, vector<2x32xf32>
      %s = arith.addf %a, %b : vector<2x32xf32>
      %t = math.tanh %s : vector<2x32xf32>
      vector.transfer_write %t, %yi[%c0, %j] {in_bounds = [true, true]} : vector<2x32xf32>, memref<2x4096xf32, strided<[4096, 1], offset: ?>>
      vector.transfer_write %s, %hi[%c0, %j] {in_bounds = [true, true]} : vector<2x32xf32>, memref<2x4096xf32, strided<[4096, 1], offset: ?>>
    }
  } {norm.strategy = #norm.cpu<rows = 2, columns = 32, parallel = true, stream_bytes = 4194304>}
  return
}

// -----

// Bytes, pitch and pointer are left to run time, the first before the loop. The
// masked rest belongs to the plain form, which fetches nothing: it runs where
// the loop is small. A sequential loop is marked too.
// CHECK-LABEL: func @dynamic
// CHECK-SAME: %[[X:.*]]: memref<?x?xf32, strided<[?, 1], offset: ?>>, %[[Y:[a-z0-9]*]]: memref
// CHECK: %[[LARGE:.*]] = arith.cmpi ugt, %{{.*}}, %c4194304
// CHECK: arith.ori
// CHECK: %[[ALIGNED:.*]] = arith.cmpi eq
// CHECK: %[[OPEN:.*]] = arith.andi %[[LARGE]], %[[ALIGNED]]
// CHECK: scf.if %[[OPEN]] {
// CHECK: memref.prefetch
// CHECK-COUNT-4: vector.store {{.*}} {alignment = 64 : i64, nontemporal = true}
// CHECK: vector.transfer_write
// CHECK: } else {
// CHECK-NOT: memref.prefetch
// CHECK: vector.transfer_write
// CHECK: scf.if
// CHECK: vector.transfer_write {{.*}}, %{{.*}}[{{.*}}], %{{.*}} {in_bounds
// CHECK: } {{{.*}}norm.streams}
func.func @dynamic(%x: memref<?x?xf32, strided<[?, 1], offset: ?>>, %y: memref<?x?xf32, strided<[?, 1], offset: ?>>, %m: index, %n: index, %whole: index, %rest: index) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %z = arith.constant 0.0 : f32
  %mask = vector.create_mask %c2, %rest : vector<2x32xi1>
  scf.forall (%i) = (0) to (%m) step (2) {
    %xi = memref.subview %x[%i, 0] [2, %n] [1, 1] : memref<?x?xf32, strided<[?, 1], offset: ?>> to memref<2x?xf32, strided<[?, 1], offset: ?>>
    %yi = memref.subview %y[%i, 0] [2, %n] [1, 1] : memref<?x?xf32, strided<[?, 1], offset: ?>> to memref<2x?xf32, strided<[?, 1], offset: ?>>
    scf.for %j = %c0 to %whole step %c32 {
      %a = vector.transfer_read %xi[%c0, %j], %z {in_bounds = [true, true]} : memref<2x?xf32, strided<[?, 1], offset: ?>>, vector<2x32xf32>
      vector.transfer_write %a, %yi[%c0, %j] {in_bounds = [true, true]} : vector<2x32xf32>, memref<2x?xf32, strided<[?, 1], offset: ?>>
    }
    %a = vector.transfer_read %xi[%c0, %whole], %z, %mask {in_bounds = [true, true]} : memref<2x?xf32, strided<[?, 1], offset: ?>>, vector<2x32xf32>
    vector.transfer_write %a, %yi[%c0, %whole], %mask {in_bounds = [true, true]} : vector<2x32xf32>, memref<2x?xf32, strided<[?, 1], offset: ?>>
  } {norm.strategy = #norm.cpu<rows = 2, columns = 32, parallel = false, stream_bytes = 4194304, prefetch = 2>}
  return
}

// -----

// 16-bit types: LLVM's x86 backend would drop the hint. Of a row of one vector
// there is no loop.
// CHECK-LABEL: func @narrow
// CHECK: scf.if
// CHECK: %[[BITS:.*]] = vector.bitcast %{{.*}} : vector<32xbf16> to vector<32xi16>
// CHECK: %[[HIDDEN:.*]] = llvm.inline_asm asm_dialect = att "", "=v,0" %[[BITS]]
// CHECK: %[[PIECE:.*]] = vector.bitcast %[[HIDDEN]] : vector<32xi16> to vector<32xbf16>
// CHECK: vector.store %[[PIECE]], {{.*}}nontemporal = true
// CHECK: } else {
// CHECK: vector.transfer_write
// X86-LABEL: func @narrow
// X86: scf.if
// X86: %[[BITS:.*]] = vector.bitcast %{{.*}} : vector<32xbf16> to vector<32xi16>
// X86: %[[PIECE:.*]] = vector.extract_strided_slice %[[BITS]] {offsets = [0], sizes = [8], strides = [1]} : vector<32xi16> to vector<8xi16>
// X86: %[[HIDDEN:.*]] = llvm.inline_asm asm_dialect = att "", "=x,0" %[[PIECE]]
// X86: %[[STORED:.*]] = vector.bitcast %[[HIDDEN]] : vector<8xi16> to vector<8xbf16>
// X86: vector.store %[[STORED]], {{.*}}alignment = 16 {{.*}}nontemporal = true
// X86-COUNT-15: vector.store {{.*}}nontemporal = true
// X86-NOT: vector.store
// X86: } else {
// ANY-LABEL: func @narrow
// ANY-NOT: inline_asm
// ANY: vector.store {{.*}}nontemporal = true
func.func @narrow(%x: memref<65536x32xf32>, %y: memref<65536x32xbf16>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  scf.forall (%i) = (0) to (65536) step (4) {
    %xi = memref.subview %x[%i, 0] [4, 32] [1, 1] : memref<65536x32xf32> to memref<4x32xf32, strided<[32, 1], offset: ?>>
    %yi = memref.subview %y[%i, 0] [4, 32] [1, 1] : memref<65536x32xbf16> to memref<4x32xbf16, strided<[32, 1], offset: ?>>
    %a = vector.transfer_read %xi[%c0, %c0], %z {in_bounds = [true, true]} : memref<4x32xf32, strided<[32, 1], offset: ?>>, vector<4x32xf32>
    %b = arith.truncf %a : vector<4x32xf32> to vector<4x32xbf16>
    vector.transfer_write %b, %yi[%c0, %c0] {in_bounds = [true, true]} : vector<4x32xbf16>, memref<4x32xbf16, strided<[32, 1], offset: ?>>
  } {norm.strategy = #norm.cpu<rows = 4, columns = 32, parallel = true, stream_bytes = 4194304>}
  return
}

// -----

// Rows shorter than a line that lie side by side make whole lines.
// CHECK-LABEL: func @run
// CHECK: scf.if
// CHECK: %[[ROWS:.*]] = vector.shape_cast %{{.*}} : vector<4x8xf32> to vector<32xf32>
// CHECK: memref.reinterpret_cast {{.*}} to memref<32xf32, strided<[1], offset: ?>>
// CHECK-COUNT-2: vector.store {{.*}} : memref<32xf32, strided<[1], offset: ?>>, vector<16xf32>
func.func @run(%x: memref<1048576x8xf32>, %y: memref<1048576x8xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  scf.forall (%i) = (0) to (1048576) step (4) {
    %xi = memref.subview %x[%i, 0] [4, 8] [1, 1] : memref<1048576x8xf32> to memref<4x8xf32, strided<[8, 1], offset: ?>>
    %yi = memref.subview %y[%i, 0] [4, 8] [1, 1] : memref<1048576x8xf32> to memref<4x8xf32, strided<[8, 1], offset: ?>>
    %a = vector.transfer_read %xi[%c0, %c0], %z {in_bounds = [true, true]} : memref<4x8xf32, strided<[8, 1], offset: ?>>, vector<4x8xf32>
    vector.transfer_write %a, %yi[%c0, %c0] {in_bounds = [true, true]} : vector<4x8xf32>, memref<4x8xf32, strided<[8, 1], offset: ?>>
  } {norm.strategy = #norm.cpu<rows = 4, columns = 8, parallel = true, stream_bytes = 4194304>}
  return
}

// -----

// One row at a time may start anywhere. Two of 33 columns do not lie alike.
// CHECK-LABEL: func @odd
// CHECK: nontemporal
// CHECK-NOT: nontemporal
// CHECK: return
func.func @odd(%x: memref<100000x1057xf64>, %y: memref<100000x1057xf64>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c1056 = arith.constant 1056 : index
  %z = arith.constant 0.0 : f64
  scf.forall (%i) in (100000) {
    scf.for %j = %c0 to %c1056 step %c8 {
      %a = vector.transfer_read %x[%i, %j], %z {in_bounds = [true]} : memref<100000x1057xf64>, vector<8xf64>
      vector.transfer_write %a, %y[%i, %j] {in_bounds = [true]} : vector<8xf64>, memref<100000x1057xf64>
    }
  } {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = true, stream_bytes = 4194304>}
  scf.forall (%i) = (0) to (100000) step (2) {
    scf.for %j = %c0 to %c1056 step %c8 {
      %a = vector.transfer_read %x[%i, %j], %z {in_bounds = [true, true]} : memref<100000x1057xf64>, vector<2x8xf64>
      vector.transfer_write %a, %y[%i, %j] {in_bounds = [true, true]} : vector<2x8xf64>, memref<100000x1057xf64>
    }
  } {norm.strategy = #norm.cpu<rows = 2, columns = 8, parallel = true, stream_bytes = 4194304>}
  return
}

// -----

// What a row leaves for a vector that it does not fill is a whole line.
// CHECK-LABEL: func @rest
// CHECK: scf.if
// CHECK-COUNT-2: vector.store %{{.*}} {alignment = 64 : i64, nontemporal = true}
// CHECK-NOT: vector.store
// CHECK: } else {
// CHECK: vector.transfer_write %{{.*}} : vector<32xf32>
// CHECK: %[[LINE:.*]] = vector.extract_strided_slice %{{.*}} {offsets = [0], sizes = [16], strides = [1]}
// CHECK: scf.if
// CHECK: vector.store %[[LINE]], %{{.*}}[%{{.*}}, %c32] {alignment = 64 : i64, nontemporal = true}
// CHECK-NOT: vector.store
// CHECK: } else {
// CHECK: vector.transfer_write %{{.*}} : vector<16xf32>
// CHECK: return
func.func @rest(%x: memref<1000000x48xf32>, %y: memref<1000000x48xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %z = arith.constant 0.0 : f32
  %m = vector.constant_mask [16] : vector<32xi1>
  scf.forall (%i) in (1000000) {
    %a = vector.transfer_read %x[%i, %c0], %z {in_bounds = [true]} : memref<1000000x48xf32>, vector<32xf32>
    %b = vector.transfer_read %x[%i, %c32], %z, %m {in_bounds = [true]} : memref<1000000x48xf32>, vector<32xf32>
    vector.transfer_write %a, %y[%i, %c0] {in_bounds = [true]} : vector<32xf32>, memref<1000000x48xf32>
    vector.transfer_write %b, %y[%i, %c32], %m {in_bounds = [true]} : vector<32xf32>, memref<1000000x48xf32>
  } {norm.strategy = #norm.cpu<rows = 1, columns = 32, parallel = true, stream_bytes = 4194304>}
  return
}

// -----

// Known not to be worth it: too few bytes, rows that start inside lines, or a
// result that the loop reads as well.
// CHECK-LABEL: func @plain
// CHECK-NOT: scf.if
// CHECK-NOT: vector.store
// CHECK-NOT: norm.streams
// CHECK: return
func.func @plain(%x: memref<16x32xf32>, %y: memref<16x32xf32>, %u: memref<1000000x33xf32>, %v: memref<1000000x33xf32>, %w: memref<1000000x32xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  scf.forall (%i) in (16) {
    %a = vector.transfer_read %x[%i, %c0], %z {in_bounds = [true]} : memref<16x32xf32>, vector<32xf32>
    vector.transfer_write %a, %y[%i, %c0] {in_bounds = [true]} : vector<32xf32>, memref<16x32xf32>
  } {norm.strategy = #norm.cpu<rows = 1, columns = 32, parallel = true, stream_bytes = 4194304>}
  scf.forall (%i) in (1000000) {
    %a = vector.transfer_read %u[%i, %c0], %z {in_bounds = [true]} : memref<1000000x33xf32>, vector<32xf32>
    vector.transfer_write %a, %v[%i, %c0] {in_bounds = [true]} : vector<32xf32>, memref<1000000x33xf32>
  } {norm.strategy = #norm.cpu<rows = 1, columns = 32, parallel = true, stream_bytes = 4194304>}
  scf.forall (%i) in (1000000) {
    %a = vector.transfer_read %w[%i, %c0], %z {in_bounds = [true]} : memref<1000000x32xf32>, vector<32xf32>
    %b = arith.addf %a, %a : vector<32xf32>
    vector.transfer_write %b, %w[%i, %c0] {in_bounds = [true]} : vector<32xf32>, memref<1000000x32xf32>
  } {norm.strategy = #norm.cpu<rows = 1, columns = 32, parallel = true, stream_bytes = 4194304>}
  return
}

// -----

// Images of a channel lie apart, and 192 columns are few: only such as start on a
// line go past the caches. The lines at the edges of others would be read first.
// CHECK-LABEL: func @apart
// CHECK: %[[EDGES:.*]] = arith.ori %{{.*}}, %c768
// CHECK: %[[REST:.*]] = arith.andi %[[EDGES]], %c63
// CHECK: %[[WHOLE:.*]] = arith.cmpi eq, %[[REST]], %c0
// CHECK: %[[STREAMS:.*]] = arith.andi %{{.*}}, %[[WHOLE]]
// CHECK: scf.if %[[STREAMS]]
// CHECK: nontemporal
// CHECK: return
func.func @apart(%x: memref<16x4096x196xf32>, %y: memref<16x4096x196xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c192 = arith.constant 192 : index
  %z = arith.constant 0.0 : f32
  scf.forall (%c) in (4096) {
    scf.for %n = %c0 to %c16 step %c1 {
      scf.for %j = %c0 to %c192 step %c16 {
        %a = vector.transfer_read %x[%n, %c, %j], %z {in_bounds = [true]} : memref<16x4096x196xf32>, vector<16xf32>
        vector.transfer_write %a, %y[%n, %c, %j] {in_bounds = [true]} : vector<16xf32>, memref<16x4096x196xf32>
      }
    }
  } {norm.strategy = #norm.cpu<rows = 1, columns = 16, parallel = true, stream_bytes = 4194304>}
  return
}
