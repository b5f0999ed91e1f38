//===- LowerToReference.cpp - norm-lower-to-reference -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A literal reading of the specification in f64. It is written to be checked
// against the table there, step by step, and shares nothing with the lowering
// it is the judge of.
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "Norm/IR/NormOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::norm {
#define GEN_PASS_DEF_LOWERTOREFERENCEPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// Scalars: arithmetic in f64 and correct rounding
//===----------------------------------------------------------------------===//

namespace {
/// Scalar arithmetic of the reference: values are f64 unless a method says
/// otherwise.
struct Scalar {
  ImplicitLocOpBuilder b;
  Scalar(OpBuilder &builder, Location loc) : b(loc, builder) {}

  Value constant(double value) {
    return arith::ConstantOp::create(b, b.getF64FloatAttr(value));
  }
  Value integer(unsigned width, uint64_t value) {
    return arith::ConstantOp::create(
        b, b.getIntegerAttr(b.getIntegerType(width), APInt(width, value)));
  }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value sqrt(Value x) { return math::SqrtOp::create(b, x); }
  /// The greater value; NaN if either is.
  Value max(Value x, Value y) { return arith::MaximumFOp::create(b, x, y); }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }
  Value isEqual(Value x, Value y) {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, x, y);
  }
  Value isNaN(Value x) {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
  }

  Value widen(Value x) {
    return x.getType().isF64() ? x
                               : arith::ExtFOp::create(b, b.getF64Type(), x);
  }

  /// x as a value of `type`, to nearest and ties to even.
  Value narrow(Value x, FloatType type) {
    if (type.isF64())
      return x;
    if (type.isF32())
      return arith::TruncFOp::create(b, type, x);
    Value odd = narrowToOddF32(x);
    if (type.isF16())
      return arith::TruncFOp::create(b, type, odd);
    return narrowToBF16(odd, type);
  }

  /// x rounded to `type`, as an f64.
  Value round(Value x, FloatType type) { return widen(narrow(x, type)); }

  /// x as an f32, rounded towards zero and with the last bit set if inexact.
  /// Rounding that to a type of at most 22 bits of precision is the same as
  /// rounding x, where rounding to nearest twice is not.
  Value narrowToOddF32(Value x) {
    Type f32 = b.getF32Type(), i32 = b.getI32Type();
    Value nearest = arith::TruncFOp::create(b, f32, x);
    Value back = widen(nearest);
    Value isExact =
        arith::CmpFOp::create(b, arith::CmpFPredicate::UEQ, back, x);
    Value isAway = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT,
                                         math::AbsFOp::create(b, back),
                                         math::AbsFOp::create(b, x));
    Value bits = arith::BitcastOp::create(b, i32, nearest);
    Value below = arith::SubIOp::create(b, bits, integer(32, 1));
    Value truncated = arith::SelectOp::create(b, isAway, below, bits);
    Value odd = arith::OrIOp::create(b, truncated, integer(32, 1));
    return select(isExact, nearest, arith::BitcastOp::create(b, f32, odd));
  }

  /// An f32 to bf16 by integer arithmetic: some targets flush subnormals.
  Value narrowToBF16(Value x, FloatType type) {
    Type i16 = b.getIntegerType(16);
    Value bits = arith::BitcastOp::create(b, b.getI32Type(), x);
    Value sixteen = integer(32, 16);
    Value lowest = arith::AndIOp::create(
        b, arith::ShRUIOp::create(b, bits, sixteen), integer(32, 1));
    Value carry = arith::AddIOp::create(b, integer(32, 0x7fff), lowest);
    Value rounded = arith::ShRUIOp::create(
        b, arith::AddIOp::create(b, bits, carry), sixteen);
    Value value = arith::TruncIOp::create(b, i16, rounded);
    Value quiet = select(isNaN(x), integer(16, 0x7fc0), value);
    return arith::BitcastOp::create(b, type, quiet);
  }

  /// Adds x to a sum and to the sum of its rounding errors (Knuth).
  std::pair<Value, Value> accumulate(Value x, Value sum, Value error) {
    Value next = add(sum, x);
    Value virtualX = sub(next, sum);
    Value lost = add(sub(sum, sub(next, virtualX)), sub(x, virtualX));
    return {next, add(error, lost)};
  }

  /// The corrected sum. An infinite or NaN sum has a meaningless correction.
  Value finish(Value sum, Value error) {
    Value isFinite = arith::CmpFOp::create(
        b, arith::CmpFPredicate::OLT, math::AbsFOp::create(b, sum),
        constant(std::numeric_limits<double>::infinity()));
    return select(isFinite, add(sum, error), sum);
  }
};

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// A tensor and the axes of x that index it.
struct Indexed {
  Value value;
  SmallVector<int64_t> axes;
};

/// The lowering of one op.
class Reference {
public:
  Reference(NormOpInterface op, OpBuilder &builder)
      : op(op), builder(builder), loc(op.getLoc()), rank(op.getRank()),
        all(llvm::to_vector(llvm::seq<int64_t>(0, rank))),
        kept(op.getKeptAxes()), reduced(op.getReducedAxes()),
        f64(builder.getF64Type()), compute(op.getComputeTypeOrDefault()),
        xType(elementType(op.getInput())),
        yType(elementType(op.getNormalized())),
        isNarrow(compute.getWidth() < 32) {}

  SmallVector<Value> lower();

private:
  using Body = function_ref<SmallVector<Value>(Scalar &, ValueRange)>;

  NormOpInterface op;
  OpBuilder &builder;
  Location loc;
  int64_t rank;
  SmallVector<int64_t> all, kept, reduced;
  FloatType f64, compute, xType, yType;
  /// Whether every step rounds to the compute type. Operands of the steps are
  /// always cast to it.
  bool isNarrow;

  static FloatType elementType(Value value) {
    return cast<FloatType>(cast<ShapedType>(value.getType()).getElementType());
  }

  /// An operand of a step, cast to the compute type.
  Value toCompute(Scalar &s, Value x) { return s.round(x, compute); }

  /// One step's result: rounded if steps round.
  Value step(Scalar &s, Value x) { return isNarrow ? s.round(x, compute) : x; }

  Value empty(ArrayRef<int64_t> axes, Type type) {
    SmallVector<OpFoldResult> extents = tensor::getMixedSizes(builder, loc,
                                                              op.getInput()),
                              sizes;
    for (int64_t axis : axes)
      sizes.push_back(extents[axis]);
    return tensor::EmptyOp::create(builder, loc, sizes, type);
  }

  /// A loop over `loops` (axes of x) with the given results. The body gets the
  /// inputs' elements and then, in a reduction, the running results.
  SmallVector<Indexed> loop(ArrayRef<int64_t> loops, ArrayRef<Indexed> inputs,
                            ArrayRef<int64_t> resultAxes,
                            ArrayRef<Type> resultTypes, Body body);

  Indexed widenedSum(Indexed &sum);
  Value countOf(Scalar &s, int64_t correction);
  Value factor(Scalar &s, Value q);
  Value affine(Scalar &s, Value normalized, Value scale, Value shift);
  Indexed rounded(Indexed value, FloatType type);
};
} // namespace

SmallVector<Indexed> Reference::loop(ArrayRef<int64_t> loops,
                                     ArrayRef<Indexed> inputs,
                                     ArrayRef<int64_t> resultAxes,
                                     ArrayRef<Type> resultTypes, Body body) {
  bool isReduction = loops.size() != resultAxes.size();
  MLIRContext *context = builder.getContext();
  auto mapOf = [&](ArrayRef<int64_t> axes) {
    SmallVector<AffineExpr> exprs;
    for (int64_t axis : axes)
      exprs.push_back(getAffineDimExpr(
          std::distance(loops.begin(), llvm::find(loops, axis)), context));
    return AffineMap::get(loops.size(), 0, exprs, context);
  };
  SmallVector<AffineMap> maps;
  SmallVector<Value> ins, outs;
  SmallVector<Type> types;
  for (const Indexed &input : inputs) {
    ins.push_back(input.value);
    maps.push_back(mapOf(input.axes));
  }
  for (Type type : resultTypes) {
    Value out = empty(resultAxes, type);
    if (isReduction) {
      Value zero =
          arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
      out = linalg::FillOp::create(builder, loc, zero, out).getResult(0);
    }
    outs.push_back(out);
    types.push_back(out.getType());
    maps.push_back(mapOf(resultAxes));
  }
  SmallVector<utils::IteratorType> iterators;
  for (int64_t axis : loops)
    iterators.push_back(llvm::is_contained(resultAxes, axis)
                            ? utils::IteratorType::parallel
                            : utils::IteratorType::reduction);
  auto generic = linalg::GenericOp::create(
      builder, loc, types, ins, outs, maps, iterators,
      [&](OpBuilder &inner, Location innerLoc, ValueRange args) {
        Scalar scalar(inner, innerLoc);
        SmallVector<Value> values =
            body(scalar, isReduction ? args : args.take_front(ins.size()));
        linalg::YieldOp::create(scalar.b, values);
      });
  SmallVector<Indexed> results;
  for (Value result : generic.getResults())
    results.push_back({result, SmallVector<int64_t>(resultAxes)});
  return results;
}

/// Steps 1 and 2: the sum as it is stored, if asked for, and c in f64.
Indexed Reference::widenedSum(Indexed &sum) {
  Indexed x{op.getInput(), all};
  Value residual = op.getResidualOrNull();
  if (!residual)
    return loop(all, {x}, all, {f64}, [&](Scalar &s, ValueRange in) {
      return SmallVector<Value>{toCompute(s, s.widen(in[0]))};
    })[0];
  FloatType sumType = op.getSumElementType();
  bool isStored = op.getSumRounding() == SumRounding::Stored;
  SmallVector<Indexed> results =
      loop(all, {x, {residual, all}}, all, {f64, sumType},
           [&](Scalar &s, ValueRange in) {
             Value exact = s.add(s.widen(in[0]), s.widen(in[1]));
             Value stored = s.narrow(exact, sumType);
             Value c = toCompute(s, isStored ? s.widen(stored) : exact);
             return SmallVector<Value>{c, stored};
           });
  sum = results[1];
  return results[0];
}

/// n - correction as an f64, n the product of the reduced extents.
Value Reference::countOf(Scalar &s, int64_t correction) {
  Value count = arith::ConstantIndexOp::create(s.b, 1);
  for (int64_t axis : reduced)
    count = arith::MulIOp::create(
        s.b, count, tensor::DimOp::create(s.b, op.getInput(), axis));
  if (correction != 0)
    count = arith::SubIOp::create(
        s.b, count, arith::ConstantIndexOp::create(s.b, correction));
  Value integer = arith::IndexCastOp::create(s.b, s.b.getI64Type(), count);
  return arith::SIToFPOp::create(s.b, f64, integer);
}

/// Step 5.
Value Reference::factor(Scalar &s, Value q) {
  Value epsilon = toCompute(s, s.constant(op.getEpsilon().getDouble()));
  auto denominator = [&]() -> Value {
    switch (op.getEpsilon().getPlacement()) {
    case EpsilonPlacement::InsideSqrt:
      return s.sqrt(s.add(q, epsilon));
    case EpsilonPlacement::OutsideSqrt:
      return s.add(s.sqrt(q), epsilon);
    case EpsilonPlacement::MaxInside:
      return s.sqrt(s.max(q, epsilon));
    case EpsilonPlacement::MaxOutside:
      return s.max(s.sqrt(q), epsilon);
    case EpsilonPlacement::None:
      return s.sqrt(q);
    }
    llvm_unreachable("unknown epsilon placement");
  }();
  Value r = step(s, s.div(s.constant(1.0), denominator));
  if (op.getZeroPolicy() == ZeroPolicy::IEEE)
    return r;
  Value zero = s.constant(0.0);
  return s.select(s.isEqual(denominator, zero), zero, r);
}

/// Step 7, from x-hat to a value of y's type. Null operands are absent.
Value Reference::affine(Scalar &s, Value normalized, Value scale, Value shift) {
  double offset = op.getScaleOffsetValue();
  Value gain, bias;
  if (scale) {
    gain = toCompute(s, s.widen(scale));
    if (offset != 0.0)
      gain = toCompute(s, s.add(gain, toCompute(s, s.constant(offset))));
  }
  if (shift)
    bias = toCompute(s, s.widen(shift));
  if (op.getAffineIn() == AffineIn::Compute) {
    Value y = normalized;
    if (gain)
      y = step(s, s.mul(y, gain));
    if (shift)
      y = step(s, s.add(y, bias));
    return s.narrow(y, yType);
  }
  Value y = s.round(normalized, xType);
  if (gain)
    y = s.round(s.mul(y, s.round(gain, yType)), yType);
  if (shift)
    y = s.round(s.add(y, s.round(bias, yType)), yType);
  return s.narrow(y, yType);
}

Indexed Reference::rounded(Indexed value, FloatType type) {
  return loop(value.axes, {value}, value.axes, {type},
              [&](Scalar &s, ValueRange in) {
                return SmallVector<Value>{s.narrow(in[0], type)};
              })[0];
}

SmallVector<Value> Reference::lower() {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  Indexed sum;
  Indexed c = widenedSum(sum);
  Scalar outer(builder, loc);
  Value count = countOf(outer, 0);
  Value divisor = countOf(outer, op.getCorrection());
  Value isEmpty = outer.isEqual(count, outer.constant(0.0));

  // Step 3. m is exact to f64; what its rounding loses is found in step 4.
  Indexed m;
  if (op.isCentred()) {
    SmallVector<Indexed> total =
        loop(all, {c}, kept, {f64, f64}, [&](Scalar &s, ValueRange in) {
          auto [next, error] = s.accumulate(in[0], in[1], in[2]);
          return SmallVector<Value>{next, error};
        });
    m = loop(kept, total, kept, {f64}, [&](Scalar &s, ValueRange in) {
      Value mean = step(s, s.div(s.finish(in[0], in[1]), count));
      return SmallVector<Value>{s.select(isEmpty, s.constant(0.0), mean)};
    })[0];
  }

  // Step 4: sums of d and of d*d, d = c - m; then q, and delta = mean of d.
  SmallVector<Indexed> inputs{c};
  if (m.value)
    inputs.push_back(m);
  unsigned running = inputs.size();
  SmallVector<Indexed> sums = loop(
      all, inputs, kept, {f64, f64, f64, f64}, [&](Scalar &s, ValueRange in) {
        Value d = m.value ? s.sub(in[0], in[1]) : in[0];
        auto [sumD, errorD] = s.accumulate(d, in[running], in[running + 1]);
        auto [sumQ, errorQ] =
            s.accumulate(s.mul(d, d), in[running + 2], in[running + 3]);
        return SmallVector<Value>{sumD, errorD, sumQ, errorQ};
      });
  SmallVector<Indexed> statistics =
      loop(kept, sums, kept, {f64, f64, f64}, [&](Scalar &s, ValueRange in) {
        Value zero = s.constant(0.0);
        Value delta = zero;
        Value squares = s.finish(in[2], in[3]);
        // A mean that was rounded to a narrow type is what the contract
        // subtracts; only an f64 mean is improved.
        if (op.isCentred() && !isNarrow) {
          Value sumOfD = s.finish(in[0], in[1]);
          delta = s.select(isEmpty, zero, s.div(sumOfD, count));
          squares = s.max(s.sub(squares, s.mul(sumOfD, delta)), zero);
        }
        Value q = squares;
        if (op.getStatistic() != Statistic::SumSquare)
          q = s.div(squares, divisor);
        q = s.select(isEmpty, zero, step(s, q));
        return SmallVector<Value>{delta, q, factor(s, q)};
      });
  Indexed delta = statistics[0], q = statistics[1], r = statistics[2];

  // Steps 6 and 7.
  inputs.assign({c, r});
  if (m.value)
    inputs.append({m, delta});
  unsigned next = inputs.size();
  SmallVector<int64_t> affineAxes = op.getAffineAxesOrDefault();
  for (Value operand : {Value(op.getScaleOrNull()), Value(op.getShiftOrNull())})
    if (operand)
      inputs.push_back({operand, affineAxes});
  Indexed y = loop(all, inputs, all, {yType}, [&](Scalar &s, ValueRange in) {
    unsigned index = next;
    Value scale = op.getScaleOrNull() ? in[index++] : Value();
    Value shift = op.getShiftOrNull() ? in[index++] : Value();
    Value d = m.value ? s.sub(s.sub(in[0], in[2]), in[3]) : in[0];
    return SmallVector<Value>{
        affine(s, step(s, s.mul(d, in[1])), scale, shift)};
  })[0];

  SmallVector<Value> results;
  for (OpResult result : op->getResults()) {
    if (result == op.getNormalized()) {
      results.push_back(y.value);
    } else if (result == op.getSumOrNull()) {
      results.push_back(sum.value);
    } else if (result == op.getMeanOrNull()) {
      Indexed mean =
          loop(kept, {m, delta}, kept, {f64}, [&](Scalar &s, ValueRange in) {
            return SmallVector<Value>{s.add(in[0], in[1])};
          })[0];
      results.push_back(rounded(mean, compute).value);
    } else {
      bool isVariance = result == op.getVarianceOrNull();
      results.push_back(rounded(isVariance ? q : r, compute).value);
    }
  }
  // The reference's own types may know more or fewer static extents.
  for (auto [value, result] : llvm::zip_equal(results, op->getResults()))
    if (value.getType() != result.getType())
      value = tensor::CastOp::create(builder, loc, result.getType(), value);
  return results;
}

namespace {
struct LowerPattern : public OpInterfaceRewritePattern<NormOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, Reference(op, rewriter).lower());
    return success();
  }
};

struct LowerToReference
    : public norm::impl::LowerToReferencePassBase<LowerToReference> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateLowerNormToReferencePatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace

void norm::populateLowerNormToReferencePatterns(RewritePatternSet &patterns) {
  patterns.add<LowerPattern>(patterns.getContext());
}
