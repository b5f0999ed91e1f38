//===- ThreadsLaunch.cpp - The launch of a loop over rows -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The launch, the thread's place in it, and the order of ops (MapToThreads.h).
//
//===----------------------------------------------------------------------===//

#include "MapToThreads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::norm;

Value ThreadMapper::countRows() {
  Value count = index(1);
  for (OpFoldResult bound : loop.getMixedUpperBound())
    count = builder.createOrFold<arith::MulIOp>(
        loc, count, getValueOrCreateConstantIndexOp(builder, loc, bound));
  return count;
}

gpu::LaunchOp ThreadMapper::createLaunch(Value numRows, Value stream) {
  Value one = index(1);
  Value grid = builder.createOrFold<arith::CeilDivUIOp>(
      loc, numRows, index(strategy.getRows()));
  SmallVector<Value> after;
  Type tokenType;
  if (stream) {
    tokenType = gpu::AsyncTokenType::get(builder.getContext());
    // gpu-to-llvm launches on the stream that the token is made from.
    after.push_back(
        UnrealizedConversionCastOp::create(builder, loc, tokenType, stream)
            .getResult(0));
  }
  Value shared;
  if (int64_t bytes = countStagedBytes(loop, strategy))
    shared = arith::ConstantIntOp::create(builder, loc, bytes, 32);
  return gpu::LaunchOp::create(builder, loc, grid, one, one,
                               index(strategy.getBlockThreads()), one, one,
                               shared, tokenType, after);
}

/// The thread's lane, and the row that the loop's induction variables stand
/// for. Threads beyond the last row compute it once more and write nothing.
void ThreadMapper::placeThread(Value numRows) {
  int64_t rows = strategy.getRows();
  Value thread = launch.getThreadIds().x;
  Value row = launch.getBlockIds().x;
  lane = thread;
  if (rows > 1) {
    Value threads = index(strategy.getThreads());
    lane = arith::RemUIOp::create(builder, loc, thread, threads);
    rowInBlock = arith::DivUIOp::create(builder, loc, thread, threads);
    row = arith::AddIOp::create(
        builder, loc, arith::MulIOp::create(builder, loc, row, index(rows)),
        rowInBlock);
    std::optional<int64_t> count = getConstantIntValue(numRows);
    if (!count || *count % rows != 0) {
      isRow = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                    row, numRows);
      Value last = arith::SubIOp::create(builder, loc, numRows, index(1));
      row = arith::MinUIOp::create(builder, loc, row, last);
    }
  } else {
    rowInBlock = index(0);
  }
  SmallVector<OpFoldResult> bounds = loop.getMixedUpperBound();
  SmallVector<Value> ivs(loop.getInductionVars());
  for (size_t i = bounds.size(); i-- > 0;) {
    if (i == 0) {
      uniforms.map(ivs[i], row);
      break;
    }
    Value bound = getValueOrCreateConstantIndexOp(builder, loc, bounds[i]);
    uniforms.map(ivs[i], arith::RemUIOp::create(builder, loc, row, bound));
    row = arith::DivUIOp::create(builder, loc, row, bound);
  }
}

void ThreadMapper::placeColumns() {
  int64_t width = strategy.getWidth();
  Value first = arith::MulIOp::create(builder, loc, lane, index(width));
  for (int64_t piece = 0; piece < strategy.getAccesses(); ++piece)
    columns.push_back(arith::AddIOp::create(
        builder, loc, first, index(piece * strategy.getThreads() * width)));
}

LogicalResult ThreadMapper::run(Value stream) {
  Value numRows = countRows();
  OpBuilder::InsertionGuard guard(builder);
  if (getConstantIntValue(numRows).value_or(0) == 0) {
    // A grid of no blocks is an error.
    Value isAny = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                        numRows, index(0));
    auto ifOp = scf::IfOp::create(builder, loc, isAny);
    builder.setInsertionPointToStart(ifOp.thenBlock());
  }
  launch = createLaunch(numRows, stream);
  builder.setInsertionPointToStart(&launch.getBody().front());
  placeThread(numRows);
  placeColumns();
  if (failed(emitLevels(loop.getBody())))
    return failure();
  gpu::TerminatorOp::create(builder, loc);
  sinkConstants(launch);
  return expandKernelMath(launch);
}

LogicalResult ThreadMapper::emitLevels(Block *block) {
  for (int level = 0; level < layout.getNumLevels(); ++level) {
    for (Operation &op : block->without_terminator())
      if (layout.getLevel(&op) == level && failed(emit(&op)))
        return failure();
    exchange();
  }
  return success();
}

LogicalResult ThreadMapper::emitBlock(Block *block) {
  for (Operation &op : block->without_terminator())
    if (failed(emit(&op)))
      return failure();
  return success();
}

LogicalResult ThreadMapper::emit(Operation *op) {
  loc = op->getLoc();
  if (auto inner = dyn_cast<scf::ForOp>(op))
    return emitFor(inner);
  if (auto reduction = dyn_cast<vector::MultiDimReductionOp>(op)) {
    addReduction(reduction);
    return success();
  }
  if (auto read = dyn_cast<vector::TransferReadOp>(op))
    return emitRead(read);
  if (auto write = dyn_cast<vector::TransferWriteOp>(op))
    return emitWrite(write);
  if (auto store = dyn_cast<memref::StoreOp>(op)) {
    emitStore(store);
    return success();
  }
  if (auto row = dyn_cast<memref::AllocOp>(op)) {
    emitStagedRow(row);
    return success();
  }
  // What guards make of masks depends on the piece.
  if (isa<vector::CreateMaskOp, vector::ConstantMaskOp>(op))
    return success();
  auto hasColumns = [&](Value value) { return layout.hasColumns(value); };
  if (llvm::any_of(op->getResults(), hasColumns) ||
      llvm::any_of(op->getOperands(), hasColumns))
    return emitColumns(op);
  return emitUniform(op);
}

/// Carried vectors become k carried pieces.
LogicalResult ThreadMapper::emitFor(scf::ForOp op) {
  auto flatten = [&](ValueRange values) {
    SmallVector<Value> flat;
    for (Value value : values)
      if (layout.hasColumns(value))
        llvm::append_range(flat, getPieces(value));
      else
        flat.push_back(getUniform(value));
    return flat;
  };
  auto bind = [&](ValueRange values, ValueRange flat) {
    for (Value value : values) {
      size_t count = layout.hasColumns(value) ? strategy.getAccesses() : 1;
      if (layout.hasColumns(value))
        pieces[value] = llvm::to_vector(flat.take_front(count));
      else
        uniforms.map(value, flat.front());
      flat = flat.drop_front(count);
    }
  };
  SmallVector<Value> inits = flatten(op.getInits());
  auto inner = scf::ForOp::create(builder, loc, getUniform(op.getLowerBound()),
                                  getUniform(op.getUpperBound()),
                                  getUniform(op.getStep()), inits);
  uniforms.map(op.getInductionVar(), inner.getInductionVar());
  bind(op.getRegionIterArgs(), inner.getRegionIterArgs());
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(inner.getBody());
    bool wasInLoop = std::exchange(isInLoop, true);
    LogicalResult result = emitBlock(op.getBody());
    isInLoop = wasInLoop;
    if (failed(result))
      return failure();
    if (!inits.empty())
      scf::YieldOp::create(builder, loc, flatten(op.getYieldedValues()));
  }
  bind(op.getResults(), inner.getResults());
  return success();
}

void ThreadMapper::emitIf(Value condition, function_ref<void()> body) {
  if (!condition)
    return body();
  OpBuilder::InsertionGuard guard(builder);
  auto ifOp = scf::IfOp::create(builder, loc, condition);
  builder.setInsertionPointToStart(ifOp.thenBlock());
  body();
}

Value ThreadMapper::both(Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return arith::AndIOp::create(builder, loc, a, b);
}
