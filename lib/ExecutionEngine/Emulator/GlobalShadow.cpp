//===- GlobalShadow.cpp - Which block touched which bytes of an array -*- C++
//-*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GlobalShadow.h"

#include <sys/mman.h>

using namespace norm::emu;

/// Memory that reads as zero and costs nothing where it is not touched.
static void *mapZeros(size_t bytes) {
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

GlobalShadow::~GlobalShadow() {
  if (cells)
    munmap(cells, mapped);
}

bool GlobalShadow::reserve(size_t size) {
  count = (size >> shift) + 1;
  mapped = count * sizeof(Cell);
  cells = static_cast<Cell *>(mapZeros(mapped));
  return cells;
}

/// From words to bytes: each byte did what its word did.
void GlobalShadow::refine() {
  size_t fineCount = count << shift;
  auto *fine = static_cast<Cell *>(mapZeros(fineCount * sizeof(Cell)));
  if (!fine)
    return;
  for (size_t i = 0; i < count; ++i)
    if (cells[i].writer || cells[i].reader)
      for (size_t k = 0; k < size_t(1) << shift; ++k)
        fine[(i << shift) + k] = cells[i];
  munmap(cells, mapped);
  cells = fine;
  count = fineCount;
  mapped = fineCount * sizeof(Cell);
  shift = 0;
}

bool GlobalShadow::touch(size_t size, size_t offset, size_t bytes,
                         Access access, uint32_t block, uint32_t firstOfLaunch,
                         BlockConflict &conflict) {
  if (!cells && !reserve(size))
    return false;
  if (shift && ((offset | bytes) & ((1u << shift) - 1)))
    refine();
  auto other = [&](uint32_t b) { return b >= firstOfLaunch && b != block; };
  size_t last = (offset + bytes - 1) >> shift;
  for (size_t i = offset >> shift; i <= last; ++i) {
    Cell &cell = cells[i];
    if (other(cell.writer)) {
      conflict = {cell.writer, true, i << shift};
      return true;
    }
    if (access == Access::Write) {
      if (other(cell.reader) || other(cell.otherReader)) {
        conflict = {other(cell.reader) ? cell.reader : cell.otherReader, false,
                    i << shift};
        return true;
      }
      cell.writer = block;
    } else if (access == Access::Read && cell.reader != block) {
      if (cell.reader >= firstOfLaunch)
        cell.otherReader = block;
      else
        cell.reader = block;
    }
  }
  return false;
}
