//===- ThreadsReduce.cpp - Reductions over the threads of a row -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reductions of norm-map-to-threads (MapToThreads.h): trees whose shape follows
// from k, T and V alone.
//
//===----------------------------------------------------------------------===//

#include "MapToThreads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::norm;

/// What changes nothing when it is combined.
static TypedAttr findNeutral(vector::CombiningKind kind, Type type,
                             OpBuilder &builder, Location loc) {
  using arith::AtomicRMWKind;
  auto identity = [&](AtomicRMWKind op) {
    return arith::getIdentityValueAttr(op, type, builder, loc);
  };
  bool isFloat = isa<FloatType>(type);
  switch (kind) {
  case vector::CombiningKind::ADD:
    return identity(isFloat ? AtomicRMWKind::addf : AtomicRMWKind::addi);
  case vector::CombiningKind::MUL:
    return identity(isFloat ? AtomicRMWKind::mulf : AtomicRMWKind::muli);
  case vector::CombiningKind::MINUI:
    return identity(AtomicRMWKind::minu);
  case vector::CombiningKind::MINSI:
    return identity(AtomicRMWKind::mins);
  case vector::CombiningKind::MINNUMF:
    return identity(AtomicRMWKind::minnumf);
  case vector::CombiningKind::MINIMUMF:
    return identity(AtomicRMWKind::minimumf);
  case vector::CombiningKind::MAXUI:
    return identity(AtomicRMWKind::maxu);
  case vector::CombiningKind::MAXSI:
    return identity(AtomicRMWKind::maxs);
  case vector::CombiningKind::MAXNUMF:
    return identity(AtomicRMWKind::maxnumf);
  case vector::CombiningKind::MAXIMUMF:
    return identity(AtomicRMWKind::maximumf);
  case vector::CombiningKind::AND:
    return identity(AtomicRMWKind::andi);
  case vector::CombiningKind::OR:
    return identity(AtomicRMWKind::ori);
  case vector::CombiningKind::XOR:
    return builder.getZeroAttr(type);
  }
  llvm_unreachable("unknown kind");
}

Value ThreadMapper::reduceTree(vector::CombiningKind kind, Pieces values) {
  while (values.size() > 1) {
    Pieces next;
    for (size_t i = 0; i + 1 < values.size(); i += 2)
      next.push_back(vector::makeArithReduction(builder, loc, kind, values[i],
                                                values[i + 1]));
    if (values.size() % 2 != 0)
      next.push_back(values.back());
    values = std::move(next);
  }
  return values.front();
}

/// All that the thread holds, as one number.
Value ThreadMapper::reducePieces(vector::CombiningKind kind, Pieces pieces) {
  Value vector = reduceTree(kind, std::move(pieces));
  Pieces elements;
  for (int64_t i = 0; i < strategy.getWidth(); ++i)
    elements.push_back(vector::ExtractOp::create(builder, loc, vector, i));
  return reduceTree(kind, std::move(elements));
}

/// A butterfly over the row's threads in the warp: each gets the result.
Value ThreadMapper::reduceWarp(vector::CombiningKind kind, Value value) {
  int64_t threads = std::min<int64_t>(strategy.getThreads(), kWarp);
  for (int64_t distance = threads / 2; distance > 0; distance /= 2) {
    Value other = gpu::ShuffleOp::create(builder, loc, value, distance, kWarp,
                                         gpu::ShuffleMode::XOR)
                      .getShuffleResult();
    value = vector::makeArithReduction(builder, loc, kind, value, other);
  }
  return value;
}

/// One slot a warp and value, one barrier; then every thread combines the slots
/// of its row. Each exchange has slots of its own, so that no second barrier
/// keeps them from being overwritten.
void ThreadMapper::reduceBlock() {
  int64_t warps = strategy.getRowWarps();
  Attribute space = getWorkgroupSpace(builder.getContext());
  Value warp = arith::DivUIOp::create(builder, loc, lane, index(kWarp));
  Value laneInWarp = arith::RemUIOp::create(builder, loc, lane, index(kWarp));
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        laneInWarp, index(0));
  Pieces slots;
  for (Reduction &reduction : pending) {
    auto type =
        MemRefType::get({strategy.getRows(), warps}, reduction.value.getType(),
                        MemRefLayoutAttrInterface(), space);
    slots.push_back(launch.addWorkgroupAttribution(type, loc));
  }
  emitIf(isFirst, [&] {
    for (auto [slot, reduction] : llvm::zip_equal(slots, pending))
      memref::StoreOp::create(builder, loc, reduction.value, slot,
                              ValueRange{rowInBlock, warp});
  });
  gpu::BarrierOp::create(builder, loc);
  for (auto [slot, reduction] : llvm::zip_equal(slots, pending)) {
    Pieces parts;
    for (int64_t i = 0; i < warps; ++i)
      parts.push_back(memref::LoadOp::create(builder, loc, slot,
                                             ValueRange{rowInBlock, index(i)}));
    reduction.value = reduceTree(reduction.op.getKind(), std::move(parts));
  }
}

void ThreadMapper::addReduction(vector::MultiDimReductionOp op) {
  Pieces parts = getPieces(op.getSource());
  auto type = cast<VectorType>(parts.front().getType());
  // Columns beyond the row do not count.
  Value neutral;
  for (auto [piece, part] : llvm::enumerate(parts)) {
    Value guard = guardOf(piece, /*mask=*/{});
    if (!guard)
      continue;
    if (!neutral)
      neutral = arith::ConstantOp::create(
          builder, loc,
          DenseElementsAttr::get(
              type,
              findNeutral(op.getKind(), type.getElementType(), builder, loc)));
    part = arith::SelectOp::create(builder, loc, guard, part, neutral);
  }
  pending.push_back({op, reducePieces(op.getKind(), std::move(parts))});
}

void ThreadMapper::exchange() {
  if (pending.empty())
    return;
  for (Reduction &reduction : pending) {
    loc = reduction.op.getLoc();
    reduction.value = reduceWarp(reduction.op.getKind(), reduction.value);
  }
  if (strategy.getRowWarps() > 1)
    reduceBlock();
  for (Reduction &reduction : pending) {
    Value start = getUniform(reduction.op.getAcc());
    uniforms.map(reduction.op.getResult(),
                 vector::makeArithReduction(builder, loc,
                                            reduction.op.getKind(),
                                            reduction.value, start));
  }
  pending.clear();
}
