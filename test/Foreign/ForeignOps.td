//===- ForeignOps.td - An embedder's own norms -----------------*- tablegen -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

include "Norm/IR/NormInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Foreign_Dialect : Dialect {
  let name = "foreign";
  let cppNamespace = "::foreign";
  // Its ops speak in norm's attributes.
  let dependentDialects = ["::mlir::norm::NormDialect"];
}

def Foreign_Tensor : Type<IsRankedTensorTypePred, "ranked tensor",
                          "::mlir::RankedTensorType">;

/// Implements the interface itself. Its operands come in another order than
/// those of the norm dialect, and its gain is 1 + g.
def Foreign_RmsOp : Op<Foreign_Dialect, "rms",
    [NoMemoryEffect, Norm_NormOpInterface]> {
  let arguments = (ins Foreign_Tensor:$gain, Foreign_Tensor:$x);
  let results = (outs Foreign_Tensor:$y, Foreign_Tensor:$factor);
  let assemblyFormat = [{
    $x `times` $gain attr-dict `:` type($x) `times` type($gain) `->` type($y) `,`
    type($factor)
  }];
  let extraClassDeclaration = [{
    using Tensor = ::mlir::TypedValue<::mlir::RankedTensorType>;
    Tensor getInput() { return getX(); }
    Tensor getNormalized() { return getY(); }
    Tensor getScaleOrNull() { return getGain(); }
    Tensor getRstdOrNull() { return getFactor(); }
    double getScaleOffsetValue() { return 1.0; }
    ::mlir::norm::Statistic getStatistic() {
      return ::mlir::norm::Statistic::MeanSquare;
    }
    ::mlir::norm::EpsilonAttr getEpsilon();
    ::llvm::SmallVector<int64_t> getReducedAxes() {
      return {getX().getType().getRank() - 1};
    }
    ::llvm::SmallVector<int64_t> getOperandAxes(unsigned operand) {
      return operand == 0 ? getReducedAxes() : getAllAxes();
    }
    ::llvm::SmallVector<int64_t> getResultAxes(unsigned result) {
      return result == 0 ? getAllAxes() : getKeptAxes();
    }
    ::llvm::SmallVector<int64_t> getAllAxes();
  }];
}

/// Knows nothing of norms; models are attached from outside.
def Foreign_CentreOp : Op<Foreign_Dialect, "centre", [NoMemoryEffect]> {
  let arguments = (ins Foreign_Tensor:$x);
  let results = (outs Foreign_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($y)";
}
