//===- Reshape.cpp - Transposes, reshapes and broadcasts -------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// C21 to C23: what only moves elements goes behind the norm, to where it may
// meet its inverse, fuse with a consumer, or (a broadcast) leave the norm less
// to do. Slices go the other way, see Slice.cpp.
//
//===----------------------------------------------------------------------===//

#include "Movement.h"
#include "Simplify.h"

#include "../../IR/RowBuilder.h"
#include "Norm/Analysis/Constants.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

#include <cmath>

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// C21: transposes
//===----------------------------------------------------------------------===//

namespace {
/// C21: norm(transpose(x)) -> transpose(norm(x)).
struct MoveTranspose : RulePattern<NormOpInterface> {
  MoveTranspose(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C21", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    std::optional<Copy> copy = matchCopy(op.getInput());
    if (!copy || !copy->isTranspose())
      return failure();
    // oldAxes[new axis] and its inverse.
    ArrayRef<int64_t> oldAxes = copy->dims;
    SmallVector<int64_t> newAxes = invertPermutationVector(copy->dims);
    auto sorted = [&](ArrayRef<int64_t> axes) {
      SmallVector<int64_t> moved = llvm::map_to_vector(
          axes, [&](int64_t axis) { return newAxes[axis]; });
      llvm::sort(moved);
      return moved;
    };
    SmallVector<int64_t> reduced = sorted(op.getReducedAxes());
    if (!keepsSummation(op, reduced, oldAxes) && failed(rule.requireReal(op)))
      return failure();

    Value residual = op.getResidualOrNull();
    std::optional<Copy> other = matchCopy(residual);
    if (residual && (!other || other->dims != copy->dims))
      return rule.refuse(op, "residual",
                         "expected x and residual to be transposed alike");
    if (failed(rule.require(op, "single-use",
                            isUsedOnlyBy(op.getInput(), op) &&
                                (!residual || isUsedOnlyBy(residual, op)),
                            "the transposed tensor has other uses: the norm's "
                            "result would need a transpose of its own")) ||
        !isRebuildable(rewriter, op))
      return failure();

    Location loc = op.getLoc();
    NormContract contract = NormContract::get(op);
    contract.x = copy->source;
    contract.residual = residual ? other->source : Value();
    contract.axes = reduced;
    if (contract.affineAxes)
      contract.affineAxes = sorted(*contract.affineAxes);
    if (contract.channelAxis)
      contract.channelAxis = newAxes[*contract.channelAxis];
    // Both ways, dimensions are named by the axes they index, in the order of
    // the axes of the x they belong to.
    auto copyTo = [&](Value value, ArrayRef<int64_t> from,
                      ArrayRef<int64_t> to) {
      SmallVector<OpFoldResult> sizes =
          tensor::getMixedSizes(rewriter, loc, value);
      SmallVector<OpFoldResult> extents = llvm::map_to_vector(
          positionsIn(from, to), [&](int64_t dim) { return sizes[dim]; });
      return buildCopy(rewriter, loc, value, positionsIn(to, from), extents);
    };
    auto inNewOrder = [&](ArrayRef<int64_t> axes) {
      return llvm::map_to_vector(sorted(axes),
                                 [&](int64_t axis) { return oldAxes[axis]; });
    };
    rewriter.setInsertionPoint(op);
    moveParameters(op, contract, [&](Value value, ArrayRef<int64_t> axes) {
      return copyTo(value, axes, inNewOrder(axes));
    });
    NormOpInterface moved = buildMoved(rewriter, op, contract);
    rule.applied(op, "the norm is taken before the transpose");
    replaceByMoved(rewriter, op, moved,
                   [&](Value value, ArrayRef<int64_t> axes) {
                     return copyTo(value, inNewOrder(axes), axes);
                   });
    return success();
  }
};

//===----------------------------------------------------------------------===//
// C22: reshapes
//===----------------------------------------------------------------------===//

/// A reshape between x and what it is made from.
struct Reshape {
  Value source;
  /// The dimensions of the expanded side that make each of the collapsed one.
  SmallVector<ReassociationIndices> groups;
  /// Whether x is the expanded side.
  bool isExpansion;
  /// Extents of the expanded side.
  SmallVector<OpFoldResult> extents;

  static std::optional<Reshape> match(OpBuilder &builder, Value value);

  /// The group that each dimension of the expanded side belongs to.
  SmallVector<int64_t> getGroupOf() const {
    SmallVector<int64_t> groupOf(extents.size());
    for (auto [number, group] : llvm::enumerate(groups))
      for (int64_t dim : group)
        groupOf[dim] = number;
    return groupOf;
  }
  /// The axes of the source for these of x; nullopt if they split a group.
  std::optional<SmallVector<int64_t>> toSource(ArrayRef<int64_t> axes) const;

  /// A tensor that indexes these groups, with their dimensions or without.
  Value expand(OpBuilder &builder, Location loc, Value value,
               ArrayRef<int64_t> groupNumbers) const;
  Value collapse(OpBuilder &builder, Location loc, Value value,
                 ArrayRef<int64_t> groupNumbers) const;

  /// Whether two reshapes of tensors of one shape are the same.
  bool equals(const Reshape &other) const {
    return isExpansion == other.isExpansion && groups == other.groups &&
           isEqualConstantIntOrValueArray(extents, other.extents) &&
           (isExpansion || isUnambiguous());
  }

private:
  bool isTrivial(ArrayRef<int64_t> groupNumbers) const {
    return llvm::all_of(groupNumbers, [&](int64_t number) {
      return groups[number].size() == 1;
    });
  }
  /// Whether the collapsed extents decide the expanded ones.
  bool isUnambiguous() const {
    return llvm::all_of(groups, [&](const ReassociationIndices &group) {
      return llvm::count_if(group, [&](int64_t dim) {
               return getConstantIntValue(extents[dim]) == ShapedType::kDynamic;
             }) <= 1;
    });
  }
  /// The groups as dimensions of a tensor that has no others.
  SmallVector<ReassociationIndices>
  renumber(ArrayRef<int64_t> groupNumbers) const {
    SmallVector<ReassociationIndices> renumbered;
    int64_t next = 0;
    for (int64_t number : groupNumbers) {
      ReassociationIndices &dims = renumbered.emplace_back();
      for (size_t i = 0; i < groups[number].size(); ++i)
        dims.push_back(next++);
    }
    return renumbered;
  }
};
} // namespace

std::optional<Reshape> Reshape::match(OpBuilder &builder, Value value) {
  if (!value)
    return std::nullopt;
  if (auto expand = value.getDefiningOp<tensor::ExpandShapeOp>()) {
    // There is no norm of rank 0.
    if (expand.getSrcType().getRank() == 0)
      return std::nullopt;
    return Reshape{expand.getSrc(),
                   llvm::to_vector(expand.getReassociationIndices()),
                   /*isExpansion=*/true, expand.getMixedOutputShape()};
  }
  if (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>()) {
    SmallVector<OpFoldResult> extents;
    for (auto [dim, extent] : llvm::enumerate(collapse.getSrcType().getShape()))
      extents.push_back(builder.getIndexAttr(extent));
    return Reshape{collapse.getSrc(),
                   llvm::to_vector(collapse.getReassociationIndices()),
                   /*isExpansion=*/false, extents};
  }
  return std::nullopt;
}

std::optional<SmallVector<int64_t>>
Reshape::toSource(ArrayRef<int64_t> axes) const {
  SmallVector<int64_t> result;
  if (!isExpansion) {
    for (int64_t axis : axes)
      llvm::append_range(result, groups[axis]);
    return result;
  }
  for (auto [number, group] : llvm::enumerate(groups)) {
    int64_t count = llvm::count_if(
        group, [&](int64_t dim) { return llvm::is_contained(axes, dim); });
    if (count == 0)
      continue;
    if (count != static_cast<int64_t>(group.size()))
      return std::nullopt;
    result.push_back(number);
  }
  return result;
}

Value Reshape::expand(OpBuilder &builder, Location loc, Value value,
                      ArrayRef<int64_t> groupNumbers) const {
  if (isTrivial(groupNumbers))
    return value;
  SmallVector<OpFoldResult> sizes;
  for (auto [position, number] : llvm::enumerate(groupNumbers)) {
    // Not that of x where the value counts groups of channels.
    if (groups[number].size() == 1)
      sizes.push_back(tensor::getMixedSize(builder, loc, value, position));
    else
      for (int64_t dim : groups[number])
        sizes.push_back(isExpansion
                            ? extents[dim]
                            : tensor::getMixedSize(builder, loc, source, dim));
  }
  auto type = RankedTensorType::get(
      decomposeMixedValues(sizes).first,
      cast<RankedTensorType>(value.getType()).getElementType());
  return tensor::ExpandShapeOp::create(builder, loc, type, value,
                                       renumber(groupNumbers), sizes);
}

Value Reshape::collapse(OpBuilder &builder, Location loc, Value value,
                        ArrayRef<int64_t> groupNumbers) const {
  if (isTrivial(groupNumbers))
    return value;
  return tensor::CollapseShapeOp::create(builder, loc, value,
                                         renumber(groupNumbers));
}

namespace {
/// C22: norm(reshape(x)) -> reshape(norm(x)).
struct MoveReshape : RulePattern<NormOpInterface> {
  MoveReshape(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C22", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    rewriter.setInsertionPoint(op);
    std::optional<Reshape> reshape = Reshape::match(rewriter, op.getInput());
    if (!reshape)
      return failure();
    std::optional<SmallVector<int64_t>> reduced =
        reshape->toSource(op.getReducedAxes());
    if (!reduced)
      return rule.refuse(op, "reduced-axes",
                         "expected every group of reshaped dimensions to be "
                         "reduced wholly or kept wholly");
    if (!keepsSums(op, *reshape) && failed(rule.requireReal(op)))
      return failure();

    NormContract contract = NormContract::get(op);
    if (failed(moveAxes(op, *reshape, contract)) ||
        failed(moveResidual(op, rewriter, *reshape, contract)) ||
        !isRebuildable(rewriter, op))
      return failure();
    contract.x = reshape->source;
    contract.axes = *reduced;
    apply(op, rewriter, *reshape, contract);
    return success();
  }

private:
  /// A reduced group is summed in the same order where all but its innermost
  /// dimension have extent 1.
  static bool keepsSums(NormOpInterface op, const Reshape &reshape) {
    if (op.hasGivenStatistics())
      return true;
    for (auto [number, group] : llvm::enumerate(reshape.groups)) {
      int64_t axis = reshape.isExpansion ? group.front() : number;
      if (llvm::is_contained(op.getReducedAxes(), axis) &&
          !llvm::all_of(ArrayRef(group).drop_back(), [&](int64_t dim) {
            return getConstantIntValue(reshape.extents[dim]) == 1;
          }))
        return false;
    }
    return true;
  }

  LogicalResult moveAxes(NormOpInterface op, const Reshape &reshape,
                         NormContract &contract) const {
    if (contract.affineAxes) {
      std::optional<SmallVector<int64_t>> affine =
          reshape.toSource(*contract.affineAxes);
      if (!affine)
        return rule.refuse(op, "affine-axes",
                           "expected scale and shift to index every group of "
                           "reshaped dimensions wholly or not at all");
      contract.affineAxes = *affine;
    }
    if (contract.channelAxis) {
      std::optional<SmallVector<int64_t>> channel =
          reshape.toSource(*contract.channelAxis);
      if (!channel || channel->size() != 1)
        return rule.refuse(op, "channel-axis",
                           "expected the channel axis to keep its extent");
      contract.channelAxis = channel->front();
    }
    return success();
  }

  LogicalResult moveResidual(NormOpInterface op, PatternRewriter &rewriter,
                             const Reshape &reshape,
                             NormContract &contract) const {
    if (!contract.residual)
      return success();
    std::optional<Reshape> other = Reshape::match(rewriter, contract.residual);
    if (!other || !reshape.equals(*other))
      return rule.refuse(op, "residual",
                         "expected x and residual to be reshaped alike");
    contract.residual = other->source;
    return success();
  }

  void apply(NormOpInterface op, PatternRewriter &rewriter,
             const Reshape &reshape, NormContract &contract) const {
    Location loc = op.getLoc();
    SmallVector<int64_t> groupOf = reshape.getGroupOf();
    // The groups that these axes of x make up.
    auto groupsOf = [&](ArrayRef<int64_t> axes) {
      SmallVector<int64_t> numbers;
      for (int64_t axis : axes) {
        int64_t number = reshape.isExpansion ? groupOf[axis] : axis;
        if (numbers.empty() || numbers.back() != number)
          numbers.push_back(number);
      }
      return numbers;
    };
    rewriter.setInsertionPoint(op);
    moveParameters(op, contract, [&](Value value, ArrayRef<int64_t> axes) {
      return reshape.isExpansion
                 ? reshape.collapse(rewriter, loc, value, groupsOf(axes))
                 : reshape.expand(rewriter, loc, value, groupsOf(axes));
    });
    NormOpInterface moved = buildMoved(rewriter, op, contract);
    rule.applied(op, "the norm is taken before the reshape");
    replaceByMoved(
        rewriter, op, moved, [&](Value value, ArrayRef<int64_t> axes) {
          return reshape.isExpansion
                     ? reshape.expand(rewriter, loc, value, groupsOf(axes))
                     : reshape.collapse(rewriter, loc, value, groupsOf(axes));
        });
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// C23: broadcasts
//===----------------------------------------------------------------------===//

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
    type = scale->getType();
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
      failed(rule.require(op, "epsilon", op.getEpsilon().getDouble() > 0.0,
                          "the factor of a constant row is infinite: expected "
                          "epsilon > 0")) ||
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
          if (!isFull && axis == op.getGroupedAxis())
            return rewriter.getIndexAttr(op.getNumGroups());
          return tensor::getMixedSize(rewriter, loc, copy.init, axis);
        });
    return buildCopy(rewriter, loc, value, dims, extents);
  });
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

void norm::populateSimplifyReshapePatterns(RewritePatternSet &patterns,
                                           const RewritePolicy &policy) {
  patterns.add<MoveBroadcast, MoveReshape, MoveTranspose>(patterns.getContext(),
                                                          policy);
}
