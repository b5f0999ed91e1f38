//===- Constant.cpp - Norms whose result is known -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluate.h"
#include "Norm/Analysis/Constants.h"
#include "Simplify.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;
using namespace mlir::norm;

/// Largest x that is evaluated.
static constexpr int64_t kMaxElements = 4096;

bool norm::isFactorOfZeroFinite(NormOpInterface op) {
  if (op.getZeroPolicy() == ZeroPolicy::Zero)
    return true;
  FloatType compute = op.getComputeTypeOrDefault();
  EpsilonAttr epsilon = op.getEpsilon();
  double value = roundedTo(epsilon.getDouble(), compute);
  bool isInside = epsilon.getPlacement() == EpsilonPlacement::InsideSqrt ||
                  epsilon.getPlacement() == EpsilonPlacement::MaxInside;
  return std::isfinite(
      roundedTo(1.0 / (isInside ? std::sqrt(value) : value), compute));
}

namespace {
/// C28: one element, its own mean subtracted, is 0.
struct FoldSingleElement : RulePattern<NormOpInterface> {
  FoldSingleElement(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C28", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    if (!op.isCentred() || op.hasGivenStatistics() ||
        op.getStaticReducedCount() != 1 || op.getNormalized().use_empty())
      return failure();
    if (failed(rule.requireNoNaN(op)) || failed(rule.requireNoInf(op)))
      return failure();
    bool isPlain = !op.getScaleOrNull() && !op.getShiftOrNull();
    if (!isPlain && mayHoldZero(op.getShiftOrNull()) &&
        failed(rule.requireNoSignedZero(op)))
      return failure();
    if (failed(rule.require(op, "epsilon", isFactorOfZeroFinite(op),
                            "the factor of a variance of 0 is infinite in the "
                            "compute type: 0 times it is NaN")))
      return failure();
    rule.applied(op, "replaced the result of a single element by the shift");
    replaceNormalized(rewriter, op, broadcastShift(rewriter, op));
    return success();
  }
};

/// C35: a norm of constants is a constant.
struct FoldConstants : RulePattern<NormOpInterface> {
  FoldConstants(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C35", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    if (!llvm::all_of(op->getOperands(), [](Value operand) {
          return matchConstant(operand) || matchConstantScalar(operand);
        }))
      return failure();
    RankedTensorType xType = matchConstant(op.getInput())->getType();
    if (failed(rule.requireReal(op)) ||
        failed(rule.require(op, "size", xType.getNumElements() <= kMaxElements,
                            "expected at most " + Twine(kMaxElements) +
                                " elements, got " +
                                Twine(xType.getNumElements()))))
      return failure();
    auto results = evaluateByReference(op);
    if (!results)
      return rewriter.notifyMatchFailure(op, "the op cannot be rebuilt");
    // The bits of a NaN are the target's.
    for (ArrayRef<double> elements : *results)
      if (llvm::any_of(elements,
                       [](double value) { return std::isnan(value); }))
        return rule.refuse(op, "not-nan", "a result is NaN");
    rule.applied(op, "evaluated a norm of constants");
    replace(rewriter, op, xType, *results);
    return success();
  }

private:
  static void replace(PatternRewriter &rewriter, NormOpInterface op,
                      RankedTensorType xType,
                      ArrayRef<SmallVector<double>> results) {
    Location loc = op->getLoc();
    SmallVector<Value> constants;
    for (OpResult result : op->getResults()) {
      auto type = cast<RankedTensorType>(result.getType());
      SmallVector<int64_t> shape;
      unsigned number = result.getResultNumber();
      for (int64_t axis : op.getResultAxes(number))
        shape.push_back(op.isStatisticResult(number) &&
                                axis == op.getGroupedAxis()
                            ? op.getNumGroups()
                            : xType.getDimSize(axis));
      Value constant =
          createConstant(rewriter, loc, type.clone(shape), results[number]);
      if (constant.getType() != type)
        constant = tensor::CastOp::create(rewriter, loc, type, constant);
      constants.push_back(constant);
    }
    rewriter.replaceOp(op, constants);
  }
};
} // namespace

void norm::populateSimplifyConstantPatterns(RewritePatternSet &patterns,
                                            const RewritePolicy &policy) {
  patterns.add<FoldSingleElement, FoldConstants>(patterns.getContext(), policy);
}
