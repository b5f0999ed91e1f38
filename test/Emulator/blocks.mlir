// Blocks run in any order: none may touch what another writes.
// RUN: %to_gpu %s -o %t
// RUN: not %run_emulated -e both_write %t 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not %run_emulated -e reads_written %t 2>&1 | FileCheck %s --check-prefix=READS
// RUN: env NORM_EMU_SEED=1 not %run_emulated -e reads_written %t 2>&1 | FileCheck %s --check-prefix=READS
// RUN: env NORM_EMU_SEED=2 not %run_emulated -e reads_written %t 2>&1 | FileCheck %s --check-prefix=READS
// RUN: env NORM_EMU_CHECK=-blocks %run_emulated -e both_write %t
// RUN: %run_emulated -e apart %t | FileCheck %s --check-prefix=APART
// RUN: %run_emulated -e in_place %t | FileCheck %s --check-prefix=INPLACE
// RUN: %run_emulated -e bytes_apart %t
// RUN: %run_emulated -e atomics %t | FileCheck %s --check-prefix=ATOMICS

func.func private @printMemrefI32(memref<*xi32>)
memref.global "private" @out : memref<64xi32> = dense<0>
func.func private @array() -> memref<64xi32> {
  %y = memref.get_global @out : memref<64xi32>
  %u = memref.cast %y : memref<64xi32> to memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  return %y : memref<64xi32>
}
func.func private @print(%y: memref<64xi32>) {
  %u = memref.cast %y : memref<64xi32> to memref<*xi32>
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}

// Threads 31 and 0 of two blocks write one element.
// BOTH: blocks.mlir:[[#@LINE+11]]:{{[0-9]+}}: error: conflict between blocks: block (1, 0, 0) writes 4 bytes that block (0, 0, 0) wrote, at offset 124 of argument {{[0-9]+}}
func.func @both_write() {
  %y = call @array() : () -> memref<64xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 2 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c31 = arith.constant 31 : index
    %o = arith.muli %b, %c31 : index
    %k = arith.addi %o, %t : index
    %i = arith.index_cast %t : index to i32
    memref.store %i, %y[%k] : memref<64xi32>
    gpu.terminator
  }
  return
}

// Whichever runs first.
// READS: error: conflict between blocks: block {{.*}} {{reads|writes}} 4 bytes that block {{.*}} {{wrote|read}}
func.func @reads_written() {
  %y = call @array() : () -> memref<64xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 2 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c32 = arith.constant 32 : index
    %c63 = arith.constant 63 : index
    %o = arith.muli %b, %c32 : index
    %k = arith.addi %o, %t : index
    %r = arith.subi %c63, %k : index
    %i = memref.load %y[%r] : memref<64xi32>
    memref.store %i, %y[%k] : memref<64xi32>
    gpu.terminator
  }
  return
}

// APART: [0, 1, 2,{{.*}} 63]
func.func @apart() {
  %y = call @array() : () -> memref<64xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 2 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c32 = arith.constant 32 : index
    %o = arith.muli %b, %c32 : index
    %k = arith.addi %o, %t : index
    %i = arith.index_cast %k : index to i32
    memref.store %i, %y[%k] : memref<64xi32>
    gpu.terminator
  }
  call @print(%y) : (memref<64xi32>) -> ()
  return
}

// INPLACE: [1, 1, 1,{{.*}} 1]
func.func @in_place() {
  %y = call @array() : () -> memref<64xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 2 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c32 = arith.constant 32 : index
    %one = arith.constant 1 : i32
    %o = arith.muli %b, %c32 : index
    %k = arith.addi %o, %t : index
    %v = memref.load %y[%k] : memref<64xi32>
    %w = arith.addi %v, %one : i32
    memref.store %w, %y[%k] : memref<64xi32>
    gpu.terminator
  }
  call @print(%y) : (memref<64xi32>) -> ()
  return
}

// Blocks that write neighbouring bytes of one word do not conflict.
func.func @bytes_apart() {
  %y = call @array() : () -> memref<64xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 3 : index
  %blocks = arith.constant 2 : index
  %t0 = gpu.wait async
  %z, %t1 = gpu.alloc async [%t0] () : memref<6xi8>
  gpu.wait [%t1]
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c3 = arith.constant 3 : index
    %v = arith.constant 1 : i8
    %o = arith.muli %b, %c3 : index
    %k = arith.addi %o, %t : index
    memref.store %v, %z[%k] : memref<6xi8>
    gpu.terminator
  }
  return
}

// ATOMICS: [128, 0,
func.func @atomics() {
  %y = call @array() : () -> memref<64xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 64 : index
  %blocks = arith.constant 2 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %old = memref.atomic_rmw addi %one, %y[%c0] : (i32, memref<64xi32>) -> i32
    gpu.terminator
  }
  call @print(%y) : (memref<64xi32>) -> ()
  return
}
