//===- Pipelines.h - From norm ops to code -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_PIPELINES_PIPELINES_H
#define NORM_PIPELINES_PIPELINES_H

#include "Norm/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir::norm {

//===----------------------------------------------------------------------===//
// Parts that pipelines share
//===----------------------------------------------------------------------===//

struct BufferizeOptions {
  /// Inner strides of arguments that the entry takes.
  EntryStrides strides = EntryStrides::Dispatch;
};

/// Tensors to buffers: inlines, gives public functions the entry ABI,
/// bufferizes so that results are computed in the caller's buffers, and frees
/// what is allocated in between. Expects no norm ops.
void buildBufferize(OpPassManager &pm, const BufferizeOptions &options);

struct LowerToLLVMOptions {
  /// Run scf.forall and scf.parallel on OpenMP threads; otherwise as loops.
  bool threads = true;
  /// Compute casts between f32 and bf16 on their bits instead of by the
  /// target's own instruction, which it may not have, or which flushes
  /// subnormals.
  bool expandBF16 = false;
  /// Move 32-bit words under masks, for targets without masks for less.
  bool maskWords = false;
};

/// Buffers, loops and vectors to the LLVM dialect.
void buildLowerToLLVM(OpPassManager &pm, const LowerToLLVMOptions &options);

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

struct NormToCpuOptions : public PassPipelineOptions<NormToCpuOptions> {
  PassOptions::Option<bool> threads{
      *this, "threads",
      llvm::cl::desc("spread tiles over OpenMP threads (default: true)"),
      llvm::cl::init(true)};
  PassOptions::Option<EntryStrides> strides{
      *this, "strides",
      llvm::cl::desc("inner strides of arguments (default: dispatch)"),
      llvm::cl::init(EntryStrides::Dispatch),
      llvm::cl::values(
          clEnumValN(EntryStrides::Dispatch, "dispatch",
                     "any; where one is not 1, arguments are copied"),
          clEnumValN(EntryStrides::Any, "any", "any, by one body"),
          clEnumValN(EntryStrides::Unit, "unit", "1 only, by one body"))};
  PassOptions::Option<CpuIsa> isa{
      *this, "isa",
      llvm::cl::desc("the instructions that the CPU is known to have (default: "
                     "x86)"),
      llvm::cl::init(CpuIsa::X86),
      llvm::cl::values(
          clEnumValN(CpuIsa::Any, "any", "those of any CPU"),
          clEnumValN(CpuIsa::X86, "x86", "those of any x86-64"),
          clEnumValN(CpuIsa::Avx512, "avx512", "AVX-512 with BW"))};
  PassOptions::Option<int64_t> streamBytes{
      *this, "stream-bytes",
      llvm::cl::desc("largest number of bytes read and written whose results "
                     "are stored through the caches (default: 4194304)"),
      llvm::cl::init(int64_t(4) << 20)};
  PassOptions::Option<bool> bf16{
      *this, "bf16",
      llvm::cl::desc("the CPU has an instruction that rounds f32 to bf16, as "
                     "AVX512-BF16 has (default: false)"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> host{
      *this, "host",
      llvm::cl::desc("compile for this machine: its instructions and caches in "
                     "place of isa, bf16 and stream-bytes (default: false)"),
      llvm::cl::init(false)};
};

/// What code for a CPU may assume of it.
struct CpuTarget {
  CpuIsa isa;
  /// Bytes read and written that its caches hold on to; see `norm-configure`.
  int64_t streamBytes;
  /// Whether an instruction rounds f32 to bf16. Where none does, LLVM calls a
  /// function for each element, so the rounding is integer arithmetic.
  bool roundsToBf16 = false;
};

/// This machine. What it does not tell is as NormToCpuOptions has it.
CpuTarget hostCpuTarget();

/// norm-to-cpu: vectorized code for CPUs, in the LLVM dialect, with the entry
/// ABI of `norm-entry-abi`.
void buildNormToCpu(OpPassManager &pm, const NormToCpuOptions &options);

/// What becomes of the device code of a program.
enum class GpuFormat {
  Isa,    ///< PTX, which the driver compiles when it loads it
  Bin,    ///< a cubin; takes ptxas
  Fatbin, ///< a fatbin; takes ptxas and fatbinary
  Llvm    ///< optimized LLVM bitcode, for the emulator
};

struct NormToNvvmOptions : public PassPipelineOptions<NormToNvvmOptions> {
  PassOptions::ListOption<std::string> chips{
      *this, "chip",
      llvm::cl::desc("GPUs (default: sm_90); rows are laid out to fit all"),
      llvm::cl::list_init<std::string>({"sm_90"})};
  PassOptions::Option<GpuFormat> format{
      *this, "format",
      llvm::cl::desc("what kernels are compiled to (default: isa)"),
      llvm::cl::init(GpuFormat::Isa),
      llvm::cl::values(
          clEnumValN(GpuFormat::Isa, "isa",
                     "PTX for the oldest; needs no CUDA installation"),
          clEnumValN(GpuFormat::Bin, "bin", "a cubin of one, by ptxas"),
          clEnumValN(GpuFormat::Fatbin, "fatbin",
                     "cubins and PTX of all, by ptxas and fatbinary"),
          clEnumValN(GpuFormat::Llvm, "llvm",
                     "LLVM bitcode for the oldest, for the emulator"))};
  PassOptions::Option<EntryStrides> strides{
      *this, "strides",
      llvm::cl::desc("inner strides of arguments (default: unit)"),
      llvm::cl::init(EntryStrides::Unit),
      llvm::cl::values(
          clEnumValN(EntryStrides::Any, "any", "any, element by element"),
          clEnumValN(EntryStrides::Unit, "unit", "1 only"))};
  PassOptions::Option<GpuAlignment> alignment{
      *this, "alignment",
      llvm::cl::desc("what is known of addresses (default: check)"),
      llvm::cl::init(GpuAlignment::Check),
      llvm::cl::values(
          clEnumValN(GpuAlignment::Check, "check", "nothing: the host checks"),
          clEnumValN(GpuAlignment::Promised, "promised",
                     "rows are aligned to whole accesses"))};
};

/// norm-to-nvvm: GPU kernels, embedded in host code in the LLVM dialect with
/// the entry ABI of `norm-entry-abi` on device memory; the last argument of
/// every function is the stream, an `!llvm.ptr`. The host code calls `mgpu*`
/// functions, as upstream's `gpu-to-llvm` names them.
void buildNormToNvvm(OpPassManager &pm, const NormToNvvmOptions &options);

/// norm-to-reference: plain loops in f64 that round where the specification
/// says, in the LLVM dialect, with the entry ABI of `norm-entry-abi`.
void buildNormToReference(OpPassManager &pm);

/// Registers the pipelines by name: norm-to-cpu, norm-to-nvvm,
/// norm-to-reference.
void registerNormPipelines();

} // namespace mlir::norm

#endif // NORM_PIPELINES_PIPELINES_H
