//===- VectorizeRepeats.cpp - Sums that repeat others -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums about a mean repeat those about a sample of it that turns out to be as
// good. Where sums are a sweep, a loop goes over it once or twice; where they
// are a few registers, or threads share them, a branch takes them again.
//
//===----------------------------------------------------------------------===//

#include "TileEmitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::norm;

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

/// The body of the loop: the sums about its arguments, and whether they lead to
/// other values than these. Sets `values` to the better ones, in the form that
/// they had, and what `sums` are, which leave the loop.
FailureOr<Value> TileEmitter::sumAbout(ValueRange arguments,
                                       ArrayRef<linalg::GenericOp> sums,
                                       ArrayRef<std::pair<Value, Value>> pairs,
                                       SmallVectorImpl<Vectorized> &values) {
  Value isSecond = arguments.back();
  for (auto [pair, value, argument] :
       llvm::zip(pairs, values, arguments.drop_back())) {
    value.value = argument;
    base.cache[stripTensorCasts(pair.first)] = value;
  }
  FailureOr<SmallVector<Vectorized>> computed = computeSums(sums);
  if (failed(computed))
    return failure();
  keepResults(sums, *computed);
  for (auto [pair, value] : llvm::zip_equal(pairs, values)) {
    FailureOr<Vectorized> better = get(pair.second, base);
    if (failed(better))
      return failure();
    Value found = broadcast(*better, value.hasRows, value.hasColumns).value;
    value.value =
        arith::SelectOp::create(builder, loc, isSecond, value.value, found);
    base.cache[stripTensorCasts(pair.second)] = value;
  }
  FailureOr<Value> changed = differ(pairs);
  if (failed(changed))
    return failure();
  llvm::append_range(values, *computed);
  Value isFirst = arith::XOrIOp::create(builder, loc, isSecond, boolean(true));
  return Value(arith::AndIOp::create(builder, loc, isFirst, *changed));
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
  inits.push_back(boolean(false));

  // What is computed inside is not there outside.
  auto outside = base.cache;
  OperationState state(loc, scf::WhileOp::getOperationName());
  Region *before = state.addRegion(), *after = state.addRegion();
  auto startBlock = [&](Region *region, TypeRange types) {
    SmallVector<Location> locs(types.size(), loc);
    return builder.createBlock(region, {}, types, locs);
  };
  {
    OpBuilder::InsertionGuard guard(builder);
    Block *block = startBlock(before, ValueRange(inits).getTypes());
    FailureOr<Value> isAgain =
        sumAbout(block->getArguments(), sums, pairs, values);
    if (failed(isAgain))
      return failure();
    auto results = llvm::map_to_vector(values, [](auto &v) { return v.value; });
    scf::ConditionOp::create(builder, loc, *isAgain, results);
    state.addTypes(ValueRange(results).getTypes());
    block = startBlock(after, state.types);
    Values next(block->getArguments().take_front(pairs.size()));
    next.push_back(boolean(true));
    scf::YieldOp::create(builder, loc, next);
  }
  base.cache = std::move(outside);
  state.addOperands(inits);
  for (auto [value, result] :
       llvm::zip_equal(values, builder.create(state)->getResults()))
    value.value = result;
  for (auto [pair, value] : llvm::zip(pairs, values))
    base.cache[stripTensorCasts(pair.second)] = value;
  keepResults(repetition, ArrayRef(values).drop_front(pairs.size()));
  return success();
}

/// `known`, which the sums of an earlier sweep are, or `sums` where what these
/// read differs.
FailureOr<SmallVector<Vectorized>>
TileEmitter::sumWhereOther(ArrayRef<linalg::GenericOp> sums,
                           ArrayRef<std::pair<Value, Value>> pairs,
                           ArrayRef<Vectorized> known) {
  FailureOr<Value> changed = differ(pairs);
  if (failed(changed))
    return failure();
  auto valuesOf = [](ArrayRef<Vectorized> list) {
    return llvm::map_to_vector(list, [](auto &v) { return v.value; });
  };
  auto ifOp =
      scf::IfOp::create(builder, loc, ValueRange(valuesOf(known)).getTypes(),
                        *changed, /*withElseRegion=*/true);
  // What is computed inside is not there outside.
  auto outside = base.cache;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(ifOp.thenBlock());
  FailureOr<SmallVector<Vectorized>> values = computeSums(sums);
  base.cache = std::move(outside);
  if (failed(values))
    return failure();
  scf::YieldOp::create(builder, loc, valuesOf(*values));
  builder.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(builder, loc, valuesOf(known));
  for (auto [value, result] : llvm::zip_equal(*values, ifOp.getResults()))
    value.value = result;
  return values;
}

/// Computes the results of reductions over the same axes in one sweep, or takes
/// them from an earlier one that they all repeat.
LogicalResult TileEmitter::emitSums(ArrayRef<linalg::GenericOp> sums) {
  if (std::optional<Repetition> repetition = findRepetition(program, sums);
      repetition && !isSplit && !program.getReducedAxes(sums.front()).empty() &&
      onlyLeadTo(sums, repetition->pairs))
    return emitRepeatedSums(sums, repetition->ops, repetition->pairs);

  bool areKnown = true;
  SmallVector<std::pair<Value, Value>> pairs;
  SmallVector<Vectorized> known;
  for (linalg::GenericOp op : sums) {
    std::optional<EarlierReduction> match = findRepeated(program, op);
    areKnown &= match.has_value();
    if (!match)
      continue;
    llvm::append_range(pairs, match->pairs);
    for (Value result : match->op->getResults())
      known.push_back(base.cache.lookup(result));
  }
  FailureOr<SmallVector<Vectorized>> values =
      areKnown && !pairs.empty() ? sumWhereOther(sums, pairs, known)
                                 : computeSums(sums);
  if (failed(values))
    return failure();
  keepResults(sums, *values);
  return success();
}
