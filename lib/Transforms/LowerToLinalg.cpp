//===- LowerToLinalg.cpp - norm-lower-to-linalg -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "Norm/IR/NormOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::norm {
#define GEN_PASS_DEF_LOWERNORMTOLINALGPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

namespace {
struct DecomposePattern : public OpInterfaceRewritePattern<NormOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    FailureOr<SmallVector<Value>> values = decomposeNorm(op, rewriter);
    if (failed(values))
      return rewriter.notifyMatchFailure(op, "op does not decompose");
    rewriter.replaceOp(op, *values);
    return success();
  }
};

struct LowerNormToLinalg
    : public norm::impl::LowerNormToLinalgPassBase<LowerNormToLinalg> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateLowerNormToLinalgPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace

void norm::populateLowerNormToLinalgPatterns(RewritePatternSet &patterns) {
  patterns.add<DecomposePattern>(patterns.getContext());
}
