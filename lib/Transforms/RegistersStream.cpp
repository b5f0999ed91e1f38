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

#include "MapToRegisters.h"
#include "TouchedBytes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::norm;

/// The view outside `loop` that `view` shows a part of; null if its memory is
/// the loop's own.
static Value viewOutside(Value view, Operation *loop) {
  while (Operation *op = view.getDefiningOp()) {
    if (isa<memref::CastOp>(op) || loop->isProperAncestor(op)) {
      if (auto part = dyn_cast<ViewLikeOpInterface>(op)) {
        view = part.getViewSource();
        continue;
      }
      if (auto metadata = dyn_cast<memref::ExtractStridedMetadataOp>(op)) {
        view = metadata.getSource();
        continue;
      }
      if (loop->isProperAncestor(op))
        return {};
    }
    break;
  }
  return view;
}

namespace {
/// A sweep that stores, and what it stores by whole lines.
struct StoringSweep {
  Operation *op;
  SmallVector<vector::TransferWriteOp> writes;
};

class Streamer {
public:
  Streamer(RewriterBase &rewriter, scf::ForallOp loop, int64_t bytes,
           CpuIsa isa)
      : rewriter(rewriter), loc(loop.getLoc()), loop(loop), bytes(bytes),
        isa(isa) {}

  bool run() {
    if (bytes == 0)
      return false;
    collectBuffers();
    SmallVector<StoringSweep> sweeps = findSweeps();
    if (sweeps.empty() || !decideSize())
      return false;
    for (StoringSweep &sweep : sweeps)
      duplicate(sweep);
    return true;
  }

private:
  void collectBuffers();
  SmallVector<StoringSweep> findSweeps();
  bool canStream(vector::TransferWriteOp write);
  bool decideSize();
  void duplicate(StoringSweep &sweep);
  Value areLinesAligned(StoringSweep &sweep);
  Value misalignment(vector::TransferWriteOp write);
  void storeLines(vector::TransferWriteOp write);
  std::tuple<Value, Value, SmallVector<Value>>
  joinRows(vector::TransferWriteOp write);
  Value opaque(Value piece);

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  }
  Value plus(Value index, int64_t offset) {
    if (offset == 0)
      return index;
    return arith::AddIOp::create(rewriter, loc, index, this->index(offset));
  }

  RewriterBase &rewriter;
  Location loc;
  scf::ForallOp loop;
  int64_t bytes;
  CpuIsa isa;
  /// What the loop accesses, as views outside it.
  DenseSet<Value> readFrom;
  /// Whether the loop touches enough bytes; null if that is known.
  Value isLarge;
};
} // namespace

void Streamer::collectBuffers() {
  loop.walk([&](Operation *op) {
    if (llvm::isa<ViewLikeOpInterface>(op))
      return;
    auto access = dyn_cast<vector::TransferWriteOp>(op);
    for (OpOperand &operand : op->getOpOperands()) {
      if (!llvm::isa<MemRefType>(operand.get().getType()) ||
          llvm::isa<memref::DimOp, memref::ExtractStridedMetadataOp,
                    memref::PrefetchOp>(op))
        continue;
      Value view = viewOutside(operand.get(), loop);
      if (!view)
        continue;
      bool isWritten = access && &operand == &access.getBaseMutable();
      if (!isWritten)
        readFrom.insert(view);
    }
  });
}

static int64_t widthOf(VectorType type) {
  return type.getElementTypeBitWidth() / 8;
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

/// A write of whole lines as far as types tell. What is read in the same loop
/// stays in the caches.
bool Streamer::canStream(vector::TransferWriteOp write) {
  if (!movesColumns(write) || write.getMask())
    return false;
  Value view = viewOutside(write.getBase(), loop);
  if (!view || readFrom.contains(view))
    return false;
  VectorType vector = write.getVectorType();
  // x86 has such a store for f32 and f64; see opaque() for others.
  if (isa == CpuIsa::X86 && vector.getElementTypeBitWidth() == 16)
    return false;
  int64_t row = vector.getShape().back() * widthOf(vector);
  if (isRun(write))
    row *= vector.getDimSize(0);
  if (row % kLineBytes != 0)
    return false;
  auto type = cast<MemRefType>(write.getBase().getType());
  SmallVector<int64_t> strides = type.getStridesAndOffset().first;
  if (isRun(write))
    strides.pop_back();
  for (int64_t stride : ArrayRef(strides).drop_back())
    if (ShapedType::isStatic(stride) &&
        stride * widthOf(vector) % kLineBytes != 0)
      return false;
  return true;
}

/// The innermost index of `write` in the first step of the sweep it is part of;
/// null if that index does not go up with the sweep, line by line.
static Value firstColumn(OpBuilder *builder, vector::TransferWriteOp write) {
  Value column = write.getIndices().back();
  auto sweep = dyn_cast<scf::ForOp>(getSweep(write));
  if (!sweep)
    return column;
  Value variable = sweep.getInductionVar();
  std::optional<int64_t> step = getConstantIntValue(sweep.getStep());
  if (!step || *step * widthOf(write.getVectorType()) % kLineBytes != 0)
    return {};
  for (Value index : write.getIndices().drop_back())
    if (!sweep.isDefinedOutsideOfLoop(index))
      return {};
  if (!sweep.isDefinedOutsideOfLoop(write.getBase()))
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
  return arith::AddIOp::create(*builder, write.getLoc(), offset,
                               sweep.getLowerBound());
}

SmallVector<StoringSweep> Streamer::findSweeps() {
  llvm::MapVector<Operation *, SmallVector<vector::TransferWriteOp>> writes;
  loop.walk([&](vector::TransferWriteOp write) {
    if (canStream(write) && firstColumn(nullptr, write))
      writes[getSweep(write)].push_back(write);
  });
  return llvm::map_to_vector(writes, [](auto &entry) {
    return StoringSweep{entry.first, entry.second};
  });
}

/// Sets `isLarge`; false if the loop is known to touch too little.
bool Streamer::decideSize() {
  ExceedsBytes exceeds = touchesMoreThan(rewriter, loop, bytes);
  isLarge = exceeds.value;
  return exceeds.known != false;
}

/// What is left of the address of the first line that `write` stores, and of
/// the distances of its rows, beyond whole lines; the bits of all together.
Value Streamer::misalignment(vector::TransferWriteOp write) {
  Value base = write.getBase();
  auto type = cast<MemRefType>(base.getType());
  auto [strides, offset] = type.getStridesAndOffset();
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
  Value width = index(widthOf(write.getVectorType()));
  Value bits = arith::AddIOp::create(
      rewriter, loc,
      memref::ExtractAlignedPointerAsIndexOp::create(rewriter, loc, base),
      arith::MulIOp::create(rewriter, loc, element, width));
  VectorType vector = write.getVectorType();
  int64_t row = type.getRank() - 2;
  if (vector.getRank() == 2 && vector.getDimSize(0) > 1 &&
      ShapedType::isDynamic(strides[row]))
    bits = arith::OrIOp::create(
        rewriter, loc, bits,
        arith::MulIOp::create(rewriter, loc, metadata.getStrides()[row],
                              width));
  return bits;
}

Value Streamer::areLinesAligned(StoringSweep &sweep) {
  Value bits;
  for (vector::TransferWriteOp write : sweep.writes) {
    Value more = misalignment(write);
    bits = bits ? arith::OrIOp::create(rewriter, loc, bits, more).getResult()
                : more;
  }
  Value rest =
      arith::AndIOp::create(rewriter, loc, bits, index(kLineBytes - 1));
  return arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, rest,
                               index(0));
}

void Streamer::duplicate(StoringSweep &sweep) {
  rewriter.setInsertionPoint(sweep.op);
  loc = sweep.op->getLoc();
  Value streams = areLinesAligned(sweep);
  if (isLarge)
    streams = arith::AndIOp::create(rewriter, loc, isLarge, streams);
  auto branch =
      scf::IfOp::create(rewriter, loc, sweep.op->getResultTypes(), streams,
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
}

/// LLVM's x86 backend has no store past the caches for vectors of f16 and bf16
/// and, without a word, makes plain ones; it also looks through casts to i16.
/// What comes out of an empty piece of assembly it takes as it is.
Value Streamer::opaque(Value piece) {
  auto type = cast<VectorType>(piece.getType());
  if (isa != CpuIsa::Avx512 || !llvm::isa<FloatType>(type.getElementType()) ||
      type.getElementTypeBitWidth() != 16)
    return piece;
  VectorType bits = type.clone(rewriter.getI16Type());
  Value source = vector::BitCastOp::create(rewriter, loc, bits, piece);
  auto dialect = LLVM::AsmDialectAttr::get(rewriter.getContext(),
                                           LLVM::AsmDialect::AD_ATT);
  Value hidden =
      LLVM::InlineAsmOp::create(
          rewriter, loc, TypeRange(bits), ValueRange(source), "", "=v,0",
          /*has_side_effects=*/false,
          /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
          dialect, ArrayAttr())
          .getResult(0);
  return vector::BitCastOp::create(rewriter, loc, type, hidden);
}

/// Replaces a write by stores of a line each.
void Streamer::storeLines(vector::TransferWriteOp write) {
  rewriter.setInsertionPoint(write);
  loc = write.getLoc();
  Value vector = write.getVector(), base = write.getBase();
  SmallVector<Value> indices(write.getIndices());
  if (isRun(write))
    std::tie(vector, base, indices) = joinRows(write);
  auto type = cast<VectorType>(vector.getType());
  int64_t columns = type.getShape().back(), line = kLineBytes / widthOf(type);
  int64_t rows = type.getRank() == 2 ? type.getDimSize(0) : 1;
  for (int64_t row = 0; row < rows; ++row) {
    Value elements =
        type.getRank() == 2
            ? vector::ExtractOp::create(rewriter, loc, vector, row).getResult()
            : vector;
    for (int64_t column = 0; column < columns; column += line) {
      Value piece = elements;
      if (columns != line)
        piece = vector::ExtractStridedSliceOp::create(
            rewriter, loc, elements, ArrayRef<int64_t>{column},
            ArrayRef<int64_t>{line}, ArrayRef<int64_t>{1});
      SmallVector<Value> at(indices);
      if (type.getRank() == 2)
        at[at.size() - 2] = plus(at[at.size() - 2], row);
      at.back() = plus(at.back(), column);
      vector::StoreOp::create(rewriter, loc, opaque(piece), base, at,
                              /*nontemporal=*/true, llvm::Align(kLineBytes));
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

bool norm::streamStores(RewriterBase &rewriter, scf::ForallOp loop,
                        int64_t bytes, CpuIsa isa) {
  return Streamer(rewriter, loop, bytes, isa).run();
}
