//===- MapToRegisters.cpp - norm-map-to-registers -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "MapToRegisters.h"
#include "Norm/IR/NormDialect.h"
#include "TileProgram.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Utils/VectorUtils.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::norm {
#define GEN_PASS_DEF_MAPTOREGISTERSPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

namespace {
/// A view of the dimensions `kept` of one whose other extents are 1. A subview
/// of lower rank would not do: it does not say which dimensions it drops where
/// a kept one has extent 1 too.
static Value keepDims(OpBuilder &builder, Location loc, Value view,
                      ArrayRef<int64_t> kept, ArrayRef<OpFoldResult> sizes) {
  auto type = cast<MemRefType>(view.getType());
  auto [strides, offset] = type.getStridesAndOffset();
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, view);
  auto known = [&](int64_t number, Value value) -> OpFoldResult {
    if (ShapedType::isDynamic(number))
      return value;
    return builder.getIndexAttr(number);
  };
  SmallVector<int64_t> shape, keptStrides;
  SmallVector<OpFoldResult> keptSizes, mixedStrides;
  for (int64_t dim : kept) {
    shape.push_back(type.getDimSize(dim));
    keptStrides.push_back(strides[dim]);
    keptSizes.push_back(sizes[dim]);
    mixedStrides.push_back(known(strides[dim], metadata.getStrides()[dim]));
  }
  auto keptType = MemRefType::get(
      shape, type.getElementType(),
      StridedLayoutAttr::get(builder.getContext(), offset, keptStrides),
      type.getMemorySpace());
  return memref::ReinterpretCastOp::create(
      builder, loc, keptType, metadata.getBaseBuffer(),
      known(offset, metadata.getOffset()), keptSizes, mixedStrides);
}

/// A transfer whose vector skips a dimension between the ones it covers, as
/// one between rows and columns: the same transfer on a view without the
/// dimensions that the vector does not cover. Upstream unrolls a masked one
/// wrongly.
template <typename TransferOp>
struct DropUncoveredDims : public OpRewritePattern<TransferOp> {
  using OpRewritePattern<TransferOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(TransferOp op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<MemRefType>(op.getBase().getType());
    AffineMap map = op.getPermutationMap();
    if (!type || map.isMinorIdentity())
      return rewriter.notifyMatchFailure(op, "expected a memref and a vector "
                                             "that skips a dimension");
    SmallVector<int64_t> covered;
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (!dim || (!covered.empty() &&
                   covered.back() >= static_cast<int64_t>(dim.getPosition())))
        return rewriter.notifyMatchFailure(op, "expected ascending dimensions");
      covered.push_back(dim.getPosition());
    }

    Location loc = op.getLoc();
    SmallVector<OpFoldResult> offsets = llvm::to_vector_of<OpFoldResult>(
                                  op.getIndices()),
                              sizes(type.getRank(), rewriter.getIndexAttr(1)),
                              strides(type.getRank(), rewriter.getIndexAttr(1));
    SmallVector<Value> indices;
    for (int64_t dim : covered) {
      indices.push_back(op.getIndices()[dim]);
      offsets[dim] = rewriter.getIndexAttr(0);
      sizes[dim] = memref::getMixedSize(rewriter, loc, op.getBase(), dim);
    }
    Value view = memref::SubViewOp::create(rewriter, loc, op.getBase(), offsets,
                                           sizes, strides);
    view = keepDims(rewriter, loc, view, covered, sizes);
    rewriter.modifyOpInPlace(op, [&] {
      op.getBaseMutable().assign(view);
      op.getIndicesMutable().assign(indices);
      op.setPermutationMapAttr(
          AffineMapAttr::get(rewriter.getMultiDimIdentityMap(covered.size())));
    });
    return success();
  }
};

/// A dimension split into several of unknown extents: a view made from the
/// extents that the op says. Upstream looks for one unknown extent, and
/// crashes.
struct SplitDynamicDims : public OpRewritePattern<memref::ExpandShapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(memref::ExpandShapeOp op,
                                PatternRewriter &rewriter) const override {
    MemRefType type = op.getResultType();
    auto groups = op.getReassociationIndices();
    bool isSplit = llvm::any_of(groups, [&](ArrayRef<int64_t> dims) {
      return llvm::count_if(
                 dims, [&](int64_t dim) { return type.isDynamicDim(dim); }) > 1;
    });
    if (!isSplit)
      return rewriter.notifyMatchFailure(op, "one unknown extent at most");

    Location loc = op.getLoc();
    auto metadata =
        memref::ExtractStridedMetadataOp::create(rewriter, loc, op.getSrc());
    auto [strides, offset] = type.getStridesAndOffset();
    auto known = [&](int64_t number, Value value) -> OpFoldResult {
      if (ShapedType::isDynamic(number))
        return value;
      return rewriter.getIndexAttr(number);
    };
    SmallVector<OpFoldResult> sizes = op.getMixedOutputShape(),
                              mixedStrides(type.getRank());
    for (auto [group, dims] : llvm::enumerate(groups)) {
      Value stride = metadata.getStrides()[group];
      for (int64_t dim : llvm::reverse(dims)) {
        mixedStrides[dim] = known(strides[dim], stride);
        stride = arith::MulIOp::create(
            rewriter, loc, stride,
            getValueOrCreateConstantIndexOp(rewriter, loc, sizes[dim]));
      }
    }
    rewriter.replaceOpWithNewOp<memref::ReinterpretCastOp>(
        op, type, metadata.getBaseBuffer(), known(offset, metadata.getOffset()),
        sizes, mixedStrides);
    return success();
  }
};

struct MapToRegisters
    : public norm::impl::MapToRegistersPassBase<MapToRegisters> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<scf::ForallOp> loops = findTileLoops(getOperation());
    for (scf::ForallOp loop : loops)
      if (loop->getNumResults() != 0) {
        loop.emitOpError("expected a loop over tiles of buffers, got one that "
                         "yields tensors: bufferize first");
        return signalPassFailure();
      }

    IRRewriter rewriter(&getContext());
    if (isa == CpuIsa::Avx512)
      for (scf::ForallOp loop : loops)
        exchangeShortRows(rewriter, loop);
    RewritePatternSet patterns(&getContext());
    populateReductionTrees(patterns);
    patterns.add<DropUncoveredDims<vector::TransferReadOp>,
                 DropUncoveredDims<vector::TransferWriteOp>, SplitDynamicDims>(
        &getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));

    for (scf::ForallOp loop : loops) {
      auto strategy = loop->getAttrOfType<CpuStrategyAttr>(kStrategyAttrName);
      if (!strategy)
        continue;
      if (isa != CpuIsa::Any)
        pairNarrowColumns(rewriter, loop, isa);
      prefetchNextTiles(rewriter, loop, strategy.getPrefetch());
      if (streamStores(rewriter, loop, strategy.getStreamBytes(), isa))
        loop->setAttr(kStreamsAttrName, rewriter.getUnitAttr());
    }
    // Loops over the tiles of a range, and over the rows of a tile.
    getOperation()->walk(
        [](scf::ForOp loop) { loop->removeAttr(kStrategyAttrName); });
  }
};
} // namespace
