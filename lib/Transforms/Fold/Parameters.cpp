//===- Parameters.cpp - Parameters of a norm as numbers -------------------===//
//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parameters.h"

#include "mlir/IR/TypeUtilities.h"
#include <cmath>

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::fold;

std::optional<SmallVector<double>> fold::constantElements(Value value) {
  std::optional<ConstantTensor> constant = matchConstant(value);
  if (!constant)
    return std::nullopt;
  SmallVector<double> values;
  for (int64_t i = 0, e = constant->getType().getNumElements(); i < e; ++i)
    values.push_back((*constant)[i]);
  return values;
}

/// Whether x^ is rounded to a narrower type before scale and shift.
static bool roundsBeforeAffine(NormOpInterface op) {
  if (op.getAffineIn() != AffineIn::Result ||
      (!op.getScaleOrNull() && !op.getShiftOrNull()))
    return false;
  auto width = [](Value value) {
    return cast<FloatType>(getElementTypeOrSelf(value.getType())).getWidth();
  };
  return std::min(width(op.getInput()), width(op.getNormalized())) <
         op.getComputeTypeOrDefault().getWidth();
}

FailureOr<ConstantAffine> fold::matchConstantAffine(const Rule &rule,
                                                    NormOpInterface op) {
  if (!op.getScaleOrNull() && !op.getShiftOrNull())
    return failure();
  ConstantAffine affine;
  affine.axes = op.getAffineAxesOrDefault();
  affine.hasScale = op.getScaleOrNull() != nullptr;
  affine.hasShift = op.getShiftOrNull() != nullptr;
  std::optional<SmallVector<double>> scale, shift;
  if (affine.hasScale && !(scale = constantElements(op.getScaleOrNull())))
    return rule.refuse(op, "constant", "the scale is not a constant");
  if (affine.hasShift && !(shift = constantElements(op.getShiftOrNull())))
    return rule.refuse(op, "constant", "the shift is not a constant");
  if (failed(rule.require(op, "affine-in", !roundsBeforeAffine(op),
                          "the value is rounded before it is scaled")))
    return failure();
  size_t count = scale ? scale->size() : shift->size();
  affine.scale = scale ? *scale : SmallVector<double>(count, 1.0);
  affine.shift = shift ? *shift : SmallVector<double>(count, 0.0);
  if (scale)
    for (double &gain : affine.scale)
      gain += op.getScaleOffsetValue();
  return affine;
}

/// Step 5 in f64, with epsilon as the op adds it.
static double factorOf(NormOpInterface op, double variance) {
  double epsilon =
      roundToType(op.getEpsilon().getDouble(), op.getComputeTypeOrDefault())
          .convertToDouble();
  // fmax would lose it.
  if (std::isnan(variance))
    return variance;
  double denominator = 0.0;
  switch (op.getEpsilon().getPlacement()) {
  case EpsilonPlacement::None:
    denominator = std::sqrt(variance);
    break;
  case EpsilonPlacement::InsideSqrt:
    denominator = std::sqrt(variance + epsilon);
    break;
  case EpsilonPlacement::OutsideSqrt:
    denominator = std::sqrt(variance) + epsilon;
    break;
  case EpsilonPlacement::MaxInside:
    denominator = std::sqrt(std::fmax(variance, epsilon));
    break;
  case EpsilonPlacement::MaxOutside:
    denominator = std::fmax(std::sqrt(variance), epsilon);
    break;
  }
  if (denominator == 0.0 && op.getZeroPolicy() == ZeroPolicy::Zero)
    return 0.0;
  return 1.0 / denominator;
}

bool fold::GivenNorm::isFar() const {
  constexpr double kMaxDistance = 64.0;
  for (auto [mean, rstd] : llvm::zip_equal(mean, rstd))
    if (std::isfinite(rstd) && std::fabs(mean) * rstd > kMaxDistance)
      return true;
  return false;
}

FailureOr<GivenNorm> fold::matchGivenNorm(const Rule &rule,
                                          NormOpInterface op) {
  if (!op.hasGivenStatistics() || !op.getGivenMeanOrNull())
    return failure();
  if (op.getResidualOrNull())
    return rule.refuse(op, "residual", "a residual is added to the value");
  auto mean = constantElements(op.getGivenMeanOrNull());
  auto variance = constantElements(op.getGivenVarianceOrNull());
  if (!mean || !variance)
    return rule.refuse(op, "constant", "the statistics are not constants");

  GivenNorm norm;
  norm.axes =
      complementAxes(op.getReducedAxes(), op.getInput().getType().getRank());
  norm.mean = *mean;
  for (double element : *variance)
    norm.rstd.push_back(factorOf(op, element));
  norm.factor = norm.rstd;
  norm.shift.assign(mean->size(), 0.0);
  if (!op.getScaleOrNull() && !op.getShiftOrNull())
    return norm;
  FailureOr<ConstantAffine> affine = matchConstantAffine(rule, op);
  if (failed(affine))
    return failure();
  if (affine->axes != norm.axes)
    return rule.refuse(op, "affine-axes",
                       "scale and shift vary along other axes than the "
                       "statistics");
  norm.shift = affine->shift;
  for (auto [factor, scale] : llvm::zip_equal(norm.factor, affine->scale))
    factor *= scale;
  return norm;
}
