//===- Program.cpp - An entry compiled for a target -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "Norm/Transforms/Specialize.h"

#include <chrono>
#include <cstring>

using namespace norm_run;
using namespace mlir;
using namespace mlir::norm;

/// Bytes after each result that compiled code must leave alone.
static constexpr size_t kGuard = 256;
static constexpr char kCanary = '\xff';

EntryStrides norm_run::stridesOf(ArrayRef<Array> inputs) {
  bool isUnit = llvm::all_of(inputs, [](const Array &input) {
    return input.shape.empty() || input.shape.back() <= 1 ||
           input.strides.back() == 1;
  });
  return isUnit ? EntryStrides::Unit : EntryStrides::Any;
}

/// Gives the entry in `module` the extents of `arrays`.
static LogicalResult specializeEntry(ModuleOp module, Entry &entry,
                                     ArrayRef<Array> arrays) {
  SmallVector<Type> types;
  for (auto [type, array] : llvm::zip_equal(entry.getInputTypes(), arrays))
    types.push_back(type.clone(array.shape));
  return specializeArguments(module.lookupSymbol<func::FuncOp>(entry.getName()),
                             types);
}

llvm::Expected<Program> Program::compile(Entry &entry,
                                         const ProgramOptions &options) {
  using Clock = std::chrono::steady_clock;
  auto start = Clock::now();
  OwningOpRef<ModuleOp> module = entry.getModule().clone();
  Program program;
  program.emulated = options.target == Target::GpuEmulated;
  if (program.emulated)
    if (llvm::Error error = loadEmulator())
      return error;
  if (!options.arrays.empty() &&
      failed(specializeEntry(*module, entry, options.arrays)))
    return llvm::createStringError("'" + entry.getName() +
                                   "' could not be specialized");
  if (failed(lowerForTarget(*module, options.target, options.strides,
                            options.threads, &program.numCopies)))
    return llvm::createStringError("'" + entry.getName() +
                                   "' could not be lowered");
  auto compiled = CompiledModule::create(*module, options.optimization);
  if (!compiled)
    return compiled.takeError();
  program.compiled = std::move(*compiled);
  auto function = program.compiled->lookup(entry.getName());
  if (!function)
    return function.takeError();
  program.function = *function;
  program.compileSeconds =
      std::chrono::duration<double>(Clock::now() - start).count();
  return program;
}

llvm::Error Program::bind(Entry &entry, ArrayRef<Array> inputs,
                          ArrayRef<SmallVector<int64_t>> shapes) {
  frame = CallFrame();
  shared.clear();
  results.clear();
  for (const Array &input : inputs)
    frame.addArray(input);
  for (auto [type, shape] : llvm::zip_equal(entry.getResultTypes(), shapes)) {
    Array result;
    result.type = dtypesOf(type.getElementType()).front();
    result.shape = shape;
    result.strides = contiguousStrides(shape);
    result.data = allocateAligned(result.getNumBytes() + kGuard);
    if (!result.data)
      return llvm::createStringError("no memory for a result of shape " +
                                     shapeText(shape));
    std::memset(result.data.get(), kCanary, result.getNumBytes() + kGuard);
    results.push_back(std::move(result));
  }
  for (const Array &result : results)
    frame.addArray(result);
  if (!emulated)
    return llvm::Error::success();
  for (ArrayRef<Array> arrays : {inputs, ArrayRef<Array>(results)})
    for (const Array &array : arrays)
      shared.emplace_back(array);
  // The default stream.
  frame.addWord(0);
  return llvm::Error::success();
}

llvm::Error Program::checkGuards() {
  for (auto [i, result] : llvm::enumerate(results)) {
    const char *end = result.data.get() + result.getNumBytes();
    if (std::any_of(end, end + kGuard, [](char c) { return c != kCanary; }))
      return llvm::createStringError("compiled code wrote behind result " +
                                     Twine(i));
  }
  return llvm::Error::success();
}
