//===- DecomposeGroups.cpp - Groups as an axis of their own ----*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A group norm is a layer norm of a view: the channel axis of C channels
// becomes two, [groups, C/groups], of which the second is reduced. Statistics
// of the view have the shape that the group norm's have.
//
//===----------------------------------------------------------------------===//

#include "Norm/IR/GroupView.h"
#include "RowBuilder.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"

using namespace mlir;
using namespace mlir::norm;

void norm::assertWholeGroups(RowOpInterface op, OpBuilder &builder) {
  std::optional<int64_t> axis = op.getGroupedAxis();
  if (!axis || !op.getInput().getType().isDynamicDim(*axis))
    return;
  Location loc = op.getLoc();
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value channels = tensor::DimOp::create(builder, loc, op.getInput(), *axis);
  Value rest =
      arith::RemUIOp::create(builder, loc, channels, index(op.getNumGroups()));
  Value isWhole = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        rest, index(0));
  cf::AssertOp::create(
      builder, loc, isWhole,
      ("expected 'groups' to divide the channels of 'x', groups are " +
       Twine(op.getNumGroups()) + " (V5)")
          .str());
}

SmallVector<int64_t> GroupView::axes(ArrayRef<int64_t> axes, bool onlyWithin) {
  SmallVector<int64_t> result;
  for (int64_t axis : axes) {
    if (axis == channel && !onlyWithin)
      result.push_back(axis);
    result.push_back(axis < channel ? axis : axis + 1);
  }
  return result;
}

std::optional<SmallVector<ReassociationIndices>>
GroupView::reassociation(ArrayRef<int64_t> axes) {
  if (!llvm::is_contained(axes, channel))
    return std::nullopt;
  SmallVector<ReassociationIndices> result;
  int64_t next = 0;
  for (int64_t axis : axes) {
    ReassociationIndices indices{next++};
    if (axis == channel)
      indices.push_back(next++);
    result.push_back(indices);
  }
  return result;
}

Value GroupView::expand(Value tensor, ArrayRef<int64_t> axes) {
  if (!tensor)
    return {};
  auto indices = reassociation(axes);
  if (!indices)
    return tensor;
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, axis] : llvm::enumerate(axes)) {
    OpFoldResult size = tensor::getMixedSize(builder, loc, tensor, dim);
    if (axis == channel) {
      sizes.push_back(builder.getIndexAttr(groups));
      AffineExpr s0 = builder.getAffineSymbolExpr(0);
      size = affine::makeComposedFoldedAffineApply(builder, loc,
                                                   s0.floorDiv(groups), {size});
    }
    sizes.push_back(size);
  }
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(sizes, dynamic, shape);
  auto type = cast<RankedTensorType>(tensor.getType());
  return tensor::ExpandShapeOp::create(
      builder, loc, RankedTensorType::get(shape, type.getElementType()), tensor,
      *indices, sizes);
}

Value GroupView::collapse(Value view, ArrayRef<int64_t> axes, Type type) {
  if (auto indices = reassociation(axes))
    view = tensor::CollapseShapeOp::create(builder, loc, view, *indices);
  if (view.getType() != type)
    view = tensor::CastOp::create(builder, loc, type, view);
  return view;
}

static SmallVector<int64_t> allAxes(RowOpInterface op) {
  return llvm::to_vector(llvm::seq<int64_t>(0, op.getRank()));
}

/// `contract` on the view.
static NormContract onView(GroupView &view, RowOpInterface op,
                           NormContract contract,
                           ArrayRef<int64_t> affineAxes) {
  SmallVector<int64_t> all = allAxes(op);
  contract.x = view.expand(contract.x, all);
  contract.residual = view.expand(contract.residual, all);
  contract.scale = view.expand(contract.scale, affineAxes);
  contract.shift = view.expand(contract.shift, affineAxes);
  contract.axes = view.axes(contract.axes, /*onlyWithin=*/true);
  contract.affineAxes = view.axes(affineAxes, /*onlyWithin=*/false);
  contract.groups = 1;
  contract.channelAxis = std::nullopt;
  return contract;
}

FailureOr<SmallVector<Value>> norm::decomposeGroups(NormOpInterface op,
                                                    OpBuilder &builder,
                                                    DecomposeFn decompose) {
  assertWholeGroups(op, builder);
  GroupView view(op, builder);
  NormContract contract =
      onView(view, op, NormContract::get(op), op.getAffineAxesOrDefault());
  auto viewOp = LayerNormOp::create(builder, op.getLoc(), contract);
  FailureOr<SmallVector<Value>> values = decompose(viewOp, builder);
  viewOp->erase();
  if (failed(values))
    return failure();
  // Statistics have the shape they need.
  SmallVector<int64_t> all = allAxes(op);
  for (auto [value, result] : llvm::zip_equal(*values, op->getResults()))
    if (!op.isStatisticResult(result.getResultNumber()))
      value = view.collapse(value, all, result.getType());
  return values;
}

FailureOr<SmallVector<Value>> norm::decomposeGroups(NormBackwardOpInterface op,
                                                    OpBuilder &builder,
                                                    DecomposeFn decompose) {
  assertWholeGroups(op, builder);
  GroupView view(op, builder);
  BackwardContract contract = BackwardContract::get(op);
  SmallVector<int64_t> all = allAxes(op), affine = *contract.forward.affineAxes;
  contract.forward = onView(view, op, contract.forward, affine);
  contract.dy = view.expand(contract.dy, all);
  contract.dsum = view.expand(contract.dsum, all);
  auto viewOp = LayerNormBackwardOp::create(builder, op.getLoc(), contract);
  FailureOr<SmallVector<Value>> values = decompose(viewOp, builder);
  viewOp->erase();
  if (failed(values))
    return failure();
  for (auto [value, result] : llvm::zip_equal(*values, op->getResults()))
    value = view.collapse(value, result == op.getDx() ? all : affine,
                          result.getType());
  return values;
}
