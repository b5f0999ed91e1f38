//===- ProcessEnd.h - Whether the process ends -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program's destructors unload its modules when the process ends: after the
// handlers of that, which take down what modules are made of (LLVM, a driver).
// For both runtimes, each with a flag of its own.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_EXECUTIONENGINE_PROCESSEND_H
#define NORM_LIB_EXECUTIONENGINE_PROCESSEND_H

#include <cstdlib>

/// Whether the process ends, from the first call of watchProcessEnd on.
static bool isEnding = false;

static inline void watchProcessEnd() {
  static int registered = std::atexit([] { isEnding = true; });
  (void)registered;
}

#endif // NORM_LIB_EXECUTIONENGINE_PROCESSEND_H
