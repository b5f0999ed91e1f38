//===- Json.cpp - The report for programs -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "Norm/Analysis/Placement.h"
#include "Norm/IR/NormOps.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::report;

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

static void printRefusals(llvm::json::OStream &json, const OpFacts &facts) {
  json.attributeArray("refusals", [&] {
    for (const Refusal &refusal : facts.refusals)
      json.object([&] {
        json.attribute("pass", refusal.pass);
        json.attribute("rule", refusal.rule);
        json.attribute("condition", refusal.condition);
        json.attribute("reason", refusal.reason);
        json.attribute("location", refusal.location);
      });
  });
}

static void printHeading(llvm::json::OStream &json, const OpFacts &facts,
                         RowOpInterface op, size_t index) {
  json.attribute("index", static_cast<int64_t>(index));
  json.attribute("function", facts.function);
  json.attribute("location", facts.location);
  json.attribute("kind", facts.kind);
  printList(json, "shape", op.getInput().getType().getShape());
  printList(json, "axes", op.getReducedAxes());
}

static void printJson(llvm::json::OStream &json, const RowOpFacts &facts,
                      size_t index) {
  json.objectBegin();
  printHeading(json, facts, facts.op, index);
  json.attribute("compute",
                 textOf(RowOpInterface(facts.op).getComputeTypeOrDefault()));
  printRefusals(json, facts);
  json.objectEnd();
}

static void printJson(llvm::json::OStream &json, const NormFacts &facts,
                      size_t index) {
  NormOpInterface op = facts.op;
  json.objectBegin();
  printHeading(json, facts, op, index);
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
  printRefusals(json, facts);
  json.objectEnd();
}

static void printKinds(llvm::json::OStream &json,
                       const std::map<StringRef, int64_t> &kinds) {
  json.attributeObject("kinds", [&] {
    for (const auto &kind : kinds)
      json.attribute(kind.first, kind.second);
  });
}

void report::printJson(llvm::raw_ostream &os, const Facts &facts) {
  Totals totals = sum(facts);
  llvm::json::OStream json(os, /*IndentSize=*/2);
  json.object([&] {
    json.attributeArray("norms", [&] {
      for (auto [i, norm] : llvm::enumerate(facts.norms))
        ::printJson(json, norm, i);
    });
    json.attributeArray("others", [&] {
      for (auto [i, other] : llvm::enumerate(facts.others))
        ::printJson(json, other, i);
    });
    json.attributeObject("totals", [&] {
      json.attribute("norms", static_cast<int64_t>(facts.norms.size()));
      printKinds(json, totals.kinds);
      json.attribute("parameters",
                     orNull(totals.isExact
                                ? std::optional<int64_t>(totals.parameters)
                                : std::nullopt));
    });
  });
  os << "\n";
}
