//===- Modules.h - Modules of device code on the devices in use -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_EXECUTIONENGINE_CUDA_MODULES_H
#define NORM_LIB_EXECUTIONENGINE_CUDA_MODULES_H

#include "Driver.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace norm::cuda {

/// A kernel in one context.
struct Function {
  CuFunction handle = nullptr;
  std::string name;
  /// The most dynamic shared memory that was allowed to it so far.
  std::mutex mutex;
  unsigned sharedBytes = 0;

  /// Launches may use up to 48 KB without asking; for more the function must be
  /// told once.
  bool allowShared(const Functions &f, unsigned bytes);
};

/// What a program loads when it starts. The driver sees it when a kernel is
/// first asked for, once per context: programs have more modules than they use,
/// and start where there is no GPU.
class Module {
public:
  /// `size` 0: text that ends with a null byte, for the driver to compile.
  Module(const void *data, size_t size) : data(data), size(size) {}

  /// Null, after a report, if it cannot be loaded or has no such kernel.
  Function *find(const char *name);
  void unload();

private:
  struct Loaded {
    CuModule handle = nullptr;
    std::map<std::string, std::unique_ptr<Function>, std::less<>> functions;
  };

  bool load(const Functions &f, CuModule &handle) const;

  const void *data;
  size_t size;
  std::mutex mutex;
  std::map<Context, Loaded> contexts;
};

} // namespace norm::cuda

#endif // NORM_LIB_EXECUTIONENGINE_CUDA_MODULES_H
