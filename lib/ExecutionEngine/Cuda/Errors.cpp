//===- Errors.cpp - Who is told of failures -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"
#include "Norm/ExecutionEngine/Cuda.h"

#include <cstdio>
#include <iostream>
#include <mutex>
#include <unistd.h>

/// The exit status of a program that failed; libnorm_emu has the same.
static constexpr int failureStatus = 70;

namespace {
struct State {
  std::mutex mutex;
  NormCudaErrorHandler handler = nullptr;
  void *userData = nullptr;
  uint64_t count = 0;
  std::string last;
};
} // namespace

static State &state() {
  static State instance;
  return instance;
}

void norm::cuda::fail(const std::string &message) {
  State &s = state();
  std::unique_lock<std::mutex> lock(s.mutex);
  ++s.count;
  s.last = "norm-cuda: error: " + message + "\n";
  if (s.handler) {
    NormCudaErrorHandler handler = s.handler;
    void *userData = s.userData;
    std::string text = s.last;
    lock.unlock();
    handler(text.c_str(), userData);
    return;
  }
  // Compiled code is on the stack: its destructors cannot run any more, but
  // what the program printed must not be lost.
  std::cout.flush();
  std::fflush(nullptr);
  std::fputs(s.last.c_str(), stderr);
  _exit(failureStatus);
}

#define NORM_EXPORT extern "C" __attribute__((visibility("default")))

NORM_EXPORT void normCudaSetErrorHandler(NormCudaErrorHandler handler,
                                         void *userData) {
  std::lock_guard<std::mutex> lock(state().mutex);
  state().handler = handler;
  state().userData = userData;
}

NORM_EXPORT uint64_t normCudaErrorCount(void) {
  std::lock_guard<std::mutex> lock(state().mutex);
  return state().count;
}

NORM_EXPORT const char *normCudaLastError(void) {
  std::lock_guard<std::mutex> lock(state().mutex);
  return state().last.c_str();
}
