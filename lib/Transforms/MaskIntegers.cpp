//===- MaskIntegers.cpp - norm-mask-integers -------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM 22 takes a masked access whose mask is known to have one lane for an
// access of a scalar, after it has decided which scalars there are: code
// generation fails where bf16 is none of them. Integers of 16 bits always are.
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "MaskWords.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::norm {
#define GEN_PASS_DEF_MASKINTEGERSPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;

/// The integer vector that stands for a vector of 16-bit floats; null for any
/// other type.
static VectorType asIntegers(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || !isa<Float16Type, BFloat16Type>(vector.getElementType()))
    return {};
  return vector.clone(IntegerType::get(type.getContext(), 16));
}

namespace {
struct MaskIntegers : public norm::impl::MaskIntegersPassBase<MaskIntegers> {
  using Base::Base;

  void runOnOperation() override {
    OpBuilder builder(&getContext());
    auto cast = [&](Type type, Value value) -> Value {
      return LLVM::BitcastOp::create(builder, value.getLoc(), type, value);
    };
    getOperation()->walk([&](LLVM::MaskedStoreOp op) {
      VectorType integers = asIntegers(op.getValue().getType());
      if (!integers)
        return;
      builder.setInsertionPoint(op);
      op.getValueMutable().assign(cast(integers, op.getValue()));
    });
    getOperation()->walk([&](LLVM::MaskedLoadOp op) {
      Type type = op.getRes().getType();
      VectorType integers = asIntegers(type);
      if (!integers)
        return;
      builder.setInsertionPoint(op);
      for (OpOperand &passThrough : op.getPassThruMutable())
        passThrough.set(cast(integers, passThrough.get()));
      op.getRes().setType(integers);
      builder.setInsertionPointAfter(op);
      Value floats = cast(type, op.getRes());
      op.getRes().replaceAllUsesExcept(floats, floats.getDefiningOp());
    });
    if (words)
      norm::moveMaskedWords(getOperation());
  }
};
} // namespace
