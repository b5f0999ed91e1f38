//===- Diagnostics.h - What the emulator says when a program is wrong -*- C++
//-*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A failed check ends the launch and is delivered once, on the stack of the
// host program: to the handler that it set, or to the standard error stream,
// after which the process ends with `failureStatus`.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_EXECUTIONENGINE_EMULATOR_DIAGNOSTICS_H
#define NORM_LIB_EXECUTIONENGINE_EMULATOR_DIAGNOSTICS_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace norm::emu {

struct Buffer;

/// The exit status of a program that failed a check.
constexpr int failureStatus = 70;

/// One instruction of the device code that the emulator watches.
struct Site {
  /// `file:line:column`, empty where the module has no debug locations.
  std::string location;
  /// The locations of the calls that it was inlined through, innermost first.
  std::vector<std::string> callers;
  /// The instruction as LLVM prints it; only where there is no location.
  std::string text;
  /// Its place in the module, for orders that do not depend on addresses.
  unsigned index = 0;
  /// The array that it touched last: most sites touch only one.
  Buffer *lastBuffer = nullptr;
  /// The state of the memory that `lastBuffer` belongs to.
  uint64_t memoryVersion = 0;
  /// How many times one lane ran it; scratch of the counters.
  unsigned occurrence = 0;
};

/// A failure: the message and where, with the other instruction involved.
struct Failure {
  std::string message;
  const Site *site = nullptr;
  std::string note;
  const Site *noteSite = nullptr;
};

/// The text of a failure as it is printed, one line for the error and one for
/// each note. `context` says which thread of which kernel.
std::string render(const Failure &failure, llvm::StringRef context);

using ErrorHandler = void (*)(const char *message, void *userData);

/// Sets who is told of failures; null restores printing and exiting.
void setErrorHandler(ErrorHandler handler, void *userData);

/// How many failures were delivered, and the text of the last one.
uint64_t errorCount();
const std::string &lastError();

/// Tells the handler and returns, or prints and ends the process.
void deliver(const std::string &text);

/// As `deliver`, for what is wrong with a call or a module and not with an
/// instruction of it.
void failCall(const std::string &message);

/// For wrong settings, which no handler can have been set for yet.
[[noreturn]] void failSetup(const std::string &message);

} // namespace norm::emu

#endif // NORM_LIB_EXECUTIONENGINE_EMULATOR_DIAGNOSTICS_H
