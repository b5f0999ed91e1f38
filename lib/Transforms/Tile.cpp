//===- Tile.cpp - norm-tile -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "Norm/IR/NormOps.h"
#include "TilePlan.h"
#include "TileProgram.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::norm {
#define GEN_PASS_DEF_TILENORMPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

namespace {
/// Wraps one norm op in the loop over its tiles.
class Tiler {
public:
  Tiler(RowOpInterface op, CpuStrategyAttr strategy, RewriterBase &rewriter)
      : op(op), strategy(strategy), rewriter(rewriter), loc(op.getLoc()) {}

  FailureOr<scf::ForallOp> run();

private:
  LogicalResult verifyRows();
  scf::ForallOp createLoop();
  LogicalResult fillBody(scf::ForallOp loop);

  RowOpInterface op;
  CpuStrategyAttr strategy;
  RewriterBase &rewriter;
  Location loc;
  TilePlan plan = TilePlan::get(op);
  /// The step along each axis of the loop.
  SmallVector<int64_t> steps;
  SmallVector<Range> domain;
};
} // namespace

scf::ForallOp Tiler::createLoop() {
  domain = normIterationDomain(op, rewriter);
  for (int64_t axis : plan.loopAxes) {
    std::optional<int64_t> extent = getConstantIntValue(domain[axis].size);
    int64_t step = 1;
    if (axis == plan.rowAxis)
      step = strategy.getRows();
    else if (plan.hasLanes && axis == op.getRank() - 1)
      step = strategy.getColumns();
    // A short axis of lanes is one static tile.
    if (plan.hasLanes && extent && *extent > 0)
      step = std::min(step, *extent);
    steps.push_back(step);
  }

  SmallVector<OpFoldResult> lower, upper, step;
  for (auto [axis, stride] : llvm::zip_equal(plan.loopAxes, steps)) {
    lower.push_back(rewriter.getIndexAttr(0));
    upper.push_back(domain[axis].size);
    step.push_back(rewriter.getIndexAttr(stride));
  }
  // No such axis: one tile, the whole of x.
  if (plan.loopAxes.empty()) {
    lower.push_back(rewriter.getIndexAttr(0));
    upper.push_back(rewriter.getIndexAttr(1));
    step.push_back(rewriter.getIndexAttr(1));
  }

  ReifiedRankedShapedTypeDims extents;
  (void)reifyNormResultShapes(op, rewriter, extents);
  SmallVector<Value> destinations;
  for (auto [type, shape] : llvm::zip_equal(op->getResultTypes(), extents))
    destinations.push_back(tensor::EmptyOp::create(
        rewriter, loc, shape, cast<RankedTensorType>(type).getElementType()));
  return scf::ForallOp::create(rewriter, loc, lower, upper, step, destinations,
                               /*mapping=*/std::nullopt);
}

LogicalResult Tiler::fillBody(scf::ForallOp loop) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(loop.getTerminator());
  SmallVector<OpFoldResult> offsets, sizes;
  for (const Range &range : domain) {
    offsets.push_back(range.offset);
    sizes.push_back(range.size);
  }
  for (auto [axis, step, iv] :
       llvm::zip(plan.loopAxes, steps, loop.getInductionVars())) {
    offsets[axis] = iv;
    std::optional<int64_t> extent = getConstantIntValue(domain[axis].size);
    if (step == 1 || (extent && *extent % step == 0)) {
      sizes[axis] = rewriter.getIndexAttr(step);
      continue;
    }
    AffineExpr d0 = rewriter.getAffineDimExpr(0),
               s0 = rewriter.getAffineSymbolExpr(0);
    AffineMap map =
        AffineMap::get(1, 1, {rewriter.getAffineConstantExpr(step), s0 - d0},
                       rewriter.getContext());
    sizes[axis] = affine::makeComposedFoldedAffineMin(
        rewriter, loc, map, {OpFoldResult(iv), domain[axis].size});
  }

  FailureOr<TilingResult> tile = tileNorm(op, rewriter, offsets, sizes);
  if (failed(tile))
    return failure();
  for (Operation *tiled : tile->tiledOps)
    tiled->removeDiscardableAttr(kStrategyAttrName);

  SmallVector<std::pair<SmallVector<OpFoldResult>, SmallVector<OpFoldResult>>>
      positions(op->getNumResults());
  for (auto [number, position] : llvm::enumerate(positions))
    if (failed(normResultTilePosition(op, rewriter, number, offsets, sizes,
                                      position.first, position.second)))
      return failure();
  rewriter.setInsertionPointToEnd(loop.getTerminator().getBody());
  for (auto [value, position, destination] :
       llvm::zip_equal(tile->tiledValues, positions, loop.getRegionIterArgs()))
    tensor::ParallelInsertSliceOp::create(
        rewriter, loc, value, destination, position.first, position.second,
        SmallVector<OpFoldResult>(position.first.size(),
                                  rewriter.getIndexAttr(1)));
  return success();
}

/// Rows of a vector are a static number: R divides the rows' extent.
LogicalResult Tiler::verifyRows() {
  if (!plan.rowAxis || strategy.getRows() == 1)
    return success();
  int64_t extent = op.getInput().getType().getDimSize(*plan.rowAxis);
  if (!ShapedType::isDynamic(extent) && extent % strategy.getRows() == 0)
    return success();
  return op->emitOpError("expected the rows of '")
         << kStrategyAttrName << "' to divide the extent of axis "
         << *plan.rowAxis << ", "
         << (ShapedType::isDynamic(extent) ? "a dynamic one"
                                           : Twine(extent).str())
         << ", got " << strategy.getRows();
}

FailureOr<scf::ForallOp> Tiler::run() {
  if (failed(verifyRows()))
    return failure();
  rewriter.setInsertionPoint(op);
  assertWholeGroups(op, rewriter);
  scf::ForallOp loop = createLoop();
  if (failed(fillBody(loop))) {
    rewriter.eraseOp(loop);
    return failure();
  }
  loop->setAttr(kStrategyAttrName, strategy);
  SmallVector<Value> results;
  for (auto [result, value] :
       llvm::zip_equal(op->getResults(), loop.getResults()))
    results.push_back(value.getType() == result.getType()
                          ? value
                          : Value(tensor::CastOp::create(
                                rewriter, loc, result.getType(), value)));
  rewriter.replaceOp(op, results);
  return loop;
}

//===----------------------------------------------------------------------===//
// Neighbours
//===----------------------------------------------------------------------===//

/// Whether `op` is elementwise linalg on tensors that can join a tile: parallel
/// loops, projected permutations, no indices, elements of whole bytes.
static bool isElementwise(Operation *op) {
  auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
  return linalgOp && linalgOp.hasPureTensorSemantics() &&
         !isa<linalg::FillOp>(op) &&
         linalgOp.getNumParallelLoops() == linalgOp.getNumLoops() &&
         !linalgOp.hasIndexSemantics() &&
         llvm::all_of(op->getOperands(), hasVectorLayout) &&
         llvm::all_of(linalgOp.getIndexingMapsArray(), [](AffineMap map) {
           return map.isProjectedPermutation();
         });
}

/// Lets what asks for the extents of `op`'s results ask for those of its
/// operands, so that the op is not kept for its shape alone.
static void resolveExtents(RewriterBase &rewriter, Operation *op) {
  SmallVector<tensor::DimOp> dims;
  for (Operation *user : op->getUsers())
    if (auto dim = dyn_cast<tensor::DimOp>(user))
      if (dim.getConstantIndex())
        dims.push_back(dim);
  for (tensor::DimOp dim : dims) {
    rewriter.setInsertionPoint(dim);
    ReifiedRankedShapedTypeDims shapes;
    if (failed(reifyResultShapes(rewriter, op, shapes)))
      return;
    unsigned result = cast<OpResult>(dim.getSource()).getResultNumber();
    rewriter.replaceOp(dim, getValueOrCreateConstantIndexOp(
                                rewriter, dim.getLoc(),
                                shapes[result][*dim.getConstantIndex()]));
  }
}

/// Fuses the elementwise producers whose only use is a slice in the loop.
static void fuseProducers(RewriterBase &rewriter, scf::ForallOp loop) {
  SmallVector<tensor::ExtractSliceOp> slices(
      loop.getBody()->getOps<tensor::ExtractSliceOp>());
  while (!slices.empty()) {
    tensor::ExtractSliceOp slice = slices.pop_back_val();
    Operation *producer = slice.getSource().getDefiningOp();
    if (!isElementwise(producer))
      continue;
    resolveExtents(rewriter, producer);
    if (!producer->hasOneUse())
      continue;
    SmallVector<LoopLikeOpInterface> loops{loop};
    std::optional<scf::SCFFuseProducerOfSliceResult> fused =
        scf::tileAndFuseProducerOfSlice(rewriter, slice, loops);
    if (!fused)
      continue;
    for (Operation *generated : fused->generatedSlices)
      if (auto next = dyn_cast<tensor::ExtractSliceOp>(generated))
        slices.push_back(next);
    rewriter.eraseOp(slice);
    if (producer->use_empty())
      rewriter.eraseOp(producer);
  }
}

/// The elementwise op that alone uses one of the loop's results of x's rank,
/// reading it element for element; null if there is none.
static linalg::LinalgOp findConsumer(scf::ForallOp loop) {
  for (OpResult result : loop->getResults()) {
    if (!result.hasOneUse())
      continue;
    OpOperand &use = *result.use_begin();
    auto consumer = dyn_cast<linalg::LinalgOp>(use.getOwner());
    if (!consumer || !isElementwise(consumer) ||
        consumer->getBlock() != loop->getBlock() ||
        !consumer.isDpsInput(&use) ||
        !consumer.getMatchingIndexingMap(&use).isIdentity())
      continue;
    // What it reads beside the loop's results must be there before the loop.
    auto isReady = [&](Value operand) {
      Operation *def = operand.getDefiningOp();
      return !def || def == loop || def->getBlock() != loop->getBlock() ||
             def->isBeforeInBlock(loop);
    };
    auto isDestination = [](Value operand) {
      return isa_and_nonnull<tensor::EmptyOp>(operand.getDefiningOp());
    };
    if (llvm::all_of(consumer->getOperands(), [&](Value operand) {
          return isReady(operand) || isDestination(operand);
        }))
      return consumer;
  }
  return nullptr;
}

/// Fuses elementwise consumers; returns the loop that took their place.
static scf::ForallOp fuseConsumers(RewriterBase &rewriter, scf::ForallOp loop) {
  while (linalg::LinalgOp consumer = findConsumer(loop)) {
    Attribute strategy = loop->getAttr(kStrategyAttrName);
    for (Value init : consumer.getDpsInits())
      if (auto empty = init.getDefiningOp<tensor::EmptyOp>())
        if (empty->getBlock() == loop->getBlock() &&
            loop->isBeforeInBlock(empty) && empty.getDynamicSizes().empty())
          rewriter.moveOpBefore(empty, loop);
    SmallVector<LoopLikeOpInterface> loops{loop};
    FailureOr<scf::SCFFuseConsumerOfSliceResult> fused =
        scf::tileAndFuseConsumer(rewriter, consumer, loops);
    if (failed(fused))
      return loop;
    loop = cast<scf::ForallOp>(loops.front());
    loop->setAttr(kStrategyAttrName, strategy);
    if (consumer->use_empty())
      rewriter.eraseOp(consumer);
  }
  return loop;
}

/// A norm whose result only a fused consumer reads need not be written: drops
/// results without uses, and what is dead in the body after fusion.
static void dropUnusedResults(RewriterBase &rewriter, scf::ForallOp loop) {
  SmallVector<Value> destinations;
  SmallVector<OpResult> used;
  for (OpResult result : loop->getResults())
    if (!result.use_empty()) {
      used.push_back(result);
      destinations.push_back(loop.getTiedOpOperand(result)->get());
    }
  if (used.size() != loop->getNumResults()) {
    rewriter.setInsertionPoint(loop);
    auto slimmer = scf::ForallOp::create(
        rewriter, loop.getLoc(), loop.getMixedLowerBound(),
        loop.getMixedUpperBound(), loop.getMixedStep(), destinations,
        loop.getMapping());
    slimmer->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    SmallVector<Value> arguments(slimmer.getInductionVars());
    unsigned next = 0;
    for (OpResult result : loop->getResults()) {
      BlockArgument argument =
          loop.getTiedBlockArgument(loop.getTiedOpOperand(result));
      if (!result.use_empty()) {
        arguments.push_back(slimmer.getRegionIterArgs()[next++]);
        continue;
      }
      arguments.push_back(loop.getTiedOpOperand(result)->get());
      for (Operation *user : llvm::make_early_inc_range(argument.getUsers()))
        if (isa<tensor::ParallelInsertSliceOp>(user))
          rewriter.eraseOp(user);
    }
    rewriter.eraseOp(slimmer.getTerminator());
    rewriter.mergeBlocks(loop.getBody(), slimmer.getBody(), arguments);
    for (auto [result, replacement] :
         llvm::zip_equal(used, slimmer->getResults()))
      rewriter.replaceAllUsesWith(result, replacement);
    rewriter.eraseOp(loop);
    loop = slimmer;
  }
  for (Operation &op : llvm::make_early_inc_range(
           llvm::reverse(loop.getBody()->getOperations())))
    if (isOpTriviallyDead(&op))
      rewriter.eraseOp(&op);
}

namespace {
struct TileNorm : public norm::impl::TileNormPassBase<TileNorm> {
  void runOnOperation() override {
    SmallVector<RowOpInterface> roots;
    getOperation()->walk([&](RowOpInterface op) {
      if (op->hasAttr(kStrategyAttrName))
        roots.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (RowOpInterface op : roots) {
      auto strategy = op->getAttrOfType<CpuStrategyAttr>(kStrategyAttrName);
      if (!strategy) {
        op.emitError("expected 'norm.strategy' to be a #norm.cpu attribute");
        return signalPassFailure();
      }
      FailureOr<scf::ForallOp> loop = Tiler(op, strategy, rewriter).run();
      if (failed(loop))
        return signalPassFailure();
      fuseProducers(rewriter, *loop);
      dropUnusedResults(rewriter, fuseConsumers(rewriter, *loop));
    }
  }
};
} // namespace
