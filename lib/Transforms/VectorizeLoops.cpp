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

/// How many levels of loops keep chains of `steps` additions within kMaxChain.
static int64_t chainLevels(std::optional<int64_t> steps) {
  // A run-time count gets the levels that cover 2^25 steps; outer ones that
  // run once add the neutral element and change nothing.
  if (!steps)
    return 5;
  int64_t levels = 1;
  for (int64_t rest = *steps; rest > kMaxChain;
       rest = llvm::divideCeil(rest, kMaxChain))
    ++levels;
  return levels;
}

FailureOr<SmallVector<Value>>
TileEmitter::blockedLoop(int64_t levels, Value lower, Value upper, int64_t step,
                         ValueRange inits, ValueRange neutral,
                         ArrayRef<vector::CombiningKind> kinds, LoopFn body) {
  if (levels == 1)
    return forLoop(lower, upper, step, inits, body);
  int64_t span = step;
  for (int64_t level = 1; level < levels; ++level)
    span *= kMaxChain;
  return forLoop(
      lower, upper, span, inits,
      [&](Value start, ValueRange carried) -> FailureOr<Values> {
        Value end = arith::MinUIOp::create(
            builder, loc,
            arith::AddIOp::create(builder, loc, start, index(span)), upper);
        FailureOr<Values> block = blockedLoop(levels - 1, start, end, step,
                                              neutral, neutral, kinds, body);
        if (failed(block))
          return failure();
        for (auto [value, sum, kind] : llvm::zip_equal(*block, carried, kinds))
          value = vector::makeArithReduction(builder, loc, kind, sum, value);
        return block;
      });
}

FailureOr<SmallVector<Value>> TileEmitter::shortOrBlocked(
    int64_t levels, const AxisSplit &split, ValueRange neutral,
    ArrayRef<vector::CombiningKind> kinds, LoopFn body) {
  Value isShort =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule,
                            split.wholeEnd, index(kMaxChain * split.width));
  auto ifOp = scf::IfOp::create(builder, loc, TypeRange(neutral), isShort,
                                /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  for (int64_t depth : {int64_t(1), levels}) {
    builder.setInsertionPointToStart(depth == 1 ? ifOp.thenBlock()
                                                : ifOp.elseBlock());
    FailureOr<Values> sums =
        blockedLoop(depth, index(0), split.wholeEnd, split.width, neutral,
                    neutral, kinds, body);
    if (failed(sums))
      return failure();
    scf::YieldOp::create(builder, loc, *sums);
  }
  return Values(ifOp.getResults());
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
  auto ifOp = scf::IfOp::create(builder, loc, TypeRange(ValueRange(values)),
                                isSome, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(ifOp.thenBlock());
  FailureOr<Values> last = at(split.wholeEnd, rest, values);
  if (failed(last))
    return failure();
  scf::YieldOp::create(builder, loc, *last);
  builder.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(builder, loc, values);
  return Values(ifOp.getResults());
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
        int64_t levels = chainLevels(split.mostSteps);
        if (!split.wholeSteps && levels > 1 && isCpu)
          return shortOrBlocked(levels, split, neutral, kinds, body);
        return blockedLoop(levels, index(0), split.wholeEnd, split.width,
                           neutral, neutral, kinds, body);
      },
      [&](Step &inner, ValueRange carried) -> FailureOr<Values> {
        FailureOr<Values> values =
            sumOver(axes.drop_front(), inner, neutral, kinds, terms);
        if (failed(values))
          return failure();
        for (auto [value, sum, kind, zero] :
             llvm::zip_equal(*values, carried, kinds, neutral))
          value = accumulate(kind, sum, value, zero);
        return values;
      });
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
