//===- TileLanes.cpp - Norms of the inner axes' elements -------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A norm of channel-last data keeps the inner axes. A tile of a few channels
// would read a part of each line; a tile that reads lines as they lie has rows
// of all channels, and not all of their sums. So the op is decomposed as a
// whole, and each step becomes a loop:
//
//   %m = scf.forall (%j) in (%channels)       a sample, and other small things
//   %parts = scf.forall (%p) in (%ranges)     sums over the rows of range p
//   %S, %Q = scf.forall (%j) in (%channels)   sum over p of parts[p, j]
//   scf.if %any { the same about another m }  where some channel needs it
//   %y = scf.forall (%r) in (%rows)           what has all axes
//
// Axes around the reduced ones, as that of images of an instance norm, are one
// more loop around each: a range lies in one image. Of images of few rows a
// tile of lanes has all sums, as it has in the other forms of norms, with the
// same bits; where the rows are counted at run time, a branch decides that.
// Where a group of channels shares a mean, channels are summed apart, and one
// more small loop after the merge adds up those of a group and spreads what
// follows over them:
//
//   %m_c = scf.forall (%g) in (%groups)       sums over the channels of g, what
//                                             follows, for each of them again
//
// Elementwise ops over all axes are computed again in each loop that needs
// them. The last loop goes backwards: the last rows that were summed are what
// the caches still hold.
//
//===----------------------------------------------------------------------===//

#include "TileLanes.h"

#include "../IR/RowBuilder.h"
#include "LowerToLinalg.h"
#include "TileNeighbours.h"
#include "TilePlan.h"
#include "TileProgram.h"
#include "TileRanges.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/IntEqClasses.h"

using namespace mlir;
using namespace mlir::norm;

using Sizes = SmallVector<OpFoldResult>;

/// Loops over the kept axes alone stay on one thread below so many bytes.
static constexpr int64_t kSerialBytes = 262144;

namespace {
/// A part of the iteration space, and what has been computed of it.
struct Tile {
  Sizes offsets, sizes, strides;
  DenseMap<Value, Value> made;
  /// Slices of what is computed elsewhere: one each, so that it is known that
  /// what reads them runs over the same axes.
  struct Slice {
    Value source;
    SmallVector<int64_t> axes;
    Value part;
  };
  SmallVector<Slice> slices;
};

class LaneTiler {
public:
  LaneTiler(RowOpInterface op, CpuStrategyAttr strategy, RewriterBase &rewriter)
      : op(op), strategy(strategy), rewriter(rewriter), loc(op.getLoc()) {
    reduced = axesOfRows(op);
    kept = complementAxes(reduced, op.getRank());
    above = axesAboveRows(op);
    outer = llvm::to_vector(llvm::seq<int64_t>(0, reduced.front()));
    all = llvm::to_vector(llvm::seq<int64_t>(0, op.getRank()));
    if (!op.getGroupedAxis())
      return;
    groups = outer;
    groups.push_back(op.getRank());
    withinGroups = groups;
    withinGroups.push_back(op.getRank() + 1);
  }

  FailureOr<scf::ForallOp> run();

private:
  using Ops = SmallVector<linalg::GenericOp>;

  LogicalResult decompose();
  /// Whether an op sums over all rows, not over a sample of them.
  bool isSum(linalg::GenericOp generic);
  /// Whether an op has all axes.
  bool isFull(linalg::GenericOp generic) {
    return generic.getNumReductionLoops() == 0 &&
           loopAxes(generic) == ArrayRef(all);
  }
  /// Whether an op of the program makes groups of channels, or the reverse.
  bool isReshape(Operation *made) {
    return isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(
               made) &&
           inProgram.contains(made);
  }
  /// The axes that the loops of an op run over.
  ArrayRef<int64_t> loopAxes(linalg::GenericOp generic);
  linalg::GenericOp producerOf(Value value);
  /// Notes what a loop has computed of a value, and of reshapes of it.
  void record(Value value, Value computed);
  /// Whether an op computes what groups have, or spreads it over channels.
  bool isOfGroups(linalg::GenericOp generic) {
    return !groups.empty() && loopAxes(generic) != ArrayRef(all);
  }
  void addGroups();
  void computeLevels();
  /// Cuts `ops` where they share no tensor that has all of `numAxes` axes:
  /// nothing would tell one loop that they run over the same.
  SmallVector<Ops> groupByTensors(ArrayRef<linalg::GenericOp> ops,
                                  size_t numAxes);

  // The loops.
  void keepLanes(ArrayRef<linalg::GenericOp> ops);
  void keepGroups(ArrayRef<linalg::GenericOp> ops);
  void fill(scf::ForallOp loop, ArrayRef<linalg::GenericOp> ops,
            ArrayRef<Value> values, Tile &tile);
  SmallVector<Value> valuesReadAfter(ArrayRef<linalg::GenericOp> ops);
  void sumRows(ArrayRef<linalg::GenericOp> sums);
  SmallVector<Value> sumRanges(ArrayRef<linalg::GenericOp> sums,
                               ValueRange memory, ValueRange destinations);
  /// Whether `sums` repeat what an earlier level has, but for values over the
  /// kept axes: pairs of these, and what the earlier ones computed.
  bool matchRepeated(ArrayRef<linalg::GenericOp> sums,
                     SmallVectorImpl<std::pair<Value, Value>> &pairs,
                     SmallVectorImpl<Value> &earlier);
  Value differ(ArrayRef<std::pair<Value, Value>> pairs);
  void sumInRanges();
  void sumFewOrMany();
  scf::ForallOp apply();

  // Tiles.
  Value tileOf(Value value, ArrayRef<int64_t> axes, Tile &tile);
  void cloneOn(linalg::GenericOp generic, Tile &tile);
  /// A tile of what elementwise ops around the norm compute for it alone; null
  /// if `value` is none of that.
  Value tileOfNeighbour(Value value, ArrayRef<int64_t> axes, Tile &tile);
  bool isRead(Operation *producer);
  Value slice(Value value, ArrayRef<int64_t> axes, Tile &tile);
  /// The axes that an operand or result of `generic` has by `map`; -1 for a
  /// dimension that none indexes.
  SmallVector<int64_t> axesBy(linalg::GenericOp generic, AffineMap map);
  /// Those of a value that a generic op computes.
  SmallVector<int64_t> axesOf(Value value) {
    auto generic = value.getDefiningOp<linalg::GenericOp>();
    return axesBy(generic,
                  generic.getIndexingMapMatchingResult(cast<OpResult>(value)));
  }
  Sizes pick(ArrayRef<OpFoldResult> list, ArrayRef<int64_t> axes,
             int64_t otherwise);
  Tile wholeTile();
  void insert(Value tile, Value destination, ArrayRef<OpFoldResult> at,
              ArrayRef<OpFoldResult> sizes);
  Value emptyOf(Value like, ArrayRef<OpFoldResult> shape) {
    return tensor::EmptyOp::create(rewriter, loc, shape,
                                   getElementTypeOrSelf(like.getType()));
  }
  Sizes repeat(int64_t value, size_t count) {
    return Sizes(count, rewriter.getIndexAttr(value));
  }
  LaneLoop::Options laneOptions() {
    return {strategy.getColumns(), strategy.getParallel(), kSerialBytes};
  }
  Sizes extents(ArrayRef<int64_t> axes) {
    return llvm::map_to_vector(axes,
                               [&](int64_t axis) { return domain[axis].size; });
  }

  RowOpInterface op;
  CpuStrategyAttr strategy;
  RewriterBase &rewriter;
  Location loc;
  /// The axes of x that are summed over and those of the sums; those of groups
  /// and of the channels within come after x's.
  SmallVector<int64_t> reduced, kept, all;
  /// The axes outside of rows, and the kept ones of these.
  SmallVector<int64_t> above, outer;
  /// Those of what groups have, and of their channels; empty without groups.
  SmallVector<int64_t> groups, withinGroups;
  SmallVector<Range> domain;
  RowRanges ranges;
  /// What the op decomposes to: all ops, those with work, and its results.
  SmallVector<Operation *> decomposed;
  Ops program;
  SmallVector<Value> results;
  DenseSet<Operation *> inProgram;
  /// Ops around the norm that are computed in its tiles.
  SetVector<Operation *> neighbours;
  DenseMap<Operation *, int> levels;
  /// What the loops so far have computed of the program's values, and the
  /// partial sums of those that are sums.
  DenseMap<Value, Value> done, partialsOf;
};
} // namespace

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

LogicalResult LaneTiler::decompose() {
  Operation *before = op->getPrevNode();
  FailureOr<SmallVector<Value>> values =
      groups.empty() ? decomposeRowOp(op, rewriter)
                     : decomposeKeepingChannels(
                           cast<NormOpInterface>(op.getOperation()), rewriter);
  if (failed(values))
    return op.emitOpError("does not decompose");
  results = *values;
  Operation *first = before ? before->getNextNode() : &op->getBlock()->front();
  for (Operation *made = first; made != op; made = made->getNextNode()) {
    decomposed.push_back(made);
    inProgram.insert(made);
    if (auto generic = dyn_cast<linalg::GenericOp>(made))
      program.push_back(generic);
  }
  return success();
}

linalg::GenericOp LaneTiler::producerOf(Value value) {
  value = stripTensorCasts(value);
  if (auto sample = value.getDefiningOp<tensor::ExtractSliceOp>();
      sample && inProgram.contains(sample))
    value = stripTensorCasts(sample.getSource());
  if (Operation *reshape = value.getDefiningOp(); isReshape(reshape))
    value = stripTensorCasts(reshape->getOperand(0));
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  return generic && inProgram.contains(generic) ? generic : nullptr;
}

ArrayRef<int64_t> LaneTiler::loopAxes(linalg::GenericOp generic) {
  bool isWithin =
      llvm::any_of(generic.getDpsInputs(),
                   [&](Value input) {
                     return isReshape(input.getDefiningOp()) &&
                            isa<tensor::ExpandShapeOp>(input.getDefiningOp());
                   }) ||
      llvm::any_of(generic->getUsers(), [&](Operation *user) {
        return isReshape(user) && isa<tensor::CollapseShapeOp>(user);
      });
  if (isWithin)
    return withinGroups;
  if (generic.getNumLoops() == all.size())
    return all;
  return groups.empty() ? kept : groups;
}

bool LaneTiler::isSum(linalg::GenericOp generic) {
  return generic.getNumReductionLoops() > 0 &&
         loopAxes(generic) == ArrayRef(all) &&
         llvm::none_of(generic.getDpsInputs(), [&](Value input) {
           auto sample = input.getDefiningOp<tensor::ExtractSliceOp>();
           return sample && inProgram.contains(sample);
         });
}

/// How many sums over all rows come before an op.
void LaneTiler::computeLevels() {
  for (linalg::GenericOp generic : program) {
    int level = 0;
    for (Value operand : generic.getDpsInputs())
      if (linalg::GenericOp producer = producerOf(operand))
        level = std::max(level, levels[producer] + (isSum(producer) ? 1 : 0));
    levels[generic] = level;
  }
}

SmallVector<SmallVector<linalg::GenericOp>>
LaneTiler::groupByTensors(ArrayRef<linalg::GenericOp> ops, size_t numAxes) {
  llvm::IntEqClasses classes(ops.size());
  DenseMap<Value, unsigned> first;
  for (unsigned number = 0; number < ops.size(); ++number) {
    linalg::GenericOp generic = ops[number];
    auto note = [&](Value tensor, AffineMap map) {
      tensor = stripTensorCasts(tensor);
      if (map.getNumResults() >= numAxes)
        classes.join(number, first.try_emplace(tensor, number).first->second);
    };
    for (OpOperand *input : generic.getDpsInputOperands())
      note(input->get(), generic.getMatchingIndexingMap(input));
    for (OpResult result : generic->getResults())
      note(result, generic.getIndexingMapMatchingResult(result));
  }
  classes.compress();
  SmallVector<Ops> groups(classes.getNumClasses());
  for (auto [number, generic] : llvm::enumerate(ops))
    groups[classes[number]].push_back(generic);
  return groups;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

SmallVector<int64_t> LaneTiler::axesBy(linalg::GenericOp generic,
                                       AffineMap map) {
  ArrayRef<int64_t> loops = loopAxes(generic);
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) -> int64_t {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    return dim ? loops[dim.getPosition()] : -1;
  });
}

Sizes LaneTiler::pick(ArrayRef<OpFoldResult> list, ArrayRef<int64_t> axes,
                      int64_t otherwise) {
  return llvm::map_to_vector(axes, [&](int64_t axis) -> OpFoldResult {
    return axis < 0 ? rewriter.getIndexAttr(otherwise) : list[axis];
  });
}

Tile LaneTiler::wholeTile() {
  Tile tile;
  for (const Range &range : domain) {
    tile.offsets.push_back(range.offset);
    tile.sizes.push_back(range.size);
    tile.strides.push_back(range.stride);
  }
  return tile;
}

Value LaneTiler::slice(Value value, ArrayRef<int64_t> axes, Tile &tile) {
  for (const Tile::Slice &known : tile.slices)
    if (known.source == value && ArrayRef(known.axes) == axes)
      return known.part;
  Value part = tensor::ExtractSliceOp::create(
      rewriter, loc, value, pick(tile.offsets, axes, 0),
      pick(tile.sizes, axes, 1), pick(tile.strides, axes, 1));
  tile.slices.push_back({value, llvm::to_vector(axes), part});
  return part;
}

/// What a tile holds of `value`, whose dimensions have these axes.
Value LaneTiler::tileOf(Value value, ArrayRef<int64_t> axes, Tile &tile) {
  if (!isa<RankedTensorType>(value.getType()))
    return value;
  value = stripTensorCasts(value);
  if (Value made = tile.made.lookup(value))
    return made;
  if (Value whole = done.lookup(value))
    return slice(whole, axes, tile);
  if (auto sample = value.getDefiningOp<tensor::ExtractSliceOp>();
      sample && inProgram.contains(sample)) {
    Tile some(tile);
    some.made.clear();
    some.slices.clear();
    for (int64_t axis : reduced) {
      some.offsets[axis] = sample.getMixedOffsets()[axis];
      some.sizes[axis] = sample.getMixedSizes()[axis];
      some.strides[axis] = sample.getMixedStrides()[axis];
    }
    return tileOf(sample.getSource(), axes, some);
  }
  if (linalg::GenericOp producer = producerOf(value)) {
    cloneOn(producer, tile);
    return tile.made.lookup(value);
  }
  if (Value part = tileOfNeighbour(value, axes, tile))
    return part;
  return slice(value, axes, tile);
}

/// Whether anything but the norm reads the results of an op.
bool LaneTiler::isRead(Operation *producer) {
  return llvm::any_of(producer->getUsers(), [&](Operation *user) {
    return user != op && !isa<tensor::DimOp>(user) &&
           !inProgram.contains(user) && !neighbours.contains(user);
  });
}

Value LaneTiler::tileOfNeighbour(Value value, ArrayRef<int64_t> axes,
                                 Tile &tile) {
  auto producer = value.getDefiningOp<linalg::LinalgOp>();
  if (!producer || producer->getBlock() != op->getBlock() ||
      !isElementwiseNeighbour(producer) || !hasVectorOperands(producer) ||
      isRead(producer))
    return {};
  SmallVector<int64_t> loops(producer.getNumLoops(), -1);
  AffineMap map = producer.getIndexingMapMatchingResult(cast<OpResult>(value));
  for (auto [expr, axis] : llvm::zip_equal(map.getResults(), axes))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      loops[dim.getPosition()] = axis;
  if (llvm::is_contained(loops, -1))
    return {};
  neighbours.insert(producer);
  SmallVector<Value> operands;
  SmallVector<Type> types;
  for (OpOperand &operand : producer->getOpOperands()) {
    auto its = llvm::map_to_vector(
        producer.getMatchingIndexingMap(&operand).getResults(),
        [&](AffineExpr expr) -> int64_t {
          auto dim = dyn_cast<AffineDimExpr>(expr);
          return dim ? loops[dim.getPosition()] : -1;
        });
    operands.push_back(producer.isDpsInit(&operand)
                           ? emptyOf(operand.get(), pick(tile.sizes, its, 1))
                           : tileOf(operand.get(), its, tile));
    if (producer.isDpsInit(&operand))
      types.push_back(operands.back().getType());
  }
  Operation *tiled = clone(rewriter, producer.getOperation(), types, operands);
  for (auto [from, to] :
       llvm::zip_equal(producer->getResults(), tiled->getResults()))
    tile.made[from] = to;
  return tile.made.lookup(value);
}

/// Computes a tile of `generic`, from tiles of what it reads.
void LaneTiler::cloneOn(linalg::GenericOp generic, Tile &tile) {
  SmallVector<Value> operands;
  for (OpOperand *input : generic.getDpsInputOperands())
    operands.push_back(
        tileOf(input->get(),
               axesBy(generic, generic.getMatchingIndexingMap(input)), tile));
  SmallVector<Type> types;
  for (OpOperand &init : generic.getDpsInitsMutable()) {
    Value out = emptyOf(
        init.get(),
        pick(tile.sizes, axesBy(generic, generic.getMatchingIndexingMap(&init)),
             1));
    if (auto fill = init.get().getDefiningOp<linalg::FillOp>())
      out = linalg::FillOp::create(rewriter, loc, fill.getInputs()[0], out)
                .getResult(0);
    operands.push_back(out);
    types.push_back(out.getType());
  }
  Operation *tiled = clone(rewriter, generic.getOperation(), types, operands);
  for (auto [from, to] :
       llvm::zip_equal(generic->getResults(), tiled->getResults()))
    tile.made[from] = to;
}

void LaneTiler::insert(Value tile, Value destination, ArrayRef<OpFoldResult> at,
                       ArrayRef<OpFoldResult> sizes) {
  OpBuilder::InsertionGuard guard(rewriter);
  auto loop = cast<scf::ForallOp>(
      cast<BlockArgument>(destination).getOwner()->getParentOp());
  rewriter.setInsertionPointToEnd(loop.getTerminator().getBody());
  tensor::ParallelInsertSliceOp::create(rewriter, loc, tile, destination, at,
                                        sizes, repeat(1, at.size()));
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void LaneTiler::record(Value value, Value computed) {
  done[value] = computed;
  for (Operation *user : value.getUsers()) {
    if (!isReshape(user))
      continue;
    Value source = computed;
    if (source.getType() != value.getType())
      source = tensor::CastOp::create(rewriter, loc, value.getType(), source);
    IRMapping mapping;
    mapping.map(value, source);
    done[user->getResult(0)] = rewriter.clone(*user, mapping)->getResult(0);
  }
}

/// What ops compute for others.
SmallVector<Value> LaneTiler::valuesReadAfter(ArrayRef<linalg::GenericOp> ops) {
  SmallVector<Value> values;
  for (linalg::GenericOp generic : ops)
    for (Value result : generic->getResults())
      if (llvm::is_contained(results, result) ||
          llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !llvm::is_contained(ops, user);
          }))
        values.push_back(result);
  return values;
}

/// Computes ops over the kept axes, on lanes of them.
void LaneTiler::keepLanes(ArrayRef<linalg::GenericOp> ops) {
  SmallVector<Value> values = valuesReadAfter(ops), destinations;
  for (Value value : values)
    destinations.push_back(emptyOf(value, extents(kept)));
  LaneLoop lanes = LaneLoop::create(rewriter, loc, extents(kept), destinations,
                                    laneOptions());
  Tile tile = wholeTile();
  for (auto [axis, offset, size] :
       llvm::zip_equal(kept, lanes.offsets, lanes.sizes)) {
    tile.offsets[axis] = offset;
    tile.sizes[axis] = size;
  }
  fill(lanes.loop, ops, values, tile);
}

/// Computes what groups have, from their channels and over these again, a few
/// groups at a time.
void LaneTiler::keepGroups(ArrayRef<linalg::GenericOp> ops) {
  SmallVector<Value> values = valuesReadAfter(ops), destinations;
  for (Value value : values)
    destinations.push_back(emptyOf(value, extents(axesOf(value))));
  int64_t rows = kAppliedRows, columns = strategy.getColumns();
  while (op.getNumGroups() % rows != 0)
    rows /= 2;
  if (std::optional<int64_t> channels =
          getConstantIntValue(domain[withinGroups.back()].size))
    columns = std::min<int64_t>(
        columns, llvm::PowerOf2Ceil(std::max<int64_t>(*channels, 1)));
  Sizes steps = repeat(1, groups.size());
  steps.back() = rewriter.getIndexAttr(rows);
  auto loop = scf::ForallOp::create(rewriter, loc, repeat(0, groups.size()),
                                    extents(groups), steps, destinations,
                                    /*mapping=*/std::nullopt);
  loop->setAttr(kStrategyAttrName,
                CpuStrategyAttr::get(rewriter.getContext(), rows, columns,
                                     strategy.getParallel(), /*range=*/0,
                                     kSerialBytes,
                                     /*stream_bytes=*/0, /*prefetch=*/0,
                                     /*split=*/false));
  Tile tile = wholeTile();
  for (auto [axis, at, step] :
       llvm::zip_equal(groups, loop.getInductionVars(), steps)) {
    tile.offsets[axis] = at;
    tile.sizes[axis] = step;
  }
  fill(loop, ops, values, tile);
}

/// Computes `ops` in a loop that has room for tiles of `values`.
void LaneTiler::fill(scf::ForallOp loop, ArrayRef<linalg::GenericOp> ops,
                     ArrayRef<Value> values, Tile &tile) {
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(loop.getTerminator());
    for (linalg::GenericOp generic : ops)
      if (!tile.made.contains(generic->getResult(0)))
        cloneOn(generic, tile);
    for (auto [value, argument] :
         llvm::zip_equal(values, loop.getRegionIterArgs())) {
      SmallVector<int64_t> axes = axesOf(value);
      insert(tile.made.lookup(value), argument, pick(tile.offsets, axes, 0),
             pick(tile.sizes, axes, 1));
    }
  }
  for (auto [value, result] : llvm::zip_equal(values, loop.getResults()))
    record(value, result);
}

/// Sums over all rows: those of each range in a loop, in `memory` where there
/// is any, then merged into `destinations`.
SmallVector<Value> LaneTiler::sumRanges(ArrayRef<linalg::GenericOp> sums,
                                        ValueRange memory,
                                        ValueRange destinations) {
  SmallVector<Value> values;
  for (linalg::GenericOp generic : sums)
    llvm::append_range(values, generic->getResults());
  size_t numAxes = reduced.size();
  SmallVector<Value> partials(memory);
  if (partials.empty()) {
    Sizes shape = ranges.counts;
    llvm::append_range(shape, extents(kept));
    for (Value value : values)
      partials.push_back(emptyOf(value, shape));
  }
  Sizes upper = extents(outer);
  llvm::append_range(upper, ranges.counts);
  auto loop = scf::ForallOp::create(rewriter, loc, repeat(0, above.size()),
                                    upper, repeat(1, above.size()), partials,
                                    /*mapping=*/std::nullopt);
  loop->setAttr(
      kStrategyAttrName,
      CpuStrategyAttr::get(
          rewriter.getContext(), kLeafRows,
          std::min(strategy.getColumns(), kMostTileElements / kLeafRows),
          strategy.getParallel(), strategy.getRange(),
          strategy.getSerialBytes(), /*stream_bytes=*/0, strategy.getPrefetch(),
          /*split=*/false));
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(loop.getTerminator());
    Tile tile = wholeTile();
    SmallVector<Value> at = loop.getInductionVars();
    for (int64_t axis : outer) {
      tile.offsets[axis] = at[axis];
      tile.sizes[axis] = rewriter.getIndexAttr(1);
    }
    ValueRange numbers = ValueRange(at).drop_front(outer.size());
    ranges.place(rewriter, loc, numbers, domain, tile.offsets, tile.sizes);
    for (linalg::GenericOp generic : sums)
      cloneOn(generic, tile);
    Sizes offsets = llvm::to_vector_of<OpFoldResult>(numbers),
          sizes = repeat(1, numAxes);
    llvm::append_range(offsets, pick(tile.offsets, kept, 0));
    llvm::append_range(sizes, pick(tile.sizes, kept, 1));
    for (auto [value, argument] :
         llvm::zip_equal(values, loop.getRegionIterArgs()))
      insert(tile.made.lookup(value), argument, offsets, sizes);
  }
  if (memory.empty())
    for (auto [value, partial] : llvm::zip_equal(values, loop.getResults()))
      partialsOf[value] = partial;
  return mergeRanges(rewriter, loc, loop.getResults(), numAxes, destinations,
                     laneOptions());
}

bool LaneTiler::matchRepeated(ArrayRef<linalg::GenericOp> sums,
                              SmallVectorImpl<std::pair<Value, Value>> &pairs,
                              SmallVectorImpl<Value> &earlier) {
  for (linalg::GenericOp sum : sums) {
    auto repeats = [&](linalg::GenericOp other) {
      return levels[other] + 1 == levels[sum] && isSum(other) &&
             other.getIndexingMaps() == sum.getIndexingMaps() &&
             other.getNumDpsInputs() == sum.getNumDpsInputs() &&
             OperationEquivalence::isRegionEquivalentTo(
                 &other.getRegion(), &sum.getRegion(),
                 OperationEquivalence::IgnoreLocations);
    };
    auto *found = llvm::find_if(program, repeats);
    if (found == program.end())
      return false;
    for (auto [one, other] :
         llvm::zip_equal(found->getDpsInputs(), sum.getDpsInputs())) {
      Value a = stripTensorCasts(one), b = stripTensorCasts(other);
      if (a == b)
        continue;
      if (!done.contains(a) || !done.contains(b) ||
          !isa<FloatType>(getElementTypeOrSelf(a)))
        return false;
      pairs.push_back({done.lookup(a), done.lookup(b)});
    }
    llvm::append_range(earlier, found->getResults());
  }
  return !pairs.empty();
}

/// Whether any of the pairs of tensors over the kept axes differs.
Value LaneTiler::differ(ArrayRef<std::pair<Value, Value>> pairs) {
  Type i32 = rewriter.getI32Type();
  Value zero =
      arith::ConstantOp::create(rewriter, loc, rewriter.getI32IntegerAttr(0));
  Value flag = tensor::EmptyOp::create(rewriter, loc, ArrayRef<int64_t>(), i32);
  auto loop = scf::ForallOp::create(rewriter, loc, repeat(0, 1), repeat(1, 1),
                                    repeat(1, 1), flag,
                                    /*mapping=*/std::nullopt);
  loop->setAttr(kStrategyAttrName,
                CpuStrategyAttr::get(rewriter.getContext(), /*rows=*/1,
                                     strategy.getColumns(), /*parallel=*/false,
                                     /*range=*/0, /*serial_bytes=*/0,
                                     /*stream_bytes=*/0, /*prefetch=*/0,
                                     /*split=*/false));
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(loop.getTerminator());
    SmallVector<Value> inputs;
    for (auto [a, b] : pairs)
      inputs.append({a, b});
    Value start =
        tensor::EmptyOp::create(rewriter, loc, ArrayRef<int64_t>(), i32);
    start = linalg::FillOp::create(rewriter, loc, zero, start).getResult(0);
    size_t rank = kept.size();
    SmallVector<AffineMap> maps(inputs.size(),
                                rewriter.getMultiDimIdentityMap(rank));
    maps.push_back(AffineMap::get(rank, 0, rewriter.getContext()));
    auto any = linalg::GenericOp::create(
        rewriter, loc, start.getType(), inputs, start, maps,
        SmallVector<utils::IteratorType>(rank, utils::IteratorType::reduction),
        [&](OpBuilder &b, Location bodyLoc, ValueRange in) {
          Value term;
          for (size_t i = 0; i + 1 < in.size(); i += 2) {
            // A NaN differs from itself: then sums are computed again.
            Value differs = arith::CmpFOp::create(
                b, bodyLoc, arith::CmpFPredicate::UNE, in[i], in[i + 1]);
            term = term ? arith::OrIOp::create(b, bodyLoc, term, differs)
                              .getResult()
                        : differs;
          }
          Value wide = arith::ExtUIOp::create(b, bodyLoc, i32, term);
          linalg::YieldOp::create(
              b, bodyLoc,
              arith::OrIOp::create(b, bodyLoc, in.back(), wide).getResult());
        });
    insert(any.getResult(0), loop.getRegionIterArgs().front(), {}, {});
  }
  Value any =
      tensor::ExtractOp::create(rewriter, loc, loop.getResult(0), ValueRange());
  return arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ne, any,
                               zero);
}

/// Sums over all rows, or takes earlier ones that they repeat.
void LaneTiler::sumRows(ArrayRef<linalg::GenericOp> sums) {
  SmallVector<std::pair<Value, Value>> pairs;
  SmallVector<Value> earlier, totals;
  if (!matchRepeated(sums, pairs, earlier)) {
    SmallVector<Value> destinations;
    for (linalg::GenericOp generic : sums)
      for (Value result : generic->getResults())
        destinations.push_back(emptyOf(result, extents(kept)));
    totals = sumRanges(sums, /*memory=*/{}, destinations);
  } else {
    SmallVector<Value> memory;
    for (Value value : earlier) {
      totals.push_back(done.lookup(value));
      memory.push_back(partialsOf.lookup(value));
    }
    Value any = differ(pairs);
    auto again = scf::IfOp::create(rewriter, loc, TypeRange(ValueRange(totals)),
                                   any, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(again.elseBlock());
    scf::YieldOp::create(rewriter, loc, totals);
    rewriter.setInsertionPointToStart(again.thenBlock());
    scf::YieldOp::create(rewriter, loc, sumRanges(sums, memory, totals));
    totals = llvm::to_vector_of<Value>(again.getResults());
  }
  const Value *next = totals.begin();
  for (linalg::GenericOp generic : sums)
    for (Value result : generic->getResults())
      record(result, *next++);
}

/// Computes all but what has all axes, level by level.
void LaneTiler::sumInRanges() {
  ranges = RowRanges::cut(rewriter, loc, reduced, domain,
                          {strategy.getRange(),
                           std::min(kFewestLaneRows, strategy.getRange()),
                           kLeafRows, kLaneChain});
  int last = 0;
  for (linalg::GenericOp generic : program)
    last = std::max(last, levels[generic]);
  for (int level = 0; level <= last; ++level) {
    Ops keptOps, groupOps, sums;
    for (linalg::GenericOp generic : program)
      if (levels[generic] == level && !isFull(generic))
        (isSum(generic)        ? sums
         : isOfGroups(generic) ? groupOps
                               : keptOps)
            .push_back(generic);
    for (const Ops &group : groupByTensors(keptOps, kept.size()))
      keepLanes(group);
    for (const Ops &group : groupByTensors(groupOps, groups.size()))
      keepGroups(group);
    for (const Ops &group : groupByTensors(sums, all.size()))
      sumRows(group);
  }
}

/// The same, in tiles of lanes with all of their rows where these are few.
void LaneTiler::sumFewOrMany() {
  Ops ops;
  llvm::copy_if(program, std::back_inserter(ops),
                [&](linalg::GenericOp generic) { return !isFull(generic); });
  SmallVector<Value> values = valuesReadAfter(ops);
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(extents(kept), dynamic, shape);
  SmallVector<Type> types = llvm::map_to_vector(values, [&](Value v) -> Type {
    return RankedTensorType::get(shape, getElementTypeOrSelf(v.getType()));
  });
  Value rows = arith::ConstantIndexOp::create(rewriter, loc, 1);
  for (OpFoldResult extent : extents(reduced))
    rows = rewriter.createOrFold<arith::MulIOp>(
        loc, rows, getValueOrCreateConstantIndexOp(rewriter, loc, extent));
  Value isFew = arith::CmpIOp::create(
      rewriter, loc, arith::CmpIPredicate::ult, rows,
      arith::ConstantIndexOp::create(rewriter, loc, kFewestRangedRows));
  auto either = scf::IfOp::create(rewriter, loc, types, isFew,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(rewriter);
  for (Block *block : {either.thenBlock(), either.elseBlock()}) {
    rewriter.setInsertionPointToStart(block);
    if (block == either.elseBlock())
      sumInRanges();
    else
      for (const Ops &group : groupByTensors(ops, kept.size()))
        keepLanes(group);
    scf::YieldOp::create(
        rewriter, loc,
        llvm::map_to_vector(values, [&](Value v) { return done.lookup(v); }));
    done.clear();
  }
  for (auto [value, result] : llvm::zip_equal(values, either.getResults()))
    done[value] = result;
}

/// The results that have all axes, some rows at a time, the last ones first.
scf::ForallOp LaneTiler::apply() {
  SmallVector<Value> values, destinations;
  for (Value result : results) {
    result = stripTensorCasts(result);
    linalg::GenericOp producer = producerOf(result);
    if (!producer || !isFull(producer) || llvm::is_contained(values, result))
      continue;
    values.push_back(result);
    destinations.push_back(emptyOf(result, extents(all)));
  }
  std::optional<int64_t> extent =
      getConstantIntValue(domain[reduced.back()].size);
  int64_t rows = std::max<int64_t>(strategy.getRows(), 1);
  while (rows > 1 && (!extent || *extent % rows != 0))
    --rows;
  Sizes steps = repeat(1, above.size());
  steps.back() = rewriter.getIndexAttr(rows);
  auto loop = scf::ForallOp::create(rewriter, loc, repeat(0, above.size()),
                                    extents(above), steps, destinations,
                                    /*mapping=*/std::nullopt);
  loop->setAttr(
      kStrategyAttrName,
      CpuStrategyAttr::get(rewriter.getContext(), rows, strategy.getColumns(),
                           strategy.getParallel(), /*range=*/0,
                           strategy.getSerialBytes(), strategy.getStreamBytes(),
                           strategy.getPrefetch(), /*split=*/false));
  loop->setAttr(kMirroredAttrName, rewriter.getUnitAttr());
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(loop.getTerminator());
  Tile tile = wholeTile();
  AffineExpr d0 = rewriter.getAffineDimExpr(0),
             s0 = rewriter.getAffineSymbolExpr(0);
  for (auto [axis, at, step] :
       llvm::zip_equal(above, loop.getInductionVars(), steps)) {
    tile.offsets[axis] = affine::makeComposedFoldedAffineApply(
        rewriter, loc,
        AffineMap::get(1, 1, s0 - *getConstantIntValue(step) - d0),
        {OpFoldResult(at), domain[axis].size});
    tile.sizes[axis] = step;
  }
  for (auto [value, argument] :
       llvm::zip_equal(values, loop.getRegionIterArgs())) {
    if (!tile.made.contains(value))
      cloneOn(producerOf(value), tile);
    insert(tile.made.lookup(value), argument, pick(tile.offsets, all, 0),
           pick(tile.sizes, all, 1));
  }
  for (auto [value, result] : llvm::zip_equal(values, loop.getResults()))
    done[value] = result;
  return loop;
}

/// Adds the axes of groups to those of x.
void LaneTiler::addGroups() {
  OpFoldResult zero = rewriter.getIndexAttr(0), one = rewriter.getIndexAttr(1);
  // Where ops are tiled, the grouped axis counts groups.
  domain.back().size =
      tensor::getMixedSize(rewriter, loc, op.getInput(), op.getRank() - 1);
  OpFoldResult within = affine::makeComposedFoldedAffineApply(
      rewriter, loc,
      rewriter.getAffineSymbolExpr(0).floorDiv(op.getNumGroups()),
      {domain.back().size});
  domain.push_back({zero, rewriter.getIndexAttr(op.getNumGroups()), one});
  domain.push_back({zero, within, one});
}

FailureOr<scf::ForallOp> LaneTiler::run() {
  if (strategy.getRange() < kLeafRows)
    return op->emitOpError("expected the range of '")
           << kStrategyAttrName << "' to be " << kLeafRows
           << " rows or more where rows are summed over, got "
           << strategy.getRange();
  rewriter.setInsertionPoint(op);
  if (failed(decompose()))
    return failure();
  computeLevels();
  domain = normIterationDomain(op, rewriter);
  if (!groups.empty())
    addGroups();
  if (!outer.empty() && groups.empty() &&
      !staticExtent(op.getInput().getType(), reduced))
    sumFewOrMany();
  else
    sumInRanges();
  scf::ForallOp loop = apply();

  SmallVector<Value> replacements;
  for (auto [result, value] : llvm::zip_equal(op->getResults(), results)) {
    Value computed = done.lookup(stripTensorCasts(value));
    if (!computed)
      computed = value;
    if (computed.getType() != result.getType())
      computed =
          tensor::CastOp::create(rewriter, loc, result.getType(), computed);
    replacements.push_back(computed);
  }
  rewriter.replaceOp(op, replacements);
  for (Operation *made : llvm::reverse(decomposed))
    if (isOpTriviallyDead(made))
      rewriter.eraseOp(made);
  for (Operation *neighbour : neighbours) {
    resolveExtents(rewriter, neighbour);
    if (isOpTriviallyDead(neighbour))
      rewriter.eraseOp(neighbour);
  }
  return loop;
}

FailureOr<scf::ForallOp> norm::tileLanes(RowOpInterface op,
                                         CpuStrategyAttr strategy,
                                         RewriterBase &rewriter) {
  return LaneTiler(op, strategy, rewriter).run();
}
