//===- TileRanges.h - Tiles with sums over their rows ----------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_TILERANGES_H
#define NORM_LIB_TRANSFORMS_TILERANGES_H

#include "Norm/IR/NormOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::norm {

/// How rows are cut into ranges along some axes, outermost first. It depends
/// on the extents and on what is asked for alone, whether they are static or
/// not.
struct RowRanges {
  SmallVector<int64_t> axes;
  /// Per axis: rows of a range, and the number of ranges.
  SmallVector<OpFoldResult> spans, counts;

  struct Wanted {
    /// The most rows of a range, and the fewest if there are more.
    int64_t most, fewest;
    /// A range has a multiple of so many rows along the innermost axis.
    int64_t multiple;
    /// How often a range may add to its sums, if those of `multiple` rows side
    /// by side are added as one; 0: as often as it has rows.
    int64_t longestChain = 0;
  };
  static RowRanges cut(RewriterBase &rewriter, Location loc,
                       ArrayRef<int64_t> axes, ArrayRef<Range> domain,
                       Wanted wanted);
  /// Sets the part of each axis that range number `numbers` has.
  void place(RewriterBase &rewriter, Location loc, ValueRange numbers,
             ArrayRef<Range> domain, SmallVectorImpl<OpFoldResult> &offsets,
             SmallVectorImpl<OpFoldResult> &sizes) const;
};

/// A loop over the elements of tensors of one shape, by lanes of the innermost
/// dimension; its body is still empty.
struct LaneLoop {
  scf::ForallOp loop;
  /// The part of the tensors that one step has.
  SmallVector<OpFoldResult> offsets, sizes;

  struct Options {
    /// Lanes of one step. They touch no bits.
    int64_t width;
    bool isParallel;
    /// As of a strategy.
    int64_t serialBytes;
  };
  static LaneLoop create(RewriterBase &rewriter, Location loc,
                         ArrayRef<OpFoldResult> extents,
                         ValueRange destinations, Options options);
};

/// Adds up `partials`, which have an outer dimension for each of `numAxes` axes
/// of ranges, in order, each rounded to the type of its destination.
SmallVector<Value> mergeRanges(RewriterBase &rewriter, Location loc,
                               ValueRange partials, int64_t numAxes,
                               ValueRange destinations,
                               LaneLoop::Options options);

/// Replaces a gradient that `sumsOverRanges` by a loop over ranges of rows and
/// a loop after it that adds up, in order, what each range has summed. Returns
/// the first. How rows are cut into ranges depends on the shape and on the
/// strategy's `range` alone, whether extents are static or not.
FailureOr<scf::ForallOp> tileRanges(RowOpInterface op, CpuStrategyAttr strategy,
                                    RewriterBase &rewriter);

} // namespace mlir::norm

#endif // NORM_LIB_TRANSFORMS_TILERANGES_H
