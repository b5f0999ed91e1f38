// What a program asks of the driver, and what it is told when that fails.
// RUN: %to_ptx %s -o %t
// RUN: env NORM_CUDA_DRIVER=%stub %run_cuda -e main %t | FileCheck %s
// RUN: env NORM_CUDA_DRIVER=%stub %run_cuda -e caller %t | FileCheck %s --check-prefix=CALLER
// RUN: env NORM_CUDA_DRIVER=%stub %run_cuda -e clusters %t | FileCheck %s --check-prefix=CLUSTERS
// RUN: env NORM_CUDA_DRIVER=%stub %run_cuda -e events %t | FileCheck %s --check-prefix=EVENTS
// RUN: env NORM_CUDA_DRIVER=%stub %run_cuda -e nothing %t | FileCheck %s --check-prefix=NOTHING --allow-empty

// RUN: env NORM_CUDA_DRIVER=%t.no/libcuda.so.1 not %run_cuda -e main %t 2>&1 | FileCheck %s --check-prefix=NODRIVER
// RUN: env NORM_CUDA_DRIVER=%t.no/libcuda.so.1 %run_cuda -e nothing %t | FileCheck %s --check-prefix=NOTHING --allow-empty
// RUN: env NORM_CUDA_DRIVER=libc.so.6 not %run_cuda -e main %t 2>&1 | FileCheck %s --check-prefix=NOTCUDA
// RUN: env NORM_CUDA_DRIVER=%stub NORM_STUB_DEVICES=0 not %run_cuda -e main %t 2>&1 | FileCheck %s --check-prefix=NODEVICE
// RUN: env NORM_CUDA_DRIVER=%stub NORM_STUB_FAIL=cuInit=100 not %run_cuda -e main %t 2>&1 | FileCheck %s --check-prefix=NODEVICE
// RUN: env NORM_CUDA_DRIVER=%stub NORM_STUB_FAIL=cuInit=999 not %run_cuda -e main %t 2>&1 | FileCheck %s --check-prefix=NOSTART
// RUN: env NORM_CUDA_DRIVER=%stub NORM_STUB_CHIP=86 not %run_cuda -e main %t 2>&1 | FileCheck %s --check-prefix=NOIMAGE
// RUN: env NORM_CUDA_DRIVER=%stub NORM_STUB_FAIL=cuModuleLoadDataEx=218 not %run_cuda -e main %t 2>&1 | FileCheck %s --check-prefix=BADPTX
// RUN: env NORM_CUDA_DRIVER=%stub NORM_STUB_FAIL=cuMemAlloc_v2=2 not %run_cuda -e main %t 2>&1 | FileCheck %s --check-prefix=MEMORY
// RUN: env NORM_CUDA_DRIVER=%stub NORM_STUB_FAIL=cuFuncSetAttribute=1 not %run_cuda -e main %t 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: env NORM_CUDA_DRIVER=%stub NORM_STUB_FAIL=cuLaunchKernel=701 not %run_cuda -e main %t 2>&1 | FileCheck %s --check-prefix=LAUNCH
// RUN: env NORM_CUDA_DRIVER=%stub NORM_STUB_FAIL=cuStreamSynchronize=700 not %run_cuda -e main %t 2>&1 | FileCheck %s --check-prefix=SYNC
// RUN: env NORM_CUDA_DRIVER=%stub_old not %run_cuda -e clusters %t 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: env NORM_CUDA_DRIVER=%stub_old %run_cuda -e main %t | FileCheck %s

// NODRIVER: norm-cuda: error: no CUDA driver: cannot open {{.*}}libcuda.so.1:
// NODRIVER-NOT: error:
// NOTCUDA: norm-cuda: error: the CUDA driver libc.so.6 has no cuInit: expected that of CUDA 11 or later
// NODEVICE: norm-cuda: error: no CUDA device: the driver finds none
// NOSTART: norm-cuda: error: cannot start the CUDA driver: CUDA_ERROR_OF_THE_STUB
// NOIMAGE: norm-cuda: error: no image of a module fits Stub 0 (sm_86): it has PTX for sm_90: CUDA_ERROR_NO_BINARY_FOR_GPU: as it was told
// BADPTX: norm-cuda: error: cannot load a module of device code (PTX for sm_90): CUDA_ERROR_INVALID_PTX: as it was told
// BADPTX-NEXT: ptxas: line 3 is wrong
// MEMORY: norm-cuda: error: cannot allocate 128 bytes: CUDA_ERROR_OUT_OF_MEMORY: as it was told
// SHARED: norm-cuda: error: cannot give kernel 'run' 100000 bytes of dynamic shared memory on Stub 0 (sm_90): CUDA_ERROR_OF_THE_STUB
// LAUNCH: norm-cuda: error: cannot launch kernel 'run' with a grid of (3, 1, 1) blocks of (64, 1, 1) threads and 100 bytes of dynamic shared memory: CUDA_ERROR_OF_THE_STUB
// SYNC: norm-cuda: error: cannot wait for a stream: CUDA_ERROR_OF_THE_STUB
// OLD: norm-cuda: error: cannot launch kernel 'run' in clusters: the driver has no cuLaunchKernelEx, expected that of CUDA 11.8 or later
module attributes {gpu.container_module} {
  gpu.module @device {
    gpu.func @run(%i: i32, %y: memref<32xf32>) kernel {
      %zero = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      memref.store %zero, %y[%c0] : memref<32xf32>
      gpu.return
    }
  }
  func.func private @normCudaSetStream(i64)
  func.func private @normCudaResetStream()

  // Three launches: the module is loaded and the kernel found once, and shared
  // memory above 48 KB asked for once. No launch without blocks.
  // CHECK: cuInit 0
  // CHECK-NEXT: cuDeviceGet 0
  // CHECK-NEXT: cuDevicePrimaryCtxRetain 0
  // CHECK-NEXT: cuCtxSetCurrent
  // CHECK-NEXT: cuStreamCreate 1 flags 1
  // CHECK-NEXT: cuMemAlloc_v2 128
  // CHECK-NEXT: cuMemcpyAsync 128 stream 1
  // CHECK-NEXT: cuMemsetD32Async 0x3f800000 * 32 stream 1
  // CHECK-NEXT: cuStreamSynchronize 1
  // CHECK-NEXT: cuStreamDestroy_v2 1
  // CHECK-NEXT: cuModuleLoadDataEx with 2 options
  // CHECK-NEXT: cuModuleGetFunction run
  // CHECK-NEXT: cuStreamCreate 2
  // CHECK-NEXT: cuLaunchKernel run grid (3, 1, 1) block (64, 1, 1) shared 100 stream 2 first argument 7
  // CHECK-NEXT: cuStreamSynchronize 2
  // CHECK-NEXT: cuStreamDestroy_v2 2
  // CHECK-NEXT: cuStreamCreate 3
  // CHECK-NEXT: cuFuncSetAttribute run 8 = 100000
  // CHECK-NEXT: cuLaunchKernel run grid (3, 1, 1) block (64, 1, 1) shared 100000 stream 3
  // CHECK-NEXT: cuStreamSynchronize 3
  // CHECK-NEXT: cuStreamDestroy_v2 3
  // CHECK-NEXT: cuStreamCreate 4
  // CHECK-NEXT: cuLaunchKernel run grid (3, 1, 1) block (64, 1, 1) shared 65536 stream 4
  // CHECK-NEXT: cuStreamSynchronize 4
  // CHECK-NEXT: cuStreamDestroy_v2 4
  // CHECK-NEXT: cuStreamCreate 5
  // CHECK-NEXT: cuStreamSynchronize 5
  // CHECK-NEXT: cuStreamDestroy_v2 5
  // CHECK-NEXT: cuStreamCreate 6
  // CHECK-NEXT: cuMemFree_v2
  // CHECK-NEXT: cuStreamSynchronize 6
  // CHECK-NEXT: cuStreamDestroy_v2 6
  func.func @main() {
    %h = memref.alloc() : memref<32xf32>
    %one = arith.constant 1.0 : f32
    %t0 = gpu.wait async
    %y, %t1 = gpu.alloc async [%t0] () : memref<32xf32>
    %t2 = gpu.memcpy async [%t1] %y, %h : memref<32xf32>, memref<32xf32>
    %t3 = gpu.memset async [%t2] %y, %one : memref<32xf32>, f32
    gpu.wait [%t3]
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c64 = arith.constant 64 : index
    %i = arith.constant 7 : i32
    %few = arith.constant 100 : i32
    %many = arith.constant 100000 : i32
    %less = arith.constant 65536 : i32
    gpu.launch_func @device::@run blocks in (%c3, %c1, %c1) threads in (%c64, %c1, %c1) dynamic_shared_memory_size %few args(%i : i32, %y : memref<32xf32>)
    gpu.launch_func @device::@run blocks in (%c3, %c1, %c1) threads in (%c64, %c1, %c1) dynamic_shared_memory_size %many args(%i : i32, %y : memref<32xf32>)
    gpu.launch_func @device::@run blocks in (%c3, %c1, %c1) threads in (%c64, %c1, %c1) dynamic_shared_memory_size %less args(%i : i32, %y : memref<32xf32>)
    gpu.launch_func @device::@run blocks in (%c0, %c1, %c1) threads in (%c64, %c1, %c1) args(%i : i32, %y : memref<32xf32>)
    %t4 = gpu.wait async
    %t5 = gpu.dealloc async [%t4] %y : memref<32xf32>
    gpu.wait [%t5]
    return
  }

  // On the caller's stream: none is made, waited for or destroyed. A stream that
  // is passed as a token is used as it is.
  // CALLER-NOT: cuStream
  // CALLER: cuLaunchKernel run grid (3, 1, 1) block (64, 1, 1) shared 0 stream 77
  // CALLER-NOT: cuStream
  // CALLER: cuLaunchKernel run grid (1, 1, 1) block (64, 1, 1) shared 0 stream 55
  // CALLER-NOT: cuStreamSynchronize
  // CALLER: cuStreamCreate 1
  // CALLER: cuLaunchKernel run grid (3, 1, 1) block (64, 1, 1) shared 0 stream 1
  func.func @caller() {
    %y = memref.alloc() : memref<32xf32>
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c64 = arith.constant 64 : index
    %i = arith.constant 7 : i32
    %s = arith.constant 77 : i64
    call @normCudaSetStream(%s) : (i64) -> ()
    gpu.launch_func @device::@run blocks in (%c3, %c1, %c1) threads in (%c64, %c1, %c1) args(%i : i32, %y : memref<32xf32>)
    call @normCudaResetStream() : () -> ()
    %p = arith.constant 55 : i64
    %stream = llvm.inttoptr %p : i64 to !llvm.ptr
    %token = builtin.unrealized_conversion_cast %stream : !llvm.ptr to !gpu.async.token
    %done = gpu.launch_func async [%token] @device::@run blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%i : i32, %y : memref<32xf32>)
    gpu.launch_func @device::@run blocks in (%c3, %c1, %c1) threads in (%c64, %c1, %c1) args(%i : i32, %y : memref<32xf32>)
    return
  }

  // CLUSTERS: cuLaunchKernelEx run grid (4, 1, 1) block (64, 1, 1) shared 0 stream 1, 1 attributes: 4 = (2, 1, 1)
  func.func @clusters() {
    %y = memref.alloc() : memref<32xf32>
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %i = arith.constant 7 : i32
    gpu.launch_func @device::@run clusters in (%c2, %c1, %c1) blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1) args(%i : i32, %y : memref<32xf32>)
    return
  }

  // EVENTS: cuMemHostRegister_v2 128 flags 0
  // EVENTS: cuEventCreate 100 flags 2
  // EVENTS: cuEventRecord 100
  // EVENTS: cuStreamWaitEvent
  // EVENTS: cuEventDestroy_v2 100
  // EVENTS: cuMemHostUnregister
  func.func @events() {
    %h = memref.alloc() : memref<32xf32>
    %u = memref.cast %h : memref<32xf32> to memref<*xf32>
    gpu.host_register %u : memref<*xf32>
    %t0 = gpu.wait async
    %y, %t1 = gpu.alloc async [%t0] () : memref<32xf32>
    %t2 = gpu.wait async
    %z, %t3 = gpu.alloc async [%t2] () : memref<32xf32>
    %t4 = gpu.wait async [%t1, %t3]
    gpu.wait [%t4]
    gpu.host_unregister %u : memref<*xf32>
    return
  }

  // A program that launches nothing needs no driver.
  // NOTHING-NOT: {{.}}
  func.func @nothing() {
    return
  }
}
