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
    auto normOp = cast<NormOpInterface>(op);
    unsigned number = cast<OpResult>(value).getResultNumber();
    int64_t axis = normOp.getResultAxes(number)[dim];
    bounds.bound(value)[dim] == bounds.getExpr(normOp.getInput(), axis);
  }
};
} // namespace

void norm::registerValueBoundsOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NormDialect *) {
    LayerNormOp::attachInterface<NormValueBounds<LayerNormOp>>(*context);
    RMSNormOp::attachInterface<NormValueBounds<RMSNormOp>>(*context);
  });
}
