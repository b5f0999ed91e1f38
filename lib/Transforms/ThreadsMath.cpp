//===- ThreadsMath.cpp - Math functions in kernels -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// convert-gpu-to-nvvm makes math functions calls of libdevice, which only a
// CUDA installation has. Those that are instructions become intrinsics here;
// others become polynomials in f32.
//
//===----------------------------------------------------------------------===//

#include "MapToThreads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace mlir::norm;

namespace {
/// An op as an LLVM intrinsic, which NVPTX has an instruction for.
template <typename Op> struct ToIntrinsic : public OpRewritePattern<Op> {
  ToIntrinsic(MLIRContext *context, StringRef name)
      : OpRewritePattern<Op>(context), name(name) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    Type element = getElementTypeOrSelf(op.getType());
    if (!element.isF32() && !element.isF64())
      return rewriter.notifyMatchFailure(op, "expected f32 or f64");
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, op.getType(), rewriter.getStringAttr(name), op->getOperands());
    return success();
  }

  StringRef name;
};

/// 1 / sqrt, each correctly rounded.
struct ExpandRsqrt : public OpRewritePattern<math::RsqrtOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::RsqrtOp op,
                                PatternRewriter &rewriter) const override {
    Value one = arith::ConstantOp::create(rewriter, op.getLoc(),
                                          rewriter.getOneAttr(op.getType()));
    Value root = math::SqrtOp::create(rewriter, op.getLoc(), op.getOperand());
    rewriter.replaceOpWithNewOp<arith::DivFOp>(op, one, root);
    return success();
  }
};
} // namespace

LogicalResult norm::expandKernelMath(gpu::LaunchOp launch) {
  MLIRContext *context = launch.getContext();
  RewritePatternSet patterns(context);
  patterns.add<ExpandRsqrt>(context);
  patterns.add<ToIntrinsic<math::SqrtOp>>(context, "llvm.sqrt");
  patterns.add<ToIntrinsic<math::FmaOp>>(context, "llvm.fma");
  patterns.add<ToIntrinsic<math::AbsFOp>>(context, "llvm.fabs");
  patterns.add<ToIntrinsic<math::FloorOp>>(context, "llvm.floor");
  patterns.add<ToIntrinsic<math::CeilOp>>(context, "llvm.ceil");
  patterns.add<ToIntrinsic<math::TruncOp>>(context, "llvm.trunc");
  patterns.add<ToIntrinsic<math::RoundEvenOp>>(context, "llvm.roundeven");
  patterns.add<ToIntrinsic<math::CopySignOp>>(context, "llvm.copysign");
  populateMathPolynomialApproximationPatterns(patterns);
  return applyPatternsGreedily(launch.getBody(), std::move(patterns));
}
