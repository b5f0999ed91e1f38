//===- OutlineParallelBody.cpp - norm-outline-parallel-body -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::norm {
#define GEN_PASS_DEF_OUTLINEPARALLELBODYPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;

/// Clones constants that the region captures into it, so that an outlined
/// function knows them.
static void sinkConstants(RewriterBase &rewriter, Region &region) {
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(region, captured);
  rewriter.setInsertionPointToStart(&region.front());
  for (Value value : captured) {
    Operation *op = value.getDefiningOp();
    if (!op || !op->hasTrait<OpTrait::ConstantLike>())
      continue;
    Operation *clone = rewriter.clone(*op);
    replaceAllUsesInRegionWith(value, clone->getResult(0), region);
  }
}

/// Whether memory is allocated on the stack in the scope itself, not in a
/// scope inside it.
static bool allocatesOnStack(memref::AllocaScopeOp scope) {
  WalkResult result = scope.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != scope && op->hasTrait<OpTrait::AutomaticAllocationScope>())
      return WalkResult::skip();
    return isa<memref::AllocaOp>(op) ? WalkResult::interrupt()
                                     : WalkResult::advance();
  });
  return result.wasInterrupted();
}

namespace {
struct OutlineParallelBody
    : public norm::impl::OutlineParallelBodyPassBase<OutlineParallelBody> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<memref::AllocaScopeOp> scopes;
    getOperation().walk([&](memref::AllocaScopeOp scope) {
      if (scope.getNumResults() == 0)
        scopes.push_back(scope);
    });
    IRRewriter rewriter(&getContext());
    for (memref::AllocaScopeOp scope : scopes)
      if (failed(process(scope, rewriter, symbols)))
        return signalPassFailure();
  }

  LogicalResult process(memref::AllocaScopeOp scope, IRRewriter &rewriter,
                        SymbolTable &symbols) {
    if (allocatesOnStack(scope)) {
      auto parent = scope->getParentOfType<func::FuncOp>();
      sinkConstants(rewriter, scope.getBodyRegion());
      unsigned counter = 0;
      SmallString<64> name = SymbolTable::generateSymbolName<64>(
          (parent.getName() + "__body").str(),
          [&](StringRef candidate) { return symbols.lookup(candidate); },
          counter);
      rewriter.setInsertionPoint(scope);
      FailureOr<func::FuncOp> outlined = outlineSingleBlockRegion(
          rewriter, scope.getLoc(), scope.getBodyRegion(), name);
      if (failed(outlined))
        return scope.emitOpError("body of a parallel loop cannot be outlined");
      outlined->setPrivate();
      (*outlined)->setAttr(
          "llvm.linkage",
          LLVM::LinkageAttr::get(&getContext(), LLVM::Linkage::Internal));
      (*outlined)->remove();
      symbols.insert(*outlined);
    }
    Block *body = &scope.getBodyRegion().front();
    rewriter.eraseOp(body->getTerminator());
    rewriter.inlineBlockBefore(body, scope);
    rewriter.eraseOp(scope);
    return success();
  }
};
} // namespace
