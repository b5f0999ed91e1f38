//===- RowBuilder.cpp - Linalg over the axes of x --------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowBuilder.h"

using namespace mlir;
using namespace mlir::norm;

static bool isInGpuTile(Operation *op) {
  while ((op = op->getParentOp()))
    if (Attribute strategy = op->getAttr(kStrategyAttrName))
      return isa<GpuStrategyAttr>(strategy);
  return false;
}

RowBuilder::RowBuilder(RowOpInterface op, OpBuilder &builder)
    : op(op), builder(builder), loc(op.getLoc()), reduced(op.getReducedAxes()),
      computeType(op.getComputeTypeOrDefault()),
      // Sums and arithmetic never run in fewer bits than f32; a narrower
      // compute type rounds what each step yields.
      workType(computeType.getWidth() < 32 ? FloatType(builder.getF32Type())
                                           : computeType),
      isForGpu(isInGpuTile(op)) {
  all = llvm::to_vector(llvm::seq<int64_t>(0, op.getRank()));
  for (int64_t axis : op.getStatisticAxes())
    kept.push_back(axis == op.getGroupedAxis() ? kUnitAxis : axis);
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value RowBuilder::constant(OpBuilder &b, double value, FloatType type) {
  APFloat converted(value);
  bool losesInfo;
  converted.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                    &losesInfo);
  return arith::ConstantOp::create(b, loc, FloatAttr::get(type, converted));
}

Value RowBuilder::cast(OpBuilder &b, Value value, FloatType type) {
  auto from = mlir::cast<FloatType>(value.getType());
  if (from == type)
    return value;
  if (from.getWidth() < type.getWidth())
    return arith::ExtFOp::create(b, loc, type, value);
  if (from.getWidth() > type.getWidth())
    return arith::TruncFOp::create(b, loc, type, value);
  // bf16 and f16: through f32, which holds both.
  return cast(b, cast(b, value, b.getF32Type()), type);
}

Value RowBuilder::dynamicCount() {
  if (op.getStaticReducedCount())
    return {};
  Value count;
  for (int64_t axis : reduced) {
    Value extent = tensor::DimOp::create(builder, loc, op.getInput(), axis);
    count = count ? arith::MulIOp::create(builder, loc, count, extent) : extent;
  }
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), count);
}

Value RowBuilder::divisor(int64_t subtract) {
  if (std::optional<int64_t> count = op.getStaticReducedCount())
    return constant(builder, *count == 0 ? 1.0 : double(*count - subtract),
                    workType);
  Value count = dynamicCount();
  auto integer = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getI64IntegerAttr(value));
  };
  Value isEmpty = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        count, integer(0));
  if (subtract != 0)
    count = arith::SubIOp::create(builder, loc, count, integer(subtract));
  count = arith::SelectOp::create(builder, loc, isEmpty, integer(1), count);
  return arith::SIToFPOp::create(builder, loc, workType, count);
}

Value RowBuilder::divisorFrom(OpFoldResult count) {
  if (std::optional<int64_t> known = getConstantIntValue(count))
    return constant(builder, std::max<int64_t>(*known, 1), workType);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value atLeastOne =
      arith::MaxUIOp::create(builder, loc, mlir::cast<Value>(count), one);
  return arith::SIToFPOp::create(
      builder, loc, workType,
      arith::IndexCastOp::create(builder, loc, builder.getI64Type(),
                                 atLeastOne));
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

AffineMap RowBuilder::mapOf(ArrayRef<int64_t> axes, ArrayRef<int64_t> loops) {
  SmallVector<AffineExpr> exprs;
  for (int64_t axis : axes) {
    const int64_t *loop = llvm::find(loops, axis);
    exprs.push_back(loop == loops.end()
                        ? builder.getAffineConstantExpr(0)
                        : builder.getAffineDimExpr(loop - loops.begin()));
  }
  return AffineMap::get(loops.size(), 0, exprs, builder.getContext());
}

SmallVector<OpFoldResult> RowBuilder::extentsOf(ArrayRef<int64_t> axes) {
  return llvm::map_to_vector(axes, [&](int64_t axis) -> OpFoldResult {
    if (axis == kUnitAxis)
      return builder.getIndexAttr(1);
    return tensor::getMixedSize(builder, loc, op.getInput(), axis);
  });
}

SmallVector<Value> RowBuilder::elementwise(ArrayRef<Indexed> inputs,
                                           ArrayRef<int64_t> outAxes,
                                           ArrayRef<Type> elementTypes,
                                           BodyFn body) {
  SmallVector<AffineMap> maps;
  SmallVector<Value> ins, outs;
  for (const Indexed &input : inputs) {
    maps.push_back(mapOf(input.axes, outAxes));
    ins.push_back(input.tensor);
  }
  SmallVector<OpFoldResult> shape = extentsOf(outAxes);
  SmallVector<Type> types;
  for (Type elementType : elementTypes) {
    outs.push_back(tensor::EmptyOp::create(builder, loc, shape, elementType));
    types.push_back(outs.back().getType());
    maps.push_back(builder.getMultiDimIdentityMap(outAxes.size()));
  }
  auto generic = linalg::GenericOp::create(
      builder, loc, types, ins, outs, maps,
      SmallVector<utils::IteratorType>(outAxes.size(),
                                       utils::IteratorType::parallel),
      [&](OpBuilder &b, Location bodyLoc, ValueRange args) {
        linalg::YieldOp::create(b, bodyLoc,
                                body(b, bodyLoc, args.take_front(ins.size())));
      });
  return llvm::to_vector_of<Value>(generic.getResults());
}

Value RowBuilder::elementwise(ArrayRef<Indexed> inputs,
                              ArrayRef<int64_t> outAxes, Type elementType,
                              BodyFn body) {
  return elementwise(inputs, outAxes, ArrayRef<Type>{elementType}, body)[0];
}

void RowBuilder::elementwiseTo(ArrayRef<Output> outputs,
                               ArrayRef<Indexed> inputs, BodyFn body) {
  SmallVector<Type> types = llvm::map_to_vector(
      outputs, [](const Output &output) { return output.elementType; });
  for (auto [output, value] :
       llvm::zip_equal(outputs, elementwise(inputs, kept, types, body)))
    *output.destination = value;
}

Value RowBuilder::fill(Value scalar, ArrayRef<int64_t> axes) {
  Value empty =
      tensor::EmptyOp::create(builder, loc, extentsOf(axes), scalar.getType());
  return linalg::FillOp::create(builder, loc, scalar, empty).getResult(0);
}

SmallVector<Value> RowBuilder::sums(ArrayRef<Indexed> inputs,
                                    ArrayRef<int64_t> outAxes,
                                    ArrayRef<Type> elementTypes, BodyFn terms) {
  SmallVector<OpFoldResult> shape = extentsOf(outAxes);
  SmallVector<AffineMap> maps;
  SmallVector<Value> ins, inits;
  for (const Indexed &input : inputs) {
    maps.push_back(mapOf(input.axes, all));
    ins.push_back(input.tensor);
  }
  SmallVector<Type> types;
  for (Type elementType : elementTypes) {
    Value empty = tensor::EmptyOp::create(builder, loc, shape, elementType);
    Value zero = arith::ConstantOp::create(builder, loc,
                                           builder.getZeroAttr(elementType));
    inits.push_back(
        linalg::FillOp::create(builder, loc, zero, empty).getResult(0));
    types.push_back(inits.back().getType());
    maps.push_back(mapOf(outAxes, all));
  }
  SmallVector<utils::IteratorType> iterators;
  for (int64_t axis : all)
    iterators.push_back(llvm::is_contained(outAxes, axis)
                            ? utils::IteratorType::parallel
                            : utils::IteratorType::reduction);
  auto generic = linalg::GenericOp::create(
      builder, loc, types, ins, inits, maps, iterators,
      [&](OpBuilder &b, Location bodyLoc, ValueRange args) {
        SmallVector<Value> values =
            terms(b, bodyLoc, args.take_front(ins.size()));
        for (auto [value, sum] :
             llvm::zip_equal(values, args.drop_front(ins.size())))
          value = isa<FloatType>(value.getType())
                      ? Value(arith::AddFOp::create(b, bodyLoc, sum, value))
                      : Value(arith::AddIOp::create(b, bodyLoc, sum, value));
        linalg::YieldOp::create(b, bodyLoc, values);
      });
  return llvm::to_vector_of<Value>(generic.getResults());
}

SmallVector<Value> RowBuilder::sums(ArrayRef<Indexed> inputs, unsigned count,
                                    BodyFn terms) {
  return sums(inputs, kept, SmallVector<Type>(count, workType), terms);
}
