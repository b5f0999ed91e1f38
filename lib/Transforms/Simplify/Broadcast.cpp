//===- Broadcast.cpp - Broadcasts ------------------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// C23: a broadcast goes behind the norm, which has less to do then.
//
//===----------------------------------------------------------------------===//

#include "Movement.h"
#include "Simplify.h"

#include "../../IR/RowBuilder.h"
#include "Norm/Analysis/Constants.h"

#include <cmath>

using namespace mlir;
using namespace mlir::norm;

namespace {
/// C23: norm(broadcast(x)) -> broadcast(norm(x)).
struct MoveBroadcast : RulePattern<NormOpInterface> {
  MoveBroadcast(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C23", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    std::optional<Copy> copy = matchCopy(op.getInput());
    if (!copy || !copy->isBroadcast())
      return failure();
    Value residual = op.getResidualOrNull();
    std::optional<Copy> other = matchCopy(residual);
    if (residual && (!other || other->dims != copy->dims))
      return rule.refuse(op, "residual",
                         "expected x and residual to be broadcast alike");

    // The axes of the source that are reduced still.
    SmallVector<int64_t> reduced;
    for (auto [from, to] : llvm::enumerate(copy->dims))
      if (llvm::is_contained(op.getReducedAxes(), to))
        reduced.push_back(from);
    SmallVector<int64_t> repeated =
        llvm::filter_to_vector(op.getReducedAxes(), [&](int64_t axis) {
          return !llvm::is_contained(copy->dims, axis);
        });
    if (reduced.empty())
      return replaceByShift(op, rewriter);
    bool isExact =
        op.hasGivenStatistics() ||
        (repeated.empty() && keepsSummation(op, reduced, copy->dims));
    if ((!isExact && failed(rule.requireReal(op))) ||
        failed(checkParameters(op, *copy)) || !isRebuildable(rewriter, op))
      return failure();

    NormContract contract = NormContract::get(op);
    contract.x = copy->source;
    contract.residual = residual ? other->source : Value();
    contract.axes = reduced;
    if (contract.affineAxes)
      contract.affineAxes = positionsIn(copy->dims, *contract.affineAxes);
    if (contract.channelAxis)
      contract.channelAxis = positionsIn(copy->dims, *contract.channelAxis)[0];
    if (!repeated.empty() && !op.hasGivenStatistics() &&
        failed(dropRepeated(op, rewriter, repeated, contract)))
      return failure();
    apply(op, rewriter, *copy, contract);
    return success();
  }

private:
  LogicalResult checkParameters(NormOpInterface op, const Copy &copy) const {
    SmallVector<int64_t> added = copy.getAddedDims();
    auto isAdded = [&](int64_t axis) {
      return llvm::is_contained(added, axis);
    };
    if ((op.getScaleOrNull() || op.getShiftOrNull()) &&
        llvm::any_of(op.getAffineAxesOrDefault(), isAdded))
      return rule.refuse(op, "affine-axes",
                         "expected no affine axis among the broadcast axes");
    // A channel axis of one element stands for all channels no longer.
    if (std::optional<int64_t> grouped = op.getGroupedAxis();
        grouped && isAdded(*grouped))
      return rule.refuse(op, "affine-axes",
                         "expected the channel axis to stay");
    if ((op.hasGivenStatistics() || op.getRunningUpdate()) &&
        (llvm::any_of(op.getStatisticAxes(), isAdded) ||
         llvm::is_contained(copy.dims, Copy::kUnit)))
      return rule.refuse(op, "given-statistics",
                         "expected no axis of the statistics that the op is "
                         "given among the broadcast axes");
    return success();
  }

  LogicalResult dropRepeated(NormOpInterface op, PatternRewriter &rewriter,
                             ArrayRef<int64_t> repeated,
                             NormContract &contract) const;
  LogicalResult scaleSquares(NormOpInterface op, PatternRewriter &rewriter,
                             int64_t repeats, NormContract &contract) const;
  LogicalResult scaleGain(NormOpInterface op, PatternRewriter &rewriter,
                          double by, NormContract &contract) const;
  LogicalResult replaceByShift(NormOpInterface op,
                               PatternRewriter &rewriter) const;
  void apply(NormOpInterface op, PatternRewriter &rewriter, const Copy &copy,
             const NormContract &contract) const;
};
} // namespace

/// Each element counts `repeats` times: means are the same, and so are
/// variances with correction 0.
LogicalResult MoveBroadcast::dropRepeated(NormOpInterface op,
                                          PatternRewriter &rewriter,
                                          ArrayRef<int64_t> repeated,
                                          NormContract &contract) const {
  std::optional<int64_t> repeats =
      staticExtent(op.getInput().getType(), repeated);
  if (!repeats || *repeats == 0)
    return rule.refuse(op, "repeats",
                       "expected static extents, not 0, of the reduced "
                       "broadcast axes");
  RunningUpdate running = op.getRunningUpdate();
  if (failed(rule.require(op, "correction",
                          op.getCorrection() == 0 &&
                              (!running || running.correction == 0),
                          "n changes, so n - 1 is another part of it: expected "
                          "correction 0")))
    return failure();
  if (op.getStatistic() == Statistic::SumSquare)
    return scaleSquares(op, rewriter, *repeats, contract);
  return success();
}

/// Sums of squares are `repeats` times as large, so the factor takes its root
/// out: 1/sqrt(p*s + e) = 1/sqrt(p) * 1/sqrt(s + e/p), and so on.
LogicalResult MoveBroadcast::scaleSquares(NormOpInterface op,
                                          PatternRewriter &rewriter,
                                          int64_t repeats,
                                          NormContract &contract) const {
  if (failed(rule.require(
          op, "statistics",
          (!contract.wantsVariance || op.getVarianceOrNull().use_empty()) &&
              (!contract.wantsRstd || op.getRstdOrNull().use_empty()),
          "a sum over fewer elements is another statistic: "
          "expected no use of it")))
    return failure();
  double root = std::sqrt(static_cast<double>(repeats));
  EpsilonPlacement placement = contract.epsilon.getPlacement();
  bool isInside = placement == EpsilonPlacement::InsideSqrt ||
                  placement == EpsilonPlacement::MaxInside;
  double epsilon = contract.epsilon.getDouble() / (isInside ? repeats : root);
  APFloat rounded = roundToType(epsilon, contract.computeType);
  if (!contract.epsilon.isNone() && contract.epsilon.getDouble() != 0.0 &&
      !rounded.isNormal())
    return rule.refuse(op, "epsilon",
                       "expected epsilon to stay a normal number in compute "
                       "type when it is divided by the repeats");
  if (failed(scaleGain(op, rewriter, 1.0 / root, contract)))
    return failure();
  if (!contract.epsilon.isNone())
    contract.epsilon = EpsilonAttr::get(op.getContext(), placement, epsilon);
  return success();
}

/// Multiplies the gain, or makes one.
LogicalResult MoveBroadcast::scaleGain(NormOpInterface op,
                                       PatternRewriter &rewriter, double by,
                                       NormContract &contract) const {
  std::optional<ConstantTensor> scale = matchConstant(contract.scale);
  // Without a scale, one along the axes of the shift, or the reduced ones.
  auto source = cast<RankedTensorType>(contract.x.getType());
  ArrayRef<int64_t> axes =
      contract.affineAxes ? *contract.affineAxes : contract.axes;
  if (contract.scale ? !scale : !staticExtent(source, axes))
    return rule.refuse(op, "gain",
                       "expected a constant scale, or none over static "
                       "extents, to take the root of the repeats");
  SmallVector<double> values;
  RankedTensorType type;
  if (scale) {
    // Fewer bits than the arithmetic has would round it once more.
    type = scale->getType().clone(
        widestElementType(contract.computeType, {contract.scale}));
    int64_t count = scale->isSplat() ? 1 : type.getNumElements();
    for (int64_t i = 0; i < count; ++i)
      values.push_back(((*scale)[i] + contract.scaleOffset) * by);
  } else {
    SmallVector<int64_t> shape = llvm::map_to_vector(
        axes, [&](int64_t axis) { return source.getDimSize(axis); });
    type = RankedTensorType::get(shape, contract.computeType);
    values.push_back(by);
    contract.affineAxes = llvm::to_vector(axes);
  }
  rewriter.setInsertionPoint(op);
  contract.scale = createConstant(rewriter, op.getLoc(), type, values);
  contract.scaleOffset = 0.0;
  return success();
}

/// A row of equal elements is its own mean: what is left is the shift.
LogicalResult MoveBroadcast::replaceByShift(NormOpInterface op,
                                            PatternRewriter &rewriter) const {
  if (!op.isCentred() || op.hasGivenStatistics())
    return rule.refuse(op, "centred",
                       "every element of a row is the same, but no mean is "
                       "subtracted");
  if (failed(rule.requireNoNaN(op)) || failed(rule.requireNoInf(op)) ||
      failed(rule.requireNoSignedZero(op)) ||
      failed(rule.require(op, "epsilon", isFactorOfZeroFinite(op),
                          "the factor of a constant row is infinite: expected "
                          "epsilon > 0 in the compute type")) ||
      failed(rule.require(op, "correction", op.getCorrection() == 0,
                          "a row may have one element: expected correction "
                          "0")))
    return failure();
  NormResults results = NormResults::get(op);
  for (Value result :
       {results.mean, results.variance, results.rstd, results.sum,
        results.runningMean, results.runningVariance})
    if (result && !result.use_empty())
      return rule.refuse(op, "unused-results",
                         "expected no use of the op's other results");

  rewriter.setInsertionPoint(op);
  RowBuilder rows(cast<RowOpInterface>(op.getOperation()), rewriter);
  auto type = cast<FloatType>(op.getNormalized().getType().getElementType());
  Value shift = op.getShiftOrNull();
  FloatType stepType = op.getAffineIn() == AffineIn::Compute
                           ? op.getComputeTypeOrDefault()
                           : type;
  NormResults replacements;
  replacements.y =
      shift ? rows.elementwise({{shift, op.getAffineAxesOrDefault()}}, rows.all,
                               type,
                               [&](OpBuilder &b, Location, ValueRange in) {
                                 return SmallVector<Value>{rows.cast(
                                     b, rows.cast(b, in[0], stepType), type)};
                               })
            : rows.fill(rows.constant(rewriter, 0.0, type), rows.all);
  rule.applied(op, "rows of equal elements become the shift");
  replaceNorm(rewriter, op, replacements);
  return success();
}

void MoveBroadcast::apply(NormOpInterface op, PatternRewriter &rewriter,
                          const Copy &copy,
                          const NormContract &contract) const {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  NormOpInterface moved = buildMoved(rewriter, op, contract);
  rule.applied(op, "the norm is taken before the broadcast");
  replaceByMoved(rewriter, op, moved, [&](Value value, ArrayRef<int64_t> axes) {
    // The dimensions of `value` are axes of the source.
    bool isFull = static_cast<int64_t>(axes.size()) == op.getRank();
    SmallVector<int64_t> sourceAxes =
        isFull ? llvm::to_vector(llvm::seq<int64_t>(0, copy.dims.size()))
               : moved.getStatisticAxes();
    SmallVector<int64_t> dims =
        llvm::map_to_vector(sourceAxes, [&](int64_t axis) -> int64_t {
          int64_t to = copy.dims[axis];
          return to == Copy::kUnit ? to : llvm::find(axes, to) - axes.begin();
        });
    SmallVector<OpFoldResult> extents =
        llvm::map_to_vector(axes, [&](int64_t axis) -> OpFoldResult {
          // Of channels or of groups of them: as the value has it.
          if (axis == op.getGroupedAxis())
            return tensor::getMixedSize(
                rewriter, loc, value,
                llvm::find(dims, llvm::find(axes, axis) - axes.begin()) -
                    dims.begin());
          return tensor::getMixedSize(rewriter, loc, copy.init, axis);
        });
    return buildCopy(rewriter, loc, value, dims, extents);
  });
}

void norm::populateSimplifyBroadcastPatterns(RewritePatternSet &patterns,
                                             const RewritePolicy &policy) {
  patterns.add<MoveBroadcast>(patterns.getContext(), policy);
}
