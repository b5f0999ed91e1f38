//===- Forward.cpp - Forward norms, step by step ----------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "Steps.h"

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::reference;

namespace {
class Forward {
public:
  Forward(NormOpInterface op, OpBuilder &builder)
      : op(op), space(op, builder), f64(builder.getF64Type()),
        rounding{op.getComputeTypeOrDefault()},
        step5{rounding, op.getEpsilon(), op.getZeroPolicy()},
        step7{rounding, op.getAffineIn(), op.getScaleOffsetValue(),
              elementType(op.getInput()), elementType(op.getNormalized())} {}

  SmallVector<Value> lower();

private:
  void widenSum();
  void takeStatistics();
  void updateRunning();
  Indexed normalize();
  Indexed rounded(const Indexed &statistic);

  NormOpInterface op;
  RowSpace space;
  Type f64;
  Rounding rounding;
  FactorStep step5;
  AffineStep step7;

  /// c in f64, and the sum as it is stored.
  Indexed c, sum;
  RowStatistics row;
  Indexed newMean, newVariance;
};
} // namespace

/// Steps 1 and 2.
void Forward::widenSum() {
  Indexed x = space.full(op.getInput()),
          residual = space.full(op.getResidualOrNull());
  if (!residual) {
    c = space.map(space.all, {x}, f64, [&](Scalar &s, Elements in) {
      return rounding.operand(s, s.widen(in[x]));
    });
    return;
  }
  FloatType sumType = op.getSumElementType();
  bool isStored = op.getSumRounding() == SumRounding::Stored;
  FloatType addType = sumAdditionType(op.getInput(), op.getResidualOrNull(),
                                      {op.getComputeTypeOrDefault(), sumType});
  SmallVector<Indexed> results = space.map(
      space.all, {x, residual}, {f64, sumType}, [&](Scalar &s, Elements in) {
        Value added =
            s.round(s.add(s.widen(in[x]), s.widen(in[residual])), addType);
        Value stored = s.narrow(added, sumType);
        Value value = isStored ? s.widen(stored) : added;
        return SmallVector<Value>{rounding.operand(s, value), stored};
      });
  c = results[0];
  sum = results[1];
}

/// Step 5 where the statistics are operands. A mean of more precision than the
/// compute type keeps it.
void Forward::takeStatistics() {
  Indexed variance = space.statistic(op.getGivenVarianceOrNull());
  row.mean = space.statistic(op.getGivenMeanOrNull());
  row.r = space.map(space.kept, {variance}, f64, [&](Scalar &s, Elements in) {
    Value q = rounding.operand(s, s.widen(in[variance]));
    return step5.factor(s, q);
  });
}

/// running' = (1 - a) * running + a * new, and running where n is 0. The new
/// variance rounds as the statistic does, with a divisor of its own.
void Forward::updateRunning() {
  RunningUpdate update = op.getRunningUpdate();
  if (!update)
    return;
  Scalar outer(space.builder, space.loc);
  Value a = update.momentum ? outer.constant(*update.momentum)
                            : outer.widen(update.momentumValue);
  Value rest = outer.sub(outer.constant(1.0), a);
  Value by = divisor(space, update.correction);
  Value isEmpty = outer.isEqual(space.count(), outer.constant(0.0));
  auto move = [&](Value running, const Indexed &observed,
                  function_ref<Value(Scalar &, Value)> toNew) {
    Indexed old = space.statistic(running);
    FloatType type = elementType(running);
    return space.map(space.kept, {old, observed}, type,
                     [&](Scalar &s, Elements in) {
                       Value moved = s.add(s.mul(rest, s.widen(in[old])),
                                           s.mul(a, toNew(s, in[observed])));
                       return s.select(isEmpty, in[old], s.narrow(moved, type));
                     });
  };
  newMean = move(update.mean, row.wholeMean(space),
                 [](Scalar &, Value mean) { return mean; });
  newVariance =
      move(update.variance, row.squares, [&](Scalar &s, Value squares) {
        return rounding.step(s, s.div(squares, by));
      });
}

/// Steps 6 and 7.
Indexed Forward::normalize() {
  SmallVector<int64_t> affineAxes = op.getAffineAxesOrDefault();
  Indexed scale = space.affine(op.getScaleOrNull(), affineAxes),
          shift = space.affine(op.getShiftOrNull(), affineAxes);
  SmallVector<Indexed> inputs = row.inputs();
  inputs.append({c, scale, shift});
  return space.map(space.all, inputs, step7.yType, [&](Scalar &s, Elements in) {
    Value normalized = rounding.step(s, row.normalize(s, in, in[c]));
    return step7.apply(s, normalized, in[scale], in[shift]);
  });
}

/// A statistic in compute type.
Indexed Forward::rounded(const Indexed &statistic) {
  return space.map(space.kept, {statistic}, rounding.compute,
                   [&](Scalar &s, Elements in) {
                     return s.narrow(in[statistic], rounding.compute);
                   });
}

SmallVector<Value> Forward::lower() {
  widenSum();
  if (op.hasGivenStatistics())
    takeStatistics();
  else
    row =
        findStatistics(space, step5, c, op.getStatistic(), op.getCorrection());
  updateRunning();
  Indexed y = normalize();
  RunningUpdate update = op.getRunningUpdate();
  SmallVector<Value> results;
  for (OpResult result : op->getResults()) {
    Indexed value = result == op.getNormalized()  ? y
                    : result == op.getSumOrNull() ? sum
                    : result == op.getMeanOrNull()
                        ? rounded(row.wholeMean(space))
                    : result == op.getVarianceOrNull() ? rounded(row.q)
                    : result == op.getRstdOrNull()     ? rounded(row.r)
                    : result == update.newMean         ? newMean
                                                       : newVariance;
    results.push_back(space.result(value, result.getType()));
  }
  return results;
}

SmallVector<Value> reference::lower(NormOpInterface op, OpBuilder &builder) {
  assertWholeGroups(op, builder);
  return Forward(op, builder).lower();
}
