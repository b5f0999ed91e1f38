//===- Decompose.cpp - A forward norm as linalg on tensors -----*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowBuilder.h"

using namespace mlir;
using namespace mlir::norm;

namespace {
/// Follows the contract's steps one by one; NormSteps.cpp has the arithmetic.
class ForwardDecomposer {
public:
  ForwardDecomposer(NormOpInterface op, OpBuilder &builder,
                    bool keepsChannels = false)
      : op(op), rows(op, builder, keepsChannels),
        contract(NormContract::get(op)) {}

  SmallVector<Value> run();

private:
  void computeStatistics();
  void updateRunning();
  Value normalize();
  /// A statistic in work type as a result in compute type.
  Value asResult(Value statistic);

  NormOpInterface op;
  RowBuilder rows;
  NormContract contract;
  Source source;
  Statistics statistics;
  Value newMean, newVariance;
};
} // namespace

void ForwardDecomposer::computeStatistics() {
  if (op.hasGivenStatistics()) {
    statistics = Statistics::given(rows, contract, contract.mean,
                                   contract.variance, /*rstd=*/Value());
    return;
  }
  bool isRunning = bool(op.getRunningUpdate());
  Statistics::Wanted wanted;
  wanted.mean = op.getMeanOrNull() || isRunning;
  wanted.squares = isRunning;
  wanted.variance = op.getVarianceOrNull() != nullptr;
  statistics =
      Statistics::build(rows, contract, op.getStatistic(), source, wanted);
}

Value norm::buildRunningUpdate(RowBuilder &rows, OpBuilder &b,
                               const RunningWeights &weights, Value old,
                               Value observed) {
  Value kept = rows.mul(b, weights.old, rows.toWork(b, old));
  Value added = rows.mul(b, weights.observed, observed);
  return rows.cast(b, rows.add(b, kept, added),
                   mlir::cast<FloatType>(old.getType()));
}

RunningWeights norm::buildRunningWeights(RowBuilder &rows,
                                         std::optional<double> momentum,
                                         Value momentumValue) {
  OpBuilder &b = rows.builder;
  if (momentum)
    return {rows.constant(b, 1.0 - *momentum, rows.workType),
            rows.constant(b, *momentum, rows.workType)};
  FloatType f64 = b.getF64Type();
  Value a = rows.cast(b, momentumValue, f64);
  Value rest = rows.sub(b, rows.constant(b, 1.0, f64), a);
  return {rows.toWork(b, rest), rows.toWork(b, a)};
}

/// running' = (1 - a) * running + a * new, and running where n is 0.
void ForwardDecomposer::updateRunning() {
  RunningUpdate update = op.getRunningUpdate();
  if (!update)
    return;
  RunningWeights weights =
      buildRunningWeights(rows, update.momentum, update.momentumValue);
  Value divisor = rows.divisor(update.correction), isEmpty;
  if (op.getStaticReducedCount() == 0) {
    newMean = update.mean;
    newVariance = update.variance;
    return;
  }
  if (Value count = rows.dynamicCount()) {
    Value zero = arith::ConstantOp::create(rows.builder, rows.loc,
                                           rows.builder.getI64IntegerAttr(0));
    isEmpty = arith::CmpIOp::create(rows.builder, rows.loc,
                                    arith::CmpIPredicate::eq, count, zero);
  }
  auto orOld = [&](OpBuilder &b, Value old, Value updated) -> Value {
    return isEmpty ? arith::SelectOp::create(b, rows.loc, isEmpty, old, updated)
                   : updated;
  };
  rows.elementwiseTo(
      {{&newMean, RowBuilder::elementTypeOf(update.mean)},
       {&newVariance, RowBuilder::elementTypeOf(update.variance)}},
      {rows.statistic(update.mean), rows.statistic(update.variance),
       rows.statistic(statistics.mean), rows.statistic(statistics.squares)},
      [&](OpBuilder &b, Location, ValueRange in) {
        Value variance = rows.toCompute(b, rows.div(b, in[3], divisor));
        return SmallVector<Value>{
            orOld(b, in[0], buildRunningUpdate(rows, b, weights, in[0], in[2])),
            orOld(b, in[1],
                  buildRunningUpdate(rows, b, weights, in[1], variance))};
      });
}

Value ForwardDecomposer::normalize() {
  SmallVector<Indexed> inputs;
  Normalized normalized(rows, source, statistics.row, /*isRounded=*/true);
  normalized.addTo(inputs);
  auto add = [&](Value tensor) -> std::optional<size_t> {
    if (!tensor)
      return std::nullopt;
    inputs.push_back({tensor, op.getAffineAxesOrDefault()});
    return inputs.size() - 1;
  };
  auto scaleAt = add(contract.scale), shiftAt = add(contract.shift);
  AffineStep affine{RowBuilder::elementTypeOf(contract.x), contract.resultType,
                    contract.affineIn, contract.scaleOffset};
  return rows.elementwise(
      inputs, rows.all, contract.resultType,
      [&](OpBuilder &b, Location, ValueRange in) {
        Value y = affine.build(rows, b, normalized.build(b, in),
                               scaleAt ? in[*scaleAt] : Value(),
                               shiftAt ? in[*shiftAt] : Value());
        return SmallVector<Value>{rows.cast(b, y, contract.resultType)};
      });
}

Value ForwardDecomposer::asResult(Value statistic) {
  if (rows.isExact())
    return statistic;
  return rows.elementwise(
      {rows.statistic(statistic)}, rows.kept, rows.computeType,
      [&](OpBuilder &b, Location, ValueRange in) {
        return SmallVector<Value>{rows.cast(b, in[0], rows.computeType)};
      });
}

SmallVector<Value> ForwardDecomposer::run() {
  source = Source::build(rows, contract, op.getSumOrNull() != nullptr,
                         op.getSumElementType());
  computeStatistics();
  updateRunning();
  Value y = normalize();
  RunningUpdate running = op.getRunningUpdate();
  SmallVector<Value> values;
  for (OpResult result : op->getResults()) {
    Value value =
        result == op.getNormalized()   ? y
        : result == op.getMeanOrNull() ? asResult(statistics.mean)
        : result == op.getRstdOrNull() ? asResult(statistics.row.rstd.tensor)
        : result == op.getVarianceOrNull() ? asResult(statistics.variance)
        : result == running.newMean        ? newMean
        : result == running.newVariance    ? newVariance
                                           : source.sum;
    // Extents may be static in one place only: keep the op's result type.
    if (value.getType() != result.getType())
      value = tensor::CastOp::create(rows.builder, rows.loc, result.getType(),
                                     value);
    values.push_back(value);
  }
  return values;
}

FailureOr<SmallVector<Value>> norm::decomposeNorm(NormOpInterface op,
                                                  OpBuilder &builder) {
  if (op.getGroupedAxis() && op.getNumGroups() != 1)
    return decomposeGroups(op, builder, [](RowOpInterface view, OpBuilder &b) {
      return decomposeNorm(cast<NormOpInterface>(view.getOperation()), b);
    });
  return ForwardDecomposer(op, builder).run();
}

SmallVector<Value> norm::decomposeKeepingChannels(NormOpInterface op,
                                                  OpBuilder &builder) {
  assertWholeGroups(op, builder);
  return ForwardDecomposer(op, builder, /*keepsChannels=*/true).run();
}
