//===- Passes.cpp - C interface to the passes on norm ops -----------------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "norm-c/Passes.h"

#include "Norm/RegisterAll.h"

void normRegisterAllPasses() {
  static bool once = (mlir::norm::registerAllPasses(), true);
  (void)once;
}
