//===- ThreadsShift.cpp - Rows that start anywhere -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Accesses at whole addresses for rows that do not start at one. Memory is cut
// into frames, the accesses at multiples of their size; a row starts `shift`
// elements into the first of them:
//
//   frames   |     0     |     1     |     2     | ...
//   pieces        |     0     |     1     | ...
//
// A thread has the same pieces as ever, so that sums are the same. It reads the
// frames of the same numbers, takes the next one from the next lane, and moves
// the elements of both into its piece. To write it does the reverse. The last
// lane of a warp reads the next frame itself; the first one gets what it writes
// in front of its own elements by shared memory. Frames that reach beyond the
// row are moved element by element.
//
//===----------------------------------------------------------------------===//

#include "MapToThreads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::norm;

static constexpr int64_t kWordBytes = 4;

bool norm::canShift(scf::ForallOp loop, const RowLayout &layout,
                    GpuStrategyAttr strategy) {
  bool can = strategy.getWidth() > 1;
  loop.getBody()->walk([&](Operation *op) {
    auto transfer = dyn_cast<VectorTransferOpInterface>(op);
    if (!transfer || !layout.hasColumns(transfer.getVectorType()) ||
        isStagedRow(transfer.getBase()))
      return;
    auto type = cast<MemRefType>(transfer.getBase().getType());
    auto dim =
        cast<AffineDimExpr>(transfer.getPermutationMap().getResults().back());
    can &=
        type.isLastDimUnitStride() && dim.getPosition() == type.getRank() - 1 &&
        strategy.getWidth() * (type.getElementTypeBitWidth() / 8) >= kWordBytes;
  });
  return can;
}

namespace {
/// 32-bit parts of a frame.
using Words = SmallVector<Value>;

/// What a thread knows of its place.
struct Placement {
  gpu::LaunchOp launch;
  GpuStrategyAttr strategy;
  Value lane, rowInBlock, isRow;
  bool isInLoop;
};

/// A chunk of a row in a buffer.
class ShiftedChunk {
public:
  /// `start`: indices of the first column, `columns`: how many are known to be
  /// there.
  ShiftedChunk(OpBuilder &builder, Location loc, const Placement &place,
               Value base, ArrayRef<Value> start, VectorType piece,
               int64_t columns);

  SmallVector<Value> read();
  /// Writes the first `bound` columns.
  void write(ValueRange values, Value bound);

private:
  // Places.
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  void findShift();
  void findLanes();
  /// The first column of the thread's frame number `frame`, counted from its
  /// first piece's in steps of all threads.
  Value firstColumn(int64_t piece, int64_t frame);
  /// Whether frames of all threads lie in known columns.
  bool isInside(int64_t piece, int64_t frame) const;
  Value isBelow(Value column, Value bound) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                 column, bound);
  }
  Value areBelow(Value column, Value bound);
  SmallVector<Value> indicesAt(Value column);

  // Words.
  Words toWords(Value vector);
  Value fromWords(ArrayRef<Value> words, VectorType type);
  Words select(Value condition, ArrayRef<Value> a, ArrayRef<Value> b);
  Words shuffle(ArrayRef<Value> words, Value source);
  Words pin(ArrayRef<Value> words);
  Words realign(ArrayRef<Value> low, ArrayRef<Value> high, Value bytes);

  // Frames.
  Value loadFrame(Value first);
  Value loadFrame(Value first, bool isKnown);
  Words loadNext(int64_t piece);
  Words findNext(int64_t piece);
  void storeFrame(Value frame, Value first, Value bound, bool isKnown);
  void storeElements(Value frame, Value first, Value bound);
  Words findPrevious(int64_t piece);
  void exchangeEnds();
  Value endOf(int64_t piece);
  SmallVector<Value> endAt(Value number, int64_t word);

  OpBuilder &builder;
  Location loc;
  const Placement &place;
  GpuStrategyAttr strategy;
  Value base;
  SmallVector<Value> start;
  VectorType piece, frame;
  int64_t columns, pieces, elementBytes;
  /// Elements and words of a frame, frames of a piece.
  int64_t elements, words, frames;
  /// Elements that the chunk's start lies behind a frame's.
  Value shift, shiftBytes, isShifted;
  /// The row's extent, and where in it the thread's first frame starts.
  Value extent, own;
  Value isFirst, isLast, previousLane, nextLane, laneInWarp;
  /// By piece and frame.
  SmallVector<SmallVector<Words>> parts;
  /// What warps hand on.
  Value ends;
};
} // namespace

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

ShiftedChunk::ShiftedChunk(OpBuilder &builder, Location loc,
                           const Placement &place, Value base,
                           ArrayRef<Value> start, VectorType piece,
                           int64_t columns)
    : builder(builder), loc(loc), place(place), strategy(place.strategy),
      base(base), start(start), piece(piece), columns(columns),
      pieces(strategy.getAccesses()),
      elementBytes(piece.getElementTypeBitWidth() / 8) {
  int64_t bytes = std::min(kAccessBytes, piece.getNumElements() * elementBytes);
  elements = bytes / elementBytes;
  words = bytes / kWordBytes;
  frames = piece.getNumElements() / elements;
  frame = VectorType::get({elements}, piece.getElementType());
  findShift();
  findLanes();
  extent = builder.createOrFold<memref::DimOp>(loc, base, start.size() - 1);
}

void ShiftedChunk::findShift() {
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, base);
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, base);
  Value element =
      arith::DivUIOp::create(builder, loc, address, index(elementBytes));
  auto add = [&](Value value) {
    element = arith::AddIOp::create(builder, loc, element, value);
  };
  add(metadata.getOffset());
  for (auto [position, stride] : llvm::zip_equal(start, metadata.getStrides()))
    add(arith::MulIOp::create(builder, loc, position, stride));
  shift = arith::AndIOp::create(builder, loc, element, index(elements - 1));
  Value zero = index(0);
  isShifted = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                    shift, zero);
  shiftBytes = arith::IndexCastOp::create(
      builder, loc, builder.getI32Type(),
      arith::MulIOp::create(builder, loc, shift, index(elementBytes)));
  own = arith::SubIOp::create(builder, loc,
                              arith::MulIOp::create(builder, loc, place.lane,
                                                    index(strategy.getWidth())),
                              shift);
}

void ShiftedChunk::findLanes() {
  int64_t group = std::min(strategy.getThreads(), kWarp);
  auto equals = [&](Value value, int64_t number) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, value,
                                 index(number));
  };
  Value inGroup =
      arith::RemUIOp::create(builder, loc, place.lane, index(group));
  laneInWarp = arith::RemUIOp::create(
      builder, loc, gpu::LaunchOp(place.launch).getThreadIds().x, index(kWarp));
  isFirst = equals(inGroup, 0);
  isLast = equals(inGroup, group - 1);
  Value groupStart = arith::SubIOp::create(builder, loc, laneInWarp, inGroup);
  auto turned = [&](int64_t by) {
    Value lane = arith::RemUIOp::create(
        builder, loc, arith::AddIOp::create(builder, loc, inGroup, index(by)),
        index(group));
    return arith::IndexCastOp::create(
        builder, loc, builder.getI32Type(),
        arith::AddIOp::create(builder, loc, groupStart, lane));
  };
  nextLane = turned(1);
  previousLane = turned(group - 1);
}

Value ShiftedChunk::firstColumn(int64_t piece, int64_t frame) {
  int64_t column =
      piece * strategy.getThreads() * strategy.getWidth() + frame * elements;
  return arith::AddIOp::create(builder, loc, own, index(column));
}

bool ShiftedChunk::isInside(int64_t piece, int64_t frame) const {
  int64_t width = strategy.getWidth(), threads = strategy.getThreads();
  int64_t first = piece * threads * width + frame * elements;
  int64_t last = first + (threads - 1) * width;
  return first >= elements - 1 && last + elements <= columns;
}

/// Whether a frame at `column` lies between 0 and `bound`.
Value ShiftedChunk::areBelow(Value column, Value bound) {
  Value last = arith::AddIOp::create(builder, loc, column, index(elements - 1));
  // A negative column is a large one.
  return arith::AndIOp::create(builder, loc, isBelow(column, bound),
                               isBelow(last, bound));
}

SmallVector<Value> ShiftedChunk::indicesAt(Value column) {
  SmallVector<Value> indices(start);
  indices.back() = arith::AddIOp::create(builder, loc, indices.back(), column);
  return indices;
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

Words ShiftedChunk::toWords(Value vector) {
  auto type = cast<VectorType>(vector.getType());
  int64_t count = type.getNumElements() * elementBytes / kWordBytes;
  Value cast = vector::BitCastOp::create(
      builder, loc, VectorType::get({count}, builder.getI32Type()), vector);
  return llvm::map_to_vector(llvm::seq(count), [&](int64_t i) -> Value {
    return vector::ExtractOp::create(builder, loc, cast, i);
  });
}

Value ShiftedChunk::fromWords(ArrayRef<Value> list, VectorType type) {
  auto flat = VectorType::get({int64_t(list.size())}, builder.getI32Type());
  Value vector =
      vector::FromElementsOp::create(builder, loc, flat, ValueRange(list));
  return vector::BitCastOp::create(builder, loc, type, vector);
}

Words ShiftedChunk::select(Value condition, ArrayRef<Value> a,
                           ArrayRef<Value> b) {
  Words result;
  for (auto [x, y] : llvm::zip_equal(a, b))
    result.push_back(arith::SelectOp::create(builder, loc, condition, x, y));
  return result;
}

Words ShiftedChunk::shuffle(ArrayRef<Value> list, Value source) {
  Value width = arith::ConstantIntOp::create(builder, loc, kWarp, 32);
  return llvm::map_to_vector(list, [&](Value word) -> Value {
    return gpu::ShuffleOp::create(builder, loc, word, source, width,
                                  gpu::ShuffleMode::IDX)
        .getShuffleResult();
  });
}

/// Computes words here. What takes elements from two frames would else move to
/// where they are used, beyond branches, and both frames take registers till
/// then.
Words ShiftedChunk::pin(ArrayRef<Value> list) {
  return llvm::map_to_vector(list, [&](Value word) -> Value {
    return LLVM::InlineAsmOp::create(
               builder, loc, word.getType(), word,
               builder.getStringAttr("mov.b32 $0, $1;"),
               builder.getStringAttr("=r,r"), builder.getUnitAttr(),
               /*is_align_stack=*/{},
               LLVM::TailCallKindAttr::get(builder.getContext(),
                                           LLVM::TailCallKind::None),
               /*asm_dialect=*/{}, /*operand_attrs=*/{})
        .getRes();
  });
}

/// A frame's words, `bytes` after the start of `low` and `high` in a row.
Words ShiftedChunk::realign(ArrayRef<Value> low, ArrayRef<Value> high,
                            Value bytes) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, loc, value, 32);
  };
  Words list(low);
  list.append(high.begin(), high.end());
  for (int64_t step = words / 2; step * kWordBytes >= elementBytes && step;
       step /= 2) {
    Value bit =
        arith::AndIOp::create(builder, loc, bytes, constant(step * kWordBytes));
    Value isSet = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                        bit, constant(0));
    ArrayRef<Value> all(list);
    list = select(isSet, all.drop_front(step), all.drop_back(step));
  }
  if (elementBytes >= kWordBytes) {
    list.resize(words);
    return list;
  }
  Value bits = arith::MulIOp::create(
      builder, loc,
      arith::AndIOp::create(builder, loc, bytes, constant(kWordBytes - 1)),
      constant(8));
  Words result;
  for (int64_t i = 0; i < words; ++i)
    result.push_back(
        LLVM::CallIntrinsicOp::create(builder, loc, builder.getI32Type(),
                                      builder.getStringAttr("llvm.fshr"),
                                      ValueRange{list[i + 1], list[i], bits})
            ->getResult(0));
  return result;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

Value ShiftedChunk::loadFrame(Value first) {
  auto load =
      vector::LoadOp::create(builder, loc, frame, base, indicesAt(first));
  load.setAlignment(alignmentOf(frame));
  return load;
}

/// Elements that are not in the row are not read.
Value ShiftedChunk::loadFrame(Value first, bool isKnown) {
  if (isKnown)
    return loadFrame(first);
  Value column = arith::AddIOp::create(builder, loc, start.back(), first);
  auto ifOp = scf::IfOp::create(builder, loc, frame, areBelow(column, extent),
                                /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(builder, loc, loadFrame(first));
  builder.setInsertionPointToStart(ifOp.elseBlock());
  SmallVector<Value> list;
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(frame.getElementType()));
  for (int64_t i = 0; i < elements; ++i) {
    Value at = arith::AddIOp::create(builder, loc, first, index(i));
    Value isThere =
        isBelow(arith::AddIOp::create(builder, loc, column, index(i)), extent);
    auto one = scf::IfOp::create(builder, loc, frame.getElementType(), isThere,
                                 /*withElseRegion=*/true);
    OpBuilder::InsertionGuard inner(builder);
    builder.setInsertionPointToStart(one.thenBlock());
    scf::YieldOp::create(
        builder, loc,
        memref::LoadOp::create(builder, loc, base, indicesAt(at)).getResult());
    builder.setInsertionPointToStart(one.elseBlock());
    scf::YieldOp::create(builder, loc, zero);
    list.push_back(one.getResult(0));
  }
  scf::YieldOp::create(
      builder, loc,
      vector::FromElementsOp::create(builder, loc, frame, list).getResult());
  return ifOp.getResult(0);
}

/// The frame after a piece, read by the last lane.
Words ShiftedChunk::loadNext(int64_t piece) {
  Value isRead = arith::AndIOp::create(builder, loc, isLast, isShifted);
  auto ifOp = scf::IfOp::create(builder, loc, frame, isRead,
                                /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(ifOp.thenBlock());
    Value next = loadFrame(firstColumn(piece, frames), isInside(piece, frames));
    scf::YieldOp::create(builder, loc, next);
    builder.setInsertionPointToStart(ifOp.elseBlock());
    Value none =
        arith::ConstantOp::create(builder, loc, builder.getZeroAttr(frame));
    scf::YieldOp::create(builder, loc, none);
  }
  return toWords(ifOp.getResult(0));
}

/// The frame after a piece.
Words ShiftedChunk::findNext(int64_t piece) {
  bool isRing = strategy.getThreads() <= kWarp && piece + 1 < pieces;
  Words given = parts[piece].front();
  // The first lane has the last one's next frame among its next piece.
  if (isRing)
    given = select(isFirst, parts[piece + 1].front(), given);
  Words taken = shuffle(given, nextLane);
  if (isRing)
    return taken;
  return select(isLast, loadNext(piece), taken);
}

SmallVector<Value> ShiftedChunk::read() {
  // Loads come before what waits for them.
  for (int64_t i = 0; i < pieces; ++i) {
    auto &list = parts.emplace_back();
    for (int64_t k = 0; k < frames; ++k)
      list.push_back(toWords(loadFrame(firstColumn(i, k), isInside(i, k))));
  }
  SmallVector<Value> result;
  for (int64_t i = 0; i < pieces; ++i) {
    Words next = findNext(i), all;
    for (int64_t k = 0; k < frames; ++k)
      llvm::append_range(all, realign(parts[i][k],
                                      k + 1 < frames ? parts[i][k + 1] : next,
                                      shiftBytes));
    result.push_back(fromWords(pin(all), piece));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Puts the last frame of what the last lane of every warp has into shared
/// memory, piece by piece.
void ShiftedChunk::exchangeEnds() {
  Attribute space = getWorkgroupSpace(builder.getContext());
  int64_t size = pieces * strategy.getRowWarps() * words;
  auto type = MemRefType::get({strategy.getRows(), size}, builder.getI32Type(),
                              MemRefLayoutAttrInterface(), space);
  ends = gpu::LaunchOp(place.launch).addWorkgroupAttribution(type, loc);
  // The last step's may still be read.
  if (place.isInLoop)
    gpu::BarrierOp::create(builder, loc);
  auto ifOp = scf::IfOp::create(builder, loc, isLast);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(ifOp.thenBlock());
    for (int64_t i = 0; i < pieces; ++i)
      for (auto [number, word] : llvm::enumerate(parts[i].back()))
        memref::StoreOp::create(builder, loc, word, ends,
                                endAt(endOf(i), number));
  }
  gpu::BarrierOp::create(builder, loc);
}

/// The number of the thread's warp among those of all pieces.
Value ShiftedChunk::endOf(int64_t piece) {
  Value warp = arith::DivUIOp::create(builder, loc, place.lane, index(kWarp));
  return arith::AddIOp::create(builder, loc, warp,
                               index(piece * strategy.getRowWarps()));
}

SmallVector<Value> ShiftedChunk::endAt(Value number, int64_t word) {
  Value first = arith::MulIOp::create(builder, loc, number, index(words));
  return {place.rowInBlock,
          arith::AddIOp::create(builder, loc, first, index(word))};
}

/// The frame before a piece.
Words ShiftedChunk::findPrevious(int64_t piece) {
  bool isRing = strategy.getThreads() <= kWarp;
  Words given = parts[piece].back();
  if (isRing && piece > 0)
    given = select(isLast, parts[piece - 1].back(), given);
  Words taken = shuffle(given, previousLane);
  if (isRing)
    return taken;
  // Nothing precedes the first; what is read there is not used.
  Value before = arith::SubIOp::create(
      builder, loc,
      arith::MaxUIOp::create(builder, loc, endOf(piece), index(1)), index(1));
  Words end;
  for (int64_t word = 0; word < words; ++word)
    end.push_back(
        memref::LoadOp::create(builder, loc, ends, endAt(before, word)));
  return select(isFirst, end, taken);
}

void ShiftedChunk::storeElements(Value frame, Value first, Value bound) {
  for (int64_t i = 0; i < elements; ++i) {
    Value column = arith::AddIOp::create(builder, loc, first, index(i));
    auto ifOp = scf::IfOp::create(builder, loc, isBelow(column, bound));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(ifOp.thenBlock());
    memref::StoreOp::create(builder, loc,
                            vector::ExtractOp::create(builder, loc, frame, i),
                            base, indicesAt(column));
  }
}

void ShiftedChunk::storeFrame(Value frame, Value first, Value bound,
                              bool isKnown) {
  OpBuilder::InsertionGuard guard(builder);
  if (place.isRow) {
    auto ifOp = scf::IfOp::create(builder, loc, place.isRow);
    builder.setInsertionPointToStart(ifOp.thenBlock());
  }
  auto store = [&] {
    auto op =
        vector::StoreOp::create(builder, loc, frame, base, indicesAt(first));
    op.setAlignment(alignmentOf(this->frame));
  };
  if (isKnown)
    return store();
  auto ifOp = scf::IfOp::create(builder, loc, areBelow(first, bound),
                                /*withElseRegion=*/true);
  builder.setInsertionPointToStart(ifOp.thenBlock());
  store();
  builder.setInsertionPointToStart(ifOp.elseBlock());
  storeElements(frame, first, bound);
}

void ShiftedChunk::write(ValueRange values, Value bound) {
  for (Value value : values) {
    Words all = toWords(value);
    auto &list = parts.emplace_back();
    for (int64_t k = 0; k < frames; ++k)
      list.push_back(Words(ArrayRef(all).slice(k * words, words)));
  }
  // A frame has what is `shift` elements from the end of the one before.
  Value bytes = arith::AndIOp::create(
      builder, loc,
      arith::SubIOp::create(
          builder, loc,
          arith::ConstantIntOp::create(builder, loc, words * kWordBytes, 32),
          shiftBytes),
      arith::ConstantIntOp::create(builder, loc, words * kWordBytes - 1, 32));
  auto join = [&](ArrayRef<Value> before, ArrayRef<Value> after) {
    return fromWords(realign(select(isShifted, before, after), after, bytes),
                     frame);
  };
  if (strategy.getThreads() > kWarp)
    exchangeEnds();
  for (int64_t i = 0; i < pieces; ++i) {
    Words before = findPrevious(i);
    for (const auto &[k, part] : llvm::enumerate(parts[i])) {
      storeFrame(join(before, part), firstColumn(i, k), bound, isInside(i, k));
      before = part;
    }
  }
  // What the last thread's elements begin of one more frame.
  int64_t all = pieces * strategy.getThreads() * strategy.getWidth();
  if (all - (elements - 1) >= columns && getConstantIntValue(bound) == columns)
    return;
  Value isEnd = arith::AndIOp::create(
      builder, loc, isShifted,
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, place.lane,
                            index(strategy.getThreads() - 1)));
  if (place.isRow)
    isEnd = arith::AndIOp::create(builder, loc, isEnd, place.isRow);
  auto ifOp = scf::IfOp::create(builder, loc, isEnd);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(ifOp.thenBlock());
  const Words &end = parts.back().back();
  storeElements(join(end, end), firstColumn(pieces - 1, frames), bound);
}

//===----------------------------------------------------------------------===//
// The mapper's part
//===----------------------------------------------------------------------===//

/// How many columns of a transfer are there for certain.
static int64_t knownColumns(Value mask, int64_t columns) {
  if (!mask)
    return columns;
  if (auto constant = mask.getDefiningOp<vector::ConstantMaskOp>())
    return constant.getMaskDimSizes().back();
  return 0;
}

ThreadMapper::Pieces ThreadMapper::readShifted(vector::TransferReadOp op) {
  auto type = cast<VectorType>(pieceType(op.getType()));
  Placement place{launch, strategy, lane, rowInBlock, isRow, isInLoop};
  Pieces read = ShiftedChunk(builder, loc, place, getUniform(op.getBase()),
                             indicesAt(op, /*column=*/{}), type,
                             knownColumns(op.getMask(), strategy.getColumns()))
                    .read();
  if (!op.getMask())
    return read;
  Value padding = vector::BroadcastOp::create(builder, loc, type,
                                              getUniform(op.getPadding()));
  for (auto [piece, value] : llvm::enumerate(read))
    if (Value guard = guardOf(piece, op.getMask()))
      value = arith::SelectOp::create(builder, loc, guard, value, padding);
  return read;
}

void ThreadMapper::writeShifted(vector::TransferWriteOp op) {
  Pieces values = getPieces(op.getVector());
  Placement place{launch, strategy, lane, rowInBlock, isRow, isInLoop};
  int64_t columns = knownColumns(op.getMask(), strategy.getColumns());
  Value bound = op.getMask() ? boundOf(op.getMask()) : index(columns);
  ShiftedChunk(builder, loc, place, getUniform(op.getBase()),
               indicesAt(op, /*column=*/{}),
               cast<VectorType>(values.front().getType()), columns)
      .write(values, bound);
}
