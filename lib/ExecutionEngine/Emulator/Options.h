//===- Options.h - What the environment asks of the emulator -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The environment variables of docs/Emulator.md, read once, before the first
// module is loaded; the C interface changes them afterwards.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_EXECUTIONENGINE_EMULATOR_OPTIONS_H
#define NORM_LIB_EXECUTIONENGINE_EMULATOR_OPTIONS_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace norm::emu {

/// The checks of accesses that can be switched off, by name. The others (bad
/// barriers and exchanges, deadlock) cost nothing and are always on: without
/// them a launch could not go on.
enum Check : unsigned {
  CheckBounds = 1u << 0,        // bounds
  CheckAlignment = 1u << 1,     // alignment
  CheckRaces = 1u << 2,         // races
  CheckUninitialized = 1u << 3, // uninitialized
  CheckBlocks = 1u << 4,        // blocks
  CheckAliasing = 1u << 5,      // aliasing
  CheckAll = (1u << 6) - 1,
};

/// How counters are printed when the program ends.
enum class CounterFormat { None, Text, Json };

struct Options {
  /// Order of blocks, warps and lanes: 0 is ascending, any other value
  /// shuffles.
  uint64_t seed = 0;
  unsigned checks = CheckAll;
  /// Whether accesses are counted, which takes memory and time.
  bool count = false;
  CounterFormat format = CounterFormat::None;
  /// Where counters are printed to; empty is the standard error stream.
  std::string counterFile;
};

/// The options in force. The first call reads the environment and ends the
/// program with a message if a variable has a value that is not understood.
Options &options();

/// Reads a list of checks as NORM_EMU_CHECK has it: `all`, `none`, names, or
/// `-name` to leave one out. False if a name is unknown; it is then in `bad`.
bool parseChecks(llvm::StringRef text, unsigned &checks, std::string &bad);

} // namespace norm::emu

#endif // NORM_LIB_EXECUTIONENGINE_EMULATOR_OPTIONS_H
