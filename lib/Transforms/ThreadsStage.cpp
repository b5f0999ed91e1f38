//===- ThreadsStage.cpp - Rows kept in shared memory -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What several sweeps over a row read of it is kept by the first one. A thread
// has the same columns in each, so it finds what it put there itself: nothing
// is waited for.
//
// What is kept is a value that the first sweep computes and from which later
// ones compute everything that they would else read again: of those, the one of
// the narrowest type. Where no single value will do, the rows that are read
// several times are kept themselves, as many as there is room for.
//
//===----------------------------------------------------------------------===//

#include "MapToThreads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <map>

using namespace mlir;
using namespace mlir::norm;

bool norm::isStagedRow(Value buffer) {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  return type && type.getMemorySpace() == getWorkgroupSpace(type.getContext());
}

bool norm::isChunkStart(Value column, int64_t columns) {
  if (std::optional<int64_t> constant = getConstantIntValue(column))
    return *constant % columns == 0;
  auto argument = dyn_cast<BlockArgument>(column);
  auto loop = argument
                  ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())
                  : scf::ForOp();
  return loop && argument == loop.getInductionVar() &&
         getConstantIntValue(loop.getStep()).value_or(1) % columns == 0 &&
         isChunkStart(loop.getLowerBound(), columns);
}

/// Bytes that rows of a block keep in one buffer, in whole accesses.
static int64_t countBytes(MemRefType type, GpuStrategyAttr strategy) {
  int64_t bytes = type.getNumElements() * (type.getElementTypeBitWidth() / 8);
  return llvm::alignTo(bytes * strategy.getRows(), kAccessBytes);
}

int64_t norm::countStagedBytes(scf::ForallOp loop, GpuStrategyAttr strategy) {
  int64_t bytes = 0;
  for (auto row : loop.getBody()->getOps<memref::AllocOp>())
    bytes += countBytes(row.getType(), strategy);
  return bytes;
}

//===----------------------------------------------------------------------===//
// Sweeps
//===----------------------------------------------------------------------===//

/// The number of columns, from 0 on, that the steps of `inner` and of the loops
/// around it start at, each `step` after the last; nullopt if that is not how
/// they go, or not known.
static std::optional<int64_t> countColumns(scf::ForOp inner, int64_t step) {
  std::optional<int64_t> own = getConstantIntValue(inner.getStep());
  if (!own || *own % step != 0)
    return std::nullopt;
  std::optional<int64_t> upper = getConstantIntValue(inner.getUpperBound());
  if (upper) {
    bool isWhole =
        getConstantIntValue(inner.getLowerBound()) == 0 && *upper % step == 0;
    return isWhole ? upper : std::nullopt;
  }
  // A block of a longer loop: from its step to the next or to the end.
  auto outer = dyn_cast<scf::ForOp>(inner->getParentOp());
  auto least = inner.getUpperBound().getDefiningOp<arith::MinUIOp>();
  if (!outer || !least || inner.getLowerBound() != outer.getInductionVar())
    return std::nullopt;
  for (auto [next, end] : {std::pair(least.getLhs(), least.getRhs()),
                           std::pair(least.getRhs(), least.getLhs())}) {
    auto sum = next.getDefiningOp<arith::AddIOp>();
    if (sum && sum.getLhs() == outer.getInductionVar() &&
        getConstantIntValue(sum.getRhs()) ==
            getConstantIntValue(outer.getStep()) &&
        end == outer.getUpperBound())
      return countColumns(outer, *own);
  }
  return std::nullopt;
}

namespace {
/// Gives values of equal columns in one row equal numbers.
class Numbering {
public:
  Numbering(scf::ForallOp loop, GpuStrategyAttr strategy)
      : loop(loop), strategy(strategy) {}

  unsigned get(Value value) {
    auto [it, isNew] = known.try_emplace(value, 0);
    if (!isNew)
      return it->second;
    std::optional<Key> key = makeKey(value);
    unsigned number =
        key ? keys.try_emplace(*key, next++).first->second : next++;
    return known[value] = number;
  }

private:
  using Key = std::vector<const void *>;

  /// What decides a value; nullopt if it is like no other.
  std::optional<Key> makeKey(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getNumResults() != 1 || op->getNumRegions() != 0 ||
        op->getBlock() == loop.getBody() ||
        !loop.getRegion().isAncestor(op->getParentRegion()))
      return std::nullopt;
    auto read = dyn_cast<vector::TransferReadOp>(op);
    if (!read && !isPure(op))
      return std::nullopt;
    Key key = {op->getName().getAsOpaquePointer(),
               op->getAttrDictionary().getAsOpaquePointer(),
               value.getType().getAsOpaquePointer()};
    // Columns differ from sweep to sweep in the names of loops alone.
    Value column = read ? read.getIndices().back() : Value();
    for (Value operand : op->getOperands())
      key.push_back(
          operand == column && isChunkStart(column, strategy.getColumns())
              ? nullptr
              : reinterpret_cast<const void *>(uintptr_t(get(operand)) + 1));
    return key;
  }

  scf::ForallOp loop;
  GpuStrategyAttr strategy;
  DenseMap<Value, unsigned> known;
  std::map<Key, unsigned> keys;
  unsigned next = 0;
};

/// Where a value of a row is computed: in a loop over chunks.
struct Place {
  Value value;
  scf::ForOp chunks;
  int level;
  /// Columns that the loop covers, if that is known.
  std::optional<int64_t> columns;
  /// In the order of the program.
  unsigned order;
};

class RowStager {
public:
  RowStager(scf::ForallOp loop, GpuStrategyAttr strategy,
            const RowLayout &layout)
      : loop(loop), strategy(strategy), layout(layout),
        numbering(loop, strategy) {}

  LogicalResult run(int64_t room, StringRef chip);

private:
  using Number = unsigned;

  void collect();
  /// Whether later sweeps have a value again, all of whose columns the first
  /// one that has it covers.
  bool isRepeated(Number number) const;
  bool isRead(Number number) const;
  int firstLevel(Number number) const;
  SmallVector<Number> choose(ArrayRef<Number> reads) const;
  bool replacesAll(Number number, ArrayRef<Number> reads) const;
  MemRefType makeType(Number number) const;
  void stage(Number number);

  scf::ForallOp loop;
  GpuStrategyAttr strategy;
  const RowLayout &layout;
  Numbering numbering;
  llvm::MapVector<Number, SmallVector<Place>> places;
  DenseMap<Value, Number> numbers;
};
} // namespace

void RowStager::collect() {
  unsigned order = 0;
  for (Operation &sweep : loop.getBody()->without_terminator())
    sweep.walk([&](Operation *op) {
      auto chunks = dyn_cast<scf::ForOp>(op->getParentOp());
      if (!chunks || op->getNumResults() != 1 || op->getNumRegions() != 0)
        return;
      Value value = op->getResult(0);
      auto read = dyn_cast<vector::TransferReadOp>(op);
      bool isChunk = read && !read.getMask() &&
                     read.getIndices().back() == chunks.getInductionVar();
      // Of a single row nothing varies along rows.
      if (!layout.hasColumns(value) || !(isChunk || isPure(op)) ||
          getElementTypeOrSelf(value).getIntOrFloatBitWidth() % 8 != 0)
        return;
      Number number = numbering.get(value);
      numbers[value] = number;
      places[number].push_back({value, chunks, layout.getLevel(&sweep),
                                countColumns(chunks, strategy.getColumns()),
                                order++});
    });
  for (auto &[number, list] : places)
    llvm::sort(list, [](const Place &a, const Place &b) {
      return std::pair(a.level, a.order) < std::pair(b.level, b.order);
    });
}

bool RowStager::isRead(Number number) const {
  return places.find(number)
      ->second.front()
      .value.getDefiningOp<vector::TransferReadOp>();
}

int RowStager::firstLevel(Number number) const {
  return places.find(number)->second.front().level;
}

bool RowStager::isRepeated(Number number) const {
  const SmallVector<Place> &list = places.find(number)->second;
  return list.back().level > list.front().level &&
         llvm::all_of(list, [&](const Place &place) {
           return place.columns && list.front().columns &&
                  *place.columns <= *list.front().columns;
         });
}

/// Whether later sweeps read none of `reads` once they have a value.
bool RowStager::replacesAll(Number number, ArrayRef<Number> reads) const {
  auto isKept = [&](Value value) {
    auto it = numbers.find(value);
    return it != numbers.end() && it->second == number;
  };
  DenseSet<Operation *> needed;
  SmallVector<Operation *> work;
  auto need = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (op && !isKept(value) && needed.insert(op).second)
      work.push_back(op);
  };
  for (Operation &sweep : scf::ForallOp(loop).getBody()->without_terminator())
    if (layout.getLevel(&sweep) > firstLevel(number))
      sweep.walk([&](Operation *op) {
        if (isa<vector::TransferWriteOp, scf::YieldOp>(op) ||
            op->getNumRegions() != 0)
          llvm::for_each(op->getOperands(), need);
      });
  while (!work.empty())
    llvm::for_each(work.pop_back_val()->getOperands(), need);
  return llvm::none_of(reads, [&](Number read) {
    return firstLevel(read) < firstLevel(number) ||
           llvm::any_of(
               places.find(read)->second,
               [&](const Place &place) {
                 return place.level > firstLevel(number) &&
                        needed.contains(place.value.getDefiningOp());
               });
  });
}

SmallVector<unsigned> RowStager::choose(ArrayRef<Number> reads) const {
  auto bits = [&](Number number) {
    return getElementTypeOrSelf(places.find(number)->second.front().value)
        .getIntOrFloatBitWidth();
  };
  std::optional<Number> best;
  for (auto &[number, list] : places)
    if (isRepeated(number) && (!best || bits(number) < bits(*best)) &&
        replacesAll(number, reads))
      best = number;
  if (best)
    return {*best};
  SmallVector<Number> all(reads);
  llvm::sort(all, [&](Number a, Number b) {
    return std::pair(firstLevel(a), a) < std::pair(firstLevel(b), b);
  });
  return all;
}

/// A buffer for one row, of the rank of its vectors.
MemRefType RowStager::makeType(Number number) const {
  const Place &first = places.find(number)->second.front();
  auto type = cast<VectorType>(first.value.getType());
  SmallVector<int64_t> shape(type.getRank(), 1);
  shape.back() = *first.columns;
  return MemRefType::get(shape, type.getElementType(),
                         MemRefLayoutAttrInterface(),
                         getWorkgroupSpace(type.getContext()));
}

void RowStager::stage(Number number) {
  MemRefType type = makeType(number);
  OpBuilder builder = OpBuilder::atBlockBegin(loop.getBody());
  Location loc = loop.getLoc();
  Value row = memref::AllocOp::create(builder, loc, type);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  SmallVector<bool> inBounds(type.getRank(), true);
  for (Place &place : places[number]) {
    Operation *op = place.value.getDefiningOp();
    SmallVector<Value> indices(type.getRank(), zero);
    indices.back() = place.chunks.getInductionVar();
    builder.setInsertionPointAfter(op);
    if (place.level == firstLevel(number)) {
      vector::TransferWriteOp::create(builder, op->getLoc(), place.value, row,
                                      indices, ArrayRef<bool>(inBounds));
      continue;
    }
    Value kept = vector::TransferReadOp::create(
        builder, op->getLoc(), cast<VectorType>(place.value.getType()), row,
        indices, /*padding=*/std::nullopt, ArrayRef<bool>(inBounds));
    place.value.replaceAllUsesWith(kept);
  }
}

LogicalResult RowStager::run(int64_t room, StringRef chip) {
  collect();
  SmallVector<Number> reads;
  for (auto &[number, list] : places) {
    if (!isRead(number) || list.back().level == list.front().level)
      continue;
    if (!isRepeated(number))
      return list.front().value.getDefiningOp()->emitOpError(
          "cannot be kept in shared memory: expected sweeps over columns whose "
          "number is static");
    reads.push_back(number);
  }
  if (reads.empty())
    return success();
  int64_t left = room;
  for (Number number : choose(reads)) {
    MemRefType type = makeType(number);
    int64_t bytes = countBytes(type, strategy);
    if (bytes <= left) {
      stage(number);
      left -= bytes;
    } else if (left == room) {
      return loop.emitOpError("keeps ")
             << type.getShape().back() << " columns of "
             << type.getElementType() << " in shared memory: expected at most "
             << room << " bytes a block on " << chip << ", got " << bytes;
    }
  }
  // What only the replaced values needed.
  SmallVector<Operation *> ops;
  loop.getBody()->walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : llvm::reverse(ops))
    if (op->getNumRegions() == 0 && isOpTriviallyDead(op))
      op->erase();
  return success();
}

LogicalResult norm::stageRows(scf::ForallOp loop, GpuStrategyAttr strategy,
                              const RowLayout &layout, int64_t room,
                              StringRef chip) {
  return RowStager(loop, strategy, layout).run(room, chip);
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

void ThreadMapper::emitStagedRow(memref::AllocOp op) {
  MemRefType type = op.getType();
  auto bytes =
      MemRefType::get({ShapedType::kDynamic}, builder.getI8Type(),
                      MemRefLayoutAttrInterface(), type.getMemorySpace());
  Value all = gpu::DynamicSharedMemoryOp::create(builder, loc, bytes);
  auto rows = MemRefType::get(
      {strategy.getRows(), type.getNumElements()}, type.getElementType(),
      MemRefLayoutAttrInterface(), type.getMemorySpace());
  uniforms.map(op.getResult(),
               memref::ViewOp::create(builder, loc, rows, all,
                                      index(stagedBytes), ValueRange()));
  stagedBytes += countBytes(type, strategy);
}

/// A piece of several accesses lies in as many planes, so that what threads
/// access at a time lies side by side: no bank is asked for two words.
void ThreadMapper::forEachPlane(
    VectorTransferOpInterface op, VectorType type, int64_t piece,
    function_ref<void(int64_t first, VectorType part, ValueRange at)> body) {
  int64_t width = strategy.getWidth(), threads = strategy.getThreads();
  int64_t bytes = width * (type.getElementTypeBitWidth() / 8);
  int64_t planes = std::max<int64_t>(bytes / kAccessBytes, 1);
  int64_t elements = width / planes;
  auto part = VectorType::get({elements}, type.getElementType());
  Value chunk = getUniform(op.getIndices().back());
  Value own = arith::MulIOp::create(builder, loc, lane, index(elements));
  for (int64_t plane = 0; plane < planes; ++plane) {
    int64_t start = piece * threads * width + plane * threads * elements;
    Value column = arith::AddIOp::create(
        builder, loc, chunk,
        arith::AddIOp::create(builder, loc, own, index(start)));
    body(plane * elements, part, {rowInBlock, column});
  }
}

/// `count` elements of a vector from `first` on.
static SmallVector<Value> takeElements(OpBuilder &builder, Location loc,
                                       Value vector, int64_t first,
                                       int64_t count) {
  return llvm::map_to_vector(
      llvm::seq<int64_t>(first, first + count), [&](int64_t i) -> Value {
        return vector::ExtractOp::create(builder, loc, vector, i);
      });
}

Value ThreadMapper::readStaged(vector::TransferReadOp op, int64_t piece) {
  Value base = getUniform(op.getBase());
  auto type = cast<VectorType>(pieceType(op.getType()));
  Value whole;
  SmallVector<Value> elements;
  forEachPlane(op, type, piece, [&](int64_t, VectorType part, ValueRange at) {
    auto load = vector::LoadOp::create(builder, loc, part, base, at);
    load.setAlignment(alignmentOf(part));
    whole = load;
    llvm::append_range(
        elements, takeElements(builder, loc, load, 0, part.getNumElements()));
  });
  return whole.getType() == type
             ? whole
             : vector::FromElementsOp::create(builder, loc, type, elements);
}

void ThreadMapper::writeStaged(Value value, vector::TransferWriteOp op,
                               int64_t piece) {
  Value base = getUniform(op.getBase());
  auto type = cast<VectorType>(value.getType());
  forEachPlane(
      op, type, piece, [&](int64_t first, VectorType part, ValueRange at) {
        Value slice = value;
        if (part != type)
          slice = vector::FromElementsOp::create(
              builder, loc, part,
              takeElements(builder, loc, value, first, part.getNumElements()));
        auto store = vector::StoreOp::create(builder, loc, slice, base, at);
        store.setAlignment(alignmentOf(part));
      });
}
