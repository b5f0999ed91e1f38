// Vectors at addresses that are no multiple of what the access promises.
// RUN: %to_gpu %s -o %t
// RUN: not %run_emulated -e misaligned %t 2>&1 | FileCheck %s --check-prefix=GLOBAL
// RUN: not %run_emulated -e misaligned_shared %t 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: %run_emulated -e aligned %t | FileCheck %s --check-prefix=ALIGNED
// RUN: %run_emulated -e elements %t | FileCheck %s --check-prefix=ELEMENTS

func.func private @printMemrefF32(memref<*xf32>)
memref.global "private" @out : memref<132xf32> = dense<0.0>
func.func private @array() -> memref<132xf32> {
  %y = memref.get_global @out : memref<132xf32>
  %u = memref.cast %y : memref<132xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  return %y : memref<132xf32>
}
func.func private @print(%y: memref<132xf32>) {
  %u = memref.cast %y : memref<132xf32> to memref<*xf32>
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}

// GLOBAL: alignment.mlir:[[#@LINE+15]]:{{[0-9]+}}: error: misaligned: thread 0 writes 16 bytes at an address that is not a multiple of 16
func.func @misaligned() {
  %y = call @array() : () -> memref<132xf32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  %t0 = gpu.wait async
  %z, %t1 = gpu.alloc async [%t0] () : memref<132xf32>
  gpu.wait [%t1]
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c4 = arith.constant 4 : index
    %off = arith.constant 1 : index
    %f = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : vector<4xf32>
    %o = arith.muli %t, %c4 : index
    %k = arith.addi %o, %off : index
    vector.store %f, %z[%k] {alignment = 16} : memref<132xf32>, vector<4xf32>
    gpu.terminator
  }
  return
}

// The variable promises no more than the alignment of its elements.
// SHARED: error: misaligned: thread 0 {{reads|writes}} 16 bytes at an address that is not a multiple of 16, at offset {{[0-9]+}} of dynamic shared memory
func.func @misaligned_shared() {
  %y = call @array() : () -> memref<132xf32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 8 : index
  %blocks = arith.constant 1 : index
  %bytes = arith.constant 136 : i32
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1)
      dynamic_shared_memory_size %bytes {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %d = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %s = memref.view %d[%c8][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<32xf32, #gpu.address_space<workgroup>>
    %f = arith.constant dense<1.0> : vector<4xf32>
    %k = arith.muli %t, %c4 : index
    vector.store %f, %s[%k] {alignment = 16} : memref<32xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    gpu.barrier
    %v = memref.load %s[%k] : memref<32xf32, #gpu.address_space<workgroup>>
    memref.store %v, %y[%t] : memref<132xf32>
    gpu.terminator
  }
  return
}

// ALIGNED: {{.*}}1, 2, 3, 4, 1,
func.func @aligned() {
  %y = call @array() : () -> memref<132xf32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  %t0 = gpu.wait async
  %z, %t1 = gpu.alloc async [%t0] () : memref<132xf32>
  gpu.wait [%t1]
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c4 = arith.constant 4 : index
    %off = arith.constant 4 : index
    %f = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : vector<4xf32>
    %o = arith.muli %t, %c4 : index
    %k = arith.addi %o, %off : index
    vector.store %f, %z[%k] {alignment = 16} : memref<132xf32>, vector<4xf32>
    gpu.terminator
  }
  %t2 = gpu.wait async
  %t3 = gpu.memcpy async [%t2] %y, %z : memref<132xf32>, memref<132xf32>
  gpu.wait [%t3]
  call @print(%y) : (memref<132xf32>) -> ()
  return
}

// Without a promise the vector is accessed by elements, as PTX does.
// ELEMENTS: [{{-?}}nan,  1,  2,  3,  4,  1,
func.func @elements() {
  %y = call @array() : () -> memref<132xf32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %blocks = arith.constant 1 : index
  %t0 = gpu.wait async
  %z, %t1 = gpu.alloc async [%t0] () : memref<132xf32>
  gpu.wait [%t1]
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1) {
    %c4 = arith.constant 4 : index
    %off = arith.constant 1 : index
    %f = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : vector<4xf32>
    %o = arith.muli %t, %c4 : index
    %k = arith.addi %o, %off : index
    vector.store %f, %z[%k] : memref<132xf32>, vector<4xf32>
    gpu.terminator
  }
  %t2 = gpu.wait async
  %t3 = gpu.memcpy async [%t2] %y, %z : memref<132xf32>, memref<132xf32>
  gpu.wait [%t3]
  call @print(%y) : (memref<132xf32>) -> ()
  return
}
