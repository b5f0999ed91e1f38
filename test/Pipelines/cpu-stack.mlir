// Registers that are spilled lie in the stack as they are aligned in memory: one
// that lies across two pages takes as long as hundreds of additions.
// RUN: norm-opt %s --norm-to-cpu=isa=x86 | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell | llc -O3 -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell \
// RUN:   | FileCheck %s --implicit-check-not="vmovups{{.*}}Spill"
// RUN: norm-opt %s --norm-to-cpu="isa=x86 threads=false" | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell | llc -O3 -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell \
// RUN:   | FileCheck %s --implicit-check-not="vmovups{{.*}}Spill"

// CHECK: andq $-32, %rsp
// CHECK: vmovaps {{.*}}(%rsp){{.*}}32-byte Spill
func.func @rows(%x: tensor<262144x64xf32>, %g: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<262144x64xf32> {
  %y = norm.layer_norm %x scale(%g : tensor<64xf32>) shift(%b : tensor<64xf32>) axes [1]
    epsilon inside_sqrt 1.0e-5 : tensor<262144x64xf32> -> tensor<262144x64xf32>
  return %y : tensor<262144x64xf32>
}
