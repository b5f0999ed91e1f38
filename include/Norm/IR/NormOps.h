//===- NormOps.h - The ops of the dialect ----------------------*- C++ -*-===//
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

//===----------------------------------------------------------------------===//
// What indexes what
//===----------------------------------------------------------------------===//

/// By which axes of x the dimensions of an operand or result are indexed.
enum class TensorRole {
  Full,      // all axes of x
  Statistic, // the kept axes and the grouped one
  Affine,    // the affine axes
  Scalar     // not a tensor
};

/// What a tensor holds.
enum class ElementKind {
  Float,
  Count, // i64
  Mask   // i1
};

/// One group of operands or results in ODS: a single, or an optional one, whose
/// name then ends in `?`.
struct TensorGroup {
  TensorRole role;
  StringRef groupName;
  ElementKind kind = ElementKind::Float;

  bool isOptional() const { return groupName.ends_with("?"); }
  /// The name as it is printed in diagnostics.
  StringRef getName() const {
    return isOptional() ? groupName.drop_back() : groupName;
  }
};

/// The axes of x that a tensor of this role indexes, in its own order.
SmallVector<int64_t> axesOfRole(RowOpInterface op, ArrayRef<int64_t> affineAxes,
                                TensorRole role);

/// The group that operand (or result) number `index` of `op` belongs to.
template <typename OpTy> TensorRole operandRole(OpTy op, unsigned index) {
  for (auto [number, group] : llvm::enumerate(OpTy::getOperandGroups())) {
    auto [start, length] = op.getODSOperandIndexAndLength(number);
    if (index >= start && index < start + length)
      return group.role;
  }
  llvm_unreachable("expected the number of an operand");
}
template <typename OpTy> TensorRole resultRole(OpTy op, unsigned index) {
  for (auto [number, group] : llvm::enumerate(OpTy::getResultGroups())) {
    auto [start, length] = op.getODSResultIndexAndLength(number);
    if (index >= start && index < start + length)
      return group.role;
  }
  llvm_unreachable("expected the number of a result");
}

/// Which axes scale and shift index where `affine_axes` is absent.
enum class AffineDefault {
  Reduced, // the reduced axes
  Kept,    // all others
  Channel, // the grouped axis
  Stated   // none: `affine_axes` is written where scale or shift is there
};
SmallVector<int64_t> defaultAffineAxes(AffineDefault affineDefault,
                                       ArrayRef<int64_t> reducedAxes,
                                       int64_t rank,
                                       std::optional<int64_t> groupedAxis);

/// Axes that some result of the op does not have.
SmallVector<int64_t> axesThatResultsLack(RowOpInterface op);

//===----------------------------------------------------------------------===//
// Contracts and builders
//===----------------------------------------------------------------------===//

/// All that decides what a backward op computes.
struct BackwardContract {
  /// The forward op's facts; its results, shift and running values are ignored.
  NormContract forward;
  Value dy, dsum;
  /// Saved statistics; null to have them computed again.
  Value mean, variance, rstd;
  /// Element types of dx (null: that of x), dscale and dshift (null: none).
  FloatType dxType, dscaleType, dshiftType;

  /// The contract of an existing op.
  static BackwardContract get(NormBackwardOpInterface op);
};

/// The widest of `atLeast` and the element types of `values`, which may be
/// null.
FloatType widestElementType(FloatType atLeast, ArrayRef<Value> values);

/// The type in which x and `residual` are added before the sum is rounded to
/// its own: the widest of f32, theirs and `others`.
FloatType sumAdditionType(Value x, Value residual, ArrayRef<FloatType> others);

/// `written` with axes resolved and defaults filled in.
NormContract resolveContract(RowOpInterface op, NormContract written,
                             ArrayRef<int64_t> affineAxes);

/// What the builders of an op need to know of its class.
struct OpShape {
  ArrayRef<TensorGroup> operands, results;
  ArrayRef<StringRef> attributes;
  AffineDefault affineDefault;
  bool hasResultSegments;
};
template <typename OpTy> OpShape opShape() {
  return {OpTy::getOperandGroups(), OpTy::getResultGroups(),
          OpTy::getAttributeNames(), OpTy::getAffineDefault(),
          OpTy::template hasTrait<OpTrait::AttrSizedResultSegments>()};
}

/// Fill `state` for a named op. Used by the ops' builders.
void buildFromContract(OpBuilder &builder, OperationState &state,
                       const NormContract &contract, const OpShape &shape);
void buildFromContract(OpBuilder &builder, OperationState &state,
                       const BackwardContract &contract, const OpShape &shape);

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// Constraint V3 and what every accessor relies on: single operands and results
/// are there, tensors without encoding, element and compute types that norms
/// know. `operandCounts` and `resultCounts` are the groups' sizes. Reads no
/// operand or result through an accessor.
LogicalResult verifyValues(Operation *op, ArrayRef<TensorGroup> operands,
                           ArrayRef<int64_t> operandCounts,
                           ArrayRef<TensorGroup> results,
                           ArrayRef<int64_t> resultCounts,
                           std::optional<Type> computeType);
template <typename OpTy>
LogicalResult verifyValues(OpTy op, std::optional<Type> computeType) {
  SmallVector<int64_t> operandCounts, resultCounts;
  for (unsigned i = 0, e = OpTy::getOperandGroups().size(); i < e; ++i)
    operandCounts.push_back(op.getODSOperandIndexAndLength(i).second);
  for (unsigned i = 0, e = OpTy::getResultGroups().size(); i < e; ++i)
    resultCounts.push_back(op.getODSResultIndexAndLength(i).second);
  return verifyValues(op, OpTy::getOperandGroups(), operandCounts,
                      OpTy::getResultGroups(), resultCounts, computeType);
}

/// Constraints V1-V17 of the named ops. `written` holds the attributes as they
/// are written.
LogicalResult verifyForwardNorm(NormOpInterface op, const NormContract &written,
                                AffineDefault affineDefault);
LogicalResult verifyBackwardNorm(NormBackwardOpInterface op,
                                 const NormContract &written,
                                 AffineDefault affineDefault);

/// One spelling per meaning, so that CSE and attribute comparisons see equal
/// ops as equal: axes non-negative and ascending, defaults not written.
LogicalResult useCanonicalSpelling(RowOpInterface op,
                                   ArrayRef<int64_t> defaultAffineAxes,
                                   FloatType defaultComputeType,
                                   PatternRewriter &rewriter);

} // namespace mlir::norm

#define GET_OP_CLASSES
#include "Norm/IR/NormOps.h.inc"

#endif // NORM_IR_NORMOPS_H
