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

/// Replaces a gradient that `sumsOverRanges` by a loop over ranges of rows and
/// a loop after it that adds up, in order, what each range has summed. Returns
/// the first. How rows are cut into ranges depends on the shape and on the
/// strategy's `range` alone, whether extents are static or not.
FailureOr<scf::ForallOp> tileRanges(RowOpInterface op, CpuStrategyAttr strategy,
                                    RewriterBase &rewriter);

} // namespace mlir::norm

#endif // NORM_LIB_TRANSFORMS_TILERANGES_H
