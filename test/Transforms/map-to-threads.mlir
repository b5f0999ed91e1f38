// RUN: norm-opt %s --norm-map-to-threads="alignment=promised" --cse --split-input-file | FileCheck %s
// RUN: norm-opt %s --norm-map-to-threads="stream=true" --cse --canonicalize --split-input-file | FileCheck %s --check-prefix=CHECKED

// Four rows a block, a warp each: three pieces a thread, a butterfly, no
// barrier. Rows beyond the tenth are computed again and not written.
// CHECK-LABEL: func @warp(
// CHECK-SAME: %[[X:.*]]: memref<10x192xf32>, %[[G:.*]]: memref<192xf32>, %[[Y:.*]]: memref<10x192xf32>, %[[S:.*]]: memref<10xf32>)
// CHECK: gpu.launch blocks(%[[BLOCK:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c3, {{.*}}) threads(%[[THREAD:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c128,
// CHECK: %[[LANE:.*]] = arith.remui %[[THREAD]], %c32
// CHECK: %[[IN_BLOCK:.*]] = arith.divui %[[THREAD]], %c32
// CHECK: %[[FIRST:.*]] = arith.muli %[[BLOCK]], %c4
// CHECK: %[[ROW:.*]] = arith.addi %[[FIRST]], %[[IN_BLOCK]]
// CHECK: %[[IS_ROW:.*]] = arith.cmpi ult, %[[ROW]], %c10
// CHECK: %[[CLAMPED:.*]] = arith.minui %[[ROW]], %c9
// CHECK: %[[C0:.*]] = arith.muli %[[LANE]], %c2
// CHECK: %[[C1:.*]] = arith.addi %[[C0]], %c64
// CHECK: %[[C2:.*]] = arith.addi %[[C0]], %c128
// CHECK: %[[X0:.*]] = vector.load %[[X]][%[[CLAMPED]], %[[C0]]] {alignment = 8 : i64}
// CHECK: %[[X1:.*]] = vector.load %[[X]][%[[CLAMPED]], %[[C1]]]
// CHECK: %[[X2:.*]] = vector.load %[[X]][%[[CLAMPED]], %[[C2]]]
// CHECK: %[[T0:.*]] = arith.addf %[[X0]], %[[X1]] : vector<2xf32>
// CHECK: arith.addf %[[T0]], %[[X2]] : vector<2xf32>
// CHECK: vector.load %[[G]]
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-NOT: gpu.barrier
// CHECK: arith.mulf %[[X0]]
// CHECK: scf.if %[[IS_ROW]] {
// CHECK-NEXT: vector.store %{{.*}}, %[[Y]][%[[CLAMPED]], %[[C0]]] {alignment = 8 : i64}
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %[[LANE]], %c0
// CHECK: %[[WRITES:.*]] = arith.andi %[[IS_ROW]], %[[IS_FIRST]]
// CHECK: scf.if %[[WRITES]] {
// CHECK-NEXT: memref.store %{{.*}}, %[[S]][%[[CLAMPED]]]

// The host looks at the pointers; the other kernel's rows may start anywhere.
// CHECKED-LABEL: func @warp(
// CHECKED-SAME: %[[STREAM:[a-z0-9]+]]: !llvm.ptr)
// CHECKED: memref.extract_aligned_pointer_as_index
// CHECKED: scf.if
// CHECKED: %[[TOKEN:.*]] = builtin.unrealized_conversion_cast %[[STREAM]] : !llvm.ptr to !gpu.async.token
// CHECKED: gpu.launch async [%[[TOKEN]]]
// CHECKED-COUNT-6: vector.load
// CHECKED: } else {
// CHECKED: gpu.launch
// CHECKED: vector.load
// CHECKED: } else {
// CHECKED: memref.load
// CHECKED: gpu.shuffle idx
#warp = #norm.gpu<threads = 32, accesses = 3, width = 2, columns = 192, rows = 4, staging = registers>
func.func @warp(%x: memref<10x192xf32>, %g: memref<192xf32>, %y: memref<10x192xf32>, %s: memref<10xf32>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%i) in (10) {
    %v = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true, true]} : memref<10x192xf32>, vector<1x192xf32>
    %sum = vector.multi_reduction <add>, %v, %zero [1] : vector<1x192xf32> to vector<1xf32>
    %w = vector.transfer_read %g[%c0], %pad {in_bounds = [true]} : memref<192xf32>, vector<192xf32>
    %b = vector.broadcast %sum : vector<1xf32> to vector<1x192xf32>
    %wb = vector.broadcast %w : vector<192xf32> to vector<1x192xf32>
    %p = arith.mulf %v, %b : vector<1x192xf32>
    %q = arith.mulf %p, %wb : vector<1x192xf32>
    vector.transfer_write %q, %y[%i, %c0] {in_bounds = [true, true]} : vector<1x192xf32>, memref<10x192xf32>
    vector.transfer_write %sum, %s[%i] {in_bounds = [true]} : vector<1xf32>, memref<10xf32>
  } {norm.strategy = #warp}
  return
}

// -----

// Three warps a row, an odd number: sums that do not wait for each other share
// one barrier, and what does not vary along rows is read after it.
// CHECK-LABEL: func @block(
// CHECK-SAME: %[[X:.*]]: memref<10x190xf32>, %[[G:.*]]: memref<190xf32>,
// CHECK: gpu.launch {{.*}} in (%{{.*}} = %c10, {{.*}} in (%{{.*}} = %c96,
// CHECK-SAME: workgroup(%[[A:.*]] : memref<1x3xf32, #gpu.address_space<workgroup>>, %[[B:.*]] : memref<1x3xf32, #gpu.address_space<workgroup>>)
// The last thread's columns do not exist: it reads the first ones, and they do
// not count.
// CHECK: %[[COLUMN:.*]] = arith.muli %{{.*}}, %c2
// CHECK: %[[EXISTS:.*]] = arith.cmpi ult, %[[COLUMN]], %c190
// CHECK: arith.select %[[EXISTS]], %[[COLUMN]], %c0
// CHECK: %[[V:.*]] = vector.load %[[X]]
// CHECK: arith.select %[[EXISTS]], %[[V]], %cst{{.*}} : vector<2xf32>
// CHECK-COUNT-10: gpu.shuffle
// CHECK: scf.if
// CHECK-NEXT: memref.store %{{.*}}, %[[A]]
// CHECK-NEXT: memref.store %{{.*}}, %[[B]]
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK-COUNT-3: memref.load %[[A]]
// CHECK-COUNT-3: memref.load %[[B]]
// CHECK: vector.load %[[G]]
// CHECK: scf.if %[[EXISTS]] {
// CHECK-NEXT: vector.store
#block = #norm.gpu<threads = 96, accesses = 1, width = 2, columns = 190, rows = 1, staging = registers, late_reads = true>
func.func @block(%x: memref<10x190xf32>, %g: memref<190xf32>, %y: memref<10x190xf32>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%i) in (10) {
    %v = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true, true]} : memref<10x190xf32>, vector<1x190xf32>
    %w = vector.transfer_read %g[%c0], %pad {in_bounds = [true]} : memref<190xf32>, vector<190xf32>
    %square = arith.mulf %v, %v : vector<1x190xf32>
    %sum = vector.multi_reduction <add>, %v, %zero [1] : vector<1x190xf32> to vector<1xf32>
    %squares = vector.multi_reduction <maximumf>, %square, %zero [1] : vector<1x190xf32> to vector<1xf32>
    %both = arith.mulf %sum, %squares : vector<1xf32>
    %b = vector.broadcast %both : vector<1xf32> to vector<1x190xf32>
    %wb = vector.broadcast %w : vector<190xf32> to vector<1x190xf32>
    %p = arith.mulf %v, %b : vector<1x190xf32>
    %q = arith.mulf %p, %wb : vector<1x190xf32>
    vector.transfer_write %q, %y[%i, %c0] {in_bounds = [true, true]} : vector<1x190xf32>, memref<10x190xf32>
  } {norm.strategy = #block}
  return
}

// -----

// Rows along two axes, of lengths that only run time knows: nothing is launched
// for none, and the block's number gives both indices.
// CHECK-LABEL: func @rows(
// CHECK-SAME: %[[X:.*]]: memref<?x?x64xf32>, %{{.*}}, %[[N:.*]]: index, %[[M:.*]]: index)
// CHECK: %[[ROWS:.*]] = arith.muli %[[N]], %[[M]]
// CHECK: %[[ANY:.*]] = arith.cmpi ne, %[[ROWS]], %c0
// CHECK: scf.if %[[ANY]] {
// CHECK: gpu.launch blocks(%[[BLOCK:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %[[ROWS]],
// CHECK: %[[J:.*]] = arith.remui %[[BLOCK]], %[[M]]
// CHECK: %[[I:.*]] = arith.divui %[[BLOCK]], %[[M]]
// CHECK: vector.load %[[X]][%[[I]], %[[J]],
#rows = #norm.gpu<threads = 32, accesses = 1, width = 2, columns = 64, rows = 1, staging = registers>
func.func @rows(%x: memref<?x?x64xf32>, %y: memref<?x?x64xf32>, %n: index, %m: index) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i, %j) in (%n, %m) {
    %v = vector.transfer_read %x[%i, %j, %c0], %pad {in_bounds = [true]} : memref<?x?x64xf32>, vector<64xf32>
    %w = arith.addf %v, %v : vector<64xf32>
    vector.transfer_write %w, %y[%i, %j, %c0] {in_bounds = [true]} : vector<64xf32>, memref<?x?x64xf32>
  } {norm.strategy = #rows}
  return
}

// -----

// A row by chunks: accumulators are pieces too, and a mask is one comparison a
// piece where the host has checked that V divides the row's length.
// CHECK-LABEL: func @chunks(
// CHECK-SAME: %[[X:.*]]: memref<8x?xf32>
// CHECK: %[[LOOP:.*]]:2 = scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (vector<4xf32>, vector<4xf32>) {
// CHECK-COUNT-2: vector.load %[[X]]{{.*}} {alignment = 16 : i64}
// CHECK: scf.yield
// CHECK: %[[IN:.*]] = arith.cmpi ult, %{{.*}}, %[[REST:.*]] : index
// CHECK: arith.select %[[IN]], %{{.*}}, %c0 : index
// CHECK: %[[READ:.*]] = vector.load %[[X]]
// CHECK: arith.select %[[IN]], %[[READ]], %{{.*}} : vector<4xf32>
// CHECK: arith.addf %[[LOOP]]#0
// CHECK: arith.addf %[[LOOP]]#1
// CHECKED-LABEL: func @chunks(
// CHECKED: %[[N:.*]] = memref.dim
// CHECKED: %[[REST:.*]] = arith.remui %[[N]], %c4
// CHECKED: arith.cmpi eq, %[[REST]], %c0
// CHECKED: arith.cmpi ne, %[[N]], %c0
#chunks = #norm.gpu<threads = 32, accesses = 2, width = 4, columns = 256, rows = 1, staging = reread>
func.func @chunks(%x: memref<8x?xf32>, %s: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %pad = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<1x256xf32>
  %zero = arith.constant dense<0.0> : vector<1xf32>
  %n = memref.dim %x, %c1 : memref<8x?xf32>
  scf.forall (%i) in (8) {
    %rest = arith.remui %n, %c256 : index
    %end = arith.subi %n, %rest : index
    %acc = scf.for %j = %c0 to %end step %c256 iter_args(%a = %zeros) -> (vector<1x256xf32>) {
      %v = vector.transfer_read %x[%i, %j], %pad {in_bounds = [true, true]} : memref<8x?xf32>, vector<1x256xf32>
      %next = arith.addf %a, %v : vector<1x256xf32>
      scf.yield %next : vector<1x256xf32>
    }
    %mask = vector.create_mask %c1, %rest : vector<1x256xi1>
    %v = vector.transfer_read %x[%i, %end], %pad, %mask {in_bounds = [true, true]} : memref<8x?xf32>, vector<1x256xf32>
    %all = arith.addf %acc, %v : vector<1x256xf32>
    %sum = vector.multi_reduction <add>, %all, %zero [1] : vector<1x256xf32> to vector<1xf32>
    vector.transfer_write %sum, %s[%i] {in_bounds = [true]} : vector<1xf32>, memref<8xf32>
  } {norm.strategy = #chunks}
  return
}

// -----

// Square roots are an instruction; exponentials are polynomials. Nothing calls
// a library.
// CHECK-LABEL: func @functions(
// CHECK: gpu.launch
// CHECK: llvm.call_intrinsic "llvm.sqrt"
// CHECK: llvm.call_intrinsic "llvm.floor"
// CHECK-NOT: math.exp
#functions = #norm.gpu<threads = 32, accesses = 1, width = 2, columns = 64, rows = 1, staging = registers>
func.func @functions(%x: memref<4x64xf32>, %y: memref<4x64xf32>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) in (4) {
    %v = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true]} : memref<4x64xf32>, vector<64xf32>
    %r = math.sqrt %v : vector<64xf32>
    %e = math.exp %r : vector<64xf32>
    vector.transfer_write %e, %y[%i, %c0] {in_bounds = [true]} : vector<64xf32>, memref<4x64xf32>
  } {norm.strategy = #functions}
  return
}

// -----

// What a row computes in a buffer of its own is written where it is copied.
// CHECK-LABEL: func @forwarded(
// CHECK-SAME: %{{.*}}: memref<4x64xf32>, %[[Y:.*]]: memref<4x128xf32>)
// CHECK: gpu.launch
// CHECK-NOT: memref.alloc
// CHECK: %[[HALF:.*]] = memref.subview %[[Y]]
// CHECK: vector.store %{{.*}}, %[[HALF]]
// CHECK-NOT: memref.copy
#forwarded = #norm.gpu<threads = 32, accesses = 1, width = 2, columns = 64, rows = 1, staging = registers>
func.func @forwarded(%x: memref<4x64xf32>, %y: memref<4x128xf32>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) in (4) {
    %own = memref.alloc() : memref<1x64xf32>
    %v = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true]} : memref<4x64xf32>, vector<64xf32>
    vector.transfer_write %v, %own[%c0, %c0] {in_bounds = [true]} : vector<64xf32>, memref<1x64xf32>
    %half = memref.subview %y[%i, 64] [1, 64] [1, 1] : memref<4x128xf32> to memref<1x64xf32, strided<[128, 1], offset: ?>>
    memref.copy %own, %half : memref<1x64xf32> to memref<1x64xf32, strided<[128, 1], offset: ?>>
    memref.dealloc %own : memref<1x64xf32>
  } {norm.strategy = #forwarded}
  return
}

// -----

// The first sweep keeps what it normalizes, the rounded sum, in shared memory;
// the second one reads neither x nor r. A thread finds what it put there: the
// one barrier is that of the reduction.
// CHECK-LABEL: func @staged(
// CHECK-SAME: %[[X:.*]]: memref<8x1024xbf16>, %[[R:.*]]: memref<8x1024xbf16>, %[[Y:.*]]: memref<8x1024xbf16>)
// CHECK: gpu.launch
// CHECK-SAME: dynamic_shared_memory_size %c2048_i32
// CHECK: %[[SHARED:.*]] = gpu.dynamic_shared_memory
// CHECK: %[[ROW:.*]] = memref.view %[[SHARED]][%c0][] : {{.*}} to memref<1x1024xbf16, #gpu.address_space<workgroup>>
// CHECK: scf.for
// CHECK-DAG: vector.load %[[X]]
// CHECK-DAG: vector.load %[[R]]
// CHECK: %[[SUM:.*]] = arith.truncf
// CHECK: vector.store %[[SUM]], %[[ROW]]
// CHECK: gpu.barrier
// CHECK: scf.for
// CHECK-NOT: vector.load %{{.*}} : memref<8x1024xbf16>
// CHECK: vector.load %[[ROW]]
// CHECK-NOT: gpu.barrier
// CHECK: vector.store %{{.*}}, %[[Y]]
#shared = #norm.gpu<threads = 64, accesses = 1, width = 4, columns = 256, rows = 1, staging = shared>
func.func @staged(%x: memref<8x1024xbf16>, %r: memref<8x1024xbf16>, %y: memref<8x1024xbf16>) {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %c1024 = arith.constant 1024 : index
  %pad = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : vector<1x256xf32>
  %zero = arith.constant dense<0.0> : vector<1xf32>
  scf.forall (%i) in (8) {
    %acc = scf.for %j = %c0 to %c1024 step %c256 iter_args(%a = %zeros) -> (vector<1x256xf32>) {
      %v = vector.transfer_read %x[%i, %j], %pad {in_bounds = [true, true]} : memref<8x1024xbf16>, vector<1x256xbf16>
      %w = vector.transfer_read %r[%i, %j], %pad {in_bounds = [true, true]} : memref<8x1024xbf16>, vector<1x256xbf16>
      %ve = arith.extf %v : vector<1x256xbf16> to vector<1x256xf32>
      %we = arith.extf %w : vector<1x256xbf16> to vector<1x256xf32>
      %s = arith.addf %ve, %we : vector<1x256xf32>
      %t = arith.truncf %s : vector<1x256xf32> to vector<1x256xbf16>
      %e = arith.extf %t : vector<1x256xbf16> to vector<1x256xf32>
      %next = arith.addf %a, %e : vector<1x256xf32>
      scf.yield %next : vector<1x256xf32>
    }
    %sum = vector.multi_reduction <add>, %acc, %zero [1] : vector<1x256xf32> to vector<1xf32>
    %b = vector.broadcast %sum : vector<1xf32> to vector<1x256xf32>
    scf.for %j = %c0 to %c1024 step %c256 {
      %v = vector.transfer_read %x[%i, %j], %pad {in_bounds = [true, true]} : memref<8x1024xbf16>, vector<1x256xbf16>
      %w = vector.transfer_read %r[%i, %j], %pad {in_bounds = [true, true]} : memref<8x1024xbf16>, vector<1x256xbf16>
      %ve = arith.extf %v : vector<1x256xbf16> to vector<1x256xf32>
      %we = arith.extf %w : vector<1x256xbf16> to vector<1x256xf32>
      %s = arith.addf %ve, %we : vector<1x256xf32>
      %t = arith.truncf %s : vector<1x256xf32> to vector<1x256xbf16>
      %e = arith.extf %t : vector<1x256xbf16> to vector<1x256xf32>
      %m = arith.mulf %e, %b : vector<1x256xf32>
      %o = arith.truncf %m : vector<1x256xf32> to vector<1x256xbf16>
      vector.transfer_write %o, %y[%i, %j] {in_bounds = [true, true]} : vector<1x256xbf16>, memref<8x1024xbf16>
    }
  } {norm.strategy = #shared}
  return
}

// -----

// A sum of two rows that is not rounded is f32, two accesses of a piece: they
// lie in planes, so that neighbouring threads access neighbouring words.
// CHECK-LABEL: func @planes(
// CHECK: gpu.launch
// CHECK-SAME: dynamic_shared_memory_size %c8192_i32
// CHECK: %[[ROWS:.*]] = memref.view {{.*}} to memref<2x1024xf32, #gpu.address_space<workgroup>>
// CHECK: %[[LANE:.*]] = arith.muli %{{.*}}, %c4
// CHECK: arith.addi %[[LANE]], %c128
// CHECK: vector.store %{{.*}}, %[[ROWS]][%{{.*}}, %{{.*}}] {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK: vector.load %[[ROWS]][%{{.*}}, %{{.*}}] {alignment = 16 : i64} : {{.*}}, vector<4xf32>
#planes = #norm.gpu<threads = 32, accesses = 2, width = 8, columns = 512, rows = 2, staging = shared>
func.func @planes(%x: memref<8x1024xbf16>, %y: memref<8x1024xf32>, %s: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c512 = arith.constant 512 : index
  %c1024 = arith.constant 1024 : index
  %pad = arith.constant 0.0 : f32
  %padx = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : vector<512xf32>
  scf.forall (%i) in (8) {
    %acc = scf.for %j = %c0 to %c1024 step %c512 iter_args(%a = %zeros) -> (vector<512xf32>) {
      %v = vector.transfer_read %x[%i, %j], %padx {in_bounds = [true]} : memref<8x1024xbf16>, vector<512xbf16>
      %e = arith.extf %v : vector<512xbf16> to vector<512xf32>
      %w = vector.transfer_read %y[%i, %j], %pad {in_bounds = [true]} : memref<8x1024xf32>, vector<512xf32>
      %t = arith.addf %e, %w : vector<512xf32>
      %next = arith.addf %a, %t : vector<512xf32>
      scf.yield %next : vector<512xf32>
    }
    %sum = vector.multi_reduction <add>, %acc, %pad [0] : vector<512xf32> to f32
    %b = vector.broadcast %sum : f32 to vector<512xf32>
    %max = scf.for %j = %c0 to %c1024 step %c512 iter_args(%a = %zeros) -> (vector<512xf32>) {
      %v = vector.transfer_read %x[%i, %j], %padx {in_bounds = [true]} : memref<8x1024xbf16>, vector<512xbf16>
      %e = arith.extf %v : vector<512xbf16> to vector<512xf32>
      %w = vector.transfer_read %y[%i, %j], %pad {in_bounds = [true]} : memref<8x1024xf32>, vector<512xf32>
      %t = arith.addf %e, %w : vector<512xf32>
      %m = arith.mulf %t, %b : vector<512xf32>
      %next = arith.maximumf %a, %m : vector<512xf32>
      scf.yield %next : vector<512xf32>
    }
    %most = vector.multi_reduction <maximumf>, %max, %pad [0] : vector<512xf32> to f32
    memref.store %most, %s[%i] : memref<8xf32>
  } {norm.strategy = #planes}
  return
}

// -----

// V does not divide the row: a row starts at any element of a whole access. The
// thread reads the accesses that its columns lie in, what is not in the row
// element by element, and takes the rest from the next lane. What one gives the
// last lane is in the first one's next piece, and that of the last piece is
// read.
// CHECK-LABEL: func @odd(
// CHECK-SAME: %[[X:.*]]: memref<8x255xf32>, %[[Y:.*]]: memref<8x255xf32>)
// CHECK: %[[POINTER:.*]] = memref.extract_aligned_pointer_as_index %[[X]]
// CHECK: %[[SHIFT:.*]] = arith.andi %{{.*}}, %c3
// CHECK: %[[COLUMN:.*]] = arith.subi %{{.*}}, %[[SHIFT]]
// CHECK: scf.if
// CHECK-NEXT: vector.load %[[X]][%{{.*}}, %[[COLUMN]]] {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK: else
// CHECK-COUNT-4: memref.load %[[X]]
// CHECK: vector.load %[[X]]
// CHECK: gpu.shuffle idx
// CHECK: llvm.inline_asm has_side_effects "mov.b32 $0, $1;"
// CHECK: vector.load %[[X]]
// CHECK: memref.extract_aligned_pointer_as_index %[[Y]]
// CHECK: gpu.shuffle idx
// CHECK-NOT: gpu.barrier
// CHECK: vector.store %{{.*}}, %[[Y]][%{{.*}}, %{{.*}}] {alignment = 16 : i64}
// CHECK: else
// CHECK-COUNT-4: memref.store %{{.*}}, %[[Y]]
#odd = #norm.gpu<threads = 32, accesses = 2, width = 4, columns = 255, rows = 1, staging = registers>
func.func @odd(%x: memref<8x255xf32>, %y: memref<8x255xf32>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) in (8) {
    %v = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true, true]} : memref<8x255xf32>, vector<1x255xf32>
    vector.transfer_write %v, %y[%i, %c0] {in_bounds = [true, true]} : vector<1x255xf32>, memref<8x255xf32>
  } {norm.strategy = #odd}
  return
}

// -----

// Inside the row nothing is asked. Words of two elements are moved by funnel
// shifts, and what the last lane of a warp hands on goes by shared memory.
// CHECK-LABEL: func @warps(
// CHECK: workgroup(%[[ENDS:.*]] : memref<1x24xi32, #gpu.address_space<workgroup>>)
// CHECK: llvm.call_intrinsic "llvm.fshr"
// CHECK: scf.if
// CHECK-COUNT-12: memref.store %{{.*}}, %[[ENDS]]
// CHECK-NEXT: }
// CHECK-NEXT: gpu.barrier
// CHECK: memref.load %[[ENDS]]
// CHECK: } else {
// CHECK: vector.store
// CHECK-NOT: else
// CHECK: vector.store
// CHECK: } else {
#warps = #norm.gpu<threads = 64, accesses = 3, width = 8, columns = 1501, rows = 1, staging = registers>
func.func @warps(%x: memref<8x1501xbf16>, %y: memref<8x1501xbf16>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : bf16
  scf.forall (%i) in (8) {
    %v = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true]} : memref<8x1501xbf16>, vector<1501xbf16>
    vector.transfer_write %v, %y[%i, %c0] {in_bounds = [true]} : vector<1501xbf16>, memref<8x1501xbf16>
  } {norm.strategy = #warps}
  return
}

// -----

// Elements that do not lie side by side are moved one by one.
// CHECK-LABEL: func @strided(
// CHECK: gpu.launch
// CHECK-COUNT-4: memref.load
// CHECK-COUNT-4: memref.store
// CHECK-NOT: vector.store
#strided = #norm.gpu<threads = 32, accesses = 1, width = 4, columns = 128, rows = 1, staging = registers>
func.func @strided(%x: memref<8x128xf32, strided<[256, 2]>>, %y: memref<8x128xf32>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) in (8) {
    %v = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true]} : memref<8x128xf32, strided<[256, 2]>>, vector<128xf32>
    vector.transfer_write %v, %y[%i, %c0] {in_bounds = [true]} : vector<128xf32>, memref<8x128xf32>
  } {norm.strategy = #strided}
  return
}
