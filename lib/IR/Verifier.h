//===- Verifier.h - Numbered constraints, one check each -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_IR_VERIFIER_H
#define NORM_LIB_IR_VERIFIER_H

#include "Norm/IR/NormOps.h"

namespace mlir::norm {

/// Checks that ops of both tiers share. Each method is one constraint (or a
/// part of one) and emits its own error, which ends with the constraint's id.
struct RowVerifier {
  RowOpInterface op;
  RankedTensorType xType = op.getInput().getType();
  int64_t rank = xType.getRank();

  InFlightDiagnostic error() { return op->emitOpError(); }

  /// V1: axes are non-empty, in range and unique after negatives are resolved.
  LogicalResult verifyAxes(ArrayRef<int64_t> axes);
  /// V5: the channel axis is in range and in `axes`, groups are positive and
  /// divide a static extent.
  LogicalResult verifyGroups(ArrayRef<int64_t> axes, int64_t channelAxis,
                             int64_t groups);
  /// V17, first part: affine_axes need one of `needed` (of which `isThere`
  /// tells whether one is there) and are strictly increasing; V13: they may
  /// differ from axes.
  LogicalResult verifyAffineAxes(std::optional<ArrayRef<int64_t>> affineAxes,
                                 bool isThere, StringRef needed);
  /// V2: an affine operand has the extents of x at the affine axes.
  LogicalResult verifyAffineShape(StringRef name, Value value,
                                  ArrayRef<int64_t> affineAxes);
  /// V3: a compute type of x's width is x's type: bf16 and f16 do not contain
  /// each other.
  LogicalResult verifyComputeType(FloatType computeType);
  /// V4: epsilon is finite and not negative, and positive for the maxima.
  LogicalResult verifyEpsilon(EpsilonAttr epsilon);
  /// V8: a statistic has x's shape without the reduced axes.
  LogicalResult verifyStatisticShape(StringRef name, Value value,
                                     StringRef id = "V8");
  /// V8: and the compute type.
  LogicalResult verifyStatistic(StringRef name, Value value);
  /// V11: momentum lies in [0, 1].
  LogicalResult verifyMomentum(double momentum);
  /// V12: rounding x-hat to x's type needs a result type that holds it.
  LogicalResult verifyAffineIn(AffineIn affineIn, Value y);
  /// V15: residual, y, sum and the like have x's shape.
  LogicalResult verifyFullShape(StringRef name, Value value, StringRef id);
  /// V17, second part: scale_offset is finite and needs scale.
  LogicalResult verifyScaleOffset(double offset, Value scale);
  /// V17, third part: the divisor of the variance is positive.
  LogicalResult verifyDivisor(int64_t correction, bool isCentred);

  /// Shapes agree where both are static.
  LogicalResult verifyShape(StringRef name, Value value,
                            ArrayRef<int64_t> expected, StringRef id);
  static std::string shapeText(ArrayRef<int64_t> shape);
};

} // namespace mlir::norm

#endif // NORM_LIB_IR_VERIFIER_H
