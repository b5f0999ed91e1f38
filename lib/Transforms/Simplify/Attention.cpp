//===- Attention.cpp - Products of two norms -------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// C33: in the scores q . k of normalized queries and keys both gains multiply
// the same terms, and so does what scales the scores: one gain, that of the
// keys, can hold it all. Of the keys, because a cache keeps them and because
// there are fewer heads of them.
//
//===----------------------------------------------------------------------===//

#include "Movement.h"
#include "Simplify.h"

#include "Norm/Analysis/Constants.h"
#include "Norm/Analysis/Rotary.h"
#include "Norm/IR/NormOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// From the product to the norms
//===----------------------------------------------------------------------===//

namespace {
/// A tensor times a number.
struct Scaling {
  Value result, source;
  double factor;
};

/// What lies between an operand of the product and a norm.
struct Side {
  NormOpInterface norm;
  /// The axis of the norm's x that the product sums over.
  int64_t axis;
  /// Whether everything on the way has one use.
  bool isOnlyUse = true;
  std::optional<RotaryLayout> rotary;
  SmallVector<Scaling> scalings;
};
} // namespace

/// Matches x * c and x / c, elementwise and of one type.
static std::optional<Scaling> matchScaling(Value value) {
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  if (!op || !op.hasPureTensorSemantics() || op.getNumDpsInits() != 1 ||
      op.getNumParallelLoops() != op.getNumLoops() ||
      !op.getIndexingMapsArray().back().isIdentity())
    return std::nullopt;
  Block &body = op->getRegion(0).front();
  Operation *found = body.getTerminator()->getOperand(0).getDefiningOp();
  auto isCounted = [](Operation &inner) {
    return !isa<arith::ConstantOp>(inner);
  };
  if (!isa_and_nonnull<arith::MulFOp, arith::DivFOp>(found) ||
      llvm::count_if(body.without_terminator(), isCounted) != 1)
    return std::nullopt;
  Operation &scalar = *found;
  auto tensorOf = [&](Value operand) -> OpOperand * {
    auto argument = dyn_cast<BlockArgument>(operand);
    if (!argument || argument.getOwner() != &body)
      return nullptr;
    OpOperand *operandOf = op.getMatchingOpOperand(argument);
    return op.isDpsInput(operandOf) ? operandOf : nullptr;
  };
  for (int64_t first : {0, 1}) {
    if (first == 1 && isa<arith::DivFOp>(scalar))
      break;
    OpOperand *source = tensorOf(scalar.getOperand(first));
    OpOperand *other = tensorOf(scalar.getOperand(1 - first));
    std::optional<double> number = matchConstantScalar(
        other ? other->get() : scalar.getOperand(1 - first));
    if (!source || !number || source->get().getType() != value.getType() ||
        !op.getMatchingIndexingMap(source).isIdentity())
      continue;
    return Scaling{value, source->get(),
                   isa<arith::DivFOp>(scalar) ? 1.0 / *number : *number};
  }
  return std::nullopt;
}

/// The tensor that a reshape which leaves dimension `dim` alone is made from,
/// and its place there.
static std::optional<std::pair<Value, int64_t>>
stepThroughReshape(Value value, int64_t dim) {
  auto place =
      [&](Value source, ArrayRef<ReassociationIndices> groups,
          bool isExpansion) -> std::optional<std::pair<Value, int64_t>> {
    for (auto [number, group] : llvm::enumerate(groups)) {
      int64_t here = isExpansion ? group.front() : number;
      if (group.size() == 1 && here == dim)
        return std::make_pair(source,
                              isExpansion ? int64_t(number) : group.front());
    }
    return std::nullopt;
  };
  if (auto expand = value.getDefiningOp<tensor::ExpandShapeOp>())
    return place(expand.getSrc(), expand.getReassociationIndices(), true);
  if (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>())
    return place(collapse.getSrc(), collapse.getReassociationIndices(), false);
  return std::nullopt;
}

/// Whether some norm is among what `value` is computed from, within a few
/// steps.
static bool comesFromNorm(Value value, int depth = 8) {
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return false;
  if (isa<NormOpInterface>(op))
    return true;
  // A product makes another tensor of it.
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (linalgOp && linalgOp.getNumReductionLoops() != 0)
    return false;
  if (!linalgOp && !isa_and_nonnull<tensor::TensorDialect>(op->getDialect()))
    return false;
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    return isa<RankedTensorType>(operand.getType()) &&
           comesFromNorm(operand, depth - 1);
  });
}

/// Walks from an operand of the product, whose dimension `dim` is summed over,
/// to the norm behind it. Without one, `stuck` is where the way ended.
static std::optional<Side> findNorm(Value value, int64_t dim, Value &stuck) {
  Side side;
  unsigned uses = 1;
  while (true) {
    side.isOnlyUse &= value.hasNUses(uses);
    uses = 1;
    if (auto norm = value.getDefiningOp<NormOpInterface>();
        norm && norm.getNormalized() == value) {
      side.norm = norm;
      side.axis = dim;
      return side;
    }
    if (std::optional<Copy> copy = matchCopy(value)) {
      const int64_t *source = llvm::find(copy->dims, dim);
      if (source != copy->dims.end()) {
        dim = source - copy->dims.begin();
        value = copy->source;
        continue;
      }
    } else if (auto reshaped = stepThroughReshape(value, dim)) {
      std::tie(value, dim) = *reshaped;
      continue;
    } else if (std::optional<Scaling> scaling = matchScaling(value)) {
      side.scalings.push_back(*scaling);
      value = scaling->source;
      continue;
    } else if (std::optional<RotaryEmbedding> rotary =
                   matchRotaryEmbedding(value);
               rotary && rotary->dim == dim && !side.rotary) {
      // Its three uses of what it rotates are one.
      uses = 3;
      side.rotary = rotary->layout;
      value = rotary->source;
      continue;
    }
    stuck = value;
    return std::nullopt;
  }
}

//===----------------------------------------------------------------------===//
// C33
//===----------------------------------------------------------------------===//

namespace {
struct MergeGains : OpInterfaceRewritePattern<linalg::LinalgOp> {
  MergeGains(MLIRContext *context, const RewritePolicy &policy)
      : OpInterfaceRewritePattern(context), rule("C33", policy) {}

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || op.getNumDpsInputs() != 2 ||
        op.getNumReductionLoops() != 1 ||
        !linalg::isaContractionOpInterface(op))
      return failure();
    FailureOr<std::pair<Side, Side>> sides = findSides(op);
    if (failed(sides))
      return failure();
    auto &[query, key] = *sides;
    if (query.norm == key.norm)
      return failure();
    SmallVector<Scaling> scalings = query.scalings;
    llvm::append_range(scalings, key.scalings);
    if (std::optional<Scaling> scores = scalingOf(op))
      scalings.push_back(*scores);
    if (!query.norm.getScaleOrNull() && scalings.empty())
      return failure();
    if (failed(check(query, key)))
      return failure();

    double factor = 1.0;
    for (const Scaling &scaling : scalings)
      factor *= scaling.factor;
    SmallVector<double> gain;
    if (failed(mergeGains(query, key, factor, gain)) ||
        !isRebuildable(rewriter, query.norm) ||
        !isRebuildable(rewriter, key.norm))
      return failure();
    rule.applied(key.norm, "the gain of the keys holds that of the queries and "
                           "the scale of the scores");
    // Users before what they use, so that no replaced value is asked for.
    for (const Scaling &scaling : llvm::reverse(scalings))
      rewriter.replaceAllUsesWith(scaling.result, scaling.source);
    apply(query.norm, key, gain, rewriter);
    return success();
  }

private:
  FailureOr<std::pair<Side, Side>> findSides(linalg::LinalgOp op) const;
  static std::optional<Scaling> scalingOf(linalg::LinalgOp op);
  LogicalResult check(Side query, Side key) const;
  LogicalResult mergeGains(Side query, Side key, double factor,
                           SmallVectorImpl<double> &gain) const;
  static void apply(NormOpInterface query, Side key, ArrayRef<double> gain,
                    PatternRewriter &rewriter);

  Rule rule;
};
} // namespace

FailureOr<std::pair<Side, Side>>
MergeGains::findSides(linalg::LinalgOp op) const {
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  AffineExpr summed = getAffineDimExpr(reductions.front(), op.getContext());
  SmallVector<std::optional<Side>, 2> sides;
  Value stuck;
  bool comeFromNorms = true;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    std::optional<unsigned> dim =
        op.getMatchingIndexingMap(operand).getResultPosition(summed);
    if (!dim)
      return failure();
    Value end;
    sides.push_back(findNorm(operand->get(), *dim, end));
    if (end) {
      stuck = end;
      comeFromNorms &= comesFromNorm(end);
    }
  }
  if (sides[0] && sides[1])
    return std::make_pair(*sides[0], *sides[1]);
  // A product of norms that something else was done to, unlike one with
  // weights, is worth a remark.
  if (comeFromNorms)
    return rule.refuse(stuck.getDefiningOp(), "nothing-between",
                       "expected nothing but moved elements, constant factors "
                       "and a rotary embedding between norm and product");
  return failure();
}

/// The scaling that is all that is done to the product, where it has no init.
std::optional<Scaling> MergeGains::scalingOf(linalg::LinalgOp op) {
  Value product = op->getResult(0);
  auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  if (!product.hasOneUse() || !fill ||
      matchConstantScalar(fill.getInputs()[0]) != 0.0)
    return std::nullopt;
  Operation *user = *product.getUsers().begin();
  if (user->getNumResults() != 1)
    return std::nullopt;
  std::optional<Scaling> scaling = matchScaling(user->getResult(0));
  return scaling && scaling->source == product ? scaling : std::nullopt;
}

LogicalResult MergeGains::check(Side query, Side key) const {
  Operation *op = key.norm;
  if (failed(rule.requireReal(op)) ||
      failed(rule.require(op, "only-use", query.isOnlyUse && key.isOnlyUse,
                          "something but the product reads the normalized "
                          "queries or keys")) ||
      failed(rule.require(op, "no-shift",
                          !query.norm.getShiftOrNull() &&
                              !key.norm.getShiftOrNull(),
                          "a shift does not see the gain")))
    return failure();
  for (Side side : {query, key})
    if (side.norm.getScaleOrNull() &&
        side.norm.getAffineAxesOrDefault() != SmallVector<int64_t>{side.axis})
      return rule.refuse(op, "gain-axes",
                         "expected gains along the summed axis alone");
  // The gain leaves the queries' embedding and enters that of the keys.
  auto commutes = [&](std::optional<RotaryLayout> layout) {
    return !layout ||
           commutesWithRotaryEmbedding(query.norm, query.axis, *layout);
  };
  return rule.require(
      op, "rotary", commutes(query.rotary) && commutes(key.rotary),
      "the gain of the queries does not commute with the rotary embedding "
      "(C34)");
}

/// The gain of the keys that holds everything, in f64.
LogicalResult MergeGains::mergeGains(Side query, Side key, double factor,
                                     SmallVectorImpl<double> &gain) const {
  NormOpInterface op = key.norm;
  int64_t extent = op.getInput().getType().getDimSize(key.axis);
  auto constantOf = [](NormOpInterface norm) {
    return matchConstant(norm.getScaleOrNull());
  };
  std::optional<ConstantTensor> ofQuery = constantOf(query.norm),
                                ofKey = constantOf(key.norm);
  if ((query.norm.getScaleOrNull() && !ofQuery) ||
      (key.norm.getScaleOrNull() && !ofKey) || ShapedType::isDynamic(extent))
    return rule.refuse(op, "constant-gains",
                       "expected constant gains along a static axis");
  FloatType type =
      widestElementType(op.getComputeTypeOrDefault(), {op.getScaleOrNull()});
  auto at = [](NormOpInterface norm, const std::optional<ConstantTensor> &scale,
               int64_t i) {
    return scale ? (*scale)[i] + norm.getScaleOffsetValue() : 1.0;
  };
  for (int64_t i = 0; i < extent; ++i) {
    double value = at(query.norm, ofQuery, i) * at(key.norm, ofKey, i) * factor;
    APFloat rounded = roundToType(value, type);
    if (!rounded.isFinite() || (rounded.isZero() && value != 0.0))
      return rule.refuse(op, "gain-range",
                         "expected a merged gain within the range of its type");
    gain.push_back(value);
  }
  return success();
}

void MergeGains::apply(NormOpInterface query, Side key, ArrayRef<double> gain,
                       PatternRewriter &rewriter) {
  NormContract plain = NormContract::get(query);
  plain.scale = {};
  plain.scaleOffset = 0.0;
  plain.affineAxes.reset();
  // Without parameters nothing is left of step 7 but its rounding.
  (void)replaceByContract(rewriter, query, plain);

  NormContract merged = NormContract::get(key.norm);
  // A gain of fewer bits than the arithmetic would be rounded once more.
  FloatType type = widestElementType(merged.computeType, {merged.scale});
  rewriter.setInsertionPoint(key.norm);
  merged.scale = createConstant(
      rewriter, key.norm.getLoc(),
      RankedTensorType::get({static_cast<int64_t>(gain.size())}, type), gain);
  merged.scaleOffset = 0.0;
  merged.affineAxes = SmallVector<int64_t>{key.axis};
  (void)replaceByContract(rewriter, key.norm, merged);
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

void norm::populateSimplifyAttentionPatterns(RewritePatternSet &patterns,
                                             const RewritePolicy &policy) {
  patterns.add<MergeGains>(patterns.getContext(), policy);
}
