// A kernel that stops itself, and divisions that have no result.
// RUN: %to_gpu %s -o %t
// RUN: not %run_emulated -e by_zero %t 2>&1 | FileCheck %s --check-prefix=DIVISION
// RUN: %run_emulated -e by_one %t | FileCheck %s --check-prefix=QUOTIENT
// RUN: not %run_emulated -e fails_assertion %t 2>&1 | FileCheck %s --check-prefix=ASSERT
// RUN: %run_emulated -e holds %t | FileCheck %s --check-prefix=QUOTIENT
// RUN: not %run_emulated -e traps %t 2>&1 | FileCheck %s --check-prefix=TRAP

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

// DIVISION: stops.mlir:[[#@LINE+11]]:{{[0-9]+}}: error: integer division by zero, or of the least number by -1
// DIVISION-NEXT: thread (3, 0, 0)
func.func @by_zero() {
  %y = call @array() : () -> memref<32xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %i = arith.index_cast %t : index to i32
    %c = arith.constant -3 : i32
    %d = arith.addi %i, %c : i32
    %v = arith.divsi %i, %d : i32
    memref.store %v, %y[%t] : memref<32xi32>
    gpu.terminator
  }
  return
}

// QUOTIENT: [0, 0, 0,
func.func @by_one() {
  %y = call @array() : () -> memref<32xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %i = arith.index_cast %t : index to i32
    %c = arith.constant 1 : i32
    %d = arith.addi %i, %c : i32
    %v = arith.divsi %i, %d : i32
    memref.store %v, %y[%t] : memref<32xi32>
    gpu.terminator
  }
  call @print(%y) : (memref<32xi32>) -> ()
  return
}

// ASSERT: error: assertion failed: thread too far
// ASSERT-NEXT: thread (30, 0, 0)
func.func @fails_assertion() {
  %y = call @array() : () -> memref<32xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c = arith.constant 30 : index
    %fine = arith.cmpi ult, %t, %c : index
    cf.assert %fine, "thread too far"
    %i = arith.constant 0 : i32
    memref.store %i, %y[%t] : memref<32xi32>
    gpu.terminator
  }
  return
}

func.func @holds() {
  %y = call @array() : () -> memref<32xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c = arith.constant 32 : index
    %fine = arith.cmpi ult, %t, %c : index
    cf.assert %fine, "thread too far"
    %i = arith.constant 0 : i32
    memref.store %i, %y[%t] : memref<32xi32>
    gpu.terminator
  }
  call @print(%y) : (memref<32xi32>) -> ()
  return
}

// TRAP: error: the kernel stopped itself (trap)
func.func @traps() {
  %y = call @array() : () -> memref<32xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c30 = arith.constant 30 : index
    %far = arith.cmpi uge, %t, %c30 : index
    scf.if %far {
      llvm.intr.trap
    }
    gpu.terminator
  }
  return
}
