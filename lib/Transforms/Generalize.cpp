//===- Generalize.cpp - Named norms in the statistics algebra -------------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   forward    moments -> [combine_moments] -> rstd -> normalize
//              (+ update_running of both running statistics)
//   backward   moments and rstd, where they are not saved, as in the forward op
//              -> backward_moments -> [sums over parts] -> backward_normalize
//
// Between these ops statistics are f64 whatever the compute type: a mean keeps
// what rounding to f32 would take from it, without which a row far from 0 has
// no correct digit.
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Generalize.h"

#include "../IR/RowBuilder.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

using namespace mlir;
using namespace mlir::norm;

namespace {
/// The moments of rows; absent where they are not asked for or not defined.
struct Moments {
  Value count, mean, m2;
};

/// What the forward and the backward form share.
class Generalizer {
protected:
  Generalizer(RowOpInterface op, OpBuilder &builder,
              const NormContract &contract, Statistic statistic,
              const GeneralizeOptions &options)
      : op(op), rows(op, builder), builder(builder), loc(op.getLoc()),
        contract(contract), statistic(statistic), options(options),
        f64(builder.getF64Type()), i64(builder.getI64Type()) {}

  /// Step 1: the tensor that is normalized. Returns the stored sum, if it is
  /// asked for.
  Value buildSource(FloatType sumType);
  /// Moments of all parts of the source.
  Moments buildMoments();
  /// The number of elements that each statistic covers, of one part.
  Value countOf(Value part);
  /// The same of all parts, where no exchange is needed to know it; else null.
  Value knownCount();
  /// Sums over all parts, from those of each part.
  SmallVector<Value> addParts(ArrayRef<SmallVector<Value>> ofParts);
  /// r, and q where asked for, in the compute type.
  Value buildFactor(Value m2, Value count, int64_t correction, Value *variance);

  /// What the program holds of a tensor indexed by `axes`, part by part.
  SmallVector<Value> partsOf(Value tensor, ArrayRef<int64_t> axes);
  bool isSplit() const { return options.parts > 0 || options.exchange; }
  bool isCentred() const { return statistic == Statistic::Variance; }
  bool hasCount() const { return statistic != Statistic::SumSquare; }

  RankedTensorType keptType(Type elementType) {
    auto type = cast<RankedTensorType>(source.getType());
    SmallVector<int64_t> shape = llvm::map_to_vector(
        rows.kept, [&](int64_t axis) { return type.getDimSize(axis); });
    return RankedTensorType::get(shape, elementType);
  }
  Value castElements(Value tensor, ArrayRef<int64_t> axes, FloatType type);
  /// A given statistic, which may be of any type, as ops of the algebra take
  /// it: never rounded.
  Value asStatistic(Value given) {
    if (!given || RowBuilder::elementTypeOf(given) == contract.computeType)
      return given;
    return castElements(given, rows.kept, f64);
  }
  Value asResult(Value value, Value result, ArrayRef<int64_t> axes);
  /// The `compute` clause of an op whose default is `defaultType`.
  TypeAttr compute(FloatType defaultType) {
    return contract.computeType == defaultType
               ? TypeAttr()
               : TypeAttr::get(contract.computeType);
  }
  TypeAttr computeOfSource() {
    return compute(defaultComputeType(source, /*residual=*/{}));
  }
  DenseI64ArrayAttr affineAxes(bool isUsed) {
    if (!isUsed || *contract.affineAxes == contract.axes)
      return {};
    return builder.getDenseI64ArrayAttr(*contract.affineAxes);
  }

  RowOpInterface op;
  RowBuilder rows;
  OpBuilder &builder;
  Location loc;
  NormContract contract;
  Statistic statistic;
  const GeneralizeOptions &options;
  FloatType f64;
  IntegerType i64;
  Value source;

private:
  Moments momentsOf(Value part, bool wantsCount, bool wantsSums);
  /// The statistics of all parts, [parts, kept dims..], from those of each part
  /// that the program holds.
  SmallVector<Value> stack(ArrayRef<SmallVector<Value>> ofParts);
  Value sumOverParts(Value stacked);
};
} // namespace

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

SmallVector<Value> Generalizer::partsOf(Value tensor, ArrayRef<int64_t> axes) {
  const int64_t *found = llvm::find(axes, options.axis.value_or(-1));
  if (options.parts == 0 || !tensor || found == axes.end())
    return SmallVector<Value>(std::max<int64_t>(options.parts, 1), tensor);
  int64_t dim = found - axes.begin();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tensor);
  SmallVector<OpFoldResult> offsets(sizes.size(), builder.getIndexAttr(0)),
      strides(sizes.size(), builder.getIndexAttr(1));
  OpFoldResult extent = sizes[dim];
  AffineExpr s0 = builder.getAffineSymbolExpr(0);
  auto start = [&](int64_t part) {
    return (s0 * part).floorDiv(options.parts);
  };
  SmallVector<Value> parts;
  for (int64_t part = 0; part < options.parts; ++part) {
    offsets[dim] = affine::makeComposedFoldedAffineApply(builder, loc,
                                                         start(part), {extent});
    sizes[dim] = affine::makeComposedFoldedAffineApply(
        builder, loc, start(part + 1) - start(part), {extent});
    parts.push_back(tensor::ExtractSliceOp::create(builder, loc, tensor,
                                                   offsets, sizes, strides));
  }
  return parts;
}

SmallVector<Value> Generalizer::stack(ArrayRef<SmallVector<Value>> ofParts) {
  SmallVector<OpFoldResult> kept =
      llvm::map_to_vector(rows.kept, [&](int64_t axis) {
        return tensor::getMixedSize(builder, loc, source, axis);
      });
  auto withParts = [&](int64_t first) {
    SmallVector<OpFoldResult> list{builder.getIndexAttr(first)};
    return list;
  };
  SmallVector<OpFoldResult> shape = withParts(ofParts.size()),
                            sizes = withParts(1);
  llvm::append_range(shape, kept);
  llvm::append_range(sizes, kept);
  SmallVector<OpFoldResult> strides(shape.size(), builder.getIndexAttr(1));
  SmallVector<Value> stacked;
  for (size_t i = 0; i < ofParts.front().size(); ++i) {
    Value all = tensor::EmptyOp::create(
        builder, loc, shape,
        getElementTypeOrSelf(ofParts.front()[i].getType()));
    for (auto [part, statistics] : llvm::enumerate(ofParts)) {
      SmallVector<OpFoldResult> offsets(shape.size(), builder.getIndexAttr(0));
      offsets[0] = builder.getIndexAttr(part);
      all = tensor::InsertSliceOp::create(builder, loc, statistics[i], all,
                                          offsets, sizes, strides);
    }
    stacked.push_back(all);
  }
  return options.exchange ? options.exchange(builder, loc, stacked) : stacked;
}

/// Adds parts one after the other: one order, whatever the program runs on.
Value Generalizer::sumOverParts(Value stacked) {
  Type elementType = getElementTypeOrSelf(stacked.getType());
  Value init = rows.fill(
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(elementType)),
      rows.kept);
  int64_t loops = rows.kept.size() + 1;
  AffineMap all = builder.getMultiDimIdentityMap(loops);
  SmallVector<utils::IteratorType> iterators(loops,
                                             utils::IteratorType::parallel);
  iterators[0] = utils::IteratorType::reduction;
  return linalg::GenericOp::create(
             builder, loc, init.getType(), stacked, init,
             {all, all.dropResult(0)}, iterators,
             [](OpBuilder &b, Location bodyLoc, ValueRange args) {
               Value sum = isa<FloatType>(args[0].getType())
                               ? Value(arith::AddFOp::create(b, bodyLoc,
                                                             args[1], args[0]))
                               : Value(arith::AddIOp::create(b, bodyLoc,
                                                             args[1], args[0]));
               linalg::YieldOp::create(b, bodyLoc, sum);
             })
      .getResult(0);
}

SmallVector<Value> Generalizer::addParts(ArrayRef<SmallVector<Value>> ofParts) {
  if (!isSplit())
    return ofParts.front();
  if (options.sum)
    return llvm::map_to_vector(ofParts.front(), [&](Value value) {
      return options.sum(builder, loc, value);
    });
  return llvm::map_to_vector(stack(ofParts),
                             [&](Value all) { return sumOverParts(all); });
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

Value Generalizer::castElements(Value tensor, ArrayRef<int64_t> axes,
                                FloatType type) {
  if (RowBuilder::elementTypeOf(tensor) == type)
    return tensor;
  return rows.elementwise({{tensor, llvm::to_vector(axes)}}, axes, type,
                          [&](OpBuilder &b, Location, ValueRange in) {
                            return SmallVector<Value>{
                                rows.cast(b, in[0], type)};
                          });
}

/// In the element type of the op's result, and with its static extents.
Value Generalizer::asResult(Value value, Value result, ArrayRef<int64_t> axes) {
  value = castElements(value, axes, RowBuilder::elementTypeOf(result));
  if (value.getType() != result.getType())
    value = tensor::CastOp::create(builder, loc, result.getType(), value);
  return value;
}

Value Generalizer::buildSource(FloatType sumType) {
  Source parts =
      Source::build(rows, contract, /*wantsSum=*/sumType != nullptr,
                    sumType ? sumType : RowBuilder::elementTypeOf(contract.x));
  if (parts.inputs.size() == 1)
    source = parts.inputs.front().tensor;
  else
    source = rows.elementwise(
        parts.inputs, rows.all, rows.computeType,
        [&](OpBuilder &b, Location, ValueRange in) {
          return SmallVector<Value>{
              rows.cast(b, parts.widened(rows, b, in), rows.computeType)};
        });
  return parts.sum;
}

Moments Generalizer::momentsOf(Value part, bool wantsCount, bool wantsSums) {
  auto moments = MomentsOp::create(
      builder, loc, wantsCount ? keptType(i64) : Type(),
      wantsSums && isCentred() ? keptType(f64) : Type(),
      wantsSums ? keptType(f64) : Type(), part, /*mask=*/Value(), contract.axes,
      isCentred() ? About::Mean : About::Zero, computeOfSource());
  return {moments.getCount(), moments.getMean(), moments.getM2()};
}

Value Generalizer::countOf(Value part) {
  return momentsOf(part, /*wantsCount=*/true, /*wantsSums=*/false).count;
}

Value Generalizer::knownCount() {
  if (!hasCount() || !options.count)
    return {};
  RankedTensorType type = keptType(i64);
  IntegerAttr count = builder.getI64IntegerAttr(*options.count);
  if (type.hasStaticShape())
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(type, count));
  return rows.fill(arith::ConstantOp::create(builder, loc, count), rows.kept);
}

Moments Generalizer::buildMoments() {
  if (!isSplit())
    return momentsOf(source, hasCount(), /*wantsSums=*/true);
  Value count = knownCount();
  bool wantsCount = hasCount() && !count;
  if (options.sum && !isCentred()) {
    Moments all = momentsOf(source, wantsCount, /*wantsSums=*/true);
    all.m2 = options.sum(builder, loc, all.m2);
    all.count = wantsCount ? options.sum(builder, loc, all.count) : count;
    return all;
  }
  SmallVector<SmallVector<Value>> ofParts;
  for (Value part : partsOf(source, rows.all)) {
    Moments one = momentsOf(part, /*wantsCount=*/true, /*wantsSums=*/true);
    SmallVector<Value> &values = ofParts.emplace_back();
    values.push_back(one.count);
    if (isCentred())
      values.push_back(one.mean);
    values.push_back(one.m2);
  }
  SmallVector<Value> all = stack(ofParts);
  auto merged = CombineMomentsOp::create(
      builder, loc, wantsCount ? keptType(i64) : Type(),
      isCentred() ? keptType(f64) : Type(), keptType(f64), all.front(),
      isCentred() ? all[1] : Value(), all.back(), /*compute_type=*/TypeAttr());
  return {wantsCount ? merged.getMergedCount() : count, merged.getMergedMean(),
          merged.getMergedM2()};
}

Value Generalizer::buildFactor(Value m2, Value count, int64_t correction,
                               Value *variance) {
  Type type = RankedTensorType::get(
      cast<RankedTensorType>(m2.getType()).getShape(), contract.computeType);
  auto factor = RstdOp::create(builder, loc, type, variance ? type : Type(), m2,
                               count, contract.epsilon,
                               compute(defaultComputeType(m2, /*residual=*/{})),
                               correction, contract.zeroPolicy);
  if (variance)
    *variance = factor.getVariance();
  return factor.getRstd();
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

namespace {
class ForwardGeneralizer : Generalizer {
public:
  ForwardGeneralizer(NormOpInterface op, OpBuilder &builder,
                     const GeneralizeOptions &options)
      : Generalizer(op, builder, NormContract::get(op), op.getStatistic(),
                    options),
        op(op) {}

  SmallVector<Value> run();

private:
  Value buildUpdate(Value old, Value observed, Tracked tracked, Value updated);
  void updateRunning();

  NormOpInterface op;
  Moments moments;
  Value newMean, newVariance;
};
} // namespace

Value ForwardGeneralizer::buildUpdate(Value old, Value observed,
                                      Tracked tracked, Value updated) {
  RunningUpdate update = op.getRunningUpdate();
  return UpdateRunningOp::create(
      builder, loc, updated.getType(), old, observed, moments.count,
      update.momentumValue, tracked,
      update.momentum ? builder.getF64FloatAttr(*update.momentum) : FloatAttr(),
      tracked == Tracked::Variance ? update.correction : 1,
      /*compute_type=*/TypeAttr());
}

void ForwardGeneralizer::updateRunning() {
  RunningUpdate update = op.getRunningUpdate();
  if (!update)
    return;
  newMean =
      buildUpdate(update.mean, moments.mean, Tracked::Mean, update.newMean);
  if (rows.isExact()) {
    newVariance = buildUpdate(update.variance, moments.m2, Tracked::Variance,
                              update.newVariance);
    return;
  }
  // A narrow compute type rounds the variance before it is weighed, so it is
  // the variance, not m2, that is observed.
  EpsilonAttr epsilon = std::exchange(
      contract.epsilon,
      EpsilonAttr::get(builder.getContext(), EpsilonPlacement::None, 0.0));
  Value variance;
  buildFactor(moments.m2, moments.count, update.correction, &variance);
  contract.epsilon = epsilon;
  newVariance =
      buildUpdate(update.variance, variance, Tracked::Mean, update.newVariance);
}

SmallVector<Value> ForwardGeneralizer::run() {
  Value sum =
      buildSource(op.getSumOrNull() ? op.getSumElementType() : FloatType());
  Value mean = asStatistic(contract.mean), variance;
  Value *wanted = op.getVarianceOrNull() ? &variance : nullptr;
  Value rstd;
  if (op.hasGivenStatistics()) {
    rstd =
        buildFactor(contract.variance, /*count=*/{}, /*correction=*/0, wanted);
  } else {
    moments = buildMoments();
    mean = moments.mean;
    rstd = buildFactor(moments.m2, moments.count, contract.correction, wanted);
  }
  updateRunning();
  Value y = NormalizeOp::create(
      builder, loc,
      RankedTensorType::get(cast<RankedTensorType>(source.getType()).getShape(),
                            contract.resultType),
      source, mean, rstd, contract.scale, contract.shift, contract.axes,
      affineAxes(contract.scale || contract.shift), computeOfSource(),
      APFloat(contract.scaleOffset), contract.affineIn);
  RunningUpdate running = op.getRunningUpdate();
  return llvm::map_to_vector(op->getResults(), [&](OpResult result) {
    if (result == op.getNormalized())
      return asResult(y, result, rows.all);
    if (result == op.getSumOrNull())
      return asResult(sum, result, rows.all);
    Value value = result == op.getMeanOrNull()       ? mean
                  : result == op.getRstdOrNull()     ? rstd
                  : result == op.getVarianceOrNull() ? variance
                  : result == running.newMean        ? newMean
                                                     : newVariance;
    return asResult(value, result, rows.kept);
  });
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

namespace {
class BackwardGeneralizer : Generalizer {
public:
  BackwardGeneralizer(NormBackwardOpInterface op, OpBuilder &builder,
                      const GeneralizeOptions &options)
      : Generalizer(op, builder, op.getForwardContract(), op.getStatistic(),
                    options),
        op(op) {}

  SmallVector<Value> run();

private:
  void buildStatistics();
  BackwardMomentsOp buildSums(Value dy, Value x, Value scale, bool wantsRows,
                              bool wantsParameters);
  Value buildDx();
  Value addDsum(Value dx);

  NormBackwardOpInterface op;
  Value count, mean, rstd, variance;
  Value dscale, dshift;
};
} // namespace

/// Given statistics are used as they are; the others follow from x.
void BackwardGeneralizer::buildStatistics() {
  mean = asStatistic(op.getMeanOrNull());
  variance = asStatistic(op.getVarianceOrNull());
  rstd = asStatistic(op.getRstdOrNull());
  bool needsVariance = needsStatistic(contract.epsilon);
  bool hasAll = (mean || !isCentred()) && (rstd || variance) &&
                (variance || !needsVariance);
  if (!hasAll && !op.hasConstantStatistics()) {
    Moments moments = buildMoments();
    count = moments.count;
    if (!mean)
      mean = moments.mean;
    if (!variance && (needsVariance || !rstd)) {
      Value computed = buildFactor(moments.m2, count, contract.correction,
                                   needsVariance ? &variance : nullptr);
      if (!rstd)
        rstd = computed;
    }
  }
  if (!rstd)
    rstd = buildFactor(variance, /*count=*/{}, /*correction=*/0, nullptr);
}

BackwardMomentsOp BackwardGeneralizer::buildSums(Value dy, Value x, Value scale,
                                                 bool wantsRows,
                                                 bool wantsParameters) {
  auto rowType = [&](bool isThere) {
    return wantsRows && isThere ? keptType(f64) : Type();
  };
  auto parameterType = [&](Value result) {
    return wantsParameters && result ? result.getType() : Type();
  };
  Type dscaleType = parameterType(op.getDscaleOrNull()),
       dshiftType = parameterType(op.getDshiftOrNull());
  // The parameters' gradients do not see scale.
  if (!wantsRows)
    scale = {};
  return BackwardMomentsOp::create(
      builder, loc, rowType(isCentred()), rowType(true), dscaleType, dshiftType,
      dy, x, mean, rstd, scale, /*mask=*/Value(), contract.axes,
      affineAxes(scale || dscaleType || dshiftType), computeOfSource(),
      APFloat(scale ? contract.scaleOffset : 0.0),
      dscaleType ? contract.affineIn : AffineIn::Compute);
}

/// Rounded once, after the gradient of the sum is added.
Value BackwardGeneralizer::addDsum(Value dx) {
  FloatType type = RowBuilder::elementTypeOf(op.getDx());
  return rows.elementwise(
      {rows.full(dx), rows.full(op.getDsumOrNull())}, rows.all, type,
      [&](OpBuilder &b, Location, ValueRange in) {
        Value sum = rows.add(b, rows.toWork(b, in[0]), rows.toWork(b, in[1]));
        return SmallVector<Value>{rows.cast(b, sum, type)};
      });
}

Value BackwardGeneralizer::buildDx() {
  FloatType type = op.getDsumOrNull() ? rows.workType
                                      : RowBuilder::elementTypeOf(op.getDx());
  auto dxType = RankedTensorType::get(
      cast<RankedTensorType>(source.getType()).getShape(), type);
  if (op.hasConstantStatistics()) {
    // g * r, in a type that is never narrow.
    return NormalizeOp::create(
        builder, loc, dxType, op.getDy(), /*mean=*/Value(),
        castElements(rstd, rows.kept, rows.workType), contract.scale,
        /*shift=*/Value(), contract.axes, affineAxes(contract.scale != nullptr),
        TypeAttr::get(rows.workType), APFloat(contract.scaleOffset));
  }
  SmallVector<SmallVector<Value>> ofParts;
  if (!count)
    count = knownCount();
  bool addsCount = hasCount() && !count;
  for (auto [dy, x, scale] :
       llvm::zip_equal(partsOf(op.getDy(), rows.all), partsOf(source, rows.all),
                       partsOf(contract.scale, *contract.affineAxes))) {
    SmallVector<Value> &values = ofParts.emplace_back();
    if (addsCount)
      values.push_back(countOf(x));
    // Where nothing is cut, one sweep makes the parameters' gradients as well.
    auto sums =
        buildSums(dy, x, scale, /*wantsRows=*/true,
                  /*wantsParameters=*/!isSplit() || options.sum != nullptr);
    if (isCentred())
      values.push_back(sums.getSumG());
    values.push_back(sums.getSumGx());
    dscale = sums.getDscale();
    dshift = sums.getDshift();
  }
  SmallVector<Value> sums = addParts(ofParts);
  if (addsCount)
    count = sums.front();
  return BackwardNormalizeOp::create(
      builder, loc, dxType, op.getDy(), source, mean, rstd, contract.scale,
      needsStatistic(contract.epsilon) ? variance : Value(),
      isCentred() ? sums[sums.size() - 2] : Value(), sums.back(), count,
      /*mask=*/Value(), contract.axes, contract.epsilon,
      affineAxes(contract.scale != nullptr), computeOfSource(),
      contract.correction, APFloat(contract.scaleOffset));
}

SmallVector<Value> BackwardGeneralizer::run() {
  source = buildGradientSource(rows, contract);
  buildStatistics();
  Value dx = buildDx();
  if (op.getDsumOrNull())
    dx = addDsum(dx);
  bool isWanted = op.getDscaleOrNull() || op.getDshiftOrNull();
  if (isWanted && !dscale && !dshift) {
    auto sums = buildSums(op.getDy(), source, contract.scale,
                          /*wantsRows=*/false, /*wantsParameters=*/true);
    dscale = sums.getDscale();
    dshift = sums.getDshift();
  }
  return llvm::map_to_vector(op->getResults(), [&](OpResult result) {
    if (result == op.getDx())
      return asResult(dx, result, rows.all);
    return asResult(result == op.getDscaleOrNull() ? dscale : dshift, result,
                    *contract.affineAxes);
  });
}

//===----------------------------------------------------------------------===//
// Any named op
//===----------------------------------------------------------------------===//

/// What decides whether an op can be had, and the element type of what it
/// normalizes.
namespace {
struct Request {
  NormContract contract;
  FloatType sumType;
  bool isCentred, hasStatistics;

  static Request get(RowOpInterface op) {
    auto xType = RowBuilder::elementTypeOf(op.getInput());
    if (auto forward = dyn_cast<NormOpInterface>(op.getOperation()))
      return {NormContract::get(forward), forward.getSumElementType(),
              forward.isCentred(), !forward.hasGivenStatistics()};
    auto backward = cast<NormBackwardOpInterface>(op.getOperation());
    return {backward.getForwardContract(), xType,
            backward.getStatistic() == Statistic::Variance,
            !backward.hasConstantStatistics()};
  }
  FloatType sourceType() const {
    if (!contract.residual)
      return RowBuilder::elementTypeOf(contract.x);
    return contract.sumRounding == SumRounding::Stored ? sumType
                                                       : contract.computeType;
  }
};
} // namespace

/// The axis that parts divide; fails with an error where there is none.
static FailureOr<int64_t> resolveAxis(RowOpInterface op,
                                      std::optional<int64_t> axis) {
  SmallVector<int64_t> axes = op.getReducedAxes();
  if (op.getNumGroups() != 1)
    llvm::erase(axes, *op.getGroupedAxis());
  if (axis ? llvm::is_contained(axes, *axis) : !axes.empty())
    return axis ? *axis : axes.front();
  auto diag = op->emitOpError(
      "expected a reduced axis that is not split into groups to divide");
  if (axis)
    diag << ", got axis " << *axis;
  else
    diag << ", got none";
  return diag;
}

static LogicalResult verifyRequest(RowOpInterface op, const Request &request,
                                   bool isSplit) {
  FloatType computeType = request.contract.computeType;
  if (isSplit && request.isCentred && request.hasStatistics &&
      computeType.getWidth() < 32)
    return op->emitOpError(
               "expected 'compute' f32 or f64 to divide a norm that "
               "subtracts a mean, got ")
           << computeType;
  FloatType xType = RowBuilder::elementTypeOf(request.contract.x);
  if (request.contract.affineIn == AffineIn::Result &&
      request.sourceType() != xType)
    return op->emitOpError("expected a sum of x's element type with "
                           "'affine_in' result, got ")
           << request.sourceType() << " and " << xType;
  return success();
}

/// The op on a view of x whose channel axis is two.
static FailureOr<SmallVector<Value>>
generalizeGroups(RowOpInterface op, OpBuilder &builder,
                 GeneralizeOptions options) {
  if (options.axis && *options.axis >= *op.getGroupedAxis())
    ++*options.axis;
  auto generalize = [&](RowOpInterface view, OpBuilder &b) {
    return generalizeNorm(view, b, options);
  };
  if (auto forward = dyn_cast<NormOpInterface>(op.getOperation()))
    return decomposeGroups(forward, builder, generalize);
  return decomposeGroups(cast<NormBackwardOpInterface>(op.getOperation()),
                         builder, generalize);
}

FailureOr<SmallVector<Value>>
norm::generalizeNorm(RowOpInterface op, OpBuilder &builder,
                     const GeneralizeOptions &options) {
  GeneralizeOptions resolved = options;
  Request request = Request::get(op);
  if (!request.hasStatistics) {
    // Nothing is reduced, so there is nothing to exchange.
    resolved = {};
  } else if (options.parts > 0 || options.exchange) {
    FailureOr<int64_t> axis = resolveAxis(op, options.axis);
    if (failed(axis))
      return failure();
    resolved.axis = *axis;
  }
  if (failed(verifyRequest(op, request, resolved.axis.has_value())))
    return failure();
  if (op.getGroupedAxis())
    return generalizeGroups(op, builder, resolved);
  if (auto forward = dyn_cast<NormOpInterface>(op.getOperation()))
    return ForwardGeneralizer(forward, builder, resolved).run();
  return BackwardGeneralizer(cast<NormBackwardOpInterface>(op.getOperation()),
                             builder, resolved)
      .run();
}
