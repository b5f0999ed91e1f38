//===- RegistersPairs.cpp - bf16 as pairs of words' halves -----*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two bf16 elements are a 32-bit word. A register of them is extended by a
// shift, which leaves the even elements, and a mask, which leaves the odd ones;
// in their order it takes two shuffles as well. So a sweep computes on even and
// odd columns apart. They take their order again where the sweep stores, which
// costs nothing as two registers must become one there, and after it, for the
// trees of its sums: no bit changes.
//
//===----------------------------------------------------------------------===//

#include "MapToRegisters.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::norm;

namespace {
/// Even and odd columns of a value.
using Pair = std::array<Value, 2>;

/// One sweep that reads bf16 elements.
class PairedSweep {
public:
  PairedSweep(RewriterBase &rewriter, scf::ForOp sweep, CpuIsa isa)
      : rewriter(rewriter), loc(sweep.getLoc()), isa(isa), sweep(sweep) {}

  /// Whether it extends vectors of whole lines, and so many of them that what
  /// has to change its order costs less.
  bool isWorthIt();
  void run();

private:
  bool hasColumns(Type type) const {
    auto vector = dyn_cast<VectorType>(type);
    return vector && vector.getShape().back() == columns;
  }
  bool isExtension(Operation &op) const {
    auto extension = dyn_cast<arith::ExtFOp>(op);
    return extension && hasColumns(extension.getType()) &&
           getElementTypeOrSelf(extension.getType()).isF32() &&
           getElementTypeOrSelf(extension.getIn().getType()).isBF16();
  }
  static VectorType halfType(Type type) {
    auto vector = cast<VectorType>(type);
    SmallVector<int64_t> shape(vector.getShape());
    shape.back() /= 2;
    return VectorType::get(shape, vector.getElementType());
  }
  Pair extend(Value narrow);
  Value joinRow(Value even, Value odd);
  Pair getPair(Value value);
  Value join(Pair pair);
  Value getWhole(Value value);
  void emit(Operation &op);

  RewriterBase &rewriter;
  Location loc;
  CpuIsa isa;
  /// The old sweep, and the new one.
  scf::ForOp sweep, made;
  int64_t columns = 0;
  /// Values of the old sweep: as pairs, and in their order.
  DenseMap<Value, Pair> pairs;
  IRMapping wholes;
};
} // namespace

/// What is broadcast to all columns of `value`; null if nothing is.
static Value columnSource(Value value) {
  auto broadcast = value.getDefiningOp<vector::BroadcastOp>();
  if (!broadcast)
    return {};
  auto source = dyn_cast<VectorType>(broadcast.getSource().getType());
  return !source || source.getShape().back() == 1 ? broadcast.getSource()
                                                  : Value();
}

/// A value with the same elements in all columns, of half as many; null if it
/// is none that says so.
static Value narrowUniform(OpBuilder &builder, Value value, VectorType type) {
  if (Value source = columnSource(value))
    return vector::BroadcastOp::create(builder, value.getLoc(), type, source);
  SplatElementsAttr splat;
  if (matchPattern(value, m_Constant(&splat)))
    return arith::ConstantOp::create(
        builder, value.getLoc(),
        SplatElementsAttr::get(type, splat.getSplatValue<Attribute>()));
  return {};
}

static bool isUniform(Value value) {
  SplatElementsAttr splat;
  return columnSource(value) || matchPattern(value, m_Constant(&splat));
}

/// Whether `op` does the same in every column.
static bool isLanewise(Operation &op) {
  return isa<vector::BroadcastOp>(op) ||
         OpTrait::hasElementwiseMappableTraits(&op);
}

/// What is the same in all rows of `value`, or else itself.
static Value getRow(Value value) {
  auto broadcast = value.getDefiningOp<vector::BroadcastOp>();
  return broadcast && isa<VectorType>(broadcast.getSource().getType())
             ? broadcast.getSource()
             : value;
}

static int64_t countRows(Value value) {
  auto type = cast<VectorType>(value.getType());
  return type.getRank() == 2 ? type.getDimSize(0) : 1;
}

bool PairedSweep::isWorthIt() {
  int64_t gain = 0;
  // Values that are pairs then.
  DenseSet<Value> paired;
  auto cost = [&](Value value) {
    if (hasColumns(value.getType()) && !paired.contains(value) &&
        !isUniform(value))
      gain -= countRows(getRow(value));
  };
  Block &body = *sweep.getBody();
  for (Operation &op : body.without_terminator()) {
    auto extension = dyn_cast<arith::ExtFOp>(op);
    if (!columns && extension &&
        getElementTypeOrSelf(extension.getIn().getType()).isBF16())
      if (auto type = dyn_cast<VectorType>(extension.getType()))
        columns = type.getShape().back();
    if (op.getNumRegions() != 0)
      return false;
  }
  if (columns * 16 != kLineBytes * 8)
    return false;
  for (Value argument : sweep.getRegionIterArgs()) {
    if (!hasColumns(argument.getType()))
      return false;
    paired.insert(argument);
  }
  for (Operation &op : body.without_terminator()) {
    bool usesPairs = llvm::any_of(op.getOperands(), [&](Value operand) {
      return paired.contains(operand);
    });
    if (isExtension(op) && !usesPairs) {
      gain += countRows(op.getResult(0));
      paired.insert(op.getResult(0));
    } else if (usesPairs && isLanewise(op)) {
      llvm::for_each(op.getOperands(), cost);
      paired.insert_range(op.getResults());
    } else if (usesPairs) {
      // Two registers of 16-bit elements become one in either order.
      for (Value operand : op.getOperands())
        if (paired.contains(operand) &&
            getElementTypeOrSelf(operand).getIntOrFloatBitWidth() > 16)
          gain -= countRows(operand);
    }
  }
  return gain > 0;
}

Pair PairedSweep::extend(Value narrow) {
  auto type = halfType(narrow.getType());
  auto words = VectorType::get(type.getShape(), rewriter.getI32Type());
  auto floats = VectorType::get(type.getShape(), rewriter.getF32Type());
  auto constant = [&](uint32_t value) -> Value {
    return arith::ConstantOp::create(
        rewriter, loc, DenseElementsAttr::get(words, APInt(32, value)));
  };
  Value bits = vector::BitCastOp::create(rewriter, loc, words, narrow);
  Value even = arith::ShLIOp::create(rewriter, loc, bits, constant(16));
  Value odd = arith::AndIOp::create(rewriter, loc, bits, constant(0xffff0000));
  return {arith::BitcastOp::create(rewriter, loc, floats, even),
          arith::BitcastOp::create(rewriter, loc, floats, odd)};
}

/// Even and odd columns of 16 bits in their order. With AVX-512 LLVM would
/// rather order twice as many bits, before they are rounded; without, rounding
/// has them in words, where they only need to be moved to their halves.
Value PairedSweep::joinRow(Value even, Value odd) {
  if (isa == CpuIsa::Avx512)
    return vector::InterleaveOp::create(rewriter, loc,
                                        hideBits(rewriter, even, isa), odd);
  auto type = cast<VectorType>(even.getType());
  auto widen = [&](Value value) -> Value {
    VectorType words = type.clone(rewriter.getI32Type());
    Value bits = arith::BitcastOp::create(
        rewriter, loc, type.clone(rewriter.getI16Type()), value);
    return arith::ExtUIOp::create(rewriter, loc, words, bits);
  };
  Value low = widen(even), high = widen(odd);
  Value sixteen = arith::ConstantOp::create(
      rewriter, loc,
      DenseElementsAttr::get(cast<VectorType>(high.getType()), APInt(32, 16)));
  Value words = arith::OrIOp::create(
      rewriter, loc, low, arith::ShLIOp::create(rewriter, loc, high, sixteen));
  return vector::BitCastOp::create(
      rewriter, loc, VectorType::get({columns}, type.getElementType()), words);
}

/// The columns of a pair in their order.
Value PairedSweep::join(Pair pair) {
  auto half = cast<VectorType>(pair[0].getType());
  if (half.getElementTypeBitWidth() != 16)
    return vector::InterleaveOp::create(rewriter, loc, pair[0], pair[1]);
  if (half.getRank() == 1)
    return joinRow(pair[0], pair[1]);
  auto type =
      VectorType::get({half.getDimSize(0), columns}, half.getElementType());
  Value whole = ub::PoisonOp::create(rewriter, loc, type);
  for (int64_t row = 0; row < half.getDimSize(0); ++row)
    whole = vector::InsertOp::create(
        rewriter, loc,
        joinRow(vector::ExtractOp::create(rewriter, loc, pair[0], row),
                vector::ExtractOp::create(rewriter, loc, pair[1], row)),
        whole, row);
  return whole;
}

Pair PairedSweep::getPair(Value value) {
  if (auto it = pairs.find(value); it != pairs.end())
    return it->second;
  OpBuilder::InsertionGuard guard(rewriter);
  if (made && sweep.isDefinedOutsideOfLoop(value))
    rewriter.setInsertionPoint(made);
  if (Value half = narrowUniform(rewriter, wholes.lookupOrDefault(value),
                                 halfType(value.getType())))
    return pairs[value] = {half, half};
  Value whole = wholes.lookupOrDefault(value), row = getRow(whole);
  auto split = vector::DeinterleaveOp::create(rewriter, loc, row);
  Pair pair{split.getRes1(), split.getRes2()};
  if (row != whole)
    for (Value &half : pair)
      half = vector::BroadcastOp::create(rewriter, loc,
                                         halfType(value.getType()), half);
  return pairs[value] = pair;
}

Value PairedSweep::getWhole(Value value) {
  if (!pairs.contains(value) || wholes.contains(value))
    return wholes.lookupOrDefault(value);
  Value whole = join(pairs[value]);
  wholes.map(value, whole);
  return whole;
}

void PairedSweep::emit(Operation &op) {
  bool usesPairs = llvm::any_of(
      op.getOperands(), [&](Value operand) { return pairs.contains(operand); });
  if (isExtension(op) && !usesPairs) {
    pairs[op.getResult(0)] = extend(wholes.lookupOrDefault(op.getOperand(0)));
    return;
  }
  if (!usesPairs || !isLanewise(op)) {
    for (Value operand : op.getOperands())
      (void)getWhole(operand);
    rewriter.clone(op, wholes);
    return;
  }
  std::array<Operation *, 2> halves;
  for (size_t side : {0, 1}) {
    auto operands =
        llvm::map_to_vector(op.getOperands(), [&](Value operand) -> Value {
          return hasColumns(operand.getType())
                     ? getPair(operand)[side]
                     : wholes.lookupOrDefault(operand);
        });
    auto types = llvm::map_to_vector(
        op.getResultTypes(), [](Type type) -> Type { return halfType(type); });
    halves[side] = clone(rewriter, &op, types, operands);
  }
  for (auto [number, result] : llvm::enumerate(op.getResults()))
    pairs[result] = {halves[0]->getResult(number),
                     halves[1]->getResult(number)};
}

void PairedSweep::run() {
  rewriter.setInsertionPoint(sweep);
  SmallVector<Value> inits;
  for (Value init : sweep.getInitArgs())
    llvm::append_range(inits, getPair(init));
  pairs.clear();
  made = scf::ForOp::create(rewriter, loc, sweep.getLowerBound(),
                            sweep.getUpperBound(), sweep.getStep(), inits);
  made->setDiscardableAttrs(sweep->getDiscardableAttrDictionary());
  wholes.map(sweep.getInductionVar(), made.getInductionVar());
  for (auto [number, argument] : llvm::enumerate(sweep.getRegionIterArgs()))
    pairs[argument] = {made.getRegionIterArg(2 * number),
                       made.getRegionIterArg(2 * number + 1)};
  rewriter.setInsertionPointToStart(made.getBody());
  for (Operation &op : sweep.getBody()->without_terminator())
    emit(op);
  SmallVector<Value> yielded;
  for (Value value : sweep.getYieldedValues())
    llvm::append_range(yielded, getPair(value));
  if (!yielded.empty())
    scf::YieldOp::create(rewriter, loc, yielded);
  rewriter.setInsertionPointAfter(made);
  SmallVector<Value> results;
  for (unsigned number = 0; number < sweep.getNumResults(); ++number)
    results.push_back(
        join({made.getResult(2 * number), made.getResult(2 * number + 1)}));
  rewriter.replaceOp(sweep, results);
}

void norm::pairNarrowColumns(RewriterBase &rewriter, scf::ForallOp loop,
                             CpuIsa isa) {
  SmallVector<scf::ForOp> sweeps;
  loop.walk([&](scf::ForOp sweep) { sweeps.push_back(sweep); });
  for (scf::ForOp sweep : sweeps) {
    PairedSweep paired(rewriter, sweep, isa);
    if (paired.isWorthIt())
      paired.run();
  }
}
