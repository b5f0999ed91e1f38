//===- NormOps.cpp - Indexing and building the named ops -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/IR/NormOps.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// What indexes what
//===----------------------------------------------------------------------===//

SmallVector<int64_t> norm::axesOfRole(RowOpInterface op,
                                      ArrayRef<int64_t> affineAxes,
                                      TensorRole role) {
  switch (role) {
  case TensorRole::Full:
    return llvm::to_vector(llvm::seq<int64_t>(0, op.getRank()));
  case TensorRole::Statistic:
    return op.getStatisticAxes();
  case TensorRole::Affine:
    return llvm::to_vector(affineAxes);
  case TensorRole::Scalar:
    return {};
  }
  llvm_unreachable("unknown role");
}

SmallVector<int64_t>
norm::defaultAffineAxes(AffineDefault affineDefault,
                        ArrayRef<int64_t> reducedAxes, int64_t rank,
                        std::optional<int64_t> groupedAxis) {
  switch (affineDefault) {
  case AffineDefault::Reduced:
    return llvm::to_vector(reducedAxes);
  case AffineDefault::Kept:
    return complementAxes(reducedAxes, rank);
  case AffineDefault::Channel:
    return {*groupedAxis};
  case AffineDefault::Stated:
    return {};
  }
  llvm_unreachable("unknown default");
}

//===----------------------------------------------------------------------===//
// Contracts
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

FloatType norm::sumAdditionType(Value x, Value residual,
                                ArrayRef<FloatType> others) {
  FloatType widest = defaultComputeType(x, residual);
  for (FloatType type : others)
    if (type.getWidth() > widest.getWidth())
      widest = type;
  return widest;
}

FloatType norm::defaultComputeType(Value x, Value residual) {
  return widestElementType(Float32Type::get(x.getContext()), {x, residual});
}

NormContract norm::resolveContract(RowOpInterface op, NormContract written,
                                   ArrayRef<int64_t> affineAxes) {
  written.affineAxes = llvm::to_vector(affineAxes);
  written.axes = op.getReducedAxes();
  written.channelAxis = op.getGroupedAxis();
  written.computeType = op.getComputeTypeOrDefault();
  return written;
}

NormContract NormContract::get(NormOpInterface op) {
  NormContract contract;
  contract.x = op.getInput();
  contract.residual = op.getResidualOrNull();
  contract.scale = op.getScaleOrNull();
  contract.shift = op.getShiftOrNull();
  contract.mean = op.getGivenMeanOrNull();
  contract.variance = op.getGivenVarianceOrNull();
  RunningUpdate running = op.getRunningUpdate();
  contract.runningMean = running.mean;
  contract.runningVariance = running.variance;
  contract.momentum = running.momentum;
  contract.momentumValue = running.momentumValue;
  contract.runningCorrection = running.correction;
  contract.groups = op.getNumGroups();
  contract.channelAxis = op.getGroupedAxis();
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

BackwardContract BackwardContract::get(NormBackwardOpInterface op) {
  auto elementType = [](Value value) {
    return value ? cast<FloatType>(getElementTypeOrSelf(value.getType()))
                 : FloatType();
  };
  BackwardContract contract;
  contract.forward = op.getForwardContract();
  contract.dy = op.getDy();
  contract.dsum = op.getDsumOrNull();
  contract.mean = op.getMeanOrNull();
  contract.variance = op.getVarianceOrNull();
  contract.rstd = op.getRstdOrNull();
  contract.dxType = elementType(op.getDx());
  contract.dscaleType = elementType(op.getDscaleOrNull());
  contract.dshiftType = elementType(op.getDshiftOrNull());
  return contract;
}

//===----------------------------------------------------------------------===//
// Builders
//===----------------------------------------------------------------------===//

namespace {
/// Fills an OperationState from a contract, group by group.
class StateFiller {
public:
  StateFiller(OpBuilder &builder, OperationState &state,
              const NormContract &contract, const OpShape &shape)
      : builder(builder), state(state), contract(contract), shape(shape),
        xType(cast<RankedTensorType>(contract.x.getType())),
        reduced(canonicalAxes(contract.axes, xType.getRank())) {
    if (contract.channelAxis)
      channel = *contract.channelAxis < 0
                    ? *contract.channelAxis + xType.getRank()
                    : *contract.channelAxis;
    computeType = contract.computeType
                      ? contract.computeType
                      : defaultComputeType(contract.x, contract.residual);
  }

  void addOperands(function_ref<Value(StringRef)> valueOf) {
    SmallVector<int32_t> segments;
    for (const TensorGroup &group : shape.operands) {
      Value value = valueOf(group.getName());
      segments.push_back(value ? 1 : 0);
      if (value)
        state.addOperands(value);
    }
    state.addAttribute("operandSegmentSizes",
                       builder.getDenseI32ArrayAttr(segments));
  }

  /// `typeOf` gives the element type of a result, null for none.
  void addResults(function_ref<FloatType(StringRef)> typeOf) {
    SmallVector<int32_t> segments;
    for (const TensorGroup &group : shape.results) {
      FloatType elementType = typeOf(group.getName());
      segments.push_back(elementType ? 1 : 0);
      if (elementType)
        state.addTypes(RankedTensorType::get(shapeOf(group.role), elementType));
    }
    if (shape.hasResultSegments)
      state.addAttribute("resultSegmentSizes",
                         builder.getDenseI32ArrayAttr(segments));
  }

  /// `hasAffine`: whether an operand or result has the affine axes.
  void addAttributes(bool hasAffine);

  FloatType getComputeType() { return computeType; }
  FloatType elementTypeOf(Value value) {
    return cast<FloatType>(getElementTypeOrSelf(value.getType()));
  }

private:
  SmallVector<int64_t> affineAxes() {
    return contract.affineAxes ? *contract.affineAxes : defaultAxes();
  }
  SmallVector<int64_t> defaultAxes() {
    return defaultAffineAxes(shape.affineDefault, reduced, xType.getRank(),
                             channel);
  }

  SmallVector<int64_t> shapeOf(TensorRole role) {
    SmallVector<int64_t> extents;
    switch (role) {
    case TensorRole::Full:
      return llvm::to_vector(xType.getShape());
    case TensorRole::Affine:
      for (int64_t axis : affineAxes())
        extents.push_back(xType.getDimSize(axis));
      return extents;
    case TensorRole::Statistic:
      for (int64_t axis = 0; axis < xType.getRank(); ++axis)
        if (axis == channel)
          extents.push_back(contract.groups);
        else if (!llvm::is_contained(reduced, axis))
          extents.push_back(xType.getDimSize(axis));
      return extents;
    case TensorRole::Scalar:
      return extents;
    }
    llvm_unreachable("unknown role");
  }

  OpBuilder &builder;
  OperationState &state;
  const NormContract &contract;
  const OpShape &shape;
  RankedTensorType xType;
  SmallVector<int64_t> reduced;
  std::optional<int64_t> channel;
  FloatType computeType;
};
} // namespace

void StateFiller::addAttributes(bool hasAffine) {
  auto add = [&](StringRef name, Attribute attr) {
    state.addAttribute(name, attr);
  };
  auto has = [&](StringRef name) {
    return llvm::is_contained(shape.attributes, name);
  };
  auto i32 = [&](auto value) {
    return builder.getI32IntegerAttr(static_cast<int32_t>(value));
  };
  if (has("groups")) {
    add("groups", builder.getI64IntegerAttr(contract.groups));
    add("channel_axis", builder.getI64IntegerAttr(*channel));
  }
  add("axes", builder.getDenseI64ArrayAttr(contract.axes));
  add("epsilon", contract.epsilon);
  // Where there is no default, no axes are stated too (a scalar gain).
  bool isStated = hasAffine && shape.affineDefault == AffineDefault::Stated;
  if (contract.affineAxes &&
      (isStated || *contract.affineAxes != defaultAxes()))
    add("affine_axes", builder.getDenseI64ArrayAttr(*contract.affineAxes));
  if (computeType != defaultComputeType(contract.x, contract.residual))
    add("compute_type", TypeAttr::get(computeType));
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
  if (!has("momentum"))
    return;
  if (contract.momentum)
    add("momentum", builder.getF64FloatAttr(*contract.momentum));
  if (contract.runningCorrection != 1)
    add("running_correction",
        builder.getI64IntegerAttr(contract.runningCorrection));
}

/// The entry called `name`; null if there is none.
template <typename T>
static T pick(StringRef name, ArrayRef<std::pair<StringRef, T>> entries) {
  for (const auto &[entry, value] : entries)
    if (entry == name)
      return value;
  return {};
}

void norm::buildFromContract(OpBuilder &builder, OperationState &state,
                             const NormContract &contract,
                             const OpShape &shape) {
  StateFiller filler(builder, state, contract, shape);
  filler.addOperands([&](StringRef name) {
    return pick<Value>(name, {{"x", contract.x},
                              {"residual", contract.residual},
                              {"mean", contract.mean},
                              {"variance", contract.variance},
                              {"scale", contract.scale},
                              {"shift", contract.shift},
                              {"running_mean", contract.runningMean},
                              {"running_variance", contract.runningVariance},
                              {"momentum", contract.momentumValue}});
  });
  FloatType xType = filler.elementTypeOf(contract.x);
  auto statistic = [&](bool wanted) {
    return wanted ? filler.getComputeType() : FloatType();
  };
  auto running = [&](Value value) {
    return value ? filler.elementTypeOf(value) : FloatType();
  };
  filler.addResults([&](StringRef name) {
    return pick<FloatType>(
        name, {{"y", contract.resultType ? contract.resultType : xType},
               {"mean", statistic(contract.wantsMean)},
               {"variance", statistic(contract.wantsVariance)},
               {"rstd", statistic(contract.wantsRstd)},
               {"sum", contract.sumType},
               {"running_mean", running(contract.runningMean)},
               {"running_variance", running(contract.runningVariance)}});
  });
  filler.addAttributes(contract.scale || contract.shift);
}

void norm::buildFromContract(OpBuilder &builder, OperationState &state,
                             const BackwardContract &contract,
                             const OpShape &shape) {
  const NormContract &forward = contract.forward;
  StateFiller filler(builder, state, forward, shape);
  filler.addOperands([&](StringRef name) {
    return pick<Value>(name, {{"dy", contract.dy},
                              {"x", forward.x},
                              {"residual", forward.residual},
                              {"dsum", contract.dsum},
                              {"mean", contract.mean},
                              {"variance", contract.variance},
                              {"rstd", contract.rstd},
                              {"scale", forward.scale}});
  });
  filler.addResults([&](StringRef name) {
    return pick<FloatType>(
        name, {{"dx", contract.dxType ? contract.dxType
                                      : filler.elementTypeOf(forward.x)},
               {"dscale", contract.dscaleType},
               {"dshift", contract.dshiftType}});
  });
  filler.addAttributes(forward.scale || contract.dscaleType ||
                       contract.dshiftType);
}
