//===- CanonicalizeResults.cpp - Results without uses -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Canonicalize.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::norm;

static bool isUnused(Value result) { return result && result.use_empty(); }

LogicalResult norm::replaceByContract(RewriterBase &rewriter,
                                      NormBackwardOpInterface op,
                                      BackwardContract contract) {
  // What nothing indexes has no axes to state.
  if (!contract.forward.scale && !contract.dscaleType && !contract.dshiftType)
    contract.forward.affineAxes.reset();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  Operation *built = op.rebuild(rewriter, op->getLoc(), contract);
  if (!built)
    return rewriter.notifyMatchFailure(op, "the op cannot be rebuilt");
  built->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  auto rebuilt = cast<NormBackwardOpInterface>(built);
  auto replace = [&](Value result, Value replacement) {
    if (!result || result.use_empty())
      return;
    if (replacement.getType() != result.getType())
      replacement = tensor::CastOp::create(rewriter, op->getLoc(),
                                           result.getType(), replacement);
    rewriter.replaceAllUsesWith(result, replacement);
  };
  replace(op.getDx(), rebuilt.getDx());
  replace(op.getDscaleOrNull(), rebuilt.getDscaleOrNull());
  replace(op.getDshiftOrNull(), rebuilt.getDshiftOrNull());
  rewriter.eraseOp(op);
  return success();
}

namespace {
/// C1 on the named forward ops.
struct DropUnusedResults : RulePattern<NormOpInterface> {
  DropUnusedResults(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C1", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    NormContract contract = NormContract::get(op);
    SmallVector<StringRef> dropped;
    auto drop = [&](Value result, bool &wanted, StringRef name) {
      if (!isUnused(result))
        return;
      wanted = false;
      dropped.push_back(name);
    };
    // A dead norm is left to dead code elimination.
    if (op->use_empty())
      return failure();
    drop(op.getMeanOrNull(), contract.wantsMean, "mean");
    drop(op.getVarianceOrNull(), contract.wantsVariance, "variance");
    drop(op.getRstdOrNull(), contract.wantsRstd, "rstd");
    dropSum(op, contract, dropped);
    dropRunning(op, contract, dropped);
    if (dropped.empty())
      return failure();
    rule.applied(op, "dropped unused results: " + llvm::join(dropped, ", "));
    return replaceByContract(rewriter, op, contract);
  }

private:
  /// A stored sum is rounded to the type of `sum`, or of x where there is none:
  /// dropping it must not move that rounding.
  void dropSum(NormOpInterface op, NormContract &contract,
               SmallVectorImpl<StringRef> &dropped) const {
    if (!isUnused(op.getSumOrNull()))
      return;
    FloatType xType = cast<FloatType>(op.getInput().getType().getElementType());
    if (contract.sumRounding == SumRounding::Stored &&
        contract.sumType != xType) {
      // Rounded to the compute type, which is what follows anyway.
      NormContract unrounded = contract;
      unrounded.sumRounding = SumRounding::Compute;
      bool isComputed =
          contract.sumType == contract.computeType &&
          correctsMeanAgain(op, contract) == correctsMeanAgain(op, unrounded);
      if (failed(rule.require(op, "sum-type", isComputed,
                              "what is normalized is rounded to the type of "
                              "'sum'")))
        return;
      if (isComputed)
        contract.sumRounding = SumRounding::Compute;
    }
    contract.sumType = nullptr;
    dropped.push_back("sum");
  }

  void dropRunning(NormOpInterface op, NormContract &contract,
                   SmallVectorImpl<StringRef> &dropped) const {
    RunningUpdate running = op.getRunningUpdate();
    bool mean = isUnused(running.newMean),
         variance = isUnused(running.newVariance);
    if (mean != variance) {
      (void)rule.refuse(op, "running-pair",
                        "one of the running results is used");
      return;
    }
    if (!mean)
      return;
    contract.runningMean = contract.runningVariance = nullptr;
    contract.momentum.reset();
    contract.momentumValue = nullptr;
    contract.runningCorrection = 1;
    dropped.push_back("running values");
  }
};

/// C32: gradients of scale and shift of the named ops.
struct DropUnusedGradients : RulePattern<NormBackwardOpInterface> {
  DropUnusedGradients(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C32", policy) {}

  LogicalResult matchAndRewrite(NormBackwardOpInterface op,
                                PatternRewriter &rewriter) const override {
    BackwardContract contract = BackwardContract::get(op);
    bool scale = isUnused(op.getDscaleOrNull()),
         shift = isUnused(op.getDshiftOrNull());
    if (op->use_empty() || (!scale && !shift))
      return failure();
    if (scale)
      contract.dscaleType = nullptr;
    if (shift)
      contract.dshiftType = nullptr;
    rule.applied(op,
                 Twine("dropped unused gradients: ") + (scale ? "dscale" : "") +
                     (scale && shift ? ", " : "") + (shift ? "dshift" : ""));
    return replaceByContract(rewriter, op, contract);
  }
};

/// The op without those results for which `isDropped` holds; all others are
/// replaced.
template <typename OpTy>
static void dropResults(PatternRewriter &rewriter, OpTy op,
                        function_ref<bool(OpResult)> isDropped) {
  OperationState state(op.getLoc(), op->getName());
  state.addOperands(op->getOperands());
  state.addAttributes(op->getAttrs());
  SmallVector<int32_t> segments;
  SmallVector<OpResult> kept;
  for (unsigned i = 0, e = OpTy::getResultGroups().size(); i < e; ++i) {
    auto [start, length] = op.getODSResultIndexAndLength(i);
    OpResult result = length ? op->getOpResult(start) : OpResult();
    bool stays = result && !isDropped(result);
    segments.push_back(stays ? 1 : 0);
    if (stays)
      kept.push_back(result);
  }
  for (OpResult result : kept)
    state.addTypes(result.getType());
  if constexpr (OpTy::template hasTrait<OpTrait::AttrSizedResultSegments>())
    state.attributes.set("resultSegmentSizes",
                         rewriter.getDenseI32ArrayAttr(segments));
  if constexpr (std::is_same_v<OpTy, BackwardMomentsOp>)
    if (!op.getScale() && !segments[2] && !segments[3])
      state.attributes.erase("affine_axes");
  Operation *smaller = rewriter.create(state);
  for (auto [old, result] : llvm::zip_equal(kept, smaller->getResults()))
    rewriter.replaceAllUsesWith(old, result);
  rewriter.eraseOp(op);
}

/// C1 (statistics) and C32 (gradients) on the statistics algebra: at least one
/// result is used, else the op is dead.
template <typename OpTy> struct DropUnusedStatistics : OpRule<OpTy> {
  DropUnusedStatistics(MLIRContext *context, StringLiteral id,
                       const RewritePolicy &policy, bool gradients)
      : OpRule<OpTy>(context, id, policy), gradients(gradients) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (op->use_empty())
      return failure();
    auto isDropped = [&](OpResult result) {
      unsigned number = result.getResultNumber();
      return result.use_empty() && isOptional(op, number) &&
             (resultRole(op, number) == TensorRole::Affine) == gradients;
    };
    if (llvm::none_of(op->getResults(), isDropped))
      return failure();
    this->rule.applied(op, "dropped unused results");
    dropResults(rewriter, op, isDropped);
    return success();
  }

private:
  static bool isOptional(OpTy op, unsigned number) {
    for (auto [i, group] : llvm::enumerate(OpTy::getResultGroups())) {
      auto [start, length] = op.getODSResultIndexAndLength(i);
      if (number >= start && number < start + length)
        return group.isOptional();
    }
    return false;
  }

  bool gradients;
};
} // namespace

void norm::populateUnusedResultPatterns(RewritePatternSet &patterns,
                                        const RewritePolicy &policy) {
  MLIRContext *context = patterns.getContext();
  patterns.add<DropUnusedResults, DropUnusedGradients>(context, policy);
  patterns.add<
      DropUnusedStatistics<MomentsOp>, DropUnusedStatistics<CombineMomentsOp>,
      DropUnusedStatistics<RstdOp>, DropUnusedStatistics<BackwardMomentsOp>>(
      context, StringLiteral("C1"), policy, /*gradients=*/false);
  patterns.add<DropUnusedStatistics<BackwardMomentsOp>>(
      context, StringLiteral("C32"), policy, /*gradients=*/true);
}
