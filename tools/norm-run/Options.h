//===- Options.h - The command line of norm-run ----------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_TOOLS_NORM_RUN_OPTIONS_H
#define NORM_TOOLS_NORM_RUN_OPTIONS_H

#include "Norm/ExecutionEngine/Jit.h"

#include <optional>
#include <string>
#include <vector>

namespace norm_run {

enum class Emit { None, MLIR, LLVM };

struct Options {
  std::string file;
  std::string entry = "main";
  std::vector<std::string> inputs, outputs;
  mlir::norm::Target target = mlir::norm::Target::Cpu;
  bool compare = false;
  /// Print what kernels did to memory.
  bool gpuCounters = false;
  /// Compile for the extents of the arrays.
  bool specialize = false;
  /// LLVM's level; without one, as the target needs it.
  std::optional<unsigned> optimization;
  std::optional<double> tolerance;
  unsigned timedRuns = 0;
  /// 0: what the OpenMP runtime chooses.
  unsigned threads = 0;
  Emit emit = Emit::None;
  bool help = false;
};

extern const char *const kUsage;

/// Parses the arguments without the program's name.
llvm::Expected<Options> parseOptions(llvm::ArrayRef<const char *> arguments);

} // namespace norm_run

#endif // NORM_TOOLS_NORM_RUN_OPTIONS_H
