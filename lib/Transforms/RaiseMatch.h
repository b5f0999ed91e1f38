//===- RaiseMatch.h - Recognizing a normalization ---------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Roles, from the inside out: the *input* x; its *mean*; the *centred* value
// x - mean; the *square* of either; its *statistic* q (mean of squares); the
// *factor* 1/sqrt(q + epsilon) and its relatives; the *core*, input or centred
// value times factor; the *affine* part, core times gain plus shift. Each role
// is recognized by what it computes, through `ElementView.h`, never by one
// spelling.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_RAISEMATCH_H
#define NORM_LIB_TRANSFORMS_RAISEMATCH_H

#include "Norm/Analysis/ElementView.h"

#include "Norm/IR/NormOps.h"
#include "Norm/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <string>

namespace mlir::norm::raise {
using namespace ::mlir::norm::elements;

/// The types that a computation rounds to, in the order they were met.
using TypeSet = llvm::SmallSetVector<Type, 4>;

/// Why something that looks like a norm is none that can be raised.
struct Refusal {
  /// Name of the first failed condition.
  StringRef condition;
  std::string reason;
  Location loc;
  /// No part of the candidate may be raised on its own either.
  bool isFinal = false;
};

/// The first refusal of each reduction that some candidate was built on.
using Refusals = llvm::MapVector<Operation *, Refusal>;

/// A constant that takes part in the arithmetic.
struct AddedConstant {
  /// As added, that is, rounded to the type of the addition.
  llvm::APFloat added;
  /// As written, before a narrowing cast (at least as precise).
  llvm::APFloat written;
  FloatType type;
};

/// q: a mean (or a plain sum) of squares.
struct MatchedStatistic {
  /// The squared value: the input, or for a centred one the value before the
  /// mean is subtracted.
  View input;
  bool centred = false;
  /// The sum is not divided: an l2 norm.
  bool isPlainSum = false;
  int64_t correction = 0;
  SmallVector<int32_t, 4> axes;
  int64_t count = ShapedType::kDynamic;
  Operation *reduction = nullptr;
};

/// The divisor of a normalization.
struct MatchedFactor {
  MatchedStatistic statistic;
  EpsilonPlacement placement = EpsilonPlacement::None;
  std::optional<AddedConstant> epsilon;
  /// q, and the factor r itself where it is formed as one value.
  View variance;
  std::optional<View> rstd;
  TypeSet types;
};

/// core = (input - mean?) * factor, times `rest`.
struct MatchedCore {
  MatchedFactor factor;
  View input;
  std::optional<View> mean;
  FloatType type;
  /// Further factors of the product: value, and whether it divides.
  SmallVector<std::pair<View, bool>, 2> rest;
};

/// A gain or shift that a norm op can take as its operand.
struct MatchedParameter {
  /// The tensor to read, and the frame dimensions its dimensions stand for
  /// (kUnit where its extent is 1).
  View tensor;
  /// The same without unit dimensions: `affine_axes`.
  SmallVector<int64_t> axes;
};

/// The statistics of a batch norm at inference: values of their own, one per
/// channel.
struct GivenStatistics {
  MatchedParameter mean, variance;
  int64_t channelAxis;
};

struct MatchedNorm {
  MatchedCore core;
  /// batch_norm_inference: then `core.factor.statistic` is empty.
  std::optional<GivenStatistics> given;
  View input; ///< a tensor of the frame's shape, in its narrowest exact type
  std::optional<MatchedParameter> scale, shift;
  double scaleOffset = 0.0;
  AffineIn affineIn = AffineIn::Compute;
  FloatType resultType;
  /// Null: the op's default.
  FloatType computeType;
  EpsilonAttr epsilon;
  /// What changed on the way, for remarks.
  SmallVector<std::string, 2> notes;
};

/// Whether `expr` is x^0.5, or x^-0.5.
bool isRoot(const ViewAnalysis &views, const Expr &expr);
bool isReciprocalRoot(const ViewAnalysis &views, const Expr &expr);

/// A node of a tree of products and quotients.
struct ProductNode {
  View view;
  bool divides;
};

/// The nodes of the product, the outermost first.
SmallVector<ProductNode> productNodes(const ViewAnalysis &views,
                                      const View &product);

/// Splits the product into numerator, factor and the rest. Returns whether the
/// subtree at `node` holds the numerator or the factor.
bool splitProduct(const ViewAnalysis &views, const ProductNode &node,
                  const ProductNode &factor, bool &sawFactor,
                  bool &sawNumerator,
                  llvm::function_ref<bool(const View &)> isNumerator,
                  SmallVectorImpl<std::pair<View, bool>> &rest);

/// Matches the normalization that ends in one tensor.
class NormMatcher {
public:
  NormMatcher(RankedTensorType type, Location loc, StatisticsMode mode,
              Refusals &refusals)
      : frame(type), views(frame), loc(loc), mode(mode), refusals(refusals) {}

  /// The norm whose result is `result`, whole. Nullopt if there is none; if one
  /// was refused, `refusals` says why.
  std::optional<MatchedNorm> match(Value result);

  const Frame &getFrame() const { return frame; }
  const ViewAnalysis &getViews() const { return views; }

private:
  // RaiseStatistics.cpp: square, mean, statistic, factor.
  std::optional<View> matchSquare(const View &value, TypeSet &types);
  bool matchMean(View mean, const View &input, ArrayRef<int32_t> axes,
                 TypeSet &types);
  std::optional<MatchedStatistic> matchStatistic(View value, TypeSet &types);
  std::optional<MatchedStatistic> matchSumOfSquares(View value, TypeSet &types);
  std::optional<MatchedStatistic> matchMomentDifference(const Expr &difference,
                                                        TypeSet &types);
  bool matchDivision(const Expr &expr, View &sum, int64_t &count, bool centred,
                     int64_t &correction);
  std::optional<MatchedFactor> matchFactor(const View &value, bool divides);
  std::optional<MatchedFactor> matchDivisor(View value);
  bool matchRoot(View value, MatchedFactor &factor, bool &scaledToMean);
  bool matchUnderRoot(View value, MatchedFactor &factor);
  bool takeEpsilon(const View &constant, EpsilonPlacement placement,
                   MatchedFactor &factor);
  Operation *findReduction(const View &value, unsigned depth = 8) const;
  bool isReductionOf(const View &value, const View &input) const;
  bool dependsOn(const View &value, ArrayRef<int32_t> dims,
                 unsigned depth = 12) const;
  View peelCasts(View value, TypeSet &types) const;
  std::optional<AddedConstant> constantOf(const View &value) const;

  // RaiseAffine.cpp: core, gain, shift, types.
  std::optional<MatchedNorm>
  matchCore(const View &product,
            llvm::function_ref<bool(MatchedNorm &)> accept);
  bool matchNumerator(const View &value, MatchedCore &core);
  std::optional<MatchedNorm>
  matchProduct(const View &product, const View *shift, FloatType resultType);
  std::optional<MatchedNorm> matchRoundedCore(const View &product,
                                              const View *shift);
  bool takeGain(MatchedNorm &norm, const View &gain);
  bool takeShift(MatchedNorm &norm, const View &shift);
  std::optional<MatchedParameter> readParameter(const View &value);
  std::optional<MatchedParameter> matchParameter(const View &value,
                                                 ArrayRef<int32_t> axes);
  bool takeRest(MatchedNorm &norm);
  bool finish(MatchedNorm &norm, FloatType resultType);
  bool decideComputeType(MatchedNorm &norm);
  bool decideEpsilon(MatchedNorm &norm);

  // RaiseInference.cpp: a batch norm with statistics of its own.
  std::optional<MatchedNorm> matchInference(const View &value,
                                            FloatType resultType);
  std::optional<MatchedNorm>
  matchGivenCore(const View &product, const View *shift, FloatType resultType);
  std::optional<MatchedNorm> matchScaleAndShift(const View &factor,
                                                const View &input,
                                                const View &shift,
                                                FloatType resultType);
  bool matchGivenFactor(const ProductNode &node, MatchedNorm &norm,
                        std::optional<View> &epsilon);
  bool takeGivenMean(MatchedNorm &norm, const View &mean);
  bool takeGivenAffine(MatchedNorm &norm, const View *shift);
  bool finishGiven(MatchedNorm &norm, const std::optional<View> &epsilon,
                   FloatType resultType);
  std::optional<MatchedParameter> channelParameter(const View &value);

  /// Records the refusal of the candidate built on `reduction`; returns false.
  bool refuse(Operation *reduction, StringRef condition, const Twine &reason);

  Frame frame;
  ViewAnalysis views;
  Location loc;
  StatisticsMode mode;
  Refusals &refusals;
  /// The reduction under the candidate at hand.
  Operation *reduction = nullptr;
};

} // namespace mlir::norm::raise

#endif // NORM_LIB_TRANSFORMS_RAISEMATCH_H
