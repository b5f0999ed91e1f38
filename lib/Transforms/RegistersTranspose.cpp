//===- RegistersTranspose.cpp - Sums of short rows, a lane each -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As many rows as a register has lanes, each of no more elements than that: the
// sums of one such block are cheapest by a tree that merges rows
// (RegistersReduce.cpp). Where several sums are taken of the same elements, as
// the mean, then squares and rests about it, it is cheaper to exchange rows and
// columns once. A sum is then one of whole registers, and what varies over rows
// only needs no copy in each lane. Columns meet in the order of the tree, so no
// bit changes.
//
//===----------------------------------------------------------------------===//

#include "MapToRegisters.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::norm;

/// Sums of one value that pay for its exchange. With 16 rows of 16 elements it
/// takes 64 shuffles, a tree 30, and what a sum reads of a row's other
/// values 16.
static constexpr size_t kSumsOfSource = 3;

namespace {
/// The columns of a block of rows, each a vector with a lane for each row.
using Columns = SmallVector<Value>;

/// The reductions of one block of IR whose sources are vector<RxC>.
class ShortRows {
public:
  ShortRows(RewriterBase &rewriter,
            SmallVector<vector::MultiDimReductionOp> sums)
      : rewriter(rewriter), sums(std::move(sums)),
        type(this->sums.front().getSourceVectorType()) {}

  bool isWorthIt();
  void run();

private:
  bool isBlock(Value value) const {
    auto other = dyn_cast<VectorType>(value.getType());
    return other && other.getShape() == type.getShape();
  }
  bool variesOverRows(Value value) const;
  bool collectSources(Value value, SetVector<Value> &sources) const;
  Columns exchange(Value source);
  Columns get(Value value);

  RewriterBase &rewriter;
  SmallVector<vector::MultiDimReductionOp> sums;
  VectorType type;
  DenseMap<Value, Columns> exchanged;
};
} // namespace

/// What `value` has for each row if it is that in all columns; null if not.
static Value rowValue(Value value) {
  auto broadcast = value.getDefiningOp<vector::BroadcastOp>();
  auto source = broadcast
                    ? dyn_cast<VectorType>(broadcast.getSource().getType())
                    : VectorType();
  if (!source || source.getRank() != 2 || source.getDimSize(1) != 1)
    return {};
  return broadcast.getSource();
}

static bool isSplat(Value value) {
  SplatElementsAttr splat;
  return matchPattern(value, m_Constant(&splat));
}

/// The mask of a select that leaves out the last columns; null if `op` is none.
static vector::ConstantMaskOp columnMask(Operation *op) {
  auto select = dyn_cast_or_null<arith::SelectOp>(op);
  auto mask =
      select ? select.getCondition().getDefiningOp<vector::ConstantMaskOp>()
             : vector::ConstantMaskOp();
  if (!mask || mask.getMaskDimSizes().size() != 2 ||
      mask.getMaskDimSizes()[0] != mask.getVectorType().getDimSize(0))
    return {};
  return mask;
}

/// Whether `value` follows from values of rows, which have no columns to
/// exchange.
bool ShortRows::variesOverRows(Value value) const {
  Operation *op = value.getDefiningOp();
  if (!op || !isBlock(value))
    return false;
  if (rowValue(value) || columnMask(op))
    return true;
  return OpTrait::hasElementwiseMappableTraits(op) &&
         llvm::any_of(op->getOperands(),
                      [&](Value operand) { return variesOverRows(operand); });
}

/// Adds what must be exchanged for `value` to be; false if it cannot be, or
/// does not pay: what is computed of several reads, as a sum with a residual,
/// leaves too few registers.
bool ShortRows::collectSources(Value value, SetVector<Value> &sources) const {
  if (isSplat(value) || rowValue(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (!variesOverRows(value)) {
    sources.insert(value);
    if (auto extension = dyn_cast_or_null<arith::ExtFOp>(op))
      op = extension.getIn().getDefiningOp();
    return getElementTypeOrSelf(value).isF32() &&
           isa_and_nonnull<vector::TransferReadOp>(op);
  }
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return !isBlock(operand) ||
           operand.getDefiningOp<vector::ConstantMaskOp>() ||
           collectSources(operand, sources);
  });
}

bool ShortRows::isWorthIt() {
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  if (!type.getElementType().isF32() || rows * 32 != kLineBytes * 8 ||
      columns > rows || columns < 2 || !llvm::isPowerOf2_64(columns))
    return false;
  SetVector<Value> sources;
  return llvm::all_of(sums,
                      [&](vector::MultiDimReductionOp sum) {
                        return collectSources(sum.getSource(), sources);
                      }) &&
         sums.size() >= kSumsOfSource * sources.size();
}

/// C rows and their C columns change places by halves; R / C such squares lie
/// side by side in a register.
Columns ShortRows::exchange(Value source) {
  Location loc = source.getLoc();
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  auto shuffle = [&](Value first, Value second, int64_t length, auto laneOf) {
    return Value(vector::ShuffleOp::create(
        rewriter, loc, first, second,
        llvm::map_to_vector(llvm::seq<int64_t>(0, length), laneOf)));
  };
  Columns lines;
  for (int64_t row = 0; row < rows; ++row)
    lines.push_back(vector::ExtractOp::create(rewriter, loc, source, row));
  // Row i with row i + C, and so on.
  for (int64_t length = columns; length < rows; length *= 2) {
    Columns joined;
    for (size_t first = 0; first < lines.size(); first += 2 * columns)
      for (int64_t i = 0; i < columns; ++i)
        joined.push_back(shuffle(lines[first + i], lines[first + columns + i],
                                 2 * length,
                                 [](int64_t lane) { return lane; }));
    lines = std::move(joined);
  }
  for (int64_t half = columns / 2; half >= 1; half /= 2)
    for (int64_t i = 0; i < columns; ++i) {
      if (i & half)
        continue;
      Value upper = lines[i], lower = lines[i + half];
      lines[i] = shuffle(upper, lower, rows, [&](int64_t lane) {
        return lane & half ? rows + lane - half : lane;
      });
      lines[i + half] = shuffle(upper, lower, rows, [&](int64_t lane) {
        return lane & half ? rows + lane : lane + half;
      });
    }
  return lines;
}

Columns ShortRows::get(Value value) {
  if (auto known = exchanged.find(value); known != exchanged.end())
    return known->second;
  Location loc = value.getLoc();
  size_t columns = type.getDimSize(1);
  auto lineType =
      VectorType::get({type.getDimSize(0)}, getElementTypeOrSelf(value));
  SplatElementsAttr splat;
  Columns made;
  Operation *op = value.getDefiningOp();
  if (matchPattern(value, m_Constant(&splat))) {
    made.assign(columns, arith::ConstantOp::create(
                             rewriter, loc,
                             SplatElementsAttr::get(
                                 lineType, splat.getSplatValue<Attribute>())));
  } else if (Value rows = rowValue(value)) {
    made.assign(columns,
                vector::ShapeCastOp::create(rewriter, loc, lineType, rows));
  } else if (vector::ConstantMaskOp mask = columnMask(op)) {
    size_t active = mask.getMaskDimSizes()[1];
    made = get(op->getOperand(1));
    Columns others = get(op->getOperand(2));
    std::copy(others.begin() + active, others.end(), made.begin() + active);
  } else if (!variesOverRows(value)) {
    made = exchange(value);
  } else {
    SmallVector<Columns> operands;
    for (Value operand : op->getOperands())
      operands.push_back(isBlock(operand) ? get(operand)
                                          : Columns(columns, operand));
    for (size_t column = 0; column < columns; ++column) {
      auto values = llvm::map_to_vector(
          operands, [&](const Columns &operand) { return operand[column]; });
      made.push_back(clone(rewriter, op, lineType, values)->getResult(0));
    }
  }
  return exchanged[value] = made;
}

void ShortRows::run() {
  for (vector::MultiDimReductionOp sum : sums) {
    rewriter.setInsertionPoint(sum);
    Columns lines = get(sum.getSource());
    for (size_t half = lines.size() / 2; half >= 1; half /= 2)
      for (size_t i = 0; i < half; ++i)
        lines[i] = arith::AddFOp::create(rewriter, sum.getLoc(), lines[i],
                                         lines[i + half]);
    rewriter.replaceOpWithNewOp<arith::AddFOp>(sum, lines.front(),
                                               sum.getAcc());
  }
}

void norm::exchangeShortRows(RewriterBase &rewriter, scf::ForallOp loop) {
  llvm::MapVector<std::pair<Block *, Type>,
                  SmallVector<vector::MultiDimReductionOp>>
      groups;
  loop.walk([&](vector::MultiDimReductionOp sum) {
    if (sum.getKind() == vector::CombiningKind::ADD &&
        sum.getSourceVectorType().getRank() == 2 &&
        sum.getReductionDims() == ArrayRef<int64_t>{1})
      groups[{sum->getBlock(), sum.getSourceVectorType()}].push_back(sum);
  });
  for (auto &[key, sums] : groups) {
    ShortRows rows(rewriter, sums);
    if (rows.isWorthIt())
      rows.run();
  }
}
