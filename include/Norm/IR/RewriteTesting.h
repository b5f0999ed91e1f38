//===- RewriteTesting.h - Switches for tests of rewrites --------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_REWRITETESTING_H
#define NORM_IR_REWRITETESTING_H

#include "llvm/ADT/StringRef.h"

namespace mlir::norm {

/// From now on, takes one precondition of a rewrite as given, by its name
/// `<rule>.<condition>`, in every context of the process. Results are then
/// wrong: a test that still passes does not test the precondition.
void disablePreconditionForTesting(llvm::StringRef name);

} // namespace mlir::norm

#endif // NORM_IR_REWRITETESTING_H
