//===- Intrinsics.cpp - NVVM's intrinsics that are not arithmetic -*- C++
//-*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"
#include "Retarget.h"
#include "Runtime.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace norm::emu;

std::optional<Value *> Retarget::rewriteRegister(StringRef name) {
  using R = norm::emu::Register;
  auto which = StringSwitch<std::optional<R>>(name)
                   .Case("tid.x", R::ThreadX)
                   .Case("tid.y", R::ThreadY)
                   .Case("tid.z", R::ThreadZ)
                   .Case("ntid.x", R::BlockSizeX)
                   .Case("ntid.y", R::BlockSizeY)
                   .Case("ntid.z", R::BlockSizeZ)
                   .Case("ctaid.x", R::BlockX)
                   .Case("ctaid.y", R::BlockY)
                   .Case("ctaid.z", R::BlockZ)
                   .Case("nctaid.x", R::GridX)
                   .Case("nctaid.y", R::GridY)
                   .Case("nctaid.z", R::GridZ)
                   .Case("laneid", R::Lane)
                   .Case("warpsize", R::WarpSize)
                   .Case("warpid", R::Warp)
                   .Case("nwarpid", R::WarpCount)
                   .Case("lanemask.eq", R::LanesEqual)
                   .Case("lanemask.lt", R::LanesBelow)
                   .Case("lanemask.le", R::LanesBelowOrEqual)
                   .Case("lanemask.gt", R::LanesAbove)
                   .Case("lanemask.ge", R::LanesAboveOrEqual)
                   .Cases({"clock", "clock_hi"}, R::Clock)
                   .Default(std::nullopt);
  if (!which)
    return std::nullopt;
  return call("norm_emu_register", builder.getInt32Ty(),
              {builder.getInt32(static_cast<uint32_t>(*which))});
}

/// `barrier.cta.{sync,red.{popc,and,or}}[.aligned].{all,count}`.
std::optional<Value *> Retarget::rewriteBarrier(StringRef name, CallInst &ci) {
  bool reduces = name.consume_front("red.");
  if (!reduces && !name.consume_front("sync."))
    return std::nullopt;
  BarrierKind kind = BarrierKind::Plain;
  if (reduces) {
    auto [operation, rest] = name.split('.');
    kind = StringSwitch<BarrierKind>(operation)
               .Case("popc", BarrierKind::Count)
               .Case("and", BarrierKind::And)
               .Default(BarrierKind::Or);
    name = rest;
  }
  name.consume_front("aligned.");
  bool counts = name == "count";
  Value *count = counts ? ci.getArgOperand(1) : builder.getInt32(0);
  Value *predicate = builder.getInt32(0);
  if (reduces)
    predicate = builder.CreateZExt(ci.getArgOperand(ci.arg_size() - 1),
                                   builder.getInt32Ty());
  Value *value = call("norm_emu_barrier", builder.getInt32Ty(),
                      {builder.getInt32(static_cast<uint32_t>(kind)),
                       ci.getArgOperand(0), count, predicate, site(ci)});
  if (ci.getType()->isVoidTy())
    return nullptr;
  return builder.CreateZExtOrTrunc(value, ci.getType());
}

/// `shfl.sync.{bfly,up,down,idx}.{i32,f32}[p]`; with `p` the result has the
/// predicate beside the value.
std::optional<Value *> Retarget::rewriteShuffle(StringRef name, CallInst &ci) {
  auto kind = StringSwitch<std::optional<Exchange>>(name.split('.').first)
                  .Case("bfly", Exchange::ShuffleXor)
                  .Case("up", Exchange::ShuffleUp)
                  .Case("down", Exchange::ShuffleDown)
                  .Case("idx", Exchange::ShuffleIndex)
                  .Default(std::nullopt);
  if (!kind)
    return std::nullopt;
  Type *i32 = builder.getInt32Ty();
  Value *value = ci.getArgOperand(1);
  Value *both = call("norm_emu_exchange", builder.getInt64Ty(),
                     {builder.getInt32(static_cast<uint32_t>(*kind)),
                      ci.getArgOperand(0), builder.CreateBitCast(value, i32),
                      ci.getArgOperand(2), ci.getArgOperand(3), site(ci)});
  Value *low =
      builder.CreateBitCast(builder.CreateTrunc(both, i32), value->getType());
  if (!ci.getType()->isStructTy())
    return low;
  Value *inside =
      builder.CreateTrunc(builder.CreateLShr(both, 32), builder.getInt1Ty());
  Value *pair = PoisonValue::get(ci.getType());
  pair = builder.CreateInsertValue(pair, low, 0);
  return builder.CreateInsertValue(pair, inside, 1);
}

/// `vote.X.sync`, `redux.sync.X` and `bar.warp.sync`.
std::optional<Value *> Retarget::rewriteVote(StringRef name, CallInst &ci) {
  auto kind = StringSwitch<std::optional<Exchange>>(name)
                  .Case("bar.warp.sync", Exchange::Sync)
                  .Case("vote.all.sync", Exchange::VoteAll)
                  .Case("vote.any.sync", Exchange::VoteAny)
                  .Case("vote.uni.sync", Exchange::VoteUniform)
                  .Case("vote.ballot.sync", Exchange::Ballot)
                  .Case("redux.sync.add", Exchange::ReduceAdd)
                  .Case("redux.sync.min", Exchange::ReduceMin)
                  .Case("redux.sync.max", Exchange::ReduceMax)
                  .Case("redux.sync.umin", Exchange::ReduceUnsignedMin)
                  .Case("redux.sync.umax", Exchange::ReduceUnsignedMax)
                  .Case("redux.sync.and", Exchange::ReduceAnd)
                  .Case("redux.sync.or", Exchange::ReduceOr)
                  .Case("redux.sync.xor", Exchange::ReduceXor)
                  .Default(std::nullopt);
  if (!kind)
    return std::nullopt;
  Type *i32 = builder.getInt32Ty();
  Value *zero = builder.getInt32(0), *mask = ci.getArgOperand(0);
  Value *value = zero;
  if (name.starts_with("vote."))
    value = builder.CreateZExt(ci.getArgOperand(1), i32);
  else if (name.starts_with("redux.")) {
    // The value comes before the mask here.
    value = ci.getArgOperand(0);
    mask = ci.getArgOperand(1);
  }
  Value *both = call("norm_emu_exchange", builder.getInt64Ty(),
                     {builder.getInt32(static_cast<uint32_t>(*kind)), mask,
                      value, zero, zero, site(ci)});
  if (ci.getType()->isVoidTy())
    return nullptr;
  return builder.CreateTrunc(both, ci.getType());
}

/// `cp.async.{ca,cg}.shared.global.N[.s]` and the waits.
std::optional<Value *> Retarget::rewriteCopy(StringRef name, CallInst &ci) {
  Type *none = builder.getVoidTy();
  if (name == "commit.group") {
    call("norm_emu_commit_copies", none, {});
    return nullptr;
  }
  if (name == "wait.group") {
    call(
        "norm_emu_wait_copies", none,
        {builder.CreateZExtOrTrunc(ci.getArgOperand(0), builder.getInt32Ty())});
    return nullptr;
  }
  if (name == "wait.all") {
    call("norm_emu_wait_all_copies", none, {});
    return nullptr;
  }
  unsigned size = 0;
  if (!(name.consume_front("ca.") || name.consume_front("cg.")) ||
      !name.consume_front("shared.global.") || name.consumeInteger(10, size) ||
      !(name.empty() || name == ".s"))
    return std::nullopt;
  Value *sourceSize =
      name == ".s" ? ci.getArgOperand(2) : builder.getInt32(size);
  call("norm_emu_copy_async", none,
       {generic(ci.getArgOperand(0)), generic(ci.getArgOperand(1)),
        builder.getInt32(size), sourceSize, site(ci)});
  return nullptr;
}

/// Fences order memory that is in order here; hints have no effect.
static bool isWithoutEffect(StringRef name) {
  return name.starts_with("membar.") || name.starts_with("fence.") ||
         name.starts_with("griddepcontrol.") || name == "nanosleep" ||
         name.starts_with("prefetch");
}

std::optional<Value *> Retarget::rewriteOther(StringRef name, CallInst &ci) {
  if (isWithoutEffect(name))
    return nullptr;
  if (name == "exit") {
    call("norm_emu_exit", builder.getVoidTy(), {});
    return nullptr;
  }
  if (name.consume_front("isspacep.")) {
    bool shared = name == "shared" || name == "shared.cluster";
    if (!shared && name != "global")
      return std::nullopt;
    Value *is = call("norm_emu_is_shared", builder.getInt32Ty(),
                     {generic(ci.getArgOperand(0))});
    return builder.CreateICmp(shared ? CmpInst::ICMP_NE : CmpInst::ICMP_EQ, is,
                              builder.getInt32(0));
  }
  return std::nullopt;
}

std::optional<Value *> Retarget::rewriteIntrinsic(CallInst &ci) {
  StringRef name = ci.getCalledFunction()->getName();
  if (name == "llvm.trap" || name == "llvm.debugtrap") {
    call("norm_emu_trap", builder.getVoidTy(), {site(ci)});
    return nullptr;
  }
  name.consume_front("llvm.nvvm.");
  if (name.consume_front("read.ptx.sreg."))
    return rewriteRegister(name);
  if (name.consume_front("barrier.cta."))
    return rewriteBarrier(name, ci);
  if (name.consume_front("shfl.sync."))
    return rewriteShuffle(name, ci);
  if (name.consume_front("cp.async."))
    return rewriteCopy(name, ci);
  if (auto value = rewriteVote(name, ci))
    return value;
  if (auto value = rewriteOther(name, ci))
    return value;
  if (auto value = rewriteInteger(name, ci))
    return value;
  if (auto value = rewriteConversion(name, ci))
    return value;
  return rewriteArithmetic(name, ci);
}
