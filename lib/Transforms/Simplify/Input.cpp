//===- Input.cpp - What a norm removes from its input -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// C7 to C10: a constant that is added to the input of a norm, and a factor of
// it. The input is read element by element (ElementView.h), as a chain of such
// steps that ends in a tensor, so that no spelling of them matters.
//
//===----------------------------------------------------------------------===//

#include "Parts.h"
#include "Simplify.h"

#include "Norm/Analysis/Constants.h"
#include "Norm/Analysis/ElementView.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::elements;
using namespace mlir::norm::simplify;

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

namespace {
/// One operand of a step: a number, a constant tensor, or any other value that
/// is read as it stands.
struct Part {
  std::optional<double> number;
  std::optional<ConstantTensor> constant;
  Value value;
  /// Of a tensor: the axis of x that indexes each dimension, or kUnit.
  SmallVector<int32_t, 6> index;

  static Part ofNumber(double number) {
    Part part;
    part.number = number;
    return part;
  }
  bool isConstant() const { return number || constant; }
  /// Whether all elements of a constant satisfy `holds`.
  bool all(function_ref<bool(double)> holds) const {
    if (number)
      return holds(*number);
    if (!constant)
      return false;
    int64_t count =
        constant->isSplat() ? 1 : constant->getType().getNumElements();
    return llvm::all_of(llvm::seq<int64_t>(0, count),
                        [&](int64_t i) { return holds((*constant)[i]); });
  }
};

/// One of: y + part, y - part, y * part, y / part.
struct Step {
  bool scales, inverse;
  Part part;
};

/// The input of a norm as steps on a tensor, the outermost first.
struct LinearInput {
  Value x;
  SmallVector<Step, 2> steps;

  bool scales() const {
    return llvm::any_of(steps, [](const Step &step) { return step.scales; });
  }
  bool shifts() const {
    return llvm::any_of(steps, [](const Step &step) { return !step.scales; });
  }
  /// Whether nothing but signs change.
  bool onlyNegates() const {
    return llvm::all_of(steps, [](const Step &step) {
      return step.scales && step.part.number == -1.0;
    });
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

namespace {
class InputMatcher {
public:
  explicit InputMatcher(NormOpInterface op)
      : op(op), type(op.getInput().getType()), frame(type), views(frame) {}

  std::optional<LinearInput> match();

  /// The part by statistic: the same for all elements that one statistic
  /// covers, with one element for each group. nullopt where it varies.
  std::optional<Part> perStatistic(const Part &part);

private:
  std::optional<Part> partOf(const View &view);
  Value wholeTensor(const View &view);
  std::optional<Step> stepOf(const Expr &expr, View &rest);
  bool variesInside(int32_t dim);
  /// Whether a part lacks some axis of x.
  bool isBroadcast(const Part &part) {
    return !llvm::all_of(frame.properDims(), [&](int32_t dim) {
      return llvm::is_contained(part.index, dim);
    });
  }
  std::optional<Part> sample(const Part &part);

  NormOpInterface op;
  RankedTensorType type;
  Frame frame;
  ViewAnalysis views;
};
} // namespace

/// The tensor of x's shape that is read at x's own indices, that of x's type
/// if there is one behind exact widening; null if there is none.
Value InputMatcher::wholeTensor(const View &view) {
  Value found;
  views.stripExt(view, [&](const View &seen) {
    if (!seen.isTensor() || !frame.isIdentity(seen))
      return;
    auto seenType = cast<RankedTensorType>(seen.value.getType());
    if (seenType.getShape() == type.getShape() &&
        (!found || seenType.getElementType() == type.getElementType()))
      found = seen.value;
  });
  return found;
}

std::optional<Part> InputMatcher::partOf(const View &unresolved) {
  View view = views.stripExt(unresolved);
  Expr expr = views.expand(view);
  if (expr.is(Kind::Constant)) {
    std::optional<llvm::APFloat> value = expr.floatConstant();
    if (!value)
      return std::nullopt;
    bool losesInfo = false;
    value->convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                   &losesInfo);
    return Part::ofNumber(value->convertToDouble());
  }
  if (!isa<FloatType>(getElementTypeOrSelf(view.value.getType())))
    return std::nullopt;
  Part part;
  part.value = view.value;
  part.index = view.index;
  if (view.isTensor()) {
    part.constant = matchConstant(view.value);
    return part;
  }
  // A scalar that the body of an op computes is there for that op alone.
  if (!view.index.empty() ||
      view.value.getParentRegion() != op->getParentRegion())
    return std::nullopt;
  return part;
}

/// Whether elements of one statistic differ in their index along `dim`.
bool InputMatcher::variesInside(int32_t dim) {
  if (dim == kUnit || !llvm::is_contained(op.getReducedAxes(), dim))
    return false;
  return dim != op.getGroupedAxis() || type.isDynamicDim(dim) ||
         type.getDimSize(dim) != op.getNumGroups();
}

std::optional<Part> InputMatcher::perStatistic(const Part &part) {
  if (part.number)
    return part;
  if (part.constant)
    return sample(part);
  if (llvm::any_of(part.index, [&](int32_t dim) { return variesInside(dim); }))
    return std::nullopt;
  return part;
}

/// perStatistic of a constant tensor, by its values.
std::optional<Part> InputMatcher::sample(const Part &part) {
  const ConstantTensor &constant = *part.constant;
  if (constant.isSplat())
    return Part::ofNumber(constant.getSplat());
  // The extents of the result: 1 where elements must agree, and along the
  // grouped axis one for each group.
  ArrayRef<int64_t> shape = constant.getShape();
  SmallVector<int64_t> step(shape.size(), 1), sampled(shape);
  for (auto [i, dim] : llvm::enumerate(part.index)) {
    if (!variesInside(dim))
      continue;
    int64_t kept = dim == op.getGroupedAxis() ? op.getNumGroups() : 1;
    step[i] = shape[i] / kept;
    sampled[i] = kept;
  }
  auto sampledType =
      RankedTensorType::get(sampled, constant.getType().getElementType());
  SmallVector<std::optional<double>> values(sampledType.getNumElements());
  for (int64_t i : llvm::seq<int64_t>(0, constant.getType().getNumElements())) {
    int64_t rest = i, target = 0, stride = 1;
    for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
      target += rest % shape[dim] / step[dim] * stride;
      stride *= sampled[dim];
      rest /= shape[dim];
    }
    if (values[target] && *values[target] != constant[i])
      return std::nullopt;
    values[target] = constant[i];
  }
  Part result;
  result.constant = ConstantTensor(
      sampledType,
      llvm::map_to_vector(values, [](auto value) { return *value; }));
  if (result.constant->isSplat())
    return Part::ofNumber(result.constant->getSplat());
  for (auto [dim, extent] : llvm::zip_equal(part.index, sampled))
    result.index.push_back(extent == 1 ? kUnit : dim);
  return result;
}

/// The step that `expr` is, and what it is applied to.
std::optional<Step> InputMatcher::stepOf(const Expr &expr, View &rest) {
  if (expr.is(Kind::Neg)) {
    rest = expr.operands[0];
    return Step{true, false, Part::ofNumber(-1.0)};
  }
  bool scales = expr.is(Kind::Mul) || expr.is(Kind::Div);
  if (!scales && !expr.is(Kind::Add) && !expr.is(Kind::Sub))
    return std::nullopt;
  bool inverse = expr.is(Kind::Div) || expr.is(Kind::Sub);
  std::optional<Part> parts[] = {partOf(expr.operands[0]),
                                 partOf(expr.operands[1])};
  auto take = [&](unsigned i) -> std::optional<Step> {
    rest = expr.operands[1 - i];
    if (i == 0 && expr.is(Kind::Div))
      return std::nullopt;
    return Step{scales, inverse, *parts[i]};
  };
  // A constant before what merely does not vary, before a broadcast value: the
  // nearest miss.
  for (unsigned i : {1, 0})
    if (parts[i] && parts[i]->isConstant())
      return take(i);
  for (unsigned i : {1, 0})
    if (parts[i] && perStatistic(*parts[i]))
      return take(i);
  for (unsigned i : {1, 0})
    if (parts[i] && !scales && isBroadcast(*parts[i]) &&
        wholeTensor(expr.operands[1 - i]))
      return take(i);
  return std::nullopt;
}

std::optional<LinearInput> InputMatcher::match() {
  LinearInput input;
  View view = frame.identity(op.getInput());
  // Casts and steps: no real chain is as long.
  for (int fuel = 16; fuel > 0; --fuel) {
    Expr expr = views.expand(view);
    if (expr.is(Kind::Ext) || expr.is(Kind::Trunc)) {
      view = expr.operands[0];
      continue;
    }
    View rest;
    std::optional<Step> step = stepOf(expr, rest);
    if (!step)
      return std::nullopt;
    bool isReversed = expr.is(Kind::Sub) && expr.operands[1] == rest;
    if (isReversed)
      step->inverse = false;
    input.steps.push_back(std::move(*step));
    if (isReversed)
      input.steps.push_back(Step{true, false, Part::ofNumber(-1.0)});
    if ((input.x = wholeTensor(rest)))
      return input;
    view = rest;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// C7, C8, C9, C10
//===----------------------------------------------------------------------===//

/// Whether a norm of this contract can read `x` in place of its own input,
/// which was rounded to another type or came from one.
static bool canReadType(NormContract contract, Value x) {
  auto type = cast<FloatType>(getElementTypeOrSelf(x.getType()));
  if (type == getElementTypeOrSelf(contract.x.getType()))
    return true;
  return !contract.residual && contract.affineIn == AffineIn::Compute &&
         (type == contract.computeType ||
          type.getWidth() < contract.computeType.getWidth());
}

static EpsilonAttr divideEpsilon(EpsilonAttr epsilon,
                                 const LinearInput &input) {
  if (epsilon.isNone())
    return epsilon;
  double value = epsilon.getDouble();
  bool isInside = epsilon.getPlacement() == EpsilonPlacement::InsideSqrt ||
                  epsilon.getPlacement() == EpsilonPlacement::MaxInside;
  for (const Step &step : input.steps) {
    if (!step.scales || !step.part.number)
      continue;
    double factor = std::abs(*step.part.number);
    if (isInside)
      factor *= factor;
    value = step.inverse ? value * factor : value / factor;
  }
  return EpsilonAttr::get(epsilon.getContext(), epsilon.getPlacement(), value);
}

namespace {
/// Puts the steps that a norm no longer sees into the statistics it returns.
class StatisticSteps {
public:
  StatisticSteps(OpBuilder &builder, NormOpInterface op,
                 const LinearInput &input)
      : builder(builder), loc(op.getLoc()), input(input),
        axes(op.getStatisticAxes()), running(op.getRunningUpdate()) {}

  Value mean(Value mean) const;
  /// variance * |factor|^2; not formed as a product of squares, which overflow
  /// sooner.
  Value variance(Value variance) const { return magnitude(variance, 2, false); }
  Value rstd(Value rstd) const { return magnitude(rstd, 1, true); }
  /// The running mean moves by momentum times what is added to the mean.
  Value runningMean(Value mean) const;

private:
  using Combine = function_ref<Value(OpBuilder &, Location, Value, Value)>;
  /// combine(element of `tensor`, the part's element in the same type).
  Value map(Value tensor, const Part &part, Combine combine) const;
  Value magnitude(Value statistic, int power, bool divides) const;

  OpBuilder &builder;
  Location loc;
  const LinearInput &input;
  SmallVector<int64_t> axes;
  RunningUpdate running;
};
} // namespace

Value StatisticSteps::map(Value tensor, const Part &part,
                          Combine combine) const {
  auto type = cast<FloatType>(getElementTypeOrSelf(tensor.getType()));
  SmallVector<MappedOperand> others;
  if (!part.number && !part.index.empty()) {
    MappedOperand other;
    other.tensor =
        part.constant
            ? createConstant(
                  builder, loc, part.constant->getType(),
                  llvm::map_to_vector(
                      llvm::seq<int64_t>(
                          0, part.constant->getType().getNumElements()),
                      [&](int64_t i) { return (*part.constant)[i]; }))
            : part.value;
    for (int32_t axis : part.index)
      other.dims.push_back(
          axis == kUnit ? -1 : llvm::find(axes, axis) - axes.begin());
    others.push_back(std::move(other));
  }
  return mapElements(
      builder, loc, tensor, others,
      [&](OpBuilder &b, Location bodyLoc, ValueRange args) -> Value {
        Value element = part.number
                            ? buildNumber(b, bodyLoc, *part.number, type)
                        : others.empty() ? part.value
                                         : args[1];
        return combine(b, bodyLoc, args[0],
                       castFloat(b, bodyLoc, element, type));
      });
}

Value StatisticSteps::mean(Value mean) const {
  for (const Step &step : llvm::reverse(input.steps))
    mean = map(mean, step.part,
               [&](OpBuilder &b, Location bodyLoc, Value m, Value p) -> Value {
                 if (step.scales && step.inverse)
                   return arith::DivFOp::create(b, bodyLoc, m, p);
                 if (step.scales)
                   return arith::MulFOp::create(b, bodyLoc, m, p);
                 if (step.inverse)
                   return arith::SubFOp::create(b, bodyLoc, m, p);
                 return arith::AddFOp::create(b, bodyLoc, m, p);
               });
  return mean;
}

Value StatisticSteps::magnitude(Value statistic, int power,
                                bool divides) const {
  for (const Step &step : input.steps) {
    if (!step.scales || step.part.number == 1.0 || step.part.number == -1.0)
      continue;
    Part part = step.part;
    if (part.number) {
      part.number = std::abs(*part.number);
    } else {
      SmallVector<double> values;
      for (int64_t i :
           llvm::seq<int64_t>(0, part.constant->getType().getNumElements()))
        values.push_back(std::abs((*part.constant)[i]));
      part.constant = ConstantTensor(part.constant->getType(), values);
    }
    statistic =
        map(statistic, part,
            [&](OpBuilder &b, Location bodyLoc, Value s, Value p) -> Value {
              for (int i = 0; i < power; ++i)
                s = step.inverse != divides
                        ? Value(arith::DivFOp::create(b, bodyLoc, s, p))
                        : Value(arith::MulFOp::create(b, bodyLoc, s, p));
              return s;
            });
  }
  return statistic;
}

Value StatisticSteps::runningMean(Value mean) const {
  for (const Step &step : llvm::reverse(input.steps))
    mean =
        map(mean, step.part,
            [&](OpBuilder &b, Location bodyLoc, Value m, Value p) -> Value {
              auto type = cast<FloatType>(m.getType());
              Value momentum =
                  running.momentum
                      ? buildNumber(b, bodyLoc, *running.momentum, type)
                      : castFloat(b, bodyLoc, running.momentumValue, type);
              Value moved = arith::MulFOp::create(b, bodyLoc, momentum, p);
              return step.inverse
                         ? Value(arith::SubFOp::create(b, bodyLoc, m, moved))
                         : Value(arith::AddFOp::create(b, bodyLoc, m, moved));
            });
  return mean;
}

namespace {
/// C7: adding a constant to the input of a centred norm changes nothing; C8 and
/// C9: multiplying the input by a constant changes what epsilon contributes,
/// and the sign; C10: both in one op.
class RemoveLinearStep : public OpInterfaceRewritePattern<NormOpInterface> {
public:
  RemoveLinearStep(MLIRContext *context, const RewritePolicy &policy)
      : OpInterfaceRewritePattern(context), shift("C7", policy),
        layerScale("C8", policy), scale("C9", policy), both("C10", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override;

private:
  const Rule &ruleFor(NormOpInterface op, const LinearInput &input) const {
    if (!input.scales())
      return shift;
    if (input.shifts())
      return both;
    return isa<LayerNormOp>(op) ? layerScale : scale;
  }
  LogicalResult checkShifts(const Rule &rule, NormOpInterface op,
                            const LinearInput &input,
                            InputMatcher &matcher) const;
  LogicalResult checkScales(const Rule &rule, NormOpInterface op,
                            const LinearInput &input,
                            InputMatcher &matcher) const;
  LogicalResult checkResults(const Rule &rule, NormOpInterface op,
                             const LinearInput &input) const;

  Rule shift, layerScale, scale, both;
};
} // namespace

LogicalResult RemoveLinearStep::checkShifts(const Rule &rule,
                                            NormOpInterface op,
                                            const LinearInput &input,
                                            InputMatcher &matcher) const {
  if (!input.shifts())
    return success();
  if (failed(rule.require(op, "shift-invariant", op.isShiftInvariant(),
                          "the op subtracts no mean that it computes")))
    return failure();
  for (const Step &step : input.steps) {
    if (step.scales)
      continue;
    if (failed(rule.require(op, "constant",
                            matcher.perStatistic(step.part).has_value(),
                            "what is added varies along a reduced axis")))
      return failure();
    bool isFinite =
        step.part.isConstant()
            ? step.part.all([](double value) { return std::isfinite(value); })
            : rule.getPolicy().nnan && rule.getPolicy().ninf;
    if (failed(rule.require(op, "finite", isFinite,
                            "what is added is not known to be finite")))
      return failure();
  }
  return success();
}

LogicalResult RemoveLinearStep::checkScales(const Rule &rule,
                                            NormOpInterface op,
                                            const LinearInput &input,
                                            InputMatcher &matcher) const {
  if (!input.scales())
    return success();
  if (failed(rule.require(op, "computed", !op.hasGivenStatistics(),
                          "the op is given its statistics")))
    return failure();
  for (const Step &step : input.steps) {
    if (!step.scales)
      continue;
    if (!step.part.isConstant())
      return rule.refuse(op, "factor", "the factor is not a constant");
    std::optional<Part> part = matcher.perStatistic(step.part);
    if (failed(rule.require(
            op, "uniform", part && (part->number || op.getEpsilon().isNone()),
            "the factor differs between elements that share a statistic or "
            "an epsilon")))
      return failure();
    bool isUsable = step.part.all(
        [](double value) { return std::isfinite(value) && value != 0.0; });
    if (failed(rule.require(op, "nonzero", isUsable,
                            "expected a finite factor other than 0")))
      return failure();
    auto isNegative = [](double value) { return value < 0.0; };
    if (failed(rule.require(op, "sign",
                            step.part.all(isNegative) ||
                                step.part.all(std::not_fn(isNegative)),
                            "the factor has more than one sign")))
      return failure();
  }
  EpsilonAttr epsilon = op.getEpsilon();
  double scaled = divideEpsilon(epsilon, input).getDouble();
  return rule.require(op, "epsilon",
                      isUsableEpsilon(scaled, epsilon.getDouble(),
                                      op.getComputeTypeOrDefault()),
                      "epsilon would become " + Twine(numberText(scaled)) +
                          ", which the compute type does not hold");
}

/// Whether the results that are read can be had from the new op.
LogicalResult RemoveLinearStep::checkResults(const Rule &rule,
                                             NormOpInterface op,
                                             const LinearInput &input) const {
  NormResults results = NormResults::get(op);
  bool hasResidual = op.getResidualOrNull() != nullptr;
  if (failed(rule.require(op, "residual",
                          !hasResidual ||
                              (!input.scales() && !isUsed(results.sum)),
                          input.scales() ? "x is added to a residual first"
                                         : "the sum is read")) ||
      failed(rule.require(op, "type",
                          canReadType(NormContract::get(op), input.x),
                          "x is rounded to a type that the contract needs")))
    return failure();
  bool readsRunning =
      isUsed(results.runningMean) || isUsed(results.runningVariance);
  bool hasCount = op.getStaticReducedCount().value_or(0) > 0;
  if (failed(rule.require(
          op, "running", !readsRunning || (!input.scales() && hasCount),
          input.scales() ? "running statistics follow the scaled input"
                         : "the batch may be empty, which leaves the "
                           "running mean as it is")))
    return failure();
  // The mean of larger numbers is rounded before the constant comes off again.
  bool isNarrow =
      readsRunning &&
      cast<FloatType>(getElementTypeOrSelf(results.runningMean.getType()))
              .getWidth() < op.getComputeTypeOrDefault().getWidth();
  if (input.shifts() &&
      failed(rule.require(op, "running-type", !isNarrow,
                          "the running mean is stored in fewer bits than it is "
                          "computed in")))
    return failure();
  return rule.require(op, "count",
                      !isUsed(results.mean) || !input.shifts() || hasCount,
                      "the mean of no elements is 0, whatever is added");
}

LogicalResult
RemoveLinearStep::matchAndRewrite(NormOpInterface op,
                                  PatternRewriter &rewriter) const {
  InputMatcher matcher(op);
  std::optional<LinearInput> input = matcher.match();
  if (!input)
    return failure();
  const Rule &rule = ruleFor(op, *input);
  // The products of a negated input are those of the input, negated.
  bool isExact = !op.isCentred() && input->onlyNegates() &&
                 input->x.getType() == op.getInput().getType();
  if (!isExact && failed(rule.requireReal(op)))
    return failure();
  NormContract contract = NormContract::get(op);
  if (failed(checkShifts(rule, op, *input, matcher)) ||
      failed(checkScales(rule, op, *input, matcher)) ||
      failed(checkResults(rule, op, *input)))
    return failure();
  double sign = 1.0;
  for (Step &step : input->steps) {
    if (step.scales && step.part.all([](double value) { return value < 0.0; }))
      sign = -sign;
    step.part = matcher.perStatistic(step.part).value_or(Part::ofNumber(1.0));
  }
  if (failed(rule.require(op, "gain", canScaleGain(contract, sign),
                          "a gain of -1 would have a dynamic shape")))
    return failure();

  contract.x = input->x;
  contract.epsilon = divideEpsilon(contract.epsilon, *input);
  NormResults old = NormResults::get(op);
  if (!isUsed(old.sum))
    contract.sumType = {};
  scaleGain(rewriter, op.getLoc(), contract, sign, op.getAffineAxesOrDefault());
  NormOpInterface rebuilt = rebuildNorm(rewriter, op, contract);
  if (!rebuilt)
    return failure();
  rule.applied(op, !input->scales() ? "dropped what was added to the input"
                   : !input->shifts()
                       ? "took a factor of the input into epsilon"
                       : "dropped what was added to the input, "
                         "and took its factor into epsilon");
  NormResults results = NormResults::get(rebuilt);
  rewriter.setInsertionPointAfter(rebuilt);
  StatisticSteps steps(rewriter, op, *input);
  if (isUsed(old.mean))
    results.mean = steps.mean(results.mean);
  if (isUsed(old.variance))
    results.variance = steps.variance(results.variance);
  if (isUsed(old.rstd))
    results.rstd = steps.rstd(results.rstd);
  if (isUsed(old.runningMean))
    results.runningMean = steps.runningMean(results.runningMean);
  replaceNorm(rewriter, op, results);
  return success();
}

void norm::populateSimplifyInputPatterns(RewritePatternSet &patterns,
                                         const RewritePolicy &policy) {
  patterns.add<RemoveLinearStep>(patterns.getContext(), policy);
  populateNestedNormPatterns(patterns, policy);
}
