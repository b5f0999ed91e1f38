//===- NormForwardOps.td - Forward normalizations (tier 1) -- *- tablegen -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_NORMFORWARDOPS_TD
#define NORM_IR_NORMFORWARDOPS_TD

include "Norm/IR/NormNamedOps.td"

/// A forward norm of x over `axes`, with any of residual, scale and shift, and
/// with statistics as optional results. Everything an op computes follows from
/// its contract attributes and its kind; all methods are shared.
class Norm_ForwardOp<string mnemonic, Norm_Kind kind> :
    Norm_RowOp<mnemonic,
      !listconcat([AttrSizedOperandSegments, Norm_NormOpInterface],
        // ODS refuses sized segments where one result is optional.
        !if(kind.isGiven, []<Trait>, [AttrSizedResultSegments])),
      !listconcat([[{Full, "x"}], [{Full, "residual?"}]],
        !if(kind.isGiven, [[{Statistic, "mean"}], [{Statistic, "variance"}]],
            []<string>),
        [[{Affine, "scale?"}], [{Affine, "shift?"}]],
        !if(kind.hasRunning,
            [[{Statistic, "running_mean?"}], [{Statistic, "running_variance?"}],
             [{Scalar, "momentum?"}]], []<string>)),
      !listconcat([[{Full, "y"}]],
        !if(!and(kind.hasMean, !not(kind.isGiven)), [[{Statistic, "mean?"}]],
            []<string>),
        !if(kind.isGiven, []<string>,
            [[{Statistic, "variance?"}], [{Statistic, "rstd?"}]]),
        [[{Full, "sum?"}]],
        !if(kind.hasRunning,
            [[{Statistic, "running_mean?"}], [{Statistic, "running_variance?"}]],
            []<string>)),
      // Declarations.
      Norm_NamedOpDeclarations<kind>.text # [{
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
      return }] # !if(kind.isGiven, "nullptr",
                     !if(kind.hasMean, "getMean()", "nullptr")) # [{;
    }
    ::mlir::TypedValue<::mlir::RankedTensorType> getVarianceOrNull() {
      return }] # !if(kind.isGiven, "nullptr", "getVariance()") # [{;
    }
    ::mlir::TypedValue<::mlir::RankedTensorType> getRstdOrNull() {
      return }] # !if(kind.isGiven, "nullptr", "getRstd()") # [{;
    }
    ::mlir::TypedValue<::mlir::RankedTensorType> getSumOrNull() {
      return getSum();
    }
    /// The element type of `sum`, or of x when `sum` is absent.
    ::mlir::FloatType getSumElementType() {
      return ::llvm::cast<::mlir::FloatType>(
          (getSum() ? getSum() : getX()).getType().getElementType());
    }
    ::mlir::Operation *rebuild(::mlir::OpBuilder &builder, ::mlir::Location loc,
                               const ::mlir::norm::NormContract &contract);
  }] # !if(kind.isGiven, [{
    ::mlir::TypedValue<::mlir::RankedTensorType> getGivenMeanOrNull() {
      return getMean();
    }
    ::mlir::TypedValue<::mlir::RankedTensorType> getGivenVarianceOrNull() {
      return getVariance();
    }
  }], "") # !if(kind.hasRunning, [{
    ::mlir::norm::RunningUpdate getRunningUpdate();
  }], ""),
      // Definitions.
      [{
    ::mlir::norm::NormContract $cppClass::getWrittenContract() {
      ::mlir::norm::NormContract contract;
  }] # Norm_WrittenContract<kind>.text # [{
      contract.shift = getShift();
      contract.resultType =
          ::llvm::dyn_cast<::mlir::FloatType>(getY().getType().getElementType());
      if (getSum())
        contract.sumType = getSumElementType();
  }] # !if(kind.isGiven, [{
      contract.mean = getMean();
      contract.variance = getVariance();
  }], [{
      contract.wantsMean = getMeanOrNull() != nullptr;
      contract.wantsVariance = getVariance() != nullptr;
      contract.wantsRstd = getRstd() != nullptr;
  }]) # !if(kind.hasRunning, [{
      contract.runningMean = getRunningMean();
      contract.runningVariance = getRunningVariance();
      contract.momentumValue = getMomentumValue();
      if (auto momentum = getMomentum())
        contract.momentum = momentum->convertToDouble();
      contract.runningCorrection = getRunningCorrection();
  }], "") # [{
      return contract;
    }
    void $cppClass::build(::mlir::OpBuilder &builder,
                          ::mlir::OperationState &state,
                          const ::mlir::norm::NormContract &contract,
                          ::llvm::ArrayRef<::mlir::NamedAttribute> attrs) {
      ::mlir::norm::buildFromContract(builder, state, contract,
                                        ::mlir::norm::opShape<$cppClass>());
      state.addAttributes(attrs);
    }
    ::mlir::Operation *
    $cppClass::rebuild(::mlir::OpBuilder &builder, ::mlir::Location loc,
                       const ::mlir::norm::NormContract &contract) {
      return create(builder, loc, contract,
                    ::llvm::to_vector((*this)->getDiscardableAttrs()));
    }
    ::llvm::LogicalResult $cppClass::verify() {
      // Accessors may be used only where the segments and types are right.
      if (::mlir::failed(::mlir::norm::verifyValues(*this, getComputeType())))
        return ::mlir::failure();
      return ::mlir::norm::verifyForwardNorm(*this, getWrittenContract(),
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
      return ::mlir::norm::decomposeNorm(*this, builder);
    }
  }] # !if(kind.isGiven, [{
    ::llvm::SmallVector<int64_t> $cppClass::getTiedAxes() { return {}; }
  }], "") # !if(kind.hasRunning, [{
    ::mlir::norm::RunningUpdate $cppClass::getRunningUpdate() {
      ::mlir::norm::RunningUpdate update;
      update.mean = getRunningMean();
      update.variance = getRunningVariance();
      update.momentumValue = getMomentumValue();
      if (auto momentum = getMomentum())
        update.momentum = momentum->convertToDouble();
      update.correction = getRunningCorrection();
      update.newMean = getUpdatedMean();
      update.newVariance = getUpdatedVariance();
      return update;
    }
  }], "")> {
  let arguments = !con((ins Norm_Tensor:$x, Optional<Norm_Tensor>:$residual),
    !if(kind.isGiven, (ins Norm_Tensor:$mean, Norm_Tensor:$variance), (ins)),
    (ins Optional<Norm_Tensor>:$scale, Optional<Norm_Tensor>:$shift),
    !if(kind.hasRunning, (ins Optional<Norm_Tensor>:$running_mean,
                              Optional<Norm_Tensor>:$running_variance,
                              Optional<AnyFloat>:$momentum_value), (ins)),
    !if(kind.hasGroups, Norm_GroupAttrs, (ins)),
    Norm_ContractAttrs,
    !if(kind.hasRunning,
        (ins OptionalAttr<F64Attr>:$momentum,
             DefaultValuedAttr<I64Attr, "1">:$running_correction), (ins)));
  let results = !con((outs Norm_Tensor:$y),
    !if(kind.isGiven, (outs), !con(
        !if(kind.hasMean, (outs Optional<Norm_Tensor>:$mean), (outs)),
        (outs Optional<Norm_Tensor>:$variance, Optional<Norm_Tensor>:$rstd))),
    (outs Optional<Norm_Tensor>:$sum),
    !if(kind.hasRunning, (outs Optional<Norm_Tensor>:$updated_mean,
                               Optional<Norm_Tensor>:$updated_variance), (outs)));
  let assemblyFormat =
    [{ $x (`residual` `(` $residual^ `:` type($residual) `)`)? }] #
    !if(kind.isGiven, [{ `mean` `(` $mean `:` type($mean) `)`
                         `variance` `(` $variance `:` type($variance) `)` }], "") #
    [{ (`scale` `(` $scale^ `:` type($scale) `)`)?
       (`shift` `(` $shift^ `:` type($shift) `)`)? }] #
    !if(kind.hasRunning, [{
       (`running` `(` $running_mean^ `,` $running_variance `:`
                      type($running_mean) `,` type($running_variance) `)`)? }], "") #
    !if(kind.hasGroups, Norm_Clauses.group, "") #
    !strconcat(Norm_Clauses.contract, "") #
    !if(kind.hasRunning, [{
       (`momentum` `` custom<Momentum>($momentum, $momentum_value,
                                    type($momentum_value))^)?
       (`running_correction` $running_correction^)? }], "") #
    [{ attr-dict `:` type($x) `->` type($y) }] #
    !if(kind.isGiven, "",
      !if(kind.hasMean, [{ (`mean` `(` type($mean)^ `)`)? }], "") #
      [{ (`variance` `(` type($variance)^ `)`)?
         (`rstd` `(` type($rstd)^ `)`)? }]) #
    [{ (`sum` `(` type($sum)^ `)`)? }] #
    !if(kind.hasRunning, [{ (`running_mean` `(` type($updated_mean)^ `)`)?
         (`running_variance` `(` type($updated_variance)^ `)`)? }], "");
  let skipDefaultBuilders = 1;
  // Every fact at once; see NormContract in NormInterfaces.h.
  let builders = [
    OpBuilder<(ins "const ::mlir::norm::NormContract &":$contract,
                   CArg<"::llvm::ArrayRef<::mlir::NamedAttribute>",
                        "{}">:$discardableAttrs)>
  ];
  let hasCanonicalizeMethod = 1;
}

/// The builder of the ops that need no more than this: y of x's type; `scale`
/// and `shift` may be null.
class Norm_SimpleForwardOp<string mnemonic, Norm_Kind kind> :
    Norm_ForwardOp<mnemonic, kind> {
  let builders = [
    OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$scale,
                   "::mlir::Value":$shift, "::llvm::ArrayRef<int64_t>":$axes,
                   "::mlir::norm::EpsilonAttr":$epsilon), [{
      ::mlir::norm::NormContract contract;
      contract.x = x;
      contract.scale = scale;
      contract.shift = shift;
      contract.axes.assign(axes.begin(), axes.end());
      contract.epsilon = epsilon;
      build($_builder, $_state, contract);
    }]>,
    OpBuilder<(ins "const ::mlir::norm::NormContract &":$contract,
                   CArg<"::llvm::ArrayRef<::mlir::NamedAttribute>",
                        "{}">:$discardableAttrs)>
  ];
}

def NormForwardDocs : OpDocGroup {
  let summary = "Forward normalizations";
  let description = "Ops that normalize x by a statistic of its own elements.";
}

let opDocGroup = NormForwardDocs in {

def Norm_LayerNormOp : Norm_SimpleForwardOp<"layer_norm", Norm_LayerKind> {
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

def Norm_RMSNormOp : Norm_SimpleForwardOp<"rms_norm", Norm_RMSKind> {
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

def Norm_L2NormOp : Norm_SimpleForwardOp<"l2_norm", Norm_L2Kind> {
  let summary = "divide by the Euclidean norm over `axes`";
  let description = [{
    As `norm.rms_norm`, but the statistic is the sum of squares itself:
    q = sum(c^2), so that without epsilon a row becomes a unit vector.

    Constraints: those of `norm.layer_norm`; `correction` must be 0.

    Example:

    ```mlir
    %n = norm.l2_norm %q axes [3] epsilon max_outside 1.0e-12
        : tensor<2x128x16x64xf32> -> tensor<2x128x16x64xf32>
    ```

    Tiles of kept axes only; decomposes to linalg.
  }];
}

def Norm_GroupNormOp : Norm_ForwardOp<"group_norm", Norm_GroupKind> {
  let summary = "normalize each group of channels of each sample";
  let description = [{
    As `norm.layer_norm` on x whose `channel_axis`, one of `axes`, is viewed as
    `groups` times C/groups channels, of which only the C/groups are reduced:
    n is C/groups times the extents of the other `axes`.

    Shapes. As `norm.layer_norm`; `affine_axes` defaults to the channel axis.
    Statistics have x's shape without `axes`, and `groups` in the place of the
    channel among the kept dimensions: for x of [N, C, H, W] and `axes`
    [1, 2, 3], [N, groups].

    Constraints: those of `norm.layer_norm`, and V5: `groups` is positive and
    divides a static number of channels; `channel_axis` is one of `axes`. For a
    dynamic number of channels the lowering asserts it at run time.

    Example:

    ```mlir
    %y, %mean = norm.group_norm %x scale(%g : tensor<320xf32>)
        shift(%b : tensor<320xf32>) groups 32 channel_axis 1 axes [1, 2, 3]
        epsilon inside_sqrt 1.0e-5
        : tensor<2x320x64x64xf32> -> tensor<2x320x64x64xf32>
          mean(tensor<2x32xf32>)
    ```

    Tiles of kept axes and of whole groups; decomposes to linalg.
  }];
  let builders = [
    // y of x's type; `scale` and `shift` may be null.
    OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$scale,
                   "::mlir::Value":$shift, "int64_t":$groups,
                   "int64_t":$channelAxis, "::llvm::ArrayRef<int64_t>":$axes,
                   "::mlir::norm::EpsilonAttr":$epsilon), [{
      ::mlir::norm::NormContract contract;
      contract.x = x;
      contract.scale = scale;
      contract.shift = shift;
      contract.groups = groups;
      contract.channelAxis = channelAxis;
      contract.axes.assign(axes.begin(), axes.end());
      contract.epsilon = epsilon;
      build($_builder, $_state, contract);
    }]>,
    OpBuilder<(ins "const ::mlir::norm::NormContract &":$contract,
                   CArg<"::llvm::ArrayRef<::mlir::NamedAttribute>",
                        "{}">:$discardableAttrs)>
  ];
}

def Norm_InstanceNormOp : Norm_ForwardOp<"instance_norm", Norm_InstanceKind> {
  let summary = "normalize each channel of each sample";
  let description = [{
    As `norm.layer_norm` over the spatial axes. It differs in what a reader may
    expect of it, and in that scale and shift index axes that are kept: there is
    no default, `affine_axes` is written where scale or shift is there.

    Constraints: those of `norm.layer_norm`; V17 asks for `affine_axes`.

    Example:

    ```mlir
    %y = norm.instance_norm %x scale(%g : tensor<64xf32>) axes [2, 3]
        epsilon inside_sqrt 1.0e-5 affine_axes [1]
        : tensor<1x64x256x256xf32> -> tensor<1x64x256x256xf32>
    ```

    Tiles of kept axes only; decomposes to linalg.
  }];
  let builders = [
    // y of x's type; `scale` and `shift` may be null, and index `affineAxes`.
    OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$scale,
                   "::mlir::Value":$shift, "::llvm::ArrayRef<int64_t>":$axes,
                   "::llvm::ArrayRef<int64_t>":$affineAxes,
                   "::mlir::norm::EpsilonAttr":$epsilon), [{
      ::mlir::norm::NormContract contract;
      contract.x = x;
      contract.scale = scale;
      contract.shift = shift;
      contract.axes.assign(axes.begin(), axes.end());
      if (scale || shift)
        contract.affineAxes = ::llvm::to_vector(affineAxes);
      contract.epsilon = epsilon;
      build($_builder, $_state, contract);
    }]>,
    OpBuilder<(ins "const ::mlir::norm::NormContract &":$contract,
                   CArg<"::llvm::ArrayRef<::mlir::NamedAttribute>",
                        "{}">:$discardableAttrs)>
  ];
}

def Norm_BatchNormTrainingOp
    : Norm_SimpleForwardOp<"batch_norm_training", Norm_TrainingKind> {
  let summary = "normalize each channel over batch and space";
  let description = [{
    As `norm.layer_norm` over all axes but the channel's, by the statistics of
    this very batch, and with running statistics as values: `running` gives the
    old ones, and the results `running_mean` and `running_variance` are

    ```
    running' = (1 - a) * running + a * new      1 - a formed in f64
    new      = m, and sum((c - m)^2) / (n - running_correction)
    ```

    where a, the weight of the new observation, is `momentum`: a number or an
    operand. `running_correction` is 1 (default) or 0. Where n is 0 the running
    values stay as they are; where n is not more than `running_correction` the
    new variance is NaN. Nothing is updated in place.

    Shapes. As `norm.layer_norm`; `affine_axes` defaults to the axes that are
    not in `axes`, and running values have the shape of the statistics.

    Constraints: those of `norm.layer_norm`; V6: a static number of reduced
    elements is not 1; V7: running operands and results come in pairs; V11:
    momentum is from 0 to 1; V17: exactly one form of momentum with `running`,
    none without.

    Example:

    ```mlir
    %y, %mean, %rstd, %rm1, %rv1 = norm.batch_norm_training %x
        scale(%g : tensor<64xf32>) shift(%b : tensor<64xf32>)
        running(%rm, %rv : tensor<64xf32>, tensor<64xf32>)
        axes [0, 2, 3] epsilon inside_sqrt 1.0e-5 momentum 1.0e-1
        : tensor<8x64x56x56xf32> -> tensor<8x64x56x56xf32>
          mean(tensor<64xf32>) rstd(tensor<64xf32>)
          running_mean(tensor<64xf32>) running_variance(tensor<64xf32>)
    ```

    Tiles of kept axes only; decomposes to linalg.
  }];
}

def Norm_BatchNormInferenceOp
    : Norm_ForwardOp<"batch_norm_inference", Norm_InferenceKind> {
  let summary = "normalize by given statistics";
  let description = [{
    Steps 5 to 7 of `norm.layer_norm` with m = `mean` and q = `variance`:
    x^ = (c - mean) * r. Nothing is reduced; `axes` says along which axes of x
    the statistics are constant.

    Shapes. As `norm.batch_norm_training`; `mean` and `variance` have x's shape
    without `axes` and any float type.

    Constraints: those of `norm.layer_norm`; V10: there is no momentum and there
    are no running values; `correction` is 0.

    Example:

    ```mlir
    %y = norm.batch_norm_inference %x mean(%m : tensor<64xf32>)
        variance(%v : tensor<64xf32>) scale(%g : tensor<64xf32>)
        axes [0, 2, 3] epsilon inside_sqrt 1.0e-5
        : tensor<8x64x56x56xf32> -> tensor<8x64x56x56xf32>
    ```

    Tiles of any shape; decomposes to linalg.
  }];
  let builders = [
    // y of x's type; `scale` and `shift` may be null.
    OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$mean,
                   "::mlir::Value":$variance, "::mlir::Value":$scale,
                   "::mlir::Value":$shift, "::llvm::ArrayRef<int64_t>":$axes,
                   "::mlir::norm::EpsilonAttr":$epsilon), [{
      ::mlir::norm::NormContract contract;
      contract.x = x;
      contract.mean = mean;
      contract.variance = variance;
      contract.scale = scale;
      contract.shift = shift;
      contract.axes.assign(axes.begin(), axes.end());
      contract.epsilon = epsilon;
      build($_builder, $_state, contract);
    }]>,
    OpBuilder<(ins "const ::mlir::norm::NormContract &":$contract,
                   CArg<"::llvm::ArrayRef<::mlir::NamedAttribute>",
                        "{}">:$discardableAttrs)>
  ];
}

} // opDocGroup

#endif // NORM_IR_NORMFORWARDOPS_TD
