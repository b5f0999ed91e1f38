//===- Canonicalize.cpp - Rewrites that lose no information -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Analysis/Constants.h"
#include "Norm/IR/NormOps.h"
#include "Norm/IR/Rewrite.h"

using namespace mlir;
using namespace mlir::norm;

namespace {
/// C3: a gain that is 1 everywhere multiplies by nothing.
struct DropUnitScale : RulePattern<NormOpInterface> {
  DropUnitScale(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C3", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    std::optional<ConstantTensor> scale = matchConstant(op.getScaleOrNull());
    if (!scale || !scale->isSplat())
      return failure();
    double gain = scale->getSplat() + op.getScaleOffsetValue();
    if (failed(rule.require(op, "one", gain == 1.0,
                            "expected scale + offset of 1, got " +
                                Twine(std::to_string(gain)))))
      return failure();
    NormContract contract = NormContract::get(op);
    contract.scale = nullptr;
    contract.scaleOffset = 0.0;
    if (!contract.shift)
      contract.affineAxes.reset();
    rule.applied(op, "dropped a gain of 1");
    return replaceByContract(rewriter, op, contract);
  }
};
} // namespace

void norm::populateCanonicalizeNormPatterns(RewritePatternSet &patterns,
                                            const RewritePolicy &policy) {
  patterns.add<DropUnitScale>(patterns.getContext(), policy);
}

void NormDialect::getCanonicalizationPatterns(
    RewritePatternSet &results) const {
  RewritePolicy policy;
  policy.pass = "canonicalize";
  populateCanonicalizeNormPatterns(results, policy);
}
