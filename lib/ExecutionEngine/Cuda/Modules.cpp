//===- Modules.cpp - Modules of device code on the devices in use -*- C++
//-*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Modules.h"

#include "Images.h"

#include <string_view>

using namespace norm::cuda;

bool Function::allowShared(const Functions &f, unsigned bytes) {
  constexpr unsigned always = 48 << 10;
  std::lock_guard<std::mutex> lock(mutex);
  if (bytes <= always || bytes <= sharedBytes)
    return true;
  if (!check(f.functionSetAttribute(handle, maxDynamicSharedBytes,
                                    static_cast<int>(bytes)),
             "give kernel '" + name + "' " + std::to_string(bytes) +
                 " bytes of dynamic shared memory on " + describeDevice()))
    return false;
  sharedBytes = bytes;
  return true;
}

bool Module::load(const Functions &f, CuModule &handle) const {
  char log[2048] = {};
  int options[] = {jitErrorLog, jitErrorLogSize};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1)};
  Result result = f.moduleLoadData(&handle, data, 2, options, values);
  if (result == success)
    return true;
  bool fits = result != noBinaryForGpu && result != noKernelImage &&
              result != unsupportedPtxVersion;
  std::string message = fits ? "cannot load a module of device code (" +
                                   describeImages(data, size) + ")"
                             : "no image of a module fits " + describeDevice() +
                                   ": it has " + describeImages(data, size);
  message += ": " + describe(result);
  if (log[0])
    message += "\n" + std::string(log);
  fail(message);
  return false;
}

Function *Module::find(const char *name) {
  const Functions *f = driver();
  Context context = nullptr;
  if (!f || !check(f->contextGetCurrent(&context), "find the current context"))
    return nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  Loaded &loaded = contexts[context];
  if (!loaded.handle && !load(*f, loaded.handle)) {
    loaded.handle = nullptr;
    return nullptr;
  }
  if (auto it = loaded.functions.find(std::string_view(name));
      it != loaded.functions.end())
    return it->second.get();
  auto function = std::make_unique<Function>();
  function->name = name;
  if (!check(f->moduleGetFunction(&function->handle, loaded.handle, name),
             "find kernel '" + function->name + "'"))
    return nullptr;
  return (loaded.functions[name] = std::move(function)).get();
}

/// A context may be gone by now, which is no failure.
void Module::unload() {
  std::lock_guard<std::mutex> lock(mutex);
  if (contexts.empty())
    return;
  if (const Functions *f = driver())
    for (auto &[context, loaded] : contexts)
      if (loaded.handle)
        (void)f->moduleUnload(loaded.handle);
}
