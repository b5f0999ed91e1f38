//===- ToCpu.cpp - norm-to-cpu -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Pipelines/Pipelines.h"

#include "Norm/Transforms/Passes.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void norm::buildNormToCpu(OpPassManager &pm, const NormToCpuOptions &options) {
  CpuTarget target{options.isa, options.streamBytes, options.bf16};
  if (options.host)
    target = hostCpuTarget();
  ConfigureNormPassOptions configure;
  configure.isa = target.isa;
  configure.streamBytes = target.streamBytes;

  pm.addPass(createSpecializePass());
  // Each norm and its neighbours: one loop over tiles, in vector form.
  pm.addPass(createMergeAxesPass());
  pm.addPass(createSplitGradientsPass());
  pm.addPass(createConfigureNormPass(configure));
  pm.addPass(createTileNormPass());
  pm.addPass(createLowerNormToLinalgPass());
  pm.addPass(createVectorizeNormTilesPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
  pm.addPass(createCSEPass());
  pm.addPass(createCanonicalizerPass());

  BufferizeOptions bufferize;
  bufferize.strides = options.strides;
  buildBufferize(pm, bufferize);

  pm.addPass(createMapToRegistersPass({target.isa}));
  pm.addPass(createSpreadTilesPass({options.threads, target.isa}));
  VectorTransferToSCFOptions pieces;
  pieces.enableFullUnroll();
  pm.addPass(createConvertVectorToSCFPass(pieces));
  LowerToLLVMOptions lower;
  lower.threads = options.threads;
  lower.expandBF16 = !target.roundsToBf16;
  lower.maskWords = target.isa == CpuIsa::X86;
  buildLowerToLLVM(pm, lower);
}
