//===- Counters.cpp - What kernels did to memory -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Counters.h"

#include "Options.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <tuple>

using namespace norm::emu;

/// What the memory system moves at least, and what it addresses at once.
static constexpr uintptr_t sectorBytes = 32;
static constexpr unsigned bankCount = 32, bankBytes = 4;

Counters &norm::emu::counters() {
  static Counters instance;
  return instance;
}

void Counters::beginLaunch(const std::string &kernel, unsigned threadCount) {
  active = nullptr;
  if (!options().count)
    return;
  active = &kernels[kernel];
  ++active->launches;
  if (logs.size() < threadCount)
    logs.resize(threadCount);
}

void Counters::endLaunch() {
  active = nullptr;
  for (auto &log : logs)
    log.clear();
}

/// Sectors that some byte of some lane lies in.
static uint64_t countSectors(const std::vector<const LoggedAccess *> &lanes) {
  std::vector<uintptr_t> sectors;
  for (const LoggedAccess *lane : lanes)
    for (uintptr_t s = lane->place / sectorBytes;
         s <= (lane->place + lane->size - 1) / sectorBytes; ++s)
      sectors.push_back(s);
  llvm::sort(sectors);
  return llvm::unique(sectors) - sectors.begin();
}

void Counters::countGlobal(const std::vector<const LoggedAccess *> &lanes) {
  const LoggedAccess &first = *lanes.front();
  if (!first.buffer)
    return;
  ArrayCounters &array = active->arrays[first.buffer->describe()];
  if (array.launch != active->launches) {
    array.launch = active->launches;
    array.size += first.buffer->size;
  }
  uint64_t bytes = 0, sectors = countSectors(lanes);
  for (const LoggedAccess *lane : lanes)
    bytes += lane->size;
  auto add = [&](Traffic &traffic) {
    traffic.bytes += bytes;
    traffic.requests += 1;
    traffic.sectors += sectors;
  };
  if (first.kind != Access::Write)
    add(array.read);
  if (first.kind != Access::Read)
    add(array.written);
}

/// The most different words of one bank that some of the lanes ask for.
static uint64_t countPasses(const LoggedAccess *const *begin,
                            const LoggedAccess *const *end) {
  std::vector<uintptr_t> words;
  for (const auto *it = begin; it != end; ++it)
    for (uintptr_t w = (*it)->place / bankBytes;
         w <= ((*it)->place + (*it)->size - 1) / bankBytes; ++w)
      words.push_back(w);
  llvm::sort(words);
  words.erase(llvm::unique(words), words.end());
  uint64_t perBank[bankCount] = {}, most = 0;
  for (uintptr_t w : words)
    most = std::max(most, ++perBank[w % bankCount]);
  return most;
}

/// Accesses of 8 and 16 bytes are served for 16 and 8 lanes at a time.
void Counters::countShared(const std::vector<const LoggedAccess *> &lanes) {
  size_t size = lanes.front()->size;
  size_t group = size <= 4 ? 32 : size <= 8 ? 16 : 8;
  for (const LoggedAccess *lane : lanes) {
    if (lane->kind != Access::Write)
      active->sharedReadBytes += lane->size;
    if (lane->kind != Access::Read)
      active->sharedWrittenBytes += lane->size;
  }
  ++active->sharedRequests;
  for (size_t i = 0; i < lanes.size(); i += group) {
    const auto *begin = lanes.data() + i;
    const auto *end = lanes.data() + std::min(i + group, lanes.size());
    ++active->sharedPasses;
    active->bankConflicts += countPasses(begin, end) - 1;
  }
}

void Counters::countWarp(unsigned firstThread, unsigned threadCount) {
  std::vector<WarpAccess> accesses;
  for (unsigned t = firstThread; t < threadCount && t < firstThread + 32; ++t) {
    for (LoggedAccess &access : logs[t])
      access.site->occurrence = 0;
    for (const LoggedAccess &access : logs[t])
      accesses.push_back(
          {access.site->index, access.site->occurrence++, t, &access});
  }
  llvm::sort(accesses, [](const WarpAccess &a, const WarpAccess &b) {
    return std::tie(a.site, a.occurrence, a.thread) <
           std::tie(b.site, b.occurrence, b.thread);
  });
  std::vector<const LoggedAccess *> lanes;
  for (size_t i = 0; i < accesses.size(); ++i) {
    const WarpAccess &access = accesses[i];
    lanes.push_back(access.access);
    // A pointer may be to either memory, and into another array in each lane.
    if (i + 1 < accesses.size()) {
      const WarpAccess &next = accesses[i + 1];
      if (next.site == access.site && next.occurrence == access.occurrence &&
          next.access->buffer == access.access->buffer &&
          next.access->shared == access.access->shared)
        continue;
    }
    if (access.access->shared)
      countShared(lanes);
    else
      countGlobal(lanes);
    lanes.clear();
  }
}

void Counters::endBlock(unsigned threadCount) {
  if (!active)
    return;
  ++active->blocks;
  active->threads += threadCount;
  for (unsigned t = 0; t < threadCount; t += 32)
    countWarp(t, threadCount);
  for (auto &log : logs)
    log.clear();
}
