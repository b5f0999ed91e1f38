//===- MapToRegisters.cpp - norm-map-to-registers -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "Norm/IR/NormDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
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

/// Combines the elements of a 1-D vector whose length is a power of two:
/// halves are combined until one element is left. The order is part of the
/// promise that a row's bits do not depend on what it is computed beside.
static Value reduceByTree(OpBuilder &builder, Location loc, Value vector,
                          vector::CombiningKind kind) {
  int64_t length = cast<VectorType>(vector.getType()).getDimSize(0);
  while (length > 1) {
    length /= 2;
    auto half = [&](int64_t offset) -> Value {
      return vector::ShuffleOp::create(
          builder, loc, vector, vector,
          llvm::to_vector(llvm::seq(offset, offset + length)));
    };
    vector =
        vector::makeArithReduction(builder, loc, kind, half(0), half(length));
  }
  return vector::ExtractOp::create(builder, loc, vector, 0);
}

namespace {
/// vector<RxC> or vector<C> over its columns, one tree per row.
struct ReduceColumns : public OpRewritePattern<vector::MultiDimReductionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(vector::MultiDimReductionOp op,
                                PatternRewriter &rewriter) const override {
    VectorType type = op.getSourceVectorType();
    int64_t last = type.getRank() - 1;
    if (type.getRank() > 2 ||
        op.getReductionDims() != ArrayRef<int64_t>{last} ||
        !llvm::isPowerOf2_64(type.getDimSize(last)))
      return rewriter.notifyMatchFailure(
          op, "expected the columns of vector<RxC> to be reduced, C a power "
              "of two");
    Location loc = op.getLoc();
    vector::CombiningKind kind = op.getKind();
    if (type.getRank() == 1) {
      Value sum = reduceByTree(rewriter, loc, op.getSource(), kind);
      rewriter.replaceOp(op, vector::makeArithReduction(rewriter, loc, kind,
                                                        sum, op.getAcc()));
      return success();
    }
    SmallVector<Value> sums;
    for (int64_t row = 0; row < type.getDimSize(0); ++row)
      sums.push_back(reduceByTree(
          rewriter, loc,
          vector::ExtractOp::create(rewriter, loc, op.getSource(), row), kind));
    Value rows = vector::FromElementsOp::create(
        rewriter, loc, cast<VectorType>(op.getType()), sums);
    rewriter.replaceOp(
        op, vector::makeArithReduction(rewriter, loc, kind, rows, op.getAcc()));
    return success();
  }
};

/// Masked transfers of vector<RxC> over axes of a buffer that are not its last
/// two, as one transfer per row. Upstream's lowering gets the masks of these
/// wrong: it makes the map a permutation first, but not the mask.
template <typename TransferOp>
struct SplitRows : public OpRewritePattern<TransferOp> {
  using OpRewritePattern<TransferOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(TransferOp op,
                                PatternRewriter &rewriter) const override {
    AffineMap map = op.getPermutationMap();
    if (!op.getMask() || op.getVectorType().getRank() != 2 ||
        map.isMinorIdentity() || !map.isProjectedPermutation() ||
        map.getDimPosition(0) > map.getDimPosition(1) ||
        !isa<MemRefType>(op.getShapedType()))
      return rewriter.notifyMatchFailure(
          op, "expected a masked transfer of two axes, in the order of the "
              "buffer, that are not its last");
    Location loc = op.getLoc();
    VectorType type = op.getVectorType();
    auto rowType = VectorType::get({type.getDimSize(1)}, type.getElementType());
    AffineMap rowMap = map.getSubMap({1});
    auto inBounds = rewriter.getBoolArrayAttr({op.isDimInBounds(1)});
    constexpr bool isRead = std::is_same_v<TransferOp, vector::TransferReadOp>;
    Value read;
    if (isRead)
      read =
          arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(type));
    for (int64_t row = 0; row < type.getDimSize(0); ++row) {
      SmallVector<Value> indices(op.getIndices());
      Value &index = indices[map.getDimPosition(0)];
      if (row != 0)
        index = arith::AddIOp::create(
            rewriter, loc, index,
            arith::ConstantIndexOp::create(rewriter, loc, row));
      Value mask = vector::ExtractOp::create(rewriter, loc, op.getMask(), row);
      if constexpr (isRead) {
        Value part = vector::TransferReadOp::create(
            rewriter, loc, rowType, op.getBase(), indices,
            AffineMapAttr::get(rowMap), op.getPadding(), mask, inBounds);
        read = vector::InsertOp::create(rewriter, loc, part, read, row);
      } else {
        Value part =
            vector::ExtractOp::create(rewriter, loc, op.getVector(), row);
        vector::TransferWriteOp::create(
            rewriter, loc, Type(), part, op.getBase(), indices,
            AffineMapAttr::get(rowMap), mask, inBounds);
      }
    }
    if (isRead)
      rewriter.replaceOp(op, read);
    else
      rewriter.eraseOp(op);
    return success();
  }
};

struct MapToRegisters
    : public norm::impl::MapToRegistersPassBase<MapToRegisters> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ReduceColumns, SplitRows<vector::TransferReadOp>,
                 SplitRows<vector::TransferWriteOp>>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));

    SmallVector<scf::ForallOp> loops;
    getOperation()->walk([&](scf::ForallOp loop) {
      if (loop->hasAttr(kStrategyAttrName))
        loops.push_back(loop);
    });
    IRRewriter rewriter(&getContext());
    for (scf::ForallOp loop : loops) {
      auto strategy = loop->getAttrOfType<CpuStrategyAttr>(kStrategyAttrName);
      loop->removeAttr(kStrategyAttrName);
      if (!strategy || strategy.getParallel())
        continue;
      rewriter.setInsertionPoint(loop);
      if (failed(scf::forallToForLoop(rewriter, loop))) {
        loop.emitError("expected a loop over tiles on buffers, got one that "
                       "yields tensors");
        return signalPassFailure();
      }
    }
  }
};
} // namespace
