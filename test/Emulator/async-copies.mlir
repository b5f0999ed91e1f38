// Asynchronous copies to shared memory land when they are waited for.
// RUN: %to_gpu %s -o %t
// RUN: %run_emulated -e waited %t | FileCheck %s --check-prefix=WAITED
// RUN: not %run_emulated -e not_waited %t 2>&1 | FileCheck %s --check-prefix=NOTWAITED

func.func private @printMemrefF32(memref<*xf32>)
memref.global "private" @out : memref<64xf32> = dense<0.0>
func.func private @array() -> memref<64xf32> {
  %y = memref.get_global @out : memref<64xf32>
  %u = memref.cast %y : memref<64xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  return %y : memref<64xf32>
}
func.func private @print(%y: memref<64xf32>) {
  %u = memref.cast %y : memref<64xf32> to memref<*xf32>
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}

// WAITED: [3,  0,  0,  0,  3,
func.func @waited() {
  %y = call @array() : () -> memref<64xf32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 16 : index
  %blocks = arith.constant 1 : index
  %h = memref.alloc() : memref<64xf32>
  %f = arith.constant 3.0 : f32
  linalg.fill ins(%f : f32) outs(%h : memref<64xf32>)
  %t0 = gpu.wait async
  %x, %t1 = gpu.alloc async [%t0] () : memref<64xf32>
  %t2 = gpu.memcpy async [%t1] %x, %h : memref<64xf32>, memref<64xf32>
  gpu.wait [%t2]
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1)
      workgroup(%s : memref<64xf32, #gpu.address_space<workgroup>>) {
    %c16 = arith.constant 16 : index
    %c63 = arith.constant 63 : index
    %c4 = arith.constant 4 : index
    %k = arith.muli %t, %c4 : index
    %copy = nvgpu.device_async_copy %x[%k], %s[%k], 4 {bypassL1} : memref<64xf32> to memref<64xf32, #gpu.address_space<workgroup>>
    %group = nvgpu.device_async_create_group %copy
    nvgpu.device_async_wait %group
    gpu.barrier
    %i = arith.subi %c63, %k : index
    %v = memref.load %s[%i] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %v, %y[%k] : memref<64xf32>
    gpu.terminator
  }
  call @print(%y) : (memref<64xf32>) -> ()
  return
}

// NOTWAITED: error: uninitialized shared memory: thread {{[0-9]+}} reads
func.func @not_waited() {
  %y = call @array() : () -> memref<64xf32>
  %c1 = arith.constant 1 : index
  %threads = arith.constant 16 : index
  %blocks = arith.constant 1 : index
  %h = memref.alloc() : memref<64xf32>
  %f = arith.constant 3.0 : f32
  linalg.fill ins(%f : f32) outs(%h : memref<64xf32>)
  %t0 = gpu.wait async
  %x, %t1 = gpu.alloc async [%t0] () : memref<64xf32>
  %t2 = gpu.memcpy async [%t1] %x, %h : memref<64xf32>, memref<64xf32>
  gpu.wait [%t2]
  gpu.launch blocks(%b, %by, %bz) in (%g = %blocks, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1)
      workgroup(%s : memref<64xf32, #gpu.address_space<workgroup>>) {
    %c16 = arith.constant 16 : index
    %c63 = arith.constant 63 : index
    %c4 = arith.constant 4 : index
    %k = arith.muli %t, %c4 : index
    %copy = nvgpu.device_async_copy %x[%k], %s[%k], 4 {} : memref<64xf32> to memref<64xf32, #gpu.address_space<workgroup>>
    %group = nvgpu.device_async_create_group %copy

    gpu.barrier
    %i = arith.subi %c63, %k : index
    %v = memref.load %s[%i] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %v, %y[%k] : memref<64xf32>
    gpu.terminator
  }
  return
}
