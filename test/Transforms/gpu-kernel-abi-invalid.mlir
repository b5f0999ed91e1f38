// RUN: norm-opt %s --norm-gpu-kernel-abi --split-input-file --verify-diagnostics

gpu.module @kernels {
  llvm.func @left(%x: vector<4xf32>) attributes {gpu.kernel} {
    // expected-error @+1 {{'vector.broadcast' op expected a kernel in the LLVM and NVVM dialects alone}}
    %0 = vector.broadcast %x : vector<4xf32> to vector<2x4xf32>
    llvm.return
  }
}

// -----

gpu.module @kernels {
  llvm.func @__nv_expf(f32) -> f32
  llvm.func @calls(%x: f32) attributes {gpu.kernel} {
    // expected-error @+1 {{'llvm.call' op calls '__nv_expf', which is no part of the kernel: expected code that needs no library}}
    %0 = llvm.call @__nv_expf(%x) : (f32) -> f32
    llvm.return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.func @bare(%x: !llvm.ptr) attributes {gpu.kernel} {
      llvm.return
    }
  }
  func.func @host(%x: memref<32xf32>) {
    %c1 = arith.constant 1 : index
    // expected-error @+1 {{'gpu.launch_func' op expected a kernel that takes the descriptors of its memrefs, 5 arguments, got 1}}
    gpu.launch_func @kernels::@bare blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<32xf32>)
    return
  }
}
