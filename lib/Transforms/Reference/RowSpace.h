//===- RowSpace.h - Loops over the axes of x --------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_REFERENCE_ROWSPACE_H
#define NORM_LIB_TRANSFORMS_REFERENCE_ROWSPACE_H

#include "Scalar.h"

#include "Norm/IR/NormInterfaces.h"

namespace mlir::norm::reference {

/// A tensor and the axes of the space that index it; null if absent.
struct Indexed {
  Value value;
  SmallVector<int64_t> axes;

  explicit operator bool() const { return value != nullptr; }
};

/// What the body of a loop reads: elements of the loop's inputs, by tensor.
class Elements {
public:
  Elements(ArrayRef<Indexed> inputs, ValueRange values)
      : inputs(inputs), values(values) {}

  /// The element as it is stored; null for an absent tensor.
  Value operator[](const Indexed &tensor) const;

private:
  ArrayRef<Indexed> inputs;
  ValueRange values;
};

/// The axes of x as loops. A grouped axis of C elements is two axes of the
/// space, [groups, C / groups], of which the second is reduced; tensors that it
/// indexes are read and written through a view.
class RowSpace {
public:
  using Body = function_ref<SmallVector<Value>(Scalar &, Elements)>;

  RowSpace(OpBuilder &builder, Location loc, Value x,
           ArrayRef<int64_t> reducedAxes,
           std::optional<int64_t> groupedAxis = std::nullopt,
           int64_t groups = 1);
  RowSpace(RowOpInterface op, OpBuilder &builder);

  OpBuilder &builder;
  Location loc;
  /// Axes of the space.
  SmallVector<int64_t> all, kept, reduced;

  /// Operands by what indexes them: all axes of x, the given ones, or those of
  /// a statistic. Null for null.
  Indexed full(Value tensor);
  Indexed affine(Value tensor, ArrayRef<int64_t> axesOfX);
  Indexed statistic(Value tensor) const { return {tensor, kept}; }
  SmallVector<int64_t> viewAxes(ArrayRef<int64_t> axesOfX) const;

  /// The number of reduced elements as an f64, outside of loops.
  Value count() const { return reducedCount; }

  /// One result per type and element over `axes`.
  SmallVector<Indexed> map(ArrayRef<int64_t> axes, ArrayRef<Indexed> inputs,
                           ArrayRef<Type> types, Body body);
  Indexed map(ArrayRef<int64_t> axes, ArrayRef<Indexed> inputs, Type type,
              function_ref<Value(Scalar &, Elements)> body);
  /// Sums of `number` f64 terms over all axes but `axes`, compensated.
  SmallVector<Indexed> sums(ArrayRef<int64_t> axes, ArrayRef<Indexed> inputs,
                            unsigned number, Body terms);

  /// `tensor` as a result of an op: out of the view, and of type `type`, which
  /// may know more or fewer static extents.
  Value result(const Indexed &tensor, Type type);

private:
  using Values = function_ref<SmallVector<Value>(Scalar &, ValueRange)>;

  Value view(Value tensor, ArrayRef<int64_t> axesOfX);
  Value empty(ArrayRef<int64_t> axes, Type type);
  SmallVector<Indexed> loop(ArrayRef<int64_t> loops, ArrayRef<Indexed> inputs,
                            ArrayRef<int64_t> resultAxes,
                            ArrayRef<Type> resultTypes, Values body);

  /// The axis of x, and of the space, that is split.
  std::optional<int64_t> grouped;
  int64_t groups;
  SmallVector<OpFoldResult> extents;
  Value reducedCount;
};

} // namespace mlir::norm::reference

#endif // NORM_LIB_TRANSFORMS_REFERENCE_ROWSPACE_H
