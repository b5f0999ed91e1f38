//===- DecomposeStatistics.cpp - The statistics algebra as linalg ---------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The steps of the named ops (NormSteps.cpp) with masks and counts that are
// tensors. Parts merge as elements do, each weighed by its count: the same
// corrected two-pass form keeps the digits of parts whose means are far from 0
// and close to each other, where sums of squares would lose them.
//
//===----------------------------------------------------------------------===//

#include "RowBuilder.h"

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// What the ops share
//===----------------------------------------------------------------------===//

/// Values as the op's results: extents may be static in one place only.
static SmallVector<Value> asResults(RowBuilder &rows,
                                    SmallVector<Value> values) {
  for (auto [value, result] : llvm::zip_equal(values, rows.op->getResults()))
    if (value.getType() != result.getType())
      value = tensor::CastOp::create(rows.builder, rows.loc, result.getType(),
                                     value);
  return values;
}

static Value integer(RowBuilder &rows, OpBuilder &b, int64_t value) {
  return arith::ConstantOp::create(b, rows.loc, b.getI64IntegerAttr(value));
}

static Value compare(RowBuilder &rows, OpBuilder &b,
                     arith::CmpIPredicate predicate, Value count,
                     int64_t value) {
  return arith::CmpIOp::create(b, rows.loc, predicate, count,
                               integer(rows, b, value));
}

/// An i64 in work type.
static Value countToWork(RowBuilder &rows, OpBuilder &b, Value count) {
  return arith::SIToFPOp::create(b, rows.loc, rows.workType, count);
}

/// value / (count - correction), NaN where that divisor is not positive.
static Value dividePerCount(RowBuilder &rows, OpBuilder &b, Value value,
                            Value count, int64_t correction) {
  Value divisor = count;
  if (correction != 0)
    divisor =
        arith::SubIOp::create(b, rows.loc, count, integer(rows, b, correction));
  Value quotient = rows.div(b, value, countToWork(rows, b, divisor));
  Value isPositive = compare(rows, b, arith::CmpIPredicate::sgt, divisor, 0);
  Value nan = arith::ConstantOp::create(
      b, rows.loc,
      FloatAttr::get(rows.workType,
                     APFloat::getQNaN(rows.workType.getFloatSemantics())));
  return arith::SelectOp::create(b, rows.loc, isPositive, quotient, nan);
}

/// At least 1, so that a sum of nothing stays 0.
static Value atLeastOne(RowBuilder &rows, OpBuilder &b, Value count) {
  return countToWork(
      rows, b, arith::MaxSIOp::create(b, rows.loc, count, integer(rows, b, 1)));
}

/// Collects the inputs of a body; an absent tensor has no place.
namespace {
class Inputs {
public:
  std::optional<size_t> add(Value tensor, ArrayRef<int64_t> axes) {
    if (!tensor)
      return std::nullopt;
    list.push_back({tensor, llvm::to_vector(axes)});
    return list.size() - 1;
  }
  static Value at(ValueRange in, std::optional<size_t> place) {
    return place ? in[*place] : Value();
  }

  SmallVector<Indexed> list;
};
} // namespace

/// What is normalized, and the statistics it is normalized by.
namespace {
struct Given {
  Source source;
  RowStatistics row;

  Given(RowBuilder &rows, Value x, Value mean, Value rstd) {
    source.inputs = {rows.full(x)};
    if (mean)
      row.means = splitMean(rows, mean);
    // A factor of more bits than steps have is rounded once a row.
    if (RowBuilder::elementTypeOf(rstd).getWidth() >
        rows.computeType.getWidth())
      rstd = rows.elementwise(
          {rows.statistic(rstd)}, rows.kept, rows.computeType,
          [&](OpBuilder &b, Location, ValueRange in) {
            return SmallVector<Value>{rows.cast(b, in[0], rows.computeType)};
          });
    row.rstd = rows.statistic(rstd);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// moments
//===----------------------------------------------------------------------===//

/// The number of counted elements of each row, i64 over the kept axes.
static Value buildCounts(RowBuilder &rows, Value mask) {
  Type i64 = rows.builder.getI64Type();
  if (mask)
    return rows.sums({rows.full(mask)}, rows.kept, i64,
                     [&](OpBuilder &b, Location, ValueRange in) {
                       return SmallVector<Value>{
                           arith::ExtUIOp::create(b, rows.loc, i64, in[0])};
                     })[0];
  Value count = rows.dynamicCount();
  if (!count)
    count = integer(rows, rows.builder, *rows.op.getStaticReducedCount());
  return rows.fill(count, rows.kept);
}

/// mean and m2 of each row, in the types of the results that are asked for.
static void buildMoments(RowBuilder &rows, MomentsOp op, Value counts,
                         Value &mean, Value &m2) {
  Source source;
  source.inputs = {rows.full(op.getX())};
  Indexed mask;
  Count count;
  if (op.getMask())
    mask = rows.full(op.getMask());
  if (mask && op.getAbout() == About::Mean) {
    count.perStatistic = rows.statistic(rows.elementwise(
        {rows.statistic(counts)}, rows.kept, rows.workType,
        [&](OpBuilder &b, Location, ValueRange in) {
          return SmallVector<Value>{atLeastOne(rows, b, in[0])};
        }));
  } else if (!mask) {
    count.scalar = rows.divisor(0);
  }

  CentredSums sums;
  if (op.getAbout() == About::Mean)
    sums = buildCentredSums(rows, source, mask, count);
  else
    sums.squares = buildSquareSum(rows, source, mask);

  Inputs inputs;
  inputs.add(sums.squares, rows.kept);
  auto deviationsAt = inputs.add(sums.deviations, rows.kept),
       meanAt = inputs.add(op.getMean() ? sums.mean : Value(), rows.kept);
  if (deviationsAt)
    count.addTo(inputs.list);
  SmallVector<RowBuilder::Output> outputs;
  if (op.getMean())
    outputs.push_back({&mean, RowBuilder::elementTypeOf(op.getMean())});
  if (op.getM2())
    outputs.push_back({&m2, RowBuilder::elementTypeOf(op.getM2())});
  rows.elementwiseTo(
      outputs, inputs.list, [&](OpBuilder &b, Location, ValueRange in) {
        Value squares = in[0], d;
        if (deviationsAt)
          std::tie(d, squares) = CentredSums::correct(
              rows, b, squares, in[*deviationsAt], count.in(in));
        SmallVector<Value> values;
        if (op.getMean()) {
          // m + d is not rounded where the result holds more bits.
          FloatType type = RowBuilder::elementTypeOf(op.getMean()),
                    addType = type.getWidth() > rows.workType.getWidth()
                                  ? type
                                  : rows.workType;
          Value m = rows.cast(b, in[*meanAt], addType);
          if (d)
            m = rows.add(b, m, rows.cast(b, d, addType));
          values.push_back(rows.cast(b, m, type));
        }
        if (op.getM2())
          values.push_back(
              rows.cast(b, squares, RowBuilder::elementTypeOf(op.getM2())));
        return values;
      });
}

FailureOr<SmallVector<Value>>
MomentsOp::decomposeOperation(OpBuilder &builder) {
  RowBuilder rows(*this, builder);
  Value counts, mean, m2;
  if (getCount() || (getMask() && getAbout() == About::Mean))
    counts = buildCounts(rows, getMask());
  if (getMean() || getM2())
    buildMoments(rows, *this, counts, mean, m2);
  SmallVector<Value> values;
  if (getCount())
    values.push_back(counts);
  if (getMean())
    values.push_back(mean);
  if (getM2())
    values.push_back(m2);
  return asResults(rows, values);
}

//===----------------------------------------------------------------------===//
// combine_moments
//===----------------------------------------------------------------------===//

namespace {
/// Sums over the parts that count something.
class PartMerger {
public:
  PartMerger(CombineMomentsOp op, OpBuilder &builder)
      : op(op), rows(op, builder) {
    rows.computeType = rows.workType;
  }

  SmallVector<Value> run();

private:
  /// Inputs of a body over all parts: the count, then `values`, then u.
  SmallVector<Indexed> partInputs(ArrayRef<Value> values) {
    SmallVector<Indexed> inputs{rows.full(op.getCount())};
    for (Value value : values)
      inputs.push_back(rows.full(value));
    if (mean)
      inputs.push_back(rows.statistic(mean));
    return inputs;
  }
  /// `term` where the part is not empty, 0 elsewhere.
  Value orNothing(OpBuilder &b, Value count, Value term) {
    Value isEmpty = compare(rows, b, arith::CmpIPredicate::eq, count, 0);
    return arith::SelectOp::create(b, rows.loc, isEmpty,
                                   rows.constant(b, 0.0, rows.workType), term);
  }
  /// count_i * (mean_i - u); without a u yet, count_i * mean_i.
  Value weighed(OpBuilder &b, ValueRange in) {
    Value deviation = rows.toWork(b, in[1]);
    if (mean)
      deviation = rows.sub(b, deviation, in.back());
    return rows.mul(b, countToWork(rows, b, in[0]), deviation);
  }
  void addToMean();
  void sumSquares();
  void correct();

  CombineMomentsOp op;
  RowBuilder rows;
  /// Over the kept axes: N as i64, at least 1 in work type, u, and the sums
  /// about u.
  Value count, divisor, mean, squares, deviations;
  Value mergedMean, mergedM2;
};
} // namespace

/// u += sum(count_i * (mean_i - u)) / N.
void PartMerger::addToMean() {
  Value sum = rows.sums(
      partInputs(op.getMean()), 1, [&](OpBuilder &b, Location, ValueRange in) {
        return SmallVector<Value>{orNothing(b, in[0], weighed(b, in))};
      })[0];
  Inputs inputs;
  inputs.add(sum, rows.kept);
  inputs.add(divisor, rows.kept);
  auto meanAt = inputs.add(mean, rows.kept);
  mean = rows.elementwise(inputs.list, rows.kept, rows.workType,
                          [&](OpBuilder &b, Location, ValueRange in) {
                            Value share = rows.div(b, in[0], in[1]);
                            if (meanAt)
                              share = rows.add(b, in[*meanAt], share);
                            return SmallVector<Value>{share};
                          });
}

void PartMerger::sumSquares() {
  if (!op.getMean()) {
    squares = rows.sums(
        partInputs(op.getM2()), 1, [&](OpBuilder &b, Location, ValueRange in) {
          return SmallVector<Value>{orNothing(b, in[0], rows.toWork(b, in[1]))};
        })[0];
    return;
  }
  SmallVector<Value> sums = rows.sums(
      partInputs({op.getMean(), op.getM2()}), 2,
      [&](OpBuilder &b, Location, ValueRange in) {
        Value term = weighed(b, in),
              between = rows.mul(b, term,
                                 rows.sub(b, rows.toWork(b, in[1]), in.back())),
              all = rows.add(b, rows.toWork(b, in[2]), between);
        return SmallVector<Value>{orNothing(b, in[0], all),
                                  orNothing(b, in[0], term)};
      });
  squares = sums[0];
  deviations = sums[1];
}

void PartMerger::correct() {
  Inputs inputs;
  inputs.add(squares, rows.kept);
  auto deviationsAt = inputs.add(deviations, rows.kept),
       divisorAt = inputs.add(deviations ? divisor : Value(), rows.kept),
       meanAt = inputs.add(mean, rows.kept);
  SmallVector<RowBuilder::Output> outputs;
  auto typeOf = [](Value value) { return RowBuilder::elementTypeOf(value); };
  if (op.getMergedMean())
    outputs.push_back({&mergedMean, typeOf(op.getMergedMean())});
  if (op.getMergedM2())
    outputs.push_back({&mergedM2, typeOf(op.getMergedM2())});
  rows.elementwiseTo(
      outputs, inputs.list, [&](OpBuilder &b, Location, ValueRange in) {
        Value sum = in[0], d;
        if (deviationsAt)
          std::tie(d, sum) = CentredSums::correct(
              rows, b, sum, in[*deviationsAt], in[*divisorAt]);
        SmallVector<Value> values;
        if (op.getMergedMean())
          values.push_back(rows.cast(b, rows.add(b, in[*meanAt], d),
                                     typeOf(op.getMergedMean())));
        if (op.getMergedM2())
          values.push_back(rows.cast(b, sum, typeOf(op.getMergedM2())));
        return values;
      });
}

SmallVector<Value> PartMerger::run() {
  count = rows.sums({rows.full(op.getCount())}, rows.kept,
                    rows.builder.getI64Type(),
                    [](OpBuilder &, Location, ValueRange in) {
                      return SmallVector<Value>{in[0]};
                    })[0];
  if (op.getMergedMean() || op.getMergedM2()) {
    if (op.getMean()) {
      divisor = rows.elementwise(
          {rows.statistic(count)}, rows.kept, rows.workType,
          [&](OpBuilder &b, Location, ValueRange in) {
            return SmallVector<Value>{atLeastOne(rows, b, in[0])};
          });
      // Twice: means have as many bits as u (see NormSteps.cpp).
      addToMean();
      addToMean();
    }
    sumSquares();
    correct();
  }
  SmallVector<Value> values;
  if (op.getMergedCount())
    values.push_back(count);
  if (op.getMergedMean())
    values.push_back(mergedMean);
  if (op.getMergedM2())
    values.push_back(mergedM2);
  return asResults(rows, values);
}

FailureOr<SmallVector<Value>>
CombineMomentsOp::decomposeOperation(OpBuilder &builder) {
  return PartMerger(*this, builder).run();
}

//===----------------------------------------------------------------------===//
// rstd, normalize, update_running
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> RstdOp::decomposeOperation(OpBuilder &builder) {
  RowBuilder rows(*this, builder);
  Inputs inputs;
  inputs.add(getM2(), rows.all);
  auto countAt = inputs.add(getCount(), rows.all);
  SmallVector<Type> types{RowBuilder::elementTypeOf(getRstd())};
  if (getVariance())
    types.push_back(RowBuilder::elementTypeOf(getVariance()));
  SmallVector<Value> values = rows.elementwise(
      inputs.list, rows.all, types, [&](OpBuilder &b, Location, ValueRange in) {
        Value q = rows.toWork(b, in[0]);
        if (countAt) {
          Value isEmpty =
              compare(rows, b, arith::CmpIPredicate::eq, in[*countAt], 0);
          q = arith::SelectOp::create(
              b, rows.loc, isEmpty, rows.constant(b, 0.0, rows.workType),
              dividePerCount(rows, b, q, in[*countAt], getCorrection()));
        }
        q = rows.toCompute(b, q);
        Value r = buildFactor(rows, b, getEpsilon(), getZeroPolicy(), q);
        SmallVector<Value> results{
            rows.cast(b, r, mlir::cast<FloatType>(types[0]))};
        if (getVariance())
          results.push_back(rows.cast(b, q, mlir::cast<FloatType>(types[1])));
        return results;
      });
  return asResults(rows, values);
}

FailureOr<SmallVector<Value>>
NormalizeOp::decomposeOperation(OpBuilder &builder) {
  RowBuilder rows(*this, builder);
  Given given(rows, getX(), getMean(), getRstd());
  Normalized normalized(rows, given.source, given.row, /*isRounded=*/true);
  Inputs inputs;
  normalized.addTo(inputs.list);
  SmallVector<int64_t> affineAxes = getAffineAxesOrDefault();
  auto scaleAt = inputs.add(getScale(), affineAxes),
       shiftAt = inputs.add(getShift(), affineAxes);
  FloatType type = RowBuilder::elementTypeOf(getY());
  AffineStep affine{RowBuilder::elementTypeOf(getX()), type, getAffineIn(),
                    getScaleOffset().convertToDouble()};
  Value y = rows.elementwise(
      inputs.list, rows.all, type, [&](OpBuilder &b, Location, ValueRange in) {
        Value value =
            affine.build(rows, b, normalized.build(b, in),
                         Inputs::at(in, scaleAt), Inputs::at(in, shiftAt));
        return SmallVector<Value>{rows.cast(b, value, type)};
      });
  return asResults(rows, {y});
}

FailureOr<SmallVector<Value>>
UpdateRunningOp::decomposeOperation(OpBuilder &builder) {
  RowBuilder rows(*this, builder);
  rows.computeType = rows.workType;
  std::optional<double> momentum;
  if (getMomentum())
    momentum = getMomentum()->convertToDouble();
  RunningWeights weights =
      buildRunningWeights(rows, momentum, getMomentumValue());
  FloatType type = RowBuilder::elementTypeOf(getUpdated());
  Value updated = rows.elementwise(
      {rows.full(getOld()), rows.full(getObserved()), rows.full(getCount())},
      rows.all, type, [&](OpBuilder &b, Location, ValueRange in) {
        Value old = rows.toWork(b, in[0]), observed = rows.toWork(b, in[1]);
        if (getStatistic() == Tracked::Variance)
          observed =
              dividePerCount(rows, b, observed, in[2], getRunningCorrection());
        Value moved = rows.add(b, rows.mul(b, weights.old, old),
                               rows.mul(b, weights.observed, observed));
        Value isEmpty = compare(rows, b, arith::CmpIPredicate::eq, in[2], 0);
        return SmallVector<Value>{arith::SelectOp::create(
            b, rows.loc, isEmpty, rows.cast(b, in[0], type),
            rows.cast(b, moved, type))};
      });
  return asResults(rows, {updated});
}

//===----------------------------------------------------------------------===//
// backward_moments, backward_normalize
//===----------------------------------------------------------------------===//

namespace {
/// x^ and g = dy * (scale + offset) in a body over all axes.
class GradientBody {
public:
  template <typename OpTy>
  GradientBody(RowBuilder &rows, OpTy op, AffineIn affineIn)
      : rows(rows), given(rows, op.getX(), op.getMean(), op.getRstd()),
        normalized(rows, given.source, given.row, /*isRounded=*/false),
        xType(RowBuilder::elementTypeOf(op.getX())), affineIn(affineIn),
        scaleOffset(op.getScaleOffset().convertToDouble()) {
    normalized.addTo(inputs.list);
    dyAt = *inputs.add(op.getDy(), rows.all);
    scaleAt = inputs.add(op.getScale(), op.getAffineAxesOrDefault());
    maskAt = inputs.add(op.getMask(), rows.all);
  }

  Value normal(OpBuilder &b, ValueRange in) { return normalized.build(b, in); }
  Value factor(OpBuilder &b, ValueRange in) { return normalized.factor(b, in); }
  /// x^ as dscale sees it.
  Value seenByScale(OpBuilder &b, Value normal) {
    if (affineIn != AffineIn::Result)
      return normal;
    return rows.toWork(b, rows.cast(b, normal, xType));
  }
  Value dy(OpBuilder &b, ValueRange in) { return rows.toWork(b, in[dyAt]); }
  Value gradient(OpBuilder &b, ValueRange in) {
    return buildGradient(rows, b, in[dyAt], scaleAt ? in[*scaleAt] : Value(),
                         scaleOffset);
  }
  /// `value` where the mask holds, 0 elsewhere.
  Value masked(OpBuilder &b, ValueRange in, Value value) {
    if (!maskAt)
      return value;
    return arith::SelectOp::create(b, rows.loc, in[*maskAt], value,
                                   rows.constant(b, 0.0, rows.workType));
  }

  RowBuilder &rows;
  Inputs inputs;

private:
  Given given;
  Normalized normalized;
  FloatType xType;
  AffineIn affineIn;
  double scaleOffset;
  size_t dyAt;
  std::optional<size_t> scaleAt, maskAt;
};
} // namespace

/// One sum of backward_moments.
namespace {
struct GradientSum {
  /// Null if it is not asked for.
  TypedValue<RankedTensorType> result;
  bool isAffine;
  function_ref<Value(OpBuilder &, ValueRange)> term;
};
} // namespace

/// Sums over all axes but `outAxes`, each rounded once to its result's type.
static void buildGradientSums(GradientBody &body, ArrayRef<int64_t> outAxes,
                              ArrayRef<GradientSum> wanted,
                              DenseMap<Value, Value> &found) {
  if (wanted.empty())
    return;
  RowBuilder &rows = body.rows;
  SmallVector<Value> sums = rows.sums(
      body.inputs.list, outAxes,
      SmallVector<Type>(wanted.size(), rows.workType),
      [&](OpBuilder &b, Location, ValueRange in) {
        return llvm::map_to_vector(wanted, [&](const GradientSum &sum) {
          return body.masked(b, in, sum.term(b, in));
        });
      });
  SmallVector<Indexed> inputs;
  SmallVector<Type> types;
  for (auto [sum, value] : llvm::zip_equal(wanted, sums)) {
    inputs.push_back({value, llvm::to_vector(outAxes)});
    types.push_back(RowBuilder::elementTypeOf(sum.result));
  }
  SmallVector<Value> rounded = rows.elementwise(
      inputs, outAxes, types, [&](OpBuilder &b, Location, ValueRange in) {
        return llvm::map_to_vector(llvm::zip_equal(in, types), [&](auto pair) {
          auto [value, type] = pair;
          return rows.cast(b, value, mlir::cast<FloatType>(type));
        });
      });
  for (auto [sum, value] : llvm::zip_equal(wanted, rounded))
    found[sum.result] = value;
}

FailureOr<SmallVector<Value>>
BackwardMomentsOp::decomposeOperation(OpBuilder &builder) {
  RowBuilder rows(*this, builder);
  // The arithmetic of gradients is never narrower than f32.
  rows.computeType = rows.workType;
  GradientBody body(rows, *this, getAffineIn());
  auto sumG = [&](OpBuilder &b, ValueRange in) { return body.gradient(b, in); };
  auto sumGx = [&](OpBuilder &b, ValueRange in) {
    return rows.mul(b, body.gradient(b, in), body.normal(b, in));
  };
  auto dscale = [&](OpBuilder &b, ValueRange in) {
    return rows.mul(b, body.dy(b, in), body.seenByScale(b, body.normal(b, in)));
  };
  auto dshift = [&](OpBuilder &b, ValueRange in) { return body.dy(b, in); };
  SmallVector<GradientSum> rowSums, affineSums;
  for (const GradientSum &sum : {GradientSum{getSumG(), false, sumG},
                                 GradientSum{getSumGx(), false, sumGx},
                                 GradientSum{getDscale(), true, dscale},
                                 GradientSum{getDshift(), true, dshift}})
    if (sum.result)
      (sum.isAffine ? affineSums : rowSums).push_back(sum);

  // One sweep where both kinds sum over the same axes.
  SmallVector<int64_t> affineAxes = getAffineAxesOrDefault();
  if (affineAxes == rows.kept) {
    llvm::append_range(rowSums, affineSums);
    affineSums.clear();
  }
  DenseMap<Value, Value> found;
  buildGradientSums(body, rows.kept, rowSums, found);
  buildGradientSums(body, affineAxes, affineSums, found);
  return asResults(rows, llvm::map_to_vector(getResults(), [&](Value result) {
                     return found[result];
                   }));
}

FailureOr<SmallVector<Value>>
BackwardNormalizeOp::decomposeOperation(OpBuilder &builder) {
  RowBuilder rows(*this, builder);
  rows.computeType = rows.workType;

  // What g and x^ lose, over the kept axes.
  Inputs shares;
  shares.add(getSumGx(), rows.kept);
  auto sumAt = shares.add(getSumG(), rows.kept),
       countAt = shares.add(getCount(), rows.kept),
       varianceAt = shares.add(
           needsStatistic(getEpsilon()) ? getVariance() : Value(), rows.kept);
  Value meanGradient, coefficient;
  SmallVector<RowBuilder::Output> outputs{{&coefficient, rows.workType}};
  if (sumAt)
    outputs.push_back({&meanGradient, rows.workType});
  auto perCount = [&](OpBuilder &b, ValueRange in, size_t at,
                      int64_t correction) {
    Value value = rows.toWork(b, in[at]);
    return countAt ? dividePerCount(rows, b, value, in[*countAt], correction)
                   : value;
  };
  rows.elementwiseTo(
      outputs, shares.list, [&](OpBuilder &b, Location, ValueRange in) {
        Value value = perCount(b, in, 0, getCorrection());
        if (varianceAt)
          value =
              rows.mul(b, value,
                       buildStatisticWeight(rows, b, getEpsilon(),
                                            rows.toWork(b, in[*varianceAt])));
        SmallVector<Value> values{value};
        if (sumAt)
          values.push_back(perCount(b, in, *sumAt, /*correction=*/0));
        return values;
      });

  GradientBody body(rows, *this, AffineIn::Compute);
  auto coefficientAt = *body.inputs.add(coefficient, rows.kept);
  auto meanAt = body.inputs.add(meanGradient, rows.kept);
  FloatType type = RowBuilder::elementTypeOf(getDx());
  Value dx = rows.elementwise(
      body.inputs.list, rows.all, type,
      [&](OpBuilder &b, Location, ValueRange in) {
        Value value = body.gradient(b, in);
        if (meanAt)
          value = rows.sub(b, value, in[*meanAt]);
        value = rows.sub(b, value,
                         rows.mul(b, body.normal(b, in), in[coefficientAt]));
        value = rows.mul(b, value, body.factor(b, in));
        return SmallVector<Value>{
            rows.cast(b, body.masked(b, in, value), type)};
      });
  return asResults(rows, {dx});
}
