//===- Runtime.h - What retargeted device code calls -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_EXECUTIONENGINE_EMULATOR_RUNTIME_H
#define NORM_LIB_EXECUTIONENGINE_EMULATOR_RUNTIME_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>

namespace norm::emu {

/// The special registers, in the order of Runtime::specialRegister.
enum class Register : uint32_t {
  ThreadX,
  ThreadY,
  ThreadZ,
  BlockSizeX,
  BlockSizeY,
  BlockSizeZ,
  BlockX,
  BlockY,
  BlockZ,
  GridX,
  GridY,
  GridZ,
  Lane,
  WarpSize,
  Warp,
  WarpCount,
  LanesEqual,
  LanesBelow,
  LanesBelowOrEqual,
  LanesAbove,
  LanesAboveOrEqual,
  Clock,
};

/// How an operation rounds, after PTX's names.
enum class Rounding : uint32_t { Nearest, Zero, Down, Up };

struct RuntimeFunction {
  template <typename F>
  RuntimeFunction(const char *name, F *function)
      : name(name), address(reinterpret_cast<void *>(function)) {}

  const char *name;
  void *address;
};

/// vprintf of the device, to the standard output.
int printFormatted(const char *format, const char *arguments);

/// Functions of the emulator: `norm_emu_...`.
llvm::ArrayRef<RuntimeFunction> runtimeFunctions();
/// Functions of libdevice (`__nv_...`) that this machine's C library has under
/// another name, and those that a code generator may call.
llvm::ArrayRef<RuntimeFunction> mathFunctions();

} // namespace norm::emu

#endif // NORM_LIB_EXECUTIONENGINE_EMULATOR_RUNTIME_H
