//===- ConfigureGpu.h - Strategies for GPUs --------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_CONFIGUREGPU_H
#define NORM_LIB_TRANSFORMS_CONFIGUREGPU_H

#include "mlir/IR/Operation.h"

namespace mlir::norm {

/// Writes `#norm.gpu` on each norm op under `root` that has no strategy, for
/// `chip`, `sm_80` or later. Emits an error at each norm op that no kernel
/// computes, or about the chip, and fails.
LogicalResult configureForGpu(Operation *root, StringRef chip);

} // namespace mlir::norm

#endif // NORM_LIB_TRANSFORMS_CONFIGUREGPU_H
