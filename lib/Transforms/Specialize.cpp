//===- Specialize.cpp - norm-specialize -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Specialize.h"

#include "Norm/Transforms/Passes.h"

#include "Norm/IR/NormInterfaces.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::norm {
#define GEN_PASS_DEF_SPECIALIZEPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

bool norm::isSpecialization(Type type, Type general) {
  if (type == general)
    return true;
  auto known = dyn_cast<RankedTensorType>(type),
       wanted = dyn_cast<RankedTensorType>(general);
  return known && wanted && known.getRank() == wanted.getRank() &&
         known.getElementType() == wanted.getElementType() &&
         known.getEncoding() == wanted.getEncoding() &&
         llvm::all_of(llvm::zip(known.getShape(), wanted.getShape()),
                      [](auto extents) {
                        auto [extent, other] = extents;
                        return extent == other || ShapedType::isDynamic(other);
                      });
}

//===----------------------------------------------------------------------===//
// Passing extents on
//===----------------------------------------------------------------------===//

/// The value with the most known extents that `value` is a cast of.
static Value lookThroughCasts(Value value) {
  while (auto cast = value.getDefiningOp<tensor::CastOp>()) {
    if (!isSpecialization(cast.getSource().getType(), value.getType()))
      break;
    value = cast.getSource();
  }
  return value;
}

/// Dimensions of operands and results of an op that have the same extent: pairs
/// of a tensor and its dimension, by what they have in common.
using EqualDims = SmallVector<SmallVector<std::pair<Value, int64_t>>>;

static EqualDims equalDims(Operation *op) {
  EqualDims equal;
  if (auto rowOp = dyn_cast<RowOpInterface>(op)) {
    equal.resize(rowOp.getRank());
    for (int64_t axis = 0; axis < rowOp.getRank(); ++axis)
      equal[axis].push_back({rowOp.getInput(), axis});
    for (ExtentAgreement agreement : extentAgreements(rowOp))
      equal[agreement.axis].push_back({agreement.tensor, agreement.dim});
  } else if (OpTrait::hasElementwiseMappableTraits(op)) {
    auto add = [&](Value value) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (!type)
        return;
      equal.resize(type.getRank());
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        equal[dim].push_back({value, dim});
    };
    llvm::for_each(op->getOperands(), add);
    llvm::for_each(op->getResults(), add);
  }
  return equal;
}

namespace {
/// Gives operands and results of an op the extents that any of them has.
struct ShareExtents : public RewritePattern {
  ShareExtents(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    llvm::MapVector<Value, SmallVector<int64_t>> shapes;
    for (auto &dims : equalDims(op)) {
      int64_t extent = ShapedType::kDynamic;
      for (auto [tensor, dim] : dims) {
        Value known = lookThroughCasts(tensor);
        int64_t found = cast<RankedTensorType>(known.getType()).getDimSize(dim);
        // Extents that contradict each other are left to fail at run time.
        if (ShapedType::isDynamic(extent))
          extent = found;
        else if (ShapedType::isStatic(found) && found != extent)
          return failure();
      }
      for (auto [tensor, dim] : dims) {
        auto type = cast<RankedTensorType>(tensor.getType());
        auto &shape =
            shapes.insert({tensor, SmallVector<int64_t>(type.getShape())})
                .first->second;
        if (type.isDynamicDim(dim))
          shape[dim] = extent;
      }
    }
    auto typeOf = [&](Value tensor) -> Type {
      auto found = shapes.find(tensor);
      if (found == shapes.end())
        return tensor.getType();
      return cast<RankedTensorType>(tensor.getType()).clone(found->second);
    };
    auto isSame = [&](Value value) { return typeOf(value) == value.getType(); };
    if (llvm::all_of(op->getOperands(), isSame) &&
        llvm::all_of(op->getResults(), isSame))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { setTypes(op, typeOf, rewriter); });
    return success();
  }

private:
  static void setTypes(Operation *op, function_ref<Type(Value)> typeOf,
                       PatternRewriter &rewriter) {
    Location loc = op->getLoc();
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get(), known = lookThroughCasts(value);
      Type type = typeOf(value);
      if (type == value.getType())
        continue;
      operand.set(
          known.getType() == type
              ? known
              : tensor::CastOp::create(rewriter, loc, type, known).getResult());
    }
    rewriter.setInsertionPointAfter(op);
    for (OpResult result : op->getResults()) {
      Type type = typeOf(result), old = result.getType();
      if (type == old)
        continue;
      result.setType(type);
      auto general = tensor::CastOp::create(rewriter, loc, old, result);
      rewriter.replaceAllUsesExcept(result, general, general);
    }
  }
};
} // namespace

/// Canonicalizations that pass extents on through ops of other dialects.
static void addCanonicalizations(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  auto passesExtents = [](StringRef dialect) {
    return dialect == "tensor" || dialect == "linalg";
  };
  for (Dialect *dialect : context->getLoadedDialects())
    if (passesExtents(dialect->getNamespace()))
      dialect->getCanonicalizationPatterns(patterns);
  for (RegisteredOperationName op : context->getRegisteredOperations())
    if (passesExtents(op.getDialectNamespace()))
      op.getCanonicalizationPatterns(patterns, context);
}

/// Results that may share memory with arguments get their types.
static void shareInplaceTypes(func::FuncOp func, func::ReturnOp ret) {
  OpBuilder builder(ret);
  for (BlockArgument arg : func.getArguments()) {
    auto index = func.getArgAttrOfType<IntegerAttr>(arg.getArgNumber(),
                                                    kInplaceAttrName);
    if (!index || index.getInt() < 0 ||
        index.getInt() >= static_cast<int64_t>(ret.getNumOperands()))
      continue;
    OpOperand &operand = ret->getOpOperand(index.getInt());
    if (operand.get().getType() != arg.getType() &&
        isSpecialization(arg.getType(), operand.get().getType()))
      operand.set(tensor::CastOp::create(builder, ret.getLoc(), arg.getType(),
                                         operand.get()));
  }
}

LogicalResult norm::specializeArguments(func::FuncOp func, TypeRange types) {
  if (!func.getBody().hasOneBlock())
    return func.emitOpError()
           << "expected one block, got " << func.getBody().getBlocks().size();
  func->removeAttr(kVersionsAttrName);
  Block &body = func.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  for (auto [arg, type] : llvm::zip_equal(body.getArguments(), types)) {
    Type general = arg.getType();
    if (type == general)
      continue;
    arg.setType(type);
    auto cast = tensor::CastOp::create(builder, arg.getLoc(), general, arg);
    arg.replaceAllUsesExcept(cast, cast);
  }
  RewritePatternSet patterns(func.getContext());
  patterns.add<ShareExtents>(func.getContext());
  addCanonicalizations(patterns);
  if (failed(applyPatternsGreedily(func, std::move(patterns))))
    return func.emitOpError("extents could not be passed on to its ops");

  auto ret = cast<func::ReturnOp>(body.getTerminator());
  for (OpOperand &operand : ret->getOpOperands()) {
    Value general = operand.get();
    operand.set(lookThroughCasts(general));
    if (general.use_empty())
      general.getDefiningOp()->erase();
  }
  shareInplaceTypes(func, ret);
  func.setType(
      builder.getFunctionType(body.getArgumentTypes(), ret->getOperandTypes()));
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// The types of arguments that each version of `func` is for; fails with an
/// error if they cannot be that.
static FailureOr<SmallVector<SmallVector<Type>>>
parseVersions(func::FuncOp func) {
  auto refuse = [&](size_t index) {
    return func.emitOpError() << "expected version " << index << " in '"
                              << kVersionsAttrName << "' to be ";
  };
  auto versions = func->getAttrOfType<ArrayAttr>(kVersionsAttrName);
  if (!versions)
    return func.emitOpError()
           << "expected '" << kVersionsAttrName
           << "' to be a list of lists of argument types, got "
           << func->getAttr(kVersionsAttrName);
  SmallVector<SmallVector<Type>> parsed;
  for (auto [index, version] : llvm::enumerate(versions)) {
    auto list = dyn_cast<ArrayAttr>(version);
    if (!list || !llvm::all_of(list, llvm::IsaPred<TypeAttr>))
      return refuse(index) << "a list of argument types, got " << version;
    if (list.size() != func.getNumArguments())
      return refuse(index) << func.getNumArguments() << " types, got "
                           << list.size();
    auto types = llvm::map_to_vector(list.getAsValueRange<TypeAttr>(),
                                     [](Type type) { return type; });
    for (auto [i, type] : llvm::enumerate(types))
      if (!isSpecialization(type, func.getArgumentTypes()[i]))
        return refuse(index) << func.getArgumentTypes()[i]
                             << " with more static extents for argument " << i
                             << ", got " << type;
    parsed.push_back(types);
  }
  return parsed;
}

namespace {
struct Specialize : public norm::impl::SpecializePassBase<Specialize> {
  using SpecializePassBase::SpecializePassBase;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto func : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      // What is private has no caller that chooses.
      if (func->hasAttr(kVersionsAttrName) && func.isPublic() &&
          !func.isExternal())
        if (failed(addVersions(func, symbols)))
          return signalPassFailure();
  }

  LogicalResult addVersions(func::FuncOp func, SymbolTable &symbols) {
    auto versions = parseVersions(func);
    if (failed(versions))
      return failure();
    func->removeAttr(kVersionsAttrName);
    auto position = std::next(Block::iterator(func));
    for (auto [index, types] : llvm::enumerate(*versions)) {
      auto version = cast<func::FuncOp>(func->clone());
      version.setName((func.getName() + "__v" + Twine(index)).str());
      version->setAttr(kVersionOfAttrName,
                       FlatSymbolRefAttr::get(func.getNameAttr()));
      symbols.insert(version, position);
      if (failed(specializeArguments(version, types)))
        return failure();
      ++numVersions;
    }
    return success();
  }
};
} // namespace
