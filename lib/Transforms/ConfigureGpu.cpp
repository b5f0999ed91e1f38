//===- ConfigureGpu.cpp - Strategies for GPUs ------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cost model for GPUs. docs/GPU.md gives its reasons.
//
//===----------------------------------------------------------------------===//

#include "ConfigureGpu.h"

#include "Norm/IR/NormOps.h"
#include "Norm/IR/Remarks.h"
#include "Norm/Transforms/GpuChip.h"
#include "TilePlan.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::norm;

/// 32-bit registers that hold a thread's part of a row: so many leave most
/// kernels near 64 registers, twice as many below 128.
static constexpr int64_t kRowRegisters = 32;
/// Up to so many columns one warp or a part of it has a row, with fewer
/// elements a thread: no barrier, and more rows in flight.
static constexpr int64_t kShortRow = 512;
static constexpr int64_t kShortRowRegisters = 16;
/// Rows of so many columns are worth shifts.
static constexpr int64_t kShiftedRow = 256;
/// Rows beyond what this many threads hold go by chunks.
static constexpr int64_t kMaxThreads = 512;
/// Threads of a block of several rows.
static constexpr int64_t kBlockThreads = 128;
/// Threads of a row of unknown length.
static constexpr int64_t kDynamicThreads = 128;
/// 32-bit registers that hold a thread's part of a chunk; accumulators and what
/// is read ahead take others.
static constexpr int64_t kChunkRegisters = 16;

/// What no kernel computes; empty if one does.
static std::string findObstacle(RowOpInterface op) {
  auto norm = dyn_cast<NormOpInterface>(op.getOperation());
  if (!norm || norm.hasGivenStatistics() || norm.getRunningUpdate())
    return "expected a forward norm with statistics of its own and no running "
           "ones";
  if (op.getRank() == 0)
    return "expected x to have an axis, got one element";
  SmallVector<int64_t> reduced = op.getReducedAxes();
  if (op.getGroupedAxis())
    return "expected no groups";
  RankedTensorType type = op.getInput().getType();
  if (reduced != SmallVector<int64_t>{op.getRank() - 1})
    return llvm::formatv("expected the last axis, {0}, to be the only reduced "
                         "one, got axes [{1}]",
                         op.getRank() - 1,
                         llvm::make_range(reduced.begin(), reduced.end()))
        .str();
  if (type.getDimSize(op.getRank() - 1) == 0)
    return "expected rows to have elements, got an extent of 0";
  return "";
}

/// Bytes of the narrowest element that lies along rows: x's, y's, those of what
/// is added and stored.
static int64_t narrowestBytes(NormOpInterface op) {
  int64_t bits = 64;
  auto consider = [&](Value value) {
    if (!value)
      return;
    auto type = cast<ShapedType>(value.getType());
    if (type.getRank() == op.getInput().getType().getRank())
      bits = std::min<int64_t>(bits, type.getElementTypeBitWidth());
  };
  consider(op.getInput());
  consider(op.getResidualOrNull());
  consider(op.getNormalized());
  consider(op.getSumOrNull());
  return std::max<int64_t>(bits / 8, 1);
}

/// Bytes of an element of what later sweeps over a row need of it: x, or its
/// sum with the residual as it is normalized.
static int64_t stagedBytes(NormOpInterface op) {
  Type type = op.getInput().getType().getElementType();
  if (op.getResidualOrNull()) {
    if (op.getSumRounding() == SumRounding::Compute)
      type = cast<RowOpInterface>(op.getOperation()).getComputeTypeOrDefault();
    else if (Value sum = op.getSumOrNull())
      type = cast<ShapedType>(sum.getType()).getElementType();
  }
  return type.getIntOrFloatBitWidth() / 8;
}

/// V: whole pieces only, so a width that divides the row, unless that makes
/// short accesses of long rows: then rows are moved by wider ones and shifts.
/// Nothing is known of a dynamic row, whose pieces may be cut.
static int64_t chooseWidth(int64_t columns, int64_t bytes) {
  int64_t most = kAccessBytes / bytes;
  if (ShapedType::isDynamic(columns))
    return most;
  int64_t width = most;
  while (columns % width != 0)
    width /= 2;
  bool isShort = width * bytes < kAccessBytes / 2;
  return isShort && columns >= kShiftedRow ? most : width;
}

/// T for a row of static length that is held whole by threads of at most
/// `elements` each; nullopt if there are not enough.
static std::optional<int64_t> chooseThreads(int64_t columns, int64_t width,
                                            int64_t elements) {
  int64_t accesses = llvm::divideCeil(columns, width);
  int64_t least = llvm::divideCeil(columns, std::max(elements, width));
  if (least > kMaxThreads)
    return std::nullopt;
  if (least <= kWarp)
    return std::max<int64_t>(llvm::PowerOf2Ceil(least), 4);
  // Whole warps: as many as share the row's accesses evenly, if not too many.
  int64_t threads = llvm::alignTo(least, kWarp);
  for (int64_t even = threads; even <= std::min(2 * threads, kMaxThreads);
       even += kWarp)
    if (accesses % even == 0)
      return even;
  return threads;
}

namespace {
struct Choice {
  GpuStrategyAttr strategy;
  std::string reason;
};
} // namespace

/// Where rows that go by chunks of `chunk` stay, and why.
static std::pair<Staging, std::string> chooseStaging(NormOpInterface norm,
                                                     int64_t columns,
                                                     int64_t chunk,
                                                     unsigned capability) {
  if (ShapedType::isDynamic(columns))
    return {Staging::Reread, "rows of a length known at run time, by chunks"};
  // What does not fill a chunk stays in registers.
  int64_t bytes = columns / chunk * chunk * stagedBytes(norm);
  if (bytes <= getRowSharedBytes(capability))
    return {Staging::Shared,
            llvm::formatv("a row of {0} elements by chunks, {1} bytes of it in "
                          "shared memory",
                          columns, bytes)};
  return {Staging::Reread,
          llvm::formatv("a row of {0} elements by chunks, read again from the "
                        "cache in each sweep, as {1} bytes do not fit shared "
                        "memory",
                        columns, bytes)};
}

static Choice choose(NormOpInterface norm, unsigned capability) {
  auto op = cast<RowOpInterface>(norm.getOperation());
  int64_t columns = op.getInput().getType().getShape().back();
  int64_t bytes = narrowestBytes(norm);
  int64_t width = chooseWidth(columns, bytes);
  int64_t words =
      std::max<int64_t>(op.getComputeTypeOrDefault().getWidth() / 32, 1);
  int64_t threads = kDynamicThreads, chunk = 0;
  std::optional<int64_t> whole;
  if (ShapedType::isStatic(columns)) {
    // Shifts take registers, too.
    bool isShifted = columns % width != 0;
    int64_t wanted =
        columns <= kShortRow || isShifted ? kShortRowRegisters : kRowRegisters;
    whole = chooseThreads(columns, width, wanted / words);
    if (!whole)
      whole = chooseThreads(columns, width, 2 * wanted / words);
    threads = whole.value_or(kMaxThreads);
  }
  int64_t accesses = std::max<int64_t>(kChunkRegisters / words / width, 1);
  Staging staging = Staging::Registers;
  std::string reason;
  if (whole) {
    chunk = std::max<int64_t>(columns, 2);
    accesses = llvm::divideCeil(chunk, threads * width);
    reason = llvm::formatv("a row of {0} elements in the registers of {1} "
                           "threads",
                           columns, threads);
  } else {
    chunk = threads * accesses * width;
    std::tie(staging, reason) = chooseStaging(norm, columns, chunk, capability);
  }
  int64_t rows = threads <= kWarp ? kBlockThreads / threads : 1;
  bool isShifted =
      ShapedType::isStatic(columns) && width > 1 && columns % width != 0;
  bool isLate =
      accesses * width * words > kShortRowRegisters || (whole && isShifted);
  reason += llvm::formatv("; {0} bytes an access", width * bytes);
  if (isShifted)
    reason += ", shifted, as rows start anywhere";
  if (threads > kWarp)
    reason += "; one barrier a reduction";
  else
    reason += llvm::formatv("; {0} rows a block and no barrier", rows);
  if (isLate)
    reason += "; scale and shift read late, to save registers";
  return {GpuStrategyAttr::get(op.getContext(), threads, accesses, width, chunk,
                               rows, staging, isLate),
          reason};
}

std::optional<unsigned> norm::parseComputeCapability(StringRef chip) {
  if (!chip.consume_front("sm_"))
    return std::nullopt;
  chip.consume_back("a");
  // What LLVM 22 generates code for; of an unknown one it makes nonsense.
  static constexpr unsigned known[] = {70, 72,  75,  80,  86,  87,  88, 89,
                                       90, 100, 101, 103, 110, 120, 121};
  unsigned capability;
  if (chip.getAsInteger(10, capability) ||
      !llvm::is_contained(known, capability))
    return std::nullopt;
  return capability;
}

int64_t norm::getSharedBytes(unsigned capability) {
  // Chips of data centres; others have 99 KiB.
  bool isLarge = capability >= 90 && capability < 120;
  bool isMiddle = capability == 80 || capability == 87;
  return (isLarge ? 227 : isMiddle ? 163 : 99) << 10;
}

LogicalResult norm::configureForGpu(Operation *root, StringRef chip) {
  unsigned capability = parseComputeCapability(chip).value_or(0);
  if (capability < 80)
    return emitError(root->getLoc(),
                     "expected chip to be sm_80 or a later one that LLVM 22 "
                     "knows, got '")
           << chip << "'";
  bool hasFailed = false;
  root->walk([&](RowOpInterface op) {
    if (op->hasAttr(kStrategyAttrName))
      return;
    std::string obstacle = findObstacle(op);
    if (!obstacle.empty()) {
      op->emitOpError("has no GPU kernel: ") << obstacle;
      hasFailed = true;
      return;
    }
    Choice choice =
        choose(cast<NormOpInterface>(op.getOperation()), capability);
    op->setAttr(kStrategyAttrName, choice.strategy);
    emitRemark(remark::RemarkKind::RemarkAnalysis, op, "norm-configure",
               "strategy", choice.reason);
  });
  return failure(hasFailed);
}
