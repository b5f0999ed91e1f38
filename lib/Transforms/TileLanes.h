//===- TileLanes.h - Norms of the inner axes' elements ---------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_TILELANES_H
#define NORM_LIB_TRANSFORMS_TILELANES_H

#include "Norm/IR/NormOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::norm {

/// The rows that are added up before they are added to a range's sums, how
/// often a range adds at most, and the most and the fewest rows of a range. Of
/// the most rows less one, 24 leaves and 7 rows are added. They decide bits.
inline constexpr int64_t kLeafRows = 8, kLaneChain = 32, kMostLaneRows = 200,
                         kFewestLaneRows = 32;
/// On a loop over tiles that goes from the last rows to the first: thread t of
/// T takes the share of thread T-1-t, which has the rows that thread t summed.
inline constexpr llvm::StringLiteral kMirroredAttrName = "norm.mirrored";
/// The most rows that the loop which applies statistics takes at once.
inline constexpr int64_t kAppliedRows = 4;

/// Replaces an op that `keepsInnerAxes` by loops over ranges of rows, one
/// for each step of its statistics, and one that applies them, which is
/// returned. How rows are cut into ranges depends on the reduced extents and on
/// the strategy's `range` alone, whether extents are static or not.
FailureOr<scf::ForallOp> tileLanes(RowOpInterface op, CpuStrategyAttr strategy,
                                   RewriterBase &rewriter);

} // namespace mlir::norm

#endif // NORM_LIB_TRANSFORMS_TILELANES_H
