//===- ValueBoundsOpInterfaceImpl.cpp - Bounds of norm results -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/IR/ValueBoundsOpInterfaceImpl.h"

#include "Norm/IR/NormOps.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace mlir::norm;

namespace {
template <typename OpTy>
struct NormValueBounds
    : public ValueBoundsOpInterface::ExternalModel<NormValueBounds<OpTy>,
                                                   OpTy> {
  void populateBoundsForShapedValueDim(Operation *op, Value value, int64_t dim,
                                       ValueBoundsConstraintSet &bounds) const {
    auto rowOp = cast<RowOpInterface>(op);
    unsigned number = cast<OpResult>(value).getResultNumber();
    int64_t axis = rowOp.getResultAxes(number)[dim];
    if (axis == rowOp.getGroupedAxis() && rowOp.isStatisticResult(number))
      bounds.bound(value)[dim] == rowOp.getNumGroups();
    else
      bounds.bound(value)[dim] == bounds.getExpr(rowOp.getInput(), axis);
  }
};

template <typename... OpTys> void attachToAll(MLIRContext &context) {
  (OpTys::template attachInterface<NormValueBounds<OpTys>>(context), ...);
}
} // namespace

void norm::registerValueBoundsOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NormDialect *) {
    attachToAll<
#define GET_OP_LIST
#include "Norm/IR/NormOps.cpp.inc"
        >(*context);
  });
}
