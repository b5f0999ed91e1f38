//===- GridShares.cpp - Which process holds what of x ----------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GridShares.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::norm;
using shard::GridAxis;
using shard::Sharding;

static bool refuse(std::string &reason, const Twine &text) {
  reason = text.str();
  return false;
}

static std::string text(ArrayRef<GridAxis> gridAxes) {
  return llvm::formatv("[{0:$[, ]}]",
                       llvm::make_range(gridAxes.begin(), gridAxes.end()))
      .str();
}

//===----------------------------------------------------------------------===//
// Reading annotations
//===----------------------------------------------------------------------===//

bool GridShares::takeGrid(FlatSymbolRefAttr name, std::string &reason) {
  auto found = SymbolTable::lookupNearestSymbolFrom<shard::GridOp>(op, name);
  if (!found)
    return refuse(reason, "expected a shard.grid named '" + name.getValue() +
                              "', got none");
  if (grid && grid != found)
    return refuse(reason, "expected operands and results on one grid, got '" +
                              grid.getSymName() + "' and '" +
                              found.getSymName() + "'");
  grid = found;
  return true;
}

bool GridShares::takeOffsets(ArrayRef<int64_t> &offsets, int64_t axis,
                             ArrayRef<GridAxis> gridAxes, std::string &reason) {
  int64_t parts = countParts(gridAxes);
  if (gridAxes.size() != 1 || ShapedType::isDynamic(parts))
    return refuse(reason, "expected axis " + Twine(axis) +
                              ", which has sharded_dims_offsets, to be split "
                              "over one grid axis of static extent, got " +
                              text(gridAxes));
  if (static_cast<int64_t>(offsets.size()) < parts + 1)
    return refuse(reason, "expected " + Twine(parts + 1) +
                              " sharded_dims_offsets of axis " + Twine(axis) +
                              ", got " + Twine(offsets.size()));
  ArrayRef<int64_t> own = offsets.take_front(parts + 1);
  offsets = offsets.drop_front(parts + 1);
  if (llvm::is_contained(own, ShapedType::kDynamic))
    return refuse(reason, "expected static sharded_dims_offsets of axis " +
                              Twine(axis) + ", got dynamic ones");
  AxisShare &share = axes[axis];
  if (!share.offsets.empty() && own != ArrayRef<int64_t>(share.offsets))
    share.isOtherwise = true;
  share.offsets.assign(own.begin(), own.end());
  return true;
}

bool GridShares::take(const Sharding &sharding, ArrayRef<int64_t> tensorAxes,
                      bool gridAxesAreFixed, std::string &reason) {
  if (!sharding)
    return true;
  if (!takeGrid(sharding.getGridAttr(), reason))
    return false;
  if (!sharding.getStaticHaloSizes().empty())
    return refuse(reason, "expected a sharding without halo, got one");
  ArrayRef<int64_t> offsets = sharding.getStaticShardedDimsOffsets();
  bool hasOffsets = !offsets.empty();
  for (auto [dim, axis] : llvm::enumerate(tensorAxes)) {
    ArrayRef<GridAxis> gridAxes;
    if (dim < sharding.getSplitAxes().size())
      gridAxes = sharding.getSplitAxes()[dim].asArrayRef();
    AxisShare &share = axes[axis];
    bool isAsBefore = ArrayRef<GridAxis>(share.gridAxes) == gridAxes;
    if ((share.isKnown && !gridAxesAreFixed && !isAsBefore) ||
        (gridAxesAreFixed && hasOffsets && !gridAxes.empty() && !isAsBefore))
      return refuse(reason,
                    "expected operands and results to agree on the grid axes "
                    "that split axis " +
                        Twine(axis) + ", got " + text(share.gridAxes) +
                        " and " + text(gridAxes));
    share.isKnown = true;
    if (!gridAxesAreFixed)
      share.gridAxes.assign(gridAxes.begin(), gridAxes.end());
    if (!hasOffsets || gridAxes.empty())
      share.isOtherwise = true;
    else if (!takeOffsets(offsets, axis, gridAxes, reason))
      return false;
  }
  return true;
}

FailureOr<GridShares> GridShares::get(RowOpInterface op,
                                      ArrayRef<Sharding> operands,
                                      ArrayRef<Sharding> results,
                                      std::string &reason) {
  GridShares shares(op);
  for (auto [number, sharding] : llvm::enumerate(operands))
    if (!shares.take(sharding, op.getOperandAxes(number),
                     /*gridAxesAreFixed=*/false, reason))
      return failure();
  for (auto [number, sharding] : llvm::enumerate(results))
    if (!shares.take(sharding, op.getResultAxes(number),
                     /*gridAxesAreFixed=*/false, reason))
      return failure();
  if (!shares.verify(reason))
    return failure();
  return shares;
}

FailureOr<GridShares> GridShares::get(RowOpInterface op,
                                      const shard::ShardingOption &option,
                                      std::string &reason) {
  GridShares shares(op);
  if (!shares.takeGrid(option.grid, reason))
    return failure();
  // Trailing axes that are not split may be missing.
  for (auto [share, gridAxes] : llvm::zip(shares.axes, option.shardingArray))
    share.gridAxes = gridAxes;
  auto take = [&](shard::ShardOp annotation, ArrayRef<int64_t> tensorAxes) {
    return !annotation || shares.take(annotation.getSharding(), tensorAxes,
                                      /*gridAxesAreFixed=*/true, reason);
  };
  for (OpOperand &operand : op->getOpOperands())
    if (!take(operand.get().getDefiningOp<shard::ShardOp>(),
              op.getOperandAxes(operand.getOperandNumber())))
      return failure();
  for (OpResult result : op->getResults())
    for (Operation *user : result.getUsers())
      if (!take(dyn_cast<shard::ShardOp>(user),
                op.getResultAxes(result.getResultNumber())))
        return failure();
  if (!shares.verify(reason))
    return failure();
  return shares;
}

//===----------------------------------------------------------------------===//
// What cannot be spread like this
//===----------------------------------------------------------------------===//

int64_t GridShares::extentOf(int64_t axis) {
  int64_t extent = op.getInput().getType().getDimSize(axis);
  for (const ExtentAgreement &agreement : extentAgreements(op))
    if (agreement.axis == axis && ShapedType::isDynamic(extent))
      extent = cast<RankedTensorType>(agreement.tensor.getType())
                   .getDimSize(agreement.dim);
  return extent;
}

bool GridShares::verifyAxis(int64_t axis, std::string &reason) {
  const AxisShare &share = axes[axis];
  if (share.gridAxes.empty())
    return true;
  int64_t parts = countParts(share.gridAxes), extent = extentOf(axis);
  if (axis == op.getGroupedAxis()) {
    if (!share.offsets.empty())
      return refuse(reason, "expected equal shares of the channel axis " +
                                Twine(axis) + ", got sharded_dims_offsets");
    if (ShapedType::isDynamic(parts))
      return refuse(reason, "expected the channel axis " + Twine(axis) +
                                " on grid axes of static extent");
    if (op.getNumGroups() % parts != 0)
      return refuse(reason, "expected each share of the channel axis " +
                                Twine(axis) + " to hold whole groups, got " +
                                Twine(op.getNumGroups()) + " groups over " +
                                Twine(parts) + " processes");
  }
  if (!share.offsets.empty()) {
    if (share.isOtherwise)
      return refuse(reason,
                    "expected all operands and results to have the same "
                    "sharded_dims_offsets of axis " +
                        Twine(axis) + ": uneven shares cannot be resharded");
    bool isWhole =
        share.offsets.front() == 0 &&
        (ShapedType::isDynamic(extent) || share.offsets.back() == extent) &&
        llvm::is_sorted(share.offsets);
    return isWhole ||
           refuse(reason, "expected sharded_dims_offsets of axis " +
                              Twine(axis) + " to ascend from 0 to its extent");
  }
  if (!ShapedType::isDynamic(parts) && !ShapedType::isDynamic(extent) &&
      extent % parts != 0)
    return refuse(reason, "expected the extent of axis " + Twine(axis) +
                              " to be a multiple of the " + Twine(parts) +
                              " processes that share it, or "
                              "sharded_dims_offsets, got " +
                              Twine(extent));
  // Offsets are written for all axes of a tensor or for none.
  bool needsOffsets = llvm::any_of(
      axes, [](const AxisShare &other) { return !other.offsets.empty(); });
  if (needsOffsets &&
      (ShapedType::isDynamic(extent) || ShapedType::isDynamic(parts)))
    return refuse(reason, "expected a static extent or sharded_dims_offsets of "
                          "axis " +
                              Twine(axis) + ", for another axis has offsets");
  return true;
}

bool GridShares::verify(std::string &reason) {
  return llvm::all_of(llvm::seq<int64_t>(0, axes.size()),
                      [&](int64_t axis) { return verifyAxis(axis, reason); });
}

//===----------------------------------------------------------------------===//
// What follows
//===----------------------------------------------------------------------===//

int64_t GridShares::countParts(ArrayRef<GridAxis> gridAxes) {
  return gridAxes.empty() ? 1
                          : shard::collectiveProcessGroupSize(gridAxes, grid);
}

GridShares::GridAxes GridShares::gridAxesOf(ArrayRef<int64_t> tensorAxes) {
  GridAxes gridAxes;
  for (int64_t axis : tensorAxes)
    llvm::append_range(gridAxes, axes[axis].gridAxes);
  return gridAxes;
}

Sharding GridShares::shardingOf(RankedTensorType type,
                                ArrayRef<int64_t> tensorAxes) {
  if (!grid || type.getRank() == 0)
    return Sharding();
  bool hasOffsets = llvm::any_of(
      tensorAxes, [&](int64_t axis) { return !axes[axis].offsets.empty(); });
  SmallVector<shard::GridAxesAttr> splitAxes;
  SmallVector<int64_t> offsets;
  for (auto [dim, axis] : llvm::enumerate(tensorAxes)) {
    const AxisShare &share = axes[axis];
    splitAxes.push_back(
        shard::GridAxesAttr::get(type.getContext(), share.gridAxes));
    if (!hasOffsets || share.gridAxes.empty())
      continue;
    llvm::append_range(offsets, share.offsets);
    if (!share.offsets.empty())
      continue;
    int64_t parts = countParts(share.gridAxes),
            extent =
                type.isDynamicDim(dim) ? extentOf(axis) : type.getDimSize(dim);
    for (int64_t part = 0; part <= parts; ++part)
      offsets.push_back(part * (extent / parts));
  }
  // As upstream writes them, so that equal shardings are equal.
  while (splitAxes.size() > 1 && splitAxes.back().empty())
    splitAxes.pop_back();
  return Sharding::get(FlatSymbolRefAttr::get(grid.getSymNameAttr()), splitAxes,
                       /*static_halo_sizes_=*/{}, offsets);
}

Sharding GridShares::operandSharding(unsigned number) {
  auto type = dyn_cast<RankedTensorType>(op->getOperand(number).getType());
  return type ? shardingOf(type, op.getOperandAxes(number)) : Sharding();
}

Sharding GridShares::resultSharding(unsigned number) {
  return shardingOf(cast<RankedTensorType>(op->getResult(number).getType()),
                    op.getResultAxes(number));
}

RankedTensorType GridShares::localType(OpResult result) {
  auto type = cast<RankedTensorType>(result.getType());
  Sharding sharding = resultSharding(result.getResultNumber());
  if (!sharding)
    return type;
  return cast<RankedTensorType>(shard::shardShapedType(type, grid, sharding));
}

int64_t GridShares::localGroups() {
  std::optional<int64_t> axis = op.getGroupedAxis();
  return axis ? op.getNumGroups() / countParts(axes[*axis].gridAxes) : 1;
}
