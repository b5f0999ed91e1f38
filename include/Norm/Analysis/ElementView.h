//===- ElementView.h - Elementwise view of tensor IR --------------*- C++
//-*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Raising asks what one element of a tensor is made of, whatever way a frontend
// chose to spell it. A `View` names one element: a value and, for each of its
// dimensions, the dimension of a common frame that indexes it. `look` walks
// through everything that only moves elements (unit-dim reshapes, broadcasts,
// transposes, fills, block arguments); `expand` says which scalar operation, or
// which sum over which dimensions of the frame, the element is.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_ANALYSIS_ELEMENTVIEW_H
#define NORM_ANALYSIS_ELEMENTVIEW_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/SmallVector.h"
#include <functional>
#include <optional>

namespace mlir::norm::elements {

/// The index of a dimension of extent 1: it has nowhere to go but 0.
inline constexpr int32_t kUnit = -1;

/// One element of a tensor, or a scalar of a linalg body. For a tensor, `index`
/// holds the frame dimension (or kUnit) that indexes each of its dimensions;
/// for a scalar in the body of a linalg op, the frame dimension of each loop of
/// that op; for any other scalar it is empty.
struct View {
  Value value;
  SmallVector<int32_t, 6> index;

  bool isTensor() const { return isa<RankedTensorType>(value.getType()); }
  bool operator==(const View &other) const {
    return value == other.value && index == other.index;
  }
};

/// The iteration space that views are expressed in: the shape of one tensor.
struct Frame {
  SmallVector<int64_t, 6> shape;

  explicit Frame(RankedTensorType type)
      : shape(type.getShape().begin(), type.getShape().end()) {}
  int32_t rank() const { return static_cast<int32_t>(shape.size()); }

  /// The element of `tensor` (of the frame's shape) at the frame's own indices.
  View identity(Value tensor) const;
  /// True if `view` is a tensor of the frame's rank, read at the frame's own
  /// indices.
  bool isIdentity(const View &view) const;
  /// The frame dimensions of extent other than 1.
  SmallVector<int32_t, 6> properDims() const;
};

enum class Kind {
  Leaf,     ///< nothing is known: an argument, a matmul, ...
  Constant, ///< `constant`
  Add,
  Sub,
  Mul,
  Div,
  Max, ///< `arith.maximumf`, or a comparison and a select
  Neg,
  Abs,
  Sqrt,
  Rsqrt,
  Pow,    ///< floating-point or integer exponent
  Ext,    ///< exact widening
  Trunc,  ///< rounding to a narrower type
  Reduce, ///< operands[0] combined over `axes` of the frame
  Select,
  Compare, ///< a floating-point comparison
  Other    ///< some other scalar operation, `operation` says which
};

/// What one element is made of.
struct Expr {
  Kind kind = Kind::Leaf;
  /// The element type of the result.
  Type type;
  SmallVector<View, 3> operands;
  /// Constant: the value.
  Attribute constant;
  /// Select on a comparison, Compare, Other: the operation.
  Operation *operation = nullptr;
  /// Reduce: the frame dimensions summed over, in increasing order, and the
  /// number of elements (kDynamic if unknown).
  SmallVector<int32_t, 4> axes;
  int64_t count = 1;
  /// Reduce: combined by floating-point addition, from 0.
  bool isSum = false, startsAtZero = false;

  bool is(Kind k) const { return kind == k; }
  /// The value of a floating-point constant.
  std::optional<llvm::APFloat> floatConstant() const;
};

class ViewAnalysis {
public:
  explicit ViewAnalysis(const Frame &frame) : frame(frame) {}

  /// One step through an operation that only moves elements; nullopt if the
  /// element is computed (or unknown) here.
  std::optional<View> step(const View &view) const;
  /// `step` to the end. `visit` sees every view on the way, the first and the
  /// last included.
  View look(View view,
            llvm::function_ref<void(const View &)> visit = nullptr) const;
  /// The operation behind `look(view)`, constants folded.
  Expr expand(const View &view) const;
  /// The same, but an operation on constants stays that operation.
  Expr expandUnfolded(const View &view) const;
  /// `look`, and through widening casts, which change no value.
  View stripExt(View view,
                llvm::function_ref<void(const View &)> visit = nullptr) const;

  /// The same element, by the same operation on the same operands (in either
  /// order for add and mul). False when it cannot be told.
  bool same(const View &a, const View &b) const;
  /// `same` after `stripExt` of both.
  bool sameExact(const View &a, const View &b) const;

  const Frame &frame;

private:
  bool sameImpl(View a, View b, bool exact, unsigned &fuel) const;
  Expr expandReduction(const View &view) const;
  Expr expandOperation(const View &view, Operation *op) const;
  Expr scalarOperation(const View &view, Operation *op) const;
};

/// Walks `view` and every widening below it, and returns the last tensor read
/// on the way for which `accept` holds.
std::optional<View> lastTensor(const ViewAnalysis &views, const View &view,
                               bool throughExt,
                               llvm::function_ref<bool(const View &)> accept);

} // namespace mlir::norm::elements

#endif // NORM_ANALYSIS_ELEMENTVIEW_H
