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

class NormOpInterface;

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

/// See NormOpInterface::getOutputNormBound.
std::optional<double> outputNormBound(NormOpInterface op);

} // namespace mlir::norm

#include "Norm/IR/NormInterfaces.h.inc"

namespace mlir::norm {

//===----------------------------------------------------------------------===//
// Methods of other interfaces, for any op that implements NormOpInterface
//===----------------------------------------------------------------------===//

/// Speculatable when every extent that the op requires to agree is static.
Speculation::Speculatability normSpeculatability(NormOpInterface op);

/// Extents of every result in terms of the extents of x.
LogicalResult reifyNormResultShapes(NormOpInterface op, OpBuilder &builder,
                                    ReifiedRankedShapedTypeDims &dims);

/// One loop per axis of x: a reduction for reduced axes, parallel for kept.
SmallVector<utils::IteratorType> normLoopIteratorTypes(NormOpInterface op);

/// The extents of x.
SmallVector<Range> normIterationDomain(NormOpInterface op, OpBuilder &builder);

/// Why a tile of the iteration space with these sizes cannot be computed on its
/// own: a reduced axis that it does not cover wholly. Empty if it can. Offsets
/// do not matter: a tile lies inside the space. Builds no IR.
std::string whyTileIsRefused(NormOpInterface op, ArrayRef<OpFoldResult> sizes);

/// The same for a tile of one result: only the axes that the result has count,
/// all others are computed whole.
std::string whyResultTileIsRefused(NormOpInterface op, unsigned resultNumber,
                                   ArrayRef<OpFoldResult> sizes);

/// The same for tiles of operands, which must also agree on the axes they
/// share.
std::string
whyOperandTilesAreRefused(NormOpInterface op, ArrayRef<unsigned> operandNumbers,
                          ArrayRef<SmallVector<OpFoldResult>> offsets,
                          ArrayRef<SmallVector<OpFoldResult>> sizes);

/// The op on slices of its operands. Refuses, before any IR is built and with
/// an error, a tile that cuts a reduced axis.
FailureOr<TilingResult> tileNorm(NormOpInterface op, OpBuilder &builder,
                                 ArrayRef<OpFoldResult> offsets,
                                 ArrayRef<OpFoldResult> sizes);

/// Where the tile's part of a result lies in that result.
LogicalResult normResultTilePosition(NormOpInterface op, unsigned resultNumber,
                                     ArrayRef<OpFoldResult> offsets,
                                     ArrayRef<OpFoldResult> sizes,
                                     SmallVector<OpFoldResult> &resultOffsets,
                                     SmallVector<OpFoldResult> &resultSizes);

/// The tile of the iteration space that computes a tile of a result: the
/// result's own axes as given, other axes whole. Fails, before any IR is built,
/// where whyResultTileIsRefused names a reason.
LogicalResult normDomainTileFromResultTile(
    NormOpInterface op, OpBuilder &builder, unsigned resultNumber,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
    SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes);

/// The same from tiles of operands, for fusing a norm into its producer.
/// Fails, before any IR is built, where whyOperandTilesAreRefused names a
/// reason.
LogicalResult
normDomainTileFromOperandTiles(NormOpInterface op, OpBuilder &builder,
                               ArrayRef<unsigned> operandNumbers,
                               ArrayRef<SmallVector<OpFoldResult>> offsets,
                               ArrayRef<SmallVector<OpFoldResult>> sizes,
                               SmallVectorImpl<OpFoldResult> &domainOffsets,
                               SmallVectorImpl<OpFoldResult> &domainSizes);

/// The tile of the op that computes a tile of one result. Fails in silence,
/// before any IR is built, where whyResultTileIsRefused names a reason: the
/// caller may well go on without fusing.
FailureOr<TilingResult> generateNormResultTile(NormOpInterface op,
                                               OpBuilder &builder,
                                               unsigned resultNumber,
                                               ArrayRef<OpFoldResult> offsets,
                                               ArrayRef<OpFoldResult> sizes);

/// The op as linalg on tensors, one value per result; see Decompose.cpp.
FailureOr<SmallVector<Value>> decomposeNorm(NormOpInterface op,
                                            OpBuilder &builder);

} // namespace mlir::norm

#endif // NORM_IR_NORMINTERFACES_H
