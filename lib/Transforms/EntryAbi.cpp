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
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::norm {
#define GEN_PASS_DEF_ENTRYABIPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

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

/// The ops that merge dimensions of `tensor`. One element has no strides.
static SmallVector<tensor::CollapseShapeOp> findMerges(Value tensor) {
  SmallVector<tensor::CollapseShapeOp> merges;
  for (Operation *user : tensor.getUsers())
    if (auto merge = dyn_cast<tensor::CollapseShapeOp>(user))
      if (merge.getResultType().getRank() > 0)
        merges.push_back(merge);
  return merges;
}

/// A view of `arg` with the dimensions merged that `merge` does; the strides
/// are known to allow it, see buildMergeTest.
static Value mergeDims(OpBuilder &builder, Value arg,
                       tensor::CollapseShapeOp merge) {
  Location loc = merge.getLoc();
  auto type = cast<MemRefType>(arg.getType());
  auto known = type.getStridesAndOffset().first;
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, arg);
  ArrayRef<int64_t> shape = merge.getResultType().getShape();
  SmallVector<int64_t> strides;
  SmallVector<OpFoldResult> sizes, steps;
  for (auto [extent, group] :
       llvm::zip_equal(shape, merge.getReassociationIndices())) {
    int64_t last = group.back();
    strides.push_back(known[last]);
    steps.push_back(ShapedType::isStatic(known[last])
                        ? OpFoldResult(builder.getIndexAttr(known[last]))
                        : OpFoldResult(metadata.getStrides()[last]));
    if (ShapedType::isStatic(extent)) {
      sizes.push_back(builder.getIndexAttr(extent));
      continue;
    }
    Value size = metadata.getSizes()[last];
    for (int64_t dim : ArrayRef(group).drop_back())
      size =
          arith::MulIOp::create(builder, loc, size, metadata.getSizes()[dim]);
    sizes.push_back(size);
  }
  auto mergedType =
      MemRefType::get(shape, type.getElementType(),
                      StridedLayoutAttr::get(builder.getContext(),
                                             ShapedType::kDynamic, strides));
  return memref::ReinterpretCastOp::create(
      builder, loc, mergedType, metadata.getBaseBuffer(),
      OpFoldResult(metadata.getOffset()), sizes, steps);
}

/// Replaces tensor arguments of `func` by strided memrefs that are only read,
/// and tensor results by contiguous memrefs that are only written.
static void rewriteSignature(func::FuncOp func, bool unitInnerStride) {
  Block &body = func.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  Location loc = func.getLoc();
  SmallVector<tensor::CollapseShapeOp> merges;

  for (auto [i, arg] : llvm::enumerate(body.getArguments())) {
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (!type)
      continue;
    arg.setType(stridedType(type, unitInnerStride));
    Value buffer = arg;
    // A copy is contiguous.
    bool isCopied = func.getArgAttr(i, kInplaceAttrName) != nullptr;
    if (isCopied)
      buffer = copyToScratch(builder, loc, arg);
    auto tensor = bufferization::ToTensorOp::create(builder, loc, type, buffer,
                                                    /*restrict=*/true);
    arg.replaceUsesWithIf(tensor, [&](OpOperand &use) {
      return use.getOwner() != tensor &&
             !isa<memref::DimOp, memref::CopyOp>(use.getOwner());
    });
    if (isCopied)
      continue;
    for (tensor::CollapseShapeOp merge : findMerges(tensor)) {
      merge.replaceAllUsesWith(
          bufferization::ToTensorOp::create(
              builder, merge.getLoc(), merge.getResultType(),
              mergeDims(builder, arg, merge), /*restrict=*/true)
              .getResult());
      merges.push_back(merge);
    }
  }
  for (tensor::CollapseShapeOp merge : merges)
    merge.erase();

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
    // Dimensions that were split last are so in the buffer.
    auto split = value.getDefiningOp<tensor::ExpandShapeOp>();
    if (split && split.getSrcType().getRank() > 0) {
      value = split.getSrc();
      out = memref::CollapseShapeOp::create(builder, loc, out,
                                            split.getReassociationIndices());
    }
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

namespace {
/// What the fast body takes for granted of an argument's memory.
struct Layout {
  unsigned argument;
  /// The innermost stride is 1.
  bool isUnit;
  /// Groups of dimensions that lie in a row, each a list of lists.
  SmallVector<SmallVector<ReassociationIndices>> merges;
};
} // namespace

/// What the body of `func`, still on tensors, is to take for granted.
static SmallVector<Layout> findLayouts(func::FuncOp func, bool isUnit) {
  SmallVector<Layout> layouts;
  for (auto [i, arg] : llvm::enumerate(func.getArguments())) {
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (!type || type.getRank() == 0)
      continue;
    Layout layout{static_cast<unsigned>(i), isUnit, {}};
    if (!func.getArgAttr(i, kInplaceAttrName))
      for (tensor::CollapseShapeOp merge : findMerges(arg))
        if (!llvm::is_contained(layout.merges, merge.getReassociationIndices()))
          layout.merges.push_back(merge.getReassociationIndices());
    if (isUnit || !layout.merges.empty())
      layouts.push_back(layout);
  }
  return layouts;
}

namespace {
/// Builds the conjunction of comparisons of sizes and strides.
class LayoutTest {
public:
  LayoutTest(OpBuilder &builder, Location loc)
      : builder(builder), loc(loc),
        one(arith::ConstantIndexOp::create(builder, loc, 1)) {}

  /// `arg` lies as `layout` says. A stride does not matter where there is no
  /// second element along its dimension.
  void add(Value arg, const Layout &layout) {
    auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, arg);
    SmallVector<Value> strides(metadata.getStrides());
    auto expect = [&](int64_t dim, Value stride) {
      Value isEqual = arith::CmpIOp::create(
          builder, loc, arith::CmpIPredicate::eq, strides[dim], stride);
      Value isShort =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule,
                                metadata.getSizes()[dim], one);
      Value fits = arith::OrIOp::create(builder, loc, isEqual, isShort);
      all = all ? arith::AndIOp::create(builder, loc, all, fits).getResult()
                : fits;
    };
    if (layout.isUnit) {
      expect(strides.size() - 1, one);
      strides.back() = one;
    }
    for (ArrayRef<ReassociationIndices> groups : layout.merges)
      for (const ReassociationIndices &group : groups) {
        Value step = strides[group.back()];
        for (size_t i = group.size() - 1; i > 0; --i) {
          step = arith::MulIOp::create(builder, loc, step,
                                       metadata.getSizes()[group[i]]);
          expect(group[i - 1], step);
        }
      }
  }
  Value get() const { return all; }

private:
  OpBuilder &builder;
  Location loc;
  Value one, all;
};
} // namespace

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

/// Calls `callee` where `test` holds, and otherwise what `buildOther` does, on
/// the same arguments. Returns the results.
static ValueRange buildChoice(OpBuilder &builder, Location loc, Value test,
                              func::FuncOp callee, ValueRange arguments,
                              function_ref<ValueRange()> buildOther) {
  auto branch = scf::IfOp::create(builder, loc, callee.getResultTypes(), test,
                                  /*withElseRegion=*/true);
  auto fill = [&](Block *block, function_ref<ValueRange()> build) {
    OpBuilder::InsertionGuard guard(builder);
    if (!block->empty())
      block->back().erase();
    builder.setInsertionPointToEnd(block);
    scf::YieldOp::create(builder, loc, build());
  };
  fill(branch.thenBlock(), [&]() -> ValueRange {
    return buildCall(builder, loc, callee, arguments).getResults();
  });
  fill(branch.elseBlock(), buildOther);
  return branch.getResults();
}

/// Makes `func` one that only this module calls.
static void makeInternal(func::FuncOp func) {
  func.setPrivate();
  func->removeAttr(kCInterfaceAttrName);
  func->removeAttr(kVersionOfAttrName);
  func->setAttr(
      "llvm.linkage",
      LLVM::LinkageAttr::get(func.getContext(), LLVM::Linkage::Internal));
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

/// Moves the body of `func`, still on tensors, to a private function that takes
/// `layouts` for granted. What takes its place tests that, and lets another
/// private function copy arguments that lie otherwise: one read of each element
/// is all that these are good for, and a second body would take as long to
/// compile as the first.
static void specialize(func::FuncOp func, ArrayRef<Layout> layouts,
                       bool unitInnerStride, bool unitEntry,
                       SymbolTable &symbols) {
  OpBuilder builder(func);
  Location loc = func.getLoc();
  auto addClone = [&](StringRef suffix, bool isUnit) {
    auto clone = cast<func::FuncOp>(func->clone());
    clone.setName((func.getName() + suffix).str());
    rewriteSignature(clone, isUnit);
    makeInternal(clone);
    symbols.insert(clone, std::next(Block::iterator(func)));
    return clone;
  };
  func::FuncOp anyStride = addClone("__strided", unitEntry);
  func::FuncOp fast =
      addClone(unitInnerStride ? "__unit" : "__merged", unitInnerStride);
  rewriteSignature(func, unitEntry);

  // A function of its own, so that no pass makes scratch memory earlier.
  anyStride->setAttr(kCopiesArgumentsAttrName, builder.getUnitAttr());
  Block *copying = startBody(builder, anyStride);
  SmallVector<Value> copies(copying->getArguments());
  for (const Layout &layout : layouts)
    copies[layout.argument] =
        copyToScratch(builder, loc, copies[layout.argument]);
  auto onCopies = buildCall(builder, loc, fast, copies);
  func::ReturnOp::create(builder, loc, onCopies.getResults());

  Block *body = startBody(builder, func);
  LayoutTest test(builder, loc);
  for (const Layout &layout : layouts)
    test.add(body->getArgument(layout.argument), layout);
  ValueRange arguments = body->getArguments();
  func::ReturnOp::create(
      builder, loc,
      buildChoice(
          builder, loc, test.get(), fast, arguments, [&]() -> ValueRange {
            return buildCall(builder, loc, anyStride, arguments).getResults();
          }));
}

//===----------------------------------------------------------------------===//
// Versions
//===----------------------------------------------------------------------===//

/// Whether arguments, results among them by now, have the extents that the
/// signature of `version` knows and `arguments` do not. Null if there are none.
static Value buildExtentTest(OpBuilder &builder, Location loc,
                             func::FuncOp version, ValueRange arguments) {
  Value all;
  for (auto [arg, type] :
       llvm::zip_equal(arguments, version.getArgumentTypes())) {
    auto known = dyn_cast<MemRefType>(type);
    if (!known)
      continue;
    for (auto [dim, extent] : llvm::enumerate(known.getShape())) {
      if (ShapedType::isDynamic(extent) ||
          ShapedType::isStatic(cast<MemRefType>(arg.getType()).getDimSize(dim)))
        continue;
      Value found = memref::DimOp::create(builder, loc, arg, dim);
      Value expected = arith::ConstantIndexOp::create(builder, loc, extent);
      Value fits = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                         found, expected);
      all = all ? arith::AndIOp::create(builder, loc, all, fits).getResult()
                : fits;
    }
  }
  return all;
}

/// Calls the first of `versions` that the arguments of a function fit, or
/// `any`; returns its results.
static ValueRange buildVersionCall(OpBuilder &builder, Location loc,
                                   ArrayRef<func::FuncOp> versions,
                                   func::FuncOp any, ValueRange arguments) {
  if (versions.empty())
    return buildCall(builder, loc, any, arguments).getResults();
  Value test = buildExtentTest(builder, loc, versions.front(), arguments);
  if (!test)
    return buildCall(builder, loc, versions.front(), arguments).getResults();
  return buildChoice(builder, loc, test, versions.front(), arguments,
                     [&]() -> ValueRange {
                       return buildVersionCall(
                           builder, loc, versions.drop_front(), any, arguments);
                     });
}

/// Whether arguments of `general` can be cast to those of `version`.
static bool isCallableAs(func::FuncOp version, func::FuncOp general) {
  return version.getResultTypes() == general.getResultTypes() &&
         version.getNumArguments() == general.getNumArguments() &&
         llvm::all_of(
             llvm::zip(general.getArgumentTypes(), version.getArgumentTypes()),
             [](auto types) {
               auto [from, to] = types;
               return from == to || memref::CastOp::areCastCompatible(from, to);
             });
}

/// Lets `func` call whichever of `versions` its arguments fit. All have the
/// calling convention already.
static void dispatchVersions(func::FuncOp func, ArrayRef<func::FuncOp> versions,
                             SymbolTable &symbols) {
  auto any = cast<func::FuncOp>(func->clone());
  any.setName((func.getName() + "__any").str());
  symbols.insert(any, std::next(Block::iterator(func)));
  makeInternal(any);
  llvm::for_each(versions, makeInternal);
  OpBuilder builder(func);
  Block *body = startBody(builder, func);
  func::ReturnOp::create(builder, func.getLoc(),
                         buildVersionCall(builder, func.getLoc(), versions, any,
                                          body->getArguments()));
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
      bool isUnit = strides != EntryStrides::Any;
      bool unitEntry = strides == EntryStrides::Unit;
      SmallVector<Layout> layouts = findLayouts(func, isUnit && !unitEntry);
      if (layouts.empty())
        rewriteSignature(func, unitEntry);
      else
        specialize(func, layouts, isUnit, unitEntry, symbols);
      func->setAttr(kCInterfaceAttrName, UnitAttr::get(&getContext()));
    }
    if (failed(dispatchAllVersions(symbols)))
      signalPassFailure();
  }

  LogicalResult dispatchAllVersions(SymbolTable &symbols) {
    llvm::MapVector<Operation *, SmallVector<func::FuncOp>> versions;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      auto name = func->getAttrOfType<FlatSymbolRefAttr>(kVersionOfAttrName);
      if (!name)
        continue;
      auto general = symbols.lookup<func::FuncOp>(name.getAttr());
      if (!general || !general->hasAttr(kCInterfaceAttrName) ||
          !isCallableAs(func, general))
        return func.emitOpError()
               << "expected '" << kVersionOfAttrName
               << "' to name a public function of the same type but for "
                  "extents, got "
               << name;
      versions[general].push_back(func);
    }
    for (auto &[general, callees] : versions)
      dispatchVersions(cast<func::FuncOp>(general), callees, symbols);
    return success();
  }
};
} // namespace
