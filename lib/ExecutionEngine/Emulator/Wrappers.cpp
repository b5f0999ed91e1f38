//===- Wrappers.cpp - The CUDA runtime wrappers of MLIR, emulated -*- C++
//-*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions that gpu-to-llvm and the translation of gpu.binary call, with
// the signatures of LLVM 22. Streams and events exist only as handles: all that
// is asked for is done before the call returns.
//
//===----------------------------------------------------------------------===//

#include "../HostRange.h"
#include "../ProcessEnd.h"
#include "Machine.h"
#include "Module.h"
#include "llvm/ADT/STLExtras.h"

#include <cstring>

using namespace norm::emu;

#define NORM_EXPORT extern "C" __attribute__((visibility("default")))

/// A handle that is not null and means nothing.
static char handle;

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

NORM_EXPORT void *mgpuModuleLoad(void *data, size_t size) {
  watchProcessEnd();
  std::lock_guard<std::recursive_mutex> lock(machine().mutex);
  auto module =
      Module::load(llvm::StringRef(static_cast<const char *>(data), size));
  if (module)
    return module->release();
  failCall("cannot load a module of device code: " +
           llvm::toString(module.takeError()));
  return nullptr;
}

/// Given PTX for a driver to compile; there is no driver here.
NORM_EXPORT void *mgpuModuleLoadJIT(void *, int) {
  failCall("cannot load a module of device code: expected the bitcode of "
           "gpu-module-to-binary{format=llvm}, got PTX");
  return nullptr;
}

NORM_EXPORT void mgpuModuleUnload(void *module) {
  if (isEnding)
    return;
  std::lock_guard<std::recursive_mutex> lock(machine().mutex);
  delete static_cast<Module *>(module);
}

NORM_EXPORT void *mgpuModuleGetFunction(void *module, const char *name) {
  if (!module)
    return nullptr;
  std::lock_guard<std::recursive_mutex> lock(machine().mutex);
  if (llvm::Error error = static_cast<Module *>(module)->compile()) {
    failCall("cannot compile a module of device code: " +
             llvm::toString(std::move(error)));
    return nullptr;
  }
  auto &kernels = static_cast<Module *>(module)->kernels;
  if (auto it = kernels.find(name); it != kernels.end())
    return &it->second;
  std::string known;
  for (const auto &[kernel, unused] : kernels)
    known += (known.empty() ? "" : ", ") + kernel;
  failCall("no kernel '" + std::string(name) +
           "' in a module that has: " + (known.empty() ? "none" : known));
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

static Dim3 toDim3(intptr_t x, intptr_t y, intptr_t z) {
  return {static_cast<uint64_t>(x), static_cast<uint64_t>(y),
          static_cast<uint64_t>(z)};
}

/// A module that did not load has been reported; its launches do nothing.
static void launch(void *function, Dim3 grid, Dim3 block, int32_t shared,
                   void **arguments) {
  if (function)
    machine().launch(*static_cast<Kernel *>(function), grid, block,
                     static_cast<unsigned>(shared), arguments);
}

NORM_EXPORT void mgpuLaunchKernel(void *function, intptr_t gridX,
                                  intptr_t gridY, intptr_t gridZ,
                                  intptr_t blockX, intptr_t blockY,
                                  intptr_t blockZ, int32_t shared, void *,
                                  void **arguments, void **, size_t count) {
  if (function) {
    const Kernel &kernel = *static_cast<Kernel *>(function);
    if (count != kernel.parameters.size()) {
      failCall("cannot launch kernel '" + kernel.name + "': expected " +
               std::to_string(kernel.parameters.size()) + " arguments, got " +
               std::to_string(count));
      return;
    }
  }
  launch(function, toDim3(gridX, gridY, gridZ), toDim3(blockX, blockY, blockZ),
         shared, arguments);
}

NORM_EXPORT void mgpuLaunchClusterKernel(void *function, intptr_t clusterX,
                                         intptr_t clusterY, intptr_t clusterZ,
                                         intptr_t gridX, intptr_t gridY,
                                         intptr_t gridZ, intptr_t blockX,
                                         intptr_t blockY, intptr_t blockZ,
                                         int32_t shared, void *,
                                         void **arguments, void **) {
  if (clusterX * clusterY * clusterZ != 1) {
    failCall("clusters of more than one block are not emulated, got (" +
             std::to_string(clusterX) + ", " + std::to_string(clusterY) + ", " +
             std::to_string(clusterZ) + ")");
    return;
  }
  launch(function, toDim3(gridX, gridY, gridZ), toDim3(blockX, blockY, blockZ),
         shared, arguments);
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

NORM_EXPORT void *mgpuStreamCreate() { return &handle; }
NORM_EXPORT void mgpuStreamDestroy(void *) {}
NORM_EXPORT void mgpuStreamSynchronize(void *) {}
NORM_EXPORT void mgpuStreamWaitEvent(void *, void *) {}
NORM_EXPORT void *mgpuEventCreate() { return &handle; }
NORM_EXPORT void mgpuEventDestroy(void *) {}
NORM_EXPORT void mgpuEventSynchronize(void *) {}
NORM_EXPORT void mgpuEventRecord(void *, void *) {}
NORM_EXPORT void mgpuSetDefaultDevice(int32_t device) {
  if (device != 0)
    failCall("there is one emulated device, 0; got " + std::to_string(device));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

NORM_EXPORT void *mgpuMemAlloc(uint64_t size, void *, bool) {
  std::lock_guard<std::recursive_mutex> lock(machine().mutex);
  void *p = memory().allocate(size);
  if (!p)
    failCall("no memory for an array of " + std::to_string(size) + " bytes");
  return p;
}

NORM_EXPORT void mgpuMemFree(void *p, void *) {
  std::lock_guard<std::recursive_mutex> lock(machine().mutex);
  if (p && !memory().release(static_cast<char *>(p)))
    failCall("freed an address that is not the start of an allocated array");
}

/// Whether all bytes lie in the array that the first lies in; addresses of the
/// host, which are in none, are taken as they are.
static bool checkRange(const char *what, const void *p, size_t size) {
  const auto *begin = static_cast<const char *>(p);
  Buffer *buffer = memory().find(begin, 0);
  // The end of one array may be the start of something of the host.
  if (!buffer || begin == buffer->end() || memory().find(begin, size))
    return true;
  failCall(std::string("out of bounds: ") + what + " of " +
           std::to_string(size) + " bytes at offset " +
           std::to_string(begin - buffer->begin) + " of an array of " +
           std::to_string(buffer->size) + " bytes");
  return false;
}

NORM_EXPORT void mgpuMemcpy(void *to, void *from, size_t size, void *) {
  std::lock_guard<std::recursive_mutex> lock(machine().mutex);
  if (checkRange("copy", to, size) && checkRange("copy", from, size))
    std::memmove(to, from, size);
}

template <typename T> static void fill(void *to, T value, size_t count) {
  std::lock_guard<std::recursive_mutex> lock(machine().mutex);
  if (!checkRange("fill", to, count * sizeof(T)))
    return;
  for (size_t i = 0; i < count; ++i)
    std::memcpy(static_cast<char *>(to) + i * sizeof(T), &value, sizeof(T));
}

NORM_EXPORT void mgpuMemset32(void *to, unsigned value, size_t count, void *) {
  fill<uint32_t>(to, value, count);
}
NORM_EXPORT void mgpuMemset16(void *to, unsigned short value, size_t count,
                              void *) {
  fill<uint16_t>(to, value, count);
}

NORM_EXPORT void mgpuMemHostRegister(void *p, uint64_t size) {
  std::lock_guard<std::recursive_mutex> lock(machine().mutex);
  memory().add(static_cast<char *>(p), size);
}
NORM_EXPORT void mgpuMemHostUnregister(void *p) {
  std::lock_guard<std::recursive_mutex> lock(machine().mutex);
  if (!memory().remove(static_cast<char *>(p)))
    failCall("unregistered memory of the host that is not registered");
}

NORM_EXPORT void mgpuMemHostRegisterMemRef(int64_t rank, void *descriptor,
                                           int64_t elementSize) {
  norm::HostRange range = norm::hostRange(rank, descriptor, elementSize);
  mgpuMemHostRegister(range.begin, range.size);
}
NORM_EXPORT void mgpuMemHostUnregisterMemRef(int64_t rank, void *descriptor,
                                             int64_t elementSize) {
  norm::HostRange range = norm::hostRange(rank, descriptor, elementSize);
  mgpuMemHostUnregister(range.begin);
}
