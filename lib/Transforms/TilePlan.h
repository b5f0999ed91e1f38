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

#include "Norm/IR/NormInterfaces.h"

namespace mlir::norm {

/// The shape of the loop over tiles of an op.
struct TilePlan {
  /// Axes of x that the loop runs over, ascending. All that are not tied; where
  /// none is, all but the last two, so that a tile is worth its loop.
  SmallVector<int64_t> loopAxes;
  /// The loop axis that a tile has R rows of; nullopt if none can have several.
  std::optional<int64_t> rowAxis;
  /// Whether tiles hold C elements of the innermost axis side by side, as
  /// lanes.
  bool hasLanes = false;

  static TilePlan get(RowOpInterface op) {
    TilePlan plan;
    int64_t rank = op.getRank();
    SmallVector<int64_t> tied = op.getTiedAxes();
    plan.loopAxes = complementAxes(tied, rank);
    if (tied.empty())
      plan.loopAxes.resize(rank > 2 ? rank - 2 : rank - 1);
    plan.hasLanes = !tied.empty() &&
                    llvm::is_contained(plan.loopAxes, rank - 1) &&
                    op.getGroupedAxis() != rank - 1;
    if (!plan.hasLanes)
      for (int64_t axis : plan.loopAxes)
        if (axis != op.getGroupedAxis())
          plan.rowAxis = axis;
    return plan;
  }
};

} // namespace mlir::norm

#endif // NORM_LIB_TRANSFORMS_TILEPLAN_H
