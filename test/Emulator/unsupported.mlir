// What is not emulated is named; other kinds of modules are told apart.
// RUN: split-file %s %t
// RUN: %to_gpu %t/intrinsic.mlir | not %run_emulated -e main 2>&1 | FileCheck %t/intrinsic.mlir
// RUN: %to_gpu %t/assembly.mlir | not %run_emulated -e main 2>&1 | FileCheck %t/assembly.mlir
// RUN: %to_gpu %t/arithmetic.mlir | %run_emulated -e main | FileCheck %t/arithmetic.mlir
// RUN: %to_gpu %t/function.mlir | not %run_emulated -e main 2>&1 | FileCheck %t/function.mlir
// RUN: %to_gpu_as_ptx %t/fine.mlir | not %run_emulated -e main 2>&1 | FileCheck %s --check-prefix=PTX
// RUN: %to_gpu %t/fine.mlir | %run_emulated -e main

// PTX: norm-emu: error: cannot load a module of device code: expected the bitcode of gpu-module-to-binary{format=llvm}, got PTX

//--- intrinsic.mlir
// CHECK: norm-emu: error: cannot load a module of device code: not emulated: intrinsic 'llvm.nvvm.match.any.sync.i32'
module attributes {gpu.container_module} {
  gpu.module @device {
    llvm.func @k(%p: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %all = llvm.mlir.constant(-1 : i32) : i32
      %m = llvm.call_intrinsic "llvm.nvvm.match.any.sync.i32"(%all, %t) : (i32, i32) -> i32
      llvm.store %m, %p : i32, !llvm.ptr
      llvm.return
    }
  }
  func.func @main() {
    return
  }
}

//--- assembly.mlir
// CHECK: not emulated: inline assembly 'mov.u32 $0, %smid;'
module attributes {gpu.container_module} {
  gpu.module @device {
    llvm.func @k(%p: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      %m = llvm.inline_asm has_side_effects "mov.u32 $0, %smid;", "=r" : () -> i32
      llvm.store %m, %p : i32, !llvm.ptr
      llvm.return
    }
  }
  func.func @main() {
    return
  }
}

//--- arithmetic.mlir
// Of assembly one operation on its operands in order is known, as libdevice has it, and a
// move, which keeps code in its place.
// CHECK: [0.125,  0.375]
module attributes {gpu.container_module} {
  gpu.module @device {
    gpu.func @k(%y: memref<2xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %eight = arith.constant 8.0 : f32
      %quarter = arith.constant 0.25 : f32
      %r = llvm.inline_asm "rcp.approx.ftz.f32 $0, $1;", "=f,f" %eight : (f32) -> f32
      %s = llvm.inline_asm "add.rn.f32 $0,$1,$2;", "=f,f,f" %r, %quarter : (f32, f32) -> f32
      memref.store %r, %y[%c0] : memref<2xf32>
      %t = llvm.inline_asm has_side_effects "mov.b32 $0, $1;", "=f,f" %s : (f32) -> f32
      memref.store %t, %y[%c1] : memref<2xf32>
      gpu.return
    }
  }
  func.func private @printMemrefF32(memref<*xf32>)
  func.func @main() {
    %c1 = arith.constant 1 : index
    %y = memref.alloc() : memref<2xf32>
    %u = memref.cast %y : memref<2xf32> to memref<*xf32>
    gpu.host_register %u : memref<*xf32>
    gpu.launch_func @device::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%y : memref<2xf32>)
    call @printMemrefF32(%u) : (memref<*xf32>) -> ()
    return
  }
}

//--- function.mlir
// CHECK: not emulated: function 'elsewhere', which the module calls and does not define
module attributes {gpu.container_module} {
  gpu.module @device {
    llvm.func @elsewhere() -> i32
    llvm.func @k(%p: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      %m = llvm.call @elsewhere() : () -> i32
      llvm.store %m, %p : i32, !llvm.ptr
      llvm.return
    }
  }
  func.func @main() {
    return
  }
}

//--- fine.mlir
module attributes {gpu.container_module} {
  gpu.module @device {
    llvm.func @k(%p: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
  func.func @main() {
    return
  }
}
