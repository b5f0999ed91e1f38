//===- FloatBits.h - Arithmetic on the bits of floats ----------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_FLOATBITS_H
#define NORM_LIB_TRANSFORMS_FLOATBITS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::norm {

/// `type`, or a vector of it if `like` is a vector.
inline Type withElement(Type like, Type type) {
  auto shaped = dyn_cast<ShapedType>(like);
  return shaped ? Type(shaped.clone(type)) : type;
}

/// Builds arithmetic on the bits of one value, or of a vector of values.
struct BitBuilder {
  OpBuilder &builder;
  Location loc;
  Type f32, i32, i8;

  BitBuilder(OpBuilder &builder, Location loc, Type like)
      : builder(builder), loc(loc),
        f32(withElement(like, builder.getF32Type())),
        i32(withElement(like, builder.getI32Type())),
        i8(withElement(like, builder.getI8Type())) {}

  template <typename OpT, typename... Args> Value make(Args &&...args) {
    return OpT::create(builder, loc, std::forward<Args>(args)...);
  }
  Value constant(uint32_t value) {
    TypedAttr attr = builder.getI32IntegerAttr(static_cast<int32_t>(value));
    if (auto shaped = dyn_cast<ShapedType>(i32))
      attr = DenseElementsAttr::get(shaped, attr);
    return make<arith::ConstantOp>(attr);
  }
  Value asFloat(Value bits) { return make<arith::BitcastOp>(f32, bits); }
  Value asBits(Value value) { return make<arith::BitcastOp>(i32, value); }
  Value isAbove(Value bits, uint32_t limit) {
    return make<arith::CmpIOp>(arith::CmpIPredicate::ugt, bits,
                               constant(limit));
  }
};

/// What `op` makes of bf16, by a shift.
inline Value widenBF16(OpBuilder &builder, arith::ExtFOp op) {
  Type from = op.getIn().getType();
  BitBuilder b(builder, op.getLoc(), from);
  Value bits = b.make<arith::BitcastOp>(withElement(from, builder.getI16Type()),
                                        op.getIn());
  Value wide = b.asFloat(b.make<arith::ShLIOp>(
      b.make<arith::ExtUIOp>(b.i32, bits), b.constant(16)));
  if (getElementTypeOrSelf(op.getType()).isF32())
    return wide;
  return b.make<arith::ExtFOp>(op.getType(), wide);
}

} // namespace mlir::norm

#endif // NORM_LIB_TRANSFORMS_FLOATBITS_H
