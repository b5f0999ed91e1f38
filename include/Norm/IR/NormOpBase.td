//===- NormOpBase.td - What all ops of the dialect share -------- *- tablegen -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_NORMOPBASE_TD
#define NORM_IR_NORMOPBASE_TD

include "Norm/IR/NormAttrs.td"
include "Norm/IR/NormInterfaces.td"
include "mlir/Dialect/Linalg/IR/LinalgInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/TilingInterface.td"

/// Only the rank is checked here. Element types and the absence of an encoding
/// are the verifier's to check (V3): it knows operands and results by name.
def Norm_Tensor : Type<IsRankedTensorTypePred,
    "ranked tensor of f64, f32, f16 or bf16", "::mlir::RankedTensorType">;

def Norm_MaskTensor : Type<IsRankedTensorTypePred,
    "ranked tensor of i1", "::mlir::RankedTensorType">;
def Norm_CountTensor : Type<IsRankedTensorTypePred,
    "ranked tensor of i64", "::mlir::RankedTensorType">;

/// The groups of an op's operands or results as a braced C++ list.
class Norm_GroupList<list<string> groups> {
  string text = !interleave(!foreach(group, groups,
      "{::mlir::norm::TensorRole::" # group # "}"), ", ");
}

/// An op over the axes of one tensor x: it tiles, reifies its result shapes and
/// decomposes to linalg. `operandGroups` and `resultGroups` list, in ODS order,
/// by which axes of x a tensor is indexed and its name, followed by `?` where it
/// is optional: `Affine, "scale?"`; what holds no floats adds its ElementKind (see
/// TensorGroup in NormOps.h).
/// Derived ops define getInput, getReducedAxes, getAffineAxesOrDefault,
/// getComputeTypeOrDefault and decomposeOperation.
class Norm_RowOp<string mnemonic, list<Trait> traits,
                 list<string> operandGroups, list<string> resultGroups,
                 string declaration, string definition> :
    Op<Norm_Dialect, mnemonic, !listconcat([
      NoMemoryEffect,
      DeclareOpInterfaceMethods<ConditionallySpeculatable>,
      DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
                                ["reifyResultShapes"]>,
      DeclareOpInterfaceMethods<TilingInterface,
        ["getLoopIteratorTypes", "getIterationDomain",
         "getTiledImplementation", "getResultTilePosition",
         "generateResultTileValue",
         "getTiledImplementationFromOperandTiles",
         "getIterationDomainTileFromOperandTiles",
         "getIterationDomainTileFromResultTile",
         "isOpFusableWithConsumerSlice", "isOpFusableWithProducerSlices"]>,
      DeclareOpInterfaceMethods<AggregatedOpInterface, ["decomposeOperation"]>],
      traits)> {
  let hasVerifier = 1;
  let extraClassDeclaration = declaration # [{
    ::llvm::SmallVector<int64_t> getOperandAxes(unsigned operand);
    ::llvm::SmallVector<int64_t> getResultAxes(unsigned result);
    bool isStatisticOperand(unsigned operand);
    bool isStatisticResult(unsigned result);
    /// The groups of operands and of results, in ODS order.
    static ::llvm::ArrayRef<::mlir::norm::TensorGroup> getOperandGroups();
    static ::llvm::ArrayRef<::mlir::norm::TensorGroup> getResultGroups();
  }];
  let extraClassDefinition = definition # [{
    ::llvm::ArrayRef<::mlir::norm::TensorGroup> $cppClass::getOperandGroups() {
      static const ::mlir::norm::TensorGroup groups[] = {
          }] # Norm_GroupList<operandGroups>.text # [{};
      return groups;
    }
    ::llvm::ArrayRef<::mlir::norm::TensorGroup> $cppClass::getResultGroups() {
      static const ::mlir::norm::TensorGroup groups[] = {
          }] # Norm_GroupList<resultGroups>.text # [{};
      return groups;
    }
    ::llvm::SmallVector<int64_t> $cppClass::getOperandAxes(unsigned operand) {
      return ::mlir::norm::axesOfRole(*this, getAffineAxesOrDefault(),
                                      ::mlir::norm::operandRole(*this, operand));
    }
    ::llvm::SmallVector<int64_t> $cppClass::getResultAxes(unsigned result) {
      return ::mlir::norm::axesOfRole(*this, getAffineAxesOrDefault(),
                                      ::mlir::norm::resultRole(*this, result));
    }
    bool $cppClass::isStatisticOperand(unsigned operand) {
      return ::mlir::norm::operandRole(*this, operand) ==
             ::mlir::norm::TensorRole::Statistic;
    }
    bool $cppClass::isStatisticResult(unsigned result) {
      return ::mlir::norm::resultRole(*this, result) ==
             ::mlir::norm::TensorRole::Statistic;
    }
    ::mlir::Speculation::Speculatability $cppClass::getSpeculatability() {
      return ::mlir::norm::normSpeculatability(*this);
    }
    ::llvm::LogicalResult $cppClass::reifyResultShapes(
        ::mlir::OpBuilder &builder, ::mlir::ReifiedRankedShapedTypeDims &dims) {
      return ::mlir::norm::reifyNormResultShapes(*this, builder, dims);
    }
    ::llvm::SmallVector<::mlir::utils::IteratorType>
    $cppClass::getLoopIteratorTypes() {
      return ::mlir::norm::normLoopIteratorTypes(*this);
    }
    ::llvm::SmallVector<::mlir::Range> $cppClass::getIterationDomain(
        ::mlir::OpBuilder &builder) {
      return ::mlir::norm::normIterationDomain(*this, builder);
    }
    ::llvm::FailureOr<::mlir::TilingResult> $cppClass::getTiledImplementation(
        ::mlir::OpBuilder &builder,
        ::llvm::ArrayRef<::mlir::OpFoldResult> offsets,
        ::llvm::ArrayRef<::mlir::OpFoldResult> sizes) {
      return ::mlir::norm::tileNorm(*this, builder, offsets, sizes);
    }
    ::llvm::LogicalResult $cppClass::getResultTilePosition(
        ::mlir::OpBuilder &builder, unsigned resultNumber,
        ::llvm::ArrayRef<::mlir::OpFoldResult> offsets,
        ::llvm::ArrayRef<::mlir::OpFoldResult> sizes,
        ::llvm::SmallVector<::mlir::OpFoldResult> &resultOffsets,
        ::llvm::SmallVector<::mlir::OpFoldResult> &resultSizes) {
      return ::mlir::norm::normResultTilePosition(
          *this, builder, resultNumber, offsets, sizes, resultOffsets,
          resultSizes);
    }
    ::llvm::FailureOr<::mlir::TilingResult> $cppClass::generateResultTileValue(
        ::mlir::OpBuilder &builder, unsigned resultNumber,
        ::llvm::ArrayRef<::mlir::OpFoldResult> offsets,
        ::llvm::ArrayRef<::mlir::OpFoldResult> sizes) {
      return ::mlir::norm::generateNormResultTile(*this, builder, resultNumber,
                                                  offsets, sizes);
    }
    ::llvm::LogicalResult $cppClass::getIterationDomainTileFromResultTile(
        ::mlir::OpBuilder &builder, unsigned resultNumber,
        ::llvm::ArrayRef<::mlir::OpFoldResult> offsets,
        ::llvm::ArrayRef<::mlir::OpFoldResult> sizes,
        ::llvm::SmallVectorImpl<::mlir::OpFoldResult> &domainOffsets,
        ::llvm::SmallVectorImpl<::mlir::OpFoldResult> &domainSizes) {
      return ::mlir::norm::normDomainTileFromResultTile(
          *this, builder, resultNumber, offsets, sizes, domainOffsets,
          domainSizes);
    }
    ::llvm::LogicalResult $cppClass::getIterationDomainTileFromOperandTiles(
        ::mlir::OpBuilder &builder, ::llvm::ArrayRef<unsigned> operandNumbers,
        ::llvm::ArrayRef<::llvm::SmallVector<::mlir::OpFoldResult>> offsets,
        ::llvm::ArrayRef<::llvm::SmallVector<::mlir::OpFoldResult>> sizes,
        ::llvm::SmallVectorImpl<::mlir::OpFoldResult> &domainOffsets,
        ::llvm::SmallVectorImpl<::mlir::OpFoldResult> &domainSizes) {
      return ::mlir::norm::normDomainTileFromOperandTiles(
          *this, builder, operandNumbers, offsets, sizes, domainOffsets,
          domainSizes);
    }
    bool $cppClass::isOpFusableWithConsumerSlice(
        unsigned resultNumber, ::llvm::ArrayRef<::mlir::OpFoldResult> offsets,
        ::llvm::ArrayRef<::mlir::OpFoldResult> sizes) {
      return ::mlir::norm::whyResultTileIsRefused(*this, resultNumber, sizes)
          .empty();
    }
    bool $cppClass::isOpFusableWithProducerSlices(
        ::llvm::ArrayRef<unsigned> operandNumbers,
        ::llvm::ArrayRef<::llvm::SmallVector<::mlir::OpFoldResult>> offsets,
        ::llvm::ArrayRef<::llvm::SmallVector<::mlir::OpFoldResult>> sizes) {
      return ::mlir::norm::whyOperandTilesAreRefused(*this, operandNumbers,
                                                     offsets, sizes).empty();
    }
    ::llvm::FailureOr<::mlir::TilingResult>
    $cppClass::getTiledImplementationFromOperandTiles(
        ::mlir::OpBuilder &builder, ::llvm::ArrayRef<unsigned> operandNumbers,
        ::llvm::ArrayRef<::llvm::SmallVector<::mlir::OpFoldResult>> offsets,
        ::llvm::ArrayRef<::llvm::SmallVector<::mlir::OpFoldResult>> sizes) {
      ::llvm::SmallVector<::mlir::OpFoldResult> domainOffsets, domainSizes;
      if (::llvm::failed(getIterationDomainTileFromOperandTiles(
              builder, operandNumbers, offsets, sizes, domainOffsets,
              domainSizes)))
        return ::llvm::failure();
      return getTiledImplementation(builder, domainOffsets, domainSizes);
    }
  }];
}

#endif // NORM_IR_NORMOPBASE_TD
