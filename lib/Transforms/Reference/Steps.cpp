//===- Steps.cpp - The steps of the contract --------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Steps.h"

#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::reference;

FloatType reference::elementType(Value value) {
  return cast<FloatType>(getElementTypeOrSelf(value.getType()));
}

FloatType Rounding::atLeastF32() const {
  return isNarrow() ? FloatType(Float32Type::get(compute.getContext()))
                    : compute;
}

Value FactorStep::factor(Scalar &s, Value q) const {
  Value eps = rounding.operand(s, s.constant(epsilon.getDouble()));
  auto denominator = [&]() -> Value {
    switch (epsilon.getPlacement()) {
    case EpsilonPlacement::InsideSqrt:
      return s.sqrt(s.add(q, eps));
    case EpsilonPlacement::OutsideSqrt:
      return s.add(s.sqrt(q), eps);
    case EpsilonPlacement::MaxInside:
      return s.sqrt(s.max(q, eps));
    case EpsilonPlacement::MaxOutside:
      return s.max(s.sqrt(q), eps);
    case EpsilonPlacement::None:
      return s.sqrt(q);
    }
    llvm_unreachable("unknown epsilon placement");
  }();
  Value r = rounding.step(s, s.div(s.constant(1.0), denominator));
  if (zeroPolicy == ZeroPolicy::IEEE)
    return r;
  Value zero = s.constant(0.0);
  return s.select(s.isEqual(denominator, zero), zero, r);
}

Value FactorStep::coefficient(Scalar &s, Value q) const {
  Value zero = s.constant(0.0), one = s.constant(1.0);
  Value eps = rounding.operand(s, s.constant(epsilon.getDouble()));
  switch (epsilon.getPlacement()) {
  case EpsilonPlacement::InsideSqrt:
  case EpsilonPlacement::None:
    return one;
  case EpsilonPlacement::OutsideSqrt: {
    Value root = s.sqrt(q);
    return s.select(s.isEqual(q, zero), zero, s.div(s.add(root, eps), root));
  }
  // Not clamped at the tie.
  case EpsilonPlacement::MaxInside:
    return s.select(s.isLess(q, eps), zero, one);
  case EpsilonPlacement::MaxOutside:
    return s.select(s.isLess(s.sqrt(q), eps), zero, one);
  }
  llvm_unreachable("unknown epsilon placement");
}

Value reference::gain(Scalar &s, Value scale, double offset, FloatType type) {
  Value value = s.round(s.widen(scale), type);
  if (offset == 0.0)
    return value;
  return s.round(s.add(value, s.round(s.constant(offset), type)), type);
}

Value reference::gradient(Scalar &s, Value dy, Value scale, double offset,
                          FloatType type) {
  Value g = s.widen(dy);
  return scale ? s.mul(g, gain(s, scale, offset, type)) : g;
}

Value AffineStep::apply(Scalar &s, Value normalized, Value scale,
                        Value shift) const {
  Value factor, bias;
  if (scale)
    factor = gain(s, scale, scaleOffset, rounding.compute);
  if (shift)
    bias = rounding.operand(s, s.widen(shift));
  if (affineIn == AffineIn::Compute) {
    Value y = normalized;
    if (scale)
      y = rounding.step(s, s.mul(y, factor));
    if (shift)
      y = rounding.step(s, s.add(y, bias));
    return s.narrow(y, yType);
  }
  Value y = s.round(normalized, xType);
  if (scale)
    y = s.round(s.mul(y, s.round(factor, yType)), yType);
  if (shift)
    y = s.round(s.add(y, s.round(bias, yType)), yType);
  return s.narrow(y, yType);
}

Value RowStatistics::centre(Scalar &s, Elements in, Value c) const {
  for (const Indexed &part : {mean, delta})
    if (part)
      c = s.sub(c, s.widen(in[part]));
  return c;
}

Indexed RowStatistics::wholeMean(RowSpace &space) const {
  if (!delta)
    return mean;
  return space.map(
      space.kept, {mean, delta}, space.builder.getF64Type(),
      [&](Scalar &s, Elements in) { return s.add(in[mean], in[delta]); });
}

Value reference::divisor(RowSpace &space, int64_t correction) {
  Scalar s(space.builder, space.loc);
  if (correction == 0)
    return space.count();
  return s.sub(space.count(), s.constant(static_cast<double>(correction)));
}

Value reference::dividePerCount(Scalar &s, Value value, Value count,
                                int64_t correction) {
  Value by = s.sub(count, s.constant(static_cast<double>(correction)));
  return s.select(s.isLess(s.constant(0.0), by), s.div(value, by),
                  s.constant(std::numeric_limits<double>::quiet_NaN()));
}

RowCount RowCount::get(RowSpace &space, Value mask) {
  RowCount rows{space, space.full(mask), {}};
  if (mask)
    rows.perRow =
        space.sums(space.kept, {rows.mask}, 1, [&](Scalar &s, Elements in) {
          return SmallVector<Value>{s.widen(in[rows.mask])};
        })[0];
  return rows;
}

Value RowCount::counted(Scalar &s, Elements elements, Value term) const {
  return mask ? s.select(elements[mask], term, s.constant(0.0)) : term;
}

RowStatistics reference::findMeans(const RowCount &rows,
                                   const Rounding &rounding, Indexed c,
                                   bool isCentred) {
  RowSpace &space = rows.space;
  Type f64 = space.builder.getF64Type();
  RowStatistics found;
  if (!isCentred) {
    found.squares =
        space.sums(space.kept, {c, rows.mask}, 1, [&](Scalar &s, Elements in) {
          return SmallVector<Value>{rows.counted(s, in, s.mul(in[c], in[c]))};
        })[0];
    return found;
  }
  auto perCount = [&](Scalar &s, Elements in, Value sum) {
    Value count = rows.in(in), zero = s.constant(0.0);
    return s.select(s.isEqual(count, zero), zero, s.div(sum, count));
  };
  Indexed total =
      space.sums(space.kept, {c, rows.mask}, 1, [&](Scalar &s, Elements in) {
        return SmallVector<Value>{rows.counted(s, in, in[c])};
      })[0];
  found.mean = space.map(space.kept, {total, rows.perRow}, f64,
                         [&](Scalar &s, Elements in) {
                           return rounding.step(s, perCount(s, in, in[total]));
                         });
  SmallVector<Indexed> sums = space.sums(
      space.kept, {c, found.mean, rows.mask}, 2, [&](Scalar &s, Elements in) {
        Value d = rows.counted(s, in, s.sub(in[c], in[found.mean]));
        return SmallVector<Value>{d, s.mul(d, d)};
      });
  // A mean that was rounded to a narrow type is what the contract subtracts.
  // Otherwise delta, the mean of what is left, is what the f64 mean misses.
  if (rounding.isNarrow()) {
    found.squares = sums[1];
    return found;
  }
  SmallVector<Indexed> corrected = space.map(
      space.kept, {sums[0], sums[1], rows.perRow}, {f64, f64},
      [&](Scalar &s, Elements in) {
        Value delta = perCount(s, in, in[sums[0]]);
        Value squares = s.sub(in[sums[1]], s.mul(in[sums[0]], delta));
        return SmallVector<Value>{delta, s.max(squares, s.constant(0.0))};
      });
  found.delta = corrected[0];
  found.squares = corrected[1];
  return found;
}

RowStatistics reference::findStatistics(RowSpace &space, const FactorStep &step,
                                        Indexed c, Statistic statistic,
                                        int64_t correction) {
  Type f64 = space.builder.getF64Type();
  RowStatistics found =
      findMeans(RowCount::get(space, /*mask=*/{}), step.rounding, c,
                statistic == Statistic::Variance);
  Value by = divisor(space, correction);
  SmallVector<Indexed> factors = space.map(
      space.kept, {found.squares}, {f64, f64}, [&](Scalar &s, Elements in) {
        Value q = in[found.squares];
        if (statistic != Statistic::SumSquare)
          q = s.div(q, by);
        Value zero = s.constant(0.0);
        q = s.select(s.isEqual(space.count(), zero), zero,
                     step.rounding.step(s, q));
        return SmallVector<Value>{q, step.factor(s, q)};
      });
  found.q = factors[0];
  found.r = factors[1];
  return found;
}
