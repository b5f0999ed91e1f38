//===- Algebra.cpp - The statistics algebra, step by step -------*- C++ -*-===//
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

/// An f64 over `tensor`'s axes as a result of the op.
static Value rounded(RowSpace &space, const Indexed &tensor, Value result) {
  FloatType type = elementType(result);
  Indexed narrow =
      space.map(tensor.axes, {tensor}, type, [&](Scalar &s, Elements in) {
        return s.narrow(in[tensor], type);
      });
  return space.result(narrow, result.getType());
}

/// A count that is an f64 as an i64 result.
static Value asCount(RowSpace &space, const Indexed &tensor, Value result) {
  Type i64 = space.builder.getI64Type();
  Indexed count =
      space.map(tensor.axes, {tensor}, i64, [&](Scalar &s, Elements in) {
        return arith::FPToSIOp::create(s.b, i64, in[tensor]).getResult();
      });
  return space.result(count, result.getType());
}

/// x in the compute type, as an f64.
static Indexed widened(RowSpace &space, const Rounding &rounding, Value x) {
  Indexed stored = space.full(x);
  return space.map(space.all, {stored}, space.builder.getF64Type(),
                   [&](Scalar &s, Elements in) {
                     return rounding.operand(s, s.widen(in[stored]));
                   });
}

/// A given mean, which keeps its bits, and a given factor, in compute type.
static RowStatistics given(RowSpace &space, const Rounding &rounding,
                           Value mean, Value rstd) {
  RowStatistics row;
  if (mean)
    row.mean = space.statistic(mean);
  Indexed stored = space.statistic(rstd);
  row.r = space.map(space.kept, {stored}, space.builder.getF64Type(),
                    [&](Scalar &s, Elements in) {
                      return rounding.operand(s, s.widen(in[stored]));
                    });
  return row;
}

//===----------------------------------------------------------------------===//
// Moments
//===----------------------------------------------------------------------===//

SmallVector<Value> reference::lower(MomentsOp op, OpBuilder &builder) {
  RowSpace space(op, builder);
  Rounding rounding{op.getComputeTypeOrDefault()};
  Indexed c = widened(space, rounding, op.getX());
  RowCount rows = RowCount::get(space, op.getMask());
  RowStatistics row =
      findMeans(rows, rounding, c, op.getAbout() == About::Mean);
  Indexed count = rows.perRow;
  if (!count)
    count = space.map(space.kept, {}, builder.getF64Type(),
                      [&](Scalar &, Elements) { return space.count(); });
  SmallVector<Value> results;
  for (OpResult result : op->getResults())
    results.push_back(result == op.getCount() ? asCount(space, count, result)
                      : result == op.getMean()
                          ? rounded(space, row.wholeMean(space), result)
                          : rounded(space, row.squares, result));
  return results;
}

namespace {
/// Sums over the parts that count something.
class PartMerger {
public:
  PartMerger(CombineMomentsOp op, OpBuilder &builder)
      : op(op), space(op, builder), f64(builder.getF64Type()),
        count(space.full(op.getCount())), mean(space.full(op.getMean())),
        m2(space.full(op.getM2())) {}

  SmallVector<Value> merge();

private:
  /// Sums of terms of a part and its count.
  SmallVector<Indexed>
  sums(ArrayRef<Indexed> inputs, unsigned number,
       function_ref<SmallVector<Value>(Scalar &, Elements, Value)> terms);
  /// sum / N, and 0 where N is 0.
  Value perTotal(Scalar &s, Elements in, const Indexed &sum) const;

  CombineMomentsOp op;
  RowSpace space;
  Type f64;
  Indexed count, mean, m2;
  Indexed total;
};
} // namespace

SmallVector<Indexed> PartMerger::sums(
    ArrayRef<Indexed> inputs, unsigned number,
    function_ref<SmallVector<Value>(Scalar &, Elements, Value)> terms) {
  SmallVector<Indexed> read(inputs);
  read.push_back(count);
  return space.sums(space.kept, read, number, [&](Scalar &s, Elements in) {
    Value n = s.widen(in[count]), zero = s.constant(0.0);
    SmallVector<Value> values = terms(s, in, n);
    for (Value &value : values)
      value = s.select(s.isEqual(n, zero), zero, value);
    return values;
  });
}

Value PartMerger::perTotal(Scalar &s, Elements in, const Indexed &sum) const {
  Value zero = s.constant(0.0);
  return s.select(s.isEqual(in[total], zero), zero, s.div(in[sum], in[total]));
}

/// u = sum(n * mean) / N misses delta = sum(n * (mean - u)) / N, and the
/// squares about u are N * delta^2 too many.
SmallVector<Value> PartMerger::merge() {
  total = sums({}, 1, [](Scalar &, Elements, Value n) {
    return SmallVector<Value>{n};
  })[0];
  RowStatistics row;
  if (!mean) {
    row.squares = sums({m2}, 1, [&](Scalar &s, Elements in, Value) {
      return SmallVector<Value>{s.widen(in[m2])};
    })[0];
  } else {
    Indexed weighed = sums({mean}, 1, [&](Scalar &s, Elements in, Value n) {
      return SmallVector<Value>{s.mul(n, s.widen(in[mean]))};
    })[0];
    row.mean = space.map(
        space.kept, {weighed, total}, f64,
        [&](Scalar &s, Elements in) { return perTotal(s, in, weighed); });
    SmallVector<Indexed> found =
        sums({mean, m2, row.mean}, 2, [&](Scalar &s, Elements in, Value n) {
          Value d = s.sub(s.widen(in[mean]), in[row.mean]), term = s.mul(n, d);
          return SmallVector<Value>{term,
                                    s.add(s.widen(in[m2]), s.mul(term, d))};
        });
    SmallVector<Indexed> corrected = space.map(
        space.kept, {found[0], found[1], total}, {f64, f64},
        [&](Scalar &s, Elements in) {
          Value delta = perTotal(s, in, found[0]);
          Value squares = s.sub(in[found[1]], s.mul(in[found[0]], delta));
          return SmallVector<Value>{delta, s.max(squares, s.constant(0.0))};
        });
    row.delta = corrected[0];
    row.squares = corrected[1];
  }
  SmallVector<Value> results;
  for (OpResult result : op->getResults())
    results.push_back(result == op.getMergedCount()
                          ? asCount(space, total, result)
                      : result == op.getMergedMean()
                          ? rounded(space, row.wholeMean(space), result)
                          : rounded(space, row.squares, result));
  return results;
}

SmallVector<Value> reference::lower(CombineMomentsOp op, OpBuilder &builder) {
  return PartMerger(op, builder).merge();
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

SmallVector<Value> reference::lower(RstdOp op, OpBuilder &builder) {
  RowSpace space(op, builder);
  Type f64 = builder.getF64Type();
  FactorStep step{
      {op.getComputeTypeOrDefault()}, op.getEpsilon(), op.getZeroPolicy()};
  Indexed m2 = space.full(op.getM2()), count = space.full(op.getCount());
  SmallVector<Indexed> found = space.map(
      space.all, {m2, count}, {f64, f64}, [&](Scalar &s, Elements in) {
        Value q = s.widen(in[m2]);
        if (count) {
          Value n = s.widen(in[count]), zero = s.constant(0.0);
          q = s.select(s.isEqual(n, zero), zero,
                       dividePerCount(s, q, n, op.getCorrection()));
        }
        q = step.rounding.step(s, q);
        return SmallVector<Value>{step.factor(s, q), q};
      });
  SmallVector<Value> results{rounded(space, found[0], op.getRstd())};
  if (op.getVariance())
    results.push_back(rounded(space, found[1], op.getVariance()));
  return results;
}

SmallVector<Value> reference::lower(NormalizeOp op, OpBuilder &builder) {
  RowSpace space(op, builder);
  AffineStep step{{op.getComputeTypeOrDefault()},
                  op.getAffineIn(),
                  op.getScaleOffset().convertToDouble(),
                  elementType(op.getX()),
                  elementType(op.getY())};
  Indexed c = widened(space, step.rounding, op.getX());
  RowStatistics row = given(space, step.rounding, op.getMean(), op.getRstd());
  SmallVector<int64_t> affineAxes = op.getAffineAxesOrDefault();
  Indexed scale = space.affine(op.getScale(), affineAxes),
          shift = space.affine(op.getShift(), affineAxes);
  SmallVector<Indexed> inputs = row.inputs();
  inputs.append({c, scale, shift});
  Indexed y =
      space.map(space.all, inputs, step.yType, [&](Scalar &s, Elements in) {
        Value normalized = step.rounding.step(s, row.normalize(s, in, in[c]));
        return step.apply(s, normalized, in[scale], in[shift]);
      });
  return {space.result(y, op.getY().getType())};
}

SmallVector<Value> reference::lower(UpdateRunningOp op, OpBuilder &builder) {
  RowSpace space(op, builder);
  Scalar outer(builder, op.getLoc());
  Value a = op.getMomentumValue()
                ? outer.widen(op.getMomentumValue())
                : outer.constant(op.getMomentum()->convertToDouble());
  Value rest = outer.sub(outer.constant(1.0), a);
  Indexed old = space.full(op.getOld()),
          observed = space.full(op.getObserved()),
          count = space.full(op.getCount());
  FloatType type = elementType(op.getUpdated());
  Indexed updated = space.map(
      space.all, {old, observed, count}, type, [&](Scalar &s, Elements in) {
        Value before = s.widen(in[old]), now = s.widen(in[observed]);
        Value n = s.widen(in[count]);
        if (op.getStatistic() == Tracked::Variance)
          now = dividePerCount(s, now, n, op.getRunningCorrection());
        Value moved = s.add(s.mul(rest, before), s.mul(a, now));
        Value isEmpty = s.isEqual(n, s.constant(0.0));
        return s.narrow(s.select(isEmpty, before, moved), type);
      });
  return {space.result(updated, op.getUpdated().getType())};
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

namespace {
/// What the two backward ops read at an element. The arithmetic is never
/// narrower than f32, and nothing is rounded to a narrow type.
struct BackwardElements {
  Rounding rounding;
  double scaleOffset;
  Indexed dy, scale, mask, c;
  RowStatistics row;

  template <typename OpTy>
  BackwardElements(RowSpace &space, OpTy op)
      : rounding{Rounding{op.getComputeTypeOrDefault()}.atLeastF32()},
        scaleOffset(op.getScaleOffset().convertToDouble()),
        dy(space.full(op.getDy())),
        scale(space.affine(op.getScale(), op.getAffineAxesOrDefault())),
        mask(space.full(op.getMask())), c(widened(space, rounding, op.getX())),
        row(given(space, rounding, op.getMean(), op.getRstd())) {}

  SmallVector<Indexed> inputs(ArrayRef<Indexed> more = {}) const {
    SmallVector<Indexed> all = row.inputs();
    all.append({dy, scale, mask, c});
    llvm::append_range(all, more);
    return all;
  }
  Value gradient(Scalar &s, Elements in) const {
    return reference::gradient(s, in[dy], in[scale], scaleOffset,
                               rounding.compute);
  }
  Value normalized(Scalar &s, Elements in) const {
    return row.normalize(s, in, in[c]);
  }
  /// 0 where the mask does not hold.
  Value masked(Scalar &s, Elements in, Value value) const {
    return mask ? s.select(in[mask], value, s.constant(0.0)) : value;
  }
};
} // namespace

SmallVector<Value> reference::lower(BackwardMomentsOp op, OpBuilder &builder) {
  RowSpace space(op, builder);
  BackwardElements read(space, op);
  auto term = [&](Scalar &s, Elements in, Value result) {
    if (result == op.getSumG())
      return read.gradient(s, in);
    if (result == op.getSumGx())
      return s.mul(read.gradient(s, in), read.normalized(s, in));
    Value dy = s.widen(in[read.dy]);
    if (result == op.getDshift())
      return dy;
    Value normalized = read.normalized(s, in);
    if (op.getAffineIn() == AffineIn::Result)
      normalized = s.round(normalized, elementType(op.getX()));
    return s.mul(dy, normalized);
  };
  SmallVector<Value> results;
  for (OpResult result : op->getResults()) {
    bool isAffine = result == op.getDscale() || result == op.getDshift();
    SmallVector<int64_t> axes =
        isAffine ? op.getAffineAxesOrDefault() : space.kept;
    Indexed sum =
        space.sums(axes, read.inputs(), 1, [&](Scalar &s, Elements in) {
          return SmallVector<Value>{read.masked(s, in, term(s, in, result))};
        })[0];
    results.push_back(rounded(space, sum, result));
  }
  return results;
}

SmallVector<Value> reference::lower(BackwardNormalizeOp op,
                                    OpBuilder &builder) {
  RowSpace space(op, builder);
  Type f64 = builder.getF64Type();
  BackwardElements read(space, op);
  FactorStep step{read.rounding, op.getEpsilon(), ZeroPolicy::IEEE};
  Indexed count = space.statistic(op.getCount()),
          variance = space.statistic(op.getVariance());
  // Of g as it is, and of g times x-hat.
  auto perCount = [&](Value sum, int64_t correction,
                      bool isWeighed) -> Indexed {
    if (!sum)
      return {};
    Indexed stored = space.statistic(sum);
    return space.map(
        space.kept, {stored, count, variance}, f64,
        [&](Scalar &s, Elements in) {
          Value share = s.widen(in[stored]);
          if (count)
            share = dividePerCount(s, share, s.widen(in[count]), correction);
          if (!isWeighed || !step.coefficientNeedsStatistic())
            return share;
          Value q = read.rounding.operand(s, s.widen(in[variance]));
          return s.mul(step.coefficient(s, q), share);
        });
  };
  Indexed share = perCount(op.getSumG(), 0, /*isWeighed=*/false),
          shareOfNormalized =
              perCount(op.getSumGx(), op.getCorrection(), /*isWeighed=*/true);
  FloatType type = elementType(op.getDx());
  Indexed dx = space.map(space.all, read.inputs({share, shareOfNormalized}),
                         type, [&](Scalar &s, Elements in) {
                           Value value = read.gradient(s, in);
                           if (share)
                             value = s.sub(value, in[share]);
                           value = s.sub(value, s.mul(read.normalized(s, in),
                                                      in[shareOfNormalized]));
                           value = s.mul(in[read.row.r], value);
                           return s.narrow(read.masked(s, in, value), type);
                         });
  return {space.result(dx, op.getDx().getType())};
}
