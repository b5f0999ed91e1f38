//===- SplitGradients.cpp - norm-split-gradients ---------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// dx of a group norm sums within a group, dscale and dshift over all samples.
// One tile cannot do both, so the parameters' gradients become an op of their
// own, with statistics that both can read. Where all sums run over the same
// axes, as in a batch norm, or those of the parameters over whole rows, as in a
// layer norm, nothing changes: one tile holds them all.
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "../IR/RowBuilder.h"
#include "Norm/IR/GroupView.h"
#include "Norm/IR/NormOps.h"
#include "TilePlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::norm {
#define GEN_PASS_DEF_SPLITGRADIENTSPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

namespace {
/// Splits one backward op. On a group norm's gradient it works on the view of
/// x whose channel axis is two, of which the statistics keep the first.
class Splitter {
public:
  Splitter(NormBackwardOpInterface op, RewriterBase &rewriter)
      : op(op), rewriter(rewriter), loc(op.getLoc()),
        contract(BackwardContract::get(op)), forward(contract.forward) {
    if (op.getGroupedAxis())
      view.emplace(op, rewriter);
    all = llvm::to_vector(llvm::seq<int64_t>(0, op.getRank()));
    axes = forward.axes;
    affineAxes = *forward.affineAxes;
    if (view) {
      axes = view->axes(axes, /*onlyWithin=*/true);
      affineAxes = view->axes(affineAxes, /*onlyWithin=*/false);
    }
  }

  void run();

private:
  Value expanded(Value tensor) {
    return view ? view->expand(tensor, all) : tensor;
  }
  /// Fills in mean and rstd where they are not saved.
  void buildStatistics(Value source);
  /// Whether a mean in f64 is too coarse: it would be what f64 data is centred
  /// by, where the forward op subtracts a pair.
  bool needsPair() {
    return op.getStatistic() == Statistic::Variance && contract.dscaleType &&
           forward.computeType.isF64() && !contract.mean &&
           forward.affineIn == AffineIn::Compute;
  }
  /// `source` centred by a forward norm, which keeps the pair, and the factor
  /// that is left.
  Value buildCentred(Value source);
  Value buildRstd(Value source, Value m2, Value count);
  RankedTensorType typeAt(Value tensor, ArrayRef<int64_t> at, Type element);

  NormBackwardOpInterface op;
  RewriterBase &rewriter;
  Location loc;
  BackwardContract contract;
  NormContract &forward;
  std::optional<GroupView> view;
  /// Axes of the view: all of x's own, the reduced and the affine ones.
  SmallVector<int64_t> all, axes, affineAxes;
};
} // namespace

RankedTensorType Splitter::typeAt(Value tensor, ArrayRef<int64_t> at,
                                  Type element) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape = llvm::map_to_vector(
      at, [&](int64_t axis) { return type.getDimSize(axis); });
  return RankedTensorType::get(shape, element);
}

void Splitter::buildStatistics(Value source) {
  bool isCentred = op.getStatistic() == Statistic::Variance;
  bool needsMean = isCentred && contract.dscaleType && !contract.mean;
  bool needsVariance = !contract.rstd && !contract.variance;
  int64_t rank = cast<RankedTensorType>(source.getType()).getRank();
  SmallVector<int64_t> kept = complementAxes(axes, rank);
  TypeAttr compute = TypeAttr::get(forward.computeType);
  // Constants of batch_norm_inference may be of any type; the algebra takes the
  // compute type or f64.
  auto widened = [&](Value value) -> Value {
    if (!value ||
        widestElementType(forward.computeType, {value}) !=
            forward.computeType ||
        getElementTypeOrSelf(value.getType()) == forward.computeType)
      return value;
    auto type = cast<RankedTensorType>(value.getType());
    return arith::ExtFOp::create(rewriter, loc, type.clone(forward.computeType),
                                 value);
  };
  contract.mean = widened(contract.mean);
  Value m2 = widened(contract.variance), count;
  if (needsMean || needsVariance) {
    // In f64 nothing is lost between the ops.
    auto statistic = typeAt(source, kept, rewriter.getF64Type());
    auto moments = MomentsOp::create(
        rewriter, loc, typeAt(source, kept, rewriter.getI64Type()),
        isCentred ? statistic : RankedTensorType(), statistic, source,
        /*mask=*/Value(), axes, isCentred ? About::Mean : About::Zero, compute);
    if (needsMean)
      contract.mean = moments.getMean();
    if (needsVariance) {
      m2 = moments.getM2();
      // A sum of squares is its own statistic, as a given variance is.
      if (op.getStatistic() != Statistic::SumSquare)
        count = moments.getCount();
    }
  }
  if (!contract.rstd)
    contract.rstd = buildRstd(source, m2, count);
}

Value Splitter::buildRstd(Value source, Value m2, Value count) {
  int64_t rank = cast<RankedTensorType>(source.getType()).getRank();
  RankedTensorType type =
      typeAt(source, complementAxes(axes, rank), forward.computeType);
  return RstdOp::create(rewriter, loc, type, /*variance=*/Type(), m2, count,
                        forward.epsilon, TypeAttr::get(forward.computeType),
                        count ? forward.correction : 0, forward.zeroPolicy)
      .getRstd();
}

Value Splitter::buildCentred(Value source) {
  NormContract norm;
  norm.x = source;
  norm.axes = axes;
  norm.computeType = norm.resultType = forward.computeType;
  if (contract.rstd || contract.variance) {
    // (c - m) * r0 with a factor that is never 0 nor infinite; the one that is
    // given, divided by it, is left.
    norm.epsilon =
        EpsilonAttr::get(op.getContext(), EpsilonPlacement::InsideSqrt, 1.0);
    norm.wantsRstd = true;
    auto centred = LayerNormOp::create(rewriter, loc, norm);
    if (!contract.rstd)
      contract.rstd = buildRstd(source, contract.variance, /*count=*/Value());
    contract.rstd =
        arith::DivFOp::create(rewriter, loc, contract.rstd, centred.getRstd());
    return centred.getY();
  }
  norm.epsilon = forward.epsilon;
  norm.correction = forward.correction;
  norm.zeroPolicy = forward.zeroPolicy;
  int64_t rank = cast<RankedTensorType>(source.getType()).getRank();
  SmallVector<OpFoldResult> extents;
  for (int64_t axis : complementAxes(axes, rank))
    extents.push_back(tensor::getMixedSize(rewriter, loc, source, axis));
  Value one = arith::ConstantOp::create(
      rewriter, loc, FloatAttr::get(forward.computeType, 1.0));
  Value empty =
      tensor::EmptyOp::create(rewriter, loc, extents, forward.computeType);
  contract.rstd =
      linalg::FillOp::create(rewriter, loc, one, empty).getResult(0);
  return LayerNormOp::create(rewriter, loc, norm).getY();
}

void Splitter::run() {
  // x-hat is rounded to the type of x, which the unrounded sum does not have.
  if (forward.residual && forward.affineIn == AffineIn::Result)
    return;
  rewriter.setInsertionPoint(op);
  BackwardContract onlyDx = contract;
  onlyDx.dscaleType = onlyDx.dshiftType = FloatType();
  // Without them and without a scale nothing is there to index (V17).
  if (!forward.scale)
    onlyDx.forward.affineAxes.reset();
  Operation *dx = op.rebuild(rewriter, loc, onlyDx);
  if (!dx)
    return;

  RowBuilder rows(op, rewriter);
  Value source = expanded(buildGradientSource(rows, forward));
  if (needsPair())
    source = buildCentred(source);
  else
    buildStatistics(source);
  auto gradient = [&](FloatType element) {
    return element ? typeAt(source, affineAxes, element) : RankedTensorType();
  };
  auto gradients = BackwardMomentsOp::create(
      rewriter, loc, /*sum_g=*/Type(), /*sum_gx=*/Type(),
      gradient(contract.dscaleType), gradient(contract.dshiftType),
      expanded(contract.dy), source,
      contract.dscaleType ? contract.mean : Value(), contract.rstd,
      /*scale=*/Value(), /*mask=*/Value(), axes,
      rewriter.getDenseI64ArrayAttr(affineAxes),
      TypeAttr::get(forward.computeType), APFloat(0.0), forward.affineIn);
  SmallVector<int64_t> original = *forward.affineAxes;
  auto replace = [&](Value from, Value to) {
    if (!from)
      return;
    if (view)
      to = view->collapse(to, original, from.getType());
    else if (to.getType() != from.getType())
      to = tensor::CastOp::create(rewriter, loc, from.getType(), to);
    rewriter.replaceAllUsesWith(from, to);
  };
  replace(op.getDscaleOrNull(), gradients.getDscale());
  replace(op.getDshiftOrNull(), gradients.getDshift());
  rewriter.replaceAllUsesWith(op.getDx(),
                              cast<NormBackwardOpInterface>(dx).getDx());
  rewriter.eraseOp(op);
}

/// Splits sums over the reduced axes from parameters' gradients in tier 2.
static void split(BackwardMomentsOp op, RewriterBase &rewriter) {
  rewriter.setInsertionPoint(op);
  auto typeOf = [](Value value) { return value ? value.getType() : Type(); };
  auto create = [&](Type sumG, Type sumGX, Type dscale, Type dshift) {
    Value scale = sumG || sumGX ? op.getScale() : Value();
    auto part = BackwardMomentsOp::create(
        rewriter, op.getLoc(), sumG, sumGX, dscale, dshift, op.getDy(),
        op.getX(), op.getMean(), op.getRstd(), scale, op.getMask(),
        op.getAxesAttr(),
        // Nothing to index, no axes (V17).
        scale || dscale || dshift ? op.getAffineAxesAttr()
                                  : DenseI64ArrayAttr(),
        op.getComputeTypeAttr(),
        sumG || sumGX ? op.getScaleOffsetAttr() : rewriter.getF64FloatAttr(0.0),
        op.getAffineInAttr());
    part->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    return part;
  };
  auto sums =
      create(typeOf(op.getSumG()), typeOf(op.getSumGx()), Type(), Type());
  auto gradients =
      create(Type(), Type(), typeOf(op.getDscale()), typeOf(op.getDshift()));
  SmallVector<Value> results(sums->getResults());
  llvm::append_range(results, gradients->getResults());
  rewriter.replaceOp(op, results);
}

namespace {
struct SplitGradients
    : public norm::impl::SplitGradientsPassBase<SplitGradients> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<NormBackwardOpInterface> norms;
    SmallVector<BackwardMomentsOp> moments;
    getOperation()->walk([&](Operation *op) {
      if (auto norm = dyn_cast<NormBackwardOpInterface>(op))
        norms.push_back(norm);
      else if (auto sums = dyn_cast<BackwardMomentsOp>(op))
        moments.push_back(sums);
    });
    for (NormBackwardOpInterface op : norms)
      if (!fitsTile(op))
        Splitter(op, rewriter).run();
    for (BackwardMomentsOp op : moments)
      if (!fitsTile(op))
        split(op, rewriter);
  }
};
} // namespace
