//===- Timing.h - Timing beside a copy -------------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_TOOLS_NORM_RUN_TIMING_H
#define NORM_TOOLS_NORM_RUN_TIMING_H

#include "Norm/ExecutionEngine/Jit.h"

namespace norm_run {

/// Seconds.
struct Times {
  double median = 0.0, least = 0.0;
};

struct Timing {
  Times function, copy;
  /// Bytes that one copy reads and writes together.
  size_t bytes = 0;
  double allocationsPerRun = 0.0;
};

/// Times `run`, in turn with a copy that reads and writes `bytes` in all on
/// `threads` threads.
llvm::Expected<Timing> timeBesideCopy(mlir::MLIRContext *context,
                                      llvm::function_ref<void()> run,
                                      size_t bytes, unsigned threads,
                                      unsigned runs);

} // namespace norm_run

#endif // NORM_TOOLS_NORM_RUN_TIMING_H
