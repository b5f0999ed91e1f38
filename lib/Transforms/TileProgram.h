//===- TileProgram.h - What the linalg ops of a tile compute -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The analysis behind norm-vectorize. The linalg ops inside the loop over
// tiles form a small program over one common iteration space, the axes of the
// tile. This file names those axes, finds which are reduced and which are swept
// step by step, and orders the reductions; nothing here knows about
// normalization.
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
  /// Whether some op of the tile loops over it. A dimension of extent 1 may
  /// have an axis that none does.
  bool isLooped = false;
  /// Whether some op of the tile reduces it, other than a sum over rows.
  bool isReduced = false;
  /// Whether it is visited step by step: reduced, or too long for a vector.
  bool isSwept = false;
  /// Whether it runs over a part or a sample of the columns, as columns of its
  /// own.
  bool isPart = false;
  /// Its extent inside the tile; null if only `tensor` knows it.
  OpFoldResult extent;
  /// A tensor the tile is given that has the axis as its dimension `dim`.
  Value tensor;
  int64_t dim = 0;

  std::optional<int64_t> getStaticExtent() const {
    return getConstantIntValue(extent);
  }
  /// The most that the extent can be; nullopt if that is not known. A sample
  /// has few columns, however many it is taken from.
  std::optional<int64_t> getMostExtent() const;
};

/// A part of a tensor that the tile computes: element b along the innermost
/// dimension is element `offset + stride * b` of `source`, along the others
/// element b.
struct TilePart {
  Value source;
  int64_t offset, stride;
};

/// The program inside one `scf.forall` over tiles.
class TileProgram {
public:
  static constexpr int kNoAxis = -1;

  /// Understands the body of `loop`, for vectors of `rows` x `columns`; emits
  /// an error that names the first op it cannot, and fails. `isRange`: whether
  /// the tile is a range of rows, so that kept columns are swept however few
  /// they are, and what varies along them is summed over rows.
  static FailureOr<TileProgram> analyze(scf::ForallOp loop, int64_t rows,
                                        int64_t columns, bool isRange);

  /// The linalg ops, in order.
  ArrayRef<linalg::GenericOp> getOps() const { return ops; }
  /// What leaves the tile: the operands of the loop's terminator.
  ArrayRef<tensor::ParallelInsertSliceOp> getOutputs() const { return outputs; }

  int getNumAxes() const { return axes.size(); }
  const TileAxis &getAxis(int axis) const { return axes[axis]; }
  /// The axes that a reduction reduces, outermost first.
  SmallVector<int> getReducedAxes(linalg::GenericOp op) const;
  /// The axis whose elements fill a vector, innermost in memory.
  int getColumnAxis() const { return columnAxis; }
  /// The axis whose elements are the rows of a vector; kNoAxis if none.
  int getRowAxis() const { return rowAxis; }
  /// How many rows a vector has; a tile at the end may have fewer.
  int64_t getVectorRows() const { return vectorRows; }
  /// The kept axes that a tile has blocks of, outermost first: where some
  /// results are sums over rows, the program runs for R rows at once (row by
  /// row where less is left) and one step along the axes around them, and the
  /// sums take row after row. Empty where a tile is one block.
  ArrayRef<int> getBlockAxes() const { return blockAxes; }
  /// Whether `op` sums over the rows of the tile: it reduces the kept axes, and
  /// its results vary along the columns, which are reduced by others or those
  /// of a range.
  bool isRowSum(linalg::GenericOp op) const;
  bool isColumnReduced() const { return axes[columnAxis].isReduced; }
  /// Whether rows that lie side by side are added up before they are added to
  /// a sum over rows: where that is all the tile does, which then needs not add
  /// row by row as tiles of other heights do.
  bool sumsRowsFirst() const { return !isColumnReduced(); }
  /// Whether the elements along `axis` fill a vector: the columns, or those of
  /// a part of them.
  bool isColumns(int axis) const {
    return axis != kNoAxis && (axis == columnAxis || axes[axis].isPart);
  }

  /// The axes that the dimensions of a tensor in the tile index. A dimension
  /// of extent 1 that no loop indexes is an axis of its own.
  SmallVector<int> getAxesOf(Value tensor) const;
  /// The axes that what `tensor` holds varies along: those of its producer's
  /// parallel loops; its own if the tile is given it.
  SmallVector<int> getNeededAxes(Value tensor) const;
  /// The swept axes, outermost first, that place an element of `tensor`: those
  /// it varies along, and its own. A dimension of extent 1 may lie along a
  /// reduced axis.
  SmallVector<int> getWrittenAxes(Value tensor) const;
  /// The axes that the loops of an op stand for.
  ArrayRef<int> getLoopAxes(linalg::GenericOp op) const {
    return loopAxes.find(op)->second;
  }

  /// The op that computes `tensor` inside the tile; null for what the tile is
  /// given.
  linalg::GenericOp getProducer(Value tensor) const;
  /// What `tensor` is a part of; nullopt if it is computed or given itself.
  std::optional<TilePart> getPart(Value tensor) const;
  /// The scalar that a `linalg.fill` writes to all of `tensor`; null if none.
  Value getFillValue(Value tensor) const;

  bool isReduction(linalg::GenericOp op) const {
    return op.getNumReductionLoops() > 0;
  }
  /// Whether what `tensor` holds varies along a swept axis.
  bool isFull(Value tensor) const;
  /// How many reductions lie on the longest path to this op's operands: the
  /// number of the sweep that can compute it.
  int getLevel(linalg::GenericOp op) const { return levels.find(op)->second; }

private:
  LogicalResult collect(scf::ForallOp loop);
  LogicalResult collectGeneric(linalg::GenericOp op);
  LogicalResult unifyAxes();
  LogicalResult checkParts() const;
  LogicalResult recordLoops(linalg::GenericOp op, ArrayRef<int> loops);
  void nameAxis(int axis, int64_t dim, Value tensor);
  LogicalResult chooseVectorAxes(int64_t rows, int64_t columns);
  void findRowSums();
  LogicalResult checkRowSum(linalg::GenericOp op) const;
  SmallVector<int> findRootAxes() const;
  int chooseColumnAxis(ArrayRef<int> rootAxes) const;
  int chooseRowAxis(ArrayRef<int> rootAxes, int64_t rows) const;
  LogicalResult checkOp(linalg::GenericOp op) const;
  void computeLevels();

  SmallVector<linalg::GenericOp> ops;
  SmallVector<tensor::ParallelInsertSliceOp> outputs;
  SmallVector<TileAxis> axes;
  SmallVector<int> sweptAxes, blockAxes;
  int columnAxis = kNoAxis, rowAxis = kNoAxis;
  bool isRange = false;
  int64_t vectorRows = 1;
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
