//===- FoldBatchNorm.cpp -*- C++ -*-===//
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
#define GEN_PASS_DEF_FOLDBATCHNORMPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

namespace {
struct FoldBatchNorm : public norm::impl::FoldBatchNormPassBase<FoldBatchNorm> {
  void runOnOperation() override {
    RewritePolicy policy;
    policy.pass = "norm-fold-batch-norm";
    policy.real = true;
    Rule intoProducer("C17", policy), intoConsumers("C18", policy);

    SmallVector<NormOpInterface> norms;
    getOperation()->walk([&](NormOpInterface op) {
      if (op.hasGivenStatistics())
        norms.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (NormOpInterface op : norms)
      if (failed(fold::foldIntoProducer(rewriter, intoProducer, op)))
        (void)fold::foldGivenNormIntoConsumers(rewriter, intoConsumers, op);
  }
};
} // namespace
