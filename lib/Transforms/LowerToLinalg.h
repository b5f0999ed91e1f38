//===- LowerToLinalg.h - Decomposition of one op ---------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_LOWERTOLINALG_H
#define NORM_LIB_TRANSFORMS_LOWERTOLINALG_H

#include "Norm/IR/NormInterfaces.h"

namespace mlir::norm {

/// The op as linalg on tensors, one value per result, inserted at the builder's
/// place; `op` itself stays. Warns of an epsilon that vanishes (V4). Fails if
/// the op does not decompose.
FailureOr<SmallVector<Value>> decomposeRowOp(RowOpInterface op,
                                             OpBuilder &builder);

} // namespace mlir::norm

#endif // NORM_LIB_TRANSFORMS_LOWERTOLINALG_H
