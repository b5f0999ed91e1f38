//===- VectorizeLoops.cpp - The sweeps of a tile -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops of the vector form (TileEmitter.h), and the promise of blocked
// sums.
//
//===----------------------------------------------------------------------===//

#include "TileEmitter.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/Utils/VectorUtils.h"

using namespace mlir;
using namespace mlir::norm;

FailureOr<SmallVector<Value>> TileEmitter::forLoop(Value lower, Value upper,
                                                   int64_t step,
                                                   ValueRange inits,
                                                   LoopFn body) {
  auto forOp =
      scf::ForOp::create(builder, loc, lower, upper, index(step), inits);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(forOp.getBody());
  FailureOr<Values> yielded =
      body(forOp.getInductionVar(), forOp.getRegionIterArgs());
  if (failed(yielded))
    return failure();
  // A loop without carried values comes with its terminator.
  if (!inits.empty())
    scf::YieldOp::create(builder, loc, *yielded);
  return Values(forOp.getResults());
}

FailureOr<SmallVector<Value>>
TileEmitter::changeWhere(Value condition, ValueRange values, ChangeFn change) {
  auto ifOp = scf::IfOp::create(builder, loc, TypeRange(values), condition,
                                /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(ifOp.thenBlock());
  FailureOr<Values> changed = change();
  if (failed(changed))
    return failure();
  scf::YieldOp::create(builder, loc, *changed);
  builder.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(builder, loc, values);
  return Values(ifOp.getResults());
}

SmallVector<Value> TileEmitter::combine(ArrayRef<vector::CombiningKind> kinds,
                                        ValueRange sums, ValueRange more) {
  Values combined;
  for (auto [kind, sum, value] : llvm::zip_equal(kinds, sums, more))
    combined.push_back(
        vector::makeArithReduction(builder, loc, kind, sum, value));
  return combined;
}

int64_t norm::chainLevels(std::optional<int64_t> steps) {
  // Levels that nothing is carried over to have the neutral element.
  if (!steps)
    return 5;
  int64_t levels = 1;
  for (int64_t rest = *steps; rest > kMaxChain;
       rest = llvm::divideCeil(rest, kMaxChain))
    ++levels;
  return levels;
}

/// What is `carried` and the sums from `start` to the end of its block of
/// `span`, or to `upper`.
FailureOr<SmallVector<Value>>
TileEmitter::addBlock(Value start, int64_t span, Value upper,
                      ArrayRef<vector::CombiningKind> kinds, ValueRange carried,
                      BlockFn sum) {
  Value next = arith::AddIOp::create(builder, loc, start, index(span));
  FailureOr<Values> block =
      sum(arith::MinUIOp::create(builder, loc, next, upper));
  if (failed(block))
    return failure();
  return combine(kinds, carried, *block);
}

FailureOr<SmallVector<Value>>
TileEmitter::blockedLoop(int64_t levels, Value lower, Value upper, int64_t step,
                         ValueRange neutral,
                         ArrayRef<vector::CombiningKind> kinds, LoopFn body) {
  if (levels == 1)
    return forLoop(lower, upper, step, neutral, body);
  int64_t span = kMaxChain * step;
  return treeLoop(levels - 1, lower, upper, span, neutral, kinds,
                  [&](Value start, ValueRange carried) {
                    return addBlock(
                        start, span, upper, kinds, carried, [&](Value end) {
                          return forLoop(start, end, step, neutral, body);
                        });
                  });
}

FailureOr<SmallVector<Value>>
TileEmitter::nestedLoop(int64_t levels, Value lower, Value upper, int64_t step,
                        ValueRange neutral,
                        ArrayRef<vector::CombiningKind> kinds, LoopFn body) {
  int64_t span = step;
  for (int64_t level = 1; level < levels; ++level)
    span *= kMaxChain;
  return forLoop(
      lower, upper, span, neutral, [&](Value start, ValueRange carried) {
        return addBlock(start, span, upper, kinds, carried, [&](Value end) {
          return treeLoop(levels - 1, start, end, step, neutral, kinds, body);
        });
      });
}

/// Carries what fills a level of a tree of sums after `done` to the next, and
/// starts that level again. `sums` has those of all levels; one of the first
/// is of `step`.
FailureOr<SmallVector<Value>>
TileEmitter::carryOver(int64_t levels, int64_t step, Value done,
                       ValueRange sums, ValueRange neutral,
                       ArrayRef<vector::CombiningKind> kinds) {
  if (levels == 1)
    return Values(sums);
  size_t count = neutral.size();
  int64_t span = step;
  auto isFull = [&]() -> Value {
    span *= kMaxChain;
    return arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::eq,
        arith::RemUIOp::create(builder, loc, done, index(span)), index(0));
  };
  return changeWhere(isFull(), sums, [&]() -> FailureOr<Values> {
    Values carried(sums);
    for (int64_t number = 1; number < levels; ++number) {
      auto level = [&](int64_t at) {
        return MutableArrayRef(carried).slice(at * count, count);
      };
      MutableArrayRef<Value> full = level(number - 1), next = level(number);
      Values more = combine(kinds, ValueRange(next), ValueRange(full));
      // The first is full here; few blocks fill the others.
      Value condition = number > 1 ? isFull() : Value();
      auto choose = [&](Value value, Value other) -> Value {
        if (!condition)
          return value;
        return arith::SelectOp::create(builder, loc, condition, value, other);
      };
      for (size_t i = 0; i < count; ++i) {
        next[i] = choose(more[i], next[i]);
        full[i] = choose(neutral[i], full[i]);
      }
    }
    return carried;
  });
}

FailureOr<SmallVector<Value>>
TileEmitter::treeLoop(int64_t levels, Value lower, Value upper, int64_t step,
                      ValueRange neutral, ArrayRef<vector::CombiningKind> kinds,
                      LoopFn body) {
  // What threads hold a part of each takes no branch: a loop for each level.
  if (!isCpu && levels > 1)
    return nestedLoop(levels, lower, upper, step, neutral, kinds, body);
  size_t count = neutral.size();
  Values inits;
  for (int64_t level = 0; level < levels; ++level)
    llvm::append_range(inits, neutral);
  auto level = [&](ValueRange sums, int64_t number) {
    return sums.slice(number * count, count);
  };
  FailureOr<Values> sums = forLoop(
      lower, upper, step, inits,
      [&](Value position, ValueRange carried) -> FailureOr<Values> {
        FailureOr<Values> first = body(position, level(carried, 0));
        if (failed(first))
          return failure();
        llvm::append_range(*first, carried.drop_front(count));
        Value done = arith::SubIOp::create(
            builder, loc,
            arith::AddIOp::create(builder, loc, position, index(step)), lower);
        return carryOver(levels, step, done, *first, neutral, kinds);
      });
  if (failed(sums))
    return failure();
  Values total(level(*sums, 0));
  for (int64_t number = 1; number < levels; ++number)
    total = combine(kinds, level(*sums, number), total);
  return total;
}

AxisSplit TileEmitter::splitAxis(int axis) {
  AxisSplit split;
  split.width = program.isColumns(axis) ? columns : 1;
  split.end = split.wholeEnd = extentOf(axis);
  std::optional<int64_t> extent = program.getAxis(axis).getStaticExtent();
  split.hasWhole = !extent || *extent >= split.width;
  split.hasRest = split.width > 1 &&
                  (extent ? *extent % split.width != 0 : !columnsAreWhole);
  if (extent)
    split.wholeSteps = split.mostSteps = *extent / split.width;
  else if (std::optional<int64_t> most = program.getAxis(axis).getMostExtent())
    split.mostSteps = *most / split.width;
  if (!split.hasRest)
    return split;
  split.wholeEnd = extent ? index(*split.wholeSteps * split.width)
                          : Value(arith::SubIOp::create(
                                builder, loc, split.end,
                                arith::RemUIOp::create(builder, loc, split.end,
                                                       index(split.width))));
  return split;
}

Step TileEmitter::stepInside(Step &outer, int axis, Value position,
                             Value active) {
  Step inner;
  inner.outer = &outer;
  inner.axis = axis;
  inner.position = outer.position;
  inner.position[axis] = position;
  inner.activeColumns = program.isColumns(axis) ? active : outer.activeColumns;
  return inner;
}

FailureOr<SmallVector<Value>> TileEmitter::walkAxis(int axis, Step &outer,
                                                    ValueRange inits,
                                                    WholeFn whole,
                                                    StepFn body) {
  outer.anchor = index(0).getDefiningOp();
  auto at = [&](Value position, Value active, ValueRange carried) {
    Step inner = stepInside(outer, axis, position, active);
    return body(inner, carried);
  };
  AxisSplit split = splitAxis(axis);
  Values values(inits);
  if (split.hasWhole) {
    FailureOr<Values> looped =
        whole(split, [&](Value position, ValueRange carried) {
          return at(position, Value(), carried);
        });
    if (failed(looped))
      return failure();
    values = *looped;
  }
  if (!split.hasRest)
    return values;
  Value rest = arith::SubIOp::create(builder, loc, split.end, split.wholeEnd);
  // Sums over rows are read again soon after they are stored. After a masked
  // store that takes long, even where it stores nothing.
  if (program.getBlockAxes().empty() || program.getAxis(axis).getStaticExtent())
    return at(split.wholeEnd, rest, values);
  Value isSome = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                       rest, index(0));
  return changeWhere(isSome, values,
                     [&] { return at(split.wholeEnd, rest, values); });
}

/// A product that is only added is not rounded before, with a mask or without.
Value TileEmitter::accumulate(vector::CombiningKind kind, Value sum, Value term,
                              Value neutral) {
  auto masked = term.getDefiningOp<arith::SelectOp>();
  if (masked && (!neutral || masked.getFalseValue() != neutral))
    masked = {};
  auto product =
      (masked ? masked.getTrueValue() : term).getDefiningOp<arith::MulFOp>();
  if (kind != vector::CombiningKind::ADD || !product)
    return vector::makeArithReduction(builder, loc, kind, sum, term);
  Value fused = math::FmaOp::create(builder, loc, product.getLhs(),
                                    product.getRhs(), sum);
  if (masked)
    fused = arith::SelectOp::create(builder, loc, masked.getCondition(), fused,
                                    sum);
  return fused;
}

FailureOr<SmallVector<Value>>
TileEmitter::accumulateAll(ArrayRef<vector::CombiningKind> kinds,
                           ValueRange sums, FailureOr<Values> terms,
                           ValueRange neutral) {
  if (failed(terms))
    return failure();
  for (auto [value, sum, kind, zero] :
       llvm::zip_equal(*terms, sums, kinds, neutral))
    value = accumulate(kind, sum, value, zero);
  return terms;
}

FailureOr<SmallVector<Value>>
TileEmitter::sumOver(ArrayRef<int> axes, Step &step, ValueRange neutral,
                     ArrayRef<vector::CombiningKind> kinds, StepFn terms) {
  if (axes.empty())
    return terms(step, neutral);
  // One step is no sum: an axis of extent 1 must not decide how products are
  // rounded.
  int axis = axes.front();
  if (program.getAxis(axis).getStaticExtent() == 1) {
    step.anchor = index(0).getDefiningOp();
    bool isMasked = program.isColumns(axis) && columns > 1;
    Step inner =
        stepInside(step, axis, index(0), isMasked ? index(1) : Value());
    return sumOver(axes.drop_front(), inner, neutral, kinds, terms);
  }
  return walkAxis(
      axis, step, neutral,
      [&](const AxisSplit &split, LoopFn body) {
        if (std::optional<int64_t> steps = stepsOfShare(axes))
          return sharedSums(chainLevels(split.wholeSteps), split, *steps,
                            neutral, kinds, body);
        return blockedLoop(chainLevels(split.mostSteps), index(0),
                           split.wholeEnd, split.width, neutral, kinds, body);
      },
      [&](Step &inner, ValueRange carried) {
        return accumulateAll(
            kinds, carried,
            sumOver(axes.drop_front(), inner, neutral, kinds, terms), neutral);
      });
}

bool TileEmitter::isLong(ArrayRef<int> axes) {
  if (!isCpu || axes.size() != 1 || !program.isColumns(axes.front()))
    return false;
  std::optional<int64_t> most = program.getAxis(axes.front()).getMostExtent();
  return !most || *most > kMaxChain * columns;
}

FailureOr<SmallVector<Value>>
TileEmitter::sumBlocks(int axis, Step &step, ValueRange neutral,
                       ValueRange neutralSums,
                       ArrayRef<vector::CombiningKind> kinds, StepFn terms) {
  step.anchor = index(0).getDefiningOp();
  AxisSplit split = splitAxis(axis);
  auto add = [&](Value position, Value active, ValueRange carried) {
    Step inner = stepInside(step, axis, position, active);
    return accumulateAll(kinds, carried, terms(inner, neutral), neutral);
  };
  AxisSplit blocks = split;
  blocks.width = kMaxChain * split.width;
  blocks.wholeEnd = split.end;
  if (std::optional<int64_t> extent = program.getAxis(axis).getStaticExtent())
    blocks.wholeSteps = llvm::divideCeil(*extent, blocks.width);
  auto sumBlock = [&](Value start, ValueRange carried) -> FailureOr<Values> {
    Value next =
        arith::AddIOp::create(builder, loc, start, index(blocks.width));
    FailureOr<Values> sums = forLoop(
        start, arith::MinUIOp::create(builder, loc, next, split.wholeEnd),
        split.width, neutral, [&](Value position, ValueRange chains) {
          return add(position, Value(), chains);
        });
    if (succeeded(sums) && split.hasRest)
      sums = addRest(split, next, *sums, add);
    if (failed(sums))
      return failure();
    for (auto [sum, total, zero, kind] :
         llvm::zip_equal(*sums, carried, neutralSums, kinds)) {
      Value folded = foldColumns(kind, sum, zero);
      sum = vector::makeArithReduction(builder, loc, kind, total, folded);
    }
    return sums;
  };
  // A block is a chain of its own.
  int64_t levels =
      blocks.wholeSteps ? chainLevels(blocks.wholeSteps) : chainLevels({}) - 1;
  if (std::optional<int64_t> steps = stepsOfShare({axis}))
    return sharedSums(levels, blocks, *steps / kMaxChain, neutralSums, kinds,
                      sumBlock);
  return treeLoop(levels, index(0), split.end, blocks.width, neutralSums, kinds,
                  sumBlock);
}

/// `sums` and what whole vectors leave, if they leave anything and the block
/// before `next` is the last.
FailureOr<SmallVector<Value>> TileEmitter::addRest(const AxisSplit &split,
                                                   Value next, ValueRange sums,
                                                   RestFn add) {
  Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge,
                                       next, split.end);
  Value isSome = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                       split.wholeEnd, split.end);
  isLast = arith::AndIOp::create(builder, loc, isLast, isSome);
  return changeWhere(isLast, sums, [&] {
    Value rest = arith::SubIOp::create(builder, loc, split.end, split.wholeEnd);
    return add(split.wholeEnd, rest, sums);
  });
}

/// The columns of a sum combined: one value a row.
Value TileEmitter::foldColumns(vector::CombiningKind kind, Value sum,
                               Value start) {
  SmallVector<bool> reducedDims(cast<VectorType>(sum.getType()).getRank() - 1,
                                false);
  reducedDims.push_back(true);
  return vector::MultiDimReductionOp::create(builder, loc, sum, start,
                                             reducedDims, kind);
}

/// Whether what is written goes from the last step along `axes` to the first:
/// the last images of a channel are what its sums have left in the caches.
bool TileEmitter::startsFromLast(ArrayRef<int> axes) {
  int axis = axes.front();
  return isCpu && axes.size() > 1 && !program.isColumns(axis) &&
         program.getAxis(axis).isReduced;
}

FailureOr<SmallVector<Value>> TileEmitter::writeOver(ArrayRef<int> axes,
                                                     unsigned depth, Step &step,
                                                     ValueRange sources,
                                                     ValueRange destinations) {
  Values written(destinations), inner, innerDestinations;
  SmallVector<unsigned> innerNumbers;
  for (auto [number, source] : llvm::enumerate(sources)) {
    if (program.getWrittenAxes(source).size() > depth) {
      inner.push_back(source);
      innerDestinations.push_back(destinations[number]);
      innerNumbers.push_back(number);
      continue;
    }
    FailureOr<Vectorized> value =
        isRowSum(source) ? addRows(source, destinations[number], step)
                         : get(source, step);
    if (failed(value))
      return failure();
    written[number] = write(*value, source, destinations[number], step);
  }
  if (inner.empty())
    return written;
  FailureOr<Values> innerWritten = walkAxis(
      axes[depth], step, innerDestinations,
      [&](const AxisSplit &split, LoopFn body) {
        std::optional<int64_t> steps = stepsOfShare(axes.drop_front(depth));
        if (steps && areCutBy(axes[depth], inner))
          return sharedWrites(axes[depth], split, *steps, inner,
                              innerDestinations, body);
        if (!startsFromLast(axes.drop_front(depth)))
          return forLoop(index(0), split.wholeEnd, split.width,
                         innerDestinations, body);
        Value last =
            builder.createOrFold<arith::SubIOp>(loc, split.wholeEnd, index(1));
        return forLoop(index(0), split.wholeEnd, split.width, innerDestinations,
                       [&](Value number, ValueRange carried) {
                         return body(
                             arith::SubIOp::create(builder, loc, last, number),
                             carried);
                       });
      },
      [&](Step &next, ValueRange carried) {
        return writeOver(axes, depth + 1, next, inner, carried);
      });
  if (failed(innerWritten))
    return failure();
  for (auto [number, value] : llvm::zip_equal(innerNumbers, *innerWritten))
    written[number] = value;
  return written;
}
