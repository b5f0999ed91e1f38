//===- Tile.cpp - norm-tile -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "Norm/IR/NormOps.h"
#include "TileLanes.h"
#include "TileNeighbours.h"
#include "TilePlan.h"
#include "TileRanges.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
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
  Tiler(RowOpInterface op, TileSizes sizes, RewriterBase &rewriter)
      : op(op), sizes(sizes), rewriter(rewriter), loc(op.getLoc()) {}

  FailureOr<scf::ForallOp> run();

private:
  scf::ForallOp createLoop();
  std::optional<ArrayAttr> mapping(size_t rank);
  LogicalResult fillBody(scf::ForallOp loop);

  RowOpInterface op;
  TileSizes sizes;
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
      step = sizes.rows;
    else if (plan.hasLanes && axis == op.getRank() - 1)
      step = sizes.columns;
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
                               mapping(lower.size()));
}

/// Each row of a GPU is a part of a block, whose number is linear. A loop that
/// says so stays one where there is one row only.
std::optional<ArrayAttr> Tiler::mapping(size_t rank) {
  if (!isa<GpuStrategyAttr>(op->getAttr(kStrategyAttrName)))
    return std::nullopt;
  SmallVector<Attribute> ids;
  for (size_t i = 0; i < rank; ++i)
    ids.push_back(gpu::GPUBlockMappingAttr::get(
        rewriter.getContext(),
        *gpu::symbolizeMappingId(
            static_cast<uint64_t>(gpu::MappingId::LinearDim0) + i)));
  return rewriter.getArrayAttr(ids);
}

LogicalResult Tiler::fillBody(scf::ForallOp loop) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(loop.getTerminator());
  SmallVector<OpFoldResult> offsets, extents;
  for (const Range &range : domain) {
    offsets.push_back(range.offset);
    extents.push_back(range.size);
  }
  for (auto [axis, step, iv] :
       llvm::zip(plan.loopAxes, steps, loop.getInductionVars())) {
    offsets[axis] = iv;
    std::optional<int64_t> extent = getConstantIntValue(domain[axis].size);
    if (step == 1 || (extent && *extent % step == 0)) {
      extents[axis] = rewriter.getIndexAttr(step);
      continue;
    }
    AffineExpr d0 = rewriter.getAffineDimExpr(0),
               s0 = rewriter.getAffineSymbolExpr(0);
    AffineMap map =
        AffineMap::get(1, 1, {rewriter.getAffineConstantExpr(step), s0 - d0},
                       rewriter.getContext());
    extents[axis] = affine::makeComposedFoldedAffineMin(
        rewriter, loc, map, {OpFoldResult(iv), domain[axis].size});
  }

  FailureOr<TilingResult> tile = tileNorm(op, rewriter, offsets, extents);
  if (failed(tile))
    return failure();
  for (Operation *tiled : tile->tiledOps)
    tiled->removeDiscardableAttr(kStrategyAttrName);

  SmallVector<std::pair<SmallVector<OpFoldResult>, SmallVector<OpFoldResult>>>
      positions(op->getNumResults());
  for (auto [number, position] : llvm::enumerate(positions))
    if (failed(normResultTilePosition(op, rewriter, number, offsets, extents,
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

/// The strategy of a tile that is no range of rows, whatever the norm's says:
/// one that a rewrite has left without sums over rows keeps it.
static Attribute withoutRange(Attribute strategy) {
  auto cpu = dyn_cast<CpuStrategyAttr>(strategy);
  if (!cpu || cpu.getRange() == 0)
    return strategy;
  return CpuStrategyAttr::get(
      cpu.getContext(), cpu.getRows(), cpu.getColumns(), cpu.getParallel(),
      /*range=*/0, cpu.getSerialBytes(), cpu.getStreamBytes(),
      cpu.getPrefetch(), cpu.getSplit());
}

FailureOr<scf::ForallOp> Tiler::run() {
  rewriter.setInsertionPoint(op);
  assertWholeGroups(op, rewriter);
  scf::ForallOp loop = createLoop();
  if (failed(fillBody(loop))) {
    rewriter.eraseOp(loop);
    return failure();
  }
  loop->setAttr(kStrategyAttrName,
                withoutRange(op->getAttr(kStrategyAttrName)));
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

static TiledNorm describe(RowOpInterface op) {
  // The last loop has some rows, and knows no sums.
  if (isTiledByLanes(op))
    return {op.getRank(), axesAboveRows(op), {}};
  TilePlan plan = TilePlan::get(op);
  TiledNorm norm{op.getRank(), plan.loopAxes, {}};
  if (!plan.reducesNothing && !op.getGroupedAxis() &&
      (sumsOverRanges(op) || op.getTiedAxes() == op.getReducedAxes()))
    norm.reducedAxes = op.getReducedAxes();
  return norm;
}

/// Whether one loop over tiles can hold both norms.
static bool shareTiles(NormOpInterface a, NormOpInterface b) {
  auto rowA = cast<RowOpInterface>(a.getOperation()),
       rowB = cast<RowOpInterface>(b.getOperation());
  auto isSimple = [](RowOpInterface op) {
    return !TilePlan::get(op).reducesNothing && !op.getGroupedAxis() &&
           !isTiledByLanes(op);
  };
  return rowA.getInput().getType().getShape() ==
             rowB.getInput().getType().getShape() &&
         rowA.getTiedAxes() == rowB.getTiedAxes() && isSimple(rowA) &&
         isSimple(rowB) &&
         a->getAttr(kStrategyAttrName) == b->getAttr(kStrategyAttrName);
}

/// Whether `op` is computed in the loop of another norm: all that is read of it
/// is y, and that by a norm with the same tiles alone, through elementwise ops
/// that nothing else reads.
static bool joinsAnotherNorm(RowOpInterface op) {
  auto norm = dyn_cast<NormOpInterface>(op.getOperation());
  if (!norm || !op->hasOneUse())
    return false;
  Value value = norm.getNormalized();
  while (value.hasOneUse()) {
    OpOperand &use = *value.use_begin();
    Operation *user = use.getOwner();
    if (user->getBlock() != op->getBlock())
      return false;
    if (auto host = dyn_cast<NormOpInterface>(user))
      return (value == host.getInput() || value == host.getResidualOrNull()) &&
             shareTiles(norm, host);
    auto linalgOp = dyn_cast<linalg::LinalgOp>(user);
    if (!linalgOp || !isElementwiseNeighbour(user) ||
        user->getNumResults() != 1 || !linalgOp.isDpsInput(&use) ||
        !linalgOp.getMatchingIndexingMap(&use).isIdentity() ||
        !linalgOp.getIndexingMapMatchingResult(user->getResult(0)).isIdentity())
      return false;
    value = user->getResult(0);
  }
  return false;
}

namespace {
/// Ops that are gone: tiling one norm erases what becomes dead, and that may be
/// another.
class ErasedOps : public RewriterBase::Listener {
public:
  bool contains(Operation *op) const { return ops.contains(op); }
  void notifyOperationErased(Operation *op) override { ops.insert(op); }
  /// Ops that are made from now on may lie where those were.
  void forget() { ops.clear(); }

private:
  DenseSet<Operation *> ops;
};

struct TileNorm : public norm::impl::TileNormPassBase<TileNorm> {
  void runOnOperation() override {
    SmallVector<RowOpInterface> roots;
    getOperation()->walk([&](RowOpInterface op) {
      // There are no slices of nothing to make tiles of.
      if (llvm::is_contained(op.getInput().getType().getShape(), 0))
        op->removeAttr(kStrategyAttrName);
      if (op->hasAttr(kStrategyAttrName))
        roots.push_back(op);
    });
    if (roots.empty())
      return;
    ErasedOps erased;
    IRRewriter rewriter(&getContext(), &erased);
    prepareElementwise(rewriter, getOperation());
    prepareParts(rewriter, roots);
    for (RowOpInterface op : roots)
      if (!erased.contains(op) && !joinsAnotherNorm(op) &&
          failed(tile(rewriter, op)))
        return signalPassFailure();
    // Those that the other norm's loop did not take in after all.
    erased.forget();
    SmallVector<RowOpInterface> left;
    getOperation()->walk([&](RowOpInterface op) {
      if (op->hasAttr(kStrategyAttrName))
        left.push_back(op);
    });
    for (RowOpInterface op : left)
      if (!erased.contains(op) && failed(tile(rewriter, op)))
        return signalPassFailure();
  }

  LogicalResult tile(RewriterBase &rewriter, RowOpInterface op) {
    Attribute strategy = op->getAttr(kStrategyAttrName);
    auto cpu = dyn_cast<CpuStrategyAttr>(strategy);
    std::optional<TileSizes> sizes = TileSizes::get(strategy);
    if (!sizes || (!cpu && sumsOverRanges(op)))
      return op.emitError(
          "expected 'norm.strategy' to be a #norm.cpu attribute");
    TiledNorm norm = describe(op);
    FailureOr<scf::ForallOp> loop =
        sumsOverRanges(op)   ? tileRanges(op, cpu, rewriter)
        : isTiledByLanes(op) ? tileLanes(op, cpu, rewriter)
                             : Tiler(op, *sizes, rewriter).run();
    if (failed(loop))
      return failure();
    fuseNeighbours(rewriter, *loop, norm);
    return success();
  }
};
} // namespace
