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

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

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
    for (Operation *op : casts) {
      ImplicitLocOpBuilder builder(op->getLoc(), op);
      Value result = isa<arith::ExtFOp>(op) ? widen(builder, op->getOperand(0))
                                            : round(builder, op->getOperand(0));
      if (Type type = op->getResult(0).getType(); result.getType() != type)
        result = arith::ExtFOp::create(builder, type, result);
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
    }
  }

  /// `element`, or a vector of it if `x` is one.
  static Type like(Value x, Type element) {
    auto shaped = dyn_cast<ShapedType>(x.getType());
    return shaped ? Type(shaped.clone(element)) : element;
  }

  static Value constant(ImplicitLocOpBuilder &b, Type type, int32_t value) {
    TypedAttr number = b.getI32IntegerAttr(value);
    if (auto shaped = dyn_cast<ShapedType>(type))
      number = DenseElementsAttr::get(shaped, Attribute(number));
    return arith::ConstantOp::create(b, number);
  }

  static Value widen(ImplicitLocOpBuilder &b, Value x) {
    Type i32 = like(x, b.getI32Type());
    Value bits = arith::BitcastOp::create(b, like(x, b.getI16Type()), x);
    Value high = arith::ShLIOp::create(b, arith::ExtUIOp::create(b, i32, bits),
                                       constant(b, i32, 16));
    return arith::BitcastOp::create(b, like(x, b.getF32Type()), high);
  }

  static Value round(ImplicitLocOpBuilder &b, Value x) {
    Type i32 = like(x, b.getI32Type());
    Value sixteen = constant(b, i32, 16);
    Value bits = arith::BitcastOp::create(b, i32, x);
    Value isOdd = arith::AndIOp::create(
        b, arith::ShRUIOp::create(b, bits, sixteen), constant(b, i32, 1));
    Value half = arith::AddIOp::create(b, isOdd, constant(b, i32, 0x7fff));
    Value rounded = arith::AddIOp::create(b, bits, half);
    Value quiet = arith::OrIOp::create(b, bits, constant(b, i32, 0x400000));
    Value isNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
    Value chosen = arith::SelectOp::create(b, isNan, quiet, rounded);
    Value high = arith::TruncIOp::create(
        b, like(x, b.getI16Type()), arith::ShRUIOp::create(b, chosen, sixteen));
    return arith::BitcastOp::create(b, like(x, b.getBF16Type()), high);
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
