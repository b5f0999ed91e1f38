//===- Rotation.cpp - Norms and orthogonal matrices ------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Simplify.h"

using namespace mlir;
using namespace mlir::norm;

void norm::populateRotationPatterns(RewritePatternSet &,
                                    const RewritePolicy &) {}
