//===- Scalar.h - Arithmetic in f64, rounded correctly ----------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_REFERENCE_SCALAR_H
#define NORM_LIB_TRANSFORMS_REFERENCE_SCALAR_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::norm::reference {

/// Scalar arithmetic of the reference: values are f64 unless a method says
/// otherwise.
struct Scalar {
  ImplicitLocOpBuilder b;
  Scalar(OpBuilder &builder, Location loc) : b(loc, builder) {}

  Value constant(double value) {
    return arith::ConstantOp::create(b, b.getF64FloatAttr(value));
  }
  Value integer(unsigned width, uint64_t value) {
    return arith::ConstantOp::create(
        b, b.getIntegerAttr(b.getIntegerType(width), APInt(width, value)));
  }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value sqrt(Value x) { return math::SqrtOp::create(b, x); }
  /// The greater value; NaN if either is.
  Value max(Value x, Value y) { return arith::MaximumFOp::create(b, x, y); }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }
  /// An i1, false where either is NaN.
  Value isEqual(Value x, Value y) {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, x, y);
  }
  Value isLess(Value x, Value y) {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, y);
  }
  Value isNaN(Value x) {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
  }

  /// A float of any type, an i64, or an i1 (0 or 1), as an f64.
  Value widen(Value x);

  /// x as a value of `type`, to nearest and ties to even.
  Value narrow(Value x, FloatType type);

  /// x rounded to `type`, as an f64.
  Value round(Value x, FloatType type) { return widen(narrow(x, type)); }

  /// Adds x to a sum and to the sum of its rounding errors (Knuth).
  std::pair<Value, Value> accumulate(Value x, Value sum, Value error);

  /// The corrected sum. An infinite or NaN sum has a meaningless correction.
  Value finish(Value sum, Value error);

private:
  Value narrowToOddF32(Value x);
  Value narrowToBF16(Value x, FloatType type);
};

} // namespace mlir::norm::reference

#endif // NORM_LIB_TRANSFORMS_REFERENCE_SCALAR_H
