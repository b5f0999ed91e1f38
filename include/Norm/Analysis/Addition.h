//===- Addition.h - Sums of two tensors -------------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_ANALYSIS_ADDITION_H
#define NORM_ANALYSIS_ADDITION_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace mlir::norm {

/// A tensor that is, element by element, the sum of two others: a
/// `linalg.generic`, a named linalg op or `arith.addf` on tensors, with or
/// without casts of operands and result.
struct Addition {
  /// One operand of the sum.
  struct Addend {
    /// The tensor of the sum's shape that is added, and the same before exact
    /// widening. Null where the operand is repeated or computed in the body of
    /// the addition.
    Value tensor, narrow;
    /// What that is a copy or repetition of, before exact widening, and the
    /// dimension of the sum that each of its dimensions indexes, ascending (-1
    /// for one of extent 1). Null for a scalar, and where it is transposed.
    Value source;
    SmallVector<int64_t> dims;
    /// The number of dimensions of the sum, of extent other than 1, along which
    /// `source` is repeated.
    int64_t numRepeated = 0;
    bool isFull() const { return tensor != nullptr; }
    bool isRepeated() const { return source && numRepeated != 0; }
  };
  Addend lhs, rhs;
  /// The type of the addition.
  FloatType type;
  /// The tensor that holds the sum in that type, if there is one: the value
  /// asked about, unless a cast lies between.
  Value sum;
  /// The type that the sum was narrowed to after the addition, or null.
  FloatType roundedTo;

  /// Whether both operands have the shape of the sum.
  bool isFull() const { return lhs.isFull() && rhs.isFull(); }
};

/// What `value` is the sum of, looking through casts of the whole sum; nullopt
/// if it is no sum. A scalar or constant operand makes no addition.
std::optional<Addition> matchAddition(Value value);

} // namespace mlir::norm

#endif // NORM_ANALYSIS_ADDITION_H
