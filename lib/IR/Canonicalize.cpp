//===- Canonicalize.cpp - Rewrites that lose no information -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Canonicalize.h"
#include "Norm/Analysis/Constants.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::norm;

bool norm::correctsMeanAgain(NormOpInterface op, NormContract contract) {
  auto width = [](Type type) {
    return getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  };
  unsigned work = contract.computeType.getWidth();
  if (!op.isCentred() || op.hasGivenStatistics() || work < 32)
    return false;
  unsigned x = width(contract.x.getType());
  if (!contract.residual)
    return x >= work;
  if (contract.sumRounding == SumRounding::Stored)
    return (contract.sumType ? contract.sumType.getWidth() : x) >= work;
  return std::max(x, width(contract.residual.getType())) >= work;
}

namespace {
/// C3: a gain that is 1 everywhere multiplies by nothing.
struct DropUnitScale : RulePattern<NormOpInterface> {
  DropUnitScale(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C3", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    std::optional<ConstantTensor> scale = matchConstant(op.getScaleOrNull());
    if (!scale || !scale->isSplat())
      return failure();
    // As the op forms it: in the compute type.
    FloatType type = op.getComputeTypeOrDefault();
    double gain = roundedTo(roundedTo(scale->getSplat(), type) +
                                roundedTo(op.getScaleOffsetValue(), type),
                            type);
    if (failed(rule.require(op, "one", gain == 1.0,
                            "expected scale + offset of 1, got " +
                                Twine(std::to_string(gain)))))
      return failure();
    NormContract contract = NormContract::get(op);
    contract.scale = nullptr;
    contract.scaleOffset = 0.0;
    if (!contract.shift)
      contract.affineAxes.reset();
    rule.applied(op, "dropped a gain of 1");
    return replaceByContract(rewriter, op, contract);
  }
};

/// C4: -0 added changes nothing, not even the sign of a zero. (+0 does: see
/// norm-simplify.)
struct DropNegativeZeroShift : RulePattern<NormOpInterface> {
  DropNegativeZeroShift(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C4", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    std::optional<ConstantTensor> shift = matchConstant(op.getShiftOrNull());
    if (!shift || !shift->isSplat() || shift->getSplat() != 0.0 ||
        !std::signbit(shift->getSplat()))
      return failure();
    NormContract contract = NormContract::get(op);
    contract.shift = nullptr;
    if (!contract.scale)
      contract.affineAxes.reset();
    rule.applied(op, "dropped a shift of -0");
    return replaceByContract(rewriter, op, contract);
  }
};

/// scale + offset as the ops form it, in `type`, for every element; nullopt
/// unless each is a number of the constant's own type. With `once`, the sum
/// must be the same when it is formed without rounding.
static std::optional<SmallVector<double>>
foldedGain(const ConstantTensor &scale, double offset, FloatType type,
           bool once) {
  auto own = cast<FloatType>(scale.getType().getElementType());
  SmallVector<double> gains;
  for (double value : scale.getValues()) {
    double gain =
        roundedTo(roundedTo(value, type) + roundedTo(offset, type), type);
    if (roundedTo(gain, own) != gain || (once && value + offset != gain))
      return std::nullopt;
    gains.push_back(gain);
  }
  return gains;
}

/// C6: a constant gain takes in its offset.
struct FoldScaleOffset : RulePattern<NormOpInterface> {
  FoldScaleOffset(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C6", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    NormContract contract = NormContract::get(op);
    std::optional<ConstantTensor> scale = matchConstant(contract.scale);
    if (!scale || contract.scaleOffset == 0.0)
      return failure();
    auto gains = foldedGain(*scale, contract.scaleOffset, contract.computeType,
                            contract.affineIn == AffineIn::Result);
    if (!gains)
      return rule.refuse(op, "exact", kInexact);
    contract.scale =
        createConstant(rewriter, op->getLoc(), scale->getType(), *gains);
    contract.scaleOffset = 0.0;
    rule.applied(op, "added the offset to a constant gain");
    return replaceByContract(rewriter, op, contract);
  }

  static constexpr StringLiteral kInexact =
      "scale + offset is no number of the constant's type";
};

/// C6 on gradients, which form the gain in f32 at least.
struct FoldBackwardScaleOffset : RulePattern<NormBackwardOpInterface> {
  FoldBackwardScaleOffset(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C6", policy) {}

  LogicalResult matchAndRewrite(NormBackwardOpInterface op,
                                PatternRewriter &rewriter) const override {
    BackwardContract contract = BackwardContract::get(op);
    NormContract &forward = contract.forward;
    std::optional<ConstantTensor> scale = matchConstant(forward.scale);
    if (!scale || forward.scaleOffset == 0.0)
      return failure();
    FloatType type = forward.computeType;
    if (type.getWidth() < 32)
      type = rewriter.getF32Type();
    auto gains = foldedGain(*scale, forward.scaleOffset, type, /*once=*/false);
    if (!gains)
      return rule.refuse(op, "exact", FoldScaleOffset::kInexact);
    forward.scale =
        createConstant(rewriter, op->getLoc(), scale->getType(), *gains);
    forward.scaleOffset = 0.0;
    rule.applied(op, "added the offset to a constant gain");
    return replaceByContract(rewriter, op, contract);
  }
};

/// Whether an epsilon of 0 stands inside or outside of the root.
static bool isAddedZero(EpsilonAttr epsilon) {
  return (epsilon.getPlacement() == EpsilonPlacement::InsideSqrt ||
          epsilon.getPlacement() == EpsilonPlacement::OutsideSqrt) &&
         epsilon.getDouble() == 0.0;
}

static EpsilonAttr noEpsilon(MLIRContext *context) {
  return EpsilonAttr::get(context, EpsilonPlacement::None, 0.0);
}

/// C29: 0 added to a statistic or to its root is no epsilon.
struct DropZeroEpsilon : RulePattern<NormOpInterface> {
  DropZeroEpsilon(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C29", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    if (!isAddedZero(op.getEpsilon()))
      return failure();
    // Only a variance that is given can be -0, which +0 makes +0.
    bool isPositive = !op.hasGivenStatistics() || rule.getPolicy().nsz ||
                      op.getZeroPolicy() == ZeroPolicy::Zero;
    if (failed(rule.require(op, "variance-not-negative-zero", isPositive,
                            "the variance is given and may be -0")))
      return failure();
    NormContract contract = NormContract::get(op);
    contract.epsilon = noEpsilon(op->getContext());
    rule.applied(op, "dropped an epsilon of 0");
    return replaceByContract(rewriter, op, contract);
  }
};

/// C29 on gradients. Outside of the root the gradient divides by it once more
/// than without epsilon.
struct DropZeroBackwardEpsilon : RulePattern<NormBackwardOpInterface> {
  DropZeroBackwardEpsilon(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C29", policy) {}

  LogicalResult matchAndRewrite(NormBackwardOpInterface op,
                                PatternRewriter &rewriter) const override {
    BackwardContract contract = BackwardContract::get(op);
    NormContract &forward = contract.forward;
    if (!isAddedZero(forward.epsilon))
      return failure();
    bool isPositive = !contract.variance || contract.rstd ||
                      rule.getPolicy().nsz ||
                      forward.zeroPolicy == ZeroPolicy::Zero;
    bool isInside =
        forward.epsilon.getPlacement() == EpsilonPlacement::InsideSqrt;
    if (failed(rule.require(op, "variance-not-negative-zero", isPositive,
                            "the variance is given and may be -0")) ||
        failed(rule.require(op, "inside-in-gradients", isInside,
                            "the gradient divides by the root where epsilon "
                            "stands outside of it")))
      return failure();
    forward.epsilon = noEpsilon(op->getContext());
    rule.applied(op, "dropped an epsilon of 0");
    return replaceByContract(rewriter, op, contract);
  }
};
} // namespace

void norm::populateCanonicalizeNormPatterns(RewritePatternSet &patterns,
                                            const RewritePolicy &policy) {
  patterns
      .add<DropUnitScale, DropNegativeZeroShift, FoldScaleOffset,
           FoldBackwardScaleOffset, DropZeroEpsilon, DropZeroBackwardEpsilon>(
          patterns.getContext(), policy);
  populateUnusedResultPatterns(patterns, policy);
  populateUnitAxisPatterns(patterns, policy);
  populateCastPatterns(patterns, policy);
}

void NormDialect::getCanonicalizationPatterns(
    RewritePatternSet &results) const {
  RewritePolicy policy;
  policy.pass = "canonicalize";
  populateCanonicalizeNormPatterns(results, policy);
}
