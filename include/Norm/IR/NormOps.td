//===- NormOps.td - Named normalizations (tier 1) --------------*- tablegen -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_NORMOPS_TD
#define NORM_IR_NORMOPS_TD

include "Norm/IR/NormAttrs.td"
include "Norm/IR/NormInterfaces.td"
include "mlir/Dialect/Linalg/IR/LinalgInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/TilingInterface.td"

//===----------------------------------------------------------------------===//
// Shared pieces
//===----------------------------------------------------------------------===//

/// Only the rank is checked here. Element types and the absence of an encoding
/// are the verifier's to check (V3): it knows operands and results by name.
def Norm_Tensor : Type<IsRankedTensorTypePred,
    "ranked tensor of f64, f32, f16 or bf16", "::mlir::RankedTensorType">;

/// Operands that x is normalized together with, in printed order.
defvar Norm_ForwardOperands = (ins
  Norm_Tensor:$x,
  Optional<Norm_Tensor>:$residual,
  Optional<Norm_Tensor>:$scale,
  Optional<Norm_Tensor>:$shift
);

/// Attributes that decide what is computed, in printed order.
defvar Norm_ContractAttrs = (ins
  DenseI64ArrayAttr:$axes,
  Norm_EpsilonAttr:$epsilon,
  OptionalAttr<DenseI64ArrayAttr>:$affine_axes,
  OptionalAttr<TypeAttr>:$compute_type,
  DefaultValuedAttr<I64Attr, "0">:$correction,
  DefaultValuedAttr<F64Attr, "0.0">:$scale_offset,
  DefaultValuedAttr<Norm_AffineIn, "::mlir::norm::AffineIn::Compute">:$affine_in,
  DefaultValuedAttr<Norm_SumRounding, "::mlir::norm::SumRounding::Stored">:$sum_rounding,
  DefaultValuedAttr<Norm_ZeroPolicy, "::mlir::norm::ZeroPolicy::IEEE">:$zero_policy
);

/// The clauses of the printed form.
defvar Norm_OperandClauses = [{
  $x (`residual` `(` $residual^ `:` type($residual) `)`)?
  (`scale` `(` $scale^ `:` type($scale) `)`)?
  (`shift` `(` $shift^ `:` type($shift) `)`)?
}];
defvar Norm_ContractClauses = [{
  `axes` $axes `epsilon` custom<Epsilon>($epsilon)
  (`affine_axes` $affine_axes^)? (`compute` $compute_type^)?
  (`correction` $correction^)? (`scale_offset` $scale_offset^)?
  (`affine_in` $affine_in^)? (`sum_rounding` $sum_rounding^)?
  (`zero_policy` $zero_policy^)? attr-dict
}];

/// A forward norm of x over `axes`, with any of residual, scale and shift, and
/// with statistics as optional results. Everything an op computes follows from
/// its contract attributes and `statistic`; all methods are shared.
class Norm_ForwardOp<string mnemonic, string cppStatistic, bit hasMean,
                     list<Trait> traits = []> :
    Op<Norm_Dialect, mnemonic, !listconcat(traits, [
      AttrSizedOperandSegments, AttrSizedResultSegments, NoMemoryEffect,
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
      DeclareOpInterfaceMethods<AggregatedOpInterface, ["decomposeOperation"]>,
      Norm_NormOpInterface])> {
  let arguments = !con(Norm_ForwardOperands, Norm_ContractAttrs);
  let results = !if(hasMean,
    (outs Norm_Tensor:$y, Optional<Norm_Tensor>:$mean,
          Optional<Norm_Tensor>:$variance, Optional<Norm_Tensor>:$rstd,
          Optional<Norm_Tensor>:$sum),
    (outs Norm_Tensor:$y, Optional<Norm_Tensor>:$variance,
          Optional<Norm_Tensor>:$rstd, Optional<Norm_Tensor>:$sum));
  let assemblyFormat = !strconcat(Norm_OperandClauses, Norm_ContractClauses,
    [{ `:` type($x) `->` type($y) }],
    !if(hasMean, [{ (`mean` `(` type($mean)^ `)`)? }], ""),
    [{ (`variance` `(` type($variance)^ `)`)? (`rstd` `(` type($rstd)^ `)`)?
       (`sum` `(` type($sum)^ `)`)? }]);
  let skipDefaultBuilders = 1;
  let builders = [
    // y of x's type; `scale` and `shift` may be null.
    OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$scale,
                   "::mlir::Value":$shift, "::llvm::ArrayRef<int64_t>":$axes,
                   "::mlir::norm::EpsilonAttr":$epsilon)>,
    // Every fact at once; see NormContract in NormOps.h.
    OpBuilder<(ins "const ::mlir::norm::NormContract &":$contract,
                   CArg<"::llvm::ArrayRef<::mlir::NamedAttribute>",
                        "{}">:$discardableAttrs)>
  ];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
  let extraClassDeclaration = [{
    ::mlir::TypedValue<::mlir::RankedTensorType> getInput() { return getX(); }
    ::mlir::TypedValue<::mlir::RankedTensorType> getResidualOrNull() {
      return getResidual();
    }
    ::mlir::TypedValue<::mlir::RankedTensorType> getScaleOrNull() {
      return getScale();
    }
    ::mlir::TypedValue<::mlir::RankedTensorType> getShiftOrNull() {
      return getShift();
    }
    ::mlir::TypedValue<::mlir::RankedTensorType> getNormalized() {
      return getY();
    }
    ::mlir::TypedValue<::mlir::RankedTensorType> getMeanOrNull() {
      return }] # !if(hasMean, "getMean()", "nullptr") # [{;
    }
    ::mlir::TypedValue<::mlir::RankedTensorType> getVarianceOrNull() {
      return getVariance();
    }
    ::mlir::TypedValue<::mlir::RankedTensorType> getRstdOrNull() {
      return getRstd();
    }
    ::mlir::TypedValue<::mlir::RankedTensorType> getSumOrNull() {
      return getSum();
    }
    ::mlir::norm::Statistic getStatistic() {
      return ::mlir::norm::Statistic::}] # cppStatistic # [{;
    }
    /// Reduced axes of x: non-negative and ascending, whatever was written.
    ::llvm::SmallVector<int64_t> getReducedAxes() {
      return ::mlir::norm::canonicalAxes(getAxes(), getX().getType().getRank());
    }
    /// `affine_axes`, or the reduced axes when it is absent.
    ::llvm::SmallVector<int64_t> getAffineAxesOrDefault();
    /// `compute`, or the widest of f32 and the types of x and residual.
    ::mlir::FloatType getComputeTypeOrDefault();
    /// The element type of `sum`, or of x when `sum` is absent.
    ::mlir::FloatType getSumElementType();
    double getScaleOffsetValue() {
      return getScaleOffset().convertToDouble();
    }
    ::llvm::SmallVector<int64_t> getOperandAxes(unsigned operand);
    ::llvm::SmallVector<int64_t> getResultAxes(unsigned result);
  }];
  let extraClassDefinition = [{
    void $cppClass::build(::mlir::OpBuilder &builder,
                          ::mlir::OperationState &state, ::mlir::Value x,
                          ::mlir::Value scale, ::mlir::Value shift,
                          ::llvm::ArrayRef<int64_t> axes,
                          ::mlir::norm::EpsilonAttr epsilon) {
      ::mlir::norm::NormContract contract;
      contract.x = x;
      contract.scale = scale;
      contract.shift = shift;
      contract.axes.assign(axes.begin(), axes.end());
      contract.epsilon = epsilon;
      build(builder, state, contract);
    }
    void $cppClass::build(::mlir::OpBuilder &builder,
                          ::mlir::OperationState &state,
                          const ::mlir::norm::NormContract &contract,
                          ::llvm::ArrayRef<::mlir::NamedAttribute> attrs) {
      ::mlir::norm::buildFromContract(builder, state, contract, }]
      # !if(hasMean, "/*hasMean=*/true", "/*hasMean=*/false") # [{);
      state.addAttributes(attrs);
    }
    ::llvm::LogicalResult $cppClass::verify() {
      // Accessors may be used only where the segments and types are right.
      if (::mlir::failed(::mlir::norm::verifyForwardValues(
              *this, getProperties().operandSegmentSizes,
              getProperties().resultSegmentSizes, getComputeType())))
        return ::mlir::failure();
      return ::mlir::norm::verifyForwardNorm(*this, getAxes(), getAffineAxes(),
                                             getComputeType());
    }
    ::llvm::SmallVector<int64_t> $cppClass::getAffineAxesOrDefault() {
      if (auto explicitAxes = getAffineAxes())
        return ::llvm::SmallVector<int64_t>(*explicitAxes);
      return getReducedAxes();
    }
    ::mlir::FloatType $cppClass::getComputeTypeOrDefault() {
      if (auto type = getComputeType())
        return ::llvm::cast<::mlir::FloatType>(*type);
      return ::mlir::norm::defaultComputeType(getX(), getResidual());
    }
    ::mlir::FloatType $cppClass::getSumElementType() {
      return ::llvm::cast<::mlir::FloatType>(
          (getSum() ? getSum() : getX()).getType().getElementType());
    }
    ::llvm::SmallVector<int64_t> $cppClass::getOperandAxes(unsigned operand) {
      return ::mlir::norm::forwardOperandAxes(*this, operand);
    }
    ::llvm::SmallVector<int64_t> $cppClass::getResultAxes(unsigned result) {
      return ::mlir::norm::forwardResultAxes(*this, result);
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
          *this, resultNumber, offsets, sizes, resultOffsets, resultSizes);
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
    ::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>
    $cppClass::decomposeOperation(::mlir::OpBuilder &builder) {
      return ::mlir::norm::decomposeNorm(*this, builder);
    }
  }];
}

//===----------------------------------------------------------------------===//
// Forward ops
//===----------------------------------------------------------------------===//

def NormForwardDocs : OpDocGroup {
  let summary = "Forward normalizations";
  let description = "Ops that normalize x by a statistic of its own elements.";
}

let opDocGroup = NormForwardDocs in {

def Norm_LayerNormOp : Norm_ForwardOp<"layer_norm", "Variance", 1> {
  let summary = "subtract the mean and divide by the deviation over `axes`";
  let description = [{
    Normalizes each set of elements of `x` that differ in `axes` only ("a row")
    to mean 0 and variance 1, then applies `scale` and `shift`.

    With c = cast(x), or cast(round(x + residual)), in the compute type, n the
    product of the extents of `axes` and r by the placement of epsilon:

    ```
    m  = sum(c) / n
    q  = sum((c - m)^2) / (n - correction)
    r  = 1/sqrt(q + eps)        inside_sqrt     1/(sqrt(q) + eps)    outside_sqrt
         1/sqrt(max(q, eps))    max_inside      1/max(sqrt(q), eps)  max_outside
         1/sqrt(q)              none
    x^ = (c - m) * r
    y  = round(x^ * (scale + scale_offset) + shift)
    ```

    Shapes. `residual`, `y` and `sum` have x's shape. `scale` and `shift` have
    the dimensions of x that `affine_axes` names (default: `axes`), in that
    order. `mean`, `variance` (q) and `rstd` (r) have x's shape without `axes`.

    Numerics. Statistics are computed and returned in the compute type:
    `compute`, by default the widest of f32 and the element types of x and
    residual. The variance is the corrected two-pass one. A NaN or infinity in
    a row makes that row NaN. When a reduced extent is 0, `y` is empty, mean and
    variance are 0. `affine_in result` rounds x^ to x's type and applies scale
    and shift in the type of `y`, each operation rounded. `sum_rounding compute`
    normalizes x + residual before it is rounded to the type of `sum`.

    Constraints: V1 (axes), V2 (scale and shift shapes), V3 (types), V4
    (epsilon), V8 (statistics), V12 (affine_in), V13 (affine_axes), V15
    (residual), V16 (empty), V17 (attributes need their operand; n - correction
    is positive).

    Example:

    ```mlir
    %y, %mean, %rstd = norm.layer_norm %x scale(%g : tensor<768xf32>)
        shift(%b : tensor<768xf32>) axes [2] epsilon inside_sqrt 1.0e-5
        : tensor<8x128x768xf32> -> tensor<8x128x768xf32>
          mean(tensor<8x128xf32>) rstd(tensor<8x128xf32>)
    ```

    Tiles of kept axes only; decomposes to linalg.
  }];
}

def Norm_RMSNormOp : Norm_ForwardOp<"rms_norm", "MeanSquare", 0> {
  let summary = "divide by the root of the mean square over `axes`";
  let description = [{
    As `norm.layer_norm`, but nothing is subtracted: q = sum(c^2) / n and
    x^ = c * r. It is not a layer norm of a mean-free input: the statistic is
    the raw second moment. There is no `mean` result, and `correction` must
    be 0.

    Constraints: those of `norm.layer_norm`.

    Example:

    ```mlir
    %y, %rstd, %sum = norm.rms_norm %x residual(%h : tensor<4x768xbf16>)
        scale(%g : tensor<768xbf16>) axes [1] epsilon inside_sqrt 1.0e-6
        scale_offset 1.0
        : tensor<4x768xbf16> -> tensor<4x768xbf16>
          rstd(tensor<4xf32>) sum(tensor<4x768xbf16>)
    ```

    Tiles of kept axes only; decomposes to linalg.
  }];
}

} // opDocGroup

#endif // NORM_IR_NORMOPS_TD
