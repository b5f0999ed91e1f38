//===- NormInterfaces.cpp - Facts that follow from the interface ----------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/IR/NormOps.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::norm;

#include "Norm/IR/NormInterfaces.cpp.inc"

SmallVector<int64_t> norm::canonicalAxes(ArrayRef<int64_t> axes, int64_t rank) {
  SmallVector<int64_t> canonical = llvm::map_to_vector(
      axes, [&](int64_t axis) { return axis < 0 ? axis + rank : axis; });
  llvm::sort(canonical);
  return canonical;
}

SmallVector<int64_t> norm::complementAxes(ArrayRef<int64_t> axes,
                                          int64_t rank) {
  SmallVector<int64_t> others;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (!llvm::is_contained(axes, axis))
      others.push_back(axis);
  return others;
}

std::optional<int64_t> norm::staticExtent(ShapedType type,
                                          ArrayRef<int64_t> axes) {
  int64_t extent = 1, product;
  bool dynamic = false;
  for (int64_t axis : axes) {
    if (type.getDimSize(axis) == 0)
      return 0;
    if (type.isDynamicDim(axis))
      dynamic = true;
    else
      // No tensor has that many elements: any large number will do.
      extent = llvm::MulOverflow(extent, type.getDimSize(axis), product)
                   ? std::numeric_limits<int64_t>::max()
                   : product;
  }
  if (dynamic)
    return std::nullopt;
  return extent;
}

SmallVector<int64_t> norm::axesThatResultsLack(RowOpInterface op) {
  SmallVector<int64_t> lacking;
  for (int64_t axis = 0; axis < op.getRank(); ++axis)
    if (llvm::any_of(op->getResults(), [&](OpResult result) {
          return !llvm::is_contained(op.getResultAxes(result.getResultNumber()),
                                     axis);
        }))
      lacking.push_back(axis);
  return lacking;
}

SmallVector<int64_t> norm::defaultAffineAxes(Operation *op) {
  return cast<RowOpInterface>(op).getReducedAxes();
}

FloatType norm::defaultComputeType(Operation *op) {
  return defaultComputeType(cast<RowOpInterface>(op).getInput(), Value());
}

FloatType norm::defaultSumElementType(Operation *op) {
  return cast<FloatType>(
      cast<RowOpInterface>(op).getInput().getType().getElementType());
}

SmallVector<int64_t> norm::defaultTiedAxes(Operation *norm) {
  auto op = cast<RowOpInterface>(norm);
  SmallVector<int64_t> tied = axesThatResultsLack(op);
  for (int64_t axis : op.getReducedAxes())
    if (axis != op.getGroupedAxis() && !llvm::is_contained(tied, axis))
      tied.push_back(axis);
  llvm::sort(tied);
  return tied;
}

SmallVector<int64_t> norm::statisticAxes(RowOpInterface op) {
  SmallVector<int64_t> axes = op.getKeptAxes();
  if (std::optional<int64_t> grouped = op.getGroupedAxis()) {
    axes.push_back(*grouped);
    llvm::sort(axes);
  }
  return axes;
}

std::optional<int64_t> norm::staticReducedCount(RowOpInterface op) {
  std::optional<int64_t> count =
      staticExtent(op.getInput().getType(), op.getReducedAxes());
  // Of one group: groups divide the extent they split.
  return count ? std::optional<int64_t>(*count / op.getNumGroups())
               : std::nullopt;
}

SmallVector<ExtentAgreement> norm::extentAgreements(RowOpInterface op) {
  SmallVector<ExtentAgreement> agreements;
  auto add = [&](Value tensor, ArrayRef<int64_t> axes, bool isStatistic) {
    for (auto [dim, axis] : llvm::enumerate(axes))
      if (!isStatistic || axis != op.getGroupedAxis())
        agreements.push_back({tensor, static_cast<int64_t>(dim), axis});
  };
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get() != op.getInput())
      add(operand.get(), op.getOperandAxes(operand.getOperandNumber()),
          op.isStatisticOperand(operand.getOperandNumber()));
  for (OpResult result : op->getResults())
    add(result, op.getResultAxes(result.getResultNumber()),
        op.isStatisticResult(result.getResultNumber()));
  return agreements;
}

std::optional<double> norm::outputNormBound(NormOpInterface op) {
  if (op.getScaleOrNull() || op.getShiftOrNull() || op.hasGivenStatistics())
    return std::nullopt;
  if (op.getStatistic() == Statistic::SumSquare)
    return 1.0;
  std::optional<int64_t> count = op.getStaticReducedCount();
  if (!count)
    return std::nullopt;
  int64_t divisor = *count - (op.isCentred() ? op.getCorrection() : 0);
  return std::sqrt(static_cast<double>(std::max<int64_t>(divisor, 0)));
}

Speculation::Speculatability norm::normSpeculatability(RowOpInterface op) {
  // A run-time extent may break V2, V8 or V15: executing the op where the
  // program would not have is then undefined. Extents that x alone decides
  // cannot disagree with anything.
  RankedTensorType xType = op.getInput().getType();
  // V5: a dynamic number of channels may not be a multiple of the groups.
  if (op.getGroupedAxis() && xType.isDynamicDim(*op.getGroupedAxis()))
    return Speculation::NotSpeculatable;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (operand.get() == op.getInput() || !type)
      continue;
    if (!type.hasStaticShape())
      return Speculation::NotSpeculatable;
    for (int64_t axis : op.getOperandAxes(operand.getOperandNumber()))
      if (xType.isDynamicDim(axis))
        return Speculation::NotSpeculatable;
  }
  for (OpResult result : op->getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    for (auto [dim, axis] :
         llvm::enumerate(op.getResultAxes(result.getResultNumber())))
      if (xType.isDynamicDim(axis) && !type.isDynamicDim(dim))
        return Speculation::NotSpeculatable;
  }
  return Speculation::Speculatable;
}
