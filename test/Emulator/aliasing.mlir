// A promise that an argument aliases no other, broken by the caller.
// RUN: %to_gpu %s -o %t
// RUN: not %run_emulated -e in_place %t 2>&1 | FileCheck %s --check-prefix=INPLACE
// RUN: env NORM_EMU_CHECK=-aliasing %run_emulated -e in_place %t
// RUN: %run_emulated -e apart %t

module attributes {gpu.container_module} {
  gpu.module @device {
    llvm.func @copy(%x: !llvm.ptr {llvm.noalias, llvm.readonly}, %y: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %i = llvm.getelementptr %x[%t] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %v = llvm.load %i : !llvm.ptr -> f32
      %j = llvm.getelementptr %y[%t] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      llvm.store %v, %j : f32, !llvm.ptr
      llvm.return
    }
  }
  func.func private @launch(%x: memref<32xf32>, %y: memref<32xf32>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %p = memref.extract_aligned_pointer_as_index %x : memref<32xf32> -> index
    %q = memref.extract_aligned_pointer_as_index %y : memref<32xf32> -> index
    %pi = arith.index_cast %p : index to i64
    %qi = arith.index_cast %q : index to i64
    %xp = llvm.inttoptr %pi : i64 to !llvm.ptr
    %yp = llvm.inttoptr %qi : i64 to !llvm.ptr
    gpu.launch_func @device::@copy blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%xp : !llvm.ptr, %yp : !llvm.ptr)
    return
  }
  // INPLACE: norm-emu: error: kernel 'copy' was compiled with the promise that argument 0 aliases no other (noalias), but arguments 0 and 1 are the same address
  func.func @in_place() {
    %t0 = gpu.wait async
    %x, %t1 = gpu.alloc async [%t0] () : memref<32xf32>
    gpu.wait [%t1]
    call @launch(%x, %x) : (memref<32xf32>, memref<32xf32>) -> ()
    return
  }
  func.func @apart() {
    %t0 = gpu.wait async
    %x, %t1 = gpu.alloc async [%t0] () : memref<32xf32>
    %y, %t2 = gpu.alloc async [%t1] () : memref<32xf32>
    gpu.wait [%t2]
    call @launch(%x, %y) : (memref<32xf32>, memref<32xf32>) -> ()
    return
  }
}
