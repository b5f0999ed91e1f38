//===- TileNeighbourParts.cpp - Work on parts of a row -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileNeighbours.h"

#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace mlir::norm;

/// Whether all dimensions but the last are taken whole.
template <typename SliceOp>
static std::optional<PartOfRow> matchPartOf(SliceOp slice, Value whole,
                                            Value part) {
  auto type = cast<RankedTensorType>(whole.getType());
  int64_t last = type.getRank() - 1;
  if (last < 0 || cast<RankedTensorType>(part.getType()).getRank() != last + 1)
    return std::nullopt;
  SmallVector<OpFoldResult> offsets = slice.getMixedOffsets(),
                            sizes = slice.getMixedSizes(),
                            strides = slice.getMixedStrides();
  for (int64_t dim = 0; dim < last; ++dim) {
    std::optional<int64_t> size = getConstantIntValue(sizes[dim]);
    if (getConstantIntValue(offsets[dim]) != 0 ||
        getConstantIntValue(strides[dim]) != 1)
      return std::nullopt;
    if (size ? *size == type.getDimSize(dim)
             : type.isDynamicDim(dim) &&
                   succeeded(ValueBoundsConstraintSet::areEqual(
                       {sizes[dim]}, {whole, dim})) &&
                   *ValueBoundsConstraintSet::areEqual({sizes[dim]},
                                                       {whole, dim}))
      continue;
    return std::nullopt;
  }
  std::optional<int64_t> offset = getConstantIntValue(offsets[last]),
                         size = getConstantIntValue(sizes[last]),
                         stride = getConstantIntValue(strides[last]);
  int64_t extent = type.getDimSize(last);
  if (!offset || !size || !stride || ShapedType::isDynamic(extent) || *size < 1)
    return std::nullopt;
  // Every second element, from the first or the second one.
  if (*stride != 1 &&
      (*stride != 2 || *offset > 1 || extent % 2 != 0 || *size * 2 != extent))
    return std::nullopt;
  return PartOfRow{whole, *offset, *size, *stride};
}

std::optional<PartOfRow> norm::matchPart(tensor::ExtractSliceOp slice) {
  return matchPartOf(slice, slice.getSource(), slice.getResult());
}

std::optional<PartOfRow> norm::matchPart(tensor::InsertSliceOp slice) {
  return matchPartOf(slice, slice.getDest(), slice.getSource());
}

void norm::prepareParts(RewriterBase &, ArrayRef<RowOpInterface>) {}
