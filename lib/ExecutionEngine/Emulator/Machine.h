//===- Machine.h - The emulated multiprocessor -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks run one after another, the threads of a block as fibers. A fiber runs
// until it has to wait for others: at a barrier, or where lanes of its warp
// exchange values. No preemption happens elsewhere, and none is needed: races
// are found by what orders accesses, not by the order that happened.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_EXECUTIONENGINE_EMULATOR_MACHINE_H
#define NORM_LIB_EXECUTIONENGINE_EMULATOR_MACHINE_H

#include "Counters.h"
#include "Fiber.h"
#include "Memory.h"
#include "Module.h"
#include "SharedShadow.h"

#include <mutex>

namespace norm::emu {

constexpr unsigned warpSize = 32;
constexpr unsigned maxBlockThreads = 1024;

struct Dim3 {
  uint64_t x = 1, y = 1, z = 1;
  uint64_t volume() const { return x * y * z; }
};

/// What lanes of a warp do together. Shuffles come first.
enum class Exchange : uint8_t {
  ShuffleXor,
  ShuffleUp,
  ShuffleDown,
  ShuffleIndex,
  Sync,
  VoteAll,
  VoteAny,
  VoteUniform,
  Ballot,
  ReduceAdd,
  ReduceMin,
  ReduceMax,
  ReduceUnsignedMin,
  ReduceUnsignedMax,
  ReduceAnd,
  ReduceOr,
  ReduceXor,
};

struct ExchangeRequest {
  Exchange kind;
  uint32_t mask, value, operand, clamp;
};

/// What a barrier computes from the predicates of the threads.
enum class BarrierKind : uint8_t { Plain, Count, And, Or };

struct BarrierRequest {
  BarrierKind kind;
  uint32_t id;
  /// How many threads meet; 0 for all of the block.
  uint32_t count;
  uint32_t predicate;
};

/// An asynchronous copy to shared memory, which lands when it is waited for.
struct AsyncCopy {
  char *to;
  const char *from;
  unsigned size, sourceSize, group;
  Site *site;
};

struct Thread {
  enum State : uint8_t { Ready, AtBarrier, AtExchange, Finished };

  Fiber fiber;
  State state = Finished;
  /// Whether its stack is as `start` leaves it or as the last block left it.
  bool usable = false;
  unsigned index = 0, lane = 0, warp = 0;
  Dim3 id;
  /// Where it waits.
  const Site *site = nullptr;
  BarrierRequest barrier = {};
  ExchangeRequest exchange = {};
  /// Of a barrier or an exchange; the predicate of a shuffle is in bit 32.
  uint64_t result = 0;
  std::vector<AsyncCopy> copies;
  unsigned copyGroup = 0;
};

class Machine {
public:
  /// Runs all blocks of a launch; a failure is delivered before it returns.
  void launch(const Kernel &kernel, Dim3 grid, Dim3 block,
              unsigned dynamicShared, void **arguments);

  //===--- What threads ask for, called on their fibers ---===//

  Thread &current() { return *running; }
  const Dim3 &gridSize() const { return grid; }
  const Dim3 &blockSize() const { return block; }
  const Dim3 &blockIndex() const { return blockId; }

  uint64_t waitAtBarrier(const BarrierRequest &request, const Site *site);
  uint64_t waitAtExchange(const ExchangeRequest &request, const Site *site);
  /// Checks and counts an access to memory of any kind.
  void access(char *p, size_t size, unsigned alignment, Access kind,
              Site *site);
  bool isShared(const char *p) const {
    return size_t(p - arena().base) < Arena::capacity;
  }
  /// The thread has returned, from wherever it is.
  [[noreturn]] void exitThread();
  /// Ends the launch.
  [[noreturn]] void fail(Failure failure);

  /// Held while a launch runs or memory changes.
  std::recursive_mutex mutex;

private:
  bool checkLaunch();
  bool checkBlockSize();
  bool checkShared();
  void bindArguments();
  bool checkAliasing();
  bool prepareThreads();
  static void threadMain();

  void runBlocks();
  void beginBlock(uint64_t number);
  void runBlock();
  void runWarp(unsigned warp);
  void resume(Thread &thread);
  [[nodiscard]] bool resolveExchanges(unsigned warp);
  void completeExchange(unsigned warp, uint32_t mask, const Thread &first);
  bool checkSources(unsigned warp, uint32_t mask);
  bool releaseBarriers();
  bool releaseBarrier(const Thread &first);
  bool checkBarrier(const std::vector<Thread *> &waiting, bool all);
  void explainDeadlock();
  void recordFailure(Failure failure, const Thread *thread);
  bool failPending();
  std::string describeThread(const Thread &thread) const;

  void sharedAccess(size_t offset, size_t size, Access kind, Site *site);
  Buffer *globalAccess(char *p, size_t size, Access kind, Site *site);
  [[noreturn]] void failOutside(char *p, size_t size, Access kind, Site *site);
  void failShared(const SharedConflict &conflict, size_t size, Access kind,
                  Site *site);
  [[noreturn]] void failBlocks(const Buffer &buffer,
                               const BlockConflict &conflict, size_t size,
                               Access kind, Site *site);
  std::string describeBlock(uint64_t number) const;
  std::string describeShared(size_t offset) const;

  Thread *warpBegin(unsigned warp) { return &threads[warp * warpSize]; }
  unsigned warpSizeOf(unsigned warp) const {
    return std::min(warpSize, threadCount - warp * warpSize);
  }

  //===--- The launch ---===//
  const Kernel *kernel = nullptr;
  Dim3 grid, block, blockId;
  void **arguments = nullptr;
  unsigned threadCount = 0, warpCount = 0, dynamicShared = 0;
  size_t sharedEnd = 0;
  /// Blocks are numbered through all launches.
  uint32_t nextBlock = 1, firstBlock = 1, blockNumber = 0;
  unsigned checks = 0;

  //===--- The block ---===//
  std::vector<Thread> threads;
  StackPool stacks;
  Fiber scheduler;
  Thread *running = nullptr;
  BlockOrder order;
  SharedShadow sharedShadow;
  std::vector<unsigned> warpOrder, laneOrder;
  uint64_t random = 0;

  bool failed = false;
  std::string failureText;
  /// Of a read of shared memory that nobody had written: reported when the
  /// threads meet or something else fails, unless a write comes before that,
  /// which makes it a race.
  std::string pendingText;
};

Machine &machine();

/// The next of a fixed sequence of numbers that look random.
uint64_t nextRandom(uint64_t &state);
/// Shuffles the same way on every system, unlike std::shuffle.
template <typename T> void shuffle(std::vector<T> &values, uint64_t &state) {
  for (size_t i = values.size(); i > 1; --i)
    std::swap(values[i - 1], values[nextRandom(state) % i]);
}

} // namespace norm::emu

#endif // NORM_LIB_EXECUTIONENGINE_EMULATOR_MACHINE_H
