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
