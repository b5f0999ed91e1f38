//===- DecomposeConcat.cpp - norm-decompose-concat -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::norm {
#define GEN_PASS_DEF_DECOMPOSECONCATPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;

static bool isStaticallyEmpty(Type type) {
  return llvm::is_contained(cast<RankedTensorType>(type).getShape(), 0);
}

namespace {
/// Parts without elements: an insertion at an offset behind the last element
/// does not verify.
struct DropEmptyParts : public OpRewritePattern<tensor::ConcatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ConcatOp op,
                                PatternRewriter &rewriter) const override {
    RankedTensorType type = op.getResultType();
    SmallVector<Value> parts =
        llvm::filter_to_vector(op.getInputs(), [](Value part) {
          return !isStaticallyEmpty(part.getType());
        });
    if (parts.size() == op.getInputs().size())
      return rewriter.notifyMatchFailure(op, "expected an empty part");
    if (!isStaticallyEmpty(type) && !parts.empty()) {
      Value whole =
          tensor::ConcatOp::create(rewriter, op.getLoc(), op.getDim(), parts);
      rewriter.replaceOpWithNewOp<tensor::CastOp>(op, type, whole);
      return success();
    }
    ReifiedRankedShapedTypeDims extents;
    if (failed(reifyResultShapes(rewriter, op, extents)))
      return rewriter.notifyMatchFailure(op, "expected known extents");
    Value empty = tensor::EmptyOp::create(rewriter, op.getLoc(), extents[0],
                                          type.getElementType());
    rewriter.replaceOpWithNewOp<tensor::CastOp>(op, type, empty);
    return success();
  }
};

struct DecomposeConcat
    : public norm::impl::DecomposeConcatPassBase<DecomposeConcat> {
  void runOnOperation() override {
    RewritePatternSet emptyParts(&getContext());
    emptyParts.add<DropEmptyParts>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(emptyParts));
    RewritePatternSet patterns(&getContext());
    tensor::populateDecomposeTensorConcatPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace
