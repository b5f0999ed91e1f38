// RUN: norm-opt %s --norm-gpu-kernel-abi="distinct=true" --split-input-file | FileCheck %s
// RUN: norm-opt %s --norm-gpu-kernel-abi --split-input-file | FileCheck %s --check-prefix=UNKNOWN

// Arguments of the entry are different buffers: what is only read stays as it
// is while the kernel runs. Without that promise a store may change what is
// loaded next.
// CHECK-LABEL: llvm.func @scale(
// CHECK-SAME: %arg0: !llvm.ptr {llvm.noalias, llvm.readonly}, %arg1: !llvm.ptr {llvm.noalias, llvm.readonly}, %arg2: i64, %arg3: i64, %arg4: i64, %arg5: f32,
// CHECK-SAME: %arg6: !llvm.ptr {llvm.noalias}, %arg7: !llvm.ptr {llvm.noalias}, %arg8: i64
// UNKNOWN-LABEL: llvm.func @scale(
// UNKNOWN-SAME: %arg0: !llvm.ptr {llvm.readonly}, %arg1: !llvm.ptr {llvm.readonly}, %arg2: i64
// UNKNOWN-SAME: %arg6: !llvm.ptr, %arg7: !llvm.ptr, %arg8: i64
module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.func @scale(%a0: !llvm.ptr, %a1: !llvm.ptr, %a2: i64, %a3: i64, %a4: i64, %f: f32,
                     %b0: !llvm.ptr, %b1: !llvm.ptr, %b2: i64, %b3: i64, %b4: i64) attributes {gpu.kernel, nvvm.kernel} {
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %p = llvm.getelementptr %a1[%t] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %v = llvm.load %p : !llvm.ptr -> f32
      %w = llvm.fmul %v, %f : f32
      %q = llvm.getelementptr %b1[%t] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      llvm.store %w, %q : f32, !llvm.ptr
      llvm.return
    }
  }
  func.func @host(%x: memref<32xf32>, %y: memref<32xf32>, %f: f32) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @kernels::@scale blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<32xf32>, %f : f32, %y : memref<32xf32>)
    return
  }
}

// -----

// Two parts of one buffer may overlap; an allocation is no argument.
// CHECK-LABEL: llvm.func @shift(
// CHECK-SAME: %arg0: !llvm.ptr {llvm.readonly}, %arg1: !llvm.ptr {llvm.readonly}, %arg2: i64
// CHECK-SAME: %arg5: !llvm.ptr, %arg6: !llvm.ptr, %arg7: i64
// CHECK-SAME: %arg10: !llvm.ptr {llvm.noalias}, %arg11: !llvm.ptr {llvm.noalias}, %arg12: i64
// UNKNOWN-LABEL: llvm.func @shift(
// UNKNOWN-SAME: %arg10: !llvm.ptr {llvm.noalias}, %arg11: !llvm.ptr {llvm.noalias}, %arg12: i64
module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.func @shift(%a0: !llvm.ptr, %a1: !llvm.ptr, %a2: i64, %a3: i64, %a4: i64,
                     %b0: !llvm.ptr, %b1: !llvm.ptr, %b2: i64, %b3: i64, %b4: i64,
                     %c0: !llvm.ptr, %c1: !llvm.ptr, %c2: i64, %c3: i64, %c4: i64) attributes {gpu.kernel, nvvm.kernel} {
      %v = llvm.load %a1 : !llvm.ptr -> f32
      llvm.store %v, %b1 : f32, !llvm.ptr
      llvm.store %v, %c1 : f32, !llvm.ptr
      llvm.return
    }
  }
  func.func @host() {
    %c1 = arith.constant 1 : index
    %x = memref.alloc() : memref<64xf32>
    %s = memref.alloc() : memref<32xf32>
    %a = memref.subview %x[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
    %b = memref.subview %x[16] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1], offset: 16>>
    gpu.launch_func @kernels::@shift blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%a : memref<32xf32, strided<[1]>>, %b : memref<32xf32, strided<[1], offset: 16>>, %s : memref<32xf32>)
    return
  }
}

// -----

// A pointer that is stored may be written through later.
// CHECK-LABEL: llvm.func @escapes(
// CHECK-SAME: %arg0: !llvm.ptr {llvm.noalias}, %arg1: !llvm.ptr {llvm.noalias}, %arg2: i64
module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.func @escapes(%a0: !llvm.ptr, %a1: !llvm.ptr, %a2: i64, %a3: i64, %a4: i64,
                       %b0: !llvm.ptr, %b1: !llvm.ptr, %b2: i64, %b3: i64, %b4: i64) attributes {gpu.kernel, nvvm.kernel} {
      llvm.store %a1, %b1 : !llvm.ptr, !llvm.ptr
      llvm.return
    }
  }
  func.func @host(%x: memref<32xf32>, %y: memref<32xi64>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@escapes blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<32xf32>, %y : memref<32xi64>)
    return
  }
}

// -----

// Dynamic shared memory is external and starts at whole accesses. A number that
// is made of a pointer does not keep its buffer from being only read; one that
// a pointer is made of might be any buffer's.
// CHECK: llvm.mlir.global external @dynamic() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
// CHECK: llvm.mlir.global internal @static() {addr_space = 3 : i32} : !llvm.array<4 x f32>
// CHECK-LABEL: llvm.func @number(
// CHECK-SAME: %arg1: !llvm.ptr {llvm.noalias, llvm.readonly}
// CHECK-LABEL: llvm.func @pointer(
// CHECK-NOT: llvm.readonly
module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.mlir.global internal @dynamic() {addr_space = 3 : i32} : !llvm.array<0 x i8>
    llvm.mlir.global internal @static() {addr_space = 3 : i32} : !llvm.array<4 x f32>
    llvm.func @number(%a0: !llvm.ptr, %a1: !llvm.ptr, %a2: i64, %a3: i64, %a4: i64) attributes {gpu.kernel, nvvm.kernel} {
      %i = llvm.ptrtoint %a1 : !llvm.ptr to i64
      %p = llvm.getelementptr %a1[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %v = llvm.load %p : !llvm.ptr -> f32
      llvm.return
    }
    llvm.func @pointer(%a0: !llvm.ptr, %a1: !llvm.ptr, %a2: i64, %a3: i64, %a4: i64) attributes {gpu.kernel, nvvm.kernel} {
      %i = llvm.ptrtoint %a1 : !llvm.ptr to i64
      %p = llvm.inttoptr %i : i64 to !llvm.ptr
      %v = llvm.load %a1 : !llvm.ptr -> f32
      llvm.store %v, %p : f32, !llvm.ptr
      llvm.return
    }
  }
  func.func @host(%x: memref<32xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@number blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<32xf32>)
    gpu.launch_func @kernels::@pointer blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<32xf32>)
    return
  }
}
