//===- Backward.cpp - Gradients of the norms --------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Only the statistics that are computed again round as the forward op's do.
// All else is exact to f64 and each result rounds once.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "Steps.h"

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::reference;

namespace {
class Backward {
public:
  Backward(NormBackwardOpInterface op, OpBuilder &builder)
      : op(op), contract(op.getForwardContract()), space(op, builder),
        f64(builder.getF64Type()), rounding{op.getComputeTypeOrDefault()},
        step5{rounding, contract.epsilon, contract.zeroPolicy},
        dy(space.full(op.getDy())) {
    if (contract.scale)
      scale = space.affine(contract.scale, *contract.affineAxes);
  }

  SmallVector<Value> lower();

private:
  void widenSum();
  void takeStatistics();
  void findShares();
  Indexed inputGradient();
  Indexed parameterGradient(Value result);
  /// g = dy * (scale + offset).
  Value gradient(Scalar &s, Elements in) const;
  SmallVector<Indexed> inputs(ArrayRef<Indexed> more) const;
  bool isCentred() { return op.getStatistic() == Statistic::Variance; }

  NormBackwardOpInterface op;
  NormContract contract;
  RowSpace space;
  Type f64;
  Rounding rounding;
  FactorStep step5;
  Indexed dy, scale;

  Indexed c;
  RowStatistics row;
  /// Over the kept axes, what is subtracted from g: as it is, and times x-hat.
  Indexed share, shareOfNormalized;
};
} // namespace

/// Steps 1 and 2; the sum with a residual is not stored.
void Backward::widenSum() {
  Indexed x = space.full(contract.x), residual = space.full(contract.residual);
  FloatType addType = sumAdditionType(contract.x, contract.residual,
                                      {op.getComputeTypeOrDefault()});
  c = space.map(space.all, {x, residual}, f64, [&](Scalar &s, Elements in) {
    Value value = s.widen(in[x]);
    if (residual)
      value = s.round(s.add(value, s.widen(in[residual])), addType);
    return rounding.operand(s, value);
  });
}

/// Given statistics are used as they are; what is absent, and needed, is
/// computed again as the forward op computes it.
void Backward::takeStatistics() {
  Indexed mean = space.statistic(op.getMeanOrNull()),
          variance = space.statistic(op.getVarianceOrNull()),
          rstd = space.statistic(op.getRstdOrNull());
  bool lacksMean = isCentred() && !mean;
  bool lacksFactor = !variance && (!rstd || step5.coefficientNeedsStatistic());
  if ((lacksMean || lacksFactor) && !op.hasConstantStatistics())
    row =
        findStatistics(space, step5, c, op.getStatistic(), contract.correction);
  if (mean) {
    row.mean = mean;
    row.delta = {};
  }
  if (variance)
    row.q = variance;
  if (rstd)
    row.r = rstd;
  else if (variance)
    row.r = space.map(space.kept, {variance}, f64, [&](Scalar &s, Elements in) {
      return step5.factor(s, s.widen(in[variance]));
    });
}

SmallVector<Indexed> Backward::inputs(ArrayRef<Indexed> more) const {
  SmallVector<Indexed> all = row.inputs();
  all.append({c, dy, scale});
  llvm::append_range(all, more);
  return all;
}

Value Backward::gradient(Scalar &s, Elements in) const {
  return reference::gradient(s, in[dy], in[scale], contract.scaleOffset,
                             rounding.atLeastF32());
}

/// sum(g) / n and k * sum(g * x^) / (n - correction), without the mean of g
/// where none is subtracted and without divisors in a sum of squares.
void Backward::findShares() {
  if (op.hasConstantStatistics())
    return;
  SmallVector<Indexed> sums =
      space.sums(space.kept, inputs({}), 2, [&](Scalar &s, Elements in) {
        Value g = gradient(s, in);
        return SmallVector<Value>{g, s.mul(g, row.normalize(s, in, in[c]))};
      });
  Value count = space.count();
  if (isCentred())
    share = space.map(space.kept, {sums[0]}, f64, [&](Scalar &s, Elements in) {
      return s.div(in[sums[0]], count);
    });
  Value by = divisor(space, contract.correction);
  shareOfNormalized =
      space.map(space.kept, {sums[1], row.q}, f64, [&](Scalar &s, Elements in) {
        Value value = in[sums[1]];
        if (op.getStatistic() != Statistic::SumSquare)
          value = s.div(value, by);
        if (!step5.coefficientNeedsStatistic())
          return value;
        return s.mul(step5.coefficient(s, s.widen(in[row.q])), value);
      });
}

Indexed Backward::inputGradient() {
  Indexed dsum = space.full(op.getDsumOrNull());
  FloatType type = elementType(op.getDx());
  return space.map(space.all, inputs({share, shareOfNormalized, dsum}), type,
                   [&](Scalar &s, Elements in) {
                     Value dx = gradient(s, in);
                     if (share)
                       dx = s.sub(dx, in[share]);
                     if (shareOfNormalized)
                       dx = s.sub(dx, s.mul(row.normalize(s, in, in[c]),
                                            in[shareOfNormalized]));
                     dx = s.mul(s.widen(in[row.r]), dx);
                     if (dsum)
                       dx = s.add(dx, s.widen(in[dsum]));
                     return s.narrow(dx, type);
                   });
}

/// dscale = sum(dy * x^), dshift = sum(dy) over all but the affine axes.
Indexed Backward::parameterGradient(Value result) {
  bool isScale = result == op.getDscaleOrNull();
  bool roundsNormalized = contract.affineIn == AffineIn::Result;
  SmallVector<int64_t> axes = space.viewAxes(*contract.affineAxes);
  FloatType type = elementType(result);
  Indexed sum =
      space.sums(axes, isScale ? inputs({}) : SmallVector<Indexed>{dy}, 1,
                 [&](Scalar &s, Elements in) {
                   Value term = s.widen(in[dy]);
                   if (isScale) {
                     Value normalized = row.normalize(s, in, in[c]);
                     if (roundsNormalized)
                       normalized =
                           s.round(normalized, elementType(contract.x));
                     term = s.mul(term, normalized);
                   }
                   return SmallVector<Value>{term};
                 })[0];
  return space.map(axes, {sum}, type, [&](Scalar &s, Elements in) {
    return s.narrow(in[sum], type);
  });
}

SmallVector<Value> Backward::lower() {
  widenSum();
  takeStatistics();
  findShares();
  SmallVector<Value> results;
  for (OpResult result : op->getResults()) {
    Indexed value =
        result == op.getDx() ? inputGradient() : parameterGradient(result);
    results.push_back(space.result(value, result.getType()));
  }
  return results;
}

SmallVector<Value> reference::lower(NormBackwardOpInterface op,
                                    OpBuilder &builder) {
  assertWholeGroups(op, builder);
  return Backward(op, builder).lower();
}
