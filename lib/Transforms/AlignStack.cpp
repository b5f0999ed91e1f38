//===- AlignStack.cpp - norm-align-stack -----------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::norm {
#define GEN_PASS_DEF_ALIGNSTACKPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;

/// What ABIs align stacks to, in bits.
static constexpr int64_t kStackBits = 128;

static bool isWide(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getElementType().isIntOrFloat() &&
         vector.getNumElements() * vector.getElementTypeBitWidth() > kStackBits;
}

namespace {
struct AlignStack : public norm::impl::AlignStackPassBase<AlignStack> {
  void runOnOperation() override {
    StringAttr realign = StringAttr::get(&getContext(), "stackrealign");
    getOperation()->walk([&](LLVM::LLVMFuncOp function) {
      WalkResult found = function.walk([](Operation *op) {
        return llvm::any_of(op->getResultTypes(), isWide)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      });
      if (!found.wasInterrupted())
        return;
      SmallVector<Attribute> attributes;
      if (ArrayAttr known = function.getPassthroughAttr())
        llvm::append_range(attributes, known);
      if (llvm::is_contained(attributes, realign))
        return;
      attributes.push_back(realign);
      function.setPassthroughAttr(ArrayAttr::get(&getContext(), attributes));
    });
  }
};
} // namespace
