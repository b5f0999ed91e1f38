//===- Constants.h - Constant tensors as numbers -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_ANALYSIS_CONSTANTS_H
#define NORM_ANALYSIS_CONSTANTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include <optional>

namespace mlir::norm {

/// The elements of a constant tensor of floats, exact in f64.
class ConstantTensor {
public:
  ConstantTensor(RankedTensorType type, SmallVector<double> values)
      : type(type), values(std::move(values)) {}

  RankedTensorType getType() const { return type; }
  ArrayRef<int64_t> getShape() const { return type.getShape(); }
  /// Whether all elements are the same; true of a tensor written as a splat,
  /// and of any other whose elements are equal bit by bit.
  bool isSplat() const;
  double getSplat() const { return values.front(); }
  /// All elements, row-major; one where the tensor is written as a splat.
  ArrayRef<double> getValues() const { return values; }
  /// The element at a row-major position.
  double operator[](int64_t position) const {
    return values.size() == 1 ? values.front() : values[position];
  }

private:
  RankedTensorType type;
  /// One element where the tensor is written as a splat.
  SmallVector<double> values;
};

/// The elements of `value`: an `arith.constant` (dense or resource), or a
/// `linalg.fill` or `tensor.splat` of a constant, behind any op that only moves
/// elements (`tensor.cast`, `expand_shape`, `collapse_shape`,
/// `linalg.transpose`, `broadcast`, a `generic` that yields its input). nullopt
/// for anything else, null, integers, a dynamic shape, or no elements.
std::optional<ConstantTensor> matchConstant(Value value);

/// The same for a scalar constant, or for a tensor whose elements are all the
/// same.
std::optional<double> matchConstantScalar(Value value);

/// An `arith.constant` of static shape and float elements, each rounded once
/// (to nearest, ties to even) to the element type. `values` holds one element
/// for a splat.
Value createConstant(OpBuilder &builder, Location loc, RankedTensorType type,
                     ArrayRef<double> values);

/// `value` rounded once to `type`.
APFloat roundToType(double value, FloatType type);

/// The same as a number.
double roundedTo(double value, FloatType type);

} // namespace mlir::norm

#endif // NORM_ANALYSIS_CONSTANTS_H
