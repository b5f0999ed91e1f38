//===- RegistersStream.h - Stores past the caches --------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_REGISTERSSTREAM_H
#define NORM_LIB_TRANSFORMS_REGISTERSSTREAM_H

#include "MapToRegisters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::norm {

/// A sweep that stores, and what it stores by whole lines.
struct StoringSweep {
  Operation *op;
  SmallVector<vector::TransferWriteOp> writes;
  /// Of a sweep that is cut anew, from line to line: the column where it ends,
  /// and what wrote the columns that were left of whole vectors.
  Value end;
  SmallVector<vector::TransferWriteOp> rests;
};

/// Lets the stores of one loop over tiles go past the caches.
class Streamer {
public:
  Streamer(RewriterBase &rewriter, scf::ForallOp loop, int64_t bytes,
           CpuIsa isa)
      : rewriter(rewriter), loc(loop.getLoc()), loop(loop), bytes(bytes),
        isa(isa) {}

  /// Returns whether any may.
  bool run();

private:
  // What may be streamed, and when: RegistersStream.cpp.
  void collectReads();
  SmallVector<StoringSweep> findSweeps();
  vector::TransferWriteOp narrow(vector::TransferWriteOp write);
  bool storesLines(vector::TransferWriteOp write);
  bool mayBeAligned(vector::TransferWriteOp write);
  bool decideSize();
  Value startAddress(vector::TransferWriteOp write);
  Value openPitch(vector::TransferWriteOp write);
  void dropFetches(Operation *sweep);
  Value areWholeLines(ArrayRef<Value> bytes);
  void duplicate(StoringSweep &sweep);
  void storeLines(vector::TransferWriteOp write);
  std::tuple<Value, Value, SmallVector<Value>>
  joinRows(vector::TransferWriteOp write);
  bool isHidden(VectorType type);
  int64_t pieceBytes(VectorType type);

  // Sweeps from line to line: RegistersCut.cpp.
  /// Sets the sweep's end if it can be cut.
  bool planCut(StoringSweep &sweep);
  void cut(StoringSweep &sweep);
  Value isLongOrWhole(Value address, Value end, int64_t width);
  void cloneMasked(scf::ForOp sweep, Value start, Value count);

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  }
  Value plus(Value index, int64_t offset) {
    if (offset == 0)
      return index;
    return arith::AddIOp::create(rewriter, loc, index, this->index(offset));
  }

  RewriterBase &rewriter;
  Location loc;
  scf::ForallOp loop;
  int64_t bytes;
  CpuIsa isa;
  /// What the loop reads, as views outside it.
  DenseSet<Value> readFrom;
  /// Whether the loop touches enough bytes; null if that is known.
  Value isLarge;
};

inline int64_t widthOf(VectorType type) {
  return type.getElementTypeBitWidth() / 8;
}

/// The innermost index of `access` in the first step of its sweep; null if that
/// index does not go up with the sweep, line by line. Without a builder, any
/// value if there is one.
Value firstColumn(OpBuilder *builder, VectorTransferOpInterface access);

} // namespace mlir::norm

#endif // NORM_LIB_TRANSFORMS_REGISTERSSTREAM_H
