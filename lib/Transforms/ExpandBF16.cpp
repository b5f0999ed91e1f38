//===- ExpandBF16.cpp - norm-expand-bf16, norm-bf16-as-i16 -----*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// bf16 where a CPU has no instruction for it: its casts are integer arithmetic,
// and what is only moved is moved as 16 bits.
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "FloatBits.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"

namespace mlir::norm {
#define GEN_PASS_DEF_EXPANDBF16PASS
#define GEN_PASS_DEF_BF16ASI16PASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;

namespace {
/// What is chosen for a NaN has 32 bits, as the comparison has, or LLVM would
/// take the choice apart too, as it does upstream's.
struct ExpandBF16 : public norm::impl::ExpandBF16PassBase<ExpandBF16> {
  void runOnOperation() override {
    SmallVector<Operation *> casts;
    getOperation()->walk([&](Operation *op) {
      if (auto extension = dyn_cast<arith::ExtFOp>(op)) {
        if (getElementTypeOrSelf(extension.getIn()).isBF16())
          casts.push_back(op);
      } else if (auto truncation = dyn_cast<arith::TruncFOp>(op)) {
        if (getElementTypeOrSelf(truncation.getIn()).isF32() &&
            getElementTypeOrSelf(truncation.getType()).isBF16())
          casts.push_back(op);
      }
    });
    OpBuilder builder(&getContext());
    for (Operation *op : casts) {
      builder.setInsertionPoint(op);
      auto extension = dyn_cast<arith::ExtFOp>(op);
      Value result = extension ? norm::widenBF16(builder, extension)
                               : round(builder, cast<arith::TruncFOp>(op));
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
    }
  }

  static Value round(OpBuilder &builder, arith::TruncFOp op) {
    Value x = op.getIn();
    norm::BitBuilder b(builder, op.getLoc(), x.getType());
    Value sixteen = b.constant(16), bits = b.asBits(x);
    Value isOdd = b.make<arith::AndIOp>(b.make<arith::ShRUIOp>(bits, sixteen),
                                        b.constant(1));
    Value half = b.make<arith::AddIOp>(isOdd, b.constant(0x7fff));
    Value rounded = b.make<arith::AddIOp>(bits, half);
    Value quiet = b.make<arith::OrIOp>(bits, b.constant(0x400000));
    Value isNan = b.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x);
    Value chosen = b.make<arith::SelectOp>(isNan, quiet, rounded);
    Value high = b.make<arith::TruncIOp>(
        norm::withElement(x.getType(), builder.getI16Type()),
        b.make<arith::ShRUIOp>(chosen, sixteen));
    return b.make<arith::BitcastOp>(op.getType(), high);
  }
};

struct BF16AsI16 : public norm::impl::BF16AsI16PassBase<BF16AsI16> {
  void runOnOperation() override {
    if (getOperation()
            ->walk([](Operation *op) { return WalkResult(movesOnly(op)); })
            .wasInterrupted())
      return;
    Builder b(&getContext());
    Type i16 = b.getI16Type();
    getOperation()->walk([&](LLVM::ConstantOp op) {
      if (!getElementTypeOrSelf(op.getType()).isBF16())
        return;
      if (auto number = dyn_cast<FloatAttr>(op.getValue()))
        op.setValueAttr(
            b.getIntegerAttr(i16, number.getValue().bitcastToAPInt()));
      else if (auto numbers = dyn_cast<DenseElementsAttr>(op.getValue()))
        op.setValueAttr(numbers.bitcast(i16));
    });
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](BFloat16Type) { return i16; });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
  }

  /// Whether `op` does no more with bf16 than with any 16 bits.
  static LogicalResult movesOnly(Operation *op) {
    auto isBF16 = [](Type type) { return getElementTypeOrSelf(type).isBF16(); };
    if (auto func = dyn_cast<LLVM::LLVMFuncOp>(op)) {
      LLVM::LLVMFunctionType type = func.getFunctionType();
      return success(!isBF16(type.getReturnType()) &&
                     llvm::none_of(type.getParams(), isBF16));
    }
    bool isMove =
        isa<LLVM::LoadOp, LLVM::StoreOp, LLVM::MaskedLoadOp,
            LLVM::MaskedStoreOp, LLVM::BitcastOp, LLVM::SelectOp,
            LLVM::ShuffleVectorOp, LLVM::InsertElementOp,
            LLVM::ExtractElementOp, LLVM::InsertValueOp, LLVM::ExtractValueOp,
            LLVM::ConstantOp, LLVM::UndefOp, LLVM::PoisonOp, LLVM::ZeroOp,
            LLVM::BrOp, LLVM::CondBrOp>(op);
    return success(isMove || (llvm::none_of(op->getOperandTypes(), isBF16) &&
                              llvm::none_of(op->getResultTypes(), isBF16)));
  }
};
} // namespace
