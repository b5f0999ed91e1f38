//===- BufferizableOpInterfaceImpl.cpp - Refusal of norm ops -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/BufferizableOpInterfaceImpl.h"

#include "Norm/IR/NormOps.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"

using namespace mlir;
using namespace mlir::norm;

namespace {
/// Norm ops are lowered on tensors. The model exists to say so.
template <typename OpTy>
struct RefusingModel
    : public bufferization::BufferizableOpInterface::ExternalModel<
          RefusingModel<OpTy>, OpTy> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const bufferization::AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const bufferization::AnalysisState &) const {
    return false;
  }
  bufferization::AliasingValueList
  getAliasingValues(Operation *, OpOperand &,
                    const bufferization::AnalysisState &) const {
    return {};
  }
  bool bufferizesToAllocation(Operation *, Value) const { return true; }
  // The analysis refuses with one error; the rewrite is reached only without
  // analysis and is followed by an error of the driver's.
  LogicalResult verifyAnalysis(Operation *op,
                               const bufferization::AnalysisState &) const {
    return refuse(op);
  }
  LogicalResult bufferize(Operation *op, RewriterBase &,
                          const bufferization::BufferizationOptions &,
                          bufferization::BufferizationState &) const {
    return refuse(op);
  }
  static LogicalResult refuse(Operation *op) {
    return op->emitOpError() << "is still there at bufferization, run "
                                "norm-lower-to-linalg first";
  }
};

template <typename... OpTys> void attachToAll(MLIRContext &context) {
  (OpTys::template attachInterface<RefusingModel<OpTys>>(context), ...);
}
} // namespace

void norm::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NormDialect *) {
    attachToAll<
#define GET_OP_LIST
#include "Norm/IR/NormOps.cpp.inc"
        >(*context);
  });
}
