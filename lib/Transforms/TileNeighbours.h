//===- TileNeighbours.h - What joins the tile of a norm ---------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ops around a norm that norm-tile computes in the norm's loop over tiles:
//
//   producers   elementwise, read by the loop alone
//   consumers   elementwise; reductions over the axes that the norm reduces;
//               elementwise ops on a part of the innermost axis of the norm's
//               result, where that axis is reduced, and what puts such parts
//               together again (rotary embeddings)
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_TILENEIGHBOURS_H
#define NORM_LIB_TRANSFORMS_TILENEIGHBOURS_H

#include "Norm/IR/NormOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::norm {

/// Whether `op` is elementwise linalg on tensors: parallel loops, none of whose
/// indices it uses, each operand indexed by some of them (or by the constant
/// 0), and old elements of its destinations not read.
bool isElementwiseNeighbour(Operation *op);

/// Whether vectors can hold what `op` reads and writes: masks are read bit by
/// bit, but not written.
bool hasVectorOperands(linalg::LinalgOp op);

/// Lets what asks for the extents of `op`'s results ask for those of its
/// operands, so that the op is not kept for its shape alone.
void resolveExtents(RewriterBase &rewriter, Operation *op);

/// Brings what is around the norms of `root` into the few forms that fusion
/// knows: elementwise ops on tensors and linalg.map become linalg.generic on
/// destinations of their own, splat constants scalars; comparisons join what
/// selects by them.
void prepareElementwise(RewriterBase &rewriter, Operation *root);

/// Moves the extraction of parts of the innermost axis up to the results of
/// `norms`, and what puts parts together down, below all elementwise ops; what
/// is between works on parts.
void prepareParts(RewriterBase &rewriter, ArrayRef<RowOpInterface> norms);

/// Along the innermost dimension, elements `offset + stride * i` of `tensor`
/// for i < `size`; the whole along all others.
struct PartOfRow {
  Value tensor;
  int64_t offset, size, stride;
};

/// The part that `slice` extracts, if it is one.
std::optional<PartOfRow> matchPart(tensor::ExtractSliceOp slice);
/// The part that `slice` inserts: of its destination.
std::optional<PartOfRow> matchPart(tensor::InsertSliceOp slice);

/// What fusion must know about the norm that a loop over tiles holds.
struct TiledNorm {
  int64_t rank;
  /// Axes that the loop runs over: those of which a tile has only a part.
  SmallVector<int64_t> loopAxes;
  /// Axes that the tile reduces; empty if reductions cannot join it.
  SmallVector<int64_t> reducedAxes;
};

/// Fuses producers and consumers into `loop`, drops results without uses and
/// what is dead; returns the loop that took its place.
scf::ForallOp fuseNeighbours(RewriterBase &rewriter, scf::ForallOp loop,
                             const TiledNorm &norm);

} // namespace mlir::norm

#endif // NORM_LIB_TRANSFORMS_TILENEIGHBOURS_H
