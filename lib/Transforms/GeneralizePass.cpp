//===- GeneralizePass.cpp - norm-generalize -------------------------------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// To cut a function, the norm is first rewritten with a marker at each
// exchange: a cast from one part, [1, ..], to any number of them, [?, ..]. A
// stage is the whole function up to the markers of its exchange, which it
// returns; the markers of earlier exchanges are its arguments. What a stage
// does not need is dead, and what several need each computes, which is cheaper
// than passing tensors of x's size from one to the next.
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "Norm/Transforms/Generalize.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::norm {
#define GEN_PASS_DEF_GENERALIZENORMPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

static bool isNamedNorm(Operation *op) {
  return isa<NormOpInterface, NormBackwardOpInterface>(op);
}

static LogicalResult generalize(RowOpInterface op,
                                const GeneralizeOptions &options) {
  IRRewriter rewriter(op->getContext());
  rewriter.setInsertionPoint(op);
  FailureOr<SmallVector<Value>> values = generalizeNorm(op, rewriter, options);
  if (failed(values))
    return failure();
  rewriter.replaceOp(op, *values);
  return success();
}

//===----------------------------------------------------------------------===//
// Cutting
//===----------------------------------------------------------------------===//

namespace {
/// Cuts one function that holds one named norm.
class FunctionCutter {
public:
  FunctionCutter(func::FuncOp function, RowOpInterface op)
      : function(function), op(op) {}

  LogicalResult run(GeneralizeOptions options, SymbolTable &symbols);

private:
  LogicalResult verify(SymbolTable &symbols);
  func::FuncOp buildStage(size_t stage, StringRef name);

  func::FuncOp function;
  RowOpInterface op;
  /// One list of markers for each exchange.
  SmallVector<SmallVector<Operation *>> exchanges;
};
} // namespace

LogicalResult FunctionCutter::verify(SymbolTable &symbols) {
  if (!function.getBody().hasOneBlock() ||
      op->getBlock() != &function.getBody().front())
    return op->emitOpError(
        "expected to be in the only block of the function that is cut");
  auto result = function.walk([&](Operation *other) -> WalkResult {
    if (other == function || isa<func::ReturnOp, cf::AssertOp>(other) ||
        (!isa<CallOpInterface>(other) && isMemoryEffectFree(other)))
      return WalkResult::advance();
    return other->emitOpError("expected no effects in a function that is cut");
  });
  if (result.wasInterrupted())
    return failure();
  if (!SymbolTable::symbolKnownUseEmpty(function, symbols.getOp()))
    return function.emitOpError("expected no uses of a function that is cut");
  return success();
}

func::FuncOp FunctionCutter::buildStage(size_t stage, StringRef name) {
  IRMapping mapping;
  OpBuilder builder(function);
  auto clone = cast<func::FuncOp>(builder.clone(*function, mapping));
  clone.setName(name);
  for (size_t exchange = 0; exchange < stage; ++exchange)
    for (Operation *marker : exchanges[exchange]) {
      Type type = marker->getResult(0).getType();
      unsigned number = clone.getNumArguments();
      (void)clone.insertArgument(number, type, {}, marker->getLoc());
      mapping.lookup(marker->getResult(0))
          .replaceAllUsesWith(clone.getArgument(number));
    }
  Block &body = clone.getBody().front();
  if (stage < exchanges.size()) {
    Operation *terminator = body.getTerminator();
    terminator->setOperands(
        llvm::map_to_vector(exchanges[stage], [&](Operation *marker) {
          return mapping.lookup(marker->getOperand(0));
        }));
    clone.setFunctionType(builder.getFunctionType(
        body.getArgumentTypes(), terminator->getOperandTypes()));
    clone.removeResAttrsAttr();
    // It names a result that only the last stage has.
    for (unsigned i = 0; i < clone.getNumArguments(); ++i)
      clone.removeArgAttr(i, kInplaceAttrName);
  }
  IRRewriter rewriter(clone.getContext());
  for (Operation &dead :
       llvm::make_early_inc_range(llvm::reverse(body.getOperations())))
    if (isOpTriviallyDead(&dead))
      rewriter.eraseOp(&dead);
  return clone;
}

LogicalResult FunctionCutter::run(GeneralizeOptions options,
                                  SymbolTable &symbols) {
  if (failed(verify(symbols)))
    return failure();
  options.exchange = [&](OpBuilder &b, Location loc, ValueRange ofPart) {
    SmallVector<Operation *> &markers = exchanges.emplace_back();
    return llvm::map_to_vector(ofPart, [&](Value value) -> Value {
      auto type = cast<RankedTensorType>(value.getType());
      SmallVector<int64_t> shape = llvm::to_vector(type.getShape());
      shape[0] = ShapedType::kDynamic;
      markers.push_back(UnrealizedConversionCastOp::create(
          b, loc, Type(type.clone(shape)), value));
      return markers.back()->getResult(0);
    });
  };
  if (failed(generalize(op, options)))
    return failure();
  for (size_t stage = 0; stage <= exchanges.size(); ++stage) {
    std::string name = (function.getName() + "." + Twine(stage)).str();
    if (symbols.lookup(name))
      return function.emitOpError("expected no other '@") << name << "'";
    symbols.insert(buildStage(stage, name));
  }
  symbols.erase(function);
  return success();
}

static LogicalResult cutFunctions(ModuleOp module,
                                  const GeneralizeOptions &options) {
  SymbolTable symbols(module);
  for (auto function :
       llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    SmallVector<RowOpInterface> norms;
    function.walk([&](RowOpInterface op) {
      if (isNamedNorm(op))
        norms.push_back(op);
    });
    if (norms.empty())
      continue;
    if (norms.size() > 1)
      return function.emitOpError("expected one named norm in a function that "
                                  "is cut, got ")
             << norms.size();
    if (failed(FunctionCutter(function, norms.front()).run(options, symbols)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct GeneralizeNorm
    : public norm::impl::GeneralizeNormPassBase<GeneralizeNorm> {
  using GeneralizeNormPassBase::GeneralizeNormPassBase;

  LogicalResult checkOptions() {
    auto refuse = [&](const Twine &expected, int64_t got) {
      return emitError(getOperation().getLoc(), "expected ")
             << expected << ", got " << got;
    };
    if (parts < 0)
      return refuse("'parts' of at least 0", parts);
    if (cut && parts != 0)
      return refuse("'parts' 0 with 'cut', which makes x a part", parts);
    if (axis < -1)
      return refuse("'axis' of at least -1", axis);
    return success();
  }

  void runOnOperation() override {
    if (failed(checkOptions()))
      return signalPassFailure();
    GeneralizeOptions options;
    options.parts = parts;
    if (axis != -1)
      options.axis = axis;
    if (cut) {
      if (failed(cutFunctions(getOperation(), options)))
        signalPassFailure();
      return;
    }
    SmallVector<RowOpInterface> norms;
    getOperation().walk([&](RowOpInterface op) {
      if (isNamedNorm(op))
        norms.push_back(op);
    });
    for (RowOpInterface op : norms)
      if (failed(generalize(op, options)))
        return signalPassFailure();
  }
};
} // namespace
