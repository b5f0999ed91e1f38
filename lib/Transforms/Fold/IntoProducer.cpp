//===- IntoProducer.cpp - Norms into what comes before --------------------===//
//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fold.h"

#include "Contraction.h"
#include "Parameters.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::fold;
using namespace mlir::norm::elements;

namespace {
/// The way from a norm up to the convolution or matmul whose value it
/// normalizes.
struct Producer {
  linalg::LinalgOp op;
  /// The channel in the op's result.
  SmallVector<int64_t> dims;
  /// What is added to the op's value on the way, per channel.
  SmallVector<double> bias;
  /// Additions that go away: their results, and what takes their place.
  SmallVector<std::pair<Value, Value>> additions;
  bool hasOneUse = true;
};

/// Where weights are, and which of their dimensions are the channel.
struct Weights {
  OpOperand *operand;
  SmallVector<int64_t> dims;
  ConstantTensor values;
};
} // namespace

/// If `value` is another tensor plus constants that vary along `dims`: that
/// tensor; adds the constants to `bias`.
static Value matchBiasAddition(Value value, ArrayRef<int64_t> dims,
                               SmallVectorImpl<double> &bias) {
  Frame frame(cast<RankedTensorType>(value.getType()));
  ViewAnalysis views(frame);
  View view = frame.identity(value);
  Expr sum = views.expand(view);
  if (!sum.is(Kind::Add))
    return {};
  for (unsigned i : {0, 1}) {
    auto addend = constantAlong(views, sum.operands[i], dims);
    if (!addend)
      continue;
    std::optional<View> other = sum.operands[1 - i];
    while (other && !other->isTensor())
      other = views.step(*other);
    if (!other || !frame.isIdentity(*other) ||
        other->value.getType() != value.getType())
      return {};
    for (auto [total, element] : llvm::zip_equal(bias, *addend))
      total += element;
    return other->value;
  }
  return {};
}

/// What stands where a convolution or matmul should.
static std::string nameOf(Value value) {
  if (Operation *op = value.getDefiningOp())
    return op->getName().getStringRef().str();
  return "an argument";
}

/// The producer of `op`'s input; refuses (`producer`) what is none.
static FailureOr<Producer> findProducer(const Rule &rule, NormOpInterface op,
                                        const GivenNorm &norm) {
  Producer producer;
  producer.bias.assign(norm.mean.size(), 0.0);
  Value value = op.getInput();
  SmallVector<int64_t> dims = properDims(value, norm.axes);
  for (;;) {
    if (!haveExtent(value, dims, norm.mean.size()))
      return rule.refuse(op, "channel",
                         "the extent of the channel is not known");
    producer.hasOneUse &= value.hasOneUse();
    Operation *def = value.getDefiningOp();
    auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(def);
    BodyKind kind = linalgOp ? bodyKind(linalgOp) : BodyKind::Other;
    if (kind == BodyKind::Quantized)
      return rule.refuse(op, "float-weights",
                         "the weights are integers: " + nameOf(value));
    if (kind == BodyKind::Products) {
      producer.op = linalgOp;
      producer.dims = std::move(dims);
      return producer;
    }
    if (def)
      if (auto before = dimsBefore(def, dims)) {
        value = def->getOperand(0);
        dims = properDims(value, *before);
        continue;
      }
    Value summand =
        def ? matchBiasAddition(value, dims, producer.bias) : Value();
    if (!summand)
      return rule.refuse(op, "producer",
                         "expected the value of a convolution or matmul, got " +
                             nameOf(value));
    producer.additions.emplace_back(value, summand);
    value = summand;
  }
}

/// The operand of the producer that is constant and has the channel.
static FailureOr<Weights> findWeights(const Rule &rule, NormOpInterface op,
                                      const Producer &producer) {
  linalg::LinalgOp linalgOp = producer.op;
  auto result = cast<OpResult>(linalgOp->getResult(0));
  auto loops =
      loopsOf(linalgOp.getIndexingMapMatchingResult(result), producer.dims);
  bool hasChannel = false;
  // Weights come second, as a rule.
  for (unsigned number : {1, 0}) {
    OpOperand *operand = linalgOp.getDpsInputOperand(number);
    auto dims = loops ? dimsOf(linalgOp.getMatchingIndexingMap(operand), *loops)
                      : std::nullopt;
    if (!dims)
      continue;
    hasChannel = true;
    if (auto values = matchConstant(operand->get()))
      return Weights{operand, std::move(*dims), std::move(*values)};
  }
  if (hasChannel)
    return rule.refuse(op, "weights",
                       "the operand with the channel is not a constant");
  return rule.refuse(op, "channel",
                     "the statistics do not vary along an output channel of " +
                         linalgOp->getName().getStringRef());
}

LogicalResult fold::foldIntoProducer(RewriterBase &rewriter, const Rule &rule,
                                     NormOpInterface op) {
  if (!op.hasGivenStatistics())
    return failure();
  FailureOr<GivenNorm> norm = matchGivenNorm(rule, op);
  if (failed(norm))
    return failure();
  FailureOr<Producer> producer = findProducer(rule, op, *norm);
  if (failed(producer))
    return failure();
  if (op.getNormalized().getType() != op.getInput().getType())
    return rule.refuse(op, "types",
                       "the result has another type than the value");
  FailureOr<Weights> weights = findWeights(rule, op, *producer);
  if (failed(weights))
    return failure();
  linalg::LinalgOp linalgOp = producer->op;
  Value init = linalgOp.getDpsInits()[0];
  auto initial = constantAlong(init, producer->dims);
  if (!initial)
    return rule.refuse(op, "bias",
                       "the sums start at values that are not constant along "
                       "the channel");
  if (failed(rule.require(op, "one-use", producer->hasOneUse,
                          "the value has other users")))
    return failure();

  SmallVector<double> bias;
  for (auto [added, start, mean, factor, shift] : llvm::zip_equal(
           producer->bias, *initial, norm->mean, norm->factor, norm->shift))
    bias.push_back((added + start - mean) * factor + shift);
  SmallVector<double> scaled =
      scaleAlong(weights->values, weights->dims, norm->factor);
  auto weightType = cast<RankedTensorType>(weights->operand->get().getType());
  auto initType = cast<RankedTensorType>(init.getType());
  if (failed(rule.require(op, "finite",
                          isFiniteIn(scaled, weightType.getElementType()) &&
                              isFiniteIn(bias, initType.getElementType()),
                          "a folded constant is not finite")))
    return failure();

  rule.applied(op, "folded into " + linalgOp->getName().getStringRef());
  rewriter.setInsertionPoint(linalgOp);
  Location loc = linalgOp->getLoc();
  Value newWeights = createConstant(rewriter, loc, weightType, scaled);
  Value newInit = broadcastConstant(rewriter, loc, bias, producer->dims, init);
  linalg::LinalgOp folded =
      cloneWith(rewriter, linalgOp, *weights->operand, newWeights, newInit);
  // From the norm up, so that each step is still there when it is replaced.
  rewriter.replaceAllUsesWith(op.getNormalized(), op.getInput());
  rewriter.eraseOp(op);
  for (auto [sum, summand] : producer->additions) {
    rewriter.replaceAllUsesWith(sum, summand);
    eraseDead(rewriter, sum.getDefiningOp());
  }
  rewriter.replaceAllUsesWith(linalgOp->getResult(0), folded->getResult(0));
  eraseDead(rewriter, linalgOp);
  return success();
}
