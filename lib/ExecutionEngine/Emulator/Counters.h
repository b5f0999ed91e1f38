//===- Counters.h - What kernels did to memory -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Accesses are logged per thread. At the end of a block the n-th execution of
// an instruction by one lane is put together with those by the other lanes of
// its warp: that is the access which the hardware would serve at once.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_EXECUTIONENGINE_EMULATOR_COUNTERS_H
#define NORM_LIB_EXECUTIONENGINE_EMULATOR_COUNTERS_H

#include "Memory.h"

#include <map>
#include <string>
#include <vector>

namespace norm::emu {

/// Of one direction, read or written.
struct Traffic {
  /// Bytes that threads asked for.
  uint64_t bytes = 0;
  /// Instructions of warps.
  uint64_t requests = 0;
  /// Sectors of 32 bytes that these instructions touch.
  uint64_t sectors = 0;
};

struct ArrayCounters {
  /// Bytes of the arrays that launches passed here, over all launches.
  uint64_t size = 0;
  /// The launch that was counted in `size` last.
  uint64_t launch = 0;
  Traffic read, written;
};

struct KernelCounters {
  uint64_t launches = 0, blocks = 0, threads = 0;
  /// Barriers opened, shuffles and other exchanges of a warp.
  uint64_t barriers = 0, shuffles = 0, otherExchanges = 0;
  uint64_t sharedReadBytes = 0, sharedWrittenBytes = 0;
  /// Instructions of warps on shared memory, the passes over its banks that
  /// they take without conflicts, and the passes that conflicts add.
  uint64_t sharedRequests = 0, sharedPasses = 0, bankConflicts = 0;
  /// By what the array is: "argument 0", in the order of arguments.
  std::map<std::string, ArrayCounters> arrays;
};

struct LoggedAccess {
  Site *site;
  /// An address, or an offset into shared memory.
  uintptr_t place;
  size_t size;
  Access kind;
  bool shared;
  Buffer *buffer;
};

class Counters {
public:
  void beginLaunch(const std::string &kernel, unsigned threadCount);
  void log(unsigned thread, const LoggedAccess &access) {
    if (active)
      logs[thread].push_back(access);
  }
  void countBarrier() {
    if (active)
      ++active->barriers;
  }
  void countExchange(bool shuffle) {
    if (active)
      ++(shuffle ? active->shuffles : active->otherExchanges);
  }
  void endBlock(unsigned threadCount);
  /// Forgets what a block that failed had logged.
  void endLaunch();

  void reset() { kernels.clear(); }
  bool empty() const { return kernels.empty(); }
  std::string text() const;
  std::string json() const;

private:
  struct WarpAccess {
    unsigned site, occurrence, thread;
    const LoggedAccess *access;
  };

  void countWarp(unsigned firstThread, unsigned threadCount);
  void countGlobal(const std::vector<const LoggedAccess *> &lanes);
  void countShared(const std::vector<const LoggedAccess *> &lanes);

  std::map<std::string, KernelCounters> kernels;
  KernelCounters *active = nullptr;
  std::vector<std::vector<LoggedAccess>> logs;
};

Counters &counters();

/// Prints what the environment asked for, once.
void printCountersAtEnd();

} // namespace norm::emu

#endif // NORM_LIB_EXECUTIONENGINE_EMULATOR_COUNTERS_H
