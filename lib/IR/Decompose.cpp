//===- Decompose.cpp - A norm op as linalg on tensors -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The decomposition follows the contract's steps one by one. It is written on
// `linalg.generic` alone, with projected permutations as maps, so that a tile
// of it vectorizes and fuses as it stands.
//
// Statistics use the corrected two-pass algorithm:
//
//   m = sum(c) / n,  m = m + sum(c - m) / n       the second where c has as
//                                                 many bits as m
//   S = sum(c - m),  Q = sum((c - m)^2)           one sweep
//   d = S / n,       q = max(Q - S*d, 0) / (n - correction)
//   x^ = ((c - m) - d) * r
//
// d is what rounding took from the mean; without it a row whose mean is 1e6
// times its deviation loses every digit. Subtracting d before the multiply,
// not d * r after it, keeps constant rows exactly 0. Refining m bounds d by
// about the deviation, so that Q - S*d cannot cancel, however close to constant
// the row is.
//
//===----------------------------------------------------------------------===//

#include "Norm/IR/NormOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::norm;

namespace {

/// A tensor together with the axes of x that its dimensions index.
struct Indexed {
  Value tensor;
  SmallVector<int64_t> axes;
};

class Decomposer {
public:
  Decomposer(NormOpInterface op, OpBuilder &builder)
      : op(op), builder(builder), loc(op.getLoc()),
        reduced(op.getReducedAxes()), kept(op.getKeptAxes()),
        computeType(op.getComputeTypeOrDefault()),
        // Sums and arithmetic never run in fewer bits than f32; a narrower
        // compute type rounds what each step yields.
        workType(computeType.getWidth() < 32 ? FloatType(builder.getF32Type())
                                             : computeType) {
    all = llvm::to_vector(llvm::seq<int64_t>(0, op.getRank()));
  }

  SmallVector<Value> run();

private:
  using BodyFn =
      function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange)>;

  /// An elementwise op over `outAxes` of x. The body sees the inputs.
  Value elementwise(ArrayRef<Indexed> inputs, ArrayRef<int64_t> outAxes,
                    Type elementType, BodyFn body);
  SmallVector<Value> elementwise(ArrayRef<Indexed> inputs,
                                 ArrayRef<int64_t> outAxes,
                                 ArrayRef<Type> elementTypes, BodyFn body);
  /// A result of an op over the kept axes: where it goes, and its type.
  struct Output {
    Value *destination;
    Type elementType;
  };
  void elementwiseTo(ArrayRef<Output> outputs, ArrayRef<Indexed> inputs,
                     BodyFn body);
  /// The statistics that the op was asked for, and their values in that order.
  void addStatisticResults(SmallVectorImpl<Output> &outputs);
  void addStatistics(OpBuilder &b, SmallVectorImpl<Value> &values, Value m,
                     Value q, Value r);
  /// Sums over the reduced axes, in work type. The body maps inputs to terms.
  SmallVector<Value> sums(ArrayRef<Indexed> inputs, unsigned count,
                          BodyFn terms);

  void computeSource();
  void computeMeanSquare();
  void computeMean(Value count);
  void computeVariance();
  Value normalize();

  Indexed keptValue(Value tensor) { return {tensor, kept}; }
  /// n - subtract as a float of the work type, at least 1 where n is 0.
  Value divisor(int64_t subtract);
  Value constant(OpBuilder &b, double value, FloatType type);
  Value cast(OpBuilder &b, Value value, FloatType type);
  /// Rounds once to the compute type, and returns it in work type.
  Value toCompute(OpBuilder &b, Value value) {
    return cast(b, cast(b, value, computeType), workType);
  }
  /// Whether steps are not rounded: the compute type is the work type. A
  /// narrow one rounds the mean, and later steps see that value.
  bool isExact() { return computeType == workType; }
  /// What is normalized, followed by its mean.
  SmallVector<Indexed> withMean() {
    SmallVector<Indexed> inputs = source;
    inputs.push_back(keptValue(mean));
    return inputs;
  }
  /// c - m, for the inputs of withMean().
  Value deviation(OpBuilder &b, ValueRange inputs) {
    return arith::SubFOp::create(b, loc, widened(b, inputs), inputs.back());
  }
  /// Whether what is normalized has as many bits as the work type.
  bool sourceFillsWorkType() {
    return llvm::any_of(source, [&](const Indexed &indexed) {
      return mlir::cast<FloatType>(getElementTypeOrSelf(indexed.tensor))
                 .getWidth() >= workType.getWidth();
    });
  }
  /// The widest of the work type and the element types of `values`.
  FloatType widest(ArrayRef<Value> values) {
    return widestElementType(workType, values);
  }
  /// The value that is normalized, widened: step 2.
  Value widened(OpBuilder &b, ValueRange inputs);
  Value factor(OpBuilder &b, Value statistic);
  Value affineInCompute(OpBuilder &b, Value normalized, Value scale,
                        Value shift);
  Value affineInResult(OpBuilder &b, Value normalized, Value scale,
                       Value shift);

  NormOpInterface op;
  OpBuilder &builder;
  Location loc;
  SmallVector<int64_t> all, reduced, kept;
  FloatType computeType, workType;

  /// Tensors that are normalized: x, or the stored sum, or x and residual.
  SmallVector<Indexed> source;
  Value sumResult;
  /// Over the kept axes, in work type: m, d and r; m and d are null where
  /// nothing is subtracted.
  Value mean, remainder, rstd;
  /// Results in compute type, null where not asked for.
  Value meanResult, varianceResult, rstdResult;
};

} // namespace

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

Value Decomposer::constant(OpBuilder &b, double value, FloatType type) {
  APFloat converted(value);
  bool losesInfo;
  converted.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                    &losesInfo);
  return arith::ConstantOp::create(b, loc, FloatAttr::get(type, converted));
}

Value Decomposer::cast(OpBuilder &b, Value value, FloatType type) {
  auto from = mlir::cast<FloatType>(value.getType());
  if (from == type)
    return value;
  if (from.getWidth() < type.getWidth())
    return arith::ExtFOp::create(b, loc, type, value);
  if (from.getWidth() > type.getWidth())
    return arith::TruncFOp::create(b, loc, type, value);
  // bf16 and f16: through f32, which holds both.
  return cast(b, cast(b, value, b.getF32Type()), type);
}

SmallVector<Value> Decomposer::elementwise(ArrayRef<Indexed> inputs,
                                           ArrayRef<int64_t> outAxes,
                                           ArrayRef<Type> elementTypes,
                                           BodyFn body) {
  // One loop per output axis: dimension d of the op is axis outAxes[d].
  MLIRContext *context = builder.getContext();
  auto dimOf = [&](int64_t axis) {
    return getAffineDimExpr(llvm::find(outAxes, axis) - outAxes.begin(),
                            context);
  };
  SmallVector<AffineMap> maps;
  SmallVector<Value> ins;
  for (const Indexed &input : inputs) {
    maps.push_back(AffineMap::get(
        outAxes.size(), 0, llvm::map_to_vector(input.axes, dimOf), context));
    ins.push_back(input.tensor);
  }
  SmallVector<OpFoldResult> shape;
  for (int64_t axis : outAxes)
    shape.push_back(tensor::getMixedSize(builder, loc, op.getInput(), axis));
  SmallVector<Value> outs;
  SmallVector<Type> types;
  for (Type elementType : elementTypes) {
    outs.push_back(tensor::EmptyOp::create(builder, loc, shape, elementType));
    types.push_back(outs.back().getType());
    maps.push_back(builder.getMultiDimIdentityMap(outAxes.size()));
  }
  auto generic = linalg::GenericOp::create(
      builder, loc, types, ins, outs, maps,
      SmallVector<utils::IteratorType>(outAxes.size(),
                                       utils::IteratorType::parallel),
      [&](OpBuilder &b, Location bodyLoc, ValueRange args) {
        linalg::YieldOp::create(b, bodyLoc,
                                body(b, bodyLoc, args.take_front(ins.size())));
      });
  return llvm::to_vector_of<Value>(generic.getResults());
}

Value Decomposer::elementwise(ArrayRef<Indexed> inputs,
                              ArrayRef<int64_t> outAxes, Type elementType,
                              BodyFn body) {
  return elementwise(inputs, outAxes, ArrayRef<Type>{elementType}, body)[0];
}

void Decomposer::elementwiseTo(ArrayRef<Output> outputs,
                               ArrayRef<Indexed> inputs, BodyFn body) {
  SmallVector<Type> types = llvm::map_to_vector(
      outputs, [](const Output &output) { return output.elementType; });
  for (auto [output, value] :
       llvm::zip_equal(outputs, elementwise(inputs, kept, types, body)))
    *output.destination = value;
}

SmallVector<Value> Decomposer::sums(ArrayRef<Indexed> inputs, unsigned count,
                                    BodyFn terms) {
  MLIRContext *context = builder.getContext();
  auto mapOf = [&](ArrayRef<int64_t> axes) {
    return AffineMap::get(
        op.getRank(), 0,
        llvm::map_to_vector(
            axes,
            [&](int64_t axis) { return getAffineDimExpr(axis, context); }),
        context);
  };
  SmallVector<OpFoldResult> shape;
  for (int64_t axis : kept)
    shape.push_back(tensor::getMixedSize(builder, loc, op.getInput(), axis));
  Value empty = tensor::EmptyOp::create(builder, loc, shape, workType);
  Value zero = constant(builder, 0.0, workType);
  Value init = linalg::FillOp::create(builder, loc, zero, empty).getResult(0);

  SmallVector<AffineMap> maps;
  SmallVector<Value> ins;
  for (const Indexed &input : inputs) {
    maps.push_back(mapOf(input.axes));
    ins.push_back(input.tensor);
  }
  maps.append(count, mapOf(kept));
  auto generic = linalg::GenericOp::create(
      builder, loc, SmallVector<Type>(count, init.getType()), ins,
      SmallVector<Value>(count, init), maps, normLoopIteratorTypes(op),
      [&](OpBuilder &b, Location bodyLoc, ValueRange args) {
        SmallVector<Value> values =
            terms(b, bodyLoc, args.take_front(ins.size()));
        for (auto [value, sum] :
             llvm::zip_equal(values, args.drop_front(ins.size())))
          value = arith::AddFOp::create(b, bodyLoc, sum, value);
        linalg::YieldOp::create(b, bodyLoc, values);
      });
  return llvm::to_vector_of<Value>(generic.getResults());
}

Value Decomposer::divisor(int64_t subtract) {
  if (std::optional<int64_t> count = op.getStaticReducedCount())
    return constant(builder, *count == 0 ? 1.0 : double(*count - subtract),
                    workType);
  Value count;
  for (int64_t axis : reduced) {
    Value extent = tensor::DimOp::create(builder, loc, op.getInput(), axis);
    count = count ? arith::MulIOp::create(builder, loc, count, extent) : extent;
  }
  Type i64 = builder.getI64Type();
  count = arith::IndexCastOp::create(builder, loc, i64, count);
  auto integer = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getI64IntegerAttr(value));
  };
  Value isEmpty = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        count, integer(0));
  if (subtract != 0)
    count = arith::SubIOp::create(builder, loc, count, integer(subtract));
  count = arith::SelectOp::create(builder, loc, isEmpty, integer(1), count);
  return arith::SIToFPOp::create(builder, loc, workType, count);
}

//===----------------------------------------------------------------------===//
// Steps 1 and 2: sum, widen
//===----------------------------------------------------------------------===//

void Decomposer::computeSource() {
  Indexed x{op.getInput(), all};
  if (!op.getResidualOrNull()) {
    source = {x};
    return;
  }
  Indexed residual{op.getResidualOrNull(), all};
  FloatType sumType = op.getSumElementType();
  bool isStored = op.getSumRounding() == SumRounding::Stored;
  if (isStored || op.getSumOrNull()) {
    FloatType addType = widest({x.tensor, residual.tensor});
    sumResult = elementwise({x, residual}, all, sumType,
                            [&](OpBuilder &b, Location bodyLoc, ValueRange in) {
                              Value sum = arith::AddFOp::create(
                                  b, bodyLoc, cast(b, in[0], addType),
                                  cast(b, in[1], addType));
                              return SmallVector<Value>{cast(b, sum, sumType)};
                            });
  }
  if (isStored)
    source = {{sumResult, all}};
  else
    source = {x, residual};
}

Value Decomposer::widened(OpBuilder &b, ValueRange inputs) {
  Value value = inputs[0];
  if (source.size() == 2) {
    FloatType addType = widest({value, inputs[1]});
    value = arith::AddFOp::create(b, loc, cast(b, value, addType),
                                  cast(b, inputs[1], addType));
  }
  return toCompute(b, value);
}

//===----------------------------------------------------------------------===//
// Steps 3 to 5: mean, statistic, factor
//===----------------------------------------------------------------------===//

Value Decomposer::factor(OpBuilder &b, Value statistic) {
  EpsilonAttr epsilon = op.getEpsilon();
  // Added in compute type: a narrow one holds a rounded epsilon.
  Value eps =
      epsilon.isNone()
          ? Value()
          : cast(b, constant(b, epsilon.getDouble(), computeType), workType);
  Value denominator;
  switch (epsilon.getPlacement()) {
  case EpsilonPlacement::InsideSqrt:
    denominator = math::SqrtOp::create(
        b, loc, arith::AddFOp::create(b, loc, statistic, eps));
    break;
  case EpsilonPlacement::OutsideSqrt:
    denominator = arith::AddFOp::create(
        b, loc, math::SqrtOp::create(b, loc, statistic), eps);
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
  Value result =
      arith::DivFOp::create(b, loc, constant(b, 1.0, workType), denominator);
  if (op.getZeroPolicy() == ZeroPolicy::Zero) {
    Value zero = constant(b, 0.0, workType);
    Value isZero = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                         denominator, zero);
    result = arith::SelectOp::create(b, loc, isZero, zero, result);
  }
  return toCompute(b, result);
}

void Decomposer::computeMeanSquare() {
  Value sum = sums(source, 1, [&](OpBuilder &b, Location, ValueRange in) {
    Value c = widened(b, in);
    return SmallVector<Value>{arith::MulFOp::create(b, loc, c, c)};
  })[0];
  Value count =
      op.getStatistic() == Statistic::MeanSquare ? divisor(0) : Value();
  SmallVector<Output> outputs{{&rstd, workType}};
  addStatisticResults(outputs);
  elementwiseTo(outputs, {keptValue(sum)},
                [&](OpBuilder &b, Location, ValueRange in) {
                  Value statistic = in[0];
                  if (count)
                    statistic = arith::DivFOp::create(b, loc, statistic, count);
                  statistic = toCompute(b, statistic);
                  Value r = factor(b, statistic);
                  SmallVector<Value> values{r};
                  addStatistics(b, values, /*m=*/Value(), statistic, r);
                  return values;
                });
}

void Decomposer::computeMean(Value count) {
  Value sum = sums(source, 1, [&](OpBuilder &b, Location, ValueRange in) {
    return SmallVector<Value>{widened(b, in)};
  })[0];
  mean = elementwise({keptValue(sum)}, kept, workType,
                     [&](OpBuilder &b, Location, ValueRange in) {
                       return SmallVector<Value>{toCompute(
                           b, arith::DivFOp::create(b, loc, in[0], count))};
                     });
  if (!isExact() || !sourceFillsWorkType())
    return;
  Value rest = sums(withMean(), 1, [&](OpBuilder &b, Location, ValueRange in) {
    return SmallVector<Value>{deviation(b, in)};
  })[0];
  mean = elementwise(
      {keptValue(mean), keptValue(rest)}, kept, workType,
      [&](OpBuilder &b, Location, ValueRange in) {
        return SmallVector<Value>{arith::AddFOp::create(
            b, loc, in[0], arith::DivFOp::create(b, loc, in[1], count))};
      });
}

void Decomposer::computeVariance() {
  Value count = divisor(0), varianceDivisor = divisor(op.getCorrection());
  computeMean(count);
  SmallVector<Value> deviations =
      sums(withMean(), isExact() ? 2 : 1,
           [&](OpBuilder &b, Location, ValueRange in) {
             Value d = deviation(b, in);
             SmallVector<Value> terms{arith::MulFOp::create(b, loc, d, d)};
             if (isExact())
               terms.push_back(d);
             return terms;
           });

  SmallVector<Indexed> inputs{keptValue(mean), keptValue(deviations[0])};
  SmallVector<Output> outputs{{&rstd, workType}};
  if (isExact()) {
    inputs.push_back(keptValue(deviations[1]));
    outputs.push_back({&remainder, workType});
  }
  addStatisticResults(outputs);
  elementwiseTo(outputs, inputs, [&](OpBuilder &b, Location, ValueRange in) {
    Value m = in[0], squares = in[1], d;
    if (isExact()) {
      d = arith::DivFOp::create(b, loc, in[2], count);
      if (op.getMeanOrNull())
        m = arith::AddFOp::create(b, loc, m, d);
      squares = arith::SubFOp::create(b, loc, squares,
                                      arith::MulFOp::create(b, loc, in[2], d));
      squares = arith::MaximumFOp::create(b, loc, squares,
                                          constant(b, 0.0, workType));
    }
    Value statistic =
        toCompute(b, arith::DivFOp::create(b, loc, squares, varianceDivisor));
    Value r = factor(b, statistic);
    SmallVector<Value> values{r};
    if (d)
      values.push_back(d);
    addStatistics(b, values, m, statistic, r);
    return values;
  });
}

void Decomposer::addStatisticResults(SmallVectorImpl<Output> &outputs) {
  if (op.getMeanOrNull())
    outputs.push_back({&meanResult, computeType});
  if (op.getVarianceOrNull())
    outputs.push_back({&varianceResult, computeType});
  if (op.getRstdOrNull())
    outputs.push_back({&rstdResult, computeType});
}

void Decomposer::addStatistics(OpBuilder &b, SmallVectorImpl<Value> &values,
                               Value m, Value q, Value r) {
  if (op.getMeanOrNull())
    values.push_back(cast(b, m, computeType));
  if (op.getVarianceOrNull())
    values.push_back(cast(b, q, computeType));
  if (op.getRstdOrNull())
    values.push_back(cast(b, r, computeType));
}

//===----------------------------------------------------------------------===//
// Steps 6 and 7: normalize, affine
//===----------------------------------------------------------------------===//

Value Decomposer::affineInCompute(OpBuilder &b, Value normalized, Value scale,
                                  Value shift) {
  if (scale) {
    scale = toCompute(b, scale);
    if (op.getScaleOffsetValue() != 0.0)
      scale =
          toCompute(b, arith::AddFOp::create(
                           b, loc, scale,
                           constant(b, op.getScaleOffsetValue(), workType)));
  }
  if (shift)
    shift = toCompute(b, shift);
  if (scale && shift && isExact())
    return math::FmaOp::create(b, loc, normalized, scale, shift);
  if (scale)
    normalized = toCompute(b, arith::MulFOp::create(b, loc, normalized, scale));
  if (shift)
    normalized = toCompute(b, arith::AddFOp::create(b, loc, normalized, shift));
  return normalized;
}

Value Decomposer::affineInResult(OpBuilder &b, Value normalized, Value scale,
                                 Value shift) {
  auto xType = mlir::cast<FloatType>(op.getInput().getType().getElementType());
  auto resultType =
      mlir::cast<FloatType>(op.getNormalized().getType().getElementType());
  // Products and sums of two 16-bit numbers, formed in f32 and rounded, are
  // what 16-bit arithmetic gives.
  FloatType wide =
      resultType.getWidth() < 32 ? FloatType(b.getF32Type()) : resultType;
  auto inResultType = [&](Value value) {
    return cast(b, cast(b, value, resultType), wide);
  };
  normalized = cast(b, cast(b, normalized, xType), wide);
  if (scale) {
    if (op.getScaleOffsetValue() != 0.0) {
      auto scaleType = mlir::cast<FloatType>(scale.getType());
      FloatType addType =
          scaleType.getWidth() > wide.getWidth() ? scaleType : wide;
      scale =
          arith::AddFOp::create(b, loc, cast(b, scale, addType),
                                constant(b, op.getScaleOffsetValue(), addType));
    }
    normalized = inResultType(
        arith::MulFOp::create(b, loc, normalized, inResultType(scale)));
  }
  if (shift)
    normalized = inResultType(
        arith::AddFOp::create(b, loc, normalized, inResultType(shift)));
  return normalized;
}

Value Decomposer::normalize() {
  SmallVector<Indexed> inputs = source;
  auto add = [&](Value tensor,
                 ArrayRef<int64_t> axes) -> std::optional<size_t> {
    if (!tensor)
      return std::nullopt;
    inputs.push_back({tensor, llvm::to_vector(axes)});
    return inputs.size() - 1;
  };
  SmallVector<int64_t> affine = op.getAffineAxesOrDefault();
  auto meanAt = add(mean, kept), remainderAt = add(remainder, kept),
       rstdAt = add(rstd, kept), scaleAt = add(op.getScaleOrNull(), affine),
       shiftAt = add(op.getShiftOrNull(), affine);

  auto resultType =
      mlir::cast<FloatType>(op.getNormalized().getType().getElementType());
  return elementwise(
      inputs, all, resultType, [&](OpBuilder &b, Location, ValueRange in) {
        Value c = widened(b, in);
        if (meanAt)
          c = arith::SubFOp::create(b, loc, c, in[*meanAt]);
        if (remainderAt)
          c = arith::SubFOp::create(b, loc, c, in[*remainderAt]);
        Value y = toCompute(b, arith::MulFOp::create(b, loc, c, in[*rstdAt]));
        Value scale = scaleAt ? in[*scaleAt] : Value();
        Value shift = shiftAt ? in[*shiftAt] : Value();
        y = op.getAffineIn() == AffineIn::Compute
                ? affineInCompute(b, y, scale, shift)
                : affineInResult(b, y, scale, shift);
        return SmallVector<Value>{cast(b, y, resultType)};
      });
}

SmallVector<Value> Decomposer::run() {
  computeSource();
  if (op.isCentred())
    computeVariance();
  else
    computeMeanSquare();
  SmallVector<Value> values;
  Value y = normalize();
  for (OpResult result : op->getResults()) {
    Value value = result == op.getNormalized()       ? y
                  : result == op.getMeanOrNull()     ? meanResult
                  : result == op.getRstdOrNull()     ? rstdResult
                  : result == op.getVarianceOrNull() ? varianceResult
                                                     : sumResult;
    // Extents may be static in one place only: keep the op's result type.
    if (value.getType() != result.getType())
      value = tensor::CastOp::create(builder, loc, result.getType(), value);
    values.push_back(value);
  }
  return values;
}

FailureOr<SmallVector<Value>> norm::decomposeNorm(NormOpInterface op,
                                                  OpBuilder &builder) {
  return Decomposer(op, builder).run();
}
