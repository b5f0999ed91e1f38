//===- FuseResidual.cpp - norm-fuse-residual ------------------------------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "Norm/Analysis/Addition.h"
#include "Norm/Analysis/Placement.h"
#include "Norm/IR/NormOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::norm {
#define GEN_PASS_DEF_FUSERESIDUALPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

static remark::RemarkOpts options(StringRef name, Operation *op) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  return remark::RemarkOpts::name(name)
      .category("norm-fuse-residual")
      .function(function ? function.getName() : StringRef());
}

/// Says why the sum that `op` normalizes stays outside.
static LogicalResult refuse(NormOpInterface op, StringRef condition,
                            const Twine &reason) {
  remark::missed(op->getLoc(), options(condition, op))
      << remark::reason("{0}", reason.str());
  return failure();
}

/// Whether `a` is the later one of two values, in an order that does not depend
/// on how the addition lists its operands: the branch comes after the stream it
/// left, and arguments keep their order.
static bool isBranch(Value a, Value b) {
  auto argA = dyn_cast<BlockArgument>(a), argB = dyn_cast<BlockArgument>(b);
  if (argA && argB)
    return argA.getArgNumber() < argB.getArgNumber();
  if (argA || argB)
    return !argA;
  Operation *defA = a.getDefiningOp(), *defB = b.getDefiningOp();
  if (defA == defB)
    return cast<OpResult>(a).getResultNumber() <
           cast<OpResult>(b).getResultNumber();
  return defA->getBlock() == defB->getBlock() && defB->isBeforeInBlock(defA);
}

namespace {
/// The operands of the residual form that means the same as the addition.
struct ResidualForm {
  Value x, residual;
  FloatType sumType;
  SumRounding rounding = SumRounding::Stored;
};

struct FuseResidual : public norm::impl::FuseResidualPassBase<FuseResidual> {
  void runOnOperation() override {
    SmallVector<NormOpInterface> ops;
    getOperation()->walk([&](NormOpInterface op) { ops.push_back(op); });
    for (NormOpInterface op : ops)
      (void)fuse(op);
    // With every sum where it belongs, say where each norm stands.
    getOperation()->walk([&](NormOpInterface op) {
      remark::analysis(op->getLoc(), options("placement", op))
          << getPlacementName(op);
    });
  }

private:
  LogicalResult fuse(NormOpInterface op);
  FailureOr<Operation *> findPosition(NormOpInterface op, Value sum,
                                      const ResidualForm &form);
};
} // namespace

static FloatType elementType(Value value) {
  return cast<FloatType>(
      cast<RankedTensorType>(value.getType()).getElementType());
}

/// Chooses operands and rounding so that what is normalized stays the same.
static FailureOr<ResidualForm> residualForm(NormOpInterface op,
                                            const Addition &addition) {
  ResidualForm form;
  form.sumType = addition.roundedTo ? addition.roundedTo : addition.type;
  // With `affine_in result`, x's type is where the normalized value is rounded.
  bool keepsXType = op.getAffineIn() == AffineIn::Result;
  FloatType xType = elementType(op.getInput());

  Addition::Addend branch = addition.lhs, stream = addition.rhs;
  if (!isBranch(branch.narrow, stream.narrow))
    std::swap(branch, stream);
  // Rounding to the sum's type is what x's own type asks for, if one of the
  // operands has it.
  for (bool isSwapped : {false, true}) {
    if (isSwapped)
      std::swap(branch, stream);
    if (elementType(branch.narrow) == form.sumType &&
        (!keepsXType || form.sumType == xType)) {
      form.x = branch.narrow;
      form.residual = stream.narrow;
      return form;
    }
  }
  std::swap(branch, stream);
  // Narrow operands, summed and normalized in the compute type.
  if (!keepsXType && form.sumType == op.getComputeTypeOrDefault() &&
      !addition.roundedTo) {
    form.x = branch.narrow;
    form.residual = stream.narrow;
    form.rounding = SumRounding::Compute;
    return form;
  }
  // Wide copies of narrow operands.
  for (bool isSwapped : {false, true}) {
    if (isSwapped)
      std::swap(branch, stream);
    if (elementType(branch.tensor) == form.sumType && form.sumType == xType) {
      form.x = branch.tensor;
      form.residual = stream.tensor;
      return form;
    }
  }
  return failure();
}

/// Where the fused op can stand: after its operands and before every other user
/// of the sum.
FailureOr<Operation *> FuseResidual::findPosition(NormOpInterface op, Value sum,
                                                  const ResidualForm &form) {
  Operation *position = op;
  for (Operation *user : sum.getUsers()) {
    Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
    if (!ancestor)
      return failure();
    if (ancestor->isBeforeInBlock(position))
      position = ancestor;
  }
  DominanceInfo dominance(getOperation());
  SmallVector<Value> operands = {form.x, form.residual};
  for (Value operand : {Value(op.getScaleOrNull()), Value(op.getShiftOrNull())})
    if (operand)
      operands.push_back(operand);
  for (Value operand : operands)
    // The sum as a gain would be a result of the op that it feeds.
    if (operand == sum || !dominance.properlyDominates(operand, position))
      return failure();
  return position;
}

/// Erases `value`'s producer and what only it used, if dead.
static void eraseIfDead(RewriterBase &rewriter, Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isOpTriviallyDead(op))
    return;
  llvm::SetVector<Value> operands;
  op->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands())
      if (!op->isAncestor(operand.getParentRegion()->getParentOp()))
        operands.insert(operand);
  });
  rewriter.eraseOp(op);
  for (Value operand : operands)
    eraseIfDead(rewriter, operand);
}

LogicalResult FuseResidual::fuse(NormOpInterface op) {
  Value sum = op.getInput();
  std::optional<Addition> addition = matchAddition(sum);
  if (!addition)
    return failure();
  if (op.getResidualOrNull())
    return refuse(op, "residual", "the op has a residual already");
  if (!addition->isFull())
    return refuse(op, "broadcast",
                  "one operand of the sum is broadcast; a residual has the "
                  "shape of x");
  // A cast between: other users of the unrounded sum would keep the addition.
  bool hasCast = addition->sum != sum;
  if (hasCast && addition->sum && !addition->sum.hasOneUse())
    return refuse(op, "cast",
                  "the sum has users before the cast that rounds it");
  FailureOr<ResidualForm> form = residualForm(op, *addition);
  if (failed(form))
    return refuse(op, "type", "no sum_rounding says how this sum is rounded");

  bool isUsed = !sum.hasOneUse();
  if (isUsed && elementType(sum) != form->sumType)
    return refuse(op, "cast",
                  "other users need the sum in a wider type than it is "
                  "rounded to");
  FailureOr<Operation *> position = findPosition(op, sum, *form);
  if (failed(position))
    return refuse(op, "dominance",
                  "an operand of the norm comes after a user of the sum");

  NormContract contract = NormContract::get(op);
  contract.x = form->x;
  contract.residual = form->residual;
  contract.sumRounding = form->rounding;
  contract.sumType = isUsed ? form->sumType : FloatType();

  IRRewriter rewriter(op->getContext());
  rewriter.setInsertionPoint(*position);
  Location loc = rewriter.getFusedLoc({sum.getLoc(), op->getLoc()});
  Operation *fused = op.rebuild(rewriter, loc, contract);
  if (!fused)
    return refuse(op, "rebuild", "the op cannot be rebuilt");
  auto fusedOp = cast<NormOpInterface>(fused);
  // All results but the sum, which the op did not have, in the same order.
  SmallVector<Value> results;
  for (OpResult result : fused->getResults())
    if (result != fusedOp.getSumOrNull())
      results.push_back(result);
  rewriter.replaceAllUsesWith(op->getResults(), results);
  rewriter.eraseOp(op);
  if (isUsed)
    rewriter.replaceAllUsesWith(sum, fusedOp.getSumOrNull());
  eraseIfDead(rewriter, sum);
  remark::passed(loc, options("fused", fused))
      << (Twine(fused->getName().getStringRef()) + " of a " +
          stringifySumRounding(form->rounding) + " sum")
             .str();
  return success();
}
