//===- RowBuilder.cpp - Linalg over the axes of x --------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowBuilder.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace mlir::norm;

static bool isInGpuTile(Operation *op) {
  while ((op = op->getParentOp()))
    if (Attribute strategy = op->getAttr(kStrategyAttrName))
      return isa<GpuStrategyAttr>(strategy);
  return false;
}

RowBuilder::RowBuilder(RowOpInterface op, OpBuilder &builder,
                       bool keepsChannels)
    : op(op), builder(builder), loc(op.getLoc()), reduced(op.getReducedAxes()),
      computeType(op.getComputeTypeOrDefault()),
      // Sums and arithmetic never run in fewer bits than f32; a narrower
      // compute type rounds what each step yields.
      workType(computeType.getWidth() < 32 ? FloatType(builder.getF32Type())
                                           : computeType),
      isForGpu(isInGpuTile(op)), keepsChannels(keepsChannels) {
  all = llvm::to_vector(llvm::seq<int64_t>(0, op.getRank()));
  for (int64_t axis : op.getStatisticAxes())
    if (axis != op.getGroupedAxis())
      kept.push_back(axis);
    else
      kept.push_back(keepsChannels ? kGroupAxis : kUnitAxis);
  if (!keepsChannels)
    return;
  llvm::erase(reduced, *op.getGroupedAxis());
  channels = op.getStatisticAxes();
  grouped = kept;
  grouped.push_back(kWithinAxis);
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
  SmallVector<int64_t> axes(reduced);
  if (keepsChannels)
    axes.push_back(kWithinAxis);
  for (int64_t axis : axes) {
    Value extent =
        getValueOrCreateConstantIndexOp(builder, loc, extentOf(axis));
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
  return llvm::map_to_vector(axes,
                             [&](int64_t axis) { return extentOf(axis); });
}

OpFoldResult RowBuilder::extentOf(int64_t axis) {
  switch (axis) {
  case kUnitAxis:
    return builder.getIndexAttr(1);
  case kGroupAxis:
    return builder.getIndexAttr(op.getNumGroups());
  case kWithinAxis:
    return affine::makeComposedFoldedAffineApply(
        builder, loc,
        builder.getAffineSymbolExpr(0).floorDiv(op.getNumGroups()),
        {extentOf(*op.getGroupedAxis())});
  default:
    return tensor::getMixedSize(builder, loc, op.getInput(), axis);
  }
}

/// The dimensions of `grouped` for each of `channels`.
SmallVector<ReassociationIndices> RowBuilder::channelsOfGroups() {
  int64_t last = channels.size() - 1;
  SmallVector<ReassociationIndices> dims;
  for (int64_t dim = 0; dim < last; ++dim)
    dims.push_back({dim});
  dims.push_back({last, last + 1});
  return dims;
}

/// Over channels what groups have.
SmallVector<Indexed> RowBuilder::spread(ArrayRef<Indexed> inputs) {
  return llvm::map_to_vector(inputs, [&](const Indexed &input) -> Indexed {
    if (!llvm::is_contained(input.axes, kGroupAxis))
      return input;
    Value &found = spreadOf[input.tensor];
    if (!found) {
      // The body needs no sums. They say that these channels are those which
      // have been added up, which nothing else would where the two ops meet.
      Value view = map({input, {channelSums, grouped}}, grouped,
                       elementTypeOf(input.tensor),
                       [](OpBuilder &, Location, ValueRange in) {
                         return SmallVector<Value>{in[0]};
                       })[0];
      found = tensor::CollapseShapeOp::create(builder, loc, view,
                                              channelsOfGroups());
    }
    return {found, channels};
  });
}

/// Adds up the channels of each group.
SmallVector<Value> RowBuilder::sumChannels(ValueRange sums,
                                           ArrayRef<Type> types) {
  SmallVector<Indexed> inputs;
  for (auto [sum, type] : llvm::zip_equal(sums, types)) {
    SmallVector<OpFoldResult> sizes = extentsOf(grouped);
    SmallVector<int64_t> shape;
    SmallVector<Value> dynamic;
    dispatchIndexOpFoldResults(sizes, dynamic, shape);
    Value view = tensor::ExpandShapeOp::create(
        builder, loc, RankedTensorType::get(shape, type), sum,
        channelsOfGroups(), sizes);
    inputs.push_back({view, grouped});
  }
  channelSums = inputs.front().tensor;
  return reduce(inputs, grouped, kept, types,
                [](OpBuilder &, Location, ValueRange in) {
                  return SmallVector<Value>(in);
                });
}

SmallVector<Value> RowBuilder::elementwise(ArrayRef<Indexed> inputs,
                                           ArrayRef<int64_t> outAxes,
                                           ArrayRef<Type> elementTypes,
                                           BodyFn body) {
  if (keepsChannels && outAxes == ArrayRef(all))
    return map(spread(inputs), outAxes, elementTypes, body);
  return map(inputs, outAxes, elementTypes, body);
}

SmallVector<Value> RowBuilder::map(ArrayRef<Indexed> inputs,
                                   ArrayRef<int64_t> outAxes,
                                   ArrayRef<Type> elementTypes, BodyFn body) {
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
  if (keepsChannels && outAxes == ArrayRef(kept))
    return sumChannels(
        reduce(spread(inputs), all, channels, elementTypes, terms),
        elementTypes);
  return reduce(inputs, all, outAxes, elementTypes, terms);
}

SmallVector<Value> RowBuilder::reduce(ArrayRef<Indexed> inputs,
                                      ArrayRef<int64_t> loops,
                                      ArrayRef<int64_t> outAxes,
                                      ArrayRef<Type> elementTypes,
                                      BodyFn terms) {
  SmallVector<OpFoldResult> shape = extentsOf(outAxes);
  SmallVector<AffineMap> maps;
  SmallVector<Value> ins, inits;
  for (const Indexed &input : inputs) {
    maps.push_back(mapOf(input.axes, loops));
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
    maps.push_back(mapOf(outAxes, loops));
  }
  SmallVector<utils::IteratorType> iterators;
  for (int64_t axis : loops)
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
