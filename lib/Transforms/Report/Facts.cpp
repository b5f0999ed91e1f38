//===- Facts.cpp - What norm-report says of each op -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "Norm/IR/NormOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::report;

std::string report::textOf(double value) {
  for (int digits = 6; digits < 17; ++digits) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%.*g", digits, value);
    double back;
    if (!StringRef(text).getAsDouble(back) && back == value)
      return text;
  }
  return textOf(llvm::format("%.17g", value));
}

std::string report::locationText(Location loc) {
  if (auto file = loc->findInstanceOf<FileLineColLoc>())
    return (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" +
            Twine(file.getColumn()))
        .str();
  return textOf(loc);
}

FloatType report::elementType(Value value) {
  return cast<FloatType>(cast<ShapedType>(value.getType()).getElementType());
}

/// The elements of a constant, or nothing.
static std::optional<Spread> spreadOf(Value value) {
  ElementsAttr attr;
  if (!value || !matchPattern(value, m_Constant(&attr)) ||
      attr.getNumElements() == 0)
    return std::nullopt;
  SmallVector<double> elements;
  if (auto range = attr.tryGetValues<APFloat>()) {
    for (APFloat element : *range) {
      bool losesInfo;
      element.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                      &losesInfo);
      elements.push_back(element.convertToDouble());
    }
  } else if (auto blob = dyn_cast<DenseF32ResourceElementsAttr>(attr)) {
    if (auto values = blob.tryGetAsArrayRef())
      elements.assign(values->begin(), values->end());
  }
  if (elements.empty() ||
      llvm::any_of(elements, [](double v) { return v != v; }))
    return std::nullopt;
  llvm::sort(elements);
  size_t middle = elements.size() / 2;
  double median = elements.size() % 2
                      ? elements[middle]
                      : 0.5 * elements[middle - 1] + 0.5 * elements[middle];
  return Spread{elements.front(), median, elements.back()};
}

/// Number of elements of scale and shift; nullopt if an extent is dynamic.
static std::optional<int64_t> countParameters(NormOpInterface op) {
  int64_t count = 0;
  for (Value value : {Value(op.getScaleOrNull()), Value(op.getShiftOrNull())}) {
    if (!value)
      continue;
    auto type = cast<RankedTensorType>(value.getType());
    if (!type.hasStaticShape())
      return std::nullopt;
    count += type.getNumElements();
  }
  return count;
}

/// Legal, but seldom meant.
static void findWarnings(NormFacts &facts) {
  NormOpInterface op = facts.op;
  if (facts.count == 1 && !op.hasGivenStatistics())
    facts.warnings.push_back(
        op.isCentred()
            ? "each statistic covers one element: x minus its mean is 0"
            : "each statistic covers one element: it is that element's square");
  if (op.getEpsilon().isNone())
    return;
  APFloat epsilon = op.getEpsilon().getValue();
  FloatType compute = op.getComputeTypeOrDefault();
  bool losesInfo;
  epsilon.convert(compute.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
  if (epsilon.isZero() || epsilon.isDenormal())
    facts.warnings.push_back(
        "epsilon is " + std::string(epsilon.isZero() ? "0" : "subnormal") +
        " in the compute type " + textOf(compute) + " (V4)");
}

static void collectCommon(Operation *op, OpFacts &facts) {
  if (auto function = op->getParentOfType<FunctionOpInterface>())
    facts.function = function.getName().str();
  facts.location = locationText(op->getLoc());
  facts.kind = op->getName().getStringRef().str();
}

static NormFacts collect(NormOpInterface op) {
  NormFacts facts;
  collectCommon(op, facts);
  facts.op = op;
  facts.count = op.getStaticReducedCount();
  facts.parameters = countParameters(op);
  facts.scale = spreadOf(op.getScaleOrNull());
  facts.shift = spreadOf(op.getShiftOrNull());
  for (Typed result : {Typed{"mean", op.getMeanOrNull()},
                       Typed{"variance", op.getVarianceOrNull()},
                       Typed{"rstd", op.getRstdOrNull()}})
    if (result.value)
      facts.statistics.push_back(result.role);
  if (Attribute strategy = op->getAttr(kStrategyAttrName))
    facts.strategy = textOf(strategy);
  findWarnings(facts);
  return facts;
}

static RowOpFacts collect(RowOpInterface op) {
  RowOpFacts facts;
  collectCommon(op, facts);
  facts.op = op;
  return facts;
}

Facts report::collect(Operation *root) {
  Facts facts;
  SmallVector<Operation *> ops, others;
  root->walk([&](RowOpInterface op) {
    if (auto norm = dyn_cast<NormOpInterface>(op.getOperation())) {
      ops.push_back(op);
      facts.norms.push_back(::collect(norm));
    } else {
      others.push_back(op);
      facts.others.push_back(::collect(op));
    }
  });
  llvm::append_range(ops, others);
  std::vector<std::vector<Refusal>> refusals = collectRefusals(root, ops);
  auto next = refusals.begin();
  for (NormFacts &norm : facts.norms)
    norm.refusals = std::move(*next++);
  for (RowOpFacts &other : facts.others)
    other.refusals = std::move(*next++);
  return facts;
}

Totals report::sum(const Facts &facts) {
  Totals totals;
  for (const NormFacts &norm : facts.norms) {
    ++totals.kinds[norm.kind];
    totals.parameters += norm.parameters.value_or(0);
    totals.isExact &= norm.parameters.has_value();
  }
  for (const RowOpFacts &other : facts.others)
    ++totals.otherKinds[other.kind];
  return totals;
}

SmallVector<Typed> report::typedValues(NormOpInterface op) {
  SmallVector<Typed> all{{"x", op.getInput()},
                         {"residual", op.getResidualOrNull()},
                         {"mean", op.getGivenMeanOrNull()},
                         {"variance", op.getGivenVarianceOrNull()},
                         {"running_mean", op.getRunningUpdate().mean},
                         {"running_variance", op.getRunningUpdate().variance},
                         {"scale", op.getScaleOrNull()},
                         {"shift", op.getShiftOrNull()},
                         {"y", op.getNormalized()},
                         {"sum", op.getSumOrNull()}};
  llvm::erase_if(all, [](const Typed &typed) { return !typed.value; });
  return all;
}
