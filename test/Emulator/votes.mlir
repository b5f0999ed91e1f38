// Votes and reductions of a warp.
// RUN: %to_gpu %s -o %t
// RUN: %run_emulated -e ballot %t | FileCheck %s --check-prefix=BALLOT
// RUN: %run_emulated -e any %t | FileCheck %s --check-prefix=ANY
// RUN: %run_emulated -e sum %t | FileCheck %s --check-prefix=SUM
// RUN: %run_emulated -e largest %t | FileCheck %s --check-prefix=MAX
// RUN: not %run_emulated -e one_lane_missing %t 2>&1 | FileCheck %s --check-prefix=MISSING

func.func private @printMemrefI32(memref<*xi32>)
memref.global "private" @out : memref<32xi32> = dense<0>
func.func private @array() -> memref<32xi32> {
  %y = memref.get_global @out : memref<32xi32>
  %u = memref.cast %y : memref<32xi32> to memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  return %y : memref<32xi32>
}
func.func private @print(%y: memref<32xi32>) {
  %u = memref.cast %y : memref<32xi32> to memref<*xi32>
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}

// BALLOT: [31, 31,
func.func @ballot() {
  %y = call @array() : () -> memref<32xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c5 = arith.constant 5 : index
    %all = arith.constant -1 : i32
    %few = arith.cmpi ult, %t, %c5 : index
    %v = nvvm.vote.sync ballot %all, %few -> i32
    memref.store %v, %y[%t] : memref<32xi32>
    gpu.terminator
  }
  call @print(%y) : (memref<32xi32>) -> ()
  return
}

// ANY: [1, 1,
func.func @any() {
  %y = call @array() : () -> memref<32xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c5 = arith.constant 5 : index
    %all = arith.constant -1 : i32
    %few = arith.cmpi ult, %t, %c5 : index
    %v = nvvm.vote.sync any %all, %few -> i1
    %w = arith.extui %v : i1 to i32
    memref.store %w, %y[%t] : memref<32xi32>
    gpu.terminator
  }
  call @print(%y) : (memref<32xi32>) -> ()
  return
}

// SUM: [496, 496,
func.func @sum() {
  %y = call @array() : () -> memref<32xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %i = arith.index_cast %t : index to i32
    %all = arith.constant -1 : i32
    %v = nvvm.redux.sync add %i, %all : i32 -> i32
    memref.store %v, %y[%t] : memref<32xi32>
    gpu.terminator
  }
  call @print(%y) : (memref<32xi32>) -> ()
  return
}

// MAX: [31, 31,
func.func @largest() {
  %y = call @array() : () -> memref<32xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %i = arith.index_cast %t : index to i32
    %all = arith.constant -1 : i32
    %v = nvvm.redux.sync max %i, %all : i32 -> i32
    memref.store %v, %y[%t] : memref<32xi32>
    gpu.terminator
  }
  call @print(%y) : (memref<32xi32>) -> ()
  return
}

// MISSING: error: deadlock: thread 0 waits forever at a barrier
// MISSING: note: meanwhile thread {{[0-9]+}} waits at an exchange between lanes
func.func @one_lane_missing() {
  %y = call @array() : () -> memref<32xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c0 = arith.constant 0 : index
    %rest = arith.cmpi ne, %t, %c0 : index
    scf.if %rest {
      %i = arith.index_cast %t : index to i32
      %all = arith.constant -1 : i32
      %v = nvvm.redux.sync add %i, %all : i32 -> i32
      memref.store %v, %y[%t] : memref<32xi32>
    }
    gpu.barrier
    gpu.terminator
  }
  return
}
