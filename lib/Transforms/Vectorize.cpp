//===- Vectorize.cpp - norm-vectorize -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass, and the order in which a tile's program is emitted
// (TileEmitter.h).
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "MapToRegisters.h"
#include "Norm/IR/NormOps.h"
#include "TileEmitter.h"
#include "TilePlan.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/Utils/VectorUtils.h"

namespace mlir::norm {
#define GEN_PASS_DEF_VECTORIZENORMTILESPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// Sweeps
//===----------------------------------------------------------------------===//

namespace {
/// One result of a reduction and how it is accumulated.
struct Accumulation {
  linalg::GenericOp op;
  unsigned result;
  vector::CombiningKind kind;
  TypedAttr neutral;
  bool hasRows, hasColumns;
};
} // namespace

FailureOr<std::pair<vector::CombiningKind, TypedAttr>>
norm::matchCombiner(linalg::GenericOp op, unsigned result) {
  SmallVector<Operation *> combiners;
  Value term = matchReduction(op.getRegionOutputArgs(), result, combiners);
  if (!term || combiners.size() != 1)
    return op.emitError("cannot vectorize this reduction in a tile: expected "
                        "one combining op per result");
  std::optional<vector::CombiningKind> kind =
      linalg::getCombinerOpKind(combiners.front());
  std::optional<TypedAttr> neutral =
      arith::getNeutralElement(combiners.front());
  if (!kind || !neutral)
    return op.emitError("cannot vectorize this reduction in a tile: '")
           << combiners.front()->getName() << "' is not a known combiner";
  return std::make_pair(*kind, *neutral);
}

LogicalResult TileEmitter::emitReductions(int level) {
  // Those that reduce the same axes share a sweep.
  SmallVector<SmallVector<linalg::GenericOp>> groups;
  for (linalg::GenericOp op : program.getOps()) {
    if (!program.isReduction(op) || program.isRowSum(op) ||
        program.getLevel(op) != level || base.cache.contains(op->getResult(0)))
      continue;
    SmallVector<int> axes = program.getReducedAxes(op);
    auto *group = llvm::find_if(groups, [&](ArrayRef<linalg::GenericOp> other) {
      return program.getReducedAxes(other.front()) == axes;
    });
    if (group == groups.end())
      group = groups.insert(groups.end(), SmallVector<linalg::GenericOp>());
    group->push_back(op);
  }
  for (ArrayRef<linalg::GenericOp> group : groups)
    if (failed(emitSums(group)))
      return failure();
  return success();
}

namespace {
/// An earlier reduction with the same terms, but for some values over the kept
/// axes: pairs of what it reads and what the later one reads in its place.
struct EarlierReduction {
  linalg::GenericOp op;
  SmallVector<std::pair<Value, Value>> pairs;
};
} // namespace

static bool isSameFill(const TileProgram &program, Value a, Value b) {
  Attribute x, y;
  Value scalarA = program.getFillValue(a), scalarB = program.getFillValue(b);
  return scalarA && scalarB && matchPattern(scalarA, m_Constant(&x)) &&
         matchPattern(scalarB, m_Constant(&y)) && x == y;
}

/// Whether `op` repeats `earlier`, and what it reads instead.
static std::optional<EarlierReduction> matchRepeated(const TileProgram &program,
                                                     linalg::GenericOp earlier,
                                                     linalg::GenericOp op) {
  if (earlier.getNumOperands() != op.getNumOperands() ||
      earlier.getNumDpsInits() != op.getNumDpsInits() ||
      earlier.getIndexingMaps() != op.getIndexingMaps() ||
      program.getReducedAxes(earlier) != program.getReducedAxes(op) ||
      !OperationEquivalence::isRegionEquivalentTo(
          &earlier.getRegion(), &op.getRegion(),
          OperationEquivalence::IgnoreLocations))
    return std::nullopt;
  for (auto [a, b] : llvm::zip_equal(earlier.getDpsInits(), op.getDpsInits()))
    if (!isSameFill(program, a, b))
      return std::nullopt;
  EarlierReduction match{earlier, {}};
  for (auto [a, b] :
       llvm::zip_equal(earlier.getDpsInputs(), op.getDpsInputs())) {
    if (a == b)
      continue;
    if (!isa<RankedTensorType>(a.getType()) || program.isFull(a) ||
        program.isFull(b) || !isa<FloatType>(getElementTypeOrSelf(a)))
      return std::nullopt;
    match.pairs.push_back({a, b});
  }
  return match;
}

static std::optional<EarlierReduction> findRepeated(const TileProgram &program,
                                                    linalg::GenericOp op) {
  for (linalg::GenericOp earlier : program.getOps())
    if (program.isReduction(earlier) &&
        program.getLevel(earlier) < program.getLevel(op))
      if (auto match = matchRepeated(program, earlier, op))
        return match;
  return std::nullopt;
}

namespace {
/// Later sums that repeat others, each of another op, and what they read in
/// place of what.
struct Repetition {
  SmallVector<linalg::GenericOp> ops;
  SmallVector<std::pair<Value, Value>> pairs;
};
} // namespace

/// The repetition of `sums`; nullopt if some are not repeated.
static std::optional<Repetition>
findRepetition(const TileProgram &program, ArrayRef<linalg::GenericOp> sums) {
  Repetition repetition;
  for (linalg::GenericOp op : sums) {
    for (linalg::GenericOp later : program.getOps()) {
      if (!program.isReduction(later) ||
          program.getLevel(later) <= program.getLevel(op))
        continue;
      std::optional<EarlierReduction> match = matchRepeated(program, op, later);
      if (!match || match->pairs.empty())
        continue;
      repetition.ops.push_back(later);
      for (auto pair : match->pairs)
        if (!llvm::is_contained(repetition.pairs, pair))
          repetition.pairs.push_back(pair);
      break;
    }
  }
  if (repetition.ops.size() != sums.size())
    return std::nullopt;
  return repetition;
}

FailureOr<Value> TileEmitter::differ(ArrayRef<std::pair<Value, Value>> pairs) {
  Value any;
  for (auto [a, b] : pairs) {
    FailureOr<Vectorized> x = get(a, base), y = get(b, base);
    if (failed(x) || failed(y))
      return failure();
    bool hasRows = x->hasRows || y->hasRows;
    bool hasColumns = x->hasColumns || y->hasColumns;
    // A NaN differs from itself: then sums are computed again.
    Value changed =
        arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNE,
                              broadcast(*x, hasRows, hasColumns).value,
                              broadcast(*y, hasRows, hasColumns).value);
    if (auto type = dyn_cast<VectorType>(changed.getType())) {
      auto flat = VectorType::get({type.getNumElements()}, builder.getI1Type());
      changed = vector::ReductionOp::create(
          builder, loc, vector::CombiningKind::OR,
          vector::ShapeCastOp::create(builder, loc, flat, changed));
    }
    any = any ? arith::OrIOp::create(builder, loc, any, changed) : changed;
  }
  return any;
}

bool TileEmitter::onlyLeadTo(ArrayRef<linalg::GenericOp> sums,
                             ArrayRef<std::pair<Value, Value>> pairs) {
  SetVector<Operation *> between;
  auto visit = [&](Value tensor) {
    linalg::GenericOp producer = program.getProducer(tensor);
    if (producer && !llvm::is_contained(sums, producer) &&
        !base.cache.contains(stripTensorCasts(tensor)))
      between.insert(producer);
  };
  for (auto [about, better] : pairs)
    visit(better);
  for (unsigned i = 0; i < between.size(); ++i) {
    if (program.isReduction(cast<linalg::GenericOp>(between[i])))
      return false;
    llvm::for_each(between[i]->getOperands(), visit);
  }
  return llvm::all_of(sums, [&](linalg::GenericOp op) {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      return between.contains(user) || isa<tensor::DimOp>(user);
    });
  });
}

void TileEmitter::keepResults(ArrayRef<linalg::GenericOp> ops,
                              ArrayRef<Vectorized> values) {
  const Vectorized *next = values.begin();
  for (linalg::GenericOp op : ops)
    for (Value result : op->getResults())
      base.cache[result] = *next++;
}

LogicalResult
TileEmitter::emitRepeatedSums(ArrayRef<linalg::GenericOp> sums,
                              ArrayRef<linalg::GenericOp> repetition,
                              ArrayRef<std::pair<Value, Value>> pairs) {
  Values inits;
  SmallVector<Vectorized> values;
  for (auto [about, better] : pairs) {
    FailureOr<Vectorized> value = get(about, base);
    if (failed(value))
      return failure();
    values.push_back(*value);
    inits.push_back(value->value);
  }
  inits.push_back(
      arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false)));
  size_t numPairs = pairs.size();
  auto with = [](const Vectorized &form, Value value) {
    return Vectorized{value, form.hasRows, form.hasColumns};
  };

  // What is computed inside is not there outside.
  auto outside = base.cache;
  OperationState state(loc, scf::WhileOp::getOperationName());
  Region *before = state.addRegion(), *after = state.addRegion();
  {
    OpBuilder::InsertionGuard guard(builder);
    auto types = llvm::to_vector(ValueRange(inits).getTypes());
    SmallVector<Location> locs(types.size(), loc);
    Block *block = builder.createBlock(before, {}, types, locs);
    Value isSecond = block->getArguments().back();
    for (size_t i = 0; i < numPairs; ++i)
      base.cache[stripTensorCasts(pairs[i].first)] =
          with(values[i], block->getArgument(i));
    FailureOr<SmallVector<Vectorized>> computed = computeSums(sums);
    if (failed(computed))
      return failure();
    keepResults(sums, *computed);
    for (size_t i = 0; i < numPairs; ++i) {
      FailureOr<Vectorized> better = get(pairs[i].second, base);
      if (failed(better))
        return failure();
      Value found =
          broadcast(*better, values[i].hasRows, values[i].hasColumns).value;
      values[i].value = arith::SelectOp::create(builder, loc, isSecond,
                                                block->getArgument(i), found);
      base.cache[stripTensorCasts(pairs[i].second)] = values[i];
    }
    FailureOr<Value> changed = differ(pairs);
    if (failed(changed))
      return failure();
    Value isFirst = arith::XOrIOp::create(
        builder, loc, isSecond,
        arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true)));
    llvm::append_range(values, *computed);
    Values results =
        llvm::map_to_vector(values, [](auto &v) { return v.value; });
    scf::ConditionOp::create(
        builder, loc, arith::AndIOp::create(builder, loc, isFirst, *changed),
        results);
    state.addTypes(ValueRange(results).getTypes());

    locs.resize(results.size(), loc);
    block = builder.createBlock(after, {}, state.types, locs);
    Values next(block->getArguments().take_front(numPairs));
    next.push_back(
        arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true)));
    scf::YieldOp::create(builder, loc, next);
  }
  base.cache = std::move(outside);
  state.addOperands(inits);
  Operation *loop = builder.create(state);
  for (auto [value, result] : llvm::zip_equal(values, loop->getResults()))
    value.value = result;
  for (size_t i = 0; i < numPairs; ++i)
    base.cache[stripTensorCasts(pairs[i].second)] = values[i];
  keepResults(repetition, ArrayRef(values).drop_front(numPairs));
  return success();
}

/// Computes the results of reductions over the same axes in one sweep, or takes
/// them from an earlier one that they all repeat.
LogicalResult TileEmitter::emitSums(ArrayRef<linalg::GenericOp> sums) {
  SmallVector<EarlierReduction> earlier;
  SmallVector<std::pair<Value, Value>> pairs;
  SmallVector<Vectorized> known;
  for (linalg::GenericOp op : sums)
    if (std::optional<EarlierReduction> match = findRepeated(program, op)) {
      earlier.push_back(*match);
      llvm::append_range(pairs, match->pairs);
      for (Value result : match->op->getResults())
        known.push_back(base.cache.lookup(result));
    }

  if (std::optional<Repetition> repetition = findRepetition(program, sums);
      repetition && !isSplit && !program.getReducedAxes(sums.front()).empty() &&
      onlyLeadTo(sums, repetition->pairs))
    return emitRepeatedSums(sums, repetition->ops, repetition->pairs);

  FailureOr<SmallVector<Vectorized>> values;
  if (earlier.size() != sums.size() || pairs.empty()) {
    values = computeSums(sums);
  } else {
    FailureOr<Value> changed = differ(pairs);
    if (failed(changed))
      return failure();
    auto ifOp = scf::IfOp::create(
        builder, loc,
        llvm::map_to_vector(known, [](auto &v) { return v.value.getType(); }),
        *changed, /*withElseRegion=*/true);
    // What is computed inside is not there outside.
    auto outside = base.cache;
    OpBuilder::InsertionGuard guard(builder);
    auto yield = [&](Block *block, ArrayRef<Vectorized> list) {
      builder.setInsertionPointToEnd(block);
      scf::YieldOp::create(builder, loc, llvm::map_to_vector(list, [](auto &v) {
                             return v.value;
                           }));
    };
    builder.setInsertionPointToStart(ifOp.thenBlock());
    values = computeSums(sums);
    base.cache = std::move(outside);
    if (failed(values))
      return failure();
    yield(ifOp.thenBlock(), *values);
    yield(ifOp.elseBlock(), known);
    for (auto [value, result] : llvm::zip_equal(*values, ifOp.getResults()))
      value.value = result;
  }
  if (failed(values))
    return failure();
  keepResults(sums, *values);
  return success();
}

/// What chains of additions start from: -0, which leaves every first term as it
/// is, where LLVM cannot drop a 0 that would make a 0 of -0. The value that a
/// sum starts from is added last, so the sign of a sum of zeros is its.
static TypedAttr startOfChain(vector::CombiningKind kind, TypedAttr neutral) {
  auto type = dyn_cast<FloatType>(neutral.getType());
  if (kind != vector::CombiningKind::ADD || !type)
    return neutral;
  return FloatAttr::get(
      type, APFloat::getZero(type.getFloatSemantics(), /*Negative=*/true));
}

FailureOr<SmallVector<Vectorized>>
TileEmitter::computeSums(ArrayRef<linalg::GenericOp> ops) {
  SmallVector<int> reducedAxes = program.getReducedAxes(ops.front());
  bool reducesColumns = program.isColumns(reducedAxes.back());
  SmallVector<Accumulation> sums;
  Values neutral, neutralSums;
  SmallVector<vector::CombiningKind> kinds;
  for (linalg::GenericOp op : ops)
    for (OpResult result : op->getResults()) {
      auto combiner = matchCombiner(op, result.getResultNumber());
      if (failed(combiner))
        return failure();
      if (!program.getFillValue(op.getDpsInits()[result.getResultNumber()]))
        return op.emitError("cannot vectorize this reduction in a tile: "
                            "expected a filled destination");
      SmallVector<int> axes = program.getAxesOf(result);
      bool hasRows =
          rowAxis != TileProgram::kNoAxis && llvm::is_contained(axes, rowAxis);
      bool hasColumns =
          reducesColumns || llvm::is_contained(axes, program.getColumnAxis());
      sums.push_back({op, result.getResultNumber(), combiner->first,
                      combiner->second, hasRows, hasColumns});
      kinds.push_back(combiner->first);
      Value start = arith::ConstantOp::create(
          builder, loc, startOfChain(combiner->first, combiner->second));
      neutral.push_back(broadcast({start}, hasRows, hasColumns).value);
      neutralSums.push_back(broadcast({start}, hasRows, false).value);
    }

  auto terms = [&](Step &step, ValueRange neutrals) -> FailureOr<Values> {
    Values terms;
    SmallVector<Vectorized> current;
    for (auto [number, sum] : llvm::enumerate(sums)) {
      if (sum.result == 0) {
        current.clear();
        if (failed(emitBody(sum.op, step, current)))
          return failure();
      }
      Value term =
          broadcast(current[sum.result], sum.hasRows, sum.hasColumns).value;
      // Columns beyond the tile must not count, whatever a masked lane
      // computed.
      if (step.activeColumns && reducesColumns) {
        SmallVector<bool> dims(sum.hasRows ? 1 : 0, false);
        dims.push_back(true);
        term = arith::SelectOp::create(builder, loc, activeMask(step, dims),
                                       term, neutrals[number]);
      }
      terms.push_back(term);
    }
    return terms;
  };
  bool byBlocks = isLong(reducedAxes);
  FailureOr<Values> totals =
      byBlocks ? sumBlocks(reducedAxes.front(), base, neutral, neutralSums,
                           kinds, terms)
               : sumOver(reducedAxes, base, neutral, kinds, terms);
  if (failed(totals))
    return failure();

  SmallVector<Vectorized> values;
  for (auto [sum, total] : llvm::zip_equal(sums, *totals)) {
    Value init = program.getFillValue(sum.op.getDpsInits()[sum.result]);
    bool isFolded = byBlocks || !reducesColumns;
    Value acc =
        broadcast({init}, sum.hasRows, sum.hasColumns && !reducesColumns).value;
    values.push_back({isFolded ? vector::makeArithReduction(
                                     builder, loc, sum.kind, total, acc)
                               : foldColumns(sum.kind, total, acc),
                      sum.hasRows, sum.hasColumns && !reducesColumns});
  }
  return values;
}

LogicalResult TileEmitter::emitKeptOps(int level) {
  for (linalg::GenericOp op : program.getOps()) {
    if (program.isReduction(op) || program.isFull(op->getResult(0)) ||
        program.getLevel(op) != level || base.cache.contains(op->getResult(0)))
      continue;
    SmallVector<Vectorized> results;
    if (failed(emitBody(op, base, results)))
      return failure();
    for (auto [result, value] : llvm::zip_equal(op->getResults(), results))
      base.cache[result] = value;
  }
  return success();
}

namespace {
/// Outputs that one nest of loops writes: those that vary along its axes or
/// along the outer ones only. By their numbers.
struct OutputNest {
  SmallVector<int> axes;
  SmallVector<unsigned> outputs;
};
} // namespace

/// The outputs that ops of the tile compute; those that vary along no swept
/// axis first.
static SmallVector<OutputNest> groupOutputs(const TileProgram &program) {
  // The longest list of axes makes a nest that shorter ones may join.
  SmallVector<std::pair<int, unsigned>> order;
  for (tensor::ParallelInsertSliceOp output : program.getOutputs()) {
    int numAxes = program.getWrittenAxes(output.getSource()).size();
    order.push_back({-numAxes, order.size()});
  }
  llvm::sort(order);

  SmallVector<OutputNest> nests(1);
  for (auto [size, number] : order) {
    tensor::ParallelInsertSliceOp output = program.getOutputs()[number];
    if (program.getFillValue(output.getSource()))
      continue;
    SmallVector<int> axes = program.getWrittenAxes(output.getSource());
    auto *nest = nests.begin();
    if (!axes.empty())
      nest = llvm::find_if(nests, [&](const OutputNest &nest) {
        return ArrayRef(nest.axes).take_front(axes.size()) == ArrayRef(axes);
      });
    if (nest == nests.end())
      nest = nests.insert(nests.end(), {axes, {}});
    nest->outputs.push_back(number);
  }
  return nests;
}

FailureOr<SmallVector<Value>>
TileEmitter::emitOutputs(ValueRange destinations) {
  Values results(destinations);
  for (OutputNest &nest : groupOutputs(program)) {
    Values sources, targets;
    for (unsigned number : nest.outputs) {
      tensor::ParallelInsertSliceOp output = program.getOutputs()[number];
      sources.push_back(output.getSource());
      targets.push_back(destinations[number]);
    }
    FailureOr<Values> written = writeOver(nest.axes, 0, base, sources, targets);
    if (failed(written))
      return failure();
    for (auto [number, tensor] : llvm::zip_equal(nest.outputs, *written))
      results[number] = tensor;
  }
  return results;
}

/// Erases the ops that the vector form replaces, and makes what asked for the
/// extents of their results ask for the axes'.
void TileEmitter::eraseProgram() {
  OpBuilder::InsertionGuard guard(builder);
  for (Operation &op :
       llvm::make_early_inc_range(loop.getBody()->without_terminator())) {
    auto dim = dyn_cast<tensor::DimOp>(op);
    if (!dim || !program.getProducer(dim.getSource()) ||
        !dim.getConstantIndex())
      continue;
    builder.setInsertionPoint(dim);
    int axis = program.getAxesOf(dim.getSource())[*dim.getConstantIndex()];
    dim.replaceAllUsesWith(extentOf(axis));
    dim.erase();
  }
  for (Operation &op : llvm::make_early_inc_range(
           llvm::reverse(loop.getBody()->getOperations())))
    if (isa<linalg::LinalgOp, tensor::CastOp, tensor::ExtractSliceOp>(op) &&
        isOpTriviallyDead(&op))
      op.erase();
}

FailureOr<SmallVector<Value>>
TileEmitter::emitProgram(int axis, int64_t height, Step start,
                         ValueRange destinations) {
  rowAxis = axis;
  rows = height;
  base = std::move(start);
  // Columns that fit one vector: the tile holds up to C of them.
  if (!program.getAxis(program.getColumnAxis()).isSwept &&
      program.getAxis(program.getColumnAxis()).getStaticExtent() != columns)
    base.activeColumns = extentOf(program.getColumnAxis());

  int last = 0;
  for (linalg::GenericOp op : program.getOps())
    last = std::max(last, program.getLevel(op));
  for (int level = 0; level <= last; ++level)
    if (failed(emitKeptOps(level)) || failed(emitReductions(level)))
      return failure();
  return emitOutputs(destinations);
}

FailureOr<SmallVector<Value>>
TileEmitter::emitRowByRow(ValueRange destinations) {
  FailureOr<Values> rows = forLoop(
      index(0), extentOf(program.getRowAxis()), 1, destinations,
      [&](Value row, ValueRange carried) {
        Step start;
        start.position[program.getRowAxis()] = row;
        return emitProgram(TileProgram::kNoAxis, 1, std::move(start), carried);
      });
  // Passes that look for the loop over rows, not for sweeps, find it.
  if (succeeded(rows) && !rows->empty())
    rows->front().getDefiningOp()->setAttr(kStrategyAttrName,
                                           loop->getAttr(kStrategyAttrName));
  return rows;
}

/// Whether a tile may be taken by vectors of all its rows; null if always. Not
/// if it has fewer rows. Nor if only run time knows how many columns there are,
/// and they are not whole vectors and whole lines: such rows do not start on
/// lines together, are stored past the caches better one by one, and masks
/// for their ends would make the code for several rows twice as long.
Value TileEmitter::needsWholeVectors() {
  int axis = program.getRowAxis();
  int64_t height = program.getVectorRows();
  if (axis == TileProgram::kNoAxis)
    return {};
  Value condition;
  auto require = [&](Value value) {
    condition = condition
                    ? arith::AndIOp::create(builder, loc, condition, value)
                    : value;
  };
  if (!program.getAxis(axis).getStaticExtent())
    require(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                  extentOf(axis), index(height)));
  if (height == 1 || !program.isColumnReduced())
    return condition;
  int64_t bits = 64;
  for (tensor::ParallelInsertSliceOp output : program.getOutputs())
    if (llvm::is_contained(program.getAxesOf(output.getSource()),
                           program.getColumnAxis()))
      bits = std::min<int64_t>(bits,
                               output.getSourceType().getElementTypeBitWidth());
  int64_t unit = std::max<int64_t>(columns, kLineBytes * 8 / bits);
  for (int other = 0; other < program.getNumAxes(); ++other) {
    if (!program.isColumns(other) || program.getAxis(other).getStaticExtent())
      continue;
    Value rest =
        arith::RemUIOp::create(builder, loc, extentOf(other), index(unit));
    require(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, rest,
                                  index(0)));
  }
  return condition;
}

LogicalResult TileEmitter::run() {
  Values destinations;
  for (tensor::ParallelInsertSliceOp output : program.getOutputs()) {
    Value source = output.getSource();
    destinations.push_back(tensor::ExtractSliceOp::create(
        builder, loc, cast<RankedTensorType>(source.getType()),
        output.getDest(), output.getMixedOffsets(), output.getMixedSizes(),
        output.getMixedStrides()));
    // A fill has no axes: it stays one, of what it is to fill.
    if (Value scalar = program.getFillValue(source))
      destinations.back() =
          linalg::FillOp::create(builder, loc, scalar, destinations.back())
              .getResult(0);
    if (isRowSum(source))
      destinations.back() = startRowSum(source, destinations.back());
  }

  int axis = program.getRowAxis();
  int64_t height = program.getVectorRows();
  FailureOr<Values> written;
  bool hasBlocks = !program.getBlockAxes().empty();
  Value isWhole = hasBlocks ? Value() : needsWholeVectors();
  if (hasBlocks) {
    written = emitBlocks(0, TileProgram::kNoAxis, 1, DenseMap<int, Value>(),
                         destinations);
  } else if (!isWhole) {
    written = emitProgram(axis, height, Step(), destinations);
  } else {
    auto ifOp =
        scf::IfOp::create(builder, loc, TypeRange(destinations), isWhole,
                          /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    auto fill = [&](Block *block, auto emit) {
      builder.setInsertionPointToStart(block);
      FailureOr<Values> values = emit();
      if (succeeded(values))
        scf::YieldOp::create(builder, loc, *values);
      return succeeded(values);
    };
    if (!fill(ifOp.thenBlock(),
              [&] {
                columnsAreWhole = height > 1 && program.isColumnReduced();
                auto values = emitProgram(axis, height, Step(), destinations);
                columnsAreWhole = false;
                return values;
              }) ||
        !fill(ifOp.elseBlock(), [&] { return emitRowByRow(destinations); }))
      return failure();
    written = Values(ifOp.getResults());
  }
  if (failed(written))
    return failure();
  for (auto [output, tensor] : llvm::zip(program.getOutputs(), *written))
    tensor::ParallelInsertSliceOp(output).getSourceMutable().assign(tensor);
  if (isSplit)
    keepTilesInOrder();
  eraseProgram();
  return success();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct VectorizeNormTiles
    : public norm::impl::VectorizeNormTilesPassBase<VectorizeNormTiles> {
  void runOnOperation() override {
    SmallVector<scf::ForallOp> loops = findTileLoops(getOperation());
    for (scf::ForallOp loop : loops)
      if (failed(vectorize(loop)))
        return signalPassFailure();
  }

  static LogicalResult vectorize(scf::ForallOp loop) {
    std::optional<TileSizes> sizes =
        TileSizes::get(loop->getAttr(kStrategyAttrName));
    generalizeNamedOps(loop);
    auto hasWork = [](Operation &op) { return isa<linalg::GenericOp>(op); };
    // A tile that is in vector form already.
    if (!sizes || llvm::none_of(loop.getBody()->getOperations(), hasWork))
      return success();
    auto cpu = loop->getAttrOfType<CpuStrategyAttr>(kStrategyAttrName);
    FailureOr<TileProgram> program =
        TileProgram::analyze(loop, sizes->rows, sizes->columns,
                             /*isRange=*/cpu && cpu.getRange() > 0);
    if (failed(program))
      return failure();
    return TileEmitter(*program, loop, sizes->columns).run();
  }

  static void generalizeNamedOps(scf::ForallOp loop) {
    SmallVector<linalg::LinalgOp> named;
    for (Operation &op : loop.getBody()->getOperations())
      if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
        if (!isa<linalg::GenericOp, linalg::FillOp>(op))
          named.push_back(linalgOp);
    IRRewriter rewriter(loop.getContext());
    for (linalg::LinalgOp op : named) {
      rewriter.setInsertionPoint(op);
      (void)linalg::generalizeNamedOp(rewriter, op);
    }
  }
};
} // namespace
