//===- Specialize.h - Functions for known extents -------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_TRANSFORMS_SPECIALIZE_H
#define NORM_TRANSFORMS_SPECIALIZE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::norm {

/// Whether `type` is `general` with some of its run-time extents known, or the
/// same type.
bool isSpecialization(Type type, Type general);

/// Gives arguments of `func` types that are specializations of theirs, and
/// passes the extents on to norm ops, elementwise and linalg ops, and results.
/// What is called is not changed. Versions that `func` lists are not made.
///
/// A caller compiles one function for each shape of rows that it meets, as a
/// just-in-time compiler does, and leaves the number of rows dynamic.
LogicalResult specializeArguments(func::FuncOp func, TypeRange types);

} // namespace mlir::norm

#endif // NORM_TRANSFORMS_SPECIALIZE_H
