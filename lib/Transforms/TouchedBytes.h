//===- TouchedBytes.h - How much memory a loop touches ---------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_TOUCHEDBYTES_H
#define NORM_LIB_TRANSFORMS_TOUCHEDBYTES_H

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <optional>

namespace mlir::norm {

/// The view outside `loop` that `view`, inside it, shows a part of; null if its
/// memory is the loop's own.
Value viewOutside(Value view, Operation *loop);

/// Whether a loop touches more than so many bytes: known, or an i1.
struct ExceedsBytes {
  std::optional<bool> known;
  Value value;
};

/// Compares the sizes of the buffers that `loop` reads or writes, each counted
/// once and whole, with `bytes`; what only run time knows is computed before
/// the loop.
ExceedsBytes touchesMoreThan(OpBuilder &builder, scf::ForallOp loop,
                             int64_t bytes);

} // namespace mlir::norm

#endif // NORM_LIB_TRANSFORMS_TOUCHEDBYTES_H
