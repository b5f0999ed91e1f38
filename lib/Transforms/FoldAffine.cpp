//===- FoldAffine.cpp -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "Fold/Fold.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::norm {
#define GEN_PASS_DEF_FOLDAFFINEPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

namespace {
struct FoldAffine : public norm::impl::FoldAffinePassBase<FoldAffine> {
  void runOnOperation() override {
    RewritePolicy policy;
    policy.pass = "norm-fold-affine";
    policy.real = true;

    SmallVector<NormOpInterface> norms;
    getOperation()->walk([&](NormOpInterface op) {
      // Given statistics go with scale and shift: norm-fold-batch-norm. An op
      // that updates statistics is being trained, and so are its parameters.
      if (!op.hasGivenStatistics() && !op.getRunningUpdate())
        norms.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (NormOpInterface op : norms)
      (void)fold::foldAffineIntoConsumers(rewriter, policy, op);
  }
};
} // namespace
