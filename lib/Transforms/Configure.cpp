//===- Configure.cpp - norm-configure -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "ConfigureGpu.h"
#include "Norm/IR/NormOps.h"
#include "Norm/IR/Remarks.h"
#include "TileLanes.h"
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
/// The most rows that one partial sum takes, one after the other: shorter
/// ranges make more partial sums, which cost memory traffic.
static constexpr int64_t kRangeRows = 128;
/// The most rows of a tile that threads share: two share what they read of
/// scale and shift, which are as long as they are.
static constexpr int64_t kSharedRows = 2;

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
    if (rows * columns > kMostTileElements) {
      emitError(getOperation()->getLoc(), "expected rows * columns <= ")
          << kMostTileElements << ", got " << int64_t(rows) << " * "
          << int64_t(columns);
      return signalPassFailure();
    }
    if (serialBytes < 0 || streamBytes < 0) {
      emitError(getOperation()->getLoc(),
                "expected serial-bytes and stream-bytes >= 0, got ")
          << int64_t(serialBytes) << " and " << int64_t(streamBytes);
      return signalPassFailure();
    }
    if (target == ConfigureTarget::Gpu) {
      if (failed(configureForGpu(getOperation(), chip)))
        signalPassFailure();
      return;
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
    if (!fitsTile(op))
      return refuse(op, "axes",
                    "its sums run over different axes, see "
                    "norm-split-gradients");
    TilePlan plan = TilePlan::get(op);
    std::optional<int64_t> bytes = countBytes(op);
    int64_t chosenColumns =
        columns ? int64_t(columns) : chooseColumns(op, plan);
    int64_t chosenRows = rows ? int64_t(rows) : chooseRows(op, plan, bytes);
    chosenRows = std::min(chosenRows, kMostTileElements / chosenColumns);
    bool isSplit = choosesSplit(op, plan, bytes);
    if (isSplit && !rows)
      chosenRows = std::min(chosenRows, kSharedRows);
    bool isSpread = isSplit || hasSeveralTiles(op, plan, chosenRows);
    bool isParallel = isSpread && (!bytes || *bytes > serialBytes);
    isSplit &= isParallel;
    int64_t prefetch =
        isParallel ? choosePrefetch(op, plan, bytes, chosenRows) : 0;
    // Static sizes are compared here, others at run time.
    int64_t serial = isParallel && !bytes ? int64_t(serialBytes) : 0;
    int64_t stream = !bytes || *bytes > streamBytes ? int64_t(streamBytes) : 0;
    op->setAttr(kStrategyAttrName,
                CpuStrategyAttr::get(op.getContext(), chosenRows, chosenColumns,
                                     isParallel, chooseRange(op), serial,
                                     stream, prefetch, isSplit));
    emitRemark(remark::RemarkKind::RemarkAnalysis, op, "norm-configure",
               "strategy",
               explain(plan, bytes, isSpread, isParallel, chosenRows,
                       chosenColumns, stream, prefetch) +
                   (isWorthRanges(op) ? "; rows of the inner axes are summed "
                                        "in ranges merged in order"
                    : isSplit ? "; there are few tiles, of which threads share "
                                "each"
                              : ""));
  }

  /// Rows of a partial sum, from where sums run alone: it decides bits.
  static int64_t chooseRange(RowOpInterface op) {
    return isWorthRanges(op)    ? kMostLaneRows
           : sumsOverRanges(op) ? kRangeRows
                                : 0;
  }

  std::string explain(const TilePlan &plan, std::optional<int64_t> bytes,
                      bool isSpread, bool isParallel, int64_t chosenRows,
                      int64_t chosenColumns, int64_t stream, int64_t prefetch) {
    std::string text =
        llvm::formatv("rows {0}, columns {1}: {2}; ", chosenRows, chosenColumns,
                      plan.hasLanes ? "the innermost axis is kept, one lane an "
                                      "element"
                      : plan.reducesNothing ? "nothing is reduced"
                                            : "the innermost axis is reduced")
            .str();
    std::string touched =
        bytes ? llvm::formatv("{0} bytes read and written", *bytes).str()
              : std::string("bytes known at run time");
    if (!isSpread)
      text += "on one thread: one tile";
    else if (!isParallel)
      text += "on one thread: " + touched;
    else if (bytes)
      text += "on all threads: " + touched;
    else
      text +=
          llvm::formatv("on all threads above {0} bytes", serialBytes).str();
    if (stream)
      text +=
          llvm::formatv("; results stored past the caches{0}",
                        bytes ? std::string()
                              : llvm::formatv(" above {0} bytes", stream).str())
              .str();
    if (prefetch)
      text += llvm::formatv("; the next tile fetched into cache {0}", prefetch)
                  .str();
    return text;
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
    if (plan.hasLanes || isWorthRanges(op) || type.isDynamicDim(last))
      return full;
    int64_t extent = type.getDimSize(last);
    if (op.getGroupedAxis() == last)
      extent /= op.getNumGroups();
    return std::min<int64_t>(full,
                             llvm::PowerOf2Ceil(std::max<int64_t>(extent, 1)));
  }

  /// Elements of one row; nullopt when an extent is dynamic.
  static std::optional<int64_t> rowElements(RowOpInterface op,
                                            const TilePlan &plan) {
    return staticExtent(op.getInput().getType(),
                        complementAxes(plan.loopAxes, op.getRank()));
  }

  /// R: several rows share the loads of scale and shift and overlap their
  /// reductions. Rows lie side by side in memory only where the axes that a
  /// tile covers come last.
  int64_t chooseRows(RowOpInterface op, const TilePlan &plan,
                     std::optional<int64_t> bytes) const {
    // What the loop takes that applies the statistics. x and dy of more rows
    // leave no registers.
    if (isWorthRanges(op))
      return llvm::isa<NormBackwardOpInterface>(op.getOperation())
                 ? 2
                 : kAppliedRows;
    if (!plan.rowAxis || op.getGroupedAxis())
      return 1;
    for (int64_t axis : complementAxes(plan.loopAxes, op.getRank()))
      if (axis < *plan.rowAxis)
        return chooseChannels(op, plan);
    int64_t extent = op.getInput().getType().getDimSize(*plan.rowAxis);
    bool isStatic = ShapedType::isStatic(extent);
    int64_t most = 4;
    if (plan.reducesNothing) {
      // Whole images lie far apart, and share little: one after the other.
      if (op.getRank() > int64_t(plan.loopAxes.size()) + 1)
        return 1;
      // Such tiles have whole rows only.
      while (most > 1 && (!isStatic || extent == 0 || extent % most != 0))
        most /= 2;
      return most;
    }
    // Rows of a few elements fill vectors together.
    std::optional<int64_t> elements = rowElements(op, plan);
    if (elements && *elements <= 16)
      most = 16;
    else if (sumsOverRanges(op))
      // x and dy of more rows leave no registers. Code for rows of any length
      // has them one by one anyway, and takes as long again to make for two.
      most = elements ? 2 : 1;
    bool isInMemory = !bytes || *bytes > streamBytes;
    int64_t bits = op.getInput().getType().getElementTypeBitWidth();
    // Few such rows are as many lines as are best on their way to memory.
    if (elements && *elements > 64 && *elements <= 256 && isInMemory &&
        bits >= 32)
      most = 2;
    // Rows of any length: four gain little where they keep memory busy, and
    // lose elsewhere, but of narrow types.
    if (!elements && bits >= 32)
      most = std::min<int64_t>(most, 2);
    if (elements && *elements > 512) {
      // Two rows are enough to share loads, and leave registers for what a
      // residual form reads and writes beside and for narrow types, which come
      // in more elements a vector; four keep memory busier.
      auto norm = dyn_cast<NormOpInterface>(op.getOperation());
      if (!isInMemory || bits < 32 || (norm && norm.getSumOrNull()))
        most = 2;
      // Rows that do not start on lines together are stored past the caches
      // better one by one.
      if (isInMemory && *elements * bits % 512 != 0)
        most = 1;
    }
    if (isa != CpuIsa::Avx512)
      most = std::min(most, rowsOfFewRegisters(op, elements));
    if (isStatic)
      most = std::min<int64_t>(
          most, llvm::bit_floor<uint64_t>(std::max<int64_t>(extent, 1)));
    return most;
  }

  /// The most rows whose sums stay in 16 registers of 32 bytes, or 32 of 16.
  static int64_t rowsOfFewRegisters(RowOpInterface op,
                                    std::optional<int64_t> elements) {
    if (!elements || sumsOverRanges(op) || *elements > 128)
      return 1;
    return *elements <= 16 ? 16 : *elements <= 32 ? 4 : 2;
  }

  /// R of channels, whose rows lie apart, one part in each image. Of small
  /// images what is done once a channel takes as long as the sweeps.
  static int64_t chooseChannels(RowOpInterface op, const TilePlan &plan) {
    constexpr int64_t kSmall = 64, kMedium = 256;
    RankedTensorType type = op.getInput().getType();
    SmallVector<int64_t> image;
    for (int64_t axis : complementAxes(plan.loopAxes, op.getRank()))
      if (axis > *plan.rowAxis)
        image.push_back(axis);
    std::optional<int64_t> elements = staticExtent(type, image);
    int64_t channels = type.getDimSize(*plan.rowAxis);
    if (plan.reducesNothing || !elements || *elements > kMedium)
      return 1;
    // x and dy of more channels leave no registers.
    bool isGradient = llvm::isa<NormBackwardOpInterface>(op.getOperation());
    int64_t most = *elements <= kSmall && !isGradient ? 4 : 2;
    if (ShapedType::isDynamic(channels))
      return most;
    return std::min<int64_t>(
        most, llvm::bit_floor<uint64_t>(std::max<int64_t>(channels, 1)));
  }

  /// What comes from memory is fetched into the second cache: it may come early
  /// there. What the second cache holds may be fetched into the first where
  /// that has room for R rows of x, the next R rows and what columns share.
  int64_t choosePrefetch(RowOpInterface op, const TilePlan &plan,
                         std::optional<int64_t> bytes,
                         int64_t chosenRows) const {
    constexpr int64_t kFirstCacheBytes = 12288;
    if (isWorthRanges(op))
      return 2;
    if (!plan.rowAxis || plan.reducesNothing)
      return 0;
    if (!bytes || *bytes > streamBytes)
      return 2;
    std::optional<int64_t> elements = rowElements(op, plan);
    int64_t bits = op.getInput().getType().getElementTypeBitWidth();
    return elements && *elements <= kFirstCacheBytes * 8 / bits / chosenRows;
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

  /// How many steps a loop over `axes` has; nullopt if only run time knows.
  static std::optional<int64_t> countSteps(RowOpInterface op,
                                           ArrayRef<int64_t> axes) {
    int64_t groups = 1;
    SmallVector<int64_t> others;
    for (int64_t axis : axes)
      if (axis == op.getGroupedAxis())
        groups = op.getNumGroups();
      else
        others.push_back(axis);
    std::optional<int64_t> steps =
        staticExtent(op.getInput().getType(), others);
    return steps ? std::optional(
                       llvm::SaturatingMultiply<uint64_t>(*steps, groups))
                 : std::nullopt;
  }

  static bool hasSeveralTiles(RowOpInterface op, const TilePlan &plan,
                              int64_t rows) {
    std::optional<int64_t> steps =
        countSteps(op, isWorthRanges(op) ? axesAboveRows(op) : plan.loopAxes);
    return !steps || *steps > (op.getGroupedAxis() ? 1 : rows);
  }

  /// Whether threads share each tile: there are few, and large ones, so that a
  /// parallel region for each sweep of each costs little.
  static bool choosesSplit(RowOpInterface op, const TilePlan &plan,
                           std::optional<int64_t> bytes) {
    constexpr int64_t kMostTiles = 8, kFewestTileBytes = 786432;
    if (plan.reducesNothing || plan.hasLanes || isWorthRanges(op) ||
        sumsOverRanges(op))
      return false;
    std::optional<int64_t> tiles = countSteps(op, plan.loopAxes);
    return tiles && *tiles > 0 && *tiles <= kMostTiles &&
           (!bytes || *bytes / *tiles >= kFewestTileBytes);
  }
};
} // namespace
