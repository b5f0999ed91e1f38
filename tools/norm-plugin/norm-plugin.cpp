//===- norm-plugin.cpp - The dialect and its passes for mlir-opt ----------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// `mlir-opt --load-dialect-plugin=NormPlugin.so` knows the dialect and, in
// `--pass-pipeline`, the passes. `--load-pass-plugin` gives the passes alone.

#include "Norm/RegisterAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Support/Compiler.h"

/// Both entry points register the passes, and both may be used at once.
static void registerPassesOnce() {
  static bool once = (mlir::norm::registerAllPasses(), true);
  (void)once;
}

extern "C" LLVM_ATTRIBUTE_WEAK ::mlir::DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Norm", NORM_VERSION,
          [](mlir::DialectRegistry *registry) {
            mlir::norm::registerAllDialects(*registry);
            registerPassesOnce();
          }};
}

extern "C" LLVM_ATTRIBUTE_WEAK ::mlir::PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Norm", NORM_VERSION, registerPassesOnce};
}
