//===- ThreadsValues.cpp - Values of a row in a thread -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads, writes and elementwise ops of norm-map-to-threads (MapToThreads.h).
//
//===----------------------------------------------------------------------===//

#include "MapToThreads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// Types and lookups
//===----------------------------------------------------------------------===//

/// A vector of columns becomes one of a piece's, any other its one element.
Type ThreadMapper::pieceType(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return type;
  if (layout.hasColumns(type))
    return VectorType::get({strategy.getWidth()}, vector.getElementType());
  return vector.getElementType();
}

Value ThreadMapper::getUniform(Value value) {
  if (Value known = uniforms.lookupOrNull(value))
    return known;
  // From outside the loop. Constants are made in the kernel.
  if (auto constant = value.getDefiningOp<arith::ConstantOp>()) {
    TypedAttr attr = constant.getValue();
    if (auto dense = dyn_cast<DenseElementsAttr>(attr))
      attr = *dense.value_begin<TypedAttr>();
    return arith::ConstantOp::create(builder, loc, attr);
  }
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    return uniforms.lookupOrDefault(vector::ExtractOp::create(
        builder, loc, value, SmallVector<int64_t>(vector.getRank(), 0)));
  return value;
}

ThreadMapper::Pieces ThreadMapper::getPieces(Value value) {
  auto it = pieces.find(value);
  if (it != pieces.end())
    return it->second;
  int64_t count = strategy.getAccesses();
  // Made where they are used, so that no register holds them before.
  if (auto read = value.getDefiningOp<vector::TransferReadOp>())
    return pieces[value] = readShifted(read);
  if (auto constant = value.getDefiningOp<arith::ConstantOp>()) {
    auto dense = cast<DenseElementsAttr>(constant.getValue());
    auto type = cast<VectorType>(pieceType(value.getType()));
    return Pieces(count, arith::ConstantOp::create(builder, loc,
                                                   dense.resizeSplat(type)));
  }
  // A mask as a value.
  auto type = cast<VectorType>(pieceType(value.getType()));
  Pieces masks;
  for (int64_t piece = 0; piece < count; ++piece) {
    Value guard = guardOf(piece, value);
    if (guard.getType() != type)
      guard = vector::BroadcastOp::create(builder, loc, type, guard);
    masks.push_back(guard);
  }
  return masks;
}

//===----------------------------------------------------------------------===//
// Guards
//===----------------------------------------------------------------------===//

static bool isMask(Value value) {
  return isa_and_nonnull<vector::CreateMaskOp, vector::ConstantMaskOp>(
      value.getDefiningOp());
}

Value ThreadMapper::boundOf(Value mask) {
  if (auto create = mask.getDefiningOp<vector::CreateMaskOp>())
    return getUniform(create.getOperands().back());
  return index(
      mask.getDefiningOp<vector::ConstantMaskOp>().getMaskDimSizes().back());
}

Value ThreadMapper::guardOf(int64_t piece, Value mask) {
  int64_t width = strategy.getWidth();
  int64_t end = (piece + 1) * strategy.getThreads() * width;
  bool isInside = end <= strategy.getColumns();
  if (!mask && isInside)
    return {};
  Value bound = mask ? boundOf(mask) : index(strategy.getColumns());
  if (isWhole || width == 1)
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                 columns[piece], bound);
  auto type = VectorType::get({width}, builder.getIndexType());
  SmallVector<int64_t> numbers = llvm::to_vector(llvm::seq<int64_t>(0, width));
  Value offsets = arith::ConstantOp::create(
      builder, loc, DenseIntElementsAttr::get(type, numbers));
  Value first = vector::BroadcastOp::create(builder, loc, type, columns[piece]);
  Value last = vector::BroadcastOp::create(builder, loc, type, bound);
  return arith::CmpIOp::create(
      builder, loc, arith::CmpIPredicate::ult,
      arith::AddIOp::create(builder, loc, first, offsets), last);
}

Value ThreadMapper::guardOf(Value guard, int64_t element) {
  if (!guard || !isa<VectorType>(guard.getType()))
    return guard;
  return vector::ExtractOp::create(builder, loc, guard, element);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

SmallVector<Value> ThreadMapper::indicesAt(VectorTransferOpInterface op,
                                           Value column) {
  SmallVector<Value> indices;
  for (Value position : op.getIndices())
    indices.push_back(getUniform(position));
  if (!column)
    return indices;
  auto dim = cast<AffineDimExpr>(op.getPermutationMap().getResults().back());
  Value &at = indices[dim.getPosition()];
  at = arith::AddIOp::create(builder, loc, at, column);
  return indices;
}

int64_t norm::alignmentOf(VectorType type) {
  return std::min(kAccessBytes,
                  type.getNumElements() * (type.getElementTypeBitWidth() / 8));
}

/// What guards elements that a transfer moves: its own mask, or the row's end.
/// Elements that are not there are never read or written.
Value ThreadMapper::readPiece(vector::TransferReadOp op, int64_t piece) {
  Value base = getUniform(op.getBase());
  auto type = cast<VectorType>(pieceType(op.getType()));
  Value guard = guardOf(piece, op.getMask());
  Value padding = getUniform(op.getPadding());
  if (isWhole) {
    SmallVector<Value> at = indicesAt(op, columns[piece]);
    auto dim = cast<AffineDimExpr>(op.getPermutationMap().getResults().back());
    // An absent piece reads the row's first instead: no branch, no fault.
    if (guard)
      at[dim.getPosition()] = arith::SelectOp::create(
          builder, loc, guard, at[dim.getPosition()], index(0));
    auto load = vector::LoadOp::create(builder, loc, type, base, at);
    load.setAlignment(alignmentOf(type));
    if (!guard || !op.getMask())
      return load;
    return arith::SelectOp::create(
        builder, loc, guard, load,
        vector::BroadcastOp::create(builder, loc, type, padding));
  }
  Pieces elements;
  for (int64_t element = 0; element < strategy.getWidth(); ++element) {
    Value condition = guardOf(guard, element);
    auto load = [&]() -> Value {
      Value column =
          arith::AddIOp::create(builder, loc, columns[piece], index(element));
      // A row without a mask has elements; the first stands for absent ones.
      if (condition && !op.getMask())
        column =
            arith::SelectOp::create(builder, loc, condition, column, index(0));
      return memref::LoadOp::create(builder, loc, base, indicesAt(op, column));
    };
    if (!condition || !op.getMask()) {
      elements.push_back(load());
      continue;
    }
    auto ifOp = scf::IfOp::create(builder, loc, padding.getType(), condition,
                                  /*withElseRegion=*/true);
    OpBuilder::InsertionGuard insertion(builder);
    builder.setInsertionPointToStart(ifOp.thenBlock());
    scf::YieldOp::create(builder, loc, load());
    builder.setInsertionPointToStart(ifOp.elseBlock());
    scf::YieldOp::create(builder, loc, padding);
    elements.push_back(ifOp.getResult(0));
  }
  return vector::FromElementsOp::create(builder, loc, type, elements);
}

LogicalResult ThreadMapper::emitRead(vector::TransferReadOp op) {
  if (layout.hasColumns(op.getType())) {
    bool isStaged = isStagedRow(op.getBase());
    if (isShifted && !isStaged) {
      // Lanes meet there, so that the order is kept: parameters are read when
      // they are asked for.
      bool isNear = llvm::all_of(op->getUsers(), [&](Operation *user) {
        return user->getBlock() == op->getBlock();
      });
      if (!isNear || layout.variesAlongRows(op.getResult()))
        pieces[op.getResult()] = readShifted(op);
      return success();
    }
    Pieces read;
    for (int64_t piece = 0; piece < strategy.getAccesses(); ++piece)
      read.push_back(isStaged ? readStaged(op, piece) : readPiece(op, piece));
    pieces[op.getResult()] = read;
    return success();
  }
  uniforms.map(op.getResult(),
               memref::LoadOp::create(builder, loc, getUniform(op.getBase()),
                                      indicesAt(op, /*column=*/{})));
  return success();
}

void ThreadMapper::writePiece(Value value, vector::TransferWriteOp op,
                              int64_t piece) {
  Value base = getUniform(op.getBase());
  Value guard = guardOf(piece, op.getMask());
  if (isWhole) {
    emitIf(both(isRow, guard), [&] {
      auto store = vector::StoreOp::create(builder, loc, value, base,
                                           indicesAt(op, columns[piece]));
      store.setAlignment(alignmentOf(cast<VectorType>(value.getType())));
    });
    return;
  }
  for (int64_t element = 0; element < strategy.getWidth(); ++element)
    emitIf(both(isRow, guardOf(guard, element)), [&] {
      Value column =
          arith::AddIOp::create(builder, loc, columns[piece], index(element));
      memref::StoreOp::create(
          builder, loc, vector::ExtractOp::create(builder, loc, value, element),
          base, indicesAt(op, column));
    });
}

/// A row's number is written by its first thread.
static Value isFirst(OpBuilder &builder, Location loc, Value lane) {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, lane,
                               zero);
}

LogicalResult ThreadMapper::emitWrite(vector::TransferWriteOp op) {
  if (layout.hasColumns(op.getVector())) {
    bool isStaged = isStagedRow(op.getBase());
    if (isShifted && !isStaged) {
      writeShifted(op);
      return success();
    }
    for (auto [piece, value] : llvm::enumerate(getPieces(op.getVector())))
      if (isStaged)
        writeStaged(value, op, piece);
      else
        writePiece(value, op, piece);
    return success();
  }
  Value value = getUniform(op.getVector());
  Value base = getUniform(op.getBase());
  emitIf(both(isRow, isFirst(builder, loc, lane)), [&] {
    memref::StoreOp::create(builder, loc, value, base,
                            indicesAt(op, /*column=*/{}));
  });
  return success();
}

void ThreadMapper::emitStore(memref::StoreOp op) {
  Value value = getUniform(op.getValue()), base = getUniform(op.getMemRef());
  auto indices = llvm::map_to_vector(
      op.getIndices(), [&](Value position) { return getUniform(position); });
  emitIf(both(isRow, isFirst(builder, loc, lane)),
         [&] { memref::StoreOp::create(builder, loc, value, base, indices); });
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// A sum of one step: nothing is added to 0, which is what LLVM cannot tell of
/// the sign of a zero.
bool ThreadMapper::emitStartOfSum(Operation *op) {
  auto add = dyn_cast<arith::AddFOp>(op);
  auto fma = dyn_cast<math::FmaOp>(op);
  if (!(add && matchPattern(add.getRhs(), m_AnyZeroFloat())) &&
      !(fma && matchPattern(fma.getC(), m_AnyZeroFloat())))
    return false;
  Pieces terms = getPieces(op->getOperand(0));
  if (fma)
    for (auto [term, factor] : llvm::zip_equal(terms, getPieces(fma.getB())))
      term = arith::MulFOp::create(builder, loc, term, factor);
  pieces[op->getResult(0)] = terms;
  return true;
}

LogicalResult ThreadMapper::emitColumns(Operation *op) {
  if (isa<arith::ConstantOp>(op))
    return success();
  int64_t count = strategy.getAccesses();
  if (isa<vector::BroadcastOp, vector::ShapeCastOp>(op)) {
    Value source = op->getOperand(0), result = op->getResult(0);
    if (!layout.hasColumns(result))
      return op->emitOpError("cannot be spread over threads: expected all "
                             "columns to be asked for");
    if (layout.hasColumns(source))
      pieces[result] = getPieces(source);
    else
      pieces[result] =
          Pieces(count, vector::BroadcastOp::create(builder, loc,
                                                    pieceType(result.getType()),
                                                    getUniform(source)));
    return success();
  }
  if (emitStartOfSum(op))
    return success();
  SmallVector<Type> types = llvm::map_to_vector(
      op->getResultTypes(), [&](Type type) { return pieceType(type); });
  auto select = dyn_cast<arith::SelectOp>(op);
  bool isMasked = select && isMask(select.getCondition());
  SmallVector<Pieces> operands;
  for (Value operand : op->getOperands())
    if (layout.hasColumns(operand) &&
        !(isMasked && operand == select.getCondition()))
      operands.push_back(getPieces(operand));
    else if (layout.hasColumns(operand)) {
      // Whole pieces are selected by one i1.
      Pieces guards;
      for (int64_t piece = 0; piece < count; ++piece)
        guards.push_back(guardOf(piece, operand));
      operands.push_back(guards);
    } else {
      operands.push_back(Pieces(count, getUniform(operand)));
    }
  SmallVector<Pieces> results(op->getNumResults());
  for (int64_t piece = 0; piece < count; ++piece) {
    auto args = llvm::map_to_vector(
        operands, [&](const Pieces &list) { return list[piece]; });
    Operation *copy = clone(builder, op, types, args);
    for (auto [list, result] : llvm::zip_equal(results, copy->getResults()))
      list.push_back(result);
  }
  for (auto [result, list] : llvm::zip_equal(op->getResults(), results))
    pieces[result] = list;
  return success();
}

/// An op without columns: in every thread, with scalars for vectors of one
/// element.
LogicalResult ThreadMapper::emitUniform(Operation *op) {
  auto isVector = llvm::IsaPred<VectorType>;
  if (llvm::none_of(op->getOperandTypes(), isVector) &&
      llvm::none_of(op->getResultTypes(), isVector)) {
    SmallVector<Value> operands = llvm::map_to_vector(
        op->getOperands(), [&](Value value) { return getUniform(value); });
    Operation *copy = builder.clone(*op);
    copy->setOperands(operands);
    uniforms.map(op->getResults(), copy->getResults());
    return success();
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto dense = cast<DenseElementsAttr>(constant.getValue());
    uniforms.map(op->getResult(0),
                 arith::ConstantOp::create(builder, loc,
                                           *dense.value_begin<TypedAttr>()));
    return success();
  }
  if (isa<vector::BroadcastOp, vector::ShapeCastOp, vector::ExtractOp>(op)) {
    uniforms.map(op->getResult(0), getUniform(op->getOperand(0)));
    return success();
  }
  if (!OpTrait::hasElementwiseMappableTraits(op))
    return op->emitOpError("cannot be spread over threads: expected an "
                           "elementwise op");
  SmallVector<Value> operands = llvm::map_to_vector(
      op->getOperands(), [&](Value value) { return getUniform(value); });
  SmallVector<Type> types = llvm::map_to_vector(
      op->getResultTypes(), [&](Type type) { return pieceType(type); });
  uniforms.map(op->getResults(),
               clone(builder, op, types, operands)->getResults());
  return success();
}
