//===- ToNvvm.cpp - norm-to-nvvm -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Pipelines/Pipelines.h"

#include "Norm/Transforms/GpuChip.h"
#include "Norm/Transforms/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

/// The PTX that a chip needs at least and ptxas of CUDA 12.9 and later knows.
static std::string ptxFeature(StringRef chip) {
  std::optional<unsigned> capability = norm::parseComputeCapability(chip);
  if (!capability)
    return "";
  return *capability >= 100  ? "+ptx88"
         : *capability >= 90 ? "+ptx83"
                             : "+ptx76";
}

static StringRef formatName(norm::GpuFormat format) {
  switch (format) {
  case norm::GpuFormat::Isa:
    return "isa";
  case norm::GpuFormat::Bin:
    return "bin";
  case norm::GpuFormat::Fatbin:
    return "fatbin";
  case norm::GpuFormat::Llvm:
    return "llvm";
  }
  llvm_unreachable("unknown format");
}

/// Kernels to the LLVM and NVVM dialects.
static void buildKernels(OpPassManager &pm, StringRef chip) {
  // Constants go into the kernels instead of being arguments.
  pm.addPass(createGpuLaunchSinkIndexComputationsPass());
  pm.addPass(createGpuKernelOutliningPass());
  GpuNVVMAttachTargetOptions target;
  target.chip = chip.str();
  target.features = ptxFeature(chip);
  target.optLevel = 3;
  pm.addPass(createGpuNVVMAttachTarget(target));
  pm.addPass(createSCFToControlFlowPass());

  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>();
  kernels.addPass(memref::createExpandStridedMetadataPass());
  kernels.addPass(createLowerAffinePass());
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  kernels.addPass(createConvertGpuOpsToNVVMOps());
  kernels.addPass(createReconcileUnrealizedCastsPass());
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
}

void norm::buildNormToNvvm(OpPassManager &pm,
                           const NormToNvvmOptions &options) {
  // Each norm and its neighbours: one loop over rows, in vector form.
  ConfigureNormPassOptions configure;
  configure.target = ConfigureTarget::Gpu;
  configure.chip = options.chip;
  pm.addPass(createConfigureNormPass(configure));
  pm.addPass(createTileNormPass());
  pm.addPass(createLowerNormToLinalgPass());
  pm.addPass(createVectorizeNormTilesPass());
  // Sweeps of one step are no loops; then they share what they read. What does
  // not vary along rows stays inside: each thread reads its own part.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createCanonicalizerPass());

  BufferizeOptions bufferize;
  bufferize.strides = options.strides;
  buildBufferize(pm, bufferize);
  pm.addPass(createLowerAffinePass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createMapToThreadsPass({options.alignment, /*stream=*/true}));
  pm.addPass(createExpandNarrowingPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());

  buildKernels(pm, options.chip);
  pm.addPass(createGpuKernelAbiPass({/*distinct=*/true}));

  // The host's code.
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createGpuToLLVMConversionPass());
  GpuModuleToBinaryPassOptions binary;
  binary.compilationTarget = formatName(options.format).str();
  pm.addPass(createGpuModuleToBinaryPass(binary));
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}
