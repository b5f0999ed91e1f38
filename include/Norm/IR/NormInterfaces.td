//===- NormInterfaces.td - What passes ask a norm op -----------*- tablegen -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_NORMINTERFACES_TD
#define NORM_IR_NORMINTERFACES_TD

include "mlir/IR/OpBase.td"

def Norm_RowOpInterface : OpInterface<"RowOpInterface"> {
  let cppNamespace = "::mlir::norm";
  let description = [{
    What tiling and configuration ask of an op over one tensor x ("the input"):
    which of its axes belong together, and which axes of x index each operand
    and result. Every op of this dialect implements it, and so does an op of
    another dialect that wants `norm-configure`, `norm-tile` and the methods of
    TilingInterface.

    Axes are axes of x, non-negative and ascending. The iteration space has one
    loop per axis of x. Along the grouped axis, if there is one, a step of the
    loop is a group of elements of x; statistics have one element a group.
  }];
  let methods = [
    InterfaceMethod<"The tensor x whose axes are the op's axes.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getInput">,
    InterfaceMethod<"Axes that the statistics reduce, the grouped axis among "
                    "them: non-negative, ascending.",
      "::llvm::SmallVector<int64_t>", "getReducedAxes">,
    InterfaceMethod<"The type of every step of the arithmetic; by default the widest "
                    "of f32 and x's.",
      "::mlir::FloatType", "getComputeTypeOrDefault", (ins), "",
      [{ return ::mlir::norm::defaultComputeType($_op.getOperation()); }]>,
    InterfaceMethod<"Axes of x that the dimensions of this operand index, in "
                    "its own order; empty for a scalar.",
      "::llvm::SmallVector<int64_t>", "getOperandAxes", (ins "unsigned":$operand)>,
    InterfaceMethod<"Axes of x that the dimensions of this result index.",
      "::llvm::SmallVector<int64_t>", "getResultAxes", (ins "unsigned":$result)>,
    InterfaceMethod<"Axes that a tile must cover wholly. The default: all along "
                    "which a result does not extend, and the reduced axes but "
                    "the grouped one.",
      "::llvm::SmallVector<int64_t>", "getTiedAxes", (ins), "",
      [{ return ::mlir::norm::defaultTiedAxes($_op.getOperation()); }]>,
    InterfaceMethod<"The axis that is split into groups; nullopt if none is.",
      "::std::optional<int64_t>", "getGroupedAxis", (ins), "",
      [{ return ::std::nullopt; }]>,
    InterfaceMethod<"The number of groups along the grouped axis.",
      "int64_t", "getNumGroups", (ins), "", [{ return 1; }]>,
    InterfaceMethod<"Makes this op, a tile, one of so many groups.",
      "void", "setNumGroups", (ins "int64_t":$groups), "",
      [{ (void)groups; }]>,
    InterfaceMethod<"Whether an operand is a statistic: one element a group "
                    "along the grouped axis.",
      "bool", "isStatisticOperand", (ins "unsigned":$operand), "",
      [{ return false; }]>,
    InterfaceMethod<"The same for a result.",
      "bool", "isStatisticResult", (ins "unsigned":$result), "",
      [{ return false; }]>,
  ];
  let extraSharedClassDeclaration = [{
    /// Rank of x.
    int64_t getRank() { return $_op.getInput().getType().getRank(); }

    /// Axes of x that are not reduced, ascending.
    ::llvm::SmallVector<int64_t> getKeptAxes() {
      return ::mlir::norm::complementAxes(
          $_op.getReducedAxes(), $_op.getInput().getType().getRank());
    }

    /// Axes that index a statistic: the kept ones and the grouped one.
    ::llvm::SmallVector<int64_t> getStatisticAxes() {
      return ::mlir::norm::statisticAxes($_op);
    }

    /// Product of the reduced extents (of one group of the grouped axis), or
    /// nullopt when one is dynamic and none is 0.
    ::std::optional<int64_t> getStaticReducedCount() {
      return ::mlir::norm::staticReducedCount($_op);
    }
  }];
}

def Norm_NormOpInterface : OpInterface<"NormOpInterface",
                                       [Norm_RowOpInterface]> {
  let cppNamespace = "::mlir::norm";
  let description = [{
    The facts that decide what a normalization computes. Every pass of this
    project is written against this interface, so an op of another dialect that
    implements it (or an external model attached to one) is raised to, fused,
    configured, tiled and lowered like the ops of this dialect.

    x, residual, y and sum are indexed by all axes of x, scale and shift by the
    affine axes, statistics by the kept axes.
  }];
  let methods = [
    InterfaceMethod<"What is added to x first, of x's shape; null if absent.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getResidualOrNull",
      (ins), "", [{ return nullptr; }]>,
    InterfaceMethod<"The gain, indexed by the affine axes; null if absent.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getScaleOrNull",
      (ins), "", [{ return nullptr; }]>,
    InterfaceMethod<"The offset, indexed by the affine axes; null if absent.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getShiftOrNull",
      (ins), "", [{ return nullptr; }]>,
    InterfaceMethod<"The normalized result y, of x's shape.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getNormalized">,
    InterfaceMethod<"The mean result in compute type; null if absent.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getMeanOrNull",
      (ins), "", [{ return nullptr; }]>,
    InterfaceMethod<"The statistic q (step 4) as a result; null if absent.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getVarianceOrNull",
      (ins), "", [{ return nullptr; }]>,
    InterfaceMethod<"The factor r (step 5) as a result; null if absent.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getRstdOrNull",
      (ins), "", [{ return nullptr; }]>,
    InterfaceMethod<"x + residual as a result; null if absent.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getSumOrNull",
      (ins), "", [{ return nullptr; }]>,
    InterfaceMethod<"Axes of x that scale and shift index, ascending.",
      "::llvm::SmallVector<int64_t>", "getAffineAxesOrDefault", (ins), "",
      [{ return ::mlir::norm::defaultAffineAxes($_op.getOperation()); }]>,
    InterfaceMethod<"Epsilon and its place.", "::mlir::norm::EpsilonAttr",
      "getEpsilon">,
    InterfaceMethod<"What the factor is computed from.",
      "::mlir::norm::Statistic", "getStatistic">,
    InterfaceMethod<"The element type that x + residual is rounded to.",
      "::mlir::FloatType", "getSumElementType", (ins), "",
      [{ return ::mlir::norm::defaultSumElementType($_op.getOperation()); }]>,
    InterfaceMethod<"What is subtracted from n in the divisor of a variance.",
      "int64_t", "getCorrection", (ins), "",
      [{ return 0; }]>,
    InterfaceMethod<"What is added to scale in compute type, 0 or 1 by habit.",
      "double", "getScaleOffsetValue", (ins), "",
      [{ return 0.0; }]>,
    InterfaceMethod<"Where scale and shift are applied.",
      "::mlir::norm::AffineIn", "getAffineIn", (ins), "",
      [{ return ::mlir::norm::AffineIn::Compute; }]>,
    InterfaceMethod<"Whether the sum is rounded before it is normalized.",
      "::mlir::norm::SumRounding", "getSumRounding", (ins), "",
      [{ return ::mlir::norm::SumRounding::Stored; }]>,
    InterfaceMethod<"The factor where its denominator is 0.",
      "::mlir::norm::ZeroPolicy", "getZeroPolicy", (ins), "",
      [{ return ::mlir::norm::ZeroPolicy::IEEE; }]>,
    InterfaceMethod<"The mean that is subtracted, where the op is given one "
                    "and computes no statistics; null otherwise.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getGivenMeanOrNull", (ins),
      "", [{ return nullptr; }]>,
    InterfaceMethod<"The variance given beside it; null if none is.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getGivenVarianceOrNull",
      (ins), "", [{ return nullptr; }]>,
    InterfaceMethod<"The running statistics that the op updates.",
      "::mlir::norm::RunningUpdate", "getRunningUpdate", (ins), "", [{ return {}; }]>,
    InterfaceMethod<"The same op with other facts, inserted at the builder's "
                    "place; null if the op cannot be rebuilt.",
      "::mlir::Operation *", "rebuild",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "const ::mlir::norm::NormContract &":$contract), "",
      [{ return nullptr; }]>,
  ];
  let extraSharedClassDeclaration = [{
    /// Whether the mean is subtracted.
    bool isCentred() { return $_op.getStatistic() == Statistic::Variance; }

    /// Whether adding a constant along the reduced axes leaves y unchanged.
    bool isShiftInvariant() {
      return $_op.getStatistic() == Statistic::Variance &&
             !$_op.getGivenVarianceOrNull();
    }

    /// Whether y is unchanged, in real arithmetic, when x is multiplied by a
    /// positive constant.
    bool isScaleInvariant() {
      return $_op.getEpsilon().isNone() && !$_op.getGivenVarianceOrNull();
    }

    /// Whether the statistics are operands: nothing is reduced.
    bool hasGivenStatistics() {
      return $_op.getGivenVarianceOrNull() != nullptr;
    }

    /// Axes of x along which two elements influence each other's output: the
    /// reduced axes, none where the statistics are given. An axis that is not
    /// among them may be split, sliced or batched freely.
    ::llvm::SmallVector<int64_t> getDependentAxes() {
      return $_op.getGivenVarianceOrNull() ? ::llvm::SmallVector<int64_t>()
                                           : $_op.getReducedAxes();
    }

    /// An upper bound of the Euclidean norm of y over one set of reduced
    /// elements when neither scale nor shift is given, in real arithmetic:
    /// sqrt(n) for a mean square, sqrt(n - correction) for a variance, 1 for a
    /// sum of squares. nullopt if n is dynamic, scale or shift is there, or the
    /// statistics are given.
    ::std::optional<double> getOutputNormBound() {
      return ::mlir::norm::outputNormBound($_op);
    }
  }];
}

def Norm_NormBackwardOpInterface : OpInterface<"NormBackwardOpInterface",
                                               [Norm_RowOpInterface]> {
  let cppNamespace = "::mlir::norm";
  let description = [{
    The gradient of a norm: dy and what the forward op was given, to dx, dscale
    and dshift. dy, dsum and dx are indexed by all axes of x, dscale and dshift
    by the affine axes, the saved statistics by the kept axes.
  }];
  let methods = [
    InterfaceMethod<"The forward op's facts: x, residual, scale, axes, epsilon "
                    "and the attributes, resolved.",
      "::mlir::norm::NormContract", "getForwardContract">,
    InterfaceMethod<"What the factor is computed from.",
      "::mlir::norm::Statistic", "getStatistic">,
    InterfaceMethod<"Whether mean and variance are constants, not functions of "
                    "x: the gradient has no statistic terms.",
      "bool", "hasConstantStatistics", (ins), "", [{ return false; }]>,
    InterfaceMethod<"The gradient of y, of x's shape.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getDy">,
    InterfaceMethod<"The gradient of sum, of x's shape; null if absent.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getDsumOrNull">,
    InterfaceMethod<"The saved mean; null to have it computed again.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getMeanOrNull">,
    InterfaceMethod<"The saved statistic q; null to have it computed again.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getVarianceOrNull">,
    InterfaceMethod<"The saved factor r; null to have it computed again.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getRstdOrNull">,
    InterfaceMethod<"The gradient of x (and of residual).",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getDx">,
    InterfaceMethod<"The gradient of scale as a result; null if absent.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getDscaleOrNull">,
    InterfaceMethod<"The gradient of shift as a result; null if absent.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getDshiftOrNull">,
    InterfaceMethod<"The same op with other facts, inserted at the builder's "
                    "place; null if the op cannot be rebuilt.",
      "::mlir::Operation *", "rebuild",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "const ::mlir::norm::BackwardContract &":$contract), "",
      [{ return nullptr; }]>,
  ];
}

#endif // NORM_IR_NORMINTERFACES_TD
