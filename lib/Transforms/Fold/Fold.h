//===- Fold.h - Norms into their neighbours ------------------- -*- C++ -*-===//
//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_FOLD_FOLD_H
#define NORM_LIB_TRANSFORMS_FOLD_FOLD_H

#include "Norm/IR/Rewrite.h"

namespace mlir::norm::fold {

/// C17: a norm with given statistics becomes part of the convolution or matmul
/// whose value it normalizes, and is erased.
LogicalResult foldIntoProducer(RewriterBase &rewriter, const Rule &rule,
                               NormOpInterface op);

/// C18: the same into the convolutions and matmuls that read it.
LogicalResult foldGivenNormIntoConsumers(RewriterBase &rewriter,
                                         const Rule &rule, NormOpInterface op);

/// C19 where all that reads the norm are matmuls, else C18: scale and shift of
/// a norm that computes its statistics become part of what reads it.
LogicalResult foldAffineIntoConsumers(RewriterBase &rewriter,
                                      const RewritePolicy &policy,
                                      NormOpInterface op);

} // namespace mlir::norm::fold

#endif // NORM_LIB_TRANSFORMS_FOLD_FOLD_H
