//===- CanonicalizeCasts.cpp - Casts around a norm -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Canonicalize.h"

#include "Norm/Analysis/ElementView.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::norm;

static FloatType elementType(Value tensor) {
  return cast<FloatType>(getElementTypeOrSelf(tensor.getType()));
}

static bool holdsAll(FloatType wide, FloatType narrow) {
  return wide == narrow || wide.getWidth() > narrow.getWidth();
}

/// The tensor of the same shape that `value` is a cast of, element by element;
/// null if it is none.
static Value castSource(Value value, bool widening) {
  using namespace elements;
  auto type =
      dyn_cast_or_null<RankedTensorType>(value ? value.getType() : Type());
  if (!type || !isa<FloatType>(type.getElementType()))
    return {};
  Frame frame(type);
  ViewAnalysis views(frame);
  Expr expr = views.expand(frame.identity(value));
  if (!expr.is(widening ? Kind::Ext : Kind::Trunc))
    return {};
  View source = views.look(expr.operands[0]);
  if (!frame.isIdentity(source))
    return {};
  auto sourceType = cast<RankedTensorType>(source.value.getType());
  return sourceType.getShape() == type.getShape() ? source.value : Value();
}

namespace {
/// C26 on y: a cast of the result is the result's type, where the value meets
/// one rounding before and after.
struct AbsorbResultCast : RulePattern<NormOpInterface> {
  AbsorbResultCast(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C26", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    Value y = op.getNormalized();
    Operation *user = nullptr;
    for (Operation *candidate : y.getUsers())
      if (candidate->getNumResults() == 1 &&
          (castSource(candidate->getResult(0), /*widening=*/false) == y ||
           castSource(candidate->getResult(0), /*widening=*/true) == y))
        user = candidate;
    if (!user)
      return failure();
    Value narrowed = user->getResult(0);
    FloatType stored = elementType(y), compute = op.getComputeTypeOrDefault();
    // What is computed in f32 is an f32 in code for a CPU, while the reference
    // rounds it to the stored type for the first time.
    if (compute.isF32() && stored.isF32() && failed(rule.requireReal(op)))
      return failure();
    if (failed(rule.require(op, "single-use", y.hasOneUse(),
                            "the cast is not the only use of the result")) ||
        failed(requireAffineInCompute(rule, op)) ||
        failed(rule.require(op, "rounds-once", holdsAll(stored, compute),
                            "the result is rounded before the cast")))
      return failure();
    NormContract contract = NormContract::get(op);
    contract.resultType = elementType(narrowed);
    NormOpInterface rebuilt = rebuildNorm(rewriter, op, contract);
    if (!rebuilt)
      return rewriter.notifyMatchFailure(op, "the op cannot be rebuilt");
    rule.applied(op, "took a cast of the result into its type");
    NormResults results = NormResults::get(rebuilt);
    Value cast = results.y;
    if (cast.getType() != narrowed.getType())
      cast = tensor::CastOp::create(rewriter, op->getLoc(), narrowed.getType(),
                                    cast);
    rewriter.replaceOp(user, cast);
    replaceNorm(rewriter, op, results);
    return success();
  }

  static LogicalResult requireAffineInCompute(const Rule &rule,
                                              NormOpInterface op) {
    return rule.require(op, "affine-in-compute",
                        op.getAffineIn() == AffineIn::Compute,
                        "scale and shift round in the types of x and of the "
                        "result");
  }
};

/// C26 on x: what was widened is read as it was stored.
struct AbsorbInputCast : RulePattern<NormOpInterface> {
  AbsorbInputCast(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C26", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    Value source = castSource(op.getInput(), /*widening=*/true);
    if (!source)
      return failure();
    FloatType narrow = elementType(source),
              compute = op.getComputeTypeOrDefault();
    NormContract contract = NormContract::get(op), old = contract;
    contract.x = source;
    if (correctsMeanAgain(op, contract) != correctsMeanAgain(op, old) &&
        failed(rule.requireReal(op)))
      return failure();
    bool isComputable =
        compute == narrow || compute.getWidth() != narrow.getWidth();
    if (failed(rule.require(op, "no-residual", !op.getResidualOrNull(),
                            "x + residual rounds to the type of x")) ||
        failed(AbsorbResultCast::requireAffineInCompute(rule, op)) ||
        failed(rule.require(op, "compute-type", isComputable,
                            "the compute type does not hold what was widened")))
      return failure();
    rule.applied(op, "reads what was widened to x");
    return replaceByContract(rewriter, op, contract);
  }
};

/// C26 on scale and shift: the same numbers in fewer bits.
struct AbsorbAffineCast : RulePattern<NormOpInterface> {
  AbsorbAffineCast(MLIRContext *context, const RewritePolicy &policy)
      : RulePattern(context, "C26", policy) {}

  LogicalResult matchAndRewrite(NormOpInterface op,
                                PatternRewriter &rewriter) const override {
    NormContract contract = NormContract::get(op);
    Value scale = castSource(contract.scale, /*widening=*/true),
          shift = castSource(contract.shift, /*widening=*/true);
    // An offset is added in the wider of the gain's type and the result's.
    if (contract.affineIn == AffineIn::Result && contract.scaleOffset != 0.0)
      scale = {};
    if (!scale && !shift)
      return failure();
    if (scale)
      contract.scale = scale;
    if (shift)
      contract.shift = shift;
    rule.applied(op, "reads what was widened to scale and shift");
    return replaceByContract(rewriter, op, contract);
  }
};
} // namespace

void norm::populateCastPatterns(RewritePatternSet &patterns,
                                const RewritePolicy &policy) {
  patterns.add<AbsorbResultCast, AbsorbInputCast, AbsorbAffineCast>(
      patterns.getContext(), policy);
}
