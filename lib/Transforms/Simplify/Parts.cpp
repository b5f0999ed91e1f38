//===- Parts.cpp - Gains, epsilons and statistics of a rewrite -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parts.h"
#include "Simplify.h"

#include "Norm/Analysis/Constants.h"
#include "Norm/IR/NormOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// Elementwise IR
//===----------------------------------------------------------------------===//

Value simplify::buildNumber(OpBuilder &builder, Location loc, double value,
                            FloatType type) {
  return arith::ConstantOp::create(
      builder, loc, FloatAttr::get(type, roundToType(value, type)));
}

Value simplify::mapElements(
    OpBuilder &builder, Location loc, Value tensor,
    ArrayRef<MappedOperand> others,
    function_ref<Value(OpBuilder &, Location, ValueRange)> body,
    Type elementType) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (elementType)
    type = type.clone(elementType);
  unsigned rank = type.getRank();
  SmallVector<Value> inputs = {tensor};
  SmallVector<AffineMap> maps = {builder.getMultiDimIdentityMap(rank)};
  for (const MappedOperand &other : others) {
    SmallVector<AffineExpr> exprs;
    for (int64_t dim : other.dims)
      exprs.push_back(dim < 0 ? builder.getAffineConstantExpr(0)
                              : builder.getAffineDimExpr(dim));
    inputs.push_back(other.tensor);
    maps.push_back(AffineMap::get(rank, 0, exprs, builder.getContext()));
  }
  maps.push_back(builder.getMultiDimIdentityMap(rank));
  Value empty = tensor::EmptyOp::create(
      builder, loc, tensor::getMixedSizes(builder, loc, tensor),
      type.getElementType());
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      builder, loc, empty.getType(), inputs, empty, maps, loops,
      [&](OpBuilder &b, Location bodyLoc, ValueRange args) {
        linalg::YieldOp::create(b, bodyLoc, body(b, bodyLoc, args.drop_back()));
      });
  Value result = generic.getResult(0);
  if (result.getType() != type)
    result = tensor::CastOp::create(builder, loc, type, result);
  return result;
}

Value simplify::scaleStatistic(OpBuilder &builder, Location loc,
                               Value statistic, double factor) {
  if (!statistic || factor == 1.0)
    return statistic;
  return mapElements(
      builder, loc, statistic, {},
      [&](OpBuilder &b, Location bodyLoc, ValueRange args) -> Value {
        auto type = cast<FloatType>(args[0].getType());
        return arith::MulFOp::create(b, bodyLoc, args[0],
                                     buildNumber(b, bodyLoc, factor, type));
      });
}

//===----------------------------------------------------------------------===//
// Gains
//===----------------------------------------------------------------------===//

/// The shape of x along `axes`; nullopt where it is dynamic.
static std::optional<SmallVector<int64_t>>
staticShape(const NormContract &contract, ArrayRef<int64_t> axes) {
  auto type = cast<RankedTensorType>(contract.x.getType());
  SmallVector<int64_t> shape;
  for (int64_t axis : axes)
    shape.push_back(type.getDimSize(axis));
  if (llvm::any_of(shape, ShapedType::isDynamic))
    return std::nullopt;
  return shape;
}

bool simplify::canScaleGain(const NormContract &contract, double factor) {
  if (factor == 1.0)
    return true;
  if (!contract.scale)
    return !contract.shift ||
           (staticShape(contract, *contract.affineAxes) &&
            (factor == -1.0 || contract.affineIn == AffineIn::Compute));
  return factor == -1.0 || (matchConstant(contract.scale) &&
                            contract.affineIn == AffineIn::Compute);
}

/// A gain where there was none.
static void createGain(OpBuilder &builder, Location loc, NormContract &contract,
                       double factor, ArrayRef<int64_t> axes) {
  if (!contract.shift) {
    bool isStatic = staticShape(contract, axes).has_value();
    contract.affineAxes =
        isStatic ? llvm::to_vector(axes) : SmallVector<int64_t>();
    // A sign is applied to the rounded value without rounding again.
    if (factor != -1.0)
      contract.affineIn = AffineIn::Compute;
  }
  auto type = RankedTensorType::get(
      *staticShape(contract, *contract.affineAxes), contract.computeType);
  contract.scale = createConstant(builder, loc, type, {factor});
}

void simplify::scaleGain(OpBuilder &builder, Location loc,
                         NormContract &contract, double factor,
                         ArrayRef<int64_t> axes) {
  if (factor == 1.0 || !canScaleGain(contract, factor))
    return;
  if (!contract.scale)
    return createGain(builder, loc, contract, factor, axes);
  std::optional<ConstantTensor> constant = matchConstant(contract.scale);
  if (!constant) {
    contract.scale = mapElements(
        builder, loc, contract.scale, {},
        [](OpBuilder &b, Location bodyLoc, ValueRange args) -> Value {
          return arith::NegFOp::create(b, bodyLoc, args[0]);
        });
    contract.scaleOffset = -contract.scaleOffset;
    return;
  }
  // A sign changes no bit but itself; any other factor is applied to the whole
  // gain, in a type that loses nothing of the compute type.
  RankedTensorType type = constant->getType();
  double offset = contract.scaleOffset;
  if (factor == -1.0) {
    contract.scaleOffset = -offset;
    offset = 0.0;
  } else {
    type = type.clone(widestElementType(contract.computeType, contract.scale));
    contract.scaleOffset = 0.0;
  }
  SmallVector<double> values;
  int64_t count = constant->isSplat() ? 1 : type.getNumElements();
  for (int64_t i = 0; i < count; ++i)
    values.push_back(((*constant)[i] + offset) * factor);
  contract.scale = createConstant(builder, loc, type, values);
}

std::optional<double> simplify::splatGain(NormOpInterface op) {
  if (!op.getScaleOrNull())
    return 1.0;
  std::optional<double> gain = matchConstantScalar(op.getScaleOrNull());
  if (!gain)
    return std::nullopt;
  return *gain + op.getScaleOffsetValue();
}

//===----------------------------------------------------------------------===//
// Epsilon
//===----------------------------------------------------------------------===//

bool simplify::isUsableEpsilon(double value, double old,
                               FloatType computeType) {
  APFloat before = roundToType(old, computeType);
  APFloat after = roundToType(value, computeType);
  return after.isFinite() && (after.isNormal() || !before.isNormal()) &&
         (value > 0.0 || old == 0.0);
}

std::string simplify::numberText(double value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::format("%.9g", value);
  return text;
}
