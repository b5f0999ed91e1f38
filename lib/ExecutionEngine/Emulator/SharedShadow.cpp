//===- SharedShadow.cpp - Which thread touched which bytes of shared memory -*-
// C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedShadow.h"

#include <algorithm>
#include <cstring>

using namespace norm::emu;

static constexpr unsigned warpSize = 32;

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

void Clocks::reset() {
  if (clean)
    return;
  count = 0;
  std::memset(known, 0, sizeof(known));
  clean = true;
}

void Clocks::join(uint32_t mask) {
  clean = false;
  ++count;
  uint32_t merged[32] = {};
  for (unsigned party = 0; party < 32; ++party)
    if (mask >> party & 1)
      for (unsigned k = 0; k < 32; ++k)
        merged[k] = std::max(merged[k], known[party][k]);
  for (unsigned party = 0; party < 32; ++party)
    if (mask >> party & 1)
      merged[party] = count;
  for (unsigned party = 0; party < 32; ++party)
    if (mask >> party & 1)
      std::memcpy(known[party], merged, sizeof(merged));
}

void BlockOrder::beginBlock(unsigned warpCount) {
  lanes.resize(warpCount);
  barrier();
  begin = epoch;
}

void BlockOrder::barrier() {
  ++epoch;
  warps.reset();
  for (Clocks &clocks : lanes)
    clocks.reset();
}

void BlockOrder::partialBarrier(uint32_t warpMask) {
  warps.join(warpMask);
  for (unsigned warp = 0; warp < lanes.size(); ++warp)
    if (warpMask >> warp & 1)
      lanes[warp].join(~0u);
}

/// Whether what `other` did at the stamps, in this epoch, is over for `self`.
static bool isOrdered(const BlockOrder &order, unsigned self, unsigned other,
                      uint32_t laneStamp, uint32_t warpStamp) {
  unsigned warp = self / warpSize;
  if (warp == other / warpSize)
    return order.lanes[warp].ordered(self % warpSize, other % warpSize,
                                     laneStamp);
  return order.warps.ordered(warp, other / warpSize, warpStamp);
}

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

void SharedShadow::reserve(size_t size) {
  size_t count = (size >> shift) + 1;
  if (cells.size() < count)
    cells.resize(count);
}

/// From words to bytes, for good: code that accesses less will do so again.
void SharedShadow::refine() {
  std::vector<Cell> fine(cells.size() << shift);
  for (size_t i = 0; i < fine.size(); ++i)
    fine[i] = cells[i >> shift];
  cells = std::move(fine);
  shift = 0;
}

bool SharedShadow::checkWriter(const BlockOrder &order, const Cell &cell,
                               Access access, unsigned thread,
                               SharedConflict &conflict) const {
  if (cell.epoch != order.epoch || cell.thread == thread ||
      (cell.atomic && access == Access::Atomic) ||
      isOrdered(order, thread, cell.thread, cell.laneStamp, cell.warpStamp))
    return false;
  conflict.kind = SharedConflict::Race;
  conflict.thread = cell.thread;
  conflict.wrote = true;
  conflict.site = cell.site;
  return true;
}

bool SharedShadow::checkReaders(const BlockOrder &order, const Cell &cell,
                                unsigned thread,
                                SharedConflict &conflict) const {
  for (const Readers &readers : cell.readers) {
    if (readers.epoch != order.epoch)
      continue;
    for (unsigned lane = 0; lane < warpSize; ++lane) {
      unsigned other = readers.warp * warpSize + lane;
      if (!(readers.lanes >> lane & 1) || other == thread ||
          isOrdered(order, thread, other, readers.laneStamp, readers.warpStamp))
        continue;
      conflict.kind = SharedConflict::Race;
      conflict.thread = other;
      conflict.wrote = false;
      conflict.site = readers.site;
      return true;
    }
  }
  return false;
}

void SharedShadow::noteRead(const BlockOrder &order, Cell &cell,
                            unsigned thread, const Site *site) const {
  uint32_t warp = thread / warpSize, lane = 1u << thread % warpSize;
  uint32_t laneStamp = order.lanes[warp].now(), warpStamp = order.warps.now();
  // The slot of this warp if it has one, else the first that is free.
  Readers *slot = nullptr;
  for (Readers &readers : cell.readers) {
    if (readers.epoch == order.epoch && readers.warp == warp) {
      slot = &readers;
      break;
    }
    if (!slot && readers.epoch != order.epoch)
      slot = &readers;
  }
  if (!slot)
    return;
  if (slot->epoch == order.epoch && slot->laneStamp == laneStamp &&
      slot->warpStamp == warpStamp)
    slot->lanes |= lane;
  else
    *slot = {order.epoch, warp, lane, laneStamp, warpStamp, site};
}

SharedConflict SharedShadow::touch(const BlockOrder &order, size_t offset,
                                   size_t bytes, Access access, unsigned thread,
                                   const Site *site, SharedChecks wanted) {
  if (shift && ((offset | bytes) & ((1u << shift) - 1)))
    refine();
  SharedConflict conflict;
  size_t last = (offset + bytes - 1) >> shift;
  for (size_t i = offset >> shift; i <= last; ++i) {
    Cell &cell = cells[i];
    if (wanted.races && (checkWriter(order, cell, access, thread, conflict) ||
                         (access != Access::Read &&
                          checkReaders(order, cell, thread, conflict)))) {
      conflict.offset = i << shift;
      return conflict;
    }
    if (wanted.uninitialized && access != Access::Write &&
        cell.epoch < order.begin && conflict.kind == SharedConflict::None) {
      conflict.kind = SharedConflict::Uninitialized;
      conflict.offset = i << shift;
    }
    if (access == Access::Read) {
      noteRead(order, cell, thread, site);
      continue;
    }
    cell.epoch = order.epoch;
    cell.thread = thread;
    cell.laneStamp = order.lanes[thread / warpSize].now();
    cell.warpStamp = order.warps.now();
    cell.site = site;
    cell.atomic = access == Access::Atomic;
  }
  return conflict;
}
