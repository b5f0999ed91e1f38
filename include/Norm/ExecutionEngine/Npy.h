//===- Npy.h - Arrays in files and in memory -------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_EXECUTIONENGINE_NPY_H
#define NORM_EXECUTIONENGINE_NPY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdlib>
#include <memory>

namespace mlir::norm {

/// Element types of .npy files, little-endian. bf16 travels as UInt16.
enum class DType {
  Bool,
  Int8,
  UInt8,
  Int16,
  UInt16,
  Int32,
  UInt32,
  Int64,
  UInt64,
  Float16,
  Float32,
  Float64
};

/// Bytes of one element.
unsigned sizeOf(DType type);

/// NumPy's name of a type, such as `<f4`.
llvm::StringRef describe(DType type);

/// Memory whose first byte lies on a cache line.
using AlignedBytes = std::unique_ptr<char[], decltype(&std::free)>;
AlignedBytes allocateAligned(size_t bytes);

/// An array in memory: elements at `data`, strides counted in elements.
struct Array {
  DType type = DType::Float32;
  llvm::SmallVector<int64_t> shape, strides;
  AlignedBytes data{nullptr, &std::free};

  int64_t getNumElements() const;
  size_t getNumBytes() const { return getNumElements() * sizeOf(type); }
};

/// Strides of a contiguous array whose last (or, if `fortran`, first) axis
/// varies fastest.
llvm::SmallVector<int64_t> contiguousStrides(llvm::ArrayRef<int64_t> shape,
                                             bool fortran = false);

/// Reads a .npy file of version 1 to 3. A file in Fortran order gives a strided
/// array; nothing is transposed. Refuses, with a message that begins with the
/// path: what is not such a file, truncated ones, big-endian data, Python
/// objects, structured and complex types.
llvm::Expected<Array> readNpy(llvm::StringRef path);

/// Writes a contiguous array.
llvm::Error writeNpy(llvm::StringRef path, const Array &array);

/// "2x3", or "scalar".
std::string shapeText(llvm::ArrayRef<int64_t> shape);

} // namespace mlir::norm

#endif // NORM_EXECUTIONENGINE_NPY_H
