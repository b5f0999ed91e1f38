//===- Fixture.h - A function to build norm ops in -------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_UNITTESTS_IR_FIXTURE_H
#define NORM_UNITTESTS_IR_FIXTURE_H

#include "Norm/IR/NormDialect.h"
#include "Norm/IR/NormOps.h"
#include "Norm/RegisterAll.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

namespace mlir::norm {

/// A function with arguments of the given types to build ops in.
class FunctionTest : public ::testing::Test {
protected:
  FunctionTest() : builder(&context) {
    DialectRegistry registry;
    registry.insert<func::FuncDialect>();
    registerAllDialects(registry);
    // What an embedding compiler registers to compare dynamic extents.
    tensor::registerValueBoundsOpInterfaceExternalModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    loc = builder.getUnknownLoc();
    epsilon = EpsilonAttr::get(&context, EpsilonPlacement::InsideSqrt, 1.0e-5);
  }

  /// Starts a function; its arguments are returned by `argument`.
  void start(ArrayRef<Type> types) {
    module = ModuleOp::create(builder, loc);
    builder.setInsertionPointToEnd(module->getBody());
    auto func = func::FuncOp::create(builder, loc, "f",
                                     builder.getFunctionType(types, {}));
    body = func.addEntryBlock();
    builder.setInsertionPointToStart(body);
    auto end = func::ReturnOp::create(builder, loc);
    builder.setInsertionPoint(end);
  }

  Value argument(unsigned index) { return body->getArgument(index); }

  RankedTensorType tensor(ArrayRef<int64_t> shape, Type element) {
    return RankedTensorType::get(shape, element);
  }
  Type f32() { return builder.getF32Type(); }
  Type bf16() { return builder.getBF16Type(); }

  MLIRContext context;
  OpBuilder builder;
  Location loc = UnknownLoc::get(&context);
  EpsilonAttr epsilon;
  OwningOpRef<ModuleOp> module;
  Block *body = nullptr;
};

} // namespace mlir::norm

#endif // NORM_UNITTESTS_IR_FIXTURE_H
