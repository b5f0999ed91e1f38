//===- Inference.cpp - Given statistics as numbers -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Simplify.h"

#include "../Fold/Contraction.h"
#include "../Fold/Parameters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include <cmath>

using namespace mlir;
using namespace mlir::norm;

/// x * factor + bias, or (x - mean) * factor + bias where `mean` is there.
static Value buildAffine(RewriterBase &rewriter, NormOpInterface op,
                         ArrayRef<SmallVector<double>> constants) {
  Location loc = op->getLoc();
  FloatType computeType = op.getComputeTypeOrDefault();
  auto channel = RankedTensorType::get(
      op.getGivenMeanOrNull().getType().getShape(), computeType);
  int64_t rank = op.getInput().getType().getRank();
  SmallVector<int64_t> axes = complementAxes(op.getReducedAxes(), rank);
  SmallVector<Value> inputs = {op.getInput()};
  SmallVector<AffineMap> maps = {rewriter.getMultiDimIdentityMap(rank)};
  for (const SmallVector<double> &values : constants) {
    inputs.push_back(createConstant(rewriter, loc, channel, values));
    maps.push_back(fold::mapOver(rewriter.getContext(), rank, axes));
  }
  auto resultType =
      cast<FloatType>(getElementTypeOrSelf(op.getNormalized().getType()));
  return fold::buildElementwise(
      rewriter, loc, inputs, maps, op.getInput(), resultType,
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        Value x = castFloat(nested, loc, args[0], computeType);
        args = args.drop_front();
        if (constants.size() == 3) {
          x = arith::SubFOp::create(nested, loc, x, args[0]);
          args = args.drop_front();
        }
        Value scaled = arith::MulFOp::create(nested, loc, x, args[0]);
        Value sum = arith::AddFOp::create(nested, loc, scaled, args[1]);
        return castFloat(nested, loc, sum, resultType);
      });
}

/// The shift when a mean is subtracted that is rounded to `type`: what rounding
/// takes off the mean is multiplied here.
static SmallVector<double> shiftOfRest(const fold::GivenNorm &norm,
                                       FloatType type) {
  SmallVector<double> shifts;
  for (auto [mean, factor, shift] :
       llvm::zip_equal(norm.mean, norm.factor, norm.shift))
    shifts.push_back(shift - (mean - roundedTo(mean, type)) * factor);
  return shifts;
}

namespace {
/// C16: a norm with constant statistics is x * a + b.
struct EvaluateGivenStatistics : RulePattern<NormOpInterface> {
  EvaluateGivenStatistics(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C16", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    // A constant x is evaluated as the op says it: C35.
    if (!op.hasGivenStatistics() || !op.getGivenMeanOrNull() ||
        matchConstant(op.getInput()) || failed(rule.requireReal(op)))
      return failure();
    FailureOr<fold::GivenNorm> norm = fold::matchGivenNorm(rule, op);
    if (failed(norm))
      return failure();

    bool isFar = norm->isFar();
    SmallVector<double> bias;
    for (auto [mean, factor, shift] :
         llvm::zip_equal(norm->mean, norm->factor, norm->shift))
      bias.push_back(shift - mean * factor);
    SmallVector<SmallVector<double>> constants;
    if (isFar)
      constants = {norm->mean, norm->factor,
                   shiftOfRest(*norm, op.getComputeTypeOrDefault())};
    else
      constants = {norm->factor, bias};
    bool isFinite = llvm::all_of(constants, [&](ArrayRef<double> values) {
      return fold::isFiniteIn(values, op.getComputeTypeOrDefault());
    });
    if (failed(rule.require(op, "finite", isFinite,
                            "a folded constant is not finite")))
      return failure();
    Value result = buildAffine(rewriter, op, constants);
    rule.applied(op, isFar ? "became (x - mean) * a + b" : "became x * a + b");
    NormResults results;
    results.y = result;
    replaceNorm(rewriter, op, results);
    return success();
  }
};
} // namespace

void norm::populateSimplifyInferencePatterns(RewritePatternSet &patterns,
                                             const RewritePolicy &policy) {
  patterns.add<EvaluateGivenStatistics>(patterns.getContext(), policy);
}
