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

FailureOr<TileProgram> TileProgram::analyze(scf::ForallOp loop) {
  TileProgram program;
  if (failed(program.collect(loop)) || failed(program.unifyAxes()) ||
      failed(program.chooseVectorAxes()))
    return failure();
  program.computeLevels();
  return program;
}

linalg::GenericOp TileProgram::getProducer(Value tensor) const {
  auto op = stripTensorCasts(tensor).getDefiningOp<linalg::GenericOp>();
  return op && loopAxes.contains(op) ? op : nullptr;
}

Value TileProgram::getFillValue(Value tensor) const {
  auto fill = stripTensorCasts(tensor).getDefiningOp<linalg::FillOp>();
  return fill ? fill.getInputs()[0] : Value();
}

SmallVector<int> TileProgram::getAxesOf(Value tensor) const {
  auto it = axesOf.find(stripTensorCasts(tensor));
  return it == axesOf.end() ? SmallVector<int>() : it->second;
}

bool TileProgram::isFull(linalg::GenericOp op) const {
  return llvm::any_of(getAxesOf(op.getResult(0)), [&](int axis) {
    return axis != kNoAxis && axes[axis].isReduced;
  });
}

//===----------------------------------------------------------------------===//
// Collecting ops
//===----------------------------------------------------------------------===//

LogicalResult TileProgram::collect(scf::ForallOp loop) {
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      if (!generic.hasPureTensorSemantics())
        return generic.emitError("cannot vectorize this op in a tile: expected "
                                 "tensors, got buffers");
      auto isProjected = [](AffineMap map) {
        return map.isProjectedPermutation(/*allowZeroInResults=*/true);
      };
      if (!llvm::all_of(generic.getIndexingMapsArray(), isProjected))
        return generic.emitError("cannot vectorize this op in a tile: expected "
                                 "projected permutations as indexing maps");
      if (!llvm::all_of(generic->getOperands(), hasVectorLayout))
        return generic.emitError("cannot vectorize this op in a tile: expected "
                                 "elements of whole bytes");
      ops.push_back(generic);
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
  for (Operation &op : loop.getTerminator().getYieldingOps())
    outputs.push_back(cast<tensor::ParallelInsertSliceOp>(op));
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

/// Every tensor dimension and every loop gets a number; an op's maps say which
/// of them are the same axis.
LogicalResult TileProgram::unifyAxes() {
  DenseMap<Value, int> firstDim;
  DenseMap<Operation *, int> firstLoop;
  int count = 0;
  auto numberTensor = [&](Value tensor) {
    tensor = stripTensorCasts(tensor);
    if (firstDim.try_emplace(tensor, count).second)
      count += cast<RankedTensorType>(tensor.getType()).getRank();
    return tensor;
  };
  for (linalg::GenericOp op : ops) {
    firstLoop[op] = count;
    count += op.getNumLoops();
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()) && !isDestination(operand))
        numberTensor(operand);
    for (Value result : op->getResults())
      numberTensor(result);
  }
  for (tensor::ParallelInsertSliceOp output : outputs)
    numberTensor(output.getSource());

  llvm::IntEqClasses classes(count);
  auto join = [&](linalg::GenericOp op, Value tensor, AffineMap map) {
    int first = firstDim[stripTensorCasts(tensor)];
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(expr))
        classes.join(first + dim, firstLoop[op] + loop.getPosition());
  };
  for (linalg::GenericOp op : ops) {
    for (OpOperand &operand : op->getOpOperands())
      if (isa<RankedTensorType>(operand.get().getType()) &&
          !isDestination(operand.get()))
        join(op, operand.get(), op.getMatchingIndexingMap(&operand));
    for (OpResult result : op->getResults())
      join(op, result, op.getIndexingMapMatchingResult(result));
  }
  classes.compress();

  axes.resize(classes.getNumClasses());
  for (linalg::GenericOp op : ops) {
    SmallVector<int> &loops = loopAxes[op];
    for (auto [loop, type] : llvm::enumerate(op.getIteratorTypesArray())) {
      loops.push_back(classes[firstLoop[op] + loop]);
      if (type == utils::IteratorType::reduction)
        axes[loops.back()].isReduced = true;
    }
    SmallVector<int> sorted = llvm::to_vector(llvm::make_filter_range(
        loops, [](int axis) { return axis != kNoAxis; }));
    llvm::sort(sorted);
    if (llvm::adjacent_find(sorted) != sorted.end())
      return op.emitError("cannot vectorize this op in a tile: two of its "
                          "loops run over one axis");
  }
  for (auto [tensor, first] : firstDim) {
    auto type = cast<RankedTensorType>(tensor.getType());
    SmallVector<int> &list = axesOf[tensor];
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      int axis = classes[first + dim];
      list.push_back(axis);
      nameAxis(axis, dim, tensor);
    }
  }
  return success();
}

/// Records the extent of `axis` as dimension `dim` of `tensor`, preferring a
/// static one, then one that is at hand as a value.
void TileProgram::nameAxis(int axis, int64_t dim, Value tensor) {
  OpFoldResult &extent = axes[axis].extent;
  if (extent && getConstantIntValue(extent))
    return;
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(dim)) {
    extent = Builder(tensor.getContext()).getIndexAttr(type.getDimSize(dim));
    return;
  }
  if (auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>())
    if (slice.getType().getRank() == slice.getSourceType().getRank())
      extent = slice.getMixedSizes()[dim];
}

LogicalResult TileProgram::chooseVectorAxes() {
  // The first reduction's widest operand is what the tile is about; a tile
  // without reductions is about its first result.
  Value root = ops.front().getResult(0);
  for (linalg::GenericOp op : ops) {
    if (!isReduction(op))
      continue;
    root = op.getDpsInputs()[0];
    for (Value input : op.getDpsInputs())
      if (getAxesOf(input).size() > getAxesOf(root).size())
        root = input;
    break;
  }
  SmallVector<int> rootAxes = getAxesOf(root);
  if (rootAxes.empty())
    return ops.front().emitError("expected a tile of rank 1 or more, got a "
                                 "scalar");
  columnAxis = rootAxes.back();
  for (int axis : rootAxes)
    if (axes[axis].isReduced)
      reducedAxes.push_back(axis);
  // With reduced columns, the innermost kept axis gives the rows of a vector.
  if (axes[columnAxis].isReduced)
    for (int axis : llvm::reverse(rootAxes))
      if (!axes[axis].isReduced) {
        rowAxis = axis;
        break;
      }

  for (auto [number, axis] : llvm::enumerate(axes)) {
    int id = number;
    if (!axis.extent)
      return ops.front().emitError("cannot vectorize this tile: the extent of "
                                   "an axis is unknown");
    if (axis.isReduced && !llvm::is_contained(reducedAxes, id))
      return ops.front().emitError(
          "cannot vectorize this tile: an axis is reduced that the first "
          "reduction's input does not have");
    if (!axis.isReduced && id != columnAxis && id != rowAxis &&
        axis.getStaticExtent() != 1)
      return ops.front().emitError("cannot vectorize this tile: expected one "
                                   "kept axis of extent other than 1");
  }
  for (linalg::GenericOp op : ops)
    if (isReduction(op) && op.getNumReductionLoops() != reducedAxes.size())
      return op.emitError("cannot vectorize this op in a tile: expected every "
                          "reduction to reduce the same axes");
  if (rowAxis != kNoAxis && !axes[rowAxis].getStaticExtent())
    return ops.front().emitError("cannot vectorize this tile: expected a "
                                 "static number of rows, got a dynamic one");
  return success();
}

void TileProgram::computeLevels() {
  for (linalg::GenericOp op : ops) {
    int level = 0;
    for (Value operand : op->getOperands())
      if (linalg::GenericOp producer = getProducer(operand))
        level =
            std::max(level, levels[producer] + (isReduction(producer) ? 1 : 0));
    levels[op] = level;
  }
}
