//===- Wrappers.cpp - The CUDA runtime wrappers of MLIR over the driver -*- C++
//-*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions that gpu-to-llvm and the translation of gpu.binary call, with
// the signatures of LLVM 22.
//
//===----------------------------------------------------------------------===//

#include "../HostRange.h"
#include "../ProcessEnd.h"
#include "Modules.h"
#include "Norm/ExecutionEngine/Cuda.h"

using namespace norm::cuda;

#define NORM_EXPORT extern "C" __attribute__((visibility("default")))

//===----------------------------------------------------------------------===//
// The caller's stream
//===----------------------------------------------------------------------===//

static thread_local Stream callerStream = nullptr;
static thread_local bool hasCallerStream = false;

NORM_EXPORT void normCudaSetStream(void *stream) {
  callerStream = stream;
  hasCallerStream = true;
}
NORM_EXPORT void normCudaResetStream(void) { hasCallerStream = false; }

/// Whether a program has this stream from the caller.
static bool isCallers(Stream stream) {
  return hasCallerStream && stream == callerStream;
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

static Module *makeModule(const void *data, size_t size) {
  watchProcessEnd();
  return new Module(data, size);
}

NORM_EXPORT void *mgpuModuleLoad(void *data, size_t size) {
  return makeModule(data, size);
}
NORM_EXPORT void *mgpuModuleLoadJIT(void *data, int) {
  return makeModule(data, 0);
}
NORM_EXPORT void mgpuModuleUnload(void *module) {
  if (isEnding)
    return;
  static_cast<Module *>(module)->unload();
  delete static_cast<Module *>(module);
}
NORM_EXPORT void *mgpuModuleGetFunction(void *module, const char *name) {
  return static_cast<Module *>(module)->find(name);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// The driver refuses grids without blocks; here they are no work. What did not
/// load has been reported.
static bool isWork(void *function, const LaunchConfig &config) {
  return function && config.gridX && config.gridY && config.gridZ;
}

static std::string describeLaunch(const Function &function,
                                  const LaunchConfig &c) {
  auto triple = [](unsigned x, unsigned y, unsigned z) {
    return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " +
           std::to_string(z) + ")";
  };
  return "launch kernel '" + function.name + "' with a grid of " +
         triple(c.gridX, c.gridY, c.gridZ) + " blocks of " +
         triple(c.blockX, c.blockY, c.blockZ) + " threads and " +
         std::to_string(c.sharedBytes) + " bytes of dynamic shared memory";
}

static unsigned toUnsigned(intptr_t value) {
  return static_cast<unsigned>(value);
}

/// A launch in no clusters.
static LaunchConfig makeConfig(intptr_t gridX, intptr_t gridY, intptr_t gridZ,
                               intptr_t blockX, intptr_t blockY,
                               intptr_t blockZ, int32_t shared, void *stream) {
  return {toUnsigned(gridX),
          toUnsigned(gridY),
          toUnsigned(gridZ),
          toUnsigned(blockX),
          toUnsigned(blockY),
          toUnsigned(blockZ),
          static_cast<unsigned>(shared),
          stream,
          nullptr,
          0};
}

NORM_EXPORT void mgpuLaunchKernel(void *kernel, intptr_t gridX, intptr_t gridY,
                                  intptr_t gridZ, intptr_t blockX,
                                  intptr_t blockY, intptr_t blockZ,
                                  int32_t shared, void *stream,
                                  void **arguments, void **extra, size_t) {
  LaunchConfig c =
      makeConfig(gridX, gridY, gridZ, blockX, blockY, blockZ, shared, stream);
  const Functions *f = isWork(kernel, c) ? driver() : nullptr;
  if (!f)
    return;
  auto &function = *static_cast<Function *>(kernel);
  if (!function.allowShared(*f, c.sharedBytes))
    return;
  Result result = f->launchKernel(function.handle, c.gridX, c.gridY, c.gridZ,
                                  c.blockX, c.blockY, c.blockZ, c.sharedBytes,
                                  stream, arguments, extra);
  if (result != success)
    check(result, describeLaunch(function, c));
}

NORM_EXPORT void mgpuLaunchClusterKernel(void *kernel, intptr_t clusterX,
                                         intptr_t clusterY, intptr_t clusterZ,
                                         intptr_t gridX, intptr_t gridY,
                                         intptr_t gridZ, intptr_t blockX,
                                         intptr_t blockY, intptr_t blockZ,
                                         int32_t shared, void *stream,
                                         void **arguments, void **extra) {
  LaunchAttribute cluster;
  cluster.x = toUnsigned(clusterX);
  cluster.y = toUnsigned(clusterY);
  cluster.z = toUnsigned(clusterZ);
  LaunchConfig c =
      makeConfig(gridX, gridY, gridZ, blockX, blockY, blockZ, shared, stream);
  c.attributes = &cluster;
  c.attributeCount = 1;
  const Functions *f = isWork(kernel, c) ? driver() : nullptr;
  if (!f)
    return;
  auto &function = *static_cast<Function *>(kernel);
  if (!f->launchKernelWithConfig) {
    fail("cannot launch kernel '" + function.name +
         "' in clusters: the driver has no cuLaunchKernelEx, expected that of "
         "CUDA 11.8 or later");
    return;
  }
  if (!function.allowShared(*f, c.sharedBytes))
    return;
  Result result =
      f->launchKernelWithConfig(&c, function.handle, arguments, extra);
  if (result != success)
    check(result, describeLaunch(function, c) + ", in clusters");
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

NORM_EXPORT void *mgpuStreamCreate() {
  if (hasCallerStream)
    return callerStream;
  constexpr unsigned nonBlocking = 1;
  Stream stream = nullptr;
  if (const Functions *f = driver())
    check(f->streamCreate(&stream, nonBlocking), "make a stream");
  return stream;
}
NORM_EXPORT void mgpuStreamDestroy(void *stream) {
  if (isCallers(stream) || !stream)
    return;
  if (const Functions *f = driver())
    check(f->streamDestroy(stream), "destroy a stream");
}
NORM_EXPORT void mgpuStreamSynchronize(void *stream) {
  if (isCallers(stream))
    return;
  if (const Functions *f = driver())
    check(f->streamSynchronize(stream), "wait for a stream");
}
NORM_EXPORT void mgpuStreamWaitEvent(void *stream, void *event) {
  const Functions *f = event ? driver() : nullptr;
  if (f)
    check(f->streamWaitEvent(stream, event, 0), "wait for an event");
}
NORM_EXPORT void *mgpuEventCreate() {
  constexpr unsigned disableTiming = 2;
  Event event = nullptr;
  if (const Functions *f = driver())
    check(f->eventCreate(&event, disableTiming), "make an event");
  return event;
}
NORM_EXPORT void mgpuEventDestroy(void *event) {
  const Functions *f = event ? driver() : nullptr;
  if (f)
    check(f->eventDestroy(event), "destroy an event");
}
NORM_EXPORT void mgpuEventSynchronize(void *event) {
  const Functions *f = event ? driver() : nullptr;
  if (f)
    check(f->eventSynchronize(event), "wait for an event");
}
NORM_EXPORT void mgpuEventRecord(void *event, void *stream) {
  const Functions *f = event ? driver() : nullptr;
  if (f)
    check(f->eventRecord(event, stream), "record an event");
}
NORM_EXPORT void mgpuSetDefaultDevice(int32_t device) {
  setDefaultDevice(device);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static Pointer toPointer(void *p) { return reinterpret_cast<Pointer>(p); }

NORM_EXPORT void *mgpuMemAlloc(uint64_t size, void *, bool hostShared) {
  constexpr unsigned attachGlobal = 1;
  Pointer p = 0;
  const Functions *f = size ? driver() : nullptr;
  if (f)
    check(hostShared ? f->memoryAllocateManaged(&p, size, attachGlobal)
                     : f->memoryAllocate(&p, size),
          "allocate " + std::to_string(size) + " bytes");
  return reinterpret_cast<void *>(p);
}
NORM_EXPORT void mgpuMemFree(void *p, void *) {
  const Functions *f = p ? driver() : nullptr;
  if (f)
    check(f->memoryFree(toPointer(p)), "free memory");
}
NORM_EXPORT void mgpuMemcpy(void *to, void *from, size_t size, void *stream) {
  const Functions *f = size ? driver() : nullptr;
  if (f)
    check(f->memoryCopy(toPointer(to), toPointer(from), size, stream),
          "copy " + std::to_string(size) + " bytes");
}
NORM_EXPORT void mgpuMemset32(void *to, unsigned value, size_t count,
                              void *stream) {
  const Functions *f = count ? driver() : nullptr;
  if (f)
    check(f->memorySet32(toPointer(to), value, count, stream), "fill memory");
}
NORM_EXPORT void mgpuMemset16(void *to, unsigned short value, size_t count,
                              void *stream) {
  const Functions *f = count ? driver() : nullptr;
  if (f)
    check(f->memorySet16(toPointer(to), value, count, stream), "fill memory");
}

NORM_EXPORT void mgpuMemHostRegister(void *p, uint64_t size) {
  const Functions *f = size ? driver() : nullptr;
  if (f)
    check(f->hostRegister(p, size, 0), "register memory of the host");
}
NORM_EXPORT void mgpuMemHostUnregister(void *p) {
  if (const Functions *f = driver())
    check(f->hostUnregister(p), "unregister memory of the host");
}

NORM_EXPORT void mgpuMemHostRegisterMemRef(int64_t rank, void *descriptor,
                                           int64_t elementSize) {
  norm::HostRange range = norm::hostRange(rank, descriptor, elementSize);
  mgpuMemHostRegister(range.begin, range.size);
}
NORM_EXPORT void mgpuMemHostUnregisterMemRef(int64_t rank, void *descriptor,
                                             int64_t elementSize) {
  norm::HostRange range = norm::hostRange(rank, descriptor, elementSize);
  if (range.size)
    mgpuMemHostUnregister(range.begin);
}
