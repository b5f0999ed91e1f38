//===- ThreadsForward.cpp - Rows written where they go -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bufferization cannot tell that two results of a row, as the halves of a
// rotary embedding, lie beside each other in one buffer. It computes one of
// them in a buffer of its own and copies it. Threads have no such buffers.
//
//===----------------------------------------------------------------------===//

#include "MapToThreads.h"

#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::norm;

/// Whether an op only writes to `buffer`, or ends its life.
static bool onlyWrites(Operation *op, Value buffer) {
  if (auto write = dyn_cast<vector::TransferWriteOp>(op))
    return write.getBase() == buffer;
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return store.getMemRef() == buffer;
  return isa<memref::DeallocOp>(op);
}

/// Moves the views that make `view` before `op`, if they need nothing that
/// comes later.
static bool hoistView(Value view, Operation *op) {
  Operation *producer = view.getDefiningOp();
  if (!producer || producer->getBlock() != op->getBlock() ||
      producer->isBeforeInBlock(op))
    return true;
  auto isThere = [&](Value operand) {
    Operation *source = operand.getDefiningOp();
    return !source || source->getBlock() != op->getBlock() ||
           source->isBeforeInBlock(op);
  };
  auto cast = dyn_cast<ViewLikeOpInterface>(producer);
  if (!cast || !hoistView(cast.getViewSource(), op) ||
      !llvm::all_of(producer->getOperands(), isThere))
    return false;
  producer->moveBefore(op);
  return true;
}

/// Writes what goes to `buffer` to where it is copied instead.
static void forward(memref::AllocOp buffer) {
  memref::CopyOp copy;
  for (Operation *user : buffer->getUsers()) {
    if (auto found = dyn_cast<memref::CopyOp>(user);
        found && !copy && found.getSource() == buffer &&
        found.getTarget() != buffer)
      copy = found;
    else if (!onlyWrites(user, buffer))
      return;
  }
  if (!copy || copy->getBlock() != buffer->getBlock() ||
      !hoistView(copy.getTarget(), buffer))
    return;
  Value target = copy.getTarget();
  copy.erase();
  for (Operation *user : llvm::make_early_inc_range(buffer->getUsers()))
    if (isa<memref::DeallocOp>(user))
      user->erase();
  buffer.replaceAllUsesWith(target);
  buffer.erase();
}

void norm::forwardCopies(scf::ForallOp loop) {
  SmallVector<memref::AllocOp> buffers(
      loop.getBody()->getOps<memref::AllocOp>());
  for (memref::AllocOp buffer : buffers)
    forward(buffer);
}
