//===- Jit.h - Compiling and calling an entry -----------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_EXECUTIONENGINE_JIT_H
#define NORM_EXECUTIONENGINE_JIT_H

#include "Norm/ExecutionEngine/Npy.h"
#include "Norm/Transforms/Passes.h"

#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::norm {

/// GpuEmulated: kernels for a GPU, as bitcode for libnorm_emu.
enum class Target { Cpu, Reference, GpuEmulated };

/// The target with this name; nullopt if there is none.
std::optional<Target> parseTarget(StringRef name);

/// Lowers to the LLVM dialect for a target, to be called with such arrays. What
/// is wrong is reported as a diagnostic. Code for GpuEmulated calls the
/// emulator, which the process must have loaded before it is compiled, and
/// takes a stream (null) as its last argument. threads: of the target cpu.
/// copies: set to the number of copies from buffer to buffer in the code; may
/// be null.
LogicalResult lowerForTarget(ModuleOp module, Target target,
                             EntryStrides strides = EntryStrides::Dispatch,
                             bool threads = true, int64_t *copies = nullptr);

/// Registers what translation to LLVM IR needs. Call before a module is loaded.
void registerJitDialects(DialectRegistry &registry);

/// A compiled module for this machine.
class CompiledModule {
public:
  /// `module` is in the LLVM dialect. optimization: LLVM's level, 0 to 3.
  static llvm::Expected<std::unique_ptr<CompiledModule>>
  create(ModuleOp module, unsigned optimization = 2);

  /// A function that has `llvm.emit_c_interface`, as one that takes an array of
  /// pointers to its arguments.
  llvm::Expected<void (*)(void **)> lookup(StringRef name);

  /// Number of heap allocations that compiled code has made so far.
  static int64_t getNumAllocations();

private:
  std::unique_ptr<ExecutionEngine> engine;
};

/// Arguments of a call: descriptors of arrays, and pointers to scalars.
class CallFrame {
public:
  /// A strided memref. The array must outlive the frame.
  void addArray(const Array &array);
  /// A pointer, or an integer of 64 bits.
  void addWord(uint64_t word);
  /// Calls `function` with what was added.
  void call(void (*function)(void **));

private:
  /// Allocated and aligned pointer, offset, sizes, strides; or one word.
  std::vector<std::vector<uint64_t>> storage;
  std::vector<bool> isDescriptor;
};

} // namespace mlir::norm

#endif // NORM_EXECUTIONENGINE_JIT_H
