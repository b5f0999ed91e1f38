//===- Lowering.h - The lowering of each op ---------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_REFERENCE_LOWERING_H
#define NORM_LIB_TRANSFORMS_REFERENCE_LOWERING_H

#include "Norm/IR/NormInterfaces.h"

namespace mlir::norm::reference {

/// The values of the op's results, computed where the builder stands.
SmallVector<Value> lowerForward(NormOpInterface op, OpBuilder &builder);
SmallVector<Value> lowerBackward(NormBackwardOpInterface op,
                                 OpBuilder &builder);

} // namespace mlir::norm::reference

#endif // NORM_LIB_TRANSFORMS_REFERENCE_LOWERING_H
