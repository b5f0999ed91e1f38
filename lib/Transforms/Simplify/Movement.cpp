//===- Movement.cpp - Norms of tensors that only move elements -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Movement.h"

#include "Norm/Analysis/Constants.h"
#include "Norm/IR/NormOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

bool Copy::isTranspose() const {
  return static_cast<int64_t>(dims.size()) == getRank() &&
         !llvm::is_contained(dims, kUnit) && !llvm::is_sorted(dims);
}

SmallVector<int64_t> Copy::getAddedDims() const {
  return complementAxes(dims, getRank());
}

bool Copy::isBroadcast() const {
  SmallVector<int64_t> proper =
      llvm::filter_to_vector(dims, [](int64_t dim) { return dim != kUnit; });
  return llvm::is_sorted(proper) &&
         static_cast<int64_t>(proper.size()) < getRank();
}

/// A generic that yields its only input; its maps may place elements at will.
static std::optional<Copy> matchGenericCopy(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 ||
      op.getNumParallelLoops() != op.getNumLoops() ||
      !op.hasPureTensorSemantics())
    return std::nullopt;
  Block &body = op.getRegion().front();
  if (body.getTerminator()->getOperand(0) != body.getArgument(0))
    return std::nullopt;
  AffineMap in = op.getIndexingMapsArray()[0],
            out = op.getIndexingMapsArray()[1];
  if (!out.isPermutation())
    return std::nullopt;
  in = in.compose(inversePermutation(out));

  auto type = dyn_cast<RankedTensorType>(op.getDpsInputs()[0].getType());
  if (!type)
    return std::nullopt;
  Copy copy{op.getDpsInputs()[0], op.getDpsInits()[0], {}};
  for (auto [position, expr] : llvm::enumerate(in.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    auto constant = dyn_cast<AffineConstantExpr>(expr);
    if (constant && constant.getValue() == 0 && type.getDimSize(position) == 1)
      copy.dims.push_back(Copy::kUnit);
    else if (dim && !llvm::is_contained(copy.dims, dim.getPosition()))
      copy.dims.push_back(dim.getPosition());
    else
      return std::nullopt;
  }
  return copy;
}

std::optional<Copy> norm::matchCopy(Value value) {
  if (!value)
    return std::nullopt;
  Operation *op = value.getDefiningOp();
  if (auto transpose = dyn_cast_or_null<linalg::TransposeOp>(op)) {
    Copy copy{transpose.getInput(), transpose.getInit(), {}};
    copy.dims.resize(transpose.getPermutation().size());
    for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
      copy.dims[from] = to;
    return copy;
  }
  if (auto broadcast = dyn_cast_or_null<linalg::BroadcastOp>(op)) {
    Copy copy{broadcast.getInput(), broadcast.getInit(), {}};
    copy.dims = complementAxes(broadcast.getDimensions(), copy.getRank());
    return copy;
  }
  if (auto generic = dyn_cast_or_null<linalg::GenericOp>(op))
    return matchGenericCopy(generic);
  return std::nullopt;
}

/// A constant with its dimensions in another order.
static Value transposeConstant(OpBuilder &builder, Location loc,
                               const ConstantTensor &constant,
                               ArrayRef<int64_t> dims) {
  SmallVector<int64_t> shape(dims.size());
  for (auto [from, to] : llvm::enumerate(dims))
    shape[to] = constant.getShape()[from];
  auto type = RankedTensorType::get(shape, constant.getType().getElementType());
  if (constant.isSplat())
    return createConstant(builder, loc, type, constant.getSplat());
  SmallVector<int64_t> strides(dims.size(), 1);
  for (int64_t dim = dims.size() - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  SmallVector<double> values(type.getNumElements());
  for (int64_t from = 0; from < type.getNumElements(); ++from) {
    int64_t rest = from, to = 0;
    for (int64_t dim = dims.size() - 1; dim >= 0; --dim) {
      to += rest % constant.getShape()[dim] * strides[dims[dim]];
      rest /= constant.getShape()[dim];
    }
    values[to] = constant[from];
  }
  return createConstant(builder, loc, type, values);
}

Value norm::buildCopy(OpBuilder &builder, Location loc, Value source,
                      ArrayRef<int64_t> dims, ArrayRef<OpFoldResult> extents) {
  bool isPermutation =
      dims.size() == extents.size() && !llvm::is_contained(dims, Copy::kUnit);
  if (isPermutation && llvm::is_sorted(dims))
    return source;
  if (isPermutation)
    if (std::optional<ConstantTensor> constant = matchConstant(source))
      return transposeConstant(builder, loc, *constant, dims);

  Type elementType = cast<RankedTensorType>(source.getType()).getElementType();
  Value init = tensor::EmptyOp::create(builder, loc, extents, elementType);
  if (isPermutation) {
    SmallVector<int64_t> permutation(dims.size());
    for (auto [from, to] : llvm::enumerate(dims))
      permutation[to] = from;
    return linalg::TransposeOp::create(builder, loc, source, init, permutation)
        ->getResult(0);
  }
  int64_t rank = extents.size();
  if (!llvm::is_contained(dims, Copy::kUnit) && llvm::is_sorted(dims))
    return linalg::BroadcastOp::create(builder, loc, source, init,
                                       complementAxes(dims, rank))
        ->getResult(0);

  SmallVector<AffineExpr> exprs =
      llvm::map_to_vector(dims, [&](int64_t dim) -> AffineExpr {
        return dim == Copy::kUnit ? builder.getAffineConstantExpr(0)
                                  : builder.getAffineDimExpr(dim);
      });
  SmallVector<AffineMap> maps{
      AffineMap::get(rank, 0, exprs, builder.getContext()),
      builder.getMultiDimIdentityMap(rank)};
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, init.getType(), source, init, maps, iterators,
             [](OpBuilder &b, Location bodyLoc, ValueRange in) {
               linalg::YieldOp::create(b, bodyLoc, in[0]);
             })
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// Norms that move
//===----------------------------------------------------------------------===//

void norm::moveParameters(NormOpInterface op, NormContract &contract,
                          MoveOperandFn move) {
  SmallVector<int64_t> affine = op.getAffineAxesOrDefault();
  for (Value *value : {&contract.scale, &contract.shift})
    if (*value)
      *value = move(*value, affine);
  SmallVector<int64_t> statistic = op.getStatisticAxes();
  for (Value *value : {&contract.mean, &contract.variance,
                       &contract.runningMean, &contract.runningVariance})
    if (*value)
      *value = move(*value, statistic);
}

void norm::replaceByMoved(RewriterBase &rewriter, NormOpInterface op,
                          NormOpInterface moved, MoveResultFn move) {
  NormResults old = NormResults::get(op), replaced = NormResults::get(moved);
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, op.getRank()));
  SmallVector<int64_t> statistic = op.getStatisticAxes();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointAfter(moved);
  auto apply = [&](Value result, Value &replacement, ArrayRef<int64_t> axes) {
    replacement =
        result && !result.use_empty() ? move(replacement, axes) : Value();
  };
  apply(old.y, replaced.y, all);
  apply(old.sum, replaced.sum, all);
  apply(old.mean, replaced.mean, statistic);
  apply(old.variance, replaced.variance, statistic);
  apply(old.rstd, replaced.rstd, statistic);
  apply(old.runningMean, replaced.runningMean, statistic);
  apply(old.runningVariance, replaced.runningVariance, statistic);
  replaceNorm(rewriter, op, replaced);
}

NormOpInterface norm::buildMoved(RewriterBase &rewriter, NormOpInterface op,
                                 const NormContract &contract) {
  Operation *moved = op.rebuild(rewriter, op->getLoc(), contract);
  assert(moved && "expected an op that can be rebuilt");
  moved->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  auto norm = cast<NormOpInterface>(moved);
  return norm;
}

bool norm::isRebuildable(RewriterBase &rewriter, NormOpInterface op) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  Operation *again = op.rebuild(rewriter, op->getLoc(), NormContract::get(op));
  if (!again)
    return false;
  rewriter.eraseOp(again);
  return true;
}

bool norm::keepsSummation(NormOpInterface op, ArrayRef<int64_t> reducedAxes,
                          ArrayRef<int64_t> oldAxes) {
  if (op.hasGivenStatistics())
    return true;
  SmallVector<int64_t> before = op.getReducedAxes();
  SmallVector<int64_t> after = llvm::map_to_vector(
      reducedAxes, [&](int64_t axis) { return oldAxes[axis]; });
  auto isInnermost = [](ArrayRef<int64_t> reduced, int64_t rank) {
    return llvm::is_contained(reduced, rank - 1);
  };
  return before == after &&
         isInnermost(before, op.getRank()) ==
             isInnermost(reducedAxes, static_cast<int64_t>(oldAxes.size()));
}

bool norm::isUsedOnlyBy(Value value, Operation *op) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    return user == op || isa<tensor::DimOp>(user);
  });
}

SmallVector<int64_t> norm::positionsIn(ArrayRef<int64_t> list,
                                       ArrayRef<int64_t> axes) {
  return llvm::map_to_vector(axes, [&](int64_t axis) -> int64_t {
    return llvm::find(list, axis) - list.begin();
  });
}
