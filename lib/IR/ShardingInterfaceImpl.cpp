//===- ShardingInterfaceImpl.cpp - Norms over a grid of processes ---------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops are the axes of x. A tied axis is a reduction: what is summed along
// it needs all of it. y is indexed by reductions as well, so the shares of an
// op stay what they were. See docs/Sharding.md.
//
//===----------------------------------------------------------------------===//

#include "Norm/IR/ShardingInterfaceImpl.h"

#include "GridShares.h"
#include "Norm/Transforms/Generalize.h"
#include "RowBuilder.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::norm;
using shard::Sharding;
using shard::ShardingOption;

//===----------------------------------------------------------------------===//
// Loops and maps
//===----------------------------------------------------------------------===//

/// Whether all that an op computes along an axis are plain sums.
static bool isSummed(RowOpInterface op, int64_t axis) {
  return isa<BackwardMomentsOp>(op) ||
         !llvm::is_contained(op.getReducedAxes(), axis);
}

static SmallVector<shard::ReductionKind> reductionKinds(RowOpInterface op) {
  return llvm::map_to_vector(op.getTiedAxes(), [&](int64_t axis) {
    return isSummed(op, axis) ? shard::ReductionKind::Sum
                              : shard::ReductionKind::Generic;
  });
}

static SmallVector<AffineMap> indexingMaps(RowOpInterface op) {
  MLIRContext *context = op.getContext();
  auto mapOf = [&](ArrayRef<int64_t> axes) {
    SmallVector<AffineExpr> exprs =
        llvm::map_to_vector(axes, [&](int64_t axis) -> AffineExpr {
          return getAffineDimExpr(axis, context);
        });
    return AffineMap::get(op.getRank(), 0, exprs, context);
  };
  SmallVector<AffineMap> maps;
  for (unsigned i = 0, e = op->getNumOperands(); i < e; ++i)
    maps.push_back(mapOf(op.getOperandAxes(i)));
  for (unsigned i = 0, e = op->getNumResults(); i < e; ++i)
    maps.push_back(mapOf(op.getResultAxes(i)));
  return maps;
}

//===----------------------------------------------------------------------===//
// Annotations
//===----------------------------------------------------------------------===//

/// What an option asks of operands and results. Options that are refused are
/// compared by what they say: the one that is chosen gives the diagnostic.
static FailureOr<std::vector<Sharding>>
shardingAnnotations(RowOpInterface op, const ShardingOption &option) {
  std::string ignored;
  FailureOr<GridShares> shares = GridShares::get(op, option, ignored);
  if (failed(shares))
    return shard::detail::defaultGetShardingAnnotations(op, option);
  std::vector<Sharding> shardings;
  for (unsigned i = 0, e = op->getNumOperands(); i < e; ++i)
    shardings.push_back(shares->operandSharding(i));
  for (unsigned i = 0, e = op->getNumResults(); i < e; ++i)
    shardings.push_back(shares->resultSharding(i));
  return shardings;
}

static LogicalResult addAnnotations(RowOpInterface op, OpBuilder &builder,
                                    const ShardingOption &option) {
  std::string reason;
  FailureOr<GridShares> shares = GridShares::get(op, option, reason);
  if (failed(shares))
    return op->emitOpError(reason);
  for (OpResult result : op->getResults())
    if (Sharding sharding = shares->resultSharding(result.getResultNumber()))
      shard::maybeInsertTargetShardingAnnotation(sharding, result, builder);
  for (OpOperand &operand : op->getOpOperands())
    if (Sharding sharding = shares->operandSharding(operand.getOperandNumber()))
      shard::maybeInsertSourceShardingAnnotation(sharding, operand, builder);
  return success();
}

//===----------------------------------------------------------------------===//
// Partition
//===----------------------------------------------------------------------===//

namespace {
/// The moments of rows; `mean` is null about zero.
struct Moments {
  Value count, mean, m2;
};

/// Builds what one process does of an op.
class Partitioner {
public:
  Partitioner(RowOpInterface op, ArrayRef<Value> operands, GridShares &shares,
              OpBuilder &builder)
      : op(op), operands(operands), shares(shares), builder(builder),
        loc(op.getLoc()) {}

  /// One value per result, of its local type.
  FailureOr<SmallVector<Value>> run();

private:
  RowOpInterface cloneLocally();
  /// dx and the sums over this process's share, then over all.
  FailureOr<SmallVector<Value>> partitionGradient(RowOpInterface local);
  /// The moments of this process's share, in f64, then of all.
  SmallVector<Value> partitionMoments(RowOpInterface local);
  Moments localMoments(RowOpInterface local);
  Moments mergeMoments(Moments part);
  /// A named norm in the statistics algebra, its statistics exchanged.
  FailureOr<SmallVector<Value>> generalize(RowOpInterface local);

  Value gather(Value part, ArrayRef<shard::GridAxis> gridAxes);
  Value gatherStatistic(Value statistic);
  Value sum(Value part, ArrayRef<shard::GridAxis> gridAxes);
  /// Rounded to the result's element type, of its local type.
  Value asResult(RowOpInterface local, Value value, OpResult result);
  /// The grid axes over which the sums of a result are added.
  GridShares::GridAxes missingGridAxes(OpResult result) {
    return shares.gridAxesOf(complementAxes(
        op.getResultAxes(result.getResultNumber()), op.getRank()));
  }
  /// The grid axes over which statistics are exchanged. The channel axis is not
  /// among them: groups are whole.
  GridShares::GridAxes statisticGridAxes() {
    SmallVector<int64_t> axes = op.getReducedAxes();
    if (std::optional<int64_t> grouped = op.getGroupedAxis())
      llvm::erase(axes, *grouped);
    return shares.gridAxesOf(axes);
  }

  RowOpInterface op;
  ArrayRef<Value> operands;
  GridShares &shares;
  OpBuilder &builder;
  Location loc;
};
} // namespace

/// The op on one process's share.
RowOpInterface Partitioner::cloneLocally() {
  SmallVector<Type> types =
      llvm::map_to_vector(op->getResults(), [&](OpResult result) -> Type {
        return shares.localType(result);
      });
  auto local = cast<RowOpInterface>(clone(builder, op, types, operands));
  if (op.getGroupedAxis())
    local.setNumGroups(shares.localGroups());
  return local;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// [1, ..] of each process as [processes, ..], in their order.
Value Partitioner::gather(Value part, ArrayRef<shard::GridAxis> gridAxes) {
  auto type = cast<RankedTensorType>(part.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = shares.countParts(gridAxes);
  return shard::AllGatherOp::create(builder, loc, type.clone(shape),
                                    shares.gridName(), gridAxes, part,
                                    APInt(64, 0));
}

Value Partitioner::gatherStatistic(Value statistic) {
  auto type = cast<RankedTensorType>(statistic.getType());
  SmallVector<int64_t> shape{1};
  llvm::append_range(shape, type.getShape());
  SmallVector<ReassociationIndices> dims;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    dims.push_back({dim + 1});
  if (!dims.empty())
    dims.front() = {0, 1};
  Value part = tensor::ExpandShapeOp::create(builder, loc, type.clone(shape),
                                             statistic, dims);
  return gather(part, statisticGridAxes());
}

Value Partitioner::sum(Value part, ArrayRef<shard::GridAxis> gridAxes) {
  return shard::AllReduceOp::create(builder, loc, part, shares.gridName(),
                                    gridAxes, shard::ReductionKind::Sum);
}

Value Partitioner::asResult(RowOpInterface local, Value value,
                            OpResult result) {
  RankedTensorType type = shares.localType(result);
  if (getElementTypeOrSelf(value.getType()) != type.getElementType()) {
    RowBuilder rows(local, builder);
    SmallVector<int64_t> axes = op.getResultAxes(result.getResultNumber());
    value = rows.elementwise(
        {{value, axes}}, axes, type.getElementType(),
        [&](OpBuilder &b, Location, ValueRange in) {
          return SmallVector<Value>{
              rows.cast(b, in[0], cast<FloatType>(type.getElementType()))};
        });
  }
  if (value.getType() != type)
    value = tensor::CastOp::create(builder, loc, type, value);
  return value;
}

//===----------------------------------------------------------------------===//
// Ops whose tied axes are split
//===----------------------------------------------------------------------===//

/// A sum that leaves a process is never narrower than f32; a statistic is f64.
static FloatType typeOfPart(RowOpInterface op, OpResult result) {
  Builder builder(op.getContext());
  return op.isStatisticResult(result.getResultNumber())
             ? FloatType(builder.getF64Type())
             : widestElementType(builder.getF32Type(), {Value(result)});
}

FailureOr<SmallVector<Value>>
Partitioner::partitionGradient(RowOpInterface local) {
  for (OpResult result : op->getResults())
    if (!missingGridAxes(result).empty())
      local->getResult(result.getResultNumber())
          .setType(shares.localType(result).clone(typeOfPart(op, result)));

  SmallVector<Value> values(local->getResults());
  auto gradient = dyn_cast<NormBackwardOpInterface>(op.getOperation());
  bool isExchanged = gradient && !gradient.hasConstantStatistics() &&
                     !statisticGridAxes().empty();
  if (isExchanged) {
    FailureOr<SmallVector<Value>> generalized = generalize(local);
    if (failed(generalized))
      return failure();
    values = *generalized;
  }
  for (auto [value, result] : llvm::zip_equal(values, op->getResults())) {
    GridShares::GridAxes gridAxes = missingGridAxes(result);
    if (!gridAxes.empty())
      value = asResult(local, sum(value, gridAxes), result);
  }
  if (isExchanged)
    local->erase();
  return values;
}

Moments Partitioner::mergeMoments(Moments part) {
  GridShares::GridAxes gridAxes = statisticGridAxes();
  if (!part.mean)
    return {sum(part.count, gridAxes), Value(), sum(part.m2, gridAxes)};
  Value counts = gatherStatistic(part.count),
        means = gatherStatistic(part.mean), m2s = gatherStatistic(part.m2);
  auto merged = CombineMomentsOp::create(
      builder, loc, part.count.getType(), part.mean.getType(),
      part.m2.getType(), counts, means, m2s, /*compute_type=*/TypeAttr());
  return {merged.getMergedCount(), merged.getMergedMean(),
          merged.getMergedM2()};
}

Moments Partitioner::localMoments(RowOpInterface local) {
  RankedTensorType xType = local.getInput().getType();
  SmallVector<int64_t> shape =
      llvm::map_to_vector(local.getKeptAxes(),
                          [&](int64_t axis) { return xType.getDimSize(axis); });
  auto type = RankedTensorType::get(shape, builder.getF64Type());
  auto countType = type.clone(builder.getI64Type());
  if (auto moments = dyn_cast<MomentsOp>(local.getOperation())) {
    bool isCentred = moments.getAbout() == About::Mean;
    auto part = MomentsOp::create(
        builder, loc, countType, isCentred ? type : Type(), type,
        moments.getX(), moments.getMask(), moments.getAxes(),
        moments.getAbout(), moments.getComputeTypeAttr());
    return {part.getCount(), part.getMean(), part.getM2()};
  }
  auto combine = cast<CombineMomentsOp>(local.getOperation());
  auto part = CombineMomentsOp::create(
      builder, loc, countType, combine.getMean() ? type : Type(), type,
      combine.getCount(), combine.getMean(), combine.getM2(),
      combine.getComputeTypeAttr());
  return {part.getMergedCount(), part.getMergedMean(), part.getMergedM2()};
}

SmallVector<Value> Partitioner::partitionMoments(RowOpInterface local) {
  Value count, mean;
  if (auto moments = dyn_cast<MomentsOp>(op.getOperation()))
    std::tie(count, mean) =
        std::pair<Value, Value>(moments.getCount(), moments.getMean());
  else if (auto combine = dyn_cast<CombineMomentsOp>(op.getOperation()))
    std::tie(count, mean) = std::pair<Value, Value>(combine.getMergedCount(),
                                                    combine.getMergedMean());
  if (count && op->getNumResults() == 1)
    return {sum(local->getResult(0), statisticGridAxes())};
  Moments all = mergeMoments(localMoments(local));
  SmallVector<Value> values =
      llvm::map_to_vector(op->getResults(), [&](OpResult result) {
        Value value = result == count  ? all.count
                      : result == mean ? all.mean
                                       : all.m2;
        return asResult(local, value, result);
      });
  local->erase();
  return values;
}

FailureOr<SmallVector<Value>> Partitioner::generalize(RowOpInterface local) {
  GridShares::GridAxes gridAxes = statisticGridAxes();
  GeneralizeOptions options;
  options.exchange = [&](OpBuilder &, Location, ValueRange parts) {
    return llvm::map_to_vector(
        parts, [&](Value part) { return gather(part, gridAxes); });
  };
  options.sum = [&](OpBuilder &, Location, Value part) {
    return sum(part, gridAxes);
  };
  options.count = op.getStaticReducedCount();
  return generalizeNorm(local, builder, options);
}

FailureOr<SmallVector<Value>> Partitioner::run() {
  RowOpInterface local = cloneLocally();
  if (!shares.splitsAny(op.getTiedAxes()))
    return SmallVector<Value>(local->getResults());
  if (isa<NormBackwardOpInterface, BackwardMomentsOp>(op.getOperation()))
    return partitionGradient(local);
  if (isa<MomentsOp, CombineMomentsOp>(op.getOperation()))
    return partitionMoments(local);
  FailureOr<SmallVector<Value>> values = generalize(local);
  if (failed(values))
    return failure();
  for (auto [value, result] : llvm::zip_equal(*values, op->getResults()))
    value = asResult(local, value, result);
  local->erase();
  return values;
}

static LogicalResult partitionOp(RowOpInterface op, ArrayRef<Value> operands,
                                 ArrayRef<Sharding> operandShardings,
                                 ArrayRef<Sharding> resultShardings,
                                 IRMapping &mapping, OpBuilder &builder) {
  std::string reason;
  FailureOr<GridShares> shares =
      GridShares::get(op, operandShardings, resultShardings, reason);
  if (failed(shares))
    return op->emitOpError(reason);
  FailureOr<SmallVector<Value>> values =
      Partitioner(op, operands, *shares, builder).run();
  if (failed(values))
    return failure();
  mapping.map(op->getResults(), *values);
  return success();
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

namespace {
template <typename OpTy>
struct NormSharding
    : public shard::ShardingInterface::ExternalModel<NormSharding<OpTy>, OpTy> {
  SmallVector<utils::IteratorType> getLoopIteratorTypes(Operation *op) const {
    return normLoopIteratorTypes(cast<RowOpInterface>(op));
  }
  SmallVector<shard::ReductionKind>
  getReductionLoopIteratorKinds(Operation *op) const {
    return reductionKinds(cast<RowOpInterface>(op));
  }
  SmallVector<AffineMap> getIndexingMaps(Operation *op) const {
    return indexingMaps(cast<RowOpInterface>(op));
  }
  FailureOr<std::vector<Sharding>>
  getShardingAnnotations(Operation *op, const ShardingOption &option) const {
    return shardingAnnotations(cast<RowOpInterface>(op), option);
  }
  LogicalResult addShardingAnnotations(Operation *op, OpBuilder &builder,
                                       const ShardingOption &option) const {
    return addAnnotations(cast<RowOpInterface>(op), builder, option);
  }
  LogicalResult partition(Operation *op, ArrayRef<Value> operands,
                          ArrayRef<Sharding> operandShardings,
                          ArrayRef<Sharding> resultShardings,
                          IRMapping &mapping, SymbolTableCollection &,
                          OpBuilder &builder) const {
    return partitionOp(cast<RowOpInterface>(op), operands, operandShardings,
                       resultShardings, mapping, builder);
  }
};

template <typename... OpTys> void attachToAll(MLIRContext &context) {
  (OpTys::template attachInterface<NormSharding<OpTys>>(context), ...);
}
} // namespace

void norm::registerShardingInterfaceExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, NormDialect *) {
    attachToAll<
#define GET_OP_LIST
#include "Norm/IR/NormOps.cpp.inc"
        >(*context);
  });
}
