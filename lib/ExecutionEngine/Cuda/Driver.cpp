//===- Driver.cpp - CUDA's driver, opened at run time -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

using namespace norm::cuda;

static std::atomic<int> defaultDevice = 0;

void norm::cuda::setDefaultDevice(int device) { defaultDevice = device; }

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

/// Finds the functions by the names that their current signatures have. Returns
/// the name of one that is missing, or null.
static const char *resolve(void *library, Functions &f) {
  const char *missing = nullptr;
  auto find = [&](auto &function, const char *name, bool optional = false) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(
        dlsym(library, name));
    if (!function && !optional && !missing)
      missing = name;
  };
  find(f.init, "cuInit");
  find(f.deviceGetCount, "cuDeviceGetCount");
  find(f.deviceGet, "cuDeviceGet");
  find(f.deviceGetName, "cuDeviceGetName");
  find(f.deviceGetAttribute, "cuDeviceGetAttribute");
  find(f.primaryContextRetain, "cuDevicePrimaryCtxRetain");
  find(f.contextGetCurrent, "cuCtxGetCurrent");
  find(f.contextSetCurrent, "cuCtxSetCurrent");
  find(f.contextGetDevice, "cuCtxGetDevice");
  find(f.moduleLoadData, "cuModuleLoadDataEx");
  find(f.moduleUnload, "cuModuleUnload");
  find(f.moduleGetFunction, "cuModuleGetFunction");
  find(f.functionSetAttribute, "cuFuncSetAttribute");
  find(f.launchKernel, "cuLaunchKernel");
  find(f.streamCreate, "cuStreamCreate");
  find(f.streamDestroy, "cuStreamDestroy_v2");
  find(f.streamSynchronize, "cuStreamSynchronize");
  find(f.streamWaitEvent, "cuStreamWaitEvent");
  find(f.eventCreate, "cuEventCreate");
  find(f.eventDestroy, "cuEventDestroy_v2");
  find(f.eventRecord, "cuEventRecord");
  find(f.eventSynchronize, "cuEventSynchronize");
  find(f.memoryAllocate, "cuMemAlloc_v2");
  find(f.memoryAllocateManaged, "cuMemAllocManaged");
  find(f.memoryFree, "cuMemFree_v2");
  find(f.memoryCopy, "cuMemcpyAsync");
  find(f.memorySet32, "cuMemsetD32Async");
  find(f.memorySet16, "cuMemsetD16Async");
  find(f.hostRegister, "cuMemHostRegister_v2");
  find(f.hostUnregister, "cuMemHostUnregister");
  find(f.getErrorName, "cuGetErrorName");
  find(f.getErrorString, "cuGetErrorString");
  find(f.launchKernelWithConfig, "cuLaunchKernelEx", /*optional=*/true);
  return missing;
}

namespace {
struct Opened {
  Functions functions = {};
  /// Why it cannot be used; empty if it can.
  std::string problem;
};
} // namespace

static Opened open() {
  Opened result;
  const char *name = std::getenv("NORM_CUDA_DRIVER");
  if (!name || !*name)
    name = "libcuda.so.1";
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    result.problem =
        "no CUDA driver: cannot open " + std::string(name) + ": " + dlerror();
    return result;
  }
  if (const char *missing = resolve(library, result.functions)) {
    result.problem = "the CUDA driver " + std::string(name) + " has no " +
                     missing + ": expected that of CUDA 11 or later";
    return result;
  }
  int count = 0;
  Result status = result.functions.init(0);
  if (status == success)
    status = result.functions.deviceGetCount(&count);
  if (status == noDevice || (status == success && count == 0)) {
    result.problem = "no CUDA device: the driver finds none";
    return result;
  }
  if (status != success) {
    const char *text = nullptr;
    result.functions.getErrorName(status, &text);
    result.problem = "cannot start the CUDA driver: " +
                     std::string(text ? text : std::to_string(status));
  }
  return result;
}

static const Opened &opened() {
  static const Opened instance = open();
  return instance;
}

//===----------------------------------------------------------------------===//
// Contexts
//===----------------------------------------------------------------------===//

/// Makes the primary context of the default device current, which other users
/// of CUDA in the process share.
static bool enterPrimaryContext(const Functions &f) {
  int count = 0, index = defaultDevice;
  if (!check(f.deviceGetCount(&count), "count devices"))
    return false;
  if (index < 0 || index >= count) {
    fail("there is no device " + std::to_string(index) +
         ": expected one below " + std::to_string(count));
    return false;
  }
  Device device = 0;
  Context context = nullptr;
  return check(f.deviceGet(&device, index), "open a device") &&
         check(f.primaryContextRetain(&context, device), "make a context") &&
         check(f.contextSetCurrent(context), "enter a context");
}

const Functions *norm::cuda::driver() {
  const Opened &library = opened();
  if (!library.problem.empty()) {
    static std::once_flag reported;
    std::call_once(reported, [&] { fail(library.problem); });
    return nullptr;
  }
  const Functions &f = library.functions;
  Context context = nullptr;
  if (!check(f.contextGetCurrent(&context), "find the current context"))
    return nullptr;
  if (!context && !enterPrimaryContext(f))
    return nullptr;
  return &f;
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

std::string norm::cuda::describe(Result result) {
  const Functions &f = opened().functions;
  const char *name = nullptr, *text = nullptr;
  f.getErrorName(result, &name);
  f.getErrorString(result, &text);
  std::string out = name ? name : "error " + std::to_string(result);
  return text ? out + ": " + text : out;
}

bool norm::cuda::check(Result result, const std::string &what) {
  if (result == success)
    return true;
  fail("cannot " + what + ": " + describe(result));
  return false;
}

std::string norm::cuda::describeDevice() {
  const Functions &f = opened().functions;
  Device device = 0;
  char name[128] = {};
  int major = 0, minor = 0;
  if (f.contextGetDevice(&device) != success ||
      f.deviceGetName(name, sizeof(name) - 1, device) != success ||
      f.deviceGetAttribute(&major, majorCapability, device) != success ||
      f.deviceGetAttribute(&minor, minorCapability, device) != success)
    return "the device";
  return std::string(name) + " (sm_" + std::to_string(major) +
         std::to_string(minor) + ")";
}
