//===- Entry.cpp - Functions that can be run on arrays -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/ExecutionEngine/Entry.h"

#include "Norm/ExecutionEngine/Jit.h"
#include "Norm/IR/NormInterfaces.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

SmallVector<DType> norm::dtypesOf(Type type) {
  if (type.isF64())
    return {DType::Float64};
  if (type.isF32())
    return {DType::Float32};
  if (type.isF16())
    return {DType::Float16};
  if (type.isBF16())
    return {DType::UInt16};
  if (isa<Float8E4M3FNType, Float8E5M2Type>(type))
    return {DType::UInt8};
  if (type.isInteger(1))
    return {DType::Bool};
  if (type.isInteger(8))
    return {DType::Int8, DType::UInt8};
  if (type.isInteger(16))
    return {DType::Int16, DType::UInt16};
  if (type.isInteger(32))
    return {DType::Int32, DType::UInt32};
  if (type.isInteger(64) || type.isIndex())
    return {DType::Int64, DType::UInt64};
  return {};
}

static std::string typeText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// The tensor type that stands for an argument or result.
static llvm::Expected<RankedTensorType> arrayType(Type type, StringRef entry,
                                                  const Twine &place) {
  auto error = [&](const Twine &expected) {
    return llvm::createStringError(place + " of '" + entry + "' has type " +
                                   typeText(type) + ", expected " + expected);
  };
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor) {
    if (isa<ShapedType>(type) || dtypesOf(type).empty())
      return error("a ranked tensor or a scalar");
    return RankedTensorType::get({}, type);
  }
  if (dtypesOf(tensor.getElementType()).empty())
    return error("elements of f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i1, i8, "
                 "i16, i32, i64 or index");
  return tensor;
}

//===----------------------------------------------------------------------===//
// Making a function ready
//===----------------------------------------------------------------------===//

/// Turns scalar arguments and results into tensors of rank 0.
static void wrapScalars(func::FuncOp func, ArrayRef<RankedTensorType> inputs,
                        ArrayRef<RankedTensorType> results) {
  Block &body = func.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  for (auto [arg, type] : llvm::zip_equal(body.getArguments(), inputs)) {
    if (isa<TensorType>(arg.getType()))
      continue;
    arg.setType(type);
    auto scalar =
        tensor::ExtractOp::create(builder, func.getLoc(), arg, ValueRange());
    arg.replaceAllUsesExcept(scalar, scalar);
  }
  func.walk([&](func::ReturnOp ret) {
    builder.setInsertionPoint(ret);
    for (auto [operand, type] : llvm::zip_equal(ret->getOpOperands(), results))
      if (!isa<TensorType>(operand.get().getType()))
        operand.set(tensor::FromElementsOp::create(builder, ret.getLoc(), type,
                                                   operand.get()));
  });
  func.setType(builder.getFunctionType(
      SmallVector<Type>(inputs.begin(), inputs.end()),
      SmallVector<Type>(results.begin(), results.end())));
}

llvm::Expected<Entry> Entry::get(ModuleOp module, StringRef name) {
  // Scalars become tensors, also in a module that has none.
  module.getContext()->loadDialect<tensor::TensorDialect>();
  Entry entry;
  entry.module = module.clone();
  entry.name = name.str();
  auto func = entry.module->lookupSymbol<func::FuncOp>(name);
  if (!func) {
    std::string known;
    for (auto candidate : module.getOps<func::FuncOp>())
      if (candidate.isPublic() && !candidate.isExternal())
        known +=
            (known.empty() ? "'" : ", '") + candidate.getName().str() + "'";
    return llvm::createStringError(
        "expected an entry " + (known.empty() ? "function" : known) +
        ", got '" + name + "', which the module does not have");
  }
  if (func.isExternal())
    return llvm::createStringError("entry '" + name + "' has no body");
  if (!func.isPublic())
    return llvm::createStringError("entry '" + name + "' is private");

  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    auto array = arrayType(type, name, "argument " + Twine(i));
    if (!array)
      return array.takeError();
    entry.inputs.push_back(*array);
  }
  for (auto [i, type] : llvm::enumerate(func.getResultTypes())) {
    auto array = arrayType(type, name, "result " + Twine(i));
    if (!array)
      return array.takeError();
    entry.results.push_back(*array);
  }
  for (auto other : entry.module->getOps<func::FuncOp>())
    if (other != func && !other.isExternal())
      other.setPrivate();
  wrapScalars(func, entry.inputs, entry.results);
  return entry;
}

func::FuncOp Entry::getFunction() {
  return module->lookupSymbol<func::FuncOp>(name);
}

llvm::Error Entry::check(ArrayRef<Array> arrays, ArrayRef<std::string> names) {
  if (arrays.size() != inputs.size())
    return llvm::createStringError("expected " + Twine(inputs.size()) +
                                   " inputs for '" + name + "', got " +
                                   Twine(arrays.size()));
  for (auto [i, type] : llvm::enumerate(inputs)) {
    const Array &array = arrays[i];
    SmallVector<DType> allowed = dtypesOf(type.getElementType());
    if (!llvm::is_contained(allowed, array.type))
      return llvm::createStringError(
          "'" + names[i] + "': expected type " + describe(allowed.front()) +
          " for argument " + Twine(i) + " (" + typeText(type) + "), got " +
          describe(array.type));
    if (failed(verifyCompatibleShape(array.shape, type.getShape())))
      return llvm::createStringError(
          "'" + names[i] + "': expected an array for argument " + Twine(i) +
          " (" + typeText(type) + "), got shape " + shapeText(array.shape));
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Extents of results
//===----------------------------------------------------------------------===//

namespace {
/// Evaluates index arithmetic on the extents of the arguments.
class IndexInterpreter {
public:
  explicit IndexInterpreter(ArrayRef<Array> arrays) : arrays(arrays) {}

  std::optional<int64_t> evaluate(Value value) {
    auto known = cache.find(value);
    if (known != cache.end())
      return known->second;
    std::optional<int64_t> result = compute(value.getDefiningOp());
    cache[value] = result;
    return result;
  }

private:
  ArrayRef<Array> arrays;
  DenseMap<Value, std::optional<int64_t>> cache;

  std::optional<int64_t> compute(Operation *op) {
    if (!op)
      return std::nullopt;
    if (auto dim = dyn_cast<tensor::DimOp>(op)) {
      auto arg = dyn_cast<BlockArgument>(dim.getSource());
      std::optional<int64_t> axis = dim.getConstantIndex();
      if (!arg || !isa<func::FuncOp>(arg.getOwner()->getParentOp()) || !axis ||
          *axis >=
              static_cast<int64_t>(arrays[arg.getArgNumber()].shape.size()))
        return std::nullopt;
      return arrays[arg.getArgNumber()].shape[*axis];
    }
    SmallVector<Attribute> operands;
    for (Value operand : op->getOperands()) {
      std::optional<int64_t> value =
          operand.getType().isIntOrIndex() ? evaluate(operand) : std::nullopt;
      if (!value)
        return std::nullopt;
      operands.push_back(IntegerAttr::get(operand.getType(), *value));
    }
    SmallVector<OpFoldResult> folded;
    if (op->getNumResults() != 1 || failed(op->fold(operands, folded)) ||
        folded.size() != 1)
      return std::nullopt;
    if (auto attr = dyn_cast<Attribute>(folded[0])) {
      auto integer = dyn_cast<IntegerAttr>(attr);
      return integer ? std::optional<int64_t>(integer.getInt()) : std::nullopt;
    }
    return evaluate(cast<Value>(folded[0]));
  }
};
} // namespace

namespace {
/// Two extents that an op needs to be equal: the place of the first in a list
/// of values that holds both, and the op.
struct EqualExtents {
  size_t first;
  std::string op;
};
} // namespace

/// Extents that ops of the function's own block need to be equal and that
/// types do not prove so. Pairs are appended to `extents`.
static SmallVector<EqualExtents>
collectEqualExtents(func::FuncOp func, OpBuilder &builder, Location loc,
                    SmallVector<Value> &extents) {
  SmallVector<EqualExtents> pairs;
  auto add = [&](Operation *op, Value a, int64_t i, Value b, int64_t j) {
    if (!cast<ShapedType>(a.getType()).isDynamicDim(i) &&
        !cast<ShapedType>(b.getType()).isDynamicDim(j))
      return;
    std::string text;
    llvm::raw_string_ostream(text)
        << "'" << op->getName() << "' at " << op->getLoc();
    pairs.push_back({extents.size(), text});
    extents.push_back(tensor::DimOp::create(builder, loc, a, i));
    extents.push_back(tensor::DimOp::create(builder, loc, b, j));
  };
  for (Operation &op : func.getBody().front()) {
    if (auto norm = dyn_cast<RowOpInterface>(op)) {
      // A result may be declared static where x is dynamic.
      for (auto [tensor, dim, axis] : extentAgreements(norm))
        add(&op, norm.getInput(), axis, tensor, dim);
    } else if (OpTrait::hasElementwiseMappableTraits(&op)) {
      Value first;
      for (Value operand : op.getOperands()) {
        auto type = dyn_cast<RankedTensorType>(operand.getType());
        if (type && first)
          for (int64_t i = 0; i < type.getRank(); ++i)
            add(&op, first, i, operand, i);
        else if (type)
          first = operand;
      }
    } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      SmallVector<std::pair<Value, int64_t>> seen(linalgOp.getNumLoops());
      for (OpOperand &operand : op.getOpOperands()) {
        if (!isa<RankedTensorType>(operand.get().getType()))
          continue;
        AffineMap map = linalgOp.getMatchingIndexingMap(&operand);
        for (auto [j, expr] : llvm::enumerate(map.getResults())) {
          auto dim = dyn_cast<AffineDimExpr>(expr);
          if (!dim)
            continue;
          auto &[value, index] = seen[dim.getPosition()];
          if (value)
            add(&op, value, index, operand.get(), j);
          else
            std::tie(value, index) = std::make_pair(operand.get(), int64_t(j));
        }
      }
    }
  }
  return pairs;
}

/// Replaces the results of the function by one tensor: their dynamic extents in
/// order, then pairs of extents that must be equal.
static SmallVector<EqualExtents> returnExtents(func::FuncOp func) {
  SmallVector<EqualExtents> pairs;
  OpBuilder builder(func.getContext());
  RankedTensorType type;
  bool hasOneBlock = func.getBody().hasOneBlock();
  func.walk([&](func::ReturnOp ret) {
    builder.setInsertionPoint(ret);
    SmallVector<Value> extents;
    for (Value value : ret.getOperands()) {
      auto shaped = cast<ShapedType>(value.getType());
      for (int64_t i = 0; i < shaped.getRank(); ++i)
        if (shaped.isDynamicDim(i))
          extents.push_back(
              tensor::DimOp::create(builder, ret.getLoc(), value, i));
    }
    if (hasOneBlock)
      pairs = collectEqualExtents(func, builder, ret.getLoc(), extents);
    type = RankedTensorType::get({static_cast<int64_t>(extents.size())},
                                 builder.getIndexType());
    Value tensor =
        tensor::FromElementsOp::create(builder, ret.getLoc(), type, extents);
    ret.getOperandsMutable().assign(tensor);
  });
  func.removeResAttrsAttr();
  func.setType(builder.getFunctionType(func.getArgumentTypes(), type));
  return pairs;
}

/// Computes the extents by running the function that returns them.
static llvm::Error runExtents(ModuleOp module, StringRef name,
                              ArrayRef<Array> arrays,
                              MutableArrayRef<int64_t> extents) {
  if (failed(lowerForTarget(module, Target::Reference)))
    return llvm::createStringError("the extents of the results of '" + name +
                                   "' cannot be inferred");
  auto compiled = CompiledModule::create(module, /*optimization=*/0);
  if (!compiled)
    return compiled.takeError();
  auto function = (*compiled)->lookup(name);
  if (!function)
    return function.takeError();
  Array result;
  result.type = DType::Int64;
  result.shape = {static_cast<int64_t>(extents.size())};
  result.strides = {1};
  result.data = allocateAligned(result.getNumBytes());
  CallFrame frame;
  for (const Array &array : arrays)
    frame.addArray(array);
  frame.addArray(result);
  frame.call(*function);
  auto *values = reinterpret_cast<int64_t *>(result.data.get());
  std::copy_n(values, extents.size(), extents.begin());
  return llvm::Error::success();
}

llvm::Expected<SmallVector<SmallVector<int64_t>>>
Entry::inferResultShapes(ArrayRef<Array> arrays) {
  SmallVector<SmallVector<int64_t>> shapes;
  for (RankedTensorType type : results)
    shapes.emplace_back(type.getShape());
  auto isStatic = [](ShapedType type) { return type.hasStaticShape(); };
  if (llvm::all_of(results, isStatic) && llvm::all_of(inputs, isStatic))
    return shapes;

  OwningOpRef<ModuleOp> clone = module->clone();
  auto func = clone->lookupSymbol<func::FuncOp>(name);
  SmallVector<EqualExtents> pairs = returnExtents(func);
  size_t numResultExtents = 0;
  for (RankedTensorType type : results)
    numResultExtents += type.getNumDynamicDims();
  SmallVector<int64_t> extents(
      cast<ShapedType>(func.getResultTypes()[0]).getNumElements());
  PassManager pm(clone->getContext());
  pm.addPass(createInlinerPass());
  pm.addPass(createSymbolDCEPass());
  pm.addPass(memref::createResolveRankedShapeTypeResultDimsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  if (failed(pm.run(*clone)))
    return llvm::createStringError("the extents of the results of '" + name +
                                   "' cannot be inferred");

  // What only serves the checks may stay unknown.
  SmallVector<bool> isKnown(extents.size(), false);
  Operation *terminator = func.getBody().front().getTerminator();
  if (auto ret = dyn_cast<func::ReturnOp>(terminator)) {
    DenseIntElementsAttr constant;
    IndexInterpreter interpreter(arrays);
    if (matchPattern(ret.getOperand(0), m_Constant(&constant))) {
      for (auto [i, extent] : llvm::enumerate(constant.getValues<APInt>())) {
        extents[i] = extent.getSExtValue();
        isKnown[i] = true;
      }
    } else if (auto tensor =
                   ret.getOperand(0).getDefiningOp<tensor::FromElementsOp>()) {
      for (auto [i, value] : llvm::enumerate(tensor.getElements()))
        if (std::optional<int64_t> extent = interpreter.evaluate(value)) {
          extents[i] = *extent;
          isKnown[i] = true;
        }
    }
  }
  for (const EqualExtents &pair : pairs)
    if (isKnown[pair.first] && isKnown[pair.first + 1] &&
        extents[pair.first] != extents[pair.first + 1])
      return llvm::createStringError("expected equal extents for " + pair.op +
                                     ", got " + Twine(extents[pair.first]) +
                                     " and " + Twine(extents[pair.first + 1]) +
                                     " with these inputs");
  if (!llvm::all_of(ArrayRef(isKnown).take_front(numResultExtents),
                    [](bool known) { return known; }))
    if (llvm::Error error = runExtents(*clone, name, arrays, extents))
      return error;

  const int64_t *next = extents.begin();
  for (SmallVector<int64_t> &shape : shapes)
    for (int64_t &extent : shape) {
      if (!ShapedType::isDynamic(extent))
        continue;
      extent = *next++;
      if (extent < 0)
        return llvm::createStringError("a result of '" + name +
                                       "' has the negative extent " +
                                       Twine(extent) + " for these inputs");
    }
  return shapes;
}
