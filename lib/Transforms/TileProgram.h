//===- TileProgram.h - What the linalg ops of a tile compute -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The analysis behind norm-vectorize. The linalg ops inside the loop over
// tiles form a small program over one common iteration space, the axes of the
// tile. This file names those axes, finds which are reduced, and orders the
// reductions; nothing here knows about normalization.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_TILEPROGRAM_H
#define NORM_LIB_TRANSFORMS_TILEPROGRAM_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::norm {

/// An axis of the iteration space that the ops of a tile share.
struct TileAxis {
  /// Whether some op of the tile reduces it.
  bool isReduced = false;
  /// Its extent inside the tile.
  OpFoldResult extent;

  std::optional<int64_t> getStaticExtent() const {
    return getConstantIntValue(extent);
  }
};

/// The program inside one `scf.forall` over tiles.
class TileProgram {
public:
  /// An axis id that stands for a dimension of extent 1 with no axis.
  static constexpr int kNoAxis = -1;

  /// Understands the body of `loop`; emits an error that names the first op
  /// it cannot, and fails.
  static FailureOr<TileProgram> analyze(scf::ForallOp loop);

  /// The linalg ops, in order.
  ArrayRef<linalg::GenericOp> getOps() const { return ops; }
  /// What leaves the tile: the operands of the loop's terminator.
  ArrayRef<tensor::ParallelInsertSliceOp> getOutputs() const { return outputs; }

  const TileAxis &getAxis(int axis) const { return axes[axis]; }
  /// Reduced axes, outermost first.
  ArrayRef<int> getReducedAxes() const { return reducedAxes; }
  /// The axis whose elements fill a vector, innermost in memory.
  int getColumnAxis() const { return columnAxis; }
  /// The axis whose elements are the rows of a vector; kNoAxis if none.
  int getRowAxis() const { return rowAxis; }
  bool isColumnReduced() const { return axes[columnAxis].isReduced; }

  /// The axes that the dimensions of a tensor in the tile index.
  SmallVector<int> getAxesOf(Value tensor) const;
  /// The axes that the loops of an op stand for.
  ArrayRef<int> getLoopAxes(linalg::GenericOp op) const {
    return loopAxes.find(op)->second;
  }

  /// The op that computes `tensor` inside the tile; null for what the tile is
  /// given.
  linalg::GenericOp getProducer(Value tensor) const;
  /// The scalar that a `linalg.fill` writes to all of `tensor`; null if none.
  Value getFillValue(Value tensor) const;

  bool isReduction(linalg::GenericOp op) const {
    return op.getNumReductionLoops() > 0;
  }
  /// Whether the op's results vary along a reduced axis.
  bool isFull(linalg::GenericOp op) const;
  /// How many reductions lie on the longest path to this op's operands: the
  /// number of the sweep that can compute it.
  int getLevel(linalg::GenericOp op) const { return levels.find(op)->second; }

private:
  LogicalResult collect(scf::ForallOp loop);
  LogicalResult unifyAxes();
  LogicalResult chooseVectorAxes();
  void computeLevels();
  void nameAxis(int axis, int64_t dim, Value tensor);

  SmallVector<linalg::GenericOp> ops;
  SmallVector<tensor::ParallelInsertSliceOp> outputs;
  SmallVector<TileAxis> axes;
  SmallVector<int> reducedAxes;
  int columnAxis = kNoAxis, rowAxis = kNoAxis;
  DenseMap<Value, SmallVector<int>> axesOf;
  DenseMap<Operation *, SmallVector<int>> loopAxes;
  DenseMap<Operation *, int> levels;
};

/// Whether elements of a tensor lie in memory as they lie in a vector. Those of
/// an i1 tensor take a byte each, those of a vector of i1 a bit.
bool hasVectorLayout(Value tensor);

/// The loops over tiles inside `root`: those that carry a strategy.
SmallVector<scf::ForallOp> findTileLoops(Operation *root);

/// Looks through casts of a tensor's static shape.
Value stripTensorCasts(Value tensor);

} // namespace mlir::norm

#endif // NORM_LIB_TRANSFORMS_TILEPROGRAM_H
