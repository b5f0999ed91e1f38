//===- norm-opt.cpp - mlir-opt with the norm dialect -----------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/IR/RewriteTesting.h"
#include "Norm/RegisterAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"

static llvm::cl::opt<std::string> disablePrecondition(
    "norm-disable-precondition", llvm::cl::Hidden,
    llvm::cl::desc("Takes one precondition of a rewrite as given, by its name "
                   "<rule>.<condition>: for tests that must then fail"),
    llvm::cl::cb<void, std::string>([](const std::string &name) {
      mlir::norm::disablePreconditionForTesting(name);
    }));

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::norm::registerAllDialects(registry);
  mlir::registerAllPasses();
  mlir::norm::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "norm-opt: MLIR optimizer with the norm dialect\n",
      registry));
}
