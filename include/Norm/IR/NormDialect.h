//===- NormDialect.h - The norm dialect and its attributes -----*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_NORMDIALECT_H
#define NORM_IR_NORMDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"

#include "Norm/IR/NormDialect.h.inc"
#include "Norm/IR/NormEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "Norm/IR/NormAttrs.h.inc"

namespace mlir::norm {

/// Name of the discardable attribute that holds a norm op's strategy, a
/// `#norm.cpu<...>` or `#norm.gpu<...>` attribute.
inline constexpr llvm::StringLiteral kStrategyAttrName = "norm.strategy";
/// The most elements, rows * columns, that a strategy may ask vectors of: 64
/// registers of the widest kind. Beyond, compiling takes minutes.
inline constexpr int64_t kMostTileElements = 1024;

} // namespace mlir::norm

#endif // NORM_IR_NORMDIALECT_H
