//===- Placement.cpp - Norms and the residual stream ----------------------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Analysis/Placement.h"

#include "Norm/Analysis/Addition.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::norm;

namespace {
/// One use of a value as an addend of the stream.
struct StreamUse {
  /// What is added to it, and the sum (null where a norm keeps it to itself).
  Value other, sum;
  /// The norm that adds, if a norm does.
  NormOpInterface norm;
};

/// All that happens to a value, through casts and reshapes of it.
struct Uses {
  SmallVector<StreamUse> additions;
  SmallVector<NormOpInterface> norms; ///< that normalize the value itself
  bool escapes = false;               ///< returned, or yielded to a parent
  bool hasOther = false;
};
} // namespace

/// Whether `op` only casts or reshapes `value`.
static bool isSameStream(Operation *op, Value value) {
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(op))
    return true;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || linalgOp.getNumDpsInputs() != 1 ||
      linalgOp.getNumReductionLoops() != 0 ||
      linalgOp.getDpsInputOperand(0)->get() != value ||
      !llvm::all_of(linalgOp.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return false;
  return llvm::all_of(
      linalgOp.getBlock()->without_terminator(), [](Operation &nested) {
        return nested.getName().getStringRef() == "arith.extf" ||
               nested.getName().getStringRef() == "arith.truncf";
      });
}

static void collectUses(Value value, Uses &uses) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto norm = dyn_cast<NormOpInterface>(user)) {
      Value input = norm.getInput(), residual = norm.getResidualOrNull();
      if (residual && (value == input || value == residual))
        uses.additions.push_back(
            {value == input ? residual : input, norm.getSumOrNull(), norm});
      else if (value == input)
        uses.norms.push_back(norm);
      else
        uses.hasOther = true;
      continue;
    }
    if (user->hasTrait<OpTrait::IsTerminator>()) {
      uses.escapes = true;
      continue;
    }
    if (isSameStream(user, value)) {
      collectUses(user->getResult(0), uses);
      continue;
    }
    bool isAddition = false;
    if (user->getNumResults() == 1)
      if (auto addition = matchAddition(user->getResult(0));
          addition && addition->isFull()) {
        const Addition::Addend &lhs = addition->lhs, &rhs = addition->rhs;
        bool isLhs = lhs.tensor == value || lhs.narrow == value;
        bool isRhs = rhs.tensor == value || rhs.narrow == value;
        if (isLhs || isRhs) {
          uses.additions.push_back(
              {isLhs ? rhs.tensor : lhs.tensor, user->getResult(0), {}});
          isAddition = true;
        }
      }
    uses.hasOther |= !isAddition;
  }
}

static Uses usesOf(Value value) {
  Uses uses;
  if (value)
    collectUses(value, uses);
  return uses;
}

/// The value before casts and reshapes that keep its elements.
static Value sourceOf(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (def->getNumOperands() == 0 || !isSameStream(def, def->getOperand(0)))
      break;
    value = def->getOperand(0);
  }
  return value;
}

/// Whether some norm reads the stream at `value`: normalizes it, or made it as
/// its sum.
static bool isNormalized(Value value, NormOpInterface except) {
  value = sourceOf(value);
  auto maker = dyn_cast_or_null<NormOpInterface>(value.getDefiningOp());
  if (maker && maker != except && value == maker.getSumOrNull())
    return true;
  return llvm::any_of(usesOf(value).norms,
                      [&](NormOpInterface norm) { return norm != except; });
}

/// Whether the sum of `use` is what a pre-norm reads.
static bool feedsPreNorm(const StreamUse &use) {
  if (use.norm)
    return use.sum && !usesOf(use.sum).additions.empty();
  Uses uses = usesOf(use.sum);
  return !uses.norms.empty() && !uses.additions.empty();
}

Placement norm::getPlacement(NormOpInterface op) {
  // What is normalized, and the two parts of it if it is a sum.
  Value input = op.getInput(), lhs, rhs;
  if (Value residual = op.getResidualOrNull()) {
    lhs = op.getInput();
    rhs = residual;
    input = op.getSumOrNull(); // null: the sum goes nowhere else
  } else if (auto addition = matchAddition(op.getInput());
             addition && addition->isFull()) {
    lhs = addition->lhs.tensor;
    rhs = addition->rhs.tensor;
  }
  bool isSum = lhs != nullptr;

  Uses around = usesOf(input);
  if (!around.additions.empty() || (isSum && around.escapes))
    return Placement::Pre;
  // An input that is widened first: the stream is what it was before.
  if (input && !isSum) {
    Uses before = usesOf(sourceOf(input));
    if (!before.additions.empty())
      return Placement::Pre;
  }

  Uses after = usesOf(op.getNormalized());
  if (!after.additions.empty() && after.norms.empty() && !after.escapes &&
      !after.hasOther) {
    bool isSandwich = llvm::any_of(after.additions, [&](const StreamUse &use) {
      return isNormalized(use.other, op) || feedsPreNorm(use);
    });
    return isSandwich ? Placement::Sandwich : Placement::Branch;
  }
  if (!isSum)
    return Placement::None;
  // The last norm of a stream looks like a post-norm; what it normalizes was
  // read by pre-norms, or added to by a branch norm.
  auto isOfStream = [&](Value addend) {
    auto maker = addend.getDefiningOp<NormOpInterface>();
    bool isBranch =
        maker && addend == maker.getNormalized() && addend.hasOneUse();
    return isBranch || isNormalized(addend, op);
  };
  return isOfStream(lhs) || isOfStream(rhs) ? Placement::Final
                                            : Placement::Post;
}

StringRef norm::getPlacementName(Placement placement) {
  switch (placement) {
  case Placement::None:
    return "none";
  case Placement::Pre:
    return "pre";
  case Placement::Post:
    return "post";
  case Placement::Branch:
    return "branch";
  case Placement::Sandwich:
    return "sandwich";
  case Placement::Final:
    return "final";
  }
  llvm_unreachable("unknown placement");
}

StringRef norm::getPlacementName(NormOpInterface op) {
  return getPlacementName(getPlacement(op));
}
