//===- Evaluate.h - Linalg on constants, computed here -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_TRANSFORMS_EVALUATE_H
#define NORM_TRANSFORMS_EVALUATE_H

#include "Norm/IR/NormInterfaces.h"

namespace mlir::norm {

/// The results of a norm all of whose operands are constant, exact in f64:
/// those of `norm-to-reference` bit by bit, since its loops are what is
/// computed. nullopt if an operand is no constant, or for arithmetic that those
/// loops do not have.
std::optional<SmallVector<SmallVector<double>>>
evaluateByReference(NormOpInterface op);

} // namespace mlir::norm

#endif // NORM_TRANSFORMS_EVALUATE_H
