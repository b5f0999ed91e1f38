//===- TouchedBytes.cpp - How much memory a loop touches -------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TouchedBytes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::norm;

Value norm::viewOutside(Value view, Operation *loop) {
  while (Operation *op = view.getDefiningOp()) {
    if (isa<memref::CastOp>(op) || loop->isProperAncestor(op)) {
      if (auto part = dyn_cast<ViewLikeOpInterface>(op)) {
        view = part.getViewSource();
        continue;
      }
      if (auto metadata = dyn_cast<memref::ExtractStridedMetadataOp>(op)) {
        view = metadata.getSource();
        continue;
      }
      if (loop->isProperAncestor(op))
        return {};
    }
    break;
  }
  return view;
}

/// The buffers outside `loop` that ops in it read or write.
static SetVector<Value> findBuffers(scf::ForallOp loop) {
  SetVector<Value> buffers;
  loop.getBody()->walk([&](MemoryEffectOpInterface op) {
    for (Value operand : op->getOperands()) {
      if (!isa<MemRefType>(operand.getType()) ||
          !(op.getEffectOnValue<MemoryEffects::Read>(operand) ||
            op.getEffectOnValue<MemoryEffects::Write>(operand)))
        continue;
      if (Value buffer = viewOutside(operand, loop))
        buffers.insert(buffer);
    }
  });
  return buffers;
}

ExceedsBytes norm::touchesMoreThan(OpBuilder &builder, scf::ForallOp loop,
                                   int64_t bytes) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop);
  Location loc = loop.getLoc();
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  uint64_t known = 0;
  Value unknown;
  for (Value buffer : findBuffers(loop)) {
    auto type = cast<MemRefType>(buffer.getType());
    if (!type.getElementType().isIntOrFloat())
      continue;
    uint64_t size = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    for (int64_t extent : type.getShape())
      if (ShapedType::isStatic(extent))
        size = llvm::SaturatingMultiply<uint64_t>(size, extent);
    if (type.hasStaticShape()) {
      known = llvm::SaturatingAdd(known, size);
      continue;
    }
    Value product = index(size);
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        product = arith::MulIOp::create(
            builder, loc, product,
            memref::DimOp::create(builder, loc, buffer, dim));
    unknown = unknown
                  ? Value(arith::AddIOp::create(builder, loc, unknown, product))
                  : product;
  }
  if (known > static_cast<uint64_t>(bytes))
    return {true, {}};
  if (!unknown)
    return {false, {}};
  return {std::nullopt,
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt,
                                unknown, index(bytes - known))};
}
