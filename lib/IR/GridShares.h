//===- GridShares.h - Which process holds what of x ------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_IR_GRIDSHARES_H
#define NORM_LIB_IR_GRIDSHARES_H

#include "Norm/IR/NormInterfaces.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Shard/Interfaces/ShardingInterface.h"

namespace mlir::norm {

/// How the axes of an op's x, and with them all operands and results, are
/// spread over a grid of processes. Functions that can refuse name the reason
/// in `reason` and build no IR.
class GridShares {
public:
  using GridAxes = SmallVector<shard::GridAxis>;

  /// From the shardings of all operands and results; null ones say nothing.
  static FailureOr<GridShares> get(RowOpInterface op,
                                   ArrayRef<shard::Sharding> operands,
                                   ArrayRef<shard::Sharding> results,
                                   std::string &reason);
  /// From the grid axes of each axis of x; uneven shares come from the
  /// annotations that operands and results have already.
  static FailureOr<GridShares> get(RowOpInterface op,
                                   const shard::ShardingOption &option,
                                   std::string &reason);

  /// How a tensor is sharded whose dimensions index `axes` of x.
  shard::Sharding shardingOf(RankedTensorType type, ArrayRef<int64_t> axes);
  /// Null for what is not sharded: scalars and tensors of rank 0.
  shard::Sharding operandSharding(unsigned number);
  shard::Sharding resultSharding(unsigned number);

  /// The grid axes that split any of `axes`.
  GridAxes gridAxesOf(ArrayRef<int64_t> axes);
  bool splitsAny(ArrayRef<int64_t> axes) { return !gridAxesOf(axes).empty(); }
  /// The number of processes along `gridAxes`; ShapedType::kDynamic if the grid
  /// does not say.
  int64_t countParts(ArrayRef<shard::GridAxis> gridAxes);

  /// The type of one process's share of a result.
  RankedTensorType localType(OpResult result);
  /// The number of groups of one process's share.
  int64_t localGroups();
  StringRef gridName() { return grid.getSymName(); }

private:
  struct AxisShare {
    /// Empty: every process holds all of the axis.
    GridAxes gridAxes;
    /// Where the shares begin, and where the last one ends; empty if they are
    /// equal.
    SmallVector<int64_t> offsets;
    /// Whether an annotation has been read, and whether one is without these
    /// offsets.
    bool isKnown = false, isOtherwise = false;
  };

  explicit GridShares(RowOpInterface op) : op(op), axes(op.getRank()) {}
  /// Finds the grid by its name; `other` must be that grid already found.
  bool takeGrid(FlatSymbolRefAttr name, std::string &reason);
  /// Reads what one tensor's annotation says about its axes. Where grid axes
  /// are fixed already, one that differs is resharded, if its shares are equal.
  bool take(const shard::Sharding &sharding, ArrayRef<int64_t> tensorAxes,
            bool gridAxesAreFixed, std::string &reason);
  /// Reads the offsets of one dimension from the front of `offsets`.
  bool takeOffsets(ArrayRef<int64_t> &offsets, int64_t axis,
                   ArrayRef<shard::GridAxis> gridAxes, std::string &reason);
  bool verify(std::string &reason);
  bool verifyAxis(int64_t axis, std::string &reason);
  /// Static if any operand or result says so.
  int64_t extentOf(int64_t axis);

  RowOpInterface op;
  shard::GridOp grid;
  SmallVector<AxisShare> axes;
};

} // namespace mlir::norm

#endif // NORM_LIB_IR_GRIDSHARES_H
