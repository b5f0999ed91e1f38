//===- ExpandNarrowing.cpp - norm-expand-narrowing -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::norm {
#define GEN_PASS_DEF_EXPANDNARROWINGPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;

namespace {
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
        !(element.isF16() || element.isBF16()))
      return rewriter.notifyMatchFailure(op, "expected f64 to f16 or bf16");
    Location loc = op.getLoc();
    auto withElement = [&](Type type) -> Type {
      auto shaped = dyn_cast<ShapedType>(x.getType());
      return shaped ? Type(shaped.clone(type)) : type;
    };
    Type f32 = withElement(rewriter.getF32Type());
    Type i32 = withElement(rewriter.getI32Type());
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

struct ExpandNarrowing
    : public norm::impl::ExpandNarrowingPassBase<ExpandNarrowing> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<NarrowThroughF32>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace
