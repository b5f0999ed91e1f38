//===- NormOps.h - Named normalizations ------------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_NORMOPS_H
#define NORM_IR_NORMOPS_H

#include "Norm/IR/NormInterfaces.h"
#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::norm {

/// All that decides what a forward norm computes; what a pass fills in to
/// build one. Null values and types mean "absent" or "the default".
struct NormContract {
  Value x, residual, scale, shift;
  SmallVector<int64_t> axes;
  EpsilonAttr epsilon;
  /// Absent: the op's default.
  std::optional<SmallVector<int64_t>> affineAxes;
  /// Null: the widest of f32 and the element types of x and residual.
  FloatType computeType;
  int64_t correction = 0;
  double scaleOffset = 0.0;
  AffineIn affineIn = AffineIn::Compute;
  SumRounding sumRounding = SumRounding::Stored;
  ZeroPolicy zeroPolicy = ZeroPolicy::IEEE;
  /// Element type of y; null: that of x.
  FloatType resultType;
  /// Statistics asked for; their types follow from x, axes and compute type.
  bool wantsMean = false, wantsVariance = false, wantsRstd = false;
  /// Element type of the `sum` result; null: no such result.
  FloatType sumType;

  /// The contract of an existing op.
  static NormContract get(NormOpInterface op);
};

/// The widest of `atLeast` and the element types of `values`, which may be
/// null.
FloatType widestElementType(FloatType atLeast, ArrayRef<Value> values);

/// The widest of f32 and the element types of x and residual (may be null).
FloatType defaultComputeType(Value x, Value residual);

/// Fills `state` for an op of the forward form. Used by the ops' builders.
void buildFromContract(OpBuilder &builder, OperationState &state,
                       const NormContract &contract, bool hasMean);

/// Constraint V3 and what every accessor relies on: one x, one y, tensors
/// without encoding, element and compute types that norms know. Reads no
/// operand or result through an accessor.
LogicalResult verifyForwardValues(Operation *op,
                                  ArrayRef<int32_t> operandSegments,
                                  ArrayRef<int32_t> resultSegments,
                                  std::optional<Type> computeType);

/// Constraints V1-V17 as far as they apply to forward norms of the form
/// x, residual, scale, shift. The attributes are passed as written.
LogicalResult verifyForwardNorm(NormOpInterface op, ArrayRef<int64_t> axes,
                                std::optional<ArrayRef<int64_t>> affineAxes,
                                std::optional<Type> computeType);

/// Axes of x that an operand or result of such an op is indexed by.
SmallVector<int64_t> forwardOperandAxes(NormOpInterface op, unsigned operand);
SmallVector<int64_t> forwardResultAxes(NormOpInterface op, unsigned result);

} // namespace mlir::norm

#define GET_OP_CLASSES
#include "Norm/IR/NormOps.h.inc"

#endif // NORM_IR_NORMOPS_H
