//===- HostRange.h - The bytes of a memref of the host -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What gpu.host_register gives to the runtime wrappers, for both of them.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_EXECUTIONENGINE_HOSTRANGE_H
#define NORM_LIB_EXECUTIONENGINE_HOSTRANGE_H

#include <cstdint>

namespace norm {

struct HostRange {
  char *begin;
  uint64_t size;
};

/// MLIR's descriptor of a ranked memref; `rank` sizes are followed by as many
/// strides, which are not negative.
struct MemRefDescriptor {
  char *allocated, *aligned;
  int64_t offset;
  int64_t sizesAndStrides[1];
};

/// From the first byte that belongs to the memref to its last.
inline HostRange hostRange(int64_t rank, const void *descriptor,
                           int64_t elementSize) {
  const auto &d = *static_cast<const MemRefDescriptor *>(descriptor);
  int64_t last = 0;
  bool empty = false;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t extent = d.sizesAndStrides[i], stride = d.sizesAndStrides[rank + i];
    empty |= extent == 0;
    last += (extent - 1) * stride;
  }
  return {d.aligned + d.offset * elementSize,
          empty ? 0 : static_cast<uint64_t>((last + 1) * elementSize)};
}

} // namespace norm

#endif // NORM_LIB_EXECUTIONENGINE_HOSTRANGE_H
