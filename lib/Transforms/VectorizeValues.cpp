//===- VectorizeValues.cpp - Values of a tile as vectors -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads, writes and elementwise ops of the vector form (TileEmitter.h).
//
//===----------------------------------------------------------------------===//

#include "TileEmitter.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"

using namespace mlir;
using namespace mlir::norm;

Value TileEmitter::extentOf(int axis) {
  const TileAxis &named = program.getAxis(axis);
  if (named.extent)
    return getValueOrCreateConstantIndexOp(builder, loc, named.extent);
  return tensor::DimOp::create(builder, loc, named.tensor, named.dim);
}

VectorType TileEmitter::vectorType(bool hasRows, bool hasColumns,
                                   Type elementType) {
  SmallVector<int64_t> shape;
  if (hasRows)
    shape.push_back(rows);
  if (hasColumns)
    shape.push_back(columns);
  return VectorType::get(shape, elementType);
}

Vectorized TileEmitter::broadcast(Vectorized value, bool toRows,
                                  bool toColumns) {
  Type elementType = getElementTypeOrSelf(value.value);
  // An axis that is asked for no longer has extent 1.
  if (value.hasColumns && !toColumns) {
    int64_t height = value.hasRows ? rows : 1;
    VectorType type = VectorType::get({height, columns}, elementType);
    Value column = vector::ExtractStridedSliceOp::create(
        builder, loc,
        vector::ShapeCastOp::create(builder, loc, type, value.value),
        ArrayRef<int64_t>{0, 0}, ArrayRef<int64_t>{height, 1},
        ArrayRef<int64_t>{1, 1});
    VectorType flat = VectorType::get({height}, elementType);
    value = {vector::ShapeCastOp::create(builder, loc, flat, column), true};
    if (height == 1)
      value = {vector::ExtractOp::create(builder, loc, value.value, 0)};
  }
  if (value.hasRows && !toRows)
    value = {vector::ExtractOp::create(builder, loc, value.value, 0), false,
             value.hasColumns};
  if (value.hasRows == toRows && value.hasColumns == toColumns)
    return value;
  VectorType type = vectorType(toRows, toColumns, elementType);
  Value source = value.value;
  // vector<R> lines up with the trailing dimension unless made vector<Rx1>.
  if (value.hasRows && !value.hasColumns)
    source = vector::ShapeCastOp::create(
        builder, loc, VectorType::get({rows, 1}, elementType), source);
  return {vector::BroadcastOp::create(builder, loc, type, source), toRows,
          toColumns};
}

void TileEmitter::locate(Value tensor, Step &step, Values &indices,
                         SmallVectorImpl<AffineExpr> &dims,
                         SmallVectorImpl<bool> &dimIsColumns) {
  for (auto [dim, axis] : llvm::enumerate(program.getAxesOf(tensor))) {
    bool isColumns = program.isColumns(axis);
    if (isColumns || (axis != TileProgram::kNoAxis && axis == rowAxis)) {
      dims.push_back(builder.getAffineDimExpr(dim));
      dimIsColumns.push_back(isColumns);
    }
    auto it = step.position.find(axis);
    indices.push_back(it == step.position.end() ? index(0) : it->second);
  }
}

/// The mask of a vector whose dimensions are as given; null if all is active.
Value TileEmitter::activeMask(Step &step, ArrayRef<bool> dimIsColumns) {
  if (!step.activeColumns || !llvm::is_contained(dimIsColumns, true))
    return {};
  SmallVector<int64_t> shape;
  Values bounds;
  for (bool isColumns : dimIsColumns) {
    shape.push_back(isColumns ? columns : rows);
    bounds.push_back(isColumns ? step.activeColumns : index(rows));
  }
  return vector::CreateMaskOp::create(
      builder, loc, VectorType::get(shape, builder.getI1Type()), bounds);
}

Vectorized TileEmitter::read(Value tensor, Step &step) {
  return readAt(stripTensorCasts(tensor), tensor, step);
}

Vectorized TileEmitter::readAt(Value tensor, Value place, Step &step) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Values indices;
  SmallVector<AffineExpr> dims;
  SmallVector<bool> dimIsColumns;
  locate(place, step, indices, dims, dimIsColumns);
  if (dims.empty())
    return {tensor::ExtractOp::create(builder, loc, tensor, indices)};
  if (!hasVectorLayout(tensor))
    return readBits(tensor, step);

  SmallVector<int64_t> shape = llvm::map_to_vector(
      dimIsColumns, [&](bool isColumns) { return isColumns ? columns : rows; });
  Value padding = arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(type.getElementType()));
  AffineMap map = AffineMap::get(type.getRank(), 0, dims, builder.getContext());
  auto inBounds =
      builder.getBoolArrayAttr(SmallVector<bool>(dims.size(), true));
  Value value = vector::TransferReadOp::create(
      builder, loc, VectorType::get(shape, type.getElementType()), tensor,
      indices, AffineMapAttr::get(map), padding, activeMask(step, dimIsColumns),
      inBounds);
  // Columns before rows in memory: bring them into the order of the form.
  if (dims.size() == 2 && dimIsColumns.front())
    value = vector::TransposeOp::create(builder, loc, value,
                                        ArrayRef<int64_t>{1, 0});
  return {value, llvm::is_contained(dimIsColumns, false),
          llvm::is_contained(dimIsColumns, true)};
}

/// An element at a time: those of an i1 tensor take a byte each. What a mask
/// cuts off repeats the last element that counts.
Vectorized TileEmitter::readBits(Value tensor, Step &step) {
  Values first;
  SmallVector<AffineExpr> dims;
  SmallVector<bool> dimIsColumns;
  locate(tensor, step, first, dims, dimIsColumns);
  bool hasRows = llvm::is_contained(dimIsColumns, false);
  bool hasColumns = llvm::is_contained(dimIsColumns, true);
  Type elementType = getElementTypeOrSelf(tensor.getType());
  VectorType type = vectorType(hasRows, hasColumns, elementType);
  Value active = hasColumns ? step.activeColumns : Value();

  auto element = [&](int64_t row, int64_t column) -> Value {
    Values indices(first);
    for (auto [dim, isColumns] : llvm::zip_equal(dims, dimIsColumns)) {
      Value offset = index(isColumns ? column : row);
      if (isColumns && active)
        offset = arith::MinUIOp::create(
            builder, loc, offset,
            arith::SubIOp::create(builder, loc, active, index(1)));
      Value &at = indices[cast<AffineDimExpr>(dim).getPosition()];
      at = arith::AddIOp::create(builder, loc, at, offset);
    }
    return tensor::ExtractOp::create(builder, loc, tensor, indices);
  };
  auto gather = [&]() -> Value {
    Values elements;
    for (int64_t row = 0; row < (hasRows ? rows : 1); ++row)
      for (int64_t column = 0; column < (hasColumns ? columns : 1); ++column)
        elements.push_back(element(row, column));
    auto flat = VectorType::get({type.getNumElements()}, elementType);
    Value value = vector::FromElementsOp::create(builder, loc, flat, elements);
    return vector::ShapeCastOp::create(builder, loc, type, value);
  };
  if (!active)
    return {gather(), hasRows, hasColumns};

  // A run-time rest may have no element at all.
  Value isEmpty = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        active, index(0));
  auto ifOp = scf::IfOp::create(builder, loc, type, isEmpty, true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(ifOp.thenBlock());
  Value none =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  scf::YieldOp::create(builder, loc, none);
  builder.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(builder, loc, gather());
  return {ifOp.getResult(0), hasRows, hasColumns};
}

Value TileEmitter::write(Vectorized value, Value source, Value destination,
                         Step &step) {
  auto type = cast<RankedTensorType>(destination.getType());
  Values indices;
  SmallVector<AffineExpr> dims;
  SmallVector<bool> dimIsColumns;
  locate(source, step, indices, dims, dimIsColumns);
  for (auto [axis, at] : llvm::zip_equal(program.getAxesOf(source), indices))
    if (Value start = writtenFrom.lookup(axis))
      at = arith::SubIOp::create(builder, loc, at, start);
  value = broadcast(value, llvm::is_contained(dimIsColumns, false),
                    llvm::is_contained(dimIsColumns, true));
  if (dims.empty())
    return tensor::InsertOp::create(builder, loc, value.value, destination,
                                    indices);
  Value vector = value.value;
  if (dims.size() == 2 && dimIsColumns.front())
    vector = vector::TransposeOp::create(builder, loc, vector,
                                         ArrayRef<int64_t>{1, 0});
  AffineMap map = AffineMap::get(type.getRank(), 0, dims, builder.getContext());
  auto inBounds =
      builder.getBoolArrayAttr(SmallVector<bool>(dims.size(), true));
  return vector::TransferWriteOp::create(
             builder, loc, type, vector, destination, indices,
             AffineMapAttr::get(map), activeMask(step, dimIsColumns), inBounds)
      .getResult();
}

/// The step where the source of a part has what the part has at `step`: at
/// `stride` times its position, plus `offset`, along the columns, and at the
/// same along other axes. Values that were computed in it are found again.
Step &TileEmitter::sourceStep(Value tensor, const TilePart &part, Step &step,
                              int64_t offset, Value active) {
  std::unique_ptr<Step> &source = step.sources[{part.stride, offset}];
  if (source)
    return *source;
  source = std::make_unique<Step>();
  source->outer = step.outer;
  source->axis = step.axis;
  source->position = step.position;
  source->activeColumns = active;
  for (auto [own, axis] : llvm::zip_equal(program.getAxesOf(tensor),
                                          program.getAxesOf(part.source))) {
    auto it = step.position.find(own);
    if (own == axis || it == step.position.end())
      continue;
    Value position = it->second;
    if (program.isColumns(own) && part.stride != 1)
      position =
          arith::MulIOp::create(builder, loc, position, index(part.stride));
    if (program.isColumns(own) && offset != 0)
      position = arith::AddIOp::create(builder, loc, position, index(offset));
    source->position[axis] = position;
    if (own == step.axis)
      source->axis = axis;
  }
  return *source;
}

/// Every second column of two vectors that lie side by side.
Value TileEmitter::takeAlternate(Value first, Value second, int64_t offset) {
  auto lanes = llvm::map_to_vector(llvm::seq<int64_t>(0, columns),
                                   [&](int64_t i) { return offset + 2 * i; });
  auto type = cast<VectorType>(first.getType());
  if (type.getRank() == 1)
    return vector::ShuffleOp::create(builder, loc, first, second, lanes);
  Value result = first;
  for (int64_t row = 0; row < type.getDimSize(0); ++row) {
    Value alternate = vector::ShuffleOp::create(
        builder, loc, vector::ExtractOp::create(builder, loc, first, row),
        vector::ExtractOp::create(builder, loc, second, row), lanes);
    result = vector::InsertOp::create(builder, loc, alternate, result, row);
  }
  return result;
}

/// A part of a computed tensor, at a step along the part: what it is a part of
/// is computed where the part asks for it.
FailureOr<Vectorized> TileEmitter::readPart(Value tensor, const TilePart &part,
                                            Step &step) {
  if (part.stride == 1)
    return get(part.source,
               sourceStep(tensor, part, step, part.offset, step.activeColumns));
  // C columns of the part lie among 2 C columns: the first C, then others.
  Value first, second;
  if (step.activeColumns) {
    Value all =
        arith::MulIOp::create(builder, loc, step.activeColumns, index(2));
    first = arith::MinUIOp::create(builder, loc, all, index(columns));
    second = arith::SubIOp::create(builder, loc, all, first);
  }
  FailureOr<Vectorized> low =
      get(part.source, sourceStep(tensor, part, step, 0, first));
  FailureOr<Vectorized> high =
      get(part.source, sourceStep(tensor, part, step, columns, second));
  if (failed(low) || failed(high) || !low->hasColumns)
    return low;
  return Vectorized{takeAlternate(low->value, high->value, part.offset),
                    low->hasRows, true};
}

FailureOr<Vectorized> TileEmitter::get(Value tensor, Step &step) {
  if (!isa<RankedTensorType>(tensor.getType()))
    return Vectorized{tensor};
  tensor = stripTensorCasts(tensor);
  if (Value scalar = program.getFillValue(tensor))
    return Vectorized{scalar};
  SmallVector<int> needed = program.getNeededAxes(tensor);
  Step *place = &step;
  while (place->outer && !llvm::is_contained(needed, place->axis))
    place = place->outer;
  if (auto it = place->cache.find(tensor); it != place->cache.end())
    return it->second;

  OpBuilder::InsertionGuard guard(builder);
  if (place != &step)
    builder.setInsertionPoint(place->anchor);
  linalg::GenericOp producer = program.getProducer(tensor);
  if (std::optional<TilePart> part = program.getPart(tensor)) {
    FailureOr<Vectorized> value = readPart(tensor, *part, *place);
    if (succeeded(value))
      place->cache[tensor] = *value;
    return value;
  }
  if (!producer)
    return place->cache[tensor] = read(tensor, *place);
  SmallVector<Vectorized> results;
  if (failed(emitBody(producer, *place, results)))
    return failure();
  for (auto [result, value] : llvm::zip_equal(producer->getResults(), results))
    place->cache[result] = value;
  return place->cache[tensor];
}

/// One scalar op of a body, on vectors over the axes its operands vary along.
SmallVector<Vectorized>
TileEmitter::emitScalarOp(Operation &op, ArrayRef<Vectorized> operands) {
  bool hasRows = llvm::any_of(operands, [](auto &v) { return v.hasRows; });
  bool hasColumns =
      llvm::any_of(operands, [](auto &v) { return v.hasColumns; });
  auto values = llvm::map_to_vector(operands, [&](Vectorized operand) {
    return broadcast(operand, hasRows, hasColumns).value;
  });
  auto types = llvm::map_to_vector(op.getResultTypes(), [&](Type type) -> Type {
    return hasRows || hasColumns ? vectorType(hasRows, hasColumns, type) : type;
  });
  return llvm::map_to_vector(
      clone(builder, &op, types, values)->getResults(),
      [&](Value result) { return Vectorized{result, hasRows, hasColumns}; });
}

LogicalResult TileEmitter::emitBody(linalg::GenericOp op, Step &step,
                                    SmallVectorImpl<Vectorized> &results) {
  DenseMap<Value, Vectorized> env;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    // A destination's old elements matter only to reductions, and there the
    // terms are what is asked for.
    if (argument.use_empty() ||
        (op.isDpsInit(&operand) && program.isReduction(op)))
      continue;
    FailureOr<Vectorized> value = get(operand.get(), step);
    if (failed(value))
      return failure();
    env[argument] = *value;
  }

  auto lookup = [&](Value value) {
    auto it = env.find(value);
    // Not from this body: a scalar of the surrounding code.
    return it == env.end() ? Vectorized{value} : it->second;
  };
  SetVector<Operation *> combiners;
  for (auto [number, argument] : llvm::enumerate(op.getRegionOutputArgs()))
    if (program.isReduction(op))
      for (Operation *user : argument.getUsers())
        combiners.insert(user);

  for (Operation &bodyOp : op.getBody()->without_terminator()) {
    if (combiners.contains(&bodyOp))
      continue;
    if (bodyOp.hasTrait<OpTrait::ConstantLike>()) {
      env[bodyOp.getResult(0)] = {builder.clone(bodyOp)->getResult(0)};
      continue;
    }
    if (!OpTrait::hasElementwiseMappableTraits(&bodyOp))
      return bodyOp.emitError("cannot vectorize '")
             << bodyOp.getName() << "' in a tile: expected an elementwise op";
    SmallVector<Vectorized> operands =
        llvm::map_to_vector(bodyOp.getOperands(), lookup);
    for (auto [result, value] :
         llvm::zip_equal(bodyOp.getResults(), emitScalarOp(bodyOp, operands)))
      env[result] = value;
  }

  for (auto [number, yielded] :
       llvm::enumerate(op.getBody()->getTerminator()->getOperands())) {
    if (!program.isReduction(op)) {
      results.push_back(lookup(yielded));
      continue;
    }
    // The term: the combiner's operand that is not the accumulator.
    Operation *combiner = yielded.getDefiningOp();
    Value accumulator = op.getRegionOutputArgs()[number];
    results.push_back(lookup(combiner->getOperand(0) == accumulator
                                 ? combiner->getOperand(1)
                                 : combiner->getOperand(0)));
  }
  return success();
}
