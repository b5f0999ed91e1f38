//===- Pipelines.cpp - Registration of the pipelines -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Pipelines/Pipelines.h"

#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

void norm::registerNormPipelines() {
  PassPipelineRegistration<NormToCpuOptions>(
      "norm-to-cpu", "norm ops to vectorized CPU code in the LLVM dialect",
      buildNormToCpu);
  PassPipelineRegistration<NormToNvvmOptions>(
      "norm-to-nvvm",
      "norm ops to GPU kernels in host code in the LLVM dialect",
      buildNormToNvvm);
  PassPipelineRegistration<>(
      "norm-to-reference",
      "norm ops to plain f64 loops in the LLVM dialect: the oracle",
      [](OpPassManager &pm) { buildNormToReference(pm); });
}
