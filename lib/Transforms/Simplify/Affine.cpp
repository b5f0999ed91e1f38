//===- Affine.cpp - What is multiplied and added to a norm -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../IR/Canonicalize.h"
#include "Norm/Analysis/Constants.h"
#include "Norm/Analysis/ElementView.h"
#include "Simplify.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

static FloatType elementType(Value tensor) {
  return cast<FloatType>(getElementTypeOrSelf(tensor.getType()));
}

bool norm::holdsAll(FloatType wide, FloatType narrow) {
  return wide == narrow || wide.getWidth() > narrow.getWidth();
}

Value norm::castFloat(OpBuilder &builder, Location loc, Value value,
                      FloatType type) {
  auto from = cast<FloatType>(value.getType());
  if (from == type)
    return value;
  if (from.getWidth() < type.getWidth())
    return arith::ExtFOp::create(builder, loc, type, value);
  if (from.getWidth() == type.getWidth())
    value = arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
  return arith::TruncFOp::create(builder, loc, type, value);
}

/// An elementwise op over loops of these extents. maps[i] gives, for each
/// dimension of inputs[i], the loop that indexes it, or -1 for one of extent 1.
static Value
elementwise(OpBuilder &builder, Location loc, ArrayRef<OpFoldResult> extents,
            ArrayRef<Value> inputs, ArrayRef<SmallVector<int64_t>> maps,
            FloatType type,
            function_ref<Value(OpBuilder &, Location, ValueRange)> body) {
  MLIRContext *context = builder.getContext();
  unsigned rank = extents.size();
  SmallVector<AffineMap> indexing;
  for (ArrayRef<int64_t> loops : maps) {
    SmallVector<AffineExpr> exprs;
    for (int64_t loop : loops)
      exprs.push_back(loop < 0 ? getAffineConstantExpr(0, context)
                               : getAffineDimExpr(loop, context));
    indexing.push_back(AffineMap::get(rank, 0, exprs, context));
  }
  indexing.push_back(AffineMap::getMultiDimIdentityMap(rank, context));
  Value out = tensor::EmptyOp::create(builder, loc, extents, type);
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, out.getType(), inputs, out, indexing, iterators,
             [&](OpBuilder &b, Location inner, ValueRange in) {
               linalg::YieldOp::create(b, inner, body(b, inner, in));
             })
      .getResult(0);
}

Value norm::castElements(OpBuilder &builder, Location loc, Value tensor,
                         FloatType type) {
  if (elementType(tensor) == type)
    return tensor;
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  return elementwise(builder, loc, tensor::getMixedSizes(builder, loc, tensor),
                     tensor, {llvm::to_vector(llvm::seq<int64_t>(0, rank))},
                     type, [&](OpBuilder &b, Location inner, ValueRange in) {
                       return castFloat(b, inner, in[0], type);
                     });
}

bool norm::mayHoldZero(Value value) {
  std::optional<ConstantTensor> constant = matchConstant(value);
  return !constant || llvm::is_contained(constant->getValues(), 0.0);
}

Value norm::broadcastShift(RewriterBase &rewriter, NormOpInterface op) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  Location loc = op->getLoc();
  FloatType type = elementType(op.getNormalized());
  Value shift = op.getShiftOrNull();
  SmallVector<OpFoldResult> extents =
      tensor::getMixedSizes(rewriter, loc, op.getInput());
  if (!shift) {
    RankedTensorType xType = op.getInput().getType();
    if (xType.hasStaticShape())
      return createConstant(rewriter, loc, xType.clone(type), 0.0);
    Value zero = arith::ConstantOp::create(rewriter, loc,
                                           rewriter.getFloatAttr(type, 0.0));
    Value out = tensor::EmptyOp::create(rewriter, loc, extents, type);
    return linalg::FillOp::create(rewriter, loc, zero, out).getResult(0);
  }
  FloatType compute = op.getComputeTypeOrDefault();
  return elementwise(rewriter, loc, extents, shift,
                     {op.getAffineAxesOrDefault()}, type,
                     [&](OpBuilder &b, Location inner, ValueRange in) {
                       Value rounded = castFloat(b, inner, in[0], compute);
                       return castFloat(b, inner, rounded, type);
                     });
}

void norm::replaceNormalized(RewriterBase &rewriter, NormOpInterface op,
                             Value y) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  Type type = op.getNormalized().getType();
  if (y.getType() != type)
    y = tensor::CastOp::create(rewriter, op->getLoc(), type, y);
  rewriter.replaceAllUsesWith(op.getNormalized(), y);
  if (op->use_empty())
    rewriter.eraseOp(op);
}

//===----------------------------------------------------------------------===//
// Constant operands
//===----------------------------------------------------------------------===//

namespace {
/// C4 for +0, which turns -0 into +0.
struct DropZeroShift : RulePattern<NormOpInterface> {
  DropZeroShift(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C4", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    std::optional<ConstantTensor> shift = matchConstant(op.getShiftOrNull());
    if (!shift || !llvm::all_of(shift->getValues(),
                                [](double value) { return value == 0.0; }))
      return failure();
    if (failed(rule.requireNoSignedZero(op)))
      return failure();
    NormContract contract = NormContract::get(op);
    contract.shift = nullptr;
    if (!contract.scale)
      contract.affineAxes.reset();
    rule.applied(op, "dropped a shift of 0");
    return replaceByContract(rewriter, op, contract);
  }
};

/// C5: a gain of 0 leaves the shift.
struct DropZeroGain : RulePattern<NormOpInterface> {
  DropZeroGain(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C5", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    std::optional<ConstantTensor> scale = matchConstant(op.getScaleOrNull());
    if (!scale || op.getNormalized().use_empty())
      return failure();
    FloatType compute = op.getComputeTypeOrDefault();
    double offset = roundedTo(op.getScaleOffsetValue(), compute);
    if (!llvm::all_of(scale->getValues(), [&](double value) {
          return roundedTo(value, compute) + offset == 0.0;
        }))
      return failure();
    if (failed(rule.requireNoNaN(op)) || failed(rule.requireNoInf(op)))
      return failure();
    if (mayHoldZero(op.getShiftOrNull()) &&
        failed(rule.requireNoSignedZero(op)))
      return failure();
    rule.applied(op, "replaced the result of a gain of 0 by the shift");
    replaceNormalized(rewriter, op, broadcastShift(rewriter, op));
    return success();
  }
};

/// C30: a residual of 0 adds nothing.
struct DropZeroResidual : RulePattern<NormOpInterface> {
  DropZeroResidual(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C30", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    NormContract contract = NormContract::get(op);
    std::optional<ConstantTensor> residual = matchConstant(contract.residual);
    if (!residual || !llvm::all_of(residual->getValues(),
                                   [](double value) { return value == 0.0; }))
      return failure();
    bool isNegative = llvm::all_of(residual->getValues(), [](double value) {
      return std::signbit(value);
    });
    if (!isNegative && failed(rule.requireNoSignedZero(op)))
      return failure();
    FloatType xType = elementType(contract.x);
    bool isExact = contract.sumRounding == SumRounding::Compute ||
                   !contract.sumType || holdsAll(contract.sumType, xType);
    if (failed(rule.require(op, "sum-type", isExact,
                            "x is rounded to the type of 'sum' before it is "
                            "normalized")))
      return failure();
    FloatType sumType = contract.sumType;
    NormContract old = contract;
    contract.residual = nullptr;
    contract.sumType = nullptr;
    contract.sumRounding = SumRounding::Stored;
    if (correctsMeanAgain(op, contract) != correctsMeanAgain(op, old) &&
        failed(rule.requireReal(op)))
      return failure();
    NormOpInterface rebuilt = rebuildNorm(rewriter, op, contract);
    if (!rebuilt)
      return rewriter.notifyMatchFailure(op, "the op cannot be rebuilt");
    NormResults results = NormResults::get(rebuilt);
    if (sumType)
      results.sum = castElements(rewriter, op->getLoc(), contract.x, sumType);
    rule.applied(op, "dropped a residual of 0");
    replaceNorm(rewriter, op, results);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// C20
//===----------------------------------------------------------------------===//

/// y + b as one op that reads y, where b has fewer axes than y.
struct BiasAddition {
  Operation *op = nullptr;
  /// b as it is read: a tensor and the axis of y that indexes each of its
  /// dimensions (-1 for none), or a number.
  Value tensor;
  SmallVector<int64_t> axes;
  double number = 0.0;
  /// The type of the addition.
  FloatType type;

  /// b where it is constant.
  std::optional<ConstantTensor> constant() const {
    return tensor ? matchConstant(tensor) : std::nullopt;
  }
  static std::optional<BiasAddition> match(Value y);
  static std::optional<BiasAddition> match(Value y, Operation *user);
};
} // namespace

std::optional<BiasAddition> BiasAddition::match(Value y) {
  for (Operation *user : y.getUsers())
    if (std::optional<BiasAddition> found = match(y, user))
      return found;
  return std::nullopt;
}

std::optional<BiasAddition> BiasAddition::match(Value y, Operation *user) {
  using namespace elements;
  auto yType = cast<RankedTensorType>(y.getType());
  if (user->getNumResults() != 1)
    return std::nullopt;
  auto type = dyn_cast<RankedTensorType>(user->getResult(0).getType());
  if (!type || type.getShape() != yType.getShape() ||
      !isa<FloatType>(type.getElementType()))
    return std::nullopt;
  Frame frame(type);
  ViewAnalysis views(frame);
  Expr sum = views.expand(frame.identity(user->getResult(0)));
  if (sum.is(Kind::Trunc) || sum.is(Kind::Ext))
    sum = views.expand(sum.operands[0]);
  if (!sum.is(Kind::Add))
    return std::nullopt;
  View lhs = views.stripExt(sum.operands[0]),
       rhs = views.stripExt(sum.operands[1]);
  if (rhs.value == y)
    std::swap(lhs, rhs);
  if (lhs.value != y || !frame.isIdentity(lhs) || rhs.value == y)
    return std::nullopt;
  BiasAddition found;
  found.op = user;
  found.type = cast<FloatType>(sum.type);
  if (auto number = views.expand(rhs).floatConstant()) {
    bool losesInfo = false;
    number->convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                    &losesInfo);
    found.number = number->convertToDouble();
    return found;
  }
  if (!rhs.isTensor())
    return std::nullopt;
  found.tensor = rhs.value;
  SmallVector<int32_t, 6> proper = frame.properDims();
  for (int32_t dim : rhs.index) {
    found.axes.push_back(dim == kUnit ? -1 : dim);
    // Each axis at most once.
    if (dim != kUnit) {
      if (!llvm::is_contained(proper, dim))
        return std::nullopt;
      llvm::erase(proper, dim);
    }
  }
  // All axes of y: another tensor, not a bias.
  if (proper.empty())
    return std::nullopt;
  return found;
}

/// The narrowest type that has all numbers of both.
static FloatType commonType(FloatType a, FloatType b) {
  if (a.getWidth() == b.getWidth() && a != b)
    return Float32Type::get(a.getContext());
  return a.getWidth() < b.getWidth() ? b : a;
}

namespace {
/// C20: what is added to a norm's result is a part of its shift.
struct FoldBias : RulePattern<NormOpInterface> {
  FoldBias(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C20", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    std::optional<BiasAddition> bias = BiasAddition::match(op.getNormalized());
    if (!bias)
      return failure();
    DominanceInfo dominance;
    if (bias->tensor && !bias->constant() &&
        !dominance.properlyDominates(bias->tensor, op))
      return failure();
    if (failed(rule.requireReal(op)) ||
        failed(rule.require(op, "single-use", op.getNormalized().hasOneUse(),
                            "the sum is not the only use of the result")) ||
        failed(rule.require(op, "affine-in-compute",
                            op.getAffineIn() == AffineIn::Compute,
                            "scale and shift round in the result's type")) ||
        failed(rule.require(op, "compute-type",
                            holdsAll(op.getComputeTypeOrDefault(), bias->type),
                            "the bias is added in a wider type than the "
                            "compute type")))
      return failure();
    NormContract contract = NormContract::get(op);
    contract.affineAxes = affineAxes(op, *bias);
    if (!contract.affineAxes)
      return rule.refuse(op, "affine-axes",
                         "the addend varies along an axis that the shift does "
                         "not index");
    contract.resultType = elementType(bias->op->getResult(0));
    contract.shift = merge(rewriter, op, *bias, *contract.affineAxes);
    NormOpInterface rebuilt = rebuildNorm(rewriter, op, contract);
    if (!rebuilt)
      return rewriter.notifyMatchFailure(op, "the op cannot be rebuilt");
    rule.applied(op, "added a bias to the shift");
    NormResults results = NormResults::get(rebuilt);
    Value sum = results.y;
    Type sumType = bias->op->getResult(0).getType();
    if (sum.getType() != sumType)
      sum = tensor::CastOp::create(rewriter, op->getLoc(), sumType, sum);
    rewriter.replaceOp(bias->op, sum);
    replaceNorm(rewriter, op, results);
    return success();
  }

private:
  /// The axes of the new shift: those of scale and shift; where there is
  /// neither, the op's default if it has all of b's, else b's own.
  static std::optional<SmallVector<int64_t>>
  affineAxes(NormOpInterface op, const BiasAddition &bias) {
    SmallVector<int64_t> own;
    for (int64_t axis : bias.axes)
      if (axis >= 0)
        own.push_back(axis);
    llvm::sort(own);
    SmallVector<int64_t> axes = op.getAffineAxesOrDefault();
    if (llvm::all_of(
            own, [&](int64_t axis) { return llvm::is_contained(axes, axis); }))
      return axes;
    if (op.getScaleOrNull() || op.getShiftOrNull())
      return std::nullopt;
    return own;
  }

  /// shift + b over the affine axes: folded in f64 and rounded once where both
  /// are constant.
  static Value merge(PatternRewriter &rewriter, NormOpInterface op,
                     const BiasAddition &bias, ArrayRef<int64_t> axes) {
    Location loc = op->getLoc();
    Value shift = op.getShiftOrNull();
    // No type is too narrow for either addend, or for their sum.
    FloatType type = commonType(op.getComputeTypeOrDefault(), bias.type);
    for (Value addend : {shift, bias.tensor})
      if (addend)
        type = commonType(type, elementType(addend));

    RankedTensorType xType = op.getInput().getType();
    SmallVector<int64_t> shape;
    SmallVector<OpFoldResult> extents;
    for (int64_t axis : axes) {
      shape.push_back(xType.getDimSize(axis));
      extents.push_back(
          tensor::getMixedSize(rewriter, loc, op.getInput(), axis));
    }
    // Where the dimensions of b lie among those of the shift.
    SmallVector<int64_t> loops;
    for (int64_t axis : bias.axes)
      loops.push_back(
          axis < 0 ? -1 : std::distance(axes.begin(), llvm::find(axes, axis)));
    auto shiftType = RankedTensorType::get(shape, type);
    std::optional<ConstantTensor> constant = bias.constant(),
                                  old = matchConstant(shift);
    if ((constant || !bias.tensor) && (old || !shift) &&
        shiftType.hasStaticShape())
      return createConstant(
          rewriter, loc, shiftType,
          foldedSum(shape, old, constant, bias.number, loops));

    SmallVector<Value> inputs;
    SmallVector<SmallVector<int64_t>> maps;
    if (shift) {
      inputs.push_back(shift);
      maps.push_back(llvm::to_vector(llvm::seq<int64_t>(0, axes.size())));
    }
    if (bias.tensor) {
      // A constant may stand after the norm.
      inputs.push_back(constant
                           ? createConstant(rewriter, loc, constant->getType(),
                                            constant->getValues())
                           : bias.tensor);
      maps.push_back(loops);
    }
    return elementwise(
        rewriter, loc, extents, inputs, maps, type,
        [&](OpBuilder &b, Location inner, ValueRange in) -> Value {
          Value sum = bias.tensor
                          ? castFloat(b, inner, in[inputs.size() - 1], type)
                          : arith::ConstantOp::create(
                                b, inner, FloatAttr::get(type, bias.number));
          if (!shift)
            return sum;
          return arith::AddFOp::create(b, inner,
                                       castFloat(b, inner, in[0], type), sum);
        });
  }

  /// The sums at every position of `shape`; `loops` as in `merge`.
  static SmallVector<double>
  foldedSum(ArrayRef<int64_t> shape, const std::optional<ConstantTensor> &shift,
            const std::optional<ConstantTensor> &bias, double number,
            ArrayRef<int64_t> loops) {
    int64_t total = ShapedType::getNumElements(shape);
    SmallVector<double> sums;
    SmallVector<int64_t> index(shape.size(), 0);
    for (int64_t i = 0; i < total; ++i) {
      int64_t rest = i;
      for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
        index[dim] = rest % shape[dim];
        rest /= shape[dim];
      }
      double sum = shift ? (*shift)[i] : 0.0;
      if (bias) {
        int64_t position = 0;
        for (auto [dim, loop] : llvm::enumerate(loops))
          position =
              position * bias->getShape()[dim] + (loop < 0 ? 0 : index[loop]);
        sum += (*bias)[position];
      } else {
        sum += number;
      }
      sums.push_back(sum);
    }
    return sums;
  }
};
} // namespace

void norm::populateSimplifyAffinePatterns(RewritePatternSet &patterns,
                                          const RewritePolicy &policy) {
  patterns.add<DropZeroShift, DropZeroGain, DropZeroResidual, FoldBias>(
      patterns.getContext(), policy);
}
