//===- MapToThreads.h - Parts of norm-map-to-threads -----------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One loop over rows in vector form becomes one kernel. A block has R rows, a
// row T threads. What a value becomes in a thread follows from what it varies
// along:
//
//                   columns                        not columns
//   rows            k pieces, vector<V> each       a scalar, in every thread
//   not rows        the same                       the same
//
// Piece j of thread t has the columns (j * T + t) * V and V - 1 more. Vectors
// of one element become scalars. Values that vary along rows or not differ only
// in when they are read.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_MAPTOTHREADS_H
#define NORM_LIB_TRANSFORMS_MAPTOTHREADS_H

#include "Norm/IR/NormDialect.h"
#include "Norm/Transforms/GpuChip.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::norm {

//===----------------------------------------------------------------------===//
// Layout: ThreadsLayout.cpp
//===----------------------------------------------------------------------===//

/// What the values of a row vary along, by dataflow from the loop over rows,
/// and in which order ops are emitted.
class RowLayout {
public:
  /// Understands `loop`; emits an error at the first op that cannot be spread
  /// over threads, and fails.
  static FailureOr<RowLayout> analyze(scf::ForallOp loop,
                                      GpuStrategyAttr strategy);

  /// Whether a type is that of a value along the columns of a row.
  bool hasColumns(Type type) const;
  bool hasColumns(Value value) const { return hasColumns(value.getType()); }
  /// Whether a value may differ from row to row.
  bool variesAlongRows(Value value) const { return rowValues.contains(value); }

  /// Reductions that wait for no other one have level 0, those that wait for
  /// level L have level L + 1, and so have ops that need them. All reductions
  /// of one level share an exchange.
  int getLevel(Operation *op) const { return levels.lookup(op); }
  int getNumLevels() const { return numLevels; }

private:
  RowLayout(scf::ForallOp loop, GpuStrategyAttr strategy)
      : loop(loop), strategy(strategy) {}

  LogicalResult checkOp(Operation *op);
  LogicalResult checkTypes(Operation *op) const;
  LogicalResult checkBuffers();
  void findRowValues();
  void computeLevels();
  void delayReads();

  scf::ForallOp loop;
  GpuStrategyAttr strategy;
  DenseSet<Value> rowValues;
  DenseMap<Operation *, int> levels;
  int numLevels = 1;
};

/// What a view inside a loop over rows is a view of: a buffer from outside.
Value getViewedBuffer(Value view);

/// Makes what a row computes in a buffer of its own, and then copies, be
/// written where it goes.
void forwardCopies(scf::ForallOp loop);

//===----------------------------------------------------------------------===//
// Rows in shared memory: ThreadsStage.cpp
//===----------------------------------------------------------------------===//

/// Makes the first sweep over a row put what later ones read into buffers in
/// workgroup memory, of up to `room` bytes together. Emits an error if not even
/// one fits, or if not all columns are known to be there, and fails.
LogicalResult stageRows(scf::ForallOp loop, GpuStrategyAttr strategy,
                        const RowLayout &layout, int64_t room, StringRef chip);

/// Whether `buffer` is such a one.
bool isStagedRow(Value buffer);

/// Bytes of the buffers of `loop` for all rows of a block.
int64_t countStagedBytes(scf::ForallOp loop, GpuStrategyAttr strategy);

/// Whether a column is a multiple of the chunk's, in every step of a loop.
bool isChunkStart(Value column, int64_t columns);

//===----------------------------------------------------------------------===//
// Alignment: ThreadsAlign.cpp
//===----------------------------------------------------------------------===//

/// Whether the columns of a row can be moved by whole accesses of V elements,
/// and what the host has to check for that.
class WholeAccesses {
public:
  static WholeAccesses analyze(scf::ForallOp loop, const RowLayout &layout,
                               GpuStrategyAttr strategy);

  /// Not if V is 1, if some access skips elements, or starts at or ends with a
  /// part of V.
  bool arePossible() const { return possible; }
  /// An i1: whether addresses, strides and extents allow them.
  Value buildCheck(OpBuilder &builder, Location loc) const;

private:
  WholeAccesses(scf::ForallOp loop, int64_t width) : loop(loop), width(width) {}

  void addTransfer(VectorTransferOpInterface transfer, const RowLayout &layout);
  bool addView(Value view, int64_t bytes);
  bool isMultiple(Value value);

  scf::ForallOp loop;
  int64_t width;
  bool possible = true;
  /// Buffers and the alignment of their accesses in bytes.
  llvm::MapVector<Value, int64_t> buffers;
  /// Values outside the loop that have to be multiples of V, and more than 0.
  SetVector<Value> extents;
};

/// Whether the columns of rows that start anywhere can be moved by whole
/// accesses and shifts: if their elements lie side by side, and V are a word.
bool canShift(scf::ForallOp loop, const RowLayout &layout,
              GpuStrategyAttr strategy);

//===----------------------------------------------------------------------===//
// Math: ThreadsMath.cpp
//===----------------------------------------------------------------------===//

/// Makes math functions in a kernel intrinsics or arithmetic, where there are
/// such.
LogicalResult expandKernelMath(gpu::LaunchOp launch);

//===----------------------------------------------------------------------===//
// Constants: ThreadsConstants.cpp
//===----------------------------------------------------------------------===//

/// Makes constant buffers that a kernel reads the kernel's own.
void sinkConstants(gpu::LaunchOp launch);

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

/// The memory that the threads of a block share.
inline Attribute getWorkgroupSpace(MLIRContext *context) {
  return gpu::AddressSpaceAttr::get(context, gpu::AddressSpace::Workgroup);
}

/// The bytes that an access of such a vector is aligned to.
int64_t alignmentOf(VectorType type);

/// How columns are moved: by whole accesses of aligned rows, by whole accesses
/// and shifts of rows that start anywhere, or one by one.
enum class ColumnAccess { Whole, Shifted, Single };

/// Emits one kernel for a loop over rows, which stays as it is.
class ThreadMapper {
public:
  ThreadMapper(scf::ForallOp loop, GpuStrategyAttr strategy,
               const RowLayout &layout, ColumnAccess access, OpBuilder &builder)
      : loop(loop), strategy(strategy), layout(layout),
        isWhole(access == ColumnAccess::Whole),
        isShifted(access == ColumnAccess::Shifted), builder(builder),
        loc(loop.getLoc()) {}

  /// Launches the kernel on `stream`, an `!llvm.ptr`, or on a stream of its own
  /// if that is null.
  LogicalResult run(Value stream);

private:
  using Pieces = SmallVector<Value>;

  // The launch: ThreadsLaunch.cpp.
  Value countRows();
  gpu::LaunchOp createLaunch(Value numRows, Value stream);
  void placeThread(Value numRows);
  void placeColumns();
  LogicalResult emitLevels(Block *block);
  LogicalResult emitBlock(Block *block);
  LogicalResult emitFor(scf::ForOp op);
  LogicalResult emit(Operation *op);
  /// Emits `body` for threads where `condition` holds; for all if it is null.
  void emitIf(Value condition, function_ref<void()> body);
  Value both(Value a, Value b);

  // Values: ThreadsValues.cpp.
  LogicalResult emitUniform(Operation *op);
  LogicalResult emitColumns(Operation *op);
  bool emitStartOfSum(Operation *op);
  LogicalResult emitRead(vector::TransferReadOp op);
  LogicalResult emitWrite(vector::TransferWriteOp op);
  void emitStore(memref::StoreOp op);
  Value readPiece(vector::TransferReadOp op, int64_t piece);
  void writePiece(Value value, vector::TransferWriteOp op, int64_t piece);
  /// Indices of a transfer, moved by `column` along its columns.
  SmallVector<Value> indicesAt(VectorTransferOpInterface op, Value column);
  /// The pieces of a value with columns; a splat constant is made here.
  Pieces getPieces(Value value);
  /// What any other value is in the kernel.
  Value getUniform(Value value);
  Type pieceType(Type type);
  /// Whether columns of a piece exist, or count under `mask`: null if all do,
  /// one i1 for a piece that is whole or absent, else one for each column.
  Value guardOf(int64_t piece, Value mask);
  /// How many columns count under a mask.
  Value boundOf(Value mask);
  /// Column `element` of a guard.
  Value guardOf(Value guard, int64_t element);

  // Rows that start anywhere: ThreadsShift.cpp.
  Pieces readShifted(vector::TransferReadOp op);
  void writeShifted(vector::TransferWriteOp op);

  // Rows in shared memory: ThreadsStage.cpp.
  void emitStagedRow(memref::AllocOp op);
  Value readStaged(vector::TransferReadOp op, int64_t piece);
  void writeStaged(Value value, vector::TransferWriteOp op, int64_t piece);
  /// Calls `body` for each access of a piece of `type`, with its first element
  /// and where it lies.
  void forEachPlane(
      VectorTransferOpInterface op, VectorType type, int64_t piece,
      function_ref<void(int64_t first, VectorType part, ValueRange at)> body);

  // Reductions: ThreadsReduce.cpp.
  struct Reduction {
    vector::MultiDimReductionOp op;
    Value value;
  };
  void addReduction(vector::MultiDimReductionOp op);
  /// Exchanges what `pending` holds, and empties it.
  void exchange();
  Value reducePieces(vector::CombiningKind kind, Pieces pieces);
  Value reduceTree(vector::CombiningKind kind, Pieces values);
  Value reduceWarp(vector::CombiningKind kind, Value value);
  void reduceBlock();

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  scf::ForallOp loop;
  GpuStrategyAttr strategy;
  const RowLayout &layout;
  bool isWhole, isShifted;
  /// Whether ops of an inner loop are emitted.
  bool isInLoop = false;
  OpBuilder &builder;
  Location loc;
  gpu::LaunchOp launch;
  /// The thread's place in its row, and its row's in the block.
  Value lane, rowInBlock;
  /// Whether the row exists; null if it always does.
  Value isRow;
  /// The first column of each piece.
  SmallVector<Value> columns;
  IRMapping uniforms;
  DenseMap<Value, Pieces> pieces;
  SmallVector<Reduction> pending;
  /// Bytes of dynamic shared memory that have been given out.
  int64_t stagedBytes = 0;
};

} // namespace mlir::norm

#endif // NORM_LIB_TRANSFORMS_MAPTOTHREADS_H
