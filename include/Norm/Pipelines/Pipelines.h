//===- Pipelines.h - From norm ops to code ---------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_PIPELINES_PIPELINES_H
#define NORM_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir::norm {

/// Registers the pipelines by name: norm-to-cpu, norm-to-reference.
void registerNormPipelines();

} // namespace mlir::norm

#endif // NORM_PIPELINES_PIPELINES_H
