// Shared memory that no thread of the block has written holds no value, not
// even if a block before this one left one there.
// RUN: %to_gpu %s -o %t
// RUN: not %run_emulated -e unwritten %t 2>&1 | FileCheck %s --check-prefix=UNWRITTEN
// RUN: not %run_emulated -e second_block %t 2>&1 | FileCheck %s --check-prefix=SECOND
// RUN: %run_emulated -e written %t | FileCheck %s --check-prefix=WRITTEN

// Unchecked it is full of ones: a NaN in every float type.
// RUN: env NORM_EMU_CHECK=-uninitialized %run_emulated -e unwritten %t | FileCheck %s --check-prefix=ONES

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

// UNWRITTEN: uninitialized.mlir:[[#@LINE+16]]:{{[0-9]+}}: error: uninitialized shared memory: thread 0 reads 4 bytes of shared memory that no thread of the block has written, at offset 0 of shared variable
// ONES: [-1, 1, 2, 3,
func.func @unwritten() {
  %y = call @array() : () -> memref<40xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 40 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1)
      workgroup(%s : memref<40xi32, #gpu.address_space<workgroup>>) {
    %i = arith.index_cast %t : index to i32
    %c1i = arith.constant 1 : index
    %first = arith.cmpi uge, %t, %c1i : index
    scf.if %first {
      memref.store %i, %s[%t] : memref<40xi32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %v = memref.load %s[%t] : memref<40xi32, #gpu.address_space<workgroup>>
    memref.store %v, %y[%t] : memref<40xi32>
    gpu.terminator
  }
  call @print(%y) : (memref<40xi32>) -> ()
  return
}

// SECOND: error: uninitialized shared memory
// SECOND-NEXT: block (1, 0, 0), thread (0, 0, 0)
func.func @second_block() {
  %y = call @array() : () -> memref<40xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 40 : index
  %blocks = arith.constant 2 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1)
      workgroup(%s : memref<40xi32, #gpu.address_space<workgroup>>) {
    %i = arith.index_cast %t : index to i32
    %c1i = arith.constant 1 : index
    %first = arith.cmpi uge, %t, %b : index
    scf.if %first {
      memref.store %i, %s[%t] : memref<40xi32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %v = memref.load %s[%t] : memref<40xi32, #gpu.address_space<workgroup>>
    %zero = arith.cmpi eq, %b, %c1i : index
    scf.if %zero {
      memref.store %v, %y[%t] : memref<40xi32>
    }
    gpu.terminator
  }
  return
}

// WRITTEN: [0, 1, 2, 3,
func.func @written() {
  %y = call @array() : () -> memref<40xi32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 40 : index
  %blocks = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1)
      workgroup(%s : memref<40xi32, #gpu.address_space<workgroup>>) {
    %i = arith.index_cast %t : index to i32
    %c1i = arith.constant 1 : index
    %first = arith.cmpi uge, %t, %b : index
    scf.if %first {
      memref.store %i, %s[%t] : memref<40xi32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %v = memref.load %s[%t] : memref<40xi32, #gpu.address_space<workgroup>>
    memref.store %v, %y[%t] : memref<40xi32>
    gpu.terminator
  }
  call @print(%y) : (memref<40xi32>) -> ()
  return
}
