// What the CPU pipeline makes can be translated to LLVM IR, functions of 16-bit
// values among it.
// RUN: norm-opt %s --norm-to-cpu=bf16=true | mlir-translate --mlir-to-llvmir | FileCheck %s

// CHECK: define void @silu(
// CHECK: fpext <16 x bfloat>
// CHECK: @llvm.exp.v16f32(
func.func @silu(%x: tensor<4x64xbf16>) -> tensor<4x64xbf16> {
  %one = arith.constant dense<1.0> : tensor<4x64xbf16>
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x64xbf16> -> tensor<4x64xbf16>
  %n = arith.negf %y : tensor<4x64xbf16>
  %e = math.exp %n : tensor<4x64xbf16>
  %d = arith.addf %e, %one : tensor<4x64xbf16>
  %z = arith.divf %y, %d : tensor<4x64xbf16>
  return %z : tensor<4x64xbf16>
}
