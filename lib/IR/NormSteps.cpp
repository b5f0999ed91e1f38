//===- NormSteps.cpp - The steps of the contract as linalg -----*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Statistics use one sweep about a sampled shift, guarded:
//
//   m = sum of some elements of a row / how many         a sample
//   S = sum(c - m),  Q = sum((c - m)^2),  d = S / n
//   where S*d > (Q - S*d) / 4, or that overflows:        m is not near the mean
//     m = m + d,  and S and Q about it
//   q = max(Q - S*d, 0) / (n - correction)
//   x^ = (c - m) * r - d * r                             one fma
//
// The guard keeps d within half a deviation, so that Q - S*d does not cancel
// and what S is off matters little, whatever was sampled. Both pairs of sums
// are in the IR; the second is the first where m did not change, and
// norm-vectorize then skips its sweep. It also finds the value of a constant
// row, whose m may be an ulp off, so that such a row is exactly 0.
//
// On a GPU the threads hold the row, and m is the mean, rounded: two sums that
// depend on each other, as with a sample, and no branch. Where a row deviates
// by less than m is off, c - m are few and small multiples of an ulp, and S and
// Q are exact; then Q - S*d must not round S*d or d:
//
//   q * (n - correction) = (Q - p) - (S*d - p) - d * (S - d*n),  p = S*d
//   rounded
//
// with products that an fma forms exactly. What m is off is known after the
// second sum, and is put right in what is subtracted:
//
//   m' = m + d,  d' = d - (m' - m)
//   x^ = (c - m') * r - d' * r
//
// so that a constant row is exactly 0 here too.
//
//===----------------------------------------------------------------------===//

#include "RowBuilder.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// Steps 1 and 2: sum, widen
//===----------------------------------------------------------------------===//

Source Source::build(RowBuilder &rows, const NormContract &contract,
                     bool wantsSum, FloatType sumType) {
  Source source;
  Indexed x = rows.full(contract.x);
  if (!contract.residual) {
    source.inputs = {x};
    return source;
  }
  Indexed residual = rows.full(contract.residual);
  bool isStored = contract.sumRounding == SumRounding::Stored;
  if (isStored || wantsSum) {
    FloatType addType =
        sumAdditionType(x.tensor, residual.tensor, {rows.workType, sumType});
    source.sum = rows.elementwise(
        {x, residual}, rows.all, sumType,
        [&](OpBuilder &b, Location, ValueRange in) {
          Value sum = rows.add(b, rows.cast(b, in[0], addType),
                               rows.cast(b, in[1], addType));
          return SmallVector<Value>{rows.cast(b, sum, sumType)};
        });
  }
  if (isStored)
    source.inputs = {rows.full(source.sum)};
  else
    source.inputs = {x, residual};
  return source;
}

Value Source::widened(RowBuilder &rows, OpBuilder &b, ValueRange in) const {
  Value value = in[0];
  if (inputs.size() == 2) {
    FloatType addType = rows.widest({value, in[1]});
    value =
        rows.add(b, rows.cast(b, value, addType), rows.cast(b, in[1], addType));
  }
  return rows.toCompute(b, value);
}

Value norm::buildGradientSource(RowBuilder &rows,
                                const NormContract &contract) {
  FloatType xType = RowBuilder::elementTypeOf(contract.x);
  if (!contract.residual && rows.computeType.getWidth() >= xType.getWidth())
    return contract.x;
  Source source =
      Source::build(rows, contract, /*wantsSum=*/false, /*sumType=*/xType);
  FloatType type = contract.residual ? rows.computeType : xType;
  return rows.elementwise(source.inputs, rows.all, type,
                          [&](OpBuilder &b, Location, ValueRange in) {
                            return SmallVector<Value>{rows.cast(
                                b, source.widened(rows, b, in), type)};
                          });
}

//===----------------------------------------------------------------------===//
// Steps 3 to 5: mean, statistic, factor
//===----------------------------------------------------------------------===//

/// 0 where the mask says that an element does not count; `mask` may be null.
static Value masked(RowBuilder &rows, OpBuilder &b, Value mask, Value term) {
  if (!mask)
    return term;
  return arith::SelectOp::create(b, rows.loc, mask, term,
                                 rows.constant(b, 0.0, rows.workType));
}

/// The mask's element in a body whose last input it is.
static Value maskIn(const Indexed &mask, ValueRange in) {
  return mask ? in.back() : Value();
}

/// Divides sums by the count, over the kept axes.
static Value buildMean(RowBuilder &rows, Value sum, const Count &count) {
  SmallVector<Indexed> inputs{rows.statistic(sum)};
  count.addTo(inputs);
  return rows.elementwise(inputs, rows.kept, rows.workType,
                          [&](OpBuilder &b, Location, ValueRange in) {
                            return SmallVector<Value>{rows.toCompute(
                                b, rows.div(b, in[0], count.in(in)))};
                          });
}

/// The sum of all that counts, over the kept axes.
static Value buildSum(RowBuilder &rows, const Source &source, Indexed mask) {
  SmallVector<Indexed> inputs = source.inputs;
  if (mask)
    inputs.push_back(mask);
  return rows.sums(inputs, 1, [&](OpBuilder &b, Location, ValueRange in) {
    return SmallVector<Value>{
        masked(rows, b, maskIn(mask, in), source.widened(rows, b, in))};
  })[0];
}

namespace {
/// The elements that a sample takes: per axis of x the first, how many, and how
/// far apart; `count` is their number.
struct Sample {
  SmallVector<OpFoldResult> offsets, sizes, strides;
  OpFoldResult count;
  /// Whether they are known to be all there are.
  bool isWhole;
};
} // namespace

/// All elements of x to begin with.
static Sample sampleAll(RowBuilder &rows, Value x) {
  OpBuilder &b = rows.builder;
  Sample sample;
  for (int64_t axis : rows.all) {
    sample.offsets.push_back(b.getIndexAttr(0));
    sample.sizes.push_back(tensor::getMixedSize(b, rows.loc, x, axis));
    sample.strides.push_back(b.getIndexAttr(1));
  }
  sample.isWhole = true;
  return sample;
}

/// The first elements along the innermost reduced axis: where the elements of a
/// row are alike, their mean is within a small part of their deviation.
static Sample sampleFirst(RowBuilder &rows, Value x) {
  constexpr int64_t kSample = 64;
  OpBuilder &b = rows.builder;
  Sample sample = sampleAll(rows, x);
  // Whether an axis of extent 1 is reduced or not decides no bits.
  ArrayRef<int64_t> shape = rows.op.getInput().getType().getShape();
  int64_t innermost = *llvm::max_element(rows.reduced, [&](int64_t a,
                                                           int64_t b) {
    return std::make_pair(shape[a] != 1, a) < std::make_pair(shape[b] != 1, b);
  });
  for (int64_t axis : rows.all) {
    if (llvm::is_contained(rows.kept, axis))
      continue;
    bool isInnermost = axis == innermost;
    AffineMap limit =
        AffineMap::get(1, 0,
                       {b.getAffineConstantExpr(isInnermost ? kSample : 1),
                        b.getAffineDimExpr(0)},
                       b.getContext());
    OpFoldResult extent = sample.sizes[axis];
    OpFoldResult size =
        affine::makeComposedFoldedAffineMin(b, rows.loc, limit, extent);
    sample.isWhole &= isEqualConstantIntOrValue(size, extent);
    if (isInnermost)
      sample.count = size;
    sample.sizes[axis] = size;
  }
  return sample;
}

/// Elements from all over the reduced axes, of which the inner ones are kept:
/// many of these share what they cost, and one of them off its mean has all
/// sums taken again. About kSample, at least four along each axis that has
/// them; axes that have few leave more to the first and the last. Channels of a
/// group are a part of these, but for a few places of each.
static Sample sampleSpread(RowBuilder &rows, Value x) {
  constexpr int64_t kSample = 128, kFewest = 4, kFewestPlaces = 16;
  OpBuilder &b = rows.builder;
  Sample sample = sampleAll(rows, x);
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, rows.loc, value);
  };
  auto divide = [&](Value value, Value divisor) {
    return b.createOrFold<arith::DivUIOp>(
        rows.loc, value,
        b.createOrFold<arith::MaxUIOp>(rows.loc, divisor, index(1)));
  };
  SmallVector<Value> extents, counts;
  for (int64_t axis : rows.reduced) {
    extents.push_back(
        getValueOrCreateConstantIndexOp(b, rows.loc, sample.sizes[axis]));
    counts.push_back(b.createOrFold<arith::MinUIOp>(rows.loc, extents.back(),
                                                    index(kFewest)));
  }
  Value wanted = index(kSample), within;
  if (rows.keepsChannels) {
    within = getValueOrCreateConstantIndexOp(
        b, rows.loc, rows.extentOf(RowBuilder::kWithinAxis));
    wanted = b.createOrFold<arith::MaxUIOp>(rows.loc, divide(wanted, within),
                                            index(kFewestPlaces));
  }
  auto extend = [&](size_t number) {
    Value left = wanted;
    for (auto [other, count] : llvm::enumerate(counts))
      if (other != number)
        left = divide(left, count);
    counts[number] =
        b.createOrFold<arith::MinUIOp>(rows.loc, extents[number], left);
  };
  extend(0);
  extend(counts.size() - 1);
  Value count = within ? within : index(1);
  for (auto [axis, extent, some] :
       llvm::zip_equal(rows.reduced, extents, counts)) {
    sample.sizes[axis] = getAsOpFoldResult(some);
    sample.strides[axis] = getAsOpFoldResult(divide(extent, some));
    count = b.createOrFold<arith::MulIOp>(rows.loc, count, some);
  }
  sample.count = getAsOpFoldResult(count);
  // Also of all there are a sample is made, as where that is not known.
  sample.isWhole = false;
  return sample;
}

/// Whether the reduced axes are neighbours, and the inner ones are kept.
static bool keepsInnerAxes(RowBuilder &rows) {
  return (!rows.op.getGroupedAxis() || rows.keepsChannels) &&
         rows.reduced.back() + 1 < rows.op.getRank() &&
         rows.reduced.back() - rows.reduced.front() + 1 ==
             int64_t(rows.reduced.size());
}

/// The mean of some elements of each row.
static Value buildSampleMean(RowBuilder &rows, const Source &source) {
  Value x = source.inputs.front().tensor;
  Sample sample =
      keepsInnerAxes(rows) ? sampleSpread(rows, x) : sampleFirst(rows, x);
  Source some = source;
  if (!sample.isWhole)
    for (Indexed &input : some.inputs)
      input.tensor = tensor::ExtractSliceOp::create(
          rows.builder, rows.loc, input.tensor, sample.offsets, sample.sizes,
          sample.strides);
  return buildMean(rows, buildSum(rows, some, /*mask=*/{}),
                   {rows.divisorFrom(sample.count), {}});
}

/// The sums of (c - m)^2 and of c - m; the latter only where it is not taken
/// for 0.
static void buildSumsAbout(RowBuilder &rows, const Source &source, Indexed mask,
                           CentredSums &result) {
  SmallVector<Indexed> inputs = source.inputs;
  inputs.push_back(rows.statistic(result.mean));
  if (mask)
    inputs.push_back(mask);
  SmallVector<Value> sums =
      rows.sums(inputs, rows.isExact() ? 2 : 1,
                [&](OpBuilder &b, Location, ValueRange in) {
                  Value d = masked(rows, b, maskIn(mask, in),
                                   rows.sub(b, source.widened(rows, b, in),
                                            in[source.inputs.size()]));
                  SmallVector<Value> terms{rows.mul(b, d, d)};
                  if (rows.isExact())
                    terms.push_back(d);
                  return terms;
                });
  result.squares = sums[0];
  if (rows.isExact())
    result.deviations = sums[1];
}

/// m + d where m lies more than half a deviation off the mean, else m. Squares
/// about m that overflow need not do so about the mean, and tell nothing of it.
static Value buildGuardedMean(RowBuilder &rows, const CentredSums &sums,
                              const Count &count) {
  SmallVector<Indexed> inputs{rows.statistic(sums.mean),
                              rows.statistic(sums.squares),
                              rows.statistic(sums.deviations)};
  count.addTo(inputs);
  return rows.elementwise(
      inputs, rows.kept, rows.workType,
      [&](OpBuilder &b, Location loc, ValueRange in) {
        auto [d, squares] =
            CentredSums::correct(rows, b, in[1], in[2], count.in(in));
        Value limit =
            rows.mul(b, rows.constant(b, 0.25, rows.workType), squares);
        // An infinite Q less an infinite S*d is a NaN.
        Value isFar = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UGT,
                                            rows.mul(b, in[2], d), limit);
        Value overflows = arith::CmpFOp::create(
            b, loc, arith::CmpFPredicate::OEQ, limit,
            rows.constant(b, std::numeric_limits<double>::infinity(),
                          rows.workType));
        return SmallVector<Value>{arith::SelectOp::create(
            b, loc, arith::OrIOp::create(b, loc, isFar, overflows),
            rows.add(b, in[0], d), in[0])};
      });
}

CentredSums norm::buildCentredSums(RowBuilder &rows, const Source &source,
                                   Indexed mask, const Count &count) {
  CentredSums result;
  // Where every step is rounded, and on a GPU, m is the mean itself. The first
  // elements may all be masked, and there are none in an empty tensor.
  bool isSampled =
      rows.isExact() && !rows.isForGpu && !mask && !rows.reduced.empty() &&
      !llvm::is_contained(rows.op.getInput().getType().getShape(), 0);
  result.mean = isSampled
                    ? buildSampleMean(rows, source)
                    : buildMean(rows, buildSum(rows, source, mask), count);
  buildSumsAbout(rows, source, mask, result);
  if (rows.isExact() && !rows.isForGpu) {
    result.mean = buildGuardedMean(rows, result, count);
    buildSumsAbout(rows, source, mask, result);
  }
  return result;
}

std::pair<Value, Value> CentredSums::correct(RowBuilder &rows, OpBuilder &b,
                                             Value squares, Value deviations,
                                             Value count) {
  Value d = rows.div(b, deviations, count);
  Value product = rows.mul(b, deviations, d);
  Value corrected = rows.sub(b, squares, product);
  if (rows.isForGpu) {
    auto fma = [&](Value x, Value y, Value z) -> Value {
      return math::FmaOp::create(b, rows.loc, x, y, z);
    };
    auto minus = [&](Value x) -> Value {
      return arith::NegFOp::create(b, rows.loc, x);
    };
    Value lost = fma(deviations, d, minus(product));
    Value rest = fma(minus(d), count, deviations);
    corrected = fma(minus(d), rest, rows.sub(b, corrected, lost));
  }
  return {d, arith::MaximumFOp::create(b, rows.loc, corrected,
                                       rows.constant(b, 0.0, rows.workType))};
}

Value norm::buildSquareSum(RowBuilder &rows, const Source &source,
                           Indexed mask) {
  SmallVector<Indexed> inputs = source.inputs;
  if (mask)
    inputs.push_back(mask);
  return rows.sums(inputs, 1, [&](OpBuilder &b, Location, ValueRange in) {
    Value c = source.widened(rows, b, in);
    return SmallVector<Value>{
        masked(rows, b, maskIn(mask, in), rows.mul(b, c, c))};
  })[0];
}

Value norm::buildFactor(RowBuilder &rows, OpBuilder &b, EpsilonAttr epsilon,
                        ZeroPolicy zeroPolicy, Value statistic) {
  Location loc = rows.loc;
  // Added in compute type: a narrow one holds a rounded epsilon.
  Value eps = epsilon.isNone()
                  ? Value()
                  : rows.toWork(b, rows.constant(b, epsilon.getDouble(),
                                                 rows.computeType));
  Value denominator;
  switch (epsilon.getPlacement()) {
  case EpsilonPlacement::InsideSqrt:
    denominator = math::SqrtOp::create(b, loc, rows.add(b, statistic, eps));
    break;
  case EpsilonPlacement::OutsideSqrt:
    denominator = rows.add(b, math::SqrtOp::create(b, loc, statistic), eps);
    break;
  case EpsilonPlacement::MaxInside:
    denominator = math::SqrtOp::create(
        b, loc, arith::MaximumFOp::create(b, loc, statistic, eps));
    break;
  case EpsilonPlacement::MaxOutside:
    denominator = arith::MaximumFOp::create(
        b, loc, math::SqrtOp::create(b, loc, statistic), eps);
    break;
  case EpsilonPlacement::None:
    denominator = math::SqrtOp::create(b, loc, statistic);
    break;
  }
  Value result = rows.div(b, rows.constant(b, 1.0, rows.workType), denominator);
  if (zeroPolicy == ZeroPolicy::Zero) {
    Value zero = rows.constant(b, 0.0, rows.workType);
    Value isZero = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                         denominator, zero);
    result = arith::SelectOp::create(b, loc, isZero, zero, result);
  }
  return rows.toCompute(b, result);
}

SmallVector<Indexed> norm::splitMean(RowBuilder &rows, Value mean) {
  FloatType type = RowBuilder::elementTypeOf(mean);
  if (type.getWidth() <= rows.workType.getWidth())
    return {rows.statistic(mean)};
  SmallVector<Value> pair =
      rows.elementwise({rows.statistic(mean)}, rows.kept,
                       ArrayRef<Type>{rows.workType, rows.workType},
                       [&](OpBuilder &b, Location, ValueRange in) {
                         Value m = rows.toWork(b, in[0]);
                         Value rest = rows.sub(b, in[0], rows.cast(b, m, type));
                         return SmallVector<Value>{m, rows.toWork(b, rest)};
                       });
  return {rows.statistic(pair[0]), rows.statistic(pair[1])};
}

Statistics Statistics::build(RowBuilder &rows, const NormContract &contract,
                             Statistic statistic, const Source &source,
                             Wanted wanted) {
  Statistics result;
  bool isCentred = statistic == Statistic::Variance;
  Value n = statistic == Statistic::SumSquare ? Value() : rows.divisor(0);
  Value divisor = isCentred ? rows.divisor(contract.correction) : n;
  Count count{n, {}};

  CentredSums sums;
  if (isCentred)
    sums = buildCentredSums(rows, source, /*mask=*/{}, count);
  else
    sums.squares = buildSquareSum(rows, source, /*mask=*/{});

  SmallVector<Indexed> inputs{rows.statistic(sums.squares)};
  if (sums.deviations)
    inputs.push_back(rows.statistic(sums.deviations));
  if (sums.mean)
    inputs.push_back(rows.statistic(sums.mean));
  Value rstd, offset, moved; // or d
  bool isMoved = rows.isForGpu && sums.deviations;
  FloatType type = rows.workType;
  SmallVector<RowBuilder::Output> outputs{{&rstd, type}};
  if (sums.deviations)
    outputs.push_back({&offset, type});
  if (isMoved)
    outputs.push_back({&moved, type});
  if (wanted.mean)
    outputs.push_back({&result.mean, type});
  if (wanted.squares)
    outputs.push_back({&result.squares, type});
  if (wanted.variance)
    outputs.push_back({&result.variance, type});
  rows.elementwiseTo(
      outputs, inputs, [&](OpBuilder &b, Location, ValueRange in) {
        Value squares = in[0], d, m = sums.mean ? in.back() : Value();
        if (sums.deviations)
          std::tie(d, squares) =
              CentredSums::correct(rows, b, squares, in[1], n);
        Value q = rows.toCompute(b, divisor ? rows.div(b, squares, divisor)
                                            : squares);
        SmallVector<Value> values{
            buildFactor(rows, b, contract.epsilon, contract.zeroPolicy, q)};
        Value mean = m;
        if (isMoved) {
          mean = rows.add(b, m, d);
          d = rows.sub(b, d, rows.sub(b, mean, m));
        }
        if (d)
          values.push_back(wanted.remainder
                               ? d
                               : arith::NegFOp::create(
                                     b, rows.loc, rows.mul(b, d, values[0])));
        if (isMoved)
          values.push_back(mean);
        if (wanted.mean)
          values.push_back(d && !isMoved ? rows.add(b, m, d) : mean);
        if (wanted.squares)
          values.push_back(squares);
        if (wanted.variance)
          values.push_back(q);
        return values;
      });
  result.row.rstd = rows.statistic(rstd);
  if (sums.mean)
    result.row.means.push_back(rows.statistic(isMoved ? moved : sums.mean));
  if (offset && wanted.remainder)
    result.row.means.push_back(rows.statistic(offset));
  else if (offset)
    result.row.offset = rows.statistic(offset);
  return result;
}

Statistics Statistics::given(RowBuilder &rows, const NormContract &contract,
                             Value mean, Value variance, Value rstd) {
  Statistics result;
  result.variance = variance;
  if (mean)
    result.row.means = splitMean(rows, mean);
  if (!rstd)
    rstd =
        rows.elementwise({rows.statistic(variance)}, rows.kept, rows.workType,
                         [&](OpBuilder &b, Location, ValueRange in) {
                           return SmallVector<Value>{buildFactor(
                               rows, b, contract.epsilon, contract.zeroPolicy,
                               rows.toCompute(b, in[0]))};
                         });
  result.row.rstd = rows.statistic(rstd);
  return result;
}

//===----------------------------------------------------------------------===//
// Step 6: normalize
//===----------------------------------------------------------------------===//

void Normalized::addTo(SmallVectorImpl<Indexed> &inputs) {
  first = inputs.size();
  llvm::append_range(inputs, source.inputs);
  llvm::append_range(inputs, row.means);
  inputs.push_back(row.rstd);
  if (row.offset)
    inputs.push_back(row.offset);
}

Value Normalized::build(OpBuilder &b, ValueRange in) const {
  Value c = source.widened(rows, b, in.drop_front(first));
  for (size_t i = 0; i < row.means.size(); ++i)
    c = rows.sub(b, c, rows.toWork(b, in[first + source.inputs.size() + i]));
  if (row.offset)
    return math::FmaOp::create(b, rows.loc, c, factor(b, in),
                               in[factorAt() + 1]);
  Value normalized = rows.mul(b, c, factor(b, in));
  return isRounded ? rows.toCompute(b, normalized) : normalized;
}

//===----------------------------------------------------------------------===//
// Step 7: affine
//===----------------------------------------------------------------------===//

Value AffineStep::gain(RowBuilder &rows, OpBuilder &b, Value scale) const {
  scale = rows.toCompute(b, scale);
  if (scaleOffset == 0.0)
    return scale;
  return rows.toCompute(
      b, rows.add(b, scale, rows.constant(b, scaleOffset, rows.workType)));
}

static Value affineInCompute(RowBuilder &rows, OpBuilder &b, Value normalized,
                             Value gain, Value shift) {
  if (shift)
    shift = rows.toCompute(b, shift);
  if (gain && shift && rows.isExact())
    return math::FmaOp::create(b, rows.loc, normalized, gain, shift);
  if (gain)
    normalized = rows.toCompute(b, rows.mul(b, normalized, gain));
  if (shift)
    normalized = rows.toCompute(b, rows.add(b, normalized, shift));
  return normalized;
}

static Value affineInResult(RowBuilder &rows, OpBuilder &b,
                            const AffineStep &step, Value normalized,
                            Value scale, Value shift) {
  // Products and sums of two 16-bit numbers, formed in f32 and rounded, are
  // what 16-bit arithmetic gives.
  FloatType resultType = step.resultType;
  FloatType wide =
      resultType.getWidth() < 32 ? FloatType(b.getF32Type()) : resultType;
  auto inResultType = [&](Value value) {
    return rows.cast(b, rows.cast(b, value, step.resultType), wide);
  };
  normalized = rows.cast(b, rows.cast(b, normalized, step.xType), wide);
  if (scale) {
    scale = step.gain(rows, b, scale);
    normalized = inResultType(rows.mul(b, normalized, inResultType(scale)));
  }
  if (shift)
    normalized = inResultType(
        rows.add(b, normalized, inResultType(rows.toCompute(b, shift))));
  return normalized;
}

Value AffineStep::build(RowBuilder &rows, OpBuilder &b, Value normalized,
                        Value scale, Value shift) const {
  if (affineIn == AffineIn::Result)
    return affineInResult(rows, b, *this, normalized, scale, shift);
  return affineInCompute(rows, b, normalized,
                         scale ? gain(rows, b, scale) : Value(), shift);
}
