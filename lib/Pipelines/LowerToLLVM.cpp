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

namespace {
/// Takes the flags off the casts that upstream makes around math ops: LLVM 22
/// has none on llvm.fpext, and what is left there as an attribute of the arith
/// dialect cannot be translated to LLVM IR.
struct PlainCasts : public PassWrapper<PlainCasts, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PlainCasts)

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
  pm.addPass(std::make_unique<PlainCasts>());
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = options.expandBF16;
  pm.addPass(arith::createArithExpandOpsPass(expand));

  // A function of libm takes a vector apart.
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createUBToLLVMConversionPass());
  if (options.threads)
    pm.addPass(createConvertOpenMPToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(norm::createMaskIntegersPass());
}
