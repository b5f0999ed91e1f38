//===- Constants.cpp - Constant tensors as numbers -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Analysis/Constants.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::norm;

static double exactDouble(APFloat value) {
  bool losesInfo = false;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

bool ConstantTensor::isSplat() const {
  return llvm::all_of(values, [&](double value) {
    return llvm::bit_cast<uint64_t>(value) ==
           llvm::bit_cast<uint64_t>(values.front());
  });
}

APFloat norm::roundToType(double value, FloatType type) {
  APFloat rounded(value);
  bool losesInfo = false;
  rounded.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
  return rounded;
}

double norm::roundedTo(double value, FloatType type) {
  return exactDouble(roundToType(value, type));
}

/// The elements of a resource, whose bytes are those of the element type.
static bool readResource(DenseResourceElementsAttr attr, FloatType type,
                         SmallVectorImpl<double> &values) {
  AsmResourceBlob *blob = attr.getRawHandle().getBlob();
  if (!blob)
    return false;
  size_t width = type.getWidth() / 8;
  ArrayRef<char> bytes = blob->getData();
  if (bytes.size() != width * attr.getNumElements())
    return false;
  for (; !bytes.empty(); bytes = bytes.drop_front(width)) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data(), width);
    values.push_back(exactDouble(
        APFloat(type.getFloatSemantics(), APInt(type.getWidth(), bits))));
  }
  return true;
}

static bool readElements(ElementsAttr attr, FloatType type,
                         SmallVectorImpl<double> &values) {
  if (auto dense = dyn_cast<DenseElementsAttr>(attr)) {
    if (dense.isSplat()) {
      values.push_back(exactDouble(dense.getSplatValue<APFloat>()));
      return true;
    }
    for (const APFloat &element : dense.getValues<APFloat>())
      values.push_back(exactDouble(element));
    return true;
  }
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attr))
    return readResource(resource, type, values);
  return false;
}

/// The elements of a constant where `op` puts them: a transpose, a broadcast or
/// any other `linalg` op that yields an input as it is. Broadcasts that grow
/// beyond what is sensible to write out stay as they are.
static std::optional<ConstantTensor> matchMoved(linalg::LinalgOp op,
                                                RankedTensorType type) {
  constexpr int64_t kMaxBroadcast = 1 << 20;
  if (!op.hasPureTensorSemantics() || op->getNumResults() != 1 ||
      op.getNumReductionLoops() != 0)
    return std::nullopt;
  auto yielded =
      dyn_cast<BlockArgument>(op.getBlock()->getTerminator()->getOperand(0));
  if (!yielded || yielded.getOwner() != op.getBlock())
    return std::nullopt;
  OpOperand *operand = op.getMatchingOpOperand(yielded);
  AffineMap from = op.getMatchingIndexingMap(operand);
  AffineMap to = op.getIndexingMapMatchingResult(op->getResult(0));
  if (op.isDpsInit(operand) || !to.isPermutation() ||
      !from.isProjectedPermutation(/*allowZeroInResults=*/true))
    return std::nullopt;
  std::optional<ConstantTensor> source = matchConstant(operand->get());
  if (!source)
    return std::nullopt;
  if (source->isSplat())
    return ConstantTensor(type, {source->getSplat()});
  int64_t count = type.getNumElements();
  if (count != source->getType().getNumElements() && count > kMaxBroadcast)
    return std::nullopt;

  // Step of the source's position for each dimension of the result.
  SmallVector<int64_t> steps(type.getRank(), 0);
  int64_t step = 1;
  for (int64_t dim = from.getNumResults(); dim-- > 0;) {
    if (auto loop = dyn_cast<AffineDimExpr>(from.getResult(dim)))
      steps[*to.getResultPosition(loop)] = step;
    step *= source->getShape()[dim];
  }
  SmallVector<double> values;
  values.reserve(count);
  SmallVector<int64_t> index(type.getRank(), 0);
  for (int64_t i = 0, position = 0; i < count; ++i) {
    values.push_back((*source)[position]);
    for (int64_t dim = type.getRank(); dim-- > 0;) {
      position += steps[dim];
      if (++index[dim] < type.getDimSize(dim))
        break;
      position -= index[dim] * steps[dim];
      index[dim] = 0;
    }
  }
  return ConstantTensor(type, std::move(values));
}

std::optional<double> norm::matchConstantScalar(Value value) {
  if (!value)
    return std::nullopt;
  FloatAttr attr;
  if (matchPattern(value, m_Constant(&attr)))
    return exactDouble(attr.getValue());
  std::optional<ConstantTensor> tensor = matchConstant(value);
  if (tensor && tensor->isSplat())
    return tensor->getSplat();
  return std::nullopt;
}

std::optional<ConstantTensor> norm::matchConstant(Value value) {
  if (!value)
    return std::nullopt;
  while (auto cast = value.getDefiningOp<tensor::CastOp>())
    value = cast.getSource();
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape() || type.getNumElements() == 0)
    return std::nullopt;
  auto elementType = dyn_cast<FloatType>(type.getElementType());
  if (!elementType || elementType.getWidth() > 64)
    return std::nullopt;

  Value splat;
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    splat = fill.getInputs().front();
  else if (auto op = value.getDefiningOp<tensor::SplatOp>())
    splat = op.getInput();
  if (splat) {
    FloatAttr attr;
    if (splat.getType() != elementType ||
        !matchPattern(splat, m_Constant(&attr)))
      return std::nullopt;
    return ConstantTensor(type, {exactDouble(attr.getValue())});
  }
  // Reshapes keep the order of elements.
  Value source;
  if (auto expand = value.getDefiningOp<tensor::ExpandShapeOp>())
    source = expand.getSrc();
  else if (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>())
    source = collapse.getSrc();
  if (source) {
    std::optional<ConstantTensor> constant = matchConstant(source);
    if (!constant)
      return std::nullopt;
    if (constant->isSplat())
      return ConstantTensor(type, {constant->getSplat()});
    SmallVector<double> values;
    for (int64_t i = 0, e = type.getNumElements(); i < e; ++i)
      values.push_back((*constant)[i]);
    return ConstantTensor(type, std::move(values));
  }
  if (auto op = value.getDefiningOp<linalg::LinalgOp>())
    return matchMoved(op, type);
  ElementsAttr attr;
  SmallVector<double> values;
  if (!matchPattern(value, m_Constant(&attr)) ||
      !readElements(attr, elementType, values))
    return std::nullopt;
  return ConstantTensor(type, std::move(values));
}

Value norm::createConstant(OpBuilder &builder, Location loc,
                           RankedTensorType type, ArrayRef<double> values) {
  auto elementType = cast<FloatType>(type.getElementType());
  SmallVector<APFloat> rounded;
  for (double value : values)
    rounded.push_back(roundToType(value, elementType));
  return arith::ConstantOp::create(builder, loc, type,
                                   DenseElementsAttr::get(type, rounded));
}
