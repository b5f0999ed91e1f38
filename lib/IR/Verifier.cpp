//===- Verifier.cpp - Numbered constraints, one check each -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verifier.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallString.h"

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// V3: what every accessor relies on
//===----------------------------------------------------------------------===//

static bool isNormFloat(Type type) {
  return isa<Float64Type, Float32Type, Float16Type, BFloat16Type>(type);
}

/// V3 (V8 for counts, V9 for masks) for the element type.
static LogicalResult verifyElementType(Operation *op, const TensorGroup &group,
                                       Type elementType) {
  auto refuse = [&](StringRef expected, StringRef id) {
    return op->emitOpError("expected '")
           << group.getName() << "' of element type " << expected << ", got "
           << elementType << " (" << id << ")";
  };
  switch (group.kind) {
  case ElementKind::Float:
    return isNormFloat(elementType) ? success()
                                    : refuse("f64, f32, f16 or bf16", "V3");
  case ElementKind::Count:
    return elementType.isSignlessInteger(64) ? success() : refuse("i64", "V8");
  case ElementKind::Mask:
    return elementType.isSignlessInteger(1) ? success() : refuse("i1", "V9");
  }
  llvm_unreachable("unknown kind");
}

/// The same for one operand or result.
static LogicalResult verifyValue(Operation *op, const TensorGroup &group,
                                 Type type) {
  if (failed(verifyElementType(op, group, getElementTypeOrSelf(type))))
    return failure();
  // Nothing says what an encoding means for a slice or a statistic.
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    if (tensor.getEncoding())
      return op->emitOpError("expected '")
             << group.getName() << "' without encoding, got "
             << tensor.getEncoding() << " (V3)";
  return success();
}

static LogicalResult verifyGroups(Operation *op, ArrayRef<TensorGroup> groups,
                                  ArrayRef<int64_t> counts, TypeRange types) {
  // ODS checks the sum of the counts and that the optional ones are 0 or 1.
  for (auto [group, count] : llvm::zip_equal(groups, counts)) {
    if (!group.isOptional() && count != 1)
      return op->emitOpError("expected one '")
             << group.getName() << "', got " << count;
    for (Type type : types.take_front(count))
      if (failed(verifyValue(op, group, type)))
        return failure();
    types = types.drop_front(count);
  }
  return success();
}

LogicalResult norm::verifyValues(Operation *op, ArrayRef<TensorGroup> operands,
                                 ArrayRef<int64_t> operandCounts,
                                 ArrayRef<TensorGroup> results,
                                 ArrayRef<int64_t> resultCounts,
                                 std::optional<Type> computeType) {
  if (failed(
          verifyGroups(op, operands, operandCounts, op->getOperandTypes())) ||
      failed(verifyGroups(op, results, resultCounts, op->getResultTypes())))
    return failure();
  if (computeType && !isNormFloat(*computeType))
    return op->emitOpError(
               "expected 'compute' type f64, f32, f16 or bf16, got ")
           << *computeType << " (V3)";
  return success();
}

//===----------------------------------------------------------------------===//
// Checks that ops of both tiers share
//===----------------------------------------------------------------------===//

LogicalResult RowVerifier::verifyAxes(ArrayRef<int64_t> axes) {
  if (rank == 0)
    return error() << "expected 'x' of rank 1 or more, got rank 0 (V1)";
  if (axes.empty())
    return error() << "expected at least one axis in 'axes', got none (V1)";
  for (int64_t axis : axes)
    if (axis < -rank || axis >= rank)
      return error() << "expected 'axes' from " << -rank << " to " << rank - 1
                     << " for rank " << rank << ", got " << axis << " (V1)";
  SmallVector<int64_t> sorted = canonicalAxes(axes, rank);
  for (size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i] == sorted[i - 1])
      return error() << "expected unique 'axes', got axis " << sorted[i]
                     << " twice (V1)";
  return success();
}

LogicalResult RowVerifier::verifyGroups(ArrayRef<int64_t> axes,
                                        int64_t channelAxis, int64_t groups) {
  if (channelAxis < -rank || channelAxis >= rank)
    return error() << "expected 'channel_axis' from " << -rank << " to "
                   << rank - 1 << " for rank " << rank << ", got "
                   << channelAxis << " (V5)";
  int64_t axis = channelAxis < 0 ? channelAxis + rank : channelAxis;
  if (!llvm::is_contained(canonicalAxes(axes, rank), axis))
    return error() << "expected 'channel_axis' to be one of 'axes', got "
                   << channelAxis << " (V5)";
  if (groups <= 0)
    return error() << "expected 'groups' > 0, got " << groups << " (V5)";
  int64_t channels = xType.getDimSize(axis);
  if (!ShapedType::isDynamic(channels) && channels % groups != 0)
    return error() << "expected 'groups' to divide the " << channels
                   << " channels of 'x', got " << groups << " (V5)";
  return success();
}

LogicalResult
RowVerifier::verifyAffineAxes(std::optional<ArrayRef<int64_t>> affineAxes,
                              bool isThere, StringRef needed) {
  if (!affineAxes)
    return success();
  if (!isThere)
    return error() << "expected " << needed
                   << " with 'affine_axes', got neither (V17)";
  for (auto [i, axis] : llvm::enumerate(*affineAxes)) {
    if (axis < 0 || axis >= rank)
      return error() << "expected 'affine_axes' from 0 to " << rank - 1
                     << ", got " << axis << " (V17)";
    if (i > 0 && axis <= (*affineAxes)[i - 1])
      return error() << "expected 'affine_axes' to be strictly increasing, "
                        "got "
                     << axis << " after " << (*affineAxes)[i - 1] << " (V17)";
  }
  return success();
}

LogicalResult RowVerifier::verifyAffineShape(StringRef name, Value value,
                                             ArrayRef<int64_t> affineAxes) {
  if (!value)
    return success();
  SmallVector<int64_t> expected;
  for (int64_t axis : affineAxes)
    expected.push_back(xType.getDimSize(axis));
  return verifyShape(name, value, expected, "V2");
}

LogicalResult RowVerifier::verifyShape(StringRef name, Value value,
                                       ArrayRef<int64_t> expected,
                                       StringRef id) {
  auto type = cast<RankedTensorType>(value.getType());
  if (succeeded(verifyCompatibleShape(type.getShape(), expected)))
    return success();
  return error() << "expected '" << name << "' of shape " << shapeText(expected)
                 << ", got " << shapeText(type.getShape()) << " (" << id << ")";
}

std::string RowVerifier::shapeText(ArrayRef<int64_t> shape) {
  std::string text = "[";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(shape, os, [&](int64_t extent) {
    ShapedType::isDynamic(extent) ? os << "?" : os << extent;
  });
  os << "]";
  return text;
}

LogicalResult RowVerifier::verifyComputeType(FloatType computeType) {
  auto xElement = cast<FloatType>(xType.getElementType());
  if (computeType.getWidth() == xElement.getWidth() && computeType != xElement)
    return error() << "expected a 'compute' type that holds x's " << xElement
                   << " or has fewer bits, got " << computeType << " (V3)";
  return success();
}

static std::string floatText(const APFloat &value) {
  SmallString<16> text;
  value.toString(text);
  return std::string(text);
}

LogicalResult RowVerifier::verifyEpsilon(EpsilonAttr epsilon) {
  const APFloat &value = epsilon.getValue();
  if (!value.isFinite() || (value.isNegative() && !value.isZero()))
    return error() << "expected a finite 'epsilon' >= 0, got "
                   << floatText(value) << " (V4)";
  EpsilonPlacement placement = epsilon.getPlacement();
  bool isMaximum = placement == EpsilonPlacement::MaxInside ||
                   placement == EpsilonPlacement::MaxOutside;
  if (isMaximum && value.isZero())
    return error() << "expected 'epsilon' > 0 for "
                   << stringifyEpsilonPlacement(placement) << ", got "
                   << floatText(value) << " (V4)";
  return success();
}

LogicalResult RowVerifier::verifyStatisticShape(StringRef name, Value value,
                                                StringRef id) {
  if (!value)
    return success();
  SmallVector<int64_t> expected;
  for (int64_t axis : op.getStatisticAxes())
    expected.push_back(axis == op.getGroupedAxis() ? op.getNumGroups()
                                                   : xType.getDimSize(axis));
  return verifyShape(name, value, expected, id);
}

LogicalResult RowVerifier::verifyStatistic(StringRef name, Value value) {
  if (!value)
    return success();
  Type elementType = getElementTypeOrSelf(value.getType());
  FloatType expectedType = op.getComputeTypeOrDefault();
  if (elementType != expectedType)
    return error() << "expected '" << name << "' of element type "
                   << expectedType << " (the compute type), got " << elementType
                   << " (V8)";
  return verifyStatisticShape(name, value);
}

LogicalResult RowVerifier::verifyMomentum(double momentum) {
  if (momentum >= 0.0 && momentum <= 1.0)
    return success();
  return error() << "expected 'momentum' from 0 to 1, got " << momentum
                 << " (V11)";
}

LogicalResult RowVerifier::verifyAffineIn(AffineIn affineIn, Value y) {
  if (affineIn != AffineIn::Result)
    return success();
  auto from = cast<FloatType>(xType.getElementType());
  auto to = cast<FloatType>(getElementTypeOrSelf(y.getType()));
  if (to == from || to.getWidth() > from.getWidth())
    return success();
  return error() << "expected 'y' of an element type that holds x's " << from
                 << " with 'affine_in' result, got " << to << " (V12)";
}

LogicalResult RowVerifier::verifyFullShape(StringRef name, Value value,
                                           StringRef id) {
  return value ? verifyShape(name, value, xType.getShape(), id) : success();
}

LogicalResult RowVerifier::verifyScaleOffset(double offset, Value scale) {
  if (!std::isfinite(offset))
    return error() << "expected a finite 'scale_offset', got " << offset
                   << " (V17)";
  if (offset != 0.0 && !scale)
    return error() << "expected 'scale' with 'scale_offset', got none (V17)";
  return success();
}

LogicalResult RowVerifier::verifyDivisor(int64_t correction, bool isCentred) {
  if (correction != 0 && correction != 1)
    return error() << "expected 'correction' 0 or 1, got " << correction
                   << " (V17)";
  if (correction != 0 && !isCentred)
    return error() << "expected 'correction' 0 on an op that subtracts no "
                      "mean, got "
                   << correction << " (V17)";
  std::optional<int64_t> count = op.getStaticReducedCount();
  if (count && *count > 0 && *count - correction <= 0)
    return error() << "expected more than " << correction
                   << " reduced elements with 'correction' " << correction
                   << ", got " << *count << " (V17)";
  return success();
}

//===----------------------------------------------------------------------===//
// The named ops: constraints in the order of the spec
//===----------------------------------------------------------------------===//

namespace {
/// Checks that forward and backward ops share.
struct NamedVerifier : RowVerifier {
  const NormContract &written;
  AffineDefault affineDefault;
  bool isCentred;

  NamedVerifier(RowOpInterface op, const NormContract &written,
                AffineDefault affineDefault, Statistic statistic)
      : RowVerifier{op}, written(written), affineDefault(affineDefault),
        isCentred(statistic == Statistic::Variance) {}

  /// V1 and V5: all that accessors of axes rely on.
  LogicalResult verifyAllAxes() {
    if (failed(verifyAxes(written.axes)))
      return failure();
    return written.channelAxis
               ? verifyGroups(written.axes, *written.channelAxis,
                              written.groups)
               : success();
  }

  /// V17: an instance norm states the axes of its affine operands.
  LogicalResult verifyStatedAxes(bool hasAffine, StringRef needed) {
    if (affineDefault != AffineDefault::Stated || !hasAffine ||
        written.affineAxes)
      return success();
    return error() << "expected 'affine_axes' with " << needed
                   << ", got none (V17)";
  }

  LogicalResult verifyAllAffineAxes(bool hasAffine, StringRef needed) {
    std::optional<ArrayRef<int64_t>> axes;
    if (written.affineAxes)
      axes = *written.affineAxes;
    return success(succeeded(verifyAffineAxes(axes, hasAffine, needed)) &&
                   succeeded(verifyStatedAxes(hasAffine, needed)));
  }

  /// The axes that affine operands index, once they are known to be right.
  SmallVector<int64_t> affineAxes() {
    return written.affineAxes
               ? *written.affineAxes
               : defaultAffineAxes(affineDefault, op.getReducedAxes(), rank,
                                   op.getGroupedAxis());
  }

  LogicalResult verifyTypes() {
    return success((!written.computeType ||
                    succeeded(verifyComputeType(written.computeType))) &&
                   succeeded(verifyEpsilon(written.epsilon)));
  }

  LogicalResult verifyDivisor() {
    return RowVerifier::verifyDivisor(written.correction, isCentred);
  }
};

struct ForwardVerifier : NamedVerifier {
  NormOpInterface norm;

  ForwardVerifier(NormOpInterface op, const NormContract &written,
                  AffineDefault affineDefault)
      : NamedVerifier(op, written, affineDefault, op.getStatistic()), norm(op) {
  }

  LogicalResult verifyAffine() {
    bool hasAffine = written.scale || written.shift;
    return success(
        succeeded(verifyAllAffineAxes(hasAffine, "'scale' or 'shift'")) &&
        succeeded(verifyAffineShape("scale", written.scale, affineAxes())) &&
        succeeded(verifyAffineShape("shift", written.shift, affineAxes())));
  }

  LogicalResult verifyStatistics() {
    return success(
        succeeded(verifyStatistic("mean", norm.getMeanOrNull())) &&
        succeeded(verifyStatistic("variance", norm.getVarianceOrNull())) &&
        succeeded(verifyStatistic("rstd", norm.getRstdOrNull())));
  }

  LogicalResult verifyFullShapes() {
    return success(
        succeeded(verifyFullShape("residual", written.residual, "V15")) &&
        succeeded(verifyFullShape("y", norm.getNormalized(), "V15")) &&
        succeeded(verifyFullShape("sum", norm.getSumOrNull(), "V15")));
  }

  /// V17, second part: attributes and results that need an operand.
  LogicalResult verifyCompanions() {
    if (failed(verifyScaleOffset(written.scaleOffset, written.scale)))
      return failure();
    if (norm.getSumOrNull() && !written.residual)
      return error() << "expected 'residual' with a 'sum' result, got none "
                        "(V17)";
    if (written.sumRounding != SumRounding::Stored && !written.residual)
      return error() << "expected 'residual' with 'sum_rounding', got none "
                        "(V17)";
    return success();
  }

  /// V10: what is given is not corrected. The shapes are those of statistics,
  /// of any float type.
  LogicalResult verifyGivenStatistics() {
    if (!written.variance)
      return success();
    if (failed(verifyStatisticShape("mean", written.mean)) ||
        failed(verifyStatisticShape("variance", written.variance)))
      return failure();
    if (written.correction != 0)
      return error() << "expected 'correction' 0 where the variance is given, "
                        "got "
                     << written.correction << " (V10)";
    return success();
  }

  /// V6, for the op that has running statistics: one value per channel has no
  /// variance.
  LogicalResult verifyBatchCount() {
    if (!isa<BatchNormTrainingOp>(op.getOperation()))
      return success();
    if (op.getStaticReducedCount() == 1)
      return error() << "expected more than 1 value per channel when training, "
                        "got 1 (V6)";
    return success();
  }

  /// V7 and V17: running operands and results come in pairs, with one momentum.
  LogicalResult verifyRunning() {
    RunningUpdate running = norm.getRunningUpdate();
    int operands = (running.mean ? 1 : 0) + (running.variance ? 1 : 0);
    int results = (running.newMean ? 1 : 0) + (running.newVariance ? 1 : 0);
    if (operands == 1 || results == 1 || operands != results)
      return error() << "expected 'running' operands and results in pairs, got "
                     << operands << " operands and " << results
                     << " results (V7)";
    int momenta = (running.momentum ? 1 : 0) + (running.momentumValue ? 1 : 0);
    if (momenta != (operands ? 1 : 0))
      return error() << "expected " << (operands ? "one" : "no")
                     << " 'momentum' " << (operands ? "with" : "without")
                     << " 'running', got " << momenta << " (V17)";
    if (!operands && running.correction != 1)
      return error() << "expected no 'running_correction' without 'running', "
                        "got "
                     << running.correction << " (V17)";
    if (running.correction != 0 && running.correction != 1)
      return error() << "expected 'running_correction' 0 or 1, got "
                     << running.correction << " (V17)";
    if (running.momentum && failed(verifyMomentum(*running.momentum)))
      return failure();
    if (!operands)
      return success();
    return success(
        succeeded(verifyStatisticShape("running_mean", running.mean, "V7")) &&
        succeeded(
            verifyStatisticShape("running_variance", running.variance, "V7")) &&
        succeeded(
            verifyUpdated("running_mean", running.newMean, running.mean)) &&
        succeeded(verifyUpdated("running_variance", running.newVariance,
                                running.variance)));
  }

  /// V7: a running result has the type of its operand.
  LogicalResult verifyUpdated(StringRef name, Value updated, Value old) {
    if (failed(verifyStatisticShape(name, updated, "V7")))
      return failure();
    Type expected = getElementTypeOrSelf(old.getType());
    Type actual = getElementTypeOrSelf(updated.getType());
    if (expected == actual)
      return success();
    return error() << "expected '" << name << "' result of element type "
                   << expected << ", that of its operand, got " << actual
                   << " (V7)";
  }

  LogicalResult verifyAll() {
    return success(
        succeeded(verifyAllAxes()) && succeeded(verifyAffine()) &&
        succeeded(verifyTypes()) && succeeded(verifyStatistics()) &&
        succeeded(verifyAffineIn(written.affineIn, norm.getNormalized())) &&
        succeeded(verifyFullShapes()) && succeeded(verifyCompanions()) &&
        succeeded(verifyDivisor()) && succeeded(verifyGivenStatistics()) &&
        succeeded(verifyBatchCount()) && succeeded(verifyRunning()));
  }
};

struct BackwardVerifier : NamedVerifier {
  NormBackwardOpInterface norm;

  BackwardVerifier(NormBackwardOpInterface op, const NormContract &written,
                   AffineDefault affineDefault)
      : NamedVerifier(op, written, affineDefault, op.getStatistic()), norm(op) {
  }

  LogicalResult verifyAffine() {
    bool hasAffine =
        written.scale || norm.getDscaleOrNull() || norm.getDshiftOrNull();
    return success(
        succeeded(
            verifyAllAffineAxes(hasAffine, "'scale', 'dscale' or 'dshift'")) &&
        succeeded(verifyAffineShape("scale", written.scale, affineAxes())) &&
        succeeded(verifyAffineShape("dscale", norm.getDscaleOrNull(),
                                    affineAxes())) &&
        succeeded(
            verifyAffineShape("dshift", norm.getDshiftOrNull(), affineAxes())));
  }

  LogicalResult verifyStatistics() {
    if (norm.getMeanOrNull() && !isCentred)
      return error() << "expected no 'mean' on an op that subtracts none (V17)";
    if (!norm.hasConstantStatistics())
      return success(
          succeeded(verifyStatistic("mean", norm.getMeanOrNull())) &&
          succeeded(verifyStatistic("variance", norm.getVarianceOrNull())) &&
          succeeded(verifyStatistic("rstd", norm.getRstdOrNull())));
    return success(
        succeeded(verifyStatisticShape("mean", norm.getMeanOrNull())) &&
        succeeded(verifyStatisticShape("variance", norm.getVarianceOrNull())) &&
        succeeded(verifyStatistic("rstd", norm.getRstdOrNull())) &&
        succeeded(verifyConstantStatistics()));
  }

  /// V10: constants cannot be computed again.
  LogicalResult verifyConstantStatistics() {
    if (!norm.getRstdOrNull() && !norm.getVarianceOrNull())
      return error() << "expected 'variance' or 'rstd', got neither (V10)";
    if (norm.getDscaleOrNull() && !norm.getMeanOrNull())
      return error() << "expected 'mean' with a 'dscale' result, got none "
                        "(V10)";
    if (written.correction != 0)
      return error() << "expected 'correction' 0 where the variance is given, "
                        "got "
                     << written.correction << " (V10)";
    return success();
  }

  LogicalResult verifyFullShapes() {
    return success(
        succeeded(verifyFullShape("dy", norm.getDy(), "V15")) &&
        succeeded(verifyFullShape("residual", written.residual, "V15")) &&
        succeeded(verifyFullShape("dsum", norm.getDsumOrNull(), "V15")) &&
        succeeded(verifyFullShape("dx", norm.getDx(), "V15")));
  }

  LogicalResult verifyCompanions() {
    if (failed(verifyScaleOffset(written.scaleOffset, written.scale)))
      return failure();
    if (bool(written.residual) != (written.sumRounding != SumRounding::Stored))
      return error() << "expected 'residual' and 'sum_rounding' compute "
                        "together, got one of them: the stored sum is 'x' "
                        "(V17)";
    return success();
  }

  LogicalResult verifyAll() {
    return success(succeeded(verifyAllAxes()) && succeeded(verifyAffine()) &&
                   succeeded(verifyTypes()) && succeeded(verifyStatistics()) &&
                   succeeded(verifyFullShapes()) &&
                   succeeded(verifyCompanions()) && succeeded(verifyDivisor()));
  }
};
} // namespace

LogicalResult norm::verifyForwardNorm(NormOpInterface op,
                                      const NormContract &written,
                                      AffineDefault affineDefault) {
  return ForwardVerifier(op, written, affineDefault).verifyAll();
}

LogicalResult norm::verifyBackwardNorm(NormBackwardOpInterface op,
                                       const NormContract &written,
                                       AffineDefault affineDefault) {
  return BackwardVerifier(op, written, affineDefault).verifyAll();
}
