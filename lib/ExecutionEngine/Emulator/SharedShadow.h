//===- SharedShadow.h - Which thread touched which bytes of shared memory -*-
// C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two accesses of different threads to one byte, one of them a write, race
// unless something orders them: a barrier of the block, or a synchronization
// of a group of lanes or of warps that both took part in.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_EXECUTIONENGINE_EMULATOR_SHAREDSHADOW_H
#define NORM_LIB_EXECUTIONENGINE_EMULATOR_SHAREDSHADOW_H

#include "GlobalShadow.h"

#include <vector>

namespace norm::emu {

/// What each of up to 32 parties knows of the others: the number of the last
/// synchronization of which it has heard that the other took part in it.
class Clocks {
public:
  /// A new block of threads, or a barrier that orders everything.
  void reset();
  /// The parties of the mask meet.
  void join(uint32_t mask);
  /// To be kept with an access by a party.
  uint32_t now() const { return count; }
  /// Whether what `other` did at `stamp` is over for `self`.
  bool ordered(unsigned self, unsigned other, uint32_t stamp) const {
    return known[self][other] > stamp;
  }

private:
  uint32_t count = 0;
  bool clean = false;
  uint32_t known[32][32];
};

/// The order between the threads of a block.
struct BlockOrder {
  /// Grows with every barrier and every new block, never repeats.
  uint32_t epoch = 1;
  /// The epoch in which the running block began.
  uint32_t begin = 1;
  /// Among the warps of the block, for barriers of some of them.
  Clocks warps;
  /// Among the lanes of each warp.
  std::vector<Clocks> lanes;

  void beginBlock(unsigned warpCount);
  void barrier();
  void partialBarrier(uint32_t warpMask);
};

/// What an access found.
struct SharedConflict {
  /// An uninitialized read is noted like any other: it may yet turn out to be
  /// one half of a race.
  enum Kind { None, Race, Uninitialized } kind = None;
  /// The other thread of a race, and its access.
  unsigned thread = 0;
  bool wrote = false;
  const Site *site = nullptr;
  size_t offset = 0;
};

/// What is looked for; the other kind is not reported.
struct SharedChecks {
  bool races, uninitialized;
};

class SharedShadow {
public:
  /// Makes room for an arena of `size` bytes.
  void reserve(size_t size);

  SharedConflict touch(const BlockOrder &order, size_t offset, size_t bytes,
                       Access access, unsigned thread, const Site *site,
                       SharedChecks wanted);

private:
  /// Reads by lanes of one warp, since its last synchronization.
  struct Readers {
    uint32_t epoch, warp, lanes, laneStamp, warpStamp;
    const Site *site;
  };
  struct Cell {
    uint32_t epoch, thread, laneStamp, warpStamp;
    const Site *site;
    bool atomic;
    /// Of two warps; a writer is of another warp than one of them.
    Readers readers[2];
  };

  bool checkWriter(const BlockOrder &order, const Cell &cell, Access access,
                   unsigned thread, SharedConflict &conflict) const;
  bool checkReaders(const BlockOrder &order, const Cell &cell, unsigned thread,
                    SharedConflict &conflict) const;
  void noteRead(const BlockOrder &order, Cell &cell, unsigned thread,
                const Site *site) const;
  void refine();

  std::vector<Cell> cells;
  unsigned shift = 2;
};

} // namespace norm::emu

#endif // NORM_LIB_EXECUTIONENGINE_EMULATOR_SHAREDSHADOW_H
