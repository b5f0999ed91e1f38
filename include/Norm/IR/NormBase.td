//===- NormBase.td - The norm dialect --------------------------*- tablegen -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_NORMBASE_TD
#define NORM_IR_NORMBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/DialectBase.td"

def Norm_Dialect : Dialect {
  let name = "norm";
  let cppNamespace = "::mlir::norm";
  let summary = "Normalization with explicit axes, epsilon and affine semantics";
  let description = [{
    One op per normalization that networks use. Each op states which axes its
    statistics reduce, where epsilon enters, in which type the arithmetic runs
    and where results are rounded, so that no pass has to guess. Ops have value
    semantics on ranked tensors; statistics are optional results.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasCanonicalizer = 1;
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

#endif // NORM_IR_NORMBASE_TD
