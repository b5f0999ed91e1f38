//===- Rotary.h - Norms and rotary embeddings ------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_ANALYSIS_ROTARY_H
#define NORM_ANALYSIS_ROTARY_H

#include "Norm/IR/NormInterfaces.h"

namespace mlir::norm {

/// Which elements of a head a rotary embedding turns together.
enum class RotaryLayout {
  HalfSplit,  ///< i and i + d/2
  Interleaved ///< 2i and 2i + 1
};

/// Whether RoPE(norm(x)) = norm(RoPE(x)) in real arithmetic (C34) for an
/// embedding that rotates pairs along `axis` of x and changes no length: the
/// norm subtracts no mean and reduces the axis; it has no shift, and its gain
/// is the same in both elements of every pair.
bool commutesWithRotaryEmbedding(NormOpInterface op, int64_t axis,
                                 RotaryLayout layout);

/// A rotary embedding as linalg.
struct RotaryEmbedding {
  /// What is rotated.
  Value source;
  int64_t dim;
  RotaryLayout layout;
};

/// Matches x * cos + concat(-x[d/2..], x[..d/2]) * sin along one dimension,
/// the products and the sum elementwise linalg ops. What cos and sin hold is
/// not looked at: it may be no rotation, but mixes each pair of elements
/// linearly. The uses of x are those of the embedding, so that neither of them
/// depends on it.
std::optional<RotaryEmbedding> matchRotaryEmbedding(Value value);

} // namespace mlir::norm

#endif // NORM_ANALYSIS_ROTARY_H
