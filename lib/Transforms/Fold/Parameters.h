//===- Parameters.h - Parameters of a norm as numbers --------- -*- C++ -*-===//
//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_FOLD_PARAMETERS_H
#define NORM_LIB_TRANSFORMS_FOLD_PARAMETERS_H

#include "Norm/Analysis/Constants.h"
#include "Norm/IR/Rewrite.h"

namespace mlir::norm::fold {

/// One number per element of a tensor indexed by `axes` of x, row-major.
struct Parameters {
  SmallVector<int64_t> axes;
  SmallVector<double> values;
};

/// The elements of a constant, one by one; nullopt if `value` is none.
std::optional<SmallVector<double>> constantElements(Value value);

/// scale * x^ + shift, with the offset of the scale added: one number per
/// element of the affine axes.
struct ConstantAffine {
  SmallVector<int64_t> axes;
  SmallVector<double> scale, shift;
  bool hasScale = false, hasShift = false;
};

/// The scale and shift of a norm. Refuses, as conditions of `rule`, those that
/// are not constant (`constant`), and a rounding before the scale
/// (`affine-in`). Fails in silence where there are none.
FailureOr<ConstantAffine> matchConstantAffine(const Rule &rule,
                                              NormOpInterface op);

/// (x - mean) * factor + shift: a norm with given statistics, in numbers of
/// f64, one per element of the kept axes.
struct GivenNorm {
  SmallVector<int64_t> axes;
  SmallVector<double> mean, factor, shift;
  /// 1 / sqrt(variance + epsilon), without the scale.
  SmallVector<double> rstd;

  /// Whether some mean is further from 0 than 64 standard deviations: there
  /// x * a + b loses more than six bits to cancellation.
  bool isFar() const;
};

/// The numbers of a norm with given statistics. Refuses, as conditions of
/// `rule`: a residual (`residual`); statistics, scale or shift that are not
/// constant (`constant`); scale or shift along other axes than the statistics
/// (`affine-axes`); a rounding before the scale (`affine-in`).
FailureOr<GivenNorm> matchGivenNorm(const Rule &rule, NormOpInterface op);

} // namespace mlir::norm::fold

#endif // NORM_LIB_TRANSFORMS_FOLD_PARAMETERS_H
