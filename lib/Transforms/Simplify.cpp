//===- Simplify.cpp - norm-simplify -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "Simplify/Simplify.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::norm {
#define GEN_PASS_DEF_SIMPLIFYNORMPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

namespace {
struct SimplifyNorm : public norm::impl::SimplifyNormPassBase<SimplifyNorm> {
  using SimplifyNormPassBase::SimplifyNormPassBase;

  void runOnOperation() override {
    RewritePolicy rewrites;
    rewrites.pass = "norm-simplify";
    rewrites.real = policy == FpPolicy::Real;
    rewrites.nnan = nnan;
    rewrites.ninf = ninf;
    rewrites.nsz = nsz;

    RewritePatternSet patterns(&getContext());
    populateCanonicalizeNormPatterns(patterns, rewrites);
    populateSimplifyAffinePatterns(patterns, rewrites);
    populateSimplifyInferencePatterns(patterns, rewrites);
    populateSimplifyInputPatterns(patterns, rewrites);
    populateSimplifyKindPatterns(patterns, rewrites);
    populateSimplifyConstantPatterns(patterns, rewrites);
    populateSimplifyReshapePatterns(patterns, rewrites);
    populateSimplifyBroadcastPatterns(patterns, rewrites);
    populateSimplifySlicePatterns(patterns, rewrites);
    populateSimplifySharingPatterns(patterns, rewrites);
    populateSimplifyAttentionPatterns(patterns, rewrites);
    if (unifyKinds)
      populateUnifyKindPatterns(patterns, rewrites);
    if (rotations)
      populateRotationPatterns(patterns, rewrites);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
