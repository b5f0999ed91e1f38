//===- Report.h - What norm-report collects and prints -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_TRANSFORMS_REPORT_H
#define NORM_TRANSFORMS_REPORT_H

#include "Norm/IR/NormInterfaces.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <vector>

namespace mlir::norm::report {

/// Something that a pass would not do with an op, as its remark says it.
struct Refusal {
  std::string pass, rule, condition, reason, location;
};

/// Least, middle and greatest element of a constant.
struct Spread {
  double least, median, greatest;
};

/// An operand or result with a type of its own.
struct Typed {
  const char *role;
  Value value;
};

/// What is said of every op.
struct OpFacts {
  std::string function, location, kind;
  std::vector<Refusal> refusals;
};

/// Everything that the formats print of one norm.
struct NormFacts : OpFacts {
  NormOpInterface op;
  std::optional<int64_t> count, parameters;
  std::optional<Spread> scale, shift;
  SmallVector<std::string> statistics, warnings;
  std::string strategy;
};

/// The same for a gradient, or an op of the statistics algebra.
struct RowOpFacts : OpFacts {
  RowOpInterface op;
};

struct Facts {
  std::vector<NormFacts> norms;
  std::vector<RowOpFacts> others;
};

/// All of the ops in `root`, in their order.
Facts collect(Operation *root);

/// What the passes refuse to do with each of `ops`, in `root`: each pass runs
/// on a copy, with its default options.
std::vector<std::vector<Refusal>> collectRefusals(Operation *root,
                                                  ArrayRef<Operation *> ops);

struct Totals {
  std::map<StringRef, int64_t> kinds, otherKinds;
  int64_t parameters = 0;
  bool isExact = true;
};
Totals sum(const Facts &facts);

/// Operands and results that are there.
SmallVector<Typed> typedValues(NormOpInterface op);
FloatType elementType(Value value);
std::string locationText(Location loc);
/// A number with as many digits as it takes to tell it from its neighbours.
std::string textOf(double value);
template <typename T> std::string textOf(const T &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

void printText(llvm::raw_ostream &os, const Facts &facts);
/// Keys in a fixed order, absent facts as null.
void printJson(llvm::raw_ostream &os, const Facts &facts);

} // namespace mlir::norm::report

#endif // NORM_TRANSFORMS_REPORT_H
