//===- Reshape.cpp - Transposes and reshapes -------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// C21 and C22: what only moves elements goes behind the norm, to where it may
// meet its inverse or fuse with a consumer. Slices go the other way, see
// Slice.cpp.
//
//===----------------------------------------------------------------------===//

#include "Movement.h"
#include "Simplify.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

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
// Registration
//===----------------------------------------------------------------------===//

void norm::populateSimplifyReshapePatterns(RewritePatternSet &patterns,
                                           const RewritePolicy &policy) {
  patterns.add<MoveReshape, MoveTranspose>(patterns.getContext(), policy);
}
