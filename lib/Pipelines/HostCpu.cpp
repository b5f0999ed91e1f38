//===- HostCpu.cpp - The machine that compiles -----------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Pipelines/Pipelines.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#include <thread>

using namespace mlir;
using namespace mlir::norm;

static CpuIsa hostIsa() {
  if (!llvm::Triple(llvm::sys::getProcessTriple()).isX86())
    return CpuIsa::Any;
  return llvm::sys::getHostCPUFeatures().lookup("avx512bw") ? CpuIsa::Avx512
                                                            : CpuIsa::X86;
}

static bool hostRoundsToBf16() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  return features.lookup("avx512bf16") || features.lookup("avxneconvert") ||
         features.lookup("bf16");
}

/// Bytes of the data cache of a level as Linux tells, "1024K" or "32M"; 0 if it
/// does not.
static int64_t cacheBytes(unsigned level) {
  auto file = llvm::MemoryBuffer::getFileAsStream(
      "/sys/devices/system/cpu/cpu0/cache/index" + Twine(level) + "/size");
  if (!file)
    return 0;
  StringRef text = (*file)->getBuffer().trim();
  int64_t unit = text.consume_back("K")   ? 1 << 10
                 : text.consume_back("M") ? 1 << 20
                                          : 1;
  int64_t size;
  return text.getAsInteger(10, size) ? 0 : size * unit;
}

/// Zen's third cache takes what leaves the second and is as fast to write to:
/// measured on Zen 4, plain stores win up to three quarters of it. Those of
/// others are far from their cores: on Sapphire Rapids stores past the caches
/// win as soon as the second caches overflow.
static int64_t hostStreamBytes() {
  if (llvm::sys::getHostCPUName().starts_with("znver"))
    return cacheBytes(3) / 4 * 3;
  return cacheBytes(2) * std::max(1u, std::thread::hardware_concurrency());
}

CpuTarget norm::hostCpuTarget() {
  int64_t known = hostStreamBytes();
  return {hostIsa(), known ? known : NormToCpuOptions().streamBytes,
          hostRoundsToBf16()};
}
