//===- Memory.h - Device memory and what lies where in it -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_EXECUTIONENGINE_EMULATOR_MEMORY_H
#define NORM_LIB_EXECUTIONENGINE_EMULATOR_MEMORY_H

#include "GlobalShadow.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace norm::emu {

/// A range of memory that kernels may touch.
struct Buffer {
  char *begin = nullptr;
  size_t size = 0;
  /// The global variable of the device code that it is; empty for others.
  std::string variable;
  GlobalShadow shadow;
  /// The first pointer argument of the running kernel that points into it.
  int argument = -1;

  char *end() const { return begin + size; }
  /// "argument 3", "variable 'table'" or "an array that is no argument".
  std::string describe() const;
};

/// All memory that kernels may touch: allocations, host memory that the program
/// registered, and the variables of the modules.
class Memory {
public:
  /// Null if the system has none left. The memory is full of NaNs, at an
  /// address that is a multiple of 256 and of nothing larger, and surrounded by
  /// bytes that belong to no array.
  char *allocate(size_t size);
  /// False if `p` is not the start of an allocation.
  bool release(char *p);

  /// Ranges may be registered several times and may overlap; together they are
  /// one array then. The name is that of a variable, or empty.
  void add(char *p, size_t size, std::string variable = {});
  /// False if no range that was registered starts there.
  bool remove(char *p);

  /// The array that holds all `size` bytes at `p`, or null.
  Buffer *find(const char *p, size_t size);
  /// The array whose bytes are closest, to name it where `find` found none.
  Buffer *nearest(const char *p);

  std::vector<std::unique_ptr<Buffer>> &all() { return buffers; }
  /// Grows whenever buffers are made anew.
  uint64_t version() const { return changes; }

private:
  struct Range {
    char *begin;
    size_t size;
    std::string variable;
    /// What to free, for allocations.
    void *owned;
  };

  void rebuild();

  std::vector<Range> ranges;
  /// Disjoint and ascending.
  std::vector<std::unique_ptr<Buffer>> buffers;
  uint64_t changes = 1;
};

Memory &memory();

} // namespace norm::emu

#endif // NORM_LIB_EXECUTIONENGINE_EMULATOR_MEMORY_H
