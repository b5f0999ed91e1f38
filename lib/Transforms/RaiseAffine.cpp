//===- RaiseAffine.cpp - Core, gain, shift and types of a norm ------------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RaiseMatch.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <cmath>

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::raise;

using llvm::APFloat;

static FloatType widest(FloatType a, FloatType b) {
  return a.getWidth() >= b.getWidth() ? a : b;
}

static std::string typeText(Type type) {
  std::string buffer;
  llvm::raw_string_ostream os(buffer);
  os << type;
  return buffer;
}

//===----------------------------------------------------------------------===//
// Core: (input - mean?) * factor
//===----------------------------------------------------------------------===//

SmallVector<ProductNode> raise::productNodes(const ViewAnalysis &views,
                                             const View &product) {
  constexpr size_t kMaxNodes = 32; // a norm has three or four factors
  SmallVector<ProductNode> nodes = {{product, false}};
  for (size_t i = 0; i < nodes.size() && nodes.size() < kMaxNodes; ++i) {
    ProductNode node = nodes[i];
    Expr expr = views.expand(node.view);
    if (!expr.is(Kind::Mul) && !expr.is(Kind::Div))
      continue;
    nodes.push_back({expr.operands[0], node.divides});
    nodes.push_back(
        {expr.operands[1], expr.is(Kind::Div) ? !node.divides : node.divides});
  }
  return nodes;
}

bool NormMatcher::matchNumerator(const View &value, MatchedCore &core) {
  const MatchedStatistic &statistic = core.factor.statistic;
  if (!statistic.centred) {
    if (!views.sameExact(value, statistic.input))
      return false;
    core.input = value;
    return true;
  }
  TypeSet types = core.factor.types;
  Expr centred = views.expand(peelCasts(value, types));
  if (!centred.is(Kind::Sub) ||
      !views.sameExact(centred.operands[0], statistic.input))
    return false;
  types.insert(centred.type);
  if (!matchMean(centred.operands[1], statistic.input, statistic.axes, types))
    return false;
  core.factor.types = types;
  core.input = centred.operands[0];
  core.mean = centred.operands[1];
  return true;
}

bool raise::splitProduct(const ViewAnalysis &views, const ProductNode &node,
                         const ProductNode &factor, bool &sawFactor,
                         bool &sawNumerator,
                         llvm::function_ref<bool(const View &)> isNumerator,
                         SmallVectorImpl<std::pair<View, bool>> &rest) {
  if (!sawFactor && node.view == factor.view && node.divides == factor.divides)
    return sawFactor = true;
  if (!sawNumerator && !node.divides && isNumerator(node.view))
    return sawNumerator = true;
  Expr expr = views.expand(node.view);
  size_t before = rest.size();
  if (expr.is(Kind::Mul) || expr.is(Kind::Div)) {
    ProductNode left{expr.operands[0], node.divides};
    ProductNode right{expr.operands[1],
                      expr.is(Kind::Div) ? !node.divides : node.divides};
    bool inLeft = splitProduct(views, left, factor, sawFactor, sawNumerator,
                               isNumerator, rest);
    bool inRight = splitProduct(views, right, factor, sawFactor, sawNumerator,
                                isNumerator, rest);
    if (inLeft || inRight)
      return true;
    rest.truncate(before);
  }
  rest.emplace_back(node.view, node.divides);
  return false;
}

/// All ways to read `product` as a core, the outermost factor first, until
/// `accept` takes one.
std::optional<MatchedNorm>
NormMatcher::matchCore(const View &product,
                       llvm::function_ref<bool(MatchedNorm &)> accept) {
  // The whole product is no factor of itself.
  SmallVector<ProductNode> nodes = productNodes(views, product);
  for (const ProductNode &node : ArrayRef(nodes).drop_front()) {
    std::optional<MatchedFactor> factor = matchFactor(node.view, node.divides);
    if (!factor)
      continue;
    reduction = factor->statistic.reduction;
    auto *known = refusals.find(reduction);
    if (known != refusals.end() && known->second.isFinal)
      continue;
    MatchedNorm norm;
    MatchedCore &core = norm.core;
    core.factor = *factor;
    core.type = cast<FloatType>(views.expand(product).type);
    core.factor.types.insert(core.type);
    bool sawFactor = false, sawNumerator = false;
    splitProduct(
        views, {product, false}, node, sawFactor, sawNumerator,
        [&](const View &view) { return matchNumerator(view, core); },
        core.rest);
    if (!sawNumerator) {
      refuse(reduction, "same-value",
             factor->statistic.centred
                 ? "the normalized value is not the centred value whose "
                   "variance was taken"
                 : "the normalized value is not the one whose squares were "
                   "summed");
      continue;
    }
    if (accept(norm))
      return norm;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Gain and shift
//===----------------------------------------------------------------------===//

/// The last tensor behind `value` whose dimensions are those of the frame, in
/// order, with or without ones of extent 1.
std::optional<MatchedParameter> NormMatcher::readParameter(const View &value) {
  auto properAxes = [](const View &view) {
    SmallVector<int64_t> dims;
    for (int32_t dim : view.index)
      if (dim != kUnit)
        dims.push_back(dim);
    return dims;
  };
  auto isStatic = [&](const View &view) {
    auto type = cast<RankedTensorType>(view.value.getType());
    return llvm::all_of(llvm::zip_equal(type.getShape(), view.index),
                        [&](auto pair) {
                          auto [extent, dim] = pair;
                          return dim == kUnit || extent == frame.shape[dim];
                        });
  };
  auto readable = [&](const View &view) {
    SmallVector<int64_t> dims = properAxes(view);
    return !dims.empty() && isStatic(view) &&
           llvm::all_of(llvm::seq<size_t>(1, dims.size()),
                        [&](size_t i) { return dims[i - 1] < dims[i]; });
  };
  auto readableAsIs = [&](const View &view) {
    return readable(view) && !llvm::is_contained(view.index, kUnit);
  };
  std::optional<View> tensor =
      lastTensor(views, value, /*throughExt=*/true, readableAsIs);
  if (!tensor)
    tensor = lastTensor(views, value, /*throughExt=*/true, readable);
  if (!tensor)
    return std::nullopt;
  return MatchedParameter{*tensor, properAxes(*tensor)};
}

std::optional<MatchedParameter>
NormMatcher::matchParameter(const View &value, ArrayRef<int32_t> axes) {
  std::optional<MatchedParameter> found = readParameter(value);
  if (!found)
    return std::nullopt;
  MatchedParameter &parameter = *found;
  auto isReduced = [&](int64_t dim) { return llvm::is_contained(axes, dim); };
  if (llvm::none_of(parameter.axes, isReduced)) {
    // One parameter per kept channel: a batch, instance or group norm, which a
    // layer_norm without affine must not hide.
    if (parameter.axes.size() == 1 &&
        (cast<linalg::LinalgOp>(reduction).getNumReductionLoops() > 1 ||
         llvm::is_contained(axes, 0))) {
      refuse(reduction, "affine-axes",
             "gain and shift vary along a kept axis only, as in a batch or "
             "instance norm");
      refusals.find(reduction)->second.isFinal = true;
    }
    return std::nullopt;
  }
  // A value of x's whole shape is a neighbour (a residual, a gate), not a
  // parameter.
  SmallVector<int32_t, 6> proper = frame.properDims();
  if (parameter.axes.size() == proper.size() && proper.size() > axes.size())
    return std::nullopt;
  return parameter;
}

bool NormMatcher::takeGain(MatchedNorm &norm, const View &gain) {
  ArrayRef<int32_t> axes = norm.core.factor.statistic.axes;
  View value = gain;
  Expr expr = views.expand(value);
  if (norm.affineIn == AffineIn::Result && expr.is(Kind::Trunc)) {
    value = expr.operands.front();
    expr = views.expand(value);
  }
  // 1 + gain, formed in the type it is used in (or rounded to it once).
  if (expr.is(Kind::Add)) {
    for (unsigned i : {0, 1}) {
      auto one = views.expand(expr.operands[i]).floatConstant();
      if (!one || !one->isExactlyValue(1.0))
        continue;
      norm.scale = matchParameter(expr.operands[1 - i], axes);
      if (norm.scale)
        norm.scaleOffset = 1.0;
    }
  }
  if (!norm.scale)
    norm.scale = matchParameter(value, axes);
  return norm.scale.has_value();
}

bool NormMatcher::takeShift(MatchedNorm &norm, const View &shift) {
  View value = shift;
  Expr expr = views.expand(value);
  if (norm.affineIn == AffineIn::Result && expr.is(Kind::Trunc))
    value = expr.operands.front();
  norm.shift = matchParameter(value, norm.core.factor.statistic.axes);
  return norm.shift && (!norm.scale || norm.scale->axes == norm.shift->axes);
}

/// The other factors of the product: at most one gain, and constants that
/// belong to the norm itself.
bool NormMatcher::takeRest(MatchedNorm &norm) {
  MatchedStatistic &statistic = norm.core.factor.statistic;
  bool isMean = !statistic.isPlainSum;
  for (auto &[value, divides] : norm.core.rest) {
    auto constant = views.expand(value).floatConstant();
    if (constant && constant->isExactlyValue(1.0))
      continue;
    // x / |x| * sqrt(n) is x over the root of the mean square.
    if (constant && !isMean && !ShapedType::isDynamic(statistic.count)) {
      APFloat root(std::sqrt(static_cast<double>(statistic.count)));
      APFloat inverse(1.0 / std::sqrt(static_cast<double>(statistic.count)));
      APFloat &expected = divides ? inverse : root;
      bool losesInfo = false;
      expected.convert(constant->getSemantics(), APFloat::rmNearestTiesToEven,
                       &losesInfo);
      if (expected.bitwiseIsEqual(*constant)) {
        isMean = true;
        continue;
      }
    }
    if (divides || norm.scale || !takeGain(norm, value))
      return false;
  }
  if (!isMean)
    return refuse(reduction, "l2",
                  "the sum of squares is not divided by its count: an l2 "
                  "norm, which is not raised");
  if (statistic.isPlainSum && statistic.centred)
    return refuse(reduction, "divisor",
                  "a sum of squared deviations is not divided by its count");
  return true;
}

//===----------------------------------------------------------------------===//
// Types and epsilon
//===----------------------------------------------------------------------===//

bool NormMatcher::decideComputeType(MatchedNorm &norm) {
  FloatType type = norm.core.type;
  auto inputType = cast<FloatType>(getElementTypeOrSelf(norm.input.value));
  FloatType standard = widest(Float32Type::get(type.getContext()), inputType);
  auto is = [](Type expected) {
    return [expected](Type type) { return type == expected; };
  };
  const TypeSet &types = norm.core.factor.types;
  bool isUniform = llvm::all_of(types, is(type));
  bool isWiderInPart = type.isF32() && llvm::all_of(types, [](Type t) {
                         return t.isF32() || t.isF64();
                       });

  if (!isUniform && isWiderInPart)
    norm.notes.push_back("statistics taken in f64 become f32");
  if (isUniform || isWiderInPart) {
    bool isNarrow = type.getWidth() < standard.getWidth();
    if (isNarrow && mode == StatisticsMode::Widen) {
      norm.notes.push_back("statistics taken in " + typeText(type) +
                           " become " + typeText(standard));
      return true;
    }
    if (isNarrow)
      norm.notes.push_back("statistics stay in " + typeText(type) +
                           ", as written");
    if (type != standard)
      norm.computeType = type;
    return true;
  }
  if (mode == StatisticsMode::Widen && standard.getWidth() >= type.getWidth()) {
    norm.notes.push_back("statistics rounded to several types become " +
                         typeText(standard));
    return true;
  }
  std::string list;
  for (Type t : types)
    list += (list.empty() ? "" : ", ") + typeText(t);
  return refuse(reduction, "rounding",
                "one compute type cannot say that statistics round to " + list);
}

bool NormMatcher::decideEpsilon(MatchedNorm &norm) {
  MatchedFactor &factor = norm.core.factor;
  auto inputType = cast<FloatType>(getElementTypeOrSelf(norm.input.value));
  MLIRContext *context = inputType.getContext();
  if (!factor.epsilon || factor.epsilon->written.isZero()) {
    norm.epsilon = EpsilonAttr::get(context, EpsilonPlacement::None, 0.0);
    return true;
  }
  FloatType compute = norm.computeType
                          ? norm.computeType
                          : widest(Float32Type::get(context), inputType);
  // The op narrows its f64 epsilon to the compute type, as the IR narrows the
  // constant as written to the type of its addition: the same, if the types
  // are. Otherwise only the value really added will do.
  auto exact = [](APFloat value) {
    bool losesInfo = false;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
    return value.convertToDouble();
  };
  double value = exact(compute == factor.epsilon->type ? factor.epsilon->written
                                                       : factor.epsilon->added);
  const MatchedStatistic &statistic = factor.statistic;
  if (statistic.isPlainSum) {
    bool isInside = factor.placement == EpsilonPlacement::InsideSqrt ||
                    factor.placement == EpsilonPlacement::MaxInside;
    auto count = static_cast<double>(statistic.count);
    value =
        exact(factor.epsilon->added) / (isInside ? count : std::sqrt(count));
  }
  EpsilonPlacement placement =
      value == 0.0 ? EpsilonPlacement::None : factor.placement;
  norm.epsilon = EpsilonAttr::get(context, placement, value);
  return true;
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

/// What every match ends with: the tensor to read, the types, epsilon.
bool NormMatcher::finish(MatchedNorm &norm, FloatType resultType) {
  std::optional<View> input = lastTensor(
      views, norm.core.input, /*throughExt=*/true, [&](const View &view) {
        auto type = cast<RankedTensorType>(view.value.getType());
        return frame.isIdentity(view) &&
               type.getShape() == ArrayRef<int64_t>(frame.shape);
      });
  if (!input)
    return refuse(reduction, "materialized",
                  "no tensor of the result's shape holds the normalized value");
  norm.input = *input;
  norm.resultType = resultType;
  auto isFloat = [](Type type) {
    return type.isF64() || type.isF32() || type.isF16() || type.isBF16();
  };
  auto isFloatTensor = [&](const View &view) {
    return isFloat(getElementTypeOrSelf(view.value));
  };
  if (!isFloatTensor(norm.input) || !isFloat(resultType) ||
      (norm.scale && !isFloatTensor(norm.scale->tensor)) ||
      (norm.shift && !isFloatTensor(norm.shift->tensor)))
    return refuse(reduction, "type", "expected f64, f32, f16 or bf16");
  return decideComputeType(norm) && decideEpsilon(norm);
}

/// Core in the compute type, rounded to x's type before gain and shift (the
/// Llama order): round(core) * gain.
std::optional<MatchedNorm> NormMatcher::matchRoundedCore(const View &product,
                                                         const View *shift) {
  auto type = cast<FloatType>(views.expand(product).type);
  for (const ProductNode &node : productNodes(views, product)) {
    if (node.divides)
      continue;
    Expr rounded = views.expand(views.stripExt(node.view));
    if (!rounded.is(Kind::Trunc))
      continue;
    std::optional<MatchedNorm> norm =
        matchCore(rounded.operands.front(), [&](MatchedNorm &norm) {
          if (!takeRest(norm) || norm.scale)
            return false;
          norm.affineIn = AffineIn::Result;
          SmallVector<std::pair<View, bool>, 2> rest;
          bool sawFactor = false, sawNumerator = true;
          splitProduct(
              views, {product, false}, node, sawFactor, sawNumerator,
              [](const View &) { return false; }, rest);
          if (rest.size() > 1 || (rest.empty() && !shift))
            return false;
          if (!rest.empty() &&
              (rest.front().second || !takeGain(norm, rest.front().first)))
            return false;
          if (shift && !takeShift(norm, *shift))
            return false;
          return finish(norm, type) &&
                 getElementTypeOrSelf(norm.input.value) == rounded.type;
        });
    if (norm)
      return norm;
  }
  return std::nullopt;
}

/// Core times gain plus `shift` in the compute type, then rounded to
/// `resultType` if that is given.
std::optional<MatchedNorm> NormMatcher::matchProduct(const View &product,
                                                     const View *shift,
                                                     FloatType resultType) {
  auto type = dyn_cast<FloatType>(views.expand(product).type);
  if (!type)
    return std::nullopt;
  if (!resultType)
    if (auto norm = matchRoundedCore(product, shift))
      return norm;
  return matchCore(product, [&](MatchedNorm &norm) {
    if (!takeRest(norm) || (shift && !takeShift(norm, *shift)) ||
        !finish(norm, resultType ? resultType : type))
      return false;
    // A rounding to another type than x's is a neighbour.
    return !resultType || resultType == getElementTypeOrSelf(norm.input.value);
  });
}

std::optional<MatchedNorm> NormMatcher::match(Value result) {
  View value = frame.identity(result);
  Expr expr = views.expand(value);
  FloatType resultType;
  if (expr.is(Kind::Trunc)) {
    resultType = cast<FloatType>(expr.type);
    value = expr.operands.front();
    expr = views.expand(value);
  }
  if (expr.is(Kind::Add)) {
    for (unsigned i : {0, 1})
      if (auto norm =
              matchProduct(expr.operands[i], &expr.operands[1 - i], resultType))
        return norm;
    return matchInference(value, resultType);
  }
  // A rounded core without gain is a norm whose result is rounded; with a gain
  // outside, matchRoundedCore has seen it from there.
  if (auto norm = matchProduct(value, nullptr, resultType))
    return norm;
  return matchInference(value, resultType);
}
