//===- ThreadsLayout.cpp - What the values of a row vary along -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The analysis of norm-map-to-threads (MapToThreads.h).
//
//===----------------------------------------------------------------------===//

#include "MapToThreads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::norm;

Value norm::getViewedBuffer(Value view) {
  while (auto op = view.getDefiningOp<ViewLikeOpInterface>())
    view = op.getViewSource();
  return view;
}

bool RowLayout::hasColumns(Type type) const {
  auto vector = dyn_cast<VectorType>(type);
  return vector && !vector.isScalable() && vector.getRank() > 0 &&
         vector.getNumElements() == strategy.getColumns() &&
         vector.getShape().back() == strategy.getColumns();
}

FailureOr<RowLayout> RowLayout::analyze(scf::ForallOp loop,
                                        GpuStrategyAttr strategy) {
  RowLayout layout(loop, strategy);
  WalkResult result = loop.getBody()->walk([&](Operation *op) {
    return failed(layout.checkOp(op)) ? WalkResult::interrupt()
                                      : WalkResult::advance();
  });
  if (result.wasInterrupted() || failed(layout.checkBuffers()))
    return failure();
  layout.findRowValues();
  layout.computeLevels();
  if (strategy.getLateReads())
    layout.delayReads();
  return layout;
}

//===----------------------------------------------------------------------===//
// What can be spread
//===----------------------------------------------------------------------===//

LogicalResult RowLayout::checkTypes(Operation *op) const {
  auto check = [&](Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return !vector || hasColumns(type) ||
           (!vector.isScalable() && vector.getNumElements() == 1);
  };
  for (TypeRange types :
       {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      if (!check(type))
        return op->emitOpError("cannot be spread over threads: expected "
                               "vectors of one row's ")
               << strategy.getColumns() << " columns or of one element, got "
               << type;
  return success();
}

/// A transfer of one row's columns, or of one element.
static LogicalResult checkTransfer(VectorTransferOpInterface op,
                                   int64_t columns) {
  auto type = dyn_cast<MemRefType>(op.getBase().getType());
  Operation *transfer = op.getOperation();
  if (!type)
    return transfer->emitOpError("cannot be spread over threads: expected a "
                                 "buffer, got ")
           << op.getBase().getType();
  if (type.getElementType().isIntOrFloat() &&
      type.getElementTypeBitWidth() % 8 != 0)
    return transfer->emitOpError("cannot be spread over threads: expected "
                                 "elements of whole bytes, got ")
           << type.getElementType();
  AffineMap map = op.getPermutationMap();
  if (!isa<AffineDimExpr>(map.getResults().back()) || op.hasOutOfBoundsDim())
    return transfer->emitOpError("cannot be spread over threads: expected its "
                                 "columns to lie along a dimension, in bounds");
  // No barrier orders what threads do there.
  if (isStagedRow(op.getBase()) &&
      (op.getMask() || !op.getPermutationMap().isMinorIdentity() ||
       !isChunkStart(op.getIndices().back(), columns)))
    return transfer->emitOpError(
        "cannot be spread over threads: expected whole "
        "chunks of a row in shared memory");
  return success();
}

LogicalResult RowLayout::checkOp(Operation *op) {
  if (failed(checkTypes(op)))
    return failure();
  auto refuse = [&](StringRef why) -> LogicalResult {
    return op->emitOpError("cannot be spread over threads") << why;
  };
  if (auto transfer = dyn_cast<VectorTransferOpInterface>(op))
    return checkTransfer(transfer, strategy.getColumns());
  if (auto reduction = dyn_cast<vector::MultiDimReductionOp>(op)) {
    if (op->getBlock() != loop.getBody())
      return refuse(": expected reductions outside of loops");
    Type element = reduction.getSourceVectorType().getElementType();
    if (!hasColumns(reduction.getSource()) || hasColumns(reduction.getDest()))
      return refuse(": expected a reduction of columns");
    if (element.getIntOrFloatBitWidth() != 32 &&
        element.getIntOrFloatBitWidth() != 64)
      return refuse(": expected a reduction in 32 or 64 bits");
    return success();
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
    return !hasColumns(constant.getType()) || (dense && dense.isSplat())
               ? success()
               : refuse(": expected equal elements");
  }
  bool touchesColumns =
      llvm::any_of(op->getOperandTypes(),
                   [&](Type t) { return hasColumns(t); }) ||
      llvm::any_of(op->getResultTypes(), [&](Type t) { return hasColumns(t); });
  bool isMove = isa<vector::BroadcastOp, vector::ShapeCastOp>(op);
  if (isa<scf::ForOp, scf::YieldOp, scf::InParallelOp>(op) || isMove ||
      OpTrait::hasElementwiseMappableTraits(op))
    return success();
  if (isa<vector::CreateMaskOp, vector::ConstantMaskOp>(op))
    return touchesColumns ? success() : refuse(": expected a mask of columns");
  if (!touchesColumns && op->getNumRegions() == 0 &&
      (isPure(op) || isa<memref::LoadOp, memref::StoreOp>(op)))
    return success();
  if (isa<memref::AllocOp>(op) && isStagedRow(op->getResult(0)) &&
      op->getBlock() == loop.getBody())
    return success();
  return refuse("");
}

/// The buffer that an op writes or reads elements of.
static Value getAccessed(Operation *op, bool isWrite) {
  Value view;
  if (auto write = dyn_cast<vector::TransferWriteOp>(op))
    view = isWrite ? write.getBase() : Value();
  else if (auto store = dyn_cast<memref::StoreOp>(op))
    view = isWrite ? store.getMemRef() : Value();
  else if (auto read = dyn_cast<vector::TransferReadOp>(op))
    view = isWrite ? Value() : read.getBase();
  else if (auto load = dyn_cast<memref::LoadOp>(op))
    view = isWrite ? Value() : load.getMemRef();
  return view ? getViewedBuffer(view) : Value();
}

/// Reads move among levels, and no barrier orders them with the writes of other
/// threads.
LogicalResult RowLayout::checkBuffers() {
  DenseSet<Value> written;
  loop.getBody()->walk([&](Operation *op) {
    if (Value buffer = getAccessed(op, /*isWrite=*/true))
      written.insert(buffer);
  });
  WalkResult result = loop.getBody()->walk([&](Operation *op) {
    Value buffer = getAccessed(op, /*isWrite=*/false);
    if (!buffer || !written.contains(buffer) || isStagedRow(buffer))
      return WalkResult::advance();
    op->emitOpError("cannot be spread over threads: expected to read no buffer "
                    "that the same loop over rows writes");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void RowLayout::findRowValues() {
  rowValues.insert_range(loop.getInductionVars());
  bool hasChanged = true;
  auto note = [&](Value value) {
    hasChanged |= rowValues.insert(value).second;
  };
  while (hasChanged) {
    hasChanged = false;
    loop.getBody()->walk([&](Operation *op) {
      if (auto inner = dyn_cast<scf::ForOp>(op)) {
        for (auto [init, arg, yielded, result] :
             llvm::zip_equal(inner.getInits(), inner.getRegionIterArgs(),
                             inner.getYieldedValues(), inner.getResults()))
          if (rowValues.contains(init) || rowValues.contains(yielded)) {
            note(arg);
            note(result);
          }
        return;
      }
      if (llvm::any_of(op->getOperands(),
                       [&](Value v) { return rowValues.contains(v); }))
        llvm::for_each(op->getResults(), note);
    });
  }
}

//===----------------------------------------------------------------------===//
// Levels
//===----------------------------------------------------------------------===//

void RowLayout::computeLevels() {
  for (Operation &op : loop.getBody()->without_terminator()) {
    SetVector<Value> used(op.operand_begin(), op.operand_end());
    for (Region &region : op.getRegions())
      getUsedValuesDefinedAbove(region, used);
    int level = 0;
    for (Value value : used)
      if (Operation *producer = value.getDefiningOp();
          producer && levels.contains(producer))
        level = std::max(level, levels[producer] +
                                    isa<vector::MultiDimReductionOp>(producer));
    levels[&op] = level;
    numLevels = std::max(numLevels, level + 1);
  }
}

/// Moves what does not vary along rows to the first level that needs it.
void RowLayout::delayReads() {
  for (Operation &op : llvm::reverse(loop.getBody()->without_terminator())) {
    bool isShared = op.getNumResults() == 1 && op.getNumRegions() == 0 &&
                    hasColumns(op.getResult(0)) &&
                    !variesAlongRows(op.getResult(0));
    if (!isShared || !(isPure(&op) || isa<vector::TransferReadOp>(op)))
      continue;
    int level = numLevels - 1;
    for (Operation *user : op.getUsers())
      level = std::min(
          level, levels.lookup(loop.getBody()->findAncestorOpInBlock(*user)));
    levels[&op] = std::max(levels[&op], level);
  }
}
