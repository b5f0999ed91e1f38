//===- IntoConsumers.cpp - Norms into what comes after --------------------===//
//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// y = scale * x + shift is read by convolutions and matmuls alone, through ops
// that only move elements and through padding. Then their weights take the
// scale, and what they start from takes the sums of shift times weights.
//
//===----------------------------------------------------------------------===//

#include "Fold.h"

#include "Contraction.h"
#include "Parameters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::fold;

namespace {
/// scale * x + shift along `axes` of x.
struct Affine {
  SmallVector<int64_t> axes;
  SmallVector<double> scale, shift;

  bool hasShift() const {
    return llvm::any_of(shift, [](double value) { return value != 0.0; });
  }
};

/// A convolution or matmul that reads the value.
struct Consumer {
  OpOperand *input;
  /// The channel in the input.
  SmallVector<int64_t> dims;

  linalg::LinalgOp getOp() const {
    return cast<linalg::LinalgOp>(input->getOwner());
  }
  bool isConvolution() const {
    return !getOp().getMatchingIndexingMap(input).isProjectedPermutation();
  }
};

struct Consumers {
  SmallVector<Consumer> ops;
  SmallVector<tensor::PadOp> pads;
  /// The first other user, and whether it holds integer weights.
  Operation *other = nullptr;
  bool isQuantized = false;

  bool hasConvolution() const {
    return llvm::any_of(
        ops, [](const Consumer &consumer) { return consumer.isConvolution(); });
  }
};

/// What becomes of one consumer.
struct Plan {
  Consumer consumer;
  OpOperand *weight;
  SmallVector<double> weights;
  /// What is added to the result, along these dimensions of it.
  SmallVector<double> bias;
  SmallVector<int64_t> biasDims;
};
} // namespace

//===----------------------------------------------------------------------===//
// Finding
//===----------------------------------------------------------------------===//

/// Padding by a constant of other dimensions than the channel.
static bool isPadBeside(Operation *op, ArrayRef<int64_t> dims) {
  auto pad = dyn_cast<tensor::PadOp>(op);
  if (!pad || !matchConstantScalar(pad.getConstantPaddingValue()))
    return false;
  return llvm::all_of(dims, [&](int64_t dim) {
    return pad.getStaticLow()[dim] == 0 && pad.getStaticHigh()[dim] == 0;
  });
}

/// Follows every use of `value`, whose channel is `dims`.
static void collect(Value value, ArrayRef<int64_t> channel, int64_t count,
                    Consumers &found) {
  SmallVector<int64_t> dims = properDims(value, channel);
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    auto linalgOp = dyn_cast<linalg::LinalgOp>(user);
    BodyKind kind = linalgOp ? bodyKind(linalgOp) : BodyKind::Other;
    bool hasExtent = haveExtent(value, dims, count);
    if (hasExtent && kind == BodyKind::Products && linalgOp.isDpsInput(&use)) {
      found.ops.push_back({&use, dims});
      continue;
    }
    auto after = dimsAfter(user, dims);
    bool isPad = isPadBeside(user, dims);
    if (hasExtent && (isPad || (after && use.getOperandNumber() == 0))) {
      if (isPad)
        found.pads.push_back(cast<tensor::PadOp>(user));
      collect(user->getResult(0), isPad ? dims : *after, count, found);
      continue;
    }
    if (!found.other) {
      found.other = user;
      found.isQuantized = kind == BodyKind::Quantized;
    }
  }
}

/// The weights of a consumer scaled, and what the shift adds; refuses what
/// cannot be folded into.
static FailureOr<Plan> planConsumer(const Rule &rule, NormOpInterface op,
                                    const Consumer &consumer,
                                    const Affine &affine) {
  linalg::LinalgOp linalgOp = consumer.getOp();
  StringRef name = linalgOp->getName().getStringRef();
  unsigned number = consumer.input->getOperandNumber() == 0 ? 1 : 0;
  OpOperand *weight = linalgOp.getDpsInputOperand(number);
  auto weights = matchConstant(weight->get());
  if (!weights)
    return rule.refuse(op, "weights",
                       "the weights of " + name + " are not a constant");

  AffineMap weightMap = linalgOp.getMatchingIndexingMap(weight);
  auto loops =
      loopsOf(linalgOp.getMatchingIndexingMap(consumer.input), consumer.dims);
  auto channel = loops ? dimsOf(weightMap, *loops) : std::nullopt;
  if (!channel)
    return rule.refuse(op, "contraction-dim",
                       "the scale does not vary along an input channel of " +
                           name);
  Plan plan;
  plan.consumer = consumer;
  plan.weight = weight;
  plan.weights = scaleAlong(*weights, *channel, affine.scale);
  if (!affine.hasShift())
    return plan;

  // Each sum runs over all reduction loops: the weights must have them all.
  SmallVector<unsigned> parallel, reduction;
  for (auto [loop, kind] : llvm::enumerate(linalgOp.getIteratorTypesArray())) {
    bool isReduction = kind == utils::IteratorType::reduction;
    if (isReduction || weightMap.isFunctionOfDim(loop))
      (isReduction ? reduction : parallel).push_back(loop);
  }
  AffineMap resultMap =
      linalgOp.getIndexingMapMatchingResult(linalgOp->getResult(0));
  auto kept = dimsOf(weightMap, parallel);
  auto biasDims = dimsOf(resultMap, parallel);
  if (!dimsOf(weightMap, reduction) || !kept || !biasDims)
    return rule.refuse(op, "contraction-dim",
                       "the weights of " + name +
                           " do not hold every addend of the sums");
  plan.bias = sumAlong(*weights, *channel, affine.shift, *kept);
  plan.biasDims = std::move(*biasDims);
  return plan;
}

/// The padding of x that scale * x + shift makes that of y. nullopt if it is
/// not one number.
static std::optional<double> paddingBefore(double padding, Type type,
                                           const Affine &affine) {
  std::optional<double> common;
  for (auto [scale, shift] : llvm::zip_equal(affine.scale, affine.shift)) {
    APFloat before =
        roundToType((padding - shift) / scale, cast<FloatType>(type));
    if (shift == 0.0 && padding == 0.0)
      before = roundToType(0.0, cast<FloatType>(type));
    double value = before.convertToDouble();
    if (!before.isFinite() || (common && *common != value))
      return std::nullopt;
    // The border is to be exact: it is no rounding that one would expect.
    if (scale * value + shift != padding)
      return std::nullopt;
    common = value;
  }
  return common;
}

//===----------------------------------------------------------------------===//
// Folding
//===----------------------------------------------------------------------===//

static void setPadding(RewriterBase &rewriter, tensor::PadOp pad,
                       double padding) {
  auto yield = cast<tensor::YieldOp>(pad.getBody()->getTerminator());
  auto type = cast<FloatType>(yield.getValue().getType());
  rewriter.setInsertionPoint(pad);
  Value value = arith::ConstantOp::create(
      rewriter, pad.getLoc(), FloatAttr::get(type, roundToType(padding, type)));
  rewriter.modifyOpInPlace(yield, [&] { yield->setOperand(0, value); });
}

static void applyPlan(RewriterBase &rewriter, const Plan &plan) {
  linalg::LinalgOp op = plan.consumer.getOp();
  Location loc = op->getLoc();
  rewriter.setInsertionPoint(op);
  Value weights = createConstant(
      rewriter, loc, cast<RankedTensorType>(plan.weight->get().getType()),
      plan.weights);
  Value init = op.getDpsInits()[0];
  if (!plan.bias.empty()) {
    SmallVector<double> bias = plan.bias;
    if (auto start = constantAlong(init, plan.biasDims)) {
      for (auto [total, element] : llvm::zip_equal(bias, *start))
        total += element;
      init = broadcastConstant(rewriter, loc, bias, plan.biasDims, init);
    } else {
      init = addConstant(rewriter, loc, init, bias, plan.biasDims);
    }
  }
  linalg::LinalgOp folded =
      cloneWith(rewriter, op, *plan.weight, weights, init);
  rewriter.replaceAllUsesWith(op->getResult(0), folded->getResult(0));
  eraseDead(rewriter, op);
}

/// Plans every consumer, or refuses: all are rewritten or none.
static FailureOr<SmallVector<Plan, 0>>
planAll(const Rule &rule, NormOpInterface op, const Consumers &consumers,
        const Affine &affine, SmallVectorImpl<double> &paddings) {
  if (consumers.isQuantized)
    return rule.refuse(op, "float-weights",
                       "the weights are integers: " +
                           consumers.other->getName().getStringRef());
  if (consumers.other)
    return rule.refuse(op, "consumers",
                       "expected convolutions and matmuls to read the result, "
                       "got " +
                           consumers.other->getName().getStringRef());
  SmallVector<Plan, 0> plans;
  bool isFinite = true;
  for (const Consumer &consumer : consumers.ops) {
    FailureOr<Plan> plan = planConsumer(rule, op, consumer, affine);
    if (failed(plan))
      return failure();
    auto elementType = [](Value value) {
      return getElementTypeOrSelf(value.getType());
    };
    isFinite &=
        isFiniteIn(plan->weights, elementType(plan->weight->get())) &&
        isFiniteIn(plan->bias, elementType(consumer.getOp()->getResult(0)));
    plans.push_back(std::move(*plan));
  }
  for (tensor::PadOp pad : consumers.pads) {
    double padding = *matchConstantScalar(pad.getConstantPaddingValue());
    auto before =
        paddingBefore(padding, getElementTypeOrSelf(pad.getType()), affine);
    if (failed(rule.require(op, "padding", before.has_value(),
                            "what is padded differs from what the shift adds")))
      return failure();
    paddings.push_back(before.value_or(padding));
  }
  if (failed(rule.require(op, "finite", isFinite,
                          "a folded constant is not finite")))
    return failure();
  return plans;
}

static void applyAll(RewriterBase &rewriter, const Consumers &consumers,
                     ArrayRef<Plan> plans, ArrayRef<double> paddings) {
  for (auto [pad, padding] : llvm::zip_equal(consumers.pads, paddings))
    if (padding !=
        matchConstantScalar(tensor::PadOp(pad).getConstantPaddingValue()))
      setPadding(rewriter, pad, padding);
  for (const Plan &plan : plans)
    applyPlan(rewriter, plan);
}

static std::string countText(size_t count) {
  return std::to_string(count) + (count == 1 ? " op" : " ops");
}

LogicalResult fold::foldGivenNormIntoConsumers(RewriterBase &rewriter,
                                               const Rule &rule,
                                               NormOpInterface op) {
  Consumers consumers;
  SmallVector<int64_t> axes =
      complementAxes(op.getReducedAxes(), op.getInput().getType().getRank());
  int64_t count = staticExtent(op.getInput().getType(), axes)
                      .value_or(ShapedType::kDynamic);
  collect(op.getNormalized(), axes, count, consumers);
  if (consumers.ops.empty() && !consumers.isQuantized)
    return failure();
  FailureOr<GivenNorm> norm = matchGivenNorm(rule, op);
  if (failed(norm))
    return failure();
  if (op.getNormalized().getType() != op.getInput().getType())
    return rule.refuse(op, "types",
                       "the result has another type than the value");
  if (failed(rule.require(op, "near", !norm->isFar(),
                          "a mean is further from 0 than 64 deviations: x * a "
                          "would cancel against it")))
    return failure();
  Affine affine{norm->axes, norm->factor, norm->shift};
  for (auto [shift, factor, mean] :
       llvm::zip_equal(affine.shift, norm->factor, norm->mean))
    shift -= mean * factor;
  SmallVector<double> paddings;
  auto plans = planAll(rule, op, consumers, affine, paddings);
  if (failed(plans))
    return failure();
  rule.applied(op, "folded into the weights of " + countText(plans->size()));
  applyAll(rewriter, consumers, *plans, paddings);
  rewriter.replaceAllUsesWith(op.getNormalized(), op.getInput());
  rewriter.eraseOp(op);
  return success();
}

LogicalResult fold::foldAffineIntoConsumers(RewriterBase &rewriter,
                                            const RewritePolicy &policy,
                                            NormOpInterface op) {
  if (!op.getScaleOrNull() && !op.getShiftOrNull())
    return failure();
  Consumers consumers;
  SmallVector<int64_t> axes = op.getAffineAxesOrDefault();
  int64_t count = staticExtent(op.getInput().getType(), axes)
                      .value_or(ShapedType::kDynamic);
  collect(op.getNormalized(), axes, count, consumers);
  if (consumers.ops.empty() && !consumers.isQuantized)
    return failure();
  Rule rule =
      consumers.hasConvolution() ? Rule("C18", policy) : Rule("C19", policy);
  FailureOr<ConstantAffine> constants = matchConstantAffine(rule, op);
  if (failed(constants))
    return failure();
  Affine affine{constants->axes, constants->scale, constants->shift};
  SmallVector<double> paddings;
  auto plans = planAll(rule, op, consumers, affine, paddings);
  if (failed(plans))
    return failure();
  NormContract contract = NormContract::get(op);
  contract.scale = contract.shift = nullptr;
  contract.scaleOffset = 0.0;
  contract.affineAxes.reset();
  contract.affineIn = AffineIn::Compute;
  NormOpInterface bare = rebuildNorm(rewriter, op, contract);
  if (!bare)
    return failure();
  rule.applied(op, "folded into the weights of " + countText(plans->size()));
  applyAll(rewriter, consumers, *plans, paddings);
  replaceNorm(rewriter, op, NormResults::get(bare));
  return success();
}
