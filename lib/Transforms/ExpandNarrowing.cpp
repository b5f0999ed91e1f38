//===- ExpandNarrowing.cpp - norm-expand-narrowing -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "FloatBits.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::norm {
#define GEN_PASS_DEF_EXPANDNARROWINGPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

namespace {
/// The bits of an 8-bit type that LLVM knows only as i8.
struct F8Format {
  /// Bits of the significand that are stored, and what is added to exponents.
  unsigned mantissaBits, bias;
  /// Magnitudes: what overflow rounds to, and the NaN that any NaN becomes.
  /// E4M3FN has no infinity, so an overflow is NaN too.
  uint8_t overflow, nan;

  static std::optional<F8Format> get(Type type) {
    if (isa<Float8E4M3FNType>(type))
      return F8Format{3, 7, 0x7f, 0x7f};
    if (isa<Float8E5M2Type>(type))
      return F8Format{2, 15, 0x7c, 0x7e};
    return std::nullopt;
  }
};

/// f64 to f32 by rounding to odd, then to the 16-bit type. Where the first
/// step is inexact it leaves a set lowest bit, which the second step sees as
/// "not a tie": the two give what one rounding to nearest even gives. Rounding
/// to nearest twice would not.
struct NarrowThroughF32 : public OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getIn();
    Type element = getElementTypeOrSelf(op.getType());
    if (!getElementTypeOrSelf(x).isF64() ||
        !(element.isF16() || element.isBF16() || F8Format::get(element)))
      return rewriter.notifyMatchFailure(op, "expected f64 to f16, bf16 or an "
                                             "8-bit type");
    Location loc = op.getLoc();
    Type f32 = withElement(x.getType(), rewriter.getF32Type());
    Type i32 = withElement(x.getType(), rewriter.getI32Type());
    Value nearest = arith::TruncFOp::create(rewriter, loc, f32, x);
    Value back = arith::ExtFOp::create(rewriter, loc, x.getType(), nearest);
    // Unordered: a NaN passes as it is.
    Value isExact = arith::CmpFOp::create(rewriter, loc,
                                          arith::CmpFPredicate::UEQ, back, x);
    Value isAway =
        arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::OGT,
                              math::AbsFOp::create(rewriter, loc, back),
                              math::AbsFOp::create(rewriter, loc, x));
    Value one =
        arith::ConstantOp::create(rewriter, loc, rewriter.getOneAttr(i32));
    Value bits = arith::BitcastOp::create(rewriter, loc, i32, nearest);
    // Signs are apart from magnitudes: one less is one step towards zero.
    Value below = arith::SubIOp::create(rewriter, loc, bits, one);
    Value towardsZero =
        arith::SelectOp::create(rewriter, loc, isAway, below, bits);
    Value odd = arith::OrIOp::create(rewriter, loc, towardsZero, one);
    Value rounded = arith::SelectOp::create(
        rewriter, loc, isExact, nearest,
        arith::BitcastOp::create(rewriter, loc, f32, odd));
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), rounded);
    return success();
  }
};

/// f32 to an 8-bit type, to nearest even; the sign of a NaN is kept.
struct NarrowToF8 : public OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<F8Format> format =
        F8Format::get(getElementTypeOrSelf(op.getType()));
    Value x = op.getIn();
    Type from = getElementTypeOrSelf(x.getType());
    if (!format || !(from.isF32() || from.isF16() || from.isBF16()))
      return rewriter.notifyMatchFailure(op, "expected f32 to an 8-bit type");
    BitBuilder b(rewriter, op.getLoc(), x.getType());
    if (!from.isF32())
      x = b.make<arith::ExtFOp>(b.f32, x);
    Value bits = b.asBits(x);
    Value magnitude = b.make<arith::AndIOp>(bits, b.constant(0x7fffffff));
    unsigned dropped = 23 - format->mantissaBits;

    // A normal result: half of the last bit that stays, less one if that is
    // even, carries into it.
    Value last = b.make<arith::AndIOp>(
        b.make<arith::ShRUIOp>(magnitude, b.constant(dropped)), b.constant(1));
    Value rounded = b.make<arith::AddIOp>(
        b.make<arith::AddIOp>(magnitude, b.constant((1u << (dropped - 1)) - 1)),
        last);
    Value normal = b.make<arith::SubIOp>(
        b.make<arith::ShRUIOp>(rounded, b.constant(dropped)),
        b.constant((127 - format->bias) << format->mantissaBits));

    // A subnormal one: an addition drops the bits below the last.
    uint32_t first = (128 - format->bias) << 23;
    uint32_t magic = first + ((23 - format->mantissaBits) << 23);
    Value shifted = b.make<arith::AddFOp>(b.asFloat(magnitude),
                                          b.asFloat(b.constant(magic)));
    Value subnormal =
        b.make<arith::SubIOp>(b.asBits(shifted), b.constant(magic));
    Value result = b.make<arith::SelectOp>(b.isAbove(magnitude, first - 1),
                                           normal, subnormal);

    result = b.make<arith::SelectOp>(b.isAbove(result, format->overflow),
                                     b.constant(format->overflow), result);
    result = b.make<arith::SelectOp>(b.isAbove(magnitude, 0x7f800000),
                                     b.constant(format->nan), result);
    Value sign = b.make<arith::AndIOp>(
        b.make<arith::ShRUIOp>(bits, b.constant(24)), b.constant(0x80));
    Value byte =
        b.make<arith::TruncIOp>(b.i8, b.make<arith::OrIOp>(result, sign));
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), byte);
    return success();
  }
};

/// An 8-bit type to a wider one, exactly.
struct WidenFromF8 : public OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<F8Format> format =
        F8Format::get(getElementTypeOrSelf(op.getIn().getType()));
    if (!format)
      return rewriter.notifyMatchFailure(op, "expected an 8-bit type");
    BitBuilder b(rewriter, op.getLoc(), op.getIn().getType());
    Value bits = b.make<arith::ExtUIOp>(
        b.i32, b.make<arith::BitcastOp>(b.i8, op.getIn()));
    Value magnitude = b.make<arith::AndIOp>(bits, b.constant(0x7f));
    unsigned dropped = 23 - format->mantissaBits;
    Value shifted = b.make<arith::ShLIOp>(magnitude, b.constant(dropped));
    Value normal =
        b.make<arith::AddIOp>(shifted, b.constant((127 - format->bias) << 23));
    // Subnormal: a multiple of the smallest one, a power of two.
    uint32_t unit = (128 - format->bias - format->mantissaBits) << 23;
    Value subnormal = b.asBits(
        b.make<arith::MulFOp>(b.make<arith::UIToFPOp>(b.f32, magnitude),
                              b.asFloat(b.constant(unit))));
    Value result = b.make<arith::SelectOp>(
        b.isAbove(magnitude, (1u << format->mantissaBits) - 1), normal,
        subnormal);
    if (format->overflow != format->nan)
      result =
          b.make<arith::SelectOp>(b.isAbove(magnitude, format->overflow - 1),
                                  b.constant(0x7f800000), result);
    uint32_t lastNumber =
        format->overflow == format->nan ? format->nan - 1 : format->overflow;
    result = b.make<arith::SelectOp>(b.isAbove(magnitude, lastNumber),
                                     b.constant(0x7fc00000), result);
    Value sign = b.make<arith::ShLIOp>(
        b.make<arith::AndIOp>(bits, b.constant(0x80)), b.constant(24));
    Value wide = b.asFloat(b.make<arith::OrIOp>(result, sign));
    Type to = getElementTypeOrSelf(op.getType());
    if (to.isF32())
      rewriter.replaceOp(op, wide);
    else if (to.isF64())
      rewriter.replaceOpWithNewOp<arith::ExtFOp>(op, op.getType(), wide);
    else
      rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), wide);
    return success();
  }
};

/// bf16 to a wider type by a shift. LLVM 22 takes `fptrunc (fadd (fpext half),
/// (fpext bfloat)) to half` for an addition of halves, as the significands fit,
/// and makes bf16 values beyond f16's range infinite before they are added.
struct WidenFromBF16 : public OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getIn().getType()).isBF16())
      return rewriter.notifyMatchFailure(op, "expected bf16");
    rewriter.replaceOp(op, widenBF16(rewriter, op));
    return success();
  }
};

/// Whether anything is rounded to f16.
bool roundsToF16(Operation *root) {
  return root
      ->walk([](arith::TruncFOp op) {
        return getElementTypeOrSelf(op.getType()).isF16()
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

struct ExpandNarrowing
    : public norm::impl::ExpandNarrowingPassBase<ExpandNarrowing> {
  void runOnOperation() override {
    // The first step leaves f32 for the second.
    RewritePatternSet fromF64(&getContext()), bits(&getContext());
    fromF64.add<NarrowThroughF32>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(fromF64));
    bits.add<NarrowToF8, WidenFromF8>(&getContext());
    if (roundsToF16(getOperation()))
      bits.add<WidenFromBF16>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(bits));
  }
};
} // namespace
