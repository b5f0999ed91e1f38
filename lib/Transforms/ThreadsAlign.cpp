//===- ThreadsAlign.cpp - When columns move by whole accesses -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The alignment analysis of norm-map-to-threads (MapToThreads.h).
//
//===----------------------------------------------------------------------===//

#include "MapToThreads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::norm;

WholeAccesses WholeAccesses::analyze(scf::ForallOp loop,
                                     const RowLayout &layout,
                                     GpuStrategyAttr strategy) {
  WholeAccesses whole(loop, strategy.getWidth());
  // A piece is in the row or not at all.
  whole.possible = whole.width > 1 && strategy.getColumns() % whole.width == 0;
  loop.getBody()->walk([&](Operation *op) {
    if (auto transfer = dyn_cast<VectorTransferOpInterface>(op))
      whole.addTransfer(transfer, layout);
    if (auto mask = dyn_cast<vector::CreateMaskOp>(op))
      whole.possible &= whole.isMultiple(mask.getOperands().back());
    if (auto mask = dyn_cast<vector::ConstantMaskOp>(op))
      whole.possible &= mask.getMaskDimSizes().back() % whole.width == 0;
  });
  return whole;
}

void WholeAccesses::addTransfer(VectorTransferOpInterface transfer,
                                const RowLayout &layout) {
  VectorType type = transfer.getVectorType();
  if (!layout.hasColumns(type) || isStagedRow(transfer.getBase()))
    return;
  auto memref = cast<MemRefType>(transfer.getBase().getType());
  int64_t bytes =
      std::min(kAccessBytes, width * (memref.getElementTypeBitWidth() / 8));
  AffineMap map = transfer.getPermutationMap();
  bool isLast = cast<AffineDimExpr>(map.getResults().back()).getPosition() ==
                memref.getRank() - 1;
  possible &= isLast && isMultiple(transfer.getIndices().back()) &&
              addView(transfer.getBase(), bytes);
}

/// Notes what keeps rows of `view` aligned; false if nothing does.
bool WholeAccesses::addView(Value view, int64_t bytes) {
  auto type = cast<MemRefType>(view.getType());
  if (!type.isLastDimUnitStride())
    return false;
  if (view.getParentRegion()->isProperAncestor(&loop.getRegion())) {
    auto [strides, offset] = type.getStridesAndOffset();
    for (int64_t stride : ArrayRef(strides).drop_back())
      if (ShapedType::isStatic(stride) && stride % width != 0)
        return false;
    int64_t &known = buffers[view];
    known = std::max(known, bytes);
    return true;
  }
  if (auto subview = view.getDefiningOp<memref::SubViewOp>()) {
    // Whether the last dimension of the view is that of its source is known
    // where both have elements side by side.
    OpFoldResult offset = subview.getMixedOffsets().back();
    auto value = dyn_cast<Value>(offset);
    bool isAligned =
        value ? isMultiple(value) : *getConstantIntValue(offset) % width == 0;
    return isAligned &&
           getConstantIntValue(subview.getMixedStrides().back()) == 1 &&
           addView(subview.getSource(), bytes);
  }
  if (auto castOp = view.getDefiningOp<memref::CastOp>())
    return addView(castOp.getSource(), bytes);
  return false;
}

/// Whether an index is a multiple of V, if `extents` are.
bool WholeAccesses::isMultiple(Value value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return *constant % width == 0;
  if (value.getParentRegion()->isProperAncestor(&loop.getRegion())) {
    extents.insert(value);
    return true;
  }
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto inner = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return inner && argument == inner.getInductionVar() &&
           isMultiple(inner.getLowerBound()) && isMultiple(inner.getStep());
  }
  Operation *op = value.getDefiningOp();
  auto isOperandMultiple = [&](Value v) { return isMultiple(v); };
  if (isa<arith::AddIOp, arith::SubIOp, arith::MinUIOp, arith::MinSIOp,
          arith::RemUIOp, arith::RemSIOp>(op))
    return llvm::all_of(op->getOperands(), isOperandMultiple);
  if (isa<arith::MulIOp>(op))
    return llvm::any_of(op->getOperands(), isOperandMultiple);
  return false;
}

Value WholeAccesses::buildCheck(OpBuilder &builder, Location loc) const {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value zero = index(0), all;
  auto require = [&](Value condition) {
    all = all ? arith::AndIOp::create(builder, loc, all, condition).getResult()
              : condition;
  };
  auto requireMultiple = [&](Value value, int64_t divisor) {
    Value rest = arith::RemUIOp::create(builder, loc, value, index(divisor));
    require(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, rest,
                                  zero));
  };
  for (Value extent : extents) {
    requireMultiple(extent, width);
    require(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                  extent, zero));
  }
  for (auto [buffer, bytes] : buffers) {
    auto type = cast<MemRefType>(buffer.getType());
    auto [strides, offset] = type.getStridesAndOffset();
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, buffer);
    bool hasDynamic = llvm::any_of(strides, ShapedType::isDynamic);
    if (hasDynamic || ShapedType::isDynamic(offset)) {
      auto metadata =
          memref::ExtractStridedMetadataOp::create(builder, loc, buffer);
      Value skipped =
          arith::MulIOp::create(builder, loc, metadata.getOffset(),
                                index(type.getElementTypeBitWidth() / 8));
      address = arith::AddIOp::create(builder, loc, address, skipped);
      for (auto [known, stride] :
           llvm::zip_equal(strides, metadata.getStrides()))
        if (ShapedType::isDynamic(known))
          requireMultiple(stride, width);
    } else if (offset != 0) {
      address = arith::AddIOp::create(
          builder, loc, address,
          index(offset * (type.getElementTypeBitWidth() / 8)));
    }
    requireMultiple(address, bytes);
  }
  return all;
}
