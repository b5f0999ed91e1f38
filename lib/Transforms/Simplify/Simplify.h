//===- Simplify.h - The rewrites of norm-simplify -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_TRANSFORMS_SIMPLIFY_H
#define NORM_TRANSFORMS_SIMPLIFY_H

#include "Norm/IR/Rewrite.h"

namespace mlir::norm {

/// Whether a sum with `value`, which may be null for none, can be -0 or lose
/// the sign of a zero: unless it is a constant without zeros.
bool mayHoldZero(Value value);

/// y where x^ * scale is 0 everywhere: the shift, or 0, of the result's type
/// and x's shape.
Value broadcastShift(RewriterBase &rewriter, NormOpInterface op);

/// Replaces y, and erases the op if nothing else of it is used.
void replaceNormalized(RewriterBase &rewriter, NormOpInterface op, Value y);

/// Whether the factor of a statistic of 0 is finite in the compute type.
bool isFactorOfZeroFinite(NormOpInterface op);

/// A tensor of another float type.
Value castElements(OpBuilder &builder, Location loc, Value tensor,
                   FloatType type);
/// The same for a scalar.
Value castFloat(OpBuilder &builder, Location loc, Value value, FloatType type);

/// Whether `wide` has every number of `narrow`.
bool holdsAll(FloatType wide, FloatType narrow);

/// Constant scale and shift, and what is added to a norm: C4, C5, C20, C30.
void populateSimplifyAffinePatterns(RewritePatternSet &patterns,
                                    const RewritePolicy &policy);
/// What a norm removes from its input again: C7 to C10, C13.
void populateSimplifyInputPatterns(RewritePatternSet &patterns,
                                   const RewritePolicy &policy);
/// A norm of a norm: C13, one of the above.
void populateNestedNormPatterns(RewritePatternSet &patterns,
                                const RewritePolicy &policy);
/// A norm with given statistics as a multiplication and an addition: C16.
void populateSimplifyInferencePatterns(RewritePatternSet &patterns,
                                       const RewritePolicy &policy);
/// A norm as one of another kind, or none: C11, C12, C14; C15.
void populateSimplifyKindPatterns(RewritePatternSet &patterns,
                                  const RewritePolicy &policy);
/// A layer norm of what has the mean 0: C11 and C12, two of the above.
void populateCentredInputPatterns(RewritePatternSet &patterns,
                                  const RewritePolicy &policy);
void populateUnifyKindPatterns(RewritePatternSet &patterns,
                               const RewritePolicy &policy);
/// Norms whose result is known: C28, C35.
void populateSimplifyConstantPatterns(RewritePatternSet &patterns,
                                      const RewritePolicy &policy);
/// Transposes and reshapes: C21, C22.
void populateSimplifyReshapePatterns(RewritePatternSet &patterns,
                                     const RewritePolicy &policy);
/// Broadcasts: C23.
void populateSimplifyBroadcastPatterns(RewritePatternSet &patterns,
                                       const RewritePolicy &policy);
/// Slices and concatenations: C24, C25.
void populateSimplifySlicePatterns(RewritePatternSet &patterns,
                                   const RewritePolicy &policy);
/// Multiplications by orthogonal matrices: C31.
void populateRotationPatterns(RewritePatternSet &patterns,
                              const RewritePolicy &policy);
/// What several norms have in common: C27.
void populateSimplifySharingPatterns(RewritePatternSet &patterns,
                                     const RewritePolicy &policy);
/// Products of normalized queries and keys: C33, by C34.
void populateSimplifyAttentionPatterns(RewritePatternSet &patterns,
                                       const RewritePolicy &policy);

} // namespace mlir::norm

#endif // NORM_TRANSFORMS_SIMPLIFY_H
