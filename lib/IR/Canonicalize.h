//===- Canonicalize.h - Rewrites that lose no information -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_IR_CANONICALIZE_H
#define NORM_LIB_IR_CANONICALIZE_H

#include "Norm/IR/NormOps.h"
#include "Norm/IR/Rewrite.h"

namespace mlir::norm {

/// A rewrite of every op of one class or interface, with a rule.
template <typename OpTy> struct OpRule : OpRewritePattern<OpTy> {
  OpRule(MLIRContext *context, StringLiteral id, const RewritePolicy &policy)
      : OpRewritePattern<OpTy>(context), rule(id, policy) {}

protected:
  Rule rule;
};

/// The backward op with other facts, in the place of `op`, which is erased.
/// The number of results may shrink by gradients without uses. Fails, and
/// changes nothing, if it cannot be rebuilt.
LogicalResult replaceByContract(RewriterBase &rewriter,
                                NormBackwardOpInterface op,
                                BackwardContract contract);

/// Whether code for a CPU corrects the mean once more: it does where what it
/// reads has as many bits as the arithmetic. A rewrite that changes this
/// changes how the mean rounds.
bool correctsMeanAgain(NormOpInterface op, NormContract contract);

/// Results without uses: C1, C32.
void populateUnusedResultPatterns(RewritePatternSet &patterns,
                                  const RewritePolicy &policy);
/// Reduced axes of extent 1: C2.
void populateUnitAxisPatterns(RewritePatternSet &patterns,
                              const RewritePolicy &policy);
/// Casts around a norm: C26.
void populateCastPatterns(RewritePatternSet &patterns,
                          const RewritePolicy &policy);

} // namespace mlir::norm

#endif // NORM_LIB_IR_CANONICALIZE_H
