// Barriers that a part of the block does not reach, or reaches elsewhere.
// RUN: %to_gpu %s -o %t
// RUN: not %run_emulated -e returned %t 2>&1 | FileCheck %s --check-prefix=RETURNED
// RUN: not %run_emulated -e diverged %t 2>&1 | FileCheck %s --check-prefix=DIVERGED
// RUN: %run_emulated -e joined %t | FileCheck %s --check-prefix=JOINED
// RUN: env NORM_EMU_SEED=3 not %run_emulated -e diverged %t 2>&1 | FileCheck %s --check-prefix=SEED
// RUN: %run_emulated -e some_warps %t | FileCheck %s --check-prefix=SOME
// RUN: not %run_emulated -e some_warps_race %t 2>&1 | FileCheck %s --check-prefix=RACE
// RUN: %run_emulated -e reduced %t | FileCheck %s --check-prefix=REDUCED

func.func private @printMemrefI32(memref<*xi32>)
memref.global "private" @out : memref<96xi32> = dense<0>
func.func private @array() -> memref<96xi32> {
  %y = memref.get_global @out : memref<96xi32>
  %u = memref.cast %y : memref<96xi32> to memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  return %y : memref<96xi32>
}
func.func private @print(%y: memref<96xi32>) {
  %s = memref.subview %y[30] [4] [1] : memref<96xi32> to memref<4xi32, strided<[1], offset: 30>>
  %u = memref.cast %s : memref<4xi32, strided<[1], offset: 30>> to memref<*xi32>
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}

// RETURNED: barriers.mlir:[[#@LINE+10]]:{{[0-9]+}}: error: divergent barrier: reached by 40 of 64 threads, the others have returned
// RETURNED-NEXT: norm-emu: note: in kernel 'returned_kernel', block (0, 0, 0), thread ({{[0-9]+}}, 0, 0)
// RETURNED-NOT: {{.}}
func.func @returned() {
  %c1 = arith.constant 1 : index
  %c40 = arith.constant 40 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c64, %ny = %c1, %nz = %c1) {
    %few = arith.cmpi ult, %t, %c40 : index
    scf.if %few {
      gpu.barrier
    }
    gpu.terminator
  }
  return
}

// The warps meet, but not at one barrier.
// DIVERGED: barriers.mlir:[[#@LINE+16]]:{{[0-9]+}}: error: divergent barrier: thread 32 is at this barrier while others of its block are at another
// DIVERGED: barriers.mlir:[[#@LINE+11]]:{{[0-9]+}}: note: thread 0 is here
// SEED: error: divergent barrier
func.func @diverged() {
  %y = call @array() : () -> memref<96xi32>
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c64, %ny = %c1, %nz = %c1) {
    %i = arith.index_cast %t : index to i32
    %first = arith.cmpi ult, %t, %c32 : index
    scf.if %first {
      gpu.barrier
      memref.store %i, %y[%t] : memref<96xi32>
    } else {
      memref.store %i, %y[%t] : memref<96xi32>
      gpu.barrier
    }
    gpu.terminator
  }
  return
}

// A branch that all threads take the same way is none.
// JOINED: [30, 31, 32, 33]
func.func @joined() {
  %y = call @array() : () -> memref<96xi32>
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c96 = arith.constant 96 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c96, %ny = %c1, %nz = %c1) {
    %i = arith.index_cast %t : index to i32
    %all = arith.cmpi eq, %b, %c0 : index
    scf.if %all {
      gpu.barrier
      memref.store %i, %y[%t] : memref<96xi32>
    } else {
      gpu.barrier
    }
    gpu.terminator
  }
  call @print(%y) : (memref<96xi32>) -> ()
  return
}

// Two of three warps meet at a barrier of their own; the third does not come.
// SOME: [33, 32, 31, 30]
func.func @some_warps() {
  %y = call @array() : () -> memref<96xi32>
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %c96 = arith.constant 96 : index
  %id = arith.constant 1 : i32
  %count = arith.constant 64 : i32
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c96, %ny = %c1, %nz = %c1)
      workgroup(%s : memref<64xi32, #gpu.address_space<workgroup>>) {
    %i = arith.index_cast %t : index to i32
    %some = arith.cmpi ult, %t, %c64 : index
    scf.if %some {
      memref.store %i, %s[%t] : memref<64xi32, #gpu.address_space<workgroup>>
      nvvm.barrier id = %id number_of_threads = %count
      %r = arith.subi %c63, %t : index
      %v = memref.load %s[%r] : memref<64xi32, #gpu.address_space<workgroup>>
      memref.store %v, %y[%t] : memref<96xi32>
    }
    gpu.terminator
  }
  call @print(%y) : (memref<96xi32>) -> ()
  return
}

// The third warp reads what the others ordered among themselves.
func.func @some_warps_race() {
  %y = call @array() : () -> memref<96xi32>
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c96 = arith.constant 96 : index
  %id = arith.constant 1 : i32
  %count = arith.constant 64 : i32
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c96, %ny = %c1, %nz = %c1)
      workgroup(%s : memref<64xi32, #gpu.address_space<workgroup>>) {
    %i = arith.index_cast %t : index to i32
    %some = arith.cmpi ult, %t, %c64 : index
    scf.if %some {
      memref.store %i, %s[%t] : memref<64xi32, #gpu.address_space<workgroup>>
      nvvm.barrier id = %id number_of_threads = %count
    } else {
      %r = arith.subi %t, %c64 : index
      // RACE: error: shared-memory race
      %v = memref.load %s[%r] : memref<64xi32, #gpu.address_space<workgroup>>
      memref.store %v, %y[%t] : memref<96xi32>
    }
    gpu.terminator
  }
  return
}

// A barrier that counts predicates: 40 of 96 are set.
// REDUCED: [40, 40, 40, 40]
func.func @reduced() {
  %y = call @array() : () -> memref<96xi32>
  %c1 = arith.constant 1 : index
  %c40 = arith.constant 40 : index
  %c96 = arith.constant 96 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c96, %ny = %c1, %nz = %c1) {
    %few = arith.cmpi ult, %t, %c40 : index
    %p = arith.extui %few : i1 to i32
    %v = nvvm.barrier #nvvm.reduction<popc> %p -> i32
    memref.store %v, %y[%t] : memref<96xi32>
    gpu.terminator
  }
  call @print(%y) : (memref<96xi32>) -> ()
  return
}
