//===- RaiseInference.cpp - Batch norm with given statistics --------------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// (x - mean) / sqrt(variance + epsilon) * gain + shift, where mean and variance
// are tensors of their own, one value per channel. Nothing is reduced, so the
// root says little: what makes the match is that everything but x is read along
// one and the same dimension.
//
//===----------------------------------------------------------------------===//

#include "RaiseMatch.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::raise;

//===----------------------------------------------------------------------===//
// Parameters and statistics
//===----------------------------------------------------------------------===//

/// A tensor with one value per channel; nullopt if it is none.
std::optional<MatchedParameter>
NormMatcher::channelParameter(const View &value) {
  std::optional<MatchedParameter> parameter = readParameter(value);
  if (!parameter || parameter->axes.size() != 1)
    return std::nullopt;
  return parameter;
}

/// Whether `tensor` comes from a sum within a few operations: the statistics of
/// this very batch, whose norm is another one.
static bool isReduced(Value tensor) {
  constexpr size_t kMaxOperations = 64;
  llvm::SmallSetVector<Operation *, 16> seen;
  if (Operation *def = tensor.getDefiningOp())
    seen.insert(def);
  for (size_t i = 0; i < seen.size() && i < kMaxOperations; ++i) {
    auto linalgOp = dyn_cast<linalg::LinalgOp>(seen[i]);
    if ((linalgOp && linalgOp.getNumReductionLoops() != 0) ||
        isa<RowOpInterface>(seen[i]))
      return true;
    for (Value operand : seen[i]->getOperands())
      if (Operation *def = operand.getDefiningOp())
        seen.insert(def);
  }
  return false;
}

static bool isFloatTensor(const MatchedParameter &parameter) {
  Type type = getElementTypeOrSelf(parameter.tensor.value);
  return type.isF64() || type.isF32() || type.isF16() || type.isBF16();
}

bool NormMatcher::takeGivenMean(MatchedNorm &norm, const View &mean) {
  std::optional<MatchedParameter> parameter = channelParameter(mean);
  if (!parameter || parameter->axes.front() != norm.given->channelAxis ||
      isReduced(parameter->tensor.value))
    return false;
  norm.given->mean = *parameter;
  return true;
}

//===----------------------------------------------------------------------===//
// Factor
//===----------------------------------------------------------------------===//

/// 1/sqrt(variance + epsilon) and its relatives. What is added is returned in
/// `epsilon` and looked at when the rest is known to be a norm.
bool NormMatcher::matchGivenFactor(const ProductNode &node, MatchedNorm &norm,
                                   std::optional<View> &epsilon) {
  MatchedFactor &factor = norm.core.factor;
  auto takeSum = [&](Expr &expr, EpsilonPlacement added,
                     EpsilonPlacement bounded) {
    if ((!expr.is(Kind::Add) && !expr.is(Kind::Max)) || epsilon)
      return std::optional<View>();
    auto isConstant = [&](unsigned i) {
      return views.expand(expr.operands[i]).is(Kind::Constant);
    };
    // A variance may be constant too.
    bool second = isConstant(0) &&
                  (!isConstant(1) || !channelParameter(expr.operands[0]));
    factor.placement = expr.is(Kind::Add) ? added : bounded;
    factor.types.insert(expr.type);
    epsilon = expr.operands[second ? 0 : 1];
    return std::optional<View>(expr.operands[second ? 1 : 0]);
  };

  Expr expr = views.expandUnfolded(peelCasts(node.view, factor.types));
  if (node.divides) {
    if (auto root = takeSum(expr, EpsilonPlacement::OutsideSqrt,
                            EpsilonPlacement::MaxOutside))
      expr = views.expandUnfolded(peelCasts(*root, factor.types));
  }
  if (node.divides ? !isRoot(views, expr) : !isReciprocalRoot(views, expr))
    return false;
  factor.types.insert(expr.type);
  Operation *owner = expr.operation->getParentOfType<linalg::LinalgOp>();
  factor.statistic.reduction = owner ? owner : expr.operation;

  View variance = peelCasts(expr.operands.front(), factor.types);
  Expr sum = views.expandUnfolded(variance);
  if (auto inner = takeSum(sum, EpsilonPlacement::InsideSqrt,
                           EpsilonPlacement::MaxInside))
    variance = *inner;
  std::optional<MatchedParameter> parameter = channelParameter(variance);
  if (!parameter || isReduced(parameter->tensor.value))
    return false;
  norm.given = GivenStatistics{*parameter, *parameter, parameter->axes.front()};
  factor.variance = variance;
  return true;
}

//===----------------------------------------------------------------------===//
// Gain, shift, types
//===----------------------------------------------------------------------===//

/// The other factors of the product, at most one gain, and the shift.
bool NormMatcher::takeGivenAffine(MatchedNorm &norm, const View *shift) {
  auto perChannel = [&](const View &value) {
    std::optional<MatchedParameter> parameter = channelParameter(value);
    if (parameter && parameter->axes.front() != norm.given->channelAxis)
      parameter.reset();
    return parameter;
  };
  for (auto &[value, divides] : norm.core.rest) {
    auto constant = views.expand(value).floatConstant();
    bool isScalar = !channelParameter(value);
    if (isScalar && constant && constant->isExactlyValue(1.0))
      continue;
    if (divides || norm.scale)
      return false;
    Expr sum = views.expand(value);
    if (sum.is(Kind::Add)) {
      for (unsigned i : {0, 1}) {
        auto one = views.expand(sum.operands[i]).floatConstant();
        if (!one || !one->isExactlyValue(1.0))
          continue;
        norm.scale = perChannel(sum.operands[1 - i]);
        norm.scaleOffset = norm.scale ? 1.0 : 0.0;
      }
    }
    if (!norm.scale)
      norm.scale = perChannel(value);
    if (!norm.scale)
      return false;
  }
  if (!shift)
    return true;
  norm.shift = perChannel(*shift);
  return norm.shift.has_value();
}

bool NormMatcher::finishGiven(MatchedNorm &norm,
                              const std::optional<View> &epsilon,
                              FloatType resultType) {
  MatchedFactor &factor = norm.core.factor;
  reduction = factor.statistic.reduction;
  factor.types.insert(norm.core.type);
  if (!isFloatTensor(norm.given->mean) || !isFloatTensor(norm.given->variance))
    return refuse(reduction, "type", "expected f64, f32, f16 or bf16");
  EpsilonPlacement placement = factor.placement;
  if (epsilon && !takeEpsilon(*epsilon, placement, factor))
    return false;
  if (!finish(norm, resultType ? resultType : norm.core.type))
    return false;
  // A rounding to another type than x's is a neighbour.
  return !resultType || resultType == getElementTypeOrSelf(norm.input.value);
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

/// (x - mean) * factor, times a gain, plus `shift`.
std::optional<MatchedNorm> NormMatcher::matchGivenCore(const View &product,
                                                       const View *shift,
                                                       FloatType resultType) {
  auto type = dyn_cast<FloatType>(views.expand(product).type);
  SmallVector<ProductNode> nodes = productNodes(views, product);
  for (const ProductNode &node : ArrayRef(nodes).drop_front()) {
    MatchedNorm norm;
    std::optional<View> epsilon;
    if (!type || !matchGivenFactor(node, norm, epsilon))
      continue;
    norm.core.type = type;
    auto isNumerator = [&](const View &view) {
      Expr centred = views.expand(view);
      if (!centred.is(Kind::Sub) || !takeGivenMean(norm, centred.operands[1]))
        return false;
      norm.core.input = centred.operands[0];
      norm.core.factor.types.insert(centred.type);
      return true;
    };
    bool sawFactor = false, sawNumerator = false;
    splitProduct(views, {product, false}, node, sawFactor, sawNumerator,
                 isNumerator, norm.core.rest);
    if (sawFactor && sawNumerator && takeGivenAffine(norm, shift) &&
        finishGiven(norm, epsilon, resultType))
      return norm;
  }
  return std::nullopt;
}

/// x * a + (shift - mean * a), with the product `factor` for a.
std::optional<MatchedNorm>
NormMatcher::matchScaleAndShift(const View &factor, const View &input,
                                const View &shift, FloatType resultType) {
  Expr rest = views.expand(shift);
  auto type = dyn_cast<FloatType>(rest.type);
  if (!type || !rest.is(Kind::Sub))
    return std::nullopt;
  Expr product = views.expand(rest.operands[1]);
  if (!product.is(Kind::Mul))
    return std::nullopt;
  bool first = views.same(product.operands[0], factor);
  if (!first && !views.same(product.operands[1], factor))
    return std::nullopt;
  for (const ProductNode &node : productNodes(views, factor)) {
    MatchedNorm norm;
    std::optional<View> epsilon;
    if (!matchGivenFactor(node, norm, epsilon) ||
        !takeGivenMean(norm, product.operands[first ? 1 : 0]))
      continue;
    norm.core.type = type;
    norm.core.input = input;
    bool sawFactor = false, sawNumerator = true;
    splitProduct(
        views, {factor, false}, node, sawFactor, sawNumerator,
        [](const View &) { return false; }, norm.core.rest);
    if (sawFactor && takeGivenAffine(norm, &rest.operands[0]) &&
        finishGiven(norm, epsilon, resultType))
      return norm;
  }
  return std::nullopt;
}

std::optional<MatchedNorm> NormMatcher::matchInference(const View &value,
                                                       FloatType resultType) {
  // A vector has no axis beside the channel.
  if (frame.rank() < 2)
    return std::nullopt;
  Expr expr = views.expand(value);
  if (!expr.is(Kind::Add))
    return matchGivenCore(value, nullptr, resultType);
  for (unsigned i : {0, 1}) {
    const View &product = expr.operands[i], &shift = expr.operands[1 - i];
    if (auto norm = matchGivenCore(product, &shift, resultType))
      return norm;
    Expr factors = views.expand(product);
    for (unsigned j : {0, 1})
      if (factors.is(Kind::Mul))
        if (auto norm =
                matchScaleAndShift(factors.operands[j], factors.operands[1 - j],
                                   shift, resultType))
          return norm;
  }
  return std::nullopt;
}
