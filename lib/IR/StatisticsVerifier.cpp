//===- StatisticsVerifier.cpp - Constraints of the statistics algebra -----===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verifier.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::norm;

namespace {
/// Checks that ops of the algebra share.
struct StatisticsVerifier : RowVerifier {
  /// V3, for an explicit compute type.
  LogicalResult verifyCompute(std::optional<Type> computeType) {
    return computeType ? verifyComputeType(cast<FloatType>(*computeType))
                       : success();
  }

  /// V8: the compute type, or f64.
  LogicalResult verifyStatisticType(StringRef name, Value value) {
    if (!value)
      return success();
    Type elementType = getElementTypeOrSelf(value.getType());
    FloatType expectedType = op.getComputeTypeOrDefault();
    if (elementType == expectedType || elementType.isF64())
      return success();
    InFlightDiagnostic diag = error();
    diag << "expected '" << name << "' of element type " << expectedType
         << " (the compute type)";
    if (!expectedType.isF64())
      diag << " or f64";
    return diag << ", got " << elementType << " (V8)";
  }

  /// V8: shape and type.
  LogicalResult verifyAlgebraStatistic(StringRef name, Value value) {
    return success(succeeded(verifyStatisticType(name, value)) &&
                   succeeded(verifyStatisticShape(name, value)));
  }

  /// V17: an op of optional results has one.
  LogicalResult verifyHasResult() {
    if (op->getNumResults() > 0)
      return success();
    return error() << "expected at least one result, got none (V17)";
  }

  /// V17, and V2 for the operands and results that affine axes index.
  LogicalResult verifyAffine(std::optional<ArrayRef<int64_t>> affineAxes,
                             ArrayRef<std::pair<StringRef, Value>> values,
                             StringRef needed, double scaleOffset,
                             Value scale) {
    bool isThere =
        llvm::any_of(values, [](const auto &entry) { return entry.second; });
    if (failed(verifyAffineAxes(affineAxes, isThere, needed)))
      return failure();
    SmallVector<int64_t> axes =
        affineAxes ? llvm::to_vector(*affineAxes) : op.getReducedAxes();
    for (auto [name, value] : values)
      if (failed(verifyAffineShape(name, value, axes)))
        return failure();
    return verifyScaleOffset(scaleOffset, scale);
  }

  /// V17: a correction is 0 or 1, and lowers a count.
  LogicalResult verifyCorrection(int64_t correction, Value count) {
    if (correction != 0 && correction != 1)
      return error() << "expected 'correction' 0 or 1, got " << correction
                     << " (V17)";
    if (correction != 0 && !count)
      return error() << "expected 'count' with 'correction', got none (V17)";
    return success();
  }
};
} // namespace

LogicalResult MomentsOp::verify() {
  if (failed(verifyValues(*this, getComputeType())))
    return failure();
  StatisticsVerifier verifier{{*this}};
  if (failed(verifier.verifyAxes(getAxes())) ||
      failed(verifier.verifyCompute(getComputeType())) ||
      failed(verifier.verifyStatisticShape("count", getCount())) ||
      failed(verifier.verifyAlgebraStatistic("mean", getMean())) ||
      failed(verifier.verifyAlgebraStatistic("m2", getM2())) ||
      failed(verifier.verifyFullShape("mask", getMask(), "V9")) ||
      failed(verifier.verifyHasResult()))
    return failure();
  if (getMean() && getAbout() != About::Mean)
    return emitOpError("expected no 'mean' result about ")
           << stringifyAbout(getAbout()) << " (V17)";
  return success();
}

LogicalResult CombineMomentsOp::verify() {
  if (failed(verifyValues(*this, getComputeType())))
    return failure();
  StatisticsVerifier verifier{{*this}};
  if (verifier.rank == 0)
    return emitOpError("expected 'm2' with a leading axis of parts, got rank 0 "
                       "(V8)");
  if (failed(verifier.verifyCompute(getComputeType())) ||
      failed(verifier.verifyFullShape("count", getCount(), "V8")) ||
      failed(verifier.verifyFullShape("mean", getMean(), "V8")) ||
      failed(verifier.verifyStatisticShape("count", getMergedCount())) ||
      failed(verifier.verifyAlgebraStatistic("mean", getMergedMean())) ||
      failed(verifier.verifyAlgebraStatistic("m2", getMergedM2())) ||
      failed(verifier.verifyHasResult()))
    return failure();
  if (getMergedMean() && !getMean())
    return emitOpError("expected 'mean' with a 'mean' result, got none (V17)");
  return success();
}

LogicalResult RstdOp::verify() {
  if (failed(verifyValues(*this, getComputeType())))
    return failure();
  StatisticsVerifier verifier{{*this}};
  return success(
      succeeded(verifier.verifyCompute(getComputeType())) &&
      succeeded(verifier.verifyEpsilon(getEpsilon())) &&
      succeeded(verifier.verifyFullShape("count", getCount(), "V8")) &&
      succeeded(verifier.verifyAlgebraStatistic("rstd", getRstd())) &&
      succeeded(verifier.verifyAlgebraStatistic("variance", getVariance())) &&
      succeeded(verifier.verifyCorrection(getCorrection(), getCount())));
}

LogicalResult NormalizeOp::verify() {
  if (failed(verifyValues(*this, getComputeType())))
    return failure();
  StatisticsVerifier verifier{{*this}};
  return success(
      succeeded(verifier.verifyAxes(getAxes())) &&
      succeeded(verifier.verifyAffine(
          getAffineAxes(), {{"scale", getScale()}, {"shift", getShift()}},
          "'scale' or 'shift'", getScaleOffset().convertToDouble(),
          getScale())) &&
      succeeded(verifier.verifyCompute(getComputeType())) &&
      succeeded(verifier.verifyAlgebraStatistic("mean", getMean())) &&
      succeeded(verifier.verifyAlgebraStatistic("rstd", getRstd())) &&
      succeeded(verifier.verifyAffineIn(getAffineIn(), getY())) &&
      succeeded(verifier.verifyFullShape("y", getY(), "V15")));
}

LogicalResult UpdateRunningOp::verify() {
  if (failed(verifyValues(*this, getComputeType())))
    return failure();
  StatisticsVerifier verifier{{*this}};
  if (failed(verifier.verifyCompute(getComputeType())) ||
      failed(verifier.verifyFullShape("new", getObserved(), "V8")) ||
      failed(verifier.verifyFullShape("count", getCount(), "V8")) ||
      failed(verifier.verifyFullShape("updated", getUpdated(), "V8")))
    return failure();
  if (getMomentum() &&
      failed(verifier.verifyMomentum(getMomentum()->convertToDouble())))
    return failure();
  int momenta = (getMomentum() ? 1 : 0) + (getMomentumValue() ? 1 : 0);
  if (momenta != 1)
    return emitOpError("expected one 'momentum', got ") << momenta << " (V17)";
  if (getRunningCorrection() != 0 && getRunningCorrection() != 1)
    return emitOpError("expected 'running_correction' 0 or 1, got ")
           << getRunningCorrection() << " (V17)";
  return success();
}

LogicalResult BackwardMomentsOp::verify() {
  if (failed(verifyValues(*this, getComputeType())))
    return failure();
  StatisticsVerifier verifier{{*this}};
  return success(
      succeeded(verifier.verifyAxes(getAxes())) &&
      succeeded(verifier.verifyAffine(getAffineAxes(),
                                      {{"scale", getScale()},
                                       {"dscale", getDscale()},
                                       {"dshift", getDshift()}},
                                      "'scale', 'dscale' or 'dshift'",
                                      getScaleOffset().convertToDouble(),
                                      getScale())) &&
      succeeded(verifier.verifyCompute(getComputeType())) &&
      succeeded(verifier.verifyAlgebraStatistic("mean", getMean())) &&
      succeeded(verifier.verifyAlgebraStatistic("rstd", getRstd())) &&
      succeeded(verifier.verifyAlgebraStatistic("sum_g", getSumG())) &&
      succeeded(verifier.verifyAlgebraStatistic("sum_gx", getSumGx())) &&
      succeeded(verifier.verifyFullShape("mask", getMask(), "V9")) &&
      succeeded(verifier.verifyFullShape("dy", getDy(), "V15")) &&
      succeeded(verifier.verifyHasResult()));
}

LogicalResult BackwardNormalizeOp::verify() {
  if (failed(verifyValues(*this, getComputeType())))
    return failure();
  StatisticsVerifier verifier{{*this}};
  if (failed(verifier.verifyAxes(getAxes())) ||
      failed(verifier.verifyAffine(
          getAffineAxes(), {{"scale", getScale()}}, "'scale'",
          getScaleOffset().convertToDouble(), getScale())) ||
      failed(verifier.verifyCompute(getComputeType())) ||
      failed(verifier.verifyEpsilon(getEpsilon())))
    return failure();
  for (auto [name, value] : std::initializer_list<std::pair<StringRef, Value>>{
           {"mean", getMean()},
           {"rstd", getRstd()},
           {"variance", getVariance()},
           {"sum_g", getSumG()},
           {"sum_gx", getSumGx()}})
    if (failed(verifier.verifyAlgebraStatistic(name, value)))
      return failure();
  if (failed(verifier.verifyStatisticShape("count", getCount())) ||
      failed(verifier.verifyFullShape("mask", getMask(), "V9")) ||
      failed(verifier.verifyFullShape("dy", getDy(), "V15")) ||
      failed(verifier.verifyFullShape("dx", getDx(), "V15")) ||
      failed(verifier.verifyCorrection(getCorrection(), getCount())))
    return failure();
  EpsilonPlacement placement = getEpsilon().getPlacement();
  if (!getVariance() && placement != EpsilonPlacement::InsideSqrt &&
      placement != EpsilonPlacement::None)
    return emitOpError("expected 'variance' with epsilon ")
           << stringifyEpsilonPlacement(placement) << ", got none (V17)";
  return success();
}
