//===- RegisterAll.cpp - All that an embedder registers -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/RegisterAll.h"

#include "Norm/IR/NormOps.h"
#include "Norm/IR/RuntimeOpVerification.h"
#include "Norm/IR/ShardingInterfaceImpl.h"
#include "Norm/IR/ValueBoundsOpInterfaceImpl.h"
#include "Norm/Pipelines/Pipelines.h"
#include "Norm/Transforms/BufferizableOpInterfaceImpl.h"
#include "Norm/Transforms/Passes.h"

using namespace mlir;

void norm::registerAllDialects(DialectRegistry &registry) {
  registry.insert<NormDialect>();
  registerRuntimeVerifiableOpInterfaceExternalModels(registry);
  registerBufferizableOpInterfaceExternalModels(registry);
  registerShardingInterfaceExternalModels(registry);
  registerValueBoundsOpInterfaceExternalModels(registry);
}

void norm::registerAllPasses() {
  registerNormPasses();
  registerNormPipelines();
}
