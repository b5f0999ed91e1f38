//===- RegistersReduce.cpp - Sums of a vector's columns -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every row is combined by halves: lane i with lane i + length / 2, until one
// is left. The order is part of the promise that a row's bits do not depend on
// what it is computed beside, so rows that are combined together keep it, up to
// which operand of a commutative op comes first.
//
//===----------------------------------------------------------------------===//

#include "MapToRegisters.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Utils/VectorUtils.h"

using namespace mlir;
using namespace mlir::norm;

/// More rows than this would not stay in registers.
static constexpr int64_t kMaxMergedRows = 16;

static int64_t lengthOf(Value vector) {
  return cast<VectorType>(vector.getType()).getDimSize(0);
}

/// Combines the halves of a 1-D vector, whose length is a power of two, until
/// `length` elements are left.
static Value foldTo(OpBuilder &builder, Location loc, Value vector,
                    int64_t length, vector::CombiningKind kind) {
  while (lengthOf(vector) > length) {
    int64_t half = lengthOf(vector) / 2;
    auto take = [&](int64_t offset) -> Value {
      return vector::ShuffleOp::create(
          builder, loc, vector, vector,
          llvm::to_vector(llvm::seq(offset, offset + half)));
    };
    vector =
        vector::makeArithReduction(builder, loc, kind, take(0), take(half));
  }
  return vector;
}

/// Combines each of `rows`, 1-D vectors of one length: as many rows as a vector
/// has lanes, or a smaller power of two. Returns one vector with a lane for
/// each, in order.
///
/// Two rows are halved at once: lanes of the lower half take the first row's
/// sums, those of the upper half the second's. Two such pairs are halved again,
/// four rows to a vector, and so on. Row r meets row r + count / 2 first, then
/// the others in between, which leaves them in order.
static Value mergeRows(OpBuilder &builder, Location loc,
                       SmallVector<Value> rows, vector::CombiningKind kind) {
  int64_t length = lengthOf(rows.front()), count = rows.size();
  auto combine = [&](Value first, Value second, int64_t half) -> Value {
    SmallVector<int64_t> near, far;
    for (int64_t lane = 0; lane < length; ++lane) {
      // The first row's lower lanes stay in place, and the second's upper ones.
      int64_t base = lane & half && first != second ? length : 0;
      near.push_back(base + lane);
      far.push_back(base + (lane ^ half));
    }
    // A row alone keeps its lanes.
    Value kept = first == second ? first
                                 : Value(vector::ShuffleOp::create(
                                       builder, loc, first, second, near));
    Value moved = vector::ShuffleOp::create(builder, loc, first, second, far);
    return vector::makeArithReduction(builder, loc, kind, kept, moved);
  };
  int64_t half = length / 2;
  for (; rows.size() > 1; half /= 2) {
    size_t pairs = rows.size() / 2;
    for (size_t pair = 0; pair < pairs; ++pair)
      rows[pair] = combine(rows[pair], rows[pair + pairs], half);
    rows.resize(pairs);
  }
  Value merged = rows.front();
  for (; half >= 1; half /= 2)
    merged = combine(merged, merged, half);
  if (count == length)
    return merged;
  auto lanes =
      llvm::map_to_vector(llvm::seq<int64_t>(0, count),
                          [&](int64_t r) { return r * (length / count); });
  return vector::ShuffleOp::create(builder, loc, merged, merged, lanes);
}

/// Whether a row's bits survive that some lanes have the operands exchanged:
/// minnum and maxnum leave open which zero comes out.
static bool isCommutative(vector::CombiningKind kind) {
  return kind != vector::CombiningKind::MINNUMF &&
         kind != vector::CombiningKind::MAXNUMF;
}

/// The columns of vector<RxC>, combined to vector<R>.
static Value reduceRows(OpBuilder &builder, Location loc, Value source,
                        vector::CombiningKind kind) {
  auto type = cast<VectorType>(source.getType());
  int64_t numRows = type.getDimSize(0), columns = type.getDimSize(1);
  auto resultType = VectorType::get({numRows}, type.getElementType());
  if (columns == 1)
    return vector::ShapeCastOp::create(builder, loc, resultType, source);

  bool isMerged = numRows <= kMaxMergedRows && llvm::isPowerOf2_64(numRows) &&
                  isCommutative(kind);
  int64_t lanes = std::min(
      columns,
      std::max<int64_t>(kLineBytes * 8 / type.getElementTypeBitWidth(), 1));
  if (!isMerged || numRows == 1)
    lanes = 1;
  SmallVector<Value> rows;
  for (int64_t row = 0; row < numRows; ++row)
    rows.push_back(foldTo(builder, loc,
                          vector::ExtractOp::create(builder, loc, source, row),
                          lanes, kind));
  if (numRows == 1)
    return rows.front();
  if (!isMerged) {
    for (Value &row : rows)
      row = vector::ExtractOp::create(builder, loc, row, 0);
    return vector::FromElementsOp::create(builder, loc, resultType, rows);
  }

  // More rows than lanes: as many at a time as there are lanes.
  SmallVector<Value> groups;
  int64_t size = std::min(numRows, lanes);
  for (int64_t row = 0; row < numRows; row += size)
    groups.push_back(mergeRows(
        builder, loc, llvm::to_vector(ArrayRef(rows).slice(row, size)), kind));
  while (groups.size() > 1) {
    SmallVector<Value> joined;
    for (size_t i = 0; i < groups.size(); i += 2)
      joined.push_back(
          vector::ShuffleOp::create(builder, loc, groups[i], groups[i + 1],
                                    llvm::to_vector(llvm::seq<int64_t>(
                                        0, 2 * lengthOf(groups.front())))));
    groups = std::move(joined);
  }
  return groups.front();
}

namespace {
/// vector<RxC> or vector<C> over its columns.
struct ReduceColumns : public OpRewritePattern<vector::MultiDimReductionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(vector::MultiDimReductionOp op,
                                PatternRewriter &rewriter) const override {
    VectorType type = op.getSourceVectorType();
    int64_t last = type.getRank() - 1;
    if (type.getRank() > 2 ||
        op.getReductionDims() != ArrayRef<int64_t>{last} ||
        !llvm::isPowerOf2_64(type.getDimSize(last)))
      return rewriter.notifyMatchFailure(
          op, "expected the columns of vector<RxC> to be reduced, C a power "
              "of two");
    Location loc = op.getLoc();
    vector::CombiningKind kind = op.getKind();
    Value sum = type.getRank() == 2
                    ? reduceRows(rewriter, loc, op.getSource(), kind)
                    : vector::ExtractOp::create(
                          rewriter, loc,
                          foldTo(rewriter, loc, op.getSource(), 1, kind), 0);
    rewriter.replaceOp(
        op, vector::makeArithReduction(rewriter, loc, kind, sum, op.getAcc()));
    return success();
  }
};
} // namespace

void norm::populateReductionTrees(RewritePatternSet &patterns) {
  patterns.add<ReduceColumns>(patterns.getContext());
}
