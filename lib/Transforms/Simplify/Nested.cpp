//===- Nested.cpp - A norm of a norm -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// C13. With s the statistic of x and N_e(x) = x / sqrt(s + e), that of a *
// N_e(x) is a^2 * s / (s + e), so normalizing again with epsilon e2 gives, for
// t = e2 / a^2,
//
//   sign(a) * x / sqrt(s + t * (s + e))
//     = sign(a) / sqrt(1 + t) * N_e'(x),  e' = e * t / (1 + t).
//
// It holds for mean squares, for variances, and for the mean square of what a
// centred norm returns, whose mean is 0.
//
//===----------------------------------------------------------------------===//

#include "Parts.h"
#include "Simplify.h"

#include "Norm/Analysis/Constants.h"
#include <cmath>

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::simplify;

/// Whether the op normalizes by statistics of its own, whole rows at a time.
static bool isPlainNorm(NormOpInterface op) {
  return op && !op.hasGivenStatistics() && !op.getGroupedAxis() &&
         !op.getRunningUpdate() && op.getStatistic() != Statistic::SumSquare;
}

static bool isInside(NormOpInterface op) {
  EpsilonAttr epsilon = op.getEpsilon();
  return epsilon.isNone() ||
         epsilon.getPlacement() == EpsilonPlacement::InsideSqrt;
}

namespace {
/// C13: two norms over the same axes are one.
struct MergeNestedNorms : RulePattern<NormOpInterface> {
  MergeNestedNorms(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C13", policy, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override;

private:
  LogicalResult checkForm(NormOpInterface op, NormOpInterface inner) const;
  LogicalResult checkBetween(NormOpInterface op, NormOpInterface inner) const;
};
} // namespace

/// What the identity needs of both norms.
LogicalResult MergeNestedNorms::checkForm(NormOpInterface op,
                                          NormOpInterface inner) const {
  if (failed(rule.require(op, "axes",
                          inner.getReducedAxes() == op.getReducedAxes(),
                          "the two norms reduce different axes")) ||
      failed(rule.require(op, "kind",
                          !op.isCentred() || inner.isCentred() ||
                              op.getEpsilon().getDouble() == 0.0,
                          "the second norm subtracts a mean that the first "
                          "one left, under an epsilon of its own")) ||
      failed(rule.require(op, "placement", isInside(op) && isInside(inner),
                          "expected both epsilons inside the square root")) ||
      failed(rule.require(op, "correction",
                          op.getCorrection() == 0 && inner.getCorrection() == 0,
                          "expected correction 0 in both")))
    return failure();
  return rule.require(op, "residual",
                      !op.getResidualOrNull() && !inner.getResidualOrNull(),
                      "one of the norms adds a residual");
}

/// What may stand between the two, and what may be read of the second.
LogicalResult MergeNestedNorms::checkBetween(NormOpInterface op,
                                             NormOpInterface inner) const {
  bool hasShift = inner.getShiftOrNull() &&
                  matchConstantScalar(inner.getShiftOrNull()) != 0.0;
  if (failed(
          rule.require(op, "shift", !hasShift, "the first norm adds a shift")))
    return failure();
  std::optional<double> gain = splatGain(inner);
  bool isUsable = gain && std::isfinite(*gain) && *gain != 0.0;
  if (failed(rule.require(op, "gain-between", isUsable,
                          "expected a constant gain, the same everywhere, of "
                          "the first norm")))
    return failure();
  NormResults results = NormResults::get(op);
  if (failed(rule.require(op, "statistics",
                          !isUsed(results.mean) && !isUsed(results.variance) &&
                              !isUsed(results.rstd),
                          "a statistic of the second norm is read")))
    return failure();
  bool sameTypes =
      op.getComputeTypeOrDefault() == inner.getComputeTypeOrDefault() &&
      (op.getAffineIn() == AffineIn::Compute ||
       op.getInput().getType() == inner.getInput().getType());
  if (failed(rule.require(op, "type", sameTypes,
                          "the two norms compute in different types")))
    return failure();
  // Where x is 0 the first norm gives NaN, but one norm would see only that
  // all elements are equal.
  bool isDistinct = op.isCentred() && !inner.isCentred() &&
                    op.getZeroPolicy() == ZeroPolicy::Zero &&
                    inner.getZeroPolicy() != ZeroPolicy::Zero &&
                    inner.getEpsilon().getDouble() == 0.0;
  return rule.require(op, "zero", !isDistinct,
                      "a row of zeros is NaN, one of equal elements is not");
}

LogicalResult
MergeNestedNorms::matchAndRewrite(NormOpInterface op,
                                  PatternRewriter &rewriter) const {
  auto inner = op.getInput().getDefiningOp<NormOpInterface>();
  if (!isPlainNorm(op) || !isPlainNorm(inner) ||
      inner.getNormalized() != op.getInput())
    return failure();
  if (failed(rule.requireReal(op)) || failed(checkForm(op, inner)) ||
      failed(checkBetween(op, inner)))
    return failure();

  double first = inner.getEpsilon().getDouble();
  double second = op.getEpsilon().getDouble();
  double gain = splatGain(inner).value_or(1.0);
  double ratio = second / (gain * gain);
  double epsilon = first * ratio / (1.0 + ratio);
  if (failed(rule.require(
          op, "epsilon",
          isUsableEpsilon(epsilon, first > 0.0 && second > 0.0 ? 1.0 : 0.0,
                          op.getComputeTypeOrDefault()),
          "epsilon would become " + Twine(numberText(epsilon)) +
              ", which the compute type does not hold")))
    return failure();
  NormContract contract = NormContract::get(op);
  double factor = std::copysign(1.0 / std::sqrt(1.0 + ratio), gain);
  if (failed(rule.require(op, "gain", canScaleGain(contract, factor),
                          "the gain of the second norm is no constant, or is "
                          "applied to a rounded value")))
    return failure();

  contract.x = inner.getInput();
  contract.wantsMean = contract.wantsVariance = contract.wantsRstd = false;
  contract.epsilon = EpsilonAttr::get(
      op->getContext(),
      epsilon == 0.0 ? EpsilonPlacement::None : EpsilonPlacement::InsideSqrt,
      epsilon);
  // With an epsilon, a denominator is never 0.
  auto neverDividesByZero = [](NormOpInterface norm) {
    return norm.getZeroPolicy() == ZeroPolicy::Zero ||
           norm.getEpsilon().getDouble() > 0.0;
  };
  contract.zeroPolicy = neverDividesByZero(op) && neverDividesByZero(inner)
                            ? ZeroPolicy::Zero
                            : ZeroPolicy::IEEE;
  if (epsilon > 0.0)
    contract.zeroPolicy = ZeroPolicy::IEEE;
  scaleGain(rewriter, op.getLoc(), contract, factor,
            op.getAffineAxesOrDefault());
  // The mean that the first norm subtracted is subtracted still.
  NormOpInterface kind = inner.isCentred() ? inner : op;
  Operation *built = kind.rebuild(rewriter, op.getLoc(), contract);
  if (!built)
    return failure();
  built->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  rule.applied(op, "merged with the norm whose result it normalizes");
  replaceNorm(rewriter, op, NormResults::get(cast<NormOpInterface>(built)));
  return success();
}

void norm::populateNestedNormPatterns(RewritePatternSet &patterns,
                                      const RewritePolicy &policy) {
  patterns.add<MergeNestedNorms>(patterns.getContext(), policy);
}
