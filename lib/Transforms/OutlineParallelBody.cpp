//===- OutlineParallelBody.cpp - norm-outline-parallel-body -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "TileLanes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/OpenMP/OpenMPDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::norm {
#define GEN_PASS_DEF_OUTLINEPARALLELBODYPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;

/// Clones constants that the region captures into it, so that an outlined
/// function knows them, and masks, which are not passed in registers.
static void sinkConstants(RewriterBase &rewriter, Region &region) {
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(region, captured);
  rewriter.setInsertionPointToStart(&region.front());
  for (Value value : captured) {
    Operation *op = value.getDefiningOp();
    if (!op || !(op->hasTrait<OpTrait::ConstantLike>() ||
                 isa<vector::CreateMaskOp, vector::ConstantMaskOp>(op)))
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

/// Whether a parallel region starts with a loop, and neither has clauses but a
/// condition.
static bool holdsPlainLoop(omp::ParallelOp parallel) {
  auto loop = dyn_cast<omp::WsloopOp>(parallel.getRegion().front().front());
  return loop && loop->getNumOperands() == 0 && !loop.getScheduleKind() &&
         parallel->getNumOperands() == (parallel.getIfExpr() ? 1 : 0);
}

namespace {
class Outliner {
public:
  Outliner(ModuleOp module) : rewriter(module.getContext()), symbols(module) {}

  LogicalResult inlineScope(memref::AllocaScopeOp scope);
  LogicalResult callRanges(omp::ParallelOp parallel);

private:
  /// Makes the scope's body a function that the scope calls.
  LogicalResult outline(memref::AllocaScopeOp scope, StringRef suffix);
  void inlineBody(memref::AllocaScopeOp scope);
  func::FuncOp threadFunction(StringRef name);
  SmallVector<Value> countSteps(omp::LoopNestOp nest);
  std::pair<Value, Value> shareOfThread(Location loc, Value all,
                                        bool isMirrored);
  void loopOverRange(omp::LoopNestOp nest, ValueRange counts, Value from,
                     Value to);
  Value multiply(Value lhs, Value rhs) {
    return arith::MulIOp::create(rewriter, lhs.getLoc(), lhs, rhs);
  }

  IRRewriter rewriter;
  SymbolTable symbols;
};
} // namespace

LogicalResult Outliner::outline(memref::AllocaScopeOp scope, StringRef suffix) {
  auto parent = scope->getParentOfType<func::FuncOp>();
  sinkConstants(rewriter, scope.getBodyRegion());
  unsigned counter = 0;
  SmallString<64> name = SymbolTable::generateSymbolName<64>(
      (parent.getName() + suffix).str(),
      [&](StringRef candidate) { return symbols.lookup(candidate); }, counter);
  rewriter.setInsertionPoint(scope);
  FailureOr<func::FuncOp> outlined = outlineSingleBlockRegion(
      rewriter, scope.getLoc(), scope.getBodyRegion(), name);
  if (failed(outlined))
    return scope.emitOpError("body of a parallel loop cannot be outlined");
  outlined->setPrivate();
  (*outlined)->setAttr(
      "llvm.linkage",
      LLVM::LinkageAttr::get(scope.getContext(), LLVM::Linkage::Internal));
  (*outlined)->remove();
  symbols.insert(*outlined);
  return success();
}

void Outliner::inlineBody(memref::AllocaScopeOp scope) {
  Block *body = &scope.getBodyRegion().front();
  rewriter.eraseOp(body->getTerminator());
  rewriter.inlineBlockBefore(body, scope);
  rewriter.eraseOp(scope);
}

LogicalResult Outliner::inlineScope(memref::AllocaScopeOp scope) {
  if (allocatesOnStack(scope) && failed(outline(scope, "__body")))
    return failure();
  inlineBody(scope);
  return success();
}

/// A function of the OpenMP runtime that returns a number.
func::FuncOp Outliner::threadFunction(StringRef name) {
  if (auto known = symbols.lookup<func::FuncOp>(name))
    return known;
  OpBuilder::InsertionGuard guard(rewriter);
  auto declared =
      func::FuncOp::create(symbols.getOp()->getLoc(), name,
                           rewriter.getFunctionType({}, rewriter.getI32Type()));
  declared.setPrivate();
  symbols.insert(declared);
  return declared;
}

/// How many steps each loop of a nest takes.
SmallVector<Value> Outliner::countSteps(omp::LoopNestOp nest) {
  Location loc = nest.getLoc();
  return llvm::map_to_vector(
      llvm::zip_equal(nest.getLoopLowerBounds(), nest.getLoopUpperBounds(),
                      nest.getLoopSteps()),
      [&](auto bounds) -> Value {
        auto [lower, upper, step] = bounds;
        Value span = arith::SubIOp::create(rewriter, loc, upper, lower);
        return arith::CeilDivSIOp::create(rewriter, loc, span, step);
      });
}

/// The body of `nest`, for its steps `from` to `to`, the innermost loop's
/// first.
void Outliner::loopOverRange(omp::LoopNestOp nest, ValueRange counts,
                             Value from, Value to) {
  Location loc = nest.getLoc();
  Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
  auto loop = scf::ForOp::create(rewriter, loc, from, to, one);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  SmallVector<Value> places(counts.size());
  for (size_t i = counts.size(); i-- > 0;) {
    Value place = number;
    if (i > 0) {
      place = arith::RemUIOp::create(rewriter, loc, number, counts[i]);
      number = arith::DivUIOp::create(rewriter, loc, number, counts[i]);
    }
    places[i] =
        arith::AddIOp::create(rewriter, loc, nest.getLoopLowerBounds()[i],
                              multiply(place, nest.getLoopSteps()[i]));
  }
  Block *body = &nest.getRegion().front();
  rewriter.eraseOp(body->getTerminator());
  rewriter.inlineBlockBefore(body, loop.getBody()->getTerminator(), places);
}

/// Of `all` steps in a parallel region those of this thread: from, to.
std::pair<Value, Value> Outliner::shareOfThread(Location loc, Value all,
                                                bool isMirrored) {
  auto number = [&](StringRef name) -> Value {
    auto call = func::CallOp::create(rewriter, loc, threadFunction(name));
    return arith::IndexCastOp::create(rewriter, loc, rewriter.getIndexType(),
                                      call.getResult(0));
  };
  Value thread = number("omp_get_thread_num");
  Value threads = number("omp_get_num_threads");
  Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
  Value next = arith::AddIOp::create(rewriter, loc, thread, one);
  if (isMirrored) {
    thread = arith::SubIOp::create(rewriter, loc, threads, next);
    next = arith::AddIOp::create(rewriter, loc, thread, one);
  }
  Value from =
      arith::DivUIOp::create(rewriter, loc, multiply(all, thread), threads);
  Value to =
      arith::DivUIOp::create(rewriter, loc, multiply(all, next), threads);
  return {from, to};
}

/// OpenMP's own sharing of a loop costs a microsecond, and so does a region
/// that its `if` leaves to one thread: as much as a norm of one row. So the
/// loop of `omp.parallel if(c)` becomes a function of a range of its steps:
///   scf.if %c { omp.parallel { call @range(this thread's) } }
///   else { call @range(all) }
/// With norm.mirrored, thread t takes what is thread T-1-t's elsewhere.
LogicalResult Outliner::callRanges(omp::ParallelOp parallel) {
  Location loc = parallel.getLoc();
  auto share = cast<omp::WsloopOp>(parallel.getRegion().front().front());
  auto nest = cast<omp::LoopNestOp>(share.getWrappedLoop());
  rewriter.setInsertionPoint(parallel);
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  SmallVector<Value> counts = countSteps(nest);
  Value all = counts.front();
  for (Value count : ArrayRef(counts).drop_front())
    all = multiply(all, count);
  scf::IfOp choice;
  if (Value condition = parallel.getIfExpr()) {
    choice = scf::IfOp::create(rewriter, loc, condition,
                               /*withElseRegion=*/true);
    rewriter.moveOpBefore(parallel, choice.thenYield());
    parallel.getIfExprMutable().clear();
  }

  rewriter.setInsertionPoint(share);
  bool isMirrored(parallel->removeAttr(norm::kMirroredAttrName));
  auto [from, to] = shareOfThread(loc, all, isMirrored);
  auto scope = memref::AllocaScopeOp::create(rewriter, loc, TypeRange());
  Block *block = rewriter.createBlock(&scope.getBodyRegion());
  loopOverRange(nest, counts, from, to);
  // What follows the loop, such as a fence, is each thread's.
  while (share->getNextNode() != parallel.getRegion().front().getTerminator())
    rewriter.moveOpBefore(share->getNextNode(), block, block->end());
  rewriter.setInsertionPointToEnd(block);
  memref::AllocaScopeReturnOp::create(rewriter, loc);
  rewriter.eraseOp(share);
  if (failed(outline(scope, "__range")))
    return failure();

  // LLVM would make a copy of it for each of two calls, and put one call's in a
  // function of its own, whose stack norm-align-stack cannot align.
  auto call = cast<func::CallOp>(scope.getBodyRegion().front().front());
  symbols.lookup(call.getCallee())
      ->setAttr("passthrough", rewriter.getStrArrayAttr({"noinline"}));
  if (choice) {
    IRMapping whole;
    whole.map(from, zero);
    whole.map(to, all);
    rewriter.setInsertionPoint(choice.elseYield());
    for (Operation &op : scope.getBodyRegion().front().without_terminator())
      rewriter.clone(op, whole);
  }
  inlineBody(scope);
  return success();
}

namespace {
struct OutlineParallelBody
    : public norm::impl::OutlineParallelBodyPassBase<OutlineParallelBody> {
  void runOnOperation() override {
    SmallVector<memref::AllocaScopeOp> scopes;
    SmallVector<omp::ParallelOp> shared;
    getOperation().walk([&](Operation *op) {
      if (auto scope = dyn_cast<memref::AllocaScopeOp>(op);
          scope && scope.getNumResults() == 0)
        scopes.push_back(scope);
      if (auto parallel = dyn_cast<omp::ParallelOp>(op);
          parallel && holdsPlainLoop(parallel))
        shared.push_back(parallel);
    });
    Outliner outliner(getOperation());
    for (memref::AllocaScopeOp scope : scopes)
      if (failed(outliner.inlineScope(scope)))
        return signalPassFailure();
    for (omp::ParallelOp parallel : shared)
      if (failed(outliner.callRanges(parallel)))
        return signalPassFailure();
  }
};
} // namespace
