// Shuffles: what lanes get, and what they may not ask for.
// RUN: %to_gpu %s -o %t
// RUN: %run_emulated -e exclusive_or %t | FileCheck %s --check-prefix=XOR
// RUN: %run_emulated -e up %t | FileCheck %s --check-prefix=UP
// RUN: %run_emulated -e down %t | FileCheck %s --check-prefix=DOWN
// RUN: %run_emulated -e index %t | FileCheck %s --check-prefix=INDEX
// RUN: %run_emulated -e groups %t | FileCheck %s --check-prefix=GROUPS
// RUN: %run_emulated -e without_returned %t | FileCheck %s --check-prefix=LEFT
// RUN: env NORM_EMU_SEED=5 %run_emulated -e exclusive_or %t | FileCheck %s --check-prefix=XOR
// RUN: not %run_emulated -e not_in_mask %t 2>&1 | FileCheck %s --check-prefix=NOTIN
// RUN: not %run_emulated -e narrow %t 2>&1 | FileCheck %s --check-prefix=NARROW
// RUN: not %run_emulated -e outside_mask %t 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// RUN: not %run_emulated -e returned %t 2>&1 | FileCheck %s --check-prefix=RETURNED
// RUN: not %run_emulated -e no_such_lane %t 2>&1 | FileCheck %s --check-prefix=NOLANE
// RUN: not %run_emulated -e different_masks %t 2>&1 | FileCheck %s --check-prefix=MASKS

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

// XOR: [3, 2, 1, 0, 7, 6,
func.func @exclusive_or() {
  %y = call @array() : () -> memref<40xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %i = arith.index_cast %t : index to i32
    %o = arith.constant 3 : i32
    %w = arith.constant 32 : i32
    %v, %valid = gpu.shuffle xor %i, %o, %w : i32
    memref.store %v, %y[%t] : memref<40xi32>
    gpu.terminator
  }
  call @print(%y) : (memref<40xi32>) -> ()
  return
}

// Out of range a lane keeps its own value.
// UP: [0, 1, 0, 1, 2, 3,
func.func @up() {
  %y = call @array() : () -> memref<40xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %i = arith.index_cast %t : index to i32
    %o = arith.constant 2 : i32
    %w = arith.constant 32 : i32
    %v, %valid = gpu.shuffle up %i, %o, %w : i32
    memref.store %v, %y[%t] : memref<40xi32>
    gpu.terminator
  }
  call @print(%y) : (memref<40xi32>) -> ()
  return
}

// DOWN: 30, 31, 30, 31, 0, 0,{{.*}}]
func.func @down() {
  %y = call @array() : () -> memref<40xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %i = arith.index_cast %t : index to i32
    %o = arith.constant 2 : i32
    %w = arith.constant 32 : i32
    %v, %valid = gpu.shuffle down %i, %o, %w : i32
    memref.store %v, %y[%t] : memref<40xi32>
    gpu.terminator
  }
  call @print(%y) : (memref<40xi32>) -> ()
  return
}

// INDEX: [5, 5, 5, 5,{{.*}} 5, 0, 0,
func.func @index() {
  %y = call @array() : () -> memref<40xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %i = arith.index_cast %t : index to i32
    %o = arith.constant 5 : i32
    %w = arith.constant 32 : i32
    %v, %valid = gpu.shuffle idx %i, %o, %w : i32
    memref.store %v, %y[%t] : memref<40xi32>
    gpu.terminator
  }
  call @print(%y) : (memref<40xi32>) -> ()
  return
}

// Within groups of eight lanes.
// GROUPS: [1, 2, 3, 4, 5, 6, 7, 7, 9, 10,
func.func @groups() {
  %y = call @array() : () -> memref<40xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %i = arith.index_cast %t : index to i32
    %all = arith.constant -1 : i32
    %o = arith.constant 1 : i32
    %segments = arith.constant 6175 : i32
    %v = nvvm.shfl.sync down %all, %i, %o, %segments : i32 -> i32
    memref.store %v, %y[%t] : memref<40xi32>
    gpu.terminator
  }
  call @print(%y) : (memref<40xi32>) -> ()
  return
}

// A gpu.shuffle of width 8 names lanes 0 to 7 in its mask, upstream says, also
// where other lanes run it.
// NARROW: error: bad exchange: lane 8 takes part in an exchange whose mask does not name it
func.func @narrow() {
  %y = call @array() : () -> memref<40xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %i = arith.index_cast %t : index to i32
    %o = arith.constant 1 : i32
    %w = arith.constant 8 : i32
    %v, %valid = gpu.shuffle down %i, %o, %w : i32
    memref.store %v, %y[%t] : memref<40xi32>
    gpu.terminator
  }
  return
}

// Lanes that have returned are not waited for.
// LEFT: [1, 0, 3, 2,{{.*}} 15, 14, 0, 0,
func.func @without_returned() {
  %y = call @array() : () -> memref<40xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c16 = arith.constant 16 : index
    %low = arith.cmpi ult, %t, %c16 : index
    scf.if %low {
      %i = arith.index_cast %t : index to i32
      %o = arith.constant 1 : i32
      %w = arith.constant 32 : i32
      %v, %valid = gpu.shuffle xor %i, %o, %w : i32
      memref.store %v, %y[%t] : memref<40xi32>
    }
    gpu.terminator
  }
  call @print(%y) : (memref<40xi32>) -> ()
  return
}

// NOTIN: shuffles.mlir:[[#@LINE+12]]:{{[0-9]+}}: error: bad exchange: lane 8 takes part in an exchange whose mask does not name it
// NOTIN-NEXT: note: in kernel 'not_in_mask_kernel', block (0, 0, 0), thread (8, 0, 0)
func.func @not_in_mask() {
  %y = call @array() : () -> memref<40xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %i = arith.index_cast %t : index to i32
    %mask = arith.constant 255 : i32
    %o = arith.constant 1 : i32
    %clamp = arith.constant 31 : i32
    %v = nvvm.shfl.sync bfly %mask, %i, %o, %clamp : i32 -> i32
    memref.store %v, %y[%t] : memref<40xi32>
    gpu.terminator
  }
  return
}

// OUTSIDE: error: bad shuffle: lane 0 reads lane 8, which its mask does not name
func.func @outside_mask() {
  %y = call @array() : () -> memref<40xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c8 = arith.constant 8 : index
    %few = arith.cmpi ult, %t, %c8 : index
    scf.if %few {
      %i = arith.index_cast %t : index to i32
      %mask = arith.constant 255 : i32
      %o = arith.constant 8 : i32
      %clamp = arith.constant 31 : i32
      %v = nvvm.shfl.sync bfly %mask, %i, %o, %clamp : i32 -> i32
      memref.store %v, %y[%t] : memref<40xi32>
    }
    gpu.terminator
  }
  return
}

// RETURNED: error: bad shuffle: lane 0 reads lane 16, which has returned
func.func @returned() {
  %y = call @array() : () -> memref<40xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c16 = arith.constant 16 : index
    %low = arith.cmpi ult, %t, %c16 : index
    scf.if %low {
      %i = arith.index_cast %t : index to i32
      %o = arith.constant 16 : i32
      %w = arith.constant 32 : i32
      %v, %valid = gpu.shuffle xor %i, %o, %w : i32
      memref.store %v, %y[%t] : memref<40xi32>
    }
    gpu.terminator
  }
  return
}

// The last warp of 40 threads has eight lanes.
// NOLANE: error: bad shuffle: lane 0 reads lane 16, which the block does not have
// NOLANE-NEXT: thread (32, 0, 0)
func.func @no_such_lane() {
  %y = call @array() : () -> memref<40xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 40 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %i = arith.index_cast %t : index to i32
    %mask = arith.constant -1 : i32
    %o = arith.constant 16 : i32
    %clamp = arith.constant 31 : i32
    %v = nvvm.shfl.sync bfly %mask, %i, %o, %clamp : i32 -> i32
    memref.store %v, %y[%t] : memref<40xi32>
    gpu.terminator
  }
  return
}

// MASKS: error: bad exchange: lanes 0 and {{[0-9]+}} of a warp meet at different exchanges, or with different masks
func.func @different_masks() {
  %y = call @array() : () -> memref<40xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c16 = arith.constant 16 : index
    %low = arith.cmpi ult, %t, %c16 : index
    %i = arith.index_cast %t : index to i32
    %all = arith.constant -1 : i32
    %high = arith.constant -65536 : i32
    %mask = arith.select %low, %all, %high : i32
    %o = arith.constant 1 : i32
    %clamp = arith.constant 31 : i32
    %v = nvvm.shfl.sync bfly %mask, %i, %o, %clamp : i32 -> i32
    memref.store %v, %y[%t] : memref<40xi32>
    gpu.terminator
  }
  return
}
