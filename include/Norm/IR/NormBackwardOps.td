//===- NormBackwardOps.td - Gradients of the norms (tier 1) - *- tablegen -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_NORMBACKWARDOPS_TD
#define NORM_IR_NORMBACKWARDOPS_TD

include "Norm/IR/NormNamedOps.td"

/// The gradient of the forward norm of the same kind.
class Norm_BackwardOp<string mnemonic, Norm_Kind kind> :
    Norm_RowOp<mnemonic,
      [AttrSizedOperandSegments, AttrSizedResultSegments,
       Norm_NormBackwardOpInterface],
      [[{Full, "dy"}], [{Full, "x"}], [{Full, "residual?"}], [{Full, "dsum?"}],
       [{Statistic, "mean?"}], [{Statistic, "variance?"}],
       [{Statistic, "rstd?"}], [{Affine, "scale?"}]],
      [[{Full, "dx"}], [{Affine, "dscale?"}], [{Affine, "dshift?"}]],
      // Declarations.
      Norm_NamedOpDeclarations<kind>.text # [{
    ::mlir::TypedValue<::mlir::RankedTensorType> getDsumOrNull() {
      return getDsum();
    }
    ::mlir::TypedValue<::mlir::RankedTensorType> getMeanOrNull() {
      return getMean();
    }
    ::mlir::TypedValue<::mlir::RankedTensorType> getVarianceOrNull() {
      return getVariance();
    }
    ::mlir::TypedValue<::mlir::RankedTensorType> getRstdOrNull() {
      return getRstd();
    }
    ::mlir::TypedValue<::mlir::RankedTensorType> getDscaleOrNull() {
      return getDscale();
    }
    ::mlir::TypedValue<::mlir::RankedTensorType> getDshiftOrNull() {
      return getDshift();
    }
    bool hasConstantStatistics() { return }] #
      !if(kind.isGiven, "true", "false") # [{; }
    ::mlir::Operation *rebuild(
        ::mlir::OpBuilder &builder, ::mlir::Location loc,
        const ::mlir::norm::BackwardContract &contract);
    ::mlir::norm::NormContract getForwardContract() {
      return ::mlir::norm::resolveContract(*this, getWrittenContract(),
                                           getAffineAxesOrDefault());
    }
  }],
      // Definitions.
      [{
    ::mlir::norm::NormContract $cppClass::getWrittenContract() {
      ::mlir::norm::NormContract contract;
  }] # Norm_WrittenContract<kind>.text # [{
      return contract;
    }
    ::mlir::Operation *$cppClass::rebuild(
        ::mlir::OpBuilder &builder, ::mlir::Location loc,
        const ::mlir::norm::BackwardContract &contract) {
      return create(builder, loc, contract,
                    ::llvm::to_vector((*this)->getDiscardableAttrs()));
    }
    ::llvm::LogicalResult $cppClass::verify() {
      // Accessors may be used only where the segments and types are right.
      if (::mlir::failed(::mlir::norm::verifyValues(*this, getComputeType())))
        return ::mlir::failure();
      return ::mlir::norm::verifyBackwardNorm(*this, getWrittenContract(),
                                              getAffineDefault());
    }
    ::llvm::LogicalResult $cppClass::canonicalize(
        $cppClass op, ::mlir::PatternRewriter &rewriter) {
      return ::mlir::norm::useCanonicalSpelling(
          op, op.getDefaultAffineAxes(),
          ::mlir::norm::defaultComputeType(op.getX(), op.getResidual()),
          rewriter);
    }
    ::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>
    $cppClass::decomposeOperation(::mlir::OpBuilder &builder) {
      return ::mlir::norm::decomposeNormBackward(*this, builder);
    }
    void $cppClass::build(::mlir::OpBuilder &builder,
                          ::mlir::OperationState &state,
                          const ::mlir::norm::BackwardContract &contract,
                          ::llvm::ArrayRef<::mlir::NamedAttribute> attrs) {
      ::mlir::norm::buildFromContract(builder, state, contract,
                                        ::mlir::norm::opShape<$cppClass>());
      state.addAttributes(attrs);
    }
  }] # !if(kind.isGiven, [{
    ::llvm::SmallVector<int64_t> $cppClass::getTiedAxes() {
      return ::mlir::norm::axesThatResultsLack(*this);
    }
  }], "")> {
  let arguments = !con(
    (ins Norm_Tensor:$dy, Norm_Tensor:$x, Optional<Norm_Tensor>:$residual,
         Optional<Norm_Tensor>:$dsum, Optional<Norm_Tensor>:$mean,
         Optional<Norm_Tensor>:$variance, Optional<Norm_Tensor>:$rstd,
         Optional<Norm_Tensor>:$scale),
    !if(kind.hasGroups, Norm_GroupAttrs, (ins)), Norm_ContractAttrs);
  let results = (outs Norm_Tensor:$dx, Optional<Norm_Tensor>:$dscale,
                      Optional<Norm_Tensor>:$dshift);
  let assemblyFormat =
    [{ $dy `,` $x (`residual` `(` $residual^ `:` type($residual) `)`)?
       (`dsum` `(` $dsum^ `:` type($dsum) `)`)?
       (`mean` `(` $mean^ `:` type($mean) `)`)?
       (`variance` `(` $variance^ `:` type($variance) `)`)?
       (`rstd` `(` $rstd^ `:` type($rstd) `)`)?
       (`scale` `(` $scale^ `:` type($scale) `)`)? }] #
    !if(kind.hasGroups, Norm_Clauses.group, "") # !strconcat(Norm_Clauses.contract, "") #
    [{ attr-dict `:` type($dy) `,` type($x) `->` type($dx)
       (`dscale` `(` type($dscale)^ `)`)? (`dshift` `(` type($dshift)^ `)`)? }];
  let skipDefaultBuilders = 1;
  let builders = [
    // Every fact at once; see BackwardContract in NormOps.h.
    OpBuilder<(ins "const ::mlir::norm::BackwardContract &":$contract,
                   CArg<"::llvm::ArrayRef<::mlir::NamedAttribute>",
                        "{}">:$discardableAttrs)>
  ];
  let hasCanonicalizeMethod = 1;
}

def NormBackwardDocs : OpDocGroup {
  let summary = "Backward normalizations";
  let description = "Gradients of the forward ops, for every form of them.";
}

let opDocGroup = NormBackwardDocs in {

def Norm_LayerNormBackwardOp
    : Norm_BackwardOp<"layer_norm_backward", Norm_LayerKind> {
  let summary = "gradient of `norm.layer_norm`";
  let description = [{
    The gradients of x, scale and shift from dy, the gradient of y. With c, n,
    m, q, r and x^ of the forward op, sums over its `axes`, and
    g = dy * (scale + scale_offset) in the compute type:

    ```
    dx     = r * (g - sum(g)/n - x^ * k * sum(g * x^)/(n - correction)) + dsum
    k      = 1                      inside_sqrt, none
             (sqrt(q) + eps)/sqrt(q), and 0 where q is 0       outside_sqrt
             1, and 0 where the maximum takes epsilon          max_inside,
                                                               max_outside
    dscale = sum(dy * x^)   dshift = sum(dy)    over all axes but affine_axes
    ```

    `mean`, `variance` and `rstd` are what the forward op returned; what is
    absent is computed again as the forward op computes it, and what is given is
    taken as it is. In the residual form `x` is the value that was normalized
    (the stored `sum`), or `x` and `residual` with `sum_rounding compute`;
    `dsum` is the gradient of the sum, and dx is the gradient of x and of
    residual alike. With `affine_in result`, dscale sees x^ rounded to x's type.

    Shapes. dy, dsum and dx have x's shape, saved statistics x's shape without
    `axes`, scale, dscale and dshift the dimensions of x at `affine_axes`.

    Numerics. Arithmetic and sums run in the compute type and never below f32;
    each result is rounded once. Element types of results are free.

    Constraints: those of the forward op; V8: saved statistics are of the
    compute type; V17: `affine_axes` needs scale, dscale or dshift, and
    `residual` needs `sum_rounding compute`.

    Example:

    ```mlir
    %dx, %dg, %db = norm.layer_norm_backward %dy, %x
        mean(%mean : tensor<8x128xf32>) rstd(%rstd : tensor<8x128xf32>)
        scale(%g : tensor<768xf32>) axes [2] epsilon inside_sqrt 1.0e-5
        : tensor<8x128x768xf32>, tensor<8x128x768xf32> -> tensor<8x128x768xf32>
          dscale(tensor<768xf32>) dshift(tensor<768xf32>)
    ```

    Tiles of axes that every result has; decomposes to linalg.
  }];
}

def Norm_RMSNormBackwardOp
    : Norm_BackwardOp<"rms_norm_backward", Norm_RMSKind> {
  let summary = "gradient of `norm.rms_norm`";
  let description = [{
    As `norm.layer_norm_backward` without the mean: dx = r * (g - x^ * k *
    sum(g * x^)/n) + dsum.

    Constraints: those of `norm.rms_norm` and `norm.layer_norm_backward`.

    Example:

    ```mlir
    %dx, %dg = norm.rms_norm_backward %dy, %x rstd(%r : tensor<4xf32>)
        scale(%g : tensor<768xf32>) axes [1] epsilon inside_sqrt 1.0e-6
        : tensor<4x768xf32>, tensor<4x768xf32> -> tensor<4x768xf32>
          dscale(tensor<768xf32>)
    ```

    Tiles of axes that every result has; decomposes to linalg.
  }];
}

def Norm_L2NormBackwardOp
    : Norm_BackwardOp<"l2_norm_backward", Norm_L2Kind> {
  let summary = "gradient of `norm.l2_norm`";
  let description = [{
    As `norm.layer_norm_backward` without the mean and without division by n:
    dx = r * (g - x^ * k * sum(g * x^)) + dsum.

    Constraints: those of `norm.l2_norm` and `norm.layer_norm_backward`.

    Example:

    ```mlir
    %dx = norm.l2_norm_backward %dy, %x axes [1] epsilon max_outside 1.0e-12
        : tensor<4x64xf32>, tensor<4x64xf32> -> tensor<4x64xf32>
    ```

    Tiles of axes that every result has; decomposes to linalg.
  }];
}

def Norm_GroupNormBackwardOp
    : Norm_BackwardOp<"group_norm_backward", Norm_GroupKind> {
  let summary = "gradient of `norm.group_norm`";
  let description = [{
    As `norm.layer_norm_backward`, on the view of `norm.group_norm`.

    Constraints: those of `norm.group_norm` and `norm.layer_norm_backward`.

    Example:

    ```mlir
    %dx, %dg = norm.group_norm_backward %dy, %x scale(%g : tensor<320xf32>)
        groups 32 channel_axis 1 axes [1, 2, 3] epsilon inside_sqrt 1.0e-5
        : tensor<2x320x8x8xf32>, tensor<2x320x8x8xf32> -> tensor<2x320x8x8xf32>
          dscale(tensor<320xf32>)
    ```

    Tiles of axes that every result has; decomposes to linalg.
  }];
}

def Norm_InstanceNormBackwardOp
    : Norm_BackwardOp<"instance_norm_backward", Norm_InstanceKind> {
  let summary = "gradient of `norm.instance_norm`";
  let description = [{
    As `norm.layer_norm_backward`; `affine_axes` has no default.

    Constraints: those of `norm.instance_norm` and `norm.layer_norm_backward`.

    Example:

    ```mlir
    %dx, %db = norm.instance_norm_backward %dy, %x axes [2, 3]
        epsilon inside_sqrt 1.0e-5 affine_axes [1]
        : tensor<2x64x8x8xf32>, tensor<2x64x8x8xf32> -> tensor<2x64x8x8xf32>
          dshift(tensor<64xf32>)
    ```

    Tiles of axes that every result has; decomposes to linalg.
  }];
}

def Norm_BatchNormTrainingBackwardOp
    : Norm_BackwardOp<"batch_norm_training_backward", Norm_TrainingKind> {
  let summary = "gradient of `norm.batch_norm_training`";
  let description = [{
    As `norm.layer_norm_backward`; `affine_axes` defaults to the axes that are
    not in `axes`. Running values have no gradient.

    Constraints: those of `norm.batch_norm_training` and `norm.layer_norm_backward`.

    Example:

    ```mlir
    %dx, %dg, %db = norm.batch_norm_training_backward %dy, %x
        mean(%m : tensor<64xf32>) rstd(%r : tensor<64xf32>)
        scale(%g : tensor<64xf32>) axes [0, 2, 3] epsilon inside_sqrt 1.0e-5
        : tensor<8x64x7x7xf32>, tensor<8x64x7x7xf32> -> tensor<8x64x7x7xf32>
          dscale(tensor<64xf32>) dshift(tensor<64xf32>)
    ```

    Tiles of axes that every result has; decomposes to linalg.
  }];
}

def Norm_BatchNormInferenceBackwardOp
    : Norm_BackwardOp<"batch_norm_inference_backward", Norm_InferenceKind> {
  let summary = "gradient of `norm.batch_norm_inference`";
  let description = [{
    The statistics are constants: dx = g * r + dsum, with no statistic terms.
    dscale and dshift as in `norm.layer_norm_backward`. `mean` is needed for
    dscale, and `rstd` or `variance` for every result.

    Constraints: those of `norm.batch_norm_inference` and `norm.layer_norm_backward`.

    Example:

    ```mlir
    %dx = norm.batch_norm_inference_backward %dy, %x
        variance(%v : tensor<64xf32>) scale(%g : tensor<64xf32>)
        axes [0, 2, 3] epsilon inside_sqrt 1.0e-5
        : tensor<8x64x7x7xf32>, tensor<8x64x7x7xf32> -> tensor<8x64x7x7xf32>
    ```

    Tiles of axes that every result has; decomposes to linalg.
  }];
}

} // opDocGroup

#endif // NORM_IR_NORMBACKWARDOPS_TD
