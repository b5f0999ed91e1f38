//===- TileEmitter.h - The vector form of one tile -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns the linalg ops of a tile into the shared vector form. The tile's
// program (TileProgram.h) is cut into sweeps: sweep L over the reduced axes
// computes every reduction that needs L others before it, the last sweeps write
// every result. Elementwise ops are recomputed in each sweep that needs them,
// from what the tile was given, so nothing the size of a row is ever stored.
// What varies along the outer swept axes only is computed outside the inner
// loops, what varies along none between the sweeps.
//
// A value becomes a vector over the axes it varies along:
//
//   rows x columns   vector<RxC>      rows only      vector<R>
//   columns only     vector<C>        neither        a scalar
//
// A tile with sums over its rows takes R rows at a time. Such a sum is held in
// its destination: the last sweep adds the rows to it, one by one, so that R
// does not matter.
//
// A reduction that repeats an earlier one with other values over the kept axes
// is skipped where these are the same.
//
// Sums are blocked: no accumulator takes more than kMaxChain additions before
// it is folded into the next level, and the tree depends on the reduced extents
// and on C alone.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_TILEEMITTER_H
#define NORM_LIB_TRANSFORMS_TILEEMITTER_H

#include "Norm/IR/NormDialect.h"
#include "TileProgram.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <map>

namespace mlir::norm {

/// The longest chain of additions into one accumulator. Equal terms round alike
/// all along a chain, so this is about how many ulps a sum may be off.
inline constexpr int64_t kMaxChain = 32;

/// A value of the tile and the vector axes it varies along. Its type is
/// vector<RxC>, vector<R>, vector<C> or a scalar.
struct Vectorized {
  Value value;
  bool hasRows = false, hasColumns = false;
};

/// One step along a swept axis, inside a step along each axis outside it; or
/// the tile before any swept axis is entered.
struct Step {
  /// The step around this one and the axis that this one is along.
  Step *outer = nullptr;
  int axis = TileProgram::kNoAxis;
  /// Index along each axis; absent for axes that the step covers as a vector.
  DenseMap<int, Value> position;
  /// How many columns count; null if all C do.
  Value activeColumns;
  /// Values of this step that the steps inside it ask for go before this op.
  Operation *anchor = nullptr;
  /// Values already computed in this step.
  DenseMap<Value, Vectorized> cache;
  /// Of a step along a part or a sample: the steps that have what it is taken
  /// from, by what is added to stride * position.
  std::map<std::pair<int64_t, int64_t>, std::unique_ptr<Step>> sources;
};

/// The part of an axis that whole vectors (or single elements) cover, and the
/// rest, which takes a mask.
struct AxisSplit {
  int64_t width;
  Value wholeEnd, end;
  /// Number of whole steps, when static.
  std::optional<int64_t> wholeSteps;
  /// The most that there can be, where that is known.
  std::optional<int64_t> mostSteps;
  bool hasWhole, hasRest;
};

/// How result number `result` of a reduction combines its terms.
FailureOr<std::pair<vector::CombiningKind, TypedAttr>>
matchCombiner(linalg::GenericOp op, unsigned result);

/// How many levels of loops keep chains of `steps` additions within kMaxChain;
/// a run-time count gets those of 2^25 steps.
int64_t chainLevels(std::optional<int64_t> steps);

/// Emits the vector form of one tile, before its terminator.
class TileEmitter {
public:
  TileEmitter(const TileProgram &program, scf::ForallOp loop, int64_t columns)
      : program(program), loop(loop), loc(loop.getLoc()), columns(columns),
        builder(loop.getTerminator()) {
    auto strategy = loop->getAttrOfType<CpuStrategyAttr>(kStrategyAttrName);
    isCpu = strategy != nullptr;
    isSplit = isCpu && strategy.getSplit();
  }

  /// Replaces the program by its vector form; emits an error at the first op
  /// that has none, and fails.
  LogicalResult run();

private:
  using Values = SmallVector<Value>;
  using LoopFn = function_ref<FailureOr<Values>(Value, ValueRange carried)>;
  using StepFn = function_ref<FailureOr<Values>(Step &, ValueRange carried)>;
  using ChangeFn = function_ref<FailureOr<Values>()>;
  using BlockFn = function_ref<FailureOr<Values>(Value end)>;
  using RestFn = function_ref<FailureOr<Values>(Value position, Value active,
                                                ValueRange carried)>;
  using WholeFn = function_ref<FailureOr<Values>(const AxisSplit &, LoopFn)>;

  // The program: Vectorize.cpp.
  /// Emits the whole program for vectors of `height` rows along `axis`, inside
  /// `start`, and returns what it makes of the destinations of the outputs.
  FailureOr<Values> emitProgram(int axis, int64_t height, Step start,
                                ValueRange destinations);
  Value needsWholeVectors();
  /// The rows of a tile one after the other.
  FailureOr<Values> emitRowByRow(ValueRange destinations);
  LogicalResult emitReductions(int level);
  FailureOr<SmallVector<Vectorized>>
  computeSums(ArrayRef<linalg::GenericOp> sums);
  LogicalResult emitKeptOps(int level);
  FailureOr<Values> emitOutputs(ValueRange destinations);
  void eraseProgram();

  // Sums that repeat others: VectorizeRepeats.cpp.
  LogicalResult emitSums(ArrayRef<linalg::GenericOp> sums);
  /// A loop that goes over the terms of `sums` once, and once more about the
  /// better values that the first sums lead to, if those are others: `pairs`
  /// has what is summed about first, and what is better. The last sums are
  /// those of `repetition`.
  LogicalResult emitRepeatedSums(ArrayRef<linalg::GenericOp> sums,
                                 ArrayRef<linalg::GenericOp> repetition,
                                 ArrayRef<std::pair<Value, Value>> pairs);
  FailureOr<Value> sumAbout(ValueRange arguments,
                            ArrayRef<linalg::GenericOp> sums,
                            ArrayRef<std::pair<Value, Value>> pairs,
                            SmallVectorImpl<Vectorized> &values);
  FailureOr<SmallVector<Vectorized>>
  sumWhereOther(ArrayRef<linalg::GenericOp> sums,
                ArrayRef<std::pair<Value, Value>> pairs,
                ArrayRef<Vectorized> known);
  /// Whether `sums` are only good for what their repetition is about, and for
  /// that nothing else has to be summed but what is known.
  bool onlyLeadTo(ArrayRef<linalg::GenericOp> sums,
                  ArrayRef<std::pair<Value, Value>> pairs);
  /// Makes `values` what the tile knows as the results of `ops`.
  void keepResults(ArrayRef<linalg::GenericOp> ops,
                   ArrayRef<Vectorized> values);
  /// Whether any of the pairs of values over the kept axes differs.
  FailureOr<Value> differ(ArrayRef<std::pair<Value, Value>> pairs);

  // Tiles with sums over their rows: VectorizeBlocks.cpp.
  /// Emits the program for `height` rows along `axis`, and for every block
  /// along the block axes from `depth` on, at `position` along those before.
  FailureOr<Values> emitBlocks(unsigned depth, int axis, int64_t height,
                               const DenseMap<int, Value> &position,
                               ValueRange destinations);
  /// Whether `tensor` is a sum over rows.
  bool isRowSum(Value tensor);
  /// `destination` with the start of a sum over rows in it.
  Value startRowSum(Value sum, Value destination);
  /// What `destination` has at `step`, and the rows of a sum in addition.
  FailureOr<Vectorized> addRows(Value sum, Value destination, Step &step);

  // Loops: VectorizeLoops.cpp.
  /// Reduces `terms` over `axes`, starting from the neutral elements.
  FailureOr<Values> sumOver(ArrayRef<int> axes, Step &step, ValueRange neutral,
                            ArrayRef<vector::CombiningKind> kinds,
                            StepFn terms);
  Value accumulate(vector::CombiningKind kind, Value sum, Value term,
                   Value neutral = {});
  FailureOr<Values> accumulateAll(ArrayRef<vector::CombiningKind> kinds,
                                  ValueRange sums, FailureOr<Values> terms,
                                  ValueRange neutral);
  bool startsFromLast(ArrayRef<int> axes);
  /// Writes what is left of the outputs at a step along the first `depth` of
  /// `axes`, and returns the destinations. Each output varies along the first
  /// few of `axes` and is written at a step along those.
  FailureOr<Values> writeOver(ArrayRef<int> axes, unsigned depth, Step &step,
                              ValueRange sources, ValueRange destinations);
  /// The step at `position` along `axis`; of columns, `active` count, or all if
  /// it is null.
  Step stepInside(Step &outer, int axis, Value position, Value active);
  /// Runs `body` in every step along `axis`; `whole` makes the loop over those
  /// that no mask cuts.
  FailureOr<Values> walkAxis(int axis, Step &outer, ValueRange inits,
                             WholeFn whole, StepFn body);
  /// Sums up steps from `lower` to `upper`: chains of kMaxChain, and chains of
  /// such sums, `levels` in all.
  FailureOr<Values> blockedLoop(int64_t levels, Value lower, Value upper,
                                int64_t step, ValueRange neutral,
                                ArrayRef<vector::CombiningKind> kinds,
                                LoopFn body);
  /// The same in one loop, which carries the sums of all levels.
  FailureOr<Values> treeLoop(int64_t levels, Value lower, Value upper,
                             int64_t step, ValueRange neutral,
                             ArrayRef<vector::CombiningKind> kinds,
                             LoopFn body);
  /// The same in a nest of loops.
  FailureOr<Values> nestedLoop(int64_t levels, Value lower, Value upper,
                               int64_t step, ValueRange neutral,
                               ArrayRef<vector::CombiningKind> kinds,
                               LoopFn body);
  FailureOr<Values> carryOver(int64_t levels, int64_t step, Value done,
                              ValueRange sums, ValueRange neutral,
                              ArrayRef<vector::CombiningKind> kinds);
  FailureOr<Values> addBlock(Value start, int64_t span, Value upper,
                             ArrayRef<vector::CombiningKind> kinds,
                             ValueRange carried, BlockFn sum);
  /// Each of `sums` combined with its counterpart in `more`.
  Values combine(ArrayRef<vector::CombiningKind> kinds, ValueRange sums,
                 ValueRange more);
  /// What `change` makes of `values`, or these where `condition` is false.
  FailureOr<Values> changeWhere(Value condition, ValueRange values,
                                ChangeFn change);
  /// Whether a sum over `axes` is one over the columns of a row that may have
  /// more than a chain of them.
  bool isLong(ArrayRef<int> axes);
  /// Reduces `terms` over the columns, a block of kMaxChain vectors at a time,
  /// whose columns are combined before blocks are: from `neutral` the columns
  /// of a block, from `neutralSums` the blocks. What goes on from block to
  /// block is a value a row.
  FailureOr<Values> sumBlocks(int axis, Step &step, ValueRange neutral,
                              ValueRange neutralSums,
                              ArrayRef<vector::CombiningKind> kinds,
                              StepFn terms);
  FailureOr<Values> addRest(const AxisSplit &split, Value next, ValueRange sums,
                            RestFn add);
  Value foldColumns(vector::CombiningKind kind, Value sum, Value start);
  FailureOr<Values> forLoop(Value lower, Value upper, int64_t step,
                            ValueRange inits, LoopFn body);
  AxisSplit splitAxis(int axis);

  // Tiles that threads share: VectorizeSplit.cpp.
  /// The strategy of a loop over shares.
  CpuStrategyAttr sharedStrategy(bool stores);
  /// Lets the loop over tiles take them one after the other.
  void keepTilesInOrder();
  /// How many steps along the first of `axes`, inside which the others are
  /// swept, a thread takes at once; nullopt if threads do not share these.
  std::optional<int64_t> stepsOfShare(ArrayRef<int> axes);
  Value countShares(Value end, int64_t span);
  std::pair<Value, Value> boundsOfShare(Value number, Value end, int64_t span);
  scf::ForallOp createShares(Value count, ValueRange destinations, bool stores);
  /// blockedLoop over the whole steps of an axis, shared.
  FailureOr<Values> sharedSums(int64_t levels, const AxisSplit &split,
                               int64_t steps, ValueRange neutral,
                               ArrayRef<vector::CombiningKind> kinds,
                               LoopFn body);
  /// Whether each part of `axis` has a part of each of `sources` of its own.
  bool areCutBy(int axis, ValueRange sources);
  /// forLoop over the whole steps of an axis, shared.
  FailureOr<Values> sharedWrites(int axis, const AxisSplit &split,
                                 int64_t steps, ValueRange sources,
                                 ValueRange destinations, LoopFn body);

  // Values: VectorizeValues.cpp.
  /// What `tensor` holds at `step`, computed in the outermost step that fixes
  /// it.
  FailureOr<Vectorized> get(Value tensor, Step &step);
  Vectorized read(Value tensor, Step &step);
  /// Reads `tensor` where `place` lies in the iteration space.
  Vectorized readAt(Value tensor, Value place, Step &step);
  FailureOr<Vectorized> readPart(Value tensor, const TilePart &part,
                                 Step &step);
  Step &sourceStep(Value tensor, const TilePart &part, Step &step,
                   int64_t offset, Value active);
  Value takeAlternate(Value first, Value second, int64_t offset);
  Vectorized readBits(Value tensor, Step &step);
  Value write(Vectorized value, Value source, Value destination, Step &step);
  LogicalResult emitBody(linalg::GenericOp op, Step &step,
                         SmallVectorImpl<Vectorized> &results);
  SmallVector<Vectorized> emitScalarOp(Operation &op,
                                       ArrayRef<Vectorized> operands);
  Vectorized broadcast(Vectorized value, bool toRows, bool toColumns);
  VectorType vectorType(bool hasRows, bool hasColumns, Type elementType);
  Value activeMask(Step &step, ArrayRef<bool> dimIsColumns);
  /// Reads and writes at one place: the indices of `tensor` for a step, and
  /// the vector's dimensions in memory order.
  void locate(Value tensor, Step &step, Values &indices,
              SmallVectorImpl<AffineExpr> &dims,
              SmallVectorImpl<bool> &dimIsColumns);

  // Extents and constants.
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value boolean(bool value) {
    return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(value));
  }
  Value extentOf(int axis);

  const TileProgram &program;
  scf::ForallOp loop;
  Location loc;
  int64_t columns;
  /// Whether columns are known to be whole vectors where their extent is not.
  bool columnsAreWhole = false;
  /// The axis whose elements are the rows of a vector, and how many.
  int rowAxis = TileProgram::kNoAxis;
  int64_t rows = 1;
  OpBuilder builder;
  /// Whether the strategy is a CPU's.
  bool isCpu = false;
  /// Whether threads share the tile, and whether what is emitted is inside a
  /// loop over their shares already.
  bool isSplit = false, isShared = false;
  /// Along these axes, a destination begins at this index.
  DenseMap<int, Value> writtenFrom;
  /// The tile before any swept axis is entered; its cache has the results of
  /// reductions and of what is computed between sweeps.
  Step base;
};

} // namespace mlir::norm

#endif // NORM_LIB_TRANSFORMS_TILEEMITTER_H
