// Kernels as PTX, which needs no CUDA installation, and the host code that
// launches them.
// RUN: norm-opt %s --norm-to-nvvm="alignment=promised" | sed 's/\\0A/\n/g; s/\\09/ /g' > %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=PTX < %t
// RUN: env -u CUDA_ROOT -u CUDA_HOME -u CUDA_PATH PATH=/usr/bin:/bin norm-opt %s --norm-to-nvvm="alignment=promised" | sed 's/\\0A/\n/g; s/\\09/ /g' | FileCheck %s --check-prefix=PTX
// RUN: norm-opt %s --norm-to-nvvm="chip=sm_80 strides=any" | sed 's/\\0A/\n/g; s/\\09/ /g' | FileCheck %s --check-prefix=SM80
// RUN: norm-opt %s --norm-to-nvvm="chip=sm_100" | sed 's/\\0A/\n/g; s/\\09/ /g' | FileCheck %s --check-prefix=SM100
// RUN: norm-opt %s --norm-to-nvvm="format=llvm" | FileCheck %s --check-prefix=LLVM
// RUN: norm-opt %s --norm-to-nvvm="chip=sm_100,sm_80,sm_90 alignment=promised" | sed 's/\\0A/\n/g' | FileCheck %s --check-prefix=OLDEST
// RUN: norm-opt %s --norm-to-nvvm="chip=sm_89" | FileCheck %s --check-prefix=SM89
// RUN: not norm-opt %s --norm-to-nvvm="chip=" 2>&1 | FileCheck %s --check-prefix=NOCHIP
// RUN: not norm-opt %s --norm-to-nvvm="chip=sm_90,sm_99" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not norm-opt %s --norm-to-nvvm="chip=sm_70" 2>&1 | FileCheck %s --check-prefix=OLD

// Arguments, results and the stream; nothing but a launch on that stream.
// CHECK-DAG: llvm.func @_mlir_ciface_rows(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr)
// CHECK-DAG: gpu.launch_func <%{{.*}} : !llvm.ptr> @rows_kernel::@rows_kernel
// CHECK-NOT: mgpuStreamCreate
// CHECK-NOT: mgpuMemAlloc
// CHECK-NOT: builtin.unrealized_conversion_cast

// x is read once, by whole accesses that no store can change, and no library is
// called.
// PTX: .target sm_90
// PTX: .visible .entry rows_kernel(
// PTX: .reqntid 128
// PTX-NOT: .extern
// PTX-NOT: .local
// PTX-COUNT-12: ld.global.nc.v4
// PTX-NOT: ld.global
// PTX-COUNT-6: st.global.v4
// PTX-NOT: st.global
// A row that registers do not hold is read once, too: its sum with the residual
// stays in shared memory, whose size is in the launch. Odd rows are moved by
// whole accesses but for their ends.
// CHECK-DAG: %[[BYTES:.*]] = llvm.mlir.constant(131072 : i32) : i32
// CHECK: gpu.launch_func <{{.*}}> @long_kernel::@long_kernel {{.*}} dynamic_shared_memory_size %[[BYTES]]
// PTX: .visible .entry long_kernel(
// PTX-COUNT-4: ld.global.nc.v4
// PTX-COUNT-2: st.shared.v4
// PTX: bar.sync
// PTX-COUNT-2: ld.shared.v4.b32 {{.*}}, [%
// PTX-COUNT-4: ld.global.nc.v4
// PTX-NOT: ld.global
// PTX-COUNT-4: st.global.v4
// PTX-NOT: st.global
// PTX: .visible .entry odd_kernel(
// PTX: ld.global.nc.v4
// PTX: st.global.v4
// CHECK-NOT: mgpu{{StreamCreate|MemAlloc}}
// PTX: gpu.binary @calls_kernel
// PTX-NOT: .extern
// SM80: .target sm_80
// SM80-NOT: ld.global.nc.v4
// SM100: .target sm_100
// LLVM: gpu.binary @rows_kernel [#gpu.object<#nvvm.target<{{.*}}>, offload = "BC
// One PTX for all chips: that of the oldest.
// OLDEST-COUNT-4: .target sm_80
// OLDEST-NOT: .target
// SM89: .version 8.3{{.*}}.target sm_89
// NOCHIP: error: expected chip to be sm_80 or a later one that LLVM 22 knows, got ''
// UNKNOWN: error: expected chip to be sm_80 or a later one that LLVM 22 knows, got 'sm_99'
// OLD: error: expected chip to be sm_80 or a later one that LLVM 22 knows, got 'sm_70'
func.func @rows(%x: tensor<64x768xf32>, %g: tensor<768xf32>) -> tensor<64x768xf32> {
  %y = norm.rms_norm %x scale(%g : tensor<768xf32>) axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<64x768xf32> -> tensor<64x768xf32>
  return %y : tensor<64x768xf32>
}

func.func @long(%x: tensor<64x65536xbf16>, %r: tensor<64x65536xbf16>, %g: tensor<65536xf32>) -> (tensor<64x65536xbf16>, tensor<64x65536xbf16>) {
  %y, %s = norm.rms_norm %x residual(%r : tensor<64x65536xbf16>) scale(%g : tensor<65536xf32>) axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<64x65536xbf16> -> tensor<64x65536xbf16> sum(tensor<64x65536xbf16>)
  return %y, %s : tensor<64x65536xbf16>, tensor<64x65536xbf16>
}

func.func @odd(%x: tensor<64x1023xf32>) -> tensor<64x1023xf32> {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-6 : tensor<64x1023xf32> -> tensor<64x1023xf32>
  return %y : tensor<64x1023xf32>
}

func.func @calls(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %empty = tensor.empty() : tensor<4x64xf32>
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-6 : tensor<4x64xf32> -> tensor<4x64xf32>
  %e = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<4x64xf32>) outs(%empty : tensor<4x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %t = math.tanh %in : f32
    linalg.yield %t : f32
  } -> tensor<4x64xf32>
  return %e : tensor<4x64xf32>
}
