//===- LowerToLinalg.cpp - norm-lower-to-linalg -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "LowerToLinalg.h"
#include "Norm/IR/NormOps.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
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

/// Constraint V4's warning, given where the op ends rather than by its
/// verifier, which runs after every pass.
static void warnIfEpsilonVanishes(RowOpInterface op) {
  auto epsilon = op->getAttrOfType<EpsilonAttr>("epsilon");
  if (auto norm = dyn_cast<NormOpInterface>(op.getOperation()))
    epsilon = norm.getEpsilon();
  if (!epsilon)
    return;
  FloatType computeType = op.getComputeTypeOrDefault();
  APFloat value = epsilon.getValue();
  if (value.isZero())
    return;
  bool losesInfo;
  value.convert(computeType.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  if (value.isZero() || value.isDenormal())
    op->emitWarning("expected 'epsilon' to be a normal number of the compute "
                    "type ")
        << computeType << ", got " << epsilon.getDouble() << ", which is "
        << (value.isZero() ? "0" : "subnormal") << " in it (V4)";
}

/// An op of another dialect need not implement AggregatedOpInterface.
static FailureOr<SmallVector<Value>> decompose(RowOpInterface op,
                                               OpBuilder &builder) {
  if (auto aggregated =
          dyn_cast<linalg::AggregatedOpInterface>(op.getOperation()))
    return aggregated.decomposeOperation(builder);
  if (auto norm = dyn_cast<NormOpInterface>(op.getOperation()))
    return decomposeNorm(norm, builder);
  if (auto norm = dyn_cast<NormBackwardOpInterface>(op.getOperation()))
    return decomposeNormBackward(norm, builder);
  return failure();
}

FailureOr<SmallVector<Value>> norm::decomposeRowOp(RowOpInterface op,
                                                   OpBuilder &builder) {
  FailureOr<SmallVector<Value>> values = decompose(op, builder);
  if (succeeded(values))
    warnIfEpsilonVanishes(op);
  return values;
}

namespace {
struct DecomposePattern : public OpInterfaceRewritePattern<RowOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(RowOpInterface op,
                                PatternRewriter &rewriter) const override {
    FailureOr<SmallVector<Value>> values = decomposeRowOp(op, rewriter);
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
