//===- LowerToLLVM.cpp - Buffers, loops, vectors to LLVM -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Pipelines/Pipelines.h"

#include "Norm/Transforms/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

/// Tiles to threads or to loops.
static void buildThreads(OpPassManager &pm,
                         const norm::LowerToLLVMOptions &options) {
  if (!options.threads) {
    pm.addNestedPass<func::FuncOp>(createForallToForLoopPass());
    return;
  }
  pm.addNestedPass<func::FuncOp>(createForallToParallelLoopPass());
  pm.addPass(createConvertSCFToOpenMPPass());
  pm.addPass(norm::createOutlineParallelBodyPass());
}

void norm::buildLowerToLLVM(OpPassManager &pm,
                            const LowerToLLVMOptions &options) {
  pm.addPass(norm::createExpandNarrowingPass());

  // Structured ops that are left become loops.
  pm.addPass(createExpandStridedCopyPass());
  pm.addPass(createConvertLinalgToLoopsPass());
  pm.addPass(createConvertVectorToSCFPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  buildThreads(pm, options);
  pm.addPass(createSCFToControlFlowPass());

  // Arithmetic that has no counterpart in LLVM. libm knows neither f16 nor
  // bf16.
  pm.addPass(math::createMathExtendToSupportedTypes());
  pm.addPass(norm::createPlainCastsPass());
  if (options.expandBF16) {
    // Arithmetic on bf16 itself is arithmetic on f32 that is rounded.
    arith::ArithEmulateUnsupportedFloatsOptions emulate;
    emulate.sourceTypeStrs = {"bf16"};
    emulate.targetTypeStr = "f32";
    pm.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
    pm.addPass(norm::createExpandBF16Pass());
  }
  pm.addPass(arith::createArithExpandOpsPass());

  // A function of libm takes a vector apart.
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createConvertVectorToLLVMPass());
  // Everything else, in one pass over the module.
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(norm::createMaskIntegersPass({options.maskWords}));
  if (options.expandBF16)
    pm.addPass(norm::createBF16AsI16Pass());
  pm.addPass(norm::createAlignStackPass());
}
