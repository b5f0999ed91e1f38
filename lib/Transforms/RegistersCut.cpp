//===- RegistersCut.cpp - Sweeps from line to line -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows need not start on a line. Where a sweep does nothing but compute and
// store elements, each from what it reads at its own column, it may be cut into
// vectors anywhere: it stores up to the next line under a mask, then whole
// lines, then the rest under a mask. Sums keep their cut, which decides bits.
//
//===----------------------------------------------------------------------===//

#include "RegistersStream.h"

#include "Norm/IR/NormDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::norm;

/// How many columns the mask of a rest leaves; null if that cannot be told.
static OpFoldResult activeColumns(Value mask) {
  if (auto create = mask.getDefiningOp<vector::CreateMaskOp>())
    return create.getOperands().back();
  if (auto constant = mask.getDefiningOp<vector::ConstantMaskOp>())
    return IntegerAttr::get(IndexType::get(mask.getContext()),
                            constant.getMaskDimSizes().back());
  return {};
}

/// The masked write after `sweep` that writes what `write` left over; null if
/// there is none.
static vector::TransferWriteOp findRest(scf::ForOp sweep,
                                        vector::TransferWriteOp write) {
  for (Operation *op = sweep->getNextNode(); op; op = op->getNextNode()) {
    auto rest = dyn_cast<vector::TransferWriteOp>(op);
    if (!rest || rest.getBase() != write.getBase() || !rest.getMask())
      continue;
    auto isSame = [](Value one, Value other) {
      return isEqualConstantIntOrValue(getAsOpFoldResult(one),
                                       getAsOpFoldResult(other));
    };
    if (rest.getVectorType() == write.getVectorType() &&
        isSame(rest.getIndices().back(), sweep.getUpperBound()) &&
        llvm::all_of(llvm::zip(rest.getIndices().drop_back(),
                               write.getIndices().drop_back()),
                     [&](auto pair) {
                       return isSame(std::get<0>(pair), std::get<1>(pair));
                     }))
      return rest;
  }
  return {};
}

/// Whether `op`, in the body of `sweep`, can run on columns from anywhere on
/// and on some only.
static bool canCut(Operation &op, scf::ForOp sweep,
                   SmallVectorImpl<vector::TransferWriteOp> &writes) {
  VectorType type = writes.front().getVectorType();
  if (auto write = dyn_cast<vector::TransferWriteOp>(op))
    return llvm::is_contained(writes, write) &&
           write.getIndices().back() == sweep.getInductionVar() &&
           widthOf(write.getVectorType()) == widthOf(type);
  if (auto read = dyn_cast<vector::TransferReadOp>(op))
    return getSweep(read) != sweep ||
           (movesColumns(read) && !read.getMask() &&
            read.getVectorType().getShape().back() == type.getShape().back() &&
            firstColumn(nullptr, read));
  return op.getNumRegions() == 0 &&
         (isa<memref::PrefetchOp>(op) || isMemoryEffectFree(&op));
}

/// Whether all rows of `write` lie on lines alike, as far as types tell.
static bool mayBeAlike(vector::TransferWriteOp write) {
  auto type = cast<MemRefType>(write.getBase().getType());
  VectorType vector = write.getVectorType();
  if (vector.getRank() == 1 || vector.getDimSize(0) == 1)
    return true;
  int64_t pitch = type.getStridesAndOffset().first[type.getRank() - 2];
  return ShapedType::isDynamic(pitch) ||
         pitch * widthOf(vector) % kLineBytes == 0;
}

bool Streamer::planCut(StoringSweep &sweep) {
  auto cut = dyn_cast<scf::ForOp>(sweep.op);
  vector::TransferWriteOp first = sweep.writes.front();
  if (!cut || cut.getNumResults() != 0 ||
      getConstantIntValue(cut.getStep()) !=
          first.getVectorType().getShape().back() ||
      !llvm::all_of(sweep.writes, mayBeAlike))
    return false;
  for (Operation &op : cut.getBody()->without_terminator())
    if (!canCut(op, cut, sweep.writes))
      return false;

  // All or none leave a rest, and the same.
  OpFoldResult rest;
  SmallVector<vector::TransferWriteOp> rests;
  for (auto [number, write] : llvm::enumerate(sweep.writes)) {
    vector::TransferWriteOp found = findRest(cut, write);
    OpFoldResult active =
        found ? activeColumns(found.getMask()) : OpFoldResult();
    if ((found && !active) ||
        (number > 0 && active.isNull() != rest.isNull()) ||
        (number > 0 && active && !isEqualConstantIntOrValue(active, rest)))
      return false;
    rest = active;
    if (found)
      rests.push_back(found);
  }
  rewriter.setInsertionPoint(cut);
  sweep.end = cut.getUpperBound();
  if (rest)
    sweep.end = arith::AddIOp::create(
        rewriter, cut.getLoc(), sweep.end,
        getValueOrCreateConstantIndexOp(rewriter, cut.getLoc(), rest));
  sweep.rests = rests;
  return true;
}

/// The body of `sweep` for `count` columns from `start` on.
void Streamer::cloneMasked(scf::ForOp sweep, Value start, Value count) {
  IRMapping mapping;
  mapping.map(sweep.getInductionVar(), start);
  for (Operation &op : sweep.getBody()->without_terminator()) {
    Operation *cloned = rewriter.clone(op, mapping);
    auto access = dyn_cast<VectorTransferOpInterface>(cloned);
    if (!access || getSweep(cast<VectorTransferOpInterface>(op)) != sweep)
      continue;
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(cloned);
    VectorType type = access.getVectorType();
    SmallVector<Value> bounds;
    if (type.getRank() == 2)
      bounds.push_back(index(type.getDimSize(0)));
    bounds.push_back(count);
    Value mask = vector::CreateMaskOp::create(
        rewriter, loc, type.clone(rewriter.getI1Type()), bounds);
    if (auto read = dyn_cast<vector::TransferReadOp>(cloned))
      read.getMaskMutable().assign(mask);
    else
      cast<vector::TransferWriteOp>(cloned).getMaskMutable().assign(mask);
  }
}

/// Whether `sweep` is one of several in a tile, which store in different
/// places: the images of a channel. Rows of a tile lie side by side.
static bool liesApart(scf::ForOp sweep) {
  for (Operation *op = sweep->getParentOp(); !isa<scf::ForallOp>(op);
       op = op->getParentOp())
    if (isa<scf::ForOp>(op))
      return !op->hasAttr(kStrategyAttrName);
  return false;
}

/// Whether a sweep that starts at `address` and ends at column `end` stores
/// whole lines only, or so many that the two at its edges do not matter: these
/// are read first, and nothing else waits for memory as long.
Value Streamer::isLongOrWhole(Value address, Value end, int64_t width) {
  constexpr int64_t kLongBytes = 4096;
  Value size = arith::MulIOp::create(rewriter, loc, end, index(width));
  Value isLong = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::uge,
                                       size, index(kLongBytes));
  Value edges = arith::AndIOp::create(
      rewriter, loc, arith::OrIOp::create(rewriter, loc, address, size),
      index(kLineBytes - 1));
  Value isWhole = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq,
                                        edges, index(0));
  return arith::OrIOp::create(rewriter, loc, isLong, isWhole);
}

void Streamer::cut(StoringSweep &sweep) {
  auto plain = cast<scf::ForOp>(sweep.op);
  rewriter.setInsertionPoint(plain);
  loc = plain.getLoc();
  // One place to start has to do for all rows of all results.
  int64_t width = widthOf(sweep.writes.front().getVectorType());
  Value address = startAddress(sweep.writes.front());
  SmallVector<Value> bytes;
  for (vector::TransferWriteOp write : sweep.writes) {
    bytes.push_back(openPitch(write));
    if (write != sweep.writes.front())
      bytes.push_back(
          arith::XOrIOp::create(rewriter, loc, address, startAddress(write)));
  }
  // Elements off their own places lie on no line.
  bytes.push_back(
      arith::AndIOp::create(rewriter, loc, address, index(width - 1)));
  Value streams = areWholeLines(bytes);
  bool apart = liesApart(plain);
  if (apart) {
    Value isWorth = isLongOrWhole(address, sweep.end, width);
    streams = arith::AndIOp::create(rewriter, loc, streams, isWorth);
  }
  auto branch = scf::IfOp::create(rewriter, loc, TypeRange(), streams,
                                  /*withElseRegion=*/true);

  rewriter.setInsertionPointToStart(branch.thenBlock());
  Value lower = plain.getLowerBound(), zero = index(0);
  Value toLine = arith::DivUIOp::create(
      rewriter, loc,
      arith::AndIOp::create(rewriter, loc,
                            arith::SubIOp::create(rewriter, loc, zero, address),
                            index(kLineBytes - 1)),
      index(width));
  Value all = arith::SubIOp::create(rewriter, loc, sweep.end, lower);
  Value head = arith::MinUIOp::create(rewriter, loc, toLine, all);
  Value start = arith::AddIOp::create(rewriter, loc, lower, head);
  Value left = arith::SubIOp::create(rewriter, loc, sweep.end, start);
  Value tail = arith::RemUIOp::create(rewriter, loc, left, plain.getStep());
  Value last = arith::SubIOp::create(rewriter, loc, sweep.end, tail);
  IRMapping mapping;
  auto streamed = cast<scf::ForOp>(rewriter.clone(*plain, mapping));
  streamed.setLowerBound(start);
  streamed.setUpperBound(last);

  // Both edges by one masked body.
  auto edges = scf::ForOp::create(rewriter, loc, zero, index(2), index(1));
  rewriter.setInsertionPointToStart(edges.getBody());
  Value isHead = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq,
                                       edges.getInductionVar(), zero);
  Value from = arith::SelectOp::create(rewriter, loc, isHead, lower, last);
  Value count = arith::SelectOp::create(rewriter, loc, isHead, head, tail);
  Value isSome = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ne,
                                       count, zero);
  auto some = scf::IfOp::create(rewriter, loc, TypeRange(), isSome,
                                /*withElseRegion=*/false);
  rewriter.setInsertionPointToStart(some.thenBlock());
  cloneMasked(plain, from, count);

  rewriter.moveOpBefore(plain, branch.elseBlock(), branch.elseBlock()->begin());
  if (isLarge && !apart)
    dropFetches(plain);
  for (vector::TransferWriteOp write : sweep.writes)
    storeLines(
        cast<vector::TransferWriteOp>(mapping.lookup(write.getOperation())));
  for (vector::TransferWriteOp rest : sweep.rests) {
    rewriter.setInsertionPoint(rest);
    auto kept = scf::IfOp::create(rewriter, rest.getLoc(), TypeRange(), streams,
                                  /*withElseRegion=*/true);
    rewriter.moveOpBefore(rest, kept.elseBlock(), kept.elseBlock()->begin());
  }
}
