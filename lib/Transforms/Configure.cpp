//===- Configure.cpp - norm-configure -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "Norm/IR/NormOps.h"
#include "Norm/IR/Remarks.h"
#include "TilePlan.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::norm {
#define GEN_PASS_DEF_CONFIGURENORMPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

/// Bytes of the accumulators of one row: two full vector registers of the
/// widest kind, so that two independent chains of additions run at once.
static constexpr int64_t kVectorBytes = 128;

namespace {
struct ConfigureNorm : public norm::impl::ConfigureNormPassBase<ConfigureNorm> {
  using Base::Base;

  void runOnOperation() override {
    if (columns < 0 || columns > 1024 || (columns & (columns - 1)) ||
        rows < 0 || rows > 64) {
      emitError(getOperation()->getLoc(),
                "expected rows from 0 to 64 and columns 0 or a power of two "
                "up to 1024, got rows ")
          << int64_t(rows) << " and columns " << int64_t(columns);
      return signalPassFailure();
    }
    if (serialBytes < 0) {
      emitError(getOperation()->getLoc(), "expected serial-bytes >= 0, got ")
          << int64_t(serialBytes);
      return signalPassFailure();
    }
    getOperation()->walk([&](RowOpInterface op) {
      if (!op->hasAttr(kStrategyAttrName))
        configure(op);
    });
  }

  void configure(RowOpInterface op) {
    RankedTensorType type = op.getInput().getType();
    // norm-lower-to-linalg takes such ops whole.
    if (type.getRank() == 0)
      return refuse(op, "rank", "x is one element");
    if (llvm::is_contained(type.getShape(), 0))
      return refuse(op, "extent", "x has an extent of 0");
    if (!sumsShareAxes(op))
      return refuse(op, "axes",
                    "its sums run over different axes, see "
                    "norm-split-gradients");
    TilePlan plan = TilePlan::get(op);
    int64_t chosenColumns =
        columns ? int64_t(columns) : chooseColumns(op, plan);
    int64_t chosenRows = rows ? int64_t(rows) : chooseRows(op, plan);
    std::optional<int64_t> bytes = countBytes(op);
    bool isParallel = (!bytes || *bytes > serialBytes) &&
                      hasSeveralTiles(op, plan, chosenRows);
    op->setAttr(kStrategyAttrName,
                CpuStrategyAttr::get(op.getContext(), chosenRows, chosenColumns,
                                     isParallel, /*range=*/0,
                                     /*serial_bytes=*/0, /*stream_bytes=*/0,
                                     /*prefetch=*/0));
    emitRemark(remark::RemarkKind::RemarkAnalysis, op, "norm-configure",
               "strategy",
               llvm::formatv(
                   "rows {0}, columns {1}: {2}; {3}", chosenRows, chosenColumns,
                   plan.hasLanes ? "the innermost axis is kept, one lane an "
                                   "element"
                   : plan.reducesNothing ? "nothing is reduced"
                                         : "the innermost axis is reduced",
                   isParallel ? std::string("on all threads")
                   : bytes    ? llvm::formatv("on one thread: {0} bytes read "
                                              "and written",
                                              *bytes)
                                    .str()
                              : std::string("on one thread: one tile"))
                   .str());
  }

  static void refuse(RowOpInterface op, StringRef condition, StringRef reason) {
    emitRemark(remark::RemarkKind::RemarkMissed, op, "norm-configure",
               ("strategy." + condition).str(), "no strategy: " + reason);
  }

  /// C from the reduced extents and the compute type alone: it decides bits.
  static int64_t chooseColumns(RowOpInterface op, const TilePlan &plan) {
    int64_t bits =
        std::max<int64_t>(op.getComputeTypeOrDefault().getWidth(), 32);
    int64_t full = kVectorBytes * 8 / bits;
    RankedTensorType type = op.getInput().getType();
    int64_t last = type.getRank() - 1;
    if (plan.hasLanes || type.isDynamicDim(last))
      return full;
    int64_t extent = type.getDimSize(last);
    if (op.getGroupedAxis() == last)
      extent /= op.getNumGroups();
    return std::min<int64_t>(full,
                             llvm::PowerOf2Ceil(std::max<int64_t>(extent, 1)));
  }

  /// R: several rows share the loads of scale and shift and overlap their
  /// reductions, when a static number of rows is a multiple. Rows lie side by
  /// side in memory only where the axes that a tile covers come last.
  static int64_t chooseRows(RowOpInterface op, const TilePlan &plan) {
    if (!plan.rowAxis || op.getGroupedAxis())
      return 1;
    for (int64_t axis : op.getTiedAxes())
      if (axis < *plan.rowAxis)
        return 1;
    int64_t extent = op.getInput().getType().getDimSize(*plan.rowAxis);
    if (ShapedType::isDynamic(extent))
      return 1;
    for (int64_t candidate : {4, 2})
      if (extent > 0 && extent % candidate == 0)
        return candidate;
    return 1;
  }

  /// Bytes of all operands and results, as many as fit into the result; nullopt
  /// when an extent is dynamic.
  static std::optional<int64_t> countBytes(RowOpInterface op) {
    uint64_t bytes = 0;
    auto add = [&](Type type) {
      auto shaped = dyn_cast<ShapedType>(type);
      if (!shaped)
        return true;
      if (!shaped.hasStaticShape())
        return false;
      uint64_t size = shaped.getElementTypeBitWidth() / 8;
      for (int64_t extent : shaped.getShape())
        size = llvm::SaturatingMultiply<uint64_t>(size, extent);
      bytes = llvm::SaturatingAdd(bytes, size);
      return true;
    };
    if (!llvm::all_of(op->getOperandTypes(), add) ||
        !llvm::all_of(op->getResultTypes(), add))
      return std::nullopt;
    return std::min<uint64_t>(bytes, std::numeric_limits<int64_t>::max());
  }

  static bool hasSeveralTiles(RowOpInterface op, const TilePlan &plan,
                              int64_t rows) {
    int64_t groups = 1;
    SmallVector<int64_t> axes;
    for (int64_t axis : plan.loopAxes)
      if (axis == op.getGroupedAxis())
        groups = op.getNumGroups();
      else
        axes.push_back(axis);
    std::optional<int64_t> tiles = staticExtent(op.getInput().getType(), axes);
    return !tiles || groups > 1 || *tiles > rows;
  }
};
} // namespace
