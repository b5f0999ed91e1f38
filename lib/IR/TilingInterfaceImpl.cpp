//===- TilingInterfaceImpl.cpp - Tiling over axes that are not tied -------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/IR/NormInterfaces.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace mlir::norm;

SmallVector<utils::IteratorType>
norm::normLoopIteratorTypes(RowOpInterface op) {
  SmallVector<utils::IteratorType> types(op.getRank(),
                                         utils::IteratorType::parallel);
  for (int64_t axis : op.getTiedAxes())
    types[axis] = utils::IteratorType::reduction;
  return types;
}

SmallVector<Range> norm::normIterationDomain(RowOpInterface op,
                                             OpBuilder &builder) {
  Location loc = op.getLoc();
  OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  return llvm::map_to_vector(
      llvm::seq<int64_t>(0, op.getRank()), [&](int64_t axis) {
        OpFoldResult extent =
            axis == op.getGroupedAxis()
                ? builder.getIndexAttr(op.getNumGroups())
                : tensor::getMixedSize(builder, loc, op.getInput(), axis);
        return Range{zero, extent, one};
      });
}

LogicalResult norm::reifyNormResultShapes(RowOpInterface op, OpBuilder &builder,
                                          ReifiedRankedShapedTypeDims &dims) {
  for (OpResult result : op->getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    SmallVector<OpFoldResult> extents;
    for (auto [dim, axis] :
         llvm::enumerate(op.getResultAxes(result.getResultNumber()))) {
      // A static extent of the result wins: it must equal x's.
      bool countsGroups = axis == op.getGroupedAxis() &&
                          op.isStatisticResult(result.getResultNumber());
      extents.push_back(
          !type.isDynamicDim(dim) ? builder.getIndexAttr(type.getDimSize(dim))
          : countsGroups          ? builder.getIndexAttr(op.getNumGroups())
                                  : tensor::getMixedSize(builder, op.getLoc(),
                                                         op.getInput(), axis));
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
static bool coversAxis(RowOpInterface op, int64_t axis, OpFoldResult size) {
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

static std::string isCut(RowOpInterface op, int64_t axis) {
  bool isReduced = llvm::is_contained(op.getReducedAxes(), axis);
  return ("expected a tile that covers " +
          Twine(isReduced ? "reduced axis " : "axis ") + Twine(axis) +
          (isReduced ? "" : ", which a result sums over,") +
          " wholly, got a part of it")
      .str();
}

/// Axes that a tile of operands or results must cover wholly: along the
/// grouped axis their elements cannot be told to be whole groups.
static SmallVector<int64_t> tiedTensorAxes(RowOpInterface op) {
  SmallVector<int64_t> tied = op.getTiedAxes();
  if (std::optional<int64_t> grouped = op.getGroupedAxis())
    tied.push_back(*grouped);
  return tied;
}

std::string norm::whyTileIsRefused(RowOpInterface op,
                                   ArrayRef<OpFoldResult> sizes) {
  for (int64_t axis : op.getTiedAxes())
    if (!coversAxis(op, axis, sizes[axis]))
      return isCut(op, axis);
  if (std::optional<int64_t> grouped = op.getGroupedAxis())
    if (!getConstantIntValue(sizes[*grouped]))
      return ("expected a tile of a static number of groups along axis " +
              Twine(*grouped) + ", got a dynamic one")
          .str();
  return {};
}

std::string norm::whyResultTileIsRefused(RowOpInterface op,
                                         unsigned resultNumber,
                                         ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> tied = op.isStatisticResult(resultNumber)
                                  ? op.getTiedAxes()
                                  : tiedTensorAxes(op);
  for (auto [dim, axis] : llvm::enumerate(op.getResultAxes(resultNumber)))
    if (llvm::is_contained(tied, axis) && !coversAxis(op, axis, sizes[dim]))
      return isCut(op, axis);
  return {};
}

std::string
norm::whyOperandTilesAreRefused(RowOpInterface op,
                                ArrayRef<unsigned> operandNumbers,
                                ArrayRef<SmallVector<OpFoldResult>> offsets,
                                ArrayRef<SmallVector<OpFoldResult>> sizes) {
  SmallVector<std::optional<std::pair<OpFoldResult, OpFoldResult>>> asked(
      op.getRank());
  for (auto [i, operand] : llvm::enumerate(operandNumbers)) {
    SmallVector<int64_t> tied =
        op.isStatisticOperand(operand) ? op.getTiedAxes() : tiedTensorAxes(op);
    for (auto [dim, axis] : llvm::enumerate(op.getOperandAxes(operand))) {
      OpFoldResult offset = offsets[i][dim], size = sizes[i][dim];
      if (llvm::is_contained(tied, axis) && !coversAxis(op, axis, size))
        return isCut(op, axis);
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

/// The slice of a tensor indexed by `axes` that belongs to a tile. Along the
/// grouped axis the tile counts groups, and so does a statistic; any other
/// tensor has a group's elements there.
static void pickSlice(RowOpInterface op, OpBuilder &builder,
                      ArrayRef<int64_t> axes, bool isStatistic,
                      ArrayRef<OpFoldResult> offsets,
                      ArrayRef<OpFoldResult> sizes,
                      SmallVectorImpl<OpFoldResult> &sliceOffsets,
                      SmallVectorImpl<OpFoldResult> &sliceSizes) {
  for (int64_t axis : axes) {
    OpFoldResult offset = offsets[axis], size = sizes[axis];
    if (axis == op.getGroupedAxis() && !isStatistic) {
      Location loc = op.getLoc();
      AffineExpr count = builder.getAffineDimExpr(0),
                 channels = builder.getAffineSymbolExpr(0);
      AffineMap elements =
          AffineMap::get(1, 1, count * channels.floorDiv(op.getNumGroups()),
                         builder.getContext());
      OpFoldResult extent =
          tensor::getMixedSize(builder, loc, op.getInput(), axis);
      offset = affine::makeComposedFoldedAffineApply(builder, loc, elements,
                                                     {offset, extent});
      size = affine::makeComposedFoldedAffineApply(builder, loc, elements,
                                                   {size, extent});
    }
    sliceOffsets.push_back(offset);
    sliceSizes.push_back(size);
  }
}

FailureOr<TilingResult> norm::tileNorm(RowOpInterface op, OpBuilder &builder,
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
    if (!isa<RankedTensorType>(operand.get().getType())) {
      operands.push_back(operand.get());
      continue;
    }
    unsigned number = operand.getOperandNumber();
    SmallVector<OpFoldResult> sliceOffsets, sliceSizes;
    pickSlice(op, builder, op.getOperandAxes(number),
              op.isStatisticOperand(number), offsets, sizes, sliceOffsets,
              sliceSizes);
    auto slice = tensor::ExtractSliceOp::create(
        builder, loc, operand.get(), sliceOffsets, sliceSizes,
        SmallVector<OpFoldResult>(sliceSizes.size(), one));
    operands.push_back(slice);
    result.generatedSlices.push_back(slice);
  }

  SmallVector<Type> types;
  for (OpResult opResult : op->getResults()) {
    SmallVector<OpFoldResult> ignored, resultSizes;
    if (failed(normResultTilePosition(op, builder, opResult.getResultNumber(),
                                      offsets, sizes, ignored, resultSizes)))
      return failure();
    SmallVector<int64_t> shape;
    SmallVector<Value> dynamic;
    dispatchIndexOpFoldResults(resultSizes, dynamic, shape);
    types.push_back(cast<RankedTensorType>(opResult.getType()).clone(shape));
  }

  Operation *tiled = mlir::clone(builder, op, types, operands);
  if (std::optional<int64_t> grouped = op.getGroupedAxis())
    cast<RowOpInterface>(tiled).setNumGroups(
        *getConstantIntValue(sizes[*grouped]));
  result.tiledOps.push_back(tiled);
  result.tiledValues.assign(tiled->result_begin(), tiled->result_end());
  return result;
}

LogicalResult norm::normResultTilePosition(
    RowOpInterface op, OpBuilder &builder, unsigned resultNumber,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
    SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  resultOffsets.clear();
  resultSizes.clear();
  pickSlice(op, builder, op.getResultAxes(resultNumber),
            op.isStatisticResult(resultNumber), offsets, sizes, resultOffsets,
            resultSizes);
  return success();
}

/// A tile of the whole iteration space, to be narrowed axis by axis.
static void wholeDomain(RowOpInterface op, OpBuilder &builder,
                        SmallVectorImpl<OpFoldResult> &offsets,
                        SmallVectorImpl<OpFoldResult> &sizes) {
  for (Range range : normIterationDomain(op, builder)) {
    offsets.push_back(range.offset);
    sizes.push_back(range.size);
  }
}

LogicalResult norm::normDomainTileFromResultTile(
    RowOpInterface op, OpBuilder &builder, unsigned resultNumber,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
    SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes) {
  if (!whyResultTileIsRefused(op, resultNumber, sizes).empty())
    return failure();
  wholeDomain(op, builder, domainOffsets, domainSizes);
  bool isStatistic = op.isStatisticResult(resultNumber);
  for (auto [dim, axis] : llvm::enumerate(op.getResultAxes(resultNumber))) {
    // All of the grouped axis, which is all of its groups.
    if (axis == op.getGroupedAxis() && !isStatistic)
      continue;
    domainOffsets[axis] = offsets[dim];
    domainSizes[axis] = sizes[dim];
  }
  return success();
}

LogicalResult norm::normDomainTileFromOperandTiles(
    RowOpInterface op, OpBuilder &builder, ArrayRef<unsigned> operandNumbers,
    ArrayRef<SmallVector<OpFoldResult>> offsets,
    ArrayRef<SmallVector<OpFoldResult>> sizes,
    SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes) {
  if (!whyOperandTilesAreRefused(op, operandNumbers, offsets, sizes).empty())
    return failure();
  wholeDomain(op, builder, domainOffsets, domainSizes);
  for (auto [i, operand] : llvm::enumerate(operandNumbers)) {
    bool isStatistic = op.isStatisticOperand(operand);
    for (auto [dim, axis] : llvm::enumerate(op.getOperandAxes(operand))) {
      if (axis == op.getGroupedAxis() && !isStatistic)
        continue;
      domainOffsets[axis] = offsets[i][dim];
      domainSizes[axis] = sizes[i][dim];
    }
  }
  return success();
}

FailureOr<TilingResult> norm::generateNormResultTile(
    RowOpInterface op, OpBuilder &builder, unsigned resultNumber,
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
