// Threads that wait for each other: lanes at a shuffle for lanes at a barrier.
// RUN: %to_gpu %s -o %t
// RUN: not %run_emulated -e half_a_warp %t 2>&1 | FileCheck %s --check-prefix=HALF
// RUN: env NORM_EMU_SEED=9 not %run_emulated -e half_a_warp %t 2>&1 | FileCheck %s --check-prefix=HALF
// RUN: %run_emulated -e whole_warps %t | FileCheck %s --check-prefix=WHOLE

func.func private @printMemrefI32(memref<*xi32>)
memref.global "private" @out : memref<40xi32> = dense<0>
func.func private @array() -> memref<40xi32> {
  %y = memref.get_global @out : memref<40xi32>
  %u = memref.cast %y : memref<40xi32> to memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  return %y : memref<40xi32>
}
func.func private @print(%y: memref<40xi32>) {
  %u = memref.cast %y : memref<40xi32> to memref<*xi32>
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}

// HALF: deadlock.mlir:[[#@LINE+16]]:{{[0-9]+}}: error: deadlock: thread 0 waits forever at an exchange between lanes
// HALF-NEXT: note: in kernel
// HALF-NEXT: deadlock.mlir:[[#@LINE+17]]:{{[0-9]+}}: note: meanwhile thread 16 waits at a barrier
// HALF-NOT: {{.}}
func.func @half_a_warp() {
  %y = call @array() : () -> memref<40xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c16 = arith.constant 16 : index
    %i = arith.index_cast %t : index to i32
    %o = arith.constant 1 : i32
    %w = arith.constant 32 : i32
    %low = arith.cmpi ult, %t, %c16 : index
    scf.if %low {
      %v, %valid = gpu.shuffle xor %i, %o, %w : i32
      memref.store %v, %y[%t] : memref<40xi32>
    }
    gpu.barrier
    gpu.terminator
  }
  return
}

// WHOLE: [1, 0, 3, 2,
func.func @whole_warps() {
  %y = call @array() : () -> memref<40xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c16 = arith.constant 16 : index
    %i = arith.index_cast %t : index to i32
    %o = arith.constant 1 : i32
    %w = arith.constant 32 : i32
    %low = arith.cmpi ult, %t, %n : index
    scf.if %low {
      %v, %valid = gpu.shuffle xor %i, %o, %w : i32
      memref.store %v, %y[%t] : memref<40xi32>
    }
    gpu.barrier
    gpu.terminator
  }
  call @print(%y) : (memref<40xi32>) -> ()
  return
}
