//===- Timing.cpp - Timing beside a copy -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Timing.h"

#include "Norm/Pipelines/Pipelines.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <chrono>
#include <cstring>

using namespace norm_run;
using namespace mlir;
using namespace mlir::norm;

/// The copy goes the way of compiled code, so that it runs on the same threads.
static constexpr StringLiteral kCopyModule = R"(
func.func @copy(%source: !llvm.ptr, %target: !llvm.ptr, %bytes: i64,
                %parts: i64) attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %line = arith.constant 64 : i64
  %per_part = arith.ceildivui %bytes, %parts : i64
  %lines = arith.ceildivui %per_part, %line : i64
  %size = arith.muli %lines, %line : i64
  %count = arith.index_cast %parts : i64 to index
  scf.parallel (%part) = (%zero) to (%count) step (%one) {
    %index = arith.index_cast %part : index to i64
    %start = arith.muli %index, %size : i64
    %first = arith.minui %start, %bytes : i64
    %left = arith.subi %bytes, %first : i64
    %length = arith.minui %size, %left : i64
    %from = llvm.getelementptr %source[%first] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %to = llvm.getelementptr %target[%first] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    "llvm.intr.memcpy"(%to, %from, %length) <{isVolatile = false}>
        : (!llvm.ptr, !llvm.ptr, i64) -> ()
    scf.reduce
  }
  return
}
)";

static llvm::Expected<std::unique_ptr<CompiledModule>>
compileCopy(MLIRContext *context) {
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(kCopyModule, context);
  PassManager pm(context, ModuleOp::getOperationName());
  buildLowerToLLVM(pm, LowerToLLVMOptions());
  if (!module || failed(pm.run(*module)))
    return llvm::createStringError("the copy to compare with did not compile");
  return CompiledModule::create(*module);
}

static Times summarize(std::vector<double> &seconds) {
  llvm::sort(seconds);
  return {seconds[seconds.size() / 2], seconds.front()};
}

llvm::Expected<Timing> norm_run::timeBesideCopy(MLIRContext *context,
                                                llvm::function_ref<void()> run,
                                                size_t bytes, unsigned threads,
                                                unsigned runs) {
  auto compiled = compileCopy(context);
  if (!compiled)
    return compiled.takeError();
  auto function = (*compiled)->lookup("copy");
  if (!function)
    return function.takeError();

  size_t half = bytes / 2;
  AlignedBytes source = allocateAligned(half), target = allocateAligned(half);
  if (!source || !target)
    return llvm::createStringError("no memory for the copy to compare with");
  std::memset(source.get(), 1, half);
  std::memset(target.get(), 2, half);
  CallFrame copy;
  copy.addWord(reinterpret_cast<uint64_t>(source.get()));
  copy.addWord(reinterpret_cast<uint64_t>(target.get()));
  copy.addWord(half);
  copy.addWord(threads);

  using Clock = std::chrono::steady_clock;
  auto seconds = [](auto &&work) {
    auto start = Clock::now();
    work();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  run();
  copy.call(*function);
  int64_t allocations = CompiledModule::getNumAllocations();
  std::vector<double> functionTimes, copyTimes;
  for (unsigned i = 0; i < runs; ++i) {
    functionTimes.push_back(seconds(run));
    copyTimes.push_back(seconds([&] { copy.call(*function); }));
  }
  Timing timing;
  timing.allocationsPerRun =
      double(CompiledModule::getNumAllocations() - allocations) / runs;
  timing.function = summarize(functionTimes);
  timing.copy = summarize(copyTimes);
  timing.bytes = 2 * half;
  return timing;
}
