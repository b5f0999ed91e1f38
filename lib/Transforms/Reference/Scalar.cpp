//===- Scalar.cpp - Arithmetic in f64, rounded correctly --------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Scalar.h"

#include <limits>

using namespace mlir;
using namespace mlir::norm::reference;

Value Scalar::widen(Value x) {
  if (x.getType().isF64())
    return x;
  if (x.getType().isInteger(1))
    return arith::UIToFPOp::create(b, b.getF64Type(), x);
  if (isa<IntegerType>(x.getType()))
    return arith::SIToFPOp::create(b, b.getF64Type(), x);
  return arith::ExtFOp::create(b, b.getF64Type(), x);
}

Value Scalar::narrow(Value x, FloatType type) {
  if (type.isF64())
    return x;
  if (type.isF32())
    return arith::TruncFOp::create(b, type, x);
  Value odd = narrowToOddF32(x);
  if (type.isF16())
    return arith::TruncFOp::create(b, type, odd);
  return narrowToBF16(odd, type);
}

/// x as an f32, rounded towards zero and with the last bit set if inexact.
/// Rounding that to a type of at most 22 bits of precision is the same as
/// rounding x, where rounding to nearest twice is not.
Value Scalar::narrowToOddF32(Value x) {
  Type f32 = b.getF32Type(), i32 = b.getI32Type();
  Value nearest = arith::TruncFOp::create(b, f32, x);
  Value back = widen(nearest);
  Value isExact = arith::CmpFOp::create(b, arith::CmpFPredicate::UEQ, back, x);
  Value isAway = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT,
                                       math::AbsFOp::create(b, back),
                                       math::AbsFOp::create(b, x));
  Value bits = arith::BitcastOp::create(b, i32, nearest);
  Value below = arith::SubIOp::create(b, bits, integer(32, 1));
  Value truncated = arith::SelectOp::create(b, isAway, below, bits);
  Value odd = arith::OrIOp::create(b, truncated, integer(32, 1));
  return select(isExact, nearest, arith::BitcastOp::create(b, f32, odd));
}

/// An f32 to bf16 by integer arithmetic: some targets flush subnormals.
Value Scalar::narrowToBF16(Value x, FloatType type) {
  Type i16 = b.getIntegerType(16);
  Value bits = arith::BitcastOp::create(b, b.getI32Type(), x);
  Value sixteen = integer(32, 16);
  Value lowest = arith::AndIOp::create(
      b, arith::ShRUIOp::create(b, bits, sixteen), integer(32, 1));
  Value carry = arith::AddIOp::create(b, integer(32, 0x7fff), lowest);
  Value rounded =
      arith::ShRUIOp::create(b, arith::AddIOp::create(b, bits, carry), sixteen);
  Value value = arith::TruncIOp::create(b, i16, rounded);
  Value quiet = select(isNaN(x), integer(16, 0x7fc0), value);
  return arith::BitcastOp::create(b, type, quiet);
}

std::pair<Value, Value> Scalar::accumulate(Value x, Value sum, Value error) {
  Value next = add(sum, x);
  Value virtualX = sub(next, sum);
  Value lost = add(sub(sum, sub(next, virtualX)), sub(x, virtualX));
  return {next, add(error, lost)};
}

Value Scalar::finish(Value sum, Value error) {
  Value isFinite = isLess(math::AbsFOp::create(b, sum),
                          constant(std::numeric_limits<double>::infinity()));
  return select(isFinite, add(sum, error), sum);
}
