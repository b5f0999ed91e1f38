//===- Rotary.cpp - Norms and rotary embeddings ----------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Analysis/Rotary.h"

#include "Norm/Analysis/Constants.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// C34
//===----------------------------------------------------------------------===//

/// Whether the elements of every pair along `dim` are equal.
static bool isEqualInPairs(const ConstantTensor &gain, int64_t dim,
                           RotaryLayout layout) {
  int64_t extent = gain.getShape()[dim], inner = 1;
  for (int64_t size : gain.getShape().drop_front(dim + 1))
    inner *= size;
  int64_t outer = gain.getType().getNumElements() / (extent * inner);
  bool isHalfSplit = layout == RotaryLayout::HalfSplit;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t pair = 0; pair < extent / 2; ++pair) {
      int64_t one = isHalfSplit ? pair : 2 * pair;
      int64_t other = isHalfSplit ? pair + extent / 2 : one + 1;
      for (int64_t i = 0; i < inner; ++i)
        if (gain[(o * extent + one) * inner + i] !=
            gain[(o * extent + other) * inner + i])
          return false;
    }
  return true;
}

bool norm::commutesWithRotaryEmbedding(NormOpInterface op, int64_t axis,
                                       RotaryLayout layout) {
  if (op.isCentred() || op.hasGivenStatistics() || op.getResidualOrNull() ||
      op.getShiftOrNull() || !llvm::is_contained(op.getReducedAxes(), axis))
    return false;
  int64_t extent = op.getInput().getType().getDimSize(axis);
  if (ShapedType::isDynamic(extent) || extent % 2 != 0)
    return false;
  if (!op.getScaleOrNull())
    return true;
  SmallVector<int64_t> affine = op.getAffineAxesOrDefault();
  const int64_t *dim = llvm::find(affine, axis);
  if (dim == affine.end())
    return true;
  std::optional<ConstantTensor> gain = matchConstant(op.getScaleOrNull());
  return gain && isEqualInPairs(*gain, dim - affine.begin(), layout);
}

//===----------------------------------------------------------------------===//
// Embeddings
//===----------------------------------------------------------------------===//

/// The elementwise linalg op with the only result `value` whose body is one
/// OpTy on its inputs, in their order; null for any other.
template <typename OpTy> static linalg::LinalgOp matchElementwise(Value value) {
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  if (!op || !op.hasPureTensorSemantics() || op.getNumDpsInits() != 1 ||
      op.getNumParallelLoops() != op.getNumLoops() ||
      !op.getIndexingMapsArray().back().isIdentity())
    return nullptr;
  Block &body = op->getRegion(0).front();
  if (body.getOperations().size() != 2 || !isa<OpTy>(body.front()) ||
      body.getTerminator()->getOperand(0) != body.front().getResult(0) ||
      static_cast<int64_t>(body.front().getNumOperands()) !=
          op.getNumDpsInputs())
    return nullptr;
  for (auto [operand, argument] :
       llvm::zip(body.front().getOperands(), body.getArguments()))
    if (operand != argument)
      return nullptr;
  return op;
}

/// The operands of `op` that are read element for element.
static SmallVector<Value> identityOperands(linalg::LinalgOp op) {
  SmallVector<Value> operands;
  for (OpOperand *operand : op.getDpsInputOperands())
    if (op.getMatchingIndexingMap(operand).isIdentity())
      operands.push_back(operand->get());
  return operands;
}

/// Whether `slice` is the half of its source along `dim` that starts at
/// `start`.
static bool isHalf(tensor::ExtractSliceOp slice, int64_t dim, int64_t start) {
  auto type = slice.getSourceType();
  if (slice.getResultType().getRank() != type.getRank())
    return false;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    int64_t extent = type.getDimSize(i);
    if (getConstantIntValue(slice.getMixedOffsets()[i]) !=
            (i == dim ? start : 0) ||
        getConstantIntValue(slice.getMixedStrides()[i]) != 1)
      return false;
    // Other dimensions are whole: a concatenation of halves is of x's shape.
    if (i == dim && getConstantIntValue(slice.getMixedSizes()[i]) != extent / 2)
      return false;
  }
  return true;
}

/// x and the dimension of concat(-x[d/2..], x[..d/2]).
static std::optional<std::pair<Value, int64_t>> matchTurned(Value value) {
  auto concat = value.getDefiningOp<tensor::ConcatOp>();
  if (!concat || !concat->hasOneUse() || concat.getInputs().size() != 2)
    return std::nullopt;
  linalg::LinalgOp negated =
      matchElementwise<arith::NegFOp>(concat.getInputs()[0]);
  if (!negated || identityOperands(negated).size() != 1 ||
      !negated->hasOneUse())
    return std::nullopt;
  auto high = negated.getDpsInputs()[0].getDefiningOp<tensor::ExtractSliceOp>();
  auto low = concat.getInputs()[1].getDefiningOp<tensor::ExtractSliceOp>();
  if (!high || !low || high.getSource() != low.getSource() ||
      !high->hasOneUse() || !low->hasOneUse() ||
      high.getSourceType() != value.getType())
    return std::nullopt;
  auto dim = static_cast<int64_t>(concat.getDim());
  int64_t extent = low.getSourceType().getDimSize(dim);
  if (ShapedType::isDynamic(extent) || extent % 2 != 0 ||
      !isHalf(low, dim, 0) || !isHalf(high, dim, extent / 2))
    return std::nullopt;
  return std::make_pair(low.getSource(), dim);
}

std::optional<RotaryEmbedding> norm::matchRotaryEmbedding(Value value) {
  linalg::LinalgOp sum = matchElementwise<arith::AddFOp>(value);
  if (!sum || identityOperands(sum).size() != 2)
    return std::nullopt;
  for (int64_t first : {0, 1}) {
    Value plain = sum.getDpsInputs()[first],
          turned = sum.getDpsInputs()[1 - first];
    linalg::LinalgOp byCos = matchElementwise<arith::MulFOp>(plain),
                     bySin = matchElementwise<arith::MulFOp>(turned);
    if (!byCos || !bySin || !plain.hasOneUse() || !turned.hasOneUse())
      continue;
    for (Value operand : identityOperands(bySin)) {
      auto source = matchTurned(operand);
      // Uses: the product, and the two halves.
      if (source &&
          llvm::is_contained(identityOperands(byCos), source->first) &&
          source->first.hasNUses(3))
        return RotaryEmbedding{source->first, source->second,
                               RotaryLayout::HalfSplit};
    }
  }
  return std::nullopt;
}
