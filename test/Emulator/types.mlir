// Types and arithmetic: 16-bit floats as vectors, functions with and without
// libdevice, NVVM's own operations.
// RUN: %to_gpu %s -o %t
// RUN: %run_emulated -e brain %t | FileCheck %s --check-prefix=BRAIN
// RUN: %run_emulated -e half %t | FileCheck %s --check-prefix=HALF
// RUN: %run_emulated -e functions %t | FileCheck %s --check-prefix=FUNCTIONS
// RUN: %if cuda-toolkit %{ env CUDA_ROOT=%cuda_root %to_gpu %s -o %t.libdevice %}
// RUN: %if cuda-toolkit %{ %run_emulated -e functions %t.libdevice | FileCheck %s --check-prefix=FUNCTIONS %}
// RUN: %run_emulated -e approximations %t | FileCheck %s --check-prefix=APPROX
// RUN: %run_emulated -e directed %t | FileCheck %s --check-prefix=DIRECTED
// RUN: %run_emulated -e masked %t | FileCheck %s --check-prefix=MASKED

func.func private @printMemrefF32(memref<*xf32>)
func.func private @array() -> memref<8xf32> {
  %h = memref.alloc() : memref<8xf32>
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%h : memref<8xf32>)
  %u = memref.cast %h : memref<8xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  return %h : memref<8xf32>
}
func.func private @print(%y: memref<8xf32>) {
  %u = memref.cast %y : memref<8xf32> to memref<*xf32>
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}

// 1 + 2^-8 is a tie in bf16 and goes to even; 1 + 3 * 2^-8 goes up.
// BRAIN: [1,  1.01562,  1,  1.01562,  1,  1.01562,  1,  1.01562]
func.func @brain() {
  %y = call @array() : () -> memref<8xf32>
  %c1 = arith.constant 1 : index
  %t0 = gpu.wait async
  %z, %t1 = gpu.alloc async [%t0] () : memref<8xbf16>
  gpu.wait [%t1]
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c1, %ny = %c1, %nz = %c1) {
    %c0 = arith.constant 0 : index
    %f = arith.constant dense<[1.00390625, 1.01171875, 1.00390625, 1.01171875, 1.00390625, 1.01171875, 1.00390625, 1.01171875]> : vector<8xf32>
    %narrow = arith.truncf %f : vector<8xf32> to vector<8xbf16>
    vector.store %narrow, %z[%c0] {alignment = 16} : memref<8xbf16>, vector<8xbf16>
    %loaded = vector.load %z[%c0] {alignment = 16} : memref<8xbf16>, vector<8xbf16>
    %wide = arith.extf %loaded : vector<8xbf16> to vector<8xf32>
    vector.store %wide, %y[%c0] {alignment = 4} : memref<8xf32>, vector<8xf32>
    gpu.terminator
  }
  call @print(%y) : (memref<8xf32>) -> ()
  return
}

// 0.1 in f16, added to itself there.
// HALF: [0.199951,  0.199951,
func.func @half() {
  %y = call @array() : () -> memref<8xf32>
  %c1 = arith.constant 1 : index
  %t0 = gpu.wait async
  %z, %t1 = gpu.alloc async [%t0] () : memref<8xf16>
  gpu.wait [%t1]
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c1, %ny = %c1, %nz = %c1) {
    %c0 = arith.constant 0 : index
    %f = arith.constant dense<0.1> : vector<8xf16>
    vector.store %f, %z[%c0] {alignment = 16} : memref<8xf16>, vector<8xf16>
    %loaded = vector.load %z[%c0] {alignment = 16} : memref<8xf16>, vector<8xf16>
    %sum = arith.addf %loaded, %loaded : vector<8xf16>
    %wide = arith.extf %sum : vector<8xf16> to vector<8xf32>
    vector.store %wide, %y[%c0] {alignment = 4} : memref<8xf32>, vector<8xf32>
    gpu.terminator
  }
  call @print(%y) : (memref<8xf32>) -> ()
  return
}

// FUNCTIONS: [2.71828,  0.761594,  0.842701,  0.841471,  0.707107,  1.41421,  0.693147,  1.5]
func.func @functions() {
  %y = call @array() : () -> memref<8xf32>
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c1, %ny = %c1, %nz = %c1) {
    %c0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i2 = arith.constant 2 : index
    %i3 = arith.constant 3 : index
    %i4 = arith.constant 4 : index
    %i5 = arith.constant 5 : index
    %i6 = arith.constant 6 : index
    %i7 = arith.constant 7 : index
    %k = arith.addi %t, %i1 : index
    %ki = arith.index_cast %k : index to i32
    %one = arith.sitofp %ki : i32 to f32
    %two = arith.addf %one, %one : f32
    %r0 = math.exp %one : f32
    %r1 = math.tanh %one : f32
    %r2 = math.erf %one : f32
    %r3 = math.sin %one : f32
    %r4 = math.rsqrt %two : f32
    %r5 = math.sqrt %two : f32
    %r6 = math.log %two : f32
    %half = arith.constant 0.5 : f32
    %r7 = math.fma %half, %one, %one : f32
    memref.store %r0, %y[%c0] : memref<8xf32>
    memref.store %r1, %y[%i1] : memref<8xf32>
    memref.store %r2, %y[%i2] : memref<8xf32>
    memref.store %r3, %y[%i3] : memref<8xf32>
    memref.store %r4, %y[%i4] : memref<8xf32>
    memref.store %r5, %y[%i5] : memref<8xf32>
    memref.store %r6, %y[%i6] : memref<8xf32>
    memref.store %r7, %y[%i7] : memref<8xf32>
    gpu.terminator
  }
  call @print(%y) : (memref<8xf32>) -> ()
  return
}

// The subnormal 1e-40 is flushed where the name says so: 1 / 1e-40 is infinite.
// APPROX: [0.707107,  8,  3,  0.5,  inf,  1,  0,  2]
func.func @approximations() {
  %y = call @array() : () -> memref<8xf32>
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c1, %ny = %c1, %nz = %c1) {
    %c0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i2 = arith.constant 2 : index
    %i3 = arith.constant 3 : index
    %i4 = arith.constant 4 : index
    %i5 = arith.constant 5 : index
    %i6 = arith.constant 6 : index
    %i7 = arith.constant 7 : index
    %k = arith.addi %t, %i2 : index
    %ki = arith.index_cast %k : index to i32
    %two = arith.sitofp %ki : i32 to f32
    %three = arith.constant 3.0 : f32
    %eight = arith.constant 8.0 : f32
    %tiny = arith.constant 1.0e-40 : f32
    %four = arith.mulf %two, %two : f32
    %r0 = llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"(%two) : (f32) -> f32
    %r1 = llvm.call_intrinsic "llvm.nvvm.ex2.approx"(%three) : (f32) -> f32
    %r2 = llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"(%eight) : (f32) -> f32
    %r3 = llvm.call_intrinsic "llvm.nvvm.rcp.rn.f"(%two) : (f32) -> f32
    %r4 = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%tiny) : (f32) -> f32
    %r5 = llvm.call_intrinsic "llvm.nvvm.saturate.f"(%two) : (f32) -> f32
    %r6 = llvm.call_intrinsic "llvm.nvvm.add.rn.ftz.f"(%tiny, %tiny) : (f32, f32) -> f32
    %r7 = llvm.call_intrinsic "llvm.nvvm.sqrt.approx.f"(%four) : (f32) -> f32
    memref.store %r0, %y[%c0] : memref<8xf32>
    memref.store %r1, %y[%i1] : memref<8xf32>
    memref.store %r2, %y[%i2] : memref<8xf32>
    memref.store %r3, %y[%i3] : memref<8xf32>
    memref.store %r4, %y[%i4] : memref<8xf32>
    memref.store %r5, %y[%i5] : memref<8xf32>
    memref.store %r6, %y[%i6] : memref<8xf32>
    memref.store %r7, %y[%i7] : memref<8xf32>
    gpu.terminator
  }
  call @print(%y) : (memref<8xf32>) -> ()
  return
}

// 1 / 3 down and up are neighbours; so are 1 + 2^-30. Conversions clamp.
// DIRECTED: [1,  0,  1,  2,  -3,  -2,  2.14748e+09,  0]
func.func @directed() {
  %y = call @array() : () -> memref<8xf32>
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c1, %ny = %c1, %nz = %c1) {
    %c0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %i2 = arith.constant 2 : index
    %i3 = arith.constant 3 : index
    %i4 = arith.constant 4 : index
    %i5 = arith.constant 5 : index
    %i6 = arith.constant 6 : index
    %i7 = arith.constant 7 : index
    %k = arith.addi %t, %i1 : index
    %ki = arith.index_cast %k : index to i32
    %one = arith.sitofp %ki : i32 to f32
    %three = arith.constant 3.0 : f32
    %small = arith.constant 9.31322575E-10 : f32
    %down = llvm.call_intrinsic "llvm.nvvm.div.rm.f"(%one, %three) : (f32, f32) -> f32
    %up = llvm.call_intrinsic "llvm.nvvm.div.rp.f"(%one, %three) : (f32, f32) -> f32
    %db = arith.bitcast %down : f32 to i32
    %ub = arith.bitcast %up : f32 to i32
    %d = arith.subi %ub, %db : i32
    %r0 = arith.sitofp %d : i32 to f32
    %sd = llvm.call_intrinsic "llvm.nvvm.add.rz.f"(%one, %small) : (f32, f32) -> f32
    %su = llvm.call_intrinsic "llvm.nvvm.fma.rp.f"(%one, %one, %small) : (f32, f32, f32) -> f32
    %r1 = arith.subf %sd, %one : f32
    %sb = arith.bitcast %su : f32 to i32
    %ob = arith.bitcast %one : f32 to i32
    %sdiff = arith.subi %sb, %ob : i32
    %r2 = arith.sitofp %sdiff : i32 to f32
    %m25 = arith.constant -2.5 : f32
    %v25 = arith.mulf %m25, %one : f32
    %p25 = arith.negf %v25 : f32
    %near = llvm.call_intrinsic "llvm.nvvm.f2i.rn"(%p25) : (f32) -> i32
    %floor = llvm.call_intrinsic "llvm.nvvm.f2i.rm"(%v25) : (f32) -> i32
    %zero = llvm.call_intrinsic "llvm.nvvm.f2i.rz"(%v25) : (f32) -> i32
    %huge = arith.constant 1.0e+20 : f32
    %h = arith.mulf %huge, %one : f32
    %clamped = llvm.call_intrinsic "llvm.nvvm.f2i.rz"(%h) : (f32) -> i32
    %inf = arith.constant 0x7F800000 : f32
    %nan = arith.mulf %inf, %r1 : f32
    %none = llvm.call_intrinsic "llvm.nvvm.f2i.rz"(%nan) : (f32) -> i32
    %r3 = arith.sitofp %near : i32 to f32
    %r4 = arith.sitofp %floor : i32 to f32
    %r5 = arith.sitofp %zero : i32 to f32
    %r6 = arith.sitofp %clamped : i32 to f32
    %r7 = arith.sitofp %none : i32 to f32
    memref.store %r0, %y[%c0] : memref<8xf32>
    memref.store %r1, %y[%i1] : memref<8xf32>
    memref.store %r2, %y[%i2] : memref<8xf32>
    memref.store %r3, %y[%i3] : memref<8xf32>
    memref.store %r4, %y[%i4] : memref<8xf32>
    memref.store %r5, %y[%i5] : memref<8xf32>
    memref.store %r6, %y[%i6] : memref<8xf32>
    memref.store %r7, %y[%i7] : memref<8xf32>
    gpu.terminator
  }
  call @print(%y) : (memref<8xf32>) -> ()
  return
}

// A masked store is checked lane by lane: five elements fit, three are masked.
// MASKED: [1,  1,  1,  1,  1,  0,  0,  0]
func.func @masked() {
  %y = call @array() : () -> memref<8xf32>
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c1, %ny = %c1, %nz = %c1) {
    %c0 = arith.constant 0 : index
    %i5 = arith.addi %t, %c5 : index
    %f = arith.constant dense<1.0> : vector<8xf32>
    %i5i = arith.index_cast %i5 : index to i32
    %limit = vector.broadcast %i5i : i32 to vector<8xi32>
    %lanes = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
    %m = arith.cmpi slt, %lanes, %limit : vector<8xi32>
    vector.maskedstore %y[%c0], %m, %f : memref<8xf32>, vector<8xi1>, vector<8xf32>
    gpu.terminator
  }
  call @print(%y) : (memref<8xf32>) -> ()
  return
}
