//===- Runtime.cpp - What retargeted device code calls -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runtime.h"

#include "Machine.h"

#include <cstring>

using namespace norm::emu;

// Sites are passed as numbers: the code has their addresses in it.
static Site *toSite(uint64_t site) { return reinterpret_cast<Site *>(site); }

static void access(char *p, uint64_t size, uint32_t alignment, uint32_t kind,
                   uint64_t site) {
  machine().access(p, size, alignment, static_cast<Access>(kind), toSite(site));
}

static uint32_t component(const Dim3 &d, uint32_t k) {
  return static_cast<uint32_t>(k == 0 ? d.x : k == 1 ? d.y : d.z);
}

static uint32_t laneRegister(Register which, const Thread &self) {
  uint32_t bit = 1u << self.lane;
  switch (which) {
  case Register::Lane:
    return self.lane;
  case Register::WarpSize:
    return warpSize;
  case Register::Warp:
    return self.warp;
  case Register::WarpCount:
    return static_cast<uint32_t>(
        (machine().blockSize().volume() + warpSize - 1) / warpSize);
  case Register::LanesEqual:
    return bit;
  case Register::LanesBelow:
    return bit - 1;
  case Register::LanesBelowOrEqual:
    return bit | (bit - 1);
  case Register::LanesAbove:
    return ~(bit | (bit - 1));
  case Register::LanesAboveOrEqual:
    return ~(bit - 1);
  default:
    // There is no time here: a clock that stands still is deterministic.
    return 0;
  }
}

static uint32_t specialRegister(uint32_t which) {
  Machine &m = machine();
  if (which < 3)
    return component(m.current().id, which);
  if (which < 6)
    return component(m.blockSize(), which - 3);
  if (which < 9)
    return component(m.blockIndex(), which - 6);
  if (which < 12)
    return component(m.gridSize(), which - 9);
  return laneRegister(static_cast<Register>(which), m.current());
}

static uint32_t barrier(uint32_t kind, uint32_t id, uint32_t count,
                        uint32_t predicate, uint64_t site) {
  return static_cast<uint32_t>(machine().waitAtBarrier(
      {static_cast<BarrierKind>(kind), id, count, predicate}, toSite(site)));
}

static uint64_t exchange(uint32_t kind, uint32_t mask, uint32_t value,
                         uint32_t operand, uint32_t clamp, uint64_t site) {
  return machine().waitAtExchange(
      {static_cast<Exchange>(kind), mask, value, operand, clamp}, toSite(site));
}

//===----------------------------------------------------------------------===//
// Asynchronous copies
//===----------------------------------------------------------------------===//

/// Reads when it is issued, as it may, but lands as late as the program allows,
/// so that a missing wait shows as a read of what was not written.
static void copyAsync(char *to, char *from, uint32_t size, uint32_t sourceSize,
                      uint64_t site) {
  Machine &m = machine();
  sourceSize = std::min(sourceSize, size);
  m.access(from, sourceSize, size, Access::Read, toSite(site));
  m.current().copies.push_back(
      {to, from, size, sourceSize, m.current().copyGroup, toSite(site)});
}

static void commitCopies() { ++machine().current().copyGroup; }

/// Waits until at most `pending` of the groups committed last are not complete.
static void waitForCopies(uint32_t pending) {
  Machine &m = machine();
  Thread &self = m.current();
  std::vector<AsyncCopy> rest;
  for (const AsyncCopy &copy : self.copies) {
    if (copy.group + pending >= self.copyGroup) {
      rest.push_back(copy);
      continue;
    }
    m.access(copy.to, copy.size, copy.size, Access::Write, copy.site);
    std::memcpy(copy.to, copy.from, copy.sourceSize);
    std::memset(copy.to + copy.sourceSize, 0, copy.size - copy.sourceSize);
  }
  self.copies = std::move(rest);
}

/// Also those that were not committed.
static void waitForAllCopies() {
  commitCopies();
  waitForCopies(0);
}

//===----------------------------------------------------------------------===//
// The rest
//===----------------------------------------------------------------------===//

static uint32_t isShared(const char *p) { return machine().isShared(p); }

static void trap(uint64_t site) {
  machine().fail(
      {"the kernel stopped itself (trap)", toSite(site), "", nullptr});
}

static void badDivision(uint64_t site) {
  machine().fail({"integer division by zero, or of the least number by -1",
                  toSite(site), "", nullptr});
}

/// What a failed cf.assert calls.
static void failAssertion(const char *message, const char *file, uint32_t line,
                          const char *, uint64_t) {
  std::string where = file && *file ? std::string(" (") + file + ":" +
                                          std::to_string(line) + ")"
                                    : std::string();
  machine().fail({std::string("assertion failed: ") + message + where, nullptr,
                  "", nullptr});
}

static void exitThread() { machine().exitThread(); }

/// PTX's prmt: four bytes chosen from eight, or their sign.
static uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t pool = a | uint64_t(b) << 32;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    uint32_t choice = selector >> (4 * i) & 15;
    uint32_t byte = pool >> (8 * (choice & 7)) & 0xFF;
    if (choice & 8)
      byte = byte & 0x80 ? 0xFF : 0;
    result |= byte << (8 * i);
  }
  return result;
}

llvm::ArrayRef<RuntimeFunction> norm::emu::runtimeFunctions() {
  static const RuntimeFunction table[] = {
      {"norm_emu_access", access},
      {"norm_emu_register", specialRegister},
      {"norm_emu_barrier", barrier},
      {"norm_emu_exchange", exchange},
      {"norm_emu_copy_async", copyAsync},
      {"norm_emu_commit_copies", commitCopies},
      {"norm_emu_wait_copies", waitForCopies},
      {"norm_emu_wait_all_copies", waitForAllCopies},
      {"norm_emu_is_shared", isShared},
      {"norm_emu_trap", trap},
      {"norm_emu_bad_division", badDivision},
      {"norm_emu_exit", exitThread},
      {"norm_emu_permute", permute},
      {"__assertfail", failAssertion},
      {"vprintf", printFormatted},
  };
  return table;
}
