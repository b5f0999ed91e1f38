//===- TileProgram.cpp - What the linalg ops of a tile compute -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileProgram.h"

#include "Norm/IR/NormDialect.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "llvm/ADT/IntEqClasses.h"

using namespace mlir;
using namespace mlir::norm;

Value norm::stripTensorCasts(Value tensor) {
  while (auto castOp = tensor.getDefiningOp<tensor::CastOp>())
    tensor = castOp.getSource();
  return tensor;
}

SmallVector<scf::ForallOp> norm::findTileLoops(Operation *root) {
  SmallVector<scf::ForallOp> loops;
  root->walk([&](scf::ForallOp loop) {
    if (loop->hasAttr(kStrategyAttrName))
      loops.push_back(loop);
  });
  return loops;
}

bool norm::hasVectorLayout(Value tensor) {
  Type element = getElementTypeOrSelf(tensor.getType());
  return !element.isIntOrFloat() || element.getIntOrFloatBitWidth() % 8 == 0;
}

std::optional<int64_t> TileAxis::getMostExtent() const {
  if (auto value = dyn_cast_if_present<Value>(extent))
    if (FailureOr<int64_t> bound =
            ValueBoundsConstraintSet::computeConstantBound(
                presburger::BoundType::UB, value, /*stopCondition=*/nullptr,
                /*closedUB=*/true);
        succeeded(bound))
      return *bound;
  return getStaticExtent();
}

FailureOr<TileProgram> TileProgram::analyze(scf::ForallOp loop, int64_t rows,
                                            int64_t columns, bool isRange) {
  TileProgram program;
  program.isRange = isRange;
  if (failed(program.collect(loop)) || failed(program.unifyAxes()) ||
      failed(program.chooseVectorAxes(rows, columns)) ||
      failed(program.checkParts()))
    return failure();
  for (linalg::GenericOp op : program.ops)
    if (failed(program.checkOp(op)))
      return failure();
  program.computeLevels();
  return program;
}

linalg::GenericOp TileProgram::getProducer(Value tensor) const {
  auto op = stripTensorCasts(tensor).getDefiningOp<linalg::GenericOp>();
  return op && loopAxes.contains(op) ? op : nullptr;
}

std::optional<TilePart> TileProgram::getPart(Value tensor) const {
  auto slice = stripTensorCasts(tensor).getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice || slice.getType().getRank() == 0 ||
      !getProducer(slice.getSource()))
    return std::nullopt;
  std::optional<int64_t> offset =
      getConstantIntValue(slice.getMixedOffsets().back());
  std::optional<int64_t> stride =
      getConstantIntValue(slice.getMixedStrides().back());
  if (!offset || !stride)
    return std::nullopt;
  return TilePart{slice.getSource(), *offset, *stride};
}

Value TileProgram::getFillValue(Value tensor) const {
  auto fill = stripTensorCasts(tensor).getDefiningOp<linalg::FillOp>();
  return fill ? fill.getInputs()[0] : Value();
}

SmallVector<int> TileProgram::getAxesOf(Value tensor) const {
  auto it = axesOf.find(stripTensorCasts(tensor));
  return it == axesOf.end() ? SmallVector<int>() : it->second;
}

SmallVector<int> TileProgram::getNeededAxes(Value tensor) const {
  linalg::GenericOp producer = getProducer(tensor);
  if (!producer)
    return getAxesOf(tensor);
  SmallVector<int> needed;
  for (auto [axis, type] :
       llvm::zip_equal(getLoopAxes(producer), producer.getIteratorTypesArray()))
    if (type == utils::IteratorType::parallel)
      needed.push_back(axis);
  return needed;
}

SmallVector<int> TileProgram::getWrittenAxes(Value tensor) const {
  SmallVector<int> needed = getNeededAxes(tensor);
  llvm::append_range(needed, getAxesOf(tensor));
  return llvm::filter_to_vector(
      sweptAxes, [&](int axis) { return llvm::is_contained(needed, axis); });
}

bool TileProgram::isFull(Value tensor) const {
  return llvm::any_of(getNeededAxes(tensor),
                      [&](int axis) { return axes[axis].isSwept; });
}

SmallVector<int> TileProgram::getReducedAxes(linalg::GenericOp op) const {
  SmallVector<int> list;
  for (auto [axis, type] :
       llvm::zip_equal(getLoopAxes(op), op.getIteratorTypesArray()))
    if (type == utils::IteratorType::reduction)
      list.push_back(axis);
  return llvm::filter_to_vector(
      sweptAxes, [&](int axis) { return llvm::is_contained(list, axis); });
}

//===----------------------------------------------------------------------===//
// Collecting ops
//===----------------------------------------------------------------------===//

/// Whether each index that is constant rather than a loop's selects the only
/// element.
static bool hasUnitConstantDims(linalg::GenericOp op, OpOperand &operand) {
  auto type = dyn_cast<RankedTensorType>(operand.get().getType());
  return !type ||
         llvm::all_of(
             llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()),
             [&](auto indexed) {
               return isa<AffineDimExpr>(indexed.value()) ||
                      type.getDimSize(indexed.index()) == 1;
             });
}

/// Whether each result of `map` is a dimension of its own or zero. Upstream's
/// projected permutations have no more results than dimensions.
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

/// Masks are read bit by bit; other elements must lie in memory as in vectors.
static bool isReadable(Value operand) {
  return hasVectorLayout(operand) ||
         getElementTypeOrSelf(operand.getType()).isInteger(1);
}

LogicalResult TileProgram::collectGeneric(linalg::GenericOp op) {
  auto fail = [&](const char *expected) {
    return op.emitError("cannot vectorize this op in a tile: expected ")
           << expected;
  };
  if (!op.hasPureTensorSemantics())
    return fail("tensors, got buffers");
  if (!llvm::all_of(op.getIndexingMapsArray(), isProjection))
    return fail("projected permutations as indexing maps");
  if (!llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
        return hasUnitConstantDims(op, operand);
      }))
    return fail("dimensions of static extent 1 where an indexing map is "
                "constant");
  if (!llvm::all_of(op.getDpsInputs(), isReadable) ||
      !llvm::all_of(op.getDpsInits(), hasVectorLayout))
    return fail("elements of whole bytes");
  ops.push_back(op);
  return success();
}

LogicalResult TileProgram::collect(scf::ForallOp loop) {
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      if (failed(collectGeneric(generic)))
        return failure();
      continue;
    }
    // Everything else only makes slices, destinations and scalars.
    bool isHarmless =
        isa<linalg::FillOp, tensor::ExtractSliceOp, tensor::EmptyOp,
            tensor::CastOp, tensor::DimOp>(op) ||
        (isMemoryEffectFree(&op) &&
         llvm::none_of(op.getResultTypes(), llvm::IsaPred<ShapedType>));
    if (!isHarmless)
      return op.emitError("cannot vectorize this op in a tile: expected "
                          "linalg.generic, a slice or a scalar op");
  }
  for (Operation &op : loop.getTerminator().getYieldingOps()) {
    outputs.push_back(cast<tensor::ParallelInsertSliceOp>(op));
    Value source = outputs.back().getSource();
    if (!hasVectorLayout(source) && !getFillValue(source))
      return op.emitError("cannot vectorize this op in a tile: expected "
                          "elements of whole bytes");
  }
  if (ops.empty())
    return loop.emitError("expected linalg ops in the tile, got none");
  return success();
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

/// Destinations carry no data, and one may serve ops that see it differently.
static bool isDestination(Value tensor) {
  return isa_and_nonnull<linalg::FillOp, tensor::EmptyOp>(
      stripTensorCasts(tensor).getDefiningOp());
}

/// Whether a slice is known to have all of its source's dimension `dim`.
static bool isWholeDim(tensor::ExtractSliceOp slice, int64_t dim) {
  OpFoldResult size = slice.getMixedSizes()[dim];
  int64_t extent = slice.getSourceType().getDimSize(dim);
  if (ShapedType::isStatic(extent))
    return getConstantIntValue(size) == extent;
  FailureOr<bool> isEqual =
      ValueBoundsConstraintSet::areEqual(size, {slice.getSource(), dim});
  return succeeded(isEqual) && *isEqual;
}

/// Every tensor dimension and every loop gets a number; an op's maps say which
/// of them are the same axis.
LogicalResult TileProgram::unifyAxes() {
  DenseMap<Value, int> firstDim;
  SmallVector<Value> tensors;
  DenseMap<Operation *, int> firstLoop;
  int count = 0;
  auto isProduced = [&](Value tensor) {
    Operation *def = stripTensorCasts(tensor).getDefiningOp();
    return def && firstLoop.contains(def);
  };
  auto numberTensor = [&](Value tensor) {
    tensor = stripTensorCasts(tensor);
    auto type = dyn_cast<RankedTensorType>(tensor.getType());
    if (!type || isDestination(tensor) ||
        !firstDim.try_emplace(tensor, count).second)
      return;
    tensors.push_back(tensor);
    count += type.getRank();
  };
  for (linalg::GenericOp op : ops) {
    firstLoop[op] = count;
    count += op.getNumLoops();
    llvm::for_each(op->getOperands(), numberTensor);
    llvm::for_each(op->getResults(), numberTensor);
  }
  for (tensor::ParallelInsertSliceOp output : outputs)
    numberTensor(output.getSource());
  // An op may read no more than a part of what another computes.
  auto slices = llvm::map_to_vector(tensors, [](Value tensor) {
    return tensor.getDefiningOp<tensor::ExtractSliceOp>();
  });
  llvm::erase_if(slices, [&](tensor::ExtractSliceOp slice) {
    return !slice || !isProduced(slice.getSource());
  });

  llvm::IntEqClasses classes(count);
  for (tensor::ExtractSliceOp slice : slices) {
    int source = firstDim.at(stripTensorCasts(slice.getSource()));
    for (int64_t dim = 0; dim < slice.getType().getRank(); ++dim)
      if (isWholeDim(slice, dim))
        classes.join(firstDim.at(slice.getResult()) + dim, source + dim);
  }
  auto join = [&](linalg::GenericOp op, Value tensor, AffineMap map) {
    auto it = firstDim.find(stripTensorCasts(tensor));
    if (it == firstDim.end())
      return;
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(expr))
        classes.join(it->second + dim, firstLoop[op] + loop.getPosition());
  };
  for (linalg::GenericOp op : ops) {
    for (OpOperand &operand : op->getOpOperands())
      join(op, operand.get(), op.getMatchingIndexingMap(&operand));
    for (OpResult result : op->getResults())
      join(op, result, op.getIndexingMapMatchingResult(result));
  }
  classes.compress();

  axes.resize(classes.getNumClasses());
  for (Value tensor : tensors) {
    int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
    for (int64_t dim = 0; dim < rank; ++dim) {
      int axis = classes[firstDim[tensor] + dim];
      axesOf[tensor].push_back(axis);
      nameAxis(axis, dim, tensor);
    }
  }
  for (tensor::ExtractSliceOp slice : slices) {
    int last = axesOf[slice.getResult()].back();
    axes[last].isPart = last != getAxesOf(slice.getSource()).back();
  }
  for (linalg::GenericOp op : ops) {
    auto loops = llvm::map_to_vector(
        llvm::seq<int>(0, op.getNumLoops()),
        [&](int loop) -> int { return classes[firstLoop[op] + loop]; });
    if (failed(recordLoops(op, loops)))
      return failure();
  }
  return success();
}

LogicalResult TileProgram::recordLoops(linalg::GenericOp op,
                                       ArrayRef<int> loops) {
  for (auto [axis, type] : llvm::zip_equal(loops, op.getIteratorTypesArray())) {
    axes[axis].isLooped = true;
    axes[axis].isReduced |= type == utils::IteratorType::reduction;
  }
  SmallVector<int> sorted(loops);
  llvm::sort(sorted);
  if (llvm::adjacent_find(sorted) != sorted.end())
    return op.emitError("cannot vectorize this op in a tile: two of its loops "
                        "run over one axis");
  loopAxes[op] = SmallVector<int>(loops);
  return success();
}

/// Whether `x` is there before `y`, a value of the same block or outside it.
static bool comesBefore(OpFoldResult x, OpFoldResult y) {
  auto value = dyn_cast<Value>(x), other = dyn_cast<Value>(y);
  if (!value || !other)
    return bool(other);
  Operation *def = value.getDefiningOp(), *otherDef = other.getDefiningOp();
  if (!def || !otherDef)
    return !def && otherDef;
  if (def->getBlock() != otherDef->getBlock())
    return def->getBlock()->getParentOp()->isProperAncestor(otherDef);
  return def->isBeforeInBlock(otherDef);
}

/// Records the extent of `axis` as dimension `dim` of `tensor`, preferring a
/// static one, then one that is at hand as a value.
void TileProgram::nameAxis(int number, int64_t dim, Value tensor) {
  TileAxis &axis = axes[number];
  if (axis.extent && getConstantIntValue(axis.extent))
    return;
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(dim)) {
    axis.extent =
        Builder(tensor.getContext()).getIndexAttr(type.getDimSize(dim));
    return;
  }
  if (auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>()) {
    SmallVector<OpFoldResult> sizes;
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    for (auto [position, size] : llvm::enumerate(slice.getMixedSizes()))
      if (!dropped.test(position))
        sizes.push_back(size);
    // What asks for the axis may come before other slices of it.
    if (!axis.extent || comesBefore(sizes[dim], axis.extent))
      axis.extent = sizes[dim];
  } else if (!tensor.getDefiningOp<linalg::GenericOp>()) {
    axis.tensor = tensor;
    axis.dim = dim;
  }
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

/// The axes of one tensor order the sweeps: the first reduction's operand with
/// the most, unless another's has more that are longer than 1, or as many that
/// more ops run over; a tile without reductions goes by its widest result.
SmallVector<int> TileProgram::findRootAxes() const {
  SmallVector<int> root;
  auto loopedAxes = [&](Value tensor) {
    return llvm::filter_to_vector(
        getAxesOf(tensor), [&](int axis) { return axes[axis].isLooped; });
  };
  auto countLong = [&](ArrayRef<int> list) {
    return llvm::count_if(
        list, [&](int axis) { return axes[axis].getStaticExtent() != 1; });
  };
  // A sample of the rows has axes of its own.
  auto countOps = [&](ArrayRef<int> list) {
    return llvm::count_if(ops, [&](linalg::GenericOp op) {
      return llvm::all_of(list, [&](int axis) {
        return llvm::is_contained(getLoopAxes(op), axis);
      });
    });
  };
  auto widen = [&](Value tensor) {
    SmallVector<int> list = loopedAxes(tensor);
    auto rank = [&](ArrayRef<int> axes) {
      return std::make_tuple(countLong(axes), axes.size(), countOps(axes));
    };
    if (root.empty() || rank(list) > rank(root))
      root = list;
  };
  for (linalg::GenericOp op : ops) {
    if (!isReduction(op))
      continue;
    if (root.empty())
      for (Value input : op.getDpsInputs())
        if (loopedAxes(input).size() > root.size())
          root = loopedAxes(input);
    llvm::for_each(op.getDpsInputs(), widen);
  }
  if (root.empty())
    for (linalg::GenericOp op : ops)
      llvm::for_each(op->getResults(), widen);
  return root;
}

bool TileProgram::isRowSum(linalg::GenericOp op) const {
  return isReduction(op) && (isColumnReduced() || isRange) &&
         llvm::is_contained(getNeededAxes(op.getResult(0)), columnAxis);
}

/// The axes that sums over rows reduce are kept ones for all else.
void TileProgram::findRowSums() {
  for (linalg::GenericOp op : ops) {
    if (!isRowSum(op))
      continue;
    for (auto [axis, type] :
         llvm::zip_equal(getLoopAxes(op), op.getIteratorTypesArray()))
      if (type == utils::IteratorType::reduction &&
          !llvm::is_contained(blockAxes, axis))
        blockAxes.push_back(axis);
  }
  for (int axis : blockAxes)
    axes[axis].isReduced = false;
}

/// The innermost axis; in a tile without reductions, the innermost that is
/// longer than 1.
int TileProgram::chooseColumnAxis(ArrayRef<int> rootAxes) const {
  if (llvm::none_of(ops, [&](linalg::GenericOp op) { return isReduction(op); }))
    for (int axis : llvm::reverse(rootAxes))
      if (axes[axis].getStaticExtent() != 1)
        return axis;
  return rootAxes.back();
}

/// With swept columns, a kept axis gives the rows of a vector: beside a
/// reduction the innermost that is longer than 1, else one of as many elements
/// as the vector has rows.
int TileProgram::chooseRowAxis(ArrayRef<int> rootAxes, int64_t rows) const {
  int found = kNoAxis;
  for (int axis : llvm::reverse(rootAxes)) {
    if (axis == columnAxis || axes[axis].isReduced)
      continue;
    std::optional<int64_t> extent = axes[axis].getStaticExtent();
    // With kept columns, rows are what is summed over.
    bool hasSums = isColumnReduced() || !blockAxes.empty();
    if (!isColumnReduced() && hasSums && !llvm::is_contained(blockAxes, axis))
      continue;
    if (hasSums ? extent != 1 : rows > 1 && extent == rows)
      return axis;
    if (hasSums && found == kNoAxis)
      found = axis;
  }
  return found;
}

/// Whether `extent` is known to be at most `limit`.
static bool isAtMost(OpFoldResult extent, int64_t limit) {
  if (!extent)
    return false;
  FailureOr<int64_t> bound = ValueBoundsConstraintSet::computeConstantBound(
      presburger::BoundType::UB, extent, /*stopCondition=*/nullptr,
      /*closedUB=*/true);
  return succeeded(bound) && *bound <= limit;
}

LogicalResult TileProgram::chooseVectorAxes(int64_t rows, int64_t columns) {
  SmallVector<int> rootAxes = findRootAxes();
  if (rootAxes.empty())
    return ops.front().emitError("expected a tile of rank 1 or more, got a "
                                 "scalar");
  columnAxis = chooseColumnAxis(rootAxes);
  findRowSums();
  bool isColumnSwept = isRange || isColumnReduced() ||
                       !isAtMost(axes[columnAxis].extent, columns);
  if (isColumnSwept)
    rowAxis = chooseRowAxis(rootAxes, rows);
  auto isBlock = [&](int axis) { return llvm::is_contained(blockAxes, axis); };
  if (rowAxis != kNoAxis && isBlock(rowAxis))
    vectorRows = rows;
  else if (rowAxis != kNoAxis)
    vectorRows = axes[rowAxis].getStaticExtent().value_or(rows);

  // A sample of reduced columns has columns of its own.
  auto isBesideColumns = [&](int axis) {
    return llvm::any_of(ops, [&](linalg::GenericOp op) {
      return llvm::is_contained(getLoopAxes(op), axis) &&
             llvm::is_contained(getLoopAxes(op), columnAxis);
    });
  };
  if (isColumnReduced())
    for (const auto &[tensor, list] : axesOf)
      if (!list.empty() && axes[list.back()].isReduced &&
          !isBesideColumns(list.back()))
        axes[list.back()].isPart = true;

  for (auto [number, axis] : llvm::enumerate(axes)) {
    int id = number;
    if (!axis.extent && !axis.tensor)
      return ops.front().emitError("cannot vectorize this tile: the extent of "
                                   "an axis is unknown");
    if (id == columnAxis || axis.isPart)
      axis.isSwept = isColumnSwept;
    else
      axis.isSwept = axis.isReduced || (id != rowAxis && !isBlock(id) &&
                                        axis.getStaticExtent() != 1);
  }
  auto note = [&](int axis) {
    if (axes[axis].isSwept)
      sweptAxes.push_back(axis);
  };
  auto isPart = [&](int axis) { return axes[axis].isPart; };
  auto others =
      llvm::filter_to_vector(llvm::seq<int>(0, axes.size()), [&](int axis) {
        return !llvm::is_contained(rootAxes, axis);
      });
  llvm::for_each(
      llvm::make_filter_range(others, [&](int axis) { return !isPart(axis); }),
      note);
  llvm::for_each(rootAxes, note);
  llvm::for_each(llvm::make_filter_range(others, isPart), note);
  return success();
}

/// Whether parts are parts of the columns, and these are swept.
LogicalResult TileProgram::checkParts() const {
  auto isPart = [&](int axis) { return axes[axis].isPart; };
  for (const auto &[tensor, list] : axesOf) {
    std::optional<TilePart> part = getPart(tensor);
    bool isWhole = part && !isPart(list.back());
    bool isUnderstood =
        !part || (isWhole && part->stride == 1 && part->offset == 0) ||
        (isColumnReduced() && !axes[columnAxis].isPart &&
         getAxesOf(part->source).back() == columnAxis &&
         !getPart(part->source) && (part->stride == 1 || part->stride == 2) &&
         llvm::count_if(list, isPart) == 1 && isPart(list.back()));
    if (isUnderstood && (part || llvm::count_if(list, isPart) <= 1))
      continue;
    linalg::GenericOp first = ops.front();
    return first.emitError(
        "cannot vectorize this tile: expected parts of reduced columns");
  }
  return success();
}

/// Whether a sum over rows sums over whole blocks, and only leaves the tile.
LogicalResult TileProgram::checkRowSum(linalg::GenericOp op) const {
  if (op.getNumReductionLoops() != blockAxes.size())
    return op.emitError("cannot vectorize this op in a tile: expected every "
                        "sum over rows to run over the same axes");
  if (!llvm::all_of(op->getUsers(),
                    llvm::IsaPred<tensor::ParallelInsertSliceOp, tensor::CastOp,
                                  tensor::DimOp>))
    return op.emitError("cannot vectorize this op in a tile: expected a sum "
                        "over rows to leave the tile as it is");
  if (!llvm::all_of(op.getDpsInits(),
                    [&](Value init) { return bool(getFillValue(init)); }))
    return op.emitError("cannot vectorize this reduction in a tile: expected a "
                        "filled destination");
  return success();
}

/// Whether the op's loops have a place in the sweeps.
LogicalResult TileProgram::checkOp(linalg::GenericOp op) const {
  if (isRowSum(op))
    return checkRowSum(op);
  for (auto [loop, axis] : llvm::enumerate(getLoopAxes(op))) {
    if (op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction)
      continue;
    if (isReduction(op) && axes[axis].isSwept)
      return op.emitError("cannot vectorize this reduction in a tile: expected "
                          "its results to vary along the rows or columns of "
                          "one vector only");
    if (axes[axis].getStaticExtent() == 1)
      continue;
    for (OpResult result : op->getResults())
      if (!llvm::is_contained(getAxesOf(result), axis))
        return op.emitError("cannot vectorize this op in a tile: expected "
                            "every parallel loop to index each result");
  }
  return success();
}

void TileProgram::computeLevels() {
  for (linalg::GenericOp op : ops) {
    int level = 0;
    for (Value operand : op->getOperands()) {
      std::optional<TilePart> part = getPart(operand);
      if (linalg::GenericOp producer =
              getProducer(part ? part->source : operand))
        level =
            std::max(level, levels[producer] + (isReduction(producer) ? 1 : 0));
    }
    levels[op] = level;
  }
}
