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
/// Columns of the buffer that one step of the second loop adds up: a few lines
/// of a row. They are lanes, so their number touches no bits.
static constexpr int64_t kMergedColumns = 128;

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
  using Sizes = SmallVector<OpFoldResult>;

  void chooseRanges();
  LogicalResult createLoop();
  Operation *createTile(ArrayRef<OpFoldResult> offsets,
                        ArrayRef<OpFoldResult> sizes);
  SmallVector<Value> createMerge(ValueRange partials);
  SmallVector<Value> sumPartials(ValueRange partials, ValueRange destinations,
                                 ArrayRef<OpFoldResult> at,
                                 ArrayRef<OpFoldResult> sizes);
  Value roundTo(Value sum, Value destination);
  Value collapseRanges(Value partial);

  bool isPartial(OpResult result) {
    return result != cast<NormBackwardOpInterface>(op.getOperation()).getDx();
  }
  template <typename Op> Value fold(Value lhs, Value rhs) {
    return rewriter.createOrFold<Op>(loc, lhs, rhs);
  }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  }
  Value valueOf(OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(rewriter, loc, size);
  }
  Sizes zeros(size_t count) { return Sizes(count, rewriter.getIndexAttr(0)); }
  Sizes ones(size_t count) { return Sizes(count, rewriter.getIndexAttr(1)); }

  RowOpInterface op;
  CpuStrategyAttr strategy;
  RewriterBase &rewriter;
  Location loc;
  TilePlan plan = TilePlan::get(op);
  /// What sums over rows are held in.
  FloatType workType;
  SmallVector<Range> domain;
  /// Per axis of the loop: rows of a range and the number of ranges.
  Sizes spans, counts;
  scf::ForallOp loop;
};
} // namespace

/// With L = rows / kFewestRanges, a multiple of kFewestRows and at most
/// `range`, a range takes up to L rows along the innermost kept axis, and as
/// many of the axes around it as make up for what that lacks.
void RangeTiler::chooseRanges() {
  Value rows = index(1);
  for (int64_t axis : plan.loopAxes)
    rows = fold<arith::MulIOp>(rows, valueOf(domain[axis].size));
  auto roundUp = [&](Value value, int64_t multiple) {
    return fold<arith::MulIOp>(fold<arith::CeilDivUIOp>(value, index(multiple)),
                               index(multiple));
  };
  Value left = roundUp(fold<arith::CeilDivUIOp>(rows, index(kFewestRanges)),
                       kFewestRows);
  left = fold<arith::MaxUIOp>(left, index(kFewestRows));
  left = fold<arith::MinUIOp>(left, index(strategy.getRange()));

  Value one = index(1);
  for (int64_t axis : llvm::reverse(plan.loopAxes)) {
    Value extent = valueOf(domain[axis].size);
    Value pieces =
        fold<arith::MaxUIOp>(fold<arith::CeilDivUIOp>(extent, left), one);
    Value span =
        fold<arith::MaxUIOp>(fold<arith::CeilDivUIOp>(extent, pieces), one);
    Value rowsOfSpan = span;
    if (axis == plan.rowAxis)
      span = fold<arith::MinUIOp>(roundUp(span, kFewestRows), left);
    spans.push_back(getAsOpFoldResult(span));
    counts.push_back(getAsOpFoldResult(fold<arith::CeilDivUIOp>(extent, span)));
    left = fold<arith::MaxUIOp>(fold<arith::DivUIOp>(left, rowsOfSpan), one);
  }
  std::reverse(spans.begin(), spans.end());
  std::reverse(counts.begin(), counts.end());
}

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
      shape = counts;
    llvm::append_range(shape, extents[result.getResultNumber()]);
    destinations.push_back(tensor::EmptyOp::create(
        rewriter, loc, shape,
        isPartial(result) ? Type(workType)
                          : getElementTypeOrSelf(result.getType())));
  }
  loop = scf::ForallOp::create(rewriter, loc, zeros(counts.size()), counts,
                               ones(counts.size()), destinations,
                               /*mapping=*/std::nullopt);
  loop->setAttr(kStrategyAttrName, strategy);

  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(loop.getTerminator());
  Sizes offsets, sizes, ranges;
  for (const Range &range : domain) {
    offsets.push_back(range.offset);
    sizes.push_back(range.size);
  }
  AffineExpr d0 = rewriter.getAffineDimExpr(0),
             s0 = rewriter.getAffineSymbolExpr(0),
             s1 = rewriter.getAffineSymbolExpr(1);
  AffineMap start = AffineMap::get(1, 1, d0 * s0);
  AffineMap size =
      AffineMap::get(1, 2, {s0, s1 - d0 * s0}, rewriter.getContext());
  for (auto [axis, span, p] :
       llvm::zip_equal(plan.loopAxes, spans, loop.getInductionVars())) {
    OpFoldResult number = p, extent = domain[axis].size;
    ranges.push_back(number);
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
  Operation *tile = createTile(offsets, sizes);

  rewriter.setInsertionPointToEnd(loop.getTerminator().getBody());
  for (auto [result, destination] :
       llvm::zip_equal(op->getResults(), loop.getRegionIterArgs())) {
    unsigned number = result.getResultNumber();
    Sizes at, shape;
    if (isPartial(result)) {
      at = ranges;
      shape = ones(ranges.size());
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

/// Ranges along several axes as one dimension.
Value RangeTiler::collapseRanges(Value partial) {
  int64_t rank = cast<RankedTensorType>(partial.getType()).getRank(),
          outer = plan.loopAxes.size();
  if (outer == 1)
    return partial;
  SmallVector<ReassociationIndices> groups(1);
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim < outer)
      groups.front().push_back(dim);
    else
      groups.push_back({dim});
  return tensor::CollapseShapeOp::create(rewriter, loc, partial, groups);
}

/// Adds up the ranges' sums of the columns at `at`, each rounded to the type of
/// its destination, which has these columns.
SmallVector<Value> RangeTiler::sumPartials(ValueRange partials,
                                           ValueRange destinations,
                                           ArrayRef<OpFoldResult> at,
                                           ArrayRef<OpFoldResult> sizes) {
  Sizes offsets = zeros(1),
        shape{tensor::getMixedSize(rewriter, loc, partials.front(), 0)};
  llvm::append_range(offsets, at);
  llvm::append_range(shape, sizes);
  int64_t rank = offsets.size();
  Value zero =
      arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(workType));
  SmallVector<Value> slices, inits;
  for (auto [partial, destination] : llvm::zip_equal(partials, destinations)) {
    slices.push_back(tensor::ExtractSliceOp::create(
        rewriter, loc, partial, offsets, shape, ones(rank)));
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
    rounded.push_back(roundTo(sum, destination));
  return rounded;
}

/// `sum` in the element type of `destination`.
Value RangeTiler::roundTo(Value sum, Value destination) {
  Type to = getElementTypeOrSelf(destination.getType());
  if (to == workType)
    return sum;
  int64_t rank = cast<RankedTensorType>(sum.getType()).getRank();
  AffineMap columns = rewriter.getMultiDimIdentityMap(rank);
  bool widens = to.getIntOrFloatBitWidth() > workType.getWidth();
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

SmallVector<Value> RangeTiler::createMerge(ValueRange partials) {
  SmallVector<Value> collapsed, destinations;
  Sizes extents;
  for (auto [result, partial] :
       llvm::zip_equal(op->getResults().drop_front(), partials)) {
    collapsed.push_back(collapseRanges(partial));
    extents = tensor::getMixedSizes(rewriter, loc, partial);
    extents.erase(extents.begin(), extents.begin() + counts.size());
    destinations.push_back(tensor::EmptyOp::create(
        rewriter, loc, extents, getElementTypeOrSelf(result.getType())));
  }
  size_t rank = extents.size();
  int64_t width = kMergedColumns;
  std::optional<int64_t> last = getConstantIntValue(extents.back());
  if (last && *last < width)
    width = *last;
  Sizes steps = ones(rank);
  steps.back() = rewriter.getIndexAttr(width);
  auto merge = scf::ForallOp::create(rewriter, loc, zeros(rank), extents, steps,
                                     destinations, /*mapping=*/std::nullopt);
  merge->setAttr(kStrategyAttrName,
                 CpuStrategyAttr::get(rewriter.getContext(), /*rows=*/1,
                                      llvm::PowerOf2Ceil(width),
                                      strategy.getParallel(),
                                      /*range=*/0, strategy.getSerialBytes(),
                                      /*stream_bytes=*/0, /*prefetch=*/0));

  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(merge.getTerminator());
  Sizes at = llvm::to_vector_of<OpFoldResult>(merge.getInductionVars()),
        sizes = ones(rank);
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
  SmallVector<Value> slices;
  for (Value argument : merge.getRegionIterArgs())
    slices.push_back(tensor::ExtractSliceOp::create(rewriter, loc, argument, at,
                                                    sizes, ones(rank)));
  SmallVector<Value> sums = sumPartials(collapsed, slices, at, sizes);
  rewriter.setInsertionPointToEnd(merge.getTerminator().getBody());
  for (auto [sum, argument] : llvm::zip_equal(sums, merge.getRegionIterArgs()))
    tensor::ParallelInsertSliceOp::create(rewriter, loc, sum, argument, at,
                                          sizes, ones(rank));
  return llvm::to_vector_of<Value>(merge.getResults());
}

FailureOr<scf::ForallOp> RangeTiler::run() {
  if (strategy.getRange() < kFewestRows)
    return op->emitOpError("expected the range of '")
           << kStrategyAttrName << "' to be " << kFewestRows
           << " rows or more where rows are summed over, got "
           << strategy.getRange();
  rewriter.setInsertionPoint(op);
  domain = normIterationDomain(op, rewriter);
  chooseRanges();
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
