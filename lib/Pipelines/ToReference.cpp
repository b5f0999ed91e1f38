//===- ToReference.cpp - norm-to-reference -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Pipelines/Pipelines.h"

#include "Norm/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

void norm::buildNormToReference(OpPassManager &pm) {
  pm.addPass(createLowerToReferencePass());
  BufferizeOptions bufferize;
  bufferize.strides = EntryStrides::Any;
  buildBufferize(pm, bufferize);
  LowerToLLVMOptions lower;
  lower.threads = false;
  lower.expandBF16 = true;
  buildLowerToLLVM(pm, lower);
}
