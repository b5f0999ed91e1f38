//===- MapToRegisters.h - Parts of norm-map-to-registers --------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_MAPTOREGISTERS_H
#define NORM_LIB_TRANSFORMS_MAPTOREGISTERS_H

#include "Norm/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::norm {

/// What a cache moves at once, in bytes, and the widest vector register.
inline constexpr int64_t kLineBytes = 64;

/// Reductions of the columns of vector<RxC> or vector<C>, C a power of two, to
/// trees of shuffles.
void populateReductionTrees(RewritePatternSet &patterns);

/// Makes several sums of the same short rows sums over registers whose lanes
/// are rows, before the trees are made.
void exchangeShortRows(RewriterBase &rewriter, scf::ForallOp loop);

/// Makes sweeps of `loop` that read bf16 elements compute on even and odd
/// columns apart.
void pairNarrowColumns(RewriterBase &rewriter, scf::ForallOp loop, CpuIsa isa);

/// A 1-D vector of 16-bit elements, in one register of AVX-512 or of any x86,
/// as it comes out of an empty piece of assembly, which LLVM takes as it is.
Value hideBits(OpBuilder &builder, Value vector, CpuIsa isa);

/// Fetches what a later tile of `loop` reads into cache number `level`, 1 or 2,
/// while this one stores.
void prefetchNextTiles(OpBuilder &builder, scf::ForallOp loop, int64_t level);

/// Makes the stores of whole lines in `loop` go past the caches, where the loop
/// touches more than `bytes` bytes and the lines are aligned. Both may be left
/// to run time. Returns whether any store may.
bool streamStores(RewriterBase &rewriter, scf::ForallOp loop, int64_t bytes,
                  CpuIsa isa);

/// A transfer of the last one or two dimensions of a buffer whose innermost
/// elements lie side by side, in their order; what it transfers may be masked.
template <typename TransferOp> bool movesColumns(TransferOp op) {
  auto type = dyn_cast<MemRefType>(op.getBase().getType());
  int64_t rank = op.getVectorType().getRank();
  return type && (rank == 1 || rank == 2) && type.isLastDimUnitStride() &&
         op.getPermutationMap().isMinorIdentity() && !op.hasOutOfBoundsDim() &&
         type.getElementType().isIntOrFloat() &&
         type.getElementTypeBitWidth() >= 8;
}

/// The sweep that an access is part of: the loop around it whose induction
/// variable it is indexed by, or else the access itself.
Operation *getSweep(VectorTransferOpInterface access);

} // namespace mlir::norm

#endif // NORM_LIB_TRANSFORMS_MAPTOREGISTERS_H
