//===- Text.cpp - The report for people -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "Norm/Analysis/Placement.h"
#include "Norm/IR/NormOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::report;

static std::string listText(ArrayRef<int64_t> list) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "[";
  llvm::interleaveComma(list, os);
  os << "]";
  return text;
}

static std::string plural(int64_t count, StringRef noun) {
  return (Twine(count) + " " + noun + (count == 1 ? "" : "s")).str();
}

static std::string spreadText(StringRef name, const Spread &spread) {
  return (", " + name + " from " + textOf(spread.least) + " to " +
          textOf(spread.greatest) + ", median " + textOf(spread.median))
      .str();
}

static void printLine(llvm::raw_ostream &os, StringRef name,
                      const Twine &text) {
  os << "  " << llvm::left_justify(name, 11) << text << "\n";
}

static void printRefusals(llvm::raw_ostream &os, const OpFacts &facts) {
  for (const Refusal &refusal : facts.refusals)
    printLine(os, "refused",
              refusal.pass + " " + refusal.rule + "." + refusal.condition +
                  ": " + refusal.reason);
}

static void printText(llvm::raw_ostream &os, const RowOpFacts &facts,
                      size_t index) {
  RowOpInterface op = facts.op;
  os << "op " << index << " in @" << facts.function << " at " << facts.location
     << "\n";
  printLine(os, "kind", facts.kind + ", " + textOf(op.getInput().getType()));
  printLine(os, "axes", listText(op.getReducedAxes()));
  printLine(os, "compute", textOf(op.getComputeTypeOrDefault()));
  printRefusals(os, facts);
}

static void printText(llvm::raw_ostream &os, const NormFacts &facts,
                      size_t index) {
  NormOpInterface op = facts.op;
  auto line = [&](StringRef name, const Twine &text) {
    printLine(os, name, text);
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
  printRefusals(os, facts);
}

static void printKinds(llvm::raw_ostream &os,
                       const std::map<StringRef, int64_t> &kinds) {
  if (kinds.empty())
    return;
  os << " (";
  llvm::interleaveComma(kinds, os, [&](const auto &kind) {
    os << kind.second << " " << kind.first;
  });
  os << ")";
}

void report::printText(llvm::raw_ostream &os, const Facts &facts) {
  for (auto [i, norm] : llvm::enumerate(facts.norms))
    ::printText(os, norm, i);
  for (auto [i, other] : llvm::enumerate(facts.others))
    ::printText(os, other, i);
  Totals totals = sum(facts);
  os << "total: " << plural(facts.norms.size(), "norm");
  printKinds(os, totals.kinds);
  os << ", " << plural(totals.parameters, "parameter")
     << (totals.isExact ? "" : " and a dynamic number more");
  if (!facts.others.empty()) {
    os << ", " << plural(facts.others.size(), "other op");
    printKinds(os, totals.otherKinds);
  }
  os << "\n";
}
