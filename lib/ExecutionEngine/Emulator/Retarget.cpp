//===- Retarget.cpp - Device code to code for this machine -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Retarget.h"

#include "Runtime.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/ModuleSlotTracker.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace norm::emu;

static constexpr unsigned sharedSpace = 3;

std::string norm::emu::wrapperName(StringRef kernel) {
  return (kernel + ".norm_emu").str();
}

Retarget::Retarget(llvm::Module &module, norm::emu::Module &result)
    : module(module), result(result), builder(module.getContext()),
      slots(std::make_unique<ModuleSlotTracker>(&module)) {}

Retarget::~Retarget() = default;

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

Value *Retarget::call(StringRef function, Type *type,
                      ArrayRef<Value *> arguments) {
  SmallVector<Type *> types;
  for (Value *argument : arguments)
    types.push_back(argument->getType());
  return builder.CreateCall(
      module.getOrInsertFunction(function,
                                 FunctionType::get(type, types, false)),
      arguments);
}

Value *Retarget::generic(Value *pointer) {
  return builder.CreateAddrSpaceCast(pointer, builder.getPtrTy());
}

void Retarget::unsupported(const std::string &what) {
  if (!is_contained(problems, what))
    problems.push_back(what);
}

static std::string locationText(const DILocation &location) {
  SmallString<128> path(location.getDirectory());
  sys::path::append(path, location.getFilename());
  return (path + ":" + Twine(location.getLine()) + ":" +
          Twine(location.getColumn()))
      .str();
}

/// The address of a new site, as a number.
Value *Retarget::site(const Instruction &instruction) {
  Site &site = result.sites.emplace_back();
  site.index = result.sites.size() - 1;
  const DILocation *location = instruction.getDebugLoc();
  if (location && location->getLine()) {
    site.location = locationText(*location);
    while ((location = location->getInlinedAt()))
      site.callers.push_back(locationText(*location));
  } else {
    slots->incorporateFunction(*instruction.getFunction());
    raw_string_ostream out(site.text);
    instruction.print(out, *slots);
    site.text = StringRef(site.text).ltrim().str();
  }
  return builder.getInt64(reinterpret_cast<uint64_t>(&site));
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

/// Gives each variable exactly the alignment that it declares and no more, so
/// that code which relies on more is found, and bytes between variables that
/// belong to none. The linker is told the addresses.
void Retarget::layOutShared() {
  const DataLayout &layout = module.getDataLayout();
  auto sizeOf = [&](const GlobalVariable *variable) -> uint64_t {
    return layout.getTypeAllocSize(variable->getValueType());
  };
  SmallVector<GlobalVariable *> variables, withoutSize;
  SmallVector<Constant *> constants;
  for (GlobalVariable &variable : module.globals())
    if (variable.getAddressSpace() == sharedSpace) {
      (sizeOf(&variable) ? variables : withoutSize).push_back(&variable);
      constants.push_back(&variable);
    }
  convertUsersOfConstantsToInstructions(constants);
  // Those without a size stand for dynamic shared memory and come last.
  append_range(variables, withoutSize);
  constexpr uint64_t gap = 64;
  uint64_t end = 0;
  std::optional<uint64_t> dynamic;
  for (GlobalVariable *variable : variables) {
    uint64_t alignment = layout.getPreferredAlign(variable).value();
    uint64_t size = sizeOf(variable);
    uint64_t offset = size || !dynamic
                          ? alignTo(end + gap, 2 * alignment) + alignment
                          : *dynamic;
    if (!variable->hasName())
      variable->setName("shared");
    if (size || !dynamic)
      result.shared.push_back(
          {variable->getName().str(), offset, size, size == 0});
    if (!size)
      dynamic = offset;
    end = offset + size;
    variable->setInitializer(nullptr);
    variable->setLinkage(GlobalValue::ExternalLinkage);
    variable->setDSOLocal(false);
    symbols.emplace_back(variable->getName().str(), offset);
    staticSizes[variable->getName().str()] = size;
  }
  if (end > Arena::capacity - (256 << 10))
    unsupported(std::to_string(end) + " bytes of static shared memory");
}

/// Makes variables in global and constant memory findable after compilation.
void Retarget::exportVariables() {
  for (GlobalVariable &variable : module.globals()) {
    if (variable.getAddressSpace() == sharedSpace || variable.isDeclaration() ||
        variable.getName().starts_with("llvm."))
      continue;
    if (!variable.hasName())
      variable.setName("variable");
    variable.setLinkage(GlobalValue::ExternalLinkage);
    variable.setUnnamedAddr(GlobalValue::UnnamedAddr::None);
    globals.emplace_back(
        variable.getName().str(),
        module.getDataLayout().getTypeAllocSize(variable.getValueType()));
  }
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// The functions that `root` may call, itself included.
static SmallPtrSet<Function *, 8> reachable(Function &root) {
  SmallPtrSet<Function *, 8> seen = {&root};
  SmallVector<Function *> work = {&root};
  while (!work.empty())
    for (Instruction &instruction : instructions(*work.pop_back_val()))
      if (auto *call = dyn_cast<CallBase>(&instruction))
        if (Function *callee = call->getCalledFunction();
            callee && seen.insert(callee).second)
          work.push_back(callee);
  return seen;
}

static void readBlockSize(const Function &function, Kernel &kernel) {
  SmallVector<StringRef> parts;
  function.getFnAttribute("nvvm.reqntid").getValueAsString().split(parts, ',');
  for (auto [i, part] : enumerate(parts)) {
    kernel.requiredBlock[0] = std::max(kernel.requiredBlock[0], 1u);
    kernel.requiredBlock[1] = std::max(kernel.requiredBlock[1], 1u);
    kernel.requiredBlock[2] = std::max(kernel.requiredBlock[2], 1u);
    if (i < 3 && part.trim().getAsInteger(10, kernel.requiredBlock[i])) {
      kernel.requiredBlock[0] = 0;
      return;
    }
  }
  parts.clear();
  function.getFnAttribute("nvvm.maxntid").getValueAsString().split(parts, ',');
  unsigned product = 1, value = 0;
  for (StringRef part : parts) {
    if (part.trim().getAsInteger(10, value))
      return;
    product *= value;
  }
  if (!parts.empty())
    kernel.maxThreads = product;
}

void Retarget::describeKernel(Function &function) {
  Kernel &kernel = result.kernels[function.getName().str()];
  kernel.name = function.getName().str();
  kernel.module = &result;
  for (Argument &argument : function.args()) {
    Parameter parameter;
    parameter.pointer =
        argument.getType()->isPointerTy() && !argument.hasByValAttr();
    parameter.used = !argument.use_empty();
    parameter.noAlias = argument.hasNoAliasAttr();
    parameter.readOnly = argument.onlyReadsMemory();
    kernel.parameters.push_back(parameter);
  }
  readBlockSize(function, kernel);
  auto functions = reachable(function);
  for (auto &[name, size] : staticSizes) {
    GlobalVariable *variable = module.getGlobalVariable(name);
    bool used = any_of(variable->users(), [&](User *user) {
      auto *instruction = dyn_cast<Instruction>(user);
      return instruction && functions.contains(instruction->getFunction());
    });
    if (used)
      kernel.staticShared += size;
  }
  for (Function *callee : functions)
    for (Instruction &instruction : instructions(*callee))
      if (auto *local = dyn_cast<AllocaInst>(&instruction))
        kernel.localBytes += local->getAllocationSize(module.getDataLayout())
                                 .value_or(TypeSize::getFixed(4096))
                                 .getFixedValue();
}

/// A launch passes an array of pointers to arguments.
void Retarget::emitWrapper(Function &function) {
  Type *pointer = builder.getPtrTy();
  auto *wrapper = Function::Create(
      FunctionType::get(builder.getVoidTy(), {pointer}, false),
      GlobalValue::ExternalLinkage, wrapperName(function.getName()), module);
  builder.SetInsertPoint(
      BasicBlock::Create(module.getContext(), "entry", wrapper));
  builder.SetCurrentDebugLocation(DebugLoc());
  SmallVector<Value *> arguments;
  for (Argument &argument : function.args()) {
    Value *slot = builder.CreateConstGEP1_32(pointer, wrapper->getArg(0),
                                             argument.getArgNo());
    Value *address = builder.CreateLoad(pointer, slot);
    arguments.push_back(argument.hasByValAttr()
                            ? address
                            : builder.CreateLoad(argument.getType(), address));
  }
  CallInst *inner = builder.CreateCall(&function, arguments);
  inner->setAttributes(AttributeList().addParamAttributes(
      module.getContext(), 0, AttrBuilder(module.getContext())));
  for (Argument &argument : function.args())
    if (argument.hasByValAttr())
      inner->addParamAttr(argument.getArgNo(),
                          argument.getAttribute(Attribute::ByVal));
  builder.CreateRetVoid();
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

/// One instruction of arithmetic on its operands in order, `op $0, $1, $2;`, as
/// libdevice has some; it is the intrinsic of the same name. A move of a word
/// is how code is kept in its place.
void Retarget::rewriteAssembly(CallInst &call) {
  StringRef text = cast<InlineAsm>(call.getCalledOperand())->getAsmString();
  auto [operation, operands] = text.trim().split(' ');
  std::string inOrder = "$0";
  for (unsigned i = 1; i <= call.arg_size(); ++i)
    inOrder += ",$" + std::to_string(i);
  std::string given = operands.str();
  llvm::erase(given, ' ');
  std::optional<Value *> value;
  if (operation == "mov.b32" && given == "$0,$1;" &&
      call.getType() == call.getArgOperand(0)->getType())
    value = call.getArgOperand(0);
  else if (given == inOrder + ";")
    value = rewriteArithmetic(operation, call);
  if (!value) {
    unsupported("inline assembly '" + text.str() + "'");
    return;
  }
  call.replaceAllUsesWith(*value);
  call.eraseFromParent();
}

void Retarget::rewriteInstruction(Instruction &instruction) {
  builder.SetInsertPoint(&instruction);
  auto *call = dyn_cast<CallInst>(&instruction);
  if (call && call->isInlineAsm()) {
    rewriteAssembly(*call);
    return;
  }
  Function *callee = call ? call->getCalledFunction() : nullptr;
  if (!callee || !callee->isIntrinsic()) {
    instrument(instruction);
    return;
  }
  StringRef name = callee->getName();
  bool known = !name.starts_with("llvm.nvvm.") && name != "llvm.trap" &&
               name != "llvm.debugtrap";
  if (known) {
    instrument(instruction);
    return;
  }
  std::optional<Value *> value = rewriteIntrinsic(*call);
  if (!value) {
    unsupported("intrinsic '" + name.str() + "'");
    return;
  }
  if (*value)
    call->replaceAllUsesWith(*value);
  call->eraseFromParent();
}

void Retarget::rewriteFunction(Function &function) {
  // Which chip code was compiled for says nothing about this machine.
  for (StringRef attribute : {"target-cpu", "target-features"})
    function.removeFnAttr(attribute);
  function.setCallingConv(CallingConv::C);
  SmallVector<Instruction *> work;
  for (Instruction &instruction : instructions(function)) {
    if (auto *call = dyn_cast<CallBase>(&instruction))
      call->setCallingConv(CallingConv::C);
    work.push_back(&instruction);
  }
  for (Instruction *instruction : work)
    rewriteInstruction(*instruction);
}

/// What is called but neither defined nor known has no meaning here.
void Retarget::checkDeclarations() {
  for (Function &function : module) {
    StringRef name = function.getName();
    if (!function.isDeclaration() || function.use_empty() ||
        function.isIntrinsic() || name.starts_with("norm_emu_") ||
        name == "__assertfail" || name == "vprintf")
      continue;
    if (none_of(mathFunctions(), [&](const RuntimeFunction &known) {
          return name == known.name;
        }))
      unsupported("function '" + name.str() +
                  "', which the module calls and does not define");
  }
  for (GlobalVariable &variable : module.globals())
    if (variable.isDeclaration() && !variable.use_empty() &&
        variable.getAddressSpace() != sharedSpace)
      unsupported("variable '" + variable.getName().str() +
                  "', which the module uses and does not define");
}

Error Retarget::run() {
  layOutShared();
  exportVariables();
  SmallVector<Function *> kernels, functions;
  for (Function &function : module)
    if (!function.isDeclaration()) {
      functions.push_back(&function);
      if (function.getCallingConv() == CallingConv::PTX_Kernel)
        kernels.push_back(&function);
    }
  for (Function *kernel : kernels)
    describeKernel(*kernel);
  for (Function *function : functions)
    rewriteFunction(*function);
  for (Function *kernel : kernels)
    emitWrapper(*kernel);
  checkDeclarations();
  if (!problems.empty())
    return createStringError("not emulated: " + join(problems, "; "));
  StripDebugInfo(module);
  std::string message;
  raw_string_ostream out(message);
  if (verifyModule(module, &out))
    return createStringError(
        "internal error, invalid code after retargeting: " + message);
  return Error::success();
}
