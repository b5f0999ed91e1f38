//===- ThreadsConstants.cpp - Constant buffers in kernels -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A constant tensor is a global of the host, whose address means nothing to a
// device. Asked for within the kernel it is a global of the device: outlining
// takes its definition along.
//
//===----------------------------------------------------------------------===//

#include "MapToThreads.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::norm;

/// The views that make a buffer of a constant, the last one first, and the
/// constant at the end; empty for other buffers.
static SmallVector<Operation *> findConstant(Value buffer) {
  SmallVector<Operation *> chain;
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>()) {
    chain.push_back(view);
    buffer = view.getViewSource();
  }
  auto global = buffer.getDefiningOp<memref::GetGlobalOp>();
  if (!global)
    return {};
  chain.push_back(global);
  return chain;
}

/// On a constant that stays where it is: without it, CSE would take the one
/// that the host asks the alignment of.
static constexpr char kIsOfKernel[] = "of_kernel";

void norm::sinkConstants(gpu::LaunchOp launch) {
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(launch.getBody(), captured);
  OpBuilder builder = OpBuilder::atBlockBegin(&launch.getBody().front());
  for (Value buffer : captured) {
    IRMapping mapping;
    for (Operation *op : llvm::reverse(findConstant(buffer)))
      builder.clone(*op, mapping)->setAttr(kIsOfKernel, builder.getUnitAttr());
    if (Value inside = mapping.lookupOrNull(buffer))
      replaceAllUsesInRegionWith(buffer, inside, launch.getBody());
  }
}
