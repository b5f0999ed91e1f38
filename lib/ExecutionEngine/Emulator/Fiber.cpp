//===- Fiber.cpp - One stack per emulated thread -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Switching saves what a call preserves and nothing else: a block of 256
// threads switches thousands of times. Where there is no code for that, the C
// library's ucontext does the same by way of the kernel.
//
//===----------------------------------------------------------------------===//

#include "Fiber.h"

#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define NORM_EMU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NORM_EMU_ASAN 1
#endif
#endif
#ifdef NORM_EMU_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(__x86_64__) || defined(NORM_EMU_UCONTEXT)
#include <ucontext.h>
#endif

using namespace norm::emu;

//===----------------------------------------------------------------------===//
// Stacks
//===----------------------------------------------------------------------===//

StackPool::~StackPool() {
  if (base)
    munmap(base, stride * count);
}

bool StackPool::reserve(size_t wantCount, size_t wantBytes) {
  size_t page = sysconf(_SC_PAGESIZE);
  size_t wantStride = (wantBytes + page - 1) / page * page + page;
  if (wantCount <= count && wantStride <= stride)
    return true;
  if (base)
    munmap(base, stride * count);
  base = nullptr;
  count = wantCount > count ? wantCount : count;
  stride = wantStride > stride ? wantStride : stride;
  guard = page;
  void *p = mmap(nullptr, stride * count, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    count = stride = 0;
    return false;
  }
  base = static_cast<char *>(p);
  for (size_t i = 0; i < count; ++i)
    if (mprotect(base + i * stride, page, PROT_NONE) != 0)
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Switching
//===----------------------------------------------------------------------===//

#if defined(__x86_64__) && !defined(NORM_EMU_UCONTEXT)

struct Fiber::Context {
  void *stackPointer = nullptr;
  char *bottom = nullptr;
  size_t size = 0;
};

/// Pushes what the System V ABI preserves, stores the stack pointer in *save,
/// takes the one given and pops in reverse.
extern "C" void normEmuSwitch(void **save, void *next);
asm(R"(
  .text
  .type normEmuSwitch, @function
  .hidden normEmuSwitch
normEmuSwitch:
  .cfi_startproc
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .cfi_endproc
  .size normEmuSwitch, .-normEmuSwitch
)");

static void prepare(void *&stackPointer, char *bottom, size_t size,
                    void (*entry)()) {
  auto top = reinterpret_cast<uintptr_t>(bottom + size) & ~uintptr_t(15);
  auto *slots = reinterpret_cast<void **>(top);
  // Entered by `ret`, so the stack must look as after a call: the address
  // of a caller that does not exist lies 8 below a multiple of 16.
  *--slots = nullptr;
  *--slots = reinterpret_cast<void *>(entry);
  for (int i = 0; i < 6; ++i)
    *--slots = nullptr;
  stackPointer = slots;
}

static void switchTo(void **save, void *next) { normEmuSwitch(save, next); }

#else

struct Fiber::Context {
  ucontext_t registers = {};
  ucontext_t *stackPointer = &registers;
  char *bottom = nullptr;
  size_t size = 0;
};

static void prepare(ucontext_t *context, char *bottom, size_t size,
                    void (*entry)()) {
  getcontext(context);
  context->uc_stack.ss_sp = bottom;
  context->uc_stack.ss_size = size;
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
}

static void switchTo(ucontext_t **save, ucontext_t *next) {
  swapcontext(*save, next);
}

#endif

Fiber::Fiber() : context(std::make_unique<Context>()) {}
Fiber::~Fiber() = default;
Fiber::Fiber(Fiber &&) noexcept = default;
Fiber &Fiber::operator=(Fiber &&) noexcept = default;

void Fiber::start(char *bottom, size_t size, void (*entry)()) {
  context->bottom = bottom;
  context->size = size;
  prepare(context->stackPointer, bottom, size, entry);
}

void Fiber::resume(Fiber &from) {
#ifdef NORM_EMU_ASAN
  void *fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, context->bottom, context->size);
#endif
  switchTo(&from.context->stackPointer, context->stackPointer);
#ifdef NORM_EMU_ASAN
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void Fiber::entered(Fiber &from) {
#ifdef NORM_EMU_ASAN
  const void *bottom = nullptr;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &from.context->size);
  from.context->bottom = const_cast<char *>(static_cast<const char *>(bottom));
#else
  (void)from;
#endif
}
