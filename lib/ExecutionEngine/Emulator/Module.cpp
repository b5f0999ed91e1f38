//===- Module.cpp - A module of device code and its kernels -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module.h"

#include "Counters.h"
#include "Memory.h"
#include "Options.h"
#include "Retarget.h"
#include "Runtime.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/ExecutionEngine/Orc/ThreadSafeModule.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Scalar/ScalarizeMaskedMemIntrin.h"

#include <sys/mman.h>

using namespace llvm;
using namespace norm::emu;

Arena &norm::emu::arena() {
  static Arena instance = [] {
    void *p = mmap(nullptr, Arena::capacity, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
      failSetup("no memory for the shared memory of a block");
    return Arena{static_cast<char *>(p)};
  }();
  return instance;
}

//===----------------------------------------------------------------------===//
// The compiler
//===----------------------------------------------------------------------===//

/// A fixed set of instructions where the machine has it, not all that it has:
/// the same program computes the same bits on every machine.
static Expected<orc::JITTargetMachineBuilder> chooseTarget() {
  auto target = orc::JITTargetMachineBuilder::detectHost();
  if (!target)
    return target.takeError();
  if (target->getTargetTriple().isX86()) {
    StringMap<bool> features = sys::getHostCPUFeatures();
    bool modern = features.lookup("avx2") && features.lookup("fma") &&
                  features.lookup("f16c") && features.lookup("bmi2");
    target->setCPU(modern ? "x86-64-v3" : "x86-64");
    target->getFeatures() = SubtargetFeatures();
  }
  target->setRelocationModel(Reloc::PIC_);
  target->setCodeModel(CodeModel::Small);
  target->setCodeGenOptLevel(CodeGenOptLevel::Less);
  return target;
}

static orc::SymbolMap toSymbols(orc::ExecutionSession &session,
                                ArrayRef<RuntimeFunction> functions) {
  orc::SymbolMap symbols;
  for (const RuntimeFunction &function : functions)
    symbols[session.intern(function.name)] = {
        orc::ExecutorAddr::fromPtr(function.address),
        JITSymbolFlags::Exported | JITSymbolFlags::Callable};
  return symbols;
}

/// One for the process: its main library has the runtime, each module one more.
static Expected<orc::LLJIT *> compiler() {
  static std::unique_ptr<orc::LLJIT> instance;
  if (instance)
    return instance.get();
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  auto target = chooseTarget();
  if (!target)
    return target.takeError();
  auto jit = orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(std::move(*target))
                 .create();
  if (!jit)
    return jit.takeError();
  orc::JITDylib &main = (*jit)->getMainJITDylib();
  orc::ExecutionSession &session = (*jit)->getExecutionSession();
  for (auto functions : {runtimeFunctions(), mathFunctions()})
    if (Error error =
            main.define(orc::absoluteSymbols(toSymbols(session, functions))))
      return error;
  instance = std::move(*jit);
  return instance.get();
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// What the data is, if it is not bitcode.
static const char *otherFormat(StringRef data) {
  if (data.starts_with("\x7f"
                       "ELF"))
    return "machine code for a GPU (cubin)";
  if (data.starts_with("\x50\xed\x55\xba"))
    return "machine code for a GPU (fatbin)";
  if (data.ltrim().starts_with("//") || data.contains(".target sm_"))
    return "PTX";
  return "something else";
}

static Expected<std::unique_ptr<llvm::Module>> parse(StringRef data,
                                                     LLVMContext &context) {
  MemoryBufferRef buffer(data, "gpu");
  if (!isBitcode(data.bytes_begin(), data.bytes_end()))
    return createStringError(
        "expected the bitcode of gpu-module-to-binary{format=llvm}, got " +
        Twine(otherFormat(data)));
  auto module = parseBitcodeFile(buffer, context);
  if (!module)
    return module.takeError();
  if (!(*module)->getTargetTriple().isNVPTX())
    return createStringError("expected a module for nvptx64, got one for '" +
                             (*module)->getTargetTriple().str() + "'");
  return module;
}

/// Accesses under a mask become branches and accesses without one, which the
/// checks then see.
static void scalarizeMasks(llvm::Module &module) {
  PassBuilder passes;
  FunctionAnalysisManager analyses;
  passes.registerFunctionAnalyses(analyses);
  ModuleAnalysisManager modules;
  passes.registerModuleAnalyses(modules);
  analyses.registerPass(
      [&] { return ModuleAnalysisManagerFunctionProxy(modules); });
  for (Function &function : module)
    if (!function.isDeclaration())
      ScalarizeMaskedMemIntrinPass().run(function, analyses);
}

static Error link(orc::LLJIT &jit, orc::JITDylib &library,
                  const Retarget &retarget) {
  orc::ExecutionSession &session = jit.getExecutionSession();
  // The runtime comes before what the process has under the same name.
  orc::JITDylibSearchOrder order =
      orc::makeJITDylibSearchOrder({&jit.getMainJITDylib()});
  library.withLinkOrderDo([&](const orc::JITDylibSearchOrder &rest) {
    for (const auto &[other, flags] : rest)
      if (other != &library)
        order.emplace_back(other, flags);
  });
  library.setLinkOrder(std::move(order));
  orc::SymbolMap shared;
  for (const auto &[name, offset] : retarget.sharedSymbols())
    shared[session.intern(name)] = {
        orc::ExecutorAddr::fromPtr(arena().base + offset),
        JITSymbolFlags::Exported};
  if (shared.empty())
    return Error::success();
  return library.define(orc::absoluteSymbols(std::move(shared)));
}

Expected<std::unique_ptr<norm::emu::Module>>
norm::emu::Module::load(StringRef data) {
  // Registered once, after what it prints, so that it runs before that ends.
  static int atExit = (options(), counters(), std::atexit(printCountersAtEnd));
  (void)atExit;
  auto context = std::make_unique<LLVMContext>();
  auto module = parse(data, *context);
  if (!module)
    return module.takeError();
  auto jit = compiler();
  if (!jit)
    return jit.takeError();
  auto result = std::make_unique<norm::emu::Module>();
  scalarizeMasks(**module);
  Retarget retarget(**module, *result);
  if (Error error = retarget.run())
    return error;
  (*module)->setTargetTriple((*jit)->getTargetTriple());
  (*module)->setDataLayout((*jit)->getDataLayout());
  static unsigned serial = 0;
  auto library = (*jit)->createJITDylib("gpu" + std::to_string(serial++));
  if (!library)
    return library.takeError();
  result->library = &*library;
  if (Error error = link(**jit, *library, retarget))
    return error;
  if (Error error = (*jit)->addIRModule(
          *library,
          orc::ThreadSafeModule(std::move(*module), std::move(context))))
    return error;
  result->variables = retarget.variables();
  return result;
}

Error norm::emu::Module::compile() {
  if (std::exchange(compiled, true))
    return Error::success();
  auto jit = compiler();
  if (!jit)
    return jit.takeError();
  auto &code = *static_cast<orc::JITDylib *>(library);
  for (auto &[name, kernel] : kernels) {
    auto address = (*jit)->lookup(code, wrapperName(name));
    if (!address)
      return address.takeError();
    kernel.function = address->toPtr<void (*)(void **)>();
  }
  for (const auto &[name, size] : variables) {
    auto address = (*jit)->lookup(code, name);
    if (!address)
      return address.takeError();
    addresses.push_back(address->toPtr<char *>());
    memory().add(addresses.back(), size, name);
  }
  return Error::success();
}

norm::emu::Module::~Module() {
  for (char *address : addresses)
    memory().remove(address);
  if (!library)
    return;
  if (auto jit = compiler())
    consumeError((*jit)->getExecutionSession().removeJITDylib(
        *static_cast<orc::JITDylib *>(library)));
  else
    consumeError(jit.takeError());
}
