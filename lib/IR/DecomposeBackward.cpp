//===- DecomposeBackward.cpp - A gradient as linalg on tensors -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With g = dy * (scale + offset) and x^ as in the forward op, over its reduced
// axes:
//
//   dx = r * (g - sum(g)/n - x^ * k * sum(g * x^)/(n - correction)) + dsum
//
// k comes from the derivative of r by q for each placement of epsilon; see
// `buildStatisticWeight`. Sums over other axes than the reduced ones (dscale
// and dshift of a layer norm) are ops of their own.
//
// Where scale is one factor of all that a statistic is of, as in a batch norm,
// sums are of dy. So dscale and dshift are the same sums, and what does not
// vary along the reduced axes comes before dx:
//
//   dx = dy * a + x^ * c + b + dsum         a = r * (scale + offset)
//   c = -a * k * sum(dy * x^)/(n - correction),   b = -a * sum(dy)/n
//
//===----------------------------------------------------------------------===//

#include "RowBuilder.h"

using namespace mlir;
using namespace mlir::norm;

bool norm::needsStatistic(EpsilonAttr epsilon) {
  return epsilon.getPlacement() != EpsilonPlacement::InsideSqrt &&
         !epsilon.isNone();
}

Value norm::buildStatisticWeight(RowBuilder &rows, OpBuilder &b,
                                 EpsilonAttr epsilon, Value q) {
  if (!needsStatistic(epsilon))
    return {};
  Location loc = rows.loc;
  Value eps =
      rows.toWork(b, rows.constant(b, epsilon.getDouble(), rows.computeType));
  Value zero = rows.constant(b, 0.0, rows.workType);
  auto select = [&](arith::CmpFPredicate predicate, Value x, Value y,
                    Value otherwise, Value value) -> Value {
    Value holds = arith::CmpFOp::create(b, loc, predicate, x, y);
    return arith::SelectOp::create(b, loc, holds, otherwise, value);
  };
  Value one = rows.constant(b, 1.0, rows.workType);
  // A NaN statistic makes no comparison true, and its NaN comes by r.
  if (epsilon.getPlacement() == EpsilonPlacement::MaxInside)
    return select(arith::CmpFPredicate::OLT, q, eps, zero, one);
  Value root = math::SqrtOp::create(b, loc, q);
  if (epsilon.getPlacement() == EpsilonPlacement::MaxOutside)
    return select(arith::CmpFPredicate::OLT, root, eps, zero, one);
  Value weight = rows.div(b, rows.add(b, root, eps), root);
  return select(arith::CmpFPredicate::OEQ, q, zero, zero, weight);
}

Value norm::buildGradient(RowBuilder &rows, OpBuilder &b, Value dy, Value scale,
                          double scaleOffset) {
  dy = rows.toWork(b, dy);
  if (!scale)
    return dy;
  scale = rows.toWork(b, scale);
  if (scaleOffset != 0.0)
    scale = rows.add(b, scale, rows.constant(b, scaleOffset, rows.workType));
  return rows.mul(b, dy, scale);
}

namespace {
class BackwardDecomposer {
public:
  BackwardDecomposer(NormBackwardOpInterface op, OpBuilder &builder)
      : op(op), rows(op, builder), contract(op.getForwardContract()) {}

  SmallVector<Value> run();

private:
  void computeStatistics();
  void computeCoefficients();
  Value computeDx();
  void computeParameterGradients();
  SmallVector<Value> sumParameterGradients(bool wantsScale, bool wantsShift);
  /// Whether scale is one factor of all that a statistic is of.
  bool isScaledOnce();
  /// Whether the sums of dscale and dshift are those of the coefficients.
  bool sharesSums();
  /// Adds the inputs of g to a body, and builds it: dy * (scale + offset), or
  /// dy where scale comes later.
  size_t addGradient(SmallVectorImpl<Indexed> &inputs);
  Value gradient(OpBuilder &b, ValueRange in, size_t first);
  bool isCentred() { return op.getStatistic() == Statistic::Variance; }

  NormBackwardOpInterface op;
  RowBuilder rows;
  NormContract contract;
  Source source;
  Statistics statistics;
  /// Over the kept axes: mean of g, and what x-hat is multiplied by; b and c
  /// where scale comes later. Null where dx has no such term.
  Value meanGradient, coefficient;
  /// Where scale comes later: a, and the sums of dy * x^ and of dy.
  Value factor;
  SmallVector<Value> sumsOfDy;
  Value dscale, dshift;
};
} // namespace

void BackwardDecomposer::computeStatistics() {
  Value mean = op.getMeanOrNull(), variance = op.getVarianceOrNull(),
        rstd = op.getRstdOrNull();
  bool hasAll = (mean || !isCentred()) && (rstd || variance) &&
                (variance || !needsStatistic(contract.epsilon));
  if (hasAll || op.hasConstantStatistics()) {
    statistics = Statistics::given(rows, contract, mean, variance, rstd);
    return;
  }
  Statistics::Wanted wanted;
  wanted.variance = needsStatistic(contract.epsilon) || variance;
  wanted.remainder = mean || variance || rstd;
  statistics =
      Statistics::build(rows, contract, op.getStatistic(), source, wanted);
  // What is given takes the place of what was computed.
  if (mean)
    statistics.row.means = splitMean(rows, mean);
  if (variance)
    statistics.variance = variance;
  if (rstd)
    statistics.row.rstd = rows.statistic(rstd);
  else if (variance)
    statistics.row.rstd =
        Statistics::given(rows, contract, Value(), variance, Value()).row.rstd;
}

bool BackwardDecomposer::isScaledOnce() {
  return contract.scale && !op.hasConstantStatistics() &&
         llvm::none_of(*contract.affineAxes, [&](int64_t axis) {
           return llvm::is_contained(rows.reduced, axis);
         });
}

bool BackwardDecomposer::sharesSums() {
  // Then x^ is rounded before it is scaled.
  bool isRounded = contract.affineIn == AffineIn::Result &&
                   RowBuilder::elementTypeOf(contract.x) != rows.workType;
  return !sumsOfDy.empty() && !isRounded &&
         (isCentred() || !op.getDshiftOrNull()) &&
         ArrayRef(*contract.affineAxes) == ArrayRef(rows.kept);
}

size_t BackwardDecomposer::addGradient(SmallVectorImpl<Indexed> &inputs) {
  size_t first = inputs.size();
  inputs.push_back(rows.full(op.getDy()));
  if (contract.scale && !isScaledOnce())
    inputs.push_back({contract.scale, *contract.affineAxes});
  return first;
}

Value BackwardDecomposer::gradient(OpBuilder &b, ValueRange in, size_t first) {
  return buildGradient(rows, b, in[first],
                       contract.scale && !isScaledOnce() ? in[first + 1]
                                                         : Value(),
                       contract.scaleOffset);
}

void BackwardDecomposer::computeCoefficients() {
  if (op.hasConstantStatistics())
    return;
  SmallVector<Indexed> inputs;
  Normalized normalized(rows, source, statistics.row, /*isRounded=*/false);
  normalized.addTo(inputs);
  size_t gradientAt = addGradient(inputs);
  SmallVector<Value> sums = rows.sums(
      inputs, isCentred() ? 2 : 1, [&](OpBuilder &b, Location, ValueRange in) {
        Value g = gradient(b, in, gradientAt);
        SmallVector<Value> terms{rows.mul(b, g, normalized.build(b, in))};
        if (isCentred())
          terms.push_back(g);
        return terms;
      });

  bool isSum = op.getStatistic() == Statistic::SumSquare;
  Value count = isSum ? Value() : rows.divisor(0);
  Value divisor = isCentred() ? rows.divisor(contract.correction) : count;
  SmallVector<Indexed> sumInputs;
  for (Value sum : sums)
    sumInputs.push_back(rows.statistic(sum));
  if (needsStatistic(contract.epsilon))
    sumInputs.push_back(rows.statistic(statistics.variance));
  SmallVector<RowBuilder::Output> outputs{{&coefficient, rows.workType}};
  if (isCentred())
    outputs.push_back({&meanGradient, rows.workType});
  size_t factorAt = sumInputs.size();
  if (isScaledOnce()) {
    sumsOfDy = sums;
    sumInputs.push_back(statistics.row.rstd);
    sumInputs.push_back({contract.scale, *contract.affineAxes});
    outputs.push_back({&factor, rows.workType});
  }
  rows.elementwiseTo(
      outputs, sumInputs, [&](OpBuilder &b, Location, ValueRange in) {
        Value value = divisor ? rows.div(b, in[0], divisor) : in[0];
        if (Value weight =
                buildStatisticWeight(rows, b, contract.epsilon,
                                     needsStatistic(contract.epsilon)
                                         ? rows.toWork(b, in[sums.size()])
                                         : Value()))
          value = rows.mul(b, value, weight);
        SmallVector<Value> values{value};
        if (isCentred())
          values.push_back(rows.div(b, in[1], count));
        if (!isScaledOnce())
          return values;
        Value a = buildGradient(rows, b, in[factorAt], in[factorAt + 1],
                                contract.scaleOffset);
        for (Value &term : values)
          term = arith::NegFOp::create(b, rows.loc, rows.mul(b, a, term));
        values.push_back(a);
        return values;
      });
}

Value BackwardDecomposer::computeDx() {
  SmallVector<Indexed> inputs;
  Normalized normalized(rows, source, statistics.row, /*isRounded=*/false);
  normalized.addTo(inputs);
  size_t gradientAt = addGradient(inputs);
  auto add = [&](Indexed indexed) -> std::optional<size_t> {
    if (!indexed)
      return std::nullopt;
    inputs.push_back(indexed);
    return inputs.size() - 1;
  };
  auto meanAt = add(rows.statistic(meanGradient)),
       coefficientAt = add(rows.statistic(coefficient)),
       scaledAt = add(rows.statistic(factor)),
       dsumAt = add(rows.full(op.getDsumOrNull()));
  FloatType dxType = RowBuilder::elementTypeOf(op.getDx());
  return rows.elementwise(
      inputs, rows.all, dxType, [&](OpBuilder &b, Location, ValueRange in) {
        Value dx = gradient(b, in, gradientAt);
        if (scaledAt) {
          auto fma = [&](Value x, Value y, Value z) -> Value {
            return math::FmaOp::create(b, rows.loc, x, y, z);
          };
          dx = meanAt ? fma(dx, in[*scaledAt], in[*meanAt])
                      : rows.mul(b, dx, in[*scaledAt]);
          dx = fma(normalized.build(b, in), in[*coefficientAt], dx);
        } else {
          if (meanAt)
            dx = rows.sub(b, dx, in[*meanAt]);
          if (coefficientAt)
            dx = rows.sub(
                b, dx,
                rows.mul(b, normalized.build(b, in), in[*coefficientAt]));
          dx = rows.mul(b, dx, normalized.factor(b, in));
        }
        if (dsumAt)
          dx = rows.add(b, dx, rows.toWork(b, in[*dsumAt]));
        return SmallVector<Value>{rows.cast(b, dx, dxType)};
      });
}

SmallVector<Value> BackwardDecomposer::sumParameterGradients(bool wantsScale,
                                                             bool wantsShift) {
  SmallVector<Indexed> inputs;
  Normalized normalized(rows, source, statistics.row, /*isRounded=*/false);
  if (wantsScale)
    normalized.addTo(inputs);
  inputs.push_back(rows.full(op.getDy()));
  return rows.sums(
      inputs, *contract.affineAxes,
      SmallVector<Type>(wantsScale && wantsShift ? 2 : 1, rows.workType),
      [&](OpBuilder &b, Location, ValueRange in) {
        SmallVector<Value> terms;
        Value dy = rows.toWork(b, in.back());
        if (wantsScale) {
          Value normal = normalized.build(b, in);
          if (contract.affineIn == AffineIn::Result)
            normal = rows.toWork(
                b, rows.cast(b, normal, RowBuilder::elementTypeOf(contract.x)));
          terms.push_back(rows.mul(b, dy, normal));
        }
        if (wantsShift)
          terms.push_back(dy);
        return terms;
      });
}

/// dscale and dshift: sums over all axes but the affine ones, rounded once.
void BackwardDecomposer::computeParameterGradients() {
  bool wantsScale = op.getDscaleOrNull() != nullptr,
       wantsShift = op.getDshiftOrNull() != nullptr;
  if (!wantsScale && !wantsShift)
    return;
  ArrayRef<int64_t> axes = *contract.affineAxes;
  SmallVector<Value> sums =
      sharesSums() ? sumsOfDy : sumParameterGradients(wantsScale, wantsShift);
  auto rounded = [&](Value sum, Value result) {
    FloatType type = RowBuilder::elementTypeOf(result);
    if (type == rows.workType)
      return sum;
    return rows.elementwise({{sum, llvm::to_vector(axes)}}, axes, type,
                            [&](OpBuilder &b, Location, ValueRange in) {
                              return SmallVector<Value>{
                                  rows.cast(b, in[0], type)};
                            });
  };
  if (wantsScale)
    dscale = rounded(sums.front(), op.getDscaleOrNull());
  if (wantsShift)
    dshift = rounded(sums.back(), op.getDshiftOrNull());
}

SmallVector<Value> BackwardDecomposer::run() {
  source = Source::build(rows, contract, /*wantsSum=*/false,
                         RowBuilder::elementTypeOf(contract.x));
  computeStatistics();
  computeCoefficients();
  computeParameterGradients();
  Value dx = computeDx();
  SmallVector<Value> values;
  for (OpResult result : op->getResults()) {
    Value value = result == op.getDx()             ? dx
                  : result == op.getDscaleOrNull() ? dscale
                                                   : dshift;
    if (value.getType() != result.getType())
      value = tensor::CastOp::create(rows.builder, rows.loc, result.getType(),
                                     value);
    values.push_back(value);
  }
  return values;
}

FailureOr<SmallVector<Value>>
norm::decomposeNormBackward(NormBackwardOpInterface op, OpBuilder &builder) {
  if (op.getGroupedAxis() && op.getNumGroups() != 1)
    return decomposeGroups(op, builder, [](RowOpInterface view, OpBuilder &b) {
      return decomposeNormBackward(
          cast<NormBackwardOpInterface>(view.getOperation()), b);
    });
  return BackwardDecomposer(op, builder).run();
}
