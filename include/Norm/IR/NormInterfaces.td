//===- NormInterfaces.td - What passes ask a norm op -----------*- tablegen -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_NORMINTERFACES_TD
#define NORM_IR_NORMINTERFACES_TD

include "mlir/IR/OpBase.td"

def Norm_NormOpInterface : OpInterface<"NormOpInterface"> {
  let cppNamespace = "::mlir::norm";
  let description = [{
    The facts that decide what a normalization computes. Every pass of this
    project is written against this interface, so an op of another dialect that
    implements it (or an external model attached to one) is raised to, fused,
    configured, tiled and lowered like the ops of this dialect.

    Axes are axes of the input x, non-negative and ascending. Every ranked
    tensor operand and result is indexed by a list of axes of x, in its own
    dimension order: x, residual, y and sum by all axes, scale and shift by the
    affine axes, statistics by the kept axes.
  }];
  let methods = [
    InterfaceMethod<"The normalized input x, before the residual is added.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getInput">,
    InterfaceMethod<"What is added to x first, of x's shape; null if absent.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getResidualOrNull">,
    InterfaceMethod<"The gain, indexed by the affine axes; null if absent.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getScaleOrNull">,
    InterfaceMethod<"The offset, indexed by the affine axes; null if absent.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getShiftOrNull">,
    InterfaceMethod<"The normalized result y, of x's shape.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getNormalized">,
    InterfaceMethod<"The mean result in compute type; null if absent.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getMeanOrNull">,
    InterfaceMethod<"The statistic q (step 4) as a result; null if absent.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getVarianceOrNull">,
    InterfaceMethod<"The factor r (step 5) as a result; null if absent.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getRstdOrNull">,
    InterfaceMethod<"x + residual as a result; null if absent.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getSumOrNull">,
    InterfaceMethod<"Axes the statistics reduce: non-negative, ascending.",
      "::llvm::SmallVector<int64_t>", "getReducedAxes">,
    InterfaceMethod<"Axes of x that scale and shift index, ascending.",
      "::llvm::SmallVector<int64_t>", "getAffineAxesOrDefault">,
    InterfaceMethod<"Epsilon and its place.", "::mlir::norm::EpsilonAttr",
      "getEpsilon">,
    InterfaceMethod<"What the factor is computed from.",
      "::mlir::norm::Statistic", "getStatistic">,
    InterfaceMethod<"The type of every step after the sum.",
      "::mlir::FloatType", "getComputeTypeOrDefault">,
    InterfaceMethod<"The element type that x + residual is rounded to.",
      "::mlir::FloatType", "getSumElementType">,
    InterfaceMethod<"What is subtracted from n in the divisor of a variance.",
      "int64_t", "getCorrection">,
    InterfaceMethod<"What is added to scale in compute type, 0 or 1 by habit.",
      "double", "getScaleOffsetValue">,
    InterfaceMethod<"Where scale and shift are applied.",
      "::mlir::norm::AffineIn", "getAffineIn">,
    InterfaceMethod<"Whether the sum is rounded before it is normalized.",
      "::mlir::norm::SumRounding", "getSumRounding">,
    InterfaceMethod<"The factor where its denominator is 0.",
      "::mlir::norm::ZeroPolicy", "getZeroPolicy">,
    InterfaceMethod<"Axes of x that the dimensions of this operand index, in "
                    "its own order.",
      "::llvm::SmallVector<int64_t>", "getOperandAxes", (ins "unsigned":$operand)>,
    InterfaceMethod<"Axes of x that the dimensions of this result index.",
      "::llvm::SmallVector<int64_t>", "getResultAxes", (ins "unsigned":$result)>,
  ];
  let extraSharedClassDeclaration = [{
    /// Whether the mean is subtracted.
    bool isCentred() { return $_op.getStatistic() == Statistic::Variance; }

    /// Whether adding a constant along the reduced axes leaves y unchanged.
    bool isShiftInvariant() {
      return $_op.getStatistic() == Statistic::Variance;
    }

    /// Whether y is unchanged, in real arithmetic, when x is multiplied by a
    /// positive constant.
    bool isScaleInvariant() { return $_op.getEpsilon().isNone(); }

    /// Rank of x.
    int64_t getRank() { return $_op.getInput().getType().getRank(); }

    /// Axes of x that are not reduced, ascending.
    ::llvm::SmallVector<int64_t> getKeptAxes() {
      return ::mlir::norm::complementAxes(
          $_op.getReducedAxes(), $_op.getInput().getType().getRank());
    }

    /// Axes of x along which two elements influence each other's output: the
    /// reduced axes. An axis that is not among them may be split, sliced or
    /// batched freely.
    ::llvm::SmallVector<int64_t> getDependentAxes() {
      return $_op.getReducedAxes();
    }

    /// Product of the reduced extents, or nullopt when one is dynamic.
    ::std::optional<int64_t> getStaticReducedCount() {
      return ::mlir::norm::staticExtent($_op.getInput().getType(),
                                        $_op.getReducedAxes());
    }

    /// An upper bound of the Euclidean norm of y over one set of reduced
    /// elements when neither scale nor shift is given, in real arithmetic:
    /// sqrt(n) for a mean square, sqrt(n - correction) for a variance, 1 for a
    /// sum of squares. nullopt if n is dynamic, or scale or shift is there.
    ::std::optional<double> getOutputNormBound() {
      return ::mlir::norm::outputNormBound($_op);
    }
  }];
}

#endif // NORM_IR_NORMINTERFACES_TD
