//===- Steps.h - The steps of the contract ----------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_REFERENCE_STEPS_H
#define NORM_LIB_TRANSFORMS_REFERENCE_STEPS_H

#include "RowSpace.h"

namespace mlir::norm::reference {

FloatType elementType(Value value);

/// Where the contract rounds. Every method takes and returns f64s that are
/// numbers of the types named.
struct Rounding {
  FloatType compute;

  /// Whether every step rounds to the compute type.
  bool isNarrow() const { return FloatType(compute).getWidth() < 32; }
  /// The type of the backward arithmetic.
  FloatType atLeastF32() const;
  /// An operand of a step: always cast to the compute type.
  Value operand(Scalar &s, Value x) const { return s.round(x, compute); }
  /// One step's result: rounded if steps round.
  Value step(Scalar &s, Value x) const {
    return isNarrow() ? s.round(x, compute) : x;
  }
};

/// Step 5, and its derivative.
struct FactorStep {
  Rounding rounding;
  EpsilonAttr epsilon;
  ZeroPolicy zeroPolicy;

  /// r from the statistic q.
  Value factor(Scalar &s, Value q) const;
  /// How strongly r still follows q: the factor k of the backward formula.
  Value coefficient(Scalar &s, Value q) const;
  bool coefficientNeedsStatistic() const {
    return epsilon.getPlacement() != EpsilonPlacement::InsideSqrt &&
           !epsilon.isNone();
  }
};

/// scale + offset, both cast to `type` and so is their sum.
Value gain(Scalar &s, Value scale, double offset, FloatType type);

/// g = dy * (scale + offset) of the backward ops, from elements as they are
/// stored; scale may be null.
Value gradient(Scalar &s, Value dy, Value scale, double offset, FloatType type);

/// Step 7.
struct AffineStep {
  Rounding rounding;
  AffineIn affineIn;
  double scaleOffset;
  FloatType xType, yType;

  /// From x-hat to a value of y's type. scale and shift are as stored, null if
  /// absent.
  Value apply(Scalar &s, Value normalized, Value scale, Value shift) const;
};

/// What steps 3 to 5 find, over the kept axes, in f64. The mean is `mean` +
/// `delta`; either is null where it is 0.
struct RowStatistics {
  Indexed mean, delta;
  /// The sum that q is made from.
  Indexed squares;
  Indexed q, r;

  SmallVector<Indexed> inputs() const { return {mean, delta, r}; }
  /// mean + delta.
  Indexed wholeMean(RowSpace &space) const;
  /// c - mean, and step 6 before it rounds.
  Value centre(Scalar &s, Elements in, Value c) const;
  Value normalize(Scalar &s, Elements in, Value c) const {
    return s.mul(centre(s, in, c), s.widen(in[r]));
  }
};

/// Which elements count and how many of a row do, as f64s: all of them, or
/// those where a mask holds.
struct RowCount {
  RowSpace &space;
  Indexed mask, perRow;

  static RowCount get(RowSpace &space, Value mask);
  /// The count in a body over the kept axes that has `perRow` as an input, or
  /// outside of loops where there is no mask.
  Value in(Elements elements) const {
    return perRow ? elements[perRow] : space.count();
  }
  /// `term`, or 0 where it does not count.
  Value counted(Scalar &s, Elements elements, Value term) const;
};

/// value / (count - correction); NaN where that is not positive.
Value dividePerCount(Scalar &s, Value value, Value count, int64_t correction);

/// Steps 3 and 4 of c, an f64 tensor over all axes: means and sums of squares.
RowStatistics findMeans(const RowCount &rows, const Rounding &rounding,
                        Indexed c, bool isCentred);

/// Steps 3 to 5.
RowStatistics findStatistics(RowSpace &space, const FactorStep &step, Indexed c,
                             Statistic statistic, int64_t correction);

/// n - correction as an f64, outside of loops.
Value divisor(RowSpace &space, int64_t correction);

} // namespace mlir::norm::reference

#endif // NORM_LIB_TRANSFORMS_REFERENCE_STEPS_H
