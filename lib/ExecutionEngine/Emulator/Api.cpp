//===- Api.cpp - The C interface of the emulator -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Counters.h"
#include "Machine.h"
#include "Norm/ExecutionEngine/Emulator.h"
#include "Options.h"

using namespace norm::emu;

#define NORM_EXPORT extern "C" __attribute__((visibility("default")))

NORM_EXPORT void normEmuSetErrorHandler(NormEmuErrorHandler handler,
                                        void *userData) {
  setErrorHandler(handler, userData);
}

NORM_EXPORT uint64_t normEmuErrorCount(void) { return errorCount(); }

NORM_EXPORT const char *normEmuLastError(void) { return lastError().c_str(); }

NORM_EXPORT void normEmuSetSeed(uint64_t seed) { options().seed = seed; }

NORM_EXPORT bool normEmuSetChecks(const char *checks) {
  unsigned parsed = 0;
  std::string bad;
  if (!parseChecks(checks, parsed, bad))
    return false;
  options().checks = parsed;
  return true;
}

NORM_EXPORT void normEmuEnableCounters(bool enable) {
  options().count = enable;
}

NORM_EXPORT void normEmuResetCounters(void) { counters().reset(); }

NORM_EXPORT const char *normEmuCountersText(void) {
  static std::string text;
  text = counters().text();
  return text.c_str();
}

NORM_EXPORT const char *normEmuCountersJson(void) {
  static std::string text;
  text = counters().json();
  return text.c_str();
}

NORM_EXPORT void normEmuRegister(void *data, size_t size) {
  std::lock_guard<std::recursive_mutex> lock(machine().mutex);
  memory().add(static_cast<char *>(data), size);
}

NORM_EXPORT bool normEmuUnregister(void *data) {
  std::lock_guard<std::recursive_mutex> lock(machine().mutex);
  return memory().remove(static_cast<char *>(data));
}
