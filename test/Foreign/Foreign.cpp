//===- Foreign.cpp - A dialect that knows norm by its interfaces ----------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// What an embedding compiler writes to have its own norms configured, tiled,
// lowered and vectorized: one op implements NormOpInterface itself, the other
// gets it by external models.

#include "Norm/IR/NormInterfaces.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "llvm/Support/Compiler.h"

#include "ForeignDialect.h.inc"
#define GET_OP_CLASSES
#include "ForeignOps.h.inc"

using namespace mlir;

#include "ForeignDialect.cpp.inc"
#define GET_OP_CLASSES
#include "ForeignOps.cpp.inc"

void foreign::ForeignDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ForeignOps.cpp.inc"
      >();
}

norm::EpsilonAttr foreign::RmsOp::getEpsilon() {
  return norm::EpsilonAttr::get(getContext(),
                                norm::EpsilonPlacement::InsideSqrt, 0.5);
}

SmallVector<int64_t> foreign::RmsOp::getAllAxes() {
  return llvm::to_vector(llvm::seq<int64_t>(0, getX().getType().getRank()));
}

namespace {
using Tensor = TypedValue<RankedTensorType>;

Tensor inputOf(Operation *op) { return cast<Tensor>(op->getOperand(0)); }

SmallVector<int64_t> allAxesOf(Operation *op) {
  return llvm::to_vector(
      llvm::seq<int64_t>(0, inputOf(op).getType().getRank()));
}

/// foreign.centre: a layer norm over all axes but the first.
struct CentreRows
    : public norm::RowOpInterface::ExternalModel<CentreRows,
                                                 foreign::CentreOp> {
  Tensor getInput(Operation *op) const { return inputOf(op); }
  SmallVector<int64_t> getReducedAxes(Operation *op) const {
    return llvm::to_vector(llvm::drop_begin(allAxesOf(op)));
  }
  SmallVector<int64_t> getOperandAxes(Operation *op, unsigned) const {
    return allAxesOf(op);
  }
  SmallVector<int64_t> getResultAxes(Operation *op, unsigned) const {
    return allAxesOf(op);
  }
};

struct CentreNorm
    : public norm::NormOpInterface::ExternalModel<CentreNorm,
                                                  foreign::CentreOp> {
  Tensor getNormalized(Operation *op) const {
    return cast<Tensor>(op->getResult(0));
  }
  norm::Statistic getStatistic(Operation *) const {
    return norm::Statistic::Variance;
  }
  norm::EpsilonAttr getEpsilon(Operation *op) const {
    return norm::EpsilonAttr::get(op->getContext(),
                                  norm::EpsilonPlacement::None, 0.0);
  }
};
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK ::mlir::DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {
      MLIR_PLUGIN_API_VERSION, "Foreign", "0.1", [](DialectRegistry *registry) {
        registry->insert<foreign::ForeignDialect>();
        registry->addExtension(+[](MLIRContext *context,
                                   foreign::ForeignDialect *) {
          // The base interface first: the other refers to it.
          foreign::CentreOp::attachInterface<CentreRows, CentreNorm>(*context);
        });
      }};
}
