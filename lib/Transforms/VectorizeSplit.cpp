//===- VectorizeSplit.cpp - Tiles that threads share -----------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where there are few tiles, and large ones, threads share the sweeps of each
// (TileEmitter.h). A sum is taken apart where its tree has a node: threads
// leave the values of the nodes of one height in memory, one after the other,
// and the rest of the tree is as it would be. So bits are those of a tile that
// one thread sweeps.
//
//===----------------------------------------------------------------------===//

#include "TileEmitter.h"

#include "Norm/IR/NormDialect.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::norm;

/// Vectors of C that a thread takes at once: those of two levels of a sum's
/// tree.
static constexpr int64_t kSharedSteps = kMaxChain * kMaxChain;
/// An outer axis is shared if it has so many steps, else one inside it.
static constexpr int64_t kFewestShares = 8;

CpuStrategyAttr TileEmitter::sharedStrategy(bool stores) {
  auto strategy = loop->getAttrOfType<CpuStrategyAttr>(kStrategyAttrName);
  return CpuStrategyAttr::get(
      loop.getContext(), /*rows=*/1, columns, strategy.getParallel(),
      /*range=*/0, strategy.getSerialBytes(),
      stores ? strategy.getStreamBytes() : 0,
      stores ? strategy.getPrefetch() : 0, /*split=*/false);
}

void TileEmitter::keepTilesInOrder() {
  auto strategy = loop->getAttrOfType<CpuStrategyAttr>(kStrategyAttrName);
  loop->setAttr(kStrategyAttrName,
                CpuStrategyAttr::get(loop.getContext(), strategy.getRows(),
                                     columns, /*parallel=*/false, /*range=*/0,
                                     /*serial_bytes=*/0, /*stream_bytes=*/0,
                                     /*prefetch=*/0, /*split=*/true));
}

std::optional<int64_t> TileEmitter::stepsOfShare(ArrayRef<int> axes) {
  if (!isSplit || isShared || program.getAxis(axes.front()).isPart)
    return std::nullopt;
  std::optional<int64_t> extent =
      program.getAxis(axes.front()).getStaticExtent();
  if (axes.size() == 1) {
    int64_t width = program.isColumns(axes.front()) ? columns : 1;
    if (extent && *extent / width <= kSharedSteps)
      return std::nullopt;
    return kSharedSteps;
  }
  // One step of a sum is none: a product in it is not rounded.
  bool isInside = llvm::any_of(axes.drop_front(), [&](int axis) {
    return program.getAxis(axis).getStaticExtent() != 1;
  });
  if (!isInside || (extent && *extent < kFewestShares))
    return std::nullopt;
  return 1;
}

Value TileEmitter::countShares(Value end, int64_t span) {
  return builder.createOrFold<arith::CeilDivUIOp>(loc, end, index(span));
}

std::pair<Value, Value> TileEmitter::boundsOfShare(Value number, Value end,
                                                   int64_t span) {
  Value start = arith::MulIOp::create(builder, loc, number, index(span));
  Value next = arith::AddIOp::create(builder, loc, start, index(span));
  return {start, arith::MinUIOp::create(builder, loc, next, end)};
}

scf::ForallOp TileEmitter::createShares(Value count, ValueRange destinations,
                                        bool stores) {
  auto shares = scf::ForallOp::create(
      builder, loc, ArrayRef<OpFoldResult>{builder.getIndexAttr(0)},
      ArrayRef<OpFoldResult>{getAsOpFoldResult(count)},
      ArrayRef<OpFoldResult>{builder.getIndexAttr(1)}, destinations,
      /*mapping=*/std::nullopt);
  shares->setAttr(kStrategyAttrName, sharedStrategy(stores));
  return shares;
}

/// The elements of `value`, a vector or a scalar.
static int64_t countElements(Value value) {
  auto type = dyn_cast<VectorType>(value.getType());
  return type ? type.getNumElements() : 1;
}

FailureOr<SmallVector<Value>>
TileEmitter::sharedSums(int64_t levels, const AxisSplit &split, int64_t steps,
                        ValueRange neutral,
                        ArrayRef<vector::CombiningKind> kinds, LoopFn body) {
  int64_t span = split.width * steps;
  int64_t inside = steps == 1 ? 0 : chainLevels(steps);
  Value count = countShares(split.wholeEnd, span), zero = index(0);
  SmallVector<Value> memory;
  for (Value value : neutral)
    memory.push_back(tensor::EmptyOp::create(
        builder, loc,
        ArrayRef<OpFoldResult>{getAsOpFoldResult(count),
                               builder.getIndexAttr(countElements(value))},
        getElementTypeOrSelf(value.getType())));
  scf::ForallOp shares = createShares(count, memory, /*stores=*/false);
  auto inBounds = builder.getBoolArrayAttr({true});
  auto flatType = [&](Value value) {
    return VectorType::get({countElements(value)},
                           getElementTypeOrSelf(value.getType()));
  };
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(shares.getTerminator());
    Value number = shares.getInductionVar(0);
    auto [start, end] = boundsOfShare(number, split.wholeEnd, span);
    isShared = true;
    FailureOr<Values> values =
        steps == 1 ? body(number, neutral)
                   : blockedLoop(inside, start, end, split.width, neutral,
                                 kinds, body);
    isShared = false;
    if (failed(values))
      return failure();
    for (auto [value, argument] :
         llvm::zip_equal(*values, shares.getRegionIterArgs())) {
      OpFoldResult one = builder.getIndexAttr(1);
      SmallVector<OpFoldResult> at{number, builder.getIndexAttr(0)},
          sizes{one, builder.getIndexAttr(countElements(value))},
          strides{one, one};
      Value place = tensor::ExtractSliceOp::create(builder, loc, argument, at,
                                                   sizes, strides);
      VectorType type = flatType(value);
      Value flat = isa<VectorType>(value.getType())
                       ? vector::ShapeCastOp::create(builder, loc, type, value)
                             .getResult()
                       : vector::BroadcastOp::create(builder, loc, type, value)
                             .getResult();
      Value written = vector::TransferWriteOp::create(
                          builder, loc, place.getType(), flat, place,
                          ValueRange{zero, zero},
                          AffineMapAttr::get(AffineMap::getMinorIdentityMap(
                              2, 1, builder.getContext())),
                          /*mask=*/Value(), inBounds)
                          .getResult();
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(shares.getTerminator().getBody());
      tensor::ParallelInsertSliceOp::create(builder, loc, written, argument, at,
                                            sizes, strides);
    }
  }
  // What is left of the tree.
  return blockedLoop(
      levels - inside, zero, count, 1, neutral, kinds,
      [&](Value number, ValueRange carried) -> FailureOr<Values> {
        Values sums;
        for (auto [sum, memory, kind] :
             llvm::zip_equal(carried, shares.getResults(), kinds)) {
          VectorType type = flatType(sum);
          Value padding = arith::ConstantOp::create(
              builder, loc, builder.getZeroAttr(type.getElementType()));
          Value part = vector::TransferReadOp::create(
              builder, loc, type, memory, ValueRange{number, zero},
              AffineMapAttr::get(
                  AffineMap::getMinorIdentityMap(2, 1, builder.getContext())),
              padding, /*mask=*/Value(), inBounds);
          if (isa<VectorType>(sum.getType()))
            part =
                vector::ShapeCastOp::create(builder, loc, sum.getType(), part);
          else
            part = vector::ExtractOp::create(builder, loc, part, 0);
          sums.push_back(
              vector::makeArithReduction(builder, loc, kind, sum, part));
        }
        return sums;
      });
}

bool TileEmitter::areCutBy(int axis, ValueRange sources) {
  return llvm::all_of(sources, [&](Value source) {
    return llvm::is_contained(program.getAxesOf(source), axis);
  });
}

FailureOr<SmallVector<Value>>
TileEmitter::sharedWrites(int axis, const AxisSplit &split, int64_t steps,
                          ValueRange sources, ValueRange destinations,
                          LoopFn body) {
  int64_t span = split.width * steps;
  scf::ForallOp shares = createShares(countShares(split.wholeEnd, span),
                                      destinations, /*stores=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(shares.getTerminator());
  auto [start, end] =
      boundsOfShare(shares.getInductionVar(0), split.wholeEnd, span);
  Value size = arith::SubIOp::create(builder, loc, end, start);
  SmallVector<SmallVector<OpFoldResult>> offsets, sizes;
  Values parts;
  for (auto [source, argument] :
       llvm::zip_equal(sources, shares.getRegionIterArgs())) {
    sizes.push_back(tensor::getMixedSizes(builder, loc, argument));
    offsets.push_back(SmallVector<OpFoldResult>(sizes.back().size(),
                                                builder.getIndexAttr(0)));
    for (auto [dim, other] : llvm::enumerate(program.getAxesOf(source)))
      if (other == axis) {
        offsets.back()[dim] = start;
        sizes.back()[dim] = size;
      }
    parts.push_back(tensor::ExtractSliceOp::create(
        builder, loc, argument, offsets.back(), sizes.back(),
        SmallVector<OpFoldResult>(sizes.back().size(),
                                  builder.getIndexAttr(1))));
  }
  isShared = true;
  writtenFrom[axis] = start;
  FailureOr<Values> written = forLoop(start, end, split.width, parts, body);
  writtenFrom.erase(axis);
  isShared = false;
  if (failed(written))
    return failure();
  builder.setInsertionPointToEnd(shares.getTerminator().getBody());
  for (auto [value, argument, at, shape] :
       llvm::zip_equal(*written, shares.getRegionIterArgs(), offsets, sizes))
    tensor::ParallelInsertSliceOp::create(
        builder, loc, value, argument, at, shape,
        SmallVector<OpFoldResult>(at.size(), builder.getIndexAttr(1)));
  return Values(shares.getResults());
}
