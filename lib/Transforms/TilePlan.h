//===- TilePlan.h - Which axes the loop over tiles runs over ---*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What norm-configure and norm-tile must agree on.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_TILEPLAN_H
#define NORM_LIB_TRANSFORMS_TILEPLAN_H

#include "Norm/IR/NormOps.h"

namespace mlir::norm {

/// Whether the gradients of scale and shift are indexed by the axes that the
/// statistics reduce, the innermost ones. Then one sweep over memory gives them
/// beside dx: a tile is a range of rows, with sums over these rows of its own.
inline bool sumsOverRanges(RowOpInterface op) {
  auto norm = dyn_cast<NormBackwardOpInterface>(op.getOperation());
  if (!norm || op.getGroupedAxis() ||
      (!norm.getDscaleOrNull() && !norm.getDshiftOrNull()))
    return false;
  SmallVector<int64_t> reduced = op.getReducedAxes();
  int64_t rank = op.getRank(), first = rank - int64_t(reduced.size());
  return first > 0 && first < rank &&
         reduced == llvm::to_vector(llvm::seq(first, rank)) &&
         *norm.getForwardContract().affineAxes == reduced;
}

/// What a strategy says of the tiles and vectors that all targets share.
struct TileSizes {
  /// R and C.
  int64_t rows, columns;

  /// Nullopt if `strategy` is none.
  static std::optional<TileSizes> get(Attribute strategy) {
    if (auto cpu = dyn_cast_or_null<CpuStrategyAttr>(strategy))
      return TileSizes{cpu.getRows(), cpu.getColumns()};
    // Rows of a block lie side by side in the block, not in a vector.
    if (auto gpu = dyn_cast_or_null<GpuStrategyAttr>(strategy))
      return TileSizes{1, gpu.getColumns()};
    return std::nullopt;
  }
};

/// The reduced axes but the grouped one.
inline SmallVector<int64_t> axesOfRows(RowOpInterface op) {
  return llvm::filter_to_vector(op.getReducedAxes(), [&](int64_t axis) {
    return axis != op.getGroupedAxis();
  });
}

/// Whether all sums of an op run over neighbouring axes of x and keep the inner
/// ones, as those of a batch or an instance norm of channel-last data do, or
/// but for adding up groups of the innermost. Then rows of the inner axes'
/// elements are cut into ranges; see TileLanes.cpp.
inline bool keepsInnerAxes(RowOpInterface op) {
  auto norm = dyn_cast<NormOpInterface>(op.getOperation());
  if (norm ? norm.hasGivenStatistics()
           : !isa<NormBackwardOpInterface>(op.getOperation()))
    return false;
  SmallVector<int64_t> reduced = axesOfRows(op);
  // The channels of groups are all that rows keep.
  if (std::optional<int64_t> grouped = op.getGroupedAxis();
      grouped &&
      (!norm || op.getNumGroups() == 1 || reduced.empty() ||
       *grouped + 1 != op.getRank() || reduced.back() + 1 != *grouped))
    return false;
  return !reduced.empty() && reduced.back() + 1 < op.getRank() &&
         reduced.back() - reduced.front() + 1 == int64_t(reduced.size()) &&
         op.getTiedAxes() == reduced;
}

/// The axes outside of the rows of such an op: the reduced ones, and those
/// around them.
inline SmallVector<int64_t> axesAboveRows(RowOpInterface op) {
  return llvm::to_vector(llvm::seq<int64_t>(0, axesOfRows(op).back() + 1));
}

/// The fewest rows that such an op sums in ranges if axes lie around the
/// reduced ones: fewer lanes of fewer rows fit the first caches, and there are
/// several tiles of them. It decides bits.
inline constexpr int64_t kFewestRangedRows = 1024;

/// Whether ranges of rows are worth their loops, or may be: run time tells
/// then.
inline bool isWorthRanges(RowOpInterface op) {
  if (!keepsInnerAxes(op))
    return false;
  SmallVector<int64_t> reduced = axesOfRows(op);
  std::optional<int64_t> rows = staticExtent(op.getInput().getType(), reduced);
  return reduced.front() == 0 || op.getGroupedAxis() || !rows ||
         *rows >= kFewestRangedRows;
}

/// The same, where the strategy of `op` wants ranges.
inline bool isTiledByLanes(RowOpInterface op) {
  auto strategy = op->getAttrOfType<CpuStrategyAttr>(kStrategyAttrName);
  return strategy && strategy.getRange() > 0 && isWorthRanges(op);
}

/// The shape of the loop over tiles of an op.
struct TilePlan {
  /// Axes of x that the loop runs over, ascending. All that are not tied (or,
  /// for sums over ranges, not reduced); where none is, all but the last two,
  /// so that a tile is worth its loop.
  SmallVector<int64_t> loopAxes;
  /// The loop axis that a tile has R rows of; nullopt if none can have several.
  std::optional<int64_t> rowAxis;
  /// Whether tiles hold C elements of the innermost axis side by side, as
  /// lanes.
  bool hasLanes = false;
  /// Whether tiles may have any shape.
  bool reducesNothing = false;

  static TilePlan get(RowOpInterface op) {
    TilePlan plan;
    int64_t rank = op.getRank();
    SmallVector<int64_t> tied =
        sumsOverRanges(op) ? op.getReducedAxes() : op.getTiedAxes();
    plan.loopAxes = complementAxes(tied, rank);
    // A group is reduced within, though its axis is not tied.
    plan.reducesNothing = tied.empty() && !op.getGroupedAxis();
    if (plan.reducesNothing)
      plan.loopAxes.resize(rank > 2 ? rank - 2 : rank - 1);
    plan.hasLanes = !plan.reducesNothing &&
                    llvm::is_contained(plan.loopAxes, rank - 1) &&
                    op.getGroupedAxis() != rank - 1;
    if (!plan.hasLanes)
      for (int64_t axis : plan.loopAxes)
        if (axis != op.getGroupedAxis())
          plan.rowAxis = axis;
    return plan;
  }
};

/// Whether one tile can hold all sums of an op, as they run over the same axes:
/// not if gradients of scale or shift sum over other axes than the
/// statistics do, unless the tile is a range. norm-split-gradients makes it so.
inline bool fitsTile(RowOpInterface op) {
  auto sumsAreReduced = [&](ArrayRef<int64_t> affineAxes) {
    return !op.getGroupedAxis() &&
           complementAxes(affineAxes, op.getRank()) == op.getReducedAxes();
  };
  if (auto norm = dyn_cast<NormBackwardOpInterface>(op.getOperation()))
    return (!norm.getDscaleOrNull() && !norm.getDshiftOrNull()) ||
           sumsOverRanges(op) ||
           sumsAreReduced(*norm.getForwardContract().affineAxes);
  if (auto moments = dyn_cast<BackwardMomentsOp>(op.getOperation()))
    return (!moments.getSumG() && !moments.getSumGx()) ||
           (!moments.getDscale() && !moments.getDshift()) ||
           sumsAreReduced(moments.getAffineAxesOrDefault());
  return true;
}

} // namespace mlir::norm

#endif // NORM_LIB_TRANSFORMS_TILEPLAN_H
