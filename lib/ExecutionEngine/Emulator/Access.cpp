//===- Access.cpp - Checks of accesses to memory -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"
#include "Options.h"

using namespace norm::emu;

static const char *verb(Access kind) {
  switch (kind) {
  case Access::Read:
    return "reads";
  case Access::Write:
    return "writes";
  case Access::Atomic:
    return "atomically updates";
  }
  return "";
}

static std::string bytes(size_t count) {
  return std::to_string(count) + (count == 1 ? " byte" : " bytes");
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

std::string Machine::describeShared(size_t offset) const {
  const SharedVariable *best = nullptr;
  for (const SharedVariable &variable : kernel->module->shared)
    if (variable.offset <= offset || !best)
      best = &variable;
  if (!best)
    return "shared memory, of which the kernel has none";
  size_t size = best->dynamic ? dynamicShared : best->size;
  std::string where = offset < best->offset
                          ? bytes(best->offset - offset) + " before the start"
                          : "offset " + std::to_string(offset - best->offset);
  return where + " of " +
         (best->dynamic ? std::string("dynamic shared memory")
                        : "shared variable '" + best->name + "'") +
         ", which has " + bytes(size);
}

void Machine::failShared(const SharedConflict &conflict, size_t size,
                         Access kind, Site *site) {
  std::string self = "thread " + std::to_string(running->index) + " " +
                     verb(kind) + " " + bytes(size) + " of shared memory";
  std::string where = "at " + describeShared(conflict.offset);
  if (conflict.kind == SharedConflict::Uninitialized) {
    if (pendingText.empty())
      pendingText =
          render({"uninitialized shared memory: " + self +
                      " that no thread of the block has written, " + where,
                  site, "", nullptr},
                 describeThread(*running));
    return;
  }
  pendingText.clear();
  std::string other = "thread " + std::to_string(conflict.thread);
  fail({"shared-memory race: " + self + " that " + other +
            (conflict.wrote ? " wrote" : " read") +
            " with no barrier in between, " + where,
        site, other + (conflict.wrote ? " wrote" : " read") + " here",
        conflict.site});
}

void Machine::failOutside(char *p, size_t size, Access kind, Site *site) {
  std::string message = "out of bounds: thread " +
                        std::to_string(running->index) + " " + verb(kind) +
                        " " + bytes(size) + " ";
  Buffer *buffer = memory().nearest(p);
  auto distance = buffer ? p - buffer->begin : 0;
  // Further away the nearest array is no clue.
  constexpr ptrdiff_t far = 1 << 20;
  if (!buffer || distance < -far ||
      distance > static_cast<ptrdiff_t>(buffer->size) + far)
    message += "at an address that is in no array";
  else
    message += "at offset " + std::to_string(distance) + " of " +
               buffer->describe() + ", which has " + bytes(buffer->size);
  fail({message, site, "", nullptr});
}

void Machine::failBlocks(const Buffer &buffer, const BlockConflict &conflict,
                         size_t size, Access kind, Site *site) {
  fail({std::string("conflict between blocks: block ") +
            describeBlock(blockNumber) + " " + verb(kind) + " " + bytes(size) +
            " that block " + describeBlock(conflict.block) +
            (conflict.wrote ? " wrote" : " read") + ", at offset " +
            std::to_string(conflict.offset) + " of " + buffer.describe(),
        site, "", nullptr});
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

void Machine::sharedAccess(size_t offset, size_t size, Access kind,
                           Site *site) {
  if (checks & CheckBounds) {
    bool inside = false;
    for (const SharedVariable &variable : kernel->module->shared) {
      size_t end =
          variable.offset + (variable.dynamic ? dynamicShared : variable.size);
      inside |= offset >= variable.offset && offset + size <= end;
    }
    if (!inside)
      fail({"out of bounds: thread " + std::to_string(running->index) + " " +
                verb(kind) + " " + bytes(size) + " at " +
                describeShared(offset),
            site, "", nullptr});
  }
  SharedChecks wanted = {(checks & CheckRaces) != 0,
                         (checks & CheckUninitialized) != 0};
  if (!(wanted.races || wanted.uninitialized) || offset + size > sharedEnd)
    return;
  SharedConflict conflict = sharedShadow.touch(order, offset, size, kind,
                                               running->index, site, wanted);
  if (conflict.kind != SharedConflict::None)
    failShared(conflict, size, kind, site);
}

/// The array that holds the bytes; null only if bounds are not checked.
Buffer *Machine::globalAccess(char *p, size_t size, Access kind, Site *site) {
  Buffer *buffer = site->lastBuffer;
  if (!buffer || site->memoryVersion != memory().version() ||
      size_t(p - buffer->begin) > buffer->size ||
      size_t(p - buffer->begin) + size > buffer->size) {
    buffer = memory().find(p, size);
    if (!buffer && (checks & CheckBounds))
      failOutside(p, size, kind, site);
    if (!buffer)
      return nullptr;
    site->lastBuffer = buffer;
    site->memoryVersion = memory().version();
  }
  BlockConflict conflict;
  if ((checks & CheckBlocks) &&
      buffer->shadow.touch(buffer->size, p - buffer->begin, size, kind,
                           blockNumber, firstBlock, conflict))
    failBlocks(*buffer, conflict, size, kind, site);
  return buffer;
}

void Machine::access(char *p, size_t size, unsigned alignment, Access kind,
                     Site *site) {
  if ((checks & CheckAlignment) &&
      (reinterpret_cast<uintptr_t>(p) & (alignment - 1)))
    fail({"misaligned: thread " + std::to_string(running->index) + " " +
              verb(kind) + " " + bytes(size) +
              " at an address that is not a "
              "multiple of " +
              std::to_string(alignment) +
              (isShared(p) ? ", at " + describeShared(p - arena().base) : ""),
          site, "", nullptr});
  if (size == 0)
    return;
  if (isShared(p)) {
    size_t offset = p - arena().base;
    sharedAccess(offset, size, kind, site);
    counters().log(running->index, {site, offset, size, kind, true, nullptr});
    return;
  }
  // Local arrays lie on the fiber's own stack.
  if (size_t(p - stacks.bottom(running->index)) < stacks.size())
    return;
  Buffer *buffer = globalAccess(p, size, kind, site);
  counters().log(running->index, {site, reinterpret_cast<uintptr_t>(p), size,
                                  kind, false, buffer});
}
