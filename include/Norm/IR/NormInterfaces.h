//===- NormInterfaces.h - What passes ask a norm op ------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_NORMINTERFACES_H
#define NORM_IR_NORMINTERFACES_H

#include "Norm/IR/NormDialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"

namespace mlir::norm {

class RowOpInterface;
class NormOpInterface;
class NormBackwardOpInterface;

/// All that decides what a norm computes; what a pass fills in to build one.
/// Null values and types mean "absent" or "the default".
struct NormContract {
  Value x, residual, scale, shift;
  /// batch_norm_inference: the statistics it is given.
  Value mean, variance;
  /// batch_norm_training: the statistics it updates; both or neither.
  Value runningMean, runningVariance;
  /// The weight of the new observation: an attribute or a scalar operand.
  std::optional<double> momentum;
  Value momentumValue;
  int64_t runningCorrection = 1;
  /// group_norm: groups and the axis they split.
  int64_t groups = 1;
  std::optional<int64_t> channelAxis;
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

struct BackwardContract;

/// How a training batch norm moves its running statistics; no operands where
/// none are tracked.
struct RunningUpdate {
  Value mean, variance;
  /// Exactly one: the attribute, or a float scalar.
  std::optional<double> momentum;
  Value momentumValue;
  /// What is subtracted from n in the variance that is stored.
  int64_t correction = 1;
  /// The results.
  Value newMean, newVariance;

  explicit operator bool() const { return mean != nullptr; }
};

/// Resolves negative axes against `rank` and sorts them. Axes out of range
/// are kept as they are, for the verifier to name.
llvm::SmallVector<int64_t> canonicalAxes(llvm::ArrayRef<int64_t> axes,
                                         int64_t rank);

/// The axes 0 ... rank-1 that are not in `axes`, ascending.
llvm::SmallVector<int64_t> complementAxes(llvm::ArrayRef<int64_t> axes,
                                          int64_t rank);

/// Product of the extents of `axes` in `type`; nullopt if one is dynamic and
/// none is 0.
std::optional<int64_t> staticExtent(ShapedType type,
                                    llvm::ArrayRef<int64_t> axes);

/// The widest of f32 and the element types of x and residual (may be null).
FloatType defaultComputeType(Value x, Value residual);

/// Defaults of interface methods, for any op that implements the rest, itself
/// or by an external model; see RowOpInterface and NormOpInterface.
llvm::SmallVector<int64_t> defaultTiedAxes(Operation *op);
llvm::SmallVector<int64_t> defaultAffineAxes(Operation *op);
FloatType defaultComputeType(Operation *op);
FloatType defaultSumElementType(Operation *op);

/// See RowOpInterface.
llvm::SmallVector<int64_t> statisticAxes(RowOpInterface op);
std::optional<int64_t> staticReducedCount(RowOpInterface op);

/// See NormOpInterface::getOutputNormBound.
std::optional<double> outputNormBound(NormOpInterface op);

} // namespace mlir::norm

#include "Norm/IR/NormInterfaces.h.inc"

namespace mlir::norm {

/// A dimension of an operand or result that must equal the extent of x at
/// `axis`.
struct ExtentAgreement {
  Value tensor;
  int64_t dim, axis;
};

/// All of an op's, but for what x itself decides. Dimensions that count groups
/// are static and checked by the verifier.
SmallVector<ExtentAgreement> extentAgreements(RowOpInterface op);

//===----------------------------------------------------------------------===//
// Methods of other interfaces, for any op that implements RowOpInterface
//===----------------------------------------------------------------------===//

/// Speculatable when every extent that the op requires to agree is static.
Speculation::Speculatability normSpeculatability(RowOpInterface op);

/// Extents of every result in terms of the extents of x.
LogicalResult reifyNormResultShapes(RowOpInterface op, OpBuilder &builder,
                                    ReifiedRankedShapedTypeDims &dims);

/// One loop per axis of x: a reduction for tied axes, parallel for others.
SmallVector<utils::IteratorType> normLoopIteratorTypes(RowOpInterface op);

/// The extents of x; along the grouped axis, the number of groups.
SmallVector<Range> normIterationDomain(RowOpInterface op, OpBuilder &builder);

/// Why a tile of the iteration space with these sizes cannot be computed on its
/// own: a tied axis that it does not cover wholly. Empty if it can. Offsets
/// do not matter: a tile lies inside the space. Builds no IR.
std::string whyTileIsRefused(RowOpInterface op, ArrayRef<OpFoldResult> sizes);

/// The same for a tile of one result: only the axes that the result has count,
/// all others are computed whole.
std::string whyResultTileIsRefused(RowOpInterface op, unsigned resultNumber,
                                   ArrayRef<OpFoldResult> sizes);

/// The same for tiles of operands, which must also agree on the axes they
/// share.
std::string
whyOperandTilesAreRefused(RowOpInterface op, ArrayRef<unsigned> operandNumbers,
                          ArrayRef<SmallVector<OpFoldResult>> offsets,
                          ArrayRef<SmallVector<OpFoldResult>> sizes);

/// The op on slices of its operands. Refuses, before any IR is built and with
/// an error, a tile that cuts a tied axis.
FailureOr<TilingResult> tileNorm(RowOpInterface op, OpBuilder &builder,
                                 ArrayRef<OpFoldResult> offsets,
                                 ArrayRef<OpFoldResult> sizes);

/// Where the tile's part of a result lies in that result.
LogicalResult normResultTilePosition(RowOpInterface op, OpBuilder &builder,
                                     unsigned resultNumber,
                                     ArrayRef<OpFoldResult> offsets,
                                     ArrayRef<OpFoldResult> sizes,
                                     SmallVector<OpFoldResult> &resultOffsets,
                                     SmallVector<OpFoldResult> &resultSizes);

/// The tile of the iteration space that computes a tile of a result: the
/// result's own axes as given, other axes whole. Fails, before any IR is built,
/// where whyResultTileIsRefused names a reason.
LogicalResult normDomainTileFromResultTile(
    RowOpInterface op, OpBuilder &builder, unsigned resultNumber,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
    SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes);

/// The same from tiles of operands, for fusing a norm into its producer.
/// Fails, before any IR is built, where whyOperandTilesAreRefused names a
/// reason.
LogicalResult
normDomainTileFromOperandTiles(RowOpInterface op, OpBuilder &builder,
                               ArrayRef<unsigned> operandNumbers,
                               ArrayRef<SmallVector<OpFoldResult>> offsets,
                               ArrayRef<SmallVector<OpFoldResult>> sizes,
                               SmallVectorImpl<OpFoldResult> &domainOffsets,
                               SmallVectorImpl<OpFoldResult> &domainSizes);

/// The tile of the op that computes a tile of one result. Fails in silence,
/// before any IR is built, where whyResultTileIsRefused names a reason: the
/// caller may well go on without fusing.
FailureOr<TilingResult> generateNormResultTile(RowOpInterface op,
                                               OpBuilder &builder,
                                               unsigned resultNumber,
                                               ArrayRef<OpFoldResult> offsets,
                                               ArrayRef<OpFoldResult> sizes);

/// Asserts at run time that the groups divide a dynamic number of channels
/// (V5).
void assertWholeGroups(RowOpInterface op, OpBuilder &builder);

/// The op as linalg on tensors, one value per result; see Decompose.cpp.
FailureOr<SmallVector<Value>> decomposeNorm(NormOpInterface op,
                                            OpBuilder &builder);
FailureOr<SmallVector<Value>> decomposeNormBackward(NormBackwardOpInterface op,
                                                    OpBuilder &builder);

} // namespace mlir::norm

#endif // NORM_IR_NORMINTERFACES_H
