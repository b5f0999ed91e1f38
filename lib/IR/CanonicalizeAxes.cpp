//===- CanonicalizeAxes.cpp - Reduced axes of extent 1 -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Canonicalize.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::norm;

namespace {
/// Reduced axes of extent 1 that become kept ones, and what follows for
/// statistics: they get a dimension of extent 1 for each.
struct UnitAxes {
  /// The reduced axes that remain.
  SmallVector<int64_t> axes;
  /// Of the new statistics' dimensions, those that make one old dimension.
  SmallVector<ReassociationIndices> together;

  static FailureOr<UnitAxes> find(RowOpInterface op, const Rule &rule);

  Value expand(OpBuilder &builder, Location loc, Value statistic) const;
  Value collapse(OpBuilder &builder, Location loc, Value statistic,
                 Type oldType) const;

private:
  SmallVector<int64_t> newShape(ArrayRef<int64_t> oldShape) const;
  /// The place of the old dimension in each group; -1 where there is none.
  SmallVector<int64_t> places;
  int64_t newRank = 0;
};
} // namespace

FailureOr<UnitAxes> UnitAxes::find(RowOpInterface op, const Rule &rule) {
  RankedTensorType xType = op.getInput().getType();
  std::optional<int64_t> channel = op.getGroupedAxis();
  UnitAxes found;
  SmallVector<int64_t> dropped;
  for (int64_t axis : op.getReducedAxes())
    if (xType.getDimSize(axis) == 1 && axis != channel)
      dropped.push_back(axis);
    else
      found.axes.push_back(axis);
  if (dropped.empty())
    return failure();
  if (found.axes.empty())
    found.axes.push_back(dropped.pop_back_val());
  if (dropped.empty())
    return rule.refuse(op, "another-remains",
                       "the axis of extent 1 is the only reduced one");

  // New dimensions go with the old one before them, or the first.
  SmallVector<int64_t> old = op.getStatisticAxes();
  SmallVector<int64_t> all = old;
  all.append(dropped);
  llvm::sort(all);
  found.newRank = static_cast<int64_t>(all.size());
  if (!old.empty()) {
    found.together.push_back({});
    for (auto [dim, axis] : llvm::enumerate(all)) {
      if (llvm::is_contained(old, axis)) {
        if (!found.places.empty())
          found.together.push_back({});
        found.places.push_back(static_cast<int64_t>(dim));
      }
      found.together.back().push_back(static_cast<int64_t>(dim));
    }
  }
  return found;
}

SmallVector<int64_t> UnitAxes::newShape(ArrayRef<int64_t> oldShape) const {
  SmallVector<int64_t> shape(newRank, 1);
  for (auto [extent, place] : llvm::zip_equal(oldShape, places))
    shape[place] = extent;
  return shape;
}

Value UnitAxes::expand(OpBuilder &builder, Location loc,
                       Value statistic) const {
  if (!statistic)
    return {};
  auto type = cast<RankedTensorType>(statistic.getType());
  return tensor::ExpandShapeOp::create(
      builder, loc, type.clone(newShape(type.getShape())), statistic, together);
}

Value UnitAxes::collapse(OpBuilder &builder, Location loc, Value statistic,
                         Type oldType) const {
  if (!statistic)
    return {};
  Value collapsed =
      tensor::CollapseShapeOp::create(builder, loc, statistic, together);
  if (collapsed.getType() != oldType)
    collapsed = tensor::CastOp::create(builder, loc, oldType, collapsed);
  return collapsed;
}

namespace {
/// C2.
struct DropUnitAxes : RulePattern<NormOpInterface> {
  DropUnitAxes(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C2", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    // Given statistics reduce nothing.
    if (op.hasGivenStatistics())
      return failure();
    FailureOr<UnitAxes> unit = UnitAxes::find(op, rule);
    if (failed(unit))
      return failure();
    Location loc = op->getLoc();
    NormContract contract = NormContract::get(op);
    contract.axes = unit->axes;
    for (Value *statistic : {&contract.mean, &contract.variance,
                             &contract.runningMean, &contract.runningVariance})
      *statistic = unit->expand(rewriter, loc, *statistic);
    NormOpInterface rebuilt = rebuildNorm(rewriter, op, contract);
    if (!rebuilt)
      return rewriter.notifyMatchFailure(op, "the op cannot be rebuilt");
    NormResults results = NormResults::get(rebuilt), old = NormResults::get(op);
    for (auto [result, was] :
         {std::pair(&results.mean, old.mean),
          std::pair(&results.variance, old.variance),
          std::pair(&results.rstd, old.rstd),
          std::pair(&results.runningMean, old.runningMean),
          std::pair(&results.runningVariance, old.runningVariance)})
      if (was)
        *result = unit->collapse(rewriter, loc, *result, was.getType());
    rule.applied(op, "dropped reduced axes of extent 1");
    replaceNorm(rewriter, op, results);
    return success();
  }
};

/// C2 on gradients.
struct DropUnitGradientAxes : RulePattern<NormBackwardOpInterface> {
  DropUnitGradientAxes(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C2", policy) {}

  LogicalResult matchAndRewrite(NormBackwardOpInterface op,
                                PatternRewriter &rewriter) const override {
    if (op.hasConstantStatistics())
      return failure();
    FailureOr<UnitAxes> unit = UnitAxes::find(op, rule);
    if (failed(unit))
      return failure();
    BackwardContract contract = BackwardContract::get(op);
    contract.forward.axes = unit->axes;
    for (Value *statistic :
         {&contract.mean, &contract.variance, &contract.rstd})
      *statistic = unit->expand(rewriter, op->getLoc(), *statistic);
    rule.applied(op, "dropped reduced axes of extent 1");
    return replaceByContract(rewriter, op, contract);
  }
};
} // namespace

void norm::populateUnitAxisPatterns(RewritePatternSet &patterns,
                                    const RewritePolicy &policy) {
  patterns.add<DropUnitAxes, DropUnitGradientAxes>(patterns.getContext(),
                                                   policy);
}
