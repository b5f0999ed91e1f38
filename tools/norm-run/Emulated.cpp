//===- Emulated.cpp - Running kernels without a GPU -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulated.h"

#include "Norm/ExecutionEngine/Emulator.h"
#include "llvm/ADT/Twine.h"

#include <dlfcn.h>
#include <utility>

using namespace norm_run;

namespace {
/// The part of the emulator's interface that is used.
struct Functions {
  decltype(&normEmuRegister) add = nullptr;
  decltype(&normEmuUnregister) remove = nullptr;
  decltype(&normEmuEnableCounters) enableCounters = nullptr;
  decltype(&normEmuCountersText) countersText = nullptr;
};
} // namespace

static Functions functions;

/// Found by this program's own search path, as libNorm is.
static constexpr char libraryName[] = "libnorm_emu.so";

llvm::Error norm_run::loadEmulator() {
  if (functions.add)
    return llvm::Error::success();
  void *library = dlopen(libraryName, RTLD_NOW | RTLD_GLOBAL);
  if (!library)
    return llvm::createStringError("the emulator could not be loaded: " +
                                   llvm::Twine(dlerror()));
  auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(
        dlsym(library, name));
    return function != nullptr;
  };
  Functions found;
  if (!find(found.add, "normEmuRegister") ||
      !find(found.remove, "normEmuUnregister") ||
      !find(found.enableCounters, "normEmuEnableCounters") ||
      !find(found.countersText, "normEmuCountersText"))
    return llvm::createStringError(llvm::Twine(libraryName) +
                                   " is of another version");
  functions = found;
  return llvm::Error::success();
}

llvm::Error norm_run::countEmulated() {
  if (llvm::Error error = loadEmulator())
    return error;
  functions.enableCounters(true);
  return llvm::Error::success();
}

std::string norm_run::emulatorCounters() { return functions.countersText(); }

SharedArray::SharedArray(const mlir::norm::Array &array) {
  if (!array.getNumBytes())
    return;
  data = array.data.get();
  functions.add(data, array.getNumBytes());
}

SharedArray::~SharedArray() {
  if (data)
    functions.remove(data);
}

SharedArray::SharedArray(SharedArray &&other) noexcept
    : data(std::exchange(other.data, nullptr)) {}

SharedArray &SharedArray::operator=(SharedArray &&other) noexcept {
  std::swap(data, other.data);
  return *this;
}
