//===- Program.h - An entry compiled for a target -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_TOOLS_NORM_RUN_PROGRAM_H
#define NORM_TOOLS_NORM_RUN_PROGRAM_H

#include "Emulated.h"

#include "Norm/ExecutionEngine/Entry.h"
#include "Norm/ExecutionEngine/Jit.h"

namespace norm_run {

/// The one body that calls with such arrays need.
mlir::norm::EntryStrides stridesOf(llvm::ArrayRef<mlir::norm::Array> inputs);

/// What an entry is compiled for.
struct ProgramOptions {
  mlir::norm::Target target = mlir::norm::Target::Cpu;
  mlir::norm::EntryStrides strides = mlir::norm::EntryStrides::Dispatch;
  /// Of the target cpu.
  bool threads = true;
  /// Of LLVM, 0 to 3.
  unsigned optimization = 2;
  /// Arrays whose extents arguments have; empty: any that their types allow.
  llvm::ArrayRef<mlir::norm::Array> arrays;
};

/// An entry compiled for one target, with memory for its results.
class Program {
public:
  /// Fails if the entry cannot be lowered; then a diagnostic says why.
  static llvm::Expected<Program> compile(mlir::norm::Entry &entry,
                                         const ProgramOptions &options);

  /// Binds the arguments, and allocates results of these shapes, filled with a
  /// pattern that is a NaN in float types. What was bound before is dropped.
  /// The inputs must outlive the next run.
  llvm::Error bind(mlir::norm::Entry &entry,
                   llvm::ArrayRef<mlir::norm::Array> inputs,
                   llvm::ArrayRef<llvm::SmallVector<int64_t>> shapes);

  void run() { frame.call(function); }

  /// Checks that nothing was written behind a result.
  llvm::Error checkGuards();

  llvm::ArrayRef<mlir::norm::Array> getResults() { return results; }

  /// Copies from buffer to buffer in the code.
  int64_t getNumCopies() const { return numCopies; }
  /// How long it took to compile, from norm ops to machine code.
  double getCompileSeconds() const { return compileSeconds; }

private:
  std::unique_ptr<mlir::norm::CompiledModule> compiled;
  void (*function)(void **) = nullptr;
  int64_t numCopies = 0;
  double compileSeconds = 0;
  std::vector<mlir::norm::Array> results;
  /// What emulated kernels may touch.
  std::vector<SharedArray> shared;
  bool emulated = false;
  mlir::norm::CallFrame frame;
};

} // namespace norm_run

#endif // NORM_TOOLS_NORM_RUN_PROGRAM_H
