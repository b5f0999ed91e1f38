//===- Values.cpp - Arrays as numbers -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Values.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/Format.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace norm_run;
using mlir::norm::Array;

template <typename T> static T load(const Array &array, int64_t index) {
  T value;
  std::memcpy(&value, array.data.get() + index * sizeof(T), sizeof(T));
  return value;
}

static double loadFloat(const llvm::fltSemantics &semantics, uint16_t bits) {
  llvm::APFloat value(semantics, llvm::APInt(16, bits));
  bool losesInfo;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

/// An element as a double; integers beyond 2^53 lose their last bits.
static double element(mlir::Type type, const Array &array, int64_t index) {
  if (type.isF64())
    return load<double>(array, index);
  if (type.isF32())
    return load<float>(array, index);
  if (type.isF16())
    return loadFloat(llvm::APFloat::IEEEhalf(), load<uint16_t>(array, index));
  if (type.isBF16())
    return loadFloat(llvm::APFloat::BFloat(), load<uint16_t>(array, index));
  switch (mlir::norm::sizeOf(array.type)) {
  case 1:
    return load<int8_t>(array, index);
  case 2:
    return load<int16_t>(array, index);
  case 4:
    return load<int32_t>(array, index);
  default:
    return static_cast<double>(load<int64_t>(array, index));
  }
}

Difference norm_run::compare(mlir::Type type, const Array &value,
                             const Array &reference) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Difference difference;
  double greatest = 0.0;
  for (int64_t i = 0, e = value.getNumElements(); i < e; ++i) {
    double x = element(type, value, i), r = element(type, reference, i);
    if (std::isfinite(r))
      greatest = std::max(greatest, std::fabs(r));
    if (std::isfinite(x) && std::isfinite(r)) {
      difference.absolute = std::max(difference.absolute, std::fabs(x - r));
    } else if (!(std::isnan(x) && std::isnan(r)) && x != r) {
      ++difference.mismatches;
      difference.absolute = kInfinity;
    }
  }
  if (difference.absolute != 0.0)
    difference.relative =
        greatest == 0.0 ? kInfinity : difference.absolute / greatest;
  return difference;
}

void norm_run::print(llvm::raw_ostream &os, mlir::Type type,
                     const Array &array) {
  constexpr int64_t kWhole = 16, kEnds = 4;
  int64_t count = array.getNumElements();
  int64_t columns = array.shape.empty() ? 1 : array.shape.back();
  int64_t rows = columns == 0 ? 0 : count / columns;
  auto forEach = [&](int64_t size, auto visit, auto skip) {
    for (int64_t i = 0; i < size; ++i) {
      if (size > kWhole && i == kEnds) {
        skip();
        i = size - kEnds;
      }
      visit(i);
    }
  };
  forEach(
      rows,
      [&](int64_t row) {
        os << " ";
        forEach(
            columns,
            [&](int64_t column) {
              double value = element(type, array, row * columns + column);
              if (llvm::isa<mlir::FloatType>(type))
                os << llvm::format(" %.9g", value);
              else
                os << llvm::format(" %.0f", value);
            },
            [&] { os << " ..."; });
        os << "\n";
      },
      [&] { os << "  ...\n"; });
}
