//===- Machine.cpp - The launch of a kernel -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "Options.h"

#include <cstring>
#include <numeric>

using namespace norm::emu;

Machine &norm::emu::machine() {
  static Machine instance;
  return instance;
}

/// splitmix64.
uint64_t norm::emu::nextRandom(uint64_t &state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

//===----------------------------------------------------------------------===//
// What a launch must satisfy
//===----------------------------------------------------------------------===//

static std::string text(const Dim3 &d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " +
         std::to_string(d.z) + ")";
}

/// Bytes of shared memory that a block may have on sm_90 and sm_100, the most
/// of any chip; bitcode does not say for which it is.
static constexpr size_t sharedLimit = 227 << 10;

bool Machine::checkBlockSize() {
  auto refuse = [&](const std::string &expected) {
    failCall("cannot launch kernel '" + kernel->name + "' with blocks of " +
             text(block) + " threads: expected " + expected);
    return false;
  };
  if (block.volume() == 0)
    return refuse("at least one thread");
  if (block.x > 1024 || block.y > 1024 || block.z > 64)
    return refuse("at most (1024, 1024, 64)");
  if (block.volume() > maxBlockThreads)
    return refuse("at most " + std::to_string(maxBlockThreads) + " in all");
  const unsigned *required = kernel->requiredBlock;
  if (required[0] && (block.x != required[0] || block.y != required[1] ||
                      block.z != required[2]))
    return refuse(text({required[0], required[1], required[2]}) +
                  ", which the kernel was compiled for");
  if (kernel->maxThreads && block.volume() > kernel->maxThreads)
    return refuse("at most " + std::to_string(kernel->maxThreads) +
                  ", which the kernel was compiled for");
  return true;
}

bool Machine::checkShared() {
  size_t want = kernel->staticShared + dynamicShared;
  if (want <= sharedLimit)
    return true;
  failCall("cannot launch kernel '" + kernel->name + "' with " +
           std::to_string(kernel->staticShared) + " bytes of static and " +
           std::to_string(dynamicShared) +
           " bytes of dynamic shared memory: expected at most " +
           std::to_string(sharedLimit) + " in all");
  return false;
}

bool Machine::checkLaunch() {
  if (grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535) {
    failCall("cannot launch kernel '" + kernel->name + "' with a grid of " +
             text(grid) +
             " blocks: expected at most (2147483647, 65535, 65535)");
    return false;
  }
  return checkBlockSize() && checkShared() && checkAliasing();
}

/// Names the arrays for messages and counters.
void Machine::bindArguments() {
  for (auto &buffer : memory().all())
    buffer->argument = -1;
  for (size_t i = 0; i < kernel->parameters.size(); ++i) {
    if (!kernel->parameters[i].pointer)
      continue;
    auto *p = *static_cast<char **>(arguments[i]);
    if (Buffer *buffer = memory().find(p, 0); buffer && buffer->argument < 0)
      buffer->argument = static_cast<int>(i);
  }
}

/// A parameter that was promised to alias no other is read through a cache that
/// writes through another do not reach.
bool Machine::checkAliasing() {
  if (!(checks & CheckAliasing))
    return true;
  const auto &parameters = kernel->parameters;
  for (size_t i = 0; i < parameters.size(); ++i)
    for (size_t k = i + 1; k < parameters.size(); ++k) {
      const Parameter &a = parameters[i], &b = parameters[k];
      if (!a.pointer || !b.pointer || !a.used || !b.used ||
          !(a.noAlias || b.noAlias) || (a.readOnly && b.readOnly))
        continue;
      auto *p = *static_cast<char **>(arguments[i]);
      if (!p || p != *static_cast<char **>(arguments[k]))
        continue;
      failCall("kernel '" + kernel->name +
               "' was compiled with the promise that "
               "argument " +
               std::to_string(a.noAlias ? i : k) +
               " aliases no other (noalias), but arguments " +
               std::to_string(i) + " and " + std::to_string(k) +
               " are the same address");
      return false;
    }
  return true;
}

//===----------------------------------------------------------------------===//
// Threads and blocks
//===----------------------------------------------------------------------===//

/// Every fiber: the kernel once for each block that the fiber has a part in.
void Machine::threadMain() {
  Machine &m = machine();
  Fiber::entered(m.scheduler);
  for (;;) {
    m.kernel->function(m.arguments);
    m.running->state = Thread::Finished;
    m.scheduler.resume(m.running->fiber);
  }
}

bool Machine::prepareThreads() {
  // Room for registers, for functions of the C library and for a report.
  size_t bytes = (128 << 10) + kernel->localBytes;
  if (threads.size() < threadCount || bytes > stacks.size()) {
    if (!stacks.reserve(std::max<size_t>(threadCount, threads.size()), bytes)) {
      failCall("cannot launch kernel '" + kernel->name +
               "': no memory for the stacks of " + std::to_string(threadCount) +
               " threads");
      return false;
    }
    if (threads.size() < threadCount)
      threads.resize(threadCount);
    for (Thread &thread : threads)
      thread.usable = false;
  }
  for (unsigned i = 0; i < threadCount; ++i) {
    Thread &thread = threads[i];
    thread.index = i;
    thread.lane = i % warpSize;
    thread.warp = i / warpSize;
    thread.id = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
  }
  return true;
}

void Machine::beginBlock(uint64_t number) {
  blockId = {number % grid.x, number / grid.x % grid.y,
             number / (grid.x * grid.y)};
  blockNumber = firstBlock + static_cast<uint32_t>(number);
  // Quiet NaNs in every float type.
  std::memset(arena().base, 0xFF, sharedEnd);
  order.beginBlock(warpCount);
  for (unsigned i = 0; i < threadCount; ++i) {
    Thread &thread = threads[i];
    if (!thread.usable)
      thread.fiber.start(stacks.bottom(i), stacks.size(), threadMain);
    thread.usable = true;
    thread.state = Thread::Ready;
    thread.copies.clear();
    thread.copyGroup = 0;
  }
}

void Machine::runBlocks() {
  uint64_t count = grid.volume();
  std::vector<uint64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  random = options().seed;
  if (options().seed)
    shuffle(numbers, random);
  for (uint64_t number : numbers) {
    beginBlock(number);
    runBlock();
    if (failed)
      return;
    counters().endBlock(threadCount);
  }
}

void Machine::launch(const Kernel &k, Dim3 gridSize, Dim3 blockSize,
                     unsigned dynamicBytes, void **args) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  kernel = &k;
  grid = gridSize;
  block = blockSize;
  dynamicShared = dynamicBytes;
  arguments = args;
  checks = options().checks;
  failed = false;
  pendingText.clear();
  if (grid.volume() == 0 || !checkLaunch())
    return;
  threadCount = static_cast<unsigned>(block.volume());
  warpCount = (threadCount + warpSize - 1) / warpSize;
  if (!prepareThreads())
    return;
  sharedEnd = 0;
  for (const SharedVariable &variable : k.module->shared)
    sharedEnd =
        variable.offset + (variable.dynamic ? dynamicShared : variable.size);
  sharedShadow.reserve(sharedEnd);
  bindArguments();
  firstBlock = nextBlock;
  nextBlock += static_cast<uint32_t>(grid.volume());
  counters().beginLaunch(k.name, threadCount);
  runBlocks();
  counters().endLaunch();
  if (!failed)
    return;
  // What the threads were doing is abandoned.
  for (Thread &thread : threads)
    thread.usable = false;
  deliver(failureText);
}
