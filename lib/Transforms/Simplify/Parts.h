//===- Parts.h - Gains, epsilons and statistics of a rewrite -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rewrite that multiplies what is normalized, or normalizes it otherwise, has
// to put a factor somewhere: into the gain, into epsilon, and into the
// statistics that somebody reads. This is how.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_SIMPLIFY_PARTS_H
#define NORM_LIB_TRANSFORMS_SIMPLIFY_PARTS_H

#include "Norm/IR/NormOps.h"

namespace mlir::norm::simplify {

/// A float constant of the type, rounded once.
Value buildNumber(OpBuilder &builder, Location loc, double value,
                  FloatType type);

/// An operand of an elementwise op: a tensor, and for each of its dimensions
/// the dimension of the result that indexes it, -1 where its extent is 1.
struct MappedOperand {
  Value tensor;
  SmallVector<int64_t> dims;
};

/// A tensor of the shape of `tensor`, whose elements the body makes from those
/// of `tensor` and of the others; of its element type too, unless another is
/// given.
Value mapElements(OpBuilder &builder, Location loc, Value tensor,
                  ArrayRef<MappedOperand> others,
                  function_ref<Value(OpBuilder &, Location, ValueRange)> body,
                  Type elementType = {});

/// `statistic`, a tensor, times a number; null for null.
Value scaleStatistic(OpBuilder &builder, Location loc, Value statistic,
                     double factor);

/// Whether the gain of a norm can be multiplied by a number without rounding
/// otherwise than it does. 1 and -1 always can, but where there is a shift of
/// dynamic shape and no gain; other numbers where the gain is a constant or
/// absent, and where nothing is rounded before it is applied.
bool canScaleGain(const NormContract &contract, double factor);

/// Multiplies the gain, its offset included. A gain that is made new indexes
/// `axes` where they are static, and else is a scalar.
void scaleGain(OpBuilder &builder, Location loc, NormContract &contract,
               double factor, ArrayRef<int64_t> axes);

/// The constant factor of all elements of a norm's gain, its offset included:
/// 1 for no gain, nullopt where it varies or is no constant.
std::optional<double> splatGain(NormOpInterface op);

/// Whether epsilon may take this value in place of `old`: it is finite in the
/// compute type, and not 0 or subnormal there where `old` was neither.
bool isUsableEpsilon(double value, double old, FloatType computeType);

/// A number as text for a remark.
std::string numberText(double value);

/// Whether anything reads a result, which may be null.
inline bool isUsed(Value result) { return result && !result.use_empty(); }

/// The op of another class with these facts, before `op` and with its
/// discardable attributes. `op` stays.
template <typename OpTy>
NormOpInterface buildAs(RewriterBase &rewriter, NormOpInterface op,
                        const NormContract &contract) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  auto built = OpTy::create(rewriter, op->getLoc(), contract);
  built->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return cast<NormOpInterface>(built.getOperation());
}

} // namespace mlir::norm::simplify

#endif // NORM_LIB_TRANSFORMS_SIMPLIFY_PARTS_H
