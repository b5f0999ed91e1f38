//===- Evaluate.cpp - Linalg on constants, computed here -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluate.h"

#include "../Reference/Lowering.h"
#include "Norm/Analysis/Constants.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace mlir::norm;

namespace {
/// A float of any type up to f64, as an f64, or an integer up to 64 bits.
class Scalar {
public:
  Scalar() = default;
  static Scalar ofFloat(double value) {
    return Scalar(llvm::bit_cast<uint64_t>(value));
  }
  static Scalar ofInteger(uint64_t value, unsigned width) {
    return Scalar(width == 64 ? value : value & ((uint64_t(1) << width) - 1));
  }
  double number() const { return llvm::bit_cast<double>(bits); }
  uint64_t integer() const { return bits; }

private:
  explicit Scalar(uint64_t bits) : bits(bits) {}
  uint64_t bits = 0;
};

/// Elements in row-major order; one for a scalar.
using Elements = SmallVector<Scalar, 0>;

/// Runs straight-line code of the ops that the reference is made of.
class Evaluator {
public:
  /// Computes all ops of a block but `except`.
  LogicalResult run(Block &block, Operation *except);
  const Elements &get(Value value) { return values[value]; }

private:
  LogicalResult run(Operation &op);
  LogicalResult runGeneric(linalg::GenericOp op);
  std::optional<Scalar> compute(Operation &op);
  std::optional<Scalar> computeInteger(Operation &op);

  Scalar operand(Operation &op, unsigned number) {
    return values[op.getOperand(number)].front();
  }

  DenseMap<Value, Elements> values;
};
} // namespace

static unsigned widthOf(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

static bool compare(arith::CmpFPredicate predicate, double x, double y) {
  bool isUnordered = std::isnan(x) || std::isnan(y);
  switch (predicate) {
  case arith::CmpFPredicate::OEQ:
    return x == y;
  case arith::CmpFPredicate::OLT:
    return x < y;
  case arith::CmpFPredicate::OGT:
    return x > y;
  case arith::CmpFPredicate::UEQ:
    return isUnordered || x == y;
  case arith::CmpFPredicate::UNO:
    return isUnordered;
  default:
    llvm_unreachable("a predicate that the reference does not use");
  }
}

static double maximum(double x, double y) {
  if (std::isnan(x) || std::isnan(y))
    return std::numeric_limits<double>::quiet_NaN();
  return x == y ? (std::signbit(x) ? y : x) : std::max(x, y);
}

/// Constants as elements; nullopt for types it does not know.
static std::optional<Elements> elementsOf(Attribute attr) {
  auto of = [](Attribute scalar) -> std::optional<Scalar> {
    if (auto number = dyn_cast<FloatAttr>(scalar))
      return Scalar::ofFloat(roundedTo(number.getValueAsDouble(),
                                       Float64Type::get(scalar.getContext())));
    if (auto number = dyn_cast<IntegerAttr>(scalar))
      return Scalar::ofInteger(number.getValue().getZExtValue(),
                               number.getValue().getBitWidth());
    return std::nullopt;
  };
  if (auto dense = dyn_cast<DenseElementsAttr>(attr)) {
    Elements elements;
    for (Attribute element : dense.getValues<Attribute>()) {
      std::optional<Scalar> scalar = of(element);
      if (!scalar)
        return std::nullopt;
      elements.push_back(*scalar);
    }
    return elements;
  }
  if (std::optional<Scalar> scalar = of(attr))
    return Elements{*scalar};
  return std::nullopt;
}

std::optional<Scalar> Evaluator::computeInteger(Operation &op) {
  unsigned width = widthOf(op.getResult(0).getType());
  auto x = [&] { return operand(op, 0).integer(); };
  auto y = [&] { return operand(op, 1).integer(); };
  auto result = [&](uint64_t value) { return Scalar::ofInteger(value, width); };
  using Result = std::optional<Scalar>;
  return TypeSwitch<Operation *, Result>(&op)
      .Case([&](arith::AddIOp) { return result(x() + y()); })
      .Case([&](arith::SubIOp) { return result(x() - y()); })
      .Case([&](arith::MulIOp) { return result(x() * y()); })
      .Case([&](arith::AndIOp) { return result(x() & y()); })
      .Case([&](arith::OrIOp) { return result(x() | y()); })
      .Case([&](arith::ShRUIOp) { return result(x() >> y()); })
      .Case<arith::TruncIOp, arith::IndexCastOp>(
          [&](auto) { return result(x()); })
      .Default([](Operation *) { return std::nullopt; });
}

/// One op on scalars; nullopt for one that the reference does not have. Every
/// one of them is exact or rounds once, as C++ does on doubles.
std::optional<Scalar> Evaluator::compute(Operation &op) {
  auto x = [&] { return operand(op, 0).number(); };
  auto y = [&] { return operand(op, 1).number(); };
  auto result = [](double value) { return Scalar::ofFloat(value); };
  using Result = std::optional<Scalar>;
  return TypeSwitch<Operation *, Result>(&op)
      .Case([&](arith::AddFOp) { return result(x() + y()); })
      .Case([&](arith::SubFOp) { return result(x() - y()); })
      .Case([&](arith::MulFOp) { return result(x() * y()); })
      .Case([&](arith::DivFOp) { return result(x() / y()); })
      .Case([&](arith::MaximumFOp) { return result(maximum(x(), y())); })
      .Case([&](math::SqrtOp) { return result(std::sqrt(x())); })
      .Case([&](math::AbsFOp) { return result(std::fabs(x())); })
      .Case([&](arith::ExtFOp) { return result(x()); })
      .Case([&](arith::TruncFOp trunc) {
        return result(roundedTo(x(), cast<FloatType>(trunc.getType())));
      })
      .Case([&](arith::SIToFPOp) {
        return result(static_cast<double>(
            static_cast<int64_t>(operand(op, 0).integer())));
      })
      .Case([&](arith::UIToFPOp) {
        return result(static_cast<double>(operand(op, 0).integer()));
      })
      .Case([&](arith::CmpFOp cmp) {
        return Scalar::ofInteger(compare(cmp.getPredicate(), x(), y()), 1);
      })
      .Case([&](arith::SelectOp) {
        return operand(op, operand(op, 0).integer() ? 1 : 2);
      })
      .Case([&](arith::BitcastOp bitcast) -> Result {
        Type type = bitcast.getType();
        if (auto from = dyn_cast<FloatType>(bitcast.getIn().getType())) {
          APInt bits = roundToType(x(), from).bitcastToAPInt();
          return Scalar::ofInteger(bits.getZExtValue(), bits.getBitWidth());
        }
        auto to = cast<FloatType>(type);
        APFloat value(to.getFloatSemantics(),
                      APInt(to.getWidth(), operand(op, 0).integer()));
        bool losesInfo = false;
        value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                      &losesInfo);
        return result(value.convertToDouble());
      })
      .Default([&](Operation *) { return computeInteger(op); });
}

LogicalResult Evaluator::runGeneric(linalg::GenericOp op) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  int64_t total = 1;
  for (int64_t extent : extents) {
    if (ShapedType::isDynamic(extent))
      return failure();
    total *= extent;
  }
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (!llvm::all_of(maps,
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return failure();
  unsigned inputs = op.getNumDpsInputs();
  SmallVector<Elements> results;
  for (Value init : op.getOutputs())
    results.push_back(values[init]);

  SmallVector<int64_t> index(extents.size(), 0);
  auto position = [&](unsigned number) {
    auto shape = cast<RankedTensorType>(op->getOperand(number).getType());
    int64_t offset = 0;
    for (auto [dim, expr] : llvm::enumerate(maps[number].getResults()))
      offset = offset * shape.getDimSize(dim) +
               index[cast<AffineDimExpr>(expr).getPosition()];
    return offset;
  };
  Block &body = *op.getBlock();
  for (int64_t i = 0; i < total; ++i) {
    int64_t rest = i;
    for (int64_t dim = extents.size() - 1; dim >= 0; --dim) {
      index[dim] = rest % extents[dim];
      rest /= extents[dim];
    }
    for (BlockArgument argument : body.getArguments()) {
      unsigned number = argument.getArgNumber();
      const Elements &from = number < inputs ? values[op->getOperand(number)]
                                             : results[number - inputs];
      Scalar element = from[position(number)];
      values[argument] = {element};
    }
    for (Operation &inner : body.without_terminator())
      if (failed(run(inner)))
        return failure();
    for (auto [number, yielded] :
         llvm::enumerate(body.getTerminator()->getOperands()))
      results[number][position(inputs + number)] = values[yielded].front();
  }
  for (auto [result, elements] : llvm::zip_equal(op->getResults(), results))
    values[result] = elements;
  return success();
}

LogicalResult Evaluator::run(Operation &op) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return runGeneric(generic);
  if (op.getNumResults() != 1)
    return failure();
  Value result = op.getResult(0);
  auto type = dyn_cast<RankedTensorType>(result.getType());
  if (type && !type.hasStaticShape())
    return failure();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    std::optional<Elements> elements = elementsOf(constant.getValue());
    if (!elements)
      return failure();
    values[result] = std::move(*elements);
    return success();
  }
  if (isa<tensor::EmptyOp>(op)) {
    values[result] = Elements(type.getNumElements());
    return success();
  }
  if (auto fill = dyn_cast<linalg::FillOp>(op)) {
    Scalar element = values[fill.getInputs().front()].front();
    values[result] = Elements(type.getNumElements(), element);
    return success();
  }
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(op)) {
    Elements moved = values[op.getOperand(0)];
    values[result] = std::move(moved);
    return success();
  }
  if (type)
    return failure();
  std::optional<Scalar> scalar = compute(op);
  if (!scalar)
    return failure();
  values[result] = {*scalar};
  return success();
}

LogicalResult Evaluator::run(Block &block, Operation *except) {
  for (Operation &op : block)
    if (&op != except && failed(run(op)))
      return failure();
  return success();
}

std::optional<SmallVector<SmallVector<double>>>
norm::evaluateByReference(NormOpInterface op) {
  // A copy of the op in a module of its own, on constants of static shape.
  Location loc = op->getLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  NormContract contract = NormContract::get(op);
  for (Value *operand : {&contract.x, &contract.residual, &contract.scale,
                         &contract.shift, &contract.mean, &contract.variance,
                         &contract.runningMean, &contract.runningVariance}) {
    if (!*operand)
      continue;
    std::optional<ConstantTensor> constant = matchConstant(*operand);
    if (!constant)
      return std::nullopt;
    *operand = createConstant(builder, loc, constant->getType(),
                              constant->getValues());
  }
  if (contract.momentumValue) {
    std::optional<double> momentum =
        matchConstantScalar(contract.momentumValue);
    if (!momentum)
      return std::nullopt;
    contract.momentumValue = arith::ConstantOp::create(
        builder, loc,
        FloatAttr::get(contract.momentumValue.getType(), *momentum));
  }
  Operation *copy = op.rebuild(builder, loc, contract);
  if (!copy)
    return std::nullopt;
  SmallVector<Value> lowered =
      reference::lower(cast<NormOpInterface>(copy), builder);
  Evaluator evaluator;
  if (failed(evaluator.run(*module->getBody(), copy)))
    return std::nullopt;
  SmallVector<SmallVector<double>> results;
  for (Value value : lowered)
    results.push_back(
        llvm::map_to_vector(evaluator.get(value), [](const Scalar &element) {
          return element.number();
        }));
  return results;
}
