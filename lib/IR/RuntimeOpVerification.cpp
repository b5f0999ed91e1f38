//===- RuntimeOpVerification.cpp - Checks of run-time extents --*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/IR/RuntimeOpVerification.h"

#include "Norm/IR/NormOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/RuntimeVerifiableOpInterface.h"

using namespace mlir;
using namespace mlir::norm;

namespace {
using MessageFn = function_ref<std::string(Operation *, StringRef)>;

/// Emits the assertions of one op, before it.
struct RuntimeVerifier {
  RowOpInterface op;
  OpBuilder &builder;
  Location loc;
  MessageFn message;

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value extent(Value tensor, int64_t dim) {
    return tensor::DimOp::create(builder, loc, tensor, dim);
  }
  void assertThat(arith::CmpIPredicate predicate, Value x, Value y,
                  const Twine &text) {
    Value holds = arith::CmpIOp::create(builder, loc, predicate, x, y);
    cf::AssertOp::create(builder, loc, holds, message(op, text.str()));
  }

  /// V2, V7, V8, V9, V15: extents of operands are those of x. Those of results
  /// are what the op makes them, or a static promise about x.
  void assertExtents() {
    RankedTensorType xType = op.getInput().getType();
    for (auto [tensor, dim, axis] : extentAgreements(op)) {
      auto type = cast<RankedTensorType>(tensor.getType());
      bool isResult = tensor.getDefiningOp() == op.getOperation();
      if (!xType.isDynamicDim(axis) && (isResult || !type.isDynamicDim(dim)))
        continue;
      if (isResult && type.isDynamicDim(dim))
        continue;
      Value actual =
          isResult ? index(type.getDimSize(dim)) : extent(tensor, dim);
      assertThat(arith::CmpIPredicate::eq, actual, extent(op.getInput(), axis),
                 "expected dimension " + Twine(dim) + " of " +
                     (isResult ? "a result" : "an operand") +
                     " to have the extent of axis " + Twine(axis) + " of 'x'");
    }
  }

  /// V5: the groups divide the channels.
  void assertGroups() {
    std::optional<int64_t> axis = op.getGroupedAxis();
    if (!axis || !op.getInput().getType().isDynamicDim(*axis))
      return;
    Value rest = arith::RemUIOp::create(
        builder, loc, extent(op.getInput(), *axis), index(op.getNumGroups()));
    assertThat(arith::CmpIPredicate::eq, rest, index(0),
               "expected " + Twine(op.getNumGroups()) +
                   " groups to divide the channels of 'x' (V5)");
  }

  /// V6 and V17: enough elements for the variance that is asked for.
  void assertCount() {
    auto norm = dyn_cast<NormOpInterface>(op.getOperation());
    if (!norm || op.getStaticReducedCount() || norm.hasGivenStatistics())
      return;
    bool isTraining = isa<BatchNormTrainingOp>(op.getOperation());
    int64_t least = std::max<int64_t>(norm.getCorrection(), isTraining ? 1 : 0);
    if (least == 0)
      return;
    Value count = index(1);
    for (int64_t axis : op.getReducedAxes())
      count = arith::MulIOp::create(builder, loc, count,
                                    extent(op.getInput(), axis));
    count =
        arith::DivUIOp::create(builder, loc, count, index(op.getNumGroups()));
    // No elements at all are well defined (V16): only 1 ... least are not.
    Value less = arith::SubIOp::create(builder, loc, count, index(1));
    assertThat(arith::CmpIPredicate::uge, less, index(least),
               "expected more than " + Twine(least) + " reduced elements, or " +
                   "none (" + (isTraining ? "V6" : "V17") + ")");
  }
};

template <typename OpTy>
struct VerifyingModel
    : public RuntimeVerifiableOpInterface::ExternalModel<VerifyingModel<OpTy>,
                                                         OpTy> {
  void generateRuntimeVerification(Operation *op, OpBuilder &builder,
                                   Location loc, MessageFn message) const {
    RuntimeVerifier verifier{cast<RowOpInterface>(op), builder, loc, message};
    verifier.assertExtents();
    verifier.assertGroups();
    verifier.assertCount();
  }
};

template <typename... OpTys> void attachToAll(MLIRContext &context) {
  (OpTys::template attachInterface<VerifyingModel<OpTys>>(context), ...);
}
} // namespace

void norm::registerRuntimeVerifiableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NormDialect *) {
    attachToAll<
#define GET_OP_LIST
#include "Norm/IR/NormOps.cpp.inc"
        >(*context);
  });
}
