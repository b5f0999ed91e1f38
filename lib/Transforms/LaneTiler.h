//===- LaneTiler.h - The loops of a norm that keeps inner axes -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_LANETILER_H
#define NORM_LIB_TRANSFORMS_LANETILER_H

#include "TileLanes.h"

#include "TilePlan.h"
#include "TileRanges.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::norm {

/// Loops over the kept axes alone stay on one thread below so many bytes.
inline constexpr int64_t kSerialBytes = 262144;

/// Makes the loops of one op, whose steps it keeps note of.
class LaneTiler {
public:
  using Sizes = SmallVector<OpFoldResult>;
  /// A part of the iteration space, and what has been computed of it.
  struct Tile {
    Sizes offsets, sizes, strides;
    DenseMap<Value, Value> made;
    /// Slices of what is computed elsewhere: one each, so that it is known that
    /// what reads them runs over the same axes.
    struct Slice {
      Value source;
      SmallVector<int64_t> axes;
      Value part;
    };
    SmallVector<Slice> slices;
  };

  LaneTiler(RowOpInterface op, CpuStrategyAttr strategy, RewriterBase &rewriter)
      : op(op), strategy(strategy), rewriter(rewriter), loc(op.getLoc()) {
    reduced = axesOfRows(op);
    kept = complementAxes(reduced, op.getRank());
    above = axesAboveRows(op);
    outer = llvm::to_vector(llvm::seq<int64_t>(0, reduced.front()));
    all = llvm::to_vector(llvm::seq<int64_t>(0, op.getRank()));
    if (!op.getGroupedAxis())
      return;
    groups = outer;
    groups.push_back(op.getRank());
    withinGroups = groups;
    withinGroups.push_back(op.getRank() + 1);
  }

  FailureOr<scf::ForallOp> run();

private:
  using Ops = SmallVector<linalg::GenericOp>;

  LogicalResult decompose();
  /// Whether an op sums over all rows, not over a sample of them.
  bool isSum(linalg::GenericOp generic);
  /// Whether an op has all axes.
  bool isFull(linalg::GenericOp generic) {
    return generic.getNumReductionLoops() == 0 &&
           loopAxes(generic) == ArrayRef(all);
  }
  /// Whether an op of the program makes groups of channels, or the reverse.
  bool isReshape(Operation *made) {
    return isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(
               made) &&
           inProgram.contains(made);
  }
  /// The axes that the loops of an op run over.
  ArrayRef<int64_t> loopAxes(linalg::GenericOp generic);
  linalg::GenericOp producerOf(Value value);
  /// Notes what a loop has computed of a value, and of reshapes of it.
  void record(Value value, Value computed);
  /// Whether an op computes what groups have, or spreads it over channels.
  bool isOfGroups(linalg::GenericOp generic) {
    return !groups.empty() && loopAxes(generic) != ArrayRef(all);
  }
  void addGroups();
  void computeLevels();
  /// Cuts `ops` where they share no tensor that has all of `numAxes` axes:
  /// nothing would tell one loop that they run over the same.
  SmallVector<Ops> groupByTensors(ArrayRef<linalg::GenericOp> ops,
                                  size_t numAxes);

  // The loops.
  void keepLanes(ArrayRef<linalg::GenericOp> ops);
  void keepGroups(ArrayRef<linalg::GenericOp> ops);
  void fill(scf::ForallOp loop, ArrayRef<linalg::GenericOp> ops,
            ArrayRef<Value> values, Tile &tile);
  SmallVector<Value> valuesReadAfter(ArrayRef<linalg::GenericOp> ops);
  void sumRows(ArrayRef<linalg::GenericOp> sums);
  SmallVector<Value> sumRanges(ArrayRef<linalg::GenericOp> sums,
                               ValueRange memory, ValueRange destinations);
  /// Whether `sums` repeat what an earlier level has, but for values over the
  /// kept axes: pairs of these, and what the earlier ones computed.
  bool matchRepeated(ArrayRef<linalg::GenericOp> sums,
                     SmallVectorImpl<std::pair<Value, Value>> &pairs,
                     SmallVectorImpl<Value> &earlier);
  Value differ(ArrayRef<std::pair<Value, Value>> pairs);
  void sumInRanges();
  void sumFewOrMany();
  scf::ForallOp apply();

  // Tiles.
  Value tileOf(Value value, ArrayRef<int64_t> axes, Tile &tile);
  void cloneOn(linalg::GenericOp generic, Tile &tile);
  /// A tile of what elementwise ops around the norm compute for it alone; null
  /// if `value` is none of that.
  Value tileOfNeighbour(Value value, ArrayRef<int64_t> axes, Tile &tile);
  bool isRead(Operation *producer);
  Value slice(Value value, ArrayRef<int64_t> axes, Tile &tile);
  /// The axes that an operand or result of `generic` has by `map`; -1 for a
  /// dimension that none indexes.
  SmallVector<int64_t> axesBy(linalg::GenericOp generic, AffineMap map);
  /// Those of a value that a generic op computes.
  SmallVector<int64_t> axesOf(Value value) {
    auto generic = value.getDefiningOp<linalg::GenericOp>();
    return axesBy(generic,
                  generic.getIndexingMapMatchingResult(cast<OpResult>(value)));
  }
  Sizes pick(ArrayRef<OpFoldResult> list, ArrayRef<int64_t> axes,
             int64_t otherwise);
  Tile wholeTile();
  void insert(Value tile, Value destination, ArrayRef<OpFoldResult> at,
              ArrayRef<OpFoldResult> sizes);
  Value emptyOf(Value like, ArrayRef<OpFoldResult> shape) {
    return tensor::EmptyOp::create(rewriter, loc, shape,
                                   getElementTypeOrSelf(like.getType()));
  }
  Sizes repeat(int64_t value, size_t count) {
    return Sizes(count, rewriter.getIndexAttr(value));
  }
  LaneLoop::Options laneOptions() {
    return {strategy.getColumns(), strategy.getParallel(), kSerialBytes};
  }
  Sizes extents(ArrayRef<int64_t> axes) {
    return llvm::map_to_vector(axes,
                               [&](int64_t axis) { return domain[axis].size; });
  }

  RowOpInterface op;
  CpuStrategyAttr strategy;
  RewriterBase &rewriter;
  Location loc;
  /// The axes of x that are summed over and those of the sums; those of groups
  /// and of the channels within come after x's.
  SmallVector<int64_t> reduced, kept, all;
  /// The axes outside of rows, and the kept ones of these.
  SmallVector<int64_t> above, outer;
  /// Those of what groups have, and of their channels; empty without groups.
  SmallVector<int64_t> groups, withinGroups;
  SmallVector<Range> domain;
  RowRanges ranges;
  /// What the op decomposes to: all ops, those with work, and its results.
  SmallVector<Operation *> decomposed;
  Ops program;
  SmallVector<Value> results;
  DenseSet<Operation *> inProgram;
  /// Ops around the norm that are computed in its tiles.
  SetVector<Operation *> neighbours;
  DenseMap<Operation *, int> levels;
  /// What the loops so far have computed of the program's values, and the
  /// partial sums of those that are sums.
  DenseMap<Value, Value> done, partialsOf;
};

} // namespace mlir::norm

#endif // NORM_LIB_TRANSFORMS_LANETILER_H
