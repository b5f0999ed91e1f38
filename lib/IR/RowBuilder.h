//===- RowBuilder.h - Linalg over the axes of x ----------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the decompositions of all ops are made of: elementwise ops and sums on
// `linalg.generic` alone, with projected permutations as maps, so that a tile
// of them vectorizes and fuses as it stands.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_IR_ROWBUILDER_H
#define NORM_LIB_IR_ROWBUILDER_H

#include "Norm/IR/NormOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::norm {

/// A tensor together with the axes of x that its dimensions index.
struct Indexed {
  Value tensor;
  SmallVector<int64_t> axes;

  explicit operator bool() const { return tensor != nullptr; }
};

/// Builds linalg ops over the axes of an op's x.
class RowBuilder {
public:
  using BodyFn =
      function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange)>;

  /// Stands for a dimension of extent 1 with no axis: that of the one group in
  /// a statistic.
  static constexpr int64_t kUnitAxis = -1;
  /// Where groups keep their channels: the groups, and the channels of one.
  static constexpr int64_t kGroupAxis = -2, kWithinAxis = -3;

  /// `keepsChannels`: of an op with groups of the innermost axis, tensors of
  /// all axes have these as they are. What is summed keeps the channels first,
  /// and a group's are added up afterwards; what a group has is spread over its
  /// channels where it is read.
  RowBuilder(RowOpInterface op, OpBuilder &builder, bool keepsChannels = false);

  /// Elementwise over `outAxes` of x. The body sees the inputs.
  SmallVector<Value> elementwise(ArrayRef<Indexed> inputs,
                                 ArrayRef<int64_t> outAxes,
                                 ArrayRef<Type> elementTypes, BodyFn body);
  Value elementwise(ArrayRef<Indexed> inputs, ArrayRef<int64_t> outAxes,
                    Type elementType, BodyFn body);
  /// A result of an op over the statistic axes: where it goes, and its type.
  struct Output {
    Value *destination;
    Type elementType;
  };
  void elementwiseTo(ArrayRef<Output> outputs, ArrayRef<Indexed> inputs,
                     BodyFn body);

  /// `scalar` everywhere over `axes`.
  Value fill(Value scalar, ArrayRef<int64_t> axes);

  /// Sums over all axes of x that are not in `outAxes`, one per type; the body
  /// maps inputs to terms of those types.
  SmallVector<Value> sums(ArrayRef<Indexed> inputs, ArrayRef<int64_t> outAxes,
                          ArrayRef<Type> types, BodyFn terms);
  /// Sums in work type over the reduced axes.
  SmallVector<Value> sums(ArrayRef<Indexed> inputs, unsigned count,
                          BodyFn terms);

  /// The number of reduced elements as i64; null when it is static.
  Value dynamicCount();
  /// n - subtract as a float of the work type, at least 1 where n is 0.
  Value divisor(int64_t subtract);
  /// A count as a float of the work type, at least 1.
  Value divisorFrom(OpFoldResult count);

  Value constant(OpBuilder &b, double value, FloatType type);
  Value cast(OpBuilder &b, Value value, FloatType type);
  Value add(OpBuilder &b, Value x, Value y) {
    return arith::AddFOp::create(b, loc, x, y);
  }
  Value sub(OpBuilder &b, Value x, Value y) {
    return arith::SubFOp::create(b, loc, x, y);
  }
  Value mul(OpBuilder &b, Value x, Value y) {
    return arith::MulFOp::create(b, loc, x, y);
  }
  Value div(OpBuilder &b, Value x, Value y) {
    return arith::DivFOp::create(b, loc, x, y);
  }
  /// In work type.
  Value toWork(OpBuilder &b, Value value) { return cast(b, value, workType); }
  /// Rounds once to the compute type, and returns it in work type.
  Value toCompute(OpBuilder &b, Value value) {
    return cast(b, cast(b, value, computeType), workType);
  }
  /// Whether steps are not rounded: the compute type is the work type.
  bool isExact() { return computeType == workType; }
  /// The widest of the work type and the element types of `values`.
  FloatType widest(ArrayRef<Value> values) {
    return widestElementType(workType, values);
  }
  static FloatType elementTypeOf(Value value) {
    return mlir::cast<FloatType>(getElementTypeOrSelf(value.getType()));
  }

  /// x, or an operand of x's shape.
  Indexed full(Value tensor) { return {tensor, all}; }
  Indexed statistic(Value tensor) { return {tensor, kept}; }

  RowOpInterface op;
  OpBuilder &builder;
  Location loc;
  /// Axes of x; `kept` holds those of a statistic, the grouped one as
  /// kUnitAxis or kGroupAxis. Where channels are kept, `reduced` lacks theirs.
  SmallVector<int64_t> all, reduced, kept;
  FloatType computeType, workType;
  /// Whether the op is a tile for a GPU, whose threads hold rows or chunks of
  /// them: another sweep costs less than a decision about one would.
  bool isForGpu;
  bool keepsChannels;

  /// The extent of x along an axis, or that of a group.
  OpFoldResult extentOf(int64_t axis);

private:
  AffineMap mapOf(ArrayRef<int64_t> axes, ArrayRef<int64_t> loops);
  SmallVector<OpFoldResult> extentsOf(ArrayRef<int64_t> axes);
  SmallVector<Value> map(ArrayRef<Indexed> inputs, ArrayRef<int64_t> outAxes,
                         ArrayRef<Type> elementTypes, BodyFn body);
  SmallVector<Value> reduce(ArrayRef<Indexed> inputs, ArrayRef<int64_t> loops,
                            ArrayRef<int64_t> outAxes,
                            ArrayRef<Type> elementTypes, BodyFn terms);
  SmallVector<Indexed> spread(ArrayRef<Indexed> inputs);
  SmallVector<Value> sumChannels(ValueRange sums, ArrayRef<Type> types);
  SmallVector<ReassociationIndices> channelsOfGroups();

  /// The axes of what each channel has, and with the channels of a group apart.
  SmallVector<int64_t> channels, grouped;
  /// The sums of each channel that were added up last.
  Value channelSums;
  /// What has been spread over channels.
  DenseMap<Value, Value> spreadOf;
};

/// Step 5 of the contract: the factor of a statistic, both in work type.
/// `epsilon` is added as it is in the compute type.
Value buildFactor(RowBuilder &rows, OpBuilder &b, EpsilonAttr epsilon,
                  ZeroPolicy zeroPolicy, Value statistic);

/// Step 7 of the contract, from x-hat in work type to a value that is rounded
/// to `resultType` last. `scale` and `shift` may be null.
struct AffineStep {
  FloatType xType, resultType;
  AffineIn affineIn;
  double scaleOffset;

  Value build(RowBuilder &rows, OpBuilder &b, Value normalized, Value scale,
              Value shift) const;
  /// scale + offset in compute type, held in work type.
  Value gain(RowBuilder &rows, OpBuilder &b, Value scale) const;
};

/// dy * (scale + offset) in work type, rounded to no narrow compute type;
/// `scale` may be null.
Value buildGradient(RowBuilder &rows, OpBuilder &b, Value dy, Value scale,
                    double scaleOffset);

/// What is subtracted from c, and the factor: statistics over the kept axes,
/// computed or given.
struct RowStatistics {
  /// Subtracted one after the other: m, and what rounding took from it.
  SmallVector<Indexed> means;
  Indexed rstd;
  /// -d * r, where d is still to be subtracted: added after the multiply, in
  /// one rounding. Null if there is no such d.
  Indexed offset;
};

/// Steps 1 and 2: what is normalized, and the sum that is stored.
class Source {
public:
  /// x, or the stored sum, or x and residual to be added unrounded.
  SmallVector<Indexed> inputs;
  /// round(x + residual); null without a residual.
  Value sum;

  static Source build(RowBuilder &rows, const NormContract &contract,
                      bool wantsSum, FloatType sumType);
  /// c in work type, from the elements of `inputs`.
  Value widened(RowBuilder &rows, OpBuilder &b, ValueRange in) const;
};

/// c as a tensor over all axes, as the algebra's gradients take it: they round
/// nothing, so x is rounded to a narrow compute type here (and keeps its own
/// type), and so is the unrounded sum of x and residual.
Value buildGradientSource(RowBuilder &rows, const NormContract &contract);

/// Splits a given mean into the pair that is subtracted: the value in work type
/// and, where the mean is wider, the rest.
SmallVector<Indexed> splitMean(RowBuilder &rows, Value mean);

/// The number of elements that a statistic counts, in work type: one number, or
/// one per statistic where elements are masked. At least 1, so that sums of
/// nothing stay 0.
struct Count {
  Value scalar;
  Indexed perStatistic;

  /// Appends what a body over the kept axes needs to see.
  void addTo(SmallVectorImpl<Indexed> &inputs) const {
    if (perStatistic)
      inputs.push_back(perStatistic);
  }
  /// The count in a body whose last input is what addTo appended.
  Value in(ValueRange inputs) const {
    return perStatistic ? inputs.back() : scalar;
  }
};

/// Steps 3 and 4 before the division: sums about m over the kept axes, in work
/// type. With d = deviations / n, the mean is m + d, and the sum of squares
/// about it is max(squares - deviations * d, 0).
struct CentredSums {
  Value mean, squares;
  /// Null where every step is rounded, and m is the mean.
  Value deviations;

  /// d and the sum of squares about m + d, in a body that sees the elements of
  /// `squares` and, unless it is null, `deviations`.
  static std::pair<Value, Value> correct(RowBuilder &rows, OpBuilder &b,
                                         Value squares, Value deviations,
                                         Value count);
};

/// See NormSteps.cpp for the algorithm. Elements whose `mask` (i1 over all
/// axes, or null) is 0 do not count.
CentredSums buildCentredSums(RowBuilder &rows, const Source &source,
                             Indexed mask, const Count &count);

/// Sum of c^2 over the reduced axes, in work type.
Value buildSquareSum(RowBuilder &rows, const Source &source, Indexed mask);

/// Steps 3 to 5 of a norm over statistics of its own.
struct Statistics {
  RowStatistics row;
  /// Over the kept axes, in work type; null where not asked for or not defined.
  /// `squares` is the numerator of the variance.
  Value mean, squares, variance;

  struct Wanted {
    bool mean = false, squares = false, variance = false;
    /// d as one more mean to subtract, not as an offset: the factor that goes
    /// with it is another than r.
    bool remainder = false;
  };
  static Statistics build(RowBuilder &rows, const NormContract &contract,
                          Statistic statistic, const Source &source,
                          Wanted wanted);
  /// The same from a given mean (may be null), and variance or rstd.
  static Statistics given(RowBuilder &rows, const NormContract &contract,
                          Value mean, Value variance, Value rstd);
};

/// x-hat in a body over all axes.
class Normalized {
public:
  /// `isRounded`: whether x-hat is rounded to a narrow compute type, as it is
  /// in a forward op and is not in a gradient.
  Normalized(RowBuilder &rows, const Source &source, const RowStatistics &row,
             bool isRounded)
      : rows(rows), source(source), row(row), isRounded(isRounded) {}

  /// Appends what the body needs to see; call once, before `build`.
  void addTo(SmallVectorImpl<Indexed> &inputs);
  /// Step 6, in work type.
  Value build(OpBuilder &b, ValueRange in) const;
  /// r alone.
  Value factor(OpBuilder &b, ValueRange in) const {
    return rows.toWork(b, in[factorAt()]);
  }

private:
  size_t factorAt() const {
    return first + source.inputs.size() + row.means.size();
  }

  RowBuilder &rows;
  const Source &source;
  const RowStatistics &row;
  bool isRounded;
  size_t first = 0;
};

/// Weights of the old and the new value of a running statistic, in work type;
/// 1 - momentum is formed in f64.
struct RunningWeights {
  Value old, observed;
};
RunningWeights buildRunningWeights(RowBuilder &rows,
                                   std::optional<double> momentum,
                                   Value momentumValue);
/// The updated value, rounded once to the type of `old`; `observed` is in work
/// type.
Value buildRunningUpdate(RowBuilder &rows, OpBuilder &b,
                         const RunningWeights &weights, Value old,
                         Value observed);

/// Whether the gradient depends on the statistic otherwise than by the factor.
bool needsStatistic(EpsilonAttr epsilon);
/// What the statistic's term of dx is multiplied by, from the statistic in work
/// type: the k of DecomposeBackward.cpp. Null where it is 1.
Value buildStatisticWeight(RowBuilder &rows, OpBuilder &b, EpsilonAttr epsilon,
                           Value q);

/// The op on a view of x whose grouped axis is two, [groups, C/groups], as
/// `decompose` has it, with the op's own results. The view is a layer norm.
using DecomposeFn = function_ref<FailureOr<SmallVector<Value>>(
    RowOpInterface view, OpBuilder &builder)>;
FailureOr<SmallVector<Value>>
decomposeGroups(NormOpInterface op, OpBuilder &builder, DecomposeFn decompose);
FailureOr<SmallVector<Value>> decomposeGroups(NormBackwardOpInterface op,
                                              OpBuilder &builder,
                                              DecomposeFn decompose);

/// `decomposeNorm` where groups of the innermost axis keep their channels as
/// lanes, see RowBuilder.
SmallVector<Value> decomposeKeepingChannels(NormOpInterface op,
                                            OpBuilder &builder);

} // namespace mlir::norm

#endif // NORM_LIB_IR_ROWBUILDER_H
