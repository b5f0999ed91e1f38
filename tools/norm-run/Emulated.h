//===- Emulated.h - Running kernels without a GPU -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_TOOLS_NORM_RUN_EMULATED_H
#define NORM_TOOLS_NORM_RUN_EMULATED_H

#include "Norm/ExecutionEngine/Npy.h"

#include "llvm/Support/Error.h"

#include <string>

namespace norm_run {

/// Opens libnorm_emu and makes its functions known to compiled code. It stays
/// until the process ends.
llvm::Error loadEmulator();

/// Also starts counting what kernels do to memory, which takes time.
llvm::Error countEmulated();

/// What was counted so far.
std::string emulatorCounters();

/// Kernels may touch the elements of an array while this lives.
class SharedArray {
public:
  explicit SharedArray(const mlir::norm::Array &array);
  ~SharedArray();
  SharedArray(SharedArray &&other) noexcept;
  SharedArray &operator=(SharedArray &&other) noexcept;

private:
  /// Null once it was moved from, and for arrays without elements.
  char *data = nullptr;
};

} // namespace norm_run

#endif // NORM_TOOLS_NORM_RUN_EMULATED_H
