//===- Rotation.cpp - Norms and orthogonal matrices ------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// C31: a multiplication by an orthogonal matrix keeps the squares of a row, so
// the norm may be taken before it, where the input of the layer may be
// normalized already or the product may merge with the next one.
//
//===----------------------------------------------------------------------===//

#include "Movement.h"
#include "Parts.h"
#include "Simplify.h"

#include "Norm/Analysis/Constants.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;
using namespace mlir::norm;

/// Larger matrices take too long to check.
static constexpr int64_t kMaxSize = 1024;

namespace {
/// A product of the rows of a tensor with a square matrix.
struct RowProduct {
  linalg::LinalgOp op;
  Value rows;
  ConstantTensor matrix;
  /// Whether the product is with the transpose of the constant.
  bool isTransposed;
  int64_t size;

  /// matrix[k, n], as it is multiplied.
  double at(int64_t k, int64_t n) const {
    return isTransposed ? matrix[n * size + k] : matrix[k * size + n];
  }
};
} // namespace

/// Matches y[.., n] = sum_k x[.., k] * constant[k, n] (or [n, k]), into zeros.
static std::optional<RowProduct> matchRowProduct(Value value) {
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  if (!op || !op.hasPureTensorSemantics() || op.getNumDpsInputs() != 2 ||
      op.getNumDpsInits() != 1 || !linalg::isaContractionOpInterface(op) ||
      op.getNumReductionLoops() != 1)
    return std::nullopt;
  auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  std::optional<double> init = fill ? matchConstantScalar(fill.getInputs()[0])
                                    : matchConstantScalar(op.getDpsInits()[0]);
  std::optional<ConstantTensor> matrix = matchConstant(op.getDpsInputs()[1]);
  if (init != 0.0 || !matrix || matrix->getType().getRank() != 2 ||
      matrix->getShape()[0] != matrix->getShape()[1])
    return std::nullopt;

  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap rows = maps[0], weights = maps[1], out = maps[2];
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  AffineExpr k = getAffineDimExpr(reductions.front(), op.getContext());
  unsigned last = out.getNumResults() - 1;
  if (out.getNumResults() == 0 || rows.getNumResults() != out.getNumResults() ||
      rows.getResult(last) != k ||
      rows.getResults().drop_back() != out.getResults().drop_back())
    return std::nullopt;
  AffineExpr n = out.getResult(last);
  bool isPlain = weights.getResult(0) == k && weights.getResult(1) == n;
  bool isTransposed = weights.getResult(0) == n && weights.getResult(1) == k;
  if (!isPlain && !isTransposed)
    return std::nullopt;
  return RowProduct{op, op.getDpsInputs()[0], *matrix, isTransposed,
                    matrix->getShape()[0]};
}

/// The largest element of Q * Q^T - I, in f64; NaN if one is.
static double distanceFromOrthogonal(const RowProduct &product) {
  double distance = 0.0;
  for (int64_t i = 0; i < product.size; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      double sum = i == j ? -1.0 : 0.0;
      for (int64_t n = 0; n < product.size; ++n)
        sum += product.at(i, n) * product.at(j, n);
      if (std::isnan(sum))
        return sum;
      distance = std::max(distance, std::abs(sum));
    }
  return distance;
}

namespace {
/// C31: norm(x * Q) -> norm(x) * Q.
struct MoveRotation : RulePattern<NormOpInterface> {
  MoveRotation(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C31", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    std::optional<RowProduct> product = matchRowProduct(op.getInput());
    if (!product ||
        op.getReducedAxes() != SmallVector<int64_t>{op.getRank() - 1})
      return failure();
    if (failed(rule.requireReal(op)) || failed(checkNorm(op)) ||
        failed(checkMatrix(op, *product)) || !isRebuildable(rewriter, op))
      return failure();

    rewriter.setInsertionPoint(op);
    NormContract contract = NormContract::get(op);
    contract.x = product->rows;
    NormOpInterface moved = buildMoved(rewriter, op, contract);
    rule.applied(op, "the norm is taken before the rotation");
    replaceByMoved(rewriter, op, moved,
                   [&](Value value, ArrayRef<int64_t> axes) {
                     // Statistics do not change.
                     if (static_cast<int64_t>(axes.size()) != moved.getRank())
                       return value;
                     return multiply(rewriter, *product, value);
                   });
    return success();
  }

private:
  LogicalResult checkNorm(NormOpInterface op) const {
    if (failed(rule.require(op, "not-centred", !op.isCentred(),
                            "a rotation moves the mean")) ||
        failed(rule.require(op, "single-use", isUsedOnlyBy(op.getInput(), op),
                            "something else reads the product: it would be "
                            "computed twice")))
      return failure();
    if (op.getScaleOrNull() || op.getShiftOrNull())
      return rule.refuse(op, "no-gain",
                         "expected neither scale nor shift, which follow the "
                         "axes of the rotated tensor");
    if (op.getResidualOrNull())
      return rule.refuse(op, "no-residual",
                         "expected x alone, got a residual beside it");
    auto typeOf = [](Value value) {
      return cast<ShapedType>(value.getType()).getElementType();
    };
    auto product = cast<linalg::LinalgOp>(op.getInput().getDefiningOp());
    Type type = typeOf(op.getInput());
    if (type != typeOf(op.getNormalized()) ||
        !llvm::all_of(product->getOperands(),
                      [&](Value value) { return typeOf(value) == type; }))
      return rule.refuse(op, "one-type",
                         "expected one element type in product and norm");
    return success();
  }

  LogicalResult checkMatrix(NormOpInterface op,
                            const RowProduct &product) const {
    if (product.size > kMaxSize)
      return rule.refuse(op, "size",
                         "expected a matrix of at most " + Twine(kMaxSize) +
                             " rows, got " + Twine(product.size));
    // What rounding an orthogonal matrix to the type leaves: every element of
    // Q * Q^T is off by at most one epsilon.
    auto type = cast<FloatType>(product.matrix.getType().getElementType());
    double bound = 2 * std::ldexp(1.0, 1 - int(type.getFPMantissaWidth()));
    double distance = distanceFromOrthogonal(product);
    return rule.require(op, "orthogonal", distance <= bound,
                        "expected Q * Q^T = I within " +
                            simplify::numberText(bound) + ", got " +
                            simplify::numberText(distance));
  }

  /// The product with other rows.
  static Value multiply(PatternRewriter &rewriter, const RowProduct &product,
                        Value rows) {
    Operation *clone = rewriter.clone(*product.op);
    clone->setOperand(0, rows);
    return clone->getResult(0);
  }
};
} // namespace

void norm::populateRotationPatterns(RewritePatternSet &patterns,
                                    const RewritePolicy &policy) {
  patterns.add<MoveRotation>(patterns.getContext(), policy);
}
