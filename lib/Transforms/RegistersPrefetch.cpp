//===- RegistersPrefetch.cpp - What the next tile reads -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// While a sweep stores, memory has nothing to read: all but the first sweep
// over a row find it in a cache. So what the next rows need is fetched then,
// from the places that this sweep itself reads, one tile further.
//
//===----------------------------------------------------------------------===//

#include "MapToRegisters.h"

#include "Norm/IR/NormDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::norm;

/// How far ahead at least: what memory delivers while it is waited for.
static constexpr int64_t kAheadBytes = 4096;

/// The most of the next tile that is fetched by one of many images, which fill
/// the cache themselves.
static constexpr int64_t kMostNextBytes = 262144;

Operation *norm::getSweep(VectorTransferOpInterface access) {
  auto loop = dyn_cast<scf::ForOp>(access->getParentOp());
  if (!loop)
    return access;
  auto isIndex = [&](Value index) {
    SetVector<Value> work;
    work.insert(index);
    for (unsigned i = 0; i < work.size(); ++i) {
      if (work[i] == loop.getInductionVar())
        return true;
      Operation *op = work[i].getDefiningOp();
      if (op && loop->isProperAncestor(op))
        work.insert(op->operand_begin(), op->operand_end());
    }
    return false;
  };
  return llvm::any_of(access.getIndices(), isIndex) ? loop.getOperation()
                                                    : access.getOperation();
}

static int64_t countBytes(VectorType type) {
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

namespace {
/// An induction variable and the bounds of its loop.
struct Counter {
  Value value;
  OpFoldResult upper, step;
};
} // namespace

/// Whether `value` follows from `counter` by ops without effects or regions.
/// nullopt if it follows from something that cannot be computed again.
static std::optional<bool> followsFrom(Value value, Value counter) {
  if (value == counter)
    return true;
  Operation *op = value.getDefiningOp();
  Region *scope = counter.getParentRegion();
  if (!op || !scope->isAncestor(op->getParentRegion()))
    return false;
  bool follows = false;
  for (Value operand : op->getOperands()) {
    std::optional<bool> operandFollows = followsFrom(operand, counter);
    if (!operandFollows)
      return std::nullopt;
    follows |= *operandFollows;
  }
  if (op->getNumRegions() != 0 || (follows && !isPure(op)))
    return std::nullopt;
  return follows;
}

/// `value` with `counter` replaced as `mapping` says.
static Value cloneFor(OpBuilder &builder, Value value, Value counter,
                      IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  if (followsFrom(value, counter) != true)
    return value;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    mapping.map(operand, cloneFor(builder, operand, counter, mapping));
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

/// The loops over tiles around `op`, up to `outermost`: the innermost variable
/// first. Other loops are sweeps over what the tile has in a cache already.
static SmallVector<Counter> countersAround(Operation *op,
                                           scf::ForallOp outermost) {
  SmallVector<Counter> counters;
  for (Operation *parent = op->getParentOp();; parent = parent->getParentOp()) {
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (loop && loop->hasAttr(kStrategyAttrName))
      counters.push_back(
          {loop.getInductionVar(), loop.getUpperBound(), loop.getStep()});
    if (parent == outermost)
      break;
  }
  for (unsigned i = outermost.getRank(); i-- > 0;)
    counters.push_back({outermost.getInductionVar(i),
                        outermost.getMixedUpperBound()[i],
                        outermost.getMixedStep()[i]});
  return counters;
}

namespace {
class Prefetcher {
public:
  Prefetcher(OpBuilder &builder, scf::ForallOp tiles, int64_t level)
      : builder(builder), tiles(tiles), level(level) {}

  void run() {
    // Reads that several sweeps share stand before them, in the tile itself.
    SetVector<Operation *> sweeps;
    // A partial sum that a sweep adds to is not the next tile's.
    DenseSet<Value> written;
    tiles.walk([&](vector::TransferWriteOp write) {
      sweeps.insert(getSweep(write));
      written.insert(write.getBase());
    });
    SmallVector<vector::TransferReadOp> reads;
    tiles.walk([&](vector::TransferReadOp read) {
      Operation *sweep = getSweep(read);
      if (movesColumns(read) && !written.contains(read.getBase()) &&
          (sweep == read || sweeps.contains(sweep)))
        reads.push_back(read);
    });
    for (vector::TransferReadOp read : reads)
      stepBytes[getSweep(read)] += countBytes(read.getVectorType());
    for (vector::TransferReadOp read : reads)
      fetch(read);
  }

private:
  void fetch(vector::TransferReadOp read) {
    Operation *sweep = getSweep(read);
    for (const Counter &counter : countersAround(sweep, tiles)) {
      bool isKnown = true, follows = false;
      SmallVector<Value> parts{read.getBase()};
      for (Value index : read.getIndices())
        parts.push_back(index);
      for (Value part : parts) {
        std::optional<bool> partFollows = followsFrom(part, counter.value);
        isKnown &= partFollows.has_value();
        follows |= partFollows.value_or(false);
      }
      if (!isKnown)
        return;
      if (!follows)
        continue;
      return fetchFor(read, sweep, counter);
    }
  }

  /// Fetches the lines of `read` for a later value of `counter`.
  void fetchFor(vector::TransferReadOp read, Operation *sweep,
                const Counter &counter) {
    IRMapping mapping;
    builder.setInsertionPoint(sweep);
    mapping.map(counter.value, inLastImages(sweep, later(read, sweep, counter),
                                            counter.value));
    // A view made inside the sweep is made again there.
    Value base = read.getBase();
    Operation *view = base.getDefiningOp();
    if (view && sweep->isProperAncestor(view))
      builder.setInsertionPoint(read);
    base = cloneFor(builder, base, counter.value, mapping);
    builder.setInsertionPointAfter(read);
    SmallVector<Value> indices;
    for (Value index : read.getIndices())
      indices.push_back(cloneFor(builder, index, counter.value, mapping));
    fetchLines(read, base, indices);
  }

  /// The value of `counter` one step further, or as many as are kAheadBytes,
  /// that of the last step at most.
  Value later(vector::TransferReadOp read, Operation *sweep,
              const Counter &counter) {
    int64_t bytes = countBytes(read.getVectorType()), count = 1;
    for (Operation *op = sweep; op != tiles; op = op->getParentOp()) {
      auto loop = dyn_cast<scf::ForOp>(op);
      if (!loop || loop->hasAttr(kStrategyAttrName))
        continue;
      std::optional<APInt> trips = loop.getStaticTripCount();
      bytes = trips ? bytes * trips->getSExtValue() : kAheadBytes;
    }
    if (bytes > 0)
      count = std::max<int64_t>(1, kAheadBytes / bytes);
    Location loc = read.getLoc();
    auto value = [&](OpFoldResult ofr) {
      return getValueOrCreateConstantIndexOp(builder, loc, ofr);
    };
    Value step = value(counter.step);
    Value distance = arith::MulIOp::create(builder, loc, step,
                                           value(builder.getIndexAttr(count)));
    Value last =
        arith::SubIOp::create(builder, loc, value(counter.upper), step);
    return arith::MinSIOp::create(
        builder, loc,
        arith::AddIOp::create(builder, loc, counter.value, distance), last);
  }

  /// Where a tile is several sweeps, over images: `next` in those over the last
  /// images, which read kMostNextBytes together, and `current` before. What a
  /// sweep reads itself needs no fetching.
  Value inLastImages(Operation *sweep, Value next, Value current) {
    SmallVector<scf::ForOp> loops;
    for (Operation *op = sweep; op != tiles && !op->hasAttr(kStrategyAttrName);
         op = op->getParentOp())
      if (auto loop = dyn_cast<scf::ForOp>(op))
        loops.push_back(loop);
    if (loops.empty() || loops.back() == sweep)
      return next;
    scf::ForOp images = loops.pop_back_val();
    Location loc = sweep->getLoc();
    auto index = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(builder, loc, value);
    };
    auto times = [&](Value a, Value b) {
      return builder.createOrFold<arith::MulIOp>(loc, a, b);
    };
    auto countSteps = [&](scf::ForOp loop, Value from) -> Value {
      Value span =
          builder.createOrFold<arith::SubIOp>(loc, loop.getUpperBound(), from);
      return builder.createOrFold<arith::DivUIOp>(loc, span, loop.getStep());
    };
    Value bytes = index(stepBytes.lookup(sweep));
    for (scf::ForOp loop : loops)
      bytes = times(bytes, countSteps(loop, loop.getLowerBound()));
    Value all = times(bytes, countSteps(images, images.getLowerBound()));
    std::optional<int64_t> known = getConstantIntValue(all);
    if (known && *known <= kMostNextBytes)
      return next;
    Value left = times(bytes, countSteps(images, images.getInductionVar()));
    Value isNear = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ule, left, index(kMostNextBytes));
    return arith::SelectOp::create(builder, loc, isNear, next, current);
  }

  /// One op for each line that a vector at `indices` of `base` touches, if it
  /// starts on one.
  void fetchLines(vector::TransferReadOp read, Value base,
                  ArrayRef<Value> indices) {
    Location loc = read.getLoc();
    VectorType type = read.getVectorType();
    auto viewType = cast<MemRefType>(base.getType());
    int64_t width = type.getElementTypeBitWidth() / 8;
    int64_t rank = type.getRank(), last = viewType.getRank() - 1;
    int64_t rows = rank == 2 ? type.getDimSize(0) : 1;
    // Rows of less than a line that lie side by side share lines.
    int64_t rowStep = 1;
    if (rank == 2) {
      int64_t pitch = viewType.getStridesAndOffset().first[last - 1];
      if (ShapedType::isStatic(pitch) && pitch > 0)
        rowStep = std::max<int64_t>(1, kLineBytes / (pitch * width));
    }
    auto plus = [&](Value index, int64_t offset) -> Value {
      if (offset == 0)
        return index;
      return arith::AddIOp::create(
          builder, loc, index,
          arith::ConstantIndexOp::create(builder, loc, offset));
    };
    for (int64_t row = 0; row < rows; row += rowStep)
      for (int64_t column = 0; column < type.getShape().back();
           column += kLineBytes / width) {
        SmallVector<Value> at(indices);
        if (rank == 2)
          at[last - 1] = plus(at[last - 1], row);
        at[last] = plus(at[last], column);
        memref::PrefetchOp::create(builder, loc, base, at,
                                   /*isWrite=*/false,
                                   /*localityHint=*/4 - level,
                                   /*isDataCache=*/true);
      }
  }

  OpBuilder &builder;
  scf::ForallOp tiles;
  int64_t level;
  /// What a step of a sweep fetches for the next tile.
  DenseMap<Operation *, int64_t> stepBytes;
};
} // namespace

void norm::prefetchNextTiles(OpBuilder &builder, scf::ForallOp loop,
                             int64_t level) {
  if (level > 0)
    Prefetcher(builder, loop, level).run();
}
