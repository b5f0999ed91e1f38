//===- TileNeighbours.cpp - Fusion of neighbours into a tile -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fusion of producers and consumers into the loop over the tiles of a norm.
// Upstream's fusion of consumers knows neither parts of an axis nor operands
// that are computed after the loop; this one needs to know nothing but indexing
// maps.
//
//===----------------------------------------------------------------------===//

#include "TileNeighbours.h"

#include "TileProgram.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// Ops and operands
//===----------------------------------------------------------------------===//

/// Whether each result of `map` is a dimension of its own, or the constant 0.
static bool isProjection(AffineMap map) {
  llvm::SmallDenseSet<AffineExpr> seen;
  return map.getNumSymbols() == 0 &&
         llvm::all_of(map.getResults(), [&](AffineExpr expr) {
           auto constant = dyn_cast<AffineConstantExpr>(expr);
           return constant
                      ? constant.getValue() == 0
                      : isa<AffineDimExpr>(expr) && seen.insert(expr).second;
         });
}

/// Whether each index that is constant selects the only element.
static bool hasUnitConstantDims(Type type, AffineMap map) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return !tensor ||
         llvm::all_of(llvm::enumerate(map.getResults()), [&](auto indexed) {
           return isa<AffineDimExpr>(indexed.value()) ||
                  tensor.getDimSize(indexed.index()) == 1;
         });
}

static bool hasSimpleOperands(linalg::LinalgOp op) {
  return op.hasPureTensorSemantics() && !op.hasIndexSemantics() &&
         llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
           AffineMap map = op.getMatchingIndexingMap(&operand);
           return isProjection(map) &&
                  hasUnitConstantDims(operand.get().getType(), map);
         });
}

/// Whether the scalar ops of the body are as many ops on vectors. An integer
/// power is not: its exponent stays a scalar.
static bool hasVectorBody(linalg::LinalgOp op) {
  auto isElement = [](Type type) { return type.isIntOrIndexOrFloat(); };
  return llvm::all_of(*op.getBlock(), [&](Operation &bodyOp) {
    return bodyOp.hasTrait<OpTrait::IsTerminator>() ||
           ((bodyOp.hasTrait<OpTrait::ConstantLike>() ||
             OpTrait::hasElementwiseMappableTraits(&bodyOp)) &&
            !isa<math::FPowIOp>(bodyOp) &&
            llvm::all_of(bodyOp.getOperandTypes(), isElement) &&
            llvm::all_of(bodyOp.getResultTypes(), isElement));
  });
}

bool norm::isElementwiseNeighbour(Operation *op) {
  auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
  if (!linalgOp || isa<linalg::FillOp>(op) || linalgOp.getNumLoops() == 0 ||
      linalgOp.getNumParallelLoops() != linalgOp.getNumLoops() ||
      !hasSimpleOperands(linalgOp) || !hasVectorBody(linalgOp))
    return false;
  return llvm::none_of(linalgOp.getDpsInitsMutable(), [&](OpOperand &init) {
    return linalgOp.payloadUsesValueFromOperand(&init);
  });
}

bool norm::hasVectorOperands(linalg::LinalgOp op) {
  return llvm::all_of(op.getDpsInits(), hasVectorLayout) &&
         llvm::all_of(op.getDpsInputs(), [](Value input) {
           return hasVectorLayout(input) ||
                  getElementTypeOrSelf(input.getType()).isInteger(1);
         });
}

void norm::resolveExtents(RewriterBase &rewriter, Operation *op) {
  SmallVector<tensor::DimOp> dims;
  for (Operation *user : op->getUsers())
    if (auto dim = dyn_cast<tensor::DimOp>(user))
      if (dim.getConstantIndex())
        dims.push_back(dim);
  for (tensor::DimOp dim : dims) {
    rewriter.setInsertionPoint(dim);
    ReifiedRankedShapedTypeDims shapes;
    if (failed(reifyResultShapes(rewriter, op, shapes)))
      return;
    unsigned result = cast<OpResult>(dim.getSource()).getResultNumber();
    rewriter.replaceOp(dim, getValueOrCreateConstantIndexOp(
                                rewriter, dim.getLoc(),
                                shapes[result][*dim.getConstantIndex()]));
  }
}

/// Whether a tile of `op` can be computed where it is read: elementwise ops,
/// and norms that norm-tile left for the loop (see joinsAnotherNorm).
static bool isProducer(Operation *op) {
  if (isa<NormOpInterface>(op))
    return op->hasAttr(kStrategyAttrName);
  return isElementwiseNeighbour(op) &&
         hasVectorOperands(cast<linalg::LinalgOp>(op));
}

/// Fuses the producers whose only use is a slice in the loop.
static void fuseProducers(RewriterBase &rewriter, scf::ForallOp loop) {
  SmallVector<tensor::ExtractSliceOp> slices(
      loop.getBody()->getOps<tensor::ExtractSliceOp>());
  while (!slices.empty()) {
    tensor::ExtractSliceOp slice = slices.pop_back_val();
    Operation *producer = slice.getSource().getDefiningOp();
    if (!producer || producer->getBlock() != loop->getBlock() ||
        !isProducer(producer))
      continue;
    resolveExtents(rewriter, producer);
    if (!producer->hasOneUse())
      continue;
    SmallVector<LoopLikeOpInterface> loops{loop};
    std::optional<scf::SCFFuseProducerOfSliceResult> fused =
        scf::tileAndFuseProducerOfSlice(rewriter, slice, loops);
    if (!fused)
      continue;
    for (Operation *tiled : fused->tiledOps)
      tiled->removeDiscardableAttr(kStrategyAttrName);
    for (Operation *generated : fused->generatedSlices)
      if (auto next = dyn_cast<tensor::ExtractSliceOp>(generated))
        slices.push_back(next);
    rewriter.eraseOp(slice);
    if (producer->use_empty())
      rewriter.eraseOp(producer);
  }
}

//===----------------------------------------------------------------------===//
// Consumers
//===----------------------------------------------------------------------===//

namespace {
/// The range of a dimension or loop that a tile has.
struct TileRange {
  OpFoldResult offset, size;
  /// The axis of x that it runs over; -1 if it is none of them.
  int64_t axis = -1;
  /// Whether the tile has all of it.
  bool isWhole = true;
};

/// What a tile writes to one result of the loop: null if a consumer cannot
/// read it.
struct TileOutput {
  Value tile;
  SmallVector<TileRange> dims;
};

/// Moves consumers into one loop, one at a time.
class ConsumerFuser {
public:
  ConsumerFuser(RewriterBase &rewriter, scf::ForallOp loop,
                const TiledNorm &norm)
      : rewriter(rewriter), loop(loop), norm(norm) {
    for (OpResult result : loop->getResults())
      outputs.push_back(describeNormResult(result));
  }

  scf::ForallOp run();

private:
  TileOutput describeNormResult(OpResult result);
  SmallVector<Operation *> findCandidates();
  /// What the tile holds of `value`: a result of the loop, or a part of one
  /// along the reduced innermost axis.
  std::optional<TileOutput> lookup(Value value, bool build);
  bool fuse(linalg::LinalgOp consumer);
  bool fuseParts(tensor::InsertSliceOp first);
  std::optional<SmallVector<TileRange>> bindLoops(linalg::LinalgOp consumer);
  bool isReductionOfTile(linalg::LinalgOp consumer,
                         ArrayRef<TileRange> loops) const;
  bool keepsRows(linalg::LinalgOp consumer, ArrayRef<TileRange> loops) const;
  bool moveBeforeLoop(ArrayRef<Value> values);
  bool dependsOnLoop(Value value) {
    return value.getDefiningOp() == loop.getOperation();
  }
  /// Gives the loop the results that start from `destinations`, without a tile
  /// that writes them, and returns the arguments that stand for them.
  SmallVector<Value> addResults(ArrayRef<Value> destinations);
  void insertTile(Value tile, Value argument, ArrayRef<OpFoldResult> offsets,
                  ArrayRef<OpFoldResult> sizes, ArrayRef<OpFoldResult> strides);
  Value extractTile(Value tensor, AffineMap map, ArrayRef<TileRange> loops,
                    bool always);
  void resolveLoopExtents();

  RewriterBase &rewriter;
  scf::ForallOp loop;
  const TiledNorm &norm;
  SmallVector<TileOutput> outputs;
};
} // namespace

/// Of a norm's results only those of x's shape: others may be written in pieces
/// that no consumer can follow.
TileOutput ConsumerFuser::describeNormResult(OpResult result) {
  TileOutput output;
  BlockArgument argument =
      loop.getTiedBlockArgument(loop.getTiedOpOperand(result));
  tensor::ParallelInsertSliceOp insertion;
  for (Operation *user : argument.getUsers())
    if (auto op = dyn_cast<tensor::ParallelInsertSliceOp>(user)) {
      if (insertion || op.getDest() != argument)
        return {};
      insertion = op;
    }
  if (!insertion || insertion.getSourceType().getRank() != norm.rank ||
      cast<RankedTensorType>(result.getType()).getRank() != norm.rank)
    return {};
  output.tile = insertion.getSource();
  for (auto [axis, offset, size] :
       llvm::enumerate(insertion.getMixedOffsets(), insertion.getMixedSizes()))
    output.dims.push_back({offset, size, int64_t(axis),
                           !llvm::is_contained(norm.loopAxes, int64_t(axis))});
  return output;
}

/// The ops of the loop's block that read its results, or parts of them, in
/// order.
SmallVector<Operation *> ConsumerFuser::findCandidates() {
  SetVector<Operation *> found;
  auto add = [&](Operation *user) {
    if (user->getBlock() == loop->getBlock())
      found.insert(user);
  };
  for (auto [result, output] : llvm::zip_equal(loop->getResults(), outputs)) {
    if (!output.tile)
      continue;
    for (Operation *user : result.getUsers()) {
      if (isa<tensor::ExtractSliceOp>(user))
        llvm::for_each(user->getUsers(), add);
      else
        add(user);
    }
  }
  SmallVector<Operation *> ordered = found.takeVector();
  llvm::sort(ordered,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ordered;
}

std::optional<TileOutput> ConsumerFuser::lookup(Value value, bool build) {
  tensor::ExtractSliceOp slice;
  if (!dependsOnLoop(value)) {
    slice = value.getDefiningOp<tensor::ExtractSliceOp>();
    if (!slice || !dependsOnLoop(slice.getSource()))
      return std::nullopt;
    value = slice.getSource();
  }
  TileOutput output = outputs[cast<OpResult>(value).getResultNumber()];
  if (!output.tile)
    return std::nullopt;
  if (!slice)
    return output;
  std::optional<PartOfRow> part = matchPart(slice);
  // A vector holds columns: those of the innermost axis, if it is reduced.
  if (!part || output.dims.back().axis != norm.rank - 1 ||
      !llvm::is_contained(norm.reducedAxes, norm.rank - 1))
    return std::nullopt;
  output.dims.back() = {rewriter.getIndexAttr(0),
                        rewriter.getIndexAttr(part->size)};
  if (!build)
    return output;
  SmallVector<OpFoldResult> offsets(output.dims.size(),
                                    rewriter.getIndexAttr(0)),
      strides(output.dims.size(), rewriter.getIndexAttr(1));
  offsets.back() = rewriter.getIndexAttr(part->offset);
  strides.back() = rewriter.getIndexAttr(part->stride);
  auto sizes = llvm::map_to_vector(output.dims,
                                   [](const TileRange &r) { return r.size; });
  output.tile = tensor::ExtractSliceOp::create(
      rewriter, loop.getLoc(), output.tile, offsets, sizes, strides);
  return output;
}

/// The range of each loop of `consumer`, as the tile's operands give them;
/// nullopt if some loop has none, or two.
std::optional<SmallVector<TileRange>>
ConsumerFuser::bindLoops(linalg::LinalgOp consumer) {
  SmallVector<TileRange> loops(consumer.getNumLoops());
  for (OpOperand *operand : consumer.getDpsInputOperands()) {
    std::optional<TileOutput> output = lookup(operand->get(), /*build=*/false);
    if (!output)
      continue;
    AffineMap map = consumer.getMatchingIndexingMap(operand);
    for (auto [expr, range] : llvm::zip_equal(map.getResults(), output->dims)) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (!dim) {
        if (!range.isWhole)
          return std::nullopt;
        continue;
      }
      TileRange &bound = loops[dim.getPosition()];
      if (bound.size &&
          (bound.offset != range.offset || bound.isWhole != range.isWhole ||
           bound.axis != range.axis))
        return std::nullopt;
      if (!bound.size || getConstantIntValue(range.size))
        bound = range;
    }
  }
  if (llvm::any_of(loops, [](const TileRange &r) { return !r.size; }))
    return std::nullopt;
  return loops;
}

/// Whether `consumer` combines, from a filled start, over the axes that the
/// tile reduces.
bool ConsumerFuser::isReductionOfTile(linalg::LinalgOp consumer,
                                      ArrayRef<TileRange> loops) const {
  if (norm.reducedAxes.empty() || !isa<linalg::GenericOp>(consumer) ||
      !hasSimpleOperands(consumer) || !hasVectorBody(consumer))
    return false;
  SmallVector<int64_t> axes;
  for (auto [type, range] :
       llvm::zip_equal(consumer.getIteratorTypesArray(), loops))
    if (type == utils::IteratorType::reduction)
      axes.push_back(range.axis);
    else if (llvm::is_contained(norm.reducedAxes, range.axis))
      return false;
  llvm::sort(axes);
  if (axes != norm.reducedAxes)
    return false;
  return llvm::all_of(llvm::enumerate(consumer.getDpsInits()), [&](auto init) {
    SmallVector<Operation *> combiners;
    Value term =
        matchReduction(consumer.getRegionOutputArgs(), init.index(), combiners);
    return init.value().template getDefiningOp<linalg::FillOp>() && term &&
           combiners.size() == 1 &&
           linalg::getCombinerOpKind(combiners.front()) &&
           arith::getNeutralElement(combiners.front());
  });
}

/// Whether what lies side by side in x does so in the results of `consumer`.
bool ConsumerFuser::keepsRows(linalg::LinalgOp consumer,
                              ArrayRef<TileRange> loops) const {
  // A part of the innermost axis is none of x's axes.
  auto isInnermost = [&](AffineExpr expr) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    return dim && (loops[dim.getPosition()].axis == norm.rank - 1 ||
                   loops[dim.getPosition()].axis == -1);
  };
  return llvm::all_of(consumer->getResults(), [&](OpResult result) {
    AffineMap map = consumer.getIndexingMapMatchingResult(result);
    return llvm::none_of(map.getResults(), isInnermost) ||
           isInnermost(map.getResults().back());
  });
}

/// Moves what computes `values` before the loop; false if it cannot be there.
bool ConsumerFuser::moveBeforeLoop(ArrayRef<Value> values) {
  SmallVector<Value> late;
  for (Value value : values) {
    Operation *def = value.getDefiningOp();
    if (def && def->getBlock() == loop->getBlock() &&
        !def->isBeforeInBlock(loop))
      late.push_back(value);
  }
  return late.empty() || succeeded(moveValueDefinitions(rewriter, late, loop));
}

/// Lets what asks for extents of the loop's results ask for those of the
/// tensors that the loop starts from.
void ConsumerFuser::resolveLoopExtents() {
  for (OpResult result : loop->getResults())
    for (Operation *user : llvm::make_early_inc_range(result.getUsers()))
      if (auto dim = dyn_cast<tensor::DimOp>(user);
          dim && dim.getConstantIndex()) {
        rewriter.setInsertionPoint(loop);
        rewriter.replaceOp(
            dim, getValueOrCreateConstantIndexOp(
                     rewriter, dim.getLoc(),
                     tensor::getMixedSize(rewriter, dim.getLoc(),
                                          loop.getTiedOpOperand(result)->get(),
                                          *dim.getConstantIndex())));
      }
}

SmallVector<Value> ConsumerFuser::addResults(ArrayRef<Value> destinations) {
  rewriter.setInsertionPoint(loop);
  SmallVector<Value> inits(loop.getOutputs());
  llvm::append_range(inits, destinations);
  auto wider = scf::ForallOp::create(
      rewriter, loop.getLoc(), loop.getMixedLowerBound(),
      loop.getMixedUpperBound(), loop.getMixedStep(), inits, loop.getMapping());
  wider->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  rewriter.eraseOp(wider.getTerminator());
  // The ranges of tiles may be the loop's indices.
  DenseMap<Value, Value> moved;
  for (auto [from, to] : llvm::zip(loop.getBody()->getArguments(),
                                   wider.getBody()->getArguments()))
    moved[from] = to;
  auto update = [&](OpFoldResult &range) {
    if (auto value = dyn_cast<Value>(range))
      if (Value to = moved.lookup(value))
        range = to;
  };
  for (TileOutput &output : outputs)
    for (TileRange &range : output.dims) {
      update(range.offset);
      update(range.size);
    }
  rewriter.mergeBlocks(
      loop.getBody(), wider.getBody(),
      wider.getBody()->getArguments().drop_back(destinations.size()));
  rewriter.replaceAllUsesWith(
      loop->getResults(), wider->getResults().drop_back(destinations.size()));
  rewriter.eraseOp(loop);
  loop = wider;
  auto arguments = loop.getRegionIterArgs().take_back(destinations.size());
  return SmallVector<Value>(arguments.begin(), arguments.end());
}

void ConsumerFuser::insertTile(Value tile, Value argument,
                               ArrayRef<OpFoldResult> offsets,
                               ArrayRef<OpFoldResult> sizes,
                               ArrayRef<OpFoldResult> strides) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToEnd(loop.getTerminator().getBody());
  tensor::ParallelInsertSliceOp::create(rewriter, loop.getLoc(), tile, argument,
                                        offsets, sizes, strides);
}

/// What the loops' ranges need of a tensor from outside the loop.
Value ConsumerFuser::extractTile(Value tensor, AffineMap map,
                                 ArrayRef<TileRange> loops, bool always) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type)
    return tensor;
  SmallVector<OpFoldResult> offsets, sizes,
      strides(type.getRank(), rewriter.getIndexAttr(1));
  bool isCut = always || type.getRank() == int64_t(loops.size());
  for (AffineExpr expr : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    offsets.push_back(dim ? loops[dim.getPosition()].offset
                          : rewriter.getIndexAttr(0));
    sizes.push_back(dim ? loops[dim.getPosition()].size
                        : rewriter.getIndexAttr(1));
    isCut |= dim && !loops[dim.getPosition()].isWhole;
  }
  if (!isCut)
    return tensor;
  return tensor::ExtractSliceOp::create(rewriter, loop.getLoc(), tensor,
                                        offsets, sizes, strides);
}

bool ConsumerFuser::fuse(linalg::LinalgOp consumer) {
  std::optional<SmallVector<TileRange>> loops = bindLoops(consumer);
  bool isElementwise = isElementwiseNeighbour(consumer);
  if (!loops || !hasVectorOperands(consumer) ||
      (!isElementwise && !isReductionOfTile(consumer, *loops)))
    return false;
  if (isElementwise && !keepsRows(consumer, *loops))
    return false;

  SmallVector<Value> given, destinations;
  for (Value input : consumer.getDpsInputs())
    if (!lookup(input, /*build=*/false))
      given.push_back(input);
  for (Value init : consumer.getDpsInits()) {
    if (auto fill = init.getDefiningOp<linalg::FillOp>();
        fill && !isElementwise) {
      given.push_back(fill.getInputs()[0]);
      init = fill.getOutputs()[0];
    }
    if (!init.getDefiningOp<tensor::EmptyOp>())
      return false;
    destinations.push_back(init);
  }
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(consumer->getRegions(), captured);
  llvm::append_range(given, captured);
  SmallVector<Value> moved(given);
  llvm::append_range(moved, destinations);
  if (!moveBeforeLoop(moved))
    return false;

  SmallVector<Value> arguments = addResults(destinations);
  loops = bindLoops(consumer);
  rewriter.setInsertionPoint(loop.getTerminator());
  SmallVector<Value> operands, tiles;
  for (OpOperand *input : consumer.getDpsInputOperands()) {
    std::optional<TileOutput> output = lookup(input->get(), /*build=*/true);
    operands.push_back(output
                           ? output->tile
                           : extractTile(input->get(),
                                         consumer.getMatchingIndexingMap(input),
                                         *loops, /*always=*/false));
  }
  for (auto [init, argument] :
       llvm::zip_equal(consumer.getDpsInitsMutable(), arguments)) {
    Value tile = extractTile(argument, consumer.getMatchingIndexingMap(&init),
                             *loops, /*always=*/true);
    if (!isElementwise)
      tile =
          linalg::FillOp::create(
              rewriter, loop.getLoc(),
              init.get().getDefiningOp<linalg::FillOp>().getInputs()[0], tile)
              .getResult(0);
    operands.push_back(tile);
    tiles.push_back(tile);
  }
  Operation *tiled =
      clone(rewriter, consumer.getOperation(),
            llvm::map_to_vector(tiles, [](Value v) { return v.getType(); }),
            operands);
  for (auto [result, tile, argument] : llvm::zip_equal(
           consumer->getResults(), tiled->getResults(), arguments)) {
    TileOutput output{tile, {}};
    SmallVector<OpFoldResult> offsets, sizes;
    for (AffineExpr expr :
         consumer.getIndexingMapMatchingResult(result).getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      output.dims.push_back(
          dim ? (*loops)[dim.getPosition()]
              : TileRange{rewriter.getIndexAttr(0), rewriter.getIndexAttr(1)});
      offsets.push_back(output.dims.back().offset);
      sizes.push_back(output.dims.back().size);
    }
    insertTile(
        tile, argument, offsets, sizes,
        SmallVector<OpFoldResult>(sizes.size(), rewriter.getIndexAttr(1)));
    outputs.push_back(output);
  }
  rewriter.replaceOp(consumer, loop->getResults().take_back(arguments.size()));
  return true;
}

/// Lets tiles write the parts of a tensor that is put together from parts of
/// the loop's results: a chain of tensor.insert_slice that begins with `first`.
bool ConsumerFuser::fuseParts(tensor::InsertSliceOp first) {
  if (!first.getDest().getDefiningOp<tensor::EmptyOp>())
    return false;
  SmallVector<tensor::InsertSliceOp> chain{first};
  while (chain.back()->hasOneUse())
    if (auto next =
            dyn_cast<tensor::InsertSliceOp>(*chain.back()->getUsers().begin());
        next && next.getDest() == chain.back().getResult())
      chain.push_back(next);
    else
      break;
  ArrayRef<TileRange> dims;
  SmallVector<TileOutput> tiles;
  SmallVector<PartOfRow> parts;
  for (tensor::InsertSliceOp insert : chain) {
    std::optional<PartOfRow> part = matchPart(insert);
    std::optional<TileOutput> tile = lookup(insert.getSource(), false);
    if (!part || !tile)
      return false;
    parts.push_back(*part);
    tiles.push_back(*tile);
    dims = tiles.front().dims;
    for (auto [a, b] :
         llvm::zip(ArrayRef(tile->dims).drop_back(), dims.drop_back()))
      if (a.offset != b.offset || a.isWhole != b.isWhole || a.axis != b.axis)
        return false;
    if (!tile->dims.back().isWhole)
      return false;
  }
  if (!moveBeforeLoop({first.getDest()}))
    return false;

  Value argument = addResults({first.getDest()}).front();
  rewriter.setInsertionPoint(loop.getTerminator());
  for (auto [insert, part] : llvm::zip_equal(chain, parts)) {
    TileOutput tile = *lookup(insert.getSource(), true);
    SmallVector<OpFoldResult> offsets, sizes,
        strides(tile.dims.size(), rewriter.getIndexAttr(1));
    for (const TileRange &dim : tile.dims) {
      offsets.push_back(dim.offset);
      sizes.push_back(dim.size);
    }
    offsets.back() = rewriter.getIndexAttr(part.offset);
    strides.back() = rewriter.getIndexAttr(part.stride);
    insertTile(tile.tile, argument, offsets, sizes, strides);
  }
  outputs.push_back({});
  rewriter.replaceAllUsesWith(chain.back().getResult(),
                              loop->getResults().back());
  for (tensor::InsertSliceOp insert : llvm::reverse(chain))
    rewriter.eraseOp(insert);
  return true;
}

scf::ForallOp ConsumerFuser::run() {
  bool changed = true;
  while (changed) {
    resolveLoopExtents();
    changed = llvm::any_of(findCandidates(), [&](Operation *candidate) {
      if (auto consumer = dyn_cast<linalg::LinalgOp>(candidate))
        return fuse(consumer);
      auto insert = dyn_cast<tensor::InsertSliceOp>(candidate);
      return insert && fuseParts(insert);
    });
  }
  return loop;
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

/// A norm whose result only a fused consumer reads need not be written: drops
/// results without uses, and what is dead in the body after fusion.
static scf::ForallOp dropUnusedResults(RewriterBase &rewriter,
                                       scf::ForallOp loop) {
  SmallVector<Value> destinations;
  SmallVector<OpResult> used;
  // Parts of results that fusion read in the tile.
  for (OpResult result : loop->getResults())
    for (Operation *user : llvm::make_early_inc_range(result.getUsers()))
      if (isOpTriviallyDead(user))
        rewriter.eraseOp(user);
  for (OpResult result : loop->getResults())
    if (!result.use_empty()) {
      used.push_back(result);
      destinations.push_back(loop.getTiedOpOperand(result)->get());
    }
  if (used.size() != loop->getNumResults()) {
    rewriter.setInsertionPoint(loop);
    auto slimmer = scf::ForallOp::create(
        rewriter, loop.getLoc(), loop.getMixedLowerBound(),
        loop.getMixedUpperBound(), loop.getMixedStep(), destinations,
        loop.getMapping());
    slimmer->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    SmallVector<Value> arguments(slimmer.getInductionVars());
    unsigned next = 0;
    for (OpResult result : loop->getResults()) {
      BlockArgument argument =
          loop.getTiedBlockArgument(loop.getTiedOpOperand(result));
      if (!result.use_empty()) {
        arguments.push_back(slimmer.getRegionIterArgs()[next++]);
        continue;
      }
      arguments.push_back(loop.getTiedOpOperand(result)->get());
      for (Operation *user : llvm::make_early_inc_range(argument.getUsers()))
        if (isa<tensor::ParallelInsertSliceOp>(user))
          rewriter.eraseOp(user);
    }
    rewriter.eraseOp(slimmer.getTerminator());
    rewriter.mergeBlocks(loop.getBody(), slimmer.getBody(), arguments);
    for (auto [result, replacement] :
         llvm::zip_equal(used, slimmer->getResults()))
      rewriter.replaceAllUsesWith(result, replacement);
    rewriter.eraseOp(loop);
    loop = slimmer;
  }
  for (Operation &op : llvm::make_early_inc_range(
           llvm::reverse(loop.getBody()->getOperations())))
    if (isOpTriviallyDead(&op))
      rewriter.eraseOp(&op);
  return loop;
}

scf::ForallOp norm::fuseNeighbours(RewriterBase &rewriter, scf::ForallOp loop,
                                   const TiledNorm &norm) {
  fuseProducers(rewriter, loop);
  loop = ConsumerFuser(rewriter, loop, norm).run();
  fuseProducers(rewriter, loop);
  return dropUnusedResults(rewriter, loop);
}
