//===- EntryAbi.cpp - norm-entry-abi -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gives public functions the signature that callers of compiled code rely on,
// while the body is still on tensors, so that bufferization computes results
// in the caller's buffers instead of copying them there.
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "Norm/IR/NormInterfaces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::norm {
#define GEN_PASS_DEF_ENTRYABIPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

/// Attribute of an argument that may be the same memory as a result: the
/// result's index.
static constexpr StringLiteral kInplaceAttrName = "norm.inplace";
static constexpr StringLiteral kCInterfaceAttrName = "llvm.emit_c_interface";

//===----------------------------------------------------------------------===//
// Preconditions
//===----------------------------------------------------------------------===//

/// A type that the ABI can pass as a buffer, or one that is no tensor.
static LogicalResult checkType(func::FuncOp func, Type type, StringRef what,
                               unsigned index) {
  auto tensor = dyn_cast<TensorType>(type);
  if (!tensor)
    return success();
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked)
    return func.emitOpError() << "expected ranked tensors at the entry, got "
                              << type << " as " << what << " " << index;
  if (ranked.getEncoding())
    return func.emitOpError()
           << "expected tensors without an encoding at the entry, got " << type
           << " as " << what << " " << index;
  if (!BaseMemRefType::isValidElementType(ranked.getElementType()))
    return func.emitOpError()
           << "expected an element type that memory can hold, got " << type
           << " as " << what << " " << index;
  return success();
}

static LogicalResult checkInplace(func::FuncOp func, unsigned index,
                                  DenseMap<int64_t, unsigned> &sharers) {
  Attribute attr = func.getArgAttr(index, kInplaceAttrName);
  if (!attr)
    return success();
  auto result = dyn_cast<IntegerAttr>(attr);
  if (!result || result.getInt() < 0 ||
      result.getInt() >= static_cast<int64_t>(func.getNumResults()))
    return func.emitOpError()
           << "expected '" << kInplaceAttrName << "' of argument " << index
           << " to be the index of one of " << func.getNumResults()
           << " results, got " << attr;
  Type argType = func.getArgumentTypes()[index];
  Type resultType = func.getResultTypes()[result.getInt()];
  if (!isa<RankedTensorType>(argType) || argType != resultType)
    return func.emitOpError()
           << "expected '" << kInplaceAttrName << "' of argument " << index
           << " to name a result of its type " << argType << ", got "
           << resultType;
  auto [other, isNew] = sharers.try_emplace(result.getInt(), index);
  if (!isNew)
    return func.emitOpError()
           << "expected one argument with '" << kInplaceAttrName << "' "
           << result.getInt() << ", got arguments " << other->second << " and "
           << index;
  return success();
}

static LogicalResult checkSignature(func::FuncOp func) {
  DenseMap<int64_t, unsigned> sharers;
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes()))
    if (failed(checkType(func, type, "argument", i)) ||
        failed(checkInplace(func, i, sharers)))
      return failure();
  for (auto [i, type] : llvm::enumerate(func.getResultTypes())) {
    if (failed(checkType(func, type, "result", i)))
      return failure();
    if (isa<BaseMemRefType>(type))
      return func.emitOpError()
             << "expected results to be tensors or scalars, got " << type
             << " as result " << i;
  }
  return success();
}

/// What bufferization could not deal with in the body.
static LogicalResult checkBody(func::FuncOp func) {
  if (!func.getBody().hasOneBlock())
    return func.emitOpError()
           << "expected one block before norm-entry-abi, got "
           << func.getBody().getBlocks().size();
  WalkResult result = func.walk([](Operation *op) {
    if (isa<RowOpInterface>(op)) {
      op->emitOpError() << "is still there at bufferization, run "
                           "norm-lower-to-linalg first";
      return WalkResult::interrupt();
    }
    auto isTensor = llvm::IsaPred<TensorType>;
    if (auto call = dyn_cast<CallOpInterface>(op))
      if (llvm::any_of(op->getOperandTypes(), isTensor) ||
          llvm::any_of(op->getResultTypes(), isTensor)) {
        op->emitOpError() << "expected calls on tensors to be inlined before "
                             "norm-entry-abi";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

static MemRefType stridedType(ShapedType type, bool unitInnerStride) {
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  if (unitInnerStride && !strides.empty())
    strides.back() = 1;
  auto layout =
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides);
  return MemRefType::get(type.getShape(), type.getElementType(), layout);
}

/// A copy of `arg` in fresh memory, which buffer deallocation frees: what an
/// argument that shares its memory with a result is read through.
static Value copyToScratch(OpBuilder &builder, Location loc, Value arg) {
  auto type = cast<MemRefType>(arg.getType());
  SmallVector<Value> sizes;
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (type.isDynamicDim(i))
      sizes.push_back(memref::DimOp::create(builder, loc, arg, i));
  Value scratch = memref::AllocOp::create(
      builder, loc, MemRefType::get(type.getShape(), type.getElementType()),
      sizes);
  memref::CopyOp::create(builder, loc, arg, scratch);
  return scratch;
}

/// Replaces tensor arguments of `func` by strided memrefs that are only read,
/// and tensor results by contiguous memrefs that are only written.
static void rewriteSignature(func::FuncOp func, bool unitInnerStride) {
  Block &body = func.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  Location loc = func.getLoc();

  for (auto [i, arg] : llvm::enumerate(body.getArguments())) {
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (!type)
      continue;
    arg.setType(stridedType(type, unitInnerStride));
    Value buffer = arg;
    if (func.getArgAttr(i, kInplaceAttrName))
      buffer = copyToScratch(builder, loc, arg);
    auto tensor = bufferization::ToTensorOp::create(builder, loc, type, buffer,
                                                    /*restrict=*/true);
    arg.replaceUsesWithIf(tensor, [&](OpOperand &use) {
      return use.getOwner() != tensor &&
             !isa<memref::DimOp, memref::CopyOp>(use.getOwner());
    });
  }

  auto ret = cast<func::ReturnOp>(body.getTerminator());
  builder.setInsertionPoint(ret);
  SmallVector<Value> scalars;
  SmallVector<Type> scalarTypes;
  for (Value value : ret.getOperands()) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type) {
      scalars.push_back(value);
      scalarTypes.push_back(value.getType());
      continue;
    }
    Value out = body.addArgument(
        MemRefType::get(type.getShape(), type.getElementType()), loc);
    auto store = bufferization::MaterializeInDestinationOp::create(
        builder, ret.getLoc(), /*result=*/Type(), value, out,
        /*restrict=*/true);
    store.setWritable(true);
  }
  ret.getOperandsMutable().assign(scalars);

  SmallVector<Attribute> argAttrs;
  for (unsigned i = 0, e = func.getNumArguments(); i < e; ++i)
    argAttrs.push_back(func.getArgAttrDict(i) ? func.getArgAttrDict(i)
                                              : builder.getDictionaryAttr({}));
  argAttrs.resize(body.getNumArguments(), builder.getDictionaryAttr({}));
  func.removeResAttrsAttr();
  func.setType(builder.getFunctionType(body.getArgumentTypes(), scalarTypes));
  func.setArgAttrsAttr(builder.getArrayAttr(argAttrs));
}

/// Whether every strided argument has inner stride 1, or no second element
/// along its innermost dimension. Null if no argument can have another stride.
static Value buildUnitStrideTest(OpBuilder &builder, Location loc,
                                 ArrayRef<BlockArgument> strided) {
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value all;
  for (BlockArgument arg : strided) {
    auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, arg);
    Value isUnit = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                         metadata.getStrides().back(), one);
    Value isShort =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule,
                              metadata.getSizes().back(), one);
    Value fits = arith::OrIOp::create(builder, loc, isUnit, isShort);
    all =
        all ? arith::AndIOp::create(builder, loc, all, fits).getResult() : fits;
  }
  return all;
}

/// Calls `callee` on arguments in the types that it takes.
static func::CallOp buildCall(OpBuilder &builder, Location loc,
                              func::FuncOp callee, ValueRange arguments) {
  SmallVector<Value> operands;
  for (auto [arg, type] : llvm::zip_equal(arguments, callee.getArgumentTypes()))
    operands.push_back(
        arg.getType() == type
            ? arg
            : memref::CastOp::create(builder, loc, type, arg).getResult());
  return func::CallOp::create(builder, loc, callee, operands);
}

/// Empties `func` but for its arguments.
static Block *startBody(OpBuilder &builder, func::FuncOp func) {
  SmallVector<Type> argTypes(func.getArgumentTypes());
  SmallVector<Location> argLocs;
  for (BlockArgument arg : func.getArguments())
    argLocs.push_back(arg.getLoc());
  func.getBody().getBlocks().clear();
  return builder.createBlock(&func.getBody(), {}, argTypes, argLocs);
}

/// Moves the body of `func` to a private function that may assume that
/// arguments have inner stride 1. What takes its place tests that, and lets
/// another private function copy arguments that have other strides: one read of
/// each element is all that these are good for, and a second body would take
/// as long to compile as the first.
static void specialize(func::FuncOp func, ArrayRef<unsigned> stridedArgs,
                       SymbolTable &symbols) {
  OpBuilder builder(func);
  Location loc = func.getLoc();
  auto internal =
      LLVM::LinkageAttr::get(func.getContext(), LLVM::Linkage::Internal);
  auto addClone = [&](StringRef suffix) {
    auto clone = cast<func::FuncOp>(func->clone());
    clone.setName((func.getName() + suffix).str());
    clone.setPrivate();
    clone->setAttr("llvm.linkage", internal);
    symbols.insert(clone, std::next(Block::iterator(func)));
    return clone;
  };
  func::FuncOp anyStride = addClone("__strided");
  func::FuncOp unitStride = addClone("__unit");

  // The same body on more precise types.
  Block &unitBody = unitStride.getBody().front();
  for (unsigned i : stridedArgs) {
    BlockArgument arg = unitBody.getArgument(i);
    arg.setType(stridedType(cast<ShapedType>(arg.getType()),
                            /*unitInnerStride=*/true));
  }
  unitStride.setType(builder.getFunctionType(unitBody.getArgumentTypes(),
                                             unitStride.getResultTypes()));

  // A function of its own, so that no pass makes scratch memory earlier.
  anyStride->setAttr(kCopiesArgumentsAttrName, builder.getUnitAttr());
  Block *copying = startBody(builder, anyStride);
  SmallVector<Value> copies(copying->getArguments());
  for (unsigned i : stridedArgs)
    copies[i] = copyToScratch(builder, loc, copies[i]);
  auto onCopies = buildCall(builder, loc, unitStride, copies);
  func::ReturnOp::create(builder, loc, onCopies.getResults());

  Block *body = startBody(builder, func);
  SmallVector<BlockArgument> strided;
  for (unsigned i : stridedArgs)
    strided.push_back(body->getArgument(i));
  Value isUnit = buildUnitStrideTest(builder, loc, strided);
  auto branch = scf::IfOp::create(builder, loc, func.getResultTypes(), isUnit,
                                  /*withElseRegion=*/true);
  for (auto [block, callee] : {std::pair(branch.thenBlock(), unitStride),
                               std::pair(branch.elseBlock(), anyStride)}) {
    if (!block->empty())
      block->back().erase();
    builder.setInsertionPointToEnd(block);
    auto call = buildCall(builder, loc, callee, body->getArguments());
    scf::YieldOp::create(builder, loc, call.getResults());
  }
  builder.setInsertionPointToEnd(body);
  func::ReturnOp::create(builder, loc, branch.getResults());
}

namespace {
struct EntryAbi : public norm::impl::EntryAbiPassBase<EntryAbi> {
  using EntryAbiPassBase::EntryAbiPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    for (auto func : llvm::to_vector(module.getOps<func::FuncOp>())) {
      if (func.isExternal() || !func.isPublic())
        continue;
      // The attribute marks what was converted already.
      if (func->hasAttr(kCInterfaceAttrName) &&
          llvm::none_of(func.getArgumentTypes(), llvm::IsaPred<TensorType>) &&
          llvm::none_of(func.getResultTypes(), llvm::IsaPred<TensorType>))
        continue;
      if (failed(checkSignature(func)) || failed(checkBody(func)))
        return signalPassFailure();
      SmallVector<unsigned> strided;
      for (auto [i, type] : llvm::enumerate(func.getArgumentTypes()))
        if (auto tensor = dyn_cast<RankedTensorType>(type))
          if (tensor.getRank() > 0)
            strided.push_back(i);
      rewriteSignature(func, strides == EntryStrides::Unit);
      if (strides == EntryStrides::Dispatch && !strided.empty())
        specialize(func, strided, symbols);
      func->setAttr(kCInterfaceAttrName, UnitAttr::get(&getContext()));
    }
  }
};
} // namespace
