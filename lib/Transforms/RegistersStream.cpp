//===- RegistersStream.cpp - Stores past the caches -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A result larger than the caches is best not read into them before it is
// overwritten. Such stores pay only for whole lines: anything less is read
// after all, and a store that is not known to be aligned is taken apart. So the
// sweep that stores exists twice, and which one runs is decided where a tile
// reaches it.
//
//===----------------------------------------------------------------------===//

#include "RegistersStream.h"

#include "TouchedBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::norm;

void Streamer::collectReads() {
  loop.walk([&](Operation *op) {
    if (llvm::isa<ViewLikeOpInterface, memref::DimOp,
                  memref::ExtractStridedMetadataOp, memref::PrefetchOp>(op))
      return;
    auto write = dyn_cast<vector::TransferWriteOp>(op);
    for (OpOperand &operand : op->getOpOperands()) {
      if (!llvm::isa<MemRefType>(operand.get().getType()) ||
          (write && &operand == &write.getBaseMutable()))
        continue;
      if (Value view = viewOutside(operand.get(), loop))
        readFrom.insert(view);
    }
  });
}

/// Whether the rows of a vector, not whole lines each, lie side by side where
/// they are written, which makes them one row.
static bool isRun(vector::TransferWriteOp write) {
  auto type = cast<MemRefType>(write.getBase().getType());
  VectorType vector = write.getVectorType();
  return vector.getRank() == 2 &&
         vector.getDimSize(1) * widthOf(vector) % kLineBytes != 0 &&
         type.getStridesAndOffset().first[type.getRank() - 2] ==
             vector.getDimSize(1);
}

/// Whether `write` makes whole lines, if it starts on one. What is read in the
/// same loop stays in the caches.
bool Streamer::storesLines(vector::TransferWriteOp write) {
  if (!movesColumns(write) || write.getMask())
    return false;
  Value view = viewOutside(write.getBase(), loop);
  if (!view || readFrom.contains(view))
    return false;
  VectorType vector = write.getVectorType();
  int64_t row = vector.getShape().back() * widthOf(vector);
  if (isRun(write))
    row *= vector.getDimSize(0);
  return row % kLineBytes == 0;
}

/// Whether no stride, as far as types tell, keeps `write` from starting on a
/// line at every place.
bool Streamer::mayBeAligned(vector::TransferWriteOp write) {
  auto type = cast<MemRefType>(write.getBase().getType());
  SmallVector<int64_t> strides = type.getStridesAndOffset().first;
  strides.pop_back();
  if (isRun(write))
    strides.pop_back();
  return llvm::none_of(strides, [&](int64_t stride) {
    return ShapedType::isStatic(stride) &&
           stride * widthOf(write.getVectorType()) % kLineBytes != 0;
  });
}

/// The innermost index of `write` in the first step of the sweep it is part of;
/// null if that index does not go up with the sweep, line by line.
Value norm::firstColumn(OpBuilder *builder, VectorTransferOpInterface access) {
  Value column = access.getIndices().back();
  auto sweep = dyn_cast<scf::ForOp>(getSweep(access));
  if (!sweep)
    return column;
  Value variable = sweep.getInductionVar();
  std::optional<int64_t> step = getConstantIntValue(sweep.getStep());
  if (!step || *step * widthOf(access.getVectorType()) % kLineBytes != 0)
    return {};
  for (Value index : access.getIndices().drop_back())
    if (!sweep.isDefinedOutsideOfLoop(index))
      return {};
  if (!sweep.isDefinedOutsideOfLoop(access.getBase()))
    return {};
  if (column == variable)
    return sweep.getLowerBound();
  auto sum = column.getDefiningOp<arith::AddIOp>();
  if (!sum)
    return {};
  Value offset = sum.getLhs() == variable ? sum.getRhs() : sum.getLhs();
  if ((sum.getLhs() != variable && sum.getRhs() != variable) ||
      !sweep.isDefinedOutsideOfLoop(offset))
    return {};
  if (!builder)
    return offset;
  return arith::AddIOp::create(*builder, access->getLoc(), offset,
                               sweep.getLowerBound());
}

/// A masked write as a narrower one without a mask, if that is constant and of
/// whole lines; null else.
vector::TransferWriteOp Streamer::narrow(vector::TransferWriteOp write) {
  VectorType type = write.getVectorType();
  auto mask = write.getMask().getDefiningOp<vector::ConstantMaskOp>();
  if (!mask || !movesColumns(write))
    return {};
  ArrayRef<int64_t> sizes = mask.getMaskDimSizes();
  if (sizes.drop_back() != type.getShape().drop_back() || sizes.back() == 0 ||
      sizes.back() * widthOf(type) % kLineBytes != 0)
    return {};
  rewriter.setInsertionPoint(write);
  SmallVector<int64_t> offsets(sizes.size(), 0), strides(sizes.size(), 1);
  Value part = vector::ExtractStridedSliceOp::create(
      rewriter, write.getLoc(), write.getVector(), offsets, sizes, strides);
  return rewriter.replaceOpWithNewOp<vector::TransferWriteOp>(
      write, part, write.getBase(), write.getIndices(),
      write.getPermutationMapAttr(), write.getInBoundsAttr());
}

SmallVector<StoringSweep> Streamer::findSweeps() {
  llvm::MapVector<Operation *, SmallVector<vector::TransferWriteOp>> writes;
  loop.walk([&](vector::TransferWriteOp write) {
    if (storesLines(write) && firstColumn(nullptr, write))
      writes[getSweep(write)].push_back(write);
  });
  SmallVector<StoringSweep> sweeps;
  for (auto &[op, candidates] : writes) {
    StoringSweep sweep{op, candidates, {}, {}};
    if (!planCut(sweep))
      llvm::erase_if(sweep.writes, [&](vector::TransferWriteOp write) {
        return !mayBeAligned(write);
      });
    if (!sweep.writes.empty())
      sweeps.push_back(std::move(sweep));
  }
  // What rows leave for a vector that they do not fill.
  DenseSet<Operation *> rests;
  for (StoringSweep &sweep : sweeps)
    rests.insert_range(sweep.rests);
  SmallVector<vector::TransferWriteOp> masked;
  loop.walk([&](vector::TransferWriteOp write) {
    if (write.getMask() && getSweep(write) == write && !rests.contains(write))
      masked.push_back(write);
  });
  for (vector::TransferWriteOp write : masked)
    if (vector::TransferWriteOp narrowed = narrow(write);
        narrowed && storesLines(narrowed) && mayBeAligned(narrowed))
      sweeps.push_back({narrowed, {narrowed}, {}, {}});
  return sweeps;
}

/// Sets `isLarge`; false if the loop is known to touch too little.
bool Streamer::decideSize() {
  ExceedsBytes exceeds = touchesMoreThan(rewriter, loop, bytes);
  isLarge = exceeds.value;
  return exceeds.known != false;
}

/// The address of the first element that `write` stores in its sweep.
Value Streamer::startAddress(vector::TransferWriteOp write) {
  Value base = write.getBase();
  auto [strides, offset] =
      cast<MemRefType>(base.getType()).getStridesAndOffset();
  auto metadata = memref::ExtractStridedMetadataOp::create(rewriter, loc, base);
  auto known = [&](int64_t number, Value value) {
    return ShapedType::isStatic(number) ? index(number) : value;
  };
  Value element = known(offset, metadata.getOffset());
  SmallVector<Value> indices(write.getIndices());
  indices.back() = firstColumn(&rewriter, write);
  for (auto [dim, at] : llvm::enumerate(indices))
    element = arith::AddIOp::create(
        rewriter, loc, element,
        arith::MulIOp::create(rewriter, loc, at,
                              known(strides[dim], metadata.getStrides()[dim])));
  return arith::AddIOp::create(
      rewriter, loc,
      memref::ExtractAlignedPointerAsIndexOp::create(rewriter, loc, base),
      arith::MulIOp::create(rewriter, loc, element,
                            index(widthOf(write.getVectorType()))));
}

/// The bytes from row to row of `write`, where types leave open whether they
/// are whole lines; null else.
Value Streamer::openPitch(vector::TransferWriteOp write) {
  auto type = cast<MemRefType>(write.getBase().getType());
  VectorType vector = write.getVectorType();
  int64_t row = type.getRank() - 2;
  if (vector.getRank() != 2 || vector.getDimSize(0) == 1 ||
      ShapedType::isStatic(type.getStridesAndOffset().first[row]))
    return {};
  auto metadata =
      memref::ExtractStridedMetadataOp::create(rewriter, loc, write.getBase());
  return arith::MulIOp::create(rewriter, loc, metadata.getStrides()[row],
                               index(widthOf(vector)));
}

/// Whether `bytes`, addresses and distances, are all whole lines, and the loop
/// is large.
Value Streamer::areWholeLines(ArrayRef<Value> bytes) {
  Value bits = index(0);
  for (Value more : bytes)
    if (more)
      bits = arith::OrIOp::create(rewriter, loc, bits, more);
  Value rest =
      arith::AndIOp::create(rewriter, loc, bits, index(kLineBytes - 1));
  Value areLines = arith::CmpIOp::create(
      rewriter, loc, arith::CmpIPredicate::eq, rest, index(0));
  if (!isLarge)
    return areLines;
  return arith::AndIOp::create(rewriter, loc, isLarge, areLines);
}

void Streamer::duplicate(StoringSweep &sweep) {
  rewriter.setInsertionPoint(sweep.op);
  loc = sweep.op->getLoc();
  SmallVector<Value> bytes;
  for (vector::TransferWriteOp write : sweep.writes) {
    bytes.push_back(startAddress(write));
    bytes.push_back(openPitch(write));
  }
  auto branch = scf::IfOp::create(rewriter, loc, sweep.op->getResultTypes(),
                                  areWholeLines(bytes),
                                  /*withElseRegion=*/true);
  rewriter.replaceAllUsesWith(sweep.op->getResults(), branch.getResults());
  IRMapping mapping;
  rewriter.setInsertionPointToStart(branch.thenBlock());
  Operation *streamed = rewriter.clone(*sweep.op, mapping);
  rewriter.moveOpBefore(sweep.op, branch.elseBlock(),
                        branch.elseBlock()->begin());
  if (branch.getNumResults() > 0) {
    scf::YieldOp::create(rewriter, loc, streamed->getResults());
    rewriter.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(rewriter, loc, sweep.op->getResults());
  }
  for (vector::TransferWriteOp write : sweep.writes)
    storeLines(
        cast<vector::TransferWriteOp>(mapping.lookup(write.getOperation())));
  if (isLarge)
    dropFetches(sweep.op);
}

/// What is small is in the caches, before a sweep that runs where the loop is
/// not large.
void Streamer::dropFetches(Operation *sweep) {
  sweep->walk([&](memref::PrefetchOp fetch) { rewriter.eraseOp(fetch); });
}

Value norm::hideBits(OpBuilder &builder, Value vector, CpuIsa isa) {
  auto type = cast<VectorType>(vector.getType());
  Location loc = vector.getLoc();
  VectorType bits = type.clone(builder.getI16Type());
  Value source = builder.createOrFold<vector::BitCastOp>(loc, bits, vector);
  auto dialect =
      LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT);
  Value hidden =
      LLVM::InlineAsmOp::create(
          builder, loc, TypeRange(bits), ValueRange(source), "",
          isa == CpuIsa::Avx512 ? "=v,0" : "=x,0",
          /*has_side_effects=*/false,
          /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
          dialect, ArrayAttr())
          .getResult(0);
  return builder.createOrFold<vector::BitCastOp>(loc, type, hidden);
}

/// LLVM's x86 backend has no store past the caches for vectors of f16 and bf16
/// and, without a word, makes plain ones; it also looks through casts to i16.
bool Streamer::isHidden(VectorType type) {
  return isa != CpuIsa::Any && llvm::isa<FloatType>(type.getElementType()) &&
         type.getElementTypeBitWidth() == 16;
}

/// Bytes of what one op stores past the caches: a line, which LLVM takes apart
/// if it must; of what is hidden from it, a register of any such CPU.
int64_t Streamer::pieceBytes(VectorType type) {
  return isHidden(type) && isa == CpuIsa::X86 ? 16 : kLineBytes;
}

/// Replaces a write by stores of whole lines.
void Streamer::storeLines(vector::TransferWriteOp write) {
  rewriter.setInsertionPoint(write);
  loc = write.getLoc();
  Value vector = write.getVector(), base = write.getBase();
  SmallVector<Value> indices(write.getIndices());
  if (isRun(write))
    std::tie(vector, base, indices) = joinRows(write);
  auto type = cast<VectorType>(vector.getType());
  int64_t columns = type.getShape().back(), bytes = pieceBytes(type),
          length = bytes / widthOf(type);
  int64_t rows = type.getRank() == 2 ? type.getDimSize(0) : 1;
  for (int64_t row = 0; row < rows; ++row) {
    Value elements =
        type.getRank() == 2
            ? vector::ExtractOp::create(rewriter, loc, vector, row).getResult()
            : vector;
    // LLVM takes shuffles of bf16 apart where it computes with none.
    if (isHidden(type))
      elements = vector::BitCastOp::create(
          rewriter, loc, VectorType::get({columns}, rewriter.getI16Type()),
          elements);
    for (int64_t column = 0; column < columns; column += length) {
      Value piece = elements;
      if (columns != length)
        piece = vector::ExtractStridedSliceOp::create(
            rewriter, loc, elements, ArrayRef<int64_t>{column},
            ArrayRef<int64_t>{length}, ArrayRef<int64_t>{1});
      if (isHidden(type))
        piece = vector::BitCastOp::create(
            rewriter, loc, VectorType::get({length}, type.getElementType()),
            hideBits(rewriter, piece, isa));
      SmallVector<Value> at(indices);
      if (type.getRank() == 2)
        at[at.size() - 2] = plus(at[at.size() - 2], row);
      at.back() = plus(at.back(), column);
      vector::StoreOp::create(rewriter, loc, piece, base, at,
                              /*nontemporal=*/true, llvm::Align(bytes));
    }
  }
  rewriter.eraseOp(write);
}

/// The rows of `write` as one, and the place in a view of one dimension where
/// they lie.
std::tuple<Value, Value, SmallVector<Value>>
Streamer::joinRows(vector::TransferWriteOp write) {
  VectorType type = write.getVectorType();
  Value joined = vector::ShapeCastOp::create(
      rewriter, loc,
      VectorType::get({type.getNumElements()}, type.getElementType()),
      write.getVector());
  auto viewType = cast<MemRefType>(write.getBase().getType());
  auto metadata =
      memref::ExtractStridedMetadataOp::create(rewriter, loc, write.getBase());
  Value start = metadata.getOffset();
  for (auto [at, stride] :
       llvm::zip_equal(write.getIndices(), metadata.getStrides()))
    start = arith::AddIOp::create(
        rewriter, loc, start, arith::MulIOp::create(rewriter, loc, at, stride));
  auto flatType = MemRefType::get(
      {type.getNumElements()}, type.getElementType(),
      StridedLayoutAttr::get(rewriter.getContext(), ShapedType::kDynamic, {1}),
      viewType.getMemorySpace());
  Value flat = memref::ReinterpretCastOp::create(
      rewriter, loc, flatType, metadata.getBaseBuffer(), OpFoldResult(start),
      ArrayRef<OpFoldResult>{rewriter.getIndexAttr(type.getNumElements())},
      ArrayRef<OpFoldResult>{rewriter.getIndexAttr(1)});
  return {joined, flat, {index(0)}};
}

bool Streamer::run() {
  if (bytes == 0)
    return false;
  collectReads();
  SmallVector<StoringSweep> sweeps = findSweeps();
  if (sweeps.empty() || !decideSize())
    return false;
  for (StoringSweep &sweep : sweeps)
    if (sweep.end)
      cut(sweep);
    else
      duplicate(sweep);
  return true;
}

bool norm::streamStores(RewriterBase &rewriter, scf::ForallOp loop,
                        int64_t bytes, CpuIsa isa) {
  return Streamer(rewriter, loop, bytes, isa).run();
}
