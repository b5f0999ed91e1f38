//===- ToCpu.cpp - norm-to-cpu -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Pipelines/Pipelines.h"

#include "Norm/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

void norm::buildNormToCpu(OpPassManager &pm, const NormToCpuOptions &options) {
  pm.addPass(createLowerNormToLinalgPass());
  buildBufferize(pm, BufferizeOptions());
  LowerToLLVMOptions lower;
  lower.threads = options.threads;
  buildLowerToLLVM(pm, lower);
}
