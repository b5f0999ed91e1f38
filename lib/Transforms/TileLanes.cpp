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

#include "LaneTiler.h"

#include "../IR/RowBuilder.h"
#include "LowerToLinalg.h"
#include "TileNeighbours.h"
#include "TileProgram.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/IntEqClasses.h"

using namespace mlir;
using namespace mlir::norm;

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

LaneTiler::Sizes LaneTiler::pick(ArrayRef<OpFoldResult> list,
                                 ArrayRef<int64_t> axes, int64_t otherwise) {
  return llvm::map_to_vector(axes, [&](int64_t axis) -> OpFoldResult {
    return axis < 0 ? rewriter.getIndexAttr(otherwise) : list[axis];
  });
}

LaneTiler::Tile LaneTiler::wholeTile() {
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
