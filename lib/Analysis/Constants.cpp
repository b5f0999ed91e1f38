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
