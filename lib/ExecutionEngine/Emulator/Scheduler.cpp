//===- Scheduler.cpp - Who runs next, and barriers -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"
#include "Options.h"

#include <numeric>

using namespace norm::emu;

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

uint64_t Machine::waitAtBarrier(const BarrierRequest &request,
                                const Site *site) {
  Thread &self = *running;
  self.barrier = request;
  self.site = site;
  self.state = Thread::AtBarrier;
  scheduler.resume(self.fiber);
  return self.result;
}

uint64_t Machine::waitAtExchange(const ExchangeRequest &request,
                                 const Site *site) {
  Thread &self = *running;
  if (!(request.mask >> self.lane & 1))
    fail({"bad exchange: lane " + std::to_string(self.lane) +
              " takes part in an exchange whose mask does not name it",
          site, "", nullptr});
  self.exchange = request;
  self.site = site;
  self.state = Thread::AtExchange;
  scheduler.resume(self.fiber);
  return self.result;
}

void Machine::exitThread() {
  running->state = Thread::Finished;
  running->usable = false;
  scheduler.resume(running->fiber);
  __builtin_unreachable();
}

//===----------------------------------------------------------------------===//
// Rounds
//===----------------------------------------------------------------------===//

void Machine::resume(Thread &thread) {
  running = &thread;
  thread.fiber.resume(scheduler);
}

/// Runs the lanes of a warp until all wait for other warps or have returned.
void Machine::runWarp(unsigned warp) {
  Thread *lanes = warpBegin(warp);
  laneOrder.resize(warpSizeOf(warp));
  std::iota(laneOrder.begin(), laneOrder.end(), 0);
  do {
    if (options().seed)
      shuffle(laneOrder, random);
    for (unsigned lane : laneOrder) {
      if (lanes[lane].state == Thread::Ready)
        resume(lanes[lane]);
      if (failed)
        return;
    }
  } while (resolveExchanges(warp));
}

void Machine::runBlock() {
  warpOrder.resize(warpCount);
  std::iota(warpOrder.begin(), warpOrder.end(), 0);
  for (;;) {
    if (options().seed)
      shuffle(warpOrder, random);
    for (unsigned warp : warpOrder) {
      runWarp(warp);
      if (failed)
        return;
    }
    bool finished = true;
    for (unsigned i = 0; i < threadCount; ++i)
      finished &= threads[i].state == Thread::Finished;
    if (finished) {
      failPending();
      return;
    }
    bool released = releaseBarriers();
    if (failed)
      return;
    if (!released) {
      explainDeadlock();
      return;
    }
  }
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

/// All who wait at one barrier must be where the others are: in the whole block
/// where it joins all of it, in their warp otherwise.
bool Machine::checkBarrier(const std::vector<Thread *> &waiting, bool all) {
  const Thread *first = waiting.front();
  for (const Thread *thread : waiting) {
    if (!all && thread->warp != first->warp)
      first = thread;
    if (thread->site == first->site)
      continue;
    recordFailure(
        {"divergent barrier: thread " + std::to_string(thread->index) +
             " is at this barrier while others of its " +
             (all ? "block" : "warp") + " are at another",
         thread->site, "thread " + std::to_string(first->index) + " is here",
         first->site},
        thread);
    return false;
  }
  return true;
}

static uint64_t reduce(BarrierKind kind, const std::vector<Thread *> &waiting) {
  uint64_t set = 0;
  for (const Thread *thread : waiting)
    set += thread->barrier.predicate != 0;
  switch (kind) {
  case BarrierKind::Plain:
    return 0;
  case BarrierKind::Count:
    return set;
  case BarrierKind::And:
    return set == waiting.size();
  case BarrierKind::Or:
    return set != 0;
  }
  return 0;
}

/// Opens the barrier at which `first` waits if all who must be there are.
bool Machine::releaseBarrier(const Thread &first) {
  BarrierRequest request = first.barrier;
  std::vector<Thread *> waiting;
  unsigned finished = 0;
  uint32_t warps = 0;
  for (unsigned i = 0; i < threadCount; ++i) {
    Thread &thread = threads[i];
    finished += thread.state == Thread::Finished;
    if (thread.state != Thread::AtBarrier || thread.barrier.id != request.id)
      continue;
    waiting.push_back(&thread);
    warps |= 1u << thread.warp;
  }
  bool all = request.count == 0;
  unsigned expected = all ? threadCount : request.count;
  if (all && finished && waiting.size() + finished == threadCount) {
    recordFailure({"divergent barrier: reached by " +
                       std::to_string(waiting.size()) + " of " +
                       std::to_string(threadCount) +
                       " threads, the others have returned",
                   first.site, "", nullptr},
                  &first);
    return false;
  }
  if (waiting.size() != expected || !checkBarrier(waiting, all))
    return false;
  uint64_t result = reduce(request.kind, waiting);
  if (expected == threadCount && failPending())
    return false;
  if (expected == threadCount)
    order.barrier();
  else
    order.partialBarrier(warps);
  for (Thread *thread : waiting) {
    thread->result = result;
    thread->state = Thread::Ready;
  }
  counters().countBarrier();
  return true;
}

bool Machine::releaseBarriers() {
  bool released = false;
  for (unsigned i = 0; i < threadCount && !failed; ++i)
    if (threads[i].state == Thread::AtBarrier)
      released |= releaseBarrier(threads[i]);
  return released;
}

//===----------------------------------------------------------------------===//
// Deadlock
//===----------------------------------------------------------------------===//

/// Nothing can go on: says so of the first thread that waits, and where another
/// one is that it waits for.
void Machine::explainDeadlock() {
  const Thread *stuck = nullptr, *other = nullptr;
  for (unsigned i = 0; i < threadCount; ++i) {
    const Thread &thread = threads[i];
    if (thread.state == Thread::Finished)
      continue;
    if (!stuck)
      stuck = &thread;
    else if (!other && thread.site != stuck->site)
      other = &thread;
  }
  auto waitsAt = [](const Thread &thread) {
    return thread.state == Thread::AtBarrier ? "a barrier"
                                             : "an exchange between lanes";
  };
  Failure failure{"deadlock: thread " + std::to_string(stuck->index) +
                      " waits forever at " + waitsAt(*stuck),
                  stuck->site, "", nullptr};
  if (other) {
    failure.note = "meanwhile thread " + std::to_string(other->index) +
                   " waits at " + waitsAt(*other);
    failure.noteSite = other->site;
  }
  recordFailure(std::move(failure), stuck);
}

//===----------------------------------------------------------------------===//
// Failing
//===----------------------------------------------------------------------===//

static std::string triple(const Dim3 &d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " +
         std::to_string(d.z) + ")";
}

std::string Machine::describeThread(const Thread &thread) const {
  std::string out = "in kernel '" + kernel->name + "', block " +
                    triple(blockId) + ", thread " + triple(thread.id);
  if (options().seed)
    out += ", with NORM_EMU_SEED=" + std::to_string(options().seed);
  return out;
}

std::string Machine::describeBlock(uint64_t number) const {
  number -= firstBlock;
  return triple(
      {number % grid.x, number / grid.x % grid.y, number / (grid.x * grid.y)});
}

void Machine::recordFailure(Failure failure, const Thread *thread) {
  failed = true;
  failureText = render(failure, describeThread(*thread));
  // What was read before it was written may be why.
  failPending();
}

/// False if there is nothing to report.
bool Machine::failPending() {
  if (pendingText.empty())
    return false;
  failed = true;
  failureText = std::move(pendingText);
  pendingText.clear();
  return true;
}

void Machine::fail(Failure failure) {
  recordFailure(std::move(failure), running);
  scheduler.resume(running->fiber);
  __builtin_unreachable();
}
