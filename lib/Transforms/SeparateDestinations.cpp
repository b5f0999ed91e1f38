//===- SeparateDestinations.cpp - norm-separate-destinations ---*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Empty tensor elimination makes a destination out of a result's buffer. If
// another op shares that destination, one-shot bufferization may compute it in
// the same buffer: it sees no conflict, because what is written there last is
// written to a buffer, not to a tensor. Destinations of their own rule it out.
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace mlir::norm {
#define GEN_PASS_DEF_SEPARATEDESTINATIONSPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;

/// The operands of `op` that its results may be computed in.
static SmallVector<OpOperand *> destinationsOf(Operation *op) {
  SmallVector<OpOperand *> destinations;
  auto add = [&](MutableArrayRef<OpOperand> operands) {
    for (OpOperand &operand : operands)
      if (isa<RankedTensorType>(operand.get().getType()))
        destinations.push_back(&operand);
  };
  if (auto style = dyn_cast<DestinationStyleOpInterface>(op))
    add(style.getDpsInitsMutable());
  else if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
    add(loop.getInitsMutable());
  return destinations;
}

/// A tensor like `value` that only the next op uses: what makes elements of
/// nothing is made again, all else is copied.
static Value separate(Value value, OpBuilder &builder) {
  Operation *def = value.getDefiningOp();
  if (auto empty = dyn_cast_or_null<tensor::EmptyOp>(def))
    return builder.clone(*empty)->getResult(0);
  if (auto fill = dyn_cast_or_null<linalg::FillOp>(def)) {
    IRMapping mapping;
    Value destination = fill.getDpsInits()[0];
    mapping.map(destination, separate(destination, builder));
    return builder.clone(*fill, mapping)->getResult(0);
  }
  return bufferization::AllocTensorOp::create(
      builder, value.getLoc(), cast<RankedTensorType>(value.getType()),
      /*dynamicSizes=*/ValueRange(), /*copy=*/value);
}

namespace {
struct SeparateDestinations
    : public norm::impl::SeparateDestinationsPassBase<SeparateDestinations> {
  void runOnOperation() override {
    OpBuilder builder(&getContext());
    // A value may be the destination of one op alone, or of one in each branch.
    llvm::DenseMap<Value, SmallVector<Operation *>> taken;
    getOperation()->walk([&](Operation *op) {
      builder.setInsertionPoint(op);
      for (OpOperand *operand : destinationsOf(op)) {
        SmallVector<Operation *> &others = taken[operand->get()];
        if (llvm::all_of(others, [&](Operation *other) {
              return insideMutuallyExclusiveRegions(op, other);
            }))
          others.push_back(op);
        else
          operand->set(separate(operand->get(), builder));
      }
    });
  }
};
} // namespace
