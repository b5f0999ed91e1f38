// Accesses outside every array, or past the end of one.
// RUN: %to_gpu %s -o %t
// RUN: not %run_emulated -e write_past_end %t 2>&1 | FileCheck %s --check-prefix=PAST
// RUN: not %run_emulated -e read_before_start %t 2>&1 | FileCheck %s --check-prefix=BEFORE
// RUN: not %run_emulated -e unregistered %t 2>&1 | FileCheck %s --check-prefix=NOWHERE
// RUN: not %run_emulated -e freed %t 2>&1 | FileCheck %s --check-prefix=FREED
// RUN: not %run_emulated -e shared_past_end %t 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: not %run_emulated -e shared_neighbour %t 2>&1 | FileCheck %s --check-prefix=NEIGHBOUR
// RUN: not %run_emulated -e dynamic_past_end %t 2>&1 | FileCheck %s --check-prefix=DYNAMIC
// RUN: not %run_emulated -e copy_past_end %t 2>&1 | FileCheck %s --check-prefix=COPY
// RUN: %run_emulated -e inside %t | FileCheck %s --check-prefix=INSIDE

func.func private @printMemrefF32(memref<*xf32>)

// Two blocks of 32 threads on 60 elements: the last four are too many.
// PAST: bounds.mlir:[[#@LINE+13]]:{{[0-9]+}}: error: out of bounds: thread 28 writes 4 bytes at offset 240 of argument 0, which has 240 bytes
// PAST-NEXT: norm-emu: note: in kernel 'write_past_end_kernel', block (1, 0, 0), thread (28, 0, 0)
func.func @write_past_end() {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %f = arith.constant 1.0 : f32
  %t0 = gpu.wait async
  %y, %t1 = gpu.alloc async [%t0] () : memref<60xf32>
  gpu.wait [%t1]
  gpu.launch blocks(%b, %by, %bz) in (%g = %c2, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c32, %ny = %c1, %nz = %c1) {
    %o = arith.muli %b, %c32 : index
    %i = arith.addi %o, %t : index
    memref.store %f, %y[%i] : memref<60xf32>
    gpu.terminator
  }
  return
}

// BEFORE: error: out of bounds: thread 0 reads 4 bytes at offset -4 of argument {{[0-9]+}}, which has 128 bytes
func.func @read_before_start() {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %t0 = gpu.wait async
  %x, %t1 = gpu.alloc async [%t0] () : memref<32xf32>
  %y, %t2 = gpu.alloc async [%t1] () : memref<32xf32>
  gpu.wait [%t2]
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c32, %ny = %c1, %nz = %c1) {
    %i = arith.subi %t, %c1 : index
    %v = memref.load %x[%i] : memref<32xf32>
    memref.store %v, %y[%t] : memref<32xf32>
    gpu.terminator
  }
  return
}

// Memory of the host that the program did not register.
// NOWHERE: error: out of bounds: thread 0 writes 4 bytes at an address that is in no array
func.func @unregistered() {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %f = arith.constant 1.0 : f32
  %y = memref.alloc() : memref<32xf32>
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c32, %ny = %c1, %nz = %c1) {
    memref.store %f, %y[%t] : memref<32xf32>
    gpu.terminator
  }
  return
}

// FREED: error: out of bounds: thread 0 writes 4 bytes at an address that is in no array
func.func @freed() {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %f = arith.constant 1.0 : f32
  %t0 = gpu.wait async
  %y, %t1 = gpu.alloc async [%t0] () : memref<32xf32>
  %t2 = gpu.dealloc async [%t1] %y : memref<32xf32>
  gpu.wait [%t2]
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c32, %ny = %c1, %nz = %c1) {
    memref.store %f, %y[%t] : memref<32xf32>
    gpu.terminator
  }
  return
}

// SHARED: error: out of bounds: thread 24 writes 4 bytes at offset 96 of shared variable '{{.*}}', which has 96 bytes
func.func @shared_past_end() {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %f = arith.constant 1.0 : f32
  %t0 = gpu.wait async
  %y, %t1 = gpu.alloc async [%t0] () : memref<32xf32>
  gpu.wait [%t1]
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c32, %ny = %c1, %nz = %c1)
      workgroup(%s : memref<24xf32, #gpu.address_space<workgroup>>) {
    memref.store %f, %s[%t] : memref<24xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %v = memref.load %s[%b] : memref<24xf32, #gpu.address_space<workgroup>>
    memref.store %v, %y[%t] : memref<32xf32>
    gpu.terminator
  }
  return
}

// Between two variables lie bytes that belong to neither.
// NEIGHBOUR: error: out of bounds: thread 8 writes 4 bytes at offset 32 of shared variable '{{.*}}', which has 32 bytes
func.func @shared_neighbour() {
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %f = arith.constant 1.0 : f32
  %t0 = gpu.wait async
  %y, %t1 = gpu.alloc async [%t0] () : memref<32xf32>
  gpu.wait [%t1]
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c9, %ny = %c1, %nz = %c1)
      workgroup(%s : memref<8xf32, #gpu.address_space<workgroup>>, %r : memref<16xf32, #gpu.address_space<workgroup>>) {
    memref.store %f, %r[%t] : memref<16xf32, #gpu.address_space<workgroup>>
    memref.store %f, %s[%t] : memref<8xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %v = memref.load %s[%b] : memref<8xf32, #gpu.address_space<workgroup>>
    %w = memref.load %r[%b] : memref<16xf32, #gpu.address_space<workgroup>>
    %u = arith.addf %v, %w : f32
    memref.store %u, %y[%t] : memref<32xf32>
    gpu.terminator
  }
  return
}

// DYNAMIC: error: out of bounds: thread 16 writes 4 bytes at offset 64 of dynamic shared memory, which has 64 bytes
func.func @dynamic_past_end() {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %bytes = arith.constant 64 : i32
  %f = arith.constant 1.0 : f32
  %t0 = gpu.wait async
  %y, %t1 = gpu.alloc async [%t0] () : memref<32xf32>
  gpu.wait [%t1]
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c32, %ny = %c1, %nz = %c1)
      dynamic_shared_memory_size %bytes {
    %c0 = arith.constant 0 : index
    %d = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %s = memref.view %d[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<32xf32, #gpu.address_space<workgroup>>
    memref.store %f, %s[%t] : memref<32xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %v = memref.load %s[%b] : memref<32xf32, #gpu.address_space<workgroup>>
    memref.store %v, %y[%t] : memref<32xf32>
    gpu.terminator
  }
  return
}

// COPY: norm-emu: error: out of bounds: copy of 256 bytes at offset 0 of an array of 128 bytes
func.func @copy_past_end() {
  %h = memref.alloc() : memref<64xf32>
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %t0 = gpu.wait async
  %y, %t1 = gpu.alloc async [%t0] () : memref<32xf32>
  %d = memref.reinterpret_cast %y to offset: [0], sizes: [64], strides: [1] : memref<32xf32> to memref<64xf32>
  %t2 = gpu.memcpy async [%t1] %d, %h : memref<64xf32>, memref<64xf32>
  gpu.wait [%t2]
  return
}

// INSIDE: [3, 3, 3, 3]
func.func @inside() {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %bytes = arith.constant 16 : i32
  %f = arith.constant 1.0 : f32
  %h = memref.alloc() : memref<4xf32>
  %t0 = gpu.wait async
  %y, %t1 = gpu.alloc async [%t0] () : memref<4xf32>
  gpu.wait [%t1]
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c4, %ny = %c1, %nz = %c1)
      dynamic_shared_memory_size %bytes
      workgroup(%s : memref<4xf32, #gpu.address_space<workgroup>>, %r : memref<4xf32, #gpu.address_space<workgroup>>) {
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %d = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %q = memref.view %d[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<4xf32, #gpu.address_space<workgroup>>
    memref.store %f, %q[%t] : memref<4xf32, #gpu.address_space<workgroup>>
    memref.store %f, %r[%t] : memref<4xf32, #gpu.address_space<workgroup>>
    memref.store %f, %s[%t] : memref<4xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %i = arith.subi %c3, %t : index
    %v = memref.load %s[%i] : memref<4xf32, #gpu.address_space<workgroup>>
    %w = memref.load %r[%i] : memref<4xf32, #gpu.address_space<workgroup>>
    %z = memref.load %q[%i] : memref<4xf32, #gpu.address_space<workgroup>>
    %u = arith.addf %v, %w : f32
    %x = arith.addf %u, %z : f32
    memref.store %x, %y[%t] : memref<4xf32>
    gpu.terminator
  }
  %t2 = gpu.wait async
  %t3 = gpu.memcpy async [%t2] %h, %y : memref<4xf32>, memref<4xf32>
  gpu.wait [%t3]
  %u = memref.cast %h : memref<4xf32> to memref<*xf32>
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
