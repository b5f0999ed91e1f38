//===- Module.h - A module of device code and its kernels -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_EXECUTIONENGINE_EMULATOR_MODULE_H
#define NORM_LIB_EXECUTIONENGINE_EMULATOR_MODULE_H

#include "Diagnostics.h"
#include "llvm/Support/Error.h"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace norm::emu {

/// A variable in shared memory, at the same place for every block.
struct SharedVariable {
  std::string name;
  size_t offset;
  size_t size;
  /// Its size is what the launch asks for.
  bool dynamic;
};

/// What the caller and LLVM say about a parameter of a kernel.
struct Parameter {
  bool pointer = false;
  /// Whether the kernel does anything with it.
  bool used = false;
  bool noAlias = false, readOnly = false;
};

struct Module;

struct Kernel {
  std::string name;
  const Module *module = nullptr;
  /// Takes the array of pointers to arguments that a launch gets.
  void (*function)(void **) = nullptr;
  std::vector<Parameter> parameters;
  /// Bytes of static shared memory that it uses, as the hardware counts them.
  size_t staticShared = 0;
  /// Bytes of local arrays: what its stack needs beside registers.
  size_t localBytes = 0;
  /// The block size that the code was compiled for; zeros for any.
  unsigned requiredBlock[3] = {0, 0, 0};
  /// The most threads that the code was compiled for; zero for any.
  unsigned maxThreads = 0;
};

struct Module {
  ~Module();

  /// Reads the bitcode of `gpu-module-to-binary{format=llvm}` and retargets it
  /// to this machine. Fails with one message if the data is something else or
  /// uses what is not emulated.
  static llvm::Expected<std::unique_ptr<Module>> load(llvm::StringRef data);

  /// Compiles the code, once. Programs load all their modules when they start
  /// and may use few of them.
  llvm::Error compile();

  std::map<std::string, Kernel> kernels;
  /// Ascending by offset.
  std::vector<SharedVariable> shared;
  /// Addresses of elements are compiled into the code.
  std::deque<Site> sites;

  /// The JITDylib of the code, for removal.
  void *library = nullptr;
  /// Variables in global and constant memory, and where they are in memory once
  /// the code is compiled.
  std::vector<std::pair<std::string, size_t>> variables;
  std::vector<char *> addresses;
  bool compiled = false;
};

/// Shared memory of the block that runs. Modules are compiled against it.
struct Arena {
  static constexpr size_t capacity = 512 << 10;
  char *base;
};
Arena &arena();

} // namespace norm::emu

#endif // NORM_LIB_EXECUTIONENGINE_EMULATOR_MODULE_H
