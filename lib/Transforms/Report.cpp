//===- Report.cpp - norm-report -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "Norm/Analysis/Placement.h"
#include "Norm/IR/NormOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

#include <map>
#include <vector>

namespace mlir::norm {
#define GEN_PASS_DEF_REPORTPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// What is said about one norm
//===----------------------------------------------------------------------===//

namespace {
/// Least, middle and greatest element of a constant.
struct Spread {
  double least, median, greatest;
};

/// An operand or result with a type of its own.
struct Typed {
  const char *role;
  Value value;
};

/// Everything that the formats print of one op.
struct NormFacts {
  NormOpInterface op;
  std::string function, location, kind;
  std::optional<int64_t> count, parameters;
  std::optional<Spread> scale, shift;
  SmallVector<std::string> statistics, warnings;
  std::string strategy;
};
} // namespace

template <typename T> static std::string textOf(const T &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

/// A number with as many digits as it takes to tell it from its neighbours.
static std::string textOf(double value) {
  for (int digits = 6; digits < 17; ++digits) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%.*g", digits, value);
    double back;
    if (!StringRef(text).getAsDouble(back) && back == value)
      return text;
  }
  return textOf(llvm::format("%.17g", value));
}

static std::string listText(ArrayRef<int64_t> list) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "[";
  llvm::interleaveComma(list, os);
  os << "]";
  return text;
}

static std::string locationText(Location loc) {
  if (auto file = loc->findInstanceOf<FileLineColLoc>())
    return (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" +
            Twine(file.getColumn()))
        .str();
  return textOf(loc);
}

static FloatType elementType(Value value) {
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

static NormFacts collect(NormOpInterface op) {
  NormFacts facts;
  facts.op = op;
  if (auto function = op->getParentOfType<FunctionOpInterface>())
    facts.function = function.getName().str();
  facts.location = locationText(op.getLoc());
  facts.kind = op->getName().getStringRef().str();
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

static SmallVector<Typed> typedValues(NormOpInterface op) {
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

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string plural(int64_t count, StringRef noun) {
  return (Twine(count) + " " + noun + (count == 1 ? "" : "s")).str();
}

static std::string spreadText(StringRef name, const Spread &spread) {
  return (", " + name + " from " + textOf(spread.least) + " to " +
          textOf(spread.greatest) + ", median " + textOf(spread.median))
      .str();
}

static void printText(llvm::raw_ostream &os, const NormFacts &facts,
                      size_t index) {
  NormOpInterface op = facts.op;
  auto line = [&](StringRef name, const Twine &text) {
    os << "  " << llvm::left_justify(name, 11) << text << "\n";
  };
  os << "norm " << index << " in @" << facts.function << " at "
     << facts.location << "\n";
  line("kind", facts.kind + ", " + textOf(op.getInput().getType()) + " -> " +
                   textOf(op.getNormalized().getType()));
  bool hasAffine = op.getScaleOrNull() || op.getShiftOrNull();
  line("axes",
       listText(op.getReducedAxes()) + ", " +
           (facts.count ? plural(*facts.count, "element") + " per statistic"
                        : std::string("a dynamic number of elements "
                                      "per statistic")) +
           (op.getGroupedAxis()
                ? "; " + plural(op.getNumGroups(), "group") + " of axis " +
                      std::to_string(*op.getGroupedAxis())
                : std::string()) +
           (hasAffine ? "; affine axes " + listText(op.getAffineAxesOrDefault())
                      : std::string()));
  line("epsilon",
       op.getEpsilon().isNone()
           ? std::string("none")
           : stringifyEpsilonPlacement(op.getEpsilon().getPlacement()).str() +
                 " " + textOf(op.getEpsilon().getDouble()) +
                 (op.getZeroPolicy() == ZeroPolicy::Zero
                      ? ", a zero denominator gives 0"
                      : ""));
  FloatType compute = op.getComputeTypeOrDefault();
  bool isDefault =
      compute == defaultComputeType(op.getInput(), op.getResidualOrNull());
  line("compute",
       textOf(compute) + (isDefault ? "" : " (not the default)") +
           (op.getCorrection()
                ? ", variance over n - " + std::to_string(op.getCorrection())
                : std::string()));
  std::string types;
  for (const Typed &typed : typedValues(op))
    types += (types.empty() ? "" : ", ") + std::string(typed.role) + " " +
             textOf(elementType(typed.value));
  line("types", types);
  if (op.getResidualOrNull())
    line("sum", op.getSumRounding() == SumRounding::Stored
                    ? "x + residual is rounded to " +
                          textOf(op.getSumElementType()) +
                          " and then normalized"
                    : "x + residual is normalized before it is rounded to " +
                          textOf(op.getSumElementType()));
  if (hasAffine) {
    std::string affine =
        op.getAffineIn() == AffineIn::Compute
            ? "in " + textOf(compute) + ", rounded once to " +
                  textOf(elementType(op.getNormalized()))
            : "x-hat is rounded to " + textOf(elementType(op.getInput())) +
                  ", each step to " + textOf(elementType(op.getNormalized()));
    if (op.getScaleOffsetValue() != 0.0)
      affine += ", gain is scale + " + textOf(op.getScaleOffsetValue());
    line("affine", affine);
  }
  line("statistics", op.hasGivenStatistics() ? "given"
                     : facts.statistics.empty()
                         ? "none"
                         : llvm::join(facts.statistics, ", "));
  if (RunningUpdate running = op.getRunningUpdate())
    line("running",
         (running.momentum ? "momentum " + textOf(*running.momentum)
                           : std::string("momentum is an operand")) +
             ", the weight of the new value; variance over n" +
             (running.correction ? " - " + std::to_string(running.correction)
                                 : std::string()));
  line("placement", getPlacementName(op));
  line("strategy", facts.strategy.empty() ? "not chosen" : facts.strategy);
  std::string parameters =
      facts.parameters ? std::to_string(*facts.parameters) : "a dynamic number";
  if (facts.scale)
    parameters += spreadText("scale", *facts.scale);
  if (facts.shift)
    parameters += spreadText("shift", *facts.shift);
  line("parameters", parameters);
  for (const std::string &warning : facts.warnings)
    line("warning", warning);
}

//===----------------------------------------------------------------------===//
// Totals
//===----------------------------------------------------------------------===//

namespace {
struct Totals {
  std::map<StringRef, int64_t> kinds;
  int64_t parameters = 0;
  bool isExact = true;
};
} // namespace

static Totals sum(ArrayRef<NormFacts> norms) {
  Totals totals;
  for (const NormFacts &facts : norms) {
    ++totals.kinds[facts.kind];
    totals.parameters += facts.parameters.value_or(0);
    totals.isExact &= facts.parameters.has_value();
  }
  return totals;
}

static void printText(llvm::raw_ostream &os, ArrayRef<NormFacts> norms) {
  for (auto [i, facts] : llvm::enumerate(norms))
    printText(os, facts, i);
  Totals totals = sum(norms);
  os << "total: " << plural(norms.size(), "norm");
  if (!totals.kinds.empty()) {
    os << " (";
    llvm::interleaveComma(totals.kinds, os, [&](const auto &kind) {
      os << kind.second << " " << kind.first;
    });
    os << ")";
  }
  os << ", " << plural(totals.parameters, "parameter")
     << (totals.isExact ? "" : " and a dynamic number more") << "\n";
}

//===----------------------------------------------------------------------===//
// JSON: keys in a fixed order, absent facts as null
//===----------------------------------------------------------------------===//

static llvm::json::Value orNull(const std::optional<int64_t> &value) {
  return value ? llvm::json::Value(*value) : llvm::json::Value(nullptr);
}

static void printList(llvm::json::OStream &json, StringRef key,
                      ArrayRef<int64_t> list) {
  json.attributeArray(key, [&] {
    for (int64_t value : list)
      ShapedType::isDynamic(value) ? json.value(nullptr) : json.value(value);
  });
}

static void printList(llvm::json::OStream &json, StringRef key,
                      ArrayRef<std::string> list) {
  json.attributeArray(key, [&] {
    for (const std::string &value : list)
      json.value(value);
  });
}

static void printSpread(llvm::json::OStream &json, StringRef key,
                        const std::optional<Spread> &spread) {
  if (!spread)
    return json.attribute(key, nullptr);
  json.attributeObject(key, [&] {
    json.attribute("min", spread->least);
    json.attribute("median", spread->median);
    json.attribute("max", spread->greatest);
  });
}

static void printRunning(llvm::json::OStream &json,
                         const RunningUpdate &running) {
  if (!running)
    return json.attribute("running", nullptr);
  json.attributeObject("running", [&] {
    json.attribute("momentum", running.momentum
                                   ? llvm::json::Value(*running.momentum)
                                   : llvm::json::Value(nullptr));
    json.attribute("correction", running.correction);
  });
}

static void printJson(llvm::json::OStream &json, const NormFacts &facts,
                      size_t index) {
  NormOpInterface op = facts.op;
  json.objectBegin();
  json.attribute("index", static_cast<int64_t>(index));
  json.attribute("function", facts.function);
  json.attribute("location", facts.location);
  json.attribute("kind", facts.kind);
  printList(json, "shape", op.getInput().getType().getShape());
  printList(json, "axes", op.getReducedAxes());
  json.attribute("count", orNull(facts.count));
  json.attribute("channel_axis", orNull(op.getGroupedAxis()));
  json.attribute("groups",
                 orNull(op.getGroupedAxis() ? std::optional(op.getNumGroups())
                                            : std::nullopt));
  printList(json, "affine_axes",
            op.getScaleOrNull() || op.getShiftOrNull()
                ? op.getAffineAxesOrDefault()
                : SmallVector<int64_t>());
  json.attributeObject("epsilon", [&] {
    json.attribute("place",
                   stringifyEpsilonPlacement(op.getEpsilon().getPlacement()));
    json.attribute("value", op.getEpsilon().getDouble());
  });
  json.attribute("zero_policy", stringifyZeroPolicy(op.getZeroPolicy()));
  json.attribute("compute", textOf(op.getComputeTypeOrDefault()));
  json.attribute("correction", op.getCorrection());
  json.attributeObject("types", [&] {
    for (const Typed &typed : typedValues(op))
      json.attribute(typed.role, textOf(elementType(typed.value)));
  });
  json.attribute("residual", op.getResidualOrNull() != nullptr);
  json.attribute("sum_rounding", op.getResidualOrNull()
                                     ? llvm::json::Value(stringifySumRounding(
                                           op.getSumRounding()))
                                     : llvm::json::Value(nullptr));
  json.attribute("affine_in", stringifyAffineIn(op.getAffineIn()));
  json.attribute("scale_offset", op.getScaleOffsetValue());
  printList(json, "statistics", facts.statistics);
  json.attribute("given_statistics", op.hasGivenStatistics());
  printRunning(json, op.getRunningUpdate());
  json.attribute("placement", getPlacementName(op));
  json.attribute("strategy", facts.strategy.empty()
                                 ? llvm::json::Value(nullptr)
                                 : llvm::json::Value(facts.strategy));
  json.attribute("parameters", orNull(facts.parameters));
  printSpread(json, "scale", facts.scale);
  printSpread(json, "shift", facts.shift);
  printList(json, "warnings", facts.warnings);
  json.objectEnd();
}

static void printJson(llvm::raw_ostream &os, ArrayRef<NormFacts> norms) {
  Totals totals = sum(norms);
  llvm::json::OStream json(os, /*IndentSize=*/2);
  json.object([&] {
    json.attributeArray("norms", [&] {
      for (auto [i, facts] : llvm::enumerate(norms))
        printJson(json, facts, i);
    });
    json.attributeObject("totals", [&] {
      json.attribute("norms", static_cast<int64_t>(norms.size()));
      json.attributeObject("kinds", [&] {
        for (const auto &kind : totals.kinds)
          json.attribute(kind.first, kind.second);
      });
      json.attribute("parameters",
                     orNull(totals.isExact
                                ? std::optional<int64_t>(totals.parameters)
                                : std::nullopt));
    });
  });
  os << "\n";
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct Report : public norm::impl::ReportPassBase<Report> {
  using ReportPassBase::ReportPassBase;

  void runOnOperation() override {
    std::vector<NormFacts> norms;
    getOperation()->walk(
        [&](NormOpInterface op) { norms.push_back(collect(op)); });
    auto print = [&](llvm::raw_ostream &os) {
      format == ReportFormat::Text ? printText(os, norms)
                                   : printJson(os, norms);
    };
    markAllAnalysesPreserved();
    if (file.empty())
      return print(llvm::outs());
    std::error_code error;
    llvm::raw_fd_ostream os(file, error);
    if (error) {
      getOperation()->emitError()
          << "cannot write the report to '" << file << "': " << error.message();
      return signalPassFailure();
    }
    print(os);
  }
};
} // namespace
