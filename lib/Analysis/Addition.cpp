//===- Addition.cpp - Sums of two tensors ---------------------------------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Analysis/Addition.h"

#include "Norm/Analysis/ElementView.h"

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::elements;

/// Whether a tensor that is read so is not transposed.
static bool isAscending(ArrayRef<int32_t> index) {
  int32_t last = kUnit;
  for (int32_t dim : index) {
    if (dim == kUnit)
      continue;
    if (dim <= last)
      return false;
    last = dim;
  }
  return true;
}

/// The first tensor of the frame's shape that `view` reads at the frame's own
/// indices, and the last one through widening casts.
static Addition::Addend addendOf(const ViewAnalysis &views, const View &view,
                                 ArrayRef<int64_t> shape) {
  auto isWhole = [&](const View &seen) {
    return seen.isTensor() && views.frame.isIdentity(seen) &&
           cast<RankedTensorType>(seen.value.getType()).getShape() == shape;
  };
  Addition::Addend addend;
  views.look(view, [&](const View &seen) {
    if (!addend.tensor && isWhole(seen))
      addend.tensor = seen.value;
  });
  // Widened in the body of the addition: the operand is the narrow tensor.
  bool readsNarrow = !addend.tensor;
  views.stripExt(view, [&](const View &seen) {
    if (!seen.isTensor())
      return;
    if (isAscending(seen.index)) {
      addend.source = seen.value;
      addend.dims.assign(seen.index.begin(), seen.index.end());
    }
    if (!isWhole(seen))
      return;
    bool isNarrower =
        !addend.narrow ||
        getElementTypeOrSelf(seen.value).getIntOrFloatBitWidth() <
            getElementTypeOrSelf(addend.narrow).getIntOrFloatBitWidth();
    if (isNarrower)
      addend.narrow = seen.value;
  });
  if (readsNarrow)
    addend.tensor = addend.narrow;
  addend.numRepeated =
      llvm::count_if(shape, [](int64_t n) { return n != 1; }) -
      llvm::count_if(addend.dims, [](int64_t dim) { return dim != kUnit; });
  return addend;
}

std::optional<Addition> norm::matchAddition(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !isa<FloatType>(type.getElementType()))
    return std::nullopt;
  Frame frame(type);
  ViewAnalysis views(frame);
  Addition addition;
  View view = frame.identity(value);
  Expr expr = views.expand(view);
  while (expr.is(Kind::Trunc) || expr.is(Kind::Ext)) {
    if (expr.is(Kind::Trunc))
      addition.roundedTo = cast<FloatType>(expr.type);
    view = expr.operands.front();
    expr = views.expand(view);
  }
  if (!expr.is(Kind::Add))
    return std::nullopt;
  for (const View &operand : expr.operands)
    if (views.expand(operand).is(Kind::Constant))
      return std::nullopt;
  addition.type = cast<FloatType>(expr.type);
  addition.lhs = addendOf(views, expr.operands[0], type.getShape());
  addition.rhs = addendOf(views, expr.operands[1], type.getShape());
  views.look(view, [&](const View &seen) {
    if (!addition.sum && seen.isTensor() && frame.isIdentity(seen))
      addition.sum = seen.value;
  });
  return addition;
}
