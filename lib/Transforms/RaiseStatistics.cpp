//===- RaiseStatistics.cpp - Mean, statistic and factor of a norm ---------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RaiseMatch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::raise;

using llvm::APFloat;

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

static APFloat converted(APFloat value, const llvm::fltSemantics &semantics) {
  bool losesInfo = false;
  value.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
  return value;
}

static double toDouble(const APFloat &value) {
  return converted(value, APFloat::IEEEdouble()).convertToDouble();
}

/// Whether `value` is exactly what `expected` rounds to in its type.
static bool equalsRounded(const APFloat &value, double expected) {
  return converted(APFloat(expected), value.getSemantics())
      .bitwiseIsEqual(value);
}

static std::string text(double value) {
  std::string buffer;
  llvm::raw_string_ostream os(buffer);
  os << llvm::format("%.9g", value);
  return buffer;
}

std::optional<AddedConstant> NormMatcher::constantOf(const View &value) const {
  Expr expr = views.expand(value);
  std::optional<APFloat> added = expr.floatConstant();
  if (!added)
    return std::nullopt;
  AddedConstant constant{*added, *added, cast<FloatType>(expr.type)};
  // Before folding: an f64 constant that the body narrows.
  View source = views.look(value);
  while (auto trunc = source.value.getDefiningOp<arith::TruncFOp>()) {
    source = views.look(View{trunc.getIn(), source.index});
    if (auto wide = views.expand(source).floatConstant())
      constant.written = *wide;
  }
  return constant;
}

/// A floating-point or integer exponent.
static std::optional<double> exponentOf(const ViewAnalysis &views,
                                        const Expr &power) {
  Expr exponent = views.expand(power.operands[1]);
  if (auto value = exponent.floatConstant())
    return toDouble(*value);
  if (auto integer = dyn_cast_or_null<IntegerAttr>(exponent.constant))
    return static_cast<double>(integer.getValue().getSExtValue());
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

bool NormMatcher::refuse(Operation *candidate, StringRef condition,
                         const Twine &reason) {
  if (candidate)
    refusals.insert({candidate, Refusal{condition, reason.str(), loc, false}});
  return false;
}

View NormMatcher::peelCasts(View value, TypeSet &types) const {
  for (;;) {
    Expr expr = views.expand(value);
    if (expr.is(Kind::Trunc))
      types.insert(expr.type);
    else if (!expr.is(Kind::Ext))
      return value;
    value = expr.operands.front();
  }
}

Operation *NormMatcher::findReduction(const View &value, unsigned depth) const {
  Expr expr = views.expand(value);
  if (expr.is(Kind::Reduce))
    return expr.operation;
  if (depth == 0 || expr.is(Kind::Leaf) || expr.is(Kind::Constant) ||
      expr.is(Kind::Other))
    return nullptr;
  for (const View &operand : expr.operands)
    if (Operation *found = findReduction(operand, depth - 1))
      return found;
  return nullptr;
}

bool NormMatcher::dependsOn(const View &value, ArrayRef<int32_t> dims,
                            unsigned depth) const {
  View view = views.look(value);
  Expr expr = views.expand(view);
  if (expr.is(Kind::Constant))
    return false;
  auto reads = [&](int32_t dim) { return llvm::is_contained(view.index, dim); };
  if (expr.is(Kind::Leaf) || expr.is(Kind::Reduce) || depth == 0)
    return llvm::any_of(dims, reads);
  return llvm::any_of(expr.operands, [&](const View &operand) {
    return dependsOn(operand, dims, depth - 1);
  });
}

/// Whether `value` is a sum of `input` over some axes, scaled.
bool NormMatcher::isReductionOf(const View &value, const View &input) const {
  TypeSet ignored;
  Expr expr = views.expand(peelCasts(value, ignored));
  if (expr.is(Kind::Mul) || expr.is(Kind::Div)) {
    bool second = !findReduction(expr.operands[0]);
    expr = views.expand(peelCasts(expr.operands[second ? 1 : 0], ignored));
  }
  return expr.is(Kind::Reduce) && views.sameExact(expr.operands.front(), input);
}

//===----------------------------------------------------------------------===//
// Square, mean
//===----------------------------------------------------------------------===//

std::optional<View> NormMatcher::matchSquare(const View &value,
                                             TypeSet &types) {
  Expr expr = views.expand(value);
  std::optional<View> base;
  if (expr.is(Kind::Mul) && views.same(expr.operands[0], expr.operands[1])) {
    base = expr.operands[0];
  } else if (expr.is(Kind::Pow)) {
    std::optional<double> exponent = exponentOf(views, expr);
    if (exponent == 2.0)
      base = expr.operands[0];
    else if (exponent)
      refuse(reduction, "square",
             "expected exponent 2, got " + text(*exponent));
  }
  if (!base)
    return std::nullopt;
  types.insert(expr.type);
  Expr inner = views.expand(*base);
  return inner.is(Kind::Abs) ? inner.operands.front() : *base;
}

/// `sum / count` or `sum * (1 / count)`. Sets `correction` where the divisor is
/// count - 1 and the value is centred.
bool NormMatcher::matchDivision(const Expr &expr, View &sum, int64_t &count,
                                bool centred, int64_t &correction) {
  bool divides = expr.is(Kind::Div);
  if (!divides && !expr.is(Kind::Mul))
    return false;
  View divisor = expr.operands[1];
  sum = expr.operands[0];
  if (!divides && views.expand(sum).is(Kind::Constant))
    std::swap(divisor, sum);
  std::optional<APFloat> value = views.expand(divisor).floatConstant();
  TypeSet ignored;
  Expr reduce = views.expand(peelCasts(sum, ignored));
  if (!reduce.is(Kind::Reduce))
    return false;
  count = reduce.count;
  if (!value)
    return refuse(reduction, "divisor",
                  "the divisor of a mean is not a compile-time constant");
  if (ShapedType::isDynamic(count) || count == 0)
    return refuse(reduction, "divisor",
                  "the extent of the reduced axes is not known");
  auto isCount = [&](int64_t n) {
    double exact = static_cast<double>(n);
    return divides ? toDouble(*value) == exact
                   : equalsRounded(*value, 1.0 / exact);
  };
  if (isCount(count))
    return true;
  if (centred && count > 1 && isCount(count - 1)) {
    correction = 1;
    return true;
  }
  return refuse(reduction, "divisor",
                (divides ? "expected the sum to be divided by "
                         : "expected the sum to be multiplied by 1 / ") +
                    Twine(count) + ", got " + text(toDouble(*value)));
}

bool NormMatcher::matchMean(View mean, const View &input,
                            ArrayRef<int32_t> axes, TypeSet &types) {
  mean = peelCasts(std::move(mean), types);
  Expr expr = views.expand(mean);
  View sum = mean;
  int64_t count = 0, correction = 0;
  if (!matchDivision(expr, sum, count, /*centred=*/false, correction))
    return false;
  types.insert(expr.type);
  Expr reduce = views.expand(peelCasts(sum, types));
  types.insert(reduce.type);
  if (!reduce.isSum || !reduce.startsAtZero)
    return refuse(reduction, "init", "a mean is not a sum that starts at 0");
  if (ArrayRef<int32_t>(reduce.axes) != axes)
    return refuse(reduction, "same-axes",
                  "mean and variance are taken over different axes");
  if (!views.sameExact(reduce.operands.front(), input))
    return refuse(reduction, "same-value",
                  "the value is centred on the mean of another value");
  return true;
}

//===----------------------------------------------------------------------===//
// Statistic
//===----------------------------------------------------------------------===//

/// A sum of squares, of the input or of the centred input.
std::optional<MatchedStatistic> NormMatcher::matchSumOfSquares(View value,
                                                               TypeSet &types) {
  Expr reduce = views.expand(peelCasts(std::move(value), types));
  if (!reduce.is(Kind::Reduce))
    return std::nullopt;
  reduction = reduce.operation;
  types.insert(reduce.type);
  if (!reduce.isSum) {
    refuse(reduction, "reduction",
           "the squares are combined by another "
           "operation than addition");
    return std::nullopt;
  }
  if (!reduce.startsAtZero) {
    refuse(reduction, "init", "the sum of squares does not start at 0");
    return std::nullopt;
  }
  if (reduce.axes.empty()) {
    refuse(reduction, "axes", "only axes of extent 1 are reduced");
    return std::nullopt;
  }
  std::optional<View> base =
      matchSquare(peelCasts(reduce.operands.front(), types), types);
  if (!base) {
    refuse(reduction, "square", "the summed value is not a square");
    return std::nullopt;
  }
  MatchedStatistic statistic;
  statistic.reduction = reduction;
  statistic.axes = reduce.axes;
  statistic.count = reduce.count;
  statistic.input = *base;

  // Centred, if what is subtracted is constant along the reduced axes.
  TypeSet centreTypes = types;
  Expr centred = views.expand(peelCasts(*base, centreTypes));
  if (!centred.is(Kind::Sub))
    return statistic;
  if (dependsOn(centred.operands[1], reduce.axes)) {
    // A difference of two values, unless it is centred along other axes.
    if (isReductionOf(centred.operands[1], centred.operands[0])) {
      refuse(reduction, "same-axes",
             "mean and variance are taken over different axes");
      return std::nullopt;
    }
    return statistic;
  }
  types = centreTypes;
  types.insert(centred.type);
  if (!matchMean(centred.operands[1], centred.operands[0], reduce.axes,
                 types)) {
    refuse(reduction, "centred",
           "the squares are taken about another point than the mean");
    return std::nullopt;
  }
  statistic.centred = true;
  statistic.input = centred.operands[0];
  return statistic;
}

/// E[x^2] - E[x]^2, the variance of x. The op raised from it computes the same
/// variance without the cancellation.
std::optional<MatchedStatistic>
NormMatcher::matchMomentDifference(const Expr &difference, TypeSet &types) {
  std::optional<MatchedStatistic> moment =
      matchStatistic(difference.operands[0], types);
  if (!moment || moment->centred || moment->isPlainSum)
    return std::nullopt;
  std::optional<View> mean =
      matchSquare(peelCasts(difference.operands[1], types), types);
  if (!mean || !matchMean(*mean, moment->input, moment->axes, types)) {
    refuse(reduction, "centred",
           "what is subtracted from the mean of squares is not the square of "
           "the mean");
    return std::nullopt;
  }
  types.insert(difference.type);
  moment->centred = true;
  return moment;
}

std::optional<MatchedStatistic> NormMatcher::matchStatistic(View value,
                                                            TypeSet &types) {
  value = peelCasts(std::move(value), types);
  Expr expr = views.expand(value);
  if (expr.is(Kind::Reduce)) {
    std::optional<MatchedStatistic> sum = matchSumOfSquares(value, types);
    if (sum)
      sum->isPlainSum = true;
    return sum;
  }
  if (expr.is(Kind::Max)) {
    // A variance clamped at 0 is itself.
    for (unsigned i : {0, 1}) {
      auto bound = views.expand(expr.operands[i]).floatConstant();
      if (bound && bound->isZero())
        return matchStatistic(expr.operands[1 - i], types);
    }
  }
  if (expr.is(Kind::Sub))
    return matchMomentDifference(expr, types);
  if (!expr.is(Kind::Div) && !expr.is(Kind::Mul)) {
    refuse(reduction, "reduction",
           "the value under the root is not a mean of squares");
    return std::nullopt;
  }

  // The sum first: it says whether a divisor of n - 1 can be meant.
  bool constantFirst =
      expr.is(Kind::Mul) && views.expand(expr.operands[0]).is(Kind::Constant);
  std::optional<MatchedStatistic> sum =
      matchSumOfSquares(expr.operands[constantFirst ? 1 : 0], types);
  if (!sum) {
    refuse(reduction, "reduction",
           "the value under the root is not a mean of squares");
    return std::nullopt;
  }
  View ignored = value;
  if (!matchDivision(expr, ignored, sum->count, sum->centred, sum->correction))
    return std::nullopt;
  types.insert(expr.type);
  return sum;
}

//===----------------------------------------------------------------------===//
// Factor
//===----------------------------------------------------------------------===//

bool NormMatcher::takeEpsilon(const View &value, EpsilonPlacement placement,
                              MatchedFactor &factor) {
  std::optional<AddedConstant> constant = constantOf(value);
  if (!constant)
    return refuse(reduction, "epsilon",
                  "epsilon is not a compile-time constant");
  if (constant->added.isNegative() || !constant->added.isFinite())
    return refuse(reduction, "epsilon",
                  "expected a finite epsilon of at least 0, got " +
                      text(toDouble(constant->added)));
  if (factor.epsilon)
    return refuse(reduction, "epsilon", "epsilon is added in two places");
  factor.epsilon = constant;
  factor.placement = placement;
  return true;
}

/// q, q + epsilon or max(q, epsilon): what stands under the root.
bool NormMatcher::matchUnderRoot(View value, MatchedFactor &factor) {
  value = peelCasts(std::move(value), factor.types);
  Expr expr = views.expand(value);
  if (expr.is(Kind::Add)) {
    bool second = !findReduction(expr.operands[0]);
    if (!takeEpsilon(expr.operands[second ? 0 : 1],
                     EpsilonPlacement::InsideSqrt, factor))
      return false;
    factor.types.insert(expr.type);
    value = expr.operands[second ? 1 : 0];
  } else if (expr.is(Kind::Sub) &&
             views.expand(expr.operands[1]).is(Kind::Constant)) {
    auto constant = views.expand(expr.operands[1]).floatConstant();
    if (!constant || !constant->isZero())
      return refuse(reduction, "epsilon", "epsilon is subtracted, not added");
    value = expr.operands[0];
  } else if (expr.is(Kind::Max)) {
    bool second = !findReduction(expr.operands[0]);
    auto bound = views.expand(expr.operands[second ? 0 : 1]).floatConstant();
    if (!bound || !bound->isZero()) {
      if (!takeEpsilon(expr.operands[second ? 0 : 1],
                       EpsilonPlacement::MaxInside, factor))
        return false;
      factor.types.insert(expr.type);
      value = expr.operands[second ? 1 : 0];
    }
  }
  factor.variance = value;
  std::optional<MatchedStatistic> statistic =
      matchStatistic(value, factor.types);
  if (!statistic)
    return false;
  factor.statistic = *statistic;
  return true;
}

bool raise::isRoot(const ViewAnalysis &views, const Expr &expr) {
  return expr.is(Kind::Sqrt) ||
         (expr.is(Kind::Pow) && exponentOf(views, expr) == 0.5);
}

bool raise::isReciprocalRoot(const ViewAnalysis &views, const Expr &expr) {
  return expr.is(Kind::Rsqrt) ||
         (expr.is(Kind::Pow) && exponentOf(views, expr) == -0.5);
}

/// sqrt(...), or sqrt(sum) * n^-1/2, the root of the mean.
bool NormMatcher::matchRoot(View value, MatchedFactor &factor,
                            bool &scaledToMean) {
  value = peelCasts(std::move(value), factor.types);
  Expr expr = views.expand(value);
  if (isRoot(views, expr)) {
    factor.types.insert(expr.type);
    return matchUnderRoot(expr.operands[0], factor);
  }
  if (!expr.is(Kind::Mul) && !expr.is(Kind::Div))
    return false;
  bool divides = expr.is(Kind::Div);
  bool constantFirst =
      !divides && views.expand(expr.operands[0]).is(Kind::Constant);
  auto scale =
      views.expand(expr.operands[constantFirst ? 0 : 1]).floatConstant();
  if (!scale || scaledToMean)
    return false;
  scaledToMean = true;
  if (!matchRoot(expr.operands[constantFirst ? 1 : 0], factor, scaledToMean))
    return false;
  MatchedStatistic &statistic = factor.statistic;
  if (ShapedType::isDynamic(statistic.count))
    return refuse(reduction, "divisor",
                  "the extent of the reduced axes is not known");
  double root = std::sqrt(static_cast<double>(statistic.count));
  if (!statistic.isPlainSum || factor.epsilon || statistic.centred ||
      !equalsRounded(*scale, divides ? root : 1.0 / root))
    return refuse(reduction, "divisor",
                  "the root is scaled by " + text(toDouble(*scale)) +
                      ", not by n^-1/2 of a plain sum");
  statistic.isPlainSum = false;
  factor.types.insert(expr.type);
  return true;
}

/// What a value is divided by: a root, plus or at least epsilon.
std::optional<MatchedFactor> NormMatcher::matchDivisor(View value) {
  MatchedFactor factor;
  value = peelCasts(std::move(value), factor.types);
  Expr expr = views.expand(value);
  EpsilonPlacement placement = expr.is(Kind::Max)
                                   ? EpsilonPlacement::MaxOutside
                                   : EpsilonPlacement::OutsideSqrt;
  bool scaled = false;
  if (expr.is(Kind::Add) || expr.is(Kind::Max) || expr.is(Kind::Sub)) {
    bool second = !expr.is(Kind::Sub) && !findReduction(expr.operands[0]);
    View root = expr.operands[second ? 1 : 0];
    if (!matchRoot(root, factor, scaled))
      return std::nullopt;
    if (expr.is(Kind::Sub)) {
      refuse(reduction, "epsilon", "epsilon is subtracted, not added");
      return std::nullopt;
    }
    if (!takeEpsilon(expr.operands[second ? 0 : 1], placement, factor))
      return std::nullopt;
    factor.types.insert(expr.type);
    return factor;
  }
  if (!matchRoot(value, factor, scaled))
    return std::nullopt;
  return factor;
}

/// Whether `value` is the factor of a norm: what the product multiplies by, or
/// divides by.
std::optional<MatchedFactor> NormMatcher::matchFactor(const View &value,
                                                      bool divides) {
  reduction = findReduction(value);
  if (!reduction)
    return std::nullopt;
  TypeSet types;
  View inner = peelCasts(value, types);
  Expr expr = views.expand(inner);
  if (divides) {
    if (std::optional<MatchedFactor> factor = matchDivisor(inner)) {
      for (Type type : types)
        factor->types.insert(type);
      return factor;
    }
    // A variance that nobody took the root of.
    TypeSet ignored;
    Expr sum = expr;
    for (unsigned i = 0; i < 4 && !sum.is(Kind::Reduce); ++i) {
      if (!sum.is(Kind::Add) && !sum.is(Kind::Div) && !sum.is(Kind::Mul))
        break;
      bool second = !findReduction(sum.operands[0]);
      sum = views.expand(sum.operands[second ? 1 : 0]);
    }
    if (sum.is(Kind::Reduce) && sum.isSum &&
        matchSquare(sum.operands.front(), ignored))
      refuse(reduction, "root",
             "the value is divided by a mean of squares "
             "without its root");
    return std::nullopt;
  }
  if (isRoot(views, expr)) {
    MatchedFactor ignored;
    if (matchUnderRoot(expr.operands[0], ignored))
      refuse(reduction, "root",
             "the value is multiplied by the root, not divided");
    return std::nullopt;
  }
  if (!isReciprocalRoot(views, expr))
    return std::nullopt;
  MatchedFactor factor;
  factor.types = types;
  factor.types.insert(expr.type);
  if (!matchUnderRoot(expr.operands[0], factor))
    return std::nullopt;
  factor.rstd = inner;
  return factor;
}
