//===- SpreadTiles.cpp - norm-spread-tiles ---------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "Norm/IR/NormDialect.h"
#include "TileLanes.h"
#include "TileProgram.h"
#include "TouchedBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/OpenMP/OpenMPDialect.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"

namespace mlir::norm {
#define GEN_PASS_DEF_SPREADTILESPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

/// Streamed stores are not ordered with what follows: a thread that has seen
/// another's fence sees what that stored.
static void createStoreFence(OpBuilder &builder, Location loc) {
  LLVM::CallIntrinsicOp::create(
      builder, loc, builder.getStringAttr("llvm.x86.sse.sfence"), ValueRange());
}

/// The tiles of this thread in a parallel region. Returns the block that is to
/// hold a tile, at the indices that are its arguments.
static Block *shareTiles(OpBuilder &builder, Location loc,
                         omp::LoopNestOperands &bounds) {
  auto share = omp::WsloopOp::create(builder, loc, omp::WsloopOperands());
  builder.createBlock(&share.getRegion());
  auto nest = omp::LoopNestOp::create(builder, loc, bounds);
  SmallVector<Type> types(bounds.loopSteps.size(), builder.getIndexType());
  Block *tile = builder.createBlock(&nest.getRegion(), {}, types,
                                    SmallVector<Location>(types.size(), loc));
  omp::YieldOp::create(builder, loc);
  return tile;
}

namespace {
struct SpreadTiles : public norm::impl::SpreadTilesPassBase<SpreadTiles> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    for (scf::ForallOp loop : findTileLoops(getOperation())) {
      auto strategy = loop->getAttrOfType<CpuStrategyAttr>(kStrategyAttrName);
      if (!strategy)
        continue;
      if (loop->getNumResults() != 0) {
        loop.emitOpError("expected a loop over tiles of buffers, got one that "
                         "yields tensors: bufferize first");
        return signalPassFailure();
      }
      rewriter.setInsertionPoint(loop);
      if (threads && strategy.getParallel() && spread(rewriter, loop, strategy))
        continue;
      if (failed(makeSequential(rewriter, loop)))
        return signalPassFailure();
    }
  }

  bool needsFence(scf::ForallOp loop) {
    return loop->hasAttr(kStreamsAttrName) && isa != CpuIsa::Any;
  }

  LogicalResult makeSequential(RewriterBase &rewriter, scf::ForallOp loop) {
    bool hasFence = needsFence(loop);
    Operation *after = loop->getNextNode();
    Location loc = loop.getLoc();
    if (failed(scf::forallToForLoop(rewriter, loop)))
      return loop.emitOpError("cannot become a sequential loop");
    if (hasFence) {
      rewriter.setInsertionPoint(after);
      createStoreFence(rewriter, loc);
    }
    return success();
  }

  /// omp.parallel if(worth it) { omp.wsloop { omp.loop_nest { body } } fence };
  /// false if the loop is known to be too small.
  bool spread(RewriterBase &rewriter, scf::ForallOp loop,
              CpuStrategyAttr strategy) {
    omp::ParallelOperands clauses;
    if (strategy.getSerialBytes() > 0) {
      ExceedsBytes exceeds =
          touchesMoreThan(rewriter, loop, strategy.getSerialBytes());
      if (exceeds.known == false)
        return false;
      clauses.ifExpr = exceeds.value;
    }
    Location loc = loop.getLoc();
    omp::LoopNestOperands bounds;
    auto values = [&](ArrayRef<OpFoldResult> list) {
      return llvm::map_to_vector(list, [&](OpFoldResult bound) {
        return getValueOrCreateConstantIndexOp(rewriter, loc, bound);
      });
    };
    bounds.loopLowerBounds = values(loop.getMixedLowerBound());
    bounds.loopUpperBounds = values(loop.getMixedUpperBound());
    bounds.loopSteps = values(loop.getMixedStep());
    bounds.collapseNumLoops = rewriter.getI64IntegerAttr(loop.getRank());

    auto parallel = omp::ParallelOp::create(rewriter, loc, clauses);
    rewriter.createBlock(&parallel.getRegion());
    // norm-outline-parallel-body gives each thread its share.
    if (Attribute mirrored = loop->getAttr(kMirroredAttrName))
      parallel->setAttr(kMirroredAttrName, mirrored);
    Block *tile = shareTiles(rewriter, loc, bounds);
    rewriter.setInsertionPointToEnd(&parallel.getRegion().front());
    if (needsFence(loop))
      createStoreFence(rewriter, loc);
    omp::TerminatorOp::create(rewriter, loc);

    // Stack memory of a tile is the tile's; norm-outline-parallel-body.
    rewriter.setInsertionPoint(tile->getTerminator());
    auto scope = memref::AllocaScopeOp::create(rewriter, loc, TypeRange());
    rewriter.createBlock(&scope.getBodyRegion());
    auto end = memref::AllocaScopeReturnOp::create(rewriter, loc);
    rewriter.eraseOp(loop.getTerminator());
    rewriter.inlineBlockBefore(loop.getBody(), end, tile->getArguments());
    rewriter.eraseOp(loop);
    return true;
  }
};
} // namespace
