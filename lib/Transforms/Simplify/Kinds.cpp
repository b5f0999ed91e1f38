//===- Kinds.cpp - A norm as one of another kind -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parts.h"
#include "Simplify.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::simplify;

//===----------------------------------------------------------------------===//
// C14: a sum of squares is n mean squares
//===----------------------------------------------------------------------===//

namespace {
/// C14: with a sum of squares of n times the mean square, 1 / sqrt(n) comes out
/// of the factor, and epsilon is divided by n or by its root.
struct MeanSquareOfSum : RulePattern<NormOpInterface> {
  /// After all others: a gain stands in the way of some.
  MeanSquareOfSum(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C14", policy, /*benefit=*/0) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override;
};
} // namespace

LogicalResult
MeanSquareOfSum::matchAndRewrite(NormOpInterface op,
                                 PatternRewriter &rewriter) const {
  if (op.getStatistic() != Statistic::SumSquare)
    return failure();
  int64_t count = op.getStaticReducedCount().value_or(0);
  if (failed(rule.requireReal(op)) ||
      failed(rule.require(op, "count", count > 0,
                          "expected a static number of reduced elements, 1 or "
                          "more")))
    return failure();
  double n = static_cast<double>(std::max<int64_t>(count, 1));
  EpsilonAttr epsilon = op.getEpsilon();
  bool isInside = epsilon.getPlacement() == EpsilonPlacement::InsideSqrt ||
                  epsilon.getPlacement() == EpsilonPlacement::MaxInside;
  double scaled = epsilon.getDouble() / (isInside ? n : std::sqrt(n));
  if (failed(rule.require(op, "epsilon",
                          isUsableEpsilon(scaled, epsilon.getDouble(),
                                          op.getComputeTypeOrDefault()),
                          "epsilon would become " + Twine(numberText(scaled)) +
                              ", which the compute type does not hold")))
    return failure();
  NormContract contract = NormContract::get(op);
  double factor = 1.0 / std::sqrt(n);
  if (failed(rule.require(op, "gain", canScaleGain(contract, factor),
                          "the gain is no constant, or is applied to a rounded "
                          "value")))
    return failure();
  contract.epsilon =
      EpsilonAttr::get(op->getContext(), epsilon.getPlacement(), scaled);
  scaleGain(rewriter, op.getLoc(), contract, factor,
            op.getAffineAxesOrDefault());
  NormOpInterface rms = buildAs<RMSNormOp>(rewriter, op, contract);
  rule.applied(op, "became an RMS norm with a gain of 1 / sqrt(n)");
  NormResults old = NormResults::get(op), results = NormResults::get(rms);
  if (isUsed(old.variance))
    results.variance =
        scaleStatistic(rewriter, op.getLoc(), results.variance, n);
  if (isUsed(old.rstd))
    results.rstd = scaleStatistic(rewriter, op.getLoc(), results.rstd, factor);
  replaceNorm(rewriter, op, results);
  return success();
}

//===----------------------------------------------------------------------===//
// C15: one kind for what differs in name
//===----------------------------------------------------------------------===//

/// The groups of a reshape between `rank` dimensions and one more of extent 1
/// at `position`.
static SmallVector<ReassociationIndices> unitDimAt(int64_t rank,
                                                   int64_t position) {
  SmallVector<ReassociationIndices> groups;
  // The unit dimension joins the one after it, or else the one before.
  for (int64_t dim = 0, fine = 0; dim < rank; ++dim) {
    ReassociationIndices group;
    if (fine == position)
      group.push_back(fine++);
    group.push_back(fine++);
    if (dim == rank - 1 && fine == position)
      group.push_back(fine);
    groups.push_back(group);
  }
  return groups;
}

/// A statistic with a dimension of extent 1 more.
static Value insertUnitDim(OpBuilder &builder, Location loc, Value statistic,
                           int64_t position) {
  auto type = cast<RankedTensorType>(statistic.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin() + position, 1);
  return tensor::ExpandShapeOp::create(builder, loc, type.clone(shape),
                                       statistic,
                                       unitDimAt(type.getRank(), position));
}

/// A statistic without its dimension of extent 1.
static Value dropUnitDim(OpBuilder &builder, Location loc, Value statistic,
                         int64_t position) {
  auto type = cast<RankedTensorType>(statistic.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + position);
  return tensor::CollapseShapeOp::create(
      builder, loc, type.clone(shape), statistic,
      unitDimAt(type.getRank() - 1, position));
}

/// Applies `reshape` to the statistics that are read.
static void reshapeStatistics(NormOpInterface op, NormResults &results,
                              function_ref<Value(Value)> reshape) {
  NormResults old = NormResults::get(op);
  if (isUsed(old.mean))
    results.mean = reshape(results.mean);
  if (isUsed(old.variance))
    results.variance = reshape(results.variance);
  if (isUsed(old.rstd))
    results.rstd = reshape(results.rstd);
}

namespace {
/// C15: norms over groups, instances or a batch of one, as norms over axes. The
/// affine axes stay what they are: a group norm of one group has a gain for
/// each channel, and no layer norm would have it by default.
struct UnifyKinds : RulePattern<NormOpInterface> {
  UnifyKinds(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C15", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    if (op.getGroupedAxis())
      return rewriteGroups(op, rewriter);
    if (isa<InstanceNormOp>(op))
      return rewriteInstances(op, rewriter);
    if (isa<BatchNormTrainingOp>(op))
      return rewriteBatch(op, rewriter);
    return failure();
  }

private:
  LogicalResult rewriteGroups(NormOpInterface op,
                              PatternRewriter &rewriter) const;
  LogicalResult rewriteInstances(NormOpInterface op,
                                 PatternRewriter &rewriter) const;
  LogicalResult rewriteBatch(NormOpInterface op,
                             PatternRewriter &rewriter) const;
};
} // namespace

LogicalResult UnifyKinds::rewriteGroups(NormOpInterface op,
                                        PatternRewriter &rewriter) const {
  int64_t channel = *op.getGroupedAxis();
  int64_t groups = op.getNumGroups();
  int64_t channels = op.getInput().getType().getDimSize(channel);
  bool isWhole = groups == 1, isSingle = groups == channels;
  NormContract contract = NormContract::get(op);
  contract.channelAxis.reset();
  contract.groups = 1;
  if (isSingle && !isWhole)
    llvm::erase(contract.axes, channel);
  if (contract.axes.empty())
    return failure();
  if (failed(rule.requireReal(op)) ||
      failed(rule.require(op, "groups", isWhole || isSingle,
                          "expected one group, or one for each channel, got " +
                              Twine(groups))))
    return failure();
  if (isSingle && !isWhole) {
    rule.applied(op, "became an instance norm: each group is a channel");
    NormOpInterface built = buildAs<InstanceNormOp>(rewriter, op, contract);
    replaceNorm(rewriter, op, NormResults::get(built));
    return success();
  }
  rule.applied(op, "became a layer norm: there is one group");
  NormResults results =
      NormResults::get(buildAs<LayerNormOp>(rewriter, op, contract));
  SmallVector<int64_t> axes = op.getStatisticAxes();
  int64_t position = llvm::find(axes, channel) - axes.begin();
  reshapeStatistics(op, results, [&](Value statistic) {
    return insertUnitDim(rewriter, op.getLoc(), statistic, position);
  });
  replaceNorm(rewriter, op, results);
  return success();
}

LogicalResult UnifyKinds::rewriteInstances(NormOpInterface op,
                                           PatternRewriter &rewriter) const {
  if (failed(rule.requireReal(op)))
    return failure();
  rule.applied(op, "became a layer norm over space");
  NormOpInterface built =
      buildAs<LayerNormOp>(rewriter, op, NormContract::get(op));
  replaceNorm(rewriter, op, NormResults::get(built));
  return success();
}

LogicalResult UnifyKinds::rewriteBatch(NormOpInterface op,
                                       PatternRewriter &rewriter) const {
  NormResults old = NormResults::get(op);
  if (failed(rule.requireReal(op)) ||
      failed(rule.require(op, "batch",
                          op.getInput().getType().getDimSize(0) == 1,
                          "expected a batch of 1")) ||
      failed(
          rule.require(op, "running",
                       !isUsed(old.runningMean) && !isUsed(old.runningVariance),
                       "a running statistic is read")))
    return failure();
  NormContract contract = NormContract::get(op);
  contract.runningMean = contract.runningVariance = nullptr;
  contract.momentum.reset();
  contract.momentumValue = nullptr;
  contract.runningCorrection = 1;
  // The batch is reduced, unless that axis was dropped for its extent.
  bool reducesBatch = contract.axes.size() > 1 && contract.axes.front() == 0;
  if (reducesBatch)
    contract.axes.erase(contract.axes.begin());
  rule.applied(op, "became an instance norm: there is one instance");
  NormResults results =
      NormResults::get(buildAs<InstanceNormOp>(rewriter, op, contract));
  if (reducesBatch)
    reshapeStatistics(op, results, [&](Value statistic) {
      return dropUnitDim(rewriter, op.getLoc(), statistic, 0);
    });
  replaceNorm(rewriter, op, results);
  return success();
}

void norm::populateSimplifyKindPatterns(RewritePatternSet &patterns,
                                        const RewritePolicy &policy) {
  patterns.add<MeanSquareOfSum>(patterns.getContext(), policy);
  populateCentredInputPatterns(patterns, policy);
}

void norm::populateUnifyKindPatterns(RewritePatternSet &patterns,
                                     const RewritePolicy &policy) {
  patterns.add<UnifyKinds>(patterns.getContext(), policy);
}
