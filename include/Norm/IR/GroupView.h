//===- GroupView.h - Groups as an axis of their own ------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_GROUPVIEW_H
#define NORM_IR_GROUPVIEW_H

#include "Norm/IR/NormInterfaces.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

namespace mlir::norm {

/// A view of x whose grouped axis is two, [groups, C/groups], of which the
/// second is reduced: on it a group norm is a layer norm, with the same
/// statistics. Moves tensors to the view and back.
class GroupView {
public:
  GroupView(RowOpInterface op, OpBuilder &builder)
      : builder(builder), loc(op.getLoc()), channel(*op.getGroupedAxis()),
        groups(op.getNumGroups()) {}

  /// The view of a tensor that axes of x index; null for null.
  Value expand(Value tensor, ArrayRef<int64_t> axes);
  /// The tensor of type `type` that `view` is a view of.
  Value collapse(Value view, ArrayRef<int64_t> axes, Type type);
  /// Axes of the view for a list of axes of x. Both parts of the channel axis
  /// take its place, or only the second, the one within a group.
  SmallVector<int64_t> axes(ArrayRef<int64_t> axes, bool onlyWithin);

private:
  std::optional<SmallVector<ReassociationIndices>>
  reassociation(ArrayRef<int64_t> axes);

  OpBuilder &builder;
  Location loc;
  int64_t channel, groups;
};

} // namespace mlir::norm

#endif // NORM_IR_GROUPVIEW_H
