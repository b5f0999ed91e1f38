//===- Values.h - Arrays as numbers ----------------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_TOOLS_NORM_RUN_VALUES_H
#define NORM_TOOLS_NORM_RUN_VALUES_H

#include "Norm/ExecutionEngine/Npy.h"

#include "mlir/IR/BuiltinTypes.h"

namespace norm_run {

/// How two results of the same shape differ. NaN equals NaN, and an infinity
/// only itself.
struct Difference {
  /// Greatest |value - reference|; infinite where only one is finite or a NaN.
  double absolute = 0.0;
  /// The same relative to the greatest finite |reference|; 0 if both are 0.
  double relative = 0.0;
  /// Elements of which only one is finite, or that are different infinities.
  int64_t mismatches = 0;
};

/// Compares contiguous arrays of elements of `type`.
Difference compare(mlir::Type type, const mlir::norm::Array &value,
                   const mlir::norm::Array &reference);

/// Prints a contiguous array, a row of the innermost axis per line, and only
/// the ends of long rows and of many rows.
void print(llvm::raw_ostream &os, mlir::Type type,
           const mlir::norm::Array &array);

} // namespace norm_run

#endif // NORM_TOOLS_NORM_RUN_VALUES_H
