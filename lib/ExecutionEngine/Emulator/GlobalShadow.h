//===- GlobalShadow.h - Which block touched which bytes of an array -*- C++
//-*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks of one launch run in any order, or at once. So no block may write what
// another writes, nor read what another wrote, whichever came first here.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_EXECUTIONENGINE_EMULATOR_GLOBALSHADOW_H
#define NORM_LIB_EXECUTIONENGINE_EMULATOR_GLOBALSHADOW_H

#include "Diagnostics.h"

#include <cstddef>
#include <cstdint>

namespace norm::emu {

enum class Access : uint8_t { Read, Write, Atomic };

/// What a block found that another did before it.
struct BlockConflict {
  /// The other block's number; the blocks of all launches are numbered on.
  uint32_t block;
  /// Whether the other one wrote.
  bool wrote;
  /// Where in the array, in bytes.
  size_t offset;
};

/// Per array. Blocks are known by a number that is never used again, so nothing
/// has to be cleared: numbers below the launch's first are from earlier ones.
class GlobalShadow {
public:
  GlobalShadow() = default;
  ~GlobalShadow();
  GlobalShadow(const GlobalShadow &) = delete;
  GlobalShadow &operator=(const GlobalShadow &) = delete;

  /// Notes an access to [offset, offset + bytes) of an array of `size` bytes.
  /// True if it conflicts; `conflict` is then filled.
  bool touch(size_t size, size_t offset, size_t bytes, Access access,
             uint32_t block, uint32_t firstOfLaunch, BlockConflict &conflict);

private:
  /// Block numbers, 0 for none. Of the readers two that differ are enough: a
  /// writer conflicts with one of them whoever it is.
  struct Cell {
    uint32_t writer, reader, otherReader;
  };

  bool reserve(size_t size);
  void refine();

  Cell *cells = nullptr;
  size_t mapped = 0, count = 0;
  /// Bytes per cell: 4, or 1 once something smaller was accessed.
  unsigned shift = 2;
};

} // namespace norm::emu

#endif // NORM_LIB_EXECUTIONENGINE_EMULATOR_GLOBALSHADOW_H
