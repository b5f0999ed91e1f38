//===- GpuChip.h - What is known of GPUs -----------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_TRANSFORMS_GPUCHIP_H
#define NORM_TRANSFORMS_GPUCHIP_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace mlir::norm {

/// Threads of a warp, and bytes of the widest access, on all chips.
inline constexpr int64_t kWarp = 32, kAccessBytes = 16;

/// The compute capability that a chip is named for: 90 of `sm_90` and `sm_90a`;
/// nullopt for what is no such name.
std::optional<unsigned> parseComputeCapability(llvm::StringRef chip);

/// Bytes of shared memory that a block may have on a chip of this compute
/// capability.
int64_t getSharedBytes(unsigned capability);

/// Bytes that remain for rows: what threads exchange takes up to 4 KiB.
inline int64_t getRowSharedBytes(unsigned capability) {
  return getSharedBytes(capability) - (4 << 10);
}

} // namespace mlir::norm

#endif // NORM_TRANSFORMS_GPUCHIP_H
