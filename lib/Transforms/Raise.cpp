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

/// Groups of dimensions for a reshape to `shape` without its dimensions of
/// extent 1: each joins the proper one before it, the first ones the one after
/// them.
static SmallVector<ReassociationIndices>
unitDimGroups(ArrayRef<int64_t> shape) {
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices leading;
  for (auto [i, extent] : llvm::enumerate(shape)) {
    if (extent != 1) {
      groups.push_back(leading);
      leading.clear();
    }
    (groups.empty() ? leading : groups.back()).push_back(i);
  }
  return groups;
}

/// The tensor of a parameter without its dimensions of extent 1.
static Value buildParameter(OpBuilder &builder, Location loc,
                            const MatchedParameter &parameter) {
  Value tensor = parameter.tensor.value;
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getRank() == static_cast<int64_t>(parameter.axes.size()))
    return tensor;
  return tensor::CollapseShapeOp::create(builder, loc, tensor,
                                         unitDimGroups(type.getShape()));
}

static NormContract contractOf(OpBuilder &builder, Location loc,
                               const MatchedNorm &norm) {
  const MatchedStatistic &statistic = norm.core.factor.statistic;
  NormContract contract;
  contract.x = norm.input.value;
  if (norm.given) {
    auto rank = cast<RankedTensorType>(contract.x.getType()).getRank();
    contract.axes = complementAxes(norm.given->channelAxis, rank);
    contract.mean = buildParameter(builder, loc, norm.given->mean);
    contract.variance = buildParameter(builder, loc, norm.given->variance);
  } else {
    contract.axes.assign(statistic.axes.begin(), statistic.axes.end());
  }
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
  if (norm.given)
    return contract;
  if (axes != ArrayRef<int64_t>(contract.axes))
    contract.affineAxes = llvm::to_vector(axes);
  return contract;
}

static NormOpInterface buildNorm(OpBuilder &builder, Location loc,
                                 bool isCentred, const NormContract &contract) {
  if (contract.variance)
    return cast<NormOpInterface>(
        BatchNormInferenceOp::create(builder, loc, contract).getOperation());
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
  NormOpInterface rebuild(NormOpInterface op, const NormContract &contract);
  void dropUnusedResults(NormOpInterface op, NormContract contract,
                         ArrayRef<HeldStatistic> statistics);
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
  // Statistics come in compute type; l2 sums are no statistic of the op, given
  // ones no result.
  if (norm.given || statistic.isPlainSum ||
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

/// A statistic in the shape of `like`, which may have other dimensions of
/// extent
/// 1. Null if the shapes do not match.
static Value buildLike(OpBuilder &builder, Location loc, Value statistic,
                       RankedTensorType like) {
  auto type = cast<RankedTensorType>(statistic.getType());
  if (type == like)
    return statistic;
  auto withoutUnits = [](RankedTensorType type) {
    SmallVector<int64_t> shape(type.getShape());
    llvm::erase(shape, 1);
    return RankedTensorType::get(shape, type.getElementType());
  };
  RankedTensorType dense = withoutUnits(type);
  if (dense != withoutUnits(like))
    return {};
  if (type != dense)
    statistic = tensor::CollapseShapeOp::create(builder, loc, dense, statistic,
                                                unitDimGroups(type.getShape()));
  if (like != dense)
    statistic = tensor::ExpandShapeOp::create(builder, loc, like, statistic,
                                              unitDimGroups(like.getShape()));
  return statistic;
}

/// The place of an op that gives `statistics`: before all of their users and
/// after its own operands. Null if there is none.
static Operation *findPosition(NormOpInterface op,
                               ArrayRef<HeldStatistic> statistics,
                               DominanceInfo &dominance) {
  Operation *position = op;
  for (const HeldStatistic &statistic : statistics)
    for (Operation *user : statistic.tensor.getUsers()) {
      Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
      if (ancestor->isBeforeInBlock(position))
        position = ancestor;
    }
  bool isAfterOperands = llvm::all_of(op->getOperands(), [&](Value operand) {
    return dominance.properlyDominates(operand, position);
  });
  return isAfterOperands ? position : nullptr;
}

/// The op again, with the results that `contract` asks for, at the builder's
/// position. The old one is left without users of its normalized value.
NormOpInterface Raiser::rebuild(NormOpInterface op,
                                const NormContract &contract) {
  NormOpInterface rebuilt =
      buildNorm(builder, op->getLoc(), op.isCentred(), contract);
  builder.replaceAllUsesWith(op.getNormalized(), rebuilt.getNormalized());
  return rebuilt;
}

/// Drops the results among `statistics` that nobody uses.
void Raiser::dropUnusedResults(NormOpInterface op, NormContract contract,
                               ArrayRef<HeldStatistic> statistics) {
  auto isUnused = [&](const HeldStatistic &statistic) {
    return (op.*(statistic.result))().use_empty();
  };
  if (llvm::none_of(statistics, isUnused))
    return;
  for (const HeldStatistic &statistic : statistics)
    contract.*(statistic.wanted) = !isUnused(statistic);
  builder.setInsertionPoint(op);
  NormOpInterface minimal = rebuild(op, contract);
  for (const HeldStatistic &statistic : statistics)
    if (contract.*(statistic.wanted))
      builder.replaceAllUsesWith((op.*(statistic.result))(),
                                 (minimal.*(statistic.result))());
  builder.eraseOp(op);
}

/// Makes the statistics that are still used results of the op.
void Raiser::replaceStatistics(NormOpInterface op,
                               ArrayRef<HeldStatistic> held) {
  auto isReplaceable = [&](const HeldStatistic &statistic) {
    return !erased.contains(statistic.tensor.getDefiningOp()) &&
           llvm::all_of(statistic.tensor.getUsers(), [&](Operation *user) {
             return op->getBlock()->findAncestorOpInBlock(*user) != nullptr;
           });
  };
  SmallVector<HeldStatistic> alive(
      llvm::make_filter_range(held, isReplaceable));
  if (alive.empty())
    return;
  DominanceInfo dominance(root);
  Operation *position = findPosition(op, alive, dominance);
  if (!position)
    return;

  // The op's own view of it: operands may have been raised since.
  NormContract contract = NormContract::get(op);
  for (const HeldStatistic &statistic : alive)
    contract.*(statistic.wanted) = true;
  builder.setInsertionPoint(position);
  NormOpInterface full = rebuild(op, contract);
  builder.eraseOp(op);

  // Users of the last statistics may die with them, and free earlier ones.
  for (const HeldStatistic &statistic : llvm::reverse(alive)) {
    if (erased.contains(statistic.tensor.getDefiningOp()))
      continue;
    builder.setInsertionPointAfter(full);
    Value value =
        buildLike(builder, full->getLoc(), (full.*(statistic.result))(),
                  cast<RankedTensorType>(statistic.tensor.getType()));
    if (!value)
      continue;
    builder.replaceAllUsesWith(statistic.tensor, value);
    eraseIfDead(statistic.tensor.getDefiningOp());
  }
  dropUnusedResults(full, contract, alive);
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
  if (!norm->given && isChannelNormForm(*norm)) {
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
