// Where no instruction rounds to bf16, LLVM calls a function for each element,
// and takes apart vectors of them that are shuffled: casts are integer
// arithmetic there, and results go past the caches in whole registers.
// RUN: norm-opt %s --norm-to-cpu=isa=x86 | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell | llc -O3 -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell \
// RUN:   | FileCheck %s --implicit-check-not=__truncsfbf2 --implicit-check-not=vpinsrw --implicit-check-not=vpextrw
// With one, it is used.
// RUN: norm-opt %s --norm-to-cpu="isa=avx512 bf16=true" | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-unknown-linux-gnu -mcpu=sapphirerapids | llc -O3 -mtriple=x86_64-unknown-linux-gnu -mcpu=sapphirerapids \
// RUN:   | FileCheck %s --check-prefix=BF16

// CHECK-LABEL: rms:
// CHECK: vmovntdq
// BF16-LABEL: rms:
// BF16: vcvtneps2bf16
// BF16: vmovntdq
func.func @rms(%x: tensor<4096x1024xbf16>, %g: tensor<1024xbf16>) -> tensor<4096x1024xbf16> {
  %y = norm.rms_norm %x scale(%g : tensor<1024xbf16>) axes [1] epsilon inside_sqrt 1.0e-5
    : tensor<4096x1024xbf16> -> tensor<4096x1024xbf16>
  return %y : tensor<4096x1024xbf16>
}

// The last columns are under a mask, which AVX2 has for no 16-bit elements: they
// are pieces of 16, 8, 4, 2 and 1, of which only the last is taken by itself.
// CHECK-LABEL: odd__unit__range_0:
// CHECK: vpextrw
func.func @odd(%x: tensor<?x1023xbf16>, %g: tensor<1023xf32>) -> tensor<?x1023xbf16> {
  %y = norm.layer_norm %x scale(%g : tensor<1023xf32>) axes [1] epsilon inside_sqrt 1.0e-5
    : tensor<?x1023xbf16> -> tensor<?x1023xbf16>
  return %y : tensor<?x1023xbf16>
}

// Of a number of columns that run time knows, whole words are under a mask.
// CHECK-LABEL: any__unit__range_0:
// CHECK: vpmaskmovd
func.func @any(%x: tensor<?x?xbf16>, %g: tensor<?xf32>) -> tensor<?x?xbf16> {
  %y = norm.layer_norm %x scale(%g : tensor<?xf32>) axes [1] epsilon inside_sqrt 1.0e-5
    : tensor<?x?xbf16> -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}
