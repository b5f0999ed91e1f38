//===- Jit.cpp - Compiling and calling an entry -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/ExecutionEngine/Jit.h"

#include "Norm/Pipelines/Pipelines.h"
#include "Norm/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/OpenMP/OpenMPToLLVMIRTranslation.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#include <atomic>
#include <cstring>

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

std::optional<Target> norm::parseTarget(StringRef name) {
  if (name == "cpu")
    return Target::Cpu;
  if (name == "reference")
    return Target::Reference;
  if (name == "gpu-emulated")
    return Target::GpuEmulated;
  return std::nullopt;
}

namespace {
/// Counts copies between buffers where they become loops or calls; not those of
/// arguments whose layout the code does not take as it is.
class CountCopies : public PassInstrumentation {
public:
  explicit CountCopies(int64_t &copies) : copies(copies) { copies = 0; }

  void runBeforePass(Pass *pass, Operation *op) override {
    if (pass->getArgument() == "norm-expand-strided-copy")
      op->walk([&](memref::CopyOp copy) {
        auto func = copy->getParentOfType<func::FuncOp>();
        if (!func || !func->hasAttr(kCopiesArgumentsAttrName))
          ++copies;
      });
  }

private:
  int64_t &copies;
};
} // namespace

LogicalResult norm::lowerForTarget(ModuleOp module, Target target,
                                   EntryStrides strides, bool threads,
                                   int64_t *copies) {
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  if (copies)
    pm.addInstrumentation(std::make_unique<CountCopies>(*copies));
  switch (target) {
  case Target::Cpu: {
    NormToCpuOptions options;
    options.strides = strides;
    options.threads = threads;
    options.host = true;
    buildNormToCpu(pm, options);
    break;
  }
  case Target::Reference:
    buildNormToReference(pm);
    break;
  case Target::GpuEmulated: {
    NormToNvvmOptions options;
    options.format = GpuFormat::Llvm;
    // One body serves all arrays here: there is none that is chosen at entry.
    options.strides =
        strides == EntryStrides::Unit ? EntryStrides::Unit : EntryStrides::Any;
    buildNormToNvvm(pm, options);
    break;
  }
  }
  return pm.run(module);
}

void norm::registerJitDialects(DialectRegistry &registry) {
  registerAllGPUToLLVMIRTranslations(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerOpenMPDialectTranslation(registry);
}

//===----------------------------------------------------------------------===//
// What compiled code calls
//===----------------------------------------------------------------------===//

static std::atomic<int64_t> numAllocations{0};

static void *countingMalloc(size_t bytes) {
  ++numAllocations;
  return std::malloc(bytes);
}

static void *countingAlignedAlloc(size_t alignment, size_t bytes) {
  ++numAllocations;
  return std::aligned_alloc(alignment, bytes);
}

/// A failed assertion prints its message and then aborts.
static int printAssertion(const char *message) {
  llvm::errs() << "error: assertion of the compiled function failed: "
               << message << "\n";
  return 0;
}
[[noreturn]] static void exitOnAssertion() { std::_Exit(1); }

/// Compilers pass f16 and bf16 in the low half of a floating-point register.
static float inLowHalf(const llvm::APFloat &value) {
  uint32_t bits = value.bitcastToAPInt().getZExtValue();
  float carrier;
  std::memcpy(&carrier, &bits, sizeof(carrier));
  return carrier;
}

template <typename From>
static float roundTo(From x, const llvm::fltSemantics &semantics) {
  llvm::APFloat value(x);
  bool losesInfo;
  value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return inLowHalf(value);
}

static float floatToBF16(float x) {
  return roundTo(x, llvm::APFloat::BFloat());
}
static float doubleToBF16(double x) {
  return roundTo(x, llvm::APFloat::BFloat());
}
static float floatToF16(float x) {
  return roundTo(x, llvm::APFloat::IEEEhalf());
}
static float doubleToF16(double x) {
  return roundTo(x, llvm::APFloat::IEEEhalf());
}
static float f16ToFloat(float carrier) {
  uint32_t bits;
  std::memcpy(&bits, &carrier, sizeof(bits));
  llvm::APFloat value(llvm::APFloat::IEEEhalf(),
                      llvm::APInt(16, bits & 0xffff));
  bool losesInfo;
  value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToFloat();
}

static llvm::orc::SymbolMap
runtimeSymbols(llvm::orc::MangleAndInterner interner) {
  llvm::orc::SymbolMap symbols;
  auto add = [&](StringRef name, auto *function) {
    symbols[interner(name)] = {llvm::orc::ExecutorAddr::fromPtr(function),
                               llvm::JITSymbolFlags::Exported};
  };
  add("malloc", countingMalloc);
  add("aligned_alloc", countingAlignedAlloc);
  add("puts", printAssertion);
  add("abort", exitOnAssertion);
  // Not every version of the compiler's own runtime has these.
  add("__truncsfbf2", floatToBF16);
  add("__truncdfbf2", doubleToBF16);
  add("__truncsfhf2", floatToF16);
  add("__truncdfhf2", doubleToF16);
  add("__extendhfsf2", f16ToFloat);
  return symbols;
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

int64_t CompiledModule::getNumAllocations() { return numAllocations; }

llvm::Expected<std::unique_ptr<CompiledModule>>
CompiledModule::create(ModuleOp module, unsigned optimization) {
  static bool isInitialized = !llvm::InitializeNativeTarget() &&
                              !llvm::InitializeNativeTargetAsmPrinter();
  if (!isInitialized)
    return llvm::createStringError("this machine is no target of LLVM here");
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  llvm::CodeGenOptLevel level =
      llvm::CodeGenOpt::getLevel(static_cast<int>(optimization))
          .value_or(llvm::CodeGenOptLevel::Default);
  builder->setCodeGenOptLevel(level);
  auto machine = builder->createTargetMachine();
  if (!machine)
    return machine.takeError();

  auto optimize =
      makeOptimizingTransformer(optimization, /*sizeLevel=*/0, machine->get());
  ExecutionEngineOptions options;
  options.transformer = optimize;
  options.jitCodeGenOptLevel = level;
  options.enableGDBNotificationListener = false;
  options.enablePerfNotificationListener = false;
  auto compiled = std::make_unique<CompiledModule>();
  auto engine = ExecutionEngine::create(module, options, std::move(*machine));
  if (!engine)
    return engine.takeError();
  compiled->engine = std::move(*engine);
  compiled->engine->registerSymbols(runtimeSymbols);
  compiled->engine->initialize();
  return compiled;
}

llvm::Expected<void (*)(void **)> CompiledModule::lookup(StringRef name) {
  return engine->lookupPacked(("_mlir_ciface_" + name).str());
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void CallFrame::addArray(const Array &array) {
  auto address = reinterpret_cast<uint64_t>(array.data.get());
  std::vector<uint64_t> descriptor{address, address, /*offset=*/0};
  descriptor.insert(descriptor.end(), array.shape.begin(), array.shape.end());
  descriptor.insert(descriptor.end(), array.strides.begin(),
                    array.strides.end());
  storage.push_back(std::move(descriptor));
  isDescriptor.push_back(true);
}

void CallFrame::addWord(uint64_t word) {
  storage.push_back({word});
  isDescriptor.push_back(false);
}

void CallFrame::call(void (*function)(void **)) {
  // Descriptors are passed by address, and the packed form takes the address
  // of each argument.
  std::vector<void *> values(storage.size()), arguments(storage.size());
  for (size_t i = 0; i < storage.size(); ++i) {
    values[i] = storage[i].data();
    arguments[i] = isDescriptor[i] ? static_cast<void *>(&values[i])
                                   : static_cast<void *>(storage[i].data());
  }
  function(arguments.data());
}
