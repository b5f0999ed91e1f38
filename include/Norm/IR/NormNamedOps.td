//===- NormNamedOps.td - The contract of the named ops (tier 1) ------ *- tablegen -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_NORMNAMEDOPS_TD
#define NORM_IR_NORMNAMEDOPS_TD

include "Norm/IR/NormOpBase.td"

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
defvar Norm_GroupAttrs = (ins I64Attr:$groups, I64Attr:$channel_axis);

/// The clauses of the printed form.
def Norm_Clauses {
  string group = [{ `groups` $groups `channel_axis` $channel_axis }];
  string contract = [{
    `axes` $axes `epsilon` custom<Epsilon>($epsilon)
    (`affine_axes` $affine_axes^)? (`compute` $compute_type^)?
    (`correction` $correction^)? (`scale_offset` $scale_offset^)?
    (`affine_in` $affine_in^)? (`sum_rounding` $sum_rounding^)?
    (`zero_policy` $zero_policy^)?
  }];
}

/// What tells the named ops apart. `affineDefault`: which axes scale and shift
/// index where `affine_axes` is absent (see AffineDefault in NormOps.h).
class Norm_Kind<string statistic_, string affineDefault_> {
  string statistic = "::mlir::norm::Statistic::" # statistic_;
  string affineDefault = "::mlir::norm::AffineDefault::" # affineDefault_;
  /// Whether a mean is subtracted.
  bit hasMean = !eq(statistic_, "Variance");
  /// Whether the channel axis is split into groups.
  bit hasGroups = 0;
  /// Whether the statistics are given (batch_norm_inference).
  bit isGiven = 0;
  /// Whether running statistics may be updated (batch_norm_training).
  bit hasRunning = 0;
}
def Norm_LayerKind : Norm_Kind<"Variance", "Reduced">;
def Norm_RMSKind : Norm_Kind<"MeanSquare", "Reduced">;
def Norm_L2Kind : Norm_Kind<"SumSquare", "Reduced">;
def Norm_GroupKind : Norm_Kind<"Variance", "Channel"> {
  let hasGroups = 1;
}
// An instance norm has no default: it states its affine axes.
def Norm_InstanceKind : Norm_Kind<"Variance", "Stated">;
def Norm_TrainingKind : Norm_Kind<"Variance", "Kept"> {
  let hasRunning = 1;
}
def Norm_InferenceKind : Norm_Kind<"Variance", "Kept"> {
  let isGiven = 1;
}

/// Accessors that every named op has.
class Norm_NamedOpDeclarations<Norm_Kind kind> {
  string text = [{
    ::mlir::TypedValue<::mlir::RankedTensorType> getInput() { return getX(); }
    ::mlir::norm::Statistic getStatistic() { return }] # kind.statistic # [{; }
    /// Reduced axes of x: non-negative and ascending, whatever was written.
    ::llvm::SmallVector<int64_t> getReducedAxes() {
      return ::mlir::norm::canonicalAxes(getAxes(), getX().getType().getRank());
    }
    /// `affine_axes`, or the op's default when it is absent.
    ::llvm::SmallVector<int64_t> getAffineAxesOrDefault() {
      if (auto explicitAxes = getAffineAxes())
        return ::llvm::SmallVector<int64_t>(*explicitAxes);
      return getDefaultAffineAxes();
    }
    ::llvm::SmallVector<int64_t> getDefaultAffineAxes() {
      return ::mlir::norm::defaultAffineAxes(getAffineDefault(),
          getReducedAxes(), getX().getType().getRank(), getGroupedAxis());
    }
    static ::mlir::norm::AffineDefault getAffineDefault() {
      return }] # kind.affineDefault # [{;
    }
    /// `compute`, or the widest of f32 and the types of x and residual.
    ::mlir::FloatType getComputeTypeOrDefault() {
      if (auto type = getComputeType())
        return ::llvm::cast<::mlir::FloatType>(*type);
      return ::mlir::norm::defaultComputeType(getX(), getResidual());
    }
    double getScaleOffsetValue() {
      return getScaleOffset().convertToDouble();
    }
    /// The facts of the op as they are written: axes may be negative or out of
    /// order, defaults are absent.
    ::mlir::norm::NormContract getWrittenContract();
  }] # !if(kind.hasGroups, [{
    /// The channel axis, resolved.
    ::std::optional<int64_t> getGroupedAxis() {
      int64_t axis = getChannelAxis();
      return axis < 0 ? axis + getX().getType().getRank() : axis;
    }
    int64_t getNumGroups() { return getGroups(); }
    void setNumGroups(int64_t groups) { setGroups(groups); }
  }], [{
    ::std::optional<int64_t> getGroupedAxis() { return ::std::nullopt; }
  }]) # !if(kind.isGiven, [{
    /// Nothing is reduced: a tile may have any shape.
    ::llvm::SmallVector<int64_t> getTiedAxes();
  }], "");
}

/// The part of getWrittenContract that all named ops share.
class Norm_WrittenContract<Norm_Kind kind> {
  string text = [{
      contract.x = getX();
      contract.residual = getResidual();
      contract.scale = getScale();
      contract.axes = ::llvm::to_vector(getAxes());
      contract.epsilon = getEpsilon();
      if (auto affineAxes = getAffineAxes())
        contract.affineAxes = ::llvm::to_vector(*affineAxes);
      if (auto type = getComputeType())
        contract.computeType = ::llvm::dyn_cast<::mlir::FloatType>(*type);
      contract.correction = getCorrection();
      contract.scaleOffset = getScaleOffsetValue();
      contract.affineIn = getAffineIn();
      contract.sumRounding = getSumRounding();
      contract.zeroPolicy = getZeroPolicy();
  }] # !if(kind.hasGroups, [{
      contract.groups = getGroups();
      contract.channelAxis = getChannelAxis();
  }], "");
}

#endif // NORM_IR_NORMNAMEDOPS_TD
