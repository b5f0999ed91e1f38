//===- Exchange.cpp - What lanes of a warp do together -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shuffles, votes and reductions by the definitions in PTX's manual. Lanes that
// have returned or never existed are not waited for; reading one is an error.
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

using namespace norm::emu;

/// The lane that a shuffle reads, and whether it lies in the segment; where it
/// does not, a lane keeps its own value.
static unsigned shuffleSource(const ExchangeRequest &request, unsigned lane,
                              bool &inside) {
  unsigned segment = request.clamp >> 8 & 31, clamp = request.clamp & 31;
  int low = lane & segment, high = low | (clamp & ~segment);
  int operand = request.operand & 31, source = 0;
  switch (request.kind) {
  case Exchange::ShuffleXor:
    source = lane ^ operand;
    inside = source <= high;
    break;
  case Exchange::ShuffleUp:
    // The clamp is the lowest lane here.
    source = static_cast<int>(lane) - operand;
    inside = source >= high;
    break;
  case Exchange::ShuffleDown:
    source = lane + operand;
    inside = source <= high;
    break;
  default:
    source = low | (operand & ~segment);
    inside = source <= high;
    break;
  }
  return inside ? source : lane;
}

/// What votes and reductions give to every lane of the mask.
static uint64_t combine(Exchange kind, const Thread *lanes, uint32_t mask) {
  uint32_t set = 0, first = __builtin_ctz(mask);
  uint32_t acc = lanes[first].exchange.value;
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    uint32_t value = lanes[lane].exchange.value;
    set |= uint32_t(value != 0) << lane;
    if (lane == first)
      continue;
    auto left = static_cast<int32_t>(acc), right = static_cast<int32_t>(value);
    switch (kind) {
    case Exchange::ReduceAdd:
      acc += value;
      break;
    case Exchange::ReduceMin:
      acc = std::min(left, right);
      break;
    case Exchange::ReduceMax:
      acc = std::max(left, right);
      break;
    case Exchange::ReduceUnsignedMin:
      acc = std::min(acc, value);
      break;
    case Exchange::ReduceUnsignedMax:
      acc = std::max(acc, value);
      break;
    case Exchange::ReduceAnd:
      acc &= value;
      break;
    case Exchange::ReduceOr:
      acc |= value;
      break;
    case Exchange::ReduceXor:
      acc ^= value;
      break;
    default:
      break;
    }
  }
  switch (kind) {
  case Exchange::VoteAll:
    return set == mask;
  case Exchange::VoteAny:
    return set != 0;
  case Exchange::VoteUniform:
    return set == mask || set == 0;
  case Exchange::Ballot:
    return set;
  default:
    return acc;
  }
}

/// Fails where a lane of the mask would read a lane outside it.
bool Machine::checkSources(unsigned warp, uint32_t mask) {
  Thread *lanes = warpBegin(warp);
  for (unsigned lane = 0; lane < warpSizeOf(warp); ++lane) {
    if (!(mask >> lane & 1))
      continue;
    bool inside = false;
    unsigned source = shuffleSource(lanes[lane].exchange, lane, inside);
    if (mask >> source & 1)
      continue;
    bool named = lanes[lane].exchange.mask >> source & 1;
    std::string why = !named                      ? "its mask does not name"
                      : source < warpSizeOf(warp) ? "has returned"
                                                  : "the block does not have";
    recordFailure({"bad shuffle: lane " + std::to_string(lane) +
                       " reads lane " + std::to_string(source) + ", which " +
                       why,
                   lanes[lane].site, "", nullptr},
                  &lanes[lane]);
    return false;
  }
  return true;
}

/// `mask` has the lanes that are there.
void Machine::completeExchange(unsigned warp, uint32_t mask,
                               const Thread &first) {
  Thread *lanes = warpBegin(warp);
  Exchange kind = first.exchange.kind;
  bool shuffles = kind <= Exchange::ShuffleIndex;
  if (shuffles && !checkSources(warp, mask))
    return;
  uint64_t common = shuffles ? 0 : combine(kind, lanes, mask);
  for (unsigned lane = 0; lane < warpSizeOf(warp); ++lane) {
    if (!(mask >> lane & 1))
      continue;
    Thread &thread = lanes[lane];
    thread.result = common;
    if (shuffles) {
      bool inside = false;
      unsigned source = shuffleSource(thread.exchange, lane, inside);
      thread.result = lanes[source].exchange.value | uint64_t(inside) << 32;
    }
  }
  for (unsigned lane = 0; lane < warpSizeOf(warp); ++lane)
    if (mask >> lane & 1)
      lanes[lane].state = Thread::Ready;
  if (kind == Exchange::Sync)
    order.lanes[warp].join(mask);
  counters().countExchange(shuffles);
}

/// Completes the exchanges of a warp whose lanes are all there.
bool Machine::resolveExchanges(unsigned warp) {
  Thread *lanes = warpBegin(warp);
  unsigned count = warpSizeOf(warp);
  bool resolved = false;
  for (unsigned lane = 0; lane < count && !failed; ++lane) {
    const Thread &first = lanes[lane];
    if (first.state != Thread::AtExchange)
      continue;
    uint32_t mask = 0;
    bool complete = true;
    const Thread *different = nullptr;
    for (unsigned k = 0; k < count; ++k) {
      const Thread &other = lanes[k];
      if (!(first.exchange.mask >> k & 1) || other.state == Thread::Finished)
        continue;
      mask |= 1u << k;
      complete &= other.state == Thread::AtExchange;
      if (other.state == Thread::AtExchange &&
          (other.exchange.kind != first.exchange.kind ||
           other.exchange.mask != first.exchange.mask))
        different = &other;
    }
    if (!complete)
      continue;
    if (different) {
      recordFailure({"bad exchange: lanes " + std::to_string(first.lane) +
                         " and " + std::to_string(different->lane) +
                         " of a warp meet at different exchanges, or with "
                         "different masks",
                     first.site, "the other lane is here", different->site},
                    &first);
      return false;
    }
    completeExchange(warp, mask, first);
    resolved = true;
  }
  return resolved && !failed;
}
