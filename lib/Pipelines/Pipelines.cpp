//===- Pipelines.cpp - Registration of the pipelines -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Pipelines/Pipelines.h"

using namespace mlir;

void norm::registerNormPipelines() {}
