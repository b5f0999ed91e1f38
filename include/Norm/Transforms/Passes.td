//===- Passes.td - Passes on norm ops --------------------------*- tablegen -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_TRANSFORMS_PASSES_TD
#define NORM_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerNormToLinalgPass : Pass<"norm-lower-to-linalg"> {
  let summary = "decompose norm ops to linalg, whole or in a tile";
  let description = [{
    Replaces each norm op by `linalg.generic` ops on tensors: the sum, the
    statistics (corrected two-pass where the op subtracts a mean), and one
    elementwise op for the rest. Works on a whole op as on a tile of it. The
    order of the sums is the consumer's: `norm-vectorize` gives them a fixed,
    blocked one, plain loops add one element after the other.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"
  ];
}

#endif // NORM_TRANSFORMS_PASSES_TD
