//===- TilingInterfaceImpl.cpp - Tiling of norm ops over kept axes --------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/IR/NormInterfaces.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace mlir::norm;

SmallVector<utils::IteratorType>
norm::normLoopIteratorTypes(NormOpInterface op) {
  SmallVector<utils::IteratorType> types(op.getRank(),
                                         utils::IteratorType::parallel);
  for (int64_t axis : op.getReducedAxes())
    types[axis] = utils::IteratorType::reduction;
  return types;
}

SmallVector<Range> norm::normIterationDomain(NormOpInterface op,
                                             OpBuilder &builder) {
  Location loc = op.getLoc();
  OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  return llvm::map_to_vector(
      llvm::seq<int64_t>(0, op.getRank()), [&](int64_t axis) {
        return Range{
            zero, tensor::getMixedSize(builder, loc, op.getInput(), axis), one};
      });
}

LogicalResult norm::reifyNormResultShapes(NormOpInterface op,
                                          OpBuilder &builder,
                                          ReifiedRankedShapedTypeDims &dims) {
  for (OpResult result : op->getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    SmallVector<OpFoldResult> extents;
    for (auto [dim, axis] :
         llvm::enumerate(op.getResultAxes(result.getResultNumber()))) {
      // A static extent of the result wins: it must equal x's.
      extents.push_back(
          type.isDynamicDim(dim)
              ? tensor::getMixedSize(builder, op.getLoc(), op.getInput(), axis)
              : builder.getIndexAttr(type.getDimSize(dim)));
    }
    dims.push_back(std::move(extents));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// Whether `size` provably is the whole extent of `axis` of x. Tiles lie inside
/// the iteration space, so such a tile starts at 0, however its offset is
/// written. A full tile of a dynamic extent arrives as another `tensor.dim`, so
/// values are compared by their bounds.
static bool coversAxis(NormOpInterface op, int64_t axis, OpFoldResult size) {
  int64_t extent = op.getInput().getType().getDimSize(axis);
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return !ShapedType::isDynamic(extent) && *constant == extent;
  auto value = cast<Value>(size);
  if (auto dim = value.getDefiningOp<tensor::DimOp>())
    if (dim.getSource() == op.getInput() && dim.getConstantIndex() == axis)
      return true;
  FailureOr<bool> equal = ValueBoundsConstraintSet::areEqual(
      ValueBoundsConstraintSet::Variable(value),
      ValueBoundsConstraintSet::Variable(op.getInput(), axis));
  return succeeded(equal) && *equal;
}

static std::string isCut(int64_t axis) {
  return ("expected a tile that covers reduced axis " + Twine(axis) +
          " wholly, got a part of it")
      .str();
}

std::string norm::whyTileIsRefused(NormOpInterface op,
                                   ArrayRef<OpFoldResult> sizes) {
  for (int64_t axis : op.getReducedAxes())
    if (!coversAxis(op, axis, sizes[axis]))
      return isCut(axis);
  return {};
}

std::string norm::whyResultTileIsRefused(NormOpInterface op,
                                         unsigned resultNumber,
                                         ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> reduced = op.getReducedAxes();
  for (auto [dim, axis] : llvm::enumerate(op.getResultAxes(resultNumber)))
    if (llvm::is_contained(reduced, axis) && !coversAxis(op, axis, sizes[dim]))
      return isCut(axis);
  return {};
}

std::string
norm::whyOperandTilesAreRefused(NormOpInterface op,
                                ArrayRef<unsigned> operandNumbers,
                                ArrayRef<SmallVector<OpFoldResult>> offsets,
                                ArrayRef<SmallVector<OpFoldResult>> sizes) {
  SmallVector<int64_t> reduced = op.getReducedAxes();
  SmallVector<std::optional<std::pair<OpFoldResult, OpFoldResult>>> asked(
      op.getRank());
  for (auto [i, operand] : llvm::enumerate(operandNumbers)) {
    for (auto [dim, axis] : llvm::enumerate(op.getOperandAxes(operand))) {
      OpFoldResult offset = offsets[i][dim], size = sizes[i][dim];
      if (llvm::is_contained(reduced, axis) && !coversAxis(op, axis, size))
        return isCut(axis);
      if (asked[axis] &&
          (!isEqualConstantIntOrValue(asked[axis]->first, offset) ||
           !isEqualConstantIntOrValue(asked[axis]->second, size)))
        return ("expected tiles of operands to agree on axis " + Twine(axis) +
                ", got different parts of it")
            .str();
      asked[axis] = std::make_pair(offset, size);
    }
  }
  return {};
}

/// Entries of `all` at `axes`.
static SmallVector<OpFoldResult> pick(ArrayRef<OpFoldResult> all,
                                      ArrayRef<int64_t> axes) {
  return llvm::map_to_vector(axes, [&](int64_t axis) { return all[axis]; });
}

FailureOr<TilingResult> norm::tileNorm(NormOpInterface op, OpBuilder &builder,
                                       ArrayRef<OpFoldResult> offsets,
                                       ArrayRef<OpFoldResult> sizes) {
  std::string reason = whyTileIsRefused(op, sizes);
  if (!reason.empty()) {
    op->emitOpError(reason);
    return failure();
  }

  Location loc = op.getLoc();
  TilingResult result;
  SmallVector<Value> operands;
  OpFoldResult one = builder.getIndexAttr(1);
  for (OpOperand &operand : op->getOpOperands()) {
    SmallVector<int64_t> axes = op.getOperandAxes(operand.getOperandNumber());
    auto slice = tensor::ExtractSliceOp::create(
        builder, loc, operand.get(), pick(offsets, axes), pick(sizes, axes),
        SmallVector<OpFoldResult>(axes.size(), one));
    operands.push_back(slice);
    result.generatedSlices.push_back(slice);
  }

  SmallVector<Type> types;
  for (OpResult opResult : op->getResults()) {
    SmallVector<int64_t> shape;
    SmallVector<Value> dynamic;
    dispatchIndexOpFoldResults(
        pick(sizes, op.getResultAxes(opResult.getResultNumber())), dynamic,
        shape);
    types.push_back(cast<RankedTensorType>(opResult.getType()).clone(shape));
  }

  Operation *tiled = mlir::clone(builder, op, types, operands);
  result.tiledOps.push_back(tiled);
  result.tiledValues.assign(tiled->result_begin(), tiled->result_end());
  return result;
}

LogicalResult norm::normResultTilePosition(
    NormOpInterface op, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  SmallVector<int64_t> axes = op.getResultAxes(resultNumber);
  resultOffsets = pick(offsets, axes);
  resultSizes = pick(sizes, axes);
  return success();
}

/// A tile of the whole iteration space, to be narrowed axis by axis.
static void wholeDomain(NormOpInterface op, OpBuilder &builder,
                        SmallVectorImpl<OpFoldResult> &offsets,
                        SmallVectorImpl<OpFoldResult> &sizes) {
  for (Range range : normIterationDomain(op, builder)) {
    offsets.push_back(range.offset);
    sizes.push_back(range.size);
  }
}

LogicalResult norm::normDomainTileFromResultTile(
    NormOpInterface op, OpBuilder &builder, unsigned resultNumber,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
    SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes) {
  if (!whyResultTileIsRefused(op, resultNumber, sizes).empty())
    return failure();
  wholeDomain(op, builder, domainOffsets, domainSizes);
  for (auto [dim, axis] : llvm::enumerate(op.getResultAxes(resultNumber))) {
    domainOffsets[axis] = offsets[dim];
    domainSizes[axis] = sizes[dim];
  }
  return success();
}

LogicalResult norm::normDomainTileFromOperandTiles(
    NormOpInterface op, OpBuilder &builder, ArrayRef<unsigned> operandNumbers,
    ArrayRef<SmallVector<OpFoldResult>> offsets,
    ArrayRef<SmallVector<OpFoldResult>> sizes,
    SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes) {
  if (!whyOperandTilesAreRefused(op, operandNumbers, offsets, sizes).empty())
    return failure();
  wholeDomain(op, builder, domainOffsets, domainSizes);
  for (auto [i, operand] : llvm::enumerate(operandNumbers)) {
    for (auto [dim, axis] : llvm::enumerate(op.getOperandAxes(operand))) {
      domainOffsets[axis] = offsets[i][dim];
      domainSizes[axis] = sizes[i][dim];
    }
  }
  return success();
}

FailureOr<TilingResult> norm::generateNormResultTile(
    NormOpInterface op, OpBuilder &builder, unsigned resultNumber,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> domainOffsets, domainSizes;
  if (failed(normDomainTileFromResultTile(op, builder, resultNumber, offsets,
                                          sizes, domainOffsets, domainSizes)))
    return failure();
  FailureOr<TilingResult> tiled =
      tileNorm(op, builder, domainOffsets, domainSizes);
  if (failed(tiled))
    return failure();
  return TilingResult{tiled->tiledOps,
                      {tiled->tiledValues[resultNumber]},
                      tiled->generatedSlices};
}
