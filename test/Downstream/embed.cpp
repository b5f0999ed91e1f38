//===- embed.cpp - A compiler that embeds norm -----------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Builds a norm op with its C++ builder, parses another from text, asks both
// for their facts through the interface, runs a pass, and prints the result.
//
//===----------------------------------------------------------------------===//

#include "Norm/IR/NormDialect.h"
#include "Norm/IR/NormOps.h"
#include "Norm/RegisterAll.h"
#include "Norm/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

static constexpr const char *kText = R"mlir(
func.func @parsed(%x: tensor<4x8xf32>, %g: tensor<8xf32>) -> tensor<4x8xf32> {
  %y = norm.rms_norm %x scale(%g : tensor<8xf32>) axes [1]
      epsilon inside_sqrt 1.0e-6 : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
)mlir";

/// Adds `@built(x, scale) { return layer_norm(x) }` to the module.
static void addBuiltFunction(ModuleOp module) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Location loc = builder.getUnknownLoc();
  auto type = RankedTensorType::get({4, 8}, builder.getF32Type());
  auto gain = RankedTensorType::get({8}, builder.getF32Type());
  auto func = func::FuncOp::create(
      builder, loc, "built", builder.getFunctionType({type, gain}, {type}));
  Block *body = func.addEntryBlock();
  builder.setInsertionPointToStart(body);
  auto epsilon = norm::EpsilonAttr::get(
      builder.getContext(), norm::EpsilonPlacement::InsideSqrt, 1.0e-5);
  auto normOp = norm::LayerNormOp::create(
      builder, loc, /*x=*/body->getArgument(0), /*scale=*/body->getArgument(1),
      /*shift=*/Value(), /*axes=*/ArrayRef<int64_t>{1}, epsilon);
  func::ReturnOp::create(builder, loc, normOp.getY());
}

int main() {
  DialectRegistry registry;
  registry.insert<func::FuncDialect>();
  norm::registerAllDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();

  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kText, &context);
  if (!module)
    return 1;
  addBuiltFunction(*module);
  if (failed(verify(*module)))
    return 1;

  module->walk([](norm::NormOpInterface op) {
    llvm::outs() << "found " << op->getName() << ": "
                 << (op.isCentred() ? "centred" : "not centred") << ", epsilon "
                 << op.getEpsilon().getDouble() << "\n";
  });

  PassManager pm(&context);
  pm.addPass(norm::createLowerNormToLinalgPass());
  if (failed(pm.run(*module)))
    return 1;
  bool left = false;
  module->walk([&](norm::NormOpInterface) { left = true; });
  llvm::outs() << (left ? "norm ops are left\n" : "all lowered\n");
  module->print(llvm::outs());
  return left ? 1 : 0;
}
