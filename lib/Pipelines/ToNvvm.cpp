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
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

static unsigned capabilityOf(StringRef chip) {
  return norm::parseComputeCapability(chip).value_or(0);
}

/// The PTX that a chip needs at least; up to 8.8, which ptxas of CUDA 12.9
/// knows, one of the better ones.
static std::string ptxFeature(StringRef chip) {
  unsigned capability = capabilityOf(chip);
  if (capability == 88 || (capability >= 110 && capability < 120))
    return "+ptx90";
  return capability >= 100 ? "+ptx88" : capability >= 89 ? "+ptx83" : "+ptx76";
}

/// The chips from the oldest on, each once; where none is given, one that
/// norm-configure refuses.
static SmallVector<std::string> sortChips(ArrayRef<std::string> chips) {
  SmallVector<std::string> sorted(chips);
  if (sorted.empty())
    sorted.push_back("");
  llvm::sort(sorted, [](const std::string &a, const std::string &b) {
    return std::pair(capabilityOf(a), a) < std::pair(capabilityOf(b), b);
  });
  sorted.erase(llvm::unique(sorted), sorted.end());
  return sorted;
}

/// Which chips kernels are compiled for: PTX and bitcode of the oldest are for
/// all.
static ArrayRef<std::string> targetChips(ArrayRef<std::string> chips,
                                         norm::GpuFormat format) {
  bool isForAll =
      format == norm::GpuFormat::Isa || format == norm::GpuFormat::Llvm;
  return isForAll ? chips.take_front() : chips;
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
static void buildKernels(OpPassManager &pm, ArrayRef<std::string> chips) {
  // Constants go into the kernels instead of being arguments.
  pm.addPass(createGpuLaunchSinkIndexComputationsPass());
  pm.addPass(createGpuKernelOutliningPass());
  for (const std::string &chip : chips) {
    GpuNVVMAttachTargetOptions target;
    target.chip = chip;
    target.features = ptxFeature(chip);
    target.optLevel = 3;
    pm.addPass(createGpuNVVMAttachTarget(target));
  }
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
  SmallVector<std::string> chips = sortChips(options.chips);
  // Rows lie as they do on the chip with the least shared memory: launches fit
  // all.
  const std::string *least = llvm::min_element(chips, [](const std::string &a,
                                                         const std::string &b) {
    return getSharedBytes(capabilityOf(a)) < getSharedBytes(capabilityOf(b));
  });

  // Each norm and its neighbours: one loop over rows, in vector form.
  ConfigureNormPassOptions configure;
  configure.target = ConfigureTarget::Gpu;
  configure.chip = capabilityOf(chips.front()) < 80 ? chips.front() : *least;
  pm.addPass(createSpecializePass());
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
  pm.addPass(createExpandNarrowingPass());
  pm.addPass(createMapToThreadsPass(
      {options.alignment, /*stream=*/true, configure.chip}));
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());

  buildKernels(pm, targetChips(chips, options.format));
  pm.addPass(createGpuKernelAbiPass({/*distinct=*/true}));

  // The host's code.
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createGpuToLLVMConversionPass());
  GpuModuleToBinaryPassOptions binary;
  binary.compilationTarget = formatName(options.format).str();
  if (options.format == GpuFormat::Llvm)
    pm.addPass(LLVM::createDIScopeForLLVMFuncOpPass());
  pm.addPass(createGpuModuleToBinaryPass(binary));
  pm.addPass(createLinkFatbinsPass());
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}
