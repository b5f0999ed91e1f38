//===- Placement.h - Norms and the residual stream --------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a norm stands relative to the residual stream of a network, the chain
// of sums x + F(x). Placement is a property of the surrounding program, never
// of the norm: no pass changes it.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_ANALYSIS_PLACEMENT_H
#define NORM_ANALYSIS_PLACEMENT_H

#include "Norm/IR/NormInterfaces.h"

namespace mlir::norm {

enum class Placement {
  None,     ///< no residual stream in sight
  Pre,      ///< x + F(norm(x)): what is normalized also goes around the norm
  Post,     ///< norm(x + F(x)): the sum goes nowhere but into the norm
  Branch,   ///< x + norm(F(x)): the result is only added to the stream
  Sandwich, ///< Branch, on a stream that is also normalized before
  Final     ///< Post, at the end of a stream of Pre or Branch norms
};

/// The placement of `op`, with the sum as a residual operand or as an addition
/// that feeds or uses the norm.
Placement getPlacement(NormOpInterface op);

/// "none", "pre", "post", "branch", "sandwich" or "final".
StringRef getPlacementName(Placement placement);
StringRef getPlacementName(NormOpInterface op);

} // namespace mlir::norm

#endif // NORM_ANALYSIS_PLACEMENT_H
