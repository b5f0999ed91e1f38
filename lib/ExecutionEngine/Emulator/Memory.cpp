//===- Memory.cpp - Device memory and what lies where in it -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cstdlib>
#include <cstring>
#include <tuple>

using namespace norm::emu;

/// What cudaMalloc promises for addresses.
static constexpr size_t allocationAlignment = 256;
/// Bytes on each side of an allocation that belong to no array: an access that
/// misses an array by less is told apart from one of its neighbour.
static constexpr size_t margin = 4096;

std::string Buffer::describe() const {
  if (!variable.empty())
    return "variable '" + variable + "'";
  if (argument >= 0)
    return "argument " + std::to_string(argument);
  return "an array that is no argument";
}

char *Memory::allocate(size_t size) {
  size_t whole = margin + allocationAlignment + size + margin;
  whole = llvm::alignTo(whole, 2 * allocationAlignment);
  void *owned = std::aligned_alloc(2 * allocationAlignment, whole);
  if (!owned)
    return nullptr;
  std::memset(owned, 0xFF, whole);
  char *p = static_cast<char *>(owned) + margin + allocationAlignment;
  ranges.push_back({p, size, {}, owned});
  rebuild();
  return p;
}

bool Memory::release(char *p) {
  auto it =
      llvm::find_if(ranges, [&](Range &r) { return r.owned && r.begin == p; });
  if (it == ranges.end())
    return false;
  std::free(it->owned);
  ranges.erase(it);
  rebuild();
  return true;
}

void Memory::add(char *p, size_t size, std::string variable) {
  ranges.push_back({p, size, std::move(variable), nullptr});
  rebuild();
}

bool Memory::remove(char *p) {
  auto it =
      llvm::find_if(ranges, [&](Range &r) { return !r.owned && r.begin == p; });
  if (it == ranges.end())
    return false;
  ranges.erase(it);
  rebuild();
  return true;
}

/// Ranges change only between launches, and no shadow outlives one.
void Memory::rebuild() {
  std::vector<const Range *> sorted;
  for (const Range &range : ranges)
    sorted.push_back(&range);
  llvm::sort(sorted, [](const Range *a, const Range *b) {
    return std::tie(a->begin, a->size) < std::tie(b->begin, b->size);
  });
  buffers.clear();
  ++changes;
  for (const Range *range : sorted) {
    if (!buffers.empty() && range->begin < buffers.back()->end()) {
      Buffer &last = *buffers.back();
      last.size =
          std::max<size_t>(last.size, range->begin + range->size - last.begin);
      continue;
    }
    auto buffer = std::make_unique<Buffer>();
    buffer->begin = range->begin;
    buffer->size = range->size;
    buffer->variable = range->variable;
    buffers.push_back(std::move(buffer));
  }
}

/// The last buffer that begins at or below `p`, or null.
static Buffer *atOrBelow(std::vector<std::unique_ptr<Buffer>> &buffers,
                         const char *p) {
  auto it = llvm::upper_bound(
      buffers, p, [](const char *address, const std::unique_ptr<Buffer> &b) {
        return address < b->begin;
      });
  return it == buffers.begin() ? nullptr : std::prev(it)->get();
}

Buffer *Memory::find(const char *p, size_t size) {
  Buffer *buffer = atOrBelow(buffers, p);
  if (!buffer || size_t(p - buffer->begin) + size > buffer->size)
    return nullptr;
  return buffer;
}

Buffer *Memory::nearest(const char *p) {
  Buffer *best = nullptr;
  size_t bestDistance = 0;
  for (auto &buffer : buffers) {
    size_t distance = p < buffer->begin   ? buffer->begin - p
                      : p > buffer->end() ? p - buffer->end()
                                          : 0;
    if (!best || distance < bestDistance) {
      best = buffer.get();
      bestDistance = distance;
    }
  }
  return best;
}

Memory &norm::emu::memory() {
  static Memory instance;
  return instance;
}
