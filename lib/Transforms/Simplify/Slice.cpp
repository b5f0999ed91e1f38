//===- Slice.cpp - Slices and concatenations -------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// C24 and C25: rows that do not influence each other are normalized where they
// are fewest. A slice goes before the norm, which then has less to do. A
// concatenation goes behind it: each part is normalized straight into its place
// and no tensor of all parts is read and written once more; a part that is
// known already (the past of a cache) can be normalized once. Neither undoes
// what C21 to C23 do, nor the other: a slice never goes down, a concatenation
// never goes up. Padding stays where it is: it is no row of x.
//
//===----------------------------------------------------------------------===//

#include "Movement.h"
#include "Simplify.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace mlir::norm;

namespace {
/// Offsets, sizes and strides of a part of x, one per axis.
struct Part {
  SmallVector<OpFoldResult> offsets, sizes, strides;

  /// The part of a tensor that these axes index.
  Value of(OpBuilder &builder, Location loc, Value value,
           ArrayRef<int64_t> axes) const {
    auto pick = [&](ArrayRef<OpFoldResult> list) {
      return llvm::map_to_vector(axes,
                                 [&](int64_t axis) { return list[axis]; });
    };
    return tensor::ExtractSliceOp::create(builder, loc, value, pick(offsets),
                                          pick(sizes), pick(strides));
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// C24: slices
//===----------------------------------------------------------------------===//

/// Whether a slice leaves dimension `dim` of its source whole.
static bool isWhole(tensor::ExtractSliceOp slice, int64_t dim) {
  OpFoldResult size = slice.getMixedSizes()[dim];
  int64_t extent = slice.getSourceType().getDimSize(dim);
  if (!isZeroInteger(slice.getMixedOffsets()[dim]) ||
      !isOneInteger(slice.getMixedStrides()[dim]))
    return false;
  if (!ShapedType::isDynamic(extent))
    return getConstantIntValue(size) == extent;
  FailureOr<bool> isEqual =
      ValueBoundsConstraintSet::areEqual({size}, {slice.getSource(), dim});
  return succeeded(isEqual) && *isEqual;
}

/// No slice of an empty tensor verifies: there is no offset inside of it.
static bool isEmpty(NormOpInterface op) {
  return llvm::is_contained(op.getInput().getType().getShape(), 0);
}

namespace {
/// C24: slice(norm(x)) -> norm(slice(x)).
struct MoveSlice : RulePattern<NormOpInterface> {
  MoveSlice(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C24", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    tensor::ExtractSliceOp slice;
    for (Operation *user : op.getNormalized().getUsers())
      if ((slice = dyn_cast<tensor::ExtractSliceOp>(user)))
        break;
    // A slice of everything has moved already, or drops dimensions.
    if (!slice || isEmpty(op) ||
        llvm::all_of(llvm::seq<int64_t>(0, op.getRank()),
                     [&](int64_t dim) { return isWhole(slice, dim); }))
      return failure();
    if (failed(checkUses(op, slice)) || !isRebuildable(rewriter, op))
      return failure();

    // What asks for extents of y may ask for those of x.
    rewriter.replaceUsesWithIf(
        op.getNormalized(), op.getInput(),
        [&](OpOperand &use) { return isa<tensor::DimOp>(use.getOwner()); });
    Location loc = op.getLoc();
    Part part{slice.getMixedOffsets(), slice.getMixedSizes(),
              slice.getMixedStrides()};
    NormContract contract = withoutResults(op);
    auto all = llvm::to_vector(llvm::seq<int64_t>(0, op.getRank()));
    rewriter.setInsertionPoint(slice);
    contract.x = part.of(rewriter, loc, contract.x, all);
    if (contract.residual)
      contract.residual = part.of(rewriter, loc, contract.residual, all);
    moveParameters(op, contract, [&](Value value, ArrayRef<int64_t> axes) {
      // A statistic of groups has the channels' axis whole.
      return axes.empty() || isWholeAlong(slice, axes)
                 ? value
                 : part.of(rewriter, loc, value, axes);
    });
    NormOpInterface moved = buildMoved(rewriter, op, contract);
    rule.applied(op, "only what the slice keeps is normalized");
    Value y = moved.getNormalized();
    RankedTensorType type = slice.getResultType();
    if (type.getRank() != op.getRank())
      y = tensor::createCanonicalRankReducingExtractSliceOp(rewriter, loc, y,
                                                            type);
    if (y.getType() != type)
      y = tensor::CastOp::create(rewriter, loc, type, y);
    rewriter.replaceOp(slice, y);
    rewriter.eraseOp(op);
    return success();
  }

private:
  static bool isWholeAlong(tensor::ExtractSliceOp slice,
                           ArrayRef<int64_t> axes) {
    return llvm::all_of(axes,
                        [&](int64_t axis) { return isWhole(slice, axis); });
  }

  LogicalResult checkUses(NormOpInterface op,
                          tensor::ExtractSliceOp slice) const {
    if (failed(rule.require(op, "kept-axes",
                            isWholeAlong(slice, op.getDependentAxes()),
                            "elements influence each other along an axis that "
                            "is sliced")))
      return failure();
    // What is sliced away and used elsewhere has to be computed anyway.
    if (!isUsedOnlyBy(op.getNormalized(), slice))
      return rule.refuse(op, "only-use",
                         "expected the slice to be the only use of the norm's "
                         "result");
    for (OpResult result : op->getResults())
      if (result != op.getNormalized() && !result.use_empty())
        return rule.refuse(op, "unused-results",
                           "expected no use of the op's other results");
    // In a loop, say, the norm would run once an iteration.
    return rule.require(op, "same-block", slice->getBlock() == op->getBlock(),
                        "expected norm and slice in one block");
  }

  /// The facts of the op, y its only result.
  static NormContract withoutResults(NormOpInterface op) {
    NormContract contract = NormContract::get(op);
    contract.wantsMean = contract.wantsVariance = contract.wantsRstd = false;
    contract.sumType = {};
    contract.runningMean = contract.runningVariance = {};
    contract.momentum.reset();
    contract.momentumValue = {};
    contract.runningCorrection = 1;
    // Without a `sum` result it would have x's element type.
    if (op.getSumOrNull() && contract.sumRounding == SumRounding::Stored)
      contract.sumType = op.getSumElementType();
    return contract;
  }
};

//===----------------------------------------------------------------------===//
// C25: concatenations
//===----------------------------------------------------------------------===//

/// C25: norm(concat(a, b)) -> concat(norm(a), norm(b)).
struct MoveConcat : RulePattern<NormOpInterface> {
  MoveConcat(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C25", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    auto concat = op.getInput().getDefiningOp<tensor::ConcatOp>();
    if (!concat || isEmpty(op))
      return failure();
    int64_t axis = concat.getDim();
    if (failed(rule.require(
            op, "kept-axis", !llvm::is_contained(op.getDependentAxes(), axis),
            "elements influence each other along the concatenated axis")) ||
        failed(rule.require(op, "single-use", isUsedOnlyBy(concat, op),
                            "something else reads the concatenated tensor: it "
                            "is made anyway")) ||
        !isRebuildable(rewriter, op))
      return failure();

    rewriter.setInsertionPoint(op);
    SmallVector<NormOpInterface> parts = buildParts(op, concat, rewriter);
    rule.applied(op, "each part is normalized on its own");
    replace(op, parts, axis, rewriter);
    return success();
  }

private:
  SmallVector<NormOpInterface> buildParts(NormOpInterface op,
                                          tensor::ConcatOp concat,
                                          PatternRewriter &rewriter) const;
  void replace(NormOpInterface op, ArrayRef<NormOpInterface> parts,
               int64_t axis, PatternRewriter &rewriter) const;
};
} // namespace

SmallVector<NormOpInterface>
MoveConcat::buildParts(NormOpInterface op, tensor::ConcatOp concat,
                       PatternRewriter &rewriter) const {
  Location loc = op.getLoc();
  int64_t axis = concat.getDim();
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, op.getRank()));
  Part part;
  part.offsets.assign(op.getRank(), rewriter.getIndexAttr(0));
  part.strides.assign(op.getRank(), rewriter.getIndexAttr(1));
  AffineExpr s0 = rewriter.getAffineSymbolExpr(0),
             s1 = rewriter.getAffineSymbolExpr(1);
  SmallVector<NormOpInterface> parts;
  for (Value input : concat.getInputs()) {
    part.sizes = tensor::getMixedSizes(rewriter, loc, input);
    NormContract contract = NormContract::get(op);
    contract.x = input;
    if (contract.residual)
      contract.residual = part.of(rewriter, loc, contract.residual, all);
    moveParameters(op, contract, [&](Value value, ArrayRef<int64_t> axes) {
      return llvm::is_contained(axes, axis)
                 ? part.of(rewriter, loc, value, axes)
                 : value;
    });
    parts.push_back(buildMoved(rewriter, op, contract));
    part.offsets[axis] = affine::makeComposedFoldedAffineApply(
        rewriter, loc, s0 + s1, {part.offsets[axis], part.sizes[axis]});
  }
  return parts;
}

void MoveConcat::replace(NormOpInterface op, ArrayRef<NormOpInterface> parts,
                         int64_t axis, PatternRewriter &rewriter) const {
  SmallVector<NormResults> of = llvm::map_to_vector(
      parts, [](NormOpInterface part) { return NormResults::get(part); });
  NormResults old = NormResults::get(op), replaced;
  auto join = [&](Value NormResults::*result, ArrayRef<int64_t> axes) {
    if (!(old.*result) || (old.*result).use_empty())
      return;
    const int64_t *dim = llvm::find(axes, axis);
    SmallVector<Value> values = llvm::map_to_vector(
        of, [&](const NormResults &results) { return results.*result; });
    // A statistic that does not extend along the axis is every part's.
    replaced.*result =
        dim == axes.end()
            ? values.front()
            : Value(tensor::ConcatOp::create(rewriter, op.getLoc(),
                                             dim - axes.begin(), values));
  };
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, op.getRank()));
  SmallVector<int64_t> statistic = op.getStatisticAxes();
  join(&NormResults::y, all);
  join(&NormResults::sum, all);
  for (Value NormResults::*result :
       {&NormResults::mean, &NormResults::variance, &NormResults::rstd,
        &NormResults::runningMean, &NormResults::runningVariance})
    join(result, statistic);
  replaceNorm(rewriter, op, replaced);
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

void norm::populateSimplifySlicePatterns(RewritePatternSet &patterns,
                                         const RewritePolicy &policy) {
  patterns.add<MoveConcat, MoveSlice>(patterns.getContext(), policy);
}
