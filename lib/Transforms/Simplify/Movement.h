//===- Movement.h - Norms of tensors that only move elements ---*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What C21 to C25 share: they take a norm from one side of an op that moves
// elements to the other. Operands and results are visited with the axes of x
// that they index, so that a rewrite says once what becomes of an axis.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_SIMPLIFY_MOVEMENT_H
#define NORM_LIB_TRANSFORMS_SIMPLIFY_MOVEMENT_H

#include "Norm/IR/Rewrite.h"

namespace mlir::norm {

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// A tensor whose elements are those of another: a `linalg.transpose`, a
/// `linalg.broadcast`, or a `linalg.generic` that does no more.
struct Copy {
  /// Stands for a dimension of static extent 1 that no dimension of the result
  /// indexes.
  static constexpr int64_t kUnit = -1;

  Value source;
  /// The tensor of the result's shape that the op writes to.
  Value init;
  /// For each dimension of the source the one of the result that indexes it.
  SmallVector<int64_t> dims;

  int64_t getRank() const {
    return cast<RankedTensorType>(init.getType()).getRank();
  }
  /// Whether each dimension of the result indexes one of the source, in
  /// another order.
  bool isTranspose() const;
  /// Whether dimensions are added and none changes places.
  bool isBroadcast() const;
  /// The dimensions of the result that index none of the source.
  SmallVector<int64_t> getAddedDims() const;
};

/// The copy that makes `value`; nullopt if it is computed, null, or a copy of
/// equal shape.
std::optional<Copy> matchCopy(Value value);

/// Copies `source` to a tensor of these extents, dims as in Copy. Nothing is
/// built where the copy changes nothing; a constant is transposed in place.
Value buildCopy(OpBuilder &builder, Location loc, Value source,
                ArrayRef<int64_t> dims, ArrayRef<OpFoldResult> extents);

//===----------------------------------------------------------------------===//
// Norms that move
//===----------------------------------------------------------------------===//

/// A new operand in place of one that indexes these axes of x.
using MoveOperandFn = function_ref<Value(Value, ArrayRef<int64_t>)>;
/// The old result from the new one; `axes` are those of the old x.
using MoveResultFn = function_ref<Value(Value, ArrayRef<int64_t>)>;

/// Changes every operand of the contract of `op` but x and residual.
void moveParameters(NormOpInterface op, NormContract &contract,
                    MoveOperandFn move);

/// Replaces the results of `op` that are used by those of `moved`.
void replaceByMoved(RewriterBase &rewriter, NormOpInterface op,
                    NormOpInterface moved, MoveResultFn move);

/// The op with other facts at the rewriter's place, with the discardable
/// attributes of `op`. A strategy whose rows do not fit the new shape gets one
/// row a tile. Call only where isRebuildable.
NormOpInterface buildMoved(RewriterBase &rewriter, NormOpInterface op,
                           const NormContract &contract);

/// Whether NormOpInterface::rebuild makes another `op`.
bool isRebuildable(RewriterBase &rewriter, NormOpInterface op);

/// Whether a norm with these reduced axes, over an x of this rank, sums in the
/// order of `op` on every target. `oldAxes` says which axis of the old x each
/// of its axes is. The innermost axis decides whether the CPU sums along
/// vectors or beside them, so its part must stay the same.
bool keepsSummation(NormOpInterface op, ArrayRef<int64_t> reducedAxes,
                    ArrayRef<int64_t> oldAxes);

/// Whether all uses of `value` are operands of `op`, or ask for its extents.
bool isUsedOnlyBy(Value value, Operation *op);

/// The place of each axis of `axes` in `list`.
SmallVector<int64_t> positionsIn(ArrayRef<int64_t> list,
                                 ArrayRef<int64_t> axes);

} // namespace mlir::norm

#endif // NORM_LIB_TRANSFORMS_SIMPLIFY_MOVEMENT_H
