//===- Fiber.h - One stack per emulated thread -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_EXECUTIONENGINE_EMULATOR_FIBER_H
#define NORM_LIB_EXECUTIONENGINE_EMULATOR_FIBER_H

#include <cstddef>
#include <memory>
#include <vector>

namespace norm::emu {

/// Stacks for fibers, each with an inaccessible page below it, so that a
/// kernel which overflows one stops instead of writing into its neighbour.
class StackPool {
public:
  StackPool() = default;
  ~StackPool();
  StackPool(const StackPool &) = delete;
  StackPool &operator=(const StackPool &) = delete;

  /// Makes room for `count` stacks of at least `bytes`; what was there before
  /// is gone if it did not suffice. False if the system has no memory left.
  bool reserve(size_t count, size_t bytes);

  char *bottom(size_t index) const { return base + index * stride + guard; }
  size_t size() const { return stride - guard; }

private:
  char *base = nullptr;
  size_t stride = 0, guard = 0, count = 0;
};

/// A stack that is switched to and from. A default-constructed fiber stands for
/// the stack of the caller.
class Fiber {
public:
  Fiber();
  ~Fiber();
  Fiber(Fiber &&) noexcept;
  Fiber &operator=(Fiber &&) noexcept;

  /// The next switch to this fiber calls `entry`, which never returns, on the
  /// stack given. May be called again to abandon what the fiber was doing.
  void start(char *bottom, size_t size, void (*entry)());

  /// Saves where `from` is and goes on with this one; returns when something
  /// switches to `from`.
  void resume(Fiber &from);

  /// To be called first by `entry`; `from` is the fiber that resumed this one.
  static void entered(Fiber &from);

private:
  struct Context;
  std::unique_ptr<Context> context;
};

} // namespace norm::emu

#endif // NORM_LIB_EXECUTIONENGINE_EMULATOR_FIBER_H
