// What a launch may ask for.
// RUN: %to_gpu %s -o %t
// RUN: %run_emulated -e no_blocks %t | FileCheck %s --check-prefix=NOBLOCKS
// RUN: not %run_emulated -e too_many_threads %t 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not %run_emulated -e no_threads %t 2>&1 | FileCheck %s --check-prefix=NOTHREADS
// RUN: not %run_emulated -e too_much_shared %t 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: %run_emulated -e much_shared %t | FileCheck %s --check-prefix=MUCH
// RUN: %run_emulated -e odd_block %t | FileCheck %s --check-prefix=ODD
// RUN: env NORM_EMU_SEED=11 %run_emulated -e odd_block %t | FileCheck %s --check-prefix=ODD

func.func private @printMemrefI32(memref<*xi32>)
memref.global "private" @out : memref<70xi32> = dense<7>
func.func private @array() -> memref<70xi32> {
  %y = memref.get_global @out : memref<70xi32>
  %u = memref.cast %y : memref<70xi32> to memref<*xi32>
  gpu.host_register %u : memref<*xi32>
  return %y : memref<70xi32>
}
func.func private @print(%y: memref<70xi32>) {
  %u = memref.cast %y : memref<70xi32> to memref<*xi32>
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}

func.func private @launch(%y: memref<70xi32>, %blocks: index, %threads: index, %bytes: i32) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1)
      dynamic_shared_memory_size %bytes {
    %c0 = arith.constant 0 : index
    %d = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %s = memref.view %d[%c0][%n] : memref<?xi8, #gpu.address_space<workgroup>> to memref<?xi32, #gpu.address_space<workgroup>>
    %i = arith.index_cast %t : index to i32
    memref.store %i, %s[%t] : memref<?xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %last = arith.subi %n, %t : index
    %one = arith.constant 1 : index
    %r = arith.subi %last, %one : index
    %v = memref.load %s[%r] : memref<?xi32, #gpu.address_space<workgroup>>
    memref.store %v, %y[%t] : memref<70xi32>
    gpu.terminator
  }
  return
}

// NOBLOCKS: [7, 7, 7,
func.func @no_blocks() {
  %y = call @array() : () -> memref<70xi32>
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %bytes = arith.constant 256 : i32
  call @launch(%y, %c0, %c64, %bytes) : (memref<70xi32>, index, index, i32) -> ()
  call @print(%y) : (memref<70xi32>) -> ()
  return
}
// THREADS: norm-emu: error: cannot launch kernel 'launch_kernel' with blocks of (1025, 1, 1) threads: expected at most (1024, 1024, 64)
func.func @too_many_threads() {
  %y = call @array() : () -> memref<70xi32>
  %c1 = arith.constant 1 : index
  %n = arith.constant 1025 : index
  %bytes = arith.constant 8192 : i32
  call @launch(%y, %c1, %n, %bytes) : (memref<70xi32>, index, index, i32) -> ()
  return
}
// NOTHREADS: norm-emu: error: cannot launch kernel 'launch_kernel' with blocks of (0, 1, 1) threads: expected at least one thread
func.func @no_threads() {
  %y = call @array() : () -> memref<70xi32>
  %c1 = arith.constant 1 : index
  %n = arith.constant 0 : index
  %bytes = arith.constant 8192 : i32
  call @launch(%y, %c1, %n, %bytes) : (memref<70xi32>, index, index, i32) -> ()
  return
}
// SHARED: norm-emu: error: cannot launch kernel 'launch_kernel' with 0 bytes of static and 232449 bytes of dynamic shared memory: expected at most 232448 in all
func.func @too_much_shared() {
  %y = call @array() : () -> memref<70xi32>
  %c1 = arith.constant 1 : index
  %n = arith.constant 64 : index
  %bytes = arith.constant 232449 : i32
  call @launch(%y, %c1, %n, %bytes) : (memref<70xi32>, index, index, i32) -> ()
  return
}
// MUCH: [63, 62, 61,
func.func @much_shared() {
  %y = call @array() : () -> memref<70xi32>
  %c1 = arith.constant 1 : index
  %n = arith.constant 64 : index
  %bytes = arith.constant 232448 : i32
  call @launch(%y, %c1, %n, %bytes) : (memref<70xi32>, index, index, i32) -> ()
  call @print(%y) : (memref<70xi32>) -> ()
  return
}
// Two warps and six lanes of a third.
// ODD: [69, 68, 67,{{.*}} 0]
func.func @odd_block() {
  %y = call @array() : () -> memref<70xi32>
  %c1 = arith.constant 1 : index
  %n = arith.constant 70 : index
  %bytes = arith.constant 280 : i32
  call @launch(%y, %c1, %n, %bytes) : (memref<70xi32>, index, index, i32) -> ()
  call @print(%y) : (memref<70xi32>) -> ()
  return
}
