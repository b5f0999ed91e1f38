// RUN: norm-opt %s --norm-to-cpu="threads=false strides=unit" | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-unknown-linux-gnu -mcpu=sapphirerapids | llc -O3 -mtriple=x86_64-unknown-linux-gnu -mcpu=sapphirerapids \
// RUN:   | FileCheck %s
// RUN: norm-opt %s --norm-to-cpu="threads=false strides=unit isa=any" | mlir-translate --mlir-to-llvmir -o %t.ll
// RUN: opt -O3 -mtriple=aarch64-linux-gnu -mattr=+neon %t.ll | llc -mtriple=aarch64-linux-gnu -mattr=+neon -filetype=obj -o %t.neon.o
// RUN: opt -O3 -mtriple=aarch64-linux-gnu -mattr=+sve %t.ll | llc -mtriple=aarch64-linux-gnu -mattr=+sve -filetype=obj -o %t.sve.o
// RUN: llvm-objdump -d %t.neon.o | FileCheck %s --check-prefix=ARM
// RUN: llvm-objdump -d %t.sve.o | FileCheck %s --check-prefix=ARM

// The final code: one store past the caches for each line, fetches of the next
// rows, sums by vectors only.
// CHECK-LABEL: {{^}}main:
// CHECK-NOT: vaddss
// CHECK: vsqrtps {{.*}}%xmm
// CHECK-NOT: vaddss
// CHECK-DAG: vmovntps %zmm
// CHECK-DAG: prefetcht1
// CHECK: .size
// ARM-LABEL: <main>:
// ARM-DAG: prfm pldl2keep
// ARM-DAG: stnp
func.func @main(%x: tensor<4096x4096xf32>, %g: tensor<4096xf32>) -> tensor<4096x4096xf32> {
  %y = norm.rms_norm %x scale(%g : tensor<4096xf32>) axes [1] epsilon inside_sqrt 1.0e-5 {norm.strategy = #norm.cpu<rows = 4, columns = 32, parallel = true, stream_bytes = 4194304, prefetch = 2>} : tensor<4096x4096xf32> -> tensor<4096x4096xf32>
  return %y : tensor<4096x4096xf32>
}
