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

#include "Norm/IR/NormOps.h"
#include "TileEmitter.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
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

/// How result number `result` of a reduction combines its terms.
static FailureOr<std::pair<vector::CombiningKind, TypedAttr>>
matchCombiner(linalg::GenericOp op, unsigned result) {
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
  SmallVector<Accumulation> sums;
  Values neutral;
  SmallVector<vector::CombiningKind> kinds;
  for (linalg::GenericOp op : program.getOps()) {
    if (!program.isReduction(op) || program.getLevel(op) != level)
      continue;
    for (OpResult result : op->getResults()) {
      auto combiner = matchCombiner(op, result.getResultNumber());
      if (failed(combiner))
        return failure();
      if (!program.getFillValue(op.getDpsInits()[result.getResultNumber()]))
        return op.emitError("cannot vectorize this reduction in a tile: "
                            "expected a filled destination");
      SmallVector<int> axes = program.getAxesOf(result);
      bool hasRows = program.getRowAxis() != TileProgram::kNoAxis &&
                     llvm::is_contained(axes, program.getRowAxis());
      bool hasColumns = program.isColumnReduced() ||
                        llvm::is_contained(axes, program.getColumnAxis());
      sums.push_back({op, result.getResultNumber(), combiner->first,
                      combiner->second, hasRows, hasColumns});
      kinds.push_back(combiner->first);
      Value zero = arith::ConstantOp::create(builder, loc, combiner->second);
      neutral.push_back(broadcast({zero}, hasRows, hasColumns).value);
    }
  }
  if (sums.empty())
    return success();

  FailureOr<Values> totals = sumOver(
      0, base, neutral, kinds,
      [&](Step &step, ValueRange neutrals) -> FailureOr<Values> {
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
          if (step.activeColumns && program.isColumnReduced()) {
            SmallVector<bool> dims(sum.hasRows ? 1 : 0, false);
            dims.push_back(true);
            term = arith::SelectOp::create(builder, loc, activeMask(step, dims),
                                           term, neutrals[number]);
          }
          terms.push_back(term);
        }
        return terms;
      });
  if (failed(totals))
    return failure();

  for (auto [sum, total] : llvm::zip_equal(sums, *totals)) {
    Value init = program.getFillValue(sum.op.getDpsInits()[sum.result]);
    Vectorized value;
    if (program.isColumnReduced()) {
      Value acc = broadcast({init}, sum.hasRows, false).value;
      SmallVector<bool> reducedDims(sum.hasRows ? 1 : 0, false);
      reducedDims.push_back(true);
      value = {vector::MultiDimReductionOp::create(builder, loc, total, acc,
                                                   reducedDims, sum.kind),
               sum.hasRows, false};
    } else {
      Value acc = broadcast({init}, sum.hasRows, sum.hasColumns).value;
      value = {vector::makeArithReduction(builder, loc, sum.kind, total, acc),
               sum.hasRows, sum.hasColumns};
    }
    base.cache[sum.op->getResult(sum.result)] = value;
  }
  return success();
}

LogicalResult TileEmitter::emitKeptOps(int level) {
  for (linalg::GenericOp op : program.getOps()) {
    if (program.isReduction(op) || program.isFull(op) ||
        program.getLevel(op) != level)
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
/// along the outer ones only.
struct OutputNest {
  SmallVector<int> axes;
  SmallVector<tensor::ParallelInsertSliceOp> outputs;
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
    SmallVector<int> axes = program.getWrittenAxes(output.getSource());
    auto *nest = nests.begin();
    if (!axes.empty())
      nest = llvm::find_if(nests, [&](const OutputNest &nest) {
        return ArrayRef(nest.axes).take_front(axes.size()) == ArrayRef(axes);
      });
    if (nest == nests.end())
      nest = nests.insert(nests.end(), {axes, {}});
    nest->outputs.push_back(output);
  }
  return nests;
}

LogicalResult TileEmitter::emitOutputs() {
  for (OutputNest &nest : groupOutputs(program)) {
    Values sources, destinations;
    SmallVector<tensor::ParallelInsertSliceOp> computed;
    for (tensor::ParallelInsertSliceOp output : nest.outputs) {
      Value source = output.getSource();
      Value destination = tensor::ExtractSliceOp::create(
          builder, loc, cast<RankedTensorType>(source.getType()),
          output.getDest(), output.getMixedOffsets(), output.getMixedSizes(),
          output.getMixedStrides());
      // A fill has no axes: it stays one, of what it is to fill.
      if (Value scalar = program.getFillValue(source)) {
        output.getSourceMutable().assign(
            linalg::FillOp::create(builder, loc, scalar, destination)
                .getResult(0));
        continue;
      }
      computed.push_back(output);
      sources.push_back(source);
      destinations.push_back(destination);
    }
    FailureOr<Values> written =
        writeOver(nest.axes, 0, base, sources, destinations);
    if (failed(written))
      return failure();
    for (auto [output, tensor] : llvm::zip_equal(computed, *written))
      output.getSourceMutable().assign(tensor);
  }
  return success();
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

LogicalResult TileEmitter::run() {
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
  if (failed(emitOutputs()))
    return failure();
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
    auto strategy = loop->getAttrOfType<CpuStrategyAttr>(kStrategyAttrName);
    generalizeNamedOps(loop);
    auto hasWork = [](Operation &op) { return isa<linalg::GenericOp>(op); };
    // A tile that is in vector form already.
    if (!strategy || llvm::none_of(loop.getBody()->getOperations(), hasWork))
      return success();
    FailureOr<TileProgram> program =
        TileProgram::analyze(loop, strategy.getRows(), strategy.getColumns());
    if (failed(program))
      return failure();
    return TileEmitter(*program, loop, strategy.getColumns()).run();
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
