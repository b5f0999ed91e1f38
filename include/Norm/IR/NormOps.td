//===- NormOps.td - All ops of the dialect ------------------- *- tablegen -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_NORMOPS_TD
#define NORM_IR_NORMOPS_TD

include "Norm/IR/NormForwardOps.td"
include "Norm/IR/NormBackwardOps.td"
include "Norm/IR/NormStatisticsOps.td"

#endif // NORM_IR_NORMOPS_TD
