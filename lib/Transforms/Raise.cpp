//===- Raise.cpp - norm-raise ---------------------------------------------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "Norm/IR/NormDialect.h"
#include "RaiseMatch.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::norm {
#define GEN_PASS_DEF_RAISENORMPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::raise;

static constexpr StringLiteral kCategory = "norm-raise";

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

/// The tensor of a parameter without its dimensions of extent 1.
static Value buildParameter(OpBuilder &builder, Location loc,
                            const MatchedParameter &parameter) {
  Value tensor = parameter.tensor.value;
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getRank() == static_cast<int64_t>(parameter.axes.size()))
    return tensor;
  // Each unit dimension joins the proper one before it (the first ones join
  // the one after them).
  SmallVector<ReassociationIndices> groups(1);
  bool hasProper = false;
  for (auto [i, dim] : llvm::enumerate(parameter.tensor.index)) {
    if (dim != kUnit && hasProper)
      groups.emplace_back();
    hasProper |= dim != kUnit;
    groups.back().push_back(i);
  }
  return tensor::CollapseShapeOp::create(builder, loc, tensor, groups);
}

static NormContract contractOf(OpBuilder &builder, Location loc,
                               const MatchedNorm &norm) {
  const MatchedStatistic &statistic = norm.core.factor.statistic;
  NormContract contract;
  contract.x = norm.input.value;
  contract.axes.assign(statistic.axes.begin(), statistic.axes.end());
  contract.epsilon = norm.epsilon;
  contract.computeType = norm.computeType;
  contract.correction = statistic.correction;
  contract.resultType = norm.resultType;
  if (norm.scale)
    contract.scale = buildParameter(builder, loc, *norm.scale);
  if (norm.shift)
    contract.shift = buildParameter(builder, loc, *norm.shift);
  if (!norm.scale && !norm.shift)
    return contract;
  contract.scaleOffset = norm.scaleOffset;
  contract.affineIn = norm.affineIn;
  ArrayRef<int64_t> axes = (norm.scale ? norm.scale : norm.shift)->axes;
  if (axes != ArrayRef<int64_t>(contract.axes))
    contract.affineAxes = llvm::to_vector(axes);
  return contract;
}

static NormOpInterface buildNorm(OpBuilder &builder, Location loc,
                                 bool isCentred, const NormContract &contract) {
  if (isCentred)
    return cast<NormOpInterface>(
        LayerNormOp::create(builder, loc, contract).getOperation());
  return cast<NormOpInterface>(
      RMSNormOp::create(builder, loc, contract).getOperation());
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
/// A statistic that the decomposition holds in a tensor of its own.
struct HeldStatistic {
  Value tensor;
  bool NormContract::*wanted;
  TypedValue<RankedTensorType> (NormOpInterface::*result)();
};

/// A raised op, and what may become further results of it.
struct RaisedNorm {
  NormOpInterface op;
  SmallVector<HeldStatistic> held;
};

class Raiser {
public:
  Raiser(Operation *root, StatisticsMode mode)
      : root(root), mode(mode), builder(root->getContext()) {}
  ~Raiser() {
    for (Operation *op : graveyard)
      op->destroy();
  }

  void run();

private:
  bool sweep();
  bool raise(OpResult result);
  void replaceStatistics(NormOpInterface op, ArrayRef<HeldStatistic> held);
  SmallVector<HeldStatistic> heldStatistics(const NormMatcher &matcher,
                                            const MatchedNorm &norm);
  void eraseIfDead(Operation *op);
  void report(NormOpInterface op, const MatchedNorm &norm);
  remark::RemarkOpts options(StringRef name, Operation *op) const;

  Operation *root;
  StatisticsMode mode;
  IRRewriter builder;
  Refusals refusals;
  llvm::DenseSet<Operation *> erased;
  SmallVector<Operation *> graveyard;
  /// Reductions whose norm was raised.
  llvm::DenseSet<Operation *> raised;
  SmallVector<RaisedNorm, 0> pending;
};
} // namespace

remark::RemarkOpts Raiser::options(StringRef name, Operation *op) const {
  auto function = op->getParentOfType<FunctionOpInterface>();
  return remark::RemarkOpts::name(name).category(kCategory).function(
      function ? function.getName() : StringRef());
}

/// Whether `op` computes elements (as opposed to moving or summing them).
static bool isElementwise(Operation *op) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return linalgOp.hasPureTensorSemantics() &&
           linalgOp.getNumReductionLoops() == 0 &&
           llvm::any_of(linalgOp.getBlock()->getTerminator()->getOperands(),
                        [&](Value yielded) {
                          return yielded.getParentBlock() ==
                                     linalgOp.getBlock() &&
                                 !isa<BlockArgument>(yielded);
                        });
  return op->hasTrait<OpTrait::Elementwise>() && op->getNumOperands() != 0;
}

/// Erases `op` if it is dead, and then what it alone kept alive.
void Raiser::eraseIfDead(Operation *first) {
  SmallVector<Operation *> worklist = {first};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (erased.contains(op) || !isOpTriviallyDead(op))
      continue;
    op->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (Operation *def = operand.getDefiningOp())
          if (!op->isAncestor(def))
            worklist.push_back(def);
    });
    // Kept until the end, so that no new operation gets its address.
    erased.insert(op);
    op->remove();
    op->dropAllReferences();
    graveyard.push_back(op);
  }
}

/// Whether the value was reshaped so that a row of the norm is part of one
/// dimension merged with whole ones after it: channels of a group and space.
/// That is how group norms are written; gain and shift follow the reshape back.
static bool isChannelNormForm(const MatchedNorm &norm) {
  if (norm.scale || norm.shift)
    return false;
  Value source = norm.input.value;
  while (Operation *def = source.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ReshapeOp>(
            def))
      break;
    source = def->getOperand(0);
  }
  auto type = dyn_cast<RankedTensorType>(source.getType());
  if (!type || source == norm.input.value)
    return false;
  ArrayRef<int64_t> from = type.getShape();
  ArrayRef<int64_t> to =
      cast<RankedTensorType>(norm.input.value.getType()).getShape();
  int64_t firstReduced = norm.core.factor.statistic.axes.front();
  // Samples and channels merged under one sample: an instance norm.
  if (firstReduced >= 2 && to.front() == 1 && from.front() != 1)
    return true;
  while (!from.empty() && firstReduced > 0 && from.front() == to.front()) {
    from = from.drop_front();
    to = to.drop_front();
    --firstReduced;
  }
  if (ShapedType::isDynamicShape(from) || ShapedType::isDynamicShape(to))
    return false;
  // Elements of one source index before the rows begin, and where the source
  // dimension that this falls into ends.
  int64_t rows = ShapedType::getNumElements(to.take_front(firstReduced));
  int64_t prefix = 1;
  for (auto [i, extent] : llvm::enumerate(from)) {
    if (prefix == rows)
      return false;
    prefix *= extent;
    if (prefix > rows)
      return ShapedType::getNumElements(from.drop_front(i + 1)) > 1;
  }
  return false;
}

/// The tensors, apart from the result, that hold values an op can give.
SmallVector<HeldStatistic> Raiser::heldStatistics(const NormMatcher &matcher,
                                                  const MatchedNorm &norm) {
  SmallVector<HeldStatistic> held;
  const MatchedCore &core = norm.core;
  const MatchedStatistic &statistic = core.factor.statistic;
  // Statistics come in compute type; l2 sums are no statistic of the op.
  if (statistic.isPlainSum ||
      core.type != (norm.computeType
                        ? norm.computeType
                        : defaultComputeType(norm.input.value, {})))
    return held;
  SmallVector<int32_t> kept;
  for (int32_t dim : matcher.getFrame().properDims())
    if (!llvm::is_contained(statistic.axes, dim))
      kept.push_back(dim);
  auto add = [&](const View &view, bool NormContract::*wanted,
                 TypedValue<RankedTensorType> (NormOpInterface::*result)()) {
    std::optional<View> tensor = lastTensor(
        matcher.getViews(), view, /*throughExt=*/false, [&](const View &view) {
          SmallVector<int32_t> dims;
          for (int32_t dim : view.index)
            if (dim != kUnit)
              dims.push_back(dim);
          return dims == kept &&
                 getElementTypeOrSelf(view.value) == core.type &&
                 view.value.getDefiningOp();
        });
    if (tensor)
      held.push_back({tensor->value, wanted, result});
  };
  if (core.mean)
    add(*core.mean, &NormContract::wantsMean, &NormOpInterface::getMeanOrNull);
  add(core.factor.variance, &NormContract::wantsVariance,
      &NormOpInterface::getVarianceOrNull);
  if (core.factor.rstd)
    add(*core.factor.rstd, &NormContract::wantsRstd,
        &NormOpInterface::getRstdOrNull);
  return held;
}

/// The shape of `like` from a statistic without its unit dimensions. Null if
/// the shapes do not match.
static Value buildKeepDims(OpBuilder &builder, Location loc, Value statistic,
                           RankedTensorType like) {
  auto type = cast<RankedTensorType>(statistic.getType());
  if (type == like)
    return statistic;
  // The op keeps unit axes of x; `like` may have dropped or moved them.
  SmallVector<int64_t> proper, likeProper;
  llvm::copy_if(type.getShape(), std::back_inserter(proper),
                [](int64_t extent) { return extent != 1; });
  llvm::copy_if(like.getShape(), std::back_inserter(likeProper),
                [](int64_t extent) { return extent != 1; });
  if (proper != likeProper)
    return {};
  auto dense = RankedTensorType::get(proper, type.getElementType());
  auto group = [](RankedTensorType full, int64_t coarseRank) {
    SmallVector<ReassociationIndices> groups(coarseRank ? 1 : 0);
    bool hasProper = false;
    for (auto [i, extent] : llvm::enumerate(full.getShape())) {
      if (coarseRank == 0)
        break;
      if (extent != 1 && hasProper)
        groups.emplace_back();
      hasProper |= extent != 1;
      groups.back().push_back(i);
    }
    return groups;
  };
  if (type != dense)
    statistic = tensor::CollapseShapeOp::create(builder, loc, dense, statistic,
                                                group(type, dense.getRank()));
  if (like != dense)
    statistic = tensor::ExpandShapeOp::create(builder, loc, like, statistic,
                                              group(like, dense.getRank()));
  return statistic;
}

/// Makes the statistics that are still used results of the op.
void Raiser::replaceStatistics(NormOpInterface op,
                               ArrayRef<HeldStatistic> held) {
  SmallVector<HeldStatistic> alive;
  for (const HeldStatistic &statistic : held) {
    auto isBesideOp = [&](Operation *user) {
      return op->getBlock()->findAncestorOpInBlock(*user) != nullptr;
    };
    if (!erased.contains(statistic.tensor.getDefiningOp()) &&
        llvm::all_of(statistic.tensor.getUsers(), isBesideOp))
      alive.push_back(statistic);
  }
  if (alive.empty())
    return;
  // The op must come before the users, and after its own operands.
  Operation *position = op;
  for (const HeldStatistic &statistic : alive)
    for (Operation *user : statistic.tensor.getUsers()) {
      Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
      if (ancestor->isBeforeInBlock(position))
        position = ancestor;
    }
  DominanceInfo dominance(root);
  for (Value operand : op->getOperands())
    if (!dominance.properlyDominates(operand, position))
      return;

  // The op's own view of it: operands may have been raised since.
  NormContract contract = NormContract::get(op);
  for (const HeldStatistic &statistic : alive)
    contract.*(statistic.wanted) = true;
  builder.setInsertionPoint(position);
  auto rebuild = [&](NormOpInterface old) {
    NormOpInterface rebuilt =
        buildNorm(builder, old->getLoc(), old.isCentred(), contract);
    builder.replaceAllUsesWith(old.getNormalized(), rebuilt.getNormalized());
    return rebuilt;
  };
  NormOpInterface full = rebuild(op);
  builder.eraseOp(op);

  // Users of the last statistics may die with them, and free earlier ones.
  for (const HeldStatistic &statistic : llvm::reverse(alive)) {
    if (erased.contains(statistic.tensor.getDefiningOp()))
      continue;
    builder.setInsertionPointAfter(full);
    Value value =
        buildKeepDims(builder, full->getLoc(), (full.*(statistic.result))(),
                      cast<RankedTensorType>(statistic.tensor.getType()));
    if (!value)
      continue;
    builder.replaceAllUsesWith(statistic.tensor, value);
    eraseIfDead(statistic.tensor.getDefiningOp());
  }
  bool isMinimal = true;
  for (const HeldStatistic &statistic : alive)
    if ((full.*(statistic.result))().use_empty()) {
      contract.*(statistic.wanted) = false;
      isMinimal = false;
    }
  if (isMinimal)
    return;
  builder.setInsertionPoint(full);
  NormOpInterface minimal = rebuild(full);
  for (const HeldStatistic &statistic : alive)
    if (contract.*(statistic.wanted))
      builder.replaceAllUsesWith((full.*(statistic.result))(),
                                 (minimal.*(statistic.result))());
  builder.eraseOp(full);
}

void Raiser::report(NormOpInterface op, const MatchedNorm &norm) {
  std::string what;
  llvm::raw_string_ostream os(what);
  os << op->getName() << " over axes [";
  llvm::interleaveComma(op.getReducedAxes(), os);
  os << "]";
  remark::passed(op->getLoc(), options("raised", op)) << what;
  for (const std::string &note : norm.notes)
    remark::analysis(op->getLoc(), options("statistics-type", op)) << note;
}

bool Raiser::raise(OpResult result) {
  auto type = dyn_cast<RankedTensorType>(result.getType());
  // Unused results are what raised ones become beside used ones.
  if (!type || !isa<FloatType>(type.getElementType()) || result.use_empty())
    return false;
  NormMatcher matcher(type, result.getLoc(), mode, refusals);
  std::optional<MatchedNorm> norm = matcher.match(result);
  if (!norm)
    return false;
  const MatchedStatistic &statistic = norm->core.factor.statistic;
  if (isChannelNormForm(*norm)) {
    refusals.insert(
        {statistic.reduction,
         {"reshaped",
          "the value is reshaped for the norm, as in a group or instance norm",
          result.getLoc(), true}});
    return false;
  }

  Operation *op = result.getOwner();
  builder.setInsertionPoint(op);
  Location loc =
      builder.getFusedLoc({statistic.reduction->getLoc(), op->getLoc()});
  NormContract contract = contractOf(builder, loc, *norm);
  SmallVector<HeldStatistic> held = heldStatistics(matcher, *norm);
  NormOpInterface raisedOp =
      buildNorm(builder, loc, statistic.centred, contract);
  raised.insert(statistic.reduction);
  report(raisedOp, *norm);
  builder.replaceAllUsesWith(result, raisedOp.getNormalized());
  eraseIfDead(op);
  pending.push_back({raisedOp, std::move(held)});
  return true;
}

/// One pass over all values, the last ones first, so that a norm is seen whole
/// before its parts are.
bool Raiser::sweep() {
  SmallVector<Operation *> candidates;
  root->walk([&](Operation *op) {
    if (isElementwise(op) && !isa<linalg::LinalgOp>(op->getParentOp()))
      candidates.push_back(op);
  });
  bool changed = false;
  for (Operation *op : llvm::reverse(candidates)) {
    if (erased.contains(op))
      continue;
    for (OpResult result : op->getResults())
      if (raise(result)) {
        changed = true;
        break;
      }
  }
  return changed;
}

void Raiser::run() {
  // A norm of a norm is seen when the inner one is an op.
  while (sweep())
    refusals.clear();
  // Only now: until then, statistics may be shared with norms yet to be found.
  for (RaisedNorm &norm : pending)
    if (!erased.contains(norm.op))
      replaceStatistics(norm.op, norm.held);
  for (auto &[reduction, refusal] : refusals) {
    if (erased.contains(reduction) || raised.contains(reduction))
      continue;
    remark::missed(refusal.loc, options(refusal.condition, reduction))
        << remark::reason("{0}", refusal.reason);
  }
}

namespace {
struct RaiseNorm : public norm::impl::RaiseNormPassBase<RaiseNorm> {
  using RaiseNormPassBase::RaiseNormPassBase;

  void runOnOperation() override { Raiser(getOperation(), statistics).run(); }
};
} // namespace
