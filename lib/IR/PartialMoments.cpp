//===- PartialMoments.cpp - Moments of tiles of a reduced axis ------------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PartialReductionOpInterface of norm.moments. A partial result is the triple
// of a tile: count, mean (about the mean) and m2, in f64, so that means which
// are far from 0 keep what tells them apart. Triples lie in slots, one axis of
// slots for each reduced axis that is cut; an empty slot counts nothing.
// Parallel tiles fill a slot each, tiles in sequence are all merged into the
// first.
//
//===----------------------------------------------------------------------===//

#include "Norm/IR/NormOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::norm;

/// What a slot holds, in order.
static SmallVector<Type> slotTypes(MomentsOp op, OpBuilder &b) {
  SmallVector<Type> types{b.getI64Type()};
  if (op.getAbout() == About::Mean)
    types.push_back(b.getF64Type());
  types.push_back(b.getF64Type());
  return types;
}

static SmallVector<OpFoldResult> select(ArrayRef<OpFoldResult> values,
                                        ArrayRef<int64_t> axes) {
  return llvm::map_to_vector(axes, [&](int64_t axis) { return values[axis]; });
}

/// `leading` in front of `values`.
static SmallVector<OpFoldResult> behind(ArrayRef<OpFoldResult> leading,
                                        ArrayRef<OpFoldResult> values) {
  SmallVector<OpFoldResult> all(leading);
  llvm::append_range(all, values);
  return all;
}

static SmallVector<OpFoldResult> repeat(OpBuilder &b, int64_t value,
                                        size_t count) {
  return SmallVector<OpFoldResult>(count, b.getIndexAttr(value));
}

static RankedTensorType typeOf(ArrayRef<OpFoldResult> shape, Type element) {
  SmallVector<int64_t> extents;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(shape, dynamic, extents);
  return RankedTensorType::get(extents, element);
}

FailureOr<SmallVector<Value>>
MomentsOp::generateInitialTensorForPartialReduction(
    OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes,
    const SetVector<unsigned> &reductionDims) {
  SmallVector<OpFoldResult> shape;
  for (unsigned axis : reductionDims)
    shape.push_back(isZeroInteger(sizes[axis]) ? b.getIndexAttr(1)
                                               : sizes[axis]);
  for (int64_t axis : getKeptAxes())
    shape.push_back(tensor::getMixedSize(b, loc, getX(), axis));
  return llvm::map_to_vector(slotTypes(*this, b), [&](Type type) -> Value {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    Value empty = tensor::EmptyOp::create(b, loc, shape, type);
    return linalg::FillOp::create(b, loc, zero, empty).getResult(0);
  });
}

/// The triple of two: what `slots` hold in the first, and `tile`.
static SmallVector<Value> mergeIntoFirst(OpBuilder &b, Location loc,
                                         ValueRange slots, ValueRange tile,
                                         ArrayRef<OpFoldResult> keptOffsets,
                                         ArrayRef<OpFoldResult> keptSizes,
                                         size_t slotAxes,
                                         TilingResult &result) {
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1),
               two = b.getIndexAttr(2);
  SmallVector<Value> pairs;
  for (auto [slot, value] : llvm::zip_equal(slots, tile)) {
    Type element = getElementTypeOrSelf(value.getType());
    auto first = tensor::ExtractSliceOp::create(
        b, loc, typeOf(keptSizes, element), slot,
        behind(repeat(b, 0, slotAxes), keptOffsets),
        behind(repeat(b, 1, slotAxes), keptSizes),
        repeat(b, 1, slotAxes + keptSizes.size()));
    result.generatedSlices.push_back(first);
    Value pair =
        tensor::EmptyOp::create(b, loc, behind({two}, keptSizes), element);
    for (auto [place, part] :
         {std::pair(zero, Value(first)), std::pair(one, value)})
      pair = tensor::InsertSliceOp::create(
          b, loc, part, pair, behind({place}, repeat(b, 0, keptSizes.size())),
          behind({one}, keptSizes), repeat(b, 1, 1 + keptSizes.size()));
    pairs.push_back(pair);
  }
  Value mean = pairs.size() == 3 ? pairs[1] : Value();
  auto merged = CombineMomentsOp::create(
      b, loc, tile[0].getType(), mean ? tile[1].getType() : Type(),
      tile.back().getType(), pairs.front(), mean, pairs.back(),
      /*compute_type=*/TypeAttr());
  return llvm::to_vector_of<Value>(merged->getResults());
}

FailureOr<TilingResult> MomentsOp::tileToPartialReduction(
    OpBuilder &b, Location loc, ReductionTilingStrategy strategy,
    ValueRange init, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, const SetVector<unsigned> &reductionDims,
    ArrayRef<OpFoldResult>) {
  if (strategy == ReductionTilingStrategy::FullReduction)
    return failure();
  TilingResult result;
  auto slice = [&](Value tensor) -> Value {
    if (!tensor)
      return {};
    auto op = tensor::ExtractSliceOp::create(b, loc, tensor, offsets, sizes,
                                             repeat(b, 1, sizes.size()));
    result.generatedSlices.push_back(op);
    return op;
  };
  SmallVector<int64_t> kept = getKeptAxes();
  SmallVector<OpFoldResult> keptOffsets = select(offsets, kept),
                            keptSizes = select(sizes, kept);
  bool hasMean = getAbout() == About::Mean;
  Type f64 = typeOf(keptSizes, b.getF64Type());
  auto tile = MomentsOp::create(b, loc, typeOf(keptSizes, b.getI64Type()),
                                hasMean ? f64 : Type(), f64, slice(getX()),
                                slice(getMask()), getAxesAttr(), getAboutAttr(),
                                getComputeTypeAttr());
  result.tiledOps.push_back(tile);
  if (strategy == ReductionTilingStrategy::PartialReductionOuterParallel)
    result.tiledValues.assign(tile->result_begin(), tile->result_end());
  else
    result.tiledValues =
        mergeIntoFirst(b, loc, init, tile->getResults(), keptOffsets, keptSizes,
                       reductionDims.size(), result);
  return result;
}

LogicalResult MomentsOp::getPartialResultTilePosition(
    OpBuilder &b, unsigned, ReductionTilingStrategy strategy,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
    const SetVector<unsigned> &reductionDims,
    ArrayRef<OpFoldResult> splitReductionIvs,
    SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  SmallVector<int64_t> kept = getKeptAxes();
  SmallVector<OpFoldResult> slot =
      strategy == ReductionTilingStrategy::PartialReductionOuterParallel
          ? llvm::to_vector(splitReductionIvs)
          : repeat(b, 0, reductionDims.size());
  if (slot.size() != reductionDims.size())
    return failure();
  resultOffsets = behind(slot, select(offsets, kept));
  resultSizes = behind(repeat(b, 1, slot.size()), select(sizes, kept));
  return success();
}

/// `tensor` in the type of `result`.
static Value asResult(OpBuilder &b, Location loc, Value tensor, Value result) {
  auto type = cast<RankedTensorType>(result.getType());
  Type element = type.getElementType();
  if (getElementTypeOrSelf(tensor.getType()) != element) {
    int64_t rank = type.getRank();
    Value empty = tensor::EmptyOp::create(
        b, loc, tensor::getMixedSizes(b, loc, tensor), element);
    AffineMap map = b.getMultiDimIdentityMap(rank);
    tensor = linalg::GenericOp::create(
                 b, loc, empty.getType(), tensor, empty, {map, map},
                 SmallVector<utils::IteratorType>(
                     rank, utils::IteratorType::parallel),
                 [&](OpBuilder &body, Location bodyLoc, ValueRange args) {
                   linalg::YieldOp::create(
                       body, bodyLoc,
                       arith::TruncFOp::create(body, bodyLoc, element, args[0])
                           .getResult());
                 })
                 .getResult(0);
  }
  if (tensor.getType() != type)
    tensor = tensor::CastOp::create(b, loc, type, tensor);
  return tensor;
}

FailureOr<MergeResult>
MomentsOp::mergeReductions(OpBuilder &b, Location loc, ValueRange partial,
                           const SetVector<unsigned> &reductionDims) {
  // The slots as one axis of parts.
  int64_t slotAxes = reductionDims.size();
  SmallVector<Value> parts = llvm::to_vector_of<Value>(partial);
  if (slotAxes > 1)
    for (Value &part : parts) {
      SmallVector<ReassociationIndices> groups{
          llvm::to_vector(llvm::seq<int64_t>(0, slotAxes))};
      int64_t rank = cast<RankedTensorType>(part.getType()).getRank();
      for (int64_t dim = slotAxes; dim < rank; ++dim)
        groups.push_back({dim});
      part = tensor::CollapseShapeOp::create(b, loc, part, groups);
    }
  bool hasMean = getAbout() == About::Mean;
  auto merged = [&](Value result, Value part) -> Type {
    if (!result)
      return {};
    auto type = cast<RankedTensorType>(part.getType());
    return RankedTensorType::get(type.getShape().drop_front(),
                                 type.getElementType());
  };
  auto combine = CombineMomentsOp::create(
      b, loc, merged(getCount(), parts.front()),
      hasMean ? merged(getMean(), parts[1]) : Type(),
      merged(getM2(), parts.back()), parts.front(),
      hasMean ? parts[1] : Value(), parts.back(), /*compute_type=*/TypeAttr());
  MergeResult result;
  result.mergeOps.push_back(combine);
  for (auto [value, replaced] :
       llvm::zip_equal(combine->getResults(), (*this)->getResults()))
    result.replacements.push_back(asResult(b, loc, value, replaced));
  return result;
}
