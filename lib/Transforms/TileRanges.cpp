//===- TileRanges.cpp - Tiles with sums over their rows --------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// dx of a layer norm sums along a row, dscale and dshift down the rows. A tile
// is a range of rows, and the op on it: dx of these rows, and sums over them,
// which go to a row of a [ranges, columns] buffer.
//
//   %dx, %parts = scf.forall (%p) in (%ranges)     the op on range p
//   %dscale = scf.forall (%j) in (%columns)        sum over p of parts[p, j]
//
//===----------------------------------------------------------------------===//

#include "TileRanges.h"

#include "TilePlan.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::norm;

/// Rows are cut into about so many ranges or more, unless that would make
/// ranges of fewer rows than kFewestRows, so that threads find work.
static constexpr int64_t kFewestRanges = 16;
/// The rows of a range are a multiple, so that one tile of rows rarely is cut.
static constexpr int64_t kFewestRows = 4;
/// Columns of the buffer that one step of the second loop adds up: those of a
/// pair of sums stay in 16 registers. They are lanes, so their number touches
/// no bits.
static constexpr int64_t kMergedColumns = 32;

using Sizes = SmallVector<OpFoldResult>;

static Sizes zeros(Builder &builder, size_t count) {
  return Sizes(count, builder.getIndexAttr(0));
}

static Sizes ones(Builder &builder, size_t count) {
  return Sizes(count, builder.getIndexAttr(1));
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

template <typename Op>
static Value fold(RewriterBase &rewriter, Location loc, Value a, Value b) {
  return rewriter.createOrFold<Op>(loc, a, b);
}

/// With L = rows / kFewestRanges, a multiple of `multiple` from `fewest` to
/// `most`, a range takes up to L rows along the innermost axis, and as many of
/// the axes around it as make up for what that lacks.
RowRanges RowRanges::cut(RewriterBase &rewriter, Location loc,
                         ArrayRef<int64_t> axes, ArrayRef<Range> domain,
                         Wanted wanted) {
  RowRanges ranges;
  ranges.axes = llvm::to_vector(axes);
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  auto extentOf = [&](int64_t axis) {
    return getValueOrCreateConstantIndexOp(rewriter, loc, domain[axis].size);
  };
  auto mul = [&](Value a, Value b) {
    return fold<arith::MulIOp>(rewriter, loc, a, b);
  };
  auto div = [&](Value a, Value b) {
    return fold<arith::DivUIOp>(rewriter, loc, a, b);
  };
  auto ceilDiv = [&](Value a, Value b) {
    return fold<arith::CeilDivUIOp>(rewriter, loc, a, b);
  };
  auto most = [&](Value a, Value b) {
    return fold<arith::MaxUIOp>(rewriter, loc, a, b);
  };
  auto least = [&](Value a, Value b) {
    return fold<arith::MinUIOp>(rewriter, loc, a, b);
  };
  Value one = index(1), rows = one, multiple = index(wanted.multiple);
  for (int64_t axis : axes)
    rows = mul(rows, extentOf(axis));
  auto roundUp = [&](Value value) {
    return mul(ceilDiv(value, multiple), multiple);
  };
  Value left = roundUp(ceilDiv(rows, index(kFewestRanges)));
  left = least(most(left, index(wanted.fewest)), index(wanted.most));
  for (int64_t axis : llvm::reverse(axes)) {
    Value extent = extentOf(axis);
    Value pieces = most(ceilDiv(extent, left), one);
    Value span = most(ceilDiv(extent, pieces), one);
    Value rowsOfSpan = span;
    bool isInnermost = axis == axes.back();
    if (isInnermost)
      span = least(roundUp(span), left);
    ranges.spans.push_back(getAsOpFoldResult(span));
    ranges.counts.push_back(getAsOpFoldResult(ceilDiv(extent, span)));
    left = most(div(left, rowsOfSpan), one);
    if (!isInnermost || wanted.longestChain == 0)
      continue;
    Value added = fold<arith::AddIOp>(
        rewriter, loc, div(rowsOfSpan, multiple),
        fold<arith::RemUIOp>(rewriter, loc, rowsOfSpan, multiple));
    left = least(left, most(div(index(wanted.longestChain), added), one));
  }
  std::reverse(ranges.spans.begin(), ranges.spans.end());
  std::reverse(ranges.counts.begin(), ranges.counts.end());
  return ranges;
}

void RowRanges::place(RewriterBase &rewriter, Location loc, ValueRange numbers,
                      ArrayRef<Range> domain,
                      SmallVectorImpl<OpFoldResult> &offsets,
                      SmallVectorImpl<OpFoldResult> &sizes) const {
  AffineExpr d0 = rewriter.getAffineDimExpr(0),
             s0 = rewriter.getAffineSymbolExpr(0),
             s1 = rewriter.getAffineSymbolExpr(1);
  AffineMap start = AffineMap::get(1, 1, d0 * s0);
  AffineMap size =
      AffineMap::get(1, 2, {s0, s1 - d0 * s0}, rewriter.getContext());
  for (auto [axis, span, p] : llvm::zip_equal(axes, spans, numbers)) {
    OpFoldResult number = p, extent = domain[axis].size;
    std::optional<int64_t> known = getConstantIntValue(extent),
                           rows = getConstantIntValue(span);
    offsets[axis] = affine::makeComposedFoldedAffineApply(rewriter, loc, start,
                                                          {number, span});
    if (known && rows && *rows >= *known)
      sizes[axis] = extent;
    else if (known && rows && *known % *rows == 0)
      sizes[axis] = span;
    else
      sizes[axis] = affine::makeComposedFoldedAffineMin(rewriter, loc, size,
                                                        {number, span, extent});
  }
}

//===----------------------------------------------------------------------===//
// Loops over lanes
//===----------------------------------------------------------------------===//

LaneLoop LaneLoop::create(RewriterBase &rewriter, Location loc,
                          ArrayRef<OpFoldResult> extents,
                          ValueRange destinations, Options options) {
  size_t rank = extents.size();
  int64_t width = options.width;
  std::optional<int64_t> last = getConstantIntValue(extents.back());
  if (last && *last < width)
    width = std::max<int64_t>(*last, 1);
  Sizes steps = ones(rewriter, rank);
  steps.back() = rewriter.getIndexAttr(width);
  auto loop =
      scf::ForallOp::create(rewriter, loc, zeros(rewriter, rank), extents,
                            steps, destinations, /*mapping=*/std::nullopt);
  loop->setAttr(kStrategyAttrName,
                CpuStrategyAttr::get(rewriter.getContext(), /*rows=*/1,
                                     llvm::PowerOf2Ceil(width),
                                     options.isParallel,
                                     /*range=*/0, options.serialBytes,
                                     /*stream_bytes=*/0, /*prefetch=*/0,
                                     /*split=*/false));

  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(loop.getTerminator());
  Sizes at = llvm::to_vector_of<OpFoldResult>(loop.getInductionVars()),
        sizes = ones(rewriter, rank);
  sizes.back() = steps.back();
  if (!last || *last % width != 0) {
    AffineMap size = AffineMap::get(
        1, 1,
        {rewriter.getAffineConstantExpr(width),
         rewriter.getAffineSymbolExpr(0) - rewriter.getAffineDimExpr(0)},
        rewriter.getContext());
    sizes.back() = affine::makeComposedFoldedAffineMin(
        rewriter, loc, size, {at.back(), extents.back()});
  }
  return {loop, at, sizes};
}

/// `sum` in the element type of `destination`.
static Value roundTo(RewriterBase &rewriter, Location loc, Value sum,
                     Value destination) {
  Type to = getElementTypeOrSelf(destination.getType()),
       from = getElementTypeOrSelf(sum.getType());
  if (to == from)
    return sum;
  int64_t rank = cast<RankedTensorType>(sum.getType()).getRank();
  AffineMap columns = rewriter.getMultiDimIdentityMap(rank);
  bool widens = to.getIntOrFloatBitWidth() > from.getIntOrFloatBitWidth();
  return linalg::GenericOp::create(
             rewriter, loc, destination.getType(), sum, destination,
             ArrayRef<AffineMap>{columns, columns},
             SmallVector<utils::IteratorType>(rank,
                                              utils::IteratorType::parallel),
             [&](OpBuilder &b, Location bodyLoc, ValueRange in) {
               Value value =
                   widens
                       ? Value(arith::ExtFOp::create(b, bodyLoc, to, in[0]))
                       : Value(arith::TruncFOp::create(b, bodyLoc, to, in[0]));
               linalg::YieldOp::create(b, bodyLoc, value);
             })
      .getResult(0);
}

/// Adds up the ranges' sums of the columns at `at`, each rounded to the type of
/// its destination, which has these columns.
static SmallVector<Value> sumPartials(RewriterBase &rewriter, Location loc,
                                      ValueRange partials,
                                      ValueRange destinations,
                                      ArrayRef<OpFoldResult> at,
                                      ArrayRef<OpFoldResult> sizes) {
  Sizes offsets = zeros(rewriter, 1),
        shape{tensor::getMixedSize(rewriter, loc, partials.front(), 0)};
  llvm::append_range(offsets, at);
  llvm::append_range(shape, sizes);
  int64_t rank = offsets.size();
  SmallVector<Value> slices, inits;
  for (auto [partial, destination] : llvm::zip_equal(partials, destinations)) {
    Type workType = getElementTypeOrSelf(partial.getType());
    Value zero = arith::ConstantOp::create(rewriter, loc,
                                           rewriter.getZeroAttr(workType));
    slices.push_back(tensor::ExtractSliceOp::create(
        rewriter, loc, partial, offsets, shape, ones(rewriter, rank)));
    Value out = destination;
    if (getElementTypeOrSelf(out.getType()) != workType)
      out = tensor::EmptyOp::create(rewriter, loc, sizes, workType);
    inits.push_back(
        linalg::FillOp::create(rewriter, loc, zero, out).getResult(0));
  }

  // One op, so that the ranges are one axis.
  AffineMap all = rewriter.getMultiDimIdentityMap(rank);
  SmallVector<AffineMap> maps(slices.size(), all);
  maps.append(inits.size(), all.dropResult(0));
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  iterators.front() = utils::IteratorType::reduction;
  auto sums = linalg::GenericOp::create(
      rewriter, loc, TypeRange(ValueRange(inits)), slices, inits, maps,
      iterators, [&](OpBuilder &b, Location bodyLoc, ValueRange in) {
        SmallVector<Value> values;
        for (auto [term, sum] : llvm::zip_equal(in.take_front(slices.size()),
                                                in.drop_front(slices.size())))
          values.push_back(arith::AddFOp::create(b, bodyLoc, sum, term));
        linalg::YieldOp::create(b, bodyLoc, values);
      });
  SmallVector<Value> rounded;
  for (auto [sum, destination] :
       llvm::zip_equal(sums.getResults(), destinations))
    rounded.push_back(roundTo(rewriter, loc, sum, destination));
  return rounded;
}

/// The outer `numAxes` dimensions as one.
static Value collapseRanges(RewriterBase &rewriter, Location loc, Value partial,
                            int64_t numAxes) {
  int64_t rank = cast<RankedTensorType>(partial.getType()).getRank();
  if (numAxes == 1)
    return partial;
  SmallVector<ReassociationIndices> groups(1);
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim < numAxes)
      groups.front().push_back(dim);
    else
      groups.push_back({dim});
  return tensor::CollapseShapeOp::create(rewriter, loc, partial, groups);
}

SmallVector<Value> norm::mergeRanges(RewriterBase &rewriter, Location loc,
                                     ValueRange partials, int64_t numAxes,
                                     ValueRange destinations,
                                     LaneLoop::Options options) {
  SmallVector<Value> collapsed;
  for (Value partial : partials)
    collapsed.push_back(collapseRanges(rewriter, loc, partial, numAxes));
  Sizes extents = tensor::getMixedSizes(rewriter, loc, partials.front());
  extents.erase(extents.begin(), extents.begin() + numAxes);
  LaneLoop merge =
      LaneLoop::create(rewriter, loc, extents, destinations, options);

  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(merge.loop.getTerminator());
  Sizes strides = ones(rewriter, extents.size());
  SmallVector<Value> slices;
  for (Value argument : merge.loop.getRegionIterArgs())
    slices.push_back(tensor::ExtractSliceOp::create(
        rewriter, loc, argument, merge.offsets, merge.sizes, strides));
  SmallVector<Value> sums =
      sumPartials(rewriter, loc, collapsed, slices, merge.offsets, merge.sizes);
  rewriter.setInsertionPointToEnd(merge.loop.getTerminator().getBody());
  for (auto [sum, argument] :
       llvm::zip_equal(sums, merge.loop.getRegionIterArgs()))
    tensor::ParallelInsertSliceOp::create(rewriter, loc, sum, argument,
                                          merge.offsets, merge.sizes, strides);
  return llvm::to_vector_of<Value>(merge.loop.getResults());
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

namespace {
class RangeTiler {
public:
  RangeTiler(RowOpInterface op, CpuStrategyAttr strategy,
             RewriterBase &rewriter)
      : op(op), strategy(strategy), rewriter(rewriter), loc(op.getLoc()) {
    FloatType compute = op.getComputeTypeOrDefault();
    workType =
        compute.getWidth() < 32 ? FloatType(rewriter.getF32Type()) : compute;
  }

  FailureOr<scf::ForallOp> run();

private:
  LogicalResult createLoop();
  Operation *createTile(ArrayRef<OpFoldResult> offsets,
                        ArrayRef<OpFoldResult> sizes);
  SmallVector<Value> createMerge(ValueRange partials);

  bool isPartial(OpResult result) {
    return result != cast<NormBackwardOpInterface>(op.getOperation()).getDx();
  }
  Sizes zeros(size_t count) { return ::zeros(rewriter, count); }
  Sizes ones(size_t count) { return ::ones(rewriter, count); }

  RowOpInterface op;
  CpuStrategyAttr strategy;
  RewriterBase &rewriter;
  Location loc;
  TilePlan plan = TilePlan::get(op);
  /// What sums over rows are held in.
  FloatType workType;
  SmallVector<Range> domain;
  RowRanges ranges;
  scf::ForallOp loop;
};
} // namespace

/// The op on a range, whose sums over rows are not rounded.
Operation *RangeTiler::createTile(ArrayRef<OpFoldResult> offsets,
                                  ArrayRef<OpFoldResult> sizes) {
  auto pick = [](ArrayRef<OpFoldResult> list, ArrayRef<int64_t> axes) {
    return llvm::map_to_vector(axes, [&](int64_t axis) { return list[axis]; });
  };
  SmallVector<Value> operands;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType())) {
      operands.push_back(operand.get());
      continue;
    }
    SmallVector<int64_t> axes = op.getOperandAxes(operand.getOperandNumber());
    operands.push_back(tensor::ExtractSliceOp::create(
        rewriter, loc, operand.get(), pick(offsets, axes), pick(sizes, axes),
        ones(axes.size())));
  }
  SmallVector<Type> types;
  for (OpResult result : op->getResults()) {
    SmallVector<int64_t> shape;
    SmallVector<Value> dynamic;
    dispatchIndexOpFoldResults(
        pick(sizes, op.getResultAxes(result.getResultNumber())), dynamic,
        shape);
    Type element = isPartial(result) ? Type(workType)
                                     : getElementTypeOrSelf(result.getType());
    types.push_back(RankedTensorType::get(shape, element));
  }
  Operation *tile = clone(rewriter, op.getOperation(), types, operands);
  tile->removeDiscardableAttr(kStrategyAttrName);
  return tile;
}

LogicalResult RangeTiler::createLoop() {
  ReifiedRankedShapedTypeDims extents;
  if (failed(reifyNormResultShapes(op, rewriter, extents)))
    return failure();
  SmallVector<Value> destinations;
  for (OpResult result : op->getResults()) {
    Sizes shape;
    if (isPartial(result))
      shape = ranges.counts;
    llvm::append_range(shape, extents[result.getResultNumber()]);
    destinations.push_back(tensor::EmptyOp::create(
        rewriter, loc, shape,
        isPartial(result) ? Type(workType)
                          : getElementTypeOrSelf(result.getType())));
  }
  size_t numAxes = ranges.counts.size();
  loop = scf::ForallOp::create(rewriter, loc, zeros(numAxes), ranges.counts,
                               ones(numAxes), destinations,
                               /*mapping=*/std::nullopt);
  loop->setAttr(kStrategyAttrName, strategy);

  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(loop.getTerminator());
  Sizes offsets, sizes;
  for (const Range &range : domain) {
    offsets.push_back(range.offset);
    sizes.push_back(range.size);
  }
  ranges.place(rewriter, loc, loop.getInductionVars(), domain, offsets, sizes);
  Operation *tile = createTile(offsets, sizes);

  rewriter.setInsertionPointToEnd(loop.getTerminator().getBody());
  for (auto [result, destination] :
       llvm::zip_equal(op->getResults(), loop.getRegionIterArgs())) {
    unsigned number = result.getResultNumber();
    Sizes at, shape;
    if (isPartial(result)) {
      at = llvm::to_vector_of<OpFoldResult>(loop.getInductionVars());
      shape = ones(numAxes);
    }
    for (int64_t axis : op.getResultAxes(number)) {
      at.push_back(offsets[axis]);
      shape.push_back(sizes[axis]);
    }
    tensor::ParallelInsertSliceOp::create(rewriter, loc,
                                          tile->getResult(number), destination,
                                          at, shape, ones(at.size()));
  }
  return success();
}

SmallVector<Value> RangeTiler::createMerge(ValueRange partials) {
  int64_t numAxes = ranges.counts.size();
  SmallVector<Value> destinations;
  for (auto [result, partial] :
       llvm::zip_equal(op->getResults().drop_front(), partials)) {
    Sizes extents = tensor::getMixedSizes(rewriter, loc, partial);
    extents.erase(extents.begin(), extents.begin() + numAxes);
    destinations.push_back(tensor::EmptyOp::create(
        rewriter, loc, extents, getElementTypeOrSelf(result.getType())));
  }
  return mergeRanges(
      rewriter, loc, partials, numAxes, destinations,
      {kMergedColumns, strategy.getParallel(), strategy.getSerialBytes()});
}

FailureOr<scf::ForallOp> RangeTiler::run() {
  if (strategy.getRange() < kFewestRows)
    return op->emitOpError("expected the range of '")
           << kStrategyAttrName << "' to be " << kFewestRows
           << " rows or more where rows are summed over, got "
           << strategy.getRange();
  rewriter.setInsertionPoint(op);
  domain = normIterationDomain(op, rewriter);
  ranges = RowRanges::cut(rewriter, loc, plan.loopAxes, domain,
                          {strategy.getRange(), kFewestRows, kFewestRows});
  if (failed(createLoop()))
    return failure();
  SmallVector<Value> results{loop.getResult(0)};
  llvm::append_range(results, createMerge(loop.getResults().drop_front()));
  for (auto [result, value] : llvm::zip_equal(op->getResults(), results))
    if (value.getType() != result.getType())
      value = tensor::CastOp::create(rewriter, loc, result.getType(), value);
  rewriter.replaceOp(op, results);
  return loop;
}

FailureOr<scf::ForallOp> norm::tileRanges(RowOpInterface op,
                                          CpuStrategyAttr strategy,
                                          RewriterBase &rewriter) {
  return RangeTiler(op, strategy, rewriter).run();
}
