//===- Retarget.h - Device code to code for this machine -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_EXECUTIONENGINE_EMULATOR_RETARGET_H
#define NORM_LIB_EXECUTIONENGINE_EMULATOR_RETARGET_H

#include "Module.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

#include <optional>

namespace llvm {
class ModuleSlotTracker;
}

namespace norm::emu {

/// Rewrites the LLVM IR of a device module in place so that it runs here:
/// every access to memory is preceded by a call that checks it, intrinsics of
/// NVVM become calls of the runtime or arithmetic, variables in shared memory
/// become addresses in the arena, and each kernel `k` gets a function
/// `k.norm_emu` that takes the array of arguments of a launch.
class Retarget {
public:
  Retarget(llvm::Module &module, Module &result);
  ~Retarget();

  /// Fails with one message that names all that is not emulated.
  llvm::Error run();

  /// Where variables of shared memory are, for the linker.
  const std::vector<std::pair<std::string, size_t>> &sharedSymbols() const {
    return symbols;
  }
  /// Variables in global and constant memory, with their sizes.
  const std::vector<std::pair<std::string, size_t>> &variables() const {
    return globals;
  }

private:
  //===--- Retarget.cpp ---===//
  void layOutShared();
  void exportVariables();
  void rewriteFunction(llvm::Function &function);
  void rewriteInstruction(llvm::Instruction &instruction);
  void rewriteAssembly(llvm::CallInst &call);
  void describeKernel(llvm::Function &function);
  void emitWrapper(llvm::Function &function);
  void checkDeclarations();

  //===--- Instrument.cpp ---===//
  void instrument(llvm::Instruction &instruction);
  void emitAccess(llvm::Instruction &at, llvm::Value *pointer,
                  llvm::Value *bytes, llvm::Align alignment, unsigned kind);
  void instrumentTransfer(llvm::Instruction &instruction);
  void guardDivision(llvm::Instruction &instruction);

  //===--- Intrinsics.cpp ---===//
  /// The value that stands for the call, or nothing if it is not emulated.
  /// Null stands for nothing at all.
  std::optional<llvm::Value *> rewriteIntrinsic(llvm::CallInst &call);
  std::optional<llvm::Value *> rewriteRegister(llvm::StringRef name);
  std::optional<llvm::Value *> rewriteBarrier(llvm::StringRef name,
                                              llvm::CallInst &call);
  std::optional<llvm::Value *> rewriteShuffle(llvm::StringRef name,
                                              llvm::CallInst &call);
  std::optional<llvm::Value *> rewriteVote(llvm::StringRef name,
                                           llvm::CallInst &call);
  std::optional<llvm::Value *> rewriteCopy(llvm::StringRef name,
                                           llvm::CallInst &call);
  std::optional<llvm::Value *> rewriteOther(llvm::StringRef name,
                                            llvm::CallInst &call);

  //===--- Arithmetic.cpp ---===//
  std::optional<llvm::Value *> rewriteArithmetic(llvm::StringRef name,
                                                 llvm::CallInst &call);
  std::optional<llvm::Value *> rewriteConversion(llvm::StringRef name,
                                                 llvm::CallInst &call);
  std::optional<llvm::Value *> rewriteInteger(llvm::StringRef name,
                                              llvm::CallInst &call);
  llvm::Value *flush(llvm::Value *value);
  llvm::Value *saturate(llvm::Value *value);

  //===--- Helpers ---===//
  llvm::Value *call(llvm::StringRef function, llvm::Type *result,
                    llvm::ArrayRef<llvm::Value *> arguments);
  llvm::Value *site(const llvm::Instruction &instruction);
  llvm::Value *generic(llvm::Value *pointer);
  void unsupported(const std::string &what);

  llvm::Module &module;
  Module &result;
  llvm::IRBuilder<> builder;
  std::unique_ptr<llvm::ModuleSlotTracker> slots;
  std::vector<std::pair<std::string, size_t>> symbols, globals;
  /// Offsets of variables of shared memory, by name.
  std::map<std::string, size_t> staticSizes;
  std::vector<std::string> problems;
};

/// The name of the function that runs a kernel here.
std::string wrapperName(llvm::StringRef kernel);

} // namespace norm::emu

#endif // NORM_LIB_EXECUTIONENGINE_EMULATOR_RETARGET_H
