//===- LowerToReference.cpp - norm-lower-to-reference -----------*- C++ -*-===//
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

#include "Reference/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::norm {
#define GEN_PASS_DEF_LOWERTOREFERENCEPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

namespace {
/// Replaces an op, or one with an interface, by the values it stands for.
template <typename OpTy, template <typename> class PatternBase>
struct LowerPattern : public PatternBase<OpTy> {
  using PatternBase<OpTy>::PatternBase;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, reference::lower(op, rewriter));
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

template <typename... OpTys> static void addOps(RewritePatternSet &patterns) {
  patterns.add<LowerPattern<OpTys, OpRewritePattern>...>(patterns.getContext());
}

void norm::populateLowerNormToReferencePatterns(RewritePatternSet &patterns) {
  patterns
      .add<LowerPattern<NormOpInterface, OpInterfaceRewritePattern>,
           LowerPattern<NormBackwardOpInterface, OpInterfaceRewritePattern>>(
          patterns.getContext());
  addOps<MomentsOp, CombineMomentsOp, RstdOp, NormalizeOp, UpdateRunningOp,
         BackwardMomentsOp, BackwardNormalizeOp>(patterns);
}
