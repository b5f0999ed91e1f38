//===- PlainCasts.cpp - norm-plain-casts -----------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::norm {
#define GEN_PASS_DEF_PLAINCASTSPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;

namespace {
struct PlainCasts : public norm::impl::PlainCastsPassBase<PlainCasts> {
  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      if (auto extension = dyn_cast<arith::ExtFOp>(op))
        extension.removeFastmathAttr();
      else if (auto truncation = dyn_cast<arith::TruncFOp>(op))
        truncation.removeFastmathAttr();
    });
  }
};
} // namespace
