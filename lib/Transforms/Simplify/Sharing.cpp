//===- Sharing.cpp - What several norms have in common ---------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// C27: norms of one x (parallel attention and MLP, say) take its statistics
// once. In the statistics algebra this keeps every bit. Named norms have to be
// rewritten in the algebra first, where the factor is rounded to the compute
// type before it is applied: the reference rounds once less, so that step is
// gate R.
//
//===----------------------------------------------------------------------===//

#include "Simplify.h"

#include "Norm/IR/NormOps.h"
#include "Norm/Transforms/Generalize.h"

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// Named norms
//===----------------------------------------------------------------------===//

/// The first fact in which the statistics of two norms of one x differ; null
/// if there is none.
static const char *firstDifference(NormOpInterface a, NormOpInterface b) {
  auto groups = [](NormOpInterface op) {
    return std::make_pair(op.getGroupedAxis(), op.getNumGroups());
  };
  if (a.getReducedAxes() != b.getReducedAxes() || groups(a) != groups(b))
    return "axes";
  if (a.getStatistic() != b.getStatistic())
    return "statistic";
  if (a.getEpsilon() != b.getEpsilon() ||
      a.getZeroPolicy() != b.getZeroPolicy())
    return "epsilon";
  if (a.getCorrection() != b.getCorrection())
    return "correction";
  if (a.getComputeTypeOrDefault() != b.getComputeTypeOrDefault())
    return "compute type";
  return nullptr;
}

namespace {
/// C27 for named norms: writes all of one x with the same facts in the algebra.
struct ShareNamed : RulePattern<NormOpInterface> {
  ShareNamed(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C27", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    SmallVector<NormOpInterface> alike{op};
    const char *difference = nullptr;
    for (Operation *user : op.getInput().getUsers()) {
      auto other = dyn_cast<NormOpInterface>(user);
      if (!other || other == op || other.getInput() != op.getInput() ||
          llvm::is_contained(alike, other) || other.hasGivenStatistics() ||
          op.hasGivenStatistics() || other->getBlock() != op->getBlock())
        continue;
      const char *fact = firstDifference(op, other);
      // The first of the norms speaks for all.
      if (!fact && other->isBeforeInBlock(op))
        return failure();
      if (fact)
        difference = fact;
      else
        alike.push_back(other);
    }
    if (alike.size() == 1)
      return difference ? rule.refuse(op, "same-facts",
                                      "another norm of x has another " +
                                          Twine(difference))
                        : failure();
    if (failed(rule.requireReal(op)))
      return failure();
    if (failed(rule.require(
            op, "mean-pair",
            !op.isCentred() || !op.getComputeTypeOrDefault().isF64(),
            "the mean of f64 data is a pair, of which the algebra has one "
            "number")))
      return failure();
    for (NormOpInterface norm : alike) {
      if (norm.getResidualOrNull())
        return rule.refuse(op, "no-residual",
                           "expected norms of x alone, got a residual");
      if (norm.getGroupedAxis())
        return rule.refuse(op, "no-groups",
                           "expected no groups of channels: each norm has its "
                           "own view of them");
      if (norm.getRunningUpdate())
        return rule.refuse(op, "no-running",
                           "two batch norms that update running statistics are "
                           "never merged");
    }
    for (NormOpInterface norm : alike) {
      rewriter.setInsertionPoint(norm);
      FailureOr<SmallVector<Value>> values =
          generalizeNorm(cast<RowOpInterface>(norm.getOperation()), rewriter);
      // Nothing that it refuses is left.
      if (failed(values))
        return failure();
      rule.applied(norm, "its statistics are shared with other norms of x");
      rewriter.replaceOp(norm, *values);
    }
    return success();
  }
};

//===----------------------------------------------------------------------===//
// The statistics algebra
//===----------------------------------------------------------------------===//

/// C27 in the algebra: two ops that compute the same, each with the results
/// that somebody asked it for, become one with all of them.
template <typename OpTy> struct ShareStatistics : OpRewritePattern<OpTy> {
  ShareStatistics(MLIRContext *context, const RewritePolicy &policy)
      : OpRewritePattern<OpTy>(context), rule("C27", policy) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    for (Operation *user : op->getOperand(0).getUsers()) {
      auto first = dyn_cast<OpTy>(user);
      if (!first || first == op || first->getBlock() != op->getBlock() ||
          !first->isBeforeInBlock(op) || !computesTheSame(first, op))
        continue;
      merge(first, op, rewriter);
      return success();
    }
    return failure();
  }

private:
  static bool computesTheSame(MomentsOp a, MomentsOp b) {
    return a.getX() == b.getX() && a.getMask() == b.getMask() &&
           a.getReducedAxes() == b.getReducedAxes() &&
           a.getAbout() == b.getAbout() &&
           a.getComputeTypeOrDefault() == b.getComputeTypeOrDefault() &&
           haveEqualTypes(resultsOf(a), resultsOf(b));
  }
  static bool computesTheSame(RstdOp a, RstdOp b) {
    return a.getM2() == b.getM2() && a.getCount() == b.getCount() &&
           a.getEpsilon() == b.getEpsilon() &&
           a.getZeroPolicy() == b.getZeroPolicy() &&
           a.getCorrection() == b.getCorrection() &&
           a.getComputeTypeOrDefault() == b.getComputeTypeOrDefault() &&
           haveEqualTypes(resultsOf(a), resultsOf(b));
  }
  static SmallVector<Value> resultsOf(MomentsOp op) {
    return {op.getCount(), op.getMean(), op.getM2()};
  }
  static SmallVector<Value> resultsOf(RstdOp op) {
    return {op.getRstd(), op.getVariance()};
  }
  static bool haveEqualTypes(ArrayRef<Value> a, ArrayRef<Value> b) {
    return llvm::all_of(llvm::zip_equal(a, b), [](auto pair) {
      auto [one, other] = pair;
      return !one || !other || one.getType() == other.getType();
    });
  }

  static Operation *build(OpBuilder &b, MomentsOp op, ArrayRef<Type> types) {
    return MomentsOp::create(b, op.getLoc(), types[0], types[1], types[2],
                             op.getX(), op.getMask(), op.getAxesAttr(),
                             op.getAboutAttr(), op.getComputeTypeAttr());
  }
  static Operation *build(OpBuilder &b, RstdOp op, ArrayRef<Type> types) {
    return RstdOp::create(b, op.getLoc(), types[0], types[1], op.getM2(),
                          op.getCount(), op.getEpsilon(),
                          op.getComputeTypeAttr(), op.getCorrectionAttr(),
                          op.getZeroPolicyAttr());
  }

  void merge(OpTy first, OpTy op, PatternRewriter &rewriter) const {
    SmallVector<Value> ofFirst = resultsOf(first), ofOp = resultsOf(op);
    SmallVector<Type> types;
    bool hasAll = true;
    for (auto [one, other] : llvm::zip_equal(ofFirst, ofOp)) {
      types.push_back(one ? one.getType() : other ? other.getType() : Type());
      hasAll &= one || !other;
    }
    rule.applied(op, "statistics of x are taken once");
    OpTy all = first;
    if (!hasAll) {
      rewriter.setInsertionPoint(first);
      all = cast<OpTy>(build(rewriter, first, types));
      all->setDiscardableAttrs(first->getDiscardableAttrDictionary());
    }
    SmallVector<Value> ofAll = resultsOf(all);
    auto replace = [&](OpTy old, ArrayRef<Value> results) {
      for (auto [result, replacement] : llvm::zip_equal(results, ofAll))
        if (result)
          rewriter.replaceAllUsesWith(result, replacement);
      rewriter.eraseOp(old);
    };
    if (!hasAll)
      replace(first, ofFirst);
    replace(op, ofOp);
  }

  Rule rule;
};
} // namespace

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

void norm::populateSimplifySharingPatterns(RewritePatternSet &patterns,
                                           const RewritePolicy &policy) {
  patterns.add<ShareNamed, ShareStatistics<MomentsOp>, ShareStatistics<RstdOp>>(
      patterns.getContext(), policy);
}
