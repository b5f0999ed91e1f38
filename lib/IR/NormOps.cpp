//===- NormOps.cpp - Building and verifying the named ops -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/IR/NormOps.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallString.h"

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// Contract and builders
//===----------------------------------------------------------------------===//

FloatType norm::widestElementType(FloatType atLeast, ArrayRef<Value> values) {
  for (Value value : values) {
    if (!value)
      continue;
    auto type = cast<FloatType>(getElementTypeOrSelf(value.getType()));
    if (type.getWidth() > atLeast.getWidth())
      atLeast = type;
  }
  return atLeast;
}

FloatType norm::defaultComputeType(Value x, Value residual) {
  return widestElementType(Float32Type::get(x.getContext()), {x, residual});
}

NormContract NormContract::get(NormOpInterface op) {
  NormContract contract;
  contract.x = op.getInput();
  contract.residual = op.getResidualOrNull();
  contract.scale = op.getScaleOrNull();
  contract.shift = op.getShiftOrNull();
  contract.axes = op.getReducedAxes();
  contract.epsilon = op.getEpsilon();
  if (contract.scale || contract.shift)
    contract.affineAxes = op.getAffineAxesOrDefault();
  contract.computeType = op.getComputeTypeOrDefault();
  contract.correction = op.getCorrection();
  contract.scaleOffset = op.getScaleOffsetValue();
  contract.affineIn = op.getAffineIn();
  contract.sumRounding = op.getSumRounding();
  contract.zeroPolicy = op.getZeroPolicy();
  contract.resultType =
      cast<FloatType>(op.getNormalized().getType().getElementType());
  contract.wantsMean = op.getMeanOrNull() != nullptr;
  contract.wantsVariance = op.getVarianceOrNull() != nullptr;
  contract.wantsRstd = op.getRstdOrNull() != nullptr;
  if (op.getSumOrNull())
    contract.sumType = op.getSumElementType();
  return contract;
}

/// The type of a statistic: x's shape without the reduced axes.
static RankedTensorType statisticType(RankedTensorType xType,
                                      ArrayRef<int64_t> axes,
                                      FloatType elementType) {
  SmallVector<int64_t> shape;
  for (int64_t axis :
       complementAxes(canonicalAxes(axes, xType.getRank()), xType.getRank()))
    shape.push_back(xType.getDimSize(axis));
  return RankedTensorType::get(shape, elementType);
}

static void addContractAttributes(OpBuilder &builder, OperationState &state,
                                  const NormContract &contract,
                                  bool isDefaultComputeType) {
  auto add = [&](StringRef name, Attribute attr) {
    state.addAttribute(name, attr);
  };
  auto i32 = [&](auto value) {
    return builder.getI32IntegerAttr(static_cast<int32_t>(value));
  };
  add("axes", builder.getDenseI64ArrayAttr(contract.axes));
  add("epsilon", contract.epsilon);
  SmallVector<int64_t> reduced = canonicalAxes(
      contract.axes, cast<RankedTensorType>(contract.x.getType()).getRank());
  if (contract.affineAxes && *contract.affineAxes != reduced)
    add("affine_axes", builder.getDenseI64ArrayAttr(*contract.affineAxes));
  if (!isDefaultComputeType)
    add("compute_type", TypeAttr::get(contract.computeType));
  if (contract.correction != 0)
    add("correction", builder.getI64IntegerAttr(contract.correction));
  if (contract.scaleOffset != 0.0)
    add("scale_offset", builder.getF64FloatAttr(contract.scaleOffset));
  if (contract.affineIn != AffineIn::Compute)
    add("affine_in", i32(contract.affineIn));
  if (contract.sumRounding != SumRounding::Stored)
    add("sum_rounding", i32(contract.sumRounding));
  if (contract.zeroPolicy != ZeroPolicy::IEEE)
    add("zero_policy", i32(contract.zeroPolicy));
}

void norm::buildFromContract(OpBuilder &builder, OperationState &state,
                             const NormContract &contract, bool hasMean) {
  auto xType = cast<RankedTensorType>(contract.x.getType());
  FloatType defaultType = defaultComputeType(contract.x, contract.residual);
  FloatType computeType =
      contract.computeType ? contract.computeType : defaultType;

  SmallVector<int32_t> operandSegments;
  for (Value operand :
       {contract.x, contract.residual, contract.scale, contract.shift}) {
    operandSegments.push_back(operand ? 1 : 0);
    if (operand)
      state.addOperands(operand);
  }
  state.addAttribute("operandSegmentSizes",
                     builder.getDenseI32ArrayAttr(operandSegments));

  SmallVector<int32_t> resultSegments;
  auto addResult = [&](bool wanted, Type type) {
    resultSegments.push_back(wanted ? 1 : 0);
    if (wanted)
      state.addTypes(type);
  };
  Type statistic = statisticType(xType, contract.axes, computeType);
  addResult(true,
            contract.resultType ? xType.clone(contract.resultType) : xType);
  if (hasMean)
    addResult(contract.wantsMean, statistic);
  addResult(contract.wantsVariance, statistic);
  addResult(contract.wantsRstd, statistic);
  addResult(contract.sumType != nullptr,
            contract.sumType ? xType.clone(contract.sumType) : xType);
  state.addAttribute("resultSegmentSizes",
                     builder.getDenseI32ArrayAttr(resultSegments));

  addContractAttributes(builder, state, contract, computeType == defaultType);
}

//===----------------------------------------------------------------------===//
// Indexing of operands and results
//===----------------------------------------------------------------------===//

static SmallVector<int64_t> allAxes(NormOpInterface op) {
  return llvm::to_vector(llvm::seq<int64_t>(0, op.getRank()));
}

SmallVector<int64_t> norm::forwardOperandAxes(NormOpInterface op,
                                              unsigned operand) {
  // Operands come in the order x, residual, scale, shift.
  unsigned full = op.getResidualOrNull() ? 2 : 1;
  return operand < full ? allAxes(op) : op.getAffineAxesOrDefault();
}

SmallVector<int64_t> norm::forwardResultAxes(NormOpInterface op,
                                             unsigned result) {
  Value value = op->getResult(result);
  if (value == op.getNormalized() || value == op.getSumOrNull())
    return allAxes(op);
  return op.getKeptAxes();
}

//===----------------------------------------------------------------------===//
// Verifier: one check per numbered constraint, in the order of the spec
//===----------------------------------------------------------------------===//

static bool isNormFloat(Type type) {
  return isa<Float64Type, Float32Type, Float16Type, BFloat16Type>(type);
}

/// V3 for one operand or result.
static LogicalResult verifyValue(Operation *op, StringRef name, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  if (!isNormFloat(tensor.getElementType()))
    return op->emitOpError("expected '")
           << name << "' of element type f64, f32, f16 or bf16, got "
           << tensor.getElementType() << " (V3)";
  // Nothing says what an encoding means for a slice or a statistic.
  if (tensor.getEncoding())
    return op->emitOpError("expected '") << name << "' without encoding, got "
                                         << tensor.getEncoding() << " (V3)";
  return success();
}

/// One group per name, in order; the first is mandatory.
static LogicalResult verifyGroups(Operation *op, ArrayRef<StringRef> names,
                                  ArrayRef<int32_t> segments, TypeRange types) {
  // ODS checks the sum of the segments and that the optional ones are 0 or 1.
  if (segments.front() != 1)
    return op->emitOpError("expected one '")
           << names.front() << "', got " << segments.front();
  for (auto [name, segment] : llvm::zip_equal(names, segments)) {
    for (Type type : types.take_front(segment))
      if (failed(verifyValue(op, name, type)))
        return failure();
    types = types.drop_front(segment);
  }
  return success();
}

LogicalResult norm::verifyForwardValues(Operation *op,
                                        ArrayRef<int32_t> operandSegments,
                                        ArrayRef<int32_t> resultSegments,
                                        std::optional<Type> computeType) {
  SmallVector<StringRef> results{"y", "variance", "rstd", "sum"};
  if (resultSegments.size() > results.size())
    results.insert(results.begin() + 1, "mean");
  if (failed(verifyGroups(op, {"x", "residual", "scale", "shift"},
                          operandSegments, op->getOperandTypes())) ||
      failed(verifyGroups(op, results, resultSegments, op->getResultTypes())))
    return failure();
  if (computeType && !isNormFloat(*computeType))
    return op->emitOpError(
               "expected 'compute' type f64, f32, f16 or bf16, got ")
           << *computeType << " (V3)";
  return success();
}

namespace {
/// Checks one op; each method is one constraint and emits its own error.
struct Verifier {
  NormOpInterface op;
  ArrayRef<int64_t> axes;
  std::optional<ArrayRef<int64_t>> affineAxes;
  std::optional<Type> computeType;
  RankedTensorType xType = op.getInput().getType();
  int64_t rank = xType.getRank();

  InFlightDiagnostic error() { return op->emitOpError(); }

  /// V1: axes are non-empty, in range and unique after negatives are resolved.
  LogicalResult verifyAxes() {
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

  /// V17, first part: affine_axes need an affine operand and are strictly
  /// increasing; V13: they may differ from axes.
  LogicalResult verifyAffineAxes() {
    if (!affineAxes)
      return success();
    if (!op.getScaleOrNull() && !op.getShiftOrNull())
      return error() << "expected 'scale' or 'shift' with 'affine_axes', got "
                        "neither (V17)";
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

  /// V2: scale and shift have the extents of x at the affine axes, each
  /// checked on its own.
  LogicalResult verifyAffineShape(StringRef name, Value value) {
    if (!value)
      return success();
    SmallVector<int64_t> expected;
    for (int64_t axis : op.getAffineAxesOrDefault())
      expected.push_back(xType.getDimSize(axis));
    return verifyShape(name, value, expected, "V2");
  }

  /// Shapes agree where both are static.
  LogicalResult verifyShape(StringRef name, Value value,
                            ArrayRef<int64_t> expected, StringRef id) {
    auto type = cast<RankedTensorType>(value.getType());
    if (succeeded(verifyCompatibleShape(type.getShape(), expected)))
      return success();
    return error() << "expected '" << name << "' of shape "
                   << shapeText(expected) << ", got "
                   << shapeText(type.getShape()) << " (" << id << ")";
  }

  static std::string shapeText(ArrayRef<int64_t> shape) {
    std::string text = "[";
    llvm::raw_string_ostream os(text);
    llvm::interleaveComma(shape, os, [&](int64_t extent) {
      ShapedType::isDynamic(extent) ? os << "?" : os << extent;
    });
    os << "]";
    return text;
  }

  /// V3: bf16 and f16 do not contain each other.
  LogicalResult verifyComputeType() {
    if (!computeType)
      return success();
    auto type = cast<FloatType>(*computeType);
    auto xElement = cast<FloatType>(xType.getElementType());
    if (type.getWidth() == xElement.getWidth() && type != xElement)
      return error() << "expected a 'compute' type that holds x's " << xElement
                     << " or has fewer bits, got " << type << " (V3)";
    return success();
  }

  /// V4: epsilon is finite and not negative, and positive for the maxima.
  LogicalResult verifyEpsilon() {
    const APFloat &value = op.getEpsilon().getValue();
    if (!value.isFinite() || (value.isNegative() && !value.isZero()))
      return error() << "expected a finite 'epsilon' >= 0, got "
                     << floatText(value) << " (V4)";
    EpsilonPlacement placement = op.getEpsilon().getPlacement();
    bool isMaximum = placement == EpsilonPlacement::MaxInside ||
                     placement == EpsilonPlacement::MaxOutside;
    if (isMaximum && value.isZero())
      return error() << "expected 'epsilon' > 0 for "
                     << stringifyEpsilonPlacement(placement) << ", got "
                     << floatText(value) << " (V4)";
    return success();
  }

  static std::string floatText(const APFloat &value) {
    SmallString<16> text;
    value.toString(text);
    return std::string(text);
  }

  /// V8: statistics have x's shape without axes and the compute type.
  LogicalResult verifyStatistic(StringRef name, Value value) {
    if (!value)
      return success();
    auto type = cast<RankedTensorType>(value.getType());
    FloatType expectedType = op.getComputeTypeOrDefault();
    if (type.getElementType() != expectedType)
      return error() << "expected '" << name << "' of element type "
                     << expectedType << " (the compute type), got "
                     << type.getElementType() << " (V8)";
    SmallVector<int64_t> expected;
    for (int64_t axis : op.getKeptAxes())
      expected.push_back(xType.getDimSize(axis));
    return verifyShape(name, value, expected, "V8");
  }

  /// V12: rounding x-hat to x's type needs a result type that holds it.
  LogicalResult verifyAffineIn() {
    if (op.getAffineIn() != AffineIn::Result)
      return success();
    auto from = cast<FloatType>(xType.getElementType());
    auto to = cast<FloatType>(op.getNormalized().getType().getElementType());
    if (to == from || to.getWidth() > from.getWidth())
      return success();
    return error() << "expected 'y' of an element type that holds x's " << from
                   << " with 'affine_in' result, got " << to << " (V12)";
  }

  /// V15: residual, y and sum have x's shape.
  LogicalResult verifyFullShape(StringRef name, Value value, StringRef id) {
    return value ? verifyShape(name, value, xType.getShape(), id) : success();
  }

  /// V17, second part: attributes and results that need an operand.
  LogicalResult verifyCompanions() {
    double offset = op.getScaleOffsetValue();
    if (!std::isfinite(offset))
      return error() << "expected a finite 'scale_offset', got " << offset
                     << " (V17)";
    if (offset != 0.0 && !op.getScaleOrNull())
      return error() << "expected 'scale' with 'scale_offset', got none (V17)";
    if (op.getSumOrNull() && !op.getResidualOrNull())
      return error() << "expected 'residual' with a 'sum' result, got none "
                        "(V17)";
    if (op.getSumRounding() != SumRounding::Stored && !op.getResidualOrNull())
      return error() << "expected 'residual' with 'sum_rounding', got none "
                        "(V17)";
    return success();
  }

  /// V17, third part: the divisor of the variance is positive.
  LogicalResult verifyDivisor() {
    int64_t correction = op.getCorrection();
    if (correction != 0 && correction != 1)
      return error() << "expected 'correction' 0 or 1, got " << correction
                     << " (V17)";
    if (correction != 0 && !op.isCentred())
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

  LogicalResult verifyAll() {
    return success(
        succeeded(verifyAxes()) && succeeded(verifyAffineAxes()) &&
        succeeded(verifyAffineShape("scale", op.getScaleOrNull())) &&
        succeeded(verifyAffineShape("shift", op.getShiftOrNull())) &&
        succeeded(verifyComputeType()) && succeeded(verifyEpsilon()) &&
        succeeded(verifyStatistic("mean", op.getMeanOrNull())) &&
        succeeded(verifyStatistic("variance", op.getVarianceOrNull())) &&
        succeeded(verifyStatistic("rstd", op.getRstdOrNull())) &&
        succeeded(verifyAffineIn()) &&
        succeeded(verifyFullShape("residual", op.getResidualOrNull(), "V15")) &&
        succeeded(verifyFullShape("y", op.getNormalized(), "V15")) &&
        succeeded(verifyFullShape("sum", op.getSumOrNull(), "V15")) &&
        succeeded(verifyCompanions()) && succeeded(verifyDivisor()));
  }
};
} // namespace

LogicalResult
norm::verifyForwardNorm(NormOpInterface op, ArrayRef<int64_t> axes,
                        std::optional<ArrayRef<int64_t>> affineAxes,
                        std::optional<Type> computeType) {
  return Verifier{op, axes, affineAxes, computeType}.verifyAll();
}
