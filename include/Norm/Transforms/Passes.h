//===- Passes.h - Passes on norm ops ---------------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_TRANSFORMS_PASSES_H
#define NORM_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir {
class RewritePatternSet;

namespace norm {

/// What raising does with statistics that the IR takes in a 16-bit type.
enum class StatisticsMode {
  Keep, ///< make that type the op's compute type
  Widen ///< use the op's default compute type
};

/// What a rewrite may change: nothing, or how results round.
enum class FpPolicy { Strict, Real };

/// Formats of `norm-report`.
enum class ReportFormat { Text, Json };

/// Inner strides of array arguments that a compiled function takes.
enum class EntryStrides {
  /// Any; a second body for inner stride 1 is chosen at run time.
  Dispatch,
  /// Any, by one body.
  Any,
  /// 1 only, by one body: the caller's promise.
  Unit
};

/// What norm-configure chooses strategies for.
enum class ConfigureTarget { Cpu, Gpu };

/// What is known of the addresses that kernels are launched with.
enum class GpuAlignment {
  Check,   ///< nothing; the host checks, and may launch a slower kernel
  Promised ///< rows start at whole accesses: the caller's promise
};

/// The instructions that a CPU is known to have.
enum class CpuIsa {
  Any,   ///< those of any CPU that LLVM knows
  X86,   ///< those of any x86-64
  Avx512 ///< AVX-512 with its 16-bit elements (BW)
};

/// Unit attribute of a loop over tiles that may store past the caches: such
/// stores are not ordered with others, so a thread needs a fence after its part
/// of the loop.
inline constexpr llvm::StringLiteral kStreamsAttrName = "norm.streams";

/// Name of the unit attribute of a function that norm-entry-abi makes: it
/// copies arguments of other layouts than the body takes, and calls that.
inline constexpr llvm::StringLiteral kCopiesArgumentsAttrName =
    "norm.copies_arguments";

/// Attribute of an argument that may be the same memory as a result: the
/// result's index.
inline constexpr llvm::StringLiteral kInplaceAttrName = "norm.inplace";

/// Attribute of a function: the lists of argument types that norm-specialize
/// makes versions of it for.
inline constexpr llvm::StringLiteral kVersionsAttrName = "norm.versions";

/// Attribute of a version: the function that norm-entry-abi makes call it where
/// arguments have its extents.
inline constexpr llvm::StringLiteral kVersionOfAttrName = "norm.version_of";

#define GEN_PASS_DECL
#include "Norm/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Norm/Transforms/Passes.h.inc"

/// Patterns that replace norm ops by linalg on tensors.
void populateLowerNormToLinalgPatterns(RewritePatternSet &patterns);

/// Patterns that replace norm ops by their f64 reference on tensors.
void populateLowerNormToReferencePatterns(RewritePatternSet &patterns);

} // namespace norm
} // namespace mlir

#endif // NORM_TRANSFORMS_PASSES_H
