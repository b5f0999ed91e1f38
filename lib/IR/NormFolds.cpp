//===- NormFolds.cpp - Canonical forms of the named ops -------------------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/IR/NormOps.h"

using namespace mlir;
using namespace mlir::norm;

/// One spelling per meaning, so that CSE and attribute comparisons see equal
/// ops as equal: axes non-negative and ascending, defaults not written.
template <typename OpTy>
static LogicalResult useCanonicalSpelling(OpTy op, PatternRewriter &rewriter) {
  SmallVector<int64_t> axes = op.getReducedAxes();
  bool areAxesCanonical = op.getAxes() == ArrayRef<int64_t>(axes);
  bool writesDefaultAffineAxes =
      op.getAffineAxes() && *op.getAffineAxes() == ArrayRef<int64_t>(axes);
  bool writesDefaultCompute =
      op.getComputeType() &&
      *op.getComputeType() == defaultComputeType(op.getX(), op.getResidual());
  if (areAxesCanonical && !writesDefaultAffineAxes && !writesDefaultCompute)
    return rewriter.notifyMatchFailure(op, "spelling is canonical");
  rewriter.modifyOpInPlace(op, [&] {
    op.setAxes(axes);
    if (writesDefaultAffineAxes)
      op.removeAffineAxesAttr();
    if (writesDefaultCompute)
      op.removeComputeTypeAttr();
  });
  return success();
}

LogicalResult LayerNormOp::canonicalize(LayerNormOp op,
                                        PatternRewriter &rewriter) {
  return useCanonicalSpelling(op, rewriter);
}

LogicalResult RMSNormOp::canonicalize(RMSNormOp op, PatternRewriter &rewriter) {
  return useCanonicalSpelling(op, rewriter);
}
