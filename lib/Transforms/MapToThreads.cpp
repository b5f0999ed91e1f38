//===- MapToThreads.cpp - norm-map-to-threads -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MapToThreads.h"

#include "Norm/Transforms/GpuChip.h"
#include "Norm/Transforms/Passes.h"
#include "TileProgram.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::norm {
#define GEN_PASS_DEF_MAPTOTHREADSPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

/// Gives every function with a body the stream as its last argument, and passes
/// it on in calls.
static LogicalResult addStreamArguments(ModuleOp module) {
  SymbolTable symbols(module);
  auto stream = LLVM::LLVMPointerType::get(module.getContext());
  auto hasStream = [&](func::FuncOp func) {
    return func && !func.isExternal();
  };
  for (auto func : module.getOps<func::FuncOp>())
    if (hasStream(func) &&
        failed(func.insertArgument(func.getNumArguments(), stream, {},
                                   func.getLoc())))
      return func.emitOpError("cannot take a stream as its last argument");
  module.walk([&](func::CallOp call) {
    auto caller = call->getParentOfType<func::FuncOp>();
    if (hasStream(symbols.lookup<func::FuncOp>(call.getCallee())))
      call.getOperandsMutable().append(caller.getArguments().back());
  });
  return success();
}

/// Host code cannot touch device memory. The error is at what computes, if
/// anything does: an allocation or a copy is there because of it.
static LogicalResult checkHost(ModuleOp module) {
  Operation *culprit = nullptr;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<gpu::LaunchOp, gpu::GPUModuleOp>(op))
      return WalkResult::skip();
    auto isBuffer = llvm::IsaPred<BaseMemRefType>;
    bool hasBuffers = llvm::any_of(op->getOperandTypes(), isBuffer) ||
                      llvm::any_of(op->getResultTypes(), isBuffer);
    if (!hasBuffers || isa<func::CallOp, func::ReturnOp>(op) || isPure(op))
      return WalkResult::advance();
    if (!culprit)
      culprit = op;
    if (isa<memref::AllocOp, memref::DeallocOp, memref::CopyOp>(op))
      return WalkResult::advance();
    culprit = op;
    return WalkResult::interrupt();
  });
  if (!culprit)
    return success();
  return culprit->emitOpError("is not part of a norm or of what is computed "
                              "beside one, and has no GPU kernel");
}

namespace {
struct MapToThreads : public norm::impl::MapToThreadsPassBase<MapToThreads> {
  using Base::Base;

  void runOnOperation() override {
    std::optional<unsigned> capability = parseComputeCapability(chip);
    if (!capability) {
      emitError(getOperation().getLoc(), "expected chip to be a name as sm_90, "
                                         "got '")
          << chip << "'";
      return signalPassFailure();
    }
    room = getRowSharedBytes(*capability);
    if (stream && failed(addStreamArguments(getOperation())))
      return signalPassFailure();
    for (scf::ForallOp loop : findTileLoops(getOperation()))
      if (auto strategy =
              loop->getAttrOfType<GpuStrategyAttr>(kStrategyAttrName))
        if (failed(map(loop, strategy)))
          return signalPassFailure();
    if (stream && failed(checkHost(getOperation())))
      signalPassFailure();
  }

  LogicalResult map(scf::ForallOp loop, GpuStrategyAttr strategy) {
    auto isConstant = [](int64_t value) {
      return [=](OpFoldResult v) { return getConstantIntValue(v) == value; };
    };
    if (loop->getNumResults() != 0)
      return loop.emitOpError("expected a loop over rows of buffers, got one "
                              "that yields tensors: bufferize first");
    if (!llvm::all_of(loop.getMixedLowerBound(), isConstant(0)) ||
        !llvm::all_of(loop.getMixedStep(), isConstant(1)))
      return loop.emitOpError("expected a loop over rows from 0 by steps of 1");
    forwardCopies(loop);
    FailureOr<RowLayout> layout = RowLayout::analyze(loop, strategy);
    if (succeeded(layout) && strategy.getStaging() == Staging::Shared) {
      if (failed(stageRows(loop, strategy, *layout, room, chip)))
        return failure();
      layout = RowLayout::analyze(loop, strategy);
    }
    if (failed(layout))
      return failure();

    Value launchStream;
    if (stream)
      launchStream =
          loop->getParentOfType<func::FuncOp>().getArguments().back();
    OpBuilder builder(loop);
    auto emit = [&](ColumnAccess access) {
      return ThreadMapper(loop, strategy, *layout, access, builder)
          .run(launchStream);
    };
    ColumnAccess any = canShift(loop, *layout, strategy) ? ColumnAccess::Shifted
                                                         : ColumnAccess::Single;
    auto whole = WholeAccesses::analyze(loop, *layout, strategy);
    LogicalResult result = success();
    if (!whole.arePossible()) {
      result = emit(any);
    } else if (alignment == GpuAlignment::Promised) {
      result = emit(ColumnAccess::Whole);
    } else {
      Location loc = loop.getLoc();
      auto ifOp =
          scf::IfOp::create(builder, loc, whole.buildCheck(builder, loc),
                            /*withElseRegion=*/true);
      builder.setInsertionPointToStart(ifOp.thenBlock());
      result = emit(ColumnAccess::Whole);
      builder.setInsertionPointToStart(ifOp.elseBlock());
      if (succeeded(result))
        result = emit(any);
    }
    if (succeeded(result))
      loop.erase();
    return result;
  }

  /// Bytes of shared memory for rows.
  int64_t room = 0;
};
} // namespace
