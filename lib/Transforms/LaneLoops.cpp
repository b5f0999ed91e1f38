//===- LaneLoops.cpp - Loops over lanes, groups and ranges -----*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops that TileLanes.cpp is about, each around tiles that it makes.
//
//===----------------------------------------------------------------------===//

#include "LaneTiler.h"

#include "TileNeighbours.h"
#include "TileProgram.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void LaneTiler::record(Value value, Value computed) {
  done[value] = computed;
  for (Operation *user : value.getUsers()) {
    if (!isReshape(user))
      continue;
    Value source = computed;
    if (source.getType() != value.getType())
      source = tensor::CastOp::create(rewriter, loc, value.getType(), source);
    IRMapping mapping;
    mapping.map(value, source);
    done[user->getResult(0)] = rewriter.clone(*user, mapping)->getResult(0);
  }
}

/// What ops compute for others.
SmallVector<Value> LaneTiler::valuesReadAfter(ArrayRef<linalg::GenericOp> ops) {
  SmallVector<Value> values;
  for (linalg::GenericOp generic : ops)
    for (Value result : generic->getResults())
      if (llvm::is_contained(results, result) ||
          llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !llvm::is_contained(ops, user);
          }))
        values.push_back(result);
  return values;
}

/// Computes ops over the kept axes, on lanes of them.
void LaneTiler::keepLanes(ArrayRef<linalg::GenericOp> ops) {
  SmallVector<Value> values = valuesReadAfter(ops), destinations;
  for (Value value : values)
    destinations.push_back(emptyOf(value, extents(kept)));
  LaneLoop lanes = LaneLoop::create(rewriter, loc, extents(kept), destinations,
                                    laneOptions());
  Tile tile = wholeTile();
  for (auto [axis, offset, size] :
       llvm::zip_equal(kept, lanes.offsets, lanes.sizes)) {
    tile.offsets[axis] = offset;
    tile.sizes[axis] = size;
  }
  fill(lanes.loop, ops, values, tile);
}

/// Computes what groups have, from their channels and over these again, a few
/// groups at a time.
void LaneTiler::keepGroups(ArrayRef<linalg::GenericOp> ops) {
  SmallVector<Value> values = valuesReadAfter(ops), destinations;
  for (Value value : values)
    destinations.push_back(emptyOf(value, extents(axesOf(value))));
  int64_t rows = kAppliedRows, columns = strategy.getColumns();
  while (op.getNumGroups() % rows != 0)
    rows /= 2;
  if (std::optional<int64_t> channels =
          getConstantIntValue(domain[withinGroups.back()].size))
    columns = std::min<int64_t>(
        columns, llvm::PowerOf2Ceil(std::max<int64_t>(*channels, 1)));
  Sizes steps = repeat(1, groups.size());
  steps.back() = rewriter.getIndexAttr(rows);
  auto loop = scf::ForallOp::create(rewriter, loc, repeat(0, groups.size()),
                                    extents(groups), steps, destinations,
                                    /*mapping=*/std::nullopt);
  loop->setAttr(kStrategyAttrName,
                CpuStrategyAttr::get(rewriter.getContext(), rows, columns,
                                     strategy.getParallel(), /*range=*/0,
                                     kSerialBytes,
                                     /*stream_bytes=*/0, /*prefetch=*/0,
                                     /*split=*/false));
  Tile tile = wholeTile();
  for (auto [axis, at, step] :
       llvm::zip_equal(groups, loop.getInductionVars(), steps)) {
    tile.offsets[axis] = at;
    tile.sizes[axis] = step;
  }
  fill(loop, ops, values, tile);
}

/// Computes `ops` in a loop that has room for tiles of `values`.
void LaneTiler::fill(scf::ForallOp loop, ArrayRef<linalg::GenericOp> ops,
                     ArrayRef<Value> values, Tile &tile) {
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(loop.getTerminator());
    for (linalg::GenericOp generic : ops)
      if (!tile.made.contains(generic->getResult(0)))
        cloneOn(generic, tile);
    for (auto [value, argument] :
         llvm::zip_equal(values, loop.getRegionIterArgs())) {
      SmallVector<int64_t> axes = axesOf(value);
      insert(tile.made.lookup(value), argument, pick(tile.offsets, axes, 0),
             pick(tile.sizes, axes, 1));
    }
  }
  for (auto [value, result] : llvm::zip_equal(values, loop.getResults()))
    record(value, result);
}

/// Sums over all rows: those of each range in a loop, in `memory` where there
/// is any, then merged into `destinations`.
SmallVector<Value> LaneTiler::sumRanges(ArrayRef<linalg::GenericOp> sums,
                                        ValueRange memory,
                                        ValueRange destinations) {
  SmallVector<Value> values;
  for (linalg::GenericOp generic : sums)
    llvm::append_range(values, generic->getResults());
  size_t numAxes = reduced.size();
  SmallVector<Value> partials(memory);
  if (partials.empty()) {
    Sizes shape = ranges.counts;
    llvm::append_range(shape, extents(kept));
    for (Value value : values)
      partials.push_back(emptyOf(value, shape));
  }
  Sizes upper = extents(outer);
  llvm::append_range(upper, ranges.counts);
  auto loop = scf::ForallOp::create(rewriter, loc, repeat(0, above.size()),
                                    upper, repeat(1, above.size()), partials,
                                    /*mapping=*/std::nullopt);
  loop->setAttr(
      kStrategyAttrName,
      CpuStrategyAttr::get(
          rewriter.getContext(), kLeafRows,
          std::min(strategy.getColumns(), kMostTileElements / kLeafRows),
          strategy.getParallel(), strategy.getRange(),
          strategy.getSerialBytes(), /*stream_bytes=*/0, strategy.getPrefetch(),
          /*split=*/false));
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(loop.getTerminator());
    Tile tile = wholeTile();
    SmallVector<Value> at = loop.getInductionVars();
    for (int64_t axis : outer) {
      tile.offsets[axis] = at[axis];
      tile.sizes[axis] = rewriter.getIndexAttr(1);
    }
    ValueRange numbers = ValueRange(at).drop_front(outer.size());
    ranges.place(rewriter, loc, numbers, domain, tile.offsets, tile.sizes);
    for (linalg::GenericOp generic : sums)
      cloneOn(generic, tile);
    Sizes offsets = llvm::to_vector_of<OpFoldResult>(numbers),
          sizes = repeat(1, numAxes);
    llvm::append_range(offsets, pick(tile.offsets, kept, 0));
    llvm::append_range(sizes, pick(tile.sizes, kept, 1));
    for (auto [value, argument] :
         llvm::zip_equal(values, loop.getRegionIterArgs()))
      insert(tile.made.lookup(value), argument, offsets, sizes);
  }
  if (memory.empty())
    for (auto [value, partial] : llvm::zip_equal(values, loop.getResults()))
      partialsOf[value] = partial;
  return mergeRanges(rewriter, loc, loop.getResults(), numAxes, destinations,
                     laneOptions());
}

bool LaneTiler::matchRepeated(ArrayRef<linalg::GenericOp> sums,
                              SmallVectorImpl<std::pair<Value, Value>> &pairs,
                              SmallVectorImpl<Value> &earlier) {
  for (linalg::GenericOp sum : sums) {
    auto repeats = [&](linalg::GenericOp other) {
      return levels[other] + 1 == levels[sum] && isSum(other) &&
             other.getIndexingMaps() == sum.getIndexingMaps() &&
             other.getNumDpsInputs() == sum.getNumDpsInputs() &&
             OperationEquivalence::isRegionEquivalentTo(
                 &other.getRegion(), &sum.getRegion(),
                 OperationEquivalence::IgnoreLocations);
    };
    auto *found = llvm::find_if(program, repeats);
    if (found == program.end())
      return false;
    for (auto [one, other] :
         llvm::zip_equal(found->getDpsInputs(), sum.getDpsInputs())) {
      Value a = stripTensorCasts(one), b = stripTensorCasts(other);
      if (a == b)
        continue;
      if (!done.contains(a) || !done.contains(b) ||
          !isa<FloatType>(getElementTypeOrSelf(a)))
        return false;
      pairs.push_back({done.lookup(a), done.lookup(b)});
    }
    llvm::append_range(earlier, found->getResults());
  }
  return !pairs.empty();
}

/// Whether any of the pairs of tensors over the kept axes differs.
Value LaneTiler::differ(ArrayRef<std::pair<Value, Value>> pairs) {
  Type i32 = rewriter.getI32Type();
  Value zero =
      arith::ConstantOp::create(rewriter, loc, rewriter.getI32IntegerAttr(0));
  Value flag = tensor::EmptyOp::create(rewriter, loc, ArrayRef<int64_t>(), i32);
  auto loop = scf::ForallOp::create(rewriter, loc, repeat(0, 1), repeat(1, 1),
                                    repeat(1, 1), flag,
                                    /*mapping=*/std::nullopt);
  loop->setAttr(kStrategyAttrName,
                CpuStrategyAttr::get(rewriter.getContext(), /*rows=*/1,
                                     strategy.getColumns(), /*parallel=*/false,
                                     /*range=*/0, /*serial_bytes=*/0,
                                     /*stream_bytes=*/0, /*prefetch=*/0,
                                     /*split=*/false));
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(loop.getTerminator());
    SmallVector<Value> inputs;
    for (auto [a, b] : pairs)
      inputs.append({a, b});
    Value start =
        tensor::EmptyOp::create(rewriter, loc, ArrayRef<int64_t>(), i32);
    start = linalg::FillOp::create(rewriter, loc, zero, start).getResult(0);
    size_t rank = kept.size();
    SmallVector<AffineMap> maps(inputs.size(),
                                rewriter.getMultiDimIdentityMap(rank));
    maps.push_back(AffineMap::get(rank, 0, rewriter.getContext()));
    auto any = linalg::GenericOp::create(
        rewriter, loc, start.getType(), inputs, start, maps,
        SmallVector<utils::IteratorType>(rank, utils::IteratorType::reduction),
        [&](OpBuilder &b, Location bodyLoc, ValueRange in) {
          Value term;
          for (size_t i = 0; i + 1 < in.size(); i += 2) {
            // A NaN differs from itself: then sums are computed again.
            Value differs = arith::CmpFOp::create(
                b, bodyLoc, arith::CmpFPredicate::UNE, in[i], in[i + 1]);
            term = term ? arith::OrIOp::create(b, bodyLoc, term, differs)
                              .getResult()
                        : differs;
          }
          Value wide = arith::ExtUIOp::create(b, bodyLoc, i32, term);
          linalg::YieldOp::create(
              b, bodyLoc,
              arith::OrIOp::create(b, bodyLoc, in.back(), wide).getResult());
        });
    insert(any.getResult(0), loop.getRegionIterArgs().front(), {}, {});
  }
  Value any =
      tensor::ExtractOp::create(rewriter, loc, loop.getResult(0), ValueRange());
  return arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ne, any,
                               zero);
}

/// Sums over all rows, or takes earlier ones that they repeat.
void LaneTiler::sumRows(ArrayRef<linalg::GenericOp> sums) {
  SmallVector<std::pair<Value, Value>> pairs;
  SmallVector<Value> earlier, totals;
  if (!matchRepeated(sums, pairs, earlier)) {
    SmallVector<Value> destinations;
    for (linalg::GenericOp generic : sums)
      for (Value result : generic->getResults())
        destinations.push_back(emptyOf(result, extents(kept)));
    totals = sumRanges(sums, /*memory=*/{}, destinations);
  } else {
    SmallVector<Value> memory;
    for (Value value : earlier) {
      totals.push_back(done.lookup(value));
      memory.push_back(partialsOf.lookup(value));
    }
    Value any = differ(pairs);
    auto again = scf::IfOp::create(rewriter, loc, TypeRange(ValueRange(totals)),
                                   any, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(again.elseBlock());
    scf::YieldOp::create(rewriter, loc, totals);
    rewriter.setInsertionPointToStart(again.thenBlock());
    scf::YieldOp::create(rewriter, loc, sumRanges(sums, memory, totals));
    totals = llvm::to_vector_of<Value>(again.getResults());
  }
  const Value *next = totals.begin();
  for (linalg::GenericOp generic : sums)
    for (Value result : generic->getResults())
      record(result, *next++);
}

/// Computes all but what has all axes, level by level.
void LaneTiler::sumInRanges() {
  ranges = RowRanges::cut(rewriter, loc, reduced, domain,
                          {strategy.getRange(),
                           std::min(kFewestLaneRows, strategy.getRange()),
                           kLeafRows, kLaneChain});
  int last = 0;
  for (linalg::GenericOp generic : program)
    last = std::max(last, levels[generic]);
  for (int level = 0; level <= last; ++level) {
    Ops keptOps, groupOps, sums;
    for (linalg::GenericOp generic : program)
      if (levels[generic] == level && !isFull(generic))
        (isSum(generic)        ? sums
         : isOfGroups(generic) ? groupOps
                               : keptOps)
            .push_back(generic);
    for (const Ops &group : groupByTensors(keptOps, kept.size()))
      keepLanes(group);
    for (const Ops &group : groupByTensors(groupOps, groups.size()))
      keepGroups(group);
    for (const Ops &group : groupByTensors(sums, all.size()))
      sumRows(group);
  }
}

/// The same, in tiles of lanes with all of their rows where these are few.
void LaneTiler::sumFewOrMany() {
  Ops ops;
  llvm::copy_if(program, std::back_inserter(ops),
                [&](linalg::GenericOp generic) { return !isFull(generic); });
  SmallVector<Value> values = valuesReadAfter(ops);
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(extents(kept), dynamic, shape);
  SmallVector<Type> types = llvm::map_to_vector(values, [&](Value v) -> Type {
    return RankedTensorType::get(shape, getElementTypeOrSelf(v.getType()));
  });
  Value rows = arith::ConstantIndexOp::create(rewriter, loc, 1);
  for (OpFoldResult extent : extents(reduced))
    rows = rewriter.createOrFold<arith::MulIOp>(
        loc, rows, getValueOrCreateConstantIndexOp(rewriter, loc, extent));
  Value isFew = arith::CmpIOp::create(
      rewriter, loc, arith::CmpIPredicate::ult, rows,
      arith::ConstantIndexOp::create(rewriter, loc, kFewestRangedRows));
  auto either = scf::IfOp::create(rewriter, loc, types, isFew,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(rewriter);
  for (Block *block : {either.thenBlock(), either.elseBlock()}) {
    rewriter.setInsertionPointToStart(block);
    if (block == either.elseBlock())
      sumInRanges();
    else
      for (const Ops &group : groupByTensors(ops, kept.size()))
        keepLanes(group);
    scf::YieldOp::create(
        rewriter, loc,
        llvm::map_to_vector(values, [&](Value v) { return done.lookup(v); }));
    done.clear();
  }
  for (auto [value, result] : llvm::zip_equal(values, either.getResults()))
    done[value] = result;
}

/// The results that have all axes, some rows at a time, the last ones first.
scf::ForallOp LaneTiler::apply() {
  SmallVector<Value> values, destinations;
  for (Value result : results) {
    result = stripTensorCasts(result);
    linalg::GenericOp producer = producerOf(result);
    if (!producer || !isFull(producer) || llvm::is_contained(values, result))
      continue;
    values.push_back(result);
    destinations.push_back(emptyOf(result, extents(all)));
  }
  std::optional<int64_t> extent =
      getConstantIntValue(domain[reduced.back()].size);
  int64_t rows = std::max<int64_t>(strategy.getRows(), 1);
  while (rows > 1 && (!extent || *extent % rows != 0))
    --rows;
  Sizes steps = repeat(1, above.size());
  steps.back() = rewriter.getIndexAttr(rows);
  auto loop = scf::ForallOp::create(rewriter, loc, repeat(0, above.size()),
                                    extents(above), steps, destinations,
                                    /*mapping=*/std::nullopt);
  loop->setAttr(
      kStrategyAttrName,
      CpuStrategyAttr::get(rewriter.getContext(), rows, strategy.getColumns(),
                           strategy.getParallel(), /*range=*/0,
                           strategy.getSerialBytes(), strategy.getStreamBytes(),
                           strategy.getPrefetch(), /*split=*/false));
  loop->setAttr(kMirroredAttrName, rewriter.getUnitAttr());
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(loop.getTerminator());
  Tile tile = wholeTile();
  AffineExpr d0 = rewriter.getAffineDimExpr(0),
             s0 = rewriter.getAffineSymbolExpr(0);
  for (auto [axis, at, step] :
       llvm::zip_equal(above, loop.getInductionVars(), steps)) {
    tile.offsets[axis] = affine::makeComposedFoldedAffineApply(
        rewriter, loc,
        AffineMap::get(1, 1, s0 - *getConstantIntValue(step) - d0),
        {OpFoldResult(at), domain[axis].size});
    tile.sizes[axis] = step;
  }
  for (auto [value, argument] :
       llvm::zip_equal(values, loop.getRegionIterArgs())) {
    if (!tile.made.contains(value))
      cloneOn(producerOf(value), tile);
    insert(tile.made.lookup(value), argument, pick(tile.offsets, all, 0),
           pick(tile.sizes, all, 1));
  }
  for (auto [value, result] : llvm::zip_equal(values, loop.getResults()))
    done[value] = result;
  return loop;
}
