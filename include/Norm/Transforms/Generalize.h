//===- Generalize.h - Named norms in the statistics algebra ----*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_TRANSFORMS_GENERALIZE_H
#define NORM_TRANSFORMS_GENERALIZE_H

#include "Norm/IR/NormInterfaces.h"

#include <functional>

namespace mlir::norm {

/// Over what the statistics of a norm are taken, and how they meet.
struct GeneralizeOptions {
  /// The number of parts that the program cuts `axis` into; 0 leaves it whole.
  int64_t parts = 0;
  /// The reduced axis of x that parts, or the programs of an exchange, divide.
  /// Absent: the first one that is not split into groups.
  std::optional<int64_t> axis;
  /// Where x holds one part of many: given this part's statistics, each
  /// [1, kept dims..], returns those of all parts, [?, kept dims..], in the
  /// same order. `parts` is then 0.
  std::function<SmallVector<Value>(OpBuilder &, Location, ValueRange)> exchange;
  /// With `exchange`, for statistics that only add up: given this part's, the
  /// sum over all parts. Absent: they are exchanged, and added in order.
  std::function<Value(OpBuilder &, Location, Value)> sum;
  /// With `exchange`, the number of elements that a statistic of all parts
  /// covers, where it is static.
  std::optional<int64_t> count;
};

/// The named norm `op`, forward (NormOpInterface) or backward
/// (NormBackwardOpInterface), in ops of the algebra: one value per result,
/// inserted at the builder's place. `op` itself stays. Emits an error, before
/// it builds IR, for an op or options that cannot be had.
FailureOr<SmallVector<Value>>
generalizeNorm(RowOpInterface op, OpBuilder &builder,
               const GeneralizeOptions &options = {});

} // namespace mlir::norm

#endif // NORM_TRANSFORMS_GENERALIZE_H
