//===- Lowering.h - The lowering of each op ---------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_REFERENCE_LOWERING_H
#define NORM_LIB_TRANSFORMS_REFERENCE_LOWERING_H

#include "Norm/IR/NormOps.h"

namespace mlir::norm::reference {

/// The values of the op's results, computed where the builder stands.
SmallVector<Value> lower(NormOpInterface op, OpBuilder &builder);
SmallVector<Value> lower(NormBackwardOpInterface op, OpBuilder &builder);
SmallVector<Value> lower(MomentsOp op, OpBuilder &builder);
SmallVector<Value> lower(CombineMomentsOp op, OpBuilder &builder);
SmallVector<Value> lower(RstdOp op, OpBuilder &builder);
SmallVector<Value> lower(NormalizeOp op, OpBuilder &builder);
SmallVector<Value> lower(UpdateRunningOp op, OpBuilder &builder);
SmallVector<Value> lower(BackwardMomentsOp op, OpBuilder &builder);
SmallVector<Value> lower(BackwardNormalizeOp op, OpBuilder &builder);

} // namespace mlir::norm::reference

#endif // NORM_LIB_TRANSFORMS_REFERENCE_LOWERING_H
