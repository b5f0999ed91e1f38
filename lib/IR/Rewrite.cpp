//===- Rewrite.cpp - Rewrites that say why they do not apply -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/IR/Rewrite.h"
#include "Norm/IR/RewriteTesting.h"

#include "Norm/IR/Remarks.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::norm;

/// The precondition that is taken as given.
static std::string &disabledPrecondition() {
  static std::string name;
  return name;
}

void norm::disablePreconditionForTesting(StringRef name) {
  disabledPrecondition() = name.str();
}

//===----------------------------------------------------------------------===//
// Remarks
//===----------------------------------------------------------------------===//

LogicalResult Rule::refuse(Operation *op, StringRef condition,
                           const Twine &reason) const {
  emitRemark(remark::RemarkKind::RemarkMissed, op, policy.pass,
             (id + "." + condition).str(), reason);
  return failure();
}

LogicalResult Rule::require(Operation *op, StringRef condition, bool holds,
                            const Twine &reason) const {
  StringRef disabled = disabledPrecondition();
  if (holds || (disabled.consume_front(id) && disabled.consume_front(".") &&
                disabled == condition))
    return success();
  return refuse(op, condition, reason);
}

LogicalResult Rule::requireReal(Operation *op) const {
  return require(op, "real", policy.real,
                 "it changes how results round: needs fp-policy=real");
}

LogicalResult Rule::requireNoNaN(Operation *op) const {
  return require(op, "nnan", policy.nnan, "a NaN would be lost: needs nnan");
}

LogicalResult Rule::requireNoInf(Operation *op) const {
  return require(op, "ninf", policy.ninf,
                 "what an infinity makes NaN would be lost: needs ninf");
}

LogicalResult Rule::requireNoSignedZero(Operation *op) const {
  return require(op, "nsz", policy.nsz,
                 "the sign of a zero would be lost: needs nsz");
}

void Rule::applied(Operation *op, const Twine &what) const {
  emitRemark(remark::RemarkKind::RemarkPassed, op, policy.pass, id, what);
}

//===----------------------------------------------------------------------===//
// Rebuilding
//===----------------------------------------------------------------------===//

NormResults NormResults::get(NormOpInterface op) {
  RunningUpdate running = op.getRunningUpdate();
  return {op.getNormalized(), op.getMeanOrNull(), op.getVarianceOrNull(),
          op.getRstdOrNull(), op.getSumOrNull(),  running.newMean,
          running.newVariance};
}

NormOpInterface norm::rebuildNorm(RewriterBase &rewriter, NormOpInterface op,
                                  const NormContract &contract) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  Operation *rebuilt = op.rebuild(rewriter, op->getLoc(), contract);
  if (!rebuilt)
    return {};
  rebuilt->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return cast<NormOpInterface>(rebuilt);
}

void norm::replaceNorm(RewriterBase &rewriter, NormOpInterface op,
                       const NormResults &replacements) {
  NormResults results = NormResults::get(op);
  auto replace = [&](Value result, Value replacement) {
    if (!result || result.use_empty())
      return;
    assert(replacement && "expected a replacement of a result that is used");
    if (replacement.getType() != result.getType())
      replacement = tensor::CastOp::create(rewriter, op->getLoc(),
                                           result.getType(), replacement);
    rewriter.replaceAllUsesWith(result, replacement);
  };
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  replace(results.y, replacements.y);
  replace(results.mean, replacements.mean);
  replace(results.variance, replacements.variance);
  replace(results.rstd, replacements.rstd);
  replace(results.sum, replacements.sum);
  replace(results.runningMean, replacements.runningMean);
  replace(results.runningVariance, replacements.runningVariance);
  rewriter.eraseOp(op);
}

LogicalResult norm::replaceByContract(RewriterBase &rewriter,
                                      NormOpInterface op,
                                      const NormContract &contract) {
  NormOpInterface rebuilt = rebuildNorm(rewriter, op, contract);
  if (!rebuilt)
    return rewriter.notifyMatchFailure(op, "the op cannot be rebuilt");
  replaceNorm(rewriter, op, NormResults::get(rebuilt));
  return success();
}
