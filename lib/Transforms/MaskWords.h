//===- MaskWords.h - Masked accesses of 32-bit words -----------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_MASKWORDS_H
#define NORM_LIB_TRANSFORMS_MASKWORDS_H

#include "mlir/IR/Operation.h"

namespace mlir::norm {

/// Makes masked loads and stores of vectors of i8 and i16 in `root`, in the
/// LLVM dialect, ones of i32 and of what is left of a word, where the mask is
/// known to leave the first lanes.
void moveMaskedWords(Operation *root);

} // namespace mlir::norm

#endif // NORM_LIB_TRANSFORMS_MASKWORDS_H
