//===- EmulatorTest.cpp - A host that embeds the emulator -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a program cannot do from inside: a handler for failures, launches after
// one that failed, settings and counters by the C interface. Kernels are LLVM
// IR as gpu-module-to-binary{format=llvm} would embed it.
//
//===----------------------------------------------------------------------===//

#include "Norm/ExecutionEngine/Emulator.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <numeric>

extern "C" {
void *mgpuModuleLoad(void *data, size_t size);
void mgpuModuleUnload(void *module);
void *mgpuModuleGetFunction(void *module, const char *name);
void mgpuLaunchKernel(void *function, intptr_t gridX, intptr_t gridY,
                      intptr_t gridZ, intptr_t blockX, intptr_t blockY,
                      intptr_t blockZ, int32_t shared, void *stream,
                      void **arguments, void **extra, size_t count);
void mgpuLaunchClusterKernel(void *function, intptr_t clusterX,
                             intptr_t clusterY, intptr_t clusterZ,
                             intptr_t gridX, intptr_t gridY, intptr_t gridZ,
                             intptr_t blockX, intptr_t blockY, intptr_t blockZ,
                             int32_t shared, void *stream, void **arguments,
                             void **extra);
void *mgpuMemAlloc(uint64_t size, void *stream, bool hostShared);
void mgpuMemFree(void *p, void *stream);
}

namespace {

const char *const kernels = R"(
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@table = internal addrspace(4) constant [4 x i32] [i32 10, i32 11, i32 12, i32 13]
@total = internal addrspace(1) global i32 5
@slots = internal addrspace(3) global [32 x i32] undef

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.exit()
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; y[tid] = tid
define ptx_kernel void @number(ptr %y) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr i32, ptr %y, i32 %t
  store i32 %t, ptr %p, align 4
  ret void
}

; Two threads, and all lanes of a warp, meet at a barrier; y[tid] = slots[31 - tid].
define ptx_kernel void @reverse(ptr %y) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %s = getelementptr i32, ptr addrspace(3) @slots, i32 %t
  store i32 %t, ptr addrspace(3) %s, align 4
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %r = sub i32 31, %t
  %q = getelementptr i32, ptr addrspace(3) @slots, i32 %r
  %v = load i32, ptr addrspace(3) %q, align 4
  %p = getelementptr i32, ptr %y, i32 %t
  store i32 %v, ptr %p, align 4
  ret void
}

; order[ticket] = block, in the order in which blocks run.
define ptx_kernel void @ticket(ptr %counter, ptr %order) {
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %n = atomicrmw add ptr %counter, i32 1 monotonic, align 4
  %p = getelementptr i32, ptr %order, i32 %n
  store i32 %b, ptr %p, align 4
  ret void
}

; y[tid] = table[tid] + total, and total is written by thread 0.
define ptx_kernel void @variables(ptr %y) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %q = getelementptr i32, ptr addrspace(4) @table, i32 %t
  %a = load i32, ptr addrspace(4) %q, align 4
  %b = load i32, ptr addrspace(1) @total, align 4
  %c = add i32 %a, %b
  %p = getelementptr i32, ptr %y, i32 %t
  store i32 %c, ptr %p, align 4
  ret void
}

; Clears `bytes` bytes; odd threads leave before that.
define ptx_kernel void @clear(ptr %y, i64 %bytes) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %odd = trunc i32 %t to i1
  br i1 %odd, label %leave, label %stay
leave:
  call void @llvm.nvvm.exit()
  unreachable
stay:
  call void @llvm.memset.p0.i64(ptr align 4 %y, i8 0, i64 %bytes, i1 false)
  ret void
}

; A structure by value.
define ptx_kernel void @second(ptr %y, ptr byval({ i32, i32 }) align 4 %pair) {
  %q = getelementptr i32, ptr %pair, i32 1
  %v = load i32, ptr %q, align 4
  store i32 %v, ptr %y, align 4
  ret void
}

define ptx_kernel void @sized(ptr %y) "nvvm.reqntid"="64,1,1" {
  ret void
}
)";

class Emulator : public testing::Test {
protected:
  void SetUp() override {
    normEmuSetErrorHandler(
        [](const char *message, void *self) {
          static_cast<Emulator *>(self)->errors.emplace_back(message);
        },
        this);
    normEmuSetSeed(0);
    ASSERT_TRUE(normEmuSetChecks("all"));
    llvm::LLVMContext context;
    llvm::SMDiagnostic diagnostic;
    auto parsed = llvm::parseAssemblyString(kernels, diagnostic, context);
    ASSERT_TRUE(parsed) << diagnostic.getMessage().str();
    llvm::raw_string_ostream out(bitcode);
    llvm::WriteBitcodeToFile(*parsed, out);
    module = mgpuModuleLoad(bitcode.data(), bitcode.size());
    ASSERT_TRUE(errors.empty()) << errors.front();
  }
  void TearDown() override {
    mgpuModuleUnload(module);
    normEmuSetErrorHandler(nullptr, nullptr);
  }

  void launch(const char *name, int blocks, int threads,
              std::vector<void *> arguments) {
    mgpuLaunchKernel(mgpuModuleGetFunction(module, name), blocks, 1, 1, threads,
                     1, 1, 0, nullptr, arguments.data(), nullptr,
                     arguments.size());
  }

  std::string bitcode;
  void *module = nullptr;
  std::vector<std::string> errors;
};

/// Memory of the host that kernels may touch while this lives.
struct Registered {
  explicit Registered(size_t count) : values(count), data(values.data()) {
    normEmuRegister(data, count * sizeof(int32_t));
  }
  ~Registered() { EXPECT_TRUE(normEmuUnregister(data)); }

  std::vector<int32_t> values;
  void *data;
};

TEST_F(Emulator, GoesOnAfterAFailure) {
  Registered y(32);
  uint64_t before = normEmuErrorCount();
  launch("number", 1, 33, {&y.data});
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors[0].find("out of bounds: thread 32 writes 4 bytes at offset "
                           "128 of argument 0, which has 128 bytes"),
            std::string::npos)
      << errors[0];
  EXPECT_EQ(normEmuErrorCount(), before + 1);
  EXPECT_EQ(normEmuLastError(), errors[0]);
  // Threads that were left in the middle of things start anew.
  launch("reverse", 1, 31, {&y.data});
  EXPECT_EQ(errors.size(), 2u);
  launch("reverse", 1, 32, {&y.data});
  EXPECT_EQ(errors.size(), 2u);
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(y.values[i], 31 - i);
}

TEST_F(Emulator, RefusesUnknownChecks) {
  Registered y(32);
  EXPECT_TRUE(normEmuSetChecks("bounds,races"));
  EXPECT_FALSE(normEmuSetChecks("bounds,speed"));
  EXPECT_TRUE(normEmuSetChecks("none"));
  EXPECT_TRUE(normEmuSetChecks("-races,-blocks"));
  launch("number", 1, 33, {&y.data});
  EXPECT_EQ(errors.size(), 1u);
}

TEST_F(Emulator, OrdersBlocksBySeed) {
  constexpr int blocks = 50;
  auto orderOf = [&](uint64_t seed) {
    normEmuSetSeed(seed);
    Registered counter(1), order(blocks);
    launch("ticket", blocks, 1, {&counter.data, &order.data});
    return order.values;
  };
  std::vector<int32_t> ascending(blocks);
  std::iota(ascending.begin(), ascending.end(), 0);
  EXPECT_EQ(orderOf(0), ascending);
  std::vector<int32_t> one = orderOf(1);
  EXPECT_NE(one, ascending);
  EXPECT_NE(one, orderOf(2));
  EXPECT_EQ(one, orderOf(1));
  EXPECT_TRUE(std::is_permutation(one.begin(), one.end(), ascending.begin()));
  EXPECT_TRUE(errors.empty());
}

TEST_F(Emulator, AddsUpCounters) {
  // At a multiple of a sector, as memory of the device is.
  void *y = mgpuMemAlloc(32 * sizeof(int32_t), nullptr, false);
  normEmuResetCounters();
  normEmuEnableCounters(true);
  launch("number", 1, 32, {&y});
  launch("number", 1, 16, {&y});
  normEmuEnableCounters(false);
  launch("number", 1, 32, {&y});
  auto json = llvm::json::parse(normEmuCountersJson());
  ASSERT_TRUE(static_cast<bool>(json));
  ASSERT_EQ(json->getAsArray()->size(), 1u);
  const llvm::json::Object &kernel = *(*json->getAsArray())[0].getAsObject();
  EXPECT_EQ(kernel.getInteger("launches"), 2);
  EXPECT_EQ(kernel.getInteger("threads"), 48);
  const llvm::json::Object &array =
      *(*kernel.getArray("arrays"))[0].getAsObject();
  EXPECT_EQ(array.getInteger("size"), 256);
  EXPECT_EQ(array.getObject("written")->getInteger("bytes"), 192);
  EXPECT_EQ(array.getObject("written")->getInteger("sectors"), 6);
  EXPECT_NE(std::string(normEmuCountersText())
                .find("argument 0: written 192 bytes (0.75 of its 256), 2 warp "
                      "accesses, 3.00 sectors each"),
            std::string::npos)
      << normEmuCountersText();
  normEmuResetCounters();
  EXPECT_STREQ(normEmuCountersText(), "");
  mgpuMemFree(y, nullptr);
}

TEST_F(Emulator, KnowsVariablesOfTheDevice) {
  Registered y(8);
  launch("variables", 1, 4, {&y.data});
  EXPECT_TRUE(errors.empty()) << errors.front();
  EXPECT_EQ(y.values[0], 15);
  EXPECT_EQ(y.values[3], 18);
  launch("variables", 1, 5, {&y.data});
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors[0].find("reads 4 bytes at offset 16 of variable 'table', "
                           "which has 16 bytes"),
            std::string::npos)
      << errors[0];
}

TEST_F(Emulator, ChecksTransfersAndLetsThreadsLeave) {
  Registered y(8);
  y.values.assign(8, 1);
  int64_t bytes = 16;
  launch("clear", 1, 3, {&y.data, &bytes});
  EXPECT_TRUE(errors.empty()) << errors.front();
  EXPECT_EQ(y.values, (std::vector<int32_t>{0, 0, 0, 0, 1, 1, 1, 1}));
  bytes = 33;
  launch("clear", 1, 1, {&y.data, &bytes});
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors[0].find("writes 33 bytes at offset 0 of argument 0"),
            std::string::npos)
      << errors[0];
}

TEST_F(Emulator, PassesStructuresByValue) {
  Registered y(1);
  int32_t pair[] = {3, 4};
  launch("second", 1, 1, {&y.data, pair});
  EXPECT_TRUE(errors.empty()) << errors.front();
  EXPECT_EQ(y.values[0], 4);
}

TEST_F(Emulator, RefusesWrongLaunches) {
  Registered y(32);
  EXPECT_EQ(mgpuModuleGetFunction(module, "absent"), nullptr);
  launch("number", 1, 1, {&y.data, &y.data});
  launch("sized", 1, 32, {&y.data});
  void *arguments[] = {&y.data};
  mgpuLaunchClusterKernel(mgpuModuleGetFunction(module, "number"), 2, 1, 1, 2,
                          1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr);
  ASSERT_EQ(errors.size(), 4u);
  EXPECT_NE(errors[0].find("no kernel 'absent' in a module that has: clear"),
            std::string::npos)
      << errors[0];
  EXPECT_NE(errors[1].find("expected 1 arguments, got 2"), std::string::npos)
      << errors[1];
  EXPECT_NE(
      errors[2].find("expected (64, 1, 1), which the kernel was compiled"),
      std::string::npos)
      << errors[2];
  EXPECT_NE(errors[3].find("clusters of more than one block are not emulated"),
            std::string::npos)
      << errors[3];
  launch("sized", 1, 64, {&y.data});
  mgpuLaunchClusterKernel(mgpuModuleGetFunction(module, "number"), 1, 1, 1, 1,
                          1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr);
  EXPECT_EQ(errors.size(), 4u);
  EXPECT_EQ(y.values[31], 31);
}

TEST_F(Emulator, LeavesNothingWhereAModuleDidNotLoad) {
  std::string text = "not bitcode at all, but some text";
  void *bad = mgpuModuleLoad(text.data(), text.size());
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(bad, nullptr);
  // What builds on it does nothing.
  void *function = mgpuModuleGetFunction(bad, "number");
  EXPECT_EQ(function, nullptr);
  mgpuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr, 0);
  mgpuModuleUnload(bad);
  EXPECT_EQ(errors.size(), 1u);
}

TEST_F(Emulator, KnowsWhatWasAllocated) {
  void *p = mgpuMemAlloc(64, nullptr, false);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 256, 0u);
  launch("number", 1, 16, {&p});
  EXPECT_TRUE(errors.empty()) << errors.front();
  EXPECT_EQ(static_cast<int32_t *>(p)[15], 15);
  mgpuMemFree(static_cast<char *>(p) + 4, nullptr);
  EXPECT_EQ(errors.size(), 1u);
  mgpuMemFree(p, nullptr);
  mgpuMemFree(p, nullptr);
  EXPECT_EQ(errors.size(), 2u);
  EXPECT_FALSE(normEmuUnregister(p));
}

} // namespace
