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
#include "Norm/IR/Remarks.h"
#include "Norm/IR/Rewrite.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::norm {
#define GEN_PASS_DEF_FUSERESIDUALPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

static constexpr StringLiteral kPass = "norm-fuse-residual";

static FloatType elementType(Value value) {
  return cast<FloatType>(
      cast<RankedTensorType>(value.getType()).getElementType());
}

/// Foreign ops need not be able to.
static LogicalResult refuseToRebuild(Operation *op, StringRef rule) {
  emitRemark(remark::RemarkKind::RemarkMissed, op, kPass,
             (rule + ".rebuild").str(), "the op cannot be rebuilt");
  return failure();
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

//===----------------------------------------------------------------------===//
// F1: the addition before a norm
//===----------------------------------------------------------------------===//

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
  /// The dimensions of x that those of `residual` index, where it has to be
  /// broadcast first.
  std::optional<ArrayRef<int64_t>> residualDims = std::nullopt;
};
} // namespace

/// The narrowest tensor that is added, of x's shape if there is one.
static Value narrowest(const Addition::Addend &addend) {
  return addend.isFull() ? addend.narrow : addend.source;
}

/// Chooses operands and rounding so that what is normalized stays the same.
static FailureOr<ResidualForm> residualForm(NormOpInterface op,
                                            const Addition &addition) {
  using Addend = Addition::Addend;
  FloatType sumType = addition.roundedTo ? addition.roundedTo : addition.type;
  // With `affine_in result`, x's type is where the normalized value is rounded.
  bool keepsXType = op.getAffineIn() == AffineIn::Result;
  FloatType xType = elementType(op.getInput());

  // As x, in order of preference: what is repeated is never the branch.
  const Addend *lhs = &addition.lhs, *rhs = &addition.rhs;
  SmallVector<std::pair<const Addend *, const Addend *>, 2> orders;
  if (lhs->isRepeated() == rhs->isRepeated() && lhs->isFull() &&
      rhs->isFull()) {
    if (!isBranch(lhs->narrow, rhs->narrow))
      std::swap(lhs, rhs);
    orders = {{lhs, rhs}, {rhs, lhs}};
  } else {
    if (!lhs->isFull() || (lhs->isRepeated() && rhs->isFull()))
      std::swap(lhs, rhs);
    if (!lhs->isFull())
      return failure();
    orders = {{lhs, rhs}};
  }

  auto form = [&](Value x, Value residual, const Addend *addend) {
    ResidualForm found{x, residual, sumType};
    if (!addend->isFull())
      found.residualDims = addend->dims;
    return found;
  };
  // f16 is no compute type of bf16 data, nor the other way round (V3).
  FloatType compute = op.getComputeTypeOrDefault();
  auto canCompute = [&](FloatType type) {
    return type == compute || type.getWidth() != compute.getWidth();
  };
  // Rounding to the sum's type is what x's own type asks for, if one of the
  // operands has it.
  for (auto [branch, stream] : orders)
    if (elementType(branch->narrow) == sumType && canCompute(sumType) &&
        (!keepsXType || sumType == xType))
      return form(branch->narrow, narrowest(*stream), stream);
  // Narrow operands, summed and normalized in the compute type.
  auto [branch, stream] = orders.front();
  if (!keepsXType && sumType == compute && !addition.roundedTo &&
      canCompute(elementType(branch->narrow))) {
    ResidualForm found = form(branch->narrow, narrowest(*stream), stream);
    found.rounding = SumRounding::Compute;
    return found;
  }
  // Wide copies of narrow operands.
  for (auto [branch, stream] : orders)
    if (elementType(branch->tensor) == sumType && sumType == xType)
      return form(branch->tensor,
                  stream->isFull() ? stream->tensor : stream->source, stream);
  return failure();
}

/// Where the fused op can stand: after its operands and before every other user
/// of the sum.
static FailureOr<Operation *> findPosition(NormOpInterface op, Value sum,
                                           const ResidualForm &form) {
  Operation *position = op;
  for (Operation *user : sum.getUsers()) {
    Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
    if (!ancestor)
      return failure();
    if (ancestor->isBeforeInBlock(position))
      position = ancestor;
  }
  DominanceInfo dominance;
  SmallVector<Value> operands = {form.x, form.residual};
  for (Value operand : op->getOperands())
    if (operand != sum)
      operands.push_back(operand);
  // The sum as a gain would be a result of the op that it feeds.
  if (llvm::count(op->getOperands(), sum) > 1 ||
      !llvm::all_of(operands, [&](Value operand) {
        return dominance.properlyDominates(operand, position);
      }))
    return failure();
  return position;
}

/// `source`, whose dimensions index `dims` of x, as a tensor of x's shape.
static Value broadcastTo(OpBuilder &builder, Location loc, Value source,
                         ArrayRef<int64_t> dims, Value x) {
  // Dimensions of extent 1 go into the group of their neighbour.
  SmallVector<ReassociationIndices> groups;
  SmallVector<int64_t> indexed;
  for (auto [position, dim] : llvm::enumerate(dims)) {
    if (groups.empty() || (dim >= 0 && groups.size() == indexed.size()))
      groups.emplace_back();
    groups.back().push_back(position);
    if (dim >= 0)
      indexed.push_back(dim);
  }
  if (indexed.size() != dims.size()) {
    if (indexed.empty())
      groups.clear();
    source = tensor::CollapseShapeOp::create(builder, loc, source, groups);
  }
  int64_t rank = cast<RankedTensorType>(x.getType()).getRank();
  Value full = tensor::EmptyOp::create(builder, loc,
                                       tensor::getMixedSizes(builder, loc, x),
                                       elementType(source));
  return linalg::BroadcastOp::create(builder, loc, source, full,
                                     complementAxes(indexed, rank))
      ->getResult(0);
}

static LogicalResult fuseResidual(RewriterBase &rewriter, NormOpInterface op) {
  Value sum = op.getInput();
  std::optional<Addition> addition = matchAddition(sum);
  if (!addition)
    return failure();
  Rule rule("F1", {kPass});
  if (failed(rule.require(op, "residual", !op.getResidualOrNull(),
                          "the op has a residual already")))
    return failure();
  const Addition::Addend &lhs = addition->lhs, &rhs = addition->rhs;
  if (!narrowest(lhs) || !narrowest(rhs))
    return rule.refuse(op, "operand",
                       "an operand of the sum is a scalar, transposed, or "
                       "computed in the addition");
  if (!lhs.isFull() && !rhs.isFull())
    return rule.refuse(op, "shape", "no operand of the sum has its shape");

  bool isUsed = !sum.hasOneUse();
  auto isBias = [](const Addition::Addend &addend) {
    return addend.isRepeated() && llvm::count_if(addend.dims, [](int64_t dim) {
                                    return dim >= 0;
                                  }) <= 1;
  };
  if (failed(rule.require(op, "bias", isUsed || !(isBias(lhs) || isBias(rhs)),
                          "the addition of a bias, for the norm alone, stays "
                          "an elementwise producer")))
    return failure();
  // A cast between: other users of the unrounded sum would keep the addition.
  bool hasCast = addition->sum != sum;
  if (failed(rule.require(
          op, "cast", !hasCast || !addition->sum || addition->sum.hasOneUse(),
          "the sum has users before the cast that rounds it")))
    return failure();
  FailureOr<ResidualForm> form = residualForm(op, *addition);
  if (failed(form))
    return rule.refuse(op, "rounding",
                       "no sum_rounding says how this sum is rounded");
  if (isUsed && elementType(sum) != form->sumType)
    return rule.refuse(op, "type",
                       "other users need the sum in a wider type than it is "
                       "rounded to");
  FailureOr<Operation *> position = findPosition(op, sum, *form);
  if (failed(position))
    return rule.refuse(op, "dominance",
                       "an operand of the norm comes after a user of the sum");

  rewriter.setInsertionPoint(*position);
  NormContract contract = NormContract::get(op);
  contract.x = form->x;
  contract.residual = form->residualDims
                          ? broadcastTo(rewriter, sum.getLoc(), form->residual,
                                        *form->residualDims, form->x)
                          : form->residual;
  contract.sumRounding = form->rounding;
  contract.sumType = isUsed ? form->sumType : FloatType();
  Operation *fused = op.rebuild(
      rewriter, rewriter.getFusedLoc({sum.getLoc(), op->getLoc()}), contract);
  if (!fused) {
    if (form->residualDims)
      eraseIfDead(rewriter, contract.residual);
    return refuseToRebuild(op, "F1");
  }
  rule.applied(fused, Twine(fused->getName().getStringRef()) + " of a " +
                          stringifySumRounding(form->rounding) + " sum");
  NormResults results = NormResults::get(cast<NormOpInterface>(fused));
  replaceNorm(rewriter, op, results);
  if (isUsed)
    rewriter.replaceAllUsesWith(sum, results.sum);
  eraseIfDead(rewriter, sum);
  return success();
}

//===----------------------------------------------------------------------===//
// F11: the addition after a gradient
//===----------------------------------------------------------------------===//

/// Where a gradient that adds `dsum` as well can stand: where it is, or where
/// its result was added to.
static FailureOr<Operation *> findPosition(NormBackwardOpInterface op,
                                           Value dsum, Operation *addition) {
  DominanceInfo dominance;
  if (dominance.properlyDominates(dsum, op))
    return op.getOperation();
  if (op->getBlock() != addition->getBlock() ||
      !llvm::all_of(op->getUsers(), [&](Operation *user) {
        return user == addition || dominance.properlyDominates(addition, user);
      }))
    return failure();
  return addition;
}

static LogicalResult fuseGradient(RewriterBase &rewriter,
                                  NormBackwardOpInterface op) {
  Value dx = op.getDx(), dsum;
  Operation *user = nullptr;
  std::optional<Addition> addition;
  for (Operation *candidate : dx.getUsers()) {
    if (candidate->getNumResults() != 1)
      continue;
    addition = matchAddition(candidate->getResult(0));
    if (!addition ||
        (addition->lhs.tensor == dx) == (addition->rhs.tensor == dx))
      continue;
    user = candidate;
    const Addition::Addend &other =
        addition->lhs.tensor == dx ? addition->rhs : addition->lhs;
    if (other.isFull() && !other.isRepeated())
      dsum = other.narrow;
    break;
  }
  if (!user)
    return failure();
  Rule rule("F11", {kPass});
  if (!dsum)
    return rule.refuse(op, "shape",
                       "what is added to dx is no tensor of its shape");
  if (failed(rule.require(op, "dsum", !op.getDsumOrNull(),
                          "the op adds another gradient already")) ||
      failed(rule.require(op, "users", dx.hasOneUse(),
                          "dx has users before the addition")))
    return failure();
  // The op adds in its compute type, never below f32, and rounds once.
  FloatType work = op.getComputeTypeOrDefault();
  if (work.getWidth() < 32)
    work = rewriter.getF32Type();
  Value result = user->getResult(0);
  FloatType resultType =
      addition->roundedTo ? addition->roundedTo : addition->type;
  if (failed(rule.require(op, "rounding",
                          elementType(dx) == work && addition->type == work,
                          "dx is rounded before the addition, or added in "
                          "another type than it is computed in")))
    return failure();
  if (elementType(result) != resultType)
    return rule.refuse(op, "type", "the sum is widened after it is rounded");
  FailureOr<Operation *> position = findPosition(op, dsum, user);
  if (failed(position))
    return rule.refuse(op, "dominance",
                       "what is added comes after a user of the op's results");

  rewriter.setInsertionPoint(*position);
  BackwardContract contract = BackwardContract::get(op);
  contract.dsum = dsum;
  contract.dxType = resultType;
  Operation *fused = op.rebuild(
      rewriter, rewriter.getFusedLoc({op->getLoc(), user->getLoc()}), contract);
  if (!fused)
    return refuseToRebuild(op, "F11");
  rule.applied(fused, "adds the gradient of the sum");
  auto gradient = cast<NormBackwardOpInterface>(fused);
  auto replace = [&](Value old, Value value) {
    if (!old || old.use_empty())
      return;
    if (old.getType() != value.getType())
      value =
          tensor::CastOp::create(rewriter, op->getLoc(), old.getType(), value);
    rewriter.replaceAllUsesWith(old, value);
  };
  replace(result, gradient.getDx());
  replace(op.getDscaleOrNull(), gradient.getDscaleOrNull());
  replace(op.getDshiftOrNull(), gradient.getDshiftOrNull());
  SmallVector<Value> added(user->getOperands());
  rewriter.eraseOp(user);
  replace(dx, gradient.getDx());
  for (Value operand : added)
    if (operand != dx)
      eraseIfDead(rewriter, operand);
  rewriter.eraseOp(op);
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct FuseResidual : public norm::impl::FuseResidualPassBase<FuseResidual> {
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, linalg::LinalgDialect, NormDialect,
                    tensor::TensorDialect>();
  }

  void runOnOperation() override {
    SmallVector<NormOpInterface> norms;
    SmallVector<NormBackwardOpInterface> gradients;
    getOperation()->walk([&](Operation *op) {
      if (auto norm = dyn_cast<NormOpInterface>(op))
        norms.push_back(norm);
      else if (auto gradient = dyn_cast<NormBackwardOpInterface>(op))
        gradients.push_back(gradient);
    });
    IRRewriter rewriter(&getContext());
    for (NormOpInterface op : norms)
      (void)fuseResidual(rewriter, op);
    for (NormBackwardOpInterface op : gradients)
      (void)fuseGradient(rewriter, op);
    // With every sum where it belongs, say where each norm stands.
    getOperation()->walk([&](NormOpInterface op) {
      emitRemark(remark::RemarkKind::RemarkAnalysis, op, kPass, "placement",
                 getPlacementName(op));
    });
  }
};
} // namespace
