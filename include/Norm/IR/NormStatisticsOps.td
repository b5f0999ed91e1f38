//===- NormStatisticsOps.td - The statistics algebra (tier 2) - *- tablegen -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_NORMSTATISTICSOPS_TD
#define NORM_IR_NORMSTATISTICSOPS_TD

include "Norm/IR/NormOpBase.td"

/// The axes of an op of the algebra. `reduced` and `tied` are C++ expressions;
/// an empty `tied` stands for the default of RowOpInterface.
class Norm_Axes<string reduced_, string tied_, bit hasAffine_ = 0> {
  string reduced = reduced_;
  string tied = tied_;
  /// Whether scale and shift index affine axes, by default the reduced ones.
  bit hasAffine = hasAffine_;
}
defvar Norm_WrittenAxes =
    "::mlir::norm::canonicalAxes(getAxes(), getInput().getType().getRank())";
defvar Norm_LackedAxes = "::mlir::norm::axesThatResultsLack(*this)";

/// An op on statistics. `input` is the accessor of the tensor whose axes are the
/// op's, `computed` lists the one or two operands that the default of `compute`
/// follows from.
class Norm_StatisticsOp<string mnemonic, list<Trait> traits, Norm_Axes axes,
                        string input, string computed,
                        list<string> operandGroups, list<string> resultGroups> :
    Norm_RowOp<mnemonic, !listconcat([Norm_RowOpInterface], traits),
               operandGroups, resultGroups,
      // Declarations.
      [{
    ::mlir::TypedValue<::mlir::RankedTensorType> getInput() {
      return }] # input # [{();
    }
    ::llvm::SmallVector<int64_t> getReducedAxes();
    /// `compute`, or the widest of f32 and the types of the operands.
    ::mlir::FloatType getComputeTypeOrDefault();
    ::mlir::FloatType getDefaultComputeType();
    /// The axes of x that scale, shift and their gradients index.
    ::llvm::SmallVector<int64_t> getAffineAxesOrDefault();
    ::llvm::SmallVector<int64_t> getDefaultAffineAxes();
  }] # !if(!empty(axes.tied), "", [{
    ::llvm::SmallVector<int64_t> getTiedAxes();
  }]),
      // Definitions.
      [{
    ::llvm::SmallVector<int64_t> $cppClass::getReducedAxes() {
      return }] # axes.reduced # [{;
    }
    ::mlir::FloatType $cppClass::getComputeTypeOrDefault() {
      if (auto type = getComputeType())
        return ::llvm::cast<::mlir::FloatType>(*type);
      return getDefaultComputeType();
    }
    ::mlir::FloatType $cppClass::getDefaultComputeType() {
      return ::mlir::norm::defaultComputeType(}] # computed # [{);
    }
    ::llvm::LogicalResult $cppClass::canonicalize(
        $cppClass op, ::mlir::PatternRewriter &rewriter) {
      return ::mlir::norm::useCanonicalSpelling(
          op, op.getDefaultAffineAxes(), op.getDefaultComputeType(), rewriter);
    }
  }] # !if(axes.hasAffine, [{
    ::llvm::SmallVector<int64_t> $cppClass::getAffineAxesOrDefault() {
      if (auto explicitAxes = getAffineAxes())
        return ::llvm::SmallVector<int64_t>(*explicitAxes);
      return getDefaultAffineAxes();
    }
    ::llvm::SmallVector<int64_t> $cppClass::getDefaultAffineAxes() {
      return getReducedAxes();
    }
  }], [{
    ::llvm::SmallVector<int64_t> $cppClass::getAffineAxesOrDefault() {
      return {};
    }
    ::llvm::SmallVector<int64_t> $cppClass::getDefaultAffineAxes() {
      return {};
    }
  }]) # !if(!empty(axes.tied), "", [{
    ::llvm::SmallVector<int64_t> $cppClass::getTiedAxes() {
      return }] # axes.tied # [{;
    }
  }])> {
  let hasCanonicalizeMethod = 1;
}

/// Attributes that several of the ops have.
defvar Norm_ComputeAttr = (ins OptionalAttr<TypeAttr>:$compute_type);
defvar Norm_CorrectionAttr = (ins DefaultValuedAttr<I64Attr, "0">:$correction);
defvar Norm_AxesAttr = (ins DenseI64ArrayAttr:$axes);
defvar Norm_AffineAxesAttr = (ins OptionalAttr<DenseI64ArrayAttr>:$affine_axes);
defvar Norm_ScaleOffsetAttr =
    (ins DefaultValuedAttr<F64Attr, "0.0">:$scale_offset);
defvar Norm_AffineInAttr = (ins
  DefaultValuedAttr<Norm_AffineIn, "::mlir::norm::AffineIn::Compute">:$affine_in);

defvar Norm_CountGroup =
    "Statistic, \"count?\", ::mlir::norm::ElementKind::Count";
defvar Norm_MaskGroup = "Full, \"mask?\", ::mlir::norm::ElementKind::Mask";

def NormStatisticsDocs : OpDocGroup {
  let summary = "The statistics algebra";
  let description = [{
    What the named ops are made of, for norms that are masked, split over parts
    or exchanged between processes. Statistics have x's shape without `axes` and
    are of the compute type or, where they leave a process or are merged, f64;
    counts are i64.
  }];
}

let opDocGroup = NormStatisticsDocs in {

def Norm_MomentsOp : Norm_StatisticsOp<"moments",
    [AttrSizedResultSegments,
     DeclareOpInterfaceMethods<PartialReductionOpInterface,
       ["generateInitialTensorForPartialReduction", "tileToPartialReduction",
        "mergeReductions", "getPartialResultTilePosition"]>],
    Norm_Axes<Norm_WrittenAxes, "">,
    "getX", "getX(), nullptr",
    [[{Full, "x"}], Norm_MaskGroup],
    [Norm_CountGroup, [{Statistic, "mean?"}], [{Statistic, "m2?"}]]> {
  let summary = "count, mean and sum of squares over `axes`";
  let description = [{
    With c = cast(x) in the compute type, over the elements of a row of which
    `mask` holds (all of them where there is no mask):

    ```
    count = how many there are
    mean  = sum(c) / count                       `about mean` only
    m2    = sum((c - mean)^2)  `about mean`      sum(c^2)  `about zero`
    ```

    A row without elements has count 0, mean 0 and m2 0; what x holds where the
    mask does not is never looked at.

    Shapes. `mask` has x's shape; the results have x's shape without `axes`.

    Numerics. As the statistics of `norm.layer_norm`: the corrected two-pass
    form, in the compute type. `mean` and `m2` are of the compute type or of
    f64; in f64 they are the corrected mean and sum, not rounded to the compute
    type. Tiles of a reduced axis merge as `norm.combine_moments` does, in f64
    (PartialReductionOpInterface).

    Constraints: V1 (axes), V3 (types), V8 (results), V9 (mask), V17 (a result
    there is; `mean` only `about mean`).

    Example:

    ```mlir
    %count, %mean, %m2 = norm.moments %x mask(%valid : tensor<8x128x64xi1>)
        axes [0, 1] about mean : tensor<8x128x64xbf16>
        -> count(tensor<64xi64>) mean(tensor<64xf64>) m2(tensor<64xf64>)
    ```

    Tiles of kept axes, and partial results of reduced ones; decomposes to
    linalg.
  }];
  let arguments = !con(
    (ins Norm_Tensor:$x, Optional<Norm_MaskTensor>:$mask), Norm_AxesAttr,
    (ins Norm_About:$about), Norm_ComputeAttr);
  let results = (outs Optional<Norm_CountTensor>:$count,
                      Optional<Norm_Tensor>:$mean, Optional<Norm_Tensor>:$m2);
  let assemblyFormat = [{
    $x (`mask` `(` $mask^ `:` type($mask) `)`)? `axes` $axes `about` $about
    (`compute` $compute_type^)? attr-dict `:` type($x) `->`
    (`count` `(` type($count)^ `)`)? (`mean` `(` type($mean)^ `)`)?
    (`m2` `(` type($m2)^ `)`)?
  }];
}

def Norm_CombineMomentsOp : Norm_StatisticsOp<"combine_moments",
    [AttrSizedResultSegments], Norm_Axes<"{0}", "">,
    "getM2", "getM2(), getMean()",
    [[{Full, "count", ::mlir::norm::ElementKind::Count}], [{Full, "mean?"}],
     [{Full, "m2"}]],
    [Norm_CountGroup, [{Statistic, "mean?"}], [{Statistic, "m2?"}]]> {
  let summary = "merge the moments of parts";
  let description = [{
    The moments of all parts together, from those of each, which lie along the
    leading axis. In the compute type, over the parts of which the count is not
    0:

    ```
    count = N = sum(count_i)
    u     = sum(count_i * mean_i) / N,  d = sum(count_i * (mean_i - u)) / N
    mean  = u + d
    m2    = max(sum(m2_i + count_i * (mean_i - u)^2) - N * d^2, 0)
    ```

    Without `mean` the sums are about zero, and m2 = sum(m2_i). Parts may have
    any counts; one that counts nothing adds nothing, whatever its mean and m2
    hold. Where all are empty the results are 0.

    Shapes. All operands have the shape of `m2`, whose leading axis counts the
    parts; the results have that shape without it.

    Numerics. `compute` is by default the widest of f32 and the types of `mean`
    and `m2`. u is formed twice, the second time about the first, by sums whose
    order the number of parts decides. Results: that type or f64.

    Constraints: V3 (types), V8 (shapes and types), V17 (a result there is;
    `mean` needs its operand).

    Example:

    ```mlir
    %n, %mean, %m2 = norm.combine_moments count(%counts : tensor<4x64xi64>)
        mean(%means : tensor<4x64xf64>) m2(%m2s : tensor<4x64xf64>)
        -> count(tensor<64xi64>) mean(tensor<64xf64>) m2(tensor<64xf64>)
    ```

    Tiles of all axes but the leading one; decomposes to linalg.
  }];
  let arguments = !con((ins Norm_CountTensor:$count, Optional<Norm_Tensor>:$mean,
                            Norm_Tensor:$m2), Norm_ComputeAttr);
  let results = (outs Optional<Norm_CountTensor>:$merged_count,
                      Optional<Norm_Tensor>:$merged_mean,
                      Optional<Norm_Tensor>:$merged_m2);
  let assemblyFormat = [{
    `count` `(` $count `:` type($count) `)`
    (`mean` `(` $mean^ `:` type($mean) `)`)? `m2` `(` $m2 `:` type($m2) `)`
    (`compute` $compute_type^)? attr-dict `->`
    (`count` `(` type($merged_count)^ `)`)? (`mean` `(` type($merged_mean)^ `)`)?
    (`m2` `(` type($merged_m2)^ `)`)?
  }];
}

def Norm_RstdOp : Norm_StatisticsOp<"rstd", [], Norm_Axes<"{}", "{}">,
    "getM2", "getM2(), nullptr",
    [[{Full, "m2"}], [{Full, "count?", ::mlir::norm::ElementKind::Count}]],
    [[{Full, "rstd"}], [{Full, "variance?"}]]> {
  let summary = "the factor of a norm from its sum of squares";
  let description = [{
    The statistic q and the factor r of `norm.layer_norm`, elementwise:

    ```
    q = m2 / (count - correction)     m2 itself without a count (an l2 norm)
    r = 1/sqrt(q + eps)  and so on, by the placement of epsilon
    ```

    q is 0 where the count is 0, and NaN where the count is not 0 and not more
    than `correction`. `zero_policy zero` makes r 0 where its denominator is 0.

    Shapes. `count`, `rstd` and `variance` have the shape of `m2`.

    Numerics. `compute` is by default the widest of f32 and the type of `m2`;
    results are of that type or of f64.

    Constraints: V3 (types), V4 (epsilon), V8 (shapes and types), V17
    (`correction` is 0 or 1, and needs `count`).

    Example:

    ```mlir
    %r, %q = norm.rstd %m2 count(%n : tensor<64xi64>)
        epsilon inside_sqrt 1.0e-5 compute f32
        : tensor<64xf64> -> tensor<64xf32> variance(tensor<64xf32>)
    ```

    Tiles of any shape; decomposes to linalg.
  }];
  let arguments = !con(
    (ins Norm_Tensor:$m2, Optional<Norm_CountTensor>:$count,
         Norm_EpsilonAttr:$epsilon), Norm_ComputeAttr, Norm_CorrectionAttr,
    (ins DefaultValuedAttr<Norm_ZeroPolicy,
                           "::mlir::norm::ZeroPolicy::IEEE">:$zero_policy));
  let results = (outs Norm_Tensor:$rstd, Optional<Norm_Tensor>:$variance);
  let assemblyFormat = [{
    $m2 (`count` `(` $count^ `:` type($count) `)`)?
    `epsilon` custom<Epsilon>($epsilon) (`compute` $compute_type^)?
    (`correction` $correction^)? (`zero_policy` $zero_policy^)? attr-dict
    `:` type($m2) `->` type($rstd) (`variance` `(` type($variance)^ `)`)?
  }];
}

def Norm_NormalizeOp : Norm_StatisticsOp<"normalize",
    [AttrSizedOperandSegments], Norm_Axes<Norm_WrittenAxes, "{}", 1>,
    "getX", "getX(), nullptr",
    [[{Full, "x"}], [{Statistic, "mean?"}], [{Statistic, "rstd"}],
     [{Affine, "scale?"}], [{Affine, "shift?"}]],
    [[{Full, "y"}]]> {
  let summary = "subtract a mean, multiply by a factor, apply scale and shift";
  let description = [{
    The elementwise part of `norm.layer_norm`, with statistics that are given:

    ```
    x^ = (c - mean) * rstd          c = cast(x), in the compute type
    y  = round(x^ * (scale + scale_offset) + shift)
    ```

    Without `mean` nothing is subtracted. A mean of more bits than the compute
    type is subtracted in two steps, so that none of them is lost.

    Shapes. `mean` and `rstd` have x's shape without `axes`; `scale` and `shift`
    the dimensions of x that `affine_axes` names (default: `axes`).

    Constraints: V1 (axes), V2 (scale and shift shapes), V3 (types), V8
    (statistics), V12 (affine_in), V13 (affine_axes), V15 (y), V17 (attributes
    need their operand).

    Example:

    ```mlir
    %y = norm.normalize %x mean(%m : tensor<64xf64>) rstd(%r : tensor<64xf32>)
        scale(%g : tensor<64xf32>) axes [0, 1] affine_axes [2]
        : tensor<8x128x64xbf16> -> tensor<8x128x64xbf16>
    ```

    Tiles of any shape; decomposes to linalg.
  }];
  let arguments = !con(
    (ins Norm_Tensor:$x, Optional<Norm_Tensor>:$mean, Norm_Tensor:$rstd,
         Optional<Norm_Tensor>:$scale, Optional<Norm_Tensor>:$shift),
    Norm_AxesAttr, Norm_AffineAxesAttr, Norm_ComputeAttr, Norm_ScaleOffsetAttr,
    Norm_AffineInAttr);
  let results = (outs Norm_Tensor:$y);
  let assemblyFormat = [{
    $x (`mean` `(` $mean^ `:` type($mean) `)`)? `rstd` `(` $rstd `:` type($rstd) `)`
    (`scale` `(` $scale^ `:` type($scale) `)`)?
    (`shift` `(` $shift^ `:` type($shift) `)`)? `axes` $axes
    (`affine_axes` $affine_axes^)? (`compute` $compute_type^)?
    (`scale_offset` $scale_offset^)? (`affine_in` $affine_in^)? attr-dict
    `:` type($x) `->` type($y)
  }];
}

def Norm_UpdateRunningOp : Norm_StatisticsOp<"update_running", [],
    Norm_Axes<"{}", "{}">, "getOld", "getOld(), getObserved()",
    [[{Full, "old"}], [{Full, "new"}],
     [{Full, "count", ::mlir::norm::ElementKind::Count}],
     [{Scalar, "momentum?"}]],
    [[{Full, "updated"}]]> {
  let summary = "move a running statistic towards a new observation";
  let description = [{
    Elementwise, with a, the weight of the new observation, from `momentum`:

    ```
    updated = (1 - a) * old + a * v           1 - a formed in f64
    v       = new                             `statistic mean`
              new / (count - running_correction)  `statistic variance`
    ```

    so that for a variance `new` is the m2 of `norm.moments`. Where the count is
    0 the old value stays as it is; where it is not more than
    `running_correction` (1 by default, or 0) the new variance is NaN.

    Shapes. All tensors have the shape of `old`, and any float type.

    Numerics. `compute` is by default the widest of f32 and the types of `old`
    and `new`; sums never run below f32, and the result is rounded once.

    Constraints: V3 (types), V8 (shapes), V11 (momentum is from 0 to 1), V17
    (one form of momentum; `running_correction` is 0 or 1).

    Example:

    ```mlir
    %rv1 = norm.update_running %rv, %m2 count(%n : tensor<64xi64>)
        statistic variance momentum 1.0e-1
        : tensor<64xf32>, tensor<64xf64> -> tensor<64xf32>
    ```

    Tiles of any shape; decomposes to linalg.
  }];
  let arguments = !con(
    // `new` is no name for a C++ parameter.
    (ins Norm_Tensor:$old, Norm_Tensor:$observed, Norm_CountTensor:$count,
         Optional<AnyFloat>:$momentum_value, Norm_Tracked:$statistic,
         OptionalAttr<F64Attr>:$momentum,
         DefaultValuedAttr<I64Attr, "1">:$running_correction),
    Norm_ComputeAttr);
  let results = (outs Norm_Tensor:$updated);
  let assemblyFormat = [{
    $old `,` $observed `count` `(` $count `:` type($count) `)`
    `statistic` $statistic
    (`momentum` `` custom<Momentum>($momentum, $momentum_value,
                                 type($momentum_value))^)?
    (`running_correction` $running_correction^)? (`compute` $compute_type^)?
    attr-dict `:` type($old) `,` type($observed) `->` type($updated)
  }];
}

def Norm_BackwardMomentsOp : Norm_StatisticsOp<"backward_moments",
    [AttrSizedOperandSegments, AttrSizedResultSegments],
    Norm_Axes<Norm_WrittenAxes, Norm_LackedAxes, 1>, "getX", "getX(), nullptr",
    [[{Full, "dy"}], [{Full, "x"}], [{Statistic, "mean?"}],
     [{Statistic, "rstd"}], [{Affine, "scale?"}], Norm_MaskGroup],
    [[{Statistic, "sum_g?"}], [{Statistic, "sum_gx?"}], [{Affine, "dscale?"}],
     [{Affine, "dshift?"}]]> {
  let summary = "the sums that the gradient of a norm needs";
  let description = [{
    With x^ = (c - mean) * rstd and g = dy * (scale + scale_offset) in the
    compute type, over the elements of which `mask` holds:

    ```
    sum_g  = sum(g)         sum_gx = sum(g * x^)    over `axes`
    dscale = sum(dy * x^)   dshift = sum(dy)        over all axes but affine_axes
    ```

    `sum_g` and `sum_gx` are what the processes of a split norm exchange;
    `norm.backward_normalize` takes the sums over all of them. With `affine_in
    result`, dscale sees x^ rounded to x's type.

    Shapes. dy and `mask` have x's shape; statistics and the first two results
    x's shape without `axes`; scale, dscale and dshift the dimensions of x at
    `affine_axes` (default: `axes`).

    Numerics. Arithmetic and sums run in the compute type and never below f32;
    each result is rounded once. The first two results are of the compute type
    or of f64, dscale and dshift of any float type.

    Constraints: V1 (axes), V2 (affine shapes), V3 (types), V8 (statistics), V9
    (mask), V13 (affine_axes), V15 (dy), V17 (a result there is; attributes need
    their operand).

    Example:

    ```mlir
    %sg, %sgx, %dg, %db = norm.backward_moments %dy, %x
        mean(%m : tensor<64xf64>) rstd(%r : tensor<64xf32>)
        scale(%g : tensor<64xf32>) axes [0, 1] affine_axes [2]
        : tensor<8x128x64xf32>, tensor<8x128x64xf32>
        -> sum_g(tensor<64xf64>) sum_gx(tensor<64xf64>)
           dscale(tensor<64xf32>) dshift(tensor<64xf32>)
    ```

    Tiles of axes that every result has; decomposes to linalg.
  }];
  let arguments = !con(
    (ins Norm_Tensor:$dy, Norm_Tensor:$x, Optional<Norm_Tensor>:$mean,
         Norm_Tensor:$rstd, Optional<Norm_Tensor>:$scale,
         Optional<Norm_MaskTensor>:$mask),
    Norm_AxesAttr, Norm_AffineAxesAttr, Norm_ComputeAttr, Norm_ScaleOffsetAttr,
    Norm_AffineInAttr);
  let results = (outs Optional<Norm_Tensor>:$sum_g, Optional<Norm_Tensor>:$sum_gx,
                      Optional<Norm_Tensor>:$dscale, Optional<Norm_Tensor>:$dshift);
  let assemblyFormat = [{
    $dy `,` $x (`mean` `(` $mean^ `:` type($mean) `)`)?
    `rstd` `(` $rstd `:` type($rstd) `)`
    (`scale` `(` $scale^ `:` type($scale) `)`)?
    (`mask` `(` $mask^ `:` type($mask) `)`)? `axes` $axes
    (`affine_axes` $affine_axes^)? (`compute` $compute_type^)?
    (`scale_offset` $scale_offset^)? (`affine_in` $affine_in^)? attr-dict
    `:` type($dy) `,` type($x) `->` (`sum_g` `(` type($sum_g)^ `)`)?
    (`sum_gx` `(` type($sum_gx)^ `)`)? (`dscale` `(` type($dscale)^ `)`)?
    (`dshift` `(` type($dshift)^ `)`)?
  }];
}

def Norm_BackwardNormalizeOp : Norm_StatisticsOp<"backward_normalize",
    [AttrSizedOperandSegments], Norm_Axes<Norm_WrittenAxes, "{}", 1>,
    "getX", "getX(), nullptr",
    [[{Full, "dy"}], [{Full, "x"}], [{Statistic, "mean?"}],
     [{Statistic, "rstd"}], [{Affine, "scale?"}], [{Statistic, "variance?"}],
     [{Statistic, "sum_g?"}], [{Statistic, "sum_gx"}], Norm_CountGroup,
     Norm_MaskGroup],
    [[{Full, "dx"}]]> {
  let summary = "the gradient of x from the sums over all parts";
  let description = [{
    dx of `norm.layer_norm_backward` where its sums are given, elementwise:

    ```
    dx = r * (g - sum_g/count - x^ * k * sum_gx/(count - correction))
    ```

    with x^ and g as in `norm.backward_moments` and k by the placement of
    epsilon, as there. `count` is that of all parts together; without it (an l2
    norm) nothing is divided. Without `sum_g` its term is left out. dx is 0
    where `mask` does not hold, whatever dy and x hold there.

    Shapes. dy, `mask` and dx have x's shape; `mean`, `rstd`, `variance`, the
    sums and `count` x's shape without `axes`; scale the dimensions of x at
    `affine_axes` (default: `axes`).

    Numerics. Arithmetic runs in the compute type and never below f32; dx is
    rounded once and may have any float type.

    Constraints: V1 (axes), V2 (scale), V3 (types), V4 (epsilon), V8
    (statistics), V9 (mask), V13 (affine_axes), V15 (dy, dx), V17 (attributes
    need their operand; `variance` is there for every placement of epsilon but
    inside_sqrt and none).

    Example:

    ```mlir
    %dx = norm.backward_normalize %dy, %x mean(%m : tensor<64xf64>)
        rstd(%r : tensor<64xf32>) sum_g(%sg : tensor<64xf64>)
        sum_gx(%sgx : tensor<64xf64>) count(%n : tensor<64xi64>)
        axes [0, 1] epsilon inside_sqrt 1.0e-5
        : tensor<8x128x64xf32>, tensor<8x128x64xf32> -> tensor<8x128x64xf32>
    ```

    Tiles of any shape; decomposes to linalg.
  }];
  let arguments = !con(
    (ins Norm_Tensor:$dy, Norm_Tensor:$x, Optional<Norm_Tensor>:$mean,
         Norm_Tensor:$rstd, Optional<Norm_Tensor>:$scale,
         Optional<Norm_Tensor>:$variance, Optional<Norm_Tensor>:$sum_g,
         Norm_Tensor:$sum_gx, Optional<Norm_CountTensor>:$count,
         Optional<Norm_MaskTensor>:$mask),
    Norm_AxesAttr, (ins Norm_EpsilonAttr:$epsilon), Norm_AffineAxesAttr,
    Norm_ComputeAttr, Norm_CorrectionAttr, Norm_ScaleOffsetAttr);
  let results = (outs Norm_Tensor:$dx);
  let assemblyFormat = [{
    $dy `,` $x (`mean` `(` $mean^ `:` type($mean) `)`)?
    `rstd` `(` $rstd `:` type($rstd) `)`
    (`scale` `(` $scale^ `:` type($scale) `)`)?
    (`variance` `(` $variance^ `:` type($variance) `)`)?
    (`sum_g` `(` $sum_g^ `:` type($sum_g) `)`)?
    `sum_gx` `(` $sum_gx `:` type($sum_gx) `)`
    (`count` `(` $count^ `:` type($count) `)`)?
    (`mask` `(` $mask^ `:` type($mask) `)`)? `axes` $axes
    `epsilon` custom<Epsilon>($epsilon) (`affine_axes` $affine_axes^)?
    (`compute` $compute_type^)? (`correction` $correction^)?
    (`scale_offset` $scale_offset^)? attr-dict
    `:` type($dy) `,` type($x) `->` type($dx)
  }];
}

} // opDocGroup

#endif // NORM_IR_NORMSTATISTICSOPS_TD
