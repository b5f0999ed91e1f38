//===- Images.h - What images of device code a module has -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_EXECUTIONENGINE_CUDA_IMAGES_H
#define NORM_LIB_EXECUTIONENGINE_CUDA_IMAGES_H

#include <cstddef>
#include <string>

namespace norm::cuda {

/// "machine code for sm_80, machine code for sm_90, PTX for sm_90", of a cubin,
/// a fatbin or PTX. `size` 0 is unknown and stands for PTX, which ends with a
/// null byte, or for a cubin or fatbin, which say how long they are.
std::string describeImages(const void *data, size_t size);

} // namespace norm::cuda

#endif // NORM_LIB_EXECUTIONENGINE_CUDA_IMAGES_H
