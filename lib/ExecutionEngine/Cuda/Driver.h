//===- Driver.h - CUDA's driver, opened at run time -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The few functions, types and numbers of cuda.h that are needed, so that no
// part of CUDA is needed to build this.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_EXECUTIONENGINE_CUDA_DRIVER_H
#define NORM_LIB_EXECUTIONENGINE_CUDA_DRIVER_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace norm::cuda {

using Result = int;
using Device = int;
using Context = void *;
using CuModule = void *;
using CuFunction = void *;
using Stream = void *;
using Event = void *;
using Pointer = uint64_t;

constexpr Result success = 0;
constexpr Result noDevice = 100;
constexpr Result noBinaryForGpu = 209, invalidPtx = 218,
                 unsupportedPtxVersion = 222, noKernelImage = 225;
constexpr int majorCapability = 75, minorCapability = 76;
constexpr int maxDynamicSharedBytes = 8;
constexpr int clusterDimension = 4;
constexpr int jitErrorLog = 5, jitErrorLogSize = 6;

/// CUlaunchAttribute with the one value that is used.
struct LaunchAttribute {
  int id = clusterDimension;
  char padding[4] = {};
  unsigned x, y, z;
  char rest[64 - 3 * sizeof(unsigned)] = {};
};
static_assert(sizeof(LaunchAttribute) == 72);

/// CUlaunchConfig.
struct LaunchConfig {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned attributeCount;
};
static_assert(sizeof(LaunchConfig) == 56);

/// Pointers to the driver's functions.
struct Functions {
  Result (*init)(unsigned);
  Result (*deviceGetCount)(int *);
  Result (*deviceGet)(Device *, int);
  Result (*deviceGetName)(char *, int, Device);
  Result (*deviceGetAttribute)(int *, int, Device);
  Result (*primaryContextRetain)(Context *, Device);
  Result (*contextGetCurrent)(Context *);
  Result (*contextSetCurrent)(Context);
  Result (*contextGetDevice)(Device *);
  Result (*moduleLoadData)(CuModule *, const void *, unsigned, int *, void **);
  Result (*moduleUnload)(CuModule);
  Result (*moduleGetFunction)(CuFunction *, CuModule, const char *);
  Result (*functionSetAttribute)(CuFunction, int, int);
  Result (*launchKernel)(CuFunction, unsigned, unsigned, unsigned, unsigned,
                         unsigned, unsigned, unsigned, Stream, void **,
                         void **);
  Result (*streamCreate)(Stream *, unsigned);
  Result (*streamDestroy)(Stream);
  Result (*streamSynchronize)(Stream);
  Result (*streamWaitEvent)(Stream, Event, unsigned);
  Result (*eventCreate)(Event *, unsigned);
  Result (*eventDestroy)(Event);
  Result (*eventRecord)(Event, Stream);
  Result (*eventSynchronize)(Event);
  Result (*memoryAllocate)(Pointer *, size_t);
  Result (*memoryAllocateManaged)(Pointer *, size_t, unsigned);
  Result (*memoryFree)(Pointer);
  Result (*memoryCopy)(Pointer, Pointer, size_t, Stream);
  Result (*memorySet32)(Pointer, unsigned, size_t, Stream);
  Result (*memorySet16)(Pointer, unsigned short, size_t, Stream);
  Result (*hostRegister)(void *, size_t, unsigned);
  Result (*hostUnregister)(void *);
  Result (*getErrorName)(Result, const char **);
  Result (*getErrorString)(Result, const char **);
  /// Since CUDA 11.8; null before.
  Result (*launchKernelWithConfig)(const LaunchConfig *, CuFunction, void **,
                                   void **);
};

/// The driver with a context that is current in this thread. Null, after one
/// report, if there is no driver or no device.
const Functions *driver();

/// The device that `driver` makes a context for where none is current.
void setDefaultDevice(int device);

/// True if the call succeeded; reports "cannot WHAT: ..." if it did not.
bool check(Result result, const std::string &what);

/// CUDA_ERROR_...: what it means.
std::string describe(Result result);

/// "NVIDIA H200 (sm_90)", of the current context.
std::string describeDevice();

//===--- Errors.cpp ---===//

/// Tells the handler and returns, or prints and ends the process.
void fail(const std::string &message);

} // namespace norm::cuda

#endif // NORM_LIB_EXECUTIONENGINE_CUDA_DRIVER_H
