//===- Centred.cpp - Norms of what has the mean 0 -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// C11 and C12: a layer norm whose input has the mean 0, or can be given it by
// centring the weights that produce it, is an RMS norm.
//
//===----------------------------------------------------------------------===//

#include "Parts.h"
#include "Simplify.h"

#include "Norm/Analysis/Constants.h"
#include "Norm/Analysis/ElementView.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::elements;
using namespace mlir::norm::simplify;

//===----------------------------------------------------------------------===//
// C11: the mean is 0 already
//===----------------------------------------------------------------------===//

namespace {
/// Proves that the mean of a tensor along some axes is 0 in real arithmetic.
class ZeroMean {
public:
  ZeroMean(RankedTensorType type, ArrayRef<int64_t> axes)
      : frame(type), views(frame), axes(axes) {}

  bool holds(Value tensor) const { return holds(frame.identity(tensor), 8); }
  /// Whether the tensor looks as if it had been meant to hold.
  bool isNearMiss(Value tensor) const;

private:
  bool holds(const View &view, unsigned depth) const;
  bool holdsForResult(Value tensor) const;
  bool isMeanOf(View mean, const View &value) const;
  bool varies(const View &view) const;
  View peelCasts(View view) const;

  Frame frame;
  ViewAnalysis views;
  ArrayRef<int64_t> axes;
};
} // namespace

View ZeroMean::peelCasts(View view) const {
  for (;;) {
    Expr expr = views.expand(view);
    if (!expr.is(Kind::Ext) && !expr.is(Kind::Trunc))
      return view;
    view = expr.operands.front();
  }
}

/// Whether a gain differs between elements that share a statistic.
static bool variesInsideRows(NormOpInterface op) {
  if (splatGain(op))
    return false;
  RankedTensorType type = op.getInput().getType();
  return llvm::any_of(op.getAffineAxesOrDefault(), [&](int64_t axis) {
    bool isWhole = axis == op.getGroupedAxis() &&
                   type.getDimSize(axis) == op.getNumGroups();
    return type.getDimSize(axis) != 1 && !isWhole &&
           llvm::is_contained(op.getReducedAxes(), axis);
  });
}

/// The result of a norm that subtracts the mean over some of the axes: without
/// a shift and with one gain for each row, its rows have the mean 0.
bool ZeroMean::holdsForResult(Value tensor) const {
  auto op = tensor.getDefiningOp<NormOpInterface>();
  if (!op || op.getNormalized() != tensor || !op.isShiftInvariant())
    return false;
  bool isCovered = llvm::all_of(op.getReducedAxes(), [&](int64_t axis) {
    return llvm::is_contained(axes, axis);
  });
  bool hasShift =
      op.getShiftOrNull() && matchConstantScalar(op.getShiftOrNull()) != 0.0;
  return isCovered && !hasShift && !variesInsideRows(op);
}

/// sum(value) / n or sum(value) * (1 / n) over some of the axes.
bool ZeroMean::isMeanOf(View mean, const View &value) const {
  Expr quotient = views.expand(peelCasts(std::move(mean)));
  bool divides = quotient.is(Kind::Div);
  if (!divides && !quotient.is(Kind::Mul))
    return false;
  View sum = quotient.operands[0], divisor = quotient.operands[1];
  if (!divides && views.expand(sum).is(Kind::Constant))
    std::swap(sum, divisor);
  std::optional<llvm::APFloat> number = views.expand(divisor).floatConstant();
  Expr reduce = views.expand(peelCasts(sum));
  if (!number || !reduce.is(Kind::Reduce) || !reduce.isSum ||
      !reduce.startsAtZero || ShapedType::isDynamic(reduce.count) ||
      reduce.count == 0)
    return false;
  double count = static_cast<double>(reduce.count);
  auto type = cast<FloatType>(quotient.type);
  return number->bitwiseIsEqual(
             roundToType(divides ? count : 1.0 / count, type)) &&
         llvm::all_of(
             reduce.axes,
             [&](int32_t dim) { return llvm::is_contained(axes, dim); }) &&
         views.sameExact(reduce.operands.front(), value);
}

/// Whether an element that nothing is known of depends on one of the axes.
bool ZeroMean::varies(const View &unresolved) const {
  View view = views.look(unresolved);
  Expr expr = views.expand(view);
  if (expr.is(Kind::Constant))
    return false;
  if (!expr.operands.empty() && !expr.is(Kind::Reduce))
    return llvm::any_of(expr.operands,
                        [&](const View &operand) { return varies(operand); });
  return llvm::any_of(view.index, [&](int32_t dim) {
    return dim != kUnit && llvm::is_contained(axes, dim);
  });
}

bool ZeroMean::holds(const View &view, unsigned depth) const {
  bool isResult = false;
  views.look(view, [&](const View &seen) {
    isResult |=
        seen.isTensor() && frame.isIdentity(seen) && holdsForResult(seen.value);
  });
  if (isResult || depth == 0)
    return isResult;
  Expr expr = views.expand(view);
  auto recurse = [&](unsigned i) { return holds(expr.operands[i], depth - 1); };
  switch (expr.kind) {
  case Kind::Ext:
  case Kind::Trunc:
  case Kind::Neg:
    return recurse(0);
  case Kind::Sub:
    return isMeanOf(expr.operands[1], expr.operands[0]) ||
           (recurse(0) && recurse(1));
  case Kind::Add:
    return recurse(0) && recurse(1);
  case Kind::Mul:
    return (recurse(0) && !varies(expr.operands[1])) ||
           (recurse(1) && !varies(expr.operands[0]));
  case Kind::Div:
    return recurse(0) && !varies(expr.operands[1]);
  default:
    return false;
  }
}

bool ZeroMean::isNearMiss(Value tensor) const {
  View view = peelCasts(frame.identity(tensor));
  auto op = views.look(view).value.getDefiningOp<NormOpInterface>();
  return (op && op.isShiftInvariant()) || views.expand(view).is(Kind::Sub);
}

/// Zeros of the type of a mean that is read.
static Value createZeros(OpBuilder &builder, NormOpInterface op, Value mean) {
  auto type = cast<RankedTensorType>(mean.getType());
  SmallVector<OpFoldResult> sizes;
  for (int64_t axis : op.getKeptAxes())
    sizes.push_back(
        tensor::getMixedSize(builder, op.getLoc(), op.getInput(), axis));
  Value empty = tensor::EmptyOp::create(builder, op.getLoc(), sizes,
                                        type.getElementType());
  Value zero = buildNumber(builder, op.getLoc(), 0.0,
                           cast<FloatType>(type.getElementType()));
  return linalg::FillOp::create(builder, op.getLoc(), zero, empty).getResult(0);
}

/// The layer norm as an RMS norm of `x`.
static NormResults buildRms(RewriterBase &rewriter, NormOpInterface op,
                            Value x) {
  NormContract contract = NormContract::get(op);
  contract.x = x;
  contract.correction = 0;
  contract.wantsMean = false;
  return NormResults::get(buildAs<RMSNormOp>(rewriter, op, contract));
}

namespace {
/// C11: a layer norm of what has the mean 0.
struct LayerNormOfZeroMean : RulePattern<NormOpInterface> {
  LayerNormOfZeroMean(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C11", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    if (!isa<LayerNormOp>(op))
      return failure();
    SmallVector<int64_t> axes = op.getReducedAxes();
    ZeroMean analysis(op.getInput().getType(), axes);
    Value residual = op.getResidualOrNull();
    bool isProved = analysis.holds(op.getInput()) &&
                    (!residual || analysis.holds(residual));
    if (!isProved && !analysis.isNearMiss(op.getInput()))
      return failure();
    if (failed(rule.requireReal(op)) ||
        failed(rule.require(op, "mean-zero", isProved,
                            "the mean of the input is not known to be 0")) ||
        failed(rule.require(op, "correction", op.getCorrection() == 0,
                            "an RMS norm divides by n, not by n - 1")))
      return failure();
    Value mean = op.getMeanOrNull();
    NormResults results = buildRms(rewriter, op, op.getInput());
    rule.applied(op, "became an RMS norm: the mean of its input is 0");
    if (isUsed(mean))
      results.mean = createZeros(rewriter, op, mean);
    replaceNorm(rewriter, op, results);
    return success();
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// C12: the weights are centred
//===----------------------------------------------------------------------===//

namespace {
/// x = product + bias, where the product has constant weights.
struct LinearProducer {
  linalg::LinalgOp product;
  OpOperand *weights = nullptr, *other = nullptr;
  ConstantTensor values;
  /// Null values for none; for each dimension the axis of x that indexes it.
  std::optional<ConstantTensor> bias;
  SmallVector<int32_t, 6> biasIndex;
  bool subtractsBias = false;
};
} // namespace

/// A contraction with a constant operand.
static std::optional<LinearProducer> matchProduct(Value value) {
  auto product = value.getDefiningOp<linalg::LinalgOp>();
  if (!product || !product.hasPureTensorSemantics() ||
      !linalg::isaContractionOpInterface(product))
    return std::nullopt;
  for (unsigned i : {1, 0}) {
    OpOperand *weights = product.getDpsInputOperand(i);
    if (std::optional<ConstantTensor> values = matchConstant(weights->get()))
      return LinearProducer{
          product, weights,      product.getDpsInputOperand(1 - i),
          *values, std::nullopt, {},
          false};
  }
  return std::nullopt;
}

/// The product that a view reads whole, through casts.
static std::optional<LinearProducer> matchProduct(const ViewAnalysis &views,
                                                  View view) {
  for (;;) {
    view = views.look(view);
    if (view.isTensor() && views.frame.isIdentity(view))
      if (std::optional<LinearProducer> producer = matchProduct(view.value))
        return producer;
    Expr expr = views.expand(view);
    if (!expr.is(Kind::Ext) && !expr.is(Kind::Trunc))
      return std::nullopt;
    view = expr.operands.front();
  }
}

static std::optional<LinearProducer> matchLinear(Value x) {
  Frame frame(cast<RankedTensorType>(x.getType()));
  ViewAnalysis views(frame);
  View view = frame.identity(x);
  if (std::optional<LinearProducer> producer = matchProduct(views, view))
    return producer;
  Expr expr = views.expand(view);
  while (expr.is(Kind::Ext) || expr.is(Kind::Trunc))
    expr = views.expand(expr.operands.front());
  if (!expr.is(Kind::Add) && !expr.is(Kind::Sub))
    return std::nullopt;
  for (unsigned i : {1, 0}) {
    if (i == 0 && expr.is(Kind::Sub))
      break;
    View bias = views.stripExt(expr.operands[i]);
    std::optional<ConstantTensor> values;
    if (bias.isTensor())
      values = matchConstant(bias.value);
    else if (std::optional<double> number = matchConstantScalar(bias.value))
      values = ConstantTensor(RankedTensorType::get({}, bias.value.getType()),
                              {*number});
    auto producer = matchProduct(views, expr.operands[1 - i]);
    if (!values || !producer)
      continue;
    producer->bias = values;
    if (bias.isTensor())
      producer->biasIndex = bias.index;
    producer->subtractsBias = expr.is(Kind::Sub);
    return producer;
  }
  return std::nullopt;
}

/// The values less their mean over the dimensions for which `centred` is set.
static SmallVector<double> centre(const ConstantTensor &tensor,
                                  ArrayRef<bool> centred) {
  ArrayRef<int64_t> shape = tensor.getShape();
  int64_t count = tensor.getType().getNumElements(), rows = 1;
  for (auto [extent, isCentred] : llvm::zip_equal(shape, centred))
    rows *= isCentred ? 1 : extent;
  auto rowOf = [&](int64_t position) {
    int64_t row = 0, stride = 1;
    for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
      if (!centred[dim]) {
        row += position % shape[dim] * stride;
        stride *= shape[dim];
      }
      position /= shape[dim];
    }
    return row;
  };
  SmallVector<double> means(rows, 0.0), values;
  for (int64_t i = 0; i < count; ++i)
    means[rowOf(i)] += tensor[i];
  int64_t elements = count / rows;
  for (double &mean : means)
    mean /= static_cast<double>(elements);
  for (int64_t i = 0; i < count; ++i)
    values.push_back(tensor[i] - means[rowOf(i)]);
  return values;
}

/// The dimensions of an operand that one of the axes of the result indexes.
static SmallVector<bool> dimensionsAt(linalg::LinalgOp op, OpOperand *operand,
                                      ArrayRef<int64_t> axes) {
  AffineMap map = op.getMatchingIndexingMap(operand);
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
    return llvm::any_of(
        axes, [&](int64_t axis) { return out.getResult(axis) == expr; });
  });
}

static bool isFinite(const ConstantTensor &tensor) {
  int64_t count = tensor.isSplat() ? 1 : tensor.getType().getNumElements();
  return llvm::all_of(llvm::seq<int64_t>(0, count),
                      [&](int64_t i) { return std::isfinite(tensor[i]); });
}

/// Whether each value from the product to the norm is read once.
static bool isReadOnce(Value value, Value x) {
  for (int fuel = 8; fuel > 0; --fuel) {
    if (!value.hasOneUse())
      return false;
    if (value == x)
      return true;
    Operation *user = *value.user_begin();
    if (user->getNumResults() != 1)
      return false;
    value = user->getResult(0);
  }
  return false;
}

namespace {
/// C12: a layer norm of W x + b, whose mean W' = (I - 1 1^T / d) W and
/// b' = b - mean(b) take away.
struct LayerNormOfLinear : RulePattern<NormOpInterface> {
  LayerNormOfLinear(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C12", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override;

private:
  LogicalResult check(NormOpInterface op, LinearProducer &producer) const;
};
} // namespace

LogicalResult LayerNormOfLinear::check(NormOpInterface op,
                                       LinearProducer &producer) const {
  SmallVector<int64_t> axes = op.getReducedAxes();
  auto count = [](ArrayRef<bool> dims) {
    return static_cast<size_t>(llvm::count(dims, true));
  };
  bool areOutputs =
      count(dimensionsAt(producer.product, producer.weights, axes)) ==
          axes.size() &&
      count(dimensionsAt(producer.product, producer.other, axes)) == 0;
  if (failed(rule.require(op, "axes", areOutputs,
                          "the reduced axes are not outputs of the weights")) ||
      failed(rule.require(
          op, "init",
          matchConstantScalar(producer.product.getDpsInitOperand(0)->get()) ==
              0.0,
          "the product is added to something")) ||
      failed(rule.require(
          op, "uses", isReadOnce(producer.product->getResult(0), op.getInput()),
          "the product or the sum is read elsewhere")) ||
      failed(rule.require(op, "residual", !op.getResidualOrNull(),
                          "a residual is added, whose mean stays")))
    return failure();
  auto isWide = [](const ConstantTensor &tensor) {
    return tensor.getType().getElementTypeBitWidth() >= 32;
  };
  if (failed(rule.require(op, "type",
                          isWide(producer.values) &&
                              (!producer.bias || isWide(*producer.bias)),
                          "weights of 16 bits would be rounded again")) ||
      failed(rule.require(op, "finite",
                          isFinite(producer.values) &&
                              (!producer.bias || isFinite(*producer.bias)),
                          "a weight is not finite")) ||
      failed(rule.require(op, "correction", op.getCorrection() == 0,
                          "an RMS norm divides by n, not by n - 1")))
    return failure();
  return rule.require(op, "mean", !isUsed(op.getMeanOrNull()),
                      "the mean is read");
}

LogicalResult
LayerNormOfLinear::matchAndRewrite(NormOpInterface op,
                                   PatternRewriter &rewriter) const {
  if (!isa<LayerNormOp>(op))
    return failure();
  std::optional<LinearProducer> producer = matchLinear(op.getInput());
  if (!producer || failed(rule.requireReal(op)) || failed(check(op, *producer)))
    return failure();
  Location loc = op.getLoc();
  SmallVector<int64_t> axes = op.getReducedAxes();
  Value weights = createConstant(
      rewriter, loc, producer->values.getType(),
      centre(producer->values,
             dimensionsAt(producer->product, producer->weights, axes)));
  Operation *product = rewriter.clone(*producer->product);
  product->setOperand(producer->weights->getOperandNumber(), weights);
  Value x = product->getResult(0);

  // The bias, and the type that the norm reads.
  Type elementType = op.getInput().getType().getElementType();
  SmallVector<MappedOperand> others;
  if (producer->bias) {
    SmallVector<bool> centred =
        llvm::map_to_vector(producer->biasIndex, [&](int32_t axis) {
          return llvm::is_contained(axes, axis);
        });
    // A bias that does not vary along the axes has nothing but a mean.
    if (llvm::is_contained(centred, true))
      others.push_back({createConstant(rewriter, loc, producer->bias->getType(),
                                       centre(*producer->bias, centred)),
                        SmallVector<int64_t>(producer->biasIndex.begin(),
                                             producer->biasIndex.end())});
  }
  if (!others.empty() || getElementTypeOrSelf(x) != elementType)
    x = mapElements(
        rewriter, loc, x, others,
        [&](OpBuilder &b, Location bodyLoc, ValueRange args) -> Value {
          Value sum = args[0];
          auto type = cast<FloatType>(sum.getType());
          if (!others.empty()) {
            Value bias = castFloat(b, bodyLoc, args[1], type);
            sum = producer->subtractsBias
                      ? Value(arith::SubFOp::create(b, bodyLoc, sum, bias))
                      : Value(arith::AddFOp::create(b, bodyLoc, sum, bias));
          }
          return castFloat(b, bodyLoc, sum, cast<FloatType>(elementType));
        },
        elementType);
  if (x.getType() != op.getInput().getType())
    x = tensor::CastOp::create(rewriter, loc, op.getInput().getType(), x);
  NormResults results = buildRms(rewriter, op, x);
  rule.applied(op, "became an RMS norm: the weights take the mean away");
  replaceNorm(rewriter, op, results);
  return success();
}

void norm::populateCentredInputPatterns(RewritePatternSet &patterns,
                                        const RewritePolicy &policy) {
  patterns.add<LayerNormOfZeroMean, LayerNormOfLinear>(patterns.getContext(),
                                                       policy);
}
