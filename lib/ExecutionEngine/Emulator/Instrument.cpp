//===- Instrument.cpp - Calls that check accesses -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GlobalShadow.h"
#include "Retarget.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;
using namespace norm::emu;

static constexpr auto readKind = static_cast<unsigned>(Access::Read);
static constexpr auto writeKind = static_cast<unsigned>(Access::Write);
static constexpr auto atomicKind = static_cast<unsigned>(Access::Atomic);

/// Local arrays belong to one thread, and nothing that is checked can go wrong
/// with them but their bounds.
static bool isLocal(const Value *pointer) {
  return isa<AllocaInst>(getUnderlyingObject(pointer));
}

void Retarget::emitAccess(Instruction &at, Value *pointer, Value *bytes,
                          Align alignment, unsigned kind) {
  if (isLocal(pointer))
    return;
  builder.SetInsertPoint(&at);
  call("norm_emu_access", builder.getVoidTy(),
       {generic(pointer),
        builder.CreateZExtOrTrunc(bytes, builder.getInt64Ty()),
        builder.getInt32(alignment.value()), builder.getInt32(kind), site(at)});
}

/// memcpy, memmove and memset.
void Retarget::instrumentTransfer(Instruction &instruction) {
  if (auto *set = dyn_cast<MemSetInst>(&instruction))
    emitAccess(instruction, set->getDest(), set->getLength(),
               set->getDestAlign().valueOrOne(), writeKind);
  if (auto *transfer = dyn_cast<MemTransferInst>(&instruction)) {
    emitAccess(instruction, transfer->getSource(), transfer->getLength(),
               transfer->getSourceAlign().valueOrOne(), readKind);
    emitAccess(instruction, transfer->getDest(), transfer->getLength(),
               transfer->getDestAlign().valueOrOne(), writeKind);
  }
}

/// A division that has no result stops this machine, while a GPU goes on with
/// some value.
void Retarget::guardDivision(Instruction &instruction) {
  Value *divisor = instruction.getOperand(1);
  Type *type = divisor->getType();
  if (!type->isIntegerTy() || isa<Constant>(divisor))
    return;
  unsigned opcode = instruction.getOpcode();
  Value *bad = builder.CreateICmpEQ(divisor, Constant::getNullValue(type));
  if (opcode == Instruction::SDiv || opcode == Instruction::SRem) {
    APInt least = APInt::getSignedMinValue(type->getIntegerBitWidth());
    Value *overflows = builder.CreateAnd(
        builder.CreateICmpEQ(divisor, Constant::getAllOnesValue(type)),
        builder.CreateICmpEQ(instruction.getOperand(0),
                             ConstantInt::get(type, least)));
    bad = builder.CreateOr(bad, overflows);
  }
  Value *where = site(instruction);
  Instruction *then =
      SplitBlockAndInsertIfThen(bad, &instruction, /*Unreachable=*/false);
  builder.SetInsertPoint(then);
  call("norm_emu_bad_division", builder.getVoidTy(), {where});
}

/// Once the promise has been checked nothing may depend on it: a program that
/// switches the check off must not stop this machine.
static void forgetAlignment(Instruction &instruction) {
  if (auto *load = dyn_cast<LoadInst>(&instruction);
      load && !load->isAtomic() && !isLocal(load->getPointerOperand()))
    load->setAlignment(Align(1));
  if (auto *store = dyn_cast<StoreInst>(&instruction);
      store && !store->isAtomic() && !isLocal(store->getPointerOperand()))
    store->setAlignment(Align(1));
}

void Retarget::instrument(Instruction &instruction) {
  const DataLayout &layout = module.getDataLayout();
  auto size = [&](Type *type) {
    return builder.getInt64(layout.getTypeStoreSize(type));
  };
  if (auto *load = dyn_cast<LoadInst>(&instruction))
    emitAccess(instruction, load->getPointerOperand(), size(load->getType()),
               load->getAlign(), load->isAtomic() ? atomicKind : readKind);
  else if (auto *store = dyn_cast<StoreInst>(&instruction))
    emitAccess(instruction, store->getPointerOperand(),
               size(store->getValueOperand()->getType()), store->getAlign(),
               store->isAtomic() ? atomicKind : writeKind);
  else if (auto *update = dyn_cast<AtomicRMWInst>(&instruction))
    emitAccess(instruction, update->getPointerOperand(),
               size(update->getType()), update->getAlign(), atomicKind);
  else if (auto *swap = dyn_cast<AtomicCmpXchgInst>(&instruction))
    emitAccess(instruction, swap->getPointerOperand(),
               size(swap->getNewValOperand()->getType()), swap->getAlign(),
               atomicKind);
  else if (isa<MemIntrinsic>(&instruction))
    instrumentTransfer(instruction);
  else if (instruction.isIntDivRem())
    guardDivision(instruction);
  forgetAlignment(instruction);
}
